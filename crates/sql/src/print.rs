//! Names, strings and expressions as SQL text.

use cohort_types::{TypeKind, Value};

use crate::ast::{
    AggregateKind, BinaryOp, ColumnRef, DeclaredKind, Expr, IntervalUnit, IsTest, Literal, MatchMode,
    ObjectName, Quantifier, TrimSide, UnaryOp, VariableScope,
};
use crate::print_text::{Text, push, write_literal};
use crate::print_type::cast_type;
use crate::{ParseMode, print_query, print_window};

pub use crate::print_text::{Style, quoted_text};

/// Quotes a name in backquotes, with backquotes doubled.
pub fn quoted_name(name: &str) -> String {
    Style::default().name(name)
}

/// Quotes an object's name: `` `db`.`name` `` or `` `name` ``.
pub fn quoted_object(object: &ObjectName) -> String {
    Style::default().object(object)
}

/// Quotes a text for a mode: under NO_BACKSLASH_ESCAPES a backslash is not escaped.
pub fn quoted_text_in(text: &str, mode: ParseMode) -> String {
    match mode.no_backslash_escapes {
        true => format!("'{}'", text.replace('\'', "''")),
        false => quoted_text(text),
    }
}

/// Formats an expression as MariaDB does: quoted names, functions in lower case, parentheses where an
/// operator has lower precedence than the enclosing one.
pub fn expr(expr: &Expr) -> String {
    expr_in(expr, Style::default())
}

/// Formats an expression in the given style.
pub fn expr_in(expr: &Expr, style: Style) -> String {
    let mut out = Text::new(style);
    write_expr(expr, &mut out);
    out.finish()
}

pub(crate) fn write_expr(expr: &Expr, out: &mut Text) {
    match expr {
        Expr::Literal(literal) => write_literal(literal, out),
        Expr::Param(_) => out.push('?'),
        Expr::Column(column) => write_column(column, out),
        Expr::UserVariable(name) => {
            out.push('@');
            out.name(name);
        }
        Expr::Assign { name, value } => {
            out.push_str("(@");
            out.name(name);
            out.push_str(" := ");
            write_expr(value, out);
            out.push(')');
        }
        Expr::SystemVariable { scope, name } => {
            out.push_str(match scope {
                VariableScope::Unspecified => "@@",
                VariableScope::Session => "@@session.",
                VariableScope::Global => "@@global.",
            });
            out.push_str(name);
        }
        Expr::Unary { op: UnaryOp::Plus, expr } => write_expr(expr, out),
        Expr::Unary { op: UnaryOp::Not, expr: inner } => match negated(inner) {
            Some(turned) => write_expr(&turned, out),
            None => {
                out.push('!');
                write_operand(inner, BANG, out);
            }
        },
        Expr::Unary { op, expr: inner } => {
            out.push(if *op == UnaryOp::Negate { '-' } else { '~' });
            write_operand(inner, precedence(expr), out);
        }
        Expr::Binary { op, left, right } => {
            let own = precedence(expr);
            let chains = matches!(op, BinaryOp::Or | BinaryOp::And);
            write_operand(left, own, out);
            push(out, format_args!(" {} ", operator(*op)));
            write_operand(right, if chains { own } else { own + 1 }, out);
        }
        Expr::Is { expr, negated, test } => {
            write_operand(expr, CMP, out);
            out.push_str(if *negated { " is not " } else { " is " });
            out.push_str(match test {
                IsTest::Null | IsTest::Unknown => "null",
                IsTest::True => "true",
                IsTest::False => "false",
            });
        }
        other => write_predicate(other, out),
    }
}

