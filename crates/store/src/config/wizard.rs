//! `pjsip_wizard.conf`: a section of `type=wizard` stands for the endpoint, aor, auths, identify and registrations of a phone
//! or trunk.

use conf::{File, Findings, Place, Section, Variable};

use super::made::{Made, is_there};
use super::{Row, Status, suggestion};

/// Options of a wizard, each with what it does; names that end in `/` stand before options of that object.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("transport", "", "`transport` of the endpoint and of registrations."),
    ("remote_hosts", "", "Hosts of the other side, comma separated: contacts, identify, registrations."),
    ("outbound_proxy", "", "`outbound_proxy` of endpoint, aor and registrations."),
    ("sends_auth", "no", "We prove ourselves: an outbound auth."),
    ("accepts_auth", "no", "It proves itself: an auth."),
    ("sends_registrations", "no", "We register: a registration for each host."),
    ("sends_line_with_registrations", "no", "With `line=yes`, and this endpoint."),
    ("accepts_registrations", "no", "It registers: `max_contacts=1`, and no contacts."),
    ("server_uri_pattern", "sip:${REMOTE_HOST}", "`server_uri` of registrations."),
    ("client_uri_pattern", "sip:${USERNAME}@${REMOTE_HOST}", "`client_uri` of registrations."),
    ("contact_pattern", "sip:${REMOTE_HOST}", "`contact` of the aor."),
    ("has_hint", "no", "Its extension has a hint, which is `PJSIP/` and the name of the wizard."),
    ("hint_exten", "", "That extension; with `has_hint` it has to be there."),
    ("hint_context", "default", "Context of the extension; what `extensions.conf` has of it goes first."),
    (
        "hint_application",
        "",
        "What the extension does first, such as `Gosub(phone,${EXTEN},1)`; empty: nothing.",
    ),
    ("endpoint/", "", "Option of the endpoint."),
    ("aor/", "", "Option of the aor."),
    ("inbound_auth/", "", "Option of the auth it satisfies."),
    ("outbound_auth/", "", "Option of the auth we satisfy."),
    ("identify/", "", "Option of the identify."),
    ("registration/", "", "Option of each registration."),
];

/// Options that are known and not obeyed.
const LATER: &[(&str, &str)] =
    &[("has_phoneprov", "phones are not provisioned"), ("phoneprov/", "phones are not provisioned")];

/// Rows for the manual.
pub(super) fn rows() -> Vec<Row> {
    let row = |name, default, doc, status| {
        let kind = String::new();
        Row { file: "pjsip_wizard.conf", section: "wizard", name, kind, default, doc, status }
    };
    let done = OPTIONS.iter().map(|&(name, default, doc)| row(name, default, doc, Status::Supported));
    done.chain(LATER.iter().map(|&(name, what)| row(name, "", "", Status::Later(what)))).collect()
}

/// The sections of `pjsip.conf` that a `pjsip_wizard.conf` stands for; objects of `pjsip` itself go first.
pub(crate) fn expand(wizards: &File, pjsip: &File, findings: &mut Findings) -> Vec<Section> {
    let mut made = Vec::new();
    for section in wizards.objects() {
        if section.value("type").is_none_or(|kind| !kind.eq_ignore_ascii_case("wizard")) {
            let message = format!("[{}] is not a wizard and is skipped", section.name);
            findings.warning(&section.place, message, "add type=wizard");
            continue;
        }
        judge(section, findings);
        made.extend(Wizard { section, pjsip, findings, made: Vec::new() }.expand());
    }
    made.into_iter().map(Made::into_section).collect()
}

/// The dialplan that a `pjsip_wizard.conf` asks for: contexts as they would stand in `extensions.conf`.
pub(crate) fn dialplan(wizards: &File, findings: &mut Findings) -> Vec<Section> {
    let says = |section: &Section, option: &str| {
        section.value(option).is_some_and(|value| conf::boolean(value) == Some(true))
    };
    let is_wanted = |section: &&Section| {
        section.value("type").is_some_and(|kind| kind.eq_ignore_ascii_case("wizard"))
            && says(section, "has_hint")
    };
    wizards.objects().filter(is_wanted).filter_map(|section| hint(section, findings)).collect()
}

