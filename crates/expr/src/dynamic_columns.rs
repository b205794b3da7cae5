//! Dynamic columns: COLUMN_CREATE and related functions, on the format of [`crate::dynamic_format`].
//!
//! The parser turns `COLUMN_CREATE(name, value AS type)` into a cast of the value, and `COLUMN_GET(blob, name
//! AS type)` into a cast of `column_get`. When the cast is built, [`cast_to`] stores its target type in the
//! `column_get` call.

use std::borrow::Cow;

use cohort_types::{
    Collation, Date, DateTime, Decimal, ErrorCode, IntValue, Interrupt, SqlError, SqlResult, Str, Time,
    Value, Warning,
};

use crate::args::{Args, or_null};
use crate::context::{EvalContext, SessionEnv};
use crate::convert;
use crate::convert::encode;
use crate::dynamic_format::{Damage, Entry, Kind, Name, Pack, read_name_of, unpacked};
use crate::expr::{CastType, Expr};
use crate::expr_type::{Coercibility, ExprType, TypeClass};
use crate::function::{ANY, Anywhere, Extra, Function, Rows};
use crate::typing::long_binary_string;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("column_create", 2, ANY, type_of_blob, create, Rows, Anywhere),
    Function::new("column_add", 3, ANY, type_of_blob, add, Rows, Anywhere),
    Function::new("column_delete", 2, ANY, type_of_blob, delete, Rows, Anywhere),
    Function::new("column_get", 2, 2, type_of_get, get, Rows, Anywhere),
    Function::new("column_exists", 2, 2, type_of_flag, exists, Rows, Anywhere),
    Function::new("column_check", 1, 1, type_of_flag, check, Rows, Anywhere),
    Function::new("column_list", 1, 1, type_of_text, list, Rows, Anywhere),
    Function::new("column_json", 1, 1, type_of_text, json, Rows, Anywhere),
    // `COLUMN_CREATE(.., value AS DECIMAL)` is a cast that keeps all digits, `AS UNSIGNED INT` one without a
    // note. These names contain spaces, so SQL text cannot call the functions.
    Function::new(AS_DECIMAL, 1, 1, type_of_decimal, as_decimal, Rows, Anywhere),
    Function::new("as unsigned int", 1, 1, type_of_unsigned, as_unsigned, Rows, Anywhere),
    // An invalid date or time becomes the zero value of its type.
    Function::new("as date", 1, 1, |_, _| nullable(ExprType::date()), as_date, Rows, Anywhere).of_statement(),
    Function::new("as time", 1, 1, |_, _| nullable(ExprType::time(6)), as_time, Rows, Anywhere)
        .of_statement(),
    Function::new("as datetime", 1, 1, |_, _| nullable(ExprType::datetime(6)), as_datetime, Rows, Anywhere)
        .of_statement(),
];

const AS_DECIMAL: &str = "as decimal";
/// Length of the results, which may be texts of any length.
const WIDTH: u64 = u32::MAX as u64;

fn type_of_blob(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { decimals: 0, ..long_binary_string(WIDTH) }.with_nullable(true))
}

fn type_of_get(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let ty = ExprType::text(u32::MAX / 4, env.collation_connection, Coercibility::Implicit);
    Ok(ty.with_nullable(true))
}

fn type_of_text(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let ty = ExprType::text(u32::MAX / 4, Collation::UTF8MB4_GENERAL_CI, Coercibility::Implicit);
    Ok(ExprType { decimals: 0, ..ty }.with_nullable(true))
}

fn type_of_flag(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean().with_nullable(false))
}

fn type_of_decimal(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let ty = args[0].ty_cow();
    let decimals = if ty.class() == TypeClass::Decimal { ty.decimals } else { 30 };
    Ok(ExprType::decimal(65, decimals, false).with_nullable(true))
}

fn type_of_unsigned(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(20).with_unsigned(true).with_nullable(true))
}

fn as_unsigned(a: Args<'_>) -> SqlResult<Value> {
    Ok(a.integer(0)?.map_or(Value::Null, |number| Value::UInt(convert::bits_of(number))))
}

