//! UUID, INET6 and INET4: fixed-length binary values, each type with its own text format.
//!
//! # Order
//! Addresses sort by their bytes. UUIDs of the versions 1 to 5 begin with the fastest changing part of their
//! timestamp, so they sort by their parts from the last to the first: UUIDs of one machine are adjacent.
//! Later versions begin with the slowest changing part and sort by their bytes. Keys store [`Fixed::order`];
//! rows and row events store the bytes in the order of the text.

use std::cmp::Ordering;

use crate::SqlError;

/// A type of fixed-length binary values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FixedKind {
    Uuid,
    Inet6,
    Inet4,
}

/// A UUID, INET6 or INET4 value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fixed {
    pub kind: FixedKind,
    /// The bytes in the order of the text, padded with zeros.
    bytes: [u8; 16],
}

/// Length of [`Fixed::order`].
const ORDER_BYTES: usize = 17;

/// Byte ranges of the hyphen-separated parts of a UUID.
const PARTS: [std::ops::Range<usize>; 5] = [0..4, 4..6, 6..8, 8..10, 10..16];

impl FixedKind {
    /// Returns the name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            FixedKind::Uuid => "uuid",
            FixedKind::Inet6 => "inet6",
            FixedKind::Inet4 => "inet4",
        }
    }

    /// Returns the length of a value in bytes.
    pub fn byte_len(self) -> usize {
        match self {
            FixedKind::Uuid | FixedKind::Inet6 => 16,
            FixedKind::Inet4 => 4,
        }
    }

    /// Returns the length of the longest text in characters.
    pub fn text_len(self) -> u32 {
        match self {
            FixedKind::Uuid => 36,
            FixedKind::Inet6 => 39,
            FixedKind::Inet4 => 15,
        }
    }

    /// Returns the value with all bytes zero.
    pub fn zero(self) -> Fixed {
        Fixed { kind: self, bytes: [0; 16] }
    }

    /// Parses a text. Returns `None` if it is not a value of this kind.
    pub fn parse(self, text: &[u8]) -> Option<Fixed> {
        let mut bytes = [0; 16];
        match self {
            FixedKind::Uuid => bytes = parse_uuid(text)?,
            FixedKind::Inet6 => bytes = parse_inet6(text)?,
            FixedKind::Inet4 => bytes[..4].copy_from_slice(&parse_inet4(text)?),
        }
        Some(Fixed { kind: self, bytes })
    }

    /// Returns the value with these bytes, or `None` if their number is wrong.
    pub fn of_bytes(self, from: &[u8]) -> Option<Fixed> {
        let mut bytes = [0; 16];
        bytes.get_mut(..from.len()).filter(|_| from.len() == self.byte_len())?.copy_from_slice(from);
        Some(Fixed { kind: self, bytes })
    }

    /// Returns error 1292: "Incorrect uuid value: 'x'".
    pub fn incorrect(self, text: &[u8]) -> SqlError {
        SqlError::incorrect_value(self.name(), text)
    }
}

/// Parses a UUID: hexadecimal digits with or without hyphens.
fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = 0;
    for &c in text {
        if c == b'-' {
            if digits == 0 || digits == 32 {
                return None;
            }
            continue;
        }
        let digit = char::from(c).to_digit(16)? as u8;
        let byte = bytes.get_mut(digits / 2)?;
        *byte = *byte << 4 | digit;
        digits += 1;
    }
    (digits == 32).then_some(bytes)
}

/// Parses four decimal numbers of at most three digits each, separated by dots.
pub fn parse_inet4(text: &[u8]) -> Option<[u8; 4]> {
    let mut parts = text.split(|b| *b == b'.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let digits = parts.next()?;
        let fits = (1..=3).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        *octet = std::str::from_utf8(digits).ok().filter(|_| fits)?.parse().ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// Parses groups of hexadecimal digits. The last two groups may be written as an IPv4 address.
pub fn parse_inet6(text: &[u8]) -> Option<[u8; 16]> {
    let address: std::net::Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(address.octets())
}

/// Appends an IPv4 address as text.
pub fn write_inet4(octets: &[u8], out: &mut Vec<u8>) {
    for (n, octet) in octets.iter().enumerate() {
        out.extend_from_slice(if n == 0 { b"" } else { b"." });
        out.extend_from_slice(octet.to_string().as_bytes());
    }
}

/// Appends an IPv6 address as text. An address that embeds an IPv4 address is written with it, except for
/// `::`, `::1` and others with zeros in bytes 12 and 13.
pub fn write_inet6(octets: &[u8; 16], out: &mut Vec<u8>) {
    if octets[..12] == [0; 12] && octets[12..14] != [0, 0] {
        out.extend_from_slice(b"::");
        return write_inet4(&octets[12..], out);
    }
    if octets[..10] == [0; 10] && octets[10..12] == [0xff, 0xff] {
        out.extend_from_slice(b"::ffff:");
        return write_inet4(&octets[12..], out);
    }
    out.extend_from_slice(groups_text(octets).as_bytes());
}

/// Formats groups of hexadecimal digits. The longest run of zeros, even of a single group, becomes `::`.
fn groups_text(octets: &[u8; 16]) -> String {
    let groups: Vec<u16> =
        octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let run = |start: usize| groups[start..].iter().take_while(|group| **group == 0).count();
    let (mut at, mut length) = (0, 0);
    for start in 0..groups.len() {
        if run(start) > length {
            (at, length) = (start, run(start));
        }
    }
    let join = |part: &[u16]| part.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if length == 0 {
        return join(&groups);
    }
    format!("{}::{}", join(&groups[..at]), join(&groups[at + length..]))
}

impl Fixed {
    /// Returns the kind.
    pub fn kind(&self) -> FixedKind {
        self.kind
    }

    /// Returns the bytes in the order of the text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.byte_len()]
    }

    /// Appends the text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        match self.kind {
            FixedKind::Uuid => {
                for (n, part) in PARTS.into_iter().enumerate() {
                    out.extend_from_slice(if n == 0 { b"" } else { b"-" });
                    for byte in &self.bytes[part] {
                        out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                    }
                }
            }
            FixedKind::Inet6 => write_inet6(&self.bytes, out),
            FixedKind::Inet4 => write_inet4(&self.bytes[..4], out),
        }
    }

    /// Returns a number that is less than or equal to the number of any larger value of the kind.
    pub fn front(&self) -> u64 {
        self.order().iter().take(8).fold(0, |front, byte| front << 8 | u64::from(*byte))
    }

    /// Returns whether it is a UUID that sorts by its parts from the last to the first. As in MariaDB, the
    /// bytes of the version and the variant decide.
    fn is_turned(&self) -> bool {
        let [_, _, _, _, _, _, version, _, variant, ..] = self.bytes;
        self.kind == FixedKind::Uuid && (1..0x60).contains(&version) && variant & 0x80 != 0
    }

    /// Returns bytes that sort as the values do. For a UUID, the last byte records whether the parts were
    /// reversed.
    pub(crate) fn order(&self) -> [u8; ORDER_BYTES] {
        let mut order = [0; ORDER_BYTES];
        order[..16].copy_from_slice(&self.bytes);
        if self.is_turned() {
            let mut at = 0;
            for part in PARTS.into_iter().rev() {
                order[at..at + part.len()].copy_from_slice(&self.bytes[part.clone()]);
                at += part.len();
            }
            order[16] = 1;
        }
        order
    }
}

