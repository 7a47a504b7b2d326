//! Peers, users and friends.

use conf::{Place, Section, Variable};

use super::keys::{self, Part, Scope};
use super::{Import, Made, last, words, yes};

/// How often chan_sip asks a peer with `qualify` whether it is there.
const QUALIFY_SECONDS: &str = "60";
/// How long it waits for the answer with `qualify=yes`.
const QUALIFY_MILLIS: u32 = 2000;
/// Seconds of a registration in chan_sip when nobody says.
pub(super) const EXPIRY_SECONDS: &str = "120";
/// Longest registration in chan_sip.
const EXPIRY_SECONDS_MAX: &str = "3600";
/// What chan_sip allows when nothing is written.
const FORMATS: &str = "ulaw,alaw,gsm";

/// How a peer comes to us, and where it is.
struct Peer<'a> {
    name: &'a str,
    place: &'a Place,
    /// Lines of `[general]` that hold for peers, then its own.
    lines: Vec<&'a Variable>,
    own: Vec<&'a Variable>,
    /// `type=user` is never called.
    is_user: bool,
    is_friend: bool,
    host: Option<&'a Variable>,
}

impl<'a> Peer<'a> {
    fn line(&self, names: &[&str]) -> Option<&'a Variable> {
        last(&self.own, names)
    }
    fn is_dynamic(&self) -> bool {
        self.host.is_none_or(|host| host.value.eq_ignore_ascii_case("dynamic"))
    }
    fn value(&self, names: &[&str]) -> Option<&'a str> {
        self.line(names).map(|line| &*line.value).filter(|value| !value.is_empty())
    }
    /// `udp`, `tcp` or `tls`: the first that it names.
    fn transport(&self) -> Option<(&'a str, &'a Place)> {
        let line = last(&self.lines, &["transport"])?;
        Some((line.value.split(',').next().unwrap_or("udp").trim(), &line.place))
    }
    /// Address and port with what a URI says of the transport.
    fn uri(&self, user: Option<&str>) -> Option<String> {
        let host = &*self.host.filter(|_| !self.is_dynamic())?.value;
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let port = self.value(&["port"]).map(|port| format!(":{port}")).unwrap_or_default();
        let way = self.transport().map(|(word, _)| word).filter(|word| !word.eq_ignore_ascii_case("udp"));
        let way = way.map(|word| format!(";transport={}", word.to_ascii_lowercase())).unwrap_or_default();
        Some(format!("sip:{user}{host}{port}{way}"))
    }
}

impl<'a> Import<'a> {
    pub(super) fn make_peer(&mut self, section: &'a Section) {
        let name = &*section.name;
        let Some(kind) = section.last("type") else {
            let message = format!("section [{name}] of sip.conf has no type and is skipped");
            return self.findings.warning(&section.place, message, "add type=friend");
        };
        let word = kind.value.to_ascii_lowercase();
        if !matches!(word.as_str(), "peer" | "user" | "friend") {
            let message =
                format!("type={} of [{name}] is neither peer, user nor friend; it is skipped", kind.value);
            return self.findings.warning(&kind.place, message, "write type=friend");
        }
        if self.has("endpoint", name) {
            let message = format!("pjsip.conf has an endpoint [{name}], which goes first");
            return self.findings.note(&section.place, message, "remove one of them");
        }
        let peer = self.read_peer(section, &word);
        self.make_endpoint(&peer);
        if !peer.is_user {
            self.make_aor(&peer);
            self.make_identify(&peer);
            self.call_back(&peer);
        }
    }

    fn read_peer(&self, section: &'a Section, kind: &str) -> Peer<'a> {
        let own: Vec<&Variable> = section.variables.iter().collect();
        Peer {
            name: &section.name,
            place: &section.place,
            lines: self.defaults().into_iter().chain(own.iter().copied()).collect(),
            host: last(&own, &["host"]),
            own,
            is_user: kind == "user",
            is_friend: kind == "friend",
        }
    }
    /// The peer of this name that has an address, as lines of `register` may name it instead of a host: its URI without a
    /// user, the domain it is told, and the proxy on the way, for a registration with it.
    pub(super) fn named_server(&self, name: &str, made: &mut Made) -> Option<(String, String)> {
        let section = self.sip.objects().find(|section| *section.name == *name)?;
        let kind = section.value("type")?.to_ascii_lowercase();
        let peer = self.read_peer(section, &kind);
        if !matches!(&*kind, "peer" | "friend") {
            return None;
        }
        let uri = peer.uri(None)?;
        words::outbound_proxy(&peer.lines, made);
        let domain = peer.value(&["fromdomain"]).or(peer.host.map(|host| &*host.value))?;
        Some((uri, domain.to_owned()))
    }

    /// Lines of `[general]` that hold for peers which do not say.
    pub(super) fn defaults(&self) -> Vec<&'a Variable> {
        let is_default =
            |line: &&Variable| keys::find(&line.name, false).is_some_and(|key| key.scope == Scope::Both);
        self.general.iter().copied().filter(is_default).collect()
    }

