//! Which cases a run measures: tables by name, workloads by name, and the defaults of each.

use crate::disk::Disk;
use crate::workload::{self, Protocol, WORKLOADS, Workload};

/// One line of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub workload: &'static Workload,
    pub clients: usize,
    pub disk: Disk,
    pub protocol: Protocol,
    /// A transaction of so many MiB commits beside the load.
    pub large_mib: Option<u32>,
}

impl Case {
    /// As tables show it.
    pub fn name(&self) -> String {
        match self.large_mib {
            Some(mib) => format!("{} beside {mib} MiB", self.workload.name),
            None => self.workload.name.to_owned(),
        }
    }
}

/// What a run is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agenda {
    pub cases: Vec<Case>,
    pub memory: bool,
}

/// Lists that replace those of the tables.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub clients: Option<Vec<usize>>,
    pub disks: Option<Vec<Disk>>,
    pub large_mib: Option<u32>,
}

struct Block {
    table: &'static str,
    about: &'static str,
    workloads: &'static [&'static str],
    disks: &'static [Disk],
    clients: &'static [usize],
    quick: &'static [usize],
}

const MEMORY: &str = "memory";
const LARGE: &str = "large";
const LARGE_MIB: u32 = 256;
/// Measured when no table is named.
const DEFAULT: &[&str] = &["fast", "slow", MEMORY];

const BLOCKS: &[Block] = &[
    Block {
        table: "fast",
        about: "the common workloads on the disk as it is",
        workloads: &["update_index", "insert", "write_only", "read_write", "hot_row", "point_select"],
        disks: &[Disk::REAL],
        clients: &[1, 16, 64, 256],
        quick: &[1, 64],
    },
    Block {
        table: "slow",
        about: "durable writes with flushes of 1.4 ms",
        workloads: &["update_index", "insert", "hot_row"],
        disks: &[Disk::SSD],
        clients: &[1, 16, 64, 256],
        quick: &[1, 64],
    },
    Block {
        table: "A",
        about: "single-row inserts with slow flushes: how commits share them",
        workloads: &["slap"],
        disks: &[Disk::SSD, Disk::HDD],
        clients: &[1, 4, 8, 16, 32, 64, 128],
        quick: &[4, 64],
    },
    Block {
        table: "B",
        about: "transactions that contend for ten hot rows",
        workloads: &["contended"],
        disks: &[Disk::REAL, Disk::SSD],
        clients: &[16, 32, 64, 128, 256, 512],
        quick: &[16, 256],
    },
    Block {
        table: "D",
        about: "update_index over many clients",
        workloads: &["update_index"],
        disks: &[Disk::REAL],
        clients: &[8, 16, 32, 64, 128, 256, 512],
        quick: &[8, 256],
    },
];

/// The cases of the named tables and workloads.
pub fn agenda(
    names: &[String],
    overrides: &Overrides,
    protocol: Protocol,
    quick: bool,
) -> Result<Agenda, String> {
    let mut agenda = Agenda::default();
    let default: Vec<String> = DEFAULT.iter().map(|name| (*name).to_owned()).collect();
    for name in if names.is_empty() { &default } else { names } {
        if name == MEMORY {
            agenda.memory = true;
        } else if name == LARGE {
            large(overrides, quick, &mut agenda.cases);
        } else if let Some(block) = BLOCKS.iter().find(|block| block.table == name) {
            add(block, overrides, protocol, quick, &mut agenda.cases);
        } else if let Some(workload) = workload::find(name) {
            let alone = Block { workloads: &[], ..single(quick) };
            let clients = overrides.clients.clone().unwrap_or(alone.clients.to_vec());
            let disks = overrides.disks.clone().unwrap_or(alone.disks.to_vec());
            add_workload(workload, &clients, &disks, protocol, &mut agenda.cases);
        } else {
            return Err(format!("no table or workload '{name}'; --help lists them"));
        }
    }
    Ok(agenda)
}

