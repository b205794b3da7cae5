//! Finds the objects that a statement changes from its text, for the replica's filters.

use cohort_sql::ParseOptions;
use cohort_sql::ast::{Assignment, Delete, ObjectName, Statement, TableFactor, TableRef, Update};
use cohort_types::SqlMode;

/// Objects named in a statement's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementNames {
    /// Schema that the statement creates, changes or drops.
    pub schema: Option<String>,
    /// Tables that the statement changes, with their schemas if the text names them.
    pub tables: Vec<(Option<String>, String)>,
}

/// Returns the objects that a statement changes according to its text, or none if the text cannot be parsed.
pub fn names_in(sql: &[u8], mode: SqlMode) -> StatementNames {
    let mut names = StatementNames::default();
    let options = ParseOptions { mode: mode.into(), ..ParseOptions::default() };
    let Ok(parsed) = cohort_sql::parse(sql, &options) else { return names };
    let mut add = |name: &ObjectName| names.tables.push((name.db.clone(), name.name.clone()));
    match &parsed.statement {
        Statement::CreateTable(create) => add(&create.name),
        Statement::AlterTable(alter) => add(&alter.table),
        Statement::DropTable(drop) => drop.names.iter().for_each(add),
        Statement::CreateView(create) => add(&create.name),
        Statement::RenameTable(rename) => rename.renames.iter().for_each(|(from, to)| {
            add(from);
            add(to);
        }),
        Statement::Truncate(name) => add(name),
        Statement::CreateIndex(create) => add(&create.table),
        Statement::DropIndex(drop) => add(&drop.table),
        Statement::TableMaintenance(maintenance) => maintenance.names.iter().for_each(add),
        Statement::Insert(insert) => add(&insert.table),
        Statement::LoadData(load) => add(&load.table),
        Statement::Update(update) => updated(update).into_iter().for_each(add),
        Statement::Delete(delete) => deleted_from(delete).into_iter().for_each(add),
        Statement::CreateDatabase(create) => names.schema = Some(create.name.clone()),
        Statement::AlterDatabase(alter) => names.schema.clone_from(&alter.name),
        Statement::DropDatabase(drop) => names.schema = Some(drop.name.clone()),
        _ => {}
    }
    names
}

fn tables_of<'t>(tables: &'t TableRef, out: &mut Vec<&'t TableFactor>) {
    match tables {
        TableRef::Table(table) => out.push(table),
        TableRef::Derived { .. } | TableRef::Json(_) => {}
        TableRef::Join(join) => {
            tables_of(&join.left, out);
            tables_of(&join.right, out);
        }
    }
}

fn is_called(table: &TableFactor, name: &str) -> bool {
    table.alias.as_deref().unwrap_or(&table.name.name) == name
}

/// Returns the tables of a join whose columns are assigned. An unqualified column counts for every table.
fn updated(update: &Update) -> Vec<&ObjectName> {
    let mut all = Vec::new();
    tables_of(&update.tables, &mut all);
    let sets = |table: &TableFactor| {
        let is_of = |assignment: &Assignment| {
            assignment.column.table.as_deref().is_none_or(|name| is_called(table, name))
        };
        update.assignments.iter().any(is_of)
    };
    all.into_iter().filter(|table| sets(table)).map(|table| &table.name).collect()
}

fn deleted_from(delete: &Delete) -> Vec<&ObjectName> {
    let mut all = Vec::new();
    tables_of(&delete.from, &mut all);
    if delete.targets.is_empty() {
        return all.into_iter().map(|table| &table.name).collect();
    }
    let meant = |target| {
        let called = |table: &&&TableFactor| is_called(table, &ObjectName::clone(target).name);
        all.iter().find(called).map_or(target, |table| &table.name)
    };
    delete.targets.iter().map(meant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_that_change_are_named_by_every_kind_of_statement() {
        let tables = |sql: &str| {
            let names = names_in(sql.as_bytes(), SqlMode::NONE).tables.into_iter();
            let text = |(schema, table): (Option<String>, String)| match schema {
                None => table,
                Some(schema) => format!("{schema}.{table}"),
            };
            names.map(text).collect::<Vec<_>>().join(" ")
        };
        for (sql, expected) in [
            ("UPDATE t SET a = 1", "t"),
            ("UPDATE d.t x, u SET x.a = u.a", "d.t"),
            ("UPDATE t JOIN u USING (id) SET a = 1", "t u"),
            ("DELETE FROM t WHERE a = 1", "t"),
            ("DELETE x FROM d.t x JOIN u", "d.t"),
            ("DELETE FROM t, u USING t JOIN u JOIN v", "t u"),
            ("REPLACE INTO t VALUES (1)", "t"),
            ("LOAD DATA INFILE 'f' INTO TABLE d.t", "d.t"),
            ("OPTIMIZE TABLE t, u", "t u"),
            ("RENAME TABLE t TO u", "t u"),
            ("SELECT 1", ""),
            ("UPDATE \"t\" SET a = 1", ""),
        ] {
            assert_eq!(tables(sql), expected, "{sql}");
        }
        assert_eq!(names_in(b"UPDATE \"t\" SET a = 1", SqlMode::ANSI_QUOTES).tables.len(), 1);
    }
}
