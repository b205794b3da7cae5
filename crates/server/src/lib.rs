//! Cohort server.
