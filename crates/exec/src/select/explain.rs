//! EXPLAIN in MariaDB's table form.

use std::collections::HashSet;
use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_expr::Expr;
use cohort_protocol::{ColumnMeta, TypeCode};
use cohort_types::{Collation, Value};

use crate::dispatch::Planned;
use crate::plan::{Method, PlanBody, QueryPlan, SelectPlan, Source, Step, TargetPlan};
use crate::table::{Access, Spans};

/// Columns and rows of EXPLAIN.
pub(crate) fn explain(plan: &Planned) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    let mut lines = Lines { rows: Vec::new(), shown: HashSet::new(), next_id: 1 };
    match plan {
        Planned::Query(query) => lines.query(query, "SIMPLE"),
        Planned::Insert(insert) => match insert.query() {
            Some(query) => lines.query(query, "SIMPLE"),
            None => lines.push(1, "INSERT", Some(&insert.table().name.table), Line::of_kind("ALL")),
        },
        Planned::Update(update) => lines.target(update.target()),
        Planned::Delete(delete) => lines.target(delete.target()),
    }
    (columns(), lines.rows)
}

fn columns() -> Vec<ColumnMeta> {
    let number =
        |name: &str, digits| ColumnMeta::expression(name, TypeCode::LongLong, digits, Collation::BINARY);
    vec![
        number("id", 3),
        ColumnMeta::text("select_type", 19),
        ColumnMeta::text("table", 64),
        ColumnMeta::text("type", 10),
        ColumnMeta::text("possible_keys", 4096),
        ColumnMeta::text("key", 64),
        ColumnMeta::text("key_len", 4096),
        ColumnMeta::text("ref", 2048),
        ColumnMeta::text("rows", 64),
        ColumnMeta::text("Extra", 255),
    ]
}

#[derive(Default)]
struct Line {
    kind: Option<&'static str>,
    keys: Option<String>,
    key: Option<String>,
    reference: Option<String>,
    rows: Option<u64>,
    extra: Vec<&'static str>,
}

impl Line {
    fn of_kind(kind: &'static str) -> Line {
        Line { kind: Some(kind), ..Line::default() }
    }
}

struct Lines {
    rows: Vec<Vec<Value>>,
    shown: HashSet<*const QueryPlan>,
    next_id: i64,
}

impl Lines {
    fn query(&mut self, plan: &QueryPlan, select_type: &str) {
        match &plan.body {
            PlanBody::Select(select) => self.select(select, select_type),
            PlanBody::Nested(inner) => self.query(inner, select_type),
            PlanBody::Set(set) => {
                for (n, operand) in set.operands.iter().enumerate() {
                    self.query(operand, if n == 0 { "PRIMARY" } else { "UNION" });
                }
            }
            PlanBody::Values(_) => {
                let id = self.id();
                let line = Line { extra: vec!["No tables used"], ..Line::default() };
                self.push(id, select_type, None, line);
            }
        }
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn select(&mut self, select: &SelectPlan, select_type: &str) {
        let id = self.id();
        if select.steps.is_empty() {
            self.push(id, select_type, None, Line { extra: vec!["No tables used"], ..Line::default() });
            return;
        }
        let derived = select.steps.iter().any(|s| matches!(s.source, Source::Derived(_)));
        let select_type = if derived && select_type == "SIMPLE" { "PRIMARY" } else { select_type };
        for (n, step) in select.steps.iter().enumerate() {
            let mut line = step_line(step);
            if n == 0 {
                if select.group.as_ref().is_some_and(|g| g.explicit) || select.distinct {
                    line.extra.push("Using temporary");
                }
                if !select.sort.is_empty() || select.group.as_ref().is_some_and(|g| g.explicit) {
                    line.extra.push("Using filesort");
                }
            }
            self.push(id, select_type, Some(&step.name), line);
        }
        for step in &select.steps {
            // What several references share is shown at the first.
            if let Source::Derived(inner) = &step.source
                && self.shown.insert(Arc::as_ptr(inner))
            {
                self.query(inner, "DERIVED");
            }
        }
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

    fn push(&mut self, id: i64, select_type: &str, table: Option<&str>, line: Line) {
        let text = |t: Option<String>| t.map_or(Value::Null, Value::text);
        self.rows.push(vec![
            Value::Int(id),
            Value::text(select_type),
            table.map_or(Value::Null, Value::text),
            line.kind.map_or(Value::Null, Value::text),
            text(line.keys),
            text(line.key),
            Value::Null,
            text(line.reference),
            text(line.rows.map(|n| n.to_string())),
            Value::text(line.extra.join("; ")),
        ]);
    }
}

fn step_line(step: &Step) -> Line {
    let mut line = match (&step.source, &step.method) {
        (Source::Base { table, .. }, Method::Scan(access)) => {
            access_line(table, access, Some(step.rows_estimate))
        }
        (Source::Base { table, .. }, Method::Buffer { access, keys }) => {
            let mut line = match access {
                Some(access) => access_line(table, access, Some(step.rows_estimate)),
                None => Line::of_kind("ALL"),
            };
            line.extra.push(match keys.is_empty() {
                true => "Using join buffer (flat, BNL join)",
                false => "Using join buffer (flat, BNLH join)",
            });
            line
        }
        _ => Line { kind: Some("ALL"), rows: Some(step.rows_estimate), ..Line::default() },
    };
    if step.filter.is_some() || step.on.is_some() {
        line.extra.insert(0, "Using where");
    }
    line
}

fn access_line(table: &Table, access: &Access, rows: Option<u64>) -> Line {
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
fn is_open(span: &crate::table::Span) -> bool {
    use std::ops::Bound;
    matches!((&span.lower, &span.upper), (Bound::Unbounded, Bound::Unbounded))
}
