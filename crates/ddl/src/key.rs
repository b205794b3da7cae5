//! Key definitions: names, limits, prefixes, order.

use cohort_catalog::{Column, IndexKind, KeyMethod, option_of};
use cohort_plan::same_name;
use cohort_session::StatementContext;
use cohort_sql::ast::{KeyDef, KeyKind};
use cohort_types::{ColumnType, ErrorCode, SqlError, SqlResult, TypeKind};

use super::draft::{DraftColumn, DraftKey, DraftPart, TableDraft};
use super::options::fit_comment;
use super::work::check_key_name;

const KEYS_MAX: u32 = 64;
const KEY_PARTS_MAX: u32 = 32;
const KEY_BYTES_MAX: u64 = 3072;
/// Maximum size of a key part in bytes, in the row formats COMPACT and REDUNDANT.
const SHORT_PART_BYTES_MAX: u64 = 767;

/// Converts a key definition.
pub(super) fn draft(ctx: &StatementContext<'_>, def: &KeyDef) -> SqlResult<DraftKey> {
    let kind = match def.kind {
        KeyKind::Primary => IndexKind::Primary,
        KeyKind::Unique => IndexKind::Unique,
        KeyKind::Plain => IndexKind::Secondary,
        KeyKind::FullText => IndexKind::FullText,
        KeyKind::Spatial => return Err(SqlError::not_supported("SPATIAL indexes")),
    };
    let name = match kind {
        IndexKind::Primary => Some("PRIMARY".to_owned()),
        _ => def.name.clone(),
    };
    if let Some(name) = &name {
        check_key_name(name)?;
        let is_taken = ["PRIMARY", "GEN_CLUST_INDEX"].iter().any(|taken| name.eq_ignore_ascii_case(taken));
        if !kind.is_primary() && is_taken {
            return Err(SqlError::wrong_index_name(name));
        }
    }
    let using = using(def)?;
    let part = |p: &cohort_sql::ast::KeyPart| DraftPart {
        column: p.column.clone(),
        prefix: p.length,
        // Hash keys are unordered.
        descending: p.descending && using != Some(KeyMethod::Hash),
        is_dropped: false,
    };
    if kind.is_primary() && def.options.ignored {
        return Err(SqlError::primary_key_ignored());
    }
    let mut comment = def.options.comment.clone().unwrap_or_default();
    let first = def.parts.first().map(|part| part.column.clone());
    let shown = name.clone().or(first).unwrap_or_default();
    fit_comment(ctx, &mut comment, 1024, ErrorCode::TooLongIndexComment, || format!("index '{shown}'"))?;
    Ok(DraftKey {
        name,
        kind,
        parts: def.parts.iter().map(part).collect(),
        comment,
        ignored: def.options.ignored,
        using,
        generated: def.generated,
        origin: None,
        lost: None,
    })
}

/// Returns the index structure that a key requests. Error 1210 for RTREE, which only spatial keys have.
fn using(def: &KeyDef) -> SqlResult<Option<KeyMethod>> {
    let Some(method) = &def.options.using else { return Ok(None) };
    let known = [KeyMethod::BTree, KeyMethod::Hash].into_iter().find(|known| known.name() == method);
    known.map(Some).ok_or_else(|| SqlError::wrong_arguments("RTREE INDEX"))
}

/// Drops keys that exist only for foreign keys if another key serves as well. Of two equal keys of this kind,
/// the later one is kept.
pub(super) fn drop_superfluous(draft: &mut TableDraft) {
    let TableDraft { columns, keys, .. } = draft;
    let serves = |other: &DraftKey, key: &DraftKey| {
        let same = |(a, b): (&DraftPart, &DraftPart)| same_name(&a.column, &b.column) && a.prefix == b.prefix;
        !other.kind.has_words()
            && !is_hashed(other, columns)
            && other.parts.len() >= key.parts.len()
            && other.parts.iter().zip(&key.parts).all(same)
    };
    let mut n = 0;
    while n < keys.len() {
        let key = &keys[n];
        let replaces = |(at, other): (usize, &DraftKey)| {
            let is_longer = other.parts.len() > key.parts.len();
            at != n && serves(other, key) && (!other.generated || is_longer || at > n)
        };
        match key.generated && keys.iter().enumerate().any(replaces) {
            true => drop(keys.remove(n)),
            false => n += 1,
        }
    }
}

