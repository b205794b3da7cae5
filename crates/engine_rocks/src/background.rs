//! Background errors: handles flushes and compactions that RocksDB's own threads cannot complete, for example
//! on a full disk.
//!
//! By default RocksDB reacts to such an error by rejecting all writes, which would fail ordered transactions
//! (I6). It later recovers by flushing every memtable, whether or not its content is durable in the log (I3).
//! A listener therefore clears the error. The sealed memtable stays sealed, and the flush of the next
//! checkpoint includes it. RocksDB schedules a failed compaction again by itself. The log keeps all redo
//! until a checkpoint is durable, so nothing depends on the flush that failed.
//!
//! An error while the MANIFEST is written is fatal: RocksDB then does not know which files it has. The
//! process aborts, and the next start recovers from the log.
//!
//! The `rocksdb` crate does not support listeners, so this file calls the C interface.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use librocksdb_sys as ffi;
use parking_lot::Mutex;
use rocksdb::{AsRawPtr, Options};

/// Values of `BackgroundErrorReason` in RocksDB's `listener.h`.
const FLUSH: u32 = 0;
const COMPACTION: u32 = 1;
const MANIFEST_WRITE: u32 = 4;
const FLUSH_WITHOUT_WAL: u32 = 5;
const MANIFEST_WRITE_WITHOUT_WAL: u32 = 6;

/// The error of the last background flush that failed.
#[derive(Default)]
pub struct BackgroundErrors {
    flush: Mutex<Option<String>>,
}

impl BackgroundErrors {
    /// Takes the error of the last failed flush.
    pub fn take_flush(&self) -> Option<String> {
        self.flush.lock().take()
    }

    /// Registers a listener, so that databases opened with these options report their errors here.
    pub fn listen(self: &Arc<Self>, options: &Options) {
        let state = Arc::into_raw(Arc::clone(self)).cast_mut().cast::<c_void>();
        // SAFETY: all callbacks are set, and all except `on_error` ignore their arguments. The state is the
        // pointer of an Arc; `forget` drops it when RocksDB destroys the listener. The options take ownership
        // of the listener.
        unsafe {
            let listener = ffi::rocksdb_eventlistener_create(
                state,
                Some(forget),
                Some(ignore_flush),
                Some(ignore_flush),
                Some(ignore_compaction),
                Some(ignore_compaction),
                Some(ignore_subcompaction),
                Some(ignore_subcompaction),
                Some(ignore_ingestion),
                Some(on_error),
                Some(ignore_stall),
                Some(ignore_sealed),
            );
            ffi::rocksdb_options_add_eventlistener(options.as_raw_ptr(), listener);
        }
    }
}

unsafe extern "C" fn forget(state: *mut c_void) {
    // SAFETY: the pointer is the one that `listen` created, and this is called once.
    drop(unsafe { Arc::from_raw(state.cast_const().cast::<BackgroundErrors>()) });
}

unsafe extern "C" fn on_error(state: *mut c_void, reason: u32, status: *mut ffi::rocksdb_status_ptr_t) {
    // SAFETY: the state lives as long as the listener; the status is valid during the call.
    let (errors, text) = unsafe { (&*state.cast_const().cast::<BackgroundErrors>(), text_of(status)) };
    let is_io = text.starts_with("IO error");
    if matches!(reason, FLUSH | FLUSH_WITHOUT_WAL) {
        *errors.flush.lock() = Some(text.clone());
    }
    match reason {
        FLUSH | COMPACTION | FLUSH_WITHOUT_WAL if is_io => {
            // SAFETY: as above. The caller reads the status again afterwards.
            unsafe { ffi::rocksdb_reset_status(status) };
        }
        MANIFEST_WRITE | MANIFEST_WRITE_WITHOUT_WAL => {
            log::error!("RocksDB cannot write which files it has, stopping; the next start recovers: {text}");
            std::process::abort();
        }
        // RocksDB rejects writes from now on, so the next ordered transaction aborts the process.
        _ => log::error!("RocksDB: {text}"),
    }
}

/// # Safety
/// The status must be valid.
unsafe fn text_of(status: *mut ffi::rocksdb_status_ptr_t) -> String {
    let mut text: *mut c_char = ptr::null_mut();
    // SAFETY: the callee stores null or an owned string, which is freed here.
    unsafe {
        ffi::rocksdb_status_ptr_get_error(status, &mut text);
        if text.is_null() {
            return String::new();
        }
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        ffi::rocksdb_free(text.cast());
        owned
    }
}

unsafe extern "C" fn ignore_flush(
    _: *mut c_void,
    _: *mut ffi::rocksdb_t,
    _: *const ffi::rocksdb_flushjobinfo_t,
) {
}

unsafe extern "C" fn ignore_compaction(
    _: *mut c_void,
    _: *mut ffi::rocksdb_t,
    _: *const ffi::rocksdb_compactionjobinfo_t,
) {
}

unsafe extern "C" fn ignore_subcompaction(_: *mut c_void, _: *const ffi::rocksdb_subcompactionjobinfo_t) {}

unsafe extern "C" fn ignore_ingestion(
    _: *mut c_void,
    _: *mut ffi::rocksdb_t,
    _: *const ffi::rocksdb_externalfileingestioninfo_t,
) {
}

unsafe extern "C" fn ignore_stall(_: *mut c_void, _: *const ffi::rocksdb_writestallinfo_t) {}

unsafe extern "C" fn ignore_sealed(_: *mut c_void, _: *const ffi::rocksdb_memtableinfo_t) {}
