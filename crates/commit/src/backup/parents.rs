//! Backups of this data directory: those that an incremental one can continue, and the newest that was
//! proven.
//!
//! An incremental backup leaves out what the backup before has, so this data directory must know what that
//! is: the file `cohort.backups` has a line for each of the last [`LINES_MAX`] backups, with the moment of
//! its cut in microseconds, the marks of the participants (`cohort_engine::PinnedFiles::mark`), and the word
//! `proven` once a server has checked all its tables (BACKUP SERVER PROVEN). The newest proven backup keeps
//! its line.
//! ```text
//! ID TIMELINE [@MICROSECONDS] [proven] PARTICIPANT:MARK PARTICIPANT:MARK ..
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

const PROVEN: &str = "proven";

/// Marks of the participants in one backup.
pub type Marks = BTreeMap<ParticipantId, u64>;

/// A backup that this data directory has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownBackup {
    /// `id` of its manifest.
    pub id: String,
    pub timeline: u32,
    /// Moment of its cut, in microseconds since 1970; 0 if an earlier version has taken it.
    pub cut_us: u64,
    /// It was restored, and a server has checked its tables.
    pub is_proven: bool,
    pub(crate) marks: Marks,
}

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

    /// Returns the backups, the oldest first.
    pub fn all(&self) -> io::Result<Vec<KnownBackup>> {
        Ok(self.text()?.lines().filter_map(parse).collect())
    }

    /// Returns the marks of a backup of this timeline.
    pub fn marks(&self, id: &str, timeline: u32) -> io::Result<Option<Marks>> {
        let found = self.all()?.into_iter().find(|known| known.id == id && known.timeline == timeline);
        Ok(found.map(|known| known.marks))
    }

    /// Adds a backup durably.
    pub fn add(&self, backup: KnownBackup) -> io::Result<()> {
        let mut all = self.all()?;
        let newest = all.len().saturating_sub(LINES_MAX - 1);
        let proven = all[..newest].iter().rfind(|known| known.is_proven).cloned();
        all.drain(..newest);
        if let Some(proven) = proven.filter(|_| !all.iter().any(|known| known.is_proven)) {
            all[0] = proven;
        }
        all.push(backup);
        self.write(&all)
    }

    /// Notes durably that a backup is proven. Returns it, or `None` if this data directory has not taken it.
    pub fn prove(&self, id: &str) -> io::Result<Option<KnownBackup>> {
        let mut all = self.all()?;
        let Some(found) = all.iter_mut().find(|known| known.id == id) else { return Ok(None) };
        found.is_proven = true;
        let found = found.clone();
        self.write(&all)?;
        Ok(Some(found))
    }

    fn write(&self, all: &[KnownBackup]) -> io::Result<()> {
        let text: String = all.iter().map(line).collect();
        self.fs.replace(&self.path, &self.unfinished, text.as_bytes())
    }
}

fn line(known: &KnownBackup) -> String {
    let KnownBackup { id, timeline, cut_us, is_proven, marks } = known;
    let proven = if *is_proven { format!(" {PROVEN}") } else { String::new() };
    let marks: String = marks.iter().map(|(id, mark)| format!(" {}:{mark}", id.0)).collect();
    format!("{id} {timeline} @{cut_us}{proven}{marks}\n")
}

fn parse(line: &str) -> Option<KnownBackup> {
    let mut words = line.split(' ');
    let (id, timeline) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    let mut known = KnownBackup { id, timeline, ..KnownBackup::default() };
    for word in words {
        match word.split_once(':') {
            Some((participant, mark)) => {
                known.marks.insert(ParticipantId(participant.parse().ok()?), mark.parse().ok()?);
            }
            None if word == PROVEN => known.is_proven = true,
            None => known.cut_us = word.strip_prefix('@')?.parse().ok()?,
        }
    }
    Some(known)
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
        let named = |n: u64| KnownBackup {
            id: format!("b{n}"),
            timeline: 1,
            cut_us: 1000 * n,
            is_proven: false,
            marks: of(n),
        };
        for n in 0..250 {
            parents.add(named(n)).expect("written");
            if n == 7 {
                let proven = parents.prove("b7").expect("written").expect("known");
                assert_eq!(proven, KnownBackup { is_proven: true, ..named(7) });
                assert_eq!(parents.prove("another").expect("read"), None);
            }
        }
        let known = |id: &str, timeline| parents.marks(id, timeline).expect("read");
        assert_eq!(known("b249", 1), Some(of(249)));
        assert_eq!(known("b51", 1), Some(of(51)));
        assert_eq!(known("b50", 1), None, "the file has a bound, and the proven backup a line");
        assert_eq!(known("b249", 2), None, "another timeline");
        let all = parents.all().expect("read");
        assert_eq!((all.len(), &all[0]), (200, &KnownBackup { is_proven: true, ..named(7) }));
        assert!(all[1..].iter().all(|known| !known.is_proven));
        parents.prove("b240").expect("written").expect("known");
        (250..255).for_each(|n| parents.add(named(n)).expect("written"));
        let all = parents.all().expect("read");
        assert!(all[0].id != "b7" && all.iter().any(|known| known.is_proven), "a newer one is proven");
        // Lines of earlier versions.
        fs.replace(&parents.path, &parents.unfinished, b"old 3 2:5\nbare 1\n").expect("written");
        assert_eq!(known("old", 3), Some(Marks::from([(ParticipantId(2), 5)])));
        assert_eq!(known("bare", 1), Some(Marks::new()));
    }
}
