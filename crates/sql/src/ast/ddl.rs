//! Databases, tables, indexes.

use super::{DataType, Expr, ObjectName, Query};

/// What CREATE says about an object that may exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// Error if it exists.
    Create,
    /// IF NOT EXISTS.
    IfNotExists,
    /// OR REPLACE.
    OrReplace,
}

/// CHARACTER SET, COLLATE, COMMENT of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub comment: Option<String>,
}

/// CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDatabase {
    pub mode: CreateMode,
    pub name: String,
    pub options: DatabaseOptions,
}

/// ALTER DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterDatabase {
    /// None: the current one.
    pub name: Option<String>,
    pub options: DatabaseOptions,
}

/// DROP DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropDatabase {
    pub if_exists: bool,
    pub name: String,
}

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub mode: CreateMode,
    pub temporary: bool,
    pub name: ObjectName,
    /// LIKE other: then nothing else is filled.
    pub like: Option<ObjectName>,
    pub columns: Vec<ColumnDef>,
    /// Keys of both notations, in the order written (`id INT PRIMARY KEY` gives one here).
    pub keys: Vec<KeyDef>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Check>,
    pub options: Vec<TableOption>,
    /// AS SELECT.
    pub query: Option<CreateSelect>,
    /// CREATE SEQUENCE instead: of the rest only the options are filled.
    pub sequence: Option<super::SequenceOptions>,
}

/// `[IGNORE|REPLACE] [AS] SELECT` at the end of CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSelect {
    pub on_duplicate: OnDuplicate,
    pub query: Box<Query>,
}

/// What happens to a row whose key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    Error,
    Ignore,
    Replace,
}

/// A column. Inline PRIMARY KEY, UNIQUE and KEY become entries of `keys`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: String,
    pub data_type: DataType,
    /// NULL or NOT NULL; None when not written.
    pub nullable: Option<bool>,
    pub default: Option<ColumnDefault>,
    /// ON UPDATE CURRENT_TIMESTAMP(n): fraction digits n.
    pub on_update: Option<u8>,
    pub auto_increment: bool,
    pub comment: Option<String>,
    pub invisible: bool,
    /// Inline CHECK.
    pub check: Option<Expr>,
    pub generated: Option<Generated>,
}

/// DEFAULT of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnDefault {
    /// A literal (possibly signed, then `Expr::Unary`) or NULL.
    Literal(Expr),
    /// CURRENT_TIMESTAMP(n), NOW(n), LOCALTIME...: fraction digits n.
    CurrentTimestamp(u8),
    /// Anything else; `text` as typed.
    Expr { expr: Expr, text: String },
}

/// `[GENERATED ALWAYS] AS (expr) [VIRTUAL|PERSISTENT|STORED]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub expr: Expr,
    pub text: String,
    pub stored: bool,
}

/// The kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Primary,
    Unique,
    /// KEY, INDEX.
    Plain,
    FullText,
    Spatial,
}

/// A key of CREATE TABLE, ALTER TABLE ADD, CREATE INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDef {
    pub kind: KeyKind,
    /// The key's name, else the constraint's, else None (the server names it).
    pub name: Option<String>,
    pub if_not_exists: bool,
    pub parts: Vec<KeyPart>,
    pub options: KeyOptions,
    /// Not written: a foreign key wants it, unless another key can take its place.
    pub generated: bool,
}

/// A column of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    pub column: String,
    /// Prefix length, in characters (bytes of binary types).
    pub length: Option<u32>,
    pub descending: bool,
}

/// USING, COMMENT, KEY_BLOCK_SIZE of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyOptions {
    /// BTREE, HASH or RTREE, upper case.
    pub using: Option<String>,
    pub comment: Option<String>,
    pub block_size: Option<u64>,
    /// IGNORED.
    pub ignored: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The constraint's name, else the key's.
    pub name: Option<String>,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub references: ObjectName,
    pub referenced_columns: Vec<String>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

