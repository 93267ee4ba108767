//! Throwaway servers.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Failure, Session};

/// What every server here has set; a test's own settings come later and win.
/// Only what a test does itself shall happen, so autovacuum is off. Nothing has
/// to survive a crash of the machine, so nothing is synced.
const SETTINGS: [&str; 4] =
    ["autovacuum=off", "fsync=off", "shared_buffers=64MB", "session_preload_libraries=vacuum_skip"];

/// Lines in the log that no test may cause.
const DISASTERS: [&str; 6] = [
    "was terminated by signal",
    "PANIC:",
    "TRAP:",
    "buffer refcount leak",
    "was not closed",
    "reference leak",
];

/// After so many seconds a server is stopped even while tests use it: a process
/// of it must be stuck, and a test waits for that without an end.
const LIFETIME: &str = "600";

/// A PostgreSQL server of its own, in a folder of its own.
///
/// `scripts/server.sh` makes it (the script is named by VACUUM_SKIP_SERVER_SH,
/// or found beside this crate).
pub struct Server {
    folder: PathBuf,
    keeper: Option<Child>,
}

impl Server {
    /// Starts a server with `settings` ("name=value").
    ///
    /// It is removed when dropped. A server in a static is never dropped, and a
    /// test process may be killed, so each server has a keeper: a process that
    /// waits for the end of a pipe of which this process has the other end, and
    /// then removes the server. The kernel closes the pipe, however this
    /// process ends. It does so after ten minutes, too.
    ///
    /// # Errors
    ///
    /// What the script said, the end of the server's log included.
    pub fn start(settings: &[&str]) -> Result<Server, String> {
        let server = Server::in_new_folder()?;
        let mut arguments = vec![OsStr::new("start"), server.folder.as_os_str()];
        arguments.extend(SETTINGS.iter().map(OsStr::new));
        arguments.extend(settings.iter().map(OsStr::new));
        run_script(&arguments)?;
        Ok(server)
    }

