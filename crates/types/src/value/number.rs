//! Formatting and parsing of numbers, with exactly MariaDB's digits.

/// Appends an integer.
pub(crate) fn write_u64(v: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = v;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends a signed integer.
pub(crate) fn write_i64(v: i64, out: &mut Vec<u8>) {
    if v < 0 {
        out.push(b'-');
    }
    write_u64(v.unsigned_abs(), out);
}

/// Appends a number, padded with zeros to at least `width` digits.
pub(crate) fn write_padded(v: u32, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    write_u64(v.into(), out);
    let digits = out.len() - start;
    if digits < width {
        out.resize(start + width, b'0');
        out.copy_within(start..start + digits, start + width - digits);
        out[start..start + width - digits].fill(b'0');
    }
}

/// A stack buffer for the standard library's formatting.
struct Buffer {
    bytes: [u8; 40],
    len: usize,
}

impl std::fmt::Write for Buffer {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let free = self.bytes.get_mut(self.len..self.len + s.len()).ok_or(std::fmt::Error)?;
        free.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

/// Number of significant digits of FLOAT.
const FLOAT_DIGITS: usize = 6;

/// Appends a double with the fewest digits that distinguish it from its neighbours.
pub(crate) fn write_f64(v: f64, out: &mut Vec<u8>) {
    write_scientific(format_args!("{v:e}"), out);
}

/// Appends a float with at most six digits.
pub(crate) fn write_f32(v: f32, out: &mut Vec<u8>) {
    write_scientific(format_args!("{:.*e}", FLOAT_DIGITS - 1, f64::from(v)), out);
}

/// Rewrites `-1.25e-3` as my_gcvt does: plain notation if the point is within 15 digits of the first digit on
/// either side, else exponent notation.
fn write_scientific(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    let mut buffer = Buffer { bytes: [0; 40], len: 0 };
    std::fmt::write(&mut buffer, text).expect("a double in exponent notation takes at most 25 bytes");
    let mut rest = &buffer.bytes[..buffer.len];
    // Infinities and NaN have no exponent. No expression returns them, but row events of other servers may
    // contain them. my_gcvt also writes 0.
    let Some(e) = rest.iter().position(|&b| b == b'e') else { return out.push(b'0') };
    let exponent = std::str::from_utf8(&rest[e + 1..]).ok().and_then(|t| t.parse::<i32>().ok());
    // Point position relative to the first digit: 0.1e-14 has -14.
    let point = exponent.expect("the exponent is a number") + 1;
    let negative = rest[0] == b'-';
    rest = &rest[usize::from(negative)..e];
    let mut digits = [0u8; 20];
    let mut len = 0;
    for &b in rest.iter().filter(|&&b| b != b'.') {
        digits[len] = b;
        len += 1;
    }
    while len > 1 && digits[len - 1] == b'0' {
        len -= 1;
    }
    let digits = &digits[..len];
    if digits == b"0" {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    match point {
        -14..=0 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
            out.extend_from_slice(digits);
        }
        // Sixteen digits before the point stay in plain notation if further digits follow.
        _ if (1..=15).contains(&point) || (point == 16 && len > 16) => {
            let point = point as usize;
            out.extend_from_slice(&digits[..point.min(len)]);
            if point < len {
                out.push(b'.');
                out.extend_from_slice(&digits[point..]);
            } else {
                out.extend(std::iter::repeat_n(b'0', point - len));
            }
        }
        _ => {
            out.push(digits[0]);
            if len > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            out.push(b'e');
            write_i64(i64::from(point - 1), out);
        }
    }
}

/// Appends a double with a fixed number of digits after the point.
pub(crate) fn write_fixed(v: f64, decimals: u8, out: &mut Vec<u8>) {
    use std::io::Write;
    let start = out.len();
    // Beyond the precision of a double, MariaDB writes zeros.
    if v.abs() >= 1e17 && v.is_finite() {
        write!(out, "{v}").expect("a vector takes all bytes");
        if decimals > 0 {
            out.push(b'.');
            out.extend(std::iter::repeat_n(b'0', usize::from(decimals)));
        }
        return;
    }
    write!(out, "{v}").expect("a vector takes all bytes");
    let fraction = out[start..].iter().position(|b| *b == b'.').map(|point| out.len() - start - point - 1);
    let missing = usize::from(decimals).checked_sub(fraction.unwrap_or(0));
    match missing {
        // Zeros follow the digits that distinguish it from its neighbours.
        Some(zeros) => {
            if fraction.is_none() && decimals > 0 {
                out.push(b'.');
            }
            out.extend(std::iter::repeat_n(b'0', zeros));
        }
        None => {
            out.truncate(start);
            write!(out, "{:.*}", usize::from(decimals), v).expect("a vector takes all bytes");
        }
    }
    if out[start] == b'-' && out[start + 1..].iter().all(|b| matches!(b, b'0' | b'.')) && v == 0.0 {
        out.remove(start);
    }
}

/// Extent of the number in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    /// The whole text, except for surrounding spaces.
    Whole,
    /// A prefix of the text, or the value was clamped.
    Part,
    /// The text does not start with a number; the value is 0.
    None,
}

/// Parses the double at the start of a text. A number that is too large becomes the largest double.
pub(crate) fn parse_f64(text: &[u8]) -> (f64, Numeric) {
    let body = text.trim_ascii_start();
    let digits = |from: usize| body[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(matches!(body.first(), Some(b'-' | b'+')));
    let int = digits(sign);
    let mut end = sign + int;
    let mut fraction = 0;
    if body.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if int + fraction == 0 {
        return (0.0, Numeric::None);
    }
    if matches!(body.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(body.get(end + 1), Some(b'-' | b'+')));
        if signed <= body.len() && digits(signed) > 0 {
            end = signed + digits(signed);
        }
    }
    let number: f64 = std::str::from_utf8(&body[..end]).ok().and_then(|t| t.parse().ok()).unwrap_or(0.0);
    let trailing = !body[end..].trim_ascii_start().is_empty();
    if number.is_infinite() {
        return (f64::MAX.copysign(number), Numeric::Part);
    }
    (number, if trailing { Numeric::Part } else { Numeric::Whole })
}

/// Parses the integer at the start of a text, digits only, saturated to the range of both 64-bit types.
pub(crate) fn parse_int(text: &[u8]) -> (i128, Numeric) {
    let body = text.trim_ascii_start();
    let negative = body.first() == Some(&b'-');
    let sign = usize::from(matches!(body.first(), Some(b'-' | b'+')));
    let len = body[sign..].iter().take_while(|b| b.is_ascii_digit()).count();
    if len == 0 {
        return (0, Numeric::None);
    }
    let digits = &body[sign..sign + len];
    let magnitude = digits.iter().fold(0i128, |v, b| (v * 10 + i128::from(b - b'0')).min(1 << 70));
    let value = if negative { -magnitude } else { magnitude };
    let clamped = value.clamp(i64::MIN.into(), u64::MAX.into());
    let whole = body[sign + len..].trim_ascii_start().is_empty() && clamped == value;
    (clamped, if whole { Numeric::Whole } else { Numeric::Part })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn doubles_print_as_mariadb_prints_them() {
        for (v, printed) in [
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1.2345678901234568e17, "1.2345678901234568e17"),
            (1e-5, "0.00001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.5e-16, "1.5e-16"),
            (-1.25e300, "-1.25e300"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (-0.0, "0"),
            (123456789.12345679, "123456789.12345679"),
            (1.23456789e-15, "0.00000000000000123456789"),
        ] {
            assert_eq!(text(|o| write_f64(v, o)), printed);
        }
        for (v, printed) in [
            (16777216.0, "16777200"),
            (1.1, "1.1"),
            (123456.7, "123457"),
            (1e10, "10000000000"),
            (3.4e38, "3.4e38"),
            (0.00001234567, "0.0000123457"),
            (999999.9, "1000000"),
            (1e15, "1e15"),
            (1e-16, "1e-16"),
        ] {
            assert_eq!(text(|o| write_f32(v, o)), printed);
        }
        assert_eq!(text(|o| write_fixed(1.0005, 3, o)), "1.000");
        assert_eq!(text(|o| write_fixed(2.0015, 3, o)), "2.002");
    }

    #[test]
    fn text_to_numbers() {
        assert_eq!(parse_f64(b" -1.5e2 "), (-150.0, Numeric::Whole));
        assert_eq!(parse_f64(b"1e"), (1.0, Numeric::Part));
        assert_eq!(parse_f64(b"1e400"), (f64::MAX, Numeric::Part));
        assert_eq!(parse_f64(b".5"), (0.5, Numeric::Whole));
        assert_eq!(parse_f64(b"."), (0.0, Numeric::None));
        assert_eq!(parse_f64(b"inf"), (0.0, Numeric::None));
        assert_eq!(parse_int(b"18446744073709551616"), (u64::MAX.into(), Numeric::Part));
        assert_eq!(parse_int(b" -12x"), (-12, Numeric::Part));
        assert_eq!(parse_int(b"7 "), (7, Numeric::Whole));
    }

    #[test]
    fn padding() {
        assert_eq!(text(|o| write_padded(7, 3, o)), "007");
        assert_eq!(text(|o| write_padded(1234, 3, o)), "1234");
    }
}
