//! One VACUUM, timed, with what it did and what it took.
//!
//! What would make times incomparable is out of the way before the clock starts: the
//! session has vacuumed another table, so that its catalogs are read and its library
//! is loaded; a checkpoint is over, so that every vacuum writes a full page image of
//! each page that it changes; and the table's files are where [`Cache`] says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use postgres::{Client, Config, NoTls, Row};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::page_cache::{bring_into_page_cache, drop_from_page_cache};
use crate::processes::{Accounts, Difference};
use crate::server::Server;
use crate::study_table;
use crate::verbose::VacuumFigures;
use crate::waits::{Sampler, Waits};

/// A small table of the same cluster, which a session vacuums first.
const WARM_UP: &str = "warm_up";

/// Where the table is before the vacuum. Shared buffers hold none of it: the server
/// has just been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// On the device alone.
    Cold,
    /// In the kernel's cache.
    Kernel,
}

/// What one vacuum did and took.
#[derive(Clone, Debug)]
pub struct TimedVacuum {
    /// Seconds, as the client sees it.
    pub seconds: f64,
    /// What the server says of it.
    pub figures: VacuumFigures,
    /// What the kernel says of it.
    pub used: Difference,
}

/// A read-only scan, timed.
pub struct TimedScan {
    /// Seconds, as the client sees it.
    pub seconds: f64,
    /// What vacuum_skip_scan returned.
    pub row: Row,
}

/// A session that is ready to vacuum the study's table.
pub struct Session {
    client: Client,
    backend: u32,
    messages: Arc<Mutex<String>>,
    data_folder: PathBuf,
}

/// Makes the table that sessions vacuum first.
///
/// # Errors
///
/// Those of the server.
pub fn create_warm_up_table(client: &mut Client) -> Result<(), Error> {
    let create = format!("CREATE TABLE {WARM_UP} WITH (autovacuum_enabled = off) AS SELECT 1 AS value");
    Ok(client.batch_execute(&create)?)
}

impl Session {
    /// Connects to a server that has just been started, executes the statements of
    /// `settings`, and gets everything ready.
    ///
    /// # Errors
    ///
    /// Those of the server and of the file system.
    pub fn prepare(server: &Server, settings: &[String], cache: Cache) -> Result<Session, Error> {
        let mut session = Session::open(server.how_to_connect(), server.data_folder(), settings)?;
        session.warm_up()?;
        session.place_files(cache)?;
        Ok(session)
    }

    /// Connects to the server of a data folder, executes the statements of `settings`,
    /// and makes a checkpoint.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn open(mut how: Config, data_folder: PathBuf, settings: &[String]) -> Result<Session, Error> {
        let messages = Arc::new(Mutex::new(String::new()));
        let noted = Arc::clone(&messages);
        let mut client = how
            .notice_callback(move |notice| {
                if let Ok(mut messages) = noted.lock() {
                    messages.push_str(notice.message());
                    messages.push('\n');
                }
            })
            .connect(NoTls)?;
        for statement in settings {
            client.batch_execute(statement)?;
        }
        client.batch_execute("CHECKPOINT")?;
        let backend = client.query_one("SELECT pg_backend_pid()", &[])?.get::<_, i32>(0);
        let backend = u32::try_from(backend)?;
        Ok(Session { client, backend, messages, data_folder })
    }

    /// The server's other statements are for this.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Vacuums the small table, so that catalogs are read and the library is loaded.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn warm_up(&mut self) -> Result<(), Error> {
        self.vacuum(WARM_UP).map(drop)
    }

    /// The files of the study's table and of its indexes.
    ///
    /// # Errors
    ///
    /// Those of the server and of the file system.
    pub fn files(&mut self) -> Result<Vec<PathBuf>, Error> {
        study_table::files(&mut self.client, &self.data_folder)
    }

    /// Brings the files of the study's table where `cache` says.
    ///
    /// # Errors
    ///
    /// Those of the server and of the file system.
    pub fn place_files(&mut self, cache: Cache) -> Result<(), Error> {
        let files = self.files()?;
        match cache {
            Cache::Cold => drop_from_page_cache(&files),
            Cache::Kernel => bring_into_page_cache(&files),
        }
    }

    /// Scans the small table, for the same reason.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn scan_to_warm_up(&mut self) -> Result<(), Error> {
        self.scan(WARM_UP).map(drop)
    }

    /// Scans the study's table without changing it (vacuum_skip_scan), and returns its row.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn time_scan(&mut self) -> Result<(TimedScan, Difference), Error> {
        let before = self.accounts()?;
        let started = Instant::now();
        let row = self.scan(study_table::NAME)?;
        let seconds = started.elapsed().as_secs_f64();
        let used = self.accounts()?.since(&before, self.backend)?;
        Ok((TimedScan { seconds, row }, used))
    }

    fn scan(&mut self, table: &str) -> Result<Row, Error> {
        Ok(self.client.query_one("SELECT * FROM vacuum_skip_scan($1::text::regclass)", &[&table])?)
    }

    /// Vacuums the study's table.
    ///
    /// # Errors
    ///
    /// Those of the server, and where it says other things than expected.
    pub fn time(&mut self) -> Result<TimedVacuum, Error> {
        let before = self.accounts()?;
        let started = Instant::now();
        let messages = self.vacuum(study_table::NAME)?;
        let seconds = started.elapsed().as_secs_f64();
        let used = self.accounts()?.since(&before, self.backend)?;
        Ok(TimedVacuum { seconds, figures: VacuumFigures::parse(&messages)?, used })
    }

    /// Vacuums the study's table and samples what the backend waits for meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`Session::time`].
    pub fn sample(&mut self, server: &Server) -> Result<Waits, Error> {
        let sampler = Sampler::start(server.connect()?, self.backend)?;
        let vacuum = self.vacuum(study_table::NAME);
        let waits = sampler.stop();
        vacuum?;
        waits
    }

    fn accounts(&self) -> Result<Accounts, Error> {
        Accounts::read(Path::new(&self.data_folder))
    }

    /// Vacuums a table and returns the messages.
    fn vacuum(&mut self, table: &str) -> Result<String, Error> {
        // VERBOSE adds two messages, and counting that the server does anyway.
        self.client.batch_execute(&format!("VACUUM (VERBOSE) {table}"))?;
        let mut messages = self.messages.lock().map_err(|_| "a message could not be noted")?;
        Ok(std::mem::take(&mut *messages))
    }
}
