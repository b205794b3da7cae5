//! EXPLAIN and ANALYZE in MariaDB's tabular format.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_dml::TargetPlan;
use cohort_expr::Expr;
use cohort_optimize::{Access, Columns, JoinMethod, Node, Plan, Scan};
use cohort_protocol::{ColumnFlags, ColumnMeta, TypeCode};
use cohort_query::{DirectPlan, PlanBody, QueryPlan};
use cohort_run::PlanProfile;
use cohort_sql::ast::{ExplainFormat, SetOperator};
use cohort_types::{Collation, Value};

use crate::cached_plan::Planned;
use crate::explain_access::{Line, Measures, Profiled, Read};

/// Returns columns and rows of EXPLAIN, or of ANALYZE if there is a `profile`.
/// `extended` adds column `filtered`, which is 100 for every table because the planner does not estimate it.
pub(crate) fn explain(
    plan: &Planned,
    extended: bool,
    profile: Option<&PlanProfile>,
    known: &dyn Known,
) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    let mut lines = Lines { rows: Vec::new(), profile, measures: None, known };
    match plan {
        Planned::Query(query) => lines.query(query),
        Planned::Insert(insert) => match insert.query() {
            Some(query) => lines.query(query),
            None => lines.push(1, "INSERT", Some(&insert.table().name.table), Line::of_kind("ALL")),
        },
        Planned::Update(update) => lines.target(update.target()),
        Planned::Delete(delete) => lines.target(delete.target()),
        Planned::Joined(change) => lines.query(change.source()),
    }
    let share = |row: &[Value]| {
        let is_table = !row[ROWS].is_null() || row[1] == Value::text("INSERT");
        if is_table { Value::Double(100.0) } else { Value::Null }
    };
    let row = |line: Row| {
        let mut row = line.values;
        let filtered = share(&row);
        if profile.is_some() {
            let left_of_all = row[1] == Value::text("INSERT");
            let of = |value: Option<f64>| value.map_or(Value::Null, Value::Double);
            let (rows, left) = line.measured.map_or((None, None), |m| (m.rows(), m.filtered()));
            let left = left.or(left_of_all.then_some(100.0));
            row.splice(ROWS + 1..ROWS + 1, [of(rows), filtered, of(left)]);
        } else if extended {
            row.insert(ROWS + 1, filtered);
        }
        row
    };
    let format = match (profile, extended) {
        (Some(_), _) => ExplainFormat::Analyze,
        (None, true) => ExplainFormat::Extended,
        (None, false) => ExplainFormat::Traditional,
    };
    (explain_columns(format), lines.rows.into_iter().map(row).collect())
}

/// Position of column `rows`.
const ROWS: usize = 8;

fn two_decimals(name: &str) -> ColumnMeta {
    let mut column = ColumnMeta::expression(name, TypeCode::Double, 4, Collation::BINARY);
    column.decimals = 2;
    column
}

/// Returns the columns of EXPLAIN or ANALYZE.
pub(crate) fn explain_columns(format: ExplainFormat) -> Vec<ColumnMeta> {
    let mut columns = columns();
    match format {
        ExplainFormat::Traditional | ExplainFormat::Partitions => {}
        ExplainFormat::Extended => columns.insert(ROWS + 1, two_decimals("filtered")),
        ExplainFormat::Analyze => {
            let more = [two_decimals("r_rows"), two_decimals("filtered"), two_decimals("r_filtered")];
            columns.splice(ROWS + 1..ROWS + 1, more);
        }
        ExplainFormat::Json | ExplainFormat::Tree => columns = vec![ColumnMeta::text("EXPLAIN", 78)],
        ExplainFormat::AnalyzeJson => columns = vec![ColumnMeta::text("ANALYZE", 78)],
    }
    columns
}

fn columns() -> Vec<ColumnMeta> {
    let not_null =
        |column: ColumnMeta| ColumnMeta { flags: column.flags.with(ColumnFlags::NOT_NULL), ..column };
    let id = ColumnMeta {
        flags: ColumnFlags::UNSIGNED.with(ColumnFlags::BINARY),
        ..ColumnMeta::expression("id", TypeCode::LongLong, 3, Collation::BINARY)
    };
    vec![
        id,
        not_null(ColumnMeta::text("select_type", 19)),
        ColumnMeta::text("table", 64),
        ColumnMeta::text("type", 10),
        ColumnMeta::text("possible_keys", 4096),
        ColumnMeta::text("key", 64),
        ColumnMeta::text("key_len", 4096),
        ColumnMeta::text("ref", 2048),
        ColumnMeta::text("rows", 64),
        not_null(ColumnMeta::text("Extra", 255)),
    ]
}

