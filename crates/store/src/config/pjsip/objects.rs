//! The objects of `pjsip.conf`, one table each.

use super::values::{
    AuthType, CodecPrefs, ConnectedLine, DigestAlgorithm, Digests, DirectMediaMethod, DtmfChoice,
    FaxProtection, GlareMitigation, Headers, IdentifyBy, Inband, IncomingOfferPref, MediaEncryption, Ordered,
    OutgoingOfferPref, Presence, Protocol, RedirectMethod, RedirectedMethod, Rel100, SecurityNegotiation,
    SessionTimers, Sources, TlsMethod,
};
use crate::config::acl::Access;
use crate::config::kind::{
    Bind, BindTo, Ciphers, CodecList, DecimalSeconds, Gathered, GroupNumbers, Hidden, Int, Millis, Names,
    Nets, Pairs, Port, Rules, Seconds, Text, Tos, YesNo,
};
use crate::config::{Origin, options};
use conf::Findings;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

options! {
    /// `type=endpoint`: who calls and is called, and how.
    Endpoint, "pjsip.conf", "endpoint", SkipsObject;
    context: Text = "default", "Dialplan context its calls start in.";
    aors: Names = "", "AORs it may register with; a dial of the endpoint rings their contacts.";
    auth: Names = "", "Auths its requests must satisfy.";
    outbound_auth: Names = "", "Auths that answer challenges to our requests.";
    allow also "disallow": CodecList = "", "Formats it may use, in order of preference; disallow=all empties the list.";
    transport: Text = "", "Transport its requests leave by; empty chooses by the address.";
    callerid: Text = "", "Caller id of its calls: \"Name\" and number in angle brackets.";
    callerid_privacy: Presence = "allowed_not_screened", "Presentation of its caller id.";
    callerid_tag: Text = "", "Tag that travels with its caller id.";
    from_user: Text = "", "User part of From in our requests.";
    from_domain: Text = "", "Domain of From in our requests.";
    trust_id_inbound: YesNo = "no", "Believe P-Asserted-Identity and Remote-Party-ID it sends.";
    trust_id_outbound: YesNo = "no", "Send it private identities too.";
    send_pai: YesNo = "no", "Send P-Asserted-Identity.";
    send_rpid: YesNo = "no", "Send Remote-Party-ID.";
    send_diversion: YesNo = "yes", "Send Diversion for redirected calls.";
    send_history_info: YesNo = "no", "Send History-Info for redirected calls.";
    one_touch_recording: YesNo = "no", "Its record key (INFO with Record: on or off) presses the code of a feature.";
    record_on_feature: Text = "automixmon", "Feature of features.conf whose code Record: on presses.";
    record_off_feature: Text = "automixmon", "Feature of features.conf whose code Record: off presses.";
    send_aoc: YesNo = "no", "Tell it what a call costs (application/vnd.etsi.aoc+xml) when a manager says so.";
    send_connected_line: YesNo = "yes", "Tell it when the other party changes, by the headers of send_pai and send_rpid.";
    trust_connected_line: YesNo = "yes", "Believe it when it tells during a call who is there, given that trust_id_inbound is set.";
    connected_line_method: ConnectedLine = "invite", "Request that tells a changed party; a peer that takes UPDATE gets that whichever is written, others a re-INVITE.";
    rpid_immediate: YesNo = "no", "Tell a party that changes while it rings at once.";
    identify_by: Ordered<IdentifyBy> = "username,ip", "Ways to tell that a request comes from it.";
    direct_media: YesNo = "yes", "Let media go from phone to phone while nothing here has to hear it. See [media.md](media.md#from-phone-to-phone).";
    direct_media_method: DirectMediaMethod = "invite", "Request that moves media; update falls back to invite for peers without it.";
    direct_media_glare_mitigation: GlareMitigation = "none", "First request that is left out, so that it does not cross one of a peer that moves media, too.";
    disable_direct_media_on_nat: YesNo = "no", "Leave media here when its address is not that of the signalling, or not the one that its SDP names.";
    dtmf_mode: DtmfChoice = "rfc4733", "How digits travel.";
    media_encryption: MediaEncryption = "no", "SRTP: sdes has the keys in the SDP. See [srtp.md](srtp.md). An endpoint that asks for dtls, which is not built in, is skipped.";
    media_encryption_optimistic: YesNo = "no", "Serve with plain RTP who does not do SRTP, and offer keys in the RTP/AVP profile.";
    security_negotiation: SecurityNegotiation = "no", "Whether a security agreement is made (RFC 3329). See [trunks.md](trunks.md#a-carrier-that-wants-a-security-agreement).";
    security_mechanisms: Names = "", "Mechanisms that the agreement names, such as sdes-srtp\\;mediasec; a ; without \\ before it begins a comment.";
    srtp_tag_32: YesNo = "no", "Offer SRTP with tags of 32 bits, and prefer them.";
    force_avp: YesNo = "no", "Offer RTP/AVP also where the stream must be SRTP.";
    media_address: Text = "", "Address in our SDP instead of the one the media leaves by.";
    bind_rtp_to_media_address: YesNo = "no", "Bind media sockets to media_address.";
    media_use_received_transport: YesNo = "no", "With use_avpf, take offers without feedback, too, and answer in their profile.";
    use_avpf: YesNo = "no", "Offer RTP/AVPF or RTP/SAVPF (RFC 4585, RFC 5124), and refuse offers of others. Without it such offers are answered in their profile.";
    g726_non_standard: YesNo = "no", "What it calls G726-32 is packed as AAL2-G726-32 should be.";
    moh_passthrough: YesNo = "no", "Tell it by a re-INVITE (`a=sendonly`) that the other party holds it, and let it play its own music.";
    suppress_moh_on_sendonly: YesNo = "no", "Play no music to the other party when it holds the call.";
    rtp_symmetric: YesNo = "no", "Send media to where its media comes from.";
    rtp_ipv6: YesNo = "no", "Use IPv6 for media.",
        Ignored "*" "the address of the peer decides";
    rtp_timeout: Seconds<0, 86_400> = "0", "Silence of RTP after which the call ends; 0 never.";
    rtp_timeout_hold: Seconds<0, 86_400> = "0", "The same while on hold.";
    rtp_keepalive: Seconds<0, 86_400> = "0", "Time without sending after which a packet of comfort noise goes out; 0 never.";
    asymmetric_rtp_codec: YesNo = "no", "Go on sending what was agreed first when it sends another of the formats that were agreed on; else what we send follows.";
    codec_prefs_incoming_offer: CodecPrefs = "prefer: pending, operation: intersect, keep: all, transcode: allow", "How its offers and allow= become what the call may use; counts with incoming_call_offer_pref=codec_prefs only.";
    codec_prefs_outgoing_offer: CodecPrefs = "prefer: pending, operation: union, keep: all, transcode: allow", "How the formats of the caller and allow= become our offers; counts with outgoing_call_offer_pref=codec_prefs only.";
    codec_prefs_incoming_answer: CodecPrefs = "prefer: pending, operation: intersect, keep: all, transcode: allow", "Which of the formats that it answers with is sent first; counts with outgoing_call_offer_pref=codec_prefs only.";
    codec_prefs_outgoing_answer: CodecPrefs = "prefer: pending, operation: intersect, keep: all, transcode: allow", "In which order our answers name the formats; counts with incoming_call_offer_pref=codec_prefs only. With `prefer: pending` an answer that has not left yet begins with the format of the party that was dialled, if both share one, so that nothing is transcoded.";
    incoming_call_offer_pref: IncomingOfferPref = "local", "Whose order an answer of ours has, and how many formats.";
    outgoing_call_offer_pref: OutgoingOfferPref = "remote_merge", "What an offer of ours has, and in which order.";
    preferred_codec_only: YesNo = "no", "Answer its offers with the first common format only.";
    t38_udptl: YesNo = "no", "Let T.38 fax pass to and from another endpoint that may, too. See [media.md](media.md#fax).";
    t38_udptl_ec: FaxProtection = "none", "What protects fax datagrams to it, as our offers say; in our answers it is what its offer says.";
    t38_udptl_maxdatagram: Int<0, 65_535> = "0", "Longest fax datagram to it, bytes; 0 is what it says.";
    t38_udptl_nat: YesNo = "no", "Send fax datagrams to where its own come from.";
    rtcp_mux: YesNo = "no", "RTCP on the port of RTP, if it can do that (RFC 5761).";
    use_ptime: YesNo = "no", "Send packets of the length it asks for.";
    force_rport: YesNo = "yes", "Answer to the source port even without rport (RFC 3581).";
    rewrite_contact: YesNo = "no", "Replace its Contact by the source address.";
    rel100 as "100rel": Rel100 = "yes", "Reliable provisional responses (RFC 3262).";
    timers: SessionTimers = "yes", "Session timers (RFC 4028).";
    timers_min_se: Seconds<90, 86_400> = "90", "Shortest session interval; shorter ones are answered 422.";
    timers_sess_expires: Seconds<90, 86_400> = "1800", "Session interval asked for.";
    redirect_method: RedirectMethod = "user", "What a 3xx to a call does.";
    follow_redirect_methods: Ordered<RedirectedMethod> = "message",
        "Requests outside calls that follow a 3xx to the Contact that it names, five times at most and nowhere twice.";
    inband_progress: Inband = "no", "Play ringing in early media.";
    ignore_183_without_sdp: YesNo = "no", "Take a 183 without SDP for nothing.";
    follow_early_media_fork: YesNo = "yes",
        "When a call forks, hear the branch that described its media last before the answer; no: the first. That of the section system has to say yes too.";
    accept_multiple_sdp_answers: YesNo = "no",
        "Take over a description that differs from the first one of the same branch. That of the section system has to say yes too.";
    allow_transfer: YesNo = "yes", "Let it transfer with REFER.";
    allow_subscribe: YesNo = "yes", "Let it subscribe.";
    allow_overlap: YesNo = "yes", "Answer 484 while more digits could match.";
    overlap_context: Text = "", "Context in which more digits could match; empty is context.";
    allow_unauthenticated_options: YesNo = "no", "Answer its OPTIONS without a challenge.";
    outbound_auth_strict: YesNo = "no", "Use outbound_auth only in calls that we placed, and towards hosts that its AORs or outbound_proxy name; other hosts get a proof only for a realm that an auth names. A proof that is shown to a stranger can be attacked off line. Not in Asterisk, which answers whoever challenges.";
    insecure_invite: YesNo = "no", "Take its calls without a challenge; registrations and all else are challenged as `auth` says. Not in Asterisk's pjsip.conf: `insecure=invite` of sip.conf.";
    user_eq_phone: YesNo = "no", "Add user=phone to URIs with a number.";
    outbound_proxy: Text = "", "SIP URI all its requests go through.";
    contact_user: Text = "", "User part of Contact in our requests.";
    accountcode: Text = "", "Account code of its calls in call detail records.";
    set_var: Pairs = "", "Variables of its channels.";
    language: Text = "", "Language of its prompts.";
    tone_zone: Text = "", "Country of its tones.";
    moh_suggest: Text = "default", "Music it hears on hold.";
    message_context: Text = "", "Context of its messages.";
    subscribe_context: Text = "", "Context of its subscriptions.";
    fax_detect: YesNo = "no", "A caller who sounds like a fax, or asks for T.38, goes to the extension fax of its context, if there is one; FAXEXTEN says which it called.";
    fax_detect_timeout: Int<0, {u32::MAX}> = "0", "Seconds after the answer in which fax_detect looks out for a fax; 0: the whole call.";
    device_state_busy_at: Int<0, {u32::MAX}> = "0", "Calls at which it counts as busy; 0 counts it in use only.";
    call_limit: Int<0, {u32::MAX}> = "0", "Calls that it may have at once, in and out; 0: any number. A further one from it is answered 480, one to it finds it busy, and so do hints at the limit. Not in Asterisk's pjsip.conf: call-limit of sip.conf.";
    regexten: Text = "", "Extensions that exist in regcontext while it is registered, with & between them, each in another context with @; its name unless written. Not in Asterisk's pjsip.conf: regexten of sip.conf.";
    call_group: GroupNumbers = "", "Numbered pickup groups its calls ring in.";
    pickup_group: GroupNumbers = "", "Numbered groups it may pick up.";
    named_call_group: Gathered = "", "Named pickup groups its calls ring in.";
    named_pickup_group: Gathered = "", "Named groups it may pick up.";
    mailboxes: Gathered = "", "Mailboxes whose state it is told.";
    max_audio_streams: Int<0, 64> = "1", "Streams of audio of a call. The first one is served; those beside it are passed through to the other party, as video is; never more than 4 of those. See [media.md](media.md#video).";
    tos_audio: Tos = "0", "Type of service of audio packets.";
    cos_audio: Int<0, 7> = "0", "Priority (802.1p) of audio packets; 7 needs CAP_NET_ADMIN.";
    max_video_streams: Int<0, 64> = "1", "Streams of video of a call, which are passed through to the other party in the formats of allow=; 0 none, and never more than 4. See [media.md](media.md#video).";
    tos_video: Tos = "0", "Type of service of video packets.";
    cos_video: Int<0, 7> = "0", "Priority (802.1p) of video packets; 7 needs CAP_NET_ADMIN.";
    sdp_owner: Text = "-", "User in the o= line.";
    sdp_session: Text = "Asterisk", "Name in the s= line.";
    permit also "deny": Rules = "", "Addresses its requests may come from.";
    stir_shaken_profile: Text = "", "Profile of stir_shaken.conf by which its calls are signed and verified; empty: none.";
    acl: Gathered = "", "Lists of acl.conf its requests must pass.";
    contact_permit also "contact_deny": Rules = "", "Addresses its contacts may have.";
    contact_acl: Gathered = "", "Lists of acl.conf its contacts must pass.";
    notify_early_inuse_ringing: YesNo = "no", "Tell watchers of ringing while in use.";
    refer_blind_progress: YesNo = "yes", "Tell a blind transferer how it goes.";
    aggregate_mwi: YesNo = "yes", "Tell it of all its mailboxes together.";
    mwi_from_user: Text = "", "User of From in what it is told of mailboxes.";
    mwi_subscribe_replaces_unsolicited: YesNo = "no", "Tell it of mailboxes once only when it has subscribed to them.";
    voicemail_extension: Text = "", "Extension by which its messages are heard.";
    sub_min_expiry: Seconds<0, 86_400> = "0", "Shortest subscription; shorter ones are answered 423.";
    suppress_q850_reason_headers: YesNo = "no", "Send no Reason header with a Q.850 cause.";
    tenantid: Text = "", "Tenant of its channels.";
    incoming_mwi_mailbox: Text = "", "Mailbox whose state it tells us, by NOTIFY outside of a subscription.";
    @recognised {
        "bundle" "no" Later "streams are not bundled";
        "disable_directed_pickup" "no" Later "it is not an option of Asterisk 23";
        "dtls_auto_generate_cert" "no" Later "DTLS is not built in";
        "dtls_ca_file" "" Later "DTLS is not built in";
        "dtls_ca_path" "" Later "DTLS is not built in";
        "dtls_cert_file" "" Later "DTLS is not built in";
        "dtls_cipher" "" Later "DTLS is not built in";
        "dtls_fingerprint" "*" Later "DTLS is not built in";
        "dtls_private_key" "" Later "DTLS is not built in";
        "dtls_rekey" "0" Later "DTLS is not built in";
        "dtls_setup" "*" Later "DTLS is not built in";
        "dtls_verify" "no" Later "DTLS is not built in";
        "geoloc_incoming_call_profile" "" Later "locations are not read";
        "geoloc_outgoing_call_profile" "" Later "locations are not sent";
        "ice_support" "no" Later "ICE is not built in; media uses the addresses of the SDP";
        "rtp_engine" "asterisk" Ignored "there is one engine for media";
        "stir_shaken" "no,off" Ignored "stir_shaken_profile names what is signed and verified";
        "t38_bind_udptl_to_media_address" "no" Ignored "fax uses the port of the audio, which bind_rtp_to_media_address binds";
        "t38_udptl_ipv6" "no" Ignored "the address of the peer decides";
        "webrtc" "no" Later "browsers cannot call; ICE and DTLS are not built in";
    }
    resolved {
        /// Own rules with the named lists; everyone until `Pjsip::resolve_acls` ran.
        access: Access;
        /// The same for contacts.
        contact_access: Access;
    }
}

