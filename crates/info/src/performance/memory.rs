//! `performance_schema.memory_summary_*`: the memory that is accounted for. Allocations are pages of the
//! buffer pool, rows of the statistics, and sessions.

use std::collections::BTreeMap;

use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

use crate::cells::{integer, number, text};
use crate::status::{Of, server_status};

/// Statements, transactions, prepared statements and variables of sessions.
const SESSIONS: &str = "memory/sql/sessions";
const DIGESTS: &str = "memory/performance_schema/events_statements_summary_by_digest";
const POOL: &str = "memory/innodb/buf_buf_pool";

/// Memory of one kind.
struct Use {
    name: &'static str,
    used: u64,
    /// The most bytes that were in use.
    peak: u64,
    /// Allocations now, and those that have ended.
    count: u64,
    ended: u64,
}

/// Returns a row. `owner` has the cells that name its owner.
fn row(columns: &[VirtualColumn], of: Use, owner: &[(&str, Value)]) -> Vec<Value> {
    let Use { name, used, peak, count, ended } = of;
    let cell = |column: &VirtualColumn| match column.name {
        "EVENT_NAME" => text(name),
        "CURRENT_NUMBER_OF_BYTES_USED" => integer(used),
        "HIGH_NUMBER_OF_BYTES_USED" => integer(peak.max(used)),
        "COUNT_ALLOC" => number(count + ended),
        "COUNT_FREE" => number(ended),
        "CURRENT_COUNT_USED" => integer(count),
        other => match owner.iter().find(|(known, _)| *known == other) {
            Some((_, value)) => value.clone(),
            None if column.ty.unsigned => number(0u64),
            None => integer(0),
        },
    };
    columns.iter().map(cell).collect()
}

/// Returns the rows of `memory_summary_global_by_event_name`.
pub(super) fn global(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let sessions = ctx.db.processes.memory();
    let status = server_status(ctx, Of::Server);
    let pool = status.get("Innodb_buffer_pool_bytes_data").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    let digests = ctx.db.statements.bytes();
    let pages = |name: &str| status.get(name).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    let statements = &ctx.db.statements;
    let logins = ctx.db.processes.logins().values().map(|logins| logins.total).sum::<u64>();
    let open = ctx.db.processes.len() as u64;
    let uses = [
        Use {
            name: POOL,
            used: pool,
            peak: pool,
            count: pages("Innodb_buffer_pool_pages_data"),
            ended: pages("Innodb_buffer_pool_pages_evicted"),
        },
        Use {
            name: DIGESTS,
            used: digests,
            peak: digests,
            count: statements.len() as u64,
            ended: statements.lost(),
        },
        Use {
            name: SESSIONS,
            used: sessions.used(),
            peak: sessions.peak(),
            count: open,
            ended: logins.saturating_sub(open),
        },
    ];
    uses.into_iter().map(|used| row(columns, used, &[])).collect()
}

/// Returns the rows of the tables by thread, user, host and account: the memory of connected sessions.
pub(super) fn by_owner(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let [has_thread, has_user, has_host] = ["THREAD_ID", "USER", "HOST"].map(has);
    let mut sums: BTreeMap<(u64, Option<String>, Option<String>), (u64, u64, u64)> = BTreeMap::new();
    for process in ctx.db.processes.all() {
        let identity = process.identity();
        let named = |is: bool, name: &str| (is && identity.account.is_some()).then(|| name.to_owned());
        let owner = (
            if has_thread { process.id().0 } else { 0 },
            named(has_user, &identity.user),
            named(has_host, identity.host_name()),
        );
        let sum = sums.entry(owner).or_default();
        sum.0 += process.memory().used();
        sum.1 += process.memory().peak();
        sum.2 += 1;
    }
    let name = |name: Option<String>| name.map_or(Value::Null, text);
    let rows = sums.into_iter().map(|((thread, user, host), (used, peak, count))| {
        let owner = [("THREAD_ID", number(thread)), ("USER", name(user)), ("HOST", name(host))];
        row(columns, Use { name: SESSIONS, used, peak, count, ended: 0 }, &owner)
    });
    rows.collect()
}
