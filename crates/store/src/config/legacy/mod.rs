//! `sip.conf`: what chan_sip calls peers, users, friends and register lines, as the objects of `pjsip.conf` they stand for.
//!
//! An object that `pjsip.conf` has itself goes first. Each line made here keeps the place of the line it comes from, so that
//! whatever is wrong with a value is reported where the administrator wrote it.

mod keys;
mod peer;
mod register;
mod transport;
mod words;

pub(in crate::config) use keys::rows;

use conf::{File, Findings, Level, Place, Section, Variable};

use super::made::{Made, is_there};
use super::suggestion;
use keys::{Fate, Part};

/// Sections of `sip.conf` that are no peers.
const NO_PEERS: [&str; 2] = ["general", "authentication"];

/// The sections of `pjsip.conf` that a `sip.conf` stands for; `pjsip` is what is there already.
pub(crate) fn import(sip: &File, pjsip: &File, findings: &mut Findings) -> Vec<Section> {
    let general: Vec<&Variable> = sip.named("general").flat_map(|section| &section.variables).collect();
    let peers: Vec<&Section> = sip
        .objects()
        .filter(|section| !NO_PEERS.iter().any(|name| section.name.eq_ignore_ascii_case(name)))
        .collect();
    if general.is_empty() && peers.is_empty() {
        return Vec::new();
    }
    let mut import = Import { sip, pjsip, general, findings, transports: Vec::new(), made: Vec::new() };
    import.judge(&import.general.clone(), true);
    import.make_transports();
    import.make_stack();
    for peer in peers {
        import.judge(&peer.variables.iter().collect::<Vec<_>>(), false);
        import.make_peer(peer);
    }
    import.make_guest();
    import.make_registrations();
    import.credentials();
    import.tell();
    import.made.into_iter().map(Made::into_section).collect()
}

struct Import<'a> {
    sip: &'a File,
    pjsip: &'a File,
    general: Vec<&'a Variable>,
    findings: &'a mut Findings,
    /// Word of `transport=` and name of the object, in the order they are tried.
    transports: Vec<(&'static str, String)>,
    made: Vec<Made>,
}

/// The last line of any of these names.
fn last<'a>(lines: &[&'a Variable], names: &[&str]) -> Option<&'a Variable> {
    lines.iter().rev().find(|line| names.iter().any(|name| line.is(name))).copied()
}

/// Whether a line says yes; anything else is no.
fn yes(line: Option<&Variable>) -> bool {
    line.is_some_and(|line| conf::boolean(&line.value) == Some(true))
}

impl<'a> Import<'a> {
    fn general(&self, names: &[&str]) -> Option<&'a Variable> {
        last(&self.general, names)
    }
    fn has(&self, kind: &str, name: &str) -> bool {
        is_there(self.pjsip, kind, name)
    }
    /// Keeps an object, unless `pjsip.conf` has it.
    fn keep(&mut self, kind: &str, name: &str, made: Made, place: &Place) {
        if self.has(kind, name) {
            let message = format!("pjsip.conf has an object [{name}] with type={kind}, which goes first");
            return self.findings.note(place, message, "remove one of them");
        }
        self.made.push(made);
    }

    /// Says which lines have no equal, and which nobody knows.
    fn judge(&mut self, lines: &[&Variable], general: bool) {
        for line in lines {
            let (name, value) = (&line.name, &line.value);
            match keys::find(name, general).map(|key| key.fate) {
                Some(Fate::Same(..) | Fate::Read(_)) => {}
                Some(Fate::Moot(why)) => {
                    self.findings.note(&line.place, format!("{name}={value} has no meaning here: {why}"), "");
                }
                Some(Fate::NoEqual(what)) => {
                    let message = format!("{name}={value} of sip.conf has no equal in pjsip.conf: {what}");
                    self.findings.add(Level::Note, &line.place, message, "");
                }
                None => {
                    let message = format!("sip.conf has no option `{name}` here; the line is ignored");
                    self.findings.warning(&line.place, message, suggestion(name, &keys::names(general)));
                }
            }
        }
    }

    /// Copies the lines that are an option of this object under another name.
    fn copy(&self, lines: &[&Variable], part: Part, general: bool, to: &mut Made) {
        for line in lines {
            if let Some(Fate::Same(wanted, option)) = keys::find(&line.name, general).map(|key| key.fate)
                && wanted == part
            {
                to.line(option, &line.value, &line.place);
            }
        }
    }

    /// `type=global` and `type=system`, when something is said that belongs there.
    fn make_stack(&mut self) {
        let place = self.sip.place();
        for (part, kind) in [(Part::Global, "global"), (Part::System, "system")] {
            let mut made = Made::new(kind, kind, &place);
            self.copy(&self.general, part, true, &mut made);
            let section = made.into_section();
            let said = section.variables.len() > 1;
            let is_known = self.pjsip.objects().any(|known| known.value("type") == Some(kind));
            match said {
                true if is_known => {
                    let message = format!("pjsip.conf has a section with type={kind}, which goes first");
                    self.findings.note(&place, message, "");
                }
                true => self.made.push(Made::from(section)),
                false => {}
            }
        }
    }

    /// chan_sip lets strangers call unless `allowguest=no`.
    fn make_guest(&mut self) {
        let line = self.general(&["allowguest"]);
        if self.has("endpoint", "anonymous") || line.is_some_and(|line| !yes(Some(line))) {
            return;
        }
        let place = line.map_or_else(|| self.sip.place(), |line| line.place.clone());
        let context = self.general(&["context"]).map_or("default", |line| &*line.value).to_owned();
        let mut made = Made::new("endpoint", "anonymous", &place);
        self.describe(&self.defaults(), &mut made);
        if !made.has("context") {
            made.line("context", &context, &place);
        }
        // Nobody becomes a guest by saying so: only who is nobody else is one.
        made.line("identify_by", "ip", &place);
        let message = format!(
            "allowguest is yes, as chan_sip has it unless it is written: strangers may call into the context '{context}'"
        );
        self.findings.warning(&place, message, "write allowguest=no in [general] of sip.conf");
        self.made.push(made);
    }

    fn credentials(&mut self) {
        let section = self.sip.section("authentication");
        for line in section.into_iter().flat_map(|section| &section.variables) {
            let message = "credentials by realm have no equal in pjsip.conf: the line is ignored";
            self.findings.warning(&line.place, message, "write remotesecret= in the peer that asks for them");
        }
    }

    fn tell(&mut self) {
        let count = |kind: &str| self.made.iter().filter(|made| made.is(kind)).count();
        let message = format!(
            "sip.conf is read as pjsip.conf: {} endpoints, {} registrations, {} transports",
            count("endpoint"),
            count("registration"),
            count("transport"),
        );
        self.findings.note(&self.sip.place(), message, "`pjsip show endpoints` lists them");
    }
}
