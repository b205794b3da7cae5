use std::convert::Infallible;

use cohort_base::{Budget, TrxId};
use cohort_locks::{LockTable, MetadataKey, MetadataMode};
use cohort_vfs::{MemFs, OpenMode, TraceFs};

use super::*;
use crate::xa_body::{XaBodyBuilder, XaHead, XaWrite, end_redo};

fn xid(text: &str) -> XaXid {
    XaXid { format_id: 1, gtrid: text.as_bytes().to_vec(), bqual: Vec::new() }
}

fn builder(name: &str) -> XaBodyBuilder {
    let head = XaHead { xid: xid(name), since_us: 1, is_logged: false };
    let names = [(MetadataKey::Schema("s".into()), MetadataMode::SharedRead)];
    XaBodyBuilder::new(head, &names, 0, 0)
}

fn prepare(name: &str) -> Redo {
    builder(name).redo()
}

/// Returns the redo of a branch that writes one key, with a value of this size.
fn prepare_key(name: &str, key: &[u8], bytes: usize) -> Redo {
    let mut builder = builder(name);
    let (participant, index, value) = (ParticipantId(2), IndexId(7), vec![b'v'; bytes]);
    builder.write(XaWrite { participant, index, key, value: Some(&value) });
    builder.redo()
}

/// Returns the redo as recovery reads it from the log: without the token of the first PREPARE.
fn logged(redo: &Redo) -> Redo {
    Redo::new(redo.bytes.clone())
}

fn held() -> XaHeld {
    let locks = LockTable::new(1, || unreachable!("no owner waits"));
    XaHeld { locks: locks.owner(TrxId(1)), memory: Reservation::new(Budget::of_server()) }
}

fn open(fs: &SharedFs) -> XaBranches {
    XaBranches::open(Arc::clone(fs), Path::new("/")).expect("whole")
}

fn names(branches: &XaBranches) -> Vec<String> {
    branches
        .list()
        .iter()
        .map(|it| String::from_utf8(it.body.head().xid.gtrid.clone()).expect("text"))
        .collect()
}

#[test]
fn a_branch_is_ended_by_its_session_or_by_others_when_that_is_gone() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    assert!(branches.begin(&xid("a")));
    assert!(!branches.begin(&xid("a")), "the name is in use");
    assert!(branches.take(&xid("a"), XaTaker::Owner).is_none(), "it is not prepared");
    branches.commit_ordered(CommitSeq(1), &[&prepare("a")]);
    branches.keep(&xid("a"), held());
    branches.forget(&xid("a"));
    assert_eq!(names(&branches), ["a"]);
    assert!(branches.take(&xid("a"), XaTaker::Other).is_none(), "its session lives");
    branches.detach(&xid("a"));
    assert!(branches.take(&xid("a"), XaTaker::Owner).is_none());
    let taken = branches.take(&xid("a"), XaTaker::Other).expect("no session has it");
    assert!(branches.take(&xid("a"), XaTaker::Other).is_none(), "it is about to end");
    branches.give_back(&xid("a"), taken.held, XaTaker::Other);
    assert!(branches.take(&xid("a"), XaTaker::Other).is_some());
    assert!(!branches.begin(&xid("a")));
    branches.commit_ordered(CommitSeq(2), &[&end_redo(&xid("a"))]);
    assert!(names(&branches).is_empty() && branches.begin(&xid("a")));
    branches.forget(&xid("a"));
    assert!(branches.begin(&xid("a")));
}

#[test]
fn prepared_branches_survive_checkpoints_and_replay() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    let checkpoint =
        |branches: &XaBranches, lsn| branches.begin_checkpoint(Lsn(lsn)).and_then(CheckpointTask::finish);
    checkpoint(&branches, 3).expect("written");
    assert!(!fs.exists(Path::new("/xa-prepared")), "a server without XA has no file");
    branches.commit_ordered(CommitSeq(1), &[&prepare("a"), &prepare("b")]);
    branches.begin(&xid("c"));
    checkpoint(&branches, 9).expect("written");
    branches.commit_ordered(CommitSeq(2), &[&end_redo(&xid("a"))]);
    let again = open(&fs);
    assert_eq!((again.durable_lsn(), names(&again)), (Lsn(9), vec!["a".to_owned(), "b".to_owned()]));
    again.replay(&[end_redo(&xid("a")), logged(&prepare("d"))]).expect("decodes");
    let mut found = names(&again);
    found.sort();
    assert_eq!(found, ["b", "d"]);
    assert!(again.take(&xid("b"), XaTaker::Other).is_none(), "it has no locks yet");
    let adopted: Result<usize, Infallible> = again.adopt(|_| Ok(held()));
    assert_eq!(adopted, Ok(2));
    assert!(again.take(&xid("b"), XaTaker::Other).is_some() && !again.begin(&xid("d")));
}

#[test]
fn a_damaged_file_is_refused() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    branches.commit_ordered(CommitSeq(1), &[&prepare("a")]);
    branches.begin_checkpoint(Lsn(9)).and_then(CheckpointTask::finish).expect("written");
    let file = fs.open(Path::new("/xa-prepared"), OpenMode::Write).expect("there");
    file.write_at(b"x", 20).expect("written");
    assert!(XaBranches::open(fs, Path::new("/")).is_err());
}

