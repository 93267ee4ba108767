//! An option of our own for VACUUM, through ProcessUtility_hook (utility.c).
//!
//! The grammar takes any name for an option; `ExecVacuum` (vacuum.c) then refuses
//! those it does not know. The hook takes ours out of a copy of the statement (the
//! caller's may be kept for another execution) and remembers its value while the
//! command runs. Everything else about VACUUM is left to whom the hook passes the
//! command on to, so that its checks are as strict as ever, in the same order.
//!
//! A VACUUM commits many transactions, so the value belongs to none of them: it
//! ends when the command returns. A command that fails does not return; the abort
//! of the transaction or subtransaction that it was given in ends the value then.
//!
//! As in [`super::table_am`], the hook has no guard, since the errors of all
//! commands pass through it and must keep all their fields, the position in the
//! query among them. Its frame holds nothing that an error could not jump over.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use pgrx::{pg_guard, pg_sys};

use super::boundary::callback;
use super::error::UserError;

type Hook = unsafe extern "C-unwind" fn(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
);

#[allow(clashing_extern_declarations)]
unsafe extern "C-unwind" {
    // Without pgrx's wrapper: errors pass through, see above.
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );

    // Without pgrx's wrapper, which would undo what this is for. It raises no errors.
    fn setup_parser_errposition_callback(
        state: *mut pg_sys::ParseCallbackState,
        pstate: *mut pg_sys::ParseState,
        location: c_int,
    );
}

/// An option of VACUUM that the server does not know.
#[derive(Clone, Copy)]
pub struct NewOption {
    /// Its name as the grammar gives it: in lower case unless quoted.
    pub name: &'static CStr,
    /// Finds the value in a command; None where it does not have the option.
    pub value: fn(&VacuumCommand) -> Option<i32>,
}

#[derive(Clone, Copy)]
struct Value {
    value: i32,
    /// How many transactions, each within the one before, the command was given in.
    nest_level: c_int,
}

thread_local! {
    static NEW_OPTION: Cell<Option<NewOption>> = const { Cell::new(None) };
    /// Its value in the VACUUM that is running.
    static VALUE: Cell<Option<Value>> = const { Cell::new(None) };
    /// The hook that was there before.
    static NEXT: Cell<Hook> = const { Cell::new(standard_ProcessUtility) };
}

/// Makes VACUUM take `option`. To be called once.
pub fn add_vacuum_option(option: NewOption) {
    NEW_OPTION.set(Some(option));
    // SAFETY: the server's own variable, which a library changes when it is loaded.
    unsafe {
        if let Some(next) = pg_sys::ProcessUtility_hook {
            NEXT.set(next);
        }
        pg_sys::ProcessUtility_hook = Some(process_utility);
        pg_sys::RegisterXactCallback(Some(end_of_transaction), ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(end_of_subtransaction), ptr::null_mut());
    }
}

/// The option's value in the VACUUM command that this session is running.
pub fn current_value() -> Option<i32> {
    VALUE.get().map(|it| it.value)
}

unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    let outer = VALUE.get();
    // SAFETY: the arguments are the server's own; this frame holds nothing that
    // needs dropping.
    unsafe {
        let statement = callback(|| take_option(statement, query));
        let next = NEXT.get();
        next(statement, query, read_only_tree, context, params, environment, receiver, completion);
    }
    VALUE.set(outer);
}

#[pg_guard]
unsafe extern "C-unwind" fn end_of_transaction(event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        VALUE.set(None);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end_of_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut c_void,
) {
    // SAFETY: reads a number of this process.
    let nest_level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    // Deeper ones are of functions that the VACUUM calls, and no end of it.
    let had_the_command = VALUE.get().is_some_and(|it| it.nest_level >= nest_level);
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB && had_the_command {
        VALUE.set(None);
    }
}

/// Remembers the option of a VACUUM; the statement without it. Every VACUUM gets
/// here, and one without the option has no value.
///
/// # Safety
///
/// To be called with what the server passed to the hook.
unsafe fn take_option(statement: *mut pg_sys::PlannedStmt, query: *const c_char) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the server passes a statement and the text that it is from.
    unsafe {
        let Some(command) = VacuumCommand::of(statement, query) else { return statement };
        let Some(option) = NEW_OPTION.get() else { return statement };
        let value = (option.value)(&command);
        let nest_level = pg_sys::GetCurrentTransactionNestLevel();
        VALUE.set(value.map(|value| Value { value, nest_level }));
        if value.is_some() { without(statement, option.name) } else { statement }
    }
}

