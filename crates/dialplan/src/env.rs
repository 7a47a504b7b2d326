//! What an executing channel offers to templates and functions. The dialplan knows nothing else of it.

use std::sync::Arc;

use crate::program::Program;
use crate::registered::Near;
use crate::registry::{ChannelFunction, Statement};
use crate::rights::Rights;
use crate::vars::{Builtin, Inherit, Var};
use crate::zone::Offset;

/// How loud a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For people who debug.
    Debug,
    /// Worth knowing.
    Notice,
    /// Something in the dialplan is wrong but the step goes on.
    Warning,
    /// The step failed.
    Error,
}

/// Why a function could not answer; logged with the function's name before it, the result is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub std::borrow::Cow<'static, str>);

impl Fault {
    /// A fault that says `text`.
    pub fn new(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self(text.into())
    }
}

/// Wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Wall {
    /// Seconds since 1970, UTC.
    pub seconds: i64,
    /// Microseconds of the second.
    pub micros: u32,
}

/// What FILE STAT can tell (STAT()).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// It is a directory.
    pub directory: bool,
    /// It is a regular file.
    pub file: bool,
    /// Bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Seconds since 1970 of the last change of content.
    pub modified: i64,
    /// Seconds since 1970 of the last access.
    pub accessed: i64,
    /// Seconds since 1970 of the last change of the inode.
    pub changed: i64,
}

/// Wall time, zones and who is registered: all that looking up an extension needs of the world.
pub trait Calendar {
    /// Wall time.
    fn wall(&self) -> Wall;
    /// The offset in force at `at` seconds since 1970; `zone` empty means the system's own.
    fn offset(&self, at: i64, zone: &str) -> Offset;
    /// Where a number stands among the registered extensions of a context; see [`crate::registered`].
    fn registered(&self, context: &str, exten: &str) -> Near {
        let _ = (context, exten);
        Near::default()
    }
}

/// A place whose text is being evaluated, for `${CONTEXT}`, `${EXTEN}` and `${PRIORITY}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Context.
    pub context: Box<str>,
    /// Extension, as it was asked for.
    pub exten: Box<str>,
    /// Priority; `None`: the text belongs to the extension as a whole, as a hint does.
    pub priority: Option<u32>,
}

impl Standing {
    /// Appends what the built-in is here; false when it does not tell of a place.
    pub fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        match (which, self.priority) {
            (Builtin::Context, _) => out.push_str(&self.context),
            (Builtin::Exten, _) => out.push_str(&self.exten),
            (Builtin::Priority, Some(priority)) => out.push_str(&priority.to_string()),
            _ => return false,
        }
        true
    }
}

/// An executing channel as the dialplan sees it.
///
/// Readers append to `out` and say whether the thing exists, so that an implementation may keep its state
/// behind a cell. Nothing here blocks: what would need a round trip answers `None` and logs why.
pub trait Env: Calendar {
    /// The program in force, for names that are built at run time.
    fn program(&self) -> Arc<Program>;
    /// What this evaluation may touch: all, where the text is the site's own.
    fn rights(&self) -> Rights {
        Rights::ALL
    }
    /// Notes work of so many bytes; false when this evaluation has done all that it may
    /// ([`crate::template::EVALUATION_BYTES_MAX`]).
    fn spend(&mut self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }
    /// How deep substitutions stand inside each other; starts at 0 and belongs to the expander.
    fn depth(&mut self) -> &mut u32;

