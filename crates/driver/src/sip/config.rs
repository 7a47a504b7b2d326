//! What the SIP driver needs to know of `pjsip.conf`, resolved: names are looked up, lists parsed, defaults filled in.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use ::sip::digest::{Algorithm, Hex, Secret};
use base::{FormatId, FormatSet};
use call::PartyId;

/// Decides whether an address may do something; made from permit/deny lists.
pub type Access = Rc<dyn Fn(IpAddr) -> bool>;

/// How an endpoint is told from a request (`identify_by`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifyBy {
    /// The user of From names the endpoint.
    Username,
    /// The user name of Authorization names the endpoint.
    AuthUsername,
    /// An `identify` object lists the address.
    Ip,
    /// An `identify` object matches a header.
    Header,
    /// An `identify` object matches the Request-URI.
    RequestUri,
    /// An `identify` object lists our own address that the request came to.
    Transport,
    /// Whoever is left is the endpoint named `anonymous`, when the site has one.
    Anonymous,
}

/// How digits travel (`dtmf_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dtmf {
    /// RFC 4733 events.
    #[default]
    Rfc4733,
    /// Tones in the audio.
    Inband,
    /// SIP INFO.
    Info,
    /// RFC 4733 when the peer offers it, else tones.
    Auto,
    /// RFC 4733 when the peer offers it, else INFO.
    AutoInfo,
    /// None.
    None,
}

impl Dtmf {
    /// All, by the names that `dtmf_mode` has for them.
    const NAMES: &[(&str, Self)] = &[
        ("rfc4733", Self::Rfc4733),
        ("inband", Self::Inband),
        ("info", Self::Info),
        ("auto", Self::Auto),
        ("auto_info", Self::AutoInfo),
        ("none", Self::None),
    ];
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
    /// The one of this name.
    pub(crate) fn named(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode)
    }
    /// Whether telephone-events are offered.
    pub(crate) fn offers_events(self) -> bool {
        !matches!(self, Self::Inband | Self::Info | Self::None)
    }
}

/// Whose messages are written to the log (`debug`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trace {
    /// Nobody's.
    #[default]
    Off,
    /// Everybody's.
    All,
    /// Those from and to any of these.
    Hosts(Vec<Traced>),
}

/// Peers whose messages are written to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// A network, or one address: address and prefix bits.
    Net(IpAddr, u8),
    /// Whatever addresses this name has.
    Name(String),
}

impl core::str::FromStr for Traced {
    type Err = ();

    /// `192.0.2.1`, `192.0.2.0/24`, `192.0.2.0/255.255.255.0`, `2001:db8::/32` or a host name.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, mask) = text.split_once('/').map_or((text, None), |(host, mask)| (host, Some(mask)));
        let Ok(ip) = host.parse::<IpAddr>() else {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            let named = mask.is_none() && !host.is_empty() && host.len() <= HOST_BYTES_MAX;
            return if named && host.bytes().all(plain) { Ok(Self::Name(host.to_owned())) } else { Err(()) };
        };
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let dotted = |mask: &str| {
            let mask = mask.parse::<core::net::Ipv4Addr>().ok().filter(|_| ip.is_ipv4())?.to_bits();
            (mask.leading_ones() == mask.count_ones()).then_some(mask.count_ones() as u8)
        };
        let bits = match mask {
            None => most,
            Some(mask) => mask.parse().ok().or_else(|| dotted(mask)).filter(|bits| *bits <= most).ok_or(())?,
        };
        Ok(Self::Net(ip, bits))
    }
}

/// Longest host name, bytes (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// What an endpoint may watch, and how it is told.
#[derive(Debug, Clone, Default)]
pub struct Watching {
    /// It may subscribe (`allow_subscribe`).
    pub allow: bool,
    /// Context of extensions that it watches; empty: that of its calls (`subscribe_context`).
    pub context: String,
    /// Ringing shows while the line is in use as well (`notify_early_inuse_ringing`).
    pub early_ringing: bool,
    /// Shortest subscription, seconds (`sub_min_expiry`).
    pub seconds_min: u32,
    /// Mailboxes whose state it is told without asking (`mailboxes`).
    pub mailboxes: Vec<String>,
    /// Mailboxes are told together (`aggregate_mwi`).
    pub aggregate: bool,
    /// An endpoint that subscribes to mailboxes is not told of them without asking
    /// (`mwi_subscribe_replaces_unsolicited`).
    pub subscribing_replaces: bool,
    /// Mailbox whose state it tells us (`incoming_mwi_mailbox`); empty: none.
    pub incoming: String,
    /// User of From in what it is told (`mwi_from_user`).
    pub from_user: String,
    /// Extension by which messages are heard (`voicemail_extension`).
    pub voicemail: String,
}

