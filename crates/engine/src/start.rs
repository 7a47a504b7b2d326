//! Building the running system, part after part, each with an error that names its remedy.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use apps::hints::Hints;
use call::{Core, Services, Shard};
use codec::Coders;
use conf::Findings;
use control::site::{Counters, Reloaded, Site};
use driver::iax::IaxDriver;
use driver::local::LocalDriver;
use driver::sip::SipDriver;
use io::clock::Clock;
use io::media::{Interfaces, Io, IoWish, Lanes, Level, MediaFront, MediaSettings, PortRange, Translation};
use io::net::{BindError, Limits, Net};
use io::wake::Wake;
use store::astdb::AstDb;
use store::config::music::{KillMethod, Mode, MusicClass, Sort};
use store::log::{LogSender, LogSink};
use store::sounds::{Catalogue, MusicList, MusicOrder, Program, Recordings, Sounds, packaged_sounds};
use store::{Snapshot, Where};

use crate::cel::Events;
use crate::contacts::Contacts;
use crate::databases::DatabaseDesk;
use crate::doors::{Machine, Media, NoRecorder, SharedSounds, Tee, Wall};
use crate::externals::Externals;
use crate::iax::Iax;
use crate::iax_rows::{IaxRows, SharedIaxRows};
use crate::keys::pool::Pool;
use crate::links::{LinkDesk, Links};
use crate::listen::Listeners;
use crate::mail::Mail;
use crate::names::Names;
use crate::records::Records;
use crate::registrations::{Clocks, Registrations};
use crate::rows::{Rows, START_WAIT};
use crate::secure::Wires;
use crate::statics::Statics;
use crate::subscriptions::Subscriptions;
use crate::turn::Engine;
use crate::{dialplan_load, wire};

/// What the command line decides.
pub struct Options {
    /// Where the configuration lies.
    pub place: Where,
    /// Where log lines for the console go; `None` when consoles attach by the socket.
    pub console: Option<Box<dyn Write + Send>>,
    /// `-v`s.
    pub verbose: u8,
    /// `-d`s.
    pub debug: u8,
    /// Control socket, when `-s` names one.
    pub socket: Option<PathBuf>,
    /// Descriptors the process may have.
    pub files: u64,
    /// `-T`: verbose lines of the console begin with the time.
    pub timestamps: bool,
    /// `-M` and `-L`.
    pub asked: Asked,
    /// Media worker threads; `None`: one less than the processors.
    pub workers: Option<usize>,
    /// The console gets the commands that make parts of calls panic; for tests.
    pub fault_injection: bool,
}

/// Limits of the command line, which are stronger than those of asterisk.conf, also after a reload.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// Most calls at once.
    pub max_calls: Option<u32>,
    /// Load average above which new calls are refused.
    pub max_load: Option<f32>,
}

/// Why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is refused as a whole.
    #[error("the configuration is refused:\n{}", .0.join("\n"))]
    Configuration(Vec<String>),
    /// A folder cannot be made or written.
    #[error("{folder}: {source}; make the folder writable or change {option} in asterisk.conf [directories]")]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Which option names it.
        option: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A part refuses.
    #[error("{what}: {why}; {remedy}")]
    Part {
        /// Which part.
        what: String,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
}

fn part(what: &str, why: impl ToString, remedy: &str) -> StartError {
    StartError::Part { what: what.to_owned(), why: why.to_string(), remedy: remedy.to_owned() }
}

/// Unpredictable bytes; the kernel's own. Ends the process when there are none.
pub fn secret<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill_secret(&mut bytes);
    bytes
}

/// Fills in unpredictable bytes, as [`secret`] gives them.
pub(crate) fn fill_secret(bytes: &mut [u8]) {
    if getrandom::fill(bytes).is_err() {
        // Without randomness no key, tag, nonce or port is safe; there is nothing sensible to go on with.
        eprintln!("strowger: the kernel gives no random numbers");
        std::process::exit(1);
    }
}

