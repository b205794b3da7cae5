//! Session state, and its end: by disconnect, reset, change of user, or KILL.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cohort_config::{Acts, VarId};
use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn};
use support::{Cohort, Maria, error_code, rows, wait_until};

fn prepared(client: &mut Conn) -> u64 {
    let row: Option<(String, u64)> =
        client.query_first("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").expect("a row");
    row.expect("one").1
}

/// Returns the commands that restart a session: COM_RESET_CONNECTION and COM_CHANGE_USER.
fn restarts() -> [(&'static str, fn(&mut Conn)); 2] {
    let reset = |client: &mut Conn| client.reset().expect("reset");
    let change = |client: &mut Conn| {
        let root = ChangeUserOpts::new().with_user(Some("root".into())).with_db_name(Some("test".into()));
        client.change_user(root).expect("changed");
    };
    [("reset", reset), ("change of user", change)]
}

/// Found by reading: each change of user left its statements in Prepared_stmt_count, until no session could
/// prepare.
#[test]
fn prepared_statements_are_counted_as_long_as_they_live() {
    let server = Cohort::new(&["--max-prepared-stmt-count=20"]);
    let mut watcher = server.in_test();
    for (name, start_again) in restarts() {
        let mut client = server.in_test();
        for round in 0..5 {
            for n in 0..8 {
                client.prep(format!("SELECT {round} + {n} + ?")).expect("prepared");
            }
            client.query_drop("PREPARE named FROM 'SELECT 1'").expect("prepared");
            client.query_drop("PREPARE named FROM 'SELECT 2'").expect("prepared again");
            assert_eq!(prepared(&mut watcher), 9, "{name} {round}");
            start_again(&mut client);
            assert_eq!(prepared(&mut watcher), 0, "{name} {round}");
        }
    }
    for end in ["the client goes", "KILL"] {
        let mut client = server.in_test();
        client.prep("SELECT 1").expect("prepared");
        client.query_drop("PREPARE named FROM 'SELECT 1'").expect("prepared");
        assert_eq!(prepared(&mut watcher), 2);
        match end {
            "KILL" => watcher.query_drop(format!("KILL {}", client.connection_id())).expect("killed"),
            _ => drop(client),
        }
        wait_until(end, || prepared(&mut watcher) == 0);
    }
    for n in 0..20 {
        watcher.query_drop(format!("PREPARE p{n} FROM 'SELECT 1'")).expect("prepared");
    }
    for statement in ["PREPARE more FROM 'SELECT 1'", "EXECUTE IMMEDIATE 'SELECT 1'"] {
        assert_eq!(error_code(watcher.query_drop(statement)), 1461, "{statement}");
    }
    watcher.query_drop("DEALLOCATE PREPARE p0").expect("gone");
    watcher.query_drop("PREPARE more FROM 'SELECT 1'").expect("there is room");
}

/// Found by reading: settings for the next statement or transaction survived the session that made them.
#[test]
fn one_shot_settings_go_with_the_session() {
    let server = Cohort::new(&["--log-bin=master"]);
    server.in_test().query_drop("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)").expect("made");
    for (name, start_again) in restarts() {
        let mut client = server.in_test();
        client.query_drop("SET insert_id = 1000000").expect("set");
        client.query_drop("SET gtid_seq_no = 1000000").expect("set");
        client.query_drop("SET TRANSACTION READ ONLY").expect("set");
        client.query_drop("SET timestamp = 1").expect("set");
        client.query_drop("SET @a = 1").expect("set");
        client.query_drop("SET SESSION wait_timeout = 7").expect("set");
        start_again(&mut client);
        client.query_drop("BEGIN").expect("begun");
        client.query_drop("INSERT INTO t (v) VALUES (1)").expect("written");
        client.query_drop("COMMIT").expect("committed");
        let id: u64 = client.query_first("SELECT MAX(id) FROM t").expect("a row").expect("one");
        assert!(id < 1_000_000, "{name}: {id}");
        let position: String = client.query_first("SELECT @@gtid_binlog_pos").expect("a row").expect("one");
        assert!(!position.ends_with("-1000000"), "{name}: {position}");
        let rest: (u64, Option<i32>, u64) =
            client.query_first("SELECT UNIX_TIMESTAMP(), @a, @@wait_timeout").expect("a row").expect("one");
        assert!(rest.0 > 1 && rest.1.is_none() && rest.2 != 7, "{name}: {rest:?}");
    }
}

/// A commit within a multi-statement text becomes durable while the next statement of the text waits.
#[test]
fn a_commit_in_a_multi_statement_does_not_wait_for_the_next_statement() {
    let server = Cohort::new(&["--log-bin=master"]);
    let mut holder = server.in_test();
    holder.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v INT)").expect("made");
    holder.query_drop("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)").expect("written");
    holder.query_drop("CREATE TABLE other (id INT PRIMARY KEY)").expect("made");
    // Any command of another session would flush, so the file is checked from outside.
    let logged = || std::fs::metadata(server.datadir.join("master.000001")).expect("there").len();
    for (value, next) in
        [(1, "UPDATE t SET v = 1 WHERE id = 2"), (2, "SELECT SLEEP(30)"), (3, "TRUNCATE TABLE other")]
    {
        holder.query_drop("BEGIN").expect("begun");
        holder.query_drop("UPDATE t SET v = 9 WHERE id = 2").expect("locked");
        holder.query_drop("INSERT INTO other VALUES (1)").expect("locked");
        let mut client = server.in_test();
        let id = client.connection_id();
        let text = format!("UPDATE t SET v = {value} WHERE id = 1; {next}");
        // The client gets an error after its first result, or its connection ends.
        let before = logged();
        let waits = std::thread::spawn(move || drop(client.query_drop(text)));
        let begun = Instant::now();
        wait_until(next, || logged() > before);
        assert!(begun.elapsed() < Duration::from_secs(20), "{next}");
        holder.query_drop(format!("KILL {id}")).expect("killed");
        waits.join().expect("no panic");
        holder.query_drop("ROLLBACK").expect("rolled back");
    }
}

