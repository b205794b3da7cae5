//! Repositories on stores that fail, lie, and lose power at every step.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use cohort_backup_tool::failure::{Failure, Result, exit_code};
use cohort_backup_tool::lock::Lock;
use cohort_backup_tool::progress::Progress;
use cohort_backup_tool::prune::{Keep, prune};
use cohort_backup_tool::repository::Repository;
use cohort_backup_tool::restore::restore;
use cohort_backup_tool::verify::{Verified, verify};
use support::{
    Fake, Fault, Faulty, Files, assert_restored, code, contents, files, noise, objects, overwrite, take_of,
};

fn verify_all(repository: &Repository) -> Verified {
    verify(repository, None, false, &Progress::hidden()).expect("it can be read")
}

fn restored(repository: &Repository, backup: &str, expected: &Files) {
    let folder = tempfile::tempdir().expect("a directory");
    let target = folder.path().join("data");
    restore(repository, backup, &target, &Progress::hidden()).expect("restored");
    assert_restored(&target, expected);
}

/// Small files, so that exhaustive loops are fast.
fn small(seed: u64) -> Files {
    Files::from([
        ("cohort.version".to_owned(), b"cohort 1\n".to_vec()),
        ("innodb/data".to_owned(), noise(seed, 3000)),
        ("log/1".to_owned(), noise(1, 500)),
    ])
}

fn open(store: &Arc<Faulty>) -> Repository {
    Repository::open(store.store(), None).expect("a repository")
}

#[test]
fn every_flipped_bit_is_found_by_verify_and_refused_by_restore() {
    let store = Faulty::new();
    let key = tempfile::tempdir().expect("a directory");
    let key_file = key.path().join("key");
    let repository = Repository::init(store.store(), Some(&key_file)).expect("created");
    take_of(&repository, Fake::new(small(3))).expect("taken");
    for object in objects(&store) {
        let whole = contents(&store, &object.location);
        let step = (whole.len() * 8 / 61).max(1);
        for bit in (0..whole.len() * 8).step_by(step) {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            overwrite(&store, &object.location, damaged);
            let opened = Repository::open(store.store(), Some(&key_file));
            let Ok(opened) = opened else {
                assert_eq!(object.location.as_ref(), "cohort-repository");
                continue;
            };
            let verified = verify_all(&opened);
            let named: Vec<_> = verified.findings.iter().map(|finding| finding.object.as_str()).collect();
            assert_eq!(named, [object.location.as_ref()], "bit {bit}");
            assert!(verified.whole.is_empty());
            let folder = tempfile::tempdir().expect("a directory");
            let outcome = restore(&opened, "latest", &folder.path().join("data"), &Progress::hidden());
            assert!(matches!(outcome, Err(Failure::Damaged(_))), "{}: bit {bit}", object.location);
            assert!(!folder.path().join("data/cohort-backup.json").exists(), "no server would start");
        }
        overwrite(&store, &object.location, whole);
    }
    assert_eq!(verify_all(&repository).findings, []);
}

#[test]
fn a_missing_object_is_named_and_the_next_take_heals_what_the_server_still_has() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    let first = take_of(&repository, Fake::new(files(1))).expect("taken");
    let chunks: Vec<_> = objects(&store)
        .into_iter()
        .filter(|object| object.location.as_ref().starts_with("chunks/"))
        .collect();
    let largest = chunks.iter().max_by_key(|object| object.size).expect("chunks");
    // Same size, other bytes: a list does not show it.
    overwrite(&store, &largest.location, vec![0; largest.size as usize]);
    let second = take_of(&repository, Fake::new(files(1))).expect("taken");
    assert_eq!(second.catalogue.added_bytes, 0, "it relies on what verify proves");
    let verified = verify_all(&repository);
    let [finding] = &verified.findings[..] else { panic!("{:?}", verified.findings) };
    assert_eq!(finding.object, largest.location.as_ref());
    assert_eq!(finding.backups, [first.catalogue.name.clone(), second.catalogue.name.clone()]);
    assert!(finding.cure.contains("--remove-damaged"));

    let removed = verify(&repository, None, true, &Progress::hidden()).expect("read");
    assert_eq!(removed.removed, 1);
    let third = take_of(&repository, Fake::new(files(1))).expect("taken");
    assert_eq!(third.catalogue.added_bytes, largest.size);
    assert_eq!(verify_all(&repository).whole.len(), 3);
    restored(&repository, &first.catalogue.name, &files(1));
}

