//! The loop: one clock reading, one wait, everything that happened, everything that follows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Cause, Instant};
use call::{Level, Notice};
use conf::Findings;
use control::cli::{Cli, Finished};
use control::http::Upgraded;
use control::site::{Counters, Site, When, Wish};
use control::socket::{Output, Sessions, Who};
use driver::local::LocalDriver;
use driver::sip::Correlation;
use io::clock::Clock;
use io::net::{Closing, FlowId, FlowKind, Net, NetEvent, Peer, Signal, TlsFault, Token};
use io::wake::Wake;
use sip::frame::Frame;
use sip::stack::Protocol;
use store::Snapshot;
use store::config::hep::UuidType;

use crate::callfiles::CallFiles;
use crate::cel::Events;
use crate::databases::Shared;
use crate::doors::Tee;
use crate::externals::Externals;
use crate::hep::{Capture, Told};
use crate::iax::Iax;
use crate::ledger::{Entry, Ledger};
use crate::links::LinkDesk;
use crate::listen::{Framing, Listeners};
use crate::mail::Mail;
use crate::managers::Managers;
use crate::names::Names;
use crate::records::Records;
use crate::registrations::{Clocks, Registrations};
use crate::reload::Loader;
use crate::secure::{Insecure, Wires};
use crate::start::StartError;
use crate::statics::Statics;
use crate::statsd::Statistics;
use crate::subscriptions::Subscriptions;
use crate::telemetry::Traces;
use crate::web::{PIECE_WITHIN, Web};

mod answers;

const MEDIA: Token = Token(1);
const SOUNDS: Token = Token(2);
const NAMES: Token = Token(3);
const MEASURED: Token = Token(5);
const LINKS: Token = Token(6);
const CALL_FILES: Token = Token(7);
const PAGES: Token = Token(8);
const DATABASES: Token = Token(20);

/// How long a SIP connection may be idle: longer than the longest registration an AOR grants by default.
const SIP_IDLE: Duration = Duration::from_secs(3 * 3600);
/// So long at most only what came by IAX2 is looked at, while nothing else asks for its turn: most datagrams of a registration
/// and all of voice concern a machine of one socket alone, and to go through everything for each took as long as they did.
const ASIDE: Duration = Duration::from_millis(20);
/// How often the machine's load is looked at while `maxload` is set.
const LOAD_EVERY: Duration = Duration::from_secs(5);
/// How often the workers' is, over which they measure it, while there are calls that `maxbusy` may refuse.
const BUSY_EVERY: Duration = Duration::from_secs(1);
/// How often recordings are asked whether they can be written.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After this long without it, a want of descriptors is worth another line.
const RESTS_QUIET: Duration = Duration::from_secs(60);
/// Longest that a stop waits for the goodbyes of the calls that it ends.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long an end waits for a database that takes rows; what it has not taken then it gets after the next start.
const LAST_ROWS: Duration = Duration::from_secs(5);

/// Longest that a stop waits for databases to take call records; the journal keeps what they do not.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// The running process. See the crate's page.
pub struct Engine {
    pub(crate) net: Net,
    pub(crate) listeners: Listeners,
    pub(crate) site: Rc<Site>,
    local: Rc<RefCell<LocalDriver>>,
    pub(crate) names: Rc<RefCell<Names>>,
    pub(crate) links: Rc<RefCell<LinkDesk>>,
    call_files: Option<CallFiles>,
    pub(crate) loader: Rc<Loader>,
    pub(crate) registrations: Registrations,
    subscriptions: Subscriptions,
    pub(crate) iax: Iax,
    pub(crate) records: Records,
    pub(crate) events: Events,
    pub(crate) queue_log: crate::queues::QueueLog,
    /// Rows of queues on their way into databases, when there are some.
    pub(crate) queue_rows: Option<crate::queue_rows::QueueRows>,
    /// Call records on their way into databases, when there are some.
    pub(crate) ledger: Option<Ledger>,
    /// Where copies of SIP messages go, when hep.conf wants them to.
    capture: Option<Capture>,
    /// Who is told what StatsD() says.
    statistics: Option<Statistics>,
    /// Traces of calls, when opentelemetry.conf wants them.
    traces: Option<Traces>,
    pub(crate) managers: Managers,
    pub(crate) web: Web,
    commands: Rc<RefCell<Cli>>,
    sessions: Sessions,
    /// Clients of the control socket by the number `Sessions` knows them under.
    clients: BTreeMap<u64, FlowId>,
    by_flow: BTreeMap<FlowId, u64>,
    next_client: u64,
    pub(crate) sounds_wake: Arc<Wake>,
    pub(crate) externals: Externals,
    /// Mailboxes; set once everything is put together.
    pub(crate) mail: Option<Mail>,
    /// When they are counted next.
    mail_at: Option<Instant>,
    tee: Tee,
    load_at: Option<Instant>,
    busy_at: Option<Instant>,
    /// When recordings are looked at next; `None` while there is none.
    look_at: Option<Instant>,
    end: Option<End>,
    /// What the command line limits.
    pub(crate) asked: crate::start::Asked,
    restart_wanted: bool,
    /// Rests of listeners that were logged, and when the next one is news.
    rests_told: u64,
    rests_quiet_until: Option<Instant>,
    insecure: Insecure,
    /// Managers logged in or went since the console's list of them was made.
    managers_changed: bool,
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// For good.
    Stop,
    /// To be started again with the same arguments.
    Restart,
}

/// Hands a message to the SIP machines. A panic there costs this message: nothing from the network ends the process.
fn receive(site: &Site, flow: ::sip::stack::Flow, bytes: &[u8]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut core = site.shard.core.borrow_mut();
        core.now = Clock.now();
        site.sip.borrow_mut().receive(&mut core, flow, bytes);
    }));
    if outcome.is_err() {
        let line = format!("a message from {} panicked the SIP machines; it is dropped", flow.remote);
        site.shard.core.borrow_mut().log(Level::Error, "chan_pjsip", &line);
    }
}

