//! `manager.conf`: the manager interface and its users.

use super::acl::{Access, NamedAcls};
use super::kind::{
    Bind, BindTo, Ciphers, Gathered, Hidden, Int, Kind, Lines, Pairs, Port, Rules, Text, YesNo,
};
use super::{options, read_object, read_settings};
use conf::{File, Finding, Findings, Level, Variable};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Classes of permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Classes(u32);

/// Names of the classes, a bit each.
const CLASSES: [&str; 19] = [
    "system",
    "call",
    "log",
    "verbose",
    "command",
    "agent",
    "user",
    "config",
    "dtmf",
    "reporting",
    "cdr",
    "dialplan",
    "originate",
    "agi",
    "cc",
    "aoc",
    "test",
    "security",
    "message",
];

/// Which bit each class is in the field's numbers.
const BITS: &[&str] = &[
    "system",
    "call",
    "log",
    "verbose",
    "command",
    "agent",
    "user",
    "config",
    "dtmf",
    "reporting",
    "cdr",
    "dialplan",
    "originate",
    "agi",
    "hookresponse",
    "cc",
    "aoc",
    "test",
    "security",
    "message",
];

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);
    /// Every class.
    pub const ALL: Self = Self((1 << CLASSES.len()) - 1);

    /// One class by its name.
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("all") {
            return Some(Self::ALL);
        }
        CLASSES.iter().position(|class| class.eq_ignore_ascii_case(name)).map(|at| Self(1 << at))
    }
    /// Whether any class of `other` is in the set.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether every class of `other` is in the set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Both sets together.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The set as the number that the field shows: a bit for each class, and all bits for all classes.
    pub fn number(self) -> u32 {
        if self == Self::ALL {
            return i32::MAX.unsigned_abs();
        }
        let bit = |name: &str| BITS.iter().position(|known| *known == name).map_or(0, |at| 1 << at);
        self.names().map(bit).sum()
    }
    /// Names in the field's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        CLASSES.iter().enumerate().filter(move |(at, _)| self.0 & (1 << at) != 0).map(|(_, name)| *name)
    }
}

/// Classes, comma separated.
pub struct ClassList;
impl Kind for ClassList {
    type Value = Classes;
    fn describe() -> String {
        format!("all, or some of: {}", CLASSES.join(", "))
    }
    fn set(value: &mut Classes, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = Classes::NONE;
        for name in variable.value.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match (Classes::named(name), name) {
                (Some(class), _) => *value = value.union(class),
                (None, "-1") => *value = Classes::ALL,
                (None, "none" | "0") => {}
                (None, _) => notes.push(variable.finding(
                    Level::Warning,
                    format!(
                        "{} names the class `{name}`, which does not exist; it is ignored",
                        variable.name
                    ),
                    super::suggestion(name, &CLASSES),
                )),
            }
        }
        Ok(())
    }
}

options! {
    /// `[general]` of `manager.conf`.
    ManagerGeneral, "manager.conf", "general", IsIgnored;
    enabled: YesNo = "no", "Serve the manager interface.";
    port also "portno": Port = "5038", "TCP port.";
    bindaddr: BindTo = "0.0.0.0", "Address to listen on; every one unless written.";
    displayconnects: YesNo = "yes", "Tell logins and logoffs on the console.";
    timestampevents: YesNo = "no", "Add a Timestamp to events.";
    brokeneventsaction: YesNo = "no", "Do not answer an Events action that asks for all, as old versions did.";
    displaysystemname: YesNo = "no", "Add a SystemName to events: systemname of asterisk.conf, if it has one.";
    allowmultiplelogin: YesNo = "yes", "Let a user log in several times.";
    debug: YesNo = "no", "Tell what comes and goes.",
        Later "no" "logins and refusals are logged, single actions are not";
    authtimeout: Int<1, 3_600> = "30", "Seconds a connection may take to log in.";
    authlimit: Int<1, 10_000> = "50", "Connections that may be logging in at once.";
    webenabled: YesNo = "no", "Serve the manager interface over HTTP too, by the server of http.conf: /rawman, /mxml and /manager.";
    httptimeout: Int<1, 86_400> = "60", "Seconds a session over HTTP lasts without a request.";
    channelvars: Gathered = "", "Channel variables that events carry.";
    disabledevents: Gathered = "", "Events that are not sent.";
    tlsenable also "sslenable": YesNo = "no", "Serve it under TLS too.";
    tlsbindaddr also "sslbindaddr": BindTo = "", "Address and port to listen on under TLS; unless written, that of bindaddr, port 5039.";
    tlsbindport also "sslbindport": Port = "5039", "Port under TLS when tlsbindaddr names none.";
    tlscertfile also "sslcert": Text = "asterisk.pem", "Certificate in PEM, then those between it and its authority.";
    tlsprivatekey also "sslprivatekey": Text = "", "Its key in PEM, without a password; empty: it is in tlscertfile.";
    tlscipher also "sslcipher": Ciphers = "", "Suites of TLS, preferred first; empty: all that are built in.";
    tlsdisablev12: YesNo = "no", "Speak TLS 1.3 only.";
    @recognised {
        "tlsdisablev1" "*" Ignored "TLS 1.0 is not built in";
        "tlsdisablev11" "*" Ignored "TLS 1.1 is not built in";
        "tlsservercipherorder" "*" Ignored "the order of tlscipher holds";
        "tlscafile" "*" Ignored "clients are asked for no certificate";
        "tlscapath" "*" Ignored "clients are asked for no certificate";
        "tlscadir" "*" Ignored "clients are asked for no certificate";
        "tlsverifyclient" "no" Later "clients are asked for no certificate";
        "tlsclientmethod" "*" Ignored "no server is called by it";
        "tlsdontverifyserver" "*" Ignored "no server is called by it";
        "block-sockets" "*" Ignored "no socket blocks";
    }
}

