//! What the IAX2 driver needs to know of `iax.conf`, resolved: templates applied, lists parsed, defaults filled in.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use ::iax2::Secret;
use ::iax2::frame::Auth;
use ::iax2::machine::{Encrypt, Lines, Priority, TokenRule, TrunkSettings};
use base::{FormatSet, Instant, Marking};
use call::PartyId;

use super::keywork::KeySet;

/// Decides whether an address may do something; made from permit/deny lists and named ACLs.
pub type Access = Rc<dyn Fn(IpAddr) -> bool>;

/// Whether whoever talks through us may be connected directly (`transfer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transfer {
    /// Never.
    #[default]
    No,
    /// Signalling and media (`yes`).
    Yes,
    /// Media, while signalling goes on through us (`mediaonly`).
    MediaOnly,
}

/// What is the same for users and peers, and has its default in `[general]`.
#[derive(Clone)]
pub struct Common {
    /// Formats, preferred first (`allow`, `disallow`).
    pub formats: FormatSet,
    /// Formats of video, preferred first (`allow`, `disallow`).
    pub video: FormatSet,
    /// Whose wishes go first (`codecpriority`, `reqonly`, `disabled`).
    pub priority: Priority,
    /// Methods to prove who one is (`auth`); without [`Auth::PLAINTEXT`] unless it is asked for.
    pub auth: Auth,
    /// `encryption` and `forceencryption`.
    pub encrypt: Encrypt,
    /// `keyrotate=no`: the keys of an enciphered call stay while it lasts.
    pub keys_stay: bool,
    /// `transfer`.
    pub transfer: Transfer,
    /// `trunk`: voice goes together with that of other calls.
    pub trunk: bool,
    /// `jitterbuffer`: what arrives is put in order, and waits so long at most; `None` hands it on as it comes.
    pub jitter: Option<Duration>,
    /// `requirecalltoken`.
    pub token: TokenRule,
    /// `maxcallnumbers`; `None` is that of its address.
    pub numbers_max: Option<u32>,
    /// `language`; empty is the system's.
    pub language: String,
    /// `mohinterpret`: music that others hear when it holds them; empty is the default.
    pub music_class: String,
    /// `mohsuggest`: music that is suggested when it is held.
    pub music_suggested: String,
    /// `accountcode`.
    pub account: String,
    /// `callerid`, `cid_number`, `fullname`: empty fields are taken from its calls.
    pub caller: PartyId,
    /// `callingpres`: presentation of numbers, in place of what it brings.
    pub presentation: Option<call::Presentation>,
    /// `setvar`.
    pub set_var: Vec<(String, String)>,
    /// `permit`, `deny`, `acl`.
    pub access: Option<Access>,
    /// `connectedline`: whether it is told whom it talks to, and believed whom we talk to.
    pub lines: Lines,
    /// `maxauthreq`: calls under its name from one address that may wait for a proof at once; 0 is any.
    pub challenges_max: u32,
    /// `sourceaddress`: where our packets to it leave from; port 0 is any.
    pub source: Option<SocketAddr>,
    /// `parkinglot`.
    pub parking_lot: String,
    /// `immediate`: a call without a number goes to extension `s` at once, instead of waiting for what it dials.
    pub immediate: bool,
    /// `forcejitterbuffer`: what arrives is evened out where it is relayed, too.
    pub evens_out: bool,
    /// It is a row of a database.
    pub is_realtime: bool,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            formats: [base::FormatId::ULAW, base::FormatId::ALAW, base::FormatId::GSM].into_iter().collect(),
            video: FormatSet::EMPTY,
            priority: Priority::Host,
            auth: Auth::MD5,
            encrypt: Encrypt::No,
            keys_stay: false,
            transfer: Transfer::Yes,
            trunk: false,
            jitter: Some(JITTER_DEFAULT),
            token: TokenRule::Yes,
            numbers_max: None,
            language: String::new(),
            music_class: String::new(),
            music_suggested: String::new(),
            account: String::new(),
            caller: PartyId::default(),
            presentation: None,
            set_var: Vec::new(),
            access: None,
            lines: Lines::default(),
            challenges_max: 3,
            source: None,
            parking_lot: String::new(),
            immediate: false,
            evens_out: false,
            is_realtime: false,
        }
    }
}

/// `maxjitterbuffer` when it is not given, ms.
pub const JITTER_DEFAULT: Duration = Duration::from_millis(1000);

