//! The variants that are compared: whose VACUUM, and under which settings.
//!
//! They are data. A variant that a server refuses is reported by what the server said,
//! and the others go on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// The thresholds of the study, and the automatic one.
pub const THRESHOLDS: [Threshold; 7] = [
    Threshold(1),
    Threshold(2),
    Threshold(4),
    Threshold(8),
    Threshold(16),
    Threshold(32),
    Threshold::AUTOMATIC,
];

/// The name of the variant that others are compared with.
pub const SERVER: &str = "server";

/// A value of vacuum_skip.skip_pages_threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(pub i32);

impl Threshold {
    /// Chosen by vacuum_skip.
    pub const AUTOMATIC: Threshold = Threshold(-1);
    /// What servers have compiled in.
    pub const SERVERS_OWN: Threshold = Threshold(32);
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Threshold::AUTOMATIC { f.write_str("auto") } else { write!(f, "{}", self.0) }
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        match text {
            "auto" | "-1" => Ok(Threshold::AUTOMATIC),
            _ => match text.parse() {
                Ok(value) if value >= 0 => Ok(Threshold(value)),
                _ => Err(format!("\"{text}\" is not a threshold: 0 to {}, or auto", i32::MAX)),
            },
        }
    }
}

/// How vacuum_skip reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// vacuum_skip.skip_pages_threshold.
    pub threshold: Threshold,
    /// vacuum_skip.read_mode: `stream` or `sync`.
    pub read_mode: String,
    /// vacuum_skip.read_ahead, in blocks.
    pub read_ahead: u32,
}

impl Reading {
    /// The threshold and the way of reading that servers have.
    pub fn is_the_servers_own(&self) -> bool {
        self.threshold == Threshold::SERVERS_OWN && self.read_mode == "stream" && self.read_ahead == 0
    }

    /// Statements that bring it about in a session. In postgresql.conf a value that
    /// vacuum_skip refuses would be a warning; here it is an error.
    pub fn statements(&self) -> Vec<String> {
        vec![
            "SET vacuum_skip.vacuum_engine = always".into(),
            format!("SET vacuum_skip.skip_pages_threshold = {}", self.threshold.0),
            format!("SET vacuum_skip.read_mode = {}", self.read_mode),
            format!("SET vacuum_skip.read_ahead = {}", self.read_ahead),
        ]
    }
}

/// A setting of the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, as in postgresql.conf but without quotes.
    pub value: String,
}

impl Setting {
    /// Makes one.
    pub fn new(name: &str, value: &str) -> Setting {
        Setting { name: name.into(), value: value.into() }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        };
        match text.split_once('=') {
            Some((name, value)) if is_name(name) && !value.contains(['\n', '\r']) => {
                Ok(Setting::new(name, value))
            }
            _ => Err(format!("\"{text}\" is not of the form name=value")),
        }
    }
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What it is called on the command line and in results.csv.
    pub name: String,
    /// The programs of another build of the server; None for the one that is measured.
    pub programs: Option<PathBuf>,
    /// How vacuum_skip reads; None for the build's own VACUUM, in a server that has not
    /// loaded the library.
    pub reading: Option<Reading>,
    /// Settings that it alone has.
    pub settings: Vec<Setting>,
}

impl Variant {
    /// The server's own VACUUM.
    pub fn server() -> Variant {
        Variant { name: SERVER.into(), programs: None, reading: None, settings: Vec::new() }
    }

    /// Another build's own VACUUM.
    pub fn build(name: &str, programs: PathBuf) -> Variant {
        Variant { name: name.into(), programs: Some(programs), reading: None, settings: Vec::new() }
    }

    /// vacuum_skip's; what differs from its defaults is in the name.
    pub fn ours(threshold: Threshold, read_mode: &str, read_ahead: u32) -> Variant {
        let mut name = format!("threshold-{}", threshold);
        if read_mode != "stream" {
            name = format!("{name}-{read_mode}");
        }
        if read_ahead != 256 {
            name = format!("{name}-ahead-{read_ahead}");
        }
        let reading = Some(Reading { threshold, read_mode: read_mode.into(), read_ahead });
        Variant { name, programs: None, reading, settings: Vec::new() }
    }

    /// All that it adds to the configuration of the server.
    pub fn configuration(&self) -> Vec<Setting> {
        let library = self.reading.iter().map(|_| Setting::new("shared_preload_libraries", "vacuum_skip"));
        library.chain(self.settings.iter().cloned()).collect()
    }

