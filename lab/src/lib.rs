//! What measuring takes: a throwaway server, the study's table, cold caches, and
//! medians.

pub mod device;
pub mod server;
pub mod study_table;
pub mod timing;

/// What may go wrong while measuring.
pub type Error = Box<dyn std::error::Error>;