/// `type=user`: who may call.
#[derive(Clone, Default)]
pub struct User {
    /// Section name.
    pub name: Rc<str>,
    /// Contexts that its calls may go to, the default one first (`context`); none: `default`.
    pub contexts: Vec<String>,
    /// `secret`; `None` with no `secret` line at all: whoever names this user is let in unless keys are named.
    pub secret: Option<Secret>,
    /// `dbsecret`: family and key of the secret in the astdb; goes before `secret`.
    pub secret_in: Option<String>,
    /// `inkeys`: names of public keys in astkeydir, of which any proves it.
    pub keys: Vec<String>,
    /// What users and peers have in common.
    pub common: Common,
    /// `amaflags`: what call records say; `None`: what they say of calls of anybody.
    pub ama_flags: Option<call::AmaFlags>,
}

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Host {
    /// Where it registers from; the address is the one to try before it has (`defaultip`).
    Dynamic(Option<SocketAddr>),
    /// Always here.
    Fixed(SocketAddr),
    /// Where the DNS says, at this port; `true` asks for its services first (`srvlookup`).
    Named(String, u16, bool),
    /// Nowhere: a section without `host`.
    #[default]
    Nowhere,
}

/// `type=peer`: who is called, and who registers.
#[derive(Clone, Default)]
pub struct Peer {
    /// Section name.
    pub name: Rc<str>,
    /// `host`, `port`, `defaultip`.
    pub host: Host,
    /// Where a database says that it has registered, and until when.
    pub seen: Option<(SocketAddr, Instant)>,
    /// Our user name there (`username`); empty: none is sent.
    pub username: String,
    /// What proves who we are, and who registers is (`secret`, `dbsecret`).
    pub secret: Option<Secret>,
    /// See [`User::secret_in`].
    pub secret_in: Option<String>,
    /// `inkeys`.
    pub keys: Vec<String>,
    /// `outkey`: name of our private key.
    pub own_key: String,
    /// `context`, as it is written: where calls of a friend go, and what is shown of a peer.
    pub contexts: Vec<String>,
    /// `peercontext`: context at the other side, when a dial string names none.
    pub context: String,
    /// `regexten`: extensions that exist in `regcontext` while it is registered, separated by `&`; empty: its name.
    pub extensions: String,
    /// `qualify`: the longest round trip that counts as reachable; `None` asks nobody.
    pub qualify: Option<Duration>,
    /// `qualifyfreqok`.
    pub qualify_every: Duration,
    /// `qualifyfreqnotok`.
    pub qualify_every_down: Duration,
    /// `qualifysmoothing`: the mean of the last two round trips counts.
    pub qualify_smooth: bool,
    /// `mailbox`: what its message counts are of, as `user@context`.
    pub mailboxes: Vec<String>,
    /// `sendani`.
    pub send_ani: bool,
    /// Whether it is a friend: a user with the same name exists.
    pub is_friend: bool,
    /// What users and peers have in common.
    pub common: Common,
}

impl Peer {
    /// Host, port and whether services go first, of a peer that is asked whether it is there and is known by name.
    pub(super) fn watched_name(&self) -> Option<(&str, u16, bool)> {
        match &self.host {
            Host::Named(host, port, services) if self.qualify.is_some() => Some((host, *port, *services)),
            Host::Named(..) | Host::Dynamic(_) | Host::Fixed(_) | Host::Nowhere => None,
        }
    }
}

/// `register =>`: where we register ourselves.
#[derive(Clone)]
pub struct Registration {
    /// Host name or address of the registrar.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Our user there.
    pub username: String,
    /// The password; `None` with a key.
    pub secret: Option<Secret>,
    /// Name of our private key (`[key]`).
    pub key: String,
    /// Seconds that we ask for.
    pub refresh: u16,
    /// Whether the password may go out in the clear.
    pub plaintext: bool,
    /// `user[:secret]@host[:port]` without the secret, for the console: `user`, `host:port`.
    pub place: String,
}

/// Which half of a key a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// `NAME.pub`: checks signatures.
    Public,
    /// `NAME.key`: makes them.
    Private,
}

/// A file of a key.
#[derive(Debug, Clone)]
pub struct KeyRow {
    /// The file's name without its ending.
    pub name: String,
    /// Which half.
    pub kind: KeyKind,
    /// `[Loaded]`, or why not.
    pub status: &'static str,
    /// MD5 of the file in hexadecimal digits.
    pub sum: String,
}

/// The keys of astkeydir.
#[derive(Clone, Default)]
pub struct Keys {
    /// Who signs and checks with them.
    pub set: Option<Arc<dyn KeySet>>,
    /// Their files, by name.
    pub rows: Rc<[KeyRow]>,
}

