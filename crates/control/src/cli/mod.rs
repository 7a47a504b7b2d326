//! The commands of the console and of `-rx`: a table of rows, what is typed against them, and help and completion from
//! the same rows.
//!
//! A row's text is what administrators and their scripts know. `--json` gives the data of every `show` under the keys
//! that its row names. Nothing here runs a program of the system, waits, or stops the process itself: what takes time
//! is a [`Wish`](crate::site::Wish) to the engine.

mod admin;
mod agents;
mod agi;
mod ari;
mod bridges;
mod calls;
mod catalogue;
mod codecs;
mod conferences;
mod config;
mod database;
mod faults;
mod grammar;
mod history;
mod iax;
mod iax_set;
mod inside;
mod keys;
mod manager;
mod media;
mod minivm;
mod monitors;
mod parking;
mod peers;
mod plan;
mod plan_change;
mod process;
mod queues;
mod realtime;
mod rows;
mod sight;
mod sip;
mod sip_tables;
mod stir;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod voicemail;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::LazyLock;

use base::Instant;
use dialplan::Rights;
use serde::Serialize;

use crate::pages::Pages;
use crate::site::Site;
use crate::socket::{Answer, Call, Commands, View, Who};
pub(crate) use admin::{is_part, is_reloadable};
pub use faults::SWITCH as FAULT_INJECTION;
use grammar::{Args, CHOICE, Piece};
pub(crate) use iax::netstats_text as iax_netstats;

/// Most words that completion offers: more than anyone reads, and they fit one frame.
const COMPLETIONS_MAX: usize = 1_000;

/// What a manager user without the class `system` is told.
const OUTSIDE: &str = "Permission denied: this reaches beyond calls, which needs the class system\n";

/// How a command came out.
#[derive(Debug)]
pub(crate) enum Said {
    /// Done; what there is to say.
    Done(String),
    /// What it is about is not there, or it could not be done, and why.
    Failed(String),
    /// It was refused, and why; that the command has failed is added.
    Refused(String),
    /// Its arguments mean nothing; its usage is told.
    Usage,
    /// Done; what there is to say is made as it is sent.
    Pages(Pages),
    /// The answer comes by [`Cli::measured`] or [`Cli::finished`].
    Later,
}

impl Said {
    fn done(text: impl Into<String>) -> Self {
        Self::Done(text.into())
    }
    fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
    fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

/// A command as its code sees it.
pub(crate) struct Ask<'a> {
    args: Args,
    /// The line, cut into words.
    words: Vec<String>,
    session: u64,
    json: bool,
    may_wait: bool,
    may_reach_outside: bool,
    rights: Rights,
    /// Whose console it is, as far as that restricts what may be run.
    who: Option<Who>,
    view: &'a mut View,
}

impl Ask<'_> {
    /// An argument.
    fn arg(&self, name: &str) -> Option<&str> {
        self.args.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
    /// An argument that the shape makes sure of.
    fn need(&self, name: &str) -> &str {
        self.arg(name).unwrap_or_default()
    }
    /// Words that follow the first ones, each as it was typed in quotes or without.
    fn words_after(&self, first: usize) -> &[String] {
        self.words.get(first..).unwrap_or_default()
    }
    /// The word that was taken of several.
    fn choice(&self) -> Option<&str> {
        self.arg(CHOICE)
    }
    /// Answers a `show`: as data or as text, whichever is wanted.
    fn show<D: Serialize>(&self, data: impl FnOnce() -> D, text: impl FnOnce() -> String) -> Said {
        if !self.json {
            return Said::Done(text());
        }
        match serde_json::to_string(&data()) {
            Ok(data) => Said::Done(data + "\n"),
            Err(why) => Said::failed(format!("the answer cannot be written as JSON: {why}\n")),
        }
    }
}

/// One command.
pub(crate) struct Row {
    /// Its shape; see [`grammar`].
    shape: &'static str,
    /// Other shapes that mean the same: those of older versions and of `chan_sip`.
    also: &'static [&'static str],
    /// One line.
    summary: &'static str,
    /// What more there is to know; may be empty.
    detail: &'static str,
    /// Keys of its JSON, elements of lists in brackets; empty when it has none.
    keys: &'static str,
    run: fn(&Cli, &mut Ask<'_>) -> Said,
}

