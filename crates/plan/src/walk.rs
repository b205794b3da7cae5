//! Walks over the expressions of query blocks.

use cohort_expr::Expr;

use crate::block::{Body, From, OrderBy, Query, Select, Source};

/// Generates the walk that reads expressions, and with `mut` the one that changes them.
macro_rules! walks {
    ($of_query:ident, $of_select:ident, $of_from:ident, $of_window:ident $(, $mutable:tt)?) => {
        /// Calls `see` for each expression of a query, including those of its derived tables.
        pub fn $of_query(query: & $($mutable)? Query, see: &mut dyn FnMut(& $($mutable)? Expr)) {
            for order in & $($mutable)? query.order {
                if let OrderBy::Expr(expr) = & $($mutable)? order.by {
                    see(expr);
                }
            }
            for limit in [& $($mutable)? query.limit.count, & $($mutable)? query.limit.offset] {
                if let Some(expr) = limit {
                    see(expr);
                }
            }
            match & $($mutable)? query.body {
                Body::Select(select) => $of_select(select, see),
                Body::Set(set) => {
                    $of_query(& $($mutable)? set.first, see);
                    for operand in & $($mutable)? set.rest {
                        $of_query(& $($mutable)? operand.query, see);
                    }
                }
                Body::Values(rows) => {
                    for row in rows {
                        for expr in row {
                            see(expr);
                        }
                    }
                }
                Body::Nested(inner) => $of_query(inner, see),
            }
        }

        fn $of_select(select: & $($mutable)? Select, see: &mut dyn FnMut(& $($mutable)? Expr)) {
            if let Some(from) = & $($mutable)? select.from {
                $of_from(from, see);
            }
            for expr in & $($mutable)? select.conditions {
                see(expr);
            }
            if let Some(expr) = & $($mutable)? select.having {
                see(expr);
            }
            for assigned in & $($mutable)? select.assigned {
                see(& $($mutable)? assigned.value);
            }
            for expr in & $($mutable)? select.items {
                see(expr);
            }
            if let Some(group) = & $($mutable)? select.group {
                for expr in & $($mutable)? group.keys {
                    see(expr);
                }
                for collected in & $($mutable)? group.aggregates {
                    for expr in & $($mutable)? collected.aggregate.args {
                        see(expr);
                    }
                    for key in & $($mutable)? collected.aggregate.options.order {
                        see(& $($mutable)? key.expr);
                    }
                }
            }
            for window in & $($mutable)? select.windows {
                window.$of_window(see);
            }
        }

        fn $of_from(from: & $($mutable)? From, see: &mut dyn FnMut(& $($mutable)? Expr)) {
            match from {
                From::Table(table) => match & $($mutable)? table.source {
                    Source::Derived(query) => $of_query(query, see),
                    Source::Json { document, .. } => see(document),
                    _ => {}
                },
                From::Join(join) => {
                    for expr in & $($mutable)? join.on {
                        see(expr);
                    }
                    $of_from(& $($mutable)? join.left, see);
                    $of_from(& $($mutable)? join.right, see);
                }
            }
        }
    };
}

walks!(each_expr, each_of_select, each_of_from, each);
walks!(each_expr_mut, each_of_select_mut, each_of_from_mut, each_mut, mut);