fn write_predicate(expr: &Expr, out: &mut Text) {
    match expr {
        Expr::Between { expr, negated, low, high } => {
            write_left(expr, *negated, out);
            out.push_str(not(*negated, " between "));
            write_operand(low, BETWEEN + 1, out);
            out.push_str(" and ");
            write_operand(high, BETWEEN + 1, out);
        }
        // MariaDB prints a list of one value as a comparison.
        Expr::InList { expr, negated, list } if list.len() == 1 => {
            write_operand(expr, CMP, out);
            out.push_str(if *negated { " <> " } else { " = " });
            write_operand(&list[0], CMP + 1, out);
        }
        Expr::InList { expr, negated, list } => {
            write_left(expr, *negated, out);
            out.push_str(not(*negated, " in "));
            write_list(list, out);
        }
        Expr::InQuery { expr, negated, query } => {
            out.push_str(if *negated { "!(" } else { "" });
            write_operand(expr, IN, out);
            let query = print_query::inner(query, out.style);
            push(out, format_args!(" in ({query})"));
            out.push_str(if *negated { ")" } else { "" });
        }
        Expr::Like { expr, negated, pattern, escape } => {
            write_left(expr, *negated, out);
            out.push_str(not(*negated, " like "));
            write_operand(pattern, IN + 1, out);
            if let Some(escape) = escape {
                out.push_str(" escape ");
                write_operand(escape, IN + 1, out);
            }
        }
        Expr::Regexp { expr, negated, pattern } => {
            out.push_str(if *negated { "!(" } else { "" });
            write_operand(expr, IN, out);
            out.push_str(" regexp ");
            write_operand(pattern, IN + 1, out);
            out.push_str(if *negated { ")" } else { "" });
        }
        Expr::Case { operand, branches, otherwise } => {
            out.push_str("case");
            if let Some(operand) = operand {
                out.push(' ');
                write_expr(operand, out);
            }
            for (condition, result) in branches {
                out.push_str(" when ");
                write_expr(condition, out);
                out.push_str(" then ");
                write_expr(result, out);
            }
            if let Some(otherwise) = otherwise {
                out.push_str(" else ");
                write_expr(otherwise, out);
            }
            out.push_str(" end");
        }
        Expr::Subquery(query) => {
            let query = print_query::inner(query, out.style);
            push(out, format_args!("({query})"));
        }
        Expr::Exists(query) => {
            let query = print_query::first_row(query, out.style);
            push(out, format_args!("exists({query})"));
        }
        Expr::Quantified { expr, op, quantifier, query } => {
            write_operand(expr, CMP, out);
            let quantifier = if *quantifier == Quantifier::Any { "any" } else { "all" };
            let query = print_query::inner(query, out.style);
            push(out, format_args!(" {} {quantifier} ({query})", operator(*op)));
        }
        other => write_call(other, out),
    }
}

/// Writes an argument of COLUMN_CREATE. A cast to a type of dynamic columns becomes `value AS type`.
fn write_column_value(arg: &Expr, out: &mut Text) {
    let (value, name) = match arg {
        Expr::Function { name, args } if name.starts_with("as ") => (&args[0], &name["as ".len()..]),
        Expr::Cast { expr, to } => match to.kind {
            DeclaredKind::Signed => (&**expr, "int"),
            DeclaredKind::Column(TypeKind::Double) if to.length.is_none() => (&**expr, "double"),
            _ => return write_expr(arg, out),
        },
        _ => return write_expr(arg, out),
    };
    write_expr(value, out);
    push(out, format_args!(" AS {name}"));
}

/// Writes WEIGHT_STRING. The parser stored the number of characters and the order of the first level as
/// arguments.
fn write_weight_string(args: &[Expr], out: &mut Text) {
    let number = |arg: &Expr| match arg {
        Expr::Literal(Literal { value: Value::Int(n), .. }) => *n,
        _ => 0,
    };
    let (characters, flags) = (number(&args[1]), number(&args[2]));
    call(out, "weight_string", |out| {
        write_expr(&args[0], out);
        if characters > 0 {
            push(out, format_args!(" as char({characters})"));
        }
        if flags > 0 {
            out.push_str(" level 1");
            out.push_str(if flags & 1 != 0 { " desc" } else { "" });
            out.push_str(if flags & 2 != 0 { " reverse" } else { "" });
        }
    });
}

