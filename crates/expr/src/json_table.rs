//! JSON_TABLE: rows from a document.
//!
//! # Concepts
//! A *level* is a path with columns: the path of the table itself, and each NESTED PATH in it. A level finds
//! its matches in a match of the enclosing level. Each match is one row, or, if it has nested levels, all
//! rows of these levels one after the other. In the rows of one nested level, the columns of its sibling
//! levels are NULL. If no nested level yields a row, there is one row in which the columns of all of them are
//! NULL.
//!
//! # Memory
//! The parsed document is charged to the statement until its rows are complete. Rows are passed on one by
//! one.
//!
//! # Missing
//! A column outside of a NESTED PATH is evaluated once for all rows of the nested levels, so it warns once.
//! MariaDB repeats the warnings.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cohort_types::{
    ColumnType, ErrorCode, Interrupt, SqlError, SqlResult, StoreContext, TypeKind, Value, Warning,
    WarningSink,
};

use crate::context::EvalContext;
use crate::expr::Expr;
use crate::json::{Json, complaint_of, spans, unescape};
use crate::json_path::{Path, PathError};
use crate::json_read::positions;

/// Maximum bytes of a parsed document per byte of its text: an element of `[1,1]` takes two bytes of text.
const PARSED_BYTES: usize = 32;

/// Definition of a JSON_TABLE.
#[derive(Debug)]
pub struct JsonTable {
    /// Alias in the statement.
    pub name: Arc<str>,
    pub root: JsonLevel,
    /// Number of columns of a row.
    pub width: usize,
}

/// A path with the columns for its matches.
#[derive(Debug)]
pub struct JsonLevel {
    pub path: JsonPath,
    pub columns: Vec<JsonColumn>,
    pub nested: Vec<JsonLevel>,
}

/// A column of a JSON_TABLE.
#[derive(Debug)]
pub struct JsonColumn {
    /// Position in the row.
    pub place: usize,
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub meaning: JsonMeaning,
}

/// Source of a column's value.
#[derive(Debug)]
pub enum JsonMeaning {
    /// FOR ORDINALITY: number of the match at its level.
    Ordinality,
    /// EXISTS PATH: 1 if the path has a match, otherwise 0.
    Exists(JsonPath),
    /// PATH: the value at the path.
    Value { path: JsonPath, on_empty: JsonResponse, on_error: JsonResponse },
}

/// ON EMPTY and ON ERROR: value of a column whose path has no match, or an unsuitable one.
#[derive(Debug)]
pub enum JsonResponse {
    Null,
    Error,
    Default(Expr),
}

/// A path of a JSON_TABLE.
#[derive(Debug)]
pub struct JsonPath(Path);

impl JsonPath {
    /// Parses a path. Errors 4041 and 4042.
    pub fn parse(text: &str) -> SqlResult<JsonPath> {
        Path::parse(text.as_bytes()).map(JsonPath).map_err(|error| match error {
            PathError::Ended => SqlError::json_table_path_ends(),
            PathError::Syntax(at) => SqlError::json_table_path_syntax(at + 1),
        })
    }
}

impl JsonTable {
    /// Calls `take` with each row of a document. `rows` is the number of rows before it, for warnings.
    pub fn each_row(
        &self,
        text: &[u8],
        rows: u64,
        ctx: &EvalContext<'_>,
        take: &mut dyn FnMut(&[Value]) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let bytes = text.len().saturating_mul(PARSED_BYTES);
        ctx.keep(bytes)?;
        let done = self.each_row_of(text, rows, ctx, take);
        ctx.let_go(bytes);
        done
    }

    fn each_row_of(
        &self,
        text: &[u8],
        rows: u64,
        ctx: &EvalContext<'_>,
        take: &mut dyn FnMut(&[Value]) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let document = Json::parse(text).map_err(|error| {
            let (code, message) = complaint_of("JSON_TABLE", 0, error);
            SqlError::new(code, message)
        })?;
        let written = match self.root.holds_documents() {
            true => Written::new(text, &document),
            false => Written::default(),
        };
        let row = vec![Value::Null; self.width];
        let mut walk = Walk { table: self, ctx, text, written, row, rows, take };
        walk.level(&self.root, &document).map(drop)
    }
}

impl JsonLevel {
    /// Returns true if a column needs the text of an array or object.
    fn holds_documents(&self) -> bool {
        self.columns.iter().any(|column| column.ty.kind == TypeKind::Json)
            || self.nested.iter().any(JsonLevel::holds_documents)
    }
}

/// Positions of a document's values in its text.
#[derive(Default)]
struct Written(HashMap<*const Json, Range<usize>>);

impl Written {
    fn new(text: &[u8], document: &Json) -> Written {
        Written(positions(document).into_iter().map(std::ptr::from_ref).zip(spans(text)).collect())
    }
}

