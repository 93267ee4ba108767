//! The CONTEXT line of errors, warnings and notices raised during a vacuum.
//!
//! Says in every phase what vacuumlazy.c's `vacuum_error_callback` says, so
//! that whoever reads a log, or greps it, finds the same words.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use pgrx::{pg_guard, pg_sys};

use crate::server::raw;
use crate::server::relation::HeapRelation;

/// What a vacuum is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing that a message would have to name.
    Unknown,
    /// Phase I.
    ScanHeap,
    /// Phase II.
    VacuumIndex,
    /// Phase III.
    VacuumHeap,
    /// After the phases.
    IndexCleanup,
    /// The block is the length to truncate to.
    Truncate,
}

/// A place in the work, to come back to.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    phase: Phase,
    block: u32,
    offset: u16,
}

/// Adds the CONTEXT line to every message until dropped. One that is begun later
/// must be dropped before.
pub struct ErrorContext(NonNull<State>);

struct State {
    callback: pg_sys::ErrorContextCallback,
    schema: String,
    name: String,
    index: RefCell<String>,
    phase: Cell<Phase>,
    block: Cell<u32>,
    offset: Cell<u16>,
}

impl ErrorContext {
    /// For a vacuum of `relation`.
    pub fn begin(relation: &HeapRelation) -> Self {
        let state = NonNull::from(Box::leak(Box::new(State {
            callback: pg_sys::ErrorContextCallback::default(),
            schema: relation.schema(),
            name: relation.name(),
            index: RefCell::default(),
            phase: Cell::new(Phase::Unknown),
            block: Cell::new(pg_sys::InvalidBlockNumber),
            offset: Cell::new(pg_sys::InvalidOffsetNumber),
        })));
        let callback = pg_sys::ErrorContextCallback {
            // SAFETY: the stack outlives what is put on it.
            previous: unsafe { pg_sys::error_context_stack },
            callback: Some(add_context),
            arg: state.as_ptr().cast(),
        };
        // SAFETY: the state stays where it is, and is taken off the stack before it goes.
        unsafe {
            (*state.as_ptr()).callback = callback;
            pg_sys::error_context_stack = &raw mut (*state.as_ptr()).callback;
        }
        ErrorContext(state)
    }

    fn state(&self) -> &State {
        // SAFETY: it is there as long as self.
        unsafe { self.0.as_ref() }
    }

    /// Goes on to `phase`; the place it was at before.
    pub fn enter(&self, phase: Phase, block: Option<u32>) -> Place {
        let before = self.state().place();
        let block = block.unwrap_or(pg_sys::InvalidBlockNumber);
        self.restore(Place { phase, block, offset: pg_sys::InvalidOffsetNumber });
        before
    }

    /// Goes on to a phase of the index of that name.
    pub fn enter_index(&self, phase: Phase, index: &str) -> Place {
        self.state().index.replace(index.to_owned());
        self.enter(phase, None)
    }

    /// Goes back to `place`.
    pub fn restore(&self, place: Place) {
        self.state().phase.set(place.phase);
        self.state().block.set(place.block);
        self.state().offset.set(place.offset);
    }

    /// Goes on to another block of the same phase.
    pub fn at_block(&self, block: Option<u32>) {
        self.state().block.set(block.unwrap_or(pg_sys::InvalidBlockNumber));
    }

    /// Where code that works through a page notes the line pointer it is at.
    pub(super) fn offset(&self) -> &Cell<u16> {
        &self.state().offset
    }
}

impl Drop for ErrorContext {
    fn drop(&mut self) {
        // Also while unwinding: what reports the panic must not come here.
        // SAFETY: those begun later are gone; the state came from a box.
        unsafe {
            pg_sys::error_context_stack = self.state().callback.previous;
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}

impl State {
    fn context(&self) -> Option<String> {
        let State { schema, name, .. } = self;
        let Place { phase, block, offset } = self.place();
        let block = (block != pg_sys::InvalidBlockNumber).then_some(block);
        let place = match (block, offset) {
            (None, _) => String::new(),
            (Some(block), 0) => format!("block {block} of "),
            (Some(block), offset) => format!("block {block} offset {offset} of "),
        };
        match phase {
            Phase::Unknown => None,
            Phase::ScanHeap => Some(format!("while scanning {place}relation \"{schema}.{name}\"")),
            Phase::VacuumHeap => Some(format!("while vacuuming {place}relation \"{schema}.{name}\"")),
            Phase::VacuumIndex => {
                Some(format!("while vacuuming index \"{}\" of relation \"{schema}.{name}\"", self.index()))
            }
            Phase::IndexCleanup => {
                Some(format!("while cleaning up index \"{}\" of relation \"{schema}.{name}\"", self.index()))
            }
            Phase::Truncate => {
                block.map(|block| format!("while truncating relation \"{schema}.{name}\" to {block} blocks"))
            }
        }
    }

    fn place(&self) -> Place {
        Place { phase: self.phase.get(), block: self.block.get(), offset: self.offset.get() }
    }

    fn index(&self) -> std::cell::Ref<'_, String> {
        self.index.borrow()
    }
}

/// The server's call for the line.
///
/// # Safety
///
/// To be called by the server, with the pointer that [`ErrorContext::begin`] gave it.
#[pg_guard]
unsafe extern "C-unwind" fn add_context(state: *mut c_void) {
    // SAFETY: the state is there as long as it is on the stack.
    let line = unsafe { (*state.cast::<State>()).context() };
    let Some(line) = line.and_then(|line| CString::new(line).ok()) else { return };
    // SAFETY: the server copies the line, and is asked for it by errfinish only.
    unsafe {
        raw::set_errcontext_domain(std::ptr::null());
        raw::errcontext_msg(c"%s".as_ptr(), line.as_ptr());
    }
}
