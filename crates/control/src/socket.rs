//! The control socket: how `strowger -rx` and the consoles talk to the running process.
//!
//! A frame is a length (four bytes, big endian, of what follows), a kind (one byte) and a body. A client asks one
//! thing at a time and reads until the answer is complete; log lines may stand between frames of an answer once it
//! has attached. Both ends are machines without a socket: bytes in, bytes out. What a command does is not known here;
//! that is `Commands`.

use std::collections::{BTreeMap, VecDeque};

use dialplan::Rights;
use store::config::logger::{Levels, LogLevel};

use crate::pages::Pages;
pub use store::config::permissions::Who;

/// Longest request: a command line of the shell's usual limit for one argument is far longer than any command.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Longest frame either side sends; longer answers are cut into several.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;
/// Requests one client may send ahead while a slow command runs.
pub const AHEAD_MAX: usize = 64;

/// The exit status of a command that the process does not know.
pub const STATUS_UNKNOWN: u8 = 1;

const RUN: u8 = 1;
const COMPLETE: u8 = 2;
const ATTACH: u8 = 3;
const TEXT: u8 = 0x81;
const DONE: u8 = 0x82;
const CANDIDATES: u8 = 0x83;
const LOG: u8 = 0x84;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a command; the answer is `Text` frames and one `Done`.
    Run {
        /// The command as it was typed.
        line: String,
        /// The answer is wanted as JSON.
        json: bool,
        /// Width of the terminal, 0 when there is none.
        columns: u16,
    },
    /// What the last word of a line may become; the answer is `Candidates`.
    Complete {
        /// The line up to the cursor.
        line: String,
    },
    /// Send log lines from here on; there is no answer.
    Attach {
        /// `-v`s: verbose lines up to this level.
        verbose: u8,
        /// `-d`s: debug lines up to this level.
        debug: u8,
    },
}

/// What the process sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A part of an answer.
    Text(String),
    /// The answer is complete.
    Done {
        /// What the client's exit status becomes.
        status: u8,
    },
    /// Words that may stand at the end of the line, sorted.
    Candidates(Vec<String>),
    /// A log line, without its newline.
    Log(String),
}

/// A frame that no version of this protocol sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed frame on the control socket")]
pub struct Malformed;

/// Cuts a byte stream into frames.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    read: usize,
}

impl Frames {
    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }
    /// The next whole frame as kind and body; `None` until more bytes come.
    fn next(&mut self) -> Result<Option<(u8, &[u8])>, Malformed> {
        let Some((length, rest)) = self.bytes.get(self.read..).and_then(<[u8]>::split_first_chunk::<4>)
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > FRAME_BYTES_MAX.max(REQUEST_BYTES_MAX) {
            return Err(Malformed);
        }
        let Some((&kind, body)) = rest.get(..length).and_then(<[u8]>::split_first) else { return Ok(None) };
        self.read += 4 + length;
        Ok(Some((kind, body)))
    }
    /// The next request.
    pub fn next_request(&mut self) -> Result<Option<Request>, Malformed> {
        self.next()?.map(|(kind, body)| Request::read(kind, body)).transpose()
    }
    /// The next reply.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Malformed> {
        self.next()?.map(|(kind, body)| Reply::read(kind, body)).transpose()
    }
}

fn write(kind: u8, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    out.push(kind);
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed)
}

/// `text` in pieces that fit a frame, cut between characters.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(FRAME_BYTES_MAX - 1));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

impl Request {
    /// Appends the frame to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Run { line, json, columns } => {
                write(RUN, &[&[u8::from(*json)], &columns.to_be_bytes(), line.as_bytes()], out);
            }
            Self::Complete { line } => write(COMPLETE, &[line.as_bytes()], out),
            Self::Attach { verbose, debug } => write(ATTACH, &[&[*verbose, *debug]], out),
        }
    }
    fn read(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        match (kind, body) {
            (RUN, [json, high, low, line @ ..]) => {
                let columns = u16::from_be_bytes([*high, *low]);
                Ok(Self::Run { line: text(line)?, json: *json != 0, columns })
            }
            (COMPLETE, line) => Ok(Self::Complete { line: text(line)? }),
            (ATTACH, [verbose, debug]) => Ok(Self::Attach { verbose: *verbose, debug: *debug }),
            _ => Err(Malformed),
        }
    }
}