/// Names unnamed keys after their first column: `a`, `a_2`, ...; errors 1068, 1061, 1069.
pub(super) fn name_keys(keys: &mut [DraftKey]) -> SqlResult<()> {
    if keys.len() as u32 > KEYS_MAX {
        return Err(SqlError::too_many_keys(KEYS_MAX));
    }
    if keys.iter().filter(|k| k.kind.is_primary()).count() > 1 {
        return Err(SqlError::multiple_primary_key());
    }
    for n in 0..keys.len() {
        // As in MariaDB, a later key must not have a name that an earlier key was given.
        let before = &keys[..n];
        let taken =
            |name: &str| before.iter().any(|k| k.name.as_deref().is_some_and(|other| same_name(other, name)));
        if keys[n].name.is_none() {
            let column = &keys[n].parts[0].column;
            let numbered = (2..).map(|i| format!("{column}_{i}"));
            let mut candidates = std::iter::once(column.clone()).chain(numbered);
            let is_free = |name: &String| !taken(name) && !name.eq_ignore_ascii_case("PRIMARY");
            keys[n].name = candidates.find(is_free);
        }
    }
    for n in 1..keys.len() {
        let name = keys[n].name.as_deref().expect("named above");
        if keys[..n].iter().any(|k| same_name(k.name.as_deref().expect("named above"), name)) {
            return Err(SqlError::duplicate_key_name(name));
        }
    }
    Ok(())
}

/// Adds note 1831 for new keys that duplicate an earlier one.
fn note_duplicates(ctx: &StatementContext<'_>, keys: &[DraftKey]) {
    let same_part = |(a, b): (&DraftPart, &DraftPart)| {
        same_name(&a.column, &b.column) && a.prefix == b.prefix && a.descending == b.descending
    };
    let same = |key: &DraftKey, other: &DraftKey| {
        key.kind == other.kind
            && key.using == other.using
            && !key.kind.has_words()
            && !other.generated
            && key.parts.len() == other.parts.len()
            && key.parts.iter().zip(&other.parts).all(same_part)
    };
    for (n, key) in keys.iter().enumerate() {
        if key.origin.is_none() && !key.generated && keys[..n].iter().any(|other| same(key, other)) {
            let name = key.name.as_deref().unwrap_or_default();
            let text = format!(
                "Duplicate index `{name}`. This is deprecated and will be disallowed in a future release"
            );
            ctx.eval.note(ErrorCode::WarnDuplicateIndex, text);
        }
    }
}

/// Returns whether a unique key is too long for the values themselves, so that its entries hold hashes of
/// them: it has a whole BLOB or TEXT column, or more bytes than a key may have.
pub(super) fn is_hashed(key: &DraftKey, columns: &[DraftColumn]) -> bool {
    let parts = key.parts.iter().filter_map(|part| {
        let column = columns.iter().find(|c| same_name(&c.column.name, &part.column))?;
        Some((part, &column.column))
    });
    let is_whole = |(part, column): (&DraftPart, &Column)| part.prefix.is_none() && column.ty.kind.is_blob();
    let bytes: u64 = parts.clone().map(|(part, column)| part_bytes(part, column)).sum();
    key.kind == IndexKind::Unique && (bytes > KEY_BYTES_MAX || parts.clone().any(is_whole))
}

/// Returns the kind that the finished table stores a key with.
pub(super) fn stored_kind(key: &DraftKey, columns: &[DraftColumn]) -> IndexKind {
    if is_hashed(key, columns) { IndexKind::UniqueHash } else { key.kind }
}

/// Returns the kind of key that was declared for an index. The columns of the finished draft determine again
/// whether the key is hashed.
pub(super) fn declared_kind(kind: IndexKind) -> IndexKind {
    if kind == IndexKind::UniqueHash { IndexKind::Unique } else { kind }
}

/// Returns whether a row format allows only short key parts.
fn is_short(row_format: Option<&str>) -> bool {
    matches!(row_format, Some("COMPACT" | "REDUNDANT"))
}

