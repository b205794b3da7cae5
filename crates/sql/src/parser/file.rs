//! SELECT ... INTO OUTFILE and DUMPFILE, LOAD DATA.

use cohort_types::SqlResult;

use super::Parser;
use crate::ast::{FileFormat, IntoFile, LoadData, LoadTarget, OnDuplicate, Statement};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses the part after INTO, which must be OUTFILE or DUMPFILE.
    pub(super) fn read_into_file(&mut self) -> SqlResult<IntoFile> {
        if self.eat_word("DUMPFILE") {
            return Ok(IntoFile::Dumpfile { path: self.text()? });
        }
        self.expect_word("OUTFILE")?;
        let path = self.text()?;
        let charset = self.file_charset()?;
        Ok(IntoFile::Outfile { path, charset, format: self.file_format()? })
    }

    fn file_charset(&mut self) -> SqlResult<Option<String>> {
        if self.eat_words(&["CHARACTER", "SET"]) || self.eat_word("CHARSET") {
            if self.eat_word("BINARY") {
                return Ok(Some("binary".to_owned()));
            }
            return self.name_or_text().map(Some);
        }
        Ok(None)
    }

    fn file_format(&mut self) -> SqlResult<FileFormat> {
        let mut format = FileFormat::default();
        if self.eat_any(&["FIELDS", "COLUMNS"]) {
            let start = self.at;
            loop {
                match () {
                    () if self.eat_words(&["TERMINATED", "BY"]) => format.field_end = self.separator()?,
                    () if self.eat_words(&["OPTIONALLY", "ENCLOSED", "BY"]) => {
                        (format.enclosed, format.optionally) = (self.separator()?, true);
                    }
                    () if self.eat_words(&["ENCLOSED", "BY"]) => format.enclosed = self.separator()?,
                    () if self.eat_words(&["ESCAPED", "BY"]) => format.escaped = self.separator()?,
                    () => break,
                }
            }
            if self.at == start {
                return Err(self.error());
            }
        }
        if self.eat_word("LINES") {
            let start = self.at;
            loop {
                match () {
                    () if self.eat_words(&["STARTING", "BY"]) => format.line_start = self.separator()?,
                    () if self.eat_words(&["TERMINATED", "BY"]) => format.line_end = self.separator()?,
                    () => break,
                }
            }
            if self.at == start {
                return Err(self.error());
            }
        }
        Ok(format)
    }

    /// Parses a string, or its bytes in hexadecimal.
    fn separator(&mut self) -> SqlResult<Vec<u8>> {
        if self.kind() != Kind::Hex {
            return self.text_bytes();
        }
        let token = self.advance();
        let text = String::from_utf8_lossy(self.bytes(token)).into_owned();
        let digits = text.get(2..).unwrap_or_default().trim_end_matches('\'');
        let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
        let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|t| u8::from_str_radix(t, 16).ok());
        digits.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>().ok_or_else(|| self.error())
    }

    pub(super) fn load(&mut self) -> SqlResult<Statement> {
        self.advance();
        if self.is("XML") || self.is("INDEX") {
            return Err(self.unsupported("LOAD XML and LOAD INDEX"));
        }
        self.expect_word("DATA")?;
        self.eat_any(&["LOW_PRIORITY", "CONCURRENT"]);
        let local = self.eat_word("LOCAL");
        self.expect_word("INFILE")?;
        let path = self.text()?;
        let on_duplicate = match () {
            () if self.eat_word("REPLACE") => OnDuplicate::Replace,
            () if self.eat_word("IGNORE") => OnDuplicate::Ignore,
            () => OnDuplicate::Error,
        };
        self.expect_words(&["INTO", "TABLE"])?;
        let table = self.object_name()?;
        let partitions = if self.eat_word("PARTITION") { self.paren_list(Self::name)? } else { Vec::new() };
        let charset = self.file_charset()?;
        let format = self.file_format()?;
        let mut skipped = 0;
        if self.eat_word("IGNORE") {
            skipped = self.number()?;
            self.expect_any(&["LINES", "ROWS"])?;
        }
        let mut targets = Vec::new();
        if self.eat(Kind::LeftParen) && !self.eat(Kind::RightParen) {
            targets = self.list(Self::load_target)?;
            self.expect(Kind::RightParen)?;
        }
        let assignments = if self.eat_word("SET") { self.list(Self::assignment)? } else { Vec::new() };
        Ok(Statement::LoadData(Box::new(LoadData {
            local,
            path,
            on_duplicate,
            table,
            partitions,
            charset,
            format,
            skipped,
            targets,
            assignments,
        })))
    }

    fn load_target(&mut self) -> SqlResult<LoadTarget> {
        if self.is_name_at(0) {
            return Ok(LoadTarget::Column(self.column_ref()?));
        }
        self.user_variable().map(LoadTarget::Variable)
    }
}
