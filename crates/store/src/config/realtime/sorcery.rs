//! `sorcery.conf`: where each kind of object of SIP lies, and what is remembered of it.

use super::Families;
use crate::config::kind::{Int, Seconds, YesNo};
use crate::config::{Object as _, Row, Status, options, read_object, read_settings, suggestion};
use conf::{File, Findings, Place, Section, Variable};
use std::collections::BTreeMap;

options! {
    /// What `TYPE/cache=memory_cache,…` says.
    MemoryCache, "sorcery.conf", "memory_cache", IsIgnored;
    maximum_objects: Int<0, 1_000_000> = "0", "Objects that are remembered; beyond it the oldest goes. 0 is 1000000.";
    object_lifetime_maximum: Seconds<0, 31_536_000> = "0", "After so long an object is asked for anew, and who wants it waits; 0: never.";
    object_lifetime_stale: Seconds<0, 31_536_000> = "0", "After so long an object that is wanted serves at once, and is asked for anew behind it; 0: never.";
    expire_on_reload: YesNo = "no", "A reload forgets what is remembered.";
    full_backend_cache: YesNo = "no", "All objects are remembered at once, and what is not among them does not exist until the next reload, `sorcery memory cache populate` or lifetime. Of more than `maximum_objects` those that are not remembered are asked for one by one.";
    negative_lifetime: Seconds<0, 86_400> = "10", "For so long it is remembered that there is no such object.";
    serve_while_down: Seconds<0, 31_536_000> = "86400", "For so long what is remembered serves beyond its lifetime while the database does not answer.";
    @recognised {
        "name" "*" Ignored "a cache is called by its module and type, such as res_pjsip/endpoint";
    }
}

options! {
    /// What `[general]` of `sorcery.conf` says.
    SorceryGeneral, "sorcery.conf", "general", IsIgnored;
    update_or_create_on_update_miss: YesNo = "yes", "Whether the row of a contact that is registered again and whose row is gone is made again. The field has `no` where nothing is written; without its row a contact is gone there, so that it is made as a new one.";
    @recognised {}
}

/// One place that objects lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wizard {
    /// A configuration file, with the `type=` of its sections.
    Config {
        /// The file.
        file: String,
        /// `criteria=type=…`.
        kind: String,
    },
    /// A family of `extconfig.conf`.
    Realtime(String),
    /// Our own: memory, or the database of the process.
    Own,
}

/// A kind of object that `sorcery.conf` can place.
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectKind {
    /// Section of `sorcery.conf`.
    pub module: &'static str,
    /// Name there, and value of `type=` in `pjsip.conf`.
    pub name: &'static str,
}

/// Kinds that rows make objects of.
#[rustfmt::skip]
pub(crate) const KINDS: [ObjectKind; 11] = [
    ObjectKind { module: "res_pjsip", name: "endpoint" },
    ObjectKind { module: "res_pjsip", name: "aor" },
    ObjectKind { module: "res_pjsip", name: "auth" },
    ObjectKind { module: "res_pjsip", name: "contact" },
    ObjectKind { module: "res_pjsip", name: "domain_alias" },
    ObjectKind { module: "res_pjsip", name: "transport" },
    ObjectKind { module: "res_pjsip", name: "global" },
    ObjectKind { module: "res_pjsip", name: "system" },
    ObjectKind { module: "res_pjsip", name: "acl" },
    ObjectKind { module: "res_pjsip_endpoint_identifier_ip", name: "identify" },
    ObjectKind { module: "res_pjsip_outbound_registration", name: "registration" },
];

/// Kinds that stay where they are, and why.
const ELSEWHERE: [(&str, &str, &str); 5] = [
    ("res_pjsip_publish_asterisk", "*", "device state is not exchanged with other servers"),
    ("res_pjsip_pubsub", "*", "resource lists come from pjsip.conf"),
    ("res_pjsip_outbound_publish", "*", "nothing is published from a database"),
    ("res_stir_shaken", "*", "numbers and profiles come from stir_shaken.conf"),
    ("res_pjsip_phoneprov", "*", "phones are not provisioned"),
];

/// Where the objects of one kind lie.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Objects {
    /// The places, first looked in first.
    pub wizards: Vec<Wizard>,
    /// What is remembered of those in a database; `None`: each is asked for whenever it is wanted.
    pub cache: Option<MemoryCache>,
    place: Option<Place>,
}

