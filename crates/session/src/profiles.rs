//! SHOW PROFILES and SHOW PROFILE: the run times of the session's last statements, recorded while `profiling`
//! is on. A statement is a single step; its stages are not measured separately.

use std::collections::VecDeque;

use cohort_types::{Collation, ColumnType, Decimal, TypeKind, Value};

/// Maximum characters kept of a statement's text.
const TEXT_CHARS_MAX: usize = 300;

/// The profile of a finished statement.
struct Profile {
    id: u64,
    took_us: u64,
    text: String,
}

/// The profiles of a session's last statements.
#[derive(Default)]
pub struct Profiles {
    kept: VecDeque<Profile>,
    /// The number of the last statement.
    last: u64,
}

impl Profiles {
    /// Records a statement. Keeps only the last `most` statements.
    pub fn note(&mut self, text: &[u8], took_us: u64, most: usize) {
        self.last += 1;
        let text = String::from_utf8_lossy(text).chars().take(TEXT_CHARS_MAX).collect();
        self.kept.push_back(Profile { id: self.last, took_us, text });
        let surplus = self.kept.len().saturating_sub(most);
        self.kept.drain(..surplus);
    }

    /// Returns number, seconds and text of each statement.
    pub fn rows(&self) -> impl Iterator<Item = [Value; 3]> {
        self.kept.iter().map(|profile| {
            let seconds = profile.took_us as f64 / 1e6;
            [Value::UInt(profile.id), Value::Double(seconds), Value::text(profile.text.as_str())]
        })
    }

    /// Returns the steps of a statement, by default the last one: name and seconds.
    pub fn steps(&self, id: Option<u64>) -> Vec<[Value; 2]> {
        let id = id.unwrap_or(self.last);
        let found = self.kept.iter().find(|profile| profile.id == id);
        let seconds = |us: u64| Value::Decimal(Decimal::from_i128(us.into(), 6));
        found.map(|profile| [Value::text("Executing"), seconds(profile.took_us)]).into_iter().collect()
    }
}

/// The resource types that SHOW PROFILE accepts in addition to the time, each with its columns. None is
/// measured.
pub const MEASURES: [(&str, &[&str]); 8] = [
    ("CPU", &["CPU_user", "CPU_system"]),
    ("CONTEXT SWITCHES", &["Context_voluntary", "Context_involuntary"]),
    ("BLOCK IO", &["Block_ops_in", "Block_ops_out"]),
    ("IPC", &["Messages_sent", "Messages_received"]),
    ("PAGE FAULTS", &["Page_faults_major", "Page_faults_minor"]),
    ("SWAPS", &["Swaps"]),
    ("SOURCE", &["Source_function", "Source_file", "Source_line"]),
    ("MEMORY", &[]),
];

/// Returns the type of a resource column.
pub fn measure_type(column: &str) -> ColumnType {
    match column {
        "CPU_user" | "CPU_system" => ColumnType::decimal(9, 6),
        "Source_function" => ColumnType::string(TypeKind::VarChar, 30, Collation::UTF8MB3_GENERAL_CI),
        "Source_file" => ColumnType::string(TypeKind::VarChar, 20, Collation::UTF8MB3_GENERAL_CI),
        _ => ColumnType::int(TypeKind::Int, Some(20), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_under_their_numbers() {
        let mut profiles = Profiles::default();
        for n in 1..=5 {
            profiles.note(format!("SELECT {n}").as_bytes(), n * 1000, 2);
        }
        let ids: Vec<Value> = profiles.rows().map(|[id, ..]| id).collect();
        assert_eq!(ids, [Value::UInt(4), Value::UInt(5)]);
        assert_eq!(profiles.steps(Some(4))[0][1].to_text(), "0.004000");
        assert_eq!(profiles.steps(None)[0][1].to_text(), "0.005000");
        assert!(profiles.steps(Some(3)).is_empty());
    }
}
