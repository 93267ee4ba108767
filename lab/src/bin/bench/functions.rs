//! The functions of the extension against what PostgreSQL has.

use std::path::PathBuf;

use postgres::Client;
use vacuum_skip_lab::page_cache::{bring_into_page_cache, drop_from_page_cache};
use vacuum_skip_lab::server::Server;
use vacuum_skip_lab::study_table::Table;
use vacuum_skip_lab::timing::{least, median, milliseconds, most};
use vacuum_skip_lab::workload::Pattern;
use vacuum_skip_lab::{Error, device, study_table};

use crate::Arguments;

// Both take less than a round trip between client and server: twenty calls at a
// time, which must differ for the server to make them all.
const PLAN: &str = "SELECT plan.* FROM generate_series(1, 20) AS call,
    vacuum_skip_plan('study', ARRAY[1, 2, 4, 8, 16, 32, 64, 128 + 0 * call]) AS plan";
const MAP_SUMMARY: &str = "SELECT summary.* FROM generate_series(1, 20) AS call,
    pg_visibility_map_summary(('study'::regclass::bigint + 0 * call)::regclass) AS summary";
const APPROX: &str = "SELECT * FROM pgstattuple_approx('study')";
const SCAN: &str = "SELECT * FROM vacuum_skip_scan('study', 1)";
const EVICT: &str = "SELECT pg_buffercache_evict_all()";
const SCAN_32: &str = "SELECT * FROM vacuum_skip_scan('study', 32)";

/// Where the pages are before a query is timed.
#[derive(Clone, Copy)]
enum Cache {
    /// Neither in shared buffers nor in the kernel's cache.
    Cold,
    /// In the kernel's cache, not in shared buffers.
    Kernel,
    /// In shared buffers.
    Shared,
}

/// One way of doing something, and the times it took.
struct Way {
    name: &'static str,
    settings: &'static str,
    query: &'static str,
    times: Vec<f64>,
}

impl Way {
    fn new(name: &'static str, settings: &'static str, query: &'static str) -> Way {
        Way { name, settings, query, times: Vec::new() }
    }
}

/// A server with the table.
struct Bench {
    server: Server,
    repetitions: u32,
    files: Vec<PathBuf>,
    heap_files: Vec<PathBuf>,
}

impl Bench {
    fn set_up(arguments: &Arguments) -> Result<Bench, Error> {
        eprintln!("making a table of {} pages (a minute or two)", arguments.pages);
        let server = Server::start(&arguments.folder, &["session_preload_libraries=vacuum_skip"])?;
        let mut client = server.connect()?;
        for extension in ["vacuum_skip", "pgstattuple", "pg_visibility", "pg_buffercache"] {
            client.batch_execute(&format!("CREATE EXTENSION {extension}"))?;
        }
        let table = Table::of_the_study(arguments.pages);
        table.create(&mut client)?;
        Pattern::Uniform.modify(&mut client, &table, arguments.fraction)?;
        client.batch_execute("CHECKPOINT")?;
        let files = study_table::files(&mut client, &server.data_folder())?;
        let heap_files = study_table::heap_files(&mut client, &server.data_folder())?;
        Ok(Bench { server, repetitions: arguments.repetitions, files, heap_files })
    }

    fn prepare(&self, client: &mut Client, cache: Cache) -> Result<(), Error> {
        match cache {
            Cache::Cold => {
                client.query(EVICT, &[])?;
                drop_from_page_cache(&self.files)
            }
            Cache::Kernel => {
                client.query(EVICT, &[])?;
                bring_into_page_cache(&self.files)
            }
            Cache::Shared => {
                // Without a ring, what is read stays in shared buffers.
                client.batch_execute("SET vacuum_buffer_usage_limit = 0")?;
                client.query(SCAN, &[])?;
                Ok(client.batch_execute("RESET ALL")?)
            }
        }
    }

