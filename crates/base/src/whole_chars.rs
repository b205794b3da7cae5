//! Cuts of texts between characters.

/// Returns the longest prefix of whole characters in the first `bytes` bytes of a text.
pub fn whole_chars(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
