//! Return-time statistics: the time from a client's acknowledgement to its next commit, and the gain of
//! waiting for it (`group_commit.rs` has the formula).

const BUCKETS: usize = 80;
const FIRST_BUCKET_NS: u64 = 250;
/// Number of entries at which the histogram is halved, so that it follows the load.
const ENTRIES_MAX: u32 = 2048;

/// The flush time, the last acknowledged group, and the histogram of return times.
pub struct ReturnTimes {
    pub flush_ns: u64,
    /// The last acknowledged group: its number, size, number of clients that have returned, time.
    pub group: u64,
    pub acked: usize,
    pub returned: usize,
    pub acked_ns: u64,
    histogram: [u32; BUCKETS],
    entries: u32,
}

fn bucket(ns: u64) -> usize {
    let scaled = ns / FIRST_BUCKET_NS;
    if scaled == 0 {
        return 0;
    }
    let octave = scaled.ilog2();
    let quarter = ((4 * ns / FIRST_BUCKET_NS) >> octave) & 3;
    ((4 * octave) as usize + quarter as usize).min(BUCKETS - 1)
}

fn bucket_end_ns(bucket: usize) -> u64 {
    let (octave, quarter) = (bucket / 4, bucket as u64 % 4);
    (FIRST_BUCKET_NS << octave) * (5 + quarter) / 4
}

impl Default for ReturnTimes {
    fn default() -> ReturnTimes {
        ReturnTimes {
            flush_ns: 0,
            group: 0,
            acked: 0,
            returned: 0,
            acked_ns: 0,
            histogram: [0; BUCKETS],
            entries: 0,
        }
    }
}

impl ReturnTimes {
    /// Returns the best time to wait now. `None` if waiting does not pay.
    pub fn wait_ns(&self, now_ns: u64, queued: usize) -> Option<u64> {
        let out = self.acked.saturating_sub(self.returned) as f64;
        let flush = self.flush_ns as f64;
        let elapsed = now_ns.saturating_sub(self.acked_ns);
        let tail: u32 = self.histogram[bucket(elapsed)..].iter().sum();
        if out == 0.0 || tail == 0 {
            return None;
        }
        let share = |upto: usize| {
            let found: u32 = self.histogram[bucket(elapsed)..=upto].iter().sum();
            f64::from(found) / f64::from(tail)
        };
        let within_flush = share(bucket(elapsed + self.flush_ns));
        let mut best = (0.0, None);
        for b in bucket(elapsed)..BUCKETS {
            let wait_ns = bucket_end_ns(b).saturating_sub(elapsed);
            if wait_ns > self.flush_ns {
                break;
            }
            let gain = out * flush * share(b) - wait_ns as f64 * (queued as f64 + out * within_flush);
            if gain > best.0 {
                best = (gain, Some(wait_ns));
            }
        }
        best.1
    }

    /// Records that a client returned this long after its acknowledgement.
    pub fn record_return(&mut self, after_ns: u64) {
        self.histogram[bucket(after_ns)] += 1;
        self.entries += 1;
        if self.entries >= ENTRIES_MAX {
            self.histogram.iter_mut().for_each(|n| *n /= 2);
            self.entries = self.histogram.iter().sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_times_without_gaps() {
        for ns in [0, 249, 250, 311, 312, 499, 500, 1_000, 77_777, 1_400_000, 33_000_000] {
            let b = bucket(ns);
            assert!(ns <= bucket_end_ns(b), "{ns} in bucket {b}");
            assert!(b == 0 || ns + 1 >= bucket_end_ns(b - 1), "{ns} in bucket {b}");
        }
        assert_eq!(bucket(u64::MAX / 8), BUCKETS - 1);
    }

    fn returns(return_ns: u64) -> ReturnTimes {
        let mut returns = ReturnTimes {
            flush_ns: 1_400_000,
            acked: 16,
            acked_ns: 100_000_000_000,
            ..ReturnTimes::default()
        };
        (0..128).for_each(|_| returns.record_return(return_ns));
        returns
    }

    #[test]
    fn waits_for_clients_that_return_soon_and_not_for_those_that_think() {
        let wait = returns(50_000).wait_ns(100_000_010_000, 8).expect("pays");
        assert!((40_000..200_000).contains(&wait), "{wait}");
        assert_eq!(returns(1_390_000).wait_ns(100_000_010_000, 64), None, "no client is caught cheaply");
    }
}
