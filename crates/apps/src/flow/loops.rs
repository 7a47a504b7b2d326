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
    "ContinueWhile" "app_while" Run::Now(continue_while),
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
    scan_from(call, call.here().priority(), forward, opens, closes, wanted)
}

/// The same from another step of the extension.
fn scan_from(
    call: &Call,
    current: u32,
    forward: bool,
    opens: &str,
    closes: &str,
    wanted: &[&str],
) -> Option<(u32, String)> {
    let place = call.here();
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

/// Blocks of one kind that may be open at once and are still kept in variables of their own; a loop within more loops runs
/// all the same.
const DEPTH_MAX: u32 = 64;

/// A place of this extension, as variables of blocks have it.
fn mark(call: &Call, priority: u32) -> String {
    let here = call.here();
    format!("{},{},{priority}", here.context(), here.exten())
}

/// The how many-th open block of its kind the one is that begins at a place; `None` when that was never taken.
fn depth_of(call: &Call, begins: u32) -> Option<u32> {
    call.get(&mark(call, begins).replace(',', "_"))?.parse().ok().filter(|depth| *depth < DEPTH_MAX)
}

fn is_set(call: &Call, name: &str) -> bool {
    call.get(name).is_some_and(|value| !value.is_empty())
}

/// The block that begins with the present step is taken: variables say so that dialplans of the field know.
fn take_block(call: &Call, word: &str) {
    let begins = call.here().priority();
    let known = depth_of(call, begins);
    let Some(depth) =
        known.or_else(|| (0..DEPTH_MAX).find(|depth| !is_set(call, &format!("{word}_{depth}"))))
    else {
        return;
    };
    if known.is_none() {
        call.set(&mark(call, begins).replace(',', "_"), &depth.to_string());
    }
    if !is_set(call, &format!("{word}_{depth}")) {
        call.set(&format!("{word}_{depth}"), &mark(call, begins));
    }
}

/// The block that began at a place is over.
fn leave_block(call: &Call, word: &str, begins: Option<u32>) {
    let Some(depth) = begins.and_then(|begins| depth_of(call, begins)) else { return };
    for name in [format!("{word}_{depth}"), format!("END_{word}_{depth}")] {
        if is_set(call, &name) {
            call.set(&name, "");
        }
    }
}

fn while_(call: &Call, condition: &str) -> Outcome {
    if args::is_true(condition) {
        take_block(call, "WHILE");
        return Ok(Flow::Continue);
    }
    leave_block(call, "WHILE", Some(call.here().priority()));
    after_end_while(call)
}

fn end_while(call: &Call, _: &str) -> Outcome {
    let begins = scan(call, false, "EndWhile", "While", &["While"]).map(|(priority, _)| priority);
    if let Some(depth) = begins.and_then(|begins| depth_of(call, begins)) {
        let end = format!("END_WHILE_{depth}");
        if !is_set(call, &end) {
            call.set(&end, &mark(call, call.here().priority().saturating_add(1)));
        }
    }
    continue_while(call, "")
}

fn continue_while(call: &Call, _: &str) -> Outcome {
    match scan(call, false, "EndWhile", "While", &["While"]) {
        Some((priority, _)) => jump(call, priority),
        None => {
            call.log(Level::Warning, "there is no matching While in this extension");
            Ok(Flow::Continue)
        }
    }
}

fn exit_while(call: &Call, _: &str) -> Outcome {
    let begins = scan(call, false, "EndWhile", "While", &["While"]).map(|(priority, _)| priority);
    leave_block(call, "WHILE", begins);
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

/// The block that the present step belongs to is over: the branch that was taken began with If or ElseIf.
fn leave_if(call: &Call) {
    let mut begins = scan(call, false, "EndIf", "If", &["If", "ElseIf"]);
    while let Some((priority, word)) = begins {
        leave_block(call, "IF", Some(priority));
        begins = match word.as_str() {
            "elseif" => scan_from(call, priority, false, "EndIf", "If", &["If", "ElseIf"]),
            _ => None,
        };
    }
}

fn after_end_if(call: &Call) -> Outcome {
    leave_if(call);
    match scan(call, true, "If", "EndIf", &["EndIf"]) {
        Some((priority, _)) => jump(call, priority.saturating_add(1)),
        None => {
            call.log(Level::Warning, "there is no matching EndIf in this extension");
            Ok(Flow::Continue)
        }
    }
}

fn if_(call: &Call, condition: &str) -> Outcome {
    if args::is_true(condition) {
        take_block(call, "IF");
        return Ok(Flow::Continue);
    }
    next_branch(call)
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

fn end_if(call: &Call, _: &str) -> Outcome {
    leave_if(call);
    Ok(Flow::Continue)
}

fn exit_if(call: &Call, _: &str) -> Outcome {
    after_end_if(call)
}
