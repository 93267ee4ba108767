//! `VACUUM (SKIP_PAGES_THRESHOLD n)`: a threshold for one command.
//!
//! It is checked as `ExecVacuum` (vacuum.c) checks its own options: every one that
//! is given, before anything else is looked at; the last one counts. It combines
//! with every other option but FULL, which reads all pages anyway. Where no
//! VACUUM of ours would come to see it, it is refused.

use std::ffi::CStr;

use pgrx::PgSqlErrorCode;

use super::threshold;
use crate::server::error::UserError;
use crate::server::process_utility::{self, NewOption, OptionValue, VacuumCommand};
use crate::server::table_am;
use crate::settings::{self, VacuumEngine};

const NAME: &CStr = c"skip_pages_threshold";

/// Makes VACUUM take the option.
pub fn register() {
    process_utility::add_vacuum_option(NewOption { name: NAME, value: threshold_of });
}

/// The threshold that `command` gives, if it does.
fn threshold_of(command: &VacuumCommand) -> Option<i32> {
    let mut given = None;
    for option in command.options(NAME) {
        let value = checked(option.value).unwrap_or_else(|error| command.raise_at(option, error));
        given = Some((option, value));
    }
    let (option, threshold) = given?;
    if command.is_on(c"full") {
        command.raise_at(option, not_with_full());
    }
    if let Err(error) = engine_is_ours() {
        command.raise_at(option, error);
    }
    Some(threshold)
}

fn checked(value: OptionValue) -> Result<i32, UserError> {
    let range = format!("between 0 and {}", i32::MAX);
    let message = match value {
        OptionValue::Integer(value @ -1..) => return threshold::checked(value),
        OptionValue::Missing => format!("SKIP_PAGES_THRESHOLD option requires an integer {range}"),
        _ => format!("SKIP_PAGES_THRESHOLD option must be an integer {range}"),
    };
    Err(UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message))
}

fn not_with_full() -> UserError {
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "VACUUM option SKIP_PAGES_THRESHOLD cannot be used with FULL",
    )
}

/// Otherwise the command would do as if the option had not been given.
fn engine_is_ours() -> Result<(), UserError> {
    let unavailable = || {
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "VACUUM option SKIP_PAGES_THRESHOLD is not available",
        )
    };
    if table_am::replaced_vacuum().is_none() {
        return Err(unavailable()
            .detail("The server's vacuum routine could not be replaced when the library was loaded.")
            .hint("A warning at that time says why."));
    }
    if settings::vacuum_engine() == VacuumEngine::Never {
        return Err(unavailable()
            .detail("\"vacuum_skip.vacuum_engine\" is \"never\".")
            .hint("Set it to \"auto\" or \"always\"."));
    }
    Ok(())
}
