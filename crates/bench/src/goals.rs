//! Performance goals of Cohort, the cases that measure them, and the verdict of a run.

use crate::disk::Disk;
use crate::plan::{Case, GROUPING_OFF, RELEASE_OFF};
use crate::report::{BASE, SUBJECT, Table};
use crate::results::{CaseResult, ReplicaRate, Results};
use crate::sample::{Sample, Spread};

/// Numbers of threads of the bare pipeline, with [`Disk::FAST`].
pub const PIPELINE: [usize; 6] = [1, 4, 16, 64, 256, 512];
const LARGE_MIB: u32 = 1024;
const IDLE: usize = 5000;
const SHARED: [usize; 4] = [4, 16, 64, 128];
/// Numbers of clients of the hot row.
const HOT: [usize; 3] = [64, 256, 512];
/// Locks that are held during a flush cost as much as the flush.
const CONTENDED: [Disk; 3] = [Disk::REAL, Disk::SSD, Disk::HDD];
const WRITES: [&str; 2] = ["update_index", "insert"];

/// Returns all cases that the goals need, each once. The large transaction is last, because both servers
/// clean up after it.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let real = |workload, clients| Case::new(workload, clients, Disk::REAL);
    for workload in WRITES {
        all.extend([1, 64, 256].map(|clients| real(workload, clients)));
        all.extend([1, 64].map(|clients| Case::new(workload, clients, Disk::SSD)));
    }
    all.push(real("update_index", 64).beside_idle(IDLE));
    all.extend(HOT.map(|clients| real("hot_row", clients)));
    all.extend(HOT.map(|clients| Case::new("hot_row", clients, Disk::SSD)));
    all.extend([16, 64].map(|clients| real("point_select", clients)));
    all.extend([16, 64].map(|clients| real("write_only", clients)));
    all.extend([16, 64].map(|clients| real("read_write", clients)));
    for disk in CONTENDED {
        let case = Case::new("contended", 512, disk);
        all.extend([case, case.without(&RELEASE_OFF)]);
    }
    for disk in [Disk::SSD, Disk::HDD] {
        all.push(Case::new("slap", 1, disk));
        for clients in SHARED {
            let case = Case::new("slap", clients, disk);
            all.extend([case, case.without(&GROUPING_OFF)]);
        }
    }
    let small = real("slap", 16);
    all.push(small);
    all.push(Case { repeats_max: 3, ..small.beside_large(LARGE_MIB) });
    all
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn is_met(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Bound::AtLeast(bound) => format!("at least {}", short(bound)),
            Bound::AtMost(bound) => format!("at most {}", short(bound)),
        }
    }
}

/// A goal and its figures. A figure that was not measured is `None`.
struct Goal {
    what: String,
    bound: Bound,
    /// Each with its label.
    figures: Vec<(String, Option<f64>)>,
}

/// Returns a row for each goal that the run has measured at least partly.
pub fn table(results: &Results) -> Option<Table> {
    let row = |goal: Goal| {
        let found: Vec<(String, f64)> =
            goal.figures.into_iter().filter_map(|(label, figure)| Some((label, figure?))).collect();
        if found.is_empty() {
            return None;
        }
        let missed = found.iter().filter(|(_, value)| !goal.bound.is_met(*value)).count();
        let figures: Vec<String> =
            found.iter().map(|(label, value)| format!("{label}{}", short(*value))).collect();
        let verdict = match missed {
            0 => "yes".to_owned(),
            all if all == found.len() => "**no**".to_owned(),
            some => format!("**{some} of {} not**", found.len()),
        };
        Some(vec![goal.what, goal.bound.text(), figures.join(", "), verdict])
    };
    let rows: Vec<Vec<String>> = goals(&Figures { results }).into_iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Goals".to_owned(),
        head: ["goal", "wanted", "measured", "met"].map(str::to_owned).to_vec(),
        rows,
    })
}

fn goals(of: &Figures<'_>) -> Vec<Goal> {
    let mut all = Vec::new();
    against_mariadb(of, &mut all);
    slow_disks(of, &mut all);
    against_itself(of, &mut all);
    replicas(of, &mut all);
    appliers(of, &mut all);
    all
}

