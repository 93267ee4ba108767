//! Measuring what the threshold does: the study's table and how it is modified, clusters
//! and their identical copies, cold caches, accounts of what the server's processes used
//! and waited for; and the lab's experiment, its results, and the report on them.

pub mod cluster;
pub mod comparison;
pub mod device;
pub mod experiment;
pub mod folder;
pub mod machine;
pub mod page_cache;
pub mod processes;
pub mod published;
pub mod report;
pub mod results;
pub mod server;
pub mod snapshot;
pub mod study_table;
pub mod timed_vacuum;
pub mod timing;
pub mod variant;
pub mod verbose;
pub mod waits;
pub mod workload;

/// What may go wrong while measuring.
pub type Error = Box<dyn std::error::Error>;
