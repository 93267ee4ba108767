//! Replaces the heap's vacuum routine by ours when the library is loaded, or says
//! why not and changes nothing.
//!
//! The routine may be the server's `heap_vacuum_rel`, or what another extension
//! has put in its place, which then is called where the server's would be. Any
//! other content of the callback means that memory is not laid out as expected,
//! and nothing is stored.

use std::io;

use pgrx::PgSqlErrorCode;

use super::memory::{Mapping, Mappings};
use crate::server::error::UserError;
use crate::server::table_am::{self, Handler, Protection};

/// Why the routine was left alone.
#[derive(Debug)]
enum Refusal {
    /// The system does not list the mappings of a process.
    NoMappings,
    /// The callback is not in mapped memory that can be read.
    SlotUnreadable,
    /// It points to nothing, or to what cannot be run.
    NotAFunction,
    /// The system did not let us store.
    Store(io::Error),
}

impl Refusal {
    fn detail(&self) -> String {
        match self {
            Refusal::NoMappings => "This system does not list its mappings in /proc/self/maps.".into(),
            Refusal::SlotUnreadable => {
                "The heap's table access method is not where its memory could be read.".into()
            }
            Refusal::NotAFunction => {
                "The heap's callback \"relation_vacuum\" does not point to executable memory.".into()
            }
            Refusal::Store(error) => {
                format!("The page of the heap's table access method could not be written: {error}.")
            }
        }
    }
}

/// Sends every VACUUM of a heap table to `handler` first, or warns.
pub fn take_over(handler: Handler) {
    if let Err(refusal) = try_to_take_over(handler) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "vacuum_skip cannot replace the vacuum routine of heap tables",
        )
        .detail(refusal.detail())
        .hint(
            "VACUUM stays the server's own, whatever the settings of vacuum_skip; its functions work. \
             Please report this, with the system and the server's version.",
        )
        .warn();
    }
}

fn try_to_take_over(handler: Handler) -> Result<(), Refusal> {
    let current = table_am::current_vacuum();
    // A load that failed after this point leaves the library in memory, and the
    // next one initializes it again. Ours must not come to call itself.
    if current == table_am::our_vacuum() {
        return Ok(());
    }
    let mappings = Mappings::of_this_process().ok_or(Refusal::NoMappings)?;
    let protection = judge(table_am::slot_address(), current, table_am::servers_vacuum(), &mappings)?;
    table_am::replace_vacuum(protection, handler).map_err(Refusal::Store)
}

/// Whether `current`, stored at `slot`, is a function that can be replaced and
/// called; the protection of the slot's page.
fn judge(slot: usize, current: usize, servers: usize, mappings: &Mappings) -> Result<Protection, Refusal> {
    let protection_at = |address| mappings.at(address).map(|Mapping { protection, .. }| *protection);
    let page = protection_at(slot).filter(|page| page.read).ok_or(Refusal::SlotUnreadable)?;
    let is_code = protection_at(current).is_some_and(|it| it.execute && !it.write);
    if current == servers || is_code { Ok(page) } else { Err(Refusal::NotAFunction) }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    const SERVERS: usize = 0x2010;
    const OTHERS: usize = 0x8010;
    const READ_ONLY: Protection = Protection { read: true, write: false, execute: false };

    fn mappings() -> Mappings {
        Mappings::parse(
            "1000-2000 r--p 00000000 08:01 1 /usr/bin/postgres\n\
             2000-3000 r-xp 00001000 08:01 1 /usr/bin/postgres\n\
             3000-4000 r--p 00002000 08:01 1 /usr/bin/postgres\n\
             4000-5000 rw-p 00003000 08:01 1 /usr/bin/postgres\n\
             5000-6000 ---p 00000000 00:00 0\n\
             6000-7000 rwxp 00000000 00:00 0\n\
             8000-9000 r-xp 00000000 08:01 2 /usr/lib/other.so\n",
        )
        .unwrap()
    }

    fn judged(slot: usize, current: usize) -> Result<Protection, Refusal> {
        judge(slot, current, SERVERS, &mappings())
    }

    #[test]
    fn the_servers_function_is_replaced() {
        assert_eq!(judged(0x3008, SERVERS).unwrap(), READ_ONLY);
    }

    #[test]
    fn another_librarys_function_is_replaced() {
        assert_eq!(judged(0x3008, OTHERS).unwrap(), READ_ONLY);
    }

    #[test]
    fn a_page_that_is_writable_anyway_stays_so() {
        assert_eq!(judged(0x4008, SERVERS).unwrap(), Protection { write: true, ..READ_ONLY });
    }

    #[test]
    fn what_cannot_be_run_is_left_alone() {
        // Null, unmapped, constants, variables, no access, and code in the making.
        for current in [0, 0xffff_0000, 0x3010, 0x4010, 0x5010, 0x6010] {
            assert!(matches!(judged(0x3008, current), Err(Refusal::NotAFunction)), "{current:#x}");
        }
    }

    #[test]
    fn a_slot_that_cannot_be_read_is_left_alone() {
        for slot in [0, 0x5008, 0x9000] {
            assert!(matches!(judged(slot, SERVERS), Err(Refusal::SlotUnreadable)), "{slot:#x}");
        }
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use super::*;

    fn page_is_writable() -> bool {
        let mappings = Mappings::of_this_process().unwrap();
        mappings.at(table_am::slot_address()).unwrap().protection.write
    }

    #[pg_test]
    fn test_the_routine_is_ours_and_its_page_is_protected() {
        assert_eq!(table_am::current_vacuum(), table_am::our_vacuum());
        assert_eq!(table_am::replaced_vacuum(), Some(table_am::servers_vacuum()));
        assert!(!page_is_writable());
    }

    #[pg_test]
    fn test_taking_over_twice_does_not_chain_to_ourselves() {
        take_over(|_| unreachable!("the second handler"));
        assert_eq!(table_am::replaced_vacuum(), Some(table_am::servers_vacuum()));
    }
}
