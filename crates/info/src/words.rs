//! information_schema.KEYWORDS, SQL_FUNCTIONS and USER_VARIABLES.

use cohort_expr::functions;
use cohort_session::{StatementContext, WantedNames};
use cohort_sql::keywords;
use cohort_types::{SqlResult, Value};

use super::cells::text;
use super::schema_table::SchemaTable;

type Rows = SqlResult<Vec<Vec<Value>>>;

/// Functions that the grammar knows: aggregates and window functions.
const OF_GRAMMAR: [&str; 28] = [
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "CAST",
    "COUNT",
    "CUME_DIST",
    "DENSE_RANK",
    "EXTRACT",
    "FIRST_VALUE",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "LAG",
    "LEAD",
    "MAX",
    "MIN",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "RANK",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "SUM",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

/// Returns the rows of KEYWORDS.
pub(super) fn words(_: &SchemaTable, _: &WantedNames, _: &mut StatementContext<'_>) -> Rows {
    Ok(keywords().map(|word| vec![text(word)]).collect())
}

/// Returns the rows of SQL_FUNCTIONS: the functions of this server.
pub(super) fn sql_functions(_: &SchemaTable, _: &WantedNames, _: &mut StatementContext<'_>) -> Rows {
    let is_word = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let mut names: Vec<String> =
        functions().filter(|(name, ..)| is_word(name)).map(|(name, ..)| name.to_uppercase()).collect();
    names.extend(OF_GRAMMAR.map(str::to_owned));
    names.sort();
    names.dedup();
    Ok(names.into_iter().map(|name| vec![text(name)]).collect())
}

/// Returns the session's user variables: name, value as a text, type, and character set of texts.
fn variables(ctx: &StatementContext<'_>) -> Vec<(String, Value, &'static str, &'static str)> {
    let variables = ctx.session.user_variables.borrow();
    let mut rows: Vec<_> = variables
        .iter()
        .map(|(name, value)| {
            let (ty, charset) = match value {
                Value::Int(_) => ("INT", "latin1"),
                Value::UInt(_) => ("INT UNSIGNED", "latin1"),
                Value::Double(_) => ("DOUBLE", "latin1"),
                Value::Decimal(_) => ("DECIMAL", "latin1"),
                Value::Null => ("VARCHAR", "binary"),
                Value::Str(string) => ("VARCHAR", string.collation.charset().name()),
                _ => ("VARCHAR", "latin1"),
            };
            let shown = if value.is_null() { Value::Null } else { text(value.to_text()) };
            (name.clone(), shown, ty, charset)
        })
        .collect();
    rows.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    rows
}

/// Returns the rows of USER_VARIABLES. Names are in lower case.
pub(super) fn user_variables(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let row = |(name, value, ty, charset): (String, Value, &str, &str)| {
        out.row([
            ("VARIABLE_NAME", text(name)),
            ("VARIABLE_VALUE", value),
            ("VARIABLE_TYPE", text(ty)),
            ("CHARACTER_SET_NAME", text(charset)),
        ])
    };
    Ok(variables(ctx).into_iter().map(row).collect())
}

/// Returns `performance_schema.user_variables_by_thread`. Only the session's own variables are known.
pub(super) fn by_thread(ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let id = || super::cells::number(ctx.process.id().0);
    variables(ctx).into_iter().map(|(name, value, ..)| vec![id(), text(name), value]).collect()
}
