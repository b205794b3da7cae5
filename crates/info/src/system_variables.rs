//! information_schema.SYSTEM_VARIABLES: the description of every variable.
//!
//! All integers are shown as BIGINT UNSIGNED, whereas MariaDB shows some as INT. The origin of a value only
//! distinguishes built-in defaults from other values.

use cohort_config::{Access, Kind, Scope, SettingScope, VarId};
use cohort_session::{StatementContext, WantedNames};
use cohort_types::{SqlResult, Value};

use super::cells::text;
use super::rows_server::variables;
use super::schema_table::SchemaTable;

/// Returns a kind's type name, minimum, maximum, block size and enumerated values.
fn described(kind: &Kind) -> (&'static str, [Value; 4]) {
    let none = || Value::Null;
    match kind {
        Kind::Bool { .. } => ("BOOLEAN", [none(), none(), none(), text("OFF,ON")]),
        Kind::Int { min, max, block, .. } => {
            let number = |n: &u64| text(n.to_string());
            ("BIGINT UNSIGNED", [number(min), number(max), number(block), none()])
        }
        Kind::Double { min, max, .. } => {
            ("DOUBLE", [text(min.to_string()), text(max.to_string()), none(), none()])
        }
        Kind::Enum { members, .. } => ("ENUM", [none(), none(), none(), text(members.join(","))]),
        Kind::Set { members, .. } => ("SET", [none(), none(), none(), text(members.join(","))]),
        Kind::Text { .. } | Kind::Path { .. } => ("VARCHAR", [none(), none(), none(), none()]),
    }
}

pub fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let (global, session) = (variables(ctx, Scope::Global), variables(ctx, Scope::Session));
    let row = |id: VarId| {
        let setting = id.setting();
        let (kind, [min, max, block, words]) = described(&setting.kind);
        let value = |all: &std::collections::BTreeMap<String, String>| {
            all.get(setting.name).map_or(Value::Null, text)
        };
        let is_default = !setting.has_global_value() || ctx.db.globals.is_default(id);
        let default = match setting.default_value() {
            cohort_config::VarValue::Null => Value::Null,
            value => text(value.to_string()),
        };
        out.row([
            ("VARIABLE_NAME", text(setting.name.to_uppercase())),
            ("SESSION_VALUE", if setting.has_session_value() { value(&session) } else { Value::Null }),
            ("GLOBAL_VALUE", value(&global)),
            ("GLOBAL_VALUE_ORIGIN", text(if is_default { "COMPILE-TIME" } else { "CONFIG" })),
            ("DEFAULT_VALUE", default),
            (
                "VARIABLE_SCOPE",
                text(match setting.scope {
                    SettingScope::Global => "GLOBAL",
                    SettingScope::Session => "SESSION ONLY",
                    SettingScope::Both => "SESSION",
                }),
            ),
            ("VARIABLE_TYPE", text(kind)),
            ("VARIABLE_COMMENT", text(setting.doc)),
            ("NUMERIC_MIN_VALUE", min),
            ("NUMERIC_MAX_VALUE", max),
            ("NUMERIC_BLOCK_SIZE", block),
            ("ENUM_VALUE_LIST", words),
            ("READ_ONLY", text(if setting.access == Access::ReadOnly { "YES" } else { "NO" })),
            (
                "COMMAND_LINE_ARGUMENT",
                match (setting.option, &setting.kind) {
                    (false, _) => Value::Null,
                    (true, Kind::Bool { .. }) => text("OPTIONAL"),
                    (true, _) => text("REQUIRED"),
                },
            ),
        ])
    };
    Ok(VarId::shown().map(row).collect())
}
