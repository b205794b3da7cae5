//! [`Scope`]: the tables that names may refer to.

use std::sync::Arc;

use cohort_catalog::{Table, View};
use cohort_expr::{Expr, ExprType};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlResult};

use crate::bind::Clause;
use crate::names::VirtualDefinition;

/// The source of a table's rows.
#[derive(Clone)]
pub enum Relation {
    Base(Arc<Table>),
    /// A virtual table, computed by the server.
    Virtual(Arc<dyn VirtualDefinition>),
    View(Arc<View>),
    /// A query in FROM, or a common table expression.
    Derived,
}

/// A column of a table in scope.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    pub name: Arc<str>,
    pub ty: ExprType,
    /// As shown in messages: `` `db`.`t`.`a` ``.
    pub full_name: Arc<str>,
    /// Found only if qualified with its table's name: merged into another column by USING, or INVISIBLE.
    pub hidden: bool,
    /// Excluded from `*`.
    pub invisible: bool,
}

/// A table in scope.
#[derive(Clone)]
pub struct ScopeTable {
    pub relation: Relation,
    /// Schema of the table; `None` for derived tables.
    pub schema: Option<Arc<str>>,
    /// Alias, or else the name.
    pub name: Arc<str>,
    pub columns: Vec<ScopeColumn>,
    /// Slot of the first column.
    pub first_slot: usize,
    /// The view through which the statement names this base table.
    pub view: Option<Arc<View>>,
    /// For a merged view or derived table: the origins of its columns.
    pub merged: Option<Arc<[MergedColumn]>>,
}

/// A column of a view or derived table that is merged into the outer query.
pub struct MergedColumn {
    pub meta: ColumnMeta,
    /// The base table column that it is, preceded by the number of that table's first column.
    pub base: Option<(usize, Arc<Table>, usize)>,
}

/// The privilege required on the columns that a statement reads in a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// SELECT.
    #[default]
    Stored,
    /// INSERT, because they are columns of the new row.
    NewRow,
    /// None, because the table's own expressions read them, whichever account writes the row.
    OfTable,
}

impl Reading {
    /// Returns the privilege.
    pub(crate) fn privilege(self) -> Option<Privilege> {
        match self {
            Reading::Stored => Some(Privilege::Select),
            Reading::NewRow => Some(Privilege::Insert),
            Reading::OfTable => None,
        }
    }
}

/// The tables in scope, in the order of FROM.
#[derive(Clone, Default)]
pub struct Scope {
    pub tables: Vec<ScopeTable>,
    /// Slots of `*`: those of each table in turn, except that USING puts the common columns first, once each.
    pub star: Vec<usize>,
    pub reading: Reading,
}

impl ScopeTable {
    /// Creates the entry of a base table under its alias or name.
    pub fn base(table: Arc<Table>, alias: Option<&str>, first_slot: usize) -> ScopeTable {
        let name: Arc<str> = alias.unwrap_or(&table.name.table).into();
        let schema: Arc<str> = table.name.schema.as_str().into();
        let columns = table
            .columns
            .iter()
            .map(|c| ScopeColumn {
                name: c.name.as_str().into(),
                ty: ExprType::of_column(&c.ty, c.nullable).with_documents(c.holds_documents()),
                full_name: format!("`{schema}`.`{name}`.`{}`", c.name).into(),
                hidden: false,
                invisible: c.invisible,
            })
            .collect();
        ScopeTable {
            relation: Relation::Base(table),
            schema: Some(schema),
            name,
            columns,
            first_slot,
            view: None,
            merged: None,
        }
    }

    fn matches(&self, db: Option<&str>, table: Option<&str>) -> bool {
        let table_fits = table.is_none_or(|t| *t == *self.name || self.is_information_schema_name(t));
        table_fits && db.is_none_or(|d| self.schema.as_deref().is_some_and(|s| s.eq_ignore_ascii_case(d)))
    }

    fn is_information_schema_name(&self, name: &str) -> bool {
        matches!(self.relation, Relation::Virtual(_)) && self.name.eq_ignore_ascii_case(name)
    }
}

impl Scope {
    /// Creates a scope of one base table.
    pub fn of_table(table: Arc<Table>, alias: Option<&str>) -> Scope {
        let mut scope = Scope::default();
        scope.push(ScopeTable::base(table, alias, 0));
        scope
    }

    /// Creates the scope of a table's own expressions, for rows that begin at a slot.
    pub fn of_expressions(table: Arc<Table>, first_slot: usize) -> Scope {
        let mut scope = Scope { reading: Reading::OfTable, ..Scope::default() };
        scope.push(ScopeTable::base(table, None, first_slot));
        scope
    }

    /// Adds a table, whose first slot is the scope's width.
    pub fn push(&mut self, table: ScopeTable) {
        debug_assert!(table.first_slot >= self.width(), "tables of a scope are found by their first slots");
        debug_assert!(
            table.merged.as_ref().is_none_or(|merged| merged.len() == table.columns.len()),
            "a merged table has an origin for each column"
        );
        self.star.extend(table.visible_slots());
        self.tables.push(table);
    }

    /// Returns the number of slots of all tables.
    pub fn width(&self) -> usize {
        self.tables.last().map_or(0, |t| t.first_slot + t.columns.len())
    }