fn nullable(ty: ExprType) -> SqlResult<ExprType> {
    Ok(ty.with_nullable(true))
}

fn as_date(a: Args<'_>) -> SqlResult<Value> {
    match a.value(0)?.is_null() {
        true => Ok(Value::Null),
        false => Ok(Value::Date(a.date(0)?.unwrap_or_default())),
    }
}

fn as_time(a: Args<'_>) -> SqlResult<Value> {
    match a.value(0)?.is_null() {
        true => Ok(Value::Null),
        false => Ok(Value::Time(a.time(0)?.unwrap_or_default())),
    }
}

fn as_datetime(a: Args<'_>) -> SqlResult<Value> {
    match a.value(0)?.is_null() {
        true => Ok(Value::Null),
        false => Ok(Value::DateTime(a.datetime(0)?.unwrap_or_default())),
    }
}

fn as_decimal(a: Args<'_>) -> SqlResult<Value> {
    Ok(a.decimal(0)?.map_or(Value::Null, Value::Decimal))
}

/// Target types of COLUMN_GET; other values are names of numeric types for warnings.
const SIGNED: &str = "SIGNED INT";
const MOMENT: &str = "MOMENT";

/// Stores the target type of a cast in its `column_get` call: texts that are not numbers get a specific
/// warning, and a cast to BINARY keeps the bytes unchanged.
pub(crate) fn cast_to(operand: &mut Expr, to: CastType) {
    let Expr::Call(call) = operand else { return };
    if call.function.name != "column_get" {
        return;
    }
    match to {
        CastType::Signed => call.extra = Extra::Name(SIGNED.into()),
        CastType::Unsigned => call.extra = Extra::Name("INT".into()),
        CastType::Date | CastType::Time { .. } | CastType::DateTime { .. } => {
            call.extra = Extra::Name(MOMENT.into());
        }
        CastType::Double { .. } | CastType::Float => call.extra = Extra::Name("DOUBLE".into()),
        CastType::Decimal { .. } => call.extra = Extra::Name("DECIMAL".into()),
        CastType::Binary { .. } => call.ty.collation = Collation::BINARY,
        _ => {}
    }
}

impl From<Damage> for SqlError {
    fn from(damage: Damage) -> SqlError {
        match damage {
            Damage::Format => SqlError::dynamic_column_format(),
            Damage::Limit => SqlError::dynamic_column_limit(),
            Damage::Charset => SqlError::dynamic_column_charset(),
            Damage::Data => illegal_value(),
        }
    }
}

fn illegal_value() -> SqlError {
    SqlError::dynamic_column_value()
}

/// Returns true if argument n identifies a column by number.
fn is_number(a: &Args<'_>, n: usize) -> bool {
    a.expr(n).ty_cow().class() == TypeClass::Int
}

