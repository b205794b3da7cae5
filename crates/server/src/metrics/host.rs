//! The server as the console sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_config::{Counter, VERSION, VarId};
use cohort_console::{Host, Peer, Refused, SESSION_SETTINGS, Session};
use cohort_exec::{Client, ConnectionEvent};
use cohort_observe::History;
use cohort_protocol::Challenge;
use cohort_tls::TlsStream;
use cohort_types::SqlError;
use serde_json::{Value, json};

use super::prometheus;
use super::readings::Readings;
use super::session::{ConsoleSession, Owner, refused};
use crate::accounts::{Account, Method};
use crate::backend::{ConnectionInfo, MultiStatements};
use crate::connection;
use crate::listen::peer_over_tcp;
use crate::login::{Verdict, init_connect, judge, warn_of_refusal};
use crate::shared::Shared;

/// Maximum length of a token.
const TOKEN_BYTES_MAX: usize = 4 << 10;
/// utf8mb4_general_ci.
const COLLATION: u16 = 45;

/// The server as the console sees it.
pub(super) struct ServerHost {
    shared: Arc<Shared>,
    readings: Arc<Readings>,
    history: Option<Arc<History>>,
    datadir: PathBuf,
}

impl ServerHost {
    pub fn new(
        shared: Arc<Shared>,
        readings: Arc<Readings>,
        history: Option<Arc<History>>,
        datadir: &Path,
    ) -> ServerHost {
        ServerHost { shared, readings, history, datadir: datadir.to_owned() }
    }

    fn owner(&self, user: &str, peer: &Peer) -> Owner {
        let known = peer_over_tcp(peer.address, self.shared.globals.flag(VarId::SkipNameResolve));
        let encryption = peer
            .encryption
            .and_then(|(version, cipher)| Some(self.shared.tls.as_ref()?.encryption(version, cipher)));
        Owner { user: user.to_owned(), peer: known, encryption }
    }

    /// Checks a password by all methods that have one.
    fn verify(&self, owner: &Owner, password: &str) -> Result<(Account, Vec<u8>), SqlError> {
        let shared = &self.shared;
        let (scramble, nonce) = (shared.new_scramble(), shared.new_nonce());
        let password = password.as_bytes();
        let proves = |method: &Method| match method {
            Method::Password(_) => {
                method.is_proven(&Challenge::Native(scramble), &scramble.answer(password), || false)
            }
            Method::Ed25519(_) => {
                method.is_proven(&Challenge::Ed25519(nonce), &nonce.answer(password), || false)
            }
            Method::SystemUser => false,
        };
        match judge(shared, &owner.claim(!password.is_empty()), &proves, &|_| false)? {
            Verdict::Proven(account, stored) => Ok((*account, stored)),
            Verdict::AskAgain => unreachable!("all methods were tried"),
        }
    }

    fn enter(&self, owner: Owner, id: ConnectionId, password: &str) -> Result<ConsoleSession, SqlError> {
        let shared = &self.shared;
        let (account, stored) = self.verify(&owner, password)?;
        let place = shared.enter(&account, None)?;
        let info = ConnectionInfo {
            id,
            user: owner.user.clone(),
            host: owner.peer.host.clone(),
            peer: owner.peer.shown.clone(),
            account: (account.user.clone(), account.host.clone()),
            schema: None,
            collation: COLLATION,
            multi_statements: MultiStatements::Off,
            interactive: false,
            found_rows: false,
            attributes: vec![("program_name".to_owned(), "cohort-console".to_owned())],
            encryption: owner.encryption.as_ref().map(|encryption| encryption.session.clone()),
            is_local: false,
        };
        let mut session = shared.backend.connect(info, Box::new(|| ()))?;
        if !account.is_super {
            init_connect(shared, &mut *session, (id, None, &owner.user, &owner.peer.host))?;
        }
        let name = (account.user, account.host);
        let mut session = ConsoleSession::new(Arc::clone(shared), session, place, owner, name, stored);
        for setting in SESSION_SETTINGS {
            session.query(setting)?;
        }
        Ok(session)
    }

