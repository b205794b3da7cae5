//! Login handshake: greeting, optional TLS, response, optional switch of the authentication method, result.

use std::sync::Arc;

use cohort_base::{CommitSeq, ConnectionId};
use cohort_catalog::{AccountRules, TlsRequirement};
use cohort_config::{Counter, VarId};
use cohort_exec::{Client, ConnectionEvent};
use cohort_protocol::{
    Capabilities, Challenge, ChangeUser, HandshakeResponse, NATIVE_PASSWORD, OkInfo, Packet, PacketWriter,
    Scramble, SessionChange, auth_switch_request, certificate_proof, write_error, write_ok,
};
use cohort_tls::TlsStream;
use cohort_types::SqlError;

use crate::accounts::{Account, Found, Method};
use crate::backend::{ConnectionInfo, MultiStatements};
use crate::commands::OnlyError;
use crate::connection::{After, Connection, Inner};
use crate::shared::Shared;
use crate::tls::{Encryption, Tls};

/// Maximum length of a user name in characters.
const USER_NAME_CHARS_MAX: usize = 128;

/// Progress of a login.
pub(crate) enum Stage {
    /// The greeting was sent. Next is the response, or a request for TLS before it.
    Greeted(Scramble),
    /// The client was asked to authenticate by another method than it had chosen.
    Switched(Challenge, Box<Candidate>),
    /// The connection serves commands.
    Ready,
}

/// A user who logs in, or a COM_CHANGE_USER.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    user: String,
    database: Option<String>,
    collation: u16,
    attributes: Vec<(String, String)>,
    kind: Kind,
    /// The scramble of the greeting; with COM_CHANGE_USER, the first scramble of its authentication.
    scramble: Scramble,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The login of a new connection.
    Login,
    /// COM_CHANGE_USER.
    Change,
}

/// Processes a packet that arrives before the connection serves commands.
pub(crate) fn step(connection: &Arc<Connection>, inner: &mut Inner, packet: &Packet) -> After {
    let sequence = packet.sequence.wrapping_add(1);
    match std::mem::replace(&mut inner.stage, Stage::Ready) {
        Stage::Greeted(scramble) => greeted(connection, inner, packet, scramble, sequence),
        Stage::Switched(challenge, candidate) => {
            let answer = inner.input.payload(packet).to_vec();
            decide_login(connection, inner, *candidate, challenge, &answer, sequence);
        }
        Stage::Ready => unreachable!("commands do not come here"),
    }
    // The reply waits for the effects of init_connect.
    let hold = inner.session.as_ref().map_or(CommitSeq(0), |session| session.hold().until());
    if hold > connection.shared().backend.acknowledged() { After::ReplyBarrier(hold) } else { After::Send }
}

/// Processes the first packet, or the second one if the first asked for TLS.
fn greeted(
    connection: &Arc<Connection>,
    inner: &mut Inner,
    packet: &Packet,
    scramble: Scramble,
    sequence: u8,
) {
    let shared = connection.shared();
    let payload = inner.input.payload(packet);
    let tls = shared.tls.as_ref();
    if HandshakeResponse::asks_for_tls(payload) && !connection.is_encrypted() {
        if let Some(tls) = tls {
            return begin_tls(connection, inner, tls, scramble, sequence);
        }
    } else if let Ok(response) = HandshakeResponse::decode(payload, shared.capabilities()) {
        let agreed = |stream: &TlsStream| tls.map(|tls| tls.agreed(stream));
        inner.encryption = connection.with_tls(agreed).flatten();
        return begin(connection, inner, response, &scramble, sequence);
    }
    reject(connection, inner, sequence, &SqlError::bad_handshake());
}

/// Starts TLS. Bytes after the request belong to TLS and are never parsed as a packet, because a man in the
/// middle could have injected them.
fn begin_tls(connection: &Arc<Connection>, inner: &mut Inner, tls: &Tls, scramble: Scramble, sequence: u8) {
    let early = inner.input.take_rest();
    match tls.accept(early) {
        Ok(stream) => {
            connection.encrypt(inner, stream);
            inner.input.expect_sequence(sequence);
            inner.stage = Stage::Greeted(scramble);
        }
        Err(error) => {
            reject(connection, inner, sequence, &SqlError::tls_handshake_failed(error));
        }
    }
}

