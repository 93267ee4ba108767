//! `vacuum-skip-lab run` on a real server: what it leaves behind, how it goes on after it
//! was killed, and what it says to bad input.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use vacuum_skip_lab::results::{self, Operation, Purpose, Row};
use vacuum_skip_lab::timed_vacuum::Cache;

const FRACTIONS: [&str; 2] = ["0.0005", "0.005"];
const VARIANTS: [&str; 2] = ["server", "threshold-1"];

/// A folder for a run, in which whatever is left running is stopped when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("lab-run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Folder(folder)
    }

    /// Runs with 64 MB and more options.
    fn run(&self, options: &[&str]) -> Command {
        let mut command = lab();
        command.arg("run").arg(&self.0).args(["--size", "64MB", "--drop-by", "posix_fadvise"]);
        command.args(options);
        command
    }

    fn rows(&self) -> Vec<Row> {
        results::read(&self.0).unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    fn is_server_running(&self) -> bool {
        let pid = self.text("data/postmaster.pid").lines().next().map(str::to_owned);
        pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let cleaned = lab().arg("clean").arg(&self.0).arg("--all").output();
        if !std::thread::panicking() {
            let cleaned = cleaned.unwrap();
            assert!(cleaned.status.success(), "{}", said(&cleaned));
            assert!(!self.0.exists(), "clean has left something in {}", self.0.display());
        }
    }
}

