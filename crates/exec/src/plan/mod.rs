//! Access path choice, join order, and plans that sessions share.

mod target;

pub use target::{TargetPlan, plan_target};
