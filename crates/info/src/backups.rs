//! information_schema.COHORT_BACKUPS: the backups that this data directory has taken.

use cohort_commit::KnownBackup;
use cohort_session::access::check_global;
use cohort_session::{StatementContext, WantedNames};
use cohort_types::{Privilege, SqlError, SqlResult, Value};

use super::cells::{integer, text};
use super::schema_table::SchemaTable;

pub fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    check_global(ctx.session, Privilege::Process)?;
    let all = ctx.db.commit.known_backups().map_err(|error| SqlError::backup_failed(&error))?;
    let row = |known: KnownBackup| {
        out.row([
            ("BACKUP_ID", text(known.id)),
            ("TIMELINE", integer(u64::from(known.timeline))),
            ("CUT_UNIXTIME", integer(known.cut_us / 1_000_000)),
            ("PROVEN", text(if known.is_proven { "YES" } else { "NO" })),
        ])
    };
    Ok(all.into_iter().map(row).collect())
}