impl Objects {
    /// The family that they lie in, if they do in one.
    pub fn family(&self) -> Option<&str> {
        self.wizards.iter().find_map(|wizard| match wizard {
            Wizard::Realtime(family) => Some(family.as_str()),
            Wizard::Config { .. } | Wizard::Own => None,
        })
    }
    /// Whether those of `pjsip.conf` count.
    pub fn in_file(&self) -> bool {
        self.wizards.is_empty() || self.wizards.iter().any(|wizard| matches!(wizard, Wizard::Config { .. }))
    }
    /// Whether those of the database go before those of `pjsip.conf` that have the same name.
    pub fn database_first(&self) -> bool {
        let at = |wanted: fn(&Wizard) -> bool| self.wizards.iter().position(wanted).unwrap_or(usize::MAX);
        at(|wizard| matches!(wizard, Wizard::Realtime(_)))
            < at(|wizard| matches!(wizard, Wizard::Config { .. }))
    }
}

/// `sorcery.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sorcery {
    /// What holds for all kinds.
    pub general: SorceryGeneral,
    /// Kinds that it places, by their `type=`.
    pub objects: BTreeMap<&'static str, Objects>,
}

pub(super) fn rows() -> Vec<Row> {
    let row = |section, name, kind: &str, doc| Row {
        file: "sorcery.conf",
        section,
        name,
        kind: kind.to_owned(),
        default: "config,pjsip.conf,criteria=type=TYPE",
        doc,
        status: Status::Supported,
    };
    let mut rows = vec![
        row(
            "MODULE",
            "TYPE",
            "realtime,FAMILY; config,FILE,criteria=type=TYPE; memory; astdb",
            "Where the objects of a type lie; several lines are looked in one after the other. A type that has lines and none \
             with config is not read from pjsip.conf. Modules are res_pjsip (endpoint, aor, auth, contact, domain_alias, \
             transport, global, system, acl), res_pjsip_endpoint_identifier_ip (identify) and res_pjsip_outbound_registration \
             (registration).",
        ),
        Row {
            default: "",
            ..row(
                "MODULE",
                "TYPE/cache",
                "memory_cache[,OPTION=value...]",
                "What is remembered of those in a database; without the line each is asked for whenever it is wanted.",
            )
        },
    ];
    rows.extend(SorceryGeneral::rows());
    rows.extend(MemoryCache::rows());
    rows
}

