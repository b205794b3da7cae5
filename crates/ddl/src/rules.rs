//! Expressions in a table's description: GENERATED ALWAYS AS, CHECK, DEFAULT. They are stored as text in
//! MariaDB's format, and are parsed again for each plan of a statement that writes the table.
//!
//! # Missing
//! VIRTUAL columns are stored in rows like STORED ones, so expressions that depend on the session or the time
//! are refused for them.

use std::sync::Arc;

use cohort_catalog::{Column, DefaultValue, Table};
use cohort_expr::{StoredIn, mode_dependence, stored_in};
use cohort_sql::ast::{self, DeclaredKind, Expr};
use cohort_sql::print::Style;
use cohort_types::{ErrorCode, SqlError, SqlResult, TypeKind, Warning};

use cohort_dml::{RowRules, readers_of};
use cohort_plan::{Binder, ParamSource, PlanContext, Scope, same_name};
use cohort_session::{SessionNames, SessionState, StatementContext};

/// The clause that contains an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    Check,
    Generated { stored: bool },
    Default,
}

impl Clause {
    fn text(self) -> &'static str {
        match self {
            Clause::Check => "CHECK",
            Clause::Generated { .. } => "GENERATED ALWAYS AS",
            Clause::Default => "DEFAULT",
        }
    }
}

/// Returns whether the result of a function that is not allowed in indexes really differs between sessions. A
/// format may contain no names of months and days.
fn differs_by_session(name: &str, args: &[Expr]) -> bool {
    let format = || match args.get(1) {
        Some(Expr::Literal(literal)) => Some(literal.value.to_text()),
        _ => None,
    };
    match name {
        "natural_sort_key" => false,
        "date_format" if args.len() == 2 => {
            format().is_none_or(|format| ["%W", "%M", "%a", "%b"].iter().any(|name| format.contains(name)))
        }
        "to_char" => args.len() > 1 && format().is_none_or(|format| contains_time_fields(&format)),
        _ => true,
    }
}

/// Returns whether a TO_CHAR format contains MONTH, MON, DAY or DY.
fn contains_time_fields(format: &str) -> bool {
    let format = format.to_ascii_uppercase();
    ["MON", "DAY", "DY"].iter().any(|name| format.contains(name))
}

/// Returns whether a function that runs statements has this name.
fn runs_statements(session: &SessionState, name: &str) -> bool {
    let functions = session.db.functions.get().filter(|_| !cohort_expr::is_native(name));
    let schema = session.current_schema.as_deref();
    functions.zip(schema).is_some_and(|(functions, schema)| {
        let found = functions.find((&session.db.catalog(), session), (schema, name), 0, None);
        !matches!(found, Ok(None))
    })
}

