//! Tables of the schemas `mysql` and `performance_schema` that tools read, with columns as recorded from
//! MariaDB 10.11. The tables of `mysql` show privileges, roles, proxies, routines and events; those of HELP
//! are empty. The rows of `performance_schema` are computed by `performance/`.

use std::sync::Arc;

use cohort_catalog::AdminOption;
use cohort_session::{
    Replaceable, StatementContext, VirtualColumn, VirtualDefinition, VirtualTable, WantedNames,
    default_create_text,
};
use cohort_types::{Collation, ColumnType, Privilege, Privileges, SqlResult, Value};

use super::mysql_tables;
use super::recorded_type::column_type;
use super::user_table::PRIVILEGES;
use super::{events, performance, routines};

/// `[schema.table]`, followed by a line per column with tab-separated fields: name, type, `null` if nullable,
/// and the collation if it is not the usual one.
const TABLES: &str = include_str!("server_tables.txt");

struct ServerTable {
    schema: &'static str,
    name: &'static str,
    columns: Vec<VirtualColumn>,
}

/// Returns all of these tables.
pub(super) fn server_tables() -> Vec<Arc<dyn VirtualTable>> {
    let mut tables: Vec<ServerTable> = Vec::new();
    for line in TABLES.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (schema, name) = name.split_once('.').expect("a schema stands before the table");
            tables.push(ServerTable { schema, name, columns: Vec::new() });
            continue;
        }
        let mut fields = line.split('\t');
        let (name, ty) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let nullable = fields.next() == Some("null");
        let collation = fields.next().and_then(Collation::by_name).unwrap_or(Collation::UTF8MB3_GENERAL_CI);
        let table = tables.last_mut().expect("a table's name comes before its columns");
        table.columns.push(VirtualColumn { name, ty: column_type(ty, collation), nullable });
    }
    tables.into_iter().map(|table| Arc::new(table) as Arc<dyn VirtualTable>).collect()
}

/// Returns a privilege's name as used in the SET columns of the privilege tables.
fn grant_word(privilege: Privilege) -> &'static str {
    match privilege {
        Privilege::GrantOption => "Grant",
        Privilege::AlterRoutine => "Alter Routine",
        Privilege::CreateView => "Create View",
        Privilege::ShowView => "Show view",
        Privilege::DeleteHistory => "Delete versioning rows",
        other => {
            let known = PRIVILEGES.iter().find(|(_, known)| *known == other);
            known.map_or("", |(column, _)| column.trim_end_matches("_priv"))
        }
    }
}

/// Returns the privileges that a SET column of the privilege tables lists.
pub fn privileges_of_words(text: &str) -> Privileges {
    let named =
        |word: &str| Privilege::ALL.iter().find(|known| grant_word(**known).eq_ignore_ascii_case(word));
    // Privileges that these columns do not show have no word.
    text.split(',')
        .filter(|word| !word.is_empty())
        .filter_map(named)
        .fold(Privileges::NONE, |all, privilege| all.with(*privilege))
}

/// Returns the value of a SET column of privileges.
fn set_of(ty: &ColumnType, held: Privileges) -> Value {
    let is_held =
        |member: &str| PRIVILEGES.iter().any(|(_, known)| held.has(*known) && grant_word(*known) == member);
    let bits = ty.members.iter().enumerate().filter(|(_, member)| is_held(member));
    ty.set_value(bits.fold(0, |bits, (n, _)| bits | 1 << n)).unwrap_or(Value::Null)
}

impl ServerTable {
    /// Returns the rows of `roles_mapping`.
    fn roles(&self, ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
        let catalog = ctx.db.catalog();
        let mut rows = Vec::new();
        for account in catalog.accounts.values() {
            let (user, host) = &account.name;
            for (role, admin) in &account.roles {
                let cell = |column: &VirtualColumn| match column.name {
                    "Host" => Value::text(host.as_str()),
                    "User" => Value::text(user.as_str()),
                    "Role" => Value::text(role.as_str()),
                    _ => {
                        let place = if *admin == AdminOption::With { 2 } else { 1 };
                        column.ty.enum_value(place).unwrap_or(Value::Null)
                    }
                };
                rows.push(self.columns.iter().map(cell).collect());
            }
        }
        rows
    }

    /// Returns the rows of `proxies_priv`. Grantor and time are not stored.
    fn proxies(&self, ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
        let catalog = ctx.db.catalog();
        let mut rows = Vec::new();
        for account in catalog.accounts.values() {
            let (user, host) = &account.name;
            for ((proxied, proxied_host), option) in &account.proxies {
                let cell = |column: &VirtualColumn| match column.name {
                    "Host" => Value::text(host.as_str()),
                    "User" => Value::text(user.as_str()),
                    "Proxied_host" => Value::text(proxied_host.as_str()),
                    "Proxied_user" => Value::text(proxied.as_str()),
                    "With_grant" => Value::Int(i64::from(*option == AdminOption::With)),
                    "Timestamp" => Value::Timestamp(0),
                    _ => Value::text(""),
                };
                rows.push(self.columns.iter().map(cell).collect());
            }
        }
        rows
    }

