//! [`Bound`]: a program with the types of its variables and bound expressions.
//!
//! # Places
//! A frame is a list of values. A scalar variable has one *place* in it, a row variable one for each field,
//! and in a trigger each column of OLD and NEW that the body names has one. In a bound expression,
//! `Expr::Param(n)` is place `n`, so that an expression is evaluated over the frame itself. A statement gets
//! the values of its variables as parameters.
//!
//! An expression that cannot be bound, for instance because it names an unknown column, fails when it is
//! evaluated.

use std::sync::Arc;

use cohort_expr::{Expr, ExprType};
use cohort_plan::{Binder, Clause, PlanContext, Scope, calls_back, check_alone, column_type};
use cohort_sql::ast::{
    self, Code, Query, QueryBody, Select, SelectItem, Statement, Variable, VariableType, VariableUse,
};
use cohort_types::{ColumnType, SqlError, SqlResult, TypeKind};

use crate::host::{BodyStatement, Host, ResultColumn};
use crate::program::{Instruction, Program, ProgramKind, ScalarId, SlotType};
use crate::typed_code::{Op, Target};

/// A program that can run. It depends on the settings of the program, and on the tables and queries that its
/// types refer to.
pub struct Bound {
    pub program: Arc<Program>,
    pub places: Vec<Place>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) scalars: Vec<Scalar>,
    pub(crate) statements: Vec<BodyStatement>,
    /// The columns of OLD and NEW with places.
    pub(crate) columns: Vec<RowColumn>,
    pub(crate) returns: Option<ColumnType>,
    /// The typed form of each instruction.
    pub(crate) ops: Vec<Op>,
    /// The places of the parameters, if all are numbers.
    pub(crate) arguments: Vec<Target>,
    pub(crate) is_typed: bool,
}

/// A place of a frame.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name in messages.
    pub name: String,
    pub ty: PlaceType,
}

/// The type of a place.
#[derive(Clone, Debug)]
pub enum PlaceType {
    /// Values are converted to it.
    Column(ColumnType),
    /// Values are kept as they are.
    Any(ExprType),
}

impl PlaceType {
    /// Returns the type of the values.
    pub fn expr_type(&self) -> ExprType {
        match self {
            PlaceType::Column(ty) => ExprType::of_column(ty, true),
            PlaceType::Any(ty) => ty.clone(),
        }
    }
}

/// The places of a variable.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub first: u32,
    /// The fields of a row variable.
    pub fields: Option<Vec<String>>,
}

/// A column of OLD or NEW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowColumn {
    pub is_new: bool,
    pub ordinal: usize,
    pub place: u32,
}

/// An expression of a body.
pub(crate) enum Scalar {
    /// Evaluated over the places.
    Expr(Box<Expr>),
    /// The current value of a place.
    Place(u32),
    /// The values of a row variable.
    Row(std::ops::Range<u32>),
    /// ROW(..), whose elements are assigned one by one.
    List(Vec<Scalar>),
    /// Depends on the types of user variables: bound for each evaluation.
    Each(Box<Code<ast::Expr>>),
    /// A query of one row: the expression has a subquery, or calls a function that runs statements.
    Query(Box<BodyStatement>),
    /// Cannot be bound.
    Fails(SqlError),
}

/// Binds a program. `columns` are those of a trigger's table.
pub fn bind(
    program: &Arc<Program>,
    columns: Option<&[ResultColumn]>,
    host: &mut dyn Host,
) -> SqlResult<Bound> {
    let mut bound = Bound {
        program: Arc::clone(program),
        places: Vec::new(),
        slots: Vec::new(),
        scalars: Vec::new(),
        statements: Vec::new(),
        columns: Vec::new(),
        returns: None,
        ops: Vec::new(),
        arguments: Vec::new(),
        is_typed: false,
    };
    for slot in 0..program.slots.len() {
        bound.add_slot(slot, columns, host)?;
    }
    if let Some(of) = &program.returns {
        bound.returns = match bound.scalar_type(of, &program.name, host)? {
            PlaceType::Column(ty) => Some(ty),
            PlaceType::Any(_) => None,
        };
    }
    for variable in program.assigned() {
        bound.add_column(variable, columns)?;
    }
    for scalar in &program.scalars {
        let made = bound.scalar_of(scalar, columns, host);
        bound.scalars.push(made);
    }
    bound.take_literals_as_numbers();
    for statement in &program.statements {
        let made = bound.statement(statement, columns)?;
        bound.statements.push(made);
    }
    bound.lower(host.session().settings.env.sql_mode);
    Ok(bound)
}

