//! The page format of a table, from its options.

use cohort_engine::PageFormat;

use crate::model::Table;

/// Values of KEY_BLOCK_SIZE, in KiB.
const BLOCK_SIZES: [&str; 5] = ["1", "2", "4", "8", "16"];

/// Parses a boolean engine option. Returns `None` if the value is not boolean.
pub fn is_on(value: &str) -> Option<bool> {
    let is = |words: [&str; 3]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match () {
        () if is(["1", "ON", "YES"]) => Some(true),
        () if is(["0", "OFF", "NO"]) => Some(false),
        () => None,
    }
}

/// Parses PAGE_COMPRESSION_LEVEL. Returns `None` if the value is invalid.
pub fn level_of(value: &str) -> Option<u8> {
    value.parse().ok().filter(|level| (1..=9).contains(level))
}

/// Returns whether the value is a valid KEY_BLOCK_SIZE.
pub fn is_block_size(value: &str) -> bool {
    BLOCK_SIZES.contains(&value)
}

impl Table {
    /// Returns the value of a table option, whose name is case-insensitive.
    pub fn option(&self, name: &str) -> Option<&str> {
        option_of(&self.options, name)
    }

    /// Returns the format of its pages on disk.
    pub fn page_format(&self) -> PageFormat {
        if self.option("PAGE_COMPRESSED").and_then(is_on) == Some(true) {
            return PageFormat::CompressedPages {
                level: self.option("PAGE_COMPRESSION_LEVEL").and_then(level_of),
            };
        }
        match self.row_format() {
            "Compressed" => PageFormat::CompressedRows,
            _ => PageFormat::Plain,
        }
    }

    /// Returns the row format as information_schema.TABLES shows it. KEY_BLOCK_SIZE alone implies COMPRESSED.
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

/// Returns the value of an option, whose name is case-insensitive.
pub fn option_of<'o>(options: &'o [(String, String)], name: &str) -> Option<&'o str> {
    options.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
