//! The context of planning one statement.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Expr, ExprType};
use cohort_sql::ast;
use cohort_types::{ErrorCode, Privilege, Privileges, SqlError, SqlResult, Value, check_stack};

use crate::Relation;
use crate::Scope;
use crate::bind::{Clause, ScopeTable, unknown_column};
use crate::block::{CommonTable, FIRST_COLUMN, Query, is_of_changed_row};
use crate::meaning::Meanings;
use crate::names::Names;

/// The origin of the values in `PlanContext::params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamSource<'p> {
    /// The literals of the text; a literal may become a parameter of the plan.
    Literals,
    /// The values bound to `?`; literals are constants.
    Placeholders,
    /// The local variables of a stored program, of these types; literals are constants. The declared types
    /// count, whatever the values.
    Variables(Variables<'p>),
}

/// The local variables that are the parameters of a statement, one for each use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variables<'p> {
    pub types: &'p [ExprType],
    /// The places of their values. Two uses of one variable have the same.
    pub places: &'p [u32],
    /// The places that no statement may assign: columns of OLD, and of NEW in an AFTER trigger.
    pub fixed: &'p [u32],
}

/// Planning input, and facts that planning collects about the statement as a whole.
pub struct PlanContext<'p> {
    /// The session, the catalog and the privileges.
    pub names: &'p dyn Names,
    /// Values of parameters; their types determine how they compare.
    pub params: &'p [Value],
    pub source: ParamSource<'p>,
    /// Ordinals of the literals whose values the plan depends on.
    pub pins: RefCell<Vec<u32>>,
    /// False if the plan depends on something else that may change: the types of user variables.
    pub reusable: Cell<bool>,
    /// False while the query of a view is bound, because its literals are not those of the statement.
    pub(crate) lifts_literals: Cell<bool>,
    /// Records the meanings of names, if the caller needs them.
    pub meanings: RefCell<Option<Meanings>>,
    /// Number of the next column of a table, query or aggregate.
    next_column: Cell<usize>,
    /// Number of the next SELECT in EXPLAIN.
    next_block: Cell<u32>,
    /// Number of the next part of the statement's plan.
    next_part: Cell<u32>,
    /// Subqueries in expressions, by number.
    pub subqueries: RefCell<Vec<Query>>,
    /// Referenced common table expressions, by number.
    pub common: RefCell<Vec<CommonTable>>,
    /// An expression calls a function that runs statements.
    pub calls_back: Cell<bool>,
}

impl<'p> PlanContext<'p> {
    /// Creates the context of a statement.
    pub fn new(names: &'p dyn Names, params: &'p [Value], source: ParamSource<'p>) -> PlanContext<'p> {
        PlanContext {
            names,
            params,
            source,
            pins: RefCell::default(),
            reusable: Cell::new(true),
            lifts_literals: Cell::new(true),
            meanings: RefCell::default(),
            next_column: Cell::new(FIRST_COLUMN),
            next_block: Cell::new(1),
            next_part: Cell::new(0),
            subqueries: RefCell::default(),
            common: RefCell::default(),
            calls_back: Cell::new(false),
        }
    }

    /// Creates the context of a statement whose parameters are local variables of these types.
    pub fn with_variables(
        names: &'p dyn Names,
        params: &'p [Value],
        variables: Variables<'p>,
    ) -> PlanContext<'p> {
        PlanContext::new(names, params, ParamSource::Variables(variables))
    }

    /// Returns the declared type of a parameter, if it is a local variable.
    pub(crate) fn variable_type(&self, index: usize) -> Option<&ExprType> {
        match self.source {
            ParamSource::Variables(variables) => variables.types.get(index),
            ParamSource::Literals | ParamSource::Placeholders => None,
        }
    }

    /// Allocates `count` column numbers, unique in the statement.
    pub fn new_columns(&self, count: usize) -> usize {
        let first = self.next_column.get();
        debug_assert!(!is_of_changed_row(first), "numbers wrapped around");
        self.next_column.set(first + count);
        first
    }

    /// Allocates the number of the next SELECT.
    pub(crate) fn new_block(&self) -> u32 {
        self.next_block.replace(self.next_block.get() + 1)
    }

    /// Allocates the numbers of parts of the statement's plan, whose work is measured under them.
    pub fn new_parts(&self, count: u32) -> u32 {
        self.next_part.replace(self.next_part.get() + count)
    }

    /// Returns the number of parts of the statement's plan.
    pub fn parts(&self) -> u32 {
        self.next_part.get()
    }

