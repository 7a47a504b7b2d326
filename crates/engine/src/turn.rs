//! The loop: one clock reading, one wait, everything that happened, everything that follows.
//!
//! Here is what the process owns, and in which order a turn goes on; what a turn does is in the modules below.

mod answers;
mod arrivals;
mod clients;
mod connections;
mod look;
mod observers;
mod open;
mod records;
mod send;
mod wishes;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Cause, Instant};
use call::Level;
use control::cli::Cli;
use control::site::{Counters, Site};
use control::socket::Sessions;
use driver::local::LocalDriver;
use io::clock::Clock;
use io::net::{Closing, FlowId, Net};
use io::wake::Wake;

use self::arrivals::Turn;
use crate::callfiles::CallFiles;
use crate::cel::Events;
use crate::certificates::Certificates;
use crate::doors::Tee;
use crate::externals::Externals;
use crate::hep::Capture;
use crate::iax::Iax;
use crate::ledger::Ledger;
use crate::links::LinkDesk;
use crate::listen::Listeners;
use crate::mail::Mail;
use crate::managers::Managers;
use crate::names::Names;
use crate::records::Records;
use crate::registrations::{Clocks, Registrations};
use crate::reload::Loader;
use crate::secure::Insecure;
use crate::statics::Statics;
use crate::statsd::Statistics;
use crate::subscriptions::Subscriptions;
use crate::telemetry::Traces;
use crate::web::Web;

pub(crate) use self::arrivals::is_banned;

/// So long at most only what came by IAX2 is looked at, while nothing else asks for its turn: most datagrams of a registration
/// and all of voice concern a machine of one socket alone, and to go through everything for each took as long as they did.
const ASIDE: Duration = Duration::from_millis(20);

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
    certificates: Certificates,
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
    /// When streams are asked for their totals next, while there are calls and somebody watches.
    quality_at: Option<Instant>,
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
        let ring = Arc::clone(&sounds_wake);
        let certificates = Certificates::new(Arc::new(move || ring.ring()));
        Self {
            certificates,
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
            quality_at: None,
            end: None,
            asked: crate::start::Asked::default(),
            restart_wanted: false,
            rests_told: 0,
            rests_quiet_until: None,
            insecure: Insecure::default(),
            managers_changed: false,
        }
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
            if self.site.sip.borrow_mut().take_hurries() {
                self.net.hurry(now);
            }
            self.grant_wishes();
            if let Some(end) = self.end {
                self.leave(end);
                return Ok(end);
            }
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
        machines
            .chain([self.load_at, self.busy_at, self.look_at, self.quality_at, self.mail_at])
            .flatten()
            .min()
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
        let wanted = site.sip.borrow_mut().take_certificate_wants();
        wanted.into_iter().for_each(|want| self.certificates.fetch(want));
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
        self.ask_quality(now);
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
}
