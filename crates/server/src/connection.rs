//! One connection: socket, buffers, session, and the rules for the threads that use it.
//!
//! # Owner
//! The *owner* is the thread that may use the connection. There is at most one (the listener thread of a
//! dump, which only reads acknowledgements from the socket, is none). `ownership.rs` has the states: idle,
//! running (with an owner), parked (the reply waits for a commit), closed. A thread becomes the owner in one
//! of these ways:
//! - [`Connection::take`], as a worker that receives an event of an idle connection, or as the accepting
//!   thread that closes a half-open login ([`Connection::give_way`]);
//! - as the accepting thread, which makes the connection and sends the greeting;
//! - through the ready queue ([`Shared::serve_later`]), from the previous owner;
//! - [`Wake::acknowledged`], as the thread that acknowledges the commit that a parked reply waits for;
//! - as the dump thread of a replica (`dump.rs`), which keeps the connection to its end.
//!
//! The owner holds the lock of [`Inner`] while it works. No other thread waits for this lock during a
//! statement, because nothing but the owner needs it. Two waits are possible: the next owner waits until the
//! previous one has sent its reply, and a new dump thread waits until the worker that started it returns.
//!
//! # Path of a request
//! ```text
//! event -> take -> serve: read -> packet -> answer: command -> reply in `out`
//! ```
//! The command, and whether input is left, decide the path of the reply:
//! - **The reply need not wait for a commit, no input is left, and the connection goes on.** The owner
//!   releases the connection and sends, still holding the lock: the connection is idle before the client gets
//!   the reply, so the client's next request finds no owner. If an event arrived meanwhile, `release` returns
//!   [`Events::Missed`]. The worker is then still the owner: it sends the reply and reads again.
//! - **The reply need not wait for a commit, and there is more input** (pipelined commands), or the
//!   connection closes. The worker remains the owner and calls `lead_later`, which lets an idle worker become
//!   the leader of the transactions ordered so far. `serve` sends the reply and continues with the next
//!   packet.
//! - **The reply waits for a commit** ([`After::ReplyBarrier`]). The worker parks the connection, registers a
//!   callback ([`Wake`]) with the commit path, and returns. It may act as leader of a group later, in its
//!   main loop (`shared.rs`). If the commit was acknowledged before the registration, the worker unparks the
//!   connection and continues as in the two cases above.
//! - **The connection becomes a replica's** ([`After::Dump`]). A new thread takes it over.
//!
//! The thread that acknowledges the commit calls [`Wake::acknowledged`]: it unparks the connection, releases
//! it and sends the reply. If an event was missed or input is left, it sends the reply and passes the
//! connection to a worker, because an acknowledging thread does not serve clients.
//!
//! A large result does not stay in `out`: the worker sends parts of it while the statement runs (`drain.rs`).
//! Before each part it waits until everything that the part depends on is acknowledged.
//!
//! # Invariants
//! - Bytes are sent only when everything they depend on is acknowledged, and so durable and published (I4,
//!   I5). While a connection is parked, nothing is sent and no further command starts. `drain.rs` checks the
//!   same before each send.
//! - No input is missed, although epoll reports each event once. An owner reads until a short read. A worker
//!   that receives an event of a connection with an owner leaves a mark in the state. `release` or `unpark`
//!   returns the mark to the owner.
//!
//! # On failure
//! A broken socket or a protocol error closes the connection. The session is dropped, which rolls back. The
//! owner closes it: [`Connection::disconnect`], from any thread, only shuts the socket down.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, ConnectionId, Reservation};
use cohort_config::Counter;
use cohort_protocol::{
    Capabilities, Compressor, Decompressor, InputBuffer, Packet, PacketError, StatementParams, write_error,
};
use cohort_replication::source::DumpRequest;
use cohort_tls::{Received, TlsStream};
use cohort_types::SqlError;
use parking_lot::{Mutex, MutexGuard};
use socket2::Socket;