/// Returns argument n as a column name or number; `None` for NULL.
fn name_of(a: &Args<'_>, n: usize, is_named: bool) -> SqlResult<Option<Name<'static>>> {
    if is_named {
        return Ok(a.text(n)?.map(|text| Name::Text(Cow::Owned(text.into_owned()))));
    }
    let Some(number) = a.integer(n)? else { return Ok(None) };
    let number = match number {
        IntValue::Signed(n) => u16::try_from(n).ok(),
        IntValue::Unsigned(n) => u16::try_from(n).ok(),
    };
    Ok(Some(Name::Number(number.ok_or_else(illegal_value)?)))
}

/// Returns argument n as packed columns; `None` for NULL.
fn pack_of(a: &Args<'_>, n: usize) -> SqlResult<Option<Cow<'static, [u8]>>> {
    let Some(text) = a.text(n)? else { return Ok(None) };
    let bytes = encode(text, a.expr(n).ty_cow().collation);
    Ok(Some(Cow::Owned(bytes.into_owned())))
}

/// Returns true if an expression returns packed columns, which may be nested.
fn is_pack(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if ["column_create", "column_add", "column_delete"].contains(&call.function.name))
}

/// Encodes argument n as a column value; `None` for NULL.
fn kept(a: &Args<'_>, n: usize) -> SqlResult<Option<(Kind, Vec<u8>)>> {
    let expr = a.expr(n);
    let ty = expr.ty_cow();
    let mut out = Vec::new();
    if is_pack(expr) {
        return Ok(a.text(n)?.map(|bytes| (Kind::Pack, bytes.into_owned())));
    }
    let kind = match ty.class() {
        TypeClass::Int => {
            let Some(number) = a.integer(n)? else { return Ok(None) };
            let bits = match number {
                IntValue::Signed(n) => n as u64,
                IntValue::Unsigned(n) => n,
            };
            if ty.unsigned {
                put_short(bits, &mut out);
                Kind::Unsigned
            } else {
                put_short(bits << 1 ^ (bits as i64 >> 63) as u64, &mut out);
                Kind::Signed
            }
        }
        TypeClass::Real => {
            let Some(number) = a.real(n)? else { return Ok(None) };
            out.extend_from_slice(&number.to_le_bytes());
            Kind::Double
        }
        TypeClass::Decimal => {
            let Some(number) = a.decimal(n)? else { return Ok(None) };
            put_decimal(&number, expr, &mut out);
            Kind::Decimal
        }
        TypeClass::Date => {
            let Some(date) = a.date(n)? else { return Ok(None) };
            put_date(date, &mut out);
            Kind::Date
        }
        TypeClass::Time => {
            let Some(time) = a.time(n)? else { return Ok(None) };
            put_time(time, &mut out);
            Kind::Time
        }
        TypeClass::DateTime => {
            let Some(datetime) = a.datetime(n)? else { return Ok(None) };
            put_date(datetime.date, &mut out);
            put_time(datetime.time(), &mut out);
            Kind::DateTime
        }
        _ => {
            let Some(text) = a.text(n)? else { return Ok(None) };
            put_count(u64::from(ty.collation.0), &mut out);
            out.extend_from_slice(&encode(text, ty.collation));
            Kind::Text
        }
    };
    Ok(Some((kind, out)))
}

/// Appends the bytes of a number in little-endian order without its leading zero bytes.
fn put_short(bits: u64, out: &mut Vec<u8>) {
    let count = (64 - bits.leading_zeros()).div_ceil(8) as usize;
    out.extend_from_slice(&bits.to_le_bytes()[..count]);
}

/// Appends a number in groups of seven bits, least significant group first.
fn put_count(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a decimal: no bytes for 0, otherwise the numbers of digits before and after the point and the
/// digits in row format.
fn put_decimal(number: &Decimal, of: &Expr, out: &mut Vec<u8>) {
    if number.is_zero() {
        return;
    }
    const WORD: u8 = 9;
    let digits = number.int_digits().max(1);
    let ty = of.ty_cow();
    // Number of integer digits as MariaDB stores it: all digits of a literal, groups of nine digits for a
    // result, the declared digits of a column without zero groups.
    let room = match of {
        Expr::Const(_) | Expr::Cast(_) => digits,
        Expr::Column(_) => {
            let declared = (ty.precision() as u8).saturating_sub(ty.decimals);
            let words = digits.div_ceil(WORD) * WORD;
            if number.int_digits() == 0 && declared % WORD == declared {
                declared.max(1)
            } else {
                words.min(declared.max(digits))
            }
        }
        Expr::Call(call) if call.function.name == AS_DECIMAL => digits,
        _ => digits.div_ceil(WORD) * WORD,
    };
    put_count(u64::from(room), out);
    put_count(u64::from(number.scale()), out);
    number.write_packed(room + number.scale(), number.scale(), out);
}

fn put_date(date: Date, out: &mut Vec<u8>) {
    let packed = u32::from(date.day) | u32::from(date.month) << 5 | u32::from(date.year) << 9;
    out.extend_from_slice(&packed.to_le_bytes()[..3]);
}

fn put_time(time: Time, out: &mut Vec<u8>) {
    let clock = u64::from(time.second()) | u64::from(time.minute()) << 6 | u64::from(time.hour()) << 12;
    let sign = u64::from(time.micros < 0) << 22;
    match time.microsecond() {
        0 => out.extend_from_slice(&(clock | sign).to_le_bytes()[..3]),
        micros => {
            let packed = u64::from(micros) | (clock | sign) << 20;
            out.extend_from_slice(&packed.to_le_bytes()[..6]);
        }
    }
}

/// Returns names and values from argument `first` on, sorted by name. Returns `None` if a name is NULL or the
/// values exceed max_allowed_packet. A NULL value has no bytes.
#[allow(clippy::type_complexity)]
fn pairs(
    a: &Args<'_>,
    first: usize,
    is_named: bool,
) -> SqlResult<Option<Vec<(Name<'static>, Option<(Kind, Vec<u8>)>)>>> {
    let mut all = Vec::new();
    let mut bytes = 0;
    for n in (first..a.count()).step_by(2) {
        a.ctx.steps(1)?;
        let Some(name) = name_of(a, n, is_named)? else { return Ok(None) };
        let value = kept(a, n + 1)?;
        bytes += value.as_ref().map_or(0, |(_, data)| data.len() as u64);
        if !a.fits_packet(bytes)? {
            return Ok(None);
        }
        all.push((name, value));
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    match all.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        true => Err(illegal_value()),
        false => Ok(Some(all)),
    }
}

/// Returns true if columns have names instead of numbers: a name is a text, or a value is packed columns,
/// which numbered columns cannot contain.
fn has_names(a: &Args<'_>, first: usize) -> bool {
    (first..a.count()).step_by(2).any(|n| !is_number(a, n) || is_pack(a.expr(n + 1)))
}

/// Checks that arguments come in pairs. MariaDB reports an unpaired argument as a syntax error.
fn check_pairs(a: &Args<'_>, first: usize) -> SqlResult<()> {
    match (a.count() - first).is_multiple_of(2) {
        true => Ok(()),
        false => Err(illegal_value()),
    }
}

fn create(a: Args<'_>) -> SqlResult<Value> {
    check_pairs(&a, 0)?;
    let is_named = has_names(&a, 0);
    let Some(pairs) = pairs(&a, 0, is_named)? else { return Ok(Value::Null) };
    let mut pack = Pack { is_named, entries: Vec::with_capacity(pairs.len()) };
    for (name, value) in pairs {
        if let Some((kind, data)) = value {
            pack.entries.push(Entry { name, kind, data: Cow::Owned(data) });
        }
    }
    packed(&a, &pack)
}

fn packed(a: &Args<'_>, pack: &Pack<'_>) -> SqlResult<Value> {
    let bytes = pack.written()?;
    a.bounded_string(bytes)
}

fn add(a: Args<'_>) -> SqlResult<Value> {
    check_pairs(&a, 1)?;
    let old = or_null!(pack_of(&a, 0));
    let mut pack = unpacked(&old, a.ctx)?;
    let is_named = pack.is_named || has_names(&a, 1);
    let Some(pairs) = pairs(&a, 1, is_named)? else { return Ok(Value::Null) };
    let is_new = old.is_empty() && pairs.iter().all(|(_, value)| value.is_none());
    if is_new {
        return a.string(Vec::new());
    }
    pack.rename(is_named);
    for (name, value) in pairs {
        let at = pack.entries.binary_search_by(|entry| entry.name.cmp(&name));
        match (at, value) {
            (Ok(at), None) => drop(pack.entries.remove(at)),
            (Err(_), None) => {}
            (Ok(at), Some((kind, data))) => pack.entries[at] = Entry { name, kind, data: Cow::Owned(data) },
            (Err(at), Some((kind, data))) => {
                pack.entries.insert(at, Entry { name, kind, data: Cow::Owned(data) });
            }
        }
    }
    packed(&a, &pack)
}

fn delete(a: Args<'_>) -> SqlResult<Value> {
    let old = or_null!(pack_of(&a, 0));
    let mut pack = unpacked(&old, a.ctx)?;
    let is_named = pack.is_named || (1..a.count()).any(|n| !is_number(&a, n));
    let mut names = Vec::new();
    for n in 1..a.count() {
        names.push(or_null!(name_of(&a, n, is_named)));
    }
    names.sort();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(illegal_value());
    }
    if old.is_empty() {
        return a.string(Vec::new());
    }
    pack.rename(is_named);
    pack.entries.retain(|entry| names.binary_search(&entry.name).is_err());
    packed(&a, &pack)
}

/// Returns the column that argument 1 identifies. The outer option is `None` for NULL.
fn found<'p>(a: &Args<'_>, pack: &'p Pack<'_>) -> SqlResult<Option<Option<&'p Entry<'p>>>> {
    let name = match is_number(a, 1) {
        true => {
            let Some(number) = a.int(1)? else { return Ok(None) };
            let Ok(number) = u16::try_from(number) else { return Ok(None) };
            Name::Number(number)
        }
        false => {
            let Some(text) = a.text(1)? else { return Ok(None) };
            Name::Text(Cow::Owned(text.into_owned()))
        }
    };
    let name = read_name_of(name, pack.is_named);
    Ok(Some(name.and_then(|name| pack.find(&name))))
}

