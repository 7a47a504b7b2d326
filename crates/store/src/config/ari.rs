//! `ari.conf`: the REST interface for programs that steer calls, and its users.

use super::acl::{Access, NamedAcls};
use super::kind::{Gathered, Hidden, Int, Names, Rules, Text, YesNo, choice};
use super::web::HttpGeneral;
use super::{options, read_object, read_settings};
use conf::{File, Findings, Level};
use std::collections::BTreeMap;

/// Shortest password that is not warned of, symbols: as for users of the manager.
const PASSWORD_SYMBOLS: usize = 12;

options! {
    /// `[general]` of `ari.conf`.
    AriGeneral, "ari.conf", "general", IsIgnored;
    enabled: YesNo = "yes", "Serve the REST interface, once it has a user, by the server of http.conf, at /ari below its prefix.";
    pretty: YesNo = "no", "Write JSON over several lines, for people.";
    allowed_origins: Names = "", "Origins whose pages may use the interface, such as `https://panel.example.com`; `*` is every page, and none may when it is empty.";
    auth_realm: Text = "Asterisk REST Interface", "Realm that the password is asked for.";
    channelvars: Gathered = "", "Channel variables that each channel in events and answers carries.";
    websocket_write_timeout: Int<1, 3_600_000> = "100", "Milliseconds a write of an event may take before the connection is closed.",
        Ignored "*" "a client is disconnected when it leaves too much unread, however long it takes";
    @recognised {}
}

options! {
    /// A user of the REST interface.
    AriUser, "ari.conf", "user", IsIgnored;
    kind as "type": AriKind = "user", "What the section describes.";
    password: Hidden = "", "Password.";
    password_format: PasswordFormat = "plain", "How the password is written.";
    read_only: YesNo = "no", "May look and listen, and change nothing.";
    permit also "deny": Rules = "", "Addresses it may come from.";
    acl: Gathered = "", "Lists of acl.conf it must pass.";
    @recognised {}
    resolved {
        /// Own rules with the named lists; everyone until `Ari::resolve_acls` ran.
        access: Access;
    }
}

choice! {
    /// `type=`: what a section of ari.conf describes.
    AriKind {
        User | "user" "A user.";
        OutboundWebsocket | "outbound_websocket" "A connection that Strowger is to open by itself; that is not built, and the section is skipped.";
    }
}

choice! {
    /// `password_format=`: how a password is written.
    PasswordFormat {
        Plain | "plain" "As it is.";
        Crypt | "crypt" "As crypt(3) makes it, and as `ari mkpasswd` prints it: SHA-512 (`$6$`), SHA-256 (`$5$`) or MD5 (`$1$`).";
    }
}

/// `ari.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ari {
    /// `[general]`.
    pub general: AriGeneral,
    /// Users by name.
    pub users: BTreeMap<String, AriUser>,
}

impl Ari {
    /// Reads the file. A user whose password cannot be known is skipped.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: AriGeneral = read_settings(file, "general", findings);
        let mut ari = Self { general, users: BTreeMap::new() };
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            let mut locked = false;
            let user = read_object::<AriUser>(section, findings, &mut |_, variable, findings| {
                // What is not understood must not leave the door open.
                if variable.is("permit") || variable.is("deny") {
                    let mut trial = super::acl::Acl::default();
                    if let Err(item) = trial.add(variable.is("permit"), &variable.value) {
                        let message =
                            format!("`{item}` is no network; the user '{}' is skipped", section.name);
                        let remedy = "write 192.0.2.0/255.255.255.0";
                        findings.push(variable.finding(Level::Error, message, remedy));
                        locked = true;
                    }
                    return locked;
                }
                if variable.is("read_only") && conf::boolean(&variable.value).is_none() {
                    let message = format!(
                        "read_only={} is neither yes nor no; the user '{}' is skipped",
                        variable.value, section.name
                    );
                    findings.push(variable.finding(Level::Error, message, "write read_only=yes"));
                    locked = true;
                    return true;
                }
                false
            });
            if let Some(user) = user.filter(|_| !locked)
                && user.is_whole(&section.name, findings)
            {
                ari.users.insert(section.name.to_string(), user);
            }
        }
        ari
    }
    /// Whether it is served.
    pub fn is_served(&self) -> bool {
        self.general.enabled && !self.users.is_empty()
    }
    /// What does not fit together.
    pub(crate) fn check(&self, http: &HttpGeneral, findings: &mut Findings) {
        let general = &self.general;
        let place = general.origin.place_of("enabled");
        if self.is_served() && !http.enabled {
            let message = "the REST interface has users, and http.conf serves nothing";
            findings.warning(place, message, "write enabled=yes in [general] of http.conf");
        }
        if general.enabled && general.origin.has("enabled") && self.users.is_empty() {
            let message = "the REST interface has no user, so it is not served";
            findings.warning(place, message, "write a section with type=user and password=");
        }
        let beyond = http.bindaddr.is_some_and(|bind| !bind.ip.is_loopback());
        if self.is_served() && http.enabled && beyond {
            let message = "the REST interface is served beyond this machine without encryption";
            let remedy = "bind http.conf to 127.0.0.1 and use tlsenable=yes, or restrict users with permit=";
            findings.warning(http.origin.place_of("bindaddr"), message, remedy);
        }
    }
    /// Resolves the named lists that users refer to. A missing list lets nobody in.
    pub fn resolve_acls(&mut self, named: &NamedAcls, findings: &mut Findings) {
        for user in self.users.values_mut() {
            user.access = named.access(&user.permit, &user.acl, user.origin.place_of("acl"), findings);
        }
    }
}

