//! Binds a JSON_TABLE: its document and columns.

use std::sync::Arc;

use cohort_expr::{Expr, ExprType, JsonColumn, JsonLevel, JsonMeaning, JsonPath, JsonResponse, JsonTable};
use cohort_sql::ast;
use cohort_types::{ColumnType, SqlResult, TypeKind, check_stack};

use crate::bind::{Binder, one_column};

/// A bound JSON_TABLE with its column names.
pub(crate) struct BoundJsonTable {
    pub document: Expr,
    pub table: JsonTable,
    pub names: Vec<String>,
    pub types: Vec<ExprType>,
}

/// Binds a JSON_TABLE. The binder sees the preceding tables.
pub(crate) fn bind_json_table(node: &ast::JsonTable, binder: &Binder<'_>) -> SqlResult<BoundJsonTable> {
    let document = one_column(binder.expression(&node.document)?)?;
    let mut columns = Columns { binder, names: Vec::new(), types: Vec::new() };
    let root = columns.level(&node.path, &node.columns)?;
    let Columns { names, types, .. } = columns;
    let table = JsonTable { name: node.alias.as_str().into(), root, width: names.len() };
    Ok(BoundJsonTable { document, table, names, types })
}

/// The columns so far, in the order of the text.
struct Columns<'c> {
    binder: &'c Binder<'c>,
    names: Vec<String>,
    types: Vec<ExprType>,
}

impl Columns<'_> {
    fn level(&mut self, path: &str, inside: &[ast::JsonColumn]) -> SqlResult<JsonLevel> {
        check_stack()?;
        let path = JsonPath::parse(path)?;
        let (mut columns, mut nested) = (Vec::new(), Vec::new());
        for column in inside {
            match column {
                ast::JsonColumn::Ordinality { name } => {
                    let ty = ColumnType::int(TypeKind::Int, None, false);
                    columns.push(self.column(name, ty, JsonMeaning::Ordinality));
                }
                ast::JsonColumn::Exists { name, ty, path } => {
                    let meaning = JsonMeaning::Exists(JsonPath::parse(path)?);
                    let ty = self.binder.ctx.names.declared_type(ty, name)?;
                    columns.push(self.column(name, ty, meaning));
                }
                ast::JsonColumn::Value { name, ty, path, on_empty, on_error } => {
                    let meaning = JsonMeaning::Value {
                        path: JsonPath::parse(path)?,
                        on_empty: self.response(on_empty.as_ref())?,
                        on_error: self.response(on_error.as_ref())?,
                    };
                    let ty = self.binder.ctx.names.declared_type(ty, name)?;
                    columns.push(self.column(name, ty, meaning));
                }
                ast::JsonColumn::Nested { path, columns } => nested.push(self.level(path, columns)?),
            }
        }
        Ok(JsonLevel { path, columns, nested })
    }

    fn column(&mut self, name: &str, ty: ColumnType, meaning: JsonMeaning) -> JsonColumn {
        let place = self.names.len();
        self.names.push(name.to_owned());
        self.types.push(ExprType::of_column(&ty, true));
        JsonColumn { place, name: Arc::from(name), ty, meaning }
    }

    fn response(&self, response: Option<&ast::JsonResponse>) -> SqlResult<JsonResponse> {
        Ok(match response {
            None | Some(ast::JsonResponse::Null) => JsonResponse::Null,
            Some(ast::JsonResponse::Error) => JsonResponse::Error,
            Some(ast::JsonResponse::Default(value)) => JsonResponse::Default(self.binder.expression(value)?),
        })
    }
}
