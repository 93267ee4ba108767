//! The cluster that is measured: made by initdb, started anew for each run by whichever
//! build's pg_ctl, and stopped however this program ends.
//!
//! The server listens on a Unix socket in a private folder and on no port, so it can be
//! in no other server's way. As root it runs as an unprivileged user, since PostgreSQL
//! refuses to run as root.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::{Gid, Uid, User};
use postgres::{Client, Config, NoTls};

use crate::Error;
use crate::variant::Setting;

/// Settings of every cluster here; none of them is part of what is measured. Nothing
/// shall happen but what is timed, and times of reads shall be known.
pub const OWN_SETTINGS: [&str; 18] = [
    "listen_addresses",
    "unix_socket_directories",
    "extension_control_path",
    "dynamic_library_path",
    "autovacuum",
    "track_io_timing",
    // What initdb writes.
    "DateStyle",
    "TimeZone",
    "log_timezone",
    "default_text_search_config",
    "dynamic_shared_memory_type",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "max_connections",
    "max_wal_size",
    "min_wal_size",
];

/// The environment variable with the folder in which the extension is staged, where it is
/// not installed into the server's own folders.
const STAGE: &str = "VACUUM_SKIP_STAGE";

/// The environment variable with setpriv's options for servers, separated by colons: see
/// choose_server_user in scripts/common.sh.
const PRIVILEGES: &str = "VACUUM_SKIP_SERVER_PRIVILEGES";

/// A Unix socket's path has at most 107 bytes; this much is left for the folder.
const LONGEST_SOCKET_FOLDER: usize = 90;

/// The settings of the run at hand are in this file of the data folder.
const VARIANT_SETTINGS: &str = "vacuum_skip_lab.conf";

/// How many lines of a server's log are shown when it does not start.
const LOG_LINES: usize = 20;

/// Who servers run as.
struct ServerUser {
    /// None where it is the user of this program.
    unprivileged: Option<(Uid, Gid)>,
    privileges: Vec<String>,
}

impl ServerUser {
    fn choose() -> Result<ServerUser, Error> {
        let options = std::env::var(PRIVILEGES).unwrap_or_default();
        let privileges = options.split(':').filter(|option| !option.is_empty()).map(str::to_owned).collect();
        if !Uid::effective().is_root() {
            return Ok(ServerUser { unprivileged: None, privileges: Vec::new() });
        }
        let user = User::from_name("postgres")?.or(User::from_name("nobody")?);
        let user = user.ok_or("servers do not run as root, and there is no user postgres or nobody")?;
        Ok(ServerUser { unprivileged: Some((user.uid, user.gid)), privileges })
    }

    fn command(&self, program: &Path) -> Command {
        let Some((user, group)) = self.unprivileged else { return Command::new(program) };
        if self.privileges.is_empty() {
            let mut command = Command::new(program);
            command.uid(user.as_raw()).gid(group.as_raw());
            return command;
        }
        let mut command = Command::new("setpriv");
        command.args(&self.privileges).arg(program);
        command
    }

    /// Gives a file or folder to the server.
    fn give(&self, path: &Path) -> Result<(), Error> {
        if let Some((user, group)) = self.unprivileged {
            chown(path, Some(user.as_raw()), Some(group.as_raw()))?;
        }
        Ok(())
    }
}

/// A cluster in a folder.
pub struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    socket_folder: PathBuf,
    user: ServerUser,
    /// Held while a server is being started, so that who wants to stop it waits for it.
    starting: Mutex<()>,
    /// Whether it has been stopped for good, or is being so.
    ended: AtomicBool,
}

impl Cluster {
    /// The cluster of a folder, made or yet to be made, with the programs of the build
    /// that makes it.
    ///
    /// # Errors
    ///
    /// Where a program is missing, or the server's user cannot get at the folder.
    pub fn new(folder: &Path, programs: &Path) -> Result<Cluster, Error> {
        check_programs(programs)?;
        let user = ServerUser::choose()?;
        let socket_folder = socket_folder(folder);
        let cluster = Cluster {
            folder: folder.to_owned(),
            programs: programs.to_owned(),
            socket_folder,
            user,
            starting: Mutex::new(()),
            ended: AtomicBool::new(false),
        };
        cluster.check_access()?;
        Ok(cluster)
    }

