//! Applications that send the call elsewhere in the dialplan.

use call::{ChanState, Level};

use super::{by_the_loop, rows};
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "Goto" "pbx_builtins" Run::Now(by_the_loop),
        "Goes on elsewhere in the dialplan.", "Goto([[context,]extension,]priority)",
        "The priority is a number, a label, or +n or -n. A place without a step is handled as an invalid extension;\n\
         a label that does not exist ends the call.";
    "GotoIf" "pbx_builtins" Run::Now(by_the_loop),
        "Goes to one of two places by a condition.", "GotoIf(condition?[labeliftrue][:labeliffalse])",
        "Goes to one of two places; where one is left out, the call goes on with the next priority.";
    "GotoIfTime" "pbx_builtins" Run::Now(by_the_loop),
        "Goes to one of two places by the time.",
        "GotoIfTime(times,weekdays,mdays,months[,timezone]?[labeliftrue][:labeliffalse])",
        "Each field is '*', a range or a list joined by '&'.";
    "Random" "app_random" Run::Now(random),
        "Goes elsewhere with a certain probability.", "Random([probability]:[[context,]extension,]priority)",
        "Goes to the place with a probability of 1 to 100 percent.";
    "RaiseException" "pbx_builtins" Run::Now(raise),
        "Goes to extension e with a reason.", "RaiseException(reason)",
        "Goes to extension 'e' of the present context; EXCEPTION(reason) tells the reason there.";
    "Incomplete" "pbx_builtins" Run::Now(incomplete),
        "Says that the number is incomplete and waits for more digits.", "Incomplete([n])",
        "The number is not complete: more digits are collected if a longer extension may match, else the number is\n\
         invalid. Answers first, unless 'n' is given.";
};

fn random(call: &Call, text: &str) -> Outcome {
    let Some((probability, target)) = text.split_once(':') else {
        call.log(Level::Error, &format!("Random({text}): there is no ':'"));
        return Ok(Flow::Hangup);
    };
    let percent: u64 = probability.trim().parse().unwrap_or(0);
    if call.chan.core(call::Core::random) % 100 >= percent {
        return Ok(Flow::Continue);
    }
    go(call, target)
}

/// Goes to a target that is not known before the step runs.
pub(super) fn go(call: &Call, target: &str) -> Outcome {
    match call.place_of(target) {
        Ok(place) => {
            call.stand_at(place);
            Ok(Flow::Jumped)
        }
        Err(why) => {
            call.log(Level::Error, &why.to_string());
            Ok(Flow::Hangup)
        }
    }
}

fn raise(call: &Call, reason: &str) -> Outcome {
    call.raise(reason);
    Ok(Flow::Jumped)
}

fn incomplete(call: &Call, options: &str) -> Outcome {
    if !options.contains('n') && call.chan.state() != ChanState::Up {
        call.chan.answer()?;
    }
    Ok(Flow::Incomplete)
}