/// What a foreign key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceAction {
    /// Not written: RESTRICT.
    Unspecified,
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// A table-level CHECK.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// ADD CONSTRAINT IF NOT EXISTS.
    pub if_not_exists: bool,
    pub name: Option<String>,
    pub expr: Expr,
    pub text: String,
}

/// A table option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableOption {
    Engine(String),
    AutoIncrement(u64),
    /// [DEFAULT] CHARACTER SET; None for DEFAULT.
    Charset(Option<String>),
    Collate(String),
    Comment(String),
    /// Upper case: DEFAULT, DYNAMIC, COMPACT, ...
    RowFormat(String),
    /// An option of the engine: name and value as written; no value: DEFAULT.
    OfEngine {
        name: String,
        value: Option<String>,
    },
    /// Any other known option, name in upper case (STATS_PERSISTENT, KEY_BLOCK_SIZE, MAX_ROWS, ...), value as
    /// text. SHOW CREATE TABLE prints some of them; none changes behaviour.
    Other {
        name: String,
        value: String,
    },
}

/// DROP TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTable {
    pub temporary: bool,
    pub if_exists: bool,
    pub names: Vec<ObjectName>,
    /// DROP VIEW instead.
    pub view: bool,
    /// DROP SEQUENCE instead.
    pub sequence: bool,
}

/// RENAME TABLE a TO b, ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameTable {
    pub if_exists: bool,
    pub renames: Vec<(ObjectName, ObjectName)>,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex {
    pub mode: CreateMode,
    pub table: ObjectName,
    pub key: KeyDef,
    pub alter: AlterOptions,
}

/// DROP INDEX name ON table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIndex {
    pub if_exists: bool,
    pub name: String,
    pub table: ObjectName,
    pub alter: AlterOptions,
}

/// ALGORITHM= and LOCK=, upper case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlterOptions {
    pub algorithm: Option<String>,
    pub lock: Option<String>,
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub ignore: bool,
    pub if_exists: bool,
    pub table: ObjectName,
    pub actions: Vec<AlterAction>,
    pub alter: AlterOptions,
}

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPosition {
    /// Not written: last for ADD, unmoved for MODIFY and CHANGE.
    Unspecified,
    First,
    After(String),
}

/// One action of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// Keys that the column definition carried inline follow as AddKey.
    AddColumn {
        if_not_exists: bool,
        column: ColumnDef,
        position: ColumnPosition,
    },
    DropColumn {
        if_exists: bool,
        name: String,
    },
    ModifyColumn {
        if_exists: bool,
        column: ColumnDef,
        position: ColumnPosition,
    },
    ChangeColumn {
        if_exists: bool,
        old_name: String,
        column: ColumnDef,
        position: ColumnPosition,
    },
    RenameColumn {
        if_exists: bool,
        old_name: String,
        new_name: String,
    },
    /// ALTER COLUMN c SET DEFAULT x, or DROP DEFAULT (None).
    SetDefault {
        if_exists: bool,
        column: String,
        default: Option<ColumnDefault>,
    },
    AddKey(KeyDef),
    AddForeignKey(ForeignKey),
    AddCheck(Check),
    DropKey {
        if_exists: bool,
        name: String,
    },
    DropPrimaryKey {
        if_exists: bool,
    },
    DropForeignKey {
        if_exists: bool,
        name: String,
    },
    DropConstraint {
        if_exists: bool,
        name: String,
    },
    /// ALTER INDEX name [NOT] IGNORED.
    SetKeyIgnored {
        if_exists: bool,
        name: String,
        ignored: bool,
    },
    RenameKey {
        if_exists: bool,
        old_name: String,
        new_name: String,
    },
    RenameTable(ObjectName),
    /// ENGINE, AUTO_INCREMENT, COMMENT, [DEFAULT] CHARACTER SET, ...
    Option(TableOption),
    ConvertCharset {
        charset: Option<String>,
        collation: Option<String>,
    },
    EnableKeys,
    DisableKeys,
    /// FORCE: rebuild.
    Force,
    /// ORDER BY: accepted.
    OrderBy(Vec<String>),
}