use crate::backend::{Session, Wake};
use crate::cursor::{self, Cursor};
use crate::epoll::{Interest, wait_readable, wait_writable};
use crate::half_open::Origin;
use crate::login::{self, Stage};
use crate::ownership::{Events, Ownership};
use crate::shared::{Place, Shared};
use crate::tls::Encryption;
use crate::wire::Wire;
use crate::{commands, dump, machine};

/// Memory that an idle connection keeps.
const OUT_BYTES_KEPT: usize = 16 << 10;
const INPUT_BYTES_KEPT: usize = 4 << 10;
/// Buffered input up to this size is not charged to the session.
const INPUT_BYTES_UNCHARGED: usize = 256 << 10;
/// Maximum packet size before login.
const LOGIN_BYTES_MAX: usize = 128 << 10;
/// Maximum payload of a compressed frame.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 24;

/// Address of the client.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Host name that accounts are matched with: `localhost` or the address.
    pub host: String,
    /// Address of a client over TCP. Accounts are matched with it, too.
    pub address: Option<String>,
    /// Network that its half-open connections are counted for.
    pub origin: Origin,
    /// Text in the process list.
    pub shown: String,
}

pub(crate) struct Connection {
    pub id: ConnectionId,
    pub token: u64,
    pub peer: Peer,
    wire: Wire,
    owner: Ownership,
    /// Monotonic milliseconds after which an idle connection is closed.
    deadline_ms: AtomicU64,
    /// An event reported the end of the input. It is reported only once.
    has_ended: AtomicBool,
    /// The socket was shut down.
    dead: AtomicBool,
    /// Input of the client was read. Set only before login.
    has_received: AtomicBool,
    /// A user has logged in.
    entered: AtomicBool,
    /// KILL was used.
    killed: AtomicBool,
    /// A dump thread owns the connection.
    dumping: AtomicBool,
    /// The statement waits for the client to receive or send something.
    awaits_client: AtomicBool,
    /// Bytes pass through `compressor`. Set once, by the owner.
    compressed: AtomicBool,
    /// Used by the owner only.
    compressor: Mutex<Compressor>,
    shared: Arc<Shared>,
    pub inner: Mutex<Inner>,
}

/// A prepared statement of the client.
pub(crate) struct ClientStatement {
    pub params: StatementParams,
    pub cursor: Option<Cursor>,
}

/// State of a connection that its owner uses.
pub(crate) struct Inner {
    pub input: InputBuffer,
    /// Memory of a long packet, charged to the session.
    input_memory: Option<Reservation>,
    /// Replies. The first `sent` bytes have been sent.
    pub out: Vec<u8>,
    sent: usize,
    /// `out` holds bytes in their final form on the wire. Nothing is added before they have been sent.
    is_packed: bool,
    /// Decompressor for the input, with the compressed protocol.
    pub unpack: Option<Decompressor>,
    /// The last read took all input that was there.
    drained: bool,
    /// The connection closes when `out` has been sent.
    pub closing: bool,
    /// Number of COM_CHANGE_USER commands that were refused.
    pub refused_changes: u32,
    pub capabilities: Capabilities,
    pub stage: Stage,
    /// Result of the TLS negotiation; set at login.
    pub encryption: Option<Encryption>,
    /// `None` until a user has logged in.
    pub session: Option<Box<dyn Session>>,
    /// The client's place among max_connections. Lives as long as the session.
    pub place: Option<Place>,
    pub statements: HashMap<u32, ClientStatement>,
    pub cursor_files: cursor::Files,
    /// The statement that `u32::MAX` refers to in COM_STMT_EXECUTE.
    pub last_prepared: u32,
    /// epoll was asked to report space for output.
    wants_room: bool,
    /// COM_BINLOG_DUMP was received: the connection becomes a replica's.
    pub dump: Option<DumpRequest>,
    /// COM_QUIT was received: the end of the input does not count as an abort.
    pub has_quit: bool,
}

/// The step after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The reply, if any, may be sent.
    Send,
    /// The reply waits until this sequence number may be acknowledged.
    ReplyBarrier(CommitSeq),
    /// The connection gets its own thread, which sends the binary log.
    Dump,
}

enum Flushed {
    Done,
    Blocked,
    Gone,
}

