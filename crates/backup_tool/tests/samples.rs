//! Kept repositories of every format version: each later version must restore them.
//!
//! `UPDATE_GOLDEN=1` writes those that do not exist. An existing one is never written again.

mod support;

use std::path::{Path, PathBuf};

use cohort_backup_tool::progress::Progress;
use cohort_backup_tool::repository::Repository;
use cohort_backup_tool::restore::restore;
use cohort_backup_tool::store::Store;
use cohort_backup_tool::verify::verify;
use support::{Fake, Files, assert_restored, noise, take_of};

fn kept(seed: u64) -> Files {
    Files::from([
        ("cohort.version".to_owned(), b"cohort 1\n".to_vec()),
        ("innodb/data".to_owned(), noise(seed, 2000)),
        ("log/hole".to_owned(), vec![0; 100_000]),
        ("binlog.000001".to_owned(), b"an event ".repeat(500)),
    ])
}

fn sample(name: &str) -> (PathBuf, Option<PathBuf>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let key_file = name.ends_with("encrypted").then(|| folder.with_extension("key"));
    (folder, key_file)
}

#[test]
fn repositories_of_all_versions_are_restored() {
    for name in ["1-plain", "1-encrypted"] {
        let (folder, key_file) = sample(name);
        let place = folder.to_str().expect("UTF-8");
        if !folder.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
            let store = Store::open(place, true).expect("created");
            let repository = Repository::init(store, key_file.as_deref()).expect("created");
            for seed in [1, 2] {
                let pieces = 700;
                take_of(&repository, Fake { pieces, is_mixed: true, ..Fake::new(kept(seed)) })
                    .expect("taken");
            }
        }
        let store = Store::open(place, false).expect("the sample is kept");
        let repository = Repository::open(store, key_file.as_deref()).expect("this version");
        assert_eq!(verify(&repository, None, false, &Progress::hidden()).expect("read").findings, []);
        let backups = repository.backups().expect("listed");
        assert_eq!(backups.len(), 2);
        for (seed, backup) in [1, 2].into_iter().zip(&backups) {
            let target = tempfile::tempdir().expect("a directory");
            let restored = restore(&repository, backup, target.path(), &Progress::hidden()).expect(name);
            assert_eq!(restored.catalogue.manifest.gtid_current_pos, "0-1-77");
            assert_restored(target.path(), &kept(seed));
        }
    }
}
