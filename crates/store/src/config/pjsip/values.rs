//! Values that only `pjsip.conf` has.

use crate::config::acl::Net;
use crate::config::kind::{Kind, Secret, choice, tell_rest};
use conf::{Finding, Findings, Level, Variable};

choice! {
    /// `dtmf_mode=`: how digits travel.
    DtmfChoice {
        Rfc4733 | "rfc4733" | "rfc2833" "RFC 4733 events.";
        Inband | "inband" "Tones in the audio.";
        Info | "info" "SIP INFO.";
        Auto | "auto" "RFC 4733 if the peer offers it, else tones in the audio.";
        AutoInfo | "auto_info" "RFC 4733 if the peer offers it, else SIP INFO.";
    }
}
choice! {
    /// `100rel=`: reliable provisional responses (RFC 3262).
    Rel100 {
        Yes | "yes" | "true" | "on" | "1" "Use them when the peer wants.";
        No | "no" | "false" | "off" | "0" "Never.";
        Required | "required" "Refuse peers that cannot.";
        PeerSupported | "peer_supported" "Use them whenever the peer can.";
    }
}
choice! {
    /// `timers=`: session timers (RFC 4028).
    SessionTimers {
        Yes | "yes" | "true" | "on" | "1" "Accept and offer.";
        No | "no" | "false" | "off" | "0" "Never.";
        Required | "required" "Refuse peers that cannot.";
        Always | "always" | "forced" "Use them even if the peer cannot.";
    }
}
choice! {
    /// `direct_media_method=`, `connected_line_method=`.
    DirectMediaMethod {
        Invite | "invite" | "reinvite" "A re-INVITE.";
        Update | "update" "An UPDATE.";
    }
}
choice! {
    /// `direct_media_glare_mitigation=`: which of our first offers that move media is left out.
    GlareMitigation {
        None | "none" "None.";
        Outgoing | "outgoing" "That on a leg that we called.";
        Incoming | "incoming" "That on a leg that called us.";
    }
}
choice! {
    /// `incoming_call_offer_pref=`: whose order counts for an offer that came.
    IncomingOfferPref {
        CodecPrefs | "codec_prefs" "What codec_prefs_incoming_offer says.";
        Local | "local" "What both have, in the order of allow=.";
        LocalFirst | "local_first" "The first of that.";
        Remote | "remote" "What both have, in the order of the offer.";
        RemoteFirst | "remote_first" "The first of that.";
    }
}
choice! {
    /// `outgoing_call_offer_pref=`: what an offer to it has, and in which order.
    OutgoingOfferPref {
        CodecPrefs | "codec_prefs" "What codec_prefs_outgoing_offer says.";
        Local | "local" "What the caller and allow= have, in the order of allow=.";
        LocalMerge | "local_merge" "All of allow=.";
        LocalFirst | "local_first" "The first that the caller and allow= have, in the order of allow=.";
        Remote | "remote" "What the caller and allow= have, in the caller's order.";
        RemoteMerge | "remote_merge" "The same, then the rest of allow=.";
        RemoteFirst | "remote_first" "The first that the caller and allow= have, in the caller's order.";
    }
}
choice! {
    /// `follow_redirect_methods=`: requests that follow a 3xx.
    RedirectedMethod {
        Message | "message" "MESSAGE.";
    }
}
choice! {
    /// `redirect_method=`: what a 3xx to a call does.
    RedirectMethod {
        User | "user" "The number in Contact is dialled in the endpoint's context.";
        UriCore | "uri_core" "The Contact is dialled through the endpoint by whoever dialled.";
        UriPjsip | "uri_pjsip" "The Contact is called at once in place of the first target.";
    }
}
/// `connected_line_method=` takes the same words.
pub type ConnectedLine = DirectMediaMethod;
choice! {
    /// `media_encryption=`.
    MediaEncryption {
        None | "no" | "none" | "false" | "off" | "0" "Plain RTP.";
        Sdes | "sdes" "SRTP, keys in the SDP.";
        Dtls | "dtls" "SRTP, keys by DTLS.";
    }
}
choice! {
    /// `security_negotiation=`: which kind of agreement is made.
    SecurityNegotiation {
        No | "no" "None.";
        Mediasec | "mediasec" "On protecting media.";
    }
}
choice! {
    /// `callerid_privacy=`: presentation of the caller id (the field's words).
    Presence {
        AllowedNotScreened | "allowed_not_screened" "Shown, not screened.";
        AllowedPassedScreen | "allowed_passed_screen" | "allowed_passed_screened" "Shown, passed screening.";
        AllowedFailedScreen | "allowed_failed_screen" "Shown, failed screening.";
        Allowed | "allowed" "Shown, given by the network.";
        ProhibNotScreened | "prohib_not_screened" "Hidden, not screened.";
        ProhibPassedScreen | "prohib_passed_screen" "Hidden, passed screening.";
        ProhibFailedScreen | "prohib_failed_screen" "Hidden, failed screening.";
        Prohib | "prohib" "Hidden, given by the network.";
        Unavailable | "unavailable" "There is no number.";
    }
}
choice! {
    /// `inband_progress=`: whether ringing is played in early media.
    Inband {
        No | "no" | "false" | "off" | "0" "180 without media.";
        Yes | "yes" | "true" | "on" | "1" "183 with the tone.";
    }
}
choice! {
    /// `auth_type=`.
    AuthType {
        UserPass | "userpass" "Password in the clear.";
        Md5 | "md5" "MD5 of user:realm:password in md5_cred.";
        Digest | "digest" "Either, by what is written.";
        GoogleOauth | "google_oauth" "Tokens of Google; not built in.";
    }
}
choice! {
    /// `protocol=` of a transport.
    Protocol {
        Udp | "udp" "UDP.";
        Tcp | "tcp" "TCP.";
        Tls | "tls" "TLS 1.2 and 1.3.";
        Ws | "ws" "SIP over WebSocket (RFC 7118), by the server of http.conf.";
        Wss | "wss" "The same under TLS.";
        Flow | "flow" "Reuse of the flow; not built in.";
    }
}
choice! {
    /// `method=`: versions of TLS.
    TlsMethod {
        Default | "default" | "unspecified" | "sslv23" "1.2 and 1.3.";
        Tls12 | "tlsv1_2" "1.2 only.";
        Tls13 | "tlsv1_3" "1.3 only.";
        Outdated | "tlsv1" | "tlsv1_1" | "sslv2" | "sslv3" "Broken versions, which are not built in: 1.2 and 1.3.";
    }
}
choice! {
    /// A digest algorithm (RFC 8760).
    DigestAlgorithm {
        Md5 | "MD5" "MD5.";
        Sha256 | "SHA-256" "SHA-256.";
        Sha512_256 | "SHA-512-256" "SHA-512/256.";
    }
}
choice! {
    /// A way to tell which endpoint a request comes from.
    IdentifyBy {
        Username | "username" "User part of From.";
        AuthUsername | "auth_username" "User name in Authorization.";
        Ip | "ip" "Source address, by type=identify.";
        Header | "header" "A header, by type=identify.";
        RequestUri | "request_uri" "The request URI, by type=identify.";
        Transport | "transport" "The transport it came by.";
        Anonymous | "anonymous" "The endpoint named anonymous.";
    }
}

