//! Concurrent sessions, and features that golden scripts cannot test: status flags, calls of the binary
//! protocol, KILL.

mod support;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, ReplyBarrier};
use cohort_exec::{Database, Session};
use cohort_locks::KillLevel;
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{ErrorCode, SqlError, SqlResult, Value};
use support::{TextSink, run};

fn two_sessions() -> (Arc<Database>, Session, Session) {
    let db = support::database();
    let (mut a, b) = (support::session(&db, 1), support::session(&db, 2));
    run(&mut a, "create table t (id int not null primary key, k int)");
    assert_eq!(run(&mut a, "insert into t values (1,10),(2,20),(3,30)"), "");
    (db, a, b)
}

#[test]
fn repeatable_read_keeps_its_view_and_read_committed_does_not() {
    let (_db, mut a, mut b) = two_sessions();
    run(&mut a, "begin");
    assert_eq!(run(&mut a, "select k from t where id = 1"), "k\n10\n");
    run(&mut b, "update t set k = 11 where id = 1");
    assert_eq!(run(&mut a, "select k from t where id = 1"), "k\n10\n");
    assert_eq!(
        run(&mut a, "select k from t where id = 1 for update"),
        "k\n11\n",
        "locking reads see the newest"
    );
    run(&mut a, "commit");
    assert_eq!(run(&mut a, "select k from t where id = 1"), "k\n11\n");
    run(&mut a, "set session transaction isolation level read committed");
    run(&mut a, "begin");
    assert_eq!(run(&mut a, "select k from t where id = 1"), "k\n11\n");
    run(&mut b, "update t set k = 12 where id = 1");
    assert_eq!(run(&mut a, "select k from t where id = 1"), "k\n12\n");
    run(&mut a, "commit");
}

#[test]
fn locked_rows_are_refused_or_skipped() {
    let (_db, mut a, mut b) = two_sessions();
    run(&mut a, "begin");
    assert_eq!(run(&mut a, "select k from t where id = 2 for update"), "k\n20\n");
    let busy = "ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction\n";
    assert_eq!(run(&mut b, "select k from t where id = 2 for update nowait"), busy);
    assert_eq!(run(&mut b, "select id from t for update skip locked"), "id\n1\n3\n");
    assert_eq!(run(&mut b, "select k from t where id = 2"), "k\n20\n", "plain reads do not wait");
    run(&mut a, "rollback");
    assert_eq!(run(&mut b, "select k from t where id = 2 for update nowait"), "k\n20\n");
}

/// A sink that stores the status flags of each result.
#[derive(Default)]
struct FlagSink {
    results: Vec<StatusFlags>,
    errors: Vec<SqlError>,
}

impl ResultSink for FlagSink {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, status: StatusFlags, _: u16) {
        self.results.push(status);
    }
    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.results.push(ok.status);
    }
    fn error(&mut self, error: &SqlError) {
        self.errors.push(error.clone());
    }
    fn is_dead(&self) -> bool {
        false
    }
}

#[test]
fn several_statements_run_until_one_fails() {
    let (_db, mut a, _) = two_sessions();
    let mut sink = FlagSink::default();
    a.query(b"select 1; select 2", &mut sink);
    assert_eq!(sink.errors[0].code, ErrorCode::Parse, "not asked for");
    a.set_multi_statements(true);
    let mut sink = FlagSink::default();
    a.query(b"begin; select 1; select nope from t; select 2;", &mut sink);
    assert_eq!(sink.results.len(), 2);
    assert!(sink.results.iter().all(|s| s.has(StatusFlags::MORE_RESULTS) && s.has(StatusFlags::IN_TRANS)));
    assert_eq!(sink.errors[0].code, ErrorCode::BadField);
    let mut sink = FlagSink::default();
    a.query(b"rollback; select ';' ;", &mut sink);
    let more: Vec<bool> = sink.results.iter().map(|s| s.has(StatusFlags::MORE_RESULTS)).collect();
    assert_eq!((more, sink.errors.len()), (vec![true, false], 0));
    assert!(!a.is_in_transaction());
}

#[test]
fn prepared_statements_take_values_of_any_kind() {
    let (_db, mut a, _) = two_sessions();
    let info = a.prepare(b"select k, id from t where id = ? or k > ?").expect("prepares");
    let names: Vec<&str> = info.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!((info.params.len(), names), (2, vec!["k", "id"]));
    let mut execute = |params: &[Value]| {
        let mut sink = TextSink::default();
        a.execute(info.id, params, &mut sink);
        sink.text
    };
    assert_eq!(execute(&[Value::Int(1), Value::Int(25)]), "k\tid\n10\t1\n30\t3\n");
    assert_eq!(execute(&[Value::text("2"), Value::Null]), "k\tid\n20\t2\n");
    assert_eq!(execute(&[Value::Double(2.5), Value::Int(100)]), "");
    assert_eq!(execute(&[Value::Int(1)]), "ERROR 1210 (HY000): Incorrect arguments to EXECUTE\n");
    a.close_statement(info.id);
    let mut sink = TextSink::default();
    a.execute(info.id, &[], &mut sink);
    assert_eq!(sink.error.map(|e| e.code), Some(ErrorCode::UnknownStmtHandler));
    let error = a.prepare(b"select nope from t").expect_err("unknown column");
    assert_eq!(error.code, ErrorCode::BadField);
}

