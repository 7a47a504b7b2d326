//! The world: who lives in it, and the loop that moves its clock from one event to the next.

use core::time::Duration;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use base::{Cause, ChannelId, Digit, Event, Instant, StreamId};
use call::{Cdr, ChanEvent, ChanState, Core, Level, Location, Notice, PartyId, Services, Settings, Shard};
use dialplan::{Program, Tables};

use crate::fakes::{Due, Lines, Media, MemoryDb, Recordings, Shared, Sounds, State, Wall};
use crate::phones::{Act, Phone, SimTech};

/// Turns of one run without coming to rest before a test is told that its world never does.
const TURNS_MAX: usize = 200_000;

/// Compiles a dialplan; panics with what is wrong with its text. Findings of the loader are given back as lines.
pub fn parse_dialplan(text: &str, tables: &Tables) -> (Program, Vec<String>) {
    let source = conf::Memory::new().with("extensions.conf", text);
    let mut findings = conf::Findings::new();
    let file = conf::load(&source, "extensions.conf", conf::Options::default(), &mut findings);
    let file = file.unwrap_or_else(|error| panic!("the dialplan of a test cannot be read: {error}"));
    let program = dialplan::load(&file, tables, &[], None, &mut findings);
    let lines = findings.iter().map(ToString::to_string).collect();
    (program, lines)
}

/// One shard with its fakes.
pub struct World {
    /// The shard.
    pub shard: Rc<Shard>,
    /// What watchers were told, in order.
    pub notices: Vec<Notice>,
    /// Records that were written.
    pub cdrs: Vec<Cdr>,
    /// Channel events that were kept.
    pub cels: Vec<call::Cel>,
    pub(crate) state: Shared,
    tech: Rc<RefCell<SimTech>>,
}

