//! COM_STMT_BULK_EXECUTE: executes a prepared statement for many rows of parameters.
//!
//! An INSERT or REPLACE is one statement for all rows: the first failure undoes all of them. An UPDATE or
//! DELETE is one statement per row, and rows before a failure stay changed, as in MariaDB. Rows are decoded
//! from the packet one by one, so that memory holds the packet and one row. All rows of RETURNING form one
//! result.

use cohort_config::Counter;
use cohort_protocol::{ColumnMeta, OkInfo, Parameter, ResultHead, ResultSink, StatusFlags};
use cohort_session::{Command, EventKind, Exception, traits_of};
use cohort_sql::ast::{InsertSource, Statement};
use cohort_trx::BeginOptions;
use cohort_types::{SqlError, SqlResult, Value};

use crate::session::Session;
use crate::unfilled::{self, Unfilled};

/// Maximum number of statement variants kept for different patterns of absent values.
const VARIANTS_MAX: usize = 16;

/// Atomicity of a bulk execution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// One statement, which inserts `rows` rows for each row of parameters.
    AllOrNothing { rows: u64 },
    /// One statement for each row of parameters.
    OneByOne,
}

impl Bulk {
    /// Returns the atomicity for a statement. Error 1295 if it does not support bulk execution.
    pub(crate) fn of(statement: &Statement) -> SqlResult<Bulk> {
        let traits = traits_of(statement);
        match statement {
            Statement::Insert(insert) if traits.has(Exception::BulkAtOnce) => match &insert.source {
                InsertSource::Values(rows) => Ok(Bulk::AllOrNothing { rows: rows.len() as u64 }),
                InsertSource::Query(_) => Err(refused()),
            },
            _ if traits.has(Exception::BulkEach) => Ok(Bulk::OneByOne),
            _ => Err(refused()),
        }
    }
}

fn refused() -> SqlError {
    SqlError::not_in_prepared_protocol()
}

impl Session {
    /// Runs COM_STMT_BULK_EXECUTE. `rows` is decoded during execution.
    pub fn execute_bulk(
        &mut self,
        id: u32,
        rows: &mut dyn Iterator<Item = SqlResult<Vec<Parameter>>>,
        sink: &mut dyn ResultSink,
    ) {
        let kind = EventKind::of(Counter::ComStmtExecute);
        let (text, statement, bulk) = match self.bulk_of(id) {
            Ok(found) => found,
            Err(error) => return self.count_failed(kind, |session| session.fail(&error, sink)),
        };
        self.begin_process(Command::Execute, &text);
        let watch = self.watch("Bulk_execute", &text);
        self.set_kind(kind);
        self.identify(statement);
        let rows_each = match bulk {
            Bulk::AllOrNothing { rows } => rows,
            Bulk::OneByOne => 0,
        };
        let mut result = BulkResult { out: sink, rows_each, total: Total::default() };
        let outcome = match bulk {
            Bulk::OneByOne => self.execute_rows(id, rows, &mut result),
            Bulk::AllOrNothing { .. } => self.execute_as_one(id, rows, &mut result),
        };
        let result = result.total;
        self.diagnostics.accumulate(false);
        self.state.statement.rows_before.set(0);
        let is_one = bulk != Bulk::OneByOne;
        if is_one && let Some(id) = self.work.generated_id {
            self.state.settings.env.last_insert_id = id;
        }
        match outcome {
            Ok(()) if result.returning => {
                sink.finish(self.status(), result.warnings.min(u32::from(u16::MAX)) as u16);
            }
            Ok(()) => {
                self.state.settings.env.row_count = result.affected as i64;
                let info = match result.rows {
                    0 | 1 => String::new(),
                    n => format!(
                        "Records: {n}  Duplicates: {}  Warnings: {}",
                        result.duplicates(),
                        result.warnings
                    ),
                };
                sink.ok(&OkInfo {
                    affected_rows: result.affected,
                    last_insert_id: result.insert_id,
                    status: self.status(),
                    warnings: result.warnings.min(u32::from(u16::MAX)) as u16,
                    info: if is_one { &info } else { "" },
                });
            }
            Err(error) => self.fail(&error, sink),
        }
        self.work.rows_affected = result.affected;
        self.watched(watch, &text, (&[], &[]), sink);
        self.end_process();
    }

    /// Writes all rows or none. Starts a transaction if none is open.
    fn execute_as_one(
        &mut self,
        id: u32,
        rows: &mut dyn Iterator<Item = SqlResult<Vec<Parameter>>>,
        result: &mut BulkResult<'_>,
    ) -> SqlResult<()> {
        let lasts = self.trx.in_transaction() || !self.trx.autocommit();
        if !lasts {
            self.trx.begin(BeginOptions::default())?;
        }
        let mark = self.trx.mark();
        let outcome = self.execute_rows(id, rows, result);
        match (outcome, lasts) {
            (Ok(()), true) => {
                self.trx.leave_mark();
                Ok(())
            }
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
        result: &mut BulkResult<'_>,
    ) -> SqlResult<()> {
        let mut variants: Vec<(Unfilled, u32)> = Vec::new();
        let mut outcome = Ok(());
        for params in rows {
            outcome = params.and_then(|params| self.execute_row(id, params, &mut variants, result));
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
        result: &mut BulkResult<'_>,
    ) -> SqlResult<()> {
        self.look_at_clock();
        self.begin_command();
        let (values, unfilled) = unfilled::split(params);
        let id = match unfilled {
            None => id,
            Some(unfilled) => self.variant(id, unfilled, variants)?,
        };
        self.run_prepared_by_id(id, &values, result)?;
        // Conditions of all rows are reported together.
        self.diagnostics.accumulate(true);
        result.total.rows += result.rows_each;
        self.state.statement.rows_before.set(result.total.rows);
        Ok(())
    }

    /// Returns the statement with DEFAULT in place of absent values. Rows with the same pattern share it.
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

/// Sums over the replies of all rows.
#[derive(Default)]
struct Total {
    rows: u64,
    affected: u64,
    /// First generated AUTO_INCREMENT value.
    insert_id: u64,
    warnings: u32,
    /// True once a row has returned rows and the column definitions are sent.
    returning: bool,
}

impl Total {
    /// Returns the number of duplicates. REPLACE and ON DUPLICATE KEY UPDATE count an existing row as two,
    /// IGNORE counts it as zero.
    fn duplicates(&self) -> u64 {
        self.affected.abs_diff(self.rows)
    }
}

/// A sink that sums up the replies of the rows and forwards the rows that they return.
struct BulkResult<'a> {
    out: &'a mut dyn ResultSink,
    /// Number of rows that one row of parameters inserts.
    rows_each: u64,
    total: Total,
}

impl ResultSink for BulkResult<'_> {
    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead) {
        if !std::mem::replace(&mut self.total.returning, true) {
            self.out.start(columns, head);
        }
    }
    fn row(&mut self, values: &[Value]) {
        self.out.row(values);
    }
    fn finish(&mut self, _: StatusFlags, warnings: u16) {
        self.total.warnings += u32::from(warnings);
    }
    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.total.affected += ok.affected_rows;
        if self.total.insert_id == 0 {
            self.total.insert_id = ok.last_insert_id;
        }
        self.total.warnings += u32::from(ok.warnings);
    }
    fn error(&mut self, _: &SqlError) {}
    fn bytes(&self) -> u64 {
        self.out.bytes()
    }

    fn is_dead(&self) -> bool {
        self.out.is_dead()
    }
}
