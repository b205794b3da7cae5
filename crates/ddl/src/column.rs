//! Column definitions: types, defaults, attributes.

use cohort_catalog::{Column, DefaultValue, Generated, OnUpdate};
use cohort_plan::column_type;
use cohort_sql::ast::{ColumnDef, ColumnDefault, DataType, DeclaredKind, Expr, LiteralKind};
use cohort_types::{
    Collation, ColumnType, ErrorCode, Level, SqlError, SqlResult, StoreContext, Str, TypeKind, Value, Warning,
};

use super::draft::DraftColumn;
use super::options::fit_comment;
use super::rules;
use super::work::check_identifier;
use cohort_plan::{Binder, Clause, ParamSource, PlanContext, Scope};
use cohort_session::{SessionNames, SessionState, StatementContext};

/// The attributes that a column inherits from its table.
#[derive(Clone, Copy)]
pub(super) struct ColumnHome<'t> {
    pub(super) schema: &'t str,
    pub(super) table: &'t str,
    pub(super) collation: Collation,
}

/// Rejects expressions that no table may contain, even if the table cannot be created for other reasons.
pub(super) fn check_expressions(session: &SessionState, def: &ColumnDef) -> SqlResult<()> {
    if let Some(check) = &def.check {
        rules::text_of(session, rules::Clause::Check, &def.name, check)?;
    }
    if let Some(ColumnDefault::Expr { expr, .. }) = &def.default {
        rules::text_of(session, rules::Clause::Default, &def.name, expr)?;
    }
    def.generated.as_ref().map_or(Ok(()), |generated| generated_text(session, &def.name, generated).map(drop))
}

fn generated_text(
    session: &SessionState,
    name: &str,
    generated: &cohort_sql::ast::Generated,
) -> SqlResult<String> {
    let clause = rules::Clause::Generated { stored: generated.stored };
    rules::text_of(session, clause, name, &generated.expr)
}

/// Builds the column for a definition.
pub(super) fn draft(
    ctx: &StatementContext<'_>,
    def: &ColumnDef,
    home: ColumnHome<'_>,
) -> SqlResult<DraftColumn> {
    let name = &def.name;
    check_identifier(name, SqlError::wrong_column_name)?;
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return Err(SqlError::wrong_column_name(name));
    }
    if ty_has_width(&def.data_type) {
        let width = def.data_type.length.unwrap_or_default();
        let text = format!(
            "'YEAR({width})' is deprecated and will be removed in a future release. Please use YEAR(4) instead"
        );
        ctx.eval.note(ErrorCode::WarnDeprecatedSyntax, text);
    }
    let mut ty = column_type(&def.data_type, name, home.collation)?;
    let check = match &def.check {
        None => None,
        // SHOW CREATE TABLE and dumps write a JSON column in this form.
        Some(check) if is_json_check(check, name) && is_json_text(&ty) => {
            ty = ColumnType { kind: TypeKind::Json, ..ty };
            None
        }
        // JSON is LONGTEXT with an implicit CHECK. An explicit CHECK replaces it.
        Some(check) => {
            if ty.kind == TypeKind::Json {
                ty.kind = TypeKind::LongText;
            }
            Some(rules::text_of(ctx.session, rules::Clause::Check, name, check)?)
        }
    };
    let generated = match &def.generated {
        None => None,
        Some(generated) => {
            Some(Generated { text: generated_text(ctx.session, name, generated)?, stored: generated.stored })
        }
    };
    match ty.check(name) {
        Err(error) if error.code == ErrorCode::TooBigFieldLength && becomes_text(ctx, &ty) => {
            let (from, to) =
                if ty.kind == TypeKind::VarChar { ("VARCHAR", "TEXT") } else { ("VARBINARY", "BLOB") };
            ty = ColumnType::text_of_length(ty.length, ty.collation);
            let text = format!("Converting column '{name}' from {from} to {to}");
            ctx.eval.note(ErrorCode::AutoConvert, text);
        }
        other => other?,
    }
    for error in ty.duplicated_members(name) {
        if ctx.session.settings.env.sql_mode.is_strict() {
            return Err(error);
        }
        ctx.eval.note(error.code, error.message);
    }
    let nullable = def.nullable.unwrap_or(!def.auto_increment);
    if def.auto_increment {
        check_auto_increment(def, &ty)?;
    }
    let default = default_value(ctx, def, &ty, nullable, home)?;
    let on_update = match def.on_update {
        None => OnUpdate::Keep,
        // The precision, if given, must be at least the column's.
        Some(digits) if takes_now(&ty) && (digits == 0 || digits >= ty.decimals) => {
            OnUpdate::CurrentTimestamp
        }
        Some(_) => return Err(SqlError::invalid_on_update(name)),
    };
    let mut comment = def.comment.clone().unwrap_or_default();
    fit_comment(ctx, &mut comment, 1024, ErrorCode::TooLongFieldComment, || format!("field '{name}'"))?;
    let column = Column {
        name: name.clone(),
        ty,
        nullable,
        default,
        on_update,
        auto_increment: def.auto_increment,
        invisible: def.invisible,
        comment,
        value_in_old_rows: Value::Null,
        generated,
        check,
    };
    Ok(DraftColumn { column, origin: None, is_described: true })
}