fn goal(what: &str, bound: Bound, figures: Vec<(String, Option<f64>)>) -> Goal {
    Goal { what: what.to_owned(), bound, figures }
}

/// Returns a label like `64 clients: `.
fn label(clients: usize) -> String {
    if clients == 1 { "1 client: ".to_owned() } else { format!("{clients} clients: ") }
}

fn against_mariadb(of: &Figures<'_>, all: &mut Vec<Goal>) {
    let ratios = |workload: &str, clients: &[usize], disk| {
        clients.iter().map(|n| (label(*n), of.ratio(workload, *n, disk))).collect()
    };
    for workload in WRITES {
        let what = format!("{workload}, times MariaDB");
        all.push(goal(&what, Bound::AtLeast(2.0), ratios(workload, &[1, 64, 256], Disk::REAL)));
        let what = format!("{workload}, flushes of 1.4 ms, times MariaDB");
        all.push(goal(&what, Bound::AtLeast(1.9), ratios(workload, &[1, 64], Disk::SSD)));
    }
    let hot = ratios("hot_row", &HOT, Disk::REAL);
    all.push(goal("hot row, times MariaDB", Bound::AtLeast(10.0), hot));
    let select = ratios("point_select", &[16, 64], Disk::REAL);
    all.push(goal("point select, times MariaDB", Bound::AtLeast(1.2), select));
    for workload in ["write_only", "read_write"] {
        let what = format!("{workload}, times MariaDB");
        all.push(goal(&what, Bound::AtLeast(1.5), ratios(workload, &[16, 64], Disk::REAL)));
    }
}

fn slow_disks(of: &Figures<'_>, all: &mut Vec<Goal>) {
    let without = format!("slap, {}", GROUPING_OFF.name);
    for (disk, title) in [(Disk::SSD, "flushes of 1.4 ms"), (Disk::HDD, "flushes of 33 ms")] {
        let shared = |figure: &dyn Fn(usize) -> Option<f64>| {
            SHARED.iter().map(|clients| (label(*clients), figure(*clients))).collect::<Vec<_>>()
        };
        let what = |text: &str| format!("inserts, {title}, {text}");
        let one = vec![(label(1), of.ratio("slap", 1, disk))];
        all.push(goal(&what("times MariaDB"), Bound::AtLeast(1.9), one));
        let grouped = shared(&|clients| of.ratio("slap", clients, disk));
        all.push(goal(
            &what("times MariaDB (until the processor is the bound)"),
            Bound::AtLeast(5.0),
            grouped,
        ));
        let off =
            shared(&|clients| Some(of.rate(&without, clients, disk)? / of.base_rate("slap", clients, disk)?));
        all.push(goal(&what("adaptive grouping off, times MariaDB"), Bound::AtLeast(2.5), off));
        let flushes = shared(&|clients| of.cohort("slap", clients, disk, |s| s.flushes_per_group));
        all.push(goal(&what("flushes per group"), Bound::AtMost(1.05), flushes));
        let members =
            shared(&|clients| Some(of.cohort("slap", clients, disk, |s| s.group_size)? / clients as f64));
        all.push(goal(&what("share of all clients in a group"), Bound::AtLeast(0.9), members));
    }
}