fn exists(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(pack_of(&a, 0));
    let pack = unpacked(&bytes, a.ctx)?;
    Ok(found(&a, &pack)?.map_or(Value::Null, |entry| Value::bool(entry.is_some())))
}

fn check(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(pack_of(&a, 0));
    match unpacked(&bytes, a.ctx) {
        Ok(pack) => Ok(Value::bool(pack.entries.is_sorted_by(|a, b| a.name < b.name))),
        Err(error) if error.code == ErrorCode::DynColWrongFormat => Ok(Value::bool(false)),
        Err(error) => Err(error),
    }
}

fn list(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(pack_of(&a, 0));
    let pack = unpacked(&bytes, a.ctx)?;
    let mut out = Vec::new();
    for entry in &pack.entries {
        a.ctx.steps(1)?;
        if !out.is_empty() {
            out.push(b',');
        }
        out.push(b'`');
        for byte in entry.name.text().iter() {
            if *byte == b'`' {
                out.push(b'`');
            }
            out.push(*byte);
        }
        out.push(b'`');
    }
    a.string(out)
}

/// A decoded value of packed columns.
enum Held<'d> {
    Plain(Value),
    Pack(&'d [u8]),
}

/// Decodes the value of an entry.
fn held<'d>(entry: &'d Entry<'_>) -> Result<Held<'d>, Damage> {
    let data = &entry.data[..];
    let value = match entry.kind {
        Kind::Signed => {
            let bits = short(data)?;
            Value::Int((bits >> 1) as i64 ^ -((bits & 1) as i64))
        }
        Kind::Unsigned => Value::UInt(short(data)?),
        Kind::Double => Value::Double(f64::from_le_bytes(data.try_into().map_err(|_| Damage::Format)?)),
        Kind::Text => {
            let (id, rest) = count(data)?;
            let collation = u16::try_from(id).ok().and_then(Collation::from_id).ok_or(Damage::Charset)?;
            Value::Str(Str { bytes: rest.to_vec(), collation })
        }
        Kind::Decimal if data.is_empty() => Value::Decimal(Decimal::from_i64(0)),
        Kind::Decimal => {
            let (whole, rest) = count(data)?;
            let (scale, rest) = count(rest)?;
            if whole + scale > 81 || scale > 38 {
                return Err(Damage::Format);
            }
            let (precision, scale) = ((whole + scale) as u8, scale as u8);
            if rest.len() != Decimal::packed_len(precision, scale) {
                return Err(Damage::Format);
            }
            Value::Decimal(Decimal::read_packed(precision, scale, rest).ok_or(Damage::Format)?)
        }
        Kind::Date => Value::Date(date(data)?),
        Kind::Time => Value::Time(time(data)?),
        Kind::DateTime => {
            let (day, clock) = data.split_at_checked(3).ok_or(Damage::Format)?;
            let (date, time) = (date(day)?, time(clock)?);
            if time.micros < 0 || time.hour() > 23 {
                return Err(Damage::Format);
            }
            Value::DateTime(DateTime {
                date,
                hour: time.hour() as u8,
                minute: time.minute(),
                second: time.second(),
                micros: time.microsecond(),
            })
        }
        Kind::Pack => return Ok(Held::Pack(data)),
    };
    Ok(Held::Plain(value))
}

