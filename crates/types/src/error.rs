//! The table of MariaDB's error numbers and SQLSTATEs, and the types for errors and warnings.

use std::fmt;

use crate::error_text::whole_chars;

/// Severity of a condition in SHOW WARNINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    /// Returns the name in SHOW WARNINGS.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// A condition in the list of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub level: Level,
    pub error: SqlError,
}

macro_rules! errors {
    ($($name:ident = $number:literal, $state:literal;)*) => {
        /// MariaDB's name for an error, without the ER_ prefix.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ErrorCode { $($name = $number,)* }

        impl ErrorCode {
            /// Returns the error number sent to clients.
            pub fn number(self) -> u16 {
                self as u16
            }

            /// Returns the SQLSTATE sent to clients.
            pub fn sqlstate(self) -> &'static str {
                match self { $(ErrorCode::$name => $state,)* }
            }
        }
    };
}

errors! {
    DiskFull = 1021, "HY000";
    DupKey = 1022, "23000";
    ConCount = 1040, "08004";
    Handshake = 1043, "08S01";
    DbAccessDenied = 1044, "42000";
    AccessDenied = 1045, "28000";
    NoDb = 1046, "3D000";
    UnknownCommand = 1047, "08S01";
    BadNull = 1048, "23000";
    BadDb = 1049, "42000";
    TableExists = 1050, "42S01";
    BadTable = 1051, "42S02";
    NonUniq = 1052, "23000";
    BadField = 1054, "42S22";
    WrongFieldWithGroup = 1055, "42000";
    DupFieldName = 1060, "42S21";
    DupKeyName = 1061, "42000";
    DupEntry = 1062, "23000";
    Parse = 1064, "42000";
    EmptyQuery = 1065, "42000";
    NonUniqTable = 1066, "42000";
    InvalidDefault = 1067, "42000";
    MultiplePriKey = 1068, "42000";
    TooLongKey = 1071, "42000";
    IndexColumnTooLong = 1709, "HY000";
    KeyColumnDoesNotExist = 1072, "42000";
    BlobUsedAsKey = 1073, "42000";
    TooBigFieldLength = 1074, "42000";
    AutoConvert = 1246, "HY000";
    WrongAutoKey = 1075, "42000";
    NoTablesUsed = 1096, "HY000";
    DbCreateExists = 1007, "HY000";
    DbDropExists = 1008, "HY000";
    UpdateTableUsed = 1093, "HY000";
    OfPlugin = 1, "HY000";
    TextfileNotReadable = 1085, "HY000";
    CantGetStat = 13, "HY000";
    CantOpenLibrary = 1126, "HY000";
    PluginDeleteBuiltin = 1619, "HY000";
    PluginInstalled = 1968, "HY000";
    CantLockLogTable = 1556, "HY000";
    BadLogStatement = 1580, "HY000";
    ErrorOnRead = 1024, "HY000";
    NetReadError = 1158, "08S01";
    WrongFieldTerminators = 1083, "42000";
    FileExists = 1086, "HY000";
    WarnTooManyRecords = 1262, "01000";
    AmbiguousFieldTerm = 1475, "HY000";
    SlaveCorruptEvent = 1610, "HY000";
    NonAsciiSeparator = 1638, "HY000";
    LoadInfileCapabilityDisabled = 4166, "HY000";
    NoSuchQuery = 1957, "HY000";
    NoSuchThread = 1094, "HY000";
    Yes = 1003, "HY000";
    TargetNotExplainable = 1933, "HY000";
    SetConstantsOnly = 1204, "HY000";
    KillDenied = 1095, "HY000";
    WrongFieldSpec = 1063, "42000";
    WrongValueCountOnRow = 1136, "21S01";
    WrongValueCount = 1058, "21S01";
    InvalidGroupFuncUse = 1111, "HY000";
    WrongGroupField = 1056, "42000";
    CantUseOptionHere = 1234, "42000";
    EmptyRowInTvc = 4141, "HY000";
    SumFuncWithWindowFuncAsArg = 4074, "HY000";
    WrongTypeForPercentileFunc = 4101, "HY000";
    ArgumentNotConstant = 4102, "HY000";
    WrongTypeOfArgument = 4104, "HY000";
    NotStandardCompliantRecursive = 4008, "HY000";
    NotAllowedInThisContext = 4172, "HY000";
    UnknownTable = 1109, "42S02";
    UnknownCharacterSet = 1115, "42000";
    UnknownCollation = 1273, "HY000";
    CantDropFieldOrKey = 1091, "42000";
    CantRemoveAllFields = 1090, "42000";
    TooManyFields = 1117, "HY000";
    TooBigRowsize = 1118, "42000";
    SyntaxError = 1149, "42000";
    NoSuchTable = 1146, "42S02";
    FunctionNotDefined = 1128, "HY000";
    FilesortAbort = 1028, "HY000";
    TablenameNotAllowedHere = 1250, "42000";
    NetPacketTooLarge = 1153, "08S01";
    NetPacketsOutOfOrder = 1156, "08S01";
    NetUncompress = 1157, "08S01";
    StmtHasNoOpenCursor = 1421, "HY000";
    SpBadCursorSelect = 1323, "42000";
    SpUndeclaredVar = 1327, "42000";
    SpLabelMismatch = 1310, "42000";
    SpCondMismatch = 1319, "42000";
    SpVarcondAfterCurshndlr = 1337, "42000";
    SpCursorAfterHandler = 1338, "42000";
    SpBadSqlstate = 1407, "42000";
    SpWrongName = 1458, "42000";
    DupSignalSet = 1641, "42000";
    DaInvalidConditionNumber = 1758, "35000";
    UserLimitReached = 1226, "42000";
    SetPasswordAuthPlugin = 1699, "HY000";
    MustChangePassword = 1820, "HY000";
    MustChangePasswordLogin = 1862, "HY000";
    CannotGrantRole = 1961, "HY000";
    CannotRevokeRole = 1962, "HY000";
    RoleCreateExists = 1975, "HY000";
    RoleDropExists = 1976, "HY000";
    UserCreateExists = 1973, "HY000";
    UserDropExists = 1974, "HY000";
    UserIsBlocked = 4150, "HY000";
    AccountHasBeenLocked = 4151, "HY000";
    MalformedPacket = 1835, "HY000";
    WrongColumnName = 1166, "42000";
    WrongKeyColumn = 1167, "HY000";
    BlobKeyWithoutLength = 1170, "42000";
    RequiresPrimaryKey = 1173, "42000";
    KeyDoesNotExists = 1176, "42000";
    FtMatchingKeyNotFound = 1191, "HY000";
    UnknownSystemVariable = 1193, "HY000";
    LockWaitTimeout = 1205, "HY000";
    LockTableFull = 1206, "HY000";
    WrongArguments = 1210, "HY000";
    LockDeadlock = 1213, "40001";
    SpecificAccessDenied = 1227, "42000";
    LocalVariable = 1228, "HY000";
    GlobalVariable = 1229, "HY000";
    WrongValueForVar = 1231, "42000";
    NoDefault = 1230, "42000";
    CantDoThisDuringAnTransaction = 1179, "25000";
    BinlogMustBeEmpty = 1956, "HY000";
    BinlogUnsafeStatement = 1592, "HY000";
    WrongTypeForVar = 1232, "42000";
    VarCantBeRead = 1233, "HY000";
    NotSupportedYet = 1235, "42000";
    IncorrectGlobalLocalVar = 1238, "HY000";
    UnknownStmtHandler = 1243, "HY000";
    WarnTooFewRecords = 1261, "01000";
    WarnNullToNotnull = 1263, "22004";
    WarnDataOutOfRange = 1264, "22003";
    WarnDataTruncated = 1265, "01000";
    WarnUsingOtherHandler = 1266, "HY000";
    BadFtColumn = 1283, "HY000";
    UnknownStorageEngine = 1286, "42000";
    TruncatedWrongValue = 1292, "22007";
    SpDoesNotExist = 1305, "42000";
    FuncInexistentNameCollision = 1630, "42000";
    ProcaccessDenied = 1370, "42000";
    NonexistingProcGrant = 1403, "42000";
    QueryInterrupted = 1317, "70100";
    WrongValueForType = 1411, "HY000";
    NoDefaultForField = 1364, "HY000";
    DivisionByZero = 1365, "22012";
    TruncatedWrongValueForField = 1366, "22007";
    DataTooLong = 1406, "22001";
    TooBigScale = 1425, "42000";
    TooBigPrecision = 1426, "42000";
    MBiggerThanD = 1427, "42000";
    TooBigDisplaywidth = 1439, "42000";
    WrongParamcountToNativeFct = 1582, "42000";
    WrongParametersToNativeFct = 1583, "42000";
    VariableIsReadonly = 1621, "HY000";
    DataOutOfRange = 1690, "22003";
    CantChangeTxCharacteristics = 1568, "25001";
    CantExecuteInReadOnlyTransaction = 1792, "25006";
    OptionPreventsStatement = 1290, "HY000";
    FeatureDisabled = 1289, "HY000";
    ViewNoExplain = 1345, "HY000";
    PartitionClauseOnNonpartitioned = 1747, "HY000";
    WithTiesNeedsOrder = 4180, "HY000";
    StdInvalidArgument = 3047, "HY000";
    TooLongKeypart = 4159, "42000";
    NoAutoincrementWithUnique = 4169, "HY000";
    KeyDoesntSupport = 4143, "HY000";
    UpdatedColumnOnlyOnce = 4140, "HY000";
    UpdateWithoutKeyInSafeMode = 1175, "HY000";
    InsideTransactionPreventsSwitchBinlogFormat = 1679, "HY000";
    InsideTransactionPreventsSwitchSqlLogBin = 1694, "HY000";
    InsideTransactionPreventsSwitchSkipReplication = 1929, "HY000";
    InsideTransactionPreventsSwitchGtidDomainIdSeqNo = 1953, "HY000";
    TableNotLockedForWrite = 1099, "HY000";
    TableNotLocked = 1100, "HY000";
    CantUpdateWithReadlock = 1223, "HY000";
    OutOfResources = 1041, "HY000";
    UnknownError = 1105, "HY000";
    ServerShutdown = 1053, "08S01";
    NewAbortingConnection = 1184, "08S01";
    ConnectionKilled = 1927, "70100";
    StatementTimeout = 1969, "70100";
    MasterFatalErrorReadingBinlog = 1236, "HY000";
    SlaveSameId = 4052, "HY000";
    CantCreateThread = 1135, "HY000";
    UnknownTargetBinlog = 1373, "HY000";
    NoBinaryLogging = 1381, "HY000";
    CannotUser = 1396, "HY000";
    TableaccessDenied = 1142, "42000";
    ColumnaccessDenied = 1143, "42000";
    BinlogRowLogging = 1598, "HY000";
    BinlogRowLoggingFailed = 1534, "HY000";
    BinlogCantDeleteGtidDomain = 1076, "HY000";
    BinlogClosed = 1186, "HY000";
    LogInUse = 1378, "HY000";
    CantGenerateLogName = 1098, "HY000";
    TransactionTooLarge = 1197, "HY000";
    LockOrActiveTransaction = 1192, "HY000";
    UnsupportedPs = 1295, "HY000";
    IncorrectGtidState = 1941, "HY000";
    GtidStrictOutOfOrder = 1950, "HY000";
    AutoincRange = 167, "22003";
    OnlyRowEventsInBinlogStatement = 1730, "HY000";
    Base64DecodeError = 1575, "HY000";
    TooBigSet = 1097, "HY000";
    NoBinlogCoordinate = 1220, "HY000";
    OperandColumns = 1241, "21000";
    WrongNumberOfValuesInTvc = 4099, "HY000";
    SpFetchNoData = 1329, "02000";
    TooManyRows = 1172, "42000";
    WithColListWrongNumber = 4002, "HY000";
    CantCreateFile = 1004, "HY000";
    DupQueryName = 4004, "HY000";
    RecursiveWithoutAnchors = 4005, "HY000";
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
    TooManyTables = 1116, "HY000";
    StackOverrunNeedMore = 1436, "HY000";
    TooHighLevelOfNestingForSelect = 1473, "HY000";
    TableDefChanged = 1412, "HY000";
    InvalidRole = 1959, "OP000";
    UnknownTimeZone = 1298, "HY000";
    CantAggregate2Collations = 1267, "HY000";
    CantAggregate3Collations = 1270, "HY000";
    CantAggregateNCollations = 1271, "HY000";
    CutValueGroupConcat = 1260, "HY000";
    WarnAllowedPacketOverflowed = 1301, "HY000";
    InvalidCharacterString = 1300, "HY000";
    ConflictingDeclarations = 1302, "HY000";
    Regexp = 1139, "42000";
    CollationCharsetMismatch = 1253, "42000";
    DatetimeFunctionOverflow = 1441, "22008";
    DataOverflow = 1916, "HY000";
    UnknownLocale = 1649, "HY000";
    TooBigForUncompress = 1256, "HY000";
    ZlibZData = 1259, "HY000";
    SformatError = 4183, "HY000";
    GeneratedColumnFunctionIsNotAllowed = 1901, "HY000";
    UnsupportedActionOnGeneratedColumn = 1907, "HY000";
    WarningNonDefaultValueForGeneratedColumn = 1906, "HY000";
    ExpressionRefersToUninitField = 4029, "01000";
    PrimaryKeyBasedOnGeneratedColumn = 1903, "HY000";
    DupConstraintName = 1826, "HY000";
    SubqueriesNotSupported = 1970, "42000";
    JsonPathNoWildcard = 4044, "HY000";
    JsonPathNotAllowed = 4051, "HY000";
    IllegalParameterDataTypeForOperation = 4079, "HY000";
    BadData = 1918, "22007";
    DynColWrongFormat = 1919, "HY000";
    DynColImplementationLimit = 1920, "HY000";
    DynColData = 1921, "22007";
    DynColWrongCharset = 1922, "HY000";
    IllegalParameterDataTypes2ForOperation = 4078, "HY000";
    JsonBadChar = 4035, "HY000";
    JsonNotJsonChr = 4036, "HY000";
    JsonEos = 4037, "HY000";
    JsonSyntax = 4038, "HY000";
    JsonDepth = 4040, "HY000";
    JsonPathEos = 4041, "HY000";
    JsonPathSyntax = 4042, "HY000";
    JsonOneOrAll = 4046, "HY000";
    CantCreateTable = 1005, "HY000";
    WrongCreateOptions = 140, "HY000";
    IllegalHaCreateOption = 1478, "HY000";
    UnknownOption = 1911, "HY000";
    WarnIncorrectDefault = 1978, "22007";
    UnsupportedCompressedTable = 4047, "HY000";
    SequenceRunOut = 4084, "HY000";
    SequenceInvalidData = 4085, "HY000";
    SequenceInvalidTableStructure = 4086, "HY000";
    NotSequence = 4089, "42S02";
    NotSequence2 = 4090, "42S02";
    UnknownSequences = 4091, "42S02";
    ForeignDuplicateName = 121, "HY000";
    CannotAddForeign = 150, "HY000";
    ForeignTooDeep = 152, "HY000";
    CannotAddForeignKey = 1215, "HY000";
    WrongFkDef = 1239, "42000";
    GetErrmsg = 1296, "HY000";
    RowIsReferenced = 1451, "23000";
    NoReferencedRow = 1452, "23000";
    DropIndexFk = 1553, "HY000";
    TruncateIllegalFk = 1701, "42000";
    ForeignDuplicateKey = 1761, "23000";
    FkNoIndexParent = 1822, "HY000";
    FkIncorrectOption = 1825, "HY000";
    FkColumnCannotDrop = 1828, "HY000";
    FkColumnCannotDropChild = 1829, "HY000";
    FkCannotDeleteParent = 1834, "HY000";
    FkColumnNotNull = 1830, "HY000";
    FkColumnCannotChange = 1832, "HY000";
    FkColumnCannotChangeChild = 1833, "HY000";
    WrongFkOptionForGeneratedColumn = 1905, "HY000";
    ErrorOnRename = 1025, "HY000";
    CheckRead = 1020, "HY000";
    ErrorOnWrite = 1026, "HY000";
    GetErrno = 1030, "HY000";
    IndexCorrupt = 1712, "HY000";
    IllegalHa = 1031, "HY000";
    KeyNotFound = 1032, "HY000";
    OutOfMemory = 1037, "HY001";
    TooLongIdent = 1059, "42000";
    TooManyKeys = 1069, "42000";
    TooManyKeyParts = 1070, "42000";
    WrongDbName = 1102, "42000";
    WrongTableName = 1103, "42000";
    FieldSpecifiedTwice = 1110, "42000";
    TableMustHaveColumns = 1113, "42000";
    PasswordNoMatch = 1133, "28000";
    InvalidUseOfNull = 1138, "22004";
    MixOfGroupFuncAndFields = 1140, "42000";
    NonexistingGrant = 1141, "42000";
    NetReadInterrupted = 1159, "08S01";
    TooManyUserConnections = 1203, "42000";
    WrongUsage = 1221, "HY000";
    WrongNumberOfColumnsInSelect = 1222, "21000";
    SubqueryNo1Row = 1242, "21000";
    QueryResultIncomplete = 1931, "HY000";
    InvalidNtileArgument = 4024, "HY000";
    ArgumentOutOfRange = 4103, "HY000";
    InvisibleNotNullWithoutDefault = 4108, "HY000";
    DerivedMustHaveAlias = 1248, "42000";
    WrongNameForIndex = 1280, "42000";
    WarnDeprecatedSyntax = 1287, "HY000";
    NonUpdatableTable = 1288, "HY000";
    DuplicatedValueInType = 1291, "HY000";
    InvalidOnUpdate = 1294, "HY000";
    WrongObject = 1347, "HY000";
    NonUpdatableColumn = 1348, "HY000";
    ViewSelectClause = 1350, "HY000";
    ViewSelectVariable = 1351, "HY000";
    ViewWrongList = 1353, "HY000";
    ViewSelectTmptable = 1352, "HY000";
    WarnViewMerge = 1354, "HY000";
    ViewInvalid = 1356, "HY000";
    ViewNonupdCheck = 1368, "HY000";
    ViewCheckFailed = 1369, "44000";
    ViewMultiUpdate = 1393, "HY000";
    ViewNoInsertFieldList = 1394, "HY000";
    ViewDeleteMergeView = 1395, "HY000";
    MalformedDefiner = 1446, "0L000";
    NoSuchUser = 1449, "HY000";
    ForbidSchemaChange = 1450, "HY000";
    ItIsAView = 1965, "42S02";
    UnknownView = 4092, "42S02";
    ViewRecursive = 1462, "HY000";
    NonInsertableTable = 1471, "HY000";
    IllegalValueForType = 1367, "22007";
    UnknownDataType = 4161, "HY000";
    IllegalReference = 1247, "42S22";
    BackupLockIsActive = 4145, "HY000";
    BackupNotRunning = 4146, "HY000";
    BackupWrongStage = 4147, "HY000";
    BackupUnknownStage = 4149, "HY000";
    InvalidDefaultParam = 4032, "HY000";
    PsManyParam = 1390, "HY000";
    XaerNota = 1397, "XAE04";
    XaerInval = 1398, "XAE05";
    XaerRmfail = 1399, "XAE07";
    XaerOutside = 1400, "XAE09";
    XaerRmerr = 1401, "XAE03";
    XaRbrollback = 1402, "XA100";
    XaerDupid = 1440, "XAE08";
    UnknownExplainFormat = 1791, "HY000";
    XaRbtimeout = 1613, "XA106";
    XaRbdeadlock = 1614, "XA102";
    MaxPreparedStmtCountReached = 1461, "42000";
    AutoincReadFailed = 1467, "HY000";
    WrongStringLength = 1470, "HY000";
    PluginIsNotLoaded = 1524, "HY000";
    WrongValue = 1525, "HY000";
    NoFormatDescriptionEvent = 1609, "HY000";
    SlaveConversionFailed = 1677, "HY000";
    AccessDeniedNoPassword = 1698, "28000";
    Internal = 1815, "HY000";
    ReadOnlyMode = 1836, "HY000";
    WarnDuplicateIndex = 1831, "HY000";
    InnodbNoFtTempTable = 1796, "HY000";
    InnodbOnlineLogTooBig = 1799, "HY000";
    AlterOperationNotSupported = 1845, "0A000";
    AlterOperationNotSupportedReason = 1846, "0A000";
    BadOptionValue = 1912, "HY000";
    Base64 = 1958, "HY000";
    SetStatementNotSupported = 1971, "42000";
    CannotConvertCharacter = 1977, "HY000";
    ConstraintFailed = 4025, "23000";
    PrimaryKeyIgnored = 4174, "HY000";
    JsonTableErrorOnField = 4176, "HY000";
    JsonTableAliasRequired = 4177, "HY000";
    JsonTableScalarExpected = 4178, "HY000";
    JsonTableMultipleMatches = 4179, "HY000";
    WrongSubKey = 1089, "HY000";
    PasswordLength = 1372, "HY000";
    NotValidPassword = 1819, "HY000";
    KeyPart0 = 1391, "HY000";
    TooLongTableComment = 1628, "HY000";
    TooLongFieldComment = 1629, "HY000";
    CantCreateUserWithGrant = 1410, "42000";
    IllegalGrantForTable = 1144, "42000";
    NonexistingTableGrant = 1147, "42000";
    RevokeGrants = 1269, "HY000";
    TooLongIndexComment = 1688, "HY000";
    MultiUpdateKeyConflict = 1706, "HY000";
    SlaveMustStop = 1198, "HY000";
    SlaveRelayLogReadFailure = 1594, "HY000";
    MasterInfo = 1201, "HY000";
    SlaveNotRunning = 1199, "HY000";
    BadSlave = 1200, "HY000";
    SlaveWasRunning = 1254, "HY000";
    SlaveWasNotRunning = 1255, "HY000";
    BadSlaveUntilCond = 1277, "HY000";
    UntilCondIgnored = 1279, "HY000";
    WarnNoMasterInfo = 1617, "HY000";
    WarnOptionIgnored = 1618, "HY000";
    WarnChangeMasterImplicit = 4190, "HY000";
    ChangeMasterMissingRequirement = 4191, "HY000";
    SlaveStarted = 1937, "HY000";
    SlaveStopped = 1938, "HY000";
    SlaveHeartbeatValueOutOfRange = 1624, "HY000";
    SlaveHeartbeatValueOutOfRangeMin = 1703, "HY000";
    SlaveHeartbeatValueOutOfRangeMax = 1704, "HY000";
    MasterDelayValueOutOfRange = 1729, "HY000";
    ConnectionAlreadyExists = 1934, "HY000";
    MasterGtidPosConflictsWithBinlog = 1947, "HY000";
    MasterGtidPosMissingDomain = 1948, "HY000";
    UntilRequiresUsingGtid = 1949, "HY000";
    DuplicateGtidDomain = 1943, "HY000";
    SlaveSkipNotInGtid = 1966, "HY000";
}

