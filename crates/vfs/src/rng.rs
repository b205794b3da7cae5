//! Random numbers from the operating system, and reproducible ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Rng, SharedRng};

/// Random numbers from the operating system.
pub struct RealRng;

impl RealRng {
    /// Returns it as a shared source.
    pub fn shared() -> SharedRng {
        Arc::new(RealRng)
    }
}

impl Rng for RealRng {
    fn fill(&self, buf: &mut [u8]) {
        let mut done = 0;
        while done < buf.len() {
            let rest = &mut buf[done..];
            // SAFETY: the pointer and the length describe `rest`.
            let n = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
            // It fails only if a signal interrupts it before anything was written.
            done += usize::try_from(n).unwrap_or(0);
        }
    }
}

/// Reproducible numbers from a seed (splitmix64, Steele, Lea and Flood 2014).
pub struct SeededRng {
    state: AtomicU64,
}

impl SeededRng {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> SeededRng {
        SeededRng { state: AtomicU64::new(seed) }
    }

    /// Returns it as a shared source.
    pub fn shared(seed: u64) -> SharedRng {
        Arc::new(SeededRng::new(seed))
    }
}

impl Rng for SeededRng {
    fn fill(&self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
            let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}
