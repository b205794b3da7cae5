//! Cohort binlog.