impl Connection {
    /// Creates a connection that has just been accepted, with its greeting in `inner.out`. The caller owns
    /// it.
    pub fn new(
        id: ConnectionId,
        token: u64,
        peer: Peer,
        socket: Socket,
        stage: Stage,
        shared: Arc<Shared>,
    ) -> Connection {
        let inner = Inner {
            input: InputBuffer::default(),
            input_memory: None,
            out: Vec::new(),
            sent: 0,
            is_packed: false,
            unpack: None,
            drained: true,
            closing: false,
            refused_changes: 0,
            capabilities: Capabilities::default(),
            stage,
            encryption: None,
            session: None,
            place: None,
            statements: HashMap::new(),
            cursor_files: cursor::Files::default(),
            last_prepared: 0,
            wants_room: false,
            dump: None,
            has_quit: false,
        };
        Connection {
            id,
            token,
            peer,
            wire: Wire::new(socket),
            owner: Ownership::new(),
            deadline_ms: AtomicU64::new(u64::MAX),
            has_ended: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            has_received: AtomicBool::new(false),
            entered: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            dumping: AtomicBool::new(false),
            awaits_client: AtomicBool::new(false),
            compressed: AtomicBool::new(false),
            compressor: Mutex::new(Compressor::default()),
            shared,
            inner: Mutex::new(inner),
        }
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wire.fd()
    }

    /// Records an event. Returns true if the caller must serve the connection.
    pub fn take(&self) -> bool {
        self.owner.take()
    }

    /// Records that the peer has closed its side: no more input will arrive. Call it before
    /// [`Connection::take`], so that the owner reads to the end.
    pub fn note_end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Returns whether the peer has closed its side and all of its input was read.
    pub fn peer_has_gone(&self) -> bool {
        self.wire.peer_has_gone()
    }

    /// Returns whether the socket was shut down.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Returns whether the connection is Idle: it has no owner and is not parked. Only a hint.
    pub fn is_idle(&self) -> bool {
        self.owner.is_idle()
    }

    /// Returns whether no input of the client was read yet. Tracked only before login.
    pub fn is_silent(&self) -> bool {
        !self.has_received.load(Ordering::Relaxed)
    }

    /// Returns whether there is unread input.
    pub fn has_unread(&self) -> bool {
        self.wire.has_unread()
    }