    /// The settings that it alone has, as results.csv keeps them.
    pub fn settings_text(&self) -> String {
        let texts: Vec<String> = self.settings.iter().map(Setting::to_string).collect();
        texts.join("; ")
    }
}

/// What the variants are made of.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The thresholds.
    pub thresholds: Vec<Threshold>,
    /// The read modes; the first one is for all thresholds.
    pub read_modes: Vec<String>,
    /// Blocks of read_ahead; the first one is for all thresholds.
    pub read_ahead: Vec<u32>,
    /// Whether all combinations are wanted.
    pub all_combinations: bool,
}

impl Choice {
    /// The server's own VACUUM, and all thresholds read in the first way. The other ways
    /// of reading are there for the least and the greatest threshold, unless all
    /// combinations are wanted: that is what tells the ways apart, and takes a third of
    /// the time.
    pub fn variants(&self) -> Vec<Variant> {
        let fixed = || self.thresholds.iter().filter(|threshold| **threshold != Threshold::AUTOMATIC);
        let ends = [fixed().min(), fixed().max()];
        let mut variants = vec![Variant::server()];
        let mut first = true;
        for read_mode in &self.read_modes {
            for read_ahead in &self.read_ahead {
                let wanted = |threshold: &&Threshold| {
                    first || self.all_combinations || ends.contains(&Some(*threshold))
                };
                let chosen = self.thresholds.iter().filter(wanted);
                variants.extend(chosen.map(|threshold| Variant::ours(*threshold, read_mode, *read_ahead)));
                first = false;
            }
        }
        variants
    }
}

/// Adds `setting` to the variant called `name`.
///
/// # Errors
///
/// Where there is none of that name.
pub fn add_setting(variants: &mut [Variant], name: &str, setting: Setting) -> Result<(), Error> {
    named(variants, name)?.settings.push(setting);
    Ok(())
}

/// The variant called `name`.
///
/// # Errors
///
/// Where there is none.
pub fn named<'a>(variants: &'a mut [Variant], name: &str) -> Result<&'a mut Variant, Error> {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    let message = format!("there is no variant \"{name}\"; there are: {}", names.join(", "));
    Ok(variants.iter_mut().find(|variant| variant.name == name).ok_or(message)?)
}

#[cfg(test)]
mod tests {
    use super::{Choice, Setting, THRESHOLDS, Variant, add_setting};

    fn choice(all_combinations: bool) -> Choice {
        Choice {
            thresholds: THRESHOLDS.to_vec(),
            read_modes: vec!["stream".into(), "sync".into()],
            read_ahead: vec![256, 0],
            all_combinations,
        }
    }

    #[test]
    fn all_thresholds_are_read_in_the_first_way() {
        let variants = choice(false).variants();
        let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
        let expected = "server threshold-1 threshold-2 threshold-4 threshold-8 threshold-16 threshold-32 \
                        threshold-auto threshold-1-ahead-0 threshold-32-ahead-0 threshold-1-sync \
                        threshold-32-sync threshold-1-sync-ahead-0 threshold-32-sync-ahead-0";
        assert_eq!(names.join(" "), expected);
        assert_eq!(choice(true).variants().len(), 1 + 7 * 4);
    }

    #[test]
    fn a_setting_belongs_to_one_variant() {
        let mut variants = choice(false).variants();
        let setting: Setting = "io_method=sync".parse().unwrap();
        add_setting(&mut variants, "server", setting.clone()).unwrap();
        assert_eq!(variants[0].configuration(), std::slice::from_ref(&setting));
        assert!(!variants[1].configuration().contains(&setting));
        let error = add_setting(&mut variants, "servr", setting).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no variant \"servr\"; there are: server, threshold-1,"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_a_setting_is_refused() {
        for wrong in ["io_method", "=1", "a b=1", "a=1\nb=2"] {
            assert!(wrong.parse::<Setting>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_library_is_loaded_for_our_variants_alone() {
        assert_eq!(Variant::server().configuration(), []);
        let ours = Variant::ours(THRESHOLDS[2], "sync", 0);
        assert_eq!(ours.configuration(), [Setting::new("shared_preload_libraries", "vacuum_skip")]);
        let statements = ours.reading.unwrap().statements();
        assert_eq!(statements[1], "SET vacuum_skip.skip_pages_threshold = 4");
        assert_eq!(statements.len(), 4);
    }
}
