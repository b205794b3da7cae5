//! Histories of transactions on lists, and detection of their anomalies.
//!
//! Each transaction appends unique values and reads whole lists. The order of writes to a list is therefore
//! the order of its values, and the last value of a list that was read shows which write precedes the read.
//! There are three kinds of edges between transactions:
//!
//! | edge | from | to |
//! |---|---|---|
//! | ww | the writer that appended a value | the writer that appended the next value |
//! | wr | the writer that appended a value | a reader of the list that ends with it |
//! | rw | a reader of a list | the writer that appended the next value |
//!
//! A cycle of ww edges only is G0; of ww and wr edges, G1c; with a single rw edge, G-single; with more of
//! them, G2. Reading a value of another transaction that was rolled back is G1a. Reading a list that ends
//! within another transaction's appends is G1b.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

pub type Key = u32;
pub type Value = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Append(Key, Value),
    /// The list that was read, including the transaction's own appends.
    Read(Key, Vec<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    RolledBack,
    /// The connection was lost during the commit.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Transaction {
    pub ops: Vec<Op>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// Forbidden at every level: a list is not a prefix of a later one, or a transaction's own append is
    /// missing.
    Broken,
    G0,
    G1a,
    G1b,
    G1c,
    GSingle,
    G2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Edge {
    Ww,
    Wr,
    Rw,
}

/// Returns the anomalies in a history, each with one example.
pub fn anomalies(history: &[Transaction], last: &BTreeMap<Key, Vec<Value>>) -> BTreeMap<Anomaly, String> {
    let mut found = BTreeMap::new();
    let mut writer: HashMap<Value, usize> = HashMap::new();
    for (n, trx) in history.iter().enumerate() {
        for op in &trx.ops {
            if let Op::Append(_, value) = op {
                writer.insert(*value, n);
            }
        }
    }
    let is_there: HashSet<Value> = last.values().flatten().copied().collect();
    let is_committed = |n: usize| match history[n].outcome {
        Outcome::Committed => true,
        Outcome::RolledBack => false,
        Outcome::Unknown => {
            history[n].ops.iter().any(|op| matches!(op, Op::Append(_, value) if is_there.contains(value)))
        }
    };
    for (n, trx) in history.iter().enumerate().filter(|(n, _)| is_committed(*n)) {
        for op in &trx.ops {
            if let Op::Append(key, value) = op
                && !last.get(key).is_some_and(|list| list.contains(value))
            {
                found.insert(
                    Anomaly::Broken,
                    format!("value {value} of list {key} is lost: {:?}", history[n]),
                );
            }
        }
    }
    for value in last.values().flatten() {
        if !writer.get(value).is_some_and(|n| is_committed(*n)) {
            found.insert(Anomaly::G1a, format!("{value} is there at the end and was not committed"));
        }
    }
    let mut edges = Edges::new();
    let mut add = |from: usize, to: usize, edge: Edge| {
        if from != to {
            edges.entry(from).or_default().insert((to, edge));
        }
    };
    for list in last.values() {
        for pair in list.windows(2) {
            if let (Some(from), Some(to)) = (writer.get(&pair[0]), writer.get(&pair[1])) {
                add(*from, *to, Edge::Ww);
            }
        }
    }
    for (n, trx) in history.iter().enumerate() {
        let mut own: HashMap<Key, Vec<Value>> = HashMap::new();
        for op in &trx.ops {
            let (key, seen) = match op {
                Op::Append(key, value) => {
                    own.entry(*key).or_default().push(*value);
                    continue;
                }
                Op::Read(key, seen) => (key, seen),
            };
            let mine = own.get(key).map_or(&[][..], |values| values);
            let Some(others) = seen.strip_suffix(mine) else {
                found.insert(Anomaly::Broken, format!("own appends {mine:?} are not at the end of {seen:?}"));
                continue;
            };
            for value in others {
                if !writer.get(value).is_some_and(|n| is_committed(*n)) {
                    found.insert(Anomaly::G1a, format!("{value} was read and rolled back: {trx:?}"));
                }
            }
            let list = last.get(key).map_or(&[][..], |list| list);
            if !list.starts_with(others) {
                if others.iter().all(|value| is_there.contains(value)) {
                    found.insert(Anomaly::Broken, format!("{others:?} is no beginning of {list:?}"));
                }
                continue;
            }
            if !is_committed(n) {
                continue;
            }
            let next = list.get(others.len());
            if let Some(before) = others.last() {
                let from = writer[before];
                add(from, n, Edge::Wr);
                if next.is_some_and(|next| writer.get(next) == Some(&from)) && from != n {
                    found.insert(Anomaly::G1b, format!("{others:?} ends within {:?}", history[from]));
                }
            }
            if let Some(to) = next.and_then(|next| writer.get(next)) {
                add(n, *to, Edge::Rw);
            }
        }
    }
    find_cycles(&edges, history, &mut found);
    found
}

type Edges = HashMap<usize, HashSet<(usize, Edge)>>;

/// Removes the transactions that cannot be part of a cycle of these edge kinds.
fn trimmed(edges: &Edges, kinds: &[Edge]) -> Edges {
    let mut rest: Edges = edges.clone();
    rest.values_mut().for_each(|to| to.retain(|(_, edge)| kinds.contains(edge)));
    loop {
        let before: usize = rest.values().map(HashSet::len).sum();
        rest.retain(|_, to| !to.is_empty());
        let has_way_on: HashSet<usize> = rest.keys().copied().collect();
        let is_reached: HashSet<usize> = rest.values().flatten().map(|(to, _)| *to).collect();
        rest.retain(|from, _| is_reached.contains(from));
        rest.values_mut().for_each(|to| to.retain(|(to, _)| has_way_on.contains(to)));
        if rest.values().map(HashSet::len).sum::<usize>() == before {
            return rest;
        }
    }
}

/// Finds, for each edge, the shortest path back, trying fewer edge kinds first.
fn find_cycles(all: &Edges, history: &[Transaction], found: &mut BTreeMap<Anomaly, String>) {
    let kinds: [(Anomaly, Edge, &[Edge]); 4] = [
        (Anomaly::G0, Edge::Ww, &[Edge::Ww]),
        (Anomaly::G1c, Edge::Wr, &[Edge::Ww, Edge::Wr]),
        (Anomaly::GSingle, Edge::Rw, &[Edge::Ww, Edge::Wr]),
        (Anomaly::G2, Edge::Rw, &[Edge::Ww, Edge::Wr, Edge::Rw]),
    ];
    for (anomaly, first, others) in kinds {
        let edges = &trimmed(all, &[others, &[first]].concat());
        let mut from: Vec<usize> = edges.keys().copied().collect();
        from.sort_unstable();
        for &start in &from {
            if found.contains_key(&anomaly) {
                break;
            }
            for &(to, edge) in &edges[&start] {
                // A cycle with a single rw edge is G-single, not G2.
                if edge != first || (anomaly == Anomaly::G2 && found.contains_key(&Anomaly::GSingle)) {
                    continue;
                }
                if let Some(way) = way(edges, to, start, others) {
                    let members: Vec<String> =
                        way.iter().map(|n| format!("\n  {n}: {:?}", history[*n])).collect();
                    found.insert(anomaly, format!("{start} -{edge:?}-> {way:?}{}", members.concat()));
                    break;
                }
            }
        }
    }
}

fn way(edges: &Edges, from: usize, to: usize, kinds: &[Edge]) -> Option<Vec<usize>> {
    let mut before: HashMap<usize, usize> = HashMap::from([(from, from)]);
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        if at == to {
            let mut way = vec![at];
            while *way.last()? != from {
                way.push(before[way.last()?]);
            }
            way.reverse();
            return Some(way);
        }
        for (next, edge) in edges.get(&at).into_iter().flatten() {
            if kinds.contains(edge) && !before.contains_key(next) {
                before.insert(*next, at);
                open.push_back(*next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trx(ops: &[Op]) -> Transaction {
        Transaction { ops: ops.to_vec(), outcome: Outcome::Committed }
    }

    fn kinds(history: &[Transaction], last: &[(Key, &[Value])]) -> Vec<Anomaly> {
        let last = last.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        anomalies(history, &last).into_keys().collect()
    }

    #[test]
    fn each_anomaly_is_recognised() {
        use Op::{Append, Read};
        let fine = [trx(&[Append(1, 1)]), trx(&[Read(1, vec![1]), Append(1, 2)]), trx(&[Read(1, vec![])])];
        assert_eq!(kinds(&fine, &[(1, &[1, 2])]), []);
        let g0 = [trx(&[Append(1, 1), Append(2, 2)]), trx(&[Append(1, 3), Append(2, 4)])];
        assert_eq!(kinds(&g0, &[(1, &[1, 3]), (2, &[4, 2])]), [Anomaly::G0]);
        let mut g1a = [trx(&[Append(1, 1)]), trx(&[Read(1, vec![1])])];
        g1a[0].outcome = Outcome::RolledBack;
        assert_eq!(kinds(&g1a, &[]), [Anomaly::G1a]);
        let g1b = [trx(&[Append(1, 1), Append(1, 2)]), trx(&[Read(1, vec![1])])];
        assert!(kinds(&g1b, &[(1, &[1, 2])]).contains(&Anomaly::G1b));
        let g1c = [trx(&[Append(1, 1), Read(2, vec![2])]), trx(&[Append(2, 2), Read(1, vec![1])])];
        assert_eq!(kinds(&g1c, &[(1, &[1]), (2, &[2])]), [Anomaly::G1c]);
        let lost = [trx(&[Read(1, vec![]), Append(1, 1)]), trx(&[Read(1, vec![]), Append(1, 2)])];
        assert_eq!(kinds(&lost, &[(1, &[1, 2])]), [Anomaly::GSingle]);
        let skew = [trx(&[Read(1, vec![]), Append(2, 1)]), trx(&[Read(2, vec![]), Append(1, 2)])];
        assert_eq!(kinds(&skew, &[(1, &[2]), (2, &[1])]), [Anomaly::G2]);
        assert_eq!(kinds(&[trx(&[Append(1, 1)])], &[]), [Anomaly::Broken]);
    }
}
