//! What a VACUUM does to a relation, step by step; in which order and when is
//! decided in [`crate::vacuum`].
//!
//! Each wrapper is named after the step of vacuumlazy.c that it does, and keeps
//! that step's order of server calls. Errors that the server raises go on
//! untouched ([`super::boundary`]).

pub mod dead_items;
pub mod error_context;
pub mod freezing;
pub mod indexes;
pub mod page;
pub mod request;
pub mod statistics;
pub mod truncation;
pub mod usage;
