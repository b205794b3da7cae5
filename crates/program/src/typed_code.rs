//! Typed instructions: those of a program that need its frame alone.
//!
//! # States
//! ```text
//! run --> At: an instruction of the general kind, RETURN, the end, or a miss
//!     \-> Check: some jumps were made, KILL and the time limit are to be looked at
//! ```
//! A typed instruction either has its whole effect or none: after [`Stop::At`] the general code runs the same
//! instruction, with its errors, warnings and handlers.
//!
//! A round of a loop neither allocates nor begins a statement. It does not touch the transaction, the
//! diagnostics area, or the clock.

use cohort_types::{
    ColumnType, DECIMALS_NOT_FIXED, FixedOffset, SqlMode, StoreContext, TypeKind, Value, Warning, WarningSink,
};

use crate::host::QueryRows;
use crate::program::{CursorId, Pc};
use crate::typed::{DIGITS_MAX, Exact, ExactKind, Got, Number, Test};

/// Jumps between two checks for KILL and the time limit.
pub(crate) const JUMPS_UNCHECKED: u32 = 1000;

/// An instruction over typed places.
#[derive(Debug)]
pub(crate) enum Op {
    /// The general code runs the instruction.
    General,
    /// Assigns an integer to a place of an integer type with a sign.
    SetInt {
        to: u32,
        min: i64,
        max: i64,
        value: Exact,
    },
    Set {
        to: Target,
        value: Number,
    },
    /// Assigns the value of a variable.
    Copy {
        to: Target,
        from: u32,
    },
    /// Sets a variable without a default to NULL.
    Clear(u32),
    Unless {
        test: Test,
        to: Pc,
    },
    Jump(Pc),
    /// Reads a row of an open cursor. After the last row, the general code goes on.
    Fetch {
        cursor: CursorId,
        into: Box<[Target]>,
    },
    Return {
        value: Number,
        store: Store,
    },
    End,
}

/// A place that receives a value.
#[derive(Debug)]
pub(crate) struct Target {
    pub place: u32,
    pub store: Store,
}

/// The conversion of a number to the type of a place.
#[derive(Debug)]
pub(crate) enum Store {
    /// Values are kept as they are.
    Any,
    Int {
        min: i64,
        max: i64,
    },
    UInt {
        max: i64,
    },
    Decimal {
        scale: u8,
        /// The least magnitude that has too many digits.
        limit: i64,
        unsigned: bool,
    },
    Real {
        unsigned: bool,
    },
    /// Another type of numbers.
    Column(Box<ColumnType>),
}

impl Store {
    /// Returns the conversion to a type of numbers.
    pub fn of_column(ty: &ColumnType) -> Option<Store> {
        use TypeKind as K;
        Some(match ty.kind {
            K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => {
                let (min, max) = ty.integer_range()?;
                let max = i64::try_from(max).unwrap_or(i64::MAX);
                match ty.unsigned {
                    true => Store::UInt { max },
                    false => Store::Int { min: i64::try_from(min).ok()?, max },
                }
            }
            K::Decimal if ty.length <= DIGITS_MAX.into() => {
                let limit = 10i64.checked_pow(ty.length)?;
                Store::Decimal { scale: ty.decimals, limit, unsigned: ty.unsigned }
            }
            K::Double if ty.decimals >= DECIMALS_NOT_FIXED => Store::Real { unsigned: ty.unsigned },
            K::Decimal | K::Float | K::Double => Store::Column(Box::new(ty.clone())),
            _ => return None,
        })
    }

    /// Returns the stored form of a number, or `None` if it does not fit or would warn.
    #[inline]
    fn exact(&self, kind: ExactKind, number: i64) -> Option<Value> {
        match self {
            Store::Any => Some(kind.value(number)),
            Store::Int { min, max } if kind.scale() == 0 => {
                (*min <= number && number <= *max).then_some(Value::Int(number))
            }
            Store::UInt { max } if kind.scale() == 0 => {
                (0 <= number && number <= *max).then_some(Value::UInt(number as u64))
            }
            Store::Decimal { scale, limit, unsigned } if kind.scale() <= *scale => {
                let factor = 10i64.checked_pow(u32::from(scale - kind.scale()))?;
                let number = number.checked_mul(factor)?;
                let fits = number.unsigned_abs() < limit.unsigned_abs() && (number >= 0 || !unsigned);
                fits.then(|| ExactKind::Decimal(*scale).value(number))
            }
            Store::Real { .. } if kind.scale() == 0 => self.real(number as f64),
            _ => self.value(kind.value(number)),
        }
    }

    #[inline]
    fn real(&self, number: f64) -> Option<Value> {
        match self {
            Store::Any => Some(Value::Double(number)),
            // -0 is stored as 0.
            Store::Real { unsigned } if number >= 0.0 || !unsigned => Some(Value::Double(number + 0.0)),
            _ => self.value(Value::Double(number)),
        }
    }

