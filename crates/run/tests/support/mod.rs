//! An in-memory storage, and short constructors for plan nodes.

#![allow(dead_code)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{Budget, CommitSeq, IndexId, TableId};
use cohort_catalog::{Column, DefaultValue, Index, IndexColumn, IndexKind, Table, TableName};
use cohort_expr::{
    Aggregate, AggregateKind, AggregateOptions, BinaryOp, CompareHow, CompareOp, EvalContext, Expr, ExprType,
    Quantifier, SessionEnv, SessionHooks, SortKey, Subquery, SubqueryTest, VariableScope, build_binary,
    compare,
};
use cohort_optimize::{
    Access, Columns, CommonPlan, Node, PartId, Parts, Plan, ReadMode, Scan, Span, Spans, SubqueryPlan,
    VirtualScan,
};
use cohort_run::{Batch, CursorId, Event, Kept, Matching, Storage, Vectors, run};
use cohort_types::{Collation, ColumnType, ErrorCode, SqlError, SqlResult, TypeKind, Value, VectorType};
use cohort_vfs::{Fs as _, MemFs, OpenMode, SharedFile};

pub const CI: Collation = Collation::UTF8MB4_GENERAL_CI;

/// Tables as vectors. The n-th index of a table is on column n.
pub struct Memory {
    pub tables: HashMap<String, Vec<Vec<Value>>>,
    pub memory: usize,
    /// Number of rows returned by scans.
    pub reads: u64,
    pub opened: u64,
    pub spilled: u64,
    /// Events reported by operators.
    pub events: Vec<Event>,
    pub files: MemFs,
    cursors: HashMap<usize, std::vec::IntoIter<Vec<Value>>>,
    /// Pending matches per cursor, with the numbers of the rows they match; `None` before the first request.
    matches: HashMap<usize, Option<Vec<(usize, Vec<Value>)>>>,
    key: Vec<u8>,
}

impl Memory {
    pub fn new(tables: &[(&str, Vec<Vec<Value>>)]) -> Memory {
        Memory {
            tables: tables.iter().map(|(name, rows)| ((*name).to_string(), rows.clone())).collect(),
            memory: usize::MAX,
            reads: 0,
            opened: 0,
            spilled: 0,
            events: Vec::new(),
            files: MemFs::new(),
            cursors: HashMap::new(),
            matches: HashMap::new(),
            key: Vec::new(),
        }
    }

    fn found(&self, scan: &Scan, outer: &[Value], eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let rows = &self.tables[scan.name.as_ref()];
        let Spans::List(spans) = &scan.access.spans else { return Ok(rows.clone()) };
        let how = CompareHow::scalar(CI);
        let mut found = Vec::new();
        'rows: for row in rows {
            for span in spans {
                let column = &row[scan.access.index];
                let holds = |expr: &Expr, accepts: fn(std::cmp::Ordering) -> bool| -> SqlResult<bool> {
                    Ok(compare(column, &*expr.eval(outer, eval)?, &how, eval)?.is_some_and(accepts))
                };
                let mut matches = true;
                for eq in &span.eq {
                    matches &= holds(eq, std::cmp::Ordering::is_eq)?;
                }
                matches &= match &span.lower {
                    Bound::Included(expr) => holds(expr, std::cmp::Ordering::is_ge)?,
                    Bound::Excluded(expr) => holds(expr, std::cmp::Ordering::is_gt)?,
                    Bound::Unbounded => true,
                };
                matches &= match &span.upper {
                    Bound::Included(expr) => holds(expr, std::cmp::Ordering::is_le)?,
                    Bound::Excluded(expr) => holds(expr, std::cmp::Ordering::is_lt)?,
                    Bound::Unbounded => true,
                };
                if matches {
                    found.push(row.clone());
                    continue 'rows;
                }
            }
        }
        Ok(found)
    }
}

impl Memory {
    /// Returns the matches that were not returned yet.
    fn take_matches(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        eval: &EvalContext<'_>,
    ) -> SqlResult<&mut Vec<(usize, Vec<Value>)>> {
        if self.matches[&cursor.0].is_none() {
            let mut all = Vec::new();
            for (n, row) in rows.iter().enumerate() {
                for found in self.found(scan, row, eval)? {
                    if scan.filter.as_ref().is_none_or(|filter| filter.passes(&found, eval).expect("simple"))
                    {
                        all.push((n, scan.columns.iter().map(|column| found[*column].clone()).collect()));
                    }
                }
            }
            self.matches.insert(cursor.0, Some(all));
        }
        Ok(self.matches.get_mut(&cursor.0).and_then(Option::as_mut).expect("just made"))
    }
}

