//! Functions with another meaning under `sql_mode=ORACLE`, and the schemas that select a meaning:
//! `mariadb_schema.trim(..)`, `oracle_schema.trim(..)`.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use super::function_names::{aggregate_kind, canonical_name, is_reserved_function};
use crate::ast::Expr;

/// Returns the function that a name means under ORACLE.
pub(super) fn oracle_name(name: &str) -> &str {
    match name {
        "concat" => "concat_operator_oracle",
        "decode" => "decode_oracle",
        "length" => "char_length",
        "lpad" => "lpad_oracle",
        "ltrim" => "ltrim_oracle",
        "replace" => "replace_oracle",
        "rpad" => "rpad_oracle",
        "rtrim" => "rtrim_oracle",
        "substr" | "substring" => "substr_oracle",
        "trim" => "trim_oracle",
        other => other,
    }
}

impl Parser<'_> {
    /// Parses a call of a built-in function qualified by its schema. The parser is at the parenthesis.
    /// Returns `None` if the schema is another one.
    pub(super) fn call_of_schema(&mut self, schema: &str, name: &str) -> SqlResult<Option<Expr>> {
        let is_oracle = match schema {
            "mariadb_schema" => false,
            "oracle_schema" => true,
            _ => return Ok(None),
        };
        let lower = name.to_ascii_lowercase();
        let meant = if is_oracle { oracle_name(&lower) } else { lower.as_str() };
        if is_oracle && lower == "regexp_replace" {
            return Err(self.unsupported("oracle_schema.regexp_replace"));
        }
        // The grammar has special names for these functions, and no schema has them.
        let has_form = ["trim", "trim_oracle", "substr", "substring", "substr_oracle"].contains(&meant);
        let is_call = has_form || meant.starts_with("replace");
        if !is_call
            && (Self::form(&lower).is_some()
                || is_reserved_function(&lower)
                || aggregate_kind(&lower).is_some())
        {
            return Err(SqlError::function_not_defined(name));
        }
        if let (true, Some(call)) = (has_form, self.special_call(meant)?) {
            return Ok(Some(call));
        }
        let name = canonical_name(meant).to_owned();
        Ok(Some(Expr::Function { name, args: self.call_args()? }))
    }
}
