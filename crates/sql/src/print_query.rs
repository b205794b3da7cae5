//! Queries as SQL text, in the form of MariaDB's view definitions.

use crate::ast::{
    Expr, Join, JoinCondition, JoinKind, Limit, LockStrength, LockWait, Locking, OrderItem, Query, QueryBody,
    Select, SelectItem, SetOperator, TableFactor, TableRef,
};
use cohort_types::Value;

use crate::print::{expr_in, write_expr};
use crate::print_text::{Style, Text, push};

/// Formats a query whose names are already qualified: joins in parentheses, RIGHT JOIN as LEFT JOIN.
pub fn query(query: &Query, style: Style) -> String {
    let text = inner(query, style);
    match &query.body {
        QueryBody::Select(select) if select.in_parens && query.with.is_none() => format!("({text})"),
        _ => text,
    }
}

/// Formats a query that is a part of another query, which adds the parentheses.
pub(crate) fn inner(query: &Query, style: Style) -> String {
    let mut out = Text::new(style);
    if let Some(with) = &query.with {
        out.push_str(if with.recursive { "with recursive " } else { "with " });
        let table = |table: &crate::ast::CommonTable| {
            let columns = style.names(&table.columns);
            let columns = if columns.is_empty() { columns } else { format!("({columns})") };
            let name = common_name(&table.name, style);
            let mut text = format!("{name}{columns} as ({})", inner(&table.query, style));
            if !table.cycle.is_empty() {
                text.push_str(&format!(" CYCLE {} RESTRICT ", style.names(&table.cycle)));
            }
            text
        };
        out.push_str(&with.tables.iter().map(table).collect::<Vec<_>>().join(", "));
    }
    body(&query.body, &mut out);
    order(" order by ", &query.order_by, &mut out);
    limit(query.limit.as_ref(), &mut out);
    locking(query.locking.as_ref(), &mut out);
    out.finish()
}

/// Formats a query that is only tested for rows. MariaDB adds `limit 1` to it.
pub(crate) fn first_row(query: &Query, style: Style) -> String {
    let is_kept = |limit: &Limit| {
        limit.offset.is_some()
            || limit.with_ties
            || matches!(&limit.count, Expr::Literal(literal) if literal.value == Value::Int(0))
    };
    if query.limit.as_ref().is_some_and(is_kept) || query.locking.is_some() {
        return inner(query, style);
    }
    inner(&Query { limit: None, ..query.clone() }, style) + " limit 1"
}

fn locking(locking: Option<&Locking>, out: &mut Text) {
    let Some(locking) = locking else { return };
    out.push_str(match locking.strength {
        LockStrength::Share => " lock in share mode",
        LockStrength::Update => " for update",
    });
    match locking.wait {
        LockWait::Default => {}
        LockWait::NoWait => out.push_str(" nowait"),
        LockWait::Seconds(seconds) => push(out, format_args!(" wait {seconds}")),
        LockWait::SkipLocked => out.push_str(" skip locked"),
    }
}

/// Formats the name of a common table expression. MariaDB never quotes it; here a name that could not be
/// parsed again is quoted.
fn common_name(name: &str, style: Style) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_word);
    if is_plain && !crate::parser::is_reserved(name) { name.to_owned() } else { style.name(name) }
}

fn body(node: &QueryBody, out: &mut Text) {
    match node {
        QueryBody::Select(inner) => select(inner, out),
        QueryBody::SetOperation { first, rest } => {
            // INTERSECT has higher precedence than the operator before it.
            let is_tighter = |n: usize| {
                n > 0 && rest[n].op == SetOperator::Intersect && rest[n - 1].op != SetOperator::Intersect
            };
            out.push_str(&"(".repeat((0..rest.len()).filter(|n| is_tighter(*n)).count()));
            operand(first, out);
            for (n, operand) in rest.iter().enumerate() {
                out.push_str(if is_tighter(n) { ")" } else { "" });
                out.push_str(match operand.op {
                    SetOperator::Union => " union ",
                    SetOperator::Except => " except ",
                    SetOperator::Intersect => " intersect ",
                });
                out.push_str(if operand.all { "all " } else { "" });
                self::operand(&operand.body, out);
            }
        }
        QueryBody::Values(rows) => {
            out.push_str("values ");
            let style = out.style;
            let value = |value: &Expr| expr_in(value, style);
            let row = |row: &Vec<Expr>| format!("({})", row.iter().map(value).collect::<Vec<_>>().join(","));
            out.push_str(&rows.iter().map(row).collect::<Vec<_>>().join(","));
        }
        QueryBody::Nested(nested) => {
            let nested = inner(nested, out.style);
            push(out, format_args!("({nested})"));
        }
    }
}

