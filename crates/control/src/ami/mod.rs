//! The manager protocol (AMI): actions in, responses and events out, for programs that steer a PBX.
//!
//! A machine without a socket: the engine hands it bytes and notices and carries out what it says. It knows nothing of
//! how a call is placed or ended; that is the call core's and the applications'. Every permission is asked for at one
//! place, before an action is dispatched, from the row that describes the action.

mod actions;
pub(crate) mod capability;
mod charge;
mod events;
mod filter;
mod login;
mod manual;
mod packet;
mod parking;
mod queues;
mod refusals;
mod session;
mod table;
#[cfg(test)]
mod tests;
mod web;

pub(crate) use actions::{TECHNOLOGIES, agi_allowed, penalty_shift};

use core::time::Duration;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use apps::originate::Placed;
use base::Instant;
use call::{Attempt, Level, Notice};
use store::config::manager::Classes;

use crate::crowd::Crowd;
use crate::site::Site;
use crate::socket::{Commands, Output};

pub(crate) use events::presentation_words;
pub use events::{EVENTS, EventRow, bridge_name};
pub(crate) use login::is_home;
pub use manual::manual;
pub use packet::{ACTION_BYTES_MAX, Action, HEADERS_MAX, LINE_BYTES_MAX, STRANGER_BYTES_MAX};
pub use table::{ActionRow, Field, actions};
pub(crate) use web::escaped;
pub use web::{WebAnswer, WebForm, WebRequest};

use events::{Ages, Event, channels_of, event_of, fully_booted};
use packet::{Framed, Message};
use session::{AHEAD_BYTES_MAX, Busy, HELD_BYTES_MAX, Login, Session, Stage};
use table::{After, Refusal, Turn};

/// The version of the protocol that the greeting names: clients take the form of the events from it.
pub const PROTOCOL_VERSION: &str = "12.0.0";
/// Sessions at once; a wallboard has one, a large call centre some hundred.
pub const SESSIONS_MAX: usize = 1024;
/// Sessions that one address may have before they log in: slow ones must not take everybody's place.
pub const STRANGERS_OF_ADDRESS_MAX: usize = 32;
/// How long a stranger may take, when `authtimeout` is not written: programs log in within milliseconds.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(5);

/// What most answers have room in, bytes: so many make no second allocation.
const ANSWER_BYTES: usize = 256;

/// An answer that comes when something has ended.
pub(crate) struct Later {
    session: u64,
    outcome: Outcome,
}

/// What has ended.
pub(crate) enum Outcome {
    /// A call was placed, or not.
    Placed(Placed),
    /// A story, which says the whole answer.
    Said(String),
}

/// All sessions of the manager protocol.
pub struct Manager {
    site: Rc<Site>,
    sessions: BTreeMap<u64, Session>,
    commands: Option<Rc<RefCell<dyn Commands>>>,
    later: Rc<RefCell<Vec<Later>>>,
    authenticated: Vec<u64>,
    /// What a reload had to say to sessions.
    pending: Vec<Output>,
    login_timeout: Duration,
    strangers_max: usize,
    disabled_events: Vec<String>,
    /// Events say what this system is called.
    names_system: bool,
    channel_variables: Vec<String>,
    webs: web::Webs,
    /// Sessions that have more to say than the turn had room for, in order.
    waiting: VecDeque<u64>,
    turn: Share,
}

/// How long managers may have one turn of the engine for all that they say, before the network is served again. A single
/// action takes less: what it evaluates and lists is bounded.
const TURN_MAX: Duration = Duration::from_millis(2);

/// The part of a turn that managers have.
struct Share {
    clock: fn() -> Instant,
    began: Option<Instant>,
}

impl Share {
    fn begin(&mut self) {
        self.began.get_or_insert_with(self.clock);
    }
    fn is_over(&self) -> bool {
        self.began.is_some_and(|began| (self.clock)().since(began) >= TURN_MAX)
    }
    fn end(&mut self) {
        self.began = None;
    }
}

