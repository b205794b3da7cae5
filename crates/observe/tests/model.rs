//! Model checks: statements that end while rows are evicted, reset and read, and values that are retracted
//! while they are read, under a scheduler that explores interleavings.
//!
//! The crate's files are compiled here again, with the locks and atomics of `cohort_interleave`.
//!
//! # Mutations that were found
//! | mutation | check |
//! |---|---|
//! | a shard is emptied before the generation is raised | `nothing_is_lost` |
//! | a statement checks the generation before it locks a shard | `nothing_is_lost` |
//! | a reader copies rows while sums move | `a_reader_sees_each_statement_once` |
//! | the owner looks for readers before it exchanges the pointer | `a_published_value_outlives_its_readers` |
//! | the reader loads the pointer before it stores its mark | `a_published_value_outlives_its_readers` |
//! | the owner does not wait | `a_published_value_outlives_its_readers` |
#![allow(dead_code)]

#[path = "../src/directory.rs"]
mod directory;
#[path = "../src/latencies.rs"]
mod latencies;
#[path = "../src/measured.rs"]
mod measured;
#[path = "../src/published.rs"]
mod published;
#[path = "../src/shards.rs"]
mod shards;
#[path = "../src/statements.rs"]
mod statements;

/// The module that the files import as `crate::sync`.
mod sync {
    pub use cohort_interleave::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, RwLock,
    };

    pub const PIECE: usize = 1;
}

use std::sync::Arc;

use cohort_interleave::{check, choose, thread};

use crate::directory::StatementKey;
use crate::measured::{Measure, Measured};
use crate::published::Published;
use crate::statements::Statements;

const SCHEDULES: usize = 400;

fn run(statements: &Statements, shard: usize, digest: u128) {
    let key = StatementKey { schema: None, digest, is_nested: false };
    let text = Arc::from("SELECT ?");
    let mut measured = Measured::default();
    measured.add(Measure::Calls, 1);
    let intern = || statements.intern(&key, &text, 0, 1);
    let known = Some(intern());
    statements.count(shard, (0, false), &measured, 1, known, intern);
}

fn calls(statements: &Statements) -> u64 {
    statements.rows().iter().map(|row| row.totals.sums.get(Measure::Calls)).sum()
}

/// Statistics for about two rows.
fn small() -> Arc<Statements> {
    Arc::new(Statements::new(1, 1536, 2, 0))
}

#[test]
fn nothing_is_lost() {
    check(SCHEDULES, || {
        let statements = small();
        let ran: Vec<_> = (0..3)
            .map(|n| {
                let statements = Arc::clone(&statements);
                thread::spawn(move || (0..3).for_each(|_| run(&statements, n, u128::from(choose(4)))))
            })
            .collect();
        ran.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
        assert_eq!(calls(&statements), 9);
    });
}

#[test]
fn a_reader_sees_each_statement_once() {
    check(SCHEDULES, || {
        let statements = small();
        (0..4).for_each(|digest| run(&statements, 0, digest));
        let writer = Arc::clone(&statements);
        let ran = thread::spawn(move || (0..4).for_each(|n| run(&writer, 1, 10 + n)));
        let mut before = 4;
        for _ in 0..2 {
            let now = calls(&statements);
            assert!((before..=8).contains(&now), "{before} {now}");
            before = now;
        }
        ran.join().expect("no thread fails");
        assert_eq!(calls(&statements), 8);
    });
}

#[test]
fn a_reset_removes_whole_statements() {
    check(SCHEDULES, || {
        let statements = small();
        let writer = Arc::clone(&statements);
        let ran = thread::spawn(move || (0..3).for_each(|n| run(&writer, 1, n % 2)));
        statements.reset();
        assert!(calls(&statements) <= 3);
        ran.join().expect("no thread fails");
        let all = calls(&statements);
        assert!(all <= 3, "{all}");
        run(&statements, 0, 1);
        assert_eq!(calls(&statements), all + 1);
    });
}

/// A value that notes its end.
#[derive(Default)]
struct Value {
    is_gone: sync::AtomicBool,
}

impl Value {
    fn is_gone(&self) -> bool {
        self.is_gone.load(sync::Ordering::SeqCst)
    }
}

/// The values stay in memory, so that a reader that comes too late fails an assertion only.
#[test]
fn a_published_value_outlives_its_readers() {
    check(SCHEDULES, || {
        let published: Arc<Published<Value>> = Arc::default();
        let values: Arc<[Value; 3]> = Arc::default();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let published = Arc::clone(&published);
                thread::spawn(move || {
                    (0..2).for_each(|_| {
                        published.read(|value| {
                            assert!(!value.is_gone() && !value.is_gone(), "a value that is gone is read");
                        });
                    });
                })
            })
            .collect();
        let gone = |value: &Value| value.is_gone.store(true, sync::Ordering::SeqCst);
        published.during(&values[0], || {
            published.during(&values[1], || ());
            gone(&values[1]);
        });
        gone(&values[0]);
        published.during(&values[2], || ());
        gone(&values[2]);
        readers.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
        assert!(published.read(|_| ()).is_none());
    });
}
