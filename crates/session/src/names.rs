//! Name resolution for binding a statement in this session: catalog, privileges, variables.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use cohort_catalog::{AccountName, Catalog, Routine, Table, TableName, View};
use cohort_expr::{ExprType, SequenceName, SessionEnv, SessionHooks};
use cohort_plan::{CalledFunction, Names, ParamSource, VirtualDefinition};
use cohort_sql::ast::{self, DataType, SequenceOperation};
use cohort_types::{ColumnType, ErrorCode, Privilege, Privileges, RoutineKind, SqlError, SqlResult, Value};

use crate::access::{Needs, RoutineNeed, TableNeed, Viewer};
use crate::callee::{Argument, Callee, ChangedVariable};
use crate::functions::{FoundFunction, Returned, StatementFunction};
use crate::reached::Reached;
use crate::roots::{RootTable, Roots};
use crate::session_state::SessionState;
use crate::statement::StatementContext;

/// Resolves names for one session and one version of the catalog. Records the privileges that the statement
/// needs on the tables it names.
pub struct SessionNames<'n> {
    catalog: &'n Arc<Catalog>,
    session: &'n SessionState,
    needs: Needs,
    /// Resolves names for the server itself, without privilege checks.
    is_server: bool,
    /// The views that enclose the name being resolved, outermost first.
    inside: RefCell<Vec<Arc<View>>>,
    /// All views that the statement reads.
    views: RefCell<Vec<Arc<View>>>,
    /// The tables that the statement names.
    tables: RefCell<Vec<Arc<Table>>>,
    /// The sequences that expressions name, and whether each is changed.
    sequences: RefCell<Vec<(Arc<Table>, bool)>>,
    /// The stored functions that expressions call.
    routines: RefCell<Vec<RoutineNeed>>,
    /// The first temporary table that was resolved.
    temporary_used: RefCell<Option<String>>,
    /// The origin of the statement's parameters, if it takes OUT and INOUT arguments of functions.
    out_source: Option<ParamSource<'n>>,
    /// The places of the local variables that calls may assign.
    changed: RefCell<Vec<u32>>,
}

impl<'n> SessionNames<'n> {
    /// Creates a resolver without any recorded needs.
    pub fn new(catalog: &'n Arc<Catalog>, session: &'n SessionState) -> SessionNames<'n> {
        SessionNames {
            catalog,
            session,
            needs: Needs::default(),
            is_server: false,
            inside: RefCell::default(),
            views: RefCell::default(),
            tables: RefCell::default(),
            temporary_used: RefCell::default(),
            sequences: RefCell::default(),
            routines: RefCell::default(),
            out_source: None,
            changed: RefCell::default(),
        }
    }

    /// Lets the functions of the statement assign their OUT and INOUT arguments.
    pub fn with_out(mut self, source: ParamSource<'n>) -> SessionNames<'n> {
        self.out_source = Some(source);
        self
    }

    /// Creates a resolver for the server itself, to examine a view.
    pub fn of_server(catalog: &'n Arc<Catalog>, session: &'n SessionState) -> SessionNames<'n> {
        SessionNames { is_server: true, ..SessionNames::new(catalog, session) }
    }

    /// Takes the privileges that the statement needs.
    pub fn take_needs(&self) -> Vec<TableNeed> {
        self.needs.take()
    }

    /// Takes the sequences that expressions name, and whether each is changed.
    pub fn take_sequences(&self) -> Vec<(Arc<Table>, bool)> {
        self.sequences.take()
    }

    /// Takes the stored functions that the statement calls.
    pub fn take_routines(&self) -> Vec<RoutineNeed> {
        self.routines.take()
    }

    /// Checks that the session may call the functions of the statement, and locks what its programs may use.
    /// Returns false if the statement must be planned again. `tables` are those of the statement.
    pub fn lock_programs(&self, ctx: &mut StatementContext<'_>, tables: Vec<RootTable>) -> SqlResult<bool> {
        let routines = self.take_routines();
        routines.iter().try_for_each(|need| need.check(ctx.session))?;
        let functions = routines.into_iter().map(|need| need.routine).collect();
        match Reached::by(self.catalog, ctx.session, Roots { functions, tables }) {
            Some(reached) => reached.lock(ctx),
            None => Ok(true),
        }
    }

    /// Records that the statement calls a function.
    fn use_routine(&self, routine: &Arc<Routine>) {
        let need = RoutineNeed::new(self.viewer(), Arc::clone(routine));
        let mut routines = self.routines.borrow_mut();
        if !routines.contains(&need) {
            routines.push(need);
        }
    }

    /// Takes the views that the statement reads.
    pub fn take_views(&self) -> Vec<Arc<View>> {
        self.views.take()
    }

    /// Takes the tables that the statement names. The plan may not need all of them.
    pub fn take_tables(&self) -> Vec<Arc<Table>> {
        self.tables.take()
    }

    /// Finds a temporary table. It hides a table or view with the same name, except inside of views.
    fn temporary(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        let found = self.session.temporary.find(schema, name).filter(|_| self.inside.borrow().is_empty());
        if found.is_some() {
            self.temporary_used.borrow_mut().get_or_insert_with(|| name.to_owned());
        }
        found
    }

    /// Returns the name of the first temporary table that was resolved.
    pub fn temporary_used(&self) -> Option<String> {
        self.temporary_used.borrow().clone()
    }

    /// Checks and records the privileges that the statement wants on a table or view. Each later run of the
    /// plan, in any session, is checked against the record. Errors 1142, 1449.
    fn want(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<()> {
        let viewer = self.viewer();
        viewer.check_table(self.session, wanted, schema, name)?;
        let table = TableName { schema: schema.to_owned(), table: name.to_owned() };
        self.needs.want(&viewer, &table, wanted);
        Ok(())
    }

    /// Returns the account whose privileges count at the name being resolved.
    fn viewer(&self) -> Viewer {
        if self.is_server {
            return Viewer::Server;
        }
        Viewer::of(self.definer())
    }
}

