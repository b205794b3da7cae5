//! BINLOG '...': the form in which `mariadb-binlog` prints row events, so that a binlog file can be piped
//! into a client.

use cohort_binlog::StatementError;
use cohort_binlog::event::{DecodeError, Event};
use cohort_session::{BinlogStatements, StatementContext};
use cohort_types::{SqlError, SqlResult};

use crate::apply::apply_rows;
use crate::outcome::DmlOutcome;
use crate::row_applier::ApplyRules;
use crate::unpack::{bad_event, refused};

/// Runs BINLOG with this text.
pub fn run_binlog_statement(ctx: &mut StatementContext<'_>, text: &[u8]) -> SqlResult<DmlOutcome> {
    if text.is_empty() {
        return Err(SqlError::syntax_error());
    }
    let mut applier = ctx.session.binlog_applier.take().unwrap_or_default();
    let result = apply(&mut applier, ctx, text);
    ctx.session.binlog_applier.replace(Some(applier));
    result.map(|()| DmlOutcome::default())
}

fn apply(kept: &mut BinlogStatements, ctx: &mut StatementContext<'_>, text: &[u8]) -> SqlResult<()> {
    for (_, event) in kept.decoder.decode(text).map_err(refused)? {
        match event {
            Event::TableMap(map) => {
                kept.maps.retain(|known| known.table_id != map.table_id);
                kept.maps.push(map);
            }
            Event::Rows(rows) => {
                let map = kept.maps.iter().find(|map| map.table_id == rows.table_id);
                let map = map.ok_or_else(|| bad_event(DecodeError::BadValue("rows without a table map")))?;
                apply_rows(ctx, map, &rows, &ApplyRules::of(&ctx.db.globals))?;
                if rows.ends_statement() {
                    kept.maps.clear();
                }
            }
            other => return Err(refused(StatementError::NotAllowed(other.kind()))),
        }
    }
    Ok(())
}