fn decimal(text: &str) -> Value {
    Value::Decimal(cohort_types::Decimal::parse(text.as_bytes()).0)
}

#[test]
fn a_limit_takes_whatever_a_driver_binds_for_a_number() {
    let (_db, mut a, _) = two_sessions();
    for text in [
        "SELECT id FROM t ORDER BY id LIMIT ?",
        "SELECT x.id FROM t x JOIN t y ON x.id = y.id ORDER BY x.id LIMIT ?",
        "SELECT id FROM (SELECT id FROM t GROUP BY id) d ORDER BY id LIMIT ?",
        "SELECT 1 AS id UNION ALL SELECT 2 LIMIT ?",
    ] {
        let info = a.prepare(text.as_bytes()).expect("prepares");
        let numbers = [
            (Value::Int(1), "id\n1\n"),
            (Value::text("1"), "id\n1\n"),
            (Value::text("2"), "id\n1\n2\n"),
            (Value::binary(b"1".to_vec()), "id\n1\n"),
            (Value::Double(2.0), "id\n1\n2\n"),
            (decimal("1.6"), "id\n1\n2\n"),
            (Value::text("0"), ""),
            (Value::Int(-1), "ERROR 1210 (HY000): Incorrect arguments to LIMIT\n"),
        ];
        for (value, rows) in numbers {
            let mut sink = TextSink::default();
            a.execute(info.id, std::slice::from_ref(&value), &mut sink);
            assert_eq!(sink.text, rows, "{text} {value:?}");
        }
    }
}

#[test]
fn a_plan_for_one_decimal_does_not_cut_the_next() {
    let (_db, mut a, _) = two_sessions();
    let info = a.prepare(b"SELECT ? AS d").expect("prepares");
    for text in ["1.5", "10.25", "9.75", "123456.789", "1.5"] {
        let mut sink = TextSink::default();
        a.execute(info.id, &[decimal(text)], &mut sink);
        assert_eq!(sink.text, format!("d\n{text}\n"));
    }
}

