//! A whole configuration, read, validated and immutable.
//!
//! A reload makes a new one beside the old; whoever holds the old keeps it until the new one is complete.

mod looked;

use crate::config::acl::NamedAcls;
use crate::config::agents::Agents;
use crate::config::aliases::Aliases;
use crate::config::amd::Amd;
use crate::config::ari::Ari;
use crate::config::asterisk::{Asterisk, Directories};
use crate::config::cdr::{Cdr, CdrCustom, CdrManager, CdrTable};
use crate::config::cdr_sql::{self, CdrSql};
use crate::config::cel::{self, Cel};
use crate::config::codecs::CodecsConf;
use crate::config::confbridge::ConfBridge;
use crate::config::hep::Hep;
use crate::config::iax::Iax;
use crate::config::logger::Logger;
use crate::config::manager::Manager;
use crate::config::meetme::MeetMe;
use crate::config::modules::{Capability, Modules};
use crate::config::music::Music;
use crate::config::notify::Notify;
use crate::config::permissions::Permissions;
use crate::config::pjsip::Pjsip;
use crate::config::queues::Queues;
use crate::config::realtime::{self, DataSources, FamilyRows, Realtime, Sorcery};
use crate::config::resolver::Resolver;
use crate::config::rtp::Rtp;
use crate::config::statsd::Statsd;
use crate::config::stir::StirShaken;
use crate::config::telemetry::Telemetry;
use crate::config::tones::Tones;
use crate::config::voicemail::VoicemailConf;
use crate::config::web::{HttpGeneral, Prometheus, Restriction};
use crate::config::{legacy, made, wizard};
use crate::defaults::Defaults;
use crate::folder::{self, Copied, Folder};
use conf::{File, Findings, LoadError, Options, Place, ReadError, Section, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Where a configuration comes from.
#[derive(Debug, Clone)]
pub enum Where {
    /// A site's own: the path of its `asterisk.conf`. The other files lie in its `astetcdir`, or beside it when it names
    /// none.
    Site(PathBuf),
    /// A folder, whatever its `asterisk.conf` says about where files lie.
    Dir(PathBuf),
    /// A folder to look at, perhaps a copy of another machine's: absolute paths are looked for in it, and nothing is run.
    Looked {
        /// The folder.
        folder: PathBuf,
        /// `#exec` runs commands after all, where the configuration lets it.
        exec: bool,
    },
    /// The embedded defaults.
    Embedded(Defaults),
}

/// A whole configuration. All fields are what the files say; nothing changes after it was made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// `asterisk.conf`.
    pub asterisk: Asterisk,
    /// `pjsip.conf`, its named lists resolved.
    pub pjsip: Pjsip,
    /// `rtp.conf`.
    pub rtp: Rtp,
    /// `musiconhold.conf`.
    pub music: Music,
    /// `indications.conf`.
    pub tones: Tones,
    /// `logger.conf`.
    pub logger: Logger,
    /// `cdr.conf`.
    pub cdr: Cdr,
    /// `cdr_custom.conf`.
    pub cdr_custom: CdrCustom,
    /// `cdr_sqlite3_custom.conf`.
    pub cdr_table: Option<CdrTable>,
    /// `cdr_manager.conf`.
    pub cdr_manager: CdrManager,
    /// Tables of databases that call detail records go to.
    pub cdr_sql: Vec<CdrSql>,
    /// `agents.conf`.
    pub agents: Agents,
    /// `cel.conf`.
    pub cel: Cel,
    /// `cel_custom.conf`.
    pub cel_custom: CdrCustom,
    /// `cel_sqlite3_custom.conf`.
    pub cel_table: Option<CdrTable>,
    /// Tables of databases that channel events go to.
    pub cel_sql: Vec<CdrSql>,
    /// `hep.conf`.
    pub hep: Option<Hep>,
    /// `statsd.conf`.
    pub statsd: Option<Statsd>,
    /// `stir_shaken.conf`, its named lists resolved.
    pub stir: StirShaken,
    /// `iax.conf`, its named lists resolved.
    pub iax: Iax,
    /// `cli_aliases.conf`.
    pub aliases: Aliases,
    /// `cli_permissions.conf`.
    pub permissions: Permissions,
    /// `opentelemetry.conf`.
    pub telemetry: Option<Telemetry>,
    /// `manager.conf`, its named lists resolved.
    pub manager: Manager,
    /// `ari.conf`, its named lists resolved.
    pub ari: Ari,
    /// `modules.conf`.
    pub modules: Modules,
    /// `pjsip_notify.conf`.
    pub notify: Notify,
    /// `resolver_unbound.conf`.
    pub resolver: Resolver,
    /// `codecs.conf`.
    pub codecs: CodecsConf,
    /// `confbridge.conf`.
    pub confbridge: ConfBridge,
    /// `followme.conf`.
    pub followme: crate::config::followme::FollowMe,
    /// `meetme.conf`.
    pub meetme: MeetMe,
    /// `queues.conf` and `queuerules.conf`.
    pub queues: Queues,
    /// `res_parking.conf`.
    pub parking: crate::config::parking::ParkingConf,
    /// `features.conf`.
    pub features: call::features::Features,
    /// `amd.conf`.
    pub amd: Amd,
    /// `tts.conf`.
    pub tts: crate::sounds::Speaker,
    /// `minivm.conf`.
    pub minivm: Arc<call::voicemail::MiniVm>,
    /// `voicemail.conf`.
    pub voicemail: VoicemailConf,
    /// `http.conf`.
    pub http: HttpGeneral,
    /// Its sections that say who may ask for which paths.
    pub restrictions: Vec<Restriction>,
    /// `prometheus.conf`.
    pub prometheus: Prometheus,
    /// `acl.conf`.
    pub acls: NamedAcls,
    /// `extconfig.conf`, `sorcery.conf` and the files of databases.
    pub realtime: Realtime,
    /// `extensions.conf`, sections as written; the dialplan compiles them.
    pub extensions: File,
    /// Files that are refused as a whole: what they configure is off.
    pub refused: Vec<String>,
    files: Vec<(PathBuf, Option<SystemTime>)>,
    ran_exec: bool,
    place: Where,
    /// Files that lie in databases whole, and families whose rows stand beside files.
    kept: Arc<Kept>,
}

