//! Binds expressions of the AST.

use std::cell::RefCell;
use std::sync::Arc;

use cohort_catalog::{DefaultValue, Table};
use cohort_expr::{
    CallBack, CompareOp, EvalContext, Expr, ExprType, IntervalOp, LikeEscape, TypeClass, UnaryOp, and,
    between, build_binary, build_call, build_unary, case, cast, char_using, collate, compare_exprs,
    convert_using, date_arith, extract, in_list, is_native, is_null, is_truth, like, or, regexp, row,
    system_variable, timestamp_diff, trim, user_variable, user_variable_assign,
};
use cohort_sql::ast;
use cohort_types::{Collation, DateTime, ErrorCode, SqlError, SqlResult, TimeZone, TypeKind, Value};

use crate::bind::clause::{AliasOrder, Aliases, Clause};
use crate::bind::context::{ParamSource, PlanContext};
use crate::bind::convert;
use crate::bind::named_windows::Windows;
use crate::bind::scope::{Relation, Scope, unknown_column};
use crate::block::Collected;
use crate::common_tables::CommonTables;
use crate::names::CalledFunction;

/// Treatment of a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literals {
    /// Becomes a parameter where possible.
    Lift,
    /// Becomes a constant, on which the plan depends.
    Pin,
}

/// A binder of the expressions of one clause, over one scope.
pub struct Binder<'b> {
    pub ctx: &'b PlanContext<'b>,
    pub scope: &'b Scope,
    pub clause: Clause,
    /// Collects the aggregates found; `None` if the clause allows none.
    pub aggregates: Option<&'b RefCell<Vec<Collected>>>,
    /// The expression is in an argument of an aggregate, where another aggregate of the same query is an
    /// error (1111).
    pub within_aggregate: bool,
    /// Select items that names may refer to.
    pub aliases: Option<&'b dyn Aliases>,
    /// Select items that names in subqueries may refer to, if the tables have no such column.
    pub aliases_within: Option<&'b dyn Aliases>,
    /// Names may refer to columns of the tables.
    pub tables_visible: bool,
    /// VALUES(column) is the column this many slots later; `None` if VALUES is not allowed.
    pub values_offset: Option<usize>,
    /// Common table expressions that subqueries may name.
    pub with: Option<&'b CommonTables<'b>>,
    /// The binder of the outer query, for names that are not found here.
    pub outer: Option<&'b Binder<'b>>,
    /// Collects the window functions found; `None` if they are an error (4015).
    pub windows: Option<&'b Windows<'b>>,
    /// False if subqueries would never be run: in a data change's own expressions, in defaults.
    pub subqueries_allowed: bool,
}

/// Returns the item to which a number in ORDER BY or GROUP BY refers, or `None` if the literal is not a
/// number.
pub fn item_position(
    ctx: &PlanContext<'_>,
    literal: &ast::Literal,
    count: usize,
    clause: Clause,
) -> SqlResult<Option<usize>> {
    let Value::Int(n) = literal.value else { return Ok(None) };
    if literal.kind != ast::LiteralKind::Plain {
        return Ok(None);
    }
    ctx.pins.borrow_mut().extend(literal.ordinal);
    position(n, count, clause).map(Some)
}

/// Returns error 1054 for a negative number in ORDER BY or GROUP BY, which refers to no item.
pub fn refuse_negative(expr: &ast::Expr, clause: Clause) -> SqlResult<()> {
    if let ast::Expr::Unary { op: ast::UnaryOp::Negate, expr } = expr
        && let ast::Expr::Literal(ast::Literal {
            value: Value::Int(n), kind: ast::LiteralKind::Plain, ..
        }) = &**expr
    {
        return Err(SqlError::unknown_column(&format!("-{}", n), clause.text()));
    }
    Ok(())
}