choice! {
    /// `t38_udptl_ec=`: what protects fax datagrams against loss (ITU-T T.38 §9.1).
    FaxProtection {
        None | "none" | "no" "Nothing.";
        Redundancy | "redundancy" "Each repeats the packets before it.";
        Fec | "fec" "Each has parity over the packets before it.";
    }
}
choice! {
    /// `prefer:` of `codec_prefs_*`.
    CodecPrefer {
        Pending | "pending" "What has come.";
        Configured | "configured" "What allow= lists.";
    }
}
choice! {
    /// `operation:` of `codec_prefs_*`.
    CodecOperation {
        Intersect | "intersect" "What is in both lists.";
        Union | "union" "What is in both lists, then the rest of allow=.";
        OnlyPreferred | "only_preferred" "The preferred list, as far as allow= has it.";
        OnlyNonpreferred | "only_nonpreferred" "The other list, as far as allow= has it.";
    }
}
choice! {
    /// `keep:` of `codec_prefs_*`.
    CodecKeep {
        All | "all" "All formats.";
        First | "first" "The first.";
    }
}
choice! {
    /// `transcode:` of `codec_prefs_*`.
    CodecTranscode {
        Allow | "allow" "Also formats that the other party has not.";
        Prevent | "prevent" "Only formats that the other party has, too.";
    }
}

