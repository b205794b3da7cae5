//! Query operators: execute a plan by pulling rows through it.
//!
//! | module | concept |
//! |---|---|
//! | `storage` | [`Storage`]: the source of rows |
//! | `rows` | [`run`], [`Rows`]: returns a plan's rows, pushed or pulled |
//! | `batch` | [`Batch`]: rows passed between operators |
//! | `vectors`, `vector_source` | [`Vectors`]: column batches; inputs as vectors |
//! | `profile` | measurements of a run, for ANALYZE and SHOW ANALYZE |
//! | `runtime` | state shared by the operators of a run; memory accounting |
//! | `operator` | the operator interface |
//! | `assemble` | builds operators from a plan |
//! | `nodes` | plan analysis: volatile nodes, side effects |
//! | `source`, `scan` | rows of constants, expressions and tables |
//! | `project`, `limit` | filter, projection, LIMIT |
//! | `join` | index lookup join, hash join, nested-loop join |
//! | `aggregate`, `vector_groups`, `rollup` | GROUP BY: hashed, vectorized, ordered, WITH ROLLUP |
//! | `sort`, `sort_front` | ORDER BY in memory and on disk |
//! | `window` | window functions, frames |
//! | `set_operation` | DISTINCT, EXCEPT, INTERSECT |
//! | `set_chain` | chains of UNION, EXCEPT and INTERSECT in one operator |
//! | `common` | common table expressions and recursion |
//! | `subquery`, `quantified` | subqueries in expressions; IN, ANY, ALL |
//! | `equal_key`, `key_table` | values encoded as bytes that compare like the values; hash table of keys |
//! | `row_store`, `partition`, `spill` | stored, partitioned and spilled rows |

mod aggregate;
mod assemble;
mod batch;
mod common;
mod equal_key;
mod extend;
mod join;
mod key_table;
mod limit;
mod nodes;
mod operator;
mod partition;
mod profile;
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
mod vector_groups;
mod vector_sort;
mod vector_source;
mod vectors;
mod window;

pub use batch::Batch;
pub use limit::{limit_bounds, limit_value};
pub use profile::{
    NodeCounters, NodeProfile, PlanParts, PlanProfile, Spent, Started, nanos_since, spent_since,
};
pub use rows::{Rows, run, run_measured};
pub use storage::{CursorId, Event, Kept, Matching, Sorted, Storage};
pub use vectors::Vectors;