    /// Must be called by recursive functions. Fails if the stack is nearly exhausted, or if the statement was
    /// killed or timed out.
    pub(crate) fn enter(&self) -> SqlResult<()> {
        check_stack()?;
        self.names.check_interrupt()
    }

    /// Returns the schema of a name. Error 1046 if it has none and there is no current database.
    pub fn schema_of<'n>(&'n self, name: &'n ast::ObjectName) -> SqlResult<&'n str> {
        match (&name.db, self.names.current_schema()) {
            (Some(db), _) => Ok(db),
            (None, Some(current)) => Ok(current),
            (None, None) => Err(SqlError::no_database_selected()),
        }
    }

    /// Returns the base table of a name, after checking the required privileges. Errors: 1046 without a
    /// current database, 1142 without the privileges, 1146 if it does not exist.
    pub fn base_table(&self, name: &ast::ObjectName, wanted: Privileges) -> SqlResult<Arc<Table>> {
        self.names.base_table(self.schema_of(name)?, &name.name, wanted)
    }

    /// Checks the privilege on the column of a slot. Error 1143.
    pub fn use_column(&self, scope: &Scope, slot: usize, how: Privilege) -> SqlResult<()> {
        self.use_named(&scope.tables[scope.table_of(slot)], &scope.slot(slot).name, how)
    }

    fn use_named(&self, table: &ScopeTable, column: &str, how: Privilege) -> SqlResult<()> {
        if let Some(view) = &table.view {
            return self.names.use_view_column(view, column, how);
        }
        match &table.relation {
            Relation::Base(base) => self.names.use_column(base, column, how),
            Relation::View(view) => self.names.use_view_column(view, column, how),
            Relation::Virtual(found) => self.names.use_virtual_column(&**found, column, how),
            Relation::Derived => Ok(()),
        }
    }

    /// Returns the slot of a column that the statement uses with a privilege. Error 1054 or 1052, which names
    /// the clause. Error 1143 if there is no such column in a table of which the account may not use all
    /// columns, as for a column that it may not use: errors do not show which columns exist.
    pub fn column(
        &self,
        scope: &Scope,
        name: &ast::ColumnRef,
        clause: Clause,
        how: Privilege,
    ) -> SqlResult<usize> {
        if let Some(slot) = scope.find(name, clause)? {
            return Ok(slot);
        }
        self.deny_unknown(scope, name, how)?;
        Err(unknown_column(name, clause))
    }

    /// Returns error 1143 for a column that no table has, if the account may not use all columns of a table
    /// in which it could be.
    pub(crate) fn deny_unknown(&self, scope: &Scope, name: &ast::ColumnRef, how: Privilege) -> SqlResult<()> {
        scope.tables_named(name).try_for_each(|table| self.use_named(table, &name.name, how))
    }

    /// Checks the privilege on a column that the statement uses without naming it. Error 1142 if it is
    /// missing.
    pub fn use_unnamed(&self, scope: &Scope, slot: usize, how: Privilege) -> SqlResult<()> {
        let whole = |error: SqlError| match &scope.tables[scope.table_of(slot)].relation {
            Relation::Base(base) if error.code == ErrorCode::ColumnaccessDenied => {
                self.names.table_access_denied(how.name(), &base.name.schema, &base.name.table)
            }
            Relation::View(view) if error.code == ErrorCode::ColumnaccessDenied => {
                self.names.table_access_denied(how.name(), &view.name.schema, &view.name.table)
            }
            Relation::Virtual(found) if error.code == ErrorCode::ColumnaccessDenied => {
                self.names.table_access_denied(how.name(), found.schema(), found.name())
            }
            _ => error,
        };
        self.use_column(scope, slot, how).map_err(whole)
    }

    /// Records the meaning of a name, if requested.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Meanings)) {
        if let Some(meanings) = &mut *self.meanings.borrow_mut() {
            note(meanings);
        }
    }

    /// Returns a reference to the column of a slot, after checking the privilege to read it. Error 1143.
    pub fn read_column(&self, scope: &Scope, slot: usize) -> SqlResult<Expr> {
        self.use_read(scope, slot)?;
        Ok(scope.column_expr(slot))
    }

    /// Checks the privilege to read the column of a slot, or its metadata. Error 1143.
    pub(crate) fn use_read(&self, scope: &Scope, slot: usize) -> SqlResult<()> {
        scope.reading.privilege().map_or(Ok(()), |how| self.use_column(scope, slot, how))
    }
}