/// Small inserts alone, then with a large transaction that commits beside them.
fn large(overrides: &Overrides, quick: bool, cases: &mut Vec<Case>) {
    let slap = workload::find("slap").expect("listed");
    let clients = overrides.clients.clone().unwrap_or(vec![16]);
    let disks = overrides.disks.clone().unwrap_or(vec![Disk::REAL]);
    let mib = overrides.large_mib.unwrap_or(if quick { LARGE_MIB / 4 } else { LARGE_MIB });
    for beside in [None, Some(mib)] {
        let from = cases.len();
        add_workload(slap, &clients, &disks, Protocol::Text, cases);
        cases[from..].iter_mut().for_each(|case| case.large_mib = beside);
    }
}

fn single(quick: bool) -> Block {
    Block {
        table: "",
        about: "",
        workloads: &[],
        disks: &[Disk::REAL],
        clients: if quick { &[1, 64] } else { &[1, 16, 64, 256] },
        quick: &[],
    }
}

fn add(block: &Block, overrides: &Overrides, protocol: Protocol, quick: bool, cases: &mut Vec<Case>) {
    let usual = if quick { block.quick } else { block.clients };
    let clients = overrides.clients.clone().unwrap_or(usual.to_vec());
    let disks = overrides.disks.clone().unwrap_or(block.disks.to_vec());
    for name in block.workloads {
        let workload = workload::find(name).expect("tables name workloads that exist");
        add_workload(workload, &clients, &disks, protocol, cases);
    }
}

fn add_workload(
    workload: &'static Workload,
    clients: &[usize],
    disks: &[Disk],
    protocol: Protocol,
    cases: &mut Vec<Case>,
) {
    for disk in disks {
        let protocol = workload.protocol(protocol);
        cases.extend(clients.iter().map(|clients| Case {
            workload,
            clients: *clients,
            disk: *disk,
            protocol,
            large_mib: None,
        }));
    }
}

/// For `--help`.
pub fn listing() -> String {
    let mut out = String::from("Tables (without any: fast, slow, memory):\n");
    for block in BLOCKS {
        out.push_str(&format!("  {:17} {}\n", block.table, block.about));
    }
    out.push_str("  large             small inserts while a large transaction commits\n");
    out.push_str("  memory            resident memory of an idle server, and with 1,000 idle connections\n");
    out.push_str("\nWorkloads:\n");
    for workload in WORKLOADS {
        out.push_str(&format!("  {:17} {}\n", workload.name, workload.about));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn every_table_names_workloads_that_exist() {
        for block in BLOCKS {
            let named = names(&[block.table]);
            let agenda = agenda(&named, &Overrides::default(), Protocol::Prepared, false).expect("a table");
            assert_eq!(agenda.cases.len(), block.workloads.len() * block.disks.len() * block.clients.len());
        }
    }

    #[test]
    fn lists_given_replace_those_of_tables_and_workloads() {
        let overrides =
            Overrides { clients: Some(vec![2, 3]), disks: Some(vec![Disk::SSD]), large_mib: None };
        let agenda =
            agenda(&names(&["A", "insert", "memory"]), &overrides, Protocol::Prepared, true).expect("named");
        let clients: Vec<usize> = agenda.cases.iter().map(|case| case.clients).collect();
        assert_eq!(clients, [2, 3, 2, 3]);
        assert!(agenda.cases.iter().all(|case| case.disk == Disk::SSD && case.protocol == Protocol::Text));
        assert!(agenda.memory);
    }

    #[test]
    fn small_transactions_are_measured_without_and_with_the_large_one() {
        let overrides = Overrides { large_mib: Some(5), ..Overrides::default() };
        let agenda = agenda(&names(&["large"]), &overrides, Protocol::Prepared, false).expect("named");
        let titles: Vec<String> = agenda.cases.iter().map(Case::name).collect();
        assert_eq!(titles, ["slap", "slap beside 5 MiB"]);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let refused = agenda(&names(&["C"]), &Overrides::default(), Protocol::Prepared, false);
        assert!(refused.is_err_and(|message| message.contains("'C'")));
    }
}