impl Endpoint {
    /// What the endpoint says about itself; false skips it.
    pub(super) fn check(&mut self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        if self.media_encryption == MediaEncryption::Dtls {
            let place = self.origin.place_of("media_encryption");
            if !self.media_encryption_optimistic {
                // Plain RTP for someone who asked for encryption would be a silent downgrade.
                let message =
                    format!("endpoint '{name}' asks for DTLS-SRTP, which is not built in; it is skipped");
                let remedy =
                    "write media_encryption=sdes if its peers know that, or no if plain RTP is acceptable";
                findings.error(place, message, remedy);
                return false;
            }
            let message =
                format!("endpoint '{name}' prefers DTLS-SRTP, which is not built in; plain RTP is used");
            findings.warning(place, message, "write media_encryption=sdes if its peers know that");
        }
        if self.allow.formats.is_empty() {
            let place = self.origin.place_of("allow").clone();
            let message = match self.allow.missing.as_slice() {
                [] => format!("endpoint '{name}' allows no format; its calls will be refused with 488"),
                missing => format!(
                    "endpoint '{name}' allows only {}, which are not built in; its calls will be refused with 488",
                    missing.join(", ")
                ),
            };
            findings.error(&place, message, "add allow=ulaw,alaw");
        }
        check_security(&self.origin, self.security_negotiation, &self.security_mechanisms, findings);
        if self.aors.is_empty() {
            let message =
                format!("endpoint '{name}' has no aors: it cannot register and cannot be dialled by name");
            findings.note(&self.origin.place, message, "add aors= if it should");
        }
        true
    }
}

