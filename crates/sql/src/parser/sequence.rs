//! CREATE SEQUENCE, ALTER SEQUENCE, and sequences in expressions.

use cohort_types::SqlResult;

use super::Parser;
use crate::ast::{
    AlterSequence, CreateTable, Expr, SequenceCall, SequenceOperation, SequenceOptions, Statement,
};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses the part after CREATE [OR REPLACE] [TEMPORARY] SEQUENCE.
    pub(super) fn create_sequence(&mut self, or_replace: bool, temporary: bool) -> SqlResult<Statement> {
        let mode = self.create_mode(or_replace)?;
        let name = self.object_name()?;
        let mut sequence = SequenceOptions::default();
        while self.sequence_option(&mut sequence)? {}
        if sequence.restart.is_some() {
            return Err(self.error());
        }
        let mut options = Vec::new();
        while let Some(option) = self.table_option()? {
            options.push(option);
            self.eat(Kind::Comma);
        }
        Ok(Statement::CreateTable(Box::new(CreateTable {
            mode,
            temporary,
            name,
            like: None,
            columns: Vec::new(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            options,
            query: None,
            sequence: Some(sequence),
        })))
    }

    /// Parses the part after ALTER SEQUENCE.
    pub(super) fn alter_sequence(&mut self) -> SqlResult<Statement> {
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let name = self.object_name()?;
        self.ddl_wait()?;
        let mut options = SequenceOptions::default();
        while self.sequence_option(&mut options)? {}
        if options == SequenceOptions::default() {
            return Err(self.error());
        }
        Ok(Statement::AlterSequence(AlterSequence { if_exists, name, options }))
    }

    fn sequence_option(&mut self, options: &mut SequenceOptions) -> SqlResult<bool> {
        match () {
            () if self.eat_word("START") => options.start = Some(self.sequence_number("WITH")?),
            () if self.eat_word("INCREMENT") => options.increment = Some(self.sequence_number("BY")?),
            () if self.eat_word("MINVALUE") => options.min = Some(Some(self.sequence_number("")?)),
            () if self.eat_word("MAXVALUE") => options.max = Some(Some(self.sequence_number("")?)),
            () if self.eat_word("NOMINVALUE") => options.min = Some(None),
            () if self.eat_word("NOMAXVALUE") => options.max = Some(None),
            () if self.eat_word("NO") => match () {
                () if self.eat_word("MINVALUE") => options.min = Some(None),
                () => {
                    self.expect_word("MAXVALUE")?;
                    options.max = Some(None);
                }
            },
            () if self.eat_word("CACHE") => options.cache = Some(self.sequence_number("")?),
            () if self.eat_word("NOCACHE") => options.cache = Some(0),
            () if self.eat_word("CYCLE") => options.cycle = Some(true),
            () if self.eat_word("NOCYCLE") => options.cycle = Some(false),
            () if self.eat_word("RESTART") => {
                let has_number = self.is("WITH")
                    || matches!(self.kind(), Kind::Equal | Kind::Integer | Kind::Minus | Kind::Plus);
                let number = if has_number { Some(self.sequence_number("WITH")?) } else { None };
                options.restart = Some(number);
            }
            () => return Ok(false),
        }
        Ok(true)
    }

    /// Parses `[word | =] [-]n`. A number out of range becomes the nearest limit.
    fn sequence_number(&mut self, word: &str) -> SqlResult<i64> {
        if !self.eat(Kind::Equal) && !word.is_empty() {
            self.eat_word(word);
        }
        let is_negative = self.eat(Kind::Minus);
        if !is_negative {
            self.eat(Kind::Plus);
        }
        let token = self.token();
        if token.kind != Kind::Integer {
            return Err(self.error());
        }
        let digits = String::from_utf8_lossy(self.bytes(token)).into_owned();
        self.advance();
        let number = digits.parse::<i128>().unwrap_or(i128::MAX);
        let number = if is_negative { -number } else { number };
        Ok(number.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// Parses NEXT VALUE FOR or PREVIOUS VALUE FOR. Returns `None` if neither follows.
    pub(super) fn sequence_value(&mut self) -> SqlResult<Option<Expr>> {
        let operation = match () {
            () if self.eat_words(&["NEXT", "VALUE", "FOR"]) => SequenceOperation::Next,
            () if self.eat_words(&["PREVIOUS", "VALUE", "FOR"]) => SequenceOperation::Last,
            () => return Ok(None),
        };
        let name = self.object_name()?;
        Ok(Some(Expr::Sequence(Box::new(SequenceCall { operation, name, args: Vec::new() }))))
    }

    /// Parses the arguments of NEXTVAL, LASTVAL or SETVAL. The parser is at the parenthesis.
    pub(super) fn sequence_function(&mut self, name: &str) -> SqlResult<Expr> {
        let operation = match name {
            "nextval" => SequenceOperation::Next,
            "lastval" => SequenceOperation::Last,
            _ => SequenceOperation::Set,
        };
        self.expect(Kind::LeftParen)?;
        let name = self.object_name()?;
        let mut args = Vec::new();
        if operation == SequenceOperation::Set {
            self.expect(Kind::Comma)?;
            args = self.list(Self::expr)?;
            if args.len() > 3 {
                return Err(self.error());
            }
        }
        self.expect(Kind::RightParen)?;
        Ok(Expr::Sequence(Box::new(SequenceCall { operation, name, args })))
    }
}
