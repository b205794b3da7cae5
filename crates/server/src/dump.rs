//! Connections that became replicas: a dump has its own two threads from COM_BINLOG_DUMP to the end of the
//! connection.
//!
//! # Concepts
//! The *dump thread* owns the connection like a worker would, and holds its lock; it sends. The *listener*
//! reads what the replica says meanwhile (acknowledgements, a farewell, the end of the stream) and ends the
//! dump when the replica is gone. epoll no longer knows the socket.
//!
//! # On failure
//! A replica that takes nothing for net_write_timeout is cut. KILL and the server's stop shut the socket
//! down: the listener sees it.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::Duration;

use cohort_base::Hold;
use cohort_protocol::{
    Capabilities, Decompressor, InputBuffer, ResultEncoding, ResultWriter, RowFormat, StatusFlags,
    write_error,
};
use cohort_replication::Source;
use cohort_replication::source::{
    DumpEnd, DumpHandle, DumpObserver, DumpRequest, DumpState, LinkGone, ReplicaLink, run_dump,
};
use cohort_tls::Received;

use crate::backend::Session;
use crate::connection::Connection;
use crate::drain::{Incoming, SocketDrain};
use crate::epoll::{Until, poll};

/// Both threads call nothing deep.
const STACK_BYTES: usize = 256 << 10;
/// The largest packet a replica sends while a dump runs: an acknowledgement.
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
            // Without it the end of the connection would not be seen.
            Err(_) => DumpEnd::Gone,
        };
        tell(&mut last, connection, &request, session.status(), end);
        // Ends the listener.
        connection.disconnect();
    });
    source.end_dump(&handle);
    inner.has_quit = true;
    connection.close(inner);
}

/// The last packet.
fn tell(
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
    let mut drain = SocketDrain { connection, hold: &Hold::default(), timeout, incoming };
    match end {
        DumpEnd::Finished(sequence) => {
            // A replica takes the old form only.
            let encoding = ResultEncoding { capabilities: Capabilities::default(), results: None };
            ResultWriter::new(out, sequence, encoding, RowFormat::Text, &mut drain).eof(status, 0);
        }
        DumpEnd::Failed(error, mut sequence) => {
            let server_id = request.server_id;
            shared.log.warning_of_replica(
                server_id,
                format_args!(
                    "The dump to slave_server({server_id}) ended with error {}: {}",
                    error.code.number(),
                    error.message
                ),
            );
            write_error(out, &mut sequence, &error);
        }
        DumpEnd::Gone => return,
    }
    // The replica may have gone.
    let _ = Link { connection, timeout }.send(out);
}

/// The socket, as the dump writes to it.
struct Link<'a> {
    connection: &'a Connection,
    /// net_write_timeout
    timeout: Duration,
}

impl ReplicaLink for Link<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), LinkGone> {
        let bytes = self.connection.packed(bytes);
        let mut rest = &*bytes;
        while !rest.is_empty() {
            match self.connection.send(rest) {
                Ok(0) if self.connection.wait_writable(self.timeout) && !self.connection.is_dead() => {}
                Ok(0) | Err(_) => return Err(LinkGone),
                Ok(n) => rest = &rest[n..],
            }
        }
        Ok(())
    }

    fn is_compressed(&self) -> bool {
        self.connection.is_compressed()
    }

    fn count_anew(&mut self) {
        self.connection.count_frames_from(1);
    }
}

/// The process list shows what the dump does.
struct Shown<'a>(&'a dyn Session);

impl DumpObserver for Shown<'_> {
    fn state(&self, state: DumpState) {
        self.0.show_dump(state.text());
    }
}

/// Reads until the replica, or somebody else, ends the connection.
fn listen(
    connection: &Connection,
    source: &Source,
    handle: &Arc<DumpHandle>,
    mut unpack: Option<Decompressor>,
) {
    let mut input = InputBuffer::default();
    let mut scratch = [0; 4096];
    // Of TLS something may be decrypted already, of which the socket tells nothing.
    let mut has_all = false;
    loop {
        if has_all && poll(&[(connection.fd(), Until::Input)], None).is_err() {
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

/// Returns false if the replica says goodbye or sends a packet that has no place in a dump.
fn take_packets(input: &mut InputBuffer, source: &Source, handle: &DumpHandle) -> bool {
    loop {
        // Each acknowledgement, like each command, starts at 0.
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
