//! Rows of information_schema about the server: engines, connections, character sets, counters, variables,
//! accounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_catalog::AdminOption;
use cohort_config::{Scope, VarId};
use cohort_ddl::{Granted, GrantedOn, grant_list};
use cohort_expr::{SessionHooks, VariableScope};
use cohort_session::access::roles_of;
use cohort_session::{AcknowledgedBy, Command, ProcessSnapshot, StatementContext, WantedNames};
use cohort_types::{Charset, Collation, Decimal, Privilege, SqlResult, Value};

use super::cells::{integer, text};
use super::schema_table::SchemaTable;
use super::status::{Of, server_status};
use super::transactions::blocked_states;

type Rows = SqlResult<Vec<Vec<Value>>>;

pub(super) fn engines(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let engines = ctx.db.engines.iter().enumerate().map(|(n, engine)| {
        out.row([
            ("ENGINE", text(engine.name())),
            ("SUPPORT", text(if n == 0 { "DEFAULT" } else { "YES" })),
            ("COMMENT", text("Transactions and row locks; redo and binary log in one log")),
            ("TRANSACTIONS", text("YES")),
            ("XA", text("YES")),
            ("SAVEPOINTS", text("YES")),
        ])
    });
    Ok(engines.collect())
}

/// Returns the connections that the session may see: all with PROCESS, else those of its own account.
pub(super) fn processes(ctx: &StatementContext<'_>) -> Vec<ProcessSnapshot> {
    let sees_all = ctx.session.access().everywhere().has(Privilege::Process);
    let all = ctx.db.processes.all();
    let callbacks = ctx.db.callbacks.read();
    let acknowledged = ctx.db.commit.acknowledged();
    let waits_for = |seq| {
        if seq <= acknowledged {
            None
        } else if ctx.db.commit.is_waiting_for_archive(seq) {
            Some(AcknowledgedBy::Archive)
        } else {
            let waits = callbacks.as_ref().is_some_and(|callbacks| callbacks.is_waiting_for_replicas(seq));
            waits.then_some(AcknowledgedBy::Replica)
        }
    };
    let blocked = blocked_states(ctx.db);
    let snapshots = all.iter().map(|p| {
        let mut snapshot = p.snapshot(&waits_for);
        let trx = p.trx_stats().snapshot().map(|trx| trx.trx);
        snapshot.state = trx.and_then(|trx| blocked.get(&trx).copied()).unwrap_or(snapshot.state);
        snapshot
    });
    snapshots.filter(|p| sees_all || ctx.session.is_own(&p.identity)).collect()
}

/// Returns the microseconds since the connection's current command began.
pub(super) fn running_us(ctx: &StatementContext<'_>, process: &ProcessSnapshot) -> u64 {
    ctx.db.clock.wall_us().saturating_sub(process.since_us)
}

pub(super) fn processlist(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let row = |p: ProcessSnapshot| {
        let us = running_us(ctx, &p);
        let state = match p.command {
            Command::Sleep => "",
            _ if p.id == ctx.process.id() => "Filling schema table",
            _ => p.state,
        };
        out.row([
            ("ID", integer(p.id.0)),
            ("USER", text(&p.identity.user)),
            ("HOST", text(&p.identity.host)),
            ("DB", p.identity.schema.clone().map_or(Value::Null, text)),
            ("COMMAND", text(p.command.name())),
            ("TIME", integer(us / 1_000_000)),
            ("STATE", text(state)),
            ("INFO", p.info.clone().map_or(Value::Null, text)),
            ("TIME_MS", thousandths(us)),
            ("STAGE", integer(0)),
            ("MAX_STAGE", integer(0)),
            ("PROGRESS", thousandths(u64::from(p.progress))),
            ("MEMORY_USED", integer(p.memory_bytes)),
            ("MAX_MEMORY_USED", integer(p.memory_bytes_max)),
            ("EXAMINED_ROWS", integer(0)),
            ("QUERY_ID", integer(p.query_id)),
            ("INFO_BINARY", p.info.map_or(Value::Null, |i| Value::binary(i.into_bytes()))),
            ("TID", integer(0)),
        ])
    };
    Ok(processes(ctx).into_iter().map(row).collect())
}

