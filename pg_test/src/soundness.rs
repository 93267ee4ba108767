//! What must hold of a table whoever has vacuumed it, as the server's own
//! checkers say: contrib's pg_visibility and amcheck.

use crate::Session;

/// Fails unless the visibility map promises nothing that the table does not
/// keep, its tuples and those of its TOAST table are well formed, and each
/// B-tree and GIN index has what it must have, and every live row of the table.
///
/// The session's database is one of [`crate::Server::new_database`].
///
/// # Panics
///
/// With what is wrong.
#[track_caller]
pub fn assert_sound(session: &mut Session, table: &str) {
    let toast = format!(
        "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = '{table}'::regclass AND reltoastrelid <> 0"
    );
    let relations: Vec<String> = [table.to_owned()].into_iter().chain(session.rows(&toast)).collect();
    for relation in &relations {
        for check in ["pg_check_visible", "pg_check_frozen", "verify_heapam"] {
            let found = session.rows(&format!("SELECT * FROM {check}('{relation}')"));
            assert!(found.is_empty(), "{check}('{relation}') of {table} found {found:?}");
        }
        assert_indexes_sound(session, relation);
    }
}

#[track_caller]
fn assert_indexes_sound(session: &mut Session, relation: &str) {
    let checks = format!(
        "SELECT format(CASE amname WHEN 'btree' THEN 'bt_index_check(%L, heapallindexed => true)'
                       ELSE 'gin_index_check(%L)' END, indexrelid::regclass)
         FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
         WHERE indrelid = '{relation}'::regclass AND amname IN ('btree', 'gin')"
    );
    for check in session.rows(&checks) {
        session.run(&format!("SELECT {check}"));
    }
}
