//! LOAD DATA: loads the fields of a text file into the columns of a table, row by row.
//!
//! A row starts with the defaults of its columns. Fields are stored in columns and user variables from left
//! to right. Then SET is evaluated, and from there on the row is treated as in INSERT. A client's file
//! without REPLACE is loaded as if IGNORE were given, because the client cannot be stopped from sending it.
//!
//! # Missing
//! Files without separators (rows of fixed width), and character sets in which every character takes several
//! bytes.

use std::io::Read;
use std::sync::Arc;

use cohort_base::Reservation;
use cohort_catalog::DefaultValue;
use cohort_config::VarId;
use cohort_expr::SessionHooks;
use cohort_plan::{Binder, Clause, PlanContext, Reading, Scope, bind_new_value};
use cohort_protocol::ResultSink;
use cohort_query::{Freshness, QueryPlan, lock_for_write, lock_tables, plan_query_within};
use cohort_session::{Job, RootTable, SessionNames, StatementContext, TableUse, access, files};
use cohort_sql::ast::{self, LoadData, LoadTarget, TriggerEvent};
use cohort_table::definition_changed;
use cohort_types::{
    Charset, Collation, ErrorCode, Level, Privilege, Privileges, SqlError, SqlResult, Str, TypeKind, Value,
    Warning,
};

use crate::asked::{Answers, Cell, RowAssignment};
use crate::assign::{Assigner, Default, NullRule, Strictness};
use crate::fields::{Bytes, Field, FieldReader};
use crate::insert::Insert;
use crate::{DmlOutcome, InsertPlan};

const PLAN_ATTEMPTS: usize = 20;
/// Bytes read from a file at a time.
const READ_BYTES: usize = 64 << 10;
/// Rows between two reports of progress.
const PROGRESS_ROWS: u64 = 10_000;

/// The target of a field.
enum Target {
    Column(usize),
    Variable(String),
}

/// LOAD DATA, bound.
struct LoadPlan {
    insert: InsertPlan,
    /// Columns without a field.
    unnamed: Vec<usize>,
    targets: Vec<Target>,
    assignments: Vec<RowAssignment>,
    /// Values of a row before any field is read.
    start: Vec<Value>,
    charset: Charset,
}

/// Runs LOAD DATA. With LOCAL it asks the client for the file.
pub fn load_data(
    ctx: &mut StatementContext<'_>,
    load: &LoadData,
    job: &Job<'_>,
    sink: &mut dyn ResultSink,
) -> SqlResult<DmlOutcome> {
    if let Some(blocks) = ctx.session.received_file.take() {
        return of_the_source(ctx, load, job, *blocks);
    }
    if load.local && !(ctx.session.db.globals.flag(VarId::LocalInfile) && sink.may_send_files()) {
        return Err(SqlError::local_infile_disabled());
    }
    if !load.local {
        check_file_privilege(ctx)?;
    }
    files::check_format(&load.format, &ctx.eval)?;
    if load.format.field_end.is_empty() && load.format.enclosed.is_empty() {
        return Err(SqlError::not_supported("LOAD DATA of fields without separators"));
    }
    let plan = bind(ctx, load, job)?;
    ctx.annotate();
    let memory = Reservation::new(std::sync::Arc::clone(ctx.process.memory()));
    let bytes_max = ctx.session.settings.vars.uint(VarId::MaxAllowedPacket) as usize;
    if load.local {
        // The file name may contain data read from rows that are not durable yet (I5).
        ctx.trx.mark_observed();
        sink.request_file(load.path.as_bytes())?;
        let mut source = Client(sink);
        let mut reader = FieldReader::new(&mut source, &load.format, plan.charset, bytes_max);
        let outcome = plan.run(ctx, load, &mut reader, memory);
        // The client sends the whole file, whatever the outcome.
        let mut rest = Vec::new();
        while source.fill(&mut rest).is_ok() && !rest.is_empty() {}
        return outcome;
    }
    let server = files::files(ctx.session)?;
    let path = files::place(&*server, &load.path, ctx.session.current_schema.as_deref());
    let secure = files::check_secure(ctx.session, &*server, &path);
    let missing = |error: &std::io::Error| {
        let what = format!("Can't get stat of '{}'", path.display());
        files::file_error(ErrorCode::CantGetStat, &what, error)
    };
    if let Err(error) = server.real(&path)
        && (secure.is_ok()
            || path.parent().is_some_and(|dir| files::check_secure(ctx.session, &*server, dir).is_ok()))
    {
        return Err(missing(&error));
    }
    secure?;
    let (file, bytes) = server.open(&path).map_err(|error| match error.kind() {
        // A directory, a pipe or a device.
        std::io::ErrorKind::InvalidInput => SqlError::file_not_readable(path.display()),
        _ => missing(&error),
    })?;
    let mut source = File { file, read: 0, bytes };
    let mut reader = FieldReader::new(&mut source, &load.format, plan.charset, bytes_max);
    plan.run(ctx, load, &mut reader, memory)
}

