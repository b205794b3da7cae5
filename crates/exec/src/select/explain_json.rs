//! EXPLAIN FORMAT=JSON: the operators as nested blocks, with MariaDB's names for what both have.
//!
//! A block is a SELECT. Its tables stand in `nested_loop` in the order in which they are joined; sorts,
//! groups and duplicates stand around it. Derived tables and common tables that are kept stand where they are
//! read.
//!
//! # Missing
//! Costs, and `filtered` other than 100: nothing here estimates them.
//! A derived table that is read alone is one block with the query that reads it.

use cohort_expr::Expr;
use cohort_optimize::{Columns, JoinMethod, Node, Plan, Scan};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast::SetOperator;
use cohort_types::Value;

use crate::dispatch::Planned;
use crate::plan::{DirectPlan, PlanBody, QueryPlan, TargetPlan};
use crate::select::explain::block_of;
use crate::select::explain_access::{Line, Read};

/// A JSON value as it is written: members in their order.
enum Json {
    Text(String),
    Number(u64),
    /// Of texts, on one line.
    Texts(Vec<String>),
    List(Vec<Json>),
    Object(Members),
}

type Members = Vec<(&'static str, Json)>;

/// The column and the row of EXPLAIN FORMAT=JSON.
pub(crate) fn explain_json(plan: &Planned) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    let block = match plan {
        Planned::Query(query) => of_query(query),
        Planned::Insert(insert) => match insert.query() {
            Some(query) => of_query(query),
            None => {
                let name = Json::Text(insert.table().name.table.clone());
                block(1, vec![("table", Json::Object(vec![("table_name", name)]))])
            }
        },
        Planned::Update(update) => of_target("update", update.target()),
        Planned::Delete(delete) => of_target("delete", delete.target()),
        Planned::Joined(change) => of_query(change.source()),
    };
    let mut text = String::new();
    Json::Object(vec![("query_block", Json::Object(block))]).write(0, &mut text);
    (vec![ColumnMeta::text("EXPLAIN", 78)], vec![vec![Value::text(text)]])
}

fn block(id: u32, inner: Members) -> Members {
    std::iter::once(("select_id", Json::Number(id.into()))).chain(inner).collect()
}

fn of_target(what: &'static str, target: &TargetPlan) -> Members {
    let filter = target.filter.as_ref();
    let read = Read { table: &target.table, access: &target.access, filter, columns: &Columns::All };
    let line = read.line(None);
    let mut table = vec![(what, Json::Number(1))];
    table.extend(table_members(&target.table.name.table, line, target.filter.as_ref()));
    block(1, vec![("table", Json::Object(table))])
}

