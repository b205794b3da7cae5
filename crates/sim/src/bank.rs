//! The workload: transfers between accounts in two engines, each also logged to the binlog; and the checks.
//!
//! Transfer `n` moves `amount` from a left account to a right one (or back), marks `n` as done in both
//! engines, and logs the text `n from to amount`. After any crash the following must hold: the sum of all
//! balances is unchanged, the marks of both engines and the binlog contain the same transfers in the same
//! order (I1, I2), every acknowledged transfer is among them (I4), and the balances are the result of these
//! transfers. After a binlog reset, the binlog contains only later transfers.

use std::num::NonZeroU32;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Event, EventReader, Stamp, TrxCache};
use cohort_commit::{BinlogPart, CommitRequest};
use cohort_engine::{Batch, Engine, EngineTrx, KeyRange, ReadAt, ScanRequest};
use cohort_locks::{KillFlag, RowMode, WaitLimit};
use cohort_vfs::{Rng, SeededRng};

use crate::world::{Disk, World, part};

const ACCOUNTS: u64 = 8;
const OPENING_BALANCE: i64 = 1000;
const BALANCES: IndexId = IndexId(16);
const DONE: IndexId = IndexId(17);
/// Maximum cache size in memory. Larger caches spill, so that some transfers go through spill files.
const CACHE_BYTES: usize = 2000;
/// Every `LARGE_EVERY`-th transfer logs an event of `LARGE_BYTES` bytes.
const LARGE_EVERY: u64 = 11;
const LARGE_BYTES: usize = 6000;

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Seed of amounts and accounts.
    pub seed: u64,
    /// Number of transfers.
    pub transfers: u64,
    /// Resets the binlog from time to time.
    pub resets: bool,
    /// Transfers that are logged to the binlog.
    pub logged: Logged,
}

/// Which transfers are logged to the binlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    All,
    /// All but two of five, which run with `sql_log_bin=0`.
    Some,
    /// None: the binlog is disabled.
    None,
}

impl Logged {
    fn has(self, n: u64) -> bool {
        match self {
            Logged::All => true,
            Logged::Some => n % 5 != 1 && n % 5 != 3,
            Logged::None => false,
        }
    }
}

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// The client's record of attempted and acknowledged transfers.
#[derive(Clone, Debug, Default)]
pub struct Bank {
    /// Acknowledged transfers.
    pub acknowledged: Vec<u64>,
    /// Number of the next transfer.
    pub next: u64,
    /// First transfer after the last acknowledged binlog reset (`reset`), and after the last attempted one
    /// (`reset_tried`).
    pub reset: u64,
    pub reset_tried: u64,
}

/// A transfer drawn from the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    n: u64,
    from: u64,
    to: u64,
    amount: i64,
}

impl Transfer {
    /// Draws transfer `n`. Accounts below [`ACCOUNTS`] are in the left engine, the others in the right one.
    fn draw(seed: u64, n: u64) -> Transfer {
        let rng = SeededRng::new(seed ^ (n << 20));
        let (left, right) = (rng.below(ACCOUNTS), ACCOUNTS + rng.below(ACCOUNTS));
        let (from, to) = if rng.below(2) == 0 { (left, right) } else { (right, left) };
        Transfer { n, from, to, amount: 1 + rng.below(50) as i64 }
    }

    fn text(&self) -> String {
        let filler = if self.n % LARGE_EVERY == LARGE_EVERY - 1 { LARGE_BYTES } else { 0 };
        format!("{} {} {} {} {}", self.n, self.from, self.to, self.amount, "x".repeat(filler))
    }

    fn parse(text: &str) -> Option<Transfer> {
        let mut words = text.split(' ');
        let mut next = || words.next()?.parse::<u64>().ok();
        Some(Transfer { n: next()?, from: next()?, to: next()?, amount: next()? as i64 })
    }
}

