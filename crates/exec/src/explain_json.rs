//! EXPLAIN FORMAT=JSON and ANALYZE FORMAT=JSON: the operators as nested blocks. Members have MariaDB's names
//! where MariaDB has an equivalent.
//!
//! A block is a SELECT. Its tables are listed in `nested_loop` in join order, inside the members for sorting,
//! grouping and duplicate removal. Materialized derived tables and common table expressions are nested where
//! they are read.
//!
//! # Missing
//! - Costs, and `filtered` other than 100: the planner does not estimate them.
//! - `pages_updated` of `r_engine_stats`: pages are changed by the commit, for all transactions of a group.
//! - For a query of one table, the time of grouping, sorting and duplicate removal is part of
//!   `r_other_time_ms`.
//! - The time of a table's conditions is part of `r_table_time_ms`.
//! - A derived table that is the only table of its query shares one block with that query.

use cohort_base::EngineWork;
use cohort_dml::TargetPlan;
use cohort_expr::Expr;
use cohort_optimize::{Columns, JoinMethod, Node, PartId, Plan, Scan};
use cohort_protocol::ColumnMeta;
use cohort_query::{DirectPlan, PlanBody, QueryPlan};
use cohort_run::{NodeProfile, PlanProfile};
use cohort_sql::ast::{ExplainFormat, SetOperator};
use cohort_types::Value;

use crate::cached_plan::Planned;
use crate::explain::{block_of, explain_columns};
use crate::explain_access::{Line, Measures, Profiled, Read, shown_expr};
use crate::plan_json::{Json, Members};

/// Returns column and row of EXPLAIN FORMAT=JSON, or of ANALYZE FORMAT=JSON if there is a `profile`.
pub(crate) fn explain_json(
    plan: &Planned,
    profile: Option<&PlanProfile>,
) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    explain_whole(plan, profile, None)
}

/// Returns column and row of SHOW ANALYZE FORMAT=JSON for a statement that has been running for `took_ms`.
pub(crate) fn explain_json_in_progress(
    plan: &Planned,
    profile: &PlanProfile,
    took_ms: u64,
) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    explain_whole(plan, Some(profile), Some(took_ms))
}

fn explain_whole(
    plan: &Planned,
    profile: Option<&PlanProfile>,
    in_progress_ms: Option<u64>,
) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    let block = match plan {
        Planned::Query(query) => of_query(query, profile),
        Planned::Insert(insert) => match insert.query() {
            Some(query) => of_query(query, profile),
            None => {
                let name = Json::Text(insert.table().name.table.clone());
                block(1, vec![("table", Json::Object(vec![("table_name", name)]))])
            }
        },
        Planned::Update(update) => of_target("update", update.target(), profile),
        Planned::Delete(delete) => of_target("delete", delete.target(), profile),
        Planned::Joined(change) => of_query(change.source(), profile),
    };
    let mut whole: Members =
        in_progress_ms.map(|ms| ("r_query_time_in_progress_ms", Json::Number(ms))).into_iter().collect();
    if let Some(profile) = profile.filter(|profile| profile.is_timed()) {
        let planning = vec![("r_total_time_ms", milliseconds(profile.planning()))];
        whole.push(("query_optimization", Json::Object(planning)));
    }
    whole.push(("query_block", Json::Object(block)));
    let mut text = String::new();
    Json::Object(whole).write(0, &mut text);
    let format = if profile.is_some() { ExplainFormat::AnalyzeJson } else { ExplainFormat::Json };
    (explain_columns(format), vec![vec![Value::text(text)]])
}

fn block(id: u32, inner: Members) -> Members {
    std::iter::once(("select_id", Json::Number(id.into()))).chain(inner).collect()
}

fn milliseconds(nanos: u64) -> Json {
    Json::Real(nanos as f64 / 1e6)
}

/// Returns the work of the engine. As in MariaDB, numbers that are 0 are left out. `lock_wait_time_ms` does
/// not exist there.
fn engine_stats(work: &EngineWork) -> Json {
    let numbers = [
        ("pages_accessed", work.pages_accessed),
        ("pages_read_count", work.pages_read),
        ("pages_prefetch_read_count", work.pages_prefetched),
        ("old_rows_read", work.old_rows),
    ];
    let times = [("pages_read_time_ms", work.read_ns), ("lock_wait_time_ms", work.lock_wait_ns)];
    let numbers = numbers.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name, Json::Number(n)));
    let times = times.into_iter().filter(|(_, ns)| *ns > 0).map(|(name, ns)| (name, milliseconds(ns)));
    Json::Object(numbers.chain(times).collect())
}

