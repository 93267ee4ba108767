//! Tables as they come: differently modified, differently vacuumed.

use crate::{Session, wait_until};

/// A table and how it came to be.
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// What makes it, `$t` standing for the name: see [`Session::run_each`].
    sql: &'static str,
}

/// Some 500 to 1000 pages each, 20 rows a page.
pub const SHAPES: [Shape; 18] = [
    Shape {
        name: "uniform_low",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(20000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 1000 = 0;",
    },
    Shape {
        name: "uniform_middle",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(20000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 400 = 0;",
    },
    Shape {
        name: "uniform_high",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(20000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 50 = 0;",
    },
    Shape {
        name: "updated_in_place",
        sql: "CREATE TABLE $t (LIKE uniform_low) WITH (fillfactor = 80);
              INSERT INTO $t SELECT * FROM filled(20000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 300 = 0;",
    },
    Shape {
        name: "clustered_updates",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(20000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE id BETWEEN 3000 AND 3700 OR id BETWEEN 9000 AND 12000;",
    },
    Shape {
        name: "deletes",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(20000); VACUUM $t;
              DELETE FROM $t WHERE hashint4(id) % 250 = 0 OR id BETWEEN 7000 AND 8200;",
    },
    Shape {
        name: "moving_hot_tail",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(12000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE id > 11000; INSERT INTO $t SELECT * FROM filled(4000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE id BETWEEN 3000 AND 4000; INSERT INTO $t SELECT * FROM filled(2000);",
    },
    Shape {
        name: "inserted_after_vacuum",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(15000); VACUUM $t;
              INSERT INTO $t SELECT * FROM filled(5000);",
    },
    Shape {
        name: "all_frozen",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(15000); VACUUM (FREEZE) $t;",
    },
    Shape {
        name: "nothing_vacuumed",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(12000);
              DELETE FROM $t WHERE hashint4(id) % 3 = 0;",
    },
    Shape {
        name: "dead_tail",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(20000); VACUUM $t;
              DELETE FROM $t WHERE id > 14000;",
    },
    Shape {
        name: "frozen_and_visible",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(10000); VACUUM (FREEZE) $t;
              INSERT INTO $t SELECT * FROM filled(10000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 200 = 0;",
    },
    // Dead items: their tuples are pruned, but an index still points to them.
    Shape {
        name: "with_index",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(15000); CREATE INDEX ON $t (id); CREATE INDEX ON $t (v);
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 100 = 0;
              VACUUM (INDEX_CLEANUP off, TRUNCATE off) $t;
              UPDATE $t SET v = v + 1 WHERE hashint4(id) % 333 = 1;",
    },
    Shape {
        name: "toasted",
        sql: "CREATE TABLE $t (id int, v text); ALTER TABLE $t ALTER v SET STORAGE external;
              INSERT INTO $t SELECT i, repeat(md5(i::text), 120) FROM generate_series(1, 1000) i; VACUUM $t;
              UPDATE $t SET v = v || '!' WHERE hashint4(id) % 60 = 0;",
    },
    Shape {
        name: "materialized",
        sql: "CREATE MATERIALIZED VIEW $t AS SELECT * FROM filled(10000); VACUUM $t;",
    },
    Shape {
        name: "last_block_visible",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(10000); VACUUM $t;
              UPDATE $t SET v = v + 1 WHERE id = 1; VACUUM $t;
              DELETE FROM $t WHERE id BETWEEN 100 AND 130;",
    },
    Shape {
        name: "one_page",
        sql: "CREATE TABLE $t AS SELECT * FROM filled(5); VACUUM $t;",
    },
    Shape {
        name: "no_page",
        sql: "CREATE TABLE $t (id int);",
    },
];

/// Makes all the tables of [`SHAPES`].
pub fn make_all(session: &mut Session) {
    create_filled(session);
    for shape in &SHAPES {
        make(session, shape);
    }
}

/// Makes one of them; the function `filled` must be there.
pub fn make(session: &mut Session, shape: &Shape) {
    session.run_each(&shape.sql.replace("$t", shape.name));
}

/// Creates the function `filled(n)`: n rows, of which 20 fit a page.
pub fn create_filled(session: &mut Session) {
    session.run(
        "CREATE FUNCTION filled(n int) RETURNS TABLE (id int, v int, filler text) LANGUAGE sql AS
         $$ SELECT i, i % 7, repeat('x', 350) FROM generate_series(1, n) AS i $$",
    );
}

/// A table of `pages` pages, a row each, every second of which was modified
/// after the vacuum: as many ranges as pages.
pub fn make_striped(session: &mut Session, table: &str, pages: u32) {
    session.run(&format!(
        "CREATE TABLE {table} (id int, v int, filler text) WITH (fillfactor = 10);
         INSERT INTO {table} SELECT i, 0, repeat('x', 700) FROM generate_series(1, {pages}) AS i"
    ));
    session.run(&format!("VACUUM (FREEZE) {table}"));
    session.run(&format!("UPDATE {table} SET v = 1 WHERE id % 2 = 0"));
    let ranges: u32 = session.value(&format!("SELECT count(*) FROM vacuum_skip_ranges('{table}', 1)"));
    assert_eq!(ranges, pages, "ranges of {table}");
}

/// A table of some 2000 pages that takes a scan about a second, as long as
/// `holder` is left alone.
///
/// A transaction of `holder` has inserted all the rows and is still running.
/// Whoever looks at one of them must find out whether its subtransaction is in
/// progress, and it is nested so deep that shared memory does not know: more
/// than a microsecond for each row. Meanwhile others can do with the table what
/// the transaction's RowExclusiveLock lets them.
pub fn make_slow(holder: &mut Session, observer: &mut Session, table: &str) {
    holder.run(&format!(
        "CREATE TABLE {table} ();
         CREATE FUNCTION fill_{table}(depth int) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN
           INSERT INTO {table} DEFAULT VALUES;
           IF depth = 0 THEN
             INSERT INTO {table} SELECT FROM generate_series(1, 580000);
           ELSE
             BEGIN PERFORM fill_{table}(depth - 1); EXCEPTION WHEN division_by_zero THEN NULL; END;
           END IF;
         END $$"
    ));
    holder.run(&format!("BEGIN; SELECT fill_{table}(70)"));
    // A transaction younger than all that have ended is known to be running.
    observer.run("SELECT pg_current_xact_id()");
}

/// Waits until process `pid` is in the middle of a scan, as
/// pg_stat_progress_vacuum tells `observer`.
pub fn wait_for_scan(observer: &mut Session, pid: i32) {
    wait_until("a scan in the phase \"scanning heap\"", || {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_progress_vacuum WHERE pid = {pid} AND phase = 'scanning heap'
             AND heap_blks_scanned > 0 AND heap_blks_scanned < heap_blks_total"
        );
        observer.value::<u32>(&sql) == 1
    });
}

/// Waits until process `pid` waits for a lock.
pub fn wait_for_lock(observer: &mut Session, pid: i32) {
    wait_until("a session that waits for a lock", || {
        let sql =
            format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
        observer.value::<u32>(&sql) == 1
    });
}
