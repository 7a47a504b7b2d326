//! What the configuration files say, in the words of the SIP driver and the call core.

#[cfg_attr(not(test), allow(dead_code, reason = "until the driver is started with it"))]
pub(crate) mod iax;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use base::dns::{Kind, Question, Records};
use base::{Coded, SrtpSuite, UdptlProtection};
use call::transactions::TransactionRules;
use call::{BanRules, Directories, PartyId, Presentation, Settings};
use conf::Findings;
use driver::sip::{
    AUDIO_STREAMS_MAX, Access, Aor, Auth, Bind, CodecPrefs, Codecs, Config, DirectMedia, Dtmf, Endpoint,
    Exchange, FaxSettings, Feedback, Filter, Glare, Identify, IdentifyBy, InboundPublication, Match,
    Operation, OutboundPublish, Patience, Proof, Redirect, Registration, Rel100, ResourceList, Trace,
    VIDEO_STREAMS_MAX, VideoSettings, Watching,
};
use sip::digest::{Algorithm, Hex};
use sip::registration::Rules;
use sip::sdp::Encryption;
use sip::session::{Policy, Terms};
use sip::stack::{Protocol, Timers, TransportId};
use store::Snapshot;
use store::config::Origin;
use store::config::pjsip::{self, DtmfChoice, IdentifyBy as Way, SourceMatch};
use store::config::rtp::StrictRtp;

/// Binds that the SIP driver can tell apart.
const BINDS_MAX: u16 = driver::sip::BINDS_MAX;
/// Packet length when the endpoint's formats name none, milliseconds.
const PTIME_MS: u8 = 20;

/// The SIP driver's configuration. `hosts` are the addresses of host names in `match=` and of external addresses, as far
/// as they are known; binds that were there `before` keep their numbers.
pub(crate) fn sip_config(
    snapshot: &Snapshot,
    hosts: &Hosts,
    before: &[Bind],
    findings: &mut Findings,
) -> Config {
    let pjsip = &snapshot.pjsip;
    let endpoints = pjsip.endpoints.iter().map(|(name, of)| sip_endpoint(pjsip, name, of, hosts));
    let aors = pjsip.aors.iter().map(|(name, of)| sip_aor(name, of));
    let auths = pjsip.auths.iter().map(|(name, of)| sip_auth(pjsip, name, of));
    let defaults: Vec<Algorithm> =
        pjsip.global.default_auth_algorithms_uas.iter().map(|a| algorithm(*a)).collect();
    let contact_acls: Vec<_> =
        pjsip.acls.iter().filter(|acl| !acl.contact_access.is_empty()).cloned().collect();
    let contact_access: Option<Access> = (!contact_acls.is_empty())
        .then(|| Rc::new(move |ip| contact_acls.iter().all(|acl| acl.contact_access.allows(ip))) as Access);
    let acls = pjsip.acls.clone();
    let access: Option<Access> =
        (!acls.is_empty()).then(|| Rc::new(move |ip| acls.iter().all(|acl| acl.access.allows(ip))) as Access);
    Config {
        endpoints: endpoints.collect(),
        aors: aors.collect(),
        auths: auths.collect(),
        multi_domain: !pjsip.global.disable_multi_domain,
        domain_aliases: pjsip
            .domain_aliases
            .iter()
            .filter(|(_, of)| !of.domain.is_empty())
            .map(|(alias, of)| (alias.to_ascii_lowercase(), of.domain.clone()))
            .collect(),
        identifies: pjsip.identifies.iter().map(|i| identify(i, hosts, findings)).collect(),
        lists: pjsip
            .lists
            .iter()
            .map(|(name, list)| (name.as_str().into(), Rc::new(resource_list(list))))
            .collect(),
        publishes: pjsip
            .publishes
            .iter()
            .filter_map(|(name, of)| Some(Rc::new(outbound_publish(name, of, pjsip, findings)?)))
            .collect(),
        publications: pjsip
            .publications
            .iter()
            .map(|(name, of)| (name.as_str().into(), Rc::new(inbound_publication(of))))
            .collect(),
        exchanges: pjsip
            .exchanges
            .iter()
            .filter_map(|(name, of)| Some((name.as_str().into(), Rc::new(exchange(of, findings)?))))
            .collect(),
        registrations: pjsip.registrations.iter().map(|(name, of)| Rc::new(registration(name, of))).collect(),
        binds: binds(pjsip, hosts, before, findings),
        order: order(&pjsip.global.endpoint_identifier_order),
        default_realm: pjsip.global.default_realm.clone(),
        user_agent: pjsip.global.user_agent.clone(),
        access,
        srtp_replay_protection: snapshot.rtp.srtpreplayprotection,
        strict_rtp: snapshot.rtp.strictrtp != StrictRtp::No,
        rtcp_interval_ms: u16::try_from(snapshot.rtp.rtcpinterval.as_millis()).unwrap_or(5000),
        max_forwards: u8::try_from(pjsip.global.max_forwards).unwrap_or(u8::MAX),
        timers: timers(&pjsip.system),
        tcp_switch: !pjsip.system.disable_tcp_switch,
        default_outbound: pjsip.global.default_outbound_endpoint.clone(),
        default_from_user: pjsip.global.default_from_user.clone(),
        default_algorithms: defaults.clone(),
        contact_access,
        trace: trace(&pjsip.global.debug),
        ignore_user_options: pjsip.global.ignore_uri_user_options,
        ringing_after_progress: pjsip.global.allow_sending_180_after_183,
        initial_qualify: pjsip.global.max_initial_qualify_time,
        callerid_contact: pjsip.global.use_callerid_contact,
        tells_refreshes: pjsip.global.send_contact_status_on_update_registration,
        patience: Patience {
            count: pjsip.global.unidentified_request_count,
            period: pjsip.global.unidentified_request_period,
            prune: pjsip.global.unidentified_request_prune_interval,
        },
        form: sip::Form { compact: pjsip.system.compact_headers, no_rport: pjsip.system.disable_rport },
        offers_all_when_asked: pjsip.global.all_codecs_on_empty_reinvite,
        reg_context: pjsip.global.regcontext.clone(),
    }
}

