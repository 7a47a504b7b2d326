//! Names of a configuration against those that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use apps::{Constants, Named, UNKNOWN, Use};
use conf::{Finding, Level, Place};
use dialplan::{Context, ContextId, Destination, Extension, Priority, Program};
use store::Snapshot;
use store::sounds::{Catalogue, packaged_sounds};

use super::Remark;
use super::reach::local_context;

/// Technologies that are called by a channel of ours.
const TECHNOLOGIES: [&str; 4] = ["PJSIP", "SIP", "IAX2", "Local"];

/// What has a state and is no channel: `Custom:lamp`.
const PROVIDERS: [&str; 5] = ["Custom", "Queue", "Agent", "park", "hint"];

/// Looks names up. Each name of a sound is told once.
pub(super) struct Names<'a> {
    snapshot: &'a Snapshot,
    program: &'a Program,
    constants: &'a Constants<'a>,
    sounds: Catalogue,
    /// Folders of languages beside the prompts.
    languages: Vec<String>,
    has_sounds: bool,
    known_sounds: BTreeMap<String, bool>,
    /// Rows of a database stand for the whole dialplan.
    is_rowed: bool,
}

/// What is wrong with a name.
struct Wrong {
    kind: &'static str,
    level: Level,
    message: String,
    remedy: String,
}

impl Wrong {
    fn error(kind: &'static str, message: String, remedy: impl Into<String>) -> Self {
        Self { kind, level: Level::Error, message, remedy: remedy.into() }
    }
    fn warning(kind: &'static str, message: String, remedy: impl Into<String>) -> Self {
        Self { kind, level: Level::Warning, message, remedy: remedy.into() }
    }
    fn at(self, place: &Place) -> Remark {
        let Self { kind, level, message, remedy } = self;
        Remark { finding: Finding { level, place: place.clone(), message, remedy }, kind, used: true }
    }
}

