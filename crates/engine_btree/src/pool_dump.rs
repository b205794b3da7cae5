//! Buffer pool dump and load: the pages that were in memory are read again after a restart.
//!
//! ```text
//! file  "COHPOOL1" | u64 pages | for each page: u32 index, u64 number | u32 CRC-32C of all before
//! ```
//!
//! The file is a hint and is replaced as a whole. A file that is damaged, or lists pages that no longer
//! exist, costs only speed. A load reads one page at a time, in the order of the data file, concurrently with
//! service. It pauses while sessions wait for reads. It ends when the pool is full, because it must not evict
//! pages.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{AbortOnUnwind, IndexId, Reader, Truncated, Write};
use cohort_engine::{PoolDumpRequest, PoolDumpState};
use cohort_vfs::{OpenMode, SharedClock, SharedFs};

use crate::inner::Inner;
use crate::page::PageId;
use crate::pool_dump_state::PAUSE;
use crate::sync::{Ordering, spawn};

const MAGIC: &[u8; 8] = b"COHPOOL1";
/// Number of pages between two updates of the load's progress.
const NOTE_EVERY: usize = 64;
/// Maximum number of pauses before a page.
const PAUSES_MAX: usize = 20;
/// A longer file is damaged: it would list 12 TiB of pages.
const FILE_BYTES_MAX: u64 = 10 << 30;

/// Executes a request.
pub fn request(inner: &Arc<Inner>, request: PoolDumpRequest, clock: &SharedClock) {
    match request {
        PoolDumpRequest::Dump { file, percent } => {
            let pages = inner.context.pool.hottest(percent.into());
            let written =
                inner.pool_dump.fs.replace(&file, &file.with_extension("incomplete"), &encode(&pages));
            inner.pool_dump.state.lock().dump = match written {
                Ok(()) => PoolDumpState::Completed { pages: pages.len(), at_us: clock.wall_us() },
                Err(error) => PoolDumpState::Failed(format!("{}: {error}", file.display())),
            };
        }
        PoolDumpRequest::Load { file } => {
            if !inner.pool_dump.begin_load() {
                return;
            }
            let (of, clock) = (Arc::clone(inner), clock.clone());
            let run = move || {
                // Closing the engine waits until this thread has ended.
                let guard = AbortOnUnwind::during("the reading of listed pages");
                let ended = load(&of, &file, &clock);
                of.pool_dump.set_load(ended);
                guard.disarm();
            };
            if let Err(error) = spawn("pool-load", run) {
                inner.pool_dump.set_load(PoolDumpState::Failed(error.to_string()));
            }
        }
        PoolDumpRequest::AbortLoad => inner.pool_dump.is_aborted.store(true, Ordering::SeqCst),
    }
}

/// Loads the listed pages and returns the result.
fn load(inner: &Inner, file: &Path, clock: &SharedClock) -> PoolDumpState {
    let pages = match read(&inner.pool_dump.fs, file) {
        Ok(pages) => inner.store.in_file_order(pages),
        Err(why) => {
            let why = format!("{}: {why}", file.display());
            log::info!("pages are not loaded into the buffer pool: {why}");
            return PoolDumpState::Failed(why);
        }
    };
    let of = pages.len();
    for (done, (index, id)) in pages.into_iter().enumerate() {
        if inner.pool_dump.is_aborted.load(Ordering::SeqCst) {
            return PoolDumpState::Aborted { done, of, at_us: clock.wall_us() };
        }
        if done.is_multiple_of(NOTE_EVERY) {
            inner.pool_dump.set_load(PoolDumpState::Running { done, of });
        }
        for _ in 0..PAUSES_MAX {
            if !inner.context.pool.is_behind() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        // A page that was merged into its neighbour is unused, even if the map still contains it.
        let is_there = inner.tree(index).is_some_and(|tree| tree.pages.lock().contains(&id));
        if is_there && !inner.context.pool.prefetch_sync(index, id) {
            return PoolDumpState::Completed { pages: done, at_us: clock.wall_us() };
        }
    }
    PoolDumpState::Completed { pages: of, at_us: clock.wall_us() }
}

fn encode(pages: &[(IndexId, PageId)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAGIC.len() + 12 + pages.len() * 12);
    out.extend_from_slice(MAGIC);
    out.put_u64(pages.len() as u64);
    for (index, id) in pages {
        out.put_u32(index.0);
        out.put_u64(id.0);
    }
    out.put_u32(crc32c::crc32c(&out));
    out
}

fn read(fs: &SharedFs, path: &Path) -> Result<Vec<(IndexId, PageId)>, String> {
    let file = fs.open(path, OpenMode::Read).map_err(|error| error.to_string())?;
    let len = file.len().map_err(|error| error.to_string())?;
    let damaged = || "the list of pages is damaged and is ignored".to_owned();
    if len > FILE_BYTES_MAX {
        return Err(damaged());
    }
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, 0).map_err(|error| error.to_string())?;
    decode(&bytes[..read]).ok().flatten().ok_or_else(damaged)
}

/// Returns `None` if the checksum, the magic or the length is wrong.
fn decode(bytes: &[u8]) -> Result<Option<Vec<(IndexId, PageId)>>, Truncated> {
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return Err(Truncated) };
    let mut r = Reader::new(body);
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) || r.bytes(MAGIC.len())? != MAGIC {
        return Ok(None);
    }
    let count = r.u64()?;
    if r.remaining() as u64 != count.saturating_mul(12) {
        return Ok(None);
    }
    let page = |_| -> Result<_, Truncated> { Ok((IndexId(r.u32()?), PageId(r.u64()?))) };
    (0..count).map(page).collect::<Result<_, _>>().map(Some)
}