    /// Appends a built-in's value; false when this channel has none, and a variable of that name is looked for.
    fn builtin(&self, which: Builtin, out: &mut String) -> bool;
    /// Makes [`Self::builtin`] tell of another place, `None`: of that where the channel stands. Gives what it told of
    /// before.
    fn stand_at(&mut self, place: Option<Standing>) -> Option<Standing> {
        let _ = place;
        None
    }
    /// Appends a channel variable's value; false when it is not set.
    fn variable(&self, var: Var<'_>, out: &mut String) -> bool;
    /// Sets a channel variable, `inherit` already taken from the name's prefix. Publishes VarSet.
    fn set_variable(&mut self, var: Var<'_>, value: &str, inherit: Inherit);
    /// Binds a variable in the current Gosub frame (LOCAL()).
    fn set_local(&mut self, var: Var<'_>, value: &str);
    /// Unbinds a channel variable.
    fn remove_variable(&mut self, var: Var<'_>);
    /// Calls `each` with every channel variable's name.
    fn variable_names(&self, each: &mut dyn FnMut(&str));
    /// Appends a global's value; false when it is not set.
    fn global(&self, var: Var<'_>, out: &mut String) -> bool;
    /// Sets a global. Publishes VarSet without a channel.
    fn set_global(&mut self, var: Var<'_>, value: &str);
    /// Unbinds a global.
    fn remove_global(&mut self, var: Var<'_>);

    /// A random number, uniform over all of `u64`; from the shard's seed.
    fn random(&mut self) -> u64;
    /// Writes a log line.
    fn log(&mut self, level: Level, text: &str);

    /// Appends what the database holds at family/key.
    fn db_get(&self, family: &str, key: &str, out: &mut String) -> bool;
    /// Stores at family/key.
    fn db_put(&mut self, family: &str, key: &str, value: &str) -> bool;
    /// Removes family/key; false when it was not there.
    fn db_delete(&mut self, family: &str, key: &str) -> bool;
    /// Calls `each` with the full path (`/family/key`) of everything at or below `/prefix`.
    fn db_keys(&self, prefix: &str, each: &mut dyn FnMut(&str));

    /// Reads a function that only the channel can answer (CALLERID(), CHANNEL(), CDR() and so on).
    fn channel_read(&mut self, function: ChannelFunction, args: &str, out: &mut String) -> Result<(), Fault>;
    /// Writes such a function.
    fn channel_write(&mut self, function: ChannelFunction, args: &str, value: &str) -> Result<(), Fault>;
    /// Reads a function that the site has made of statements.
    fn statement_read(
        &mut self,
        name: &str,
        function: &Arc<Statement>,
        args: &str,
        out: &mut String,
    ) -> Result<(), Fault> {
        let _ = (name, function, args, out);
        Err(Fault::new("asks a database only where a step of the dialplan spells it out"))
    }
    /// Writes such a function.
    fn statement_write(&mut self, function: &Arc<Statement>, args: &str, value: &str) -> Result<(), Fault> {
        let _ = (function, args, value);
        Err(Fault::new("asks a database only where a step of the dialplan spells it out"))
    }
    /// Appends a SHARED() variable of the named channel (empty: this one).
    fn shared(&self, channel: &str, name: &str, out: &mut String) -> bool {
        let _ = (channel, name, out);
        false
    }
    /// Sets a SHARED() variable; false when there is no such channel.
    fn set_shared(&mut self, channel: &str, name: &str, value: &str) -> bool {
        let _ = (channel, name, value);
        false
    }
    /// The caller's number, for extensions that match on it.
    fn caller_number(&self, out: &mut String) -> bool {
        let _ = out;
        false
    }
    /// What is known about a file; `None` when there is none or this channel may not look.
    fn file_facts(&self, path: &str) -> Option<FileFacts> {
        let _ = path;
        None
    }
    /// Up to [`crate::template::EXPAND_BYTES_MAX`] bytes of a file; `None` when it cannot be read.
    fn file_text(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
    /// An environment variable this channel may see.
    fn environment(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
    /// Answers `ENUMLOOKUP()` from what was fetched before the step was expanded.
    fn enum_lookup(&mut self, args: &str, out: &mut String) -> Result<(), Fault> {
        let _ = (args, out);
        Err(Fault::new("no DNS resolver answers this channel"))
    }
}
