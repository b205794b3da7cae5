//! Names of functions that the grammar knows: synonyms, reserved words, aggregates.

use std::ops::RangeInclusive;

use crate::ast::AggregateKind;

/// Returns the canonical name of a function with synonyms.
pub(super) fn canonical_name(name: &str) -> &str {
    match name {
        "current_timestamp" | "localtime" | "localtimestamp" => "now",
        "current_date" => "curdate",
        "current_time" => "curtime",
        "substr" | "mid" => "substring",
        "session_user" | "system_user" => "user",
        other => other,
    }
}

/// Returns whether a reserved word is a function if a parenthesis follows.
pub(super) fn is_reserved_function(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "if",
        "left",
        "right",
        "replace",
        "insert",
        "mod",
        "repeat",
        "interval",
        "current_user",
        "current_role",
        "database",
        "schema",
        "truncate",
        "row_number",
    ];
    NAMES.contains(&name)
}

pub(super) fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    use AggregateKind as Kind;
    Some(match name {
        "count" => Kind::Count,
        "sum" => Kind::Sum,
        "avg" => Kind::Avg,
        "min" => Kind::Min,
        "max" => Kind::Max,
        "bit_and" => Kind::BitAnd,
        "bit_or" => Kind::BitOr,
        "bit_xor" => Kind::BitXor,
        "std" | "stddev" | "stddev_pop" => Kind::StdDevPop,
        "stddev_samp" => Kind::StdDevSamp,
        "variance" | "var_pop" => Kind::VarPop,
        "var_samp" => Kind::VarSamp,
        "group_concat" => Kind::GroupConcat,
        "json_arrayagg" => Kind::JsonArrayAgg,
        "json_objectagg" => Kind::JsonObjectAgg,
        _ => return None,
    })
}

/// Returns the numbers of arguments that the grammar gives a window function. LAST_VALUE is also a plain
/// function.
pub fn window_arguments(name: &str) -> Option<RangeInclusive<usize>> {
    Some(match name {
        "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" => 0..=0,
        "ntile" | "first_value" | "median" | "percentile_cont" | "percentile_disc" => 1..=1,
        "nth_value" => 2..=2,
        "lag" | "lead" => 1..=2,
        _ => return None,
    })
}