/// An endpoint under the settings of the stack.
pub(crate) fn sip_endpoint(
    stack: &pjsip::Pjsip,
    name: &str,
    from: &pjsip::Endpoint,
    hosts: &Hosts,
) -> (Rc<str>, Rc<Endpoint>) {
    let name: Rc<str> = name.into();
    let mut endpoint = self::endpoint(name.clone(), from, hosts);
    if endpoint.watching.voicemail.is_empty() {
        endpoint.watching.voicemail.clone_from(&stack.global.default_voicemail_extension);
    }
    endpoint.follow_fork &= stack.system.follow_early_media_fork;
    endpoint.take_every_answer &= stack.system.accept_multiple_sdp_answers;
    (name, Rc::new(endpoint))
}

/// An AOR by its name.
pub(crate) fn sip_aor(name: &str, from: &pjsip::Aor) -> (Rc<str>, Rc<Aor>) {
    let name: Rc<str> = name.into();
    (name.clone(), Rc::new(self::aor(name, from)))
}

/// An auth under the settings of the stack.
pub(crate) fn sip_auth(stack: &pjsip::Pjsip, name: &str, from: &pjsip::Auth) -> (Rc<str>, Rc<Auth>) {
    let of = |list: &[pjsip::DigestAlgorithm]| list.iter().map(|a| algorithm(*a)).collect::<Vec<_>>();
    let mut auth = self::auth(from, &of(&stack.global.default_auth_algorithms_uas));
    if auth.answers.is_empty() {
        auth.answers = of(&stack.global.default_auth_algorithms_uac);
    }
    (name.into(), Rc::new(auth))
}

fn resource_list(from: &pjsip::ResourceList) -> ResourceList {
    ResourceList {
        event: from.event.clone(),
        items: from.list_item.clone(),
        full_state: from.full_state,
        display_names: from.resource_display_name,
        batch: Duration::from_millis(from.notification_batch_interval.into()),
    }
}

/// A regular expression of an option; empty lets everything pass. `None`: it cannot be read, and what it belongs to is left
/// out, so that nothing is told or believed that should not be.
fn filter(text: &str, option: &str, origin: &Origin, findings: &mut Findings) -> Option<Filter> {
    if text.is_empty() {
        return Some(Filter::default());
    }
    match regex::Regex::new(text) {
        Ok(pattern) => {
            Some(Filter { text: text.to_owned(), test: Rc::new(move |name| pattern.is_match(name)) })
        }
        Err(why) => {
            let message =
                format!("[{}] has an expression in {option} that cannot be read: {why}", origin.name);
            findings.error(origin.place_of(option), message, "correct the expression");
            None
        }
    }
}

fn outbound_publish(
    name: &str,
    from: &pjsip::OutboundPublish,
    pjsip: &pjsip::Pjsip,
    findings: &mut Findings,
) -> Option<OutboundPublish> {
    let mut filter = |text: &str, option: &str| filter(text, option, &from.origin, findings);
    let asks = pjsip.exchanges.values().any(|exchange| {
        (exchange.device_state && exchange.devicestate_publish == name)
            || (exchange.mailbox_state && exchange.mailboxstate_publish == name)
    });
    Some(OutboundPublish {
        name: name.into(),
        event: from.event.clone(),
        server_uri: from.server_uri.clone(),
        from_uri: from.from_uri.clone(),
        to_uri: from.to_uri.clone(),
        expiration: seconds(from.expiration),
        rejections_max: from.max_auth_attempts,
        multi_user: from.multi_user,
        outbound_auths: names(&from.outbound_auth),
        outbound_proxy: from.outbound_proxy.clone(),
        transport: from.transport.clone(),
        body: from.body.clone(),
        contexts: filter(&from.context, "@context")?,
        extens: filter(&from.exten, "@exten")?,
        devices: filter(&from.device_state_filter, "@device_state_filter")?,
        mailboxes: filter(&from.mailbox_state_filter, "@mailbox_state_filter")?,
        asks,
    })
}

fn inbound_publication(from: &pjsip::InboundPublication) -> InboundPublication {
    InboundPublication {
        endpoint: from.endpoint.as_str().into(),
        devices: from.devices.as_str().into(),
        mailboxes: from.mailboxes.as_str().into(),
    }
}

fn exchange(from: &pjsip::AsteriskPublication, findings: &mut Findings) -> Option<Exchange> {
    let mut filter = |text: &str, option: &str| filter(text, option, &from.origin, findings);
    let devices = filter(&from.device_state_filter, "device_state_filter")?;
    let mailboxes = filter(&from.mailbox_state_filter, "mailbox_state_filter")?;
    Some(Exchange {
        devices: from.device_state.then_some(devices),
        mailboxes: from.mailbox_state.then_some(mailboxes),
        devices_publish: from.devicestate_publish.clone(),
        mailboxes_publish: from.mailboxstate_publish.clone(),
    })
}

fn timers(system: &pjsip::System) -> Timers {
    Timers::new(system.timer_t1, Some(system.timer_b).filter(|timeout| !timeout.is_zero()))
}

fn trace(text: &str) -> Trace {
    match (conf::boolean(text), text.parse()) {
        (Some(true), _) => Trace::All,
        (None, Ok(host)) => Trace::Hosts(vec![host]),
        _ => Trace::Off,
    }
}

