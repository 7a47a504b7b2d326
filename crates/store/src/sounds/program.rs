//! Music that a program makes: `mode=custom` of musiconhold.conf.
//!
//! One program serves all who hear its class. A thread reads what it writes as fast as it is heard, so that the program
//! waits when it is ahead, and starts it again, ever later, when it ends. It runs from the first listener on until the class
//! is another one.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::{Broadcast, FormatId};
use codec::{Coders, Decoder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// What is read at once.
const FRAME: Duration = Duration::from_millis(20);
/// A program that is this late does not make up for it.
const LATE: Duration = Duration::from_millis(100);
/// How often a silent program is left for a look at whether it is still wanted.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long a program that has ended is left alone, first and at most.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// One that ran so long has not failed.
const STEADY: Duration = Duration::from_secs(30);
/// Files of its folder that a program is given.
const FILES_MAX: usize = 1000;

/// A program and how it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its file, and its arguments.
    pub command: Vec<String>,
    /// Folder it runs in, whose files are its last arguments.
    pub folder: Option<PathBuf>,
    /// What it writes.
    pub format: FormatId,
    /// How long it has between SIGHUP, SIGTERM and SIGKILL when it is to end.
    pub patience: Duration,
    /// Whether those whom it has started are to end with it.
    pub whole_group: bool,
}