/// What databases have of the files themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// Texts of files that lie in databases whole.
    pub texts: BTreeMap<String, String>,
    /// Rows that stand beside the sections of files.
    pub families: FamilyRows,
}

impl Snapshot {
    /// Reads everything. `Ok` comes with what is worth saying, errors of single objects included; `Err` means that a file
    /// is refused as a whole and there is no configuration.
    pub fn load(place: &Where) -> Result<(Arc<Self>, Findings), Findings> {
        Self::load_with(place, &[], &Arc::default(), Gaps::None)
    }

    /// As [`Self::load`], for a start: what a refused file configures is off, and everything else runs, unless it is one of
    /// [`CORE_FILES`].
    pub fn start(place: &Where) -> Result<(Arc<Self>, Findings), Findings> {
        Self::load_with(place, &[], &Arc::default(), Gaps::BesideCore)
    }

    /// As [`Self::load`], with `rows` of databases as further sections of `pjsip.conf`, and what is `kept` there of the other
    /// files.
    fn load_with(
        place: &Where,
        rows: &[Section],
        kept: &Arc<Kept>,
        gaps: Gaps<'_>,
    ) -> Result<(Arc<Self>, Findings), Findings> {
        let mut findings = Findings::new();
        let read = match place {
            Where::Site(path) => load_site(path, (rows, kept), &mut findings),
            Where::Dir(dir) => read_dir(dir, None, (rows, kept), &mut findings),
            Where::Looked { folder, exec } => read_dir(folder, Some(*exec), (rows, kept), &mut findings),
            Where::Embedded(defaults) => load_embedded(defaults, &mut findings),
        };
        findings.dedup();
        match read.filter(|snapshot| snapshot.refused.iter().all(|file| gaps.allow(file))) {
            Some(mut snapshot) => {
                for file in &snapshot.refused {
                    let message = "the file is refused as a whole: what it configures is off";
                    findings.error(&Place::new(file.clone(), 0), message, "correct it, and reload");
                }
                snapshot.place = place.clone();
                snapshot.kept = kept.clone();
                Ok((Arc::new(snapshot), findings))
            }
            None => Err(findings),
        }
    }

