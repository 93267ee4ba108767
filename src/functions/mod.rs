//! What SQL calls: arguments checked and rows built, nothing else.
//!
//! A NULL relation gives no rows, as STRICT functions do.

mod arguments;
mod scan;
mod threshold;
mod what_if;

use pgrx::extension_sql_file;

extension_sql_file!(
    "../../sql/functions.sql",
    name = "functions",
    requires = [
        scan::vacuum_skip_scan,
        threshold::vacuum_skip_set_threshold,
        threshold::vacuum_skip_threshold,
        what_if::vacuum_skip_plan,
        what_if::vacuum_skip_ranges,
        what_if::vacuum_skip_map,
        what_if::vacuum_skip_gaps,
    ],
    finalize
);
