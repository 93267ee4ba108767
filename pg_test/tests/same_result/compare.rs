//! Finds what differs between two outcomes, and says where.

use std::collections::BTreeMap;

use crate::corpus::{Buffers, Case};
use crate::page;
use crate::run::Outcome;

/// With what the line begins that our VACUUM tells and the server's does not.
pub const THRESHOLD_LINE: &str = "skip pages threshold:";

/// How many lines or pages of one thing are named.
const NAMED: usize = 5;

/// All differences; none, if both sides have done the same.
pub fn differences(one: &Outcome, other: &Outcome, cases: &[Case]) -> Vec<String> {
    let mut found = Vec::new();
    for case in cases {
        // An assert-enabled server looks some catalog rows up twice, at random
        // (CatalogCacheCreateEntry).
        let buffers = if one.assertions { Buffers::Vary } else { case.buffers };
        let lines = |side: &Outcome| -> Vec<String> {
            side.told[case.name].iter().filter_map(|line| comparable(line, buffers)).collect()
        };
        let sides = [(one.side, lines(one)), (other.side, lines(other))];
        found.extend(different_lines(sides).map(|difference| format!("case {}: {difference}", case.name)));
    }
    found.extend(different_figures(one, other));
    for (name, pair) in pairs(&one.forks, &other.forks) {
        let (Some(a), Some(b)) = pair else {
            found.push(format!("{name}: only on one side"));
            continue;
        };
        let kind = page::Kind::of(&name);
        found.extend(
            different_pages(kind, &a.bytes(), &b.bytes()).map(|difference| format!("{name}, {difference}")),
        );
    }
    found
}

/// The line without what does not depend on VACUUM alone, or nothing, if
/// nothing is left.
fn comparable(line: &str, buffers: Buffers) -> Option<String> {
    let about_time = ["avg read rate:", "system usage:", "delay time:", "I/O timings:"];
    let is = |what: &str| line.contains(what);
    if about_time.into_iter().any(is) || is(THRESHOLD_LINE) {
        return None;
    }
    match buffers {
        Buffers::Vary if is(BUFFER_LINE) => None,
        Buffers::HitsVary if is(BUFFER_LINE) => line.split_once(HITS).map(|(_, rest)| rest.to_owned()),
        // "…, 0 buffers full": that depends on the WAL writer.
        _ if is("WAL usage:") => line.rsplit_once(", ").map(|(rest, _)| rest.to_owned()),
        _ => Some(line.to_owned()),
    }
}

/// "buffer usage: 875 hits, 118 reads, 114 dirtied"
const BUFFER_LINE: &str = "buffer usage: ";
const HITS: &str = " hits, ";

/// By how many hits two vacuums may differ that do the same. Ours reads a word
/// of the visibility map where the server looks at it block by block, so it may
/// ask once less for a page that is new, and it looks up other names in
/// catalogs, on behalf of messages.
const FEW_HITS: u32 = 8;

fn same_line(a: &str, b: &str) -> bool {
    let hits_and_rest = |line: &str| {
        let (hits, rest) = line.split_once(BUFFER_LINE)?.1.split_once(HITS)?;
        Some((hits.parse::<u32>().ok()?, rest.to_owned()))
    };
    match (hits_and_rest(a), hits_and_rest(b)) {
        (Some((a, a_rest)), Some((b, b_rest))) => a.abs_diff(b) <= FEW_HITS && a_rest == b_rest,
        _ => a == b,
    }
}

fn different_lines(sides: [(&str, Vec<String>); 2]) -> impl Iterator<Item = String> {
    let [(one, a), (other, b)] = sides;
    let lines = a.len().max(b.len());
    let line =
        |lines: &[String], i: usize| lines.get(i).cloned().unwrap_or_else(|| "no more lines".to_owned());
    (0..lines)
        .filter_map(move |i| {
            let (a, b) = (line(&a, i), line(&b, i));
            (!same_line(&a, &b)).then(|| format!("told by\n      {one}: {a}\n      {other}: {b}"))
        })
        .take(NAMED)
}

fn different_figures(one: &Outcome, other: &Outcome) -> Vec<String> {
    let shown = |figure: Option<&String>| figure.map_or("none", |figure| figure).to_owned();
    let pairs = pairs(&one.figures, &other.figures).into_iter().filter(|(_, (a, b))| a != b);
    let line = |(name, (a, b))| {
        format!("{name}:\n      {}: {}\n      {}: {}", one.side, shown(a), other.side, shown(b))
    };
    pairs.map(line).collect()
}

/// All keys of both, with the values of each.
fn pairs<'a, T>(
    one: &'a BTreeMap<String, T>,
    other: &'a BTreeMap<String, T>,
) -> BTreeMap<String, (Option<&'a T>, Option<&'a T>)> {
    let keys = one.keys().chain(other.keys());
    keys.map(|key| (key.clone(), (one.get(key), other.get(key)))).collect()
}

fn different_pages(kind: page::Kind, a: &[u8], b: &[u8]) -> impl Iterator<Item = String> {
    let lengths =
        (a.len() != b.len()).then(|| format!("{} and {} pages", a.len() / page::SIZE, b.len() / page::SIZE));
    let blocks = a.chunks(page::SIZE).zip(b.chunks(page::SIZE)).enumerate();
    let places: Vec<String> = blocks
        .filter_map(|(block, (a, b))| {
            let offset = page::first_difference(a, b)?;
            Some(format!(
                "block {block}, byte {offset}, {}: {:#04x} and {:#04x}",
                kind.place(block, a, offset),
                a[offset],
                b[offset]
            ))
        })
        .collect();
    let more = places.len().checked_sub(NAMED + 1).map(|more| format!("and {} blocks more", more + 1));
    lengths.into_iter().chain(places.into_iter().take(NAMED)).chain(more)
}