options! {
    /// `type=aor`: where someone can be reached.
    Aor, "pjsip.conf", "aor", SkipsObject;
    contact: Gathered = "", "Permanent contacts, SIP URIs.";
    max_contacts: Int<0, {u32::MAX}> = "0", "Registered contacts at once; 0 lets nobody register.";
    remove_existing: YesNo = "no", "A registration that would be one too many replaces the oldest.";
    remove_unavailable: YesNo = "no", "With remove_existing off, make room by removing contacts that do not answer.";
    minimum_expiration: Seconds<0, {u32::MAX}> = "60", "Shortest registration; shorter ones are answered 423.";
    default_expiration: Seconds<0, {u32::MAX}> = "3600", "Registration time when none is asked for.";
    maximum_expiration: Seconds<0, {u32::MAX}> = "7200", "Longest registration; longer ones are shortened.";
    qualify_frequency: Seconds<0, 86_400> = "0", "Time between OPTIONS to each contact; 0 sends none.";
    qualify_timeout: DecimalSeconds = "3.0", "Time after which a contact that does not answer is unreachable.";
    qualify_2xx_only: YesNo = "no", "Only a 2xx answer counts as reachable.";
    authenticate_qualify: YesNo = "no",
        "Answer challenges to OPTIONS with the outbound_auth of the endpoint; no: a challenge counts as an answer.";
    outbound_proxy: Text = "", "SIP URI OPTIONS go through; empty is that of the endpoint.";
    support_path: YesNo = "no", "Obey Path (RFC 3327).";
    mailboxes: Gathered = "", "Mailboxes whose state subscribers are told.";
    voicemail_extension: Text = "", "Extension told with the state of mailboxes.";
    @recognised {}
}

