//! IN, ANY and ALL over the rows of a subquery, in three-valued logic.
//!
//! # Concepts
//! An [`Operand`] is the evaluated left side. A [`Verdict`] consumes rows until the result is certain: ANY is
//! true on the first row that compares true, false if all rows compare false, and unknown otherwise. ALL is
//! the opposite. [`Members`] store the rows of a query whose result never changes, and can avoid comparing
//! each row:
//!
//! - equality finds a row by its key ([`Keys`]), if operand and rows are of a class whose equal values have
//!   equal keys. If no row is found, the result depends on whether a NULL could have matched;
//! - an order comparison needs only the smallest and the largest value, if all values are of one class.
//!
//! All other comparisons read all rows.
//!
//! # Missing
//! The keys stay in memory; the rows do not.

use std::cmp::Ordering;

use cohort_expr::{CompareHow, CompareOp, Expr, TypeClass, compare};
use cohort_types::{Class, Collation, Interrupt, SqlResult, Value};

use crate::batch::Batch;
use crate::equal_key::{KeyMode, append_equal_key};
use crate::key_table::KeyTable;
use crate::operator::Input;
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::{Held, Run};

/// The left side of a comparison with rows, and the comparison.
pub(crate) struct Operand<'e> {
    values: Vec<Value>,
    op: CompareOp,
    all: bool,
    how: &'e CompareHow,
}

impl<'e> Operand<'e> {
    pub fn new(
        run: Run<'_, '_>,
        expr: &Expr,
        row: &[Value],
        op: CompareOp,
        all: bool,
        how: &'e CompareHow,
        keeps_digits: bool,
    ) -> SqlResult<Operand<'e>> {
        let parts = if let Expr::Row(parts) = expr { parts.as_slice() } else { std::slice::from_ref(expr) };
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            let value = match keeps_digits {
                true => part.eval(row, run.eval)?,
                false => part.eval_output(row, run.eval)?,
            };
            values.push(value.into_owned());
        }
        Ok(Operand { values, op, all, how })
    }

    /// Returns the comparison method of the n-th parts.
    fn how(&self, n: usize) -> &CompareHow {
        match self.how {
            CompareHow::Row(hows) => &hows[n],
            scalar => scalar,
        }
    }

    /// Appends bytes that distinguish operands of one expression.
    pub fn append_key(&self, key: &mut Vec<u8>) {
        self.values.iter().for_each(|value| cohort_types::append_value(value, key));
    }

    /// Compares with a row. Returns `None` if unknown.
    fn compare(&self, run: Run<'_, '_>, row: &[Value]) -> SqlResult<Option<bool>> {
        let mut unknown = false;
        for (n, (a, b)) in self.values.iter().zip(row).enumerate() {
            let order = match compare(a, b, self.how(n), run.eval)? {
                None if self.op == CompareOp::NullSafeEq && a.is_null() == b.is_null() => {
                    Some(Ordering::Equal)
                }
                None if self.op == CompareOp::NullSafeEq => Some(Ordering::Less),
                order => order,
            };
            match order {
                Some(Ordering::Equal) => {}
                None if matches!(self.op, CompareOp::Eq | CompareOp::Ne) => unknown = true,
                None => return Ok(None),
                Some(order) => return Ok(Some(accepts(self.op, order))),
            }
        }
        Ok(if unknown { None } else { Some(accepts(self.op, Ordering::Equal)) })
    }
}

fn accepts(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
    }
}

fn truth(answer: Option<bool>) -> Value {
    answer.map_or(Value::Null, Value::bool)
}

/// The result as far as the rows seen so far determine it.
pub(crate) struct Verdict<'o> {
    operand: &'o Operand<'o>,
    answer: Option<bool>,
}

impl<'o> Verdict<'o> {
    /// Creates the result for no rows.
    pub fn new(operand: &'o Operand<'o>) -> Verdict<'o> {
        Verdict { operand, answer: Some(operand.all) }
    }

    /// Returns true if further rows cannot change the result.
    pub fn is_certain(&self) -> bool {
        self.answer == Some(!self.operand.all)
    }

    pub fn take(&mut self, run: Run<'_, '_>, row: &[Value]) -> SqlResult<()> {
        run.eval.step()?;
        match self.operand.compare(run, row)? {
            Some(holds) if holds != self.operand.all => self.answer = Some(holds),
            Some(_) => {}
            None if self.is_certain() => {}
            None => self.answer = None,
        }
        Ok(())
    }

    pub fn value(&self) -> Value {
        truth(self.answer)
    }
}

/// Encoding under which equal values of a class have equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyClass {
    /// Integers and decimals.
    Exact,
    Real,
    Text(Collation),
    Date,
    Time,
    Fixed,
}

