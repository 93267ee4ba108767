//! `run`: the study repeated in a folder.
//!
//! The table is made once and copied. For each pattern and fraction, the copy is
//! restored, the rows are modified, everything is written out, and the cluster is
//! stopped: that state is copied too, and each run of each variant begins with it, byte
//! for byte. Variants take turns, and repetitions are passes over everything, so that a
//! run that is stopped early has compared everything a few times rather than a few things
//! often.
//!
//! What is finished is in results.csv and never done again; what is not is done anew from
//! copies that are known to be whole. So it does not matter how a run ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::cluster::Cluster;
use crate::folder::{Folder, read_json, write_json};
use crate::machine::Machine;
use crate::page_cache::{drop_everything, drop_from_page_cache};
use crate::results::{Cell, Log, Measured, Operation, Purpose, Row, Shape};
use crate::snapshot::Snapshot;
use crate::study_table::{self, Table};
use crate::timed_vacuum::{Cache, Session, create_warm_up_table};
use crate::variant::{Setting, Variant};
use crate::workload::{Fraction, Pattern};

/// How often the self-check repeats its cell.
const SELF_CHECKS: u32 = 10;

/// The fraction at which the self-check is made, or else the one in the middle: not so
/// little that start-up is all of the time.
const SELF_CHECK_FRACTION: f64 = 5e-4;

/// What shall be measured.
pub struct Plan {
    /// The table.
    pub table: Table,
    /// How rows are modified.
    pub patterns: Vec<Pattern>,
    /// How many.
    pub fractions: Vec<Fraction>,
    /// What is compared.
    pub variants: Vec<Variant>,
    /// Settings of all servers.
    pub settings: Vec<Setting>,
    /// What is timed.
    pub operation: Operation,
    /// Where the files' pages are.
    pub cache: Cache,
    /// How files are dropped from the kernel's cache.
    pub dropping: Dropping,
    /// How often everything is repeated.
    pub repetitions: u32,
    /// Whether the noise is measured first.
    pub self_check: bool,
    /// No run begins after this time.
    pub time_limit: Option<Duration>,
}

/// How files are dropped from the kernel's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropping {
    /// All files (/proc/sys/vm/drop_caches).
    Everything,
    /// The table's own (posix_fadvise).
    Files,
}

impl Dropping {
    /// drop_caches where it can be used, as by root; posix_fadvise otherwise.
    pub fn available() -> Dropping {
        let writable = std::fs::OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches").is_ok();
        if writable { Dropping::Everything } else { Dropping::Files }
    }

    /// In results.csv.
    pub fn name(self) -> &'static str {
        match self {
            Dropping::Everything => "drop_caches",
            Dropping::Files => "posix_fadvise",
        }
    }
}

/// How a run of an experiment ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Everything is measured.
    Finished,
    /// The time was up first.
    TimeIsUp,
}

/// A state of the cluster that is measured, as its mark says.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct State {
    pattern: Pattern,
    fraction: Fraction,
    modified_pages: u64,
}

/// A run that is to be done.
#[derive(Clone)]
struct Task<'a> {
    purpose: Purpose,
    repetition: u32,
    pattern: Pattern,
    fraction: Fraction,
    variant: &'a Variant,
}

/// A plan being carried out in a folder.
pub struct Experiment<'a> {
    plan: &'a Plan,
    folder: &'a Folder,
    cluster: &'a Cluster,
    log: Log,
    machine: Machine,
    deadline: Option<Instant>,
    progress: ProgressBar,
    /// Variants that the server refuses, with what it said.
    refused: BTreeMap<String, String>,
}

