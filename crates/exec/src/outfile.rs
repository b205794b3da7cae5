//! SELECT ... INTO OUTFILE and DUMPFILE.
//!
//! Text is written in its column's character set, or in the one that the statement names. An incomplete file
//! is removed. Programs other than the client can read the file, so holding back the reply is not enough: the
//! statement waits until the transactions that it depends on are durable before it writes (I5).

use std::io::{BufWriter, Write};
use std::path::Path;

use cohort_base::CommitSeq;
use cohort_commit::Coordinator;
use cohort_expr::EvalContext;
use cohort_protocol::{ColumnFlags, ColumnMeta, ResultSink, TypeCode};
use cohort_sql::ast::{FileFormat, IntoFile, QueryIntoFile};
use cohort_types::{Charset, Collation, ErrorCode, Level, Privilege, SqlError, SqlResult, Value, Warning};

use crate::session::Session;
use cohort_plan::PlanContext;
use cohort_query::{Flow, Freshness, QueryPlan, RowSink, lock_names, lock_tables, plan_query, run_query};
use cohort_session::access::check_global;
use cohort_session::files::{check_format, check_secure, file_error, files, place};
use cohort_session::{Job, SessionNames, StatementContext};
use cohort_table::definition_changed;
use cohort_trx::commit_error;

/// Characters of numbers. A separator that begins with one of them needs escapes in numbers.
const NUMERIC: &[u8] = b".0123456789e+-";
/// Characters with a special meaning after an escape character.
const ESCAPES: &[u8] = b"ntrb0ZN";
const PLAN_ATTEMPTS: usize = 20;

impl Session {
    /// Runs SELECT ... INTO OUTFILE or INTO DUMPFILE.
    pub(crate) fn query_into_file(
        &mut self,
        statement: &QueryIntoFile,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let rows = self.with_context(job, |ctx| write_file(ctx, statement, job))?;
        let found = self.state.statement.rows_found.take().unwrap_or(rows);
        (self.state.settings.env.found_rows, self.state.settings.env.row_count) = (found, rows as i64);
        self.send_ok(job.more, rows, 0, "", sink);
        Ok(())
    }
}

fn write_file(ctx: &mut StatementContext<'_>, statement: &QueryIntoFile, job: &Job<'_>) -> SqlResult<u64> {
    check_global(ctx.session, Privilege::File)?;
    let charset = match &statement.file {
        IntoFile::Outfile { charset: Some(name), .. } => {
            Some(Charset::by_name(name).ok_or_else(|| SqlError::unknown_charset(name))?)
        }
        _ => None,
    };
    // As in MariaDB, `binary` converts nothing.
    let charset = charset.filter(|charset| *charset != Charset::Binary);
    let plan = bind(ctx, statement, job)?;
    if let IntoFile::Outfile { format, .. } = &statement.file {
        check_format(format, &ctx.eval)?;
    }
    if statement.is_late {
        let error = SqlError::into_before_from_deprecated();
        ctx.eval.push_warning(Warning { level: Level::Warning, error });
    }
    let server = files(ctx.session)?;
    let path = place(&*server, statement.file.path(), ctx.session.current_schema.as_deref());
    check_secure(ctx.session, &*server, path.parent().unwrap_or(Path::new("/")))?;
    let file = server.create(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => SqlError::file_exists(statement.file.path()),
        _ => file_error(
            ErrorCode::CantCreateFile,
            &format!("Can't create/write to file '{}'", path.display()),
            &error,
        ),
    })?;
    let written = fill(ctx, &plan, &statement.file, charset, file);
    if written.is_err() {
        server.remove(&path);
    }
    written
}

fn bind(ctx: &mut StatementContext<'_>, statement: &QueryIntoFile, job: &Job<'_>) -> SqlResult<QueryPlan> {
    for _ in 0..PLAN_ATTEMPTS {
        let catalog = ctx.db.catalog();
        let names = SessionNames::new(&catalog, ctx.session);
        let plan = PlanContext::new(&names, job.params, job.source);
        let query = plan_query(&plan, ctx.session, &statement.query)?;
        names.take_needs().iter().try_for_each(|need| need.check(ctx.session))?;
        let lock = |ctx: &mut StatementContext<'_>| match names.lock_programs(ctx, Vec::new())? {
            true => lock_tables(&query, ctx),
            false => Ok(Freshness::Stale),
        };
        if lock_names(ctx, lock)? == Freshness::Fresh {
            if let Some(tables) = ctx.session.audit_tables() {
                query.report_tables(&tables);
            }
            return Ok(query);
        }
    }
    Err(definition_changed())
}