/// A command that does something.
const fn verb(shape: &'static str, summary: &'static str, run: fn(&Cli, &mut Ask<'_>) -> Said) -> Row {
    Row { shape, also: &[], summary, detail: "", keys: "", run }
}

/// A command that shows something, with its JSON keys.
const fn show(
    shape: &'static str,
    summary: &'static str,
    keys: &'static str,
    run: fn(&Cli, &mut Ask<'_>) -> Said,
) -> Row {
    Row { shape, also: &[], summary, detail: "", keys, run }
}

impl Row {
    const fn also(self, also: &'static [&'static str]) -> Self {
        Self { also, ..self }
    }
    const fn detail(self, detail: &'static str) -> Self {
        Self { detail, ..self }
    }
    fn usage(&self) -> String {
        let mut text = format!("Usage: {}\n       {}\n", self.shape, self.summary);
        for line in self.detail.lines() {
            let _ = writeln!(text, "       {line}");
        }
        if !self.also.is_empty() {
            let _ = writeln!(text, "       Also: {}", self.also.join(", "));
        }
        text
    }
}

/// The groups of the manual, and their rows.
const GROUPS: &[(&str, &[Row])] = &[
    ("Process", process::ROWS),
    ("Calls", calls::ROWS),
    ("Bridges", bridges::ROWS),
    ("Keys during a call", keys::ROWS),
    ("Conferences", conferences::ROWS),
    ("Voicemail", voicemail::ROWS),
    ("MiniVM", minivm::ROWS),
    ("Queues", queues::ROWS),
    ("Parking", parking::ROWS),
    ("STIR/SHAKEN", stir::ROWS),
    ("Agents", agents::ROWS),
    ("AGI", agi::ROWS),
    ("Recordings", monitors::ROWS),
    ("What there is", catalogue::ROWS),
    ("Inside the process", inside::ROWS),
    ("Formats", codecs::ROWS),
    ("Dialplan", plan::ROWS),
    ("Changes of the dialplan", plan_change::ROWS),
    ("SIP", sip::ROWS),
    ("SIP messages", history::ROWS),
    ("SIP in the words of chan_sip", peers::ROWS),
    ("IAX2", iax::ROWS),
    ("Faults of IAX2", iax_set::ROWS),
    ("Media", media::ROWS),
    ("How well media runs", sight::ROWS),
    ("Database", database::ROWS),
    ("Configuration in databases", realtime::ROWS),
    ("Rows of databases", rows::ROWS),
    ("Administration", admin::ROWS),
    ("Files of the configuration", config::ROWS),
    ("Manager interface", manager::ROWS),
    ("REST interface", ari::ROWS),
];

/// First words of commands of modules that are not there without their file.
const MODULES: &[(&str, &str)] = &[
    ("agent", "app_agent_pool"),
    ("confbridge", "app_confbridge"),
    ("iax2", "chan_iax2"),
    ("parking", "res_parking"),
    ("queue", "app_queue"),
];

struct Shape {
    row: &'static Row,
    pieces: Vec<Piece>,
    /// It is one of `also`: understood and not offered.
    old: bool,
}

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| rows().flat_map(shapes_of).collect());

/// Every shape of a row, its own first.
fn shapes_of(row: &'static Row) -> impl Iterator<Item = Shape> {
    let shape = move |text, old| Shape { row, pieces: grammar::parse(text), old };
    std::iter::once(shape(row.shape, false)).chain(row.also.iter().map(move |text| shape(text, true)))
}

fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|(_, rows)| rows.iter())
}

/// A manager client, for `manager show connected`.
struct Connected {
    session: u64,
    user: String,
    address: SocketAddr,
    since: Instant,
}

/// Every command, over the running system.
pub struct Cli {
    site: Rc<Site>,
    connected: BTreeMap<u64, Connected>,
    /// Levels of the console that belongs to the process.
    verbose: Cell<u8>,
    debug: Cell<u8>,
    /// Who waits for a measurement of the translations.
    waiting: RefCell<Vec<codecs::Waiting>>,
    /// What those hear who wait for a database.
    finished: Rc<RefCell<Vec<Finished>>>,
    /// Single commands that asked for the end, and wait for it.
    awaiting_end: RefCell<Vec<u64>>,
}

