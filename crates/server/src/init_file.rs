//! `init_file`: statements that run before clients do.

use cohort_base::ConnectionId;
use cohort_exec::Origin;
use cohort_types::{Collation, ErrorCode};

use crate::backend::{Backend, ConnectionInfo, MultiStatements};
use crate::commands::OnlyError;
use crate::sql_backend::SqlBackend;

/// Runs a text of statements one after the other, and waits until they are durable. The first error ends it.
/// They run as `root`, with all privileges, whatever became of that account: a lost password is set again in
/// this way.
pub fn run(backend: &SqlBackend, id: ConnectionId, text: &[u8], origin: Origin) -> Result<(), String> {
    let local_root = ("root".to_owned(), "localhost".to_owned());
    let info = ConnectionInfo {
        id,
        user: local_root.0.clone(),
        host: local_root.1.clone(),
        peer: local_root.1.clone(),
        account: local_root,
        schema: None,
        collation: Collation::UTF8MB4_GENERAL_CI.0,
        multi_statements: MultiStatements::On,
        interactive: false,
        found_rows: false,
        attributes: Vec::new(),
        encryption: None,
        is_local: true,
    };
    let mut session = backend.connect_server(info, origin).map_err(|error| error.message)?;
    let mut outcome = OnlyError(None);
    session.query(text, &mut outcome);
    backend.lead();
    if !backend.wait_acknowledged(session.hold().until()) {
        return Err("the log failed".to_owned());
    }
    match outcome.0 {
        // A comment may follow the last statement, or be all there is.
        Some(error) if error.code != ErrorCode::EmptyQuery => {
            Err(format!("error {}: {}", error.number(), error.message))
        }
        _ => Ok(()),
    }
}