fn begin(
    connection: &Arc<Connection>,
    inner: &mut Inner,
    response: HandshakeResponse,
    scramble: &Scramble,
    sequence: u8,
) {
    inner.capabilities = response.capabilities;
    let candidate = Candidate {
        user: user_name(&response.user),
        database: response.database.as_deref().map(lossy),
        collation: u16::from(response.collation),
        attributes: response.attributes.iter().map(|(k, v)| (lossy(k), lossy(v))).collect(),
        kind: Kind::Login,
        scramble: *scramble,
    };
    proceed(connection, inner, candidate, response.plugin.as_deref(), &response.answer, sequence);
}

/// COM_CHANGE_USER. The client's response uses the scramble of the connection's greeting, which the server no
/// longer has. The server therefore sends a new one.
pub(crate) fn change_user(connection: &Arc<Connection>, inner: &mut Inner, change: ChangeUser, sequence: u8) {
    let scramble = connection.shared().new_scramble();
    let candidate = Candidate {
        user: user_name(&change.user),
        database: change.database.as_deref().map(lossy),
        collation: change.collation.unwrap_or(0),
        attributes: change.attributes.iter().map(|(k, v)| (lossy(k), lossy(v))).collect(),
        kind: Kind::Change,
        scramble,
    };
    let challenge = Challenge::Native(scramble);
    if inner.capabilities.has(Capabilities::PLUGIN_AUTH) {
        switch(inner, candidate, challenge, sequence);
    } else {
        // Without the switch only an empty password can be verified.
        decide_login(connection, inner, candidate, challenge, &change.answer, sequence);
    }
}

fn proceed(
    connection: &Arc<Connection>,
    inner: &mut Inner,
    candidate: Candidate,
    plugin: Option<&[u8]>,
    answer: &[u8],
    sequence: u8,
) {
    let challenge = Challenge::Native(candidate.scramble);
    match plugin {
        // Send the scramble of the greeting again: it has not been used yet.
        Some(other) if other != NATIVE_PASSWORD.as_bytes() => switch(inner, candidate, challenge, sequence),
        _ => decide_login(connection, inner, candidate, challenge, answer, sequence),
    }
}

fn switch(inner: &mut Inner, candidate: Candidate, challenge: Challenge, mut sequence: u8) {
    let mut packet = PacketWriter::begin(&mut inner.out, &mut sequence);
    auth_switch_request(&challenge, packet.payload());
    packet.end();
    inner.input.expect_sequence(sequence);
    inner.stage = Stage::Switched(challenge, Box::new(candidate));
}

/// Returns whether the account has another authentication method to try. The client is then asked once more,
/// as MariaDB tries the methods of an account in turn.
fn asks_again(account: &Account, challenge: &Challenge, capabilities: Capabilities) -> bool {
    matches!(challenge, Challenge::Native(_))
        && capabilities.has(Capabilities::PLUGIN_AUTH)
        && account.methods.iter().any(|method| matches!(method, Method::Ed25519(_)))
}

