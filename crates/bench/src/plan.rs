//! Selection of the cases that a run measures: tables and workloads by name, and their defaults.

use crate::dialect::Dialect;
use crate::disk::Disk;
use crate::goals;
use crate::servers::Kind;
use crate::workload::{self, Keys, Protocol, WORKLOADS, Workload};

/// A setting of Cohort that a case is measured with. MariaDB has no such setting and is omitted.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: &'static str,
    pub set: &'static str,
    pub reset: &'static str,
}

/// The leader of a flush group never waits for clients that are about to send another transaction.
pub const GROUPING_OFF: Variant = Variant {
    name: "adaptive grouping off",
    set: "SET GLOBAL adaptive_flush_groups=OFF",
    reset: "SET GLOBAL adaptive_flush_groups=ON",
};
/// Row locks are held until the flush is over.
pub const RELEASE_OFF: Variant = Variant {
    name: "early release off",
    set: "SET GLOBAL early_lock_release=OFF",
    reset: "SET GLOBAL early_lock_release=ON",
};

/// Returns the variant with a number of rollback segments.
const fn segments(name: &'static str, set: &'static str) -> Variant {
    Variant { name, set, reset: "SET GLOBAL innodb_rollback_segments=8" }
}
const SEGMENTS: &[Variant] = &[
    segments("1 rollback segment", "SET GLOBAL innodb_rollback_segments=1"),
    segments("2 rollback segments", "SET GLOBAL innodb_rollback_segments=2"),
    segments("4 rollback segments", "SET GLOBAL innodb_rollback_segments=4"),
    segments("8 rollback segments", "SET GLOBAL innodb_rollback_segments=8"),
    segments("16 rollback segments", "SET GLOBAL innodb_rollback_segments=16"),
    segments("128 rollback segments", "SET GLOBAL innodb_rollback_segments=128"),
];

/// Transport between clients and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The transport of the run.
    AsSet,
    Tcp,
    Tls,
}

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub workload: &'static Workload,
    pub clients: usize,
    pub disk: Disk,
    pub protocol: Protocol,
    /// A transaction of this size in MiB commits during the load.
    pub large_mib: Option<u32>,
    /// Number of idle connections in addition to the clients.
    pub idle: usize,
    pub variant: Option<&'static Variant>,
    pub link: Link,
    /// Distribution of the rows that are chosen.
    pub keys: Keys,
    /// The only kind of server to measure; `None` for all.
    pub only: Option<Kind>,
    /// Maximum number of repetitions, for cases that take long.
    pub repeats_max: usize,
}

impl Case {
    /// Creates a case of a workload with default options.
    pub fn new(workload: &'static str, clients: usize, disk: Disk) -> Case {
        let workload = workload::find(workload).expect("cases name workloads that exist");
        Case {
            workload,
            clients,
            disk,
            protocol: workload.protocol(Protocol::Prepared),
            large_mib: None,
            idle: 0,
            variant: None,
            link: Link::AsSet,
            keys: Keys::Even,
            only: None,
            repeats_max: usize::MAX,
        }
    }

    /// Returns the case with skewed keys.
    pub fn skewed(self) -> Case {
        Case { keys: Keys::Skewed, ..self }
    }

    /// Returns the case with another setting, for Cohort only.
    pub fn without(self, variant: &'static Variant) -> Case {
        Case { variant: Some(variant), only: Some(Kind::Cohort), ..self }
    }

    /// Returns the case over another link.
    pub fn over(self, link: Link) -> Case {
        Case { link, ..self }
    }

    /// Returns the case with idle connections, for Cohort only.
    pub fn beside_idle(self, idle: usize) -> Case {
        Case { idle, only: Some(Kind::Cohort), ..self }
    }

    /// Returns the case with a concurrent large transaction.
    pub fn beside_large(self, mib: u32) -> Case {
        Case { large_mib: Some(mib), ..self }
    }

    /// Returns whether servers of this kind are measured.
    pub fn has(&self, kind: Kind) -> bool {
        let is_spoken = kind != Kind::Postgres
            || self.workload.is_spoken_by(Dialect::Postgres)
                && self.link == Link::AsSet
                && self.large_mib.is_none();
        is_spoken && self.only.is_none_or(|only| only == kind)
    }

