//! Event type numbers and the names that SHOW BINLOG EVENTS prints.

use std::fmt;

/// The type byte of an event. All values are possible; the known ones have constants.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventType(pub u8);

/// Position of an event in its group, after the GTID event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InGroup {
    /// Another event of the group follows.
    Before,
    /// The last event of any group.
    Ends,
    /// The last event of a group without BEGIN. In a transaction others follow.
    Single,
    /// As `Single`, but COMMIT and ROLLBACK end a transaction.
    ByText,
}

macro_rules! types {
    ($($name:ident = $number:literal $text:literal $place:ident;)*) => {
        impl EventType {
            $(#[doc = $text] pub const $name: EventType = EventType($number);)*

            /// Returns the column Event_type of SHOW BINLOG EVENTS.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => $text,)*
                    _ => "Unknown",
                }
            }

            /// Returns the position of such an event in its group.
            pub fn in_group(self) -> InGroup {
                match self.0 {
                    $($number => InGroup::$place,)*
                    _ => InGroup::Single,
                }
            }
        }
    };
}

types! {
    START_V3 = 1 "Start_v3" Single;
    QUERY = 2 "Query" ByText;
    STOP = 3 "Stop" Single;
    ROTATE = 4 "Rotate" Single;
    INTVAR = 5 "Intvar" Before;
    LOAD = 6 "Load" Single;
    SLAVE = 7 "Slave" Single;
    CREATE_FILE = 8 "Create_file" Single;
    APPEND_BLOCK = 9 "Append_block" Before;
    EXEC_LOAD = 10 "Exec_load" Single;
    DELETE_FILE = 11 "Delete_file" Single;
    NEW_LOAD = 12 "New_load" Single;
    RAND = 13 "RAND" Before;
    USER_VAR = 14 "User var" Before;
    FORMAT_DESCRIPTION = 15 "Format_desc" Single;
    XID = 16 "Xid" Ends;
    BEGIN_LOAD_QUERY = 17 "Begin_load_query" Before;
    EXECUTE_LOAD_QUERY = 18 "Execute_load_query" Single;
    TABLE_MAP = 19 "Table_map" Before;
    WRITE_ROWS_V1 = 23 "Write_rows_v1" Single;
    UPDATE_ROWS_V1 = 24 "Update_rows_v1" Single;
    DELETE_ROWS_V1 = 25 "Delete_rows_v1" Single;
    INCIDENT = 26 "Incident" Single;
    HEARTBEAT = 27 "Heartbeat" Single;
    IGNORABLE = 28 "Ignorable" Single;
    ROWS_QUERY = 29 "MySQL Rows_query" Single;
    WRITE_ROWS_V2 = 30 "Write_rows" Single;
    UPDATE_ROWS_V2 = 31 "Update_rows" Single;
    DELETE_ROWS_V2 = 32 "Delete_rows" Single;
    XA_PREPARE = 38 "XA_prepare" Ends;
    ANNOTATE_ROWS = 160 "Annotate_rows" Before;
    BINLOG_CHECKPOINT = 161 "Binlog_checkpoint" Single;
    GTID = 162 "Gtid" Single;
    GTID_LIST = 163 "Gtid_list" Single;
    START_ENCRYPTION = 164 "Start_encryption" Single;
    QUERY_COMPRESSED = 165 "Query_compressed" Single;
    WRITE_ROWS_COMPRESSED_V1 = 166 "Write_rows_compressed_v1" Single;
    UPDATE_ROWS_COMPRESSED_V1 = 167 "Update_rows_compressed_v1" Single;
    DELETE_ROWS_COMPRESSED_V1 = 168 "Delete_rows_compressed_v1" Single;
    WRITE_ROWS_COMPRESSED = 169 "Write_rows_compressed" Single;
    UPDATE_ROWS_COMPRESSED = 170 "Update_rows_compressed" Single;
    DELETE_ROWS_COMPRESSED = 171 "Delete_rows_compressed" Single;
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}