impl World {
    /// A world with this dialplan and no phones. Call records are on.
    pub fn new(program: Program) -> Self {
        let state: Shared = Rc::new(RefCell::new(State::default()));
        let services = Services {
            media: Box::new(Media(state.clone())),
            library: Box::new(Sounds(state.clone())),
            recorder: Box::new(Recordings(state.clone())),
            db: Box::new(MemoryDb(state.clone())),
            log: Box::new(Lines(state.clone())),
            wall: Box::new(Wall(state.clone())),
            outside: Box::new(call::NoOutside),
            links: Box::new(crate::scripts::Outside(state.clone())),
            post: Box::new(crate::mail::Post(state.clone())),
        };
        let settings = Settings { language: "en".to_owned(), cdr_enabled: true, ..Settings::default() };
        let globals: Vec<(String, String)> =
            program.globals().map(|(name, value)| (name.name.to_string(), value.to_owned())).collect();
        let mut core = Core::new(services, settings, Arc::new(program), 1);
        for (name, value) in globals {
            core.globals.set(dialplan::Var::named(&name), &value, dialplan::Inherit::Never);
        }
        let shard = Shard::new(core);
        let tech = Rc::new(RefCell::new(SimTech {
            state: state.clone(),
            phones: HashMap::new(),
            index: 0,
            names: &["SIM"],
        }));
        let index = shard.add_tech(tech.clone());
        tech.borrow_mut().index = index;
        Self { shard, notices: Vec::new(), cdrs: Vec::new(), cels: Vec::new(), state, tech }
    }
    /// Changes the settings.
    pub fn settings(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut core = self.shard.core.borrow_mut();
        let mut settings = (*core.settings).clone();
        change(&mut settings);
        core.settings = Rc::new(settings);
    }
    /// Lets a phone `300@default` stand for whoever is found at `Local/300@default`.
    pub fn phones_at_extensions(&mut self) {
        self.tech.borrow_mut().names = &["SIM", "Local"];
    }
    /// Adds a phone that can be called.
    pub fn phone(&mut self, name: &str, phone: Phone) {
        self.tech.borrow_mut().phones.insert(name.to_owned(), phone);
    }
    /// Lets AGI find a program by its path, or a server by `host:port`.
    pub fn script(&mut self, name: &str, script: crate::Script) {
        self.state.borrow_mut().scripts.known.insert(name.to_owned(), script);
    }
    /// A table of a database: its family, its columns, and a line for each row with values parted by `|`.
    pub fn table(&mut self, family: &str, columns: &[&str], rows: &[&str]) {
        let row = |line: &&str| line.split('|').map(str::to_owned).collect();
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let table = (columns, rows.iter().map(row).collect());
        self.state.borrow_mut().scripts.tables.insert(family.to_owned(), table);
    }
    /// What AGI asked to be started or connected to.
    pub fn wanted_links(&self) -> Vec<call::LinkWant> {
        self.state.borrow().scripts.wanted.clone()
    }
    /// A manager sends an AGI command to a channel; whether it was taken.
    pub fn agi(&mut self, id: ChannelId, line: &str, command_id: &str) -> Result<(), call::AgiRefused> {
        let command = call::AgiCommand {
            line: line.to_owned(),
            id: command_id.to_owned(),
            rights: dialplan::Rights::ALL,
        };
        self.shard.core.borrow_mut().push_agi(id, command)
    }
    /// Gives a sound its length; others last [`CLIP_DEFAULT`](crate::CLIP_DEFAULT).
    pub fn clip(&mut self, name: &str, length: Duration) {
        self.state.borrow_mut().clips.insert(name.to_owned(), length);
    }
    /// Leaves no room for what is recorded from here on, once it has begun.
    pub fn break_recordings(&mut self) {
        self.state.borrow_mut().breaks_recordings = true;
    }
    /// Takes a sound (or `music CLASS`) away, or the right to write a recording (`path.extension`).
    pub fn missing(&mut self, name: &str) {
        self.state.borrow_mut().missing.insert(name.to_owned());
    }
    /// Music of this class is heard by each from its beginning on.
    pub fn heard_alone(&mut self, class: &str) {
        self.state.borrow_mut().heard_alone.insert(class.to_owned());
    }
    /// Makes asking for a sound panic: stands for a fault in an application's own code.
    pub fn explosive(&mut self, name: &str) {
        self.state.borrow_mut().explosive.insert(name.to_owned());
    }
    /// Sets the totals that every stream tells.
    pub fn stats(&mut self, stats: base::StreamStats) {
        self.state.borrow_mut().stats = stats;
    }
    /// From here on callers send no media when they are answered.
    pub fn mute_answers(&mut self) {
        self.state.borrow_mut().mute = true;
    }
    /// Lets verbose lines up to `depth` into the log.
    pub fn verbose(&mut self, depth: u8) {
        self.state.borrow_mut().verbose = depth;
    }
    /// Somebody watches: notices are made.
    pub fn watch(&mut self) {
        self.shard.core.borrow_mut().watched = true;
        let mut state = self.state.borrow_mut();
        state.verbose = state.verbose.max(3);
    }
    /// Sets what the database holds.
    pub fn database(&mut self, family: &str, key: &str, value: &str) {
        self.state.borrow_mut().db.insert((family.to_owned(), key.to_owned()), value.to_owned());
    }
    /// All that the database holds: what a process leaves to the next one.
    pub fn database_rows(&self) -> Vec<(String, String, String)> {
        let state = self.state.borrow();
        state.db.iter().map(|((family, key), value)| (family.clone(), key.clone(), value.clone())).collect()
    }
    /// Lets nothing that the database is given reach the disk, or all of it again.
    pub fn stop_disk(&mut self, stands: bool) {
        self.state.borrow_mut().disk_stands = stands;
        if !stands {
            self.shard.core.borrow_mut().database_saved();
        }
    }

    /// A call comes in from a phone; `acts` happen after so many milliseconds from this moment. The caller starts the
    /// dialplan on it.
    pub fn incoming(
        &mut self,
        phone: &str,
        caller: &str,
        location: Location,
        acts: &[(u64, Act)],
    ) -> ChannelId {
        let id = {
            let core = &mut *self.shard.core.borrow_mut();
            self.tech.borrow().incoming(core, phone, PartyId::parse(caller), location)
        };
        let id = id.unwrap_or_else(|| panic!("there is no room for a channel"));
        for (after, act) in acts {
            self.act(id, Duration::from_millis(*after), act.clone());
        }
        id
    }
    /// Something a channel's user will do, so much later than this moment.
    pub fn act(&mut self, id: ChannelId, after: Duration, act: Act) {
        let mut state = self.state.borrow_mut();
        let when = state.now + after;
        state.at(when, Due::Act(id, act));
    }

