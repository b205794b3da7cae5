//! The tables and routines that a program names ([`Named`]).
//!
//! They are found in the text alone, so tables and routines that do not exist are among them, and those of
//! statements that never run. Names of common table expressions are none of them, nor are temporary tables
//! that the program itself creates.

use std::collections::{BTreeMap, BTreeSet};

use cohort_plan::calls_back;
use cohort_session::changed_names;
use cohort_sql::ast::{
    Code, Expr, ObjectName, Query, Rename, SequenceCall, SequenceOperation, Statement, TableFactor,
    TriggerEvent,
};

/// The tables and routines that a program names.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Tables and views by name and alias.
    pub tables: BTreeMap<(ObjectName, String), NamedTable>,
    pub functions: BTreeSet<ObjectName>,
    pub procedures: BTreeSet<ObjectName>,
}

/// The use of a table under an alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedTable {
    pub is_written: bool,
    /// The events of the triggers that its changes fire.
    pub events: Vec<TriggerEvent>,
    /// The largest number of uses in one statement.
    pub uses: usize,
}

impl Named {
    /// Returns the names in a statement.
    pub fn in_statement(statement: &Statement) -> Named {
        let mut names = Named::default();
        names.add(statement);
        names
    }

    /// Returns the names in a body: in its statements and expressions, and the procedures that it calls.
    pub(crate) fn in_body<'b>(
        (statements, scalars): (&[Code<Statement>], &[Code<Expr>]),
        called: impl Iterator<Item = &'b ObjectName>,
    ) -> Named {
        let mut names = Named::default();
        statements.iter().for_each(|code| names.add(&code.of));
        let names_any =
            |expr: &Expr| calls_back(expr) || expr.has_part(|part| matches!(part, Expr::Sequence(_)));
        for code in scalars.iter().filter(|code| names_any(&code.of)) {
            let mut looks = Looks::default();
            code.of.clone().rename(&mut looks);
            names.take(looks);
        }
        names.procedures.extend(called.cloned());
        let own: BTreeSet<&ObjectName> = statements.iter().filter_map(|code| own(&code.of)).collect();
        names.tables.retain(|(name, _), _| !own.contains(name));
        names
    }

    fn add(&mut self, statement: &Statement) {
        let mut looks = Looks::default();
        if let Statement::Insert(insert) = statement {
            looks.add(&insert.table, &insert.table.name);
        }
        statement.clone().rename(&mut looks);
        let events = fired_by(statement);
        if !events.is_empty() {
            let changed = changed_names(statement).tables;
            for (_, table) in looks.tables.iter_mut().filter(|((name, _), _)| changed.contains(&name)) {
                (table.is_written, table.events) = (true, events.to_vec());
            }
        }
        self.take(looks);
    }

    /// Takes the names of a statement or an expression.
    fn take(&mut self, looks: Looks) {
        for (name, found) in looks.tables {
            let known = self.tables.entry(name).or_default();
            known.is_written |= found.is_written;
            known.uses = known.uses.max(found.uses);
            for event in found.events {
                if !known.events.contains(&event) {
                    known.events.push(event);
                }
            }
        }
        self.functions.extend(looks.functions);
    }
}

/// Returns the temporary table that a statement creates.
fn own(statement: &Statement) -> Option<&ObjectName> {
    match statement {
        Statement::CreateTable(create) if create.temporary => Some(&create.name),
        _ => None,
    }
}

/// Returns the events of the triggers that a row change fires.
pub fn fired_by(statement: &Statement) -> &'static [TriggerEvent] {
    use TriggerEvent::{Delete, Insert, Update};
    match statement {
        Statement::Insert(insert) => match (insert.replace, insert.on_duplicate.is_empty()) {
            (true, _) => &[Insert, Delete],
            (false, true) => &[Insert],
            (false, false) => &[Insert, Update],
        },
        Statement::Update(_) => &[Update],
        Statement::Delete(_) => &[Delete],
        _ => &[],
    }
}

/// Collects the names of one statement.
#[derive(Default)]
struct Looks {
    tables: BTreeMap<(ObjectName, String), NamedTable>,
    functions: BTreeSet<ObjectName>,
    /// For each query around, the common table expressions that it defines.
    common: Vec<Vec<String>>,
}

impl Looks {
    fn add(&mut self, name: &ObjectName, alias: &str) -> &mut NamedTable {
        let table = self.tables.entry((name.clone(), alias.to_owned())).or_default();
        table.uses += 1;
        table
    }

    fn is_common(&self, name: &ObjectName) -> bool {
        let mut common = self.common.iter().flatten();
        name.db.is_none() && common.any(|common| common.eq_ignore_ascii_case(&name.name))
    }
}

impl Rename for Looks {
    fn begin_query(&mut self, query: &Query) {
        let common = query.with.iter().flat_map(|with| &with.tables).map(|table| table.name.clone());
        self.common.push(common.collect());
    }

    fn query(&mut self, _: &mut Query) {
        self.common.pop();
    }

    fn table(&mut self, table: &mut TableFactor) {
        if !self.is_common(&table.name) {
            self.add(&table.name, table.alias.as_ref().unwrap_or(&table.name.name));
        }
    }

    fn sequence(&mut self, call: &mut SequenceCall) {
        let takes_numbers = call.operation != SequenceOperation::Last;
        self.add(&call.name, &call.name.name).is_written |= takes_numbers;
    }

    fn function(&mut self, call: &mut Expr) {
        if let Expr::Function { name, .. } = call
            && !cohort_expr::is_native(name)
        {
            self.functions.insert(ObjectName { db: None, name: name.clone() });
        }
    }

    fn stored_function(&mut self, call: &mut Expr) {
        if let Expr::StoredFunction { db, name, .. } = call {
            self.functions.insert(ObjectName { db: db.clone(), name: name.clone() });
        }
    }
}
