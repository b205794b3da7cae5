//! Computed results with their columns.

use cohort_protocol::{ColumnFlags, ColumnMeta, TypeCode};
use cohort_types::{Collation, ColumnType, TypeKind, Value};

pub(super) struct Column {
    pub name: String,
    pub ty: ColumnType,
    pub nullable: bool,
    /// The information_schema table that contains the same column, and the column's name there.
    from: Option<(&'static str, &'static str)>,
}

/// A computed result set.
#[derive(Default)]
pub struct Listing {
    pub(super) columns: Vec<Column>,
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

    /// Applies LIMIT.
    pub(super) fn cut(&mut self, offset: usize, count: usize) {
        self.rows.drain(..offset.min(self.rows.len()));
        self.rows.truncate(count);
    }
}
