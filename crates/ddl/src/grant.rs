//! GRANT and REVOKE.
//!
//! An account can grant and revoke only privileges that it has itself, with GRANT OPTION, on the same object.

use std::collections::BTreeMap;

use cohort_catalog::{Account, AccountName, Catalog, Grants, RoutineName, TableName};
use cohort_locks::MetadataMode;
use cohort_session::access::check_schemas;
use cohort_session::{SessionState, StatementContext};
use cohort_sql::ast::{AccountOptions, Grant, GrantLevel, ObjectName, Privilege as Word, Revoke};
use cohort_sql::print::quoted_name;
use cohort_types::{Privilege, Privileges, RoutineKind, SqlError, SqlResult};

use super::DdlOutcome;
use super::account::resolve_grantee;
use super::account_changes::AccountChanges;
use super::database::check_length;
use super::program::{lock_kind, lock_program};
use super::view::view_columns;
use super::work::{LogText, commit, lock_schema};
use crate::grantee::{grantee, grantee_name, nonexisting};

/// The object of a GRANT.
enum Place {
    Everything,
    Schema(String),
    Table(TableName),
}

impl Place {
    fn of(session: &SessionState, level: &GrantLevel) -> SqlResult<Place> {
        let current = session.current_schema.as_deref();
        let schema = |name: Option<&str>| {
            let name = name.or(current).ok_or_else(SqlError::no_database_selected)?;
            check_length(name)?;
            // All accounts may read it, and nothing can be granted on it.
            match name.eq_ignore_ascii_case("information_schema") {
                true => Err(session.database_access_denied(name)),
                false => Ok(name.to_owned()),
            }
        };
        match level {
            GrantLevel::Global => Ok(Place::Everything),
            GrantLevel::Database(name) => Ok(Place::Schema(schema(name.as_deref())?)),
            GrantLevel::Table(name) => {
                let schema = schema(name.db.as_deref())?;
                // Names of virtual tables are not case-sensitive.
                Ok(Place::Table(match session.db.virtual_table(&schema, &name.name) {
                    Some(found) => TableName { schema: found.schema().into(), table: found.name().into() },
                    None => TableName { schema, table: name.name.clone() },
                }))
            }
            GrantLevel::Everywhere => Err(SqlError::not_supported("privileges without ON")),
            GrantLevel::Routine { .. } | GrantLevel::Role | GrantLevel::RoleAdmin | GrantLevel::Proxy(_) => {
                unreachable!("roles, routines and proxies go their own ways")
            }
        }
    }

    /// Returns the privileges that can be granted on the object.
    fn grantable(&self) -> Privileges {
        match self {
            Place::Everything => Privileges::EVERY,
            Place::Schema(_) => Privileges::OF_SCHEMA,
            Place::Table(_) => Privileges::OF_TABLE,
        }
    }
}

/// The privileges that a statement names.
#[derive(Default)]
struct Named {
    /// On the object as a whole.
    whole: Privileges,
    columns: BTreeMap<String, Privileges>,
}

impl Named {
    /// Parses the privileges: errors 1144, 1221. An account that has a privilege nowhere gets error 1045
    /// first.
    fn of(session: &SessionState, words: &[Word], place: &Place) -> SqlResult<Named> {
        let illegal = || SqlError::illegal_grant();
        let mut named = Named::default();
        for Word { name, columns } in words {
            let privileges = match name.as_str() {
                "USAGE" => Privileges::NONE,
                "ALL" | "ALL PRIVILEGES" => place.grantable().without(Privilege::GrantOption.into()),
                other => Privilege::named(other).ok_or_else(illegal)?.into(),
            };
            if !place.grantable().covers(privileges) {
                check_giver_of_all(session, privileges)?;
                return Err(match place {
                    Place::Schema(_) => SqlError::wrong_usage("DB GRANT", "GLOBAL PRIVILEGES"),
                    Place::Everything | Place::Table(_) => illegal(),
                });
            }
            if columns.is_empty() {
                named.whole = named.whole.and(privileges);
                continue;
            }
            if !matches!(place, Place::Table(_)) || !Privileges::OF_COLUMN.covers(privileges) {
                return Err(illegal());
            }
            for column in columns {
                let held = named.columns.entry(column.clone()).or_default();
                *held = held.and(privileges);
            }
        }
        Ok(named)
    }

