//! A report before it is Markdown or HTML. Both are made of the same words and figures.

use super::chart::Chart;
use crate::comparison::Verdict;

/// A part of a report. Text may hold `code` in backticks.
pub enum Block {
    /// A heading of level 2 or 3.
    Heading(u8, String),
    /// A paragraph.
    Paragraph(String),
    /// A list.
    Items(Vec<String>),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// Shown when asked for.
    Folded(String, Vec<Block>),
}

/// A table whose first column names its rows.
pub struct Table {
    /// What programs find it by.
    pub id: String,
    /// Above it.
    pub caption: String,
    /// The columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Entry>>,
}

/// What stands in a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its text, without the sign of the verdict.
    pub text: String,
    /// What it comes to, where it is a comparison.
    pub verdict: Option<Verdict>,
    /// How far the two times are apart: 1 to 3.
    pub strength: u8,
    /// Shown when pointed at.
    pub hint: String,
}

impl Entry {
    /// Text alone.
    pub fn text(text: impl Into<String>) -> Entry {
        Entry { text: text.into(), ..Entry::default() }
    }

    /// A comparison of two times, from their ratio.
    pub fn ratio(ratio: f64, verdict: Verdict) -> Entry {
        let apart = ratio.max(1.0 / ratio);
        let strength = if apart >= 2.0 {
            3
        } else if apart >= 1.25 {
            2
        } else {
            1
        };
        Entry {
            text: format!("{:.0} %", 100.0 * ratio),
            verdict: Some(verdict),
            strength,
            hint: String::new(),
        }
    }

    /// With the sign of its verdict, which says the same as the colour.
    pub fn with_sign(&self) -> String {
        let sign = match self.verdict {
            None => return self.text.clone(),
            Some(Verdict::Faster) => '▼',
            Some(Verdict::Slower) => '▲',
            Some(Verdict::Same) => '≈',
            Some(Verdict::Unknown) => '?',
        };
        format!("{sign} {}", self.text)
    }
}

/// A report.
pub struct Document {
    /// Its title.
    pub title: String,
    /// Its parts.
    pub blocks: Vec<Block>,
}

impl Document {
    /// All its charts.
    pub fn charts(&self) -> Vec<&Chart> {
        let mut charts = Vec::new();
        collect_charts(&self.blocks, &mut charts);
        charts
    }
}

fn collect_charts<'a>(blocks: &'a [Block], charts: &mut Vec<&'a Chart>) {
    for block in blocks {
        match block {
            Block::Chart(chart) => charts.push(chart),
            Block::Folded(_, blocks) => collect_charts(blocks, charts),
            _ => {}
        }
    }
}