impl Sorcery {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general = read_settings(file, "general", findings);
        let mut sorcery = Self { general, ..Self::default() };
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            if let Some((_, _, why)) = ELSEWHERE.iter().find(|(module, ..)| *module == &*section.name) {
                findings.note(&section.place, format!("[{}] has no effect: {why}", section.name), "");
                continue;
            }
            if !KINDS.iter().any(|kind| kind.module == &*section.name) {
                let message = format!("[{}] is no module whose objects can lie elsewhere", section.name);
                let modules: Vec<&str> = KINDS.iter().map(|kind| kind.module).collect();
                findings.warning(&section.place, message, suggestion(&section.name, &modules));
                continue;
            }
            for line in &section.variables {
                sorcery.line(section, line, findings);
            }
        }
        sorcery
    }

    fn line(&mut self, section: &Section, line: &Variable, findings: &mut Findings) {
        let (name, is_cache) = match line.name.split_once('/') {
            Some((name, "cache")) => (name, true),
            Some((name, _)) => (name, false),
            None => (&*line.name, false),
        };
        let of_module = |kind: &&ObjectKind| kind.module == &*section.name;
        let Some(kind) = KINDS.iter().filter(of_module).find(|kind| kind.name.eq_ignore_ascii_case(name))
        else {
            let message = format!("objects of type '{name}' of [{}] lie where they always do", section.name);
            let names: Vec<&str> = KINDS.iter().filter(of_module).map(|kind| kind.name).collect();
            return findings.warning(&line.place, message, suggestion(name, &names));
        };
        let objects = self.objects.entry(kind.name).or_default();
        objects.place.get_or_insert_with(|| line.place.clone());
        let (wizard, rest) = line.value.split_once(',').unwrap_or((&line.value, ""));
        match wizard.trim().to_ascii_lowercase().as_str() {
            "memory_cache" => objects.cache = Some(cache(rest, line, findings)),
            _ if is_cache => {
                let message = format!("{}: '{}' is no cache", line.name, wizard.trim());
                findings.error(&line.place, message, "write memory_cache");
            }
            "realtime" => match rest.split(',').next().map(str::trim) {
                None | Some("") => {
                    let remedy = format!("write {} = realtime,FAMILY, a family of extconfig.conf", line.name);
                    findings.error(&line.place, format!("{} names no family", line.name), remedy);
                }
                Some(_) if objects.family().is_some() => {
                    let message = format!("{} lies in a family already; this one is not asked", line.name);
                    findings.warning(
                        &line.place,
                        message,
                        "write several databases of one family in extconfig.conf",
                    );
                }
                Some(family) => objects.wizards.push(Wizard::Realtime(family.to_owned())),
            },
            "config" => {
                let mut parts = rest.split(',').map(str::trim);
                let file = parts.next().unwrap_or_default().to_owned();
                let kind_of = parts.find_map(|part| part.strip_prefix("criteria=")?.strip_prefix("type="));
                if file != "pjsip.conf" || kind_of.is_some_and(|of| of != kind.name) {
                    let message =
                        format!("{}: objects of files come from pjsip.conf, by their type", line.name);
                    let remedy = format!("write config,pjsip.conf,criteria=type={}", kind.name);
                    findings.warning(&line.place, message, remedy);
                }
                objects.wizards.push(Wizard::Config { file, kind: kind.name.to_owned() });
            }
            "memory" | "astdb" => objects.wizards.push(Wizard::Own),
            other => {
                let message = format!("{}: there is no wizard '{other}'", line.name);
                let known = ["realtime", "config", "memory", "astdb", "memory_cache"];
                findings.error(&line.place, message, suggestion(other, &known));
            }
        }
    }

    /// What it says of families that nobody places.
    pub(super) fn check(&self, families: &Families, findings: &mut Findings) {
        for (kind, objects) in &self.objects {
            let place = objects.place.clone().unwrap_or_else(|| Place::new("sorcery.conf", 0));
            match objects.family() {
                Some(family) if families.of(family).is_empty() => {
                    let message = format!(
                        "objects of type '{kind}' lie in family '{family}', which extconfig.conf does not place"
                    );
                    findings.error(
                        &place,
                        message,
                        format!("add {family} => driver,database to [settings] of extconfig.conf"),
                    );
                }
                None if objects.cache.is_some() => {
                    let message = format!("{kind}/cache: objects of files are in memory anyway");
                    findings.note(&place, message, "");
                }
                Some(_) | None => {}
            }
        }
    }

    /// The family and the cache of a kind of object that lies in a database.
    pub fn realtime(&self, kind: &str) -> Option<(&str, Option<&MemoryCache>)> {
        let objects = self.objects.get(kind)?;
        Some((objects.family()?, objects.cache.as_ref()))
    }
    /// Whether sections of this `type=` in `pjsip.conf` count.
    pub fn reads_file(&self, kind: &str) -> bool {
        let kind = kind.to_ascii_lowercase();
        self.objects.get(kind.as_str()).is_none_or(Objects::in_file)
    }
}

/// The options behind `memory_cache`, as if each were a line.
fn cache(text: &str, line: &Variable, findings: &mut Findings) -> MemoryCache {
    let options = text.split(',').map(str::trim).filter(|option| !option.is_empty());
    let variables = options.map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let (name, value) = (name.trim().into(), value.trim().into());
        Variable { name, value, object: false, place: line.place.clone(), inherited: false }
    });
    let section = Section {
        name: line.name.clone(),
        template: false,
        place: line.place.clone(),
        parents: Vec::new(),
        variables: variables.collect(),
    };
    let cache: Option<MemoryCache> = read_object(&section, findings, &mut |_, _, _| false);
    let cache = cache.unwrap_or_default();
    let (stale, most) = (cache.object_lifetime_stale, cache.object_lifetime_maximum);
    if !most.is_zero() && stale >= most {
        let message =
            "object_lifetime_stale is not below object_lifetime_maximum: nothing is ever served stale";
        findings.warning(&line.place, message, "make object_lifetime_stale the smaller of the two");
    }
    if cache.full_backend_cache && cache.maximum_objects > 0 {
        let message = format!(
            "{}: of a table with more than maximum_objects={} rows not all are remembered (full_backend_cache); those \
             that are not are asked for one by one",
            line.name, cache.maximum_objects
        );
        findings.note(&line.place, message, "leave maximum_objects out, unless the table stays below it");
    }
    cache
}
