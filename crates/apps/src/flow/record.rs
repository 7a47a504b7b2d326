//! Applications about the call's record.

use call::{CdrFork, CelKind, Level};

use super::rows;
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "CELGenUserEvent" "app_celgenuserevent" Run::Now(user_event),
        "Writes an event of the dialplan's own into channel event logging.", "CELGenUserEvent(event-name[,extra])",
        "The event has the type USER_DEFINED and this name, and in its extra what is given here. Nothing is written when cel.conf \
         does not want USER_DEFINED.";
    "ResetCDR" "app_cdr" Run::Now(reset),
        "Begins the call record anew.", "ResetCDR([options])",
        "The record begins at this moment, answered at this moment if the call is answered, and loses the variables of CDR() and the user field. Records that ForkCDR left running begin anew too.\n\noptions:\n  v  keeps the variables and the user field.\n  e  switches records that CDR_PROP(disable) switched off on again.";
    "ForkCDR" "app_forkcdr" Run::Now(fork),
        "Begins another call record.", "ForkCDR([options])",
        "Another record begins, which starts and is answered when the present one did and has its variables. The present one runs on beside it: both are written when the call ends, and CDR() changes both and reads the new one.\n\noptions:\n  a  the new record is answered at this moment, if the call is answered.\n  e  ends the present record.\n  r  the new record begins at this moment; it is answered at this moment, if the call is answered.\n  v  the new record has the variables of the present one.";
};

fn user_event(call: &Call, text: &str) -> Outcome {
    let (name, extra) = text.split_once(',').unwrap_or((text, ""));
    if name.trim().is_empty() {
        call.log(Level::Warning, "CELGenUserEvent requires an argument: event-name[,extra]");
        return Ok(Flow::Continue);
    }
    call.settle();
    call.chan.core(|core| {
        core.log_event_with(CelKind::UserDefined, call.chan.id(), |_, event| {
            name.trim().clone_into(&mut event.user_defined);
            if !extra.is_empty() {
                event.extra = vec![("extra", extra.into())];
            }
        });
    });
    Ok(Flow::Continue)
}

fn reset(call: &Call, options: &str) -> Outcome {
    call.chan.core(|core| core.reset_cdr(call.chan.id(), options.contains('v')));
    if options.contains('e') {
        call.chan.with(|c| c.cdr.disabled = false)?;
    }
    Ok(Flow::Continue)
}

fn fork(call: &Call, options: &str) -> Outcome {
    let options = args::nth(&args::split(options), 0).to_owned();
    call.settle();
    let has = |option| options.contains(option);
    let fork = CdrFork { end: has('e'), answer: has('a'), restart: has('r'), keep: has('v') };
    call.chan.core(|core| core.fork_cdr(call.chan.id(), fork));
    if call.chan.with(|c| c.cdr.disabled)? {
        call.log(Level::Debug(1), "the record is switched off; what was forked is so too");
    }
    Ok(Flow::Continue)
}
