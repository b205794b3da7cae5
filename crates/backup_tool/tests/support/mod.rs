//! Backups without a server, and object stores with faults.

#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use cohort_backup_format::{BinlogPosition, FORMAT, FileEntry, FileSum, MANIFEST, Manifest};
use cohort_backup_tool::failure::{Result, exit_code};
use cohort_backup_tool::progress::Progress;
use cohort_backup_tool::repository::Repository;
use cohort_backup_tool::source::{Sink, Source};
use cohort_backup_tool::store::Store;
use cohort_backup_tool::take::{Request, Taken, take};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

/// Files of a backup, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Returns reproducible bytes that can hardly be compressed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Returns the files of a small server: several chunks, a hole, an empty file.
pub fn files(seed: u64) -> Files {
    let mut data = noise(seed, 9 << 20);
    data[5 << 20..6 << 20].fill(0);
    Files::from([
        ("cohort.version".to_owned(), b"cohort 1\n".to_vec()),
        ("innodb/data".to_owned(), data),
        ("log/empty".to_owned(), Vec::new()),
        ("log/zeros".to_owned(), vec![0; 5 << 20]),
        ("binlog.000001".to_owned(), b"an event ".repeat(1000)),
    ])
}

/// A source of such files. `pieces` is the size of the pieces.
pub struct Fake {
    pub files: Files,
    pub server: &'static str,
    pub pieces: usize,
    /// Every second piece is sent after all others.
    pub is_mixed: bool,
    pub timeline: u32,
    pub cut_lsn: u64,
    pub cut: &'static str,
    pub gtid: &'static str,
}

impl Fake {
    pub fn new(files: Files) -> Fake {
        Fake {
            files,
            server: "server-1",
            pieces: 1 << 20,
            is_mixed: false,
            timeline: 1,
            cut_lsn: 0,
            cut: "2026-11-28T19:31:00Z",
            gtid: "0-1-77",
        }
    }

    pub fn manifest(&self) -> Manifest {
        let entry = |(path, bytes): (&String, &Vec<u8>)| {
            let mut sum = FileSum::default();
            sum.add(0, bytes).expect("one piece");
            FileEntry {
                path: path.clone(),
                size: bytes.len() as u64,
                crc32c: Some(sum.of_file(bytes.len() as u64)),
                ranges: Vec::new(),
            }
        };
        Manifest {
            format: FORMAT,
            id: "00112233445566778899aabbccddeeff".to_owned(),
            server_uuid: self.server.to_owned(),
            layout: "shared".to_owned(),
            gtid_current_pos: "0-1-77".to_owned(),
            gtid_binlog_pos: self.gtid.to_owned(),
            timeline: self.timeline,
            cut_lsn: self.cut_lsn,
            binlog: Some(BinlogPosition { file: "binlog.000001".to_owned(), offset: 9000 }),
            cut: self.cut.to_owned(),
            files: self.files.iter().map(entry).collect(),
            ..Manifest::default()
        }
    }

    /// Writes the files as BACKUP SERVER does.
    pub fn write(&self, directory: &Path) {
        for (name, bytes) in &self.files {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().expect("below the directory")).expect("created");
            fs::write(path, bytes).expect("written");
        }
        fs::write(directory.join(MANIFEST), self.manifest().encode()).expect("written");
    }
}

impl Source for Fake {
    fn bytes(&self) -> Option<u64> {
        None
    }

    fn send(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let rounds: &[usize] = if self.is_mixed { &[1, 0] } else { &[2] };
        for round in rounds {
            for (name, bytes) in &self.files {
                for (number, piece) in bytes.chunks(self.pieces).enumerate() {
                    let is_hole = piece.iter().all(|byte| *byte == 0);
                    if !is_hole && (*round == 2 || number % 2 == *round) {
                        sink(name, (number * self.pieces) as u64, piece)?;
                    }
                }
            }
        }
        sink(MANIFEST, 0, self.manifest().encode().as_bytes())
    }
}

/// Takes a backup.
pub fn take_of(repository: &Repository, mut source: Fake) -> Result<Taken> {
    take(repository, &mut source, Request::default(), &Progress::hidden())
}

/// Asserts that a directory has exactly these files and a manifest.
pub fn assert_restored(directory: &Path, files: &Files) {
    for (name, bytes) in files {
        assert!(fs::read(directory.join(name)).expect(name) == *bytes, "{name} differs");
    }
    let verified = cohort_backup_format::verify(directory).expect("a manifest");
    assert_eq!(verified.findings, []);
}

/// Fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Status 500; nothing was done.
    Error,
    /// It was done, and its reply was lost.
    LostReply,
    /// A write kept only the first half, and reported success.
    Partial,
    /// A write kept only the first half, and reported an error.
    PartialError,
    /// There is no room.
    Full,
    /// The process is gone: this and all later operations fail.
    Killed,
}

