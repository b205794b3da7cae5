//! The texts of common errors, as in MariaDB 10.11.

use std::fmt::Display;
use std::io;

use crate::{ErrorCode, Level, SqlError, Warning};

/// Formats a value for an error text. Bytes that are not text, and control characters, become `\xHH`;
/// characters outside the Basic Multilingual Plane become `?`.
pub fn printable(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_ascii_control() {
                text.push_str(&format!("\\x{:02X}", c as u32));
            } else if c > '\u{ffff}' {
                // Messages are utf8mb3.
                text.push('?');
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|b| text.push_str(&format!("\\x{b:02X}")));
    }
    text
}

/// Cuts a text to at most `bytes` bytes; a cut text ends in three dots.
pub fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_string();
    }
    format!("{}...", whole_chars(text, bytes.saturating_sub(3)))
}

/// Returns the longest prefix of whole characters in the first `bytes` bytes of a text.
pub fn whole_chars(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Formats a value with the length limit of most messages.
fn clipped(value: &[u8]) -> String {
    printable_clipped(value, 128)
}

/// Formats a value for an error text, cut to `bytes` bytes.
fn printable_clipped(value: &[u8], bytes: usize) -> String {
    // At most four bytes of the value become one of the text.
    let read = value.len().min(4 * (bytes + 1));
    clip(&printable(&value[..read]), bytes)
}

impl Warning {
    /// Creates a warning.
    pub fn new(error: SqlError) -> Warning {
        Warning { level: Level::Warning, error }
    }

    /// Creates a note.
    pub fn note(error: SqlError) -> Warning {
        Warning { level: Level::Note, error }
    }
}

impl SqlError {
    /// Returns the error for a table that does not exist. `information_schema` has its own one.
    pub fn no_such_table(db: &str, table: &str) -> SqlError {
        const INFORMATION_SCHEMA: &str = "information_schema";
        match db.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
            true => SqlError::unknown_table_in(table, INFORMATION_SCHEMA),
            false => SqlError::table_missing(db, table),
        }
    }

    /// Returns whether the error may be from [`SqlError::no_such_table`].
    pub fn is_no_such_table(&self) -> bool {
        matches!(self.code, ErrorCode::NoSuchTable | ErrorCode::UnknownTable)
    }
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) = $code:ident, $($text:expr),+;)*) => {
        impl SqlError {
            $(
                $(#[$doc])*
                #[doc = concat!("Error `", stringify!($code), "`.")]
                pub fn $name($($arg: $ty),*) -> SqlError {
                    SqlError::new(ErrorCode::$code, format!($($text),+))
                }
            )*
        }
    };
}

