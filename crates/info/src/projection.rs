//! SHOW statements that return columns of an information_schema table under other names.

use cohort_catalog::Table;
use cohort_ddl::create_text::{bare_default, in_zone};
use cohort_sql::ast::{ObjectName, ShowFilter};
use cohort_types::{SqlError, SqlResult, Value};

use super::count_computed_table;
use super::information_schema::table;
use super::listing::Listing;
use super::schema_of;
use super::schema_table::SchemaTable;
use super::view;
use cohort_session::access::sees_table;
use cohort_session::{StatementContext, VirtualTable, WantedNames};

/// Column names of the SHOW, with those of the table.
pub(super) type Names = &'static [(&'static str, &'static str)];

const TABLE_STATUS: Names = &[
    ("Name", "TABLE_NAME"),
    ("Engine", "ENGINE"),
    ("Version", "VERSION"),
    ("Row_format", "ROW_FORMAT"),
    ("Rows", "TABLE_ROWS"),
    ("Avg_row_length", "AVG_ROW_LENGTH"),
    ("Data_length", "DATA_LENGTH"),
    ("Max_data_length", "MAX_DATA_LENGTH"),
    ("Index_length", "INDEX_LENGTH"),
    ("Data_free", "DATA_FREE"),
    ("Auto_increment", "AUTO_INCREMENT"),
    ("Create_time", "CREATE_TIME"),
    ("Update_time", "UPDATE_TIME"),
    ("Check_time", "CHECK_TIME"),
    ("Collation", "TABLE_COLLATION"),
    ("Checksum", "CHECKSUM"),
    ("Create_options", "CREATE_OPTIONS"),
    ("Comment", "TABLE_COMMENT"),
    ("Max_index_length", "MAX_INDEX_LENGTH"),
    ("Temporary", "TEMPORARY"),
];

const COLUMNS: Names = &[
    ("Field", "COLUMN_NAME"),
    ("Type", "COLUMN_TYPE"),
    ("Null", "IS_NULLABLE"),
    ("Key", "COLUMN_KEY"),
    ("Default", "COLUMN_DEFAULT"),
    ("Extra", "EXTRA"),
];

const FULL_COLUMNS: Names = &[
    ("Field", "COLUMN_NAME"),
    ("Type", "COLUMN_TYPE"),
    ("Collation", "COLLATION_NAME"),
    ("Null", "IS_NULLABLE"),
    ("Key", "COLUMN_KEY"),
    ("Default", "COLUMN_DEFAULT"),
    ("Extra", "EXTRA"),
    ("Privileges", "PRIVILEGES"),
    ("Comment", "COLUMN_COMMENT"),
];

const INDEX: Names = &[
    ("Table", "TABLE_NAME"),
    ("Non_unique", "NON_UNIQUE"),
    ("Key_name", "INDEX_NAME"),
    ("Seq_in_index", "SEQ_IN_INDEX"),
    ("Column_name", "COLUMN_NAME"),
    ("Collation", "COLLATION"),
    ("Cardinality", "CARDINALITY"),
    ("Sub_part", "SUB_PART"),
    ("Packed", "PACKED"),
    ("Null", "NULLABLE"),
    ("Index_type", "INDEX_TYPE"),
    ("Comment", "COMMENT"),
    ("Index_comment", "INDEX_COMMENT"),
    ("Ignored", "IGNORED"),
];

pub(super) const ENGINES: (&str, Names) = (
    "ENGINES",
    &[
        ("Engine", "ENGINE"),
        ("Support", "SUPPORT"),
        ("Comment", "COMMENT"),
        ("Transactions", "TRANSACTIONS"),
        ("XA", "XA"),
        ("Savepoints", "SAVEPOINTS"),
    ],
);

pub(super) const CHARACTER_SETS: (&str, Names) = (
    "CHARACTER_SETS",
    &[
        ("Charset", "CHARACTER_SET_NAME"),
        ("Description", "DESCRIPTION"),
        ("Default collation", "DEFAULT_COLLATE_NAME"),
        ("Maxlen", "MAXLEN"),
    ],
);

pub(super) const COLLATIONS: (&str, Names) = (
    "COLLATIONS",
    &[
        ("Collation", "COLLATION_NAME"),
        ("Charset", "CHARACTER_SET_NAME"),
        ("Id", "ID"),
        ("Default", "IS_DEFAULT"),
        ("Compiled", "IS_COMPILED"),
        ("Sortlen", "SORTLEN"),
    ],
);