    /// Returns the stored form of a value, or `None` if it is no number, does not fit, or would warn.
    pub fn copied(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Null => Some(Value::Null),
            Value::Int(number) => self.exact(ExactKind::Int, *number),
            Value::UInt(number) => self.exact(ExactKind::UInt, i64::try_from(*number).ok()?),
            Value::Double(number) => self.real(*number),
            Value::Decimal(number) => match number.mantissa_at(number.scale()) {
                Some(mantissa) => self.exact(ExactKind::Decimal(number.scale()), mantissa),
                None => None,
            },
            _ => None,
        }
    }

    /// Converts a number by the rules of assignment, if that raises nothing.
    fn value(&self, value: Value) -> Option<Value> {
        let Store::Column(ty) = self else { return None };
        let mut quiet = Quiet { warned: false };
        let ctx = StoreContext {
            sql_mode: SqlMode::DEFAULT,
            strict: true,
            database: "",
            table: "",
            column: "",
            row: 0,
            zone: &FixedOffset { seconds: 0 },
            now_micros: 0,
        };
        let stored = ty.store(value, &ctx, &mut quiet).ok()?;
        (!quiet.warned).then_some(stored)
    }
}

/// A sink that notes that there was a warning.
struct Quiet {
    warned: bool,
}

impl WarningSink for Quiet {
    fn warn(&mut self, _: Warning) {
        self.warned = true;
    }
}

impl Number {
    /// Returns the stored form of the number's value. `None` is a miss.
    pub fn stored(&self, store: &Store, places: &[Value]) -> Option<Value> {
        match self {
            Number::Exact(kind, exact) => match exact.eval(places) {
                Got::Is(number) => store.exact(*kind, number),
                Got::Null => Some(Value::Null),
                Got::Miss => None,
            },
            Number::Real(real) => match real.eval(places) {
                Got::Is(number) => store.real(number),
                Got::Null => Some(Value::Null),
                Got::Miss => None,
            },
            Number::Null => Some(Value::Null),
        }
    }
}

/// The end of a run of typed instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The general code runs this instruction.
    At(Pc),
    /// KILL and the time limit are to be looked at, after the jump at `at`.
    Check { at: Pc, to: Pc },
}

/// The values that typed instructions use.
pub(crate) struct TypedState<'f> {
    pub places: &'f mut [Value],
    pub cursors: &'f mut [Option<Box<dyn QueryRows>>],
    /// Jumps until the next check for KILL.
    pub jumps_left: u32,
    /// Whether an expression was evaluated.
    pub has_evaluated: bool,
}

/// An observer of the instructions that are executed.
pub(crate) trait Observer {
    /// Notes that an instruction begins.
    fn executes(&mut self, pc: Pc);
}

/// Observes nothing, at no cost.
impl Observer for () {
    #[inline]
    fn executes(&mut self, _: Pc) {}
}

/// Runs typed instructions from `pc` on. The observer also notes the instruction at which it stops.
pub(crate) fn run<O: Observer>(ops: &[Op], state: &mut TypedState<'_>, mut pc: Pc, observer: &mut O) -> Stop {
    loop {
        observer.executes(pc);
        let to = match &ops[pc as usize] {
            Op::SetInt { to, min, max, value } => {
                let value = match value.eval(state.places) {
                    Got::Is(number) if *min <= number && number <= *max => Value::Int(number),
                    Got::Null => Value::Null,
                    _ => return Stop::At(pc),
                };
                state.places[*to as usize] = value;
                state.has_evaluated = true;
                pc += 1;
                continue;
            }
            Op::Unless { test, to } => match test.eval(state.places) {
                Got::Is(true) => {
                    state.has_evaluated = true;
                    pc += 1;
                    continue;
                }
                Got::Is(false) | Got::Null => {
                    state.has_evaluated = true;
                    *to
                }
                Got::Miss => return Stop::At(pc),
            },
            Op::Jump(to) => *to,
            Op::Set { to, value } => {
                let Some(value) = value.stored(&to.store, state.places) else { return Stop::At(pc) };
                state.places[to.place as usize] = value;
                state.has_evaluated = true;
                pc += 1;
                continue;
            }
            Op::Copy { to, from } => {
                let copied = to.store.copied(&state.places[*from as usize]);
                let Some(value) = copied else { return Stop::At(pc) };
                state.places[to.place as usize] = value;
                pc += 1;
                continue;
            }
            Op::Clear(place) => {
                state.places[*place as usize] = Value::Null;
                pc += 1;
                continue;
            }
            Op::Fetch { cursor, into } => {
                if !fetch(&mut state.cursors[*cursor as usize], into, state.places) {
                    return Stop::At(pc);
                }
                pc += 1;
                continue;
            }
            Op::General | Op::Return { .. } | Op::End => return Stop::At(pc),
        };
        state.jumps_left -= 1;
        if state.jumps_left == 0 {
            state.jumps_left = JUMPS_UNCHECKED;
            return Stop::Check { at: pc, to };
        }
        pc = to;
    }
}

/// Reads a row. Returns false, and reads none, if there is none or if it needs conversions.
#[inline]
fn fetch(cursor: &mut Option<Box<dyn QueryRows>>, into: &[Target], places: &mut [Value]) -> bool {
    let Some(rows) = cursor else { return false };
    let Some(row) = rows.row() else { return false };
    if row.len() != into.len() {
        return false;
    }
    for (to, value) in into.iter().zip(row) {
        match to.store.copied(value) {
            Some(value) => places[to.place as usize] = value,
            // The general code reads the whole row again.
            None => return false,
        }
    }
    rows.advance();
    true
}