    fn check_access(&self) -> Result<(), Error> {
        let mut command = self.user.command(Path::new("test"));
        let test = command.arg("-x").arg(&self.folder).stdin(Stdio::null()).status()?;
        if !test.success() {
            let folder = self.folder.display();
            return Err(format!(
                "the user whom servers run as cannot enter {folder}, or a folder on the way"
            )
            .into());
        }
        Ok(())
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Makes an empty cluster, removing what is there. `settings` are those of all runs.
    ///
    /// # Errors
    ///
    /// What initdb says.
    pub fn create(&self, settings: &[Setting]) -> Result<(), Error> {
        let data = self.data();
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        self.user.give(&data)?;
        let output = self
            .command("initdb", &self.programs)
            .arg("-D")
            .arg(&data)
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .args(["--no-instructions"])
            .output()?;
        succeeded(&output).map_err(|said| format!("initdb failed: {said}"))?;
        self.configure(settings)
    }

    fn configure(&self, settings: &[Setting]) -> Result<(), Error> {
        let mut own = vec![
            Setting::new("listen_addresses", ""),
            Setting::new("autovacuum", "off"),
            Setting::new("track_io_timing", "on"),
        ];
        if let Ok(stage) = std::env::var(STAGE) {
            own.push(Setting::new("extension_control_path", &format!("{stage}/share:$system")));
            own.push(Setting::new("dynamic_library_path", &format!("{stage}/lib:$libdir")));
        }
        let mut file = fs::OpenOptions::new().append(true).open(self.data().join("postgresql.conf"))?;
        file.write_all(lines(own.iter().chain(settings)).as_bytes())?;
        Ok(writeln!(file, "include_if_exists '{VARIANT_SETTINGS}'")?)
    }

    /// Starts the server, with more settings for this time. `programs` are those of
    /// another build.
    ///
    /// # Errors
    ///
    /// Where it does not start: the end of its log.
    pub fn start(&self, settings: &[Setting], programs: Option<&Path>) -> Result<(), Error> {
        let _starting = self.starting.lock().map_err(|_| "a server could not be started")?;
        fs::create_dir_all(&self.socket_folder)?;
        self.user.give(&self.socket_folder)?;
        let file = self.data().join(VARIANT_SETTINGS);
        let socket = Setting::new("unix_socket_directories", &self.socket_folder.to_string_lossy());
        fs::write(&file, lines([socket].iter().chain(settings)))?;
        self.user.give(&file)?;
        let log = self.log();
        fs::write(&log, "")?;
        self.user.give(&log)?;
        let mut start = self.command("pg_ctl", programs.unwrap_or(&self.programs));
        let start =
            start.arg("-D").arg(self.data()).arg("-l").arg(&log).args(["-w", "-t", "120", "-s", "start"]);
        // A server keeps what it inherits: nothing of this program's.
        let status = start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() {
            return Ok(());
        }
        let log = fs::read_to_string(&log).unwrap_or_default();
        let end: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        Err(format!("the server did not start; its log says:\n{}", end.join("\n")).into())
    }

    /// Stops the server, with everything written out; does nothing where it is down.
    ///
    /// # Errors
    ///
    /// What pg_ctl says.
    pub fn shut_down(&self) -> Result<(), Error> {
        self.stop("fast")
    }

    /// Stops the server as a crash would; does nothing where it is down.
    ///
    /// # Errors
    ///
    /// What pg_ctl says.
    pub fn stop_at_once(&self) -> Result<(), Error> {
        self.stop("immediate")
    }

    fn stop(&self, mode: &str) -> Result<(), Error> {
        if !self.data().join("postmaster.pid").exists() {
            return Ok(());
        }
        let mut stop = self.command("pg_ctl", &self.programs);
        let output =
            stop.arg("-D").arg(self.data()).args(["-m", mode, "-w", "-t", "600", "-s", "stop"]).output()?;
        // The file is also left behind by a server that was killed, which is as good.
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("No such process") || said.contains("not running") {
            return Ok(());
        }
        succeeded(&output)
    }

    /// Waits for a start that is under way, stops the server at once, and lets none start
    /// any more. Who does this ends the program next.
    pub fn stop_for_good(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let guard = self.starting.lock();
        if let Err(error) = self.stop_at_once() {
            eprintln!("{error}");
        }
        self.remove_socket_folder();
        std::mem::forget(guard);
    }

    /// Does not return where the server is stopped for good: whatever failed, failed
    /// because of that, and the program is about to end.
    pub fn wait_if_stopped_for_good(&self) {
        while self.ended.load(Ordering::SeqCst) {
            std::thread::park();
        }
    }

    /// Removes the folder of the socket, where it is not in the cluster's own.
    pub fn remove_socket_folder(&self) {
        if !self.socket_folder.starts_with(&self.folder) {
            // It may be gone, which is what is wanted.
            let _ = fs::remove_dir_all(&self.socket_folder);
        }
    }

    /// How to connect as the superuser.
    pub fn how_to_connect(&self) -> Config {
        let mut config = Client::configure();
        config.host_path(&self.socket_folder).port(5432).user("postgres").dbname("postgres");
        config
    }

    /// A new session as the superuser.
    ///
    /// # Errors
    ///
    /// Where the server does not answer.
    pub fn connect(&self) -> Result<Client, Error> {
        Ok(self.how_to_connect().connect(NoTls)?)
    }

    /// A command for the server's user, without what in the environment leads a client
    /// or a server elsewhere.
    fn command(&self, program: &str, programs: &Path) -> Command {
        let mut command = self.user.command(&programs.join(program));
        let own =
            std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("PG"));
        own.for_each(|name| {
            command.env_remove(name);
        });
        command.env_remove("RUST_BACKTRACE").env("LC_ALL", "C").current_dir(&self.folder);
        command
    }
}

/// In the cluster's folder, or else, where that has too long a path, in a temporary one.
fn socket_folder(folder: &Path) -> PathBuf {
    let own = folder.join("socket");
    if own.as_os_str().len() <= LONGEST_SOCKET_FOLDER {
        return own;
    }
    PathBuf::from(format!("/tmp/vacuum-skip-lab.{}", std::process::id()))
}

/// Whether what a server takes is there.
///
/// # Errors
///
/// Where a program is missing.
pub fn check_programs(folder: &Path) -> Result<(), Error> {
    for program in ["initdb", "pg_ctl", "postgres"] {
        if !folder.join(program).is_file() {
            return Err(format!("there is no {program} in {}", folder.display()).into());
        }
    }
    Ok(())
}

/// As in postgresql.conf.
fn lines<'a>(settings: impl Iterator<Item = &'a Setting>) -> String {
    settings.map(|setting| format!("{} = '{}'\n", setting.name, setting.value.replace('\'', "''"))).collect()
}

fn succeeded(output: &Output) -> Result<(), Error> {
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into())
}
