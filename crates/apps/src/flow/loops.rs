//! While and If: blocks of one extension whose ends are found by scanning its steps.

use call::Level;

use super::rows;
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "While" "app_while" Run::Now(while_),
        "Begins a loop that runs while its condition holds.", "While(expr)",
        "Steps up to the matching EndWhile are repeated while the expression holds.";
    "EndWhile" "app_while" Run::Now(end_while),
        "Ends a loop: goes back to its While.", "EndWhile()", "Goes back to the matching While.";
    "ExitWhile" "app_while" Run::Now(exit_while),
        "Leaves a loop.", "ExitWhile()", "Goes on after the matching EndWhile.";
    "ContinueWhile" "app_while" Run::Now(end_while),
        "Goes back to the head of the loop.", "ContinueWhile()", "Goes back to the matching While at once.";
    "If" "app_if" Run::Now(if_),
        "Runs what follows, to EndIf, if its condition holds.", "If(expr)",
        "Goes on when the expression holds; else at the matching ElseIf, Else or EndIf.";
    "ElseIf" "app_if" Run::Now(else_if),
        "Begins what runs when this condition is the first that holds.", "ElseIf(expr)", "Is looked at when no branch before it was taken.";
    "Else" "app_if" Run::Now(else_),
        "Begins what runs when no condition of the If held.", "Else()", "Is taken when no branch before it was.";
    "EndIf" "app_if" Run::Now(end_if),
        "Ends an If.", "EndIf()", "Ends the block.";
    "ExitIf" "app_if" Run::Now(exit_if),
        "Leaves an If.", "ExitIf()", "Goes on after the matching EndIf.";
};

/// Scans from the step that runs. `opens` and `closes` nest; the first step at depth 0 that `wanted` names is the answer.
fn scan(call: &Call, forward: bool, opens: &str, closes: &str, wanted: &[&str]) -> Option<(u32, String)> {
    let place = call.here();
    let current = place.priority();
    let mut depth = 0_u32;
    let mut look = |(priority, name): (u32, &str)| {
        if depth == 0 && wanted.iter().any(|word| word.eq_ignore_ascii_case(name)) {
            return Some((priority, name.to_ascii_lowercase()));
        }
        if name.eq_ignore_ascii_case(opens) {
            depth += 1;
        } else if name.eq_ignore_ascii_case(closes) {
            depth = depth.saturating_sub(1);
        }
        None
    };
    if forward {
        place.applications().filter(|(priority, _)| *priority > current).find_map(&mut look)
    } else {
        place.applications().rev().filter(|(priority, _)| *priority < current).find_map(&mut look)
    }
}

fn jump(call: &Call, priority: u32) -> Outcome {
    let mut place = call.here();
    place.set_priority(priority);
    call.stand_at(place);
    Ok(Flow::Jumped)
}

fn after_end_while(call: &Call) -> Outcome {
    match scan(call, true, "While", "EndWhile", &["EndWhile"]) {
        Some((priority, _)) => jump(call, priority.saturating_add(1)),
        None => {
            call.log(Level::Warning, "there is no matching EndWhile in this extension");
            Ok(Flow::Continue)
        }
    }
}

fn while_(call: &Call, condition: &str) -> Outcome {
    if args::is_true(condition) { Ok(Flow::Continue) } else { after_end_while(call) }
}

fn end_while(call: &Call, _: &str) -> Outcome {
    match scan(call, false, "EndWhile", "While", &["While"]) {
        Some((priority, _)) => jump(call, priority),
        None => {
            call.log(Level::Warning, "there is no matching While in this extension");
            Ok(Flow::Continue)
        }
    }
}

fn exit_while(call: &Call, _: &str) -> Outcome {
    after_end_while(call)
}

/// Goes to the next branch of the block that the present step belongs to.
fn next_branch(call: &Call) -> Outcome {
    match scan(call, true, "If", "EndIf", &["ElseIf", "Else", "EndIf"]) {
        Some((priority, name)) if name == "elseif" => {
            call.run.undecided.set(true);
            jump(call, priority)
        }
        Some((priority, _)) => jump(call, priority.saturating_add(1)),
        None => {
            call.log(Level::Warning, "there is no matching EndIf in this extension");
            Ok(Flow::Continue)
        }
    }
}

fn after_end_if(call: &Call) -> Outcome {
    match scan(call, true, "If", "EndIf", &["EndIf"]) {
        Some((priority, _)) => jump(call, priority.saturating_add(1)),
        None => {
            call.log(Level::Warning, "there is no matching EndIf in this extension");
            Ok(Flow::Continue)
        }
    }
}

fn if_(call: &Call, condition: &str) -> Outcome {
    if args::is_true(condition) { Ok(Flow::Continue) } else { next_branch(call) }
}

fn else_if(call: &Call, condition: &str) -> Outcome {
    // Reached by going on from a branch that was taken: the block is over.
    if !call.run.undecided.replace(false) {
        return after_end_if(call);
    }
    if_(call, condition)
}

fn else_(call: &Call, _: &str) -> Outcome {
    after_end_if(call)
}

fn end_if(_: &Call, _: &str) -> Outcome {
    Ok(Flow::Continue)
}

fn exit_if(call: &Call, _: &str) -> Outcome {
    after_end_if(call)
}
