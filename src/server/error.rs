//! Errors for the user, in the form of PostgreSQL's error style guide.

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys::panic::ErrorReport};

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
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("a report at level ERROR does not return")
    }

    /// Sends it as a WARNING, and goes on.
    pub fn warn(self) {
        self.report(PgLogLevel::WARNING);
    }

    fn report(self, level: PgLogLevel) {
        let mut report = ErrorReport::new(self.code, self.message, "vacuum_skip");
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(level);
    }
}

/// Takes the value out, or raises the error.
pub trait OrRaise<T> {
    /// The value; raises the error where there is none.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T, UserError> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| error.raise())
    }
}
