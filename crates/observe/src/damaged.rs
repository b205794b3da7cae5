//! Files that are damaged or of another version.

use std::path::{Path, PathBuf};

use cohort_vfs::Fs;

/// Returns the path with a suffix of its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Renames a file that cannot be used, so that a new one takes its place. Returns the outcome for a warning.
pub(crate) fn set_aside(fs: &dyn Fs, path: &Path) -> String {
    let damaged = with_suffix(path, ".damaged");
    match fs.rename(path, &damaged) {
        Ok(()) => format!("it was renamed to '{}'", damaged.display()),
        Err(error) => format!("it cannot be renamed: {error}"),
    }
}