fn against_itself(of: &Figures<'_>, all: &mut Vec<Goal>) {
    let real = Disk::REAL;
    let rate = |workload: &str, clients| of.rate(workload, clients, real);
    let by = |a: Option<f64>, b: Option<f64>| Some(a? / b.filter(|b| *b > 0.0)?);
    let single = |figure| vec![(String::new(), figure)];
    let bare = WRITES.map(|w| (format!("{w}: "), by(rate(w, 1), of.bare_rate())));
    let what = "1 client, by the bare rate of 4 KiB overwrite + fdatasync";
    all.push(goal(what, Bound::AtLeast(0.7), bare.to_vec()));
    let flushes = WRITES.iter().flat_map(|w| {
        [1, 64, 256].map(|n| (format!("{w} {}", label(n)), of.cohort(w, n, real, |s| s.flushes_per_group)))
    });
    all.push(goal("flushes per group on the disk as it is", Bound::AtMost(1.05), flushes.collect()));
    let kept = by(rate("hot_row", 512), rate("hot_row", 64));
    all.push(goal(
        "hot row, 512 by 64 clients (0.95: repetitions differ)",
        Bound::AtLeast(0.95),
        single(kept),
    ));
    let slow = HOT.map(|n| (label(n), by(of.rate("hot_row", n, Disk::SSD), rate("hot_row", n))));
    all.push(goal("hot row, flushes of 1.4 ms by the disk as it is", Bound::AtLeast(0.7), slow.to_vec()));
    let off = format!("contended, {}", RELEASE_OFF.name);
    let released = CONTENDED.map(|disk| {
        let gain = by(of.rate("contended", 512, disk), of.rate(&off, 512, disk));
        (format!("{}: ", disk.name()), gain)
    });
    let what = "contended transactions, 512 clients, early release on by off";
    all.push(goal(what, Bound::AtLeast(5.0), released.to_vec()));
    let idle = by(rate(&format!("update_index with {IDLE} idle"), 64), rate("update_index", 64));
    let what = "update_index, 64 clients with 5,000 idle ones, by 64 alone";
    all.push(goal(what, Bound::AtLeast(0.9), single(idle)));
    let p99 = |workload: &str| of.cohort(workload, 16, real, |s| Some(s.p99_us));
    let rise = by(p99(&format!("slap with {LARGE_MIB} MiB")), p99("slap"));
    let what = "p99 of small inserts while 1 GiB commits, by p99 without";
    all.push(goal(what, Bound::AtMost(2.0), single(rise)));
    let pipeline = of.results.pipeline.iter().filter(|of| of.disk == Disk::FAST.name());
    let pipeline = pipeline.map(|of| (format!("{} threads: ", of.threads), Some(of.per_second)));
    let what = "bare pipeline, durable transactions/s of 200 bytes, flushes of 120 us (64 threads)";
    let pipeline = pipeline.filter(|(threads, _)| threads.starts_with("64 ")).collect();
    all.push(goal(what, Bound::AtLeast(500_000.0), pipeline));
    let recovery = of.results.recovery.iter().map(|of| (format!("{}: ", of.load), of.mib_per_second()));
    let what = "recovery, MiB/s of log, warm cache";
    all.push(goal(what, Bound::AtLeast(200.0), recovery.collect()));
    let memory = of.results.memory.iter().find(|memory| memory.server == SUBJECT);
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let idle = memory.map(|memory| mib(memory.idle_bytes));
    all.push(goal("idle server, MiB resident", Bound::AtMost(100.0), single(idle)));
    let more = memory.map(|memory| mib(memory.connected_bytes.saturating_sub(memory.idle_bytes)));
    all.push(goal("1,000 idle connections, MiB more", Bound::AtMost(50.0), single(more)));
}

fn replicas(of: &Figures<'_>, all: &mut Vec<Goal>) {
    let measured = |server: &str| of.results.replication.iter().find(|one| one.server == server);
    let (cohort, base) = (measured(SUBJECT), measured(BASE));
    let mut add = |what: &str, bound, figure: Option<f64>| {
        all.push(goal(what, bound, vec![(String::new(), figure)]));
    };
    add(
        "update_index, 64 clients with one replica, by without",
        Bound::AtLeast(0.95),
        cohort.map(|one| one.kept),
    );
    let rate = cohort.map(|one| one.mib_per_second);
    add("a dump of large events from files, MiB/s", Bound::AtLeast(300.0), rate);
    let events = cohort.map(|one| one.events_per_core);
    add("a dump of small events from files, events/s per core", Bound::AtLeast(500_000.0), events);
    let memory = cohort.map(|one| one.dump_bytes / 1_048_576.0);
    add("a waiting dump, MiB resident", Bound::AtMost(1.0), memory);
    let semi_sync = cohort.and_then(|one| {
        let base = base.map(|base| base.semi_sync_per_second).filter(|rate| *rate > 0.0)?;
        Some(one.semi_sync_per_second / base)
    });
    let what = "update_index, 64 clients waiting for a MariaDB replica (AFTER_SYNC), times MariaDB";
    add(what, Bound::AtLeast(2.0), semi_sync);
}

