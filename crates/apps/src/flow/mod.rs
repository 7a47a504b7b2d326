//! Applications that steer a call: where it goes, what it remembers, how long it waits.

pub(crate) mod assign;
pub(crate) mod branch;
pub(crate) mod exec;
pub(crate) mod line;
pub(crate) mod loops;
pub(crate) mod note;
pub(crate) mod record;
pub(crate) mod routine;
pub(crate) mod signal;
pub(crate) mod store;
pub(crate) mod wait;

use call::Level;

use crate::{Call, Flow, Outcome};

/// Rows of applications, one after the other: name, module, how it runs; synopsis; syntax; description.
macro_rules! rows {
    ($($name:literal $module:literal $run:expr, $synopsis:literal, $syntax:literal, $description:literal;)*) => {
        &[$($crate::AppRow {
            name: $name,
            module: $module,
            run: $run,
            synopsis: $synopsis,
            syntax: $syntax,
            description: $description,
        }),*]
    };
}
pub(crate) use rows;

/// Stands in the rows of applications that the run loop carries out itself, from their compiled arguments.
pub(crate) fn by_the_loop(call: &Call, _: &str) -> Outcome {
    call.log(Level::Error, "runs only as a step of a dialplan");
    Ok(Flow::Continue)
}
