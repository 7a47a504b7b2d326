//! What becomes of each key of `sip.conf`, one row a key.

use crate::config::{Row, Status};
use Fate::{Moot, NoEqual, Read, Same};
use Part::{Aor, Endpoint, Global, Transport};
use Scope::{Both, General, Peer};

/// The object of `pjsip.conf` that a key goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Endpoint,
    Aor,
    Transport,
    Global,
    System,
}

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// `[general]` only.
    General,
    /// A peer, user or friend only.
    Peer,
    /// A peer; in `[general]` it is what holds for those that do not say.
    Both,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// This option of this object, with the value as it is.
    Same(Part, &'static str),
    /// Several lines, or another value; the text is for the manual.
    Read(&'static str),
    /// `pjsip.conf` has no equal; what happens instead.
    NoEqual(&'static str),
    /// It changes nothing here, and why.
    Moot(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) scope: Scope,
    pub(super) fate: Fate,
}

const fn key(name: &'static str, scope: Scope, fate: Fate) -> Key {
    Key { name, scope, fate }
}

const JITTER: &str = "use the function JITTERBUFFER() in the dialplan";
const REALTIME: &str = "peers come from files";
const COMPLETION: &str = "call completion is not built in";

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    // Who it is, and where.
    key("type", Peer, Read("`friend`, `peer`: endpoint, aor and, with a secret, auth; `user`: without aor")),
    key("host", Peer, Read("`dynamic`: aor with `max_contacts=1`; an address or name: `contact` of the aor, and an identify")),
    key("port", Peer, Read("port in `contact`")),
    key("defaultuser", Peer, Read("`username` of the outbound auth, user in `contact`")),
    key("username", Peer, Read("as `defaultuser`")),
    key("secret", Peer, Read("`password` of the auth")),
    key("md5secret", Peer, Read("`md5_cred` of the auth")),
    key("remotesecret", Peer, Read("`password` of the outbound auth")),
    key("insecure", Peer, Read("`invite` or `very`: its calls need no auth, registrations and all else do; `port`: ports are never compared")),
    key("transport", Both, Read("the first is the endpoint's `transport`")),
    key("callbackextension", Peer, Read("a registration with the peer, with this `contact_user`")),
    key("match_auth_username", General, Read("`identify_by=auth_username,username`")),
    key("defaultip", Peer, NoEqual("a peer that is not registered cannot be reached; give it host=")),
    key("auth", Peer, NoEqual("credentials are those of the peer")),
    key("context", Both, Same(Endpoint, "context")),
    key("callerid", Peer, Same(Endpoint, "callerid")),
    key("fullname", Peer, Read("name in `callerid`")),
    key("cid_number", Peer, Read("number in `callerid`")),
    key("callingpres", Both, Same(Endpoint, "callerid_privacy")),
    key("cid_tag", Peer, Same(Endpoint, "callerid_tag")),
    key("fromuser", Peer, Same(Endpoint, "from_user")),
    key("fromdomain", Both, Same(Endpoint, "from_domain")),
    key("accountcode", Both, Same(Endpoint, "accountcode")),
    key("language", Both, Same(Endpoint, "language")),
    key("tonezone", Both, Same(Endpoint, "tone_zone")),
    key("setvar", Peer, Same(Endpoint, "set_var")),
    key("callgroup", Both, Same(Endpoint, "call_group")),
    key("pickupgroup", Both, Same(Endpoint, "pickup_group")),
    key("namedcallgroup", Both, Same(Endpoint, "named_call_group")),
    key("namedpickupgroup", Both, Same(Endpoint, "named_pickup_group")),
    key("mailbox", Peer, Same(Endpoint, "mailboxes")),
    key("vmexten", Both, Same(Aor, "voicemail_extension")),
    key("mwi_from", Both, Same(Endpoint, "mwi_from_user")),
    key("unsolicited_mailbox", Peer, Same(Endpoint, "incoming_mwi_mailbox")),
    key("busylevel", Peer, Same(Endpoint, "device_state_busy_at")),
    key("permit", Peer, Same(Endpoint, "permit")),
    key("deny", Peer, Same(Endpoint, "deny")),
    key("acl", Peer, Same(Endpoint, "acl")),
    key("contactpermit", Both, Same(Endpoint, "contact_permit")),
    key("contactdeny", Both, Same(Endpoint, "contact_deny")),
    key("contactacl", Both, Same(Endpoint, "contact_acl")),
    key("supportpath", Both, Same(Aor, "support_path")),
    // Identity and behaviour in calls.
    key("trustrpid", Both, Same(Endpoint, "trust_id_inbound")),
    key("trust_id_outbound", Both, Read("`yes` or `legacy`: `trust_id_outbound=yes`")),
    key("sendrpid", Both, Read("`pai`: `send_pai`; `rpid`, `yes`: `send_rpid`")),
    key("rpid_update", Both, Read("`connected_line_method=update`")),
    key("rpid_immediate", Both, Same(Endpoint, "rpid_immediate")),
    key("send_diversion", Both, Same(Endpoint, "send_diversion")),
    key("usereqphone", Both, Same(Endpoint, "user_eq_phone")),
    key("progressinband", Both, Read("`inband_progress`; `never` is `no`")),
    key("allowtransfer", Both, Same(Endpoint, "allow_transfer")),
    key("allowsubscribe", Both, Same(Endpoint, "allow_subscribe")),
    key("subscribecontext", Both, Same(Endpoint, "subscribe_context")),
    key("subminexpiry", General, Same(Endpoint, "sub_min_expiry")),
    key("submaxexpiry", General, NoEqual("a subscription lasts a day at most")),
    key("allowoverlap", Both, Read("`allow_overlap`; `dtmf` is `no`")),
    key("session-timers", Both, Read("`timers`: `originate` is `always`, `accept` is `yes`, `refuse` is `no`")),
    key("session-expires", Both, Same(Endpoint, "timers_sess_expires")),
    key("session-minse", Both, Same(Endpoint, "timers_min_se")),
    key("session-refresher", Both, NoEqual("the refresher is negotiated")),
    key("outboundproxy", Both, Read("`outbound_proxy`, as a SIP URI with `lr`")),
    key("promiscredir", Both, Read("`yes`: `redirect_method=uri_core`")),
    key("mohsuggest", Both, Same(Endpoint, "moh_suggest")),
    key("mohinterpret", Both, Same(Endpoint, "moh_suggest")),
    key("musicclass", Both, Same(Endpoint, "moh_suggest")),
    key("musiconhold", Both, Same(Endpoint, "moh_suggest")),
    key("outofcall_message_context", Both, Same(Endpoint, "message_context")),
    // Media.
    key("allow", Both, Same(Endpoint, "allow")),
    key("disallow", Both, Same(Endpoint, "disallow")),
    key("dtmfmode", Both, Read("`dtmf_mode`; `shortinfo` is `info`")),
    key("nat", Both, Read("`force_rport`, `rewrite_contact` and `rtp_symmetric`")),
    key("directmedia", Both, Read("`direct_media`, `direct_media_method`, `disable_direct_media_on_nat`")),
    key("canreinvite", Both, Read("as `directmedia`")),
    key("directrtpsetup", Both, Moot("media moves when a call is answered, not before")),
    key("rtptimeout", Both, Same(Endpoint, "rtp_timeout")),
    key("rtpholdtimeout", Both, Same(Endpoint, "rtp_timeout_hold")),
    key("rtpkeepalive", Both, Same(Endpoint, "rtp_keepalive")),
    key("autoframing", Both, Same(Endpoint, "use_ptime")),
    key("preferred_codec_only", Both, Same(Endpoint, "preferred_codec_only")),
    key("g726nonstandard", Both, Same(Endpoint, "g726_non_standard")),
    key("encryption", Both, Read("`media_encryption=sdes`")),
    key("encryption_taglen", Both, Read("`32`: `srtp_tag_32`")),
    key("avpf", Both, Same(Endpoint, "use_avpf")),
    key("force_avp", Both, Same(Endpoint, "force_avp")),
    key("icesupport", Both, Same(Endpoint, "ice_support")),
    key("rtcp_mux", Both, Same(Endpoint, "rtcp_mux")),
    key("dtlsenable", Both, Read("`media_encryption=dtls`")),
    key("dtlsverify", Both, Same(Endpoint, "dtls_verify")),
    key("dtlsrekey", Both, Same(Endpoint, "dtls_rekey")),
    key("dtlsautogeneratecert", Both, Same(Endpoint, "dtls_auto_generate_cert")),
    key("dtlscertfile", Both, Same(Endpoint, "dtls_cert_file")),
    key("dtlsprivatekey", Both, Same(Endpoint, "dtls_private_key")),
    key("dtlscipher", Both, Same(Endpoint, "dtls_cipher")),
    key("dtlscafile", Both, Same(Endpoint, "dtls_ca_file")),
    key("dtlscapath", Both, Same(Endpoint, "dtls_ca_path")),
    key("dtlssetup", Both, Same(Endpoint, "dtls_setup")),
    key("dtlsfingerprint", Both, Same(Endpoint, "dtls_fingerprint")),
    key("t38pt_udptl", Both, Read("`t38_udptl`, `t38_udptl_ec` and `t38_udptl_maxdatagram`")),
    key("t38pt_usertpsource", Both, Same(Endpoint, "t38_udptl_nat")),
    key("faxdetect", Both, Read("`yes`, `cng`, `t38`: `fax_detect=yes`, which looks out for both; `no`: `no`")),
    key("videosupport", Both, Read("`yes`, `always`: `max_video_streams=1`; `no`: `0`")),
    key("media_address", General, Same(Endpoint, "media_address")),
    key("tos_audio", General, Same(Endpoint, "tos_audio")),
    key("cos_audio", General, Same(Endpoint, "cos_audio")),
    key("tos_video", General, Same(Endpoint, "tos_video")),
    key("cos_video", General, Same(Endpoint, "cos_video")),
    key("sdpsession", General, Same(Endpoint, "sdp_session")),
    key("sdpowner", General, Same(Endpoint, "sdp_owner")),
    // Registration.
    key("qualify", Both, Read("`qualify_frequency=60` and, from its milliseconds, `qualify_timeout`")),
    key("qualifyfreq", Both, Read("`qualify_frequency`")),
    key("maxexpiry", General, Same(Aor, "maximum_expiration")),
    key("minexpiry", General, Same(Aor, "minimum_expiration")),
    key("maxexpirey", General, Same(Aor, "maximum_expiration")),
    key("defaultexpiry", General, Read("`default_expiration` of aors, `expiration` of registrations")),
    key("defaultexpirey", General, Read("as `defaultexpiry`")),
    key("register", General, Read("a registration with an outbound auth")),
    key("registertimeout", General, Read("`retry_interval` of registrations")),
    key("register_retry_403", General, Moot("a registration is tried again whatever it was answered")),
    key("registerattempts", General, Read("`max_retries` of registrations; 0 never gives up")),
    // Transports and the stack.
    key("bindaddr", General, Read("`bind` of the transports")),
    key("bindport", General, Read("port in `bind`")),
    key("port", General, Read("as `bindport`")),
    key("udpbindaddr", General, Read("`bind` of the transport [sip-udp]")),
    key("udpenable", General, Read("`no`: there is no [sip-udp]")),
    key("tcpenable", General, Read("`yes`: the transport [sip-tcp]")),
    key("tcpbindaddr", General, Read("its `bind`")),
    key("tlsenable", General, Read("`yes`: the transport [sip-tls]")),
    key("tlsbindaddr", General, Read("its `bind`; port 5061")),
    key("tlscertfile", General, Read("its `cert_file`")),
    key("tlsprivatekey", General, Read("its `priv_key_file`")),
    key("tlscafile", General, Read("its `ca_list_file`")),
    key("tlscadir", General, Read("its `ca_list_path`")),
    key("tlscapath", General, Read("its `ca_list_path`")),
    key("tlscipher", General, Read("its `cipher`")),
    key("tlsclientmethod", General, Read("its `method`")),
    key("tlsverifyclient", General, Read("its `verify_client`")),
    key("tlsdontverifyserver", General, Read("the opposite of its `verify_server`")),
    key("externaddr", General, Read("`external_signaling_address` and `external_media_address` of the transports")),
    key("externip", General, Read("as `externaddr`")),
    key("externhost", General, Read("as `externaddr`")),
    key("externtcpport", General, Read("`external_signaling_port` of [sip-tcp]")),
    key("externtlsport", General, Read("`external_signaling_port` of [sip-tls]")),
    key("externrefresh", General, Moot("names are looked up again at each reload")),
    key("localnet", General, Same(Transport, "local_net")),
    key("tos_sip", General, Same(Transport, "tos")),
    key("cos_sip", General, Same(Transport, "cos")),
    key("allowguest", General, Read("`yes`, which holds when nothing is written: an endpoint [anonymous]")),
    key("realm", General, Same(Global, "default_realm")),
    key("useragent", General, Same(Global, "user_agent")),
    key("callerid", General, Same(Global, "default_from_user")),
    key("maxforwards", General, Same(Global, "max_forwards")),
    key("max_forwards", General, Same(Global, "max_forwards")),
    key("legacy_useroption_parsing", General, Same(Global, "ignore_uri_user_options")),
    key("regcontext", General, Same(Global, "regcontext")),
    key("sipdebug", General, Same(Global, "debug")),
    key("timert1", General, Same(Part::System, "timer_t1")),
    key("timerb", General, Same(Part::System, "timer_b")),
    key("compactheaders", General, Same(Part::System, "compact_headers")),
    key("tcpauthtimeout", General, Moot("connections that say nothing are closed after a time of their own")),
    key("tcpauthlimit", General, Moot("connections are bounded; docs/security.md has the numbers")),
    key("alwaysauthreject", General, Moot("unknown names and wrong passwords are always answered alike")),
    key("srvlookup", General, Moot("host names are looked up as RFC 3263 says")),
    key("pedantic", General, Moot("the grammar is always that of RFC 3261")),
    key("t1min", General, Moot("timer T1 is not measured")),
    key("callcounter", Both, Moot("the state of every endpoint is known")),
    key("limitonpeers", General, Moot("the state of every endpoint is known")),
    key("notifyringing", General, Moot("watchers are told of ringing")),
    key("notifyhold", General, Moot("watchers are told of hold")),
    key("checkmwi", General, Moot("whoever is to be told of a mailbox is told at once")),
    key("rfc2833compensate", Both, Moot("digits are told apart by their timestamps")),
    key("websocket_write_timeout", General, Moot("a connection that takes nothing is closed")),
    key("callevents", General, Moot("events are filtered by each manager user")),
    key("recordhistory", General, Moot("`pjsip set logger` shows messages")),
    key("dumphistory", General, Moot("`pjsip set logger` shows messages")),
    key("use_q850_reason", Both, Moot("Reason headers are always sent and read")),
    key("prematuremedia", General, Moot("media waits for Progress() or an answer")),
    key("ignoresdpversion", Both, Moot("a description counts when it differs")),
    key("ignore_requested_pref", Both, Moot("the order of `allow` decides")),
    key("constantssrc", Both, Moot("SSRCs do not change in a call")),
    key("description", Peer, Moot("it is a note")),
    key("subscribemwi", Peer, Moot("an endpoint that subscribes is told, the others too")),
    key("websocket_enabled", General, Moot("a transport with protocol=ws takes them, by the server of http.conf")),
    key("recordonfeature", Both, Same(Endpoint, "record_on_feature")),
    key("recordofffeature", Both, Same(Endpoint, "record_off_feature")),
    key("refer_addheaders", General, NoEqual("a REFER has no headers beside those of RFC 3515")),
    key("authfailureevents", General, Moot("wrong passwords are always told to managers of class security")),
    key("trunkname", Peer, Moot("the section has the name")),
    key("autocreatepeer", General, NoEqual("a phone that no section describes is not taken")),
    key("matchexternaddrlocally", General, NoEqual("localnet alone says who is inside")),
    key("matchexterniplocally", General, NoEqual("localnet alone says who is inside")),
    key("stunaddr", General, NoEqual("no STUN server is asked; write externaddr")),
    key("rtp_engine", Both, Moot("there is one engine of RTP")),
    key("notifymimetype", General, Moot("message-summary has one type, application/simple-message-summary")),
    key("vmsecret", Peer, Moot("PINs stand in voicemail.conf")),
    key("tos", General, Moot("tos_sip, tos_audio and tos_video are its names")),
    key("rtsavepath", General, Moot("rtsave_path is its name")),
    key("limitpeersonly", General, Moot("the state of every endpoint is known")),
    key("limitonpeer", General, Moot("the state of every endpoint is known")),
    key("timer1", General, Moot("timert1 is its name")),
    key("ospauth", Both, NoEqual("OSP is not spoken")),
    key("restrictcid", Peer, NoEqual("write callingpres=prohib")),
    key("dial", Peer, Moot("the dialplan says what is dialled")),
    key("ipaddr", Peer, Moot("it is a column of a table, which says where a peer has registered")),
    key("regseconds", Peer, Moot("it is a column of a table, which says until when a peer is registered")),
    key("regserver", Peer, Moot("it is a column of a table, which says with whom a peer is registered")),
    key("lastms", Peer, Moot("it is a column of a table, which says how fast a peer answers")),
    key("fullcontact", Peer, Moot("it is a column of a table, which says where a peer has registered")),
    key("name", Peer, Moot("the section has the name")),
    key("mask", Peer, Moot("write permit= and deny=")),
    key("domain", General, NoEqual("requests are taken for every domain")),
    key("autodomain", General, NoEqual("requests are taken for every domain")),
    key("allowexternaldomains", General, NoEqual("requests are taken for every domain")),
    key("domainsasrealm", General, NoEqual("the realm is that of realm= in every domain")),
    key("accept_outofcall_message", General, NoEqual("endpoints with a message context take messages")),
    key("auth_message_requests", General, NoEqual("messages are always authenticated")),
    key("auth_options_requests", General, NoEqual("write allow_unauthenticated_options in pjsip.conf")),
    key("mwi", General, NoEqual("message waiting of another server is not asked for")),
    key("mwiexpiry", General, NoEqual("message waiting of another server is not asked for")),
    key("notifycid", General, NoEqual("watchers are not told the caller")),
    key("dynamic_exclude_static", General, NoEqual("use contactdeny")),
    key("subscribe_network_change_event", General, NoEqual("the address of the machine is not watched")),
    key("store_sip_cause", General, NoEqual("use HANGUPCAUSE()")),
    key("snom_aoc_enabled", Both, NoEqual("send_aoc=yes of the endpoint sends what the standard says, not the form of snom")),
    key("maxcallbitrate", Both, NoEqual("video has no limit of its own")),
    key("tos_text", General, NoEqual("streams of text are declined")),
    key("cos_text", General, NoEqual("streams of text are declined")),
    key("textsupport", Both, NoEqual("streams of text are declined")),
    key("call-limit", Peer, Same(Endpoint, "call_limit")),
    key("incominglimit", Peer, NoEqual("write call-limit, which counts both ways, or count calls with GROUP() in the dialplan")),
    key("outgoinglimit", Peer, NoEqual("write call-limit, which counts both ways, or count calls with GROUP() in the dialplan")),
    key("amaflags", Both, NoEqual("use CHANNEL(amaflags) in the dialplan")),
    key("useclientcode", Both, NoEqual("X-ClientCode is not read")),
    key("parkinglot", Both, NoEqual("use CHANNEL(parkinglot) in the dialplan")),
    key("regextenonqualify", Both, NoEqual("extensions of regcontext are there while a peer is registered, whether it answers or not")),
    key("discard_remote_hold_retrieval", Both, NoEqual("the other party hears of hold and of its end")),
    key("relaxdtmf", Both, NoEqual("tones are found as ITU-T Q.24 has it")),
    key("qualifygap", General, NoEqual("contacts are asked spread over their interval")),
    key("qualifypeers", General, NoEqual("contacts are asked spread over their interval")),
    key("engine", Both, Moot("there is one engine of RTP")),
    key("regexten", Peer, Same(Endpoint, "regexten")),
    key("disallowed_methods", Both, NoEqual("all methods are served")),
    key("keepalive", Both, NoEqual("use qualify")),
    key("buggymwi", Both, NoEqual("message-summary is sent as RFC 3842 has it")),
    key("shrinkcallerid", Both, NoEqual("numbers are left as they come")),
    key("hasvoicemail", Peer, NoEqual("use mailbox=")),
    key("directmediapermit", Both, NoEqual("media goes from phone to phone by direct_media alone; set direct_media=no for who must not")),
    key("directmediadeny", Both, NoEqual("media goes from phone to phone by direct_media alone; set direct_media=no for who must not")),
    key("directmediaacl", Both, NoEqual("media goes from phone to phone by direct_media alone; set direct_media=no for who must not")),
    key("timert1", Peer, NoEqual("timers hold for the whole stack; write timert1 in [general]")),
    key("timerb", Peer, NoEqual("timers hold for the whole stack; write timerb in [general]")),
    key("maxforwards", Peer, NoEqual("write maxforwards in [general]")),
    key("rtcachefriends", General, NoEqual(REALTIME)),
    key("rtsavesysname", General, NoEqual(REALTIME)),
    key("rtsave_path", General, NoEqual(REALTIME)),
    key("rtupdate", General, NoEqual(REALTIME)),
    key("rtautoclear", General, NoEqual(REALTIME)),
    key("ignoreregexpire", General, NoEqual(REALTIME)),
    key("jbenable", Both, NoEqual(JITTER)),
    key("jbforce", Both, NoEqual(JITTER)),
    key("jbmaxsize", Both, NoEqual(JITTER)),
    key("jbresyncthreshold", Both, NoEqual(JITTER)),
    key("jbimpl", Both, NoEqual(JITTER)),
    key("jbtargetextra", Both, NoEqual(JITTER)),
    key("jblog", Both, NoEqual(JITTER)),
    key("cc_agent_policy", Both, NoEqual(COMPLETION)),
    key("cc_monitor_policy", Both, NoEqual(COMPLETION)),
    key("cc_offer_timer", Both, NoEqual(COMPLETION)),
    key("ccnr_available_timer", Both, NoEqual(COMPLETION)),
    key("ccbs_available_timer", Both, NoEqual(COMPLETION)),
    key("cc_max_agents", Both, NoEqual(COMPLETION)),
    key("cc_max_monitors", Both, NoEqual(COMPLETION)),
    key("cc_recall_timer", Both, NoEqual(COMPLETION)),
    key("cc_callback_macro", Both, NoEqual(COMPLETION)),
    key("cc_callback_sub", Both, NoEqual(COMPLETION)),
    key("cc_agent_dialstring", Both, NoEqual(COMPLETION)),
];

/// Keys whose `no` asks for something else than what happens anyway.
const NO_SAYS_SOMETHING: [&str; 3] =
    ["allowexternaldomains", "auth_message_requests", "accept_outofcall_message"];

impl Key {
    /// Whether a value of a key without an equal asks for what happens anyway.
    pub(super) fn asks_for_nothing(&self, value: &str) -> bool {
        let says_no = value.is_empty() || conf::boolean(value) == Some(false);
        says_no && !NO_SAYS_SOMETHING.contains(&self.name)
    }
}

/// The row of a key in `[general]` or in a peer.
pub(super) fn find(name: &str, general: bool) -> Option<&'static Key> {
    let there = |scope| scope == Both || (scope == General) == general;
    KEYS.iter().find(|key| there(key.scope) && key.name.eq_ignore_ascii_case(name))
}

/// Names for suggestions.
pub(super) fn names(general: bool) -> Vec<&'static str> {
    let there = |scope| scope == Both || (scope == General) == general;
    KEYS.iter().filter(|key| there(key.scope)).map(|key| key.name).collect()
}

/// Rows for the manual.
pub(in crate::config) fn rows() -> Vec<Row> {
    let row = |key: &Key| {
        let (kind, doc, status) = match key.fate {
            Same(part, option) => (format!("`{option}` of {}", part.word()), "As there.", Status::Supported),
            Read(doc) => (String::new(), doc, Status::Supported),
            NoEqual(what) => (String::new(), "", Status::Later(what)),
            Moot(why) => (String::new(), "", Status::Ignored(why)),
        };
        let section = match key.scope {
            General => "general",
            Peer => "peer",
            Both => "general and peer",
        };
        Row { file: "sip.conf", section, name: key.name, kind, default: "", doc, status }
    };
    KEYS.iter().map(row).collect()
}

impl Part {
    const fn word(self) -> &'static str {
        match self {
            Endpoint => "endpoint",
            Aor => "aor",
            Transport => "transport",
            Global => "global",
            Part::System => "system",
        }
    }
}