    /// The present moment.
    pub fn now(&self) -> Instant {
        self.state.borrow().now
    }
    /// Lets time pass until nothing is left to happen; panics when that never comes.
    pub fn run(&mut self) {
        for _ in 0..TURNS_MAX {
            match self.next() {
                Some(at) => self.turn(at),
                None => return,
            }
        }
        panic!("the world does not come to rest; it is {} ms old", self.now().as_millis());
    }
    /// Lets time pass until `at`, and then that moment happen.
    pub fn run_until(&mut self, at: Instant) {
        for _ in 0..TURNS_MAX {
            match self.next().filter(|next| *next <= at) {
                Some(next) => self.turn(next),
                None => return self.turn(at),
            }
        }
        panic!("the world does not reach {} ms; it is {} ms old", at.as_millis(), self.now().as_millis());
    }
    fn next(&self) -> Option<Instant> {
        let due = self.state.borrow().agenda.keys().next().map(|(at, _)| *at);
        let next = [due, self.shard.deadline()].into_iter().flatten().min()?;
        Some(next.max(self.now()))
    }
    fn turn(&mut self, now: Instant) {
        self.state.borrow_mut().now = now;
        self.shard.core.borrow_mut().now = now;
        loop {
            let due = {
                let agenda = &mut self.state.borrow_mut().agenda;
                match agenda.first_entry() {
                    Some(first) if first.key().0 <= now => first.remove(),
                    _ => break,
                }
            };
            self.carry_out(due);
        }
        self.shard.run(now);
        let mut core = self.shard.core.borrow_mut();
        self.notices.append(&mut core.notices);
        self.cdrs.append(&mut core.cdrs);
        self.cels.append(&mut core.cels);
    }
    fn carry_out(&mut self, due: Due) {
        let core = &mut *self.shard.core.borrow_mut();
        match due {
            Due::Media(event) => core.media_event(event),
            Due::Link(link, line) => {
                self.state.borrow_mut().scripts.deliver(link, line);
                core.link_changed(link);
            }
            Due::Act(id, act) => {
                if core.get(id).is_none_or(|c| c.hangup.is_some()) {
                    return;
                }
                match act {
                    Act::Proceed => core.push_event(id, ChanEvent::Proceeding),
                    Act::Ring => {
                        core.set_state(id, ChanState::Ringing);
                        core.push_event(id, ChanEvent::Ringing);
                    }
                    Act::Progress => core.push_event(id, ChanEvent::Progress),
                    Act::Answer => {
                        core.answered(id);
                        core.push_event(id, ChanEvent::Answered);
                    }
                    Act::Hangup(cause) => core.remote_hangup(id, cause, "SIM"),
                    Act::Press(symbol) => press(core, id, symbol, false),
                    Act::PressRelayed(symbol) => press(core, id, symbol, true),
                    Act::Text(text) => core.push_event(id, ChanEvent::Text(call::Text::plain(text))),
                    Act::Silence(ms) => of_stream(core, id, |stream| Event::Silence { stream, ms }),
                    Act::Tone(sent) => {
                        let listener = base::Listener::Application;
                        of_stream(core, id, |stream| Event::Tone { stream, listener, sent });
                    }
                    Act::FaxTone => {
                        let listener = base::Listener::Watcher;
                        of_stream(core, id, |stream| Event::Tone { stream, listener, sent: false });
                    }
                    Act::Sound(sounds, before_ms) => {
                        for listener in [base::Listener::Application, base::Listener::Watcher] {
                            of_stream(core, id, |stream| Event::Sound {
                                stream,
                                listener,
                                sounds,
                                before_ms,
                            });
                        }
                    }
                    // The driver ends such a call, as its endpoint asks.
                    Act::MediaTimeout => {
                        core.request_hangup(id, Cause::REQUESTED_CHAN_UNAVAIL);
                        of_stream(core, id, |stream| Event::RtpTimeout { stream });
                    }
                    Act::Redirect(to) => core.request_goto(id, to),
                    Act::Forward(target) => core.push_event(id, ChanEvent::Forwarded(target)),
                    Act::Tell(party) => {
                        if let Some(channel) = core.get_mut(id) {
                            channel.caller = party.clone();
                        }
                        core.push_event(id, ChanEvent::ConnectedLine(Box::new(party)));
                    }
                    Act::Charge(advice) => core.push_event(id, ChanEvent::Charge(Box::new(advice))),
                    Act::Hold => core.push_event(id, ChanEvent::Hold),
                    Act::Unhold => core.push_event(id, ChanEvent::Unhold),
                }
            }
        }
    }

