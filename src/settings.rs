//! Every setting (GUC) of the extension.

use std::ffi::CStr;

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

use crate::server::alias::define_threshold_alias;
use crate::server::settings::{Description, define_threshold, is_sessions, reserve_prefix};

const THRESHOLD_NAME: &CStr = c"vacuum_skip.skip_pages_threshold";

/// The server's SKIP_PAGES_THRESHOLD.
pub const DEFAULT_THRESHOLD: i32 = 32;
const DEFAULT_READ_MODE: ReadMode = ReadMode::Stream;
const DEFAULT_READ_AHEAD: i32 = 256;

static SKIP_PAGES_THRESHOLD: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_THRESHOLD);
static READ_MODE: GucSetting<ReadMode> = GucSetting::<ReadMode>::new(DEFAULT_READ_MODE);
static READ_AHEAD: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_READ_AHEAD);
static VACUUM_ENGINE: GucSetting<VacuumEngine> = GucSetting::<VacuumEngine>::new(VacuumEngine::Auto);

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

/// Which code a VACUUM runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum VacuumEngine {
    /// Ours where something is set that the server's could not heed.
    #[name = c"auto"]
    Auto,
    /// Ours.
    #[name = c"always"]
    Always,
    /// The server's.
    #[name = c"never"]
    Never,
}

/// The number of consecutive skippable pages from which they are skipped.
pub fn skip_pages_threshold() -> i32 {
    SKIP_PAGES_THRESHOLD.get()
}

/// Whether that is the session's own choice: it was SET, or its client asked for it
/// when it connected. Otherwise it is configured for the role, the database or the
/// server.
pub fn threshold_is_sessions() -> bool {
    is_sessions(THRESHOLD_NAME)
}

/// Which code a VACUUM runs on.
pub fn vacuum_engine() -> VacuumEngine {
    VACUUM_ENGINE.get()
}

/// Whether pages are to be read as nobody asked for otherwise.
pub fn reading_is_default() -> bool {
    READ_MODE.get() == DEFAULT_READ_MODE && READ_AHEAD.get() == DEFAULT_READ_AHEAD
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
            details: c"0 and 1 skip every such page. Without vacuum_skip, VACUUM uses 32.",
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
    GucRegistry::define_enum_guc(
        c"vacuum_skip.vacuum_engine",
        c"Sets whether VACUUM runs on the server's code or on vacuum_skip's.",
        c"\"auto\" takes vacuum_skip's where a setting, an option or a label asks for what the server's cannot do.",
        &VACUUM_ENGINE,
        GucContext::Userset,
        GucFlags::default(),
    );
    reserve_prefix(c"vacuum_skip");
}
