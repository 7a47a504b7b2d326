//! Configuration files as typed values, and the manual of their options.
//!
//! Each file has its module. An option is one row of a table: name, kind, default, meaning; the structs, their readers and
//! [`manual`] come from those rows, so the manual is true. What Asterisk knows and Strowger does not do yet is a row too,
//! with what happens instead.

pub mod acl;
pub mod agents;
pub mod aliases;
pub mod amd;
pub mod ari;
pub mod asterisk;
pub mod cdr;
pub mod cdr_sql;
pub mod cel;
pub mod codecs;
pub mod confbridge;
pub mod features;
pub mod followme;
pub mod hep;
pub mod iax;
mod kind;
pub(crate) mod legacy;
pub mod logger;
pub(crate) mod made;
pub mod manager;
pub mod meetme;
pub mod minivm;
pub mod modules;
pub mod music;
pub mod notify;
pub mod parking;
pub mod permissions;
pub mod pjsip;
pub mod queues;
pub mod realtime;
pub mod resolver;
pub mod rtp;
pub mod statsd;
pub mod stir;
pub mod telemetry;
pub mod tones;
pub mod tts;
pub mod voicemail;
pub mod web;
pub(crate) mod wizard;

pub use kind::{Bind, Choice, Codecs, Secret, word_of};

use conf::{Finding, Findings, Level, Place, Section, Variable};
use std::sync::Arc;

/// Whether an option does what its row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Supported,
    /// Asterisk knows it and Strowger does not do it yet; the text says what happens instead.
    Later(&'static str),
    /// It has no meaning here and never will; the text says why.
    Ignored(&'static str),
}

/// One option of one kind of section, as the manual prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// File it belongs to.
    pub file: &'static str,
    /// Section or object type.
    pub section: &'static str,
    /// Name of the option.
    pub name: &'static str,
    /// What may be written.
    pub kind: String,
    /// What holds when nothing is written.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Whether it does.
    pub status: Status,
}

/// Where an object and its options were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Name of the section.
    pub name: Arc<str>,
    /// Where the section begins.
    pub place: Place,
    options: Vec<(&'static str, Place)>,
}

impl Origin {
    fn of(section: &Section) -> Self {
        Self { name: section.name.clone(), place: section.place.clone(), options: Vec::new() }
    }
    /// Of an object that no file mentions.
    pub fn default_of(name: &str) -> Self {
        Self { name: name.into(), place: Place::new("(default)", 0), options: Vec::new() }
    }
    /// Whether the option is written anywhere.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == option)
    }
    /// Where the option was written last, or where the object begins.
    pub fn place_of(&self, option: &str) -> &Place {
        let found = self.options.iter().rev().find(|(name, _)| *name == option);
        found.map_or(&self.place, |(_, place)| place)
    }
    fn remember(&mut self, option: &'static str, place: &Place) {
        match self.options.iter_mut().find(|(name, _)| *name == option) {
            Some((_, known)) => *known = place.clone(),
            None => self.options.push((option, place.clone())),
        }
    }
}

/// An option that is recognised and not obeyed.
pub(crate) struct Recognised {
    pub(crate) name: &'static str,
    /// Values that ask for what happens anyway, comma separated; the first is the default.
    pub(crate) harmless: &'static str,
    pub(crate) status: Status,
}

impl Recognised {
    fn asks_for_something(&self, value: &str) -> bool {
        let same = |harmless: &str| {
            harmless.eq_ignore_ascii_case(value)
                || (conf::boolean(harmless).is_some() && conf::boolean(harmless) == conf::boolean(value))
        };
        self.harmless != "*" && !self.harmless.split(',').any(same)
    }

    /// Whatever is wrong with a value that nothing obeys, the object does not suffer from it.
    fn judge(
        &self,
        set: Result<(), Finding>,
        variable: &Variable,
        findings: &mut Findings,
    ) -> Result<(), Finding> {
        match set {
            Ok(()) => self.tell(variable, findings),
            Err(mut finding) => {
                finding.level = Level::Note;
                finding.message += "; the option changes nothing here";
                findings.push(finding);
            }
        }
        Ok(())
    }

