//! Turns the description of a table into its definition.
//! [`TableDraft::finish`] checks everything and assigns the numbers.

use cohort_base::{CommitSeq, TableId};
use cohort_catalog::{Check, DefaultValue, Index, IndexColumn, ROWS, RowKey, Table, TableName};
use cohort_config::VarId;
use cohort_plan::same_name;
use cohort_session::StatementContext;
use cohort_sql::ast;
use cohort_types::{Collation, SqlError, SqlResult, TypeKind};

use super::foreign::{self};
use super::work::IDENTIFIER_CHARS_MAX;
use super::{key, rules};
use crate::draft::{COLUMNS_MAX, Described, DraftColumn, DraftKey, DraftPart, TableDraft};

const ROW_BYTES_MAX: u64 = 65_535;

/// Returns an error if `innodb_force_primary_key` requires a key and the table has none.
pub(super) fn check_has_key(ctx: &StatementContext<'_>, table: &Table) -> SqlResult<()> {
    let is_asked = ctx.session.settings.vars.globals().flag(VarId::InnodbForcePrimaryKey);
    if !is_asked || !table.engine.eq_ignore_ascii_case("InnoDB") {
        return Ok(());
    }
    match table.identifying_key() {
        Some(_) => Ok(()),
        None => Err(SqlError::requires_primary_key()),
    }
}

impl Described {
    /// Returns whether rows of the previous table may be duplicates in a unique key of the new one.
    pub(super) fn drops_duplicates(&self, before: &Table) -> bool {
        let is_new = |n: usize| match n {
            ROWS => self.table.has_primary_key() && !is_same_clustering(before, self),
            _ => self.table.indexes[n].kind.is_unique() && !is_same_index(before, self, n),
        };
        self.ignores && (0..self.table.indexes.len()).any(is_new)
    }
}

impl TableDraft {
    /// Creates a table without columns.
    pub(super) fn new(name: TableName, engine: String, collation: Collation, created_at: u64) -> TableDraft {
        TableDraft {
            name,
            engine,
            columns: Vec::new(),
            keys: Vec::new(),
            collation,
            comment: String::new(),
            auto_increment_start: 0,
            options: Vec::new(),
            created_at,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            triggers: Vec::new(),
        }
    }

    /// Creates a draft of an existing table.
    pub(super) fn of(table: &Table) -> TableDraft {
        let columns = table.columns.iter().enumerate().map(|(n, column)| DraftColumn {
            column: column.clone(),
            origin: Some(n),
            is_described: false,
        });
        let keys = table.indexes.iter().enumerate().filter(|(_, i)| i.kind.is_declared());
        let part = |p: &IndexColumn| DraftPart {
            column: table.columns[p.column].name.clone(),
            prefix: p.prefix,
            descending: p.descending,
            is_dropped: false,
        };
        let keys = keys.map(|(n, index)| DraftKey {
            name: Some(index.name.clone()),
            kind: key::declared_kind(index.kind),
            parts: index.columns.iter().map(part).collect(),
            comment: index.comment.clone(),
            ignored: index.ignored,
            using: index.using,
            generated: index.generated,
            origin: Some(n),
            lost: None,
        });
        TableDraft {
            name: table.name.clone(),
            engine: table.engine.clone(),
            columns: columns.collect(),
            keys: keys.collect(),
            collation: table.collation,
            comment: table.comment.clone(),
            auto_increment_start: table.auto_increment_start,
            options: table.options.clone(),
            created_at: table.created_at,
            checks: table.checks.clone(),
            foreign_keys: foreign::drafts_of(table),
            triggers: table.triggers.clone(),
        }
    }

    /// Adds a CHECK of the table; error 1826.
    pub(super) fn add_check(&mut self, ctx: &StatementContext<'_>, check: &ast::Check) -> SqlResult<()> {
        let name = check.name.clone().unwrap_or_default();
        if !name.is_empty() {
            if name.chars().count() > IDENTIFIER_CHARS_MAX {
                return Err(SqlError::too_long_identifier(&name));
            }
            let is_constraint = |key: &DraftKey| {
                (key.kind.is_unique() && !key.kind.is_primary() || key.generated)
                    && key.name.as_deref().is_some_and(|known| same_name(known, &name))
            };
            let is_taken = self.checks.iter().any(|known| same_name(&known.name, &name));
            if is_taken || self.keys.iter().any(is_constraint) {
                return Err(SqlError::duplicate_check(&name));
            }
        }
        let shown = if name.is_empty() { "CONSTRAINT_1" } else { &name };
        let text = rules::text_of(ctx.session, rules::Clause::Check, shown, &check.expr)?;
        self.checks.push(Check { name, text });
        Ok(())
    }

