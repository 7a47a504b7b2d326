//! Reading the configuration again: everything is read and checked, then taken at once, or nothing is.
//!
//! Reading and checking answer whoever asked ([`Loader`]); taking happens between two turns of the loop, when nothing is
//! borrowed ([`Engine::take_configuration`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use ::sip::stack::Protocol;
use base::Instant;
use base::dns::{Answer, Kind, Question};
use call::{Level, Limits, Notice};
use codec::Coders;
use conf::{Finding, Findings};
use control::site::{Reloaded, Site};
use dialplan::Program;
use driver::sip::{Bind, Config};
use io::clock::Clock;
use io::media::PortRange;
use store::Snapshot;
use store::sounds::Catalogue;

use crate::contacts::Contacts;
use crate::databases::{DatabaseDesk, Shared};
use crate::iax_rows::{IaxRows, SharedIaxRows};
use crate::ledger::Ledger;
use crate::listen::{gives_way, listens, same_socket, shares};
use crate::registrations::Clocks;
use crate::rows::Rows;
use crate::secure::Wires;
use crate::start::{Asked, StartError, clocks_now};
use crate::statics::{Changed, Statics};
use crate::turn::Engine;
use crate::{dialplan_load, wire};

/// Who tells of rows in the log.
const ROWS: &str = "res_config_sql";
/// Who tells of databases themselves.
const DATABASES: &str = "res_odbc";

/// The gate's limits. The load limit is kept in hundredths, rounded up: none at all is written as 0.
pub(crate) fn limits(snapshot: &Snapshot, asked: Asked) -> Limits {
    let options = &snapshot.asterisk.options;
    let load = asked.max_load.map_or(options.maxload, f64::from);
    let load = (load * 100.0).clamp(0.0, f64::from(u32::MAX));
    Limits {
        max_calls: asked.max_calls.unwrap_or(options.maxcalls),
        calls_per_second: options.maxcps,
        max_load_centi: load.ceil() as u32,
        max_busy_permille: options.maxbusy * 10,
    }
}

/// What a finding says, wherever in its file that is: lines move when others are added.
pub(crate) fn without_line(finding: &Finding) -> String {
    format!("{}: {}", finding.place.file, finding.message)
}
/// The errors among findings, as text.
pub(crate) fn errors(findings: &Findings) -> BTreeSet<String> {
    findings.iter().filter(|finding| finding.level == conf::Level::Error).map(one_line).collect()
}

/// A finding in one line of the log: `file:line: level: what; remedy`.
pub(crate) fn one_line(finding: &Finding) -> String {
    let Finding { level, place, message, remedy } = finding;
    let end = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
    format!("{place}: {level}: {message}{end}")
}

/// A configuration that was read and found good.
pub(crate) struct Prepared {
    module: String,
    /// Watchers are told of it.
    is_told: bool,
    snapshot: Arc<Snapshot>,
    program: Arc<Program>,
    config: Config,
    iax: driver::iax::Config,
    wires: Wires,
    catalogue: Catalogue,
}

/// What reading again needs; shared with the dialects through [`Site::reload`].
#[derive(Default)]
pub(crate) struct Loader {
    site: Weak<Site>,
    /// What the DNS has said of the configuration's own names.
    pub(crate) hosts: RefCell<wire::Hosts>,
    /// Errors of the configuration in force: what was wrong before does not stand in the way of what is new and right.
    pub(crate) errors: RefCell<BTreeSet<String>>,
    pub(crate) prepared: RefCell<Option<Prepared>>,
    /// What the log has been told of the configuration in force; a reload tells it what is new.
    pub(crate) told: RefCell<BTreeSet<String>>,
    /// The databases, once a file has described one.
    pub(crate) databases: RefCell<Option<Shared>>,
    /// Files that lie in them whole.
    pub(crate) statics: RefCell<Option<Statics>>,
    /// The configuration that is about to be taken was read because those have changed.
    is_of_statics: Cell<bool>,
    /// Nothing but rows of families has changed: globals are as calls have left them.
    is_of_rows: Cell<bool>,
    /// It was told that files wait for a reload, and rows with them.
    told_waits: Cell<bool>,
    /// What lies in them of SIP.
    pub(crate) rows: RefCell<Option<Rc<RefCell<Rows>>>>,
    /// What of IAX2 does.
    pub(crate) iax_rows: RefCell<Option<SharedIaxRows>>,
    /// Where phones are that have registered.
    pub(crate) contacts: RefCell<Option<Contacts>>,
}

