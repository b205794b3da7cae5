//! Closing without a flush.
//!
//! Left alone, RocksDB writes its memtables when it is closed without a log of its own. They hold what no
//! checkpoint has sealed: after a refused recovery that would change the data directory, and behind a gate
//! that held transactions back it would make durable what may still be cut off the log (I3). All that may be
//! durable is so by the last checkpoint.
//!
//! The `rocksdb` crate does not have this option, so this file calls the C interface.

#![allow(unsafe_code)]

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, Options};

/// Databases that are opened with these options drop their memtables when they are closed.
pub fn never_flush(options: &Options) {
    // SAFETY: the pointer is that of options that live through the call, which sets a flag in them.
    unsafe { ffi::rocksdb_options_set_avoid_flush_during_shutdown(options.as_raw_ptr(), 1) }
}