/// The value of `codec_prefs_*`; a word that is not written is the first of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CodecPreference {
    /// Which list leads.
    pub prefer: CodecPrefer,
    /// How the two become one.
    pub operation: CodecOperation,
    /// How much of it is kept.
    pub keep: CodecKeep,
    /// Whether formats may be different on both sides.
    pub transcode: CodecTranscode,
}

/// `prefer: pending, operation: intersect, keep: all, transcode: allow`; what a line leaves out stays.
pub struct CodecPrefs;
impl Kind for CodecPrefs {
    type Value = CodecPreference;
    fn describe() -> String {
        format!(
            "prefer: {}; operation: {}; keep: {}; transcode: {}; comma separated",
            CodecPrefer::describe(),
            CodecOperation::describe(),
            CodecKeep::describe(),
            CodecTranscode::describe()
        )
    }
    fn set(value: &mut CodecPreference, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let mut read = *value;
        let known = |item: &str| {
            let (key, text) = item.split_once(':')?;
            let text = text.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "prefer" => read.prefer = word(text)?,
                "operation" => read.operation = word(text)?,
                "keep" => read.keep = word(text)?,
                "transcode" => read.transcode = word(text)?,
                _ => return None,
            }
            Some(())
        };
        let remedy = "write prefer: pending, operation: intersect, keep: all, transcode: allow";
        each(variable, "word of this option", remedy, known)?;
        *value = read;
        Ok(())
    }
}

fn each<T>(
    variable: &Variable,
    what: &str,
    remedy: &str,
    mut parse: impl FnMut(&str) -> Option<T>,
) -> Result<Vec<T>, Finding> {
    let items = variable.value.split(',').map(str::trim).filter(|item| !item.is_empty());
    items
        .map(|item| {
            let message =
                || format!("{}={} holds `{item}`, which is no {what}", variable.name, variable.value);
            parse(item).ok_or_else(|| variable.finding(Level::Error, message(), remedy))
        })
        .collect()
}

fn word<T: crate::config::kind::Choice>(text: &str) -> Option<T> {
    T::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|&(_, value)| value)
}

/// Choices in order, comma separated; the last line wins.
pub struct Ordered<T>(std::marker::PhantomData<T>);
impl<T: crate::config::kind::Choice> Kind for Ordered<T> {
    type Value = Vec<T>;
    fn describe() -> String {
        format!("comma separated: {}", T::describe())
    }
    fn set(value: &mut Vec<T>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = each(variable, "word of this option", &format!("write some of: {}", T::describe()), word)?;
        Ok(())
    }
}

/// One `match=` of an identify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceMatch {
    /// A network.
    Net(Net),
    /// A network, of which only what comes from this port is meant.
    Port(Net, u16),
    /// A host name, to be looked up when the configuration is loaded, with its port if one is written.
    Host(String),
}

