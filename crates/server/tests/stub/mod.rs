//! A server over a stub that understands a few statements, for connection tests.

#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, ReplyBarrier};
use cohort_config::{Globals, SessionVars, Status, VarId, VarValue};
use cohort_protocol::{
    ColumnMeta, ListedColumn, NativePassword, OkInfo, ParamText, ResultHead, ResultSink, StatusFlags,
};
use cohort_server::{
    Account, Accounts, Backend, BootstrapAccounts, ConnectionInfo, Endpoints, ErrorLog, Found, Killed,
    Method, MultiStatements, PreparedStatement, Server, ServerOptions, Session, SessionSettings, Wake,
    WorkerLimits, Workers,
};
use cohort_types::{Charset, Collation, ErrorCode, SqlError, Value};
use cohort_vfs::World;
use parking_lot::Mutex;

/// Statements are ordered at once and published by `lead`, after a pause that simulates the disk.
pub struct Stub {
    globals: Arc<Globals>,
    workers: Arc<Workers>,
    pub flush: Duration,
    ordered: AtomicU64,
    published: AtomicU64,
    waiting: Mutex<Vec<(CommitSeq, Arc<dyn Wake>)>>,
    leader: Mutex<()>,
    pub flushes: AtomicU64,
    pub open: Arc<AtomicU64>,
    pub hangs: AtomicBool,
}

impl Stub {
    /// Returns whether everything ordered is published.
    pub fn is_all_published(&self) -> bool {
        self.published.load(Ordering::Acquire) == self.ordered.load(Ordering::Acquire)
    }
}

/// root is an administrator, `guest` is not. Neither has a password.
struct StubAccounts;

impl Accounts for StubAccounts {
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Found {
        let method = Method::Password(NativePassword::Empty);
        let guest = (user == "guest").then(|| Account::new(user, host, method));
        guest.map_or_else(|| BootstrapAccounts.find(user, host, address), Found::Account)
    }
}

struct StubSession {
    stub: Arc<Stub>,
    vars: SessionVars,
    info: ConnectionInfo,
    hold: Arc<ReplyBarrier>,
    statements: u32,
    texts: Vec<String>,
}

impl Drop for StubSession {
    fn drop(&mut self) {
        self.stub.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StubSession {
    fn run(&mut self, sql: &str, params: &[Value], sink: &mut dyn ResultSink) {
        let (word, rest) = sql.split_once(' ').unwrap_or((sql, ""));
        match word.to_ascii_lowercase().as_str() {
            "select" => self.select(rest, params, sink),
            "commit" => {
                self.hold.raise(CommitSeq(self.stub.ordered.fetch_add(1, Ordering::AcqRel) + 1));
                sink.ok(&OkInfo { affected_rows: 1, status: self.status(), ..OkInfo::default() });
            }
            "slow-commit" => {
                std::thread::sleep(Duration::from_millis(rest.parse().expect("milliseconds")));
                self.hold.raise(CommitSeq(self.stub.ordered.fetch_add(1, Ordering::AcqRel) + 1));
                sink.ok(&OkInfo { affected_rows: 1, status: self.status(), ..OkInfo::default() });
            }
            // Orders another session's transaction, as the holder of the order stage does.
            "order-other" => {
                self.stub.ordered.fetch_add(1, Ordering::AcqRel);
                sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
            }
            // Ignores KILL until the test releases it.
            "hang" => {
                while self.stub.hangs.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
            }
            "commit-and-big" => {
                self.run("commit", params, sink);
                self.run(&format!("big {rest}"), params, sink);
            }
            "big" => {
                let rows: usize = rest.parse().expect("a number of rows");
                sink.start(&[ColumnMeta::text("filler", 1000)], ResultHead::default());
                let row = [Value::text("x".repeat(1000))];
                for _ in 0..rows {
                    if sink.is_dead() {
                        break;
                    }
                    sink.row(&row);
                }
                sink.finish(self.status(), 0);
            }
            "length" => {
                let value = Value::UInt(rest.len() as u64);
                sink.start(&[ColumnMeta::integer("length", 20)], ResultHead::default());
                sink.row(&[value]);
                sink.finish(self.status(), 0);
            }
            "block" => {
                self.stub.workers.begin();
                std::thread::sleep(Duration::from_millis(rest.parse().expect("milliseconds")));
                self.stub.workers.end();
                sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
            }
            "two" => {
                for (n, status) in [(1, self.status().with(StatusFlags::MORE_RESULTS)), (2, self.status())] {
                    sink.start(&[ColumnMeta::integer("n", 20)], ResultHead::default());
                    sink.row(&[Value::Int(n)]);
                    sink.finish(status, 0);
                }
            }
            "boom" => panic!("a bug in a statement"),
            "fail" => sink.error(&SqlError::new(ErrorCode::NoSuchTable, "Table 'test.t' doesn't exist")),
            _ => sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() }),
        }
    }

