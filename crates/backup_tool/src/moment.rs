//! Moments in JSON, as text: `2026-11-28T19:30:00Z`.

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub fn serialize<S: Serializer>(moment: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(moment)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    std::borrow::Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
}
