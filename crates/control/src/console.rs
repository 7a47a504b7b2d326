//! The interactive console, `strowger -r` and `strowger -c`: a line editor in front of the control socket.
//!
//! One thread reads replies and prints log lines above the prompt; the caller's thread edits lines. Without a
//! terminal it reads commands from standard input, one a line, so that scripts and tests can drive it.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, ExternalPrinter, FileBackedHistory,
    KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent,
    ReedlineMenu, Signal, Span, Suggestion, default_emacs_keybindings,
};

use crate::cli_client::{Client, ConnectError};
use crate::socket::{Reply, Request};

/// Lines of history kept between sessions.
const HISTORY_LINES: usize = 1000;
/// Log lines that may wait while a command prints its answer; later ones are not shown, because waiting for the line
/// editor here would hold up the answer it is waiting for.
const PRINTER_LINES: usize = 1024;
/// Replies that may wait for the caller's thread: one answer in frames of 64 kB.
const REPLIES: usize = 16;
const MENU: &str = "completion_menu";

/// Whose console it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// `-r`: leaving it leaves the process running.
    Remote,
    /// `-c`: it belongs to the process; Ctrl-C stops it.
    Local,
}

/// How a console is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The control socket.
    pub socket: PathBuf,
    /// Where the history is kept; `None` keeps none.
    pub history: Option<PathBuf>,
    /// Whose it is.
    pub seat: Seat,
    /// Verbose lines up to this level are shown.
    pub verbose: u8,
    /// Debug lines up to this level are shown.
    pub debug: u8,
    /// The prompt and what is typed are coloured.
    pub color: bool,
    /// Log lines begin with the time.
    pub timestamps: bool,
    /// The machine's name in the prompt.
    pub host: String,
}

/// Runs a console until the person leaves or the process ends; returns the exit status.
pub fn run(options: &Options) -> Result<u8, ConnectError> {
    let mut client = Client::connect(&options.socket)?;
    let attach = Request::Attach { verbose: options.verbose, debug: options.debug };
    let failed = |source| ConnectError { path: options.socket.clone(), source };
    client.ask(&attach).map_err(failed)?;
    let writer = client.writer().map_err(failed)?;
    let gone = Arc::new(AtomicBool::new(false));
    Ok(if io::stdin().is_terminal() && io::stdout().is_terminal() {
        with_terminal(options, client, writer, &gone)
    } else {
        with_pipe(options, client, writer, &gone, &mut io::stdin().lock())
    })
}

/// The asking half of a console; the reading half is a thread.
struct Link {
    writer: UnixStream,
    replies: mpsc::Receiver<Reply>,
}

impl Link {
    /// Starts the reading half: log lines go to `log`, the rest to whoever asked. `gone` is set at the end of the
    /// stream, before the line editor is told by its break signal of the same name.
    fn start(
        mut client: Client,
        writer: UnixStream,
        gone: &Arc<AtomicBool>,
        log: impl Fn(String) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, replies): (SyncSender<Reply>, _) = mpsc::sync_channel(REPLIES);
        let gone = gone.clone();
        std::thread::Builder::new().name("console".into()).spawn(move || {
            while let Ok(reply) = client.reply() {
                match reply {
                    Reply::Log(line) => log(line),
                    other => {
                        if sender.send(other).is_err() {
                            break;
                        }
                    }
                }
            }
            gone.store(true, Ordering::Release);
        })?;
        Ok(Self { writer, replies })
    }

    fn ask(&mut self, request: &Request) -> bool {
        let mut bytes = Vec::new();
        request.write(&mut bytes);
        self.writer.write_all(&bytes).is_ok()
    }

    /// Runs a command and prints its answer; `None` when the process is gone.
    fn run(&mut self, line: &str, columns: u16, out: &mut dyn Write) -> Option<u8> {
        if !self.ask(&Request::Run { line: line.to_owned(), json: false, columns }) {
            return None;
        }
        loop {
            match self.replies.recv().ok()? {
                Reply::Text(text) => out.write_all(text.as_bytes()).ok()?,
                Reply::Done { status } => {
                    out.flush().ok()?;
                    return Some(status);
                }
                // A late answer to a completion that was given up; log lines never come here.
                Reply::Candidates(_) | Reply::Log(_) => {}
            }
        }
    }

    fn complete(&mut self, line: &str) -> Vec<String> {
        if !self.ask(&Request::Complete { line: line.to_owned() }) {
            return Vec::new();
        }
        loop {
            match self.replies.recv() {
                Ok(Reply::Candidates(words)) => return words,
                Ok(_) => {}
                Err(mpsc::RecvError) => return Vec::new(),
            }
        }
    }
}