fn write_call(expr: &Expr, out: &mut Text) {
    match expr {
        Expr::Cast { expr, to } if matches!(&**expr, Expr::Function { name, .. } if name == "column_get") => {
            // The type belongs inside the parentheses of the call.
            write_expr(expr, out);
            out.pop();
            push(out, format_args!(" as {})", cast_type(to)));
        }
        Expr::Function { name, args } if ["null if empty", ORACLE_TRIM].contains(&name.as_str()) => {
            // The argument is a TRIM.
            out.push_str(if name == ORACLE_TRIM { ORACLE_TRIM } else { "trim_oracle" });
            let start = out.len();
            write_expr(&args[0], out);
            out.replace_range(start..start + "trim".len(), "");
        }
        Expr::Function { name, args } if ["column_create", "column_add"].contains(&name.as_str()) => {
            call(out, name, |out| {
                // The first argument of COLUMN_ADD is the columns.
                let first = usize::from(name == "column_add");
                for (n, arg) in args.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    let is_value = n > first && (n - first) % 2 == 1;
                    if is_value { write_column_value(arg, out) } else { write_expr(arg, out) }
                }
            });
        }
        Expr::Cast { expr, to } => call(out, "cast", |out| {
            write_expr(expr, out);
            push(out, format_args!(" as {}", cast_type(to)));
        }),
        Expr::ConvertUsing { expr, charset } => call(out, "convert", |out| {
            write_expr(expr, out);
            push(out, format_args!(" using {charset}"));
        }),
        Expr::Collate { expr, collation } => {
            write_operand(expr, COLLATE, out);
            push(out, format_args!(" collate {collation}"));
        }
        Expr::DateArith { expr, subtract, amount, unit } => {
            write_operand(expr, INTERVAL, out);
            out.push_str(if *subtract { " - interval " } else { " + interval " });
            let start = out.len();
            write_operand(amount, INTERVAL, out);
            // A comma in the first parentheses would turn this into the function INTERVAL.
            if starts_as_list(&out[start..]) {
                out.insert(start, '(');
                out.push(')');
            }
            push(out, format_args!(" {}", unit_name(*unit)));
        }
        Expr::Extract { unit, expr } => call(out, "extract", |out| {
            push(out, format_args!("{} from ", unit_name(*unit)));
            write_expr(expr, out);
        }),
        Expr::TimestampDiff { unit, from, to } => call(out, "timestampdiff", |out| {
            push(out, format_args!("{},", unit_name(*unit).to_ascii_uppercase()));
            write_expr(from, out);
            out.push(',');
            write_expr(to, out);
        }),
        Expr::Trim { side, what, expr } => call(out, "trim", |out| {
            if let Some(what) = what {
                out.push_str(match side {
                    TrimSide::Both => "both ",
                    TrimSide::Leading => "leading ",
                    TrimSide::Trailing => "trailing ",
                });
                write_expr(what, out);
                out.push_str(" from ");
            } else if *side != TrimSide::Both {
                out.push_str(if *side == TrimSide::Leading { "leading from " } else { "trailing from " });
            }
            write_expr(expr, out);
        }),
        Expr::CharFunction { args, charset } => call(out, "char", |out| {
            write_items(args, out);
            if let Some(charset) = charset {
                push(out, format_args!(" using {charset}"));
            }
        }),
        Expr::Sequence(sequence) => call(out, sequence.operation.name(), |out| {
            let name = out.style.object(&sequence.name);
            out.push_str(&name);
            for arg in &sequence.args {
                out.push(',');
                write_expr(arg, out);
            }
        }),
        Expr::Function { name, args } if name == "mod" && args.len() == 2 => {
            write_operand(&args[0], MULTIPLY, out);
            out.push_str(" MOD ");
            write_operand(&args[1], MULTIPLY + 1, out);
        }
        Expr::Function { name, args } if name == "weight_string" && args.len() == 3 => {
            write_weight_string(args, out);
        }
        Expr::Function { name, args } if name == "get_format" && args.len() == 2 => {
            call(out, name, |out| {
                let word = match &args[0] {
                    Expr::Literal(literal) => literal.value.to_text(),
                    _ => String::new(),
                };
                // Both words mean the same type.
                push(out, format_args!("{}, ", if word == "TIMESTAMP" { "DATETIME" } else { &word }));
                write_expr(&args[1], out);
            });
        }
        Expr::Function { name, args } => {
            out.push_str(first_name(name));
            write_list(args, out);
        }
        Expr::StoredFunction { db, name, args } => {
            if let Some(db) = db {
                out.push_str(&format!("{}.", quoted_name(db)));
            }
            out.push_str(&quoted_name(name));
            write_list(args, out);
        }
        Expr::Aggregate(aggregate) => call(out, aggregate_name(aggregate.kind), |out| {
            out.push_str(if aggregate.distinct { "distinct " } else { "" });
            // COUNT(*).
            if aggregate.args.is_empty() {
                out.push('0');
            }
            write_items(&aggregate.args, out);
            for (n, item) in aggregate.order_by.iter().enumerate() {
                out.push_str(if n == 0 { " order by " } else { "," });
                write_expr(&item.expr, out);
                out.push_str(if item.descending { " DESC" } else { " ASC" });
            }
            if aggregate.kind == AggregateKind::GroupConcat {
                let separator = aggregate.separator.as_deref().unwrap_or(",");
                push(out, format_args!(" separator {}", quoted_text(separator)));
            }
            if let Some((offset, count)) = aggregate.limit {
                match offset {
                    Some(offset) => push(out, format_args!(" limit {offset},{count}")),
                    None => push(out, format_args!(" limit {count}")),
                }
            }
        }),
        Expr::Window(window) => print_window::write_window_call(window, out),
        Expr::Row(items) => write_list(items, out),
        Expr::Default(None) => out.push_str("default"),
        Expr::Default(Some(column)) => call(out, "default", |out| write_column(column, out)),
        Expr::Match { columns, text, mode } => {
            out.push_str("(match ");
            for (n, column) in columns.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                write_expr(column, out);
            }
            out.push_str(" against (");
            // IN starts the mode, so the text must bind tighter.
            write_operand(text, BIT_OR, out);
            out.push_str(match mode {
                MatchMode::Natural => "",
                MatchMode::Boolean => " in boolean mode",
                MatchMode::Expansion => " with query expansion",
            });
            out.push_str("))");
        }
        Expr::Values(column) => call(out, "value", |out| write_column(column, out)),
        _ => unreachable!("the other printers took every other kind"),
    }
}