/// `type=resource_list`: things that are watched by one subscription (RFC 4662).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceList {
    /// Package: `presence`, `dialog` or `message-summary`.
    pub event: String,
    /// Extensions, AORs with mailboxes, or other lists.
    pub items: Vec<String>,
    /// Each document speaks of all of them.
    pub full_state: bool,
    /// Documents say their names.
    pub display_names: bool,
    /// How long changes are gathered before they are told.
    pub batch: Duration,
}

/// Reliable provisional responses (`100rel`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rel100 {
    /// Never.
    #[default]
    No,
    /// When the peer requires them.
    Yes,
    /// Whenever the peer can.
    PeerSupported,
    /// Always: peers that cannot are refused.
    Required,
}

/// What becomes of a call that the peer sends elsewhere (`redirect_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirect {
    /// The number in its Contact is dialled in the endpoint's context.
    #[default]
    User,
    /// Its Contact is dialled through the endpoint, by whoever dialled.
    UriCore,
    /// Its Contact is called at once in place of the first target.
    UriPjsip,
}

/// What the record key of a phone does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneTouch {
    /// It presses the code of a feature (`one_touch_recording`).
    pub by_key: bool,
    /// Feature of `Record: on`.
    pub on_feature: String,
    /// Feature of `Record: off`.
    pub off_feature: String,
}