#[test]
fn counts_that_do_not_fit_are_refused() {
    let server = Cohort::new(&[]);
    let mut client = server.in_test();
    let marks = |n: usize| format!("SELECT 1 IN ({})", vec!["?"; n].join(","));
    client.prep(marks(65_535)).expect("the most there can be");
    assert_eq!(error_code(client.prep(marks(65_536))), 1390);
    let text = format!("PREPARE p FROM '{}'", marks(65_536));
    assert_eq!(error_code(client.query_drop(text)), 1390);
    let columns = format!("SELECT {}", vec!["1"; 65_536].join(","));
    assert_eq!(error_code(client.prep(columns)), 1117);
}

/// Found by reading: over TCP only `localhost` was matched.
#[test]
fn accounts_may_name_the_loopback_address() {
    let server = Cohort::new(&[]);
    let mut root = server.in_test();
    root.query_drop("CREATE USER near@'127.0.0.1'").expect("made");
    root.query_drop("CREATE USER around@'127.0.0.%'").expect("made");
    let user = |name: &str| Conn::new(server.options().user(Some(name)));
    for (name, host) in [("near", "127.0.0.1"), ("around", "127.0.0.%")] {
        let mut client = user(name).expect("let in");
        let who: (String, String) =
            client.query_first("SELECT USER(), CURRENT_USER()").expect("a row").expect("one");
        assert_eq!(who, (format!("{name}@localhost"), format!("{name}@{host}")));
    }
    let over_socket = mysql::OptsBuilder::new()
        .socket(Some(server.socket.to_string_lossy().into_owned()))
        .user(Some("near"));
    assert!(Conn::new(over_socket).is_err(), "it is not at that address");
    for (statement, code) in [
        (format!("CREATE USER '{}'", "n".repeat(129)), 1470),
        (format!("CREATE USER '{}'@'{}'", "n".repeat(128), "h".repeat(256)), 1470),
    ] {
        assert_eq!(error_code(root.query_drop(statement)), code);
    }
    // The event for replicas has a one-byte length.
    root.query_drop(format!("CREATE USER '{}'", "ü".repeat(127))).expect("made");
}