impl Reply {
    /// Appends one frame, or several for a long text.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => pieces(text).for_each(|piece| write(TEXT, &[piece.as_bytes()], out)),
            Self::Done { status } => write(DONE, &[&[*status]], out),
            Self::Candidates(words) => {
                let list = words.join("\n");
                let end = list.floor_char_boundary(FRAME_BYTES_MAX - 1);
                write(CANDIDATES, &[list.get(..end).unwrap_or("").as_bytes()], out);
            }
            Self::Log(line) => pieces(line).for_each(|piece| write(LOG, &[piece.as_bytes()], out)),
        }
    }
    fn read(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        match (kind, body) {
            (TEXT, _) => Ok(Self::Text(text(body)?)),
            (DONE, [status]) => Ok(Self::Done { status: *status }),
            (CANDIDATES, _) => {
                let list = text(body)?;
                Ok(Self::Candidates(
                    list.split('\n').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
                ))
            }
            (LOG, _) => Ok(Self::Log(text(body)?)),
            _ => Err(Malformed),
        }
    }
}

/// What a client has chosen to see; commands such as `core set verbose` change it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// It is a console, not a single command.
    pub attached: bool,
    /// Verbose lines up to this level.
    pub verbose: u8,
    /// Debug lines up to this level.
    pub debug: u8,
    /// It wants no log for a while (`logger mute`).
    pub muted: bool,
    /// Levels that it does not want (`logger set level`).
    pub hidden: Levels,
}

impl View {
    /// Whether a line of this weight is shown.
    pub fn shows(self, weight: Weight) -> bool {
        self.attached
            && !self.muted
            && match weight {
                Weight::Of(level) => !self.hidden.contains(level),
                Weight::Verbose(level) => level <= self.verbose && !self.hidden.contains(LogLevel::Verbose),
                Weight::Debug(level) => level <= self.debug && !self.hidden.contains(LogLevel::Debug),
            }
    }
}

/// How much a console must want to see a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Errors, warnings and notices.
    Of(LogLevel),
    /// `VERBOSE[n]`.
    Verbose(u8),
    /// `DEBUG[n]`.
    Debug(u8),
}

/// A command as it reached the process.
#[derive(Debug)]
pub struct Call<'a> {
    /// The client, for an answer that comes later.
    pub session: u64,
    /// Who the kernel says it is; none of a manager client, whose classes say what it may.
    pub who: Option<Who>,
    /// The command without surrounding blanks.
    pub line: &'a str,
    /// The answer is wanted as JSON.
    pub json: bool,
    /// Width of the terminal, 0 when there is none.
    pub columns: u16,
    /// [`Answer::Later`] is welcome; else the answer has to come at once.
    pub may_wait: bool,
    /// The client may reach what lies outside of calls: files, the dialplan, any application.
    pub may_reach_outside: bool,
    /// What text of the client's may touch when it is evaluated.
    pub rights: Rights,
    /// What the client sees of the log.
    pub view: &'a mut View,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done {
        /// What it says, with its last newline.
        text: String,
        /// The exit status of `strowger -rx`; 0 for success.
        status: u8,
        /// It was refused. What merely is not there is no error for managers.
        refused: bool,
    },
    /// It is done, and what it says is made as it is sent.
    Pages(Pages),
    /// It goes on; `Sessions::finish` will be called for this session.
    Later,
}

/// Words of an unknown command, behind those that begin others, for which its sentence proposes to ask for help.
const UNKNOWN_WORDS: usize = 2;

