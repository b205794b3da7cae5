//! Computed results with their columns, filtered by LIKE or WHERE.

use std::sync::Arc;

use cohort_expr::ExprType;
use cohort_protocol::{ColumnFlags, ColumnMeta, TypeCode};
use cohort_sql::ast::ShowFilter;
use cohort_types::{Collation, ColumnType, SqlResult, TypeKind, Value};

use super::schema_table;
use cohort_plan::{Binder, Clause, ParamSource, PlanContext, Relation, Scope, ScopeColumn, ScopeTable};
use cohort_session::{SessionNames, StatementContext};

struct Column {
    name: String,
    ty: ColumnType,
    nullable: bool,
    /// The information_schema table that contains the same column, and the column's name there.
    from: Option<(&'static str, &'static str)>,
}

/// A computed result set.
#[derive(Default)]
pub struct Listing {
    columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
}

impl Listing {
    /// Creates a listing with text columns that are never NULL, given with their lengths.
    pub(super) fn new(columns: &[(&str, u32)]) -> Listing {
        let mut listing = Listing::default();
        for (name, length) in columns {
            listing.text(*name, *length);
        }
        listing
    }

    /// Adds a column.
    pub(super) fn column(&mut self, name: impl Into<String>, ty: ColumnType, nullable: bool) -> &mut Listing {
        self.columns.push(Column { name: name.into(), ty, nullable, from: None });
        self
    }

    /// Marks the column added last as a column of an information_schema table.
    pub(super) fn of(&mut self, table: &'static str, column: &'static str) -> &mut Listing {
        let last = self.columns.last_mut().expect("a column was added");
        last.from = Some((table, column));
        self
    }

    /// Marks all columns as those of an information_schema table with the same names. The first may be
    /// longer.
    pub(super) fn found_in(&mut self, table: &'static str, name_chars: u32) {
        self.columns[0].ty.length = name_chars;
        self.columns.iter_mut().filter_map(|c| c.from.as_mut()).for_each(|from| from.0 = table);
    }

    pub(super) fn text(&mut self, name: impl Into<String>, length: u32) -> &mut Listing {
        let ty = ColumnType::string(TypeKind::VarChar, length, Collation::UTF8MB3_GENERAL_CI);
        self.column(name, ty, false)
    }

    pub(super) fn nullable_text(&mut self, name: impl Into<String>, length: u32) -> &mut Listing {
        let ty = ColumnType::string(TypeKind::VarChar, length, Collation::UTF8MB3_GENERAL_CI);
        self.column(name, ty, true)
    }

    pub(super) fn number(&mut self, name: impl Into<String>, digits: u32) -> &mut Listing {
        self.column(name, ColumnType::int(TypeKind::BigInt, Some(digits), false), false)
    }

    /// Adds an unsigned INT column that is never NULL.
    pub(super) fn unsigned(&mut self, name: impl Into<String>, digits: u32) -> &mut Listing {
        self.column(name, ColumnType::int(TypeKind::Int, Some(digits), true), false)
    }

    /// Adds a row.
    pub(super) fn add<const N: usize>(&mut self, row: [Value; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(row.into());
    }

    /// Returns the result metadata.
    pub fn meta(&self) -> Vec<ColumnMeta> {
        let meta = |column: &Column| {
            let mut meta = ColumnMeta::typed(&column.name, &column.ty.meta());
            if !column.nullable {
                meta.flags = meta.flags.with(ColumnFlags::NOT_NULL);
            }
            match column.from {
                Some((table, name)) => {
                    meta.schema = "information_schema".to_owned();
                    (meta.table, meta.org_table) = (table.to_owned(), table.to_owned());
                    meta.org_name = name.to_owned();
                    cohort_plan::meta::virtual_column(&mut meta);
                }
                // A column computed by the statement is an expression, not a table column.
                None if meta.collation == Collation::BINARY => {
                    meta.flags = meta.flags.with(ColumnFlags::BINARY);
                }
                None => {
                    meta.decimals = 39;
                    meta.type_code = match meta.length {
                        0..=0xffff => meta.type_code,
                        0x1_0000..=0xff_ffff => TypeCode::MediumBlob,
                        _ => TypeCode::LongBlob,
                    };
                }
            }
            meta
        };
        self.columns.iter().map(meta).collect()
    }

    /// Keeps the rows that a LIKE accepts by the name in column `like`, or that a WHERE accepts. Names are
    /// case-sensitive, except `information_schema`.
    pub(super) fn filter_names(
        &mut self,
        ctx: &StatementContext<'_>,
        filter: Option<&ShowFilter>,
        like: usize,
    ) -> SqlResult<()> {
        let Some(ShowFilter::Like(pattern)) = filter else { return self.filter(ctx, filter, like) };
        self.rows.retain(|row| {
            let name = row[like].as_bytes().unwrap_or_default();
            let collation = match name {
                b"information_schema" => Collation::UTF8MB3_GENERAL_CI,
                _ => Collation::UTF8MB3_BIN,
            };
            collation.like(name, pattern.as_bytes(), Some('\\'))
        });
        Ok(())
    }

    /// Keeps the rows that a LIKE accepts by column `like`, or that a WHERE accepts.
    pub(super) fn filter(
        &mut self,
        ctx: &StatementContext<'_>,
        filter: Option<&ShowFilter>,
        like: usize,
    ) -> SqlResult<()> {
        match filter {
            None => Ok(()),
            Some(ShowFilter::Like(pattern)) => {
                let accepts = |row: &Vec<Value>| {
                    let text = row[like].as_bytes().unwrap_or_default();
                    Collation::UTF8MB3_GENERAL_CI.like(text, pattern.as_bytes(), Some('\\'))
                };
                self.rows.retain(accepts);
                Ok(())
            }
            Some(ShowFilter::Where(expr)) => self.keep_where(ctx, expr),
        }
    }

    fn keep_where(&mut self, ctx: &StatementContext<'_>, expr: &cohort_sql::ast::Expr) -> SqlResult<()> {
        let column = |c: &Column| ScopeColumn {
            name: c.name.as_str().into(),
            ty: ExprType::of_column(&c.ty, c.nullable),
            full_name: format!("`{}`", c.name).into(),
            hidden: false,
            invisible: false,
        };
        let table = ScopeTable {
            // Only the columns below matter; any virtual table can stand for their origin.
            relation: Relation::Virtual(schema_table::table("SCHEMATA").clone()),
            schema: Some(Arc::from("information_schema")),
            name: Arc::from("SHOW"),
            columns: self.columns.iter().map(column).collect(),
            first_slot: 0,
            view: None,
            merged: None,
        };
        let mut scope = Scope::default();
        scope.push(table);
        let catalog = ctx.db.catalog();
        let names = SessionNames::new(&catalog, ctx.session);
        let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
        let filter = Binder::new(&plan, &scope, Clause::Where).expression(expr)?;
        let mut kept = Vec::with_capacity(self.rows.len());
        for row in std::mem::take(&mut self.rows) {
            if filter.passes(&row, &ctx.eval)? {
                kept.push(row);
            }
        }
        self.rows = kept;
        Ok(())
    }

    /// Applies LIMIT.
    pub(super) fn cut(&mut self, offset: usize, count: usize) {
        self.rows.drain(..offset.min(self.rows.len()));
        self.rows.truncate(count);
    }
}