impl Aor {
    pub(super) fn check(&self, findings: &mut Findings) {
        let name = &self.origin.name;
        if self.minimum_expiration > self.maximum_expiration {
            let message = format!("aor '{name}' has a minimum_expiration above its maximum_expiration");
            findings.warning(self.origin.place_of("minimum_expiration"), message, "exchange them");
        }
        if self.max_contacts == 0 && self.contact.is_empty() {
            let message = format!("aor '{name}' has no contact and max_contacts=0: nobody can register");
            findings.warning(&self.origin.place, message, "add max_contacts=1");
        }
    }
}

options! {
    /// `type=contact`: a permanent contact with a section of its own, named after its AOR: `[6001]`, or `[6001\;@desk]` for
    /// several.
    StaticContact, "pjsip.conf", "contact", SkipsObject;
    uri: Text = "", "Its SIP URI. The section is named after its aor, with \\;@ and a word behind where there are several.";
    @recognised {
        "authenticate_qualify" "*" Ignored "what its aor says holds";
        "qualify_2xx_only" "*" Ignored "what its aor says holds";
        "qualify_frequency" "*" Ignored "what its aor says holds";
        "qualify_timeout" "*" Ignored "what its aor says holds";
        "outbound_proxy" "*" Ignored "what its aor and its endpoint say holds";
        "call_id" "*" Ignored "it is for contacts that register";
        "endpoint" "*" Ignored "it is for contacts that register";
        "expiration_time" "*" Ignored "a contact that is written here does not lapse";
        "path" "*" Ignored "it is for contacts that register";
        "prune_on_boot" "*" Ignored "it is for contacts that register";
        "reg_server" "*" Ignored "it is for contacts that register";
        "user_agent" "*" Ignored "it is for contacts that register";
        "via_addr" "*" Ignored "it is for contacts that register";
        "via_port" "*" Ignored "it is for contacts that register";
    }
}

impl StaticContact {
    /// Name of its AOR.
    pub fn aor(&self) -> &str {
        let name = &*self.origin.name;
        name.split_once(";@").map_or(name, |(aor, _)| aor)
    }
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let is_uri = self.uri.starts_with("sip:") || self.uri.starts_with("sips:");
        if !is_uri {
            let message = format!("contact '{}' has no SIP URI in uri and is skipped", self.origin.name);
            findings.error(self.origin.place_of("uri"), message, "write uri=sip:…");
        }
        is_uri
    }
}

options! {
    /// `type=auth`: a user name and what proves it.
    Auth, "pjsip.conf", "auth", SkipsObject;
    auth_type: AuthType = "userpass", "What proves it.";
    username: Text = "", "User name.";
    password: Hidden = "", "Password.";
    md5_cred: Hidden = "", "MD5 of user:realm:password in hexadecimal.";
    password_digest: Digests = "", "Other hashes of user:realm:password.";
    realm: Text = "", "Realm; empty is the default realm when challenging and any realm when answering.";
    nonce_lifetime: Seconds<1, 86_400> = "32", "Time a challenge may be answered.",
        Ignored "*" "a challenge may be answered for a minute; after that it is renewed without asking the user";
    supported_algorithms_uas: Ordered<DigestAlgorithm> = "", "Algorithms we challenge with; empty takes the global default.";
    supported_algorithms_uac: Ordered<DigestAlgorithm> = "", "Algorithms of challenges that we answer, the strongest first; empty answers all.";
    @recognised {
        "oauth_clientid" "" Later "tokens are not fetched";
        "oauth_secret" "" Later "tokens are not fetched";
        "refresh_token" "" Later "tokens are not fetched";
    }
}

impl Auth {
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        let mut refuse = |option: &str, message: String, remedy: &str| {
            findings.error(self.origin.place_of(option), format!("{message}; the auth is skipped"), remedy);
            false
        };
        let hex = self.md5_cred.expose();
        let hashed = !hex.is_empty() || !self.password_digest.is_empty();
        let is_md5 = hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex.is_empty() && !is_md5 {
            let message = format!("md5_cred of auth '{name}' is not 32 hexadecimal digits");
            return refuse("md5_cred", message, "write the MD5 of user:realm:password in hexadecimal");
        }
        match self.auth_type {
            AuthType::GoogleOauth => refuse(
                "auth_type",
                format!("auth '{name}' uses google_oauth, which is not built in"),
                "write auth_type=userpass, username= and password= when the other side takes a password; one that takes \
                 nothing but Google's tokens is reached through a gateway",
            ),
            AuthType::Md5 if !hashed => refuse(
                "auth_type",
                format!("auth '{name}' is of type md5 and has no md5_cred"),
                "add md5_cred=",
            ),
            AuthType::UserPass | AuthType::Md5 | AuthType::Digest if self.username.is_empty() => {
                refuse("username", format!("auth '{name}' has no username"), "add username=")
            }
            AuthType::UserPass | AuthType::Digest if self.password.is_empty() && !hashed => {
                findings.warning(
                    &self.origin.place,
                    format!("auth '{name}' has no password: anyone who knows the user name passes"),
                    "add password=",
                );
                true
            }
            AuthType::UserPass | AuthType::Md5 | AuthType::Digest => true,
        }
    }
}

