//! The optimizer trace: the decisions of the planner as JSON, under MariaDB's names.
//!
//! The planner writes a step when it decides, so the trace contains what was really compared. A step that is
//! written inside of a list becomes an object with one member. Statements that are not traced have no
//! [`OptimizerTrace`], and the planner formats nothing.
//!
//! # Bounds
//! The text has at most `bytes_max` bytes; what would follow is counted and dropped.

use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use cohort_catalog::{ROWS, Table};
use cohort_expr::Expr;

use crate::json_text::{real_text, write_text, write_texts};
use crate::physical::{Access, Choice, Span, Spans};

/// Maximum number of ranges that a trace lists of one access.
const RANGES_MAX: usize = 100;

/// A trace that is being written.
#[derive(Debug)]
pub struct OptimizerTrace {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    text: String,
    bytes_max: usize,
    missing: u64,
    levels: Vec<Level>,
}

/// An open object or list.
#[derive(Debug)]
struct Level {
    is_list: bool,
    members: usize,
    /// It is the one member of an object around it.
    is_wrapped: bool,
}

/// An open object or list of a trace, which ends when this is dropped.
#[must_use]
pub struct TraceScope<'t>(&'t OptimizerTrace);

impl Drop for TraceScope<'_> {
    fn drop(&mut self) {
        self.0.with(State::end);
    }
}

impl State {
    fn put(&mut self, text: &str) {
        let room = self.bytes_max.saturating_sub(self.text.len());
        // Nothing follows a gap.
        let kept = if self.missing > 0 { "" } else { cohort_base::whole_chars(text, room) };
        self.text.push_str(kept);
        self.missing += (text.len() - kept.len()) as u64;
    }

    fn line(&mut self) {
        let indent = "  ".repeat(self.levels.len());
        self.put("\n");
        self.put(&indent);
    }

    /// Begins a member. A member with a name in a list gets an object around it; then this returns true.
    fn member(&mut self, name: Option<&str>) -> bool {
        let is_wrapped = name.is_some() && self.levels.last().is_some_and(|level| level.is_list);
        if let Some(level) = self.levels.last_mut() {
            let is_first = level.members == 0;
            level.members += 1;
            if !is_first {
                self.put(",");
            }
            self.line();
        }
        if is_wrapped {
            self.put("{");
            self.levels.push(Level { is_list: false, members: 1, is_wrapped: false });
            self.line();
        }
        if let Some(name) = name {
            let mut quoted = String::new();
            write_text(name, &mut quoted);
            self.put(&quoted);
            self.put(": ");
        }
        is_wrapped
    }

    fn close_wrap(&mut self) {
        self.levels.pop();
        self.line();
        self.put("}");
    }

    fn value(&mut self, name: Option<&str>, value: &str) {
        let is_wrapped = self.member(name);
        self.put(value);
        if is_wrapped {
            self.close_wrap();
        }
    }

    fn begin(&mut self, name: Option<&str>, is_list: bool) {
        let is_wrapped = self.member(name);
        self.put(if is_list { "[" } else { "{" });
        self.levels.push(Level { is_list, members: 0, is_wrapped });
    }

    fn end(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        if level.members > 0 {
            self.line();
        }
        self.put(if level.is_list { "]" } else { "}" });
        if level.is_wrapped {
            self.close_wrap();
        }
    }
}

impl OptimizerTrace {
    /// Begins a trace of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> OptimizerTrace {
        let state = State { text: String::new(), bytes_max, missing: 0, levels: Vec::new() };
        let trace = OptimizerTrace { state: Mutex::new(state) };
        trace.with(|state| {
            state.begin(None, false);
            state.begin(Some("steps"), true);
        });
        trace
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the trace. Returns its text, and the number of bytes for which there was no room.
    pub fn finish(&self) -> (String, u64) {
        self.with(|state| {
            while !state.levels.is_empty() {
                state.end();
            }
            (std::mem::take(&mut state.text), state.missing)
        })
    }

