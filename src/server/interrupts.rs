//! Cancel, statement_timeout and termination.

/// Raises the pending cancel or termination, if there is one, as the server's
/// CHECK_FOR_INTERRUPTS does. Cheap when there is none.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}
