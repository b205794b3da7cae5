//! SET for transactions, and special values that clients send, with results as in MariaDB 10.11.

mod world;

use std::collections::BTreeSet;

use cohort_config::{Acts, VarId};
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{Date, DateTime, SqlError, Value};
use world::{Client, Server};

fn two_sessions() -> (Server, Client, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut a, b) = (server.connect(), server.connect());
    a.ok("create table t (id int not null primary key, k int)");
    a.ok("insert into t values (1,10),(2,20),(3,30)");
    (server, a, b)
}

#[test]
fn a_setting_of_the_next_transaction_ends_with_one_for_all() {
    let (_server, mut a, mut b) = two_sessions();
    for set in [
        "set session transaction isolation level repeatable read",
        "set tx_isolation = 'REPEATABLE-READ'",
        "set @@transaction_isolation = default",
    ] {
        a.run("set transaction isolation level read committed");
        a.ok(set);
        a.run("begin");
        let before = a.run("select k from t where id = 1");
        b.run("update t set k = k + 1 where id = 1");
        assert_eq!(a.run("select k from t where id = 1"), before, "{set}");
        a.run("commit");
    }
    a.run("set transaction read only");
    a.run("set session transaction read write");
    a.ok("insert into t values (9, 9)");
    for refused in ["start transaction read only, read write", "start transaction read write, read only"] {
        assert!(a.run(refused).starts_with("ERROR 1064"), "{refused}");
    }
    a.ok("start transaction read only, with consistent snapshot, read only");
}

/// `SET @@x` of isolation level or access mode applies to the next transaction only, `SET x` to all later
/// ones.
#[test]
fn a_setting_without_a_scope_is_of_the_next_transaction() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("set @@tx_isolation = 'READ-COMMITTED'");
    assert_eq!(a.run("select @@tx_isolation"), "@@tx_isolation\nREPEATABLE-READ\n");
    for sees_changes in [true, false] {
        a.ok("begin");
        let before = a.run("select k from t where id = 1");
        b.run("update t set k = k + 1 where id = 1");
        assert_eq!(a.run("select k from t where id = 1") != before, sees_changes);
        assert!(a.run("set @@tx_isolation = 'SERIALIZABLE'").starts_with("ERROR 1568"));
        a.ok("commit");
    }
    a.ok("set @@tx_read_only = 1");
    a.ok("begin");
    assert!(a.run("insert into t values (9, 9)").starts_with("ERROR 1792"));
    a.ok("rollback");
    a.ok("insert into t values (9, 9)");
}

/// A statement with an implicit commit does not run in the read-only transaction, and ends the effect of SET
/// TRANSACTION. The session's own setting still applies.
#[test]
fn definitions_are_changed_outside_of_read_only_transactions() {
    let (_server, mut a, _b) = two_sessions();
    for (before, statement) in [
        ("set transaction read only", "create table u (a int)"),
        ("start transaction read only", "alter table u add b int"),
        ("set transaction read only", "drop table u"),
    ] {
        a.ok(before);
        a.ok(statement);
        a.ok("replace into t values (9, 9)");
    }
    a.ok("set session transaction read only");
    for refused in ["create table u (a int)", "insert into t values (8, 8)"] {
        assert!(a.run(refused).starts_with("ERROR 1792"), "{refused}");
    }
}

/// MariaDB evaluates and checks all items before it sets the first one.
#[test]
fn set_sets_all_of_its_items_or_none() {
    let (_server, mut a, mut b) = two_sessions();
    a.run("begin");
    a.run("insert into t values (5, 5)");
    assert!(a.run("set autocommit = 0, bad = 1").starts_with("ERROR 1193"));
    assert_eq!(a.run("select @@autocommit, @@in_transaction"), "@@autocommit | @@in_transaction\n1 | 1\n");
    a.run("commit");
    a.run("update t set k = 6 where id = 5");
    assert_eq!(b.run("select k from t where id = 5"), "k\n6\n", "autocommit is on");
    assert!(a.run("set autocommit = 0, sql_mode = 'bad'").starts_with("ERROR 1231"));
    assert!(a.run("set @x = 5, global max_connections = 77, names nosuch").starts_with("ERROR 1115"));
    let kept = a.run("select @x, @@global.max_connections = 77 as n, @@autocommit as o");
    assert_eq!(kept, "@x | n | o\nNULL | 0 | 1\n");
    a.ok("set @x = 1, @y = @x");
    assert_eq!(a.run("select @x, @y"), "@x | @y\n1 | NULL\n");
}

