//! Queries as SQL text, in the form in which MariaDB keeps those of views.

use std::fmt::Write;

use crate::ast::{
    Expr, Join, JoinCondition, JoinKind, Limit, OrderItem, Query, QueryBody, Select, SelectItem, SetOperator,
    TableFactor, TableRef,
};
use cohort_types::Value;

use crate::print::{expr, quoted_name, quoted_object};

/// A query whose names are full already: joins in parentheses, RIGHT JOIN as LEFT JOIN.
pub fn query(query: &Query) -> String {
    let text = inner(query);
    match &query.body {
        QueryBody::Select(select) if select.in_parens && query.with.is_none() => format!("({text})"),
        _ => text,
    }
}

/// The same as a part of another query, which has parentheses around it.
pub(crate) fn inner(query: &Query) -> String {
    let mut out = String::new();
    if let Some(with) = &query.with {
        out.push_str(if with.recursive { "with recursive " } else { "with " });
        let table = |table: &crate::ast::CommonTable| {
            let columns: Vec<String> = table.columns.iter().map(|name| quoted_name(name)).collect();
            let columns = if columns.is_empty() { String::new() } else { format!("({})", columns.join(",")) };
            let mut text = format!("{}{columns} as ({})", common_name(&table.name), inner(&table.query));
            if !table.cycle.is_empty() {
                let columns: Vec<String> = table.cycle.iter().map(|name| quoted_name(name)).collect();
                text.push_str(&format!(" CYCLE {} RESTRICT ", columns.join(",")));
            }
            text
        };
        out.push_str(&with.tables.iter().map(table).collect::<Vec<_>>().join(", "));
    }
    body(&query.body, &mut out);
    order(" order by ", &query.order_by, &mut out);
    limit(query.limit.as_ref(), &mut out);
    out
}

/// A query of which only whether it has rows is asked: MariaDB wants one row of it.
pub(crate) fn first_row(query: &Query) -> String {
    let is_kept = |limit: &Limit| {
        limit.offset.is_some()
            || matches!(&limit.count, Expr::Literal(literal) if literal.value == Value::Int(0))
    };
    if query.limit.as_ref().is_some_and(is_kept) {
        return inner(query);
    }
    inner(&Query { limit: None, ..query.clone() }) + " limit 1"
}

/// MariaDB quotes no name of a common table; one that would not be read again is quoted here.
fn common_name(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_word);
    if is_plain && !crate::parser::is_reserved(name) { name.to_owned() } else { quoted_name(name) }
}

fn body(node: &QueryBody, out: &mut String) {
    match node {
        QueryBody::Select(inner) => select(inner, out),
        QueryBody::SetOperation { first, rest } => {
            // INTERSECT binds tighter than what stands before it.
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
            let row = |row: &Vec<Expr>| format!("({})", row.iter().map(expr).collect::<Vec<_>>().join(","));
            out.push_str(&rows.iter().map(row).collect::<Vec<_>>().join(","));
        }
        QueryBody::Nested(nested) => push(out, format_args!("({})", inner(nested))),
    }
}

/// A part of a set operation.
fn operand(node: &QueryBody, out: &mut String) {
    let in_parens = match node {
        QueryBody::Select(select) => select.in_parens,
        QueryBody::SetOperation { .. } => true,
        QueryBody::Values(_) | QueryBody::Nested(_) => false,
    };
    out.push_str(if in_parens { "(" } else { "" });
    body(node, out);
    out.push_str(if in_parens { ")" } else { "" });
}

fn select(select: &Select, out: &mut String) {
    out.push_str("select ");
    out.push_str(if select.options.distinct { "distinct " } else { "" });
    out.push_str(if select.options.straight_join { "straight_join " } else { "" });
    let item = |item: &SelectItem| match item {
        SelectItem::Wildcard => "*".to_owned(),
        SelectItem::TableWildcard(table) => format!("{}.*", quoted_object(table)),
        SelectItem::Expr { expr: value, alias: Some(alias), .. } => {
            format!("{} AS {}", expr(value), quoted_name(alias))
        }
        SelectItem::Expr { expr: value, alias: None, .. } => expr(value),
    };
    out.push_str(&select.items.iter().map(item).collect::<Vec<_>>().join(","));
    if let Some(from) = &select.from {
        out.push_str(" from ");
        table(from, out);
    }
    if let Some(filter) = &select.filter {
        push(out, format_args!(" where {}", expr(filter)));
    }
    order(" group by ", &select.group_by, out);
    out.push_str(if select.with_rollup { " with rollup" } else { "" });
    if let Some(having) = &select.having {
        push(out, format_args!(" having {}", expr(having)));
    }
}

fn table(node: &TableRef, out: &mut String) {
    match node {
        TableRef::Table(found) => factor(found, out),
        TableRef::Derived { query, alias, columns } => {
            push(out, format_args!("({}) {}", inner(query), quoted_name(alias)));
            if !columns.is_empty() {
                let names: Vec<String> = columns.iter().map(|name| quoted_name(name)).collect();
                push(out, format_args!("({})", names.join(",")));
            }
        }
        TableRef::Json(found) => out.push_str(&crate::print_json_table::json_table(found)),
        TableRef::Join(found) => join(found, out),
    }
}

fn factor(factor: &TableFactor, out: &mut String) {
    out.push_str(&quoted_object(&factor.name));
    if let Some(alias) = &factor.alias {
        push(out, format_args!(" {}", quoted_name(alias)));
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
        let names: Vec<String> = hint.names.iter().map(|name| quoted_name(name)).collect();
        push(out, format_args!(" {kind} INDEX {scope}({})", names.join(",")));
    }
}

fn join(join: &Join, out: &mut String) {
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
        JoinCondition::On(condition) => push(out, format_args!(" on({})", expr(condition))),
        JoinCondition::Using(names) => {
            let names: Vec<String> = names.iter().map(|name| quoted_name(name)).collect();
            push(out, format_args!(" using ({})", names.join(",")));
        }
    }
    out.push(')');
}

fn order(words: &str, items: &[OrderItem], out: &mut String) {
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n == 0 { words } else { "," });
        out.push_str(&expr(&item.expr));
        out.push_str(if item.descending { " desc" } else { "" });
    }
}

fn limit(limit: Option<&Limit>, out: &mut String) {
    let Some(limit) = limit else { return };
    if limit.with_ties {
        if let Some(offset) = &limit.offset {
            out.push_str(&format!(" offset {} rows", expr(offset)));
        }
        out.push_str(&format!(" fetch first {} rows with ties", expr(&limit.count)));
        return;
    }
    out.push_str(" limit ");
    if let Some(offset) = &limit.offset {
        push(out, format_args!("{},", expr(offset)));
    }
    out.push_str(&expr(&limit.count));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String does not fail");
}