/// `type=endpoint`.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// Section name.
    pub name: Rc<str>,
    /// Context of its calls.
    pub context: String,
    /// AORs it may register with and is reached by.
    pub aors: Vec<Rc<str>>,
    /// Auths of which its requests must satisfy one; empty: none is asked for.
    pub auths: Vec<Rc<str>>,
    /// Auths that answer challenges.
    pub outbound_auths: Vec<Rc<str>>,
    /// Formats, preferred first.
    pub allow: FormatSet,
    /// What else there is to say about formats.
    pub codecs: super::Codecs,
    /// What we send stays what was agreed first, whatever the peer sends.
    pub asymmetric_codec: bool,
    /// T.38, when it may (`t38_udptl`).
    pub fax: Option<super::FaxSettings>,
    /// By what a fax is known that calls (`fax_detect`, `fax_detect_timeout`).
    pub fax_detect: Option<call::FaxWatch>,
    /// Streams of audio of a call, the one that is served among them (`max_audio_streams`).
    pub audio_streams: u8,
    /// Video (`allow=`, `max_video_streams`).
    pub video: super::VideoSettings,
    /// Media from phone to phone, when it may go there (`direct_media`).
    pub direct: Option<super::DirectMedia>,
    /// RTP and RTCP on one port, where the peer wants that, too (RFC 5761).
    pub rtcp_mux: bool,
    /// What it calls G726-32 is packed as AAL2 packs it (`g726_non_standard`).
    pub g726_aal2: bool,
    /// RTP with feedback (`use_avpf`).
    pub feedback: Option<::sip::sdp::Feedback>,
    /// Who it holds hears nothing (`suppress_moh_on_sendonly`).
    pub silent_hold: bool,
    /// Its peer is told that it is held, and hears no music from here (`moh_passthrough`).
    pub passes_hold: bool,
    /// Media is bound to `media_address`.
    pub bind_media: bool,
    /// Name of the transport its requests leave by; empty: by address.
    pub transport: String,
    /// Caller id of its calls; empty fields are taken from From.
    pub caller: PartyId,
    /// User of From in our requests.
    pub from_user: String,
    /// Domain of From in our requests.
    pub from_domain: String,
    /// Profile of [`Config::stir`] by which its calls are signed and verified; empty: none (`stir_shaken_profile`).
    pub stir_profile: String,
    /// Whether P-Asserted-Identity and Remote-Party-ID are believed.
    pub trust_id_inbound: bool,
    /// Whether hidden identities are sent.
    pub trust_id_outbound: bool,
    /// Send P-Asserted-Identity.
    pub send_pai: bool,
    /// Send Remote-Party-ID.
    pub send_rpid: bool,
    /// Ways to identify it.
    pub identify_by: Vec<IdentifyBy>,
    /// Answer to the source address even without rport.
    pub force_rport: bool,
    /// Requests go to the source address, whatever Contact says.
    pub rewrite_contact: bool,
    /// Media goes where media comes from.
    pub rtp_symmetric: bool,
    /// Digits.
    pub dtmf: Dtmf,
    /// Address in SDP.
    pub media_address: Option<IpAddr>,
    /// Language.
    pub language: String,
    /// Tone zone.
    pub tone_zone: String,
    /// Music class others hear when it holds them.
    pub music_class: String,
    /// In which groups its calls ring, and of which it may take calls.
    pub pickup: call::pickup::SharedGroups,
    /// Account code.
    pub account: String,
    /// Tenant of its channels; empty: none.
    pub tenant: Rc<str>,
    /// Variables of its channels.
    pub set_var: Vec<(String, String)>,
    /// Channels from which it counts as busy; 0: never.
    pub busy_at: u32,
    /// Calls that it may have at once; 0: any number (`call_limit`).
    pub call_limit: u32,
    /// Its extensions in [`Config::reg_context`], `&` between them; empty: its name (`regexten`).
    pub regexten: String,
    /// Packets of this many milliseconds when the peer does not say.
    pub ptime_ms: u8,
    /// The same of formats that have a length of their own (`allow=ulaw:30`).
    pub packets: Vec<(FormatId, u8)>,
    /// Use the ptime the peer asks for.
    pub use_ptime: bool,
    /// SRTP with keys in the SDP (`media_encryption=sdes`); `None` is plain RTP.
    pub encryption: Option<::sip::sdp::Encryption<'static>>,
    /// Mechanisms of a security agreement (`security_negotiation=mediasec`, RFC 3329); empty: none is made.
    pub security: Vec<String>,
    /// Seconds without RTP after which the call ends; 0: never.
    pub rtp_timeout: u32,
    /// As `rtp_timeout`, while on hold.
    pub rtp_timeout_hold: u32,
    /// Seconds without a packet of ours after which one is sent all the same; 0: never.
    pub rtp_keepalive: u32,
    /// How its audio is marked.
    pub marking: base::Marking,
    /// Who may be this endpoint.
    pub access: Option<Access>,
    /// Early audio instead of ringing (`inband_progress`).
    pub inband_progress: bool,
    /// `user=phone` on numeric users.
    pub user_eq_phone: bool,
    /// User of Contact in our requests; empty: `from_user`, else `asterisk`.
    pub contact_user: String,
    /// Route of all its requests; empty: none.
    pub outbound_proxy: String,
    /// Answer 484 while more digits could match; else 404.
    pub allow_overlap: bool,
    /// Answer its OPTIONS without a challenge.
    pub unauthenticated_options: bool,
    /// Challenges are answered only in calls that we placed, by hosts that are known to be its own (`outbound_auth_strict`).
    pub guards_logins: bool,
    /// Take its calls without a challenge, and nothing else (`insecure_invite`).
    pub insecure_invite: bool,
    /// Context in which numbers that are too short are looked for; empty: the endpoint's own.
    pub overlap_context: String,
    /// Reliable provisional responses.
    pub rel100: Rel100,
    /// Session timers.
    pub timers: ::sip::session::Terms,
    /// What a 3xx does.
    pub redirect: Redirect,
    /// A message follows a 3xx (`follow_redirect_methods`).
    pub follows_messages: bool,
    /// Send Diversion.
    pub send_diversion: bool,
    /// Send History-Info.
    pub send_history: bool,
    /// What its record key does.
    pub recording: OneTouch,
    /// Tell it what calls cost.
    pub send_aoc: bool,
    /// Tell it when the other party changes.
    pub send_connected_line: bool,
    /// It is believed when it tells who it is connected to.
    pub trust_connected_line: bool,
    /// A changed party is told by UPDATE, where the peer takes it.
    pub connected_by_update: bool,
    /// A party that changes while it rings is told at once.
    pub rpid_immediate: bool,
    /// A 183 without SDP means nothing.
    pub ignore_183_without_sdp: bool,
    /// Early media is that of the branch of a fork that described it last (`follow_early_media_fork`).
    pub follow_fork: bool,
    /// A second description of the same branch counts (`accept_multiple_sdp_answers`).
    pub take_every_answer: bool,
    /// Send no Q.850 causes in Reason.
    pub suppress_reason: bool,
    /// Addresses its contacts may have.
    pub contact_access: Option<Access>,
    /// User in `o=` of our descriptions.
    pub sdp_owner: String,
    /// Name in `s=`.
    pub sdp_session: String,
    /// What it may watch.
    pub watching: Watching,
    /// It may transfer calls with REFER (`allow_transfer`).
    pub allow_transfer: bool,
    /// Who transfers a call without asking hears how it goes (`refer_blind_progress`).
    pub refer_progress: bool,
    /// Context of its messages; empty: that of its calls (`message_context`).
    pub message_context: String,
    /// It is a row of a database.
    pub is_realtime: bool,
    /// Options that are shown and that nothing here obeys in the form in which they were written, with their values.
    pub shown: Vec<(&'static str, String)>,
}