/// State of the walk over one document.
struct Walk<'w> {
    table: &'w JsonTable,
    ctx: &'w EvalContext<'w>,
    text: &'w [u8],
    written: Written,
    row: Vec<Value>,
    /// Number of rows so far.
    rows: u64,
    take: &'w mut dyn FnMut(&[Value]) -> SqlResult<()>,
}

impl Walk<'_> {
    /// Passes on the rows of a level for a match of the enclosing level. Returns true if there are any.
    fn level(&mut self, level: &JsonLevel, around: &Json) -> SqlResult<bool> {
        self.ctx.check_stack()?;
        let places = level.path.0.find(around, self.ctx)?;
        for (n, place) in places.iter().enumerate() {
            self.ctx.step()?;
            for column in &level.columns {
                self.row[column.place] = self.value(column, place, n as u64 + 1)?;
            }
            let mut has_rows = false;
            for nested in &level.nested {
                has_rows |= self.level(nested, place)?;
                self.forget(nested);
            }
            if !has_rows {
                self.rows += 1;
                (self.take)(&self.row)?;
            }
        }
        Ok(!places.is_empty())
    }

    /// Sets the columns of a level to NULL.
    fn forget(&mut self, level: &JsonLevel) {
        for column in &level.columns {
            self.row[column.place] = Value::Null;
        }
        level.nested.iter().for_each(|nested| self.forget(nested));
    }

    fn value(&mut self, column: &JsonColumn, place: &Json, number: u64) -> SqlResult<Value> {
        let (path, on_empty, on_error) = match &column.meaning {
            JsonMeaning::Ordinality => return Ok(Value::Int(number as i64)),
            JsonMeaning::Exists(path) => {
                let exists = !path.0.find(place, self.ctx)?.is_empty();
                return self.store(column, Value::Int(exists.into()));
            }
            JsonMeaning::Value { path, on_empty, on_error } => (path, on_empty, on_error),
        };
        let found = path.0.find(place, self.ctx)?;
        let Some(first) = found.first() else {
            return self.respond(column, on_empty, ErrorCode::JsonTableErrorOnField);
        };
        if column.ty.kind == TypeKind::Json {
            return self.document(column, first);
        }
        let value = match first {
            Json::Array(_) | Json::Object(_) => {
                return self.respond(column, on_error, ErrorCode::JsonTableScalarExpected);
            }
            _ if found.len() > 1 => {
                return self.respond(column, on_error, ErrorCode::JsonTableMultipleMatches);
            }
            Json::Null => return Ok(Value::Null),
            Json::Bool(is_true) if column.ty.kind.is_number() => Value::Int((*is_true).into()),
            Json::Bool(is_true) => Value::text(if *is_true { "true" } else { "false" }),
            Json::Number(raw) => Value::text(String::from_utf8_lossy(raw)),
            Json::String(raw) => Value::text(String::from_utf8_lossy(&unescape(raw))),
        };
        self.store(column, value)
    }

    /// Returns the text of a value as it is in the document.
    fn document(&mut self, column: &JsonColumn, found: &Json) -> SqlResult<Value> {
        let span = self.written.0.get(&std::ptr::from_ref(found)).cloned().unwrap_or(0..0);
        let text = String::from_utf8_lossy(&self.text[span]).into_owned();
        self.store(column, Value::text(text))
    }

    fn respond(
        &mut self,
        column: &JsonColumn,
        response: &JsonResponse,
        error: ErrorCode,
    ) -> SqlResult<Value> {
        let ctx = self.ctx;
        match response {
            JsonResponse::Null => Ok(Value::Null),
            JsonResponse::Default(expr) => {
                let value = expr.eval(&[], ctx)?.into_owned();
                self.store(column, value)
            }
            JsonResponse::Error => {
                let (name, table) = (&column.name, &self.table.name);
                let text = match error {
                    ErrorCode::JsonTableScalarExpected => format!(
                        "Can't store an array or an object in the scalar column '{name}' of JSON_TABLE '{table}'."
                    ),
                    ErrorCode::JsonTableMultipleMatches => format!(
                        "Can't store multiple matches of the path in the column '{name}' of JSON_TABLE '{table}'."
                    ),
                    _ => format!("Field '{name}' can't be set for JSON_TABLE '{table}'."),
                };
                Err(SqlError::new(error, text))
            }
        }
    }

    /// Converts a value like a non-strict assignment: adjusts it, with a warning, if it does not fit.
    fn store(&self, column: &JsonColumn, value: Value) -> SqlResult<Value> {
        let store = StoreContext {
            sql_mode: self.ctx.env.sql_mode,
            strict: false,
            database: "*any*",
            table: "json_table",
            column: &column.name,
            row: self.rows + 1,
            zone: &self.ctx.env.time_zone,
            now_micros: self.ctx.env.now_micros,
        };
        column.ty.store(value, &store, &mut Warnings(self.ctx))
    }
}

struct Warnings<'w>(&'w EvalContext<'w>);

impl WarningSink for Warnings<'_> {
    fn warn(&mut self, warning: Warning) {
        self.0.push_warning(warning);
    }
}
