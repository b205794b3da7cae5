//! Anonymous temporary files.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{OpenMode, SharedFile, SharedFs};

/// Creates an anonymous temporary file for a client. It is deleted when its last handle is dropped.
pub fn anonymous_temp_file(fs: &SharedFs, directory: &Path) -> io::Result<SharedFile> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("cohort-{}-{number}.tmp", std::process::id()));
    let file = fs.open_for_client(&path, OpenMode::CreateNew)?;
    fs.remove(&path).map(|()| file)
}
