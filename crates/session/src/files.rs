//! Files that statements read and write: SELECT ... INTO OUTFILE, LOAD DATA, LOAD_FILE.
//! The server opens the files ([`ServerFiles`]); without it there are none.

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

/// Read between two looks at whether the statement was killed.
const PIECE_BYTES: usize = 1 << 20;

/// The server's files; error 1235 where there is no server.
pub fn files(session: &SessionState) -> SqlResult<Arc<dyn ServerFiles>> {
    session.db.files.read().clone().ok_or_else(|| SqlError::not_supported("a file of the server"))
}

/// Where a name of a statement is: a bare name in the folder of the current database, one with a folder from
/// the data directory on, unless it is absolute.
pub fn place(files: &dyn ServerFiles, name: &str, schema: Option<&str>) -> PathBuf {
    let schema = schema.filter(|_| !name.contains('/'));
    let folder = schema.map_or_else(|| files.datadir().to_owned(), |schema| files.datadir().join(schema));
    // An absolute name takes the folder's place. Dots go here: the folder of a database need not be there.
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

/// Directories in which the system shows processes, this one too: no file of a client's.
const PROCESSES: &str = "/proc";

/// Error 1290 unless `secure_file_priv` allows the folder, or the file that is there. Nothing below `/proc`
/// is allowed.
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
    let text = "The MariaDB server is running with the --secure-file-priv option so it cannot execute this statement";
    Err(SqlError::new(ErrorCode::OptionPreventsStatement, text))
}

/// LOAD_FILE: without the privilege FILE, beyond `secure_file_priv`, and where not everybody may read it, a
/// file is as if it were not there.
pub fn load(session: &SessionState, name: &str, bytes_max: u64) -> SqlResult<LoadedFile> {
    let Ok(files) = files(session) else { return Ok(LoadedFile::Missing) };
    let path = place(&*files, name, None);
    let may =
        access::check_global(session, Privilege::File).and_then(|()| check_secure(session, &*files, &path));
    let (Ok(()), Ok(bytes)) = (may, files.public_bytes(&path)) else { return Ok(LoadedFile::Missing) };
    if bytes > bytes_max {
        return Ok(LoadedFile::TooLong(bytes));
    }
    let Ok(mut file) = files.open(&path) else { return Ok(LoadedFile::Missing) };
    let (mut whole, mut piece) = (Vec::with_capacity(bytes as usize), vec![0; PIECE_BYTES]);
    loop {
        session.check_interrupt()?;
        match file.read(&mut piece) {
            // A file of the system's own says another length than it has.
            Ok(0) if (whole.len() as u64) < bytes => return Ok(LoadedFile::Missing),
            Ok(0) => return Ok(LoadedFile::Bytes(whole)),
            Ok(read) => whole.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(LoadedFile::Missing),
        }
        // It has grown since.
        if whole.len() as u64 > bytes_max {
            return Ok(LoadedFile::TooLong(whole.len() as u64));
        }
    }
}

/// Error 1083 for separators that nobody could read again.
pub fn check_format(format: &FileFormat, eval: &EvalContext<'_>) -> SqlResult<()> {
    if format.enclosed.len() <= 1 && format.escaped.len() <= 1 {
        let FileFormat { field_end, enclosed, escaped, line_start, line_end, .. } = format;
        if ![field_end, enclosed, escaped, line_start, line_end].iter().all(|bytes| bytes.is_ascii()) {
            let text = "Non-ASCII separator arguments are not fully supported";
            let error = SqlError::new(ErrorCode::NonAsciiSeparator, text);
            eval.push_warning(Warning { level: Level::Warning, error });
        }
        return Ok(());
    }
    let text = "Field separator argument is not what is expected; check the manual";
    Err(SqlError::new(ErrorCode::WrongFieldTerminators, text))
}

/// An error of a file as MariaDB tells it.
pub fn file_error(code: ErrorCode, what: &str, error: &io::Error) -> SqlError {
    let number = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    SqlError::new(code, format!("{what} (Errcode: {number} \"{text}\")"))
}