/// Column names reserved by InnoDB.
const RESERVED: [&str; 3] = ["DB_ROW_ID", "DB_TRX_ID", "DB_ROLL_PTR"];

/// Returns whether the type is YEAR with a width other than 4.
fn ty_has_width(declared: &DataType) -> bool {
    declared.kind == DeclaredKind::Column(TypeKind::Year) && declared.length.is_some_and(|width| width != 4)
}

/// Returns whether a too long string type is converted to a TEXT type, as in non-strict mode.
fn becomes_text(ctx: &StatementContext<'_>, ty: &ColumnType) -> bool {
    matches!(ty.kind, TypeKind::VarChar | TypeKind::VarBinary)
        && !ctx.session.settings.env.sql_mode.is_strict()
}

/// Returns whether the expression is `json_valid(column)`.
fn is_json_check(check: &Expr, column: &str) -> bool {
    let Expr::Function { name, args } = check else { return false };
    let is_column = |arg: &Expr| matches!(arg, Expr::Column(c) if c.name.eq_ignore_ascii_case(column));
    name.eq_ignore_ascii_case("json_valid") && args.len() == 1 && is_column(&args[0])
}

fn is_json_text(ty: &ColumnType) -> bool {
    matches!(ty.kind, TypeKind::LongText | TypeKind::Json) && ty.collation == Collation::UTF8MB4_BIN
}

fn check_auto_increment(def: &ColumnDef, ty: &ColumnType) -> SqlResult<()> {
    use TypeKind as K;
    let counts = matches!(
        ty.kind,
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Float | K::Double
    );
    if !counts {
        return Err(SqlError::wrong_column_spec(&def.name));
    }
    match &def.default {
        None => Ok(()),
        Some(ColumnDefault::Literal(Expr::Literal(l)))
            if l.value.is_null() && def.nullable != Some(false) =>
        {
            Ok(())
        }
        Some(_) => Err(SqlError::invalid_default(&def.name)),
    }
}

fn takes_now(ty: &ColumnType) -> bool {
    matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp)
}

fn default_value(
    ctx: &StatementContext<'_>,
    def: &ColumnDef,
    ty: &ColumnType,
    nullable: bool,
    home: ColumnHome<'_>,
) -> SqlResult<DefaultValue> {
    let Some(default) = &def.default else {
        let has_null = nullable && !def.auto_increment;
        return Ok(if has_null { DefaultValue::Value(Value::Null) } else { DefaultValue::None });
    };
    if def.auto_increment {
        return Ok(DefaultValue::None);
    }
    default_of(ctx, &def.name, default, ty, nullable, home)
}

/// Returns the value of a DEFAULT clause, converted to the column's type; error 1067.
pub(super) fn default_of(
    ctx: &StatementContext<'_>,
    column: &str,
    default: &ColumnDefault,
    ty: &ColumnType,
    nullable: bool,
    home: ColumnHome<'_>,
) -> SqlResult<DefaultValue> {
    let invalid = || SqlError::invalid_default(column);
    match default {
        ColumnDefault::CurrentTimestamp(digits)
            if takes_now(ty) && (*digits == 0 || *digits == ty.decimals) =>
        {
            Ok(DefaultValue::CurrentTimestamp)
        }
        ColumnDefault::CurrentTimestamp(digits) => {
            let now = if *digits == 0 {
                "current_timestamp()".to_owned()
            } else {
                format!("current_timestamp({digits})")
            };
            Ok(DefaultValue::Expression(now))
        }
        ColumnDefault::Literal(expr) => {
            let bound = constant_expr(ctx, expr)?.for_column(ty.kind);
            let value = bound.eval(&[], &ctx.eval)?.into_owned();
            if value.is_null() {
                return if nullable { Ok(DefaultValue::Value(Value::Null)) } else { Err(invalid()) };
            }
            let value = match ty.kind {
                TypeKind::Enum | TypeKind::Set => named_members(value, ty).ok_or_else(invalid)?,
                _ => value,
            };
            let (stored, notes) = store_default(ctx, column, value, ty, (home, 0)).map_err(|_| invalid())?;
            notes.into_iter().for_each(|note| ctx.eval.push_warning(note));
            Ok(DefaultValue::Value(stored))
        }
        ColumnDefault::Expr { expr, .. } => {
            // The result is checked when the default is used.
            let text = rules::text_of(ctx.session, rules::Clause::Default, column, expr)?;
            let is_plain = matches!(
                expr,
                Expr::Function { .. } | Expr::Sequence(_) | Expr::Column(_) | Expr::Cast { .. }
            );
            Ok(DefaultValue::Expression(if is_plain { text } else { format!("({text})") }))
        }
    }
}