/// Loads a file that arrived in a source's events.
fn of_the_source(
    ctx: &mut StatementContext<'_>,
    load: &LoadData,
    job: &Job<'_>,
    blocks: Vec<Vec<u8>>,
) -> SqlResult<DmlOutcome> {
    if load.format.field_end.is_empty() && load.format.enclosed.is_empty() {
        return Err(SqlError::not_supported("LOAD DATA of fields without separators"));
    }
    let plan = bind(ctx, load, job)?;
    ctx.annotate();
    let memory = Reservation::new(std::sync::Arc::clone(ctx.process.memory()));
    let bytes_max = ctx.session.settings.vars.uint(VarId::MaxAllowedPacket) as usize;
    let mut source = Blocks(blocks.into_iter());
    let mut reader = FieldReader::new(&mut source, &load.format, plan.charset, bytes_max);
    plan.run(ctx, load, &mut reader, memory)
}

/// Returns error 1045 without the privilege FILE, with MariaDB's text for this case.
fn check_file_privilege(ctx: &StatementContext<'_>) -> SqlResult<()> {
    access::check_global(ctx.session, Privilege::File).map_err(|_| {
        let (user, host) = &ctx.session.info.account;
        let name = (user.clone(), host.clone());
        let has_password = ctx.db.catalog().accounts.get(&name).is_some_and(|account| account.has_password());
        let using = if has_password { "YES" } else { "NO" };
        SqlError::access_denied(user, host, using)
    })
}

/// A file on the server.
struct File {
    file: Box<dyn Read>,
    read: u64,
    bytes: u64,
}

impl Bytes for File {
    fn fill(&mut self, buffer: &mut Vec<u8>) -> SqlResult<()> {
        buffer.resize(READ_BYTES, 0);
        let read = self
            .file
            .read(buffer)
            .map_err(|error| files::file_error(ErrorCode::ErrorOnRead, "Error reading file", &error))?;
        buffer.truncate(read);
        self.read += read as u64;
        Ok(())
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some((self.read, self.bytes))
    }
}

/// A file in memory.
struct Blocks(std::vec::IntoIter<Vec<u8>>);

impl Bytes for Blocks {
    fn fill(&mut self, buffer: &mut Vec<u8>) -> SqlResult<()> {
        // An empty block does not mean the end.
        *buffer = self.0.find(|block| !block.is_empty()).unwrap_or_default();
        Ok(())
    }
}

/// A file that the client sends.
struct Client<'s>(&'s mut dyn ResultSink);

impl Bytes for Client<'_> {
    fn fill(&mut self, buffer: &mut Vec<u8>) -> SqlResult<()> {
        buffer.clear();
        self.0.file_bytes(buffer)
    }
}

/// Binds the statement and locks its table.
fn bind(ctx: &mut StatementContext<'_>, load: &LoadData, job: &Job<'_>) -> SqlResult<LoadPlan> {
    for _ in 0..PLAN_ATTEMPTS {
        let catalog = ctx.db.catalog();
        let names = SessionNames::new(&catalog, ctx.session).with_out(job.source);
        let plan = LoadPlan::bind(&PlanContext::new(&names, job.params, job.source), ctx, load)?;
        names.take_needs().iter().try_for_each(|need| need.check(ctx.session))?;
        let table = plan.insert.table();
        let events = match load.on_duplicate {
            ast::OnDuplicate::Replace => vec![TriggerEvent::Insert, TriggerEvent::Delete],
            _ => vec![TriggerEvent::Insert],
        };
        let root = RootTable { table: Arc::clone(table), is_written: true, events };
        if !names.lock_programs(ctx, vec![root])? {
            continue;
        }
        if lock_for_write((table, &table.name.table), ctx)? == Freshness::Stale {
            continue;
        }
        let mut asked = plan.assignments.iter().filter_map(RowAssignment::query);
        if asked.try_fold(Freshness::Fresh, |all, query| locked(ctx, all, query))? == Freshness::Fresh {
            if let Some(tables) = ctx.session.audit_tables() {
                tables.report_use(TableUse::Write, table);
                plan.assignments
                    .iter()
                    .filter_map(RowAssignment::query)
                    .for_each(|q| q.report_tables(&tables));
            }
            return Ok(plan);
        }
    }
    Err(definition_changed())
}

