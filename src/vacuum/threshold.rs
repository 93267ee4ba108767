/// A threshold and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The number of consecutive skippable pages from which they are skipped.
    pub threshold: i32,
    /// Where it comes from.
    pub source: Source,
}

/// Where a threshold comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An option of the VACUUM command.
    Command,
    /// The session's own setting.
    Session,
    /// A label.
    Table,
    /// The configuration.
    Default,
}

impl Source {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Source::Command => "command",
            Source::Session => "session",
            Source::Table => "table",
            Source::Default => "default",
        }
    }
}
