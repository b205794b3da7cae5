//! What a table's options say about the form of its pages on disk.

use cohort_engine::PageForm;

use crate::model::Table;

/// Values of KEY_BLOCK_SIZE, in KiB.
const BLOCK_SIZES: [&str; 5] = ["1", "2", "4", "8", "16"];

/// A boolean value of an engine's option; none: it is none.
pub fn is_on(value: &str) -> Option<bool> {
    let is = |words: [&str; 3]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match () {
        () if is(["1", "ON", "YES"]) => Some(true),
        () if is(["0", "OFF", "NO"]) => Some(false),
        () => None,
    }
}

/// A PAGE_COMPRESSION_LEVEL; none: it is none.
pub fn level_of(value: &str) -> Option<u8> {
    value.parse().ok().filter(|level| (1..=9).contains(level))
}

/// Whether there are pages of so many KiB.
pub fn is_block_size(value: &str) -> bool {
    BLOCK_SIZES.contains(&value)
}

impl Table {
    /// The value of a table option, whose name may be written in any case.
    pub fn option(&self, name: &str) -> Option<&str> {
        option_of(&self.options, name)
    }

    /// How its pages are written to disk.
    pub fn page_form(&self) -> PageForm {
        if self.option("PAGE_COMPRESSED").and_then(is_on) == Some(true) {
            return PageForm::CompressedPages {
                level: self.option("PAGE_COMPRESSION_LEVEL").and_then(level_of),
            };
        }
        match self.row_format() {
            "Compressed" => PageForm::CompressedRows,
            _ => PageForm::Plain,
        }
    }

    /// As information_schema.TABLES names it. KEY_BLOCK_SIZE alone asks for COMPRESSED.
    pub fn row_format(&self) -> &'static str {
        match (self.option("ROW_FORMAT"), self.option("KEY_BLOCK_SIZE")) {
            _ if self.is_sequence() => "Fixed",
            (Some("COMPRESSED"), _) => "Compressed",
            (Some("REDUNDANT"), _) => "Redundant",
            (Some("COMPACT"), _) => "Compact",
            (None, Some(size)) if is_block_size(size) => "Compressed",
            _ => "Dynamic",
        }
    }
}

/// The value of one of the options, whose name may be written in any case.
pub fn option_of<'o>(options: &'o [(String, String)], name: &str) -> Option<&'o str> {
    options.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