impl Bank {
    /// Runs the script until it ends or the machine stops: groups of one to four transfers, rotations,
    /// checkpoints.
    pub fn run(&mut self, world: &World, script: Script) {
        while self.next < script.transfers {
            let group = 1 + self.next % 4;
            let seqs: Option<Vec<(u64, CommitSeq)>> = (0..group).map(|_| self.order(world, script)).collect();
            let Some(seqs) = seqs else { return };
            for (n, seq) in seqs {
                if world.coordinator.wait_acknowledged(seq).is_err() {
                    return;
                }
                self.acknowledged.push(n);
            }
            let upkeep = match self.next % 13 {
                3 => world.coordinator.rotate_binlog().is_ok(),
                7 => world.coordinator.checkpoint().is_ok(),
                10 if script.resets => self.reset(world),
                _ => true,
            };
            world.coordinator.tick();
            if !upkeep {
                return;
            }
        }
    }

    /// Resets the binlog. Returns false if the machine has stopped.
    fn reset(&mut self, world: &World) -> bool {
        self.reset_tried = self.next;
        let first = NonZeroU32::new(1 + (self.next % 3) as u32).expect("at least 1");
        let is_done = world.coordinator.reset_binlog(first).is_ok();
        if is_done {
            self.reset = self.next;
        }
        is_done
    }

    /// Prepares and orders the next transfer. Returns `None` if the machine has stopped.
    pub(crate) fn order(&mut self, world: &World, script: Script) -> Option<(u64, CommitSeq)> {
        let transfer = Transfer::draw(script.seed, self.next);
        let mut trx = world.engines.each_ref().map(|engine| engine.begin());
        let mut locks = world.locks.owner(TrxId(transfer.n));
        for account in [transfer.from, transfer.to] {
            let wait = WaitLimit::NoWait;
            let key = account.to_be_bytes();
            world
                .locks
                .lock_row(&mut locks, BALANCES, &key, RowMode::Exclusive, wait, &KillFlag::default())
                .expect("early release: no owner holds it");
        }
        change(&mut trx, transfer.from, -transfer.amount);
        change(&mut trx, transfer.to, transfer.amount);
        for side in &mut trx {
            side.put(DONE, &transfer.n.to_be_bytes(), b"").expect("in memory");
        }
        let mut redo = Vec::new();
        for (engine, side) in world.engines.iter().zip(&mut trx) {
            redo.push((engine.id(), side.prepare().expect("in memory")));
        }
        let binlog = match script.logged.has(transfer.n) {
            true => Some(binlog_part(world, &transfer)?),
            false => None,
        };
        let permit = world.permit(&mut locks);
        let request = CommitRequest { redo, binlog, locks, permit, client: None };
        let prepared = world.coordinator.prepare(request).ok()?;
        self.next += 1;
        Some((transfer.n, world.coordinator.order(prepared)))
    }
}

