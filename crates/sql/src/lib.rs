//! Cohort sql.
