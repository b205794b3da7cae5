//! Memory limit of the process's control group (cgroup).
//!
//! A process is in one group of each hierarchy, and the ancestors of a group limit it, too.
//! `/proc/self/cgroup` names the groups. `/proc/self/mountinfo` lists where the hierarchies are mounted, and
//! with which root: in a container the mount may begin at the container's own group. Version 2 has one
//! hierarchy for all resources; version 1 has a separate one for memory. A machine may have both mounted.

use std::path::{Path, PathBuf};

/// Reads a file. Returns `None` if it cannot be read.
pub(crate) type ReadFile<'r> = &'r dyn Fn(&Path) -> Option<String>;

/// A mounted hierarchy that may limit memory.
struct Mount {
    /// The group that appears at the mount point.
    root: PathBuf,
    at: PathBuf,
    limit_file: &'static str,
}

/// Returns the lowest limit of the process's groups and their ancestors, or `None` if there is none.
pub(crate) fn memory_limit(read: ReadFile<'_>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    mounts
        .lines()
        .filter_map(mount_of)
        .filter_map(|mount| limit_below(&mount, group_of(&groups, mount.limit_file)?, read))
        .min()
}

const LIMIT_V1: &str = "memory.limit_in_bytes";
const LIMIT_V2: &str = "memory.max";

/// Parses a line of `mountinfo`: `id parent device root mountpoint options .. - type source superoptions`.
fn mount_of(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, at) = (unescaped(place.next()?), unescaped(place.next()?));
    let mut kind = kind.split(' ');
    let limit_file = match kind.next()? {
        "cgroup2" => LIMIT_V2,
        "cgroup" if kind.nth(1)?.split(',').any(|option| option == "memory") => LIMIT_V1,
        _ => return None,
    };
    Some(Mount { root: root.into(), at: at.into(), limit_file })
}

/// Decodes octal escapes like `\040` for a space.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[3..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// Returns the process's group in the hierarchy. Lines have the form `number:controllers:path`.
fn group_of<'g>(groups: &'g str, limit_file: &str) -> Option<&'g str> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = match limit_file {
            LIMIT_V2 => controllers.is_empty(),
            _ => controllers.split(',').any(|controller| controller == "memory"),
        };
        is_it.then_some(path)
    })
}

/// Returns the lowest limit from the group up to the mount point.
fn limit_below(mount: &Mount, group: &str, read: ReadFile<'_>) -> Option<u64> {
    // If the group is outside of the mounted part, the mount point is used instead.
    let inner = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let lowest = mount.at.join(inner);
    let seen = lowest.ancestors().take_while(|path| path.starts_with(&mount.at));
    // `max`, or a number.
    seen.filter_map(|path| read(&path.join(mount.limit_file))?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        memory_limit(&|path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, content)| (*content).to_owned())
        })
    }

    const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "36 25 0:31 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n\
                      37 25 0:32 / /sys/fs/cgroup/cpu rw shared:11 - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn the_least_limit_of_a_group_and_its_ancestors_counts() {
        let own = [
            ("/proc/self/cgroup", "0::/a.slice/b.service\n"),
            ("/proc/self/mountinfo", V2),
            ("/sys/fs/cgroup/a.slice/b.service/memory.max", "2000\n"),
            ("/sys/fs/cgroup/a.slice/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.max", "max\n"),
        ];
        assert_eq!(limit(&own), Some(1000), "version 2: the ancestor's");
        assert_eq!(limit(&own[..3]), Some(2000), "version 2: its own");
        assert_eq!(limit(&own[..2]), None, "version 2: none");
        let v1 = [
            ("/proc/self/cgroup", "9:cpu,cpuacct:/x\n8:memory:/a/b\n0::/c\n"),
            ("/proc/self/mountinfo", V1),
            ("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3000\n"),
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"),
        ];
        assert_eq!(limit(&v1), Some(3000), "version 1");
        let container = [
            ("/proc/self/cgroup", "0::/docker/abc/init\n"),
            ("/proc/self/mountinfo", "9 8 0:30 /docker/abc /sys/fs/cgroup\\040x ro - cgroup2 cgroup rw\n"),
            ("/sys/fs/cgroup x/init/memory.max", "max"),
            ("/sys/fs/cgroup x/memory.max", "500"),
        ];
        assert_eq!(limit(&container), Some(500), "the mount begins with the container's group");
        let elsewhere = [
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "9 8 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
            ("/sys/fs/cgroup/memory.max", "700"),
        ];
        assert_eq!(limit(&elsewhere), Some(700), "the group is not the one that is mounted");
        assert_eq!(limit(&[]), None);
    }
}