    /// Says what a line that asks for more than happens anyway will not do.
    fn tell(&self, variable: &Variable, findings: &mut Findings) {
        if !self.asks_for_something(&variable.value) {
            return;
        }
        let (name, value) = (&variable.name, &variable.value);
        let (level, message, remedy) = match self.status {
            Status::Later(what) => (
                Level::Warning,
                format!("{name}={value} is known to Asterisk and not supported yet: {what}"),
                "remove the line if that will do; docs/configuration.md lists what is supported",
            ),
            Status::Ignored(why) => (Level::Note, format!("{name}={value} has no meaning here: {why}"), ""),
            Status::Supported => return,
        };
        findings.push(variable.finding(level, message, remedy));
    }
}

/// What to do with an option that Asterisk does not know either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The object is skipped, as objects of pjsip.conf are.
    SkipsObject,
    /// The line is.
    IsIgnored,
}

/// A kind of section whose options are a table.
pub(crate) trait Object: Sized {
    const SECTION: &'static str;
    const UNKNOWN: Unknown;
    const RECOGNISED: &'static [Recognised];
    fn rows() -> Vec<Row>;
    fn blank(origin: Origin) -> Self;
    fn origin_mut(&mut self) -> &mut Origin;
    /// Applies a line; `None` when no row of the table has its name.
    fn apply(
        &mut self,
        variable: &Variable,
        notes: &mut Findings,
    ) -> Option<(&'static str, Result<(), Finding>)>;
    fn names() -> Vec<&'static str>;
}

/// Makes a struct from a table of options: its fields, defaults, reader and manual rows.
macro_rules! options {
    (
        $(#[$meta:meta])*
        $object:ident, $file:literal, $section:literal, $unknown:ident;
        $(
            $field:ident $(as $name:literal)? $(also $also:literal)*: $kind:ty = $default:literal, $doc:literal
            $(, $unobeyed:ident $wish:literal $instead:literal)?;
        )*
        @recognised { $($later:literal $harmless:literal $status:ident $what:literal;)* }
        $(resolved { $($(#[$derived_meta:meta])* $derived:ident: $derived_type:ty;)* })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $object {
            /// Where it and its options were written.
            pub origin: $crate::config::Origin,
            $(#[doc = $doc] pub $field: <$kind as $crate::config::kind::Kind>::Value,)*
            $($($(#[$derived_meta])* pub $derived: $derived_type,)*)?
        }
        impl $crate::config::Object for $object {
            const SECTION: &'static str = $section;
            const UNKNOWN: $crate::config::Unknown = $crate::config::Unknown::$unknown;
            const RECOGNISED: &'static [$crate::config::Recognised] = &[$($crate::config::Recognised {
                name: $later, harmless: $harmless, status: $crate::config::Status::$status($what),
            },)*];
            fn rows() -> Vec<$crate::config::Row> {
                use $crate::config::{Row, kind::Kind};
                let row = |name, kind, default, doc, status| Row {
                    file: $file, section: $section, name, kind, default, doc, status,
                };
                let mut rows = Vec::new();
                $({
                    let status = $crate::config::option_status!($($unobeyed $instead)?);
                    let name = $crate::config::option_name!($field $($name)?);
                    rows.push(row(name, <$kind>::describe(), $default, $doc, status));
                    $(rows.push(row($also, <$kind>::describe(), "", $doc, status));)*
                })*
                rows.extend(Self::RECOGNISED.iter().map(|recognised| Row {
                    file: $file,
                    section: $section,
                    name: recognised.name,
                    kind: String::new(),
                    default: "",
                    doc: "",
                    status: recognised.status,
                }));
                rows
            }
            fn blank(origin: $crate::config::Origin) -> Self {
                // Read once: a file may have some ten thousand of these.
                static BLANK: std::sync::LazyLock<$object> = std::sync::LazyLock::new(|| $object {
                    origin: $crate::config::Origin::default_of($section),
                    $($field: $crate::config::initial::<$kind>($default),)*
                    $($($derived: Default::default(),)*)?
                });
                Self { origin, ..BLANK.clone() }
            }
            fn origin_mut(&mut self) -> &mut $crate::config::Origin {
                &mut self.origin
            }
            #[allow(unused_variables, clippy::cognitive_complexity)]
            fn apply(
                &mut self,
                variable: &conf::Variable,
                notes: &mut conf::Findings,
            ) -> Option<(&'static str, Result<(), conf::Finding>)> {
                use $crate::config::kind::Kind;
                $({
                    const NAME: &str = $crate::config::option_name!($field $($name)?);
                    if variable.is(NAME) $(|| variable.is($also))* {
                        let set = <$kind>::set(&mut self.$field, variable, notes);
                        $(
                            let status = $crate::config::Status::$unobeyed($instead);
                            let recognised = $crate::config::Recognised { name: NAME, harmless: $wish, status };
                            let set = recognised.judge(set, variable, notes);
                        )?
                        return Some((NAME, set));
                    }
                })*
                None
            }
            fn names() -> Vec<&'static str> {
                let mut names = vec![$($crate::config::option_name!($field $($name)?), $($also,)*)*];
                names.extend(Self::RECOGNISED.iter().map(|recognised| recognised.name));
                names
            }
        }
        impl Default for $object {
            /// What holds when the file says nothing.
            fn default() -> Self {
                <Self as $crate::config::Object>::blank($crate::config::Origin::default_of($section))
            }
        }
    };
}
macro_rules! option_name {
    ($field:ident $name:literal) => {
        $name
    };
    ($field:ident) => {
        stringify!($field)
    };
}
/// What an option's row says of it: supported unless its row says otherwise.
macro_rules! option_status {
    () => {
        $crate::config::Status::Supported
    };
    ($status:ident $instead:literal) => {
        $crate::config::Status::$status($instead)
    };
}
pub(crate) use {option_name, option_status, options};

/// The field's value when no line sets it. A default that its own kind refuses is a typing error in a row; making any
/// default object in a test finds it.
fn initial<K: kind::Kind>(default: &'static str) -> K::Value {
    let mut value = K::Value::default();
    if !default.is_empty() {
        let accepted = K::set(&mut value, &default_line(default), &mut Findings::new());
        debug_assert!(accepted.is_ok(), "{default}: {accepted:?}");
    }
    value
}

fn default_line(default: &str) -> Variable {
    Variable {
        name: "allow".into(),
        value: default.into(),
        object: false,
        place: Place::new("(default)", 0),
        inherited: false,
    }
}

/// Every option of every file, in file order: what the manual is made from.
pub fn manual() -> Vec<Row> {
    [
        asterisk::Directories::rows(),
        asterisk::ProcessOptions::rows(),
        asterisk::ControlFiles::rows(),
        asterisk::BanOptions::rows(),
        pjsip::rows(),
        legacy::rows(),
        wizard::rows(),
        rtp::Rtp::rows(),
        music::MusicGeneral::rows(),
        music::MusicClass::rows(),
        tones::TonesGeneral::rows(),
        logger::LoggerGeneral::rows(),
        cdr::CdrGeneral::rows(),
        cdr::CdrCsv::rows(),
        cdr::CdrMaster::rows(),
        cdr::CdrManagerGeneral::rows(),
        cdr_sql::rows(),
        cel::rows(),
        manager::ManagerGeneral::rows(),
        manager::ManagerUser::rows(),
        ari::rows(),
        modules::rows(),
        resolver::Resolver::rows(),
        codecs::Speex::rows(),
        codecs::Plc::rows(),
        codecs::External::rows(),
        confbridge::rows(),
        meetme::rows(),
        amd::Amd::rows(),
        agents::AgentSection::rows(),
        voicemail::VoicemailConf::rows(),
        minivm::rows(),
        tts::rows(),
        queues::QueuesGeneral::rows(),
        queues::QueueSection::rows(),
        features::rows(),
        followme::rows(),
        parking::ParkingConf::rows(),
        iax::IaxGeneral::rows(),
        iax::IaxPeer::rows(),
        hep::HepGeneral::rows(),
        statsd::StatsdGeneral::rows(),
        telemetry::TelemetryGeneral::rows(),
        web::HttpGeneral::rows(),
        web::Prometheus::rows(),
        aliases::AliasesGeneral::rows(),
        permissions::rows(),
        stir::StirShaken::rows(),
        realtime::rows(),
    ]
    .concat()
}

/// A host, and its port when one is written: `host`, `host:port`, `[address]:port`, or an IPv6 address alone.
pub(crate) fn host_and_port(text: &str, default: u16) -> Option<(String, u16)> {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some((text.to_owned(), default));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(default), |port| port.parse().ok().filter(|port| *port > 0))?;
    let plain = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
    plain.then(|| (host.to_owned(), port))
}

/// Reads one section into an object; `None` when an error skips it. Lines that `extra` takes are its business.
pub(crate) fn read_object<T: Object>(
    section: &Section,
    findings: &mut Findings,
    extra: &mut dyn FnMut(&mut T, &Variable, &mut Findings) -> bool,
) -> Option<T> {
    let mut object = T::blank(Origin::of(section));
    let mut valid = true;
    for variable in &section.variables {
        if extra(&mut object, variable, findings) {
            continue;
        }
        match object.apply(variable, findings) {
            Some((name, Ok(()))) => object.origin_mut().remember(name, &variable.place),
            Some((_, Err(mut finding))) => {
                if finding.level == Level::Error {
                    if T::UNKNOWN == Unknown::SkipsObject {
                        finding.message += &format!("; the {} is skipped", T::SECTION);
                        valid = false;
                    } else {
                        finding.message += "; the default holds";
                        finding.level = Level::Warning;
                    }
                }
                findings.push(finding);
            }
            None => valid &= unapplied::<T>(variable, findings),
        }
    }
    valid.then_some(object)
}

/// A line no supported row takes: recognised, or unknown. False when it skips the object.
fn unapplied<T: Object>(variable: &Variable, findings: &mut Findings) -> bool {
    if let Some(recognised) = T::RECOGNISED.iter().find(|recognised| variable.is(recognised.name)) {
        recognised.tell(variable, findings);
        return true;
    }
    // Names that begin with @ are notes of the administrator, kept by Asterisk and never read.
    if variable.name.starts_with('@') {
        return true;
    }
    let skips = T::UNKNOWN == Unknown::SkipsObject;
    let consequence =
        if skips { format!("the {} is skipped", T::SECTION) } else { "the line is ignored".into() };
    let level = if skips { Level::Error } else { Level::Warning };
    let message = format!("{} has no option `{}`; {consequence}", T::SECTION, variable.name);
    findings.push(variable.finding(level, message, suggestion(&variable.name, &T::names())));
    !skips
}

/// Nobody writes options longer than this; a longer name gets no suggestion, so that comparing stays cheap.
const SUGGEST_BYTES_MAX: usize = 64;

/// “did you mean”, or what to do when nothing is near.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().min(name.len()) / 4)
        .min_by_key(|(distance, _)| *distance);
    near.map_or_else(|| "remove the line".to_owned(), |(_, near)| format!("did you mean `{near}`?"))
}

/// Edits between two names, in any case.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > SUGGEST_BYTES_MAX || b.len() > SUGGEST_BYTES_MAX {
        return usize::MAX;
    }
    let (a, b) = (a.to_ascii_lowercase().into_bytes(), b.to_ascii_lowercase().into_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Reads the first section of a name into settings; without one, the defaults.
pub(crate) fn read_settings<T: Object>(file: &conf::File, name: &str, findings: &mut Findings) -> T {
    let section = file.section(name);
    section
        .and_then(|section| read_object(section, findings, &mut |_, _, _| false))
        .unwrap_or_else(|| T::blank(Origin::default_of(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        for (name, known, expected) in [
            ("alow", &["allow", "aors", "auth"][..], "did you mean `allow`?"),
            ("RTP_SYMETRIC", &["rtp_symmetric"], "did you mean `rtp_symmetric`?"),
            ("max_contact", &["max_contacts", "contact"], "did you mean `max_contacts`?"),
            ("xyz", &["allow", "aors"], "remove the line"),
            ("", &["allow"], "remove the line"),
        ] {
            assert_eq!(suggestion(name, known), expected, "{name}");
        }
    }

    #[test]
    fn every_option_of_the_manual_is_there_once() {
        let mut seen = std::collections::BTreeSet::new();
        for row in manual() {
            assert!(
                seen.insert((row.file, row.section, row.name)),
                "{} [{}] {}",
                row.file,
                row.section,
                row.name
            );
            assert!(row.status != Status::Supported || !row.doc.is_empty(), "{}", row.name);
        }
        assert!(seen.len() > 250, "{}", seen.len());
    }
}