/// `match=`; lines add up.
pub struct Sources;
impl Kind for Sources {
    type Value = Vec<SourceMatch>;
    fn describe() -> String {
        "addresses, networks and host names, comma separated, lines add up".into()
    }
    fn set(value: &mut Vec<SourceMatch>, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        value.extend(each(
            variable,
            "address, network or host name",
            "write 192.0.2.0/24 or sip.example.com",
            |item| {
                if let Some((net, port)) = with_port(item) {
                    return Some(SourceMatch::Port(net, port));
                }
                if let Some((net, rest)) = Net::leading(item) {
                    tell_rest(variable, "network", rest, notes);
                    return Some(SourceMatch::Net(net));
                }
                let host =
                    !item.is_empty() && item.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c));
                // Only digits, dots and colons is an address with a typing error, not a name.
                let name =
                    host && item.chars().any(|c| c.is_ascii_alphabetic()) && item.matches(':').count() <= 1;
                name.then(|| SourceMatch::Host(item.to_owned()))
            },
        )?);
        Ok(())
    }
}

/// An address with a port behind it and perhaps a mask behind that: `192.0.2.0:5062/24`, `[2001:db8::1]:5060`.
fn with_port(item: &str) -> Option<(Net, u16)> {
    let (front, mask) = match item.split_once('/') {
        Some((front, mask)) => (front, format!("/{mask}")),
        None => (item, String::new()),
    };
    let (address, port) = front.rsplit_once(':')?;
    // Colons of an address of IPv6 without brackets are its own.
    let bare = address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let address = bare.or_else(|| (!address.contains(':')).then_some(address))?;
    let network = format!("{address}{mask}");
    let (net, rest) = Net::leading(&network)?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    rest.is_empty().then_some((net, port))
}

/// `match_header=Name: value`, the value plain or a `/regular expression/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMatch {
    /// Name of the header.
    pub name: String,
    /// Text the header must equal, or the expression it must match.
    pub value: String,
    /// Whether the value is an expression.
    pub regex: bool,
}

/// `match_header=`; lines add up.
pub struct Headers;
impl Kind for Headers {
    type Value = Vec<HeaderMatch>;
    fn describe() -> String {
        "Name: value or Name: /regex/, lines add up".into()
    }
    fn set(value: &mut Vec<HeaderMatch>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let Some((name, text)) = variable.value.split_once(':') else {
            let message = format!("match_header={} has no colon", variable.value);
            return Err(variable.finding(Level::Error, message, "write match_header=X-Trunk: value"));
        };
        let text = text.trim();
        let inner = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
        value.push(HeaderMatch {
            name: name.trim().to_owned(),
            value: inner.unwrap_or(text).to_owned(),
            regex: inner.is_some(),
        });
        Ok(())
    }
}

/// `password_digest=algorithm:hash`: a stored H(user:realm:password).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordDigest {
    /// Algorithm.
    pub algorithm: DigestAlgorithm,
    /// Hash in hexadecimal.
    pub hash: Secret,
}

/// `password_digest=`; lines add up.
pub struct Digests;
impl Kind for Digests {
    type Value = Vec<PasswordDigest>;
    fn describe() -> String {
        "algorithm:hash, lines add up".into()
    }
    fn set(value: &mut Vec<PasswordDigest>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let digest = variable.value.split_once(':').and_then(|(algorithm, hash)| {
            let algorithm: DigestAlgorithm = word(algorithm.trim())?;
            let hash = hash.trim();
            let digits = if algorithm == DigestAlgorithm::Md5 { 32 } else { 64 };
            let hex = hash.len() == digits && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            hex.then(|| PasswordDigest { algorithm, hash: Secret::new(hash.to_ascii_lowercase()) })
        });
        // The value is a secret, so the message does not repeat it.
        value.push(digest.ok_or_else(|| {
            let message = format!("{} is no algorithm with its hash", variable.name);
            variable.finding(Level::Error, message, "write SHA-256:<64 hexadecimal digits>, or MD5:<32>")
        })?);
        Ok(())
    }
}
