//! SHELL(): what a command of the shell writes.
//!
//! Commands run before a step's arguments are expanded ([`Call::run_shell_calls`]); reading the function gives what they
//! wrote. A call that no step spells out runs nothing: neither a manager's `Getvar` nor text that came in from a caller
//! starts a program.

use call::{Level, Stop};
use dialplan::Fault;

use super::Read;
use crate::Call;
use crate::env::Scope;
use crate::shell::{Ended, Script, run};

/// Calls of the function that one step may have run.
const CALLS_MAX: usize = 16;

/// A command, substituted, and what it wrote.
pub(crate) type Wrote = (String, String);

impl Call {
    /// Runs the commands of the calls of `SHELL()` in `text`, and keeps what they write for the step that is about to be taken.
    pub(crate) async fn run_shell_calls(&self, text: &str) -> Result<(), Stop> {
        self.run.wrote.borrow_mut().clear();
        // An inner call stands after the one whose argument it is.
        let calls: Vec<&str> = dialplan::functions::calls(text, "SHELL").take(CALLS_MAX).collect();
        for args in calls.into_iter().rev() {
            let line = dialplan::template::expand_written(&mut Scope::new(self), args);
            let mut output = Vec::new();
            let why = match self.shell_is_there().and_then(|()| Script::new(&line)) {
                Ok(script) => match run(self, &script, Some(&mut output)).await? {
                    Ended::Exited(_) => None,
                    Ended::NotStarted(why) => Some(why),
                    Ended::LetGo => Some("it takes too long; it goes on by itself".to_owned()),
                },
                Err(why) => Some(why),
            };
            if let Some(why) = why {
                self.log(Level::Warning, &format!("SHELL: the command has not come to its end: {why}"));
            }
            let output = String::from_utf8_lossy(&output).into_owned();
            self.run.wrote.borrow_mut().push((line.text, output));
        }
        Ok(())
    }
    fn shell_is_there(&self) -> Result<(), String> {
        let there = self.chan.core(|core| core.settings.has_module("func_shell"));
        there.then_some(()).ok_or_else(|| "modules.conf switches func_shell off".to_owned())
    }
}

/// Answers the function.
pub(super) fn read(call: &Call, args: &str, out: &mut String) -> Read {
    let wrote = call.run.wrote.borrow();
    let found = wrote.iter().find(|(line, _)| line == args);
    let (_, output) =
        found.ok_or_else(|| Fault::new("runs a command only where a step of the dialplan spells it out"))?;
    out.push_str(output);
    Ok(())
}