impl Manager {
    /// A manager without sessions; [`Manager::configure`] follows.
    pub fn new(site: Rc<Site>) -> Self {
        Self {
            site,
            sessions: BTreeMap::new(),
            commands: None,
            later: Rc::default(),
            authenticated: Vec::new(),
            pending: Vec::new(),
            login_timeout: LOGIN_TIMEOUT,
            strangers_max: STRANGERS_OF_ADDRESS_MAX,
            disabled_events: Vec::new(),
            names_system: false,
            channel_variables: Vec::new(),
            webs: web::Webs::default(),
            waiting: VecDeque::new(),
            turn: Share { clock: || Instant::ZERO, began: None },
        }
    }
    /// Gives the clock by which turns are shared; without one they are not.
    pub fn set_clock(&mut self, clock: fn() -> Instant) {
        self.turn.clock = clock;
    }
    /// Gives the action `Command` its console.
    pub fn set_commands(&mut self, commands: Rc<RefCell<dyn Commands>>) {
        self.commands = Some(commands);
    }
    /// Takes `manager.conf` from the site's snapshot: after the start and after each reload. Users who are gone from it
    /// are closed by the next [`Manager::flush`]; the others go on with what they may do from here on.
    pub fn configure(&mut self) {
        let snapshot = self.site.snapshot.borrow().clone();
        let general = &snapshot.manager.general;
        self.login_timeout = if general.origin.has("authtimeout") {
            Duration::from_secs(general.authtimeout.into())
        } else {
            LOGIN_TIMEOUT
        };
        self.strangers_max = usize::try_from(general.authlimit).unwrap_or(usize::MAX);
        self.disabled_events.clone_from(&general.disabledevents);
        self.names_system = general.displaysystemname;
        self.channel_variables.clone_from(&general.channelvars);
        let gone: Vec<u64> = self
            .sessions
            .iter_mut()
            .filter_map(|(id, session)| {
                let gone = session.login_mut().is_some_and(|login| !login::refresh(login, &snapshot));
                gone.then_some(*id)
            })
            .collect();
        for id in gone {
            self.forget(id);
            self.pending.push(Output::Close(id));
        }
    }
    /// A client has connected: greets it, or closes it when there are too many.
    ///
    /// When all places of strangers are taken, the address that has most of them gives up its oldest: connections that say
    /// nothing must not keep out who has something to say.
    pub fn open(&mut self, session: u64, peer: SocketAddr, now: Instant, out: &mut Vec<Output>) {
        if !self.has_room(peer.ip(), out) {
            return self.refuse(session, peer.ip().to_canonical(), out);
        }
        self.sessions.insert(session, Session::new(peer, now + self.login_timeout));
        let greeting = format!("Asterisk Call Manager/{PROTOCOL_VERSION}\r\n");
        out.push(Output::Send(session, greeting.into_bytes()));
    }
    fn refuse(&self, session: u64, ip: IpAddr, out: &mut Vec<Output>) {
        self.log(Level::Warning, &format!("connection of {ip} refused: too many sessions"));
        out.push(Output::Close(session));
    }
    /// Whether a stranger of this address has a place, for which another one may have had to go.
    fn has_room(&mut self, address: IpAddr, out: &mut Vec<Output>) -> bool {
        let strangers = self.strangers();
        let own = strangers.from(address);
        if own >= STRANGERS_OF_ADDRESS_MAX {
            return false;
        }
        if self.sessions.len() < SESSIONS_MAX && strangers.len() < self.strangers_max {
            return true;
        }
        match strangers.most() {
            Some((count, oldest)) if count > own => {
                self.close(oldest, out);
                true
            }
            _ => false,
        }
    }
    /// Sessions that nobody has logged in on.
    fn strangers(&self) -> Crowd {
        let stranger = |(id, session): (&u64, &Session)| match session.stage {
            Stage::Stranger(until) => Some((until, *id, session.peer.ip())),
            Stage::User(_) => None,
        };
        let mut strangers: Vec<_> = self.sessions.iter().filter_map(stranger).collect();
        strangers.sort_unstable();
        Crowd::of(strangers.into_iter().map(|(_, id, address)| (id, address)))
    }
    /// Bytes came from a client: carries out what is complete in them, as far as this turn reaches.
    pub fn bytes(&mut self, session: u64, bytes: &[u8], now: Instant, out: &mut Vec<Output>) {
        let Some(open) = self.sessions.get_mut(&session) else { return };
        let is_first = self.waiting.is_empty() || open.login().is_none();
        if is_first && open.ahead.is_empty() {
            let taken = self.carry_on(session, bytes, now, out);
            self.keep_ahead(session, bytes.get(taken..).unwrap_or_default(), out);
        } else {
            self.keep_ahead(session, bytes, out);
        }
        self.answer_later(now, out);
        self.web_settle(out);
    }
    /// Keeps what a client has sent for a later turn.
    fn keep_ahead(&mut self, session: u64, bytes: &[u8], out: &mut Vec<Output>) {
        let Some(open) = self.sessions.get_mut(&session).filter(|_| !bytes.is_empty()) else { return };
        open.ahead.extend_from_slice(bytes);
        if open.ahead.len() > AHEAD_BYTES_MAX {
            return self.close(session, out);
        }
        if open.busy.is_none() && !self.waiting.contains(&session) {
            self.waiting.push_back(session);
        }
    }
    /// Carries out what is complete in these bytes until something has to be waited for or the turn is over; how many of
    /// them are done with.
    fn carry_on(&mut self, session: u64, bytes: &[u8], now: Instant, out: &mut Vec<Output>) -> usize {
        let mut taken = 0;
        // Line by line, because a login in the midst of them changes what the rest may be.
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_over = self.turn.is_over();
            let Some(open) = self.sessions.get_mut(&session) else { return bytes.len() };
            let stranger = open.login().is_none();
            if open.busy.is_some() || is_over && !stranger {
                return taken;
            }
            taken += piece.len();
            open.framer.push(piece, if stranger { STRANGER_BYTES_MAX } else { ACTION_BYTES_MAX });
            if stranger && open.framer.is_broken() {
                self.close(session, out);
                return bytes.len();
            }
            match open.framer.next() {
                None => {}
                Some(Framed::TooLarge(action, why)) => {
                    let mut text = String::new();
                    Message::response("Error", action.get("ActionID"), &mut text).field("Message", why).end();
                    out.push(Output::Send(session, text.into_bytes()));
                }
                Some(Framed::Action(action)) => {
                    self.turn.begin();
                    self.act(session, &action, now, out);
                }
            }
        }
        taken
    }
    /// Sessions whose words waited for this turn go on with them, each in its order.
    fn go_on(&mut self, now: Instant, out: &mut Vec<Output>) {
        for _ in 0..self.waiting.len() {
            if self.turn.is_over() {
                return;
            }
            let Some(session) = self.waiting.pop_front() else { return };
            self.resume(session, now, out);
        }
    }
    /// A client is gone.
    pub fn closed(&mut self, session: u64) {
        self.forget(session);
    }
    /// Closes strangers whose time is up and ends waits.
    pub fn due(&mut self, now: Instant, out: &mut Vec<Output>) {
        let due: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.deadline().is_some_and(|at| at <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            match self.sessions.get(&id).map(|session| &session.stage) {
                Some(Stage::Stranger(_)) => self.close(id, out),
                Some(Stage::User(_)) if self.sessions.get(&id).is_some_and(|own| own.busy.is_some()) => {
                    self.end_wait(id, String::new(), now, out);
                }
                // Over HTTP: no request has come for a while.
                Some(Stage::User(_)) => self.close(id, out),
                None => {}
            }
        }
        self.go_on(now, out);
        self.answer_later(now, out);
        self.web_settle(out);
    }
    /// When [`Manager::due`] next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        // Who waits for a turn has the next one.
        let at_once = (!self.waiting.is_empty()).then_some(Instant::ZERO);
        self.sessions.values().filter_map(Session::deadline).chain(at_once).min()
    }
    /// Tells sessions what happened, each what it may and wants to hear. An event is written once for all of them.
    pub fn notices(&mut self, notices: &[Notice], out: &mut Vec<Output>) {
        let (now, wall) = self.times();
        if self.watching() {
            let ages = self.ages(now);
            let events: Vec<Event> = notices
                .iter()
                // What programs of ARI hear of their calls is theirs.
                .filter(|notice| !matches!(notice, Notice::Stasis(_)))
                .map(|notice| self.with_variables(notice, event_of(notice, ages)))
                .filter(|event| {
                    !self.disabled_events.iter().any(|name| name.eq_ignore_ascii_case(event.name))
                })
                .collect();
            let ids: Vec<u64> = self.sessions.keys().copied().collect();
            for id in ids {
                self.tell(id, &events, wall, now, out);
            }
        }
        self.answer_later(now, out);
        self.web_settle(out);
    }
    /// Whether some session wants events.
    pub fn watching(&self) -> bool {
        self.sessions.values().any(|session| match (session.login(), &session.busy) {
            (Some(_), Some(_)) => true,
            (Some(login), None) => login.read.intersects(login.wanted),
            (None, _) => false,
        })
    }
    /// Whether some session wants events of the class that those of RTCP have.
    pub fn wants_reports(&self) -> bool {
        !self.sessions.is_empty()
            && Classes::named("reporting")
                .is_some_and(|class| self.sessions.values().any(|session| session.hears(class)))
    }
    /// Sessions that logged in since this was last asked.
    pub fn authenticated(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.authenticated)
    }
    /// Sends what has come up apart from bytes, notices and deadlines; the engine calls it each turn.
    pub fn flush(&mut self, out: &mut Vec<Output>) {
        self.turn.end();
        out.append(&mut self.pending);
        if !self.later.borrow().is_empty() {
            let (now, _) = self.times();
            self.answer_later(now, out);
        }
        self.web_settle(out);
    }
    /// Who is logged in: session, user and address.
    pub fn connected(&self) -> impl Iterator<Item = (u64, &str, SocketAddr)> {
        self.sessions
            .iter()
            .filter_map(|(id, session)| session.login().map(|login| (*id, login.user.as_str(), session.peer)))
    }

    /// Adds what `channelvars` asks for, as the channel has it at this moment; a channel that is gone has none.
    fn with_variables(&self, notice: &Notice, mut event: Event) -> Event {
        if self.channel_variables.is_empty() {
            return event;
        }
        let core = self.site.shard.core.borrow();
        for (prefix, of) in channels_of(notice) {
            let Some(channel) = core.by_name(&of.name).and_then(|id| core.get(id)) else { continue };
            for name in &self.channel_variables {
                event.add_variable(prefix, name, channel.vars.get_name(name).unwrap_or_default());
            }
        }
        event
    }
    fn times(&self) -> (Instant, i64) {
        let core = self.site.shard.core.borrow();
        (core.now, core.services.wall.now_micros())
    }
    fn ages(&self, now: Instant) -> Ages {
        Ages {
            uptime: now.since(self.site.started).as_secs(),
            last_reload: now.since(self.site.reloaded.get()).as_secs(),
        }
    }
    fn log(&self, level: Level, text: &str) {
        self.site.shard.core.borrow_mut().log(level, "manager", text);
    }
    fn close(&mut self, id: u64, out: &mut Vec<Output>) {
        self.forget(id);
        out.push(Output::Close(id));
    }
    fn forget(&mut self, id: u64) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.waiting.retain(|waiting| *waiting != id);
        if let Some(web) = &session.web {
            self.web_forget(id, web);
        }
        if let Some(login) = session.login().filter(|login| login.is_told) {
            let text =
                format!("Manager '{}' logged off from {}", login.user, session.peer.ip().to_canonical());
            self.log(Level::Verbose(2), &text);
        }
    }

    /// Carries one action out and sends its answer. The one gate: nothing is dispatched that the user may not do.
    fn act(&mut self, id: u64, action: &Action, now: Instant, out: &mut Vec<Output>) {
        let again = action.get("Username").is_some_and(|user| self.is_elsewhere(id, user));
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let (site, later, commands) = (&self.site, &self.later, self.commands.as_ref());
        let mut turn = Turn {
            site,
            session,
            id,
            action,
            commands,
            later,
            again,
            now,
            out: String::with_capacity(ANSWER_BYTES),
        };
        let done = match permitted(&turn) {
            Ok(run) => catch_unwind(AssertUnwindSafe(|| run(&mut turn))),
            Err(refusal) => Ok(Err(refusal)),
        };
        let mut answer = turn.out;
        let after = match done {
            Ok(Ok(after)) => after,
            Ok(Err(Refusal(why))) => {
                answer.clear();
                refused(&mut answer, action.get("ActionID"), &why);
                After::Go
            }
            Err(_) => {
                answer.clear();
                self.log(Level::Error, "an action panicked; its session is ended");
                After::Close
            }
        };
        if !answer.is_empty() {
            out.push(Output::Send(id, answer.into_bytes()));
        }
        match after {
            After::Go => {}
            After::Close => self.close(id, out),
            After::Wait(busy) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.busy = Some(busy);
                }
            }
            After::LoggedIn(login) => self.welcome(id, login, now, out),
        }
    }
    fn is_elsewhere(&self, id: u64, user: &str) -> bool {
        self.sessions.iter().any(|(other, session)| *other != id && login::is(&session.stage, user))
    }
    fn welcome(&mut self, id: u64, mut login: Box<Login>, now: Instant, out: &mut Vec<Output>) {
        let (_, since) = self.times();
        login.since = since;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let told = login
            .is_told
            .then(|| format!("Manager '{}' logged on from {}", login.user, session.peer.ip().to_canonical()));
        let (account, peer) = (login.user.clone(), session.peer);
        session.stage = Stage::User(login);
        if session.web.is_none() {
            self.authenticated.push(id);
        }
        if let Some(text) = told {
            self.log(Level::Verbose(2), &text);
        }
        let mut core = self.site.shard.core.borrow_mut();
        core.tell_attempt(|_| Attempt {
            since: Some(since),
            ..login::attempt(&self.site, "SuccessfulAuth", peer, id, &account)
        });
        drop(core);
        let (_, wall) = self.times();
        // No filter of the user's own holds this one back.
        let filters = self
            .sessions
            .get_mut(&id)
            .and_then(Session::login_mut)
            .map(|login| std::mem::take(&mut login.filters));
        let booted = fully_booted(self.ages(now));
        self.tell(id, &[booted], wall, now, out);
        if let (Some(filters), Some(login)) =
            (filters, self.sessions.get_mut(&id).and_then(Session::login_mut))
        {
            login.filters = filters;
        }
    }
    /// Sends a session those of the events that it hears.
    fn tell(&mut self, id: u64, events: &[Event], wall: i64, now: Instant, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(login) = session.login() else { return };
        let stamp = login.timestamps.then_some(wall);
        let settings = self.names_system.then(|| self.site.shard.core.borrow().settings.clone());
        let system = settings.as_ref().map_or("", |settings| &settings.system_name);
        let mut text = String::new();
        for event in events.iter().filter(|event| session.hears(event.class)) {
            if login.filters.pass(event) {
                event.write(stamp, system, &mut text);
            }
        }
        if text.is_empty() {
            return;
        }
        if matches!(session.busy, Some(Busy::Event { .. })) {
            return self.end_wait(id, text, now, out);
        }
        if let Some(Session { busy: Some(Busy::Pages { held, .. }), web: None, .. }) =
            self.sessions.get_mut(&id)
        {
            held.push_str(&text);
            if held.len() > HELD_BYTES_MAX {
                self.close(id, out);
            }
            return;
        }
        match self.sessions.get_mut(&id).and_then(|session| session.web.as_mut()) {
            None => out.push(Output::Send(id, text.into_bytes())),
            // Waits until the client fetches it; who leaves too much is treated as one who does not read.
            Some(web) => {
                if !web.keep(&text) {
                    self.close(id, out);
                }
            }
        }
    }
    /// Sessions to which a part of an answer is sent.
    pub fn reading(&self) -> impl Iterator<Item = u64> {
        let reads = |session: &Session| matches!(session.busy, Some(Busy::Pages { .. }));
        self.sessions.iter().filter(move |(_, session)| reads(session)).map(|(id, _)| *id)
    }
    /// Sends the next page to a session that has room for it.
    pub fn turn_page(&mut self, id: u64, now: Instant, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(Busy::Pages { pages, held }) = &mut session.busy else { return };
        let mut text = pages.next().unwrap_or_default();
        let has_room = session.web.as_mut().is_none_or(|web| web.has_room(text.len()));
        let is_over = pages.is_over() || !has_room;
        if is_over {
            text.push_str(held);
            session.busy = None;
        }
        if has_room && !text.is_empty() {
            out.push(Output::Send(id, text.into_bytes()));
        }
        if is_over {
            self.resume(id, now, out);
        }
        self.web_settle(out);
    }
    /// Ends a `WaitEvent` with the events that came.
    fn end_wait(&mut self, id: u64, events: String, now: Instant, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(Busy::Event { action_id, .. }) = session.busy.take() else { return };
        let mut text = String::new();
        Message::response("Success", action_id.as_deref(), &mut text)
            .field("Message", "Waiting for Event completed.")
            .end();
        text.push_str(&events);
        Message::event("WaitEventComplete", action_id.as_deref(), &mut text).end();
        out.push(Output::Send(id, text.into_bytes()));
        self.resume(id, now, out);
    }
    /// Answers what stories have finished since.
    fn answer_later(&mut self, now: Instant, out: &mut Vec<Output>) {
        // Actions that go on may finish others at once.
        loop {
            let finished = std::mem::take(&mut *self.later.borrow_mut());
            if finished.is_empty() {
                return;
            }
            for Later { session: id, outcome } in finished {
                let Some(session) = self.sessions.get_mut(&id) else { continue };
                let text = match (session.busy.take(), outcome) {
                    (Some(Busy::Story), Outcome::Said(text)) => text,
                    (Some(Busy::Originate { action_id }), Outcome::Placed(placed)) => {
                        let (kind, message) = match placed {
                            Placed::Answered => ("Success", "Originate successfully queued"),
                            Placed::Refused(_) | Placed::TimedOut => ("Error", "Originate failed"),
                        };
                        let mut text = String::new();
                        Message::response(kind, action_id.as_deref(), &mut text)
                            .field("Message", message)
                            .end();
                        text
                    }
                    // It waits for something else.
                    (other, _) => {
                        session.busy = other;
                        continue;
                    }
                };
                out.push(Output::Send(id, text.into_bytes()));
                self.resume(id, now, out);
            }
        }
    }
    /// Goes on with what a session had sent ahead.
    fn resume(&mut self, id: u64, now: Instant, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let ahead = std::mem::take(&mut session.ahead);
        let taken = self.carry_on(id, &ahead, now, out);
        self.keep_ahead(id, ahead.get(taken..).unwrap_or_default(), out);
    }
}

