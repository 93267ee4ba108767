//! Registers settings (GUCs) whose checks need the server.

use std::ffi::{CStr, c_int, c_void};

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{PgSqlErrorCode, pg_guard, pg_sys};

/// A name, the summary and the details of a setting, as pg_settings shows them.
pub struct Description {
    /// The name.
    pub name: &'static CStr,
    /// One line.
    pub summary: &'static CStr,
    /// More.
    pub details: &'static CStr,
}

/// Registers a threshold for anyone to set: 0 to 2147483647; -1, which will stand
/// for an automatic one, is refused with an explanation.
pub fn define_threshold(description: Description, setting: &'static GucSetting<i32>) {
    // SAFETY: the hook follows the protocol of check hooks.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            description.name,
            description.summary,
            description.details,
            setting,
            -1,
            i32::MAX,
            GucContext::Userset,
            GucFlags::default(),
            Some(check_threshold),
            None,
            None,
        );
    }
}

/// Makes the server refuse any other setting that begins with `prefix` and a
/// dot, and forget those that it has already.
pub fn reserve_prefix(prefix: &CStr) {
    // SAFETY: the server copies the name.
    unsafe { pg_sys::MarkGUCPrefixReserved(prefix.as_ptr()) }
}

/// Whether the value of the setting `name` is the choice of this session: of a SET,
/// or of the client when it connected. What is configured for roles, databases or
/// the server is not.
pub fn is_sessions(name: &CStr) -> bool {
    // SAFETY: the setting exists, so that the result is its record.
    let source =
        unsafe { (*pg_sys::find_option(name.as_ptr(), false, false, pg_sys::PGERROR as c_int)).source };
    source >= pg_sys::GucSource::PGC_S_CLIENT
}

/// Runs `work` while the server's setting `name` has `value`, as a function
/// with a SET clause would. After an error the server restores the old value.
pub(super) fn with_setting<T>(name: &CStr, value: &CStr, work: impl FnOnce() -> T) -> T {
    // SAFETY: strings that end with a zero byte; levels nest as calls do.
    let level = unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
        level
    };
    let result = work();
    // SAFETY: ends the level begun above.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
    result
}

/// Refuses -1, the automatic threshold, which does not exist yet.
#[pg_guard]
unsafe extern "C-unwind" fn check_threshold(
    new_value: *mut c_int,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server passes a pointer to the value.
    threshold_is_available(unsafe { *new_value })
}

/// Whether the value is one that can be used; if not, says why to the server,
/// which makes an error of it. Only for check hooks.
pub(super) fn threshold_is_available(value: i32) -> bool {
    if value >= 0 {
        return true;
    }
    explain_refusal(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        c"The automatic threshold is not available yet.",
        c"Set a threshold of 0 or more; the server's own is 32.",
    );
    false
}

/// Says why a value is refused, in a check hook that is about to refuse it.
pub(super) fn explain_refusal(code: PgSqlErrorCode, detail: &CStr, hint: &CStr) {
    // SAFETY: how a check hook explains itself (guc.h); the server reads these
    // right after the hook and copies the strings.
    unsafe {
        pg_sys::GUC_check_errcode(code as c_int);
        pg_sys::GUC_check_errdetail_string = pg_sys::pstrdup(detail.as_ptr());
        pg_sys::GUC_check_errhint_string = pg_sys::pstrdup(hint.as_ptr());
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use super::*;

    fn concurrency() -> i32 {
        // SAFETY: an integer of this process.
        unsafe { pg_sys::maintenance_io_concurrency }
    }

    #[pg_test]
    fn test_a_setting_is_lent_for_the_work_alone() {
        Spi::run("SET LOCAL maintenance_io_concurrency = 7").unwrap();
        assert_eq!(with_setting(c"maintenance_io_concurrency", c"3", concurrency), 3);
        assert_eq!(concurrency(), 7);
    }

    #[pg_test]
    fn test_a_setting_is_restored_after_an_error() {
        Spi::run("SET LOCAL maintenance_io_concurrency = 7").unwrap();
        Spi::run(
            "CREATE FUNCTION fails() RETURNS void LANGUAGE plpgsql AS
             $$ BEGIN PERFORM tests.lend_and_fail(); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
             SELECT fails()",
        )
        .unwrap();
        assert_eq!(concurrency(), 7);
    }

    #[pg_extern]
    fn lend_and_fail() {
        with_setting(c"maintenance_io_concurrency", c"3", || {
            assert_eq!(concurrency(), 3);
            Spi::run("SELECT 1 / 0").unwrap();
        });
    }
}