impl Engine {
    /// Starts everything but the loop. The process's own threads begin here.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let (mut snapshot, mut findings) = Snapshot::start(&options.place).map_err(|findings| {
            StartError::Configuration(findings.iter().map(ToString::to_string).collect())
        })?;
        let media_io = media_io(&snapshot, options.workers);
        // No thread is ever started with these, and none but this one has had them.
        io::process::drop_media_powers()
            .map_err(|why| part("giving up privileges", why, "start it in an ordinary process"))?;
        let media_io = media_io?;
        let folders = snapshot.asterisk.directories.clone();
        for (folder, option) in [
            (&folders.astdbdir, "astdbdir"),
            (&folders.astlogdir, "astlogdir"),
            (&folders.astrundir, "astrundir"),
            (&folders.astspooldir, "astspooldir"),
        ] {
            fs::create_dir_all(folder).map_err(|source| StartError::Folder {
                folder: folder.clone(),
                option,
                source,
            })?;
        }
        let mut net = Net::new(Limits::within(options.files))
            .map_err(|why| part("the reactor", why, "raise the limit on open files (ulimit -n)"))?;
        net.catch_signals().map_err(|why| part("signals", why, "start it in an ordinary process"))?;

        let (log, sender) = LogSink::start(&snapshot.logger, &folders.astlogdir, options.console)
            .map_err(|why| part("the log", why, "make astlogdir writable"))?;
        let console_verbose =
            options.verbose.max(u8::try_from(snapshot.asterisk.options.verbose).unwrap_or(0));
        log.set_verbose(console_verbose);
        log.set_timestamps(options.timestamps);
        log.set_debug(options.debug.max(u8::try_from(snapshot.asterisk.options.debug).unwrap_or(0)));

        let (media, warnings) = start_media(&snapshot, media_io)?;
        let (externals, not_started) = Externals::start(&snapshot);
        let coders = externals.coders(&snapshot);
        media.borrow_mut().set_coders(&coders);
        let wake = Arc::new(Wake::new().map_err(|why| part("the sounds", why, "raise ulimit -n"))?);
        let ring = Arc::clone(&wake);
        let sounds =
            Sounds::start(catalogue(&snapshot, &coders, &mut findings), snapshot.tones.clone(), move || {
                ring.ring()
            })
            .map_err(|why| part("the thread that reads sounds", why, "raise ulimit -u"))?;
        let sounds = Rc::new(RefCell::new(sounds));
        let tee = Tee::new(sender.clone());
        let databases = DatabaseDesk::open(&snapshot.realtime)
            .map_err(|why| part("the thread that asks databases", why, "raise ulimit -n and ulimit -u"))?;
        let mut statics = databases.as_ref().and_then(|asked| Statics::open(&snapshot, asked, Clock.now()));
        if let Some(statics) = &mut statics {
            snapshot = statics.wait(&snapshot, &|| Clock.now(), &mut findings);
        }
        let seed = u64::from_le_bytes(secret());
        let mut rows = databases.as_ref().and_then(|asked| Rows::open(&snapshot, asked, seed, Clock.now()));
        let seed = u64::from_le_bytes(secret());
        let iax_rows =
            databases.as_ref().and_then(|asked| IaxRows::open(&snapshot, asked, seed, Clock.now()));
        let patient_until = Clock.now() + START_WAIT;
        if let Some(rows) = &mut rows {
            rows.wait(&|| Clock.now(), &mut findings);
            snapshot = rows.snapshot().clone();
        }
        let mut contacts = databases.as_ref().and_then(|asked| Contacts::open(&snapshot, asked, Clock.now()));
        if let Some(contacts) = &mut contacts {
            contacts.wait(patient_until, &|| Clock.now());
        }
        let iax_rows = iax_rows.map(|mut rows| {
            rows.wait(patient_until, &clocks_now);
            Rc::new(RefCell::new(rows))
        });
        let rows = rows.map(|rows| Rc::new(RefCell::new(rows)));
        let program = dialplan_load::compile(&snapshot, None, &[], &mut findings);
        let names = Names::start(&snapshot.resolver)
            .map_err(|why| part("the thread that asks name servers", why, "raise ulimit -n and ulimit -u"))?;
        let names = Rc::new(RefCell::new(names));
        let links = LinkDesk::start()
            .map_err(|why| part("the broker of programs", why, "raise ulimit -n and ulimit -u"))?;
        let links = Rc::new(RefCell::new(links));
        let mail = Mail::start(&snapshot, &coders, &wake)
            .map_err(|why| part("the thread that keeps mailboxes", why, "raise ulimit -u"))?;
        let mut services = services(&snapshot, &media, &sounds, &names, &links, &wake, tee.clone())?;
        services.post = mail.office();
        let seed = u64::from_le_bytes(secret());
        let mut core = Core::new(services, wire::settings(&snapshot, coders.coded()), program.clone(), seed);
        core.now = Clock.now();
        let wall = core.services.wall.now_micros();
        core.begin_uniqueids(wall);
        core.reach = apps::reach;
        core.hinted = apps::hinted;
        core.parks = apps::parking::parks;
        core.admission.set_limits(crate::reload::limits(&snapshot, options.asked));
        core.bans.configure(wire::ban_rules(&snapshot));
        for (name, value) in program.globals() {
            core.globals.set(name.as_var(), value, dialplan::Inherit::Never);
        }
        let shard = Shard::new(core);
        shard.interception.set(apps::intercept);

        let mut config = wire::sip_config(&snapshot, &wire::Hosts::default(), &[], &mut findings);
        config.stir = Rc::new(wire::stir_settings(&snapshot, &mut findings));
        if let Some(rows) = &rows {
            rows.borrow_mut().merge(&mut config);
        }
        let routes = crate::resolve::Routes::default();
        let driver =
            SipDriver::new(config, u128::from_le_bytes(secret()), secret(), move |peer| routes.towards(peer));
        let sip = Rc::new(RefCell::new(driver));
        let tech = shard.add_tech(sip.clone());
        sip.borrow_mut().set_tech_index(tech);
        let local = Rc::new(RefCell::new(LocalDriver::default()));
        let tech = shard.add_tech(local.clone());
        local.borrow_mut().set_tech_index(tech);

        let iax = Rc::new(RefCell::new(IaxDriver::new(u128::from_le_bytes(secret()))));
        let tech = shard.add_tech(iax.clone());
        iax.borrow_mut().set_tech_index(tech);

        let mut listeners = Listeners::default();
        let wires = Wires::read(&snapshot, &mut findings);
        let shut = listeners.begin(&mut net, &sip.borrow().config().binds.clone(), &wires);
        shut.iter().for_each(|(name, error)| log_shut(&shard, &snapshot, name, error));
        let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
        let (registrations, restored) =
            Registrations::open(&folders.astdbdir, &mut sip.borrow_mut(), rows.is_some(), clocks)
                .map_err(|why| part("the journal of registrations", why, "make astdbdir writable"))?;
        sip.borrow_mut().starts_at(clocks.now);
        if let Some(contacts) = &mut contacts {
            contacts.set_first(registrations.is_new);
            contacts.agree(&mut sip.borrow_mut(), &registrations, clocks);
        }
        let (subscriptions, watching) = Subscriptions::open(&folders.astdbdir, &mut sip.borrow_mut(), clocks)
            .map_err(|why| part("the journal of subscriptions", why, "make astdbdir writable"))?;
        let iax_sockets = start_iax(
            &snapshot,
            &mut net,
            (&shard, &iax, iax_rows.as_ref()),
            (&folders.astdbdir, &wake),
            clocks,
        )?;
        let records = start_records(&snapshot)?;
        let events = start_events(&snapshot)?;
        let wanted = wire::questions(&snapshot, &wire::Hosts::default());
        wanted.iter().for_each(|question| names.borrow_mut().ask(question));

        let socket = options.socket.unwrap_or_else(|| snapshot.asterisk.control_socket());
        let site = site(&snapshot, &shard, (&sip, &iax), &media, &sounds, (log, sender), clocks);
        light_between_stories(&site);
        site.translation.set_coded(coders.coded());
        *site.external.borrow_mut() = externals.lines();
        *site.iax_sight.borrow_mut() = iax_sockets.sight(&shard);
        let mut engine = Engine::assemble(
            net,
            listeners,
            site,
            local,
            records,
            events,
            (registrations, subscriptions, iax_sockets),
            (names, links),
            wake,
            tee,
        );
        engine.asked = options.asked;
        engine.start_queues(&snapshot);
        engine.take_parking(&snapshot);
        if let Some(databases) = databases {
            engine.take_databases(databases)?;
        }
        engine.configure_queue_rows(&snapshot);
        engine.restore_callbacks();
        engine
            .take_ledger(&snapshot)
            .map_err(|why| part("the journal of call records", why, "make astdbdir writable"))?;
        engine.take_rows(rows);
        engine.take_iax_rows(iax_rows);
        *engine.loader.contacts.borrow_mut() = contacts;
        *engine.loader.statics.borrow_mut() = statics;
        engine.externals = externals;
        engine.mail = Some(mail);
        engine.open_control(&socket, snapshot.asterisk.control_mode())?;
        give_away(&shard, &socket, &snapshot.asterisk.files);
        engine.open_manager(&snapshot, &wires);
        engine.take_capture(&snapshot);
        engine.take_statistics(&snapshot);
        engine.take_traces(&snapshot);
        if !snapshot.modules.disabled().contains("pbx_spool") {
            engine.watch_call_files(&snapshot.asterisk.directories.astspooldir);
        }
        engine.say(&findings, &warnings, (restored, watching));
        not_started.iter().for_each(|line| engine.log(call::Level::Error, "codec", line));
        if options.fault_injection {
            engine.site().fault_injection.set(true);
            let line = format!(
                "the console can make calls fail on purpose; unset {} unless this is a test",
                control::cli::FAULT_INJECTION
            );
            engine.site().shard.core.borrow_mut().log(call::Level::Warning, "strowger", &line);
        }
        Ok(engine)
    }
}

