mod engine;
mod failsafe;
mod report;
mod scan_heap;
pub mod threshold;
mod truncate;
mod vacuum_heap;
mod vacuum_indexes;
pub use engine::vacuum;