    /// Evaluates numbers, 'texts', @@variables, USER() and question marks.
    fn select(&mut self, list: &str, params: &[Value], sink: &mut dyn ResultSink) {
        let list = list.split(" limit ").next().expect("the first part");
        let list = list.split(" LIMIT ").next().expect("the first part");
        let mut params = params.iter();
        let (mut columns, mut row) = (Vec::new(), Vec::new());
        for item in list.split(',').map(str::trim) {
            let value = if item == "?" {
                params.next().cloned().unwrap_or(Value::Null)
            } else if let Some(name) = item.strip_prefix("@@") {
                match self.vars.get(name.trim_start_matches("session."), None) {
                    Ok(VarValue::UInt(v)) => Value::UInt(v),
                    Ok(other) => Value::text(other.to_string()),
                    Err(error) => {
                        return sink
                            .error(&SqlError::new(ErrorCode::UnknownSystemVariable, error.to_string()));
                    }
                }
            } else if let Ok(number) = item.parse::<i64>() {
                Value::Int(number)
            } else if item.eq_ignore_ascii_case("user()") {
                Value::text(format!("{}@{}", self.info.user, self.info.host))
            } else {
                Value::text(item.trim_matches('\''))
            };
            columns.push(match value {
                Value::Int(_) | Value::UInt(_) => ColumnMeta::integer(item, 20),
                _ => ColumnMeta::text(item, 100),
            });
            row.push(value);
        }
        sink.start(&columns, ResultHead::default());
        sink.row(&row);
        sink.finish(self.status(), 0);
    }
}

impl Session for StubSession {
    fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink) {
        let sql = String::from_utf8_lossy(sql).into_owned();
        self.run(&sql, &[], sink);
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedStatement, SqlError> {
        let sql = String::from_utf8_lossy(sql).into_owned();
        self.statements += 1;
        let params = vec![ColumnMeta::text("?", 0); sql.matches('?').count()];
        let columns = params.clone();
        self.texts.push(sql);
        Ok(PreparedStatement { id: self.statements, params, columns, warnings: 0 })
    }

    fn execute(&mut self, statement: u32, params: Vec<Value>, sink: &mut dyn ResultSink) {
        let sql = self.texts[statement as usize - 1].clone();
        self.run(&sql, &params, sink);
    }

    fn close_statement(&mut self, _statement: u32) {}

    fn init_db(&mut self, schema: &str, sink: &mut dyn ResultSink) {
        match schema {
            "missing" => sink.error(&SqlError::new(ErrorCode::BadDb, "Unknown database 'missing'")),
            _ => sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() }),
        }
    }

    fn field_list(&mut self, _table: &str, _wildcard: &str) -> Result<Vec<ListedColumn>, SqlError> {
        Ok(vec![ListedColumn { meta: ColumnMeta::integer("id", 20), default: None }])
    }

    fn reset(&mut self) {
        self.vars.reset();
    }

    fn change_user(&mut self, info: ConnectionInfo) -> Result<(), SqlError> {
        self.info = info;
        Ok(())
    }

    fn set_multi_statements(&mut self, _multi: MultiStatements) {}

    fn may_shut_down(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    fn settings(&self) -> SessionSettings {
        SessionSettings {
            results: Some(Collation::UTF8MB4_GENERAL_CI),
            params: ParamText { charset: Charset::Utf8mb4, collation: Collation::UTF8MB4_GENERAL_CI },
            cursor_bytes_max: self.vars.uint(VarId::TmpTableSize) as usize,
            write_s_max: self.vars.uint(VarId::NetWriteTimeout),
        }
    }

    fn packet_bytes_max(&self) -> usize {
        self.vars.uint(VarId::MaxAllowedPacket) as usize
    }

    fn idle_s_max(&self) -> u64 {
        self.vars.uint(VarId::WaitTimeout)
    }

    fn status(&self) -> StatusFlags {
        StatusFlags::AUTOCOMMIT
    }

    fn hold(&self) -> &Arc<ReplyBarrier> {
        &self.hold
    }

    fn killed(&self) -> Killed {
        Killed::No
    }
}

pub struct StubBackend(pub Arc<Stub>);

impl Backend for StubBackend {
    fn connect(
        &self,
        info: ConnectionInfo,
        _closer: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Box<dyn Session>, SqlError> {
        if info.schema.as_deref() == Some("missing") {
            return Err(SqlError::new(ErrorCode::BadDb, "Unknown database 'missing'"));
        }
        self.0.open.fetch_add(1, Ordering::Relaxed);
        let vars = self.0.globals.new_session();
        let stub = Arc::clone(&self.0);
        Ok(Box::new(StubSession { stub, vars, info, hold: Arc::default(), statements: 0, texts: Vec::new() }))
    }

    fn acknowledged(&self) -> CommitSeq {
        CommitSeq(self.0.published.load(Ordering::Acquire))
    }

    fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        let mut waiting = self.0.waiting.lock();
        if seq <= self.acknowledged() {
            return false;
        }
        waiting.push((seq, wake));
        true
    }

