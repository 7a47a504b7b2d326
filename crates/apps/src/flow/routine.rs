//! Gosub, Macro and what leads out of them.

use core::time::Duration;

use call::Level;

use super::{by_the_loop, rows};
use crate::call_ctx::args;
use crate::pbx::{FrameKind, Place};
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};

/// How often a macro that another channel holds is asked for again.
const EXCLUSIVE_POLL: Duration = Duration::from_millis(20);
/// Variable that says which macro a channel holds alone; no dialplan can write that name.
const HELD: &str = "MacroExclusive()";

pub(crate) const ROWS: &[AppRow] = rows! {
    "Gosub" "app_stack" Run::Now(by_the_loop),
        "Calls a routine of the dialplan.", "Gosub([[context,]exten,]priority[(arg1[,...][,argN])])",
        "ARG1 to ARGn, ARGC and what LOCAL() sets last until the matching Return.\n\
         A place that does not exist ends the call.";
    "GosubIf" "app_stack" Run::Now(by_the_loop),
        "Calls one of two routines by a condition.",
        "GosubIf(condition?[labeliftrue[(args)]][:labeliffalse[(args)]])", "Gosub, by a condition.";
    "Return" "app_stack" Run::Now(|call, value| call.return_with(value)),
        "Ends a routine and goes back to who called it.", "Return([value])", "Goes on after the Gosub; GOSUB_RETVAL is the value.";
    "StackPop" "app_stack" Run::Now(stack_pop),
        "Forgets who called the routine.", "StackPop()", "The routine goes on, its Return leads to its caller's caller.";
    "Macro" "app_macro" Run::Now(enter_macro),
        "Runs a context as a macro.", "Macro(name[,arg1[,...]])",
        "Runs extension s of context macro-name with ARG1 to ARGn, MACRO_EXTEN, MACRO_CONTEXT, MACRO_PRIORITY, and\n\
         comes back when its steps end. MACRO_OFFSET adds to the priority to come back to, where there is one.";
    "MacroExit" "app_macro" Run::Now(macro_exit),
        "Leaves a macro.", "MacroExit()", "Comes back from the innermost macro.";
    "MacroIf" "app_macro" Run::Now(macro_if),
        "Runs one of two macros by a condition.", "MacroIf(expr?macroiftrue[,arg1[,...]][:macroiffalse[,arg1[,...]]])",
        "Macro, by a condition.";
    "MacroExclusive" "app_macro" Run::Story(macro_exclusive),
        "Runs a macro that one channel at a time may be in.", "MacroExclusive(name[,arg1[,...]])",
        "Macro, while no other channel is in it by MacroExclusive.";
};

fn stack_pop(call: &Call, _: &str) -> Outcome {
    if call.close_frame().is_none() {
        call.log(Level::Warning, "StackPop called with no gosub stack");
    }
    Ok(Flow::Continue)
}

fn enter_macro(call: &Call, text: &str) -> Outcome {
    let mut words = args::split(text).into_iter();
    let name = words.next().unwrap_or_default();
    let context = format!("macro-{}", name.trim());
    let here = call.here();
    let there = Place::find(call, &context, "s", 1);
    if there.step().is_none() && !call.may_have_rows(&there) {
        let text = format!("No such context '{context}' with extension s for macro '{}'", name.trim());
        call.log(Level::Warning, &text);
        return Ok(Flow::Continue);
    }
    // Inside a macro these name the extension that called the first.
    let inherited = |variable: &str| call.get(variable).filter(|value| !value.is_empty());
    let nested = here.context().starts_with("macro-");
    let of = |variable: &str, own: String| if nested { inherited(variable).unwrap_or(own) } else { own };
    let (exten, caller_context, priority) = (
        of("MACRO_EXTEN", here.exten().to_owned()),
        of("MACRO_CONTEXT", here.context().to_owned()),
        here.priority().to_string(),
    );
    let words: Vec<String> = words.collect();
    if !call.open_frame(Some(here), FrameKind::Macro(context.as_str().into()), &words) {
        return Ok(Flow::Hangup);
    }
    call.bind("MACRO_EXTEN", &exten);
    call.bind("MACRO_CONTEXT", &caller_context);
    call.bind("MACRO_PRIORITY", &priority);
    call.bind("MACRO_OFFSET", "");
    call.stand_at(there);
    Ok(Flow::Jumped)
}

fn macro_exit(call: &Call, _: &str) -> Outcome {
    if call.leave_macro() {
        return Ok(Flow::Jumped);
    }
    call.log(Level::Warning, "MacroExit outside of a macro");
    Ok(Flow::Continue)
}

fn macro_if(call: &Call, text: &str) -> Outcome {
    let Some((condition, yes, no)) = args::branches(text) else {
        call.log(Level::Warning, &format!("MacroIf({text}): there is no '?'"));
        return Ok(Flow::Continue);
    };
    match if args::is_true(condition) { yes } else { no } {
        "" => Ok(Flow::Continue),
        chosen => enter_macro(call, chosen),
    }
}

fn macro_exclusive(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let name = args::nth(&args::split(&text), 0).to_owned();
        let own = call.chan.id();
        let held_elsewhere = || {
            call.chan
                .core(|core| core.channels().any(|c| c.id != own && c.vars.get_name(HELD) == Some(&name)))
        };
        while held_elsewhere() {
            call.chan.wait(EXCLUSIVE_POLL).await?;
        }
        let outcome = enter_macro(&call, &text);
        if outcome == Ok(Flow::Jumped) {
            // Bound in the macro's frame, so it is let go with it.
            call.bind(HELD, &name);
        }
        outcome
    })
}
