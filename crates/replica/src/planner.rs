//! [`Planner`]: decides which earlier groups a group depends on, from `slave_parallel_mode` and the keys it
//! changes.
//!
//! | mode | a group depends on |
//! |---|---|
//! | none | all earlier groups |
//! | minimal | groups that changed one of its keys; it begins when all earlier groups are applied |
//! | conservative | the same; it begins when all groups before the consecutive groups with its commit id are applied |
//! | optimistic | as aggressive; but all earlier groups if it waited for a lock on the source or forbids parallel apply |
//! | aggressive | groups that changed one of its keys |
//!
//! A group (a transaction of the source) starts when its dependencies are *ordered*: they have their place in
//! this server's commit order, and may not be durable yet. Groups that must merely be applied first may still
//! wait to be ordered: as on the source, the next run begins while the previous one commits.
//!
//! Two groups of one commit id did not conflict on the source. They may conflict here, where a table can have
//! other keys, so keys are compared in every mode. Changes of a table without a unique key, with incomplete
//! row images, or with foreign keys conflict as a whole (`apply_keys.rs`).
//!
//! Each domain has its own planner. A group whose keys are unknown (DDL, statements, large groups), and a
//! group without a GTID, is applied exclusively: it depends on all earlier groups, and all later groups
//! depend on it. Until it is ordered, the table definitions for finding keys are unknown too, so groups that
//! arrive meanwhile are applied one after the other.

use std::sync::Arc;

use cohort_binlog::event::{Event, GtidEvent, TableMap, gtid_flags2};
use cohort_config::{Globals, VarId};
use cohort_exec::{Database, KeySet, RowKeys};

use crate::apply::Rules;
use crate::group::End;
use crate::ring::{After, Dependencies};

/// `slave_parallel_mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    None,
    Minimal,
    Conservative,
    Optimistic,
    Aggressive,
}

/// How to run a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// A worker applies it and parks it until it can be ordered.
    Start(After),
    /// A worker applies it as the head, exclusively, and orders it itself.
    Exclusive(After),
}

/// Plans the groups of one domain, in order.
pub struct Planner {
    mode: Mode,
    keys: RowKeys,
    /// Keys and tables changed by the events of the current group so far.
    pub set: KeySet,
    dependencies: Dependencies,
    maps: Vec<Arc<TableMap>>,
    flags2: u8,
    has_gtid: bool,
    commit_id: Option<u64>,
    /// Its changes are unknown, so it runs exclusively.
    is_alone: bool,
    /// The current run: its commit id and its first slot.
    run: (Option<u64>, u64),
    /// All later slots depend on this one.
    floor: u64,
    /// The newest slot that is applied exclusively.
    alone: u64,
    /// Keys cannot be computed yet, because slot `alone` is not ordered.
    is_blind: bool,
}

impl Planner {
    /// Creates a planner from the current variables.
    pub fn new(globals: &Globals) -> Planner {
        let mode = match globals.uint(VarId::SlaveParallelMode) {
            0 => Mode::None,
            1 => Mode::Minimal,
            2 => Mode::Conservative,
            3 => Mode::Optimistic,
            _ => Mode::Aggressive,
        };
        Planner {
            mode,
            keys: RowKeys::default(),
            set: KeySet::default(),
            dependencies: Dependencies::default(),
            maps: Vec::new(),
            flags2: 0,
            has_gtid: false,
            commit_id: None,
            is_alone: false,
            run: (None, 0),
            floor: 0,
            alone: 0,
            is_blind: false,
        }
    }

    /// Returns whether the mode uses workers.
    pub fn is_parallel(&self) -> bool {
        self.mode != Mode::None
    }

    /// Begins a group. `first` is the number of the ring's head.
    pub fn begin(&mut self, gtid: Option<&GtidEvent>, first: u64) {
        self.is_blind = first <= self.alone;
        self.set.clear();
        self.maps.clear();
        self.is_alone = false;
        self.has_gtid = gtid.is_some();
        self.flags2 = gtid.map_or(0, |event| event.flags2);
        self.commit_id = gtid.and_then(|event| event.commit_id);
    }

    /// Makes the current group run exclusively, because its changes are unknown.
    pub fn keep_alone(&mut self) {
        self.is_alone = true;
    }