const ORACLE_TRIM: &str = "oracle_schema.trim";

/// Replaces the name of an ORACLE function, which is that of column expressions, by the one that queries
/// show.
pub fn name_by_schema(name: &mut String) {
    *name = match name.as_str() {
        "null if empty" => ORACLE_TRIM.to_owned(),
        "concat_operator_oracle" => "oracle_schema.concat".to_owned(),
        other => match other.strip_suffix("_oracle") {
            Some(plain) => format!("oracle_schema.{plain}"),
            None => return,
        },
    };
}

/// Returns the name that MariaDB prints for a function with several names.
fn first_name(name: &str) -> &str {
    match name {
        "ceil" => "ceiling",
        "character_length" => "char_length",
        "current_date" => "curdate",
        "day" => "dayofmonth",
        "json_merge" => "json_merge_preserve",
        "json_pretty" => "json_detailed",
        "length" | "lengthb" => "octet_length",
        "lower" => "lcase",
        "mid" | "substring" => "substr",
        "now" => "current_timestamp",
        "nvl" => "ifnull",
        "power" => "pow",
        "schema" => "database",
        "session_user" | "system_user" => "user",
        "sha1" => "sha",
        "upper" => "ucase",
        other => other,
    }
}

/// Returns whether the text starts with a parenthesis that directly contains a comma.
fn starts_as_list(text: &str) -> bool {
    if !text.starts_with('(') {
        return false;
    }
    let (mut depth, mut mark) = (0, None);
    for c in text.chars() {
        match (c, mark) {
            (c, Some(open)) if c == open => mark = None,
            (_, Some(_)) => {}
            ('\'' | '"' | '`', None) => mark = Some(c),
            ('(', None) => depth += 1,
            (')', None) if depth == 1 => return false,
            (')', None) => depth -= 1,
            (',', None) if depth == 1 => return true,
            _ => {}
        }
    }
    false
}

