//! Whether a repository has the log of this server: the proof at the begin of each connection, and the
//! record of a refusal.
//!
//! A copy of a data directory has the log identity and the timeline of the original, and its records may
//! begin at the same LSNs. So the server computes the checksum ([`chained`]) of the part of its own log that
//! START names, and compares it with that of the repository.
//!
//! A refusal is recorded in the data directory with the repository that it is about. Later starts stay
//! refused until the operator names another repository or removes the file, because the part of the log that
//! could prove it may be gone by then (`archive_backlog_max`).

use std::io;
use std::path::{Path, PathBuf};

use cohort_backup_format::{Start, chained};
use cohort_base::Lsn;
use cohort_log::{Log, LogError};
use cohort_vfs::{OpenMode, SharedFs};

/// Maximum length of the log before the mark that is compared, too.
const EARLIER_BYTES_MAX: u64 = 64 << 20;
const NAME: &str = "archive.refused";
/// Maximum length of the file that is read.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Returns the LSN from which a log whose mark is `from` can be compared.
pub fn proof_from(log: &Log, from: Lsn) -> Lsn {
    from.min(log.retained()).max(Lsn(from.0.saturating_sub(EARLIER_BYTES_MAX)))
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The repository has this log, or nothing can be compared.
    Same,
    /// The repository has another log.
    Other,
}

/// Compares the part of the log that START names.
pub fn compare(log: &Log, start: &Start) -> Result<Proof, LogError> {
    let (mut position, end) = (Lsn(start.proof_lsn), Lsn(start.lsn));
    if position >= end {
        return Ok(Proof::Same);
    }
    let mut chain = start.proof_chain;
    let mut reader = match log.read(position) {
        // The part has been released since HELLO was sent.
        Err(LogError::Released { .. }) => return Ok(Proof::Same),
        reader => reader?,
    };
    while position < end {
        position = match reader.next() {
            Ok(Some(record)) => record.end,
            // No record of this log begins there.
            Err(LogError::Corrupt { .. }) | Ok(None) => return Ok(Proof::Other),
            Err(LogError::Released { .. }) => return Ok(Proof::Same),
            Err(error) => return Err(error),
        };
        chain = chained(chain, reader.last_bytes());
    }
    let is_same = position == end && chain == start.chain;
    Ok(if is_same { Proof::Same } else { Proof::Other })
}

/// The file that records a refusal.
pub struct Refusal<'f> {
    fs: &'f SharedFs,
    datadir: &'f Path,
}

impl<'f> Refusal<'f> {
    pub fn new(fs: &'f SharedFs, datadir: &'f Path) -> Refusal<'f> {
        Refusal { fs, datadir }
    }

    pub fn path(&self) -> PathBuf {
        self.datadir.join(NAME)
    }

    /// Returns the reason of a refusal by this repository.
    pub fn read(&self, to: &str) -> io::Result<Option<String>> {
        if !self.fs.exists(&self.path()) {
            return Ok(None);
        }
        let file = self.fs.open(&self.path(), OpenMode::Read)?;
        let mut bytes = vec![0; TEXT_BYTES_MAX];
        let got = file.read_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes[..got]);
        let (place, why) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((place == to).then(|| why.trim_end().to_owned()))
    }

    /// Records a refusal durably.
    pub fn write(&self, to: &str, why: &str) -> io::Result<()> {
        let file = self.fs.open(&self.path(), OpenMode::CreateOrOpen)?;
        let text = format!("{to}\n{why}\n");
        file.set_len(0)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync_data()?;
        self.fs.sync_dir(self.datadir)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohort_vfs::MemFs;

    use super::*;

    #[test]
    fn a_refusal_is_kept_for_its_repository() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let dir = Path::new("/data");
        fs.create_dir_all(dir).expect("created");
        let refusal = Refusal::new(&fs, dir);
        assert_eq!(refusal.read("/a").expect("read"), None);
        refusal.write("/a", "a longer reason\nof two lines").expect("written");
        refusal.write("/a", "another log").expect("written");
        assert_eq!(refusal.read("/a").expect("read").as_deref(), Some("another log"));
        assert_eq!(refusal.read("/b").expect("read"), None);
    }
}
