//! Contracts of the file systems: the real one and the one in memory behave alike, a crash keeps synced data
//! and nothing that was never written, and faults happen where they were planned.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use cohort_vfs::{Fault, FaultFs, Fs, MemFs, OpenMode, RealFs, Rng, SeededRng, TraceFs};

fn read_all(fs: &dyn Fs, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::Read).expect("opens");
    let mut buf = vec![0; file.len().expect("len") as usize + 10];
    let n = file.read_at(&mut buf, 0).expect("reads");
    buf.truncate(n);
    buf
}

fn behaves_like_a_file_system(fs: &dyn Fs, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    fs.create_dir_all(dir).expect("mkdir");
    assert_eq!(fs.open(&a, OpenMode::Write).err().expect("missing").kind(), ErrorKind::NotFound);
    let file = fs.open(&a, OpenMode::CreateNew).expect("new");
    assert_eq!(fs.open(&a, OpenMode::CreateNew).err().expect("there").kind(), ErrorKind::AlreadyExists);
    file.write_at(b"hello", 3).expect("write");
    file.sync_data().expect("sync");
    assert_eq!(read_all(fs, &a), b"\0\0\0hello");
    file.set_len(5).expect("cut");
    file.set_len(7).expect("extend");
    assert_eq!(read_all(fs, &a), b"\0\0\0he\0\0");
    assert!(fs.open(&a, OpenMode::Read).expect("read").write_at(b"x", 0).is_err(), "read mode");

    assert!(file.try_lock().expect("lock"));
    let other = fs.open(&a, OpenMode::Write).expect("second");
    assert!(!other.try_lock().expect("lock"), "taken");
    drop(file);
    assert!(other.try_lock().expect("lock"), "free again");

    fs.open(&b, OpenMode::CreateOrOpen).expect("b").write_at(b"old", 0).expect("write");
    fs.rename(&a, &b).expect("rename");
    fs.sync_dir(dir).expect("syncdir");
    assert_eq!(fs.list(dir).expect("list"), vec![Path::new("b").to_path_buf()]);
    assert!(!fs.exists(&a) && fs.exists(&b) && fs.exists(dir));
    fs.remove(&b).expect("remove");
    assert_eq!(other.len().expect("still open"), 7);
    assert!(fs.list(dir).expect("list").is_empty());
    assert!(fs.free_bytes(dir).expect("free") > 0);
}

#[test]
fn real_and_memory_behave_alike() {
    let dir = tempfile::tempdir().expect("tempdir");
    behaves_like_a_file_system(&RealFs, &dir.path().join("d/e"));
    behaves_like_a_file_system(&MemFs::new(), Path::new("/d/e"));
}

#[test]
fn a_settled_file_is_read_from_the_disk() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("tempdir");
    let file = RealFs.open(&dir.path().join("f"), OpenMode::CreateNew).expect("new");
    let (bytes, mut found) = (vec![7; 1 << 20], vec![0; 1 << 20]);
    file.write_at(&bytes, 0).expect("written");
    assert_eq!(file.try_read_at(&mut found, 0).expect("reads"), Some(bytes.len()), "it is in the page cache");
    file.sync_earlier_writes().expect("synced");
    assert_eq!(file.try_read_at(&mut found, 0).expect("reads"), None, "it is not any more");
    assert_eq!(file.read_at(&mut found, 0).expect("reads"), bytes.len());
    assert_eq!(found, bytes);
}

