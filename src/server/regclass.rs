//! The SQL type `regclass` as an argument.

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

/// A relation named by the caller.
///
/// pgrx's own type for `regclass` opens and locks the relation before the
/// function runs. This one only carries the OID, so that privileges are
/// checked before any lock is taken.
#[derive(Clone, Copy, Debug)]
pub struct Regclass(pub pg_sys::Oid);

// SAFETY: a regclass datum is an OID, which is passed by value.
unsafe impl<'fcx> ArgAbi<'fcx> for Regclass {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller vouches that the argument is of this type.
        Regclass(unsafe { pg_sys::Oid::unbox_arg_unchecked(arg) })
    }
}

// SAFETY: `regclass` is how the OID of a relation is written in SQL.
unsafe impl SqlTranslatable for Regclass {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Regclass);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("regclass"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("regclass")));
}