impl Answer {
    /// Success.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::Done { text: text.into(), status: 0, refused: false }
    }
    /// What was asked for is not there, with what to say.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Done { text: text.into(), status: STATUS_UNKNOWN, refused: false }
    }
    /// Refused, with what to say.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Done { text: text.into(), status: STATUS_UNKNOWN, refused: true }
    }
    /// The sentence scripts know for a command that does not exist; `known` words of it begin commands.
    pub fn unknown(line: &str, known: usize) -> Self {
        let shown: Vec<&str> = line.split_whitespace().take(known + UNKNOWN_WORDS).collect();
        let shown = shown.join(" ");
        let text =
            format!("No such command '{line}' (type 'core show help {shown}' for other possible commands)\n");
        Self::refused(text)
    }
}

/// The commands behind the socket.
pub trait Commands {
    /// Runs one command.
    fn run(&mut self, call: Call<'_>) -> Answer;
    /// What the last word of `line` may become, in commands that this client may run; empty when nothing fits.
    fn complete(&mut self, line: &str, who: Option<Who>) -> Vec<String>;
}

/// What the owner of the socket is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to a client.
    Send(u64, Vec<u8>),
    /// Close a client that broke the protocol.
    Close(u64),
}

#[derive(Debug, Default)]
struct Session {
    frames: Frames,
    view: View,
    /// A command whose answer comes later is running.
    busy: bool,
    /// An answer of which a part is sent.
    pages: Option<Pages>,
    ahead: VecDeque<Request>,
    who: Option<Who>,
}

/// Every client of the control socket, under whatever number the owner gives it.
#[derive(Debug, Default)]
pub struct Sessions {
    table: BTreeMap<u64, Session>,
}

impl Sessions {
    /// A client has connected, who is this user.
    pub fn open(&mut self, session: u64, who: Option<Who>) {
        self.table.insert(session, Session { who, ..Session::default() });
    }
    /// A client is gone.
    pub fn closed(&mut self, session: u64) {
        self.table.remove(&session);
    }
    /// Bytes came from a client: runs what is complete in them.
    pub fn bytes(&mut self, session: u64, bytes: &[u8], commands: &mut dyn Commands, out: &mut Vec<Output>) {
        let Some(open) = self.table.get_mut(&session) else { return };
        open.frames.push(bytes);
        loop {
            match open.frames.next_request() {
                Ok(Some(request)) if open.ahead.len() < AHEAD_MAX => open.ahead.push_back(request),
                Ok(None) => break,
                Ok(Some(_)) | Err(Malformed) => {
                    self.table.remove(&session);
                    out.push(Output::Close(session));
                    return;
                }
            }
        }
        self.advance(session, commands, out);
    }
    /// A command that had been answered with `Later` is done.
    pub fn finish(
        &mut self,
        session: u64,
        text: &str,
        status: u8,
        commands: &mut dyn Commands,
        out: &mut Vec<Output>,
    ) {
        let Some(open) = self.table.get_mut(&session).filter(|open| open.busy) else { return };
        open.busy = false;
        out.push(Output::Send(session, done(text, status)));
        self.advance(session, commands, out);
    }
    /// Tells a client that waits beyond its answer that there is nothing more to wait for.
    pub fn release(&self, session: u64, out: &mut Vec<Output>) {
        if self.table.contains_key(&session) {
            out.push(Output::Send(session, done("", 0)));
        }
    }
    /// Clients to whom a part of an answer is sent.
    pub fn reading(&self) -> impl Iterator<Item = u64> {
        self.table.iter().filter(|(_, open)| open.pages.is_some()).map(|(session, _)| *session)
    }
    /// Sends the next page to a client that has room for it.
    pub fn turn_page(&mut self, session: u64, commands: &mut dyn Commands, out: &mut Vec<Output>) {
        let Some(open) = self.table.get_mut(&session) else { return };
        let Some(pages) = &open.pages else { return };
        let page = pages.next().unwrap_or_default();
        if !pages.is_over() {
            return out.push(Output::Send(session, text_frames(&page)));
        }
        open.pages = None;
        out.push(Output::Send(session, done(&page, 0)));
        self.advance(session, commands, out);
    }
    /// Shows a log line to the consoles that want it.
    pub fn log(&self, weight: Weight, line: &str, out: &mut Vec<Output>) {
        let mut frame = Vec::new();
        for (session, _) in self.table.iter().filter(|(_, open)| open.view.shows(weight)) {
            if frame.is_empty() {
                Reply::Log(line.to_owned()).write(&mut frame);
            }
            out.push(Output::Send(*session, frame.clone()));
        }
    }
    /// The most that any console wants to see, so that nothing is formatted for nobody.
    pub fn widest(&self) -> View {
        self.table.values().fold(View::default(), |widest, open| View {
            attached: widest.attached || open.view.attached,
            verbose: widest.verbose.max(open.view.verbose),
            debug: widest.debug.max(open.view.debug),
            muted: false,
            hidden: Levels::default(),
        })
    }
    /// How many clients there are.
    pub fn count(&self) -> usize {
        self.table.len()
    }

