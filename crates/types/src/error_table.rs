//! MariaDB's errors by number: name (without ER_), number, SQLSTATE, and the constructors of [`SqlError`]
//! with their texts.
//!
//! [`SqlError`]: crate::SqlError

macro_rules! error_table {
    ($then:ident) => { $then! {
        OfPlugin = 1, "HY000";
        CantGetStat = 13, "HY000";
        ForeignDuplicateName = 121, "HY000";
        WrongCreateOptions = 140, "HY000";
        CannotAddForeign = 150, "HY000";
        ForeignTooDeep = 152, "HY000";
        AutoincRange = 167, "22003";
        Yes = 1003, "HY000";
        CantCreateFile = 1004, "HY000";
        CantCreateTable = 1005, "HY000" {
            wrong_create_options(schema: &str, name: &str) =
                "Can't create table `{schema}`.`{name}` (errno: 140 \"Wrong create options\")";
            foreign_key_name_exists(schema: &str, name: &str) =
                "Can't create table `{schema}`.`{name}` (errno: 121 \"Duplicate key on write or update\")";
            foreign_key_of_temporary(schema: &str, name: &str) =
                "Can't create table `{schema}`.`{name}` (errno: 150 \"Foreign key constraint is incorrectly formed\")";
        };
        DbCreateExists = 1007, "HY000" {
            database_exists(db: &str) = "Can't create database '{db}'; database exists";
        };
        DbDropExists = 1008, "HY000" {
            database_missing(db: &str) = "Can't drop database '{db}'; database doesn't exist";
        };
        CheckRead = 1020, "HY000";
        DiskFull = 1021, "HY000" {
            disk_full(path: impl Display, errno: i32) =
                "Disk full ({path}); waiting for someone to free some space... (errno: {errno} \"No space left on device\")";
        };
        DupKey = 1022, "23000";
        ErrorOnRead = 1024, "HY000";
        ErrorOnRename = 1025, "HY000";
        ErrorOnWrite = 1026, "HY000";
        FilesortAbort = 1028, "HY000";
        GetErrno = 1030, "HY000" {
            storage_error(number: i32, what: &str, engine: &str) =
                "Got error {number} \"{what}\" from storage engine {engine}";
        };
        IllegalHa = 1031, "HY000" {
            not_for_sequences(schema: &str, name: &str) =
                "Storage engine SEQUENCE of the table `{schema}`.`{name}` doesn't have this option";
            no_handler(engine: &str, schema: &str, name: &str) =
                "Storage engine {engine} of the table `{schema}`.`{name}` doesn't have this option";
        };
        KeyNotFound = 1032, "HY000";
        OutOfMemory = 1037, "HY001";
        ConCount = 1040, "08004" { too_many_connections() = "Too many connections"; };
        OutOfResources = 1041, "HY000";
        Handshake = 1043, "08S01";
        DbAccessDenied = 1044, "42000" {
            database_access_denied(user: &str, host: &str, db: &str) =
                "Access denied for user '{user}'@'{host}' to database '{db}'";
        };
        AccessDenied = 1045, "28000" {
            access_denied(user: &str, host: &str, password: &str) =
                "Access denied for user '{user}'@'{host}' (using password: {password})";
        };
        NoDb = 1046, "3D000" { no_database_selected() = "No database selected"; };
        UnknownCommand = 1047, "08S01" { unknown_command() = "Unknown command"; };
        BadNull = 1048, "23000" { bad_null(column: &str) = "Column '{column}' cannot be null"; };
        BadDb = 1049, "42000" { unknown_database(db: &str) = "Unknown database '{db}'"; };
        TableExists = 1050, "42S01" { table_exists(table: &str) = "Table '{table}' already exists"; };
        BadTable = 1051, "42S02" {
            /// The error of DROP TABLE; `tables`: `db.t1,db.t2`.
            unknown_table(tables: &str) = "Unknown table '{}'", clip(tables, 100);
        };
        NonUniq = 1052, "23000" {
            ambiguous_column(column: &str, place: &str) = "Column '{column}' in {place} is ambiguous";
        };
        ServerShutdown = 1053, "08S01" { server_shutdown() = "Server shutdown in progress"; };
        BadField = 1054, "42S22" {
            /// `place`: `field list`, `where clause`, `order clause`, `group statement`, `on clause`, `having
            /// clause`.
            unknown_column(column: &str, place: &str) = "Unknown column '{column}' in '{place}'";
        };
        WrongFieldWithGroup = 1055, "42000" {
            not_in_group_by(column: &str) = "'{column}' isn't in GROUP BY";
        };
        WrongGroupField = 1056, "42000" { wrong_group_field(name: &str) = "Can't group on '{name}'"; };
        WrongValueCount = 1058, "21S01";
        TooLongIdent = 1059, "42000" {
            too_long_identifier(name: &str) = "Identifier name '{}' is too long", clip(name, 100);
        };
        DupFieldName = 1060, "42S21" { duplicate_column(column: &str) = "Duplicate column name '{column}'"; };
        DupKeyName = 1061, "42000" { duplicate_key_name(key: &str) = "Duplicate key name '{key}'"; };
        DupEntry = 1062, "23000" {
            /// `value`: the key's columns joined by `-`.
            dup_entry(value: &[u8], key: &str) =
                "Duplicate entry '{}' for key '{key}'", printable_clipped(value, 64);
        };
        WrongFieldSpec = 1063, "42000" {
            wrong_column_spec(column: &str) = "Incorrect column specifier for column '{column}'";
        };
        Parse = 1064, "42000" {
            /// `near`: the text from the offending token on.
            parse_error(near: &str, line: usize) =
                "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version for \
                 the right syntax to use near '{}' at line {line}", clip(near, 80);
        };
        EmptyQuery = 1065, "42000" { empty_query() = "Query was empty"; };
        NonUniqTable = 1066, "42000" { non_unique_table(name: &str) = "Not unique table/alias: '{name}'"; };
        InvalidDefault = 1067, "42000" {
            invalid_default(column: &str) = "Invalid default value for '{column}'";
        };
        MultiplePriKey = 1068, "42000" { multiple_primary_key() = "Multiple primary key defined"; };
        TooManyKeys = 1069, "42000" {
            too_many_keys(max: u32) = "Too many keys specified; max {max} keys allowed";
        };
        TooManyKeyParts = 1070, "42000" {
            too_many_key_parts(max: u32) = "Too many key parts specified; max {max} parts allowed";
        };
        TooLongKey = 1071, "42000" {
            key_too_long(bytes_max: u32) = "Specified key was too long; max key length is {bytes_max} bytes";
        };
        KeyColumnDoesNotExist = 1072, "42000" {
            key_column_missing(column: &str) = "Key column '{column}' doesn't exist in table";
        };
        BlobUsedAsKey = 1073, "42000";
        TooBigFieldLength = 1074, "42000" {
            column_too_long(column: &str, max: u32) =
                "Column length too big for column '{column}' (max = {max}); use BLOB or TEXT instead";
        };
        WrongAutoKey = 1075, "42000" {
            wrong_auto_key() =
                "Incorrect table definition; there can be only one auto column and it must be defined as a key";
        };
        BinlogCantDeleteGtidDomain = 1076, "HY000";
        WrongFieldTerminators = 1083, "42000";
        TextfileNotReadable = 1085, "HY000";
        FileExists = 1086, "HY000";
        WrongSubKey = 1089, "HY000";
        CantRemoveAllFields = 1090, "42000" {
            cannot_drop_all_columns() = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
        };
        CantDropFieldOrKey = 1091, "42000" {
            cannot_drop(kind: &str, name: &str) = "Can't DROP {kind} `{name}`; check that it exists";
        };
        UpdateTableUsed = 1093, "HY000" {
            target_is_source(table: &str, statement: &str) =
                "Table '{table}' is specified twice, both as a target for '{statement}' and as a separate source for data";
        };
        NoSuchThread = 1094, "HY000" { unknown_thread(id: u64) = "Unknown thread id: {id}"; };
        KillDenied = 1095, "HY000" { not_owner_of_thread(id: u64) = "You are not owner of thread {id}"; };
        NoTablesUsed = 1096, "HY000";
        TooBigSet = 1097, "HY000";
        CantGenerateLogName = 1098, "HY000";
        TableNotLockedForWrite = 1099, "HY000";
        TableNotLocked = 1100, "HY000";
        WrongDbName = 1102, "42000" {
            wrong_database_name(name: &str) = "Incorrect database name '{}'", clip(name, 100);
        };
        WrongTableName = 1103, "42000" { wrong_table_name(name: &str) = "Incorrect table name '{name}'"; };
        UnknownError = 1105, "HY000";
        UnknownTable = 1109, "42S02" {
            /// "Unknown table 't' in field list".
            unknown_table_in(table: &str, place: &str) = "Unknown table '{table}' in {place}";
        };
        FieldSpecifiedTwice = 1110, "42000" {
            column_specified_twice(column: &str) = "Column '{column}' specified twice";
        };
        InvalidGroupFuncUse = 1111, "HY000" { invalid_group_function() = "Invalid use of group function"; };
        TableMustHaveColumns = 1113, "42000" {
            table_without_columns() = "A table must have at least 1 column";
        };
        UnknownCharacterSet = 1115, "42000" {
            unknown_charset(name: &str) = "Unknown character set: '{name}'";
        };
        TooManyTables = 1116, "HY000";
        TooManyFields = 1117, "HY000" { too_many_columns() = "Too many columns"; };
        TooBigRowsize = 1118, "42000" {
            row_too_big(bytes_max: u32) =
                "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {bytes_max}. This \
                 includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
        };
        CantOpenLibrary = 1126, "HY000";
        FunctionNotDefined = 1128, "HY000";
        PasswordNoMatch = 1133, "28000";
        CantCreateThread = 1135, "HY000";
        WrongValueCountOnRow = 1136, "21S01" {
            value_count(row: u64) = "Column count doesn't match value count at row {row}";
        };
        InvalidUseOfNull = 1138, "22004";
        Regexp = 1139, "42000";
        MixOfGroupFuncAndFields = 1140, "42000" {
            mix_of_group_columns() =
                "Mixing of GROUP columns (MIN(),MAX(),COUNT(),...) with no GROUP columns is illegal if there is no GROUP BY \
                 clause";
        };
        NonexistingGrant = 1141, "42000";
        TableaccessDenied = 1142, "42000" {
            table_access_denied(command: &str, user: &str, host: &str, db: &str, table: &str) =
                "{command} command denied to user '{user}'@'{host}' for table `{db}`.`{table}`";
        };
        ColumnaccessDenied = 1143, "42000" {
            column_access_denied(command: &str, user: &str, host: &str, column: &str, table: &str) =
                "{command} command denied to user '{user}'@'{host}' for column '{column}' in table '{table}'";
        };
        IllegalGrantForTable = 1144, "42000" {
            illegal_grant() =
                "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
        };
        NoSuchTable = 1146, "42S02" {
            table_missing(db: &str, table: &str) = "Table '{db}.{table}' doesn't exist";
        };
        NonexistingTableGrant = 1147, "42000" {
            nonexisting_table_grant(user: &str, host: &str, table: &str) =
                "There is no such grant defined for user '{user}' on host '{host}' on table '{table}'";
        };
        SyntaxError = 1149, "42000";
        NetPacketTooLarge = 1153, "08S01" {
            packet_too_large() = "Got a packet bigger than 'max_allowed_packet' bytes";
        };
        NetPacketsOutOfOrder = 1156, "08S01";
        NetUncompress = 1157, "08S01";
        NetReadError = 1158, "08S01";
        NetReadInterrupted = 1159, "08S01";
        WrongColumnName = 1166, "42000" { wrong_column_name(name: &str) = "Incorrect column name '{name}'"; };
        WrongKeyColumn = 1167, "HY000";
        BlobKeyWithoutLength = 1170, "42000" {
            blob_key_without_length(column: &str) =
                "BLOB/TEXT column '{column}' used in key specification without a key length";
        };
        TooManyRows = 1172, "42000";
        RequiresPrimaryKey = 1173, "42000" {
            requires_primary_key() = "This table type requires a primary key";
        };
        UpdateWithoutKeyInSafeMode = 1175, "HY000";
        KeyDoesNotExists = 1176, "42000" {
            unknown_key(key: &str, table: &str) = "Key '{key}' doesn't exist in table '{table}'";
        };
        CantDoThisDuringAnTransaction = 1179, "25000" {
            not_in_transaction() = "You are not allowed to execute this command in a transaction";
        };
        NewAbortingConnection = 1184, "08S01";
        BinlogClosed = 1186, "HY000";
        FtMatchingKeyNotFound = 1191, "HY000";
        LockOrActiveTransaction = 1192, "HY000";
        UnknownSystemVariable = 1193, "HY000" {
            unknown_variable(name: &str) = "Unknown system variable '{name}'";
        };
        TransactionTooLarge = 1197, "HY000" {
            transaction_too_large() =
                "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this \
                 mariadbd variable and try again";
        };
        SlaveMustStop = 1198, "HY000";
        SlaveNotRunning = 1199, "HY000";
        BadSlave = 1200, "HY000";
        MasterInfo = 1201, "HY000";
        TooManyUserConnections = 1203, "42000";
        SetConstantsOnly = 1204, "HY000";
        LockWaitTimeout = 1205, "HY000" {
            lock_wait_timeout() = "Lock wait timeout exceeded; try restarting transaction";
        };
        LockTableFull = 1206, "HY000" {
            lock_table_full() = "The total number of locks exceeds the lock table size";
        };
        WrongArguments = 1210, "HY000" {
            wrong_arguments(function: &str) = "Incorrect arguments to {function}";
        };
        LockDeadlock = 1213, "40001" {
            deadlock() = "Deadlock found when trying to get lock; try restarting transaction";
        };
        CannotAddForeignKey = 1215, "HY000";
        NoBinlogCoordinate = 1220, "HY000";
        WrongUsage = 1221, "HY000" { wrong_usage(a: &str, b: &str) = "Incorrect usage of {a} and {b}"; };
        WrongNumberOfColumnsInSelect = 1222, "21000";
        CantUpdateWithReadlock = 1223, "HY000";
        UserLimitReached = 1226, "42000";
        SpecificAccessDenied = 1227, "42000" {
            privilege_needed(privilege: &str) =
                "Access denied; you need (at least one of) the {privilege} privilege(s) for this operation";
        };
        LocalVariable = 1228, "HY000" {
            variable_is_session(name: &str) =
                "Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL";
        };
        GlobalVariable = 1229, "HY000" {
            variable_is_global(name: &str) =
                "Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL";
        };
        NoDefault = 1230, "42000" {
            no_default_of_variable(name: &str) = "Variable '{name}' doesn't have a default value";
        };
        WrongValueForVar = 1231, "42000" {
            /// `value`: `NULL` for NULL.
            wrong_variable_value(name: &str, value: &str) =
                "Variable '{name}' can't be set to the value of '{}'", clip(value, 200);
        };
        WrongTypeForVar = 1232, "42000" {
            wrong_variable_type(name: &str) = "Incorrect argument type to variable '{name}'";
        };
        VarCantBeRead = 1233, "HY000";
        CantUseOptionHere = 1234, "42000" {
            cant_use_option_here(option: &str) = "Incorrect usage/placement of '{option}'";
        };
        NotSupportedYet = 1235, "42000" {
            not_supported(what: &str) = "This version of MariaDB doesn't yet support '{what}'";
        };
        MasterFatalErrorReadingBinlog = 1236, "HY000";
        IncorrectGlobalLocalVar = 1238, "HY000" {
            /// `kind`: `read only`, `SESSION`, `GLOBAL`.
            variable_is(name: &str, kind: &str) = "Variable '{name}' is a {kind} variable";
        };
        WrongFkDef = 1239, "42000";
        OperandColumns = 1241, "21000" {
            operand_columns(columns: usize) = "Operand should contain {columns} column(s)";
        };
        SubqueryNo1Row = 1242, "21000" { subquery_returned_rows() = "Subquery returns more than 1 row"; };
        UnknownStmtHandler = 1243, "HY000" {
            unknown_statement(id: &str, call: &str) = "Unknown prepared statement handler ({id}) given to {call}";
        };
        AutoConvert = 1246, "HY000";
        IllegalReference = 1247, "42S22" {
            illegal_reference(name: &str, why: &str) = "Reference '{name}' not supported ({why})";
        };
        DerivedMustHaveAlias = 1248, "42000" {
            derived_without_alias() = "Every derived table must have its own alias";
        };
        TablenameNotAllowedHere = 1250, "42000";
        CollationCharsetMismatch = 1253, "42000" {
            collation_mismatch(collation: &str, charset: &str) =
                "COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'";
        };
        SlaveWasRunning = 1254, "HY000";
        SlaveWasNotRunning = 1255, "HY000";
        TooBigForUncompress = 1256, "HY000";
        ZlibZData = 1259, "HY000";
        CutValueGroupConcat = 1260, "HY000";
        WarnTooFewRecords = 1261, "01000";
        WarnTooManyRecords = 1262, "01000";
        WarnNullToNotnull = 1263, "22004" {
            null_to_not_null(column: &str, row: u64) =
                "Column set to default value; NULL supplied to NOT NULL column '{column}' at row {row}";
        };
        WarnDataOutOfRange = 1264, "22003" {
            out_of_range(column: &str, row: u64) = "Out of range value for column '{column}' at row {row}";
        };
        WarnDataTruncated = 1265, "01000" {
            data_truncated(column: &str, row: u64) = "Data truncated for column '{column}' at row {row}";
        };
        WarnUsingOtherHandler = 1266, "HY000" {
            using_other_engine(engine: &str, table: &str) = "Using storage engine {engine} for table '{table}'";
        };
        CantAggregate2Collations = 1267, "HY000";
        RevokeGrants = 1269, "HY000" {
            cannot_revoke_all() = "Can't revoke all privileges for one or more of the requested users";
        };
        CantAggregate3Collations = 1270, "HY000";
        CantAggregateNCollations = 1271, "HY000";
        UnknownCollation = 1273, "HY000" { unknown_collation(name: &str) = "Unknown collation: '{name}'"; };
        BadSlaveUntilCond = 1277, "HY000";
        UntilCondIgnored = 1279, "HY000";
        WrongNameForIndex = 1280, "42000" { wrong_index_name(name: &str) = "Incorrect index name '{name}'"; };
        BadFtColumn = 1283, "HY000";
        UnknownStorageEngine = 1286, "42000" {
            unknown_engine(name: &str) = "Unknown storage engine '{name}'";
        };
        WarnDeprecatedSyntax = 1287, "HY000";
        NonUpdatableTable = 1288, "HY000";
        FeatureDisabled = 1289, "HY000";
        OptionPreventsStatement = 1290, "HY000" {
            prevented_by_option(option: &str) =
                "The MariaDB server is running with the {option} option so it cannot execute this statement";
        };
        DuplicatedValueInType = 1291, "HY000" {
            duplicated_member(column: &str, value: &str, kind: &str) =
                "Column '{column}' has duplicated value '{value}' in {kind}";
        };
        TruncatedWrongValue = 1292, "22007" {
            /// A warning of expressions: "Truncated incorrect DOUBLE value: 'x'".
            truncated_incorrect(kind: &str, value: &[u8]) =
                "Truncated incorrect {kind} value: '{}'", clipped(value);
            /// A warning of temporal expressions: "Incorrect datetime value: 'x'".
            incorrect_value(kind: &str, value: &[u8]) = "Incorrect {kind} value: '{}'", clipped(value);
            /// "Incorrect uuid value: 'x' for column `d`.`t`.`c` at row 1".
            incorrect_fixed_for_column(kind: &str, value: &[u8], db: &str, table: &str, column: &str, row: u64) =
                "Incorrect {kind} value: '{}' for column `{db}`.`{table}`.`{column}` at row {row}", clipped(value);
        };
        InvalidOnUpdate = 1294, "HY000" {
            invalid_on_update(column: &str) = "Invalid ON UPDATE clause for '{column}' column";
        };
        UnsupportedPs = 1295, "HY000" {
            not_in_prepared_protocol() = "This command is not supported in the prepared statement protocol yet";
        };
        GetErrmsg = 1296, "HY000";
        UnknownTimeZone = 1298, "HY000";
        InvalidCharacterString = 1300, "HY000" {
            invalid_character_string(charset: &str, bytes: &[u8]) =
                "Invalid {charset} character string: '{}'", printable_clipped(bytes, 64);
        };
        WarnAllowedPacketOverflowed = 1301, "HY000";
        ConflictingDeclarations = 1302, "HY000" {
            conflicting_declarations(what: &str, first: &str, second: &str) =
                "Conflicting declarations: '{what} {first}' and '{what} {second}'";
        };
        SpNoRecursiveCreate = 1303, "2F003" {
            create_within_routine(kind: &str) = "Can't create a {kind} from within another stored routine";
        };
        SpAlreadyExists = 1304, "42000" {
            routine_exists(kind: &str, name: &str) = "{kind} {name} already exists";
        };
        SpDoesNotExist = 1305, "42000" {
            unknown_function(db: &str, name: &str) = "FUNCTION {db}.{name} does not exist";
            /// "SAVEPOINT s does not exist".
            does_not_exist(kind: &str, name: &str) = "{kind} {name} does not exist";
        };
        SpLilabelMismatch = 1308, "42000" {
            label_unknown(statement: &str, label: &str) = "{statement} with no matching label: {label}";
        };
        SpLabelRedefine = 1309, "42000" { label_redefined(label: &str) = "Redefining label {label}"; };
        SpLabelMismatch = 1310, "42000" {
            label_without_match(label: &str) = "End-label {label} without match";
        };
        SpBadselect = 1312, "0A000" {
            no_result_set_here(procedure: &str) =
                "PROCEDURE {procedure} can't return a result set in the given context";
        };
        SpBadreturn = 1313, "42000" {
            return_outside_function() = "RETURN is only allowed in a FUNCTION";
        };
        SpBadstatement = 1314, "0A000" {
            not_in_programs(statement: &str) = "{statement} is not allowed in stored procedures";
        };
        QueryInterrupted = 1317, "70100" { interrupted() = "Query execution was interrupted"; };
        SpWrongNoOfArgs = 1318, "42000" {
            wrong_argument_count(kind: &str, name: &str, expected: usize, got: usize) =
                "Incorrect number of arguments for {kind} {name}; expected {expected}, got {got}";
        };
        SpCondMismatch = 1319, "42000" {
            undefined_condition(name: &str) = "Undefined CONDITION: {name}";
        };
        SpNoreturn = 1320, "42000" { no_return(name: &str) = "No RETURN found in FUNCTION {name}"; };
        SpNoreturnend = 1321, "2F005" {
            ended_without_return(name: &str) = "FUNCTION {name} ended without RETURN";
        };
        SpBadCursorSelect = 1323, "42000" {
            cursor_with_into() = "Cursor SELECT must not have INTO";
        };
        SpCursorMismatch = 1324, "42000" { undefined_cursor(name: &str) = "Undefined CURSOR: {name}"; };
        SpCursorAlreadyOpen = 1325, "24000" { cursor_is_open() = "Cursor is already open"; };
        SpCursorNotOpen = 1326, "24000" { cursor_is_not_open() = "Cursor is not open"; };
        SpUndeclaredVar = 1327, "42000" {
            undeclared_variable(name: &str) = "Undeclared variable: {name}";
        };
        SpWrongNoOfFetchArgs = 1328, "HY000" {
            wrong_fetch_count() = "Incorrect number of FETCH variables";
        };
        SpFetchNoData = 1329, "02000" {
            no_data() = "No data - zero rows fetched, selected, or processed";
        };
        SpDupParam = 1330, "42000" { duplicate_parameter(name: &str) = "Duplicate parameter: {name}"; };
        SpDupVar = 1331, "42000" { duplicate_variable(name: &str) = "Duplicate variable: {name}"; };
        SpDupCond = 1332, "42000" { duplicate_condition(name: &str) = "Duplicate condition: {name}"; };
        SpDupCurs = 1333, "42000" { duplicate_cursor(name: &str) = "Duplicate cursor: {name}"; };
        StmtNotAllowedInSfOrTrg = 1336, "0A000" {
            not_in_function_or_trigger(statement: &str) =
                "{statement} is not allowed in stored function or trigger";
        };
        SpVarcondAfterCurshndlr = 1337, "42000" {
            variable_after_cursor_or_handler() =
                "Variable or condition declaration after cursor or handler declaration";
        };
        SpCursorAfterHandler = 1338, "42000" {
            cursor_after_handler() = "Cursor declaration after handler declaration";
        };
        SpCaseNotFound = 1339, "20000" { case_not_found() = "Case not found for CASE statement"; };
        ViewNoExplain = 1345, "HY000";
        WrongObject = 1347, "HY000" {
            /// A view in place of a table.
            not_a_base_table(db: &str, name: &str) = "'{db}.{name}' is not of type 'BASE TABLE'";
        };
        NonUpdatableColumn = 1348, "HY000";
        ViewSelectClause = 1350, "HY000";
        ViewSelectVariable = 1351, "HY000";
        ViewSelectTmptable = 1352, "HY000" {
            view_of_temporary(name: &str) = "View's SELECT refers to a temporary table '{name}'";
        };
        ViewWrongList = 1353, "HY000";
        WarnViewMerge = 1354, "HY000";
        ViewInvalid = 1356, "HY000";
        SpNoDropSp = 1357, "HY000" {
            drop_within_routine(kind: &str) = "Can't drop or alter a {kind} from within another stored routine";
        };
        TrgAlreadyExists = 1359, "HY000" {
            trigger_exists(schema: &str, name: &str) =
                "Trigger '{schema}.{name}' already exists";
        };
        TrgDoesNotExist = 1360, "HY000" {
            unknown_trigger() = "Trigger does not exist";
        };
        TrgOnViewOrTempTable = 1361, "HY000" {
            trigger_on_view(name: &str) =
                "Trigger's '{name}' is a view, temporary table or sequence";
        };
        TrgCantChangeRow = 1362, "HY000" {
            trigger_cannot_change_row(row: &str, when: &str) =
                "Updating of {row} row is not allowed in {when}trigger";
        };
        TrgNoSuchRowInTrg = 1363, "HY000" {
            no_such_row_in_trigger(row: &str, event: &str) =
                "There is no {row} row in on {event} trigger";
        };
        NoDefaultForField = 1364, "HY000" {
            no_default(column: &str) = "Field '{column}' doesn't have a default value";
        };
        DivisionByZero = 1365, "22012" { division_by_zero() = "Division by 0"; };
        TruncatedWrongValueForField = 1366, "22007" {
            /// "Incorrect datetime value: 'x' for column `db`.`t`.`c` at row 1".
            incorrect_value_for_column(kind: &str, value: &[u8], db: &str, table: &str, column: &str, row: u64) =
                "Incorrect {kind} value: '{}' for column `{db}`.`{table}`.`{column}` at row {row}", clipped(value);
        };
        IllegalValueForType = 1367, "22007";
        ViewNonupdCheck = 1368, "HY000";
        ViewCheckFailed = 1369, "44000";
        ProcaccessDenied = 1370, "42000" {
            routine_access_denied(command: &str, user: &str, host: &str, routine: &str) =
                "{command} command denied to user '{user}'@'{host}' for routine '{routine}'";
        };
        PasswordLength = 1372, "HY000";
        UnknownTargetBinlog = 1373, "HY000" { unknown_binlog() = "Target log not found in binlog index"; };
        LogInUse = 1378, "HY000";
        NoBinaryLogging = 1381, "HY000" { no_binary_logging() = "You are not using binary logging"; };
        PsManyParam = 1390, "HY000" {
            too_many_parameters() = "Prepared statement contains too many placeholders";
        };
        KeyPart0 = 1391, "HY000";
        ViewMultiUpdate = 1393, "HY000";
        ViewNoInsertFieldList = 1394, "HY000";
        ViewDeleteMergeView = 1395, "HY000";
        CannotUser = 1396, "HY000" {
            user_operation_failed(operation: &str, user: &str) = "Operation {operation} failed for {user}";
        };
        XaerNota = 1397, "XAE04";
        XaerInval = 1398, "XAE05";
        XaerRmfail = 1399, "XAE07";
        XaerOutside = 1400, "XAE09";
        XaerRmerr = 1401, "XAE03";
        XaRbrollback = 1402, "XA100";
        NonexistingProcGrant = 1403, "42000";
        DataTooLong = 1406, "22001" {
            data_too_long(column: &str, row: u64) = "Data too long for column '{column}' at row {row}";
        };
        SpBadSqlstate = 1407, "42000" {
            bad_sqlstate(state: &str) = "Bad SQLSTATE: '{state}'";
        };
        CantCreateUserWithGrant = 1410, "42000" {
            may_not_create_user() = "You are not allowed to create a user with GRANT";
        };
        WrongValueForType = 1411, "HY000" {
            wrong_value_for_function(kind: &str, value: &[u8], function: &str) =
                "Incorrect {kind} value: '{}' for function {function}", clipped(value);
        };
        TableDefChanged = 1412, "HY000";
        SpDupHandler = 1413, "42000" {
            duplicate_handler() = "Duplicate handler declared in the same block";
        };
        SpNotVarArg = 1414, "42000" {
            argument_is_no_variable(number: usize, routine: &str) =
                "OUT or INOUT argument {number} for routine {routine} is not a variable or NEW pseudo-variable in \
                 BEFORE trigger";
        };
        SpNoRetset = 1415, "0A000" {
            no_result_set(program: &str) = "Not allowed to return a result set from a {program}";
        };
        BinlogUnsafeRoutine = 1418, "HY000" {
            unsafe_routine() =
                "This function has none of DETERMINISTIC, NO SQL, or READS SQL DATA in its declaration and binary logging is enabled (you *might* want to use the less safe log_bin_trust_function_creators variable)";
        };
        BinlogCreateRoutineNeedSuper = 1419, "HY000" {
            routine_needs_super() =
                "You do not have the SUPER privilege and binary logging is enabled (you *might* want to use the less safe log_bin_trust_function_creators variable)";
        };
        StmtHasNoOpenCursor = 1421, "HY000";
        CommitNotAllowedInSfOrTrg = 1422, "HY000" {
            commit_in_function_or_trigger() =
                "Explicit or implicit commit is not allowed in stored function or trigger";
        };
        SpNoRecursion = 1424, "HY000" {
            recursive_function() = "Recursive stored functions and triggers are not allowed";
        };
        TooBigScale = 1425, "42000" {
            too_big_scale(column: &str, max: u8) = "Too big scale specified for '{column}'. Maximum is {max}";
        };
        TooBigPrecision = 1426, "42000" {
            too_big_precision(column: &str, max: u8) =
                "Too big precision specified for '{column}'. Maximum is {max}";
        };
        MBiggerThanD = 1427, "42000" {
            scale_above_precision(column: &str) =
                "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}')";
        };
        TrgInWrongSchema = 1435, "HY000" {
            trigger_in_wrong_schema() = "Trigger in wrong schema";
        };
        StackOverrunNeedMore = 1436, "HY000";
        TooBigDisplaywidth = 1439, "42000" {
            display_width(column: &str, max: u32) = "Display width out of range for '{column}' (max = {max})";
        };
        XaerDupid = 1440, "XAE08";
        DatetimeFunctionOverflow = 1441, "22008" {
            datetime_overflow(function: &str) = "Datetime function: {function} field overflow";
        };
        CantUpdateUsedTableInSfOrTrg = 1442, "HY000" {
            table_used_by_caller(table: &str) =
                "Can't update table '{table}' in stored function/trigger because it is already used by statement which \
                 invoked this stored function/trigger";
        };
        SpCantSetAutocommit = 1445, "HY000" {
            autocommit_in_function() = "Not allowed to set autocommit from a stored function or trigger";
        };
        MalformedDefiner = 1446, "0L000";
        NoSuchUser = 1449, "HY000" {
            no_such_definer(user: &str, host: &str) =
                "The user specified as a definer ('{user}'@'{host}') does not exist";
        };
        ForbidSchemaChange = 1450, "HY000";
        RowIsReferenced = 1451, "23000";
        NoReferencedRow = 1452, "23000";
        SpRecursionLimit = 1456, "HY000" {
            recursion_limit(limit: u64, routine: &str) =
                "Recursive limit {limit} (as set by the max_sp_recursion_depth variable) was exceeded for routine \
                 {routine}";
        };
        SpProcTableCorrupt = 1457, "HY000" {
            damaged_routine(name: &str) = "Failed to load routine {name} (internal code -6). For more details, run SHOW WARNINGS";
        };
        SpWrongName = 1458, "42000" {
            wrong_routine_name(name: &str) = "Incorrect routine name '{name}'";
        };
        MaxPreparedStmtCountReached = 1461, "42000" {
            too_many_statements(max: u64) =
                "Can't create more than max_prepared_stmt_count statements (current value: {max})";
        };
        ViewRecursive = 1462, "HY000";
        NoTriggersOnSystemSchema = 1465, "HY000" {
            trigger_on_system_table() = "Triggers can not be created on system tables";
        };
        AutoincReadFailed = 1467, "HY000" {
            autoinc_read_failed() = "Failed to read auto-increment value from storage engine";
        };
        WrongStringLength = 1470, "HY000" {
            /// `what`: `user name`, `host name`.
            string_too_long(text: &str, what: &str, chars_max: usize) =
                "String '{}' is too long for {what} (should be no longer than {chars_max})", clip(text, 70);
        };
        NonInsertableTable = 1471, "HY000";
        TooHighLevelOfNestingForSelect = 1473, "HY000";
        AmbiguousFieldTerm = 1475, "HY000";
        IllegalHaCreateOption = 1478, "HY000" {
            illegal_create_option(engine: &str, option: &str) =
                "Table storage engine '{engine}' does not support the create option '{option}'";
        };
        PluginIsNotLoaded = 1524, "HY000";
        WrongValue = 1525, "HY000" {
            wrong_condition_value(value: &str) = "Incorrect CONDITION value: '{value}'";
            /// Error 1525 of CONVERT and similar functions.
            wrong_value(kind: &str, value: &[u8]) = "Incorrect {kind} value: '{}'", clipped(value);
        };
        BinlogRowLoggingFailed = 1534, "HY000" {
            binlog_row_failed() = "Writing one row to the row-based binary log failed";
        };
        EventAlreadyExists = 1537, "HY000" {
            event_exists(name: &str) = "Event '{name}' already exists";
        };
        EventDoesNotExist = 1539, "HY000" {
            unknown_event(name: &str) = "Unknown event '{name}'";
        };
        EventIntervalNotPositiveOrTooBig = 1542, "HY000" {
            event_interval() = "INTERVAL is either not positive or too big";
        };
        EventEndsBeforeStarts = 1543, "HY000" {
            event_ends() = "ENDS is either invalid or before STARTS";
        };
        EventExecTimeInThePast = 1544, "HY000" {
            event_in_the_past() = "Event execution time is in the past. Event has been disabled";
        };
        EventSameName = 1551, "HY000" {
            same_event_name() = "Same old and new event name";
        };
        DropIndexFk = 1553, "HY000";
        CantLockLogTable = 1556, "HY000";
        CantChangeTxCharacteristics = 1568, "25001" {
            transaction_in_progress() =
                "Transaction characteristics can't be changed while a transaction is in progress";
        };
        Base64DecodeError = 1575, "HY000";
        EventRecursionForbidden = 1576, "HY000" {
            event_within_event() = "Recursion of EVENT DDL statements is forbidden when body is present";
        };
        BadLogStatement = 1580, "HY000";
        WrongParamcountToNativeFct = 1582, "42000" {
            wrong_param_count(function: &str) =
                "Incorrect parameter count in the call to native function '{function}'";
        };
        WrongParametersToNativeFct = 1583, "42000";
        NativeFctNameCollision = 1585, "HY000" {
            native_function_name(name: &str) =
                "This function '{name}' has the same name as a native function";
        };
        EventCannotCreateInThePast = 1588, "HY000" {
            event_not_created() =
                "Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was dropped immediately after creation";
        };
        EventCannotAlterInThePast = 1589, "HY000" {
            event_not_altered() =
                "Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was not changed. Specify a time in the future";
        };
        BinlogUnsafeStatement = 1592, "HY000";
        SlaveRelayLogReadFailure = 1594, "HY000";
        BinlogRowLogging = 1598, "HY000";
        NoFormatDescriptionEvent = 1609, "HY000";
        SlaveCorruptEvent = 1610, "HY000";
        XaRbtimeout = 1613, "XA106";
        XaRbdeadlock = 1614, "XA102";
        WarnNoMasterInfo = 1617, "HY000";
        WarnOptionIgnored = 1618, "HY000";
        PluginDeleteBuiltin = 1619, "HY000";
        VariableIsReadonly = 1621, "HY000";
        SlaveHeartbeatValueOutOfRange = 1624, "HY000";
        TooLongTableComment = 1628, "HY000";
        TooLongFieldComment = 1629, "HY000";
        FuncInexistentNameCollision = 1630, "42000";
        NonAsciiSeparator = 1638, "HY000";
        DupSignalSet = 1641, "42000" {
            duplicate_condition_item(item: &str) = "Duplicate condition information item '{item}'";
        };
        SignalWarn = 1642, "01000" { unhandled_warning() = "Unhandled user-defined warning condition"; };
        SignalNotFound = 1643, "02000" {
            unhandled_not_found() = "Unhandled user-defined not found condition";
        };
        SignalException = 1644, "HY000" {
            unhandled_exception() = "Unhandled user-defined exception condition";
        };
        ResignalWithoutActiveHandler = 1645, "0K000" {
            resignal_without_handler() = "RESIGNAL when handler not active";
        };
        SignalBadConditionType = 1646, "HY000" {
            signal_of_number() = "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE";
        };
        CondItemTooLong = 1648, "22001" {
            condition_item_too_long(item: &str) = "Data too long for condition item '{item}'";
        };
        UnknownLocale = 1649, "HY000";
        SlaveConversionFailed = 1677, "HY000" {
            slave_conversion_failed(column: usize, db: &str, table: &str, from: &str, to: &str) =
                "Column {column} of table '{db}.{table}' cannot be converted from type '{from}' to type '{to}'";
        };
        InsideTransactionPreventsSwitchBinlogFormat = 1679, "HY000";
        TooLongIndexComment = 1688, "HY000";
        DataOutOfRange = 1690, "22003" {
            /// "BIGINT value is out of range in '(1 + 2)'".
            result_out_of_range(kind: &str, expression: &str) = "{kind} value is out of range in '{expression}'";
        };
        InsideTransactionPreventsSwitchSqlLogBin = 1694, "HY000";
        AccessDeniedNoPassword = 1698, "28000";
        SetPasswordAuthPlugin = 1699, "HY000";
        TruncateIllegalFk = 1701, "42000";
        SlaveHeartbeatValueOutOfRangeMin = 1703, "HY000";
        SlaveHeartbeatValueOutOfRangeMax = 1704, "HY000";
        MultiUpdateKeyConflict = 1706, "HY000";
        IndexColumnTooLong = 1709, "HY000" {
            key_part_too_long(bytes_max: u32) =
                "Index column size too large. The maximum column size is {bytes_max} bytes";
        };
        IndexCorrupt = 1712, "HY000";
        MasterDelayValueOutOfRange = 1729, "HY000";
        OnlyRowEventsInBinlogStatement = 1730, "HY000";
        PartitionClauseOnNonpartitioned = 1747, "HY000" {
            no_partitions() = "PARTITION () clause on non partitioned table";
        };
        DaInvalidConditionNumber = 1758, "35000";
        ForeignDuplicateKey = 1761, "23000";
        UnknownExplainFormat = 1791, "HY000";
        CantExecuteInReadOnlyTransaction = 1792, "25006" {
            read_only_transaction() = "Cannot execute statement in a READ ONLY transaction";
        };
        InnodbNoFtTempTable = 1796, "HY000";
        InnodbOnlineLogTooBig = 1799, "HY000" {
            online_log_too_big(index: &str) =
                "Creating index '{index}' required more than 'innodb_online_alter_log_max_size' bytes of modification \
                 log. Please try again";
        };
        Internal = 1815, "HY000";
        NotValidPassword = 1819, "HY000";
        MustChangePassword = 1820, "HY000";
        FkNoIndexParent = 1822, "HY000";
        FkIncorrectOption = 1825, "HY000";
        DupConstraintName = 1826, "HY000" {
            duplicate_check(name: &str) = "Duplicate CHECK constraint name '{name}'";
            duplicate_foreign_key(schema: &str, name: &str) =
                "Duplicate FOREIGN KEY constraint name '{schema}/{name}'";
        };
        FkColumnCannotDrop = 1828, "HY000" {
            column_needed_by_own_key(column: &str, schema: &str, key: &str) =
                "Cannot drop column '{column}': needed in a foreign key constraint '{schema}/{key}'";
        };
        FkColumnCannotDropChild = 1829, "HY000";
        FkColumnNotNull = 1830, "HY000";
        WarnDuplicateIndex = 1831, "HY000";
        FkColumnCannotChange = 1832, "HY000";
        FkColumnCannotChangeChild = 1833, "HY000";
        FkCannotDeleteParent = 1834, "HY000";
        MalformedPacket = 1835, "HY000";
        ReadOnlyMode = 1836, "HY000";
        AlterOperationNotSupported = 1845, "0A000" {
            /// `what`: `ALGORITHM=INSTANT`, `LOCK=NONE`.
            alter_not_supported(what: &str, instead: &str) =
                "{what} is not supported for this operation. Try {instead}";
        };
        AlterOperationNotSupportedReason = 1846, "0A000" {
            alter_not_supported_because(what: &str, reason: &str, instead: &str) =
                "{what} is not supported. Reason: {reason}. Try {instead}";
        };
        MustChangePasswordLogin = 1862, "HY000";
        GeneratedColumnFunctionIsNotAllowed = 1901, "HY000" {
            not_allowed_in_clause(what: &str, clause: &str, column: &str) =
                "Function or expression '{what}' cannot be used in the {clause} clause of `{column}`";
        };
        PrimaryKeyBasedOnGeneratedColumn = 1903, "HY000" {
            primary_key_generated() = "Primary key cannot be defined upon a generated column";
        };
        WrongFkOptionForGeneratedColumn = 1905, "HY000";
        WarningNonDefaultValueForGeneratedColumn = 1906, "HY000" {
            generated_value_ignored(column: &str, table: &str) =
                "The value specified for generated column '{column}' in table '{table}' has been ignored";
        };
        UnsupportedActionOnGeneratedColumn = 1907, "HY000" {
            unsupported_on_generated() = "This is not yet supported for generated columns";
        };
        UnknownOption = 1911, "HY000" { unknown_option(option: &str) = "Unknown option '{option}'"; };
        BadOptionValue = 1912, "HY000" {
            bad_option_value(value: &str, option: &str) = "Incorrect value '{value}' for option '{option}'";
        };
        DataOverflow = 1916, "HY000";
        BadData = 1918, "22007";
        DynColWrongFormat = 1919, "HY000";
        DynColImplementationLimit = 1920, "HY000";
        DynColData = 1921, "22007";
        DynColWrongCharset = 1922, "HY000";
        ConnectionKilled = 1927, "70100" { connection_killed() = "Connection was killed"; };
        InsideTransactionPreventsSwitchSkipReplication = 1929, "HY000";
        QueryResultIncomplete = 1931, "HY000";
        TargetNotExplainable = 1933, "HY000";
        ConnectionAlreadyExists = 1934, "HY000";
        SlaveStarted = 1937, "HY000";
        SlaveStopped = 1938, "HY000";
        IncorrectGtidState = 1941, "HY000";
        DuplicateGtidDomain = 1943, "HY000";
        MasterGtidPosConflictsWithBinlog = 1947, "HY000";
        MasterGtidPosMissingDomain = 1948, "HY000";
        UntilRequiresUsingGtid = 1949, "HY000";
        GtidStrictOutOfOrder = 1950, "HY000";
        InsideTransactionPreventsSwitchGtidDomainIdSeqNo = 1953, "HY000";
        BinlogMustBeEmpty = 1956, "HY000" {
            binlog_must_be_empty() =
                "This operation is not allowed if any GTID has been logged to the binary log. Run RESET MASTER first to \
                 erase the log";
        };
        NoSuchQuery = 1957, "HY000" { unknown_query(id: &str) = "Unknown query id: {id}"; };
        Base64 = 1958, "HY000";
        InvalidRole = 1959, "OP000" {
            invalid_role(role: &str) = "Invalid role specification `{role}`";
            role_not_granted(user: &str, host: &str, role: &str) =
                "User `{user}`@`{host}` has not been granted role `{role}`";
        };
        CannotGrantRole = 1961, "HY000";
        CannotRevokeRole = 1962, "HY000";
        ItIsAView = 1965, "42S02";
        SlaveSkipNotInGtid = 1966, "HY000";
        PluginInstalled = 1968, "HY000";
        StatementTimeout = 1969, "70100" {
            statement_timeout() = "Query execution was interrupted (max_statement_time exceeded)";
        };
        SubqueriesNotSupported = 1970, "42000" {
            no_subqueries_in(clause: &str) = "{clause} does not support subqueries or stored functions";
        };
        SetStatementNotSupported = 1971, "42000";
        UserCreateExists = 1973, "HY000";
        UserDropExists = 1974, "HY000";
        RoleCreateExists = 1975, "HY000";
        RoleDropExists = 1976, "HY000";
        CannotConvertCharacter = 1977, "HY000";
        WarnIncorrectDefault = 1978, "22007";
        StdInvalidArgument = 3047, "HY000";
        WithColListWrongNumber = 4002, "HY000";
        DupQueryName = 4004, "HY000";
        RecursiveWithoutAnchors = 4005, "HY000";
        NotStandardCompliantRecursive = 4008, "HY000";
        WrongWindowSpecName = 4009, "HY000";
        DupWindowName = 4010, "HY000";
        PartitionListInReferencingWindowSpec = 4011, "HY000";
        OrderListInReferencingWindowSpec = 4012, "HY000";
        WindowFrameInReferencedWindowSpec = 4013, "HY000";
        BadCombinationOfWindowFrameBoundSpecs = 4014, "HY000";
        WrongPlacementOfWindowFunction = 4015, "HY000";
        WindowFunctionInWindowSpec = 4016, "HY000";
        NotAllowedWindowFrame = 4017, "HY000";
        NoOrderListInWindowSpec = 4018, "HY000";
        RangeFrameNeedsSimpleOrderby = 4019, "HY000";
        WrongTypeForRowsFrame = 4020, "HY000";
        WrongTypeForRangeFrame = 4021, "HY000";
        FrameExclusionNotSupported = 4022, "HY000";
        InvalidNtileArgument = 4024, "HY000";
        ConstraintFailed = 4025, "23000" {
            constraint_failed(constraint: &str, db: &str, table: &str) =
                "CONSTRAINT `{constraint}` failed for `{db}`.`{table}`";
        };
        ExpressionRefersToUninitField = 4029, "01000" {
            refers_to_later_column(column: &str, other: &str) =
                "Expression for field `{column}` is referring to uninitialized field `{other}`";
        };
        ReferencedTrgDoesNotExist = 4031, "HY000" {
            unknown_trigger_of_order(name: &str) =
                "Referenced trigger '{name}' for the given action time and event type does not exist";
        };
        InvalidDefaultParam = 4032, "HY000" {
            invalid_default_param() = "Default/ignore value is not supported for such parameter usage";
        };
        JsonBadChar = 4035, "HY000";
        JsonNotJsonChr = 4036, "HY000";
        JsonEos = 4037, "HY000";
        JsonSyntax = 4038, "HY000";
        JsonDepth = 4040, "HY000";
        JsonPathEos = 4041, "HY000";
        JsonPathSyntax = 4042, "HY000";
        JsonPathNoWildcard = 4044, "HY000";
        JsonOneOrAll = 4046, "HY000";
        UnsupportedCompressedTable = 4047, "HY000" {
            compressed_table_refused() =
                "InnoDB refuses to write tables with ROW_FORMAT=COMPRESSED or KEY_BLOCK_SIZE.";
        };
        JsonPathNotAllowed = 4051, "HY000";
        SlaveSameId = 4052, "HY000";
        SumFuncWithWindowFuncAsArg = 4074, "HY000" {
            window_in_aggregate() = "Window functions can not be used as arguments to group functions.";
        };
        IllegalParameterDataTypes2ForOperation = 4078, "HY000" {
            illegal_assignment(from: &str, to: &str, db: &str, table: &str, column: &str) =
                "Cannot cast '{from}' as '{to}' in assignment of `{db}`.`{table}`.`{column}`";
            illegal_types(first: &str, second: &str, operation: &str) =
                "Illegal parameter data types {first} and {second} for operation '{operation}'";
        };
        IllegalParameterDataTypeForOperation = 4079, "HY000" {
            illegal_type(ty: &str, operation: &str) =
                "Illegal parameter data type {ty} for operation '{operation}'";
        };
        WrongParamcountToCursor = 4080, "42000" {
            wrong_cursor_arguments(name: &str) = "Incorrect parameter count to cursor '{name}'";
        };
        RowVariableDoesNotHaveField = 4082, "HY000" {
            no_such_field(variable: &str, field: &str) =
                "Row variable '{variable}' does not have a field '{field}'";
        };
        SequenceRunOut = 4084, "HY000" {
            sequence_run_out(schema: &str, name: &str) = "Sequence '{schema}.{name}' has run out";
        };
        SequenceInvalidData = 4085, "HY000" {
            sequence_invalid_data(schema: &str, name: &str) =
                "Sequence '{schema}.{name}' has out of range value for options";
        };
        SequenceInvalidTableStructure = 4086, "HY000" {
            sequence_invalid_structure(schema: &str, name: &str) =
                "Sequence '{schema}.{name}' table structure is invalid (Wrong number of columns)";
        };
        NotSequence = 4089, "42S02" {
            not_a_sequence(schema: &str, name: &str) = "'{schema}.{name}' is not a SEQUENCE";
        };
        NotSequence2 = 4090, "42S02" {
            cannot_drop_sequence(schema: &str, name: &str) = "'{schema}.{name}' is not a SEQUENCE";
        };
        UnknownSequences = 4091, "42S02" { unknown_sequence(name: &str) = "Unknown SEQUENCE: '{name}'"; };
        UnknownView = 4092, "42S02";
        WrongNumberOfValuesInTvc = 4099, "HY000";
        WrongTypeForPercentileFunc = 4101, "HY000" {
            percentile_of_no_number(function: &str) = "Numeric datatype is required for {function} function";
        };
        ArgumentNotConstant = 4102, "HY000" {
            percentile_varies(function: &str) =
                "Argument to the {function} function is not a constant for a partition";
        };
        ArgumentOutOfRange = 4103, "HY000";
        WrongTypeOfArgument = 4104, "HY000" {
            percentile_no_number(function: &str) =
                "{function} function only accepts arguments that can be converted to numerical types";
        };
        NotAggregateFunction = 4105, "HY000" {
            not_an_aggregate_function() =
                "Aggregate specific instruction (FETCH GROUP NEXT ROW) used in a wrong context";
        };
        InvalidAggregateFunction = 4106, "HY000" {
            no_fetch_group() =
                "Aggregate specific instruction(FETCH GROUP NEXT ROW) missing from the aggregate function";
        };
        InvisibleNotNullWithoutDefault = 4108, "HY000" {
            invisible_without_default(column: &str) = "Invisible column `{column}` must have a default value";
        };
        UpdatedColumnOnlyOnce = 4140, "HY000" {
            updated_twice(table: &str, column: &str) =
                "The column `{table}`.`{column}` cannot be changed more than once in a single UPDATE statement";
        };
        EmptyRowInTvc = 4141, "HY000" {
            empty_row_of_values() =
                "Row with no elements is not allowed in table value constructor in this context";
        };
        KeyDoesntSupport = 4143, "HY000" {
            key_does_not_support(kind: &str, key: &str) = "{kind} index `{key}` does not support this operation";
        };
        BackupLockIsActive = 4145, "HY000" {
            backup_active() = "Can't execute the command as you have a BACKUP STAGE active";
        };
        BackupNotRunning = 4146, "HY000" {
            backup_not_running() = "You must start backup with \"BACKUP STAGE START\"";
        };
        BackupWrongStage = 4147, "HY000" {
            backup_wrong_stage(wanted: &str, now: &str) =
                "Backup stage '{wanted}' is same or before current backup stage '{now}'";
        };
        BackupUnknownStage = 4149, "HY000" {
            backup_unknown_stage(name: &str) =
                "Unknown backup stage: '{name}'. Stage should be one of START, FLUSH, BLOCK_DDL, BLOCK_COMMIT or END";
        };
        UserIsBlocked = 4150, "HY000";
        AccountHasBeenLocked = 4151, "HY000";
        TooLongKeypart = 4159, "42000" {
            key_prefix_too_long(bytes_max: u32) =
                "Specified key part was too long; max key part length is {bytes_max} bytes";
        };
        UnknownDataType = 4161, "HY000";
        LoadInfileCapabilityDisabled = 4166, "HY000";
        NoAutoincrementWithUnique = 4169, "HY000" {
            auto_increment_in_hash(column: &str, key: &str) =
                "AUTO_INCREMENT column `{column}` cannot be used in the UNIQUE index `{key}`";
        };
        NotAllowedInThisContext = 4172, "HY000" {
            not_allowed_here(what: &str) = "'{what}' is not allowed in this context";
        };
        PrimaryKeyIgnored = 4174, "HY000" {
            primary_key_ignored() = "A primary key cannot be marked as IGNORE";
        };
        JsonTableErrorOnField = 4176, "HY000";
        JsonTableAliasRequired = 4177, "HY000";
        JsonTableScalarExpected = 4178, "HY000";
        JsonTableMultipleMatches = 4179, "HY000";
        WithTiesNeedsOrder = 4180, "HY000" {
            ties_without_order() = "FETCH ... WITH TIES requires ORDER BY clause to be present";
        };
        SformatError = 4183, "HY000";
        WarnChangeMasterImplicit = 4190, "HY000";
        ChangeMasterMissingRequirement = 4191, "HY000";
    } };
}
pub(crate) use error_table;