fn lab() -> Command {
    assert!(
        std::env::var_os("VACUUM_SKIP_BINDIR").is_some() && std::env::var_os("VACUUM_SKIP_STAGE").is_some(),
        "no server and no extension are named; run scripts/test.sh live"
    );
    Command::new(env!("CARGO_BIN_EXE_vacuum-skip-lab"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

fn fails(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "no error, but: {}", said(&output));
    said(&output)
}

/// Waits until the file has more than `lines` lines.
fn wait_for_lines(child: &mut Child, file: &Path, lines: usize) {
    wait_for(child, "lines", || fs::read_to_string(file).unwrap_or_default().lines().count() > lines);
}

/// Waits for something that a running child brings about.
fn wait_for(child: &mut Child, what: &str, is_there: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was to be stopped");
        assert!(started.elapsed() < Duration::from_secs(120), "two minutes without {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// All runs that two repetitions have.
fn expected() -> BTreeSet<(u32, String, String)> {
    let repetitions = |fraction: &str, variant: &str| {
        [1, 2].map(|repetition| (repetition, fraction.to_owned(), variant.to_owned()))
    };
    FRACTIONS
        .iter()
        .flat_map(|fraction| VARIANTS.iter().flat_map(move |variant| repetitions(fraction, variant)))
        .collect()
}

#[test]
fn a_run_that_is_killed_goes_on_and_its_figures_hold() {
    let folder = Folder::new("killed");
    let options = ["--fractions", &FRACTIONS.join(","), "--only", &VARIANTS.join(","), "--repetitions", "2"];
    let csv = folder.0.join("results.csv");

    let mut child = folder.run(&options).stderr(Stdio::null()).spawn().unwrap();
    wait_for_lines(&mut child, &csv, 3);
    signal(&child, "KILL");
    child.wait().unwrap();
    // As if it had been killed in the middle of a row.
    let before = folder.text("results.csv");
    let finished = before.lines().count();
    fs::write(&csv, format!("{before}2026-01-31T12:00:00Z,compar")).unwrap();

    succeeds(&mut folder.run(&options));
    let after = folder.text("results.csv");
    assert!(after.starts_with(&before), "finished rows have changed");
    assert!(after.lines().count() > finished);
    let rows = folder.rows();
    let runs: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.repetition, row.cell.fraction.to_string(), row.cell.variant.clone()))
        .collect();
    assert_eq!((runs, rows.len()), (expected(), 8));
    rows.iter().for_each(check_figures);

    // Nothing is left to do, so nothing is done; what is named twice is one thing.
    succeeds(folder.run(&options).args(["--fractions", FRACTIONS[0]]));
    assert_eq!(folder.text("results.csv"), after);
    check_report(&folder);
}

fn check_figures(row: &Row) {
    let (measured, shape) = (&row.measured, &row.shape);
    assert_eq!(measured.error, "");
    assert_eq!(
        (row.purpose, row.cell.operation, row.cell.cache),
        (Purpose::Comparison, Operation::Vacuum, Cache::Cold)
    );
    assert_eq!(measured.pages_total, Some(8192));
    let fraction = row.cell.fraction.value();
    // Some of the 92 rows of a page are modified.
    let expected = 8192.0 * (1.0 - (1.0 - fraction).powi(92));
    assert!((shape.modified_pages as f64 / expected - 1.0).abs() < 0.2, "{shape:?}");
    let scanned = measured.pages_scanned.unwrap();
    if row.cell.variant == "server" {
        assert_eq!(measured.threshold_used, None);
        assert!(scanned > 3 * shape.modified_pages / 2, "{measured:?}");
    } else {
        assert_eq!(measured.threshold_used, Some(1));
        // The last page is read in any case.
        assert!(scanned <= shape.modified_pages + 1, "{measured:?}");
    }
    assert_eq!(measured.pages_skipped, Some(8192 - scanned));
    assert_eq!(measured.pages_read_for_nothing, Some(scanned - shape.modified_pages));
    let rows = shape.rows as f64 * fraction;
    assert!((measured.tuples_removed.unwrap() as f64 / rows - 1.0).abs() < 0.2, "{measured:?}");
    // Cold: each page comes from the device, or was read ahead.
    assert!(measured.blocks_read.unwrap() >= scanned);
    assert!(measured.process_read_bytes.unwrap() >= 8192 * shape.modified_pages, "{measured:?}");
    assert!(
        measured.wal_full_page_images.unwrap() >= shape.modified_pages,
        "after a checkpoint: {measured:?}"
    );
    let seconds = measured.seconds.unwrap();
    assert!(seconds > 0.0 && measured.read_ms.unwrap() > 0.0 && measured.read_ms.unwrap() < 1e3 * seconds);
    assert!(
        measured.cpu_user_seconds.unwrap() + measured.cpu_system_seconds.unwrap() > 0.0 || seconds < 0.05
    );
    assert_eq!(row.machine.cache_dropped_by, "posix_fadvise");
    assert!(row.machine.server_version.starts_with("18"), "{:?}", row.machine);
    assert_eq!(
        row.machine.server_settings,
        if row.cell.variant == "server" { "" } else { "shared_preload_libraries=vacuum_skip" }
    );
}

/// The report of the program itself, on rows that it has measured.
fn check_report(folder: &Folder) {
    succeeds(lab().arg("report").arg(&folder.0));
    let html = folder.text("report.html");
    for fraction in FRACTIONS {
        for variant in VARIANTS {
            let of_it = |row: &&Row| row.cell.fraction.to_string() == fraction && row.cell.variant == variant;
            let times: Vec<f64> =
                folder.rows().iter().filter(of_it).filter_map(|row| row.measured.seconds).collect();
            let [one, other] = times[..] else { panic!("{times:?}") };
            let middle = format!("{:.3}</td>", (one + other) / 2.0);
            assert!(html.contains(&middle), "{fraction}, {variant}: {middle}");
        }
    }
    assert!(html.contains("PostgreSQL 18"));
    assert!(folder.text("report.md").contains("# VACUUM at other thresholds"));
}

#[test]
fn an_interrupt_stops_the_server_and_keeps_the_files() {
    let folder = Folder::new("interrupted");
    let options = ["--only", &VARIANTS.join(",")];
    let mut child = folder.run(&options).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_lines(&mut child, &folder.0.join("results.csv"), 1);
    wait_for(&mut child, "a server", || folder.is_server_running());
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(said(&output).contains("interrupted; the same command goes on"), "{}", said(&output));
    assert!(!folder.is_server_running());
    assert!(folder.0.join("table").exists());
    assert!(
        !folder.rows().is_empty() && folder.rows().iter().all(Row::succeeded),
        "what was interrupted is no row"
    );
    // The results outlive the clusters.
    succeeds(lab().arg("clean").arg(&folder.0));
    assert!(!folder.0.join("table").exists() && !folder.rows().is_empty());
}

/// A variant that its server refuses, one whose server does not start, and one of another
/// build; in the kernel's cache, and by the read-only scan.
#[test]
fn variants_that_fail_leave_the_others_alone() {
    let folder = Folder::new("variants");
    let bindir = format!("patched={}", std::env::var("VACUUM_SKIP_BINDIR").unwrap());
    let options = [
        ["--bindir", &bindir],
        ["--variant", "broken=server"],
        ["--variant-conf", "broken:io_method=telepathy"],
        ["--variant-conf", "patched:io_method=sync"],
        ["--only", "server,broken,patched"],
        ["--repetitions", "1"],
        ["--fractions", "0.0005"],
        ["--patterns", "clustered"],
    ];
    let said = succeeds(folder.run(&options.concat()).arg("--warm"));
    assert!(said.contains("broken failed: the server did not start; its log says:"), "{said}");
    let rows = folder.rows();
    let found = |name: &str| rows.iter().find(|row| row.cell.variant == name).unwrap();
    assert!(found("broken").measured.error.contains("telepathy"), "{:?}", found("broken"));
    assert_eq!(found("patched").machine.server_settings, "io_method=sync");
    assert_eq!(found("patched").measured.pages_scanned, found("server").measured.pages_scanned);
    assert_eq!((rows.len(), found("server").cell.cache), (3, Cache::Kernel));
    assert_eq!(found("server").machine.cache_dropped_by, "");

    let options =
        ["--only", "threshold-1,threshold-32-ahead-0", "--repetitions", "1", "--fractions", "0.0005"];
    succeeds(folder.run(&options).arg("--scan-only"));
    let rows = folder.rows();
    let scans: Vec<&Row> = rows.iter().filter(|row| row.cell.operation == Operation::Scan).collect();
    assert_eq!(scans.len(), 2);
    for scan in scans {
        assert_eq!(
            (scan.measured.wal_bytes, scan.measured.threshold_used),
            (None, scan.cell.threshold.map(i64::from))
        );
        assert!(scan.measured.pages_scanned.unwrap() >= scan.shape.modified_pages);
        assert!(scan.measured.tuples_removed.unwrap() > 0, "what a VACUUM would remove");
    }
    succeeds(lab().arg("report").arg(&folder.0));
    assert!(folder.text("report.html").contains("<li>broken: the server did not start"));
}

#[test]
fn a_self_check_repeats_one_cell() {
    let folder = Folder::new("self-check");
    let options = ["--only", "server", "--repetitions", "0", "--self-check", "--fractions", "0.0005"];
    succeeds(&mut folder.run(&options));
    let rows = folder.rows();
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.purpose == Purpose::SelfCheck && row.succeeded()));
    assert!(rows.iter().all(|row| row.measured.pages_scanned == rows[0].measured.pages_scanned));
}

