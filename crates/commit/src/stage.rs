//! The stages of a commit, as names and as types: calling them in the wrong order does not compile.

use std::fmt;

use cohort_base::CommitSeq;

/// A stage between `prepare` and the client's OK. Functions, failpoints and metrics use these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Everything that can fail, including reserving space in the log.
    Prepare,
    /// The transaction gets its CommitSeq and engines apply it.
    Order,
    /// One flush makes the group durable.
    Flush,
    /// Plain reads see the transaction.
    Publish,
    /// The client gets its reply.
    Acknowledge,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Stage; 5] =
        [Stage::Prepare, Stage::Order, Stage::Flush, Stage::Publish, Stage::Acknowledge];

    /// Returns the name used by failpoints and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Prepare => "prepare",
            Stage::Order => "order",
            Stage::Flush => "flush",
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

/// A point where a durable group may have to wait, for reasons outside of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Before the group may be archived, and plain reads see it: replicas (AFTER_SYNC).
    Publish,
    /// After that, before plain reads see it: the archive.
    Archive,
    /// Before its clients get their replies: replicas (AFTER_COMMIT).
    Acknowledge,
}

/// A point at which crash tests may stop the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    Before(Stage),
    After(Stage),
}

impl Point {
    /// Parses a text like `before:flush`.
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

/// A transaction that can no longer fail, and has no CommitSeq yet.
///
/// Its content is boxed, in this and the later states, because a transaction is moved through a dozen lists.
#[derive(Debug)]
pub struct Prepared<T> {
    trx: Box<T>,
}

/// A transaction with its CommitSeq; visible to `Latest` reads, not yet durable.
#[derive(Debug)]
pub struct Ordered<T> {
    seq: CommitSeq,
    trx: Box<T>,
}

/// A durable transaction: it survives any crash.
#[derive(Debug)]
pub struct Durable<T> {
    seq: CommitSeq,
    trx: Box<T>,
}

impl<T> Prepared<T> {
    /// Wraps a transaction. The caller has done everything that can fail (I6).
    pub fn new(trx: T) -> Prepared<T> {
        Prepared { trx: Box::new(trx) }
    }

    pub(crate) fn order(self, seq: CommitSeq) -> Ordered<T> {
        Ordered { seq, trx: self.trx }
    }

    /// Returns the content.
    pub fn get(&self) -> &T {
        &self.trx
    }

    /// Unwraps a transaction that was not ordered and may be rolled back.
    pub fn into_inner(self) -> T {
        *self.trx
    }
}

impl<T> Ordered<T> {
    /// Returns the CommitSeq.
    pub fn seq(&self) -> CommitSeq {
        self.seq
    }

    /// Returns the content.
    pub fn get(&self) -> &T {
        &self.trx
    }

    /// Returns the content, to be completed at the order stage and when it is written.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.trx
    }

    pub(crate) fn into_durable(self) -> Durable<T> {
        Durable { seq: self.seq, trx: self.trx }
    }
}

impl<T> Durable<T> {
    /// Returns the CommitSeq.
    pub fn seq(&self) -> CommitSeq {
        self.seq
    }

    /// Returns the content.
    pub fn get(&self) -> &T {
        &self.trx
    }

    /// Unwraps the content, to release it.
    pub fn into_inner(self) -> T {
        *self.trx
    }
}