/// An error of a statement, for its client: number, SQLSTATE and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    pub code: ErrorCode,
    /// MariaDB's text of the error.
    pub message: String,
    row: Row,
    keeps_transaction: bool,
}

/// The row number of an error. It does not count when errors are compared.
#[derive(Clone, Copy, Debug)]
struct Row(u32);

impl PartialEq for Row {
    fn eq(&self, _: &Row) -> bool {
        true
    }
}

impl Eq for Row {}

impl Row {
    const UNKNOWN: Row = Row(u32::MAX);
}

/// A receiver of the warnings of conversions. The session's keeps at most `max_error_count` of them, and
/// counts the rest.
pub trait WarningSink {
    /// Adds a warning.
    fn warn(&mut self, warning: Warning);
}

impl WarningSink for Vec<Warning> {
    fn warn(&mut self, warning: Warning) {
        self.push(warning);
    }
}

/// A sink that drops all warnings.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWarnings;

impl WarningSink for NoWarnings {
    fn warn(&mut self, _: Warning) {}
}

/// Maximum length of a message in bytes: MariaDB's `MYSQL_ERRMSG_SIZE`, without the terminating zero.
const MESSAGE_BYTES_MAX: usize = 511;

/// The result of an operation of a statement.
pub type SqlResult<T> = Result<T, SqlError>;

