//! Names of labels, conditions and cursors while a body is compiled. Names are case-insensitive.
//!
//! A handler's statements see the conditions and cursors around it, but not its labels.

use cohort_sql::ast::ConditionValue;

use crate::program::{CursorId, Pc};

/// The names in scope, those of inner blocks last.
#[derive(Default)]
pub(crate) struct Scope {
    levels: Vec<Level>,
}

#[derive(Default)]
struct Level {
    label: Option<Label>,
    conditions: Vec<(String, ConditionValue)>,
    cursors: Vec<(String, CursorId)>,
    /// Labels around this level are out of reach.
    is_handler: bool,
}

/// A label in scope.
pub(crate) struct Label {
    name: String,
    /// Number of entered blocks around the labelled statement.
    pub depth: u32,
    /// Number of entered blocks within a round of the loop.
    pub depth_of_rounds: u32,
    /// Start of a loop's next round, unknown yet for FOR; `None` for a block.
    pub again: Option<Pc>,
    /// Jumps to the end of the statement, or to the next round of a FOR loop, whose targets are not known
    /// yet.
    pub leaves: Vec<Pc>,
    pub iterates: Vec<Pc>,
}

impl Label {
    pub fn new(name: &str, depth: u32, again: Option<Pc>) -> Label {
        let name = name.to_lowercase();
        Label { name, depth, depth_of_rounds: depth, again, leaves: Vec::new(), iterates: Vec::new() }
    }
}

impl Scope {
    pub fn enter(&mut self) {
        self.levels.push(Level::default());
    }

    pub fn enter_labelled(&mut self, label: Label) {
        self.levels.push(Level { label: Some(label), ..Level::default() });
    }

    pub fn enter_handler(&mut self) {
        self.levels.push(Level { is_handler: true, ..Level::default() });
    }

    /// Sets the number of entered blocks within a round of the innermost loop.
    pub fn begin_rounds(&mut self, depth: u32) {
        if let Some(label) = &mut self.innermost().label {
            label.depth_of_rounds = depth;
        }
    }

    /// Ends the innermost level and returns its label.
    pub fn leave(&mut self) -> Option<Label> {
        self.levels.pop().expect("a level was entered").label
    }

    /// Returns a label in reach.
    pub fn label(&mut self, name: &str) -> Option<&mut Label> {
        let name = name.to_lowercase();
        let reach = self.levels.iter().rposition(|level| level.is_handler).unwrap_or(0);
        let labels = self.levels[reach..].iter_mut().rev().filter_map(|level| level.label.as_mut());
        labels.into_iter().find(|label| label.name == name)
    }

    /// Adds a condition to the innermost level. Returns false if the level has one of this name.
    pub fn add_condition(&mut self, name: &str, value: ConditionValue) -> bool {
        let conditions = &mut self.innermost().conditions;
        let name = name.to_lowercase();
        let is_new = conditions.iter().all(|(known, _)| *known != name);
        conditions.push((name, value));
        is_new
    }

    /// Adds a cursor to the innermost level. Returns false if the level has one of this name.
    pub fn add_cursor(&mut self, name: &str, id: CursorId) -> bool {
        let cursors = &mut self.innermost().cursors;
        let name = name.to_lowercase();
        let is_new = cursors.iter().all(|(known, _)| *known != name);
        cursors.push((name, id));
        is_new
    }

    pub fn condition(&self, name: &str) -> Option<&ConditionValue> {
        let name = name.to_lowercase();
        let conditions = self.levels.iter().rev().flat_map(|level| &level.conditions);
        conditions.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub fn cursor(&self, name: &str) -> Option<CursorId> {
        let name = name.to_lowercase();
        let cursors = self.levels.iter().rev().flat_map(|level| &level.cursors);
        cursors.into_iter().find(|(known, _)| *known == name).map(|(_, id)| *id)
    }

    fn innermost(&mut self) -> &mut Level {
        self.levels.last_mut().expect("a body has a level")
    }
}