fn call(out: &mut Text, name: &str, inner: impl FnOnce(&mut Text)) {
    push(out, format_args!("{name}("));
    inner(out);
    out.push(')');
}

// Operator precedences. Only their order matters.
const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const CMP: u8 = 5;
const BETWEEN: u8 = 6;
const IN: u8 = 7;
const BIT_OR: u8 = 8;
const BIT_AND: u8 = 9;
const SHIFT: u8 = 10;
const INTERVAL: u8 = 11;
const ADD: u8 = 12;
const MULTIPLY: u8 = 13;
const BIT_XOR: u8 = 14;
const NEGATE: u8 = 15;
const BANG: u8 = 16;
const COLLATE: u8 = 17;
const HIGHEST: u8 = 20;

fn precedence(expr: &Expr) -> u8 {
    match expr {
        Expr::Binary { op, .. } => match op {
            BinaryOp::Or => OR,
            BinaryOp::Xor => XOR,
            BinaryOp::And => AND,
            BinaryOp::Equal
            | BinaryOp::NullSafeEqual
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual => CMP,
            BinaryOp::BitOr => BIT_OR,
            BinaryOp::BitAnd => BIT_AND,
            BinaryOp::BitXor => BIT_XOR,
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => SHIFT,
            BinaryOp::Add | BinaryOp::Subtract => ADD,
            BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::IntDivide | BinaryOp::Modulo => MULTIPLY,
        },
        Expr::Is { .. } | Expr::Quantified { .. } => CMP,
        Expr::Between { .. } => BETWEEN,
        Expr::InList { list, .. } if list.len() == 1 => CMP,
        Expr::InQuery { negated: true, .. } | Expr::Regexp { negated: true, .. } => BANG,
        Expr::InList { .. } | Expr::InQuery { .. } | Expr::Like { .. } | Expr::Regexp { .. } => IN,
        Expr::DateArith { .. } => INTERVAL,
        Expr::Function { name, args } if name == "mod" && args.len() == 2 => MULTIPLY,
        Expr::Unary { op: UnaryOp::Plus, expr } => precedence(expr),
        Expr::Unary { op: UnaryOp::Not, expr } => negated(expr).map_or(BANG, |turned| precedence(&turned)),
        Expr::Unary { .. } => NEGATE,
        Expr::Collate { .. } => COLLATE,
        _ => HIGHEST,
    }
}

/// Returns the negation of a condition that has one: MariaDB prints no NOT before it.
fn negated(expr: &Expr) -> Option<Expr> {
    let mut turned = match expr {
        Expr::Binary { op, .. } if opposite(*op).is_some() => expr.clone(),
        Expr::Is { test: IsTest::Null | IsTest::Unknown, .. } => expr.clone(),
        Expr::Between { .. } | Expr::InList { .. } | Expr::Like { .. } => expr.clone(),
        _ => return None,
    };
    match &mut turned {
        Expr::Binary { op, .. } => *op = opposite(*op)?,
        Expr::Is { negated, .. }
        | Expr::Between { negated, .. }
        | Expr::InList { negated, .. }
        | Expr::Like { negated, .. } => *negated = !*negated,
        _ => {}
    }
    Some(turned)
}

fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Equal => BinaryOp::NotEqual,
        BinaryOp::NotEqual => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::GreaterEqual,
        BinaryOp::LessEqual => BinaryOp::Greater,
        BinaryOp::Greater => BinaryOp::LessEqual,
        BinaryOp::GreaterEqual => BinaryOp::Less,
        _ => return None,
    })
}

/// Writes an operand, in parentheses if its precedence is below `least`.
fn write_operand(expr: &Expr, least: u8, out: &mut Text) {
    let parenthesised = precedence(expr) < least;
    if parenthesised {
        out.push('(');
    }
    write_expr(expr, out);
    if parenthesised {
        out.push(')');
    }
}