    /// Returns the privileges that MariaDB does not know, if these are named and not ALL PRIVILEGES.
    fn unknown_to_mariadb(&self) -> Privileges {
        match self.whole.covers(Privileges::EVERY.without(Privilege::GrantOption.into())) {
            true => Privileges::NONE,
            false => self.whole.within(Privileges::UNKNOWN_TO_MARIADB),
        }
    }

    /// Returns the text in which the binary log has GRANT or REVOKE of privileges that MariaDB does not know:
    /// replicas of MariaDB skip it. So these privileges have a statement of their own: error 1221. `None` for
    /// all others.
    fn text_of_own(
        &self,
        (verb, preposition): (&str, &str),
        accounts: &[AccountName],
        is_plain: bool,
    ) -> SqlResult<Option<String>> {
        let own = self.unknown_to_mariadb();
        if own.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = accounts
            .iter()
            .map(|(user, host)| match host.is_empty() {
                true => quoted_name(user),
                false => format!("{}@{}", quoted_name(user), quoted_name(host)),
            })
            .collect();
        let text = format!("{verb} {own} ON *.* {preposition} {}", names.join(", "));
        match is_plain && self.all() == own && !names.iter().any(|name| name.contains("*/")) {
            true => Ok(Some(cohort_sql::only_here(&text))),
            false => Err(SqlError::wrong_usage(&own.to_string(), "other privileges or options")),
        }
    }

    fn all(&self) -> Privileges {
        self.columns.values().fold(self.whole, |all, column| all.and(*column))
    }
}

/// Requires these privileges and GRANT OPTION globally: error 1045.
fn check_giver_of_all(session: &SessionState, privileges: Privileges) -> SqlResult<()> {
    let access = session.access();
    if access.everywhere().covers(privileges.with(Privilege::GrantOption)) {
        return Ok(());
    }
    let (user, host) = &session.info.account;
    let has_password = access.account().is_some_and(|account| account.has_password());
    Err(SqlError::access_denied(user, host, if has_password { "YES" } else { "NO" }))
}

/// Requires the named privileges and GRANT OPTION on the object: errors 1045, 1044, 1142.
fn check_giver(session: &SessionState, place: &Place, named: &Named) -> SqlResult<()> {
    let access = session.access();
    let wanted = named.all().with(Privilege::GrantOption);
    match place {
        Place::Everything => check_giver_of_all(session, wanted),
        Place::Schema(schema) => check_schemas(session, wanted, schema),
        Place::Table(TableName { schema, table }) => {
            let held = access.on_table(schema, table);
            let grant = access.granted_on_table(schema, table);
            // A privilege held only on a column can be granted on that column.
            let on_column = |(column, privileges): (&String, &Privileges)| {
                let own = grant.as_ref().and_then(|grant| grant.columns.get(column));
                let own = own.copied().unwrap_or_default();
                held.and(own).covers(*privileges)
            };
            let missing = named.whole.with(Privilege::GrantOption).without(held);
            if missing.is_empty() && named.columns.iter().all(on_column) {
                return Ok(());
            }
            let missing = wanted.without(held).to_string().replace("GRANT OPTION", "GRANT");
            Err(session.table_access_denied(&missing, schema, table))
        }
    }
}

