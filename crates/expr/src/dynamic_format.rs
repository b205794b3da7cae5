//! MariaDB's format of dynamic columns.
//!
//! ```text
//! u8   flags: bits 0 and 1 the width of offsets, bit 2 set if columns have names
//! u16  number of columns
//! u16  bytes of all names, if there are names
//! [entry]  columns by number (ascending), or by name (shorter ones first, then by bytes):
//!          u16 number or start of the name, then offset << 3 (numbers) or << 4 (names) | kind
//! [u8] names
//! [u8] values, each up to the offset of the next
//! ```
//! Offsets have 1 to 4 bytes with numbers and 2 to 5 bytes with names, depending on the size of all values.
//! Integers are little-endian. An empty string has no columns.

use std::borrow::Cow;
use std::cmp::Ordering;

use cohort_types::{Interrupt, SqlResult};

use crate::context::EvalContext;

/// An error in reading or writing columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The bytes are not in the format.
    Format,
    /// The format cannot hold this many bytes or names.
    Limit,
    /// A text has an unknown character set.
    Charset,
    /// A name is too long.
    Data,
}

/// Type of a value, in the order of the format's type numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Signed,
    Unsigned,
    Double,
    Text,
    Decimal,
    DateTime,
    Date,
    Time,
    /// Nested columns.
    Pack,
}

