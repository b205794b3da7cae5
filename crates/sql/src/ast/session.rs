//! Transactions, SET, PREPARE, LOCK TABLES, XA, KILL.

use super::{Account, Expr, ObjectName, SignalItem, Target, VariableScope};

/// READ ONLY or READ WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    ReadOnly,
    ReadWrite,
}

/// BEGIN [WORK] or START TRANSACTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    pub access: Option<AccessMode>,
    pub consistent_snapshot: bool,
}

/// Behaviour after COMMIT or ROLLBACK. `None` uses `completion_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// AND [NO] CHAIN.
    pub chain: Option<bool>,
    /// [NO] RELEASE.
    pub release: Option<bool>,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A table of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTable {
    pub table: ObjectName,
    pub alias: Option<String>,
    pub mode: TableLockMode,
}

/// READ, READ LOCAL, WRITE, LOW_PRIORITY WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLockMode {
    Read,
    ReadLocal,
    Write,
}

/// One assignment of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    UserVariable {
        name: String,
        value: Expr,
    },
    /// A system variable. The name is in lower case and may contain a dot (`cache.key_buffer_size`).
    Variable {
        scope: VariableScope,
        name: String,
        value: SetValue,
    },
    /// SET NAMES charset [COLLATE c]. Charset `None` is DEFAULT.
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// SET CHARACTER SET name. `None` is DEFAULT.
    CharacterSet(Option<String>),
    /// `SET PASSWORD [FOR account] = ...`. Account `None` is the session's own account.
    Password {
        account: Option<Account>,
        password: PasswordValue,
    },
    /// `SET [scope] TRANSACTION ...`. An unspecified scope sets the next transaction only.
    Transaction {
        scope: VariableScope,
        isolation: Option<IsolationLevel>,
        access: Option<AccessMode>,
    },
    /// SET ROLE name. `None` is NONE.
    Role(Option<String>),
    /// SET DEFAULT ROLE name [FOR account]. `None` is NONE. The role is a name without a host, or
    /// CURRENT_ROLE.
    DefaultRole {
        role: Option<super::Account>,
        account: Option<super::Account>,
    },
}

/// A value for a system variable.
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    /// DEFAULT.
    Default,
    /// A bare word such as ON, OFF, ROW, utf8mb4.
    Word(String),
    Expr(Expr),
}

/// New password of SET PASSWORD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordValue {
    /// PASSWORD('text') or OLD_PASSWORD('text'): the text will be hashed.
    Plain(String),
    /// 'hash': stored unchanged.
    Hash(String),
}

/// Source of the text of PREPARE.
#[derive(Clone, Debug, PartialEq)]
pub enum PrepareSource {
    Text(Vec<u8>),
    UserVariable(String),
    Expr(Expr),
}

/// GET DIAGNOSTICS.
#[derive(Clone, Debug, PartialEq)]
pub enum GetDiagnostics {
    /// Information about the previous statement.
    Statement(Vec<(Target, StatementInfo)>),
    /// Information about one of its conditions.
    Condition { number: Expr, items: Vec<(Target, ConditionInfo)> },
}

/// Statement information of GET DIAGNOSTICS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementInfo {
    Number,
    RowCount,
}

/// Condition information of GET DIAGNOSTICS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionInfo {
    Errno,
    Sqlstate,
    MessageText,
    /// Number of the statement's row that caused the condition, 0 if none did.
    RowNumber,
    /// The name of a class, a table or a constraint, which only SIGNAL sets.
    Named(&'static str),
}

impl StatementInfo {
    /// Returns the item of a word in upper case.
    pub fn of_word(word: &str) -> Option<StatementInfo> {
        match word {
            "NUMBER" => Some(StatementInfo::Number),
            "ROW_COUNT" => Some(StatementInfo::RowCount),
            _ => None,
        }
    }
}

impl ConditionInfo {
    /// Returns the item of a word in upper case.
    pub fn of_word(word: &str) -> Option<ConditionInfo> {
        match word {
            "MYSQL_ERRNO" => Some(ConditionInfo::Errno),
            "RETURNED_SQLSTATE" => Some(ConditionInfo::Sqlstate),
            "MESSAGE_TEXT" => Some(ConditionInfo::MessageText),
            "ROW_NUMBER" => Some(ConditionInfo::RowNumber),
            _ => {
                let names = SignalItem::ALL.into_iter().filter(|(_, item)| !item.is_of_server());
                names.map(|(name, _)| name).find(|name| *name == word).map(ConditionInfo::Named)
            }
        }
    }
}

/// KILL.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// True for a hard kill, false for SOFT.
    pub hard: bool,
    pub target: KillTarget,
}

/// Target of KILL.
#[derive(Clone, Debug, PartialEq)]
pub enum KillTarget {
    Connection(Expr),
    /// QUERY n.
    Query(Expr),
    /// QUERY ID n.
    QueryId(Expr),
    /// [CONNECTION] USER account.
    ConnectionsOf(Account),
    /// QUERY USER account.
    QueriesOf(Account),
}

impl Kill {
    /// Returns the number of the connection or query, if the statement has one.
    pub fn number(&self) -> Option<&Expr> {
        match &self.target {
            KillTarget::Connection(number) | KillTarget::Query(number) | KillTarget::QueryId(number) => {
                Some(number)
            }
            KillTarget::ConnectionsOf(_) | KillTarget::QueriesOf(_) => None,
        }
    }
}

/// An XA transaction's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct XaId {
    pub gtrid: Vec<u8>,
    pub bqual: Vec<u8>,
    /// 1 if not written.
    pub format_id: u32,
}

/// XA statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Xa {
    /// XA START or BEGIN [JOIN | RESUME].
    Start {
        xid: XaId,
        join: bool,
        resume: bool,
    },
    /// XA END [SUSPEND [FOR MIGRATE]].
    End {
        xid: XaId,
        suspend: bool,
    },
    Prepare(XaId),
    Commit {
        xid: XaId,
        one_phase: bool,
    },
    Rollback(XaId),
    /// XA RECOVER [FORMAT = 'SQL' | 'RAW'].
    Recover {
        sql_format: bool,
    },
}

/// A value of EXECUTE .. USING for a `?`.
#[derive(Clone, Debug, PartialEq)]
pub enum Using {
    Expr(Expr),
    Default,
    Ignore,
}