#[test]
fn kill_ends_a_statement_and_the_next_one_runs() {
    let (db, mut a, _) = two_sessions();
    let killer = std::thread::spawn(move || {
        let process = db.processes.get(cohort_base::ConnectionId(1)).expect("connected");
        // The kill must not be sent before the statement has begun.
        for _ in 0..200 {
            if process.snapshot(&|_| None).info.is_some_and(|text| text.contains("big")) {
                std::thread::sleep(Duration::from_millis(20));
                process.kill(KillLevel::Query);
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let rows: Vec<String> = (4..600).map(|n| format!("({n},{n})")).collect();
    run(&mut a, &format!("insert into t values {}", rows.join(",")));
    let text = run(&mut a, "select count(*) big from t a, t b, t c, t d where a.k + b.k + c.k + d.k < 0");
    assert_eq!(text, "ERROR 1317 (70100): Query execution was interrupted\n");
    killer.join().expect("ran");
    assert_eq!(run(&mut a, "select 1"), "1\n1\n");
    assert!(!a.is_killed());
}

#[test]
fn a_table_that_changes_is_planned_again() {
    let (db, mut a, _) = two_sessions();
    let all = "select * from t where id = 1";
    assert_eq!(run(&mut a, all), "id\tk\n1\t10\n");
    let info = a.prepare(b"select * from t where id = 1").expect("prepares");
    let mut catalog = cohort_catalog::Catalog::clone(&db.catalog());
    let mut schema = cohort_catalog::Schema::clone(&catalog.schemas["d"]);
    let mut table = cohort_catalog::Table::clone(&schema.tables["t"]);
    let mut added = table.columns[1].clone();
    added.name = "added".to_owned();
    added.value_in_old_rows = Value::Int(7);
    table.columns.push(added);
    schema.tables.insert("t".to_owned(), Arc::new(table));
    catalog.schemas.insert("d".to_owned(), Arc::new(schema));
    catalog.version += 1;
    db.catalog.replay(|published| *published = catalog);
    assert_eq!(run(&mut a, all), "id\tk\tadded\n1\t10\t7\n");
    let mut sink = TextSink::default();
    a.execute(info.id, &[], &mut sink);
    assert_eq!(sink.text, "id\tk\tadded\n1\t10\t7\n");
}

/// A directory that discards its files and checks that only durable data is written.
struct OnlyDurable {
    db: Arc<Database>,
    from: cohort_base::CommitSeq,
    written: Arc<parking_lot::Mutex<Vec<u8>>>,
}

impl cohort_session::ServerFiles for OnlyDurable {
    fn create(&self, _: &Path) -> io::Result<Box<dyn io::Write>> {
        Ok(Box::new(OnlyDurable { db: self.db.clone(), from: self.from, written: self.written.clone() }))
    }
    fn open(&self, _: &Path) -> io::Result<(Box<dyn io::Read>, u64)> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn public_bytes(&self, _: &Path) -> io::Result<u64> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn remove(&self, _: &Path) {}
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    fn datadir(&self) -> &Path {
        Path::new("/")
    }
}

impl io::Write for OnlyDurable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(self.db.commit.acknowledged() >= self.from, "a file contains only what is durable (I5)");
        self.written.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        assert!(self.db.commit.acknowledged() >= self.from, "missing rows reveal commits, too (I5)");
        Ok(())
    }
}

#[test]
fn an_outfile_contains_durable_commits_only() {
    let wide = format!("'{}'", "x".repeat(200));
    for (change, read, expected) in [
        ("update t set k = 99 where id = 1", "select k from t where id = 1", "99\n".to_owned()),
        ("delete from t where id = 1", "select k from t where id = 1", String::new()),
        // More bytes than the buffer holds, so they are written before the statement ends.
        ("update t set k = 99", &format!("select {wide} from t a, t b, t c, t d"), {
            format!("{}\n", "x".repeat(200)).repeat(81)
        }),
    ] {
        let (db, mut a, mut b) = two_sessions();
        // Ordered, but not flushed.
        a.query(change.as_bytes(), &mut TextSink::default());
        assert!(db.commit.acknowledged() < a.hold_until());
        let written = Arc::default();
        let files = OnlyDurable { db: db.clone(), from: a.hold_until(), written: Arc::clone(&written) };
        *db.files.write() = Some(Arc::new(files));
        assert_eq!(run(&mut b, &format!("{read} lock in share mode into outfile '/f'")), "");
        assert_eq!(String::from_utf8_lossy(&written.lock()), expected);
        *db.files.write() = None;
    }
}

#[test]
fn a_serializable_read_is_held_until_what_it_shows_is_durable() {
    let (db, mut a, mut b) = two_sessions();
    run(&mut b, "set session transaction isolation level serializable");
    run(&mut b, "begin");
    // Ordered, but not flushed.
    a.query(b"update t set k = 99 where id = 1", &mut TextSink::default());
    assert!(db.commit.acknowledged() < a.hold_until());
    let mut sink = TextSink::default();
    b.query(b"select k from t where id = 1", &mut sink);
    assert_eq!(sink.text, "k\n99\n", "it locks, so it sees the newest row");
    assert!(b.hold_until() >= a.hold_until(), "I5");
}

/// A sink that checks the reply barrier. Rows, the end of rows and file requests may be sent early if the
/// buffer is full, so the barrier must be raised before.
struct Leaving {
    hold: Arc<ReplyBarrier>,
    until: CommitSeq,
    seen: usize,
}

impl Leaving {
    fn leaves(&mut self, what: &str) {
        assert!(self.hold.until() >= self.until, "{what} may leave, and is not held");
        self.seen += 1;
    }
}

impl ResultSink for Leaving {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {
        self.leaves("a head");
    }
    fn row(&mut self, _: &[Value]) {
        self.leaves("a row");
    }
    fn finish(&mut self, _: StatusFlags, _: u16) {
        self.leaves("an end");
    }
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn error(&mut self, _: &SqlError) {}
    fn may_send_files(&self) -> bool {
        true
    }
    fn request_file(&mut self, _: &[u8]) -> SqlResult<()> {
        self.leaves("a request");
        Ok(())
    }
    fn is_dead(&self) -> bool {
        false
    }
}

/// I4: the OK of a commit precedes the results of the next statement of the same command.
#[test]
fn replies_after_a_commit_in_one_command_are_held_with_it() {
    for next in [
        "select 1",
        "select k from t where id = 4",
        "show create table t",
        "show tables",
        "delete from t returning k",
        "explain select * from t",
        "load data local infile '/f' into table t",
    ] {
        for commit in ["insert into t values (88, 1)", "begin; insert into t values (88, 1); commit"] {
            let (db, _, mut b) = two_sessions();
            b.set_multi_statements(true);
            let before = db.commit.acknowledged();
            let mut sink = Leaving { hold: Arc::clone(b.hold()), until: CommitSeq(before.0 + 1), seen: 0 };
            b.query(format!("{commit}; {next}").as_bytes(), &mut sink);
            assert!(sink.seen > 0, "{next} sends something");
        }
    }
}

/// I5 outside of statements: data that a client receives from PREPARE, or through a user variable.
#[test]
fn results_from_variables_alone_are_held() {
    for learn in [
        (|b: &mut Session| drop(b.prepare(b"select @v"))) as fn(&mut Session),
        |b| drop(b.prepare(b"nothing")),
        |b| drop(b.user_variable("v")),
    ] {
        let (_db, mut a, mut b) = two_sessions();
        run(&mut b, "begin");
        a.query(b"update t set k = 99", &mut TextSink::default());
        b.query(b"update t set k = @v := k + 1 where id = 1", &mut TextSink::default());
        assert!(b.hold_until() < a.hold_until());
        learn(&mut b);
        assert!(b.hold_until() >= a.hold_until(), "I5");
    }
}

const LEVELS: [&str; 4] = ["read uncommitted", "read committed", "repeatable read", "serializable"];

/// For each isolation level: runs `change` without a flush, then `before` and `read` in a transaction. The
/// reply of `read` must be held back.
fn assert_held(change: &str, before: &str, read: &str) {
    for level in LEVELS {
        let (db, mut a, mut b) = two_sessions();
        run(&mut b, &format!("set session transaction isolation level {level}"));
        run(&mut b, "set @v = 0");
        run(&mut b, "handler t open");
        run(&mut b, "create table ids (id int auto_increment primary key)");
        b.set_multi_statements(true);
        run(&mut b, "begin");
        a.query(change.as_bytes(), &mut TextSink::default());
        assert!(db.commit.acknowledged() < a.hold_until());
        b.query(before.as_bytes(), &mut TextSink::default());
        assert!(db.commit.acknowledged() < a.hold_until(), "{before} does not wait");
        let mut sink = Leaving { hold: Arc::clone(b.hold()), until: a.hold_until(), seen: 0 };
        b.query(read.as_bytes(), &mut sink);
        assert!(b.hold_until() >= a.hold_until(), "I5: {read} after {before}, {level}");
    }
}

#[test]
fn a_locking_read_that_misses_a_deleted_row_is_held_too() {
    for read in [
        "select k from t where id = 1 for update",
        "select k from t where id = 1 lock in share mode",
        "select k from t where id <= 1 for update",
        "select k from t where k = 10 for update",
        "select count(*) from t where id < 2 for update",
        "select a.k from t a join t b on a.id = b.id where a.id = 1 for update",
        "select k into @v from t where id = 1 for update",
        "delete from t where id <= 2 returning id",
    ] {
        assert_held("delete from t where id = 1", "do 0", read);
    }
}

#[test]
fn a_result_from_undurable_rows_is_sent_when_they_are_durable() {
    for read in [
        "select k from t where id = 1",
        "select * from t",
        "select sum(k) from t",
        "select a.k from t a join t b on a.id = b.id",
        "select @v",
        "select row_count()",
        "handler t read `primary` = (1)",
        "checksum table t",
        "delete from t where id = 1 returning k",
        "replace into t values (1, 5) returning k",
        "analyze format=json update t set k = 1 where id = 1 and k = 100",
        "analyze update t set k = 1 where id = 1 and k = 100",
        "analyze delete from t where id = 1 and k = 100",
        "execute immediate concat(\"load data local infile '/\", @v, \"' into table t\")",
        "show create table t",
        "show warnings",
        "show count(*) warnings",
        "show variables like 'last_insert_id'",
        "show tables where @v = 100",
        "prepare s from @v",
        "update t set k = last_insert_id(@v) where id = 2",
        "insert into ids values (@v); insert into ids values (null)",
        "select nothing from t",
        "rollback",
    ] {
        assert_held("update t set k = 99", "update t set k = @v := k + 1 where id = 1", read);
    }
}

#[test]
fn replies_that_say_nothing_of_what_was_seen_wait_for_nothing() {
    for statement in [
        "savepoint s",
        "update t set k = 1 where id = 1",
        "delete from t where id = 1",
        "insert into t values (9, 1)",
        "insert into ids values (null)",
    ] {
        let (db, mut a, mut b) = two_sessions();
        run(&mut b, "create table ids (id int auto_increment primary key)");
        run(&mut b, "begin");
        a.query(b"update t set k = 99", &mut TextSink::default());
        b.query(b"update t set k = @v := k + 1 where id = 1", &mut TextSink::default());
        b.query(statement.as_bytes(), &mut TextSink::default());
        assert!(b.hold_until() < a.hold_until(), "{statement}");
        assert!(db.commit.acknowledged() < a.hold_until());
    }
}