/// The places and types of a list of uses.
struct Variables {
    places: Vec<u32>,
    types: Vec<ExprType>,
    /// The places that no statement may assign.
    fixed: Vec<u32>,
}

impl Variables {
    fn parts(self) -> (Vec<u32>, Vec<ExprType>, Vec<u32>) {
        (self.places, self.types, self.fixed)
    }
}

impl Bound {
    /// Returns the place of a parameter, the first one of a row.
    pub fn parameter(&self, n: usize) -> &Place {
        &self.places[self.slots[n].first as usize]
    }

    /// Returns the places of a variable: one, or those of the fields of a row.
    pub(crate) fn places_of(&self, variable: &Variable) -> SqlResult<std::ops::Range<u32>> {
        match variable {
            Variable::Slot(slot) => {
                let slot = &self.slots[*slot as usize];
                Ok(slot.first..slot.first + slot.fields.as_ref().map_or(1, |fields| fields.len() as u32))
            }
            _ => self.place_of(variable).map(|place| place..place + 1),
        }
    }

    /// Returns whether a variable is a row.
    pub(crate) fn is_row(&self, variable: &Variable) -> bool {
        matches!(variable, Variable::Slot(slot) if self.slots[*slot as usize].fields.is_some())
    }

    /// Returns the place of a scalar variable.
    pub(crate) fn place_of(&self, variable: &Variable) -> SqlResult<u32> {
        match variable {
            Variable::Slot(slot) => {
                let slot = &self.slots[*slot as usize];
                match &slot.fields {
                    None => Ok(slot.first),
                    Some(_) => Err(SqlError::operand_columns(1)),
                }
            }
            Variable::Field(slot, name) => {
                let row = &self.program.slots[*slot as usize].name;
                let slot = &self.slots[*slot as usize];
                let fields = slot.fields.as_deref().unwrap_or_default();
                let found = fields.iter().position(|field| field.eq_ignore_ascii_case(name));
                found.map(|n| slot.first + n as u32).ok_or_else(|| SqlError::no_such_field(row, name))
            }
            Variable::Old(name) | Variable::New(name) => {
                let is_new = matches!(variable, Variable::New(_));
                let found = self.columns.iter().find(|column| {
                    column.is_new == is_new
                        && self.places[column.place as usize].name.eq_ignore_ascii_case(name)
                });
                let row = if is_new { "NEW" } else { "OLD" };
                found.map(|column| column.place).ok_or_else(|| SqlError::unknown_column(name, row))
            }
        }
    }

    fn add_place(&mut self, name: &str, ty: PlaceType) -> u32 {
        self.places.push(Place { name: name.to_owned(), ty });
        self.places.len() as u32 - 1
    }

