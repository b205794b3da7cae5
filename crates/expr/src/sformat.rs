//! SFORMAT: text with replacement fields, in the notation of Python and of C++'s fmt.
//!
//! ```text
//! {[which][:[[fill]align][sign][#][0][width][.precision][L][type]]}    {{ and }} are braces
//! ```
//!
//! Width and precision may be `{which}` themselves. Fields without a number use the arguments in order.

use cohort_types::{ErrorCode, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{ANY, Anywhere, Function, Rows};
use crate::typing::joined_collation;

pub(crate) static FUNCTIONS: &[Function] =
    &[Function::new("sformat", 1, ANY, type_sformat, sformat, Rows, Anywhere)];

/// Length of the result type.
const LENGTH: u32 = 16 << 20;

fn type_sformat(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let joined = joined_collation(args, env, "sformat")?;
    Ok(ExprType { kind: TypeKind::LongText, ..ExprType::text(LENGTH, joined.collation, joined.coercibility) })
}

/// An argument, converted to the class that its field needs.
enum Argument {
    Int(i64),
    Real(f64),
    Text(String),
}

/// Message of the warning.
type Refusal = &'static str;

const BAD_FORMAT: Refusal = "invalid format string";
const BAD_TYPE: Refusal = "invalid type specifier";
const NO_ARGUMENT: Refusal = "argument not found";
const NEEDS_NUMBER: Refusal = "format specifier requires numeric argument";

fn sformat(a: Args<'_>) -> SqlResult<Value> {
    let format = or_null!(a.text(0));
    let mut arguments = Vec::with_capacity(a.count() - 1);
    let mut bytes = 0;
    for n in 1..a.count() {
        arguments.push(match a.expr(n).ty_cow().class() {
            TypeClass::Int => Argument::Int(crate::convert::bits_of(or_null!(a.integer(n))) as i64),
            // A FLOAT is shown with its own digits, not with those of a double.
            TypeClass::Real if a.expr(n).ty_cow().kind == TypeKind::Float => {
                let value = or_null!(a.real(n));
                Argument::Real((value as f32).to_string().parse().unwrap_or(value))
            }
            TypeClass::Decimal | TypeClass::Real => Argument::Real(or_null!(a.real(n))),
            _ => {
                let text = or_null!(a.text(n));
                bytes += text.len() as u64;
                if !a.fits_packet(bytes)? {
                    return Ok(Value::Null);
                }
                Argument::Text(String::from_utf8_lossy(&text).into_owned())
            }
        });
    }
    let limit = usize::try_from(a.ctx.env.max_allowed_packet).unwrap_or(usize::MAX);
    let format = String::from_utf8_lossy(&format);
    match (Writer { rest: &format, arguments: &arguments, next: Some(0), limit }).run() {
        Ok(Some(text)) => a.string(text),
        Ok(None) => {
            a.fits_packet(u64::MAX)?;
            Ok(Value::Null)
        }
        Err(refusal) => {
            a.ctx.warn(ErrorCode::SformatError, format!("SFORMAT error: {refusal}"))?;
            Ok(Value::Null)
        }
    }
}

struct Writer<'f> {
    rest: &'f str,
    arguments: &'f [Argument],
    /// Next argument for a field without a number; `None` once a field had a number.
    next: Option<usize>,
    limit: usize,
}

/// Format specification after the colon.
struct Spec {
    fill: char,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    grouped: bool,
    kind: Option<char>,
}

