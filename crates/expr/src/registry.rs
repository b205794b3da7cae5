//! The registry: all functions by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::function::Function;

/// Functions by module.
static FAMILIES: &[&[Function]] = &[
    crate::arith::FUNCTIONS,
    crate::bits::FUNCTIONS,
    crate::control::FUNCTIONS,
    crate::math::FUNCTIONS,
    crate::text_size::FUNCTIONS,
    crate::text_cut::FUNCTIONS,
    crate::text_build::FUNCTIONS,
    crate::text_code::FUNCTIONS,
    crate::regex::FUNCTIONS,
    crate::hash::FUNCTIONS,
    crate::info::FUNCTIONS,
    crate::replication::FUNCTIONS,
    crate::load_file::FUNCTIONS,
    crate::date_now::FUNCTIONS,
    crate::date_part::FUNCTIONS,
    crate::date_calc::FUNCTIONS,
    crate::date_format::FUNCTIONS,
    crate::to_char::FUNCTIONS,
    crate::date_parse::FUNCTIONS,
    crate::json_read::FUNCTIONS,
    crate::json_write::FUNCTIONS,
    crate::json_search::FUNCTIONS,
    crate::net::FUNCTIONS,
    crate::text_zip::FUNCTIONS,
    crate::text_secret::FUNCTIONS,
    crate::text_weight::FUNCTIONS,
    crate::text_oracle::FUNCTIONS,
    crate::sformat::FUNCTIONS,
    crate::dynamic_columns::FUNCTIONS,
    crate::xml_functions::FUNCTIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> =
    LazyLock::new(|| FAMILIES.iter().flat_map(|family| family.iter()).map(|f| (f.name, f)).collect());

/// Returns all functions in no particular order: lower-case name, minimum and maximum number of arguments.
pub fn functions() -> impl Iterator<Item = (&'static str, usize, usize)> {
    BY_NAME.values().map(|function| (function.name, function.args_min, function.args_max))
}

/// Returns the function with a lower-case name.
pub(crate) fn lookup(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name).copied()
}
