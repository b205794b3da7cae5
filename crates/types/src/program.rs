//! Attributes of stored programs.

/// The kind of a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoutineKind {
    Procedure,
    Function,
}

/// The declared use of tables by a routine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataAccess {
    #[default]
    ContainsSql,
    NoSql,
    ReadsSqlData,
    ModifiesSqlData,
}

/// Whether a trigger runs before or after the change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriggerTiming {
    Before,
    After,
}

/// The change of a row for which a trigger runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriggerEvent {
    Insert,
    Update,
    Delete,
}

/// Whether the scheduler runs an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStatus {
    Enabled,
    Disabled,
    /// DISABLE ON SLAVE: the event was created on a source.
    SlavesideDisabled,
}

/// Implements `ALL` and the words of an enum. The order of `ALL` is its numbers on disk.
macro_rules! words {
    ($of:ident: $($variant:ident = $word:literal,)*) => {
        impl $of {
            /// All values, in the order of their numbers on disk.
            pub const ALL: &'static [$of] = &[$($of::$variant,)*];

            /// Returns MariaDB's word.
            pub const fn name(self) -> &'static str {
                match self { $($of::$variant => $word,)* }
            }
        }
    };
}

words! { RoutineKind:
    Procedure = "PROCEDURE",
    Function = "FUNCTION",
}

words! { DataAccess:
    ContainsSql = "CONTAINS SQL",
    NoSql = "NO SQL",
    ReadsSqlData = "READS SQL DATA",
    ModifiesSqlData = "MODIFIES SQL DATA",
}

words! { TriggerTiming:
    Before = "BEFORE",
    After = "AFTER",
}

words! { TriggerEvent:
    Insert = "INSERT",
    Update = "UPDATE",
    Delete = "DELETE",
}

words! { EventStatus:
    Enabled = "ENABLED",
    Disabled = "DISABLED",
    SlavesideDisabled = "SLAVESIDE_DISABLED",
}
