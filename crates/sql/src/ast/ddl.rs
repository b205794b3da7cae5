//! Databases, tables, indexes.

use super::{DataType, Expr, ObjectName, Query};

/// Behaviour of CREATE if the object exists.
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
    /// Name of the database; `None` is the current one.
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
    /// LIKE other. If set, the fields below are empty.
    pub like: Option<ObjectName>,
    pub columns: Vec<ColumnDef>,
    /// Keys declared inline and separately, in the order written (`id INT PRIMARY KEY` is one of them).
    pub keys: Vec<KeyDef>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Check>,
    pub options: Vec<TableOption>,
    /// AS SELECT.
    pub query: Option<CreateSelect>,
    /// Set for CREATE SEQUENCE. Then only the options are filled, too.
    pub sequence: Option<super::SequenceOptions>,
}

/// `[IGNORE|REPLACE] [AS] SELECT` at the end of CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSelect {
    pub on_duplicate: OnDuplicate,
    pub query: Box<Query>,
}

/// Action for a row whose key exists.
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
    /// NULL or NOT NULL; `None` if not written.
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
    /// Any other expression. `text` is its source.
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

impl KeyKind {
    /// Words before KEY or INDEX, and the kinds that they declare.
    pub(crate) const WORDS: [(&str, KeyKind); 3] =
        [("UNIQUE", KeyKind::Unique), ("FULLTEXT", KeyKind::FullText), ("SPATIAL", KeyKind::Spatial)];

    /// Returns whether USING may request the structure of this kind of key.
    pub(crate) fn has_structure(self) -> bool {
        !matches!(self, KeyKind::FullText | KeyKind::Spatial)
    }
}

/// A key of CREATE TABLE, ALTER TABLE ADD, CREATE INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDef {
    pub kind: KeyKind,
    /// Name of the key, or of the constraint. If `None`, the server chooses one.
    pub name: Option<String>,
    pub if_not_exists: bool,
    pub parts: Vec<KeyPart>,
    pub options: KeyOptions,
    /// True if the key was added for a foreign key. Another key may replace it.
    pub generated: bool,
}

/// A column of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    pub column: String,
    /// Prefix length, in characters (bytes for binary types).
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
    /// Name of the constraint, or of the key.
    pub name: Option<String>,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub references: ObjectName,
    pub referenced_columns: Vec<String>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

/// Referential action of a foreign key.
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
    /// [DEFAULT] CHARACTER SET; `None` is DEFAULT.
    Charset(Option<String>),
    Collate(String),
    Comment(String),
    /// Upper case: DEFAULT, DYNAMIC, COMPACT, ...
    RowFormat(String),
    /// Engine-specific option: name and value as written. The value is `None` for DEFAULT.
    OfEngine {
        name: String,
        value: Option<String>,
    },
    /// Any other known option, with its name in upper case (STATS_PERSISTENT, KEY_BLOCK_SIZE, MAX_ROWS, ...)
    /// and its value as text. SHOW CREATE TABLE prints some of them; none changes the behaviour.
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
    /// DROP VIEW.
    pub view: bool,
    /// DROP SEQUENCE.
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

/// Position of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPosition {
    /// Not written: last for ADD, unchanged for MODIFY and CHANGE.
    Unspecified,
    First,
    After(String),
}

/// One action of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// ADD COLUMN. Keys declared inline with the column follow as AddKey.
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
    /// ALTER COLUMN c SET DEFAULT x, or DROP DEFAULT (`None`).
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
    /// ORDER BY: accepted without effect.
    OrderBy(Vec<String>),
}