    /// Reads everything again from the same place. Files that are refused as before stay off; another one refuses all.
    pub fn reload(&self) -> Result<(Arc<Self>, Findings), Findings> {
        self.reload_with(&[])
    }

    /// As [`Self::reload`], with `rows` of databases as further sections of `pjsip.conf`.
    pub fn reload_with(&self, rows: &[Section]) -> Result<(Arc<Self>, Findings), Findings> {
        Self::load_with(&self.place, rows, &self.kept, Gaps::AsBefore(&self.refused))
    }

    /// The same, with what databases have of the other files.
    pub fn reload_kept(&self, rows: &[Section], kept: &Kept) -> Result<(Arc<Self>, Findings), Findings> {
        Self::load_with(&self.place, rows, &Arc::new(kept.clone()), Gaps::AsBefore(&self.refused))
    }

    /// Whether a file changed, appeared or went since this was read. Files with `#exec` always count as changed.
    pub fn changed(&self) -> bool {
        self.ran_exec || self.files.iter().any(|(path, time)| modified(path) != *time)
    }

    /// Every file this was read from, and files that were looked for and missing.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// The files among them that were there.
    pub fn files_read(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(|(_, time)| time.is_some()).map(|(path, _)| path.as_path())
    }

    /// Whether there is a folder, and this file was looked for in it and is not there.
    pub fn lacks(&self, file: &str) -> bool {
        let is_it = |path: &Path| path.file_name().is_some_and(|name| name == file);
        !self.is_embedded()
            && self.files.iter().any(|(path, time)| time.is_none() && is_it(path))
            && !self.files.iter().any(|(path, time)| time.is_some() && is_it(path))
    }

    /// Whether this is the embedded configuration.
    pub fn is_embedded(&self) -> bool {
        matches!(self.place, Where::Embedded(_))
    }
}

/// A folder that was read to be judged.
#[derive(Debug)]
pub struct Examined {
    /// What could be read; `None` when there is no such folder.
    pub snapshot: Option<Arc<Snapshot>>,
    /// What there is to say about single files.
    pub findings: Findings,
    /// Files that are refused as a whole, so that a server would not start on this.
    pub refused: Vec<String>,
}

/// Reads a folder to be judged. What is refused leaves a gap, and everything else is read all the same. Nothing is run, unless
/// `exec` lets `#exec` do so.
pub fn examine(dir: &Path, exec: bool) -> Examined {
    // Without a slash at the end, and without `.` in between.
    let dir: PathBuf = dir.components().collect();
    let mut findings = Findings::new();
    let read = read_dir(&dir, Some(exec), (&[], &Arc::default()), &mut findings);
    let refused = read.as_ref().map(|snapshot| snapshot.refused.clone()).unwrap_or_default();
    let snapshot = read.map(|mut snapshot| {
        snapshot.place = Where::Looked { folder: dir.clone(), exec };
        Arc::new(snapshot)
    });
    folder::name_unread(&Folder::new(&dir), &dir, &mut findings);
    findings.keep_first("#exec ");
    findings.dedup();
    Examined { snapshot, findings, refused }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// Files without which nothing starts: they say where everything lies, what runs at all, and who may use the control socket.
pub const CORE_FILES: [&str; 3] = ["asterisk.conf", "modules.conf", "cli_permissions.conf"];

/// Whether nothing starts while this file, by its path, is refused.
pub fn is_core_file(path: &str) -> bool {
    let name = Path::new(path).file_name();
    CORE_FILES.iter().any(|core| name == Some(std::ffi::OsStr::new(core)))
}

/// Which files may be refused as a whole without refusing the configuration.
#[derive(Debug, Clone, Copy)]
enum Gaps<'a> {
    None,
    BesideCore,
    AsBefore(&'a [String]),
}

impl Gaps<'_> {
    fn allow(self, file: &str) -> bool {
        match self {
            Self::None => false,
            Self::BesideCore => !is_core_file(file),
            Self::AsBefore(before) => before.iter().any(|known| known == file),
        }
    }
}

