//! Event type numbers and the names that SHOW BINLOG EVENTS prints.

use std::fmt;

/// The type byte of an event. All values are possible; the known ones have constants.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventType(pub u8);

macro_rules! types {
    ($($name:ident = $number:literal $text:literal;)*) => {
        impl EventType {
            $(#[doc = $text] pub const $name: EventType = EventType($number);)*

            /// Returns the column Event_type of SHOW BINLOG EVENTS.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => $text,)*
                    _ => "Unknown",
                }
            }
        }
    };
}

types! {
    START_V3 = 1 "Start_v3";
    QUERY = 2 "Query";
    STOP = 3 "Stop";
    ROTATE = 4 "Rotate";
    INTVAR = 5 "Intvar";
    LOAD = 6 "Load";
    SLAVE = 7 "Slave";
    CREATE_FILE = 8 "Create_file";
    APPEND_BLOCK = 9 "Append_block";
    EXEC_LOAD = 10 "Exec_load";
    DELETE_FILE = 11 "Delete_file";
    NEW_LOAD = 12 "New_load";
    RAND = 13 "RAND";
    USER_VAR = 14 "User var";
    FORMAT_DESCRIPTION = 15 "Format_desc";
    XID = 16 "Xid";
    BEGIN_LOAD_QUERY = 17 "Begin_load_query";
    EXECUTE_LOAD_QUERY = 18 "Execute_load_query";
    TABLE_MAP = 19 "Table_map";
    WRITE_ROWS_V1 = 23 "Write_rows_v1";
    UPDATE_ROWS_V1 = 24 "Update_rows_v1";
    DELETE_ROWS_V1 = 25 "Delete_rows_v1";
    INCIDENT = 26 "Incident";
    HEARTBEAT = 27 "Heartbeat";
    IGNORABLE = 28 "Ignorable";
    ROWS_QUERY = 29 "MySQL Rows_query";
    WRITE_ROWS_V2 = 30 "Write_rows";
    UPDATE_ROWS_V2 = 31 "Update_rows";
    DELETE_ROWS_V2 = 32 "Delete_rows";
    XA_PREPARE = 38 "XA_prepare";
    ANNOTATE_ROWS = 160 "Annotate_rows";
    BINLOG_CHECKPOINT = 161 "Binlog_checkpoint";
    GTID = 162 "Gtid";
    GTID_LIST = 163 "Gtid_list";
    START_ENCRYPTION = 164 "Start_encryption";
    QUERY_COMPRESSED = 165 "Query_compressed";
    WRITE_ROWS_COMPRESSED_V1 = 166 "Write_rows_compressed_v1";
    UPDATE_ROWS_COMPRESSED_V1 = 167 "Update_rows_compressed_v1";
    DELETE_ROWS_COMPRESSED_V1 = 168 "Delete_rows_compressed_v1";
    WRITE_ROWS_COMPRESSED = 169 "Write_rows_compressed";
    UPDATE_ROWS_COMPRESSED = 170 "Update_rows_compressed";
    DELETE_ROWS_COMPRESSED = 171 "Delete_rows_compressed";
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}
