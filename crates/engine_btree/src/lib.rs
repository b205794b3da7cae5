//! The B+tree engine: rows are stored in place in memory and pages out of place on disk, and a commit is one
//! store. README.md follows one write through it.

mod block_set;
mod bulk;
mod chain;
mod changes;
mod checkpoint;
mod compress;
#[cfg(test)]
mod compress_tests;
mod engine;
mod frame;
mod inner;
mod install;
mod leaf_hint;
mod many;
mod map;
mod merge;
mod page;
mod page_layout;
mod pins;
mod pool;
mod pool_dump;
mod pool_dump_state;
mod prune;
#[cfg(test)]
mod prune_tests;
mod reads;
mod redo;
mod replay;
mod report;
mod scan;
mod segment;
#[cfg(test)]
mod segment_tests;
mod sound;
mod space;
mod spill;
mod store;
mod superblock;
mod sync;
#[cfg(test)]
mod tests;
mod tree;
mod trx;
mod trx_record;
mod undo;
mod value;
mod verify;
mod version;
mod version_ref;
mod views;

pub use engine::{BtreeEngine, BtreeOptions};
