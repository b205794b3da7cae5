//! Triggers of row changes ([`TriggersOfTables`]).
//!
//! The triggers of a table are bound to the plan of a change. Their bodies are compiled and bound when they
//! run first, and kept for all sessions.

use std::sync::{Arc, OnceLock};

use cohort_catalog::{Table, Trigger};
use cohort_program::{Bound, NewRow, ProgramKind, counts_lines, run_trigger};
use cohort_session::{ProgramContext, RowHook, RowHooks, StatementContext, access};
use cohort_sql::ast::{TriggerEvent, TriggerTiming};
use cohort_trx::Counted;
use cohort_types::{Privilege, SqlResult, Value};

use super::cache::Compiled;
use super::context_host::{Caller, ContextHost};
use crate::shared_caches::SharedCaches;

/// The triggers of all tables.
pub(crate) struct TriggersOfTables(pub Arc<SharedCaches>);

impl RowHooks for TriggersOfTables {
    fn of(&self, table: &Arc<Table>) -> Vec<Arc<dyn RowHook>> {
        match table.triggers.is_empty() {
            true => Vec::new(),
            false => {
                let compiled = table.triggers.iter().map(|_| OnceLock::new()).collect();
                let table = Arc::clone(table);
                vec![Arc::new(TableTriggers { caches: Arc::clone(&self.0), table, compiled })]
            }
        }
    }
}

/// The triggers of a table.
struct TableTriggers {
    caches: Arc<SharedCaches>,
    table: Arc<Table>,
    /// The compiled triggers, in the order of those of the table.
    compiled: Box<[OnceLock<Arc<Compiled>>]>,
}

impl TableTriggers {
    fn compiled(&self, trigger: &Arc<Trigger>) -> SqlResult<&Arc<Compiled>> {
        let at = self.table.triggers.iter().position(|it| Arc::ptr_eq(it, trigger));
        let place = &self.compiled[at.expect("it is a trigger of the table")];
        if let Some(compiled) = place.get() {
            return Ok(compiled);
        }
        let compiled = self.caches.triggers.compiled(&self.table, trigger)?;
        Ok(place.get_or_init(|| compiled))
    }

    fn run(
        &self,
        timing: TriggerTiming,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        mut new: Option<NewRow<'_>>,
    ) -> SqlResult<()> {
        let event = match (old, &new) {
            (None, _) => TriggerEvent::Insert,
            (Some(_), None) => TriggerEvent::Delete,
            (Some(_), Some(_)) => TriggerEvent::Update,
        };
        for trigger in self.table.triggers_of(timing, event) {
            let mut new = new.as_mut().map(NewRow::again);
            let definition = Arc::as_ptr(trigger).cast();
            if let Some(bound) = ctx.session.called.find::<Bound>(definition) {
                let again = new.as_mut().map(NewRow::again);
                if bound.fire_typed((old, again), &mut || ctx.check_interrupt())? {
                    continue;
                }
            }
            let mark = ctx.session.programs.borrow_mut().use_tables([self.table.id]);
            let outcome = self.run_one(trigger, ctx, old, new);
            ctx.session.programs.borrow_mut().release_tables(mark);
            outcome?;
        }
        Ok(())
    }

    fn run_one(
        &self,
        trigger: &Arc<Trigger>,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<NewRow<'_>>,
    ) -> SqlResult<()> {
        let table = &self.table;
        let of = ProgramContext {
            definer: Some(&trigger.definer),
            settings: &trigger.settings,
            schema: &table.name.schema,
        };
        let kind = ProgramKind::Trigger(trigger.timing, trigger.event);
        ctx.trx.counts().count(Counted::ExecutedTriggers);
        let mut host = ContextHost::begin(ctx, of, (kind, Caller::Statement))?;
        access::check_table(host.state(), Privilege::Trigger, &table.name.schema, &table.name.table)?;
        let bound = self.compiled(trigger)?.bound(Some(table), &mut host)?;
        let outcome = host.run(&bound, |host| run_trigger(&bound, &table.name, (old, new), host));
        let conditions = host.end();
        if outcome.is_err() {
            conditions.into_iter().for_each(|condition| ctx.eval.push_warning(condition));
        }
        if outcome? && bound.is_typed() && !counts_lines(ctx.session) {
            ctx.session.called.add(Arc::clone(trigger) as _, bound);
        }
        Ok(())
    }
}

impl RowHook for TableTriggers {
    fn before(
        &self,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<&mut [Value]>,
    ) -> SqlResult<()> {
        self.run(TriggerTiming::Before, ctx, old, new.map(NewRow::Change))
    }

    fn precedes_inserts(&self) -> bool {
        self.table.triggers_of(TriggerTiming::Before, TriggerEvent::Insert).next().is_some()
    }

    fn sees_deletes(&self) -> bool {
        self.table.triggers.iter().any(|trigger| trigger.event == TriggerEvent::Delete)
    }

    fn after(
        &self,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
    ) -> SqlResult<()> {
        self.run(TriggerTiming::After, ctx, old, new.map(NewRow::Read))
    }
}
