//! What is on a heap page: tuples counted as VACUUM counts them.
//!
//! The read-only half of vacuumlazy.c's `lazy_scan_noprune`: line pointers and
//! tuples are looked at under a share lock, nothing is pruned or frozen. As
//! with every reader, hint bits may be set on the way.

use std::mem::{MaybeUninit, offset_of};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::boundary::guarded;
use super::error::UserError;
use super::raw;
use super::reader::{PinnedBuffer, page_of};
use super::relation::HeapRelation;

/// Bytes of a page before its line pointers, or before other contents: a multiple
/// of 8, so that no padding follows.
pub(super) const HEADER: usize = offset_of!(pg_sys::PageHeaderData, pd_linp);

/// Counts over pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Pages never initialized.
    pub new_pages: u64,
    /// Pages without any line pointer.
    pub empty_pages: u64,
    /// Tuples live to someone: VACUUM's "live", tuples being deleted included.
    pub live_tuples: u64,
    /// Tuples that are deleted, but not yet for everyone.
    pub recently_dead_tuples: u64,
    /// Tuples that are dead for everyone and could be removed.
    pub dead_tuples: u64,
    /// Line pointers marked LP_DEAD: their tuples are gone, but indexes may
    /// still point to them.
    pub dead_items: u64,
    /// Bytes of the dead tuples, without line pointers and padding.
    pub dead_bytes: u64,
    /// Bytes free on the pages.
    pub free_bytes: u64,
}

impl PageCounts {
    /// Adds those of another page.
    pub fn add(&mut self, other: &PageCounts) {
        self.new_pages += other.new_pages;
        self.empty_pages += other.empty_pages;
        self.live_tuples += other.live_tuples;
        self.recently_dead_tuples += other.recently_dead_tuples;
        self.dead_tuples += other.dead_tuples;
        self.dead_items += other.dead_items;
        self.dead_bytes += other.dead_bytes;
        self.free_bytes += other.free_bytes;
    }
}