impl<'a> Names<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, program: &'a Program, constants: &'a Constants<'a>) -> Self {
        let folders = vec![snapshot.asterisk.directories.astdatadir.join("sounds"), packaged_sounds()];
        let languages =
            folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let languages = languages
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let has_sounds = snapshot.asterisk.directories.astdatadir.join("sounds").is_dir();
        let families = &snapshot.realtime.families;
        Self {
            snapshot,
            program,
            constants,
            sounds: Catalogue { folders, ..Catalogue::default() },
            languages,
            has_sounds,
            known_sounds: BTreeMap::new(),
            is_rowed: !families.of("extensions.conf").is_empty(),
        }
    }

    /// What is wrong with what a step names.
    pub(super) fn of_use(&mut self, of: &Use<'_>) -> Option<Remark> {
        let wrong = match &of.named {
            Named::Place { context, exten, priority } => {
                self.place(of, context.as_deref(), exten.as_deref(), priority)
            }
            named => self.name(of.app, named),
        };
        wrong.map(|wrong| wrong.at(&of.step.place))
    }

    /// Devices of hints.
    pub(super) fn of_hints(&mut self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for extension in self.program.contexts().iter().flat_map(|context| &context.extensions) {
            let Some(hint) = &extension.hint else { continue };
            for device in apps::devices(self.constants, &hint.devices) {
                if let Some(wrong) = self.name("hint", &Named::State(device)) {
                    remarks.push(wrong.at(&hint.place));
                }
            }
        }
        remarks
    }

    fn name(&mut self, by: &str, named: &Named) -> Option<Wrong> {
        match named {
            Named::Place { .. } => None,
            Named::Context(name) => self.lacks_context(name).then(|| {
                let message = format!("{by}: context [{name}] does not exist");
                Wrong::error("context", message, "a call that goes there ends as invalid; correct the name")
            }),
            Named::Device(device) => self.device(by, device),
            Named::State(device) => self.state(by, device),
            Named::Function(name) => self.function(name),
            Named::Sound(name) => self.sound(by, name),
            Named::Mailbox(name) => self.mailbox(by, name),
            _ => self.object(by, named),
        }
    }

    /// Objects of a file each.
    fn object(&self, by: &str, named: &Named) -> Option<Wrong> {
        let snapshot = self.snapshot;
        let profiles = &snapshot.confbridge.profiles;
        let (kind, name, exists, file, family) = match named {
            Named::Queue(name) => {
                let exists = snapshot.queues.config.queues.iter().any(|queue| queue.name == *name);
                ("queue", name, exists, "queues.conf", "queues")
            }
            Named::QueueRule(name) => {
                let queues = &snapshot.queues.config;
                let rules = queues.rules.iter().map(|(rule, _)| rule);
                let exists = rules
                    .chain(queues.skill_rules.iter().map(|(rule, _)| rule))
                    .any(|rule| rule.eq_ignore_ascii_case(name));
                ("rule", name, exists, "queuerules.conf", "queue_rules")
            }
            Named::BridgeProfile(name) => {
                ("bridge profile", name, profiles.bridge(name).is_some(), "confbridge.conf", "")
            }
            Named::UserProfile(name) => {
                ("user profile", name, profiles.user(name).is_some(), "confbridge.conf", "")
            }
            Named::Menu(name) => ("menu", name, profiles.menus.contains_key(name), "confbridge.conf", ""),
            Named::Music(name) => {
                let exists = name == "default" || snapshot.music.classes.contains_key(name);
                ("class of music", name, exists, "musiconhold.conf", "musiconhold")
            }
            Named::Lot(name) => {
                let parking = &snapshot.parking;
                let exists = parking.dynamic || parking.lots.iter().any(|lot| lot.name == *name);
                ("parking lot", name, exists, "res_parking.conf", "")
            }
            Named::FollowMe(name) => {
                let exists = snapshot.followme.profiles.contains_key(name);
                ("section", name, exists, "followme.conf", "followme")
            }
            _ => return None,
        };
        let families = &snapshot.realtime.families;
        let elsewhere = !families.of(family).is_empty() || !families.of(file).is_empty();
        if exists || elsewhere {
            return None;
        }
        let message = format!("{by}: there is no {kind} '{name}'");
        let remedy = format!("add it to {file}, or correct the name");
        let one_word = kind.split(' ').next_back().unwrap_or(kind);
        Some(match named {
            // The music of the class default is heard instead.
            Named::Music(_) => Wrong::warning("music", message, remedy),
            // Callers wait without one. It is the eighth argument: since Asterisk 21 no macro stands before the routine.
            Named::QueueRule(_) => Wrong::warning("rule", message, remedy),
            _ => Wrong::error(one_word, message, remedy),
        })
    }

    fn function(&self, name: &str) -> Option<Wrong> {
        let upper = name.to_ascii_uppercase();
        (!self.snapshot.modules.has_function(&upper)).then(|| {
            let message = format!("function {upper}() is of a module that modules.conf switches off");
            Wrong::error("module", message, "remove the noload line, or add a load line")
        })
    }

    fn mailbox(&self, by: &str, name: &str) -> Option<Wrong> {
        let families = &self.snapshot.realtime.families;
        let elsewhere = !families.of("voicemail").is_empty() || !families.of("voicemail.conf").is_empty();
        let exists = self.snapshot.voicemail.voicemail.find_text(name).is_some();
        (!exists && !elsewhere && !name.contains(UNKNOWN)).then(|| {
            let message = format!("{by}: there is no mailbox '{name}'");
            Wrong::error("mailbox", message, "add it to voicemail.conf, or correct the name")
        })
    }

    fn sound(&mut self, by: &str, name: &str) -> Option<Wrong> {
        let is_file = !name.starts_with('/') && !name.contains(':');
        if !is_file || self.has_sound(name) {
            return None;
        }
        let message = format!("{by}: there is no sound '{name}'");
        if self.has_sounds {
            return Some(Wrong::warning(
                "sound",
                message,
                "nothing is heard; put the file into the folder of sounds",
            ));
        }
        let folder = self.snapshot.asterisk.directories.astdatadir.join("sounds");
        let message =
            format!("{message} among the bundled ones, and {} is not on this machine", folder.display());
        Some(Wrong { kind: "sound", level: Level::Note, message, remedy: String::new() })
    }

    fn has_sound(&mut self, name: &str) -> bool {
        if let Some(known) = self.known_sounds.get(name) {
            return *known;
        }
        let has = self.sounds.has_prompt(name)
            || self.languages.iter().any(|language| self.sounds.has_prompt(&format!("{language}/{name}")));
        self.known_sounds.insert(name.to_owned(), has);
        has
    }

    fn state(&self, by: &str, device: &str) -> Option<Wrong> {
        let provider = device.split([':', '/']).next().unwrap_or("");
        if device.contains('/') && !device.split('/').next().is_some_and(|tech| tech.contains(':')) {
            return self.device(by, device);
        }
        let known = PROVIDERS.iter().any(|known| provider.eq_ignore_ascii_case(known));
        (!known && !device.contains(UNKNOWN)).then(|| {
            let message = format!("{by}: '{device}' has no state: there is nothing that tells of {provider}");
            Wrong::warning(
                "device",
                message,
                "its lamp stays off; name a device such as PJSIP/6001 or Custom:lamp",
            )
        })
    }

    /// A technology that is not there, or somebody of it who is not.
    fn device(&self, by: &str, device: &str) -> Option<Wrong> {
        let (tech, rest) = device.split_once('/').unwrap_or((device, ""));
        if tech.contains(UNKNOWN) || tech.is_empty() {
            return None;
        }
        if !device.contains('/') {
            let message = format!("{by}: '{device}' is no Technology/Resource");
            return Some(Wrong::error("device", message, "write PJSIP/6001, for example"));
        }
        let Some(known) = TECHNOLOGIES.iter().find(|known| tech.eq_ignore_ascii_case(known)) else {
            let message =
                format!("{by}: '{}' cannot be called: there is no technology {tech}", shown(device));
            let remedy = "call PJSIP, SIP, IAX2 or Local; a gateway that speaks SIP serves other lines";
            return Some(Wrong::error("technology", message, remedy));
        };
        let off = *known != "Local"
            && !self.snapshot.modules.has(store::config::modules::Capability::Technology(known));
        if off {
            let message =
                format!("{by}: '{}' cannot be called: modules.conf switches {known} off", shown(device));
            return Some(Wrong::error("module", message, "remove its noload line, or add a load line"));
        }
        match *known {
            "Local" => self.local(by, device),
            "IAX2" => self.iax(by, rest),
            _ => self.sip(by, known, rest),
        }
    }

    fn local(&self, by: &str, device: &str) -> Option<Wrong> {
        let context = local_context(device)?;
        self.lacks_context(context).then(|| {
            let message = format!("{by}: context [{context}] does not exist");
            Wrong::error("context", message, "a call that goes there ends as invalid; correct the name")
        })
    }

    fn iax(&self, by: &str, resource: &str) -> Option<Wrong> {
        let head = resource.split('/').next().unwrap_or("");
        let peer = head.rsplit_once('@').map_or(head, |(_, host)| host);
        let peer = peer.split(':').next().unwrap_or("");
        let iax = &self.snapshot.iax;
        let exists = iax.peers.contains_key(peer) || peer.contains(['.', UNKNOWN]) || peer.is_empty();
        (!exists && !self.snapshot.realtime.has_iax()).then(|| {
            let message = format!("{by}: iax.conf has no peer '{peer}'");
            Wrong::error("device", message, "add the peer, or correct the name")
        })
    }

    /// `PJSIP/6001`, `PJSIP/number@trunk`, `PJSIP/trunk/sip:uri`, `SIP/trunk/number`.
    fn sip(&self, by: &str, tech: &str, resource: &str) -> Option<Wrong> {
        let head = resource.split('/').next().unwrap_or("");
        let name = head.rsplit_once('@').map_or(head, |(_, name)| name);
        if name.is_empty()
            || name.contains(UNKNOWN)
            || resource.contains(UNKNOWN) && !resource.contains(['@', '/'])
        {
            return None;
        }
        // chan_sip called hosts by their names, too.
        if tech == "SIP" && name.contains(['.', ':']) {
            return None;
        }
        let exists = self.snapshot.pjsip.endpoints.contains_key(name);
        (!exists && !self.snapshot.realtime.has_sip()).then(|| {
            let message = format!("{by}: there is no endpoint '{name}'");
            Wrong::error("device", message, "add it to pjsip.conf, or correct the name")
        })
    }

    fn lacks_context(&self, name: &str) -> bool {
        let known = self.program.context_id(name).is_some();
        !known && !self.is_rowed && !name.is_empty() && !name.contains(UNKNOWN)
    }

    /// A place that a call goes to.
    fn place(
        &self,
        of: &Use<'_>,
        context: Option<&str>,
        exten: Option<&str>,
        priority: &str,
    ) -> Option<Wrong> {
        let app = of.app;
        let known = |text: &str| !text.contains(UNKNOWN);
        let remedy = "a call that goes there ends as invalid; correct the target";
        if let Some(name) = context {
            if !known(name) {
                return None;
            }
            if self.lacks_context(name) {
                let message = format!("{app}: context [{name}] does not exist");
                return Some(Wrong::error("context", message, remedy));
            }
        }
        let exten = exten
            .filter(|exten| known(exten))
            .or_else(|| (context.is_none() && exten.is_none()).then_some(""))?;
        let name = context.unwrap_or(of.context);
        let around = self.around(name, context.is_none());
        if around.iter().any(|context| !context.switches.is_empty())
            || self.is_rowed
            || name.contains(UNKNOWN)
        {
            return None;
        }
        if exten.is_empty() {
            // Another priority or label of the same extension, or of one that takes the same number.
            let extensions: Vec<&Extension> = around.iter().flat_map(|context| &context.extensions).collect();
            let is_there = self.has(&extensions, priority);
            return (known(priority) && !is_there).then(|| {
                let message = match Priority::parse(priority) {
                    Some(Priority::Label(label)) => format!("{app}: no extension has a label {label}"),
                    _ => format!("{app}: no extension of [{name}] has a priority {priority}"),
                };
                Wrong::error("priority", message, remedy)
            });
        }
        let taking: Vec<&Extension> = self.taking(&around, exten);
        if taking.is_empty() {
            let message = format!("{app}: [{name}] has no extension {exten}");
            let caught = self.taking(&around, "i");
            return Some(if caught.is_empty() {
                Wrong::error("extension", message, remedy)
            } else {
                Wrong::warning("extension", message, "such a call goes on at extension i; correct the target")
            });
        }
        (known(priority) && !self.has(&taking, priority)).then(|| {
            let message = format!("{app}: extension {exten} of [{name}] has no priority or label {priority}");
            Wrong::error("priority", message, remedy)
        })
    }

    /// Whether one of the extensions has a priority or label; steps forth and back are not judged.
    fn has(&self, extensions: &[&Extension], priority: &str) -> bool {
        match Destination::parse(priority).map(|destination| destination.place) {
            Some(Priority::Number(number)) => {
                extensions.iter().any(|extension| extension.find(number).is_some())
            }
            Some(Priority::Label(label)) => {
                let has = |extension: &&Extension| {
                    extension.steps.iter().any(|step| step.label.as_deref() == Some(&*label))
                };
                extensions.iter().any(has)
            }
            Some(Priority::Forward(_) | Priority::Back(_)) | None => true,
        }
    }

    fn taking<'c>(&self, contexts: &[&'c Context], exten: &str) -> Vec<&'c Extension> {
        let special = exten.len() == 1 && "isthoTea".contains(exten);
        let takes = |extension: &&Extension| {
            // `_.` takes the special extensions as well; `_X.` does not.
            extension.pattern.fit(exten).matches()
                && (!special || &*extension.name == exten || extension.pattern.takes_everything())
        };
        contexts.iter().flat_map(|context| context.extensions.iter().filter(takes)).collect()
    }

    /// A context with all that it includes; `outwards`: with those that include it, too, as a call that came by one of them
    /// stays in it.
    fn around(&self, name: &str, outwards: bool) -> Vec<&'a Context> {
        let mut seen: BTreeSet<ContextId> = BTreeSet::new();
        let mut waiting: Vec<ContextId> = self.program.context_id(name).into_iter().collect();
        if outwards {
            let mut inner: Vec<String> = vec![name.to_owned()];
            let mut known: BTreeSet<String> = BTreeSet::new();
            while let Some(inside) = inner.pop() {
                if !known.insert(inside.clone()) {
                    continue;
                }
                let includes =
                    |context: &&Context| context.includes.iter().any(|include| *include.name == *inside);
                inner.extend(
                    self.program.contexts().iter().filter(includes).map(|context| context.name.to_string()),
                );
            }
            waiting.extend(known.iter().filter_map(|name| self.program.context_id(name)));
        }
        while let Some(id) = waiting.pop() {
            if seen.insert(id)
                && let Some(context) = self.program.context(id)
            {
                waiting.extend(context.includes.iter().filter_map(|include| include.context));
            }
        }
        seen.into_iter().filter_map(|id| self.program.context(id)).collect()
    }

    /// What other files name of the dialplan and of each other.
    pub(super) fn of_files(&mut self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        let snapshot = self.snapshot;
        let answered = !snapshot.modules.has(store::config::modules::Capability::Extensions);
        for (name, endpoint) in &snapshot.pjsip.endpoints {
            let origin = &endpoint.origin;
            if self.lacks_context(&endpoint.context) && !answered && self.program.contexts().iter().len() > 0
            {
                let place = origin.place_of("context");
                // sip.conf lets guests into [default] where nobody has written a word of them.
                let is_written = origin.has("context") && place.line > 0;
                let softly = "write context=; calls from it end as not found";
                let wrong = no_context(&format!("endpoint '{name}'"), &endpoint.context, is_written, softly);
                remarks.push(wrong.at(place));
            }
            for mailbox in endpoint.mailboxes.iter().flat_map(|text| text.split(',')).map(str::trim) {
                if let Some(wrong) = self.mailbox("mailboxes", mailbox).filter(|_| !mailbox.is_empty()) {
                    remarks.push(Wrong { level: Level::Warning, ..wrong }.at(origin.place_of("mailboxes")));
                }
            }
            if let Some(wrong) = self.name("moh_suggest", &Named::Music(endpoint.moh_suggest.clone()))
                && origin.has("moh_suggest")
            {
                remarks.push(wrong.at(origin.place_of("moh_suggest")));
            }
        }
        for (name, user) in &snapshot.iax.users {
            for context in user.context.iter().filter(|context| self.lacks_context(context)) {
                let wrong = no_context(&format!("[{name}]"), context, true, ADD_CONTEXT);
                remarks.push(wrong.at(user.origin.place_of("context")));
            }
        }
        let read: Vec<PathBuf> = snapshot.files_read().map(PathBuf::from).collect();
        for queue in snapshot.queues.config.queues.iter().filter(|queue| !queue.is_row) {
            let by = format!("queue '{}'", queue.name);
            for member in queue.members.iter().filter(|member| member.row.is_none()) {
                if let Some(wrong) = self.name(&by, &Named::Device(member.interface.clone())) {
                    remarks.push(wrong.at(&written(&read, "queues", &queue.name, &member.interface)));
                }
            }
            let context = &queue.settings.handling.context;
            if self.lacks_context(context) {
                let message = format!("{by}: context [{context}] does not exist");
                let wrong = Wrong::warning("context", message, "keys of callers who wait lead nowhere");
                remarks.push(wrong.at(&written(&read, "queues", &queue.name, context)));
            }
        }
        let mut music = |kind: &str, by: String, section: &str, class: &str| {
            let wrong = self.name(&by, &Named::Music(class.to_owned())).filter(|_| !class.is_empty());
            remarks.extend(wrong.map(|wrong| wrong.at(&written(&read, kind, section, class))));
        };
        for queue in snapshot.queues.config.queues.iter().filter(|queue| !queue.is_row) {
            let class = &queue.settings.handling.music_class;
            music("queues", format!("queue '{}'", queue.name), &queue.name, class);
        }
        for lot in &snapshot.parking.lots {
            music("res_parking", format!("parking lot '{}'", lot.name), &lot.name, &lot.music);
        }
        for (name, user) in &snapshot.confbridge.profiles.users {
            music("confbridge", format!("user profile '{name}'"), name, &user.music_class);
        }
        remarks
    }
}