// Values.
texts! {
    out_of_range(column: &str, row: u64) = WarnDataOutOfRange,
        "Out of range value for column '{column}' at row {row}";
    data_truncated(column: &str, row: u64) = WarnDataTruncated, "Data truncated for column '{column}' at row {row}";
    data_too_long(column: &str, row: u64) = DataTooLong, "Data too long for column '{column}' at row {row}";
    /// "Incorrect datetime value: 'x' for column `db`.`t`.`c` at row 1".
    incorrect_value_for_column(kind: &str, value: &[u8], db: &str, table: &str, column: &str, row: u64)
        = TruncatedWrongValueForField,
        "Incorrect {kind} value: '{}' for column `{db}`.`{table}`.`{column}` at row {row}", clipped(value);
    /// A warning of expressions: "Truncated incorrect DOUBLE value: 'x'".
    truncated_incorrect(kind: &str, value: &[u8]) = TruncatedWrongValue,
        "Truncated incorrect {kind} value: '{}'", clipped(value);
    /// A warning of temporal expressions: "Incorrect datetime value: 'x'".
    incorrect_value(kind: &str, value: &[u8]) = TruncatedWrongValue,
        "Incorrect {kind} value: '{}'", clipped(value);
    /// "Incorrect uuid value: 'x' for column `d`.`t`.`c` at row 1".
    incorrect_fixed_for_column(kind: &str, value: &[u8], db: &str, table: &str, column: &str, row: u64)
        = TruncatedWrongValue,
        "Incorrect {kind} value: '{}' for column `{db}`.`{table}`.`{column}` at row {row}", clipped(value);
    illegal_assignment(from: &str, to: &str, db: &str, table: &str, column: &str)
        = IllegalParameterDataTypes2ForOperation,
        "Cannot cast '{from}' as '{to}' in assignment of `{db}`.`{table}`.`{column}`";
    illegal_types(first: &str, second: &str, operation: &str) = IllegalParameterDataTypes2ForOperation,
        "Illegal parameter data types {first} and {second} for operation '{operation}'";
    illegal_type(ty: &str, operation: &str) = IllegalParameterDataTypeForOperation,
        "Illegal parameter data type {ty} for operation '{operation}'";
    /// Error 1525 of CONVERT and similar functions.
    wrong_value(kind: &str, value: &[u8]) = WrongValue, "Incorrect {kind} value: '{}'", clipped(value);
    wrong_value_for_function(kind: &str, value: &[u8], function: &str) = WrongValueForType,
        "Incorrect {kind} value: '{}' for function {function}", clipped(value);
    /// "BIGINT value is out of range in '(1 + 2)'".
    result_out_of_range(kind: &str, expression: &str) = DataOutOfRange,
        "{kind} value is out of range in '{expression}'";
    division_by_zero() = DivisionByZero, "Division by 0";
    datetime_overflow(function: &str) = DatetimeFunctionOverflow, "Datetime function: {function} field overflow";
    bad_null(column: &str) = BadNull, "Column '{column}' cannot be null";
    null_to_not_null(column: &str, row: u64) = WarnNullToNotnull,
        "Column set to default value; NULL supplied to NOT NULL column '{column}' at row {row}";
    no_default(column: &str) = NoDefaultForField, "Field '{column}' doesn't have a default value";
    /// `value`: the key's columns joined by `-`.
    dup_entry(value: &[u8], key: &str) = DupEntry,
        "Duplicate entry '{}' for key '{key}'", printable_clipped(value, 64);
    value_count(row: u64) = WrongValueCountOnRow, "Column count doesn't match value count at row {row}";
    constraint_failed(constraint: &str, db: &str, table: &str) = ConstraintFailed,
        "CONSTRAINT `{constraint}` failed for `{db}`.`{table}`";
    not_allowed_in_clause(what: &str, clause: &str, column: &str) = GeneratedColumnFunctionIsNotAllowed,
        "Function or expression '{what}' cannot be used in the {clause} clause of `{column}`";
    generated_value_ignored(column: &str, table: &str) = WarningNonDefaultValueForGeneratedColumn,
        "The value specified for generated column '{column}' in table '{table}' has been ignored";
    refers_to_later_column(column: &str, other: &str) = ExpressionRefersToUninitField,
        "Expression for field `{column}` is referring to uninitialized field `{other}`";
    primary_key_generated() = PrimaryKeyBasedOnGeneratedColumn,
        "Primary key cannot be defined upon a generated column";
    duplicate_check(name: &str) = DupConstraintName, "Duplicate CHECK constraint name '{name}'";
    duplicate_foreign_key(schema: &str, name: &str) = DupConstraintName,
        "Duplicate FOREIGN KEY constraint name '{schema}/{name}'";
    column_needed_by_own_key(column: &str, schema: &str, key: &str) = FkColumnCannotDrop,
        "Cannot drop column '{column}': needed in a foreign key constraint '{schema}/{key}'";
    no_partitions() = PartitionClauseOnNonpartitioned, "PARTITION () clause on non partitioned table";
    ties_without_order() = WithTiesNeedsOrder, "FETCH ... WITH TIES requires ORDER BY clause to be present";
    target_is_source(table: &str, statement: &str) = UpdateTableUsed,
        "Table '{table}' is specified twice, both as a target for '{statement}' and as a separate source for data";
    updated_twice(table: &str, column: &str) = UpdatedColumnOnlyOnce,
        "The column `{table}`.`{column}` cannot be changed more than once in a single UPDATE statement";
    no_subqueries_in(clause: &str) = SubqueriesNotSupported,
        "{clause} does not support subqueries or stored functions";
    auto_increment_in_hash(column: &str, key: &str) = NoAutoincrementWithUnique,
        "AUTO_INCREMENT column `{column}` cannot be used in the UNIQUE index `{key}`";
    key_does_not_support(kind: &str, key: &str) = KeyDoesntSupport,
        "{kind} index `{key}` does not support this operation";
    requires_primary_key() = RequiresPrimaryKey, "This table type requires a primary key";
    primary_key_ignored() = PrimaryKeyIgnored, "A primary key cannot be marked as IGNORE";
    autoinc_read_failed() = AutoincReadFailed, "Failed to read auto-increment value from storage engine";
    invalid_character_string(charset: &str, bytes: &[u8]) = InvalidCharacterString,
        "Invalid {charset} character string: '{}'", printable_clipped(bytes, 64);
}

