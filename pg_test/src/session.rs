//! Connections.

use std::fmt::{self, Debug};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use postgres::error::DbError;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// A connection to a server; dereferences to the client of the `postgres` crate.
///
/// Queries go through the simple protocol, and values come back as text, so
/// that rows can be compared and shown as they are.
pub struct Session {
    client: Client,
    pid: i32,
    messages: Arc<Mutex<Vec<DbError>>>,
}

/// An error that the server has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The SQLSTATE.
    pub code: String,
    /// The primary message.
    pub message: String,
    /// The detail, or else nothing.
    pub detail: String,
    /// The CONTEXT lines, or else nothing.
    pub context: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { code, message, detail, context } = self;
        write!(f, "{code}: {message} ({detail}) ({context})")
    }
}

/// A warning that the server has sent.
pub type Warning = Failure;

/// A statement that another thread waits for.
pub struct Running(JoinHandle<(Session, Result<Vec<String>, Failure>)>);

impl Session {
    pub(crate) fn open(folder: &Path, role: &str, database: &str, options: &str) -> Result<Session, Failure> {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&messages);
        let mut client = Config::new()
            .host_path(folder)
            .user(role)
            .dbname(database)
            .options(options)
            .notice_callback(move |message| lock(&received).push(message))
            .connect(NoTls)
            .map_err(|error| failure(&error))?;
        let pid = client.query_one("SELECT pg_backend_pid()", &[]);
        let pid = pid.map_err(|error| failure(&error))?.get(0);
        Ok(Session { client, pid, messages })
    }

    /// The process that serves this connection.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Runs statements; the rows of all of them, columns separated by `|`.
    ///
    /// # Errors
    ///
    /// What the server said.
    pub fn try_rows(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        let messages = self.client.simple_query(sql).map_err(|error| {
            // The client does not wait for the server to end the transaction
            // that failed; this does, unless the connection is gone.
            let _ = self.client.simple_query("");
            failure(&error)
        })?;
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                let columns: Vec<&str> = (0..row.len()).map(|i| row.get(i).unwrap_or("null")).collect();
                Some(columns.join("|"))
            }
            _ => None,
        };
        Ok(messages.iter().filter_map(row).collect())
    }

    /// Runs statements that must succeed; their rows.
    ///
    /// # Panics
    ///
    /// With the error.
    #[track_caller]
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{error}\nof: {sql}"))
    }

    /// Runs statements that must succeed.
    ///
    /// # Panics
    ///
    /// With the error.
    #[track_caller]
    pub fn run(&mut self, sql: &str) {
        self.rows(sql);
    }

    /// Runs statements that must succeed, one by one, since VACUUM wants to be
    /// alone. A `;` ends a statement wherever it stands.
    ///
    /// # Panics
    ///
    /// With the error.
    #[track_caller]
    pub fn run_each(&mut self, statements: &str) {
        for statement in statements.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            self.run(statement);
        }
    }

    /// The only row that the statements return, columns separated by `|`.
    ///
    /// # Panics
    ///
    /// With the error, or if there is not one row.
    #[track_caller]
    pub fn row(&mut self, sql: &str) -> String {
        let mut rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "rows of: {sql}");
        rows.remove(0)
    }

    /// The only value that the statements return.
    ///
    /// # Panics
    ///
    /// With the error, or if there is not one value of that type.
    #[track_caller]
    pub fn value<T: FromStr<Err: Debug>>(&mut self, sql: &str) -> T {
        let row = self.row(sql);
        row.parse().unwrap_or_else(|error| panic!("{row}: {error:?}\nof: {sql}"))
    }

    /// The error that the statements must raise.
    ///
    /// # Panics
    ///
    /// If they raise none.
    #[track_caller]
    pub fn failure(&mut self, sql: &str) -> Failure {
        match self.try_rows(sql) {
            Err(failure) => failure,
            Ok(rows) => panic!("no error, but {rows:?}\nof: {sql}"),
        }
    }

    /// Runs statements in another thread; this session is gone until they end.
    pub fn start(mut self, sql: &str) -> Running {
        let sql = sql.to_owned();
        Running(std::thread::spawn(move || {
            let result = self.try_rows(&sql);
            (self, result)
        }))
    }

    /// Runs `VACUUM (VERBOSE, options) table`; the lines of what it tells.
    ///
    /// # Panics
    ///
    /// With the error.
    #[track_caller]
    pub fn vacuum_verbose(&mut self, options: &str, table: &str) -> Vec<String> {
        self.take_lines();
        self.run(&format!("VACUUM (VERBOSE, {options}) {table}"));
        self.take_lines()
    }

    /// The lines of what the server has told since the last call, warnings included.
    pub fn take_lines(&mut self) -> Vec<String> {
        let messages = self.take_messages();
        let lines = messages.iter().flat_map(|message| message.message().lines());
        lines.map(str::to_owned).collect()
    }

    /// How many pages `VACUUM (VERBOSE, options) table` scans, as it tells:
    /// "pages: 0 removed, 667 remain, 411 scanned (61.62% of total)".
    ///
    /// # Panics
    ///
    /// With the error, or if it does not tell of one table.
    #[track_caller]
    pub fn pages_vacuum_scans(&mut self, options: &str, table: &str) -> u64 {
        let lines = self.vacuum_verbose(options, table);
        let scanned = |line: &String| {
            let counts = line.strip_prefix("pages: ")?;
            let count = counts.split(", ").find_map(|count| count.split_once(" scanned"))?;
            count.0.parse().ok()
        };
        let found: Vec<u64> = lines.iter().filter_map(scanned).collect();
        assert_eq!(found.len(), 1, "lines with a count of scanned pages in {lines:#?}");
        found[0]
    }

    /// The warnings since the last call. Those nobody takes fail the test.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        let messages = self.take_messages();
        messages.iter().filter(|message| is_warning(message)).map(describe).collect()
    }

    /// The lines of all messages since the last call, of whatever severity, with
    /// their details and hints.
    pub fn take_messages_in_full(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for message in self.take_messages() {
            let parts = [
                (message.severity(), Some(message.message())),
                ("DETAIL", message.detail()),
                ("HINT", message.hint()),
                ("CONTEXT", message.where_()),
            ];
            for (kind, text) in parts {
                let text = text.into_iter().flat_map(str::lines);
                lines.extend(text.map(|line| format!("{kind}: {line}")));
            }
        }
        lines
    }

    fn take_messages(&self) -> Vec<DbError> {
        std::mem::take(&mut lock(&self.messages))
    }
}

impl Running {
    /// Whether the statements have ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the end: the session, and the rows or the error.
    ///
    /// # Panics
    ///
    /// If they do not end within a minute.
    #[track_caller]
    pub fn finish(self) -> (Session, Result<Vec<String>, Failure>) {
        crate::wait_until("the end of a statement", || self.is_finished());
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let warnings = self.take_warnings();
        if !std::thread::panicking() {
            assert!(warnings.is_empty(), "warnings that no test asked for: {warnings:?}");
        }
    }
}

/// The callback runs in whatever thread uses the client, one at a time.
fn lock(messages: &Mutex<Vec<DbError>>) -> MutexGuard<'_, Vec<DbError>> {
    messages.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_warning(message: &DbError) -> bool {
    message.severity() == "WARNING"
}

fn describe(error: &DbError) -> Failure {
    Failure {
        code: error.code().code().to_owned(),
        message: error.message().to_owned(),
        detail: error.detail().unwrap_or_default().to_owned(),
        context: error.where_().unwrap_or_default().to_owned(),
    }
}

fn failure(error: &postgres::Error) -> Failure {
    error.as_db_error().map_or_else(|| Failure { message: error.to_string(), ..Failure::default() }, describe)
}
