//! Applications about the call's record.

use call::Level;

use super::rows;
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "NoCDR" "app_cdr" Run::Now(no_cdr),
        "Keeps this call out of the call records.", "NoCDR()",
        "The older form of Set(CDR_PROP(disable)=1).";
    "ResetCDR" "app_cdr" Run::Now(reset),
        "Begins the call record anew.", "ResetCDR([options])",
        "Begins the record anew, as of this moment.\n\noptions:\n  v  keeps the variables of CDR().\n  e  switches a record that NoCDR switched off on again.";
    "ForkCDR" "app_forkcdr" Run::Now(fork),
        "Ends the call record and begins another.", "ForkCDR([options])",
        "Writes the present record and begins another.\n\noptions:\n  a  the new record is answered at the same moment.\n  v  keeps the variables of CDR().\n  r  begins the new record at this moment (it always does).\n  e, D, l, s, T are taken and change nothing.";
};

fn no_cdr(call: &Call, _: &str) -> Outcome {
    call.chan.with(|c| c.cdr.disabled = true)?;
    Ok(Flow::Continue)
}

fn reset(call: &Call, options: &str) -> Outcome {
    let (keep, enable) = (options.contains('v'), options.contains('e'));
    let wall = call.chan.core(|core| core.services.wall.now_micros());
    let now = call.chan.now();
    call.chan.with(|c| {
        c.cdr.start = Some((now, wall));
        if c.cdr.answer.is_some() {
            c.cdr.answer = Some((now, wall));
        }
        if !keep {
            c.cdr.custom.clear();
            c.cdr.user_field.clear();
        }
        if enable {
            c.cdr.disabled = false;
        }
    })?;
    Ok(Flow::Continue)
}

fn fork(call: &Call, options: &str) -> Outcome {
    let options = args::nth(&args::split(options), 0).to_owned();
    call.settle();
    let kept = call.chan.with(|c| (c.cdr.custom.clone(), c.cdr.user_field.clone()))?;
    call.chan.core(|core| core.finish_cdr(call.chan.id()));
    if options.contains('v') {
        call.chan.with(|c| (c.cdr.custom, c.cdr.user_field) = kept)?;
    }
    if call.chan.with(|c| c.cdr.disabled)? {
        call.log(Level::Debug(1), "the record is switched off; there is nothing to fork");
    }
    Ok(Flow::Continue)
}