/// Returns the item to which a parameter in ORDER BY or GROUP BY refers, or `None` if its value is not a
/// number. A local variable is a constant here. A plan that depends on another parameter is used once.
pub fn param_position(
    ctx: &PlanContext<'_>,
    n: u32,
    count: usize,
    clause: Clause,
) -> SqlResult<Option<usize>> {
    if matches!(ctx.source, ParamSource::Variables(_)) {
        return Ok(None);
    }
    ctx.reusable.set(false);
    match ctx.params.get(n as usize) {
        Some(Value::Int(n)) if ctx.source == ParamSource::Placeholders => {
            position(*n, count, clause).map(Some)
        }
        _ => Ok(None),
    }
}

/// Rewrites IS NULL in a condition so that it accepts the zero date of a DATE or DATETIME column that is NOT
/// NULL. `is_required` says which columns are NOT NULL.
pub fn with_zero_dates(condition: Expr, is_required: &dyn Fn(usize) -> bool) -> SqlResult<Expr> {
    let each = |items: Vec<Expr>| {
        items.into_iter().map(|item| with_zero_dates(item, is_required)).collect::<SqlResult<Vec<_>>>()
    };
    match condition {
        Expr::And(items) => Ok(and(each(items)?)),
        Expr::Or(items) => Ok(or(each(items)?)),
        Expr::IsNull(node) if !node.negated => Ok(match &node.operand {
            Expr::Column(column)
                if matches!(column.ty.kind, TypeKind::Date | TypeKind::DateTime)
                    && is_required(column.ordinal) =>
            {
                let zero = Expr::constant(Value::Date(cohort_types::Date::ZERO));
                let is_zero = compare_exprs(CompareOp::Eq, node.operand.clone(), zero)?;
                or(vec![is_zero, Expr::IsNull(node)])
            }
            _ => Expr::IsNull(node),
        }),
        other => Ok(other),
    }
}

/// Returns error 1054 for a number to which no item corresponds.
fn position(n: i64, count: usize, clause: Clause) -> SqlResult<usize> {
    let found = usize::try_from(n).ok().filter(|n| (1..=count).contains(n));
    let error = || SqlError::unknown_column(&n.to_string(), clause.text());
    found.map(|n| n - 1).ok_or_else(error)
}

/// Returns error 1241 for a row in place of a single value.
pub fn one_column(expr: Expr) -> SqlResult<Expr> {
    match expr {
        Expr::Row(_) => Err(SqlError::operand_columns(1)),
        other => Ok(other),
    }
}