/// Locks the tables of a query, unless an earlier table has turned out to be stale.
fn locked(ctx: &mut StatementContext<'_>, all: Freshness, query: &QueryPlan) -> SqlResult<Freshness> {
    match all {
        Freshness::Fresh => lock_tables(query, ctx),
        Freshness::Stale => Ok(Freshness::Stale),
    }
}

impl LoadPlan {
    fn bind(plan: &PlanContext<'_>, ctx: &StatementContext<'_>, load: &LoadData) -> SqlResult<LoadPlan> {
        if !load.partitions.is_empty() {
            return Err(SqlError::no_partitions());
        }
        let replaces = load.on_duplicate == ast::OnDuplicate::Replace;
        let wanted = Privileges::from(Privilege::Insert);
        let wanted = if replaces { wanted.with(Privilege::Delete) } else { wanted };
        let charset = charset(ctx, load)?;
        let table = plan.base_table(&load.table, wanted)?;
        let scope = Scope { reading: Reading::NewRow, ..Scope::of_table(table.clone(), None) };
        let mut targets = Vec::new();
        for target in &load.targets {
            targets.push(match target {
                LoadTarget::Column(name) => {
                    let column = plan.column(&scope, name, Clause::Select, Privilege::Insert)?;
                    plan.use_column(&scope, column, Privilege::Insert)?;
                    Target::Column(column)
                }
                LoadTarget::Variable(name) => Target::Variable(name.clone()),
            });
        }
        if load.targets.is_empty() {
            let visible = (0..table.columns.len()).filter(|c| !table.columns[*c].invisible);
            for column in visible {
                plan.use_column(&scope, column, Privilege::Insert)?;
                targets.push(Target::Column(column));
            }
        }
        let binder = Binder::new(plan, &scope, Clause::Set);
        let bind = |scope: &Scope, assignment: &ast::Assignment| {
            let column = plan.column(scope, &assignment.column, Clause::Select, Privilege::Insert)?;
            plan.use_column(scope, column, Privilege::Insert)?;
            let binder = Binder::new(plan, scope, Clause::Set);
            Ok((column, Cell::from(bind_new_value(&binder, column, &assignment.value)?)))
        };
        let mut query =
            |query: &ast::Query, row: Option<&Binder<'_>>| plan_query_within(plan, ctx.session, row, query);
        let mut assignments = Vec::new();
        for assignment in &load.assignments {
            let assignment = RowAssignment::of(&binder, assignment, scope.width(), &mut query, &bind)?;
            if assignment.reads(&table) {
                return Err(SqlError::target_is_source(&table.name.table, "LOAD DATA"));
            }
            assignments.push(assignment);
        }
        let on_duplicate = match load.on_duplicate {
            ast::OnDuplicate::Error if load.local => ast::OnDuplicate::Ignore,
            given => given,
        };
        let named = targets.iter().filter_map(|target| match target {
            Target::Column(column) => Some(*column),
            Target::Variable(_) => None,
        });
        let mut columns: Vec<usize> =
            named.chain(assignments.iter().map(|assignment| assignment.column)).collect();
        columns.sort_unstable();
        columns.dedup();
        let start = table.columns.iter().map(|column| match &column.default {
            DefaultValue::Value(value) => value.clone(),
            _ if column.nullable => Value::Null,
            _ => column.ty.implicit_default(),
        });
        let mut start: Vec<Value> = start.collect();
        let mut insert = InsertPlan::loading(plan, ctx.session, table, columns, on_duplicate)?;
        for column in insert.steps.lacking_values(&insert.table) {
            start[column] = Value::Null;
        }
        // A column without a default is not an error here.
        let unnamed = std::mem::take(&mut insert.unnamed);
        Ok(LoadPlan { insert, unnamed, targets, assignments, start, charset })
    }

