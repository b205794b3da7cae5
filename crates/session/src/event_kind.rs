//! Kinds of statements, by which statistics count statements.

use cohort_config::Counter;

/// The kind of a statement: its counter `Com_%`, or one of the kinds that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKind(u16);

impl EventKind {
    /// Texts that cannot be parsed.
    pub const UNPARSED: EventKind = EventKind(Counter::COUNT as u16);
    /// Row events that a replica applies.
    pub const ROWS: EventKind = EventKind(Counter::COUNT as u16 + 1);
    /// Number of kinds.
    pub const COUNT: usize = Counter::COUNT + 2;

    /// Returns the kind of statements that count under `counter`.
    #[inline]
    pub const fn of(counter: Counter) -> EventKind {
        EventKind(counter as u16)
    }

    /// Returns the numbers of all kinds whose statements can be counted.
    pub fn all() -> impl Iterator<Item = usize> {
        (0..EventKind::COUNT).filter(|kind| Counter::named(*kind).is_none_or(|name| name.starts_with("Com_")))
    }

    /// Returns the kind as a number below [`EventKind::COUNT`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Returns MariaDB's event name of a kind, by its index.
pub fn event_name(kind: usize) -> String {
    if kind == EventKind::UNPARSED.index() {
        return "statement/sql/error".to_owned();
    }
    match Counter::named(kind) {
        None => "statement/rpl/row".to_owned(),
        Some("Com_stmt_prepare") => "statement/com/Prepare".to_owned(),
        Some("Com_stmt_execute") => "statement/com/Execute".to_owned(),
        Some("Com_stmt_fetch") => "statement/com/Fetch".to_owned(),
        Some(name) => format!("statement/sql/{}", name.trim_start_matches("Com_")),
    }
}
