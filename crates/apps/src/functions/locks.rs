//! LOCK(), TRYLOCK() and UNLOCK(): names that one channel at a time holds.
//!
//! What a step's `LOCK()` waits for is waited for before its arguments are expanded ([`Call::wait_for_locks`]), and nothing
//! else runs between: reading the function takes what was found free.

use core::time::Duration;

use call::Stop;
use dialplan::Fault;

use super::Read;
use crate::Call;

/// How long a channel that holds a lock waits for another: two that wait for each other go on after it, as the field has it.
const WAIT_WITH_LOCK: Duration = Duration::from_secs(3);
/// Locks that one step may wait for.
const LOCKS_OF_STEP_MAX: usize = 16;

impl Call {
    /// Waits for the locks that the calls of `LOCK()` in `text` name.
    pub(crate) async fn wait_for_locks(&self, text: &str, after_end: bool) -> Result<(), Stop> {
        let names: Vec<String> = dialplan::functions::calls(text, "LOCK")
            .take(LOCKS_OF_STEP_MAX)
            .map(|args| self.expand(args).trim().to_owned())
            .collect();
        let holds = self.chan.core(|core| core.holds_lock(self.chan.id()));
        let deadline = holds.then(|| self.chan.now() + WAIT_WITH_LOCK);
        self.chan.wait_for_locks(&names, deadline, after_end).await
    }
}

fn named(text: &str) -> Result<&str, Fault> {
    match text.trim() {
        "" => Err(Fault::new("needs the name of a lock")),
        name if name.len() > call::LOCK_NAME_MAX => {
            Err(Fault::new(format!("the name is longer than {} bytes", call::LOCK_NAME_MAX)))
        }
        name => Ok(name),
    }
}

fn answer(yes: bool, out: &mut String) -> Read {
    out.push(if yes { '1' } else { '0' });
    Ok(())
}

/// `LOCK(name)` and `TRYLOCK(name)`.
pub(super) fn read_take(call: &Call, text: &str, out: &mut String) -> Read {
    let name = named(text)?;
    answer(call.chan.core(|core| core.try_lock(call.chan.id(), name)), out)
}

/// `UNLOCK(name)`.
pub(super) fn read_give(call: &Call, text: &str, out: &mut String) -> Read {
    let name = named(text)?;
    answer(call.chan.core(|core| core.unlock(call.chan.id(), name)), out)
}
