//! Dispatch of protocol commands to the session.

use std::sync::Arc;
use std::time::Duration;

use cohort_config::Counter;
use cohort_protocol::{
    BinlogDump, Capabilities, ChangeUser, ColumnMeta, Command, InputBuffer, OkInfo, Packet, PreparedReply,
    ResultEncoding, ResultHead, ResultSink, ResultWriter, RowFormat, StatementParams, StatusFlags,
    write_error,
};
use cohort_replication::source::{DumpRequest, MarkedEvents};
use cohort_types::{SqlError, Value};

use crate::backend::{Killed, MultiStatements, Session};
use crate::connection::{After, ClientStatement, Connection, Inner};
use crate::cursor::{CursorSink, CursorSpace};
use crate::drain::{Incoming, SocketDrain};
use crate::login;

/// Refused COM_CHANGE_USER commands after which the connection may not change its user any more, to prevent
/// password guessing.
const REFUSED_CHANGES_MAX: u32 = 3;

/// Runs one command of a client that has logged in.
pub(crate) fn run(connection: &Arc<Connection>, inner: &mut Inner, packet: &Packet) -> After {
    let shared = connection.shared();
    shared.status.count(Counter::Queries);
    inner.input.expect_sequence(0);
    if Command::is_change_user(inner.input.payload(packet)) {
        match change_of_user(inner, packet) {
            Ok(change) => login::change_user(connection, inner, change, packet.sequence.wrapping_add(1)),
            Err(error) => write_error(&mut inner.out, &mut packet.sequence.wrapping_add(1), &error),
        }
        return After::Send;
    }
    let _running = shared.status.hold(Counter::ThreadsRunning);
    dispatch(connection, inner, packet)
}

fn change_of_user(inner: &mut Inner, packet: &Packet) -> Result<ChangeUser, SqlError> {
    let Ok(Command::ChangeUser(rest)) = Command::decode(inner.input.payload(packet)) else {
        return Err(malformed());
    };
    if inner.refused_changes >= REFUSED_CHANGES_MAX {
        return Err(SqlError::unknown_command());
    }
    inner.session.as_ref().map_or(Ok(()), |session| session.check_password())?;
    let change = ChangeUser::decode(rest, inner.capabilities).map_err(|_| malformed())?;
    inner.statements.clear();
    Ok(change)
}

