//! EXPLAIN FORMAT=TREE: the operators with their inputs below them, in MySQL's notation. There are no costs;
//! `rows` is the planner's estimate for the reads of a table.
//!
//! An index is followed by the values that its columns are compared with. A filter that a scan evaluates is a
//! line above the scan, as in MySQL. Subqueries and stored common table expressions follow the tree that uses
//! them.

use cohort_dml::TargetPlan;
use cohort_expr::{Aggregate, Expr};
use cohort_optimize::{
    Access, Columns, JoinKind, JoinMethod, LimitCount, Node, Plan, Scan, SetOperator, Spans,
};
use cohort_protocol::ColumnMeta;
use cohort_query::{DirectPlan, PlanBody, QueryPlan};
use cohort_sql::ast::ExplainFormat;
use cohort_types::Value;

use crate::cached_plan::Planned;
use crate::explain::explain_columns;
use crate::explain_access::Read;

/// Returns column and row of EXPLAIN FORMAT=TREE.
pub(crate) fn explain_tree(plan: &Planned) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    (explain_columns(ExplainFormat::Tree), vec![vec![Value::text(tree_text(plan))]])
}

/// Returns the tree, one line for each operator.
pub(crate) fn tree_text(plan: &Planned) -> String {
    let mut tree = Tree::default();
    match plan {
        Planned::Query(query) => tree.query(query),
        Planned::Insert(insert) => {
            let name = &insert.table().name.table;
            tree.line(format!("{} into {name}", if insert.replaces() { "Replace" } else { "Insert" }));
            if let Some(query) = insert.query() {
                tree.below(|tree| tree.query(query));
            }
        }
        Planned::Update(update) => tree.target("Update", update.target()),
        Planned::Delete(delete) => tree.target("Delete from", delete.target()),
        Planned::Joined(change) => {
            let names: Vec<&str> = change.written().map(|(table, _)| &*table.name.table).collect();
            let what = if change.is_update() { "Update" } else { "Delete from" };
            tree.line(format!("{what} {}", names.join(", ")));
            tree.below(|tree| tree.query(change.source()));
        }
    }
    tree.text
}

/// The lines so far, and the depth of the next one.
#[derive(Default)]
struct Tree {
    text: String,
    depth: usize,
}

/// Returns a condition in parentheses.
fn within(condition: &Expr) -> String {
    let text = condition.to_string();
    if text.starts_with('(') && text.ends_with(')') { text } else { format!("({text})") }
}

