//! Tokens of texts for FULLTEXT indexes and MATCH. The rules and defaults are InnoDB's.
//!
//! A token ("word") is a run of letters, digits and `_`. Words are compared in lower case, by the collation
//! of their column.

use crate::Collation;

/// Minimum and maximum length of an indexed word in characters: `innodb_ft_min_token_size`,
/// `innodb_ft_max_token_size`.
pub const WORD_CHARS_MIN: usize = 3;
pub const WORD_CHARS_MAX: usize = 84;

/// InnoDB's default stopwords.
const STOPWORDS: [&str; 35] = [
    "a", "about", "an", "are", "as", "at", "be", "by", "com", "de", "en", "for", "from", "how", "i", "in",
    "is", "it", "la", "of", "on", "or", "that", "the", "this", "to", "und", "was", "what", "when", "where",
    "who", "will", "with", "www",
];

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns all words of a text in order and unchanged, including short words and stopwords.
pub fn raw_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_letter(c)).filter(|word| !word.is_empty())
}

/// Returns whether indexes contain the word: it is neither too short nor too long, and not a stopword.
pub fn is_indexed(word: &str) -> bool {
    let chars = word.chars().take(WORD_CHARS_MAX + 1).count();
    let is_stopword = || STOPWORDS.iter().any(|stopword| word.eq_ignore_ascii_case(stopword));
    (WORD_CHARS_MIN..=WORD_CHARS_MAX).contains(&chars) && !is_stopword()
}

/// Returns the sort key of a word. Words with equal keys are the same word.
pub fn word_key(word: &str, collation: Collation) -> Vec<u8> {
    let mut key = Vec::with_capacity(2 * word.len() + 4);
    put_word_key(word, collation, &mut key);
    key
}

/// Appends the sort key of a word.
pub fn put_word_key(word: &str, collation: Collation, out: &mut Vec<u8>) {
    collation.sort_key(word.to_lowercase().as_bytes(), out);
}

/// Returns the common prefix of the keys of all words that start with `prefix`.
pub fn word_prefix_key(prefix: &str, collation: Collation) -> Vec<u8> {
    let mut key = Vec::new();
    collation.sort_key_open(prefix.to_lowercase().as_bytes(), &mut key);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters() {
        let words = |text| raw_words(text).collect::<Vec<_>>().join("|");
        assert_eq!(words("The quick, brown_fox; 42!"), "The|quick|brown_fox|42");
        assert_eq!(words("don't ''quoted'' it's' a''b x'"), "don|t|quoted|it|s|a|b|x");
        assert_eq!(words("Grüße-aus Köln 😀 東京都"), "Grüße|aus|Köln|東京都");
        assert_eq!(words(" '- "), "");
    }

    #[test]
    fn short_long_and_frequent_words_are_left_out() {
        for word in ["ab", "The", "www", &"x".repeat(85)] {
            assert!(!is_indexed(word), "{word}");
        }
        for word in ["abc", "äöü", &"x".repeat(84)] {
            assert!(is_indexed(word), "{word}");
        }
    }

    #[test]
    fn words_are_one_by_their_collation() {
        let (weak, strict) = (Collation::UTF8MB4_GENERAL_CI, Collation::UTF8MB4_BIN);
        assert_eq!(word_key("Käse", weak), word_key("kase", weak));
        assert_ne!(word_key("Käse", strict), word_key("kase", strict));
        assert_eq!(word_key("Käse", strict), word_key("käse", strict));
        for collation in [weak, strict] {
            assert!(word_key("database", collation).starts_with(&word_prefix_key("Data", collation)));
            assert!(!word_key("dat", collation).starts_with(&word_prefix_key("data", collation)));
        }
    }
}