/// An object store in memory with faults.
pub struct Faulty {
    pub inner: InMemory,
    pub state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub operations: usize,
    /// Faults by operation number.
    pub faults: BTreeMap<usize, Fault>,
    pub is_killed: bool,
    pub is_read_only: bool,
    /// Lists show what there was at this number of writes.
    pub stale_list: Option<Vec<ObjectMeta>>,
}

impl Faulty {
    pub fn new() -> Arc<Faulty> {
        Arc::new(Faulty { inner: InMemory::new(), state: Mutex::default() })
    }

    /// Returns a store with the same objects and without faults.
    pub fn healthy(&self) -> Arc<Faulty> {
        Arc::new(Faulty { inner: self.inner.fork(), state: Mutex::default() })
    }

    pub fn store(self: &Arc<Faulty>) -> Store {
        Store::new(Arc::clone(self) as Arc<dyn ObjectStore>, "memory").expect("a runtime")
    }

    /// Plans faults for the operations from now on.
    pub fn plan(&self, faults: impl IntoIterator<Item = (usize, Fault)>) {
        let mut state = self.state.lock().expect("no panic");
        state.operations = 0;
        state.faults = faults.into_iter().collect();
    }

    fn next(&self) -> Option<Fault> {
        let mut state = self.state.lock().expect("no panic");
        let number = state.operations;
        state.operations += 1;
        let fault = state.faults.get(&number).copied();
        state.is_killed |= fault == Some(Fault::Killed);
        if state.is_killed { Some(Fault::Killed) } else { fault }
    }
}

fn error(fault: Fault) -> Error {
    let source: Box<dyn std::error::Error + Send + Sync> = match fault {
        Fault::Full => Box::new(std::io::Error::from(std::io::ErrorKind::StorageFull)),
        // Not repeated, so that tests need not wait.
        Fault::Killed => Box::new(std::io::Error::from(std::io::ErrorKind::PermissionDenied)),
        fault => format!("{fault:?}").into(),
    };
    Error::Generic { store: "faulty", source }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        if self.state.lock().expect("no panic").is_read_only {
            return Err(Error::PermissionDenied { path: location.to_string(), source: "read only".into() });
        }
        match self.next() {
            None => self.inner.put_opts(location, payload, options).await,
            Some(fault @ (Fault::Partial | Fault::PartialError)) => {
                let whole: Vec<u8> = payload.iter().flat_map(|part| part.to_vec()).collect();
                let half = PutPayload::from(whole[..whole.len() / 2].to_vec());
                let outcome = self.inner.put_opts(location, half, options).await;
                if fault == Fault::Partial { outcome } else { outcome.and(Err(error(fault))) }
            }
            Some(Fault::LostReply) => {
                self.inner.put_opts(location, payload, options).await?;
                Err(error(Fault::LostReply))
            }
            Some(fault) => Err(error(fault)),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> object_store::Result<GetResult> {
        match self.next() {
            None => self.inner.get_opts(location, options).await,
            Some(fault) => Err(error(fault)),
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<ObjectPath>>,
    ) -> BoxStream<'static, object_store::Result<ObjectPath>> {
        match self.next() {
            None => self.inner.delete_stream(locations),
            Some(Fault::LostReply) => {
                let inner = self.inner.delete_stream(locations);
                inner.map(|done| done.and(Err(error(Fault::LostReply)))).boxed()
            }
            Some(fault) => stream::once(async move { Err(error(fault)) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        if let Some(fault) = self.next() {
            return stream::once(async move { Err(error(fault)) }).boxed();
        }
        if let Some(stale) = &self.state.lock().expect("no panic").stale_list {
            let prefix = prefix.cloned().unwrap_or_default();
            let found: Vec<_> = stale
                .iter()
                .filter(|object| object.location.prefix_matches(&prefix))
                .cloned()
                .map(Ok)
                .collect();
            return stream::iter(found).boxed();
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Runs a future to its end.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Returns the objects of a store.
pub fn objects(store: &Faulty) -> Vec<ObjectMeta> {
    let listed = wait(store.inner.list(None).collect::<Vec<_>>());
    listed.into_iter().map(|object| object.expect("in memory")).collect()
}

/// Replaces an object.
pub fn overwrite(store: &Faulty, name: &ObjectPath, bytes: Vec<u8>) {
    wait(store.inner.put(name, bytes.into())).expect("in memory");
}

/// Reads an object.
pub fn contents(store: &Faulty, name: &ObjectPath) -> Vec<u8> {
    wait(async { store.inner.get(name).await?.bytes().await }).expect("in memory").to_vec()
}

/// Returns the exit code of a result.
pub fn code<T>(result: &Result<T>) -> u8 {
    result.as_ref().err().map_or(0, exit_code)
}