/// Names and bytes that were not synced before a kill are not durable after it either.
#[test]
fn unsynced_writes_of_a_killed_process_can_be_lost() {
    let memory = MemFs::new();
    let write = |fs: &MemFs, name: &str, text: &[u8]| {
        let file = fs.open(Path::new(name), OpenMode::CreateOrOpen).expect("opens");
        file.write_at(text, 0).expect("written");
        file
    };
    write(&memory, "/kept", b"old").sync_data().expect("synced");
    memory.sync_dir(Path::new("/")).expect("synced");
    write(&memory, "/kept", b"new");
    write(&memory, "/made", b"new").sync_data().expect("synced");
    let killed = memory.kill_clone();
    let present = |fs: &MemFs, name: &str| {
        let path = Path::new(name);
        fs.exists(path).then(|| read_all(fs, path))
    };
    assert_eq!(present(&killed, "/kept"), Some(b"new".to_vec()));
    let left: BTreeSet<_> = (0..50)
        .map(|seed| killed.crash_clone(seed))
        .map(|fs| (present(&fs, "/kept"), present(&fs, "/made")))
        .collect();
    let found = |kept: &[u8], made: Option<&[u8]>| (Some(kept.to_vec()), made.map(<[u8]>::to_vec));
    for kept in [b"old", b"new"] {
        for made in [None, Some(&b"new"[..])] {
            assert!(left.contains(&found(kept, made)), "{kept:?} {made:?} is not among {left:?}");
        }
    }
    // After a sync they survive.
    killed.sync_dir(Path::new("/")).expect("synced");
    killed.open(Path::new("/kept"), OpenMode::Write).expect("opens").sync_earlier_writes().expect("synced");
    for seed in 0..50 {
        let fs = killed.crash_clone(seed);
        assert_eq!((present(&fs, "/kept"), present(&fs, "/made")), found(b"new", Some(b"new")));
    }
}

#[test]
fn a_direct_file_takes_whole_blocks_and_odd_bytes() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("tempdir");
    let path = dir.path().join("f");
    let file = RealFs.open_direct(&path, OpenMode::CreateNew).expect("new");
    // More than one piece, from memory that is not aligned.
    let blocks: Vec<u8> = (0..(3 << 20) + 4097u32).map(|n| n as u8).collect();
    file.write_at(&blocks[1..], 8192).expect("blocks");
    file.write_at(b"odd", 5).expect("odd length and place");
    file.write_at(&blocks[..4096], 4096).expect("a block before");
    file.write_at(&[7; 4096], 10_000).expect("a block across two");
    file.sync_data().expect("sync");
    let mut expected = vec![0; 8192];
    expected[5..8].copy_from_slice(b"odd");
    expected[4096..].copy_from_slice(&blocks[..4096]);
    expected.extend_from_slice(&blocks[1..]);
    expected[10_000..14_096].fill(7);
    assert!(read_all(&RealFs, &path) == expected, "what was written");
    let mut part = [0; 10];
    assert_eq!(file.read_at(&mut part, 4090).expect("reads"), 10);
    assert_eq!(part, expected[4090..4100]);
    let read = RealFs.open_direct(&path, OpenMode::Read).expect("read");
    assert!(read.write_at(&[0; 4096], 0).is_err(), "read mode");
}

#[test]
fn a_crash_keeps_what_was_synced_and_tears_the_rest_at_sectors() {
    let fs = MemFs::new();
    let path = Path::new("/f");
    let file = fs.open(path, OpenMode::CreateNew).expect("new");
    file.write_at(&[1; 2048], 0).expect("write");
    file.sync_data().expect("sync");
    fs.sync_dir(Path::new("/")).expect("syncdir");
    file.write_at(&[2; 2048], 0).expect("write");
    file.write_at(&[3; 1000], 2048).expect("write");

    let mut seen = [false; 4];
    for seed in 0..200 {
        let after = read_all(&fs.crash_clone(seed), path);
        assert!(after.len() >= 2048 && after.len() <= 3048, "{}", after.len());
        for sector in after[..2048].chunks(512) {
            assert!(sector.iter().all(|&b| b == sector[0]), "sectors are whole");
            seen[sector[0] as usize] = true;
        }
        seen[3] |= after.len() == 3048;
    }
    assert_eq!(seen, [false, true, true, true], "both old and new sectors survive in some crash");
    assert_eq!(read_all(&fs.kill_clone(), path)[..2048], [2; 2048], "a killed process loses nothing");
}