fn fill(
    ctx: &mut StatementContext<'_>,
    plan: &QueryPlan,
    into: &IntoFile,
    charset: Option<Charset>,
    file: Box<dyn Write>,
) -> SqlResult<u64> {
    let mut out = RowFile {
        file: BufWriter::new(file),
        columns: &plan.columns,
        commit: &ctx.db.commit,
        durable: CommitSeq(0),
        rows: 0,
        line: Vec::new(),
        how: None,
    };
    if let IntoFile::Outfile { format, .. } = into {
        let how = Layout::new(format, &plan.columns, charset);
        if how.is_ambiguous {
            ctx.eval.push_warning(Warning {
                level: Level::Warning,
                error: SqlError::ambiguous_field_terminator(),
            });
        }
        out.how = Some(how);
    }
    run_query(plan, ctx, u64::MAX, &mut out)?;
    // Absent rows, too, depend on commits that are not durable yet.
    out.wait_durable(ctx.trx.hold_until())?;
    out.file.flush().map_err(|error| write_error(&error))?;
    Ok(out.rows)
}

fn write_error(error: &std::io::Error) -> SqlError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => SqlError::no_disk_space(error),
        _ => file_error(ErrorCode::ErrorOnWrite, "Error writing file", error),
    }
}

/// A sink that writes rows to the file.
struct RowFile<'c> {
    file: BufWriter<Box<dyn Write>>,
    columns: &'c [ColumnMeta],
    commit: &'c Coordinator,
    /// Newest commit known to be durable, with all before it.
    durable: CommitSeq,
    rows: u64,
    line: Vec<u8>,
    /// `None` for DUMPFILE, which writes values without separators.
    how: Option<Layout>,
}

impl RowFile<'_> {
    fn wait_durable(&mut self, hold: CommitSeq) -> SqlResult<()> {
        if hold > self.durable {
            self.commit.wait_acknowledged(hold).map_err(commit_error)?;
            self.durable = hold;
        }
        Ok(())
    }
}

impl RowSink for RowFile<'_> {
    fn row(&mut self, _: &EvalContext<'_>, hold: CommitSeq, values: &mut Vec<Value>) -> SqlResult<Flow> {
        self.wait_durable(hold)?;
        self.line.clear();
        match &self.how {
            Some(how) => how.line(values, self.columns, &mut self.line),
            None => {
                // MariaDB, too, does not report an error before the third row.
                if self.rows > 1 {
                    return Err(SqlError::more_than_one_row());
                }
                for (value, column) in values.iter().zip(self.columns) {
                    write_text(value, column, None, &mut self.line);
                }
            }
        }
        self.rows += 1;
        self.file.write_all(&self.line).map_err(|error| write_error(&error))?;
        Ok(Flow::Continue)
    }
}

/// FIELDS and LINES with derived rules.
struct Layout {
    format: FileFormat,
    charset: Option<Charset>,
    escape: Option<u8>,
    /// Characters to escape in an unenclosed field, and in an enclosed one.
    special: [Vec<u8>; 2],
    /// True if the separator has a special meaning after an escape character; it is doubled instead of
    /// escaped.
    is_doubled: bool,
    /// True if numbers need escapes, too.
    is_in_numbers: bool,
    is_ambiguous: bool,
    /// True if there are no separators: values are padded to the width of their columns.
    is_fixed: bool,
    line_end: Vec<u8>,
}