/// Everything, replaced whole by a reload.
#[derive(Clone)]
pub struct Config {
    /// Addresses to listen on (`bindaddr`, `bindport`); none: there is no IAX2.
    pub binds: Vec<SocketAddr>,
    /// Marks of our packets (`tos`, `cos`).
    pub marking: Marking,
    /// Users by name.
    pub users: BTreeMap<Rc<str>, Rc<User>>,
    /// Peers by name: each registration looks for one of many, so that they are found without comparing names on the way.
    pub peers: HashMap<Rc<str>, Rc<Peer>>,
    /// Registrations of ours, in file order.
    pub registrations: Vec<Rc<Registration>>,
    /// What calls of nobody in particular get: those of the user `guest`, when there is one, are in `users`.
    pub defaults: Common,
    /// `srvlookup`: hosts that dial strings and registrations name are looked up by their services first.
    pub srv_lookup: bool,
    /// `regcontext`: extensions of registered peers exist there; empty: nowhere.
    pub reg_context: String,
    /// `minregexpire`, seconds.
    pub lease_min: u16,
    /// `maxregexpire`, seconds.
    pub lease_max: u16,
    /// `autokill`: calls to who says nothing at all end after so long; `None`: as the protocol says.
    pub autokill: Option<Duration>,
    /// `shrinkcallerid`: brackets, blanks, dots and dashes are taken out of callers' numbers.
    pub shrink_caller_id: bool,
    /// `delayreject`: who fails to prove who it is hears so after a second.
    pub delay_reject: bool,
    /// `authdebug`: what was wrong about who fails is told in the log.
    pub auth_debug: bool,
    /// `mailboxdetail`: message counts rather than whether there are any.
    pub mailbox_detail: bool,
    /// `calltokenoptional`: networks that need no call token.
    pub token_optional: Vec<(IpAddr, u8)>,
    /// `maxcallnumbers`.
    pub numbers_of_address: u32,
    /// `[callnumberlimits]`, the first that fits decides.
    pub number_ranges: Vec<((IpAddr, u8), u32)>,
    /// `maxcallnumbers_nonvalidated`.
    pub numbers_without_token: u32,
    /// `trunkfreq`, `trunkmtu`, `trunktimestamps`.
    pub trunk: TrunkSettings,
    /// `dpcache`-like: seconds that our answers about numbers stay true (`dialplan` switches of others).
    pub number_refresh: u16,
    /// Keys of astkeydir.
    pub keys: Keys,
    /// `qualify` and the like are asked of so many peers a second at the start.
    pub start_rate: u32,
    /// Frames in the log from the start.
    pub trace: bool,
}

impl Default for Config {
    fn default() -> Self {
        let machine = ::iax2::Settings::default();
        Self {
            binds: Vec::new(),
            marking: Marking::default(),
            users: BTreeMap::new(),
            peers: HashMap::new(),
            registrations: Vec::new(),
            defaults: Common::default(),
            srv_lookup: false,
            reg_context: String::new(),
            lease_min: 60,
            lease_max: 3600,
            autokill: None,
            shrink_caller_id: true,
            delay_reject: false,
            auth_debug: false,
            mailbox_detail: true,
            token_optional: Vec::new(),
            numbers_of_address: machine.numbers_of_address,
            number_ranges: Vec::new(),
            numbers_without_token: machine.numbers_without_token,
            trunk: machine.trunk,
            number_refresh: 60,
            keys: Keys::default(),
            start_rate: 1000,
            trace: false,
        }
    }
}

impl Config {
    /// Whether who says this name has to bring a call token: what its user says, unless that is `yes`, else its peer.
    pub(crate) fn token_rule(&self, name: &str) -> TokenRule {
        let user = self.users.get(name).map(|user| user.common.token);
        let peer = self.peers.get(name).map(|peer| peer.common.token);
        user.filter(|rule| *rule != TokenRule::Yes).or(peer).unwrap_or(TokenRule::Yes)
    }
    /// What the machine of a socket is told.
    pub(crate) fn machine(&self) -> ::iax2::Settings {
        let rule = |name: &Rc<str>| {
            let token = self.token_rule(name);
            (token != TokenRule::Yes).then(|| (name.as_bytes().to_vec(), token))
        };
        ::iax2::Settings {
            formats: self.defaults.formats.iter().collect(),
            token_optional: self.token_optional.clone(),
            token_users: self.peers.keys().chain(self.users.keys()).filter_map(rule).collect(),
            numbers_of_address: self.numbers_of_address,
            number_ranges: self.number_ranges.clone(),
            numbers_without_token: self.numbers_without_token,
            transfers: self.users.values().any(|user| user.common.transfer != Transfer::No),
            trunk: self.trunk,
            ..::iax2::Settings::default()
        }
    }
}