    /// Starts a streaming hot standby of this server.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn start_standby(&self, settings: &[&str]) -> Result<Server, String> {
        let standby = Server::in_new_folder()?;
        let mut arguments = vec![OsStr::new("standby"), standby.folder.as_os_str(), self.folder.as_os_str()];
        arguments.extend(settings.iter().map(OsStr::new));
        run_script(&arguments)?;
        Ok(standby)
    }

    /// Starts a copy of this server, which must be stopped: every file is the
    /// same, but for `settings` added to the configuration.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn start_copy(&self, settings: &[&str]) -> Result<Server, String> {
        let copy = Server::in_new_folder()?;
        let mut arguments = vec![OsStr::new("copy"), copy.folder.as_os_str(), self.folder.as_os_str()];
        arguments.extend(settings.iter().map(OsStr::new));
        run_script(&arguments)?;
        Ok(copy)
    }

    /// Stops the server, so that its files say everything.
    ///
    /// # Panics
    ///
    /// If it does not stop.
    pub fn stop(&self) {
        let arguments = [OsStr::new("stop"), self.folder.as_os_str()];
        run_script(&arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    fn in_new_folder() -> Result<Server, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A Unix socket's path has at most 107 bytes: a long TMPDIR is passed over.
        let mut parent = std::env::temp_dir();
        if parent.as_os_str().len() > 60 {
            parent = "/tmp".into();
        }
        let name =
            format!("vacuum_skip_test.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = parent.join(name);
        let keeper = Command::new("sh")
            .args(["-c", r#"timeout "$2" cat >/dev/null; exec "$0" remove "$1""#])
            .arg(script())
            .arg(&folder)
            .arg(LIFETIME)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the tests, not for the keeper.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("no keeper for a server: {error}"))?;
        Ok(Server { folder, keeper: Some(keeper) })
    }

    /// Stops the server, adds `settings` to its configuration, and starts it.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self, settings: &[&str]) {
        let mut arguments = vec![OsStr::new("restart"), self.folder.as_os_str()];
        arguments.extend(settings.iter().map(OsStr::new));
        run_script(&arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The folder in which the server has its data, log and socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the file `path`, relative to the data folder, for reading and
    /// writing in place, so that it keeps its owner.
    ///
    /// # Panics
    ///
    /// If there is no such file.
    pub fn data_file(&self, path: &str) -> File {
        let path = self.folder.join("data").join(path);
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes everything that is in shared buffers of `table` to its files, and
    /// empties these buffers, so that what the files say counts.
    ///
    /// # Panics
    ///
    /// If some buffer cannot be emptied.
    #[track_caller]
    pub fn evict(&self, session: &mut Session, table: &str) {
        crate::wait_until("no buffer of a table left in shared buffers", || {
            session.run(&format!("CHECKPOINT; SELECT pg_buffercache_evict_relation('{table}')"));
            let left = format!(
                "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('{table}')
                 AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())"
            );
            session.value::<u32>(&left) == 0
        });
    }

    /// Overwrites `bytes` at `offset` of page `block` of `table`, on disk.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    #[track_caller]
    pub fn overwrite(&self, session: &mut Session, table: &str, block: u64, offset: u64, bytes: &[u8]) {
        self.evict(session, table);
        let file = self.file_of(session, table, "main");
        let written = file.write_all_at(bytes, block * 8192 + offset);
        written.unwrap_or_else(|error| panic!("cannot write to {table}'s file: {error}"));
    }

    /// The file of one fork of a table, for changes in place.
    ///
    /// # Panics
    ///
    /// If there is no such file.
    #[track_caller]
    pub fn file_of(&self, session: &mut Session, table: &str, fork: &str) -> File {
        let suffix = if fork == "main" { String::new() } else { format!("_{fork}") };
        let path: String = session.value(&format!("SELECT pg_relation_filepath('{table}')"));
        self.data_file(&format!("{path}{suffix}"))
    }

    /// Everything the server has logged.
    ///
    /// # Panics
    ///
    /// If there is no log.
    pub fn log(&self) -> String {
        let path = self.folder.join("log");
        let log = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Fails unless the server answers a new session, and no process of it has
    /// crashed or complained about leaks.
    ///
    /// # Panics
    ///
    /// With the line of the log.
    #[track_caller]
    pub fn assert_well(&self) {
        let answer: i32 = self.connect("postgres").value("SELECT 1");
        assert_eq!(answer, 1, "the server's answer to SELECT 1");
        let log = self.log();
        for line in log.lines() {
            let disaster = DISASTERS.iter().any(|disaster| line.contains(disaster));
            assert!(!disaster, "in the server's log: {line}");
        }
    }

    /// A superuser's connection to `database`.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    #[track_caller]
    pub fn connect(&self, database: &str) -> Session {
        self.connect_with("postgres", database, "")
    }

    /// A connection of `role` to `database` with command-line `options`, as in
    /// the environment variable PGOPTIONS.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    #[track_caller]
    pub fn connect_with(&self, role: &str, database: &str, options: &str) -> Session {
        self.try_connect(role, database, options).unwrap_or_else(|failure| {
            panic!("cannot connect to database {database} as {role} with options \"{options}\": {failure}")
        })
    }

    /// The same, where the server may refuse.
    ///
    /// # Errors
    ///
    /// What the server said.
    pub fn try_connect(&self, role: &str, database: &str, options: &str) -> Result<Session, Failure> {
        Session::open(&self.folder, role, database, options)
    }

    /// Runs a program of PostgreSQL, such as pg_dump, as a client of this server.
    ///
    /// # Panics
    ///
    /// With what it said, if it fails.
    #[track_caller]
    pub fn run_client(&self, program: &str, arguments: &[&str]) {
        self.run_client_with("", program, arguments);
    }

    /// The same, whose sessions have command-line `options`.
    ///
    /// # Panics
    ///
    /// As [`Server::run_client`].
    #[track_caller]
    pub fn run_client_with(&self, options: &str, program: &str, arguments: &[&str]) {
        let folder = std::env::var_os("VACUUM_SKIP_BINDIR").expect("VACUUM_SKIP_BINDIR: run scripts/test.sh");
        let output = Command::new(Path::new(&folder).join(program))
            .args(arguments)
            .env("PGHOST", &self.folder)
            .env("PGUSER", "postgres")
            .env("PGOPTIONS", options)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {}\n{said}", output.status);
    }

    /// Creates a database with the extension and with what the tests compare
    /// it to, and connects to it.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    #[track_caller]
    pub fn new_database(&self, name: &str) -> Session {
        self.connect("postgres").run(&format!("CREATE DATABASE {name} STRATEGY file_copy"));
        let mut session = self.connect(name);
        session.run(
            "CREATE EXTENSION vacuum_skip; CREATE EXTENSION pg_visibility; CREATE EXTENSION pgstattuple; \
             CREATE EXTENSION pg_buffercache; CREATE EXTENSION amcheck; CREATE EXTENSION pageinspect",
        );
        session
    }

    /// Creates `name` as a copy of the files of `database`, to which nobody may
    /// be connected: every page and every bit of the maps is the same. Connects
    /// to it.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    #[track_caller]
    pub fn copy_database(&self, database: &str, name: &str) -> Session {
        self.connect("postgres")
            .run(&format!("CREATE DATABASE {name} TEMPLATE {database} STRATEGY file_copy"));
        self.connect(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(mut keeper) = self.keeper.take() else {
            return;
        };
        drop(keeper.stdin.take());
        match keeper.wait() {
            Ok(status) if status.success() => (),
            result => eprintln!("{} was not removed: {result:?}", self.folder.display()),
        }
    }
}

fn script() -> PathBuf {
    std::env::var_os("VACUUM_SKIP_SERVER_SH")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/server.sh"), PathBuf::from)
}

fn run_script(arguments: &[&OsStr]) -> Result<(), String> {
    let output = Command::new(script())
        .args(arguments)
        .stdin(Stdio::null())
        // In a server it would add a backtrace to the DETAIL of each error.
        .env_remove("RUST_BACKTRACE")
        .output()
        .map_err(|error| format!("{}: {error}", script().display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("server.sh {arguments:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
