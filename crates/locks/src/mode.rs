//! Modes of locks, and what metadata locks are on.

use std::sync::Arc;

/// A set of modes, one bit each.
pub(crate) type ModeSet = u8;

/// What the queue needs to know of a mode. An owner that has a mode and wants an earlier one has it already;
/// so of two modes that one owner uses together the later must conflict with all that the earlier does.
pub(crate) trait Mode: Copy + Ord {
    /// All modes.
    const ALL: ModeSet;
    /// The set of this mode alone.
    fn bit(self) -> ModeSet;
    /// The modes that another owner must not have at the same time.
    fn conflicts(self) -> ModeSet;
}

/// Modes of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowMode {
    /// Compatible with other shared locks.
    Shared,
    /// Alone.
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

/// Modes of a metadata lock on a table or schema name, weakest first.
///
/// | has \ wants | SR | SW | SU | SNW | X |
/// |---|---|---|---|---|---|
/// | SharedRead | + | + | + | + | - |
/// | SharedWrite | + | + | + | - | - |
/// | SharedUpgradable | + | + | - | - | - |
/// | SharedNoWrite | + | - | - | + | - |
/// | Exclusive | - | - | - | - | - |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataMode {
    /// A statement that reads the table; on a schema: a statement that uses anything in it.
    SharedRead,
    /// A statement that writes the table.
    SharedWrite,
    /// A DDL statement that goes on to [`MetadataMode::Exclusive`]: others read and write, but no second one.
    SharedUpgradable,
    /// Nobody writes; others read, and lock in the same way (`LOCK TABLES ... READ`, `FLUSH TABLES WITH READ
    /// LOCK`). Its holder writes neither: it is no step on the way from [`MetadataMode::SharedWrite`].
    SharedNoWrite,
    /// Alone.
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

/// What a metadata lock is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NameKey {
    /// The whole server: `FLUSH TABLES WITH READ LOCK` takes `SharedNoWrite`, every write `SharedWrite`.
    Global,
    /// A schema.
    Schema(Arc<str>),
    /// A table or view of a schema.
    Table(Arc<str>, Arc<str>),
    /// All definitions: a DDL statement takes `SharedWrite`, BACKUP STAGE BLOCK_DDL `SharedNoWrite`.
    Definitions,
    /// The right to make a backup: BACKUP STAGE START takes `Exclusive`.
    Backup,
    /// Who may log in and do what: statements about accounts take `Exclusive`.
    Accounts,
    /// A name of GET_LOCK, which takes `Exclusive`.
    User(Arc<str>),
}

/// What to do about a row that somebody else has locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Wait up to `innodb_lock_wait_timeout`.
    #[default]
    Wait,
    /// WAIT n: up to so many seconds.
    WaitFor(u32),
    /// NOWAIT: error 1205 at once.
    NoWait,
    /// SKIP LOCKED: the row is not there.
    SkipLocked,
    /// Under READ COMMITTED wait only for a row whose newest version matches (InnoDB's semi-consistent reads
    /// of UPDATE); else as `Wait`.
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