/// A copy of the VACUUM without the options of this name.
///
/// # Safety
///
/// `statement` must be a VACUUM.
unsafe fn without(statement: *mut pg_sys::PlannedStmt, name: &CStr) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the copy is of the same kind, and in the memory of the command's
    // portal, as the copy that the server itself makes of a tree that must not
    // be changed.
    unsafe {
        let copy: *mut pg_sys::PlannedStmt = pg_sys::copyObjectImpl(statement.cast()).cast();
        let vacuum: *mut pg_sys::VacuumStmt = (*copy).utilityStmt.cast();
        let mut kept = ptr::null_mut();
        for element in elements((*vacuum).options) {
            if CStr::from_ptr((*element).defname) != name {
                kept = pg_sys::lappend(kept, element.cast());
            }
        }
        (*vacuum).options = kept;
        copy
    }
}

/// # Safety
///
/// `list` must be a list of options that outlives the iterator.
unsafe fn elements(list: *const pg_sys::List) -> impl Iterator<Item = *mut pg_sys::DefElem> {
    // SAFETY: as the caller promises.
    unsafe { (0..pg_sys::list_length(list)).map(move |n| pg_sys::list_nth(list, n).cast()) }
}

/// A VACUUM command (ANALYZE is none), before it runs.
pub struct VacuumCommand {
    vacuum: *const pg_sys::VacuumStmt,
    query: *const c_char,
}

/// An option of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandOption {
    /// The value.
    pub value: OptionValue,
    /// Where it is in the query.
    location: c_int,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// There is only the name.
    Missing,
    /// An integer.
    Integer(i32),
    /// A word, a string, or a number that is no integer of 32 bits.
    Other,
}

impl VacuumCommand {
    /// # Safety
    ///
    /// `statement` must be a statement that outlives the result, and `query` the
    /// text that it is from.
    unsafe fn of(statement: *const pg_sys::PlannedStmt, query: *const c_char) -> Option<VacuumCommand> {
        // SAFETY: as the caller promises; nodes tell their kind.
        unsafe {
            let node = (*statement).utilityStmt;
            if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_VacuumStmt {
                return None;
            }
            let vacuum: *const pg_sys::VacuumStmt = node.cast();
            (*vacuum).is_vacuumcmd.then_some(VacuumCommand { vacuum, query })
        }
    }

    fn named(&self, name: &CStr) -> Vec<*mut pg_sys::DefElem> {
        // SAFETY: the statement's own options, whose names end with a zero byte.
        unsafe {
            elements((*self.vacuum).options)
                .filter(|&element| CStr::from_ptr((*element).defname) == name)
                .collect()
        }
    }

    /// The options of that name, in their order.
    pub fn options(&self, name: &CStr) -> Vec<CommandOption> {
        let option = |element: *mut pg_sys::DefElem| {
            // SAFETY: an option of the statement; nodes tell their kind.
            unsafe {
                let argument = (*element).arg;
                let value = if argument.is_null() {
                    OptionValue::Missing
                } else if (*argument).type_ == pg_sys::NodeTag::T_Integer {
                    OptionValue::Integer((*argument.cast::<pg_sys::Integer>()).ival)
                } else {
                    OptionValue::Other
                };
                CommandOption { value, location: (*element).location }
            }
        };
        self.named(name).into_iter().map(option).collect()
    }

    /// Whether a Boolean option of the server's is on: the last one of that name
    /// counts. One that is not Boolean is an error, the server's own.
    pub fn is_on(&self, name: &CStr) -> bool {
        // SAFETY: an option of the statement.
        let values = self.named(name).into_iter().map(|element| unsafe { pg_sys::defGetBoolean(element) });
        values.last().unwrap_or(false)
    }

    /// Raises `error`, with a cursor at `option`.
    pub fn raise_at(&self, option: CommandOption, error: UserError) -> ! {
        // SAFETY: what the server will look at when it builds the error, after this
        // frame is gone, is allocated by the server; so is the query.
        unsafe {
            let pstate = pg_sys::make_parsestate(ptr::null_mut());
            (*pstate).p_sourcetext = self.query;
            let state = pg_sys::palloc0(size_of::<pg_sys::ParseCallbackState>());
            setup_parser_errposition_callback(state.cast(), pstate, option.location);
        }
        error.raise()
    }
}
