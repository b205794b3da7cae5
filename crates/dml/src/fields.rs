//! Splits a text file into fields ([`FieldReader`]).
//!
//! # States
//! If lines have a start marker, a line is skipped up to it (`start_line`). Each call of `field` then reads
//! up to the next separator, until one ends the line. `next_line` skips the rest of the line.
//!
//! Separators are matched byte by byte. After a partial match the bytes are pushed back and read again. In
//! character sets whose trailing bytes may be ASCII letters, a multi-byte character is read as a whole.

use cohort_sql::ast::FileFormat;
use cohort_types::{Charset, SqlError, SqlResult};

/// The source of a file's bytes.
pub(crate) trait Bytes {
    /// Replaces `buffer` by the next bytes; empty at the end.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> SqlResult<()>;

    /// Returns the number of bytes passed on and of all bytes, if known.
    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}

/// The outcome of reading a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A field was read. `is_null`: it represents NULL.
    Value { is_null: bool },
    /// The line has no more fields.
    Missing,
}

/// Splits bytes into lines and fields.
pub(crate) struct FieldReader<'b> {
    source: &'b mut dyn Bytes,
    buffer: Vec<u8>,
    at: usize,
    /// Bytes pushed back; the next one is last.
    back: Vec<u8>,
    is_over: bool,
    format: FileFormat,
    enclosed: Option<u8>,
    escaped: Option<u8>,
    has_pairs: bool,
    line_is_over: bool,
    at_line_start: bool,
    /// The field that was read.
    pub(crate) value: Vec<u8>,
    bytes_max: usize,
}