/// Returns the class of a value that is not NULL, or `None` if the comparison converts it.
fn key_class(value: &Value, how: &CompareHow) -> Option<KeyClass> {
    let CompareHow::Scalar { collation, class } = how else { return None };
    let (key, own) = match value.class() {
        Class::Null => return None,
        Class::Int => (KeyClass::Exact, TypeClass::Int),
        Class::Decimal => (KeyClass::Exact, TypeClass::Decimal),
        Class::Real => (KeyClass::Real, TypeClass::Real),
        Class::Str => (KeyClass::Text(*collation), TypeClass::String),
        Class::DateTime => (KeyClass::Date, TypeClass::DateTime),
        Class::Time => (KeyClass::Time, TypeClass::Time),
        Class::Fixed => (KeyClass::Fixed, TypeClass::Fixed),
    };
    let fits = match (class, own) {
        (None, _) | (Some(TypeClass::Decimal), TypeClass::Int) => true,
        (Some(TypeClass::Date | TypeClass::DateTime), TypeClass::DateTime) => true,
        (Some(forced), own) => *forced == own,
    };
    fits.then_some(key)
}

fn append_key(value: &Value, class: KeyClass, key: &mut Vec<u8>, interrupt: &dyn Interrupt) -> SqlResult<()> {
    let (mode, collation) = match class {
        KeyClass::Exact => (KeyMode::Exact, Collation::BINARY),
        KeyClass::Text(collation) => (KeyMode::Text, collation),
        KeyClass::Real | KeyClass::Date | KeyClass::Time | KeyClass::Fixed => {
            (KeyMode::Plain, Collation::BINARY)
        }
    };
    append_equal_key(value, mode, collation, key, interrupt)
}

/// Stored rows of a query whose result never changes.
pub(crate) struct Members {
    rows: RowStore,
    reader: StoreReader,
    /// Built for the classes of the operand seen last.
    keys: Option<Keys>,
    extremes: Option<Extremes>,
    held: Held,
}

/// Rows by key.
struct Keys {
    classes: Vec<KeyClass>,
    table: KeyTable,
    /// Some row is of another class, so the keys cannot be used.
    useless: bool,
    /// Numbers of rows that contain a NULL.
    with_null: Vec<u64>,
}

/// Minimum and maximum of one column.
struct Extremes {
    class: KeyClass,
    /// `None` if there are no values.
    ends: Option<(Value, Value)>,
    has_null: bool,
    /// Some value is of another class, so minimum and maximum cannot be used.
    useless: bool,
}

