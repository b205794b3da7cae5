//! Index entries of a row.
//!
//! | index | key | value |
//! |---|---|---|
//! | PRIMARY | columns | row |
//! | hidden row id | u64, big-endian | row |
//! | UNIQUE | columns; if one of them is NULL also the clustered key | clustered key |
//! | UNIQUE over long columns | SHA-256 of the columns; if one of them is NULL also the clustered key | clustered key |
//! | KEY | columns, clustered key | empty |
//! | FULLTEXT | for each word: word, clustered key | empty |

use std::borrow::Cow;

use cohort_base::whole_chars;
use cohort_catalog::{EntryValue, IndexKind, ROWS, RowKey};
use cohort_types::{
    Collation, ErrorCode, KeyError, KeyPart, SqlError, SqlResult, TimeZone, TypeKind, Value, full_text,
};
use sha2::{Digest, Sha256};

use crate::open_table::{OpenIndex, OpenTable};

impl OpenTable {
    /// Encodes the clustered key of a row, for a table with a primary key.
    #[inline]
    pub fn primary_key(&self, row: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
        debug_assert_eq!(self.rows.key, RowKey::Primary);
        out.clear();
        self.indexes[ROWS].encode_columns(row, out).map_err(|e| self.key_error(ROWS, e))
    }

    /// Returns the columns of the clustered key and their codecs.
    #[inline]
    pub fn row_parts(&self) -> &[(usize, KeyPart)] {
        &self.indexes[ROWS].parts
    }

    /// Encodes the key of a row's entry in a secondary or unique index.
    #[inline]
    pub fn index_key(
        &self,
        index: usize,
        row: &[Value],
        clustered_key: &[u8],
        out: &mut Vec<u8>,
    ) -> SqlResult<()> {
        out.clear();
        let open = &self.indexes[index];
        open.encode_columns(row, out).map_err(|e| self.key_error(index, e))?;
        if open.kind.value() == EntryValue::Nothing || open.has_null(row) {
            out.extend_from_slice(clustered_key);
        }
        Ok(())
    }

    /// Returns the keys of a row's entries in any index but the clustered one. `goes_on` as in
    /// [`OpenTable::sorted_keys`].
    pub fn entry_keys(
        &self,
        index: usize,
        row: &[Value],
        clustered_key: &[u8],
        goes_on: &mut dyn FnMut(usize) -> SqlResult<()>,
    ) -> SqlResult<impl Iterator<Item = Vec<u8>> + use<>> {
        let (mut one, mut many) = (None, Vec::new());
        if self.multiple_entry_indexes().contains(&index) {
            many = self.sorted_keys(index, row, clustered_key, goes_on)?;
        } else {
            self.index_key(index, row, clustered_key, one.insert(Vec::new()))?;
        }
        Ok(one.into_iter().chain(many))
    }

    /// Returns the keys of a row's entries, in order, in an index with any number of entries per row. Calls
    /// `goes_on` now and then with the bytes so far.
    pub fn sorted_keys(
        &self,
        index: usize,
        row: &[Value],
        clustered_key: &[u8],
        goes_on: &mut dyn FnMut(usize) -> SqlResult<()>,
    ) -> SqlResult<Vec<Vec<u8>>> {
        let (mut keys, mut room, mut bytes, mut count) = (Vec::new(), WORDS_ROOM, 0, 0_usize);
        let bytes_of = |key: &Vec<u8>| key.capacity() + clustered_key.len() + size_of::<Vec<u8>>();
        let Some(words) = &self.indexes[index].words else { return Ok(keys) };
        for column in &words.columns {
            let Value::Str(text) = &row[*column] else { continue };
            let text = String::from_utf8_lossy(&text.bytes);
            for word in full_text::raw_words(&text).filter(|word| full_text::is_indexed(word)) {
                let key = full_text::word_key(word, words.part.ty.collation);
                bytes += bytes_of(&key);
                keys.push(key);
                count += 1;
                if count % WORDS_ROOM == 0 {
                    goes_on(bytes)?;
                }
                // A long text repeats the same words.
                if keys.len() == room {
                    sort_out(&mut keys);
                    room = WORDS_ROOM.max(2 * keys.len());
                    bytes = keys.iter().map(bytes_of).sum();
                }
            }
        }
        sort_out(&mut keys);
        keys.iter_mut().for_each(|key| key.extend_from_slice(clustered_key));
        Ok(keys)
    }