/// The context of a wizard's extension, with its hint and what it does.
fn hint(wizard: &Section, findings: &mut Findings) -> Option<Section> {
    let filled = |option| wizard.value(option).map(str::trim).filter(|value| !value.is_empty());
    let Some(exten) = filled("hint_exten") else {
        let message = format!("wizard '{}' has a hint and no extension for it", wizard.name);
        findings.error(&wizard.place, message, "add hint_exten=, or remove has_hint=");
        return None;
    };
    let hint = format!("{exten},hint,PJSIP/{}", wizard.name);
    let does = filled("hint_application").map(|application| format!("{exten},1,{application}"));
    let line = |value: String| Variable {
        name: "exten".into(),
        value: value.into(),
        object: true,
        place: wizard.place.clone(),
        inherited: false,
    };
    Some(Section {
        name: filled("hint_context").unwrap_or("default").into(),
        template: false,
        place: wizard.place.clone(),
        parents: Vec::new(),
        variables: [Some(hint), does].into_iter().flatten().map(line).collect(),
    })
}

/// Says which options are not obeyed, and which nobody knows.
fn judge(section: &Section, findings: &mut Findings) {
    let is = |name: &str, variable: &Variable| match name.strip_suffix('/') {
        Some(prefix) => {
            variable.name.split_once('/').is_some_and(|(head, _)| head.eq_ignore_ascii_case(prefix))
        }
        None => variable.is(name),
    };
    for variable in &section.variables {
        let (name, value) = (&variable.name, &variable.value);
        if variable.is("type")
            || name.starts_with('@')
            || OPTIONS.iter().any(|(known, ..)| is(known, variable))
        {
            continue;
        }
        match LATER.iter().find(|(known, _)| is(known, variable)) {
            Some(_) if conf::boolean(value) == Some(false) => {}
            Some((_, what)) => {
                let message = format!("{name}={value} is known to Asterisk and not supported yet: {what}");
                findings.warning(&variable.place, message, "remove the line if that will do");
            }
            None => {
                let names: Vec<&str> = OPTIONS.iter().map(|(name, ..)| *name).collect();
                let message = format!("a wizard has no option `{name}`; the line is ignored");
                findings.warning(&variable.place, message, suggestion(name, &names));
            }
        }
    }
}

struct Wizard<'a> {
    section: &'a Section,
    pjsip: &'a File,
    findings: &'a mut Findings,
    made: Vec<Made>,
}

