//! [`RoutineLines`]: executions and time of the lines of stored programs, in bounded memory.
//!
//! A program is known by its name and its text: when it is defined again with another text, its counts start
//! again at zero with its next run. When there are too many programs or lines, further programs are not
//! counted.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;

/// Maximum number of programs.
const PROGRAMS_MAX: usize = 4096;

/// Maximum number of lines of all programs: two MiB.
const LINES_MAX: usize = 65_536;

/// The name of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramName {
    pub schema: String,
    pub name: String,
    /// PROCEDURE, FUNCTION, TRIGGER or EVENT.
    pub kind: &'static str,
}

/// The counts of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCount {
    pub executions: u64,
    pub time_ns: u64,
}

/// The counts of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLines {
    text: u64,
    /// Line numbers with their counts.
    pub lines: Vec<(u32, LineCount)>,
}

impl ProgramLines {
    /// Returns whether the counts are those of a program with this body.
    pub fn is_of(&self, body: &str) -> bool {
        self.text == hash_of(body)
    }
}

/// The counts of all programs.
#[derive(Debug, Default)]
pub struct RoutineLines(Mutex<Programs>);

#[derive(Debug, Default)]
struct Programs {
    all: BTreeMap<ProgramName, ProgramLines>,
    /// Number of lines of all programs.
    lines: usize,
}

impl RoutineLines {
    /// Adds the counts of an activation. `numbers` are the lines of the program.
    pub fn add(&self, name: ProgramName, body: &str, numbers: &[u32], counts: &[LineCount]) {
        debug_assert_eq!(numbers.len(), counts.len(), "each line has a count");
        let mut programs = self.0.lock();
        let text = hash_of(body);
        if programs.all.get(&name).is_none_or(|known| known.text != text) {
            programs.remove(&name);
            if programs.all.len() >= PROGRAMS_MAX || programs.lines + numbers.len() > LINES_MAX {
                return;
            }
            programs.lines += numbers.len();
            let lines = numbers.iter().map(|number| (*number, LineCount::default())).collect();
            programs.all.insert(name.clone(), ProgramLines { text, lines });
        }
        let Some(known) = programs.all.get_mut(&name) else { return };
        for ((_, sum), count) in known.lines.iter_mut().zip(counts) {
            sum.executions = sum.executions.saturating_add(count.executions);
            sum.time_ns = sum.time_ns.saturating_add(count.time_ns);
        }
    }

    /// Returns the names of all programs, in order.
    pub fn names(&self) -> Vec<ProgramName> {
        self.0.lock().all.keys().cloned().collect()
    }

    /// Returns the counts of a program.
    pub fn of(&self, name: &ProgramName) -> Option<ProgramLines> {
        self.0.lock().all.get(name).cloned()
    }

    /// Removes all counts.
    pub fn clear(&self) {
        *self.0.lock() = Programs::default();
    }
}

impl Programs {
    fn remove(&mut self, name: &ProgramName) {
        if let Some(known) = self.all.remove(name) {
            self.lines -= known.lines.len();
        }
    }
}

fn hash_of(body: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: usize) -> ProgramName {
        ProgramName { schema: "d".to_owned(), name: format!("p{n}"), kind: "PROCEDURE" }
    }

    #[test]
    fn counts_add_up_until_the_text_changes() {
        let (all, one) = (RoutineLines::default(), LineCount { executions: 1, time_ns: 5 });
        all.add(name(0), "a", &[2, 3], &[one, one]);
        all.add(name(0), "a", &[2, 3], &[one, LineCount::default()]);
        let found = all.of(&name(0)).expect("counted");
        assert_eq!(found.lines, [(2, LineCount { executions: 2, time_ns: 10 }), (3, one)]);
        assert!(found.is_of("a") && !found.is_of("b"));
        all.add(name(0), "b", &[4], &[one]);
        assert_eq!(all.of(&name(0)).expect("counted").lines, [(4, one)]);
        all.clear();
        assert_eq!(all.of(&name(0)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let (all, numbers) = (RoutineLines::default(), (0..1000).collect::<Vec<u32>>());
        let counts = vec![LineCount::default(); numbers.len()];
        for n in 0..2 * LINES_MAX / numbers.len() {
            all.add(name(n), "a", &numbers, &counts);
        }
        assert_eq!(all.0.lock().lines, LINES_MAX / numbers.len() * numbers.len());
        // A known program is still counted.
        all.add(name(0), "a", &numbers, &vec![LineCount { executions: 1, time_ns: 0 }; numbers.len()]);
        assert_eq!(all.of(&name(0)).expect("counted").lines[0].1.executions, 1);
        let all = RoutineLines::default();
        (0..2 * PROGRAMS_MAX).for_each(|n| all.add(name(n), "a", &[1], &[LineCount::default()]));
        assert_eq!(all.0.lock().all.len(), PROGRAMS_MAX);
    }
}