    /// Returns the case's name in tables.
    pub fn name(&self) -> String {
        let mut name = self.workload.name.to_owned();
        if self.keys == Keys::Skewed {
            name.push_str(", skewed");
        }
        if let Some(variant) = self.variant {
            name.push_str(&format!(", {}", variant.name));
        }
        match self.link {
            Link::AsSet => {}
            Link::Tcp => name.push_str(", TCP"),
            Link::Tls => name.push_str(", TLS"),
        }
        if let Some(mib) = self.large_mib {
            name.push_str(&format!(" with {mib} MiB"));
        }
        if self.idle > 0 {
            name.push_str(&format!(" with {} idle", self.idle));
        }
        name
    }
}

/// The measurements of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agenda {
    pub cases: Vec<Case>,
    pub memory: bool,
    pub recovery: bool,
    pub replication: bool,
    pub replica: bool,
    /// Threads and disks of the bare commit pipeline.
    pub pipeline: Vec<(usize, Disk)>,
}

/// Values that replace those of the tables.
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
    /// Variants to measure in addition.
    variants: &'static [Variant],
}

const MEMORY: &str = "memory";
const LARGE: &str = "large";
const IDLE: &str = "idle";
/// Table with its own contestants.
pub const AGED: &str = "aged";
const TLS: &str = "tls";
const PIPELINE: &str = "pipeline";
const RECOVERY: &str = "recovery";
const REPLICATION: &str = "replication";
const REPLICA: &str = "replica";
/// Table with its own contestants.
pub const LAYOUTS: &str = "layouts";
/// The cases of all goals, with shorter measurements.
pub const GOALS: &str = "goals";
/// The cases of the front page. It has its own contestants.
pub const FRONT: &str = "front";
const LARGE_MIB: u32 = 256;
const IDLE_CONNECTIONS: usize = 5000;
/// Measured if no table is named.
const DEFAULT: &[&str] = &["fast", "slow", MEMORY];

const BLOCKS: &[Block] = &[
    Block {
        table: "fast",
        about: "the common workloads on the disk as it is",
        workloads: &["update_index", "insert", "write_only", "read_write", "hot_row", "point_select"],
        disks: &[Disk::REAL],
        clients: &[1, 16, 64, 256],
        quick: &[1, 64],
        variants: &[],
    },
    Block {
        table: "slow",
        about: "durable writes with flushes of 1.4 ms",
        workloads: &["update_index", "insert", "hot_row"],
        disks: &[Disk::SSD],
        clients: &[1, 16, 64, 256],
        quick: &[1, 64],
        variants: &[],
    },
    Block {
        table: "A",
        about: "single-row inserts with slow flushes: how commits share them, with and without adaptive grouping",
        workloads: &["slap"],
        disks: &[Disk::SSD, Disk::HDD],
        clients: &[1, 4, 8, 16, 32, 64, 128],
        quick: &[4, 64],
        variants: &[GROUPING_OFF],
    },
    Block {
        table: "B",
        about: "transactions that contend for ten hot rows, with and without early lock release",
        workloads: &["contended"],
        disks: &[Disk::REAL, Disk::SSD],
        clients: &[16, 32, 64, 128, 256, 512],
        quick: &[16, 256],
        variants: &[RELEASE_OFF],
    },
    Block {
        table: "C",
        about: "inserts, reads and writes, and reads with 1 to 128 rollback segments, and who waits for them",
        workloads: &["insert", "read_write", "read_only"],
        disks: &[Disk::REAL],
        clients: &[16, 64, 256],
        quick: &[16],
        variants: SEGMENTS,
    },
    Block {
        table: "xa",
        about: "XA transactions of one row, prepared and committed: two flushes, shared with other transactions",
        workloads: &["xa_branch"],
        disks: &[Disk::REAL, Disk::SSD],
        clients: &[1, 16, 64],
        quick: &[1, 64],
        variants: &[],
    },
    Block {
        table: LAYOUTS,
        about: "inserts with one log and with separate ones, compared with InnoDB's and MyRocks's: what a commit syncs",
        workloads: &["slap"],
        disks: &[Disk::REAL, Disk::SSD, Disk::SSDS, Disk::HDD],
        clients: &[1, 8, 64, 256],
        quick: &[1, 64],
        variants: &[],
    },
    Block {
        table: "D",
        about: "update_index over many clients",
        workloads: &["update_index"],
        disks: &[Disk::REAL],
        clients: &[8, 16, 32, 64, 128, 256, 512],
        quick: &[8, 256],
        variants: &[],
    },
];