    /// What was heard and told, each line `milliseconds text`.
    pub fn transcript(&self) -> Vec<String> {
        self.state.borrow().transcript.clone()
    }
    /// Streams that were opened and not closed.
    pub fn open_streams(&self) -> usize {
        self.state.borrow().open.len()
    }
    /// Pairs of streams that hear each other.
    pub fn joins(&self) -> usize {
        self.state.borrow().joined.len() / 2
    }
    /// The endless sound that a channel hears: music or a tone.
    pub fn endless_sound(&self, id: ChannelId) -> Option<String> {
        let stream = self.shard.core.borrow().get(id).and_then(|c| c.stream)?;
        self.state.borrow().endless(stream)
    }
    /// A recording of this name exists.
    pub fn recorded(&mut self, file: &str) {
        self.state.borrow_mut().recordings.insert(file.to_owned());
    }
    /// The file of a recording will not be written to any more.
    pub fn complete_recording(&mut self, file: &str) {
        let state = self.state.borrow();
        state.progress.get(file).iter().for_each(|progress| progress.end());
    }
    /// The file of this name cannot be written any more.
    pub fn fail_recording(&self, file: &str, why: &str) {
        if let Some(progress) = self.state.borrow().progress.get(file) {
            progress.fail(why.to_owned());
        }
    }
    /// What is to become of a recording that was made: whether it is discarded, and milliseconds that are cut off.
    pub fn afterwards(&self, file: &str) -> Option<(bool, u32)> {
        let state = self.state.borrow();
        state.afterwards.get(file).map(|after| (after.is_discarded(), after.cut_ms()))
    }
    /// Log lines of one level.
    pub fn log(&self, level: Level) -> Vec<String> {
        let state = self.state.borrow();
        state.log.iter().filter(|line| line.0 == level).map(|line| line.2.clone()).collect()
    }
    /// A global variable.
    pub fn global(&self, name: &str) -> Option<String> {
        self.shard.core.borrow().globals.get_name(name).map(str::to_owned)
    }
    /// What the database holds.
    pub fn stored(&self, family: &str, key: &str) -> Option<String> {
        self.state.borrow().db.get(&(family.to_owned(), key.to_owned())).cloned()
    }
    /// Hangs a channel up as its own user would.
    pub fn hang_up(&mut self, id: ChannelId) {
        self.shard.core.borrow_mut().remote_hangup(id, Cause::NORMAL_CLEARING, "SIM");
    }
}

fn of_stream(core: &mut Core, id: ChannelId, event: impl FnOnce(StreamId) -> Event) {
    if let Some(stream) = core.get(id).and_then(|c| c.stream) {
        core.media_event(event(stream));
    }
}

fn press(core: &mut Core, id: ChannelId, symbol: char, relayed: bool) {
    let digit = Digit::from_char(symbol).unwrap_or_else(|| panic!("{symbol} is no digit"));
    of_stream(core, id, |stream| Event::DigitBegin { stream, digit, relayed });
    of_stream(core, id, |stream| Event::DigitEnd { stream, digit, duration_ms: 100, relayed });
}
