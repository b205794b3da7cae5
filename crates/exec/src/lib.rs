//! Cohort exec.
