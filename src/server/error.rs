//! Errors for the user, in the form of PostgreSQL's error style guide.

use std::ffi::{CStr, CString, c_int};
use std::panic::Location;
use std::ptr;

use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::boundary::guarded;
use super::raw;

/// An error that names the thing and says what to do: a primary message
/// (lower case, no full stop), and detail and hint as sentences.
#[derive(Debug)]
pub struct UserError {
    code: PgSqlErrorCode,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl UserError {
    /// An error with its SQLSTATE and primary message.
    pub fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        UserError { code, message: message.into(), detail: None, hint: None }
    }

    /// Adds the detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Raises it as an ERROR, which ends the current statement.
    #[track_caller]
    pub fn raise(self) -> ! {
        self.report_at(PgLogLevel::ERROR);
        unreachable!("a report at level ERROR does not return")
    }

    /// Reports it as a WARNING.
    #[track_caller]
    pub fn warn(self) {
        self.report_at(PgLogLevel::WARNING);
    }

    /// By the server's own functions, so that whoever adds CONTEXT lines is asked.
    #[track_caller]
    fn report_at(self, level: PgLogLevel) {
        let text = |text: String| CString::new(text.replace('\0', "")).unwrap_or_default();
        let message = text(self.message);
        let (detail, hint) = (self.detail.map(text), self.hint.map(text));
        let code = self.code as c_int;
        // The server keeps the pointer to the file's name as long as the error, which may
        // be longer than any frame of ours.
        let place = Location::caller();
        let file: &'static CStr = place.file_as_c_str();
        let (detail, hint) = (detail.as_deref(), hint.as_deref());
        // SAFETY: the server copies the texts. Nothing made in the closure needs
        // dropping; what is borrowed is dropped by unwinding.
        unsafe {
            guarded(|| {
                if raw::errstart(level as c_int, ptr::null()) {
                    raw::errcode(code);
                    raw::errmsg_internal(c"%s".as_ptr(), message.as_ptr());
                    if let Some(detail) = detail {
                        raw::errdetail_internal(c"%s".as_ptr(), detail.as_ptr());
                    }
                    if let Some(hint) = hint {
                        raw::errhint_internal(c"%s".as_ptr(), hint.as_ptr());
                    }
                    raw::errfinish(file.as_ptr(), place.line() as c_int, c"vacuum_skip".as_ptr());
                }
            });
        }
    }
}

/// Reports what goes on, to the client or to the log as `level` says.
#[track_caller]
pub fn report(level: PgLogLevel, message: String) {
    UserError::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message).report_at(level);
}

/// Takes the value out, or raises the error.
pub trait OrRaise<T> {
    /// The value; raises the error where there is none.
    #[track_caller]
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T, UserError> {
    #[track_caller]
    fn or_raise(self) -> T {
        match self {
            Ok(value) => value,
            Err(error) => error.raise(),
        }
    }
}