    fn add_slot(
        &mut self,
        slot: usize,
        columns: Option<&[ResultColumn]>,
        host: &mut dyn Host,
    ) -> SqlResult<()> {
        let program = Arc::clone(&self.program);
        let declared = &program.slots[slot];
        let name = &declared.name;
        let fields = match &declared.of {
            SlotType::Integer => {
                let ty = ColumnType::int(TypeKind::BigInt, None, false);
                let first = self.add_place(name, PlaceType::Column(ty));
                self.slots.push(Slot { first, fields: None });
                return Ok(());
            }
            SlotType::OfScalar(scalar) => {
                let ty = self.type_of_scalar(*scalar, columns, host);
                let first = self.add_place(name, PlaceType::Any(ty));
                self.slots.push(Slot { first, fields: None });
                return Ok(());
            }
            SlotType::RowOfCursor(cursor) => {
                let query = program.cursors[*cursor as usize].query;
                let statement = self.statement(&program.statements[query as usize], columns)?;
                let fields = host.describe(&statement)?;
                fields.into_iter().map(|field| (field.name, PlaceType::Column(field.ty))).collect()
            }
            SlotType::Declared(VariableType::RowTypeOf(table)) => {
                let fields = host.columns_of(table, None)?;
                fields.into_iter().map(|field| (field.name, PlaceType::Column(field.ty))).collect()
            }
            SlotType::Declared(VariableType::Row(fields)) => {
                let mut found: Vec<(String, PlaceType)> = Vec::new();
                for (field, of) in fields {
                    found.push((field.clone(), self.scalar_type(of, field, host)?));
                }
                found
            }
            SlotType::Declared(VariableType::TypeOfVariable(other)) => {
                let other = self.slots[*other as usize].clone();
                match other.fields {
                    Some(fields) => {
                        let types = self.places[other.first as usize..].iter().map(|place| place.ty.clone());
                        fields.into_iter().zip(types.collect::<Vec<_>>()).collect()
                    }
                    None => {
                        let ty = self.places[other.first as usize].ty.clone();
                        let first = self.add_place(name, ty);
                        self.slots.push(Slot { first, fields: None });
                        return Ok(());
                    }
                }
            }
            SlotType::Declared(of) => {
                let ty = self.scalar_type(of, name, host)?;
                let first = self.add_place(name, ty);
                self.slots.push(Slot { first, fields: None });
                return Ok(());
            }
        };
        let first = self.places.len() as u32;
        let names = fields.iter().map(|(field, _)| field.clone()).collect();
        for (field, ty) in fields {
            self.add_place(&field, ty);
        }
        self.slots.push(Slot { first, fields: Some(names) });
        Ok(())
    }

    fn scalar_type(&self, of: &VariableType, name: &str, host: &mut dyn Host) -> SqlResult<PlaceType> {
        match of {
            VariableType::Declared(declared) => {
                let ty = column_type(declared, name, host.session().database_collation())?;
                ty.check(name)?;
                Ok(PlaceType::Column(ty))
            }
            VariableType::TypeOf(column) => {
                let table =
                    ast::ObjectName { db: column.db.clone(), name: column.table.clone().unwrap_or_default() };
                let columns = host.columns_of(&table, Some(&column.name))?;
                let found = columns.into_iter().find(|known| known.name.eq_ignore_ascii_case(&column.name));
                match found {
                    Some(found) => Ok(PlaceType::Column(found.ty)),
                    None => Err(SqlError::unknown_column(&column.name, &table.name)),
                }
            }
            VariableType::TypeOfVariable(slot) => {
                Ok(self.places[self.slots[*slot as usize].first as usize].ty.clone())
            }
            VariableType::RowTypeOf(_) | VariableType::Row(_) => {
                Err(SqlError::not_supported("a row within a row"))
            }
        }
    }

    fn type_of_scalar(
        &mut self,
        id: ScalarId,
        columns: Option<&[ResultColumn]>,
        host: &mut dyn Host,
    ) -> ExprType {
        let program = Arc::clone(&self.program);
        let code = &program.scalars[id as usize];
        let Ok(variables) = self.variables(&code.uses, columns) else { return ExprType::null() };
        if calls_back(&code.of) {
            let query = self.query_of(code, variables);
            let described = host.describe(&query).ok().and_then(|mut columns| columns.pop());
            return described.map_or(ExprType::null(), |column| ExprType::of_column(&column.ty, true));
        }
        match bind_expr(&code.of, &variables, host) {
            Ok((expr, _)) => expr.ty(),
            Err(_) => ExprType::null(),
        }
    }

