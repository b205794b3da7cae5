//! Character sets: names, ids of their collations, encodings.

use super::{Collation, bytes, wide};

/// Encoding of a character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// UTF-8 with characters of at most `longest` bytes.
    Utf8 { longest: usize },
    /// Any bytes.
    Binary,
    /// Seven bits.
    Ascii,
    /// cp1252.
    Latin1,
    /// One byte per character.
    Bytes(bytes::Set),
    /// One to three bytes per character.
    Wide(wide::Set),
    /// UTF-16, or ucs2 if `pairs` is false: surrogate pairs are not combined.
    Utf16 { pairs: bool, little: bool },
    /// UTF-32.
    Utf32,
}

/// A character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Charset {
    Big5,
    Dec8,
    Cp850,
    Hp8,
    Koi8r,
    Latin1,
    Latin2,
    Swe7,
    Ascii,
    Ujis,
    Sjis,
    Hebrew,
    Euckr,
    Koi8u,
    Gb2312,
    Greek,
    Cp1250,
    Gbk,
    Latin5,
    Armscii8,
    Utf8mb3,
    Ucs2,
    Cp866,
    Keybcs2,
    Macce,
    Macroman,
    Cp852,
    Latin7,
    Utf8mb4,
    Cp1251,
    Utf16,
    Utf16le,
    Cp1256,
    Cp1257,
    Utf32,
    Binary,
    Geostd8,
    Cp932,
    Eucjpms,
}

struct Description {
    name: &'static str,
    text: &'static str,
    mbmaxlen: u32,
    default: u16,
    bin: u16,
    coding: Coding,
}

const fn set(
    name: &'static str,
    text: &'static str,
    mbmaxlen: u32,
    default: u16,
    bin: u16,
    coding: Coding,
) -> Description {
    Description { name, text, mbmaxlen, default, bin, coding }
}

/// Indexed by [`Charset::ALL`], in MariaDB's order.
#[rustfmt::skip]
const CHARSETS: [Description; Charset::ALL.len()] = [
    set("big5", "Big5 Traditional Chinese", 2, 1, 84, Coding::Wide(wide::Set(0))),
    set("dec8", "DEC West European", 1, 3, 69, Coding::Bytes(bytes::Set(0))),
    set("cp850", "DOS West European", 1, 4, 80, Coding::Bytes(bytes::Set(1))),
    set("hp8", "HP West European", 1, 6, 72, Coding::Bytes(bytes::Set(2))),
    set("koi8r", "KOI8-R Relcom Russian", 1, 7, 74, Coding::Bytes(bytes::Set(3))),
    set("latin1", "cp1252 West European", 1, 8, 47, Coding::Latin1),
    set("latin2", "ISO 8859-2 Central European", 1, 9, 77, Coding::Bytes(bytes::Set(4))),
    set("swe7", "7bit Swedish", 1, 10, 82, Coding::Bytes(bytes::Set(5))),
    set("ascii", "US ASCII", 1, 11, 65, Coding::Ascii),
    set("ujis", "EUC-JP Japanese", 3, 12, 91, Coding::Wide(wide::Set(6))),
    set("sjis", "Shift-JIS Japanese", 2, 13, 88, Coding::Wide(wide::Set(4))),
    set("hebrew", "ISO 8859-8 Hebrew", 1, 16, 71, Coding::Bytes(bytes::Set(6))),
    set("euckr", "EUC-KR Korean", 2, 19, 85, Coding::Wide(wide::Set(3))),
    set("koi8u", "KOI8-U Ukrainian", 1, 22, 75, Coding::Bytes(bytes::Set(7))),
    set("gb2312", "GB2312 Simplified Chinese", 2, 24, 86, Coding::Wide(wide::Set(2))),
    set("greek", "ISO 8859-7 Greek", 1, 25, 70, Coding::Bytes(bytes::Set(8))),
    set("cp1250", "Windows Central European", 1, 26, 66, Coding::Bytes(bytes::Set(9))),
    set("gbk", "GBK Simplified Chinese", 2, 28, 87, Coding::Wide(wide::Set(1))),
    set("latin5", "ISO 8859-9 Turkish", 1, 30, 78, Coding::Bytes(bytes::Set(10))),
    set("armscii8", "ARMSCII-8 Armenian", 1, 32, 64, Coding::Bytes(bytes::Set(11))),
    set("utf8mb3", "UTF-8 Unicode", 3, 33, 83, Coding::Utf8 { longest: 3 }),
    set("ucs2", "UCS-2 Unicode", 2, 35, 90, Coding::Utf16 { pairs: false, little: false }),
    set("cp866", "DOS Russian", 1, 36, 68, Coding::Bytes(bytes::Set(12))),
    set("keybcs2", "DOS Kamenicky Czech-Slovak", 1, 37, 73, Coding::Bytes(bytes::Set(13))),
    set("macce", "Mac Central European", 1, 38, 43, Coding::Bytes(bytes::Set(14))),
    set("macroman", "Mac West European", 1, 39, 53, Coding::Bytes(bytes::Set(15))),
    set("cp852", "DOS Central European", 1, 40, 81, Coding::Bytes(bytes::Set(16))),
    set("latin7", "ISO 8859-13 Baltic", 1, 41, 79, Coding::Bytes(bytes::Set(17))),
    set("utf8mb4", "UTF-8 Unicode", 4, 45, 46, Coding::Utf8 { longest: 4 }),
    set("cp1251", "Windows Cyrillic", 1, 51, 50, Coding::Bytes(bytes::Set(18))),
    set("utf16", "UTF-16 Unicode", 4, 54, 55, Coding::Utf16 { pairs: true, little: false }),
    set("utf16le", "UTF-16LE Unicode", 4, 56, 62, Coding::Utf16 { pairs: true, little: true }),
    set("cp1256", "Windows Arabic", 1, 57, 67, Coding::Bytes(bytes::Set(19))),
    set("cp1257", "Windows Baltic", 1, 59, 58, Coding::Bytes(bytes::Set(20))),
    set("utf32", "UTF-32 Unicode", 4, 60, 61, Coding::Utf32),
    set("binary", "Binary pseudo charset", 1, 63, 63, Coding::Binary),
    set("geostd8", "GEOSTD8 Georgian", 1, 92, 93, Coding::Bytes(bytes::Set(21))),
    set("cp932", "SJIS for Windows Japanese", 2, 95, 96, Coding::Wide(wide::Set(5))),
    set("eucjpms", "UJIS for Windows Japanese", 3, 97, 98, Coding::Wide(wide::Set(7))),
];

