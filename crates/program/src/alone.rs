//! Programs that run without a host: functions and triggers that have only typed instructions.
//!
//! If such a program stops anywhere but at its end, because a number overflows for instance, it has had no
//! effect yet. The caller then runs it by the general way, from its begin.

use cohort_types::{SqlResult, Value};

use crate::bind::Bound;
use crate::interpret::NewRow;
use crate::typed_code::{JUMPS_UNCHECKED, Op, Stop, TypedState, run};

/// Places of a frame that need no allocation.
const PLACES_INLINE: usize = 8;

impl Bound {
    /// Returns whether the program has no general instructions, so that it may run without a host.
    pub fn is_typed(&self) -> bool {
        self.is_typed
    }

    /// Calls a function over its typed places alone. Returns `None` without any effect if it must be run by
    /// the general way. `check` looks at KILL and the time limit.
    pub fn call_typed(
        &self,
        args: &[Value],
        check: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<Option<Value>> {
        if args.len() != self.arguments.len() {
            return Ok(None);
        }
        self.over_places(|places| {
            for (target, value) in self.arguments.iter().zip(args) {
                let Some(value) = target.store.copied(value) else { return Ok(None) };
                places[target.place as usize] = value;
            }
            match self.run_typed(places, check)? {
                Some(Op::Return { value, store }) => Ok(value.stored(store, places)),
                _ => Ok(None),
            }
        })
    }

    /// Runs a trigger over its typed places alone. Returns false without any effect if it must be run by the
    /// general way.
    pub fn fire_typed(
        &self,
        (old, new): (Option<&[Value]>, Option<NewRow<'_>>),
        check: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<bool> {
        self.over_places(|places| {
            for column in &self.columns {
                let row = if column.is_new { new.as_ref().map(NewRow::values) } else { old };
                if let Some(row) = row {
                    places[column.place as usize].clone_from(&row[column.ordinal]);
                }
            }
            if !matches!(self.run_typed(places, check)?, Some(Op::End)) {
                return Ok(false);
            }
            if let Some(NewRow::Change(new)) = new {
                for column in self.columns.iter().filter(|column| column.is_new) {
                    let place = &mut places[column.place as usize];
                    new[column.ordinal] = std::mem::replace(place, Value::Null);
                }
            }
            Ok(true)
        })
    }

    fn over_places<T>(&self, work: impl FnOnce(&mut [Value]) -> T) -> T {
        let count = self.places.len();
        match count <= PLACES_INLINE {
            true => work(&mut [const { Value::Null }; PLACES_INLINE][..count]),
            false => work(&mut vec![Value::Null; count]),
        }
    }

    /// Runs from the first instruction. Returns the one at which the program has stopped.
    fn run_typed(
        &self,
        places: &mut [Value],
        check: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<Option<&Op>> {
        let mut state =
            TypedState { places, cursors: &mut [], jumps_left: JUMPS_UNCHECKED, has_evaluated: false };
        let mut pc = 0;
        loop {
            match run(&self.ops, &mut state, pc, &mut ()) {
                Stop::At(at) => return Ok(self.ops.get(at as usize)),
                Stop::Check { to, .. } => {
                    check()?;
                    pc = to;
                }
            }
        }
    }
}
