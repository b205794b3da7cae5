//! CREATE TABLE and its parts, which ALTER TABLE shares.

use cohort_types::{SqlError, SqlResult, TypeKind, Value};

use super::{Parser, is_too_long};
use crate::ast::{
    Check, ColumnDef, ColumnDefault, CreateMode, CreateSelect, CreateTable, DataType, Expr, ForeignKey,
    Generated, KeyDef, KeyKind, KeyOptions, KeyPart, ObjectName, OnDuplicate, ReferenceAction, Statement,
    TableOption, UnaryOp,
};
use crate::lexer::Kind;

/// The elements in the parentheses of CREATE TABLE.
#[derive(Default)]
pub(super) struct Elements {
    pub columns: Vec<ColumnDef>,
    pub keys: Vec<KeyDef>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Check>,
    /// Whether a column is changed by ALTER TABLE: REFERENCES is not allowed.
    is_change: bool,
}

impl Elements {
    /// Returns empty elements for a column that ALTER TABLE changes.
    pub(super) fn of_changed_column() -> Elements {
        Elements { is_change: true, ..Elements::default() }
    }
}

/// Options of MariaDB that have no effect here.
const OTHER_OPTIONS: &[&str] = &[
    "AVG_ROW_LENGTH",
    "CHECKSUM",
    "CONNECTION",
    "DELAY_KEY_WRITE",
    "ENCRYPTED",
    "ENCRYPTION_KEY_ID",
    "IETF_QUOTES",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
    "PACK_KEYS",
    "PAGE_CHECKSUM",
    "PASSWORD",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLE_CHECKSUM",
    "TABLESPACE",
    "TRANSACTIONAL",
];

/// Options of MariaDB's InnoDB. They may be quoted, and SHOW CREATE TABLE quotes them.
const ENGINE_OPTIONS: &[&str] = &["PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL"];