/// Returns a number with three decimal places.
pub(super) fn thousandths(n: u64) -> Value {
    let text = format!("{}.{:03}", n / 1000, n % 1000);
    Value::Decimal(Decimal::parse(text.as_bytes()).0)
}

pub(super) fn character_sets(out: &SchemaTable, _: &WantedNames, _: &mut StatementContext<'_>) -> Rows {
    let row = |set: &Charset| {
        out.row([
            ("CHARACTER_SET_NAME", text(set.name())),
            ("DEFAULT_COLLATE_NAME", text(set.default_collation().name())),
            ("DESCRIPTION", text(set.description())),
            ("MAXLEN", integer(set.mbmaxlen())),
        ])
    };
    Ok(Charset::ALL.iter().map(row).collect())
}

pub(super) fn collations(out: &SchemaTable, _: &WantedNames, _: &mut StatementContext<'_>) -> Rows {
    let row = |collation: Collation| {
        out.row([
            ("COLLATION_NAME", text(collation.name())),
            ("CHARACTER_SET_NAME", text(collation.charset().name())),
            ("ID", integer(collation.0)),
            ("IS_DEFAULT", text(if collation.is_default() { "Yes" } else { "" })),
            ("IS_COMPILED", text("Yes")),
            ("SORTLEN", integer(collation.sort_len())),
        ])
    };
    // A collation name shared by several character sets is listed once, without a character set.
    let shared = Collation::all().filter(|c| c.charset() == Charset::Utf8mb4);
    let shared = shared.filter_map(|collation| Some((collation.common_name()?, collation.sort_len())));
    let shared = shared.map(|(name, length)| {
        out.row([("COLLATION_NAME", text(name)), ("IS_COMPILED", text("Yes")), ("SORTLEN", integer(length))])
    });
    Ok(Collation::all().filter(|c| c.common_name().is_none()).map(row).chain(shared).collect())
}

pub(super) fn applicability(out: &SchemaTable, _: &WantedNames, _: &mut StatementContext<'_>) -> Rows {
    let row = |collation: Collation| {
        out.row([
            ("COLLATION_NAME", text(collation.common_name().unwrap_or(collation.name()))),
            ("CHARACTER_SET_NAME", text(collation.charset().name())),
            ("FULL_COLLATION_NAME", text(collation.name())),
            ("ID", integer(collation.0)),
            ("IS_DEFAULT", text(if collation.is_default() { "Yes" } else { "" })),
        ])
    };
    Ok(Collation::all().map(row).collect())
}

fn pairs(out: &SchemaTable, pairs: impl IntoIterator<Item = (String, String)>) -> Vec<Vec<Value>> {
    let row = |(name, value): (String, String)| {
        out.row([("VARIABLE_NAME", text(name.to_uppercase())), ("VARIABLE_VALUE", text(value))])
    };
    pairs.into_iter().map(row).collect()
}

pub(super) fn global_status(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    Ok(pairs(out, server_status(ctx, Of::Server)))
}

pub(super) fn session_status(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    Ok(pairs(out, server_status(ctx, Of::Session)))
}

/// Returns the names and values of all variables, as listed by SHOW VARIABLES.
pub(super) fn variables(ctx: &StatementContext<'_>, scope: Scope) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for id in VarId::shown() {
        let setting = id.setting();
        let is_global = scope == Scope::Global;
        if is_global && !setting.has_global_value() {
            continue;
        }
        let value = if setting.computed {
            let wanted = if is_global { VariableScope::Global } else { VariableScope::Default };
            match ctx.session.system_variable(wanted, setting.name) {
                Ok(value) => value.to_text(),
                Err(_) => continue,
            }
        } else if is_global {
            ctx.db.globals.value(id).to_string()
        } else {
            ctx.session.settings.vars.value(id).to_string()
        };
        all.insert(setting.name.to_owned(), value);
    }
    all
}