// ALTER TABLE.
texts! {
    /// `what`: `ALGORITHM=INSTANT`, `LOCK=NONE`.
    alter_not_supported(what: &str, instead: &str) = AlterOperationNotSupported,
        "{what} is not supported for this operation. Try {instead}";
    alter_not_supported_because(what: &str, reason: &str, instead: &str) = AlterOperationNotSupportedReason,
        "{what} is not supported. Reason: {reason}. Try {instead}";
    online_log_too_big(index: &str) = InnodbOnlineLogTooBig,
        "Creating index '{index}' required more than 'innodb_online_alter_log_max_size' bytes of modification \
         log. Please try again";
}

// Names.
texts! {
    unknown_database(db: &str) = BadDb, "Unknown database '{db}'";
    no_database_selected() = NoDb, "No database selected";
    database_exists(db: &str) = DbCreateExists, "Can't create database '{db}'; database exists";
    database_missing(db: &str) = DbDropExists, "Can't drop database '{db}'; database doesn't exist";
    table_missing(db: &str, table: &str) = NoSuchTable, "Table '{db}.{table}' doesn't exist";
    /// A view in place of a table.
    not_a_base_table(db: &str, name: &str) = WrongObject, "'{db}.{name}' is not of type 'BASE TABLE'";
    table_exists(table: &str) = TableExists, "Table '{table}' already exists";
    /// The error of DROP TABLE; `tables`: `db.t1,db.t2`.
    unknown_table(tables: &str) = BadTable, "Unknown table '{}'", clip(tables, 100);
    /// "Unknown table 't' in field list".
    unknown_table_in(table: &str, place: &str) = UnknownTable, "Unknown table '{table}' in {place}";
    /// `place`: `field list`, `where clause`, `order clause`, `group statement`, `on clause`, `having
    /// clause`.
    unknown_column(column: &str, place: &str) = BadField, "Unknown column '{column}' in '{place}'";
    ambiguous_column(column: &str, place: &str) = NonUniq, "Column '{column}' in {place} is ambiguous";
    sequence_run_out(schema: &str, name: &str) = SequenceRunOut, "Sequence '{schema}.{name}' has run out";
    sequence_invalid_data(schema: &str, name: &str) = SequenceInvalidData,
        "Sequence '{schema}.{name}' has out of range value for options";
    sequence_invalid_structure(schema: &str, name: &str) = SequenceInvalidTableStructure,
        "Sequence '{schema}.{name}' table structure is invalid (Wrong number of columns)";
    not_a_sequence(schema: &str, name: &str) = NotSequence, "'{schema}.{name}' is not a SEQUENCE";
    cannot_drop_sequence(schema: &str, name: &str) = NotSequence2, "'{schema}.{name}' is not a SEQUENCE";
    unknown_sequence(name: &str) = UnknownSequences, "Unknown SEQUENCE: '{name}'";
    not_for_sequences(schema: &str, name: &str) = IllegalHa,
        "Storage engine SEQUENCE of the table `{schema}`.`{name}` doesn't have this option";
    no_handler(engine: &str, schema: &str, name: &str) = IllegalHa,
        "Storage engine {engine} of the table `{schema}`.`{name}` doesn't have this option";
    illegal_create_option(engine: &str, option: &str) = IllegalHaCreateOption,
        "Table storage engine '{engine}' does not support the create option '{option}'";
    wrong_create_options(schema: &str, name: &str) = CantCreateTable,
        "Can't create table `{schema}`.`{name}` (errno: 140 \"Wrong create options\")";
    foreign_key_name_exists(schema: &str, name: &str) = CantCreateTable,
        "Can't create table `{schema}`.`{name}` (errno: 121 \"Duplicate key on write or update\")";
    bad_option_value(value: &str, option: &str) = BadOptionValue, "Incorrect value '{value}' for option '{option}'";
    unknown_option(option: &str) = UnknownOption, "Unknown option '{option}'";
    compressed_table_refused() = UnsupportedCompressedTable,
        "InnoDB refuses to write tables with ROW_FORMAT=COMPRESSED or KEY_BLOCK_SIZE.";
    illegal_reference(name: &str, why: &str) = IllegalReference, "Reference '{name}' not supported ({why})";
    backup_active() = BackupLockIsActive, "Can't execute the command as you have a BACKUP STAGE active";
    backup_not_running() = BackupNotRunning, "You must start backup with \"BACKUP STAGE START\"";
    backup_wrong_stage(wanted: &str, now: &str) = BackupWrongStage,
        "Backup stage '{wanted}' is same or before current backup stage '{now}'";
    backup_unknown_stage(name: &str) = BackupUnknownStage,
        "Unknown backup stage: '{name}'. Stage should be one of START, FLUSH, BLOCK_DDL, BLOCK_COMMIT or END";
    invalid_default_param() = InvalidDefaultParam,
        "Default/ignore value is not supported for such parameter usage";
    binlog_row_failed() = BinlogRowLoggingFailed, "Writing one row to the row-based binary log failed";
    foreign_key_of_temporary(schema: &str, name: &str) = CantCreateTable,
        "Can't create table `{schema}`.`{name}` (errno: 150 \"Foreign key constraint is incorrectly formed\")";
    view_of_temporary(name: &str) = ViewSelectTmptable, "View's SELECT refers to a temporary table '{name}'";
    non_unique_table(name: &str) = NonUniqTable, "Not unique table/alias: '{name}'";
    column_specified_twice(column: &str) = FieldSpecifiedTwice, "Column '{column}' specified twice";
    not_in_group_by(column: &str) = WrongFieldWithGroup, "'{column}' isn't in GROUP BY";
    unsupported_on_generated() = UnsupportedActionOnGeneratedColumn,
        "This is not yet supported for generated columns";
    invalid_group_function() = InvalidGroupFuncUse, "Invalid use of group function";
    wrong_group_field(name: &str) = WrongGroupField, "Can't group on '{name}'";
    not_allowed_here(what: &str) = NotAllowedInThisContext, "'{what}' is not allowed in this context";
    window_in_aggregate() = SumFuncWithWindowFuncAsArg,
        "Window functions can not be used as arguments to group functions.";
    empty_row_of_values() = EmptyRowInTvc,
        "Row with no elements is not allowed in table value constructor in this context";
    percentile_of_no_number(function: &str) = WrongTypeForPercentileFunc,
        "Numeric datatype is required for {function} function";
    percentile_varies(function: &str) = ArgumentNotConstant,
        "Argument to the {function} function is not a constant for a partition";
    percentile_no_number(function: &str) = WrongTypeOfArgument,
        "{function} function only accepts arguments that can be converted to numerical types";
    cant_use_option_here(option: &str) = CantUseOptionHere, "Incorrect usage/placement of '{option}'";
    mix_of_group_columns() = MixOfGroupFuncAndFields,
        "Mixing of GROUP columns (MIN(),MAX(),COUNT(),...) with no GROUP columns is illegal if there is no GROUP BY \
         clause";
    label_without_match(label: &str) = SpLabelMismatch, "End-label {label} without match";
    undeclared_variable(name: &str) = SpUndeclaredVar, "Undeclared variable: {name}";
    undefined_condition(name: &str) = SpCondMismatch, "Undefined CONDITION: {name}";
    variable_after_cursor_or_handler() = SpVarcondAfterCurshndlr,
        "Variable or condition declaration after cursor or handler declaration";
    cursor_after_handler() = SpCursorAfterHandler, "Cursor declaration after handler declaration";
    cursor_with_into() = SpBadCursorSelect, "Cursor SELECT must not have INTO";
    bad_sqlstate(state: &str) = SpBadSqlstate, "Bad SQLSTATE: '{state}'";
    wrong_routine_name(name: &str) = SpWrongName, "Incorrect routine name '{name}'";
    duplicate_condition_item(item: &str) = DupSignalSet, "Duplicate condition information item '{item}'";
    wrong_condition_value(value: &str) = WrongValue, "Incorrect CONDITION value: '{value}'";
    unknown_function(db: &str, name: &str) = SpDoesNotExist, "FUNCTION {db}.{name} does not exist";
    wrong_param_count(function: &str) = WrongParamcountToNativeFct,
        "Incorrect parameter count in the call to native function '{function}'";
    unknown_charset(name: &str) = UnknownCharacterSet, "Unknown character set: '{name}'";
    unknown_collation(name: &str) = UnknownCollation, "Unknown collation: '{name}'";
    collation_mismatch(collation: &str, charset: &str) = CollationCharsetMismatch,
        "COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'";
    unknown_engine(name: &str) = UnknownStorageEngine, "Unknown storage engine '{name}'";
    unknown_key(key: &str, table: &str) = KeyDoesNotExists, "Key '{key}' doesn't exist in table '{table}'";
    too_long_identifier(name: &str) = TooLongIdent, "Identifier name '{}' is too long", clip(name, 100);
    wrong_database_name(name: &str) = WrongDbName, "Incorrect database name '{}'", clip(name, 100);
    wrong_table_name(name: &str) = WrongTableName, "Incorrect table name '{name}'";
    wrong_column_name(name: &str) = WrongColumnName, "Incorrect column name '{name}'";
    wrong_index_name(name: &str) = WrongNameForIndex, "Incorrect index name '{name}'";
}