impl<'a> Experiment<'a> {
    /// Begins, or goes on.
    ///
    /// # Errors
    ///
    /// Where results.csv is not one of ours, or has a variant of the same name with other
    /// settings.
    pub fn new(plan: &'a Plan, folder: &'a Folder, cluster: &'a Cluster) -> Result<Experiment<'a>, Error> {
        let log = Log::open(&folder.path().join("results.csv"))?;
        for row in log.rows() {
            let same_name = plan.variants.iter().find(|variant| variant.name == row.cell.variant);
            if let Some(variant) = same_name.filter(|variant| variant.settings_text() != row.cell.settings) {
                return Err(format!(
                    "\"{}\" was measured with other settings of its own (\"{}\"); give it another name, with --variant",
                    variant.name, row.cell.settings
                )
                .into());
            }
        }
        let mut machine = Machine::of(folder.path())?;
        if plan.cache == Cache::Cold {
            machine.cache_dropped_by = plan.dropping.name().into();
        }
        let deadline = plan.time_limit.map(|limit| Instant::now() + limit);
        Ok(Experiment {
            plan,
            folder,
            cluster,
            log,
            machine,
            deadline,
            progress: ProgressBar::hidden(),
            refused: BTreeMap::new(),
        })
    }

    /// Measures what is not in results.csv yet.
    ///
    /// # Errors
    ///
    /// Where no variant can be measured at all: what the server, the file system or the
    /// kernel said. A variant that fails is a row with its error.
    pub fn run(mut self) -> Result<End, Error> {
        self.cluster.stop_at_once()?;
        let tasks = self.tasks();
        self.progress = progress_bar(tasks.len() as u64);
        if tasks.is_empty() {
            return Ok(End::Finished);
        }
        self.make_table()?;
        self.find_refused()?;
        let mut end = End::Finished;
        for same_state in
            tasks.chunk_by(|one, other| one.state() == other.state() && one.repetition == other.repetition)
        {
            if self.is_time_up() {
                end = End::TimeIsUp;
                break;
            }
            end = self.run_on_one_state(same_state)?;
        }
        self.cluster.stop_at_once()?;
        self.progress.finish_and_clear();
        Ok(end)
    }

    /// All that is to be done and is not done, in order.
    fn tasks(&self) -> Vec<Task<'a>> {
        let plan = self.plan;
        let mut tasks = Vec::new();
        if plan.self_check
            && let (Some(pattern), Some(fraction)) =
                (plan.patterns.first(), self_check_fraction(&plan.fractions))
            && let Some(variant) = plan.variants.first()
        {
            tasks.extend((1..=SELF_CHECKS).map(|repetition| Task {
                purpose: Purpose::SelfCheck,
                repetition,
                pattern: *pattern,
                fraction,
                variant,
            }));
        }
        for repetition in 1..=plan.repetitions {
            for pattern in &plan.patterns {
                for fraction in &plan.fractions {
                    // Another one begins each time.
                    let turn = repetition as usize % plan.variants.len().max(1);
                    let (later, sooner) = plan.variants.split_at(turn);
                    tasks.extend(sooner.iter().chain(later).map(|variant| Task {
                        purpose: Purpose::Comparison,
                        repetition,
                        pattern: *pattern,
                        fraction: *fraction,
                        variant,
                    }));
                }
            }
        }
        tasks.retain(|task| !self.log.has(task.purpose, &self.cell(task), task.repetition));
        tasks
    }

    fn cell(&self, task: &Task) -> Cell {
        let reading = task.variant.reading.as_ref();
        Cell {
            pattern: task.pattern,
            fraction: task.fraction,
            variant: task.variant.name.clone(),
            threshold: reading.map(|reading| reading.threshold.0),
            read_mode: reading.map(|reading| reading.read_mode.clone()).unwrap_or_default(),
            read_ahead: reading.map(|reading| reading.read_ahead),
            settings: task.variant.settings_text(),
            operation: self.plan.operation,
            cache: self.plan.cache,
        }
    }

