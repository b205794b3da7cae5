//! COM_FIELD_LIST: lists the columns of a table or view with their defaults.

use cohort_catalog::{Column, DefaultValue};
use cohort_config::VarId;
use cohort_plan::ParamSource;
use cohort_protocol::{ColumnFlags, ListedColumn};
use cohort_sql::ast::{self, Statement};
use cohort_types::{Collation, SqlResult, Value};

use crate::session::Session;

impl Session {
    /// Lists the columns of a table or view of the current database whose names match the LIKE pattern.
    pub fn field_list(&mut self, table: &str, wildcard: &str) -> SqlResult<Vec<ListedColumn>> {
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Field List", format!("{table} {wildcard}").as_bytes());
        }
        let name = ast::ObjectName { db: None, name: table.to_owned() };
        let described = Statement::Describe { table: name.clone(), column: None };
        cohort_session::access::check_statement(&self.state, &described)?;
        let columns = match self.describe_table(&name) {
            Err(error) if error.is_no_such_table() => {
                let table =
                    ast::TableFactor { name, alias: None, index_hints: Vec::new(), partitions: Vec::new() };
                let select = ast::Select {
                    from: Some(ast::TableRef::Table(Box::new(table))),
                    ..ast::Select::of(vec![ast::SelectItem::Wildcard])
                };
                let query = ast::Query::of(ast::QueryBody::Select(Box::new(select)));
                let statement = Statement::Query(Box::new(query));
                self.describe(&statement, &[], ParamSource::Placeholders)?.columns().to_vec()
            }
            described => described?,
        };
        let catalog = self.state.db.catalog();
        let collation = Collation::UTF8MB4_GENERAL_CI;
        let wanted = |name: &str| {
            wildcard.is_empty() || collation.like(name.as_bytes(), wildcard.as_bytes(), Some('\\'))
        };
        let mut listed = Vec::new();
        for mut meta in columns.into_iter().filter(|column| wanted(&column.name)) {
            let temporary = self.state.temporary.find(&meta.schema, &meta.org_table);
            let base = temporary.as_ref().or_else(|| catalog.table(&meta.schema, &meta.org_table));
            let column = base.and_then(|table| table.columns.iter().find(|c| c.name == meta.org_name));
            let default = match column {
                Some(column) => default_text(column),
                None if meta.flags.has(ColumnFlags::NOT_NULL) => Some(Vec::new()),
                None => None,
            };
            // The command reports a view's columns as columns of the view, not of its base tables.
            (meta.org_table, meta.org_name) = (meta.table.clone(), meta.name.clone());
            listed.push(ListedColumn { meta, default });
        }
        Ok(listed)
    }
}

/// Returns the default as text, `None` for NULL. The default of a BLOB or TEXT column is returned as an empty
/// text.
fn default_text(column: &Column) -> Option<Vec<u8>> {
    let value = match &column.default {
        DefaultValue::Value(value) => value.clone(),
        _ if column.nullable => Value::Null,
        _ => column.ty.implicit_default(),
    };
    let mut text = Vec::new();
    match &value {
        Value::Null => return None,
        _ if column.ty.kind.is_blob() => {}
        Value::Bit { bits, width } => {
            text.extend_from_slice(&bits.to_be_bytes()[8 - usize::from(width.div_ceil(8))..]);
        }
        value => match value.as_bytes() {
            Some(bytes) => text.extend_from_slice(bytes),
            None => value.write_text(column.ty.decimals, &mut text),
        },
    }
    Some(text)
}
