//! VACUUM on vacuum_skip's engine against the server's own, on identical copies of a
//! cluster, for the update fractions of the study.
//!
//! For each fraction, the cluster of a freshly vacuumed table is restored, that share of
//! the rows is updated, everything is written out, and the cluster is stopped: a
//! snapshot of that is what each vacuum begins with. The ways take turns, and each round
//! begins with another one. The first round is not timed: it samples what they wait for.

use std::fmt::Write;

use vacuum_skip_lab::page_cache::available_bytes;
use vacuum_skip_lab::server::Server;
use vacuum_skip_lab::snapshot::Snapshot;
use vacuum_skip_lab::study_table::Table;
use vacuum_skip_lab::timed_vacuum::{Cache, Session, TimedVacuum, create_warm_up_table};
use vacuum_skip_lab::timing::{least, median, most};
use vacuum_skip_lab::waits::Waits;
use vacuum_skip_lab::workload::{Fraction, Pattern};
use vacuum_skip_lab::{Error, device, study_table};

use crate::Arguments;

/// Too few to tell shares by.
const FEW_SAMPLES: u32 = 20;

/// A way to vacuum.
struct Way {
    name: &'static str,
    cache: Cache,
    /// None: the server's own VACUUM, in a server that has not loaded the library.
    ours: Option<Settings>,
}

struct Settings {
    threshold: u64,
    read_ahead: u32,
}

/// Those with the same cache are compared; the first one is the server's own.
const WAYS: [Way; 6] = [
    Way { name: "stock", cache: Cache::Cold, ours: None },
    Way { name: "32, no hints", cache: Cache::Cold, ours: Some(Settings { threshold: 32, read_ahead: 0 }) },
    Way { name: "32, hints", cache: Cache::Cold, ours: Some(Settings { threshold: 32, read_ahead: 256 }) },
    Way { name: "1, hints", cache: Cache::Cold, ours: Some(Settings { threshold: 1, read_ahead: 256 }) },
    Way { name: "stock", cache: Cache::Kernel, ours: None },
    Way { name: "32, no hints", cache: Cache::Kernel, ours: Some(Settings { threshold: 32, read_ahead: 0 }) },
];

impl Way {
    fn statements(&self) -> Vec<String> {
        let Some(Settings { threshold, read_ahead }) = &self.ours else { return Vec::new() };
        vec![
            "LOAD 'vacuum_skip'".into(),
            "SET vacuum_skip.vacuum_engine = always".into(),
            format!("SET vacuum_skip.skip_pages_threshold = {threshold}"),
            format!("SET vacuum_skip.read_ahead = {read_ahead}"),
        ]
    }
}

/// What a way took on the table of one fraction.
struct Cell {
    way: &'static Way,
    vacuums: Vec<TimedVacuum>,
    waits: Waits,
}

impl Cell {
    fn new(way: &'static Way) -> Cell {
        Cell { way, vacuums: Vec::new(), waits: Waits::default() }
    }

    fn of(&self, figure: impl Fn(&TimedVacuum) -> f64) -> Vec<f64> {
        self.vacuums.iter().map(figure).collect()
    }

    fn middle(&self, figure: impl Fn(&TimedVacuum) -> f64) -> f64 {
        median(&self.of(figure)).unwrap_or(f64::NAN)
    }

    fn milliseconds(&self) -> Vec<f64> {
        self.of(|vacuum| vacuum.seconds * 1e3)
    }

    /// Pages read, which must not differ between repetitions.
    fn scanned_pages(&self) -> u64 {
        self.vacuums.first().map_or(0, |vacuum| vacuum.figures.scanned_pages)
    }

    /// Keeps a vacuum, if it is what was asked for.
    fn keep(&mut self, vacuum: TimedVacuum) -> Result<(), Error> {
        let Way { name, ours, .. } = self.way;
        let expected = ours.as_ref().map(|settings| settings.threshold);
        if vacuum.figures.threshold != expected {
            return Err(format!("{name}: the threshold in force was {:?}", vacuum.figures.threshold).into());
        }
        if !self.vacuums.is_empty() && vacuum.figures.scanned_pages != self.scanned_pages() {
            return Err(format!("{name}: two vacuums of one table read different pages").into());
        }
        self.vacuums.push(vacuum);
        Ok(())
    }

