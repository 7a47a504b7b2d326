//! Endpoints: who may call and be called, with which media and under which rules.

use std::rc::Rc;
use std::time::Duration;

use base::{SrtpSuite, UdptlProtection};
use call::{PartyId, Presentation};
use driver::sip::{
    AUDIO_STREAMS_MAX, Access, CodecPrefs, Codecs, DirectMedia, Dtmf, Endpoint, FaxSettings, Feedback, Glare,
    IdentifyBy, Operation, Redirect, Rel100, VIDEO_STREAMS_MAX, VideoSettings, Watching,
};
use sip::sdp::Encryption;
use sip::session::{Policy, Terms};
use store::config::pjsip::{self, DtmfChoice, IdentifyBy as Way};
use store::config::word_of;

use super::{names, seconds, security};
use crate::wire::hosts::{Hosts, address_of};
use crate::wire::{list, marking};

/// Longest name of a tenant, as in the field.
const TENANT_CHARS_MAX: usize = 63;
/// Packet length when the endpoint's formats name none, milliseconds.
const PTIME_MS: u8 = 20;

/// Suites of our offers: the one that everybody has, then stronger ones.
const SUITES: &[SrtpSuite] =
    &[SrtpSuite::AesCm128Sha1Tag80, SrtpSuite::AesCm256Sha1Tag80, SrtpSuite::AesGcm128, SrtpSuite::AesGcm256];
/// The same with `srtp_tag_32`.
const SHORT_TAGS: &[SrtpSuite] = &[SrtpSuite::AesCm128Sha1Tag32, SrtpSuite::AesCm128Sha1Tag80];

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
            incoming_answer: match from.outgoing_call_offer_pref {
                pjsip::OutgoingOfferPref::CodecPrefs => codec_prefs(from.codec_prefs_incoming_answer),
                _ => CodecPrefs::new(Operation::Intersect),
            },
            outgoing_answer: match from.incoming_call_offer_pref {
                pjsip::IncomingOfferPref::CodecPrefs => codec_prefs(from.codec_prefs_outgoing_answer),
                _ => CodecPrefs::new(Operation::Intersect),
            },
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
        stir_profile: from.stir_shaken_profile.clone(),
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
        tenant: from.tenantid.chars().take(TENANT_CHARS_MAX).collect::<String>().into(),
        set_var: from.set_var.clone(),
        busy_at: from.device_state_busy_at,
        call_limit: from.call_limit,
        regexten: from.regexten.clone(),
        ptime_ms: PTIME_MS,
        packets: from.allow.packet_ms.clone(),
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
        guards_logins: from.outbound_auth_strict,
        insecure_invite: from.insecure_invite,
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
        shown: shown(from),
    }
}

/// What is shown of an endpoint and means nothing to the driver in these words.
fn shown(from: &pjsip::Endpoint) -> Vec<(&'static str, String)> {
    let truth = |value: bool| if value { "true" } else { "false" }.to_owned();
    let redirected: &[_] =
        if from.origin.has("follow_redirect_methods") { &from.follow_redirect_methods } else { &[] };
    let variables = from.set_var.iter().map(|(name, value)| format!("{name}={value}"));
    vec![
        ("acl", from.acl.join(",")),
        ("callerid_privacy", word_of(from.callerid_privacy).to_owned()),
        ("codec_prefs_incoming_answer", prefs_text(from.codec_prefs_incoming_answer)),
        ("codec_prefs_incoming_offer", prefs_text(from.codec_prefs_incoming_offer)),
        ("codec_prefs_outgoing_answer", prefs_text(from.codec_prefs_outgoing_answer)),
        ("codec_prefs_outgoing_offer", prefs_text(from.codec_prefs_outgoing_offer)),
        ("contact_acl", from.contact_acl.join(",")),
        ("cos_video", from.cos_video.to_string()),
        ("fax_detect_timeout", from.fax_detect_timeout.to_string()),
        (
            "follow_redirect_methods",
            redirected.iter().map(|method| word_of(*method)).collect::<Vec<_>>().join(","),
        ),
        ("force_avp", truth(from.force_avp)),
        ("incoming_call_offer_pref", word_of(from.incoming_call_offer_pref).to_owned()),
        ("max_video_streams", from.max_video_streams.to_string()),
        ("media_use_received_transport", truth(from.media_use_received_transport)),
        ("outgoing_call_offer_pref", word_of(from.outgoing_call_offer_pref).to_owned()),
        ("preferred_codec_only", truth(from.preferred_codec_only)),
        ("rtp_ipv6", truth(from.rtp_ipv6)),
        ("set_var", variables.collect::<Vec<_>>().join(",")),
        ("srtp_tag_32", truth(from.srtp_tag_32)),
        ("suppress_moh_on_sendonly", truth(from.suppress_moh_on_sendonly)),
        ("t38_udptl_ec", word_of(from.t38_udptl_ec).to_owned()),
        ("t38_udptl_maxdatagram", from.t38_udptl_maxdatagram.to_string()),
        ("tenantid", from.tenantid.clone()),
        ("tos_video", from.tos_video.to_string()),
        ("use_avpf", truth(from.use_avpf)),
    ]
}

/// `codec_prefs_*` as it is shown.
fn prefs_text(prefs: pjsip::CodecPreference) -> String {
    let [prefer, operation] = [word_of(prefs.prefer), word_of(prefs.operation)];
    let [keep, transcode] = [word_of(prefs.keep), word_of(prefs.transcode)];
    format!("prefer:{prefer}, operation:{operation}, keep:{keep}, transcode:{transcode}")
}

/// `incoming_call_offer_pref`; `codec_prefs_incoming_offer` only counts where that says so.
fn incoming_offer(from: &pjsip::Endpoint) -> CodecPrefs {
    use pjsip::IncomingOfferPref::{CodecPrefs as Long, Local, LocalFirst, Remote, RemoteFirst};
    let long = codec_prefs(from.codec_prefs_incoming_offer);
    let short = |configured, first_only| CodecPrefs {
        configured,
        first_only,
        operation: Operation::Intersect,
        transcode: true,
    };
    match from.incoming_call_offer_pref {
        Long => long,
        Local => short(true, false),
        LocalFirst => short(true, true),
        Remote => short(false, false),
        RemoteFirst => short(false, true),
    }
}

/// `outgoing_call_offer_pref`; `codec_prefs_outgoing_offer` only counts where that says so.
fn outgoing_offer(from: &pjsip::Endpoint) -> CodecPrefs {
    use pjsip::OutgoingOfferPref::{
        CodecPrefs as Long, Local, LocalFirst, LocalMerge, Remote, RemoteFirst, RemoteMerge,
    };
    let long = codec_prefs(from.codec_prefs_outgoing_offer);
    let short =
        |configured, operation, first_only| CodecPrefs { configured, first_only, operation, transcode: true };
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
