//! XA branches over both engines, prepared and ended through the commit path without SQL, and the checks
//! after a crash.
//!
//! The workload is one sequence of *halves*: PREPARE 0, PREPARE 1, end of 0, PREPARE 2, end of 1, ... A third
//! of the branches is rolled back. A crash keeps a prefix of the sequence (I1). The prefix determines which
//! branches are prepared and what the engines contain: binlog, prepared branches and both engines must match
//! the same prefix.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use cohort_base::{Budget, CommitSeq, IndexId, Reservation, ServerId, TrxId};
use cohort_binlog::event::{Event, QueryEvent, StatusVars, XaPrepare, XaXid};
use cohort_binlog::{CacheOptions, EventReader, Stamp, TrxCache};
use cohort_commit::{
    BinlogPart, CommitRequest, GroupKind, XA, XaBody, XaBodyBuilder, XaHead, XaHeld, XaTaker, XaWrite,
    end_redo,
};
use cohort_engine::{Batch, Engine, EngineTrx, KeyRange, ReadAt, ScanRequest};
use cohort_locks::{KillFlag, LockOwner, RowMode, WaitLimit};

use crate::bank::Violation;
use crate::replica::Replica;
use crate::world::{Disk, World, part};

/// Index from branch number to filler, in both engines.
const MARKS: IndexId = IndexId(60);
/// Every `LARGE_EVERY`-th branch writes a value of `LARGE_BYTES` bytes.
const LARGE_EVERY: u64 = 4;
const LARGE_BYTES: usize = 9000;

/// One half of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Prepare(u64),
    End(u64),
}

impl Half {
    /// Returns the half at a position of the sequence.
    fn at(place: u64) -> Half {
        match place {
            0 => Half::Prepare(0),
            place if place % 2 == 1 => Half::Prepare(place.div_ceil(2)),
            place => Half::End(place / 2 - 1),
        }
    }

    fn text(self) -> String {
        match self {
            Half::Prepare(n) => format!("prepare {n}"),
            Half::End(n) => format!("end {n}"),
        }
    }
}

fn commits(n: u64) -> bool {
    !n.is_multiple_of(3)
}

fn value(n: u64) -> Vec<u8> {
    vec![n as u8; if n % LARGE_EVERY == 1 { LARGE_BYTES } else { 8 }]
}

fn xid(n: u64) -> XaXid {
    XaXid { format_id: 7, gtrid: n.to_be_bytes().to_vec(), bqual: b"branch".to_vec() }
}

/// The workload, and what its clients know.
#[derive(Clone, Debug, Default)]
pub struct Branches {
    /// Number of ordered halves.
    pub next: u64,
    /// Number of acknowledged halves.
    pub acknowledged: u64,
}

/// The state after a prefix of the sequence.
#[derive(Debug, Default, PartialEq, Eq)]
struct State {
    prepared: BTreeSet<u64>,
    committed: BTreeSet<u64>,
}

impl State {
    fn after(halves: u64) -> State {
        let mut state = State::default();
        for place in 0..halves {
            match Half::at(place) {
                Half::Prepare(n) => drop(state.prepared.insert(n)),
                Half::End(n) => {
                    state.prepared.remove(&n);
                    if commits(n) {
                        state.committed.insert(n);
                    }
                }
            }
        }
        state
    }
}

fn lock(world: &World, n: u64) -> LockOwner {
    let mut locks = world.locks.owner(TrxId(n));
    let wait = WaitLimit::NoWait;
    world
        .locks
        .lock_row(&mut locks, MARKS, &n.to_be_bytes(), RowMode::Exclusive, wait, &KillFlag::default())
        .expect("each branch has a row of its own");
    locks
}

fn held(world: &World, n: u64) -> XaHeld {
    XaHeld { locks: lock(world, n), memory: Reservation::new(Budget::of_server()) }
}

fn number(body: &XaBody) -> u64 {
    u64::from_be_bytes(body.head().xid.gtrid.as_slice().try_into().expect("eight bytes"))
}