options! {
    /// `type=identify`: requests that belong to an endpoint by where they come from or what they carry.
    Identify, "pjsip.conf", "identify", SkipsObject;
    endpoint: Text = "", "Endpoint the requests belong to.";
    match_source as "match": Sources = "", "Addresses, networks and host names they come from.";
    match_header: Headers = "", "Headers they carry.";
    match_request_uri: Text = "", "Request URI they have; a /regular expression/ between slashes.";
    srv_lookups: YesNo = "yes", "Servers that SRV records of the host names for SIP name count too.";
    transport: Text = "", "Transport they come by; empty is any.";
    @recognised {}
}

impl Identify {
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        let skipped = if self.endpoint.is_empty() {
            "has no endpoint"
        } else if self.match_source.is_empty()
            && self.match_header.is_empty()
            && self.match_request_uri.is_empty()
        {
            "matches nothing"
        } else {
            return true;
        };
        let message = format!("identify '{name}' {skipped} and is skipped");
        findings.error(&self.origin.place, message, "add endpoint= and match=");
        false
    }
}

options! {
    /// `type=resource_list`: things that are watched by one subscription (RFC 4662).
    ResourceList, "pjsip.conf", "resource_list", SkipsObject;
    event: Text = "", "What is watched of each: presence, dialog or message-summary.";
    list_item: Gathered = "", "Extensions with hints, for message-summary AORs with mailboxes, or other lists; at most 512.";
    full_state: YesNo = "no", "Tell the state of all each time, not only of what has changed.";
    notification_batch_interval: Int<0, {u32::MAX}> = "0", "Milliseconds in which changes are gathered before they are told; 0 tells each at once.";
    resource_display_name: YesNo = "no", "Tell the names of the items as well.";
    @recognised {}
}

impl ResourceList {
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        let (option, problem, remedy) = if !["presence", "dialog", "message-summary"].contains(&&*self.event)
        {
            ("event", "has no event that can be watched", "write event=presence, dialog or message-summary")
        } else if self.list_item.is_empty() {
            ("list_item", "has no list_item", "add list_item= with extensions")
        } else {
            return true;
        };
        let message = format!("resource_list '{name}' {problem} and is skipped");
        findings.error(self.origin.place_of(option), message, remedy);
        false
    }
}

options! {
    /// `type=outbound-publish`: state of ours that another server is told by PUBLISH (RFC 3903).
    OutboundPublish, "pjsip.conf", "outbound-publish", SkipsObject;
    server_uri: Text = "", "SIP URI of the other server, and of what is published there.";
    event: Text = "", "What is published: dialog or presence (states of extensions with hints), asterisk-devicestate or asterisk-mwi (states for another Strowger).";
    from_uri: Text = "", "SIP URI in From; empty is that of server_uri.";
    to_uri: Text = "", "SIP URI in To; empty is that of server_uri.";
    expiration: Seconds<1, 86_400> = "3600", "Time a publication is to last.";
    max_auth_attempts: Int<0, {u32::MAX}> = "5", "Challenges that could not be met, one after the other, until nothing is published any more; 0 goes on.";
    multi_user: YesNo = "no", "Publish each extension as a user of its own: it takes the place of the user in the URIs.";
    outbound_auth: Names = "", "Auths that answer challenges.";
    outbound_proxy: Text = "", "SIP URI that PUBLISH goes through.";
    transport: Text = "", "Transport it leaves by; empty chooses by the address.";
    body as "@body": Text = "", "Type of the documents of extensions: application/dialog-info+xml, application/pidf+xml, application/cpim-pidf+xml or application/xpidf+xml.";
    context as "@context": Text = "", "Regular expression: contexts of extensions that are published; empty publishes all.";
    exten as "@exten": Text = "", "Regular expression: extensions that are published; empty publishes all.";
    device_state_filter as "@device_state_filter": Text = "", "Regular expression: devices that are published; empty publishes all.";
    mailbox_state_filter as "@mailbox_state_filter": Text = "", "Regular expression: mailboxes that are published; empty publishes all.";
    @recognised {}
}

/// Packages that can be published, and the bodies that `@body` may name for them.
const PUBLISHED: &[(&str, &[&str])] = &[
    ("dialog", &["application/dialog-info+xml"]),
    ("presence", &["application/pidf+xml", "application/xpidf+xml", "application/cpim-pidf+xml"]),
    ("asterisk-devicestate", &[]),
    ("asterisk-mwi", &[]),
];

impl OutboundPublish {
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        let uri = |text: &str| {
            (text.starts_with("sip:") || text.starts_with("sips:"))
                && !text.chars().any(|c| c.is_control() || c.is_whitespace() || "<>\"".contains(c))
        };
        let event = PUBLISHED.iter().find(|(event, _)| *event == self.event);
        let bodies = event.map_or(&[][..], |(_, bodies)| bodies);
        let (option, problem, remedy) = if !uri(&self.server_uri) {
            ("server_uri", "has no SIP URI in server_uri", "write server_uri=sip:…")
        } else if !self.from_uri.is_empty() && !uri(&self.from_uri) {
            ("from_uri", "has no SIP URI in from_uri", "write from_uri=sip:…, or remove the line")
        } else if !self.to_uri.is_empty() && !uri(&self.to_uri) {
            ("to_uri", "has no SIP URI in to_uri", "write to_uri=sip:…, or remove the line")
        } else if event.is_none() {
            (
                "event",
                "has no event that can be published",
                "write event=dialog, presence, asterisk-devicestate or asterisk-mwi",
            )
        } else if !bodies.is_empty() && !bodies.contains(&&*self.body) {
            (
                "@body",
                "has no @body that fits its event",
                "write @body=application/dialog-info+xml for dialog, application/pidf+xml for presence",
            )
        } else {
            if !bodies.is_empty() && !self.multi_user {
                findings.warning(
                    &self.origin.place,
                    format!(
                        "outbound-publish '{name}' publishes all extensions as one user, the last to change"
                    ),
                    "write multi_user=yes",
                );
            }
            return true;
        };
        let message = format!("outbound-publish '{name}' {problem} and is skipped");
        findings.error(self.origin.place_of(option), message, remedy);
        false
    }
}

