//! The clone that runs or ran last: `performance_schema.clone_status` and `clone_progress`.
//!
//! A clone that replaces the data of its server is reported by the server that starts in them, so a report
//! has a text form ([`CloneReport::encode`]) that goes along with the data.

use std::fmt::Write as _;

use parking_lot::Mutex;

/// Stages, in order. Stages of MySQL that do not exist here are over when they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneStage {
    DropData,
    FileCopy,
    PageCopy,
    RedoCopy,
    FileSync,
    Restart,
    Recovery,
}

impl CloneStage {
    pub const ALL: [CloneStage; 7] = [
        CloneStage::DropData,
        CloneStage::FileCopy,
        CloneStage::PageCopy,
        CloneStage::RedoCopy,
        CloneStage::FileSync,
        CloneStage::Restart,
        CloneStage::Recovery,
    ];

    pub fn name(self) -> &'static str {
        match self {
            CloneStage::DropData => "DROP DATA",
            CloneStage::FileCopy => "FILE COPY",
            CloneStage::PageCopy => "PAGE COPY",
            CloneStage::RedoCopy => "REDO COPY",
            CloneStage::FileSync => "FILE SYNC",
            CloneStage::Restart => "RESTART",
            CloneStage::Recovery => "RECOVERY",
        }
    }
}

/// One stage. A time of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageReport {
    pub begin_us: u64,
    pub end_us: u64,
    /// Bytes expected and received.
    pub expected: u64,
    pub received: u64,
}

/// One clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneReport {
    pub connection: u64,
    pub begin_us: u64,
    /// 0 while it runs.
    pub end_us: u64,
    /// `host:port`, or `LOCAL INSTANCE`.
    pub source: String,
    /// The directory, or `LOCAL INSTANCE` for the server's own data.
    pub destination: String,
    /// Number and text of the error; 0 without one.
    pub error: (u32, String),
    /// End of the source's binary log in the clone.
    pub binlog: (String, u64),
    pub gtids: String,
    /// In the order of [`CloneStage::ALL`].
    pub stages: [StageReport; 7],
}

/// Escapes line ends.
fn line(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn text(line: &str) -> String {
    line.replace("\\\\", "\u{0}").replace("\\n", "\n").replace('\u{0}', "\\")
}

impl CloneReport {
    /// Returns the report as text: a line for each text, then one for each stage.
    pub fn encode(&self) -> String {
        let (connection, begin, end) = (self.connection, self.begin_us, self.end_us);
        let mut out = format!("{connection} {begin} {end} {} {}\n", self.error.0, self.binlog.1);
        for words in [&self.source, &self.destination, &self.error.1, &self.binlog.0, &self.gtids] {
            let _ = writeln!(out, "{}", line(words));
        }
        for stage in &self.stages {
            let StageReport { begin_us, end_us, expected, received } = stage;
            let _ = writeln!(out, "{begin_us} {end_us} {expected} {received}");
        }
        out
    }

    /// Parses the text of a report; `None` if it is damaged.
    pub fn decode(encoded: &str) -> Option<CloneReport> {
        let mut lines = encoded.lines();
        let mut numbers =
            || -> Option<Vec<u64>> { lines.next()?.split(' ').map(|number| number.parse().ok()).collect() };
        let [connection, begin_us, end_us, error, offset] = numbers()?[..] else { return None };
        let mut lines = encoded.lines().skip(1);
        let mut next = || lines.next().map(text);
        let (source, destination, message) = (next()?, next()?, next()?);
        let (file, gtids) = (next()?, next()?);
        let mut stages = [StageReport::default(); 7];
        for stage in &mut stages {
            let numbers: Option<Vec<u64>> = lines.next()?.split(' ').map(|text| text.parse().ok()).collect();
            let [begin_us, end_us, expected, received] = numbers?[..] else { return None };
            *stage = StageReport { begin_us, end_us, expected, received };
        }
        Some(CloneReport {
            connection,
            begin_us,
            end_us,
            source,
            destination,
            error: (u32::try_from(error).ok()?, message),
            binlog: (file, offset),
            gtids,
            stages,
        })
    }

    /// Begins a stage, and ends those before it.
    pub fn enter(&mut self, stage: CloneStage, now_us: u64) {
        for stage in &mut self.stages[..=stage as usize] {
            if stage.begin_us == 0 {
                stage.begin_us = now_us;
            }
        }
        self.stages[..stage as usize].iter_mut().filter(|s| s.end_us == 0).for_each(|s| s.end_us = now_us);
    }

    /// Ends the clone: successfully without an error.
    pub fn end(&mut self, now_us: u64, error: Option<(u32, String)>) {
        self.end_us = now_us;
        if let Some(error) = error {
            self.error = error;
        }
        let running = self.stages.iter_mut().filter(|stage| stage.begin_us != 0 && stage.end_us == 0);
        running.for_each(|stage| stage.end_us = now_us);
    }
}

/// The last clone of a server. One runs at a time.
#[derive(Debug, Default)]
pub struct CloneStatus(Mutex<Option<CloneReport>>);

impl CloneStatus {
    /// Begins a clone, unless one runs.
    pub fn begin(&self, report: CloneReport) -> bool {
        let mut last = self.0.lock();
        let is_free = last.as_ref().is_none_or(|last| last.end_us != 0);
        if is_free {
            *last = Some(report);
        }
        is_free
    }

    /// Sets the report of a clone that has ended, at the start.
    pub fn set(&self, report: CloneReport) {
        *self.0.lock() = Some(report);
    }

    /// Changes the report of the clone that runs.
    pub fn change(&self, change: impl FnOnce(&mut CloneReport)) {
        if let Some(last) = &mut *self.0.lock() {
            change(last);
        }
    }

    pub fn last(&self) -> Option<CloneReport> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_as_text_and_one_clone_runs_at_a_time() {
        let status = CloneStatus::default();
        let source = "a\\n\nb:1".to_owned();
        assert!(status.begin(CloneReport { connection: 7, begin_us: 1, source, ..CloneReport::default() }));
        assert!(!status.begin(CloneReport::default()), "one runs");
        status.change(|report| report.enter(CloneStage::FileCopy, 5));
        status.change(|report| report.stages[1].received = 9);
        status.change(|report| report.end(8, Some((3862, "why".to_owned()))));
        let report = status.last().expect("one");
        assert_eq!((report.stages[0].end_us, report.stages[1].end_us, report.stages[2].begin_us), (5, 8, 0));
        assert_eq!(CloneReport::decode(&report.encode()), Some(report.clone()));
        assert_eq!(CloneReport::decode(&report.encode()[..20]), None);
        assert!(status.begin(CloneReport::default()), "it has ended");
    }
}
