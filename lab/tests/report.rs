//! The report on results that are made up, so that every figure is known: what tables
//! say, and how it looks in a browser (Debian's chromium) on a phone and on a desk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use vacuum_skip_lab::machine::Machine;
use vacuum_skip_lab::results::{Cell, Log, Measured, Operation, Purpose, Row, Shape};
use vacuum_skip_lab::timed_vacuum::Cache;
use vacuum_skip_lab::variant::{Choice, THRESHOLDS, Variant};
use vacuum_skip_lab::workload::{Fraction, Pattern, STUDY_FRACTIONS};
use vacuum_skip_lab::{report, results};

const REPETITIONS: u32 = 3;
const PAGES: u64 = 131_072;

/// A folder of results; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("lab-report-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// With results of two patterns, as `run` leaves them.
    fn with_results(name: &str) -> Folder {
        let folder = Folder::new(name);
        let mut log = Log::open(&folder.results()).unwrap();
        for repetition in 1..=10 {
            log.append(row(
                Purpose::SelfCheck,
                repetition,
                Pattern::Uniform,
                STUDY_FRACTIONS[7],
                &Variant::server(),
            ))
            .unwrap();
        }
        for repetition in 1..=REPETITIONS {
            for pattern in [Pattern::Uniform, Pattern::HotTail] {
                for fraction in STUDY_FRACTIONS {
                    for variant in variants() {
                        log.append(row(Purpose::Comparison, repetition, pattern, fraction, &variant))
                            .unwrap();
                    }
                }
            }
        }
        folder
    }

    fn results(&self) -> PathBuf {
        self.0.join("results.csv")
    }

    fn report(&self) -> String {
        report::write(&report::read(std::slice::from_ref(&self.0)).unwrap(), &self.0).unwrap();
        fs::read_to_string(self.0.join("report.html")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn variants() -> Vec<Variant> {
    let choice = Choice {
        thresholds: THRESHOLDS.to_vec(),
        read_modes: vec!["stream".into(), "sync".into()],
        read_ahead: vec![256, 0],
        all_combinations: false,
    };
    let mut variants = choice.variants();
    variants.push(Variant::build("patched", "/opt/patched/bin".into()));
    variants
}

/// Seconds that nobody would measure, but that differ from cell to cell.
fn seconds(repetition: u32, fraction: Fraction, variant: &Variant) -> f64 {
    let threshold = variant.reading.as_ref().map_or(32, |reading| reading.threshold.0);
    let slow = f64::from(variant.name.len() as u32) / 40.0;
    let size = (fraction.value() * 1e6).powf(0.4) * (1.0 + f64::from(threshold.unsigned_abs()).ln() * slow);
    0.05 * size * (1.0 + 0.04 * f64::from(repetition % 3))
}

fn row(purpose: Purpose, repetition: u32, pattern: Pattern, fraction: Fraction, variant: &Variant) -> Row {
    let reading = variant.reading.as_ref();
    let measured = if variant.name == "threshold-auto" {
        Measured {
            error: "invalid value for \"skip_pages_threshold\", \nor so".into(),
            ..Measured::default()
        }
    } else if variant.name == "patched" && fraction.value() > 5e-3 {
        Measured { error: "it crashed".into(), ..Measured::default() }
    } else {
        let scanned = ((fraction.value() * 90.0).min(0.9) * PAGES as f64) as u64;
        Measured {
            seconds: Some(seconds(repetition, fraction, variant)),
            pages_total: Some(PAGES),
            pages_scanned: Some(scanned + u64::from(repetition)),
            pages_skipped: Some(PAGES - scanned),
            pages_read_for_nothing: Some(scanned / 2),
            ..Measured::default()
        }
    };
    Row {
        started: "2026-01-31T12:00:00Z".into(),
        purpose,
        repetition,
        cell: Cell {
            pattern,
            fraction,
            variant: variant.name.clone(),
            threshold: reading.map(|reading| reading.threshold.0),
            read_mode: reading.map(|reading| reading.read_mode.clone()).unwrap_or_default(),
            read_ahead: reading.map(|reading| reading.read_ahead),
            settings: String::new(),
            operation: Operation::Vacuum,
            cache: Cache::Cold,
        },
        shape: Shape {
            bytes: 1 << 30,
            rows: 12_058_624,
            rows_a_page: 92,
            fillfactor: 50,
            indexes: 0,
            modified_pages: 600,
        },
        measured,
        machine: Machine {
            cpu: "A processor & <more>".into(),
            cpus: 2,
            kernel: "Linux 6.1".into(),
            file_system: "ext4".into(),
            mount_options: "rw,relatime".into(),
            server_version: "18.6".into(),
            ..Machine::default()
        },
    }
}

/// The tables of a page, by id: rows of cells, the head first.
fn tables(html: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut tables = BTreeMap::new();
    for part in html.split("<table id=\"").skip(1) {
        let (id, rest) = part.split_once('"').unwrap();
        let (table, _) = rest.split_once("</table>").unwrap();
        let rows = table.split("<tr>").skip(1).map(|row| {
            let cells = row.split(['<', '>']).collect::<Vec<_>>();
            let starts = |tag: &str| tag.starts_with("th ") || tag == "td" || tag.starts_with("td ");
            cells.windows(2).filter(|pair| starts(pair[0])).map(|pair| pair[1].to_owned()).collect()
        });
        tables.insert(id.to_owned(), rows.collect());
    }
    tables
}

/// The middle of three.
fn middle(mut values: Vec<f64>) -> f64 {
    assert_eq!(values.len(), REPETITIONS as usize);
    values.sort_by(f64::total_cmp);
    values[1]
}

/// The middle of a column of results.csv in a cell, read by nothing but csv.
fn of_csv(path: &Path, pattern: &str, fraction: &str, variant: &str, column: &str) -> Option<f64> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let headers = reader.headers().unwrap().clone();
    let rows = reader.records().map(Result::unwrap);
    let get = |row: &csv::StringRecord, name: &str| {
        let position = headers.iter().position(|header| header == name).unwrap();
        row[position].to_owned()
    };
    let wanted =
        [("purpose", "comparison"), ("pattern", pattern), ("fraction", fraction), ("variant", variant)];
    let rows = rows.filter(|row| wanted.iter().all(|(name, value)| get(row, name) == *value));
    let values: Vec<f64> = rows.filter_map(|row| get(&row, column).parse().ok()).collect();
    (!values.is_empty()).then(|| middle(values))
}

#[test]
fn the_tables_say_what_the_csv_says() {
    let folder = Folder::with_results("tables");
    let tables = tables(&folder.report());
    let columns = [
        "server",
        "threshold-1",
        "threshold-2",
        "threshold-4",
        "threshold-8",
        "threshold-16",
        "threshold-32",
        "patched",
    ];
    for (position, pattern) in ["uniform", "hot-tail"].into_iter().enumerate() {
        let figure = |row: &[String], variant: &str, column| {
            of_csv(&folder.results(), pattern, &row[0], variant, column)
        };
        let times = &tables[&format!("seconds-{}", position + 1)];
        let percent = &tables[&format!("percent-{}", position + 1)];
        let pages = &tables[&format!("pages-{}", position + 1)];
        assert_eq!(times[0][2..], ["server", "1", "2", "4", "8", "16", "32", "patched"]);
        assert_eq!(times.len(), 1 + STUDY_FRACTIONS.len());
        for row in 1..times.len() {
            let server = figure(&times[row], "server", "seconds").unwrap();
            for (column, variant) in columns.iter().enumerate() {
                let Some(seconds) = figure(&times[row], variant, "seconds") else {
                    assert_eq!(times[row][2 + column], "failed");
                    continue;
                };
                let digits = if seconds < 10.0 { 3 } else { 2 };
                assert_eq!(times[row][2 + column], format!("{seconds:.digits$}"), "{variant}");
                let scanned = figure(&times[row], variant, "pages_scanned").unwrap();
                assert_eq!(pages[row][2 + column], scanned.to_string());
                if column > 0 {
                    let share = &percent[row][1 + column];
                    assert_eq!(
                        share.split_once(' ').unwrap().1,
                        format!("{:.0} %", 100.0 * seconds / server)
                    );
                }
            }
        }
    }
}

#[test]
fn the_details_are_the_csvs() {
    let folder = Folder::with_results("details");
    let details = &tables(&folder.report())["details-1"];
    let succeeding = variants().len() - 1;
    assert_eq!(
        details.len(),
        1 + succeeding * STUDY_FRACTIONS.len() - 1,
        "all but auto and one that crashed"
    );
    for row in &details[1..] {
        let figure = |column| of_csv(&folder.results(), "uniform", &row[0], &row[1], column).unwrap();
        assert_eq!(row[2], "3");
        assert_eq!(
            row[3].parse::<f64>().unwrap(),
            format!("{:.3}", figure("seconds")).parse::<f64>().unwrap()
        );
        assert_eq!(row[7].parse::<f64>().unwrap(), figure("pages_scanned"));
    }
}

#[test]
fn only_what_is_more_than_noise_is_coloured() {
    let folder = Folder::with_results("noise");
    let html = folder.report();
    let (_, rest) = html.split_once("<table id=\"percent-1\">").unwrap();
    let (table, _) = rest.split_once("</table>").unwrap();
    for cell in table.split("<td").skip(3) {
        let (class, text) = cell.split_once('>').unwrap();
        let text = text.split_once('<').unwrap().0;
        let coloured = class.contains("faster") || class.contains("slower");
        assert_eq!(coloured, text.starts_with(['▼', '▲']), "{cell}");
    }
    assert!(table.contains("faster") && table.contains("≈") && table.contains("slower"), "{table}");
}

#[test]
fn what_went_wrong_is_said() {
    let folder = Folder::with_results("failures");
    let html = folder.report();
    assert!(html.contains("threshold-auto: invalid value for &quot;skip_pages_threshold&quot;"));
    assert!(html.contains("<td title=\"it crashed\">failed</td>"));
    assert!(html.contains("A processor &amp; &lt;more&gt;"));
}

#[test]
fn the_studys_tables_are_in_the_report() {
    let folder = Folder::with_results("study");
    let tables = tables(&folder.report());
    let seconds = &tables["study-seconds"];
    assert_eq!(seconds[9], ["0.001", "4.23", "9.27", "11.59", "11.37", "8.58", "5.44"]);
    let percent = &tables["study-percent"];
    assert_eq!(percent[9], ["0.001", "▲ 219 %", "▲ 274 %", "▲ 269 %", "▲ 203 %", "▲ 129 %"]);
    assert_eq!((percent.len(), seconds.len()), (11, 11));
}

#[test]
fn markdown_has_the_same_tables_and_its_charts() {
    let folder = Folder::with_results("markdown");
    let tables = tables(&folder.report());
    let markdown = fs::read_to_string(folder.0.join("report.md")).unwrap();
    for table in tables.values() {
        for row in table {
            let line = format!("| {} |", row.join(" | ")).replace("&gt;", ">");
            assert!(markdown.contains(&line), "{line}");
        }
    }
    let charts: Vec<&str> = markdown
        .lines()
        .filter_map(|line| line.strip_prefix("![")?.split_once("]("))
        .map(|(_, file)| file.trim_end_matches(')'))
        .collect();
    assert_eq!(charts.len(), 8);
    for chart in charts {
        let svg = fs::read_to_string(folder.0.join(chart)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("<style>"), "{chart}");
    }
}

#[test]
fn several_files_are_reported_together() {
    let (one, other) = (Folder::with_results("one"), Folder::with_results("other"));
    report::write(&report::read(&[one.0.clone(), other.results()]).unwrap(), &one.0).unwrap();
    let html = fs::read_to_string(one.0.join("report.html")).unwrap();
    let names = [&one, &other].map(|folder| folder.0.file_name().unwrap().to_string_lossy().into_owned());
    for (name, last) in names.iter().zip(["seconds-2", "seconds-4"]) {
        assert!(html.contains(&format!("<h2>A moving hot tail, cold ({name})</h2>")), "{name}");
        assert!(html.contains(&format!("<table id=\"{last}\">")));
    }
}

#[test]
fn a_file_that_is_not_ours_is_refused_with_its_place() {
    let folder = Folder::with_results("foreign");
    let error = |text: &str| {
        fs::write(folder.results(), text).unwrap();
        report::read(&[folder.results()])
            .err()
            .unwrap()
            .to_string()
            .replace(&folder.results().display().to_string(), "FILE")
    };
    let good = fs::read_to_string(folder.results()).unwrap();
    let line = |number: usize| good.lines().nth(number - 1).unwrap().to_owned();
    let other_header = error("a,b\n1,2\n");
    assert!(
        other_header.starts_with("FILE: line 1, column 1: \"a\" where \"started\" is expected"),
        "{other_header}"
    );
    assert_eq!(
        error(&good.replacen(&line(3), &line(3).replacen("0.0005", "half", 1), 1)),
        "FILE: line 3, column 5 (fraction): \"half\" is not a fraction: more than 0, at most 1"
    );
    let text = error(&good.replacen(&line(4), &line(4).replacen("131072", "many", 1), 1));
    assert!(text.starts_with("FILE: line 4, column 21 (pages_total): "), "{text}");
    assert_eq!(error(&format!("{}\n1,2\n", line(1))), "FILE: line 2 has 2 columns, not 58");
    assert_eq!(error(""), "FILE: there is no row yet");
    fs::remove_file(folder.results()).unwrap();
    let missing = results::read(&folder.results()).err().unwrap().to_string();
    assert!(missing.contains("results.csv: No such file"), "{missing}");
}

// --- in a browser -------------------------------------------------------------------

/// What [`LAYOUT`] finds.
#[derive(Debug, Deserialize)]
struct Layout {
    /// What is wrong.
    problems: Vec<String>,
    charts: usize,
    texts: usize,
    tables: usize,
    background: String,
}

/// Looks at the report in a frame of a given width, so that its styles go by that.
const LAYOUT: &str = r##"<!DOCTYPE html><meta charset="utf-8">
<iframe id="frame" style="width:WIDTHpx;height:900px;border:0" srcdoc="REPORT"></iframe><pre id="found"></pre>
<script>
const frame = document.getElementById('frame');
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow, problems = [], name = e => e.id || e.className || e.tagName;
  const boxes = e => e.getBoundingClientRect(), visible = e => boxes(e).width > 0;
  if (page.documentElement.scrollWidth > WIDTH) problems.push('the page is wider than the screen');
  for (const e of page.querySelectorAll('main *')) {
    if (visible(e) && !e.closest('.scroll') && !e.closest('svg') && boxes(e).right > WIDTH + 1) problems.push('too wide: ' + name(e));
  }
  for (const e of page.querySelectorAll('.scroll')) {
    if (visible(e) && boxes(e).right > WIDTH + 1) problems.push('a table does not scroll: ' + name(e));
  }
  let charts = 0, texts = 0;
  for (const figure of page.querySelectorAll('figure')) {
    const shown = [...figure.querySelectorAll('svg')].filter(visible);
    if (shown.length != 1) problems.push(shown.length + ' charts are shown in ' + figure.id);
    for (const svg of shown) {
      charts++;
      const outer = boxes(svg), all = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
      texts += all.length;
      const words = all.map(t => t.textContent.trim());
      for (const axis of ['rows modified', /seconds|% of/]) {
        if (!words.some(w => w.match(axis))) problems.push('no axis title in ' + figure.id);
      }
      if (!words.some(w => w.match(/threshold|stream/))) problems.push('no legend in ' + figure.id);
      all.forEach((t, i) => {
        const a = boxes(t);
        if (a.left < outer.left || a.right > outer.right || a.top < outer.top || a.bottom > outer.bottom) problems.push('cut off: ' + words[i] + ' in ' + figure.id);
        if (Math.max(a.width, a.height) < 9) problems.push('too small: ' + words[i] + ' in ' + figure.id);
        all.slice(i + 1).forEach((u, j) => {
          const b = boxes(u), over = (x1, x2, y1, y2) => Math.min(x2, y2) - Math.max(x1, y1);
          if (over(a.left, a.right, b.left, b.right) > 1 && over(a.top, a.bottom, b.top, b.bottom) > 2) problems.push('overlap: ' + words[i] + ' and ' + words[i + 1 + j] + ' in ' + figure.id);
        });
      });
    }
  }
  const background = view.getComputedStyle(page.body).backgroundColor;
  const tables = page.querySelectorAll('table').length;
  document.getElementById('found').textContent = JSON.stringify({problems, charts, texts, tables, background});
};
</script>"##;