impl<'b> Binder<'b> {
    /// Creates a binder for one clause.
    pub fn new(ctx: &'b PlanContext<'b>, scope: &'b Scope, clause: Clause) -> Binder<'b> {
        Binder {
            ctx,
            scope,
            clause,
            aggregates: None,
            within_aggregate: false,
            aliases: None,
            aliases_within: None,
            tables_visible: true,
            values_offset: None,
            with: None,
            outer: None,
            windows: None,
            subqueries_allowed: false,
        }
    }

    /// Binds a condition. Literals in comparisons become parameters.
    pub fn condition(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        let condition = self.condition_of_padded(expr)?;
        if matches!(self.clause, Clause::Where | Clause::On) {
            with_zero_dates(condition, &|column| self.is_required(column))
        } else {
            Ok(condition)
        }
    }

    /// Binds the condition of an ON whose join adds NULL-padded rows. There IS NULL does not accept zero
    /// dates.
    pub fn condition_of_padded(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        let literals = if self.lifts() { Literals::Lift } else { Literals::Pin };
        one_column(self.predicate(expr, literals)?)
    }

    /// Binds a value to be stored. A literal becomes a parameter.
    pub fn value(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        match expr {
            ast::Expr::Literal(literal) => self.literal(literal, Literals::Lift),
            // `k = k + 1`, `paid = paid + 12.50`: the plan does not depend on the number of integer digits.
            // Texts whose decimals have another scale have their own plans ([`cohort_sql::Digest`]).
            ast::Expr::Binary { op: op @ (ast::BinaryOp::Add | ast::BinaryOp::Subtract), left, right } => {
                let (ast::Expr::Column(_), ast::Expr::Literal(literal)) = (&**left, &**right) else {
                    return self.bind(expr);
                };
                let left = self.bind(left)?;
                let how = match literal.value {
                    Value::Int(_) => Literals::Lift,
                    Value::Decimal(_) if left.ty().class() == TypeClass::Decimal => Literals::Lift,
                    _ => Literals::Pin,
                };
                let right = self.literal(literal, how)?;
                build_binary(convert::binary_op(*op), left, right, self.ctx.names.env())
            }
            other => one_column(self.bind(other)?),
        }
    }

    /// Binds any other expression. Literals are pinned.
    pub fn expression(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        one_column(self.bind(expr)?)
    }

    /// Binds a LIMIT: an unsigned number that becomes a parameter. As in MariaDB, a negative variable of a
    /// program is a large unsigned number.
    pub fn limit(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        match expr {
            ast::Expr::Literal(literal) => self.literal(literal, Literals::Lift),
            other if matches!(self.ctx.source, ParamSource::Variables(_)) => {
                let (number, none) = (self.expression(other)?, Expr::constant(Value::Int(0)));
                build_binary(cohort_expr::BinaryOp::BitOr, number, none, self.ctx.names.env())
            }
            other => self.bind(other),
        }
    }

    /// Returns the DEFAULT of a column, as an expression over rows that begin at a slot. Error 1364 if it has
    /// none.
    pub fn default_of(&self, table: &Arc<Table>, column: usize, first_slot: usize) -> SqlResult<Expr> {
        let column = &table.columns[column];
        match &column.default {
            DefaultValue::Value(value) => {
                // A stored timestamp is shown in the session's time zone.
                let zone: &dyn TimeZone = &self.ctx.names.env().time_zone;
                Ok(Expr::constant(match value {
                    Value::Timestamp(0) => Value::DateTime(DateTime::default()),
                    Value::Timestamp(micros) => Value::DateTime(zone.to_local(*micros)),
                    value => value.clone(),
                }))
            }
            DefaultValue::None if column.auto_increment => Ok(Expr::constant(Value::Int(0))),
            DefaultValue::None if column.nullable => Ok(Expr::null()),
            DefaultValue::None => Err(SqlError::no_default(&column.name)),
            DefaultValue::CurrentTimestamp => {
                let digits = Expr::constant(Value::Int(column.ty.decimals.into()));
                build_call("now", vec![digits], self.ctx.names.env())
            }
            DefaultValue::Expression(text) => {
                let parsed = cohort_sql::parse_own(&format!("SELECT {text}"))?;
                let expr = convert::only_item(&parsed.statement)
                    .ok_or_else(|| SqlError::not_supported("DEFAULT (expression)"))?;
                let fixed = PlanContext::new(self.ctx.names, &[], ParamSource::Placeholders);
                let scope = Scope::of_expressions(Arc::clone(table), first_slot);
                let bound = Binder::new(&fixed, &scope, self.clause).bind(expr);
                if !fixed.reusable.get() {
                    self.ctx.reusable.set(false);
                }
                bound
            }
        }
    }

    fn lifts(&self) -> bool {
        self.ctx.source == ParamSource::Literals && self.ctx.lifts_literals.get()
    }

    fn predicate(&self, expr: &ast::Expr, literals: Literals) -> SqlResult<Expr> {
        use ast::BinaryOp as B;
        self.ctx.enter()?;
        match expr {
            ast::Expr::Binary { op: op @ (B::And | B::Or), left, right } => {
                let left = one_column(self.predicate(left, literals)?)?;
                let right = one_column(self.predicate(right, literals)?)?;
                build_binary(convert::binary_op(*op), left, right, self.ctx.names.env())
            }
            ast::Expr::Unary { op: ast::UnaryOp::Not, expr } => {
                build_unary(UnaryOp::Not, self.predicate(expr, literals)?, self.ctx.names.env())
            }
            ast::Expr::Binary { op, left, right } if convert::is_comparison(*op) => {
                self.comparison(*op, left, right, literals)
            }
            ast::Expr::Between { expr, negated, low, high } => {
                let operand = self.operand(expr, literals)?;
                between(operand, self.operand(low, literals)?, self.operand(high, literals)?, *negated)
            }
            ast::Expr::InList { expr, negated, list } => {
                let operand = self.operand(expr, literals)?;
                let list = list.iter().map(|e| self.operand(e, literals)).collect::<SqlResult<_>>()?;
                in_list(operand, list, *negated)
            }
            other => self.bind(other),
        }
    }

    /// Returns true if a column belongs to a table and is NOT NULL there.
    fn is_required(&self, column: usize) -> bool {
        // The column may belong to an outer query. The column of an aggregate belongs to no scope.
        let binders = std::iter::successors(Some(self), |binder| binder.outer);
        let Some(scope) = binders.map(|binder| binder.scope).find(|scope| scope.holds(column)) else {
            return false;
        };
        let table = &scope.tables[scope.table_of(column)];
        match &table.relation {
            Relation::Base(base) => !base.columns[column - table.first_slot].nullable,
            _ => !scope.slot(column).ty.nullable,
        }
    }

    fn operand(&self, expr: &ast::Expr, literals: Literals) -> SqlResult<Expr> {
        match expr {
            ast::Expr::Literal(literal) => self.literal(literal, literals),
            other => self.bind(other),
        }
    }

    fn comparison(
        &self,
        op: ast::BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        how: Literals,
    ) -> SqlResult<Expr> {
        let l = self.operand(left, how)?;
        let r = self.operand(right, how)?;
        build_binary(convert::binary_op(op), l, r, self.ctx.names.env())
    }

    fn literal(&self, literal: &ast::Literal, how: Literals) -> SqlResult<Expr> {
        let plain = literal.kind == ast::LiteralKind::Plain;
        if let Some(ordinal) = literal.ordinal
            && self.lifts()
        {
            let known = self.ctx.params.get(ordinal as usize) == Some(&literal.value);
            if how == Literals::Lift && plain && known && !literal.value.is_null() {
                return Ok(Expr::param(ordinal as usize, Expr::constant(literal.value.clone()).ty()));
            }
            self.ctx.pins.borrow_mut().push(ordinal);
        }
        convert::literal(literal, self.ctx.names.env())
    }

    pub(super) fn bind(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        self.ctx.enter()?;
        let env = self.ctx.names.env();
        match expr {
            ast::Expr::Literal(literal) => self.literal(literal, Literals::Pin),
            ast::Expr::Param(index) => Ok(self.placeholder(*index)),
            ast::Expr::Column(name) => self.column(name),
            ast::Expr::UserVariable(name) => {
                self.ctx.reusable.set(false);
                let now = self.ctx.names.user_variable_type(name);
                Ok(user_variable(name, now, env))
            }
            ast::Expr::Assign { name, value } => {
                self.ctx.reusable.set(false);
                user_variable_assign(name, self.bind(value)?, env)
            }
            ast::Expr::SystemVariable { scope, name } => {
                let scope = convert::variable_scope(*scope);
                let current = self.ctx.names.hooks().system_variable(scope, name)?;
                Ok(system_variable(scope, name, &current, env))
            }
            ast::Expr::Unary { op, expr } => self.unary(*op, expr),
            ast::Expr::Binary { op, left, right } => self.binary(*op, left, right),
            ast::Expr::Is { expr, negated, test } => {
                let operand = one_column(self.bind(expr)?)?;
                Ok(match convert::truth(*test) {
                    None => is_null(operand, *negated),
                    Some(truth) => is_truth(operand, truth, *negated),
                })
            }
            ast::Expr::Between { .. } | ast::Expr::InList { .. } => self.predicate(expr, Literals::Pin),
            ast::Expr::Like { expr, negated, pattern, escape } => {
                self.like(expr, *negated, pattern, escape.as_deref())
            }
            ast::Expr::Regexp { expr, negated, pattern } => {
                regexp(self.bind(expr)?, self.bind(pattern)?, *negated, env)
            }
            ast::Expr::Case { operand, branches, otherwise } => {
                let operand = operand.as_ref().map(|e| one_column(self.bind(e)?)).transpose()?;
                let branches = branches
                    .iter()
                    .map(|(w, t)| Ok((one_column(self.bind(w)?)?, self.bind(t)?)))
                    .collect::<SqlResult<_>>()?;
                case(operand, branches, otherwise.as_ref().map(|e| self.bind(e)).transpose()?)
            }
            ast::Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            ast::Expr::Window(call) => self.window(call),
            ast::Expr::Row(items) => Ok(row(self.list(items)?)),
            ast::Expr::Subquery(query) => self.scalar_subquery(query),
            ast::Expr::Exists(query) => self.exists(query),
            ast::Expr::InQuery { expr, negated, query } => self.in_query(self.bind(expr)?, *negated, query),
            ast::Expr::Quantified { expr, op, quantifier, query } => {
                self.quantified(self.bind(expr)?, *op, *quantifier, query)
            }
            ast::Expr::Default(Some(name)) => self.default_value(name),
            ast::Expr::Match { columns, text, mode } => self.match_against(columns, text, *mode),
            ast::Expr::Default(None) => Err(SqlError::not_supported("DEFAULT in an expression")),
            ast::Expr::Values(name) => self.values_function(name),
            other => self.function(other),
        }
    }

    fn function(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        let env = self.ctx.names.env();
        match expr {
            ast::Expr::Cast { expr, to } => {
                // An invalid type is reported before an unknown column.
                let to = convert::cast_type(to, expr, env)?;
                cast(self.bind(expr)?, to, env)
            }
            ast::Expr::ConvertUsing { expr, charset } => {
                let collation = convert::charset(charset)?.default_collation();
                convert_using(self.bind(expr)?, collation, env)
            }
            ast::Expr::Collate { expr, collation: name } => {
                let collation = Collation::by_name(name).ok_or_else(|| SqlError::unknown_collation(name))?;
                collate(self.bind(expr)?, collation, env)
            }
            ast::Expr::DateArith { expr, subtract, amount, unit } => {
                let op = if *subtract { IntervalOp::Sub } else { IntervalOp::Add };
                date_arith(self.bind(expr)?, op, self.bind(amount)?, convert::interval_unit(*unit), env)
            }
            ast::Expr::Extract { unit, expr } => {
                extract(convert::interval_unit(*unit), self.bind(expr)?, env)
            }
            ast::Expr::TimestampDiff { unit, from, to } => {
                timestamp_diff(convert::interval_unit(*unit), self.bind(from)?, self.bind(to)?, env)
            }
            ast::Expr::Trim { side, what, expr } => {
                let what = what.as_ref().map(|e| self.bind(e)).transpose()?;
                trim(convert::trim_side(*side), what, self.bind(expr)?, env)
            }
            ast::Expr::CharFunction { args, charset } => {
                let charset = charset.as_deref().map(convert::charset).transpose()?;
                char_using(self.list(args)?, charset.map(|c| c.default_collation()), env)
            }
            ast::Expr::Sequence(call) => self.sequence(call),
            ast::Expr::Function { name, args } => self.call(name, args),
            ast::Expr::StoredFunction { db, name, args } => {
                match self.ctx.names.function(db.as_deref(), name, args)? {
                    Some(function) => self.stored_call(function, args),
                    None => {
                        let schema = db.as_deref().or(self.ctx.names.current_schema());
                        Err(SqlError::unknown_function(schema.unwrap_or_default(), name))
                    }
                }
            }
            _ => Err(SqlError::not_supported("this expression")),
        }
    }

    fn call(&self, name: &str, args: &[ast::Expr]) -> SqlResult<Expr> {
        let env = self.ctx.names.env();
        if !is_native(name)
            && let Some(function) = self.ctx.names.function(None, name, args)?
        {
            return self.stored_call(function, args);
        }
        let mut args = self.list(args)?;
        if let ("round" | "truncate", [_, places]) = (name, &mut args[..]) {
            *places = self.known_value(std::mem::replace(places, Expr::null()))?;
        }
        let call =
            build_call(name, args, env).map_err(|e| match (e.code, self.ctx.names.current_schema()) {
                (ErrorCode::SpDoesNotExist, Some(schema)) => {
                    SqlError::new(e.code, format!("FUNCTION {schema}.{name} does not exist"))
                }
                _ => e,
            })?;
        Ok(self.of_definer(name, call))
    }

    fn stored_call(&self, function: CalledFunction, args: &[ast::Expr]) -> SqlResult<Expr> {
        let CalledFunction { schema, name, function, ty, is_aggregate, parameters } = function;
        let mut args = if is_aggregate { vec![self.rows_of_group(args)?] } else { self.list(args)? };
        for (arg, parameter) in args.iter_mut().zip(&parameters).filter(|_| !is_aggregate) {
            if matches!(arg, Expr::Row(_)) {
                parameter.refuse_row()?;
                return Err(SqlError::operand_columns(1));
            }
            if let Some(kind) = parameter.numeric_kind() {
                *arg = std::mem::replace(arg, Expr::null()).for_column(kind);
            }
        }
        self.ctx.calls_back.set(true);
        Ok(Expr::CallBack(Box::new(CallBack { schema, name, function, args, ty })))
    }

    /// Evaluates an argument that determines the type of a call, if its value is known now. The plan is then
    /// used only once.
    fn known_value(&self, arg: Expr) -> SqlResult<Expr> {
        let mut is_known = arg.is_const_per_execution() && !matches!(arg, Expr::Const(_));
        arg.walk(&mut |node| {
            is_known &= match node {
                Expr::Param(param) => param.index < self.ctx.params.len(),
                Expr::Column(_) | Expr::Outer(_) | Expr::Subquery(_) | Expr::CallBack(_) => false,
                _ => true,
            };
            is_known
        });
        if !is_known {
            return Ok(arg);
        }
        self.ctx.reusable.set(false);
        let names = self.ctx.names;
        let ctx = EvalContext::new(names.env(), names.hooks(), self.ctx.params);
        Ok(Expr::constant(arg.eval(&[], &ctx)?.into_owned()))
    }

    /// Replaces CURRENT_USER() and CURRENT_ROLE() in a view by the account whose privileges the view uses,
    /// not the reader's account.
    fn of_definer(&self, name: &str, call: Expr) -> Expr {
        let (is_user, is_role) = (name == "current_user", name == "current_role");
        if !is_user && !is_role {
            return call;
        }
        let Some((user, host)) = self.ctx.names.definer() else { return call };
        // If the definer is a role, there is no user.
        let (user, role) = if host.is_empty() { (String::new(), Some(user)) } else { (user, None) };
        let value = match is_user {
            true => Value::text(format!("{user}@{host}")),
            false => role.map_or(Value::Null, Value::text),
        };
        Expr::typed_constant(value, call.ty())
    }

    /// Binds a sequence function. The sequence's name is an argument, and the session looks it up at
    /// evaluation.
    fn sequence(&self, call: &ast::SequenceCall) -> SqlResult<Expr> {
        let names = self.ctx.names;
        let schema = call.name.db.as_deref().or(names.current_schema());
        let schema = schema.ok_or_else(SqlError::no_database_selected)?;
        let base_only = names.sequence(schema, &call.name.name, call.operation)?;
        self.ctx.note(|meanings| meanings.note_sequence(call, schema));
        let (schema, name) = (Value::text(schema), Value::text(call.name.name.as_str()));
        let mut args = [schema, name, Value::Int(base_only.into())].map(Expr::constant).to_vec();
        args.extend(self.list(&call.args)?);
        build_call(call.operation.name(), args, names.env())
    }

    fn list(&self, exprs: &[ast::Expr]) -> SqlResult<Vec<Expr>> {
        exprs.iter().map(|e| self.bind(e)).collect()
    }

    fn placeholder(&self, index: u32) -> Expr {
        let index = index as usize;
        if let Some(ty) = self.ctx.variable_type(index) {
            let Some(function) = self.ctx.names.changed_variable(index) else {
                return Expr::param(index, ty.clone());
            };
            let (schema, name, args) = ("".into(), "".into(), Vec::new());
            return Expr::CallBack(Box::new(CallBack { schema, name, function, args, ty: ty.clone() }));
        }
        let ty = match self.ctx.params.get(index) {
            // An integer has the widest type, because the next execution may bind a longer one.
            Some(Value::Int(_)) if self.ctx.source == ParamSource::Placeholders => {
                ExprType::bigint(21).with_nullable(false)
            }
            // A fraction has the maximum number of digits, whatever its value.
            Some(Value::DateTime(d)) if d.micros != 0 && self.ctx.source == ParamSource::Placeholders => {
                ExprType::datetime(6).with_nullable(false)
            }
            Some(Value::Time(t)) if t.microsecond() != 0 && self.ctx.source == ParamSource::Placeholders => {
                ExprType::time(6).with_nullable(false)
            }
            Some(value) if self.ctx.source == ParamSource::Placeholders => Expr::constant(value.clone()).ty(),
            _ => ExprType::null(),
        };
        Expr::param(index, ty)
    }

    fn unary(&self, op: ast::UnaryOp, operand: &ast::Expr) -> SqlResult<Expr> {
        let env = self.ctx.names.env();
        let op = match op {
            ast::UnaryOp::Negate => UnaryOp::Neg,
            ast::UnaryOp::Plus => UnaryOp::Plus,
            ast::UnaryOp::Not => UnaryOp::Not,
            ast::UnaryOp::BitNot => UnaryOp::BitNot,
        };
        let operand = match op {
            UnaryOp::Neg => self.negated_operand(self.bind(operand)?)?,
            _ => self.bind(operand)?,
        };
        build_unary(op, operand, env)
    }

    /// Evaluates the operand of a minus if it is a constant expression that may be out of range of a negative
    /// integer: as in MariaDB, the negation is a decimal then. Literals are constants already.
    fn negated_operand(&self, operand: Expr) -> SqlResult<Expr> {
        const DIGITS: u32 = 19;
        let may_overflow = match &operand {
            Expr::Const(_) | Expr::Param(_) | Expr::Row(_) => false,
            other => {
                let ty = other.ty();
                ty.class() == TypeClass::Int && !ty.is_temporal() && ty.length >= DIGITS
            }
        };
        if may_overflow { self.known_value(operand) } else { Ok(operand) }
    }

    fn binary(&self, op: ast::BinaryOp, left: &ast::Expr, right: &ast::Expr) -> SqlResult<Expr> {
        let env = self.ctx.names.env();
        match op {
            ast::BinaryOp::And | ast::BinaryOp::Or | ast::BinaryOp::Xor => {
                build_binary(convert::binary_op(op), self.expression(left)?, self.expression(right)?, env)
            }
            op if convert::is_comparison(op) => self.comparison(op, left, right, Literals::Pin),
            op => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                build_binary(convert::binary_op(op), left, right, env)
            }
        }
    }