fn dispatch(connection: &Arc<Connection>, inner: &mut Inner, packet: &Packet) -> After {
    let shared = connection.shared();
    let Inner {
        input,
        out,
        session,
        statements,
        cursor_files,
        last_prepared,
        capabilities,
        dump,
        unpack,
        ..
    } = inner;
    let session = &mut **session.as_mut().expect("a connection that is ready has a session");
    let settings = session.settings();
    let incoming = Incoming {
        bytes: InputBuffer::default(),
        is_next: input.is_empty(),
        unpack,
        packet_bytes_max: session.packet_bytes_max(),
    };
    let hold = Arc::clone(session.hold());
    let mut drain =
        SocketDrain { connection, hold: &hold, timeout: Duration::from_secs(settings.write_s_max), incoming };
    let encoding = ResultEncoding { capabilities: *capabilities, results: settings.results };
    // A long command takes several packets: the reply continues after the last one.
    let sequence = packet.sequence.wrapping_add(1);
    let mut writer = ResultWriter::new(out, sequence, encoding, RowFormat::Text, &mut drain);
    let command = match Command::decode(input.payload(packet)) {
        Ok(command) => command,
        Err(_) => {
            writer.error(&malformed());
            return After::Send;
        }
    };
    if !command.is_free_of_password()
        && let Err(error) = session.check_password()
    {
        writer.error(&error);
        return After::Send;
    }
    let mut prepared = Prepared { statements, last: last_prepared };
    let mut quit = false;
    match command {
        Command::StmtPrepare(sql) => {
            shared.status.count(Counter::ComStmtPrepare);
            prepare(session, &mut prepared, sql, &mut writer);
        }
        Command::StmtExecute { statement, cursor, rest } => {
            shared.status.count(Counter::Questions);
            shared.status.count(Counter::ComStmtExecute);
            writer.set_format(RowFormat::Binary);
            if cursor & CURSOR_READ_ONLY == 0 {
                execute(session, &mut prepared, statement, rest, &mut writer);
            } else {
                let space = CursorSpace {
                    memory: session.memory().map(Arc::clone),
                    memory_bytes_max: settings.cursor_bytes_max,
                    files: cursor_files,
                    create: &|| shared.backend.temporary_file(),
                };
                let mut sink = CursorSink::new(&mut writer, space);
                execute(session, &mut prepared, statement, rest, &mut sink);
                let opened = sink.into_cursor();
                if let Some((_, found)) = prepared.find(statement) {
                    found.cursor = opened;
                }
            }
        }
        Command::StmtBulkExecute { statement, flags, rest } if may_bulk(*capabilities, flags) => {
            shared.status.count(Counter::Questions);
            shared.status.count(Counter::ComStmtExecute);
            writer.set_format(RowFormat::Binary);
            execute_bulk(session, &mut prepared, (statement, flags), rest, &mut writer);
        }
        Command::StmtSendLongData { statement, param, data } => {
            shared.status.count(Counter::ComStmtSendLongData);
            // There is no reply. The next execution fails if data was refused.
            if let Some((_, found)) = prepared.find(statement) {
                found.params.add_long_data(param, data, session.packet_bytes_max(), session.memory());
            }
        }
        Command::StmtClose(statement) => {
            shared.status.count(Counter::ComStmtClose);
            if prepared.statements.remove(&statement).is_some() {
                session.close_statement(statement);
            }
        }
        Command::StmtReset(statement) => {
            shared.status.count(Counter::ComStmtReset);
            match prepared.find(statement) {
                Some((_, found)) => {
                    found.params.reset();
                    found.cursor = None;
                    ok(session, &mut writer);
                }
                None => writer.error(&unknown_statement(statement, "mysqld_stmt_reset")),
            }
        }
        Command::StmtFetch { statement, rows } => {
            shared.status.count(Counter::Questions);
            shared.status.count(Counter::ComStmtFetch);
            fetch(session, &mut prepared, (statement, rows), &mut writer);
        }
        Command::ResetConnection => {
            prepared.statements.clear();
            session.reset();
            ok(session, &mut writer);
        }
        Command::BinlogDump(request) => match dump_request(connection, session, &request) {
            Ok(request) => {
                // The stream depends on the session's variables, so wait until their values may be seen (I5).
                writer.drain();
                *dump = Some(request);
                return After::Dump;
            }
            Err(error) => {
                writer.error(&error);
                inner.closing = true;
            }
        },
        Command::Quit => quit = true,
        other => simple(connection, session, &other, &mut writer),
    }
    let hold = hold.until();
    // Bytes that followed the file of LOAD DATA LOCAL.
    let rest = drain.incoming.bytes.take_rest();
    if !rest.is_empty() {
        input.extend(&rest);
    }
    let killed = session.killed() == Killed::Connection || connection.is_killed();
    inner.has_quit |= quit;
    inner.closing |= quit || killed;
    if hold > shared.backend.acknowledged() {
        return After::ReplyBarrier(hold);
    }
    if session.settle() {
        session.write_log();
    }
    After::Send
}