/// A function that a view calls. Its errors must not reveal to the reader of the view what the function uses.
struct OfView {
    function: Box<dyn StatementFunction>,
    /// The outermost view.
    view: Arc<View>,
}

impl StatementFunction for OfView {
    fn call(&self, args: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Returned> {
        let outcome = self.function.call(args, ctx);
        outcome.map_err(|error| cohort_plan::hidden_by_view(&self.view, error))
    }

    fn call_again(
        &self,
        args: &[Value],
        session: &SessionState,
        check: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<Option<Value>> {
        let outcome = self.function.call_again(args, session, check);
        outcome.map_err(|error| cohort_plan::hidden_by_view(&self.view, error))
    }
}

impl Names for SessionNames<'_> {
    fn env(&self) -> &SessionEnv {
        &self.session.settings.env
    }

    fn function(
        &self,
        schema: Option<&str>,
        name: &str,
        args: &[ast::Expr],
    ) -> SqlResult<Option<CalledFunction>> {
        let inside = self.inside.borrow();
        let here = inside.last().map(|view| &*view.name.schema);
        let schema = schema.or(here).or(self.session.current_schema.as_deref());
        let Some((functions, schema)) = self.session.db.functions.get().zip(schema) else { return Ok(None) };
        self.viewer().check_execute(self.session, RoutineKind::Function, schema, name)?;
        let found =
            functions.find((self.catalog, self.session), (schema, name), args.len(), self.definer())?;
        let Some(FoundFunction { schema, name, ty, function, routine, parameters, is_out }) = found else {
            return Ok(None);
        };
        let is_aggregate = routine.as_ref().is_some_and(|routine| routine.aggregate);
        let function = match inside.first() {
            Some(view) => Box::new(OfView { function, view: Arc::clone(view) }),
            None => function,
        };
        let (source, takes_out) =
            (self.out_source.unwrap_or(ParamSource::Literals), self.out_source.is_some());
        let arguments = Argument::of_call(&is_out, args, source, takes_out);
        self.changed.borrow_mut().extend(arguments.iter().filter_map(|argument| match argument {
            Argument::Local(place) => Some(*place),
            _ => None,
        }));
        let function = Callee::new(function, arguments);
        if let Some(routine) = routine {
            self.use_routine(&routine);
        }
        Ok(Some(CalledFunction { schema, name, function: Arc::new(function), ty, is_aggregate, parameters }))
    }

    fn changed_variable(&self, index: usize) -> Option<Arc<dyn Any + Send + Sync>> {
        let Some(ParamSource::Variables(variables)) = self.out_source else { return None };
        let place = variables.places[index];
        let is_changed = self.changed.borrow().contains(&place);
        let reader = || Callee::new(Box::new(ChangedVariable { index, place }), Vec::new());
        is_changed.then(|| Arc::new(reader()) as _)
    }

    fn hooks(&self) -> &dyn SessionHooks {
        self.session
    }

    fn current_schema(&self) -> Option<&str> {
        self.session.current_schema.as_deref()
    }

    fn user_variable_type(&self, name: &str) -> Option<ExprType> {
        self.session.user_variable_type(name)
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        self.session.check_interrupt()
    }

    fn warn(&self, code: ErrorCode, text: String) {
        self.session.warn_planning(code, text);
    }

    fn virtual_table(&self, schema: &str, name: &str) -> SqlResult<Option<Arc<dyn VirtualDefinition>>> {
        let Some(found) = self.session.db.virtual_table(schema, name) else { return Ok(None) };
        if self.temporary(schema, name).is_some() {
            return Ok(None);
        }
        self.want(found.schema(), found.name(), Privilege::Select.into())?;
        if found.name() == "OPTIMIZER_TRACE" {
            self.session.optimizer.note_reader();
        }
        Ok(Some(found.clone()))
    }

    fn base_table(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Arc<Table>> {
        if let Some(own) = self.temporary(schema, name) {
            return Ok(own);
        }
        self.want(schema, name, wanted)?;
        let found = self.catalog.table(schema, name);
        let found = found.ok_or_else(|| SqlError::no_such_table(schema, name))?;
        let mut tables = self.tables.borrow_mut();
        if !tables.iter().any(|known| Arc::ptr_eq(known, found)) {
            tables.push(Arc::clone(found));
        }
        Ok(Arc::clone(found))
    }

    fn declared_type(&self, declared: &DataType, column: &str) -> SqlResult<ColumnType> {
        let ty = cohort_plan::column_type(declared, column, self.session.settings.env.collation_connection)?;
        ty.check(column)?;
        Ok(ty)
    }

    fn use_column(&self, table: &Arc<Table>, column: &str, how: Privilege) -> SqlResult<()> {
        // A session may do anything with its temporary tables.
        if table.is_temporary() {
            return Ok(());
        }
        self.needs.use_column(self.session, &self.viewer(), &table.name, column, how)
    }

    fn use_virtual_column(
        &self,
        table: &dyn VirtualDefinition,
        column: &str,
        how: Privilege,
    ) -> SqlResult<()> {
        // All accounts may read information_schema.
        if table.schema().eq_ignore_ascii_case("information_schema") {
            return Ok(());
        }
        let name = TableName { schema: table.schema().to_owned(), table: table.name().to_owned() };
        self.needs.use_column(self.session, &self.viewer(), &name, column, how)
    }

    fn sequence(&self, schema: &str, name: &str, operation: SequenceOperation) -> SqlResult<bool> {
        let how = match operation {
            SequenceOperation::Last => Privileges::from(Privilege::Select),
            SequenceOperation::Next => Privileges::from(Privilege::Select).with(Privilege::Insert),
            SequenceOperation::Set => Privilege::Insert.into(),
        };
        let base_only = !self.inside.borrow().is_empty();
        let is_own = self.temporary(schema, name).is_some();
        if !is_own {
            self.want(schema, name, how)?;
        }
        let sequence = SequenceName { schema, name, base_only };
        let table = crate::sequence::find(self.session, self.catalog, sequence)?;
        let is_written = operation != SequenceOperation::Last;
        let mut sequences = self.sequences.borrow_mut();
        match sequences.iter_mut().find(|(known, _)| known.id == table.id) {
            Some((_, known)) => *known |= is_written,
            None => sequences.push((table, is_written)),
        }
        Ok(base_only)
    }

    fn view(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Option<Arc<View>>> {
        let Some(view) = self.catalog.view(schema, name) else { return Ok(None) };
        if self.temporary(schema, name).is_some() {
            return Ok(None);
        }
        self.want(schema, name, wanted)?;
        Ok(Some(view.clone()))
    }

    fn enter_view(&self, view: &Arc<View>) -> SqlResult<()> {
        let mut inside = self.inside.borrow_mut();
        if inside.iter().any(|around| around.name == view.name) {
            return Err(SqlError::view_recursive(&view.name.schema, &view.name.table));
        }
        inside.push(view.clone());
        let mut views = self.views.borrow_mut();
        if !views.iter().any(|known| Arc::ptr_eq(known, view)) {
            views.push(view.clone());
        }
        Ok(())
    }

    fn definer(&self) -> Option<AccountName> {
        let inside = self.inside.borrow();
        inside.iter().rev().find(|view| !view.by_invoker).map(|view| view.definer.clone())
    }

    fn leave_view(&self) {
        self.inside.borrow_mut().pop();
    }

    fn use_view_column(&self, view: &Arc<View>, column: &str, how: Privilege) -> SqlResult<()> {
        self.needs.use_column(self.session, &self.viewer(), &view.name, column, how)
    }

    fn table_access_denied(&self, command: &str, schema: &str, table: &str) -> SqlError {
        self.session.table_access_denied(command, schema, table)
    }
}
