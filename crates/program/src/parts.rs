//! The parts of a bound program that refer to the catalog, for CHECK.

use cohort_sql::ast::{ObjectName, Query, QueryBody, Select, SelectItem, SetItem, SetValue, Statement};
use cohort_types::{SqlError, SqlResult};

use crate::bind::{Bound, Scalar};
use crate::host::{BodyStatement, Host};
use crate::program::{Instruction, ScalarId, SlotType};

/// A part of a program.
pub enum Part<'b> {
    /// A statement, or the query of a cursor or an expression.
    Statement(&'b BodyStatement),
    /// An expression of a statement that is not planned, as a query.
    Expression(Box<BodyStatement>),
    /// An expression that cannot be bound.
    Fails(SqlError),
    /// CALL. An argument for an OUT parameter must be a variable.
    Call { procedure: &'b ObjectName, is_variable: Vec<bool> },
}

impl Bound {
    /// Returns the parts of the program, each with its line, in the order of the body. `host` has the
    /// settings of the program.
    pub fn parts(&self, host: &mut dyn Host) -> Vec<(usize, Part<'_>)> {
        let mut parts = Vec::new();
        let line_at = self.program.line_finder();
        for (instruction, start) in self.program.code.iter().zip(&self.program.starts) {
            let mut found = Vec::new();
            self.parts_of(instruction, host, &mut found);
            let offset = (*start as usize).min(self.program.body.len());
            let line = line_at(offset);
            parts.extend(found.into_iter().map(|part| (line, part)));
        }
        parts
    }

    fn parts_of<'b>(&'b self, instruction: &'b Instruction, host: &mut dyn Host, found: &mut Vec<Part<'b>>) {
        match instruction {
            Instruction::Set { value, .. }
            | Instruction::Operand { value, .. }
            | Instruction::JumpUnless { condition: value, .. }
            | Instruction::Return(value) => self.part_of(*value, host, found),
            Instruction::Declare { slot } => {
                let declared = &self.program.slots[*slot as usize];
                if let (Some(default), false) = (declared.default, matches!(declared.of, SlotType::Integer)) {
                    self.part_of(default, host, found);
                }
            }
            Instruction::Statement(id) => self.statement_parts(&self.statements[*id as usize], found),
            Instruction::Open { cursor, args } => {
                args.iter().for_each(|arg| self.part_of(*arg, host, found));
                let query = self.program.cursors[*cursor as usize].query;
                found.push(Part::Statement(&self.statements[query as usize]));
            }
            Instruction::Call { procedure, args, targets } => {
                args.iter().for_each(|arg| self.part_of(*arg, host, found));
                let is_variable = targets.iter().map(Option::is_some).collect();
                found.push(Part::Call { procedure, is_variable });
            }
            Instruction::Signal(raised) => {
                raised.items.iter().for_each(|(_, value)| self.part_of(*value, host, found))
            }
            Instruction::Resignal { items, .. } => {
                items.iter().for_each(|(_, value)| self.part_of(*value, host, found))
            }
            Instruction::Jump(_)
            | Instruction::CaseNotFound
            | Instruction::EnterBlock(_)
            | Instruction::LeaveBlocks(_)
            | Instruction::EndHandler
            | Instruction::Fetch { .. }
            | Instruction::FetchOrJump { .. }
            | Instruction::Close { .. }
            | Instruction::FetchGroup
            | Instruction::End => {}
        }
    }

    fn statement_parts<'b>(&'b self, statement: &'b BodyStatement, found: &mut Vec<Part<'b>>) {
        if statement.statement.plannable().is_some() {
            found.push(Part::Statement(statement));
            return;
        }
        let Statement::Set(items) = &statement.statement else { return };
        for item in items {
            let (SetItem::UserVariable { value, .. }
            | SetItem::Variable { value: SetValue::Expr(value), .. }) = item
            else {
                continue;
            };
            let item = SelectItem::Expr { expr: value.clone(), alias: None, text: String::new() };
            let query = Query::of(QueryBody::Select(Box::new(Select::of(vec![item]))));
            found.push(Part::Expression(Box::new(statement.with(Statement::Query(Box::new(query))))));
        }
    }

    fn part_of<'b>(&'b self, id: ScalarId, host: &mut dyn Host, found: &mut Vec<Part<'b>>) {
        self.scalar_part(&self.scalars[id as usize], host, found);
    }

    fn scalar_part<'b>(&'b self, scalar: &'b Scalar, host: &mut dyn Host, found: &mut Vec<Part<'b>>) {
        match scalar {
            Scalar::Expr(_) | Scalar::Place(_) | Scalar::Row(_) => {}
            Scalar::List(items) => items.iter().for_each(|item| self.scalar_part(item, host, found)),
            Scalar::Each(code) => {
                let bound: SqlResult<_> = self.bind_now(code, host);
                found.extend(bound.err().map(Part::Fails));
            }
            Scalar::Query(query) => found.push(Part::Statement(query)),
            Scalar::Fails(error) => found.push(Part::Fails(error.clone())),
        }
    }
}
