//! Contractions of UCA 14.0.0: sequences of characters that are weighed as one. `uca1400_sequences.txt` lists
//! them as recorded from MariaDB 10.11.19. Each line has the code points and the weights of the three levels,
//! separated by tabs.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fold::decode;
use super::uca::Level;

/// A contraction: the characters after the first one, and the weights of the sequence on each level.
struct Sequence {
    following: Vec<u32>,
    weights: [Vec<u16>; 3],
}

struct Sequences {
    /// Contractions by their first character, longest first.
    by_first: HashMap<u32, Vec<Sequence>>,
    /// All characters of contractions except the last ones, sorted.
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
        let (first, following) = code_points.split_first().expect("at least two");
        all.open.extend(&code_points[..code_points.len() - 1]);
        all.by_first.entry(*first).or_default().push(Sequence { following: following.to_vec(), weights });
    }
    all.open.sort_unstable();
    all.open.dedup();
    all.by_first.values_mut().for_each(|list| list.sort_by_key(|one| std::cmp::Reverse(one.following.len())));
    all
});

/// Returns whether a contraction can continue after this character.
pub(super) fn goes_on(c: u32) -> bool {
    SEQUENCES.open.binary_search(&c).is_ok()
}

/// Returns the weights of the contraction that starts with `c` and continues in `rest`, and its length in
/// `rest` in bytes.
pub(super) fn at(level: Level, c: u32, rest: &[u8]) -> Option<(&'static [u16], usize)> {
    let candidates = SEQUENCES.by_first.get(&c)?;
    candidates.iter().find_map(|one| {
        let mut taken = 0;
        for wanted in &one.following {
            let (next, len) = decode(rest.get(taken..).filter(|rest| !rest.is_empty())?);
            if next != *wanted {
                return None;
            }
            taken += len;
        }
        Some((&one.weights[level as usize][..], taken))
    })
}
