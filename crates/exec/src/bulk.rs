//! COM_STMT_BULK_EXECUTE: one prepared statement for many rows of parameters.
//!
//! An INSERT or REPLACE is one statement for all rows: the first that fails undoes all. An UPDATE or DELETE
//! is one statement for each row, and what came before a failure stays, as in MariaDB. Rows are read from the
//! packet one by one, so that memory holds the packet and one row.

use cohort_protocol::{ColumnMeta, OkInfo, Parameter, ResultHead, ResultSink, StatusFlags};
use cohort_session::Command;
use cohort_sql::ast::Statement;
use cohort_trx::BeginOptions;
use cohort_types::{ErrorCode, SqlError, SqlResult, Value};

use crate::session::Session;
use crate::unfilled::{self, Unfilled};

/// Statements that are kept for the different gaps of rows.
const VARIANTS_MAX: usize = 16;

/// How the rows of a bulk execution belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// One statement.
    AllOrNothing,
    /// One statement each.
    OneByOne,
}

impl Bulk {
    /// Error 1295 for statements that cannot be executed so.
    pub(crate) fn of(statement: &Statement) -> SqlResult<Bulk> {
        match statement {
            Statement::Insert(insert) if insert.returning.is_empty() => Ok(Bulk::AllOrNothing),
            Statement::Update(_) => Ok(Bulk::OneByOne),
            Statement::Delete(delete) if delete.returning.is_empty() => Ok(Bulk::OneByOne),
            _ => {
                let text = "This command is not supported in the prepared statement protocol yet";
                Err(SqlError::new(ErrorCode::UnsupportedPs, text))
            }
        }
    }
}

impl Session {
    /// COM_STMT_BULK_EXECUTE. `rows` are read as they are executed.
    pub fn execute_bulk(
        &mut self,
        id: u32,
        rows: &mut dyn Iterator<Item = SqlResult<Vec<Parameter>>>,
        sink: &mut dyn ResultSink,
    ) {
        let (text, bulk) = match self.bulk_of(id) {
            Ok(found) => found,
            Err(error) => return self.fail(&error, sink),
        };
        self.begin_process(Command::Execute, &text);
        let watch = self.watch("Bulk_execute", &text);
        let mut tally = Tally::default();
        let outcome = match bulk {
            Bulk::OneByOne => self.execute_rows(id, rows, &mut tally),
            Bulk::AllOrNothing => self.execute_as_one(id, rows, &mut tally),
        };
        match outcome {
            Ok(()) => {
                self.state.env.row_count = tally.affected as i64;
                let info = match tally.rows {
                    0 | 1 => String::new(),
                    n => format!(
                        "Records: {n}  Duplicates: {}  Warnings: {}",
                        tally.duplicates(),
                        tally.warnings
                    ),
                };
                sink.ok(&OkInfo {
                    affected_rows: tally.affected,
                    last_insert_id: tally.insert_id,
                    status: self.status(),
                    warnings: tally.warnings.min(u32::from(u16::MAX)) as u16,
                    info: if bulk == Bulk::AllOrNothing { &info } else { "" },
                });
            }
            Err(error) => self.fail(&error, sink),
        }
        self.work.rows_affected = tally.affected;
        self.watched(watch, &text, (&[], &[]));
        self.end_process();
    }

    /// All rows are written, or none; in a transaction of their own if there is none.
    fn execute_as_one(
        &mut self,
        id: u32,
        rows: &mut dyn Iterator<Item = SqlResult<Vec<Parameter>>>,
        tally: &mut Tally,
    ) -> SqlResult<()> {
        let lasts = self.trx.in_transaction() || !self.trx.autocommit();
        if !lasts {
            self.trx.begin(BeginOptions::default())?;
        }
        let mark = self.trx.mark();
        let outcome = self.execute_rows(id, rows, tally);
        match (outcome, lasts) {
            (Ok(()), true) => Ok(()),
            (Ok(()), false) => self.trx.commit_implicitly(),
            (Err(error), true) => {
                self.trx.undo_to(&mark);
                Err(error)
            }
            (Err(error), false) => {
                self.trx.rollback();
                Err(error)
            }
        }
    }

    fn execute_rows(
        &mut self,
        id: u32,
        rows: &mut dyn Iterator<Item = SqlResult<Vec<Parameter>>>,
        tally: &mut Tally,
    ) -> SqlResult<()> {
        let mut variants: Vec<(Unfilled, u32)> = Vec::new();
        let mut outcome = Ok(());
        for params in rows {
            outcome = params.and_then(|params| self.execute_row(id, params, &mut variants, tally));
            if outcome.is_err() {
                break;
            }
        }
        variants.iter().for_each(|(_, id)| self.forget_statement(*id));
        outcome
    }

    fn execute_row(
        &mut self,
        id: u32,
        params: Vec<Parameter>,
        variants: &mut Vec<(Unfilled, u32)>,
        tally: &mut Tally,
    ) -> SqlResult<()> {
        self.begin_command();
        let (values, unfilled) = unfilled::split(params);
        let id = match unfilled {
            None => id,
            Some(unfilled) => self.variant(id, unfilled, variants)?,
        };
        self.run_prepared_by_id(id, &values, tally)?;
        tally.rows += 1;
        Ok(())
    }

    /// The statement with DEFAULT where a row has no values, which the rows with the same gaps share.
    fn variant(
        &mut self,
        id: u32,
        unfilled: Unfilled,
        variants: &mut Vec<(Unfilled, u32)>,
    ) -> SqlResult<u32> {
        if let Some((_, id)) = variants.iter().find(|(known, _)| *known == unfilled) {
            return Ok(*id);
        }
        if variants.len() == VARIANTS_MAX {
            self.forget_statement(variants.remove(0).1);
        }
        let variant = self.prepare_variant(id, &unfilled)?;
        variants.push((unfilled, variant));
        Ok(variant)
    }
}

/// Adds up the answers of the rows.
#[derive(Default)]
struct Tally {
    rows: u64,
    affected: u64,
    /// The first that was generated.
    insert_id: u64,
    warnings: u32,
}

impl Tally {
    /// REPLACE and ON DUPLICATE KEY UPDATE count two rows where one was there.
    fn duplicates(&self) -> u64 {
        self.affected.saturating_sub(self.rows)
    }
}

impl ResultSink for Tally {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.affected += ok.affected_rows;
        if self.insert_id == 0 {
            self.insert_id = ok.last_insert_id;
        }
        self.warnings += u32::from(ok.warnings);
    }
    fn error(&mut self, _: &SqlError) {}
    // The session's own `hold_until` covers all rows.
    fn hold_until(&mut self, _: cohort_base::CommitSeq) {}
    fn is_dead(&self) -> bool {
        false
    }
}
