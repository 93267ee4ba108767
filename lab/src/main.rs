//! `vacuum-skip-lab`: the study of VACUUM's threshold repeated on one's own storage.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use vacuum_skip_lab::cluster::{Cluster, check_programs};
use vacuum_skip_lab::experiment::{Dropping, End, Experiment, Plan, default_programs};
use vacuum_skip_lab::folder::{Common, Folder};
use vacuum_skip_lab::results::Operation;
use vacuum_skip_lab::study_table::Table;
use vacuum_skip_lab::timed_vacuum::Cache;
use vacuum_skip_lab::variant::{Choice, Setting, THRESHOLDS, Threshold, Variant, add_setting, named};
use vacuum_skip_lab::workload::{Fraction, Pattern, STUDY_FRACTIONS};
use vacuum_skip_lab::{Error, report};

/// How long does VACUUM take, on this storage, when it skips pages from other thresholds
/// than 32? Measures it on a throwaway cluster, and draws tables and charts.
#[derive(Parser)]
#[command(version, max_term_width = 100, args_override_self = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, in a folder on the storage; on the same folder, go on.
    Run(Box<Run>),
    /// Write report.md, report.html and charts/ from results.
    Report(Report),
    /// Remove the clusters of a folder, and keep its results.
    Clean(Clean),
}

#[derive(Args)]
struct Run {
    /// A folder on the storage to measure: absent, empty, or of an earlier run.
    folder: PathBuf,

    /// The programs of the server to measure (initdb, pg_ctl, postgres); by default those
    /// of VACUUM_SKIP_BINDIR, or else of the pg_config on the path.
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Another build of the same major version, whose own VACUUM is one more variant.
    #[arg(long, value_name = "NAME=PATH", value_parser = named_path)]
    bindir: Vec<(String, PathBuf)>,
    /// A setting of all servers.
    #[arg(long, value_name = "NAME=VALUE")]
    conf: Vec<Setting>,
    /// A setting of one variant.
    #[arg(long, value_name = "VARIANT:NAME=VALUE", value_parser = variant_setting)]
    variant_conf: Vec<(String, Setting)>,
    /// One more variant, which begins as another one.
    #[arg(long, value_name = "NAME=VARIANT", value_parser = pair)]
    variant: Vec<(String, String)>,

    /// The table's size.
    #[arg(long, default_value = "1GB", value_parser = size)]
    size: u64,
    /// Rows that a page shall have.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=200))]
    rows_per_page: u32,
    /// The table's fillfactor, in per cent.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(10..=100))]
    fillfactor: u32,
    /// Indexes on the column that updates change.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=32))]
    indexes: u32,
    /// How rows are modified.
    #[arg(long, value_delimiter = ',', default_value = "uniform")]
    patterns: Vec<Pattern>,
    /// Shares of the rows that are modified.
    #[arg(long, value_delimiter = ',', default_values_t = STUDY_FRACTIONS)]
    fractions: Vec<Fraction>,

    /// Thresholds of vacuum_skip; auto is the automatic one.
    #[arg(long, value_delimiter = ',', default_values_t = THRESHOLDS, allow_hyphen_values = true)]
    thresholds: Vec<Threshold>,
    /// How vacuum_skip reads: all thresholds in the first way, the least and the greatest
    /// in the others.
    #[arg(long, value_delimiter = ',', default_values_t = [ReadMode::Stream, ReadMode::Sync], value_enum)]
    read_modes: Vec<ReadMode>,
    /// Blocks of which the kernel is told ahead; the first for all thresholds.
    #[arg(long, value_delimiter = ',', default_values_t = [256, 0], value_parser = clap::value_parser!(u32).range(0..=8192))]
    read_ahead: Vec<u32>,
    /// All thresholds in all ways.
    #[arg(long)]
    all_combinations: bool,
    /// These variants alone; their names are shown where one is not known.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,

    /// Repetitions of each run.
    #[arg(long, default_value_t = 3)]
    repetitions: u32,
    /// Begin no run after so many minutes.
    #[arg(long, value_name = "MINUTES")]
    time_limit: Option<u64>,
    /// Keep files in the kernel's cache; by default they are dropped before each run.
    #[arg(long)]
    warm: bool,
    /// How files are dropped: drop_caches where it can be used, posix_fadvise otherwise.
    #[arg(long)]
    drop_by: Option<DropBy>,
    /// Time the read-only scan (vacuum_skip_scan) instead of VACUUM: no WAL.
    #[arg(long)]
    scan_only: bool,
    /// First repeat one run ten times, to tell how noisy the machine is.
    #[arg(long)]
    self_check: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReadMode {
    Stream,
    Sync,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DropBy {
    #[value(name = "drop_caches")]
    DropCaches,
    #[value(name = "posix_fadvise")]
    PosixFadvise,
}

#[derive(Args)]
struct Report {
    /// results.csv files, or folders with one.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Where to write; by default the folder of the first.
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Args)]
struct Clean {
    /// A folder that `run` was given.
    folder: PathBuf,
    /// Remove results and reports too.
    #[arg(long)]
    all: bool,
    /// The programs of its server, as for `run`.
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name) && !value.is_empty() => Ok((name.into(), value.into())),
        _ => {
            Err(format!("\"{text}\" is not of the form NAME=VALUE, with letters, digits and -_. in the name"))
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    pair(text).map(|(name, path)| (name, path.into()))
}

fn variant_setting(text: &str) -> Result<(String, Setting), String> {
    let (name, setting) =
        text.split_once(':').ok_or_else(|| format!("\"{text}\" is not of the form VARIANT:NAME=VALUE"))?;
    Ok((name.into(), setting.parse()?))
}

/// In the units of PostgreSQL's settings.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is not a size such as 512MB, 34GB or 1TB");
    let units = [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1_u64 << 40)];
    let found = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, unit) = found.ok_or_else(wrong)?;
    let bytes =
        number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(*unit)).ok_or_else(wrong)?;
    // PostgreSQL's tables have fewer than 2^32 pages.
    if (8192..8192 << 32).contains(&bytes) { Ok(bytes) } else { Err("a table has 8kB to 32TB".into()) }
}