impl Endpoint {
    /// Methods for Allow in its calls.
    pub(crate) fn allowed(&self) -> &'static str {
        match self.rel100 {
            Rel100::No => super::ALLOW_WITHOUT_PRACK,
            Rel100::Yes | Rel100::PeerSupported | Rel100::Required => super::ALLOW,
        }
    }
    /// Extensions for Supported in our INVITEs and where a call is sent on (RFC 7044 §4.2).
    pub(crate) fn supported_with_history(&self) -> String {
        format!("{}, histinfo", self.supported())
    }
    /// Extensions for Supported in its calls.
    pub(crate) fn supported(&self) -> String {
        let timers = self.timers.policy != ::sip::session::Policy::No;
        let own = [(self.rel100 != Rel100::No, "100rel"), (timers, "timer")];
        let own = own.into_iter().filter(|(on, _)| *on).map(|(_, tag)| tag);
        own.chain(super::EXTENSIONS.iter().copied()).collect::<Vec<_>>().join(", ")
    }
}

/// `type=aor`.
#[derive(Debug, Clone)]
pub struct Aor {
    /// Section name.
    pub name: Rc<str>,
    /// Contacts that are always there.
    pub contacts: Vec<String>,
    /// Most registered contacts; 0: registration is refused.
    pub max_contacts: usize,
    /// A new contact replaces the oldest beyond the maximum.
    pub remove_existing: bool,
    /// Unreachable contacts go first.
    pub remove_unavailable: bool,
    /// Expiry when none is asked for.
    pub default_expiration: u32,
    /// Shortest.
    pub minimum_expiration: u32,
    /// Longest.
    pub maximum_expiration: u32,
    /// Seconds between OPTIONS; 0: none.
    pub qualify_frequency: u32,
    /// How long an answer may take.
    pub qualify_timeout: Duration,
    /// Only a 2xx counts as an answer.
    pub qualify_2xx_only: bool,
    /// Challenges to OPTIONS are answered.
    pub authenticate_qualify: bool,
    /// URI that OPTIONS go through; empty: as calls of the endpoint do.
    pub outbound_proxy: String,
    /// Path is kept.
    pub support_path: bool,
    /// Mailboxes that subscribers are told of (`mailboxes`).
    pub mailboxes: Vec<String>,
    /// Extension by which their messages are heard (`voicemail_extension`).
    pub voicemail: String,
}

/// What proves an auth.
#[derive(Clone)]
pub enum Proof {
    /// `password=`.
    Password(String),
    /// `md5_cred=` and `password_digest=`: one hash for each algorithm.
    Hashes(Vec<(Algorithm, Hex)>),
}