fn chromium() -> &'static str {
    let works = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works);
    found.expect("no browser to look at the report with; on Debian: apt-get install chromium")
}

/// Runs chromium on a page with more options; what it prints.
fn browse(folder: &Folder, page: &str, options: &[&str]) -> String {
    let output = Command::new(chromium())
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=10000",
        ])
        .arg(format!("--user-data-dir={}", folder.0.join("chromium").display()))
        .args(options)
        .arg(format!("file://{}", folder.0.join(page).display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn layout(folder: &Folder, width: u32, options: &[&str]) -> Layout {
    let html = fs::read_to_string(folder.0.join("report.html")).unwrap();
    let escaped = html.replace('&', "&amp;").replace('"', "&quot;");
    let page = LAYOUT.replace("WIDTH", &width.to_string()).replace("REPORT", &escaped);
    fs::write(folder.0.join("layout.html"), page).unwrap();
    let options = [&["--dump-dom", "--window-size=1400,1000"], options].concat();
    let dom = browse(folder, "layout.html", &options);
    let (_, rest) = dom.rsplit_once("<pre id=\"found\">").unwrap();
    let found =
        rest.split_once("</pre>").unwrap().0.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

#[test]
fn it_reads_well_on_a_phone_and_on_a_desk_in_light_and_in_dark() {
    let folder = Folder::with_results("layout");
    folder.report();
    let dark = "--blink-settings=preferredColorScheme=0";
    let mut backgrounds = Vec::new();
    for (width, options) in [(390, &[][..]), (1280, &[]), (390, &[dark]), (1280, &[dark])] {
        let layout = layout(&folder, width, options);
        assert!(layout.problems.is_empty(), "{width} pixels wide: {:#?}", layout.problems);
        assert_eq!((layout.charts, layout.tables), (8, 12), "{layout:?}");
        assert!(layout.texts > 200, "{layout:?}");
        backgrounds.push(layout.background);
    }
    assert_eq!(
        backgrounds,
        ["rgb(255, 255, 255)", "rgb(255, 255, 255)", "rgb(18, 23, 29)", "rgb(18, 23, 29)"]
    );
}

#[test]
fn it_asks_no_other_host_and_prints_on_a4() {
    let folder = Folder::with_results("print");
    let html = folder.report();
    for request in ["http:", "https:", "src=", "url(", "@import", "<link", "<script"] {
        // The one address is the name of SVG, which is not fetched.
        assert!(!html.replace("http://www.w3.org/2000/svg", "").contains(request), "{request}");
    }
    assert!(html.contains("default-src 'none'"));
    let pdf = folder.0.join("report.pdf");
    browse(&folder, "report.html", &[&format!("--print-to-pdf={}", pdf.display()), "--no-pdf-header-footer"]);
    let pdf = fs::read(pdf).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF"));
    // 210 by 297 mm, in points.
    let boxes: Vec<&str> =
        text.split("/MediaBox [").skip(1).map(|part| part.split_once(']').unwrap().0).collect();
    assert!(boxes.len() >= 4, "{} pages", boxes.len());
    assert!(
        boxes.iter().all(|page| page.starts_with("0 0 594.95") || page.starts_with("0 0 595")),
        "{boxes:?}"
    );
}
