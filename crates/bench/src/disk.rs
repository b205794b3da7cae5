//! Disk of the data directories: its flush time, real or emulated.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The disk that all servers are measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Minimum time of a flush, one flush at a time. Zero stands for the real disk.
    pub flush: Duration,
    /// The binary log has a separate disk.
    pub is_two: bool,
}

impl Disk {
    pub const REAL: Disk = Disk { flush: Duration::ZERO, is_two: false };
    /// A good server disk, for measurements that do not run on the real disk.
    pub const FAST: Disk = Disk { flush: Duration::from_micros(120), is_two: false };
    /// A solid-state disk without a battery-backed cache.
    pub const SSD: Disk = Disk { flush: Duration::from_micros(1400), is_two: false };
    /// A rotating disk.
    pub const HDD: Disk = Disk { flush: Duration::from_millis(33), is_two: false };
    /// Two solid-state disks: one for the binary log, one for everything else.
    pub const SSDS: Disk = Disk { is_two: true, ..Disk::SSD };

    /// Parses `real`, `ssd`, `ssds` (two), `hdd`, or microseconds per flush.
    pub fn parse(text: &str) -> Option<Disk> {
        match text {
            "real" => Some(Disk::REAL),
            "ssd" => Some(Disk::SSD),
            "ssds" => Some(Disk::SSDS),
            "hdd" => Some(Disk::HDD),
            _ => text.parse().ok().map(|us| Disk { flush: Duration::from_micros(us), ..Disk::REAL }),
        }
    }

    pub fn name(self) -> String {
        match self {
            Disk::REAL => "real".to_owned(),
            Disk::SSD => "ssd".to_owned(),
            Disk::SSDS => "ssds".to_owned(),
            Disk::HDD => "hdd".to_owned(),
            other => format!("{}us", other.flush.as_micros()),
        }
    }
}

/// Duration of a durable write on the idle machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlushTimes {
    /// Microseconds of one overwrite of 4 KiB with `fdatasync`.
    pub bare_us: f64,
    /// Microseconds of the same write if one thread requests it over a socket and another one executes it and
    /// replies: the minimum for a server.
    pub asked_us: f64,
}

/// Returns the medians of `count` writes in `dir`.
pub fn flush_times(dir: &Path, count: usize) -> io::Result<FlushTimes> {
    let path = dir.join("probe");
    let probe = Probe::make(&path)?;
    let bare_us = median_us(count, |n| probe.write(n))?;
    let (mut client, mut server) = UnixStream::pair()?;
    let serve = move || -> io::Result<()> {
        let mut request = [0; 24];
        for n in 0.. {
            if server.read(&mut request)? == 0 {
                break;
            }
            probe.write(n)?;
            server.write_all(&[0; 48])?;
        }
        Ok(())
    };
    let server = std::thread::spawn(serve);
    let mut answer = [0; 48];
    let asked_us = median_us(count, |_| {
        client.write_all(&[0; 24])?;
        client.read_exact(&mut answer)
    });
    drop(client);
    server.join().unwrap_or_else(|_| Err(io::Error::other("the probe's thread panicked")))?;
    std::fs::remove_file(&path)?;
    Ok(FlushTimes { bare_us, asked_us: asked_us? })
}

fn median_us(count: usize, mut once: impl FnMut(usize) -> io::Result<()>) -> io::Result<f64> {
    let mut times = Vec::with_capacity(count);
    for n in 0..count.max(1) {
        let began = Instant::now();
        once(n)?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// A file with allocated blocks.
struct Probe(File);

impl Probe {
    const BLOCK: usize = 4096;
    const BLOCKS: usize = 1024;

    fn make(path: &Path) -> io::Result<Probe> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        file.write_all_at(&vec![0; Self::BLOCK * Self::BLOCKS], 0)?;
        file.sync_all()?;
        Ok(Probe(file))
    }

    fn write(&self, n: usize) -> io::Result<()> {
        self.0.write_all_at(&[n as u8 | 1; Self::BLOCK], (n % Self::BLOCKS * Self::BLOCK) as u64)?;
        self.0.sync_data()
    }
}

/// Returns whether the file system of `dir` is in memory, where a flush costs nothing and proves nothing.
pub fn is_in_memory(dir: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let Ok(path) = std::ffi::CString::new(dir.as_os_str().as_encoded_bytes()) else {
        return false;
    };
    // SAFETY: all zeros is a valid statfs.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a NUL; the result is written into a live struct.
    let result = unsafe { libc::statfs(path.as_ptr(), &mut found) };
    result == 0 && [TMPFS, RAMFS].contains(&found.f_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_by_name_and_by_time() {
        for (text, us) in [("real", 0), ("ssd", 1400), ("ssds", 1400), ("hdd", 33_000), ("250", 250)] {
            let disk = Disk::parse(text).expect("a disk");
            assert_eq!(disk.flush.as_micros(), us);
            assert_eq!(disk.name().trim_end_matches("us"), text);
        }
        assert_eq!(Disk::parse("tape"), None);
    }

    #[test]
    fn a_flush_that_is_asked_for_takes_longer_than_none() {
        let times = flush_times(&std::env::temp_dir(), 20).expect("a temporary directory");
        assert!(times.bare_us > 0.0 && times.asked_us > 0.0, "{times:?}");
    }
}
