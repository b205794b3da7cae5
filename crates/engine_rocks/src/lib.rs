//! Cohort engine_rocks.