/// Checks key parts against the columns, and makes the columns of a primary key NOT NULL.
pub(super) fn check_keys(ctx: &StatementContext<'_>, draft: &mut TableDraft) -> SqlResult<()> {
    let part_max = match is_short(option_of(&draft.options, "ROW_FORMAT")) {
        true => SHORT_PART_BYTES_MAX,
        false => KEY_BYTES_MAX,
    };
    let catalog = ctx.db.catalog();
    let before = catalog.table(&draft.name.schema, &draft.name.table);
    let was_short = before.is_some_and(|before| is_short(option_of(&before.options, "ROW_FORMAT")));
    let TableDraft { columns, keys, .. } = draft;
    for key in keys.iter_mut().filter(|key| is_hashed(key, columns) && key.using != Some(KeyMethod::BTree)) {
        // The kind of the index shows the structure. Hashes have no order.
        key.using = None;
        key.parts.iter_mut().for_each(|part| part.descending = false);
    }
    note_duplicates(ctx, keys);
    for key in keys.iter_mut() {
        if key.parts.len() as u32 > KEY_PARTS_MAX {
            return Err(SqlError::too_many_key_parts(KEY_PARTS_MAX));
        }
        let (mut bytes, mut words) = (0, None);
        for n in 0..key.parts.len() {
            let name = key.parts[n].column.clone();
            let column = columns
                .iter_mut()
                .find(|c| same_name(&c.column.name, &name))
                .ok_or_else(|| SqlError::key_column_missing(&name))?;
            if key.parts[..n].iter().any(|p| same_name(&p.column, &name)) {
                return Err(SqlError::duplicate_column(&name));
            }
            let part = &mut key.parts[n];
            part.column = column.column.name.clone();
            part.prefix = checked_prefix(part, &column.column, key.kind)?;
            if part.prefix.is_none() && column.column.ty.kind.is_blob() && key.kind == IndexKind::Secondary {
                // The prefix in characters equals the maximum length in bytes.
                part.prefix = u32::try_from(column.column.ty.byte_len_max()).ok();
            }
            if key.kind.has_words() {
                let ty = &column.column.ty;
                if column.column.is_virtual() {
                    return Err(SqlError::unsupported_on_generated());
                }
                // MariaDB has no FULLTEXT indexes in character sets with at least two bytes per character.
                let is_wide = ty.collation.charset().mbminlen() > 1;
                if !ty.kind.is_text() || is_wide || *words.get_or_insert(ty.collation) != ty.collation {
                    return Err(SqlError::not_in_full_text(&name));
                }
                continue;
            }
            if key.kind.is_primary() {
                if column.column.generated.is_some() {
                    return Err(SqlError::primary_key_generated());
                }
                column.make_not_null();
            }
            let length = part_bytes(part, &column.column);
            if key.kind == IndexKind::Unique && part.prefix.is_some() && length > u64::from(u16::MAX) {
                return Err(SqlError::key_prefix_too_long(u16::MAX.into()));
            }
            bytes += length;
        }
        let is_hashed = is_hashed(key, columns);
        let is_too_long = match is_hashed {
            true => key.using == Some(KeyMethod::BTree),
            false => bytes > KEY_BYTES_MAX,
        };
        if is_too_long {
            shorten(ctx, key, columns.iter().map(|c| &c.column))?;
        }
        // A table may have longer ones already, and a source's table may be of another engine.
        let is_exempt = key.origin.is_some() && was_short || ctx.session.identity.is_applier;
        let part_max = if is_exempt { KEY_BYTES_MAX } else { part_max };
        let is_too_long = |part: &DraftPart| {
            let column = columns.iter().find(|c| same_name(&c.column.name, &part.column));
            column.is_some_and(|column| part_bytes(part, &column.column) > part_max)
        };
        let is_limited = !key.kind.has_words() && (!is_hashed || part_max < KEY_BYTES_MAX);
        if is_limited && key.parts.iter().any(is_too_long) {
            return Err(SqlError::key_part_too_long(part_max as u32));
        }
    }
    Ok(())
}