/// A program that is wanted; it ends with this.
pub(super) struct Running {
    pub(super) program: Program,
    pub(super) broadcast: Arc<Broadcast>,
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts a thread for it. `tell` is told, on that thread, when the program ends by itself.
    pub(super) fn start(
        class: &str,
        program: Program,
        coders: &Coders,
        tell: impl Fn(String) + Send + 'static,
    ) -> std::io::Result<Self> {
        let broadcast = Arc::new(Broadcast::new(program.format.rate()));
        // Nothing is ever sent: the thread learns that this end is gone.
        let (stop, stopped) = sync_channel(0);
        let mut player = Player {
            program: program.clone(),
            broadcast: broadcast.clone(),
            decoder: coders.decoder(program.format),
            stopped,
        };
        let class = class.to_owned();
        let thread = std::thread::Builder::new()
            .name("music".to_owned())
            .spawn(move || player.run(&|why| tell(format!("the program of music class '{class}' {why}"))))?;
        Ok(Self { program, broadcast, stop: Some(stop), thread: Some(thread) })
    }
    /// Lets the program end, and waits for that.
    pub(super) fn end(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Why a program plays no more.
enum Over {
    /// Nobody wants it.
    Unwanted,
    /// It has ended, or could not be started.
    Itself(String),
}

struct Player {
    program: Program,
    broadcast: Arc<Broadcast>,
    decoder: Decoder,
    stopped: Receiver<()>,
}

impl Player {
    fn run(&mut self, tell: &dyn Fn(String)) {
        let [mut pause, longest] = AGAIN;
        loop {
            let began = Instant::now();
            let Over::Itself(why) = self.play() else { return };
            if began.elapsed() >= STEADY {
                [pause, _] = AGAIN;
            }
            tell(format!("{why}; it is started again in {} s", pause.as_secs()));
            if !self.wait(pause) {
                return;
            }
            pause = (pause * 2).min(longest);
        }
    }
    /// Lets time pass; false when nobody wants the program any more.
    fn wait(&self, time: Duration) -> bool {
        self.stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
    fn play(&mut self) -> Over {
        let mut child = match self.spawn() {
            Ok(child) => child,
            Err(why) => return Over::Itself(format!("cannot be started: {why}")),
        };
        let over = match child.stdout.take() {
            Some(mut output) => self.hear(&mut output),
            None => Over::Itself("has no output".to_owned()),
        };
        let status = self.end(&mut child);
        match over {
            Over::Itself(why) => Over::Itself(status.map_or(why, |status| format!("has ended ({status})"))),
            Over::Unwanted => Over::Unwanted,
        }
    }
    fn spawn(&self) -> std::io::Result<Child> {
        let Program { command, folder, .. } = &self.program;
        let (file, arguments) = command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut starting = Command::new(file);
        starting.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        starting.process_group(0);
        if let Some(folder) = folder {
            starting.args(files_of(folder)?).current_dir(folder);
        }
        starting.spawn()
    }
    /// Takes what it writes, as fast as it is heard.
    fn hear(&mut self, output: &mut ChildStdout) -> Over {
        let format = self.program.format;
        let mut coded = vec![0; format.bytes_in(FRAME.as_millis() as u16)];
        let mut linear = vec![0; (format.rate().0 as usize * FRAME.as_millis() as usize) / 1000];
        let mut due = Instant::now();
        loop {
            let mut filled = 0;
            while let Some(room) = coded.get_mut(filled..).filter(|room| !room.is_empty()) {
                match poll(&mut [PollFd::new(&*output, PollFlags::IN)], Some(&LOOK_EVERY)) {
                    Ok(0) if self.wait(Duration::ZERO) => continue,
                    Ok(0) => return Over::Unwanted,
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(why) => return Over::Itself(format!("cannot be heard: {why}")),
                }
                match output.read(room) {
                    Ok(0) => return Over::Itself("writes no more".to_owned()),
                    Ok(count) => filled += count,
                    Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(why) => return Over::Itself(format!("cannot be heard: {why}")),
                }
            }
            let count = self.decoder.decode(&coded, &mut linear);
            self.broadcast.write(linear.get(..count).unwrap_or_default());
            let now = Instant::now();
            due = (due + FRAME).max(now.checked_sub(LATE).unwrap_or(now));
            if !self.wait(due.saturating_duration_since(now)) {
                return Over::Unwanted;
            }
        }
    }
    /// Ends it, kindly first; how it ended, when it did so by itself.
    fn end(&self, child: &mut Child) -> Option<std::process::ExitStatus> {
        let pid = Pid::from_child(child);
        for signal in [Signal::HUP, Signal::TERM, Signal::KILL] {
            let whole = self.program.whole_group;
            let _ = if whole { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
            let until = Instant::now() + self.program.patience;
            loop {
                match child.try_wait() {
                    Ok(None) if signal == Signal::KILL => return child.wait().ok(),
                    Ok(None) if Instant::now() < until => std::thread::sleep(FRAME),
                    Ok(None) => break,
                    Ok(status) => return status,
                    Err(_) => return None,
                }
            }
        }
        None
    }
}

/// The files of a folder, by name.
fn files_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.is_file() && !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        })
        .collect();
    files.sort();
    files.truncate(FILES_MAX);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::AudioSource as _;
    use std::sync::mpsc::channel;

    fn program(line: &str) -> Program {
        Program {
            command: ["/bin/sh", "-c", line].map(str::to_owned).into(),
            folder: None,
            format: FormatId::SLIN,
            patience: Duration::from_millis(100),
            whole_group: true,
        }
    }
    fn start(program: Program) -> (Running, Receiver<String>) {
        let (tell, told) = channel();
        let running = Running::start("live", program, &Coders::default(), move |line| {
            let _ = tell.send(line);
        });
        (running.unwrap(), told)
    }

    #[test]
    fn what_a_program_writes_is_heard_by_all_who_listen_and_it_ends_when_nobody_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let line = format!("echo $$ > {}; while :; do printf 'AAAAAAAAAAAAAAAA'; done", pid.display());
        let (running, _told) = start(program(&line));
        let mut listeners = [running.broadcast.listen(), running.broadcast.listen()];
        for listener in &mut listeners {
            let mut frame = [0; 160];
            while frame[159] != i16::from_le_bytes(*b"AA") {
                listener.read(&mut frame);
                std::thread::yield_now();
            }
        }
        let process = format!("/proc/{}", std::fs::read_to_string(&pid).unwrap().trim());
        assert!(Path::new(&process).exists());
        running.end();
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn a_program_that_ends_or_is_not_there_is_told_of_and_one_that_does_not_want_to_end_is_killed() {
        let (running, told) = start(program("exit 3"));
        let line = told.recv().unwrap();
        assert!(
            line.contains("class 'live' has ended (exit status: 3); it is started again in 1 s"),
            "{line}"
        );
        running.end();
        let (running, told) = start(Program { command: vec!["/nowhere/player".into()], ..program("") });
        assert!(told.recv().unwrap().contains("cannot be started"));
        running.end();
        let (running, _told) = start(program("trap '' HUP TERM; while :; do sleep 1; done"));
        running.end();
    }

    #[test]
    fn the_files_of_its_folder_are_its_last_arguments() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.mp3", "a.mp3", ".hidden"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let said = folder.path().join("../said");
        let said = std::env::temp_dir().join(format!(
            "{}-{}",
            std::process::id(),
            said.file_name().unwrap().display()
        ));
        let line = format!("echo $PWD \"$@\" > {}", said.display());
        let mut own = program(&line);
        own.command.push("player".into());
        own.folder = Some(folder.path().to_owned());
        let (running, told) = start(own);
        told.recv().unwrap();
        running.end();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let expected = format!("{} {} {}\n", folder.path().display(), at("a.mp3"), at("b.mp3"));
        assert_eq!(std::fs::read_to_string(&said).unwrap(), expected);
        std::fs::remove_file(&said).unwrap();
    }
}
