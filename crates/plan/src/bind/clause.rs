//! Clauses of statements, and the names that expressions in them may use besides columns.

use cohort_expr::Expr;
use cohort_sql::ast;
use cohort_types::SqlResult;

/// A clause of a statement, as error messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    Select,
    Where,
    On,
    GroupBy,
    Having,
    OrderBy,
    InsertInto,
    /// VALUES of INSERT.
    Values,
    /// ON DUPLICATE KEY UPDATE.
    Update,
    Set,
    Returning,
    /// The document of JSON_TABLE.
    JsonTable,
}

impl Clause {
    /// Returns the clause as MariaDB spells it.
    pub fn text(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::On => "ON",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::InsertInto => "INSERT INTO",
            Clause::Values => "VALUES",
            Clause::Update => "UPDATE",
            Clause::Set => "SET",
            Clause::Returning => "RETURNING",
            Clause::JsonTable => "JSON_TABLE",
        }
    }
}

/// Lookup of names other than columns of the scope's tables.
pub trait Aliases {
    /// Returns the select item that the name refers to. `order` says whether the tables were searched before.
    fn find(&self, name: &ast::ColumnRef, order: AliasOrder) -> SqlResult<Option<Expr>>;

    /// Returns true if a subquery may name a column of the tables outside of aggregates.
    fn admits(&self, _column: &Expr) -> bool {
        true
    }
}

/// Order of the alias lookup and the search in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasOrder {
    BeforeTables,
    AfterTables,
}
