//! Two pages compared, and what is at a place of one, as bufpage.h, itemid.h
//! and htup_details.h lay it out.

/// Bytes of a page.
pub const SIZE: usize = 8192;

/// Bytes of a page's header.
const HEADER: usize = 24;

/// Bytes of a line pointer.
const LINE_POINTER: usize = 4;

/// Fields of a structure: where each begins, and its name.
type Fields = [(usize, &'static str)];

const HEADER_FIELDS: &Fields = &[
    (0, "pd_lsn"),
    (8, "pd_checksum"),
    (10, "pd_flags"),
    (12, "pd_lower"),
    (14, "pd_upper"),
    (16, "pd_special"),
    (18, "pd_pagesize_version"),
    (20, "pd_prune_xid"),
];

const TUPLE_FIELDS: &Fields = &[
    (0, "t_xmin"),
    (4, "t_xmax"),
    (8, "t_cid"),
    (12, "t_ctid"),
    (18, "t_infomask2"),
    (20, "t_infomask"),
    (22, "t_hoff"),
    (23, "null bitmap and data"),
];

/// Where two pages first differ after pd_lsn and pd_checksum, with which a page
/// begins: both tell when it was written, not what it holds.
pub fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    const COMPARED: usize = 10;
    if a[COMPARED..] == b[COMPARED..] {
        return None;
    }
    (COMPARED..SIZE).find(|&i| a[i] != b[i])
}

/// What the pages of a fork hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tuples of a table or of an index.
    Main,
    /// The visibility map.
    Map,
    /// The free space map.
    FreeSpace,
}

impl Kind {
    /// As the end of a fork's name says.
    pub fn of(fork: &str) -> Kind {
        match fork.rsplit(", ").next() {
            Some("vm fork") => Kind::Map,
            Some("fsm fork") => Kind::FreeSpace,
            _ => Kind::Main,
        }
    }

    /// What is at `offset` of `page`, which is block `block` of its fork.
    pub fn place(self, block: usize, page: &[u8], offset: usize) -> String {
        if offset < HEADER {
            return format!("in the header, {}", field(HEADER_FIELDS, offset));
        }
        match self {
            Kind::Main => place_among_tuples(page, offset),
            // Two bits a block.
            Kind::Map => {
                let first = (block * (SIZE - HEADER) + offset - HEADER) * 4;
                format!("the bits of blocks {first} to {}", first + 3)
            }
            Kind::FreeSpace => format!("entry {} of the tree", offset - HEADER),
        }
    }
}

fn place_among_tuples(page: &[u8], offset: usize) -> String {
    let number = |at: usize| usize::from(u16::from_ne_bytes([page[at], page[at + 1]]));
    let (lower, upper, special) = (number(12), number(14), number(16));
    if offset < lower {
        return format!("line pointer {}", (offset - HEADER) / LINE_POINTER + 1);
    }
    if offset < upper {
        return "in the hole".to_owned();
    }
    if offset >= special {
        return format!("byte {} of the special space", offset - special);
    }
    let pointers = lower.min(page.len()).saturating_sub(HEADER) / LINE_POINTER;
    let tuple = (1..=pointers).find_map(|i| {
        let at = HEADER + (i - 1) * LINE_POINTER;
        let pointer = u32::from_ne_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        let (start, length) = ((pointer & 0x7fff) as usize, (pointer >> 17) as usize);
        (start..start + length).contains(&offset).then(|| (i, offset - start))
    });
    tuple.map_or_else(
        || "between tuples".to_owned(),
        |(i, byte)| format!("tuple {i}, byte {byte} ({} if of a table)", field(TUPLE_FIELDS, byte)),
    )
}

fn field(fields: &Fields, offset: usize) -> &'static str {
    fields.iter().rev().find(|(start, _)| *start <= offset).map_or("", |(_, name)| name)
}
