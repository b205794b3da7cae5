//! JSON_TABLE in FROM.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{Expr, JsonColumn, JsonResponse, JsonTable, TableRef, UnaryOp};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses JSON_TABLE. The parser is at the keyword, and a parenthesis follows it.
    pub(super) fn json_table(&mut self) -> SqlResult<TableRef> {
        self.advance();
        self.expect(Kind::LeftParen)?;
        let document = self.expr()?;
        self.expect(Kind::Comma)?;
        let path = self.json_path()?;
        let columns = self.json_columns()?;
        self.expect(Kind::RightParen)?;
        let Some(alias) = self.alias()? else {
            return Err(SqlError::table_function_without_alias());
        };
        Ok(TableRef::Json(Box::new(JsonTable { document, path, columns, alias })))
    }

    /// Parses a path: a text with an optional introducer.
    fn json_path(&mut self) -> SqlResult<String> {
        if self.bytes(self.token()).first() == Some(&b'_') && self.peek(1).kind == Kind::Text {
            self.advance();
        }
        self.text()
    }

    fn json_columns(&mut self) -> SqlResult<Vec<JsonColumn>> {
        self.enter(|p| {
            p.expect_word("COLUMNS")?;
            p.paren_list(Self::json_column)
        })
    }

    fn json_column(&mut self) -> SqlResult<JsonColumn> {
        if self.is("NESTED") && self.is_word_at(1, "PATH") {
            self.advance();
            self.advance();
            let path = self.json_path()?;
            return Ok(JsonColumn::Nested { path, columns: self.json_columns()? });
        }
        let name = self.name()?;
        if self.eat_words(&["FOR", "ORDINALITY"]) {
            return Ok(JsonColumn::Ordinality { name });
        }
        let ty = self.data_type()?;
        if self.eat_word("EXISTS") {
            self.expect_word("PATH")?;
            return Ok(JsonColumn::Exists { name, ty, path: self.json_path()? });
        }
        self.expect_word("PATH")?;
        let path = self.json_path()?;
        let (on_empty, on_error) = self.json_responses()?;
        Ok(JsonColumn::Value { name, ty: Box::new(ty), path, on_empty, on_error })
    }

    /// Parses ON EMPTY and ON ERROR in any order, each at most once.
    fn json_responses(&mut self) -> SqlResult<(Option<JsonResponse>, Option<JsonResponse>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while (on_empty.is_none() || on_error.is_none()) && self.is_any(&["NULL", "ERROR", "DEFAULT"]) {
            let response = match () {
                () if self.eat_word("NULL") => JsonResponse::Null,
                () if self.eat_word("ERROR") => JsonResponse::Error,
                () => {
                    self.advance();
                    JsonResponse::Default(self.json_default()?)
                }
            };
            self.expect_word("ON")?;
            let place = if self.is("EMPTY") { &mut on_empty } else { &mut on_error };
            if place.is_some() {
                return Err(self.error());
            }
            *place = Some(response);
            self.expect_any(&["EMPTY", "ERROR"])?;
        }
        Ok((on_empty, on_error))
    }

    fn json_default(&mut self) -> SqlResult<Expr> {
        let start = self.at;
        let expr = self.primary_expr()?;
        let is_literal = match &expr {
            Expr::Literal(_) => true,
            Expr::Unary { op: UnaryOp::Negate, expr } => matches!(**expr, Expr::Literal(_)),
            _ => false,
        };
        if is_literal { Ok(expr) } else { Err(self.error_at(start)) }
    }
}