impl Run {
    fn plan(&self) -> Result<Plan, Error> {
        let table = Table {
            bytes: self.size,
            rows_a_page: self.rows_per_page,
            fillfactor: self.fillfactor,
            indexes: self.indexes,
        };
        table.check()?;
        let dropping = match self.drop_by {
            None => Dropping::available(),
            Some(DropBy::DropCaches) => Dropping::Everything,
            Some(DropBy::PosixFadvise) => Dropping::Files,
        };
        Ok(Plan {
            table,
            patterns: once_each(&self.patterns),
            fractions: once_each(&self.fractions),
            variants: self.variants()?,
            settings: self.conf.clone(),
            operation: if self.scan_only { Operation::Scan } else { Operation::Vacuum },
            cache: if self.warm { Cache::Kernel } else { Cache::Cold },
            dropping,
            repetitions: self.repetitions,
            self_check: self.self_check,
            time_limit: self.time_limit.map(|minutes| Duration::from_secs(60 * minutes)),
        })
    }

    fn variants(&self) -> Result<Vec<Variant>, Error> {
        let read_mode =
            |mode: &ReadMode| if *mode == ReadMode::Stream { "stream" } else { "sync" }.to_owned();
        let choice = Choice {
            thresholds: once_each(&self.thresholds),
            read_modes: once_each(&self.read_modes).iter().map(read_mode).collect(),
            read_ahead: once_each(&self.read_ahead),
            all_combinations: self.all_combinations,
        };
        let mut variants = choice.variants();
        for (name, path) in &self.bindir {
            check_programs(path)?;
            variants.push(Variant::build(name, path.canonicalize()?));
        }
        for (name, original) in &self.variant {
            let copy = Variant { name: name.clone(), ..named(&mut variants, original)?.clone() };
            variants.push(copy);
        }
        for (name, setting) in &self.variant_conf {
            add_setting(&mut variants, name, setting.clone())?;
        }
        for name in &self.only {
            named(&mut variants, name)?;
        }
        variants.retain(|variant| self.only.is_empty() || self.only.contains(&variant.name));
        // A server's own VACUUM has no read-only scan.
        variants.retain(|variant| !self.scan_only || variant.reading.is_some());
        for (position, variant) in variants.iter().enumerate() {
            if variants[..position].iter().any(|other| other.name == variant.name) {
                return Err(format!("there are two variants \"{}\"", variant.name).into());
            }
        }
        Ok(variants)
    }

    fn run(&self) -> Result<ExitCode, Error> {
        let plan = self.plan()?;
        let settings = plan.settings.iter().map(Setting::to_string).collect();
        let programs = programs(self.server.as_ref())?;
        let folder = Folder::take(&self.folder, &Common { table: plan.table.clone(), settings })?;
        let cluster = Arc::new(Cluster::new(folder.path(), &programs)?);
        stop_on_signals(&cluster)?;
        let end = Experiment::new(&plan, &folder, &cluster)?.run();
        cluster.wait_if_stopped_for_good();
        cluster.stop_at_once()?;
        cluster.remove_socket_folder();
        let path = self.folder.display();
        match end? {
            End::Finished => eprintln!("everything is measured; results are in {path}/results.csv"),
            End::TimeIsUp => {
                eprintln!("the time is up; results are in {path}/results.csv, and the same command goes on")
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is named twice is measured once.
fn once_each<T: Clone + PartialEq>(values: &[T]) -> Vec<T> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(value) {
            once.push(value.clone());
        }
    }
    once
}

fn programs(chosen: Option<&PathBuf>) -> Result<PathBuf, Error> {
    let programs = match chosen {
        Some(path) => path.clone(),
        None => default_programs()?,
    };
    check_programs(&programs)?;
    Ok(programs.canonicalize()?)
}

/// On SIGINT, SIGTERM and SIGHUP the server is stopped and the program ends. What is
/// finished is in results.csv by then, and everything else is made anew.
fn stop_on_signals(cluster: &Arc<Cluster>) -> Result<(), Error> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let cluster = Arc::clone(cluster);
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            cluster.stop_for_good();
            eprintln!("interrupted; the same command goes on, and \"clean\" removes the files");
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

impl Report {
    fn run(&self) -> Result<ExitCode, Error> {
        let sources = report::read(&self.results)?;
        let first = vacuum_skip_lab::results::file_of(&self.results[0]);
        let folder = self.output.clone().or(first.parent().map(PathBuf::from)).unwrap_or_default();
        // An empty path is the folder at hand.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        report::write(&sources, &folder)?;
        println!("{}", folder.join("report.html").display());
        Ok(ExitCode::SUCCESS)
    }
}

impl Clean {
    fn run(&self) -> Result<ExitCode, Error> {
        let folder = Folder::take_ours(&self.folder)?;
        if folder.path().join("data").join("postmaster.pid").exists() {
            Cluster::new(folder.path(), &programs(self.server.as_ref())?)?.stop_at_once()?;
        }
        folder.clean(self.all)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(run) => run.run(),
        Command::Report(report) => report.run(),
        Command::Clean(clean) => clean.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
