//! Traits for files, clocks and random numbers, so that the same code runs on the real machine and in a
//! simulation that crashes, tears writes and runs out of space on command.
//!
//! | implementation | purpose |
//! |---|---|
//! | `RealFs` | the operating system's files; syncs call libc's `fdatasync`/`fsync` |
//! | `MemFs` | files in memory; `MemFs::crash_clone` keeps synced data and a random share of the rest |
//! | `FaultFs` | wraps another: crash, error or "no space" at the k-th write or sync |
//! | `CountFs` | wraps another: counts and times the operations on each file |
//! | `HookFs` | wraps another: calls a test before each read, write and sync |
//! | `TraceFs` | wraps another: a readable line per operation, for golden I/O traces |

mod clock;
mod count;
mod descriptors;
mod direct;
mod fault;
mod hook;
mod io_report;
mod mem;
mod real;
mod rng;
mod trace;
mod traits;
mod unnamed;
mod world;
mod writeback;

pub use clock::{RealClock, SimClock};
pub use count::CountFs;
pub use descriptors::{keep_descriptors_from, refuse_kept};
pub use fault::{Fault, FaultFs};
pub use hook::{HookFs, Operation};
pub use io_report::{FileIo, IoReport, IoSum};
pub use mem::MemFs;
pub use real::{RealFs, resolved};
pub use rng::{RealRng, SeededRng};
pub use trace::TraceFs;
pub use traits::{Clock, File, Fs, OpenMode, Rng, SharedClock, SharedFile, SharedFs, SharedRng, is_no_space};
pub use unnamed::anonymous_temp_file;
pub use world::World;
pub use writeback::WritebackFile;
