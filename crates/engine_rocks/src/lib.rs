//! The LSM engine on RocksDB. The only importer of `rocksdb`.
//!
//! RocksDB's own write-ahead log is disabled. Its redo, a serialized write batch, is stored in the commit
//! records of the shared log.
//!
//! | module | concept |
//! |---|---|
//! | `engine` | [`RocksEngine`]: memtable apply at the order stage, checkpoints, replay |
//! | `trx` | transactions: a write set over RocksDB reads |
//! | `redo` | serialized write batches: building, joining |
//! | `snapshot` | RocksDB snapshots that own their database |
//! | `background` | errors of RocksDB's own threads |
//! | `closing` | closing without a flush |
//! | `sst` | SST files for ingestion, used by `load` and `staged` |
//! | `load` | bulk load by SST ingestion |
//! | `pin` | the files that a backup copies |
//! | `staged` | large transactions, written to SST files before they are ordered |

mod background;
mod closing;
mod engine;
mod error;
mod load;
mod pin;
mod redo;
mod snapshot;
mod sst;
mod staged;
mod trx;

pub use engine::{RocksEngine, RocksOptions};