    /// Names the unnamed constraints CONSTRAINT_1 and so on.
    fn name_checks(&mut self) {
        for n in 0..self.checks.len() {
            if self.checks[n].name.is_empty() {
                let taken = |name: &String| self.checks.iter().any(|known| same_name(&known.name, name));
                let mut names = (1..).map(|i| format!("CONSTRAINT_{i}"));
                self.checks[n].name = names.find(|name| !taken(name)).expect("there are numbers enough");
            }
        }
    }

    /// Returns a column's position.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| same_name(&c.column.name, name))
    }

    /// Returns a key's position.
    pub(super) fn key(&self, name: &str) -> Option<usize> {
        self.keys.iter().position(|k| k.name.as_deref().is_some_and(|n| same_name(n, name)))
    }

    /// Checks everything and builds the table. Existing indexes keep their ids if `keep` allows it.
    pub(super) fn finish(
        mut self,
        ctx: &StatementContext<'_>,
        id: TableId,
        before: Option<&Table>,
    ) -> SqlResult<Described> {
        self.check_columns()?;
        key::drop_superfluous(&mut self);
        key::name_keys(&mut self.keys)?;
        key::check_keys(ctx, &mut self)?;
        self.check_invisible()?;
        self.check_auto_increment()?;
        self.check_row_size()?;
        key::sort_keys(&mut self);
        self.name_checks();
        foreign::name_all(&mut self);
        let described = self.describe(ctx, id, before);
        check_has_key(ctx, &described.table)?;
        rules::check(ctx, &described.table)?;
        Ok(described)
    }

    fn check_columns(&mut self) -> SqlResult<()> {
        if self.columns.is_empty() {
            return Err(SqlError::table_without_columns());
        }
        if self.columns.len() > COLUMNS_MAX {
            return Err(SqlError::too_many_columns());
        }
        for (n, column) in self.columns.iter().enumerate() {
            let name = &column.column.name;
            if self.columns[..n].iter().any(|c| same_name(&c.column.name, name)) {
                return Err(SqlError::duplicate_column(name));
            }
        }
        if self.columns.iter().all(|c| c.column.invisible) {
            return Err(SqlError::table_without_columns());
        }
        Ok(())
    }

    /// Error 4108: an invisible NOT NULL column without a default could never get a value.
    fn check_invisible(&self) -> SqlResult<()> {
        let lacks_default = |c: &&DraftColumn| {
            let DraftColumn { column, is_described, .. } = c;
            let gets_value = column.nullable || column.auto_increment || column.generated.is_some();
            *is_described && column.invisible && !gets_value && column.default == DefaultValue::None
        };
        match self.columns.iter().find(lacks_default) {
            Some(column) => Err(SqlError::invisible_without_default(&column.column.name)),
            None => Ok(()),
        }
    }

    fn check_auto_increment(&self) -> SqlResult<()> {
        let mut automatic = self.columns.iter().filter(|c| c.column.auto_increment);
        let Some(column) = automatic.next() else { return Ok(()) };
        let starts_key = |k: &DraftKey| {
            k.parts.first().is_some_and(|p| p.prefix.is_none() && same_name(&p.column, &column.column.name))
        };
        let holds = |k: &&DraftKey| k.parts.iter().any(|p| same_name(&p.column, &column.column.name));
        let hashed = self.keys.iter().filter(|k| key::is_hashed(k, &self.columns)).find(holds);
        if let Some(key) = hashed {
            let key = key.name.as_deref().unwrap_or_default();
            return Err(SqlError::auto_increment_in_hash(&column.column.name, key));
        }
        if automatic.next().is_some() || !self.keys.iter().any(starts_key) {
            return Err(SqlError::wrong_auto_key());
        }
        Ok(())
    }

    fn check_row_size(&self) -> SqlResult<()> {
        let bytes = |c: &DraftColumn| {
            let ty = &c.column.ty;
            if ty.kind.is_blob() {
                10
            } else {
                ty.byte_len_max() + u64::from(ty.kind == TypeKind::VarChar) * 2
            }
        };
        let total: u64 = self.columns.iter().map(bytes).sum();
        if total > ROW_BYTES_MAX { Err(SqlError::row_too_big(ROW_BYTES_MAX as u32)) } else { Ok(()) }
    }

    fn describe(self, ctx: &StatementContext<'_>, id: TableId, before: Option<&Table>) -> Described {
        let catalog = ctx.db.catalog();
        let mut origins: Vec<Option<usize>> = Vec::new();
        let mut indexes = Vec::new();
        if self.keys.first().is_none_or(|k| !k.kind.is_primary()) {
            let origin = before.map(Table::rows).filter(|rows| rows.key == RowKey::HiddenRowId);
            origins.push(origin.map(|_| ROWS));
            let id = origin.map_or_else(|| ctx.db.ids.index(&catalog), |rows| rows.id);
            indexes.push(Index::hidden_row_id(id));
        }
        for key in &self.keys {
            let part = |p: &DraftPart| IndexColumn {
                column: self.column(&p.column).expect("checked before"),
                prefix: p.prefix,
                descending: p.descending,
            };
            let origin = key.origin.zip(before).map(|(n, t)| (n, t.indexes[n].id));
            origins.push(origin.map(|o| o.0));
            indexes.push(Index {
                id: origin.map_or_else(|| ctx.db.ids.index(&catalog), |o| o.1),
                name: key.name.clone().expect("named before"),
                kind: key::stored_kind(key, &self.columns),
                columns: key.parts.iter().map(part).collect(),
                comment: key.comment.clone(),
                ignored: key.ignored,
                using: key.using,
                generated: key.generated,
                since: CommitSeq(0),
            });
        }
        let foreign_keys = foreign::finished(&self);
        let new = self.foreign_keys.iter().filter(|key| key.is_new);
        let new_foreign_keys = new.map(|key| key.name.clone()).collect();
        let described = (0..self.columns.len()).filter(|n| self.columns[*n].is_described).collect();
        let column_origins = self.columns.iter().map(|c| c.origin).collect();
        let table = Table {
            id,
            name: self.name,
            engine: self.engine,
            columns: self.columns.into_iter().map(|c| c.column).collect(),
            indexes,
            collation: self.collation,
            comment: self.comment,
            auto_increment_start: self.auto_increment_start,
            options: self.options,
            created_at: self.created_at,
            checks: self.checks,
            foreign_keys,
            referenced_by: Vec::new(),
            storage: Vec::new(),
            triggers: self.triggers,
        };
        let mut described = Described {
            table,
            column_origins,
            described,
            index_origins: origins,
            new_foreign_keys,
            ignores: false,
        };
        // A primary key that is dropped and added unchanged stays the same index: the rows are stored in it.
        if let Some(before) = before.filter(|before| is_same_clustering(before, &described)) {
            described.table.keep_rows_of(before);
            described.index_origins[ROWS] = Some(ROWS);
        }
        described
    }
}

