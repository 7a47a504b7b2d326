//! Applications that run another application, and those that would run a program.

use call::Level;

use super::{by_the_loop, rows};
use crate::call_ctx::args;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "ExecIf" "app_exec" Run::Now(by_the_loop),
        "Runs one of two applications by a condition.", "ExecIf(expression?appiftrue(args)[:appiffalse(args)])",
        "An application that does not exist ends the call.";
    "ExecIfTime" "pbx_builtins" Run::Now(by_the_loop),
        "Runs an application at certain times.",
        "ExecIfTime(times,weekdays,mdays,months[,timezone]?appname[(appargs)])",
        "Runs the application when all time fields hold.";
    "Exec" "app_exec" Run::Now(by_the_loop),
        "Runs the application that its argument names.", "Exec(appname(arguments))",
        "The name may come from a variable. An application that does not exist ends the call.";
    "TryExec" "app_exec" Run::Story(try_exec),
        "Runs an application and goes on even if it fails.", "TryExec(appname(arguments))",
        "Sets TRYSTATUS: SUCCESS, FAILED when the application would have ended the call, NOAPP when there is none.";
    "System" "app_system" Run::Now(refuse),
        "Would run a program; dialplans may not.", "System(command)",
        "Dialplans may not run programs: nothing is run, SYSTEMSTATUS is FAILURE and the log names the command's line.";
    "TrySystem" "app_system" Run::Now(refuse),
        "As System.", "TrySystem(command)", "As System.";
};

fn try_exec(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let (name, inner, _) = args::split_app(&text);
        match call.run_app(name, inner).await {
            None => {
                call.log(Level::Warning, &format!("TryExec: there is no application '{name}'"));
                call.set("TRYSTATUS", "NOAPP");
            }
            Some(Ok(Flow::Hangup)) => {
                call.set("TRYSTATUS", "FAILED");
                call.chan.check()?;
            }
            Some(outcome) => {
                call.set("TRYSTATUS", "SUCCESS");
                return outcome;
            }
        }
        Ok(Flow::Continue)
    })
}

fn refuse(call: &Call, _: &str) -> Outcome {
    call.log(Level::Error, "dialplans may not run programs; nothing was run");
    call.set("SYSTEMSTATUS", "FAILURE");
    Ok(Flow::Continue)
}
