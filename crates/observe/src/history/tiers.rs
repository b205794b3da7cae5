//! Tiers of the history.

/// A tier: number of ticks that a slot covers, and number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    pub ticks: u64,
    pub slots: usize,
}

/// The tiers: fifteen minutes by seconds, three hours by ten seconds, and a day by minutes.
pub const TIERS: [Tier; 3] =
    [Tier { ticks: 1, slots: 900 }, Tier { ticks: 10, slots: 1080 }, Tier { ticks: 60, slots: 1440 }];