impl Loader {
    pub(crate) fn new(site: &Rc<Site>) -> Rc<Self> {
        let loader = Rc::new(Self { site: Rc::downgrade(site), ..Self::default() });
        let own = loader.clone();
        *site.reload.borrow_mut() = Some(Box::new(move |module| own.load(module)));
        loader
    }
    /// Reads and checks; what is good waits in `prepared`.
    pub(crate) fn load(&self, module: &str) -> Reloaded {
        let Some(site) = self.site.upgrade() else { return Reloaded::default() };
        let module = if module.is_empty() { "All" } else { module }.to_owned();
        let is_told = !site.quiet_reload.take();
        let before = site.snapshot.borrow().clone();
        let sections = self.rows.borrow().as_ref().map(|rows| rows.borrow().sections()).unwrap_or_default();
        let read = match &*self.statics.borrow() {
            Some(statics) => before.reload_kept(&sections, statics.kept()),
            None => before.reload_with(&sections),
        };
        let read = read.and_then(|(snapshot, findings)| self.check(&site, snapshot, findings));
        let (taken, findings) = match read {
            Ok((mut prepared, findings)) => {
                prepared.module.clone_from(&module);
                prepared.is_told = is_told;
                *self.prepared.borrow_mut() = Some(prepared);
                (true, findings)
            }
            Err(findings) => (false, findings),
        };
        let outcome = Reloaded { taken, said: findings.iter().map(one_line).collect() };
        let mut core = site.shard.core.borrow_mut();
        if !taken {
            core.log(Level::Error, "reload", "the configuration is refused; what ran goes on");
            core.notice(|_| is_told.then_some(Notice::Reload { module, status: 1 }));
        }
        let level = if taken { Level::Warning } else { Level::Error };
        {
            let told = self.told.borrow();
            let news = findings.iter().filter(|finding| !taken || !told.contains(&without_line(finding)));
            news.for_each(|finding| core.log(level, "reload", &one_line(finding)));
        }
        if taken {
            *self.told.borrow_mut() = findings.iter().map(without_line).collect();
        }
        *site.last_reload.borrow_mut() = outcome.clone();
        outcome
    }
    fn check(
        &self,
        site: &Site,
        snapshot: Arc<Snapshot>,
        mut findings: Findings,
    ) -> Result<(Prepared, Findings), Findings> {
        let (program, made) = {
            let core = site.shard.core.borrow();
            let made = core.parking.lots().filter(|lot| lot.dynamic).map(|lot| lot.settings.clone());
            (core.program.clone(), made.collect::<Vec<_>>())
        };
        let program = dialplan_load::compile(&snapshot, Some(&program), &made, &mut findings);
        let binds = site.sip.borrow().config().binds.clone();
        let mut config = wire::sip_config(&snapshot, &self.hosts.borrow(), &binds, &mut findings);
        config.stir = Rc::new(wire::stir_settings(&snapshot, &mut findings));
        if let Some(rows) = &*self.rows.borrow() {
            rows.borrow_mut().merge(&mut config);
        }
        let mut iax = wire::iax::iax_config(&snapshot);
        if let Some(rows) = &*self.iax_rows.borrow() {
            rows.borrow().merge(&mut iax);
        }
        let wires = Wires::read(&snapshot, &mut findings);
        // The coders are those that run when it is taken.
        let catalogue = crate::start::catalogue(&snapshot, &Arc::default(), &mut findings);
        // Whoever asked hears of a port in use. Should it be taken in the next moment, the log does.
        let is_ours = |old: &Bind, new: &Bind| {
            same_socket(old, new) || shares(old, new) || gives_way(old, new, &config.binds)
        };
        let known = |bind: &Bind| binds.iter().any(|old| is_ours(old, bind));
        for bind in config.binds.iter().filter(|bind| listens(bind) && !known(bind)) {
            if let Err(error) = io::net::try_bind(bind.local, bind.protocol == Protocol::Udp)
                && let Some(transport) = snapshot.pjsip.transports.get(&*bind.name)
            {
                let why = format!(
                    "transport '{}': cannot bind {} {}: {}",
                    bind.name, error.protocol, error.addr, error.error
                );
                findings.error(transport.origin.place_of("bind"), why, error.remedy());
            }
        }
        let errors = errors(&findings);
        if errors.iter().any(|error| !self.errors.borrow().contains(error)) {
            return Err(findings);
        }
        *self.errors.borrow_mut() = errors;
        Ok((
            Prepared {
                module: String::new(),
                is_told: true,
                snapshot,
                program,
                config,
                iax,
                wires,
                catalogue,
            },
            findings,
        ))
    }
}