impl AriUser {
    /// Whether it can be let in by its section; says why not.
    fn is_whole(&self, name: &str, findings: &mut Findings) -> bool {
        if self.kind != AriKind::User {
            let message = format!("'{name}' is to connect to a program, which is not built; it is skipped");
            findings.warning(
                self.origin.place_of("type"),
                message,
                "have the program connect to /ari/events",
            );
            return false;
        }
        let is_hash = |text: &str| ["$1$", "$5$", "$6$"].iter().any(|scheme| text.starts_with(scheme));
        if self.password_format == PasswordFormat::Crypt && !is_hash(self.password.expose()) {
            let message = format!(
                "the password of ARI user '{name}' is none of crypt(3) that is read; the user is skipped"
            );
            let remedy = "write what `mkpasswd -m sha-512` prints";
            findings.error(self.origin.place_of("password"), message, remedy);
            return false;
        }
        if self.password.is_empty() {
            let message = format!("the ARI user '{name}' has no password and is skipped");
            findings.error(&self.origin.place, message, "add password=");
            return false;
        }
        if name.contains(':') {
            let message = format!(
                "the name of ARI user '{name}' holds a colon, so nobody can log in as it; it is skipped"
            );
            findings.error(&self.origin.place, message, "choose a name without one");
            return false;
        }
        if self.password.expose().chars().count() < PASSWORD_SYMBOLS {
            let message =
                format!("the password of ARI user '{name}' is shorter than {PASSWORD_SYMBOLS} characters");
            findings.warning(self.origin.place_of("password"), message, "choose a longer one");
        }
        true
    }
}

/// Every option of the file.
pub(crate) fn rows() -> Vec<super::Row> {
    use super::Object as _;
    [AriGeneral::rows(), AriUser::rows()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Ari, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("ari.conf", text);
        let file = conf::load(&source, "ari.conf", conf::Options::default(), &mut findings).unwrap();
        let ari = Ari::read(&file, &mut findings);
        (ari, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn a_user_whose_door_would_stand_open_is_skipped_and_the_others_stay() {
        for (name, lines, is_there, told) in [
            ("plain", "password=a-long-password", true, ""),
            ("another kind", "type=outbound_websocket\npassword=a-long-password", false, "not built"),
            ("without a password", "read_only=yes", false, "has no password"),
            ("crypted", "password=$6$salt$hashhash\npassword_format=crypt", true, ""),
            ("crypted otherwise", "password=$9$x$y\npassword_format=crypt", false, "crypt(3)"),
            ("a network that is none", "password=a-long-password\npermit=nonsense", false, "is no network"),
            ("a word for read_only", "password=a-long-password\nread_only=perhaps", false, "read_only"),
            ("short", "password=secret", true, "shorter than 12"),
        ] {
            let (ari, said) = read(&format!(
                "[general]\nenabled=yes\n[a]\n{lines}\n[b]\ntype=user\npassword=another-password\n"
            ));
            assert_eq!(ari.users.contains_key("a"), is_there, "{name}: {said:?}");
            assert!(ari.users.contains_key("b") && ari.is_served(), "{name}");
            match told {
                "" => assert!(said.is_empty(), "{name}: {said:?}"),
                told => assert!(said.iter().any(|line| line.contains(told)), "{name}: {said:?}"),
            }
        }
    }

    #[test]
    fn it_is_served_as_soon_as_it_has_a_user_unless_it_is_switched_off() {
        let user = "[a]\ntype=user\npassword=a-long-password\n";
        for (text, is_served) in [
            (user.to_owned(), true),
            (format!("[general]\npretty=yes\n{user}"), true),
            (format!("[general]\nenabled=no\n{user}"), false),
            ("[general]\nenabled=yes\n".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(read(&text).0.is_served(), is_served, "{text}");
        }
        let (ari, _) = read(
            "[general]\nenabled=yes\nallowed_origins=https://a.example,https://b.example\nchannelvars=A,B\n",
        );
        assert_eq!(ari.general.allowed_origins, ["https://a.example", "https://b.example"]);
        assert_eq!(ari.general.channelvars, ["A", "B"]);
    }
}