impl Storage for Memory {
    fn open(
        &mut self,
        scan: &Scan,
        row: &[Value],
        _: Option<u64>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<CursorId> {
        self.opened += 1;
        let id = CursorId(self.opened as usize);
        self.reopen(id, scan, row, eval)?;
        Ok(id)
    }

    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        let rows = self.found(scan, row, eval)?;
        self.cursors.insert(cursor.0, rows.into_iter());
        Ok(())
    }

    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let rows = self.cursors.get_mut(&cursor.0).expect("an open cursor");
        for found in rows {
            if scan.filter.as_ref().is_none_or(|filter| filter.passes(&found, eval).expect("a simple filter"))
            {
                self.reads += 1;
                self.key = format!("{:?}", found[0]).into_bytes();
                *row = found;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns vector types if each column has one type: integers or texts.
    fn vector_types(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        _: &EvalContext<'_>,
    ) -> Option<Vec<VectorType>> {
        let rows = self.cursors.get(&cursor.0).expect("an open cursor").as_slice();
        let type_of = |column: &usize| {
            let is_all =
                |is: fn(&Value) -> bool| rows.iter().all(|row| row[*column].is_null() || is(&row[*column]));
            if is_all(|value| matches!(value, Value::Int(_))) {
                return Some(VectorType::Int);
            }
            is_all(|value| matches!(value, Value::Str(_))).then_some(VectorType::Text(CI))
        };
        if scan.with_key { None } else { scan.columns.iter().map(type_of).collect() }
    }

    fn next_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        vectors.clear();
        let mut row = Vec::new();
        while vectors.rows < 7 && self.next(cursor, scan, &mut row, eval)? {
            let yielded: Vec<Value> = scan.columns.iter().map(|n| row[*n].clone()).collect();
            assert!(vectors.push_row(&yielded), "values of the declared types");
        }
        Ok(vectors.rows > 0)
    }

    fn begin_matches(&mut self, cursor: CursorId, scan: &Scan, _: Matching, _: &EvalContext<'_>) -> bool {
        self.matches.insert(cursor.0, None);
        !scan.with_key && !scan.table.columns.is_empty()
    }

    fn next_match(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        n: Option<usize>,
        out: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        let left = self.take_matches(cursor, scan, rows, eval)?;
        let at = match n {
            Some(n) => left.iter().position(|(of, _)| n == *of),
            // Matches may come in any order: return the last one first, to test this.
            None => left.len().checked_sub(1),
        };
        let found = at.map(|at| left.remove(at));
        Ok(found.map(|(of, row)| {
            out.extend(row);
            of
        }))
    }

    fn next_match_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        of: &mut Vec<u32>,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let left = self.take_matches(cursor, scan, rows, eval)?;
        for (n, row) in left.split_off(left.len().saturating_sub(5)) {
            of.push(n as u32);
            assert!(vectors.push_row(&row), "values of the declared types");
        }
        Ok(vectors.rows > 0)
    }

    fn key(&self, _: CursorId) -> &[u8] {
        &self.key
    }

    fn close(&mut self, cursor: CursorId) {
        self.cursors.remove(&cursor.0).expect("an open cursor");
    }

    fn virtual_rows(&mut self, scan: &VirtualScan, _: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        self.opened += 1;
        Ok(self.tables[scan.table.as_ref()].clone())
    }

    fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    fn spill_file(&mut self) -> SqlResult<SharedFile> {
        self.spilled += 1;
        let path = std::path::PathBuf::from(format!("spill{}", self.spilled));
        Ok(self.files.open(&path, OpenMode::CreateNew).expect("a file"))
    }

    fn operator_memory(&self, _: Kept) -> usize {
        self.memory
    }
}

/// A session that needs no server.
#[derive(Default)]
pub struct Session {
    pub budget: Option<Arc<Budget>>,
    pub variables: RefCell<HashMap<String, Value>>,
    /// Number of KILL checks until the statement is killed.
    pub patience: Cell<Option<u64>>,
}

impl SessionHooks for Session {
    fn get_lock(&self, _: &str, _: Duration) -> SqlResult<bool> {
        Ok(true)
    }