    fn like(
        &self,
        expr: &ast::Expr,
        negated: bool,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
    ) -> SqlResult<Expr> {
        let text;
        let escape = match escape {
            None => LikeEscape::Usual,
            Some(ast::Expr::Literal(literal)) => {
                self.literal(literal, Literals::Pin)?;
                text = literal.value.to_text();
                LikeEscape::Text(&text)
            }
            Some(other) => LikeEscape::By(self.bind(other)?),
        };
        like(self.expression(expr)?, self.expression(pattern)?, escape, negated, self.ctx.names.env())
    }

    fn column(&self, name: &ast::ColumnRef) -> SqlResult<Expr> {
        if let Some(found) = self.own_column(name)? {
            return Ok(found);
        }
        let mut in_aggregate = self.within_aggregate;
        for binder in std::iter::successors(self.outer, |binder| binder.outer) {
            if let Some(found) = binder.column_within(name, in_aggregate)? {
                return Ok(found);
            }
            in_aggregate |= binder.within_aggregate;
        }
        match &name.table {
            Some(table)
                if self.scope.tables.is_empty()
                    && self.outer.is_none()
                    && self.clause != Clause::JsonTable =>
            {
                Err(SqlError::unknown_table_in(table, self.clause.text()))
            }
            _ => Err(self.unknown(name)),
        }
    }