fn of_query(query: &QueryPlan) -> Members {
    match &query.body {
        PlanBody::Direct(direct) => of_direct(direct),
        PlanBody::Tree(plan) => {
            let mut blocks = Blocks { plan, last: 0, kept: vec![false; plan.common.len()] };
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

fn of_direct(direct: &DirectPlan) -> Members {
    let Some(table) = &direct.table else {
        return block(direct.block, vec![("table", no_tables())]);
    };
    let filter = table.filter.as_ref();
    let read = Read { table: &table.table, access: &table.access, filter, columns: &table.columns };
    let line = read.line(Some(table.rows_estimate));
    let members = table_members(&table.name, line, table.filter.as_ref());
    let mut inner = nested_loop(vec![Json::Object(vec![("table", Json::Object(members))])]);
    if direct.group.as_ref().is_some_and(|group| group.explicit) || direct.distinct {
        inner = vec![("temporary_table", Json::Object(inner))];
    }
    if !direct.sort.is_empty() || direct.group.as_ref().is_some_and(|group| group.sort_by_key) {
        inner = vec![("filesort", Json::Object(inner))];
    }
    block(direct.block, inner)
}

fn no_tables() -> Json {
    Json::Object(vec![("message", Json::Text("No tables used".into()))])
}

fn nested_loop(tables: Vec<Json>) -> Members {
    vec![("nested_loop", Json::List(tables))]
}

fn table_members(name: &str, line: Line, condition: Option<&Expr>) -> Members {
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
    members.extend(line.rows.map(|rows| ("rows", Json::Number(rows))));
    members.push(("filtered", Json::Number(100)));
    members.extend(condition.map(|condition| ("attached_condition", Json::Text(condition.to_string()))));
    members
}

/// The blocks of a plan of operators.
struct Blocks<'p> {
    plan: &'p Plan,
    /// The highest number that a block has got.
    last: u32,
    /// Which common tables have been told.
    kept: Vec<bool>,
}

impl<'p> Blocks<'p> {
    /// The block whose topmost operator is `node`. `operation`: how it is put behind others.
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
        members.extend(self.body(node));
        members
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

    /// What stands around the tables, and these.
    fn body(&mut self, node: &'p Node) -> Members {
        let around = |name, inner| vec![(name, Json::Object(inner))];
        match node {
            Node::Limit(node) => self.body(&node.input),
            Node::Project { input, .. } | Node::Extend { input, .. } | Node::Convert { input, .. } => {
                self.body(input)
            }
            Node::Filter { input, condition } | Node::Gate { input, condition } => {
                let mut inner = self.body(input);
                inner.insert(0, ("having_condition", Json::Text(condition.to_string())));
                if !matches!(&**input, Node::Aggregate(_)) {
                    inner[0].0 = "attached_condition";
                }
                inner
            }
            Node::Sort(sort) => {
                let keys = sort.keys.iter().map(|(expr, _)| expr.to_string());
                let keys: Vec<String> = keys.filter(|key| !key.is_empty()).collect();
                let mut inner = self.body(&sort.input);
                if !keys.is_empty() {
                    inner.insert(0, ("sort_key", Json::Text(keys.join(", "))));
                }
                around("filesort", inner)
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

    /// The tables of a join, from left to right.
    fn tables(&mut self, node: &'p Node, tables: &mut Vec<Json>) {
        let table = |members| Json::Object(vec![("table", Json::Object(members))]);
        match node {
            Node::Scan(scan) => tables.push(table(scan_members(scan))),
            Node::Virtual(scan) => {
                tables.push(table(table_members(&scan.name, Line::of_kind("ALL"), scan.filter.as_ref())));
            }
            Node::Series { .. } => tables.push(table(table_members("seq", Line::of_kind("index"), None))),
            Node::Common { number } => {
                let name = format!("<derived{}>", number + 2);
                let mut members = table_members(&name, Line::of_kind("ALL"), None);
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
                    JoinMethod::Lookup(scan) => return tables.push(table(scan_members(scan))),
                    JoinMethod::Hash { right, .. } => (right, "BNLH"),
                    JoinMethod::Loop { right, .. } => (right, "BNL"),
                };
                let before = tables.len();
                self.tables(right, tables);
                if let [Json::Object(members)] = &mut tables[before..] {
                    let mut inner = std::mem::take(members);
                    inner.push(("buffer_type", Json::Text("flat".into())));
                    inner.push(("join_type", Json::Text(kind.into())));
                    let condition =
                        join.on.as_ref().map(|on| ("attached_condition", Json::Text(on.to_string())));
                    inner.extend(condition);
                    *members = vec![("block-nl-join", Json::Object(inner))];
                }
            }
            Node::Filter { input, condition } if matches!(&**input, Node::Scan(_) | Node::Join(_)) => {
                self.tables(input, tables);
                if let Some(Json::Object(members)) = tables.last_mut()
                    && let Some((_, Json::Object(members))) = members.first_mut()
                {
                    members.push(("attached_condition", Json::Text(condition.to_string())));
                }
            }
            Node::Project { input, .. } if !matches!(&**input, Node::Aggregate(_)) => {
                self.tables(input, tables)
            }
            // A query within FROM that stays apart.
            other => {
                let inner = self.block(other, None);
                let mut members =
                    table_members(&format!("<derived{}>", self.last), Line::of_kind("ALL"), None);
                let inner = vec![("query_block", Json::Object(inner))];
                members.push(("materialized", Json::Object(inner)));
                tables.push(table(members));
            }
        }
    }
}

fn scan_members(scan: &Scan) -> Members {
    let filter = scan.filter.as_ref();
    let read = Read { table: &scan.table, access: &scan.access, filter, columns: &scan.read };
    let line = read.line(Some(scan.rows as u64));
    table_members(&scan.name, line, scan.filter.as_ref())
}

/// The operands of a set operation.
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
            // A run of one operator has its operands behind each other.
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

impl Json {
    fn write(&self, depth: usize, out: &mut String) {
        let indent = |depth: usize, out: &mut String| out.push_str(&"  ".repeat(depth));
        match self {
            Json::Text(text) => write_text(text, out),
            Json::Number(number) => out.push_str(&number.to_string()),
            Json::Texts(texts) => {
                out.push('[');
                for (n, text) in texts.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    write_text(text, out);
                }
                out.push(']');
            }
            Json::List(items) => {
                out.push_str("[\n");
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ",\n" });
                    indent(depth + 1, out);
                    item.write(depth + 1, out);
                }
                out.push('\n');
                indent(depth, out);
                out.push(']');
            }
            Json::Object(members) => {
                out.push_str("{\n");
                for (n, (name, value)) in members.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ",\n" });
                    indent(depth + 1, out);
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                out.push('\n');
                indent(depth, out);
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
