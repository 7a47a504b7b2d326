//! `iax.conf`: who talks IAX2 with us, and how.
//!
//! A section is a user (calls us), a peer (is called) or both. What it does not say, `[general]` says for it. Without the
//! file nothing listens.

mod options;
mod register;

pub use options::{
    AmaFlags, Bandwidth, CodecPriority, ConnectedLine, Encryption, IaxGeneral, IaxPeer, IaxType, Methods,
    RequireToken, Transfer,
};
pub use register::{PORT, Register};

use super::acl::{Acl, NamedAcls, Net};
use super::kind::{CodecList, Codecs, Kind as _};
use super::{default_line, read_object};
use base::{Coded, FormatId};
use conf::{File, Findings, Level, Section, Variable};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// Passwords shorter than this are guessed from one exchange that somebody has seen (RFC 5456 §10).
const SECRET_CHARS_MIN: usize = 12;

/// Formats of 16 kbit/s and less, and those of 32 kbit/s and less (`bandwidth=`), in the order in which they are offered.
const LOW: &str = "gsm,ilbc30,speex,g729,g723,lpc10,codec2";
/// See [`LOW`].
const MEDIUM: &str = "g726,g726aal2,adpcm,opus,speex16,siren7,gsm,ilbc30,speex,g729,g723,lpc10,codec2";

/// `iax.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Iax {
    /// Whether there is the file, and so something to serve.
    pub enabled: bool,
    /// `[general]`.
    pub general: IaxGeneral,
    /// Who may call us, by name; what a section does not say is filled in from `[general]`.
    pub users: BTreeMap<String, Arc<IaxPeer>>,
    /// Who may be called, by name; likewise.
    pub peers: BTreeMap<String, Arc<IaxPeer>>,
    /// `[callnumberlimits]`: networks and the numbers that each of their addresses may have; the first that fits decides.
    pub limits: Vec<(Net, u32)>,
    /// `register =>` lines.
    pub registrations: Vec<Register>,
}

impl Iax {
    /// Where to listen: on the addresses of `[general]`, and on those from which a peer is talked to.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = self.general.addresses();
        for source in self.peers.values().filter_map(|peer| peer.sourceaddress) {
            let address = source.or_port(self.general.bindport);
            if !is_listened_on(address, &addresses) {
                addresses.push(address);
            }
        }
        addresses
    }
}

/// Whether an address is among these, or an address of these stands for it.
fn is_listened_on(address: SocketAddr, addresses: &[SocketAddr]) -> bool {
    let covers = |known: &SocketAddr| {
        known.port() == address.port()
            && (known.ip() == address.ip()
                || (known.ip().is_unspecified() && (known.is_ipv6() || address.is_ipv4())))
    };
    addresses.iter().any(covers)
}

impl IaxGeneral {
    /// Where to listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), self.bindport);
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in self.bindaddr.iter().map(|bind| bind.or_port(self.bindport)) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() { vec![anywhere] } else { addresses }
    }
}

impl IaxPeer {
    /// Whether it calls us.
    pub fn is_user(&self) -> bool {
        self.kind != IaxType::Peer
    }
    /// Whether it is called.
    pub fn is_peer(&self) -> bool {
        self.kind != IaxType::User
    }
    /// Whether it registers.
    pub fn is_dynamic(&self) -> bool {
        self.host.eq_ignore_ascii_case("dynamic")
    }
}

/// Whether the section is not an object with a name.
fn is_reserved(section: &Section) -> bool {
    ["general", "callnumberlimits"].iter().any(|name| section.name.eq_ignore_ascii_case(name))
}

