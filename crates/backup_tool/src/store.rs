//! The wall in front of the client of object stores: names and bytes, without async.
//!
//! Nothing else in this program knows `object_store` or its runtime. Objects are written only if they do not
//! exist yet.
//!
//! # On failure
//! An operation that failed in a way that may pass (time-out, status 500) is repeated; the time between the
//! attempts doubles. It fails after [`Store::with_timeout`] with all its repetitions, also if the store does
//! not answer. A write whose reply was lost may have succeeded: its repetition finds the object, and the
//! caller compares.
//!
//! A directory has an object durably when a write returns. Deletions, and objects of a process that was
//! killed, are durable after [`Store::sync_names`].

use std::future::Future;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::{Builder, Runtime};

use crate::failure::{Failure, Result};

const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time of one operation with its repetitions, unless the caller sets another.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// Minimum age of a file that a killed write has left.
const UNFINISHED_MIN: Duration = Duration::from_secs(3600);
/// Names of the environment variables that set up object stores: keys, regions, endpoints.
const VARIABLES: &[&str] = &["AWS_", "AZURE_", "GOOGLE_"];

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Created,
    /// An object of this name exists and was left as it is.
    Exists,
}

/// A listed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub bytes: u64,
}

/// The objects of a repository.
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    /// Until the drop.
    runtime: Option<Runtime>,
    timeout: Duration,
    place: String,
    /// The directory, if it is one.
    folder: Option<PathBuf>,
}

impl Drop for Store {
    fn drop(&mut self) {
        // Does not wait for a thread that a file system without an answer holds.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Creates a directory and its parents, durably.
fn create_dir(path: &std::path::Path) -> std::io::Result<()> {
    let path = std::path::absolute(path)?;
    let new: Vec<&std::path::Path> = path.ancestors().take_while(|above| !above.exists()).collect();
    std::fs::create_dir_all(&path)?;
    let changed = new.iter().filter_map(|folder| folder.parent());
    changed.into_iter().try_for_each(|folder| std::fs::File::open(folder)?.sync_all())
}

impl Store {
    /// Opens a directory or the URL of an object store (`s3://bucket/path`, `gs://`, `az://`). `creates`: the
    /// directory is created if it does not exist.
    pub fn open(place: &str, creates: bool) -> Result<Store> {
        let unusable =
            |error: &dyn std::fmt::Display| Failure::Refused(format!("repository {place}: {error}"));
        if !place.contains("://") {
            if creates {
                create_dir(std::path::Path::new(place)).map_err(|error| unusable(&error))?;
            }
            if !std::path::Path::new(place).is_dir() {
                return Err(unusable(&"no such directory; `cohort-backup init` creates it"));
            }
            let folder = LocalFileSystem::new_with_prefix(place).map_err(|error| unusable(&error))?;
            let mut store = Store::new(Arc::new(folder.with_fsync(true)), place)?;
            store.folder = Some(PathBuf::from(place));
            return Ok(store);
        }
        let url = url::Url::parse(place).map_err(|error| unusable(&error))?;
        let variables =
            std::env::vars().filter(|(name, _)| VARIABLES.iter().any(|prefix| name.starts_with(prefix)));
        cohort_tls::use_as_default();
        let (store, path) =
            object_store::parse_url_opts(&url, variables).map_err(|error| unusable(&error))?;
        Store::new(Arc::new(PrefixStore::new(store, path)), place)
    }

    /// Returns a store over a client, and its name for messages.
    pub fn new(inner: Arc<dyn ObjectStore>, place: &str) -> Result<Store> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
        Ok(Store { inner, runtime: Some(runtime), timeout: TIMEOUT, place: place.to_owned(), folder: None })
    }

    /// Sets the maximum time of one operation with its repetitions.
    pub fn with_timeout(mut self, timeout: Duration) -> Store {
        self.timeout = timeout;
        self
    }

    /// Returns the place of the repository, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Writes an object if none of that name exists.
    pub fn put(&self, name: &str, object: &[u8]) -> Result<Put> {
        let payload = PutPayload::from(bytes::Bytes::copy_from_slice(object));
        let path = Path::from(name);
        let written = self.repeat(|| {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            self.inner.put_opts(&path, payload.clone(), options)
        });
        match written {
            Ok(_) => Ok(Put::Created),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                self.sync_above(name)?;
                Ok(Put::Exists)
            }
            Err(error) => Err(self.failure("write", name, &error)),
        }
    }

