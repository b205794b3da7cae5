//! Prepared texts and their plans. Sessions that prepare the same text share both.
//!
//! # Concepts
//! - [`PreparedText`]: a text in its parsed form, owned jointly by the sessions that prepared it.
//! - [`KeptPlan`]: a plan of a text with the conditions it was made for. The text keeps a few of the newest
//!   plans for other sessions; a session that executes the statement keeps one for itself.
//!
//! # Invariants
//! - The bytes of a text or plan are charged to the memory budget of all sessions exactly once, from its
//!   creation until its last owner drops it.
//! - All statements of a session together take at most `max_session_mem_used` (`prepared.rs`).
//!
//! # Lock order
//! A text's `plans`, then the table's `state`. No plan may be dropped while `state` is locked.

use std::sync::{Arc, Weak};

use cohort_base::{Budget, OverBudget, Reservation};
use cohort_sql::ast::{Expr, Statement};
use cohort_sql::{ParseOptions, StatementDigest};
use cohort_types::Value;
use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::cached_plan::CachedPlan;

/// Maximum number of plans that a text keeps: sessions may differ in settings and in the kinds of their
/// values.
const PLANS_OF_A_TEXT: usize = 4;
/// Minimum bytes of a text.
const TEXT_BYTES: usize = 1 << 10;

/// All prepared texts.
pub(crate) struct PreparedTexts {
    hasher: ahash::RandomState,
    state: Mutex<State>,
}

struct State {
    by_text: HashTable<Entry>,
    memory: Reservation,
}

/// A table entry. It has its own copy of text and options for comparisons, because the last owner of the
/// [`PreparedText`] may be dropping it.
struct Entry {
    hash: u64,
    text: Arc<[u8]>,
    options: ParseOptions,
    of: Weak<PreparedText>,
}

/// Result of parsing a text.
pub(crate) struct Parsed {
    pub statement: Statement,
    pub params: u32,
    /// Positions of the question marks in the text.
    pub param_at: Box<[u32]>,
    /// LIMIT ROWS EXAMINED.
    pub rows_examined: Option<Expr>,
    /// Normalised text.
    pub digest: StatementDigest,
    /// Defined by [`cohort_sql::Parsed::memory_bytes`].
    pub memory_bytes: usize,
}

/// A prepared text.
pub(crate) struct PreparedText {
    pub text: Arc<[u8]>,
    pub parsed: Parsed,
    plans: Mutex<Vec<KeptPlan>>,
    /// Hash of text and options, the key in the table.
    hash: u64,
    bytes: u64,
    of: Arc<PreparedTexts>,
}

/// A plan with the conditions it was made for.
#[derive(Clone)]
pub(crate) struct KeptPlan {
    plan: Arc<ChargedPlan>,
    /// Version of the catalog.
    version: u64,
    /// Hash of the session's settings.
    session: u64,
}

struct ChargedPlan {
    plan: Arc<CachedPlan>,
    bytes: u64,
    of: Arc<PreparedTexts>,
}

impl PreparedTexts {
    /// Creates an empty table, which charges its texts and plans to `memory`.
    pub fn new(memory: Arc<Budget>) -> Arc<PreparedTexts> {
        let state = State { by_text: HashTable::new(), memory: Reservation::new(memory) };
        Arc::new(PreparedTexts { hasher: ahash::RandomState::new(), state: Mutex::new(state) })
    }

    fn hash(&self, text: &[u8], options: &ParseOptions) -> u64 {
        self.hasher.hash_one((text, options))
    }

    /// Returns the text if a session has prepared it.
    pub fn get(&self, text: &[u8], options: &ParseOptions) -> Option<Arc<PreparedText>> {
        self.state.lock().get(self.hash(text, options), text, options)
    }

    /// Adds a text, or returns the one that another session has added in the meantime.
    pub fn add(
        self: &Arc<Self>,
        text: &[u8],
        options: ParseOptions,
        parsed: Parsed,
    ) -> Result<Arc<PreparedText>, OverBudget> {
        let hash = self.hash(text, &options);
        let bytes = (TEXT_BYTES + text.len() + parsed.digest.text.len() + parsed.memory_bytes) as u64;
        let mut state = self.state.lock();
        if let Some(found) = state.get(hash, text, &options) {
            return Ok(found);
        }
        state.memory.grow(bytes)?;
        let (text, plans, of): (Arc<[u8]>, _, _) = (text.into(), Mutex::default(), Arc::clone(self));
        let added = Arc::new(PreparedText { text: text.clone(), parsed, plans, hash, bytes, of });
        let entry = Entry { hash, text, options, of: Arc::downgrade(&added) };
        state.by_text.insert_unique(hash, entry, |entry| entry.hash);
        Ok(added)
    }
}

impl State {
    fn get(&self, hash: u64, text: &[u8], options: &ParseOptions) -> Option<Arc<PreparedText>> {
        let mut found = None;
        // An entry whose last owner is dropping it is skipped.
        self.by_text.find(hash, |entry| {
            if entry.hash == hash && *entry.text == *text && entry.options == *options {
                found = entry.of.upgrade();
            }
            found.is_some()
        });
        found
    }
}

impl PreparedText {
    /// Returns the bytes charged for the text.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a plan that another session has made under the same conditions.
    pub fn plan(&self, version: u64, session: u64, params: &[Value]) -> Option<KeptPlan> {
        let plans = self.plans.lock();
        plans.iter().find(|kept| kept.is_of(version, session, params)).cloned()
    }

    /// Charges the memory of a plan that is to be kept. Returns `None` if the budget is exhausted.
    pub fn charge(&self, plan: Arc<CachedPlan>, version: u64, session: u64) -> Option<KeptPlan> {
        let bytes = plan.memory_bytes(self.parsed.memory_bytes);
        self.of.state.lock().memory.grow(bytes).ok()?;
        let plan = Arc::new(ChargedPlan { plan, bytes, of: Arc::clone(&self.of) });
        Some(KeptPlan { plan, version, session })
    }

    /// Makes a plan available to other sessions.
    pub fn share(&self, kept: &KeptPlan) {
        let mut plans = self.plans.lock();
        // Plans of another catalog version are useless.
        plans.retain(|old| old.version == kept.version);
        plans.truncate(PLANS_OF_A_TEXT - 1);
        plans.insert(0, kept.clone());
    }
}

impl KeptPlan {
    /// Returns true if the plan can be used under these conditions.
    pub fn is_of(&self, version: u64, session: u64, params: &[Value]) -> bool {
        self.version == version && self.session == session && self.plan().fits(params)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Arc<CachedPlan> {
        &self.plan.plan
    }
}

impl Drop for PreparedText {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        let own: *const PreparedText = self;
        let is_own = |entry: &Entry| std::ptr::eq(entry.of.as_ptr(), own);
        if let Ok(entry) = state.by_text.find_entry(self.hash, is_own) {
            entry.remove();
        }
        state.memory.shrink(self.bytes);
    }
}

impl Drop for ChargedPlan {
    fn drop(&mut self) {
        self.of.state.lock().memory.shrink(self.bytes);
    }
}
