//! The terminal that a process was started from, and its end.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};

use rustix::event::{PollFd, PollFlags, poll};

/// What of a process's standard streams leads to its terminal.
#[derive(Debug)]
pub struct Terminal {
    output: bool,
    errors: bool,
}

/// Starts a thread that sleeps until the terminal on standard input hangs up and calls `then` with it. Does nothing when
/// there is no terminal.
pub fn when_terminal_goes(then: impl FnOnce(Terminal) + Send + 'static) -> io::Result<()> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    // One that has hung up no longer says that it is one.
    let terminal = Terminal { output: io::stdout().is_terminal(), errors: io::stderr().is_terminal() };
    let watch = move || {
        if until_hung_up().is_ok() {
            then(terminal);
        }
    };
    std::thread::Builder::new().name("hang-up".into()).spawn(watch).map(drop)
}

fn until_hung_up() -> io::Result<()> {
    let stdin = io::stdin();
    // A hang-up is reported whatever is asked for, and nothing else is.
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Ok(_) if watched.iter().any(|fd| !fd.revents().is_empty()) => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Terminal {
    /// Puts silence in its place: an input on which nothing ever comes, outputs that lead nowhere. What was redirected
    /// stays.
    pub fn let_go(self) -> io::Result<()> {
        let (silence, other_end) = rustix::pipe::pipe()?;
        rustix::stdio::dup2_stdin(silence)?;
        // Open as long as the process, so that the input never ends.
        std::mem::forget(other_end);
        let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        if self.output {
            rustix::stdio::dup2_stdout(&nowhere)?;
        }
        if self.errors {
            rustix::stdio::dup2_stderr(&nowhere)?;
        }
        Ok(())
    }
}
