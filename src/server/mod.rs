//! Safe wrappers over the server's C interface.
//!
//! The only place with `unsafe`. What every wrapper here promises:
//!
//! - **A server ERROR arrives as a Rust panic**, and pgrx turns that back into
//!   an ERROR at the border of the function. Values are dropped on the way.
//!   By then the server has reset its count of held-off interrupts to 0, so a
//!   guard that released a lock now would make that count wrap, and the
//!   session would never answer a cancel again. Guards therefore release
//!   nothing while a panic unwinds ([`let_go`]): the abort of the transaction,
//!   or of the subtransaction, releases their locks, pins and references.
//! - **Where errors of the server's own code pass through** ([`table_am`],
//!   [`process_utility`]) there is no guard of pgrx, which would keep only some
//!   of their fields, and no frame that needs one.
//! - **No lock is held while Rust code runs** that could panic. A page is
//!   locked, read and unlocked in one call ([`page`]).
//! - **Calls into the server cost a `sigsetjmp` each** through pgrx. That is
//!   fine for each page, not for each tuple or each bit of the map: [`page`]
//!   and [`prefetch`] take one for a page or a run of blocks, and
//!   [`visibility_map`] reads words straight from the pinned buffer.

#![allow(unsafe_code)]

pub mod alias;
mod boundary;
pub mod buffer_usage;
pub mod cutoffs;
pub mod error;
pub mod interrupts;
pub mod page;
pub mod prefetch;
pub mod process_utility;
pub mod progress;
mod raw;
pub mod reader;
pub mod regclass;
pub mod relation;
pub mod security_label;
pub mod settings;
pub mod table_am;
pub mod vacuum;
pub mod visibility_map;

/// Runs `release` unless a panic is unwinding: what a guard does when dropped.
fn let_go(release: impl FnOnce()) {
    if !std::thread::panicking() {
        release();
    }
}
