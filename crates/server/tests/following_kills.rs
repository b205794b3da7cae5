//! Source and replica are killed in each parallel mode, under load with DDL: no transaction may be lost or
//! applied twice. Cohort follows a MariaDB and another Cohort.

#[path = "support/load.rs"]
mod load;
mod support;

use std::time::{Duration, Instant};

use load::{Ask, Dice, assert_same_rows, change_definitions, load, long_or, prepare};
use support::{Cohort, Maria, wait_until};

/// A server that a replica follows.
trait Source: Ask {
    fn port(&self) -> u16;
    fn kill_and_restart(&mut self);
}

impl Source for Cohort {
    fn port(&self) -> u16 {
        self.port
    }

    fn kill_and_restart(&mut self) {
        Cohort::kill_and_restart(self);
    }
}

impl Source for Maria {
    fn port(&self) -> u16 {
        self.port
    }

    fn kill_and_restart(&mut self) {
        Maria::kill_and_restart(self);
    }
}

const MODES: [&str; 5] = ["none", "minimal", "conservative", "optimistic", "aggressive"];

fn newest<A: Ask + ?Sized>(server: &A) -> u64 {
    let position = server.ask("SELECT @@gtid_binlog_pos");
    position.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Runs a load in one mode, in which both servers are killed.
fn follow_load(
    source: &mut dyn Source,
    replica: &mut Cohort,
    mode: &str,
    dice: &mut Dice,
    steps: &mut usize,
) {
    replica.sql(&format!("STOP SLAVE; SET GLOBAL slave_parallel_mode = '{mode}'; START SLAVE"));
    let began = newest(source);
    // Two minutes in the long run.
    let (rounds, seconds) = long_or((4, 30), (1, 2));
    for round in 0..rounds {
        let workload = ["oltp_write_only", "oltp_read_write"][round % 2];
        let mut writes = load(source.port(), workload, seconds);
        let end = Instant::now() + Duration::from_secs(seconds.into()) * 3 / 4;
        let before = newest(source);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(long_or(1000, 150)));
            change_definitions(source, *steps);
            *steps += 1;
            // In the short run, each mode only has the kills below.
            if long_or(dice.below(10) == 0, false) {
                replica.kill_and_restart();
            }
        }
        wait_until("nothing is written", || newest(source) > before + 20);
        replica.kill_and_restart();
        source.kill_and_restart();
        // It may have ended already, because its server was killed.
        let _ = writes.kill();
        let _ = writes.wait();
        let over = Instant::now();
        replica.wait_for(&source.ask("SELECT @@gtid_binlog_pos"));
        println!(
            "{mode}: {} transactions, equal {:.1} s later",
            newest(source) - began,
            over.elapsed().as_secs_f64()
        );
        assert_same_rows(source, replica);
        assert_eq!(replica.sql("SELECT @@gtid_binlog_pos"), source.ask("SELECT @@gtid_binlog_pos"));
        assert_eq!(
            replica.sql("SELECT COUNT(*), COUNT(DISTINCT n) FROM sb.plain"),
            source.ask("SELECT COUNT(*), COUNT(DISTINCT n) FROM sb.plain")
        );
        // In a table without a key, a row applied twice is visible.
        let rows: Vec<String> = (0..50).map(|n| format!("({})", *steps * 100 + n)).collect();
        source.ask(&format!("INSERT INTO sb.plain VALUES {}", rows.join(", ")));
    }
}

fn follow(mut source: Box<dyn Source>, seed: u64) {
    let options =
        ["--log-slave-updates", "--server-id=7", "--max-relay-log-size=65536", "--slave-parallel-threads=4"];
    let mut replica = Cohort::new(&options);
    replica.follow(source.port());
    prepare(&*source, source.port());
    source.ask("CREATE TABLE sb.plain (n INT)");
    let mut dice = Dice::new(long_or(u64::from(std::process::id()), seed));
    let mut steps = 0;
    for mode in MODES {
        follow_load(&mut *source, &mut replica, mode, &mut dice, &mut steps);
    }
}

#[test]
fn a_mariadb_and_its_replica_may_die_in_every_mode() {
    let never = "--innodb-instant-alter-column-allowed=never";
    follow(Box::new(Maria::source(&["--binlog-format=ROW", "--max-binlog-size=1M", never])), 21);
}

#[test]
fn a_cohort_and_its_replica_may_die_in_every_mode() {
    follow(Box::new(Cohort::new(&["--max-binlog-size=1M"])), 22);
}