    /// Returns whether a user has logged in.
    pub fn has_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed)
    }

    /// Records that a user has logged in.
    pub fn note_entered(&self) {
        self.entered.store(true, Ordering::Relaxed);
    }

    /// Ends the connection from any thread. The owner, or the worker that receives the next event, closes it.
    pub fn disconnect(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.wire.shut_down();
    }

    /// Closes a connection that has not logged in, to free its slot for another. The accepting thread does it
    /// itself, because workers may be busy and the slot is needed now. Returns false if a worker is logging
    /// it in, or has done so.
    pub fn give_way(self: &Arc<Self>) -> bool {
        if !self.take() {
            return false;
        }
        if self.has_entered() {
            self.shared.serve_later(Arc::clone(self));
            return false;
        }
        // An owner that went idle holds the lock until its reply has been sent. That does not block.
        self.close(self.inner.lock());
        true
    }

    /// KILL: ends the connection now if it is idle or its statement waits for the client. A busy connection
    /// ends after its statement, whose error the client still receives.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        let may_end = [&self.dumping, &self.awaits_client];
        if self.owner.is_idle() || may_end.iter().any(|flag| flag.load(Ordering::SeqCst)) {
            self.disconnect();
        }
    }

    /// Returns whether the connection must end after its statement.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Closes the connection if it has been idle for too long, or if it was killed between `kill`'s check and
    /// becoming idle. Ends a statement that may be abandoned if its client has disconnected.
    pub fn sweep(&self, now_ms: u64) {
        let due = now_ms >= self.deadline_ms.load(Ordering::Relaxed) || self.killed.load(Ordering::Relaxed);
        if !self.owner.is_idle() {
            return self.shared.backend.end_if_lost(self.id, &|| self.wire.peer_has_gone());
        }
        if due {
            self.disconnect();
        }
    }

    /// Compresses everything after the reply in `out`, in both directions.
    pub fn compress_from_here(&self, inner: &mut Inner) {
        inner.is_packed = true;
        inner.unpack = Some(Decompressor::default());
        self.compressed.store(true, Ordering::Relaxed);
    }

    pub fn is_compressed(&self) -> bool {
        self.compressed.load(Ordering::Relaxed)
    }

    /// Sets the number of the next compressed frame.
    pub fn count_frames_from(&self, sequence: u8) {
        self.compressor.lock().set_sequence(sequence);
    }

    /// Returns the bytes in their form on the wire. Each byte must be passed once, in order.
    pub fn packed<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.is_compressed() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::new();
        self.compressor.lock().pack(bytes, &mut out);
        Cow::Owned(out)
    }

    /// Sends some of the bytes. Returns 0 if the socket is full.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.wire.send(bytes)?;
        self.shared.status.add(Counter::BytesSent, sent as u64);
        Ok(sent)
    }

    /// Encrypts everything from now on, beginning with the received bytes that are not part of a packet yet.
    pub fn encrypt(&self, inner: &mut Inner, stream: TlsStream) {
        self.wire.encrypt(stream);
        // The bytes that the stream was given may contain the beginning of the handshake.
        inner.drained = false;
    }

    /// Returns the operating system's user of the client process. Unix socket only.
    pub fn system_user(&self) -> Option<String> {
        self.peer.address.is_none().then(|| machine::user_of_peer(self.fd())).flatten()
    }

    pub fn is_encrypted(&self) -> bool {
        self.wire.is_encrypted()
    }

    /// Calls `look` with the TLS stream. Returns `None` without TLS.
    pub fn with_tls<R>(&self, look: impl FnOnce(&TlsStream) -> R) -> Option<R> {
        self.wire.with_tls(look)
    }

    /// Blocks until the socket accepts output. Returns false after the timeout or if the connection was
    /// killed.
    pub fn wait_writable(&self, timeout: Duration) -> bool {
        self.await_client(|| wait_writable(self.fd(), timeout))
    }

    /// Blocks until input arrives. Returns false after the timeout or if the connection was killed.
    pub fn wait_readable(&self, timeout: Duration) -> bool {
        self.await_client(|| wait_readable(self.fd(), timeout))
    }

    fn await_client(&self, wait: impl FnOnce() -> io::Result<bool>) -> bool {
        self.awaits_client.store(true, Ordering::SeqCst);
        // Either this check sees the KILL, or `kill` sees `awaits_client` and ends the wait.
        let has_come = !self.killed.load(Ordering::SeqCst) && wait().unwrap_or(false);
        self.awaits_client.store(false, Ordering::SeqCst);
        has_come
    }

    /// Sends the greeting and leaves the connection to the workers. The accepting thread reads nothing,
    /// because statements may arrive together with the login.
    pub fn greet(self: &Arc<Self>) {
        let mut inner = self.inner.lock();
        // The send buffer of a new socket is large enough.
        let Flushed::Done = self.flush(&mut inner) else { return self.close(inner) };
        // Idle first: registering reports input that has already arrived.
        self.owner.release();
        if let Err(error) = self.shared.epoll.add(self.fd(), self.token, Interest::Input) {
            self.shared.log.error(format_args!("Cannot watch a connection: {error}"));
            self.close(inner);
        }
    }

    /// Serves the connection until there is nothing to do, or it is parked or closed. Called by the owner.
    /// The caller makes sure that ordered transactions get a leader.
    pub fn serve(self: &Arc<Self>, scratch: &mut [u8]) {
        let mut inner = self.inner.lock();
        // An event arrived: there may be input, whatever was known before.
        inner.drained = false;
        inner.write_log();
        loop {
            if inner.unsent() || self.wire.has_unsent() {
                match self.flush(&mut inner) {
                    Flushed::Done => {}
                    Flushed::Gone => return self.close(inner),
                    Flushed::Blocked => match self.rest(&mut inner) {
                        true => return,
                        false => continue,
                    },
                }
            }
            if inner.closing || self.is_dead() {
                return self.close(inner);
            }
            // As in MariaDB, `max_allowed_packet` is the first length that is refused.
            let limit = inner.packet_bytes_max().saturating_sub(1);
            match inner.input.next(limit) {
                Ok(Some(packet)) => match self.answer(inner, packet) {
                    Some(again) => inner = again,
                    None => return,
                },
                Ok(None) if inner.drained => match self.rest(&mut inner) {
                    true => return,
                    false => inner.drained = false,
                },
                Ok(None) => match self.read(&mut inner, scratch) {
                    Ok(true) => {}
                    Ok(false) => return self.close(inner),
                    Err(error) => {
                        self.note_broken(&inner, &error);
                        return self.close(inner);
                    }
                },
                Err(error) => inner.refuse(error),
            }
        }
    }

    /// Replies to one packet. Returns `None` if the caller no longer owns the connection.
    fn answer<'a>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Inner>,
        packet: Packet,
    ) -> Option<MutexGuard<'a, Inner>> {
        let after = match inner.stage {
            Stage::Ready => commands::run(self, &mut inner, &packet),
            _ => login::step(self, &mut inner, &packet),
        };
        if after == After::Dump {
            self.become_replica(inner);
            return None;
        }
        if let After::ReplyBarrier(seq) = after {
            drop(inner);
            if self.park(seq) {
                return None;
            }
            inner = self.inner.lock();
            if inner.settle() {
                inner.write_log();
            }
        }
        let last = inner.drained && inner.input.is_empty() && !inner.closing && !self.is_dead();
        let is_left = last && self.send_idle(&mut inner);
        if is_left {
            return None;
        }
        // Transactions that the command ordered, including those of others, do not wait for the next
        // commands.
        self.shared.backend.lead_later();
        Some(inner)
    }

    /// Gives the connection to a thread that sends the binary log.
    fn become_replica(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>) {
        self.shared.epoll.remove(self.fd());
        // The previous idle deadline must not end a replica's connection.
        self.set_deadline(u64::MAX);
        self.dumping.store(true, Ordering::SeqCst);
        if self.killed.load(Ordering::SeqCst) {
            return self.close(inner);
        }
        // The new thread waits for the lock.
        if let Err(error) = dump::start(Arc::clone(self)) {
            let error = SqlError::cannot_create_thread(error);
            write_error(&mut inner.out, &mut 1, &error);
            // The connection ends, whether or not the error can be sent.
            let _ = self.send(&self.packed(&inner.out));
            self.close(inner);
        }
    }

    /// Reads the available input. Used by the listener thread of a dump.
    pub fn receive(&self, scratch: &mut [u8]) -> io::Result<Received> {
        let received = self.wire.receive(scratch)?;
        self.shared.status.add(Counter::BytesReceived, received.bytes as u64);
        Ok(received)
    }

    /// Logs the cause of a failed TLS negotiation, because the client's user may not see it.
    fn note_broken(&self, inner: &Inner, error: &io::Error) {
        if error.kind() == ErrorKind::InvalidData && inner.session.is_none() {
            let (id, peer) = (self.id, &self.peer.shown);
            self.shared.log.warning(format_args!("Connection {id} from {peer}: TLS failed: {error}"));
        }
    }

    /// Ends a request in the usual way: idle first, then send. Returns false if the caller still owns the
    /// connection.
    fn send_idle(&self, inner: &mut Inner) -> bool {
        if !self.rest(inner) {
            inner.drained = false;
            return false;
        }
        // The lock is held, so no other thread uses `inner`.
        match self.flush(inner) {
            Flushed::Done => true,
            // epoll was asked to report space. The worker that receives the event sends the rest.
            Flushed::Blocked => true,
            Flushed::Gone => {
                self.disconnect();
                true
            }
        }
    }

    /// Leaves the reply to the thread that acknowledges `seq`. Returns false if it is already acknowledged:
    /// the caller still owns the connection.
    fn park(self: &Arc<Self>, seq: CommitSeq) -> bool {
        let backend = &self.shared.backend;
        self.owner.park();
        if backend.when_acknowledged(seq, Arc::clone(self) as Arc<dyn Wake>) {
            return true;
        }
        if self.owner.unpark() == Some(Events::Missed) {
            self.inner.lock().drained = false;
        }
        false
    }

    /// Makes the connection idle, with the deadline and memory of an idle connection. Returns false if an
    /// event arrived in the meantime.
    fn rest(&self, inner: &mut Inner) -> bool {
        if inner.input.is_empty() {
            inner.input.shrink(INPUT_BYTES_KEPT);
            inner.input_memory = None;
        }
        let idle_s = match (&inner.session, inner.input.is_empty()) {
            // The deadline of the handshake stays in force.
            (None, _) => None,
            (Some(_), false) => Some(self.shared.globals.uint(cohort_config::VarId::NetReadTimeout)),
            (Some(session), true) => Some(session.idle_s_max()),
        };
        if let Some(idle_s) = idle_s {
            self.set_deadline(idle_s);
        }
        self.owner.release() == Events::None
    }

    /// Sets the time after which the idle connection is closed.
    pub fn set_deadline(&self, idle_s: u64) {
        let deadline = self.shared.now_ms().saturating_add(idle_s.saturating_mul(1000));
        self.deadline_ms.store(deadline, Ordering::Relaxed);
    }

    fn flush(&self, inner: &mut Inner) -> Flushed {
        if self.is_compressed() && !inner.is_packed && inner.unsent() {
            inner.out = self.packed(&inner.out).into_owned();
            inner.is_packed = true;
        }
        while inner.unsent() {
            match self.send(&inner.out[inner.sent..]) {
                Ok(0) => return self.ask_for_room(inner),
                Ok(n) => inner.sent += n,
                Err(_) => return Flushed::Gone,
            }
        }
        match self.wire.flush() {
            Ok(true) => {}
            Ok(false) => return self.ask_for_room(inner),
            Err(_) => return Flushed::Gone,
        }
        inner.out.clear();
        inner.out.shrink_to(OUT_BYTES_KEPT);
        inner.sent = 0;
        inner.is_packed = false;
        if inner.wants_room {
            inner.wants_room = false;
            if self.shared.epoll.change(self.fd(), self.token, Interest::Input).is_err() {
                return Flushed::Gone;
            }
        }
        Flushed::Done
    }

    fn ask_for_room(&self, inner: &mut Inner) -> Flushed {
        if inner.wants_room {
            return Flushed::Blocked;
        }
        inner.wants_room = true;
        // If there is space by now, epoll reports it at once.
        match self.shared.epoll.change(self.fd(), self.token, Interest::InputAndOutput) {
            Ok(()) => Flushed::Blocked,
            Err(_) => Flushed::Gone,
        }
    }

    /// Reads once. Returns false at the end of the stream.
    fn read(&self, inner: &mut Inner, scratch: &mut [u8]) -> io::Result<bool> {
        match self.receive(scratch) {
            Ok(Received { bytes: 0, .. }) => Ok(false),
            Ok(Received { bytes, is_all }) => {
                self.take_bytes(inner, &scratch[..bytes]);
                // Later input raises a new event, but the end may have arrived together with these bytes.
                inner.drained = is_all && !self.has_ended.load(Ordering::Acquire);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                inner.drained = true;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn take_bytes(&self, inner: &mut Inner, bytes: &[u8]) {
        if inner.session.is_none() {
            self.has_received.store(true, Ordering::Relaxed);
        }
        let bytes_max = inner.packet_bytes_max() + FRAME_BYTES_MAX;
        let unpacked = match &mut inner.unpack {
            None => {
                inner.input.extend(bytes);
                Ok(None)
            }
            Some(unpack) => unpack.unpack(bytes, bytes_max, &mut inner.input),
        };
        match unpacked {
            Ok(Some(sequence)) => self.count_frames_from(sequence.wrapping_add(1)),
            Ok(None) => {}
            Err(error) => {
                // Reply with the number of the packet that is too long, not with that of its first part.
                let limit = inner.packet_bytes_max().saturating_sub(1);
                let _ = inner.input.next(limit);
                if let Some(unpack) = &inner.unpack {
                    self.count_frames_from(unpack.refusal_sequence());
                }
                return inner.refuse(error);
            }
        }
        if let Err(error) = inner.charge_input() {
            inner.refuse_for(&error);
        }
    }

    /// Closes the connection. The caller owns it.
    pub fn close(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>) {
        self.owner.close();
        let status = &self.shared.status;
        match (&inner.session, inner.has_quit) {
            (None, false) => status.count(Counter::AbortedConnects),
            (Some(_), false) => status.count(Counter::AbortedClients),
            (_, true) => {}
        }
        let (session, place) = (inner.session.take(), inner.place.take());
        inner.statements = HashMap::new();
        inner.input = InputBuffer::default();
        inner.input_memory = None;
        inner.out = Vec::new();
        drop(inner);
        // Rolls back.
        drop(session);
        if let Some(source) = self.shared.backend.source() {
            source.forget(self.id);
        }
        self.shared.epoll.remove(self.fd());
        // Free the slot before the client notices the end, because it may reconnect at once. Free the place
        // after the slot: an ending session must not count as half-open.
        self.shared.forget(self);
        drop(place);
        self.wire.say_goodbye();
        self.disconnect();
    }

    /// Closes the connection after a panic in `serve`: the lock is free, the state unknown.
    pub fn abandon(self: &Arc<Self>) {
        let inner = self.inner.lock();
        self.close(inner);
    }
}

impl Wake for Connection {
    fn acknowledged(self: Arc<Self>) {
        let Some(events) = self.owner.unpark() else { return };
        let mut inner = self.inner.lock();
        let has_entries = inner.settle();
        let more = has_entries
            || events == Events::Missed
            || !inner.input.is_empty()
            || !inner.drained
            || inner.closing;
        if !more && !self.is_dead() && self.send_idle(&mut inner) {
            return;
        }
        // This thread runs the commit path, so it leaves further work to a worker.
        inner.drained = false;
        if let Flushed::Gone = self.flush(&mut inner) {
            self.disconnect();
        }
        drop(inner);
        let shared = Arc::clone(&self.shared);
        shared.serve_later(self);
    }

    fn replies_to(&self) -> ConnectionId {
        self.id
    }
}

impl Inner {
    /// Counts the statements whose replies may leave now. Returns whether there are log entries to write.
    fn settle(&mut self) -> bool {
        self.session.as_mut().is_some_and(|session| session.settle())
    }

    fn write_log(&mut self) {
        if let Some(session) = &mut self.session {
            session.write_log();
        }
    }

    fn unsent(&self) -> bool {
        self.sent < self.out.len()
    }

    fn packet_bytes_max(&self) -> usize {
        match &self.session {
            None => LOGIN_BYTES_MAX,
            Some(session) => session.packet_bytes_max(),
        }
    }

    /// Replies with the client's protocol error, and closes the connection afterwards.
    fn refuse(&mut self, error: PacketError) {
        let error = match error {
            PacketError::TooLarge => SqlError::packet_too_large(),
            PacketError::OutOfOrder => SqlError::packets_out_of_order(),
            PacketError::Damaged => SqlError::cannot_uncompress_packet(),
        };
        self.refuse_for(&error);
    }

    fn refuse_for(&mut self, error: &SqlError) {
        let mut sequence = self.input.refusal_sequence();
        write_error(&mut self.out, &mut sequence, error);
        self.closing = true;
    }

    /// Charges incomplete packets to the session. Short packets are free.
    fn charge_input(&mut self) -> Result<(), SqlError> {
        let bytes = self.input.capacity();
        if bytes <= INPUT_BYTES_UNCHARGED && self.input_memory.is_none() {
            return Ok(());
        }
        let Some(memory) = self.session.as_ref().and_then(|session| session.memory()) else { return Ok(()) };
        let charged = self.input_memory.get_or_insert_with(|| Reservation::new(Arc::clone(memory)));
        Ok(charged.resize(bytes as u64)?)
    }
}
