//! [`Planner`]: what a group must follow, by `slave_parallel_mode` and by the keys that it changes.
//!
//! | mode | a group follows |
//! |---|---|
//! | none | all before it |
//! | minimal | each that changed a key of its own; it begins when all before it are applied |
//! | conservative | the same; it begins when all before the run of its commit id are applied |
//! | optimistic | each that changed a key of its own; all before it if it waited on the source, or forbids it |
//! | aggressive | each that changed a key of its own |
//!
//! What a group follows is ordered when it starts. What is only applied may wait for its place: as on the
//! source, the next run begins while the one before commits.
//!
//! Two groups of one commit id did not conflict on the source. They may here, where a key can be another one,
//! so keys are looked at in every mode.
//!
//! A domain has a planner of its own. What nobody can tell the keys of (DDL, statements, what is large) is
//! applied alone: it follows all before it, and all behind it follow it. Until it is ordered nobody knows by
//! which definitions to find keys, so what comes meanwhile is applied one after the other.

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

/// What to do with a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It is applied, and parked until its place comes.
    Start(After),
    /// It is applied as the head, and the worker that applies it orders it.
    Alone(After),
}

/// Plans the groups of one domain, one after the other.
pub struct Planner {
    mode: Mode,
    keys: RowKeys,
    /// What the group changes, as far as its events have come.
    pub set: KeySet,
    dependencies: Dependencies,
    maps: Vec<Arc<TableMap>>,
    flags2: u8,
    has_gtid: bool,
    commit_id: Option<u64>,
    /// Nobody knows what it changes.
    is_alone: bool,
    /// The commit id of the slots from this number on.
    run: (Option<u64>, u64),
    /// All later slots follow this one.
    floor: u64,
    /// The newest slot that is applied alone.
    alone: u64,
    /// Keys cannot be found yet: such a slot is not ordered.
    is_blind: bool,
}

impl Planner {
    /// As the variables say now.
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

    /// Whether workers have anything to do.
    pub fn is_parallel(&self) -> bool {
        self.mode != Mode::None
    }

    /// A group begins; `first` is the ring's head.
    pub fn begin(&mut self, gtid: Option<&GtidEvent>, first: u64) {
        self.is_blind = first <= self.alone;
        self.set.clear();
        self.maps.clear();
        self.is_alone = false;
        self.has_gtid = gtid.is_some();
        self.flags2 = gtid.map_or(0, |event| event.flags2);
        self.commit_id = gtid.and_then(|event| event.commit_id);
    }

    /// The group is applied alone: what it changes is not known.
    pub fn keep_alone(&mut self) {
        self.is_alone = true;
    }

    /// An event of it.
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
                        // Applied alone it meets the same error, and reports it.
                        let found = self.keys.add(db, map, rows, &mut self.set);
                        self.is_alone |= found.is_err();
                    }
                    Some(_) => {}
                    None => self.is_alone = true,
                }
            }
            Event::Annotate(_) => {}
            _ => self.is_alone = true,
        }
    }

    /// The group is whole: `number` is its slot, `first` the head's.
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

    /// Nobody knows, or can tell yet, what the group of this slot changes.
    pub fn alone(&mut self, number: u64) -> Plan {
        self.be_followed(number);
        self.alone = number;
        Plan::Alone(After::ordered(number - 1))
    }

    /// All later slots follow this one.
    fn be_followed(&mut self, number: u64) {
        self.floor = number;
        self.dependencies.clear();
        self.run = (None, 0);
    }

    /// All before is ordered.
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
    fn what_is_applied_alone_follows_all_and_is_followed_by_all() {
        let globals = Globals::new();
        globals.put(VarId::SlaveParallelMode, &cohort_config::VarValue::UInt(4));
        let mut planner = Planner::new(&globals);
        let row = gtid_flags2::TRANSACTIONAL;
        let start = |number| Plan::Start(After::ordered(number));
        assert_eq!(planned(&mut planner, row, 1, 1), start(0));
        assert_eq!(planned(&mut planner, row | gtid_flags2::DDL, 2, 1), Plan::Alone(After::ordered(1)));
        // Not ordered yet: one after the other.
        assert_eq!(planned(&mut planner, row, 3, 2), start(2));
        assert_eq!(planned(&mut planner, row, 4, 2), start(3));
        // It is: by keys again, behind all that came meanwhile.
        assert_eq!(planned(&mut planner, row, 5, 3), start(4));
        assert_eq!(planned(&mut planner, row, 6, 3), start(4));
    }
}