impl<'f> Writer<'f> {
    /// Returns the text, `None` if it exceeds the limit.
    fn run(mut self) -> Result<Option<String>, Refusal> {
        let mut out = String::new();
        while let Some(c) = self.take() {
            match c {
                '{' if self.eat('{') => out.push('{'),
                '{' => self.place(&mut out)?,
                '}' if self.eat('}') => out.push('}'),
                '}' => return Err("unmatched '}' in format string"),
                c => out.push(c),
            }
            if out.len() > self.limit {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest.starts_with(c);
        if found {
            self.take();
        }
        found
    }

    fn number(&mut self) -> Result<Option<usize>, Refusal> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if number.is_empty() {
            return Ok(None);
        }
        let parsed = number.parse::<i32>().map_err(|_| "number is too big")?;
        Ok(Some(parsed as usize))
    }

    /// Returns the argument with the number at this position, or the next one.
    fn argument(&mut self) -> Result<&'f Argument, Refusal> {
        let n = match (self.number()?, self.next) {
            (Some(_), Some(1..)) => return Err("cannot switch from automatic to manual argument indexing"),
            (None, None) => return Err("cannot switch from manual to automatic argument indexing"),
            (Some(n), _) => {
                self.next = None;
                n
            }
            (None, Some(n)) => {
                self.next = Some(n + 1);
                n
            }
        };
        self.arguments.get(n).ok_or(NO_ARGUMENT)
    }

    fn place(&mut self, out: &mut String) -> Result<(), Refusal> {
        if self.rest.is_empty() {
            return Err(BAD_FORMAT);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            // Names are not supported: arguments have none.
            return Err(NO_ARGUMENT);
        }
        if !self.rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, ':' | '}')) {
            return Err(BAD_FORMAT);
        }
        let argument = self.argument()?;
        let spec = if self.eat(':') { Some(self.spec()?) } else { None };
        if !self.eat('}') {
            return Err(match self.rest.is_empty() {
                true if spec.is_some() => "missing '}' in format string",
                true => BAD_FORMAT,
                false if spec.as_ref().is_some_and(|spec| spec.kind.is_none()) => BAD_TYPE,
                false => BAD_FORMAT,
            });
        }
        let spec = spec.unwrap_or_else(Spec::plain);
        if spec.width > self.limit || spec.precision.is_some_and(|p| p > self.limit) {
            return Err("number is too big");
        }
        match argument {
            Argument::Text(text) => spec.text(text, out),
            Argument::Int(n) => spec.int(*n, out),
            Argument::Real(n) => spec.real(*n, out),
        }
    }

    fn spec(&mut self) -> Result<Spec, Refusal> {
        let mut spec = Spec::plain();
        let is_align = |c: char| matches!(c, '<' | '>' | '^');
        let mut ahead = self.rest.chars();
        let (first, second) = (ahead.next(), ahead.next());
        if let (Some('{'), Some(align)) = (first, second)
            && is_align(align)
        {
            return Err("invalid fill character '{'");
        }
        if let (Some(fill), Some(align)) = (first, second)
            && is_align(align)
        {
            (spec.fill, spec.align) = (fill, Some(align));
            self.take();
            self.take();
        } else if let Some(align) = first.filter(|c| is_align(*c)) {
            spec.align = Some(align);
            self.take();
        }
        let has_fill = spec.fill != ' ';
        spec.sign = ['+', '-', ' '].into_iter().find(|sign| self.eat(*sign));
        spec.alternate = self.eat('#');
        spec.zeros = self.eat('0');
        if spec.zeros && spec.align.is_some() && !has_fill {
            spec.fill = '0';
        }
        spec.width = self.size()?.unwrap_or(0);
        if self.eat('.') {
            spec.precision = Some(self.size()?.ok_or("missing precision specifier")?);
        }
        spec.grouped = self.eat('L');
        if let Some(kind) = self.rest.chars().next().filter(char::is_ascii_alphabetic) {
            spec.kind = Some(kind);
            self.take();
        }
        Ok(spec)
    }

    /// Parses a number, or takes it from an argument.
    fn size(&mut self) -> Result<Option<usize>, Refusal> {
        if !self.eat('{') {
            return self.number();
        }
        let argument = self.argument()?;
        if !self.eat('}') {
            return Err(BAD_FORMAT);
        }
        match argument {
            Argument::Int(n) => match usize::try_from(*n) {
                Ok(n) if n <= i32::MAX as usize => Ok(Some(n)),
                Ok(_) => Err("number is too big"),
                Err(_) => Err("negative width"),
            },
            _ => Err("width is not integer"),
        }
    }
}