fn decide_login(
    connection: &Arc<Connection>,
    inner: &mut Inner,
    candidate: Candidate,
    challenge: Challenge,
    answer: &[u8],
    mut sequence: u8,
) {
    let (account, stored) = match verify(connection, inner, &candidate, &challenge, answer) {
        Ok(Verdict::Proven(account, stored)) => (account, stored),
        Ok(Verdict::AskAgain) => {
            let nonce = connection.shared().new_nonce();
            return switch(inner, candidate, Challenge::Ed25519(nonce), sequence);
        }
        Err(error) if candidate.kind == Kind::Change => {
            log_failure(connection, ConnectionEvent::ChangeUser, &candidate.user, &error);
            return keep_user(connection, inner, sequence, &error);
        }
        Err(error) => return reject_candidate(connection, inner, sequence, (&candidate, &error)),
    };
    let info = connection_info(connection, inner, &candidate, &account);
    if let Err(error) = become_user(connection, inner, &candidate, &account, info) {
        return reject_candidate(connection, inner, sequence, (&candidate, &error));
    }
    let status = inner.session.as_ref().map(|session| session.status()).unwrap_or_default();
    let own_certificate =
        inner.encryption.as_ref().and_then(|encryption| encryption.own_certificate.as_ref());
    let proof = own_certificate.filter(|_| !stored.is_empty());
    let proof = proof.map(|own| certificate_proof(&stored, &candidate.scramble, own)).unwrap_or_default();
    let ok = OkInfo { status, info: &proof, ..OkInfo::default() };
    let schema = candidate.database.as_deref().map(SessionChange::Schema);
    write_ok(&mut inner.out, &mut sequence, &ok, inner.capabilities, schema);
    if candidate.kind == Kind::Login && inner.capabilities.has(Capabilities::COMPRESS) {
        connection.compress_from_here(inner);
    }
    inner.input.expect_sequence(0);
    inner.stage = Stage::Ready;
}

/// Gives the client its place and its session, or changes the user of its session.
fn become_user(
    connection: &Arc<Connection>,
    inner: &mut Inner,
    candidate: &Candidate,
    account: &Account,
    info: ConnectionInfo,
) -> Result<(), SqlError> {
    let place = connection.shared().enter(account, inner.place.as_ref())?;
    match (candidate.kind, &mut inner.session) {
        (Kind::Change, Some(session)) => session.change_user(info)?,
        _ => enter(connection, inner, info)?,
    }
    inner.place = Some(place);
    connection.note_entered();
    match account.is_super {
        true => Ok(()),
        false => run_init_connect(connection, inner, candidate),
    }
}

/// Runs init_connect in the session. If it fails, the connection ends with error 1184.
fn run_init_connect(
    connection: &Connection,
    inner: &mut Inner,
    candidate: &Candidate,
) -> Result<(), SqlError> {
    let shared = connection.shared();
    let Some(sql) = shared.globals.text(VarId::InitConnect).filter(|sql| !sql.is_empty()) else {
        return Ok(());
    };
    let session = inner.session.as_mut().expect("the user has one");
    let mut outcome = OnlyError(None);
    session.query(sql.as_bytes(), &mut outcome);
    let Some(error) = outcome.0 else { return Ok(()) };
    shared.log.warning(format_args!("init_connect query failed: {}", one_line(&error.message)));
    let schema = candidate.database.as_deref().unwrap_or("unconnected");
    Err(SqlError::init_connect_failed(connection.id, schema, &candidate.user, &connection.peer.host))
}

/// Result of verifying a client's response.
pub(crate) enum Verdict {
    /// Authenticated, with the stored hash of the password that the client proved.
    Proven(Box<Account>, Vec<u8>),
    /// The response fits none of the methods, but the account has another one.
    AskAgain,
}

/// A client that claims to be a user, however the claim has arrived.
pub(crate) struct Claim<'c> {
    pub user: &'c str,
    /// Host and address that accounts are matched with.
    pub host: &'c str,
    pub address: Option<&'c str>,
    pub encryption: Option<&'c Encryption>,
    /// The client can change an expired password.
    pub knows_expired: bool,
    pub has_password: bool,
}

fn verify(
    connection: &Connection,
    inner: &Inner,
    candidate: &Candidate,
    challenge: &Challenge,
    answer: &[u8],
) -> Result<Verdict, SqlError> {
    let claim = Claim {
        user: &candidate.user,
        host: &connection.peer.host,
        address: connection.peer.address.as_deref(),
        encryption: inner.encryption.as_ref(),
        knows_expired: inner.capabilities.has(Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS),
        has_password: !answer.is_empty(),
    };
    let is_system_user = || connection.system_user().is_some_and(|user| user == candidate.user);
    let proves = |method: &Method| method.is_proven(challenge, answer, is_system_user);
    let may_ask = |account: &Account| asks_again(account, challenge, inner.capabilities);
    judge(connection.shared(), &claim, &proves, &may_ask)
}

