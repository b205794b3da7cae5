//! The one log: ordered, checksummed, preallocated, synced once for everybody who waits.
//!
//! The public API is drafted here; see the owner's modules for the contract of each call.
