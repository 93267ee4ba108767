//! Every setting (GUC) of the extension.

use std::ffi::CStr;

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

use crate::server::alias::define_threshold_alias;
use crate::server::settings::{Description, define_threshold, reserve_prefix};

const THRESHOLD_NAME: &CStr = c"vacuum_skip.skip_pages_threshold";

static SKIP_PAGES_THRESHOLD: GucSetting<i32> = GucSetting::<i32>::new(32);
static READ_MODE: GucSetting<ReadMode> = GucSetting::<ReadMode>::new(ReadMode::Stream);
static READ_AHEAD: GucSetting<i32> = GucSetting::<i32>::new(256);

/// How heap pages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum ReadMode {
    /// The read stream, as PostgreSQL 18's VACUUM.
    #[name = c"stream"]
    Stream,
    /// One call for each page, as PostgreSQL 17's.
    #[name = c"sync"]
    Sync,
}

impl ReadMode {
    /// All there are.
    pub const ALL: [ReadMode; 2] = [ReadMode::Stream, ReadMode::Sync];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            ReadMode::Stream => "stream",
            ReadMode::Sync => "sync",
        }
    }

    /// The mode of that name, in any case of letters, as the setting takes it.
    pub fn from_name(name: &str) -> Option<ReadMode> {
        Self::ALL.into_iter().find(|mode| name.eq_ignore_ascii_case(mode.name()))
    }
}

/// The number of consecutive skippable pages from which they are skipped.
pub fn skip_pages_threshold() -> i32 {
    SKIP_PAGES_THRESHOLD.get()
}

/// How heap pages are read.
pub fn read_mode() -> ReadMode {
    READ_MODE.get()
}

/// How many blocks ahead of the scan the kernel is told what will be read.
pub fn read_ahead() -> usize {
    READ_AHEAD.get().unsigned_abs() as usize
}

/// Registers them all; called once, when the library is loaded.
pub fn register() {
    define_threshold(
        Description {
            name: THRESHOLD_NAME,
            summary: c"Sets the number of consecutive all-visible pages from which vacuum_skip skips them.",
            details: c"0 and 1 skip every such page. The server's own VACUUM uses 32.",
        },
        &SKIP_PAGES_THRESHOLD,
    );
    define_threshold_alias(
        Description {
            name: c"skip_pages_threshold",
            summary: c"Short name of vacuum_skip.skip_pages_threshold.",
            details: c"Setting or resetting either sets or resets both.",
        },
        THRESHOLD_NAME,
    );
    GucRegistry::define_enum_guc(
        c"vacuum_skip.read_mode",
        c"Sets how vacuum_skip reads heap pages.",
        c"\"stream\" uses the server's read stream, \"sync\" reads a page at a time.",
        &READ_MODE,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"vacuum_skip.read_ahead",
        c"Sets how far ahead of a scan the kernel is told which blocks will be read.",
        c"0 gives no hints. Hints are given only where maintenance_io_concurrency is not 0.",
        &READ_AHEAD,
        0,
        8192,
        GucContext::Userset,
        GucFlags::UNIT_BLOCKS,
    );
    reserve_prefix(c"vacuum_skip");
}