/// What a typed line is, before it is sent anywhere.
#[derive(Debug, PartialEq, Eq)]
enum Typed<'a> {
    Nothing,
    Leave,
    /// Refused here, with the reason.
    Refused(&'static str),
    /// `core sh?`: list what may follow.
    Help(&'a str),
    Command(&'a str),
}

fn understand(line: &str, seat: Seat) -> Typed<'_> {
    let line = line.trim_start();
    if let Some(prefix) = line.trim_end().strip_suffix('?') {
        return Typed::Help(prefix);
    }
    match line.trim_end() {
        "" => Typed::Nothing,
        command if command.starts_with('!') => {
            Typed::Refused("Shell commands are not run from this console: use another terminal.")
        }
        "exit" | "quit" if seat == Seat::Remote => Typed::Leave,
        "exit" | "quit" => Typed::Refused(
            "This console belongs to the process: stop it with 'core stop now' or 'core stop gracefully'.",
        ),
        command => Typed::Command(command),
    }
}

fn with_pipe(
    options: &Options,
    client: Client,
    writer: UnixStream,
    gone: &Arc<AtomicBool>,
    input: &mut dyn BufRead,
) -> u8 {
    let seat = options.seat;
    let stamp = stamper(options.timestamps);
    let print = move |line: String| println!("{}{line}", stamp());
    let Ok(mut link) = Link::start(client, writer, gone, print) else { return 1 };
    let mut out = io::stdout();
    let mut last = 0;
    let mut line = String::new();
    while matches!(next_line(input, &mut line), Ok(1..)) {
        match understand(&line, seat) {
            Typed::Nothing => {}
            Typed::Leave => return last,
            Typed::Refused(why) => println!("{why}"),
            Typed::Help(prefix) => link.complete(prefix).iter().for_each(|word| println!("{word}")),
            Typed::Command(command) => match link.run(command, 0, &mut out) {
                Some(status) => last = status,
                None => return disconnected(),
            },
        }
    }
    if seat == Seat::Local {
        // Standard input is at its end and the process goes on: stay with it, so that its log is still printed.
        while link.replies.recv().is_ok() {}
    }
    last
}

fn next_line(input: &mut dyn BufRead, line: &mut String) -> io::Result<usize> {
    line.clear();
    input.read_line(line)
}

fn disconnected() -> u8 {
    println!("Disconnected from Strowger.");
    0
}

/// What stands before each log line: the time on this machine when it is wanted, in Asterisk's form.
fn stamper(wanted: bool) -> impl Fn() -> String + Send + 'static {
    let zone = wanted.then(store::date::Zone::local);
    move || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let date = zone.as_ref().map(|zone| store::date::format(micros, zone, "[%b %e %T] "));
        date.unwrap_or_default()
    }
}

