//! Cohort locks.