/// Writes the left side of a predicate. A pattern of LIKE or REGEXP would include a negated predicate after
/// it.
fn write_left(expr: &Expr, is_negated: bool, out: &mut Text) {
    let takes = is_negated && matches!(expr, Expr::Like { .. } | Expr::Regexp { negated: false, .. });
    write_operand(expr, if takes { IN + 1 } else { IN }, out);
}

/// Writes the distance of a frame's bound.
pub(crate) fn write_frame_distance(expr: &Expr, out: &mut Text) {
    write_operand(expr, BIT_OR, out);
}

fn write_items(items: &[Expr], out: &mut Text) {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        write_expr(item, out);
    }
}

fn write_list(items: &[Expr], out: &mut Text) {
    out.push('(');
    write_items(items, out);
    out.push(')');
}

fn write_column(column: &ColumnRef, out: &mut Text) {
    for part in [&column.db, &column.table].into_iter().flatten() {
        out.name(part);
        out.push('.');
    }
    out.name(&column.name);
}

fn not(negated: bool, word: &str) -> &str {
    match (negated, word) {
        (true, " between ") => " not between ",
        (true, " in ") => " not in ",
        // MariaDB prints two spaces here.
        (true, " like ") => "  not like ",
        (_, word) => word,
    }
}

fn operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::And => "and",
        BinaryOp::Equal => "=",
        BinaryOp::NullSafeEqual => "<=>",
        BinaryOp::NotEqual => "<>",
        BinaryOp::Less => "<",
        BinaryOp::LessEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterEqual => ">=",
        BinaryOp::BitOr => "|",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::IntDivide => "DIV",
        BinaryOp::Modulo => "MOD",
    }
}

/// Returns the name of the function that an aggregate or a window function calls.
pub fn called(call: &Expr) -> &str {
    match call {
        Expr::Window(window) => called(&window.function),
        Expr::Aggregate(aggregate) => aggregate_name(aggregate.kind),
        Expr::Function { name, .. } => first_name(name),
        _ => "",
    }
}

fn aggregate_name(kind: AggregateKind) -> &'static str {
    match kind {
        AggregateKind::Count => "count",
        AggregateKind::Sum => "sum",
        AggregateKind::Avg => "avg",
        AggregateKind::Min => "min",
        AggregateKind::Max => "max",
        AggregateKind::BitAnd => "bit_and",
        AggregateKind::BitOr => "bit_or",
        AggregateKind::BitXor => "bit_xor",
        AggregateKind::StdDevPop => "std",
        AggregateKind::StdDevSamp => "stddev_samp",
        AggregateKind::VarPop => "variance",
        AggregateKind::VarSamp => "var_samp",
        AggregateKind::GroupConcat => "group_concat",
        AggregateKind::JsonArrayAgg => "json_arrayagg",
        AggregateKind::JsonObjectAgg => "json_objectagg",
    }
}

/// Returns a unit's name in lower case: `day_second`.
fn unit_name(unit: IntervalUnit) -> &'static str {
    match unit {
        IntervalUnit::Microsecond => "microsecond",
        IntervalUnit::Second => "second",
        IntervalUnit::Minute => "minute",
        IntervalUnit::Hour => "hour",
        IntervalUnit::Day => "day",
        IntervalUnit::Week => "week",
        IntervalUnit::Month => "month",
        IntervalUnit::Quarter => "quarter",
        IntervalUnit::Year => "year",
        IntervalUnit::SecondMicrosecond => "second_microsecond",
        IntervalUnit::MinuteMicrosecond => "minute_microsecond",
        IntervalUnit::MinuteSecond => "minute_second",
        IntervalUnit::HourMicrosecond => "hour_microsecond",
        IntervalUnit::HourSecond => "hour_second",
        IntervalUnit::HourMinute => "hour_minute",
        IntervalUnit::DayMicrosecond => "day_microsecond",
        IntervalUnit::DaySecond => "day_second",
        IntervalUnit::DayMinute => "day_minute",
        IntervalUnit::DayHour => "day_hour",
        IntervalUnit::YearMonth => "year_month",
    }
}
