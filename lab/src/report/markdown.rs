//! A report as Markdown, with its charts as files beside it.

use std::fmt::Write;

use super::document::{Block, Document, Table};

/// The text; charts are in `charts/`.
pub fn render(document: &Document) -> String {
    let mut text = format!("# {}\n", document.title);
    blocks(&mut text, &document.blocks);
    text
}

fn blocks(text: &mut String, blocks_of_it: &[Block]) {
    for block in blocks_of_it {
        text.push('\n');
        // Writing to a String does not fail.
        let _ = match block {
            Block::Heading(level, heading) => writeln!(text, "{} {heading}", "#".repeat(usize::from(*level))),
            Block::Paragraph(paragraph) => writeln!(text, "{paragraph}"),
            Block::Items(items) => items.iter().try_for_each(|item| writeln!(text, "- {item}")),
            Block::Table(table) => write!(text, "{}", as_markdown(table)),
            Block::Chart(chart) => writeln!(text, "![{}](charts/{}.svg)", chart.title, chart.name),
            Block::Folded(summary, inner) => {
                let _ = writeln!(text, "<details><summary>{summary}</summary>");
                blocks(text, inner);
                writeln!(text, "\n</details>")
            }
        };
    }
}

/// A table with its caption.
pub fn as_markdown(table: &Table) -> String {
    let mut text = format!("**{}**\n\n", table.caption);
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text += &line(&mut table.head.iter().cloned());
    text += &line(&mut table.head.iter().map(|_| "---:".to_owned()));
    for row in &table.rows {
        text += &line(&mut row.iter().map(super::document::Entry::with_sign));
    }
    text
}