/// The bytes of COM_STMT_BULK_EXECUTE, as MariaDB's connectors send them.
#[test]
fn many_rows_are_written_by_one_command() {
    let server = Cohort::new(&[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))").expect("made");
    let rows = b"\xfa\xff\xff\xff\xff\x80\0\x03\0\xfd\0\0\x01\0\0\0\0\x03one\0\x02\0\0\0\x01";
    for (extended, expected) in [(BULK, &[0u8, 2, 0][..]), (0, &[0xff, 0x0f, 0x05][..])] {
        let mut raw = raw_login(server.port, 0, extended).0;
        send(&mut raw, 0, b"\x16INSERT INTO t VALUES (?, ?)");
        assert_eq!(receive(&mut raw)[0], 0, "prepared");
        // Two parameters and the end of their list.
        (0..3).for_each(|_| drop(receive(&mut raw)));
        send(&mut raw, 0, rows);
        assert_eq!(&receive(&mut raw)[..3], expected);
    }
    let got: Vec<(i32, Option<String>)> = client.query("SELECT * FROM t ORDER BY id").expect("rows");
    assert_eq!(got, [(1, Some("one".to_owned())), (2, None)]);
    let mut raw = raw_login(server.port, 0, BULK).0;
    send(&mut raw, 0, b"\x16REPLACE INTO t VALUES (?, ?) RETURNING id");
    assert_eq!(receive(&mut raw)[0], 0, "prepared");
    // Two parameters and the end of their list. As in MariaDB, no column is announced before the execution.
    (0..3).for_each(|_| drop(receive(&mut raw)));
    send(&mut raw, 0, rows);
    // The number of columns, the column, and the end of the list.
    (0..3).for_each(|_| drop(receive(&mut raw)));
    assert_eq!(receive(&mut raw), b"\0\0\x01\0\0\0", "what is returned has the binary form");
    assert_eq!(receive(&mut raw), b"\0\0\x02\0\0\0");
}

