//! Lateral tables: a JSON_TABLE that is computed from the rows before it.
//!
//! A JSON_TABLE whose document reads columns of its FROM is *lateral* and must come after the tables it
//! reads. If these are inner tables, it takes part in the choice of the join order. Otherwise it comes after
//! all inner tables and the outer joins left of it. A JSON_TABLE whose document reads no column of its FROM
//! is an ordinary table.

use std::sync::Arc;

use cohort_expr::{Expr, JsonTable};
use cohort_plan::conjuncts::all_of;
use cohort_plan::{From, FromTable, Source};
use cohort_types::{SqlError, SqlResult};

use crate::lower::{Lowering, Part, SelectContext};
use crate::physical::{Join, JoinKind, JoinMethod, JsonScan, Node};

/// Assumed number of rows per document, as in MariaDB.
pub(crate) const JSON_ROWS: f64 = 40.0;

impl Lowering<'_> {
    /// Returns true if the table is a JSON_TABLE whose document reads a column that `reads` accepts.
    pub(crate) fn is_lateral(&self, table: &FromTable, reads: &dyn Fn(usize) -> bool) -> bool {
        let Source::Json { document, .. } = &table.source else { return false };
        self.statement.columns(document).into_iter().any(reads)
    }

    /// Returns true if a FROM contains a table computed from rows outside of it.
    pub(crate) fn has_lateral(&self, from: &From, reads: &dyn Fn(usize) -> bool) -> bool {
        from.tables().into_iter().any(|table| self.is_lateral(table, reads))
    }

    /// Returns error 1235 for an outer join whose right side has several tables, one of them computed from
    /// the left rows.
    pub(crate) fn refuse_lateral(&self, from: &From, before: &Part) -> SqlResult<()> {
        match self.has_lateral(from, &|column| before.layout.contains(&column)) {
            true => Err(SqlError::not_supported("JSON_TABLE of a row outside of its outer join")),
            false => Ok(()),
        }
    }

    /// Joins a JSON_TABLE to the rows it is computed from.
    pub(crate) fn json_join(
        &mut self,
        kind: JoinKind,
        before: Part,
        table: &FromTable,
        on: Vec<Expr>,
        context: SelectContext,
    ) -> SqlResult<Part> {
        let Source::Json { document, table: meaning } = &table.source else {
            unreachable!("only a JSON_TABLE is made of a row")
        };
        let meaning: Arc<JsonTable> = meaning.clone();
        let document = self.place(document.clone(), &before.layout)?;
        let mut layout = before.layout;
        layout.extend(table.first..table.first + table.width);
        let on = all_of(on).map(|expr| self.place(expr, &layout)).transpose()?;
        let scan = JsonScan { name: table.name.clone(), block: context.block, document, table: meaning };
        let method = JoinMethod::Json(Box::new(scan));
        let join = Join { kind, left: before.node, method, on };
        Ok(Part { node: Node::Join(Box::new(join)), layout, rows: before.rows * JSON_ROWS })
    }
}