/// Requires that the table exists, unless the account may create it: errors 1146, 1054. On a table of
/// performance_schema only SELECT can be granted: error 1142.
fn check_table_exists(
    session: &SessionState,
    catalog: &Catalog,
    place: &Place,
    named: &Named,
) -> SqlResult<()> {
    let Place::Table(TableName { schema, table: name }) = place else { return Ok(()) };
    if let Some(computed) = session.db.virtual_table(schema, name) {
        let readable = Privileges::from(Privilege::Select).with(Privilege::GrantOption);
        let beyond = named.all().without(readable);
        if session.db.virtual_tables.has_schema(schema) && !beyond.is_empty() {
            return Err(session.table_access_denied(&format!("{beyond}, GRANT"), schema, name));
        }
        let is_known =
            |column: &&String| computed.columns().iter().any(|known| known.name.eq_ignore_ascii_case(column));
        let missing = named.columns.keys().find(|column| !is_known(column));
        return missing.map_or(Ok(()), |column| Err(SqlError::unknown_column(column, name)));
    }
    if let Some(view) = catalog.view(schema, name) {
        let known = view_columns(view)?;
        let is_known = |column: &&String| known.iter().any(|k| cohort_plan::same_name(k, column));
        let missing = named.columns.keys().find(|column| !is_known(column));
        return missing.map_or(Ok(()), |column| Err(SqlError::unknown_column(column, name)));
    }
    let Some(table) = catalog.table(schema, name) else {
        return match named.whole.has(Privilege::Create) {
            true => Ok(()),
            false => Err(SqlError::no_such_table(schema, name)),
        };
    };
    let missing = named.columns.keys().find(|column| table.column(column).is_none());
    missing.map_or(Ok(()), |column| Err(SqlError::unknown_column(column, name)))
}

pub(super) fn grant(ctx: &mut StatementContext<'_>, grant: &Grant) -> SqlResult<DdlOutcome> {
    if grant.level == GrantLevel::Role {
        return super::role::grant(ctx, grant);
    }
    if let GrantLevel::Proxy(of) = &grant.level {
        return super::proxy::grant(ctx, of, grant);
    }
    if let GrantLevel::Routine { kind, name } = &grant.level {
        return grant_on_routine(ctx, grant, kind, name);
    }
    let place = Place::of(ctx.session, &grant.level)?;
    let mut named = Named::of(ctx.session, &grant.privileges, &place)?;
    if grant.grant_option {
        named.whole = named.whole.with(Privilege::GrantOption);
    }
    let mut pending = AccountChanges::open(ctx)?;
    check_giver(ctx.session, &place, &named)?;
    check_table_exists(ctx.session, &pending.catalog, &place, &named)?;
    let mut names = Vec::new();
    for user in &grant.users {
        let name = grantee_name(ctx.session, &pending, user, &grant.options)?;
        names.push(name.clone());
        let mut account = grantee(ctx.session, &pending, name, user, &grant.options)?;
        give(&mut account.grants, &place, &named);
        pending.put(account);
    }
    let is_plain = grant.users.iter().all(|user| user.authentication.is_none())
        && grant.options == AccountOptions::default();
    let own = named.text_of_own(("GRANT", "TO"), &names, is_plain)?;
    commit(ctx, pending.close(), own.map_or(LogText::AboutUsers, LogText::Own))?;
    Ok(DdlOutcome::default())
}

fn give(grants: &mut Grants, place: &Place, named: &Named) {
    match place {
        Place::Everything => grants.everything = grants.everything.and(named.whole),
        Place::Schema(schema) => {
            if !named.whole.is_empty() {
                let held = grants.schemas.entry(schema.clone()).or_default();
                *held = held.and(named.whole);
            }
        }
        Place::Table(name) => {
            let mut grant = grants.tables.get(name).cloned().unwrap_or_default();
            grant.table = grant.table.and(named.whole);
            for (column, privileges) in &named.columns {
                let held = grant.columns.entry(column.to_lowercase()).or_default();
                *held = held.and(*privileges);
            }
            if !grant.is_empty() {
                grants.tables.insert(name.clone(), grant);
            }
        }
    }
}