impl Wizard<'_> {
    fn expand(mut self) -> Vec<Made> {
        let name = self.section.name.to_string();
        let hosts = self.hosts();
        let (sends_auth, accepts_auth) = (self.says("sends_auth"), self.says("accepts_auth"));
        let registers = self.says("accepts_registrations");
        let mut endpoint = self.begin("endpoint", &name, "endpoint");
        if !endpoint.has("aors") {
            endpoint.line("aors", &name, &self.section.place);
        }
        self.pass("transport", "transport", &mut endpoint);
        self.pass("outbound_proxy", "outbound_proxy", &mut endpoint);
        for (wanted, prefix, option, suffix) in [
            (accepts_auth, "inbound_auth", "auth", "iauth"),
            (sends_auth, "outbound_auth", "outbound_auth", "oauth"),
        ] {
            if wanted {
                let auth_name = format!("{name}-{suffix}");
                let mut auth = self.begin("auth", &auth_name, prefix);
                if !auth.has("username") {
                    auth.line("username", &name, &self.section.place);
                }
                endpoint.line(option, &auth_name, &self.section.place);
                self.keep("auth", &auth_name, auth);
            }
        }
        self.keep("endpoint", &name, endpoint);
        self.make_aor(&name, &hosts, registers);
        if !hosts.is_empty() && !registers {
            let identify_name = format!("{name}-identify");
            let mut identify = self.begin("identify", &identify_name, "identify");
            identify.line("endpoint", &name, &self.section.place);
            for (host, place) in &hosts {
                identify.line("match", without_port(host), place);
            }
            self.keep("identify", &identify_name, identify);
        }
        if self.says("sends_registrations") {
            self.make_registrations(&name, &hosts);
        }
        self.made
    }

    fn make_aor(&mut self, name: &str, hosts: &[(String, Place)], registers: bool) {
        let mut aor = self.begin("aor", name, "aor");
        self.pass("outbound_proxy", "outbound_proxy", &mut aor);
        if registers && !aor.has("max_contacts") {
            aor.line("max_contacts", "1", &self.section.place);
        }
        for (host, place) in hosts.iter().filter(|_| !registers) {
            let contact = self.pattern("contact_pattern", host);
            aor.line("contact", &contact, place);
        }
        self.keep("aor", name, aor);
    }

    fn make_registrations(&mut self, name: &str, hosts: &[(String, Place)]) {
        if hosts.is_empty() || !self.says("sends_auth") && !self.uses_no_user() {
            let message =
                format!("wizard '{name}' sends registrations, and has no remote_hosts or no sends_auth");
            let remedy = "add remote_hosts=, sends_auth=yes and outbound_auth/username=";
            self.findings.error(&self.section.place, message, remedy);
            return;
        }
        for (number, (host, place)) in hosts.iter().enumerate() {
            let registration_name = format!("{name}-reg-{number}");
            let mut registration = self.begin("registration", &registration_name, "registration");
            registration.line("server_uri", &self.pattern("server_uri_pattern", host), place);
            registration.line("client_uri", &self.pattern("client_uri_pattern", host), place);
            self.pass("transport", "transport", &mut registration);
            self.pass("outbound_proxy", "outbound_proxy", &mut registration);
            if self.says("sends_auth") {
                registration.line("outbound_auth", &format!("{name}-oauth"), &self.section.place);
            }
            if self.says("sends_line_with_registrations") {
                registration.line("endpoint", name, &self.section.place);
                registration.line("line", "yes", &self.section.place);
            }
            self.keep("registration", &registration_name, registration);
        }
    }

    fn says(&self, option: &str) -> bool {
        self.section.value(option).is_some_and(|value| conf::boolean(value) == Some(true))
    }
    fn uses_no_user(&self) -> bool {
        self.section.value("client_uri_pattern").is_some_and(|pattern| !pattern.contains("${USERNAME}"))
    }
    /// Every host with the place of its line.
    fn hosts(&self) -> Vec<(String, Place)> {
        let Some(line) = self.section.last("remote_hosts") else { return Vec::new() };
        let hosts = line.value.split(',').map(str::trim).filter(|host| !host.is_empty());
        hosts.map(|host| (host.to_owned(), line.place.clone())).collect()
    }
    fn pattern(&self, option: &str, host: &str) -> String {
        let default =
            OPTIONS.iter().find(|(name, ..)| *name == option).map_or("", |(_, default, _)| *default);
        let pattern = self.section.value(option).unwrap_or(default);
        let user = self.section.value("outbound_auth/username").unwrap_or(&self.section.name);
        pattern.replace("${REMOTE_HOST}", host).replace("${USERNAME}", user)
    }
    /// An object with what the section says of it under a prefix.
    fn begin(&self, kind: &str, name: &str, prefix: &str) -> Made {
        let mut made = Made::new(kind, name, &self.section.place);
        for variable in &self.section.variables {
            if let Some((_, option)) =
                variable.name.split_once('/').filter(|(head, _)| head.eq_ignore_ascii_case(prefix))
            {
                made.line(option, &variable.value, &variable.place);
            }
        }
        made
    }
    /// Passes an option of the wizard itself on, unless the object has it.
    fn pass(&self, option: &str, to: &str, made: &mut Made) {
        if let Some(line) = self.section.last(option).filter(|_| !made.has(to)) {
            made.line(to, &line.value, &line.place);
        }
    }
    fn keep(&mut self, kind: &str, name: &str, made: Made) {
        if is_there(self.pjsip, kind, name) {
            let message = format!("pjsip.conf has an object [{name}] with type={kind}, which goes first");
            return self.findings.note(&self.section.place, message, "remove one of them");
        }
        self.made.push(made);
    }
}

/// `host:port` without its port; addresses of IPv6 need brackets to have one.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
        }
        _ => host,
    }
}