/// What helps whose context does not exist.
const ADD_CONTEXT: &str = "its calls end as not found; add the context or correct the name";

/// The context of somebody does not exist. It may be meant so: nobody has written it, or it is `default`, as samples and many
/// sites have it to let nobody in; then `softly` is the remedy.
fn no_context(by: &str, context: &str, is_written: bool, softly: &'static str) -> Wrong {
    let message = format!("{by}: context [{context}] does not exist");
    match is_written && context != "default" {
        true => Wrong::error("context", message, ADD_CONTEXT),
        false => Wrong::warning("context", message, softly),
    }
}

/// A device without what only a call knows.
fn shown(device: &str) -> String {
    device.replace(UNKNOWN, "…")
}

/// The line of a file of this kind that says something, behind the header of its section where there is one.
fn written(read: &[PathBuf], kind: &str, section: &str, text: &str) -> Place {
    let named =
        |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind));
    let mut first = None;
    for path in read.iter().filter(named) {
        let file = path.display().to_string();
        let Ok(bytes) = std::fs::read(path) else { continue };
        let lines = String::from_utf8_lossy(&bytes).into_owned();
        let (mut inside, mut any) = (None, None);
        let header = format!("[{section}]");
        for (number, line) in (1..).zip(lines.lines()) {
            let line = line.split(';').next().unwrap_or("").trim();
            if line.starts_with('[') {
                inside = line.starts_with(&header).then_some(());
            } else if line.contains(text) {
                any.get_or_insert(number);
                if inside.is_some() {
                    return Place::new(file, number);
                }
            }
        }
        first = first.or_else(|| Some(Place::new(file, any.unwrap_or(0))));
    }
    first.unwrap_or_else(|| Place::new("queues.conf", 0))
}