/// What databases have of a configuration: sections of `pjsip.conf`, and what they keep of other files.
type Brought<'a> = (&'a [Section], &'a Arc<Kept>);

fn load_site(path: &Path, (rows, kept): Brought<'_>, findings: &mut Findings) -> Option<Snapshot> {
    let beside = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut reading = Reading::new(Box::new(Folder::new(beside)), true, findings);
    reading.rows = rows;
    reading.kept = kept.clone();
    let (file, is_missing) = reading.find(&name);
    if is_missing {
        let remedy = "name an asterisk.conf with -C, or start without -C to use the embedded defaults";
        reading.findings.error(&Place::new(path.display().to_string(), 0), "there is no such file", remedy);
        return None;
    }
    let mut asterisk = reading.asterisk(file);
    let etc = if asterisk.directories.origin.has("astetcdir") {
        beside.join(&asterisk.directories.astetcdir)
    } else {
        beside.to_owned()
    };
    asterisk.directories.astetcdir = etc.clone();
    reading.source = Box::new(Overlay { kept: kept.clone(), folder: Folder::new(etc) });
    Some(reading.complete(asterisk))
}

/// Reads a folder, which is only `looked` at, and then perhaps lets `#exec` run commands.
fn read_dir(
    dir: &Path,
    looked: Option<bool>,
    (rows, kept): Brought<'_>,
    findings: &mut Findings,
) -> Option<Snapshot> {
    if !dir.is_dir() {
        let place = Place::new(dir.display().to_string(), 0);
        findings.error(&place, "there is no such folder", "name a folder with configuration files");
        return None;
    }
    let copied = |home: &Path| looked.map(|exec| Copied::new(dir, home, exec));
    let opened = |copy: Option<Copied>| match copy {
        Some(copy) => Folder::of_copy(dir, copy),
        None => Folder::new(dir),
    };
    let folder = opened(copied(&Directories::default().astetcdir));
    let mut reading = Reading::new(Box::new(folder), true, findings);
    reading.rows = rows;
    reading.kept = kept.clone();
    let file = reading.file("asterisk.conf");
    let mut asterisk = reading.asterisk(file);
    let copy = copied(&asterisk.directories.astetcdir);
    let folder = opened(copy.clone());
    asterisk.directories.astetcdir = dir.to_owned();
    if let Some(copy) = &copy {
        asterisk.directories.each(|path| *path = copy.find(path));
    }
    reading.source = Box::new(Overlay { kept: kept.clone(), folder });
    let mut snapshot = reading.complete(asterisk);
    if let Some(copy) = &copy {
        snapshot.look_in(copy);
    }
    Some(snapshot)
}

fn load_embedded(defaults: &Defaults, findings: &mut Findings) -> Option<Snapshot> {
    let mut reading = Reading::new(Box::new(defaults.source()), false, findings);
    let file = reading.file("asterisk.conf");
    let asterisk = reading.asterisk(file);
    Some(reading.complete(asterisk))
}

/// A folder, of which some files lie in databases.
struct Overlay {
    kept: Arc<Kept>,
    folder: Folder,
}

impl Source for Overlay {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        match self.kept.texts.get(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => self.folder.read(path),
        }
    }
    fn glob(&self, pattern: &str) -> Vec<String> {
        self.folder.glob(pattern)
    }
    fn full_name(&self, path: &str) -> String {
        match self.kept.texts.contains_key(path) {
            true => format!("{path} of its database"),
            false => self.folder.full_name(path),
        }
    }
    fn exec(&self, command: &str) -> Result<Vec<u8>, ReadError> {
        self.folder.exec(command)
    }
}

/// One reading of all files.
struct Reading<'a> {
    source: Box<dyn Source>,
    /// Files have times that a reload can compare.
    on_disk: bool,
    options: Options,
    findings: &'a mut Findings,
    /// Sections of `pjsip.conf` that lie in databases.
    rows: &'a [Section],
    /// Contexts that wizards of `pjsip_wizard.conf` add to the dialplan.
    hints: Vec<Section>,
    /// `sip.conf`, whose words findings about what it stands for are told in.
    sip: Option<File>,
    /// `pjsip_wizard.conf`, likewise.
    wizards: Option<File>,
    /// What databases have of the other files.
    kept: Arc<Kept>,
    files: Vec<(PathBuf, Option<SystemTime>)>,
    ran_exec: bool,
    /// Files that were refused; the rest is read all the same, to tell everything at once.
    refused: Vec<String>,
}