fn checked_prefix(part: &DraftPart, column: &Column, kind: IndexKind) -> SqlResult<Option<u32>> {
    let ty = &column.ty;
    let is_string = ty.kind.is_text() || ty.kind.is_binary_string();
    if kind == IndexKind::FullText {
        // FULLTEXT indexes have no prefixes.
        return Ok(None);
    }
    match part.prefix {
        None if ty.kind.is_blob() && kind == IndexKind::Primary => {
            Err(SqlError::blob_key_without_length(&column.name))
        }
        None => Ok(None),
        Some(0) => Err(SqlError::key_part_of_zero(&column.name)),
        Some(length) if !is_string || (!ty.kind.is_blob() && length > ty.length) => {
            let _ = length;
            Err(SqlError::wrong_key_prefix())
        }
        Some(length) if !ty.kind.is_blob() && length == ty.length => Ok(None),
        Some(length) => Ok(Some(length)),
    }
}

/// Returns the length of a key part over a whole column, as a prefix: in characters, or in bytes for binary
/// strings. Returns `None` if the type has no prefixes.
pub(super) fn whole_length(ty: &ColumnType) -> Option<u32> {
    let per_char = match ty.kind.is_text() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set) {
        true => ty.collation.charset().mbmaxlen(),
        false => 1,
    };
    u32::try_from(ty.byte_len_max()).ok().map(|bytes| bytes / per_char).filter(|length| *length > 0)
}

fn part_bytes(part: &DraftPart, column: &Column) -> u64 {
    let per_char = u64::from(column.ty.collation.charset().mbmaxlen());
    match part.prefix {
        Some(length) => u64::from(length) * per_char,
        None if column.ty.kind == TypeKind::Enum || column.ty.kind == TypeKind::Set => 8,
        None => column.ty.byte_len_max(),
    }
}

/// Handles a key that is too long: a non-unique key gets prefixes and a note, others are refused with error
/// 1071.
fn shorten<'c>(
    ctx: &StatementContext<'_>,
    key: &mut DraftKey,
    columns: impl Iterator<Item = &'c Column> + Clone,
) -> SqlResult<()> {
    let error = SqlError::key_too_long(KEY_BYTES_MAX as u32);
    if key.kind != IndexKind::Secondary || key.parts.len() > 1 {
        return Err(error);
    }
    let part = &mut key.parts[0];
    let column = columns.clone().find(|c| same_name(&c.name, &part.column)).expect("checked by the caller");
    part.prefix = Some(KEY_BYTES_MAX as u32 / column.ty.collation.charset().mbmaxlen());
    ctx.eval.note(error.code, error.message);
    Ok(())
}

/// Sorts keys in MariaDB's order: the primary key, unique keys without NULL, other unique keys, then the
/// rest. Among unique keys, those over whole columns precede those with prefixes, and hashed ones come last.
pub(super) fn sort_keys(draft: &mut TableDraft) {
    let columns = &draft.columns;
    let has_null = |key: &DraftKey| {
        key.parts
            .iter()
            .any(|p| columns.iter().any(|c| c.column.nullable && same_name(&c.column.name, &p.column)))
    };
    draft.keys.sort_by_key(|key| match key.kind {
        IndexKind::Primary | IndexKind::HiddenRowId => 0,
        IndexKind::Unique | IndexKind::UniqueHash => {
            let has_prefix = key.parts.iter().any(|part| part.prefix.is_some());
            match is_hashed(key, columns) {
                true => 5,
                false => 1 + 2 * u8::from(has_null(key)) + u8::from(has_prefix),
            }
        }
        IndexKind::Secondary => 6,
        IndexKind::FullText => 7,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: Option<&str>, column: &str) -> DraftKey {
        DraftKey {
            name: name.map(str::to_owned),
            kind: IndexKind::Secondary,
            parts: vec![DraftPart {
                column: column.to_owned(),
                prefix: None,
                descending: false,
                is_dropped: false,
            }],
            comment: String::new(),
            ignored: false,
            using: None,
            generated: false,
            origin: None,
            lost: None,
        }
    }

    #[test]
    fn keys_are_named_after_their_first_column() {
        let mut keys = vec![key(None, "a"), key(None, "a"), key(Some("b"), "a"), key(None, "b")];
        assert_eq!(name_keys(&mut keys), Ok(()));
        let names: Vec<_> = keys.iter().filter_map(|k| k.name.as_deref()).collect();
        assert_eq!(names, ["a", "a_2", "b", "b_2"]);
        let mut twice = vec![key(Some("x"), "a"), key(Some("X"), "b")];
        assert_eq!(name_keys(&mut twice).map_err(|e| e.number()), Err(1061));
    }
}
