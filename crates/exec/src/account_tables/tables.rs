//! The tables that show accounts and programs, and their rows.

use cohort_types::Value;

/// A `mysql` table that shows accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountTable {
    GlobalPriv,
    User,
    Db,
    TablesPriv,
    ColumnsPriv,
    ProcsPriv,
    RolesMapping,
    ProxiesPriv,
    /// `proc` and `event`: rows can only be deleted.
    Proc,
    Event,
}

pub(super) const SCHEMA: &str = "mysql";

impl AccountTable {
    pub(super) fn has_programs(self) -> bool {
        matches!(self, AccountTable::Proc | AccountTable::Event)
    }

    pub(super) const ALL: [(&'static str, AccountTable); 10] = [
        ("global_priv", AccountTable::GlobalPriv),
        ("user", AccountTable::User),
        ("db", AccountTable::Db),
        ("tables_priv", AccountTable::TablesPriv),
        ("columns_priv", AccountTable::ColumnsPriv),
        ("procs_priv", AccountTable::ProcsPriv),
        ("proc", AccountTable::Proc),
        ("event", AccountTable::Event),
        ("roles_mapping", AccountTable::RolesMapping),
        ("proxies_priv", AccountTable::ProxiesPriv),
    ];

    pub(super) fn name(self) -> &'static str {
        let (name, _) = AccountTable::ALL.iter().find(|(_, table)| *table == self).expect("all are listed");
        name
    }
}

/// A row of an account table, with its column names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) names: Vec<&'static str>,
    pub(super) values: Vec<Value>,
}

impl Row {
    /// Returns a column as text, empty for NULL and for an unknown column.
    pub(super) fn text(&self, name: &str) -> String {
        let place = self.names.iter().position(|known| known.eq_ignore_ascii_case(name));
        let value = place.map(|place| &self.values[place]).filter(|value| !value.is_null());
        value.map_or_else(String::new, Value::to_text)
    }

    /// Returns user and host.
    pub(super) fn account(&self) -> (String, String) {
        (self.text("User"), self.text("Host"))
    }
}