/// A client that does not read a long result keeps the locks of its statement until KILL.
#[test]
fn a_client_that_takes_nothing_is_killed_at_once() {
    let server = Cohort::new(&[]);
    let mut client = server.in_test();
    let mut raw = raw_login(server.port, 0, 0).0;
    send(&mut raw, 0, b"\x03SELECT GET_LOCK('a', 0), REPEAT('x', 1000) FROM seq_1_to_100000");
    let id = loop {
        let holder: Option<u64> =
            client.query_first("SELECT IS_USED_LOCK('a')").expect("answered").expect("a row");
        match holder {
            Some(id) => break id,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    // The socket buffers fill up soon. A KILL before that ends the statement, too.
    std::thread::sleep(Duration::from_millis(300));
    client.query_drop(format!("KILL {id}")).expect("killed");
    let got: u64 = client.query_first("SELECT GET_LOCK('a', 30)").expect("answered").expect("a row");
    assert_eq!(got, 1, "not only when net_write_timeout is over");
}

/// The bytes that MariaDB 10.11 sends in the same situations.
#[test]
fn clients_receive_changes_of_their_session_state() {
    let server = Cohort::new(&[]);
    let (mut raw, login) = raw_login(server.port, SESSION_TRACK, 0);
    assert_eq!(login, b"\0\0\0\x02@\0\0\0\x07\x01\x05\x04test");
    let (mut plain, login) = raw_login(server.port, 0, 0);
    assert_eq!(login, b"\0\0\0\x02\0\0\0");
    let names = b"\0\0\0\0@\0\0\0_\0 \x18character_set_connection\x06latin1\0\x1c\x14character_set_client\
        \x06latin1\0\x1d\x15character_set_results\x06latin1";
    for (sql, expected) in [
        ("\x03use mysql", &b"\0\0\0\x02@\0\0\0\x08\x01\x06\x05mysql"[..]),
        ("\x02test", b"\0\0\0\x02@\0\0\0\x07\x01\x05\x04test"),
        ("\x03set autocommit=0", b"\0\0\0\0@\0\0\0\x11\0\x0f\nautocommit\x03OFF"),
        ("\x03set autocommit=0", b"\0\0\0\0@\0\0\0\x11\0\x0f\nautocommit\x03OFF"),
        ("\x03set names latin1", names),
        ("\x03set sql_mode=ansi", b"\0\0\0\0\x80\0\0"),
        ("\x03set time_zone='+01:00'", b"\0\0\0\0\xc0\0\0\0\x13\0\x11\ttime_zone\x06+01:00"),
        ("\x03do 1", b"\0\0\0\0\x80\0\0"),
        ("\x03create database other", b"\0\x01\0\0\x80\0\0"),
        ("\x03use other", b"\0\0\0\0\xc0\0\0\0\x08\x01\x06\x05other"),
        ("\x03drop database other", b"\0\0\0\0\xc0\0\0\0\x03\x01\x01\0"),
        ("\x03set character_set_results=null", b"\0\0\0\0\xc0\0\0\0\x19\0\x17\x15character_set_results\0"),
        ("\x03set session_track_system_variables='', sql_mode=''", b"\0\0\0\0\0\0\0"),
        (
            "\x03set session_track_system_variables='*'",
            b"\0\0\0\0@\0\0\0#\0!\x1esession_track_system_variables\x01*",
        ),
        ("\x03set session_track_schema=0, session_track_system_variables=''", b"\0\0\0\0\0\0\0"),
        ("\x03use mysql", b"\0\0\0\0\0\0\0"),
    ] {
        send(&mut raw, 0, sql.as_bytes());
        assert_eq!(receive(&mut raw), expected, "{sql}");
    }
    // A client without the capability gets no session changes.
    send(&mut plain, 0, b"\x03use mysql");
    assert_eq!(receive(&mut plain), b"\0\0\0\x02\0\0\0");
}

/// Transactions of every kind: how they begin and end, what they read and write, and SET TRANSACTION for the
/// next one.
const TRACKED: &str = "create table tt (a int primary key, b int)
set session_track_transaction_info='STATE'
begin
select 1
insert into tt values (1,1)
select * from tt
update tt set b=2
commit
start transaction read only
select * from tt
rollback
start transaction with consistent snapshot
commit
start transaction with consistent snapshot, read only
commit and chain
commit
commit and chain
commit
select * from tt
insert into tt values (2,2)
set autocommit=0
select 1
select * from tt
insert into tt values (3,3)
commit
insert into tt values (4,4)
create table uu (a int)
set @a=(select max(a) from tt)
rollback
show create table tt
set autocommit=1
lock tables tt read
select * from tt
unlock tables
lock tables tt write
insert into tt values (5,5)
unlock tables
begin
insert into tt values (5,5)
select * from tt
rollback
begin
insert into nix values (1)
savepoint x
select uuid()
insert into tt select 10, 1
rollback to x
rollback
begin
select * from tt for update
rollback
begin
update tt set b=5 limit 1
rollback
begin
delete from tt where a in (select a from uu)
rollback
begin
select version()
rollback
begin
select sys_guid() > ''
rollback
begin
select current_role
rollback
begin
select current_user
rollback
begin
select rand()
do 1
set @x=1
rollback
begin
select table_name from information_schema.tables where table_schema='nix' limit 1
create temporary table tmp (a int)
insert into tmp values (1)
select * from tmp
drop temporary table tmp
rollback
begin
show tables
show variables like 'autocommit'
set @a=(select max(a) from tt)
rollback
begin
select * from (select 1) x
insert into tt select a+100, 1 from uu
rollback
set session_track_transaction_info='CHARACTERISTICS'
begin
select * from tt
commit
start transaction read only
commit
start transaction read write
commit
start transaction with consistent snapshot
commit
start transaction with consistent snapshot, read only
rollback
set transaction read only
select 1
begin
commit
set transaction isolation level serializable
begin
commit
set transaction isolation level read committed, read only
start transaction
insert into tt values (9,9)
commit
set transaction isolation level serializable
select * from tt
set session transaction isolation level read committed
begin
commit and chain
commit
set autocommit=0
select * from tt
commit
set autocommit=1
start transaction read only
commit and chain
select 1
rollback and chain
rollback
set transaction read only
commit
begin
begin
commit
set transaction isolation level serializable, read only
begin
commit and chain
commit
set transaction isolation level serializable
commit and chain
set transaction isolation level serializable
commit
set session_track_transaction_info='OFF'
begin
commit
set session_track_transaction_info='CHARACTERISTICS'
begin
rollback
drop table tt";

const TRACKED_STATE: &str = "set session_track_state_change=ON
select 1
set session_track_schema=OFF
use tracked
set session_track_schema=ON
use tracked
set sql_mode=''
set autocommit=1
set @a=1
select @a:=2
select 1 into @a
set @a=1, @b=2
do @a:=5
prepare p from 'select 1'
execute p
deallocate prepare p
execute immediate 'select 1'
create temporary table tmp (a int)
insert into tmp values (1)
alter table tmp add b int
drop temporary table tmp
create table tt (a int)
create temporary table tmp2 select 1 a
drop table tmp2
drop table tt
set global max_connections=151
set insert_id=4
set timestamp=1
set timestamp=default
set transaction read only
begin
commit
set session transaction isolation level read committed
set role none
set last_insert_id=4
set session_track_state_change=0
set @a=1
set session_track_state_change=1
set nosuch=1
set @c=1, nosuch=1
select 1
create database tt2
use tt2
drop database tt2
select 1
use tracked
set session_track_state_change=0";

/// Each setting that acts in the server has its arm in `global_changed`; a debug assertion stops a server
/// that lacks one.
#[test]
fn settings_that_act_in_the_server_are_applied() {
    let server = Cohort::new(&[]);
    let mut client = server.in_test();
    let all = VarId::ALL.iter().map(|id| id.setting());
    let names = all.filter(|setting| setting.acts_in() == Acts::Global).map(|setting| setting.name);
    let mut rejected = Vec::new();
    for name in names {
        let outcome = client.query_drop(format!("SET GLOBAL {name} = @@global.{name}"));
        if outcome.is_err() {
            rejected.push((name, error_code(outcome)));
        }
    }
    // The server is no replica.
    assert_eq!(rejected, [("sql_slave_skip_counter", 1200)]);
}

/// Found by comparison: `session_track_transaction_info` had no effect, and AND CHAIN started nothing outside
/// of a transaction and lost the transaction's characteristics.
#[test]
fn clients_receive_the_state_of_their_transactions() {
    let (server, mariadb) = (Cohort::new(&[]), Maria::new(&[]));
    let ours = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    let theirs = UnixStream::connect(&mariadb.socket).expect("connected");
    ours.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    theirs.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let mut clients: [Box<dyn Stream>; 2] = [Box::new(ours), Box::new(theirs)];
    clients.iter_mut().for_each(|client| {
        receive(client);
        let capabilities =
            SESSION_TRACK | DEPRECATE_EOF | 1 << 2 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 19;
        let mut response = capabilities.to_le_bytes().to_vec();
        response.extend_from_slice(&[0, 0, 0, 1, 45]);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(b"root\0\0mysql_native_password\0");
        send(client, 1, &response);
        assert_eq!(receive(client)[0], 0, "let in");
        assert!(!state_after(client, "create database if not exists tracked").starts_with("ERROR"));
        assert!(!state_after(client, "use tracked").starts_with("ERROR"));
    });
    for sql in TRACKED.lines().chain(TRACKED_STATE.lines()) {
        let [ours, theirs] = &mut clients;
        assert_eq!(state_after(ours, sql), state_after(theirs, sql), "{sql}");
    }
}

trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// Returns the session state at the end of a statement: autocommit and transaction, and the changes.
fn state_after(client: &mut (impl Read + Write), sql: &str) -> String {
    send(client, 0, &[b"\x03", sql.as_bytes()].concat());
    let first = receive(client);
    let end = match first[0] {
        0 | 0xff => first,
        columns => {
            (0..columns).for_each(|_| drop(receive(client)));
            loop {
                let packet = receive(client);
                if matches!(packet[0], 0xfe | 0xff) {
                    break packet;
                }
            }
        }
    };
    if end[0] == 0xff {
        return format!("ERROR {}", u16::from_le_bytes([end[1], end[2]]));
    }
    // The counts are small here: one byte each.
    let status = u16::from_le_bytes([end[3], end[4]]);
    let changes = match end.get(7..) {
        Some([length, rest @ ..]) if status & 0x4000 != 0 => &rest[usize::from(*length)..],
        _ => &[],
    };
    format!("{:#x} {}", status & 0x6003, changes.escape_ascii())
}

const SESSION_TRACK: u32 = 1 << 23;
const DEPRECATE_EOF: u32 = 1 << 24;
/// A bit of MariaDB's extended capabilities.
const BULK: u8 = 4;

/// Logs in as root to `test`, as a MariaDB client. Also returns the reply to the login.
fn raw_login(port: u16, capabilities: u32, extended: u8) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let greeting = receive(&mut stream);
    let version_end = greeting.iter().position(|byte| *byte == 0).expect("the version's end");
    // After the rest of the fixed part; see the handshake's codec.
    let offered = &greeting[version_end + 1 + 4 + 9 + 2 + 1 + 2 + 2 + 1 + 6..];
    assert_ne!(offered[0] & BULK, 0, "bulk operations are offered");
    let capabilities = capabilities | 1 << 3 | 1 << 9 | 1 << 15 | 1 << 19;
    let mut response = capabilities.to_le_bytes().to_vec();
    response.extend_from_slice(&[0, 0, 0, 1, 45]);
    response.extend_from_slice(&[0; 19]);
    response.extend_from_slice(&[extended, 0, 0, 0]);
    response.extend_from_slice(b"root\0\0test\0mysql_native_password\0");
    send(&mut stream, 1, &response);
    let answer = receive(&mut stream);
    (stream, answer)
}

fn send(stream: &mut (impl Read + Write), sequence: u8, payload: &[u8]) {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    stream.write_all(&[&[a, b, c, sequence], payload].concat()).expect("sent");
}

fn receive(stream: &mut (impl Read + Write)) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).expect("a header");
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload).expect("a payload");
    payload
}