// Definitions.
texts! {
    duplicate_column(column: &str) = DupFieldName, "Duplicate column name '{column}'";
    duplicate_key_name(key: &str) = DupKeyName, "Duplicate key name '{key}'";
    invalid_default(column: &str) = InvalidDefault, "Invalid default value for '{column}'";
    wrong_column_spec(column: &str) = WrongFieldSpec, "Incorrect column specifier for column '{column}'";
    multiple_primary_key() = MultiplePriKey, "Multiple primary key defined";
    key_too_long(bytes_max: u32) = TooLongKey, "Specified key was too long; max key length is {bytes_max} bytes";
    key_prefix_too_long(bytes_max: u32) = TooLongKeypart,
        "Specified key part was too long; max key part length is {bytes_max} bytes";
    key_part_too_long(bytes_max: u32) = IndexColumnTooLong,
        "Index column size too large. The maximum column size is {bytes_max} bytes";
    too_many_keys(max: u32) = TooManyKeys, "Too many keys specified; max {max} keys allowed";
    too_many_key_parts(max: u32) = TooManyKeyParts, "Too many key parts specified; max {max} parts allowed";
    key_column_missing(column: &str) = KeyColumnDoesNotExist, "Key column '{column}' doesn't exist in table";
    blob_key_without_length(column: &str) = BlobKeyWithoutLength,
        "BLOB/TEXT column '{column}' used in key specification without a key length";
    invisible_without_default(column: &str) = InvisibleNotNullWithoutDefault,
        "Invisible column `{column}` must have a default value";
    wrong_auto_key() = WrongAutoKey,
        "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    column_too_long(column: &str, max: u32) = TooBigFieldLength,
        "Column length too big for column '{column}' (max = {max}); use BLOB or TEXT instead";
    too_big_scale(column: &str, max: u8) = TooBigScale,
        "Too big scale specified for '{column}'. Maximum is {max}";
    too_big_precision(column: &str, max: u8) = TooBigPrecision,
        "Too big precision specified for '{column}'. Maximum is {max}";
    scale_above_precision(column: &str) = MBiggerThanD,
        "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}')";
    display_width(column: &str, max: u32) = TooBigDisplaywidth,
        "Display width out of range for '{column}' (max = {max})";
    conflicting_declarations(what: &str, first: &str, second: &str) = ConflictingDeclarations,
        "Conflicting declarations: '{what} {first}' and '{what} {second}'";
    duplicated_member(column: &str, value: &str, kind: &str) = DuplicatedValueInType,
        "Column '{column}' has duplicated value '{value}' in {kind}";
    cannot_drop(kind: &str, name: &str) = CantDropFieldOrKey, "Can't DROP {kind} `{name}`; check that it exists";
    cannot_drop_all_columns() = CantRemoveAllFields,
        "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    table_without_columns() = TableMustHaveColumns, "A table must have at least 1 column";
    too_many_columns() = TooManyFields, "Too many columns";
    row_too_big(bytes_max: u32) = TooBigRowsize,
        "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {bytes_max}. This \
         includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    using_other_engine(engine: &str, table: &str) = WarnUsingOtherHandler,
        "Using storage engine {engine} for table '{table}'";
    invalid_on_update(column: &str) = InvalidOnUpdate, "Invalid ON UPDATE clause for '{column}' column";
}