/// Returns the cases of the named tables and workloads.
pub fn agenda(
    names: &[String],
    overrides: &Overrides,
    protocol: Protocol,
    quick: bool,
) -> Result<Agenda, String> {
    let mut agenda = Agenda::default();
    let default: Vec<String> = DEFAULT.iter().map(|name| (*name).to_owned()).collect();
    for name in if names.is_empty() { &default } else { names } {
        match name.as_str() {
            MEMORY => agenda.memory = true,
            RECOVERY => agenda.recovery = true,
            REPLICATION => agenda.replication = true,
            REPLICA => agenda.replica = true,
            AGED => aged(overrides, quick, &mut agenda.cases),
            LARGE => large(overrides, quick, &mut agenda.cases),
            IDLE => idle(overrides, &mut agenda.cases),
            TLS => tls(overrides, &mut agenda.cases),
            PIPELINE => pipeline(overrides, quick, &mut agenda.pipeline),
            FRONT => agenda.cases.extend(front()),
            GOALS => {
                agenda.cases.extend(goals::cases());
                agenda.pipeline.extend(goals::PIPELINE.map(|threads| (threads, Disk::FAST)));
                agenda.memory = true;
                agenda.recovery = true;
                agenda.replication = true;
            }
            name => named(name, overrides, protocol, quick, &mut agenda.cases)?,
        }
    }
    // Tables share cases, which are measured once.
    let mut distinct: Vec<Case> = Vec::with_capacity(agenda.cases.len());
    agenda.cases.into_iter().for_each(|case| {
        if !distinct.contains(&case) {
            distinct.push(case);
        }
    });
    Ok(Agenda { cases: distinct, ..agenda })
}

/// Adds the cases of a block or a workload.
fn named(
    name: &str,
    overrides: &Overrides,
    protocol: Protocol,
    quick: bool,
    cases: &mut Vec<Case>,
) -> Result<(), String> {
    if let Some(block) = BLOCKS.iter().find(|block| block.table == name) {
        let usual = if quick { block.quick } else { block.clients };
        let clients = overrides.clients.clone().unwrap_or(usual.to_vec());
        let disks = overrides.disks.clone().unwrap_or(block.disks.to_vec());
        for workload in block.workloads {
            let from = cases.len();
            add(workload, &clients, &disks, protocol, cases);
            let plain: Vec<Case> = cases[from..].to_vec();
            for variant in block.variants {
                cases.extend(plain.iter().map(|case| case.without(variant)));
            }
        }
        return Ok(());
    }
    let workload =
        workload::find(name).ok_or_else(|| format!("no table or workload '{name}'; --help lists them"))?;
    let usual: &[usize] = if quick { &[1, 64] } else { &[1, 16, 64, 256] };
    let clients = overrides.clients.clone().unwrap_or(usual.to_vec());
    let disks = overrides.disks.clone().unwrap_or(vec![Disk::REAL]);
    add(workload.name, &clients, &disks, protocol, cases);
    Ok(())
}

fn add(workload: &'static str, clients: &[usize], disks: &[Disk], asked: Protocol, cases: &mut Vec<Case>) {
    for disk in disks {
        cases.extend(clients.iter().map(|clients| {
            let case = Case::new(workload, *clients, *disk);
            Case { protocol: case.workload.protocol(asked), ..case }
        }));
    }
}

