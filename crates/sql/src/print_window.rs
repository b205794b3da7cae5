//! Window functions and their windows as SQL text.

use crate::ast::{Expr, OrderItem, Over, WindowBound, WindowCall, WindowFrame, WindowSpec};
use crate::print::{write_expr, write_frame_distance};
use crate::print_text::Text;

/// Writes `function over window`. PERCENTILE_CONT and PERCENTILE_DISC have the order of the window before it.
pub(crate) fn write_window_call(call: &WindowCall, out: &mut Text) {
    write_expr(&call.function, out);
    let is_within = matches!(&call.function, Expr::Function { name, .. }
        if matches!(name.as_str(), "percentile_cont" | "percentile_disc"));
    let spec = match &call.over {
        Over::Name(name) => {
            out.push_str(" over ");
            return out.name(name);
        }
        Over::Spec(spec) => spec,
    };
    if is_within {
        out.push_str(" within group (");
        write_order(&spec.order_by, out);
        out.push(')');
    }
    out.push_str(" over (");
    write_spec(spec, !is_within, out);
    out.push(')');
}

/// Writes a window. MariaDB prints a space before each part, and extra spaces around the words of a frame.
fn write_spec(spec: &WindowSpec, with_order: bool, out: &mut Text) {
    if let Some(name) = &spec.base {
        out.name(name);
    }
    for (n, expr) in spec.partition_by.iter().enumerate() {
        out.push_str(if n == 0 { " partition by " } else { "," });
        write_expr(expr, out);
    }
    if with_order {
        write_order(&spec.order_by, out);
    }
    if let Some(WindowFrame { is_range, start, end }) = &spec.frame {
        out.push_str(if *is_range { " range between " } else { " rows between " });
        write_bound(start, out);
        out.push_str(" and ");
        write_bound(end, out);
    }
}

fn write_order(items: &[OrderItem], out: &mut Text) {
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n == 0 { " order by " } else { "," });
        write_expr(&item.expr, out);
        out.push_str(if item.descending { " desc" } else { "" });
    }
}

fn write_bound(bound: &WindowBound, out: &mut Text) {
    let (distance, word) = match bound {
        WindowBound::UnboundedPreceding => return out.push_str(" unbounded  preceding "),
        WindowBound::UnboundedFollowing => return out.push_str(" unbounded  following "),
        WindowBound::CurrentRow => return out.push_str(" current row "),
        WindowBound::Preceding(distance) => (distance, " preceding "),
        WindowBound::Following(distance) => (distance, " following "),
    };
    write_frame_distance(distance, out);
    out.push_str(word);
}