    /// Binds an expression of the body. A row is bound element by element.
    fn scalar_of(
        &mut self,
        code: &Code<ast::Expr>,
        columns: Option<&[ResultColumn]>,
        host: &mut dyn Host,
    ) -> Scalar {
        match &code.of {
            ast::Expr::Param(n)
                if let Variable::Slot(slot) = code.uses[*n as usize].of
                    && self.slots[slot as usize].fields.is_some() =>
            {
                match self.places_of(&Variable::Slot(slot)) {
                    Ok(places) => Scalar::Row(places),
                    Err(error) => Scalar::Fails(error),
                }
            }
            ast::Expr::Row(items) => {
                let part = |item: &ast::Expr| Code {
                    of: item.clone(),
                    uses: code.uses.clone(),
                    range: code.range.clone(),
                };
                Scalar::List(items.iter().map(|item| self.scalar_of(&part(item), columns, host)).collect())
            }
            _ => match self.variables(&code.uses, columns) {
                Ok(variables) => self.scalar(code, variables, host),
                Err(error) => Scalar::Fails(error),
            },
        }
    }

    fn scalar(&self, code: &Code<ast::Expr>, variables: Variables, host: &mut dyn Host) -> Scalar {
        if let ast::Expr::Param(n) = &code.of {
            return Scalar::Place(variables.places[*n as usize]);
        }
        if calls_back(&code.of) {
            return match check_alone(&code.of) {
                Ok(()) => Scalar::Query(Box::new(self.query_of(code, variables))),
                Err(error) => Scalar::Fails(error),
            };
        }
        match bind_expr(&code.of, &variables, host) {
            Ok((_, false)) => Scalar::Each(Box::new(code.clone())),
            Ok((expr, true)) => match over_places(expr, &variables.places) {
                Ok(expr) => Scalar::Expr(Box::new(expr)),
                Err(error) => Scalar::Fails(error),
            },
            Err(error) => Scalar::Fails(error),
        }
    }

    /// Makes numbers of hexadecimal literals that are assigned to numeric variables or returned as numbers.
    fn take_literals_as_numbers(&mut self) {
        let program = Arc::clone(&self.program);
        for instruction in &program.code {
            let (to, value) = match instruction {
                Instruction::Set { to, value } => (Some(to.clone()), *value),
                Instruction::Declare { slot } => match program.slots[*slot as usize].default {
                    Some(default) => (Some(Variable::Slot(*slot)), default),
                    None => continue,
                },
                Instruction::Return(value) => (None, *value),
                _ => continue,
            };
            let kind = match to {
                Some(to) if self.is_row(&to) => None,
                Some(to) => self.place_of(&to).ok().and_then(|place| match &self.places[place as usize].ty {
                    PlaceType::Column(ty) => Some(ty.kind),
                    PlaceType::Any(_) => None,
                }),
                None => self.returns.as_ref().map(|ty| ty.kind),
            };
            if let (Some(kind), Scalar::Expr(expr)) = (kind, &mut self.scalars[value as usize]) {
                let taken = std::mem::replace(&mut **expr, Expr::null());
                **expr = taken.for_column(kind);
            }
        }
    }

    /// Binds an expression that depends on the types of user variables.
    pub(crate) fn bind_now(&self, code: &Code<ast::Expr>, host: &mut dyn Host) -> SqlResult<Expr> {
        let variables = self.known_variables(&code.uses)?;
        let (expr, _) = bind_expr(&code.of, &variables, host)?;
        over_places(expr, &variables.places)
    }

    /// Returns `SELECT expression`.
    fn query_of(&self, code: &Code<ast::Expr>, variables: Variables) -> BodyStatement {
        let item = SelectItem::Expr { expr: code.of.clone(), alias: None, text: String::new() };
        let query = Query::of(QueryBody::Select(Box::new(Select::of(vec![item]))));
        let (rest, mut at) = self.spliced(&code.range, &code.uses);
        let mut select = b"SELECT ".to_vec();
        at.iter_mut().for_each(|at| *at += select.len() as u32);
        select.extend(rest);
        let statement = Statement::Query(Box::new(query));
        BodyStatement::new(statement, (select, at), variables.parts())
    }