    /// Returns the rows of `procs_priv`. Grantor and time are not stored.
    fn routine_grants(&self, ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
        let catalog = ctx.db.catalog();
        let mut rows = Vec::new();
        for account in catalog.accounts.values() {
            let (user, host) = &account.name;
            for (routine, held) in &account.grants.routines {
                let cell = |column: &VirtualColumn| match column.name {
                    "Host" => Value::text(host.as_str()),
                    "Db" => Value::text(routine.schema.as_str()),
                    "User" => Value::text(user.as_str()),
                    "Routine_name" => Value::text(routine.name.as_str()),
                    "Routine_type" => routines::member(column, routine.kind.name()),
                    "Proc_priv" => set_of(&column.ty, *held),
                    "Timestamp" => Value::Timestamp(0),
                    _ => Value::text(""),
                };
                rows.push(self.columns.iter().map(cell).collect());
            }
        }
        rows
    }

    /// Returns the rows of `tables_priv` and `columns_priv`. Grantor and time are not stored.
    fn table_grants(&self, ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
        let catalog = ctx.db.catalog();
        let mut rows = Vec::new();
        for account in catalog.accounts.values() {
            let (user, host) = &account.name;
            for (table, grant) in &account.grants.tables {
                let of_columns = grant.columns.values().fold(Privileges::NONE, |all, held| all.and(*held));
                let columns: Vec<(&str, Privileges)> = match self.name {
                    "tables_priv" => vec![("", of_columns)],
                    _ => grant.columns.iter().map(|(name, held)| (&**name, *held)).collect(),
                };
                for (name, held) in columns {
                    let cell = |column: &VirtualColumn| match column.name {
                        "Host" => Value::text(host.as_str()),
                        "Db" => Value::text(table.schema.as_str()),
                        "User" => Value::text(user.as_str()),
                        "Table_name" => Value::text(table.table.as_str()),
                        "Column_name" => Value::text(name),
                        "Table_priv" => set_of(&column.ty, grant.table),
                        "Column_priv" => set_of(&column.ty, held),
                        "Timestamp" => Value::Timestamp(0),
                        _ => Value::text(""),
                    };
                    rows.push(self.columns.iter().map(cell).collect());
                }
            }
        }
        rows
    }
}

impl VirtualDefinition for ServerTable {
    fn schema(&self) -> &'static str {
        self.schema
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }
}

impl VirtualTable for ServerTable {
    /// The texts of HELP are not part of the server. A dump that lists the tables of HELP would remove the
    /// texts from another server.
    fn is_listed(&self) -> bool {
        self.schema != "mysql" || !self.name.starts_with("help_")
    }

    fn replaceable(&self) -> Replaceable {
        match self.schema {
            "mysql" if self.name.starts_with("help_") => Replaceable::UntilDropped,
            "mysql" => Replaceable::UntilFlushPrivileges,
            _ => Replaceable::Never,
        }
    }

    fn create_text(&self) -> String {
        match self.schema {
            "mysql" => mysql_tables::create_text(self.name).to_owned(),
            _ => default_create_text(self),
        }
    }

    fn rows(&self, _: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        if self.schema == "mysql" && matches!(self.name, "tables_priv" | "columns_priv") {
            return Ok(self.table_grants(ctx));
        }
        if (self.schema, self.name) == ("mysql", "proxies_priv") {
            return Ok(self.proxies(ctx));
        }
        if self.schema == "performance_schema" {
            return Ok(performance::rows(self.name, &self.columns, ctx));
        }
        if (self.schema, self.name) == ("mysql", "roles_mapping") {
            return Ok(self.roles(ctx));
        }
        match (self.schema, self.name) {
            ("mysql", "db") => {}
            ("mysql", "proc") => return Ok(routines::proc_rows(&self.columns, ctx)),
            ("mysql", "event") => return Ok(events::event_rows(&self.columns, ctx)),
            ("mysql", "procs_priv") => return Ok(self.routine_grants(ctx)),
            _ => return Ok(Vec::new()),
        }
        let catalog = ctx.db.catalog();
        let mut rows = Vec::new();
        for account in catalog.accounts.values() {
            let (user, host) = &account.name;
            for (schema, held) in &account.grants.schemas {
                let cell = |column: &VirtualColumn| match column.name {
                    "Host" => Value::text(host.as_str()),
                    "Db" => Value::text(schema.as_str()),
                    "User" => Value::text(user.as_str()),
                    name => {
                        let known = PRIVILEGES.iter().find(|(known, _)| *known == name);
                        let privilege = known.map_or(Privilege::DeleteHistory, |(_, privilege)| *privilege);
                        column.ty.enum_value(if held.has(privilege) { 2 } else { 1 }).unwrap_or(Value::Null)
                    }
                };
                rows.push(self.columns.iter().map(cell).collect());
            }
        }
        Ok(rows)
    }
}
