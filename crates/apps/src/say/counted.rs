//! Nouns and adjectives that go with a number.

use call::Level;

use super::number::{Count, slavic};
use super::tongue::{Gender, Tongue};
use super::{interruptible, sayable, speak, tongue_of};
use crate::call_ctx::args;
use crate::{AppFuture, Call, Flow};

/// What stands behind the file of a noun.
pub(super) fn noun_suffix(tongue: Tongue, count: u64) -> &'static str {
    match (tongue, slavic(count)) {
        // In Polish twenty-one is many.
        (Tongue::Polish, Count::One) if count != 1 => "x2",
        (Tongue::Russian | Tongue::Polish, Count::One) => "",
        (Tongue::Russian | Tongue::Polish, Count::Few) => "x1",
        (Tongue::Russian | Tongue::Polish, Count::Many) => "x2",
        // These have no plural to be heard.
        (Tongue::Japanese | Tongue::Mandarin, _) => "",
        _ if count == 1 => "",
        _ => "s",
    }
}

/// What stands behind the file of an adjective.
pub(super) fn adjective_suffix(tongue: Tongue, count: u64, gender: Gender) -> &'static str {
    let one = match (tongue, slavic(count)) {
        (Tongue::Polish, _) => count == 1,
        (Tongue::Russian, count) => count == Count::One,
        _ => return "",
    };
    match gender {
        _ if !one => "x",
        Gender::Feminine => "a",
        Gender::Neuter => "o",
        Gender::Plain | Gender::Masculine | Gender::Common => "",
    }
}

pub(super) fn say_noun(call: Call, text: String) -> AppFuture {
    counted(call, text, "SayCountedNoun", |tongue, count, _| noun_suffix(tongue, count))
}

pub(super) fn say_adjective(call: Call, text: String) -> AppFuture {
    counted(call, text, "SayCountedAdj", adjective_suffix)
}

fn counted(
    call: Call,
    text: String,
    app: &'static str,
    suffix: fn(Tongue, u64, Gender) -> &'static str,
) -> AppFuture {
    Box::pin(async move {
        let parts = args::split(&text);
        let (count, file) = (sayable(args::nth(&parts, 0)), args::nth(&parts, 1));
        let Some(count) = count.filter(|_| !file.is_empty()) else {
            call.log(Level::Warning, &format!("{app} requires a number and the name of a file"));
            return Ok(Flow::Continue);
        };
        let suffix = suffix(tongue_of(&call.chan), count.unsigned_abs(), Gender::of(args::nth(&parts, 2)));
        speak(&call, vec![format!("{file}{suffix}")], interruptible(&call)).await
    })
}