/// Writes an operand of a set operation.
fn operand(node: &QueryBody, out: &mut Text) {
    let in_parens = match node {
        QueryBody::Select(select) => select.in_parens,
        QueryBody::SetOperation { .. } => true,
        QueryBody::Values(_) | QueryBody::Nested(_) => false,
    };
    out.push_str(if in_parens { "(" } else { "" });
    body(node, out);
    out.push_str(if in_parens { ")" } else { "" });
}

fn select(select: &Select, out: &mut Text) {
    let options = select.options;
    out.push_str("select ");
    for (is_given, word) in [
        (options.straight_join, "straight_join "),
        (options.high_priority, "high_priority "),
        (options.distinct, "distinct "),
        (options.calc_found_rows, "sql_calc_found_rows "),
        (options.sql_no_cache, "sql_no_cache "),
    ] {
        out.push_str(if is_given { word } else { "" });
    }
    for (n, item) in select.items.iter().enumerate() {
        out.push_str(if n > 0 { "," } else { "" });
        match item {
            SelectItem::Wildcard => out.push('*'),
            SelectItem::TableWildcard(table) => {
                let name = out.style.object(table);
                push(out, format_args!("{name}.*"));
            }
            SelectItem::Expr { expr, alias, .. } => {
                write_expr(expr, out);
                if let Some(alias) = alias {
                    out.push_str(" AS ");
                    out.name(alias);
                }
            }
        }
    }
    if let Some(from) = &select.from {
        out.push_str(" from ");
        table(from, out);
    }
    if let Some(filter) = &select.filter {
        out.push_str(" where ");
        write_expr(filter, out);
    }
    order(" group by ", &select.group_by, out);
    out.push_str(if select.with_rollup { " with rollup" } else { "" });
    if let Some(having) = &select.having {
        out.push_str(" having ");
        write_expr(having, out);
    }
}

fn table(node: &TableRef, out: &mut Text) {
    match node {
        TableRef::Table(found) => factor(found, out),
        TableRef::Derived { query, alias, columns } => {
            let style = out.style;
            push(out, format_args!("({}) {}", inner(query, style), style.name(alias)));
            if !columns.is_empty() {
                push(out, format_args!("({})", style.names(columns)));
            }
        }
        TableRef::Json(found) => {
            let table = crate::print_json_table::json_table(found, out.style);
            out.push_str(&table);
        }
        TableRef::Join(found) => join(found, out),
    }
}

fn factor(factor: &TableFactor, out: &mut Text) {
    let name = out.style.object(&factor.name);
    out.push_str(&name);
    if !factor.partitions.is_empty() {
        let names = out.style.names(&factor.partitions);
        push(out, format_args!(" PARTITION ({names})"));
    }
    if let Some(alias) = &factor.alias {
        out.push(' ');
        out.name(alias);
    }
    for hint in &factor.index_hints {
        use crate::ast::{IndexHintKind as Kind, IndexHintScope as Scope};
        let kind = match hint.kind {
            Kind::Use => "USE",
            Kind::Force => "FORCE",
            Kind::Ignore => "IGNORE",
        };
        let scope = match hint.scope {
            Scope::All => "",
            Scope::Join => "FOR JOIN ",
            Scope::OrderBy => "FOR ORDER BY ",
            Scope::GroupBy => "FOR GROUP BY ",
        };
        let names = out.style.names(&hint.names);
        push(out, format_args!(" {kind} INDEX {scope}({names})"));
    }
}

fn join(join: &Join, out: &mut Text) {
    let (left, right, word) = match join.kind {
        JoinKind::Inner | JoinKind::Cross => (&join.left, &join.right, " join "),
        JoinKind::Straight => (&join.left, &join.right, " straight_join "),
        JoinKind::Left => (&join.left, &join.right, " left join "),
        JoinKind::Right => (&join.right, &join.left, " left join "),
    };
    out.push('(');
    table(left, out);
    out.push_str(word);
    table(right, out);
    match &join.condition {
        JoinCondition::None | JoinCondition::Natural => {}
        JoinCondition::On(condition) => {
            out.push_str(" on(");
            write_expr(condition, out);
            out.push(')');
        }
        JoinCondition::Using(names) => {
            let names = out.style.names(names);
            push(out, format_args!(" using ({names})"));
        }
    }
    out.push(')');
}

fn order(words: &str, items: &[OrderItem], out: &mut Text) {
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n == 0 { words } else { "," });
        write_expr(&item.expr, out);
        out.push_str(if item.descending { " desc" } else { "" });
    }
}

fn limit(limit: Option<&Limit>, out: &mut Text) {
    let Some(limit) = limit else { return };
    if limit.with_ties {
        if let Some(offset) = &limit.offset {
            out.push_str(" offset ");
            write_expr(offset, out);
            out.push_str(" rows ");
        }
        out.push_str(" fetch first ");
        write_expr(&limit.count, out);
        out.push_str(" rows with ties");
        return;
    }
    out.push_str(" limit ");
    if let Some(offset) = &limit.offset {
        write_expr(offset, out);
        out.push(',');
    }
    write_expr(&limit.count, out);
}