/// The answer to a command that was told to come later.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    /// Who asked.
    pub session: u64,
    /// What there is to say.
    pub text: String,
    /// The exit status.
    pub status: u8,
}

impl Cli {
    /// The commands of this system.
    pub fn new(site: Rc<Site>) -> Self {
        let (verbose, debug) = {
            let snapshot = site.snapshot.borrow();
            (snapshot.asterisk.options.verbose, snapshot.asterisk.options.debug)
        };
        let level = |level: u32| Cell::new(u8::try_from(level).unwrap_or(u8::MAX));
        Self {
            site,
            connected: BTreeMap::new(),
            verbose: level(verbose),
            debug: level(debug),
            waiting: RefCell::default(),
            finished: Rc::default(),
            awaiting_end: RefCell::default(),
        }
    }
    /// Those who wait for an end that somebody has called off, once.
    pub fn released(&self) -> Vec<u64> {
        let is_called_off = self.site.stopping.get().is_none() && !self.site.is_stop_wished();
        if is_called_off { self.awaiting_end.take() } else { Vec::new() }
    }
    /// Tells `manager show connected` who is logged in: session, user and address of each. The engine calls it when
    /// that may have changed.
    pub fn set_connected<'a>(&mut self, clients: impl Iterator<Item = (u64, &'a str, SocketAddr)>) {
        let now = self.site.shard.core.borrow().now;
        let mut before = std::mem::take(&mut self.connected);
        self.connected = clients
            .map(|(session, user, address)| {
                let known = before.remove(&session).filter(|known| known.user == user);
                let new = || Connected { session, user: user.to_owned(), address, since: now };
                (session, known.unwrap_or_else(new))
            })
            .collect();
    }

    fn help(&self, ask: &mut Ask<'_>) -> Said {
        let asked = grammar::words(ask.arg("command").unwrap_or_default());
        let exact = SHAPES.iter().filter(|shape| self.knows(ask.who, shape.row)).find(|shape| {
            grammar::leads(&shape.pieces, &asked).is_some_and(|count| count == asked.len() && count > 0)
        });
        let below = rows().filter(|row| self.knows(ask.who, row)).filter(|row| {
            let leading = grammar::parse(row.shape);
            asked.iter().enumerate().all(|(at, word)| {
                matches!(leading.get(at), Some(Piece::Word(known)) if known.eq_ignore_ascii_case(word))
            })
        });
        let listed: Vec<&Row> = below.collect();
        match exact.filter(|_| listed.len() <= 1) {
            Some(shape) => Said::Done(shape.row.usage()),
            None if listed.is_empty() => {
                Said::Failed(format!("No such command '{}'.\n", text::clean(ask.need("command"))))
            }
            None => Said::Done(listed.iter().fold(String::new(), |mut out, row| {
                let _ = writeln!(out, "{:>30}  {}", row.shape, row.summary);
                out
            })),
        }
    }

    /// The words an argument may be, by its name in the shape.
    fn candidates(&self, name: &str) -> Vec<String> {
        match name {
            "channel" | "channel|all" => self.channel_names(),
            "application" => self.applications().map(|row| row.name.to_owned()).collect(),
            "function" => self.function_names(),
            "endpoint" | "aor" | "auth" | "registration" | "transport" => self.sip_names(name),
            "iax-peer" => self.iax_peer_names(),
            "context" | "exten@context" => self.context_names(),
            "module" => admin::module_names(),
            "stir-profile" => self.site.snapshot.borrow().stir.profiles.keys().cloned().collect(),
            "config-module" => config::modules(),
            "action" => crate::ami::actions().map(|row| row.name.to_owned()).collect(),
            "event" => crate::ami::EVENTS.iter().map(|row| row.name.to_owned()).collect(),
            "technology" => inside::technologies(),
            "family" => self.families(),
            "level|off" => (0..=9).map(|level| level.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}

impl Commands for Cli {
    fn run(&mut self, call: Call<'_>) -> Answer {
        let words = grammar::words(call.line);
        let shapes = SHAPES.iter().chain(faults::shapes(self.site.fault_injection.get()));
        let found = fitting(shapes, &words).filter(|(_, row)| self.has(row));
        let Some((args, row)) = found else {
            return match self.aliased(call.line) {
                Some(line) if !line.is_empty() => self.run_as(call, &line),
                _ => self.misfit(call.line, &words, call.who),
            };
        };
        let Call { session, json, may_wait, may_reach_outside, rights, who, view, .. } = call;
        if who.is_some_and(|who| !self.may_run(who, &words, row)) {
            let line = text::clean(call.line);
            return Answer::refused(format!("You don't have permissions to run '{line}' command\n"));
        }
        let mut ask = Ask { args, words, session, json, may_wait, may_reach_outside, rights, who, view };
        match (row.run)(self, &mut ask) {
            Said::Done(text) => Answer::ok(text),
            Said::Pages(pages) => pages.or_whole().map_or_else(Answer::Pages, Answer::ok),
            Said::Later => Answer::Later,
            Said::Failed(text) | Said::Refused(text) if json && !row.keys.is_empty() => {
                Answer::failed(format!("{}\n", serde_json::json!({ "error": text.trim_end() })))
            }
            Said::Failed(text) => Answer::failed(text),
            Said::Refused(text) => {
                Answer::refused(format!("{text}Command '{}' failed.\n", text::clean(call.line.trim())))
            }
            Said::Usage => Answer::refused(row.usage()),
        }
    }
    fn complete(&mut self, line: &str, who: Option<Who>) -> Vec<String> {
        let mut words = grammar::words(line);
        let partial = if line.ends_with(char::is_whitespace) || line.is_empty() {
            String::new()
        } else {
            words.pop().unwrap_or_default()
        };
        let mut found = self.next_words(&words, who);
        for (alias, command) in &self.site.snapshot.borrow().aliases.known {
            let alias: Vec<&str> = alias.split_whitespace().collect();
            let same = words.iter().zip(&alias).all(|(word, known)| word.eq_ignore_ascii_case(known));
            match (same, alias.get(words.len()), words.get(alias.len()..)) {
                (true, Some(next), _) => found.extend([(*next).to_owned()]),
                (true, None, Some(rest)) => {
                    let whole: Vec<String> =
                        grammar::words(command).into_iter().chain(rest.iter().cloned()).collect();
                    found.extend(self.next_words(&whole, who));
                }
                _ => {}
            }
        }
        let fits = |word: &String| {
            word.get(..partial.len()).is_some_and(|start| start.eq_ignore_ascii_case(&partial))
        };
        found.into_iter().filter(fits).take(COMPLETIONS_MAX).collect()
    }
}

/// The command that fits most words, and its arguments.
fn fitting<'a>(shapes: impl Iterator<Item = &'a Shape>, words: &[String]) -> Option<(Args, &'static Row)> {
    let mut best: Option<(usize, Args, &'static Row)> = None;
    for shape in shapes {
        let mut args = Args::new();
        let Some(count) = grammar::fit(&shape.pieces, words, &mut args) else { continue };
        if best.as_ref().is_none_or(|(most, ..)| count > *most) {
            best = Some((count, args, shape.row));
        }
    }
    best.map(|(_, args, row)| (args, row))
}

impl Cli {
    /// The row of the command that these words are.
    fn row_of(words: &[String]) -> Option<&'static Row> {
        fitting(SHAPES.iter(), words).map(|(_, row)| row)
    }
    /// The words that may stand behind these.
    fn next_words(&self, words: &[String], who: Option<Who>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for shape in SHAPES.iter().filter(|shape| !shape.old && self.knows(who, shape.row)) {
            for piece in grammar::next(&shape.pieces, words) {
                match piece {
                    Piece::Word(known) => found.extend([known.to_owned()]),
                    Piece::Pick(known) => found.extend(known.into_iter().map(str::to_owned)),
                    Piece::Arg(name) | Piece::Rest(name) => found.extend(self.candidates(name)),
                    Piece::Maybe(_) => {}
                }
            }
        }
        found
    }
    /// The line that an alias of cli_aliases.conf makes of one.
    fn aliased(&self, line: &str) -> Option<String> {
        let snapshot = self.site.snapshot.borrow();
        snapshot.aliases.known.iter().find_map(|(alias, command)| {
            let mut rest = line.trim_start();
            for known in alias.split_whitespace() {
                let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                if !word.eq_ignore_ascii_case(known) {
                    return None;
                }
                rest = tail.trim_start();
            }
            Some(format!("{command} {rest}").trim_end().to_owned())
        })
    }
    /// Runs what an alias stands for; an alias of an alias stands for nothing.
    fn run_as(&mut self, call: Call<'_>, line: &str) -> Answer {
        let words = grammar::words(line);
        let fits = |shape: &&Shape| grammar::fit(&shape.pieces, &words, &mut Args::new()).is_some();
        match SHAPES.iter().any(|shape| fits(&shape)) {
            true => self.run(Call { line, ..call }),
            false => self.misfit(line, &words, call.who),
        }
    }
    /// A line that fits no shape: the usage of the commands it begins like, or the sentence for a command that is unknown.
    /// What somebody may not run is unknown to them.
    fn misfit(&self, line: &str, words: &[String], who: Option<Who>) -> Answer {
        let begun = |shape: &&Shape| grammar::leads(&shape.pieces, words).filter(|count| *count > 0);
        let known: Vec<&Shape> =
            SHAPES.iter().filter(|shape| self.knows(who, shape.row) && self.has(shape.row)).collect();
        let most = known.iter().filter_map(begun).max();
        // A command of one word, such as `reload`, is not meant by every line that begins with it.
        let Some(most) = most else {
            let like = |shape: &&Shape| grammar::likeness(&shape.pieces, words);
            return Answer::unknown(&text::clean(line), known.iter().map(like).max().unwrap_or(0));
        };
        let mut usage = String::new();
        let mut told: Vec<&str> = Vec::new();
        for shape in known.into_iter().filter(|shape| begun(shape) == Some(most)) {
            if !told.contains(&shape.row.shape) {
                told.push(shape.row.shape);
                usage.push_str(&shape.row.usage());
            }
        }
        Answer::refused(usage)
    }
    /// Whether the module that a command belongs to is there.
    fn has(&self, row: &Row) -> bool {
        let first = row.shape.split_whitespace().next().unwrap_or_default();
        let module = MODULES.iter().find(|(word, _)| *word == first).map(|(_, module)| *module);
        module.is_none_or(|module| self.site.is_configured(module))
    }
    /// Whether a command is offered to somebody: `cli_permissions.conf` lets them run it, at least without arguments.
    fn knows(&self, who: Option<Who>, row: &'static Row) -> bool {
        who.is_none_or(|who| self.may_run_some(who, row))
    }
}

/// The manual of all commands, as Markdown; `docs/commands.md` is this text.
pub fn manual() -> String {
    let mut out = String::from(
        "# Commands\n\n\
         What the console (`strowger -c`, `strowger -r`) and `strowger -rx 'COMMAND'` understand. `<name>` stands for an\n\
         argument, `[...]` for what may be left out, `a|b` for one of several words. `core show help COMMAND` says the same.\n\n\
         Every `show` takes `--json` (`strowger -rx 'core show channels' --json`): one line with an object whose keys are\n\
         listed at each command; in brackets the keys of a list's elements. Keys are stable: new ones may be added, none\n\
         changes its meaning. An error is `{\"error\": \"...\"}`. Commands that show nothing answer in text.\n\n\
         The exit status of `-rx` is 0 when the command was done, and 1 when it is unknown, its arguments mean nothing (its\n\
         usage is printed), or it could not be done. `!` and what else would run a program of the system do not exist here.\n",
    );
    for (group, rows) in GROUPS {
        let _ = write!(out, "\n## {group}\n");
        for row in *rows {
            let _ = write!(out, "\n### `{}`\n\n{}\n", row.shape, row.summary);
            if !row.detail.is_empty() {
                let _ = writeln!(out, "{}", row.detail);
            }
            if !row.also.is_empty() {
                let also: Vec<String> = row.also.iter().map(|shape| format!("`{shape}`")).collect();
                let _ = write!(out, "\nAlso: {}\n", also.join(", "));
            }
            if !row.keys.is_empty() {
                let _ = write!(out, "\nJSON: `{}`\n", row.keys);
            }
        }
    }
    out
}
