//! The current values of settings.
//!
//! [`Globals`] belongs to the server; reading a number takes one atomic load. A session starts with the
//! global values at that time. It shares one block of them with all other sessions until it sets a variable
//! itself. So a connection costs one reference count, and its first SET one copy of about a KiB.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, RwLock};

use crate::setting::{Access, Acts, Kind, Scope, Setting, SettingScope};
use crate::table::{CHARSETS, COLLATIONS, VarId};
use crate::value::{Misfit, Raw, VarValue};
use cohort_types::{Charset, Collation};

/// Why SET or a read of a variable failed. `number` returns MariaDB's error number, `Display` the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// 1193.
    Unknown(String),
    /// 1238: only the command line can set it.
    ReadOnly(&'static str),
    /// 1621: sessions cannot change it, but SET GLOBAL can.
    SessionReadOnly(&'static str),
    /// 1229: SET SESSION of a global setting.
    GlobalOnly(&'static str),
    /// 1228: SET GLOBAL of a session setting.
    SessionOnly(&'static str),
    /// 1238: `@@session.x` of a global setting.
    NoSessionValue(&'static str),
    /// 1238: `@@global.x` of a session setting.
    NoGlobalValue(&'static str),
    /// 1231.
    WrongValue(&'static str, String),
    /// 1232.
    WrongType(&'static str),
    /// 1115.
    UnknownCharset(String),
    /// 1273.
    UnknownCollation(String),
}

impl SetError {
    /// Returns MariaDB's error number.
    pub fn number(&self) -> u16 {
        match self {
            SetError::Unknown(_) => 1193,
            SetError::ReadOnly(_) | SetError::NoSessionValue(_) | SetError::NoGlobalValue(_) => 1238,
            SetError::SessionReadOnly(_) => 1621,
            SetError::GlobalOnly(_) => 1229,
            SetError::SessionOnly(_) => 1228,
            SetError::WrongValue(..) => 1231,
            SetError::WrongType(_) => 1232,
            SetError::UnknownCharset(_) => 1115,
            SetError::UnknownCollation(_) => 1273,
        }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Unknown(name) => write!(f, "Unknown system variable '{name}'"),
            SetError::ReadOnly(name) => write!(f, "Variable '{name}' is a read only variable"),
            SetError::SessionReadOnly(name) => {
                write!(f, "SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value")
            }
            SetError::GlobalOnly(name) => {
                write!(f, "Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL")
            }
            SetError::SessionOnly(name) => {
                write!(f, "Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL")
            }
            SetError::NoSessionValue(name) => write!(f, "Variable '{name}' is a GLOBAL variable"),
            SetError::NoGlobalValue(name) => write!(f, "Variable '{name}' is a SESSION variable"),
            SetError::WrongValue(name, value) => {
                write!(f, "Variable '{name}' can't be set to the value of '{value}'")
            }
            SetError::WrongType(name) => write!(f, "Incorrect argument type to variable '{name}'"),
            SetError::UnknownCharset(name) => write!(f, "Unknown character set: '{name}'"),
            SetError::UnknownCollation(name) => write!(f, "Unknown collation: '{name}'"),
        }
    }
}

impl std::error::Error for SetError {}

/// Whether SET changed the given value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetNote {
    /// Set as given.
    Exact,
    /// Moved into the bounds; contains the text of warning 1292.
    Adjusted(String),
}

static NAMES: LazyLock<HashMap<&'static str, VarId>> =
    LazyLock::new(|| VarId::ALL.iter().map(|id| (id.setting().name, *id)).collect());

/// Settings sorted by name, for SHOW VARIABLES.
static SORTED: LazyLock<Vec<VarId>> = LazyLock::new(|| {
    let mut ids = VarId::ALL.to_vec();
    ids.sort_by_key(|id| id.setting().name);
    ids
});

/// Slot of each session setting in [`Values`].
static SLOTS: LazyLock<Slots> = LazyLock::new(Slots::new);

struct Slots {
    /// By VarId: index among numbers or among texts; `u16::MAX` if sessions have no value.
    of: Vec<u16>,
    numbers: usize,
    texts: usize,
}

impl Slots {
    fn new() -> Slots {
        let mut slots = Slots { of: Vec::with_capacity(VarId::ALL.len()), numbers: 0, texts: 0 };
        for id in VarId::ALL {
            let setting = id.setting();
            if !setting.has_session_value() || setting.alias_of.is_some() {
                slots.of.push(u16::MAX);
                continue;
            }
            let next = match setting.kind.default_raw() {
                Raw::Number(_) => &mut slots.numbers,
                Raw::Text(_) => &mut slots.texts,
            };
            slots.of.push(*next as u16);
            *next += 1;
        }
        slots
    }
}

impl VarId {
    /// Finds a setting by name, ignoring case.
    pub fn find(name: &str) -> Option<VarId> {
        match NAMES.get(name) {
            Some(id) => Some(*id),
            None => NAMES.get(name.to_ascii_lowercase().as_str()).copied(),
        }
    }

    /// Returns all settings that SHOW VARIABLES lists, sorted by name.
    pub fn shown() -> impl Iterator<Item = VarId> {
        SORTED.iter().copied().filter(|id| !id.setting().hidden)
    }

    fn named(name: &str) -> Result<VarId, SetError> {
        VarId::find(name).filter(|id| !id.setting().hidden).ok_or_else(|| SetError::Unknown(name.to_owned()))
    }
}

/// Values of all session settings.
#[derive(Clone, Debug)]
struct Values {
    numbers: Box<[u64]>,
    texts: Box<[Option<Arc<str>>]>,
}

impl Values {
    fn defaults() -> Values {
        let mut values =
            Values { numbers: vec![0; SLOTS.numbers].into(), texts: vec![None; SLOTS.texts].into() };
        for id in VarId::ALL.iter().filter(|id| SLOTS.of[**id as usize] != u16::MAX) {
            values.put(*id, id.setting().kind.default_raw());
        }
        values
    }

    fn put(&mut self, id: VarId, raw: Raw) {
        let slot = usize::from(SLOTS.of[id as usize]);
        match raw {
            Raw::Number(n) => self.numbers[slot] = n,
            Raw::Text(t) => self.texts[slot] = t,
        }
    }

    fn raw(&self, id: VarId) -> Raw {
        let slot = usize::from(SLOTS.of[id as usize]);
        match id.setting().kind {
            Kind::Text { .. } | Kind::Path { .. } => Raw::Text(self.texts[slot].clone()),
            _ => Raw::Number(self.numbers[slot]),
        }
    }
}

/// The global values. One per server, shared by all its threads.
pub struct Globals {
    /// By VarId; zero for texts.
    numbers: Box<[AtomicU64]>,
    /// By VarId; `None` for numbers.
    texts: Box<[RwLock<Option<Arc<str>>>]>,
    /// Initial values of new sessions.
    session: RwLock<Arc<Values>>,
    /// Incremented by every change.
    generation: AtomicU64,
    /// Held during a change.
    writer: Mutex<()>,
}

impl fmt::Debug for Globals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Globals(generation {})", self.generation())
    }
}

impl Default for Globals {
    fn default() -> Globals {
        Globals::new()
    }
}

impl Globals {
    /// Creates globals with all defaults.
    pub fn new() -> Globals {
        let raw = |id: &VarId| id.setting().kind.default_raw();
        let number = |id| match raw(id) {
            Raw::Number(n) => AtomicU64::new(n),
            Raw::Text(_) => AtomicU64::new(0),
        };
        let text = |id| match raw(id) {
            Raw::Number(_) => RwLock::new(None),
            Raw::Text(t) => RwLock::new(t),
        };
        Globals {
            numbers: VarId::ALL.iter().map(number).collect(),
            texts: VarId::ALL.iter().map(text).collect(),
            session: RwLock::new(Arc::new(Values::defaults())),
            generation: AtomicU64::new(1),
            writer: Mutex::new(()),
        }
    }

    /// Returns the number of changes so far. A caller that caches derived values compares it.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns a number, the index of an enum value or the bits of a set.
    pub fn uint(&self, id: VarId) -> u64 {
        self.numbers[id.canonical() as usize].load(Ordering::Relaxed)
    }

    /// Returns an ON/OFF setting.
    pub fn flag(&self, id: VarId) -> bool {
        self.uint(id) != 0
    }

    /// Returns a floating-point setting.
    pub fn double(&self, id: VarId) -> f64 {
        f64::from_bits(self.uint(id))
    }

    /// Returns a text or path; `None` is NULL.
    pub fn text(&self, id: VarId) -> Option<Arc<str>> {
        self.texts[id.canonical() as usize].read().clone()
    }

    /// Returns any value, as SQL sees it.
    pub fn value(&self, id: VarId) -> VarValue {
        let kind = &id.setting().kind;
        match kind {
            Kind::Text { .. } | Kind::Path { .. } => kind.value(Raw::Text(self.text(id))),
            _ => kind.value(Raw::Number(self.uint(id))),
        }
    }

    /// Returns whether a setting has its built-in value.
    pub fn is_default(&self, id: VarId) -> bool {
        let kind = &id.setting().kind;
        self.value(id) == kind.value(kind.default_raw())
    }

    /// Returns `@@global.name`.
    pub fn get(&self, name: &str) -> Result<VarValue, SetError> {
        let id = VarId::named(name)?;
        match id.setting().has_global_value() {
            true => Ok(self.value(id)),
            false => Err(SetError::NoGlobalValue(id.setting().name)),
        }
    }

    /// SET GLOBAL.
    pub fn set(&self, name: &str, value: &VarValue) -> Result<SetNote, SetError> {
        let id = self.settable(name)?;
        let (changes, note) = checked(id, value)?;
        self.put_raw(changes);
        Ok(note)
    }

    /// SET GLOBAL ... = DEFAULT.
    pub fn set_default(&self, name: &str) -> Result<(), SetError> {
        let id = self.settable(name)?;
        let default = id.setting().kind.default_raw();
        let follower = match default {
            Raw::Number(n) => followers(id, n as usize),
            Raw::Text(_) => None,
        };
        self.put_raw([(id, default)].into_iter().chain(follower).collect());
        Ok(())
    }

    /// Sets a value determined by the server or given on the command line. Ignores access rules and bounds.
    pub fn put(&self, id: VarId, value: &VarValue) {
        let raw = match (id.setting().kind, value) {
            // A value that the server determined may be outside of the bounds of SET.
            (Kind::Int { .. }, VarValue::UInt(v)) => Raw::Number(*v),
            (kind, value) => match kind.check(value) {
                Ok(fit) => fit.raw,
                Err(_) => return debug_assert!(false, "{} does not take {value:?}", id.setting().name),
            },
        };
        self.put_raw(vec![(id.canonical(), raw)]);
    }

    /// Returns the variables of a session that starts now.
    pub fn new_session(self: &Arc<Self>) -> SessionVars {
        SessionVars { globals: Arc::clone(self), values: Arc::clone(&self.session.read()), version: 0 }
    }

    fn settable(&self, name: &str) -> Result<VarId, SetError> {
        match settable_globally(name)? {
            // New sessions always log; only a session can disable logging for itself.
            id @ VarId::SqlLogBin => Err(SetError::NoGlobalValue(id.setting().name)),
            id => Ok(id),
        }
    }

    pub(crate) fn put_raw(&self, changes: Vec<(VarId, Raw)>) {
        let _writer = self.writer.lock();
        let mut session = None;
        for (id, raw) in changes {
            if id.setting().has_session_value() {
                session.get_or_insert_with(|| Values::clone(&self.session.read())).put(id, raw.clone());
            }
            match raw {
                Raw::Number(n) => self.numbers[id as usize].store(n, Ordering::Relaxed),
                Raw::Text(t) => *self.texts[id as usize].write() = t,
            }
        }
        if let Some(values) = session {
            *self.session.write() = Arc::new(values);
        }
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Versions are never reused, because a session's values may be restored from a copy and changed again.
static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);

/// The values of one session, and access to the global ones.
#[derive(Clone)]
pub struct SessionVars {
    globals: Arc<Globals>,
    values: Arc<Values>,
    version: u64,
}

/// The settings that act in plans.
static PLAN_SETTINGS: LazyLock<Vec<VarId>> =
    LazyLock::new(|| VarId::ALL.iter().copied().filter(|id| id.setting().acts_in() == Acts::Plan).collect());

impl SessionVars {
    /// Returns the global values.
    pub fn globals(&self) -> &Arc<Globals> {
        &self.globals
    }

    /// Returns a version that changes whenever a session value may have changed. A caller that caches derived
    /// values compares it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns a number, the index of an enum value or the bits of a set. Returns the global value if
    /// sessions have none.
    pub fn uint(&self, id: VarId) -> u64 {
        let id = id.canonical();
        match SLOTS.of[id as usize] {
            u16::MAX => self.globals.uint(id),
            slot => self.values.numbers[usize::from(slot)],
        }
    }

    /// Returns an ON/OFF setting.
    pub fn flag(&self, id: VarId) -> bool {
        self.uint(id) != 0
    }

    /// Returns a floating-point setting.
    pub fn double(&self, id: VarId) -> f64 {
        f64::from_bits(self.uint(id))
    }

    /// Returns a text or path; `None` is NULL.
    pub fn text(&self, id: VarId) -> Option<Arc<str>> {
        let id = id.canonical();
        match SLOTS.of[id as usize] {
            u16::MAX => self.globals.text(id),
            slot => self.values.texts[usize::from(slot)].clone(),
        }
    }

    /// Returns any value, as SQL sees it: the session value, or the global one if sessions have none.
    pub fn value(&self, id: VarId) -> VarValue {
        let canonical = id.canonical();
        match SLOTS.of[canonical as usize] {
            u16::MAX => self.globals.value(id),
            _ => id.setting().kind.value(self.values.raw(canonical)),
        }
    }

    /// Hashes the values of all settings that act in plans.
    pub fn hash_plan_settings(&self, hasher: &mut impl Hasher) {
        for id in PLAN_SETTINGS.iter() {
            self.value(*id).to_string().hash(hasher);
        }
    }

    /// Returns `@@name` (`None`), `@@session.name` or `@@global.name`.
    pub fn get(&self, name: &str, scope: Option<Scope>) -> Result<VarValue, SetError> {
        let id = VarId::named(name)?;
        match scope {
            Some(Scope::Global) => self.globals.get(name),
            Some(Scope::Session) if !id.setting().has_session_value() => {
                Err(SetError::NoSessionValue(id.setting().name))
            }
            _ => Ok(self.value(id)),
        }
    }

    /// SET.
    pub fn set(&mut self, name: &str, scope: Scope, value: &VarValue) -> Result<SetNote, SetError> {
        if scope == Scope::Global {
            return self.globals.set(name, value);
        }
        let id = settable_in_session(name)?;
        let (changes, note) = checked(id, value)?;
        self.put_raw(changes);
        Ok(note)
    }

    /// Checks whether SET would succeed; without a value, SET ... = DEFAULT. Lets a statement that sets
    /// several variables set all of them or none.
    pub fn check(&self, name: &str, scope: Scope, value: Option<&VarValue>) -> Result<(), SetError> {
        let id = match scope {
            Scope::Global => self.globals.settable(name)?,
            Scope::Session => settable_in_session(name)?,
        };
        value.map_or(Ok(()), |value| checked(id, value).map(|_| ()))
    }

    /// SET ... = DEFAULT: resets a session value to the global one, a global value to the built-in one.
    pub fn set_default(&mut self, name: &str, scope: Scope) -> Result<(), SetError> {
        if scope == Scope::Global {
            return self.globals.set_default(name);
        }
        let id = settable_in_session(name)?;
        let raw = match id.setting().has_global_value() {
            true => self.globals.session.read().raw(id),
            false => id.setting().kind.default_raw(),
        };
        self.put_raw(vec![(id, raw)]);
        Ok(())
    }

    /// Sets a value on behalf of a session (interactive clients, the character set of the handshake).
    pub fn put(&mut self, id: VarId, value: &VarValue) {
        if let Ok(fit) = id.setting().kind.check(value)
            && id.setting().has_session_value()
        {
            self.put_raw(vec![(id.canonical(), fit.raw)]);
        }
    }

    /// Resets all values to those of a new session: COM_RESET_CONNECTION.
    pub fn reset(&mut self) {
        self.values = Arc::clone(&self.globals.session.read());
        self.version = NEXT_VERSION.fetch_add(1, Ordering::Relaxed);
    }

    /// Restores variables that were set for one statement only: those that differ between `before` and
    /// `given`, and `ids`. Other variables that the statement itself has set keep their values.
    pub fn take_back(&mut self, before: &SessionVars, given: &SessionVars, ids: &[VarId]) {
        self.version = NEXT_VERSION.fetch_add(1, Ordering::Relaxed);
        let values = Arc::make_mut(&mut self.values);
        let (before, given) = (&before.values, &given.values);
        for (n, number) in values.numbers.iter_mut().enumerate() {
            if before.numbers[n] != given.numbers[n] {
                *number = before.numbers[n];
            }
        }
        for (n, text) in values.texts.iter_mut().enumerate() {
            if before.texts[n] != given.texts[n] {
                text.clone_from(&before.texts[n]);
            }
        }
        for id in ids.iter().map(|id| id.canonical()).filter(|id| id.setting().has_session_value()) {
            values.put(id, before.raw(id));
        }
    }

    fn put_raw(&mut self, changes: Vec<(VarId, Raw)>) {
        self.version = NEXT_VERSION.fetch_add(1, Ordering::Relaxed);
        let values = Arc::make_mut(&mut self.values);
        for (id, raw) in changes {
            values.put(id, raw);
        }
    }
}

/// Returns the setting that a SET with this name and scope would change. Does not check privileges or the
/// value.
pub fn settable(name: &str, scope: Scope) -> Result<VarId, SetError> {
    match scope {
        Scope::Global => settable_globally(name),
        Scope::Session => settable_in_session(name),
    }
}

fn settable_globally(name: &str) -> Result<VarId, SetError> {
    let id = VarId::named(name)?;
    let setting = id.setting();
    match (setting.access, setting.scope) {
        (Access::ReadOnly, _) => Err(SetError::ReadOnly(setting.name)),
        (_, SettingScope::Session) => Err(SetError::SessionOnly(setting.name)),
        _ => Ok(id.canonical()),
    }
}

fn settable_in_session(name: &str) -> Result<VarId, SetError> {
    let id = VarId::named(name)?;
    let setting = id.setting();
    match (setting.access, setting.scope) {
        (Access::ReadOnly, _) => Err(SetError::ReadOnly(setting.name)),
        (_, SettingScope::Global) => Err(SetError::GlobalOnly(setting.name)),
        (Access::SessionReadOnly, _) => Err(SetError::SessionReadOnly(setting.name)),
        _ => Ok(id.canonical()),
    }
}

type Changes = Vec<(VarId, Raw)>;

/// Returns the changes made by a SET: the setting itself and those derived from it.
fn checked(id: VarId, value: &VarValue) -> Result<(Changes, SetNote), SetError> {
    let setting = id.setting();
    let value = &charset_name(id, value)?;
    // Only this list has a keyword for all of its members.
    let all = VarValue::UInt(2047);
    let is_all = matches!(value, VarValue::Text(word) if word.eq_ignore_ascii_case("all"));
    let value = if id == VarId::LogSlowFilter && is_all { &all } else { value };
    let fit = setting.kind.check(value).map_err(|misfit| set_error(setting, value, misfit))?;
    if setting.refuses(&fit.raw).is_some() {
        return Err(set_error(setting, value, Misfit::Value));
    }
    let note = match fit.adjusted {
        false => SetNote::Exact,
        true => SetNote::Adjusted(format!("Truncated incorrect {} value: '{value}'", setting.name)),
    };
    let mut changes = vec![(id, fit.raw.clone())];
    match (id, fit.raw) {
        (VarId::SqlMode, Raw::Number(bits)) => changes[0].1 = Raw::Number(expand_sql_mode(bits)),
        (_, Raw::Number(n)) => changes.extend(followers(id, n as usize)),
        _ => {}
    }
    Ok((changes, note))
}

fn set_error(setting: &Setting, value: &VarValue, misfit: Misfit) -> SetError {
    match misfit {
        Misfit::Type => SetError::WrongType(setting.name),
        Misfit::Value | Misfit::Suffix(_) => {
            let shown = if *value == VarValue::Null { "NULL".to_owned() } else { value.to_string() };
            SetError::WrongValue(setting.name, shown)
        }
    }
}

/// Resolves aliases of character set and collation names. Unknown names have errors of their own.
fn charset_name(id: VarId, value: &VarValue) -> Result<VarValue, SetError> {
    use VarId::*;
    let VarValue::Text(name) = value else { return Ok(value.clone()) };
    match id {
        CharacterSetServer
        | CharacterSetClient
        | CharacterSetConnection
        | CharacterSetResults
        | CharacterSetDatabase
        | CharacterSetFilesystem => {
            let lower = name.to_ascii_lowercase();
            let lower = if lower == "utf8" { "utf8mb3" } else { lower.as_str() };
            match Charset::by_name(lower) {
                Some(charset) if id == CharacterSetClient && charset.mbminlen() > 1 => {
                    Err(SetError::WrongValue(id.setting().name, name.to_string()))
                }
                Some(charset) => Ok(VarValue::text(charset.name())),
                None => Err(SetError::UnknownCharset(name.to_string())),
            }
        }
        CollationServer | CollationConnection | CollationDatabase => {
            let lower = name.to_ascii_lowercase();
            let lower = match lower.strip_prefix("utf8_") {
                Some(rest) => format!("utf8mb3_{rest}"),
                None => lower,
            };
            match COLLATIONS.contains(&lower.as_str()) {
                true => Ok(VarValue::text(&lower)),
                false => Err(SetError::UnknownCollation(name.to_string())),
            }
        }
        _ => Ok(value.clone()),
    }
}

/// Returns the text of an option, with aliases of character sets and collations resolved.
pub(crate) fn option_text(id: VarId, text: &str) -> Result<String, SetError> {
    charset_name(id, &VarValue::text(text)).map(|value| value.to_string())
}

/// Returns the setting that must change with another one: a character set also sets its default collation, a
/// collation its character set, and of two names for one setting each sets the other.
pub(crate) fn followers(id: VarId, index: usize) -> Option<(VarId, Raw)> {
    use VarId::*;
    let collation = |target| {
        let name = Charset::by_name(CHARSETS.get(index)?)?.default_collation().name();
        Some((target, Raw::Number(COLLATIONS.iter().position(|c| *c == name)? as u64)))
    };
    let charset = |target| {
        let name = Collation::by_name(COLLATIONS.get(index)?)?.charset().name();
        Some((target, Raw::Number(CHARSETS.iter().position(|c| *c == name)? as u64)))
    };
    match id {
        CharacterSetServer => collation(CollationServer),
        CharacterSetConnection => collation(CollationConnection),
        CharacterSetDatabase => collation(CollationDatabase),
        CollationServer => charset(CharacterSetServer),
        CollationConnection => charset(CharacterSetConnection),
        CollationDatabase => charset(CharacterSetDatabase),
        ExpireLogsDays => {
            let seconds = f64::from_bits(index as u64) * 86_400.0;
            Some((BinlogExpireLogsSeconds, Raw::Number(seconds.round() as u64)))
        }
        BinlogExpireLogsSeconds => Some((ExpireLogsDays, Raw::Number((index as f64 / 86_400.0).to_bits()))),
        _ => None,
    }
}

/// Adds the modes that a combined mode stands for.
pub(crate) fn expand_sql_mode(bits: u64) -> u64 {
    const PIPES_QUOTES_SPACE: u64 = 1 << 1 | 1 << 2 | 1 << 3;
    const NO_OPTIONS: u64 = 1 << 13 | 1 << 14 | 1 << 15;
    const NO_AUTO_CREATE_USER: u64 = 1 << 28;
    let combined = [
        (18, 1 | PIPES_QUOTES_SPACE),
        (9, PIPES_QUOTES_SPACE | NO_OPTIONS | NO_AUTO_CREATE_USER | 1 << 33),
        (10, PIPES_QUOTES_SPACE | NO_OPTIONS),
        (8, PIPES_QUOTES_SPACE | NO_OPTIONS),
        (11, PIPES_QUOTES_SPACE | NO_OPTIONS),
        (12, PIPES_QUOTES_SPACE | NO_OPTIONS | NO_AUTO_CREATE_USER),
        (16, 1 << 15 | 1 << 29),
        (17, 1 << 15 | 1 << 29),
        (27, 1 << 21 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 26 | NO_AUTO_CREATE_USER | 1 << 30),
    ];
    combined.iter().filter(|(bit, _)| bits >> bit & 1 == 1).fold(bits, |all, (_, more)| all | more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_starts_with_the_global_values_and_keeps_them() {
        let globals = Arc::new(Globals::new());
        let mut first = globals.new_session();
        globals.set("wait_timeout", &VarValue::UInt(7)).expect("dynamic");
        let second = globals.new_session();
        assert_eq!(first.uint(VarId::WaitTimeout), 28_800);
        assert_eq!(second.uint(VarId::WaitTimeout), 7);
        first.set("wait_timeout", Scope::Session, &VarValue::UInt(9)).expect("dynamic");
        assert_eq!((first.uint(VarId::WaitTimeout), second.uint(VarId::WaitTimeout)), (9, 7));
        first.set_default("WAIT_TIMEOUT", Scope::Session).expect("dynamic");
        assert_eq!(first.uint(VarId::WaitTimeout), 7);
        assert_eq!(first.get("tx_isolation", None), Ok(VarValue::text("REPEATABLE-READ")));
    }

    #[test]
    fn each_setting_that_can_change_says_where_it_acts() {
        for id in VarId::ALL {
            let setting = id.setting();
            let name = setting.name;
            let can_change =
                setting.access != Access::ReadOnly && setting.alias_of.is_none() && setting.has_effect();
            assert_eq!(setting.acts.is_some(), can_change, "{name}");
            match setting.acts_in() {
                Acts::Global => assert!(setting.has_global_value(), "{name}"),
                Acts::Session | Acts::Plan => assert!(setting.has_session_value(), "{name}"),
                Acts::Start | Acts::Statement | Acts::Nowhere => {}
            }
        }
    }

    #[test]
    fn aliases_share_one_value() {
        let globals = Arc::new(Globals::new());
        let mut vars = globals.new_session();
        vars.set("tx_isolation", Scope::Session, &VarValue::text("read-committed")).expect("a level");
        assert_eq!(vars.get("transaction_isolation", None), Ok(VarValue::text("READ-COMMITTED")));
        globals.set("innodb_flush_log_at_trx_commit", &VarValue::UInt(2)).expect("dynamic");
        assert_eq!(globals.uint(VarId::FlushLogAtTrxCommit), 2);
    }

    #[test]
    fn errors_are_those_of_mariadb() {
        let globals = Arc::new(Globals::new());
        let mut vars = globals.new_session();
        let text = VarValue::text;
        let mut set = |name: &str, scope, value: VarValue| {
            let error = vars.set(name, scope, &value).expect_err(name);
            (error.number(), error.to_string())
        };
        let (g, s) = (Scope::Global, Scope::Session);
        assert_eq!(set("foo", s, VarValue::UInt(3)), (1193, "Unknown system variable 'foo'".into()));
        assert_eq!(set("max_connections", s, VarValue::UInt(3)).0, 1229);
        assert_eq!(set("timestamp", g, VarValue::UInt(3)).0, 1228);
        assert_eq!(set("version", g, text("a")).0, 1238);
        assert_eq!(set("max_allowed_packet", s, VarValue::UInt(5)).0, 1621);
        assert_eq!(
            set("autocommit", s, VarValue::UInt(3)),
            (1231, "Variable 'autocommit' can't be set to the value of '3'".into())
        );
        assert_eq!(
            set("sql_mode", s, VarValue::Null).1,
            "Variable 'sql_mode' can't be set to the value of 'NULL'"
        );
        assert_eq!(
            set("max_connections", g, text("a")),
            (1232, "Incorrect argument type to variable 'max_connections'".into())
        );
        assert_eq!(set("character_set_client", s, text("foo")).0, 1115);
        assert_eq!(set("collation_connection", s, text("foo")).0, 1273);
        assert_eq!(vars.get("timestamp", Some(g)).expect_err("session only").number(), 1238);
        assert_eq!(
            vars.set("max_connections", g, &VarValue::UInt(1)),
            Ok(SetNote::Adjusted("Truncated incorrect max_connections value: '1'".into()))
        );
    }

    #[test]
    fn combined_modes_and_character_sets_bring_others_along() {
        let globals = Arc::new(Globals::new());
        let mut vars = globals.new_session();
        let mut show = |name: &str, value: &str| {
            vars.set(name, Scope::Session, &VarValue::text(value)).expect("valid");
            vars.get(name, None).expect("known").to_string()
        };
        assert_eq!(show("sql_mode", "ansi"), "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI");
        assert_eq!(
            show("sql_mode", "TRADITIONAL"),
            "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
             TRADITIONAL,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"
        );
        assert_eq!(
            show("sql_mode", "ORACLE"),
            "PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ORACLE,NO_KEY_OPTIONS,NO_TABLE_OPTIONS,NO_FIELD_OPTIONS,\
             NO_AUTO_CREATE_USER,SIMULTANEOUS_ASSIGNMENT"
        );
        assert_eq!(show("character_set_connection", "utf8"), "utf8mb3");
        assert_eq!(vars.get("collation_connection", None), Ok(VarValue::text("utf8mb3_general_ci")));
    }

    #[test]
    fn every_setting_is_documented_and_its_default_fits() {
        for id in VarId::ALL {
            let setting = id.setting();
            assert!(setting.doc.ends_with('.'), "{} has no sentence", setting.name);
            assert_eq!(VarId::find(setting.name), Some(*id), "{} stands twice", setting.name);
            let value = setting.kind.value(setting.kind.default_raw());
            let fit = setting.kind.check(&value).expect(setting.name);
            assert!(!fit.adjusted, "{}", setting.name);
            if let Some(of) = setting.alias_of {
                assert_eq!(of.setting().kind, setting.kind, "{}", setting.name);
            }
        }
    }
}
