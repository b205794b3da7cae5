//! The format of a backup: a directory, or a stream of pieces of files, with a manifest.
//!
//! A full backup is a data directory with one more file, the manifest `cohort-backup.json` ([`Manifest`]). It
//! is written last, atomically and durably: a directory without it is no backup. While a backup is being
//! written the directory has the file `cohort-backup.unfinished` ([`UNFINISHED`]), and no server starts in
//! it. The last step renames that file to the manifest.
//!
//! # Stream
//! `BACKUP SERVER TO STREAM` sends the same files as pieces: path, offset, bytes. A receiver that stores each
//! piece at its offset, and at the end gives each file the length that the manifest has for it, has the
//! backup. Rules that a receiver may rely on:
//! - no byte of a file is sent twice; pieces of one file come in any order, and other files' pieces between
//!   them;
//! - bytes that are never sent are zeros;
//! - a path is relative, with `/` between its parts and without `..`;
//! - the last file is the manifest, in one or several pieces in ascending order. A stream that ends without
//!   it is no backup.
//!
//! | file | concept |
//! |---|---|
//! | `manifest.rs` | the manifest, its encoding and checksum |
//! | `archive_names.rs` | names and histories of the archive of the log |
//! | `frame.rs` | frames of the archive of the log |
//! | `sum.rs` | checksum of a file whose pieces come in any order |
//! | `verify.rs` | comparison of a directory with its manifest |

mod archive_names;
mod frame;
mod manifest;
mod sum;
mod verify;

pub use archive_names::{
    HISTORY, hex_digits, history_text, log_object_name, log_object_range, parse_history, range_name, range_of,
};
pub use frame::{
    ARCHIVE_FORMAT, FRAME_BYTES_MAX, FilePiece, Frame, FrameError, Hello, LogRange, Start, TimelineStart,
    chained, is_archive_file_name,
};
pub use manifest::{
    BinlogPosition, Crc, FORMAT, FORMAT_FULL, FORMAT_INCREMENTAL, FileEntry, MANIFEST, Manifest,
    ManifestError, Parent, RESTORED, RangeEntry, SourcePosition, UNFINISHED, is_safe_path,
};
pub use sum::{FileSum, Overlap};
pub use verify::{Finding, Verified, verify};
