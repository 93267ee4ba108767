//! The cases: tables as they come, and what VACUUM can be told to do to them.

mod forged;
mod freezing;
mod heap;
mod indexes;
mod options;

use vacuum_skip_pg_test::{Server, Session};

/// A table, and how it is vacuumed.
///
/// In each text `$t` stands for the name. The statements are run one by one, as
/// by [`Session::run_each`].
#[derive(Clone, Copy)]
pub struct Case {
    /// The name of the case and of its table.
    pub name: &'static str,
    /// The database in which all of it happens.
    pub database: &'static str,
    /// Makes the table, before the servers part.
    pub setup: &'static str,
    /// What SQL cannot do to the table's pages, after `setup`.
    pub pages: fn(&Server, &mut Session, &str),
    /// On each server, what another session does first. Its transaction stays
    /// open until the end of the case.
    pub beside: &'static str,
    /// On each server, what the session does before it vacuums.
    pub before: &'static str,
    /// The commands to compare. They are run twice: the second time they find
    /// what the first has left, and pages that need no full page image.
    pub vacuum: &'static str,
    /// What the first round must tell, or else this is not the case it is
    /// meant to be.
    pub tells: &'static str,
    /// What is certain about the buffers used.
    pub buffers: Buffers,
}

/// What about buffers depends on VACUUM alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// How many are found, read and dirtied.
    Exact,
    /// Not how many are found. Parallel workers take indexes as they come, and
    /// each looks up in catalogs what it needs.
    HitsVary,
    /// Nothing. A buffer whose WAL is not yet flushed leaves the ring
    /// (StrategyRejectBuffer) and may be found later; so it depends on the WAL
    /// writer what is found, read, and dirtied again.
    Vary,
}

const fn case(name: &'static str, setup: &'static str, vacuum: &'static str) -> Case {
    Case {
        name,
        database: "corpus",
        setup,
        pages: |_, _, _| (),
        beside: "",
        before: "",
        vacuum,
        tells: "finished vacuuming",
        buffers: Buffers::Exact,
    }
}

impl Case {
    const fn within(self, database: &'static str) -> Case {
        Case { database, ..self }
    }

    const fn pages(self, pages: fn(&Server, &mut Session, &str)) -> Case {
        Case { pages, ..self }
    }

    const fn beside(self, beside: &'static str) -> Case {
        Case { beside, ..self }
    }

    const fn before(self, before: &'static str) -> Case {
        Case { before, ..self }
    }

    const fn tells(self, tells: &'static str) -> Case {
        Case { tells, ..self }
    }

    const fn buffers(self, buffers: Buffers) -> Case {
        Case { buffers, ..self }
    }
}

/// Functions for `setup`, in every database: see also `filled` of the harness.
pub const FUNCTIONS: [&str; 3] = [
    // Rows for indexes of every kind.
    "CREATE FUNCTION items(n int)
     RETURNS TABLE (id int, v int, word text, tags int[], place point, filler text) LANGUAGE sql AS
     $$ SELECT i, i % 97, 'word' || i % 1009, ARRAY[i % 50, 1000 + i % 211], point(i % 113, i / 113),
               repeat('x', 60) FROM generate_series(1, n) AS i $$",
    // Uses n transaction ids.
    "CREATE PROCEDURE pass_transactions(n int) LANGUAGE plpgsql AS
     $$ BEGIN FOR i IN 1..n LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$",
    // Sets vacuum_freeze_min_age so that FreezeLimit is just below the row's xmin.
    "CREATE FUNCTION freeze_before(row_xmin xid) RETURNS text LANGUAGE sql AS
     $$ SELECT set_config('vacuum_freeze_min_age', (age(row_xmin) + 5)::text, false) $$",
];

/// No index; gaps between modified pages both below and above 32 pages.
const MODIFIED: &str = "CREATE TABLE $t AS SELECT * FROM filled(4000); VACUUM $t;
     UPDATE $t SET v = v + 1 WHERE hashint4(id) % 150 = 0 AND id < 2500; DELETE FROM $t WHERE id = 3700";

/// The same with indexes, and dead items on more than 2 % of the pages.
const INDEXED: &str =
    "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); CREATE INDEX ON $t (v);
     VACUUM $t; UPDATE $t SET v = v + 1 WHERE hashint4(id) % 150 = 0 AND id < 2500;
     DELETE FROM $t WHERE id = 3700";

const TOASTED: &str = "CREATE TABLE $t (id int, v text); ALTER TABLE $t ALTER v SET STORAGE external;
     INSERT INTO $t SELECT i, repeat(md5(i::text), 120) FROM generate_series(1, 400) i; VACUUM $t;
     UPDATE $t SET v = v || '!' WHERE hashint4(id) % 40 = 0; DELETE FROM $t WHERE id BETWEEN 200 AND 230";

const PLAIN: &str = "VACUUM (VERBOSE) $t";

/// All of them, in the order in which they are vacuumed. The last ones leave
/// prepared transactions, and from then on nothing is dead that they may see.
pub fn all_cases() -> Vec<Case> {
    [heap::CASES, freezing::CASES, indexes::CASES, options::CASES, heap::IN_COMPANY].concat()
}