    /// Returns error 1054, or 1143 if the account may not read all columns of a table in which the column
    /// could be.
    fn unknown(&self, name: &ast::ColumnRef) -> SqlError {
        let own = (self.tables_visible || self.within_aggregate).then_some(self);
        let around = std::iter::successors(self.outer, |binder| binder.outer);
        let denied = own.into_iter().chain(around).try_for_each(|binder| {
            let how = binder.scope.reading.privilege();
            how.map_or(Ok(()), |how| binder.ctx.deny_unknown(binder.scope, name, how))
        });
        denied.err().unwrap_or_else(|| unknown_column(name, self.clause))
    }

    /// Returns the column that a name in a subquery of this clause refers to: a column of the tables (also in
    /// HAVING), otherwise a select item without aggregates (error 1247).
    fn column_within(&self, name: &ast::ColumnRef, in_aggregate: bool) -> SqlResult<Option<Expr>> {
        if let Some(slot) = self.scope.find(name, self.clause)? {
            let column = self.read_slot(name, slot)?;
            if !in_aggregate && self.aliases.is_some_and(|aliases| !aliases.admits(&column)) {
                let shown = self.scope.slot(slot).full_name.replace('`', "");
                return Err(SqlError::unknown_column(&shown, Clause::Select.text()));
            }
            return Ok(Some(column));
        }
        if let Some(aliases) = self.aliases {
            for order in [AliasOrder::BeforeTables, AliasOrder::AfterTables] {
                let Some(found) = aliases.find(name, order)? else { continue };
                if self.reads_aggregate(&found) {
                    return Err(SqlError::illegal_reference(&name.name, "reference to group function"));
                }
                return Ok(Some(found));
            }
        }
        match self.aliases_within {
            Some(aliases) => aliases.find(name, AliasOrder::AfterTables),
            None => Ok(None),
        }
    }