const KINDS: [Kind; 9] = [
    Kind::Signed,
    Kind::Unsigned,
    Kind::Double,
    Kind::Text,
    Kind::Decimal,
    Kind::DateTime,
    Kind::Date,
    Kind::Time,
    Kind::Pack,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    Number(u16),
    Text(Cow<'a, [u8]>),
}

impl Name<'_> {
    pub fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Name::Number(number) => Cow::Owned(number.to_string().into_bytes()),
            Name::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl Ord for Name<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Name::Number(a), Name::Number(b)) => a.cmp(b),
            (Name::Text(a), Name::Text(b)) => (a.len(), a).cmp(&(b.len(), b)),
            (Name::Number(_), Name::Text(_)) => Ordering::Less,
            (Name::Text(_), Name::Number(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Converts a name to the kind that the columns have. Returns `None` if none of them can have this name.
pub(crate) fn read_name_of(name: Name<'static>, is_named: bool) -> Option<Name<'static>> {
    match (name, is_named) {
        (Name::Number(number), true) => Some(Name::Text(Cow::Owned(number.to_string().into_bytes()))),
        (Name::Text(text), false) => std::str::from_utf8(&text).ok()?.parse().ok().map(Name::Number),
        (name, _) => Some(name),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub name: Name<'a>,
    pub kind: Kind,
    pub data: Cow<'a, [u8]>,
}

/// Decoded columns, sorted by name.
#[derive(Clone, Debug)]
pub(crate) struct Pack<'a> {
    pub is_named: bool,
    pub entries: Vec<Entry<'a>>,
}

const HAS_NAMES: u8 = 4;
const NAME_BYTES_MAX: usize = 16_383;

/// Field sizes of the format with names or numbers.
struct Layout {
    kind_bits: u32,
    /// Bytes of the narrowest offset.
    width_min: usize,
    header: usize,
}

fn layout(is_named: bool) -> Layout {
    match is_named {
        true => Layout { kind_bits: 4, width_min: 2, header: 5 },
        false => Layout { kind_bits: 3, width_min: 1, header: 3 },
    }
}

impl Pack<'_> {
    /// Converts numbers to names.
    pub fn rename(&mut self, is_named: bool) {
        if !is_named || self.is_named {
            return;
        }
        self.is_named = true;
        for entry in &mut self.entries {
            entry.name = Name::Text(Cow::Owned(entry.name.text().into_owned()));
        }
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
    }

    pub fn find(&self, name: &Name<'_>) -> Option<&Entry<'_>> {
        let at = self.entries.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
        Some(&self.entries[at])
    }

    /// Encodes the columns.
    pub fn written(&self) -> Result<Vec<u8>, Damage> {
        let layout = layout(self.is_named);
        let count = u16::try_from(self.entries.len()).map_err(|_| Damage::Limit)?;
        let data: usize = self.entries.iter().map(|entry| entry.data.len()).sum();
        let widths = layout.width_min..layout.width_min + 4;
        // The offset with all bits set is reserved.
        let fits = |width: &usize| (data as u64) < (1 << (8 * *width as u32 - layout.kind_bits)) - 1;
        let width = widths.clone().find(fits).ok_or(Damage::Limit)?;
        let mut out = vec![(width - layout.width_min) as u8];
        out.extend_from_slice(&count.to_le_bytes());
        let mut names = Vec::new();
        let mut entries = Vec::new();
        let mut offset = 0;
        for entry in &self.entries {
            let start = match &entry.name {
                Name::Number(number) => *number,
                Name::Text(text) if text.len() > NAME_BYTES_MAX => return Err(Damage::Data),
                Name::Text(text) => {
                    let start = u16::try_from(names.len()).map_err(|_| Damage::Limit)?;
                    names.extend_from_slice(text);
                    start
                }
            };
            entries.extend_from_slice(&start.to_le_bytes());
            let code = (offset << layout.kind_bits) | entry.kind as u64;
            entries.extend_from_slice(&code.to_le_bytes()[..width]);
            offset += entry.data.len() as u64;
        }
        if self.is_named {
            out[0] |= HAS_NAMES;
            let bytes = u16::try_from(names.len()).map_err(|_| Damage::Limit)?;
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        out.extend_from_slice(&entries);
        out.extend_from_slice(&names);
        self.entries.iter().for_each(|entry| out.extend_from_slice(&entry.data));
        Ok(out)
    }
}

/// Decodes the columns in `bytes`, but not their values.
pub(crate) fn unpacked<'b>(bytes: &'b [u8], ctx: &EvalContext<'_>) -> SqlResult<Pack<'b>> {
    ctx.steps((bytes.len() / 256) as u32)?;
    Ok(read(bytes)?)
}

fn read(bytes: &[u8]) -> Result<Pack<'_>, Damage> {
    let Some(flags) = bytes.first() else { return Ok(Pack { is_named: false, entries: Vec::new() }) };
    let is_named = flags & HAS_NAMES != 0;
    if *flags > HAS_NAMES | 3 {
        return Err(Damage::Format);
    }
    let layout = layout(is_named);
    let width = layout.width_min + usize::from(flags & 3);
    let (header, rest) = bytes.split_at_checked(layout.header).ok_or(Damage::Format)?;
    let number = |at: &[u8]| usize::from(u16::from_le_bytes([at[0], at[1]]));
    let count = number(&header[1..]);
    let (entries, rest) = rest.split_at_checked(count * (2 + width)).ok_or(Damage::Format)?;
    let name_bytes = if is_named { number(&header[3..]) } else { 0 };
    let (names, data) = rest.split_at_checked(name_bytes).ok_or(Damage::Format)?;
    // Number or name start, kind and offset of each entry.
    let split: Vec<(usize, u64, usize)> = entries
        .chunks_exact(2 + width)
        .map(|entry| {
            let mut code = [0; 8];
            code[..width].copy_from_slice(&entry[2..]);
            let code = u64::from_le_bytes(code);
            (number(entry), code & ((1 << layout.kind_bits) - 1), (code >> layout.kind_bits) as usize)
        })
        .collect();
    let mut found = Vec::with_capacity(count);
    for (n, &(own, kind, offset)) in split.iter().enumerate() {
        let next = split.get(n + 1);
        let kind = *KINDS.get(kind as usize).ok_or(Damage::Format)?;
        let end = next.map_or(data.len(), |next| next.2);
        let data = data.get(offset..end).ok_or(Damage::Format)?;
        let name = match is_named {
            false => Name::Number(own as u16),
            true => {
                let end = next.map_or(names.len(), |next| next.0);
                Name::Text(Cow::Borrowed(names.get(own..end).ok_or(Damage::Format)?))
            }
        };
        found.push(Entry { name, kind, data: Cow::Borrowed(data) });
    }
    Ok(Pack { is_named, entries: found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &'static str) -> Name<'static> {
        Name::Text(Cow::Borrowed(name.as_bytes()))
    }

    #[test]
    fn writes_are_read_back() {
        let entry = |name, data: Vec<u8>| Entry { name, kind: Kind::Text, data: Cow::Owned(data) };
        for size in [0, 1, 29, 30, 31, 4_093, 4_094, 4_095, 9_000, 1 << 21] {
            for is_named in [false, true] {
                let names =
                    if is_named { [text("b"), text("aa")] } else { [Name::Number(0), Name::Number(65_535)] };
                let [first, second] = names;
                let pack = Pack {
                    is_named,
                    entries: vec![entry(first, vec![7; size]), entry(second, vec![1, 2, 3])],
                };
                let bytes = pack.written().expect("it fits");
                let again = read(&bytes).expect("it is sound");
                assert_eq!(again.written().expect("it fits"), bytes);
                assert_eq!(again.entries[0].data.len(), size);
                assert_eq!(&again.entries[1].data[..], [1, 2, 3]);
            }
        }
    }

    #[test]
    fn no_bytes_are_read_beyond_their_end() {
        let pack = Pack {
            is_named: true,
            entries: vec![
                Entry { name: text("a"), kind: Kind::Signed, data: Cow::Borrowed(&[2]) },
                Entry { name: text("bb"), kind: Kind::Pack, data: Cow::Borrowed(&[4, 0, 0, 0, 0]) },
            ],
        };
        let bytes = pack.written().expect("it fits");
        for at in 0..bytes.len() {
            // Must not panic; any result is acceptable.
            drop(read(&bytes[..at]));
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                drop(read(&flipped));
            }
        }
        assert!(matches!(read(&bytes[..8]), Err(Damage::Format)));
    }

    #[test]
    fn names_have_room_for_their_starts() {
        let names: Vec<String> = (0..5).map(|n| n.to_string().repeat(16_000)).collect();
        let entry = |name: &String| Entry {
            name: Name::Text(Cow::Owned(name.clone().into_bytes())),
            kind: Kind::Signed,
            data: Cow::Borrowed(&[][..]),
        };
        let pack =
            |count: usize| Pack { is_named: true, entries: names[..count].iter().map(entry).collect() };
        assert!(pack(4).written().is_ok());
        assert_eq!(pack(5).written(), Err(Damage::Limit));
    }
}