/// Decides a claim: the account exists, one of its methods is proven, and its rules allow the login. A right
/// or wrong password is counted.
pub(crate) fn judge(
    shared: &Shared,
    claim: &Claim<'_>,
    proves: &dyn Fn(&Method) -> bool,
    may_ask: &dyn Fn(&Account) -> bool,
) -> Result<Verdict, SqlError> {
    let &Claim { user, host, address, .. } = claim;
    let found = shared.accounts.find(user, host, address);
    let is_secure = address.is_none()
        || claim.encryption.is_some()
        || !shared.globals.flag(VarId::RequireSecureTransport);
    let denied = || {
        shared.status.count(Counter::AccessDeniedErrors);
        SqlError::access_denied(user, host, if claim.has_password { "YES" } else { "NO" })
    };
    let (account, is_there) = match found {
        Found::Account(account) => (account, is_secure),
        Found::Decoy(decoy) => (decoy, false),
    };
    if account.is_blocked {
        return Err(SqlError::user_is_blocked());
    }
    let fitting = account.methods.iter().find(|method| proves(method));
    let stored = fitting.map(|method| method.stored().to_vec()).unwrap_or_default();
    let is_proven = fitting.is_some() && is_there;
    if !is_proven && may_ask(&account) {
        return Ok(Verdict::AskAgain);
    }
    if is_secure {
        shared.accounts.note_password(&account, is_proven);
    }
    let asks_system = |method: &Method| matches!(method, Method::SystemUser);
    let no_password_counts = match claim.has_password {
        false => account.methods.iter().any(asks_system),
        true => account.methods.iter().all(asks_system) && !account.methods.is_empty(),
    };
    if !is_proven && no_password_counts {
        shared.status.count(Counter::AccessDeniedErrors);
        return Err(SqlError::access_denied_without_password(user, host));
    }
    if !is_proven || !fits(claim.encryption, &account.rules.tls) {
        return Err(denied());
    }
    check_rules(shared, claim.knows_expired, &account.rules)?;
    Ok(Verdict::Proven(Box::new(account), stored))
}

/// Returns whether a claim that was proven with a stored password would still be proven, for the same
/// account.
pub(crate) fn holds(shared: &Shared, claim: &Claim<'_>, name: (&str, &str), stored: &[u8]) -> bool {
    let Found::Account(account) = shared.accounts.find(claim.user, claim.host, claim.address) else {
        return false;
    };
    (account.user.as_str(), account.host.as_str()) == name
        && account.methods.iter().any(|method| method.stored() == stored)
        && fits(claim.encryption, &account.rules.tls)
        && check_rules(shared, claim.knows_expired, &account.rules).is_ok()
}

/// Checks the account's other rules: errors 4151 (locked) and 1862 (password expired).
fn check_rules(shared: &Shared, knows_expired: bool, rules: &AccountRules) -> Result<(), SqlError> {
    let globals = &shared.globals;
    if rules.is_locked {
        return Err(SqlError::account_locked());
    }
    let default_days = globals.uint(VarId::DefaultPasswordLifetime);
    if !knows_expired
        && globals.flag(VarId::DisconnectOnExpiredPassword)
        && rules.has_expired(shared.wall_s(), default_days)
    {
        return Err(SqlError::password_expired());
    }
    Ok(())
}

/// Returns whether the connection satisfies the account's REQUIRE clause.
fn fits(encryption: Option<&Encryption>, required: &TlsRequirement) -> bool {
    let peer = encryption.and_then(|encryption| encryption.peer.as_ref());
    let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    match required {
        TlsRequirement::None => true,
        TlsRequirement::Encrypted => encryption.is_some(),
        TlsRequirement::Certificate => peer.is_some(),
        TlsRequirement::Specified { cipher, issuer, subject } => {
            encryption.is_some_and(|encryption| is(cipher, encryption.session.cipher))
                && peer.map_or(issuer.is_empty() && subject.is_empty(), |peer| {
                    is(issuer, &peer.issuer) && is(subject, &peer.subject)
                })
        }
    }
}