/// A registrar may have answered whether our flow is there.
fn stun_answered(site: &Site, flow: ::sip::stack::Flow, bytes: &[u8]) {
    let mut core = site.shard.core.borrow_mut();
    core.now = Clock.now();
    site.sip.borrow_mut().stun_answered(&mut core, flow, bytes);
}

/// Whether an address has guessed too many passwords to be listened to.
pub(crate) fn is_banned(site: &Site, address: IpAddr, now: Instant) -> bool {
    site.shard.core.borrow().bans.is_banned(address, now)
}

/// What an event of the wait asks of the loop, once the reactor is free again.
enum Turn {
    Opened(FlowId, FlowKind, Peer, io::net::ListenerId),
    Bytes(FlowId, FlowKind, Vec<u8>),
    Closed(FlowId, FlowKind),
    Unsent(::sip::stack::Flow),
    Undelivered(::sip::stack::Flow, Vec<u8>),
    Reply(io::net::TransportId, SocketAddr, Vec<u8>),
    Insecure(FlowKind, SocketAddr, TlsFault),
    Media,
    Sounds,
    Names,
    Measured,
    Links,
    Pages,
    Databases,
    CallFiles,
    Signal(Signal),
}

impl Engine {
    #[expect(clippy::too_many_arguments, reason = "the parts that `start` has made, each once")]
    pub(crate) fn assemble(
        mut net: Net,
        listeners: Listeners,
        site: Rc<Site>,
        local: Rc<RefCell<LocalDriver>>,
        records: Records,
        events: Events,
        (registrations, subscriptions, iax): (Registrations, Subscriptions, Iax),
        (names, links): (Rc<RefCell<Names>>, Rc<RefCell<LinkDesk>>),
        sounds_wake: Arc<Wake>,
        tee: Tee,
    ) -> Self {
        let commands = Rc::new(RefCell::new(Cli::new(site.clone())));
        let loader = Loader::new(&site);
        let managers = Managers::new(&site, &commands);
        let web = Web::new(&site, &sounds_wake);
        let asked = site.clone();
        net.set_shut_out(move |address| is_banned(&asked, address, Clock.now()));
        Self {
            net,
            listeners,
            site,
            local,
            names,
            links,
            call_files: None,
            loader,
            registrations,
            subscriptions,
            iax,
            records,
            events,
            queue_log: Default::default(),
            queue_rows: None,
            ledger: None,
            capture: None,
            statistics: None,
            traces: None,
            managers,
            web,
            commands,
            sessions: Sessions::default(),
            clients: BTreeMap::new(),
            by_flow: BTreeMap::new(),
            next_client: 0,
            sounds_wake,
            externals: Externals::default(),
            mail: None,
            mail_at: None,
            tee,
            load_at: None,
            busy_at: None,
            look_at: None,
            end: None,
            asked: crate::start::Asked::default(),
            restart_wanted: false,
            rests_told: 0,
            rests_quiet_until: None,
            insecure: Insecure::default(),
            managers_changed: false,
        }
    }
    pub(crate) fn open_control(&mut self, socket: &Path, mode: u32) -> Result<(), StartError> {
        let fail = |why: &dyn std::fmt::Display, remedy: &str| StartError::Part {
            what: format!("control socket {}", socket.display()),
            why: why.to_string(),
            remedy: remedy.to_owned(),
        };
        self.net.listen_unix(socket, mode, FlowKind::Control).map_err(|why| fail(&why, why.remedy()))?;
        let watched = [
            (self.site.media.borrow().wake_fd().try_clone_to_owned(), MEDIA),
            (self.sounds_wake.as_fd().try_clone_to_owned(), SOUNDS),
            (self.names.borrow().client().as_fd().try_clone_to_owned(), NAMES),
            (self.links.borrow().reports().as_fd().try_clone_to_owned(), LINKS),
            (self.links.borrow().pages().as_fd().try_clone_to_owned(), PAGES),
        ];
        let measured = self.site.translation.over().map(|fd| (fd.try_clone_to_owned(), MEASURED));
        for (fd, token) in watched.into_iter().chain(measured) {
            let watching = fd.and_then(|fd| {
                self.net.watch(fd.as_fd(), token)?;
                // The reactor knows the descriptor by its number, so it stays open as long as the process.
                std::mem::forget(fd);
                Ok(())
            });
            watching.map_err(|why| fail(&why, "raise the limit on open files (ulimit -n)"))?;
        }
        Ok(())
    }
    /// Looks after the call files of the spool; without them, and said, when that cannot be.
    pub(crate) fn watch_call_files(&mut self, spool: &Path) {
        let started = CallFiles::start(spool).and_then(|files| {
            self.net.watch(files.wake().as_fd(), CALL_FILES)?;
            Ok(files)
        });
        match started {
            Ok(files) => self.call_files = Some(files),
            Err(why) => {
                let line = format!("call files are not looked for in {}: {why}", spool.display());
                self.log(Level::Error, "pbx_spool", &line);
            }
        }
    }
    /// Wakes for what databases answer.
    pub(crate) fn watch_databases(&mut self, databases: &Shared) -> std::io::Result<()> {
        let fd = databases.borrow().as_fd().try_clone_to_owned()?;
        self.net.watch(fd.as_fd(), DATABASES)?;
        // The reactor knows the descriptor by its number, so it stays open as long as the process.
        std::mem::forget(fd);
        Ok(())
    }
    pub(crate) fn open_manager(&mut self, snapshot: &Snapshot, wires: &Wires) -> Result<(), StartError> {
        self.managers.listen(&mut self.net, snapshot, wires)?;
        self.web.listen(&mut self.net, snapshot, wires)
    }
    /// What is worth saying at the start.
    pub(crate) fn say(
        &mut self,
        findings: &Findings,
        warnings: &[io::media::Warning],
        (restored, watching): (usize, usize),
    ) {
        *self.loader.errors.borrow_mut() = crate::reload::errors(findings);
        for finding in findings.iter() {
            let level = match finding.level {
                conf::Level::Error => Level::Error,
                conf::Level::Warning => Level::Warning,
                conf::Level::Note => Level::Verbose(1),
            };
            self.log(level, "config", &crate::reload::one_line(finding));
        }
        warnings.iter().for_each(|warning| self.log(Level::Warning, "media", &warning.0));
        let moved = {
            let media = self.site.media.borrow();
            format!("packets are moved by {}: {}", media.io().name(), media.io().reason())
        };
        self.log(Level::Verbose(1), "media", &moved);
        let lanes = self.site.media.borrow().lanes();
        let text = format!(
            "codecs run in {} lanes, {} streams side by side; a frame waits {} ms for company at most",
            lanes.level,
            lanes.level.lanes(),
            lanes.wait_ms
        );
        self.log(Level::Verbose(1), "media", &text);
        for (format, why) in io::media::missing_libraries() {
            let text = format!("{format} can only be passed through: {why}");
            self.log(Level::Verbose(1), "media", &text);
        }
        if restored > 0 {
            self.log(Level::Notice, "registrations", &format!("{restored} registrations were read back"));
        }
        if watching > 0 {
            self.log(Level::Notice, "subscriptions", &format!("{watching} subscriptions were read back"));
        }
        let now = Clock.now();
        self.turn_machines(now);
        self.site.shard.core.borrow_mut().notice(|_| Some(Notice::FullyBooted));
        self.log(Level::Verbose(1), "strowger", "Asterisk Ready.");
    }
    /// The running system, for whoever prints what to dial.
    pub fn site(&self) -> &Rc<Site> {
        &self.site
    }
    pub(crate) fn log(&mut self, level: Level, place: &str, text: &str) {
        self.site.shard.core.borrow_mut().log(level, place, text);
    }

