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

#[cfg(test)]
mod tests {
    use super::{least, median, most};

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
}