options! {
    /// `type=inbound-publication`: what may be published here (RFC 3903). The name of the section is the user of the
    /// Request-URI.
    InboundPublication, "pjsip.conf", "inbound-publication", SkipsObject;
    endpoint: Text = "", "Endpoint that may publish; empty is any.";
    devices as "event_asterisk-devicestate": Text = "", "The asterisk-publication that says which states of devices are believed.";
    mailboxes as "event_asterisk-mwi": Text = "", "The asterisk-publication that says which states of mailboxes are believed.";
    @recognised {}
}

options! {
    /// `type=asterisk-publication`: which states of devices and mailboxes are believed that another server publishes here.
    AsteriskPublication, "pjsip.conf", "asterisk-publication", SkipsObject;
    device_state: YesNo = "no", "Believe states of devices.";
    device_state_filter: Text = "", "Regular expression: devices of which they are believed; empty believes all.";
    devicestate_publish: Text = "", "The outbound-publish by which the other server is asked for the states of all its devices.";
    mailbox_state: YesNo = "no", "Believe states of mailboxes.";
    mailbox_state_filter: Text = "", "Regular expression: mailboxes of which they are believed; empty believes all.";
    mailboxstate_publish: Text = "", "The outbound-publish by which the other server is asked for the states of all its mailboxes.";
    @recognised {}
}

options! {
    /// `type=registration`: an account of ours with another server.
    Registration, "pjsip.conf", "registration", SkipsObject;
    server_uri: Text = "", "SIP URI of the registrar, such as sip:sip.example.com.";
    client_uri: Text = "", "SIP URI of the account, such as sip:alice@example.com.";
    outbound_auth: Names = "", "Auths that answer its challenges.";
    contact_user: Text = "s", "User part of Contact: the extension that calls come in for.";
    contact_header_params: Text = "", "Parameters behind Contact, such as q=0.5.";
    expiration: Seconds<1, 86_400> = "3600", "Time a registration is to last.";
    retry_interval: Seconds<0, 86_400> = "60", "Wait after a failure that may pass; 0 makes it final.";
    forbidden_retry_interval: Seconds<0, 86_400> = "0", "Wait after 403; 0 leaves it to fatal_retry_interval.";
    fatal_retry_interval: Seconds<0, 86_400> = "0", "Wait after any other failure for good; 0 makes it final.";
    max_retries: Int<0, {u32::MAX}> = "10", "Attempts after the first failure until there are no more.";
    max_random_initial_delay: Seconds<0, 86_400> = "0", "Span over which the first REGISTER of several registrations are spread; 0 is a second.";
    auth_rejection_permanent: YesNo = "yes", "A challenge that cannot be met is a failure for good.";
    outbound_proxy: Text = "", "SIP URI that REGISTER goes through.";
    transport: Text = "", "Transport it leaves by; empty chooses by the address.";
    line: YesNo = "no", "Put a token into Contact, by which calls are known to belong to endpoint=.";
    endpoint: Text = "", "Endpoint of the calls that come with that token.";
    support_path: YesNo = "no", "Say that Path (RFC 3327) is supported.";
    support_outbound: YesNo = "no", "Say that outbound (RFC 5626) is supported, and send reg-id and instance.";
    user_agent: Text = "", "User-Agent of its requests; empty takes the global one.";
    security_negotiation: SecurityNegotiation = "no", "Whether a security agreement is made (RFC 3329). See [trunks.md](trunks.md#a-carrier-that-wants-a-security-agreement).";
    security_mechanisms: Names = "", "Mechanisms that the agreement names, such as sdes-srtp\\;mediasec; a ; without \\ before it begins a comment.";
    @recognised {}
}

impl Registration {
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        let is_uri = |text: &str| text.starts_with("sip:") || text.starts_with("sips:");
        for (option, uri) in [("server_uri", &self.server_uri), ("client_uri", &self.client_uri)] {
            let clean = !uri.chars().any(|c| c.is_control() || c.is_whitespace() || "<>\"".contains(c));
            if !is_uri(uri) || !clean {
                findings.error(
                    self.origin.place_of(option),
                    format!("registration '{name}' has no SIP URI in {option} and is skipped"),
                    format!("write {option}=sip:…"),
                );
                return false;
            }
        }
        if self.line && self.endpoint.is_empty() {
            findings.warning(
                self.origin.place_of("line"),
                format!("registration '{name}' has line=yes and no endpoint: its calls are known by other means only"),
                "add endpoint=",
            );
        }
        check_security(&self.origin, self.security_negotiation, &self.security_mechanisms, findings);
        true
    }
}

/// What there is to say of a security agreement; one without a mechanism is none.
fn check_security(
    origin: &Origin,
    negotiation: SecurityNegotiation,
    mechanisms: &[String],
    findings: &mut Findings,
) {
    if negotiation == SecurityNegotiation::No {
        return;
    }
    let name = &origin.name;
    let remedy = "write security_mechanisms=sdes-srtp\\;mediasec, with \\ before the ;";
    if mechanisms.is_empty() {
        let message = format!(
            "'{name}' has security_negotiation=mediasec and names no mechanism: nothing is agreed on"
        );
        findings.warning(origin.place_of("security_negotiation"), message, remedy);
    }
    let protects = |mechanism: &String| mechanism.split(';').skip(1).any(|param| param.trim() == "mediasec");
    for mechanism in mechanisms.iter().filter(|mechanism| !protects(mechanism)) {
        let message = format!("mechanism '{mechanism}' of '{name}' does not say that it protects media");
        findings.warning(origin.place_of("security_mechanisms"), message, remedy);
    }
}