    fn release_lock(&self, _: &str) -> Option<bool> {
        None
    }

    fn release_all_locks(&self) -> u64 {
        0
    }

    fn lock_holder(&self, _: &str) -> Option<u64> {
        None
    }

    fn user_variable(&self, name: &str) -> Option<Value> {
        self.variables.borrow().get(name).cloned()
    }

    fn set_user_variable(&self, name: &str, value: Value) -> SqlResult<()> {
        self.variables.borrow_mut().insert(name.to_string(), value);
        Ok(())
    }

    fn memory(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    fn system_variable(&self, _: VariableScope, name: &str) -> SqlResult<Value> {
        let known = self.variables.borrow().get(name).cloned();
        known.ok_or_else(|| SqlError::unknown_variable(name))
    }

    fn set_last_insert_id(&self, _: u64) {}

    fn last_insert_id_set(&self) -> Option<u64> {
        None
    }

    fn clock_micros(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        4
    }

    fn next_short_uuid(&self) -> u64 {
        42
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        let Some(left) = self.patience.get() else { return Ok(()) };
        self.patience.set(Some(left.saturating_sub(1)));
        if left == 0 { Err(SqlError::interrupted()) } else { Ok(()) }
    }

    fn sleep(&self, _: Duration) -> SqlResult<()> {
        Ok(())
    }
}

/// Returns a plan without subqueries and common table expressions.
pub fn plan(root: Node, width: usize) -> Plan {
    Plan {
        root,
        width,
        subqueries: Vec::new(),
        common: Vec::new(),
        frame: 0,
        given: Vec::new(),
        parts: Parts::default(),
    }
}

pub fn subplan(root: Node, width: usize, reads: &[usize]) -> SubqueryPlan {
    SubqueryPlan { root, width, reads: reads.to_vec(), is_volatile: false, keeps_digits: false }
}

pub fn common(seed: Node) -> CommonPlan {
    CommonPlan { seed, step: None }
}

pub type Rows = Vec<Vec<Value>>;

/// Runs a plan in a session.
pub fn run_in(plan: &Plan, storage: &mut Memory, session: &Session) -> SqlResult<(Rows, u64)> {
    let env = SessionEnv::new(0);
    let eval = EvalContext::new(&env, session, &[]);
    let mut rows = Vec::new();
    let found = run(plan, &[], storage, &eval, &mut |row| {
        rows.push(row.to_vec());
        Ok(ControlFlow::Continue(()))
    });
    assert!(storage.cursors.is_empty(), "all cursors are closed");
    if let (Some(budget), true) = (&session.budget, found.is_ok()) {
        assert_eq!(budget.used(), 0, "all memory is given back before the statement ends");
    }
    Ok((rows, found?))
}

pub fn rows_of(plan: &Plan, storage: &mut Memory) -> Rows {
    run_in(plan, storage, &Session::default()).expect("runs").0
}

/// Returns the rows as sorted texts, for comparisons that ignore order.
pub fn sorted(rows: &Rows) -> Vec<String> {
    let mut printed: Vec<String> = rows.iter().map(|row| shown(row)).collect();
    printed.sort();
    printed
}

/// Returns a row as text.
pub fn shown(row: &[Value]) -> String {
    let text = |value: &Value| {
        if value.is_null() {
            return "NULL".to_string();
        }
        let mut out = Vec::new();
        value.write_text(cohort_types::DECIMALS_NOT_FIXED, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    row.iter().map(text).collect::<Vec<_>>().join(" ")
}

pub fn shown_all(rows: &Rows) -> Vec<String> {
    rows.iter().map(|row| shown(row)).collect()
}

pub fn int(v: i64) -> Value {
    Value::Int(v)
}

/// Converts integers to values; `None` is NULL.
pub fn ints(values: &[Option<i64>]) -> Vec<Value> {
    values.iter().map(|v| v.map_or(Value::Null, Value::Int)).collect()
}

/// Returns rows of integers without NULLs.
pub fn table(rows: &[&[i64]]) -> Rows {
    rows.iter().map(|row| row.iter().map(|v| Value::Int(*v)).collect()).collect()
}

pub fn col(ordinal: usize) -> Expr {
    Expr::column(ordinal, ExprType::bigint(20), "c")
}

pub fn text_col(ordinal: usize) -> Expr {
    Expr::column(ordinal, ExprType::string(100, CI, cohort_expr::Coercibility::Implicit), "c")
}

pub fn lit(v: i64) -> Expr {
    Expr::constant(Value::Int(v))
}

pub fn outer(slot: usize) -> Expr {
    Expr::Outer(Box::new(cohort_expr::Outer { slot, ty: ExprType::bigint(20), name: "o".into() }))
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    build_binary(op, left, right, &SessionEnv::new(0)).expect("builds")
}

pub fn cmp(op: CompareOp, left: Expr, right: Expr) -> Expr {
    binary(BinaryOp::Compare(op), left, right)
}

pub fn eq(left: Expr, right: Expr) -> Expr {
    cmp(CompareOp::Eq, left, right)
}

pub fn add(left: Expr, right: Expr) -> Expr {
    binary(BinaryOp::Add, left, right)
}

pub fn asc() -> SortKey {
    SortKey { collation: CI, descending: false }
}

pub fn desc() -> SortKey {
    SortKey { collation: CI, descending: true }
}

pub fn aggregate(kind: AggregateKind, args: Vec<Expr>) -> Aggregate {
    Aggregate::new(kind, args, AggregateOptions::default(), &SessionEnv::new(0)).expect("builds")
}

pub fn distinct_aggregate(kind: AggregateKind, args: Vec<Expr>) -> Aggregate {
    let options = AggregateOptions { quantifier: Quantifier::Distinct, ..AggregateOptions::default() };
    Aggregate::new(kind, args, options, &SessionEnv::new(0)).expect("builds")
}

pub fn subquery(id: usize, test: SubqueryTest, outer: Vec<(usize, Expr)>) -> Expr {
    Expr::Subquery(Box::new(Subquery { id, test, ty: ExprType::bigint(20), outer, is_volatile: false }))
}

/// Returns a scan of the table as a virtual table.
pub fn of(name: &str, width: usize) -> Node {
    Node::Virtual(Box::new(VirtualScan {
        schema: "t".into(),
        table: name.into(),
        name: name.into(),
        block: 1,
        filter: None,
        columns: (0..width).collect(),
        part: PartId::default(),
    }))
}

fn definition(name: &str, width: usize) -> Arc<Table> {
    let index = |column: usize| Index {
        id: IndexId(column as u32),
        name: format!("i{column}"),
        // The index is not unique.
        kind: IndexKind::Secondary,
        columns: vec![IndexColumn { column, prefix: None, descending: false }],
        comment: String::new(),
        ignored: false,
        using: None,
        generated: false,
        since: CommitSeq(0),
    };
    Arc::new(Table {
        id: TableId(1),
        name: TableName { schema: "t".to_string(), table: name.to_string() },
        engine: "InnoDB".to_string(),
        columns: Vec::new(),
        indexes: (0..width).map(index).collect(),
        collation: CI,
        comment: String::new(),
        auto_increment_start: 0,
        options: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
        created_at: 0,
    })
}

/// Returns a full scan of the table.
pub fn scan(name: &str, width: usize) -> Scan {
    Scan {
        table: definition(name, width),
        name: name.into(),
        block: 1,
        access: Access { index: 0, spans: Spans::Full, reverse: false, is_for_order: false },
        mode: ReadMode::Snapshot,
        filter: None,
        read: Columns::All,
        columns: (0..width).collect(),
        with_key: false,
        rows: 1.0,
        part: PartId::default(),
    }
}

/// Declares the columns as integers and the table as large, so that plans can use vectors.
pub fn declared(mut scan: Scan) -> Scan {
    let column = |n: usize| {
        let ty = ColumnType::int(TypeKind::BigInt, None, false);
        Column::plain(format!("c{n}"), ty, true, DefaultValue::Value(Value::Null))
    };
    let table = Arc::make_mut(&mut scan.table);
    table.columns = (0..table.indexes.len()).map(column).collect();
    Scan { rows: 1000.0, ..scan }
}

/// Returns a lookup in the table by a column.
pub fn lookup(name: &str, width: usize, column: usize, key: Expr) -> Scan {
    let span = Span::of_keys(vec![key]);
    let access =
        Access { index: column, spans: Spans::List(vec![span]), reverse: false, is_for_order: false };
    Scan { access, ..scan(name, width) }
}

pub fn code<T>(outcome: SqlResult<T>) -> ErrorCode {
    outcome.err().expect("fails").code
}
