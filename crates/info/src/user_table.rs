//! `mysql.user`: the accounts as shown by MariaDB's view of that name, for tools that list them. The table is
//! computed from the catalog. DELETE from it drops accounts.

use std::sync::Arc;

use cohort_catalog::{Account, TlsRequirement};
use cohort_session::{StatementContext, VirtualColumn, VirtualDefinition, VirtualTable, WantedNames};
use cohort_types::{Collation, ColumnType, Decimal, Privilege, SqlResult, TypeKind, Value};

use super::mysql_tables;

/// The columns with Y or N, and the privileges that they show.
pub(super) const PRIVILEGES: [(&str, Privilege); 30] = [
    ("Select_priv", Privilege::Select),
    ("Insert_priv", Privilege::Insert),
    ("Update_priv", Privilege::Update),
    ("Delete_priv", Privilege::Delete),
    ("Create_priv", Privilege::Create),
    ("Drop_priv", Privilege::Drop),
    ("Reload_priv", Privilege::Reload),
    ("Shutdown_priv", Privilege::Shutdown),
    ("Process_priv", Privilege::Process),
    ("File_priv", Privilege::File),
    ("Grant_priv", Privilege::GrantOption),
    ("References_priv", Privilege::References),
    ("Index_priv", Privilege::Index),
    ("Alter_priv", Privilege::Alter),
    ("Show_db_priv", Privilege::ShowDatabases),
    ("Super_priv", Privilege::Super),
    ("Create_tmp_table_priv", Privilege::CreateTemporaryTables),
    ("Lock_tables_priv", Privilege::LockTables),
    ("Execute_priv", Privilege::Execute),
    ("Repl_slave_priv", Privilege::ReplicationSlave),
    ("Repl_client_priv", Privilege::BinlogMonitor),
    ("Create_view_priv", Privilege::CreateView),
    ("Show_view_priv", Privilege::ShowView),
    ("Create_routine_priv", Privilege::CreateRoutine),
    ("Alter_routine_priv", Privilege::AlterRoutine),
    ("Create_user_priv", Privilege::CreateUser),
    ("Event_priv", Privilege::Event),
    ("Trigger_priv", Privilege::Trigger),
    ("Create_tablespace_priv", Privilege::CreateTablespace),
    ("Delete_history_priv", Privilege::DeleteHistory),
];

/// Returns the privilege that a column shows, or `None` for other columns.
pub fn privilege_of_column(column: &str) -> Option<Privilege> {
    PRIVILEGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(column)).map(|(_, privilege)| *privilege)
}

/// The virtual table `mysql.user`.
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
        column("Host", ColumnType::string(TypeKind::Char, 255, Collation::UTF8MB3_BIN)),
        column("User", ColumnType::string(TypeKind::Char, 128, Collation::UTF8MB3_BIN)),
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
    let yes_or_no = |is: bool| Value::text(if is { "Y" } else { "N" });
    let (plugin, text) =
        account.methods.first().map_or(("", ""), |method| (method.plugin.as_str(), method.text.as_str()));
    let password = if plugin == "mysql_native_password" { text } else { "" };
    let mut row = vec![
        Value::text(account.name.1.as_str()),
        Value::text(account.name.0.as_str()),
        Value::text(password),
    ];
    row.extend(PRIVILEGES.iter().map(|(_, privilege)| yes_or_no(account.may(*privilege))));
    let rules = &account.rules;
    row.extend(match &rules.tls {
        TlsRequirement::None => ["", "", "", ""].map(Value::text),
        TlsRequirement::Encrypted => ["ANY", "", "", ""].map(Value::text),
        TlsRequirement::Certificate => ["X509", "", "", ""].map(Value::text),
        TlsRequirement::Specified { cipher, issuer, subject } => {
            ["SPECIFIED", cipher, issuer, subject].map(Value::text)
        }
    });
    let limits = &rules.limits;
    row.extend(
        [limits.queries_per_hour, limits.updates_per_hour, limits.connections_per_hour]
            .map(|limit| Value::UInt(u64::from(limit))),
    );
    row.push(Value::Int(i64::from(limits.user_connections)));
    row.extend([plugin, text].map(Value::text));
    row.extend([yes_or_no(rules.password_changed_at == 0), yes_or_no(account.is_role)]);
    row.push(Value::text(account.default_role.as_str()));
    row.push(Value::Decimal(Decimal::from_i128(i128::from(limits.statement_time_us), 6)));
    row
}

impl VirtualDefinition for UserTable {
    fn schema(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &'static str {
        "user"
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }

    fn is_view(&self) -> bool {
        true
    }
}

impl VirtualTable for UserTable {
    fn create_text(&self) -> String {
        mysql_tables::create_text(self.name()).to_owned()
    }

    fn rows(&self, _: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let catalog = ctx.db.catalog();
        Ok(catalog.accounts.values().map(|account| row(account)).collect())
    }
}