    /// Begins an object.
    pub fn object(&self, name: &str) -> TraceScope<'_> {
        self.with(|state| state.begin(Some(name), false));
        TraceScope(self)
    }

    /// Begins an object that is an item of a list.
    pub fn item(&self) -> TraceScope<'_> {
        self.with(|state| state.begin(None, false));
        TraceScope(self)
    }

    /// Begins a list.
    pub fn list(&self, name: &str) -> TraceScope<'_> {
        self.with(|state| state.begin(Some(name), true));
        TraceScope(self)
    }

    /// Adds a text.
    pub fn text(&self, name: &str, text: &str) {
        let mut quoted = String::new();
        write_text(text, &mut quoted);
        self.with(|state| state.value(Some(name), &quoted));
    }

    /// Adds a number.
    pub fn number(&self, name: &str, number: f64) {
        let text = if number.is_finite() { real_text(number) } else { "null".to_owned() };
        self.with(|state| state.value(Some(name), &text));
    }

    /// Adds true or false.
    pub fn flag(&self, name: &str, is: bool) {
        self.with(|state| state.value(Some(name), if is { "true" } else { "false" }));
    }

    /// Adds a list of texts on one line.
    pub fn texts<T: AsRef<str>>(&self, name: &str, texts: impl IntoIterator<Item = T>) {
        let mut line = String::new();
        write_texts(texts, &mut line);
        self.with(|state| state.value(Some(name), &line));
    }

    /// Begins the step of a SELECT that reads one table, up to the estimates of that table.
    pub fn begin_table(&self, select: u32, table: &str) -> [TraceScope<'_>; 4] {
        let step = self.object("join_optimization");
        self.number("select_id", select.into());
        let steps = self.list("steps");
        let estimates = self.list("rows_estimation");
        let item = self.item();
        self.text("table", table);
        [item, estimates, steps, step]
    }

    /// Adds the kind of an access, its index and its ranges.
    pub(crate) fn access(&self, table: &Table, access: &Access, rows: f64, cost: f64) {
        self.text("access_type", access_type(access));
        if access.index != ROWS || !matches!(access.spans, Spans::Full) {
            self.text("index", &table.indexes[access.index].name);
        }
        if let Spans::List(spans) = &access.spans {
            let columns: Vec<&str> = table.indexes[access.index]
                .columns
                .iter()
                .map(|part| &*table.columns[part.column].name)
                .collect();
            self.texts("ranges", spans.iter().take(RANGES_MAX).map(|span| range_text(span, &columns)));
        }
        self.number("rows", rows);
        self.number("cost", cost);
    }

    /// Adds the accesses to a table that were compared, with their costs, and the one that was chosen.
    pub(crate) fn accesses(&self, table: &Table, considered: &[(&Choice, f64)], chosen: &Choice) {
        let same = |choice: &Choice| {
            choice.access.index == chosen.access.index
                && std::mem::discriminant(&choice.access.spans)
                    == std::mem::discriminant(&chosen.access.spans)
        };
        let analysis = self.object("range_analysis");
        let scans = considered.iter().filter(|(choice, _)| choice.access.index == ROWS);
        if let Some((choice, cost)) = scans.clone().find(|(c, _)| matches!(c.access.spans, Spans::Full)) {
            let _scan = self.object("table_scan");
            self.number("rows", choice.rows);
            self.number("cost", *cost);
        }
        {
            let _indexes = self.list("potential_range_indexes");
            for (n, index) in table.indexes.iter().enumerate() {
                let _index = self.item();
                self.text("index", &index.name);
                let is_usable = considered.iter().any(|(choice, _)| {
                    choice.access.index == n && !matches!(choice.access.spans, Spans::Full)
                });
                self.flag("usable", is_usable);
                if is_usable {
                    let name = |part: &cohort_catalog::IndexColumn| table.columns[part.column].name.clone();
                    self.texts("key_parts", index.columns.iter().map(name));
                } else {
                    self.text("cause", "not applicable");
                }
            }
        }
        {
            let _alternatives = self.object("analyzing_range_alternatives");
            let _scans = self.list("range_scan_alternatives");
            let is_alternative =
                |choice: &Choice| choice.access.index != ROWS || !matches!(choice.access.spans, Spans::Full);
            for (choice, cost) in considered.iter().filter(|(choice, _)| is_alternative(choice)) {
                let _scan = self.item();
                self.access(table, &choice.access, choice.rows, *cost);
                self.flag("ordered", choice.ordered);
                let is_chosen = same(choice);
                self.flag("chosen", is_chosen);
                if !is_chosen {
                    self.text("cause", "cost");
                }
            }
        }
        {
            let _chosen = self.object("chosen_range_access_summary");
            self.access(table, &chosen.access, chosen.rows, chosen.cost);
            self.flag("chosen", true);
        }
        drop(analysis);
    }
}