fn short(data: &[u8]) -> Result<u64, Damage> {
    let mut bytes = [0; 8];
    bytes.get_mut(..data.len()).ok_or(Damage::Format)?.copy_from_slice(data);
    Ok(u64::from_le_bytes(bytes))
}

fn count(data: &[u8]) -> Result<(u64, &[u8]), Damage> {
    let mut n = 0;
    for (at, byte) in data.iter().enumerate().take(5) {
        n |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((n, &data[at + 1..]));
        }
    }
    Err(Damage::Format)
}

fn date(data: &[u8]) -> Result<Date, Damage> {
    let packed = if data.len() == 3 { short(data)? as u32 } else { return Err(Damage::Format) };
    let (year, month, day) = ((packed >> 9) as u16, (packed >> 5 & 15) as u8, (packed & 31) as u8);
    match year <= 9999 && month <= 12 {
        true => Ok(Date { year, month, day }),
        false => Err(Damage::Format),
    }
}

fn time(data: &[u8]) -> Result<Time, Damage> {
    let packed = short(data)?;
    let (micros, clock) = match data.len() {
        3 => (0, packed),
        6 => (packed as u32 & 0xf_ffff, packed >> 20),
        _ => return Err(Damage::Format),
    };
    let (hour, minute, second) = ((clock >> 12 & 1023) as u32, (clock >> 6 & 63) as u8, (clock & 63) as u8);
    match hour <= 838 && minute < 60 && second < 60 && micros < 1_000_000 {
        true => Ok(Time::from_hms(clock >> 22 & 1 == 1, hour, minute, second, micros)),
        false => Err(Damage::Format),
    }
}