/// Returns calls, errors, rows sent and rows affected of a statement, and whether it has waited for locks and
/// for commits.
fn counted(client: &mut Conn, digest: &str) -> (u64, u64, u64, u64, bool, bool) {
    let query = format!(
        "SELECT CALLS, ERRORS, ROWS_SENT, ROWS_AFFECTED, LOCK_WAIT_US > 0, COMMIT_WAIT_US > 0 \
         FROM information_schema.COHORT_STATEMENTS WHERE DIGEST_TEXT = '{digest} ' AND SUM_US >= COMMIT_WAIT_US"
    );
    client.query_first(query).expect("a row").unwrap_or_default()
}

#[test]
fn statistics_count_each_statement_once() {
    const CLIENTS: u64 = 8;
    const STATEMENTS: u64 = 60;
    const UPDATE: &str = "UPDATE `t` SET `a` = `a` + ? WHERE `pk` = ?";
    let server = Cohort::new(&[]);
    let mut watcher = server.in_test();
    watcher.query_drop("CREATE TABLE t (pk INT PRIMARY KEY, a INT)").expect("created");
    for pk in 0..CLIENTS {
        watcher.query_drop(format!("INSERT INTO t VALUES ({pk}, 0)")).expect("inserted");
    }
    let reset = "TRUNCATE performance_schema.events_statements_summary_by_digest";
    watcher.query_drop(reset).expect("reset");
    std::thread::scope(|scope| {
        for pk in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..4 {
                    let mut client = server.in_test();
                    let select = client.prep("SELECT a FROM t WHERE pk = ?").expect("prepared");
                    for n in 0..STATEMENTS / 4 {
                        client
                            .query_drop(format!("UPDATE t SET a = a + {n} WHERE pk = {pk}"))
                            .expect("updated");
                        client.exec_drop(&select, (pk,)).expect("read");
                    }
                }
            });
        }
    });
    let all = CLIENTS * STATEMENTS;
    // `a + 0` changes nothing.
    let (calls, errors, _, changed, _, has_waited) = counted(&mut watcher, UPDATE);
    assert_eq!((calls, errors, changed, has_waited), (all, 0, all - 4 * CLIENTS, true));
    let (calls, errors, sent, ..) = counted(&mut watcher, "SELECT `a` FROM `t` WHERE `pk` = ?");
    assert_eq!((calls, errors, sent), (all, 0, all));

    // KILL QUERY of a lock wait, KILL of a running statement, a client that disconnects.
    watcher.query_drop(reset).expect("reset");
    let mut holder = server.in_test();
    holder.query_drop("BEGIN").expect("begun");
    holder.query_drop("UPDATE t SET a = a + 1 WHERE pk = 1").expect("locked");
    let mut waiter = server.in_test();
    let id = waiter.connection_id();
    let waiting =
        std::thread::spawn(move || error_code(waiter.query_drop("UPDATE t SET a = a + 1 WHERE pk = 1")));
    let waits = "SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS";
    wait_until("it waits", || watcher.query_first(waits).expect("a row") == Some(1));
    watcher.query_drop(format!("KILL QUERY {id}")).expect("killed");
    assert_eq!(waiting.join().expect("it ends"), 1317);
    holder.query_drop("COMMIT").expect("committed");
    assert_eq!(counted(&mut watcher, UPDATE), (2, 1, 0, 1, true, false));
    let mut sleeper = server.in_test();
    let id = sleeper.connection_id();
    let sleeping = std::thread::spawn(move || sleeper.query_drop("DO SLEEP(60)").is_err());
    let sleeps =
        format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO LIKE 'DO%'");
    wait_until("it sleeps", || watcher.query_first(&sleeps).expect("a row") == Some(1));
    watcher.query_drop(format!("KILL {id}")).expect("killed");
    assert!(sleeping.join().expect("it ends"));
    wait_until("it is counted", || counted(&mut watcher, "DO `SLEEP` (?)").0 == 1);
}