/// Runs commands that need only the session.
fn simple(
    connection: &Arc<Connection>,
    session: &mut dyn Session,
    command: &Command<'_>,
    writer: &mut ResultWriter<'_>,
) {
    let shared = connection.shared();
    match command {
        Command::Query(sql) => {
            shared.status.count(Counter::Questions);
            session.query(sql, writer);
        }
        Command::InitDb(schema) => {
            shared.status.count(Counter::ComChangeDb);
            match std::str::from_utf8(schema) {
                Ok(schema) => session.init_db(schema, writer),
                Err(_) => writer.error(&malformed()),
            }
        }
        Command::FieldList { table, wildcard } => {
            let (table, wildcard) = (String::from_utf8_lossy(table), String::from_utf8_lossy(wildcard));
            match session.field_list(&table, &wildcard) {
                Ok(columns) => writer.field_list(&columns, session.status()),
                Err(error) => writer.error(&error),
            }
        }
        Command::Ping => {
            shared.status.count(Counter::ComAdminCommands);
            ok(session, writer);
        }
        Command::Statistics => {
            shared.status.count(Counter::ComAdminCommands);
            writer.text(&shared.statistics());
        }
        Command::Debug => match session.may_debug() {
            Ok(()) => writer.eof(session.status(), 0),
            Err(error) => writer.error(&error),
        },
        Command::SetOption(option @ (0 | 1)) => {
            session.set_multi_statements(match option {
                0 => MultiStatements::On,
                _ => MultiStatements::Off,
            });
            writer.eof(session.status(), 0);
        }
        Command::Shutdown => match session.may_shut_down() {
            Ok(()) => {
                writer.eof(session.status(), 0);
                shared.request_stop();
            }
            Err(error) => writer.error(&error),
        },
        Command::RegisterReplica(replica) => match session.may_replicate() {
            Ok(()) => {
                if let Some(source) = shared.backend.source() {
                    source.register(connection.id, replica);
                }
                ok(session, writer);
            }
            Err(error) => writer.error(&error),
        },
        Command::ProcessInfo => session.query(b"SHOW PROCESSLIST", writer),
        Command::ProcessKill(id) => session.query(format!("KILL {id}").as_bytes(), writer),
        Command::Refresh(bits) => match session.may_reload() {
            Ok(()) => refresh(session, *bits, writer),
            Err(error) => writer.error(&error),
        },
        Command::StmtBulkExecute { .. } => {
            writer.error(&SqlError::not_in_prepared_protocol());
        }
        _ => writer.error(&SqlError::unknown_command()),
    }
}

/// COM_BINLOG_DUMP: checks the request and returns it.
fn dump_request(
    connection: &Connection,
    session: &mut dyn Session,
    dump: &BinlogDump<'_>,
) -> Result<DumpRequest, SqlError> {
    session.may_replicate()?;
    if connection.shared().backend.source().is_none() {
        return Err(SqlError::binlog_not_open());
    }
    let mut request = DumpRequest::read(dump, &|name| session.user_variable(name))?;
    if session.skips_marked_events() {
        request.marked = MarkedEvents::Skip;
    }
    Ok(request)
}

/// COM_REFRESH: runs a FLUSH statement for each bit. Replies with the first error, or with OK.
fn refresh(session: &mut dyn Session, bits: u8, writer: &mut ResultWriter<'_>) {
    for (bit, what) in [(1, "PRIVILEGES"), (2, "BINARY LOGS"), (4, "TABLES"), (16, "STATUS")] {
        if bits & bit != 0 {
            let mut outcome = OnlyError(None);
            session.query(format!("FLUSH {what}").as_bytes(), &mut outcome);
            if let Some(error) = outcome.0 {
                return writer.error(&error);
            }
        }
    }
    ok(session, writer);
}

/// A sink that keeps only the error of a statement.
pub(crate) struct OnlyError(pub Option<SqlError>);

impl ResultSink for OnlyError {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn error(&mut self, error: &SqlError) {
        self.0 = Some(error.clone());
    }
    fn is_dead(&self) -> bool {
        false
    }
}

/// The prepared statements of a connection.
struct Prepared<'a> {
    statements: &'a mut std::collections::HashMap<u32, ClientStatement>,
    last: &'a mut u32,
}

impl Prepared<'_> {
    fn find(&mut self, statement: u32) -> Option<(u32, &mut ClientStatement)> {
        let id = if statement == u32::MAX { *self.last } else { statement };
        self.statements.get_mut(&id).map(|found| (id, found))
    }
}