    /// The share of the processors that other programs had meanwhile.
    fn taken_by_others(&self) -> f64 {
        let sum = |figure: fn(&TimedVacuum) -> u64| self.vacuums.iter().map(figure).sum::<u64>() as f64;
        sum(|vacuum| vacuum.used.taken_by_others) / sum(|vacuum| vacuum.used.processor_time)
    }

    /// Shares of the time: on a processor by the kernel's account, the rest as sampled.
    fn bound_by(&self) -> String {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let cpu = self.middle(|vacuum| seconds(vacuum.used.backend.on_cpu) / vacuum.seconds);
        let queue = self.middle(|vacuum| seconds(vacuum.used.backend.in_queue) / vacuum.seconds);
        let mut shares = vec![("CPU", cpu), ("queueing for a CPU", queue)];
        if self.waits.samples >= FEW_SAMPLES {
            let reads = match self.way.cache {
                Cache::Cold => "device",
                Cache::Kernel => "I/O workers",
            };
            shares.push((reads, self.waits.share(is_read)));
            shares.push(("WAL", self.waits.share(is_wal)));
            shares.push(("other waits", self.waits.share(|event| !is_read(event) && !is_wal(event))));
        }
        shares.retain(|(_, share)| *share >= 0.1);
        shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let mut shares: Vec<String> =
            shares.iter().map(|(what, share)| format!("{what} {:.0} %", share * 100.0)).collect();
        if self.waits.samples < FEW_SAMPLES {
            shares.push("the rest is too short to sample".into());
        }
        shares.join(", ")
    }
}

fn is_read(event: &str) -> bool {
    ["DataFileRead", "DataFilePrefetch", "Aio", "BufferIo"].iter().any(|name| event.starts_with(name))
}

fn is_wal(event: &str) -> bool {
    event.starts_with("Wal") || event.starts_with("WAL")
}

/// All ways on the table of one fraction.
struct Row {
    fraction: Fraction,
    cells: Vec<Cell>,
}

impl Row {
    /// The cells with the same cache.
    fn cells(&self, cache: Cache) -> Vec<&Cell> {
        self.cells.iter().filter(|cell| cell.way.cache == cache).collect()
    }

    /// The server and ours must read the same pages at the server's own threshold.
    fn check(&self) -> Result<(), Error> {
        let at_32 = |cell: &&Cell| cell.way.ours.as_ref().is_none_or(|settings| settings.threshold == 32);
        let mut pages = self.cells.iter().filter(at_32).map(Cell::scanned_pages);
        let first = pages.next();
        if pages.any(|pages| Some(pages) != first) {
            return Err(format!(
                "fraction {}: other pages than the server's own VACUUM reads",
                self.fraction
            )
            .into());
        }
        Ok(())
    }

    fn print_details(&self) {
        for cell in &self.cells {
            let cache = match cell.way.cache {
                Cache::Cold => "cold",
                Cache::Kernel => "kernel",
            };
            let times = cell.milliseconds();
            println!(
                "| {} | {cache} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {:.0} | {:.1} | {} | {} | {:.0} % |",
                self.fraction,
                cell.way.name,
                median(&times).unwrap_or(f64::NAN),
                least(&times),
                most(&times),
                cell.middle(|vacuum| vacuum.used.backend.on_cpu as f64 / 1e6),
                cell.scanned_pages(),
                cell.middle(|vacuum| vacuum.used.server.read_bytes as f64 / 1e6),
                cell.middle(|vacuum| vacuum.figures.wal_bytes as f64 / 1e6),
                device_busy(cell),
                cell.bound_by(),
                100.0 * cell.taken_by_others().min(1.0),
            );
        }
    }

    /// The share of the table's pages that a threshold of 1 reads, in per cent.
    fn modified_percent(&self) -> f64 {
        let least = self
            .cells
            .iter()
            .flat_map(|cell| &cell.vacuums)
            .min_by_key(|vacuum| vacuum.figures.scanned_pages);
        least.map_or(f64::NAN, |vacuum| {
            100.0 * vacuum.figures.scanned_pages as f64 / vacuum.figures.rel_pages as f64
        })
    }
}