    /// The options of an endpoint that lines ask for, defaults of chan_sip where they differ from those of pjsip.conf.
    pub(super) fn describe(&self, lines: &[&Variable], made: &mut Made) {
        let here = self.sip.place();
        if last(lines, &["allow"]).is_none() {
            made.line("allow", FORMATS, &here);
        }
        for line in &self.general {
            if keys::find(&line.name, false).is_none() {
                self.copy(&[line], Part::Endpoint, true, made);
            }
        }
        self.copy(lines, Part::Endpoint, false, made);
        words::media(lines, &here, made);
        words::identity(lines, made);
    }

    fn make_endpoint(&mut self, peer: &Peer<'a>) {
        let mut made = Made::new("endpoint", peer.name, peer.place);
        self.describe(&peer.lines, &mut made);
        if !peer.is_user {
            made.line("aors", peer.name, peer.place);
        }
        if let Some((word, place)) = peer.transport() {
            match self.transports.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)) {
                Some((_, name)) => made.line("transport", name, place),
                None => {
                    let message =
                        format!("[{}] is reached by {word}, which [general] does not listen with", peer.name);
                    self.findings.warning(place, message, format!("write {word}enable=yes in [general]"));
                }
            }
        }
        named(peer, &mut made);
        let by_auth = yes(self.general(&["match_auth_username"]));
        let by_name = if by_auth { "auth_username,username" } else { "username" };
        let identify_by = match (peer.is_user || peer.is_dynamic(), peer.is_friend) {
            (true, _) => by_name.to_owned(),
            (false, true) => format!("ip,{by_name}"),
            (false, false) => "ip".to_owned(),
        };
        made.line("identify_by", &identify_by, peer.place);
        self.make_auths(peer, &mut made);
        self.keep("endpoint", peer.name, made, peer.place);
    }

    /// The secrets of a peer: what it proves itself with, and what we prove ourselves with to it.
    fn make_auths(&mut self, peer: &Peer<'a>, endpoint: &mut Made) {
        let secret = peer.line(&["secret"]).filter(|line| !line.value.is_empty());
        let hash = peer.line(&["md5secret"]).filter(|line| !line.value.is_empty());
        let open = peer.value(&["insecure"]).is_some_and(|value| {
            value
                .split(',')
                .any(|word| matches!(word.trim().to_ascii_lowercase().as_str(), "invite" | "very"))
        });
        let auth = |name: &str, user: &str, secret: Option<&Variable>, hash: Option<&Variable>| {
            let place = secret.or(hash).map_or(peer.place, |line| &line.place);
            let mut made = Made::new("auth", name, place);
            made.line("auth_type", if hash.is_some() { "md5" } else { "userpass" }, place);
            made.line("username", user, place);
            if let Some(line) = hash {
                made.line("md5_cred", &line.value, &line.place);
            } else if let Some(line) = secret {
                made.line("password", &line.value, &line.place);
            }
            made
        };
        if secret.is_some() || hash.is_some() {
            let mut made = auth(peer.name, peer.name, secret, hash);
            if let (Some(_), Some(realm)) = (hash, self.general(&["realm"])) {
                made.line("realm", &realm.value, &realm.place);
            }
            endpoint.line("auth", peer.name, peer.place);
            // The word waives the password for calls, never for a registration.
            if open {
                endpoint.line("insecure_invite", "yes", peer.place);
            }
            // chan_sip asks nobody who pings; whoever is known by address alone tells nobody's name by it.
            if open && !peer.is_user && !peer.is_dynamic() && !peer.is_friend {
                endpoint.line("allow_unauthenticated_options", "yes", peer.place);
            }
            self.keep("auth", peer.name, made, peer.place);
        }
        let remote = peer.line(&["remotesecret"]).filter(|line| !line.value.is_empty());
        let ours = remote.or(secret);
        if peer.is_user || (ours.is_none() && hash.is_none()) {
            return;
        }
        let name = format!("{}-out", peer.name);
        let user =
            peer.value(&["defaultuser", "username"]).or(peer.value(&["fromuser"])).unwrap_or(peer.name);
        let made = auth(&name, user, ours, hash.filter(|_| remote.is_none()));
        endpoint.line("outbound_auth", &name, peer.place);
        self.keep("auth", &name, made, peer.place);
    }

    fn make_aor(&mut self, peer: &Peer<'a>) {
        let mut made = Made::new("aor", peer.name, peer.place);
        made.line("default_expiration", EXPIRY_SECONDS, peer.place);
        made.line("maximum_expiration", EXPIRY_SECONDS_MAX, peer.place);
        self.copy(&self.general, Part::Aor, true, &mut made);
        if let Some(line) = self.general(&["defaultexpiry", "defaultexpirey"]) {
            made.line("default_expiration", &line.value, &line.place);
        }
        self.copy(&peer.own, Part::Aor, false, &mut made);
        match peer.uri(peer.value(&["defaultuser", "username"])) {
            Some(uri) => made.line("contact", &uri, peer.host.map_or(peer.place, |host| &host.place)),
            None => {
                made.line("max_contacts", "1", peer.place);
                made.line("remove_existing", "yes", peer.place);
            }
        }
        qualify(peer, &mut made);
        self.keep("aor", peer.name, made, peer.place);
    }

    fn make_identify(&mut self, peer: &Peer<'a>) {
        let Some(host) = peer.host.filter(|_| !peer.is_dynamic()) else { return };
        let mut made = Made::new("identify", peer.name, &host.place);
        made.line("endpoint", peer.name, peer.place);
        made.line("match", &host.value, &host.place);
        self.keep("identify", peer.name, made, peer.place);
    }

    /// `callbackextension=`: we register with the peer.
    fn call_back(&mut self, peer: &Peer<'a>) {
        let Some(line) = peer.line(&["callbackextension"]).filter(|line| !line.value.is_empty()) else {
            return;
        };
        let user =
            peer.value(&["defaultuser", "username"]).or(peer.value(&["fromuser"])).unwrap_or(peer.name);
        let (Some(server), Some(client)) = (peer.uri(None), peer.uri(Some(user))) else {
            let message = format!("[{}] cannot be registered with: its host is dynamic", peer.name);
            return self.findings.warning(&line.place, message, "write host= with its address");
        };
        let mut made = Made::new("registration", peer.name, &line.place);
        made.line("server_uri", &server, peer.place);
        made.line("client_uri", &client, peer.place);
        made.line("contact_user", &line.value, &line.place);
        made.line("outbound_auth", &format!("{}-out", peer.name), peer.place);
        words::outbound_proxy(&peer.lines, &mut made);
        self.pace(&mut made);
        self.keep("registration", peer.name, made, &line.place);
    }
}