/// Writes that an action was refused. A few of the field's sentences end with a line feed, which programs that compare whole
/// messages have in theirs.
fn refused(out: &mut String, action_id: Option<&str>, why: &str) {
    let Some(why) = why.strip_suffix('\n') else {
        return Message::response("Error", action_id, out).field("Message", why).end();
    };
    let _ = Message::response("Error", action_id, out).field("Message", why);
    out.insert(out.len() - "\r\n".len(), '\n');
    Message::open(out).end();
}

/// The code of the action, when the session may have it carried out.
fn permitted(turn: &Turn<'_>) -> Result<fn(&mut Turn<'_>) -> table::Done, Refusal> {
    let Some(name) = turn.get("Action") else {
        login::tell_refused(turn, "RequestBadFormat");
        return Err("Missing action in request".into());
    };
    let row = table::lookup(name).filter(|row| turn.site.has_action(row.name));
    let Some(login) = turn.login() else {
        return match row.filter(|row| login::is_for_strangers(row)) {
            Some(row) => Ok(row.run),
            None => {
                login::tell_refused(turn, "RequestNotAllowed");
                Err("Permission denied".into())
            }
        };
    };
    let Some(row) = row else {
        login::tell_refused(turn, "RequestBadFormat");
        return Err(format!(
            "Invalid/unknown command: {name}. Use Action: ListCommands to show available commands."
        )
        .into());
    };
    if !row.is_allowed(login.write) {
        login::tell_refused(turn, "RequestNotAllowed");
        return Err("Permission denied".into());
    }
    match row.fields.iter().find(|field| field.required && turn.get(field.name).is_none()) {
        Some(field) => Err(refusals::missing(row.name, field.name).into()),
        None => Ok(row.run),
    }
}