#[test]
fn performance_schema_lists_connections() {
    let server = Cohort::new(&[]);
    let mut watcher = server.in_test();
    let counts = "SELECT CURRENT_CONNECTIONS, TOTAL_CONNECTIONS FROM performance_schema.accounts \
                  WHERE USER = 'root' AND HOST IN ('localhost', '127.0.0.1')";
    let mut counted = || -> (u64, u64) { watcher.query_first(counts).expect("a row").expect("one account") };
    let (current, total) = counted();
    let kept = server.client();
    drop(server.client());
    wait_until("it is gone", || counted().0 == current + 1);
    assert_eq!(counted(), (current + 1, total + 2));
    drop(kept);
    for (query, expected) in [
        (
            "SELECT CONCAT_WS(' ', TYPE, PROCESSLIST_USER, PROCESSLIST_DB, PROCESSLIST_COMMAND) \
             FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()",
            "FOREGROUND root test Query",
        ),
        (
            "SELECT GROUP_CONCAT(NAME) FROM performance_schema.setup_consumers WHERE ENABLED = 'YES'",
            "global_instrumentation,thread_instrumentation,statements_digest",
        ),
        (
            "SELECT COUNT(*) FROM performance_schema.session_account_connect_attrs \
             WHERE PROCESSLIST_ID = CONNECTION_ID() AND ATTR_NAME = '_client_name'",
            "1",
        ),
        (
            "SELECT VARIABLE_VALUE > 0 FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Acl_users'",
            "1",
        ),
        ("SELECT @@performance_schema", "1"),
    ] {
        assert_eq!(rows(&mut watcher, query).trim_end(), expected, "{query}");
    }
}

