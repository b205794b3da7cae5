//! The order of strings in every collation matches a recorded server (golden/order.txt).

use std::cmp::Ordering;

use cohort_types::Collation;

fn hex(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches('.');
    let byte = |n| u8::from_str_radix(&digits[n..n + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn strings_order_as_on_the_recorded_server() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let mut lines = include_str!("golden/order.txt").lines().filter(|l| !l.starts_with('#'));
    while let Some(name) = lines.next() {
        let collation = Collation::by_name(name).expect("a known collation");
        let strings: Vec<Vec<u8>> = lines.next().expect("the strings").split(' ').map(hex).collect();
        for a in &strings {
            let signs = lines.next().expect("signs");
            assert_eq!(signs.len(), strings.len(), "{name}");
            for (b, sign) in strings.iter().zip(signs.chars()) {
                let order = match collation.compare(a, b) {
                    Ordering::Less => '<',
                    Ordering::Equal => '=',
                    Ordering::Greater => '>',
                };
                if order != sign {
                    let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
                    wrong.push(format!("{name}: {a:?} {sign} {b:?}, not {order}"));
                }
            }
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(seen, 11, "the collations that are most used were recorded");
}