/// The order of identification: as written, and then what else identify objects can tell.
fn order(names: &[String]) -> Vec<IdentifyBy> {
    let written = names.iter().filter_map(|name| match name.to_ascii_lowercase().as_str() {
        "ip" => Some(IdentifyBy::Ip),
        "username" => Some(IdentifyBy::Username),
        "auth_username" => Some(IdentifyBy::AuthUsername),
        "header" => Some(IdentifyBy::Header),
        "request_uri" => Some(IdentifyBy::RequestUri),
        "transport" => Some(IdentifyBy::Transport),
        "anonymous" => Some(IdentifyBy::Anonymous),
        _ => None,
    });
    let mut order: Vec<IdentifyBy> = written.collect();
    for unnamed in [IdentifyBy::Header, IdentifyBy::RequestUri, IdentifyBy::Transport] {
        if !order.contains(&unnamed) {
            order.push(unnamed);
        }
    }
    order
}

/// The binds. One that listened at the same address `before` keeps its number, so that calls and registrations that
/// came over it still know their way.
fn binds(pjsip: &pjsip::Pjsip, hosts: &Hosts, before: &[Bind], findings: &mut Findings) -> Vec<Bind> {
    let mut made: Vec<Bind> = Vec::new();
    let mut transports: Vec<_> = pjsip.transports.iter().collect();
    // Who stands first in the file is who is met by a client under TLS that names nobody.
    transports.sort_by(|(_, a), (_, b)| a.origin.place.cmp(&b.origin.place));
    for (name, transport) in transports {
        let protocol = match transport.protocol {
            pjsip::Protocol::Udp => Protocol::Udp,
            pjsip::Protocol::Tcp => Protocol::Tcp,
            pjsip::Protocol::Tls => Protocol::Tls,
            pjsip::Protocol::Ws => Protocol::Ws,
            pjsip::Protocol::Wss => Protocol::Wss,
            pjsip::Protocol::Flow => continue,
        };
        let Some(local) = transport.address() else { continue };
        let same = |bind: &&Bind| bind.protocol == protocol && bind.local == local;
        let other = made.iter().find(same).and_then(|bind| pjsip.transports.get_key_value(&bind.name));
        if let Some((other, first)) = other
            && let Err((option, remedy)) = beside(first, transport)
        {
            let message = format!("transport '{name}' listens where '{other}' does and is not opened");
            findings.error(transport.origin.place_of(option), message, remedy);
            continue;
        }
        // Of those that share an address each keeps its own, and who is renamed what nobody has any more.
        let own = |bind: &&Bind| bind.name == *name;
        let is_here =
            |other: &pjsip::Transport| other.protocol == transport.protocol && other.address() == Some(local);
        let is_free = |bind: &&Bind| {
            !pjsip.transports.get(&bind.name).is_some_and(is_here)
                && !made.iter().any(|made| made.id == bind.id)
        };
        let at_home = || before.iter().filter(same);
        let kept = at_home().find(own).or_else(|| at_home().find(is_free)).map(|bind| bind.id);
        let taken = |id: u16| before.iter().chain(&made).any(|bind| bind.id.0 == id);
        let Some(id) = kept.or_else(|| (0..BINDS_MAX).find(|id| !taken(*id)).map(TransportId)) else {
            let message = format!("transport '{name}' is one too many; {BINDS_MAX} are possible");
            findings.error(transport.origin.place_of("bind"), message, "remove transports or restart");
            continue;
        };
        let port = match transport.external_signaling_port {
            0 => local.port(),
            port => port,
        };
        let external = &transport.external_signaling_address;
        made.push(Bind {
            name: name.clone(),
            id,
            protocol,
            local,
            external_media: address_of(&transport.external_media_address, hosts),
            external_signaling: (!external.is_empty()).then(|| host_port(external, port)),
            local_nets: transport.local_net.iter().map(|net| net.parts()).collect(),
            domain: transport.domain.clone(),
            marking: marking(transport.tos, transport.cos),
        });
    }
    made
}

/// Whether a transport may listen where the first one there does: under TLS, when clients can tell them apart by name and
/// are asked for the same whichever they name. Else which option is in the way, and what to do.
fn beside(first: &pjsip::Transport, other: &pjsip::Transport) -> Result<(), (&'static str, &'static str)> {
    if other.protocol != pjsip::Protocol::Tls {
        return Err(("bind", "give one of them another bind="));
    }
    // What a client must prove may not depend on what it says.
    let rows = [
        ("verify_client", first.verify_client == other.verify_client),
        ("require_client_cert", first.require_client_cert == other.require_client_cert),
        ("ca_list_file", first.ca_list_file == other.ca_list_file || !first.verify_client),
        ("ca_list_path", first.ca_list_path == other.ca_list_path || !first.verify_client),
        ("method", first.method == other.method),
        ("cipher", first.cipher == other.cipher),
    ];
    match rows.iter().find(|(_, agrees)| !agrees) {
        Some((option, _)) => {
            let remedy = "transports of one address need the same verify_client, require_client_cert, ca_list_file, \
                          ca_list_path, method and cipher; or give one of them another bind=";
            Err((*option, remedy))
        }
        None if other.cert_file.is_empty() || first.cert_file.is_empty() => Err((
            "bind",
            "give each of them a cert_file with the name that its clients ask for, or another bind=",
        )),
        None => Ok(()),
    }
}

fn marking(tos: u8, cos: u32) -> base::Marking {
    base::Marking { tos, priority: u8::try_from(cos).unwrap_or(0) }
}

/// An address written as one, or the first that its name has.
fn address_of(text: &str, hosts: &Hosts) -> Option<IpAddr> {
    let first = || hosts.addresses.get(&text.to_ascii_lowercase())?.first().copied();
    text.parse().ok().or_else(first)
}