/// `fullname=` and `cid_number=`, which `callerid=` replaces.
fn named(peer: &Peer<'_>, made: &mut Made) {
    let (name, number) = (peer.line(&["fullname"]), peer.line(&["cid_number"]));
    if peer.line(&["callerid"]).is_some() {
        return;
    }
    if let Some(line) = number.or(name) {
        let name = name.map_or("", |line| &*line.value);
        let number = number.map_or("", |line| &*line.value);
        made.line("callerid", &format!("\"{name}\" <{number}>"), &line.place);
    }
}

fn qualify(peer: &Peer<'_>, made: &mut Made) {
    let Some(line) = last(&peer.lines, &["qualify"]) else { return };
    let millis = match conf::boolean(&line.value) {
        Some(false) => return,
        // A number is milliseconds, also 1.
        Some(true) if line.value.parse::<u32>().is_err() => QUALIFY_MILLIS,
        _ => line.value.parse().unwrap_or(QUALIFY_MILLIS),
    };
    let often = last(&peer.lines, &["qualifyfreq"]);
    let (seconds, place) =
        often.map_or((QUALIFY_SECONDS, &line.place), |often| (&*often.value, &often.place));
    made.line("qualify_frequency", seconds, place);
    made.line("qualify_timeout", &format!("{}.{:03}", millis / 1000, millis % 1000), &line.place);
}