impl Engine {
    /// Takes what a reload has prepared. A transport that cannot be opened refuses all of it.
    pub(crate) fn take_configuration(&mut self) {
        let Some(prepared) = self.loader.prepared.borrow_mut().take() else { return };
        let Prepared { module, is_told, snapshot, program, config, iax, wires, mut catalogue } = prepared;
        let fresh = match self.iax.prepare(&mut self.net, &iax) {
            Ok(fresh) => fresh,
            Err(error) => return self.refuse(module, vec![crate::start::iax_bind_error(&error).to_string()]),
        };
        let refused = self.listeners.configure(&mut self.net, &config.binds, &wires);
        if !refused.is_empty() {
            self.iax.drop_fresh(&mut self.net, fresh);
            let said = refused
                .iter()
                .map(|(name, error)| crate::start::bind_error(&snapshot, name, error).to_string());
            let said: Vec<String> = said.collect();
            return self.refuse(module, said);
        }
        for (name, error) in self.listeners.take_still_absent() {
            crate::start::log_shut(&self.site.shard, &snapshot, &name, &error);
        }
        for error in &fresh.still_absent {
            self.log(Level::Error, "chan_iax2", &crate::start::iax_bind_line(error));
        }
        let now = Clock.now();
        let site = self.site.clone();
        site.sip.borrow_mut().configure(config, now);
        self.iax.take(&mut self.net, &mut site.shard.core.borrow_mut(), fresh, iax);
        *site.iax_sight.borrow_mut() = self.iax.sight(&site.shard);
        let wake = self.sounds_wake.clone();
        self.externals.configure(&snapshot, move || wake.ring());
        let coders = self.set_coders(&snapshot);
        let coded = coders.coded();
        if let Some(mail) = &mut self.mail {
            mail.configure(&snapshot, &coders);
        }
        catalogue.coders = coders;
        site.sounds.borrow_mut().configure(catalogue, snapshot.tones.clone());
        site.log.configure(snapshot.logger.clone());
        {
            let mut core = site.shard.core.borrow_mut();
            core.settings = Rc::new(wire::settings(&snapshot, coded));
            core.admission.set_limits(limits(&snapshot, self.asked));
            core.bans.configure(wire::ban_rules(&snapshot));
            core.pins.clear();
            if !self.loader.is_of_rows.take() {
                if program.general().clearglobalvars {
                    core.globals.clear();
                }
                for (name, value) in program.globals() {
                    core.globals.set(name.as_var(), value, dialplan::Inherit::Never);
                    let (variable, value) = (name.name.to_string(), value.to_owned());
                    core.notice(|_| Some(Notice::VarSet { channel: None, variable, value }));
                }
            }
            core.program = program;
            core.reloaded_hints =
                matches!(module.as_str(), "" | "All" | "pbx_config" | "pbx_config.so" | "dialplan");
            core.log(Level::Notice, "reload", "the configuration was read again and taken");
            core.notice(|_| is_told.then_some(Notice::Reload { module, status: 0 }));
        }
        self.take_queues(&snapshot);
        self.take_parking(&snapshot);
        self.take_records(&snapshot);
        self.take_events(&snapshot);
        self.take_capture(&snapshot);
        self.take_statistics(&snapshot);
        self.take_traces(&snapshot);
        let ports = PortRange { first: snapshot.rtp.rtpstart, last: snapshot.rtp.rtpend };
        site.media.borrow_mut().set_ports(ports);
        self.names.borrow_mut().configure(&snapshot.resolver);
        let wanted = wire::questions(&snapshot, &self.loader.hosts.borrow());
        wanted.iter().for_each(|question| self.names.borrow_mut().ask(question));
        *site.snapshot.borrow_mut() = snapshot.clone();
        self.configure_databases(&snapshot);
        self.configure_statics(&snapshot, now);
        self.configure_queue_rows(&snapshot);
        if let Err(why) = self.take_ledger(&snapshot) {
            self.log(Level::Error, "cdr", &format!("call records go to no database: {why}"));
        }
        self.configure_rows(&snapshot, now);
        self.configure_iax_rows(&snapshot, now);
        self.configure_contacts(&snapshot, now);
        site.reloaded.set(now);
        site.reloaded_wall.set(i64::try_from(Clock.wall().as_secs()).unwrap_or(i64::MAX));
        self.managers.configure(&mut self.net, &site, &wires);
        self.web.configure(&mut self.net, &site, &wires);
        self.note_down();
    }

