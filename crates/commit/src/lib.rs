//! Cohort commit.
