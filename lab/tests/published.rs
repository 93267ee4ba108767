//! The published tables are those of the message.

use vacuum_skip_lab::published::{self, Published};
use vacuum_skip_lab::workload::STUDY_FRACTIONS;

/// The tables as the message has them, without the lines between.
const SECONDS: &str = "
frac master master-1 master-2 master-4 master-8 master-16
0.000001 0.08 0.08 0.08 0.08 0.08 0.07
0.00001 0.20 0.17 0.17 0.17 0.18 0.19
0.000025 0.48 0.31 0.32 0.31 0.34 0.39
0.00005 1.18 0.54 0.55 0.54 0.67 0.78
0.000075 2.03 0.74 0.76 0.79 1.01 1.40
0.0001 2.80 0.96 0.98 1.02 1.44 1.97
0.0002 5.13 1.86 2.01 2.25 3.33 4.44
0.0005 5.18 4.57 5.57 6.85 8.14 7.44
0.001 4.23 9.27 11.59 11.37 8.58 5.44
0.01 5.78 6.58 5.98 5.74 5.84 5.74";
const PERCENT: &str = "
frac master-1 master-2 master-4 master-8 master-16
0.000001 100% 99% 96% 99% 89%
0.00001 85% 84% 87% 89% 94%
0.000025 63% 66% 65% 71% 80%
0.00005 45% 46% 46% 57% 65%
0.000075 37% 38% 39% 50% 69%
0.0001 34% 35% 36% 51% 70%
0.0002 36% 39% 44% 65% 86%
0.0005 88% 108% 132% 157% 144%
0.001 219% 274% 269% 203% 129%
0.01 114% 103% 99% 101% 99%";

fn as_in_the_message(text: &str) -> Published {
    let mut lines = text.trim().lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let thresholds = lines.next().unwrap()[1..]
        .iter()
        .map(|name| name.strip_prefix("master-").map_or(32, |threshold| threshold.parse().unwrap()))
        .collect();
    let figure = |text: &&str| text.trim_end_matches('%').parse().unwrap();
    let rows = lines.map(|line| (line[0].parse().unwrap(), line[1..].iter().map(figure).collect())).collect();
    Published { thresholds, rows }
}

#[test]
fn the_files_are_the_messages_tables() {
    assert_eq!(published::seconds().unwrap(), as_in_the_message(SECONDS));
    assert_eq!(published::percent().unwrap(), as_in_the_message(PERCENT));
}

#[test]
fn the_default_fractions_are_the_studys() {
    let fractions: Vec<_> =
        published::seconds().unwrap().rows.iter().map(|(fraction, _)| *fraction).collect();
    assert_eq!(fractions, STUDY_FRACTIONS);
}

/// The per cent were computed from times before rounding: they are what times within half
/// of the last digit can give.
#[test]
fn the_two_tables_agree() {
    let (seconds, percent) = (published::seconds().unwrap(), published::percent().unwrap());
    for (fraction, figures) in &percent.rows {
        for (threshold, percent) in percent.thresholds.iter().zip(figures) {
            let time = seconds.get(*fraction, *threshold).unwrap();
            let baseline = seconds.get(*fraction, published::BASELINE).unwrap();
            let least = 100.0 * (time - 0.005) / (baseline + 0.005) - 0.5;
            let most = 100.0 * (time + 0.005) / (baseline - 0.005) + 0.5;
            assert!((least..=most).contains(percent), "{fraction}, {threshold}: {percent} %");
        }
    }
}
