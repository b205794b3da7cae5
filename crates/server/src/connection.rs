//! One connection: socket, buffers, session, and the rules of who works on it.
//!
//! # Concepts
//! The *owner* is the thread that moved [`Ownership`] to Running. It holds the lock of [`Inner`] while it
//! works. Other threads wait for that lock only briefly, or for a running statement.
//!
//! # A request's way
//! ```text
//! event -> take -> read -> packet -> command -> answer in `out`
//!   acknowledged already:  release, send (idle before send: the client's next request finds nobody at work)
//!   to be held:         park, register with the commit path, lead a flush; the publisher sends
//! ```
//! The answer is sent with the lock of `inner` held, so a worker that gets the next event waits until it has
//! left.
//!
//! # Invariants
//! - Bytes in `out` leave only when everything they depend on is hardened and published (I4, I5): after a
//!   command that has to be held nothing is sent and no further command starts until [`Wake::acknowledged`].
//! - Edge-triggered events come once: an owner reads until a short read, and a worker that is told of an
//!   event while the connection is owned leaves a mark that `release` answers.
//!
//! # On failure
//! A broken socket or protocol error closes the connection: the session is dropped, which rolls back.

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
use cohort_types::{ErrorCode, SqlError};
use parking_lot::{Mutex, MutexGuard};
use socket2::Socket;

use crate::backend::{Session, Wake};
use crate::cursor::{self, Cursor};
use crate::epoll::{Interest, wait_readable, wait_writable};
use crate::half_open::Origin;
use crate::login::{self, Stage};
use crate::ownership::{Events, Ownership};
use crate::server::{Place, Shared};
use crate::tls::Encryption;
use crate::wire::Wire;
use crate::{commands, dump, machine};

/// Memory that an idle connection keeps.
const OUT_BYTES_KEPT: usize = 16 << 10;
const INPUT_BYTES_KEPT: usize = 4 << 10;
/// What is buffered up to here is not charged to the session.
const INPUT_BYTES_UNCHARGED: usize = 256 << 10;
/// The largest packet of a client that has not logged in.
const LOGIN_BYTES_MAX: usize = 128 << 10;
/// The most that a compressed frame can hold.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 24;

/// Where the client is.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// What accounts are matched with: `localhost` or the address.
    pub host: String,
    /// The address of a client over TCP; accounts are matched with it too.
    pub address: Option<String>,
    /// What its half-open connections are counted by.
    pub origin: Origin,
    /// What the process list shows.
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
    /// The end of the input was told by an event, which comes once.
    has_ended: AtomicBool,
    /// The socket was shut down.
    dead: AtomicBool,
    /// Its client has sent something.
    heard: AtomicBool,
    /// Somebody has logged in.
    entered: AtomicBool,
    /// KILL was used.
    killed: AtomicBool,
    /// A dump thread owns it.
    dumping: AtomicBool,
    /// Its statement waits for the client to take or send something.
    awaits_client: AtomicBool,
    /// Bytes go through `compressor`; set once, by the owner.
    compressed: AtomicBool,
    /// Used by the owner only.
    compressor: Mutex<Compressor>,
    shared: Arc<Shared>,
    pub inner: Mutex<Inner>,
}

/// A prepared statement of the client's.
pub(crate) struct ClientStatement {
    pub params: StatementParams,
    pub cursor: Option<Cursor>,
}

/// What the owner works with.
pub(crate) struct Inner {
    pub input: InputBuffer,
    /// What a long packet takes, charged to the session.
    input_memory: Option<Reservation>,
    /// Answers; the first `sent` bytes have left.
    pub out: Vec<u8>,
    sent: usize,
    /// `out` holds bytes as they go over the wire: nothing is added before they have left.
    is_packed: bool,
    /// What comes, with the compressed protocol, goes through it.
    pub unpack: Option<Decompressor>,
    /// The last read took all there was.
    drained: bool,
    /// To be closed when `out` has left.
    pub closing: bool,
    /// Changes of user that were refused.
    pub refused_changes: u32,
    pub capabilities: Capabilities,
    pub stage: Stage,
    /// What the peers of TLS have agreed on; set with the login.
    pub encryption: Option<Encryption>,
    /// None until somebody has logged in.
    pub session: Option<Box<dyn Session>>,
    /// The client's place among max_connections; as long as the session.
    pub place: Option<Place>,
    pub statements: HashMap<u32, ClientStatement>,
    pub cursor_files: cursor::Files,
    /// What `u32::MAX` means in COM_STMT_EXECUTE.
    pub last_prepared: u32,
    /// epoll was asked for room for output.
    wants_room: bool,
    /// COM_BINLOG_DUMP came: the connection is to become a replica's.
    pub dump: Option<DumpRequest>,
    /// COM_QUIT: the end of the socket is no abort.
    pub has_quit: bool,
}

