//! What a backend waits for, sampled: the server's wait events, and whether the kernel
//! has it on a processor meanwhile.
//!
//! A wait event alone does not say that time is lost: a read that the kernel's cache
//! answers is a DataFileRead too, and costs the processor. So a sample counts as a wait
//! only where the process sleeps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use postgres::Client;

use crate::Error;
use crate::processes::process_status;

/// Between two samples.
const INTERVAL: Duration = Duration::from_millis(2);

/// Samples of one backend.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// All that were taken.
    pub samples: u32,
    /// How many found it waiting, by event.
    pub events: BTreeMap<String, u32>,
}

impl Waits {
    /// The shares of the samples that found it waiting for something that `belongs`.
    #[must_use]
    pub fn share(&self, belongs: impl Fn(&str) -> bool) -> f64 {
        let waited: u32 =
            self.events.iter().filter(|(event, _)| belongs(event)).map(|(_, samples)| samples).sum();
        f64::from(waited) / f64::from(self.samples.max(1))
    }
}

/// Takes samples until stopped, one at least. That costs some time of a processor, so what is timed
/// meanwhile is not to be compared.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Waits, String>>,
}

impl Sampler {
    /// Starts sampling the backend with a session of its own.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn start(mut client: Client, backend: u32) -> Result<Sampler, Error> {
        let statement = client.prepare("SELECT wait_event FROM pg_stat_get_activity($1)")?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut take = move |waits: &mut Waits| -> Result<(), Error> {
            let asleep_before = is_asleep(backend)?;
            let row = client.query_one(&statement, &[&i32::try_from(backend)?])?;
            let event = row.get::<_, Option<String>>(0).filter(|_| asleep_before);
            waits.samples += 1;
            if let (Some(event), true) = (event, is_asleep(backend)?) {
                *waits.events.entry(event).or_default() += 1;
            }
            Ok(())
        };
        let thread = thread::spawn(move || {
            let mut waits = Waits::default();
            loop {
                take(&mut waits).map_err(|error| error.to_string())?;
                if stopped.load(Ordering::Relaxed) {
                    return Ok(waits);
                }
                thread::sleep(INTERVAL);
            }
        });
        Ok(Sampler { stop, thread })
    }

    /// Stops, and returns what was seen.
    ///
    /// # Errors
    ///
    /// Those of the server and of /proc.
    pub fn stop(self) -> Result<Waits, Error> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.thread.join().map_err(|_| "the sampler panicked")??)
    }
}

fn is_asleep(backend: u32) -> Result<bool, Error> {
    Ok(process_status(backend)?.0 != 'R')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Waits;

    #[test]
    fn shares_are_of_all_samples() {
        let events =
            BTreeMap::from([("WalSync".into(), 3), ("WalWrite".into(), 1), ("DataFileRead".into(), 4)]);
        let waits = Waits { samples: 16, events };
        assert_eq!(waits.share(|event| event.starts_with("Wal")), 0.25);
        assert_eq!(Waits::default().share(|_| true), 0.0);
    }
}
