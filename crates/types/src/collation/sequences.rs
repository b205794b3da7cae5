//! Characters of UCA 14.0.0 that weigh as one when they follow each other. `uca1400_sequences.txt` has them,
//! recorded from a MariaDB 10.11.19: a line for each, code points and the weights of the three levels, apart
//! by tabs.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fold::decode;
use super::uca::Level;

/// What follows the first character, and the weights of the whole on each level.
struct Sequence {
    behind: Vec<u32>,
    weights: [Vec<u16>; 3],
}

struct Sequences {
    /// By the first character, the longer ones first.
    by_first: HashMap<u32, Vec<Sequence>>,
    /// Characters that others may follow in one.
    open: Vec<u32>,
}

static SEQUENCES: LazyLock<Sequences> = LazyLock::new(|| {
    let mut all = Sequences { by_first: HashMap::new(), open: Vec::new() };
    for line in include_str!("uca1400_sequences.txt").lines() {
        let mut fields = line.split('\t').map(|field| field.split(' ').filter(|number| !number.is_empty()));
        let number = |digits: &str| u32::from_str_radix(digits, 16).expect("recorded in hexadecimal");
        let mut next = || fields.next().expect("four fields").map(number).collect::<Vec<u32>>();
        let code_points = next();
        let weights = [next(), next(), next()].map(|level| level.into_iter().map(|w| w as u16).collect());
        let (first, behind) = code_points.split_first().expect("at least two");
        all.open.extend(&code_points[..code_points.len() - 1]);
        all.by_first.entry(*first).or_default().push(Sequence { behind: behind.to_vec(), weights });
    }
    all.open.sort_unstable();
    all.open.dedup();
    all.by_first.values_mut().for_each(|list| list.sort_by_key(|one| std::cmp::Reverse(one.behind.len())));
    all
});

/// Whether characters behind this one may count with it.
pub(super) fn goes_on(c: u32) -> bool {
    SEQUENCES.open.binary_search(&c).is_ok()
}

/// The sequence that `c` and the text behind it begin with: its weights, and the bytes that it takes of the
/// text.
pub(super) fn at(level: Level, c: u32, rest: &[u8]) -> Option<(&'static [u16], usize)> {
    let candidates = SEQUENCES.by_first.get(&c)?;
    candidates.iter().find_map(|one| {
        let mut taken = 0;
        for wanted in &one.behind {
            let (next, len) = decode(rest.get(taken..).filter(|rest| !rest.is_empty())?);
            if next != *wanted {
                return None;
            }
            taken += len;
        }
        Some((&one.weights[level as usize][..], taken))
    })
}