fn binlog_part(world: &World, half: Half, kind: GroupKind, of: XaXid) -> Option<BinlogPart> {
    let options = CacheOptions { memory_bytes_max: 400, ..CacheOptions::default() };
    let mut cache = TrxCache::new(options, Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    let text = half.text() + &" ".repeat(if let Half::Prepare(n) = half { value(n).len() } else { 0 });
    cache.query(0, &QueryEvent::new(1, &StatusVars::default(), b"bank", text.as_bytes())).ok()?;
    if kind == GroupKind::XaPrepare {
        cache.event(0, &Event::XaPrepare(XaPrepare { one_phase: 0, xid: of.clone() })).ok()?;
    }
    Some(BinlogPart { xa: Some(Box::new(of)), kind, ..part(cache.seal().ok()?) })
}

/// Prepares a branch. Returns `None` if the machine has stopped.
fn prepare(world: &World, n: u64) -> Option<CommitSeq> {
    let branches = world.coordinator.xa();
    assert!(branches.begin(&xid(n)));
    let head = XaHead { xid: xid(n), since_us: 1_700_000_000_000_000, is_logged: true };
    let mut builder = XaBodyBuilder::new(head, &[], 0, 0);
    for engine in &world.engines {
        let mut trx = engine.begin();
        trx.put(MARKS, &n.to_be_bytes(), &value(n)).expect("in memory");
        let shown = trx.each_write(&mut |index, key, value| {
            builder.write(XaWrite { participant: engine.id(), index, key, value });
            ControlFlow::Continue(())
        });
        assert!(shown.is_continue());
    }
    let binlog = Some(binlog_part(world, Half::Prepare(n), GroupKind::XaPrepare, xid(n))?);
    let redo = vec![(XA, builder.redo())];
    let mut locks = world.locks.owner(TrxId(1000 + n));
    let permit = world.permit(&mut locks);
    let request = CommitRequest { redo, binlog, locks, permit, client: None };
    let prepared = world.coordinator.prepare(request).ok()?;
    let seq = world.coordinator.order(prepared);
    branches.keep(&xid(n), held(world, n));
    branches.detach(&xid(n));
    Some(seq)
}

/// Ends a branch with XA COMMIT or XA ROLLBACK. Returns `None` if the machine has stopped.
fn end(world: &World, n: u64) -> Option<CommitSeq> {
    let taken = world.coordinator.xa().take(&xid(n), XaTaker::Other).expect("it is prepared");
    let mut redo = vec![(XA, end_redo(&xid(n)))];
    if commits(n) {
        let mut trxs: Vec<Box<dyn EngineTrx>> = world.engines.iter().map(|engine| engine.begin()).collect();
        let walked: Result<(), Infallible> = taken.body.each_write(&mut |write| {
            let at = world.engines.iter().position(|engine| engine.id() == write.participant);
            let trx = &mut trxs[at.expect("an engine of this world")];
            trx.put(write.index, write.key, write.value.expect("nothing is deleted")).expect("in memory");
            Ok(())
        });
        let Ok(()) = walked;
        for (engine, trx) in world.engines.iter().zip(&mut trxs) {
            redo.push((engine.id(), trx.prepare().ok()?));
        }
    }
    let binlog = Some(binlog_part(world, Half::End(n), GroupKind::XaEnd, xid(n))?);
    let mut locks = taken.held.locks;
    let permit = world.permit(&mut locks);
    let request = CommitRequest { redo, binlog, locks, permit, client: None };
    let prepared = world.coordinator.prepare(request).ok()?;
    Some(world.coordinator.order(prepared))
}

impl Branches {
    fn order(&mut self, world: &World) -> Option<CommitSeq> {
        let seq = match Half::at(self.next) {
            Half::Prepare(n) => prepare(world, n),
            Half::End(n) => end(world, n),
        };
        self.next += u64::from(seq.is_some());
        seq
    }

    /// Runs until `halves` halves are done or the machine stops.
    pub fn run(&mut self, world: &World, halves: u64) {
        while self.next < halves {
            // Sometimes two halves share a flush.
            let group = 1 + u64::from(self.next % 5 == 3);
            let seqs: Option<Vec<CommitSeq>> = (0..group).map(|_| self.order(world)).collect();
            let Some(seqs) = seqs else { return };
            for seq in seqs {
                if world.coordinator.wait_acknowledged(seq).is_err() {
                    return;
                }
                self.acknowledged += 1;
            }
            if !self.keep_up(world) {
                return;
            }
        }
    }

    fn keep_up(&self, world: &World) -> bool {
        let goes_on = match self.next % 7 {
            2 => world.coordinator.checkpoint().is_ok(),
            5 => world.coordinator.rotate_binlog().is_ok(),
            _ => true,
        };
        world.coordinator.tick();
        goes_on
    }

    /// Like [`Branches::run`], with a replica that confirms each half once the next one is durable. The last
    /// half stays unconfirmed.
    pub fn run_with(&mut self, world: &World, halves: u64, replica: &Replica) {
        while self.next < halves {
            replica.confirm(world);
            if !self.keep_up(world) || self.order(world).is_none() {
                return;
            }
            world.coordinator.lead();
        }
    }

    /// Continues in a recovered world after `halves` halves.
    pub fn resume(world: &World, halves: u64) -> Branches {
        let adopted: Result<usize, Infallible> =
            world.coordinator.xa().adopt(|body| Ok(held(world, number(body))));
        let Ok(_) = adopted;
        Branches { next: halves, acknowledged: halves }
    }
}

fn marks(engine: &dyn Engine) -> BTreeSet<u64> {
    let (mut batch, trx) = (Batch::default(), engine.begin());
    trx.scan(&ScanRequest::forward(ReadAt::Latest, MARKS, &KeyRange::default(), 1 << 20), &mut batch)
        .expect("in memory");
    let mark = |(key, found): (&[u8], &[u8])| {
        let n = u64::from_be_bytes(key.try_into().expect("eight bytes"));
        assert_eq!(found, value(n), "the value of branch {n}");
        n
    };
    batch.iter().map(mark).collect()
}

fn halves_of_binlog(world: &World, disk: &Disk) -> Result<Vec<String>, Violation> {
    let broken = |e: &dyn std::fmt::Display| Violation(format!("the binlog does not read: {e}"));
    let mut halves = Vec::new();
    for path in world.binlog_files().map_err(|e| broken(&e))? {
        let mut reader = EventReader::open(disk, &path).map_err(|e| broken(&e))?;
        while let Some(raw) = reader.next_event().map_err(|e| broken(&e))? {
            if let Event::Query(query) = reader.decode(&raw).map_err(|e| broken(&e))? {
                halves.push(String::from_utf8_lossy(&query.sql).trim().to_owned());
            }
        }
    }
    Ok(halves)
}

/// Checks after a recovery that binlog, engines and prepared branches agree. Returns the number of halves.
pub fn check_branches(world: &World, disk: &Disk) -> Result<u64, Violation> {
    let logged = halves_of_binlog(world, disk)?;
    let halves = logged.len() as u64;
    let expected: Vec<String> = (0..halves).map(|place| Half::at(place).text()).collect();
    if logged != expected {
        return Err(Violation(format!("I1: the binlog has {logged:?}")));
    }
    let state = State::after(halves);
    let listed = world.coordinator.xa().list();
    let prepared: BTreeSet<u64> = listed.iter().map(|branch| number(&branch.body)).collect();
    let (left, right) = (marks(&*world.engines[0]), marks(&*world.engines[1]));
    if left != right || left != state.committed || prepared != state.prepared {
        return Err(Violation(format!(
            "I2: after {halves} halves prepared {prepared:?}, engines {left:?} and {right:?}; expected {state:?}"
        )));
    }
    Ok(halves)
}
