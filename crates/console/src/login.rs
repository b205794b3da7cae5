//! Sessions of the console: who has logged in, and until when.
//!
//! # Concepts
//! A *key* is 256 random bits in the browser's cookie. The server keeps its SHA-256 only. A *token* belongs
//! to the same session; the page sends it as a header of each POST, which another site's page cannot do.
//!
//! # End of a session
//! By logout; after [`IDLE_MAX`] without a request; by KILL; when the account could not log in again
//! ([`Session::is_valid`], checked at each request); when its account logs in more than [`ACCOUNT_MAX`]
//! times, that of the longest idle time. No account ends the sessions of another one: with [`SESSIONS_MAX`]
//! sessions further logins are rejected.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cohort_vfs::SharedRng;
use sha2::{Digest, Sha256};

use crate::host::Session;
use crate::http::Peer;

/// Maximum number of sessions.
pub const SESSIONS_MAX: usize = 64;
/// Maximum number of sessions of one account.
pub const ACCOUNT_MAX: usize = 8;
/// Time without a request after which a session ends.
pub const IDLE_MAX: Duration = Duration::from_secs(15 * 60);

type Hash = [u8; 32];

/// A browser that has logged in.
pub(crate) struct Login {
    key: Hash,
    pub token: String,
    used: Instant,
    pub session: Box<dyn Session>,
}

/// All sessions.
pub(crate) struct Logins {
    rng: SharedRng,
    all: Vec<Login>,
}

fn hash(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares secrets in a time that does not depend on the place of the first difference: both are hashed.
pub(crate) fn is_same_secret(one: &[u8], other: &[u8]) -> bool {
    let (one, other): (Hash, Hash) = (Sha256::digest(one).into(), Sha256::digest(other).into());
    one == other
}

impl Logins {
    pub fn new(rng: SharedRng) -> Logins {
        Logins { rng, all: Vec::new() }
    }

    /// Returns whether a further session would be one too many. The limit is checked before the session is
    /// opened, because it takes one of max_connections.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.expire(now);
        self.all.len() >= SESSIONS_MAX
    }

    /// Adds a session. Returns its key.
    pub fn add(&mut self, session: Box<dyn Session>, now: Instant) -> (String, &Login) {
        let account = session.account();
        let own = (0..self.all.len()).filter(|n| self.all[*n].session.account() == account);
        let own: Vec<usize> = own.collect();
        if own.len() >= ACCOUNT_MAX
            && let Some(idle) = own.into_iter().min_by_key(|n| self.all[*n].used)
        {
            self.all.swap_remove(idle);
        }
        let (key, token) = (self.random(), self.random());
        self.all.push(Login { key: hash(&key), token, used: now, session });
        (key, self.all.last().expect("it was added"))
    }

    fn random(&self) -> String {
        let mut bytes = [0; 32];
        self.rng.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Ends the sessions that were not used for long, or were killed.
    pub fn expire(&mut self, now: Instant) {
        let is_idle = |login: &Login| now.saturating_duration_since(login.used) >= IDLE_MAX;
        self.all.retain(|login| !is_idle(login) && !login.session.is_killed());
    }

    /// Returns the session of a key, and counts its use. Ends it if its account could not log in again.
    pub fn find(&mut self, key: &str, peer: &Peer, now: Instant) -> Option<&mut Login> {
        self.expire(now);
        let key = hash(key);
        let place = self.all.iter().position(|login| login.key == key)?;
        if !self.all[place].session.is_valid(peer) {
            self.all.swap_remove(place);
            return None;
        }
        let login = &mut self.all[place];
        login.used = now;
        Some(login)
    }

    /// Ends the session of a key.
    pub fn end(&mut self, key: &str) {
        let key = hash(key);
        self.all.retain(|login| login.key != key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use cohort_vfs::World;

    use super::*;
    use crate::host::{Refused, Rows};

    struct Stub(Arc<AtomicBool>, &'static str);

    impl Session for Stub {
        fn account(&self) -> (&str, &str) {
            (self.1, "%")
        }
        fn is_valid(&self, _: &Peer) -> bool {
            self.0.load(Ordering::Relaxed)
        }
        fn is_killed(&self) -> bool {
            false
        }
        fn run(&mut self, _: &str) -> Result<Rows, Refused> {
            Ok(Rows::default())
        }
    }

    #[test]
    fn sessions_end_by_time_by_number_and_with_their_account() {
        let mut logins = Logins::new(World::real().rng);
        let peer = Peer { address: "127.0.0.1:1".parse().expect("an address"), encryption: None };
        let (valid, begin) = (Arc::new(AtomicBool::new(true)), Instant::now());
        let at = |second: u64| begin + Duration::from_secs(second);
        let stub = |user| Box::new(Stub(Arc::clone(&valid), user));
        let (first, _) = logins.add(stub("a"), at(0));
        let (second, login) = logins.add(stub("b"), at(1));
        assert!(first.len() == 43 && first != second && login.token != second);
        assert!(logins.find(&first, &peer, at(600)).is_some());
        assert!(logins.find(&second, &peer, at(901)).is_none(), "idle");
        assert!(logins.find(&first, &peer, at(1400)).is_some(), "in use");
        assert!(logins.find("", &peer, at(1400)).is_none());
        // Found by the adversary: 64 logins of any account ended the sessions of all others.
        let mut keys: Vec<String> = (0..100).map(|n| logins.add(stub("b"), at(1401 + n)).0).collect();
        assert!(logins.find(&keys[99 - ACCOUNT_MAX], &peer, at(1501)).is_none(), "its own oldest makes way");
        assert!(logins.find(&keys[100 - ACCOUNT_MAX], &peer, at(1501)).is_some());
        assert!(logins.find(&first, &peer, at(1501)).is_some(), "others are left alone");
        for user in ["c", "d", "e", "f", "g", "h", "i"] {
            (0..ACCOUNT_MAX).for_each(|_| _ = logins.add(stub(user), at(1502)));
        }
        assert!(logins.is_full(at(1503)) && !logins.is_full(at(1502 + 900)));
        keys = (0..2).map(|n| logins.add(stub("j"), at(2500 + n)).0).collect();
        logins.end(&keys[0]);
        assert!(logins.find(&keys[0], &peer, at(2502)).is_none(), "logged out");
        valid.store(false, Ordering::Relaxed);
        assert!(logins.find(&keys[1], &peer, at(2502)).is_none(), "the account is gone");
        valid.store(true, Ordering::Relaxed);
        assert!(logins.find(&keys[1], &peer, at(2502)).is_none(), "and does not come back");
    }
}