pub(super) const PLUGINS: (&str, Names) = (
    "PLUGINS",
    &[
        ("Name", "PLUGIN_NAME"),
        ("Status", "PLUGIN_STATUS"),
        ("Type", "PLUGIN_TYPE"),
        ("Library", "PLUGIN_LIBRARY"),
        ("License", "PLUGIN_LICENSE"),
    ],
);

/// The tables of `userstat`, for SHOW.
const USAGE: [(&str, Names); 4] = [
    (
        "CLIENT_STATISTICS",
        &[
            ("Client", "CLIENT"),
            ("Total_connections", "TOTAL_CONNECTIONS"),
            ("Concurrent_connections", "CONCURRENT_CONNECTIONS"),
            ("Connected_time", "CONNECTED_TIME"),
            ("Busy_time", "BUSY_TIME"),
            ("Cpu_time", "CPU_TIME"),
            ("Bytes_received", "BYTES_RECEIVED"),
            ("Bytes_sent", "BYTES_SENT"),
            ("Binlog_bytes_written", "BINLOG_BYTES_WRITTEN"),
            ("Rows_read", "ROWS_READ"),
            ("Rows_sent", "ROWS_SENT"),
            ("Rows_deleted", "ROWS_DELETED"),
            ("Rows_inserted", "ROWS_INSERTED"),
            ("Rows_updated", "ROWS_UPDATED"),
            ("Select_commands", "SELECT_COMMANDS"),
            ("Update_commands", "UPDATE_COMMANDS"),
            ("Other_commands", "OTHER_COMMANDS"),
            ("Commit_transactions", "COMMIT_TRANSACTIONS"),
            ("Rollback_transactions", "ROLLBACK_TRANSACTIONS"),
            ("Denied_connections", "DENIED_CONNECTIONS"),
            ("Lost_connections", "LOST_CONNECTIONS"),
            ("Access_denied", "ACCESS_DENIED"),
            ("Empty_queries", "EMPTY_QUERIES"),
            ("Total_ssl_connections", "TOTAL_SSL_CONNECTIONS"),
            ("Max_statement_time_exceeded", "MAX_STATEMENT_TIME_EXCEEDED"),
        ],
    ),
    (
        "INDEX_STATISTICS",
        &[
            ("Table_schema", "TABLE_SCHEMA"),
            ("Table_name", "TABLE_NAME"),
            ("Index_name", "INDEX_NAME"),
            ("Rows_read", "ROWS_READ"),
        ],
    ),
    (
        "TABLE_STATISTICS",
        &[
            ("Table_schema", "TABLE_SCHEMA"),
            ("Table_name", "TABLE_NAME"),
            ("Rows_read", "ROWS_READ"),
            ("Rows_changed", "ROWS_CHANGED"),
            ("Rows_changed_x_#indexes", "ROWS_CHANGED_X_INDEXES"),
        ],
    ),
    (
        "USER_STATISTICS",
        &[
            ("User", "USER"),
            ("Total_connections", "TOTAL_CONNECTIONS"),
            ("Concurrent_connections", "CONCURRENT_CONNECTIONS"),
            ("Connected_time", "CONNECTED_TIME"),
            ("Busy_time", "BUSY_TIME"),
            ("Cpu_time", "CPU_TIME"),
            ("Bytes_received", "BYTES_RECEIVED"),
            ("Bytes_sent", "BYTES_SENT"),
            ("Binlog_bytes_written", "BINLOG_BYTES_WRITTEN"),
            ("Rows_read", "ROWS_READ"),
            ("Rows_sent", "ROWS_SENT"),
            ("Rows_deleted", "ROWS_DELETED"),
            ("Rows_inserted", "ROWS_INSERTED"),
            ("Rows_updated", "ROWS_UPDATED"),
            ("Select_commands", "SELECT_COMMANDS"),
            ("Update_commands", "UPDATE_COMMANDS"),
            ("Other_commands", "OTHER_COMMANDS"),
            ("Commit_transactions", "COMMIT_TRANSACTIONS"),
            ("Rollback_transactions", "ROLLBACK_TRANSACTIONS"),
            ("Denied_connections", "DENIED_CONNECTIONS"),
            ("Lost_connections", "LOST_CONNECTIONS"),
            ("Access_denied", "ACCESS_DENIED"),
            ("Empty_queries", "EMPTY_QUERIES"),
            ("Total_ssl_connections", "TOTAL_SSL_CONNECTIONS"),
            ("Max_statement_time_exceeded", "MAX_STATEMENT_TIME_EXCEEDED"),
        ],
    ),
];