/// Returns the front page's cases: a few rows of each workload that users ask about first.
fn front() -> impl Iterator<Item = Case> {
    let real = [
        ("point_select", 64),
        ("read_only", 64),
        ("read_write", 64),
        ("write_only", 64),
        ("update_index", 1),
        ("update_index", 64),
        ("insert", 64),
        ("insert", 256),
        ("hot_row", 64),
    ];
    let slow = [("update_index", 1), ("insert", 64), ("hot_row", 64)];
    let real = real.into_iter().map(|(workload, clients)| Case::new(workload, clients, Disk::REAL));
    real.chain(slow.into_iter().map(|(workload, clients)| Case::new(workload, clients, Disk::SSD)))
}

/// Adds small inserts alone, then with a large transaction that commits concurrently.
fn large(overrides: &Overrides, quick: bool, cases: &mut Vec<Case>) {
    let clients = overrides.clients.clone().unwrap_or(vec![16]);
    let disks = overrides.disks.clone().unwrap_or(vec![Disk::REAL]);
    let mib = overrides.large_mib.unwrap_or(if quick { LARGE_MIB / 4 } else { LARGE_MIB });
    let mut alone = Vec::new();
    add("slap", &clients, &disks, Protocol::Text, &mut alone);
    cases.extend(alone.iter().copied().chain(alone.iter().map(|case| case.beside_large(mib))));
}

/// Adds cases that compare fresh tables with tables that were written to for half a minute, with keys
/// distributed as in sysbench's default. Workloads that only read come first, so that fresh tables stay fresh
/// for them.
fn aged(overrides: &Overrides, quick: bool, cases: &mut Vec<Case>) {
    let usual: &[usize] = if quick { &[16] } else { &[16, 64] };
    let clients = overrides.clients.clone().unwrap_or(usual.to_vec());
    let disks = overrides.disks.clone().unwrap_or(vec![Disk::REAL]);
    let mut even = Vec::new();
    for workload in ["point_select", "read_only", "read_write"] {
        add(workload, &clients, &disks, Protocol::Prepared, &mut even);
    }
    cases.extend(even.into_iter().map(Case::skewed));
}

/// Adds updates alone, then with many idle connections.
fn idle(overrides: &Overrides, cases: &mut Vec<Case>) {
    let clients = overrides.clients.clone().unwrap_or(vec![64]);
    let disks = overrides.disks.clone().unwrap_or(vec![Disk::REAL]);
    let mut alone = Vec::new();
    add("update_index", &clients, &disks, Protocol::Prepared, &mut alone);
    cases.extend(alone.iter().copied().chain(alone.iter().map(|case| case.beside_idle(IDLE_CONNECTIONS))));
}

/// Adds cases over TCP, with and without TLS.
fn tls(overrides: &Overrides, cases: &mut Vec<Case>) {
    let clients = overrides.clients.clone().unwrap_or(vec![64]);
    let disks = overrides.disks.clone().unwrap_or(vec![Disk::REAL]);
    for workload in ["point_select", "update_index"] {
        let mut plain = Vec::new();
        add(workload, &clients, &disks, Protocol::Prepared, &mut plain);
        cases.extend(plain.iter().flat_map(|case| [case.over(Link::Tcp), case.over(Link::Tls)]));
    }
}

fn pipeline(overrides: &Overrides, quick: bool, out: &mut Vec<(usize, Disk)>) {
    let usual: &[usize] = if quick { &[1, 64] } else { &[1, 2, 4, 16, 64, 256, 512] };
    let threads = overrides.clients.clone().unwrap_or(usual.to_vec());
    for disk in overrides.disks.clone().unwrap_or(vec![Disk::FAST]) {
        out.extend(threads.iter().map(|threads| (*threads, disk)));
    }
}