/// The control socket goes to whom asterisk.conf names; where that cannot be, it stays with the user of the process, which
/// the log says.
fn give_away(shard: &Shard, socket: &Path, files: &store::config::asterisk::ControlFiles) {
    // One of them that does not exist is no reason to keep the socket from the other.
    for (option, owner, group) in
        [("astctlowner", Some(&*files.astctlowner), None), ("astctlgroup", None, Some(&*files.astctlgroup))]
    {
        if owner.or(group).is_none_or(str::is_empty) {
            continue;
        }
        if let Err(why) = io::process::own(socket, owner, group) {
            let line = format!(
                "{}: the control socket {} stays as it is: {why}; name a group that the user Strowger runs as belongs to, or \
                 remove the line",
                files.origin.place_of(option),
                socket.display()
            );
            shard.core.borrow_mut().log(call::Level::Error, "strowger", &line);
        }
    }
}

/// What moves the packets, while the process has its privileges.
fn media_io(snapshot: &Snapshot, workers: Option<usize>) -> Result<Io, StartError> {
    let setting = snapshot.rtp.media_io.word();
    let place = || snapshot.rtp.origin.place_of("media_io").to_string();
    let wish: IoWish = setting.parse().map_err(|why| part(&place(), why, "write media_io=auto"))?;
    let configured = usize::try_from(snapshot.rtp.media_workers).ok().filter(|count| *count > 0);
    let names = snapshot.rtp.interfaces();
    let interfaces = Interfaces { names: &names, kernel_relay: snapshot.rtp.kernel_relay.may() };
    Io::choose(wish, interfaces, workers.or(configured)).map_err(|why| part(&place(), &why, why.remedy()))
}