/// The views of `sys` that tools and people use.
const VIEWS_OF_SYS: [&str; 18] = [
    "version",
    "statement_analysis",
    "schema_table_statistics",
    "schema_index_statistics",
    "schema_unused_indexes",
    "schema_redundant_indexes",
    "innodb_lock_waits",
    "schema_table_lock_waits",
    "processlist",
    "session",
    "user_summary",
    "host_summary",
    "memory_global_by_current_bytes",
    "memory_global_total",
    "memory_by_user_by_current_bytes",
    "io_global_by_file_by_bytes",
    "io_global_by_file_by_latency",
    "metrics",
];

#[test]
fn sys_is_made_once_and_answers() {
    let kept = "--statement-statistics-kept=ON";
    let mut server = Cohort::new(&["--sys-schema=ON", "--log-bin", "--userstat=ON", kept]);
    let mut client = server.in_test();
    for view in VIEWS_OF_SYS {
        client
            .query_drop(format!("SELECT * FROM sys.{view}"))
            .unwrap_or_else(|error| panic!("{view}: {error}"));
    }
    for table in [
        "CREATE TABLE t (pk INT PRIMARY KEY, a INT, b INT, KEY a (a), KEY ab (a, b), UNIQUE KEY u (b), KEY b (b))",
        "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)",
        "SELECT b FROM t FORCE INDEX (u) WHERE b = 1",
    ] {
        client.query_drop(table).expect("done");
    }
    for (query, expected) in [
        (
            "SELECT redundant_index_name, dominant_index_name FROM sys.schema_redundant_indexes ORDER BY 1",
            "a ab|b u",
        ),
        (
            "SELECT index_name FROM sys.schema_unused_indexes WHERE object_schema = 'test' ORDER BY 1",
            "a|ab|b",
        ),
        (
            "SELECT rows_fetched, rows_inserted FROM sys.schema_table_statistics WHERE table_schema = 'test'",
            "1 2",
        ),
        ("SELECT user, statements > 0 FROM sys.user_summary WHERE user = 'root'", "root 1"),
        ("SELECT user LIKE 'root@%', command FROM sys.session WHERE conn_id = CONNECTION_ID()", "1 Query"),
        (
            "SELECT sys.format_bytes(2048), sys.format_time(1500000000), sys.format_bytes(NULL)",
            "2.00 KiB 1.50 ms NULL",
        ),
        (
            "SELECT COUNT(*) FROM sys.x$statement_analysis WHERE exec_count > 1 AND avg_latency > max_latency",
            "0",
        ),
        (
            "SELECT SUM(count_write) > 0, SUM(total <> '0 bytes') > 0 FROM sys.io_global_by_file_by_bytes \
             WHERE file LIKE '%/log.%'",
            "1 1",
        ),
        (
            "SELECT EVENT_NAME, COUNT_MISC > 0, SUM_NUMBER_OF_BYTES_WRITE > 0, SUM_TIMER_WAIT >= MAX_TIMER_WAIT \
             FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME LIKE '%innodb_log_file'",
            "wait/io/file/innodb/innodb_log_file 1 1 1",
        ),
        (
            "SELECT COUNT(*) > 0 FROM performance_schema.file_instances \
             WHERE EVENT_NAME = 'wait/io/file/innodb/innodb_data_file' AND OPEN_COUNT > 0",
            "1",
        ),
        (
            "SELECT COUNT(*), SUM(TYPE = 'value') FROM information_schema.INNODB_METRICS \
             WHERE NAME IN ('lock_deadlocks', 'trx_rseg_history_len', 'buffer_pool_reads', 'os_data_writes')",
            "4 2",
        ),
        ("SHOW VARIABLES LIKE 'innodb_version'", ""),
        (
            "SELECT COUNT(*), MIN(COUNT_ALLOC > 0) FROM performance_schema.memory_summary_global_by_event_name",
            "3 1",
        ),
    ] {
        let found = rows(&mut client, query).trim_end().replace('\n', "|").replace('\t', " ");
        assert_eq!(found, expected, "{query}");
    }
    let of_sys = "SELECT CALLS, SAMPLE_TEXT FROM information_schema.COHORT_STATEMENTS \
                  WHERE DIGEST_TEXT LIKE 'SELECT `b` FROM `t` FORCE INDEX%'";
    assert!(rows(&mut client, of_sys).starts_with("1\tSELECT b FROM t"));
    // It is not in the binary log, and a dropped one is not created again.
    let logged = rows(&mut client, "SHOW BINLOG EVENTS");
    assert!(!logged.contains("format_bytes"), "{logged}");
    client.query_drop("DROP DATABASE sys").expect("dropped");
    let mark = std::path::Path::new(rows(&mut client, "SELECT @@datadir").trim()).join("cohort.sys");
    drop(client);
    server.stop();
    server.restart();
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, "SHOW DATABASES LIKE 'sys'"), "");
    let after = rows(&mut client, of_sys);
    assert_eq!(after.trim_end().split('\t').next(), Some("1"), "statistics survive a restart: {after}");
    // One that exists is left alone when the mark is missing, as after a restore.
    client.query_drop("CREATE DATABASE sys").expect("created");
    client.query_drop("CREATE TABLE sys.own (a INT)").expect("created");
    drop(client);
    server.stop();
    std::fs::remove_file(&mark).expect("the mark is there");
    server.restart();
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, "SHOW TABLES FROM sys").trim_end(), "own");
    // What a crash has left of an unfinished one is replaced.
    drop(client);
    server.stop();
    std::fs::write(&mark, "begun\n").expect("written");
    server.restart();
    let mut client = server.in_test();
    assert!(rows(&mut client, "SHOW TABLES FROM sys").contains("statement_analysis"));
    assert_eq!(std::fs::read_to_string(mark).expect("the mark is there"), "");
}

/// MariaDB's own text of `sys` replaces this server's, and its views answer.
#[test]
fn sys_of_mariadb_installs_over_it() {
    let script = std::path::Path::new("/usr/share/mysql/mysql_sys_schema.sql");
    if !script.exists() {
        eprintln!("skipped: {} is not installed", script.display());
        return;
    }
    let server = Cohort::new(&["--sys-schema=ON"]);
    let (done, said) = server.tool("mariadb", &["-e", &format!("source {}", script.display())]);
    assert!(done, "{said}");
    let mut client = server.in_test();
    let list =
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'sys' AND TABLE_TYPE = 'VIEW'";
    let views: Vec<String> = client.query(list).expect("views");
    assert!(views.len() > 90, "{views:?}");
    for view in views {
        client
            .query_drop(format!("SELECT * FROM sys.`{view}`"))
            .unwrap_or_else(|error| panic!("{view}: {error}"));
    }
}
