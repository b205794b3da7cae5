//! The stages of a commit, as names and as types: calling them in the wrong order does not compile.

use std::fmt;

use cohort_base::CommitSeq;

/// A transaction's way from `prepare` to the client's OK. Names functions, failpoints and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Everything that can fail, including room in the log.
    Prepare,
    /// The place in the one order; engines apply.
    Order,
    /// One flush for the group.
    Harden,
    /// Plain reads see it.
    Publish,
    /// The client is told.
    Acknowledge,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Stage; 5] =
        [Stage::Prepare, Stage::Order, Stage::Harden, Stage::Publish, Stage::Acknowledge];

    /// As failpoints and metrics spell it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Prepare => "prepare",
            Stage::Order => "order",
            Stage::Harden => "harden",
            Stage::Publish => "publish",
            Stage::Acknowledge => "acknowledge",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a hardened group may be made to wait, for reasons outside of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Before plain reads see it.
    Publish,
    /// Before its clients are told.
    Acknowledge,
}

/// A moment at which the crash tests may stop the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    Before(Stage),
    After(Stage),
}

impl Point {
    /// `before:harden` and the like.
    pub fn parse(text: &str) -> Option<Point> {
        let (when, name) = text.split_once(':')?;
        let stage = Stage::ALL.into_iter().find(|stage| stage.name() == name)?;
        match when {
            "before" => Some(Point::Before(stage)),
            "after" => Some(Point::After(stage)),
            _ => None,
        }
    }
}

/// A transaction that nothing can stop any more, without a place in the order yet.
///
/// What it brings lies behind a pointer, here and in the later states: on its way it passes a dozen lists.
#[derive(Debug)]
pub struct Prepared<T> {
    trx: Box<T>,
}

/// A transaction with its place; visible to `Latest` reads, not yet safe from a crash.
#[derive(Debug)]
pub struct Ordered<T> {
    seq: CommitSeq,
    trx: Box<T>,
}

/// A transaction that every crash keeps.
#[derive(Debug)]
pub struct Hardened<T> {
    seq: CommitSeq,
    trx: Box<T>,
}

impl<T> Prepared<T> {
    /// The caller has done all that can fail (I6).
    pub fn new(trx: T) -> Prepared<T> {
        Prepared { trx: Box::new(trx) }
    }

    pub(crate) fn order(self, seq: CommitSeq) -> Ordered<T> {
        Ordered { seq, trx: self.trx }
    }

    /// What it brings.
    pub fn get(&self) -> &T {
        &self.trx
    }

    /// Gives the transaction back: it was not ordered and may be rolled back.
    pub fn into_inner(self) -> T {
        *self.trx
    }
}

impl<T> Ordered<T> {
    /// Its place.
    pub fn seq(&self) -> CommitSeq {
        self.seq
    }

    /// What it brings.
    pub fn get(&self) -> &T {
        &self.trx
    }

    /// What it brings, to be completed while it is ordered and written.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.trx
    }

    pub(crate) fn harden(self) -> Hardened<T> {
        Hardened { seq: self.seq, trx: self.trx }
    }
}

impl<T> Hardened<T> {
    /// Its place.
    pub fn seq(&self) -> CommitSeq {
        self.seq
    }

    /// What it brought.
    pub fn get(&self) -> &T {
        &self.trx
    }

    /// What it brought, to be let go.
    pub fn into_inner(self) -> T {
        *self.trx
    }
}
