//! Cancel, statement_timeout and termination.

use pgrx::pg_sys;

/// Raises the pending cancel or termination, if there is one, as the server's
/// CHECK_FOR_INTERRUPTS does. Cheap when there is none.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}

/// Whether this process is a parallel worker.
pub fn is_parallel_worker() -> bool {
    // SAFETY: two integers of this process, set before any of our code runs.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 || pg_sys::InitializingParallelWorker }
}