impl<'a> Reading<'a> {
    fn new(source: Box<dyn Source>, on_disk: bool, findings: &'a mut Findings) -> Self {
        let options = Options::default();
        Self {
            source,
            on_disk,
            options,
            findings,
            rows: &[],
            hints: Vec::new(),
            sip: None,
            wizards: None,
            kept: Arc::default(),
            files: Vec::new(),
            ran_exec: false,
            refused: Vec::new(),
        }
    }

    /// Reads a file; `None` when it is missing or refused.
    fn file(&mut self, name: &str) -> Option<File> {
        let file = conf::load(&*self.source, name, self.options, self.findings);
        if file == Err(LoadError::Invalid) {
            self.refused.push(self.source.full_name(name));
        }
        if self.on_disk {
            let read = file.as_ref().map_or_else(
                |_| vec![self.source.full_name(name)],
                |file| {
                    file.files
                        .iter()
                        .filter(|path| !path.starts_with("#exec "))
                        .map(|path| path.to_string())
                        .collect()
                },
            );
            read.into_iter().for_each(|path| self.remember(path));
        }
        self.ran_exec |= file.as_ref().is_ok_and(|file| file.ran_exec);
        match file {
            Err(LoadError::Invalid) => None,
            file => self.kept.families.complete(name, file.ok()),
        }
    }

    /// As [`Self::file`]; and whether it is missing, and not refused.
    fn find(&mut self, name: &str) -> (Option<File>, bool) {
        let refused = self.refused.len();
        let file = self.file(name);
        let is_missing = file.is_none() && self.refused.len() == refused;
        (file, is_missing)
    }

    /// A file that was read, whose change a reload is to see.
    fn remember(&mut self, path: String) {
        if self.on_disk {
            let path = PathBuf::from(path);
            let time = modified(&path);
            self.files.push((path, time));
        }
    }

    /// `minivm.conf`, and the texts of letters that it names.
    fn minivm(&mut self) -> Arc<call::voicemail::MiniVm> {
        let Some(file) = self.file("minivm.conf") else { return Arc::default() };
        for name in crate::config::minivm::message_files(&file) {
            self.remember(self.source.full_name(name));
        }
        Arc::new(crate::config::minivm::read(&file, &*self.source, self.findings))
    }

    fn whole(&self, name: &str) -> Place {
        Place::new(self.source.full_name(name), 0)
    }

    fn asterisk(&mut self, file: Option<File>) -> Asterisk {
        let asterisk = file.map_or_else(Asterisk::default, |file| Asterisk::read(&file, self.findings));
        self.options.allow_exec = asterisk.options.execincludes;
        asterisk
    }

    fn read<T: Default>(&mut self, name: &str, read: fn(&File, &mut Findings) -> T) -> T {
        self.file(name).map_or_else(T::default, |file| read(&file, self.findings))
    }

    /// As [`Self::read`], for files without which something people expect is missing.
    fn expect<T: Default>(&mut self, name: &str, missing: &str, read: fn(&File, &mut Findings) -> T) -> T {
        let (file, is_missing) = self.find(name);
        if is_missing {
            let place = self.whole(name);
            self.findings.warning(&place, format!("there is no such file: {missing}"), "");
        }
        file.map_or_else(T::default, |file| read(&file, self.findings))
    }

