//! JSON_SEARCH: paths of matching strings. JSON_NORMALIZE: a canonical text for equivalent documents.

use std::cmp::Ordering;
use std::collections::HashSet;

use cohort_types::{ErrorCode, Interrupt as _, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::function::{ANY, Anywhere, Function, Rows};
use crate::json::{Json, document, unescape};
use crate::json_path::{Path, path};
use crate::json_typing;
use crate::json_write::append_string;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("json_search", 3, ANY, json_typing::found, search, Rows, Anywhere),
    Function::new("json_normalize", 1, 1, json_typing::normalized, normalize, Rows, Anywhere),
];

/// Parameters and results of a search.
struct Search<'s, 'a> {
    a: &'s Args<'a>,
    pattern: &'s [u8],
    escape: Option<char>,
    /// Stop at the first match.
    only_one: bool,
    /// Roots of the searched parts; `None` searches the whole document.
    roots: Option<HashSet<*const Json>>,
    /// Paths of the matches, as JSON strings.
    found: Vec<Vec<u8>>,
    /// Bytes of all matches; a search with too many bytes ends.
    bytes: u64,
}

/// JSON_SEARCH(document, 'one' | 'all', pattern [, escape [, path ..]]).
fn search(a: Args<'_>) -> SqlResult<Value> {
    let mode = or_null!(a.text(1)).to_ascii_lowercase();
    let only_one = match &mode[..] {
        b"one" => true,
        b"all" => false,
        _ => {
            let text = "Argument 2 to function 'json_search' must be \"one\" or \"all\".";
            a.ctx.warn(ErrorCode::JsonOneOrAll, text)?;
            return Ok(Value::Null);
        }
    };
    let pattern = or_null!(a.text(2));
    let escape = if a.count() > 3 { a.text(3)? } else { None };
    let escape = escape.map_or(Some('\\'), |e| String::from_utf8_lossy(&e).chars().next().or(Some('\\')));
    let paths = or_null!((4..a.count()).map(|n| path(&a, n)).collect::<SqlResult<Option<Vec<Path>>>>());
    let json = or_null!(document(&a, 0));
    let mut roots = (!paths.is_empty()).then(HashSet::new);
    for path in &paths {
        let found = path.find(&json, a.ctx)?;
        roots.get_or_insert_default().extend(found.into_iter().map(std::ptr::from_ref));
    }
    let mut search =
        Search { a: &a, pattern: &pattern, escape, only_one, roots, found: Vec::new(), bytes: 0 };
    let everywhere = search.roots.is_none();
    search.walk(&json, &mut b"$".to_vec(), everywhere)?;
    match &search.found[..] {
        [] => Ok(Value::Null),
        [one] => a.string(one.clone()),
        several => a.bounded_string([&b"["[..], &several.join(&b", "[..]), b"]"].concat()),
    }
}

impl Search<'_, '_> {
    /// Searches a value at path `place`. Returns false if the search ends.
    fn walk(&mut self, json: &Json, place: &mut Vec<u8>, inside: bool) -> SqlResult<bool> {
        self.a.ctx.steps(1)?;
        let inside = inside || self.roots.as_ref().is_some_and(|r| r.contains(&std::ptr::from_ref(json)));
        let length = place.len();
        match json {
            Json::String(raw) | Json::Number(raw) if inside => {
                let collation = self.a.expr(0).ty_cow().collation;
                if collation.like_within(&unescape(raw), self.pattern, self.escape, self.a.ctx)? {
                    let mut quoted = Vec::new();
                    append_string(place, &mut quoted);
                    self.bytes += quoted.len() as u64;
                    self.found.push(quoted);
                    return Ok(!self.only_one && self.bytes <= self.a.ctx.env.max_allowed_packet);
                }
            }
            Json::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    place.extend_from_slice(format!("[{n}]").as_bytes());
                    let goes_on = self.walk(item, place, inside)?;
                    place.truncate(length);
                    if !goes_on {
                        return Ok(false);
                    }
                }
            }
            Json::Object(members) => {
                for (key, value) in members {
                    place.push(b'.');
                    place.extend_from_slice(key);
                    let goes_on = self.walk(value, place, inside)?;
                    place.truncate(length);
                    if !goes_on {
                        return Ok(false);
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

/// JSON_NORMALIZE: members sorted by key, numbers as `d.dEn`, no spaces.
fn normalize(a: Args<'_>) -> SqlResult<Value> {
    let mut out = Vec::new();
    normal(or_null!(document(&a, 0))).write_compact(&mut out);
    a.bounded_string(out)
}

fn normal(json: Json) -> Json {
    match json {
        Json::Number(raw) => Json::Number(normal_number(&raw)),
        Json::Array(items) => Json::Array(items.into_iter().map(normal).collect()),
        Json::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key, normal(value))).collect();
            members.sort_by(compare_members);
            Json::Object(members)
        }
        other => other,
    }
}

fn compare_members(a: &(Vec<u8>, Json), b: &(Vec<u8>, Json)) -> Ordering {
    a.0.cmp(&b.0).then_with(|| compare_normal(&a.1, &b.1))
}

/// Compares values of members with equal keys: by type, then by length.
fn compare_normal(a: &Json, b: &Json) -> Ordering {
    let rank = |json: &Json| match json {
        Json::Object(_) => 0,
        Json::Array(_) => 1,
        Json::String(_) => 2,
        Json::Number(_) => 3,
        Json::Bool(true) => 4,
        Json::Bool(false) => 5,
        Json::Null => 6,
    };
    let by_length = |a: &[u8], b: &[u8]| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = a.iter().zip(b).map(|(a, b)| compare_members(a, b));
            pairs.fold(Ordering::Equal, Ordering::then)
        }),
        (Json::Array(a), Json::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = a.iter().zip(b).map(|(a, b)| compare_normal(a, b));
            pairs.fold(Ordering::Equal, Ordering::then)
        }),
        (Json::String(a), Json::String(b)) | (Json::Number(a), Json::Number(b)) => by_length(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Normalizes a number: `-120.50e3` becomes `-1.205E5`.
fn normal_number(raw: &[u8]) -> Vec<u8> {
    let (sign, rest) = raw.split_at(usize::from(raw.first() == Some(&b'-')));
    let at_exponent = rest.iter().position(|b| b.eq_ignore_ascii_case(&b'e')).unwrap_or(rest.len());
    let (mantissa, exponent) = rest.split_at(at_exponent);
    let exponent =
        exponent.get(1..).and_then(|e| std::str::from_utf8(e).ok()?.parse::<i64>().ok()).unwrap_or(0);
    let whole = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let digits: Vec<u8> = mantissa.iter().copied().filter(u8::is_ascii_digit).collect();
    let Some(first) = digits.iter().position(|b| *b != b'0') else { return b"0.0E0".to_vec() };
    let last = digits.iter().rposition(|b| *b != b'0').unwrap_or(first);
    let exponent = exponent.saturating_add(whole as i64 - first as i64 - 1);
    let mut out = sign.to_vec();
    out.extend_from_slice(&[digits[first], b'.']);
    out.extend_from_slice(if last > first { &digits[first + 1..=last] } else { b"0" });
    out.extend_from_slice(format!("E{exponent}").as_bytes());
    out
}
