//! Measures the time per statement of one session, without sockets, on the in-memory reference engine: `cargo
//! run --release -p cohort-exec --example statement_cost`.

#[path = "../tests/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::time::Instant;

use cohort_exec::Session;
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{SqlError, Value};

/// A sink that counts rows.
#[derive(Default)]
struct CountSink {
    rows: u64,
}

impl ResultSink for CountSink {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {
        self.rows += 1;
    }
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn error(&mut self, error: &SqlError) {
        panic!("{error}");
    }
    fn is_dead(&self) -> bool {
        false
    }
}

const ROWS: u64 = 10_000;

fn time(
    name: &str,
    session: &mut Session,
    count: u64,
    mut run: impl FnMut(&mut Session, u64, &mut CountSink),
) {
    let mut sink = CountSink::default();
    let start = Instant::now();
    for n in 0..count {
        run(session, n, &mut sink);
    }
    let each = start.elapsed().as_nanos() as u64 / count;
    println!("{name:<28} {each:>8} ns each, {} rows", sink.rows);
}

fn main() {
    let db = support::database();
    let mut session = support::session(&db, 1);
    support::run(
        &mut session,
        "create table sbtest1 (id integer not null auto_increment, k integer default '0' not null, \
         c char(120) default '' not null, pad char(60) default '' not null, primary key (id), key k_1 (k))",
    );
    for start in (0..ROWS).step_by(1000) {
        let rows: Vec<String> = (start..start + 1000)
            .map(|n| format!("({},'{:0>119}','{:0>59}')", n * 7919 % ROWS, n, n))
            .collect();
        support::run(&mut session, &format!("insert into sbtest1(k, c, pad) values {}", rows.join(",")));
    }
    let id = |n: u64| n * 7 % ROWS + 1;
    time("point select, text", &mut session, 200_000, |s, n, sink| {
        s.query(format!("SELECT c FROM sbtest1 WHERE id={}", id(n)).as_bytes(), sink);
    });
    let prepared = session.prepare(b"SELECT c FROM sbtest1 WHERE id=?").expect("prepares").id;
    time("point select, prepared", &mut session, 200_000, |s, n, sink| {
        s.execute(prepared, &[Value::Int(id(n) as i64)], sink);
    });
    let range = |n: u64| (id(n), id(n) + 99);
    for (name, sql) in [
        ("simple range", "SELECT c FROM sbtest1 WHERE id BETWEEN {} AND {}"),
        ("sum range", "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN {} AND {}"),
        ("order range", "SELECT c FROM sbtest1 WHERE id BETWEEN {} AND {} ORDER BY c"),
        ("distinct range", "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN {} AND {} ORDER BY c"),
    ] {
        time(name, &mut session, 5_000, |s, n, sink| {
            let (low, high) = range(n);
            let sql = sql.replacen("{}", &low.to_string(), 1).replacen("{}", &high.to_string(), 1);
            s.query(sql.as_bytes(), sink);
        });
    }
    time("update index, begin/commit", &mut session, 20_000, |s, n, sink| {
        s.query(format!("UPDATE sbtest1 SET k=k+1 WHERE id={}", id(n)).as_bytes(), sink);
        let db = s.database().clone();
        db.commit.wait_acknowledged(s.hold_until()).expect("in memory");
    });
}
