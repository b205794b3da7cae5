//! Information of the kernel about server processes.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// Returns the resident memory in bytes, or `None` if the process has ended.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the processor time used so far, in seconds.
pub fn processor_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(ticks_of(&stat)? as f64 / ticks_per_second())
}

/// Waits for a child. Returns how it ended and the maximum of its resident memory in bytes.
pub fn wait_for(child: &mut Child) -> io::Result<(ExitStatus, u64)> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::uninit());
    // SAFETY: both live through the call. The child was not reaped, so the number is its own.
    let done = unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok((ExitStatus::from_raw(status), usage.ru_maxrss as u64 * 1024))
}

/// Returns a process and its children.
pub fn family(pid: u32) -> Vec<u32> {
    let parent = |pid: u32| parent_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = numbers.filter(|number| parent(*number) == Some(pid));
    std::iter::once(pid).chain(children).collect()
}

/// Returns the processor time of all programs since the machine's start, in seconds.
pub fn machine_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    Some(busy_ticks_of(&stat)? as f64 / ticks_per_second())
}

fn ticks_per_second() -> f64 {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// Parses `/proc/stat`: the sum of user, nice, system, interrupt and steal time. Idle time and I/O wait are
/// not included.
fn busy_ticks_of(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
    let idle = fields.get(3)? + fields.get(4)?;
    Some(fields.iter().sum::<u64>() - idle)
}

/// Parses `/proc/PID/stat`: user plus system time. The program's name, in parentheses, may contain anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Parses the parent out of `/proc/PID/stat`.
fn parent_of(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Sends a signal to a child of this process that was not reaped yet, or to a child of that one.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: no pointers. The caller owns the process or its parent, so the number does not belong to
    // another process.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Raises the limit of open files of this process and its children to the maximum that the system allows.
pub fn raise_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max.min(1 << 20);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(ticks_of(stat), Some(42));
    }

    #[test]
    fn children_belong_to_the_family() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let family = family(std::process::id());
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(family.contains(&std::process::id()) && family.contains(&child.id()), "{family:?}");
    }

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_ticks_of("cpu  1 2 3 100 200 4 5 6 7 8\ncpu0 9\n"), Some(21));
        assert!(machine_seconds().expect("Linux") > 0.0);
    }

    #[test]
    fn this_process_has_memory_and_has_run() {
        let me = std::process::id();
        assert!(resident_bytes(me).expect("alive") > 100_000);
        assert!(processor_seconds(me).is_some());
    }
}