fn list(exprs: impl IntoIterator<Item = String>) -> String {
    exprs.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

fn aggregate_text(aggregate: &Aggregate) -> String {
    let args = match aggregate.args.is_empty() {
        true => "0".to_owned(),
        false => list(aggregate.args.iter().map(Expr::to_string)),
    };
    format!("{}({args})", aggregate.kind.name())
}

/// Returns the values that the columns of an index are compared with.
fn compared(columns: &[String], access: &Access) -> String {
    let Spans::List(spans) = &access.spans else { return String::new() };
    let [span] = spans.as_slice() else { return String::new() };
    let pairs = columns.iter().zip(&span.eq).map(|(column, value)| format!("{column}={value}"));
    let pairs = list(pairs);
    if pairs.is_empty() { pairs } else { format!(" ({pairs})") }
}

/// Returns the description of a table's reads.
fn reading(read: &Read<'_>, name: &str, rows: f64) -> String {
    let line = read.line(None);
    let key = line.key.unwrap_or_default();
    let covers = line.extra.contains(&"Using index");
    let index = if covers { "Covering index" } else { "Index" };
    let lookup = if covers { "Single-row covering index" } else { "Single-row index" };
    let reverse = if read.access.reverse { " (reverse)" } else { "" };
    let compared = compared(&line.used_parts, read.access);
    let what = match line.kind.unwrap_or_default() {
        "ALL" => format!("Table scan on {name}"),
        "index" => format!("{index} scan on {name} using {key}{reverse}"),
        "const" | "eq_ref" => format!("{lookup} lookup on {name} using {key}{compared}"),
        "ref" => format!("{index} lookup on {name} using {key}{compared}{reverse}"),
        "fulltext" => format!("Full-text index search on {name} using {key}"),
        _ => format!("{index} range scan on {name} using {key}{reverse}"),
    };
    format!("{what}  (rows={rows:.0})")
}

fn limit_line(limit: &LimitCount) -> String {
    match (&limit.count, &limit.offset) {
        (Some(count), Some(offset)) => format!("Limit/Offset: {count}/{offset} row(s)"),
        (Some(count), None) => format!("Limit: {count} row(s)"),
        (None, _) => "Count all rows".to_owned(),
    }
}

impl Tree {
    fn line(&mut self, what: impl AsRef<str>) {
        self.text.extend(std::iter::repeat_n("    ", self.depth));
        self.text.push_str("-> ");
        self.text.push_str(what.as_ref());
        self.text.push('\n');
    }

    fn below(&mut self, write: impl FnOnce(&mut Tree)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    /// Writes a line with inputs below it.
    fn operator<'n>(&mut self, what: impl AsRef<str>, inputs: impl IntoIterator<Item = &'n Node>) {
        self.line(what);
        self.below(|tree| inputs.into_iter().for_each(|input| tree.node(input)));
    }

    /// Writes a condition, if there is one, and what it applies to below it.
    fn filtered(&mut self, condition: Option<&Expr>, write: impl FnOnce(&mut Tree)) {
        match condition {
            Some(condition) => {
                self.line(format!("Filter: {}", within(condition)));
                self.below(write);
            }
            None => write(self),
        }
    }

    fn query(&mut self, query: &QueryPlan) {
        match &query.body {
            PlanBody::Direct(direct) => self.direct(direct),
            PlanBody::Tree(plan) => self.plan(plan),
        }
    }

    fn target(&mut self, what: &str, target: &TargetPlan) {
        let name = &target.table.name.table;
        self.line(format!("{what} {name}"));
        self.below(|tree| {
            let mut depth = 0;
            if let Some(count) = &target.limit {
                tree.line(format!("Limit: {count} row(s)"));
                tree.depth += 1;
                depth += 1;
            }
            if !target.sort.is_empty() {
                tree.line(format!("Sort: {}", list(target.sort.iter().map(|(key, _)| key.to_string()))));
                tree.depth += 1;
                depth += 1;
            }
            let filter = target.filter.as_ref();
            let read = Read { table: &target.table, access: &target.access, filter, columns: &Columns::All };
            tree.filtered(filter, |tree| tree.line(reading(&read, name, target.rows)));
            tree.depth -= depth;
        });
    }

    /// Writes the steps of a direct plan from the last to the first.
    fn direct(&mut self, plan: &DirectPlan) {
        let outermost = self.depth;
        let mut step = |what: String| {
            self.line(what);
            self.depth += 1;
        };
        if plan.limit.count.is_some() || plan.limit.offset.is_some() {
            step(limit_line(&plan.limit));
        }
        if !plan.sort.is_empty() {
            step("Sort".to_owned());
        }
        if plan.distinct {
            step("Remove duplicates".to_owned());
        }
        if let Some(having) = &plan.having {
            step(format!("Filter: {}", within(having)));
        }
        if let Some(group) = &plan.group {
            let name = if group.explicit { "Group aggregate" } else { "Aggregate" };
            step(format!("{name}: {}", list(group.aggregates.iter().map(aggregate_text))));
        }
        if let Some(filter) = &plan.constant_filter {
            step(format!("Filter: {}", within(filter)));
        }
        match &plan.table {
            None => self.line("Rows fetched before execution"),
            Some(table) => {
                let filter = table.filter.as_ref();
                let (access, columns) = (&table.access, &table.columns);
                let read = Read { table: &table.table, access, filter, columns };
                let rows = table.rows_estimate as f64;
                self.filtered(filter, |tree| tree.line(reading(&read, &table.name, rows)));
            }
        }
        self.depth = outermost;
    }

    fn plan(&mut self, plan: &Plan) {
        self.node(&plan.root);
        for (n, common) in plan.common.iter().enumerate() {
            let kind = if common.step.is_some() { "recursive CTE" } else { "CTE" };
            self.line(format!("Materialize {kind} <derived{}>", n + 2));
            self.below(|tree| {
                tree.node(&common.seed);
                if let Some(step) = &common.step {
                    tree.operator("Repeat until convergence", [&step.node]);
                }
            });
        }
        for (n, subquery) in plan.subqueries.iter().enumerate() {
            if !matches!(subquery.root, Node::Empty) {
                let kind = if subquery.reads.is_empty() { "run only once" } else { "dependent" };
                self.operator(format!("Subquery {} ({kind})", n + 1), [&subquery.root]);
            }
        }
    }

    fn scan(&mut self, scan: &Scan) {
        let filter = scan.filter.as_ref();
        let read = Read { table: &scan.table, access: &scan.access, filter, columns: &scan.read };
        self.filtered(filter, |tree| tree.line(reading(&read, &scan.name, scan.rows)));
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Unit | Node::Values(_) => self.line("Rows fetched before execution"),
            Node::Empty => self.line("Zero rows"),
            Node::Scan(scan) => self.scan(scan),
            Node::Virtual(scan) => {
                let what = format!("Fill information schema table {}", scan.name);
                self.filtered(scan.filter.as_ref(), |tree| tree.line(what));
            }
            Node::Common { number } => self.line(format!("Table scan on <derived{}>", number + 2)),
            Node::Series { first, last, step } => {
                self.line(format!("Series from {first} to {last} step {step}"));
            }
            Node::Filter { input, condition } | Node::OneTimeFilter { input, condition } => {
                self.operator(format!("Filter: {}", within(condition)), [&**input]);
            }
            Node::Convert { input, .. } | Node::Project { input, .. } | Node::Extend { input, .. } => {
                self.node(input);
            }
            Node::Join(_) => self.join(node),
            Node::Aggregate(group) => {
                let calls = list(group.aggregates.iter().map(aggregate_text));
                let how = match (group.is_grouped, group.ordered || group.rollup) {
                    (false, _) => "Aggregate",
                    (true, true) => "Group aggregate",
                    (true, false) => "Aggregate using temporary table",
                };
                let rollup = if group.rollup { " (rollup)" } else { "" };
                let calls = if calls.is_empty() { calls } else { format!(": {calls}") };
                self.operator(format!("{how}{rollup}{calls}"), [&group.input]);
            }
            Node::Window(window) => self.operator("Window aggregate", [&window.input]),
            Node::Sort(sort) => {
                let keys = list(sort.keys.iter().map(|(key, _)| key.to_string()));
                let limit = sort.limit.as_ref().and_then(|limit| limit.count.as_ref());
                let limit = limit.map_or(String::new(), |count| format!(", limit input to {count} row(s)"));
                self.operator(format!("Sort: {keys}{limit}"), [&sort.input]);
            }
            Node::Limit(limit) => self.operator(limit_line(&limit.limit), [&limit.input]),
            Node::Distinct { input, .. } => self.operator("Remove duplicates", [&**input]),
            Node::Concat(inputs) => self.operator("Append", inputs),
            Node::SetOperation(operation) => {
                let what = if operation.wants_common { "Intersect" } else { "Except" };
                let all = if operation.all { " all" } else { "" };
                self.operator(format!("{what}{all} materialize"), [&operation.left, &operation.right]);
            }
            Node::SetChain(chain) => {
                self.line("Set operations");
                self.below(|tree| {
                    for input in &chain.inputs {
                        let what = match input.op {
                            SetOperator::Union => "Union",
                            SetOperator::Except => "Except",
                            SetOperator::Intersect => "Intersect",
                        };
                        tree.operator(what, [&input.node]);
                    }
                });
            }
        }
    }

    fn join(&mut self, node: &Node) {
        let Node::Join(join) = node else { return };
        let on = join.on.as_ref();
        let inner = join.kind == JoinKind::Inner;
        // The condition of an outer join belongs to the join, that of an inner one filters its rows.
        let extra =
            on.filter(|_| !inner).map_or(String::new(), |on| format!(", extra conditions: {}", within(on)));
        let nested = match join.kind {
            JoinKind::Inner => "Nested loop inner join",
            JoinKind::Left => "Nested loop left join",
            JoinKind::Semi => "Nested loop semijoin",
            JoinKind::Anti => "Nested loop antijoin",
        };
        self.filtered(on.filter(|_| inner), |tree| match &join.method {
            JoinMethod::Lookup(scan) => {
                tree.line(format!("{nested}{extra}"));
                tree.below(|tree| {
                    tree.node(&join.left);
                    tree.scan(scan);
                });
            }
            JoinMethod::Json(scan) => {
                tree.line(format!("{nested}{extra}"));
                tree.below(|tree| {
                    tree.node(&join.left);
                    tree.line(format!("Materialize table function {}", scan.name));
                });
            }
            JoinMethod::Loop { right, gate, .. } => {
                let gate = gate.as_ref().map_or(String::new(), |gate| format!(", if {}", within(gate)));
                tree.operator(format!("{nested}{extra}{gate}"), [&join.left, right]);
            }
            JoinMethod::Hash { right, keys, .. } => {
                let keys = list(keys.iter().map(|key| format!("({}={})", key.left, key.right)));
                let kind = match join.kind {
                    JoinKind::Inner => "Inner hash join",
                    JoinKind::Left => "Left hash join",
                    JoinKind::Semi => "Hash semijoin",
                    JoinKind::Anti => "Hash antijoin",
                };
                tree.line(format!("{kind} {keys}{extra}"));
                tree.below(|tree| {
                    tree.node(&join.left);
                    tree.operator("Hash", [right]);
                });
            }
        });
    }
}