    fn run(
        &self,
        ctx: &mut StatementContext<'_>,
        load: &LoadData,
        reader: &mut FieldReader<'_>,
        mut memory: Reservation,
    ) -> SqlResult<DmlOutcome> {
        let strictness = Assigner::strictness(&ctx.eval, self.insert.ignore);
        ctx.eval.set_abort_on_warning(strictness == Strictness::Error);
        let mut insert = Insert::begin(&self.insert, ctx, strictness, NullRule::Adjust)?;
        ctx.process.set_state("Reading file");
        let outcome = self.rows(ctx, load, reader, &mut insert, &mut memory);
        ctx.eval.set_abort_on_warning(false);
        outcome?;
        let (records, copied, deleted) = (insert.counts.records, insert.counts.copied, insert.counts.deleted);
        let info = format!(
            "Records: {records}  Deleted: {deleted}  Skipped: {}  Warnings: {}",
            records - copied,
            ctx.eval.warning_count()
        );
        Ok(DmlOutcome { info, ..insert.outcome(ctx, false) })
    }

    fn rows(
        &self,
        ctx: &mut StatementContext<'_>,
        load: &LoadData,
        reader: &mut FieldReader<'_>,
        insert: &mut Insert<'_>,
        memory: &mut Reservation,
    ) -> SqlResult<()> {
        for _ in 0..load.skipped {
            ctx.check_interrupt()?;
            if reader.next_line()?.is_none() {
                return Ok(());
            }
        }
        let mut answers = Answers::default();
        loop {
            let mut field = reader.field()?;
            if field == Field::Missing && reader.is_over() {
                return Ok(());
            }
            insert.begin_row(ctx)?;
            insert.row.clone_from(&self.start);
            self.fill_unnamed(ctx, insert)?;
            let row = insert.counts.records;
            for (n, target) in self.targets.iter().enumerate() {
                if n > 0 {
                    field = reader.field()?;
                }
                // Memory that a long field needed is kept for the next one.
                let taken = reader.value.capacity() as u64;
                if taken > memory.used() {
                    memory.resize(taken)?;
                }
                self.take(ctx, insert, target, field, &reader.value, row)?;
            }
            for (n, assignment) in self.assignments.iter().enumerate() {
                let RowAssignment { column, cell, .. } = assignment;
                let width = insert.row.len();
                assignment.ask(ctx, n, &mut answers, &mut insert.row)?;
                let value = match cell {
                    Cell::Default => {
                        let default = &self.insert.defaults[*column];
                        insert.pipeline.assigner.default(&ctx.eval, *column, default, &insert.row, row)?
                    }
                    Cell::Expr(expr) => {
                        let value = expr.eval(&insert.row, &ctx.eval)?.into_owned();
                        insert.store(&ctx.eval, *column, value, row)?
                    }
                };
                insert.row.truncate(width);
                insert.row[*column] = value;
            }
            insert.put(ctx)?;
            if insert.counts.records.is_multiple_of(PROGRESS_ROWS)
                && let Some(progress) = reader.progress()
            {
                ctx.process.set_progress(progress, ctx.db.clock.monotonic_ns());
            }
            match reader.next_line()? {
                None => return Ok(()),
                Some(false) => {}
                Some(true) => ctx.eval.warn(
                    ErrorCode::WarnTooManyRecords,
                    format!("Row {row} was truncated; it contained more data than there were input columns"),
                )?,
            }
        }
    }

    /// Fills the columns without a field with their defaults, or the default of their type.
    fn fill_unnamed(&self, ctx: &StatementContext<'_>, insert: &mut Insert<'_>) -> SqlResult<()> {
        for column in &self.unnamed {
            insert.row[*column] = self.default(ctx, insert, *column)?;
        }
        // Hooks see NULL in the others. That a default is missing is still warned of.
        let is_missing = |column: &&usize| matches!(self.insert.defaults[**column], Default::Missing);
        for column in self.insert.steps.unassigned().iter().filter(is_missing) {
            self.default(ctx, insert, *column)?;
        }
        Ok(())
    }

