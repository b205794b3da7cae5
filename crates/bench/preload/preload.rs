//! Library to be preloaded into a server: counts the calls that flush files to the disk, and can slow them
//! down.
//!
//! The counters are in a file that both sides map. The environment variable `COHORT_BENCH_FLUSHES` names it.
//! It is an array of 64-bit words:
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | 0 | library | 1 once the library runs inside the server |
//! | 1 | library | calls of `fsync` |
//! | 2 | library | calls of `fdatasync` |
//! | 3 | library | calls of `sync_file_range` (not a flush: it does not flush the disk's cache) |
//! | 4 | library | nanoseconds spent in `fsync` and `fdatasync`, including waits for the emulated disk |
//! | 5 | benchmark | minimum nanoseconds of each `fsync` and `fdatasync`; 0 for the speed of the real disk |
//! | 6 | benchmark | 1: the binary log's files are on a separate disk |
//!
//! If word 5 is set, the calls run one at a time, as on a disk with one head: each call runs on the real disk
//! and then sleeps for the rest of its time. The sleep sets a timer slack of 1 ns (the kernel's default of 50
//! us would be added to each flush) and then restores the thread's own slack, because a server may have
//! chosen one.
//!
//! Without the variable the calls are passed through unchanged. Only the standard library is used, because
//! the build script compiles just this file.

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

const WORDS: usize = 8;
const READY: usize = 0;
const FSYNC: usize = 1;
const FDATASYNC: usize = 2;
const SYNC_FILE_RANGE: usize = 3;
const NANOSECONDS: usize = 4;
const DELAY: usize = 5;
const TWO_DISKS: usize = 6;

type Flush = unsafe extern "C" fn(c_int) -> c_int;
type FlushRange = unsafe extern "C" fn(c_int, i64, i64, c_uint) -> c_int;

const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const PR_SET_TIMERSLACK: c_int = 29;
const PR_GET_TIMERSLACK: c_int = 30;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn prctl(option: c_int, argument: c_ulong, ...) -> c_int;
}

/// The next definition of a function: that of libc.
struct Real {
    name: &'static std::ffi::CStr,
    address: AtomicUsize,
}

impl Real {
    const fn new(name: &'static std::ffi::CStr) -> Real {
        Real { name, address: AtomicUsize::new(0) }
    }

    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return known as *mut c_void;
        }
        // SAFETY: the name ends with a NUL; RTLD_NEXT is valid in a preloaded library.
        let found = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) };
        assert!(!found.is_null(), "libc has no {:?}", self.name);
        self.address.store(found as usize, Ordering::Relaxed);
        found
    }
}

static REAL_FSYNC: Real = Real::new(c"fsync");
static REAL_FDATASYNC: Real = Real::new(c"fdatasync");
static REAL_SYNC_FILE_RANGE: Real = Real::new(c"sync_file_range");

type Words = [AtomicU64; WORDS];

/// Returns the shared counters if the benchmark has requested them.
fn words() -> Option<&'static Words> {
    static MAPPED: OnceLock<Option<&'static Words>> = OnceLock::new();
    *MAPPED.get_or_init(|| {
        let path = std::env::var_os("COHORT_BENCH_FLUSHES")?;
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
        // SAFETY: a new mapping of a file that the benchmark made long enough. The descriptor is never
        // closed.
        let at = unsafe {
            mmap(
                std::ptr::null_mut(),
                WORDS * 8,
                PROT_READ_WRITE,
                MAP_SHARED,
                file.into_raw_fd(),
                0,
            )
        };
        if at as isize == -1 {
            return None;
        }
        // SAFETY: the mapping is page-aligned, long enough, never unmapped, and accessed only by atomic
        // operations.
        let words = unsafe { &*at.cast::<Words>() };
        words[READY].store(1, Ordering::Relaxed);
        Some(words)
    })
}

fn sleep_until(end: Instant) {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return;
    }
    // SAFETY: these two options get and set plain numbers of the calling thread.
    let slack = unsafe { prctl(PR_GET_TIMERSLACK, 0) };
    // SAFETY: as above.
    unsafe { prctl(PR_SET_TIMERSLACK, 1) };
    std::thread::sleep(left);
    if slack > 0 {
        // SAFETY: as above.
        unsafe { prctl(PR_SET_TIMERSLACK, slack as c_ulong) };
    }
}

/// Returns whether the file has the name that the benchmark gives to the server's binary log.
fn is_binary_log(fd: c_int) -> bool {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("binlog."))
}

fn flush(real: &Real, counter: usize, fd: c_int) -> c_int {
    static DISKS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];

    // SAFETY: libc's fsync and fdatasync have this signature.
    let call = unsafe { std::mem::transmute::<*mut c_void, Flush>(real.address()) };
    let Some(words) = words() else {
        // SAFETY: passes on the caller's own arguments.
        return unsafe { call(fd) };
    };
    let asked = Instant::now();
    let delay = Duration::from_nanos(words[DELAY].load(Ordering::Relaxed));
    let disk = usize::from(words[TWO_DISKS].load(Ordering::Relaxed) == 1 && is_binary_log(fd));
    let turn = (!delay.is_zero()).then(|| DISKS[disk].lock().unwrap_or_else(|broken| broken.into_inner()));
    let began = Instant::now();
    // SAFETY: passes on the caller's own arguments.
    let result = unsafe { call(fd) };
    // A failed call returns at once: nothing below may change errno.
    if result != 0 {
        return result;
    }
    if turn.is_some() {
        sleep_until(began + delay);
    }
    drop(turn);
    words[counter].fetch_add(1, Ordering::Relaxed);
    words[NANOSECONDS].fetch_add(asked.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}

/// Replaces libc's `fsync`.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: c_int) -> c_int {
    flush(&REAL_FSYNC, FSYNC, fd)
}

/// Replaces libc's `fdatasync`.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: c_int) -> c_int {
    flush(&REAL_FDATASYNC, FDATASYNC, fd)
}

/// Replaces libc's `sync_file_range`.
#[unsafe(no_mangle)]
pub extern "C" fn sync_file_range(fd: c_int, offset: i64, bytes: i64, flags: c_uint) -> c_int {
    if let Some(words) = words() {
        words[SYNC_FILE_RANGE].fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: libc's function has this signature.
    let call =
        unsafe { std::mem::transmute::<*mut c_void, FlushRange>(REAL_SYNC_FILE_RANGE.address()) };
    // SAFETY: passes on the caller's own arguments.
    unsafe { call(fd, offset, bytes, flags) }
}
