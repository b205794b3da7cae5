//! What can be granted.
//!
//! A [`Privilege`] has MariaDB's name and bit number; a set of them is [`Privileges`]. Which of them a GRANT
//! may name depends on what it is on: everything, a schema, a table or a column.

use std::fmt;

macro_rules! privileges {
    ($($id:ident = $bit:literal, $name:literal;)*) => {
        /// One privilege; its number is MariaDB's bit in `mysql.global_priv`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Privilege { $($id = $bit,)* }

        impl Privilege {
            /// All, in the order of SHOW GRANTS.
            pub const ALL: &[Privilege] = &[$(Privilege::$id,)*];

            /// As GRANT and SHOW GRANTS spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Privilege::$id => $name,)* }
            }
        }
    };
}

privileges! {
    Select = 0, "SELECT";
    Insert = 1, "INSERT";
    Update = 2, "UPDATE";
    Delete = 3, "DELETE";
    Create = 4, "CREATE";
    Drop = 5, "DROP";
    Reload = 6, "RELOAD";
    Shutdown = 7, "SHUTDOWN";
    Process = 8, "PROCESS";
    File = 9, "FILE";
    GrantOption = 10, "GRANT OPTION";
    References = 11, "REFERENCES";
    Index = 12, "INDEX";
    Alter = 13, "ALTER";
    ShowDatabases = 14, "SHOW DATABASES";
    Super = 15, "SUPER";
    CreateTemporaryTables = 16, "CREATE TEMPORARY TABLES";
    LockTables = 17, "LOCK TABLES";
    Execute = 18, "EXECUTE";
    ReplicationSlave = 19, "REPLICATION SLAVE";
    BinlogMonitor = 20, "BINLOG MONITOR";
    CreateView = 21, "CREATE VIEW";
    ShowView = 22, "SHOW VIEW";
    CreateRoutine = 23, "CREATE ROUTINE";
    AlterRoutine = 24, "ALTER ROUTINE";
    CreateUser = 25, "CREATE USER";
    Event = 26, "EVENT";
    Trigger = 27, "TRIGGER";
    CreateTablespace = 28, "CREATE TABLESPACE";
    DeleteHistory = 29, "DELETE HISTORY";
    SetUser = 30, "SET USER";
    FederatedAdmin = 31, "FEDERATED ADMIN";
    ConnectionAdmin = 32, "CONNECTION ADMIN";
    ReadOnlyAdmin = 33, "READ_ONLY ADMIN";
    ReplicationSlaveAdmin = 34, "REPLICATION SLAVE ADMIN";
    ReplicationMasterAdmin = 35, "REPLICATION MASTER ADMIN";
    BinlogAdmin = 36, "BINLOG ADMIN";
    BinlogReplay = 37, "BINLOG REPLAY";
    SlaveMonitor = 38, "SLAVE MONITOR";
}

impl Privilege {
    /// By a name in upper case; other spellings of the same are known too.
    pub fn named(name: &str) -> Option<Privilege> {
        let name = match name {
            "REPLICATION CLIENT" => "BINLOG MONITOR",
            "REPLICA MONITOR" => "SLAVE MONITOR",
            "REPLICATION REPLICA" => "REPLICATION SLAVE",
            "REPLICATION REPLICA ADMIN" => "REPLICATION SLAVE ADMIN",
            "READ ONLY ADMIN" => "READ_ONLY ADMIN",
            "DELETE VERSIONING ROWS" => "DELETE HISTORY",
            other => other,
        };
        Privilege::ALL.iter().copied().find(|privilege| privilege.name() == name)
    }
}

/// A set of privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Privileges(u64);

impl Privileges {
    /// USAGE.
    pub const NONE: Privileges = Privileges(0);
    /// All there are, GRANT OPTION among them.
    pub const EVERY: Privileges = Privileges::of(Privilege::ALL);
    /// What can be granted on a table.
    pub const OF_TABLE: Privileges = Privileges::of(&[
        Privilege::Select,
        Privilege::Insert,
        Privilege::Update,
        Privilege::Delete,
        Privilege::Create,
        Privilege::Drop,
        Privilege::GrantOption,
        Privilege::References,
        Privilege::Index,
        Privilege::Alter,
        Privilege::CreateView,
        Privilege::ShowView,
        Privilege::Trigger,
        Privilege::DeleteHistory,
    ]);
    /// What can be granted on a schema: that, and what makes things in it.
    pub const OF_SCHEMA: Privileges = Privileges::OF_TABLE.and(Privileges::of(&[
        Privilege::CreateTemporaryTables,
        Privilege::LockTables,
        Privilege::Execute,
        Privilege::CreateRoutine,
        Privilege::AlterRoutine,
        Privilege::Event,
    ]));
    /// What can be granted on a column.
    pub const OF_COLUMN: Privileges =
        Privileges::of(&[Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::References]);

    /// The set of a list.
    pub const fn of(list: &[Privilege]) -> Privileges {
        let (mut bits, mut n) = (0, 0);
        while n < list.len() {
            bits |= 1 << list[n] as u8;
            n += 1;
        }
        Privileges(bits)
    }

    /// Whether one privilege is in the set.
    pub const fn has(self, privilege: Privilege) -> bool {
        self.0 & (1 << privilege as u8) != 0
    }

    /// Whether all of the other set's are in this one.
    pub const fn covers(self, other: Privileges) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether the sets share any.
    pub const fn meets(self, other: Privileges) -> bool {
        self.0 & other.0 != 0
    }

    /// Those of either set.
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Those that are not in the other set.
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Those of both sets.
    pub const fn within(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// With one more.
    pub const fn with(self, privilege: Privilege) -> Privileges {
        Privileges(self.0 | 1 << privilege as u8)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// As `mysql.global_priv` has them.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Those of `mysql.global_priv` that are known.
    pub fn from_bits(bits: u64) -> Privileges {
        Privileges(bits).within(Privileges::EVERY)
    }

    /// In the order of SHOW GRANTS.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.iter().copied().filter(move |privilege| self.has(*privilege))
    }
}

impl From<Privilege> for Privileges {
    fn from(privilege: Privilege) -> Privileges {
        Privileges::NONE.with(privilege)
    }
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<I: IntoIterator<Item = Privilege>>(all: I) -> Privileges {
        all.into_iter().fold(Privileges::NONE, Privileges::with)
    }
}

/// The names with commas between: `INSERT, UPDATE`.
impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, privilege) in self.iter().enumerate() {
            write!(f, "{}{}", if n == 0 { "" } else { ", " }, privilege.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_the_list() {
        for (n, privilege) in Privilege::ALL.iter().enumerate() {
            assert_eq!(*privilege as usize, n);
            assert_eq!(Privilege::named(privilege.name()), Some(*privilege));
        }
        assert_eq!(Privilege::named("REPLICATION CLIENT"), Some(Privilege::BinlogMonitor));
        assert_eq!(Privilege::named("USAGE"), None);
        assert!(Privileges::OF_SCHEMA.covers(Privileges::OF_TABLE));
        assert!(Privileges::OF_TABLE.covers(Privileges::OF_COLUMN));
        let two = Privileges::of(&[Privilege::Update, Privilege::Insert]);
        assert_eq!(two.to_string(), "INSERT, UPDATE");
    }
}
