//! Join operators, one per method of finding the right rows.

mod hash;
mod json;
mod left;
mod lookup;
mod nested;
mod stored;
mod vector_hash;
mod vector_lookup;

pub(crate) use hash::Hash;
pub(crate) use json::JsonRows;
pub(crate) use lookup::Lookup;
pub(crate) use nested::Loop;

use stored::StoredRight;
