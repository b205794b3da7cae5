//! Temporals parsed from text and numbers match the results recorded from a MariaDB server
//! (golden/temporal_text.tsv).

use cohort_types::{Date, DateTime, Decimal, Issues, Parsed, SqlMode, Time};

/// Returns the level of the issues as in the golden file.
fn graded(issues: Issues) -> String {
    let grade = match issues {
        _ if !issues.is_good() => "Warning:1292",
        _ if issues.any(Issues::NOTE) => "Note:1292",
        _ => "",
    };
    grade.to_string()
}

fn answer<T>(parsed: &Parsed<T>, print: impl Fn(&T, &mut Vec<u8>)) -> (String, String) {
    let mut out = Vec::new();
    match &parsed.value {
        Some(value) => print(value, &mut out),
        None => out.extend_from_slice(b"NULL"),
    }
    (String::from_utf8(out).expect("ASCII"), graded(parsed.issues))
}

#[test]
fn conversions_answer_as_the_recorded_server() {
    let mut wrong = Vec::new();
    for line in include_str!("golden/temporal_text.tsv").lines().filter(|l| !l.starts_with('#')) {
        let [tag, kind, ty, input, value, warnings] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("six columns: {line}");
        };
        let mode = match tag {
            "Z" => SqlMode::NO_ZERO_DATE | SqlMode::NO_ZERO_IN_DATE,
            "R" => SqlMode::ALLOW_INVALID_DATES | SqlMode::TIME_ROUND_FRACTIONAL,
            _ => SqlMode::NONE,
        };
        let text = input.as_bytes();
        let number = Decimal::parse(text).0;
        let got = match (kind, ty) {
            ("s", "DATETIME") => answer(&DateTime::parse(text, mode), |v, o| v.write_text(6, o)),
            ("s", "DATE") => answer(&Date::parse(text, mode), |v, o| v.write_text(o)),
            ("s", "TIME") => answer(&Time::parse(text, mode), |v, o| v.write_text(6, o)),
            ("n", "DATETIME") => answer(&DateTime::from_decimal(&number, mode), |v, o| v.write_text(6, o)),
            ("n", "DATE") => {
                answer(&DateTime::from_decimal(&number, mode).into_date(), |v, o| v.write_text(o))
            }
            ("n", "TIME") => answer(&Time::from_decimal(&number, mode), |v, o| v.write_text(6, o)),
            _ => panic!("{line}"),
        };
        if (got.0.as_str(), got.1.as_str()) != (value, warnings) {
            wrong.push(format!(
                "{tag} {kind} {ty} {input:?}: server {value} {warnings}; got {} {}",
                got.0, got.1
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