#[test]
fn a_kill_at_every_step_leaves_each_backup_whole_or_absent() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    let first = take_of(&repository, Fake::new(small(1))).expect("taken").catalogue.name;
    let mut is_done = false;
    for step in 0..200 {
        let killed = store.healthy();
        killed.plan([(step, Fault::Killed)]);
        let outcome = Repository::open(killed.store(), None)
            .and_then(|repository| take_of(&repository, Fake::new(small(2))));
        let after = killed.healthy();
        let repository = open(&after);
        let verified = verify_all(&repository);
        assert_eq!(verified.findings, [], "step {step}");
        assert!(verified.whole.contains(&first), "step {step}");
        restored(&repository, &first, &small(1));
        if outcome.is_ok() {
            assert_eq!(verified.whole.len(), 2, "step {step}: it was acknowledged");
        }
        if verified.whole.len() == 2 {
            restored(&repository, "latest", &small(2));
        }
        // The lock of the killed command names this process, which runs on.
        cohort_backup_tool::lock::remove_all(&repository).expect("removed");
        let again = take_of(&repository, Fake::new(small(2))).expect("taken again");
        restored(&repository, &again.catalogue.name, &small(2));
        if outcome.is_ok() {
            is_done = true;
            break;
        }
    }
    assert!(is_done, "the loop reached the last step");
}

#[test]
fn a_killed_prune_leaves_backups_whole_or_absent() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    for seed in 1..=3 {
        take_of(&repository, Fake::new(small(seed))).expect("taken");
    }
    let keep = Keep { count: Some(1), days: None };
    let mut is_done = false;
    for step in 0..200 {
        let killed = store.healthy();
        killed.plan([(step, Fault::Killed)]);
        let outcome =
            Repository::open(killed.store(), None).and_then(|repository| prune(&repository, keep, false));
        let repository = open(&killed.healthy());
        let verified = verify_all(&repository);
        assert_eq!(verified.findings, [], "step {step}");
        restored(&repository, "latest", &small(3));
        cohort_backup_tool::lock::remove_all(&repository).expect("removed");
        prune(&repository, keep, false).expect("pruned");
        assert_eq!(verify_all(&repository).whole.len(), 1);
        let needed: BTreeSet<_> = repository.find("latest").expect("a backup").chunks().into_keys().collect();
        assert_eq!(repository.stored_chunks().expect("listed").len(), needed.len(), "nothing else is left");
        if outcome.is_ok() {
            is_done = true;
            break;
        }
    }
    assert!(is_done, "the loop reached the last step");
}

/// Takes with one fault at each step in turn: it succeeds or fails, and a success is whole.
fn one_fault_everywhere(fault: Fault, may_fail: bool) {
    let empty = Faulty::new();
    Repository::init(empty.store(), None).expect("created");
    let counting = empty.healthy();
    take_of(&open(&counting), Fake::new(small(5))).expect("taken");
    let steps = counting.state.lock().expect("no panic").operations;
    assert!(steps > 8, "{steps}");
    let mut failures = 0;
    // The last step removes the lock, which no result depends on.
    for step in 0..steps - 1 {
        let store = empty.healthy();
        store.plan([(step, fault)]);
        let outcome = Repository::open(store.store(), None)
            .and_then(|repository| take_of(&repository, Fake::new(small(5))));
        let repository = open(&store.healthy());
        match &outcome {
            Ok(_) => {
                assert_eq!(verify_all(&repository).findings, [], "{fault:?} at {step}");
                restored(&repository, "latest", &small(5));
            }
            Err(failure) => {
                assert!(may_fail, "{fault:?} at {step}: {failure}");
                failures += 1;
                // A catalogue of an unacknowledged backup may be there, whole or reported.
                let verified = verify_all(&repository);
                assert!(verified.findings.iter().all(|f| f.object.starts_with("backups/")), "{step}");
            }
        }
        store.plan([]);
        let repository = open(&store);
        cohort_backup_tool::lock::remove_all(&repository).expect("removed");
        let again = take_of(&repository, Fake::new(small(5))).expect("the next one succeeds");
        restored(&repository, &again.catalogue.name, &small(5));
    }
    assert_eq!(failures > 0, may_fail, "{fault:?}");
}