fn connection_info(
    connection: &Connection,
    inner: &Inner,
    candidate: &Candidate,
    account: &Account,
) -> ConnectionInfo {
    let multi = inner.capabilities.has(Capabilities::MULTI_STATEMENTS);
    ConnectionInfo {
        id: connection.id,
        user: candidate.user.clone(),
        host: connection.peer.host.clone(),
        peer: connection.peer.shown.clone(),
        account: (account.user.clone(), account.host.clone()),
        schema: candidate.database.clone(),
        collation: candidate.collation,
        multi_statements: if multi { MultiStatements::On } else { MultiStatements::Off },
        interactive: inner.capabilities.has(Capabilities::INTERACTIVE),
        found_rows: inner.capabilities.has(Capabilities::FOUND_ROWS),
        attributes: candidate.attributes.clone(),
        encryption: inner.encryption.as_ref().map(|encryption| encryption.session.clone()),
        is_local: connection.peer.address.is_none(),
    }
}

fn enter(connection: &Arc<Connection>, inner: &mut Inner, info: ConnectionInfo) -> Result<(), SqlError> {
    let closer = {
        let connection = Arc::downgrade(connection);
        move || {
            if let Some(connection) = connection.upgrade() {
                connection.kill();
            }
        }
    };
    inner.session = Some(connection.shared().backend.connect(info, Box::new(closer))?);
    Ok(())
}

/// Rejects a client whose user name is known.
fn reject_candidate(
    connection: &Connection,
    inner: &mut Inner,
    sequence: u8,
    (candidate, error): (&Candidate, &SqlError),
) {
    let event = match candidate.kind {
        Kind::Login => ConnectionEvent::FailedConnect,
        Kind::Change => ConnectionEvent::ChangeUser,
    };
    // If init_connect ended the session, its end was already logged.
    if candidate.kind == Kind::Change || inner.session.is_none() {
        log_failure(connection, event, &candidate.user, error);
    }
    refuse(connection, inner, sequence, error);
}

/// Rejects a client whose user name is not known yet.
fn reject(connection: &Connection, inner: &mut Inner, sequence: u8, error: &SqlError) {
    log_failure(connection, ConnectionEvent::FailedConnect, "", error);
    refuse(connection, inner, sequence, error);
}

fn log_failure(connection: &Connection, event: ConnectionEvent, user: &str, error: &SqlError) {
    let client = Client { id: connection.id, user, host: &connection.peer.host };
    connection.shared().backend.note_refused(event, client, error);
}

/// Sends the error and closes the connection.
fn refuse(connection: &Connection, inner: &mut Inner, mut sequence: u8, error: &SqlError) {
    write_error(&mut inner.out, &mut sequence, error);
    inner.closing = true;
    log_refusal(connection, error);
}

fn log_refusal(connection: &Connection, error: &SqlError) {
    warn_of_refusal(connection.shared(), connection.id, &connection.peer.shown, error);
}

/// Logs a login that was rejected.
pub(crate) fn warn_of_refusal(shared: &Shared, id: ConnectionId, peer: &str, error: &SqlError) {
    shared.log.warning(format_args!("Connection {id} from {peer}: {}", one_line(&error.message)));
}

/// Refuses a change of user: resets the session, which keeps its user.
fn keep_user(connection: &Connection, inner: &mut Inner, mut sequence: u8, error: &SqlError) {
    log_refusal(connection, error);
    write_error(&mut inner.out, &mut sequence, error);
    inner.refused_changes += 1;
    inner.session.iter_mut().for_each(|session| session.reset());
    inner.input.expect_sequence(0);
    inner.stage = Stage::Ready;
}

/// Returns a user name, truncated as in MariaDB.
fn user_name(bytes: &[u8]) -> String {
    lossy(bytes).chars().take(USER_NAME_CHARS_MAX).collect()
}

/// Returns a client's text in a form that fits on one line of the error log.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
