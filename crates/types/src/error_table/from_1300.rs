//! Errors from number 1300 on.

/// Passes the rows that it gets and its own ones to the macro `then`.
macro_rules! from_1300 {
    ($then:ident $($rows:tt)*) => { $then! {
        $($rows)*
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
        SpDoesNotExist = 1305, "42000" {
            unknown_function(db: &str, name: &str) = "FUNCTION {db}.{name} does not exist";
            /// "SAVEPOINT s does not exist".
            does_not_exist(kind: &str, name: &str) = "{kind} {name} does not exist";
            /// "p does not exist".
            object_does_not_exist(name: &str) = "{name} does not exist";
        };
        SpLabelMismatch = 1310, "42000" {
            label_without_match(label: &str) = "End-label {label} without match";
        };
        QueryInterrupted = 1317, "70100" { interrupted() = "Query execution was interrupted"; };
        SpBadCursorSelect = 1323, "42000" {
            cursor_with_into() = "Cursor SELECT must not have INTO";
        };
        SpUndeclaredVar = 1327, "42000" {
            undeclared_variable(name: &str) = "Undeclared variable: {name}";
        };
        SpFetchNoData = 1329, "02000" {
            no_data() = "No data - zero rows fetched, selected, or processed";
        };
        SpVarcondAfterCurshndlr = 1337, "42000" {
            variable_after_cursor_or_handler() =
                "Variable or condition declaration after cursor or handler declaration";
        };
        SpCursorAfterHandler = 1338, "42000" {
            cursor_after_handler() = "Cursor declaration after handler declaration";
        };
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
                "A log is in use, will not be reset: {reader} reads it; STOP SLAVE there first";
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
        StmtHasNoOpenCursor = 1421, "HY000" {
            no_open_cursor(statement: impl Display) = "The statement ({statement}) has no open cursor";
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
        DropIndexFk = 1553, "HY000" {
            index_needed_by_foreign_key(index: &str) =
                "Cannot drop index '{index}': needed in a foreign key constraint";
        };
        CantLockLogTable = 1556, "HY000" {
            cannot_lock_log_table() = "You can't use locks with log tables";
        };
        CantChangeTxCharacteristics = 1568, "25001" {
            transaction_in_progress() =
                "Transaction characteristics can't be changed while a transaction is in progress";
        };
        Base64DecodeError = 1575, "HY000";
        BadLogStatement = 1580, "HY000" {
            log_table_in_use(statement: &str) = "You cannot '{statement}' a log table if logging is enabled";
        };
        WrongParamcountToNativeFct = 1582, "42000" {
            wrong_param_count(function: &str) =
                "Incorrect parameter count in the call to native function '{function}'";
        };
        WrongParametersToNativeFct = 1583, "42000";
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
        UnknownLocale = 1649, "HY000";
        SlaveConversionFailed = 1677, "HY000" {
            slave_conversion_failed(column: usize, db: &str, table: &str, from: &str, to: &str) =
                "Column {column} of table '{db}.{table}' cannot be converted from type '{from}' to type '{to}'";
        };
        InsideTransactionPreventsSwitchBinlogFormat = 1679, "HY000";
        TooLongIndexComment = 1688, "HY000";
        DataOutOfRange = 1690, "22003" {
            /// "BIGINT value is out of range in '(1 + 2)'".
            result_out_of_range(kind: &str, expression: impl Display) = "{kind} value is out of range in '{expression}'";
        };
        InsideTransactionPreventsSwitchSqlLogBin = 1694, "HY000";
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
            illegal_types(first: &str, second: &str, operation: &str) =
                "Illegal parameter data types {first} and {second} for operation '{operation}'";
        };
        IllegalParameterDataTypeForOperation = 4079, "HY000" {
            illegal_type(ty: &str, operation: &str) =
                "Illegal parameter data type {ty} for operation '{operation}'";
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
        WarnChangeMasterImplicit = 4190, "HY000";
        ChangeMasterMissingRequirement = 4191, "HY000" {
            demotion_needs_slave_pos() =
                "CHANGE MASTER TO option 'MASTER_DEMOTE_TO_SLAVE=TRUE' is missing requirement \
                 Using_Gtid=Slave_Pos";
        };
    } };
}
pub(crate) use from_1300;
