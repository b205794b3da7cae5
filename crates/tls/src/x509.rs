//! Names and times of a certificate, in OpenSSL's formats.
//!
//! ```text
//! Certificate  = SEQUENCE { tbs, algorithm, signature }
//! tbs          = SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, public key, .. }
//! Name         = SEQUENCE OF SET OF SEQUENCE { OID, string }
//! validity     = SEQUENCE { time, time }
//! ```
//!
//! This module does not verify certificates. Unreadable input yields `None`, never a panic.

use std::fmt::Write;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const BMP_STRING: u8 = 0x1e;
const UNIVERSAL_STRING: u8 = 0x1c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;

/// Names and times of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// `/C=DE/O=Some/CN=one`
    pub issuer: String,
    pub subject: String,
    /// The last CN of the subject.
    pub common_name: Option<String>,
    /// `Nov 23 01:18:03 2026 GMT`
    pub not_before: String,
    pub not_after: String,
    /// Start and end as digits, `YYYYMMDDhhmmss`.
    pub times: [String; 2],
    /// Contents of `SubjectPublicKeyInfo`.
    public_key: Vec<u8>,
}

impl Fields {
    /// Returns whether the certificate is that of a public key, a `SubjectPublicKeyInfo`.
    pub fn is_of(&self, public_key: &[u8]) -> bool {
        Der(public_key).expect(SEQUENCE) == Some(&self.public_key)
    }
}

/// A sequence of DER elements.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Returns tag and contents of the next element.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let digits = rest.get(..count)?;
                let length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
                (length, &rest[count..])
            }
            _ => return None,
        };
        let contents = rest.get(..length)?;
        self.0 = &rest[length..];
        Some((tag, contents))
    }

    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, contents)| contents)
    }
}

/// Reads the fields of a certificate.
pub(crate) fn fields(certificate: &[u8]) -> Option<Fields> {
    let mut tbs = Der(Der(Der(certificate).expect(SEQUENCE)?).expect(SEQUENCE)?);
    // Version 1 has no version field.
    if tbs.0.first() == Some(&VERSION) {
        tbs.next()?;
    }
    let (_serial, _algorithm) = (tbs.next()?, tbs.expect(SEQUENCE)?);
    let (issuer, _) = name(tbs.expect(SEQUENCE)?)?;
    let mut validity = Der(tbs.expect(SEQUENCE)?);
    let times = [digits(validity.next()?)?, digits(validity.next()?)?];
    let (subject, common_name) = name(tbs.expect(SEQUENCE)?)?;
    let public_key = tbs.expect(SEQUENCE)?.to_vec();
    let [not_before, not_after] = [shown(&times[0])?, shown(&times[1])?];
    Some(Fields { issuer, subject, common_name, not_before, not_after, times, public_key })
}

/// Returns `/type=value` for each part, and the last CN.
fn name(sequence: &[u8]) -> Option<(String, Option<String>)> {
    let (mut line, mut common_name) = (String::new(), None);
    let mut sets = Der(sequence);
    while !sets.0.is_empty() {
        let mut pairs = Der(sets.expect(SET)?);
        while !pairs.0.is_empty() {
            let mut pair = Der(pairs.expect(SEQUENCE)?);
            let (oid, (tag, value)) = (pair.expect(OID)?, pair.next()?);
            line.push('/');
            match short_name(oid) {
                Some(short) => line.push_str(short),
                None => dotted(oid, &mut line),
            }
            line.push('=');
            push_value(tag, value, &mut line);
            if short_name(oid) == Some("CN") {
                common_name = std::str::from_utf8(value).ok().map(str::to_owned);
            }
        }
    }
    Some((line, common_name))
}