    /// Turns until somebody stops the process.
    pub fn run(&mut self) -> std::io::Result<End> {
        let mut turns = Vec::new();
        let mut whole_by = Instant::ZERO;
        loop {
            let now = Clock.now();
            self.flush_answers();
            let until = self.deadline();
            let has_more = self.wait(now, until, &mut turns)?;
            let now = Clock.now();
            if !has_more && now < whole_by && until.is_none_or(|until| now < until) {
                self.send_iax();
                continue;
            }
            whole_by = now + ASIDE;
            self.site.shard.core.borrow_mut().now = now;
            // In every turn: not all that the media plane tells is worth waking for.
            turns.push(Turn::Media);
            for turn in turns.drain(..) {
                let outcome = catch_unwind(AssertUnwindSafe(|| self.take(turn, now)));
                if outcome.is_err() {
                    self.log(
                        Level::Error,
                        "strowger",
                        "what a connection sent panicked its dialect; it is dropped",
                    );
                }
            }
            self.send_answers(now);
            self.turn_machines(now);
            self.grant_wishes();
            if let Some(end) = self.end {
                self.leave(end);
                return Ok(end);
            }
        }
    }
    /// Waits, and hands datagrams over as they come; what else there is to do is in `turns`. False: nothing came but what IAX2
    /// has dealt with by itself.
    fn wait(&mut self, now: Instant, until: Option<Instant>, turns: &mut Vec<Turn>) -> std::io::Result<bool> {
        let (site, listeners, iax) = (&self.site, &self.listeners, &self.iax);
        let mut has_more = false;
        self.net.wait(now, until, &mut |event| {
            if let NetEvent::Datagram { transport, from, bytes, .. } = event
                && let Some(socket) = iax.socket(transport)
            {
                has_more |=
                    !is_banned(site, from.ip(), now) && crate::iax::receive(site, socket, from, bytes);
                return;
            }
            has_more = true;
            match event {
                NetEvent::Datagram { transport, from, bytes, .. } => {
                    if let Some(flow) = listeners.datagram(transport, from)
                        && !is_banned(site, from.ip(), now)
                    {
                        match ::sip::stun::is_stun(bytes) {
                            true => match ::sip::stun::answer(bytes, from) {
                                Some(answer) => turns.push(Turn::Reply(transport, from, answer)),
                                None => stun_answered(site, flow, bytes),
                            },
                            false => receive(site, flow, bytes),
                        }
                    }
                }
                NetEvent::Accepted { flow, kind, peer, listener } => {
                    turns.push(Turn::Opened(flow, kind, peer, listener))
                }
                NetEvent::Bytes { flow, kind, bytes } => turns.push(Turn::Bytes(flow, kind, bytes.to_vec())),
                NetEvent::Closed { flow, kind, why: _ } => turns.push(Turn::Closed(flow, kind)),
                NetEvent::Unsent { transport, to, .. } => {
                    turns.extend(listeners.unsent(transport, to).map(Turn::Unsent));
                }
                NetEvent::Undelivered { transport, to, quoted } => {
                    let flow = listeners.unsent(transport, to);
                    turns.extend(flow.map(|flow| Turn::Undelivered(flow, quoted.to_vec())));
                }
                NetEvent::Readable { token: SOUNDS } => turns.push(Turn::Sounds),
                NetEvent::Readable { token: NAMES } => turns.push(Turn::Names),
                NetEvent::Readable { token: MEASURED } => turns.push(Turn::Measured),
                NetEvent::Readable { token: LINKS } => turns.push(Turn::Links),
                NetEvent::Readable { token: PAGES } => turns.push(Turn::Pages),
                NetEvent::Readable { token: DATABASES } => turns.push(Turn::Databases),
                NetEvent::Readable { token: CALL_FILES } => turns.push(Turn::CallFiles),
                NetEvent::Readable { .. } | NetEvent::Connected { .. } => {}
                NetEvent::Insecure { kind, remote, fault, .. } => {
                    turns.push(Turn::Insecure(kind, remote, fault.clone()))
                }
                NetEvent::Signal(signal) => turns.push(Turn::Signal(signal)),
            }
        })?;
        Ok(has_more)
    }
    /// What IAX2 has to send, and what it acknowledges by that.
    fn send_iax(&mut self) {
        let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
        let site = self.site.clone();
        let trouble = self.iax.send(&mut self.net, &mut site.shard.core.borrow_mut(), clocks);
        if let Some(trouble) = trouble {
            self.log(Level::Error, "registrations", &trouble);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        let machines =
            [self.site.shard.deadline(), self.site.sip.borrow().deadline(), self.managers.deadline()];
        let rows = self.loader.rows.borrow().as_ref().and_then(|rows| rows.borrow().deadline());
        let iax_rows = self.loader.iax_rows.borrow().as_ref().and_then(|rows| rows.borrow().deadline());
        let ledger = self.ledger.as_ref().and_then(Ledger::deadline);
        let queue_rows = self.queue_rows.as_ref().and_then(|rows| rows.deadline());
        let statics = self.loader.statics.borrow().as_ref().and_then(Statics::deadline);
        let machines =
            machines.into_iter().chain([self.listeners.deadline(), rows, self.site.iax.borrow().deadline()]);
        let contacts = self.loader.contacts.borrow().as_ref().and_then(|contacts| contacts.deadline());
        let answers = self.has_answers().then_some(Instant::ZERO);
        let machines = machines.chain([iax_rows, contacts, ledger, statics, queue_rows, answers]);
        machines.chain([self.load_at, self.busy_at, self.look_at, self.mail_at]).flatten().min()
    }

    fn take(&mut self, turn: Turn, now: Instant) {
        let mut out = Vec::new();
        match turn {
            Turn::Opened(flow, FlowKind::Sip, peer, listener) => {
                let name = self.net.asked_for(flow);
                let known = matches!(peer, Peer::Ip { remote, .. } if self.listeners.accepted(listener, flow, remote, name, now));
                if !known {
                    self.net.close_flow(flow, Closing::AtOnce);
                }
            }
            Turn::Opened(flow, FlowKind::Control, peer, _) => {
                let client = self.new_client(flow);
                let who = match peer {
                    Peer::Local { uid, gid } => Some(Who { uid, gid }),
                    Peer::Ip { .. } => None,
                };
                self.sessions.open(client, who);
                self.net.keep(flow, None);
            }
            Turn::Opened(flow, FlowKind::Manager, peer, _) => {
                let client = self.new_client(flow);
                if let Peer::Ip { remote, .. } = peer {
                    self.managers.manager.open(client, remote, now, &mut out);
                }
            }
            Turn::Opened(flow, FlowKind::Http, peer, listener) => {
                let client = self.new_client(flow);
                if let Peer::Ip { remote, .. } = peer {
                    self.web.open(client, remote, listener, &mut out);
                }
            }
            Turn::Bytes(flow, FlowKind::Sip, bytes) => self.stream(flow, &bytes, now),
            Turn::Bytes(flow, FlowKind::Http, bytes) if self.listeners.is_websocket(flow) => {
                self.frames(flow, &bytes, now);
            }
            Turn::Bytes(flow, kind, bytes) => {
                let Some(client) = self.by_flow.get(&flow).copied() else { return };
                match kind {
                    FlowKind::Manager => self.managers.manager.bytes(client, &bytes, now, &mut out),
                    FlowKind::Http => {
                        self.web.http.bytes(client, &bytes, &mut out);
                        for request in self.web.http.take_requests() {
                            // It is whole, and may wait for what it asks.
                            self.net.keep(flow, None);
                            self.managers.manager.web(request, now);
                        }
                        self.ask_files(now);
                        self.answer_web(&mut out);
                        let upgraded = self.web.http.take_upgraded();
                        self.carry_out(core::mem::take(&mut out));
                        upgraded.into_iter().for_each(|upgraded| self.upgrade(upgraded, now));
                    }
                    _ => self.sessions.bytes(client, &bytes, &mut *self.commands.borrow_mut(), &mut out),
                }
            }
            Turn::Closed(flow, FlowKind::Sip) => self.connection_lost(flow),
            Turn::Closed(flow, FlowKind::Http) if self.listeners.is_websocket(flow) => {
                self.connection_lost(flow);
            }
            Turn::Closed(flow, kind) => {
                let Some(client) = self.by_flow.remove(&flow) else { return };
                self.clients.remove(&client);
                match kind {
                    FlowKind::Manager => {
                        self.managers.manager.closed(client);
                        self.managers_changed = true;
                    }
                    FlowKind::Http => {
                        self.web.closed(client);
                        self.managers.manager.web_closed(client);
                    }
                    _ => self.sessions.closed(client),
                }
            }
            Turn::Unsent(flow) => {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().transport_error(&mut core, flow);
            }
            Turn::Undelivered(flow, quoted) => {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().undelivered(&mut core, flow, &quoted);
            }
            Turn::Reply(socket, to, bytes) => self.net.send_udp(socket, None, to, &bytes),
            Turn::Insecure(kind, remote, fault) => {
                let mut core = self.site.shard.core.borrow_mut();
                for line in self.insecure.tell(kind, remote, &fault, now) {
                    core.log(Level::Warning, "tls", &line);
                }
            }
            Turn::Media => {
                let mut events = Vec::new();
                self.site.media.borrow_mut().drain_events(|event| events.push(event));
                let traced = self.site.media.borrow_mut().take_trace();
                let mut core = self.site.shard.core.borrow_mut();
                if let Some(noted) = traced {
                    crate::trace::write(&mut core, &noted);
                }
                let mut sip = self.site.sip.borrow_mut();
                events.into_iter().for_each(|event| sip.media_event(&mut core, event));
                let mut iax = self.site.iax.borrow_mut();
                self.site.media.borrow_mut().drain_piped(|packets| iax.media(now, packets));
            }
            Turn::Sounds => {
                self.sounds_wake.answer_and_clear();
                self.take_codecs();
                self.web.take_files(&mut out);
                self.carry_out(core::mem::take(&mut out));
                let told = self.site.sounds.borrow_mut().take_told();
                told.iter().for_each(|line| self.log(Level::Warning, "res_musiconhold", line));
                if self.site.sounds.borrow_mut().take_in() {
                    self.site.shard.core.borrow_mut().library_changed();
                }
                self.site.shard.core.borrow_mut().database_saved();
                self.iax.take_worked(&mut self.site.shard.core.borrow_mut());
                if let Some(mail) = &self.mail {
                    mail.take_in(&mut self.site.shard.core.borrow_mut());
                }
            }
            Turn::Names => {
                let came = self.names.borrow_mut().take_in(now);
                if !came.is_empty() {
                    self.site.shard.core.borrow_mut().outside_changed();
                }
                for (question, answer) in came {
                    self.resolved(&question, answer);
                }
            }
            Turn::Databases => {
                if let Some(rows) = &*self.loader.rows.borrow() {
                    rows.borrow_mut().take_in(now);
                }
                if let Some(rows) = &*self.loader.iax_rows.borrow() {
                    rows.borrow_mut().take_in(Clocks { now, wall: Clock.wall() });
                }
                if let Some(contacts) = &mut *self.loader.contacts.borrow_mut() {
                    contacts.take_in(now);
                }
                self.tell_databases();
                if let Some(statics) = &mut *self.loader.statics.borrow_mut() {
                    statics.take_in(now);
                }
                if let Some(ledger) = &mut self.ledger {
                    ledger.take_in(now);
                }
                if let Some(rows) = &mut self.queue_rows {
                    rows.take_in(now);
                }
                let changed = self.links.borrow_mut().take_in_rows();
                let written = self.links.borrow_mut().take_written();
                if let Some(statics) = &mut *self.loader.statics.borrow_mut() {
                    written.iter().for_each(|change| statics.learn(change));
                }
                let mut core = self.site.shard.core.borrow_mut();
                changed.into_iter().for_each(|link| core.link_changed(link));
            }
            Turn::CallFiles => {
                if let Some(files) = &self.call_files {
                    files.take_in(&self.site.shard);
                }
            }
            Turn::Links => {
                let changed = self.links.borrow_mut().take_in();
                let mut core = self.site.shard.core.borrow_mut();
                changed.into_iter().for_each(|link| core.link_changed(link));
            }
            Turn::Pages => {
                let changed = self.links.borrow_mut().take_in_pages();
                let mut core = self.site.shard.core.borrow_mut();
                changed.into_iter().for_each(|link| core.link_changed(link));
            }
            Turn::Measured => {
                let finished = self.commands.borrow().measured();
                for Finished { session, text, status } in finished {
                    self.sessions.finish(session, &text, status, &mut *self.commands.borrow_mut(), &mut out);
                }
            }
            Turn::Signal(Signal::Stop) => self.site.wish(Wish::Stop { when: When::Now, restart: false }),
            Turn::Signal(Signal::Reload) => self.site.wish(Wish::Reload { module: String::new() }),
        }
        self.carry_out(out);
    }
    fn new_client(&mut self, flow: FlowId) -> u64 {
        self.next_client += 1;
        self.clients.insert(self.next_client, flow);
        self.by_flow.insert(flow, self.next_client);
        self.next_client
    }
    /// Bytes of a SIP connection: whole messages go to the driver, a ping is answered, nonsense ends it.
    fn stream(&mut self, flow: FlowId, bytes: &[u8], now: Instant) {
        let Some(connection) = self.listeners.connection(flow) else { return };
        let source = connection.flow;
        if is_banned(&self.site, source.remote.ip(), now) {
            self.net.close_flow(flow, Closing::AtOnce);
            return self.connection_lost(flow);
        }
        let Framing::Stream(framer) = &mut connection.framing else { return };
        framer.push(bytes);
        let mut answers = false;
        loop {
            match framer.next_frame() {
                Ok(Some(Frame::Message(message))) => {
                    self.net.keep(flow, Some(now + SIP_IDLE));
                    receive(&self.site, source, message);
                }
                Ok(Some(Frame::Ping)) => self.net.send_flow(flow, b"\r\n"),
                Ok(Some(Frame::Pong)) => answers = true,
                Ok(None) => break,
                Err(_) => {
                    self.net.close_flow(flow, Closing::Flush);
                    return self.connection_lost(flow);
                }
            }
        }
        self.listeners.heard(flow, answers);
        // A phone that keeps its flow open is there as long as anything comes (RFC 5626 §4.4.1).
        if let Some(patience) = self.site.sip.borrow().patience(source) {
            self.net.keep(flow, Some(now + patience));
        }
        if let Some(quiet) = self.site.sip.borrow().quiet(source) {
            self.listeners.keep(flow, quiet, now);
        }
    }
    /// A connection of HTTP speaks SIP in frames from here on. It stays on probation until its first message.
    fn upgrade(&mut self, upgraded: Upgraded, now: Instant) {
        let Upgraded { session, peer, secure, rest } = upgraded;
        let Some(flow) = self.clients.remove(&session) else { return };
        self.by_flow.remove(&flow);
        let protocol = if secure { Protocol::Wss } else { Protocol::Ws };
        if !self.listeners.adopt(flow, peer, protocol, now) {
            self.net.close_flow(flow, Closing::Flush);
        } else if !rest.is_empty() {
            self.frames(flow, &rest, now);
        }
    }
    /// Bytes of a WebSocket: each message goes to the driver; a goodbye or nonsense ends it.
    fn frames(&mut self, flow: FlowId, bytes: &[u8], now: Instant) {
        let Some(connection) = self.listeners.connection(flow) else { return };
        let source = connection.flow;
        if is_banned(&self.site, source.remote.ip(), now) {
            self.net.close_flow(flow, Closing::AtOnce);
            return self.connection_lost(flow);
        }
        let Framing::WebSocket(socket) = &mut connection.framing else { return };
        let mut messages: Vec<Vec<u8>> = Vec::new();
        let over = socket.receive(bytes, &mut |message| messages.push(message.to_vec())).is_err();
        let output = socket.take_output();
        if !output.is_empty() {
            self.net.send_flow(flow, &output);
        }
        for message in messages {
            // Line breaks are the pings of clients that know none of WebSocket's (RFC 7118 §6).
            if message.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                continue;
            }
            self.net.keep(flow, Some(now + SIP_IDLE));
            receive(&self.site, source, &message);
        }
        if over {
            self.net.close_flow(flow, Closing::Flush);
            self.connection_lost(flow);
        }
    }
    /// A connection that SIP came by is gone.
    fn connection_lost(&mut self, flow: FlowId) {
        if let Some(flow) = self.listeners.closed(flow) {
            let mut core = self.site.shard.core.borrow_mut();
            self.site.sip.borrow_mut().transport_error(&mut core, flow);
        }
    }

