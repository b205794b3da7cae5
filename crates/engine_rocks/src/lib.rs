//! The LSM engine over RocksDB; the only importer of `rocksdb`.
//!
//! RocksDB's own write-ahead log is off: its redo (a serialized write batch) is in the commit record of the
//! one log.
//!
//! | module | concept |
//! |---|---|
//! | `engine` | [`RocksEngine`]: memtable apply at the order stage, checkpoints, replay |
//! | `trx` | a transaction: write set over RocksDB reads |
//! | `redo` | serialized write batches: building, joining |
//! | `snapshot` | RocksDB snapshots that own their database |
//! | `background` | errors of RocksDB's own threads |
//! | `closing` | closing without a flush |
//! | `sst` | sorted files beside the database, for both of the next |
//! | `load` | bulk load by SST ingestion |
//! | `staged` | large transactions, ready on the side before they are ordered |

mod background;
mod closing;
mod engine;
mod load;
mod redo;
mod snapshot;
mod sst;
mod staged;
mod trx;

pub use engine::{RocksEngine, RocksOptions};
