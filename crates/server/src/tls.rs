//! Server side of TLS: the current context, the reload of its files, and its status variables.
//!
//! A connection keeps the context that it began with. FLUSH SSL installs a new one for later connections; if
//! that fails, nothing changes. Without certificate files the server generates a self-signed certificate, and
//! another one at each FLUSH SSL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_config::{Globals, StatusSource, VarId};
use cohort_exec::EncryptedSession;
use cohort_tls::{Acceptor, PeerCertificate, TlsError, TlsSettings, TlsStream};
use parking_lot::RwLock;

/// Properties of an encrypted connection that login and session need.
#[derive(Clone, Debug)]
pub(crate) struct Encryption {
    pub session: EncryptedSession,
    /// Certificate of the client, if one of our certificate authorities has signed it.
    pub peer: Option<PeerCertificate>,
    /// DER of the server's self-signed certificate, for which the client may request a proof.
    pub own_certificate: Option<Arc<[u8]>>,
}

/// The TLS configuration of the server.
pub struct Tls {
    settings: TlsSettings,
    acceptor: RwLock<Arc<Acceptor>>,
    began: AtomicU64,
    finished: AtomicU64,
    resumed: AtomicU64,
}

impl Tls {
    /// Creates the configuration from the settings. Returns `None` if TLS is off.
    pub fn open(globals: &Globals) -> Result<Option<Tls>, TlsError> {
        if !globals.flag(VarId::Ssl) {
            return Ok(None);
        }
        let settings = settings(globals);
        let acceptor = RwLock::new(Arc::new(Acceptor::new(&settings)?));
        let [began, finished, resumed] = [const { AtomicU64::new(0) }; 3];
        Ok(Some(Tls { settings, acceptor, began, finished, resumed }))
    }

    /// FLUSH SSL: reads the files again. On failure nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        let acceptor = Arc::new(Acceptor::new(&self.settings)?);
        *self.acceptor.write() = acceptor;
        Ok(())
    }

    /// Starts TLS for a client that has requested it. `early` contains the bytes that followed the request.
    pub(crate) fn accept(&self, early: Vec<u8>) -> Result<TlsStream, TlsError> {
        self.began.fetch_add(1, Ordering::Relaxed);
        let acceptor = Arc::clone(&self.acceptor.read());
        acceptor.accept(early)
    }

    /// Records a completed handshake and returns the properties of the connection.
    pub(crate) fn agreed(&self, stream: &TlsStream) -> Encryption {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.resumed.fetch_add(u64::from(stream.is_resumed()), Ordering::Relaxed);
        // Use the connection's context, not the current one: FLUSH SSL may have replaced it in the meantime.
        let acceptor = stream.acceptor().expect("the server has accepted it");
        let session = session_of(acceptor, stream.version(), stream.cipher());
        let own_certificate = acceptor.own_certificate().cloned();
        Encryption { session, peer: stream.peer_certificate(), own_certificate }
    }
}

impl Tls {
    /// Returns the properties of an encrypted connection of the console, whose certificate of the client, if
    /// there is one, does not count.
    pub(crate) fn encryption(&self, version: &'static str, cipher: &'static str) -> Encryption {
        let session = session_of(&self.acceptor.read(), version, cipher);
        Encryption { session, peer: None, own_certificate: None }
    }
}

fn session_of(acceptor: &Acceptor, version: &'static str, cipher: &'static str) -> EncryptedSession {
    let certificate = acceptor.certificate();
    EncryptedSession {
        version,
        cipher,
        ciphers: acceptor.ciphers().into(),
        not_before: certificate.not_before.as_str().into(),
        not_after: certificate.not_after.as_str().into(),
    }
}

fn settings(globals: &Globals) -> TlsSettings {
    let text = |id| globals.text(id).as_deref().unwrap_or_default().to_owned();
    let (cert, key) = (text(VarId::SslCert), text(VarId::SslKey));
    // As in MariaDB, each setting serves for both: one file may contain certificate and key.
    let or = |one: &String, other: &String| if one.is_empty() { other.clone() } else { one.clone() };
    TlsSettings {
        ca: text(VarId::SslCa),
        capath: text(VarId::SslCapath),
        crl: text(VarId::SslCrl),
        crlpath: text(VarId::SslCrlpath),
        cipher: text(VarId::SslCipher),
        versions: globals.value(VarId::TlsVersion).to_string(),
        cert: or(&cert, &key),
        key: or(&key, &cert),
    }
}

/// TLS status variables of all connections; zeros without TLS. The executor provides those of the session.
pub struct TlsStatus(pub Option<Arc<Tls>>);

impl StatusSource for TlsStatus {
    fn status(&self, out: &mut Vec<(String, String)>) {
        let of = |counter: fn(&Tls) -> &AtomicU64| {
            self.0.as_ref().map_or(0, |tls| counter(tls).load(Ordering::Relaxed))
        };
        let is_on = self.0.is_some();
        let resumed = of(|tls| &tls.resumed);
        let mut put = |name: &str, value: u64| out.push((format!("Ssl_{name}"), value.to_string()));
        put("accepts", of(|tls| &tls.began));
        put("finished_accepts", of(|tls| &tls.finished));
        put("sessions_reused", resumed);
        put("session_cache_hits", resumed);
        // MariaDB's values for variables that this library does not provide.
        put("ctx_verify_depth", if is_on { u64::MAX } else { 0 });
        put("ctx_verify_mode", if is_on { 5 } else { 0 });
        put("session_cache_size", if is_on { 256 } else { 0 });
        for name in [
            "accept_renegotiates",
            "callback_cache_hits",
            "client_connects",
            "connect_renegotiates",
            "finished_connects",
            "session_cache_misses",
            "session_cache_overflows",
            "session_cache_timeouts",
            "used_session_cache_entries",
        ] {
            put(name, 0);
        }
        let mode = if is_on { "SERVER" } else { "NONE" };
        out.push(("Ssl_session_cache_mode".to_owned(), mode.to_owned()));
    }
}