/// Facts that EXPLAIN can establish without running the statement.
pub(crate) trait Known {
    /// Returns true if a unique-key lookup with constant values finds no row.
    fn lacks(&self, table: &Arc<Table>, access: &Access) -> bool;

    /// Returns true if a condition that reads no table passes no row.
    fn is_never(&self, condition: &Expr) -> bool;
}

/// Output lines of a plan, sorted by the number of their SELECT.
struct Lines<'l> {
    rows: Vec<Row>,
    profile: Option<&'l PlanProfile>,
    /// Measurements of the query that is shown.
    measures: Option<Measures<'l>>,
    known: &'l dyn Known,
}

/// A line with the number of its SELECT.
struct Row {
    id: u32,
    values: Vec<Value>,
    measured: Option<Profiled>,
}

/// A set operation at the top of a query.
struct Unit {
    is_union: bool,
    /// True if the result is materialized before it is sent, for a sort or to remove duplicates.
    is_kept: bool,
    is_sorted: bool,
}

impl Unit {
    fn of(mut node: &Node) -> Option<Unit> {
        let (mut is_kept, mut is_sorted) = (false, false);
        loop {
            node = match node {
                Node::Sort(sort) => {
                    is_sorted = true;
                    &sort.input
                }
                Node::Distinct { input, .. } => {
                    is_kept = true;
                    input
                }
                Node::Limit(limit) => &limit.input,
                Node::Concat(inputs) => {
                    is_kept |= matches!(inputs.first(), Some(Node::Distinct { .. }));
                    return Some(Unit { is_union: true, is_kept: is_kept || is_sorted, is_sorted });
                }
                Node::SetOperation(_) | Node::SetChain(_) => {
                    return Some(Unit { is_union: false, is_kept: true, is_sorted });
                }
                _ => return None,
            };
        }
    }
}

/// A SELECT during the walk over its operators.
struct Block {
    /// Number of the SELECT; 0 until its first table sets it.
    id: u32,
    /// True once a table of this SELECT has been output.
    has_table: bool,
    select_type: &'static str,
    /// `Extra` notes of the operators above the tables; the first table's line shows them.
    extra: Vec<&'static str>,
}