fn short_name(oid: &[u8]) -> Option<&'static str> {
    Some(match oid {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 4] => "SN",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 9] => "street",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x55, 4, 12] => "title",
        [0x55, 4, 13] => "description",
        [0x55, 4, 17] => "postalCode",
        [0x55, 4, 41] => "name",
        [0x55, 4, 42] => "GN",
        [0x55, 4, 43] => "initials",
        [0x55, 4, 44] => "generationQualifier",
        [0x55, 4, 46] => "dnQualifier",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "emailAddress",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC",
        _ => return None,
    })
}

fn dotted(oid: &[u8], out: &mut String) {
    let mut numbers = Vec::new();
    let mut number = 0u64;
    for &byte in oid {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.push(first);
                number -= first * 40;
            }
            numbers.push(number);
            number = 0;
        }
    }
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    out.push_str(&texts.join("."));
}

/// Appends a value like X509_NAME_oneline: bytes that are not printable ASCII as `\xHH`. Wide strings of
/// ASCII are written without their zero bytes.
fn push_value(tag: u8, value: &[u8], out: &mut String) {
    let width = match tag {
        BMP_STRING => 2,
        UNIVERSAL_STRING => 4,
        _ => 1,
    };
    let is_wide_ascii = value.len().is_multiple_of(width)
        && value.chunks(width).all(|unit| unit[..width - 1].iter().all(|byte| *byte == 0));
    let bytes: Vec<u8> = match is_wide_ascii {
        true => value.chunks(width).map(|unit| unit[width - 1]).collect(),
        false => value.to_vec(),
    };
    for byte in bytes {
        match byte {
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => write!(out, "\\x{byte:02X}").expect("a String takes it"),
        }
    }
}

/// Returns a time as `YYYYMMDDhhmmss`.
fn digits((tag, contents): (u8, &[u8])) -> Option<String> {
    let text = std::str::from_utf8(contents).ok()?.strip_suffix('Z')?;
    let is_whole = |length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    match tag {
        UTC_TIME if is_whole(12) => {
            let century = if text < "50" { "20" } else { "19" };
            Some(format!("{century}{text}"))
        }
        GENERALIZED_TIME if is_whole(14) => Some(text.to_owned()),
        _ => None,
    }
}

/// Formats the time as `Nov 23 01:18:03 2026 GMT`.
fn shown(digits: &str) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.get(digits[4..6].parse::<usize>().ok()?.checked_sub(1)?)?;
    let (year, day) = (&digits[..4], digits[6..8].parse::<u8>().ok()?);
    let (hour, minute, second) = (&digits[8..10], &digits[10..12], &digits[12..14]);
    Some(format!("{month} {day:>2} {hour}:{minute}:{second} {year} GMT"))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CountryName, "DE");
        params.distinguished_name.push(DnType::OrganizationName, "Größe");
        params.distinguished_name.push(DnType::CustomDnType(vec![1, 2, 840, 5]), "own");
        params.distinguished_name.push(DnType::CommonName, "one");
        params.not_before = date_time_ymd(1999, 1, 2);
        params.not_after = date_time_ymd(2061, 12, 31);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("signed").der().to_vec()
    }

    #[test]
    fn names_and_times_are_those_that_openssl_prints() {
        let fields = fields(&certificate()).expect("readable");
        assert_eq!(fields.subject, "/C=DE/O=Gr\\xC3\\xB6\\xC3\\x9Fe/1.2.840.5=own/CN=one");
        assert_eq!(fields.issuer, fields.subject);
        assert_eq!(fields.common_name.as_deref(), Some("one"));
        assert_eq!(fields.not_before, "Jan  2 00:00:00 1999 GMT");
        assert_eq!(fields.not_after, "Dec 31 00:00:00 2061 GMT");
    }

    #[test]
    fn damaged_certificates_are_none_or_read_and_never_a_panic() {
        let whole = certificate();
        for n in 0..whole.len() {
            assert_eq!(fields(&whole[..n]), None);
            for bit in [1, 0x80] {
                let mut damaged = whole.clone();
                damaged[n] ^= bit;
                fields(&damaged);
            }
        }
    }
}