    fn default(&self, ctx: &StatementContext<'_>, insert: &Insert<'_>, column: usize) -> SqlResult<Value> {
        match &self.insert.defaults[column] {
            Default::Missing => {
                // Warn once.
                if insert.counts.records == 1 {
                    let name = &insert.pipeline.assigner.table.columns[column].name;
                    let error = SqlError::no_default(name);
                    ctx.eval.push_warning(Warning { level: Level::Warning, error });
                }
                Ok(self.start[column].clone())
            }
            default => insert.pipeline.assigner.default(
                &ctx.eval,
                column,
                default,
                &insert.row,
                insert.counts.records,
            ),
        }
    }

    fn take(
        &self,
        ctx: &StatementContext<'_>,
        insert: &mut Insert<'_>,
        target: &Target,
        field: Field,
        bytes: &[u8],
        row: u64,
    ) -> SqlResult<()> {
        let column = match target {
            Target::Column(column) => *column,
            Target::Variable(name) => {
                let value = match field {
                    Field::Value { is_null: false } => self.text(bytes),
                    Field::Value { is_null: true } | Field::Missing => Value::Null,
                };
                return ctx.session.set_user_variable(name, value);
            }
        };
        let described = &self.insert.table().columns[column];
        insert.row[column] = match field {
            Field::Value { is_null: false } => {
                let value = match described.ty.kind {
                    // The bytes of the file are the bits.
                    TypeKind::Bit => Value::Str(Str { bytes: bytes.to_vec(), collation: Collation::BINARY }),
                    _ => self.text(bytes),
                };
                insert.store(&ctx.eval, column, value, row)?
            }
            Field::Value { is_null: true } if described.nullable || described.auto_increment => Value::Null,
            // Hooks may replace it.
            Field::Value { is_null: true } if insert.pipeline.assigner.keeps_null => Value::Null,
            Field::Value { is_null: true } => {
                let text = format!(
                    "Column set to default value; NULL supplied to NOT NULL column '{}' at row {row}",
                    described.name
                );
                ctx.eval.warn(ErrorCode::WarnNullToNotnull, text)?;
                self.empty(ctx, insert, column)?
            }
            Field::Missing => {
                let text = format!("Row {row} doesn't contain data for all columns");
                ctx.eval.warn(ErrorCode::WarnTooFewRecords, text)?;
                match &self.start[column] {
                    Value::Null => Value::Null,
                    _ if described.auto_increment => Value::Null,
                    _ => self.empty(ctx, insert, column)?,
                }
            }
        };
        Ok(())
    }

    /// Returns the value of an empty field: the current time for a TIMESTAMP, else the zero value of the
    /// type.
    fn empty(&self, ctx: &StatementContext<'_>, insert: &Insert<'_>, column: usize) -> SqlResult<Value> {
        let described = &self.insert.table().columns[column];
        match described.default {
            DefaultValue::CurrentTimestamp if described.ty.kind == TypeKind::Timestamp => {
                self.default(ctx, insert, column)
            }
            _ => Ok(described.ty.implicit_default()),
        }
    }

    /// Returns the bytes of a field as text. Bytes that are invalid in the file's character set are passed on
    /// unchanged as binary, and the column decides.
    fn text(&self, bytes: &[u8]) -> Value {
        let mut text = Vec::with_capacity(bytes.len());
        match self.charset.decode(bytes, &mut text) {
            Ok(()) => Value::Str(Str { bytes: text, collation: self.charset.default_collation() }),
            Err(_) => Value::Str(Str { bytes: bytes.to_vec(), collation: Collation::BINARY }),
        }
    }
}

/// Returns the file's character set: by default that of the current database.
fn charset(ctx: &StatementContext<'_>, load: &LoadData) -> SqlResult<Charset> {
    let charset = match &load.charset {
        Some(name) => Charset::by_name(name).ok_or_else(|| SqlError::unknown_charset(name))?,
        None => {
            let name = ctx.session.settings.vars.value(VarId::CharacterSetDatabase).to_string();
            Charset::by_name(&name).unwrap_or(Charset::Utf8mb4)
        }
    };
    if charset.mbminlen() > 1 {
        return Err(SqlError::not_supported("LOAD DATA in a character set of wide letters"));
    }
    Ok(charset)
}