/// `type=auth`.
#[derive(Clone)]
pub struct Auth {
    /// User name in credentials.
    pub username: String,
    /// Realm; empty is the default one (inbound) or any (outbound).
    pub realm: String,
    /// Secret.
    pub proof: Proof,
    /// Algorithms offered to peers, strongest first.
    pub algorithms: Vec<Algorithm>,
    /// Algorithms of challenges that are answered; empty: all.
    pub answers: Vec<Algorithm>,
}

impl Auth {
    /// What proves it, by one algorithm after the other.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret<'_>> {
        let (password, hashes) = match &self.proof {
            Proof::Password(password) => (Some(Secret::Password(password.as_bytes())), &[][..]),
            Proof::Hashes(hashes) => (None, &hashes[..]),
        };
        password.into_iter().chain(hashes.iter().map(|(algorithm, ha1)| Secret::Ha1(*algorithm, *ha1)))
    }
    /// What proves it by this algorithm.
    pub(crate) fn secret(&self, algorithm: Algorithm) -> Option<Secret<'_>> {
        self.secrets().find(|secret| match secret {
            Secret::Password(_) => true,
            Secret::Ha1(own, _) => *own == algorithm,
        })
    }
}

/// One way an `identify` object recognises its endpoint.
#[derive(Clone)]
pub enum Match {
    /// Source address.
    Source(Access),
    /// Source address, and the port that requests come from.
    SourcePort(u16, Access),
    /// Header and a test of its value.
    Header(String, Rc<dyn Fn(&str) -> bool>),
    /// A test of the Request-URI.
    RequestUri(Rc<dyn Fn(&str) -> bool>),
}

/// `type=identify`.
#[derive(Clone)]
pub struct Identify {
    /// Section name.
    pub name: Rc<str>,
    /// Endpoint.
    pub endpoint: Rc<str>,
    /// Any of these.
    pub matches: Vec<Match>,
    /// Name of the transport that requests have to come by; empty: any.
    pub transport: String,
}

impl Endpoint {
    /// Whether it stands for whoever is nobody else (`[anonymous]`, and `[anonymous@domain]`).
    pub fn is_guest(&self) -> bool {
        *self.name == *GUEST || self.name.strip_prefix(GUEST).is_some_and(|rest| rest.starts_with('@'))
    }
}

impl Endpoint {
    /// Whether its OPTIONS are answered without a challenge and a name is all that it is known by.
    pub(super) fn opens_options(&self) -> bool {
        let by_name = |way: &IdentifyBy| matches!(way, IdentifyBy::Username | IdentifyBy::AuthUsername);
        self.unauthenticated_options && self.identify_by.iter().any(by_name)
    }
}

/// The endpoint of those who are nobody else.
pub(super) const GUEST: &str = "anonymous";

/// `type=registration`: where we register ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Section name.
    pub name: Rc<str>,
    /// The registrar: Request-URI of REGISTER.
    pub server_uri: String,
    /// The account: From and To of REGISTER.
    pub client_uri: String,
    /// Name of the transport; empty: by address.
    pub transport: String,
    /// First route of REGISTER; empty: none.
    pub outbound_proxy: String,
    /// Auths that answer challenges.
    pub outbound_auths: Vec<Rc<str>>,
    /// User of Contact.
    pub contact_user: String,
    /// Parameters behind Contact.
    pub contact_params: String,
    /// Intervals, and what is given up.
    pub rules: ::sip::registration::Rules,
    /// Span over which the first requests of several are spread; a second at least.
    pub initial_spread: Duration,
    /// Contact carries a token by which calls are known.
    pub line: bool,
    /// Endpoint of calls with that token.
    pub endpoint: Rc<str>,
    /// Say that Path is supported (RFC 3327).
    pub path: bool,
    /// Say that outbound is supported (RFC 5626).
    pub outbound: bool,
    /// User-Agent; empty: the one of all requests.
    pub user_agent: String,
    /// Mechanisms of a security agreement (`security_negotiation=mediasec`, RFC 3329); empty: none is made.
    pub security: Vec<String>,
}

