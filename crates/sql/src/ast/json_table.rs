//! JSON_TABLE.

use super::{DataType, Expr};

/// `JSON_TABLE(document, path COLUMNS (..)) alias`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub document: Expr,
    pub path: String,
    /// The columns, at least one.
    pub columns: Vec<JsonColumn>,
    pub alias: String,
}

/// An element of COLUMNS.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonColumn {
    /// `name FOR ORDINALITY`.
    Ordinality { name: String },
    /// `name type EXISTS PATH path`.
    Exists { name: String, ty: DataType, path: String },
    /// `name type PATH path [.. ON EMPTY] [.. ON ERROR]`.
    Value {
        name: String,
        ty: Box<DataType>,
        path: String,
        on_empty: Option<JsonResponse>,
        on_error: Option<JsonResponse>,
    },
    /// `NESTED PATH path COLUMNS (..)`; at least one column.
    Nested { path: String, columns: Vec<JsonColumn> },
}

/// Action for a column without a value.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonResponse {
    Null,
    Error,
    /// DEFAULT literal.
    Default(Expr),
}

impl JsonTable {
    /// Calls `see` with each expression: the document and the defaults.
    pub fn each_expr_mut<'t>(&'t mut self, see: &mut dyn FnMut(&'t mut Expr)) {
        see(&mut self.document);
        let mut open: Vec<&mut JsonColumn> = self.columns.iter_mut().collect();
        while let Some(column) = open.pop() {
            match column {
                JsonColumn::Value { on_empty, on_error, .. } => {
                    for response in [on_empty, on_error] {
                        if let Some(JsonResponse::Default(expr)) = response {
                            see(expr);
                        }
                    }
                }
                JsonColumn::Nested { columns, .. } => open.extend(columns),
                JsonColumn::Ordinality { .. } | JsonColumn::Exists { .. } => {}
            }
        }
    }
}
