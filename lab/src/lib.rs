//! What measuring takes: a throwaway server, the study's table, identical copies of
//! a cluster, cold caches, accounts of what the server's processes used and waited
//! for, and medians.

pub mod device;
pub mod page_cache;
pub mod processes;
pub mod server;
pub mod snapshot;
pub mod study_table;
pub mod timed_vacuum;
pub mod timing;
pub mod verbose;
pub mod waits;

/// What may go wrong while measuring.
pub type Error = Box<dyn std::error::Error>;
