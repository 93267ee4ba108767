//! Times and their medians.

use std::time::Instant;

use postgres::Client;

use crate::Error;

/// Milliseconds that one query takes, as its client sees it; parsed before.
///
/// # Errors
///
/// Those of the server.
pub fn milliseconds(client: &mut Client, query: &str) -> Result<f64, Error> {
    let statement = client.prepare(query)?;
    let started = Instant::now();
    client.query(&statement, &[])?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// The middle one of the values; of an even number, the mean of the two. None
/// where there is none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + upper) / 2.0 } else { upper })
}

/// The least of the values; infinity where there is none.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The greatest of the values; 0 where there is none, as no time is less.
pub fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A moment in seconds after 1970, as ISO 8601 writes it in UTC.
pub fn utc(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, so that a leap day is a year's last, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (400 * era + year + month / 10, (month + 2) % 12 + 1);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{least, median, most, utc};

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_extremes_are_found_in_any_order() {
        let values = [3.0, 1.0, 2.0];
        assert_eq!((least(&values), most(&values)), (1.0, 3.0));
    }

    #[test]
    fn moments_are_written_as_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