options! {
    /// `type=transport`: an address to listen on and send from.
    Transport, "pjsip.conf", "transport", SkipsObject;
    protocol: Protocol = "udp", "udp, tcp, tls, or ws and wss, for which the server of http.conf listens; flow is not built in.";
    bind: BindTo = "", "Address and port to listen on.";
    external_signaling_address: Text = "", "Address in Via and Contact for peers outside local_net.";
    external_signaling_port: Port = "0", "Port in Via and Contact for peers outside local_net; 0 keeps the bound one.";
    external_media_address: Text = "", "Address in SDP for peers outside local_net.";
    local_net: Nets = "", "Networks that need no external address.";
    domain: Text = "", "Domain of From for requests that leave by it; empty is its address.";
    symmetric_transport: YesNo = "no", "Call a phone by the transport that it has registered by.",
        Ignored "*" "it is always done, unless the endpoint names a transport; a dialog stays on the one it began on";
    tos: Tos = "0", "Type of service of packets.";
    cos: Int<0, 7> = "0", "Priority (802.1p) of packets; 7 needs CAP_NET_ADMIN.";
    allow_reload: YesNo = "no", "Let a reload change it.",
        Ignored "*" "a reload opens what is new, closes what is gone and leaves the rest alone";
    tcp_keepalive_enable: YesNo = "no", "TCP keepalives as the next three say; else as the system does.";
    tcp_keepalive_idle_time: Seconds<1, 86_400> = "30", "Idle time before the first.";
    tcp_keepalive_interval_time: Seconds<1, 86_400> = "10", "Time between them.";
    tcp_keepalive_probe_count: Int<1, 100> = "5", "Unanswered ones that close the connection.";
    cert_file: Text = "", "Own certificate in PEM, then those between it and its authority. Read again at each reload.";
    priv_key_file: Text = "", "Its key in PEM; empty: it is in cert_file.";
    password: Hidden = "", "What the key is under (PKCS #8), if it is.";
    ca_list_file: Text = "", "Authorities that are believed, and lists of what they revoked, in PEM.";
    ca_list_path: Text = "", "Folder of such files.";
    method: TlsMethod = "default", "Versions of TLS.";
    cipher: Ciphers = "", "Suites of TLS, preferred first; empty: all that are built in.";
    verify_client: YesNo = "no", "Refuse clients whose certificate no authority of the list has signed.";
    require_client_cert: YesNo = "no", "Refuse clients without a certificate.";
    verify_server: YesNo = "no", "Refuse servers that do not prove their name; without a list the system's authorities are believed.";
    allow_wildcard_certs: YesNo = "no", "Let a server prove its name by a wildcard for its first label.";
    @recognised {
        "async_operations" "*" Ignored "input is always taken in batches";
        "websocket_write_timeout" "*" Ignored "a client is disconnected when it leaves too much unread, however long it takes";
    }
}

impl Transport {
    /// Whether the server of http.conf listens for it.
    pub fn is_websocket(&self) -> bool {
        matches!(self.protocol, Protocol::Ws | Protocol::Wss)
    }
    /// Address to listen on; port 5060 when none is written. For WebSockets, which others listen for, what Via says.
    pub fn address(&self) -> Option<SocketAddr> {
        let any = Bind { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: None };
        self.bind
            .or(self.is_websocket().then_some(any))
            .map(|bind| bind.or_port(if self.protocol == Protocol::Tls { 5061 } else { 5060 }))
    }
    pub(super) fn check(&self, findings: &mut Findings) -> bool {
        let name = &self.origin.name;
        match self.protocol {
            Protocol::Udp | Protocol::Tcp => {}
            Protocol::Tls => self.check_tls(findings),
            Protocol::Ws | Protocol::Wss => {
                if self.verify_client || self.require_client_cert {
                    findings.warning(
                        &self.origin.place,
                        format!("transport '{name}' asks clients for certificates, and the server of http.conf does not"),
                        "certificates of clients are for protocol=tls",
                    );
                }
                return true;
            }
            Protocol::Flow => {
                findings.error(
                    self.origin.place_of("protocol"),
                    format!("transport '{name}' has protocol=flow, which is not built in, and is not opened"),
                    "use protocol=udp, tcp, tls, ws or wss",
                );
                return false;
            }
        }
        if self.bind.is_none() {
            let message = format!("transport '{name}' has no bind and is skipped");
            findings.error(&self.origin.place, message, "add bind=0.0.0.0 to listen on every IPv4 address");
        }
        self.bind.is_some()
    }
}

impl Transport {
    fn check_tls(&self, findings: &mut Findings) {
        let name = &self.origin.name;
        if self.cert_file.is_empty() {
            findings.warning(
                &self.origin.place,
                format!("transport '{name}' has no cert_file: nobody can connect to it"),
                "name a certificate in cert_file and its key in priv_key_file",
            );
        }
        if self.method == TlsMethod::Outdated {
            findings.warning(
                self.origin.place_of("method"),
                format!("transport '{name}' asks for a version of TLS that is broken and not built in"),
                "remove method=; TLS 1.2 and 1.3 are spoken, and phones without them need new firmware",
            );
        }
        if !self.verify_server {
            findings.note(
                self.origin.place_of("verify_server"),
                format!("transport '{name}' does not ask servers that it calls for proof of their name"),
                "write verify_server=yes if trunks are reached by it",
            );
        }
        if self.require_client_cert && !self.verify_client {
            findings.warning(
                self.origin.place_of("require_client_cert"),
                format!("transport '{name}' asks clients for a certificate, and any will do"),
                "write verify_client=yes and ca_list_file",
            );
        }
        if self.verify_client && self.ca_list_file.is_empty() && self.ca_list_path.is_empty() {
            findings.warning(
                self.origin.place_of("verify_client"),
                format!("transport '{name}' verifies clients and knows no authority: none with a certificate is let in"),
                "name the authority of the clients' certificates in ca_list_file",
            );
        }
    }
}