fn appliers(of: &Figures<'_>, all: &mut Vec<Goal>) {
    let rates = &of.results.replica.rates;
    let rate = |server: &str, mode: &str, workload: &str, disk: Disk| {
        let is_it = |one: &&ReplicaRate| {
            (one.server.as_str(), one.mode.as_str(), one.workload.as_str(), one.disk.as_str())
                == (server, mode, workload, &disk.name())
        };
        rates.iter().find(is_it).map(|one| one.per_second)
    };
    let best = |workload: &str| {
        let of_base = rates.iter().filter(|one| one.server == BASE && one.workload == workload);
        of_base.map(|one| one.per_second).reduce(f64::max).filter(|rate| *rate > 0.0)
    };
    let parallel = ["conservative", "optimistic", "aggressive"];
    let by_mode = |figure: &dyn Fn(&str) -> Option<f64>| {
        parallel.iter().map(|mode| (format!("{mode}: "), figure(mode))).collect::<Vec<_>>()
    };
    let real = |mode: &str, workload: &str| rate(SUBJECT, mode, workload, Disk::REAL);
    let single = |figure: Option<f64>| vec![(String::new(), figure)];
    let what = "a replica catches up, update_index transactions/s";
    all.push(goal(what, Bound::AtLeast(40_000.0), by_mode(&|mode| real(mode, "update_index"))));
    for workload in ["update_index", "write_only"] {
        let what = format!("the same, {workload}, times MariaDB's best mode");
        let times = |mode: &str| Some(real(mode, workload)? / best(workload)?);
        all.push(goal(&what, Bound::AtLeast(4.0), by_mode(&times)));
    }
    let what = "the same without parallel apply, update_index/s";
    all.push(goal(what, Bound::AtLeast(12_000.0), single(real("none", "update_index"))));
    let hot = by_mode(&|mode| real(mode, "hot_row"));
    all.push(goal("a replica catches up, hot row/s", Bound::AtLeast(20_000.0), hot));
    let slow = [Disk::SSD, Disk::HDD].map(|disk| {
        let figure =
            || Some(rate(SUBJECT, "optimistic", "update_index", disk)? / real("optimistic", "update_index")?);
        (format!("{}: ", disk.name()), figure())
    });
    let what = "a replica on slow disks, update_index, by the disk as it is";
    all.push(goal(what, Bound::AtLeast(0.5), slow.to_vec()));
    let live = of.results.replica.live.as_ref();
    let lag = live.map(|live| live.lag_s_max as f64);
    all.push(goal(
        "a replica on the machine of its source, under load, most lag in s",
        Bound::AtMost(1.0),
        single(lag),
    ));
    let drained = live.map(|live| live.drained_s);
    all.push(goal("the same, s from the load's end to no lag", Bound::AtMost(1.0), single(drained)));
    let more = live.map(|live| live.large_bytes_more as f64 / 1_048_576.0);
    all.push(goal("a large transaction on a replica, MiB more", Bound::AtMost(200.0), single(more)));
    let relayed = live.map(|live| live.relay_mib_per_second);
    all.push(goal("a replica receives large events, MiB/s", Bound::AtLeast(300.0), single(relayed)));
}

/// Looks up medians by case.
struct Figures<'a> {
    results: &'a Results,
}