fn host_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

fn names(list: &[String]) -> Vec<Rc<str>> {
    list.iter().map(|name| name.as_str().into()).collect()
}

/// Suites of our offers: the one that everybody has, then stronger ones.
const SUITES: &[SrtpSuite] =
    &[SrtpSuite::AesCm128Sha1Tag80, SrtpSuite::AesCm256Sha1Tag80, SrtpSuite::AesGcm128, SrtpSuite::AesGcm256];
/// The same with `srtp_tag_32`.
const SHORT_TAGS: &[SrtpSuite] = &[SrtpSuite::AesCm128Sha1Tag32, SrtpSuite::AesCm128Sha1Tag80];

/// Mechanisms of security agreements, where such are made; malformed ones were named when they were read.
fn security(negotiation: pjsip::SecurityNegotiation, mechanisms: &[String]) -> Vec<String> {
    let usable = |mechanism: &&String| sip::agreement::is_mechanism(mechanism.as_bytes());
    match negotiation {
        pjsip::SecurityNegotiation::No => Vec::new(),
        pjsip::SecurityNegotiation::Mediasec => mechanisms.iter().filter(usable).cloned().collect(),
    }
}

fn encryption(from: &pjsip::Endpoint) -> Option<Encryption<'static>> {
    (from.media_encryption == pjsip::MediaEncryption::Sdes).then_some(Encryption {
        suites: if from.srtp_tag_32 { SHORT_TAGS } else { SUITES },
        optimistic: from.media_encryption_optimistic,
        force_avp: from.force_avp,
        to_edge: !security(from.security_negotiation, &from.security_mechanisms).is_empty(),
        random: crate::start::fill_secret,
    })
}

fn endpoint(name: Rc<str>, from: &pjsip::Endpoint, hosts: &Hosts) -> Endpoint {
    let mut caller = PartyId::parse(&from.callerid);
    caller.number_presentation = presentation(from.callerid_privacy);
    caller.name_presentation = caller.number_presentation;
    caller.tag.clone_from(&from.callerid_tag);
    let (access, contact_access) = (from.access.clone(), from.contact_access.clone());
    Endpoint {
        is_realtime: false,
        name,
        context: from.context.clone(),
        aors: names(&from.aors),
        auths: names(&from.auth),
        outbound_auths: names(&from.outbound_auth),
        allow: from.allow.formats,
        codecs: Codecs {
            incoming_offer: incoming_offer(from),
            outgoing_offer: outgoing_offer(from),
            incoming_answer: codec_prefs(from.codec_prefs_incoming_answer),
            outgoing_answer: codec_prefs(from.codec_prefs_outgoing_answer),
            single_answer: from.preferred_codec_only,
        },
        direct: from.direct_media.then(|| DirectMedia {
            by_update: from.direct_media_method == pjsip::DirectMediaMethod::Update,
            glare: match from.direct_media_glare_mitigation {
                pjsip::GlareMitigation::None => Glare::None,
                pjsip::GlareMitigation::Outgoing => Glare::Outgoing,
                pjsip::GlareMitigation::Incoming => Glare::Incoming,
            },
            not_behind_nat: from.disable_direct_media_on_nat,
        }),
        asymmetric_codec: from.asymmetric_rtp_codec,
        rtcp_mux: from.rtcp_mux,
        feedback: from.use_avpf.then_some(match from.media_use_received_transport {
            true => Feedback::Offered,
            false => Feedback::Required,
        }),
        g726_aal2: from.g726_non_standard,
        passes_hold: from.moh_passthrough,
        silent_hold: from.suppress_moh_on_sendonly,
        bind_media: from.bind_rtp_to_media_address,
        fax_detect: from.fax_detect.then(|| call::FaxWatch {
            tone: true,
            offer: true,
            timeout: Duration::from_secs(from.fax_detect_timeout.into()),
        }),
        fax: from.t38_udptl.then(|| FaxSettings {
            protection: match from.t38_udptl_ec {
                pjsip::FaxProtection::None => UdptlProtection::None,
                pjsip::FaxProtection::Redundancy => UdptlProtection::Redundancy,
                pjsip::FaxProtection::Fec => UdptlProtection::Fec,
            },
            datagram_max: u16::try_from(from.t38_udptl_maxdatagram).unwrap_or(0),
            nat: from.t38_udptl_nat,
        }),
        transport: from.transport.clone(),
        caller,
        from_user: from.from_user.clone(),
        from_domain: from.from_domain.clone(),
        trust_id_inbound: from.trust_id_inbound,
        trust_id_outbound: from.trust_id_outbound,
        send_pai: from.send_pai,
        send_rpid: from.send_rpid,
        identify_by: from.identify_by.iter().filter_map(|way| identify_by(*way)).collect(),
        force_rport: from.force_rport,
        rewrite_contact: from.rewrite_contact,
        rtp_symmetric: from.rtp_symmetric,
        dtmf: match from.dtmf_mode {
            DtmfChoice::Rfc4733 => Dtmf::Rfc4733,
            DtmfChoice::Inband => Dtmf::Inband,
            DtmfChoice::Info => Dtmf::Info,
            DtmfChoice::Auto => Dtmf::Auto,
            DtmfChoice::AutoInfo => Dtmf::AutoInfo,
        },
        media_address: address_of(&from.media_address, hosts),
        language: from.language.clone(),
        tone_zone: from.tone_zone.clone(),
        music_class: from.moh_suggest.clone(),
        pickup: pickup_groups(from),
        account: from.accountcode.clone(),
        set_var: from.set_var.clone(),
        busy_at: from.device_state_busy_at,
        call_limit: from.call_limit,
        regexten: from.regexten.clone(),
        ptime_ms: PTIME_MS,
        use_ptime: from.use_ptime,
        encryption: encryption(from),
        security: security(from.security_negotiation, &from.security_mechanisms),
        rtp_timeout: seconds(from.rtp_timeout),
        rtp_timeout_hold: seconds(from.rtp_timeout_hold),
        rtp_keepalive: seconds(from.rtp_keepalive),
        marking: marking(from.tos_audio, from.cos_audio),
        audio_streams: u8::try_from(from.max_audio_streams)
            .unwrap_or(AUDIO_STREAMS_MAX)
            .min(AUDIO_STREAMS_MAX),
        video: VideoSettings {
            formats: from.allow.video,
            streams: u8::try_from(from.max_video_streams).unwrap_or(VIDEO_STREAMS_MAX).min(VIDEO_STREAMS_MAX),
            marking: marking(from.tos_video, from.cos_video),
        },
        access: (!access.is_empty()).then(|| Rc::new(move |ip| access.allows(ip)) as Access),
        inband_progress: from.inband_progress == pjsip::Inband::Yes,
        user_eq_phone: from.user_eq_phone,
        contact_user: from.contact_user.clone(),
        outbound_proxy: from.outbound_proxy.clone(),
        allow_overlap: from.allow_overlap,
        unauthenticated_options: from.allow_unauthenticated_options,
        overlap_context: from.overlap_context.clone(),
        rel100: match from.rel100 {
            pjsip::Rel100::No => Rel100::No,
            pjsip::Rel100::Yes => Rel100::Yes,
            pjsip::Rel100::PeerSupported => Rel100::PeerSupported,
            pjsip::Rel100::Required => Rel100::Required,
        },
        timers: Terms {
            policy: match from.timers {
                pjsip::SessionTimers::No => Policy::No,
                pjsip::SessionTimers::Yes => Policy::Yes,
                pjsip::SessionTimers::Required => Policy::Required,
                pjsip::SessionTimers::Always => Policy::Always,
            },
            min_se: seconds(from.timers_min_se),
            expires: seconds(from.timers_sess_expires),
        },
        follows_messages: from.follow_redirect_methods.contains(&pjsip::RedirectedMethod::Message),
        redirect: match from.redirect_method {
            pjsip::RedirectMethod::User => Redirect::User,
            pjsip::RedirectMethod::UriCore => Redirect::UriCore,
            pjsip::RedirectMethod::UriPjsip => Redirect::UriPjsip,
        },
        send_diversion: from.send_diversion,
        send_history: from.send_history_info,
        recording: driver::sip::OneTouch {
            by_key: from.one_touch_recording,
            on_feature: from.record_on_feature.clone(),
            off_feature: from.record_off_feature.clone(),
        },
        send_aoc: from.send_aoc,
        send_connected_line: from.send_connected_line,
        trust_connected_line: from.trust_connected_line,
        connected_by_update: from.connected_line_method == pjsip::ConnectedLine::Update,
        rpid_immediate: from.rpid_immediate,
        ignore_183_without_sdp: from.ignore_183_without_sdp,
        follow_fork: from.follow_early_media_fork,
        take_every_answer: from.accept_multiple_sdp_answers,
        suppress_reason: from.suppress_q850_reason_headers,
        contact_access: (!contact_access.is_empty())
            .then(|| Rc::new(move |ip| contact_access.allows(ip)) as Access),
        sdp_owner: from.sdp_owner.clone(),
        sdp_session: from.sdp_session.clone(),
        watching: watching(from),
        allow_transfer: from.allow_transfer,
        refer_progress: from.refer_blind_progress,
        message_context: from.message_context.clone(),
    }
}