    fn advance(&mut self, session: u64, commands: &mut dyn Commands, out: &mut Vec<Output>) {
        let Some(open) = self.table.get_mut(&session) else { return };
        while !open.busy && open.pages.is_none() {
            let Some(request) = open.ahead.pop_front() else { return };
            match request {
                Request::Run { line, json, columns } => {
                    let view = &mut open.view;
                    match commands.run(Call {
                        session,
                        who: open.who,
                        line: line.trim(),
                        json,
                        columns,
                        may_wait: true,
                        may_reach_outside: true,
                        rights: Rights::ALL,
                        view,
                    }) {
                        Answer::Done { text, status, .. } => {
                            out.push(Output::Send(session, done(&text, status)));
                        }
                        Answer::Pages(pages) => open.pages = Some(pages),
                        Answer::Later => open.busy = true,
                    }
                }
                Request::Complete { line } => {
                    let mut words = commands.complete(&line, open.who);
                    words.sort_unstable();
                    words.dedup();
                    let mut frame = Vec::new();
                    Reply::Candidates(words).write(&mut frame);
                    out.push(Output::Send(session, frame));
                }
                Request::Attach { verbose, debug } => {
                    let hidden = Levels::default();
                    open.view = View { attached: true, verbose, debug, muted: false, hidden };
                }
            }
        }
    }
}

fn text_frames(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 16);
    Reply::Text(text.to_owned()).write(&mut bytes);
    bytes
}

