//! Stored programs: procedures, functions, triggers, events, and compound statements.
//!
//! A body is a tree of [`Step`]s. Local variables are resolved to slots: in an expression, a variable is an
//! [`Expr::Param`], and the [`Code`] around it has the list of uses. Names of conditions, cursors and labels
//! are not resolved.

use std::ops::Range;

pub use cohort_types::{DataAccess, EventStatus, RoutineKind, TriggerEvent, TriggerTiming};

use super::{
    Account, ColumnRef, CreateMode, DataType, Expr, IntervalUnit, ObjectName, Query, SetItem, Statement,
    ViewSecurity,
};

/// A statement that defines a stored program, runs one, or belongs to the language of their bodies.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    CreateRoutine(CreateRoutine),
    AlterRoutine {
        kind: RoutineKind,
        name: ObjectName,
        characteristics: Characteristics,
    },
    DropRoutine {
        kind: RoutineKind,
        if_exists: bool,
        name: ObjectName,
    },
    CreateTrigger(CreateTrigger),
    DropTrigger {
        if_exists: bool,
        name: ObjectName,
    },
    CreateEvent(CreateEvent),
    AlterEvent(AlterEvent),
    DropEvent {
        if_exists: bool,
        name: ObjectName,
    },
    Call {
        name: ObjectName,
        arguments: Vec<Expr>,
    },
    /// CHECK PROCEDURE, FUNCTION or TRIGGER.
    Check {
        kind: CheckedKind,
        name: ObjectName,
    },
    /// BEGIN NOT ATOMIC .. END, or IF, CASE, a loop outside of a program.
    Compound(Body),
    Signal(Signal),
    Resignal(Resignal),
}

impl Program {
    /// Returns whether the statement creates, alters or drops a program.
    pub fn is_definition(&self) -> bool {
        match self {
            Program::CreateRoutine(_)
            | Program::AlterRoutine { .. }
            | Program::DropRoutine { .. }
            | Program::CreateTrigger(_)
            | Program::DropTrigger { .. }
            | Program::CreateEvent(_)
            | Program::AlterEvent(_)
            | Program::DropEvent { .. } => true,
            Program::Call { .. }
            | Program::Check { .. }
            | Program::Compound(_)
            | Program::Signal(_)
            | Program::Resignal(_) => false,
        }
    }

    /// Returns the first words of the statement.
    pub fn name(&self) -> &'static str {
        match self {
            Program::CreateRoutine(create) => match create.kind {
                RoutineKind::Procedure => "CREATE PROCEDURE",
                RoutineKind::Function => "CREATE FUNCTION",
            },
            Program::AlterRoutine { kind: RoutineKind::Procedure, .. } => "ALTER PROCEDURE",
            Program::AlterRoutine { kind: RoutineKind::Function, .. } => "ALTER FUNCTION",
            Program::DropRoutine { kind: RoutineKind::Procedure, .. } => "DROP PROCEDURE",
            Program::DropRoutine { kind: RoutineKind::Function, .. } => "DROP FUNCTION",
            Program::CreateTrigger(_) => "CREATE TRIGGER",
            Program::DropTrigger { .. } => "DROP TRIGGER",
            Program::CreateEvent(_) => "CREATE EVENT",
            Program::AlterEvent(_) => "ALTER EVENT",
            Program::DropEvent { .. } => "DROP EVENT",
            Program::Call { .. } => "CALL",
            Program::Check { kind: CheckedKind::Routine(RoutineKind::Procedure), .. } => "CHECK PROCEDURE",
            Program::Check { kind: CheckedKind::Routine(RoutineKind::Function), .. } => "CHECK FUNCTION",
            Program::Check { kind: CheckedKind::Trigger, .. } => "CHECK TRIGGER",
            Program::Compound(_) => "compound statements",
            Program::Signal(_) => "SIGNAL",
            Program::Resignal(_) => "RESIGNAL",
        }
    }
}

/// The kind of program that CHECK names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedKind {
    Routine(RoutineKind),
    Trigger,
}

/// CREATE PROCEDURE or CREATE FUNCTION.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoutine {
    pub mode: CreateMode,
    pub definer: Option<Account>,
    pub kind: RoutineKind,
    /// AGGREGATE FUNCTION.
    pub aggregate: bool,
    pub name: ObjectName,
    pub parameters: Vec<Parameter>,
    /// The text between the parentheses of the parameters, as written.
    pub parameter_text: String,
    /// The type after RETURNS, with its text.
    pub returns: Option<(VariableType, String)>,
    pub characteristics: Characteristics,
    pub body: Body,
}

/// A parameter of a routine.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub mode: ParameterMode,
    pub name: String,
    pub of: VariableType,
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterMode {
    In,
    Out,
    InOut,
}