impl Charset {
    /// All character sets.
    #[rustfmt::skip]
    pub const ALL: [Charset; 39] = [
        Charset::Big5, Charset::Dec8, Charset::Cp850, Charset::Hp8, Charset::Koi8r, Charset::Latin1,
        Charset::Latin2, Charset::Swe7, Charset::Ascii, Charset::Ujis, Charset::Sjis, Charset::Hebrew,
        Charset::Euckr, Charset::Koi8u, Charset::Gb2312, Charset::Greek, Charset::Cp1250, Charset::Gbk,
        Charset::Latin5, Charset::Armscii8, Charset::Utf8mb3, Charset::Ucs2, Charset::Cp866,
        Charset::Keybcs2, Charset::Macce, Charset::Macroman, Charset::Cp852, Charset::Latin7,
        Charset::Utf8mb4, Charset::Cp1251, Charset::Utf16, Charset::Utf16le, Charset::Cp1256,
        Charset::Cp1257, Charset::Utf32, Charset::Binary, Charset::Geostd8, Charset::Cp932,
        Charset::Eucjpms,
    ];

    /// Their names, in the order of [`Charset::ALL`].
    pub const NAMES: [&'static str; Charset::ALL.len()] = {
        let mut names = [""; Charset::ALL.len()];
        let mut n = 0;
        while n < names.len() {
            names[n] = CHARSETS[n].name;
            n += 1;
        }
        names
    };

    fn described(self) -> &'static Description {
        static TABLE: [Description; Charset::ALL.len()] = CHARSETS;
        &TABLE[self as usize]
    }

    /// Finds a character set by its name, in any case. `utf8` is utf8mb3, as in MariaDB's default old_mode.
    pub fn by_name(name: &str) -> Option<Charset> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Charset::Utf8mb3);
        }
        Charset::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name, for example `utf8mb4`.
    pub fn name(self) -> &'static str {
        self.described().name
    }

    /// Returns the description in SHOW CHARACTER SET.
    pub fn description(self) -> &'static str {
        self.described().text
    }

    /// Returns the collation of a column declared with only this character set.
    pub fn default_collation(self) -> Collation {
        Collation(self.described().default)
    }

    /// Returns the `_bin` collation.
    pub fn bin_collation(self) -> Collation {
        Collation(self.described().bin)
    }

    /// Returns the length of the longest character in bytes.
    pub fn mbmaxlen(self) -> u32 {
        self.described().mbmaxlen
    }

    /// Returns the length of the shortest character in bytes.
    pub fn mbminlen(self) -> u32 {
        match self.coding() {
            Coding::Utf16 { .. } => 2,
            Coding::Utf32 => 4,
            _ => 1,
        }
    }

    /// Returns whether the set contains the characters of Unicode, all or those of the Basic Multilingual
    /// Plane.
    pub fn is_unicode(self) -> bool {
        matches!(self.coding(), Coding::Utf8 { .. } | Coding::Utf16 { .. } | Coding::Utf32)
    }

    /// Returns whether text in memory has the bytes of this set.
    pub fn is_as_in_memory(self) -> bool {
        matches!(self.coding(), Coding::Utf8 { .. } | Coding::Binary | Coding::Ascii)
    }

    pub(super) fn coding(self) -> Coding {
        self.described().coding
    }
}
