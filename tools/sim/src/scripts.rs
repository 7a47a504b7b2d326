//! Programs and servers that say what a test wrote down for them: one line, and the next when it was answered.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap, VecDeque};

use base::{Rows, RowsAsk};
use call::{LinkId, LinkNews, LinkWant, Links};

use crate::fakes::{Due, Shared, State};

/// The program that is not asked anything before it speaks.
const SHELL: &str = "/bin/sh";

/// What a program or server does. A web server's page is its lines, with `exit` as status (0: 200).
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Lines, each said so many milliseconds after the one before was answered.
    pub lines: Vec<(u64, String)>,
    /// The code that it exits with after its last line; a server takes its leave.
    pub exit: i32,
    /// It does not end after its last line.
    pub stays: bool,
    /// It ends when it hears of the end of the call.
    pub heeds: bool,
    /// Its lines do not wait for answers.
    pub hasty: bool,
    /// Each line comes so many milliseconds after it has begun, whatever it is told; then it ends, unless it stays.
    pub on_time: bool,
    /// It cannot be started or reached, for this reason.
    pub fails: Option<&'static str>,
}

impl Script {
    /// One that says these lines at once and ends well.
    pub fn of(lines: &[&str]) -> Self {
        Self { lines: lines.iter().map(|line| (0, (*line).to_owned())).collect(), ..Self::default() }
    }
}

pub(crate) struct Running {
    script: Script,
    left: VecDeque<(u64, String)>,
    news: VecDeque<LinkNews>,
    program: bool,
    closed: bool,
    over: bool,
}

/// Tables by the names of their families: columns, and rows of as many values.
pub(crate) type Tables = HashMap<String, (Vec<String>, Vec<Vec<String>>)>;

/// What a table answers: rows whose columns have these values, or begin with those that `LIKE` is given.
fn found(tables: &Tables, ask: &RowsAsk) -> Result<Rows, String> {
    let RowsAsk::Find { family, filters } = ask else { return Err("tables are only read here".to_owned()) };
    let (columns, rows) = tables.get(family).ok_or_else(|| format!("no family '{family}'"))?;
    let meets = |row: &Vec<String>, (condition, wanted): &(String, String)| {
        let (column, like) =
            condition.strip_suffix(" LIKE").map_or((condition.as_str(), false), |column| (column, true));
        let at = columns.iter().position(|known| known == column);
        let value = at.and_then(|at| row.get(at)).map(String::as_str).unwrap_or_default();
        match like {
            false => value == wanted,
            // `\_%` is what begins with `_`; `12_%` what begins with 12 and goes on.
            true => match wanted.strip_prefix("\\_") {
                Some(_) => value.starts_with('_'),
                None => {
                    value.strip_prefix(wanted.trim_end_matches("_%")).is_some_and(|rest| !rest.is_empty())
                }
            },
        }
    };
    let rows = rows.iter().filter(|row| filters.iter().all(|filter| meets(row, filter)));
    let rows = rows.map(|row| row.iter().cloned().map(Some).collect()).collect();
    Ok(Rows { columns: columns.clone(), rows, changed: 0 })
}

/// Scripts by name, and those that run.
#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) tables: Tables,
    pub(crate) known: HashMap<String, Script>,
    pub(crate) running: BTreeMap<LinkId, Running>,
    pub(crate) wanted: Vec<LinkWant>,
    next: u64,
}

impl Scripts {
    /// What is due happens; the link whose story has to be woken.
    pub(crate) fn deliver(&mut self, link: LinkId, line: Option<String>) {
        let Some(running) = self.running.get_mut(&link).filter(|running| !running.closed) else { return };
        match line {
            Some(line) => running.news.push_back(LinkNews::Bytes(line.into_bytes())),
            None if running.over => {}
            None => {
                running.over = true;
                running.news.push_back(LinkNews::End);
                if running.program {
                    running.news.push_back(LinkNews::Exited(Some(running.script.exit)));
                }
            }
        }
    }
}

/// Schedules all that a script does by the clock.
fn begin(state: &mut State, link: LinkId) {
    let Some(running) = state.scripts.running.get_mut(&link) else { return };
    let (left, stays) = (std::mem::take(&mut running.left), running.script.stays);
    let last = left.iter().map(|(after, _)| *after).max().unwrap_or(0);
    let lines = left.into_iter().map(|(after, line)| (after, Some(format!("{line}\n"))));
    for (after, line) in lines.chain((!stays).then_some((last, None))) {
        let when = state.now + Duration::from_millis(after);
        state.at(when, Due::Link(link, line));
    }
}