    /// Reads an object; `None` if there is none. One that is larger than `bytes_max` is damaged, and not
    /// read.
    pub fn get(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>> {
        let path = Path::from(name);
        let read = || async {
            let found = self.inner.get(&path).await?;
            match found.meta.size <= bytes_max as u64 {
                true => Ok(Some(found.bytes().await?)),
                false => Ok(None),
            }
        };
        match self.repeat(read) {
            Ok(Some(bytes)) => Ok(Some(bytes.into())),
            Ok(None) => Err(Failure::Damaged(format!(
                "the object '{name}' is unusable: it is larger than any of its kind"
            ))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure("read", name, &error)),
        }
    }

    /// Returns the size of an object; `None` if there is none.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        let path = Path::from(name);
        match self.repeat(|| self.inner.head(&path)) {
            Ok(found) => Ok(Some(found.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure("look at", name, &error)),
        }
    }

    /// Calls `each` for every object below a folder.
    pub fn list(&self, folder: &str, mut each: impl FnMut(Listed)) -> Result<()> {
        let path = Path::from(folder);
        // Repeated as a whole, so the caller gets no name twice.
        let found = self.repeat(|| {
            let listed = self.inner.list(Some(&path));
            listed
                .map(|found| found.map(|o| Listed { name: o.location.to_string(), bytes: o.size }))
                .try_collect::<Vec<_>>()
        });
        match found {
            Ok(found) => found.into_iter().for_each(&mut each),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(self.failure("list", folder, &error)),
        }
        Ok(())
    }

    /// Returns the objects below a folder whose names sort after `after`.
    pub fn list_after(&self, folder: &str, after: &str) -> Result<Vec<Listed>> {
        let (path, after) = (Path::from(folder), Path::from(after));
        let found = self.repeat(|| {
            let listed = self.inner.list_with_offset(Some(&path), &after);
            listed
                .map(|found| found.map(|o| Listed { name: o.location.to_string(), bytes: o.size }))
                .try_collect::<Vec<_>>()
        });
        found.map_err(|error| self.failure("list", folder, &error))
    }

    /// Deletes an object; it is no failure if there is none.
    pub fn delete(&self, name: &str) -> Result<()> {
        let path = Path::from(name);
        match self.repeat(|| self.inner.delete(&path)) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failure("delete", name, &error)),
        }
    }

    /// Makes the name of an object durable whose writer may have been killed before it did so.
    fn sync_above(&self, name: &str) -> Result<()> {
        let Some(root) = &self.folder else { return Ok(()) };
        let path = root.join(name);
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
            let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| Failure::of_file(folder, error))?;
        }
        Ok(())
    }

    /// Makes names and deletions below a folder durable before what follows. Object stores keep the order.
    pub fn sync_names(&self, folder: &str) -> Result<()> {
        let Some(root) = &self.folder else { return Ok(()) };
        let mut folders = vec![root.join(folder)];
        while let Some(folder) = folders.pop() {
            let failed = |error| Failure::of_file(&folder, error);
            let entries = match std::fs::read_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                if entry.file_type().map_err(failed)?.is_dir() {
                    folders.push(entry.path());
                }
            }
            std::fs::File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes files that killed writes left in a directory. `object_store` writes to `NAME#NUMBER` first,
    /// and lists show none of them. A file of the last hour may belong to a write that goes on.
    pub fn remove_unfinished(&self) -> Result<usize> {
        let mut folders = Vec::from_iter(self.folder.clone());
        let mut removed = 0;
        while let Some(folder) = folders.pop() {
            let failed = |error| Failure::of_file(&folder, error);
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                if kind.is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let name = entry.file_name();
                let number = name.to_string_lossy().rsplit_once('#').map(|(_, number)| number.to_owned());
                let is_unfinished =
                    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
                let changed = entry.metadata().and_then(|found| found.modified()).map_err(failed)?;
                let is_old = changed.elapsed().is_ok_and(|age| age > UNFINISHED_MIN);
                if kind.is_file() && is_unfinished && is_old {
                    std::fs::remove_file(entry.path()).map_err(failed)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn failure(&self, verb: &str, name: &str, error: &Error) -> Failure {
        Failure::Failed(format!("repository {}: cannot {verb} '{name}': {}", self.place, chain(error)))
    }

    /// Runs an operation until it succeeds or fails for good.
    fn repeat<T, F>(&self, mut operation: impl FnMut() -> F) -> std::result::Result<T, Error>
    where
        F: Future<Output = std::result::Result<T, Error>>,
    {
        let (mut pause, end) = (FIRST_PAUSE, Instant::now() + self.timeout);
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        let mut attempt = 1;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let bounded = async { tokio::time::timeout(left, operation()).await };
            let outcome = runtime.block_on(bounded).unwrap_or_else(|_| {
                let late = format!("no answer for {} s", self.timeout.as_secs());
                Err(Error::Generic { store: "repository", source: late.into() })
            });
            let has_time = end.saturating_duration_since(Instant::now()) > pause;
            match outcome {
                Err(error) if attempt < ATTEMPTS && has_time && may_pass(&error) => std::thread::sleep(pause),
                outcome => return outcome,
            }
            attempt += 1;
            pause *= 2;
        }
    }
}

/// Returns whether an operation may succeed when it is repeated.
fn may_pass(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && matches!(
                io.kind(),
                ErrorKind::StorageFull
                    | ErrorKind::QuotaExceeded
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::PermissionDenied
            )
        {
            return false;
        }
        cause = error.source();
    }
    matches!(error, Error::Generic { .. } | Error::JoinError { .. })
}

/// Returns the texts of an error and its causes that say something new.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
