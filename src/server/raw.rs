//! The server's functions without pgrx's wrapper.
//!
//! The wrapper takes a `sigsetjmp` a call, where several calls for one page can share
//! one [`guarded`](super::boundary::guarded); and of an error it keeps only some of the
//! fields. Most of these functions may raise errors, so they are called only within
//! `guarded`, save those that only compute.

use std::ffi::{c_char, c_int, c_long, c_void};

use pgrx::pg_sys::{
    BlockNumber, Buffer, BufferAccessStrategy, BufferTag, ForkNumber, GlobalVisState, HTSV_Result, HeapTuple,
    HeapTupleFreeze, HeapTupleHeader, IndexBulkDeleteResult, IndexVacuumInfo, LOCKMODE, LWLock, LWLockMode,
    MultiXactId, OffsetNumber, ParallelVacuumState, PrefetchBufferResult, PruneFreezeResult, PruneReason,
    ReadBufferMode, ReadStream, Relation, SMgrRelation, TidStore, TidStoreIter, TidStoreIterResult,
    TransactionId, VacDeadItemsInfo, VacuumCutoffs, XLogRecPtr,
};

use super::vacuum::usage::ResourceUsage;

/// Chooses the next block of a read stream.
pub type ReadStreamBlockNumber =
    unsafe extern "C-unwind" fn(*mut ReadStream, *mut c_void, *mut c_void) -> BlockNumber;

