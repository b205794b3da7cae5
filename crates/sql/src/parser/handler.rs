//! HANDLER.

use cohort_types::SqlResult;

use super::Parser;
use crate::ast::{Handler, HandlerAction, HandlerRead, HandlerTo, KeyComparison, Statement};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn handler(&mut self) -> SqlResult<Statement> {
        self.advance();
        let name = self.object_name()?;
        let action = match () {
            () if self.eat_word("OPEN") => {
                let has_alias = self.eat_word("AS") || !self.at_end();
                HandlerAction::Open { alias: if has_alias { Some(self.name()?) } else { None } }
            }
            () if self.eat_word("CLOSE") => HandlerAction::Close,
            () => {
                self.expect_word("READ")?;
                HandlerAction::Read(Box::new(self.handler_read()?))
            }
        };
        Ok(Statement::Handler(Handler { name, action }))
    }

    fn handler_read(&mut self) -> SqlResult<HandlerRead> {
        let of_rows = match () {
            () if self.eat_word("FIRST") => Some(HandlerTo::First),
            () if self.eat_word("NEXT") => Some(HandlerTo::Next),
            () => None,
        };
        let (index, to) = match of_rows {
            Some(to) => (None, to),
            None => {
                let index = self.index_name()?;
                (Some(index), self.handler_to()?)
            }
        };
        let filter = if self.eat_word("WHERE") { Some(self.expr()?) } else { None };
        Ok(HandlerRead { index, to, filter, limit: self.limit()? })
    }

    fn handler_to(&mut self) -> SqlResult<HandlerTo> {
        match () {
            () if self.eat_word("FIRST") => return Ok(HandlerTo::First),
            () if self.eat_word("NEXT") => return Ok(HandlerTo::Next),
            () if self.eat_word("PREV") => return Ok(HandlerTo::Prev),
            () if self.eat_word("LAST") => return Ok(HandlerTo::Last),
            () => {}
        }
        let comparison = match self.kind() {
            Kind::Equal => KeyComparison::Equal,
            Kind::GreaterEqual => KeyComparison::AtLeast,
            Kind::Greater => KeyComparison::Above,
            Kind::LessEqual => KeyComparison::AtMost,
            Kind::Less => KeyComparison::Below,
            _ => return Err(self.error()),
        };
        self.advance();
        self.expect(Kind::LeftParen)?;
        let values = self.list(Self::expr)?;
        self.expect(Kind::RightParen)?;
        Ok(HandlerTo::Key(comparison, values))
    }
}
