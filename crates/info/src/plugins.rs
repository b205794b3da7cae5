//! Built-in features that are plugins in MariaDB: SHOW PLUGINS, INSTALL and UNINSTALL.
//!
//! Installing a built-in feature has the result that MariaDB returns when the plugin is already installed, so
//! that scripts for MariaDB work. Other libraries are never loaded.

use cohort_config::VarId;
use cohort_session::{StatementContext, WantedNames};
use cohort_sql::ast::Plugin;
use cohort_types::{SqlError, SqlResult, Value};

use super::schema_table::SchemaTable;

struct BuiltIn {
    name: &'static str,
    kind: &'static str,
    /// MariaDB's library; empty if it is built in there, too.
    library: &'static str,
    description: &'static str,
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "mysql_native_password",
        kind: "AUTHENTICATION",
        library: "",
        description: "Native MySQL authentication",
    },
    BuiltIn {
        name: "unix_socket",
        kind: "AUTHENTICATION",
        library: "",
        description: "Unix Socket based authentication",
    },
    BuiltIn {
        name: "ed25519",
        kind: "AUTHENTICATION",
        library: "auth_ed25519",
        description: "Elliptic curve ED25519 based authentication",
    },
    BuiltIn {
        name: "simple_password_check",
        kind: "PASSWORD VALIDATION",
        library: "simple_password_check",
        description: "Simple password strength checks",
    },
    BuiltIn {
        name: "cracklib_password_check",
        kind: "PASSWORD VALIDATION",
        library: "cracklib_password_check",
        description: "Password validation via CrackLib",
    },
    BuiltIn {
        name: "SERVER_AUDIT",
        kind: "AUDIT",
        library: "server_audit",
        description: "Audit the server activity",
    },
    BuiltIn { name: "binlog", kind: "STORAGE ENGINE", library: "", description: "" },
];

/// Returns the rows of information_schema.plugins.
pub fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let text = |text: &str| Value::text(text);
    let row = |name: &str, kind: &str, description: &str| {
        out.row([
            ("PLUGIN_NAME", text(name)),
            ("PLUGIN_VERSION", text("1.0")),
            ("PLUGIN_STATUS", text("ACTIVE")),
            ("PLUGIN_TYPE", text(kind)),
            ("PLUGIN_TYPE_VERSION", text("1.0")),
            ("PLUGIN_DESCRIPTION", text(description)),
            ("PLUGIN_LICENSE", text("Apache-2.0")),
            ("LOAD_OPTION", text("FORCE")),
            ("PLUGIN_MATURITY", text("Stable")),
        ])
    };
    let mut rows: Vec<_> = BUILT_IN.iter().map(|it| row(it.name, it.kind, it.description)).collect();
    rows.extend(ctx.db.engines.iter().map(|engine| row(engine.name(), "STORAGE ENGINE", "")));
    Ok(rows)
}

/// Runs INSTALL and UNINSTALL.
pub fn run(ctx: &mut StatementContext<'_>, plugin: &Plugin) -> SqlResult<()> {
    let named = plugin.name.as_deref().map(|name| (name, is_there(ctx, name)));
    let library = plugin.library.as_deref().map(|name| name.strip_suffix(".so").unwrap_or(name));
    let has_library = |library: &str| {
        BUILT_IN.iter().any(|it| !it.library.is_empty() && it.library.eq_ignore_ascii_case(library))
    };
    match (plugin.installs, named, library) {
        (true, Some((name, true)), _) => {
            let error = SqlError::plugin_installed(name);
            noted_or(ctx, plugin.if_not, error)
        }
        (true, None, Some(library)) if has_library(library) => Ok(()),
        (true, _, library) => Err(no_library(ctx, library.unwrap_or_default())),
        (false, Some((_, true)), _) => Err(SqlError::builtin_plugin()),
        (false, Some((name, false)), _) => {
            let error = SqlError::does_not_exist("PLUGIN", name);
            noted_or(ctx, plugin.if_not, error)
        }
        (false, None, library) if library.is_some_and(has_library) => Err(SqlError::builtin_plugin()),
        (false, None, library) => {
            Err(SqlError::does_not_exist("SONAME", &format!("{}.so", library.unwrap_or_default())))
        }
    }
}

fn is_there(ctx: &StatementContext<'_>, name: &str) -> bool {
    BUILT_IN.iter().any(|it| it.name.eq_ignore_ascii_case(name)) || ctx.db.engine_named(name).is_some()
}

fn noted_or(ctx: &StatementContext<'_>, is_noted: bool, error: SqlError) -> SqlResult<()> {
    if !is_noted {
        return Err(error);
    }
    ctx.eval.note(error.code, error.message);
    Ok(())
}

/// Returns error 1126, as for a library that does not exist.
fn no_library(ctx: &StatementContext<'_>, library: &str) -> SqlError {
    let directory = ctx.db.globals.text(VarId::PluginDir).unwrap_or_else(|| "".into());
    SqlError::cannot_open_library(&directory, library)
}