/// Schedules what a script does next.
fn go_on(state: &mut State, link: LinkId) {
    loop {
        let Some(running) = state.scripts.running.get_mut(&link) else { return };
        if running.script.on_time {
            return;
        }
        let (after, line) = match running.left.pop_front() {
            Some((after, line)) => (after, Some(format!("{line}\n"))),
            None if running.script.stays => return,
            None => (0, None),
        };
        let hasty = running.script.hasty && line.is_some();
        let when = state.now + Duration::from_millis(after);
        state.at(when, Due::Link(link, line));
        if !hasty {
            return;
        }
    }
}

pub(crate) struct Outside(pub(crate) Shared);

impl Links for Outside {
    fn open(&mut self, want: LinkWant) -> Result<LinkId, String> {
        let state = &mut *self.0.borrow_mut();
        let (name, program) = match &want {
            LinkWant::Program { path, .. } => (path.clone(), true),
            LinkWant::Server { hosts } => {
                let (host, port) = hosts.first().cloned().unwrap_or_default();
                (format!("{host}:{port}"), false)
            }
            LinkWant::Page(want) => (want.url.clone(), false),
            LinkWant::Rows(_) => ("a database".to_owned(), false),
        };
        let rows = match &want {
            LinkWant::Rows(want) => Some(found(&state.scripts.tables, &want.ask)),
            LinkWant::Program { .. } | LinkWant::Server { .. } | LinkWant::Page(_) => None,
        };
        let page = matches!(want, LinkWant::Page(_));
        let script = state.scripts.known.get(&name).cloned();
        state.scripts.wanted.push(want);
        state.scripts.next += 1;
        let link = LinkId(state.scripts.next);
        let failed = match &script {
            None => Some(LinkNews::Failed { not_found: program, why: "there is no such script".to_owned() }),
            Some(Script { fails: Some(why), .. }) => {
                Some(LinkNews::Failed { not_found: false, why: (*why).to_owned() })
            }
            Some(_) => None,
        };
        let known = script.is_some();
        let mut script = script.unwrap_or_default();
        script.hasty |= name == SHELL;
        let left = script.lines.iter().cloned().collect();
        let news = failed.unwrap_or(LinkNews::Open { address: None, audio: None });
        let news = match (&script.fails, page && known) {
            (None, true) => {
                let said: Vec<&str> = script.lines.iter().map(|(_, line)| line.as_str()).collect();
                let (status, head) =
                    (if script.exit == 0 { 200 } else { script.exit as u16 }, "HTTP/1.1 \r\n\r\n");
                LinkNews::Page { status, head: head.to_owned(), body: said.join("\n").into_bytes() }
            }
            (Some(_), _) | (None, false) => news,
        };
        let news = match rows {
            Some(Ok(rows)) => LinkNews::Rows(rows),
            Some(Err(why)) => LinkNews::Failed { not_found: false, why },
            None => news,
        };
        let on_time = script.on_time && script.fails.is_none();
        let running = Running { script, left, news: [news].into(), program, closed: false, over: false };
        state.scripts.running.insert(link, running);
        if name == SHELL {
            go_on(state, link);
        }
        if on_time {
            begin(state, link);
        }
        Ok(link)
    }
    fn take(&mut self, link: LinkId) -> Option<LinkNews> {
        self.0.borrow_mut().scripts.running.get_mut(&link)?.news.pop_front()
    }
    fn send(&mut self, link: LinkId, bytes: Vec<u8>) {
        let state = &mut *self.0.borrow_mut();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let hang_up = text == "HANGUP\n";
        for line in text.lines() {
            state.say(&format!("script {} reads {line}", link.0));
        }
        let Some(running) = state.scripts.running.get_mut(&link) else { return };
        if hang_up && !running.script.heeds {
            return;
        }
        if hang_up {
            running.left.clear();
            running.script.stays = false;
        }
        go_on(state, link);
    }
    fn hang_up(&mut self, link: LinkId) {
        let state = &mut *self.0.borrow_mut();
        state.say(&format!("script {} gets SIGHUP", link.0));
        let Some(running) = state.scripts.running.get_mut(&link) else { return };
        if running.script.heeds {
            running.left.clear();
            running.script.stays = false;
            go_on(state, link);
        }
    }
    fn close(&mut self, link: LinkId) {
        let state = &mut *self.0.borrow_mut();
        state.say(&format!("script {} is let go", link.0));
        state.scripts.running.remove(&link);
    }
}
