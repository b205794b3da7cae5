//! Number formats of locales, for FORMAT.
//!
//! bg_BG has no separators here: MariaDB puts a zero byte between its thousands.

/// Number format of a locale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberStyle {
    point: u8,
    /// Separator between groups of digits.
    separator: Option<u8>,
    grouping: Grouping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    /// Groups as in 1,234,567.
    Threes,
    /// Groups as in 12,34,567.
    Indian,
}

const fn style(point: u8, separator: Option<u8>) -> NumberStyle {
    NumberStyle { point, separator, grouping: Grouping::Threes }
}

/// Formats with their locales.
static STYLES: &[(NumberStyle, &str)] = &[
    (
        style(b',', None),
        "bg_BG fr_FR ca_ES de_AT el_GR eu_ES fr_BE fr_CA fr_CH fr_LU gl_ES hr_HR it_IT nl_BE nl_NL \
         pl_PL pt_BR pt_PT sl_SI",
    ),
    (
        NumberStyle::ENGLISH,
        "en_US en_GB ja_JP ar_AE ar_BH ar_JO ar_SY en_ZA en_CA en_AU en_NZ en_PH en_ZW es_DO es_GT \
         es_HN es_MX es_NI es_PA es_PE es_PR es_SV es_US gu_IN he_IL hi_IN ko_KR ms_MY th_TH ur_PK \
         zh_CN zh_HK zh_TW ar_DZ ar_EG ar_IN ar_IQ ar_KW ar_LB ar_LY ar_MA ar_OM ar_QA ar_SD ar_TN \
         ar_YE",
    ),
    (style(b'.', Some(b'\'')), "de_CH"),
    (style(b',', Some(b' ')), "sv_SE cs_CZ es_CR et_EE fi_FI lv_LV mk_MK ru_RU sk_SK ka_GE"),
    (style(b',', Some(b'\'')), "it_CH rm_CH"),
    (NumberStyle { grouping: Grouping::Indian, ..NumberStyle::ENGLISH }, "en_IN ta_IN te_IN"),
    (
        style(b',', Some(b'.')),
        "de_DE be_BY da_DK nb_NO es_AR es_BO es_CL es_CO es_EC es_ES es_PY es_UY es_VE fo_FO hu_HU \
         id_ID is_IS lt_LT mn_MN no_NO ro_RO ru_UA sq_AL tr_TR uk_UA vi_VN de_BE de_LU",
    ),
    (style(b'.', None), "ar_SA sr_RS"),
];

impl NumberStyle {
    pub const ENGLISH: NumberStyle = style(b'.', Some(b','));

    /// Returns the format of a locale. The locale's name may be in any case.
    pub fn of_locale(name: &str) -> Option<NumberStyle> {
        let has = |names: &str| names.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(name));
        STYLES.iter().find(|(_, names)| has(names)).map(|(style, _)| *style)
    }

    /// Formats digits with an optional sign and decimal point.
    pub fn write(self, digits: &[u8]) -> Vec<u8> {
        let signed = digits.first() == Some(&b'-');
        let (sign, rest) = digits.split_at(usize::from(signed));
        let point = rest.iter().position(|b| *b == b'.').unwrap_or(rest.len());
        let mut out = sign.to_vec();
        for (n, digit) in rest[..point].iter().enumerate() {
            if n > 0
                && self.begins_group(point - n)
                && let Some(separator) = self.separator
            {
                out.push(separator);
            }
            out.push(*digit);
        }
        if point < rest.len() {
            out.push(self.point);
            out.extend_from_slice(&rest[point + 1..]);
        }
        out
    }

    /// Returns true if a group begins with `left` digits remaining.
    fn begins_group(self, left: usize) -> bool {
        match self.grouping {
            Grouping::Threes => left.is_multiple_of(3),
            Grouping::Indian => left == 3 || left > 3 && left % 2 == 1,
        }
    }
}
