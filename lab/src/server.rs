//! A throwaway server, made and removed by scripts/server.sh.

use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};

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

    /// Restarts it with more settings.
    ///
    /// # Errors
    ///
    /// As for [`Server::start`].
    pub fn restart(&self, settings: &[&str]) -> Result<(), Error> {
        self.script("restart", settings)
    }

    /// A new session as the superuser.
    ///
    /// # Errors
    ///
    /// Where the server does not answer.
    pub fn connect(&self) -> Result<Client, Error> {
        let mut config = Client::configure();
        config.host_path(&self.folder).port(5432).user("postgres").dbname("postgres");
        Ok(config.connect(NoTls)?)
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
