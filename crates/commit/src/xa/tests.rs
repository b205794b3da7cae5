use std::convert::Infallible;

use cohort_base::{Budget, TrxId};
use cohort_locks::{LockTable, MetadataMode, NameKey};
use cohort_vfs::MemFs;

use super::*;
use crate::xa_body::{XaBodyBuilder, XaHead, end_redo};

fn xid(text: &str) -> XaXid {
    XaXid { format_id: 1, gtrid: text.as_bytes().to_vec(), bqual: Vec::new() }
}

fn prepare(name: &str) -> Redo {
    let head = XaHead { xid: xid(name), since_us: 1, is_logged: false };
    let names = [(NameKey::Schema("s".into()), MetadataMode::SharedRead)];
    XaBodyBuilder::new(head, &names, [].into_iter()).redo().1
}

fn held() -> XaHeld {
    let locks = LockTable::new(1, || unreachable!("nobody waits"));
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
    let taken = branches.take(&xid("a"), XaTaker::Other).expect("nobody has it");
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
    again.replay(&[end_redo(&xid("a")), prepare("d")]).expect("decodes");
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

#[test]
fn a_forgotten_branch_is_told_about_and_more_rarely_as_it_ages() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let branches = open(&fs);
    branches.commit_ordered(CommitSeq(1), &[&prepare("a")]);
    let told = |minutes: u64| branches.forgotten(minutes * 60_000_000 + 2).len();
    assert_eq!([0, 1, 1, 2, 3, 4, 100, 101].map(told), [0, 1, 0, 1, 0, 1, 1, 0]);
    let sentence = branches.forgotten(1000 * 60_000_000 + 2).remove(0);
    assert!(sentence.contains("XA transaction X'61',X'',1") && sentence.contains("60000 s"), "{sentence}");
}