/// Returns the number of loops, and their total time if times were measured.
fn loops_and_time(measure: NodeProfile, is_timed: bool) -> Members {
    let mut members = vec![("r_loops", Json::Number(measure.loops))];
    members.extend(is_timed.then(|| ("r_total_time_ms", milliseconds(measure.nanos))));
    members
}

fn of_target(what: &'static str, target: &TargetPlan, profile: Option<&PlanProfile>) -> Members {
    let filter = target.filter.as_ref();
    let read = Read { table: &target.table, access: &target.access, filter, columns: &Columns::All };
    let mut line = read.line_of_change();
    line.measured = profile.map(|profile| Profiled { read: profile.of(target.part), other: None });
    let timed = line.measured.filter(|_| is_timed(profile));
    let total = timed.map(|measured| ("r_total_time_ms", milliseconds(measured.read.nanos)));
    let mut table = vec![(what, Json::Number(1))];
    table.extend(table_members(&target.table.name.table, line, target.filter.as_ref(), is_timed(profile)));
    block(1, total.into_iter().chain([("table", Json::Object(table))]).collect())
}

fn is_timed(profile: Option<&PlanProfile>) -> bool {
    profile.is_some_and(PlanProfile::is_timed)
}

fn of_query(query: &QueryPlan, profile: Option<&PlanProfile>) -> Members {
    let measures = profile.map(|profile| Measures::of_query(profile, query));
    match &query.body {
        PlanBody::Direct(direct) => of_direct(direct, measures),
        PlanBody::Tree(plan) => {
            let mut blocks = Blocks { plan, measures, last: 0, kept: vec![false; plan.common.len()] };
            let mut root = blocks.block(&plan.root, None);
            let subqueries: Vec<Json> = plan
                .subqueries
                .iter()
                .filter(|subquery| !matches!(subquery.root, Node::Empty))
                .map(|subquery| {
                    let inner = blocks.block(&subquery.root, None);
                    Json::Object(vec![("query_block", Json::Object(inner))])
                })
                .collect();
            if !subqueries.is_empty() {
                root.push(("subqueries", Json::List(subqueries)));
            }
            root
        }
    }
}

fn of_direct(direct: &DirectPlan, measures: Option<Measures<'_>>) -> Members {
    let Some(table) = &direct.table else {
        return block(direct.block, vec![("table", no_tables())]);
    };
    let filter = table.filter.as_ref();
    let read = Read { table: &table.table, access: &table.access, filter, columns: &table.columns };
    let mut line = read.line(Some(table.rows_estimate));
    let is_timed = measures.as_ref().is_some_and(Measures::is_timed);
    let whole = measures.as_ref().map(Measures::direct);
    line.measured = measures.map(|measures| {
        let mut measured = measures.reads(DirectPlan::READS);
        measured.other = whole.map(|whole| whole.nanos.saturating_sub(measured.read.nanos));
        measured
    });
    let members = table_members(&table.name, line, table.filter.as_ref(), is_timed);
    let mut inner = nested_loop(vec![Json::Object(vec![("table", Json::Object(members))])]);
    if direct.group.as_ref().is_some_and(|group| group.explicit) || direct.distinct {
        inner = vec![("temporary_table", Json::Object(inner))];
    }
    if !direct.sort.is_empty() || direct.group.as_ref().is_some_and(|group| group.sort_by_key) {
        inner = vec![("filesort", Json::Object(inner))];
    }
    let head = whole.map(|whole| loops_and_time(whole, is_timed)).unwrap_or_default();
    block(direct.block, head.into_iter().chain(inner).collect())
}

fn no_tables() -> Json {
    Json::Object(vec![("message", Json::Text("No tables used".into()))])
}

fn nested_loop(tables: Vec<Json>) -> Members {
    vec![("nested_loop", Json::List(tables))]
}

