//! The engine's section of SHOW ENGINE INNODB STATUS.

use std::fmt::Write;

use crate::inner::Inner;
use crate::page::PAGE_BYTES;
use crate::space::BLOCK_BYTES;
use crate::sync::Ordering;

const MIB: f64 = 1_048_576.0;

/// Returns the report, with one line for each potential bottleneck.
pub fn report(inner: &Inner) -> String {
    let mut out = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("a string");
    let pool = &inner.context.pool;
    let (hits, reads) = (pool.hits.load(Ordering::Relaxed), pool.reads.load(Ordering::Relaxed));
    let bytes = |blocks: u64| (blocks * BLOCK_BYTES) as f64 / MIB;
    let pages = |pages: usize| (pages * PAGE_BYTES) as f64 / MIB;
    line(format_args!(
        "Buffer pool: {:.1} of {:.1} MiB in {} pages, {} of them changed since the last checkpoint began",
        pages(pool.pages()),
        pool.bytes_max() as f64 / MIB,
        pool.pages(),
        inner.context.changes.listed_len()
    ));
    line(format_args!(
        "{hits} pages found in memory, {reads} read ({:.2} % of all), {} left memory, {} of them written for it",
        100.0 * reads as f64 / (hits + reads).max(1) as f64,
        pool.evictions.load(Ordering::Relaxed),
        pool.evictions_dirty.load(Ordering::Relaxed)
    ));
    let (undo_bytes, records) = (inner.versions.undo_bytes(), inner.versions.history_len());
    line(format_args!(
        "History list length {records}: transactions whose old row versions are kept, {:.1} MiB in memory and {:.1} MiB in the undo file, in {} rollback segments",
        undo_bytes as f64 / MIB,
        inner.versions.spilled_bytes() as f64 / MIB,
        inner.versions.segments_in_use()
    ));
    let (views, oldest, newest) = inner.views.count();
    line(format_args!(
        "{views} read views in use; the oldest sees transactions up to {oldest}, the newest transaction is {newest}"
    ));
    if newest.0 - oldest.0 > 1_000_000 {
        line(format_args!(
            "Old row versions gather: a transaction or dump reads a view that is long out of date"
        ));
    }
    let (blocks, free) = inner.store.blocks();
    line(format_args!("Data file: {:.1} MiB, {:.1} MiB of it free", bytes(blocks), bytes(free)));
    let compression = &inner.store.compression;
    let compressed = compression.compressed.load(Ordering::Relaxed);
    if compressed > 0 {
        line(format_args!(
            "{compressed} compressed pages written, {:.1} MiB of blocks saved by it; {} more had nothing to save",
            compression.saved_bytes.load(Ordering::Relaxed) as f64 / MIB,
            compression.failed.load(Ordering::Relaxed)
        ));
    }
    let lsn = inner.store.with_map(|map| map.lsn);
    let redo = inner.unflushed_bytes.load(Ordering::Relaxed) as f64 / MIB;
    line(format_args!("Last checkpoint at LSN {lsn}, {redo:.1} MiB of redo since"));
    out
}