    /// Processes an event of the group.
    pub fn event(&mut self, db: &Database, rules: &Rules, event: &Event) {
        match event {
            Event::TableMap(_) | Event::Rows(_) if self.is_blind => {}
            Event::TableMap(map) => {
                let map = rules.filter.rewritten_map(map);
                self.maps.retain(|known| known.table_id != map.table_id);
                self.maps.push(map);
            }
            Event::Rows(rows) => {
                let map = self.maps.iter().find(|map| map.table_id == rows.table_id);
                let is_wanted = |map: &TableMap| {
                    let names = (String::from_utf8_lossy(&map.db), String::from_utf8_lossy(&map.table));
                    rules.filter.is_empty() || rules.filter.passes_rows(&names.0, &names.1)
                };
                match map {
                    Some(map) if is_wanted(map) => {
                        // Applied exclusively, the group meets the same error and reports it.
                        let found = self.keys.add(db, map, rows, &mut self.set);
                        self.is_alone |= found.is_err();
                    }
                    Some(_) => {}
                    None => self.is_alone = true,
                }
            }
            Event::Annotate(_) => {}
            // Their keys are unknown.
            Event::Query(_)
            | Event::Intvar(_)
            | Event::Rand(_)
            | Event::UserVar(_)
            | Event::BeginLoadQuery(_)
            | Event::AppendBlock(_)
            | Event::DeleteFile(_)
            | Event::ExecuteLoadQuery(_)
            | Event::Incident(_)
            | Event::Gtid(_)
            | Event::Xid(_)
            | Event::XaPrepare(_)
            | Event::FormatDescription(_)
            | Event::GtidList(_)
            | Event::BinlogCheckpoint(_)
            | Event::Rotate(_)
            | Event::Stop
            | Event::Heartbeat(_)
            | Event::StartEncryption(_)
            | Event::Unknown(..) => self.is_alone = true,
        }
    }

    /// Ends the group and returns its plan. `number` is its slot, `first` the head's.
    pub fn end(&mut self, end: End, number: u64, first: u64) -> Plan {
        let is_transaction = end == End::Commit
            && self.has_gtid
            && self.flags2 & (gtid_flags2::DDL | gtid_flags2::STANDALONE) == 0
            && self.flags2 & gtid_flags2::TRANSACTIONAL != 0;
        if !is_transaction || self.is_alone {
            return self.alone(number);
        }
        let all = number - 1;
        if self.is_blind {
            self.be_followed(number);
            return Plan::Start(After::ordered(all));
        }
        let by_keys = self.dependencies.follow(&self.set, number, first).max(self.floor);
        if self.commit_id.is_none() || self.run.0 != self.commit_id {
            self.run = (self.commit_id, number);
        }
        let is_free =
            self.flags2 & gtid_flags2::ALLOW_PARALLEL != 0 && self.flags2 & gtid_flags2::WAITED == 0;
        Plan::Start(match self.mode {
            Mode::None => After::ordered(all),
            Mode::Minimal => After { ordered: by_keys, applied: all },
            Mode::Conservative => After { ordered: by_keys, applied: self.run.1 - 1 },
            Mode::Optimistic if !is_free => After::ordered(all),
            Mode::Optimistic | Mode::Aggressive => After::ordered(by_keys),
        })
    }

    /// Plans a slot whose changes are unknown, or not known yet.
    pub fn alone(&mut self, number: u64) -> Plan {
        self.be_followed(number);
        self.alone = number;
        Plan::Exclusive(After::ordered(number - 1))
    }

    /// Makes all later slots depend on this one.
    fn be_followed(&mut self, number: u64) {
        self.floor = number;
        self.dependencies.clear();
        self.run = (None, 0);
    }

    /// Forgets dependencies: all earlier slots are ordered.
    pub fn barrier(&mut self) {
        self.dependencies.clear();
        self.run = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(planner: &mut Planner, flags2: u8, number: u64, first: u64) -> Plan {
        let gtid = cohort_base::Gtid {
            domain: cohort_base::DomainId(0),
            server: cohort_base::ServerId(1),
            seq_no: number,
        };
        planner.begin(Some(&GtidEvent::new(gtid, flags2, None)), first);
        planner.end(End::Commit, number, first)
    }

    #[test]
    fn an_exclusive_group_is_ordered_with_all_others() {
        let globals = Globals::new();
        globals.put(VarId::SlaveParallelMode, &cohort_config::VarValue::UInt(4));
        let mut planner = Planner::new(&globals);
        let row = gtid_flags2::TRANSACTIONAL;
        let start = |number| Plan::Start(After::ordered(number));
        assert_eq!(planned(&mut planner, row, 1, 1), start(0));
        assert_eq!(planned(&mut planner, row | gtid_flags2::DDL, 2, 1), Plan::Exclusive(After::ordered(1)));
        // Slot 2 is not ordered yet: groups run one after the other.
        assert_eq!(planned(&mut planner, row, 3, 2), start(2));
        assert_eq!(planned(&mut planner, row, 4, 2), start(3));
        // Slot 2 is ordered: keys count again, after all groups that arrived meanwhile.
        assert_eq!(planned(&mut planner, row, 5, 3), start(4));
        assert_eq!(planned(&mut planner, row, 6, 3), start(4));
    }
}
