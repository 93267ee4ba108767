//! Cancel, statement_timeout and termination.

use pgrx::pg_sys;

use super::boundary::guarded;
use super::raw;

/// Raises the pending cancel or termination, if there is one, as the server's
/// CHECK_FOR_INTERRUPTS does. Cheap when there is none.
#[inline]
pub fn check_for_interrupts() {
    // SAFETY: a flag of this process; nothing here needs dropping.
    unsafe {
        if pg_sys::InterruptPending != 0 {
            guarded(|| raw::ProcessInterrupts());
        }
    }
}
