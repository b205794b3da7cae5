//! The server's side of TLS: the context in force, its files read anew, what is counted of it.
//!
//! A connection keeps the context that it began with; FLUSH SSL puts another one in place for those that come
//! later. A context that cannot be made changes nothing. Without files the server makes a certificate itself,
//! another one with each FLUSH SSL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_config::{Globals, StatusSource, VarId};
use cohort_exec::EncryptedSession;
use cohort_tls::{Acceptor, PeerCertificate, TlsError, TlsSettings, TlsStream};
use parking_lot::RwLock;

/// What login and session need to know of an encrypted connection.
#[derive(Clone, Debug)]
pub(crate) struct Encryption {
    pub session: EncryptedSession,
    /// What the client has shown and one of our authorities has signed.
    pub peer: Option<PeerCertificate>,
    /// DER of the server's certificate if it is of the server's own making: what the client may ask for a
    /// proof of.
    pub own_certificate: Option<Arc<[u8]>>,
}

/// What connections are encrypted with.
pub struct Tls {
    settings: TlsSettings,
    acceptor: RwLock<Arc<Acceptor>>,
    began: AtomicU64,
    finished: AtomicU64,
    resumed: AtomicU64,
}

impl Tls {
    /// As the settings say; `None` if it is switched off.
    pub fn open(globals: &Globals) -> Result<Option<Tls>, TlsError> {
        if !globals.flag(VarId::Ssl) {
            return Ok(None);
        }
        let settings = settings(globals);
        let acceptor = RwLock::new(Arc::new(Acceptor::new(&settings)?));
        let [began, finished, resumed] = [const { AtomicU64::new(0) }; 3];
        Ok(Some(Tls { settings, acceptor, began, finished, resumed }))
    }

    /// FLUSH SSL: reads the files again. After an error all is as it was.
    pub fn reload(&self) -> Result<(), TlsError> {
        let acceptor = Arc::new(Acceptor::new(&self.settings)?);
        *self.acceptor.write() = acceptor;
        Ok(())
    }

    /// A client has asked for TLS; `early` is what came behind its request.
    pub(crate) fn accept(&self, early: Vec<u8>) -> Result<TlsStream, TlsError> {
        self.began.fetch_add(1, Ordering::Relaxed);
        let acceptor = Arc::clone(&self.acceptor.read());
        acceptor.accept(early)
    }

    /// The peers have agreed.
    pub(crate) fn agreed(&self, stream: &TlsStream) -> Encryption {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.resumed.fetch_add(u64::from(stream.is_resumed()), Ordering::Relaxed);
        // Not the one in force: FLUSH SSL may have come between.
        let acceptor = stream.acceptor().expect("the server has accepted it");
        let certificate = acceptor.certificate();
        let session = EncryptedSession {
            version: stream.version(),
            cipher: stream.cipher(),
            ciphers: acceptor.ciphers().into(),
            not_before: certificate.not_before.as_str().into(),
            not_after: certificate.not_after.as_str().into(),
        };
        let own_certificate = acceptor.own_certificate().cloned();
        Encryption { session, peer: stream.peer_certificate(), own_certificate }
    }
}

fn settings(globals: &Globals) -> TlsSettings {
    let text = |id| globals.text(id).as_deref().unwrap_or_default().to_owned();
    let (cert, key) = (text(VarId::SslCert), text(VarId::SslKey));
    // As in MariaDB, each stands for both: a file may hold certificate and key.
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

/// What SHOW STATUS lists of all connections; zeros without TLS. Those of the session are the executor's.
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
        // MariaDB's values of what this library does not count or know.
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
