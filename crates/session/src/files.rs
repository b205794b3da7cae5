//! Files that statements read and write: SELECT ... INTO OUTFILE, LOAD DATA, LOAD_FILE. The server opens the
//! files ([`ServerFiles`]); without a server there is no file access.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_config::VarId;
use cohort_expr::{EvalContext, LoadedFile, SessionHooks};
use cohort_sql::ast::FileFormat;
use cohort_types::{ErrorCode, Level, Privilege, SqlError, SqlResult, Warning};

use crate::access;
use crate::server_files::ServerFiles;
use crate::session_state::SessionState;

/// Bytes read between two checks for KILL.
const PIECE_BYTES: usize = 1 << 20;

/// Returns the server's file access; error 1235 without a server.
pub fn files(session: &SessionState) -> SqlResult<Arc<dyn ServerFiles>> {
    session.db.files.read().clone().ok_or_else(|| SqlError::not_supported("a file of the server"))
}

/// Resolves a file name of a statement. A bare name is relative to the current database's directory, a name
/// with a directory to the data directory, unless it is absolute.
pub fn place(files: &dyn ServerFiles, name: &str, schema: Option<&str>) -> PathBuf {
    let schema = schema.filter(|_| !name.contains('/'));
    let folder = schema.map_or_else(|| files.datadir().to_owned(), |schema| files.datadir().join(schema));
    // `join` replaces the base if the name is absolute. Dots are resolved here, because the directory of a
    // database need not exist.
    let mut path = PathBuf::new();
    for part in folder.join(name).components() {
        match part {
            std::path::Component::ParentDir => drop(path.pop()),
            std::path::Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// The kernel's directory of processes, including this one: never accessible to clients.
const PROCESSES: &str = "/proc";

/// Returns error 1290 unless `secure_file_priv` allows the directory, or the file that exists there. Paths
/// below `/proc` are never allowed.
pub fn check_secure(session: &SessionState, files: &dyn ServerFiles, path: &Path) -> SqlResult<()> {
    let real = files.real(path);
    let is_allowed = !real.as_ref().is_ok_and(|path| path.starts_with(PROCESSES));
    let allowed = session.db.globals.text(VarId::SecureFilePriv).filter(|path| !path.is_empty());
    let is_inside = match allowed {
        None => true,
        Some(allowed) => match (files.real(Path::new(&*allowed)), real) {
            (Ok(allowed), Ok(path)) => path.starts_with(allowed),
            _ => false,
        },
    };
    if is_allowed && is_inside {
        return Ok(());
    }
    Err(SqlError::prevented_by_option("--secure-file-priv"))
}

/// Reads a file for LOAD_FILE. A file counts as missing without the privilege FILE, outside of
/// `secure_file_priv`, and if it is not readable by all.
pub fn load(session: &SessionState, name: &str, bytes_max: u64) -> SqlResult<LoadedFile> {
    let Ok(files) = files(session) else { return Ok(LoadedFile::Missing) };
    let path = place(&*files, name, None);
    let may =
        access::check_global(session, Privilege::File).and_then(|()| check_secure(session, &*files, &path));
    let (Ok(()), Ok(bytes)) = (may, files.public_bytes(&path)) else { return Ok(LoadedFile::Missing) };
    if bytes > bytes_max {
        return Ok(LoadedFile::TooLong(bytes));
    }
    let Ok((mut file, _)) = files.open(&path) else { return Ok(LoadedFile::Missing) };
    let (mut whole, mut piece) = (Vec::with_capacity(bytes as usize), vec![0; PIECE_BYTES]);
    loop {
        session.check_interrupt()?;
        match file.read(&mut piece) {
            // Virtual files of the kernel report another length than they have.
            Ok(0) if (whole.len() as u64) < bytes => return Ok(LoadedFile::Missing),
            Ok(0) => return Ok(LoadedFile::Bytes(whole)),
            Ok(read) => whole.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(LoadedFile::Missing),
        }
        // The file has grown meanwhile.
        if whole.len() as u64 > bytes_max {
            return Ok(LoadedFile::TooLong(whole.len() as u64));
        }
    }
}

/// Returns error 1083 for separators that could not be read back.
pub fn check_format(format: &FileFormat, eval: &EvalContext<'_>) -> SqlResult<()> {
    if format.enclosed.len() <= 1 && format.escaped.len() <= 1 {
        let FileFormat { field_end, enclosed, escaped, line_start, line_end, .. } = format;
        if ![field_end, enclosed, escaped, line_start, line_end].iter().all(|bytes| bytes.is_ascii()) {
            let error = SqlError::non_ascii_separator();
            eval.push_warning(Warning { level: Level::Warning, error });
        }
        return Ok(());
    }
    Err(SqlError::wrong_field_separator())
}

/// Formats an I/O error as MariaDB does.
pub fn file_error(code: ErrorCode, what: &str, error: &io::Error) -> SqlError {
    let number = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    SqlError::new(code, format!("{what} (Errcode: {number} \"{text}\")"))
}
