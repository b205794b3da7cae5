//! Parameters of COM_STMT_EXECUTE.
//!
//! ```text
//! null bitmap, (count + 7) / 8 bytes
//! u8 1 if types follow, otherwise the types of the last execution apply
//! types: count x (u8 type, u8 flags: 0x80 unsigned)
//! values of parameters that are neither NULL nor already sent as long data
//! ```
//!
//! COM_STMT_BULK_EXECUTE has no bitmap: types if its flag says so, then for each row and parameter `u8
//! indicator`, followed by a value if the indicator is 0.

use std::sync::Arc;

use cohort_base::{Budget, Reader, Reservation};
use cohort_types::{
    Charset, Collation, Date, DateTime, Decimal, ErrorCode, SqlError, SqlResult, Str, Time, Value,
};

use crate::Malformed;
use crate::column_meta::TypeCode;

/// How to interpret string parameters.
#[derive(Clone, Copy, Debug)]
pub struct ParamText {
    /// Character set of the bytes: character_set_client.
    pub charset: Charset,
    /// Collation of the values: collation_connection.
    pub collation: Collation,
}

#[derive(Clone, Copy, Debug)]
struct ParamType {
    code: TypeCode,
    unsigned: bool,
}

/// State of a prepared statement's parameters between executions.
#[derive(Debug, Default)]
pub struct StatementParams {
    count: usize,
    /// Types of the last execution; empty before the first.
    types: Vec<ParamType>,
    /// Values sent in advance in pieces; empty if there are none.
    long_data: Vec<Option<Vec<u8>>>,
    /// Memory of the long data, charged to the session until it is used.
    charged: Option<Reservation>,
    /// Why a piece was refused. The command has no reply, so the next execution returns the error.
    refused: Option<SqlError>,
}

impl StatementParams {
    /// Creates the state for a statement with `count` parameters.
    pub fn new(count: u16) -> StatementParams {
        StatementParams { count: usize::from(count), ..StatementParams::default() }
    }

    /// Returns the number of parameters.
    pub fn count(&self) -> usize {
        self.count
    }

    /// COM_STMT_SEND_LONG_DATA: appends a piece, charged to the session's memory. If it does not fit, it and
    /// all further pieces are refused; [`StatementParams::take_refusal`] returns the error.
    pub fn add_long_data(&mut self, param: u16, data: &[u8], bytes_max: usize, memory: Option<&Arc<Budget>>) {
        if self.refused.is_some() {
            return;
        }
        if let Err(refused) = self.try_add(usize::from(param), data, bytes_max, memory) {
            self.reset();
            self.refused = Some(refused);
        }
    }

