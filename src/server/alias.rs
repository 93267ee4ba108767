//! A second name for a setting.
//!
//! The server knows no aliases for settings. Two settings that share a
//! variable would come apart: each has its own history of values to restore
//! when a transaction or a function ends, and its own value for RESET. So the
//! alias has no value at all:
//!
//! - setting it, by whatever way (SET, SET LOCAL, a function's SET clause,
//!   set_config), sets the real setting, in the same way;
//! - resetting it resets the real setting;
//! - showing it shows the real setting;
//! - what is stored under the alias itself is always the same constant, so
//!   that the server, when it restores old values, finds nothing to restore,
//!   and the real setting's history alone decides.
//!
//! It cannot be set in configuration files: a name without a dot is only known
//! once the library is loaded, so a server with such a line in its files would
//! refuse to start. For the same reason the options of a role, a database or a
//! connection, which are read before session_preload_libraries, know it only
//! where shared_preload_libraries has the library.
//!
//! Idea and limits from guc.c: `set_config_with_handle`, `push_old_value`,
//! `AtEOXact_GUC`.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{PgSqlErrorCode, pg_guard, pg_sys};

use super::settings::{Description, explain_refusal, threshold_is_available};

/// The constant that is stored under the alias.
static STORED: GucSetting<i32> = GucSetting::<i32>::new(0);

/// A value that was checked and not assigned yet, and where it came from.
#[derive(Clone, Copy)]
struct Pending {
    value: i32,
    source: pg_sys::GucSource::Type,
}

/// The two names, and the value on its way.
struct Alias {
    alias: &'static CStr,
    real: &'static CStr,
    pending: Cell<Option<Pending>>,
    shown: Cell<[u8; 12]>,
}

thread_local! {
    static THRESHOLD: Cell<Option<&'static Alias>> = const { Cell::new(None) };
}

/// Makes `description.name` an alias of the threshold named `real`, which must
/// have been registered before.
pub fn define_threshold_alias(description: Description, real: &'static CStr) {
    let alias = Alias { alias: description.name, real, pending: Cell::new(None), shown: Cell::new([0; 12]) };
    // Settings live as long as the process.
    THRESHOLD.set(Some(Box::leak(Box::new(alias))));
    // SAFETY: the hooks follow the protocol of their kinds.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            description.name,
            description.summary,
            description.details,
            &STORED,
            -1,
            i32::MAX,
            GucContext::Userset,
            // RESET ALL and SHOW ALL find the real setting.
            GucFlags::NO_SHOW_ALL | GucFlags::NO_RESET_ALL | GucFlags::DISALLOW_IN_FILE,
            Some(check),
            Some(assign),
            Some(show),
        );
    }
}

/// Checks a value as the real setting does, remembers it for [`assign`], and
/// has the constant stored in its place.
#[pg_guard]
unsafe extern "C-unwind" fn check(
    new_value: *mut c_int,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server passes a pointer to the value.
    let new_value = unsafe { &mut *new_value };
    if source == pg_sys::GucSource::PGC_S_FILE {
        explain_refusal(
            PgSqlErrorCode::ERRCODE_CANT_CHANGE_RUNTIME_PARAM,
            c"The short name cannot be set in configuration files.",
            c"Use \"vacuum_skip.skip_pages_threshold\" instead.",
        );
        return false;
    }
    if !threshold_is_available(*new_value) {
        return false;
    }
    if let Some(alias) = THRESHOLD.get() {
        alias.pending.set(Some(Pending { value: *new_value, source }));
    }
    *new_value = STORED.get();
    true
}