#[test]
fn names_survive_a_crash_only_after_sync_dir_and_in_order() {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("/d")).expect("mkdir");
    for name in ["/d/a", "/d/b"] {
        fs.open(Path::new(name), OpenMode::CreateNew).expect("new");
    }
    fs.sync_dir(Path::new("/d")).expect("syncdir");
    fs.rename(Path::new("/d/a"), Path::new("/d/c")).expect("rename");
    fs.remove(Path::new("/d/b")).expect("remove");
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let names = fs.crash_clone(seed).list(Path::new("/d")).expect("list");
        seen.insert(names.iter().map(|n| n.display().to_string()).collect::<String>());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["ab", "bc", "c"]);
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let fs = MemFs::new();
    let file = fs.open(Path::new("/f"), OpenMode::CreateNew).expect("new");
    fs.sync_dir(Path::new("/")).expect("syncdir");
    (0..20).for_each(|i| file.write_at(&[i; 700], u64::from(i) * 300).expect("write"));
    for seed in 0..20 {
        let once = read_all(&fs.crash_clone(seed), Path::new("/f"));
        assert_eq!(once, read_all(&fs.crash_clone(seed), Path::new("/f")));
    }
    assert_eq!(SeededRng::new(7).next_u64(), SeededRng::new(7).next_u64());
}

#[test]
fn capacity_is_enforced_and_given_back() {
    let fs = MemFs::new();
    fs.set_capacity_bytes(1000);
    let file = fs.open(Path::new("/f"), OpenMode::CreateNew).expect("new");
    file.write_at(&[1; 800], 0).expect("fits");
    assert_eq!(file.write_at(&[1; 300], 800).expect_err("full").kind(), ErrorKind::StorageFull);
    file.write_at(&[2; 800], 0).expect("overwriting needs no space");
    drop(file);
    fs.remove(Path::new("/f")).expect("remove");
    fs.sync_dir(Path::new("/")).expect("syncdir");
    assert_eq!(fs.free_bytes(Path::new("/")).expect("free"), 1000);
}

#[test]
fn faults_come_at_the_planned_operation() {
    let mem = MemFs::new();
    let fs = FaultFs::new(Arc::new(mem.clone()));
    let file = fs.open(Path::new("/f"), OpenMode::CreateNew).expect("op 0");
    fs.set(Fault::ErrorAt(2, ErrorKind::Other));
    file.write_at(b"1", 0).expect("op 1");
    assert!(file.sync_data().is_err(), "op 2");
    file.sync_data().expect("op 3");
    fs.set(Fault::FullFrom(4));
    file.write_at(b"2", 0).expect("op 4 overwrites");
    assert_eq!(file.write_at(b"3", 1).expect_err("op 5").kind(), ErrorKind::StorageFull);
    assert_eq!(fs.free_bytes(Path::new("/")).expect("free"), 0);
    fs.set(Fault::CrashAt(6));
    assert!(!fs.crashed());
    assert!(file.write_at(b"4", 0).is_err(), "op 6");
    assert!(fs.crashed() && file.read_at(&mut [0], 0).is_err() && fs.list(Path::new("/")).is_err());
    assert_eq!(fs.ops(), 7);
    assert_eq!(
        read_all(&mem, Path::new("/f")),
        b"4",
        "the write that met the crash may have reached the disk"
    );
}

#[test]
fn the_trace_records_all_operations() {
    let fs = TraceFs::new(Arc::new(MemFs::new()));
    let file = fs.open(Path::new("/a"), OpenMode::CreateOrOpen).expect("new");
    file.write_at(b"xyz", 5).expect("write");
    file.sync_data().expect("sync");
    fs.rename(Path::new("/a"), Path::new("/b")).expect("rename");
    file.set_len(1).expect("cut");
    assert_eq!(fs.take(), "create a\nwrite a 5+3\nsync a\nrename a -> b\nsetlen b 1\n");
    assert_eq!(fs.take(), "");
}
