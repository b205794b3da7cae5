//! Closing without a flush.
//!
//! By default RocksDB flushes its memtables when a database without a write-ahead log is closed. They hold
//! the writes that no checkpoint has sealed. After a refused recovery, the flush would change the data
//! directory. While a gate delays transactions, it would make writes durable that may still be cut off the
//! log (I3). Everything that may be durable was made durable by the last checkpoint.
//!
//! The `rocksdb` crate does not support this option, so this file calls the C interface.

#![allow(unsafe_code)]

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, Options};

/// Makes databases that are opened with these options drop their memtables when they are closed.
pub fn never_flush(options: &Options) {
    // SAFETY: the pointer refers to options that outlive the call, which sets a flag in them.
    unsafe { ffi::rocksdb_options_set_avoid_flush_during_shutdown(options.as_raw_ptr(), 1) }
}