impl Parser<'_> {
    /// Parses the rest of CREATE TABLE after [OR REPLACE] [TEMPORARY] TABLE.
    pub(super) fn create_table(&mut self, or_replace: bool, temporary: bool) -> SqlResult<Statement> {
        let mode = self.create_mode(or_replace)?;
        let name = self.object_name()?;
        let mut table = CreateTable {
            mode,
            temporary,
            name,
            like: None,
            columns: Vec::new(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            options: Vec::new(),
            query: None,
            sequence: None,
        };
        if self.eat_word("LIKE") {
            table.like = Some(self.object_name()?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.kind() == Kind::LeftParen && self.is_word_at(1, "LIKE") {
            self.advance();
            self.advance();
            table.like = Some(self.object_name()?);
            self.expect(Kind::RightParen)?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.kind() == Kind::LeftParen && !self.query_follows(1) {
            self.advance();
            let mut elements = Elements::default();
            self.list(|p| p.table_element(&mut elements))?;
            self.expect(Kind::RightParen)?;
            table.columns = elements.columns;
            table.keys = elements.keys;
            table.foreign_keys = elements.foreign_keys;
            table.checks = elements.checks;
        }
        while let Some(option) = self.table_option()? {
            table.options.push(option);
            self.eat(Kind::Comma);
        }
        if self.is_any(&["PARTITION", "PARTITIONS"]) {
            return Err(self.unsupported("PARTITION BY"));
        }
        table.query = self.create_select()?;
        if table.columns.is_empty() && table.query.is_none() {
            return Err(self.error());
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// Parses IF NOT EXISTS. Error 1221 if OR REPLACE precedes it.
    pub(super) fn create_mode(&mut self, or_replace: bool) -> SqlResult<CreateMode> {
        let if_not_exists = self.eat_words(&["IF", "NOT", "EXISTS"]);
        if or_replace && if_not_exists {
            return Err(SqlError::wrong_usage("OR REPLACE", "IF NOT EXISTS"));
        }
        if or_replace {
            return Ok(CreateMode::OrReplace);
        }
        Ok(if if_not_exists { CreateMode::IfNotExists } else { CreateMode::Create })
    }

    fn create_select(&mut self) -> SqlResult<Option<CreateSelect>> {
        let on_duplicate = match () {
            () if self.eat_word("IGNORE") => OnDuplicate::Ignore,
            () if self.eat_word("REPLACE") => OnDuplicate::Replace,
            () => OnDuplicate::Error,
        };
        let as_word = self.eat_word("AS");
        if as_word || on_duplicate != OnDuplicate::Error || self.query_follows(0) || self.is("VALUES") {
            let start = self.at;
            let query = Box::new(self.query()?);
            if !query.into.is_empty() {
                let into = (start..self.at)
                    .rev()
                    .find(|at| self.bytes(self.token_at(*at)).eq_ignore_ascii_case(b"INTO"));
                self.at = into.unwrap_or(self.at);
                return Err(self.error());
            }
            return Ok(Some(CreateSelect { on_duplicate, query }));
        }
        Ok(None)
    }

    fn table_element(&mut self, elements: &mut Elements) -> SqlResult<()> {
        if self.is_all(&["PERIOD", "FOR"]) {
            return Err(self.unsupported("PERIOD FOR"));
        }
        if self.at_key_or_constraint() {
            return self.key_or_constraint(elements);
        }
        let column = self.column_def(elements)?;
        elements.columns.push(column);
        Ok(())
    }

    pub(super) fn at_key_or_constraint(&self) -> bool {
        self.is_any(&["CONSTRAINT", "PRIMARY", "KEY", "INDEX", "FOREIGN", "CHECK"]) || self.key_word_follows()
    }

    /// Returns whether a word of [`ast::KeyKind::WORDS`] follows.
    pub(super) fn key_word_follows(&self) -> bool {
        KeyKind::WORDS.iter().any(|(word, _)| self.is(word))
    }

    pub(super) fn key_or_constraint(&mut self, elements: &mut Elements) -> SqlResult<()> {
        let (mut constraint, mut if_not_exists) = (None, false);
        if self.eat_word("CONSTRAINT") {
            if_not_exists = self.eat_words(&["IF", "NOT", "EXISTS"]);
            if self.is_name_at(0) {
                constraint = Some(self.name()?);
            }
            if !self.is_any(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
                return Err(self.error());
            }
        }
        if self.is("FOREIGN") {
            let key = self.foreign_key(constraint)?;
            elements.keys.push(generated_key(&key));
            elements.foreign_keys.push(key);
        } else if self.eat_word("CHECK") {
            let (expr, text) = self.parenthesised_text()?;
            elements.checks.push(Check { if_not_exists, name: constraint, expr, text });
        } else {
            let key = self.key_def(constraint)?;
            elements.keys.push(key);
        }
        Ok(())
    }

    /// Parses `(expr)`, and returns the text inside the parentheses, too.
    fn parenthesised_text(&mut self) -> SqlResult<(Expr, String)> {
        self.expect(Kind::LeftParen)?;
        let from = self.at;
        let expr = self.expr()?;
        let text = self.source_text(from);
        self.expect(Kind::RightParen)?;
        Ok((expr, text))
    }

    fn foreign_key(&mut self, constraint: Option<String>) -> SqlResult<ForeignKey> {
        self.expect_words(&["FOREIGN", "KEY"])?;
        let if_not_exists = self.eat_words(&["IF", "NOT", "EXISTS"]);
        let name = if self.is_name_at(0) { Some(self.name()?) } else { None };
        let columns = self.paren_list(Self::name)?;
        Ok(ForeignKey { if_not_exists, ..self.references(constraint.or(name), columns)? })
    }

    /// Parses REFERENCES and the clauses after it. MATCH has no effect.
    fn references(&mut self, name: Option<String>, columns: Vec<String>) -> SqlResult<ForeignKey> {
        self.expect_word("REFERENCES")?;
        let references = self.object_name()?;
        let referenced_columns =
            if self.kind() == Kind::LeftParen { self.paren_list(Self::name)? } else { Vec::new() };
        if self.eat_word("MATCH") && !self.eat_any(&["FULL", "PARTIAL", "SIMPLE"]) {
            return Err(self.error());
        }
        let (mut on_delete, mut on_update) = (ReferenceAction::Unspecified, ReferenceAction::Unspecified);
        loop {
            if self.eat_words(&["ON", "DELETE"]) {
                on_delete = self.reference_action()?;
            } else if self.eat_words(&["ON", "UPDATE"]) {
                on_update = self.reference_action()?;
            } else {
                break;
            }
        }
        let if_not_exists = false;
        Ok(ForeignKey { name, if_not_exists, columns, references, referenced_columns, on_delete, on_update })
    }

    fn reference_action(&mut self) -> SqlResult<ReferenceAction> {
        Ok(match () {
            () if self.eat_word("RESTRICT") => ReferenceAction::Restrict,
            () if self.eat_word("CASCADE") => ReferenceAction::Cascade,
            () if self.eat_words(&["SET", "NULL"]) => ReferenceAction::SetNull,
            () if self.eat_words(&["NO", "ACTION"]) => ReferenceAction::NoAction,
            () if self.eat_words(&["SET", "DEFAULT"]) => ReferenceAction::SetDefault,
            () => return Err(self.error()),
        })
    }

    // ---- keys

    /// Parses PRIMARY KEY, UNIQUE, KEY, INDEX, FULLTEXT or SPATIAL with name, parts and options.
    fn key_def(&mut self, constraint: Option<String>) -> SqlResult<KeyDef> {
        let kind = match self.upper_word()?.as_str() {
            "PRIMARY" => {
                self.expect_word("KEY")?;
                KeyKind::Primary
            }
            word => {
                let declared = KeyKind::WORDS.iter().find(|(known, _)| *known == word);
                declared.map_or(KeyKind::Plain, |(_, kind)| *kind)
            }
        };
        if !matches!(kind, KeyKind::Primary | KeyKind::Plain) {
            self.eat_any(&["KEY", "INDEX"]);
        }
        let if_not_exists = self.eat_words(&["IF", "NOT", "EXISTS"]);
        let mut options = KeyOptions::default();
        let mut name = constraint;
        if self.is_name_at(0) && !(self.is("TYPE") && self.peek(1).kind == Kind::Word) {
            let own = self.name()?;
            // The name of a primary key is always PRIMARY.
            name = Some(own);
        }
        if kind == KeyKind::Primary {
            name = None;
        }
        self.key_using(kind, &mut options)?;
        let parts = self.key_parts()?;
        self.key_options(kind, &mut options)?;
        Ok(KeyDef { kind, name, if_not_exists, parts, options, generated: false })
    }

    /// Parses USING, if the kind of key has it.
    pub(super) fn key_using(&mut self, kind: KeyKind, options: &mut KeyOptions) -> SqlResult<()> {
        if kind.has_structure() && self.eat_any(&["USING", "TYPE"]) {
            if !self.is_any(&["BTREE", "HASH", "RTREE"]) {
                return Err(self.error());
            }
            options.using = Some(self.upper_word()?);
        }
        Ok(())
    }

    pub(super) fn key_parts(&mut self) -> SqlResult<Vec<KeyPart>> {
        self.paren_list(|p| {
            let column = p.name()?;
            let mut length = None;
            if p.eat(Kind::LeftParen) {
                length = Some(u32::try_from(p.number()?).unwrap_or(u32::MAX));
                p.expect(Kind::RightParen)?;
            }
            let descending = p.eat_word("DESC");
            if !descending {
                p.eat_word("ASC");
            }
            Ok(KeyPart { column, length, descending })
        })
    }

    pub(super) fn key_options(&mut self, kind: KeyKind, options: &mut KeyOptions) -> SqlResult<()> {
        loop {
            match () {
                () if kind.has_structure() && self.is_any(&["USING", "TYPE"]) => {
                    self.key_using(kind, options)?;
                }
                () if self.eat_word("COMMENT") => options.comment = Some(self.text()?),
                () if self.eat_word("KEY_BLOCK_SIZE") => {
                    self.eat(Kind::Equal);
                    options.block_size = Some(self.number()?);
                }
                () if self.eat_word("IGNORED") => options.ignored = true,
                () if self.eat_words(&["NOT", "IGNORED"]) => options.ignored = false,
                () if self.is_all(&["WITH", "PARSER"]) => return Err(self.unsupported("WITH PARSER")),
                () => return Ok(()),
            }
        }
    }

    // ---- columns

    /// Parses a column. Its inline keys, references and so on are added to `elements`.
    pub(super) fn column_def(&mut self, elements: &mut Elements) -> SqlResult<ColumnDef> {
        let name = self.name()?;
        if is_too_long(&name) {
            return Err(SqlError::too_long_identifier(&name));
        }
        let mut column = ColumnDef {
            name,
            data_type: DataType::plain(TypeKind::BigInt),
            nullable: None,
            default: None,
            on_update: None,
            auto_increment: false,
            comment: None,
            invisible: false,
            check: None,
            generated: None,
        };
        if self.eat_word("SERIAL") {
            column.data_type.unsigned = true;
            column.nullable = Some(false);
            column.auto_increment = true;
            elements.keys.push(inline_key(KeyKind::Unique, &column.name));
        } else {
            column.data_type = self.data_type()?;
        }
        while self.column_attribute(&mut column, elements)? {}
        Ok(column)
    }

    /// Parses one attribute of a column. Returns false if there is none.
    fn column_attribute(&mut self, column: &mut ColumnDef, elements: &mut Elements) -> SqlResult<bool> {
        // A generated column has no default and no NULL attribute.
        let is_generated = column.generated.is_some();
        // CHECK is the last attribute of a column.
        if column.check.is_some() && !self.is("REFERENCES") {
            return Ok(false);
        }
        if is_generated
            && !self.is_any(&["UNIQUE", "COMMENT", "INVISIBLE", "CHECK", "CONSTRAINT", "REFERENCES"])
        {
            return Ok(false);
        }
        match () {
            () if self.eat_words(&["NOT", "NULL"]) => column.nullable = Some(false),
            () if self.eat_word("NULL") => column.nullable = Some(true),
            () if self.eat_word("DEFAULT") => column.default = Some(self.column_default()?),
            () if self.eat_words(&["ON", "UPDATE"]) => column.on_update = Some(self.clock_digits()?),
            // The column is nullable only if NULL follows.
            () if self.eat_word("AUTO_INCREMENT") => {
                (column.nullable, column.auto_increment) =
                    (column.nullable.filter(|nullable| !nullable), true);
            }
            () if self.eat_words(&["SERIAL", "DEFAULT", "VALUE"]) => {
                (column.nullable, column.auto_increment) = (Some(false), true);
                elements.keys.push(inline_key(KeyKind::Unique, &column.name));
            }
            () if self.eat_words(&["PRIMARY", "KEY"]) || self.eat_word("KEY") => {
                elements.keys.push(inline_key(KeyKind::Primary, &column.name));
            }
            () if self.eat_word("UNIQUE") => {
                self.eat_word("KEY");
                elements.keys.push(inline_key(KeyKind::Unique, &column.name));
            }
            () if self.eat_word("COMMENT") => column.comment = Some(self.text()?),
            () if self.eat_word("COLLATE") => column.data_type.collation = Some(self.collation_word()?),
            () if self.eat_word("INVISIBLE") => column.invisible = true,
            () if self.is_any(&["CHECK", "CONSTRAINT"]) => {
                if self.eat_word("CONSTRAINT") && !self.is("CHECK") {
                    self.name()?;
                }
                self.expect_word("CHECK")?;
                column.check = Some(self.parenthesised_text()?.0);
            }
            () if self.is("REFERENCES") && !elements.is_change => {
                let key = self.references(None, vec![column.name.clone()])?;
                elements.keys.push(generated_key(&key));
                elements.foreign_keys.push(key);
            }
            () if self.is("AS") || self.is_all(&["GENERATED", "ALWAYS"]) => self.generated(column)?,
            () if self.is_all(&["WITH", "SYSTEM"]) || self.is_all(&["WITHOUT", "SYSTEM"]) => {
                return Err(self.unsupported("SYSTEM VERSIONING"));
            }
            () => return Ok(false),
        }
        Ok(true)
    }

    fn generated(&mut self, column: &mut ColumnDef) -> SqlResult<()> {
        self.eat_words(&["GENERATED", "ALWAYS"]);
        self.expect_word("AS")?;
        if self.eat_word("ROW") {
            return Err(self.unsupported("SYSTEM VERSIONING"));
        }
        let (expr, text) = self.parenthesised_text()?;
        let stored = self.eat_any(&["PERSISTENT", "STORED"]);
        if !stored {
            self.eat_word("VIRTUAL");
        }
        column.generated = Some(Generated { expr, text, stored });
        Ok(())
    }

    pub(super) fn column_default(&mut self) -> SqlResult<ColumnDefault> {
        let from = self.at;
        let expr = self.primary_expr()?;
        Ok(match expr {
            Expr::Function { name, args } if name == "now" => ColumnDefault::CurrentTimestamp(digits(&args)),
            Expr::Literal(_) => ColumnDefault::Literal(expr),
            Expr::Unary { op: UnaryOp::Negate, expr: ref inner } if matches!(**inner, Expr::Literal(_)) => {
                ColumnDefault::Literal(expr)
            }
            expr => ColumnDefault::Expr { expr, text: self.source_text(from) },
        })
    }

    /// Parses CURRENT_TIMESTAMP[(n)] or a synonym, and returns n.
    fn clock_digits(&mut self) -> SqlResult<u8> {
        let start = self.at;
        match self.primary_expr()? {
            Expr::Function { name, args } if name == "now" => Ok(digits(&args)),
            _ => Err(self.error_at(start)),
        }
    }

    // ---- table options

    /// Parses one table option. Returns `None` if there is none.
    pub(super) fn table_option(&mut self) -> SqlResult<Option<TableOption>> {
        let start = self.at;
        let default = self.eat_word("DEFAULT");
        if self.charset_words() {
            self.eat(Kind::Equal);
            let charset = if self.eat_word("DEFAULT") { None } else { Some(self.charset_word()?) };
            return Ok(Some(TableOption::Charset(charset)));
        }
        if self.eat_word("COLLATE") {
            self.eat(Kind::Equal);
            return Ok(Some(TableOption::Collate(self.collation_word()?)));
        }
        if default {
            self.at = start;
            return Err(self.error_at(start + 1));
        }
        Ok(Some(match () {
            () if self.eat_word("ENGINE") => {
                self.eat(Kind::Equal);
                TableOption::Engine(self.name_or_text()?)
            }
            () if self.eat_word("AUTO_INCREMENT") => {
                self.eat(Kind::Equal);
                TableOption::AutoIncrement(self.number()?)
            }
            () if self.eat_word("COMMENT") => {
                self.eat(Kind::Equal);
                TableOption::Comment(self.text()?)
            }
            () if self.eat_word("ROW_FORMAT") => {
                self.eat(Kind::Equal);
                TableOption::RowFormat(self.upper_word()?)
            }
            () if self.is_any(OTHER_OPTIONS) => {
                let name = self.upper_word()?;
                self.eat(Kind::Equal);
                TableOption::Other { name, value: self.option_value()? }
            }
            () if self.is_engine_option() => {
                let name = self.name()?;
                self.eat(Kind::Equal);
                TableOption::OfEngine { name, value: self.engine_value()? }
            }
            () if self.is_all(&["DATA", "DIRECTORY"]) || self.is_all(&["INDEX", "DIRECTORY"]) => {
                let name = format!("{} {}", self.upper_word()?, self.upper_word()?);
                self.eat(Kind::Equal);
                TableOption::Other { name, value: self.text()? }
            }
            () if self.is_all(&["WITH", "SYSTEM"]) => return Err(self.unsupported("SYSTEM VERSIONING")),
            () if self.is("UNION") && self.peek(1).kind == Kind::Equal => {
                return Err(self.unsupported("UNION tables"));
            }
            // An unknown option: error 1911, or a warning.
            () if self.is_name_at(0) && !self.is("TYPE") && self.peek(1).kind == Kind::Equal => {
                let name = self.name()?;
                self.advance();
                TableOption::OfEngine { name, value: self.engine_value()? }
            }
            () => return Ok(None),
        }))
    }

    fn is_engine_option(&self) -> bool {
        let is = |name: &String| ENGINE_OPTIONS.iter().any(|known| known.eq_ignore_ascii_case(name));
        self.is_name_at(0) && is(&self.name_of(self.peek(0)))
    }

    /// Parses a number, string or name as text; `None` for DEFAULT.
    fn engine_value(&mut self) -> SqlResult<Option<String>> {
        if self.eat_word("DEFAULT") {
            return Ok(None);
        }
        match self.kind() {
            Kind::Integer => self.number().map(|number| Some(number.to_string())),
            _ => self.name_or_text().map(Some),
        }
    }

    /// Parses a number, string or word as text.
    fn option_value(&mut self) -> SqlResult<String> {
        match self.kind() {
            Kind::Integer => Ok(self.number()?.to_string()),
            Kind::Text => self.text(),
            Kind::Word => self.upper_word(),
            _ => Err(self.error()),
        }
    }

    /// Parses a list of tables: `a, b.c`.
    pub(super) fn object_names(&mut self) -> SqlResult<Vec<ObjectName>> {
        self.list(Self::object_name)
    }
}

fn inline_key(kind: KeyKind, column: &str) -> KeyDef {
    let part = KeyPart { column: column.to_string(), length: None, descending: false };
    KeyDef {
        kind,
        name: None,
        if_not_exists: false,
        parts: vec![part],
        options: KeyOptions::default(),
        generated: false,
    }
}

/// Returns the definition of the index that a foreign key requires.
fn generated_key(key: &ForeignKey) -> KeyDef {
    let part = |column: &String| KeyPart { column: column.clone(), length: None, descending: false };
    KeyDef {
        kind: KeyKind::Plain,
        name: key.name.clone(),
        if_not_exists: key.if_not_exists,
        parts: key.columns.iter().map(part).collect(),
        options: KeyOptions::default(),
        generated: true,
    }
}

/// Returns the argument of NOW(n).
fn digits(args: &[Expr]) -> u8 {
    match args {
        [Expr::Literal(literal)] => match literal.value {
            Value::Int(n) => u8::try_from(n).unwrap_or(u8::MAX),
            _ => 0,
        },
        _ => 0,
    }
}