// Statements, transactions, sessions.
texts! {
    /// `near`: the text from the offending token on.
    parse_error(near: &str, line: usize) = Parse,
        "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version for \
         the right syntax to use near '{}' at line {line}", clip(near, 80);
    empty_query() = EmptyQuery, "Query was empty";
    not_supported(what: &str) = NotSupportedYet, "This version of MariaDB doesn't yet support '{what}'";
    wrong_usage(a: &str, b: &str) = WrongUsage, "Incorrect usage of {a} and {b}";
    wrong_arguments(function: &str) = WrongArguments, "Incorrect arguments to {function}";
    deadlock() = LockDeadlock, "Deadlock found when trying to get lock; try restarting transaction";
    lock_wait_timeout() = LockWaitTimeout, "Lock wait timeout exceeded; try restarting transaction";
    lock_table_full() = LockTableFull, "The total number of locks exceeds the lock table size";
    read_only_transaction() = CantExecuteInReadOnlyTransaction,
        "Cannot execute statement in a READ ONLY transaction";
    transaction_in_progress() = CantChangeTxCharacteristics,
        "Transaction characteristics can't be changed while a transaction is in progress";
    /// "SAVEPOINT s does not exist".
    does_not_exist(kind: &str, name: &str) = SpDoesNotExist, "{kind} {name} does not exist";
    interrupted() = QueryInterrupted, "Query execution was interrupted";
    statement_timeout() = StatementTimeout, "Query execution was interrupted (max_statement_time exceeded)";
    connection_killed() = ConnectionKilled, "Connection was killed";
    server_shutdown() = ServerShutdown, "Server shutdown in progress";
    too_many_connections() = ConCount, "Too many connections";
    unknown_query(id: &str) = NoSuchQuery, "Unknown query id: {id}";
    unknown_thread(id: u64) = NoSuchThread, "Unknown thread id: {id}";
    not_owner_of_thread(id: u64) = KillDenied, "You are not owner of thread {id}";
    unknown_command() = UnknownCommand, "Unknown command";
    packet_too_large() = NetPacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes";
    unknown_statement(id: &str, call: &str) = UnknownStmtHandler,
        "Unknown prepared statement handler ({id}) given to {call}";
    too_many_parameters() = PsManyParam, "Prepared statement contains too many placeholders";
    too_many_statements(max: u64) = MaxPreparedStmtCountReached,
        "Can't create more than max_prepared_stmt_count statements (current value: {max})";
    not_in_prepared_protocol() = UnsupportedPs, "This command is not supported in the prepared statement protocol yet";
    access_denied(user: &str, host: &str, password: &str) = AccessDenied,
        "Access denied for user '{user}'@'{host}' (using password: {password})";
    database_access_denied(user: &str, host: &str, db: &str) = DbAccessDenied,
        "Access denied for user '{user}'@'{host}' to database '{db}'";
    privilege_needed(privilege: &str) = SpecificAccessDenied,
        "Access denied; you need (at least one of) the {privilege} privilege(s) for this operation";
    table_access_denied(command: &str, user: &str, host: &str, db: &str, table: &str) = TableaccessDenied,
        "{command} command denied to user '{user}'@'{host}' for table `{db}`.`{table}`";
    column_access_denied(command: &str, user: &str, host: &str, column: &str, table: &str) = ColumnaccessDenied,
        "{command} command denied to user '{user}'@'{host}' for column '{column}' in table '{table}'";
    nonexisting_table_grant(user: &str, host: &str, table: &str) = NonexistingTableGrant,
        "There is no such grant defined for user '{user}' on host '{host}' on table '{table}'";
    illegal_grant() = IllegalGrantForTable,
        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    cannot_revoke_all() = RevokeGrants, "Can't revoke all privileges for one or more of the requested users";
    invalid_role(role: &str) = InvalidRole, "Invalid role specification `{role}`";
    role_not_granted(user: &str, host: &str, role: &str) = InvalidRole,
        "User `{user}`@`{host}` has not been granted role `{role}`";
    may_not_create_user() = CantCreateUserWithGrant, "You are not allowed to create a user with GRANT";
    /// `what`: `user name`, `host name`.
    string_too_long(text: &str, what: &str, chars_max: usize) = WrongStringLength,
        "String '{}' is too long for {what} (should be no longer than {chars_max})", clip(text, 70);
    user_operation_failed(operation: &str, user: &str) = CannotUser, "Operation {operation} failed for {user}";
    unknown_variable(name: &str) = UnknownSystemVariable, "Unknown system variable '{name}'";
    /// `value`: `NULL` for NULL.
    wrong_variable_value(name: &str, value: &str) = WrongValueForVar,
        "Variable '{name}' can't be set to the value of '{}'", clip(value, 200);
    wrong_variable_type(name: &str) = WrongTypeForVar, "Incorrect argument type to variable '{name}'";
    /// `kind`: `read only`, `SESSION`, `GLOBAL`.
    variable_is(name: &str, kind: &str) = IncorrectGlobalLocalVar, "Variable '{name}' is a {kind} variable";
    variable_is_global(name: &str) = GlobalVariable,
        "Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL";
    variable_is_session(name: &str) = LocalVariable,
        "Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL";
    prevented_by_option(option: &str) = OptionPreventsStatement,
        "The MariaDB server is running with the {option} option so it cannot execute this statement";
    storage_error(number: i32, what: &str, engine: &str) = GetErrno,
        "Got error {number} \"{what}\" from storage engine {engine}";
    disk_full(path: impl Display, errno: i32) = DiskFull,
        "Disk full ({path}); waiting for someone to free some space... (errno: {errno} \"No space left on device\")";
    transaction_too_large() = TransactionTooLarge,
        "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this \
         mariadbd variable and try again";
    no_default_of_variable(name: &str) = NoDefault, "Variable '{name}' doesn't have a default value";
    not_in_transaction() = CantDoThisDuringAnTransaction,
        "You are not allowed to execute this command in a transaction";
    binlog_must_be_empty() = BinlogMustBeEmpty,
        "This operation is not allowed if any GTID has been logged to the binary log. Run RESET MASTER first to \
         erase the log";
    no_binary_logging() = NoBinaryLogging, "You are not using binary logging";
    unknown_binlog() = UnknownTargetBinlog, "Target log not found in binlog index";
    subquery_returned_rows() = SubqueryNo1Row, "Subquery returns more than 1 row";
    operand_columns(columns: usize) = OperandColumns, "Operand should contain {columns} column(s)";
    derived_without_alias() = DerivedMustHaveAlias, "Every derived table must have its own alias";
    slave_conversion_failed(column: usize, db: &str, table: &str, from: &str, to: &str) = SlaveConversionFailed,
        "Column {column} of table '{db}.{table}' cannot be converted from type '{from}' to type '{to}'";
}

impl SqlError {
    /// Returns the error of a temporary file: 1021 if the disk is full, else 1030.
    pub fn temporary_file(error: &io::Error, doing: &str) -> SqlError {
        let errno = error.raw_os_error().unwrap_or(0);
        if error.kind() == io::ErrorKind::StorageFull {
            return SqlError::disk_full("temporary file", errno);
        }
        let text = format!("Error {doing} a temporary file (errno: {errno} \"{error}\")");
        SqlError::new(ErrorCode::GetErrno, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_values_are_shown_as_mariadb_shows_them() {
        let long = format!("{}{}", "ä".repeat(120), "b".repeat(100));
        let text = SqlError::truncated_incorrect("INTEGER", long.as_bytes()).message;
        assert_eq!(text, format!("Truncated incorrect INTEGER value: '{}...'", "ä".repeat(62)));
        let text = SqlError::truncated_incorrect("DOUBLE", b"a\n\0\xff").message;
        assert_eq!(text, r"Truncated incorrect DOUBLE value: 'a\x0A\x00\xFF'");
    }
}