impl Spec {
    fn plain() -> Spec {
        Spec {
            fill: ' ',
            align: None,
            sign: None,
            alternate: false,
            zeros: false,
            width: 0,
            precision: None,
            grouped: false,
            kind: None,
        }
    }

    fn put(&self, text: &str, align: char, out: &mut String) {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align.unwrap_or(align) {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        out.extend(std::iter::repeat_n(self.fill, before));
        out.push_str(text);
        out.extend(std::iter::repeat_n(self.fill, missing - before));
    }

    fn text(&self, text: &str, out: &mut String) -> Result<(), Refusal> {
        if !matches!(self.kind, None | Some('s')) {
            return Err(BAD_TYPE);
        }
        if self.sign.is_some() || self.alternate || self.zeros || self.grouped {
            return Err(NEEDS_NUMBER);
        }
        let end = self.precision.and_then(|p| text.char_indices().nth(p)).map_or(text.len(), |(at, _)| at);
        self.put(&text[..end], '<', out);
        Ok(())
    }

    /// Appends a number. Zeros that pad it follow sign and prefix.
    fn number(&self, negative: bool, prefix: &str, digits: &str, out: &mut String) {
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let length = sign.len() + prefix.len() + digits.len();
        let zeros = if self.zeros && self.align.is_none() { self.width.saturating_sub(length) } else { 0 };
        self.put(&format!("{sign}{prefix}{}{digits}", "0".repeat(zeros)), '>', out);
    }

    fn int(&self, n: i64, out: &mut String) -> Result<(), Refusal> {
        if self.precision.is_some() {
            return Err("precision not allowed for this argument type");
        }
        let size = n.unsigned_abs();
        let (prefix, digits) = match self.kind {
            None | Some('d') => ("", size.to_string()),
            Some('x') => ("0x", format!("{size:x}")),
            Some('X') => ("0X", format!("{size:X}")),
            Some('o') => (if size == 0 { "" } else { "0" }, format!("{size:o}")),
            Some('b') => ("0b", format!("{size:b}")),
            Some('B') => ("0B", format!("{size:b}")),
            Some('c') => {
                let c = u32::try_from(n).ok().and_then(char::from_u32).ok_or(BAD_TYPE)?;
                self.put(c.encode_utf8(&mut [0; 4]), '<', out);
                return Ok(());
            }
            _ => return Err(BAD_TYPE),
        };
        let digits = if self.grouped { grouped(&digits) } else { digits };
        self.number(n < 0, if self.alternate { prefix } else { "" }, &digits, out);
        Ok(())
    }

    fn real(&self, n: f64, out: &mut String) -> Result<(), Refusal> {
        let size = n.abs();
        let precision = self.precision.unwrap_or(6);
        let digits = match self.kind {
            _ if !size.is_finite() => if size.is_nan() { "nan" } else { "inf" }.to_owned(),
            None => match self.precision {
                Some(precision) => general(size, precision, self.alternate),
                None => shortest(size),
            },
            Some('f' | 'F') => fixed(size, precision),
            Some('a') => hexadecimal(size, self.precision, self.alternate),
            Some('A') => hexadecimal(size, self.precision, self.alternate).to_uppercase(),
            Some('e') => exponential(size, precision),
            Some('E') => exponential(size, precision).to_uppercase(),
            Some('g') => general(size, precision, self.alternate),
            Some('G') => general(size, precision, self.alternate).to_uppercase(),
            _ => return Err(BAD_TYPE),
        };
        let digits = match digits.split_once('.') {
            Some((whole, rest)) if self.grouped => format!("{}.{rest}", grouped(whole)),
            None if self.grouped => grouped(&digits),
            _ => digits,
        };
        self.number(n.is_sign_negative(), "", &digits, out);
        Ok(())
    }
}

/// Inserts a comma before each group of three digits.
fn grouped(digits: &str) -> String {
    let first = digits.len() % 3;
    let mut out = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !out.is_empty() {
            out.push(',');
        }
        out.extend(group.iter().map(|b| char::from(*b)));
    }
    out
}