    /// What ran goes on, and everybody hears why.
    fn refuse(&mut self, module: String, said: Vec<String>) {
        let mut core = self.site.shard.core.borrow_mut();
        core.log(Level::Error, "reload", "the configuration is refused; what ran goes on");
        said.iter().for_each(|line| core.log(Level::Error, "reload", line));
        core.notice(|_| Some(Notice::Reload { module, status: 1 }));
        *self.site.last_reload.borrow_mut() = Reloaded { taken: false, said };
    }

    /// Calls are coded by the codecs that run and as this configuration says from here on.
    fn set_coders(&mut self, snapshot: &Snapshot) -> Arc<Coders> {
        let coders = self.externals.coders(snapshot);
        self.site.media.borrow_mut().set_coders(&coders);
        self.site.translation.set_coded(coders.coded());
        *self.site.external.borrow_mut() = self.externals.lines();
        coders
    }

    /// External codecs that a reload named have started, or have not.
    pub(crate) fn take_codecs(&mut self) {
        let Some(said) = self.externals.take_started() else { return };
        said.iter().for_each(|line| self.log(Level::Error, "codec", line));
        let snapshot = self.site.snapshot.borrow().clone();
        let coders = self.set_coders(&snapshot);
        // What the folders lack was said when they were read.
        let catalogue = crate::start::catalogue(&snapshot, &coders, &mut Findings::new());
        self.site.sounds.borrow_mut().configure(catalogue, snapshot.tones.clone());
        self.site.shard.core.borrow_mut().settings = Rc::new(wire::settings(&snapshot, coders.coded()));
    }

    /// The same for channel events and cel.conf.
    fn take_events(&mut self, snapshot: &Snapshot) {
        if !self.events.differs(snapshot) {
            return;
        }
        match crate::start::start_events(snapshot) {
            Ok(events) => self.events = events,
            Err(why) => self.log(Level::Error, "reload", &format!("{why}; events are written as before")),
        }
    }
    /// Begins to write call records as cdr.conf says, when it says something else than before. What waits is written
    /// first, as it was asked for when it came.
    fn take_records(&mut self, snapshot: &Snapshot) {
        if !self.records.differs(snapshot) {
            return;
        }
        match crate::start::start_records(snapshot) {
            Ok(records) => self.records = records,
            Err(why) => self.log(Level::Error, "reload", &format!("{why}; records are written as before")),
        }
    }

    /// The DNS has answered: what the configuration makes of names is made anew when they mean something else than before.
    pub(crate) fn resolved(&mut self, question: &Question, answer: Answer) {
        {
            let mut core = self.site.shard.core.borrow_mut();
            self.site.sip.borrow_mut().resolved(&mut core, question, answer.clone());
            self.site.iax.borrow_mut().resolved(&mut core, question, &answer);
        }
        let snapshot = self.site.snapshot.borrow().clone();
        let wanted = wire::questions(&snapshot, &self.loader.hosts.borrow());
        let Some(records) = answer.records.filter(|_| wanted.contains(question)) else { return };
        if !self.loader.hosts.borrow_mut().learn(question, &records) {
            return;
        }
        if question.kind == Kind::Srv {
            let more = wire::questions(&snapshot, &self.loader.hosts.borrow());
            let more = more.iter().filter(|more| !wanted.contains(more));
            more.for_each(|question| self.names.borrow_mut().ask(question));
        }
        self.configure_sip();
    }