pub(super) fn global_variables(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    Ok(pairs(out, variables(ctx, Scope::Global)))
}

pub(super) fn session_variables(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    Ok(pairs(out, variables(ctx, Scope::Session)))
}

/// Returns a row of a privilege table. `place` has the cells that identify the object.
fn granted<const N: usize>(out: &SchemaTable, grant: &Granted, place: [(&str, Value); N]) -> Vec<Value> {
    let mut row = out.row(place);
    let cells = [
        ("GRANTEE", text(&grant.grantee)),
        ("TABLE_CATALOG", text("def")),
        ("PRIVILEGE_TYPE", text(grant.privilege)),
        ("IS_GRANTABLE", text(grant.is_grantable)),
    ];
    for (name, value) in cells {
        row[out.place(name)] = value;
    }
    row
}

fn grants(
    out: &SchemaTable,
    ctx: &StatementContext<'_>,
    row: impl Fn(&SchemaTable, &Granted) -> Option<Vec<Value>>,
) -> Rows {
    Ok(grant_list(ctx.session).iter().filter_map(|grant| row(out, grant)).collect())
}

/// Returns the roles granted to the account, directly or through other roles.
pub(super) fn applicable_roles(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let catalog = ctx.db.catalog();
    let Some(own) = catalog.accounts.get(&ctx.session.info.account) else { return Ok(Vec::new()) };
    let mut holders = vec![Arc::clone(own)];
    for role in own.roles.keys() {
        for found in roles_of(&catalog, Some(role)) {
            if holders.iter().all(|known| known.name != found.name) {
                holders.push(found);
            }
        }
    }
    let rows = holders.iter().flat_map(|holder| {
        holder.roles.iter().map(move |(role, admin)| {
            let (user, host) = &holder.name;
            let yes_or_no = |is: bool| text(if is { "YES" } else { "NO" });
            let (grantee, is_default) = match holder.is_role {
                true => (user.clone(), Value::Null),
                false => (format!("{user}@{host}"), yes_or_no(holder.default_role == *role)),
            };
            out.row([
                ("GRANTEE", text(&grantee)),
                ("ROLE_NAME", text(role)),
                ("IS_GRANTABLE", yes_or_no(*admin == AdminOption::With)),
                ("IS_DEFAULT", is_default),
            ])
        })
    });
    Ok(rows.collect())
}

/// Returns the active role and all roles granted to it, or NULL without an active role.
pub(super) fn enabled_roles(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let enabled = roles_of(&ctx.db.catalog(), ctx.session.identity.role.as_deref());
    if enabled.is_empty() {
        return Ok(vec![out.row([("ROLE_NAME", Value::Null)])]);
    }
    Ok(enabled.iter().map(|role| out.row([("ROLE_NAME", text(&role.name.0))])).collect())
}

pub(super) fn user_privileges(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    grants(out, ctx, |out, grant| (grant.on == GrantedOn::Everything).then(|| granted(out, grant, [])))
}

pub(super) fn schema_privileges(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    grants(out, ctx, |out, grant| match &grant.on {
        GrantedOn::Schema(schema) => Some(granted(out, grant, [("TABLE_SCHEMA", text(schema))])),
        _ => None,
    })
}

pub(super) fn table_privileges(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    grants(out, ctx, |out, grant| match &grant.on {
        GrantedOn::Table(on) => {
            let place = [("TABLE_SCHEMA", text(&on.schema)), ("TABLE_NAME", text(&on.table))];
            Some(granted(out, grant, place))
        }
        _ => None,
    })
}

pub(super) fn column_privileges(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    grants(out, ctx, |out, grant| match &grant.on {
        GrantedOn::Column(on, column) => {
            let table = [("TABLE_SCHEMA", text(&on.schema)), ("TABLE_NAME", text(&on.table))];
            let [schema, name] = table;
            Some(granted(out, grant, [schema, name, ("COLUMN_NAME", text(column))]))
        }
        _ => None,
    })
}
