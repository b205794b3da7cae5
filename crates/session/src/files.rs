//! Files that statements read and write: SELECT ... INTO OUTFILE, LOAD DATA.
//! The server opens the files ([`ServerFiles`]); without it there are none.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_config::VarId;
use cohort_expr::EvalContext;
use cohort_sql::ast::FileFormat;
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, Warning};

use crate::server_files::ServerFiles;
use crate::session_state::SessionState;

/// The server's files; error 1235 where there is no server.
pub fn files(session: &SessionState) -> SqlResult<Arc<dyn ServerFiles>> {
    session.db.files.read().clone().ok_or_else(|| SqlError::not_supported("a file of the server"))
}

/// Where a name of a statement is: in the data directory unless it says otherwise, for reading in that of the
/// current database.
pub fn place(files: &dyn ServerFiles, name: &str, schema: Option<&str>) -> PathBuf {
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

/// Error 1290 unless `secure_file_priv` allows the folder, or the file that is there.
pub fn check_secure(session: &SessionState, files: &dyn ServerFiles, path: &Path) -> SqlResult<()> {
    let Some(allowed) = session.db.globals.text(VarId::SecureFilePriv).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let inside = match (files.real(Path::new(&*allowed)), files.real(path)) {
        (Ok(allowed), Ok(path)) => path.starts_with(allowed),
        _ => false,
    };
    if inside {
        return Ok(());
    }
    let text = "The MariaDB server is running with the --secure-file-priv option so it cannot execute this statement";
    Err(SqlError::new(ErrorCode::OptionPreventsStatement, text))
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