fn prepare(
    session: &mut dyn Session,
    prepared: &mut Prepared<'_>,
    sql: &[u8],
    writer: &mut ResultWriter<'_>,
) {
    match session.prepare(sql) {
        Ok(statement) => {
            *prepared.last = statement.id;
            let params = StatementParams::new(statement.params.len() as u16);
            prepared.statements.insert(statement.id, ClientStatement { params, cursor: None });
            writer.prepared(&PreparedReply {
                statement: statement.id,
                params: &statement.params,
                columns: &statement.columns,
                status: session.status(),
                warnings: statement.warnings,
            });
        }
        Err(error) => writer.error(&error),
    }
}

fn execute(
    session: &mut dyn Session,
    prepared: &mut Prepared<'_>,
    statement: u32,
    rest: &[u8],
    sink: &mut dyn ResultSink,
) {
    let Some((id, found)) = prepared.find(statement) else {
        return sink.error(&unknown_statement(statement, "mysqld_stmt_execute"));
    };
    found.cursor = None;
    if let Some(refused) = found.params.take_refusal() {
        return sink.error(&refused);
    }
    match found.params.decode(rest, session.settings().params) {
        Ok(values) => session.execute(id, values, sink),
        Err(_) => sink.error(&SqlError::wrong_arguments("mysqld_stmt_execute")),
    }
    found.params.reset();
}

/// CURSOR_TYPE_READ_ONLY of COM_STMT_EXECUTE. MariaDB has no other.
const CURSOR_READ_ONLY: u8 = 1;

fn fetch(
    session: &mut dyn Session,
    prepared: &mut Prepared<'_>,
    (statement, count): (u32, u32),
    writer: &mut ResultWriter<'_>,
) {
    let Some((id, found)) = prepared.find(statement) else {
        return writer.error(&unknown_statement(statement, "mysqld_stmt_fetch"));
    };
    let Some(cursor) = &mut found.cursor else {
        return writer.error(&SqlError::no_open_cursor(statement));
    };
    session.begin_fetch(id);
    let fetched = cursor.fetch(count, writer, &|| session.check_interrupt());
    session.end_fetch();
    match fetched {
        Ok(true) => writer.eof(session.status().with(StatusFlags::CURSOR_EXISTS), 0),
        Ok(false) => {
            found.cursor = None;
            writer.eof(session.status().with(StatusFlags::LAST_ROW_SENT), 0);
        }
        Err(error) => {
            found.cursor = None;
            writer.error(&error);
        }
    }
}

/// Flag: the types of the parameters precede the rows.
const BULK_TYPES: u16 = 128;

/// Returns whether the client supports COM_STMT_BULK_EXECUTE and sets no unknown flag.
fn may_bulk(capabilities: Capabilities, flags: u16) -> bool {
    capabilities.has(Capabilities::BULK_OPERATIONS) && flags & !BULK_TYPES == 0
}

fn execute_bulk(
    session: &mut dyn Session,
    prepared: &mut Prepared<'_>,
    (statement, flags): (u32, u16),
    rest: &[u8],
    writer: &mut ResultWriter<'_>,
) {
    let Some((id, found)) = prepared.find(statement) else {
        return writer.error(&unknown_statement(statement, "mysqld_stmt_bulk_execute"));
    };
    found.cursor = None;
    if let Some(refused) = found.params.take_refusal() {
        return writer.error(&refused);
    }
    match found.params.decode_rows(rest, flags & BULK_TYPES != 0, session.settings().params) {
        Ok(mut rows) => session.execute_bulk(id, &mut rows, writer),
        Err(_) => writer.error(&SqlError::wrong_arguments("mysqld_stmt_bulk_execute")),
    }
}

fn ok(session: &dyn Session, writer: &mut ResultWriter<'_>) {
    writer.ok(&OkInfo { status: session.status(), ..OkInfo::default() });
}

fn unknown_statement(statement: u32, call: &str) -> SqlError {
    SqlError::unknown_statement(&statement.to_string(), call)
}

fn malformed() -> SqlError {
    SqlError::malformed_packet()
}

// The bit distinguishes MariaDB clients from MySQL clients. This check prevents offering it by accident.
const _: () = assert!(!Capabilities::SERVER.has(Capabilities::MYSQL));