/// Passes a set or a reset on to the real setting. Not called when the server
/// restores an old value, since the stored one never changes.
#[pg_guard]
unsafe extern "C-unwind" fn assign(_new_value: c_int, _extra: *mut c_void) {
    let Some(alias) = THRESHOLD.get() else { return };
    let pending = alias.pending.take();
    // SAFETY: a flag of this process.
    if unsafe { pg_sys::InitializingParallelWorker } {
        // The worker is handed its leader's settings, the real one among them.
        return;
    }
    // SAFETY: the result is null before the alias is registered (the server
    // assigns the default then) and the server's own record afterwards.
    let stack = unsafe {
        let record = pg_sys::find_option(alias.alias.as_ptr(), false, true, 0);
        if record.is_null() {
            return;
        }
        (*record).stack
    };
    if stack.is_null() {
        // Not within a transaction: an option of a role, a database or a
        // connection. (The default is for the real setting to take by itself.)
        if let Some(pending) = pending.filter(|it| it.source != pg_sys::GucSource::PGC_S_DEFAULT) {
            alias.set_real(Some(pending.value), pending.source, pg_sys::GucAction::GUC_ACTION_SET);
        }
        return;
    }
    let is_session = |pending: &Pending| pending.source == pg_sys::GucSource::PGC_S_SESSION;
    // What is not a value that was just checked for this session is a reset.
    let value = pending.filter(is_session).map(|pending| pending.value);
    // SAFETY: the server has pushed an entry for this change.
    let action = unsafe { alias.action(&*stack) };
    alias.set_real(value, pg_sys::GucSource::PGC_S_SESSION, action);
}

/// Shows the real setting's value.
#[pg_guard]
unsafe extern "C-unwind" fn show() -> *const c_char {
    let Some(alias) = THRESHOLD.get() else {
        return c"".as_ptr();
    };
    // SAFETY: the real setting exists; the server returns its own string, which
    // is valid until the next such call, so it is copied.
    let value = unsafe { CStr::from_ptr(pg_sys::GetConfigOption(alias.real.as_ptr(), false, false)) };
    let mut shown = [0; 12];
    let bytes = value.to_bytes();
    shown[..bytes.len()].copy_from_slice(bytes);
    alias.shown.set(shown);
    alias.shown.as_ptr().cast()
}

impl Alias {
    /// By which action the server is changing the alias, told by the entry that
    /// it has just pushed for it.
    fn action(&self, stack: &pg_sys::GucStack) -> pg_sys::GucAction::Type {
        match stack.state {
            pg_sys::GucStackState::GUC_SET => pg_sys::GucAction::GUC_ACTION_SET,
            // A function's SET clause, or a SET LOCAL within the function. The
            // server takes the latter for the former if nothing else was done
            // to a setting within the function, and so may we.
            pg_sys::GucStackState::GUC_SAVE if !self.real_was_set_at(stack.nest_level) => {
                pg_sys::GucAction::GUC_ACTION_SAVE
            }
            _ => pg_sys::GucAction::GUC_ACTION_LOCAL,
        }
    }

    /// Whether the real setting was changed at this level by anything but a
    /// function's SET clause.
    fn real_was_set_at(&self, nest_level: c_int) -> bool {
        // SAFETY: the real setting exists; its newest entry is null or valid.
        let entry = unsafe {
            let record = pg_sys::find_option(self.real.as_ptr(), false, false, pg_sys::PGERROR as c_int);
            (*record).stack.as_ref()
        };
        entry.is_some_and(|entry| {
            entry.nest_level == nest_level && entry.state != pg_sys::GucStackState::GUC_SAVE
        })
    }

    /// Sets the real setting, or resets it where there is no value.
    fn set_real(&self, value: Option<i32>, source: pg_sys::GucSource::Type, action: pg_sys::GucAction::Type) {
        let text = value.map(|value| CString::new(value.to_string()).unwrap_or_default());
        let text = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        // SAFETY: the names and the text end with a zero byte; the server
        // copies what it keeps.
        unsafe {
            pg_sys::set_config_option(
                self.real.as_ptr(),
                text,
                pg_sys::GucContext::PGC_USERSET,
                source,
                action,
                true,
                0,
                false,
            );
        }
    }
}
