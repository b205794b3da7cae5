//! EXPLAIN in MariaDB's table form.

use cohort_catalog::{IndexKind, Table};
use cohort_expr::Expr;
use cohort_optimize::{Access, JoinMethod, Node, Plan, Scan, Span, Spans};
use cohort_protocol::{ColumnFlags, ColumnMeta, TypeCode};
use cohort_sql::ast::SetOperator;
use cohort_types::{Collation, Value};

use crate::dispatch::Planned;
use crate::plan::{DirectPlan, PlanBody, QueryPlan, TargetPlan};

/// Columns and rows of EXPLAIN; `extended`: with the share of the rows that conditions leave, which is not
/// estimated.
pub(crate) fn explain(plan: &Planned, extended: bool) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    let mut lines = Lines::default();
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
    let mut columns = columns();
    let mut rows: Vec<Vec<Value>> = lines.rows.into_iter().map(|(_, row)| row).collect();
    if extended {
        columns.insert(ROWS + 1, filtered());
        for row in &mut rows {
            let share = if row[ROWS].is_null() { Value::Null } else { Value::Double(100.0) };
            row.insert(ROWS + 1, share);
        }
    }
    (columns, rows)
}

/// Place of the column `rows`.
const ROWS: usize = 8;

/// A number with two decimals.
fn filtered() -> ColumnMeta {
    let mut column = ColumnMeta::expression("filtered", TypeCode::Double, 4, Collation::BINARY);
    column.decimals = 2;
    column
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

#[derive(Default)]
pub(super) struct Line {
    pub kind: Option<&'static str>,
    pub keys: Option<String>,
    pub key: Option<String>,
    /// Columns of the key that the access goes by.
    pub used_parts: Vec<String>,
    pub reference: Option<String>,
    pub rows: Option<u64>,
    extra: Vec<&'static str>,
}

impl Line {
    pub fn of_kind(kind: &'static str) -> Line {
        Line { kind: Some(kind), ..Line::default() }
    }
}

/// The lines of a plan in the order of its SELECTs.
#[derive(Default)]
struct Lines {
    rows: Vec<(u32, Vec<Value>)>,
}

/// A SELECT while its operators are gone through.
struct Block {
    /// 0: that of the table that comes first.
    id: u32,
    /// A table of it has come.
    has_table: bool,
    select_type: &'static str,
    /// Said of its first table: what is done with the rows above.
    extra: Vec<&'static str>,
}

impl Lines {
    fn query(&mut self, plan: &QueryPlan) {
        match &plan.body {
            PlanBody::Direct(direct) => self.direct(direct),
            PlanBody::Tree(tree) => self.tree(tree),
        }
    }

    fn direct(&mut self, plan: &DirectPlan) {
        let Some(table) = &plan.table else {
            let line = Line { extra: vec!["No tables used"], ..Line::default() };
            return self.push(plan.block, "SIMPLE", None, line);
        };
        let mut line = access_line(&table.table, &table.access, Some(table.rows_estimate));
        if table.filter.is_some() {
            line.extra.push("Using where");
        }
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
        let select_type = if blocks.len() > 1 { "PRIMARY" } else { "SIMPLE" };
        // Derived tables have higher numbers than the SELECT that reads them, and may be read first.
        let id = block_ids(&plan.root).min().unwrap_or(0);
        self.node(&plan.root, &mut Block { id, has_table: false, select_type, extra: Vec::new() });
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
            let line = Line { extra: vec!["No tables used"], ..Line::default() };
            self.push(1, select_type, None, line);
        }
        self.rows.sort_by_key(|(id, _)| *id);
    }

    fn node(&mut self, node: &Node, block: &mut Block) {
        match node {
            Node::Scan(scan) => self.scan(scan, block, Vec::new()),
            Node::Virtual(scan) => {
                let mut line = Line::of_kind("ALL");
                line.extra.extend(scan.filter.is_some().then_some("Using where"));
                self.table(scan.block, &scan.name, line, block);
            }
            Node::Join(join) => {
                self.node(&join.left, block);
                match &join.method {
                    JoinMethod::Lookup(scan) => self.scan(scan, block, Vec::new()),
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
                    let select_type = if n == 0 { block.select_type } else { "UNION" };
                    self.node(input, &mut Block { id: 0, has_table: false, select_type, extra: Vec::new() });
                }
            }
            Node::SetChain(chain) => {
                for (n, input) in chain.inputs.iter().enumerate() {
                    let select_type = match input.op {
                        _ if n == 0 => block.select_type,
                        SetOperator::Union => "UNION",
                        SetOperator::Except => "EXCEPT",
                        SetOperator::Intersect => "INTERSECT",
                    };
                    self.node(
                        &input.node,
                        &mut Block { id: 0, has_table: false, select_type, extra: Vec::new() },
                    );
                }
            }
            other => {
                match other {
                    Node::Sort(_) => block.say("Using filesort"),
                    Node::Distinct { .. } => block.say("Using temporary"),
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
        let mut line = access_line(&scan.table, &scan.access, Some(scan.rows as u64));
        line.extra.extend(scan.filter.is_some().then_some("Using where"));
        line.extra.extend(how);
        self.table(scan.block, &scan.name, line, block);
    }

    fn table(&mut self, id: u32, name: &str, mut line: Line, block: &mut Block) {
        // A table of another SELECT than those before: a derived table's.
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
        let mut line = access_line(&target.table, &target.access, None);
        if target.filter.is_some() {
            line.extra.push("Using where");
        }
        if !target.sort.is_empty() {
            line.extra.push("Using filesort");
        }
        self.push(1, "SIMPLE", Some(&target.table.name.table), line);
    }

    fn push(&mut self, id: u32, select_type: &str, table: Option<&str>, line: Line) {
        let text = |t: Option<String>| t.map_or(Value::Null, Value::text);
        let row = vec![
            Value::Int(id.into()),
            Value::text(select_type),
            table.map_or(Value::Null, Value::text),
            line.kind.map_or(Value::Null, Value::text),
            text(line.keys),
            text(line.key),
            Value::Null,
            text(line.reference),
            text(line.rows.map(|n| n.to_string())),
            Value::text(line.extra.join("; ")),
        ];
        self.rows.push((id, row));
    }
}

impl Block {
    fn say(&mut self, extra: &'static str) {
        if !self.has_table && !self.extra.contains(&extra) {
            self.extra.push(extra);
        }
    }
}

/// The SELECTs of all tables that a node reads.
fn block_ids(root: &Node) -> impl Iterator<Item = u32> {
    let mut found = Vec::new();
    root.each(&mut |node| found.extend(block_of(node)));
    found.into_iter()
}

/// The SELECT that a node's table stands in.
pub(super) fn block_of(node: &Node) -> Option<u32> {
    match node {
        Node::Scan(scan) => Some(scan.block),
        Node::Virtual(scan) => Some(scan.block),
        Node::Join(join) => match &join.method {
            JoinMethod::Lookup(scan) => Some(scan.block),
            JoinMethod::Hash { .. } | JoinMethod::Loop { .. } => None,
        },
        _ => None,
    }
}

pub(super) fn access_line(table: &Table, access: &Access, rows: Option<u64>) -> Line {
    let index = &table.indexes[access.index];
    let whole = |eq: &[Expr]| eq.len() == index.columns.len();
    let unique = matches!(index.kind, IndexKind::Primary | IndexKind::Unique);
    let mut line = Line { rows: rows.or(Some(1)), ..Line::default() };
    line.kind = Some(match &access.spans {
        Spans::Full if access.index == 0 => "ALL",
        Spans::Full => "index",
        Spans::List(spans) => match spans.as_slice() {
            [one] if !one.eq.is_empty() && is_open(one) => {
                let by_column = one.eq.iter().any(|e| !e.columns().is_empty());
                match (unique && whole(&one.eq), by_column) {
                    (true, true) => "eq_ref",
                    (true, false) => "const",
                    (false, _) => "ref",
                }
            }
            _ => "range",
        },
    });
    if !matches!(access.spans, Spans::Full) || access.index != 0 {
        line.keys = Some(index.name.clone());
        line.key = Some(index.name.clone());
        let bound = |span: &Span| span.eq.len() + usize::from(!is_open(span));
        let used = match &access.spans {
            Spans::Full => index.columns.len(),
            Spans::List(spans) => spans.iter().map(bound).max().unwrap_or(0),
        };
        let parts = index.columns.iter().take(used);
        line.used_parts = parts.map(|part| table.columns[part.column].name.clone()).collect();
    }
    if let Spans::List(spans) = &access.spans
        && let [one] = spans.as_slice()
        && is_open(one)
    {
        let name = |e: &Expr| if e.columns().is_empty() { "const".to_owned() } else { e.to_string() };
        line.reference = Some(one.eq.iter().map(name).collect::<Vec<_>>().join(","));
    }
    line
}

/// Whether no bounds follow the equalities.
fn is_open(span: &Span) -> bool {
    use std::ops::Bound;
    matches!((&span.lower, &span.upper), (Bound::Unbounded, Bound::Unbounded))
}