impl ParameterMode {
    /// Returns whether the parameter gets the value of its argument.
    pub fn is_in(self) -> bool {
        self != ParameterMode::Out
    }

    /// Returns whether the argument gets the parameter's value at the end.
    pub fn is_out(self) -> bool {
        self != ParameterMode::In
    }
}

/// Declared type of a variable, a parameter or a function's result.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableType {
    Declared(DataType),
    /// TYPE OF [db.]table.column.
    TypeOf(ColumnRef),
    /// TYPE OF a variable, by its slot.
    TypeOfVariable(u32),
    /// ROW TYPE OF a table or a cursor.
    RowTypeOf(ObjectName),
    /// ROW(field type, ..).
    Row(Vec<(String, VariableType)>),
}

impl VariableType {
    /// Returns whether a variable of the type is a row.
    pub fn is_row(&self) -> bool {
        matches!(self, VariableType::RowTypeOf(_) | VariableType::Row(_))
    }
}

/// Characteristics of a routine. `None` if not written; the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Characteristics {
    pub comment: Option<String>,
    pub deterministic: Option<bool>,
    pub access: Option<DataAccess>,
    pub security: Option<ViewSecurity>,
}

/// CREATE TRIGGER.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    pub mode: CreateMode,
    pub definer: Option<Account>,
    pub name: ObjectName,
    pub timing: TriggerTiming,
    pub event: TriggerEvent,
    pub table: ObjectName,
    /// The start of the word TRIGGER in the statement's text.
    pub start: usize,
    /// The range of `ON table` in the statement's text.
    pub on: Range<usize>,
    /// The range of FOLLOWS or PRECEDES in the statement's text; empty if there is none.
    pub order_text: Range<usize>,
    /// FOLLOWS or PRECEDES another trigger.
    pub order: Option<(TriggerOrder, String)>,
    pub body: Body,
}

/// Position of a new trigger relative to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerOrder {
    Follows,
    Precedes,
}

/// CREATE EVENT.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEvent {
    pub mode: CreateMode,
    pub definer: Option<Account>,
    /// The start of the word EVENT in the statement's text.
    pub start: usize,
    pub name: ObjectName,
    pub schedule: Schedule,
    pub options: EventOptions,
    pub body: Body,
}

/// ALTER EVENT. Parts that are not written stay unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterEvent {
    pub definer: Option<Account>,
    pub name: ObjectName,
    pub schedule: Option<Schedule>,
    pub rename_to: Option<ObjectName>,
    pub options: EventOptions,
    pub body: Option<Body>,
}

/// ON SCHEDULE.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// AT a time.
    At(Expr),
    /// EVERY interval [STARTS time] [ENDS time].
    Every { interval: Expr, unit: IntervalUnit, starts: Option<Expr>, ends: Option<Expr> },
}

/// Options of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventOptions {
    /// ON COMPLETION PRESERVE (true) or NOT PRESERVE.
    pub preserve: Option<bool>,
    pub status: Option<EventStatus>,
    pub comment: Option<String>,
}

/// The body of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub step: Step,
    /// The body's range in the statement's text. The ranges in the steps are relative to its start.
    pub range: Range<usize>,
    /// Number of slots of local variables. The parameters have the first ones.
    pub slots: u32,
}

/// A part of a body that uses local variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Code<T> {
    /// [`Expr::Param`] in it is the number of a use.
    pub of: T,
    pub uses: Vec<VariableUse>,
    /// Range in the body.
    pub range: Range<usize>,
}

/// A use of a variable in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableUse {
    pub of: Variable,
    /// Range in the body.
    pub range: Range<usize>,
}

/// A variable of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Variable {
    /// A local variable or a parameter, by its slot.
    Slot(u32),
    /// A field of a row variable.
    Field(u32, String),
    /// A column of the row before the change, in a trigger.
    Old(String),
    /// A column of the row after the change, in a trigger.
    New(String),
}

/// One statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A statement that could stand outside of a program.
    Sql(Box<Code<Statement>>),
    Block(Block),
    If {
        arms: Vec<Arm>,
        otherwise: Option<Vec<Step>>,
    },
    /// CASE. Without an operand, the arms have conditions. Without ELSE, a value without an arm is error
    /// 1339.
    Case {
        operand: Option<Code<Expr>>,
        arms: Vec<Arm>,
        otherwise: Option<Vec<Step>>,
        /// Offset of END in the body.
        end: usize,
    },
    Loop {
        label: Option<String>,
        kind: LoopKind,
        steps: Vec<Step>,
    },
    Leave(String),
    Iterate(String),
    Return(Code<Expr>),
    /// OPEN, FETCH or CLOSE.
    Cursor {
        name: String,
        action: CursorAction,
        /// Its end in the body.
        end: usize,
    },
    /// FETCH GROUP NEXT ROW.
    FetchGroup,
    /// SET with variables of the body among its items.
    Set(Vec<BodyAssignment>),
}

