//! Statistics of statements: sums over shards, eviction, resets, samples.

use std::path::Path;
use std::sync::Arc;

use cohort_observe::{
    KindNames, Measure, Measured, Sample, StatementKey, StatementRef, StatementRow, Statements,
};
use cohort_vfs::{Fs as _, MemFs, OpenMode};

const KINDS: usize = 3;

fn key(digest: u128) -> StatementKey {
    StatementKey { schema: Some("d".into()), digest, is_nested: false }
}

fn once(latency_ns: u64) -> Measured {
    let mut measured = Measured::default();
    measured.add(Measure::Calls, 1);
    measured.add(Measure::RowsSent, 2);
    measured.add(Measure::Latency, latency_ns);
    measured
}

fn run(statements: &Statements, digest: u128, kind: usize) {
    let text = Arc::from(format!("SELECT {digest}"));
    let intern = || statements.intern(&key(digest), &text, kind, 7);
    statements.count(0, (kind, false), &once(5_000), 9, None, intern);
}

fn calls(rows: &[StatementRow]) -> u64 {
    rows.iter().map(|row| row.totals.sums.get(Measure::Calls)).sum()
}

#[test]
fn shards_add_up_and_a_reset_leaves_nothing() {
    let statements = Statements::new(KINDS, 1 << 20, 4, 100);
    let text: Arc<str> = "SELECT ?".into();
    let of = statements.intern(&key(1), &text, 2, 10);
    assert_eq!(StatementRef::unpacked(of.packed()), Some(of));
    assert_eq!(StatementRef::unpacked(0), None);
    for thread in 0..8 {
        assert!(statements.record(thread, of, &once(1_000 * (thread as u64 + 1)), 2_000_000, Some(0)));
    }
    statements.keep_sample(of, "SELECT 8", 8_000, 11);
    statements.keep_sample(of, "SELECT 1", 1_000, 12);
    statements.record(0, statements.without_digest(1), &once(3), 13, Some(1));
    let mut rows = statements.rows();
    rows.sort_by_key(|row| row.kind);
    let [undigested, row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((undigested.kind, &undigested.key, undigested.is_others), (1, &None, false));
    assert_eq!((row.kind, row.key.as_ref(), &*row.text, row.first_us), (2, Some(&key(1)), "SELECT ?", 10));
    assert_eq!(
        row.sample,
        Sample { text: "SELECT 8".into(), seen_us: 11, latency_ns: 8_000, ..Sample::default() }
    );
    assert_eq!((calls(&rows), row.totals.sums.get(Measure::RowsSent)), (9, 16));
    assert_eq!((row.totals.min_ns, row.totals.max_ns, row.totals.last_us), (1_000, 8_000, 2_000_000));
    assert_eq!((row.totals.latencies.count(), row.totals.latencies.percentile(1.0)), (8, 8));

    statements.reset();
    assert_eq!((statements.rows().len(), statements.bytes()), (0, 0));
    assert!(!statements.record(0, of, &once(1), 14, Some(0)));
    let again = || statements.intern(&key(1), &text, 2, 15);
    let new = statements.count(0, (2, false), &once(1), 15, None, again);
    assert!(statements.is_current(new) && !statements.is_current(of));
    assert_eq!(calls(&statements.rows()), 1);
}

#[test]
fn a_flood_evicts_itself_and_nothing_is_lost() {
    const BYTES: u64 = 256 << 10;
    let statements = Statements::new(KINDS, BYTES, 2, 64);
    for _ in 0..3 {
        (0..20).for_each(|digest| run(&statements, digest, 0));
    }
    for digest in 100..20_100 {
        run(&statements, digest, 1);
        if digest % 50 == 0 {
            (0..20).for_each(|digest| run(&statements, digest, 0));
        }
        assert!(statements.bytes() <= BYTES + 4096, "{}", statements.bytes());
    }
    let rows = statements.rows();
    assert_eq!(calls(&rows), 60 + 20_000 + 400 * 20);
    for digest in 0..20 {
        let of = |row: &&StatementRow| row.key.as_ref().is_some_and(|key| key.digest == digest);
        let row = rows.iter().find(of).unwrap_or_else(|| panic!("{digest} was evicted"));
        assert_eq!(row.totals.sums.get(Measure::Calls), 403);
    }
    let others: Vec<&StatementRow> = rows.iter().filter(|row| row.is_others).collect();
    assert!(others.len() == 1 && others[0].kind == 1, "{others:?}");
    assert_eq!(statements.lost(), others[0].totals.sums.get(Measure::Calls));
}

#[test]
fn what_lasts_is_evicted_by_least_use() {
    let statements = Statements::new(KINDS, 64 << 10, 1, 0);
    for round in 0..200 {
        // All run more than once; the first five run most.
        for digest in (0..5).chain(5 + round * 10..15 + round * 10) {
            run(&statements, digest, 0);
            run(&statements, digest, 0);
        }
    }
    let rows = statements.rows();
    assert_eq!(calls(&rows), 200 * 30);
    for digest in 0..5 {
        assert!(rows.iter().any(|row| row.key == Some(key(digest))), "{digest}");
    }
}

#[test]
fn without_memory_statements_are_counted_by_kind() {
    let statements = Statements::new(KINDS, 0, 1, 64);
    (0..10).for_each(|digest| run(&statements, digest, 2));
    let rows = statements.rows();
    assert_eq!((rows.len(), rows[0].kind, rows[0].is_others, calls(&rows)), (1, 2, true, 10));
    assert_eq!(statements.lost(), 10);
}

struct Numbers;

impl KindNames for Numbers {
    fn name(&self, kind: usize) -> String {
        format!("kind {kind}")
    }

    fn kind(&self, name: &str) -> Option<usize> {
        name.strip_prefix("kind ")?.parse().ok().filter(|kind| *kind < KINDS)
    }
}

fn sorted(mut rows: Vec<StatementRow>) -> Vec<StatementRow> {
    rows.sort_by_key(|row| (row.kind, row.is_others, row.key.as_ref().map(|key| key.digest)));
    rows
}

#[test]
fn statistics_survive_a_restart_without_examples() {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("/d")).expect("made");
    let path = Path::new("/d/statistics");
    let statements = Statements::new(KINDS, 1 << 20, 4, 100);
    for digest in 1..=50 {
        (0..digest).for_each(|_| run(&statements, digest, digest as usize % KINDS));
    }
    let mut rare = once(1 << 40);
    rare.add(Measure::SortRows, 17);
    let own =
        statements.intern(&StatementKey { schema: None, digest: 99, is_nested: true }, &"ü".into(), 1, 3);
    statements.record(0, own, &rare, 88, None);
    statements.record(0, statements.without_digest(2), &once(3), 13, Some(2));
    statements.keep_sample(own, "a secret", 1, 1);
    statements.save(&fs, path, &Numbers).expect("saved");
    let open = || Statements::new(KINDS, 1 << 20, 2, 100);
    let again = open();
    assert_eq!(again.load(&fs, Path::new("/d/none"), &Numbers), None);
    assert_eq!(again.load(&fs, path, &Numbers), None);
    let (mut before, after) = (sorted(statements.rows()), sorted(again.rows()));
    before.iter_mut().for_each(|row| row.sample = Sample::default());
    assert_eq!(before.len(), 52);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
    }
    // The rows go on.
    run(&again, 7, 1);
    assert_eq!(calls(&again.rows()), calls(&statements.rows()) + 1);
    // A server with less memory keeps the sums.
    let small = Statements::new(KINDS, 4096, 1, 0);
    assert_eq!(small.load(&fs, path, &Numbers), None);
    assert_eq!(calls(&small.rows()), calls(&statements.rows()));

    let file = fs.open(path, OpenMode::Write).expect("opens");
    let len = file.len().expect("a length");
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).expect("read");
    assert!(!bytes.windows(8).any(|part| part == b"a secret"));
    // Any flipped bit is noticed, and at most its row is lost, or what follows a wrong length.
    for at in (0..len).step_by(7) {
        file.write_at(&[bytes[at as usize] ^ 4], at).expect("written");
        let damaged = open();
        let warning = damaged.load(&fs, path, &Numbers);
        assert!(warning.is_some(), "byte {at}");
        assert!(calls(&damaged.rows()) < calls(&statements.rows()), "byte {at}");
        if !fs.exists(path) {
            fs.rename(Path::new("/d/statistics.damaged"), path).expect("renamed back");
        }
        file.write_at(&bytes[at as usize..=at as usize], at).expect("written");
    }
    for len in (0..len).step_by(11) {
        let cut = fs.open(Path::new("/d/cut"), OpenMode::CreateOrOpen).expect("opens");
        cut.set_len(0).expect("emptied");
        cut.write_at(&bytes[..len as usize], 0).expect("written");
        let warning = open().load(&fs, Path::new("/d/cut"), &Numbers);
        // A file that ends between two rows is whole.
        assert!(warning.is_none_or(|text| text.contains("renamed to '/d/cut.damaged'")), "{len}");
    }
}
