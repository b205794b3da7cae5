//! Distribution of the process's file descriptors.

/// Descriptors reserved for the log, the binary log, checkpoints and spilled redo
/// ([`cohort_vfs::keep_descriptors_from`]).
const KEPT: u64 = 32;
/// Descriptors of the server other than connections, including files that statements use at the same time.
const OWN: u64 = 32;
/// Minimum number of connections.
const CONNECTIONS_MIN: u64 = 10;

/// Shares of the process's descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimits {
    /// Number of descriptors needed for all requested connections.
    pub wanted: u64,
    /// Descriptors from this number on are reserved.
    pub kept_from: u64,
    /// Maximum number of connections.
    pub connections: u64,
}

impl DescriptorLimits {
    /// Distributes `files` descriptors if `connections` connections are requested, and the console if
    /// `has_console`.
    pub fn of(files: u64, connections: u64, has_console: bool) -> DescriptorLimits {
        // As many connections of the console are served as rejected.
        let console = if has_console { 2 * console_connections(files) as u64 } else { 0 };
        let own = KEPT + OWN + console;
        DescriptorLimits {
            wanted: connections.saturating_add(own),
            // A process with very few descriptors fails at its start instead.
            kept_from: files.saturating_sub(KEPT).max(files / 2),
            connections: files.saturating_sub(own).max(CONNECTIONS_MIN).min(connections),
        }
    }
}

/// Returns the number of connections that the console may serve if the process has `files` descriptors.
pub fn console_connections(files: u64) -> usize {
    (files / 16).clamp(8, 256) as usize
}

/// Returns the number of descriptors that the process has open, 0 if the system does not list them.
pub fn open_now() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        let limits = |files, connections| {
            let DescriptorLimits { wanted, kept_from, connections } =
                DescriptorLimits::of(files, connections, false);
            (wanted, kept_from, connections)
        };
        assert_eq!(limits(1024, 151), (215, 992, 151));
        assert_eq!(limits(180, 151), (215, 148, 116));
        assert_eq!(limits(40, 151), (215, 20, 10));
        assert_eq!(limits(40, 5), (69, 20, 5));
    }
}
