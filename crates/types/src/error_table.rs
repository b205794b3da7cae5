//! MariaDB's errors by number: name (without ER_), number, SQLSTATE, and the constructors of [`SqlError`]
//! with their texts.
//!
//! [`SqlError`]: crate::SqlError

macro_rules! error_table {
    ($then:ident) => { $then! {
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
            backup_directory_not_empty(directory: impl Display) =
                "Can't create a backup in '{directory}': the directory is not empty";
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
        UnknownError = 1105, "HY000" {
            backup_failed(why: impl Display) = "The backup failed: {why}";
            clone_failed(why: impl Display) = "The clone failed: {why}";
            accounts_replaced(table: &str) =
                "The table 'mysql'.'{table}' was replaced, and its accounts are not in effect: execute FLUSH PRIVILEGES first";
            computed_database(name: &str, statement: &str) =
                "The database '{name}' is computed from the server's data: {statement} has no effect";
            virtual_not_altered(table: &str, statement: &str) =
                "The table 'mysql'.'{table}' is computed from the server's data: {statement} has no effect";
        };
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
            backup_in_datadir(directory: impl Display) =
                "Incorrect arguments to BACKUP SERVER: '{directory}' and the data directory contain one another";
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
            load_not_archived(engine: &str) =
                "With archive_to, a table of the {engine} engine that has rows cannot be built again or get an index: the log does not have its bulk loads";
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
        WarnInvalidTimestamp = 1299, "HY000" {
            invalid_timestamp(column: &str, row: u64) = "Invalid TIMESTAMP value in column '{column}' at row {row}";
        };
        InvalidCharacterString = 1300, "HY000" {
            invalid_character_string(charset: &str, bytes: &[u8]) =
                "Invalid {charset} character string: '{}'", printable_clipped(bytes, 64);
            invalid_statement_text(charset: &str, at: usize) =
                "Invalid {charset} character string in a statement, at byte {at}";
            /// `shown`: the bytes as the text has them.
            invalid_characters(charset: &str, shown: &str) = "Invalid {charset} character string: '{shown}'";
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
        ViewNoExplain = 1345, "HY000" {
            view_not_explainable() =
                "ANALYZE/EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
        };
        WrongObject = 1347, "HY000" {
            /// A view in place of a table.
            not_a_base_table(db: &str, name: &str) = "'{db}.{name}' is not of type 'BASE TABLE'";
            not_a_view(schema: &str, name: &str) = "'{schema}.{name}' is not of type 'VIEW'";
        };
        NonUpdatableColumn = 1348, "HY000" {
            column_not_updatable(column: &str) = "Column '{column}' is not updatable";
        };
        ViewSelectClause = 1350, "HY000" {
            view_with_into() = "View's SELECT contains a 'INTO' clause";
        };
        ViewSelectVariable = 1351, "HY000" {
            view_with_variable() = "View's SELECT contains a variable or parameter";
        };
        ViewSelectTmptable = 1352, "HY000" {
            view_of_temporary(name: &str) = "View's SELECT refers to a temporary table '{name}'";
        };
        ViewWrongList = 1353, "HY000" {
            view_column_count() = "View's SELECT and view's field list have different column counts";
        };
        WarnViewMerge = 1354, "HY000" {
            view_not_merged() =
                "View merge algorithm can't be used here for now (assumed undefined algorithm)";
        };
        ViewInvalid = 1356, "HY000" {
            view_invalid(schema: &str, view: &str) =
                "View '{schema}.{view}' references invalid table(s) or column(s) or function(s) or \
                 definer/invoker of view lack rights to use them";
        };
        SpNoDropSp = 1357, "HY000" {
            drop_within_routine(kind: &str) = "Can't drop or alter a {kind} from within another stored routine";
        };
        TrgAlreadyExists = 1359, "HY000" {
            trigger_exists(schema: &str, name: &str) = "Trigger '{schema}.{name}' already exists";
        };
        TrgDoesNotExist = 1360, "HY000" {
            unknown_trigger() = "Trigger does not exist";
        };
        TrgOnViewOrTempTable = 1361, "HY000" {
            trigger_on_view(name: &str) = "Trigger's '{name}' is a view, temporary table or sequence";
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
        IllegalValueForType = 1367, "22007" {
            illegal_double(text: &str) = "Illegal double '{text}' value found during parsing";
        };
        ViewNonupdCheck = 1368, "HY000" {
            check_option_not_updatable(schema: &str, view: &str) =
                "CHECK OPTION on non-updatable view `{schema}`.`{view}`";
        };
        ViewCheckFailed = 1369, "44000" {
            view_check_failed(schema: &str, view: &str) = "CHECK OPTION failed `{schema}`.`{view}`";
        };
        ProcaccessDenied = 1370, "42000" {
            routine_access_denied(command: &str, user: &str, host: &str, schema: &str, routine: &str) =
                "{command} command denied to user '{user}'@'{host}' for routine '{schema}.{routine}'";
        };
        PasswordLength = 1372, "HY000" {
            password_hash_length() = "Password hash should be a 41-digit hexadecimal number";
            ed25519_hash_length() = "Password hash should be 43 characters long";
        };
        UnknownTargetBinlog = 1373, "HY000" { unknown_binlog() = "Target log not found in binlog index"; };
        LogInUse = 1378, "HY000" {
            log_in_use(reader: impl Display) =
                "A log is in use, will not be reset: {reader} reads it; STOP SLAVE on a replica, wait for a backup";
        };
        NoBinaryLogging = 1381, "HY000" { no_binary_logging() = "You are not using binary logging"; };
        PsManyParam = 1390, "HY000" {
            too_many_parameters() = "Prepared statement contains too many placeholders";
        };
        KeyPart0 = 1391, "HY000" {
            key_part_of_zero(column: &str) = "Key part '{column}' length cannot be 0";
        };
        ViewMultiUpdate = 1393, "HY000" {
            join_view_with_two_targets(schema: &str, view: &str) =
                "Can not modify more than one base table through a join view '{schema}.{view}'";
        };
        ViewNoInsertFieldList = 1394, "HY000" {
            join_view_without_columns(view: &str) =
                "Can not insert into join view '{view}' without fields list";
        };
        ViewDeleteMergeView = 1395, "HY000" {
            join_view_not_deletable(schema: &str, view: &str) =
                "Can not delete from join view '{schema}.{view}'";
        };
        CannotUser = 1396, "HY000" {
            user_operation_failed(operation: &str, user: &str) = "Operation {operation} failed for {user}";
        };
        XaerNota = 1397, "XAE04" {
            unknown_xid() = "XAER_NOTA: Unknown XID";
        };
        XaerInval = 1398, "XAE05" {
            xa_invalid() = "XAER_INVAL: Invalid arguments (or unsupported command)";
        };
        XaerRmfail = 1399, "XAE07" {
            xa_state(state: &str) =
                "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {state} \
                 state";
        };
        XaerOutside = 1400, "XAE09" {
            xa_outside() = "XAER_OUTSIDE: Some work is done outside global transaction";
        };
        XaerRmerr = 1401, "XAE03";
        XaRbrollback = 1402, "XA100";
        NonexistingProcGrant = 1403, "42000" {
            nonexisting_routine_grant(user: &str, host: &str, routine: &str) =
                "There is no such grant defined for user '{user}' on host '{host}' on routine '{routine}'";
        };
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
        TableDefChanged = 1412, "HY000" {
            table_definition_changed() = "Table definition has changed, please retry transaction";
        };
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
                "This function has none of DETERMINISTIC, NO SQL, or READS SQL DATA in its declaration and binary \
                 logging is enabled (you *might* want to use the less safe log_bin_trust_function_creators \
                 variable)";
        };
        BinlogCreateRoutineNeedSuper = 1419, "HY000" {
            routine_needs_super() =
                "You do not have the SUPER privilege and binary logging is enabled (you *might* want to use the \
                 less safe log_bin_trust_function_creators variable)";
        };
        StmtHasNoOpenCursor = 1421, "HY000" {
            no_open_cursor(statement: impl Display) = "The statement ({statement}) has no open cursor";
        };
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
        TrgInWrongSchema = 1435, "HY000" { trigger_in_wrong_schema() = "Trigger in wrong schema"; };
        StackOverrunNeedMore = 1436, "HY000" {
            xpath_too_long(parts_max: usize) = "Thread stack overrun: an XPath has at most {parts_max} parts";
            expression_too_deep(levels_max: u32) =
                "Expressions of more than {levels_max} levels are not supported";
        };
        TooBigDisplaywidth = 1439, "42000" {
            display_width(column: &str, max: u32) = "Display width out of range for '{column}' (max = {max})";
        };
        XaerDupid = 1440, "XAE08" {
            xid_exists() = "XAER_DUPID: The XID already exists";
        };
        DatetimeFunctionOverflow = 1441, "22008" {
            datetime_overflow(function: &str) = "Datetime function: {function} field overflow";
        };
        CantUpdateUsedTableInSfOrTrg = 1442, "HY000" {
            table_used_by_caller(table: &str) =
                "Can't update table '{table}' in stored function/trigger because it is already used by statement which \
                 invoked this stored function/trigger";
        };
        PsNoRecursion = 1444, "HY000" {
            prepared_calls_itself() =
                "The prepared statement contains a stored routine call that refers to that same statement. It's not \
                 allowed to execute a prepared statement in such a recursive manner";
        };
        SpCantSetAutocommit = 1445, "HY000" {
            autocommit_in_function() = "Not allowed to set autocommit from a stored function or trigger";
        };
        MalformedDefiner = 1446, "0L000" {
            invalid_definer() = "Invalid definer";
        };
        NoSuchUser = 1449, "HY000" {
            unknown_definer(user: &str, host: &str) =
                "The user specified as a definer ('{user}'@'{host}') does not exist";
        };
        ForbidSchemaChange = 1450, "HY000" {
            schema_change_forbidden(from: &str, to: &str) =
                "Changing schema from '{from}' to '{to}' is not allowed";
        };
        RowIsReferenced = 1451, "23000" {
            parent_row_referenced() = "Cannot delete or update a parent row: a foreign key constraint fails";
            parent_row_referenced_by(constraint: &str) =
                "Cannot delete or update a parent row: a foreign key constraint fails ({constraint})";
        };
        NoReferencedRow = 1452, "23000" {
            no_parent_row(constraint: &str) =
                "Cannot add or update a child row: a foreign key constraint fails ({constraint})";
        };
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
        ViewRecursive = 1462, "HY000" {
            view_recursive(schema: &str, view: &str) = "`{schema}`.`{view}` contains view recursion";
        };
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
            option_too_long(option: &str, chars_max: usize) =
                "String '...' is too long for {option} (should be no longer than {chars_max})";
        };
        NonInsertableTable = 1471, "HY000" {
            target_not_insertable(table: &str) =
                "The target table {table} of the INSERT is not insertable-into";
        };
        TooHighLevelOfNestingForSelect = 1473, "HY000" {
            selects_nested_too_deep() = "Too high level of nesting for select";
        };
        AmbiguousFieldTerm = 1475, "HY000" {
            ambiguous_field_terminator() =
                "First character of the FIELDS TERMINATED string is ambiguous; please use non-optional and \
                 non-empty FIELDS ENCLOSED BY";
        };
        IllegalHaCreateOption = 1478, "HY000" {
            illegal_create_option(engine: &str, option: &str) =
                "Table storage engine '{engine}' does not support the create option '{option}'";
        };
        PluginIsNotLoaded = 1524, "HY000" {
            plugin_not_loaded(name: &str) = "Plugin '{name}' is not loaded";
        };
        WrongValue = 1525, "HY000" {
            wrong_condition_value(value: &str) = "Incorrect CONDITION value: '{value}'";
            /// Error 1525 of CONVERT and similar functions.
            wrong_value(kind: &str, value: &[u8]) = "Incorrect {kind} value: '{}'", clipped(value);
            /// An impossible date or number of days.
            wrong_literal(kind: &str, value: impl Display) = "Incorrect {kind} value: '{value}'";
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
        DropIndexFk = 1553, "HY000" {
            index_needed_by_foreign_key(index: &str) =
                "Cannot drop index '{index}': needed in a foreign key constraint";
        };
        CantLockLogTable = 1556, "HY000" {
            cannot_lock_log_table() = "You can't use locks with log tables";
        };
        StoredFunctionPreventsSwitchBinlogFormat = 1560, "HY000" {
            binlog_format_in_function() =
                "Cannot change the binary logging format inside a stored function or trigger";
        };
        CantChangeTxCharacteristics = 1568, "25001" {
            transaction_in_progress() =
                "Transaction characteristics can't be changed while a transaction is in progress";
        };
        Base64DecodeError = 1575, "HY000";
        EventRecursionForbidden = 1576, "HY000" {
            event_within_event() = "Recursion of EVENT DDL statements is forbidden when body is present";
        };
        BadLogStatement = 1580, "HY000" {
            log_table_in_use(statement: &str) = "You cannot '{statement}' a log table if logging is enabled";
        };
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
                "Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was dropped \
                 immediately after creation";
        };
        EventCannotAlterInThePast = 1589, "HY000" {
            event_not_altered() =
                "Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was not \
                 changed. Specify a time in the future";
        };
        BinlogUnsafeStatement = 1592, "HY000";
        SlaveRelayLogReadFailure = 1594, "HY000" {
            relay_log_unreadable(text: &str) = "{text}";
        };
        BinlogRowLogging = 1598, "HY000" {
            cannot_log(why: impl Display) = "Binary logging not possible. Message: {why}";
        };
        NoFormatDescriptionEvent = 1609, "HY000";
        SlaveCorruptEvent = 1610, "HY000" {
            corrupt_event() = "Corrupted replication event was detected";
        };
        XaRbtimeout = 1613, "XA106";
        XaRbdeadlock = 1614, "XA102";
        WarnNoMasterInfo = 1617, "HY000" {
            no_master_connection(name: &str) = "There is no master connection '{name}'";
        };
        WarnOptionIgnored = 1618, "HY000";
        PluginDeleteBuiltin = 1619, "HY000" {
            builtin_plugin() = "Built-in plugins cannot be deleted";
        };
        VariableIsReadonly = 1621, "HY000";
        SlaveHeartbeatValueOutOfRange = 1624, "HY000" {
            heartbeat_out_of_range() =
                "The requested value for the heartbeat period is either negative or exceeds the maximum \
                 allowed (4294967 seconds)";
        };
        TooLongTableComment = 1628, "HY000";
        TooLongFieldComment = 1629, "HY000";
        FuncInexistentNameCollision = 1630, "42000" {
            unknown_native_function(name: &str) =
                "FUNCTION {name} does not exist. Check the 'Function Name Parsing and Resolution' section \
                 in the Reference Manual";
        };
        NonAsciiSeparator = 1638, "HY000" {
            non_ascii_separator() = "Non-ASCII separator arguments are not fully supported";
        };
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
        CondItemTruncated = 1647, "HY000" {
            condition_item_truncated(item: &str) = "Data truncated for condition item '{item}'";
        };
        CondItemTooLong = 1648, "HY000" {
            condition_item_too_long(item: &str) = "Data too long for condition item '{item}'";
        };
        UnknownLocale = 1649, "HY000";
        SlaveConversionFailed = 1677, "HY000" {
            slave_conversion_failed(column: usize, db: &str, table: &str, from: &str, to: &str) =
                "Column {column} of table '{db}.{table}' cannot be converted from type '{from}' to type '{to}'";
        };
        InsideTransactionPreventsSwitchBinlogFormat = 1679, "HY000";
        WrongPerfschemaUsage = 1683, "HY000" {
            wrong_performance_schema_usage() = "Invalid performance_schema usage";
        };
        TooLongIndexComment = 1688, "HY000";
        DataOutOfRange = 1690, "22003" {
            /// "BIGINT value is out of range in '(1 + 2)'".
            result_out_of_range(kind: &str, expression: impl Display) = "{kind} value is out of range in '{expression}'";
        };
        WrongSpvarTypeInLimit = 1691, "HY000" {
            no_integer_in_limit() = "A variable of a non-integer based type in LIMIT clause";
        };
        InsideTransactionPreventsSwitchSqlLogBin = 1694, "HY000";
        StoredFunctionPreventsSwitchSqlLogBin = 1695, "HY000" {
            sql_log_bin_in_function() = "Cannot change the sql_log_bin inside a stored function or trigger";
        };
        AccessDeniedNoPassword = 1698, "28000" {
            access_denied_without_password(user: &str, host: &str) =
                "Access denied for user '{user}'@'{host}'";
        };
        SetPasswordAuthPlugin = 1699, "HY000" {
            no_password_of_plugin(plugin: &str) =
                "SET PASSWORD is not applicable for users authenticating via {plugin} plugin";
        };
        TruncateIllegalFk = 1701, "42000" {
            table_referenced_by_foreign_key(schema: &str, name: &str, constraint: &str) =
                "Cannot truncate a table referenced in a foreign key constraint (`{schema}`.`{name}`, \
                 {constraint})";
        };
        SlaveHeartbeatValueOutOfRangeMin = 1703, "HY000";
        SlaveHeartbeatValueOutOfRangeMax = 1704, "HY000";
        MultiUpdateKeyConflict = 1706, "HY000" {
            key_updated_through_two_names(first: &str, second: &str) =
                "Primary key/partition key update is not allowed since the table is updated both as \
                 '{first}' and '{second}'";
        };
        IndexColumnTooLong = 1709, "HY000" {
            key_part_too_long(bytes_max: u32) =
                "Index column size too large. The maximum column size is {bytes_max} bytes";
        };
        IndexCorrupt = 1712, "HY000" {
            index_corrupt(what: impl Display) = "Index is corrupted: {what}";
        };
        CannotLoadFromTableV2 = 1728, "HY000" {
            cannot_load_accounts(table: &str) =
                "Cannot load from mysql.{table}. The table is probably corrupted";
        };
        MasterDelayValueOutOfRange = 1729, "HY000" {
            master_delay_too_long(seconds: impl Display, max: u64) =
                "The requested value {seconds} for the master delay exceeds the maximum {max}";
        };
        OnlyRowEventsInBinlogStatement = 1730, "HY000";
        PartitionClauseOnNonpartitioned = 1747, "HY000" {
            no_partitions() = "PARTITION () clause on non partitioned table";
        };
        DaInvalidConditionNumber = 1758, "35000";
        ForeignDuplicateKey = 1761, "23000" {
            foreign_key_would_duplicate(table: &str, record: &str, child: &str, key: &str) =
                "Foreign key constraint for table '{table}', record '{record}' would lead to a duplicate \
                 entry in table '{child}', key '{key}'";
        };
        UnknownExplainFormat = 1791, "HY000" {
            unknown_xa_recover_format(format: &str) = "Unknown XA RECOVER format name: '{format}'";
        };
        CantExecuteInReadOnlyTransaction = 1792, "25006" {
            read_only_transaction() = "Cannot execute statement in a READ ONLY transaction";
        };
        InnodbNoFtTempTable = 1796, "HY000" {
            full_text_on_temporary() = "Cannot create FULLTEXT index on temporary InnoDB table";
        };
        InnodbOnlineLogTooBig = 1799, "HY000" {
            online_log_too_big(index: &str) =
                "Creating index '{index}' required more than 'innodb_online_alter_log_max_size' bytes of modification \
                 log. Please try again";
        };
        Internal = 1815, "HY000";
        NotValidPassword = 1819, "HY000" {
            password_objection(objection: &str) = "cracklib: {objection}";
            password_violates_policy(by: &str) =
                "Your password does not satisfy the current policy requirements ({by})";
        };
        MustChangePassword = 1820, "HY000" {
            must_set_password() = "You must SET PASSWORD before executing this statement";
        };
        FkNoIndexParent = 1822, "HY000" {
            parent_index_missing(key: &str, parent: &str) =
                "Failed to add the foreign key constraint. Missing index for constraint '{key}' in the \
                 referenced table '{parent}'";
        };
        FkIncorrectOption = 1825, "HY000" {
            foreign_key_options(table: &str, schema: &str, key: &str) =
                "Failed to add the foreign key constraint on table '{table}'. Incorrect options in FOREIGN \
                 KEY constraint '{schema}/{key}'";
        };
        DupConstraintName = 1826, "HY000" {
            duplicate_check(name: &str) = "Duplicate CHECK constraint name '{name}'";
            duplicate_foreign_key(schema: &str, name: &str) =
                "Duplicate FOREIGN KEY constraint name '{schema}/{name}'";
        };
        FkColumnCannotDrop = 1828, "HY000" {
            column_needed_by_own_key(column: &str, schema: &str, key: &str) =
                "Cannot drop column '{column}': needed in a foreign key constraint '{schema}/{key}'";
        };
        FkColumnCannotDropChild = 1829, "HY000" {
            column_needed_by_foreign_key_of(column: &str, key: &str, schema: &str, table: &str) =
                "Cannot drop column '{column}': needed in a foreign key constraint '{key}' of table \
                 `{schema}`.`{table}`";
        };
        FkColumnNotNull = 1830, "HY000" {
            column_set_null_by_foreign_key(column: &str, key: &str) =
                "Column '{column}' cannot be NOT NULL: needed in a foreign key constraint '{key}' SET NULL";
        };
        WarnDuplicateIndex = 1831, "HY000";
        FkColumnCannotChange = 1832, "HY000" {
            column_in_own_foreign_key(column: &str, key: &str) =
                "Cannot change column '{column}': used in a foreign key constraint '{key}'";
        };
        FkColumnCannotChangeChild = 1833, "HY000" {
            column_in_foreign_key_of(column: &str, key: &str, schema: &str, table: &str) =
                "Cannot change column '{column}': used in a foreign key constraint '{key}' of table \
                 '{schema}.{table}'";
        };
        FkCannotDeleteParent = 1834, "HY000" {
            parent_needed_by_foreign_key(key: &str, table: &str) =
                "Cannot delete rows from table which is parent in a foreign key constraint '{key}' of table \
                 '{table}'";
        };
        MalformedPacket = 1835, "HY000" {
            malformed_packet() = "Malformed communication packet";
        };
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
        MustChangePasswordLogin = 1862, "HY000" {
            password_expired() =
                "Your password has expired. To log in you must change it using a client that supports \
                 expired passwords";
        };
        GeneratedColumnFunctionIsNotAllowed = 1901, "HY000" {
            not_allowed_in_clause(what: &str, clause: &str, column: &str) =
                "Function or expression '{what}' cannot be used in the {clause} clause of `{column}`";
        };
        PrimaryKeyBasedOnGeneratedColumn = 1903, "HY000" {
            primary_key_generated() = "Primary key cannot be defined upon a generated column";
        };
        WrongFkOptionForGeneratedColumn = 1905, "HY000" {
            foreign_key_on_generated(clause: &str) =
                "Cannot define foreign key with {clause} clause on a generated column";
        };
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
        DynColWrongFormat = 1919, "HY000" {
            dynamic_column_format() = "Encountered illegal format of dynamic column string";
        };
        DynColImplementationLimit = 1920, "HY000" {
            dynamic_column_limit() = "Dynamic column implementation limit reached";
        };
        DynColData = 1921, "22007" {
            dynamic_column_value() = "Illegal value used as argument of dynamic column function";
        };
        DynColWrongCharset = 1922, "HY000" {
            dynamic_column_charset() = "Dynamic column contains unknown character set";
        };
        ConnectionKilled = 1927, "70100" { connection_killed() = "Connection was killed"; };
        InsideTransactionPreventsSwitchSkipReplication = 1929, "HY000";
        StoredFunctionPreventsSwitchSkipReplication = 1930, "HY000" {
            skip_replication_in_function() =
                "Cannot modify @@session.skip_replication inside a stored function or trigger";
        };
        QueryResultIncomplete = 1931, "HY000" {
            examined_rows_exceeded(limit: u64) =
                "Query execution was interrupted. The query exceeded LIMIT ROWS EXAMINED {limit}. The query \
                 result may be incomplete";
        };
        TargetNotExplainable = 1933, "HY000" {
            not_explainable() = "Target is not executing an operation with a query plan";
        };
        ConnectionAlreadyExists = 1934, "HY000";
        SlaveStarted = 1937, "HY000";
        SlaveStopped = 1938, "HY000";
        IncorrectGtidState = 1941, "HY000" {
            malformed_gtid_list() = "Could not parse GTID list";
        };
        DuplicateGtidDomain = 1943, "HY000" {
            duplicate_gtid_domain(one: impl Display, other: impl Display, domain: impl Display) =
                "GTID {one} and {other} conflict (duplicate domain id {domain})";
        };
        MasterGtidPosConflictsWithBinlog = 1947, "HY000" {
            gtid_older_than_binlog(given: impl Display, own: impl Display, overrides: &str) =
                "Specified GTID {given} conflicts with the binary log which contains a more recent GTID \
                 {own}. {overrides}";
        };
        MasterGtidPosMissingDomain = 1948, "HY000" {
            gtid_domain_missing(domain: impl Display, own: impl Display, overrides: &str) =
                "Specified value for @@gtid_slave_pos contains no value for replication domain {domain}. \
                 This conflicts with the binary log which contains GTID {own}. {overrides}";
        };
        UntilRequiresUsingGtid = 1949, "HY000" {
            until_needs_gtid() = "START SLAVE UNTIL master_gtid_pos requires that slave is using GTID";
        };
        GtidStrictOutOfOrder = 1950, "HY000" {
            gtid_out_of_order(why: &str) = "{why}";
        };
        InsideTransactionPreventsSwitchGtidDomainIdSeqNo = 1953, "HY000" {
            gtid_switch_in_transaction() =
                "Cannot modify @@session.gtid_domain_id or @@session.gtid_seq_no inside a transaction";
        };
        StoredFunctionPreventsSwitchGtidDomainIdSeqNo = 1954, "HY000" {
            gtid_switch_in_function() = "Cannot modify @@session.gtid_domain_id or @@session.gtid_seq_no inside \
                                         a stored function or trigger";
        };
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
        CannotGrantRole = 1961, "HY000" {
            cannot_grant_role(role: &str, to: &str) = "Cannot grant role '{role}' to: {to}";
        };
        CannotRevokeRole = 1962, "HY000" {
            cannot_revoke_role(role: &str, from: &str) = "Cannot revoke role '{role}' from: {from}";
        };
        ItIsAView = 1965, "42S02" {
            is_a_view(schema: &str, name: &str) = "'{schema}.{name}' is a view";
        };
        SlaveSkipNotInGtid = 1966, "HY000";
        PluginInstalled = 1968, "HY000" {
            plugin_installed(name: &str) = "Plugin '{name}' already installed";
        };
        StatementTimeout = 1969, "70100" {
            statement_timeout() = "Query execution was interrupted (max_statement_time exceeded)";
        };
        SubqueriesNotSupported = 1970, "42000" {
            no_subqueries_in(clause: &str) = "{clause} does not support subqueries or stored functions";
        };
        SetStatementNotSupported = 1971, "42000" {
            not_in_set_statement(variable: &str) =
                "The system variable {variable} cannot be set in SET STATEMENT.";
        };
        UserCreateExists = 1973, "HY000";
        UserDropExists = 1974, "HY000";
        RoleCreateExists = 1975, "HY000";
        RoleDropExists = 1976, "HY000";
        CannotConvertCharacter = 1977, "HY000";
        WarnIncorrectDefault = 1978, "22007" {
            incorrect_default(value: &str, column: &str) =
                "Incorrect default value '{value}' for column '{column}'";
        };
        StdInvalidArgument = 3047, "HY000" {
            invalid_argument(reason: &str, function: &str) =
                "Invalid argument error: {reason} in function {function}.";
        };
        RestartServerFailed = 3707, "HY000" {
            restart_failed(why: impl Display) = "Restart server failed ({why}).";
        };
        CloneDonor = 3862, "HY000" {
            clone_donor(why: impl Display) = "Clone Donor Error: {why}.";
        };
        CloneDonorVersion = 3864, "HY000" {
            clone_donor_version(donor: &str, own: &str) =
                "Clone Donor MySQL version: {donor} is different from Recipient MySQL version {own}.";
        };
        CloneConfig = 3868, "HY000" {
            clone_config(name: &str, donor: &str, own: &str) =
                "Clone Configuration {name}: Donor value: {donor} is different from Recipient value: {own}.";
        };
        CloneSysConfig = 3869, "HY000" {
            clone_sys_config(why: impl Display) = "Clone system configuration: {why}";
        };
        ClonePluginMatch = 3870, "HY000" {
            clone_engine_missing(name: &str) = "Clone Donor plugin {name} is not active in Recipient.";
        };
        CloneDiskSpace = 3873, "HY000" {
            clone_disk_space(wanted: u64, free: u64) =
                "Clone estimated database size is {wanted} bytes. Available space {free} bytes is not enough.";
        };
        CloneInProgress = 3874, "HY000" {
            clone_in_progress() = "Concurrent clone in progress. Please try after clone is complete.";
        };
        WithColListWrongNumber = 4002, "HY000" {
            with_column_count() = "WITH column list and SELECT field list have different column counts";
        };
        DupQueryName = 4004, "HY000" {
            duplicate_query_name(name: &str) = "Duplicate query name `{name}` in WITH clause";
        };
        RecursiveWithoutAnchors = 4005, "HY000" {
            recursion_without_anchor(name: &str) = "No anchors for recursive WITH element '{name}'";
        };
        NotStandardCompliantRecursive = 4008, "HY000" {
            recursion_restricted(table: &str) =
                "Restrictions imposed on recursive definitions are violated for table '{table}'";
        };
        WrongWindowSpecName = 4009, "HY000" {
            unknown_window(name: &str) = "Window specification with name '{name}' is not defined";
        };
        DupWindowName = 4010, "HY000" {
            duplicate_window_name(name: &str) = "Multiple window specifications with the same name '{name}'";
        };
        PartitionListInReferencingWindowSpec = 4011, "HY000";
        OrderListInReferencingWindowSpec = 4012, "HY000";
        WindowFrameInReferencedWindowSpec = 4013, "HY000";
        BadCombinationOfWindowFrameBoundSpecs = 4014, "HY000" {
            bad_window_bounds() = "Unacceptable combination of window frame bound specifications";
        };
        WrongPlacementOfWindowFunction = 4015, "HY000" {
            window_function_misplaced() =
                "Window function is allowed only in SELECT list and ORDER BY clause";
        };
        WindowFunctionInWindowSpec = 4016, "HY000";
        NotAllowedWindowFrame = 4017, "HY000" {
            frame_not_allowed(function: &str) = "Window frame is not allowed with '{function}'";
        };
        NoOrderListInWindowSpec = 4018, "HY000" {
            window_without_order(function: &str) = "No order list in window specification for '{function}'";
        };
        RangeFrameNeedsSimpleOrderby = 4019, "HY000" {
            range_frame_needs_order() = "RANGE-type frame requires ORDER BY clause with single sort key";
        };
        WrongTypeForRowsFrame = 4020, "HY000" {
            frame_needs_integer() = "Integer is required for ROWS-type frame";
        };
        WrongTypeForRangeFrame = 4021, "HY000" {
            frame_needs_number() = "Numeric datatype is required for RANGE-type frame";
        };
        FrameExclusionNotSupported = 4022, "HY000" {
            no_frame_exclusion() = "Frame exclusion is not supported yet";
        };
        InvalidNtileArgument = 4024, "HY000" {
            ntile_argument() = "Argument of NTILE must be greater than 0";
        };
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
        JsonPathEos = 4041, "HY000" {
            json_table_path_ends() = "Unexpected end of JSON path in argument 2 to function 'JSON_TABLE'";
        };
        JsonPathSyntax = 4042, "HY000" {
            json_table_path_syntax(position: usize) =
                "Syntax error in JSON path in argument 2 to function 'JSON_TABLE' at position {position}";
        };
        JsonPathNoWildcard = 4044, "HY000";
        JsonOneOrAll = 4046, "HY000";
        UnsupportedCompressedTable = 4047, "HY000" {
            compressed_table_refused() =
                "InnoDB refuses to write tables with ROW_FORMAT=COMPRESSED or KEY_BLOCK_SIZE.";
        };
        JsonPathNotAllowed = 4051, "HY000";
        SlaveSameId = 4052, "HY000" {
            /// `text`: with the coordinates of the dump.
            same_server_id(text: &str) = "{text}";
        };
        SumFuncWithWindowFuncAsArg = 4074, "HY000" {
            window_in_aggregate() = "Window functions can not be used as arguments to group functions.";
        };
        IllegalParameterDataTypes2ForOperation = 4078, "HY000" {
            illegal_assignment(from: &str, to: &str, db: &str, table: &str, column: &str) =
                "Cannot cast '{from}' as '{to}' in assignment of `{db}`.`{table}`.`{column}`";
            row_in_assignment(to: &str, variable: &str) =
                "Cannot cast 'row' as '{to}' in assignment of `{variable}`";
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
        UnknownView = 4092, "42S02" {
            unknown_view(names: &str) = "Unknown VIEW: '{names}'";
        };
        SpStackTrace = 4094, "HY000" {
            raised_at(line: usize, program: impl Display) = "At line {line} in {program}";
        };
        WrongNumberOfValuesInTvc = 4099, "HY000" {
            value_counts_differ() = "The used table value constructor has a different number of values";
        };
        WrongTypeForPercentileFunc = 4101, "HY000" {
            percentile_of_no_number(function: &str) = "Numeric datatype is required for {function} function";
        };
        ArgumentNotConstant = 4102, "HY000" {
            percentile_varies(function: &str) =
                "Argument to the {function} function is not a constant for a partition";
        };
        ArgumentOutOfRange = 4103, "HY000" {
            percentile_out_of_range(function: &str) =
                "Argument to the {function} function does not belong to the range [0,1]";
        };
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
        UserIsBlocked = 4150, "HY000" {
            user_is_blocked() =
                "User is blocked because of too many credential errors; unblock with 'ALTER USER / FLUSH \
                 PRIVILEGES'";
        };
        AccountHasBeenLocked = 4151, "HY000" {
            account_locked() = "Access denied, this account is locked";
        };
        TooLongKeypart = 4159, "42000" {
            key_prefix_too_long(bytes_max: u32) =
                "Specified key part was too long; max key part length is {bytes_max} bytes";
        };
        UnknownDataType = 4161, "HY000" {
            unknown_data_type(name: &str) = "Unknown data type: '{name}'";
        };
        LoadInfileCapabilityDisabled = 4166, "HY000" {
            local_infile_disabled() =
                "The used command is not allowed because the MariaDB server or client has disabled the \
                 local infile capability";
        };
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
        JsonTableAliasRequired = 4177, "HY000" {
            table_function_without_alias() = "Every table function must have an alias.";
        };
        JsonTableScalarExpected = 4178, "HY000";
        JsonTableMultipleMatches = 4179, "HY000";
        WithTiesNeedsOrder = 4180, "HY000" {
            ties_without_order() = "FETCH ... WITH TIES requires ORDER BY clause to be present";
        };
        SformatError = 4183, "HY000";
        SfOutInoutArgNotAllowed = 4187, "HY000" {
            out_argument_not_allowed(number: usize, function: &str) =
                "OUT or INOUT argument {number} for function {function} is not allowed here";
        };
        WarnChangeMasterImplicit = 4190, "HY000";
        ChangeMasterMissingRequirement = 4191, "HY000" {
            demotion_needs_slave_pos() =
                "CHANGE MASTER TO option 'MASTER_DEMOTE_TO_SLAVE=TRUE' is missing requirement \
                 Using_Gtid=Slave_Pos";
        };
    } };
}
pub(crate) use error_table;