options! {
    /// A user of the manager interface.
    ManagerUser, "manager.conf", "user", IsIgnored;
    secret: Hidden = "", "Password.";
    read: ClassList = "", "Classes whose events it gets.";
    write: ClassList = "", "Classes whose actions it may use.";
    permit also "deny": Rules = "", "Addresses it may come from.";
    acl: Gathered = "", "Lists of acl.conf it must pass.";
    setvar: Pairs = "", "Variables of channels it originates.";
    eventfilter: Lines = "", "Filters its events must pass.";
    writetimeout: Int<1, 600_000> = "100", "Milliseconds a write may take before the connection is closed.",
        Ignored "*" "a client is disconnected when it leaves too much unread, however long it takes";
    displayconnects: YesNo = "yes", "Tell its logins and logoffs.";
    allowmultiplelogin: YesNo = "yes", "Let it log in several times.";
    timestampevents: YesNo = "no", "Add a Timestamp to its events.";
    @recognised {}
    resolved {
        /// Filters with criteria: `eventfilter(name(Hangup)) = …`.
        filters: Vec<EventFilter>;
        /// Own rules with the named lists; everyone until `Manager::resolve_acls` ran.
        access: Access;
    }
}

/// How the text of a filter is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilterMethod {
    /// It is a POSIX extended regular expression that is found in it.
    #[default]
    Regex,
    /// It is the same.
    Exact,
    /// It begins with it.
    StartsWith,
    /// It ends with it.
    EndsWith,
    /// It holds it.
    Contains,
    /// It is not compared: the name of the event, or that it has the header, decides.
    None,
}

/// A filter of events with criteria.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// It holds back what it matches, instead of letting it through.
    pub excludes: bool,
    /// Only events of this name.
    pub name: Option<String>,
    /// Only this header is compared; else the whole event.
    pub header: Option<String>,
    /// How.
    pub method: FilterMethod,
    /// With what.
    pub text: String,
}

impl EventFilter {
    /// A filter that holds everything back.
    pub fn nothing() -> Self {
        Self { excludes: true, method: FilterMethod::None, ..Self::default() }
    }
    /// Reads criteria, `action(include),name(X),header(Y),method(exact)`, in `eventfilter(…)` or alone.
    pub fn parse(criteria: &str, text: &str) -> Result<Self, &'static str> {
        let criteria = criteria.trim();
        let inner = match criteria.split_once('(') {
            Some((word, rest)) if word.trim().eq_ignore_ascii_case("eventfilter") => {
                rest.strip_suffix(')').ok_or("the criteria have no closing `)`")?
            }
            _ => criteria,
        };
        let mut filter = Self { text: text.to_owned(), ..Self::default() };
        let mut rest = inner.trim();
        while !rest.is_empty() {
            let (word, tail) = rest.split_once('(').ok_or("a criterion is written word(value)")?;
            let (value, tail) = tail.split_once(')').ok_or("a criterion has no closing `)`")?;
            let (word, value) = (word.trim().to_ascii_lowercase(), value.trim());
            match (word.as_str(), value.to_ascii_lowercase().as_str()) {
                ("action", "include") => filter.excludes = false,
                ("action", "exclude") => filter.excludes = true,
                ("name", name) if !name.is_empty() => filter.name = Some(value.to_owned()),
                ("header", name) if !name.is_empty() => {
                    filter.header = Some(value.trim_end_matches(':').to_owned());
                }
                ("method", "regex") => filter.method = FilterMethod::Regex,
                ("method", "exact") => filter.method = FilterMethod::Exact,
                // The field's page of the action Filter spells these two startsWith and endsWith.
                ("method", "starts_with" | "startswith") => filter.method = FilterMethod::StartsWith,
                ("method", "ends_with" | "endswith") => filter.method = FilterMethod::EndsWith,
                ("method", "contains") => filter.method = FilterMethod::Contains,
                ("method", "none") => filter.method = FilterMethod::None,
                _ => return Err("criteria are action, name, header and method"),
            }
            rest = tail.trim_start().strip_prefix(',').unwrap_or(tail).trim();
        }
        if filter.method == FilterMethod::None && filter.name.is_none() && filter.header.is_none() {
            return Err("method(none) needs a name or a header");
        }
        if filter.method == FilterMethod::Regex && dialplan::ere::Regex::new(text).is_err() {
            return Err("the value is no regular expression");
        }
        Ok(filter)
    }
}