impl<'b> FieldReader<'b> {
    /// Creates a reader at the start of a file. A field has at most `bytes_max` bytes.
    pub(crate) fn new(
        source: &'b mut dyn Bytes,
        format: &FileFormat,
        charset: Charset,
        bytes_max: usize,
    ) -> FieldReader<'b> {
        let mut format = format.clone();
        // As in MariaDB, without a line terminator the field separator ends lines, too.
        if format.line_end.is_empty() {
            format.line_end.clone_from(&format.field_end);
        }
        FieldReader {
            source,
            buffer: Vec::new(),
            at: 0,
            back: Vec::new(),
            is_over: false,
            enclosed: format.enclosed.first().copied(),
            escaped: format.escaped.first().copied(),
            has_pairs: charset.mbmaxlen() == 2 && charset.mbminlen() == 1,
            line_is_over: false,
            at_line_start: !format.line_start.is_empty(),
            format,
            value: Vec::new(),
            bytes_max,
        }
    }

    /// Returns the number of bytes read and of all bytes, if known.
    pub(crate) fn progress(&self) -> Option<(u64, u64)> {
        self.source.progress()
    }

    /// Returns whether the end of the file was reached.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    fn next(&mut self) -> SqlResult<Option<u8>> {
        if let Some(byte) = self.back.pop() {
            return Ok(Some(byte));
        }
        if self.at == self.buffer.len() {
            self.at = 0;
            self.source.fill(&mut self.buffer)?;
            if self.buffer.is_empty() {
                return Ok(None);
            }
        }
        self.at += 1;
        Ok(Some(self.buffer[self.at - 1]))
    }

    /// Returns whether the rest of a separator follows, whose first byte was read. If not, the bytes are
    /// pushed back.
    fn rest_of(&mut self, separator: &[u8]) -> SqlResult<bool> {
        for (n, wanted) in separator.iter().enumerate().skip(1) {
            let found = self.next()?;
            if found != Some(*wanted) {
                self.back.extend(found);
                self.back.extend(separator[1..n].iter().rev());
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn ends(&mut self, byte: u8, which: fn(&FileFormat) -> &Vec<u8>) -> SqlResult<bool> {
        let separator = which(&self.format);
        if separator.first() != Some(&byte) {
            return Ok(false);
        }
        if separator.len() == 1 {
            return Ok(true);
        }
        let separator = separator.clone();
        self.rest_of(&separator)
    }

    fn push(&mut self, byte: u8) -> SqlResult<()> {
        if self.value.len() >= self.bytes_max {
            return Err(SqlError::packet_too_large());
        }
        self.value.push(byte);
        Ok(())
    }

    fn end_of_file(&mut self) {
        (self.line_is_over, self.is_over) = (true, true);
    }

    /// Skips the line up to its first field. Returns false at the end of the file.
    fn start_line(&mut self) -> SqlResult<bool> {
        self.at_line_start = false;
        loop {
            let Some(byte) = self.next()? else {
                self.end_of_file();
                return Ok(false);
            };
            if self.ends(byte, |format| &format.line_start)? {
                return Ok(true);
            }
        }
    }

    /// Reads the next field of the line into `value`.
    pub(crate) fn field(&mut self) -> SqlResult<Field> {
        self.value.clear();
        if self.line_is_over || (self.at_line_start && !self.start_line()?) {
            return Ok(Field::Missing);
        }
        let Some(first) = self.next()? else {
            self.end_of_file();
            return Ok(Field::Missing);
        };
        let quote = self.enclosed.filter(|quote| *quote == first);
        match quote {
            Some(quote) => self.push(quote)?,
            None => self.back.push(first),
        }
        let mut found_null = false;
        while let Some(byte) = self.next()? {
            if self.escaped == Some(byte) {
                let Some(next) = self.next()? else {
                    self.push(byte)?;
                    break;
                };
                // Escape and quote characters may be the same. Then only a doubled one is an escape.
                if self.enclosed != self.escaped || next == byte {
                    let same = self.enclosed == self.escaped;
                    found_null |= !same && next == b'N';
                    self.push(if same { next } else { unescaped(next) })?;
                    continue;
                }
                self.back.push(next);
            }
            if quote.is_none() && self.ends(byte, |format| &format.line_end)? {
                self.line_is_over = true;
                return Ok(self.bare(found_null));
            }
            if quote == Some(byte) {
                let next = self.next()?;
                match next {
                    Some(next) if next == byte => {
                        self.push(byte)?;
                        continue;
                    }
                    None => {
                        self.line_is_over = true;
                        return Ok(self.quoted());
                    }
                    Some(next) if self.ends(next, |format| &format.line_end)? => {
                        self.line_is_over = true;
                        return Ok(self.quoted());
                    }
                    Some(next) if self.ends(next, |format| &format.field_end)? => return Ok(self.quoted()),
                    // The string continues.
                    Some(next) => self.back.push(next),
                }
            } else if quote.is_none() && self.ends(byte, |format| &format.field_end)? {
                return Ok(self.bare(found_null));
            }
            self.push(byte)?;
            if self.has_pairs
                && byte >= 0x81
                && let Some(second) = self.next()?
            {
                self.push(second)?;
            }
        }
        self.end_of_file();
        Ok(self.bare(found_null))
    }

    /// Returns a field without enclosing quotes.
    fn bare(&self, found_null: bool) -> Field {
        let is_word = self.enclosed.is_some() && self.value == b"NULL";
        Field::Value { is_null: is_word || (found_null && self.value.len() == 1) }
    }

    fn quoted(&mut self) -> Field {
        self.value.remove(0);
        Field::Value { is_null: false }
    }

    /// Goes to the next line. Returns `None` at the end of the file, else whether fields were left.
    pub(crate) fn next_line(&mut self) -> SqlResult<Option<bool>> {
        self.at_line_start = !self.format.line_start.is_empty();
        if self.line_is_over || self.is_over {
            self.line_is_over = false;
            return Ok((!self.is_over).then_some(false));
        }
        let mut was_cut = false;
        loop {
            let Some(byte) = self.next()? else {
                self.is_over = true;
                return Ok(None);
            };
            if self.ends(byte, |format| &format.line_end)? {
                return Ok(Some(was_cut));
            }
            was_cut = true;
            if self.escaped == Some(byte) && self.next()?.is_none() {
                self.is_over = true;
                return Ok(None);
            }
        }
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 26,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that returns pieces of a given size.
    struct Pieces<'t>(&'t [u8], usize);

    impl Bytes for Pieces<'_> {
        fn fill(&mut self, buffer: &mut Vec<u8>) -> SqlResult<()> {
            let (piece, rest) = self.0.split_at(self.1.min(self.0.len()));
            *buffer = piece.to_vec();
            self.0 = rest;
            Ok(())
        }
    }

    fn lines(text: &[u8], format: &FileFormat) -> Vec<Vec<String>> {
        let read = |step| {
            let mut source = Pieces(text, step);
            let mut reader = FieldReader::new(&mut source, format, Charset::Utf8mb4, 1 << 20);
            let mut lines = Vec::new();
            loop {
                let mut line = Vec::new();
                while let Field::Value { is_null } = reader.field().expect("it reads") {
                    let text = String::from_utf8_lossy(&reader.value).into_owned();
                    line.push(if is_null { "<NULL>".to_owned() } else { text });
                }
                if !(line.is_empty() && reader.is_over()) {
                    lines.push(line);
                }
                if reader.next_line().expect("it reads").is_none() {
                    return lines;
                }
            }
        };
        let all = read(1 << 20);
        assert_eq!(all, read(1), "bytes one by one");
        all
    }

    #[test]
    fn tabs_escapes_and_null() {
        let text = b"1\tx\\ty\\\\\t\\Zq\n2\t\\N\tNULL\n\n3\ta\\\nb\tc";
        assert_eq!(
            lines(text, &FileFormat::default()),
            [&["1", "x\ty\\", "\u{1a}q"][..], &["2", "<NULL>", "NULL"], &[""], &["3", "a\nb", "c"]]
        );
    }

    #[test]
    fn quotes_are_doubled_and_need_an_end() {
        let format = FileFormat {
            field_end: b",".to_vec(),
            enclosed: b"\"".to_vec(),
            optionally: true,
            ..FileFormat::default()
        };
        let text = b"1,\"a,b\",NULL\n\"q\"\"q\",\"x\"y\",\"\"\n\"open,1\n";
        assert_eq!(
            lines(text, &format),
            [&["1", "a,b", "<NULL>"][..], &["q\"q", "x\"y", ""], &["\"open,1\n"]]
        );
    }

    #[test]
    fn long_separators_and_starts_of_lines() {
        let format = FileFormat {
            field_end: b"<>".to_vec(),
            line_start: b">>".to_vec(),
            line_end: b"\r\n".to_vec(),
            ..FileFormat::default()
        };
        let text = b"xx>>1<>a<b\rc\r\nnothing\r\n>>2<><>\r\n";
        assert_eq!(lines(text, &format), [&["1", "a<b\rc"][..], &["2", "", ""]]);
    }
}
