//! The named windows of a SELECT: WINDOW, and what OVER inherits from it.

use cohort_sql::ast;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::window::WindowUse;

/// The named windows of a SELECT, and the window functions found so far.
pub struct Windows<'w> {
    pub named: &'w [(String, ast::WindowSpec)],
    pub found: std::cell::RefCell<Vec<WindowUse>>,
}

/// A window specification, including what it inherits from a named window.
pub struct Spec<'s> {
    pub partition_by: &'s [ast::Expr],
    pub order_by: &'s [ast::OrderItem],
    pub frame: Option<&'s ast::WindowFrame>,
}

impl<'w> Windows<'w> {
    /// Creates the state for a SELECT. Error 4010 if two windows have the same name.
    pub(crate) fn new(named: &'w [(String, ast::WindowSpec)]) -> SqlResult<Windows<'w>> {
        for (n, (name, _)) in named.iter().enumerate() {
            if named[..n].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                return Err(SqlError::duplicate_window_name(name));
            }
        }
        Ok(Windows { named, found: Default::default() })
    }

    pub fn resolve<'s>(&self, over: &'s ast::Over) -> SqlResult<Spec<'s>>
    where
        'w: 's,
    {
        match over {
            ast::Over::Name(name) => {
                let at = self.find(name, self.named.len())?;
                self.whole(&self.named[at].1, at)
            }
            ast::Over::Spec(spec) => self.whole(spec, self.named.len()),
        }
    }

    /// Returns the position of a named window among the first `before`. Error 4009 if it is unknown.
    fn find(&self, name: &str, before: usize) -> SqlResult<usize> {
        let found = self.named[..before].iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        found.ok_or_else(|| SqlError::unknown_window(name))
    }

    /// Resolves a window together with those it is based on, which must precede it.
    fn whole<'s>(&self, spec: &'s ast::WindowSpec, before: usize) -> SqlResult<Spec<'s>>
    where
        'w: 's,
    {
        let own =
            Spec { partition_by: &spec.partition_by, order_by: &spec.order_by, frame: spec.frame.as_ref() };
        let Some(name) = &spec.base else { return Ok(own) };
        let at = self.find(name, before)?;
        let base = self.whole(&self.named[at].1, at)?;
        let refused = |code, text: String| Err(SqlError::new(code, text));
        if !own.partition_by.is_empty() {
            let text = format!(
                "Window specification referencing another one '{name}' cannot contain partition list"
            );
            return refused(ErrorCode::PartitionListInReferencingWindowSpec, text);
        }
        if !own.order_by.is_empty() && !base.order_by.is_empty() {
            let text = format!("Referenced window specification '{name}' already contains order list");
            return refused(ErrorCode::OrderListInReferencingWindowSpec, text);
        }
        if base.frame.is_some() {
            let text = format!("Referenced window specification '{name}' cannot contain window frame");
            return refused(ErrorCode::WindowFrameInReferencedWindowSpec, text);
        }
        let order_by = if own.order_by.is_empty() { base.order_by } else { own.order_by };
        Ok(Spec { partition_by: base.partition_by, order_by, frame: own.frame })
    }
}