impl Iax {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut iax = Self { enabled: true, general: general(file, findings), ..Self::default() };
        iax.check_general(findings);
        iax.read_registrations(file, findings);
        for section in file.objects().filter(|section| section.name.eq_ignore_ascii_case("callnumberlimits"))
        {
            iax.read_limits(section, findings);
        }
        for section in file.objects().filter(|section| !is_reserved(section)) {
            iax.read_peer(section, findings);
        }
        iax
    }

    /// Users and peers of rows, as sections of a file with this `[general]` section.
    pub fn of_rows(
        sections: &[Section],
        general: &IaxGeneral,
        named: &NamedAcls,
        coded: Coded,
        findings: &mut Findings,
    ) -> Self {
        let mut iax = Self { enabled: true, general: general.clone(), ..Self::default() };
        sections.iter().for_each(|section| iax.read_peer(section, findings));
        iax.resolve_acls(named, findings);
        iax.resolve_formats(coded);
        iax
    }

    fn check_general(&mut self, findings: &mut Findings) {
        let general = &mut self.general;
        if general.minregexpire > general.maxregexpire {
            // Who raises one of the two means the other to follow.
            let (low, high) = (general.minregexpire, general.maxregexpire);
            if general.origin.has("maxregexpire") {
                general.minregexpire = high;
            } else {
                general.maxregexpire = low;
            }
            if general.origin.has("maxregexpire") && general.origin.has("minregexpire") {
                let message = "minregexpire is more than maxregexpire, which holds for both";
                findings.warning(general.origin.place_of("minregexpire"), message, "write a lower one");
            }
        }
        if general.auth.plaintext && general.origin.has("auth") {
            plaintext(general.origin.place_of("auth"), "[general]", findings);
        }
        if general.forceencryption.on() {
            general.encryption = Encryption::Yes;
        }
        if general.calltokenoptional.iter().any(|net| net.parts().1 == 0) {
            let message = "calltokenoptional lets everyone in without a call token: who forges addresses can use up the call numbers";
            let remedy = "name the networks of devices that cannot bring tokens, or write requirecalltoken=auto in their sections";
            findings.warning(general.origin.place_of("calltokenoptional"), message, remedy);
        }
    }

    fn read_registrations(&mut self, file: &File, findings: &mut Findings) {
        let lines = file.section("general").into_iter().flat_map(|section| &section.variables);
        for line in lines.filter(|line| line.is("register")) {
            let Some((register, behind)) = Register::parse(&line.value, &line.place) else {
                let message =
                    "the register line has no user, no host, or a port that cannot be; it is skipped";
                findings.warning(&line.place, message, "write register => user:secret@host");
                continue;
            };
            if !behind.is_empty() {
                let host = &register.host;
                let message = format!(
                    "'{behind}' behind the host of a register line means nothing in IAX2, which tells no extension; we register at {host} without it"
                );
                let remedy = format!(
                    "take '{behind}' off: who calls us names the number, which is looked for in context= of the section of its user"
                );
                findings.warning(&line.place, message, remedy);
            }
            self.registrations.push(register);
        }
    }

    /// `network = numbers`.
    fn read_limits(&mut self, section: &Section, findings: &mut Findings) {
        for line in &section.variables {
            let limit = line.value.parse::<u32>().ok().filter(|limit| *limit <= 32_766);
            match (line.name.parse::<Net>(), limit) {
                (Ok(net), Some(limit)) => self.limits.push((net, limit)),
                (Err(()), _) => {
                    let message = format!("`{}` is no network; the line is ignored", line.name);
                    findings.warning(&line.place, message, "write 192.0.2.0/255.255.255.0 = 4000");
                }
                (_, None) => {
                    let message =
                        format!("`{}` is no count of call numbers; the line is ignored", line.value);
                    findings.warning(&line.place, message, "write a number from 0 to 32766");
                }
            }
        }
    }

    fn read_peer(&mut self, section: &Section, findings: &mut Findings) {
        let name = &section.name;
        if section.last("type").is_none() {
            let message = format!("section [{name}] of iax.conf has no type and is skipped");
            return findings.warning(&section.place, message, "add type=friend, type=peer or type=user");
        }
        let base = &self.general.allow;
        let (mut locked, mut own_formats) = (false, false);
        let read = read_object::<IaxPeer>(section, findings, &mut |peer, line, findings| {
            if line.is("type") && !is_type(&line.value) {
                let message = format!(
                    "type={} of [{name}] is neither peer, user nor friend; it is skipped",
                    line.value
                );
                findings.warning(&line.place, message, "write type=friend");
                locked = true;
                return true;
            }
            // Lines of a section go on from where those of [general] stopped.
            if (line.is("allow") || line.is("disallow")) && !own_formats {
                own_formats = true;
                peer.allow = base.clone();
            }
            check_video(line, findings);
            let bad = bad_rule(line);
            if let Some(item) = &bad {
                // A rule that is not understood must not leave the door open.
                let message = format!("`{item}` is no network; [{name}] is skipped");
                findings.push(line.finding(Level::Error, message, "write 192.0.2.0/255.255.255.0"));
                locked = true;
            }
            bad.is_some()
        });
        let Some(mut peer) = read.filter(|_| !locked) else { return };
        self.fill_in(&mut peer);
        self.check_source(&peer, findings);
        check_peer(&peer, findings);
        let peer = Arc::new(peer);
        if peer.is_user() && self.users.insert(name.to_string(), peer.clone()).is_some() {
            twice(&peer, "user", findings);
        }
        if peer.is_peer() && self.peers.insert(name.to_string(), peer.clone()).is_some() {
            twice(&peer, "peer", findings);
        }
    }

    /// Packets from a socket of every address have the source that the system chooses.
    fn check_source(&self, peer: &IaxPeer, findings: &mut Findings) {
        let Some(source) = peer.sourceaddress else { return };
        let (address, known) = (source.or_port(self.general.bindport), self.general.addresses());
        if is_listened_on(address, &known) && !known.contains(&address) {
            let message = format!(
                "sourceaddress={address} of [{}] has no effect while every address is listened on",
                peer.origin.name
            );
            let remedy = format!("write bindaddr={} for each address of ours in [general]", address.ip());
            findings.warning(peer.origin.place_of("sourceaddress"), message, remedy);
        }
    }

    /// What the section does not say, `[general]` says for it.
    fn fill_in(&self, peer: &mut IaxPeer) {
        let general = &self.general;
        macro_rules! inherit {
            ($($field:ident),*) => {
                $(if !peer.origin.has(stringify!($field)) {
                    peer.$field.clone_from(&general.$field);
                })*
            };
        }
        inherit!(
            allow,
            auth,
            codecpriority,
            transfer,
            encryption,
            forceencryption,
            keyrotate,
            requirecalltoken,
            accountcode,
            amaflags,
            language,
            mohinterpret,
            mohsuggest,
            parkinglot,
            connectedline,
            maxauthreq,
            callerid,
            jitterbuffer,
            forcejitterbuffer
        );
        if peer.forceencryption.on() {
            peer.encryption = Encryption::Yes;
        }
        if peer.username.is_empty() {
            peer.username = peer.origin.name.to_string();
        }
    }

    /// What holds for calls of nobody in particular.
    pub fn defaults(&self) -> IaxPeer {
        let mut defaults = IaxPeer::default();
        self.fill_in(&mut defaults);
        defaults
    }

    /// Says which keys are named and are not there. `folder` is `keys` below `astkeydir`.
    pub fn check_keys(&self, folder: &Path, findings: &mut Findings) {
        let mut check = |name: &str, ending: &str, place: &conf::Place| {
            let file = folder.join(format!("{name}.{ending}"));
            if !name.is_empty() && !file.is_file() {
                let message = format!("the key '{name}' is not there: nothing can be proven by it");
                let remedy = match ending {
                    "pub" => format!("put the other side's public key into {}", file.display()),
                    _ => format!("make one with astgenkey -n {name}, and put it into {}", file.display()),
                };
                findings.warning(place, message, remedy);
            }
        };
        let peers_only = self
            .peers
            .iter()
            .filter(|(name, peer)| self.users.get(*name).is_none_or(|user| !Arc::ptr_eq(user, peer)));
        for section in self.users.values().chain(peers_only.map(|(_, peer)| peer)) {
            for name in section.inkeys.split(':').map(str::trim) {
                check(name, "pub", section.origin.place_of("inkeys"));
            }
            check(section.outkey.trim(), "key", section.origin.place_of("outkey"));
        }
        for register in &self.registrations {
            check(register.outkey.as_deref().unwrap_or_default(), "key", &register.place);
        }
    }

    /// Resolves the named lists that sections refer to. A missing list lets nobody in.
    pub fn resolve_acls(&mut self, named: &NamedAcls, findings: &mut Findings) {
        self.each(|peer| {
            peer.access = named.access(&peer.permit, &peer.acl, peer.origin.place_of("acl"), findings);
        });
    }

    /// Takes the formats of external codecs in, where all are allowed.
    pub fn resolve_formats(&mut self, coded: Coded) {
        self.general.allow.resolve(coded);
        self.each(|peer| peer.allow.resolve(coded));
    }

    /// Changes every section once; a friend stays one object.
    fn each(&mut self, mut change: impl FnMut(&mut IaxPeer)) {
        for (name, user) in &mut self.users {
            let shared = self.peers.get_mut(name).filter(|peer| Arc::ptr_eq(peer, user));
            let mut changed = (**user).clone();
            change(&mut changed);
            *user = Arc::new(changed);
            if let Some(peer) = shared {
                *peer = user.clone();
            }
        }
        for (name, peer) in &mut self.peers {
            if self.users.get(name).is_some_and(|user| Arc::ptr_eq(user, peer)) {
                continue;
            }
            let mut changed = (**peer).clone();
            change(&mut changed);
            *peer = Arc::new(changed);
        }
    }
}

