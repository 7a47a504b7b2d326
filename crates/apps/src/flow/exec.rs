//! Applications that run another application, or a program.

use call::Level;
use dialplan::Written;

use super::{by_the_loop, rows};
use crate::call_ctx::args;
use crate::shell::{self, Ended, Script};
use crate::{AppFuture, AppRow, Call, Flow, Run};

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
    "System" "app_system" Run::Command(system),
        "Runs a command of the shell and waits for its end.", "System(command)",
        "The shell reads the command as it stands in the dialplan; what ${...} and $[...] give is handed to it as arguments,\n\
         each one word, and never read as a command. A variable that names the command is split into words at blanks\n\
         (quotes keep them together). Where the line would have another shell read a value (eval, sh -c, | sh, su -c,\n\
         ssh, arithmetic), a value that is more than letters, digits, blanks and _-+.,:/@%= is refused. The command has to stand\n\
         in a step of its own or in ExecIf: put together by Exec(), TryExec(), AGI or a manager it is not run.\n\
         Input and output are /dev/null. After 15 minutes the call goes on without its end.\n\
         Sets SYSTEMSTATUS: SUCCESS; APPERROR, it ended with a code other than 0; FAILURE, it was not run or did not end.";
    "TrySystem" "app_system" Run::Command(system),
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

fn system(call: Call, line: Written) -> AppFuture {
    Box::pin(async move {
        let (status, why) = match Script::new(&line) {
            Ok(script) => match shell::run(&call, &script, None).await? {
                Ended::Exited(Some(0)) => ("SUCCESS", None),
                // By these the shell says that there is no such program, or that it may not be run.
                Ended::Exited(Some(126 | 127)) => ("FAILURE", Some("its program cannot be run".to_owned())),
                Ended::Exited(_) => ("APPERROR", None),
                Ended::NotStarted(why) => ("FAILURE", Some(why)),
                Ended::LetGo => ("FAILURE", Some("it takes too long; it goes on by itself".to_owned())),
            },
            Err(why) => ("FAILURE", Some(why)),
        };
        if let Some(why) = why {
            call.log(Level::Warning, &format!("the command has not come to its end: {why}"));
        }
        call.set("SYSTEMSTATUS", status);
        Ok(Flow::Continue)
    })
}