    /// The objects of `pjsip.conf`, with those that `pjsip_wizard.conf` and `sip.conf` stand for.
    fn pjsip(&mut self, modules: &mut Modules, sorcery: &Sorcery) -> Pjsip {
        let (own, is_missing) = self.find("pjsip.conf");
        let nothing = File { files: vec![self.source.full_name("pjsip.conf").into()], ..File::default() };
        let mut file = own.unwrap_or(nothing);
        file.sections.retain(|section| {
            section.template || section.value("type").is_none_or(|kind| sorcery.reads_file(kind))
        });
        file.sections.extend(self.rows.iter().cloned());
        if let Some(wizards) = self.file("pjsip_wizard.conf") {
            let made = wizard::expand(&wizards, &file, self.findings);
            file.sections.extend(made);
            self.hints = wizard::dialplan(&wizards, self.findings);
            self.wizards = Some(wizards);
        }
        if !modules.has_module("chan_pjsip") {
            file.sections.clear();
            self.hints.clear();
        }
        if let Some(sip) = self.file("sip.conf").filter(|_| modules.has_module("chan_sip")) {
            let made = legacy::import(&sip, &file, self.findings);
            if !made.is_empty() {
                modules.serve_sip();
            }
            file.sections.extend(made);
            self.sip = Some(sip);
        }
        if is_missing && file.sections.is_empty() {
            let place = self.whole("pjsip.conf");
            self.findings.warning(&place, "there is no such file: SIP is not served", "");
            return Pjsip::default();
        }
        let elsewhere = ["endpoint", "aor", "auth"].iter().any(|kind| sorcery.realtime(kind).is_some());
        Pjsip::read_beside(&file, elsewhere, self.findings)
    }

    /// The dialplan, with the hints of wizards behind it.
    fn extensions(&mut self) -> File {
        let mut file = self.expect("extensions.conf", "there is no dialplan", |file, _| file.clone());
        file.sections.append(&mut self.hints);
        file
    }

    /// Where configuration lies that is in databases.
    fn realtime(&mut self) -> Realtime {
        let files = realtime::Files {
            extconfig: self.file("extconfig.conf"),
            sorcery: self.file("sorcery.conf"),
            odbc: self.file("res_odbc.conf"),
            mysql: self.file("res_config_mysql.conf"),
            pgsql: self.file("res_pgsql.conf"),
            sqlite: self.file("res_config_sqlite3.conf"),
            functions: self.file("func_odbc.conf"),
        };
        let on_disk = self.on_disk;
        let read = |path: PathBuf| std::fs::read_to_string(path).ok().filter(|_| on_disk).unwrap_or_default();
        let sources = |of: &realtime::Environment| {
            DataSources::parse(&read(of.sources_file()), &read(of.drivers_file()))
        };
        Realtime::read(&files, &sources, self.findings)
    }