/// Builds the binlog part of a transfer. Returns `None` if it could not be spilled.
fn binlog_part(world: &World, transfer: &Transfer) -> Option<BinlogPart> {
    let options = CacheOptions { memory_bytes_max: CACHE_BYTES, ..CacheOptions::default() };
    let mut cache = TrxCache::new(options, Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    let event = QueryEvent::new(1, &StatusVars::default(), b"bank", transfer.text().as_bytes());
    cache.query(0, &event).ok()?;
    Some(part(cache.seal().ok()?))
}

fn side_of(account: u64) -> usize {
    usize::from(account >= ACCOUNTS)
}

fn balance(trx: &dyn EngineTrx, account: u64) -> i64 {
    let mut value = Vec::new();
    let found = trx.get(ReadAt::Latest, BALANCES, &account.to_be_bytes(), &mut value).expect("in memory");
    if found { i64::from_le_bytes(value.try_into().expect("eight bytes")) } else { OPENING_BALANCE }
}

fn change(trx: &mut [Box<dyn EngineTrx>; 2], account: u64, by: i64) {
    let side = &mut trx[side_of(account)];
    let new = balance(&**side, account) + by;
    side.put(BALANCES, &account.to_be_bytes(), &new.to_le_bytes()).expect("in memory");
}

impl World {
    /// Returns the number of transfers in the left engine.
    pub fn transfers_done(&self) -> u64 {
        done(&*self.engines[0]).len() as u64
    }
}

pub(crate) fn done(engine: &dyn Engine) -> Vec<u64> {
    let mut batch = Batch::default();
    let trx = engine.begin();
    trx.scan(&ScanRequest::forward(ReadAt::Latest, DONE, &KeyRange::default(), 1 << 20), &mut batch)
        .expect("in memory");
    batch.iter().map(|(key, _)| u64::from_be_bytes(key.try_into().expect("eight bytes"))).collect()
}

/// Returns the transfers in binlog order. Verifies every checksum and position of every file.
fn transfers_in_binlog(world: &World, disk: &Disk) -> Result<Vec<Transfer>, Violation> {
    let broken = |e: &dyn std::fmt::Display| Violation(format!("the binlog does not read: {e}"));
    let mut found = Vec::new();
    if world.coordinator.binlog_status().is_none() {
        return Ok(found);
    }
    for path in world.binlog_files().map_err(|e| broken(&e))? {
        let mut reader = EventReader::open(disk, &path).map_err(|e| broken(&e))?;
        while let Some(raw) = reader.next_event().map_err(|e| broken(&e))? {
            if let Event::Query(query) = reader.decode(&raw).map_err(|e| broken(&e))? {
                let text = String::from_utf8_lossy(&query.sql).into_owned();
                found.push(
                    Transfer::parse(&text).ok_or_else(|| Violation(format!("unknown event: {text:.40}")))?,
                );
            }
        }
    }
    Ok(found)
}

/// Checks all guarantees after a recovery. `bank` has the transfers acknowledged before the crash.
pub fn check(world: &World, disk: &Disk, bank: &Bank, script: Script) -> Result<(), Violation> {
    let Script { seed, logged: which, .. } = script;
    let (left, right) = (done(&*world.engines[0]), done(&*world.engines[1]));
    ensure(left == right, || format!("I2: the engines disagree: {left:?} and {right:?}"))?;
    let in_binlog = transfers_in_binlog(world, disk)?;
    let numbers: Vec<u64> = in_binlog.iter().map(|t| t.n).collect();
    let logged_from =
        |from: u64| left.iter().copied().filter(|n| *n >= from && which.has(*n)).collect::<Vec<_>>();
    let agrees = [bank.reset, bank.reset_tried].into_iter().any(|from| numbers == logged_from(from));
    ensure(agrees, || {
        let Bank { reset, reset_tried, .. } = bank;
        format!("I2: the binlog has {numbers:?}, the engines did {left:?}, resets at {reset}, {reset_tried}")
    })?;
    for (at, n) in left.iter().enumerate() {
        ensure(*n == at as u64, || format!("I1: transfer {n} stands at place {at}"))?;
    }
    for transfer in &in_binlog {
        ensure(*transfer == Transfer::draw(seed, transfer.n), || {
            format!("transfer {} was altered", transfer.n)
        })?;
    }
    let logged = in_binlog.len() as u64;
    let expected = if logged > 0 { format!("0-1-{logged}") } else { String::new() };
    let gtids = world.coordinator.binlog_status().map_or(String::new(), |(_, gtids)| gtids.to_string());
    ensure(gtids == expected, || format!("the GTIDs are at {gtids} after {logged} transactions"))?;
    let done: Vec<Transfer> = left.iter().map(|n| Transfer::draw(seed, *n)).collect();
    for n in &bank.acknowledged {
        ensure(left.contains(n), || format!("I4: transfer {n} was acknowledged and is lost"))?;
    }
    let trx: [Arc<dyn Engine>; 2] = world.engines.each_ref().map(|e| e.clone() as Arc<dyn Engine>);
    for account in 0..2 * ACCOUNTS {
        let moved = |t: &Transfer| {
            if t.to == account {
                t.amount
            } else if t.from == account {
                -t.amount
            } else {
                0
            }
        };
        let expected = OPENING_BALANCE + done.iter().map(moved).sum::<i64>();
        let found = balance(&*trx[side_of(account)].begin(), account);
        ensure(found == expected, || {
            format!("account {account} holds {found}, the transfers yield {expected}")
        })?;
    }
    Ok(())
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(what())) }
}