fn device_busy(cell: &Cell) -> String {
    let busy =
        |vacuum: &TimedVacuum| vacuum.used.device.map(|device| device.busy as f64 / 1e3 / vacuum.seconds);
    let busy: Vec<f64> = cell.vacuums.iter().filter_map(busy).collect();
    median(&busy).map_or("unknown".into(), |busy| format!("{:.0} %", 100.0 * busy.min(1.0)))
}

/// A server whose data folder is restored before each vacuum.
struct Bench {
    server: Server,
    vacuumed: Snapshot,
    repetitions: u32,
}

impl Bench {
    fn set_up(arguments: &Arguments) -> Result<Bench, Error> {
        eprintln!("making a table of {} pages (about a minute for each 100,000)", arguments.vacuum_pages);
        let server = Server::start(&arguments.folder, &[])?;
        let mut client = server.connect()?;
        create_warm_up_table(&mut client)?;
        Table::of_the_study(arguments.vacuum_pages).create(&mut client)?;
        let files = study_table::heap_files(&mut client, &server.data_folder())?;
        drop(client);
        server.shut_down()?;
        print_device(&files)?;
        let vacuumed = Snapshot::take(&server.data_folder(), arguments.folder.join("vacuumed"))?;
        Ok(Bench { server, vacuumed, repetitions: arguments.repetitions })
    }

    /// The cluster with a share of the rows updated.
    fn update(&self, arguments: &Arguments, fraction: Fraction) -> Result<Snapshot, Error> {
        self.vacuumed.restore(&self.server.data_folder())?;
        self.server.restart(&[])?;
        let mut client = self.server.connect()?;
        let table = Table::of_the_study(arguments.vacuum_pages);
        Pattern::Uniform.modify(&mut client, &table, fraction)?;
        client.batch_execute("CHECKPOINT")?;
        drop(client);
        self.server.shut_down()?;
        Snapshot::take(&self.server.data_folder(), arguments.folder.join("updated"))
    }

    /// A session on the restored cluster.
    fn prepare(&self, updated: &Snapshot, way: &Way) -> Result<Session, Error> {
        self.server.stop_at_once()?;
        updated.restore(&self.server.data_folder())?;
        // What is measured has to fit into memory beside the snapshot.
        if available_bytes()? < 4 * updated.bytes()? {
            updated.drop_from_page_cache()?;
        }
        self.server.restart(&[])?;
        Session::prepare(&self.server, &way.statements(), way.cache)
    }

    fn measure(&self, arguments: &Arguments, fraction: Fraction) -> Result<Row, Error> {
        eprintln!("measuring: {fraction} of the rows updated");
        let updated = self.update(arguments, fraction)?;
        let mut cells: Vec<Cell> = WAYS.iter().map(Cell::new).collect();
        for cell in &mut cells {
            cell.waits = self.prepare(&updated, cell.way)?.sample(&self.server)?;
        }
        for round in 0..self.repetitions as usize {
            for turn in 0..cells.len() {
                let cell = (round + turn) % cells.len();
                let vacuum = self.prepare(&updated, cells[cell].way)?.time()?;
                cells[cell].keep(vacuum)?;
            }
        }
        self.server.stop_at_once()?;
        let row = Row { fraction, cells };
        row.check()?;
        Ok(row)
    }
}

fn print_device(files: &[std::path::PathBuf]) -> Result<(), Error> {
    match (device::random_reads_a_second(files, 5)?, device::sequential_bytes_a_second(files, 5)?) {
        (Some(reads), Some(bytes)) => println!(
            "\nfio: {reads:.0} random reads of 8 kB a second at queue depth 32; {:.0} MB a second sequentially.",
            bytes / 1e6
        ),
        _ => println!("\nfio is not installed, so the device's own rates are not known."),
    }
    Ok(())
}

/// Prints the ratios to the server's own, as Markdown: of the medians, and in parentheses
/// of the shortest times.
fn print_ratios(heading: &str, rows: &[Row], cache: Cache) {
    let Some(first) = rows.first() else { return };
    let mut header = "| rows updated | pages modified | stock, ms |".to_string();
    let mut line = "| ---: | ---: | ---: |".to_string();
    for cell in first.cells(cache).iter().skip(1) {
        let _ = write!(header, " {} |", cell.way.name);
        line.push_str(" ---: |");
    }
    println!("\n{heading}\n\n{header} stock is bound by |\n{line} --- |");
    for row in rows {
        let cells = row.cells(cache);
        let stock = cells[0];
        let (middle, shortest) =
            (median(&stock.milliseconds()).unwrap_or(f64::NAN), least(&stock.milliseconds()));
        print!("| {} | {:.2} % | {middle:.1} |", row.fraction, row.modified_percent());
        for cell in &cells[1..] {
            let times = cell.milliseconds();
            let ratio = median(&times).unwrap_or(f64::NAN) / middle;
            print!(" {ratio:.2} ({:.2}) |", least(&times) / shortest);
        }
        println!(" {} |", stock.bound_by());
    }
}