/// `incoming_call_offer_pref`, or else `codec_prefs_incoming_offer`.
fn incoming_offer(from: &pjsip::Endpoint) -> CodecPrefs {
    use pjsip::IncomingOfferPref::{CodecPrefs as Long, Local, LocalFirst, Remote, RemoteFirst};
    let long = codec_prefs(from.codec_prefs_incoming_offer);
    let short = |configured, first_only| CodecPrefs {
        configured,
        first_only,
        operation: Operation::Intersect,
        transcode: long.transcode,
    };
    match from.incoming_call_offer_pref {
        Long => long,
        Local => short(true, false),
        LocalFirst => short(true, true),
        Remote => short(false, false),
        RemoteFirst => short(false, true),
    }
}

/// `outgoing_call_offer_pref`, or else `codec_prefs_outgoing_offer`.
fn outgoing_offer(from: &pjsip::Endpoint) -> CodecPrefs {
    use pjsip::OutgoingOfferPref::{
        CodecPrefs as Long, Local, LocalFirst, LocalMerge, Remote, RemoteFirst, RemoteMerge,
    };
    let long = codec_prefs(from.codec_prefs_outgoing_offer);
    let short = |configured, operation, first_only| CodecPrefs {
        configured,
        first_only,
        operation,
        transcode: long.transcode,
    };
    match from.outgoing_call_offer_pref {
        Long => long,
        Local => short(true, Operation::Intersect, false),
        LocalMerge => short(true, Operation::Union, false),
        LocalFirst => short(true, Operation::Intersect, true),
        Remote => short(false, Operation::Intersect, false),
        RemoteMerge => short(false, Operation::Union, false),
        RemoteFirst => short(false, Operation::Intersect, true),
    }
}

fn codec_prefs(from: pjsip::CodecPreference) -> CodecPrefs {
    CodecPrefs {
        configured: from.prefer == pjsip::CodecPrefer::Configured,
        operation: match from.operation {
            pjsip::CodecOperation::Intersect => Operation::Intersect,
            pjsip::CodecOperation::Union => Operation::Union,
            pjsip::CodecOperation::OnlyPreferred => Operation::OnlyPreferred,
            pjsip::CodecOperation::OnlyNonpreferred => Operation::OnlyNonpreferred,
        },
        first_only: from.keep == pjsip::CodecKeep::First,
        transcode: from.transcode == pjsip::CodecTranscode::Allow,
    }
}

