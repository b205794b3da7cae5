//! Lock modes, wait policies, and the keys of metadata locks.

use std::sync::Arc;

/// A set of modes, one bit each.
pub(crate) type ModeSet = u8;

/// Properties of a lock mode that the queue relies on. Modes are ordered: an owner that holds a mode also has
/// every earlier one. Therefore, of two modes that one owner uses together, the later must conflict with
/// everything that the earlier conflicts with.
pub(crate) trait Mode: Copy + Ord {
    /// All modes.
    const ALL: ModeSet;
    /// The set that contains this mode only.
    fn bit(self) -> ModeSet;
    /// Returns the modes that other owners must not hold at the same time.
    fn conflicts(self) -> ModeSet;
}

/// Modes of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowMode {
    /// Compatible with other shared locks.
    Shared,
    /// Incompatible with all other locks.
    Exclusive,
}

impl Mode for RowMode {
    const ALL: ModeSet = 0b11;

    fn bit(self) -> ModeSet {
        1 << self as u8
    }

    fn conflicts(self) -> ModeSet {
        match self {
            RowMode::Shared => RowMode::Exclusive.bit(),
            RowMode::Exclusive => RowMode::Shared.bit() | RowMode::Exclusive.bit(),
        }
    }
}

/// Modes of a metadata lock, weakest first. Rows of the table are modes held, columns are modes requested.
///
/// | held \ requested | SR | SW | SU | SNW | X |
/// |---|---|---|---|---|---|
/// | SharedRead | + | + | + | + | - |
/// | SharedWrite | + | + | + | - | - |
/// | SharedUpgradable | + | + | - | - | - |
/// | SharedNoWrite | + | - | - | + | - |
/// | Exclusive | - | - | - | - | - |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataMode {
    /// A statement that reads the table; on a schema, a statement that uses any object in it.
    SharedRead,
    /// A statement that writes the table.
    SharedWrite,
    /// A DDL statement that will upgrade to [`MetadataMode::Exclusive`]. Others may read and write, but no
    /// second owner may hold this mode.
    SharedUpgradable,
    /// Blocks writers, allows readers and other `SharedNoWrite` locks (`LOCK TABLES ... READ`, `FLUSH TABLES
    /// WITH READ LOCK`). The holder cannot write either, so this mode is not a step up from
    /// [`MetadataMode::SharedWrite`].
    SharedNoWrite,
    /// Incompatible with all other locks.
    Exclusive,
}

impl Mode for MetadataMode {
    const ALL: ModeSet = 0b1_1111;

    fn bit(self) -> ModeSet {
        1 << self as u8
    }

    fn conflicts(self) -> ModeSet {
        use MetadataMode::{Exclusive, SharedNoWrite, SharedRead, SharedUpgradable, SharedWrite};
        match self {
            SharedRead => Exclusive.bit(),
            SharedWrite => SharedNoWrite.bit() | SharedRead.conflicts(),
            SharedUpgradable => SharedUpgradable.bit() | SharedWrite.conflicts(),
            SharedNoWrite => SharedWrite.bit() | SharedUpgradable.bit() | Exclusive.bit(),
            Exclusive => Self::ALL,
        }
    }
}

/// The object that a metadata lock protects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MetadataKey {
    /// The whole server, the global lock: `FLUSH TABLES WITH READ LOCK` takes `SharedNoWrite`, every write
    /// `SharedWrite`.
    Global,
    /// A schema.
    Schema(Arc<str>),
    /// A table or view of a schema.
    Table(Arc<str>, Arc<str>),
    /// All definitions: a DDL statement takes `SharedWrite`, BACKUP STAGE BLOCK_DDL `SharedNoWrite`.
    Definitions,
    /// The right to make a backup: BACKUP STAGE START takes `Exclusive`.
    Backup,
    /// Accounts and their privileges: statements that change accounts take `Exclusive`.
    Accounts,
    /// A stored program of a schema: definitions take `Exclusive`, calls `SharedRead`. The names of all but
    /// triggers are in lower case.
    Program(ProgramKind, Arc<str>, Arc<str>),
    /// A name of GET_LOCK, which takes `Exclusive`.
    User(Arc<str>),
}

/// The kind of a stored program; each has a name space of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramKind {
    Procedure,
    Function,
    Trigger,
    Event,
}

/// How a statement handles a row that another transaction has locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Wait up to `innodb_lock_wait_timeout`.
    #[default]
    Wait,
    /// WAIT n: wait up to this many seconds.
    WaitFor(u32),
    /// NOWAIT: fail immediately with error 1205.
    NoWait,
    /// SKIP LOCKED: skip the row.
    SkipLocked,
    /// Under READ COMMITTED, wait only for a row whose newest version matches (InnoDB's semi-consistent reads
    /// of UPDATE); otherwise as `Wait`.
    IfItMatches,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_chain<M: Mode + std::fmt::Debug>(modes: &[M]) {
        for pair in modes.windows(2) {
            assert_eq!(pair[0].conflicts() & !pair[1].conflicts(), 0, "{pair:?}");
        }
        for &a in modes {
            for &b in modes {
                assert_eq!(a.conflicts() & b.bit() != 0, b.conflicts() & a.bit() != 0, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn modes_are_a_chain_and_conflicts_are_mutual() {
        use MetadataMode::{Exclusive, SharedNoWrite, SharedRead, SharedUpgradable, SharedWrite};
        check_chain(&[RowMode::Shared, RowMode::Exclusive]);
        check_chain(&[SharedRead, SharedWrite, SharedUpgradable, Exclusive]);
        check_chain(&[SharedRead, SharedNoWrite, Exclusive]);
    }

    #[test]
    fn the_matrix_is_this_one() {
        use MetadataMode::{Exclusive, SharedNoWrite, SharedRead, SharedUpgradable, SharedWrite};
        let modes = [SharedRead, SharedWrite, SharedUpgradable, SharedNoWrite, Exclusive];
        let row = |a: MetadataMode| {
            modes.map(|b| if a.conflicts() & b.bit() == 0 { '+' } else { '-' }).iter().collect::<String>()
        };
        assert_eq!(modes.map(row), ["++++-", "+++--", "++---", "+--+-", "-----"]);
    }
}
