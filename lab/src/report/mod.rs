//! The report: the study's two tables and its charts, from one or several results.csv,
//! with the study's published figures beside one's own.
//!
//! Every figure is the median of its repetitions. A difference that is not larger than
//! the noise is neither coloured nor called faster or slower: see
//! [`crate::comparison::judge`].

pub mod chart;
pub mod document;
pub mod html;
pub mod markdown;
mod section;
mod study;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::comparison::{Group, Source, Spread};
use crate::machine::Machine;
use crate::results::{self, Purpose, Row};
use document::{Block, Document};

/// Charts that are files of their own are so wide, in pixels.
const FILE_WIDTH: u32 = 1000;

/// Reads results: of files, or of folders that `run` was given.
///
/// # Errors
///
/// Where one cannot be read, or holds no row.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let source = |path: &PathBuf| -> Result<Source, Error> {
        let file = results::file_of(path);
        let rows = results::read(path)?;
        if rows.is_empty() {
            return Err(format!("{}: there is no row yet", file.display()).into());
        }
        Ok(Source { name: name_of(&file), rows })
    };
    paths.iter().map(source).collect()
}

/// The folder's name for a results.csv, else the file's.
fn name_of(file: &Path) -> String {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().filter(|_| file.ends_with("results.csv")).and_then(Path::file_name);
    let name = folder.or(file.file_stem()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Writes report.md, report.html, and charts/ into a folder.
///
/// # Errors
///
/// Those of the file system.
pub fn write(sources: &[Source], folder: &Path) -> Result<(), Error> {
    let document = compose(sources)?;
    let charts = folder.join("charts");
    fs::create_dir_all(&charts)?;
    for chart in document.charts() {
        fs::write(charts.join(format!("{}.svg", chart.name)), chart.file(FILE_WIDTH)?)?;
    }
    fs::write(folder.join("report.md"), markdown::render(&document))?;
    fs::write(folder.join("report.html"), html::render(&document)?)?;
    Ok(())
}

/// The report as a document.
///
/// # Errors
///
/// Where the published figures are damaged.
pub fn compose(sources: &[Source]) -> Result<Document, Error> {
    let mut blocks = vec![Block::Paragraph(
        "How long VACUUM takes when it skips all-visible pages from other thresholds than 32, the one that \
         PostgreSQL has compiled in (`SKIP_PAGES_THRESHOLD`). Times are medians; everything is compared on \
         identical copies of the same files."
            .into(),
    )];
    let groups: Vec<(&Source, Group)> = sources
        .iter()
        .flat_map(|source| source.groups().into_iter().map(move |group| (source, group)))
        .collect();
    blocks
        .push(Block::Items(groups.iter().map(|(source, group)| headline(sources, source, group)).collect()));
    blocks.push(Block::Paragraph(
        "▼ faster, ▲ slower, ≈ no difference larger than the noise, ? one run each and no self-check.".into(),
    ));
    for (position, (source, group)) in groups.iter().enumerate() {
        blocks.push(Block::Heading(2, title(sources, source, group)));
        blocks.extend(section::of(group, position + 1)?);
    }
    blocks.extend(study::section()?);
    blocks.push(Block::Heading(2, "Noise".into()));
    blocks.extend(sources.iter().flat_map(noise));
    blocks.push(Block::Heading(2, "Where it was measured".into()));
    blocks.extend(sources.iter().flat_map(machines));
    Ok(Document { title: "VACUUM at other thresholds".into(), blocks })
}

/// A section's title; with the source, where there are several.
fn title(sources: &[Source], source: &Source, group: &Group) -> String {
    let of = if sources.len() > 1 { format!(" ({})", source.name) } else { String::new() };
    format!("{}{of}", section::title(group))
}

fn headline(sources: &[Source], source: &Source, group: &Group) -> String {
    format!("{}: {}", title(sources, source, group), section::extremes(group))
}

fn noise(source: &Source) -> Vec<Block> {
    let checks = source.self_checks();
    if checks.is_empty() {
        return vec![Block::Paragraph(format!(
            "{}: no self-check was run (`--self-check`). A difference counts where all repetitions of one took \
             longer than all of the other.",
            source.name
        ))];
    }
    let sentence = |(row, spread): &(&Row, Spread)| {
        format!(
            "{}: {} runs of {} ({}, {} of the rows) took {} to {} s, {} s in the middle. The noise is {:.1} %: a \
             smaller difference counts for nothing, and neither does one where repetitions overlap.",
            source.name,
            spread.count,
            row.cell.variant,
            row.cell.pattern.name(),
            row.cell.fraction,
            section::seconds(spread.least),
            section::seconds(spread.most),
            section::seconds(spread.median),
            100.0 * spread.noise(),
        )
    };
    vec![Block::Items(checks.iter().map(sentence).collect())]
}

fn machines(source: &Source) -> Vec<Block> {
    let mut known: Vec<&Machine> = Vec::new();
    for row in source.rows.iter().filter(|row| row.purpose == Purpose::Comparison) {
        let alike = |machine: &&Machine| {
            let comparable = |machine: &Machine| Machine {
                server_version: String::new(),
                server_settings: String::new(),
                ..machine.clone()
            };
            comparable(machine) == comparable(&row.machine)
        };
        if !known.iter().any(alike) {
            known.push(&row.machine);
        }
    }
    let mut blocks = vec![Block::Heading(3, source.name.clone())];
    blocks.extend(known.into_iter().map(|machine| Block::Items(facts(source, machine))));
    blocks
}

fn facts(source: &Source, machine: &Machine) -> Vec<String> {
    let unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
    let number = |value: Option<u64>| value.map_or("unknown".to_owned(), |value| value.to_string());
    let turns = match machine.device_rotational {
        Some(0) => ", not rotational",
        Some(_) => ", rotational by the kernel's account",
        None => "",
    };
    let dropped = match machine.cache_dropped_by.as_str() {
        "" => "nothing was dropped from the kernel's cache".to_owned(),
        how => format!("files were dropped from the kernel's cache by {how}"),
    };
    let mut servers: Vec<String> = Vec::new();
    for row in source.rows.iter().filter(|row| row.succeeded()) {
        let settings = match row.machine.server_settings.as_str() {
            "" => "default settings".to_owned(),
            settings => format!("`{settings}`"),
        };
        let server = format!("PostgreSQL {}: {settings}", row.machine.server_version);
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let mut facts = vec![
        format!("Processor: {}, {} online", unknown(&machine.cpu), machine.cpus),
        format!("Memory: {:.1} GB", machine.memory_bytes as f64 / f64::from(1 << 30)),
        format!("Kernel: {}", machine.kernel),
        format!("File system: {} ({})", machine.file_system, machine.mount_options),
        format!("Device: {}, model {}{turns}", unknown(&machine.device), unknown(&machine.device_model)),
        format!(
            "Its queue: scheduler {}, {} requests, readahead {} kB",
            unknown(&machine.device_scheduler),
            number(machine.device_queue_requests),
            number(machine.device_readahead_kb),
        ),
        format!("Before each run {dropped}"),
    ];
    facts.extend(servers);
    facts.push(format!("Measured by vacuum-skip-lab {}", machine.lab_version));
    facts
}
