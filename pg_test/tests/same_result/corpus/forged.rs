//! Pages that SQL does not make.

use std::os::unix::fs::FileExt;

use vacuum_skip_pg_test::{Server, Session};

/// The bytes of a page.
const PAGE: u64 = 8192;

/// An empty page, as PageInit leaves one.
fn empty_page() -> Vec<u8> {
    let mut page = vec![0; PAGE as usize];
    // pd_lower, pd_upper, pd_special, and pd_pagesize_version.
    for (i, field) in [24, 8192, 8192, 8192 | 4_u16].into_iter().enumerate() {
        page[12 + 2 * i..][..2].copy_from_slice(&field.to_ne_bytes());
    }
    page
}

/// Writes a page into the table's file, with the checksum it needs. Shared
/// buffers must not have it.
fn write_page(
    server: &Server,
    session: &mut Session,
    table: &str,
    fork: &str,
    block: u64,
    mut page: Vec<u8>,
) {
    let hex: String = page.iter().map(|byte| format!("{byte:02x}")).collect();
    let checksum: i16 = session.value(&format!("SELECT page_checksum('\\x{hex}', {block})"));
    page[8..10].copy_from_slice(&checksum.to_ne_bytes());
    let written = server.file_of(session, table, fork).write_all_at(&page, block * PAGE);
    written.unwrap_or_else(|error| panic!("cannot write to {table}'s file: {error}"));
}

/// Adds so many new pages at the end of the table, then so many empty ones.
fn add_pages(server: &Server, session: &mut Session, table: &str, new: u64, empty: u64) {
    session.run("CHECKPOINT");
    let pages: u64 = session.value(&format!("SELECT pg_relation_size('{table}') / {PAGE}"));
    let file = server.file_of(session, table, "main");
    file.set_len((pages + new) * PAGE).unwrap_or_else(|error| panic!("cannot extend {table}: {error}"));
    for block in pages + new..pages + new + empty {
        write_page(server, session, table, "main", block, empty_page());
    }
}

/// As crashes leave them, in the middle and at the end.
pub fn add_new_and_empty_pages(server: &Server, session: &mut Session, table: &str) {
    add_pages(server, session, table, 3, 4);
    // An insert begins with the last page.
    session.run(&format!("INSERT INTO {table} SELECT * FROM filled(500)"));
    session.run(&format!("DELETE FROM {table} WHERE hashint4(id) % 90 = 0"));
    add_pages(server, session, table, 2, 0);
}

pub fn add_new_and_empty_tail(server: &Server, session: &mut Session, table: &str) {
    add_pages(server, session, table, 3, 3);
}

/// Has the map say that pages 0 to 79 are all-visible and all-frozen, some of
/// which have dead items or dead tuples, and that 80 to 159 are not.
pub fn falsify_map(server: &Server, session: &mut Session, table: &str) {
    server.evict(session, table);
    let mut page = vec![0; PAGE as usize];
    let read = server.file_of(session, table, "vm").read_exact_at(&mut page, 0);
    read.unwrap_or_else(|error| panic!("cannot read {table}'s map: {error}"));
    page[24..44].fill(0xff);
    page[44..64].fill(0);
    write_page(server, session, table, "vm", 0, page);
}