impl Lines<'_> {
    fn query(&mut self, plan: &QueryPlan) {
        self.measures = self.profile.map(|profile| Measures::of_query(profile, plan));
        match &plan.body {
            PlanBody::Direct(direct) => self.direct(direct),
            PlanBody::Tree(tree) => self.tree(tree),
        }
    }

    fn direct(&mut self, plan: &DirectPlan) {
        let Some(table) = &plan.table else {
            return self.push(plan.block, "SIMPLE", None, Line::saying("No tables used"));
        };
        if plan.constant_filter.as_ref().is_some_and(|condition| self.known.is_never(condition)) {
            return self.push(plan.block, "SIMPLE", None, Line::saying("Impossible WHERE"));
        }
        let filter = table.filter.as_ref();
        let read = Read { table: &table.table, access: &table.access, filter, columns: &table.columns };
        if read.is_constant() && self.known.lacks(&table.table, &table.access) {
            let line = Line::saying("Impossible WHERE noticed after reading const tables");
            return self.push(plan.block, "SIMPLE", None, line);
        }
        let mut line = read.line(Some(table.rows_estimate));
        line.measured = self.measures.as_ref().map(|measures| measures.reads(DirectPlan::READS));
        let groups = plan.group.as_ref().is_some_and(|g| g.explicit);
        if groups || plan.distinct {
            line.extra.push("Using temporary");
        }
        if !plan.sort.is_empty() || groups {
            line.extra.push("Using filesort");
        }
        self.push(plan.block, "SIMPLE", Some(&table.name), line);
    }

    fn tree(&mut self, plan: &Plan) {
        let mut blocks = Vec::new();
        plan.each_node(&mut |node| {
            let id = block_of(node);
            blocks.extend(id.filter(|id| !blocks.contains(id)));
        });
        let unit = Unit::of(&plan.root);
        let select_type = if blocks.len() > 1 || unit.is_some() { "PRIMARY" } else { "SIMPLE" };
        // Derived tables have higher numbers than the SELECT that reads them, but may be read first.
        let id = block_ids(&plan.root).min().unwrap_or(0);
        self.node(&plan.root, &mut Block { id, has_table: false, select_type, extra: Vec::new() });
        let members: Vec<String> = self.ids().iter().map(u32::to_string).collect();
        for common in &plan.common {
            self.node(
                &common.seed,
                &mut Block { id: 0, has_table: false, select_type: "DERIVED", extra: Vec::new() },
            );
            if let Some(step) = &common.step {
                let mut block =
                    Block { id: 0, has_table: false, select_type: "RECURSIVE UNION", extra: Vec::new() };
                self.node(&step.node, &mut block);
            }
        }
        for subquery in &plan.subqueries {
            let select_type = if subquery.reads.is_empty() { "SUBQUERY" } else { "DEPENDENT SUBQUERY" };
            self.node(&subquery.root, &mut Block { id: 0, has_table: false, select_type, extra: Vec::new() });
        }
        if self.rows.is_empty() {
            self.push(1, select_type, None, Line::saying("No tables used"));
        }
        self.rows.sort_by_key(|row| row.id);
        if let Some(unit) = unit.filter(|unit| unit.is_kept) {
            let mut line = Line::of_kind("ALL");
            line.extra.extend(unit.is_sorted.then_some("Using filesort"));
            let (word, kind) =
                if unit.is_union { ("union", "UNION RESULT") } else { ("unit", "UNIT RESULT") };
            self.push(0, kind, Some(&format!("<{word}{}>", members.join(","))), line);
        }
    }

    /// Returns the numbers of the SELECTs output so far.
    fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.rows.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Outputs a SELECT of a set operation.
    fn member(&mut self, node: &Node, select_type: &'static str) {
        let before = self.rows.len();
        self.node(node, &mut Block { id: 0, has_table: false, select_type, extra: Vec::new() });
        if self.rows.len() == before {
            let id = self.ids().last().map_or(1, |last| last + 1);
            self.push(id, select_type, None, Line::saying("No tables used"));
        }
    }

    fn node(&mut self, node: &Node, block: &mut Block) {
        match node {
            Node::Scan(scan) => self.scan(scan, block, Vec::new()),
            Node::Virtual(scan) => {
                let mut line = Line::of_kind("ALL");
                line.extra.extend(scan.filter.is_some().then_some("Using where"));
                line.measured = self.measures.as_ref().map(|measures| {
                    let mut measured = measures.reads(scan.part);
                    measured.read.rows = measures.node(node).rows;
                    measured
                });
                self.table(scan.block, &scan.name, line, block);
            }
            Node::Join(join) => {
                self.node(&join.left, block);
                match &join.method {
                    JoinMethod::Lookup(scan) => self.scan(scan, block, Vec::new()),
                    JoinMethod::Json(scan) => {
                        let mut line = Line::of_json_table();
                        line.extra.extend(join.on.is_some().then_some("Using where"));
                        let measures = self.measures.as_ref();
                        line.measured = measures.map(|m| Profiled { read: m.node(node), other: None });
                        self.table(scan.block, &scan.name, line, block);
                    }
                    JoinMethod::Hash { right: Node::Scan(scan), .. } => {
                        self.scan(scan, block, vec!["Using join buffer (flat, BNLH join)"]);
                    }
                    JoinMethod::Loop { right: Node::Scan(scan), .. } => {
                        self.scan(scan, block, vec!["Using join buffer (flat, BNL join)"]);
                    }
                    JoinMethod::Hash { right, .. } | JoinMethod::Loop { right, .. } => {
                        self.node(right, block)
                    }
                }
            }
            Node::Concat(inputs) => {
                for (n, input) in inputs.iter().enumerate() {
                    let is_union = n > 0 && !matches!(block.select_type, "EXCEPT" | "INTERSECT");
                    self.member(input, if is_union { "UNION" } else { block.select_type });
                }
            }
            Node::SetOperation(operation) => {
                self.member(&operation.left, block.select_type);
                self.member(&operation.right, if operation.wants_common { "INTERSECT" } else { "EXCEPT" });
            }
            Node::SetChain(chain) => {
                for (n, input) in chain.inputs.iter().enumerate() {
                    let select_type = match input.op {
                        _ if n == 0 => block.select_type,
                        SetOperator::Union => "UNION",
                        SetOperator::Except => "EXCEPT",
                        SetOperator::Intersect => "INTERSECT",
                    };
                    self.member(&input.node, select_type);
                }
            }
            other => {
                match other {
                    Node::Sort(_) => block.say("Using filesort"),
                    Node::Distinct { .. } | Node::Window(_) => block.say("Using temporary"),
                    Node::Aggregate(group) if group.is_grouped => {
                        block.say("Using temporary");
                        block.say("Using filesort");
                    }
                    _ => {}
                }
                other.inputs().into_iter().for_each(|input| self.node(input, block));
            }
        }
    }

    fn scan(&mut self, scan: &Scan, block: &mut Block, how: Vec<&'static str>) {
        let filter = scan.filter.as_ref();
        let read = Read { table: &scan.table, access: &scan.access, filter, columns: &scan.read };
        let mut line = read.line(Some(scan.rows as u64));
        line.extra.extend(how);
        line.measured = self.measures.as_ref().map(|measures| measures.reads(scan.part));
        self.table(scan.block, &scan.name, line, block);
    }

    fn table(&mut self, id: u32, name: &str, mut line: Line, block: &mut Block) {
        // A table of a SELECT other than `block` belongs to a derived table.
        let is_own = block.id == 0 || block.id == id;
        let select_type = if is_own { block.select_type } else { "DERIVED" };
        if is_own {
            block.id = id;
            block.has_table = true;
            line.extra.append(&mut block.extra);
        }
        self.push(id, select_type, Some(name), line);
    }

    fn target(&mut self, target: &TargetPlan) {
        let filter = target.filter.as_ref();
        let columns = &Columns::All;
        let read = Read { table: &target.table, access: &target.access, filter, columns };
        let mut line = read.line_of_change();
        let read = self.profile.map(|profile| profile.of(target.part));
        line.measured = read.map(|read| Profiled { read, other: None });
        if !target.sort.is_empty() {
            line.extra.push("Using filesort");
        }
        self.push(1, "SIMPLE", Some(&target.table.name.table), line);
    }

    fn push(&mut self, id: u32, select_type: &str, table: Option<&str>, line: Line) {
        let text = |t: Option<String>| t.map_or(Value::Null, Value::text);
        let measured = line.measured;
        let values = vec![
            // The result of a set operation has no number.
            if id == 0 { Value::Null } else { Value::Int(id.into()) },
            Value::text(select_type),
            table.map_or(Value::Null, Value::text),
            line.kind.map_or(Value::Null, Value::text),
            text(line.keys),
            text(line.key),
            text(line.key_len.map(|n| n.to_string())),
            text(line.reference),
            text(line.rows.map(|n| n.to_string())),
            match (select_type, line.extra.is_empty()) {
                ("INSERT", true) => Value::Null,
                _ => Value::text(line.extra.join("; ")),
            },
        ];
        self.rows.push(Row { id, values, measured });
    }
}

impl Block {
    fn say(&mut self, extra: &'static str) {
        if !self.has_table && !self.extra.contains(&extra) {
            self.extra.push(extra);
        }
    }
}

/// Returns the SELECT numbers of all tables that a node reads.
fn block_ids(root: &Node) -> impl Iterator<Item = u32> {
    let mut found = Vec::new();
    root.each(&mut |node| found.extend(block_of(node)));
    found.into_iter()
}

/// Returns the number of the SELECT that a node's table belongs to.
pub(super) fn block_of(node: &Node) -> Option<u32> {
    match node {
        Node::Scan(scan) => Some(scan.block),
        Node::Virtual(scan) => Some(scan.block),
        Node::Join(join) => match &join.method {
            JoinMethod::Lookup(scan) => Some(scan.block),
            JoinMethod::Json(scan) => Some(scan.block),
            JoinMethod::Hash { .. } | JoinMethod::Loop { .. } => None,
        },
        _ => None,
    }
}
