//! `mysql.user`: the accounts as MariaDB's view of that name shows them, for tools that ask who there is. It
//! is made from the catalog and cannot be changed; lists of tables leave it out, so that a dump of all
//! databases does not carry it to where it is something else.

use std::sync::Arc;

use cohort_catalog::Account;
use cohort_types::{Collation, ColumnType, Decimal, SqlResult, TypeKind, Value};

use crate::statement::StatementContext;
use crate::virtual_table::{VirtualColumn, VirtualTable, WantedNames};

/// Columns that are Y or N, and what GRANT calls them.
const PRIVILEGES: [(&str, &str); 30] = [
    ("Select_priv", "SELECT"),
    ("Insert_priv", "INSERT"),
    ("Update_priv", "UPDATE"),
    ("Delete_priv", "DELETE"),
    ("Create_priv", "CREATE"),
    ("Drop_priv", "DROP"),
    ("Reload_priv", "RELOAD"),
    ("Shutdown_priv", "SHUTDOWN"),
    ("Process_priv", "PROCESS"),
    ("File_priv", "FILE"),
    ("Grant_priv", "GRANT OPTION"),
    ("References_priv", "REFERENCES"),
    ("Index_priv", "INDEX"),
    ("Alter_priv", "ALTER"),
    ("Show_db_priv", "SHOW DATABASES"),
    ("Super_priv", "SUPER"),
    ("Create_tmp_table_priv", "CREATE TEMPORARY TABLES"),
    ("Lock_tables_priv", "LOCK TABLES"),
    ("Execute_priv", "EXECUTE"),
    ("Repl_slave_priv", "REPLICATION SLAVE"),
    ("Repl_client_priv", "BINLOG MONITOR"),
    ("Create_view_priv", "CREATE VIEW"),
    ("Show_view_priv", "SHOW VIEW"),
    ("Create_routine_priv", "CREATE ROUTINE"),
    ("Alter_routine_priv", "ALTER ROUTINE"),
    ("Create_user_priv", "CREATE USER"),
    ("Event_priv", "EVENT"),
    ("Trigger_priv", "TRIGGER"),
    ("Create_tablespace_priv", "CREATE TABLESPACE"),
    ("Delete_history_priv", "DELETE HISTORY"),
];

/// The table.
struct UserTable {
    columns: Vec<VirtualColumn>,
}

pub(super) fn user_table() -> Arc<dyn VirtualTable> {
    let column = |name, ty| VirtualColumn { name, ty, nullable: false };
    let text = |kind, length| ColumnType::string(kind, length, Collation::UTF8MB3_GENERAL_CI);
    let word = |name, length| column(name, text(TypeKind::VarChar, length));
    let long = |name| column(name, text(TypeKind::LongText, 0));
    let number = |name| column(name, ColumnType::int(TypeKind::BigInt, Some(20), true));
    let mut columns = vec![
        column("Host", text(TypeKind::Char, 255)),
        column("User", text(TypeKind::Char, 128)),
        long("Password"),
    ];
    columns.extend(PRIVILEGES.iter().map(|(name, _)| word(name, 1)));
    columns.push(word("ssl_type", 9));
    columns.extend(["ssl_cipher", "x509_issuer", "x509_subject"].map(long));
    columns.extend(["max_questions", "max_updates", "max_connections"].map(number));
    columns.push(column("max_user_connections", ColumnType::int(TypeKind::BigInt, Some(21), false)));
    columns.extend(["plugin", "authentication_string"].map(long));
    columns.extend(["password_expired", "is_role"].map(|name| word(name, 1)));
    columns.push(long("default_role"));
    columns.push(column("max_statement_time", ColumnType::decimal(12, 6)));
    Arc::new(UserTable { columns })
}

fn row(account: &Account) -> Vec<Value> {
    let has = |privilege: &str| {
        let is_named = account.privileges.iter().any(|own| own == privilege);
        let has_all = account.privileges.iter().any(|own| own == "ALL PRIVILEGES");
        is_named || (has_all && privilege != "GRANT OPTION")
    };
    let yes_or_no = |is: bool| Value::text(if is { "Y" } else { "N" });
    let mut password = String::new();
    if !account.auth.is_empty() {
        password.push('*');
        account.auth.iter().for_each(|byte| password += &format!("{byte:02X}"));
    }
    let mut row = vec![
        Value::text(account.host.as_str()),
        Value::text(account.user.as_str()),
        Value::text(password.as_str()),
    ];
    row.extend(PRIVILEGES.iter().map(|(_, privilege)| yes_or_no(has(privilege))));
    row.extend(["", "", "", ""].map(Value::text));
    row.extend([Value::UInt(0), Value::UInt(0), Value::UInt(0), Value::Int(0)]);
    row.extend([Value::text(account.plugin.as_str()), Value::text(password.as_str())]);
    row.extend([yes_or_no(false), yes_or_no(false), Value::text("")]);
    row.push(Value::Decimal(Decimal::ZERO));
    row
}

impl VirtualTable for UserTable {
    fn schema(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &'static str {
        "user"
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn rows(&self, _: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        // It shows the passwords' hashes.
        crate::ddl::check_privilege(ctx.session, "SELECT", Some("mysql"), Some("user"))?;
        let catalog = ctx.db.catalog();
        Ok(catalog.accounts.iter().map(row).collect())
    }
}