/// Returns the text to store for an expression of `column`, or of the table if `column` is empty. Errors 1901
/// and 1970 for parts that the clause does not allow.
pub(super) fn text_of(
    session: &SessionState,
    clause: Clause,
    column: &str,
    expr: &Expr,
) -> SqlResult<String> {
    let connection = session.settings.env.collation_connection.charset().name();
    let refusal = |text: &str| match clause {
        Clause::Generated { stored: false } => {
            SqlError::not_supported("VIRTUAL columns that depend on the session or the time")
        }
        _ => SqlError::not_allowed_in_clause(text, clause.text(), column),
    };
    let mut expr = expr.clone();
    let mut refused = None;
    expr.each_part(&mut |part| match part {
        Expr::Column(name) => (name.db, name.table) = (None, None),
        Expr::Sequence(_) if clause != Clause::Default => {
            refused = Some(refusal(&format!("{}()", cohort_sql::print::called(part))));
        }
        // The text is parsed later with another current database.
        Expr::Sequence(call) if call.name.db.is_none() => {
            call.name.db = session.current_schema.as_deref().map(str::to_owned);
        }
        // The text is parsed later under another connection character set.
        Expr::Cast { to, .. }
            if matches!(to.kind, DeclaredKind::Column(TypeKind::Char | TypeKind::VarChar))
                && to.charset.is_none() =>
        {
            to.charset = Some(connection.to_owned());
        }
        Expr::Subquery(_)
        | Expr::Exists(_)
        | Expr::InQuery { .. }
        | Expr::Quantified { .. }
        | Expr::Param(_)
        | Expr::Default(_)
        | Expr::Values(_) => refused = Some(SqlError::no_subqueries_in(clause.text())),
        Expr::Aggregate(_) | Expr::Window(_) => {
            let call = format!("{}()", cohort_sql::print::called(part));
            refused = Some(SqlError::not_allowed_in_clause(&call, clause.text(), column));
        }
        Expr::Match { .. } => {
            let what = "match ... against()";
            refused = Some(SqlError::not_allowed_in_clause(what, clause.text(), column));
        }
        Expr::Function { name, args }
            if match stored_in(name, args.len()) {
                StoredIn::Nowhere => true,
                StoredIn::OnlyDefault => clause != Clause::Default,
                _ => false,
            } =>
        {
            refused = Some(SqlError::not_allowed_in_clause(&format!("{name}()"), clause.text(), column));
        }
        Expr::Function { name, .. } if runs_statements(session, name) => {
            refused = Some(SqlError::not_allowed_in_clause(&format!("`{name}`()"), clause.text(), column));
        }
        Expr::StoredFunction { db, name, .. } => {
            let schema = db.as_ref().map_or(String::new(), |db| format!("`{db}`."));
            let call = format!("{schema}`{name}`()");
            refused = Some(SqlError::not_allowed_in_clause(&call, clause.text(), column));
        }
        // A default is computed for every new row, so it may vary.
        _ if clause == Clause::Default => {}
        Expr::UserVariable(_) | Expr::SystemVariable { .. } | Expr::Assign { .. } => {
            refused = Some(refusal(&cohort_sql::print::expr(part)));
        }
        Expr::Function { name, args } => {
            let is_refused = match stored_in(name, args.len()) {
                StoredIn::Anywhere => false,
                // The stored value of a VIRTUAL column is the one that the writer computes.
                StoredIn::NotIndexed if clause == (Clause::Generated { stored: false }) => {
                    differs_by_session(name, args)
                }
                _ => true,
            };
            if is_refused {
                let text = if name == "now" { "current_timestamp" } else { name };
                refused = Some(refusal(&format!("{text}()")));
            }
        }
        _ => {}
    });
    match refused {
        Some(error) => Err(error),
        // String literals are parsed later in the default character set.
        None => Ok(cohort_sql::print::expr_in(&expr, Style::of(session.settings.env.collation_connection))),
    }
}

/// Parses a stored text.
pub(super) fn parsed(text: &str) -> SqlResult<Expr> {
    let statement = cohort_sql::parse_own(&format!("SELECT {text}"))?.statement;
    let unread = || SqlError::not_supported(&format!("the expression {text}"));
    cohort_plan::convert::only_item(&statement).cloned().ok_or_else(unread)
}

/// Returns the columns that a text reads.
pub(super) fn columns_of(text: &str) -> SqlResult<Vec<String>> {
    let mut columns = Vec::new();
    parsed(text)?.each_column(&mut |column| columns.push(column.name.clone()));
    Ok(columns)
}

/// Returns the text with a column renamed.
pub(super) fn renamed(text: &str, from: &str, to: &str) -> SqlResult<String> {
    let mut expr = parsed(text)?;
    expr.each_column(&mut |column: &mut ast::ColumnRef| {
        if same_name(&column.name, from) {
            column.name = to.to_owned();
        }
    });
    Ok(cohort_sql::print::expr(&expr))
}

/// Returns whether two texts have the same meaning in two descriptions, regardless of column names.
pub(super) fn is_same(
    old: &str,
    new: &str,
    old_column: &dyn Fn(&str) -> Option<usize>,
    new_column: &dyn Fn(&str) -> Option<usize>,
) -> bool {
    let numbered = |text: &str, number: &dyn Fn(&str) -> Option<usize>| {
        let mut expr = parsed(text).ok()?;
        let mut is_known = true;
        expr.each_column(&mut |column| match number(&column.name) {
            Some(n) => column.name = n.to_string(),
            None => is_known = false,
        });
        is_known.then(|| cohort_sql::print::expr(&expr))
    };
    // Two columns may have the same name if one is dropped and another is added.
    numbered(old, old_column).is_some_and(|text| Some(text) == numbered(new, new_column))
}

/// Rejects an index over a VIRTUAL column whose expression is not allowed in an index: error 1901.
fn check_indexed(text: &str, column: &str) -> SqlResult<()> {
    let clause = Clause::Generated { stored: true };
    let mut outcome = Ok(());
    parsed(text)?.each_part(&mut |part| match part {
        Expr::Function { name, args } if stored_in(name, args.len()) != StoredIn::Anywhere => {
            outcome = Err(SqlError::not_allowed_in_clause(&format!("{name}()"), clause.text(), column));
        }
        _ => {}
    });
    outcome
}

