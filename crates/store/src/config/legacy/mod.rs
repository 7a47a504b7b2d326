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

use super::made::{self, Made, is_there};
use super::pjsip::{Aor, Auth, Endpoint, Global, Identify, Registration, System, Transport};
use super::{Object, Origin, suggestion};
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
    let Import { made, findings, .. } = import;
    made.into_iter().map(|made| settle(made.into_section(), findings)).collect()
}

/// chan_sip goes on with a peer of which one value is wrong, where the reader of `pjsip.conf` would skip the object.
fn settle(mut section: Section, findings: &mut Findings) -> Section {
    let take: fn(&mut Section, &mut Findings) = match section.value("type").unwrap_or_default() {
        "endpoint" => take_lines::<Endpoint>,
        "aor" => take_lines::<Aor>,
        "auth" => take_lines::<Auth>,
        "identify" => take_lines::<Identify>,
        "registration" => take_lines::<Registration>,
        "transport" => take_lines::<Transport>,
        "global" => take_lines::<Global>,
        _ => take_lines::<System>,
    };
    take(&mut section, findings);
    section
}

/// Leaves the lines that an object takes.
fn take_lines<T: Object>(section: &mut Section, findings: &mut Findings) {
    let mut object = T::blank(Origin::of(section));
    section.variables.retain(|line| match object.apply(line, &mut Findings::new()) {
        // A peer whose rules of who may come are in doubt is skipped.
        Some((_, Err(mut finding))) if finding.level == Level::Error && !is_rule(line) => {
            finding.level = Level::Warning;
            finding.message += "; the line is ignored";
            findings.push(finding);
            false
        }
        _ => true,
    });
}

fn is_rule(line: &Variable) -> bool {
    ["permit", "deny", "contact_permit", "contact_deny"].iter().any(|rule| line.is(rule))
}

/// What the reader of `pjsip.conf` has to say, in the words of `sip.conf` where that is what was written.
pub(crate) fn reword(findings: &mut Findings, sip: &File) {
    // Nobody expects strangers to be reached.
    findings.retain(|finding| {
        !(finding.message.starts_with("endpoint 'anonymous' has no aors")
            && sip.files.contains(&finding.place.file))
    });
    made::reword(findings, sip, |finding, line| {
        if let Some((_, remedy)) = REMEDIES.iter().find(|(of, _)| finding.remedy.starts_with(of)) {
            finding.remedy = (*remedy).to_owned();
        }
        if let Some(line) = line.filter(|line| finding.remedy.starts_with("write one of: ") && is_read(line))
        {
            finding.remedy = format!("correct {}=, or remove the line", line.name);
        }
        made::in_word_of(finding, line);
        finding.message = in_words(&finding.message, line);
    });
}

/// How remedies for `pjsip.conf` begin, and what to do in `sip.conf` instead.
const REMEDIES: [(&str, &str); 3] = [
    ("add auth= and a section", "add secret="),
    (
        "write media_encryption=sdes",
        "write encryption=yes in place of dtlsenable=yes if its phones know that",
    ),
    ("add a section with type=transport", "write udpenable=yes, tcpenable=yes or tlsenable=yes in [general]"),
];

/// Whether a key has words of its own.
fn is_read(line: &Variable) -> bool {
    [true, false]
        .iter()
        .filter_map(|general| keys::find(&line.name, *general))
        .any(|key| matches!(key.fate, Fate::Read(_)))
}

fn in_words(message: &str, line: Option<&Variable>) -> String {
    let mut message = message.to_owned();
    let registers = line.is_some_and(|line| line.is("register"));
    let whose = if registers { "register line" } else { "peer" };
    for what in ["endpoint", "aor", "auth", "identify", "registration"] {
        message = message.replace(&format!("password of {what} '"), &format!("secret of {whose} '"));
        if message.starts_with(&format!("{what} '")) {
            message = message.replacen(what, whose, 1);
        }
        message = message.replace(&format!("; the {what} is skipped"), &format!("; the {whose} is skipped"));
    }
    if registers { message } else { message.replace("-out'", "'").replace("has no auth:", "has no secret:") }
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
            let key = keys::find(name, general);
            match key.map(|key| key.fate) {
                Some(Fate::NoEqual(_)) if key.is_some_and(|key| key.asks_for_nothing(value)) => {}
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
                // One format a line, so that one that does not exist takes none of the others with it.
                let parts = if option == "allow" { &[',', '&', '|'][..] } else { &[] };
                line.value.split(parts).for_each(|value| to.line(option, value.trim(), &line.place));
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