/// A test of names, with the text that it was made from.
#[derive(Clone)]
pub struct Filter {
    /// Regular expression; empty lets everything pass.
    pub text: String,
    /// The test.
    pub test: Rc<dyn Fn(&str) -> bool>,
}

impl Filter {
    /// Whether a name passes.
    pub fn passes(&self, name: &str) -> bool {
        (self.test)(name)
    }
}
impl Default for Filter {
    fn default() -> Self {
        Self { text: String::new(), test: Rc::new(|_| true) }
    }
}
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl Eq for Filter {}
impl core::fmt::Debug for Filter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

/// `type=outbound-publish`: state of ours that another server is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboundPublish {
    /// Section name.
    pub name: Rc<str>,
    /// Package: `dialog`, `presence`, `asterisk-devicestate` or `asterisk-mwi`.
    pub event: String,
    /// Request-URI.
    pub server_uri: String,
    /// URI in From; empty: the Request-URI.
    pub from_uri: String,
    /// URI in To; empty: the Request-URI.
    pub to_uri: String,
    /// Seconds that a publication is to last.
    pub expiration: u32,
    /// Challenges that could not be met until nothing is published any more; 0: any number.
    pub rejections_max: u32,
    /// Each extension is a user of its own in the URIs.
    pub multi_user: bool,
    /// Auths that answer challenges.
    pub outbound_auths: Vec<Rc<str>>,
    /// First route; empty: none.
    pub outbound_proxy: String,
    /// Name of the transport; empty: by address.
    pub transport: String,
    /// Content-Type of documents of extensions.
    pub body: String,
    /// Contexts of extensions.
    pub contexts: Filter,
    /// Extensions.
    pub extens: Filter,
    /// Devices.
    pub devices: Filter,
    /// Mailboxes.
    pub mailboxes: Filter,
    /// The other server is asked for all of its states.
    pub asks: bool,
}

/// `type=inbound-publication`: what may be published to its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboundPublication {
    /// Who may publish; empty: any endpoint.
    pub endpoint: Rc<str>,
    /// Exchange of states of devices; empty: none.
    pub devices: Rc<str>,
    /// Exchange of states of mailboxes; empty: none.
    pub mailboxes: Rc<str>,
}

/// `type=asterisk-publication`: what is believed of another server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// States of these devices.
    pub devices: Option<Filter>,
    /// States of these mailboxes.
    pub mailboxes: Option<Filter>,
    /// The outbound-publish by which that server is told of devices; empty: all of them.
    pub devices_publish: String,
    /// The outbound-publish by which it is told of mailboxes; empty: all of them.
    pub mailboxes_publish: String,
}

/// One bind.
#[derive(Debug, Clone)]
pub struct Bind {
    /// Section name of the transport.
    pub name: String,
    /// Number the sockets and the stack know it by.
    pub id: ::sip::stack::TransportId,
    /// What it speaks.
    pub protocol: ::sip::stack::Protocol,
    /// Local address.
    pub local: SocketAddr,
    /// Address in SDP for peers outside `local_nets`.
    pub external_media: Option<IpAddr>,
    /// `host[:port]` in Via and Contact for peers outside `local_nets`.
    pub external_signaling: Option<String>,
    /// Networks that see us directly.
    pub local_nets: Vec<(IpAddr, u8)>,
    /// Domain of From in requests that leave by it; empty: its address.
    pub domain: String,
    /// How its packets are marked.
    pub marking: base::Marking,
}

impl Bind {
    /// Whether `peer` lies in none of `local_nets`; with no nets listed everybody is outside.
    pub fn is_outside(&self, peer: IpAddr) -> bool {
        !self.local_nets.iter().any(|net| base::in_network(*net, peer))
    }
}

impl Config {
    /// Whether a name has a domain, so that names with the domain of a request have to be looked for.
    pub(crate) fn has_domains(&self) -> bool {
        self.multi_domain && self.endpoints.keys().chain(self.aors.keys()).any(|name| name.contains('@'))
    }
    /// The first of the names of a user that `find` knows: with its domain, with the one that this is an alias of, and alone.
    /// `multi_domain` is [`has_domains`](Self::has_domains) when the configuration came into force.
    pub(crate) fn find_user<T>(
        &self,
        user: &str,
        domain: &[u8],
        find: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let with_domain = || {
            let domain = core::str::from_utf8(domain).ok()?.to_ascii_lowercase();
            let alias = || find(&format!("{user}@{}", self.domain_aliases.get(&domain)?));
            find(&format!("{user}@{domain}")).or_else(alias)
        };
        let exact = if self.multi_domain { with_domain() } else { None };
        exact.or_else(|| find(user))
    }
}

