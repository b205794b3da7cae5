//! The documentation page of character sets lists those that exist. `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use cohort_types::{Charset, Collation};

/// Character sets and collations of MariaDB 10.11 that are rejected with error 1115 or 1273.
const MISSING: &str = "\
The character set `tis620`. Of the others the collations of several levels or with rearranged letters: \
`latin2_czech_cs`, `cp1250_czech_cs`, `latin1_german2_ci`, and under every Unicode set `sinhala_ci`, \
`myanmar_ci` and `thai_520_w2`. Of the family `uca1400` those of languages.";

#[test]
fn the_page_of_character_sets_is_true() {
    let mut page = format!(
        "# Character sets and collations\n\nThose that are there order, fold and convert every code point as \
         MariaDB 10.11 does; `crates/expr/tests/collations.rs` compares them with one. A byte that stands for \
         no character in its set is refused with error 1366, where MariaDB stores it. This page is written by \
         `UPDATE_GOLDEN=1 cargo test -p cohort-types --test collation_page`.\n\n## Not there\n\n{MISSING}\n\n\
         ## There\n\n| character set | collations, the default first |\n|---|---|\n"
    );
    for charset in Charset::ALL {
        let mut collations: Vec<Collation> = Collation::all().filter(|c| c.charset() == charset).collect();
        collations.sort_by_key(|collation| !collation.is_default());
        let names: Vec<String> =
            collations.iter().map(|collation| format!("`{}`", collation.name())).collect();
        writeln!(page, "| `{}` | {} |", charset.name(), names.join(", ")).expect("a string");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/character_sets.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("writable");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the page is there"), page, "docs/character_sets.md");
}