/// Checks the expressions of a description: errors 1054, 4029, type errors, and 1901 if the stored value
/// would depend on sql_mode.
pub(super) fn check(ctx: &StatementContext<'_>, table: &Table) -> SqlResult<()> {
    let known = |name: &str| table.columns.iter().position(|c| same_name(&c.name, name));
    let is_indexed =
        |n: usize| table.indexes.iter().any(|index| index.columns.iter().any(|part| part.column == n));
    // Columns whose values depend on that of the AUTO_INCREMENT column, which is drawn last.
    let drawn = match table.columns.iter().position(|column| column.auto_increment) {
        None => Vec::new(),
        Some(auto) => {
            let generated = table.columns.iter().enumerate();
            let generated = generated.filter_map(|(n, column)| Some((n, &column.generated.as_ref()?.text)));
            let read = generated.map(|(n, text)| -> SqlResult<(usize, Vec<usize>)> {
                Ok((n, columns_of(text)?.iter().filter_map(|name| known(name)).collect()))
            });
            readers_of(auto, read.collect::<SqlResult<Vec<_>>>()?)
        }
    };
    let look = |text: &str, clause: Clause, own: Option<usize>, name: &str| {
        let mut outcome = Ok(());
        let is_late = |n: usize, own: usize| match clause {
            Clause::Generated { .. } => n >= own && table.columns[n].generated.is_some(),
            Clause::Default => n >= own && matches!(table.columns[n].default, DefaultValue::Expression(_)),
            Clause::Check => false,
        };
        let is_kept = clause != Clause::Generated { stored: false } || own.is_some_and(is_indexed);
        parsed(text)?.each_column(&mut |column| match (known(&column.name), own) {
            (None, _) => outcome = Err(SqlError::unknown_column(&column.name, clause.text())),
            (Some(n), Some(own)) if is_late(n, own) => {
                outcome = Err(SqlError::refers_to_later_column(&table.columns[own].name, &column.name));
            }
            (Some(n), _) if table.columns[n].auto_increment && is_kept => {
                let name = &table.columns[n].name;
                outcome = Err(SqlError::not_allowed_in_clause("AUTO_INCREMENT", clause.text(), name));
            }
            (Some(n), _) if drawn.contains(&n) && is_kept => {
                let read = &table.columns[n].name;
                outcome = Err(SqlError::not_allowed_in_clause(read, clause.text(), name));
            }
            _ => {}
        });
        outcome
    };
    let of_columns = table.columns.iter().filter_map(|column| Some((column.check.as_ref()?, &column.name)));
    for (text, name) in of_columns.chain(table.checks.iter().map(|check| (&check.text, &check.name))) {
        look(text, Clause::Check, None, name)?;
    }
    for (n, column) in table.columns.iter().enumerate() {
        if let Some(generated) = &column.generated {
            if !generated.stored && is_indexed(n) {
                check_indexed(&generated.text, &column.name)?;
            }
            let clause = Clause::Generated { stored: generated.stored };
            look(&generated.text, clause, Some(n), &column.name)?;
        }
        if let DefaultValue::Expression(text) = &column.default {
            look(text, Clause::Default, Some(n), &column.name)?;
        }
    }
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    let table = Arc::new(table.clone());
    let scope = Scope::of_table(Arc::clone(&table), None);
    let binder = Binder::new(&plan, &scope, cohort_plan::Clause::Values);
    for (n, column) in table.columns.iter().enumerate() {
        if matches!(column.default, DefaultValue::Expression(_)) {
            binder.default_of(&table, n, 0)?;
        }
    }
    let before = catalog.table_by_id(table.id);
    for (n, expr) in RowRules::of(&plan, &table)?.into_generated() {
        let column = &table.columns[n];
        let Some(generated) = column.generated.as_ref().filter(|own| own.stored || is_indexed(n)) else {
            continue;
        };
        // An earlier build may have allowed what the table has.
        let is_as_before = |old: &Column| old.name == column.name && old.generated == column.generated;
        if let Some(mode) = mode_dependence(&expr, &column.ty)
            && !before.is_some_and(|before| before.columns.iter().any(is_as_before))
        {
            let text = format!("Expression depends on the @@sql_mode value {mode}");
            ctx.eval.push_warning(Warning::new(SqlError::new(ErrorCode::UnknownError, text)));
            let clause = Clause::Generated { stored: true };
            return Err(SqlError::not_allowed_in_clause(&generated.text, clause.text(), &column.name));
        }
    }
    Ok(())
}
