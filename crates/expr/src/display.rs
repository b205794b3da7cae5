//! Formatting of expressions for error messages.

use std::fmt;

use cohort_types::{SqlError, Value};

use crate::args::Args;
use crate::expr::{Call, CastType, Expr};
use crate::expr_type::TypeClass;
use crate::function::{Extra, Notation};

/// Precedence of an operator. An operand of lower precedence needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    Xor,
    And,
    Not,
    Compare,
    BitOr,
    BitAnd,
    Shift,
    Add,
    Mul,
    BitXor,
    Unary,
    Primary,
}

fn binding(expr: &Expr) -> Binding {
    match expr {
        Expr::Or(_) => Binding::Or,
        Expr::And(_) => Binding::And,
        Expr::Not(_) => Binding::Not,
        Expr::Compare(_) | Expr::IsNull(_) | Expr::Between(_) | Expr::In(_) | Expr::Like(_) => {
            Binding::Compare
        }
        Expr::Call(call) if call.function.notation == Notation::Operator => operator_binding(call),
        _ => Binding::Primary,
    }
}

fn operator_binding(call: &Call) -> Binding {
    match call.function.name {
        "xor" => Binding::Xor,
        "regexp" => Binding::Compare,
        "|" => Binding::BitOr,
        "&" => Binding::BitAnd,
        "<<" | ">>" => Binding::Shift,
        "+" | "-" => Binding::Add,
        "*" | "/" | "DIV" | "MOD" => Binding::Mul,
        "^" => Binding::BitXor,
        _ => Binding::Unary,
    }
}

/// An operand, in parentheses if its precedence is below that of its operator.
struct Operand<'e>(&'e Expr, Binding);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if binding(self.0) < self.1 { write!(f, "({})", self.0) } else { write!(f, "{}", self.0) }
    }
}

/// A call, formatted for messages.
pub(crate) struct CallText<'e>(pub &'e Call);

impl fmt::Display for CallText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0;
        match (&call.extra, call.function.name) {
            (Extra::Name(name), "@") => return write!(f, "@`{name}`"),
            (Extra::Name(name), ":=") => return write!(f, "@{name}:={}", call.args[0]),
            (Extra::Variable(_, name), _) => return write!(f, "@@{name}"),
            (Extra::Unit(unit), "date_add" | "date_sub") => {
                let sign = if call.function.name == "date_add" { '+' } else { '-' };
                return write!(f, "{} {sign} interval {} {unit:?}", call.args[0], call.args[1]);
            }
            (Extra::Match(_), _) => {
                return write!(f, "(match {} against ({}))", List(&call.args[1..]), call.args[0]);
            }
            _ => {}
        }
        if call.function.notation == Notation::Operator {
            return self.write_operator(f);
        }
        let name = if call.function.name == "power" { "pow" } else { call.function.name };
        write!(f, "{name}({}", List(&call.args))?;
        // MariaDB shows the default of an omitted argument.
        if call.function.name == "round" && call.args.len() == 1 {
            f.write_str(",0")?;
        }
        f.write_str(")")
    }
}

impl Args<'_> {
    /// Returns error 1690: the result is out of the range of a type (`BIGINT`, `DOUBLE`, ..).
    pub fn out_of_range(&self, type_name: &str) -> SqlError {
        SqlError::result_out_of_range(type_name, CallText(self.call))
    }
}

impl CallText<'_> {
    fn write_operator(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0;
        let own = operator_binding(call);
        match &call.args[..] {
            [operand] => {
                let symbol = if call.function.name == "neg" { "-" } else { call.function.name };
                write!(f, "{symbol}{}", Operand(operand, Binding::Primary))
            }
            [left, right] => {
                let tighter = if own < Binding::Unary { successor(own) } else { own };
                write!(f, "{} {} {}", Operand(left, own), call.function.name, Operand(right, tighter))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the next higher level. Operators of a level are left-associative, so a right operand of the same
/// level needs parentheses.
fn successor(level: Binding) -> Binding {
    match level {
        Binding::Add => Binding::Mul,
        Binding::Mul => Binding::BitXor,
        Binding::Shift => Binding::Add,
        Binding::BitAnd => Binding::Shift,
        Binding::BitOr => Binding::BitAnd,
        other => other,
    }
}

/// A list `a,b,c`.
struct List<'e>(&'e [Expr]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if n > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, items: &[Expr], word: &str, level: Binding) -> fmt::Result {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            write!(f, " {word} ")?;
        }
        write!(f, "{}", Operand(item, level))?;
    }
    Ok(())
}

