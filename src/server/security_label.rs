//! A provider of security labels (seclabel.c): text that the catalogs keep for an
//! object. Labels are transactional, are dumped by pg_dump, and go with the object.
//!
//! SECURITY LABEL checks ownership, locks the object, and then asks the provider
//! whether it takes the label; [`set_relation_label`] does the same for relations
//! that the command cannot name, such as TOAST tables.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use pgrx::{pg_guard, pg_sys};

use super::error::{OrRaise, UserError};
use super::relation::owned;

/// Whether an object takes a label; None removes the one it has.
pub type Check = fn(&Object, Option<&str>) -> Result<(), UserError>;

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
}

/// An object of the catalogs that is to get a label, locked.
pub struct Object(pg_sys::ObjectAddress);

impl Object {
    /// The OID of a relation; None for anything else, columns included.
    pub fn relation(&self) -> Option<pg_sys::Oid> {
        let is_relation = self.0.classId == pg_sys::RelationRelationId && self.0.objectSubId == 0;
        is_relation.then_some(self.0.objectId)
    }

    /// Its kind and name, as the server's messages have them.
    pub fn description(&self) -> String {
        // SAFETY: the address of an object that exists.
        unsafe { owned(pg_sys::getObjectDescription(&self.0, false)) }.unwrap_or_default()
    }
}

/// Registers `provider`, for this process. To be called once.
pub fn register_provider(provider: &'static CStr, check: Check) {
    CHECK.set(Some(check));
    // SAFETY: the server copies the name.
    unsafe { pg_sys::register_label_provider(provider.as_ptr(), Some(check_label)) }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_label(object: *const pg_sys::ObjectAddress, label: *const c_char) {
    // SAFETY: the server passes the object, and null or the label.
    let (object, label) = unsafe { (Object(*object), owned(label)) };
    if let Some(check) = CHECK.get() {
        check(&object, label.as_deref()).or_raise();
    }
}

fn address(relation: pg_sys::Oid) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: relation, objectSubId: 0 }
}

/// The label of a relation.
pub fn relation_label(provider: &CStr, relation: pg_sys::Oid) -> Option<String> {
    // SAFETY: a look-up in the catalogs; the result is null or a string.
    unsafe { owned(pg_sys::GetSecurityLabel(&address(relation), provider.as_ptr())) }
}

/// Labels a relation that the caller has locked and checked, or removes its label.
pub fn set_relation_label(provider: &CStr, relation: pg_sys::Oid, label: Option<&str>) {
    let label = label.map(|label| CString::new(label).unwrap_or_default());
    // SAFETY: a change of the catalogs; the server copies the label. The increment
    // lets a later call of the same query find it.
    unsafe {
        let label = label.as_ref().map_or(ptr::null(), |label| label.as_ptr());
        pg_sys::SetSecurityLabel(&address(relation), provider.as_ptr(), label);
        pg_sys::CommandCounterIncrement();
    }
}
