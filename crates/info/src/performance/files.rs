//! `performance_schema.file_instances` and `file_summary_*`: reads, writes and syncs of the server's files.
//!
//! Files of clients, temporary files and files of RocksDB are not counted. Syncs are the miscellaneous
//! operations.

use std::collections::BTreeMap;
use std::path::Path;

use cohort_binlog::is_file_number;
use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;
use cohort_vfs::{FileIo, IoSum};

use super::statements::PICOSECONDS;
use crate::cells::{integer, number, text};

const DATA: &str = "wait/io/file/innodb/innodb_data_file";
const LOG: &str = "wait/io/file/innodb/innodb_log_file";
const BINLOG: &str = "wait/io/file/sql/binlog";
const BINLOG_INDEX: &str = "wait/io/file/sql/binlog_index";
const RELAY_LOG: &str = "wait/io/file/sql/relaylog";
const RELAY_LOG_INDEX: &str = "wait/io/file/sql/relaylog_index";
const OTHERS: &str = "wait/io/file/sql/misc";

/// The kinds of files, under MariaDB's names.
pub(super) const EVENTS: [&str; 7] = [DATA, LOG, BINLOG, BINLOG_INDEX, RELAY_LOG, RELAY_LOG_INDEX, OTHERS];

/// Returns the kind of a file.
fn event_of(path: &Path) -> &'static str {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let dir = path.parent().and_then(Path::file_name).map(|dir| dir.to_string_lossy()).unwrap_or_default();
    let is_numbered = name.rsplit_once('.').is_some_and(|(_, number)| is_file_number(number));
    let is_relayed = name.contains("relay");
    match (&*name, &*dir) {
        (_, "innodb") if !name.starts_with("log.") => DATA,
        _ if name.starts_with("log.") => LOG,
        _ if name.ends_with(".index") && is_relayed => RELAY_LOG_INDEX,
        _ if name.ends_with(".index") => BINLOG_INDEX,
        _ if is_numbered && is_relayed => RELAY_LOG,
        _ if is_numbered => BINLOG,
        _ => OTHERS,
    }
}

/// Returns the value of a column of times, counts or bytes.
fn cell(column: &VirtualColumn, io: &FileIo) -> Value {
    let mut all = io.reads;
    all.add(&io.writes);
    all.add(&io.syncs);
    let of = |what: &str| -> IoSum {
        match what {
            "READ" => io.reads,
            "WRITE" => io.writes,
            "MISC" => io.syncs,
            _ => all,
        }
    };
    let time = |ns: u64| number(ns.saturating_mul(PICOSECONDS));
    match column.name {
        "SUM_NUMBER_OF_BYTES_READ" => integer(io.reads.bytes),
        "SUM_NUMBER_OF_BYTES_WRITE" => integer(io.writes.bytes),
        name => {
            let (what, kind) = name.rsplit_once('_').unwrap_or((name, ""));
            let sum = of(kind);
            match what {
                "COUNT" => number(sum.count),
                "SUM_TIMER" => time(sum.ns),
                "MIN_TIMER" => time(sum.min_ns),
                "AVG_TIMER" => time(sum.ns.checked_div(sum.count).unwrap_or(0)),
                _ => time(sum.max_ns),
            }
        }
    }
}

/// Returns the rows of `file_instances`.
pub(super) fn instances(ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let row = |io: FileIo| vec![text(io.path.to_string_lossy()), text(event_of(&io.path)), number(io.open)];
    ctx.db.fs.io().files.into_iter().map(row).collect()
}

/// Returns the rows of `file_summary_by_instance`.
pub(super) fn by_instance(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let row = |(place, io): (usize, FileIo)| {
        let cell = |column: &VirtualColumn| match column.name {
            "FILE_NAME" => text(io.path.to_string_lossy()),
            "EVENT_NAME" => text(event_of(&io.path)),
            "OBJECT_INSTANCE_BEGIN" => number(place as u64 + 1),
            _ => cell(column, &io),
        };
        columns.iter().map(cell).collect()
    };
    ctx.db.fs.io().files.into_iter().enumerate().map(row).collect()
}

/// Returns the rows of `file_summary_by_event_name`.
pub(super) fn by_event_name(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let mut sums: BTreeMap<&'static str, FileIo> = BTreeMap::new();
    for io in ctx.db.fs.io().files {
        let event = event_of(&io.path);
        match sums.get_mut(event) {
            None => _ = sums.insert(event, io),
            Some(sum) => {
                sum.reads.add(&io.reads);
                sum.writes.add(&io.writes);
                sum.syncs.add(&io.syncs);
            }
        }
    }
    let row = |(event, io): (&'static str, FileIo)| {
        let cell = |column: &VirtualColumn| match column.name {
            "EVENT_NAME" => text(event),
            _ => cell(column, &io),
        };
        columns.iter().map(cell).collect()
    };
    sums.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_of_mariadb() {
        for (path, event) in [
            ("/d/innodb/data", DATA),
            ("/d/log.000001", LOG),
            ("/d/innodb-log/log.000002", LOG),
            ("/d/binlog.000003", BINLOG),
            ("/d/binlog.index", BINLOG_INDEX),
            ("/d/relay-bin.000001", RELAY_LOG),
            ("/d/relay-bin-a.index", RELAY_LOG_INDEX),
            ("/d/catalog", OTHERS),
        ] {
            assert_eq!(event_of(Path::new(path)), event, "{path}");
        }
    }
}