fn get(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(pack_of(&a, 0));
    let pack = unpacked(&bytes, a.ctx)?;
    let Some(Some(entry)) = found(&a, &pack)? else { return Ok(Value::Null) };
    let is_binary = a.call.ty.collation == Collation::BINARY;
    let wants = match &a.call.extra {
        Extra::Name(name) => Some(&**name),
        _ => None,
    };
    match held(entry)? {
        Held::Pack(_) if wants.is_some() => Ok(Value::Null),
        Held::Pack(bytes) => a.string(bytes),
        Held::Plain(Value::Str(text)) if is_binary => a.string(text.bytes),
        Held::Plain(Value::Str(text)) => {
            let text = decoded(&text);
            match wants {
                None | Some(MOMENT) => a.string(text),
                Some(SIGNED) => number_of(&a, text, "INT"),
                Some(to) => number_of(&a, text, to),
            }
        }
        Held::Plain(Value::UInt(n)) if wants == Some(SIGNED) && i64::try_from(n).is_err() => {
            a.ctx.note(
                ErrorCode::UnknownError,
                "Cast to signed converted positive out-of-range integer to it's negative complement",
            );
            Ok(Value::UInt(n))
        }
        Held::Plain(value) => Ok(value),
    }
}

/// Decodes a text to the in-memory character set, with replacement characters for invalid bytes.
fn decoded(text: &Str) -> Vec<u8> {
    let charset = text.collation.charset();
    let mut out = Vec::with_capacity(text.bytes.len());
    match charset.is_as_in_memory() && std::str::from_utf8(&text.bytes).is_ok() {
        true => out.extend_from_slice(&text.bytes),
        false if !charset.is_as_in_memory() && charset.decode(&text.bytes, &mut out).is_ok() => {}
        false => out = String::from_utf8_lossy(&text.bytes).into_owned().into_bytes(),
    }
    out
}