fn done(text: &str, status: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 16);
    Reply::Text(text.to_owned()).write(&mut bytes);
    Reply::Done { status }.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two commands: `echo …` answers, `wait` answers later, `verbose N` changes the view.
    struct Demo;

    impl Commands for Demo {
        fn run(&mut self, call: Call<'_>) -> Answer {
            match call.line.split_once(' ') {
                _ if call.line == "wait" => Answer::Later,
                Some(("count", last)) => {
                    let mut numbers = 0..last.parse::<u32>().unwrap();
                    Answer::Pages(Pages::new(move |out| {
                        let Some(number) = numbers.next() else { return false };
                        out.push_str(&format!("{number:09}\n"));
                        true
                    }))
                }
                Some(("echo", rest)) => {
                    Answer::ok(format!("{rest} json={} columns={}\n", call.json, call.columns))
                }
                Some(("verbose", level)) => {
                    call.view.verbose = level.parse().unwrap();
                    Answer::ok("")
                }
                _ => Answer::unknown(call.line, 0),
            }
        }
        fn complete(&mut self, line: &str, _: Option<Who>) -> Vec<String> {
            ["wait", "echo"]
                .iter()
                .filter(|word| word.starts_with(line))
                .map(|&word| word.to_owned())
                .collect()
        }
    }

    fn run(line: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        Request::Run { line: line.to_owned(), json: true, columns: 80 }.write(&mut bytes);
        bytes
    }

    fn replies(out: &mut Vec<Output>, session: u64) -> Vec<Reply> {
        let mut frames = Frames::default();
        for output in out.drain(..) {
            let Output::Send(to, bytes) = output else { panic!("{output:?}") };
            assert_eq!(to, session);
            frames.push(&bytes);
        }
        std::iter::from_fn(|| frames.next_reply().unwrap()).collect()
    }

    #[test]
    fn every_request_and_reply_survives_the_wire_cut_anywhere() {
        let requests = [
            Request::Run { line: "core show channels".into(), json: false, columns: 132 },
            Request::Complete { line: "core sh".into() },
            Request::Attach { verbose: 3, debug: 1 },
        ];
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| request.write(&mut bytes));
        let mut frames = Frames::default();
        let mut seen = Vec::new();
        for byte in bytes {
            frames.push(&[byte]);
            seen.extend(frames.next_request().unwrap());
        }
        assert_eq!(seen, requests);
        let replies = [
            Reply::Text("é\n".into()),
            Reply::Done { status: 1 },
            Reply::Candidates(vec!["a".into(), "b".into()]),
            Reply::Candidates(vec![]),
            Reply::Log("[notice] x".into()),
        ];
        let mut frames = Frames::default();
        for reply in replies {
            let mut bytes = Vec::new();
            reply.write(&mut bytes);
            frames.push(&bytes);
            assert_eq!(frames.next_reply(), Ok(Some(reply)));
        }
    }

    #[test]
    fn a_long_answer_comes_in_frames_that_are_cut_between_characters() {
        let long = "é".repeat(FRAME_BYTES_MAX);
        let bytes = done(&long, 0);
        let mut frames = Frames::default();
        frames.push(&bytes);
        let mut all = String::new();
        let mut count = 0;
        while let Some(Reply::Text(part)) = frames.next_reply().unwrap() {
            all.push_str(&part);
            count += 1;
        }
        assert_eq!((all, count), (long, 3));
    }

    #[test]
    fn an_unknown_command_is_named_and_its_status_is_not_zero() {
        let mut sessions = Sessions::default();
        let mut out = Vec::new();
        sessions.open(1, None);
        sessions.bytes(1, &run(" sip reload "), &mut Demo, &mut out);
        let text =
            "No such command 'sip reload' (type 'core show help sip reload' for other possible commands)\n";
        assert_eq!(replies(&mut out, 1), [Reply::Text(text.into()), Reply::Done { status: 1 }]);
    }

    #[test]
    fn what_is_sent_ahead_of_a_slow_command_waits_for_its_answer() {
        let mut sessions = Sessions::default();
        let mut out = Vec::new();
        sessions.open(1, None);
        sessions.bytes(1, &[run("wait"), run("echo two")].concat(), &mut Demo, &mut out);
        assert_eq!(out, []);
        sessions.finish(1, "one\n", 0, &mut Demo, &mut out);
        let two = Reply::Text("two json=true columns=80\n".into());
        let ok = Reply::Done { status: 0 };
        assert_eq!(replies(&mut out, 1), [Reply::Text("one\n".into()), ok.clone(), two, ok]);
        sessions.finish(1, "twice\n", 0, &mut Demo, &mut out);
        assert_eq!(out, []);
    }

    #[test]
    fn an_answer_of_pages_is_sent_as_it_is_read_and_what_was_sent_ahead_waits_for_its_end() {
        let mut sessions = Sessions::default();
        let mut out = Vec::new();
        sessions.open(1, None);
        sessions.open(2, None);
        sessions.bytes(1, &[run("count 10000"), run("echo two")].concat(), &mut Demo, &mut out);
        assert_eq!(out, [], "nothing is made before there is room for it");
        sessions.bytes(2, &run("echo other"), &mut Demo, &mut out);
        assert_eq!(replies(&mut out, 2).len(), 2, "another is answered meanwhile");
        let mut got = String::new();
        let mut turns = 0;
        let last = loop {
            assert_eq!(sessions.reading().collect::<Vec<_>>(), [1]);
            sessions.turn_page(1, &mut Demo, &mut out);
            turns += 1;
            let mut said = replies(&mut out, 1);
            let Reply::Text(text) = said.remove(0) else { panic!("a page") };
            got.push_str(&text);
            if !said.is_empty() {
                break said;
            }
        };
        assert_eq!((got.lines().count(), got.len()), (10_000, 100_000));
        assert_eq!(turns, 100_000_usize.div_ceil(crate::pages::PAGE_BYTES));
        let two = Reply::Text("two json=true columns=80\n".into());
        assert_eq!(last, [Reply::Done { status: 0 }, two, Reply::Done { status: 0 }]);
        assert_eq!(sessions.reading().next(), None);
    }

    #[test]
    fn log_lines_reach_the_consoles_that_want_them_and_no_single_command() {
        let mut sessions = Sessions::default();
        let mut out = Vec::new();
        let attach = |verbose| {
            let mut bytes = Vec::new();
            Request::Attach { verbose, debug: 0 }.write(&mut bytes);
            bytes
        };
        (1..=3).for_each(|session| sessions.open(session, None));
        sessions.bytes(1, &attach(3), &mut Demo, &mut out);
        sessions.bytes(2, &attach(0), &mut Demo, &mut out);
        sessions.log(Weight::Verbose(2), "two", &mut out);
        assert_eq!(replies(&mut out, 1), [Reply::Log("two".into())]);
        sessions.log(Weight::Of(LogLevel::Error), "all", &mut out);
        assert_eq!(out.drain(..).count(), 2);
        sessions.bytes(1, &run("verbose 1"), &mut Demo, &mut out);
        assert_eq!(replies(&mut out, 1), [Reply::Done { status: 0 }]);
        sessions.log(Weight::Verbose(2), "two", &mut out);
        sessions.log(Weight::Debug(1), "debug", &mut out);
        assert_eq!(out, []);
        for (levels, hears) in [(&[LogLevel::Error][..], false), (&[], true), (&[LogLevel::Warning], true)] {
            if let Some(open) = sessions.table.get_mut(&1) {
                open.view.hidden = Levels::default();
                levels.iter().for_each(|level| open.view.hidden.insert(*level));
            }
            sessions.log(Weight::Of(LogLevel::Error), "x", &mut out);
            let told = out.drain(..).filter(|output| matches!(output, Output::Send(1, _))).count();
            assert_eq!(told, usize::from(hears), "{levels:?}");
        }
        assert_eq!(sessions.widest(), View { attached: true, verbose: 1, ..View::default() });
        sessions.closed(1);
        sessions.closed(2);
        assert_eq!((sessions.count(), sessions.widest().attached), (1, false));
    }

    #[test]
    fn completion_is_sorted_and_without_doubles() {
        let mut sessions = Sessions::default();
        let mut out = Vec::new();
        sessions.open(9, None);
        let mut bytes = Vec::new();
        Request::Complete { line: String::new() }.write(&mut bytes);
        sessions.bytes(9, &bytes, &mut Demo, &mut out);
        assert_eq!(replies(&mut out, 9), [Reply::Candidates(vec!["echo".into(), "wait".into()])]);
    }

    #[test]
    fn a_client_that_breaks_the_protocol_or_runs_far_ahead_is_closed_and_its_neighbour_is_served() {
        let mut too_many = run("wait");
        (0..=AHEAD_MAX).for_each(|_| too_many.extend(run("echo x")));
        let broken: [(&str, &[u8]); 5] = [
            ("longer than any frame", &[0xff, 0xff, 0xff, 0xff, RUN]),
            ("empty frame", &[0, 0, 0, 0]),
            ("unknown kind", &[0, 0, 0, 1, 0x7f]),
            ("text that is not UTF-8", &[0, 0, 0, 5, RUN, 0, 0, 0, 0xff]),
            ("too far ahead", &too_many),
        ];
        for (what, bytes) in broken {
            let mut sessions = Sessions::default();
            let mut out = Vec::new();
            sessions.open(1, None);
            sessions.open(2, None);
            sessions.bytes(1, bytes, &mut Demo, &mut out);
            assert_eq!(out.pop(), Some(Output::Close(1)), "{what}");
            out.clear();
            sessions.bytes(2, &run("echo still"), &mut Demo, &mut out);
            assert_eq!(replies(&mut out, 2).len(), 2, "{what}");
        }
    }
}