#[test]
fn errors_that_pass_are_not_noticed() {
    one_fault_everywhere(Fault::Error, false);
}

#[test]
fn lost_replies_are_not_noticed() {
    one_fault_everywhere(Fault::LostReply, false);
}

#[test]
fn writes_that_are_cut_off_never_become_a_backup() {
    one_fault_everywhere(Fault::Partial, true);
    one_fault_everywhere(Fault::PartialError, true);
}

#[test]
fn a_full_store_fails_at_once_and_keeps_what_it_has() {
    one_fault_everywhere(Fault::Full, true);
}

#[test]
fn backups_sort_by_their_order_even_within_a_second() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    let mut names = Vec::new();
    for seed in 1..=20 {
        names.push(take_of(&repository, Fake::new(small(seed))).expect("taken").catalogue.name);
    }
    assert_eq!(repository.backups().expect("listed"), names);
    restored(&repository, "latest", &small(20));
}

#[test]
fn lists_may_lag() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    let stale = objects(&store);
    take_of(&repository, Fake::new(small(1))).expect("taken");
    store.state.lock().expect("no panic").stale_list = Some(stale);
    // Neither the backups nor the chunks are listed: all is written again, and found there.
    let second = take_of(&repository, Fake::new(small(1))).expect("taken");
    assert_eq!(second.catalogue.added_bytes, 0);
    store.state.lock().expect("no panic").stale_list = None;
    assert_eq!(verify_all(&repository).whole.len(), 2);
    restored(&repository, &second.catalogue.name, &small(1));
}

#[test]
fn a_read_only_repository_can_be_restored_and_says_what_it_is() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    take_of(&repository, Fake::new(small(1))).expect("taken");
    store.state.lock().expect("no panic").is_read_only = true;
    restored(&repository, "latest", &small(1));
    assert_eq!(verify_all(&repository).findings, []);
    let outcome: Result<_> = take_of(&repository, Fake::new(small(2)));
    assert_eq!(code(&outcome), 1);
    assert!(outcome.expect_err("read-only").to_string().contains("read only"));
}

#[test]
fn two_writers_do_not_disturb_each_other_and_prune_waits() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| take_of(&open(&store), Fake::new(files(4))).expect("taken")))
            .collect();
        for writer in writers {
            let taken = writer.join().expect("no panic");
            restored(&repository, &taken.catalogue.name, &files(4));
        }
    });
    assert_eq!(verify_all(&repository).whole.len(), 2);

    use cohort_backup_tool::lock::{Lock, Use};
    let keep = Keep { count: Some(1), days: None };
    let adds = Lock::take(&repository, "take", Use::Adds).expect("no other");
    assert_eq!(code(&prune(&repository, keep, false)), 6);
    assert_eq!(code(&prune(&repository, keep, true)), 0, "a dry run deletes nothing");
    drop(adds);
    let deletes = Lock::take(&repository, "prune", Use::Deletes).expect("no other");
    let outcome = take_of(&repository, Fake::new(small(1)));
    assert_eq!(code(&outcome), 6);
    drop(deletes);
    assert_eq!(prune(&repository, keep, false).expect("pruned").kept.len(), 1);
}

#[test]
fn pieces_in_any_order_and_of_any_size_give_the_same_files() {
    for (pieces, is_mixed) in [(1 << 20, false), (1 << 20, true), (300_001, true), (16 << 10, true)] {
        let store = Faulty::new();
        let repository = Repository::init(store.store(), None).expect("created");
        take_of(&repository, Fake { pieces, is_mixed, ..Fake::new(files(6)) }).expect("taken");
        restored(&repository, "latest", &files(6));
    }
}