#[test]
fn bad_input_is_told_before_anything_is_done() {
    let folder = Folder::new("bad");
    let error = |options: &[&str]| fails(&mut folder.run(options));
    let cases: [(&[&str], &str); 9] = [
        (&["--size", "34"], "\"34\" is not a size such as 512MB, 34GB or 1TB"),
        (&["--size", "31TB"], " are free on its file system"),
        (&["--fractions", "2"], "\"2\" is not a fraction: more than 0, at most 1"),
        (&["--thresholds", "-2"], "\"-2\" is not a threshold: 0 to 2147483647, or auto"),
        (&["--rows-per-page", "200"], "at a fillfactor of 50 a page holds at most 92 rows, not 200"),
        (
            &["--variant-conf", "nobody:io_method=sync"],
            "there is no variant \"nobody\"; there are: server, threshold-1",
        ),
        (&["--bindir", "patched=/nowhere"], "there is no initdb in /nowhere"),
        (&["--server", "/nowhere"], "there is no initdb in /nowhere"),
        (&["--conf", "io_method"], "\"io_method\" is not of the form name=value"),
    ];
    for (options, expected) in cases {
        let said = error(options);
        assert!(said.contains(expected), "{options:?}: {said}");
        assert!(!folder.0.join("data").exists(), "{options:?}");
        let _ = lab().arg("clean").arg(&folder.0).arg("--all").output();
    }
    let said = fails(lab().arg("report").arg(std::env::temp_dir().join("no such folder")));
    assert!(said.contains("no such folder: No such file or directory"), "{said}");
    // What is dropped at the end has to be ours.
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.0.join("letter"), "dear").unwrap();
    assert!(error(&[]).contains("is neither empty nor a folder of vacuum-skip-lab"));
    assert!(fails(lab().arg("clean").arg(&folder.0)).contains("is not a folder of vacuum-skip-lab"));
    assert_eq!(folder.text("letter"), "dear");
    fs::remove_file(folder.0.join("letter")).unwrap();
    fs::write(folder.0.join("vacuum-skip-lab.json"), "{}").unwrap();
}