/// `[general]`; lines of formats go on from what `bandwidth=` stands for.
fn general(file: &File, findings: &mut Findings) -> IaxGeneral {
    let Some(section) = file.section("general") else {
        return IaxGeneral { allow: formats_of(Bandwidth::High), ..IaxGeneral::default() };
    };
    let mut bandwidth = Bandwidth::High;
    if let Some(line) = section.last("bandwidth") {
        // What is wrong with it is told below.
        let _ = Bandwidth::set(&mut bandwidth, line, &mut Findings::new());
    }
    let mut general = IaxGeneral { allow: formats_of(bandwidth), ..IaxGeneral::default() };
    let base = general.allow.clone();
    let mut own_formats = false;
    let read = read_object::<IaxGeneral>(section, findings, &mut |general, line, findings| {
        if (line.is("allow") || line.is("disallow")) && !own_formats {
            own_formats = true;
            general.allow = base.clone();
        }
        check_video(line, findings);
        false
    });
    if let Some(mut read) = read {
        if !own_formats {
            read.allow = general.allow;
        }
        general = read;
    }
    general
}

fn is_type(word: &str) -> bool {
    ["user", "peer", "friend"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The item of a permit or deny line that is no network.
fn bad_rule(line: &Variable) -> Option<String> {
    let is_rule = line.is("permit") || line.is("deny");
    is_rule.then(|| Acl::default().add(line.is("permit"), &line.value).err()).flatten()
}

/// The formats that `bandwidth=` stands for.
fn formats_of(bandwidth: Bandwidth) -> Codecs {
    let mut codecs = Codecs::default();
    let names = match bandwidth {
        Bandwidth::Low => LOW,
        Bandwidth::Medium => MEDIUM,
        Bandwidth::High => "all",
    };
    let listed = CodecList::set(&mut codecs, &default_line(names), &mut Findings::new());
    debug_assert!(listed.is_ok(), "{listed:?}");
    debug_assert!(codecs.formats.contains(FormatId::GSM));
    // Bandwidths are those of sound: who wants video says so.
    codecs.video = base::FormatSet::EMPTY;
    codecs
}

/// Formats of video that IAX2 can say (RFC 5456 §8.7, and VP8 by the field).
const VIDEO: [FormatId; 6] =
    [FormatId::H261, FormatId::H263, FormatId::H263P, FormatId::H264, FormatId::MPEG4, FormatId::VP8];

/// Formats of video that a line allows by name and IAX2 has no bit for (RFC 5456 §8.7).
fn check_video(line: &Variable, findings: &mut Findings) {
    let named =
        line.value.split([',', '|']).map(str::trim).filter(|name| line.is("allow") && !name.is_empty());
    let has_no_bit =
        |name: &&str| FormatId::video_from_name(name).is_some_and(|format| !VIDEO.contains(&format));
    let video: Vec<&str> = named.filter(has_no_bit).collect();
    if !video.is_empty() {
        let message = format!("IAX2 has no word for {}: it is not offered", video.join(", "));
        findings.push(line.finding(Level::Warning, message, "allow h264, vp8, h263p, h263, h261 or mpeg4"));
    }
}

fn plaintext(place: &conf::Place, whose: &str, findings: &mut Findings) {
    let message =
        format!("auth of {whose} takes the password in the clear: who listens to one call knows it");
    findings.warning(place, message, "write auth=md5");
}

fn twice(peer: &IaxPeer, what: &str, findings: &mut Findings) {
    let message = format!("there are two sections for the {what} '{}'; this one holds", peer.origin.name);
    findings.warning(&peer.origin.place, message, "remove or rename one of them");
}

/// What is worth saying about a section that is whole.
fn check_peer(peer: &IaxPeer, findings: &mut Findings) {
    let (origin, name) = (&peer.origin, &peer.origin.name);
    if peer.auth.plaintext && origin.has("auth") {
        plaintext(origin.place_of("auth"), &format!("[{name}]"), findings);
    }
    let proves = peer.auth.md5 || peer.auth.plaintext;
    let open = peer.secret.is_empty() && peer.inkeys.is_empty() && peer.dbsecret.is_empty();
    if peer.is_user() && open && peer.permit.is_empty() && peer.acl.is_empty() {
        let message = format!("[{name}] has no secret: whoever says its name may call");
        findings.warning(&origin.place, message, "add secret=, or permit= with deny=0.0.0.0/0");
    } else if peer.is_dynamic() && open && peer.is_peer() {
        let message = format!("[{name}] registers without a secret: whoever says its name gets its calls");
        findings.warning(&origin.place, message, "add secret=");
    }
    if !peer.inkeys.is_empty() && !peer.auth.rsa {
        let message = format!("[{name}] has inkeys and auth= takes no signatures; they are not used");
        findings.warning(origin.place_of("inkeys"), message, "write auth=rsa, or auth=md5,rsa with secret=");
    } else if peer.auth.rsa && peer.is_user() && peer.inkeys.is_empty() && origin.has("auth") {
        let message = format!("[{name}] takes signatures and has no inkeys to check them by");
        findings.warning(origin.place_of("auth"), message, "add inkeys=");
    }
    if !peer.secret.is_empty() && !proves {
        let message = format!("[{name}] has a secret and auth= takes none; it is not used");
        findings.warning(origin.place_of("auth"), message, "write auth=md5");
    }
    let short = |one: &str| !one.is_empty() && one.chars().count() < SECRET_CHARS_MIN;
    if peer.secret.expose().split(';').any(short) {
        let message = format!(
            "the secret of [{name}] is shorter than {SECRET_CHARS_MIN} characters: MD5 lets it be guessed from one exchange"
        );
        findings.note(origin.place_of("secret"), message, "choose a longer one");
    }
    if peer.encryption.on() && (peer.secret.is_empty() || !peer.auth.md5) {
        let message = format!("calls of [{name}] cannot be enciphered: that needs secret= and auth=md5");
        findings.warning(origin.place_of("encryption"), message, "add secret=, or remove encryption=");
    }
    if peer.requirecalltoken == RequireToken::No && origin.has("requirecalltoken") {
        let message = format!(
            "[{name}] needs no call token: its calls count into maxcallnumbers_nonvalidated, which forged addresses can use up"
        );
        findings.note(
            origin.place_of("requirecalltoken"),
            message,
            "write auto unless the device cannot bring tokens",
        );
    }
    if peer.is_peer() && peer.host.is_empty() && peer.defaultip.is_empty() {
        let message = format!("[{name}] has no host and cannot be called");
        findings.warning(&origin.place, message, "add host=dynamic if it registers, else its address");
    }
    if peer.is_user() && peer.context.is_empty() {
        let message = format!("[{name}] has no context: its calls go to the context 'default'");
        findings.note(&origin.place, message, "add context=");
    }
    if peer.allow.formats.is_empty() {
        let message = format!("[{name}] allows no format that is built in; no call can be made");
        findings.warning(origin.place_of("allow"), message, "add allow=ulaw");
    }
}

#[cfg(test)]
mod tests;