fn start_media(
    snapshot: &Snapshot,
    io: Io,
) -> Result<(Rc<RefCell<MediaFront>>, Vec<io::media::Warning>), StartError> {
    let mut pool = SecretNumbers::default();
    let settings = MediaSettings {
        ports: PortRange { first: snapshot.rtp.rtpstart, last: snapshot.rtp.rtpend },
        io,
        real_time: true,
        tick_ms: snapshot.rtp.media_tick.ms(),
        lanes: lanes(snapshot)?,
        random: Box::new(move || pool.next()),
    };
    let (front, warnings) =
        MediaFront::start(settings).map_err(|why| part("media", why.to_string(), why.remedy()))?;
    Ok((Rc::new(RefCell::new(front)), warnings))
}

/// How streams are coded side by side: `STROWGER_SIMD` chooses the instructions, `codec_wait` the wait.
fn lanes(snapshot: &Snapshot) -> Result<Lanes, StartError> {
    let setting = std::env::var(SIMD).ok();
    let level = Level::from_setting(setting.as_deref())
        .map_err(|why| part(SIMD, why, "unset the variable, or name a level that this processor has"))?;
    Ok(Lanes { level, wait_ms: u8::try_from(snapshot.rtp.codec_wait).unwrap_or(u8::MAX) })
}

