//! The whole way of a timed VACUUM on a live server: snapshot, restore, caches, figures,
//! accounts. No test looks at how long anything takes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vacuum_skip_lab::page_cache::{available_bytes, bring_into_page_cache, drop_from_page_cache};
use vacuum_skip_lab::server::Server;
use vacuum_skip_lab::snapshot::Snapshot;
use vacuum_skip_lab::study_table::{self, Table};
use vacuum_skip_lab::timed_vacuum::{Cache, Session, TimedVacuum, create_warm_up_table};
use vacuum_skip_lab::waits::Sampler;
use vacuum_skip_lab::workload::Pattern;

const PAGES: u64 = 2000;

/// A folder that disappears with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("vacuum_skip_lab.{}.{name}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A stopped cluster with 4.5 % of the table's pages modified, and its snapshot.
fn cluster(folder: &Path) -> (Server, Snapshot) {
    let server = Server::start(folder, &[]).unwrap();
    let mut client = server.connect().unwrap();
    create_warm_up_table(&mut client).unwrap();
    let table = Table::of_the_study(PAGES);
    table.create(&mut client).unwrap();
    Pattern::Uniform.modify(&mut client, &table, "0.0005".parse().unwrap()).unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    drop(client);
    server.shut_down().unwrap();
    let snapshot = Snapshot::take(&server.data_folder(), folder.join("snapshot")).unwrap();
    (server, snapshot)
}

fn vacuum(server: &Server, settings: &[String], cache: Cache) -> TimedVacuum {
    server.restart(&[]).unwrap();
    let vacuum = Session::prepare(server, settings, cache).unwrap().time().unwrap();
    // Stopped at once, it could lose what the VACUUM has not flushed.
    server.shut_down().unwrap();
    vacuum
}

fn ours(threshold: u32) -> Vec<String> {
    vec![
        "LOAD 'vacuum_skip'".into(),
        "SET vacuum_skip.vacuum_engine = always".into(),
        format!("SET vacuum_skip.skip_pages_threshold = {threshold}"),
    ]
}

#[test]
fn vacuums_of_restored_copies_find_the_same() {
    let folder = Folder::new("vacuum");
    let (server, snapshot) = cluster(&folder.0);
    let stock = vacuum(&server, &[], Cache::Cold);
    assert_eq!(stock.figures.threshold, None);
    assert_eq!(stock.figures.rel_pages, PAGES);
    assert!(stock.used.backend.on_cpu > 0 && stock.used.backend.on_cpu <= stock.used.server.on_cpu);
    assert!(stock.used.processor_time > 0);

    // Without the copy there is next to nothing left to do.
    let again = vacuum(&server, &[], Cache::Kernel);
    assert!(again.figures.scanned_pages < stock.figures.scanned_pages / 10, "{:?}", again.figures);
    assert!(snapshot.restore(&server.data_folder()).unwrap() > 0);
    assert_eq!(snapshot.restore(&server.data_folder()).unwrap(), 0);

    let at_32 = vacuum(&server, &ours(32), Cache::Kernel);
    assert_eq!(at_32.figures.threshold, Some(32));
    assert_eq!(at_32.figures.scanned_pages, stock.figures.scanned_pages);
    assert_eq!(at_32.figures.wal_fpi, stock.figures.wal_fpi);

    snapshot.restore(&server.data_folder()).unwrap();
    let at_1 = vacuum(&server, &ours(1), Cache::Cold);
    assert_eq!(at_1.figures.threshold, Some(1));
    assert!(at_1.figures.scanned_pages < at_32.figures.scanned_pages, "{:?}", at_1.figures);
    assert_eq!(at_1.figures.wal_fpi, stock.figures.wal_fpi);
}

#[test]
fn a_backend_that_waits_for_its_client_is_seen_waiting() {
    let folder = Folder::new("waits");
    let server = Server::start(&folder.0, &[]).unwrap();
    let mut idle = server.connect().unwrap();
    let backend: i32 = idle.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let started = Instant::now();
    loop {
        let sampler = Sampler::start(server.connect().unwrap(), u32::try_from(backend).unwrap()).unwrap();
        let waits = sampler.stop().unwrap();
        assert!(waits.samples > 0);
        if waits.share(|event| event == "ClientRead") == 1.0 {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{waits:?}");
    }
}

#[test]
fn the_maps_are_no_heap_files() {
    let folder = Folder::new("files");
    let server = Server::start(&folder.0, &[]).unwrap();
    let mut client = server.connect().unwrap();
    Table::of_the_study(10).create(&mut client).unwrap();
    let heap = study_table::heap_files(&mut client, &server.data_folder()).unwrap();
    let all = study_table::files(&mut client, &server.data_folder()).unwrap();
    assert_eq!(heap.len(), 1);
    assert_eq!(std::fs::metadata(&heap[0]).unwrap().len(), 10 * 8192);
    assert_eq!(all.len(), 3, "heap, free space map, visibility map: {all:?}");
    drop_from_page_cache(&all).unwrap();
    bring_into_page_cache(&all).unwrap();
    assert!(available_bytes().unwrap() > 1 << 20);
}