impl Figures<'_> {
    fn case(&self, workload: &str, clients: usize, disk: Disk) -> Option<&CaseResult> {
        let is_it = |case: &&CaseResult| {
            case.workload == workload && case.clients == clients as u64 && case.disk == disk.name()
        };
        self.results.cases.iter().find(is_it)
    }

    fn median(
        &self,
        server: &str,
        case: Option<&CaseResult>,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        let index = self.results.servers.iter().position(|info| info.name == server)?;
        Spread::of(case?.samples.get(index)?, figure).map(|spread| spread.median)
    }

    fn cohort(
        &self,
        workload: &str,
        clients: usize,
        disk: Disk,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        self.median(SUBJECT, self.case(workload, clients, disk), figure)
    }

    fn rate(&self, workload: &str, clients: usize, disk: Disk) -> Option<f64> {
        self.cohort(workload, clients, disk, |s| Some(s.per_second))
    }

    fn base_rate(&self, workload: &str, clients: usize, disk: Disk) -> Option<f64> {
        let rate = self.median(BASE, self.case(workload, clients, disk), |s| Some(s.per_second));
        rate.filter(|rate| *rate > 0.0)
    }

    fn ratio(&self, workload: &str, clients: usize, disk: Disk) -> Option<f64> {
        Some(self.rate(workload, clients, disk)? / self.base_rate(workload, clients, disk)?)
    }

    fn bare_rate(&self) -> Option<f64> {
        let flush_us = self.results.machine.flush.bare_us;
        (flush_us > 0.0).then(|| 1e6 / flush_us)
    }
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::ServerInfo;

    fn sample(per_second: f64) -> Sample {
        Sample { per_second, flushes_per_group: Some(1.0), ..Sample::default() }
    }

    fn results(cohort: f64, mariadb: f64) -> Results {
        let info = |name: &str| ServerInfo { name: name.into(), version: "1".into() };
        let case = |clients| CaseResult {
            workload: "update_index".into(),
            clients,
            disk: "real".into(),
            protocol: "prepared".into(),
            samples: vec![vec![sample(cohort)], vec![sample(mariadb)]],
        };
        Results {
            servers: vec![info("cohort"), info("mariadb")],
            cases: vec![case(64), case(256)],
            ..Results::default()
        }
    }

    fn line(results: &Results, what: &str) -> Option<Vec<String>> {
        table(results)?.rows.into_iter().find(|row| row[0] == what)
    }

    #[test]
    fn a_goal_is_met_or_not_and_what_was_not_measured_is_left_out() {
        let met = line(&results(300.0, 100.0), "update_index, times MariaDB").expect("measured");
        assert_eq!(met[1..], ["at least 2.00", "64 clients: 3.00, 256 clients: 3.00", "yes"]);
        let missed = line(&results(150.0, 100.0), "update_index, times MariaDB").expect("measured");
        assert_eq!(missed[3], "**no**");
        assert_eq!(line(&results(1.0, 1.0), "hot row, times MariaDB"), None);
        assert!(table(&Results::default()).is_none());
    }

    #[test]
    fn every_goal_finds_its_figures_among_its_own_cases() {
        let mut all = results(1.0, 1.0);
        all.machine.flush.bare_us = 100.0;
        let both = || vec![vec![Sample { group_size: Some(1.0), p99_us: 1.0, ..sample(1.0) }]; 2];
        all.cases = cases()
            .iter()
            .map(|case| CaseResult {
                workload: case.name(),
                clients: case.clients as u64,
                disk: case.disk.name(),
                protocol: String::new(),
                samples: both(),
            })
            .collect();
        all.pipeline = PIPELINE
            .iter()
            .map(|threads| crate::results::PipelineResult {
                threads: *threads as u64,
                disk: Disk::FAST.name(),
                ..Default::default()
            })
            .collect();
        all.recovery = vec![crate::results::RecoveryResult { seconds: 1.0, ..Default::default() }];
        all.memory = vec![crate::results::Memory { server: "cohort".into(), ..Default::default() }];
        let replication = |server: &str| crate::results::ReplicationResult {
            server: server.into(),
            semi_sync_per_second: 1.0,
            ..Default::default()
        };
        all.replication = vec![replication("cohort"), replication("mariadb")];
        all.replica.rates = crate::replica::one_rate(1.0);
        all.replica.live = Some(Default::default());
        let missing: Vec<String> = goals(&Figures { results: &all })
            .into_iter()
            .filter(|goal| goal.figures.is_empty() || goal.figures.iter().any(|(_, figure)| figure.is_none()))
            .map(|goal| goal.what)
            .collect();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn no_case_is_measured_twice() {
        let names: Vec<(String, usize, String)> =
            cases().iter().map(|case| (case.name(), case.clients, case.disk.name())).collect();
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len());
    }
}
