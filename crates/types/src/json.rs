//! JSON_VALID: checks a text without allocation or recursion. Nesting is limited to 31 levels. MariaDB's
//! leniencies are kept: `1.` is a number, and any character may be escaped.

/// Maximum nesting depth.
const DEPTH_MAX: u32 = 31;

/// A checker with the rest of its text.
struct Checker<'a> {
    rest: &'a [u8],
}

/// Returns whether `text` (UTF-8) is one JSON value.
pub fn is_valid_json(text: &[u8]) -> bool {
    let mut checker = Checker { rest: text };
    checker.document().is_some() && checker.rest.is_empty()
}

impl Checker<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.rest.first() == Some(&wanted);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn spaces(&mut self) {
        let spaces = self.rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.rest = &self.rest[spaces..];
    }

    /// Reads a value with spaces around it. `objects` has a bit for each open bracket: 1 for an object.
    fn document(&mut self) -> Option<()> {
        let (mut depth, mut objects) = (0u32, 0u64);
        loop {
            self.spaces();
            let opened = match *self.rest.first()? {
                b'{' | b'[' => {
                    let object = self.next() == Some(b'{');
                    depth += 1;
                    if depth > DEPTH_MAX {
                        return None;
                    }
                    objects = objects << 1 | u64::from(object);
                    self.spaces();
                    if self.take(if object { b'}' } else { b']' }) {
                        false
                    } else {
                        if object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                _ => {
                    self.scalar()?;
                    true
                }
            };
            if !opened {
                depth -= 1;
                objects >>= 1;
            }
            // A value has ended: close the brackets that end here, or continue with the next value.
            loop {
                self.spaces();
                if depth == 0 {
                    return Some(());
                }
                let object = objects & 1 == 1;
                match self.next()? {
                    b',' => {
                        self.spaces();
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return None,
                }
                depth -= 1;
                objects >>= 1;
            }
        }
    }

    /// Reads `"name" :`.
    fn name(&mut self) -> Option<()> {
        self.spaces();
        self.string()?;
        self.spaces();
        self.take(b':').then_some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match *self.rest.first()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let word =
                    [&b"true"[..], b"false", b"null"].into_iter().find(|w| self.rest.starts_with(w))?;
                self.rest = &self.rest[word.len()..];
                Some(())
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        if !self.take(b'"') {
            return None;
        }
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => match self.next()? {
                    b'u' => self.unicode()?,
                    0..=0x1f => return None,
                    _ => {}
                },
                0..=0x1f => return None,
                _ => {}
            }
        }
    }

    /// Reads `XXXX` of a character or of a surrogate pair, after `\u`.
    fn unicode(&mut self) -> Option<()> {
        match self.unit()? {
            0xd800..=0xdbff if self.rest.starts_with(b"\\u") => {
                self.rest = &self.rest[2..];
                (0xdc00..=0xdfff).contains(&self.unit()?).then_some(())
            }
            0xd800..=0xdfff => None,
            _ => Some(()),
        }
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn digits(&mut self) -> usize {
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.rest = &self.rest[digits..];
        digits
    }

    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        if !self.take(b'0') && self.digits() == 0 {
            return None;
        }
        if self.take(b'.') {
            self.digits();
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_json_is_recognised() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        for text in [
            "{}",
            " [ ] ",
            "1",
            "-0.5e+3",
            "\"a\\u12aF\\n\"",
            r#""\ud83d\ude00""#,
            "true",
            "null",
            r#"{"a": [1, {"b": null}], "c": "d"}"#,
            "[[],{}]",
            &nested(31),
        ] {
            assert!(is_valid_json(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "-",
            ".5",
            "+1",
            "1 2",
            "tru",
            "\"\\u12\"",
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ud83dx""#,
            r#""\ud83d\u0041""#,
            "\"a\tb\"",
            "[}",
            "{]",
            "]",
            "\"a",
            "[1 2]",
            "{\"a\" 1}",
            "1e",
            &nested(32),
        ] {
            assert!(!is_valid_json(text.as_bytes()), "{text}");
        }
    }
}