    /// Has the driver take what files, databases and the DNS say.
    fn configure_sip(&self) {
        let binds = self.site.sip.borrow().config().binds.clone();
        let snapshot = self.site.snapshot.borrow().clone();
        let mut config =
            wire::sip_config(&snapshot, &self.loader.hosts.borrow(), &binds, &mut Findings::new());
        config.stir.clone_from(&self.site.sip.borrow().config().stir);
        if let Some(rows) = &*self.loader.rows.borrow() {
            rows.borrow_mut().merge(&mut config);
        }
        self.site.sip.borrow_mut().configure(config, Clock.now());
    }

    /// These are the databases from here on, for all who ask.
    pub(crate) fn take_databases(&mut self, databases: Shared) -> Result<(), StartError> {
        self.watch_databases(&databases).map_err(|why| StartError::Part {
            what: "the databases".to_owned(),
            why: why.to_string(),
            remedy: "raise the limit on open files (ulimit -n)".to_owned(),
        })?;
        *self.site.databases.borrow_mut() = Some(databases.clone());
        let realtime = self.site.snapshot.borrow().realtime.clone();
        self.links.borrow_mut().set_databases(Some(databases.clone()), realtime);
        *self.loader.databases.borrow_mut() = Some(databases);
        self.tell_databases();
        Ok(())
    }
    /// Has the log say which databases were missed or found.
    pub(crate) fn tell_databases(&mut self) {
        let lines = self.loader.databases.borrow().as_ref().map(|desk| desk.borrow_mut().take_lines());
        for (level, line) in lines.unwrap_or_default() {
            self.log(level, DATABASES, &line);
        }
    }
    /// Objects of SIP lie in databases from the start on.
    pub(crate) fn take_rows(&mut self, rows: Option<Rc<RefCell<Rows>>>) {
        let Some(rows) = rows else { return };
        self.site.sip.borrow_mut().set_directory(Some(rows.clone()));
        self.site.caches.borrow_mut().push(rows.clone());
        *self.loader.rows.borrow_mut() = Some(rows);
    }
    /// Users and peers of IAX2 lie in databases from here on; the driver knows it.
    pub(crate) fn take_iax_rows(&mut self, rows: Option<SharedIaxRows>) {
        let Some(rows) = rows else { return };
        self.site.caches.borrow_mut().push(rows.clone());
        *self.loader.iax_rows.borrow_mut() = Some(rows);
    }
    /// A reload says where users and peers of IAX2 lie.
    fn configure_iax_rows(&mut self, snapshot: &Arc<Snapshot>, now: Instant) {
        let known = self.loader.iax_rows.borrow().clone();
        if let Some(rows) = known {
            return rows.borrow_mut().configure(snapshot, now);
        }
        let Some(databases) = self.loader.databases.borrow().clone() else { return };
        let seed = self.site.shard.core.borrow_mut().random();
        let rows = IaxRows::open(snapshot, &databases, seed, now).map(|rows| Rc::new(RefCell::new(rows)));
        if let Some(rows) = &rows {
            self.iax.set_rows(rows);
        }
        self.take_iax_rows(rows);
    }
    /// What follows from what databases have said of IAX2, and rows that are to be written.
    pub(crate) fn follow_iax_rows(&mut self, now: Instant) {
        let Some(rows) = self.loader.iax_rows.borrow().clone() else { return };
        let clocks = Clocks { now, wall: Clock.wall() };
        if rows.borrow().deadline().is_some_and(|at| at <= now) {
            rows.borrow_mut().due(clocks);
        }
        let effects = rows.borrow_mut().take_effects(clocks);
        if effects.is_nothing() {
            return;
        }
        for (level, line) in &effects.lines {
            self.log(*level, ROWS, line);
        }
        let mut core = self.site.shard.core.borrow_mut();
        let mut iax = self.site.iax.borrow_mut();
        if !effects.learned.is_empty() {
            iax.learn(&mut core, effects.learned);
        }
        for (kind, name, said) in &effects.finished {
            iax.looked_up(&mut core, *kind, name, *said);
        }
    }
    /// A reload says whether contacts lie in a database.
    fn configure_contacts(&mut self, snapshot: &Snapshot, now: Instant) {
        let mut contacts = self.loader.contacts.borrow_mut();
        if let Some(contacts) = &mut *contacts {
            return contacts.configure(snapshot, now);
        }
        let databases = self.loader.databases.borrow().clone();
        *contacts = databases.and_then(|databases| Contacts::open(snapshot, &databases, now));
    }
    /// Counts rows of registrations for those who watch.
    pub(crate) fn count_rows(&self) {
        let sip = self.loader.contacts.borrow().as_ref().map(Contacts::written);
        let iax = self.loader.iax_rows.borrow().as_ref().map(|rows| rows.borrow().written());
        let queues = self.queue_rows.as_ref().map(|rows| rows.written());
        let [waiting, written, lost] = [sip, iax, queues]
            .into_iter()
            .flatten()
            .fold([0; 3], |sum, more| [sum[0] + more[0], sum[1] + more[1], sum[2] + more[2]]);
        let mut counters = self.site.counters.get();
        (counters.rows_waiting, counters.rows_written, counters.rows_lost) = (waiting, written, lost);
        self.site.counters.set(counters);
    }
    /// Contacts that databases have told of, and rows that are to be written.
    pub(crate) fn follow_contacts(&mut self, clocks: Clocks) {
        let lines = {
            let mut contacts = self.loader.contacts.borrow_mut();
            let Some(contacts) = &mut *contacts else { return };
            contacts.agree(&mut self.site.sip.borrow_mut(), &self.registrations, clocks);
            if contacts.deadline().is_some_and(|at| at <= clocks.now) {
                contacts.due(clocks.now);
            }
            contacts.take_lines()
        };
        lines.iter().for_each(|(level, line)| self.log(*level, ROWS, line));
    }
    /// Has databases take what waits to be written, for as long as an end may wait.
    pub(crate) fn write_rows(&mut self, until: Instant) {
        let Some(databases) = self.loader.databases.borrow().clone() else { return };
        loop {
            let iax = self
                .loader
                .iax_rows
                .borrow()
                .as_ref()
                .is_some_and(|rows| rows.borrow_mut().hurry(clocks_now()));
            let sip = self
                .loader
                .contacts
                .borrow_mut()
                .as_mut()
                .is_some_and(|contacts| contacts.hurry(Clock.now()));
            let queues = self.queue_rows.as_mut().is_some_and(|rows| rows.hurry(Clock.now()));
            if !(iax || sip || queues) || Clock.now() >= until {
                return;
            }
            databases.borrow_mut().wait(until.since(Clock.now()));
        }
    }
    /// A reload says which databases there are.
    fn configure_databases(&mut self, snapshot: &Snapshot) {
        let known = self.loader.databases.borrow().clone();
        if let Some(databases) = known {
            databases.borrow_mut().configure(&snapshot.realtime);
            return self.links.borrow_mut().set_databases(Some(databases), snapshot.realtime.clone());
        }
        let taken = match DatabaseDesk::open(&snapshot.realtime) {
            Ok(Some(databases)) => self.take_databases(databases).map_err(|why| why.to_string()),
            Ok(None) => Ok(()),
            Err(why) => Err(why.to_string()),
        };
        if let Err(why) = taken {
            self.log(Level::Error, ROWS, &format!("no database is asked: {why}"));
        }
    }
    /// A reload says which files lie in databases. One that they themselves have brought about asks nothing anew.
    fn configure_statics(&mut self, snapshot: &Snapshot, now: Instant) {
        let mut statics = self.loader.statics.borrow_mut();
        match &mut *statics {
            Some(statics) if self.loader.is_of_statics.take() => statics.rest(),
            Some(statics) => statics.configure(snapshot, now),
            None => {
                let databases = self.loader.databases.borrow().clone();
                *statics = databases.and_then(|databases| Statics::open(snapshot, &databases, now));
            }
        }
    }
    /// What follows from the files that databases have given.
    pub(crate) fn follow_statics(&mut self, now: Instant) {
        let missed = self.site.shard.core.borrow_mut().rows_again.take_wish();
        let (lines, changed) = {
            let mut statics = self.loader.statics.borrow_mut();
            let Some(statics) = &mut *statics else { return };
            if missed {
                statics.missed(now);
            }
            if statics.deadline().is_some_and(|at| at <= now) {
                statics.due(now);
            }
            (statics.take_lines(), statics.take_changed())
        };
        lines.iter().for_each(|(level, line)| self.log(*level, ROWS, line));
        if let Some(changed) = changed {
            self.take_statics(changed);
        }
        // What is prepared is taken first.
        let is_settled = self.loader.prepared.borrow().is_none();
        let mut core = self.site.shard.core.borrow_mut();
        if let Some(statics) = &mut *self.loader.statics.borrow_mut() {
            core.rows_again.exist = statics.has_families();
            if core.rows_again.is_awaited() && is_settled && statics.have_come(now) {
                core.rows_came();
            }
        }
    }
    /// Databases say something else than what is in force. What nobody asked to be read again is not: rows wait for a
    /// reload while files of the folder are others than those that were read.
    fn take_statics(&mut self, changed: Changed) {
        if !changed.of_reload && self.site.snapshot.borrow().changed() {
            if !self.loader.told_waits.replace(true) {
                let line =
                    "rows of databases have changed, and files of the folder have, too: reload to take both";
                self.log(Level::Warning, ROWS, line);
            }
            return;
        }
        self.loader.told_waits.set(false);
        self.loader.is_of_statics.set(true);
        self.loader.is_of_rows.set(!changed.files);
        if !self.loader.load("extconfig").taken {
            self.loader.is_of_statics.set(false);
            self.loader.is_of_rows.set(false);
        }
    }
    /// Call records go where this configuration says, from databases' side.
    pub(crate) fn take_ledger(&mut self, snapshot: &Snapshot) -> std::io::Result<()> {
        let databases = self.loader.databases.borrow().clone();
        match &mut self.ledger {
            Some(ledger) => ledger.configure(snapshot, databases, Clock.now()),
            None => self.ledger = Ledger::open(snapshot, databases, Clock.now())?,
        }
        Ok(())
    }
    /// A reload says where objects of SIP lie.
    fn configure_rows(&mut self, snapshot: &Arc<Snapshot>, now: Instant) {
        let known = self.loader.rows.borrow().clone();
        if let Some(rows) = known {
            return rows.borrow_mut().configure(snapshot, now);
        }
        let Some(databases) = self.loader.databases.borrow().clone() else { return };
        let seed = self.site.shard.core.borrow_mut().random();
        let rows = Rows::open(snapshot, &databases, seed, now);
        self.take_rows(rows.map(|rows| Rc::new(RefCell::new(rows))));
    }
    /// What follows from what databases have said.
    pub(crate) fn follow_rows(&mut self, now: Instant) {
        let Some(rows) = self.loader.rows.borrow().clone() else { return };
        if rows.borrow().deadline().is_some_and(|at| at <= now) {
            rows.borrow_mut().due(now);
        }
        let mut effects = rows.borrow_mut().take_effects();
        if effects.is_nothing() {
            return;
        }
        let learned = rows.borrow_mut().learn(&mut effects, &self.loader.hosts.borrow());
        for (level, line) in std::mem::take(&mut effects.lines) {
            self.log(level, ROWS, &line);
        }
        // All of them, or those that came.
        let came: Option<Vec<Rc<str>>> =
            learned.as_ref().map(|learned| learned.endpoints.iter().map(|(name, _)| name.clone()).collect());
        match learned {
            Some(learned) if learned.is_empty() => {}
            Some(learned) => {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().learn(&mut core, learned);
            }
            None => self.configure_sip(),
        }
        let clocks = Clocks { now, wall: Clock.wall() };
        let settled = self.registrations.settle(&mut self.site.sip.borrow_mut(), clocks);
        if let Some(contacts) = &mut *self.loader.contacts.borrow_mut() {
            contacts.name_endpoints(came.as_deref(), &self.site.sip.borrow(), clocks);
        }
        // Rows that were read before were not compared with what has come back only at this moment.
        if settled && let Some(contacts) = &mut *self.loader.contacts.borrow_mut() {
            contacts.read_again(now);
        }
        {
            let mut core = self.site.shard.core.borrow_mut();
            let mut sip = self.site.sip.borrow_mut();
            effects.finished.iter().for_each(|(name, said)| sip.looked_up(&mut core, name, *said));
        }
        if effects.reload {
            self.loader.load("");
        }
    }
}
