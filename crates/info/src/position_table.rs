//! `mysql.gtid_slave_pos`: the replica position of this server, in the form that tools read. The position is
//! stored in commit records; this table shows it and cannot be changed. A dump creates it on another server,
//! where its rows are the position, as MariaDB expects.

use std::sync::Arc;

use cohort_session::{
    Replaceable, StatementContext, VirtualColumn, VirtualDefinition, VirtualTable, WantedNames,
};
use cohort_types::{ColumnType, SqlResult, TypeKind, Value};

use super::mysql_tables;

struct PositionTable {
    columns: [VirtualColumn; 4],
}

pub(super) fn position_table() -> Arc<dyn VirtualTable> {
    let column = |name, kind, digits| VirtualColumn {
        name,
        ty: ColumnType::int(kind, Some(digits), true),
        nullable: false,
    };
    Arc::new(PositionTable {
        columns: [
            column("domain_id", TypeKind::Int, 10),
            column("sub_id", TypeKind::BigInt, 20),
            column("server_id", TypeKind::Int, 10),
            column("seq_no", TypeKind::BigInt, 20),
        ],
    })
}

impl VirtualDefinition for PositionTable {
    fn schema(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &'static str {
        "gtid_slave_pos"
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }
}

impl VirtualTable for PositionTable {
    fn replaceable(&self) -> Replaceable {
        Replaceable::UntilFlushPrivileges
    }

    fn create_text(&self) -> String {
        mysql_tables::create_text(self.name()).to_owned()
    }

    fn rows(&self, _: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let control = ctx.db.replica.read().clone();
        let applied = control.map_or_else(Vec::new, |control| control.applied());
        // There is one row per domain, so any number makes the rows unique.
        let row = |(n, gtid): (usize, cohort_base::Gtid)| {
            let number = |number: u32| Value::UInt(number.into());
            vec![
                number(gtid.domain.0),
                Value::UInt(n as u64 + 1),
                number(gtid.server.0),
                Value::UInt(gtid.seq_no),
            ]
        };
        Ok(applied.into_iter().enumerate().map(row).collect())
    }
}
