//! Operators: they pull rows through the plan of a query.
//!
//! | module | concept |
//! |---|---|
//! | `storage` | [`Storage`]: where rows come from |
//! | `rows` | [`run`], [`Rows`]: a plan's rows, pushed or pulled |
//! | `batch` | [`Batch`]: rows on their way |
//! | `lanes` | [`Lanes`]: rows by columns |
//! | `measure` | what operators did, for ANALYZE |
//! | `runtime` | what the operators of a run share; memory |
//! | `operator` | the interface of operators; a plan becomes some |
//! | `nodes` | walks over plans: what may change, what has effects |
//! | `source`, `scan` | rows of nothing, of expressions, of tables |
//! | `project`, `limit` | filter, projection, LIMIT |
//! | `join` | joins by lookup, by a hash table, by going through all |
//! | `aggregate`, `lane_groups`, `rollup` | groups: hashed, of many rows at once, ordered, rolled up |
//! | `sort`, `sort_front` | ORDER BY in memory and on disk |
//! | `window` | window functions, frames |
//! | `set_operation` | DISTINCT, EXCEPT, INTERSECT |
//! | `set_chain` | many UNION, EXCEPT and INTERSECT at once |
//! | `common` | common tables and recursion |
//! | `subquery`, `quantified` | subqueries of expressions; IN, ANY, ALL |
//! | `equal_key`, `key_table` | values as bytes that are equal when they are; keys by hash |
//! | `row_store`, `partition`, `spill` | rows that are kept, put aside, written to disk |

mod aggregate;
mod batch;
mod common;
mod equal_key;
mod extend;
mod join;
mod key_table;
mod lane_groups;
mod lane_sort;
mod lanes;
mod limit;
mod measure;
mod nodes;
mod operator;
mod partition;
mod project;
mod quantified;
mod rollup;
mod row_store;
mod rows;
mod runtime;
mod scan;
mod set_chain;
mod set_operation;
mod sort;
mod sort_front;
mod source;
mod spill;
mod storage;
mod subquery;
mod window;

pub use batch::Batch;
pub use lanes::Lanes;
pub use limit::limit_bounds;
pub use measure::{Measure, Measures, Tally, nanos_since};
pub use rows::{Rows, run, run_measured};
pub use storage::{CursorId, Event, Kept, Matching, Sorted, Storage};