impl Layout {
    fn new(format: &FileFormat, columns: &[ColumnMeta], charset: Option<Charset>) -> Layout {
        let first = |bytes: &Vec<u8>| bytes.first().copied();
        let field_end = first(&format.field_end);
        let line_end = if format.line_end.is_empty() { &format.field_end } else { &format.line_end };
        let quote = first(&format.enclosed);
        let separator = quote.or(field_end);
        let is_one_of = |byte: Option<u8>, set: &[u8]| byte.is_some_and(|byte| set.contains(&byte));
        let has_strings = columns.iter().any(is_string);
        let has_numbers = columns.iter().any(|column| !is_string(column));
        let is_doubled = is_one_of(separator, ESCAPES);
        let is_in_numbers = is_one_of(separator, NUMERIC);
        let is_optional = (format.optionally && field_end.is_some()) || quote.is_none();
        let is_ambiguous = (is_doubled && quote.is_none() && (has_strings || is_in_numbers))
            || (is_optional && has_numbers && is_one_of(field_end, NUMERIC));
        let escape = first(&format.escaped);
        let set = |end: Option<u8>| [escape, end, first(line_end), Some(0)].into_iter().flatten().collect();
        Layout {
            escape,
            special: [set(field_end), set(quote)],
            is_doubled,
            is_in_numbers,
            is_ambiguous,
            is_fixed: field_end.is_none() && quote.is_none() && columns.iter().all(|c| c.length < 1 << 24),
            line_end: line_end.clone(),
            format: FileFormat { optionally: is_optional, ..format.clone() },
            charset,
        }
    }

    fn line(&self, values: &[Value], columns: &[ColumnMeta], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.format.line_start);
        let mut text = Vec::new();
        for (n, (value, column)) in values.iter().zip(columns).enumerate() {
            if n > 0 {
                out.extend_from_slice(&self.format.field_end);
            }
            text.clear();
            match value {
                Value::Null if self.is_fixed => {}
                Value::Null => match self.escape {
                    Some(escape) => out.extend_from_slice(&[escape, b'N']),
                    None => out.extend_from_slice(b"NULL"),
                },
                value => {
                    write_text(value, column, self.charset, &mut text);
                    self.field(&text, column, out);
                }
            }
            if self.is_fixed {
                // Escape characters do not count for the width.
                let missing = (column.length as usize).saturating_sub(text.len());
                out.extend(std::iter::repeat_n(b' ', missing));
            }
        }
        out.extend_from_slice(&self.line_end);
    }

    fn field(&self, text: &[u8], column: &ColumnMeta, out: &mut Vec<u8>) {
        let is_string = is_string(column);
        let is_enclosed = !self.format.enclosed.is_empty() && (!self.format.optionally || is_string);
        let quotes: &[u8] = if is_enclosed { &self.format.enclosed } else { &[] };
        out.extend_from_slice(quotes);
        match self.escape {
            Some(escape) if is_string || self.is_in_numbers => {
                let special = &self.special[usize::from(is_enclosed)];
                let charset = self.charset.unwrap_or(column.collation.charset());
                let has_pairs = charset.mbmaxlen() == 2 && charset.mbminlen() == 1;
                let mut bytes = text.iter().copied();
                while let Some(byte) = bytes.next() {
                    let is_end = !is_enclosed && self.format.field_end.first() == Some(&byte);
                    if special.contains(&byte) && !(is_end && self.is_ambiguous) {
                        let separator = self.format.enclosed.first().or(self.format.field_end.first());
                        let doubles = self.is_doubled && separator == Some(&byte);
                        out.push(if doubles { byte } else { escape });
                        out.push(if byte == 0 { b'0' } else { byte });
                        continue;
                    }
                    out.push(byte);
                    if has_pairs && byte >= 0x81 {
                        out.extend(bytes.next());
                    }
                }
            }
            _ => out.extend_from_slice(text),
        }
        out.extend_from_slice(quotes);
    }
}

/// Returns true for the types that MariaDB treats as strings here, among them temporal types.
fn is_string(column: &ColumnMeta) -> bool {
    use TypeCode as T;
    !matches!(
        column.type_code,
        T::Tiny
            | T::Short
            | T::Int24
            | T::Long
            | T::LongLong
            | T::Float
            | T::Double
            | T::NewDecimal
            | T::Year
            | T::Bit
    )
}

/// Appends a value's text in the given character set, or in its column's.
fn write_text(value: &Value, column: &ColumnMeta, charset: Option<Charset>, out: &mut Vec<u8>) {
    let start = out.len();
    match value.as_bytes() {
        Some(text) if column.collation == Collation::BINARY => out.extend_from_slice(text),
        Some(text) => {
            // A character that the character set lacks becomes a question mark.
            charset.unwrap_or(column.collation.charset()).encode(text, out);
        }
        None => value.write_text(column.decimals, out),
    }
    if column.flags.has(ColumnFlags::ZEROFILL) {
        let missing = (column.length as usize).saturating_sub(out.len() - start);
        out.splice(start..start, std::iter::repeat_n(b'0', missing.min(255)));
    }
}
