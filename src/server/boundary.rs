//! The border between Rust and the server: calls out, and calls back.
//!
//! A server ERROR is a `siglongjmp`, which would skip the destructors of Rust
//! frames; a Rust panic must not unwind into C. pgrx catches the one and turns
//! it into the other, but it copies an error in part: CONTEXT lines, the names
//! of a violated constraint and the like get lost. A VACUUM reports errors from
//! deep within index methods, and a DBA reads those lines. So code that runs
//! within [`callback`] keeps the server's error on the server's own stack, as
//! C's PG_TRY does, unwinds past the Rust frames, and rethrows it untouched.
//!
//! Elsewhere [`guarded`] is pgrx's own `pg_guard_ffi_boundary`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use pgrx::pg_sys;

use super::raw;

/// Whether the Rust code that is running was called by the server through [`callback`].
/// False again as long as that code calls the server, which may call other functions of
/// ours that pgrx guards: an index of a table under vacuum may call any function. (A
/// backend has one thread.)
static RETHROWS: AtomicBool = AtomicBool::new(false);

/// Unwinds Rust frames after an ERROR that the server still holds.
struct ServerError;

/// Calls the server. An ERROR leaves as a panic.
///
/// # Safety
///
/// The closure must not own anything that needs dropping, nor call anything
/// that does, since an ERROR jumps over it; and it must not panic.
#[inline(always)]
pub(super) unsafe fn guarded<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: as the caller promises.
    unsafe {
        if RETHROWS.load(Ordering::Relaxed) {
            keeping_the_error(call)
        } else {
            pg_sys::ffi::pg_guard_ffi_boundary(call)
        }
    }
}

/// # Safety
///
/// As for [`guarded`]; and some frame below is [`callback`]'s.
#[inline(always)]
unsafe fn keeping_the_error<T>(call: impl FnOnce() -> T) -> T {
    let mut result = None;
    // SAFETY: the server jumps to the buffer only as long as PG_exception_stack
    // points to it, that is while `call` runs.
    unsafe {
        let outer_stack = pg_sys::PG_exception_stack;
        let outer_context = pg_sys::error_context_stack;
        RETHROWS.store(false, Ordering::Relaxed);
        let jumped = cee_scape::call_with_sigsetjmp(false, |buffer| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            result = Some(call());
            0
        });
        RETHROWS.store(true, Ordering::Relaxed);
        pg_sys::PG_exception_stack = outer_stack;
        pg_sys::error_context_stack = outer_context;
        if jumped != 0 {
            // Without the panic hook, which would take a backtrace.
            resume_unwind(Box::new(ServerError));
        }
    }
    result.expect("the call returned")
}

/// Runs what the server called; every callback's whole body. A panic becomes an
/// ERROR of the server, an ERROR caught by [`guarded`] goes on as it was.
///
/// # Safety
///
/// To be called from a function that the server calls, whose frame holds nothing
/// that needs dropping.
pub(super) unsafe fn callback<T>(body: impl FnOnce() -> T) -> T {
    let outer = RETHROWS.swap(true, Ordering::Relaxed);
    // SAFETY: pgrx's guard reports panics other than ServerError from its own frame.
    let outcome = unsafe {
        pg_sys::panic::pgrx_extern_c_guard(|| {
            let outcome = catch_unwind(AssertUnwindSafe(body));
            RETHROWS.store(outer, Ordering::Relaxed);
            outcome.map_err(|panic| match panic.downcast::<ServerError>() {
                Ok(error) => *error,
                Err(other) => resume_unwind(other),
            })
        })
    };
    match outcome {
        Ok(value) => value,
        // SAFETY: the server's error is on its stack, and nothing here needs dropping.
        Err(ServerError) => unsafe { raw::pg_re_throw() },
    }
}