/// What to do after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The answer, if any, may go.
    Send,
    /// The answer waits until this may be acknowledged.
    Hold(CommitSeq),
    /// The connection gets a thread of its own, which sends the binary log.
    Dump,
}

enum Flushed {
    Done,
    Blocked,
    Gone,
}

impl Connection {
    /// A connection that has just been accepted; its greeting is in `inner.out`. The caller owns it.
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
            heard: AtomicBool::new(false),
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

    /// An event came: true if the caller is to serve the connection.
    pub fn take(&self) -> bool {
        self.owner.take()
    }

    /// No byte will come after those that have: set before [`Connection::take`], so that the owner reads to
    /// the end.
    pub fn note_end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the socket was shut down.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Whether nobody is at work on it. Only a hint.
    pub fn is_idle(&self) -> bool {
        self.owner.is_idle()
    }

    /// Whether its client has sent nothing yet, as far as anybody has read.
    pub fn is_silent(&self) -> bool {
        !self.heard.load(Ordering::Relaxed)
    }

    /// Whether its client has sent something that nobody has read.
    pub fn has_unread(&self) -> bool {
        self.wire.has_unread()
    }

    /// Whether somebody has logged in.
    pub fn has_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed)
    }

    /// Somebody has logged in.
    pub fn note_entered(&self) {
        self.entered.store(true, Ordering::Relaxed);
    }

    /// Ends the connection from any thread: the owner, or the event that follows, closes it.
    pub fn disconnect(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.wire.shut_down();
    }

    /// Ends a connection that has not logged in, for another to take its slot. The accepting thread does it
    /// itself: workers may have much to do, and the slot is wanted now. False if a worker is logging it in,
    /// or has.
    pub fn give_way(self: &Arc<Self>) -> bool {
        if !self.take() {
            return false;
        }
        if self.has_entered() {
            self.shared.serve_later(Arc::clone(self));
            return false;
        }
        // An owner that went idle holds it until its answer has left: that does not block.
        self.close(self.inner.lock());
        true
    }

    /// KILL: a connection that is idle, or whose statement waits for the client, ends now; a busy one after
    /// its statement, whose error the client still gets.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        let may_end = [&self.dumping, &self.awaits_client];
        if self.owner.is_idle() || may_end.iter().any(|flag| flag.load(Ordering::SeqCst)) {
            self.disconnect();
        }
    }

    /// Whether it is to end after its statement.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Closes the connection if it has idled for too long, or was killed between `kill`'s look and its
    /// idleness; ends a statement that nobody misses when its client has gone.
    pub fn sweep(&self, now_ms: u64) {
        let due = now_ms >= self.deadline_ms.load(Ordering::Relaxed) || self.killed.load(Ordering::Relaxed);
        if !self.owner.is_idle() {
            return self.shared.backend.end_if_lost(self.id, &|| self.wire.peer_has_gone());
        }
        if due {
            self.disconnect();
        }
    }

    /// What follows the answer in `out` is compressed, in both directions.
    pub fn compress_from_here(&self, inner: &mut Inner) {
        inner.is_packed = true;
        inner.unpack = Some(Decompressor::default());
        self.compressed.store(true, Ordering::Relaxed);
    }

    pub fn is_compressed(&self) -> bool {
        self.compressed.load(Ordering::Relaxed)
    }

    /// The next compressed frame has this number.
    pub fn count_frames_from(&self, sequence: u8) {
        self.compressor.lock().set_sequence(sequence);
    }

    /// The bytes as they go over the wire. Each is to be packed once.
    pub fn packed<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.is_compressed() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::new();
        self.compressor.lock().pack(bytes, &mut out);
        Cow::Owned(out)
    }

    /// Sends some bytes; 0 if there is no room.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.wire.send(bytes)?;
        self.shared.status.add(Counter::BytesSent, sent as u64);
        Ok(sent)
    }

    /// Everything is encrypted from now on, beginning with what has come already and is no packet yet.
    pub fn encrypt(&self, inner: &mut Inner, stream: TlsStream) {
        self.wire.encrypt(stream);
        // The handshake may have begun with the bytes that the stream was given.
        inner.drained = false;
    }

    /// Whom the system knows the client's process as; of the Unix socket only.
    pub fn system_user(&self) -> Option<String> {
        self.peer.address.is_none().then(|| machine::user_of_peer(self.fd())).flatten()
    }

    pub fn is_encrypted(&self) -> bool {
        self.wire.is_encrypted()
    }

    /// What is known of TLS, if there is any.
    pub fn with_tls<R>(&self, look: impl FnOnce(&TlsStream) -> R) -> Option<R> {
        self.wire.with_tls(look)
    }

    /// Blocks until there is room for output; false after the timeout, and if the connection was killed.
    pub fn wait_writable(&self, timeout: Duration) -> bool {
        self.await_client(|| wait_writable(self.fd(), timeout))
    }

    /// Blocks until something has come; false after the timeout, and if the connection was killed.
    pub fn wait_readable(&self, timeout: Duration) -> bool {
        self.await_client(|| wait_readable(self.fd(), timeout))
    }

    fn await_client(&self, wait: impl FnOnce() -> io::Result<bool>) -> bool {
        self.awaits_client.store(true, Ordering::SeqCst);
        // `kill` either is seen here or sees that the client is awaited, and ends the wait.
        let has_come = !self.killed.load(Ordering::SeqCst) && wait().unwrap_or(false);
        self.awaits_client.store(false, Ordering::SeqCst);
        has_come
    }

    /// Sends the greeting and leaves the connection to the workers: the accepting thread reads nothing,
    /// because statements may come with the login.
    pub fn greet(self: &Arc<Self>) {
        let mut inner = self.inner.lock();
        // A new socket has room for it.
        let Flushed::Done = self.flush(&mut inner) else { return self.close(inner) };
        // Idle first: registering tells of what has come already.
        self.owner.release();
        if let Err(error) = self.shared.epoll.add(self.fd(), self.token, Interest::Input) {
            self.shared.log.error(format_args!("Cannot watch a connection: {error}"));
            self.close(inner);
        }
    }

    /// The owner's work: until there is nothing to do, the connection is parked or closed. The caller sees to
    /// it that what was ordered is led.
    pub fn serve(self: &Arc<Self>, scratch: &mut [u8]) {
        let mut inner = self.inner.lock();
        // An event came: there may be something to read, whatever was known before.
        inner.drained = false;
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

    /// Answers one packet. `None`: the connection is no longer the caller's.
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
        if let After::Hold(seq) = after {
            drop(inner);
            if self.park(seq) {
                return None;
            }
            inner = self.inner.lock();
        }
        let last = inner.drained && inner.input.is_empty() && !inner.closing && !self.is_dead();
        let is_left = last && self.send_idle(&mut inner);
        if is_left {
            return None;
        }
        // What the command ordered, also of others, does not wait for the commands after it.
        self.shared.backend.lead_later();
        Some(inner)
    }

    /// Gives the connection to a thread that sends the binary log.
    fn become_replica(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>) {
        self.shared.epoll.remove(self.fd());
        // An idle deadline from before must not cut a replica.
        self.set_deadline(u64::MAX);
        self.dumping.store(true, Ordering::SeqCst);
        if self.killed.load(Ordering::SeqCst) {
            return self.close(inner);
        }
        // The thread waits for the lock.
        if let Err(error) = dump::start(Arc::clone(self)) {
            let error =
                SqlError::new(ErrorCode::CantCreateThread, format!("Can't create a new thread ({error})"));
            write_error(&mut inner.out, &mut 1, &error);
            // Told or not, the connection ends.
            let _ = self.send(&self.packed(&inner.out));
            self.close(inner);
        }
    }

    /// Reads what has come; for a dump's listener.
    pub fn receive(&self, scratch: &mut [u8]) -> io::Result<Received> {
        let received = self.wire.receive(scratch)?;
        self.shared.status.add(Counter::BytesReceived, received.bytes as u64);
        Ok(received)
    }

    /// TLS that cannot be agreed on leaves no trace with the client's user: the error log tells why.
    fn note_broken(&self, inner: &Inner, error: &io::Error) {
        if error.kind() == ErrorKind::InvalidData && inner.session.is_none() {
            let (id, peer) = (self.id, &self.peer.shown);
            self.shared.log.warning(format_args!("Connection {id} from {peer}: TLS failed: {error}"));
        }
    }

    /// The usual end of a request: idle first, then send. False if the caller still owns the connection.
    fn send_idle(&self, inner: &mut Inner) -> bool {
        if !self.rest(inner) {
            inner.drained = false;
            return false;
        }
        // The lock is held: no other thread touches `inner`.
        match self.flush(inner) {
            Flushed::Done => true,
            // epoll was asked for room; the next event sends the rest.
            Flushed::Blocked => true,
            Flushed::Gone => {
                self.disconnect();
                true
            }
        }
    }

    /// Leaves the answer to the thread that publishes `seq`. False: that has happened, the caller still owns
    /// the connection.
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

    /// Nothing to do: idle, with the deadline and the memory of an idle connection. False if an event came
    /// meanwhile.
    fn rest(&self, inner: &mut Inner) -> bool {
        if inner.input.is_empty() {
            inner.input.shrink(INPUT_BYTES_KEPT);
            inner.input_memory = None;
        }
        let idle_s = match (&inner.session, inner.input.is_empty()) {
            // The handshake's deadline stands.
            (None, _) => None,
            (Some(_), false) => Some(self.shared.globals.uint(cohort_config::VarId::NetReadTimeout)),
            (Some(session), true) => Some(session.settings().idle_s_max),
        };
        if let Some(idle_s) = idle_s {
            self.set_deadline(idle_s);
        }
        self.owner.release() == Events::None
    }

    /// Closes the connection when it has idled for this long.
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
        // Told at once if there is room meanwhile.
        match self.shared.epoll.change(self.fd(), self.token, Interest::InputAndOutput) {
            Ok(()) => Flushed::Blocked,
            Err(_) => Flushed::Gone,
        }
    }

    /// Reads once. False at the end of the stream.
    fn read(&self, inner: &mut Inner, scratch: &mut [u8]) -> io::Result<bool> {
        match self.receive(scratch) {
            Ok(Received { bytes: 0, .. }) => Ok(false),
            Ok(Received { bytes, is_all }) => {
                self.take_bytes(inner, &scratch[..bytes]);
                // What comes after all of it is a new event. But the end may have come with these bytes.
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
            self.heard.store(true, Ordering::Relaxed);
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
                // The number of the packet that is too long counts, not that of its first part.
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

    /// The end. The caller owns the connection.
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
        // Before the client learns of the end: it may come again at once. The place after the slot: a session
        // that ends must not count as one that has not logged in.
        self.shared.forget(self);
        drop(place);
        self.wire.say_goodbye();
        self.disconnect();
    }

    /// Closes after a panic in `serve`: the lock is free, the state unknown.
    pub fn abandon(self: &Arc<Self>) {
        let inner = self.inner.lock();
        self.close(inner);
    }
}

impl Wake for Connection {
    fn acknowledged(self: Arc<Self>) {
        let Some(events) = self.owner.unpark() else { return };
        let mut inner = self.inner.lock();
        let more = events == Events::Missed || !inner.input.is_empty() || !inner.drained || inner.closing;
        if !more && !self.is_dead() && self.send_idle(&mut inner) {
            return;
        }
        // The rest is a worker's: this thread publishes.
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
    fn unsent(&self) -> bool {
        self.sent < self.out.len()
    }

    fn packet_bytes_max(&self) -> usize {
        match &self.session {
            None => LOGIN_BYTES_MAX,
            Some(session) => session.settings().packet_bytes_max,
        }
    }

    /// Tells the client what is wrong with its bytes; then the connection is closed.
    fn refuse(&mut self, error: PacketError) {
        let error = match error {
            PacketError::TooLarge => SqlError::new(
                ErrorCode::NetPacketTooLarge,
                "Got a packet bigger than 'max_allowed_packet' bytes",
            ),
            PacketError::OutOfOrder => {
                SqlError::new(ErrorCode::NetPacketsOutOfOrder, "Got packets out of order")
            }
            PacketError::Damaged => {
                SqlError::new(ErrorCode::NetUncompress, "Couldn't uncompress communication packet")
            }
        };
        self.refuse_for(&error);
    }

    fn refuse_for(&mut self, error: &SqlError) {
        let mut sequence = self.input.refusal_sequence();
        write_error(&mut self.out, &mut sequence, error);
        self.closing = true;
    }

    /// Charges what waits to become a packet to the session. Short packets cost nothing.
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
