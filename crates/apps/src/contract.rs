//! What an application is to the run loop.

use std::future::Future;
use std::pin::Pin;

use base::Digit;
use call::Stop;
use dialplan::Written;

use crate::Call;

/// What the run loop does after an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the next priority.
    Continue,
    /// Ends the call; the application's `-1`.
    Hangup,
    /// The application set the channel's location itself; the loop does not add one.
    Jumped,
    /// A digit was pressed: collect more and go to the extension that was dialled.
    Digit(Digit),
    /// The number is incomplete (`Incomplete`): wait for more digits if a longer match is possible.
    Incomplete,
}

/// `Err` carries the end of the call, a transfer or the absolute timeout out through `?`.
pub type Outcome = Result<Flow, Stop>;

/// A running application.
pub type AppFuture = Pin<Box<dyn Future<Output = Outcome>>>;

/// How an application runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// It never waits; costs no allocation.
    Now(fn(&Call, &str) -> Outcome),
    /// It may wait.
    Story(fn(Call, String) -> AppFuture),
    /// It may wait, and may run a program: it has to know what was written in the dialplan and what came in from elsewhere.
    Command(fn(Call, Written) -> AppFuture),
}

/// One application.
pub struct AppRow {
    /// Name as `core show applications` prints it.
    pub name: &'static str,
    /// Module of Asterisk that holds it (`app_dial`); `noload` of it takes the application away.
    pub module: &'static str,
    /// One line.
    pub synopsis: &'static str,
    /// `Dial(Technology/Resource[&…][,timeout[,options[,URL]]])`.
    pub syntax: &'static str,
    /// Arguments, options, result variables and errors, for `core show application NAME`.
    pub description: &'static str,
    /// Its code.
    pub run: Run,
}