fn watching(from: &pjsip::Endpoint) -> Watching {
    Watching {
        allow: from.allow_subscribe,
        context: from.subscribe_context.clone(),
        early_ringing: from.notify_early_inuse_ringing,
        seconds_min: seconds(from.sub_min_expiry),
        mailboxes: list(&from.mailboxes),
        aggregate: from.aggregate_mwi,
        subscribing_replaces: from.mwi_subscribe_replaces_unsolicited,
        from_user: from.mwi_from_user.clone(),
        voicemail: from.voicemail_extension.clone(),
        incoming: from.incoming_mwi_mailbox.clone(),
    }
}

/// The items of lists that commas part.
fn list(lines: &[String]) -> Vec<String> {
    let items = lines.iter().flat_map(|line| line.split(',')).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn presentation(of: pjsip::Presence) -> Presentation {
    use pjsip::Presence as From;
    match of {
        From::AllowedNotScreened => Presentation::AllowedNotScreened,
        From::AllowedPassedScreen => Presentation::AllowedPassedScreen,
        From::AllowedFailedScreen => Presentation::AllowedFailedScreen,
        From::Allowed => Presentation::Allowed,
        From::ProhibNotScreened => Presentation::ProhibNotScreened,
        From::ProhibPassedScreen => Presentation::ProhibPassedScreen,
        From::ProhibFailedScreen => Presentation::ProhibFailedScreen,
        From::Prohib => Presentation::Prohib,
        From::Unavailable => Presentation::Unavailable,
    }
}

fn identify_by(way: Way) -> Option<IdentifyBy> {
    match way {
        Way::Username => Some(IdentifyBy::Username),
        Way::AuthUsername => Some(IdentifyBy::AuthUsername),
        Way::Ip => Some(IdentifyBy::Ip),
        Way::Header => Some(IdentifyBy::Header),
        Way::RequestUri => Some(IdentifyBy::RequestUri),
        Way::Transport => Some(IdentifyBy::Transport),
        Way::Anonymous => None,
    }
}

fn registration(name: &str, from: &pjsip::Registration) -> Registration {
    let wait = |wait: Duration| Some(wait).filter(|wait| !wait.is_zero());
    Registration {
        name: name.into(),
        server_uri: from.server_uri.clone(),
        client_uri: from.client_uri.clone(),
        transport: from.transport.clone(),
        outbound_proxy: from.outbound_proxy.clone(),
        outbound_auths: names(&from.outbound_auth),
        contact_user: from.contact_user.clone(),
        contact_params: from.contact_header_params.clone(),
        rules: Rules {
            expiration: seconds(from.expiration),
            retry: wait(from.retry_interval),
            forbidden_retry: wait(from.forbidden_retry_interval),
            fatal_retry: wait(from.fatal_retry_interval),
            max_retries: from.max_retries,
            rejection_is_permanent: from.auth_rejection_permanent,
        },
        line: from.line,
        endpoint: from.endpoint.as_str().into(),
        path: from.support_path,
        outbound: from.support_outbound,
        user_agent: from.user_agent.clone(),
        security: security(from.security_negotiation, &from.security_mechanisms),
    }
}

fn aor(name: Rc<str>, from: &pjsip::Aor) -> Aor {
    Aor {
        name,
        contacts: from.contact.clone(),
        max_contacts: usize::try_from(from.max_contacts).unwrap_or(usize::MAX),
        remove_existing: from.remove_existing,
        remove_unavailable: from.remove_unavailable,
        default_expiration: seconds(from.default_expiration),
        minimum_expiration: seconds(from.minimum_expiration),
        maximum_expiration: seconds(from.maximum_expiration),
        qualify_frequency: seconds(from.qualify_frequency),
        qualify_timeout: from.qualify_timeout,
        qualify_2xx_only: from.qualify_2xx_only,
        authenticate_qualify: from.authenticate_qualify,
        outbound_proxy: from.outbound_proxy.clone(),
        support_path: from.support_path,
        mailboxes: list(&from.mailboxes),
        voicemail: from.voicemail_extension.clone(),
    }
}

/// `defaults` are the algorithms of challenges when the auth names none: those that its secret can prove count. Phones of
/// twenty years know MD5 alone and some take the first challenge for the only one, so that it is the default.
fn auth(from: &pjsip::Auth, defaults: &[Algorithm]) -> Auth {
    let (password, md5) = (from.password.expose(), from.md5_cred.expose());
    let md5 = Hex::parse(md5.as_bytes()).filter(|_| !md5.is_empty()).map(|ha1| (Algorithm::Md5, ha1));
    let stored = from.password_digest.iter().filter_map(|digest| {
        Some((algorithm(digest.algorithm), Hex::parse(digest.hash.expose().as_bytes())?))
    });
    let mut hashes: Vec<(Algorithm, Hex)> = Vec::new();
    for (algorithm, ha1) in md5.into_iter().chain(stored) {
        // The first line of an algorithm holds.
        if !hashes.iter().any(|(known, _)| *known == algorithm) {
            hashes.push((algorithm, ha1));
        }
    }
    let all = vec![Algorithm::Sha512_256, Algorithm::Sha256, Algorithm::Md5];
    let (proof, provable) = if password.is_empty() && !hashes.is_empty() {
        let has = |wish: &Algorithm| hashes.iter().any(|(algorithm, _)| algorithm == wish);
        let provable: Vec<Algorithm> = all.into_iter().filter(has).collect();
        (Proof::Hashes(hashes), provable)
    } else {
        (Proof::Password(password.to_owned()), all)
    };
    let wanted: Vec<Algorithm> = from.supported_algorithms_uas.iter().map(|a| self::algorithm(*a)).collect();
    let wanted = if wanted.is_empty() { defaults } else { &wanted };
    let algorithms: Vec<Algorithm> = wanted.iter().copied().filter(|wish| provable.contains(wish)).collect();
    let algorithms = if algorithms.is_empty() { provable } else { algorithms };
    let answers: Vec<Algorithm> = from.supported_algorithms_uac.iter().map(|a| self::algorithm(*a)).collect();
    Auth { username: from.username.clone(), realm: from.realm.clone(), proof, algorithms, answers }
}

fn algorithm(of: pjsip::DigestAlgorithm) -> Algorithm {
    match of {
        pjsip::DigestAlgorithm::Md5 => Algorithm::Md5,
        pjsip::DigestAlgorithm::Sha256 => Algorithm::Sha256,
        pjsip::DigestAlgorithm::Sha512_256 => Algorithm::Sha512_256,
    }
}

fn identify(from: &pjsip::Identify, hosts: &Hosts, findings: &mut Findings) -> Identify {
    let mut matches = Vec::new();
    for source in &from.match_source {
        match source {
            SourceMatch::Net(net) => {
                let net = *net;
                matches.push(Match::Source(Rc::new(move |ip| net.contains(ip))));
            }
            SourceMatch::Host(host) => {
                let known = hosts.of(&bare(host), from.srv_lookups);
                matches.push(Match::Source(Rc::new(move |ip| known.contains(&ip.to_canonical()))));
            }
        }
    }
    for header in &from.match_header {
        if let Some(test) = tester(&header.value, header.regex, from, findings) {
            matches.push(Match::Header(header.name.clone(), test));
        }
    }
    let uri = &from.match_request_uri;
    if !uri.is_empty() {
        let inner = uri.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
        if let Some(test) = tester(inner.unwrap_or(uri), inner.is_some(), from, findings) {
            matches.push(Match::RequestUri(test));
        }
    }
    Identify {
        name: Rc::from(&*from.origin.name),
        endpoint: from.endpoint.as_str().into(),
        matches,
        transport: from.transport.clone(),
    }
}

/// A host of `match=` without its port.
fn bare(host: &str) -> String {
    host.split(':').next().unwrap_or(host).to_ascii_lowercase()
}

/// The services of SIP that a name may have (RFC 3263 §4.1), as labels before it.
const SERVICES: [&str; 3] = ["_sip._udp", "_sip._tcp", "_sips._tcp"];
/// Servers of one service that are looked at.
const SERVERS_MAX: usize = 32;

/// What the DNS has said of the names that the configuration itself depends on.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Addresses of hosts.
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Hosts that serve, by the name of the service.
    services: BTreeMap<String, Vec<String>>,
}