/// Everything, replaced whole by a reload.
#[derive(Clone, Default)]
pub struct Config {
    /// Endpoints by name.
    pub endpoints: BTreeMap<Rc<str>, Rc<Endpoint>>,
    /// AORs by name.
    pub aors: BTreeMap<Rc<str>, Rc<Aor>>,
    /// Auths by name.
    pub auths: BTreeMap<Rc<str>, Rc<Auth>>,
    /// Identifies in file order.
    pub identifies: Vec<Identify>,
    /// Resource lists by name.
    pub lists: BTreeMap<Rc<str>, Rc<ResourceList>>,
    /// What other servers are told, in the order of the names.
    pub publishes: Vec<Rc<OutboundPublish>>,
    /// What may be published here, by the user of the Request-URI.
    pub publications: BTreeMap<Rc<str>, Rc<InboundPublication>>,
    /// What is believed of other servers, by name.
    pub exchanges: BTreeMap<Rc<str>, Rc<Exchange>>,
    /// Registrations of ours, in the order of their names.
    pub registrations: Vec<Rc<Registration>>,
    /// Binds.
    pub binds: Vec<Bind>,
    /// Order of identification (`endpoint_identifier_order`).
    pub order: Vec<IdentifyBy>,
    /// Realm of challenges when the auth names none.
    pub default_realm: String,
    /// User-Agent and Server.
    pub user_agent: String,
    /// Who may send SIP at all.
    pub access: Option<Access>,
    /// Refuse SRTP packets that came before (`srtpreplayprotection` of rtp.conf).
    pub srtp_replay_protection: bool,
    /// `strictrtp` of rtp.conf.
    pub strict_rtp: bool,
    /// Milliseconds between RTCP reports.
    pub rtcp_interval_ms: u16,
    /// Hops that requests of ours may take.
    pub max_forwards: u8,
    /// Timers of the stack.
    pub timers: ::sip::stack::Timers,
    /// Requests too large for a datagram go by TCP (`disable_tcp_switch=no`).
    pub tcp_switch: bool,
    /// Endpoint of dial strings that name a bare URI.
    pub default_outbound: String,
    /// User of From when nothing else gives one.
    pub default_from_user: String,
    /// Algorithms of the challenge that strangers get; those of an auth that names none.
    pub default_algorithms: Vec<Algorithm>,
    /// Addresses that contacts may have at all.
    pub contact_access: Option<Access>,
    /// The user part of a URI ends at its first semicolon.
    pub ignore_user_options: bool,
    /// Messages in the log from the start; the console may say otherwise until this changes.
    pub trace: Trace,
    /// 180 may follow 183.
    pub ringing_after_progress: bool,
    /// The first OPTIONS to all contacts are spread over so long; zero: over a second.
    pub initial_qualify: Duration,
    /// Contact of a call has the caller's number.
    pub callerid_contact: bool,
    /// Watchers hear of registrations that are refreshed too.
    pub tells_refreshes: bool,
    /// When somebody whose requests are no endpoint's is reported.
    pub patience: super::Patience,
    /// How messages are spelled (`compact_headers`, `disable_rport`).
    pub form: ::sip::Form,
    /// Names of endpoints and AORs may be `user@domain` (`disable_multi_domain=no`).
    pub multi_domain: bool,
    /// Domains that stand for others, in lower case.
    pub domain_aliases: BTreeMap<String, String>,
    /// An offer that a re-INVITE asks for has all formats of its endpoint (`all_codecs_on_empty_reinvite`).
    pub offers_all_when_asked: bool,
    /// Context that has an extension for each endpoint that is registered (`regcontext`); empty: none.
    pub reg_context: String,
    /// Who signs for callers, and whose signatures are believed.
    pub stir: Rc<stir::Settings>,
}