    fn lead(&self) {
        while self.0.published.load(Ordering::Acquire) < self.0.ordered.load(Ordering::Acquire) {
            let Some(leader) = self.0.leader.try_lock() else { return };
            let ordered = self.0.ordered.load(Ordering::Acquire);
            std::thread::sleep(self.0.flush);
            self.0.flushes.fetch_add(1, Ordering::Relaxed);
            let due: Vec<_> = {
                let mut waiting = self.0.waiting.lock();
                self.0.published.store(ordered, Ordering::Release);
                let (due, rest) = waiting.drain(..).partition(|(seq, _)| seq.0 <= ordered);
                *waiting = rest;
                due
            };
            drop(leader);
            for (_, wake) in due {
                wake.acknowledged();
            }
        }
    }

    /// Leaves the flush to idle workers.
    fn lead_later(&self) {}

    fn has_queued(&self) -> bool {
        self.0.published.load(Ordering::Acquire) < self.0.ordered.load(Ordering::Acquire)
    }

    fn wait_acknowledged(&self, seq: CommitSeq) -> bool {
        while self.acknowledged() < seq {
            self.lead();
            std::thread::yield_now();
        }
        true
    }
}

pub struct TestServer {
    pub server: Option<Server>,
    pub stub: Arc<Stub>,
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub workers: Arc<Workers>,
    pub address: SocketAddr,
    pub directory: tempfile::TempDir,
}

impl TestServer {
    pub fn start(flush: Duration) -> TestServer {
        TestServer::with_workers(flush, 40)
    }

    /// Starts a server with at most this many workers.
    pub fn with_workers(flush: Duration, total_max: usize) -> TestServer {
        let world = World::real();
        let globals = Arc::new(Globals::new());
        let status = Arc::new(Status::default());
        let workers = Arc::new(Workers::new(WorkerLimits {
            active: 3,
            total_max,
            stack_bytes: 1 << 20,
            idle: Duration::from_secs(1),
        }));
        let stub = Arc::new(Stub {
            globals: globals.clone(),
            workers: workers.clone(),
            flush,
            ordered: AtomicU64::new(0),
            published: AtomicU64::new(0),
            waiting: Mutex::default(),
            leader: Mutex::default(),
            flushes: AtomicU64::new(0),
            open: Arc::new(AtomicU64::new(0)),
            hangs: AtomicBool::new(true),
        });
        let directory = tempfile::tempdir().expect("a directory");
        let mut endpoints = Endpoints::new();
        let address = endpoints.bind_tcp("127.0.0.1", 0, 100).expect("a port")[0];
        endpoints.bind_unix(&directory.path().join("socket"), 100).expect("a socket");
        let log = ErrorLog::open(Some(&directory.path().join("log")), world.clock.clone()).expect("a log");
        let options = ServerOptions {
            globals: globals.clone(),
            status: status.clone(),
            backend: Arc::new(StubBackend(stub.clone())),
            accounts: Arc::new(StubAccounts),
            workers: workers.clone(),
            tls: None,
            clock: world.clock.clone(),
            rng: world.rng.clone(),
            log,
        };
        let mut server = Server::start(options).expect("a server");
        server.listen(endpoints).expect("listening");
        let server = Some(server);
        TestServer { server, stub, globals, status, workers, address, directory }
    }

    /// Returns the contents of the error log.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).expect("a log")
    }

    pub fn socket(&self) -> std::path::PathBuf {
        self.directory.path().join("socket")
    }

    pub fn client(&self) -> mysql::Conn {
        mysql::Conn::new(self.options()).expect("logged in")
    }

    pub fn options(&self) -> mysql::OptsBuilder {
        mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.address.port())
            .user(Some("root"))
            .prefer_socket(false)
            .read_timeout(Some(Duration::from_secs(60)))
    }
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// Returns the reply of root, which has no password, to any greeting.
pub fn login_packet() -> Vec<u8> {
    let capabilities: u32 = 1 << 9 | 1 << 15 | 1 << 19;
    let mut response = capabilities.to_le_bytes().to_vec();
    response.extend_from_slice(&[0, 0, 0, 1, 45]);
    response.extend_from_slice(&[0; 23]);
    response.extend_from_slice(b"root\0\0mysql_native_password\0");
    packet(1, &response)
}

/// A raw client.
pub struct RawClient {
    pub stream: TcpStream,
}

impl RawClient {
    pub fn login(server: &TestServer) -> RawClient {
        let stream = TcpStream::connect(server.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let mut client = RawClient { stream };
        assert_eq!(client.payload()[0], 10);
        client.stream.write_all(&login_packet()).expect("sent");
        assert_eq!(client.payload()[0], 0);
        client
    }

    pub fn payload(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a header");
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).expect("a payload");
        payload
    }
}
