//! Connections of replicas: a dump has two threads of its own from COM_BINLOG_DUMP to the end of the
//! connection.
//!
//! # Concepts
//! The *dump thread* owns the connection as a worker would, holds its lock, and sends. The *listener thread*
//! reads the replica's packets (acknowledgements, COM_QUIT, the end of the stream) and ends the dump when the
//! replica disconnects. The socket is no longer registered with epoll.
//!
//! # On failure
//! A replica that accepts no data for net_write_timeout is disconnected. KILL and the server's stop shut the
//! socket down, which ends the listener.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::Duration;

use cohort_base::ReplyBarrier;
use cohort_protocol::{
    Capabilities, Decompressor, InputBuffer, ResultEncoding, ResultWriter, RowFormat, StatusFlags,
    write_error,
};
use cohort_replication::Source;
use cohort_replication::source::{
    ConnectionClosed, DumpEnd, DumpHandle, DumpObserver, DumpRequest, DumpState, ReplicaLink, run_dump,
};
use cohort_tls::Received;

use crate::backend::Session;
use crate::connection::Connection;
use crate::drain::{Incoming, SocketDrain};
use crate::epoll::poll;

/// Small, because neither thread makes deep calls.
const STACK_BYTES: usize = 256 << 10;
/// Maximum packet of a replica during a dump: an acknowledgement.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// COM_QUIT.
const QUIT: u8 = 1;

/// Starts the thread that owns the connection from now on.
pub(crate) fn start(connection: Arc<Connection>) -> io::Result<()> {
    let run = move || {
        let served = catch_unwind(AssertUnwindSafe(|| serve(&connection)));
        if served.is_err() {
            let shared = connection.shared();
            shared.log.error(format_args!(
                "The dump of connection {} ended: it hit a bug in the server (see the message of the panic)",
                connection.id
            ));
            connection.abandon();
        }
    };
    Builder::new().name("binlog-dump".into()).stack_size(STACK_BYTES).spawn(run).map(drop)
}

fn serve(connection: &Arc<Connection>) {
    let shared = connection.shared();
    let mut inner = connection.inner.lock();
    let (Some(source), Some(request)) = (shared.backend.source(), inner.dump.take()) else {
        return connection.close(inner);
    };
    let unpack = inner.unpack.take();
    let session = inner.session.as_ref().expect("who asks for a dump has logged in");
    let link = Link { connection, timeout: Duration::from_secs(session.settings().write_s_max) };
    let handle = source.begin_dump(request.server_id, connection.id);
    shared.log.note_of_replica(
        request.server_id,
        format_args!("Start binlog_dump to slave_server({}): {}", request.server_id, request.start),
    );
    let mut last = Vec::new();
    thread::scope(|scope| {
        let listen = || listen(connection, &source, &handle, unpack);
        let listener =
            Builder::new().name("binlog-listen".into()).stack_size(STACK_BYTES).spawn_scoped(scope, listen);
        let end = match listener {
            Ok(_) => run_dump(&source, &request, &handle, &Shown(&**session), link),
            // Without the listener the end of the connection would not be noticed.
            Err(_) => DumpEnd::Gone,
        };
        report_end(&mut last, connection, &request, session.status(), end);
        // Ends the listener.
        connection.disconnect();
    });
    source.end_dump(&handle);
    inner.has_quit = true;
    connection.close(inner);
}

/// Logs the reason for the end of a dump and sends the last packet.
fn report_end(
    out: &mut Vec<u8>,
    connection: &Connection,
    request: &DumpRequest,
    status: StatusFlags,
    end: DumpEnd,
) {
    let shared = connection.shared();
    let timeout = Duration::from_secs(1);
    let incoming =
        Incoming { bytes: InputBuffer::default(), is_next: false, unpack: &mut None, packet_bytes_max: 0 };
    let mut drain = SocketDrain { connection, hold: &ReplyBarrier::default(), timeout, incoming };
    match end {
        DumpEnd::Finished(sequence) => {
            // A replica expects the old EOF packet.
            let encoding = ResultEncoding { capabilities: Capabilities::default(), results: None };
            ResultWriter::new(out, sequence, encoding, RowFormat::Text, &mut drain).eof(status, 0);
        }
        DumpEnd::Failed(error, mut sequence) => {
            let server_id = request.server_id;
            shared.log.warning_of_replica(
                server_id,
                format_args!(
                    "The dump to slave_server({server_id}) ended with error {}: {}",
                    error.number(),
                    error.message
                ),
            );
            write_error(out, &mut sequence, &error);
        }
        DumpEnd::Gone => return,
    }
    // The replica may have disconnected.
    let _ = Link { connection, timeout }.send(out);
}

/// The socket as the destination of the dump.
struct Link<'a> {
    connection: &'a Connection,
    /// net_write_timeout
    timeout: Duration,
}

impl ReplicaLink for Link<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionClosed> {
        let bytes = self.connection.packed(bytes);
        let mut rest = &*bytes;
        while !rest.is_empty() {
            match self.connection.send(rest) {
                Ok(0) if self.connection.wait_writable(self.timeout) && !self.connection.is_dead() => {}
                Ok(0) | Err(_) => return Err(ConnectionClosed),
                Ok(n) => rest = &rest[n..],
            }
        }
        Ok(())
    }

    fn is_compressed(&self) -> bool {
        self.connection.is_compressed()
    }

    fn recount(&mut self) {
        self.connection.count_frames_from(1);
    }
}

/// Shows the state of the dump in the process list.
struct Shown<'a>(&'a dyn Session);

impl DumpObserver for Shown<'_> {
    fn state(&self, state: DumpState) {
        self.0.show_dump(state.text());
    }
}

/// Reads until the connection ends.
fn listen(
    connection: &Connection,
    source: &Source,
    handle: &Arc<DumpHandle>,
    mut unpack: Option<Decompressor>,
) {
    let mut input = InputBuffer::default();
    let mut scratch = [0; 4096];
    // With TLS, decrypted bytes may be buffered, which polling the socket does not show.
    let mut has_all = false;
    loop {
        if has_all && poll(&[connection.fd()], None).is_err() {
            break;
        }
        match connection.receive(&mut scratch) {
            Ok(Received { bytes: 0, .. }) => break,
            Ok(Received { bytes, is_all }) => {
                has_all = is_all;
                match &mut unpack {
                    None => input.extend(&scratch[..bytes]),
                    Some(unpack) => {
                        if unpack.unpack(&scratch[..bytes], INPUT_BYTES_MAX, &mut input).is_err() {
                            break;
                        }
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => has_all = true,
            Err(_) => break,
        }
        if !take_packets(&mut input, source, handle) {
            break;
        }
    }
    source.end(handle);
}

/// Processes complete packets. Returns false if the replica disconnects or sends a packet that is not valid
/// in a dump.
fn take_packets(input: &mut InputBuffer, source: &Source, handle: &DumpHandle) -> bool {
    loop {
        // Each acknowledgement, like each command, starts with sequence number 0.
        input.expect_sequence(0);
        match input.next(INPUT_BYTES_MAX) {
            Ok(None) => return true,
            Ok(Some(packet)) => match input.payload(&packet) {
                [QUIT] => return false,
                payload if source.take_acknowledgement(handle, payload) => {}
                _ => return false,
            },
            Err(_) => return false,
        }
    }
}