    fn try_add(
        &mut self,
        param: usize,
        data: &[u8],
        bytes_max: usize,
        memory: Option<&Arc<Budget>>,
    ) -> SqlResult<()> {
        if param >= self.count {
            return Err(SqlError::wrong_arguments("mysqld_stmt_send_long_data"));
        }
        if self.long_data.is_empty() {
            self.charged = memory.map(|memory| Reservation::new(Arc::clone(memory)));
            self.charge(self.count * size_of::<Option<Vec<u8>>>())?;
            self.long_data.resize(self.count, None);
        }
        let (bytes, capacity) = self.long_data[param].as_ref().map_or((0, 0), |v| (v.len(), v.capacity()));
        let wanted = bytes + data.len();
        if wanted > bytes_max {
            let text = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than \
                        'max_allowed_packet' bytes";
            return Err(SqlError::new(ErrorCode::UnknownError, text));
        }
        let room = if wanted > capacity { wanted.max(2 * capacity).min(bytes_max) } else { capacity };
        self.charge(room - capacity)?;
        let so_far = self.long_data[param].get_or_insert_default();
        so_far.reserve_exact(room - bytes);
        so_far.extend_from_slice(data);
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> SqlResult<()> {
        self.charged.as_mut().map_or(Ok(()), |charged| Ok(charged.grow(bytes as u64)?))
    }

    /// Returns why a piece of long data was refused. All pieces were dropped then.
    pub fn take_refusal(&mut self) -> Option<SqlError> {
        self.refused.take()
    }

    /// Drops the long data, for COM_STMT_RESET and after an execution.
    pub fn reset(&mut self) {
        self.long_data = Vec::new();
        self.charged = None;
        self.refused = None;
    }

    /// Decodes the values of an execution and uses up the long data. Its memory stays charged until
    /// [`StatementParams::reset`], because the values contain it.
    pub fn decode(&mut self, payload: &[u8], text: ParamText) -> Result<Vec<Value>, Malformed> {
        let mut long_data = std::mem::take(&mut self.long_data);
        if self.count == 0 {
            return Ok(Vec::new());
        }
        let mut r = Reader::new(payload);
        let nulls = r.bytes(self.count.div_ceil(8))?;
        if r.u8()? == 1 {
            self.read_types(&mut r)?;
        }
        if self.types.len() != self.count {
            return Err(Malformed);
        }
        let mut values = Vec::with_capacity(self.count);
        for (n, param_type) in self.types.iter().enumerate() {
            let long = long_data.get_mut(n).and_then(Option::take);
            values.push(match long {
                Some(_) if !param_type.code.takes_long_data() => return Err(Malformed),
                Some(bytes) => string(&bytes, param_type.code, text),
                None if nulls[n / 8] >> (n % 8) & 1 == 1 => Value::Null,
                None => value(&mut r, *param_type, text)?,
            });
        }
        Ok(values)
    }

    /// Returns an iterator over the rows of a bulk execution, which ends with the first malformed one. Drops
    /// long data.
    pub fn decode_rows<'r>(
        &'r mut self,
        payload: &'r [u8],
        has_types: bool,
        text: ParamText,
    ) -> Result<ParamRows<'r>, Malformed> {
        self.reset();
        let mut r = Reader::new(payload);
        if has_types {
            self.read_types(&mut r)?;
        }
        // Without parameters or rows there is nothing to execute.
        if self.count == 0 || self.types.len() != self.count || r.is_empty() {
            return Err(Malformed);
        }
        Ok(ParamRows { types: &self.types, r, text })
    }

    fn read_types(&mut self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        self.types.clear();
        for _ in 0..self.count {
            let code = TypeCode::from_byte(r.u8()?).ok_or(Malformed);
            let unsigned = r.u8()? & 0x80 != 0;
            match code {
                Ok(code) => self.types.push(ParamType { code, unsigned }),
                Err(error) => {
                    self.types.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// A value for a `?`.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    Value(Value),
    /// The DEFAULT of the column.
    Default,
    /// Leaves the column unchanged; an inserted row gets the DEFAULT.
    Ignore,
}

/// Parameter rows of COM_STMT_BULK_EXECUTE.
pub struct ParamRows<'r> {
    types: &'r [ParamType],
    r: Reader<'r>,
    text: ParamText,
}

impl ParamRows<'_> {
    fn read(&mut self, param: ParamType) -> Result<Parameter, SqlError> {
        let malformed = |_| SqlError::wrong_arguments("mysqld_stmt_bulk_execute");
        match self.r.u8().map_err(|_| malformed(Malformed))? {
            0 => value(&mut self.r, param, self.text).map(Parameter::Value).map_err(malformed),
            1 => Ok(Parameter::Value(Value::Null)),
            2 => Ok(Parameter::Default),
            3 => Ok(Parameter::Ignore),
            _ => Err(malformed(Malformed)),
        }
    }
}

impl Iterator for ParamRows<'_> {
    type Item = Result<Vec<Parameter>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.r.is_empty() {
            return None;
        }
        let types = self.types;
        let row: Result<Vec<Parameter>, SqlError> = types.iter().map(|param| self.read(*param)).collect();
        if row.is_err() {
            self.r = Reader::new(&[]);
        }
        Some(row)
    }
}

fn value(r: &mut Reader<'_>, param: ParamType, text: ParamText) -> Result<Value, Malformed> {
    use TypeCode::*;
    let signed = |v: i64, unsigned_v: u64| match param.unsigned {
        true => Value::UInt(unsigned_v),
        false => Value::Int(v),
    };
    Ok(match param.code {
        Null => Value::Null,
        Tiny => {
            let v = r.u8()?;
            signed(i64::from(v as i8), u64::from(v))
        }
        Short | Year => {
            let v = r.u16()?;
            signed(i64::from(v as i16), u64::from(v))
        }
        Long | Int24 => {
            let v = r.u32()?;
            signed(i64::from(v as i32), u64::from(v))
        }
        LongLong => {
            let v = r.u64()?;
            signed(v as i64, v)
        }
        Float => Value::Float(f32::from_bits(r.u32()?)),
        Double => Value::Double(f64::from_bits(r.u64()?)),
        Date | NewDate | DateTime | Timestamp => datetime(r, param.code)?,
        Time => time(r)?,
        Decimal | NewDecimal => Value::Decimal(self::Decimal::parse(r.lenenc_bytes()?).0),
        VarChar | Bit | Enum | Set | TinyBlob | MediumBlob | LongBlob | Blob | VarString | String
        | Geometry => string(r.lenenc_bytes()?, param.code, text),
    })
}