pub(super) fn revoke(ctx: &mut StatementContext<'_>, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    if revoke.level.is_everywhere() {
        return revoke_everything(ctx, revoke);
    }
    if matches!(revoke.level, GrantLevel::Role | GrantLevel::RoleAdmin) {
        return super::role::revoke(ctx, revoke);
    }
    if let GrantLevel::Proxy(of) = &revoke.level {
        return super::proxy::revoke(ctx, of, revoke);
    }
    if let GrantLevel::Routine { kind, name } = &revoke.level {
        return revoke_on_routine(ctx, revoke, kind, name);
    }
    let place = Place::of(ctx.session, &revoke.level)?;
    let named = Named::of(ctx.session, &revoke.privileges, &place)?;
    let mut pending = AccountChanges::open(ctx)?;
    check_giver(ctx.session, &place, &named)?;
    let mut names = Vec::new();
    for name in &revoke.accounts {
        let name = resolve_grantee(ctx.session, &pending, name)?;
        names.push(name.clone());
        let mut account = pending.find(&name).ok_or_else(|| nonexisting(&name))?;
        take(&mut account.grants, &place, &named).ok_or_else(|| match &place {
            Place::Everything | Place::Schema(_) => nonexisting(&name),
            Place::Table(table) => SqlError::nonexisting_table_grant(&name.0, &name.1, &table.table),
        })?;
        pending.put(account);
    }
    let own = named.text_of_own(("REVOKE", "FROM"), &names, true)?;
    commit(ctx, pending.close(), own.map_or(LogText::AboutUsers, LogText::Own))?;
    Ok(DdlOutcome::default())
}

/// Runs REVOKE ALL PRIVILEGES, GRANT OPTION FROM. Existing accounts lose everything; error 1269 for others.
fn revoke_everything(ctx: &mut StatementContext<'_>, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let mut is_missing = false;
    for name in &revoke.accounts {
        let name = resolve_grantee(ctx.session, &pending, name)?;
        match pending.find(&name) {
            Some(account) => {
                pending.put(Account { grants: Grants::default(), roles: BTreeMap::new(), ..account });
            }
            None => is_missing = true,
        }
    }
    let changes = pending.close();
    let failed = is_missing.then(SqlError::cannot_revoke_all);
    match changes.catalog.is_empty() {
        true => failed.map_or(Ok(()), Err)?,
        false => commit(ctx, changes.failing(failed), LogText::AboutUsers)?,
    }
    Ok(DdlOutcome::default())
}

/// Returns the routine that GRANT or REVOKE names, and the privileges. Requires these and GRANT OPTION on it,
/// whether it exists or not: errors 1144, 1370. Nothing can be granted on packages, which do not exist.
fn routine_grant(
    session: &SessionState,
    words: &[Word],
    kind: &str,
    name: &ObjectName,
) -> SqlResult<(Option<RoutineName>, Privileges)> {
    let (mut named, mut is_illegal) = (Privileges::NONE, false);
    for Word { name, columns } in words {
        let privileges = match name.as_str() {
            "USAGE" => Privileges::NONE,
            "ALL" | "ALL PRIVILEGES" => Privileges::OF_ROUTINE.without(Privilege::GrantOption.into()),
            other => Privilege::named(other).map_or(Privileges::EVERY, Privileges::from),
        };
        is_illegal |= !columns.is_empty() || !Privileges::OF_ROUTINE.covers(privileges);
        named = named.and(privileges);
    }
    let current = session.current_schema.as_deref();
    let schema = name.db.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?;
    let kind = RoutineKind::ALL.iter().find(|known| known.name() == kind);
    let held = match kind {
        Some(kind) => session.access().on_routine(*kind, schema, &name.name),
        None => session.access().on_schema(schema),
    };
    let missing = named.with(Privilege::GrantOption).without(held);
    // GRANT OPTION is named in the error only if no other privilege is missing.
    let others = missing.without(Privilege::GrantOption.into());
    let Some(first) = others.iter().next().or(missing.iter().next()) else {
        let routine = kind.map(|kind| RoutineName::new(*kind, schema, &name.name));
        return if is_illegal { Err(SqlError::illegal_grant()) } else { Ok((routine, named)) };
    };
    let command = if first == Privilege::GrantOption { "grant" } else { &first.name().to_lowercase() };
    let ((user, host), routine) = (&session.info.account, &name.name);
    Err(SqlError::routine_access_denied(command, user, host, schema, routine))
}

