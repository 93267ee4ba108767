//! An open heap relation.
//!
//! Opening checks, in this order: that the relation exists, that the caller
//! may read it, that it is not another session's temporary table, that it is
//! stored by the heap access method, and that it has data here. Only then is
//! there a [`HeapRelation`]. Nothing is locked before the privilege is checked,
//! so that nobody queues for a lock on a table that is none of their business.

use std::ffi::CStr;
use std::mem::ManuallyDrop;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::boundary::guarded;
use super::error::UserError;
use super::{let_go, raw};

/// InvalidSubTransactionId (c.h).
const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// A heap relation that is open under a lock, until dropped.
pub struct HeapRelation {
    relation: pg_sys::Relation,
    /// The lock to release then; NoLock keeps what there is.
    release: u32,
}

/// Why a relation cannot be read.
#[derive(Debug)]
pub struct OpenError {
    /// What to tell the user.
    pub error: UserError,
    /// Where it is a partitioned table, whose partitions can be read: its name as
    /// SQL writes it. The error has no hint then.
    pub partitions_of: Option<String>,
}

impl From<UserError> for OpenError {
    fn from(error: UserError) -> Self {
        OpenError { error, partitions_of: None }
    }
}

impl HeapRelation {
    /// Opens `oid` for reading, under AccessShareLock.
    ///
    /// # Errors
    ///
    /// 42P01 where there is no such relation, 42501 without MAINTAIN on it or
    /// the privileges of pg_stat_scan_tables, 42809 for what is no table, and
    /// 0A000 for what cannot be read from here.
    pub fn open(oid: pg_sys::Oid) -> Result<Self, OpenError> {
        let name = relation_name(oid).ok_or_else(|| does_not_exist(oid))?;
        check_privilege(oid, &name)?;
        let opened = Self::open_any(oid, pg_sys::AccessShareLock, pg_sys::AccessShareLock)?;
        opened.check_readable()?;
        Ok(opened)
    }

    /// Opens `oid` for its owner to change what the catalogs say of it. The lock is
    /// kept until the transaction ends, as by SECURITY LABEL. `function` names what
    /// needs a transaction that may write.
    ///
    /// # Errors
    ///
    /// As [`HeapRelation::open`], but 42501 for who does not own it; and the
    /// server's own in a transaction that may not write.
    pub fn open_as_owner(oid: pg_sys::Oid, function: &CStr) -> Result<Self, OpenError> {
        // SAFETY: a string that ends with a zero byte.
        unsafe { pg_sys::PreventCommandIfReadOnly(function.as_ptr()) };
        let name = relation_name(oid).ok_or_else(|| does_not_exist(oid))?;
        check_owner(oid, &name)?;
        let opened = Self::open_any(oid, pg_sys::ShareUpdateExclusiveLock, pg_sys::NoLock)?;
        // It may have changed hands while this waited.
        check_owner(oid, &name)?;
        opened.check_heap()?;
        Ok(opened)
    }

    /// Opens `oid`, which the command that is running has locked.
    ///
    /// # Errors
    ///
    /// 42809 and 0A000, as [`HeapRelation::open`].
    pub fn open_locked(oid: pg_sys::Oid) -> Result<Self, OpenError> {
        let opened = Self::open_any(oid, pg_sys::NoLock, pg_sys::NoLock)?;
        opened.check_heap()?;
        Ok(opened)
    }

    fn open_any(oid: pg_sys::Oid, lock: u32, release: u32) -> Result<Self, UserError> {
        // SAFETY: any OID may be asked for; the result is checked below.
        let relation = unsafe { pg_sys::try_relation_open(oid, lock as i32) };
        if relation.is_null() { Err(does_not_exist(oid)) } else { Ok(HeapRelation { relation, release }) }
    }

    /// A heap relation that the server has open and locked, and goes on to keep open.
    ///
    /// # Safety
    ///
    /// It must stay open as long as the result is used.
    pub(super) unsafe fn lent(relation: pg_sys::Relation) -> ManuallyDrop<Self> {
        ManuallyDrop::new(HeapRelation { relation, release: pg_sys::NoLock })
    }

    /// The server's own handle, valid as long as `self`.
    pub(super) fn as_ptr(&self) -> pg_sys::Relation {
        self.relation
    }

    fn form(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: an open relation has its pg_class row.
        unsafe { &*(*self.relation).rd_rel }
    }