    /// Returns the value of an index entry.
    #[inline]
    pub fn index_value<'k>(&self, index: usize, clustered_key: &'k [u8]) -> &'k [u8] {
        match self.indexes[index].kind.value() {
            EntryValue::RowKey => clustered_key,
            EntryValue::Row | EntryValue::Nothing => &[],
        }
    }

    /// Returns the clustered key in an entry of any index.
    #[inline]
    pub fn clustered_key_of<'e>(&self, index: usize, key: &'e [u8], value: &'e [u8]) -> SqlResult<&'e [u8]> {
        let open = &self.indexes[index];
        match open.kind.value() {
            EntryValue::Row => Ok(key),
            EntryValue::RowKey => Ok(value),
            EntryValue::Nothing => open.after_columns(key).map_err(|e| self.key_error(index, e)),
        }
    }

    /// Returns true if an update of these columns changes the index's entries.
    #[inline]
    pub fn index_has_any(&self, index: usize, columns: &[usize]) -> bool {
        let open = &self.indexes[index];
        match &open.words {
            Some(words) => words.columns.iter().any(|column| columns.contains(column)),
            None => open.parts.iter().any(|(column, _)| columns.contains(column)),
        }
    }

    /// Returns true if no unique index follows this one, so that a row with a duplicate here has no unchecked
    /// duplicate elsewhere.
    pub fn is_last_unique(&self, index: usize) -> bool {
        self.indexes[index + 1..].iter().all(|later| !later.kind.is_unique())
    }

    /// Returns error 1062 with the key's values as `a-1`, TIMESTAMPs in the session's time zone.
    pub fn duplicate_error(&self, index: usize, row: &[Value], zone: &dyn TimeZone) -> SqlError {
        let (text, name) = (self.key_text(index, row, zone), &self.table.indexes[index].name);
        SqlError::duplicate_key_text(&text, name)
    }

    /// Returns the key's values as error messages show them.
    pub fn key_text(&self, index: usize, row: &[Value], zone: &dyn TimeZone) -> String {
        let mut text = String::new();
        for (n, (column, part)) in self.indexes[index].parts.iter().enumerate() {
            if n > 0 {
                text.push('-');
            }
            append_part(&mut text, part, &row[*column], zone);
        }
        if text.len() > DUPLICATE_BYTES_MAX {
            text.truncate(whole_chars(&text, DUPLICATE_BYTES_MAX - DOTS.len()).len());
            text.push_str(DOTS);
        }
        text
    }

    /// Returns the encoding of an index part. If the index has another column at this place, returns the
    /// encoding of `column`.
    pub fn key_part(&self, index: usize, place: usize, column: usize) -> Cow<'_, KeyPart> {
        match self.indexes[index].parts.get(place) {
            Some((at, part)) if *at == column => Cow::Borrowed(part),
            _ => {
                let column = &self.table.columns[column];
                Cow::Owned(KeyPart { ty: column.ty.clone(), prefix: None, nullable: column.nullable })
            }
        }
    }

    pub fn key_error(&self, index: usize, error: KeyError) -> SqlError {
        let name = &self.table.name;
        SqlError::new(
            ErrorCode::UnknownError,
            format!("index {} of {}.{}: {error:?}", self.table.indexes[index].name, name.schema, name.table),
        )
    }
}

impl OpenIndex {
    /// Appends the encoded key columns, or their hash.
    #[inline]
    pub fn encode_columns(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), KeyError> {
        match self.kind {
            IndexKind::UniqueHash => self.hash_columns(row, out),
            _ => self.parts.iter().try_for_each(|(column, part)| part.encode(&row[*column], out)),
        }
    }

    /// Appends the hash of the encoded key columns. Columns that compare as equal have equal encodings.
    fn hash_columns(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), KeyError> {
        let mut hash = Sha256::new();
        for (column, part) in &self.parts {
            // The parts are long, so each buffer is freed before the next part.
            let mut bytes = Vec::new();
            part.encode(&row[*column], &mut bytes)?;
            hash.update(&bytes);
        }
        out.extend_from_slice(&hash.finalize());
        Ok(())
    }

    /// Returns the rest of an entry's key after the columns, or after the word.
    #[inline]
    fn after_columns<'e>(&self, key: &'e [u8]) -> Result<&'e [u8], KeyError> {
        let mut rest = key;
        match &self.words {
            Some(words) => words.part.skip(&mut rest)?,
            None => self.parts.iter().try_for_each(|(_, part)| part.skip(&mut rest))?,
        }
        Ok(rest)
    }

    /// Returns true if at most one row can have the row's values in the key columns.
    #[inline]
    pub fn is_unique_for(&self, row: &[Value]) -> bool {
        self.kind.is_unique() && !self.has_null(row)
    }

    /// Returns true if a key column is NULL: such rows never collide in a unique index.
    #[inline]
    pub fn has_null(&self, row: &[Value]) -> bool {
        self.parts.iter().any(|(column, part)| part.nullable && row[*column].is_null())
    }
}

/// Number of words collected before duplicates are removed.
const WORDS_ROOM: usize = 1 << 14;

fn sort_out(keys: &mut Vec<Vec<u8>>) {
    keys.sort_unstable();
    keys.dedup();
}

/// Maximum length of a key in error 1062, in bytes.
const DUPLICATE_BYTES_MAX: usize = 64;
const DOTS: &str = "...";

fn append_part(text: &mut String, part: &KeyPart, value: &Value, zone: &dyn TimeZone) {
    let mut bytes = Vec::new();
    let mut is_text = true;
    match value {
        Value::Null => bytes.extend_from_slice(b"NULL"),
        Value::Timestamp(micros) => {
            Value::DateTime(zone.to_local(*micros)).write_text(part.ty.text_decimals(), &mut bytes);
        }
        Value::Bit { bits, .. } => {
            is_text = false;
            let len = part.ty.length.div_ceil(8).clamp(1, 8) as usize;
            bytes.extend_from_slice(&bits.to_be_bytes()[8 - len..]);
        }
        value => {
            is_text = part.ty.collation != Collation::BINARY || !matches!(value, Value::Str(_));
            part.ty.write_text(value, &mut bytes);
            if part.ty.kind == TypeKind::Binary {
                let zeros = bytes.iter().rev().take_while(|&&b| b == 0).count();
                bytes.truncate(bytes.len() - zeros);
            }
        }
    }
    let prefix = part.prefix.map_or(usize::MAX, |n| n as usize);
    if is_text {
        for c in String::from_utf8_lossy(&bytes).chars().take(prefix) {
            if c == '\0' { text.push_str("\\0000") } else { text.push(c) }
        }
        return;
    }
    for &byte in bytes.iter().take(prefix) {
        match byte {
            0x20..=0x7e => text.push(byte.into()),
            _ => text.push_str(&format!("\\x{byte:02X}")),
        }
    }
}