/// Runs GRANT .. ON PROCEDURE or FUNCTION: errors 1144, 1305, 1370.
fn grant_on_routine(
    ctx: &mut StatementContext<'_>,
    grant: &Grant,
    kind: &str,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    let (routine, mut named) = routine_grant(ctx.session, &grant.privileges, kind, name)?;
    let unknown = || SqlError::does_not_exist("FUNCTION or PROCEDURE", &name.name);
    let routine = routine.ok_or_else(unknown)?;
    lock_schema(ctx, &routine.schema, MetadataMode::SharedRead)?;
    let space = lock_kind(routine.kind);
    lock_program(ctx, space, &routine.schema, &routine.name, MetadataMode::SharedRead)?;
    if ctx.db.catalog().routine(routine.kind, &routine.schema, &routine.name).is_none() {
        return Err(unknown());
    }
    if grant.grant_option {
        named = named.with(Privilege::GrantOption);
    }
    let mut pending = AccountChanges::open(ctx)?;
    for user in &grant.users {
        let name = grantee_name(ctx.session, &pending, user, &grant.options)?;
        let mut account = grantee(ctx.session, &pending, name, user, &grant.options)?;
        if !named.is_empty() {
            let held = account.grants.routines.entry(routine.clone()).or_default();
            *held = held.and(named);
        }
        pending.put(account);
    }
    commit(ctx, pending.close(), LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

/// Runs REVOKE .. ON PROCEDURE or FUNCTION: errors 1141, 1144, 1370, 1403.
fn revoke_on_routine(
    ctx: &mut StatementContext<'_>,
    revoke: &Revoke,
    kind: &str,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    let (routine, named) = routine_grant(ctx.session, &revoke.privileges, kind, name)?;
    let mut pending = AccountChanges::open(ctx)?;
    for grantee in &revoke.accounts {
        let grantee = resolve_grantee(ctx.session, &pending, grantee)?;
        let mut account = pending.find(&grantee).ok_or_else(|| nonexisting(&grantee))?;
        let routines = &mut account.grants.routines;
        let held = routine.as_ref().and_then(|routine| routines.get_mut(routine));
        let Some(held) = held else {
            return Err(SqlError::nonexisting_routine_grant(&grantee.0, &grantee.1, &name.name));
        };
        *held = held.without(named);
        routines.retain(|_, held| !held.is_empty());
        pending.put(account);
    }
    commit(ctx, pending.close(), LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

/// Removes privileges. Returns `None` if nothing was granted on the object.
fn take(grants: &mut Grants, place: &Place, named: &Named) -> Option<()> {
    match place {
        Place::Everything => grants.everything = grants.everything.without(named.whole),
        Place::Schema(schema) => {
            let held = grants.schemas.get_mut(schema)?;
            *held = held.without(named.whole);
            grants.schemas.retain(|_, held| !held.is_empty());
        }
        Place::Table(name) => {
            let grant = grants.tables.get_mut(name)?;
            grant.table = grant.table.without(named.whole);
            for (column, held) in &mut grant.columns {
                let is_column = |(known, _): &(&String, &Privileges)| known.eq_ignore_ascii_case(column);
                let of_column = named.columns.iter().find(is_column).map(|(_, privileges)| *privileges);
                *held = held.without(named.whole.and(of_column.unwrap_or_default()));
            }
            grant.columns.retain(|_, held| !held.is_empty());
            grants.tables.retain(|_, grant| !grant.is_empty());
        }
    }
    Some(())
}