const TRIGGERS: (&str, Names) = (
    "TRIGGERS",
    &[
        ("Trigger", "TRIGGER_NAME"),
        ("Event", "EVENT_MANIPULATION"),
        ("Table", "EVENT_OBJECT_TABLE"),
        ("Statement", "ACTION_STATEMENT"),
        ("Timing", "ACTION_TIMING"),
        ("Created", "CREATED"),
        ("sql_mode", "SQL_MODE"),
        ("Definer", "DEFINER"),
        ("character_set_client", "CHARACTER_SET_CLIENT"),
        ("collation_connection", "COLLATION_CONNECTION"),
        ("Database Collation", "DATABASE_COLLATION"),
    ],
);

const EVENTS: (&str, Names) = (
    "EVENTS",
    &[
        ("Db", "EVENT_SCHEMA"),
        ("Name", "EVENT_NAME"),
        ("Definer", "DEFINER"),
        ("Time zone", "TIME_ZONE"),
        ("Type", "EVENT_TYPE"),
        ("Execute at", "EXECUTE_AT"),
        ("Interval value", "INTERVAL_VALUE"),
        ("Interval field", "INTERVAL_FIELD"),
        ("Starts", "STARTS"),
        ("Ends", "ENDS"),
        ("Status", "STATUS"),
        ("Originator", "ORIGINATOR"),
        ("character_set_client", "CHARACTER_SET_CLIENT"),
        ("collation_connection", "COLLATION_CONNECTION"),
        ("Database Collation", "DATABASE_COLLATION"),
    ],
);

const ROUTINES: (&str, Names) = (
    "ROUTINES",
    &[
        ("Db", "ROUTINE_SCHEMA"),
        ("Name", "ROUTINE_NAME"),
        ("Type", "ROUTINE_TYPE"),
        ("Definer", "DEFINER"),
        ("Modified", "LAST_ALTERED"),
        ("Created", "CREATED"),
        ("Security_type", "SECURITY_TYPE"),
        ("Comment", "ROUTINE_COMMENT"),
        ("character_set_client", "CHARACTER_SET_CLIENT"),
        ("collation_connection", "COLLATION_CONNECTION"),
        ("Database Collation", "DATABASE_COLLATION"),
    ],
);

