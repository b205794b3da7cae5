//! Privileges that can be granted.
//!
//! A [`Privilege`] has MariaDB's name and bit number; [`Privileges`] is a set of them. The privileges that a
//! GRANT may name depend on its object: everything, a schema, a table or a column.

use std::fmt;

macro_rules! privileges {
    ($($id:ident = $bit:literal, $name:literal;)*) => {
        /// A privilege. Its number is MariaDB's bit in `mysql.global_priv`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Privilege { $($id = $bit,)* }

        impl Privilege {
            /// All privileges, in the order of SHOW GRANTS.
            pub const ALL: &[Privilege] = &[$(Privilege::$id,)*];

            /// Returns the name in GRANT and SHOW GRANTS.
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
    // MySQL's names. MariaDB has no such privileges, so their bits are none of `mysql.global_priv`.
    BackupAdmin = 56, "BACKUP_ADMIN";
    CloneAdmin = 57, "CLONE_ADMIN";
}

impl Privilege {
    /// Finds a privilege by its name in upper case. Alternative names are known, too.
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
    /// The empty set, USAGE.
    pub const NONE: Privileges = Privileges(0);
    /// All privileges, including GRANT OPTION.
    pub const EVERY: Privileges = Privileges::of(Privilege::ALL);
    /// The privileges that MariaDB does not know. `mysql.global_priv` has them apart from its bits, and SHOW
    /// GRANTS and the binary log have them in statements that MariaDB skips.
    pub const UNKNOWN_TO_MARIADB: Privileges =
        Privileges::of(&[Privilege::BackupAdmin, Privilege::CloneAdmin]);
    /// The privileges that can be granted on a table.
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
    /// The privileges that can be granted on a schema: those of tables, and those that create objects in it.
    pub const OF_SCHEMA: Privileges = Privileges::OF_TABLE.and(Privileges::of(&[
        Privilege::CreateTemporaryTables,
        Privilege::LockTables,
        Privilege::Execute,
        Privilege::CreateRoutine,
        Privilege::AlterRoutine,
        Privilege::Event,
    ]));
    /// The privileges that can be granted on a routine.
    pub const OF_ROUTINE: Privileges =
        Privileges::of(&[Privilege::GrantOption, Privilege::Execute, Privilege::AlterRoutine]);
    /// The privileges that can be granted on a column.
    pub const OF_COLUMN: Privileges =
        Privileges::of(&[Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::References]);

    /// Returns the set of the privileges in a list.
    pub const fn of(list: &[Privilege]) -> Privileges {
        let (mut bits, mut n) = (0, 0);
        while n < list.len() {
            bits |= 1 << list[n] as u8;
            n += 1;
        }
        Privileges(bits)
    }

    /// Returns whether the set contains `privilege`.
    pub const fn has(self, privilege: Privilege) -> bool {
        self.0 & (1 << privilege as u8) != 0
    }

    /// Returns whether the set contains all of `other`.
    pub const fn covers(self, other: Privileges) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns whether the sets intersect.
    pub const fn meets(self, other: Privileges) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union.
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Returns the difference.
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Returns the intersection.
    pub const fn within(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// Returns the set with one more privilege.
    pub const fn with(self, privilege: Privilege) -> Privileges {
        Privileges(self.0 | 1 << privilege as u8)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the bits of `mysql.global_priv`.
    pub const fn bits(self) -> u64 {
        self.without(Privileges::UNKNOWN_TO_MARIADB).0
    }

    /// Returns the known privileges among bits of `mysql.global_priv`. An account with all of them has those
    /// that MariaDB does not know, too.
    pub fn from_bits(bits: u64) -> Privileges {
        let known = Privileges::EVERY.without(Privileges::UNKNOWN_TO_MARIADB);
        let held = Privileges(bits).within(known);
        match held.covers(known.without(Privilege::GrantOption.into())) {
            true => held.and(Privileges::UNKNOWN_TO_MARIADB),
            false => held,
        }
    }

    /// Iterates over the set in the order of SHOW GRANTS.
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

/// Formats the names separated by commas: `INSERT, UPDATE`.
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
            let is_known = !Privileges::UNKNOWN_TO_MARIADB.has(*privilege);
            assert!(if is_known { *privilege as usize == n } else { *privilege as usize > 50 });
            assert_eq!(Privilege::named(privilege.name()), Some(*privilege));
        }
        assert_eq!(Privilege::named("REPLICATION CLIENT"), Some(Privilege::BinlogMonitor));
        assert_eq!(Privilege::named("USAGE"), None);
        let all = Privileges::EVERY.without(Privilege::GrantOption.into());
        assert_eq!(all.bits(), (1 << 39) - 1 - (1 << 10));
        assert_eq!(Privileges::from_bits(all.bits()), all);
        assert_eq!(
            Privileges::from_bits(u64::MAX >> 1 & !1).within(Privileges::UNKNOWN_TO_MARIADB),
            Privileges::NONE
        );
        assert!(Privileges::OF_SCHEMA.covers(Privileges::OF_TABLE));
        assert!(Privileges::OF_TABLE.covers(Privileges::OF_COLUMN));
        let two = Privileges::of(&[Privilege::Update, Privilege::Insert]);
        assert_eq!(two.to_string(), "INSERT, UPDATE");
    }
}
