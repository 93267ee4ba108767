//! A throwaway server, made and removed by scripts/server.sh.

use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, Config, NoTls};

use crate::Error;

/// The environment variable that says where scripts/server.sh is.
const SCRIPT: &str = "VACUUM_SKIP_SERVER_SH";

/// A running server in a folder of its own; stopped and removed when dropped.
pub struct Server {
    folder: PathBuf,
}

impl Server {
    /// Makes a server in `folder`, which must be absent or empty, with
    /// `settings` (`name=value`) beside the server's defaults.
    ///
    /// # Errors
    ///
    /// Where the script fails; it has then said why on the standard error.
    pub fn start(folder: &Path, settings: &[&str]) -> Result<Server, Error> {
        let server = Server { folder: folder.to_owned() };
        server.script("start", settings)?;
        Ok(server)
    }

    /// Starts it again with more settings; stops it before if it is running.
    ///
    /// # Errors
    ///
    /// As for [`Server::start`].
    pub fn restart(&self, settings: &[&str]) -> Result<(), Error> {
        self.script("restart", settings)
    }

    /// Stops it, with everything written out.
    ///
    /// # Errors
    ///
    /// As for [`Server::start`].
    pub fn shut_down(&self) -> Result<(), Error> {
        self.script("stop", &["fast"])
    }

    /// Stops it as a crash would, which is quick.
    ///
    /// # Errors
    ///
    /// As for [`Server::start`].
    pub fn stop_at_once(&self) -> Result<(), Error> {
        self.script("stop", &["immediate"])
    }

    /// A new session as the superuser.
    ///
    /// # Errors
    ///
    /// Where the server does not answer.
    pub fn connect(&self) -> Result<Client, Error> {
        Ok(self.how_to_connect().connect(NoTls)?)
    }

    /// For sessions of the superuser that take more than the defaults.
    pub fn how_to_connect(&self) -> Config {
        let mut config = Client::configure();
        config.host_path(&self.folder).port(5432).user("postgres").dbname("postgres");
        config
    }

    /// The folder of the server's files.
    pub fn data_folder(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn script(&self, verb: &str, settings: &[&str]) -> Result<(), Error> {
        let script =
            std::env::var_os(SCRIPT).ok_or_else(|| format!("{SCRIPT} is not set; run make bench"))?;
        // What the script prints is how to connect, which is known here.
        let output = Command::new(script).arg(verb).arg(&self.folder).args(settings).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("server.sh {verb} {}: {}", self.folder.display(), said.trim()).into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.script("remove", &[]) {
            eprintln!("{error}");
        }
    }
}
