//! Errors up to number 1299.

/// Passes all rows to the macro `then`: its own ones and those of `from_1300`.
macro_rules! to_1299 {
    ($then:ident) => { $crate::error_table::from_1300! { $then
        OfPlugin = 1, "HY000" {
            plugin_warning(text: &str) = "{text}";
        };
        CantGetStat = 13, "HY000";
        ForeignDuplicateName = 121, "HY000";
        WrongCreateOptions = 140, "HY000";
        CannotAddForeign = 150, "HY000";
        ForeignTooDeep = 152, "HY000" {
            foreign_keys_too_deep(links_max: usize) =
                "InnoDB: Cannot delete/update rows with cascading foreign key constraints that exceed max \
                 depth of {links_max}. Please drop extra constraints and try again";
        };
        AutoincRange = 167, "22003" {
            generated_out_of_range(column: &str, row: u64) =
                "Out of range value for column '{column}' at row {row}";
        };
        Yes = 1003, "HY000" {
            note_of(text: impl Display) = "{text}";
        };
        CantCreateFile = 1004, "HY000" {
            too_many_cursor_files(max: usize) = "Can't create a temporary file: {max} open cursors have one";
            cannot_write_file(directory: impl Display, why: impl Display) =
                "Can't create/write to file in '{directory}' ({why})";
        };
        CantCreateTable = 1005, "HY000" {
            wrong_create_options(schema: &str, name: &str) =
                "Can't create table `{schema}`.`{name}` (errno: 140 \"Wrong create options\")";
            foreign_key_name_exists(schema: &str, name: &str) =
                "Can't create table `{schema}`.`{name}` (errno: 121 \"Duplicate key on write or update\")";
            foreign_key_of_temporary(schema: &str, name: &str) =
                "Can't create table `{schema}`.`{name}` (errno: 150 \"Foreign key constraint is incorrectly formed\")";
            cannot_create_table(schema: &str, name: &str, errno: impl Display) =
                "Can't create table `{schema}`.`{name}` (errno: {errno})";
        };
        DbCreateExists = 1007, "HY000" {
            database_exists(db: &str) = "Can't create database '{db}'; database exists";
        };
        DbDropExists = 1008, "HY000" {
            database_missing(db: &str) = "Can't drop database '{db}'; database doesn't exist";
        };
        CheckRead = 1020, "HY000" {
            record_changed(table: &str) =
                "Record has changed since last read in table '{table}'; try restarting transaction";
        };
        DiskFull = 1021, "HY000" {
            disk_full(path: impl Display, errno: i32) =
                "Disk full ({path}); waiting for someone to free some space... (errno: {errno} \"No space left on device\")";
            no_disk_space(what: impl Display) = "Disk full ({what}); waiting for someone to free some space";
        };
        DupKey = 1022, "23000";
        ErrorOnRead = 1024, "HY000";
        ErrorOnRename = 1025, "HY000" {
            foreign_key_prevents_rename(schema: &str, table: &str, to_schema: &str, to_table: &str) =
                "Error on rename of './{schema}/{table}' to './{to_schema}/{to_table}' (errno: 150 \
                 \"Foreign key constraint is incorrectly formed\")";
            foreign_key_prevents_copy_rename(schema: &str, process: u32, session: u64, table: &str) =
                "Error on rename of './{schema}/#sql-alter-{process:x}-{session:x}' to './{schema}/{table}' \
                 (errno: 150 \"Foreign key constraint is incorrectly formed\")";
        };
        ErrorOnWrite = 1026, "HY000";
        FilesortAbort = 1028, "HY000" {
            sort_aborted_by_examined_rows() = "Sort aborted: LIMIT ROWS EXAMINED";
        };
        GetErrno = 1030, "HY000" {
            storage_error(number: i32, what: &str, engine: &str) =
                "Got error {number} \"{what}\" from storage engine {engine}";
            temporary_file_damaged() = "A temporary file does not hold what was written";
        };
        IllegalHa = 1031, "HY000" {
            not_for_sequences(schema: &str, name: &str) =
                "Storage engine SEQUENCE of the table `{schema}`.`{name}` doesn't have this option";
            no_handler(engine: &str, schema: &str, name: &str) =
                "Storage engine {engine} of the table `{schema}`.`{name}` doesn't have this option";
        };
        KeyNotFound = 1032, "HY000" {
            record_not_found(table: &str) = "Can't find record in '{table}'";
        };
        OutOfMemory = 1037, "HY001";
        ConCount = 1040, "08004" { too_many_connections() = "Too many connections"; };
        OutOfResources = 1041, "HY000" {
            out_of_memory() = "Out of memory.";
        };
        Handshake = 1043, "08S01" {
            bad_handshake() = "Bad handshake";
            tls_handshake_failed(why: impl Display) = "SSL connection error: {why}";
        };
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
            /// `value`: as the text has it.
            duplicate_key_text(value: &str, key: &str) = "Duplicate entry '{value}' for key '{key}'";
        };
        WrongFieldSpec = 1063, "42000" {
            wrong_column_spec(column: &str) = "Incorrect column specifier for column '{column}'";
        };
        Parse = 1064, "42000" {
            /// `near`: the text from the offending token on.
            parse_error(near: &str, line: usize) =
                "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version for \
                 the right syntax to use near '{}' at line {line}", clip(near, 80);
            unexpected_in_search(what: &str) = "syntax error, unexpected {what}";
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
        BinlogCantDeleteGtidDomain = 1076, "HY000" {
            cannot_delete_gtid_domain(why: &str) = "Could not delete gtid domain. Reason: {why}.";
            gtid_domain_too_large(number: impl Display) =
                "The value of gtid domain being deleted ('{number}') exceeds its maximum size of 32 bit \
                 unsigned integer";
            /// A warning with its final text.
            gtid_domain_kept(text: &str) = "{text}";
        };
        WrongFieldTerminators = 1083, "42000" {
            wrong_field_separator() = "Field separator argument is not what is expected; check the manual";
        };
        TextfileNotReadable = 1085, "HY000" {
            file_not_readable(path: impl Display) =
                "The file '{path}' must be in the database directory or be readable by all";
        };
        FileExists = 1086, "HY000" {
            file_exists(path: impl Display) = "File '{path}' already exists";
        };
        WrongSubKey = 1089, "HY000" {
            wrong_key_prefix() =
                "Incorrect prefix key; the used key part isn't a string, the used length is longer than the \
                 key part, or the storage engine doesn't support unique prefix keys";
        };
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
        NoSuchThread = 1094, "HY000" { unknown_thread(id: impl Display) = "Unknown thread id: {id}"; };
        KillDenied = 1095, "HY000" { not_owner_of_thread(id: u64) = "You are not owner of thread {id}"; };
        NoTablesUsed = 1096, "HY000" {
            no_tables_used() = "No tables used";
        };
        TooBigSet = 1097, "HY000";
        CantGenerateLogName = 1098, "HY000" {
            no_free_log_name(base: &str) = "Can't generate a unique log-filename {base}.(1-999)\n";
        };
        TableNotLockedForWrite = 1099, "HY000" {
            table_locked_for_read(alias: &str) =
                "Table '{alias}' was locked with a READ lock and can't be updated";
        };
        TableNotLocked = 1100, "HY000" {
            table_not_locked(alias: &str) = "Table '{alias}' was not locked with LOCK TABLES";
        };
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
            charset_not_compiled(id: impl Display) = "Character set '#{id}' is not a compiled character set";
        };
        TooManyTables = 1116, "HY000" {
            too_many_tables(max: usize) = "Too many tables; MariaDB can only use {max} tables in a join";
        };
        TooManyFields = 1117, "HY000" { too_many_columns() = "Too many columns"; };
        TooBigRowsize = 1118, "42000" {
            row_too_big(bytes_max: u32) =
                "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {bytes_max}. This \
                 includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
        };
        CantOpenLibrary = 1126, "HY000" {
            cannot_open_library(directory: &str, library: &str) =
                "Can't open shared library '{directory}{library}.so' (errno: 2, cannot open shared object \
                 file: No such file or directory)";
        };
        FunctionNotDefined = 1128, "HY000" {
            function_not_defined(name: &str) = "Function '{name}' is not defined";
        };
        PasswordNoMatch = 1133, "28000" {
            no_matching_user() = "Can't find any matching row in the user table";
        };
        CantCreateThread = 1135, "HY000" {
            cannot_create_thread(why: impl Display) = "Can't create a new thread ({why})";
        };
        WrongValueCountOnRow = 1136, "21S01" {
            value_count(row: u64) = "Column count doesn't match value count at row {row}";
        };
        InvalidUseOfNull = 1138, "22004";
        Regexp = 1139, "42000" {
            regex_error(why: impl Display) = "Regex error '{why}'";
        };
        MixOfGroupFuncAndFields = 1140, "42000" {
            mix_of_group_columns() =
                "Mixing of GROUP columns (MIN(),MAX(),COUNT(),...) with no GROUP columns is illegal if there is no GROUP BY \
                 clause";
        };
        NonexistingGrant = 1141, "42000" {
            nonexisting_grant(user: &str, host: &str) =
                "There is no such grant defined for user '{user}' on host '{host}'";
        };
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
        SyntaxError = 1149, "42000" {
            syntax_error() =
                "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB \
                 server version for the right syntax to use";
        };
        NetPacketTooLarge = 1153, "08S01" {
            packet_too_large() = "Got a packet bigger than 'max_allowed_packet' bytes";
            slave_packet_too_large() = "Got a packet bigger than 'slave_max_allowed_packet' bytes";
        };
        NetPacketsOutOfOrder = 1156, "08S01" {
            packets_out_of_order() = "Got packets out of order";
        };
        NetUncompress = 1157, "08S01" {
            cannot_uncompress_packet() = "Couldn't uncompress communication packet";
        };
        NetReadError = 1158, "08S01" {
            network_read_failed() = "Got an error reading communication packets";
        };
        NetReadInterrupted = 1159, "08S01";
        WrongColumnName = 1166, "42000" { wrong_column_name(name: &str) = "Incorrect column name '{name}'"; };
        WrongKeyColumn = 1167, "HY000";
        BlobKeyWithoutLength = 1170, "42000" {
            blob_key_without_length(column: &str) =
                "BLOB/TEXT column '{column}' used in key specification without a key length";
        };
        TooManyRows = 1172, "42000" {
            more_than_one_row() = "Result consisted of more than one row";
        };
        RequiresPrimaryKey = 1173, "42000" {
            requires_primary_key() = "This table type requires a primary key";
        };
        UpdateWithoutKeyInSafeMode = 1175, "HY000" {
            update_without_key() =
                "You are using safe update mode and you tried to update a table without a WHERE that uses a \
                 KEY column";
        };
        KeyDoesNotExists = 1176, "42000" {
            unknown_key(key: &str, table: &str) = "Key '{key}' doesn't exist in table '{table}'";
        };
        CantDoThisDuringAnTransaction = 1179, "25000" {
            not_in_transaction() = "You are not allowed to execute this command in a transaction";
        };
        NewAbortingConnection = 1184, "08S01" {
            init_connect_failed(id: impl Display, db: &str, user: &str, host: &str) =
                "Aborted connection {id} to db: '{db}' user: '{user}' host: '{host}' (init_connect command \
                 failed)";
        };
        BinlogClosed = 1186, "HY000" {
            binlog_closed() = "Binlog closed, cannot RESET MASTER";
        };
        FtMatchingKeyNotFound = 1191, "HY000" {
            no_full_text_index() = "Can't find FULLTEXT index matching the column list";
        };
        LockOrActiveTransaction = 1192, "HY000" {
            locked_or_in_transaction() =
                "Can't execute the given command because you have active locked tables or an active \
                 transaction";
        };
        UnknownSystemVariable = 1193, "HY000" {
            unknown_variable(name: &str) = "Unknown system variable '{name}'";
        };
        TransactionTooLarge = 1197, "HY000" {
            transaction_too_large() =
                "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this \
                 mariadbd variable and try again";
            transaction_exceeds(bytes_max: impl Display) =
                "The transaction's changes exceed {bytes_max} bytes; use smaller transactions";
            binlog_cache_exceeded() =
                "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; \
                 increase this mysqld variable and try again";
        };
        SlaveMustStop = 1198, "HY000" {
            slave_must_stop(connection: &str) =
                "This operation cannot be performed as you have a running slave '{connection}'; run STOP \
                 SLAVE '{connection}' first";
        };
        SlaveNotRunning = 1199, "HY000";
        BadSlave = 1200, "HY000" {
            not_a_slave() =
                "The server is not configured as slave; fix in config file or with CHANGE MASTER TO";
            master_host_not_set() =
                "Misconfigured slave: MASTER_HOST was not set; Fix in config file or with CHANGE MASTER TO";
        };
        MasterInfo = 1201, "HY000" {
            relay_logs_collide(one: &str, other: &str) =
                "The connections '{one}' and '{other}' have relay logs of the same name";
            master_info_not_initialized(connection: &str) =
                "Could not initialize master info structure for '{connection}'; more error messages can be \
                 found in the MariaDB error log";
            /// A reason to refuse settings of a connection.
            master_info_refused(why: &str) = "{why}";
        };
        TooManyUserConnections = 1203, "42000" {
            user_has_too_many_connections(user: &str) =
                "User {user} already has more than 'max_user_connections' active connections";
        };
        SetConstantsOnly = 1204, "HY000" {
            constants_only() = "You may only use constant expressions in this statement";
        };
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
        NoBinlogCoordinate = 1220, "HY000" {
            binlog_unreadable(why: impl Display) = "I/O error reading the binary log: {why}";
            show_binlog_events_failed(why: impl Display) =
                "Error when executing command SHOW BINLOG EVENTS: {why}";
        };
        WrongUsage = 1221, "HY000" { wrong_usage(a: &str, b: &str) = "Incorrect usage of {a} and {b}"; };
        WrongNumberOfColumnsInSelect = 1222, "21000" {
            select_column_counts_differ() = "The used SELECT statements have a different number of columns";
        };
        CantUpdateWithReadlock = 1223, "HY000" {
            conflicting_read_lock() = "Can't execute the query because you have a conflicting read lock";
        };
        UserLimitReached = 1226, "42000" {
            resource_exceeded(user: &str, resource: &str, count: impl Display) =
                "User '{user}' has exceeded the '{resource}' resource (current value: {count})";
        };
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
            setting_has_no_effect(name: &str, why: &str) = "'{name}' has no effect: {why}";
            change_master_not_supported(option: &str) =
                "This version of Cohort doesn't yet support 'CHANGE MASTER TO {option}'";
        };
        MasterFatalErrorReadingBinlog = 1236, "HY000" {
            binlog_not_open() = "Binary log is not open";
            /// `why`: with the coordinates of the dump.
            dump_failed(why: impl Display) = "{why}";
        };
        IncorrectGlobalLocalVar = 1238, "HY000" {
            /// `kind`: `read only`, `SESSION`, `GLOBAL`.
            variable_is(name: &str, kind: &str) = "Variable '{name}' is a {kind} variable";
        };
        WrongFkDef = 1239, "42000" {
            foreign_key_columns_differ(name: &str) =
                "Incorrect foreign key definition for '{name}': Key reference and table reference don't \
                 match";
        };
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
        TablenameNotAllowedHere = 1250, "42000" {
            table_in_order_of_union(table: &str) =
                "Table '{table}' from one of the SELECTs cannot be used in ORDER BY";
        };
        CollationCharsetMismatch = 1253, "42000" {
            collation_mismatch(collation: &str, charset: &str) =
                "COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'";
        };
        SlaveWasRunning = 1254, "HY000" {
            slave_running() = "Slave is already running";
        };
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
        CantAggregate2Collations = 1267, "HY000" {
            mix_of_two_collations(first: &str, second: &str, operation: &str) =
                "Illegal mix of collations {first} and {second} for operation '{operation}'";
        };
        RevokeGrants = 1269, "HY000" {
            cannot_revoke_all() = "Can't revoke all privileges for one or more of the requested users";
        };
        CantAggregate3Collations = 1270, "HY000" {
            mix_of_three_collations(collations: &str, operation: &str) =
                "Illegal mix of collations {collations} for operation '{operation}'";
        };
        CantAggregateNCollations = 1271, "HY000" {
            mix_of_collations(operation: &str) = "Illegal mix of collations for operation '{operation}'";
        };
        UnknownCollation = 1273, "HY000" { unknown_collation(name: &str) = "Unknown collation: '{name}'"; };
        BadSlaveUntilCond = 1277, "HY000" {
            bad_until_condition() = "Incorrect parameter or combination of parameters for START SLAVE UNTIL";
        };
        UntilCondIgnored = 1279, "HY000";
        WrongNameForIndex = 1280, "42000" { wrong_index_name(name: &str) = "Incorrect index name '{name}'"; };
        BadFtColumn = 1283, "HY000" {
            not_in_full_text(column: &str) = "Column '{column}' cannot be part of FULLTEXT index";
        };
        UnknownStorageEngine = 1286, "42000" {
            unknown_engine(name: &str) = "Unknown storage engine '{name}'";
        };
        WarnDeprecatedSyntax = 1287, "HY000" {
            into_before_from_deprecated() =
                "'<select expression> INTO <destination>;' is deprecated and will be removed in a future \
                 release. Please use 'SELECT <select list> INTO <destination> FROM...' instead";
        };
        NonUpdatableTable = 1288, "HY000" {
            target_not_updatable(table: &str, statement: &str) =
                "The target table {table} of the {statement} is not updatable";
        };
        FeatureDisabled = 1289, "HY000" {
            routine_code_disabled() =
                "The 'SHOW PROCEDURE|FUNCTION CODE' feature is disabled; you need MariaDB built with \
                 '--with-debug' to have it working";
        };
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
            /// A date that a row cannot get.
            incorrect_date(kind: &str, value: &str, db: &str, table: &str, column: &str, row: u64) =
                "Incorrect {kind} value: '{value}' for column `{db}`.`{table}`.`{column}` at row {row}";
            /// A value of a variable or expression, with its final text.
            truncated_wrong_value(text: &str) = "{text}";
            /// `value`: as the text has it.
            truncated_text(kind: &str, value: &str) = "Truncated incorrect {kind} value: '{value}'";
        };
        InvalidOnUpdate = 1294, "HY000" {
            invalid_on_update(column: &str) = "Invalid ON UPDATE clause for '{column}' column";
        };
        UnsupportedPs = 1295, "HY000" {
            not_in_prepared_protocol() = "This command is not supported in the prepared statement protocol yet";
        };
        GetErrmsg = 1296, "HY000" {
            innodb_constraint_error(constraint: &str) = "Got error 193 '{constraint}' from InnoDB";
        };
        UnknownTimeZone = 1298, "HY000" {
            unknown_time_zone(name: impl Display) = "Unknown or incorrect time zone: '{name}'";
        };
    } };
}
pub(crate) use to_1299;