/// A use of a cursor.
#[derive(Clone, Debug, PartialEq)]
pub enum CursorAction {
    Open(Vec<Code<Expr>>),
    Fetch(Vec<Variable>),
    Close,
}

/// Steps with a condition, or with a value of CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    pub when: Code<Expr>,
    pub steps: Vec<Step>,
}

/// BEGIN .. END.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub label: Option<String>,
    pub declarations: Vec<Declaration>,
    pub steps: Vec<Step>,
}

/// The kind of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopKind {
    /// LOOP .. END LOOP.
    Endless,
    While(Code<Expr>),
    /// REPEAT .. UNTIL condition.
    Until(Code<Expr>),
    /// FOR variable IN [REVERSE] from .. to.
    Numbers {
        variable: u32,
        reverse: bool,
        from: Code<Expr>,
        to: Code<Expr>,
    },
    /// FOR variable IN cursor[(arguments)].
    Cursor {
        variable: u32,
        cursor: String,
        arguments: Vec<Code<Expr>>,
    },
    /// FOR variable IN (query).
    Query {
        variable: u32,
        query: Box<Code<Query>>,
    },
}

/// DECLARE.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// Variables of one type and default.
    Variables {
        /// Names with their slots.
        names: Vec<(String, u32)>,
        of: VariableType,
        default: Option<Box<Code<Expr>>>,
        /// The end of the declaration in the body.
        end: usize,
    },
    Condition {
        name: String,
        value: ConditionValue,
    },
    Cursor {
        name: String,
        /// Names with their slots and types.
        parameters: Vec<(String, u32, VariableType)>,
        query: Box<Code<Query>>,
    },
    Handler {
        action: AfterHandler,
        conditions: Vec<HandledCondition>,
        step: Box<Step>,
    },
}

/// Continuation after a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterHandler {
    Continue,
    Exit,
}

/// The value of a declared condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionValue {
    /// A number of an error.
    Error(u32),
    /// SQLSTATE [VALUE] '.....'.
    Sqlstate(String),
}

/// A condition of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandledCondition {
    Value(ConditionValue),
    /// The name of a declared condition.
    Named(String),
    Sqlwarning,
    NotFound,
    Sqlexception,
}

/// One item of SET in a body.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyAssignment {
    /// `variable = value`. Without a value: DEFAULT.
    Variable {
        to: Variable,
        value: Option<Code<Expr>>,
    },
    Other(Box<Code<SetItem>>),
}

/// A variable that receives a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    User(String),
    Local(Variable),
}

/// SIGNAL.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub condition: SignalledCondition,
    pub items: Vec<(SignalItem, Expr)>,
}

/// RESIGNAL.
#[derive(Clone, Debug, PartialEq)]
pub struct Resignal {
    pub condition: Option<SignalledCondition>,
    pub items: Vec<(SignalItem, Expr)>,
}

/// The condition that SIGNAL raises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalledCondition {
    Sqlstate(String),
    /// The name of a declared condition.
    Named(String),
}

/// An item of SIGNAL's SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalItem {
    ClassOrigin,
    SubclassOrigin,
    ConstraintCatalog,
    ConstraintSchema,
    ConstraintName,
    CatalogName,
    SchemaName,
    TableName,
    ColumnName,
    CursorName,
    MessageText,
    MysqlErrno,
    RowNumber,
}

impl SignalItem {
    /// Returns whether the server sets the item, too.
    pub fn is_of_server(self) -> bool {
        matches!(self, SignalItem::MessageText | SignalItem::MysqlErrno | SignalItem::RowNumber)
    }

    /// The items by their words.
    pub const ALL: [(&str, SignalItem); 13] = [
        ("CLASS_ORIGIN", SignalItem::ClassOrigin),
        ("SUBCLASS_ORIGIN", SignalItem::SubclassOrigin),
        ("CONSTRAINT_CATALOG", SignalItem::ConstraintCatalog),
        ("CONSTRAINT_SCHEMA", SignalItem::ConstraintSchema),
        ("CONSTRAINT_NAME", SignalItem::ConstraintName),
        ("CATALOG_NAME", SignalItem::CatalogName),
        ("SCHEMA_NAME", SignalItem::SchemaName),
        ("TABLE_NAME", SignalItem::TableName),
        ("COLUMN_NAME", SignalItem::ColumnName),
        ("CURSOR_NAME", SignalItem::CursorName),
        ("MESSAGE_TEXT", SignalItem::MessageText),
        ("MYSQL_ERRNO", SignalItem::MysqlErrno),
        ("ROW_NUMBER", SignalItem::RowNumber),
    ];
}