/// Parameters of the binary protocol can have values that no text can express.
#[test]
fn parameters_that_no_column_holds_are_refused() {
    let (_server, mut a, _) = two_sessions();
    a.ok("set sql_mode = 'strict_all_tables,no_zero_date,no_zero_in_date'");
    a.run("create table p (d date, t datetime, f double, g float)");
    let bind = |a: &mut Client, column: &str, value: Value| {
        let sql = format!("insert into p ({column}) values (?)");
        let id = a.session.prepare(sql.as_bytes()).expect("prepares").id;
        a.execute(id, &[value])
    };
    let february = Date { year: 2023, month: 2, day: 29 };
    let at = |date: Date| Value::DateTime(DateTime { date, hour: 1, ..DateTime::default() });
    for (column, value) in [
        ("d", Value::Date(february)),
        ("t", at(february)),
        ("d", Value::Date(Date { year: 2023, month: 0, day: 29 })),
        ("t", at(Date::ZERO)),
        ("f", Value::Double(f64::NAN)),
        ("g", Value::Float(f32::NAN)),
    ] {
        let answer = bind(&mut a, column, value.clone());
        let is_number = matches!(value, Value::Double(_) | Value::Float(_));
        let error = if is_number { "ERROR 1264" } else { "ERROR 1292" };
        assert!(answer.starts_with(error), "{value:?}: {answer}");
    }
    a.run("set sql_mode = ''");
    bind(&mut a, "d", Value::Date(february));
    bind(&mut a, "f", Value::Double(f64::NAN));
    assert_eq!(a.run("select d, f from p"), "d | f\n0000-00-00 | NULL\nNULL | NULL\n");
}

#[test]
fn text_of_a_utf8mb3_connection_has_no_characters_of_four_bytes() {
    let (_server, mut a, _) = two_sessions();
    a.run("create table e (a varchar(10) character set utf8mb4, c varbinary(20))");
    a.run("set names utf8mb3");
    let refused = a.run("insert into e (a) values ('😀')");
    assert!(refused.starts_with("ERROR 1366") && refused.contains(r"'\xF0\x9F\x98\x80'"), "{refused}");
    a.run("set sql_mode = ''");
    a.run("insert into e values ('x😀y', 'x😀y')");
    assert_eq!(a.run("select hex(a), hex(c) from e"), "hex(a) | hex(c)\n783F3F3F3F79 | 78F09F988079\n");
}

/// A sink that stores the status flags.
#[derive(Default)]
struct Status(StatusFlags);

impl ResultSink for Status {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}

    fn row(&mut self, _: &[Value]) {}

    fn finish(&mut self, status: StatusFlags, _: u16) {
        self.0 = status;
    }

    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.0 = ok.status;
    }

    fn error(&mut self, error: &SqlError) {
        panic!("{error}");
    }

    fn is_dead(&self) -> bool {
        false
    }
}

/// Expected flags are those of MariaDB 10.11.
#[test]
fn a_statement_that_reads_a_whole_table_says_that_it_used_no_index() {
    let (_server, mut a, _) = two_sessions();
    a.ok("create index k on t (k)");
    a.ok("create table plain (c int)");
    a.ok("insert into plain values (1), (2)");
    for (sql, no_index) in [
        ("select 1", false),
        ("select * from t", true),
        ("select * from t where id = 2", false),
        ("select * from t force index (k) where k = 10", false),
        ("select * from plain where c = 1", true),
        ("select * from t join plain on plain.c = t.id where t.id = 1", true),
        ("select * from t where id in (1, 2)", false),
        ("select * from t where id = 1 union select * from t where id = 3", true),
        ("select * from t where id = (select max(c) from plain)", true),
        ("select * from information_schema.schemata", true),
        ("update plain set c = c where c = 5", true),
        ("update t set k = k where id = 5", false),
        ("delete from plain where c = -5", true),
        ("insert into plain select id from t where id = 3", false),
        ("insert into plain select c from plain", true),
        ("select 2", false),
    ] {
        let mut status = Status::default();
        a.session.query(sql.as_bytes(), &mut status);
        assert_eq!(status.0.has(StatusFlags::NO_INDEX_USED), no_index, "{sql}");
    }
}