    /// The snapshot, with gaps where files were refused.
    fn complete(mut self, asterisk: Asterisk) -> Snapshot {
        let acls = self.read("acl.conf", NamedAcls::read);
        let mut modules = self.read("modules.conf", Modules::read);
        let mut realtime = self.realtime();
        let cdr_files = cdr_sql::Files {
            adaptive: self.file("cdr_adaptive_odbc.conf"),
            odbc: self.file("cdr_odbc.conf"),
            pgsql: self.file("cdr_pgsql.conf"),
            mysql: self.file("cdr_mysql.conf"),
        };
        let mut cdr_sql = cdr_sql::read(&cdr_files, &mut realtime, self.findings);
        let cel_files = cel::Files { odbc: self.file("cel_odbc.conf"), pgsql: self.file("cel_pgsql.conf") };
        let mut cel_sql = cel::read_sql(&cel_files, &mut realtime, self.findings);
        cdr_sql.extend(cdr_sql::of_family("cdr", &realtime, self.findings));
        cel_sql.extend(cdr_sql::of_family("cel", &realtime, self.findings));
        let mut pjsip = self.pjsip(&mut modules, &realtime.sorcery);
        pjsip.resolve_acls(&acls, self.findings);
        let codecs = self.read("codecs.conf", CodecsConf::read);
        pjsip.resolve_formats(codecs.coded(), self.findings);
        let mut iax = self.read("iax.conf", Iax::read);
        if iax.enabled && !modules.has_module("chan_iax2") {
            iax.enabled = false;
            let place = Place::new(self.source.full_name("modules.conf"), 0);
            let message = "chan_iax2 is turned off, so iax.conf is not served";
            self.findings.warning(&place, message, "remove its noload= line, or iax.conf");
        }
        iax.check_keys(&asterisk.directories.astkeydir.join("keys"), self.findings);
        iax.resolve_acls(&acls, self.findings);
        iax.resolve_formats(codecs.coded());
        let mut manager = self.read("manager.conf", Manager::read);
        manager.resolve_acls(&acls, self.findings);
        let mut ari = self.read("ari.conf", Ari::read);
        ari.resolve_acls(&acls, self.findings);
        let mut stir = self.read("stir_shaken.conf", StirShaken::read);
        stir.resolve_acls(&acls, self.findings);
        let cdr = self.read("cdr.conf", Cdr::read);
        let web = self.file("http.conf");
        let web = web.as_ref();
        let http = web.map_or_else(HttpGeneral::default, |file| HttpGeneral::read(file, self.findings));
        let restrictions = web.map_or_else(Vec::new, |file| Restriction::read(file, &acls, self.findings));
        let prometheus = self.read("prometheus.conf", Prometheus::read);
        prometheus.check(&http, self.findings);
        ari.check(&http, self.findings);
        pjsip.check_websockets(&http, self.findings);
        let (queues, rules) = (self.file("queues.conf"), self.file("queuerules.conf"));
        let members = self.kept.families.members();
        let queues = Queues::read(queues.as_ref(), rules.as_ref(), members, self.findings);
        let snapshot = Snapshot {
            queues,
            asterisk,
            pjsip,
            rtp: self.read("rtp.conf", Rtp::read),
            music: self.read("musiconhold.conf", Music::read),
            tones: self.read("indications.conf", Tones::read),
            logger: self.read("logger.conf", Logger::read),
            cdr,
            cdr_custom: self.read("cdr_custom.conf", CdrCustom::read),
            cdr_table: self.read("cdr_sqlite3_custom.conf", CdrTable::read),
            cdr_manager: self.read("cdr_manager.conf", CdrManager::read),
            cdr_sql,
            cel: self.read("cel.conf", Cel::read),
            cel_custom: self.read("cel_custom.conf", cel::read_custom),
            cel_table: self.read("cel_sqlite3_custom.conf", cel::read_table),
            cel_sql,
            hep: self.read("hep.conf", Hep::read),
            statsd: self.read("statsd.conf", Statsd::read),
            stir,
            iax,
            aliases: self.read("cli_aliases.conf", Aliases::read),
            permissions: self.read("cli_permissions.conf", Permissions::read),
            telemetry: self.read("opentelemetry.conf", Telemetry::read),
            manager,
            ari,
            modules,
            notify: self.read("pjsip_notify.conf", Notify::read),
            resolver: self.read("resolver_unbound.conf", Resolver::read),
            codecs,
            confbridge: self.read("confbridge.conf", ConfBridge::read),
            parking: self.read("res_parking.conf", crate::config::parking::ParkingConf::read),
            followme: self.read("followme.conf", crate::config::followme::FollowMe::read),
            meetme: self.read("meetme.conf", MeetMe::read),
            features: self.read("features.conf", crate::config::features::read),
            agents: self.read("agents.conf", Agents::read),
            amd: self.read("amd.conf", Amd::read),
            tts: self.read("tts.conf", crate::config::tts::read),
            minivm: self.minivm(),
            voicemail: self.read("voicemail.conf", VoicemailConf::read),
            http,
            restrictions,
            prometheus,
            acls,
            realtime,
            extensions: self.extensions(),
            refused: self.refused,
            files: self.files,
            ran_exec: self.ran_exec,
            // Replaced by the caller, which knows the place.
            place: Where::Dir(PathBuf::new()),
            kept: Arc::default(),
        };
        for capability in snapshot.modules.off() {
            let what = match capability {
                Capability::Technology("PJSIP") => "SIP is not served",
                Capability::Rtp => "there is no media",
                Capability::Extensions => "there is no dialplan",
                _ => continue,
            };
            let place = Place::new(self.source.full_name("modules.conf"), 0);
            self.findings.warning(
                &place,
                format!("a module is turned off, so {what}"),
                "remove its noload= line",
            );
        }
        if let Some(sip) = &self.sip {
            legacy::reword(self.findings, sip);
        }
        if let Some(wizards) = &self.wizards {
            made::reword(self.findings, wizards, made::in_word_of);
        }
        snapshot
    }
}