impl Hosts {
    /// Takes an answer in; whether it says something new.
    pub(crate) fn learn(&mut self, question: &Question, records: &Records) -> bool {
        let name = question.name.clone();
        match records {
            Records::Addresses(found) => {
                let found = found.to_vec();
                self.addresses.insert(name, found.clone()).as_ref() != Some(&found)
            }
            Records::Srv(found) => {
                let targets = found.iter().take(SERVERS_MAX).filter(|record| !record.target.is_empty());
                let targets: Vec<String> =
                    targets.map(|record| Question::new(Kind::Addresses, &record.target).name).collect();
                self.services.insert(name, targets.clone()).as_ref() != Some(&targets)
            }
            Records::Naptr(_) => false,
        }
    }
    /// The addresses of a host, and of its servers when they count.
    fn of(&self, host: &str, with_servers: bool) -> Vec<IpAddr> {
        let servers = SERVICES.iter().filter(|_| with_servers).flat_map(|service| {
            self.services.get(&format!("{service}.{host}")).into_iter().flatten().map(String::as_str)
        });
        let addresses = |name| self.addresses.get(name).into_iter().flatten().copied();
        core::iter::once(host).chain(servers).flat_map(addresses).collect()
    }
}

/// What is to be asked for `identify` objects and for our own addresses as the world sees them, as far as it is known that it
/// has to be: which servers a name has, another answer says. Contacts and proxies are asked for by the driver.
pub(crate) fn questions(snapshot: &Snapshot, hosts: &Hosts) -> Vec<Question> {
    let mut questions: Vec<Question> =
        host_names(snapshot).iter().map(|name| Question::new(Kind::Addresses, name)).collect();
    let identifies = snapshot.pjsip.identifies.iter().filter(|identify| identify.srv_lookups);
    for source in identifies.flat_map(|identify| &identify.match_source) {
        let SourceMatch::Host(host) = source else { continue };
        for service in SERVICES {
            let service = Question::new(Kind::Srv, &format!("{service}.{}", bare(host)));
            let servers = hosts.services.get(&service.name).into_iter().flatten();
            questions.extend(servers.map(|server| Question::new(Kind::Addresses, server)));
            questions.push(service);
        }
    }
    questions
}

/// Host names that the configuration itself depends on, for the resolver: in `match=`, and our own addresses as the world
/// sees them. Contacts and proxies are asked for by the driver.
fn host_names(snapshot: &Snapshot) -> Vec<String> {
    let pjsip = &snapshot.pjsip;
    let sources = pjsip.identifies.iter().flat_map(|identify| &identify.match_source);
    let mut names: Vec<String> = sources
        .filter_map(|source| match source {
            SourceMatch::Host(host) => Some(bare(host)),
            SourceMatch::Net(_) => None,
        })
        .collect();
    let own = pjsip.transports.values().map(|transport| &transport.external_media_address);
    let own = own.chain(pjsip.endpoints.values().map(|endpoint| &endpoint.media_address));
    let named = own.filter(|text| !text.is_empty() && text.parse::<IpAddr>().is_err());
    names.extend(named.map(|text| text.to_ascii_lowercase()));
    names.sort();
    names.dedup();
    names
}