impl DraftColumn {
    /// Makes a column of a primary key NOT NULL, whatever its definition says.
    pub(super) fn make_not_null(&mut self) {
        self.column.nullable = false;
        if self.column.default == DefaultValue::Value(cohort_types::Value::Null) {
            self.column.default = DefaultValue::None;
        }
    }
}

/// Returns whether the rows keep their clustered key.
pub(super) fn is_same_clustering(before: &Table, after: &Described) -> bool {
    let (old, new) = (before.row_index(), after.table.row_index());
    if old.kind != new.kind || old.columns.len() != new.columns.len() {
        return false;
    }
    old.columns
        .iter()
        .zip(&new.columns)
        .all(|(old, new)| after.column_origins[new.column] == Some(old.column) && old.prefix == new.prefix)
}

/// Returns whether an index of the previous table contains exactly what the new index needs.
pub(super) fn is_same_index(before: &Table, after: &Described, new: usize) -> bool {
    let Some(origin) = after.index_origins[new] else { return false };
    let (old, new) = (&before.indexes[origin], &after.table.indexes[new]);
    let same_part = |(old, new): (&IndexColumn, &IndexColumn)| {
        after.column_origins[new.column] == Some(old.column) && old.prefix == new.prefix
    };
    old.kind == new.kind
        && old.columns.len() == new.columns.len()
        && old.columns.iter().zip(&new.columns).all(same_part)
}
