//! A person at a terminal: a program on a pseudo-terminal, which util-linux's `script` makes.

use crate::server::{program, surround};
use crate::site::Site;
use crate::wait;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a line editor asks a terminal for: where the cursor is.
const WHERE: &[u8] = b"\x1b[6n";
/// The answer: in the first line and column.
const HERE: &[u8] = b"\x1b[1;1R";

/// A program on a terminal of 50 lines and 200 columns; both go when this goes.
#[derive(Debug)]
pub struct Terminal {
    /// `script`, to which the terminal belongs.
    child: Child,
    program: Running,
    keys: Arc<Mutex<ChildStdin>>,
    screen: Arc<Mutex<Vec<u8>>>,
    /// How much of it is forgotten.
    wiped: AtomicUsize,
}

impl Terminal {
    /// Starts the program on it, on a site's configuration and with more words.
    pub fn start(site: &Site, words: &[&str]) -> Self {
        let quoted = |word: &str| format!("'{word}'");
        let own = [program().display().to_string(), "-C".into(), site.config().display().to_string()];
        let words: Vec<String> =
            own.iter().map(String::as_str).chain(words.iter().copied()).map(quoted).collect();
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let note = site.place.join(format!("terminal-{}.pid", COUNT.fetch_add(1, Ordering::Relaxed)));
        // The shell's process becomes the program's.
        let line = format!("stty rows 50 cols 200; echo $$ >'{}'; exec {}", note.display(), words.join(" "));
        let mut shell = Command::new("script");
        surround(&mut shell, site);
        shell.args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"]);
        shell.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell.spawn().expect("script runs");
        let keys = Arc::new(Mutex::new(child.stdin.take().expect("a pipe")));
        let mut output = child.stdout.take().expect("a pipe");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (shown, answers) = (screen.clone(), keys.clone());
        // Ends with the program's output.
        std::thread::spawn(move || {
            let (mut buffer, mut answered) = ([0; 4096], 0);
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut screen = shown.lock().expect("the test lives");
                screen.extend_from_slice(&buffer[..count]);
                let asked = screen.windows(WHERE.len()).filter(|window| *window == WHERE).count();
                drop(screen);
                for _ in answered..asked {
                    // A program that has gone needs no answer.
                    let _sent = answers.lock().expect("the test lives").write_all(HERE);
                }
                answered = asked;
            }
        });
        let pid = || std::fs::read_to_string(&note).ok()?.strip_suffix('\n')?.parse().ok();
        let program = Running(wait::until("the shell on the terminal runs", pid));
        Self { child, program, keys, screen, wiped: AtomicUsize::new(0) }
    }

    /// Presses keys, as the bytes that they send.
    pub fn press(&self, keys: &str) {
        let mut pipe = self.keys.lock().expect("the reader lives");
        pipe.write_all(keys.as_bytes()).and_then(|()| pipe.flush()).expect("the terminal takes keys");
    }

    /// All that has been shown, without what moves the cursor and colours.
    pub fn shown(&self) -> String {
        let screen = self.screen.lock().expect("the reader lives");
        plain(&String::from_utf8_lossy(screen.get(self.wiped.load(Ordering::Relaxed)..).unwrap_or_default()))
    }

    /// Forgets what was shown.
    pub fn wipe(&self) {
        self.wiped.store(self.screen.lock().expect("the reader lives").len(), Ordering::Relaxed);
    }

    /// Waits until a text is shown.
    pub fn until_shown(&self, text: &str) {
        let seen = wait::for_some(wait::SOON, || self.shown().contains(text).then_some(()));
        assert!(seen.is_some(), "'{text}' is not shown:\n{}", self.shown());
    }

    /// Takes the terminal away from the program, which may live on.
    pub fn hang_up(mut self) -> Running {
        std::mem::replace(&mut self.program, Running(0))
    }

    /// Waits until the program has ended; its status.
    pub fn ended(&mut self) -> Option<i32> {
        wait::until("the program on the terminal ends", || self.child.try_wait().ok()?).code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program goes after this, as the fields do.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The program without its terminal; it goes when this goes. Number 0 is none.
#[derive(Debug)]
pub struct Running(u32);

impl Running {
    /// Its process id.
    pub const fn pid(&self) -> u32 {
        self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let path = std::fs::read_link(format!("/proc/{}/exe", self.0));
        // The number of a process that has ended may be another's by this time.
        if path.is_ok_and(|path| path.file_name() == program().file_name()) {
            let _ended = Command::new("kill").args(["-KILL", &self.0.to_string()]).status();
        }
    }
}

/// Text without control sequences (ECMA-48 §5.4).
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            out.push(c);
        } else if chars.next_if_eq(&'[').is_some() {
            while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
        } else {
            chars.next();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_is_no_text() {
        assert_eq!(plain("\x1b[1;32mhost\x1b[0m*CLI> \x1b7core\x1b[6n"), "host*CLI> core");
    }
}
