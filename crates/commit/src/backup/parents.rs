//! Backups that an incremental one can continue.
//!
//! An incremental backup leaves out what the backup before has, so this data directory must know what that
//! is: the file `cohort.backups` has a line for each of the last [`LINES_MAX`] backups, with the marks of the
//! participants (`cohort_engine::PinnedFiles::mark`).
//! ```text
//! ID TIMELINE PARTICIPANT:MARK PARTICIPANT:MARK ..
//! ```
//! Backups do not contain the file. So a backup is continued only by the data directory that took it, or by a
//! copy of that directory which was made later: both have the images of that backup at the same addresses. A
//! server on another timeline, or one that was put back to a state before the backup, has no line for it, and
//! is refused.
//!
//! # On failure
//! The line is written after the backup is complete. Without it the backup can be restored, but not
//! continued; that is logged.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cohort_base::ParticipantId;
use cohort_vfs::{OpenMode, SharedFs};

const NAME: &str = "cohort.backups";
const UNFINISHED: &str = "cohort.backups.new";
const LINES_MAX: usize = 200;
/// Maximum length of the file that is read.
const BYTES_MAX: usize = 1 << 20;

/// Marks of the participants in one backup.
pub type Marks = BTreeMap<ParticipantId, u64>;

/// The list of a data directory.
pub struct Parents<'p> {
    fs: &'p SharedFs,
    path: PathBuf,
    unfinished: PathBuf,
}

impl<'p> Parents<'p> {
    pub fn new(fs: &'p SharedFs, datadir: &Path) -> Parents<'p> {
        Parents { fs, path: datadir.join(NAME), unfinished: datadir.join(UNFINISHED) }
    }

    fn text(&self) -> io::Result<String> {
        if !self.fs.exists(&self.path) {
            return Ok(String::new());
        }
        let file = self.fs.open(&self.path, OpenMode::Read)?;
        let mut bytes = vec![0; BYTES_MAX];
        let got = file.read_at(&mut bytes, 0)?;
        bytes.truncate(got);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the marks of a backup of this timeline.
    pub fn marks(&self, id: &str, timeline: u32) -> io::Result<Option<Marks>> {
        let text = self.text()?;
        let found = text.lines().filter_map(parse).find(|(of, branch, _)| (*of, *branch) == (id, timeline));
        Ok(found.map(|(.., marks)| marks))
    }

    /// Adds a backup durably.
    pub fn add(&self, id: &str, timeline: u32, marks: &Marks) -> io::Result<()> {
        let text = self.text()?;
        let lines: Vec<&str> = text.lines().collect();
        let kept = &lines[lines.len().saturating_sub(LINES_MAX - 1)..];
        let marks: String = marks.iter().map(|(id, mark)| format!(" {}:{mark}", id.0)).collect();
        let all: String = kept.iter().map(|line| format!("{line}\n")).collect();
        let all = format!("{all}{id} {timeline}{marks}\n");
        self.fs.replace(&self.path, &self.unfinished, all.as_bytes())
    }
}

fn parse(line: &str) -> Option<(&str, u32, Marks)> {
    let mut words = line.split(' ');
    let (id, timeline) = (words.next()?, words.next()?.parse().ok()?);
    let mark = |word: &str| {
        let (participant, mark) = word.split_once(':')?;
        Some((ParticipantId(participant.parse().ok()?), mark.parse().ok()?))
    };
    Some((id, timeline, words.map(mark).collect::<Option<Marks>>()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohort_vfs::MemFs;

    use super::*;

    #[test]
    fn the_newest_backups_are_known() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let dir = Path::new("/data");
        fs.create_dir_all(dir).expect("created");
        let parents = Parents::new(&fs, dir);
        assert_eq!(parents.marks("b0", 1).expect("read"), None);
        let of = |n: u64| Marks::from([(ParticipantId(2), n), (ParticipantId(7), 10 * n)]);
        (0..250).for_each(|n| parents.add(&format!("b{n}"), 1, &of(n)).expect("written"));
        let known = |id: &str, timeline| parents.marks(id, timeline).expect("read");
        assert_eq!(known("b249", 1), Some(of(249)));
        assert_eq!(known("b50", 1), Some(of(50)));
        assert_eq!(known("b49", 1), None, "the file has a bound");
        assert_eq!(known("b249", 2), None, "another timeline");
        parents.add("bare", 1, &Marks::new()).expect("written");
        assert_eq!(known("bare", 1), Some(Marks::new()));
    }
}