fn table_members(name: &str, line: Line, condition: Option<&Expr>, is_timed: bool) -> Members {
    let mut members = vec![("table_name", Json::Text(name.to_owned()))];
    if let Some(kind) = line.kind {
        members.push(("access_type", Json::Text(kind.to_owned())));
    }
    if let Some(keys) = line.keys {
        members.push(("possible_keys", Json::Texts(keys.split(',').map(str::to_owned).collect())));
    }
    if let Some(key) = line.key {
        members.push(("key", Json::Text(key)));
        members.extend(line.key_len.map(|bytes| ("key_length", Json::Text(bytes.to_string()))));
        members.push(("used_key_parts", Json::Texts(line.used_parts)));
    }
    if let Some(reference) = line.reference {
        members.push(("ref", Json::Texts(reference.split(',').map(str::to_owned).collect())));
    }
    let measured = line.measured;
    members.extend(measured.map(|measured| ("r_loops", Json::Number(measured.read.loops))));
    members.extend(line.rows.map(|rows| ("rows", Json::Number(rows))));
    if let Some(measured) = measured {
        members.push(("r_rows", measured.rows().map_or(Json::Null, Json::Real)));
        if measured.read.loops > 0 && is_timed {
            members.push(("r_table_time_ms", milliseconds(measured.read.nanos)));
        }
        members.extend(
            measured.other.filter(|_| is_timed).map(|nanos| ("r_other_time_ms", milliseconds(nanos))),
        );
        if measured.read.loops > 0 && is_timed {
            members.push(("r_engine_stats", engine_stats(&measured.read.engine)));
        }
    }
    members.push(("filtered", Json::Number(100)));
    if let Some(measured) = measured {
        members.push(("r_filtered", measured.filtered().map_or(Json::Null, Json::Real)));
    }
    members.extend(condition.map(|condition| ("attached_condition", Json::Text(shown_expr(condition)))));
    members.extend(line.extra.contains(&"Using index").then_some(("using_index", Json::True)));
    members
}

/// State of the walk over a plan of operators.
struct Blocks<'p> {
    plan: &'p Plan,
    measures: Option<Measures<'p>>,
    /// Highest block number so far.
    last: u32,
    /// For each common table expression, true once its block has been output.
    kept: Vec<bool>,
}

impl<'p> Blocks<'p> {
    /// Returns the block whose topmost operator is `node`. `operation` is the set operator that combines it
    /// with the blocks before it.
    fn block(&mut self, node: &'p Node, operation: Option<&'static str>) -> Members {
        if let Some(operands) = operands_of(node) {
            return self.union(operands);
        }
        let mut first = None;
        node.each(&mut |node| first = first.or(block_of(node)));
        let id = first.unwrap_or(self.last + 1);
        self.last = self.last.max(id);
        let mut members = block(id, Vec::new());
        members.extend(operation.map(|operation| ("operation", Json::Text(operation.to_owned()))));
        let is_timed = self.is_timed();
        members.extend(self.measure(node).map(|m| loops_and_time(m, is_timed)).unwrap_or_default());
        members.extend(self.body(node));
        members
    }

    /// Returns the statistics of an operator, including its inputs; `None` for EXPLAIN.
    fn measure(&self, node: &Node) -> Option<NodeProfile> {
        self.measures.as_ref().map(|measures| measures.node(node))
    }

    fn is_timed(&self) -> bool {
        self.measures.as_ref().is_some_and(Measures::is_timed)
    }

    /// Returns the statistics of an operator without its inputs.
    fn own(&self, node: &Node) -> Option<NodeProfile> {
        let mut own = self.measure(node)?;
        for input in node.inputs().into_iter().filter_map(|input| self.measure(input)) {
            own.nanos = own.nanos.saturating_sub(input.nanos);
            own.spills = own.spills.saturating_sub(input.spills);
        }
        Some(own)
    }