/// Returns a text value, or a binary one for binary types and for bytes that are invalid in the client's
/// character set. Drivers send byte strings as VAR_STRING, too; a character column refuses them later, with
/// the column name in the error.
fn string(bytes: &[u8], code: TypeCode, text: ParamText) -> Value {
    use TypeCode::*;
    if matches!(code, TinyBlob | MediumBlob | LongBlob | Blob | Bit | Geometry) {
        return Value::binary(bytes);
    }
    match text.charset {
        Charset::Binary => Value::binary(bytes),
        Charset::Utf8mb4 | Charset::Utf8mb3 => match cohort_types::is_text(bytes) {
            true => Value::Str(Str { bytes: bytes.to_vec(), collation: text.collation }),
            false => Value::binary(bytes),
        },
        other => {
            let mut utf8 = Vec::with_capacity(bytes.len());
            match other.decode(bytes, &mut utf8) {
                Ok(()) => Value::Str(Str { bytes: utf8, collation: text.collation }),
                Err(_) => Value::binary(bytes),
            }
        }
    }
}

/// u8 length (0, 4, 7 or 11), u16 year, month, day, hour, minute, second, u32 microseconds.
fn datetime(r: &mut Reader<'_>, code: TypeCode) -> Result<Value, Malformed> {
    let length = usize::from(r.u8()?);
    let mut r = Reader::new(r.bytes(length)?);
    let mut v = DateTime::default();
    if length >= 4 {
        v.date = Date { year: r.u16()?, month: r.u8()?, day: r.u8()? };
    }
    if length >= 7 {
        (v.hour, v.minute, v.second) = (r.u8()?, r.u8()?, r.u8()?);
    }
    if length >= 11 {
        v.micros = r.u32()?;
    }
    let in_range = v.date.year <= 9999
        && v.date.month <= 12
        && v.date.day <= 31
        && v.hour < 24
        && v.minute < 60
        && v.second < 60
        && v.micros < 1_000_000;
    if !in_range {
        // Out-of-range fields give the zero date, as in MariaDB.
        v = DateTime::default();
    }
    Ok(match code {
        TypeCode::Date | TypeCode::NewDate => Value::Date(v.date),
        _ => Value::DateTime(v),
    })
}

