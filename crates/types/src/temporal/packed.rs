//! Packed temporals, the encoding in rows, keys and row events. Bytes sort as the values do. All are
//! big-endian except DATE.
//!
//! ```text
//! DATE       3 bytes, little-endian in row events (big-endian in keys): year 15 bits, month 4, day 5
//! TIME       3 bytes: 0x800000 + (hour 10 bits, minute 6, second 6), then the fraction; a negative time is
//!            the two's complement of the whole
//! DATETIME   5 bytes: 1 bit set, year * 13 + month 17 bits, day 5, hour 5, minute 6, second 6, then the
//!            fraction
//! TIMESTAMP  4 bytes: seconds since 1970 UTC, then the fraction
//! fraction   0, 1, 2 or 3 bytes for 0, 1-2, 3-4, 5-6 digits, as hundredths, ten-thousandths, millionths
//! ```

use super::{Date, DateTime, SECOND, TIMESTAMP_MICROS_MAX, Time};

/// Returns the length of a fraction in bytes.
fn fraction_len(decimals: u8) -> usize {
    usize::from(decimals.min(6).div_ceil(2))
}

/// Returns the microseconds of a unit of the stored fraction.
fn fraction_unit(decimals: u8) -> u32 {
    [1_000_000, 10_000, 100, 1][fraction_len(decimals)]
}

/// Returns the length of a TIME in bytes.
pub(crate) fn time_len(decimals: u8) -> usize {
    3 + fraction_len(decimals)
}

/// Returns the length of a DATETIME in bytes.
pub(crate) fn datetime_len(decimals: u8) -> usize {
    5 + fraction_len(decimals)
}

/// Returns the length of a TIMESTAMP in bytes.
pub(crate) fn timestamp_len(decimals: u8) -> usize {
    4 + fraction_len(decimals)
}

fn put_be(v: u64, len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&v.to_be_bytes()[8 - len..]);
}

fn take_be(bytes: &[u8], len: usize) -> Option<u64> {
    Some(bytes.get(..len)?.iter().fold(0, |v, b| v << 8 | u64::from(*b)))
}

/// Splits the bytes into the whole part, of `int_len` bytes, and the microseconds of the fraction after it.
fn split(bytes: &[u8], int_len: usize, decimals: u8) -> Option<(u64, u32)> {
    let whole = take_be(bytes, int_len)?;
    let fraction = take_be(&bytes[int_len..], fraction_len(decimals))? as u32;
    let micros = fraction.checked_mul(fraction_unit(decimals))?;
    (micros < 1_000_000).then_some((whole, micros))
}

/// Appends a date as 3 bytes, big-endian.
pub(crate) fn write_date(date: Date, out: &mut Vec<u8>) {
    put_be(date.to_packed().into(), 3, out);
}

/// Reads a date of 3 bytes, big-endian.
pub(crate) fn read_date(bytes: &[u8]) -> Option<Date> {
    Date::from_packed(take_be(bytes, 3)? as u32)
}

/// Appends a TIME of [`time_len`] bytes.
pub(crate) fn write_time(time: Time, decimals: u8, out: &mut Vec<u8>) {
    let unit = fraction_unit(decimals);
    let len = fraction_len(decimals);
    let whole = u64::from(time.hour()) << 12 | u64::from(time.minute()) << 6 | u64::from(time.second());
    let magnitude = (whole << (8 * len)) as i64 + i64::from(time.microsecond() / unit);
    let offset = 0x80_0000i64 << (8 * len);
    let stored = if time.micros < 0 { offset - magnitude } else { offset + magnitude };
    put_be(stored as u64, 3 + len, out);
}

/// Reads a TIME.
pub(crate) fn read_time(bytes: &[u8], decimals: u8) -> Option<Time> {
    let len = fraction_len(decimals);
    let stored = take_be(bytes, 3 + len)? as i64 - (0x80_0000i64 << (8 * len));
    let magnitude = stored.unsigned_abs();
    let whole = magnitude >> (8 * len);
    let fraction = (magnitude & ((1 << (8 * len)) - 1)) as u32;
    let micros = fraction.checked_mul(fraction_unit(decimals)).filter(|&m| m < 1_000_000)?;
    let (hour, minute, second) = ((whole >> 12) as u32, (whole >> 6 & 63) as u8, (whole & 63) as u8);
    (hour <= 838 && minute < 60 && second < 60)
        .then(|| Time::from_hms(stored < 0, hour, minute, second, micros))
}

