//! Information about the machine and the process, for system variables and the start.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Buffer size for the texts of one passwd entry.
const PASSWD_BYTES: usize = 16 << 10;

/// Makes new files of the process accessible to its user and group only, as MariaDB does.
pub fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::RWXO);
}

/// Ends the process at once, as in a crash. Nothing is closed.
pub fn end_process(code: i32) -> ! {
    // SAFETY: nothing of the process is used afterwards. Unlike `exit`, it runs no destructors of libraries,
    // which other threads may be using.
    unsafe { libc::_exit(code) }
}

/// Returns the host name of the machine.
pub fn host_name() -> String {
    let mut bytes = [0u8; 256];
    // SAFETY: the pointer and length are those of a live array; the last byte stays zero.
    let result = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    if result == 0 { name.to_string_lossy().into_owned() } else { "localhost".to_owned() }
}

/// Returns the name of the machine's time zone, as `date +%Z` prints it.
pub fn time_zone() -> String {
    // SAFETY: a struct of integers and a pointer that may be null.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    let mut now: libc::time_t = 0;
    // SAFETY: both pointers are to live variables; tm_zone then points to a string of the C library.
    unsafe {
        libc::time(&mut now);
        libc::localtime_r(&now, &mut parts);
        match parts.tm_zone.is_null() {
            true => "UTC".to_owned(),
            false => CStr::from_ptr(parts.tm_zone).to_string_lossy().into_owned(),
        }
    }
}

/// Returns the number of cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the memory that this process may use: that of the machine, or the limit of its control group if
/// that is lower.
pub fn memory_bytes() -> u64 {
    // SAFETY: no pointers.
    let (pages, page_bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page_bytes).unwrap_or(0));
    let group = crate::control_group::memory_limit(&|path| std::fs::read_to_string(path).ok());
    match machine.min(group.unwrap_or(u64::MAX)) {
        0 => u64::MAX,
        bytes => bytes,
    }
}

/// Raises the limit of open files to `wanted`, or to the hard limit if it is 0. Returns the limit in force. A
/// privileged process may raise the hard limit, too.
pub fn open_files(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live variable.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 0;
    }
    let wanted = if wanted == 0 { limit.rlim_max } else { wanted };
    for target in [wanted, wanted.min(limit.rlim_max)] {
        let raised = libc::rlimit { rlim_cur: target, rlim_max: limit.rlim_max.max(target) };
        // SAFETY: the pointer is to a live variable.
        if target > limit.rlim_cur && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            return target;
        }
    }
    limit.rlim_cur
}

/// Switches to another user if the process runs as root.
pub fn become_user(name: &str) -> io::Result<()> {
    if !is_root() || name == "root" {
        return Ok(());
    }
    let (c_name, uid, gid) = ids_of(name)?;
    // SAFETY: the name ends with a zero byte. The groups are set before the user, who could not change them.
    let done = unsafe {
        libc::initgroups(c_name.as_ptr(), gid) == 0 && libc::setgid(gid) == 0 && libc::setuid(uid) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns whether the process has root privileges.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Creates a directory and its missing parents, owned by a user. Does nothing without root privileges.
pub fn make_directory_of(path: &Path, user: &str) -> io::Result<()> {
    if !is_root() || user == "root" {
        return Ok(());
    }
    let (_, uid, gid) = ids_of(user)?;
    let missing: Vec<&Path> =
        path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    for path in missing.into_iter().rev() {
        fs::DirBuilder::new().mode(0o700).create(path)?;
        std::os::unix::fs::chown(path, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Looks up a user: returns its name as a C string, its user id and its group id.
fn ids_of(name: &str) -> io::Result<(CString, libc::uid_t, libc::gid_t)> {
    let c_name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name ends with a zero byte. No other thread runs yet that could use the C library's record.
    let record = unsafe { libc::getpwnam(c_name.as_ptr()) };
    if record.is_null() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no user '{name}'")));
    }
    // SAFETY: the call has just returned the record, and it is not null.
    let (uid, gid) = unsafe { ((*record).pw_uid, (*record).pw_gid) };
    Ok((c_name, uid, gid))
}

/// Returns the name of the user that the process at the other end of a Unix socket runs as.
pub(crate) fn user_of_peer(socket: BorrowedFd<'_>) -> Option<String> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, the pointers are to live variables, the length is that of the first.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if result != 0 || length as usize != size_of::<libc::ucred>() {
        return None;
    }
    // SAFETY: a struct of integers and pointers that may be null.
    let mut record: libc::passwd = unsafe { std::mem::zeroed() };
    let (mut texts, mut found) = (vec![0u8; PASSWD_BYTES], std::ptr::null_mut());
    // SAFETY: all pointers are to live variables, and the length is that of the buffer.
    let result = unsafe {
        libc::getpwuid_r(peer.uid, &raw mut record, texts.as_mut_ptr().cast(), texts.len(), &raw mut found)
    };
    if result != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the record was found; its name points into `texts`, which lives, and ends with a zero byte.
    let name = unsafe { CStr::from_ptr(record.pw_name) };
    name.to_str().ok().map(str::to_owned)
}