fn body_files(fs: &SharedFs) -> Vec<String> {
    let names = fs.list(Path::new("/")).expect("in memory");
    let names = names.iter().filter_map(|name| name.to_str());
    names.filter(|name| name.starts_with("xa-branch.")).map(str::to_owned).collect()
}

/// The bytes that a checkpoint writes must not grow with branches that stay.
#[test]
fn a_branch_is_written_once() {
    let memory = MemFs::new();
    let traced = TraceFs::new(Arc::new(memory.clone()));
    let fs: SharedFs = Arc::new(traced.clone());
    let branches = open(&fs);
    let checkpoint =
        |lsn| branches.begin_checkpoint(Lsn(lsn)).and_then(CheckpointTask::finish).expect("written");
    branches.commit_ordered(CommitSeq(1), &[&prepare_key("large", b"k", 100_000), &prepare("small")]);
    checkpoint(1);
    assert_eq!(body_files(&fs), ["xa-branch.1"]);
    for lsn in 2..6 {
        let other = if lsn % 2 == 0 { prepare("other") } else { end_redo(&xid("other")) };
        branches.commit_ordered(CommitSeq(lsn), &[&other]);
        traced.take();
        checkpoint(lsn);
        let trace = traced.take();
        assert!(trace.contains("xa-prepared.new") && !trace.contains("xa-branch"), "{trace}");
    }
    let again = open(&fs);
    let mut found = names(&again);
    found.sort();
    assert_eq!((found, again.durable_lsn()), (vec!["large".to_owned(), "small".to_owned()], Lsn(5)));
    let adopted: Result<usize, Infallible> = again.adopt(|_| Ok(held()));
    assert_eq!(adopted, Ok(2));
    let taken = again.take(&xid("large"), XaTaker::Other).expect("no session has it");
    assert_eq!((taken.body.bytes().len() > 100_000, taken.body.writes()), (true, 1));
    again.commit_ordered(CommitSeq(9), &[&end_redo(&xid("large"))]);
    again.begin_checkpoint(Lsn(9)).and_then(CheckpointTask::finish).expect("written");
    assert_eq!(body_files(&fs), Vec::<String>::new());
}

#[test]
fn the_file_of_a_branch_is_checked_and_goes_when_no_list_names_it() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    branches.commit_ordered(CommitSeq(1), &[&prepare_key("a", b"k", 50_000)]);
    branches.begin_checkpoint(Lsn(9)).and_then(CheckpointTask::finish).expect("written");
    // The state after a crash between writing the branch's file and writing the list.
    fs.open(Path::new("/xa-branch.7"), OpenMode::CreateOrOpen).expect("made");
    drop(open(&fs));
    assert_eq!(body_files(&fs), ["xa-branch.1"]);
    let file = fs.open(Path::new("/xa-branch.1"), OpenMode::Write).expect("there");
    file.write_at(b"x", 200).expect("written");
    let refused = XaBranches::open(fs.clone(), Path::new("/")).err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|text| text.contains("/xa-branch.1")), "{refused:?}");
    fs.remove(Path::new("/xa-branch.1")).expect("there");
    assert!(XaBranches::open(fs, Path::new("/")).is_err(), "gone");
}

/// A table that is opened meanwhile must continue its counter after the branch's keys.
#[test]
fn keys_of_a_branch_count_until_its_writes_are_in_the_engines() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    let (small, large) = (prepare_key("a", b"k5", 1), prepare_key("b", b"k7", 1));
    branches.commit_ordered(CommitSeq(1), &[&small, &large]);
    branches.keep(&xid("b"), held());
    drop((small, large));
    let largest = || branches.largest_key(IndexId(7));
    assert_eq!(largest().as_deref(), Some(&b"k7"[..]));
    assert_eq!(branches.largest_key(IndexId(8)), None);
    let taken = branches.take(&xid("b"), XaTaker::Owner).expect("its session lives");
    branches.commit_ordered(CommitSeq(2), &[&end_redo(&xid("b"))]);
    assert_eq!(names(&branches), ["a"], "it has ended");
    assert_eq!(largest().as_deref(), Some(&b"k7"[..]), "its rows may not be there yet");
    drop(taken);
    assert_eq!(largest().as_deref(), Some(&b"k5"[..]));
}

#[test]
fn a_forgotten_branch_is_logged_less_often_as_it_ages() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    branches.commit_ordered(CommitSeq(1), &[&prepare("a")]);
    let warned = |minutes: u64| branches.forgotten(minutes * 60_000_000 + 2).len();
    assert_eq!([0, 1, 1, 2, 3, 4, 100, 101].map(warned), [0, 1, 0, 1, 0, 1, 1, 0]);
    let sentence = branches.forgotten(1000 * 60_000_000 + 2).remove(0);
    assert!(sentence.contains("XA transaction X'61',X'',1") && sentence.contains("60000 s"), "{sentence}");
}

#[test]
fn many_forgotten_branches_are_logged_in_few_lines() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    let redo: Vec<Redo> = (0..1000).map(|n| prepare(&n.to_string())).collect();
    branches.commit_ordered(CommitSeq(1), &redo.iter().collect::<Vec<_>>());
    let warnings = branches.forgotten(60_000_001);
    assert_eq!(warnings.len(), REPORTED_EACH + 1, "{warnings:?}");
    assert!(warnings.last().is_some_and(|it| it.starts_with("996 more XA transactions")), "{warnings:?}");
    assert!(branches.forgotten(119_000_000).is_empty());
}