#[allow(clashing_extern_declarations)]
unsafe extern "C-unwind" {
    // bufmgr.c, bufpage.c
    pub fn LockBuffer(buffer: Buffer, mode: c_int);
    pub fn LockBufferForCleanup(buffer: Buffer);
    pub fn ConditionalLockBufferForCleanup(buffer: Buffer) -> bool;
    pub fn UnlockReleaseBuffer(buffer: Buffer);
    pub fn ReleaseBuffer(buffer: Buffer);
    pub fn MarkBufferDirty(buffer: Buffer);
    pub fn CheckBufferIsPinnedOnce(buffer: Buffer);
    pub fn ReadBufferExtended(
        relation: Relation,
        fork: ForkNumber::Type,
        block: BlockNumber,
        mode: ReadBufferMode::Type,
        strategy: BufferAccessStrategy,
    ) -> Buffer;
    pub fn PrefetchBuffer(
        relation: Relation,
        fork: ForkNumber::Type,
        block: BlockNumber,
    ) -> PrefetchBufferResult;
    pub fn RelationGetNumberOfBlocksInFork(relation: Relation, fork: ForkNumber::Type) -> BlockNumber;
    pub fn PageGetHeapFreeSpace(page: *const u8) -> usize;
    pub fn PageTruncateLinePointerArray(page: *mut u8);

    // buf_table.c, lwlock.c, smgr.c
    pub fn BufTableHashCode(tag: *mut BufferTag) -> u32;
    pub fn BufTableLookup(tag: *mut BufferTag, hash: u32) -> c_int;
    pub fn LWLockAcquire(lock: *mut LWLock, mode: LWLockMode::Type) -> bool;
    pub fn LWLockRelease(lock: *mut LWLock);
    pub fn smgrprefetch(
        smgr: SMgrRelation,
        fork: ForkNumber::Type,
        block: BlockNumber,
        blocks: c_int,
    ) -> bool;

    // read_stream.c
    pub fn read_stream_begin_relation(
        flags: c_int,
        strategy: BufferAccessStrategy,
        relation: Relation,
        fork: ForkNumber::Type,
        next_block: ReadStreamBlockNumber,
        blocks: *mut c_void,
        size_for_each_buffer: usize,
    ) -> *mut ReadStream;
    pub fn read_stream_next_buffer(stream: *mut ReadStream, known: *mut *mut c_void) -> Buffer;
    pub fn read_stream_end(stream: *mut ReadStream);

    // visibilitymap.c, freespace.c
    pub fn visibilitymap_pin(relation: Relation, block: BlockNumber, map_buffer: *mut Buffer);
    pub fn visibilitymap_get_status(relation: Relation, block: BlockNumber, map_buffer: *mut Buffer) -> u8;
    pub fn visibilitymap_set(
        relation: Relation,
        block: BlockNumber,
        heap_buffer: Buffer,
        lsn: XLogRecPtr,
        map_buffer: Buffer,
        cutoff_xid: TransactionId,
        flags: u8,
    ) -> u8;
    pub fn visibilitymap_count(
        relation: Relation,
        all_visible: *mut BlockNumber,
        all_frozen: *mut BlockNumber,
    );
    pub fn visibilitymap_clear(relation: Relation, block: BlockNumber, map_buffer: Buffer, flags: u8)
    -> bool;
    pub fn GetRecordedFreeSpace(relation: Relation, block: BlockNumber) -> usize;
    pub fn RecordPageWithFreeSpace(relation: Relation, block: BlockNumber, space: usize);
    pub fn FreeSpaceMapVacuumRange(relation: Relation, start: BlockNumber, end: BlockNumber);

    // pruneheap.c, heapam.c, heapam_visibility.c, transam.c, xloginsert.c
    pub fn heap_page_prune_and_freeze(
        relation: Relation,
        buffer: Buffer,
        vistest: *mut GlobalVisState,
        options: c_int,
        cutoffs: *mut VacuumCutoffs,
        result: *mut PruneFreezeResult,
        reason: PruneReason::Type,
        offset: *mut OffsetNumber,
        new_relfrozenxid: *mut TransactionId,
        new_relminmxid: *mut MultiXactId,
    );
    pub fn log_heap_prune_and_freeze(
        relation: Relation,
        buffer: Buffer,
        conflict_xid: TransactionId,
        cleanup_lock: bool,
        reason: PruneReason::Type,
        frozen: *mut HeapTupleFreeze,
        nfrozen: c_int,
        redirected: *mut OffsetNumber,
        nredirected: c_int,
        dead: *mut OffsetNumber,
        ndead: c_int,
        unused: *mut OffsetNumber,
        nunused: c_int,
    );
    pub fn heap_tuple_should_freeze(
        tuple: HeapTupleHeader,
        cutoffs: *const VacuumCutoffs,
        unfrozen_xid: *mut TransactionId,
        unfrozen_mxid: *mut MultiXactId,
    ) -> bool;
    pub fn heap_tuple_needs_eventual_freeze(tuple: HeapTupleHeader) -> bool;
    pub fn HeapTupleSatisfiesVacuum(
        tuple: HeapTuple,
        oldest_xmin: TransactionId,
        buffer: Buffer,
    ) -> HTSV_Result::Type;
    pub fn TransactionIdPrecedes(older: TransactionId, newer: TransactionId) -> bool;
    pub fn log_newpage_buffer(buffer: Buffer, standard_page: bool) -> XLogRecPtr;

    // mcxt.c, tidstore.c
    pub fn palloc(size: usize) -> *mut c_void;
    pub fn TidStoreCreateLocal(max_bytes: usize, insert_only: bool) -> *mut TidStore;
    pub fn TidStoreDestroy(store: *mut TidStore);
    pub fn TidStoreMemoryUsage(store: *mut TidStore) -> usize;
    pub fn TidStoreSetBlockOffsets(
        store: *mut TidStore,
        block: BlockNumber,
        offsets: *mut OffsetNumber,
        count: c_int,
    );
    pub fn TidStoreBeginIterate(store: *mut TidStore) -> *mut TidStoreIter;
    pub fn TidStoreIterateNext(iterator: *mut TidStoreIter) -> *mut TidStoreIterResult;
    pub fn TidStoreGetBlockOffsets(
        result: *mut TidStoreIterResult,
        offsets: *mut OffsetNumber,
        room: c_int,
    ) -> c_int;
    pub fn TidStoreEndIterate(iterator: *mut TidStoreIter);

    // vacuum.c, vacuumparallel.c
    pub fn vacuum_delay_point(is_analyze: bool);
    pub fn vacuum_xid_failsafe_check(cutoffs: *const VacuumCutoffs) -> bool;
    pub fn vac_open_indexes(
        relation: Relation,
        lock: LOCKMODE,
        count: *mut c_int,
        indexes: *mut *mut Relation,
    );
    pub fn vac_close_indexes(count: c_int, indexes: *mut Relation, lock: LOCKMODE);
    pub fn vac_bulkdel_one_index(
        info: *mut IndexVacuumInfo,
        statistics: *mut IndexBulkDeleteResult,
        dead_items: *mut TidStore,
        dead_items_info: *mut VacDeadItemsInfo,
    ) -> *mut IndexBulkDeleteResult;
    pub fn vac_cleanup_one_index(
        info: *mut IndexVacuumInfo,
        statistics: *mut IndexBulkDeleteResult,
    ) -> *mut IndexBulkDeleteResult;
    pub fn vac_update_relstats(
        relation: Relation,
        pages: BlockNumber,
        tuples: f64,
        all_visible_pages: BlockNumber,
        all_frozen_pages: BlockNumber,
        has_index: bool,
        frozen_xid: TransactionId,
        min_mxid: MultiXactId,
        frozen_xid_updated: *mut bool,
        min_mxid_updated: *mut bool,
        in_outer_transaction: bool,
    );
    pub fn parallel_vacuum_init(
        relation: Relation,
        indexes: *mut Relation,
        count: c_int,
        workers: c_int,
        work_mem: c_int,
        elevel: c_int,
        strategy: BufferAccessStrategy,
    ) -> *mut ParallelVacuumState;
    pub fn parallel_vacuum_end(state: *mut ParallelVacuumState, statistics: *mut *mut IndexBulkDeleteResult);
    pub fn parallel_vacuum_get_dead_items(
        state: *mut ParallelVacuumState,
        info: *mut *mut VacDeadItemsInfo,
    ) -> *mut TidStore;
    pub fn parallel_vacuum_reset_dead_items(state: *mut ParallelVacuumState);
    pub fn parallel_vacuum_bulkdel_all_indexes(
        state: *mut ParallelVacuumState,
        table_tuples: c_long,
        index_scans: c_int,
    );
    pub fn parallel_vacuum_cleanup_all_indexes(
        state: *mut ParallelVacuumState,
        table_tuples: c_long,
        index_scans: c_int,
        estimated_count: bool,
    );

    // lmgr.c, storage.c
    pub fn ConditionalLockRelation(relation: Relation, lock: LOCKMODE) -> bool;
    pub fn UnlockRelation(relation: Relation, lock: LOCKMODE);
    pub fn LockHasWaitersRelation(relation: Relation, lock: LOCKMODE) -> bool;
    pub fn RelationTruncate(relation: Relation, pages: BlockNumber);

    // postgres.c, backend_progress.c
    pub fn ProcessInterrupts();
    pub fn pgstat_progress_update_param(index: c_int, value: i64);

    // elog.c, pg_rusage.c
    pub fn pg_re_throw() -> !;
    pub fn errstart(level: c_int, domain: *const c_char) -> bool;
    pub fn errcode(code: c_int) -> c_int;
    pub fn errmsg_internal(format: *const c_char, ...) -> c_int;
    pub fn errdetail_internal(format: *const c_char, ...) -> c_int;
    pub fn errhint_internal(format: *const c_char, ...) -> c_int;
    pub fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
    pub fn set_errcontext_domain(domain: *const c_char) -> c_int;
    pub fn errcontext_msg(format: *const c_char, ...) -> c_int;
    pub fn pg_rusage_init(usage: *mut ResourceUsage);
    pub fn pg_rusage_show(usage: *const ResourceUsage) -> *const c_char;
}

// Settings of the server that pgrx has no declarations for (autovacuum.h).
unsafe extern "C" {
    pub static autovacuum_work_mem: c_int;
}
