//! Cohort protocol.