/// Returns MariaDB's word for the kind of an access.
pub(crate) fn access_type(access: &Access) -> &'static str {
    match &access.spans {
        Spans::Full if access.index == ROWS => "scan",
        Spans::Full => "index_scan",
        Spans::Words(_) => "fulltext",
        Spans::List(spans) if spans.iter().all(Span::is_of_keys) && spans.len() == 1 => "ref",
        Spans::List(_) => "range",
    }
}

/// Returns a range like `(5) <= (k) <= (7)`.
fn range_text(span: &Span, columns: &[&str]) -> String {
    let list = |values: Vec<String>| format!("({})", values.join(","));
    let eq: Vec<String> = span.eq.iter().map(Expr::to_string).collect();
    let with = |more: Option<String>| list(eq.iter().cloned().chain(more).collect());
    let parts = |n: usize| list(columns.iter().take(n).map(|name| (*name).to_owned()).collect());
    if let Some(like) = &span.like {
        return format!("{} LIKE {}", parts(eq.len() + 1), with(Some(like.pattern.to_string())));
    }
    let bound = |bound: &Bound<Expr>| match bound {
        Bound::Included(expr) => Some((expr.to_string(), "<=")),
        Bound::Excluded(expr) => Some((expr.to_string(), "<")),
        Bound::Unbounded => None,
    };
    let (lower, upper) = (bound(&span.lower), bound(&span.upper));
    let names = parts(eq.len() + usize::from(lower.is_some() || upper.is_some()));
    let side = |bound: Option<(String, &'static str)>| match bound {
        Some((value, sign)) => Some((with(Some(value)), sign)),
        None => (!eq.is_empty()).then(|| (with(None), "<=")),
    };
    let before = side(lower).map(|(values, sign)| format!("{values} {sign} ")).unwrap_or_default();
    let after = side(upper).map(|(values, sign)| format!(" {sign} {values}")).unwrap_or_default();
    format!("{before}{names}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_members_of_objects_and_items_of_lists() {
        let trace = OptimizerTrace::new(1 << 20);
        {
            let _step = trace.object("a");
            trace.text("t", "x\"\n\u{1}");
            trace.number("n", 12.5);
            trace.texts("list", ["p", "q"]);
            let _list = trace.list("steps");
            trace.flag("is", true);
            let _item = trace.item();
            drop(trace.list("none"));
        }
        let expected = r#"{
  "steps": [
    {
      "a": {
        "t": "x\"\n\u0001",
        "n": 12.5,
        "list": ["p", "q"],
        "steps": [
          {
            "is": true
          },
          {
            "none": []
          }
        ]
      }
    }
  ]
}"#;
        assert_eq!(trace.finish(), (expected.to_owned(), 0));
    }

    #[test]
    fn a_long_trace_is_cut_and_its_rest_counted() {
        let whole = |bytes_max: usize| {
            let trace = OptimizerTrace::new(bytes_max);
            (0..50).for_each(|n| trace.text("text", &format!("ü{n}")));
            trace.finish()
        };
        let (all, none) = whole(1 << 20);
        assert_eq!(none, 0);
        for bytes_max in [0, 1, 100, 101, 102, 103] {
            let (text, missing) = whole(bytes_max);
            assert!(text.len() <= bytes_max && all.starts_with(&text), "{text}");
            assert_eq!(text.len() as u64 + missing, all.len() as u64);
        }
    }
}
