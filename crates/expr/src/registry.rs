//! The registry: all functions by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::function::{Function, Replication, StoredIn};

/// Functions by module.
static FAMILIES: &[&[Function]] = &[
    crate::arith::FUNCTIONS,
    crate::bits::FUNCTIONS,
    crate::control::FUNCTIONS,
    crate::math::FUNCTIONS,
    crate::text_size::FUNCTIONS,
    crate::text_cut::FUNCTIONS,
    crate::text_build::FUNCTIONS,
    crate::text_code::FUNCTIONS,
    crate::regex::FUNCTIONS,
    crate::hash::FUNCTIONS,
    crate::info::FUNCTIONS,
    crate::replication::FUNCTIONS,
    crate::load_file::FUNCTIONS,
    crate::date_now::FUNCTIONS,
    crate::date_part::FUNCTIONS,
    crate::date_calc::FUNCTIONS,
    crate::date_format::FUNCTIONS,
    crate::to_char::FUNCTIONS,
    crate::date_parse::FUNCTIONS,
    crate::json_read::FUNCTIONS,
    crate::json_write::FUNCTIONS,
    crate::json_search::FUNCTIONS,
    crate::net::FUNCTIONS,
    crate::text_zip::FUNCTIONS,
    crate::text_secret::FUNCTIONS,
    crate::text_weight::FUNCTIONS,
    crate::text_oracle::FUNCTIONS,
    crate::sformat::FUNCTIONS,
    crate::dynamic_columns::FUNCTIONS,
    crate::xml_functions::FUNCTIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> =
    LazyLock::new(|| FAMILIES.iter().flat_map(|family| family.iter()).map(|f| (f.name, f)).collect());

/// Forms `name(..)` that the parser builds without a function of that name, and that may be logged as text.
const TEXT_FORMS: &[&str] = &[
    "adddate", "avg", "bit_and", "bit_or", "bit_xor", "cast", "convert", "count", "date_add", "date_sub",
    "max", "min", "subdate", "sum",
];

/// Returns how a statement is logged that calls `name` (in lower case). Unknown functions are logged as rows.
pub fn replication_of(name: &str) -> Replication {
    match lookup(name) {
        Some(function) => function.replication,
        None if TEXT_FORMS.contains(&name) => Replication::Text,
        None => Replication::Rows,
    }
}

/// Returns the clauses of a table's description that may call `name` (in lower case) with a number of
/// arguments.
pub fn stored_in(name: &str, args: usize) -> StoredIn {
    lookup(name).map_or(StoredIn::Anywhere, |function| function.stored_in(args))
}

/// Returns all functions in no particular order: lower-case name, minimum and maximum number of arguments.
pub fn functions() -> impl Iterator<Item = (&'static str, usize, usize)> {
    BY_NAME.values().map(|function| (function.name, function.args_min, function.args_max))
}

/// Returns the function with a lower-case name.
pub(crate) fn lookup(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the names of functions with a property. Names of the expression builder's own functions are no
    /// words, and are left out.
    fn names(has_it: impl Fn(&Function) -> bool) -> BTreeSet<&'static str> {
        let is_word = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let all = FAMILIES.iter().flat_map(|family| family.iter());
        all.filter(|function| is_word(function.name) && has_it(function))
            .map(|function| function.name)
            .collect()
    }

    fn words(lists: &[&'static str]) -> BTreeSet<&'static str> {
        lists.iter().flat_map(|list| list.split_ascii_whitespace()).collect()
    }

    #[test]
    fn functions_are_logged_as_they_were_when_each_crate_had_a_list() {
        let repeatable = "abs ceil char char_length coalesce concat concat_ws conv crc32 curdate \
            current_timestamp date date_format datediff day floor \
            from_unixtime greatest hex hour if ifnull instr isnull last_day lcase least left \
            length lower lpad ltrim md5 mod month now nullif repeat replace reverse right round \
            rpad rtrim sha1 substr substring trim ucase unhex unix_timestamp upper year";
        // Synonyms, and other functions of the statement's time. MariaDB logs them as text without a warning.
        let also_repeatable = "ceiling character_length current_date current_time curtime dayofmonth lengthb \
            localtime localtimestamp mid nvl octet_length sha utc_date utc_time utc_timestamp";
        assert_eq!(names(|f| f.replication == Replication::Text), words(&[repeatable, also_repeatable]));
        let forms =
            "adddate avg bit_and bit_or bit_xor cast convert count date_add date_sub max min subdate sum";
        assert_eq!(TEXT_FORMS, words(&[forms]).into_iter().collect::<Vec<_>>());
        let unsafe_words = "current_user found_rows get_lock is_free_lock is_used_lock load_file \
            master_gtid_wait master_pos_wait rand random_bytes release_all_locks release_lock \
            row_count session_user sleep sysdate system_user user uuid uuid_short";
        // MariaDB warns of them (1592), too.
        let also_unsafe = "binlog_gtid_pos current_role sys_guid version";
        assert_eq!(names(|f| f.replication == Replication::Unsafe), words(&[unsafe_words, also_unsafe]));
        assert_eq!(replication_of("my_function"), Replication::Rows);
    }

    #[test]
    fn functions_are_stored_where_they_were_when_ddl_had_a_list() {
        let table = [
            (
                StoredIn::Nowhere,
                "benchmark binlog_gtid_pos found_rows get_lock is_free_lock is_used_lock \
                last_insert_id load_file master_gtid_wait master_pos_wait name_const \
                release_all_locks release_lock row_count sleep",
            ),
            (StoredIn::OnlyDefault, "random_bytes"),
            // `unix_timestamp` without arguments. Synonyms of `now`, which the parser resolves. Calls of
            // sequences, which are no functions in the parser's tree.
            (
                StoredIn::NotGenerated,
                "connection_id curdate current_date current_role current_time current_timestamp \
                current_user curtime database lastval localtime localtimestamp nextval now rand \
                schema session_user setval sys_guid sysdate system_user unix_timestamp user \
                utc_date utc_time utc_timestamp uuid uuid_short version",
            ),
            (
                StoredIn::NotIndexed,
                "date_format dayname from_unixtime monthname natural_sort_key to_char week",
            ),
        ];
        for (stored, expected) in table {
            let has_it = |f: &Function| (0..4).any(|args| f.stored_in(args) == stored);
            assert_eq!(names(has_it), words(&[expected]), "{stored:?}");
        }
        for (name, args, expected) in [
            ("unix_timestamp", 0, StoredIn::NotGenerated),
            ("unix_timestamp", 1, StoredIn::Anywhere),
            ("week", 1, StoredIn::NotIndexed),
            ("week", 2, StoredIn::Anywhere),
            ("date_format", 2, StoredIn::NotIndexed),
            ("date_format", 3, StoredIn::Anywhere),
            ("my_function", 1, StoredIn::Anywhere),
        ] {
            assert_eq!(stored_in(name, args), expected, "{name} with {args} arguments");
        }
    }
}