impl FixedKind {
    /// Returns how many bytes of [`Fixed::order`] the kind uses.
    pub(crate) fn order_len(self) -> usize {
        match self {
            FixedKind::Uuid => ORDER_BYTES,
            FixedKind::Inet6 | FixedKind::Inet4 => self.byte_len(),
        }
    }

    /// Returns the value for bytes made by [`Fixed::order`].
    pub(crate) fn of_order(self, order: &[u8]) -> Option<Fixed> {
        let mut value = self.of_bytes(order.get(..self.byte_len())?)?;
        if self == FixedKind::Uuid && order.get(16) == Some(&1) {
            let mut at = 0;
            for part in PARTS.into_iter().rev() {
                let len = part.len();
                value.bytes[part].copy_from_slice(&order[at..at + len]);
                at += len;
            }
        }
        Some(value)
    }
}

impl Ord for Fixed {
    fn cmp(&self, other: &Fixed) -> Ordering {
        (self.kind as u8).cmp(&(other.kind as u8)).then_with(|| self.order().cmp(&other.order()))
    }
}

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Fixed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Fixed) -> String {
        let mut out = Vec::new();
        value.write_text(&mut out);
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn texts_are_read_and_written() {
        let shown = |kind: FixedKind, from: &str| kind.parse(from.as_bytes()).map(text);
        let id = Some("123e4567-e89b-12d3-a456-426655440000".to_owned());
        for from in [
            "123E4567-e89b-12d3-a456-426655440000",
            "123e4567e89b12d3a456426655440000",
            "12-3e4567-e89b-12d3--a456-42665544000-0",
        ] {
            assert_eq!(shown(FixedKind::Uuid, from), id, "{from}");
        }
        for from in ["-123e4567e89b12d3a456426655440000", "123e4567e89b12d3a456426655440000-", " ", "1", "g"]
        {
            assert_eq!(shown(FixedKind::Uuid, from), None, "{from}");
        }
        for (from, to) in [
            ("::", "::"),
            ("1:0:0:2::", "1:0:0:2::"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("::0.0.1.2", "::102"),
            ("::0.1.0.2", "::0.1.0.2"),
            ("::FFFF:1.2.3.4", "::ffff:1.2.3.4"),
            ("1:2:0:4:5:6:7:8", "1:2::4:5:6:7:8"),
            ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
        ] {
            assert_eq!(shown(FixedKind::Inet6, from).as_deref(), Some(to), "{from}");
        }
        assert_eq!(shown(FixedKind::Inet6, "::00001"), None);
        assert_eq!(shown(FixedKind::Inet4, "01.002.3.255").as_deref(), Some("1.2.3.255"));
        assert_eq!(shown(FixedKind::Inet4, "0001.2.3.4"), None);
    }

    /// The order of MariaDB.
    #[test]
    fn uuids_have_two_orders() {
        let sorted = [
            "00000000-0000-0000-0000-000000000000",
            "018f0203-0405-1607-0809-0a0b0c0d0e0f",
            "018f0203-0405-6607-8809-0a0b0c0d0e0f",
            "018f0203-0405-7607-0809-0a0b0c0d0e0f",
            "018f0203-0405-f607-8809-0a0b0c0d0e0f",
            "018f0203-0405-0607-8809-0a0b0c0d0e0f",
            "018f0203-0405-4607-8809-0a0b0c0d0e0f",
            "123e4567-e89b-12d3-a456-426655440000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ];
        let values = sorted.map(|text| FixedKind::Uuid.parse(text.as_bytes()).expect("a uuid"));
        assert!(values.is_sorted());
        for value in values {
            assert_eq!(FixedKind::Uuid.of_order(&value.order()), Some(value));
        }
    }
}