    fn union(&mut self, operands: Vec<(SetOperator, &'p Node)>) -> Members {
        let mut ids = Vec::new();
        let mut specifications = Vec::new();
        for (n, (op, node)) in operands.into_iter().enumerate() {
            let operation = match op {
                _ if n == 0 => None,
                SetOperator::Union => Some("UNION"),
                SetOperator::Except => Some("EXCEPT"),
                SetOperator::Intersect => Some("INTERSECT"),
            };
            let inner = self.block(node, operation);
            if let Some(("select_id", Json::Number(id))) = inner.first() {
                ids.push(id.to_string());
            }
            specifications.push(Json::Object(vec![("query_block", Json::Object(inner))]));
        }
        let result = vec![
            ("table_name", Json::Text(format!("<union{}>", ids.join(",")))),
            ("access_type", Json::Text("ALL".into())),
            ("query_specifications", Json::List(specifications)),
        ];
        vec![("union_result", Json::Object(result))]
    }

    /// Returns the members for a SELECT's tables, nested in those for sorting, grouping and duplicate
    /// removal.
    fn body(&mut self, node: &'p Node) -> Members {
        let around = |name, inner| vec![(name, Json::Object(inner))];
        match node {
            Node::Limit(node) => self.body(&node.input),
            Node::Project { input, .. } | Node::Extend { input, .. } | Node::Convert { input, .. } => {
                self.body(input)
            }
            Node::Filter { input, condition } | Node::OneTimeFilter { input, condition } => {
                let mut inner = self.body(input);
                inner.insert(0, ("having_condition", Json::Text(shown_expr(condition))));
                if !matches!(&**input, Node::Aggregate(_)) {
                    inner[0].0 = "attached_condition";
                }
                inner
            }
            Node::Sort(sort) => {
                let keys = sort.keys.iter().map(|(expr, _)| shown_expr(expr));
                let keys: Vec<String> = keys.filter(|key| !key.is_empty()).collect();
                let mut inner = self.body(&sort.input);
                let mut head: Members = Vec::new();
                if !keys.is_empty() {
                    head.push(("sort_key", Json::Text(keys.join(", "))));
                }
                if let Some(own) = self.own(node) {
                    head.extend(loops_and_time(own, self.is_timed()));
                    if sort.limit.is_some() {
                        head.push(("r_used_priority_queue", Json::True));
                    }
                    head.push(("r_output_rows", Json::Number(own.rows)));
                    head.extend((own.spills > 0).then_some(("r_spill_files", Json::Number(own.spills))));
                }
                head.append(&mut inner);
                around("filesort", head)
            }
            Node::Distinct { input, .. } => around("temporary_table", self.body(input)),
            Node::Aggregate(group) if group.is_grouped => {
                let inner = around("temporary_table", self.body(&group.input));
                if group.ordered { around("filesort", inner) } else { inner }
            }
            Node::Aggregate(group) => self.body(&group.input),
            Node::Window(window) => around("window_functions_computation", self.body(&window.input)),
            Node::Unit | Node::Empty | Node::Values(_) => vec![("table", no_tables())],
            node => {
                let mut tables = Vec::new();
                self.tables(node, &mut tables);
                nested_loop(tables)
            }
        }
    }

    /// Appends the tables of a join, from left to right.
    fn tables(&mut self, node: &'p Node, tables: &mut Vec<Json>) {
        let table = |members| Json::Object(vec![("table", Json::Object(members))]);
        match node {
            Node::Scan(scan) => tables.push(table(self.scan_members(scan, self.measure(node)))),
            Node::Virtual(scan) => {
                let mut line = Line::of_kind("ALL");
                line.measured = self.measured(scan.part, self.measure(node));
                if let (Some(measured), Some(whole)) = (&mut line.measured, self.measure(node)) {
                    measured.read.rows = whole.rows;
                }
                tables.push(table(table_members(&scan.name, line, scan.filter.as_ref(), self.is_timed())));
            }
            Node::Series { .. } => {
                tables.push(table(table_members("seq", Line::of_kind("index"), None, false)))
            }
            Node::Common { number } => {
                let name = format!("<derived{}>", number + 2);
                let mut members = table_members(&name, Line::of_kind("ALL"), None, false);
                if !std::mem::replace(&mut self.kept[*number], true) {
                    let plan = self.plan;
                    let inner = self.block(&plan.common[*number].seed, None);
                    let inner = vec![("query_block", Json::Object(inner))];
                    members.push(("materialized", Json::Object(inner)));
                }
                tables.push(table(members));
            }
            Node::Join(join) => {
                self.tables(&join.left, tables);
                let (right, kind) = match &join.method {
                    JoinMethod::Lookup(scan) => {
                        return tables.push(table(self.scan_members(scan, self.own(node))));
                    }
                    JoinMethod::Json(scan) => {
                        let line = Line { extra: Vec::new(), ..Line::of_json_table() };
                        let mut members = table_members(&scan.name, line, join.on.as_ref(), false);
                        members.push(("table_function", Json::Text("json_table".into())));
                        return tables.push(table(members));
                    }
                    JoinMethod::Hash { right, .. } => (right, "BNLH"),
                    JoinMethod::Loop { right, .. } => (right, "BNL"),
                };
                let before = tables.len();
                self.tables(right, tables);
                if let [Json::Object(members)] = &mut tables[before..] {
                    let mut inner = std::mem::take(members);
                    inner.push(("buffer_type", Json::Text("flat".into())));
                    inner.push(("join_type", Json::Text(kind.into())));
                    let gate = match &join.method {
                        JoinMethod::Loop { gate, .. } => gate.as_ref(),
                        _ => None,
                    };
                    let parts: Vec<String> = gate.into_iter().chain(&join.on).map(shown_expr).collect();
                    if !parts.is_empty() {
                        inner.push(("attached_condition", Json::Text(parts.join(" and "))));
                    }
                    if let Some(own) = self.own(node) {
                        inner.push(("r_loops", Json::Number(own.loops)));
                        inner.push(("r_output_rows", Json::Number(own.rows)));
                        inner.extend(self.is_timed().then(|| ("r_other_time_ms", milliseconds(own.nanos))));
                    }
                    *members = vec![("block-nl-join", Json::Object(inner))];
                }
            }
            Node::Filter { input, condition } if matches!(&**input, Node::Scan(_) | Node::Join(_)) => {
                self.tables(input, tables);
                if let Some(Json::Object(members)) = tables.last_mut()
                    && let Some((_, Json::Object(members))) = members.first_mut()
                {
                    members.push(("attached_condition", Json::Text(shown_expr(condition))));
                }
            }
            Node::Project { input, .. } if !matches!(&**input, Node::Aggregate(_)) => {
                self.tables(input, tables)
            }
            // A derived table that is not merged into its outer query.
            other => {
                let inner = self.block(other, None);
                let mut members =
                    table_members(&format!("<derived{}>", self.last), Line::of_kind("ALL"), None, false);
                let inner = vec![("query_block", Json::Object(inner))];
                members.push(("materialized", Json::Object(inner)));
                tables.push(table(members));
            }
        }
    }

    /// Returns the members of a table. `whole` is the statistics of the operator that reads it.
    fn scan_members(&self, scan: &Scan, whole: Option<NodeProfile>) -> Members {
        let filter = scan.filter.as_ref();
        let read = Read { table: &scan.table, access: &scan.access, filter, columns: &scan.read };
        let mut line = read.line(Some(scan.rows as u64));
        line.measured = self.measured(scan.part, whole);
        table_members(&scan.name, line, scan.filter.as_ref(), self.is_timed())
    }

    fn measured(&self, part: PartId, whole: Option<NodeProfile>) -> Option<Profiled> {
        let mut measured = self.measures.as_ref()?.reads(part);
        let reading = measured.read.nanos;
        let whole = whole.filter(|whole| whole.loops > 0);
        measured.other = whole.map(|whole| whole.nanos.saturating_sub(reading));
        Some(measured)
    }
}

/// Returns the operands of a set operation.
fn operands_of(node: &Node) -> Option<Vec<(SetOperator, &Node)>> {
    match node {
        Node::Limit(limit) => operands_of(&limit.input),
        Node::Sort(sort) => operands_of(&sort.input),
        Node::Distinct { input, .. } | Node::Convert { input, .. } => operands_of(input),
        Node::Concat(inputs) => {
            let mut operands = Vec::new();
            for (n, input) in inputs.iter().enumerate() {
                match operands_of(input).filter(|_| n == 0) {
                    Some(inner) => operands.extend(inner),
                    None => operands.push((SetOperator::Union, input)),
                }
            }
            Some(operands)
        }
        Node::SetOperation(node) => {
            let op = if node.wants_common { SetOperator::Intersect } else { SetOperator::Except };
            let left = operands_of(&node.left).unwrap_or_else(|| vec![(SetOperator::Union, &node.left)]);
            // Consecutive operands of the same operator form one list.
            let right = match &node.right {
                Node::Concat(inputs) => inputs.iter().collect(),
                other => vec![other],
            };
            Some(left.into_iter().chain(right.into_iter().map(|node| (op, node))).collect())
        }
        Node::SetChain(chain) => Some(chain.inputs.iter().map(|input| (input.op, &input.node)).collect()),
        _ => None,
    }
}