impl SqlError {
    /// Creates an error with its final text. Text that exceeds MariaDB's message size is cut off, except in
    /// the note of EXPLAIN EXTENDED, which contains the whole statement.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> SqlError {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX && code != ErrorCode::Yes {
            message = whole_chars(&message, MESSAGE_BYTES_MAX).to_owned();
        }
        SqlError { code, message, row: Row::UNKNOWN, keeps_transaction: false }
    }

    /// Adds the row number of its statement, unless the error already has one. Rows count from 1; 0 is no
    /// row.
    pub fn at_row(self, row: u64) -> SqlError {
        match self.row() {
            Some(_) => self,
            None => SqlError { row: Row(u32::try_from(row).unwrap_or(u32::MAX)), ..self },
        }
    }

    /// Makes the error roll back only its statement, where other errors of the same number roll back the
    /// transaction: a deadlock over locks that outlive transactions.
    pub fn keeping_transaction(self) -> SqlError {
        SqlError { keeps_transaction: true, ..self }
    }

    /// Returns whether the error rolls back only its statement, independent of its number.
    pub fn keeps_transaction(&self) -> bool {
        self.keeps_transaction
    }

    /// Returns the row number, if it is known.
    pub fn row(&self) -> Option<u64> {
        (self.row.0 != Row::UNKNOWN.0).then_some(self.row.0.into())
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code.number(), self.code.sqlstate(), self.message)
    }
}

impl std::error::Error for SqlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_length_of_mariadbs() {
        let text = |code, message: &str| SqlError::new(code, message).message;
        let long = "é".repeat(300);
        assert_eq!(text(ErrorCode::DataOutOfRange, &long), "é".repeat(255));
        assert_eq!(text(ErrorCode::DataOutOfRange, &long[..510]), long[..510]);
        assert_eq!(text(ErrorCode::Yes, &long), long, "the statement that EXPLAIN EXTENDED returns");
    }
}
