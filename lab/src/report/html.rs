//! A report as one HTML file that asks no other for anything.

use std::fmt::Write;

use super::chart::{self, Chart, escape};
use super::document::{Block, Document, Entry, Table};
use crate::Error;
use crate::comparison::Verdict;

/// Charts are drawn for both; the style shows one. In pixels.
const WIDE: u32 = 1000;
const NARROW: u32 = 380;

/// The file.
///
/// # Errors
///
/// Where a chart cannot be drawn.
pub fn render(document: &Document) -> Result<String, Error> {
    let mut body = String::new();
    blocks(&mut body, &document.blocks)?;
    let title = escape(&document.title);
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{}\n{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n\
         </body>\n</html>\n",
        include_str!("report.css"),
        chart::styles(),
    ))
}

fn blocks(text: &mut String, blocks_of_it: &[Block]) -> Result<(), Error> {
    for block in blocks_of_it {
        match block {
            Block::Heading(level, heading) => writeln!(text, "<h{level}>{}</h{level}>", inline(heading))?,
            Block::Paragraph(paragraph) => writeln!(text, "<p>{}</p>", inline(paragraph))?,
            Block::Items(items) => {
                let items: String = items.iter().map(|item| format!("<li>{}</li>\n", inline(item))).collect();
                writeln!(text, "<ul>\n{items}</ul>")?;
            }
            Block::Table(table) => text.push_str(&as_html(table)),
            Block::Chart(chart) => text.push_str(&figure(chart)?),
            Block::Folded(summary, inner) => {
                writeln!(text, "<details>\n<summary>{}</summary>", inline(summary))?;
                blocks(text, inner)?;
                text.push_str("</details>\n");
            }
        }
    }
    Ok(())
}

fn figure(chart: &Chart) -> Result<String, Error> {
    let (wide, narrow) = (chart.inline(WIDE)?, chart.inline(NARROW)?);
    Ok(format!(
        "<figure id=\"{}\"><div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div></figure>\n",
        chart.name
    ))
}

fn as_html(table: &Table) -> String {
    let head: String =
        table.head.iter().map(|name| format!("<th scope=\"col\">{}</th>", inline(name))).collect();
    let rows: String = table.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row))).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{0}-caption\">\n<table id=\"{0}\">\n\
         <caption id=\"{0}-caption\">{1}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        table.id,
        inline(&table.caption),
    )
}

fn cells(row: &[Entry]) -> String {
    let cell = |(position, entry): (usize, &Entry)| {
        let text = inline(&entry.with_sign());
        if position == 0 {
            return format!("<th scope=\"row\">{text}</th>");
        }
        let class = match entry.verdict {
            Some(Verdict::Faster) => format!(" class=\"faster{}\"", entry.strength),
            Some(Verdict::Slower) => format!(" class=\"slower{}\"", entry.strength),
            _ => String::new(),
        };
        let hint =
            if entry.hint.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(&entry.hint)) };
        format!("<td{class}{hint}>{text}</td>")
    };
    row.iter().enumerate().map(cell).collect()
}

/// Text with what is in backticks as code.
fn inline(text: &str) -> String {
    let parts = escape(text);
    let parts = parts.split('`').enumerate();
    parts
        .map(|(position, part)| if position % 2 == 1 { format!("<code>{part}</code>") } else { part.into() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::inline;

    #[test]
    fn text_is_escaped_and_code_is_marked() {
        assert_eq!(inline("a < b, `c > d` & e"), "a &lt; b, <code>c &gt; d</code> &amp; e");
    }
}