impl Members {
    pub fn read<'p>(run: Run<'_, 'p>, root: &mut Input<'p>, width: usize) -> SqlResult<Members> {
        let mut rows = RowStore::default();
        let mut batch = Batch::new();
        while root.refill_all(run, &mut batch)? {
            for n in 0..batch.len() {
                rows.push(run, &mut batch.row_mut(n)[..width])?;
            }
        }
        Ok(Members {
            rows,
            reader: StoreReader::default(),
            keys: None,
            extremes: None,
            held: Held::default(),
        })
    }

    pub fn clear(&mut self, run: Run<'_, '_>) {
        self.rows.clear(run);
        self.held.release(run);
        self.keys = None;
    }

    pub fn ask(&mut self, run: Run<'_, '_>, operand: &Operand<'_>) -> SqlResult<Value> {
        if self.rows.len() == 0 {
            return Ok(Verdict::new(operand).value());
        }
        let classes: Option<Vec<KeyClass>> =
            operand.values.iter().enumerate().map(|(n, value)| key_class(value, operand.how(n))).collect();
        if let Some(classes) = classes {
            let (op, all) = (operand.op, operand.all);
            if (op == CompareOp::Eq && !all) || (op == CompareOp::Ne && all) {
                if let Some(found) = self.find(run, operand, classes)? {
                    return Ok(truth(found.map(|found| found != all)));
                }
            } else if let ([class], CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge) =
                (classes.as_slice(), op)
                && let Some(holds) = self.compare_end(run, operand, *class)?
            {
                return Ok(truth(holds));
            }
        } else if let ([Value::Null], false) =
            (operand.values.as_slice(), operand.op == CompareOp::NullSafeEq)
        {
            return Ok(Value::Null);
        }
        let mut verdict = Verdict::new(operand);
        for n in 0..self.rows.len() {
            verdict.take(run, self.rows.row(&mut self.reader, n)?)?;
            if verdict.is_certain() {
                break;
            }
        }
        Ok(verdict.value())
    }

    /// Returns whether a row equals the operand, which contains no NULL. Returns `None` if keys cannot
    /// decide.
    fn find(
        &mut self,
        run: Run<'_, '_>,
        operand: &Operand<'_>,
        classes: Vec<KeyClass>,
    ) -> SqlResult<Option<Option<bool>>> {
        if self.keys.as_ref().is_none_or(|keys| keys.classes != classes) {
            self.held.release(run);
            self.keys = None;
            self.keys = Some(self.make_keys(run, operand, classes)?);
        }
        let Some(keys) = &self.keys else { return Ok(None) };
        if keys.useless {
            return Ok(None);
        }
        let mut key = Vec::new();
        for (value, class) in operand.values.iter().zip(&keys.classes) {
            append_key(value, *class, &mut key, run.eval)?;
        }
        if keys.table.find(&keys.table.hash(&key), &key).is_some() {
            return Ok(Some(Some(true)));
        }
        if let (true, false) = (operand.values.len() == 1, keys.with_null.is_empty()) {
            return Ok(Some(None));
        }
        let equality =
            Operand { values: operand.values.clone(), op: CompareOp::Eq, all: false, how: operand.how };
        for n in &keys.with_null {
            run.eval.step()?;
            if equality.compare(run, self.rows.row(&mut self.reader, *n)?)?.is_none() {
                return Ok(Some(None));
            }
        }
        Ok(Some(Some(false)))
    }

    fn make_keys(
        &mut self,
        run: Run<'_, '_>,
        operand: &Operand<'_>,
        classes: Vec<KeyClass>,
    ) -> SqlResult<Keys> {
        let mut keys = Keys { classes, table: KeyTable::default(), useless: false, with_null: Vec::new() };
        let mut key = Vec::new();
        for n in 0..self.rows.len() {
            run.eval.step()?;
            let row = self.rows.row(&mut self.reader, n)?;
            if row.iter().any(Value::is_null) {
                self.held.grow(run, size_of::<u64>())?;
                keys.with_null.push(n);
                continue;
            }
            key.clear();
            for (n, (value, class)) in row.iter().zip(&keys.classes).enumerate() {
                keys.useless |= key_class(value, operand.how(n)) != Some(*class);
                append_key(value, *class, &mut key, run.eval)?;
            }
            let hashed = keys.table.hash(&key);
            if keys.table.find(&hashed, &key).is_none() {
                self.held.grow(run, KeyTable::bytes_for(&key))?;
                keys.table.insert(&hashed, &key);
            }
            if keys.useless {
                self.held.release(run);
                keys.table = KeyTable::default();
                break;
            }
        }
        Ok(keys)
    }

    /// Evaluates an order comparison from the minimum or maximum. Returns `None` if they cannot decide.
    fn compare_end(
        &mut self,
        run: Run<'_, '_>,
        operand: &Operand<'_>,
        class: KeyClass,
    ) -> SqlResult<Option<Option<bool>>> {
        if self.extremes.as_ref().is_none_or(|extremes| extremes.class != class) {
            self.extremes = Some(self.find_ends(run, operand, class)?);
        }
        let Some(extremes) = &self.extremes else { return Ok(None) };
        if extremes.useless {
            return Ok(None);
        }
        let unless_null = |answer| if extremes.has_null { None } else { Some(answer) };
        let Some((least, greatest)) = &extremes.ends else { return Ok(Some(None)) };
        // Greater than any means greater than the minimum; greater than all means greater than the maximum.
        let wants_less = matches!(operand.op, CompareOp::Lt | CompareOp::Le);
        let end = if wants_less == operand.all { least } else { greatest };
        let holds = operand.compare(run, std::slice::from_ref(end))?;
        Ok(Some(match holds {
            Some(holds) if holds != operand.all => Some(holds),
            Some(holds) => unless_null(holds),
            None => None,
        }))
    }

    fn find_ends(&mut self, run: Run<'_, '_>, operand: &Operand<'_>, class: KeyClass) -> SqlResult<Extremes> {
        let mut found = Extremes { class, ends: None, has_null: false, useless: false };
        for n in 0..self.rows.len() {
            run.eval.step()?;
            let value = &self.rows.row(&mut self.reader, n)?[0];
            if value.is_null() {
                found.has_null = true;
                continue;
            }
            if key_class(value, operand.how(0)) != Some(class) {
                found.useless = true;
                break;
            }
            let Some((least, greatest)) = &mut found.ends else {
                found.ends = Some((value.clone(), value.clone()));
                continue;
            };
            if compare(value, least, operand.how(0), run.eval)? == Some(Ordering::Less) {
                *least = value.clone();
            }
            if compare(value, greatest, operand.how(0), run.eval)? == Some(Ordering::Greater) {
                *greatest = value.clone();
            }
        }
        Ok(found)
    }
}