/// Maximum number of significant digits: no double has more, and fmt writes no more.
const DIGITS_MAX: usize = 767;

/// Maximum number of fraction digits that fmt writes for a number below 1: the smallest begins at the 324th.
const DECIMALS_MAX: usize = 323 + DIGITS_MAX;

/// Formats like printf's `%f`, but appends only as many zeros as fmt after the last digit of a number.
fn fixed(n: f64, precision: usize) -> String {
    let decimals = precision.min(DECIMALS_MAX);
    let mut text = format!("{n:.decimals$}");
    let whole = text.find('.').unwrap_or(text.len());
    let zeros = if n == 0.0 {
        precision - decimals
    } else if n < 1.0 {
        let first = text.bytes().position(|b| !matches!(b, b'0' | b'.')).unwrap_or(text.len());
        text.truncate(first + DIGITS_MAX);
        0
    } else if whole + precision > DIGITS_MAX {
        text.truncate(DIGITS_MAX + ".".len());
        precision.saturating_sub(DIGITS_MAX)
    } else {
        0
    };
    text.extend(std::iter::repeat_n('0', zeros));
    text
}

/// Formats like printf's `%e`.
fn exponential(n: f64, precision: usize) -> String {
    let decimals = precision.min(DECIMALS_MAX);
    let zeros = "0".repeat(precision - decimals);
    let text = format!("{n:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{zeros}e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats like printf's `%a`.
fn hexadecimal(n: f64, precision: Option<usize>, keeps_point: bool) -> String {
    const DIGITS: usize = 13;
    let bits = n.to_bits();
    let (mantissa, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    // Subnormal numbers have no leading one.
    let (mut whole, exponent) = match (exponent, mantissa) {
        (0, 0) => (0, 0),
        (0, _) => (mantissa, -1022),
        _ => (mantissa | 1 << 52, exponent - 1023),
    };
    let digits = precision.unwrap_or(DIGITS).min(DIGITS);
    let dropped = 4 * (DIGITS - digits);
    let (rest, half) = (whole & ((1 << dropped) - 1), 1 << dropped >> 1);
    whole >>= dropped;
    if rest > half || (rest == half && rest > 0 && whole & 1 == 1) {
        whole += 1;
    }
    let mut fraction = match digits {
        0 => String::new(),
        _ => format!("{:0digits$x}", whole & ((1 << (4 * digits)) - 1)),
    };
    match precision {
        Some(precision) => fraction.extend(std::iter::repeat_n('0', precision - digits)),
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
    }
    let point = if fraction.is_empty() && !keeps_point { "" } else { "." };
    format!("0x{}{point}{fraction}p{exponent:+}", whole >> (4 * digits))
}

/// Formats like printf's `%g`.
fn general(n: f64, precision: usize, keeps_zeros: bool) -> String {
    let precision = precision.max(1);
    let text = exponential(n, precision - 1);
    let exponent: i64 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    if exponent < -4 || exponent >= precision as i64 {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        let mantissa = if keeps_zeros { mantissa } else { without_zeros(mantissa) };
        return format!("{mantissa}e{exponent}");
    }
    let decimals = (precision as i64 - 1 - exponent).max(0) as usize;
    let text = fixed(n, decimals);
    if keeps_zeros { text } else { without_zeros(&text).to_owned() }
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Formats with the fewest digits that identify the number.
fn shortest(n: f64) -> String {
    if n != 0.0 && !(1e-4..1e16).contains(&n) {
        let text = format!("{n:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    n.to_string()
}