options! {
    /// `type=global`: the stack.
    Global, "pjsip.conf", "global", SkipsObject;
    max_forwards: Int<1, 255> = "70", "Max-Forwards of our requests; a call that comes with less goes on with one less.";
    keep_alive_interval: Seconds<0, 86_400> = "90", "Time between keepalives on connections (RFC 5626 §3.5.1); 0 sends none.";
    contact_expiration_check_interval: Seconds<0, 86_400> = "30", "Contacts expire at their time; the number is not used.",
        Ignored "*" "each contact has its own deadline";
    max_initial_qualify_time: Seconds<0, 86_400> = "0", "Span the first OPTIONS are spread over; 0 is a second.";
    user_agent: Text = "Strowger PBX", "User-Agent and Server header; empty sends none.";
    default_outbound_endpoint: Text = "default_outbound_endpoint", "Endpoint for requests that belong to none.";
    default_from_user: Text = "asterisk", "User part of From when nothing else gives one.";
    default_realm: Text = "asterisk", "Realm of challenges.";
    default_voicemail_extension: Text = "", "Extension told with the state of mailboxes, where aor and endpoint name none.";
    mwi_disable_initial_unsolicited: YesNo = "no", "Do not tell endpoints with mailboxes= at the start, only when they register and of changes.",
        Ignored "no" "nobody is told at the start, each when it registers";
    debug: Text = "no", "Log SIP messages: no, yes, or an address.";
    endpoint_identifier_order: Names = "ip,username,anonymous", "Order of the ways to tell the endpoint.";
    ignore_uri_user_options: YesNo = "no", "Cut the user part of a URI at its first semicolon.";
    disable_multi_domain: YesNo = "no", "Look endpoints and aors up by user alone; no: by user@domain first, where there are such names.";
    use_callerid_contact: YesNo = "no",
        "Contact of a call has the caller's number as user part, unless contact_user says another; no: from_user.";
    unidentified_request_count: Int<0, {u32::MAX}> = "5",
        "From so many requests on that are no endpoint's, from one address within the period, a notice says so.";
    unidentified_request_period: Seconds<0, 86_400> = "5", "Span they are counted in, from the first one on.";
    unidentified_request_prune_interval: Seconds<0, 86_400> = "30",
        "Addresses that have ceased are forgotten so often; 4,096 are counted at once.";
    regcontext: Text = "", "Context that has an extension for each endpoint while it is registered: its name, with NoOp at priority 1. See [dialplan.md](dialplan.md#who-is-registered).";
    allow_sending_180_after_183: YesNo = "no", "Send 180 even after 183.";
    norefersub: YesNo = "yes", "Offer REFER without a subscription (RFC 4488).",
        Ignored "no" "it is offered in any case";
    send_contact_status_on_update_registration: YesNo = "no", "Send a ContactStatus event for each refresh.";
    all_codecs_on_empty_reinvite: YesNo = "no",
        "An offer that a re-INVITE without SDP asks for lists all of allow=, the format in use first (RFC 3261 §14.2); \
         no: the formats that the call was made with, in the same way.";
    default_auth_algorithms_uas: Ordered<DigestAlgorithm> = "MD5", "Algorithms we challenge with.";
    default_auth_algorithms_uac: Ordered<DigestAlgorithm> = "",
        "Algorithms of challenges that we answer where the auth does not say, the strongest first; empty answers all.";
    @recognised {
        "mwi_tps_queue_high" "*" Ignored "there are no such queues";
        "mwi_tps_queue_low" "*" Ignored "there are no such queues";
        "taskprocessor_overload_trigger" "global" Ignored "overload is judged by maxcalls, load and calls a second";
        "regcontext_priority" "*" Ignored "it is not an option of Asterisk 23";
    }
}

options! {
    /// `type=system`: timers of the stack.
    System, "pjsip.conf", "system", SkipsObject;
    timer_t1: Millis<100, 60_000> = "500", "Round trip estimate (RFC 3261 timer T1).";
    timer_b: Millis<0, 3_600_000> = "32000", "Time an INVITE waits for an answer (timer B); 64 T1 is usual.";
    compact_headers: YesNo = "no", "Write the short forms of headers that have one (RFC 3261 §7.3.3).";
    disable_rport: YesNo = "no",
        "Send no rport in Via (RFC 3581): answers come to the port that Via names, not to the one requests come from.";
    disable_tcp_switch: YesNo = "yes",
        "Keep requests of more than 1,300 bytes on UDP; `no` sends them by TCP, from the TCP transport on the same \
         address, and by UDP if the peer takes no connection.";
    follow_early_media_fork: YesNo = "yes", "Whether endpoints may follow early media of a fork.";
    accept_multiple_sdp_answers: YesNo = "no", "Whether endpoints may take over further descriptions of one branch.";
    @recognised {
        "threadpool_initial_size" "*" Ignored "one thread signals";
        "threadpool_auto_increment" "*" Ignored "one thread signals";
        "threadpool_idle_timeout" "*" Ignored "one thread signals";
        "threadpool_max_size" "*" Ignored "one thread signals";
        "tls_keep_alive_interval" "*" Ignored "keep_alive_interval of global is its name";
    }
}

options! {
    /// `type=domain_alias`: a domain, the section's name, that stands for another in names of endpoints and aors.
    DomainAlias, "pjsip.conf", "domain_alias", SkipsObject;
    domain: Text = "", "The domain in names such as user@domain that is looked for when requests name this one.";
    @recognised {}
}

options! {
    /// `type=acl`: who may send SIP at all.
    SipAcl, "pjsip.conf", "acl", SkipsObject;
    permit also "deny": Rules = "", "Addresses requests may come from.";
    acl: Gathered = "", "Lists of acl.conf requests must pass.";
    contact_permit also "contact_deny": Rules = "", "Addresses contacts may have.";
    contact_acl: Gathered = "", "Lists of acl.conf contacts must pass.";
    @recognised {}
    resolved {
        /// Own rules with the named lists; everyone until `Pjsip::resolve_acls` ran.
        access: Access;
        /// The same for contacts.
        contact_access: Access;
    }
}
