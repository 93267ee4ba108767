//! A picture of a relation: cells in block order, each shaded by the share of
//! its blocks that would be read. In plain ASCII, since a database may have any
//! encoding.

use super::map::VisibilityMap;
use super::percent;
use super::ranges::{Ranges, Threshold};

/// How much of a cell is read. Only a cell of which nothing is read is
/// `Nothing`, and only one of which all is read is `All`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shade {
    /// No block.
    Nothing,
    /// Up to a tenth.
    Tenth,
    /// Up to a quarter.
    Quarter,
    /// Up to a half.
    Half,
    /// More than half, but not all.
    Most,
    /// Every block.
    All,
}

/// The cells of a relation; none where it has no blocks.
pub struct Picture {
    rel_pages: u32,
    threshold: Threshold,
    scanned: Vec<u32>,
}

impl Picture {
    /// Paints `ranges` with at most `cells` cells (at least one, and never
    /// more than the relation has blocks).
    pub fn paint<M: VisibilityMap>(ranges: Ranges<M>, threshold: Threshold, cells: u32) -> Picture {
        let rel_pages = ranges.rel_pages();
        let cells = cells.clamp(1, rel_pages.max(1)).min(rel_pages);
        let mut picture = Picture { rel_pages, threshold, scanned: vec![0; cells as usize] };
        for range in ranges.filter(|range| !range.is_skipped(threshold)) {
            picture.add(u64::from(range.first_block), u64::from(range.first_block) + u64::from(range.pages));
        }
        picture
    }

    /// Counts the blocks from `first` up to `end` (not included) as read.
    fn add(&mut self, first: u64, end: u64) {
        let mut block = first;
        let mut cell = self.cell_of(first);
        while block < end {
            let next = self.first_block(cell + 1).min(end);
            self.scanned[cell] += (next - block) as u32;
            block = next;
            cell += 1;
        }
    }

    /// The cell that holds `block`: the greatest whose first block is not
    /// beyond it.
    fn cell_of(&self, block: u64) -> usize {
        let (cells, pages) = (self.scanned.len() as u64, u64::from(self.rel_pages));
        (((block + 1) * cells - 1) / pages) as usize
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.scanned.len()
    }

    /// The first block of `cell`; for the number of cells, the number of
    /// blocks.
    pub fn first_block(&self, cell: usize) -> u64 {
        cell as u64 * u64::from(self.rel_pages) / self.scanned.len() as u64
    }

    /// How many blocks of `cell` are read.
    pub fn scanned_pages(&self, cell: usize) -> u64 {
        u64::from(self.scanned[cell])
    }

    /// The shade of `cell`.
    pub fn shade(&self, cell: usize) -> Shade {
        let scanned = self.scanned_pages(cell);
        let pages = self.first_block(cell + 1) - self.first_block(cell);
        match scanned {
            0 => Shade::Nothing,
            all if all == pages => Shade::All,
            some if 10 * some <= pages => Shade::Tenth,
            some if 4 * some <= pages => Shade::Quarter,
            some if 2 * some <= pages => Shade::Half,
            _ => Shade::Most,
        }
    }

    /// The lines of the picture of the relation `name`, `width` cells a row: what
    /// it shows, its rows, each with the number of its first block, and what the
    /// characters mean.
    pub fn draw(&self, name: &str, width: usize) -> Vec<String> {
        let (cells, pages) = (self.cells(), u64::from(self.rel_pages));
        let scanned: u64 = (0..cells).map(|cell| self.scanned_pages(cell)).sum();
        let mut lines = vec![format!(
            "{name}: threshold {} reads {scanned} of {pages} pages ({:.1} %)",
            self.threshold.blocks(),
            percent(scanned, pages)
        )];
        let digits = pages.to_string().len();
        for first in (0..cells).step_by(width) {
            let row: String =
                (first..cells.min(first + width)).map(|cell| self.shade(cell).character()).collect();
            lines.push(format!("{:>digits$} |{row:<width$}|", self.first_block(first)));
        }
        if cells > 0 {
            let share = pages as f64 / cells as f64;
            lines.push(format!("A character is {share:.1} pages; the number is a row's first block."));
            lines.push("Read: ' ' none  '.' up to 10 %  ':' 25 %  '+' 50 %  '*' more  '#' all".into());
        }
        lines
    }
}

impl Shade {
    fn character(self) -> char {
        match self {
            Shade::Nothing => ' ',
            Shade::Tenth => '.',
            Shade::Quarter => ':',
            Shade::Half => '+',
            Shade::Most => '*',
            Shade::All => '#',
        }
    }
}