/// Overrides the SIMD level that was found: `avx512`, `avx2` or `portable`.
const SIMD: &str = "STROWGER_SIMD";

/// Numbers from the kernel, fetched a page at a time: a call wants one, and a system call each would cost more than the rest.
#[derive(Default)]
struct SecretNumbers {
    left: Vec<u64>,
}

impl SecretNumbers {
    fn next(&mut self) -> u64 {
        if self.left.is_empty() {
            let page: [u8; 512] = secret();
            self.left.extend(page.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        }
        self.left.pop().unwrap_or(0)
    }
}

fn services(
    snapshot: &Snapshot,
    media: &Rc<RefCell<MediaFront>>,
    sounds: &Rc<RefCell<Sounds>>,
    names: &Rc<RefCell<Names>>,
    links: &Rc<RefCell<LinkDesk>>,
    wake: &Arc<Wake>,
    tee: Tee,
) -> Result<Services, StartError> {
    let folders = &snapshot.asterisk.directories;
    let ring = Arc::clone(wake);
    let db = AstDb::open_with(&folders.astdbdir.join("astdb.sqlite3"), move || ring.ring())
        .map_err(|why| part("astdb", why.to_string(), why.remedy()))?;
    let told = || -> store::sounds::Told {
        let log = tee.sender.clone();
        Box::new(move |text| log.line(call::Level::Warning, "recordings", text))
    };
    if let Err(why) = Recordings::repair(folders.astspooldir.join("monitor"), told()) {
        told()(&format!("recordings that were cut short are not looked for: {why}"));
    }
    let started = Recordings::start(folders.astdatadir.join("sounds"), told());
    let recorder: Box<dyn call::Recorder> = match started {
        Ok(recordings) => Box::new(recordings),
        Err(why) => Box::new(NoRecorder(format!("recordings cannot be made: {why}"))),
    };
    Ok(Services {
        media: Box::new(Media(media.clone())),
        library: Box::new(SharedSounds(sounds.clone())),
        recorder,
        db: Box::new(db),
        log: Box::new(tee),
        wall: Box::new(Wall::default()),
        outside: Box::new(Machine(names.clone())),
        links: Box::new(Links(links.clone())),
        post: Box::new(call::voicemail::NoPost),
    })
}

pub(crate) fn start_events(snapshot: &Snapshot) -> Result<Events, StartError> {
    Events::start(snapshot)
        .map_err(|why| part("channel events", why, "raise ulimit -u or write enable=no in cel.conf"))
}

pub(crate) fn start_records(snapshot: &Snapshot) -> Result<Records, StartError> {
    Records::start(snapshot)
        .map_err(|why| part("call records", why, "raise ulimit -u or write enable=no in cdr.conf"))
}

/// Both clocks as they are.
pub(crate) fn clocks_now() -> Clocks {
    Clocks { now: Clock.now(), wall: Clock.wall() }
}

/// The sockets of iax.conf, and who was registered when the process ended.
fn start_iax(
    snapshot: &Snapshot,
    net: &mut Net,
    (shard, driver, rows): (&Rc<Shard>, &Rc<RefCell<IaxDriver>>, Option<&SharedIaxRows>),
    (folder, wake): (&Path, &Arc<Wake>),
    clocks: Clocks,
) -> Result<Iax, StartError> {
    let mut config = wire::iax::iax_config(snapshot);
    if let Some(rows) = rows {
        rows.borrow().merge(&mut config);
    }
    let ring = wake.clone();
    let keys = Pool::new(Arc::new(move || ring.ring()));
    let (mut iax, records) = Iax::open(folder, driver.clone(), keys)
        .map_err(|why| part("the journal of IAX2 registrations", why, "make astdbdir writable"))?;
    if let Some(rows) = rows {
        iax.set_rows(rows);
    }
    let fresh = iax.begin(net, &config).map_err(|error| iax_bind_error(&error))?;
    let mut core = shard.core.borrow_mut();
    for error in &fresh.still_absent {
        core.log(call::Level::Error, "chan_iax2", &iax_bind_line(error));
    }
    iax.take(net, &mut core, fresh, config);
    iax.restore(&mut core, &records, clocks);
    Ok(iax)
}

/// What is said of a transport of SIP that is off because its address cannot be had.
pub(crate) fn log_shut(shard: &Shard, snapshot: &Snapshot, name: &str, error: &BindError) {
    let line = format!(
        "Transport '{name}' could not be started: {} ({} {}, {}; {})",
        error.error,
        error.protocol,
        error.addr,
        bind_place(snapshot, name),
        error.remedy()
    );
    shard.core.borrow_mut().log(call::Level::Error, "res_pjsip", &line);
}

/// What is said of an address of iax.conf that cannot be had.
pub(crate) fn iax_bind_line(error: &BindError) -> String {
    format!(
        "Unable to create network socket: {} ({} {}, iax.conf; {})",
        error.error,
        error.protocol,
        error.addr,
        error.remedy()
    )
}

/// Devices that were touched are looked at between two stories: what the first has begun and the next ends is told.
fn light_between_stories(site: &Rc<Site>) {
    let weak = Rc::downgrade(site);
    site.shard.set_lamps(Rc::new(move || {
        if let Some(site) = weak.upgrade()
            && let Ok(mut hints) = site.hints.try_borrow_mut()
        {
            hints.update(&site.shard);
        }
    }));
}

/// A bind of iax.conf that cannot be.
pub(crate) fn iax_bind_error(error: &BindError) -> StartError {
    let what = format!("iax.conf: cannot bind {} {}", error.protocol, error.addr);
    part(&what, &error.error, error.remedy())
}

fn site(
    snapshot: &Arc<Snapshot>,
    shard: &Rc<Shard>,
    (sip, iax): (&Rc<RefCell<SipDriver>>, &Rc<RefCell<IaxDriver>>),
    media: &Rc<RefCell<MediaFront>>,
    sounds: &Rc<RefCell<Sounds>>,
    (log, sender): (LogSink, LogSender),
    clocks: Clocks,
) -> Rc<Site> {
    let wall = i64::try_from(clocks.wall.as_secs()).unwrap_or(i64::MAX);
    Rc::new(Site {
        shard: shard.clone(),
        sip: sip.clone(),
        iax: iax.clone(),
        hints: Rc::new(RefCell::new(Hints::default())),
        media: media.clone(),
        translation: translation(snapshot, media),
        external: RefCell::default(),
        sounds: sounds.clone(),
        snapshot: RefCell::new(snapshot.clone()),
        log,
        sender,
        started: clocks.now,
        reloaded: Cell::new(clocks.now),
        started_wall: wall,
        reloaded_wall: Cell::new(wall),
        wishes: RefCell::default(),
        stopping: Cell::new(None),
        last_reload: RefCell::new(Reloaded::default()),
        reload: RefCell::new(None),
        quiet_reload: Cell::default(),
        counters: Cell::new(Counters::default()),
        fault_injection: Cell::new(false),
        iax_sight: RefCell::default(),
        caches: RefCell::default(),
        databases: RefCell::new(None),
        record_tables: RefCell::default(),
        down: RefCell::default(),
        ari: RefCell::default(),
    })
}

/// Ways between formats; what was measured earlier is kept in `astcachedir`.
fn translation(snapshot: &Snapshot, media: &Rc<RefCell<MediaFront>>) -> Translation {
    let level = media.borrow().lanes().level;
    Translation::open(level, &snapshot.asterisk.directories.astcachedir, store::sounds::speech)
}

/// Where prompts and music lie. What a class lacks is said; the class `default` then plays the bundled piece.
pub(crate) fn catalogue(snapshot: &Snapshot, coders: &Arc<Coders>, findings: &mut Findings) -> Catalogue {
    let data = &snapshot.asterisk.directories.astdatadir;
    let mut folders = vec![data.join("sounds")];
    if !folders.contains(&packaged_sounds()) {
        folders.push(packaged_sounds());
    }
    let mut music: BTreeMap<String, MusicList> = BTreeMap::new();
    for (name, class) in &snapshot.music.classes {
        match music_list(class, data) {
            Some(list) => {
                music.insert(name.clone(), list);
            }
            None if name == "default" => {
                let message = format!(
                    "there is nothing to play in {}; the bundled music is played",
                    class.folder(data).display()
                );
                findings.note(class.origin.place_of("directory"), message, "put sound files there");
            }
            None => {
                let message = format!("there is nothing to play in {}", class.folder(data).display());
                findings.warning(
                    class.origin.place_of("directory"),
                    message,
                    "put sound files there or correct directory=",
                );
            }
        }
    }
    music.entry("default".to_owned()).or_insert(MusicList::Bundled);
    let encode_each = !snapshot.rtp.share_prompts;
    let announced = snapshot.music.classes.iter().filter(|(_, class)| !class.announcement.is_empty());
    let announcements = announced.map(|(name, class)| (name.clone(), class.announcement.clone())).collect();
    // Where a random piece follows each there is no last one.
    let loops_last = snapshot.music.classes.iter();
    let is_drawn = |class: &MusicClass| class.sort == Sort::Random && class.mode != Mode::Playlist;
    let loops_last = loops_last.filter(|(_, class)| class.loop_last && !is_drawn(class));
    let loops_last = loops_last.map(|(name, _)| name.clone()).collect();
    let catalogue = Catalogue {
        folders,
        music,
        announcements,
        loops_last,
        seed: u64::from_le_bytes(secret()),
        coders: coders.clone(),
        encode_each,
        speaker: snapshot.tts.clone(),
    };
    for (name, announcement) in &catalogue.announcements {
        let Some(class) = snapshot.music.classes.get(name) else { continue };
        let place = class.origin.place_of("announcement");
        if class.is_live() {
            let message =
                format!("the music class '{name}' is what a program plays: nothing is announced between");
            findings.warning(place, message, "let the program announce it, or remove the line");
        } else if !catalogue.has_prompt(announcement) {
            let message = format!("there is no prompt '{announcement}' to announce");
            findings.warning(place, message, "put it into the folder sounds, or correct announcement=");
        }
    }
    catalogue
}

fn music_list(class: &MusicClass, data: &Path) -> Option<MusicList> {
    match class.mode {
        _ if class.is_live() => Some(MusicList::Program(Program {
            command: class.application.split_whitespace().map(str::to_owned).collect(),
            folder: (!class.directory.as_os_str().is_empty()).then(|| class.folder(data)),
            format: class.live_format()?,
            patience: class.kill_escalation_delay,
            whole_group: class.kill_method == KillMethod::Group,
        })),
        Mode::Playlist => Some(MusicList::Files(class.entry.iter().map(PathBuf::from).collect())),
        _ => {
            let path = class.folder(data);
            let some = fs::read_dir(&path).is_ok_and(|mut files| files.next().is_some());
            let order = match class.sort {
                Sort::Unsorted | Sort::Alpha => MusicOrder::ByName,
                Sort::Random => MusicOrder::Shuffled,
                Sort::RandStart => MusicOrder::FromAny,
            };
            some.then_some(MusicList::Folder { path, order })
        }
    }
}

/// The line that says where a transport of SIP listens.
fn bind_place(snapshot: &Snapshot, name: &str) -> String {
    let transport = snapshot.pjsip.transports.get(name);
    transport.map(|transport| transport.origin.place_of("bind").to_string()).unwrap_or_default()
}

/// A bind that failed, with the line that asked for it.
pub(crate) fn bind_error(snapshot: &Snapshot, name: &str, error: &BindError) -> StartError {
    let place = bind_place(snapshot, name);
    let why = format!("cannot bind {} {}: {}", error.protocol, error.addr, error.error);
    part(&format!("{place}: transport '{name}'"), why, error.remedy())
}
