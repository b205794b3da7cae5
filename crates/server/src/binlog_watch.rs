//! Background verification: reads the older binary log files once after the start, and reports damaged ones
//! in the error log.
//!
//! Recovery verifies only the newest file. Older files play no part in it, and reading gigabytes would make
//! each start slow. But a damaged file is useless for a replica or a point-in-time recovery, and the day of
//! that recovery is too late to find out. All files are therefore read after the server has started to serve,
//! the newest first since they are needed most, and at a limited rate (`binlog_verify_mib_per_s`) so that
//! statements keep the disk. Damage does not stop the server, because no data depends on the file.

use std::io;
use std::path::PathBuf;
use std::thread::Builder;
use std::time::Duration;

use cohort_binlog::{BinlogError, verify_file};
use cohort_commit::Coordinator;
use cohort_config::{Globals, VarId};
use cohort_vfs::SharedFs;

use crate::error_log::ErrorLog;

/// Number of bytes read between two pauses.
const PIECE_BYTES: u64 = 1 << 20;

/// Starts the thread if there are files to read. It ends when all are read, or with the process.
pub fn start(commit: &Coordinator, globals: &Globals, log: ErrorLog) -> io::Result<()> {
    let pieces_per_s = globals.uint(VarId::BinlogVerifyMibPerS);
    let listed = commit.with_binlog_files(|files| {
        let older = files.numbers().split_last().map_or(&[][..], |(_, older)| older);
        let paths: Vec<PathBuf> = older.iter().rev().map(|number| files.name().path(*number)).collect();
        (files.fs().clone(), paths)
    });
    let Some(Ok((fs, paths))) = listed else { return Ok(()) };
    if paths.is_empty() || pieces_per_s == 0 {
        return Ok(());
    }
    let pause = Duration::from_secs(1) / u32::try_from(pieces_per_s).unwrap_or(u32::MAX);
    Builder::new().name("binlog watch".into()).spawn(move || verify(&fs, &paths, pause, &log)).map(drop)
}

fn verify(fs: &SharedFs, paths: &[PathBuf], pause: Duration, log: &ErrorLog) {
    let (mut since_pause, mut bytes_read, mut damaged) = (0, 0, 0);
    for path in paths {
        let outcome = verify_file(fs, path, &mut |bytes| {
            since_pause += bytes;
            bytes_read += bytes;
            while since_pause >= PIECE_BYTES {
                since_pause -= PIECE_BYTES;
                std::thread::sleep(pause);
            }
        });
        match outcome {
            Ok(()) => {}
            // The file was purged in the meantime.
            Err(BinlogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                damaged += 1;
                log.error(format_args!(
                    "{error}. Until then, replicas that need these events stop with an error"
                ));
            }
        }
    }
    log.note(format_args!(
        "verified {} older binary log files, {:.1} MiB: {damaged} damaged",
        paths.len(),
        bytes_read as f64 / 1_048_576.0
    ));
}