/// `manager.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manager {
    /// `[general]`.
    pub general: ManagerGeneral,
    /// Users by name.
    pub users: BTreeMap<String, ManagerUser>,
}

/// Where the manager listens when `bindaddr` is not written, as in the field; `check` warns of it.
const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl ManagerGeneral {
    /// Where to listen; `None` when nothing is served.
    pub fn address(&self) -> Option<SocketAddr> {
        let ip = self.bindaddr.map_or(ANYWHERE, |bind| bind.ip);
        self.enabled.then(|| SocketAddr::new(ip, self.port))
    }
    /// Where to listen under TLS; `None` when nothing is served so.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        let ip = self.bindaddr.map_or(ANYWHERE, |bind| bind.ip);
        let bind = self.tlsbindaddr.unwrap_or(Bind { ip, port: None });
        (self.enabled && self.tlsenable).then(|| bind.or_port(self.tlsbindport))
    }
}

impl Manager {
    /// Reads the file. A user without a secret is skipped.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: ManagerGeneral = read_settings(file, "general", findings);
        let mut manager = Self { general, users: BTreeMap::new() };
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            let mut locked = false;
            let mut filters = Vec::new();
            let user = read_object::<ManagerUser>(section, findings, &mut |_, variable, findings| {
                // A rule that is not understood must not leave the door open.
                if variable.is("permit") || variable.is("deny") {
                    let mut trial = super::acl::Acl::default();
                    if let Err(item) = trial.add(variable.is("permit"), &variable.value) {
                        let message =
                            format!("`{item}` is no network; the user '{}' is skipped", section.name);
                        findings.push(variable.finding(
                            Level::Error,
                            message,
                            "write 192.0.2.0/255.255.255.0",
                        ));
                        locked = true;
                        return true;
                    }
                }
                variable.name.to_ascii_lowercase().starts_with("eventfilter(")
                    && {
                        match EventFilter::parse(&variable.name, &variable.value) {
                            Ok(filter) => filters.push(filter),
                            Err(why) => {
                                // What was to be held back must not be sent because of a slip.
                                filters.push(EventFilter::nothing());
                                let message = format!("{}: {why}; the user gets no events", variable.name);
                                let remedy = "write eventfilter(action(include),name(Hangup),header(Channel),method(contains)) = PJSIP/";
                                findings.push(variable.finding(Level::Error, message, remedy));
                            }
                        }
                        true
                    }
            });
            let Some(mut user) = user.filter(|_| !locked) else { continue };
            user.filters = filters;
            if user.secret.is_empty() {
                let message = format!("the manager user '{}' has no secret and is skipped", section.name);
                findings.error(&section.place, message, "add secret=");
                continue;
            }
            if user.secret.expose().chars().count() < 12 {
                let message =
                    format!("the secret of manager user '{}' is shorter than 12 characters", section.name);
                findings.warning(user.origin.place_of("secret"), message, "choose a longer one");
            }
            manager.users.insert(section.name.to_string(), user);
        }
        let bound = manager.general.bindaddr.is_some_and(|bind| bind.ip.is_loopback());
        if manager.general.enabled && !bound {
            let place = manager.general.origin.place_of("bindaddr").clone();
            let message = "the manager interface listens beyond this machine without encryption";
            findings.warning(
                &place,
                message,
                "bind it to 127.0.0.1 and use a tunnel, or restrict users with permit=",
            );
        }
        manager
    }
    /// Whether it is served over HTTP.
    pub fn is_on_the_web(&self) -> bool {
        self.general.enabled && self.general.webenabled
    }
    /// Resolves the named lists that users refer to. A missing list lets nobody in.
    pub fn resolve_acls(&mut self, named: &NamedAcls, findings: &mut Findings) {
        for user in self.users.values_mut() {
            user.access = named.access(&user.permit, &user.acl, user.origin.place_of("acl"), findings);
        }
    }
}
