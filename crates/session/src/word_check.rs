//! Rejects new passwords that are easy to guess, by the rules of MariaDB's plugin `cracklib_password_check`:
//! short passwords, few distinct characters, sequences, dictionary words and simple variants of them, and the
//! user's name.
//!
//! The dictionary is a plain file with one word per line (`/usr/share/dict/words`), not cracklib's packed
//! format. It is read once, when the server starts.

/// A dictionary: words in lower case, sorted.
pub struct WordList {
    bytes: Vec<u8>,
    /// The start and end of each word.
    words: Vec<(u32, u32)>,
}

/// Maximum size of the dictionary file.
const BYTES_MAX: usize = 256 << 20;
const LENGTH_MIN: usize = 6;
const LENGTH_WAY_TOO_SHORT: usize = 4;
const DIFFERENT_MIN: usize = 5;
/// Minimum length of a dictionary word. Shorter words are parts of too many good passwords.
const WORD_MIN: usize = 4;

impl WordList {
    /// Creates a list from a file's contents. Returns `None` if the file is too large.
    pub fn new(text: &[u8]) -> Option<WordList> {
        if text.len() > BYTES_MAX {
            return None;
        }
        let (mut bytes, mut words) = (Vec::with_capacity(text.len()), Vec::new());
        for line in text.split(|byte| *byte == b'\n') {
            let word = line.trim_ascii();
            if word.len() >= WORD_MIN {
                let begin = bytes.len() as u32;
                bytes.extend(word.iter().map(u8::to_ascii_lowercase));
                words.push((begin, bytes.len() as u32));
            }
        }
        let mut list = WordList { bytes, words: Vec::new() };
        words.sort_unstable_by(|a, b| list.word(*a).cmp(list.word(*b)));
        words.dedup_by(|a, b| list.word(*a) == list.word(*b));
        list.words = words;
        Some(list)
    }

    fn word(&self, (begin, end): (u32, u32)) -> &[u8] {
        &self.bytes[begin as usize..end as usize]
    }

    fn has(&self, word: &[u8]) -> bool {
        word.len() >= WORD_MIN && self.words.binary_search_by(|at| self.word(*at).cmp(word)).is_ok()
    }

    /// Returns the reason to reject the password, in cracklib's words, or `None` if it is acceptable.
    pub fn objection(&self, user: &str, password: &str) -> Option<&'static str> {
        let password = password.as_bytes();
        if password.len() < LENGTH_WAY_TOO_SHORT {
            return Some("it is WAY too short");
        }
        if password.len() < LENGTH_MIN {
            return Some("it is too short");
        }
        let mut different: Vec<u8> = password.to_vec();
        different.sort_unstable();
        different.dedup();
        if different.len() < DIFFERENT_MIN {
            return Some("it does not contain enough DIFFERENT characters");
        }
        let lower = password.to_ascii_lowercase();
        let plain = lower.trim_ascii();
        if plain.is_empty() {
            return Some("it is all whitespace");
        }
        if is_systematic(plain) {
            return Some("it is too simplistic/systematic");
        }
        let (forms, user) = (forms(plain), user.to_ascii_lowercase().into_bytes());
        if user.len() >= WORD_MIN && forms.iter().any(|form| is_about(form, &user)) {
            return Some("it is based on your username");
        }
        let backwards = |form: &Vec<u8>| form.iter().rev().copied().collect::<Vec<u8>>();
        if forms.iter().any(|form| self.has(form)) {
            return Some("it is based on a dictionary word");
        }
        if forms.iter().any(|form| self.has(&backwards(form))) {
            return Some("it is based on a (reversed) dictionary word");
        }
        None
    }
}

fn is_about(form: &[u8], user: &[u8]) -> bool {
    form == user || form.iter().rev().eq(user)
}

/// Detects sequences such as `abcdefgh` and `87654321`: more adjacent neighbours than random text would have.
fn is_systematic(password: &[u8]) -> bool {
    let steps = password.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
    steps as f64 > 3.0 + password.len() as f64 * 0.09
}

/// Returns the password and the words that it may be derived from.
fn forms(password: &[u8]) -> Vec<Vec<u8>> {
    let letters = |password: &[u8]| -> Vec<u8> {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80;
        let begin = password.iter().position(is_letter).unwrap_or(0);
        let end = password.iter().rposition(is_letter).map_or(0, |at| at + 1);
        password.get(begin..end).unwrap_or_default().to_vec()
    };
    let replaced = |form: &[u8], one: u8| -> Vec<u8> {
        let letter = |byte: &u8| match byte {
            b'0' => b'o',
            b'1' | b'!' => one,
            b'3' => b'e',
            b'4' | b'@' => b'a',
            b'5' | b'$' => b's',
            b'7' | b'+' => b't',
            b'8' => b'b',
            other => *other,
        };
        form.iter().map(letter).collect()
    };
    let mut forms = Vec::new();
    for form in [password.to_vec(), letters(password)] {
        let (by_i, by_l) = (replaced(&form, b'i'), replaced(&form, b'l'));
        forms.extend([letters(&by_i), letters(&by_l), by_i, by_l, form]);
    }
    // Further variants: without leading and trailing digits when other digits replace letters, half of a
    // doubled word, and the singular.
    let digits = |byte: &u8| byte.is_ascii_digit();
    let begin = password.iter().position(|byte| !digits(byte)).unwrap_or(0);
    let end = password.iter().rposition(|byte| !digits(byte)).map_or(0, |at| at + 1);
    if let Some(inner) = password.get(begin..end).filter(|inner| inner.len() < password.len()) {
        forms.push(inner.to_vec());
    }
    for n in 0..forms.len() {
        let form = &forms[n];
        let (first, second) = form.split_at(form.len() / 2);
        let half = (first == second).then(|| first.to_vec());
        let singular = form.strip_suffix(b"s").map(<[u8]>::to_vec);
        forms.extend(half.into_iter().chain(singular));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_passwords_are_refused() {
        let list = WordList::new(b"Password\nhorse\r\nbattery\n\nsecret\nab\nhorse\n").expect("it is small");
        for (password, objection) in [
            ("", Some("it is WAY too short")),
            ("abc", Some("it is WAY too short")),
            ("xk4!z", Some("it is too short")),
            ("aabbaabbaabb", Some("it does not contain enough DIFFERENT characters")),
            ("abcdefghij", Some("it is too simplistic/systematic")),
            ("987654321", Some("it is too simplistic/systematic")),
            ("password", Some("it is based on a dictionary word")),
            ("Password1!", Some("it is based on a dictionary word")),
            ("p@ssw0rd", Some("it is based on a dictionary word")),
            ("$ecret", Some("it is based on a dictionary word")),
            ("12horse34", Some("it is based on a dictionary word")),
            ("horsehorse", Some("it is based on a dictionary word")),
            ("batterys", Some("it is based on a dictionary word")),
            ("drowssap", Some("it is based on a (reversed) dictionary word")),
            ("Fabiola7", Some("it is based on your username")),
            ("aloibaf!", Some("it is based on your username")),
            ("correct horse battery", None),
            ("kq8Zr!mPw2", None),
            ("äöüßéñ", None),
        ] {
            assert_eq!(list.objection("fabiola", password), objection, "{password}");
        }
        let empty = WordList::new(b"").expect("it is small");
        assert_eq!(empty.objection("u", "password"), None);
        assert_eq!(empty.objection("u", "short"), Some("it is too short"));
    }
}