    fn is_time_up(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn say(&self, message: String) {
        if self.progress.is_hidden() {
            eprintln!("{message}");
        } else {
            self.progress.set_message(message);
        }
    }

    // --- states ---

    fn copy(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the table and its copy, unless they are there.
    fn make_table(&self) -> Result<(), Error> {
        let mark = self.copy("table.json");
        if mark.exists() {
            return Ok(());
        }
        self.folder.check_room(&self.plan.table)?;
        self.say(format!("making the table ({} rows)", self.plan.table.rows()));
        self.cluster.create(&self.plan.settings)?;
        // Or else each copy has as much WAL as making the table took.
        self.cluster.start(&[Setting::new("wal_recycle", "off")], None)?;
        let mut client = self.cluster.connect()?;
        client.batch_execute("CREATE EXTENSION vacuum_skip")?;
        create_warm_up_table(&mut client)?;
        self.plan.table.create(&mut client)?;
        client.batch_execute("CHECKPOINT")?;
        drop(client);
        self.cluster.shut_down()?;
        Snapshot::take(&self.cluster.data(), self.copy("table"))?;
        write_json(&mark, &self.plan.table)
    }

    /// Tries each variant's settings once, so that what the server refuses is not made
    /// ready for in vain each time.
    fn find_refused(&mut self) -> Result<(), Error> {
        let library = Setting::new("shared_preload_libraries", "vacuum_skip");
        self.restore("table")?;
        self.cluster.start(&[library], None)?;
        let mut client = self.cluster.connect()?;
        for variant in &self.plan.variants {
            let statements = variant.reading.iter().flat_map(crate::variant::Reading::statements);
            for statement in statements {
                if let Err(error) = client.batch_execute(&statement) {
                    let error = one_line(&error);
                    eprintln!("{} is left out: {error}", variant.name);
                    self.refused.insert(variant.name.clone(), error);
                    break;
                }
            }
        }
        self.cluster.stop_at_once()
    }

    fn restore(&self, copy: &str) -> Result<(), Error> {
        self.cluster.stop_at_once()?;
        // Taking a copy makes what is there equal to it, and so does restoring one.
        Snapshot::take(&self.copy(copy), self.cluster.data())?;
        Ok(())
    }

    /// The state with these rows modified; made, unless it is there.
    fn state(&self, pattern: Pattern, fraction: Fraction) -> Result<State, Error> {
        let mark = self.copy("state.json");
        let wanted = |state: &State| state.pattern == pattern && state.fraction == fraction;
        if let Some(state) = read_json(&mark).ok().filter(wanted) {
            return Ok(state);
        }
        if mark.exists() {
            std::fs::remove_file(&mark)?;
        }
        self.restore("table")?;
        self.cluster.start(&[], None)?;
        let mut client = self.cluster.connect()?;
        pattern.modify(&mut client, &self.plan.table, fraction)?;
        // Not all-visible: what a threshold of 1 reads, but for a last page that is.
        let query =
            "SELECT scanned_pages - skippable_pages_scanned FROM vacuum_skip_plan($1::text::regclass, '{1}')";
        let modified_pages: i64 = client.query_one(query, &[&study_table::NAME])?.get(0);
        client.batch_execute("CHECKPOINT")?;
        drop(client);
        self.cluster.shut_down()?;
        Snapshot::take(&self.cluster.data(), self.copy("state"))?;
        let state = State { pattern, fraction, modified_pages: u64::try_from(modified_pages)? };
        write_json(&mark, &state)?;
        Ok(state)
    }

    // --- runs ---

    fn run_on_one_state(&mut self, tasks: &[Task]) -> Result<End, Error> {
        let (pattern, fraction) = tasks[0].state();
        let purpose = match tasks[0].purpose {
            Purpose::SelfCheck => "self-check".to_owned(),
            Purpose::Comparison => format!("repetition {}", tasks[0].repetition),
        };
        self.say(format!("{purpose}: {}, {fraction} of the rows", pattern.name()));
        let mut state = None;
        for task in tasks {
            if self.is_time_up() {
                return Ok(End::TimeIsUp);
            }
            // Nothing is made ready for variants that are refused.
            if state.is_none() && !self.refused.contains_key(&task.variant.name) {
                state = Some(self.state(pattern, fraction)?);
            }
            self.run_task(task, state.as_ref())?;
            self.progress.inc(1);
        }
        Ok(End::Finished)
    }

    fn run_task(&mut self, task: &Task, state: Option<&State>) -> Result<(), Error> {
        let mut row = Row {
            started: utc_now(),
            purpose: task.purpose,
            repetition: task.repetition,
            cell: self.cell(task),
            shape: self.shape(state),
            measured: Measured::default(),
            machine: self.machine.clone(),
        };
        let refused = self.refused.get(&task.variant.name).cloned();
        let result = match (refused, state) {
            (Some(error), _) => Err(error),
            (None, None) => Err("there is no state".to_owned()),
            (None, Some(state)) => self.measure(task, state, &mut row.machine).map_err(|error| {
                self.cluster.wait_if_stopped_for_good();
                eprintln!("{} failed: {error}", task.variant.name);
                one_line(error.as_ref())
            }),
        };
        row.measured = result.unwrap_or_else(|error| Measured { error, ..Measured::default() });
        self.log.append(row)
    }

    fn shape(&self, state: Option<&State>) -> Shape {
        let table = &self.plan.table;
        Shape {
            bytes: table.bytes,
            rows: table.rows(),
            rows_a_page: table.actual_rows_a_page(),
            fillfactor: table.fillfactor,
            indexes: table.indexes,
            modified_pages: state.map_or(0, |state| state.modified_pages),
        }
    }

    fn measure(&self, task: &Task, state: &State, machine: &mut Machine) -> Result<Measured, Error> {
        self.restore("state")?;
        let variant = task.variant;
        self.cluster.start(&variant.configuration(), variant.programs.as_deref())?;
        let statements: Vec<String> =
            variant.reading.iter().flat_map(crate::variant::Reading::statements).collect();
        let mut session = Session::open(self.cluster.how_to_connect(), self.cluster.data(), &statements)?;
        let measured = match self.plan.operation {
            Operation::Vacuum => self.vacuum(&mut session, variant)?,
            Operation::Scan => self.scan(&mut session)?,
        };
        machine.ask_server(session.client())?;
        drop(session);
        self.cluster.stop_at_once()?;
        let for_nothing = measured.pages_scanned.map(|pages| pages.saturating_sub(state.modified_pages));
        Ok(Measured { pages_read_for_nothing: for_nothing, ..measured })
    }

    fn vacuum(&self, session: &mut Session, variant: &Variant) -> Result<Measured, Error> {
        session.warm_up()?;
        self.place(session)?;
        let vacuum = session.time()?;
        let figures = vacuum.figures;
        if variant.reading.is_some() != figures.threshold.is_some() {
            return Err("VACUUM ran on another code than it should".into());
        }
        let pages = figures.rel_pages + figures.removed_pages;
        Ok(Measured {
            seconds: Some(vacuum.seconds),
            pages_total: Some(pages),
            pages_scanned: Some(figures.scanned_pages),
            pages_skipped: Some(pages - figures.scanned_pages),
            threshold_used: figures.threshold.map(i64::try_from).transpose()?,
            blocks_hit: Some(figures.blocks_hit),
            blocks_read: Some(figures.blocks_read),
            read_ms: figures.io_ms.map(|(read, _)| read),
            write_ms: figures.io_ms.map(|(_, write)| write),
            wal_records: Some(figures.wal_records),
            wal_full_page_images: Some(figures.wal_fpi),
            wal_bytes: Some(figures.wal_bytes),
            tuples_removed: Some(figures.removed_tuples),
            ..Measured::of(&vacuum.used)
        })
    }

    fn scan(&self, session: &mut Session) -> Result<Measured, Error> {
        session.scan_to_warm_up()?;
        self.place(session)?;
        let (scan, used) = session.time_scan()?;
        let count = |column: &str| {
            scan.row.try_get::<_, i64>(column).ok().and_then(|count| u64::try_from(count).ok())
        };
        Ok(Measured {
            seconds: Some(scan.seconds),
            pages_total: count("rel_pages"),
            pages_scanned: count("scanned_pages"),
            pages_skipped: count("skipped_pages"),
            threshold_used: scan.row.try_get::<_, i32>("threshold").ok().map(i64::from),
            blocks_hit: count("blocks_hit"),
            blocks_read: count("blocks_read"),
            read_ms: scan.row.try_get("read_time_ms").ok(),
            tuples_removed: count("dead_tuples"),
            ..Measured::of(&used)
        })
    }

    /// Puts the files where they shall be.
    fn place(&self, session: &mut Session) -> Result<(), Error> {
        match (self.plan.cache, self.plan.dropping) {
            (Cache::Cold, Dropping::Everything) => Ok(drop_everything()?),
            (Cache::Cold, Dropping::Files) => drop_from_page_cache(&session.files()?),
            (Cache::Kernel, _) => session.place_files(Cache::Kernel),
        }
    }
}

impl Task<'_> {
    fn state(&self) -> (Pattern, Fraction) {
        (self.pattern, self.fraction)
    }
}

fn self_check_fraction(fractions: &[Fraction]) -> Option<Fraction> {
    let usual = fractions.iter().find(|fraction| fraction.value() == SELF_CHECK_FRACTION);
    usual.or(fractions.get(fractions.len() / 2)).copied()
}

fn progress_bar(tasks: u64) -> ProgressBar {
    let bar = ProgressBar::new(tasks);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} runs, {eta} left; {msg}") {
        bar.set_style(style);
    }
    bar
}

/// An error as a cell's text.
fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    let server = error.downcast_ref::<postgres::Error>().and_then(postgres::Error::as_db_error);
    let text = server.map_or_else(|| error.to_string(), |error| error.message().to_owned());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As in 2026-01-31T12:00:00Z.
fn utc_now() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    crate::timing::utc(seconds.map_or(0, |elapsed| elapsed.as_secs()))
}

/// Where the programs of a server are: the folder that VACUUM_SKIP_BINDIR names, or that
/// of the pg_config on the path.
///
/// # Errors
///
/// Where there is neither.
pub fn default_programs() -> Result<PathBuf, Error> {
    if let Some(folder) = std::env::var_os("VACUUM_SKIP_BINDIR") {
        return Ok(folder.into());
    }
    let output = std::process::Command::new("pg_config").arg("--bindir").output();
    let output = output.map_err(|_| "no server is named (--server), and there is no pg_config")?;
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).to_owned())
}
