//! The machine that a component runs on: the real one, or a simulation.

use crate::{RealClock, RealFs, RealRng, SeededRng, SharedClock, SharedFs, SharedRng, SimClock};

/// The interfaces of a component to the machine it runs on.
#[derive(Clone)]
pub struct World {
    /// Files.
    pub fs: SharedFs,
    /// Clock.
    pub clock: SharedClock,
    /// Random numbers.
    pub rng: SharedRng,
}

impl World {
    /// Returns the real machine.
    pub fn real() -> World {
        World { fs: RealFs::shared(), clock: RealClock::shared(), rng: RealRng::shared() }
    }

    /// Returns a simulation on this file system: a clock that stands still, and reproducible random numbers.
    pub fn sim(fs: SharedFs, seed: u64) -> World {
        World { fs, clock: SimClock::new(1_700_000_000_000_000), rng: SeededRng::shared(seed) }
    }
}