/// Measures, and prints the tables.
pub fn measure(arguments: &Arguments) -> Result<(), Error> {
    let bench = Bench::set_up(arguments)?;
    println!(
        "\nVACUUM, every way\n\n\
         | rows updated | cache | threshold | median ms | min | max | CPU ms | pages scanned | MB read | MB of WAL | device busy | bound by | others |\n\
         | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |"
    );
    let mut rows = Vec::new();
    for fraction in &arguments.vacuum_fractions {
        let row = bench.measure(arguments, *fraction)?;
        row.print_details();
        rows.push(row);
    }
    print_ratios(
        "VACUUM, cold: nothing of the table in shared buffers or the kernel's cache",
        &rows,
        Cache::Cold,
    );
    print_ratios("VACUUM, in the kernel's cache", &rows, Cache::Kernel);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use vacuum_skip_lab::processes::{Difference, Used};
    use vacuum_skip_lab::timed_vacuum::TimedVacuum;
    use vacuum_skip_lab::verbose::VacuumFigures;
    use vacuum_skip_lab::waits::Waits;
    use vacuum_skip_lab::workload::STUDY_FRACTIONS;

    use super::{Cell, Row, WAYS};

    fn vacuum(threshold: Option<u64>, scanned_pages: u64) -> TimedVacuum {
        let backend = Used { on_cpu: 1_000_000_000, in_queue: 200_000_000, ..Used::default() };
        TimedVacuum {
            seconds: 2.0,
            figures: VacuumFigures { threshold, scanned_pages, ..VacuumFigures::default() },
            used: Difference {
                backend,
                processor_time: 4_000_000_000,
                taken_by_others: 1_000_000_000,
                ..Difference::default()
            },
        }
    }

    fn kept(way: usize, threshold: Option<u64>, scanned_pages: u64) -> Cell {
        let mut cell = Cell::new(&WAYS[way]);
        cell.keep(vacuum(threshold, scanned_pages)).unwrap();
        cell
    }

    #[test]
    fn what_bounds_a_vacuum_is_told_by_share() {
        let mut cell = kept(0, None, 10);
        assert_eq!(cell.bound_by(), "CPU 50 %, queueing for a CPU 10 %, the rest is too short to sample");
        let events = [("AioIoCompletion", 15), ("WalSync", 20), ("WALWrite", 5), ("BufferContent", 5)];
        let events = events.map(|(event, samples)| (event.to_string(), samples));
        cell.waits = Waits { samples: 100, events: BTreeMap::from(events) };
        assert_eq!(cell.bound_by(), "CPU 50 %, WAL 25 %, device 15 %, queueing for a CPU 10 %");
        assert_eq!(cell.taken_by_others(), 0.25);
    }

    #[test]
    fn a_vacuum_that_is_not_what_was_asked_for_is_refused() {
        let refused =
            |mut cell: Cell, threshold, pages| cell.keep(vacuum(threshold, pages)).unwrap_err().to_string();
        assert_eq!(refused(kept(0, None, 10), Some(32), 10), "stock: the threshold in force was Some(32)");
        assert_eq!(refused(kept(1, Some(32), 10), None, 10), "32, no hints: the threshold in force was None");
        assert_eq!(
            refused(kept(0, None, 10), None, 11),
            "stock: two vacuums of one table read different pages"
        );
    }

    #[test]
    fn ways_at_the_threshold_of_the_server_must_read_its_pages() {
        let row = |ours| Row {
            fraction: STUDY_FRACTIONS[7],
            cells: vec![kept(0, None, 10), kept(1, Some(32), ours), kept(3, Some(1), 4)],
        };
        assert!(row(10).check().is_ok());
        assert!(row(11).check().is_err());
    }
}