fn negation(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

fn write_constant(f: &mut fmt::Formatter<'_>, value: &Value, decimals: u8) -> fmt::Result {
    let text = crate::convert::text_of(value, decimals);
    let text = text.as_deref().map(String::from_utf8_lossy);
    match (value, text) {
        (_, None) => f.write_str("NULL"),
        (Value::Str(_) | Value::Enum { .. } | Value::Set { .. }, Some(text)) => {
            write!(f, "'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        (Value::Date(_), Some(text)) => write!(f, "DATE'{text}'"),
        (Value::Time(_), Some(text)) => write!(f, "TIME'{text}'"),
        (Value::DateTime(_) | Value::Timestamp(_), Some(text)) => write!(f, "TIMESTAMP'{text}'"),
        (_, Some(text)) => f.write_str(&text),
    }
}

impl fmt::Display for CastType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = |f: &mut fmt::Formatter<'_>, name: &str, decimals: u8| {
            if decimals > 0 { write!(f, "{name}({decimals})") } else { f.write_str(name) }
        };
        match self {
            CastType::Signed => f.write_str("signed"),
            CastType::Unsigned => f.write_str("unsigned"),
            CastType::Double { size: None } => f.write_str("double"),
            CastType::Double { size: Some((m, d)) } => write!(f, "double({m},{d})"),
            CastType::Float => f.write_str("float"),
            CastType::Decimal { precision, decimals } => write!(f, "decimal({precision},{decimals})"),
            CastType::Char { length, collation } => {
                f.write_str("char")?;
                if let Some(length) = length {
                    write!(f, "({length})")?;
                }
                write!(f, " charset {}", collation.charset().name())
            }
            CastType::Binary { length: Some(length) } => write!(f, "binary({length})"),
            CastType::Binary { length: None } => f.write_str("binary"),
            CastType::Date => f.write_str("date"),
            CastType::Time { decimals } => fraction(f, "time", *decimals),
            CastType::DateTime { decimals } => fraction(f, "datetime", *decimals),
            CastType::Year => f.write_str("year"),
            CastType::Json => f.write_str("json"),
            CastType::Fixed(kind) => f.write_str(kind.name()),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Const(node) => {
                let decimals = if node.ty.class() == TypeClass::Real { 31 } else { node.ty.decimals };
                write_constant(f, &node.value, decimals)
            }
            Expr::Param(_) => f.write_str("?"),
            Expr::Column(node) => f.write_str(&node.name),
            Expr::Outer(node) => f.write_str(&node.name),
            // Expressions do not store the query text.
            Expr::Subquery(_) => f.write_str("(subquery)"),
            Expr::CallBack(node) => {
                write!(f, "`{}`.`{}`(", node.schema, node.name)?;
                for (n, arg) in node.args.iter().enumerate() {
                    let separator = if n == 0 { "" } else { "," };
                    write!(f, "{separator}{arg}")?;
                }
                f.write_str(")")
            }
            Expr::Compare(node) => write!(
                f,
                "{} {} {}",
                Operand(&node.left, Binding::BitOr),
                node.op.symbol(),
                Operand(&node.right, Binding::BitOr)
            ),
            Expr::And(items) => write_joined(f, items, "and", Binding::Not),
            Expr::Or(items) => write_joined(f, items, "or", Binding::Xor),
            Expr::Not(operand) => write!(f, "!{}", Operand(operand, Binding::Primary)),
            Expr::IsNull(node) => {
                write!(f, "{} is{} null", Operand(&node.operand, Binding::BitOr), negation(node.negated))
            }
            Expr::Between(node) => {
                let not = negation(node.negated);
                write!(f, "{}{not} between {} and {}", node.operand, node.low, node.high)
            }
            Expr::In(node) => {
                write!(f, "{}{} in ({})", node.operand, negation(node.negated), List(&node.list))
            }
            Expr::Like(node) => write!(f, "{}{} like {}", node.operand, negation(node.negated), node.pattern),
            Expr::Case(node) => {
                f.write_str("case ")?;
                if let Some(operand) = &node.operand {
                    write!(f, "{operand} ")?;
                }
                for (when, then) in &node.branches {
                    write!(f, "when {when} then {then} ")?;
                }
                if let Some(otherwise) = &node.otherwise {
                    write!(f, "else {otherwise} ")?;
                }
                f.write_str("end")
            }
            Expr::Cast(node) => write!(f, "cast({} as {})", node.operand, node.to),
            Expr::Row(items) => write!(f, "({})", List(items)),
            Expr::Call(call) => write!(f, "{}", CallText(call)),
        }
    }
}