    fn statement(
        &mut self,
        code: &Code<Statement>,
        columns: Option<&[ResultColumn]>,
    ) -> SqlResult<BodyStatement> {
        let variables = self.variables(&code.uses, columns)?;
        if let Statement::Query(query) = &code.of {
            for target in &query.into {
                if let ast::Target::Local(variable) = target {
                    self.add_column(variable, columns)?;
                }
            }
        }
        let text = self.spliced(&code.range, &code.uses);
        Ok(BodyStatement::new(code.of.clone(), text, variables.parts()))
    }

    /// Returns a part of the body with `?` in place of the variables, and the positions of these.
    fn spliced(&self, range: &std::ops::Range<usize>, uses: &[VariableUse]) -> (Vec<u8>, Vec<u32>) {
        let body = self.program.body.as_bytes();
        let (mut text, mut positions, mut at) = (Vec::new(), Vec::new(), range.start);
        for used in uses.iter().filter(|used| used.range.start >= range.start && used.range.end <= range.end)
        {
            text.extend_from_slice(&body[at..used.range.start]);
            positions.push(text.len() as u32);
            text.push(b'?');
            at = used.range.end;
        }
        text.extend_from_slice(&body[at..range.end]);
        (text, positions)
    }

    fn variables(&mut self, uses: &[VariableUse], columns: Option<&[ResultColumn]>) -> SqlResult<Variables> {
        for used in uses {
            self.add_column(&used.of, columns)?;
        }
        self.known_variables(uses)
    }

    fn known_variables(&self, uses: &[VariableUse]) -> SqlResult<Variables> {
        let mut found = Variables { places: Vec::new(), types: Vec::new(), fixed: Vec::new() };
        let is_fixed = |variable: &Variable| match variable {
            Variable::Old(_) => true,
            Variable::New(_) => {
                matches!(self.program.kind, ProgramKind::Trigger(ast::TriggerTiming::After, _))
            }
            Variable::Slot(_) | Variable::Field(..) => false,
        };
        for used in uses {
            let place = self.place_of(&used.of)?;
            found.places.push(place);
            if is_fixed(&used.of) {
                found.fixed.push(place);
            }
            found.types.push(match &self.places[place as usize].ty {
                PlaceType::Column(ty) => ExprType::of_column(ty, true),
                PlaceType::Any(ty) => ty.clone(),
            });
        }
        Ok(found)
    }

    /// Gives a column of OLD or NEW a place. Error 1054 if the table has no such column.
    fn add_column(&mut self, variable: &Variable, columns: Option<&[ResultColumn]>) -> SqlResult<()> {
        let (is_new, name) = match variable {
            Variable::Old(name) => (false, name),
            Variable::New(name) => (true, name),
            Variable::Slot(_) | Variable::Field(..) => return Ok(()),
        };
        let columns = columns.unwrap_or_default();
        let found = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let row = if is_new { "NEW" } else { "OLD" };
        let Some(ordinal) = found else { return Err(SqlError::unknown_column(name, row)) };
        if !self.columns.iter().any(|known| known.is_new == is_new && known.ordinal == ordinal) {
            let column = &columns[ordinal];
            let place = self.add_place(&column.name, PlaceType::Column(column.ty.clone()));
            self.columns.push(RowColumn { is_new, ordinal, place });
        }
        Ok(())
    }
}

/// Binds an expression. Returns false if it can be used only once.
fn bind_expr(expr: &ast::Expr, variables: &Variables, host: &mut dyn Host) -> SqlResult<(Expr, bool)> {
    let mut bound = None;
    host.with_names(&mut |names| {
        let Variables { types, places, fixed } = variables;
        let ctx = PlanContext::with_variables(names, &[], cohort_plan::Variables { types, places, fixed });
        let scope = Scope::default();
        let expr = Binder::new(&ctx, &scope, Clause::Select).expression(expr)?;
        bound = Some((expr, ctx.reusable.get()));
        Ok(())
    })?;
    Ok(bound.expect("the expression was bound"))
}

/// Replaces the numbers of uses by places.
fn over_places(expr: Expr, places: &[u32]) -> SqlResult<Expr> {
    expr.transform(&mut |node| {
        Ok(match node {
            Expr::Param(param) => Expr::param(places[param.index] as usize, param.ty),
            other => other,
        })
    })
}