    /// The OID.
    pub fn oid(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_id }
    }

    /// The name, without schema.
    pub fn name(&self) -> String {
        // SAFETY: relname is a name, which ends with a zero byte.
        let name = unsafe { CStr::from_ptr(self.form().relname.data.as_ptr()) };
        name.to_string_lossy().into_owned()
    }

    /// The name of its schema.
    pub fn schema(&self) -> String {
        // SAFETY: the result is null or a string that ends with a zero byte.
        unsafe { owned(pg_sys::get_namespace_name(self.form().relnamespace)) }.unwrap_or_default()
    }

    /// Its rows are shared by all databases of the cluster.
    pub fn is_shared(&self) -> bool {
        self.form().relisshared
    }

    /// Changes of it are written to WAL (rel.h, `RelationNeedsWAL`).
    pub(super) fn needs_wal(&self) -> bool {
        let permanent = self.form().relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
        // SAFETY: the relation is open; and a setting.
        permanent
            && unsafe {
                pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
                    || (*self.relation).rd_createSubid == NO_SUBTRANSACTION
                        && (*self.relation).rd_firstRelfilelocatorSubid == NO_SUBTRANSACTION
            }
    }

    /// How many rows it had by pg_class when it was last vacuumed or analyzed; -1
    /// where that is not known.
    pub fn recorded_tuples(&self) -> f64 {
        self.form().reltuples.into()
    }

    /// The schema-qualified name, quoted where SQL needs it.
    fn qualified_name(&self) -> String {
        // SAFETY: both names are strings that end with a zero byte; so is the
        // result, which lives as long as the current memory context.
        let quoted = unsafe {
            let schema = pg_sys::get_namespace_name(self.form().relnamespace);
            CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, self.form().relname.data.as_ptr()))
        };
        quoted.to_string_lossy().into_owned()
    }

    /// The number of blocks of the main fork now.
    pub fn pages(&self) -> u32 {
        let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
        // SAFETY: the relation is open.
        unsafe { guarded(|| raw::RelationGetNumberOfBlocksInFork(self.relation, fork)) }
    }

    /// Whether its blocks go through this session's local buffers.
    pub fn is_temporary(&self) -> bool {
        self.form().relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP
    }

    /// The tablespace, or InvalidOid for the database's default.
    pub(super) fn tablespace(&self) -> pg_sys::Oid {
        self.form().reltablespace
    }

    /// The oldest transaction and multixact that may still stand in it.
    pub(super) fn oldest_unfrozen(&self) -> (pg_sys::TransactionId, pg_sys::MultiXactId) {
        (self.form().relfrozenxid, self.form().relminmxid)
    }

    fn check_readable(&self) -> Result<(), OpenError> {
        // SAFETY: the relation is open.
        let is_ours = unsafe { (*self.relation).rd_islocaltemp };
        if self.is_temporary() && !is_ours {
            return Err(not_supported("cannot access temporary tables of other sessions").into());
        }
        self.check_heap()?;
        // SAFETY: reads a flag of this process.
        let in_recovery = unsafe { pg_sys::RecoveryInProgress() };
        if in_recovery && self.form().relpersistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED {
            let error = not_supported("cannot access temporary or unlogged relations during recovery");
            let detail = format!("Table \"{}\" is unlogged, so a standby has no data of it.", self.name());
            return Err(error.detail(detail).into());
        }
        Ok(())
    }

    /// Whether the heap stores it.
    fn check_heap(&self) -> Result<(), OpenError> {
        let kind = self.form().relkind as u8;
        if ![pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW, pg_sys::RELKIND_TOASTVALUE].contains(&kind) {
            return Err(self.wrong_kind(kind));
        }
        self.check_access_method().map_err(OpenError::from)
    }

    /// Whether the heap's routine serves it, under whatever name it is
    /// registered.
    fn check_access_method(&self) -> Result<(), UserError> {
        // SAFETY: a relation of these kinds has a table access method.
        let is_heap = unsafe { (*self.relation).rd_tableam == pg_sys::GetHeapamTableAmRoutine() };
        if is_heap {
            return Ok(());
        }
        // SAFETY: the result is null or a string that ends with a zero byte.
        let method = unsafe { owned(pg_sys::get_am_name(self.form().relam)) }.unwrap_or_default();
        Err(not_supported("only heap AM is supported")
            .detail(format!("Table \"{}\" is stored by the access method \"{method}\".", self.name())))
    }

    fn wrong_kind(&self, kind: u8) -> OpenError {
        let (plural, hint) = match kind {
            pg_sys::RELKIND_PARTITIONED_TABLE => ("partitioned tables", None),
            pg_sys::RELKIND_INDEX => ("indexes", Some(self.hint_for_index())),
            pg_sys::RELKIND_PARTITIONED_INDEX => ("partitioned indexes", Some(self.hint_for_index())),
            pg_sys::RELKIND_SEQUENCE => {
                ("sequences", Some("A sequence is never vacuumed; name a table.".into()))
            }
            pg_sys::RELKIND_VIEW => {
                ("views", Some("A view stores no rows; name the tables it reads.".into()))
            }
            pg_sys::RELKIND_FOREIGN_TABLE => {
                let hint = "Its rows are stored elsewhere; ask the server that stores them.";
                ("foreign tables", Some(hint.into()))
            }
            _ => ("composite types", Some("A composite type stores no rows; name a table.".into())),
        };
        let error = UserError::new(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("relation \"{}\" is of wrong relation kind", self.name()),
        )
        .detail(format!("This operation is not supported for {plural}."));
        match hint {
            Some(hint) => OpenError { error: error.hint(hint), partitions_of: None },
            None => OpenError { error, partitions_of: Some(self.qualified_name()) },
        }
    }

    fn hint_for_index(&self) -> String {
        // SAFETY: any OID may be asked for, and a missing one is allowed.
        let table = unsafe { pg_sys::IndexGetRelation(self.oid(), true) };
        let table = relation_name(table).unwrap_or_default();
        format!("VACUUM skips pages of tables only; name the index's table, \"{table}\".")
    }
}