    /// Times the ways in turn, in one session. The first round is not counted.
    fn time(&self, heading: &str, cache: Cache, ways: &mut [Way]) -> Result<(), Error> {
        eprintln!("measuring: {heading}");
        let mut client = self.server.connect()?;
        for round in 0..=self.repetitions {
            for way in ways.iter_mut() {
                self.prepare(&mut client, cache)?;
                client.batch_execute(way.settings)?;
                let time = milliseconds(&mut client, way.query)?;
                client.batch_execute("RESET ALL")?;
                if round > 0 {
                    way.times.push(time);
                }
            }
        }
        print_table(heading, ways);
        Ok(())
    }

    fn pages_read_at_threshold_1(&self) -> Result<f64, Error> {
        let query = "SELECT scanned_pages FROM vacuum_skip_plan('study', '{1}')";
        Ok(self.server.connect()?.query_one(query, &[])?.get::<_, i64>(0) as f64)
    }

    /// Pages read a second, against the device's own rate.
    fn against_the_device(&self, milliseconds: f64) -> Result<(), Error> {
        let pages = self.pages_read_at_threshold_1()?;
        let rate = pages / milliseconds * 1e3;
        println!("\nCold at threshold 1: {pages} pages, {rate:.0} a second.");
        match device::random_reads_a_second(&self.heap_files, 5)? {
            None => println!("fio is not installed, so the device's own rate is not known."),
            Some(device) => println!(
                "fio, random reads of 8 kB at queue depth 32: {device:.0} a second; ratio {:.2}.",
                rate / device
            ),
        }
        Ok(())
    }
}

/// Prints the ways as Markdown; ratios are to the first.
fn print_table(heading: &str, ways: &[Way]) {
    println!("\n{heading}\n\n| query | median ms | min | max | ratio |\n| --- | ---: | ---: | ---: | ---: |");
    let base = median(&ways[0].times).unwrap_or(f64::NAN);
    for way in ways {
        let middle = median(&way.times).unwrap_or(f64::NAN);
        let (least, most) = (least(&way.times), most(&way.times));
        println!("| {} | {middle:.2} | {least:.2} | {most:.2} | {:.2} |", way.name, middle / base);
    }
}

/// Measures, and prints the tables.
pub fn measure(arguments: &Arguments) -> Result<(), Error> {
    let bench = Bench::set_up(arguments)?;
    let no_hints = "SET vacuum_skip.read_ahead = 0";

    let mut ways = [
        Way::new("`pg_visibility_map_summary`", "", MAP_SUMMARY),
        Way::new("`vacuum_skip_plan`, eight thresholds", "", PLAN),
    ];
    bench.time("The visibility map, twenty calls", Cache::Shared, &mut ways)?;

    let mut ways = [
        Way::new("`pgstattuple_approx`", "", APPROX),
        Way::new("`vacuum_skip_scan`, threshold 1", "", SCAN),
        Way::new("the same, read_ahead 0", no_hints, SCAN),
        Way::new("threshold 32", "", SCAN_32),
        Way::new("the same, read_ahead 0", no_hints, SCAN_32),
    ];
    bench.time("Cold: nothing in shared buffers or the kernel's cache", Cache::Cold, &mut ways)?;
    bench.against_the_device(median(&ways[1].times).unwrap_or(f64::NAN))?;

    let two = || {
        [
            Way::new("`pgstattuple_approx`", "", APPROX),
            Way::new("`vacuum_skip_scan`, threshold 1", "", SCAN),
            Way::new("the same, read mode sync", "SET vacuum_skip.read_mode = sync", SCAN),
        ]
    };
    bench.time("In the kernel's cache", Cache::Kernel, &mut two())?;

    // By default shared buffers are smaller than what is read here.
    bench.server.restart(&["shared_buffers=1GB"])?;
    bench.time("In shared buffers (shared_buffers = 1GB)", Cache::Shared, &mut two())?;
    Ok(())
}
