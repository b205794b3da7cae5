//! A semi-synchronous replica as seen by the commit path: it confirms each group one group late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_base::{BinlogPos, CommitSeq};
use cohort_commit::{Gate, ReplicaGate};
use parking_lot::Mutex;

use crate::bank::{Bank, Script};
use crate::world::World;

/// The replica's progress. Groups beyond it are held at the gate before they are published.
pub struct Replica {
    confirmed: Mutex<BinlogPos>,
    /// Number of transactions up to `confirmed`, and up to `durable`.
    transactions: AtomicU64,
    durable: Mutex<(BinlogPos, u64)>,
    is_on: AtomicBool,
}

impl Replica {
    /// Attaches a replica that has nothing yet, and for which commits wait.
    pub fn attach(world: &World) -> Arc<Replica> {
        let replica = Arc::new(Replica {
            confirmed: Mutex::default(),
            transactions: AtomicU64::new(0),
            durable: Mutex::default(),
            is_on: AtomicBool::new(true),
        });
        world.coordinator.set_replica_gate(replica.clone());
        replica
    }

    /// Returns the number of transactions that the replica has.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::SeqCst)
    }

    /// Confirms everything durable.
    pub fn confirm(&self, world: &World) {
        let (end, transactions) = *self.durable.lock();
        *self.confirmed.lock() = end;
        self.transactions.store(transactions, Ordering::SeqCst);
        world.coordinator.gate_opened();
    }

    /// Gives up the replica: the source continues without it. Returns false if the machine stopped.
    pub fn give_up(&self, world: &World) -> bool {
        world.coordinator.release_from_replicas(|| self.is_on.store(false, Ordering::SeqCst)).is_ok()
    }
}

impl ReplicaGate for Replica {
    fn made_durable(&self, end: BinlogPos, _: CommitSeq, transactions: u64) {
        let mut durable = self.durable.lock();
        *durable = (end, durable.1 + transactions);
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    fn holds(&self, gate: Gate, end: BinlogPos) -> bool {
        gate == Gate::Publish && self.is_on() && end > *self.confirmed.lock()
    }

    fn restarted(&self) {
        *self.confirmed.lock() = BinlogPos::default();
    }
}

impl Bank {
    /// Runs the script with a replica that confirms each group once the next one is durable. The last group
    /// stays unconfirmed.
    pub fn run_with(&mut self, world: &World, script: Script, replica: &Replica) {
        self.run_gated(world, script, &mut || replica.confirm(world));
    }

    /// Runs the script. Groups wait at a gate until `open` is called before the next group; it may leave them
    /// there.
    pub fn run_gated(&mut self, world: &World, script: Script, open: &mut dyn FnMut()) {
        let mut waiting: Vec<(u64, CommitSeq)> = Vec::new();
        while self.next < script.transfers {
            open();
            let acknowledged = world.coordinator.acknowledged();
            self.acknowledged.extend(waiting.extract_if(.., |(_, seq)| *seq <= acknowledged).map(|(n, _)| n));
            if world.is_stopped.load(Ordering::SeqCst) {
                return;
            }
            let upkeep = match self.next % 13 {
                3 => world.coordinator.rotate_binlog().is_ok(),
                7 => world.coordinator.checkpoint().is_ok(),
                _ => true,
            };
            if !upkeep {
                return;
            }
            let group = 1 + self.next % 4;
            let seqs: Option<Vec<_>> = (0..group).map(|_| self.order(world, script)).collect();
            let Some(seqs) = seqs else { return };
            waiting.extend(seqs);
            world.coordinator.lead();
            world.coordinator.tick();
        }
    }
}
