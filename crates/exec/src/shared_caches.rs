//! Statement caches ([`SharedCaches`]) that all sessions share: plans and prepared texts.

use std::any::Any;
use std::sync::{Arc, Weak};

use cohort_base::Budget;
use cohort_config::VarId;
use cohort_session::{Database, DatabaseParts, StatementCaches};
use cohort_sql::PlanCache;
use cohort_trx::DeadlockObserver;

use crate::cached_plan::CachedPlan;
use crate::prepared_texts::PreparedTexts;
use crate::program::cache::{Routines, Triggers};

/// Maximum number of cached plans.
const PLANS_MAX: usize = 4096;
/// Maximum bytes of cached plans. They also take at most 1/[`PLANS_SHARE`] of the memory limit of all
/// sessions.
const PLANS_BYTES_MAX: u64 = 64 << 20;
const PLANS_SHARE: u64 = 16;

/// The statement caches of a database.
pub struct SharedCaches {
    /// Plans of statements by digest.
    pub plans: PlanCache<CachedPlan>,
    /// Prepared texts.
    pub(crate) prepared_texts: Arc<PreparedTexts>,
    /// Compiled routines.
    pub(crate) routines: Routines,
    pub(crate) triggers: Triggers,
}

impl StatementCaches for SharedCaches {
    fn limit(&self, bytes: u64) -> u64 {
        let of_plans = (bytes / PLANS_SHARE).min(PLANS_BYTES_MAX);
        self.plans.set_bytes_max(of_plans);
        of_plans
    }
}

impl SharedCaches {
    fn begin(memory: &Arc<Budget>) -> Arc<dyn StatementCaches> {
        Arc::new(SharedCaches {
            plans: PlanCache::new(PLANS_MAX, PLANS_BYTES_MAX),
            prepared_texts: PreparedTexts::new(Arc::clone(memory)),
            routines: Routines::default(),
            triggers: Triggers::default(),
        })
    }

    /// Returns the statement caches of a database.
    pub fn of(db: &Database) -> Arc<SharedCaches> {
        let caches: Arc<dyn Any + Send + Sync> = Arc::clone(&db.caches) as _;
        caches.downcast().expect("the database was made by `database`")
    }
}

/// Creates a database from its parts.
pub fn database(parts: DatabaseParts) -> Arc<Database> {
    let db = Database::new(parts, SharedCaches::begin);
    db.env.set_deadlock_observer(Box::new(DeadlockNotes(Arc::downgrade(&db))));
    db
}

/// Stores the text about the last deadlock for SHOW ENGINE .. STATUS.
struct DeadlockNotes(Weak<Database>);

impl DeadlockObserver for DeadlockNotes {
    /// Called while the statements of the deadlocked transactions still run.
    fn note_deadlock(&self) {
        let Some(db) = self.0.upgrade() else { return };
        let text = cohort_info::deadlock_text(&db);
        if let Some(text) = text.as_ref().filter(|_| db.env.globals.flag(VarId::InnodbPrintAllDeadlocks)) {
            log::info!("a deadlock was found, and one of these transactions rolled back\n{text}");
        }
        *db.last_deadlock.lock() = text.map(|text| (db.clock.wall_us(), text));
    }
}