/// Returns the text of a default that names members of an ENUM or SET. A number is no default, though it
/// could be stored, unless a member has that name.
fn named_members(value: Value, ty: &ColumnType) -> Option<Value> {
    let text = match value {
        Value::Str(text) => text,
        value => Str { bytes: value.to_text().into_bytes(), collation: ty.collation },
    };
    let named = text.bytes.trim_ascii_end();
    let is_member =
        |label: &[u8]| ty.members.iter().any(|m| ty.collation.compare(m.as_bytes(), label).is_eq());
    let names = match ty.kind {
        TypeKind::Set => named.is_empty() || named.split(|&b| b == b',').all(is_member),
        _ => is_member(named),
    };
    names.then_some(Value::Str(text))
}

/// Returns error 1067 for defaults that NO_ZERO_DATE or NO_ZERO_IN_DATE refuses, in columns that are
/// described again.
pub(super) fn check_zero_dates<'c>(
    ctx: &StatementContext<'_>,
    mut columns: impl Iterator<Item = &'c Column>,
) -> SqlResult<()> {
    let mode = ctx.session.settings.env.sql_mode;
    let is_refused = |column: &&Column| match &column.default {
        DefaultValue::Value(value) => value.is_refused_date(mode),
        _ => false,
    };
    columns.find(is_refused).map_or(Ok(()), |column| Err(SqlError::invalid_default(&column.name)))
}

/// Converts a default to its stored form, and adds notes about lost precision. Messages name the row.
pub(super) fn store_default(
    ctx: &StatementContext<'_>,
    column: &str,
    value: Value,
    ty: &ColumnType,
    (home, row): (ColumnHome<'_>, u64),
) -> SqlResult<(Value, Vec<Warning>)> {
    let store = StoreContext {
        sql_mode: ctx.session.settings.env.sql_mode,
        strict: true,
        database: home.schema,
        table: home.table,
        column,
        row,
        zone: &ctx.session.settings.env.time_zone,
        now_micros: ctx.session.settings.env.now_micros,
    };
    let mut warnings: Vec<Warning> = Vec::new();
    let stored = ty.store(value, &store, &mut warnings)?;
    if let Some(warning) = warnings.iter().find(|w| w.level != Level::Note) {
        return Err(warning.error.clone());
    }
    if ty.kind == TypeKind::Timestamp && !stored.is_null() {
        ctx.uses_zone.set(true);
    }
    Ok((stored, warnings))
}

fn constant_expr(ctx: &StatementContext<'_>, expr: &Expr) -> SqlResult<cohort_expr::Expr> {
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    let scope = Scope::default();
    Binder::new(&plan, &scope, Clause::Select).expression(expr)
}

/// Evaluates an expression without columns.
pub(super) fn constant(ctx: &StatementContext<'_>, expr: &Expr) -> SqlResult<Value> {
    if let Expr::Literal(literal) = expr
        && literal.kind == LiteralKind::Plain
    {
        return Ok(literal.value.clone());
    }
    let bound = constant_expr(ctx, expr)?;
    Ok(bound.eval(&[], &ctx.eval)?.into_owned())
}

/// Evaluates a column's default without a row: the value of existing rows when a column is added.
pub(super) fn value_now(
    ctx: &StatementContext<'_>,
    column: &Column,
    home: ColumnHome<'_>,
) -> SqlResult<Value> {
    let computed = match &column.default {
        DefaultValue::Value(value) => return Ok(value.clone()),
        DefaultValue::None => return Ok(column.ty.implicit_default()),
        DefaultValue::CurrentTimestamp => {
            let now = Value::Timestamp(ctx.session.settings.env.now_micros);
            now_in_zone(ctx, now)
        }
        DefaultValue::Expression(text) => {
            let parsed = cohort_sql::parse_own(&format!("SELECT {text}"))?;
            let expr = cohort_plan::convert::only_item(&parsed.statement)
                .ok_or_else(|| SqlError::invalid_default(&column.name))?;
            constant(ctx, expr)?
        }
    };
    store_default(ctx, &column.name, computed, &column.ty, (home, 1)).map(|(stored, _)| stored)
}

fn now_in_zone(ctx: &StatementContext<'_>, now: Value) -> Value {
    let Value::Timestamp(micros) = now else { return now };
    ctx.uses_zone.set(true);
    ctx.uses_micros.set(true);
    Value::DateTime(cohort_types::TimeZone::to_local(&ctx.session.settings.env.time_zone, micros))
}