/// An unknown collation must be an error: WordPress tries utf8mb4_unicode_520_ci first.
#[test]
fn a_collation_that_is_not_there_is_an_error_wherever_it_is_named() {
    let (_server, mut a, _) = two_sessions();
    for sql in [
        "create table w (a int) default character set utf8mb4 collate utf8mb4_nosuch_ci",
        "create table w (a varchar(9) collate utf8mb4_nosuch_ci)",
        "create table w (a varchar(9)) collate = utf8mb4_nosuch_ci",
        "create table if not exists t (a int) collate utf8mb4_nosuch_ci",
        "create database w collate utf8mb4_nosuch_ci",
        "create database if not exists test collate utf8mb4_nosuch_ci",
        "alter database test collate utf8mb4_nosuch_ci",
        "alter table t convert to character set utf8mb4 collate utf8mb4_nosuch_ci",
        "alter table t add w varchar(9) collate utf8mb4_nosuch_ci",
        "alter table t default collate utf8mb4_nosuch_ci",
        "set names utf8mb4 collate utf8mb4_nosuch_ci",
        "set collation_connection = utf8mb4_nosuch_ci",
        "set collation_database = 'utf8mb4_nosuch_ci'",
        "set global collation_server = 'utf8mb4_nosuch_ci'",
        "select 'a' collate utf8mb4_nosuch_ci",
        "select _utf8mb4'a' = 'b' collate utf8mb4_nosuch_ci",
        "select * from t order by convert(k using utf8mb4) collate utf8mb4_nosuch_ci",
        "prepare s from 'create table w (a int) collate utf8mb4_nosuch_ci'",
        "execute immediate 'create table w (a int) collate utf8mb4_nosuch_ci'",
    ] {
        let answer = a.run(sql);
        assert!(
            answer.starts_with("ERROR 1273 (HY000): Unknown collation: 'utf8mb4_nosuch_ci'"),
            "{sql}: {answer}"
        );
    }
    assert!(a.run("show tables like 'w'").ends_with(")\n"));
}

/// A cached plan is reused while no setting changes, and not under another value of a setting that acts in
/// plans.
#[test]
fn plans_are_keyed_by_the_settings_that_act_in_them() {
    let (server, mut a, _b) = two_sessions();
    let kept = cohort_exec::SharedCaches::of(&server.db);
    let query = "select k from t where id = 1";
    let values = [
        ("character_set_client", "latin1"),
        ("collation_connection", "utf8mb4_bin"),
        ("default_week_format", "3"),
        ("div_precision_increment", "7"),
        ("group_concat_max_len", "2000"),
        ("lc_time_names", "'de_DE'"),
        ("sql_mode", "'ANSI_QUOTES'"),
        ("sql_safe_updates", "1"),
        ("time_zone", "'+03:00'"),
    ];
    let acting = VarId::ALL.iter().map(|id| id.setting()).filter(|setting| setting.acts_in() == Acts::Plan);
    let acting: BTreeSet<&str> = acting.map(|setting| setting.name).collect();
    let tested = values.iter().map(|(name, _)| *name).chain(["optimizer_trace"]);
    assert_eq!(acting, tested.collect(), "each has a case here");
    let plans_made = |a: &mut Client| {
        let before = kept.plans.misses();
        assert_eq!(a.run(query), "k\n10\n");
        kept.plans.misses() - before
    };
    plans_made(&mut a);
    for (name, value) in values {
        assert_eq!(plans_made(&mut a), 0, "{name} at its default");
        a.ok(&format!("set {name} = {value}"));
        assert_eq!(plans_made(&mut a), 1, "{name} = {value}");
        assert_eq!(plans_made(&mut a), 0, "{name} = {value}, again");
        a.ok(&format!("set {name} = default"));
    }
    a.ok("set optimizer_trace = 'enabled=on'");
    assert_eq!((plans_made(&mut a), plans_made(&mut a)), (1, 1), "each statement is planned and traced");
    a.ok("set optimizer_trace = default");
    a.ok("set max_error_count = 7");
    assert_eq!(plans_made(&mut a), 0, "a setting that does not act in plans");
}