/// Returns the list of tables and workloads for `--help`.
pub fn listing() -> String {
    let mut out = String::from("Tables (without any: fast, slow, memory):\n");
    for block in BLOCKS {
        out.push_str(&format!("  {:17} {}\n", block.table, block.about));
    }
    for (name, about) in [
        (AGED, "sysbench's default keys on fresh tables, and on others after half a minute of writes"),
        (LARGE, "small inserts while a large transaction commits"),
        (IDLE, "updates with 5,000 idle connections"),
        (TLS, "point selects and updates over TCP, with TLS and without"),
        (PIPELINE, "the commit pipeline without SQL, 1 to 512 threads, flushes of 120 us"),
        (RECOVERY, "how fast Cohort reads its log after a crash"),
        (REPLICATION, "what a replica costs, dumps from files, semi-synchronous commits"),
        (REPLICA, "how fast replicas apply a backlog in each parallel mode; lag; a large transaction"),
        (MEMORY, "resident memory of an idle server, and with 1,000 idle connections"),
        (FRONT, "the chart of README.md and docs/lab/front.md, with PostgreSQL as a third server"),
        (GOALS, "every case that a goal of docs/benchmarks.md is measured by, in about 25 minutes"),
    ] {
        out.push_str(&format!("  {name:17} {about}\n"));
    }
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

    fn asked(all: &[&str], overrides: &Overrides) -> Agenda {
        agenda(&names(all), overrides, Protocol::Prepared, false).expect("named")
    }

    #[test]
    fn every_table_names_workloads_that_exist() {
        for block in BLOCKS {
            let found = asked(&[block.table], &Overrides::default()).cases.len();
            let each = 1 + block.variants.len();
            assert_eq!(found, each * block.workloads.len() * block.disks.len() * block.clients.len());
        }
    }

    #[test]
    fn lists_given_replace_those_of_tables_and_workloads() {
        let overrides =
            Overrides { clients: Some(vec![2, 3]), disks: Some(vec![Disk::SSD]), large_mib: None };
        let agenda = asked(&["A", "insert", "memory", "pipeline"], &overrides);
        let clients: Vec<usize> = agenda.cases.iter().map(|case| case.clients).collect();
        assert_eq!(clients, [2, 3, 2, 3, 2, 3]);
        assert!(agenda.cases.iter().all(|case| case.disk == Disk::SSD && case.protocol == Protocol::Text));
        assert!(agenda.memory);
        assert_eq!(agenda.pipeline, [(2, Disk::SSD), (3, Disk::SSD)]);
    }

    #[test]
    fn names_show_alternatives_and_disabled_cases() {
        let overrides = Overrides { large_mib: Some(5), clients: Some(vec![4]), ..Overrides::default() };
        let titles: Vec<String> =
            asked(&["large", "idle", "B"], &overrides).cases.iter().map(Case::name).collect();
        let expected = [
            "slap",
            "slap with 5 MiB",
            "update_index",
            "update_index with 5000 idle",
            "contended",
            "contended",
            "contended, early release off",
            "contended, early release off",
        ];
        assert_eq!(titles, expected);
    }

    #[test]
    fn fresh_tables_are_read_before_they_are_written_to() {
        let overrides = Overrides { clients: Some(vec![4]), ..Overrides::default() };
        let cases = asked(&["aged"], &overrides).cases;
        let titles: Vec<String> = cases.iter().map(Case::name).collect();
        let expected = ["point_select, skewed", "read_only, skewed", "read_write, skewed"];
        assert_eq!(titles, expected);
    }

    #[test]
    fn expressions_over_two_tables_are_measured_once() {
        let overrides =
            Overrides { clients: Some(vec![16]), disks: Some(vec![Disk::SSD]), large_mib: Some(1) };
        let titles: Vec<String> = asked(&["large", "A"], &overrides).cases.iter().map(Case::name).collect();
        assert_eq!(titles, ["slap", "slap with 1 MiB", "slap, adaptive grouping off"]);
    }

    #[test]
    fn tls_and_plain_tcp_work_at_the_same_time() {
        let titles: Vec<String> =
            asked(&["tls"], &Overrides::default()).cases.iter().map(Case::name).collect();
        let expected = ["point_select, TCP", "point_select, TLS", "update_index, TCP", "update_index, TLS"];
        assert_eq!(titles, expected);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let refused = agenda(&names(&["E"]), &Overrides::default(), Protocol::Prepared, false);
        assert!(refused.is_err_and(|message| message.contains("'E'")));
    }
}