impl Drop for HeapRelation {
    fn drop(&mut self) {
        // SAFETY: open, with the lock that is released, and closed only here.
        let_go(|| unsafe { pg_sys::relation_close(self.relation, self.release as i32) });
    }
}

/// Copies a string of the server; None for a null pointer.
///
/// # Safety
///
/// `text` must be null or end with a zero byte.
pub(super) unsafe fn owned(text: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The name of this database.
pub fn database_name() -> String {
    // SAFETY: the result is null or a string that ends with a zero byte.
    unsafe { owned(pg_sys::get_database_name(pg_sys::MyDatabaseId)) }.unwrap_or_default()
}

/// The name of a relation, without schema.
pub fn relation_name(oid: pg_sys::Oid) -> Option<String> {
    // SAFETY: any OID may be asked for; the result is null or a string.
    unsafe { owned(pg_sys::get_rel_name(oid)) }
}

/// The main table of a TOAST table; None for any other relation.
///
/// The name of a TOAST table has the OID of its main table in it, also after both
/// were rewritten (toasting.c, `finish_heap_swap` in cluster.c). Their dependency
/// would tell, too, but those of the catalogs have none.
pub fn main_table_of_toast(toast: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: any OID may be asked for.
    if unsafe { pg_sys::get_rel_relkind(toast) } as u8 != pg_sys::RELKIND_TOASTVALUE {
        return None;
    }
    let main = relation_name(toast)?.strip_prefix("pg_toast_")?.parse().ok().map(pg_sys::Oid::from_u32)?;
    // SAFETY: a look-up of a pg_class row by its OID; it is released before the end.
    let mains_toast = unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, main.into());
        if tuple.is_null() {
            return None;
        }
        let form: *const pg_sys::FormData_pg_class = pg_sys::GETSTRUCT(tuple).cast();
        let mains_toast = (*form).reltoastrelid;
        pg_sys::ReleaseSysCache(tuple);
        mains_toast
    };
    (mains_toast == toast).then_some(main)
}

fn does_not_exist(oid: pg_sys::Oid) -> UserError {
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        format!("relation with OID {} does not exist", oid.to_u32()),
    )
}

fn not_supported(message: &str) -> UserError {
    UserError::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message)
}

/// What PostgreSQL calls a relation of this kind when it denies a privilege.
fn object_type(oid: pg_sys::Oid) -> &'static str {
    // SAFETY: any OID may be asked for.
    match unsafe { pg_sys::get_rel_relkind(oid) } as u8 {
        pg_sys::RELKIND_INDEX | pg_sys::RELKIND_PARTITIONED_INDEX => "index",
        pg_sys::RELKIND_SEQUENCE => "sequence",
        pg_sys::RELKIND_VIEW => "view",
        pg_sys::RELKIND_MATVIEW => "materialized view",
        pg_sys::RELKIND_FOREIGN_TABLE => "foreign table",
        _ => "table",
    }
}

/// MAINTAIN on the relation, which VACUUM asks for too, or pg_stat_scan_tables,
/// as for other functions that look into pages. (The owner of the database, who
/// may vacuum what is in it, has neither by that alone.)
fn check_privilege(oid: pg_sys::Oid, name: &str) -> Result<(), UserError> {
    // SAFETY: look-ups in the catalogs by OID.
    let allowed = unsafe {
        let role = pg_sys::GetUserId();
        pg_sys::has_privs_of_role(role, pg_sys::Oid::from(pg_sys::ROLE_PG_STAT_SCAN_TABLES))
            || pg_sys::pg_class_aclcheck(oid, role, pg_sys::ACL_MAINTAIN.into())
                == pg_sys::AclResult::ACLCHECK_OK
    };
    if allowed {
        return Ok(());
    }
    Err(UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for {} {name}", object_type(oid)),
    )
    .detail(
        "Only roles with the MAINTAIN privilege on it, or with privileges of the \
         \"pg_stat_scan_tables\" role, may examine its pages.",
    ))
}

fn check_owner(oid: pg_sys::Oid, name: &str) -> Result<(), UserError> {
    // SAFETY: look-ups in the catalogs by OID.
    if unsafe { pg_sys::object_ownercheck(pg_sys::RelationRelationId, oid, pg_sys::GetUserId()) } {
        return Ok(());
    }
    Err(UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("must be owner of {} {name}", object_type(oid)),
    ))
}