#[test]
fn what_a_source_must_not_send_is_refused() {
    use cohort_backup_tool::source::{Sink, Source};
    use cohort_backup_tool::take::{Request, take};

    struct Of(Vec<(&'static str, u64, Vec<u8>)>);
    impl Source for Of {
        fn bytes(&self) -> Option<u64> {
            None
        }
        fn send(&mut self, sink: &mut Sink<'_>) -> Result<()> {
            self.0.iter().try_for_each(|(name, offset, bytes)| sink(name, *offset, bytes))
        }
    }
    let good = Fake::new(Files::from([("a".to_owned(), b"0123456789".to_vec())]));
    let manifest = good.manifest().encode().into_bytes();
    let last = ("cohort-backup.json", 0, manifest.clone());
    let whole = ("a", 0, b"0123456789".to_vec());
    let cases = [
        (vec![whole.clone()], "before the manifest"),
        (vec![("a", 0, b"012345678".to_vec()), last.clone()], "checksum"),
        (vec![("a", 0, b"0123456789x".to_vec()), last.clone()], "longer"),
        (vec![whole.clone(), ("a", 4, b"4".to_vec()), last.clone()], "twice"),
        (vec![last.clone()], "checksum"),
        (vec![whole.clone(), ("b", 0, b"x".to_vec()), last.clone()], "does not list 'b'"),
        (vec![("../a", 0, b"x".to_vec())], "not the name of a file"),
        (vec![("/etc/passwd", 0, b"x".to_vec())], "not the name of a file"),
        (vec![whole.clone(), ("cohort-backup.json", 5, manifest.clone())], "gaps"),
        (vec![whole.clone(), ("cohort-backup.json", 0, manifest[..90].to_vec())], "damaged"),
    ];
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    for (pieces, expected) in cases {
        let outcome = take(&repository, &mut Of(pieces), Request::default(), &Progress::hidden());
        let error = outcome.expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(repository.backups(), Ok(Vec::new()));
    }
    take(&repository, &mut Of(vec![whole, last]), Request::default(), &Progress::hidden()).expect("whole");
}

#[test]
fn an_object_that_is_too_large_is_damaged_and_not_read() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    take_of(&repository, Fake::new(small(3))).expect("taken");
    let found = objects(&store);
    let chunk = found.iter().find(|object| object.location.as_ref().starts_with("chunks/")).expect("a chunk");
    overwrite(&store, &chunk.location, vec![0; 6 << 20]);
    let verified = verify_all(&repository);
    assert!(verified.findings[0].what.contains("larger than any"), "{:?}", verified.findings);
    let target = tempfile::tempdir().expect("a directory");
    assert_eq!(code(&restore(&repository, "latest", target.path(), &Progress::hidden())), 3);
    // The next take replaces it.
    take_of(&repository, Fake::new(small(3))).expect("taken");
    assert_eq!(verify_all(&repository).findings, []);
    let description = found.iter().find(|object| object.location.as_ref() == "cohort-repository");
    overwrite(&store, &description.expect("the description").location, vec![b'x'; 1 << 20]);
    assert_eq!(Repository::open(store.store(), None).err().map(|failure| exit_code(&failure)), Some(3));
}

#[test]
fn foreign_files_are_no_backups() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    let taken = take_of(&repository, Fake::new(small(3))).expect("taken");
    overwrite(&store, &"backups/zz.tmp".into(), b"an editor's copy".to_vec());
    assert_eq!(repository.backups().expect("listed"), [taken.catalogue.name]);
    restored(&repository, "latest", &small(3));
    let keep = Keep { count: Some(1), days: Some(u32::MAX) };
    assert_eq!(prune(&repository, keep, false).expect("pruned").kept.len(), 1);
}

#[test]
fn prune_waits_for_readers_too() {
    let store = Faulty::new();
    let repository = Repository::init(store.store(), None).expect("created");
    take_of(&repository, Fake::new(small(3))).expect("taken");
    let keep = Keep { count: Some(1), days: None };
    let reader = Lock::read(&repository, "restore").expect("free").expect("writable");
    let second = Lock::read(&repository, "verify").expect("free");
    assert_eq!(code(&prune(&repository, keep, false)), 6);
    take_of(&repository, Fake::new(small(4))).expect("readers do not matter");
    drop((reader, second));
    prune(&repository, keep, false).expect("pruned");
}
