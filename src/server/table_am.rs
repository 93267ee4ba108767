//! The place that every VACUUM of a heap table passes through: the callback
//! `relation_vacuum` of the heap's table access method (tableam.h), which
//! `vacuum_rel` (vacuum.c) calls.
//!
//! The server's routine is a constant in read-only data, and all relations of
//! the heap point to it, so one store there reaches them all. [`replace_vacuum`]
//! makes its page writable for that store alone. Whether to store at all is for
//! the caller to decide ([`crate::vacuum`]).
//!
//! [`relation_vacuum`] is what is stored. It has no guard of its own: where the
//! work goes to the routine that was there before, an error of that routine must
//! pass as it is, with its CONTEXT and all its fields, and pgrx's guard keeps
//! only some of them. So its frame holds nothing that an error could not jump
//! over.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::ptr;

use pgrx::pg_sys;

use super::boundary::callback;
use super::vacuum::request::VacuumRequest;

unsafe extern "C-unwind" {
    // pgrx's declaration is a wrapper in Rust; this is the server's own address.
    #[allow(clashing_extern_declarations)]
    fn heap_vacuum_rel(
        relation: pg_sys::Relation,
        params: *mut pg_sys::VacuumParams,
        strategy: pg_sys::BufferAccessStrategy,
    );
}

/// A function that vacuums a relation, as the server calls it.
type VacuumRoutine = unsafe extern "C-unwind" fn(
    relation: pg_sys::Relation,
    params: *mut pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
);

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The relation is vacuumed.
    Done,
    /// It is for the routine that was replaced.
    HandOver,
}

/// Takes a request.
pub type Handler = fn(&VacuumRequest) -> Answer;

thread_local! {
    /// The routine that was replaced, and who takes requests since.
    static REPLACED: Cell<Option<(VacuumRoutine, Handler)>> = const { Cell::new(None) };
}

/// Stored in the heap's routine.
unsafe extern "C-unwind" fn relation_vacuum(
    relation: pg_sys::Relation,
    params: *mut pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
) {
    // It is stored after this has been set.
    let Some((replaced, _)) = REPLACED.get() else { return };
    let request = VacuumRequest { relation, params, strategy };
    // SAFETY: the arguments are the server's own; this frame holds nothing that
    // needs dropping.
    unsafe {
        if !callback(|| is_done(&request)) {
            replaced(relation, params, strategy);
        }
    }
}

fn is_done(request: &VacuumRequest) -> bool {
    REPLACED.get().is_some_and(|(_, handler)| handler(request) == Answer::Done)
}

/// The callback `relation_vacuum` in the heap's routine.
fn slot() -> *mut Option<VacuumRoutine> {
    // SAFETY: the server's own constant; only the address of a field is taken.
    unsafe { &raw const (*pg_sys::GetHeapamTableAmRoutine()).relation_vacuum }.cast_mut()
}

/// Where the callback is stored, in the memory of this process.
pub fn slot_address() -> usize {
    slot().addr()
}

/// The address of the function that vacuums heap tables now; 0 where there is none.
pub fn current_vacuum() -> usize {
    // SAFETY: the callback is always readable. Another extension may have stored it.
    unsafe { ptr::read_volatile(slot()) }.map_or(0, |routine| routine as *const () as usize)
}

/// The address of the server's own function.
pub fn servers_vacuum() -> usize {
    heap_vacuum_rel as *const () as usize
}

/// The address of ours.
pub fn our_vacuum() -> usize {
    relation_vacuum as *const () as usize
}

/// The address of the function that ours has replaced; None before it has.
pub fn replaced_vacuum() -> Option<usize> {
    REPLACED.get().map(|(replaced, _)| replaced as *const () as usize)
}

/// How a page of memory may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// It can be read.
    pub read: bool,
    /// It can be written.
    pub write: bool,
    /// It can be run.
    pub execute: bool,
}

impl Protection {
    fn bits(self) -> c_int {
        let bit = |set, bit| if set { bit } else { libc::PROT_NONE };
        bit(self.read, libc::PROT_READ)
            | bit(self.write, libc::PROT_WRITE)
            | bit(self.execute, libc::PROT_EXEC)
    }
}

/// Stores our function in the heap's routine, and sends requests to `handler` from
/// now on. The page of the callback has `protection` now, and again afterwards.
///
/// # Errors
///
/// Those of `mprotect`, and where there is no function to replace. Nothing is
/// stored then.
pub fn replace_vacuum(protection: Protection, handler: Handler) -> io::Result<()> {
    let slot = slot();
    // SAFETY: the callback is always readable.
    let replaced = unsafe { ptr::read_volatile(slot) };
    let replaced = replaced.ok_or_else(|| io::Error::other("there is no function to replace"))?;
    let page = page_of(slot.addr());
    protect(&page, Protection { write: true, ..protection })?;
    REPLACED.set(Some((replaced, handler)));
    // SAFETY: the page is writable, and a backend has one thread.
    unsafe { ptr::write_volatile(slot, Some(relation_vacuum)) };
    protect(&page, protection).inspect_err(|_| {
        // SAFETY: the page is still writable.
        unsafe { ptr::write_volatile(slot, Some(replaced)) };
        REPLACED.set(None);
    })
}

/// The page that a pointer is stored in. It is aligned, so it is in one page.
fn page_of(address: usize) -> Range<usize> {
    // SAFETY: asks for a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs() as usize;
    let start = address - address % size;
    start..start + size
}

fn protect(page: &Range<usize>, protection: Protection) -> io::Result<()> {
    let start: *mut c_void = ptr::with_exposed_provenance_mut(page.start);
    // SAFETY: the page belongs to the server's data, where nothing relies on a
    // write to fail; it stays readable.
    match unsafe { libc::mprotect(start, page.len(), protection.bits()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
