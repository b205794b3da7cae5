//! Cohort catalog.