/// u8 length (0, 8 or 12), u8 negative, u32 days, hour, minute, second, u32 microseconds.
fn time(r: &mut Reader<'_>) -> Result<Value, Malformed> {
    let length = usize::from(r.u8()?);
    let mut r = Reader::new(r.bytes(length)?);
    if length < 8 {
        return Ok(Value::Time(Time { micros: 0 }));
    }
    let negative = r.u8()? != 0;
    let days = i64::from(r.u32()?);
    let (hours, minutes, seconds) = (i64::from(r.u8()?), i64::from(r.u8()?), i64::from(r.u8()?));
    let micros = if length >= 12 { i64::from(r.u32()?) } else { 0 };
    // Limited before the multiplication; more days exceed the range of TIME anyway.
    let hours = days.min(100) * 24 + hours;
    let total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
    let total = match hours {
        // The fraction is kept.
        839.. => Time::MAX.micros / 1_000_000 * 1_000_000 + micros.min(999_999),
        // As for dates.
        _ if minutes > 59 || seconds > 59 || micros > 999_999 => 0,
        _ => total,
    };
    Ok(Value::Time(Time { micros: if negative { -total } else { total } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: ParamText = ParamText { charset: Charset::Utf8mb4, collation: Collation::UTF8MB4_GENERAL_CI };

    #[test]
    fn values_of_all_shapes_are_read_and_types_are_remembered() {
        let mut params = StatementParams::new(5);
        let first = b"\x10\x01\x08\x00\x01\x80\xfd\x00\x0c\x00\x06\x00\
            \xff\xff\xff\xff\xff\xff\xff\xff\xff\x02hi\x07\xea\x07\x01\x02\x03\x04\x05";
        let got = params.decode(first, TEXT).expect("well-formed");
        let date = Date { year: 2026, month: 1, day: 2 };
        let datetime = DateTime { date, hour: 3, minute: 4, second: 5, micros: 0 };
        let expected =
            [Value::Int(-1), Value::UInt(255), Value::text("hi"), Value::DateTime(datetime), Value::Null];
        assert_eq!(got, expected);
        let second = b"\x1b\x00\x01x";
        let got = params.decode(second, TEXT).expect("types are known");
        assert_eq!(got, [Value::Null, Value::Null, Value::text("x"), Value::Null, Value::Null]);
        assert_eq!(params.decode(b"\x1b", TEXT), Err(Malformed));
    }

    #[test]
    fn long_data_is_bounded_and_used_once() {
        let mut params = StatementParams::new(1);
        params.add_long_data(0, b"ab", 4, None);
        params.add_long_data(0, b"cd", 4, None);
        assert_eq!(params.take_refusal(), None);
        let got = params.decode(b"\x00\x01\xfc\x00", TEXT).expect("well-formed");
        assert_eq!(got, [Value::binary(*b"abcd")]);
        assert_eq!(params.decode(b"\x00\x00", TEXT), Err(Malformed), "the pieces are gone");
        params.add_long_data(0, b"abcd", 4, None);
        params.add_long_data(0, b"e", 4, None);
        assert_eq!(params.take_refusal().expect("too long").code, ErrorCode::UnknownError);
        assert_eq!(params.take_refusal(), None);
        assert_eq!(params.decode(b"\x00\x00", TEXT), Err(Malformed), "a part is not taken for the whole");
        params.add_long_data(1, b"e", 4, None);
        assert_eq!(params.take_refusal().expect("no such one").code, ErrorCode::WrongArguments);
    }

    #[test]
    fn long_data_is_charged_until_it_is_used_up_or_forgotten() {
        let memory = Budget::of_session(&Budget::of_server());
        memory.set_limit(3_000_000);
        let piece = vec![b'x'; 1_000_000];
        let mut params = StatementParams::new(2);
        params.add_long_data(0, &piece, 1 << 30, Some(&memory));
        params.add_long_data(1, &piece, 1 << 30, Some(&memory));
        assert!(memory.used() >= 2_000_000);
        let values = params.decode(b"\x00\x01\xfc\x00\xfc\x00", TEXT).expect("well-formed");
        assert!(memory.used() >= 2_000_000, "the values hold it");
        drop(values);
        params.reset();
        assert_eq!(memory.used(), 0);
        for _ in 0..4 {
            params.add_long_data(0, &piece, 1 << 30, Some(&memory));
        }
        assert_eq!(memory.used(), 0, "what is refused is not kept");
        assert_eq!(params.take_refusal().expect("too much").code, ErrorCode::OptionPreventsStatement);
        params.add_long_data(0, &piece, 1 << 30, Some(&memory));
        drop(params);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn rows_of_a_bulk_execution_are_read_until_one_is_malformed() {
        let mut params = StatementParams::new(2);
        let rows = b"\x01\x00\xfd\x00\x00\x05\x00\x01a\x01\x00\x02bc";
        let got: Vec<_> = params.decode_rows(rows, true, TEXT).expect("well-formed").collect();
        let row = |values: [Value; 2]| Ok(values.map(Parameter::Value).to_vec());
        assert_eq!(got, [row([Value::Int(5), Value::text("a")]), row([Value::Null, Value::text("bc")])]);
        let cut = b"\x00\x05\x00\x01a\x00\x06\x00\x09b";
        let got: Vec<_> = params.decode_rows(cut, false, TEXT).expect("types are known").collect();
        assert_eq!((got.len(), got[1].is_err()), (2, true));
        let got: Vec<_> = params.decode_rows(b"\x02\x03", false, TEXT).expect("types are known").collect();
        assert_eq!(got, [Ok(vec![Parameter::Default, Parameter::Ignore])]);
        let got: Vec<_> = params.decode_rows(b"\x04\x01", false, TEXT).expect("types are known").collect();
        assert_eq!(got[0].as_ref().expect_err("no such mark").code, ErrorCode::WrongArguments);
        for (rows, has_types) in [(&b""[..], false), (b"\x01\x00", true), (b"\x01\x00\xfd\x00", true)] {
            assert!(StatementParams::new(2).decode_rows(rows, has_types, TEXT).is_err());
        }
        assert!(StatementParams::new(0).decode_rows(b"\x00", false, TEXT).is_err());
    }

    #[test]
    fn times_and_broken_text() {
        let mut params = StatementParams::new(1);
        let got =
            params.decode(b"\x00\x01\x0b\x00\x08\x01\x01\0\0\0\x02\x03\x04", TEXT).expect("well-formed");
        assert_eq!(got, [Value::Time(Time { micros: -((26 * 60 + 3) * 60 + 4) * 1_000_000 })]);
        let huge = b"\x00\x01\x0b\x00\x08\x00\xff\xff\xff\xff\xff\xff\xff";
        let greatest = Time { micros: Time::MAX.micros - 999_999 };
        assert_eq!(params.decode(huge, TEXT), Ok(vec![Value::Time(greatest)]));
    }
}
