//! Expansion of named windows: each call gets its complete window, as in view definitions.

use super::{Expr, Over, Query, QueryBody, Rename, Select, SelectItem, WindowSpec};

impl Query {
    /// Replaces the names of windows by their definitions in the WINDOW clause, and removes the clause. The
    /// query must be bound: every name is known, and no window is based on itself.
    pub fn spell_out_windows(&mut self) {
        self.rename(&mut SpellOut);
    }
}

struct SpellOut;

impl Rename for SpellOut {
    fn select(&mut self, select: &mut Select, _is_operand: bool) {
        for item in &mut select.items {
            if let SelectItem::Expr { expr, .. } = item {
                spell_out(expr, &select.windows);
            }
        }
    }

    fn query(&mut self, query: &mut Query) {
        if let QueryBody::Select(select) = &mut query.body {
            let windows = std::mem::take(&mut select.windows);
            query.order_by.iter_mut().for_each(|item| spell_out(&mut item.expr, &windows));
        }
    }
}

fn spell_out(expr: &mut Expr, named: &[(String, WindowSpec)]) {
    if named.is_empty() {
        return;
    }
    expr.each_part(&mut |part| {
        if let Expr::Window(call) = part {
            let whole = match &call.over {
                Over::Name(name) => found(name, named).map(|(window, before)| whole(window, before)),
                Over::Spec(spec) => Some(whole(spec, named)),
            };
            call.over = whole.map_or_else(|| call.over.clone(), |spec| Over::Spec(Box::new(spec)));
        }
    });
}

/// Returns the window of a name, and the windows before it.
fn found<'n>(
    name: &str,
    named: &'n [(String, WindowSpec)],
) -> Option<(&'n WindowSpec, &'n [(String, WindowSpec)])> {
    let at = named.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some((&named[at].1, &named[..at]))
}

fn whole(spec: &WindowSpec, named: &[(String, WindowSpec)]) -> WindowSpec {
    let mut whole = WindowSpec { base: None, ..spec.clone() };
    if let Some((base, before)) = spec.base.as_ref().and_then(|name| found(name, named)) {
        let base = self::whole(base, before);
        whole.partition_by = base.partition_by;
        if whole.order_by.is_empty() {
            whole.order_by = base.order_by;
        }
    }
    whole
}