    fn read_slot(&self, name: &ast::ColumnRef, slot: usize) -> SqlResult<Expr> {
        self.ctx.note(|meanings| meanings.note_column(name, self.scope, slot));
        self.ctx.read_column(self.scope, slot)
    }

    /// Returns the column that a name refers to in this query, not in an outer one.
    fn own_column(&self, name: &ast::ColumnRef) -> SqlResult<Option<Expr>> {
        if self.within_aggregate
            && let Some(slot) = self.scope.find(name, self.clause)?
        {
            return self.read_slot(name, slot).map(Some);
        }
        if let Some(aliases) = self.aliases
            && let Some(found) = aliases.find(name, AliasOrder::BeforeTables)?
        {
            return Ok(Some(found));
        }
        if self.tables_visible
            && let Some(slot) = self.scope.find(name, self.clause)?
        {
            return self.read_slot(name, slot).map(Some);
        }
        match self.aliases {
            Some(aliases) => aliases.find(name, AliasOrder::AfterTables),
            None => Ok(None),
        }
    }

    fn default_value(&self, name: &ast::ColumnRef) -> SqlResult<Expr> {
        if let Some(around) = self.outer
            && self.scope.find(name, self.clause)?.is_none()
        {
            return around.default_value(name);
        }
        let found = self.scope.find(name, self.clause)?;
        let slot = found.ok_or_else(|| self.unknown(name))?;
        self.ctx.use_read(self.scope, slot)?;
        let table = &self.scope.tables[self.scope.table_of(slot)];
        match &table.relation {
            Relation::Base(base) => self.default_of(base, slot - table.first_slot, table.first_slot),
            _ => Err(SqlError::not_supported("DEFAULT() of a column that is not in a base table")),
        }
    }

    fn values_function(&self, name: &ast::ColumnRef) -> SqlResult<Expr> {
        let mut around = std::iter::successors(Some(self), |binder| binder.outer);
        // In a subquery, VALUES() refers to the row of the enclosing data change.
        if let Some(change) = around.find(|binder| binder.values_offset.is_some())
            && !std::ptr::eq(change, self)
        {
            return change.values_function(name);
        }
        let found = self.scope.find(name, self.clause)?;
        let slot = found.ok_or_else(|| self.unknown(name))?;
        let column = self.scope.slot(slot);
        // Outside of ON DUPLICATE KEY UPDATE there is no new row.
        let Some(offset) = self.values_offset else { return Ok(Expr::null()) };
        Ok(Expr::column(slot + offset, column.ty.clone(), column.full_name.clone()))
    }
}
