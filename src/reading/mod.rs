//! How blocks of a heap are read, by the read-only scan and by a real VACUUM.
//!
//! An iterator says which blocks; [`lookahead`] runs ahead of it and tells the
//! kernel; the server's read stream, or a call for each block, reads them. The
//! settings vacuum_skip.read_mode and vacuum_skip.read_ahead choose.

mod lookahead;

pub use lookahead::{Lookahead, Upcoming};

use crate::server::prefetch::Prefetcher;
use crate::server::reader::{Block, HeapReader, Method, Strategy};
use crate::server::relation::HeapRelation;
use crate::server::visibility_map::PinnedMap;
use crate::settings::ReadMode;
use crate::skipping::{BlocksToScan, PAGES_PER_WORD, VacuumBlock, VacuumBlocks, VisibilityMap};

// The server's words are the rule's words.
const _: () = assert!(PAGES_PER_WORD == u64::BITS / 2);

impl VisibilityMap for PinnedMap<'_> {
    #[inline]
    fn word(&mut self, index: u32) -> u64 {
        PinnedMap::word(self, index)
    }
}

impl Block for VacuumBlock {
    fn number(&self) -> u32 {
        self.number
    }
}

impl<M: VisibilityMap> Upcoming for BlocksToScan<M> {}

impl<M: VisibilityMap> Upcoming for VacuumBlocks<M> {
    fn may_run_ahead(&self) -> bool {
        VacuumBlocks::may_run_ahead(self)
    }
}

/// How to read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The call.
    pub mode: ReadMode,
    /// How many blocks ahead the kernel is told what will be read.
    pub ahead: usize,
}

/// Reads blocks, with hints about those to come.
pub type Reader<'rel, B> = HeapReader<'rel, Lookahead<Prefetcher<'rel>, B>>;

/// A reader of `blocks` of `relation`.
pub fn reader<'rel, B: Upcoming + 'rel>(
    relation: &'rel HeapRelation,
    strategy: &'rel Strategy,
    options: ReadOptions,
    blocks: B,
) -> Reader<'rel, B> {
    let ahead = Lookahead::new(blocks, Prefetcher::new(relation), options.ahead);
    let method = match options.mode {
        ReadMode::Sync => Method::Sync,
        ReadMode::Stream if ahead.gives_hints() => Method::HintedStream,
        ReadMode::Stream => Method::Stream,
    };
    HeapReader::new(relation, strategy, method, ahead)
}