    /// Logs a login that was rejected, as one of a client.
    fn note_refused(&self, id: ConnectionId, user: &str, peer: &connection::Peer, error: &SqlError) {
        let client = Client { id, user, host: &peer.host };
        self.shared.status.count(Counter::AbortedConnects);
        self.shared.backend.note_refused(ConnectionEvent::FailedConnect, client, error);
        warn_of_refusal(&self.shared, id, &peer.shown, error);
    }
}

impl Host for ServerHost {
    fn metrics(&self) -> String {
        prometheus::text(&self.readings)
    }

    fn facts(&self) -> Value {
        let globals = &self.shared.globals;
        let text = |id| globals.text(id).as_deref().unwrap_or_default().to_owned();
        let figures = self.readings.figures();
        let get = |name: &str| figures.get(name).copied().unwrap_or(0);
        let sources = get("Cohort_replica_sources");
        json!({
            "host": text(VarId::Hostname),
            "port": globals.uint(VarId::Port),
            "version": VERSION,
            "build": text(VarId::VersionComment),
            "read_only": globals.flag(VarId::ReadOnly),
            "server_id": globals.uint(VarId::ServerId),
            "role": if sources > 0 { "replica" } else { "primary" },
            "uptime_s": get("Uptime"),
            "history": self.history.is_some(),
            "tls": self.shared.tls.is_some(),
            "binlog": globals.text(VarId::LogBinBasename).is_some_and(|name| !name.is_empty()),
            "max_connections": globals.uint(VarId::MaxConnections),
            "buffer_pool_bytes": globals.uint(VarId::InnodbBufferPoolSize),
            "health": {
                "sources": sources,
                "behind_s": get("Cohort_replica_behind_seconds"),
                "behind_transactions": get("Cohort_replica_behind_transactions"),
                "replicas": self.readings.replicas(),
                "archive": !text(VarId::ArchiveTo).is_empty(),
                "archive_running": get("Cohort_archive_running"),
                "archive_lag_s": get("Cohort_archive_lag_seconds"),
                "archive_sync": globals.flag(VarId::ArchiveSync),
                "archive_sync_on": get("Cohort_archive_sync_on"),
                "disk_free": get("disk_free"),
                "slow_flushes": get("Cohort_slow_flushes"),
                "checkpoint_failures": get("Cohort_checkpoint_failures"),
            },
        })
    }

    fn history(&self) -> Option<&Arc<History>> {
        self.history.as_ref()
    }

    fn accept_tls(&self, early: Vec<u8>) -> Option<TlsStream> {
        self.shared.tls.as_ref()?.accept(early).ok()
    }

    fn token(&self) -> Option<Vec<u8>> {
        let name = self.shared.globals.text(VarId::MetricsTokenFile).filter(|name| !name.is_empty())?;
        let token = std::fs::read(self.datadir.join(&*name)).ok()?;
        let token = token.trim_ascii().to_vec();
        (!token.is_empty() && token.len() <= TOKEN_BYTES_MAX).then_some(token)
    }

    fn check_password(&self, user: &str, password: &str, peer: &Peer) -> Result<(), Refused> {
        let owner = self.owner(user, peer);
        self.verify(&owner, password).map(drop).map_err(|error| {
            self.note_refused(self.shared.next_id(), user, &owner.peer, &error);
            refused(&error)
        })
    }

    fn log_in(&self, user: &str, password: &str, peer: &Peer) -> Result<Box<dyn Session>, Refused> {
        let (owner, id) = (self.owner(user, peer), self.shared.next_id());
        let known = owner.peer.clone();
        match self.enter(owner, id, password) {
            Ok(session) => Ok(Box::new(session)),
            Err(error) => {
                self.note_refused(id, user, &known, &error);
                Err(refused(&error))
            }
        }
    }
}