fn with_terminal(options: &Options, client: Client, writer: UnixStream, gone: &Arc<AtomicBool>) -> u8 {
    let printer = ExternalPrinter::new(PRINTER_LINES);
    let lines = printer.sender();
    let stamp = stamper(options.timestamps);
    let print = move |line: String| drop(lines.try_send(stamp() + &line));
    let Ok(link) = Link::start(client, writer, gone, print) else { return 1 };
    let link = Arc::new(std::sync::Mutex::new(link));
    let mut editor = editor(options, printer, gone, Words { link: link.clone() });
    let prompt = HostPrompt { text: format!("{}*CLI> ", options.host) };
    watch_terminal(options.seat);
    let mut last = 0;
    loop {
        let line = match editor.read_line(&prompt) {
            Ok(Signal::Success(line)) => line,
            Ok(Signal::CtrlC) if options.seat == Seat::Local => "core stop now".to_owned(),
            Ok(Signal::CtrlD) if options.seat == Seat::Local => continue,
            Ok(Signal::CtrlC | Signal::CtrlD) => return last,
            // The break signal, or a terminal that is gone.
            Ok(_) | Err(_) => return disconnected(),
        };
        let Ok(mut link) = link.lock() else { return 1 };
        match understand(&line, options.seat) {
            Typed::Nothing => {}
            Typed::Leave => return last,
            Typed::Refused(why) => println!("{why}"),
            Typed::Help(prefix) => link.complete(prefix).iter().for_each(|word| println!("{word}")),
            Typed::Command(command) => {
                let columns = crossterm::terminal::size().map_or(0, |(columns, _)| columns);
                match link.run(command, columns, &mut io::stdout()) {
                    Some(status) => last = status,
                    None => return disconnected(),
                }
            }
        }
    }
}

/// A terminal that is gone reads as an end for ever, and the editor would ask it again and again. The console of the
/// process lets go of it, and the process goes on; one that is a process of its own ends.
fn watch_terminal(seat: Seat) {
    let watched = ::io::process::when_terminal_goes(move |terminal| match seat {
        // Out of descriptors it costs a processor until somebody looks, and the calls go on.
        Seat::Local => drop(terminal.let_go()),
        Seat::Remote => std::process::exit(1),
    });
    // Without the thread everything works but this.
    drop(watched);
}

fn editor(
    options: &Options,
    printer: ExternalPrinter<String>,
    gone: &Arc<AtomicBool>,
    words: Words,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let list = ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, list.clone());
    for modifier in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
        keys.add_binding(modifier, KeyCode::Char('?'), list.clone());
    }
    // A question mark in a command is typed after Alt.
    let literal = ReedlineEvent::Edit(vec![EditCommand::InsertChar('?')]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Char('?'), literal);
    let menu = ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name(MENU)));
    let editor = Reedline::create()
        .with_completer(Box::new(words))
        .with_menu(menu)
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_external_printer(printer)
        .with_break_signal(gone.clone())
        .with_ansi_colors(options.color);
    let history =
        options.history.clone().and_then(|file| FileBackedHistory::with_file(HISTORY_LINES, file).ok());
    match history {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// Completion through the socket.
struct Words {
    link: Arc<std::sync::Mutex<Link>>,
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let typed = line.get(..pos).unwrap_or(line);
        let start = typed.rfind(' ').map_or(0, |blank| blank + 1);
        let words = self.link.lock().map(|mut link| link.complete(typed)).unwrap_or_default();
        let suggestions: Vec<Suggestion> = words
            .into_iter()
            .map(|value| Suggestion {
                value,
                span: Span { start, end: typed.len() },
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

struct HostPrompt {
    text: String,
}

impl Prompt for HostPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }
    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search) {}: ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_line_is_understood_before_it_is_sent() {
        use Seat::{Local, Remote};
        for (line, seat, expected) in [
            ("  \n", Remote, Typed::Nothing),
            ("exit\n", Remote, Typed::Leave),
            ("quit", Remote, Typed::Leave),
            ("core show channels \n", Remote, Typed::Command("core show channels")),
            ("core show ?\n", Remote, Typed::Help("core show ")),
            ("core sh?", Local, Typed::Help("core sh")),
        ] {
            assert_eq!(understand(line, seat), expected, "{line:?}");
        }
        assert!(matches!(understand("!rm -rf /", Remote), Typed::Refused(why) if why.contains("Shell")));
        assert!(matches!(understand("exit", Local), Typed::Refused(why) if why.contains("core stop")));
    }
}
