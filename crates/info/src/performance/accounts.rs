//! `performance_schema.accounts`, `users` and `hosts`: connections by the names that clients log in with.
//! `session_connect_attrs`: their attributes.

use std::collections::BTreeMap;

use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

use crate::cells::{integer, text};

/// Returns the rows of one of the tables. A column that the table lacks does not distinguish rows.
pub(super) fn rows(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let (has_user, has_host) = (has("USER"), has("HOST"));
    let key = |user: &str, host: &str| {
        (
            if has_user { user.to_owned() } else { String::new() },
            if has_host { host.to_owned() } else { String::new() },
        )
    };
    let mut counts: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for ((user, host), logins) in ctx.db.processes.logins() {
        counts.entry(key(&user, &host)).or_default().1 += logins.total;
    }
    for process in ctx.db.processes.all() {
        let identity = process.identity();
        if identity.account.is_some() {
            counts.entry(key(&identity.user, identity.host_name())).or_default().0 += 1;
        }
    }
    let row = |((user, host), (current, total)): ((String, String), (u64, u64))| {
        let cell = |column: &VirtualColumn| match column.name {
            "USER" => text(user.as_str()),
            "HOST" => text(host.as_str()),
            "CURRENT_CONNECTIONS" => integer(current),
            _ => integer(total),
        };
        columns.iter().map(cell).collect()
    };
    counts.into_iter().map(row).collect()
}

/// Returns the attributes of all connections, or of those by the session's own user and host.
pub(super) fn attributes(ctx: &StatementContext<'_>, is_own: bool) -> Vec<Vec<Value>> {
    let own = ctx.process.identity();
    let mut rows = Vec::new();
    for process in ctx.db.processes.all() {
        let identity = process.identity();
        if is_own && (&identity.user, identity.host_name()) != (&own.user, own.host_name()) {
            continue;
        }
        for (place, (name, value)) in process.attributes().iter().enumerate() {
            let id = integer(process.id().0);
            rows.push(vec![id, text(name.as_str()), text(value.as_str()), integer(place)]);
        }
    }
    rows
}
