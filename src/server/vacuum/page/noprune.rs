//! What a vacuum learns from a page that others have pinned, and so cannot be pruned now
//! (vacuumlazy.c, `lazy_scan_noprune`).

use pgrx::pg_sys::{self, HTSV_Result};

use super::{Item, LockedPage};
use crate::server::error::UserError;
use crate::server::page::HEADER;
use crate::server::raw;
use crate::server::vacuum::error_context::ErrorContext;
use crate::server::vacuum::freezing::Freezing;

/// The most line pointers that fit on a page, damaged ones included.
const MOST_ITEMS: usize = (pg_sys::BLCKSZ as usize - HEADER) / size_of::<pg_sys::ItemIdData>();

/// What is on a page that could not be pruned.
pub struct Unpruned {
    /// Tuples live to someone.
    pub live: u32,
    /// Tuples deleted, but not yet for everyone.
    pub recently_dead: u32,
    /// Tuples that pruning would have removed.
    pub missed_dead: u32,
    /// The page must not be truncated away.
    pub has_tuples: bool,
    /// Line pointers that are LP_DEAD.
    pub dead_items: Offsets,
}

/// Line pointers of a page, by their numbers.
pub struct Offsets {
    count: usize,
    numbers: [u16; MOST_ITEMS],
}

impl Offsets {
    fn none() -> Self {
        Offsets { count: 0, numbers: [0; MOST_ITEMS] }
    }

    /// The numbers, in rising order.
    pub fn as_slice(&self) -> &[u16] {
        &self.numbers[..self.count]
    }

    fn add(&mut self, number: u16) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += 1;
        }
    }
}

impl Unpruned {
    fn count(&mut self, state: HTSV_Result::Type) {
        self.has_tuples = true;
        match state {
            HTSV_Result::HEAPTUPLE_LIVE | HTSV_Result::HEAPTUPLE_DELETE_IN_PROGRESS => self.live += 1,
            HTSV_Result::HEAPTUPLE_DEAD => self.missed_dead += 1,
            HTSV_Result::HEAPTUPLE_RECENTLY_DEAD => self.recently_dead += 1,
            // Being inserted: pruning does not count it either.
            _ => (),
        }
    }
}

impl LockedPage<'_> {
    /// Looks at everything on the page without changing it. None where a tuple is so
    /// old that an `aggressive` vacuum must freeze it, which takes a cleanup lock.
    ///
    /// # Errors
    ///
    /// XX001 for a line pointer that leads out of the page.
    pub fn examine(
        &self,
        freezing: &mut Freezing,
        aggressive: bool,
        context: &ErrorContext,
    ) -> Result<Option<Unpruned>, UserError> {
        let mut found = Unpruned {
            live: 0,
            recently_dead: 0,
            missed_dead: 0,
            has_tuples: false,
            dead_items: Offsets::none(),
        };
        let (mut oldest_xid, mut oldest_mxid) = (freezing.oldest_xid, freezing.oldest_mxid);
        // SAFETY: the server's functions compare numbers, or may set hint bits, which a page
        // that is locked allows. The closure owns nothing that needs dropping.
        let saw_all = unsafe {
            self.look_at_items(context, |number, item| {
                match item {
                    Item::Tuple(mut tuple) => {
                        let old = raw::heap_tuple_should_freeze(
                            tuple.t_data,
                            &freezing.cutoffs,
                            &mut oldest_xid,
                            &mut oldest_mxid,
                        );
                        if old && aggressive {
                            return false;
                        }
                        found.count(self.state_of(&mut tuple, freezing));
                    }
                    Item::Redirect => found.has_tuples = true,
                    Item::Dead => found.dead_items.add(number),
                }
                true
            })?
        };
        if !saw_all {
            return Ok(None);
        }
        (freezing.oldest_xid, freezing.oldest_mxid) = (oldest_xid, oldest_mxid);
        Ok(Some(found))
    }
}