/// Counts what is on the page in `buffer`, that of `block`, and releases it.
///
/// # Errors
///
/// XX001 where a line pointer leads out of the page or to an unaligned place,
/// which the server's own check of page headers does not see.
pub fn count_page(
    buffer: PinnedBuffer,
    block: u32,
    relation: &HeapRelation,
    oldest_xmin: pg_sys::TransactionId,
) -> Result<PageCounts, UserError> {
    let tuple = tuple_of(relation.oid(), block);
    let raw_buffer = buffer.into_raw();
    let mut counts = PageCounts::default();
    let mut broken_item = None;
    // SAFETY: the buffer is pinned, once, by us. The closure owns nothing that
    // would need dropping, so an ERROR may jump over it; the lock and the pin
    // are then released by the abort of the transaction.
    unsafe {
        guarded(|| {
            raw::LockBuffer(raw_buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            broken_item = count_locked(raw_buffer, tuple, oldest_xmin, &mut counts);
            raw::UnlockReleaseBuffer(raw_buffer);
        });
    }
    match broken_item {
        None => Ok(counts),
        Some(item) => Err(UserError::new(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!("invalid line pointer {item} in block {block} of relation \"{}\"", relation.name()),
        )
        .detail("It points outside of the page, or to where no tuple can begin.")
        .hint("Check the table with pg_amcheck.")),
    }
}

/// What the tuples of a block have in common.
pub(super) fn tuple_of(table: pg_sys::Oid, block: u32) -> pg_sys::HeapTupleData {
    // SAFETY: a struct of numbers and a pointer, which may all be zero.
    let mut tuple = unsafe { MaybeUninit::<pg_sys::HeapTupleData>::zeroed().assume_init() };
    tuple.t_tableOid = table;
    tuple.t_self.ip_blkid.bi_hi = (block >> 16) as u16;
    tuple.t_self.ip_blkid.bi_lo = block as u16;
    tuple
}

/// Counts a page that is locked; the number of the line pointer where it has
/// to stop because no tuple can be there.
///
/// # Safety
///
/// `buffer` must be pinned and locked, and `tuple` be made for its block. The
/// server may raise an ERROR in here, so nothing on this frame may need dropping,
/// and nothing may panic.
unsafe fn count_locked(
    buffer: pg_sys::Buffer,
    mut tuple: pg_sys::HeapTupleData,
    oldest_xmin: pg_sys::TransactionId,
    counts: &mut PageCounts,
) -> Option<usize> {
    // SAFETY: the page is pinned and locked. Its header was checked when it
    // was read, so pd_lower <= pd_upper <= pd_special <= BLCKSZ, and all line
    // pointers that pd_lower admits are on the page. Tuples are read only
    // where their whole length is on it.
    unsafe {
        // By pointers: others may set the page's LSN meanwhile, for hint bits.
        let page = page_of(buffer);
        let header = page.cast::<pg_sys::PageHeaderData>();
        let (lower, upper) = ((*header).pd_lower, (*header).pd_upper);
        if upper == 0 {
            counts.new_pages = 1;
            return None;
        }
        counts.free_bytes = u64::from(upper.saturating_sub(lower));
        let first_item = page.add(HEADER).cast::<pg_sys::ItemIdData>();
        let items = usize::from(lower).saturating_sub(HEADER) / size_of::<pg_sys::ItemIdData>();
        counts.empty_pages = u64::from(items == 0);
        for number in 0..items {
            let item = *first_item.add(number);
            counts.dead_items += u64::from(item.lp_flags() == pg_sys::LP_DEAD);
            if item.lp_flags() != pg_sys::LP_NORMAL {
                continue;
            }
            if !may_hold_tuple(item) {
                return Some(number + 1);
            }
            tuple.t_len = item.lp_len();
            tuple.t_self.ip_posid = (number + 1) as u16;
            tuple.t_data = page.add(item.lp_off() as usize).cast_mut().cast();
            count_tuple(&mut tuple, oldest_xmin, buffer, counts);
        }
        None
    }
}

/// Whether a line pointer leads to where a tuple can be.
pub(super) fn may_hold_tuple(item: pg_sys::ItemIdData) -> bool {
    let (offset, length) = (item.lp_off(), item.lp_len());
    length >= size_of::<pg_sys::HeapTupleHeaderData>() as u32
        && offset + length <= pg_sys::BLCKSZ
        && offset.is_multiple_of(pg_sys::MAXIMUM_ALIGNOF)
}

/// Counts a tuple.
///
/// # Safety
///
/// As for [`count_locked`], and `tuple` must be on the page.
unsafe fn count_tuple(
    tuple: &mut pg_sys::HeapTupleData,
    oldest_xmin: pg_sys::TransactionId,
    buffer: pg_sys::Buffer,
    counts: &mut PageCounts,
) {
    // Most tuples: known to be inserted, and not deleted. The server's function
    // would say the same, after a call.
    const LIVE: u16 = (pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMAX_INVALID) as u16;
    // SAFETY: the tuple's header is on the page; others may set hint bits in it
    // meanwhile.
    let infomask = unsafe { (&raw const (*tuple.t_data).t_infomask).read_volatile() };
    if infomask & LIVE == LIVE {
        counts.live_tuples += 1;
        return;
    }
    // SAFETY: the buffer is pinned and locked.
    match unsafe { raw::HeapTupleSatisfiesVacuum(tuple, oldest_xmin, buffer) } {
        pg_sys::HTSV_Result::HEAPTUPLE_LIVE | pg_sys::HTSV_Result::HEAPTUPLE_DELETE_IN_PROGRESS => {
            counts.live_tuples += 1;
        }
        pg_sys::HTSV_Result::HEAPTUPLE_RECENTLY_DEAD => counts.recently_dead_tuples += 1,
        pg_sys::HTSV_Result::HEAPTUPLE_DEAD => {
            counts.dead_tuples += 1;
            counts.dead_bytes += u64::from(tuple.t_len);
        }
        // Being inserted: VACUUM does not count it either.
        _ => (),
    }
}