    /// Returns the column of a slot.
    pub fn slot(&self, slot: usize) -> &ScopeColumn {
        let table = self.table_of(slot);
        let table = &self.tables[table];
        debug_assert!(slot - table.first_slot < table.columns.len(), "slot {slot} belongs to no table");
        &table.columns[slot - table.first_slot]
    }

    /// Returns true if a column belongs to one of its tables.
    pub fn holds(&self, slot: usize) -> bool {
        self.tables.iter().any(|t| (t.first_slot..t.first_slot + t.columns.len()).contains(&slot))
    }

    /// Returns the position of the table that a slot belongs to.
    pub fn table_of(&self, slot: usize) -> usize {
        debug_assert!(self.holds(slot), "slot {slot} belongs to no table in scope");
        self.tables.partition_point(|t| t.first_slot <= slot) - 1
    }

    /// Returns a reference to the column of a slot.
    pub fn column_expr(&self, slot: usize) -> Expr {
        let column = self.slot(slot);
        Expr::column(slot, column.ty.clone(), column.full_name.clone())
    }

    /// Returns true if a name may refer to the column of a slot.
    pub fn is_named(&self, slot: usize, name: &ast::ColumnRef) -> bool {
        let table = &self.tables[self.table_of(slot)];
        table.matches(name.db.as_deref(), name.table.as_deref())
            && same_name(&self.slot(slot).name, &name.name)
    }

    /// Returns the slot of a column if exactly one table has it. Error 1052 if several have.
    pub fn find(&self, name: &ast::ColumnRef, clause: Clause) -> SqlResult<Option<usize>> {
        let mut found = None;
        for table in self.tables_named(name) {
            for (n, column) in table.columns.iter().enumerate() {
                if !same_name(&column.name, &name.name) || (column.hidden && name.table.is_none()) {
                    continue;
                }
                debug_assert!(found != Some(table.first_slot + n), "a table is in scope twice");
                if found.replace(table.first_slot + n).is_some() {
                    return Err(ambiguous(name, clause));
                }
            }
        }
        Ok(found.or_else(|| self.row_id(name)))
    }

    /// Returns the tables in which a column of this name could be.
    pub(crate) fn tables_named(&self, name: &ast::ColumnRef) -> impl Iterator<Item = &ScopeTable> {
        self.tables.iter().filter(|table| table.matches(name.db.as_deref(), name.table.as_deref()))
    }

    /// Returns the slot of `_rowid`: the column of the table's first unique key, if that key is a single
    /// integer column. Without a table name, `_rowid` requires that the scope has only one table.
    fn row_id(&self, name: &ast::ColumnRef) -> Option<usize> {
        let is_asked =
            name.name.eq_ignore_ascii_case("_rowid") && (name.table.is_some() || self.tables.len() == 1);
        let mut tables = self.tables_named(name);
        let table = is_asked.then(|| tables.next()).flatten()?;
        let Relation::Base(base) = &table.relation else { return None };
        Some(table.first_slot + base.row_id_column()?)
    }

    /// Returns the slot of a column, whatever the account may do with it. Error 1054 or 1052, which names the
    /// clause.
    pub fn column(&self, name: &ast::ColumnRef, clause: Clause) -> SqlResult<usize> {
        self.find(name, clause)?.ok_or_else(|| unknown_column(name, clause))
    }

    /// Returns the slots of `*` that belong to some of the tables, given by position.
    pub fn star_of(&self, tables: &[usize]) -> Vec<usize> {
        self.star.iter().copied().filter(|s| tables.contains(&self.table_of(*s))).collect()
    }

    /// Returns the slots of `t.*`. Error 1051 if there is no such table.
    pub fn table_star_slots(
        &self,
        name: &ast::ObjectName,
        current_schema: Option<&str>,
    ) -> SqlResult<Vec<usize>> {
        let table = self.tables.iter().find(|t| t.matches(name.db.as_deref(), Some(&name.name)));
        table.map(|t| t.visible_slots().collect()).ok_or_else(|| {
            let schema = name.db.as_deref().or(current_schema);
            let prefix = schema.map(|s| format!("{s}.")).unwrap_or_default();
            SqlError::unknown_table(&format!("{}{}", prefix, name.name))
        })
    }
}

impl ScopeTable {
    fn visible_slots(&self) -> impl Iterator<Item = usize> + '_ {
        let visible = self.columns.iter().enumerate().filter(|(_, c)| !c.invisible);
        visible.map(|(n, _)| self.first_slot + n)
    }
}

/// Returns true if two column names are equal.
pub fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// Returns `db.table.column` as written.
pub fn column_text(name: &ast::ColumnRef) -> String {
    let parts = [name.db.as_deref(), name.table.as_deref(), Some(name.name.as_str())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// Returns error 1054.
pub fn unknown_column(name: &ast::ColumnRef, clause: Clause) -> SqlError {
    SqlError::unknown_column(&column_text(name), clause.text())
}

/// Returns error 1052.
pub fn ambiguous(name: &ast::ColumnRef, clause: Clause) -> SqlError {
    SqlError::ambiguous_column(&column_text(name), clause.text())
}
