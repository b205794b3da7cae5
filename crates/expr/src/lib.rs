//! Cohort expr.