/// Appends a DATETIME of [`datetime_len`] bytes.
pub(crate) fn write_datetime(v: &DateTime, decimals: u8, out: &mut Vec<u8>) {
    let months = u64::from(v.date.year) * 13 + u64::from(v.date.month);
    let days = months << 5 | u64::from(v.date.day);
    let time = u64::from(v.hour) << 12 | u64::from(v.minute) << 6 | u64::from(v.second);
    put_be(0x80_0000_0000 + (days << 17 | time), 5, out);
    put_be((v.micros / fraction_unit(decimals)).into(), fraction_len(decimals), out);
}

/// Reads a DATETIME.
pub(crate) fn read_datetime(bytes: &[u8], decimals: u8) -> Option<DateTime> {
    let (whole, micros) = split(bytes, 5, decimals)?;
    let whole = whole.checked_sub(0x80_0000_0000)?;
    let (days, time) = (whole >> 17, whole & 0x1_ffff);
    let months = days >> 5;
    let value = DateTime {
        date: Date::new((months / 13) as u16, (months % 13) as u8, (days & 31) as u8),
        hour: (time >> 12) as u8,
        minute: (time >> 6 & 63) as u8,
        second: (time & 63) as u8,
        micros,
    };
    let good = value.date.year <= 9999 && value.hour < 24 && value.minute < 60 && value.second < 60;
    good.then_some(value)
}

/// Appends a TIMESTAMP of [`timestamp_len`] bytes. `micros` is from 0 to [`TIMESTAMP_MICROS_MAX`].
pub(crate) fn write_timestamp(micros: i64, decimals: u8, out: &mut Vec<u8>) {
    let micros = micros.clamp(0, TIMESTAMP_MICROS_MAX);
    put_be((micros / SECOND) as u64, 4, out);
    put_be((micros % SECOND) as u64 / u64::from(fraction_unit(decimals)), fraction_len(decimals), out);
}

/// Reads a TIMESTAMP.
pub(crate) fn read_timestamp(bytes: &[u8], decimals: u8) -> Option<i64> {
    let (seconds, micros) = split(bytes, 4, decimals)?;
    let value = seconds as i64 * SECOND + i64::from(micros);
    (value <= TIMESTAMP_MICROS_MAX).then_some(value)
}

impl Date {
    /// Returns the date as one number: year*512 + month*32 + day.
    pub fn to_packed(self) -> u32 {
        u32::from(self.year) << 9 | u32::from(self.month) << 5 | u32::from(self.day)
    }

    /// Reverses [`Date::to_packed`]. Returns `None` if a field is out of range.
    pub fn from_packed(v: u32) -> Option<Date> {
        let date = Date::new((v >> 9) as u16, (v >> 5 & 15) as u8, (v & 31) as u8);
        (v >> 9 <= 9999 && date.month <= 12).then_some(date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_times_are_complements() {
        let mut bytes = Vec::new();
        write_time(Time { micros: -1_500_000 }, 2, &mut bytes);
        assert_eq!(bytes, [0x7f, 0xff, 0xfe, 0xce]);
        assert_eq!(read_time(&bytes, 2), Some(Time { micros: -1_500_000 }));
        bytes.clear();
        write_time(Time { micros: -10_000 }, 2, &mut bytes);
        assert_eq!(bytes, [0x7f, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn bytes_that_are_no_temporal_are_refused() {
        assert_eq!(read_time(&[0xff, 0xff, 0xff], 0), None);
        assert_eq!(read_time(&[0x80], 0), None);
        assert_eq!(read_datetime(&[0, 0, 0, 0, 0], 0), None);
        assert_eq!(read_datetime(&[0xff; 8], 6), None);
        assert_eq!(read_timestamp(&[0xff; 4], 0), None);
        assert_eq!(read_timestamp(&[0, 0, 0, 1, 100], 2), None);
        assert_eq!(read_date(&[0xff, 0xff, 0xff]), None);
    }
}