/// Fills the columns of a SHOW from the rows that `wanted` accepts.
fn project(
    ctx: &mut StatementContext<'_>,
    from: &SchemaTable,
    names: &[(&str, &'static str)],
    names_wanted: &WantedNames,
    wanted: impl Fn(&[Value]) -> bool,
) -> SqlResult<Listing> {
    count_computed_table(ctx);
    let mut listing = Listing::default();
    let places: Vec<usize> = names.iter().map(|(_, column)| from.place(column)).collect();
    for ((name, of), &place) in names.iter().zip(&places) {
        let column = from.column(place);
        listing.column(*name, column.ty.clone(), column.nullable).of(from.shown_as(), of);
    }
    let rows = from.rows(names_wanted, ctx)?;
    let pick = |row: Vec<Value>| places.iter().map(|&p| row[p].clone()).collect::<Vec<_>>();
    listing.rows = rows.into_iter().filter(|row| wanted(row)).map(pick).collect();
    Ok(listing)
}

fn is_text(value: &Value, text: &str) -> bool {
    value.as_bytes() == Some(text.as_bytes())
}

/// Formats a column title such as `Tables_in_test (t%)`.
fn titled(title: &str, filter: Option<&ShowFilter>) -> String {
    match filter {
        Some(ShowFilter::Like(pattern)) => format!("{title} ({pattern})"),
        _ => title.to_owned(),
    }
}

fn sorted(listing: &mut Listing) {
    listing.rows.sort_by(|a, b| a[0].as_bytes().cmp(&b[0].as_bytes()));
}

pub(super) fn databases(ctx: &mut StatementContext<'_>, filter: Option<&ShowFilter>) -> SqlResult<Listing> {
    let title = titled("Database", filter);
    let mut listing =
        project(ctx, table("SCHEMATA"), &[(title.as_str(), "SCHEMA_NAME")], &WantedNames::default(), |_| {
            true
        })?;
    sorted(&mut listing);
    // A WHERE refers to the column without a pattern in its title.
    listing.filter_names(ctx, filter, 0)?;
    Ok(listing)
}

/// Returns the schema of a SHOW, which must exist: error 1049.
fn known_schema(ctx: &StatementContext<'_>, db: Option<&str>) -> SqlResult<String> {
    let name = schema_of(ctx, db)?;
    if let Some(spelled) = ctx.db.virtual_tables.virtual_schema(&name) {
        return Ok(spelled.to_owned());
    }
    let is_known = ctx.db.catalog().schemas.contains_key(&name);
    if is_known { Ok(name) } else { Err(SqlError::unknown_database(&name)) }
}

/// Maximum characters of a table name with the prefix `#mysql50#`, which marks a name that is not encoded in
/// its file name.
const FILE_NAME_CHARS: u32 = 73;

pub(super) fn tables(
    ctx: &mut StatementContext<'_>,
    full: bool,
    db: Option<&str>,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let schema = known_schema(ctx, db)?;
    let from = table("TABLES");
    let title = titled(&format!("Tables_in_{schema}"), filter);
    let mut names = vec![(title.as_str(), "TABLE_NAME")];
    if full {
        names.push(("Table_type", "TABLE_TYPE"));
    }
    let place = from.place("TABLE_SCHEMA");
    let mut listing =
        project(ctx, from, &names, &WantedNames::of(&schema, None), |row| is_text(&row[place], &schema))?;
    listing.found_in("TABLE_NAMES", FILE_NAME_CHARS);
    listing.filter_names(ctx, filter, 0)?;
    Ok(listing)
}

pub(super) fn table_status(
    ctx: &mut StatementContext<'_>,
    db: Option<&str>,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let schema = known_schema(ctx, db)?;
    let from = table("TABLES");
    let place = from.place("TABLE_SCHEMA");
    let mut listing = project(ctx, from, TABLE_STATUS, &WantedNames::of(&schema, None), |row| {
        is_text(&row[place], &schema)
    })?;
    listing.filter_names(ctx, filter, 0)?;
    Ok(listing)
}

pub(super) fn open_tables(
    ctx: &mut StatementContext<'_>,
    db: Option<&str>,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let mut listing = Listing::default();
    listing.text("Database", 64).of("OPEN_TABLES", "Database");
    listing.text("Table", 64).of("OPEN_TABLES", "Table");
    listing.number("In_use", 1).of("OPEN_TABLES", "In_use");
    listing.number("Name_locked", 4).of("OPEN_TABLES", "Name_locked");
    count_computed_table(ctx);
    let access = ctx.session.access();
    for schema in ctx.db.catalog().schemas.values().filter(|s| db.is_none_or(|db| db == s.name)) {
        for name in schema.tables.keys().filter(|name| sees_table(&access, &schema.name, name)) {
            let zero = || Value::Int(0);
            listing.add([Value::text(&schema.name), Value::text(name), zero(), zero()]);
        }
    }
    listing.filter_names(ctx, filter, 1)?;
    Ok(listing)
}

/// Returns schema and name of the table of a SHOW; error 1146.
fn known_table(ctx: &StatementContext<'_>, name: &ObjectName) -> SqlResult<(String, String)> {
    let schema = schema_of(ctx, name.db.as_deref())?;
    if let Some(found) = ctx.session.virtual_table(&schema, &name.name) {
        return Ok((found.schema().to_owned(), found.name().to_owned()));
    }
    let catalog = ctx.db.catalog();
    if ctx.session.temporary.find(&schema, &name.name).is_some() {
        return Ok((schema, name.name.clone()));
    }
    if catalog.table(&schema, &name.name).is_none() && catalog.view(&schema, &name.name).is_none() {
        return Err(SqlError::no_such_table(&schema, &name.name));
    }
    Ok((schema, name.name.clone()))
}

pub(super) fn columns(
    ctx: &mut StatementContext<'_>,
    full: bool,
    name: &ObjectName,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let (schema, name) = known_table(ctx, name)?;
    let catalog = ctx.db.catalog();
    let own = ctx.session.temporary.find(&schema, &name);
    let view = catalog.view(&schema, &name).filter(|_| own.is_none());
    let view = view.map(|view| view::as_table(ctx, view)).transpose()?;
    let from = table("COLUMNS");
    let (schema_at, table_at) = (from.place("TABLE_SCHEMA"), from.place("TABLE_NAME"));
    let names = if full { FULL_COLUMNS } else { COLUMNS };
    let of_table = |row: &[Value]| is_text(&row[schema_at], &schema) && is_text(&row[table_at], &name);
    let mut listing = project(ctx, from, names, &WantedNames::shown(&schema, &name), of_table)?;
    let default_at = names.iter().position(|(name, _)| *name == "Default").expect("it is among them");
    if let Some(base) = own.as_ref().or_else(|| catalog.table(&schema, &name)) {
        unquote_defaults(ctx, base, &mut listing, default_at);
    }
    if let Some(view) = &view {
        unquote_defaults(ctx, view, &mut listing, default_at);
    }
    listing.filter(ctx, filter, 0)?;
    Ok(listing)
}

fn unquote_defaults(ctx: &StatementContext<'_>, base: &Table, listing: &mut Listing, at: usize) {
    // Columns that the account may not see have no row.
    for row in &mut listing.rows {
        let shown = base.columns.iter().find(|column| is_text(&row[0], &column.name));
        let shown = shown.map(|column| in_zone(column, &ctx.session.settings.env.time_zone));
        row[at] = shown.and_then(|column| bare_default(&column)).map_or(Value::Null, Value::text);
    }
}

pub(super) fn index(
    ctx: &mut StatementContext<'_>,
    name: &ObjectName,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let (schema, name) = known_table(ctx, name)?;
    let from = table("STATISTICS");
    let (schema_at, table_at) = (from.place("TABLE_SCHEMA"), from.place("TABLE_NAME"));
    let of_table = |row: &[Value]| is_text(&row[schema_at], &schema) && is_text(&row[table_at], &name);
    let mut listing = project(ctx, from, INDEX, &WantedNames::shown(&schema, &name), of_table)?;
    listing.filter(ctx, filter, 2)?;
    Ok(listing)
}

/// Returns the only text that a pattern of LIKE accepts. Dumps list the triggers of each table by such a
/// pattern.
fn without_wildcards(pattern: &str) -> Option<String> {
    let (mut text, mut chars) = (String::new(), pattern.chars());
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return None,
            '\\' => text.push(chars.next()?),
            other => text.push(other),
        }
    }
    Some(text)
}