/// Returns the number at the start of a text. Warns if other characters follow.
fn number_of(a: &Args<'_>, text: Vec<u8>, to: &str) -> SqlResult<Value> {
    let mut lost: Vec<Warning> = Vec::new();
    let value = Value::Str(Str { bytes: text, collation: Collation::UTF8MB4_BIN });
    let Value::Str(text) = &value else { unreachable!("it was made one") };
    let mut is_complete = true;
    let number = match to {
        "INT" => {
            let (number, is_whole) = whole_number(&text.bytes);
            is_complete = is_whole;
            number
        }
        "DOUBLE" => Value::Double(value.to_f64(&mut lost).unwrap_or(0.0)),
        _ => Value::Decimal(value.to_decimal(&mut lost).unwrap_or(Decimal::from_i64(0))),
    };
    if !is_complete || !lost.is_empty() {
        let shown = crate::convert::start_of_text(&text.bytes, 128);
        a.ctx.warn(
            ErrorCode::BadData,
            format!("Encountered illegal value '{shown}' when converting to {to}"),
        )?;
    }
    Ok(number)
}

/// Returns the integer at the start of a text, and true if the text has no other characters.
fn whole_number(text: &[u8]) -> (Value, bool) {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let is_complete = end > 0 && end == digits.len();
    let number = digits[..end]
        .iter()
        .fold(0u128, |n, digit| n.saturating_mul(10).saturating_add(u128::from(digit - b'0')));
    let number = match text.starts_with(b"-") {
        true => Value::Int(i64::try_from(number).map_or(i64::MIN, |n| -n)),
        false => i64::try_from(number)
            .map_or_else(|_| Value::UInt(u64::try_from(number).unwrap_or(u64::MAX)), Value::Int),
    };
    (number, is_complete)
}

fn json(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(pack_of(&a, 0));
    if bytes.is_empty() {
        return a.string(Vec::new());
    }
    let mut out = Vec::new();
    write_json(&bytes, a.ctx, &mut out)?;
    a.bounded_string(out)
}

fn write_json(bytes: &[u8], ctx: &EvalContext<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    ctx.check_stack()?;
    let pack = unpacked(bytes, ctx)?;
    out.push(b'{');
    for (n, entry) in pack.entries.iter().enumerate() {
        ctx.steps(1 + (entry.data.len() / 256) as u32)?;
        if n > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(&entry.name.text());
        out.extend_from_slice(b"\":");
        match held(entry)? {
            Held::Pack(bytes) => write_json(bytes, ctx, out)?,
            Held::Plain(Value::Str(text)) => write_quoted(&text, out),
            Held::Plain(value @ (Value::Date(_) | Value::Time(_) | Value::DateTime(_))) => {
                out.push(b'"');
                out.extend_from_slice(&temporal_text(&value));
                out.push(b'"');
            }
            Held::Plain(value) => value.write_text(digits_shown(&value), out),
        }
    }
    out.push(b'}');
    Ok(())
}

/// Returns the number of fraction digits to show.
fn digits_shown(value: &Value) -> u8 {
    match value {
        Value::Decimal(number) => number.scale(),
        _ => crate::expr_type::NOT_FIXED_DECIMALS,
    }
}

/// Returns a date or time as text, with six fraction digits if it has a fraction.
fn temporal_text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Time(time) => time.write_text(if time.microsecond() > 0 { 6 } else { 0 }, &mut out),
        Value::DateTime(datetime) => datetime.write_text(if datetime.micros > 0 { 6 } else { 0 }, &mut out),
        other => other.write_text(0, &mut out),
    }
    out
}

fn write_quoted(text: &Str, out: &mut Vec<u8>) {
    out.push(b'"');
    let text = match text.collation == Collation::BINARY {
        // Each byte is the character with that number.
        true => text.bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes(),
        false => decoded(text),
    };
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