    /// Everything that follows from what happened, until nothing does.
    fn turn_machines(&mut self, now: Instant) {
        self.count(|counters| counters.turns += 1);
        self.follow_statics(now);
        self.follow_rows(now);
        self.follow_iax_rows(now);
        self.follow_contacts(Clocks { now, wall: Clock.wall() });
        self.count_rows();
        let site = self.site.clone();
        site.sip.borrow_mut().due(&mut site.shard.core.borrow_mut());
        let started = site.sip.borrow_mut().take_started();
        self.start_dialplans(started);
        site.iax.borrow_mut().due(&mut site.shard.core.borrow_mut());
        let started = site.iax.borrow_mut().take_started();
        self.start_dialplans(started);
        // Before the stories run: who sent the REFER may hang up as soon as it is answered.
        apps::parking::carry_out(&site.shard);
        site.shard.run(now);
        if self.local.borrow_mut().optimize(&mut site.shard.core.borrow_mut()) {
            site.shard.run(now);
        }
        // What keys have asked for.
        apps::parking::carry_out(&site.shard);
        site.iax.borrow_mut().ask_switches(&mut site.shard.core.borrow_mut());
        // A Dial of `Local/…` has begun a call of its own.
        let started = self.local.borrow_mut().take_started();
        self.start_dialplans(started);
        site.hints.borrow_mut().update(&site.shard);
        site.iax.borrow_mut().follow_bridges(&mut site.shard.core.borrow_mut());
        site.sip.borrow_mut().follow_bridges(&mut site.shard.core.borrow_mut());
        site.iax.borrow_mut().tell_messages(&mut site.shard.core.borrow_mut());
        site.sip.borrow_mut().tell_watchers(&mut site.shard.core.borrow_mut());
        for silent in self.listeners.due(&mut self.net, now) {
            self.net.close_flow(silent, Closing::AtOnce);
            self.connection_lost(silent);
        }
        self.write_records();
        self.follow_queue_rows();
        self.follow_ledger(now);
        self.tell_troubles();
        self.send();
        self.tell_watchers(now);
        self.tell_consoles();
        if self.load_at.is_none_or(|at| at <= now) {
            self.read_load(now);
        }
        if self.busy_at.is_none_or(|at| at <= now) {
            self.read_busy(now);
        }
        self.look_at_recordings(now);
        if let Some(mail) = &mut self.mail {
            self.mail_at = mail.poll(&self.site.snapshot.borrow(), now);
        }
    }
    fn count(&self, more: impl FnOnce(&mut Counters)) {
        let mut counters = self.site.counters.get();
        more(&mut counters);
        self.site.counters.set(counters);
    }
    fn start_dialplans(&self, started: Vec<(base::ChannelId, call::Location)>) {
        for (channel, location) in started {
            if !apps::pickup::start(&self.site.shard, channel, location) {
                self.site.shard.finish(channel, Cause::SWITCH_CONGESTION);
            }
        }
    }
    fn write_records(&mut self) {
        let mut core = self.site.shard.core.borrow_mut();
        self.queue_log.write(&mut core, self.queue_rows.as_mut());
        Self::write_events(&mut self.events, self.ledger.as_mut(), &mut core);
        let finished = std::mem::take(&mut core.cdrs);
        if finished.is_empty() {
            return;
        }
        if let Some(ledger) = &mut self.ledger {
            let now = core.now;
            let lost = ledger.write(&core, finished.iter().map(Entry::Call), now);
            if lost > 0 {
                let line = format!("{lost} call records were lost: too many wait for their databases");
                core.log(Level::Error, "cdr", &line);
            }
        }
        self.count(|counters| counters.records += finished.len() as u64);
        self.records.write(&mut core, finished);
    }
    /// Channel events go where they are wanted.
    fn write_events(events: &mut Events, ledger: Option<&mut Ledger>, core: &mut call::Core) {
        let happened = std::mem::take(&mut core.cels);
        if happened.is_empty() {
            return;
        }
        if let Some(ledger) = ledger {
            let now = core.now;
            let lost = ledger.write(core, happened.iter().map(Entry::Event), now);
            if lost > 0 {
                let line = format!("{lost} channel events were lost: too many wait for their databases");
                core.log(Level::Error, "cel", &line);
            }
        }
        events.write(core, &happened);
    }
    /// Call records that are due go to their databases.
    fn follow_ledger(&mut self, now: Instant) {
        let Some(ledger) = &mut self.ledger else { return };
        if ledger.deadline().is_some_and(|at| at <= now) {
            ledger.due(now);
        }
        if let Some(figures) = ledger.take_figures() {
            *self.site.record_tables.borrow_mut() = figures;
        }
        for (level, line) in ledger.take_lines() {
            self.log(level, "cdr", &line);
        }
    }
    /// What the threads that write cannot do, and connections that nobody can take for want of descriptors.
    fn tell_troubles(&mut self) {
        let records = self.records.trouble().into_iter().chain(self.queue_log.trouble());
        let records = records.chain(self.events.trouble());
        let log = self.site.log.trouble();
        let mut core = self.site.shard.core.borrow_mut();
        let db = core.services.db.trouble();
        let others = [("astdb", db), ("logger", log)];
        let others = others.into_iter().filter_map(|(place, trouble)| Some((place, trouble?)));
        let traces = self.traces.as_ref().and_then(Traces::trouble).map(|told| ("opentelemetry", told));
        for (place, trouble) in records.chain(others).chain(traces) {
            core.log(Level::Error, place, &trouble);
        }
        for (level, line) in self.externals.news() {
            core.log(level, "codec", &line);
        }
        let rests = self.net.stats().rests;
        if rests > self.rests_told {
            // Once until it is over: a listener rests again and again while there is no descriptor.
            if self.rests_quiet_until.is_none_or(|until| until <= core.now) {
                let line = "no descriptor is left for a connection, which has to wait; raise the limit on open files \
                            (ulimit -n, LimitNOFILE= of the systemd unit)";
                core.log(Level::Error, "strowger", line);
            }
            (self.rests_told, self.rests_quiet_until) = (rests, Some(core.now + RESTS_QUIET));
        }
    }
    /// Sends copies of SIP messages where hep.conf says, from here on.
    pub(crate) fn take_capture(&mut self, snapshot: &Snapshot) {
        let wanted = snapshot.hep.as_ref().filter(|_| snapshot.modules.has_module("res_hep"));
        let wanted = wanted.filter(|_| snapshot.modules.has_module("res_hep_pjsip"));
        let reports = wanted.is_some() && snapshot.modules.has_module("res_hep_rtcp");
        self.site.sip.borrow_mut().set_report_capture(reports);
        if self.capture.as_ref().map(Capture::wanted) == wanted {
            return;
        }
        let correlation = wanted.map(|hep| match hep.general.uuid_type {
            UuidType::CallId => Correlation::CallId,
            UuidType::Channel => Correlation::Channel,
        });
        self.site.sip.borrow_mut().set_capture(correlation);
        let started = wanted.map(Capture::start).transpose();
        self.capture = started.unwrap_or_else(|why| {
            let line = format!("nothing is captured: {why}; raise ulimit -u");
            self.log(Level::Error, "res_hep", &line);
            None
        });
    }
    /// Traces calls as opentelemetry.conf says, from here on.
    pub(crate) fn take_traces(&mut self, snapshot: &Snapshot) {
        let wanted = snapshot.telemetry.as_ref();
        if self.traces.as_ref().map(Traces::wanted) == wanted {
            return;
        }
        let seed = self.site.shard.core.borrow_mut().random();
        let started = wanted.map(|wanted| Traces::start(wanted, seed)).transpose();
        self.traces = started.unwrap_or_else(|why| {
            let line = format!("calls are not traced: {why}; raise ulimit -u");
            self.log(Level::Error, "opentelemetry", &line);
            None
        });
    }
    /// Makes spans of what happened.
    fn trace(&mut self, notices: &[Notice]) {
        let Some(traces) = &mut self.traces else { return };
        let (sent, lost) = traces.take_in(notices, &self.site);
        self.count(|counters| (counters.spans, counters.spans_lost) = (sent, lost));
    }
    /// Tells the server of statsd.conf from here on what StatsD() says.
    pub(crate) fn take_statistics(&mut self, snapshot: &Snapshot) {
        let wanted = snapshot.statsd.as_ref().filter(|_| snapshot.modules.has_module("res_statsd"));
        if self.statistics.as_ref().map(Statistics::wanted) == wanted {
            return;
        }
        let started = wanted.map(Statistics::start).transpose();
        self.statistics = started.unwrap_or_else(|why| {
            self.log(Level::Error, "res_statsd", &format!("nobody is told: {why}; raise ulimit -u"));
            None
        });
        self.site.shard.core.borrow_mut().statistics.is_told = self.statistics.is_some();
    }
    fn send_statistics(&mut self) {
        let lines = std::mem::take(&mut self.site.shard.core.borrow_mut().statistics.lines);
        if let Some(statistics) = &self.statistics {
            lines.iter().for_each(|line| statistics.send(line));
        }
    }
    /// Hands copies of messages to whoever sends them on.
    fn send_captured(&mut self) {
        let Some(capture) = &self.capture else { return };
        let (copies, reports) = {
            let mut sip = self.site.sip.borrow_mut();
            (sip.take_captured(), sip.take_captured_reports())
        };
        copies.into_iter().for_each(|copy| capture.send(Told::Message(copy)));
        reports.into_iter().for_each(|report| capture.send(Told::Report(report)));
        let (sent, lost) = capture.counts();
        self.count(|counters| (counters.captured, counters.capture_lost) = (sent, lost));
    }
    /// Messages leave after what they acknowledge is written down.
    fn send(&mut self) {
        let (changes, watched, sends, lookups) = {
            let mut sip = self.site.sip.borrow_mut();
            let watched = sip.take_subscription_changes(Clock.now());
            (sip.take_changes(), watched, sip.take_sends(), sip.take_lookups())
        };
        if !watched.is_empty() {
            let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
            let trouble = self.subscriptions.write(&watched, &self.site.sip.borrow(), clocks);
            if let Some(trouble) = trouble {
                self.log(Level::Error, "subscriptions", &trouble);
            }
        }
        if !changes.is_empty() {
            let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
            let trouble = self.registrations.write(&changes, &self.site.sip.borrow(), clocks);
            if let Some(contacts) = &mut *self.loader.contacts.borrow_mut() {
                contacts.changed(&changes, &self.site.sip.borrow(), clocks);
            }
            if let Some(trouble) = trouble {
                self.log(Level::Error, "registrations", &trouble);
            }
        }
        let more = self.site.iax.borrow_mut().take_lookups();
        lookups.iter().chain(&more).for_each(|question| self.names.borrow_mut().ask(question));
        self.send_iax();
        self.send_captured();
        self.send_statistics();
        let now = Clock.now();
        for send in sends {
            let sent = {
                let sip = self.site.sip.borrow();
                let name = sip.peer_name(send.flow);
                self.listeners.send(&mut self.net, send.flow, name, &send.bytes, now)
            };
            if !sent {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().transport_error(&mut core, send.flow);
            }
        }
    }
    fn tell_watchers(&mut self, now: Instant) {
        let mut out = Vec::new();
        let notices = {
            let mut core = self.site.shard.core.borrow_mut();
            core.watched = self.managers.manager.watching() || self.traces.is_some();
            std::mem::take(&mut core.notices)
        };
        self.want_reports();
        self.trace(&notices);
        if !notices.is_empty() {
            self.managers.manager.notices(&notices, &mut out);
        }
        if self.managers.deadline().is_some_and(|at| at <= now) {
            self.managers.manager.due(now, &mut out);
        }
        self.managers.manager.flush(&mut out);
        self.answer_web(&mut out);
        let logged_in = self.managers.manager.authenticated();
        for client in &logged_in {
            if let Some(flow) = self.clients.get(client) {
                self.net.keep(*flow, None);
            }
        }
        if std::mem::take(&mut self.managers_changed) || !logged_in.is_empty() {
            self.commands.borrow_mut().set_connected(self.managers.manager.connected());
        }
        self.carry_out(out);
    }
    /// Has the media plane tell of RTCP while a manager or a capture server wants that.
    fn want_reports(&mut self) {
        let wanted = self.managers.manager.wants_reports() || self.site.sip.borrow().captures_reports();
        let mut media = self.site.media.borrow_mut();
        let tracing = media.tracing();
        if tracing.reports != wanted {
            media.trace(io::media::Tracing { reports: wanted, ..tracing });
        }
    }
    /// Requests over HTTP that the manager has answered.
    fn answer_web(&mut self, out: &mut Vec<Output>) {
        for (client, answer) in self.managers.manager.take_web_answers() {
            self.web.http.answer(client, answer, out);
        }
    }
    /// Has files read that pages wait for. Who does not take a piece in time is let go.
    fn ask_files(&mut self, now: Instant) {
        let snapshot = self.site.snapshot.borrow().clone();
        for client in self.web.ask_files(&snapshot) {
            if let Some(flow) = self.clients.get(&client) {
                self.net.keep(*flow, Some(now + PIECE_WITHIN));
            }
        }
    }
    fn tell_consoles(&mut self) {
        let mut out = Vec::new();
        let finished = self.commands.borrow().finished();
        for Finished { session, text, status } in finished {
            self.sessions.finish(session, &text, status, &mut *self.commands.borrow_mut(), &mut out);
        }
        {
            let mut attached = self.tee.attached().borrow_mut();
            attached.view = self.sessions.widest();
            for (weight, line) in attached.lines.drain(..) {
                self.sessions.log(weight, &line, &mut out);
            }
        }
        self.carry_out(out);
    }
    fn carry_out(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send(client, bytes) => {
                    if let Some(flow) = self.clients.get(&client) {
                        self.net.send_flow(*flow, &bytes);
                    }
                }
                Output::Close(client) => {
                    if let Some(flow) = self.clients.remove(&client) {
                        self.by_flow.remove(&flow);
                        self.managers_changed = true;
                        self.net.close_flow(flow, Closing::Flush);
                    }
                }
            }
        }
    }
    /// The machine's load, looked at only while a limit wants it.
    fn read_load(&mut self, now: Instant) {
        let mut core = self.site.shard.core.borrow_mut();
        if core.admission.limits().max_load_centi == 0 {
            self.load_at = None;
            return;
        }
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        let minute = load.as_deref().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        core.admission.set_load((minute.unwrap_or(0.0) * 100.0) as u32);
        self.load_at = Some(now + LOAD_EVERY);
    }

    /// What media workers have to do.
    fn read_busy(&mut self, now: Instant) {
        let mut core = self.site.shard.core.borrow_mut();
        let calls = core.call_count();
        if core.admission.limits().max_busy_permille == 0 || calls < call::CALLS_ALWAYS {
            if self.busy_at.take().is_some() {
                core.admission.set_busy(0, calls);
            }
            return;
        }
        let loads = self.site.media.borrow().loads();
        let least = loads.workers().map(|load| load.busy_permille).min().unwrap_or(0);
        core.admission.set_busy(least as u32, calls);
        self.busy_at = Some(now + BUSY_EVERY);
    }

    /// Ends recordings that cannot be written, once in a while and as long as there are any.
    fn look_at_recordings(&mut self, now: Instant) {
        let mut core = self.site.shard.core.borrow_mut();
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            core.monitor_look();
        }
        if core.services.recorder.state().running > 0 || core.monitor_waits() {
            self.look_at.get_or_insert(now + LOOK_EVERY);
        }
    }

    fn grant_wishes(&mut self) {
        let wishes = std::mem::take(&mut *self.site.wishes.borrow_mut());
        for wish in wishes {
            match wish {
                Wish::Stop { when, restart } => self.stop(when, restart),
                Wish::AbortStop => {
                    self.site.stopping.set(None);
                    self.site.shard.core.borrow_mut().admission.set_closed(false);
                }
                Wish::Reload { module } => {
                    self.loader.load(&module);
                }
                Wish::RotateLogs => self.site.log.rotate(),
            }
        }
        self.take_configuration();
        if self.site.stopping.get().is_some() && self.site.shard.core.borrow().is_idle() {
            self.end = Some(if self.restart_wanted { End::Restart } else { End::Stop });
        }
    }
    fn stop(&mut self, when: When, restart: bool) {
        self.restart_wanted = restart;
        self.site
            .shard
            .core
            .borrow_mut()
            .notice(|_| Some(Notice::Shutdown { graceful: when != When::Now, restart }));
        match when {
            When::Now => self.end = Some(if restart { End::Restart } else { End::Stop }),
            When::Gracefully => {
                self.site.stopping.set(Some(when));
                self.site.shard.core.borrow_mut().admission.set_closed(true);
            }
            When::Convenient => self.site.stopping.set(Some(when)),
        }
    }
    /// Says goodbye on every call, lets what is queued leave, and writes down what is to be written.
    fn leave(&mut self, _end: End) {
        let ids: Vec<_> = self.site.shard.core.borrow().channels().map(|c| c.id).collect();
        for id in ids {
            self.site.shard.finish(id, Cause::NORMAL_CLEARING);
        }
        let until = Clock.now() + GOODBYE;
        self.write_records();
        self.send();
        self.tell_watchers(Clock.now());
        self.tell_consoles();
        // Peers answer our BYEs; a second is enough on any network that carries calls.
        while self.site.sip.borrow().load().dialogs > 0 && Clock.now() < until {
            let (site, listeners) = (&self.site, &self.listeners);
            let waited = self.net.wait(Clock.now(), Some(until), &mut |event| {
                if let NetEvent::Datagram { transport, from, bytes, .. } = event
                    && let Some(flow) = listeners.datagram(transport, from)
                {
                    receive(site, flow, bytes);
                }
            });
            if waited.is_err() {
                break;
            }
            self.send();
        }
        self.net.flush();
        self.write_rows(Clock.now() + LAST_ROWS);
        if let Some(ledger) = &mut self.ledger {
            ledger.finish(&|| Clock.now(), LAST_RECORDS);
        }
        if let Some(traces) = &mut self.traces {
            traces.finish(GOODBYE);
        }
        self.site.log.flush();
    }
}