/// Runs SHOW TRIGGERS. LIKE filters by the name of the table.
pub(super) fn triggers(
    ctx: &mut StatementContext<'_>,
    db: Option<&str>,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let schema = known_schema(ctx, db)?;
    let of_table = match filter {
        Some(ShowFilter::Like(pattern)) => without_wildcards(pattern),
        _ => None,
    };
    let wanted = WantedNames::of(&schema, of_table.as_deref());
    let mut listing = project(ctx, table(TRIGGERS.0), TRIGGERS.1, &wanted, |_| true)?;
    listing.filter_names(ctx, filter, 2)?;
    Ok(listing)
}

/// Runs SHOW EVENTS, of the current schema or another one.
pub(super) fn events(
    ctx: &mut StatementContext<'_>,
    db: Option<&str>,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let schema = schema_of(ctx, db)?;
    let from = table(EVENTS.0);
    let place = from.place("EVENT_SCHEMA");
    let mut listing =
        project(ctx, from, EVENTS.1, &WantedNames::default(), |row| is_text(&row[place], &schema))?;
    ctx.session.statement.reads_whole_table.set(false);
    listing.filter(ctx, filter, 1)?;
    Ok(listing)
}

/// Runs SHOW PROCEDURE STATUS and SHOW FUNCTION STATUS.
pub(super) fn routines(
    ctx: &mut StatementContext<'_>,
    kind: &str,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let from = table(ROUTINES.0);
    let place = from.place("ROUTINE_TYPE");
    let mut listing =
        project(ctx, from, ROUTINES.1, &WantedNames::default(), |row| is_text(&row[place], kind))?;
    listing.filter(ctx, filter, 1)?;
    Ok(listing)
}

/// Returns a table of statistics of `userstat`. The columns have its names, with the first letter in upper
/// case.
pub(super) fn usage(
    ctx: &mut StatementContext<'_>,
    from: &'static str,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let names = USAGE.iter().find(|(known, _)| *known == from).expect("the parser knows the same tables");
    simple(ctx, *names, filter)
}

/// Runs the SHOW statements that need only a projection.
pub(super) fn simple(
    ctx: &mut StatementContext<'_>,
    (from, names): (&'static str, Names),
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let mut listing = project(ctx, table(from), names, &WantedNames::default(), |_| true)?;
    listing.filter(ctx, filter, 0)?;
    Ok(listing)
}
