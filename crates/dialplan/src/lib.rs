//! The dialplan: extensions.conf compiled to a program, and everything a step of it needs.
//!
//! - [`load`](load::load) turns a configuration file into a [`Program`] and findings.
//! - [`Program::route`] says which extensions take a number; [`Program::at_priority`] and its kin pick the step.
//! - [`Step::prepare`] substitutes a step's arguments and says what they ask for ([`Ready`]).
//! - [`Env`] is what the executing channel offers; [`Functions`] is the function table.
//!
//! This crate knows no channel, no application and no clock: the run loop and the applications live in `apps`.
#![forbid(unsafe_code)]

pub mod args;
pub mod env;
pub mod ere;
mod expr;
pub mod find;
pub mod functions;
pub mod load;
#[cfg(test)]
mod match_tests;
mod mathfn;
mod num;
pub mod pattern;
pub mod program;
pub mod registered;
pub mod registry;
pub mod rights;
pub mod rowed;
mod save;
mod show;
pub mod step;
pub mod strftime;
pub mod template;
#[cfg(test)]
mod testenv;
pub mod timing;
pub mod vars;
pub mod words;
pub mod zone;

pub use args::{Destination, Label, Options, Priority, condition, split_args};
pub use env::{Calendar, Env, Fault, FileFacts, Level, Standing, Wall};
pub use find::{Query, Route};
pub use load::change::{
    Addition, ChangeError, ContextLine, add, add_line, extend, remove, remove_context, remove_line,
};
pub use load::{Tables, load, load_with};
pub use program::{Context, ContextId, Extension, ExtensionRef, Hint, LabelId, Program, StepRef, Switch};
pub use registered::{Holder, Near, Registered};
pub use registry::{AppId, Apps, Body, ChannelFunction, FunctionId, FunctionRow, Functions, Statement};
pub use rights::{Reach, Rights, Touch};
pub use rowed::{RowStep, RowSwitch};
pub use step::{Asks, Kind, Nested, Ready, Scratch, Step, SubCall, Target, Written};
pub use template::{Template, expand_text, set_by_name};
pub use timing::Timing;
pub use vars::{Builtin, Inherit, Symbols, Var, VarId, VarName, Vars};
pub use words::Words;
pub use zone::{Civil, Offset};