/// A test of a header's value or of a Request-URI.
type Test = Rc<dyn Fn(&str) -> bool>;

fn tester(text: &str, is_regex: bool, from: &pjsip::Identify, findings: &mut Findings) -> Option<Test> {
    if !is_regex {
        let wanted = text.to_owned();
        return Some(Rc::new(move |value| value.trim() == wanted));
    }
    match regex::Regex::new(text) {
        Ok(pattern) => Some(Rc::new(move |value| pattern.is_match(value))),
        Err(why) => {
            let message =
                format!("identify '{}' has an expression that cannot be read: {why}", from.origin.name);
            findings.error(&from.origin.place, message, "correct the expression");
            None
        }
    }
}

/// What this system is called.
pub(crate) fn system_name(snapshot: &Snapshot) -> String {
    let options = &snapshot.asterisk.options;
    match (options.autosystemname, options.systemname.as_str()) {
        (true, "") => io::process::host_name(),
        (_, name) => name.to_owned(),
    }
}

/// Groups of call pickup; their numbers were checked when they were read.
fn pickup_groups(from: &pjsip::Endpoint) -> Rc<call::pickup::PickupGroups> {
    let groups = |numbers: &str, names: &[String]| {
        let mut groups = call::pickup::Groups::default();
        let _ = groups.set_numbers(numbers);
        groups.set_names(&names.join(","));
        groups
    };
    Rc::new(call::pickup::PickupGroups {
        call: groups(&from.call_group, &from.named_call_group),
        pickup: groups(&from.pickup_group, &from.named_pickup_group),
    })
}

/// The call core's settings.
pub(crate) fn settings(snapshot: &Snapshot, coded: Coded) -> Settings {
    let options = &snapshot.asterisk.options;
    let general = &snapshot.cdr.general;
    Settings {
        coded,
        system_name: system_name(snapshot),
        entity_id: options.entityid.clone(),
        language: options.defaultlanguage.clone(),
        country: snapshot.tones.general.country.clone(),
        directories: directories(snapshot),
        transmit_silence: options.transmit_silence,
        named_music_first: !snapshot.music.general.preferchannelclass,
        cdr_enabled: general.enable,
        cdr_unanswered: general.unanswered,
        cdr_congestion: general.congestion,
        cdr_end_before_h: general.endbeforehexten,
        cel: snapshot.cel.settings().map(Rc::new),
        cdr_on_request: !general.channeldefaultenabled,
        cdr_initiated_seconds: general.initiatedseconds,
        cdr_ignore_dialling: general.ignoredialchanges,
        disabled_modules: snapshot.modules.disabled().clone(),
        live_dangerously: options.live_dangerously,
        conferences: snapshot.confbridge.profiles.clone(),
        meeting_rooms: snapshot.meetme.rooms.clone(),
        bookings: call::conference::Bookings {
            has_rows: !snapshot.realtime.families.of("meetme").is_empty(),
            ..snapshot.meetme.bookings.clone()
        },
        follow_me: snapshot.followme.profiles.clone(),
        features: Rc::new(snapshot.features.clone()),
        music_when_answered: {
            let only = snapshot.music.classes.iter().filter(|(_, class)| class.answeredonly);
            Rc::new(only.map(|(name, _)| name.clone()).collect())
        },
        music_keys: Rc::new(snapshot.music.keys()),
        machines: snapshot.amd.machines(),
        transactions: Rc::new(transaction_rules(snapshot)),
        voicemail: snapshot.voicemail.voicemail.clone(),
        minivm: snapshot.minivm.clone(),
    }
}

/// Databases that the dialplan can name, and what holds for transactions in them. Of two with a name the class of
/// `res_odbc.conf` is meant, which comes first.
fn transaction_rules(snapshot: &Snapshot) -> BTreeMap<String, TransactionRules> {
    let mut rules = BTreeMap::new();
    for ((_, name), of) in &snapshot.realtime.databases {
        let own = TransactionRules { isolation: of.isolation, forcecommit: of.forcecommit };
        rules.entry(name.clone()).or_insert(own);
    }
    rules
}

/// Who is banned when.
pub(crate) fn ban_rules(snapshot: &Snapshot) -> BanRules {
    let bans = &snapshot.asterisk.bans;
    if !bans.enabled {
        return BanRules::default();
    }
    let own = [(IpAddr::V4(Ipv4Addr::LOCALHOST), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)];
    let own = own.into_iter().filter(|_| !bans.loopback);
    BanRules {
        per_user: bans.maxretry,
        per_address: bans.maxretry_address,
        span: bans.findtime,
        first: bans.bantime,
        longest: bans.maxbantime.max(bans.bantime),
        allowed: bans.ignoreip.iter().map(|net| net.parts()).chain(own).collect(),
    }
}

fn directories(snapshot: &Snapshot) -> Directories {
    let from = &snapshot.asterisk.directories;
    let rows = [
        ("etc", &from.astetcdir),
        ("mod", &from.astmoddir),
        ("varlib", &from.astvarlibdir),
        ("db", &from.astdbdir),
        ("key", &from.astkeydir),
        ("data", &from.astdatadir),
        ("agi", &from.astagidir),
        ("spool", &from.astspooldir),
        ("run", &from.astrundir),
        ("log", &from.astlogdir),
        ("sbin", &from.astsbindir),
        ("cache", &from.astcachedir),
    ];
    Directories(rows.into_iter().map(|(name, path)| (name.to_owned(), path.display().to_string())).collect())
}

#[cfg(test)]
mod tests;
