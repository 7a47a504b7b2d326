//! Every option that the tables call supported reaches the driver, and changes it the way its row says.

use std::collections::BTreeSet;

use driver::sip::{
    Aor, Auth, CodecPrefs, Endpoint, Exchange, Filter, InboundPublication, Match, OutboundPublish, Proof,
    Registration,
};
use sip::digest::Hex;
use store::config::{Status, manual};

use super::*;
use crate::wire::testing::{Site, hosts};

pub(super) fn config(pjsip: &str) -> (Config, Findings) {
    let site = Site::new(pjsip);
    let mut findings = Findings::new();
    (sip_config(&site.snapshot(), &hosts(), &[], &mut findings), findings)
}

/// A site with one object of each kind; `more` is added to the section named.
fn with(section: &str, more: &str) -> Config {
    let add = |name: &str| if name == section { more } else { "" };
    let text = format!(
        "[e]\ntype=endpoint\nallow=!all,ulaw\n{}\n[e]\ntype=aor\n{}\n[e]\ntype=auth\nusername=u\npassword=p\n{}\n\
         [i]\ntype=identify\nendpoint=e\nmatch=192.0.2.1\n{}\n[t]\ntype=transport\nbind=127.0.0.1:5070\n{}\n\
         [r]\ntype=registration\nserver_uri=sip:s\nclient_uri=sip:c@s\n{}\n\
         [l]\ntype=resource_list\nevent=dialog\nlist_item=1\n{}\n\
         [p]\ntype=outbound-publish\nserver_uri=sip:x\nevent=asterisk-mwi\n{}\n\
         [p]\ntype=inbound-publication\n{}\n[p]\ntype=asterisk-publication\n{}\n\
         [d]\ntype=domain_alias\n{}\n[e]\ntype=contact\n{}\n\
         [global]\ntype=global\n{}\n[system]\ntype=system\n{}\n[a]\ntype=acl\n{}\n",
        add("endpoint"),
        add("aor"),
        add("auth"),
        add("identify"),
        add("transport"),
        add("registration"),
        add("resource_list"),
        add("outbound-publish"),
        add("inbound-publication"),
        add("asterisk-publication"),
        add("domain_alias"),
        add("contact"),
        add("global"),
        add("system"),
        add("acl"),
    );
    config(&text).0
}

fn e(config: &Config) -> &Endpoint {
    config.endpoints.get("e").expect("the endpoint")
}
fn lamps(config: &Config) -> &driver::sip::ResourceList {
    config.lists.get("l").expect("the list")
}
fn aor(config: &Config) -> &Aor {
    config.aors.get("e").expect("the aor")
}
fn auth(config: &Config) -> &Auth {
    config.auths.get("e").expect("the auth")
}
fn rule(config: &Config) -> &Match {
    config.identifies.first().expect("the identify").matches.last().expect("its rule")
}
fn registration(config: &Config) -> &Registration {
    config.registrations.first().expect("the registration")
}
fn publish(config: &Config) -> &OutboundPublish {
    config.publishes.first().expect("the outbound-publish")
}
fn publication(config: &Config) -> &InboundPublication {
    config.publications.get("p").expect("the inbound-publication")
}
fn believed(config: &Config) -> &Exchange {
    config.exchanges.get("p").expect("the asterisk-publication")
}
/// Whether a filter lets `alpha` and `beta` pass.
fn passes(filter: &Filter) -> String {
    format!("{} {}", filter.passes("alpha"), filter.passes("beta"))
}
fn ask(access: Option<&Access>, inside: &str, outside: &str) -> String {
    let allows = |ip: &str| access.is_none_or(|access| access(ip.parse().unwrap()));
    format!("{} {}", allows(inside), allows(outside))
}
fn both(access: Option<&Access>) -> String {
    ask(access, "10.1.2.3", "192.0.2.77")
}

type Probe = fn(&Config) -> String;

/// Section, lines, what to look at, what stands there without the lines, and with them.
#[rustfmt::skip]
const ROWS: &[(&str, &str, Probe, &str, &str)] = &[
    ("endpoint", "context=in", |c| e(c).context.clone(), "default", "in"),
    ("endpoint", "aors=e,f", |c| e(c).aors.join("+"), "", "e+f"),
    ("endpoint", "auth=e", |c| e(c).auths.join("+"), "", "e"),
    ("endpoint", "outbound_auth=e", |c| e(c).outbound_auths.join("+"), "", "e"),
    ("endpoint", "allow=alaw", |c| format!("{:?}", e(c).allow), "[ulaw]", "[ulaw, alaw]"),
    ("endpoint", "allow=alaw:30,gsm:40", |c| format!("{:?}", e(c).packets), "[]", "[(alaw, 30), (gsm, 40)]"),
    ("endpoint", "disallow=ulaw\nallow=gsm", |c| format!("{:?}", e(c).allow), "[ulaw]", "[gsm]"),
    ("endpoint", "transport=t", |c| e(c).transport.clone(), "", "t"),
    ("endpoint", "callerid=Al <61>", |c| e(c).caller.all(), "", "\"Al\" <61>"),
    ("endpoint", "callerid_privacy=prohib", |c| format!("{:?}", e(c).caller.number_presentation), "AllowedNotScreened", "Prohib"),
    ("endpoint", "callerid_tag=x", |c| e(c).caller.tag.clone(), "", "x"),
    ("endpoint", "from_user=x", |c| e(c).from_user.clone(), "", "x"),
    ("endpoint", "from_domain=x", |c| e(c).from_domain.clone(), "", "x"),
    ("endpoint", "stir_shaken_profile=p", |c| e(c).stir_profile.clone(), "", "p"),
    ("endpoint", "trust_id_inbound=yes", |c| e(c).trust_id_inbound.to_string(), "false", "true"),
    ("endpoint", "trust_id_outbound=yes", |c| e(c).trust_id_outbound.to_string(), "false", "true"),
    ("endpoint", "send_pai=yes", |c| e(c).send_pai.to_string(), "false", "true"),
    ("endpoint", "send_rpid=yes", |c| e(c).send_rpid.to_string(), "false", "true"),
    ("endpoint", "identify_by=header", |c| format!("{:?}", e(c).identify_by), "[Username, Ip]", "[Header]"),
    ("endpoint", "dtmf_mode=auto_info", |c| format!("{:?}", e(c).dtmf), "Rfc4733", "AutoInfo"),
    ("endpoint", "media_address=192.0.2.5", |c| format!("{:?}", e(c).media_address), "None", "Some(192.0.2.5)"),
    ("endpoint", "rtp_symmetric=yes", |c| e(c).rtp_symmetric.to_string(), "false", "true"),
    ("endpoint", "rtp_timeout=30", |c| e(c).rtp_timeout.to_string(), "0", "30"),
    ("endpoint", "rtp_timeout_hold=30", |c| e(c).rtp_timeout_hold.to_string(), "0", "30"),
    ("endpoint", "rtp_keepalive=15", |c| e(c).rtp_keepalive.to_string(), "0", "15"),
    ("endpoint", "tos_audio=ef", |c| e(c).marking.tos.to_string(), "0", "184"),
    ("endpoint", "cos_audio=5", |c| e(c).marking.priority.to_string(), "0", "5"),
    ("endpoint", "tos_video=af41", |c| e(c).video.marking.tos.to_string(), "0", "136"),
    ("endpoint", "cos_video=4", |c| e(c).video.marking.priority.to_string(), "0", "4"),
    ("endpoint", "max_audio_streams=9", |c| e(c).audio_streams.to_string(), "1", "5"),
    ("endpoint", "max_video_streams=9", |c| e(c).video.streams.to_string(), "1", "4"),
    ("endpoint", "allow=vp8,h264,!vp8", |c| format!("{:?}", e(c).video.formats), "[]", "[h264]"),
    ("endpoint", "media_encryption=sdes", |c| sealed(c), "none", "AES_CM_128_HMAC_SHA1_80 AES_256_CM_HMAC_SHA1_80 AEAD_AES_128_GCM AEAD_AES_256_GCM false false"),
    ("endpoint", "security_negotiation=mediasec\nsecurity_mechanisms=sdes-srtp\\;mediasec,a b,dtls-srtp\\;mediasec", |c| e(c).security.join(","), "", "sdes-srtp;mediasec,dtls-srtp;mediasec"),
    ("endpoint", "security_mechanisms=sdes-srtp\\;mediasec\nsecurity_negotiation=mediasec\nmedia_encryption=sdes", |c| e(c).encryption.is_some_and(|wanted| wanted.to_edge).to_string(), "false", "true"),
    ("registration", "security_mechanisms=sdes-srtp\\;mediasec\nsecurity_negotiation=mediasec", |c| registration(c).security.join(","), "", "sdes-srtp;mediasec"),
    ("registration", "security_negotiation=mediasec\nsecurity_mechanisms=tls", |c| registration(c).security.join(","), "", "tls"),
    ("endpoint", "media_encryption=sdes\nmedia_encryption_optimistic=yes\nsrtp_tag_32=yes\nforce_avp=yes", |c| sealed(c), "none", "AES_CM_128_HMAC_SHA1_32 AES_CM_128_HMAC_SHA1_80 true true"),
    ("endpoint", "codec_prefs_incoming_offer=keep: first", |c| prefs(e(c).codecs.incoming_offer), "configured Intersect all true", "configured Intersect all true"),
    ("endpoint", "codec_prefs_incoming_offer=prefer: configured, keep:first\nincoming_call_offer_pref=codec_prefs", |c| prefs(e(c).codecs.incoming_offer), "configured Intersect all true", "configured Intersect first true"),
    ("endpoint", "codec_prefs_outgoing_offer=operation: only_preferred, transcode: prevent\noutgoing_call_offer_pref=codec_prefs", |c| prefs(e(c).codecs.outgoing_offer), "pending Union all true", "pending OnlyPreferred all false"),
    ("endpoint", "codec_prefs_incoming_answer=operation: only_nonpreferred\noutgoing_call_offer_pref=codec_prefs", |c| prefs(e(c).codecs.incoming_answer), "pending Intersect all true", "pending OnlyNonpreferred all true"),
    ("endpoint", "codec_prefs_outgoing_answer=prefer: configured, operation: union\nincoming_call_offer_pref=codec_prefs", |c| prefs(e(c).codecs.outgoing_answer), "pending Intersect all true", "configured Union all true"),
    ("endpoint", "preferred_codec_only=yes", |c| e(c).codecs.single_answer.to_string(), "false", "true"),
    ("endpoint", "asymmetric_rtp_codec=yes", |c| e(c).asymmetric_codec.to_string(), "false", "true"),
    ("endpoint", "incoming_call_offer_pref=local_first", |c| prefs(e(c).codecs.incoming_offer), "configured Intersect all true", "configured Intersect first true"),
    ("endpoint", "outgoing_call_offer_pref=local_merge\ncodec_prefs_outgoing_offer=keep: first", |c| prefs(e(c).codecs.outgoing_offer), "pending Union all true", "configured Union all true"),
    ("endpoint", "use_avpf=yes", |c| format!("{:?}", e(c).feedback), "None", "Some(Required)"),
    ("endpoint", "use_avpf=yes\nmedia_use_received_transport=yes", |c| format!("{:?}", e(c).feedback), "None", "Some(Offered)"),
    ("endpoint", "g726_non_standard=yes", |c| e(c).g726_aal2.to_string(), "false", "true"),
    ("endpoint", "moh_passthrough=yes", |c| e(c).passes_hold.to_string(), "false", "true"),
    ("endpoint", "suppress_moh_on_sendonly=yes", |c| e(c).silent_hold.to_string(), "false", "true"),
    ("endpoint", "bind_rtp_to_media_address=yes", |c| e(c).bind_media.to_string(), "false", "true"),
    ("endpoint", "direct_media=no", |c| e(c).direct.is_some().to_string(), "true", "false"),
    ("endpoint", "direct_media_method=update", |c| e(c).direct.unwrap().by_update.to_string(), "false", "true"),
    ("endpoint", "direct_media_method=reinvite", |c| e(c).direct.unwrap().by_update.to_string(), "false", "false"),
    ("endpoint", "direct_media_glare_mitigation=outgoing", |c| format!("{:?}", e(c).direct.unwrap().glare), "None", "Outgoing"),
    ("endpoint", "disable_direct_media_on_nat=yes", |c| e(c).direct.unwrap().not_behind_nat.to_string(), "false", "true"),
    ("endpoint", "fax_detect=yes\nfax_detect_timeout=30", |c| format!("{:?}", e(c).fax_detect), "None", "Some(FaxWatch { tone: true, offer: true, timeout: 30s })"),
    ("endpoint", "t38_udptl=yes", |c| format!("{:?}", e(c).fax), "None", "Some(FaxSettings { protection: None, datagram_max: 0, nat: false })"),
    ("endpoint", "t38_udptl=yes\nt38_udptl_ec=fec\nt38_udptl_maxdatagram=400\nt38_udptl_nat=yes", |c| format!("{:?}", e(c).fax), "None", "Some(FaxSettings { protection: Fec, datagram_max: 400, nat: true })"),
    ("endpoint", "rtcp_mux=yes", |c| e(c).rtcp_mux.to_string(), "false", "true"),
    ("endpoint", "use_ptime=yes", |c| e(c).use_ptime.to_string(), "false", "true"),
    ("endpoint", "force_rport=no", |c| e(c).force_rport.to_string(), "true", "false"),
    ("endpoint", "rewrite_contact=yes", |c| e(c).rewrite_contact.to_string(), "false", "true"),
    ("endpoint", "inband_progress=yes", |c| e(c).inband_progress.to_string(), "false", "true"),
    ("endpoint", "follow_early_media_fork=no", |c| e(c).follow_fork.to_string(), "true", "false"),
    ("system", "follow_early_media_fork=no", |c| e(c).follow_fork.to_string(), "true", "false"),
    ("endpoint", "accept_multiple_sdp_answers=yes", |c| e(c).take_every_answer.to_string(), "false", "false"),
    ("system", "accept_multiple_sdp_answers=yes", |c| e(c).take_every_answer.to_string(), "false", "false"),
    ("aor", "authenticate_qualify=yes", |c| aor(c).authenticate_qualify.to_string(), "false", "true"),
    ("aor", "outbound_proxy=sip:p", |c| aor(c).outbound_proxy.clone(), "", "sip:p"),
    ("transport", "domain=pbx.example", |c| c.binds[0].domain.clone(), "", "pbx.example"),
    ("global", "max_initial_qualify_time=30", |c| c.initial_qualify.as_secs().to_string(), "0", "30"),
    ("global", "regcontext=reg", |c| c.reg_context.clone(), "", "reg"),
    ("global", "use_callerid_contact=yes", |c| c.callerid_contact.to_string(), "false", "true"),
    ("global", "send_contact_status_on_update_registration=yes", |c| c.tells_refreshes.to_string(), "false", "true"),
    ("endpoint", "ignore_183_without_sdp=yes", |c| e(c).ignore_183_without_sdp.to_string(), "false", "true"),
    ("endpoint", "allow_overlap=no", |c| e(c).allow_overlap.to_string(), "true", "false"),
    ("endpoint", "allow_unauthenticated_options=yes", |c| e(c).unauthenticated_options.to_string(), "false", "true"),
    ("endpoint", "outbound_auth_strict=yes", |c| e(c).guards_logins.to_string(), "false", "true"),
    ("endpoint", "insecure_invite=yes", |c| e(c).insecure_invite.to_string(), "false", "true"),
    ("endpoint", "user_eq_phone=yes", |c| e(c).user_eq_phone.to_string(), "false", "true"),
    ("endpoint", "outbound_proxy=sip:p", |c| e(c).outbound_proxy.clone(), "", "sip:p"),
    ("endpoint", "contact_user=x", |c| e(c).contact_user.clone(), "", "x"),
    ("endpoint", "accountcode=x", |c| e(c).account.clone(), "", "x"),
    ("endpoint", "tenantid=x", |c| e(c).tenant.to_string(), "", "x"),
    ("endpoint", "call_group=1,3-4", |c| e(c).pickup.call.to_string(), "", "1, 3, 4"),
    ("endpoint", "pickup_group=2", |c| e(c).pickup.pickup.to_string(), "", "2"),
    ("endpoint", "named_call_group=sales,desk", |c| e(c).pickup.call.to_string(), "", "desk,sales"),
    ("endpoint", "named_pickup_group=sales", |c| e(c).pickup.pickup.to_string(), "", "sales"),
    ("endpoint", "set_var=a=1\nset_var=b=2", |c| format!("{:?}", e(c).set_var), "[]", "[(\"a\", \"1\"), (\"b\", \"2\")]"),
    ("endpoint", "language=de", |c| e(c).language.clone(), "", "de"),
    ("endpoint", "tone_zone=de", |c| e(c).tone_zone.clone(), "", "de"),
    ("endpoint", "moh_suggest=x", |c| e(c).music_class.clone(), "default", "x"),
    ("endpoint", "call_limit=2", |c| e(c).call_limit.to_string(), "0", "2"),
    ("endpoint", "regexten=201&202@hall", |c| e(c).regexten.clone(), "", "201&202@hall"),
    ("endpoint", "device_state_busy_at=2", |c| e(c).busy_at.to_string(), "0", "2"),
    ("endpoint", "sdp_owner=x", |c| e(c).sdp_owner.clone(), "-", "x"),
    ("endpoint", "sdp_session=x", |c| e(c).sdp_session.clone(), "Asterisk", "x"),
    ("endpoint", "deny=0.0.0.0/0\npermit=10.0.0.0/8", |c| both(e(c).access.as_ref()), "true true", "true false"),
    ("endpoint", "acl=office", |c| both(e(c).access.as_ref()), "true true", "true false"),
    ("endpoint", "contact_deny=0.0.0.0/0\ncontact_permit=10.0.0.0/8", |c| both(e(c).contact_access.as_ref()), "true true", "true false"),
    ("endpoint", "contact_acl=office", |c| both(e(c).contact_access.as_ref()), "true true", "true false"),
    ("endpoint", "suppress_q850_reason_headers=yes", |c| e(c).suppress_reason.to_string(), "false", "true"),
    ("endpoint", "send_diversion=no", |c| e(c).send_diversion.to_string(), "true", "false"),
    ("endpoint", "send_aoc=yes", |c| e(c).send_aoc.to_string(), "false", "true"),
    ("endpoint", "one_touch_recording=yes", |c| e(c).recording.by_key.to_string(), "false", "true"),
    ("endpoint", "record_on_feature=x", |c| e(c).recording.on_feature.clone(), "automixmon", "x"),
    ("endpoint", "record_off_feature=x", |c| e(c).recording.off_feature.clone(), "automixmon", "x"),
    ("endpoint", "send_history_info=yes", |c| e(c).send_history.to_string(), "false", "true"),
    ("endpoint", "send_connected_line=no", |c| e(c).send_connected_line.to_string(), "true", "false"),
    ("endpoint", "connected_line_method=update", |c| e(c).connected_by_update.to_string(), "false", "true"),
    ("endpoint", "rpid_immediate=yes", |c| e(c).rpid_immediate.to_string(), "false", "true"),
    ("endpoint", "100rel=required", |c| format!("{:?}", e(c).rel100), "Yes", "Required"),
    ("endpoint", "timers=always", |c| format!("{:?}", e(c).timers.policy), "Yes", "Always"),
    ("endpoint", "timers_min_se=120", |c| e(c).timers.min_se.to_string(), "90", "120"),
    ("endpoint", "timers_sess_expires=600", |c| e(c).timers.expires.to_string(), "1800", "600"),
    ("endpoint", "redirect_method=uri_pjsip", |c| format!("{:?}", e(c).redirect), "User", "UriPjsip"),
    ("endpoint", "follow_redirect_methods=", |c| e(c).follows_messages.to_string(), "true", "false"),
    ("endpoint", "allow_transfer=no", |c| e(c).allow_transfer.to_string(), "true", "false"),
    ("endpoint", "refer_blind_progress=no", |c| e(c).refer_progress.to_string(), "true", "false"),
    ("endpoint", "allow_subscribe=no", |c| e(c).watching.allow.to_string(), "true", "false"),
    ("endpoint", "overlap_context=x", |c| e(c).overlap_context.clone(), "", "x"),
    ("endpoint", "message_context=x", |c| e(c).message_context.clone(), "", "x"),
    ("endpoint", "subscribe_context=x", |c| e(c).watching.context.clone(), "", "x"),
    ("endpoint", "mailboxes=1@a,2@a\nmailboxes=3@a", |c| e(c).watching.mailboxes.join("+"), "", "1@a+2@a+3@a"),
    ("endpoint", "notify_early_inuse_ringing=yes", |c| e(c).watching.early_ringing.to_string(), "false", "true"),
    ("endpoint", "aggregate_mwi=no", |c| e(c).watching.aggregate.to_string(), "true", "false"),
    ("endpoint", "trust_connected_line=no", |c| e(c).trust_connected_line.to_string(), "true", "false"),
    ("endpoint", "incoming_mwi_mailbox=9", |c| e(c).watching.incoming.clone(), "", "9"),
    ("endpoint", "mwi_from_user=x", |c| e(c).watching.from_user.clone(), "", "x"),
    ("endpoint", "mwi_subscribe_replaces_unsolicited=yes", |c| e(c).watching.subscribing_replaces.to_string(), "false", "true"),
    ("endpoint", "voicemail_extension=x", |c| e(c).watching.voicemail.clone(), "", "x"),
    ("endpoint", "sub_min_expiry=30", |c| e(c).watching.seconds_min.to_string(), "0", "30"),
    ("aor", "contact=sip:a@b\ncontact=sip:c@d", |c| aor(c).contacts.join("+"), "", "sip:a@b+sip:c@d"),
    ("aor", "max_contacts=3", |c| aor(c).max_contacts.to_string(), "0", "3"),
    ("aor", "remove_existing=yes", |c| aor(c).remove_existing.to_string(), "false", "true"),
    ("aor", "remove_unavailable=yes", |c| aor(c).remove_unavailable.to_string(), "false", "true"),
    ("aor", "minimum_expiration=30", |c| aor(c).minimum_expiration.to_string(), "60", "30"),
    ("aor", "default_expiration=300", |c| aor(c).default_expiration.to_string(), "3600", "300"),
    ("aor", "maximum_expiration=900", |c| aor(c).maximum_expiration.to_string(), "7200", "900"),
    ("aor", "qualify_frequency=60", |c| aor(c).qualify_frequency.to_string(), "0", "60"),
    ("aor", "qualify_timeout=1.5", |c| aor(c).qualify_timeout.as_millis().to_string(), "3000", "1500"),
    ("aor", "qualify_2xx_only=yes", |c| aor(c).qualify_2xx_only.to_string(), "false", "true"),
    ("aor", "support_path=yes", |c| aor(c).support_path.to_string(), "false", "true"),
    ("aor", "mailboxes=1@a,2@a", |c| aor(c).mailboxes.join("+"), "", "1@a+2@a"),
    ("aor", "voicemail_extension=x", |c| aor(c).voicemail.clone(), "", "x"),
    ("auth", "username=v", |c| auth(c).username.clone(), "u", "v"),
    ("auth", "password=q", |c| proof(auth(c)), "password p", "password q"),
    ("auth", "realm=x", |c| auth(c).realm.clone(), "", "x"),
    ("auth", "password=\nauth_type=md5\nmd5_cred=0123456789abcdef0123456789abcdef", |c| proof(auth(c)), "password p", "MD5 0123456789abcdef0123456789abcdef"),
    ("auth", "password=\nauth_type=digest\npassword_digest=SHA-256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", |c| proof(auth(c)), "password p", "SHA-256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    ("auth", "supported_algorithms_uas=SHA-256,MD5", |c| algorithms(&auth(c).algorithms), "MD5", "SHA-256+MD5"),
    ("auth", "supported_algorithms_uac=SHA-256,MD5", |c| algorithms(&auth(c).answers), "", "SHA-256+MD5"),
    ("identify", "endpoint=f", |c| c.identifies.first().map(|i| i.endpoint.to_string()).unwrap_or_default(), "e", "f"),
    ("identify", "match=10.0.0.0/8", |c| source(rule(c)), "false false", "true false"),
    ("identify", "match=pbx.example", |c| match rule(c) { Match::Source(within) => within("203.0.113.10".parse().unwrap()).to_string(), _ => String::new() }, "false", "true"),
    ("identify", "match=pbx.example\nsrv_lookups=no", |c| match rule(c) { Match::Source(within) => within("203.0.113.10".parse().unwrap()).to_string(), _ => String::new() }, "false", "false"),
    ("identify", "match=pbx.example", |c| match rule(c) { Match::Source(within) => within("203.0.113.9".parse().unwrap()).to_string(), _ => String::new() }, "false", "true"),
    ("identify", "match_header=X: /^a.c$/", |c| match rule(c) { Match::Header(name, test) => format!("{name} {} {}", test("abc"), test("abcd")), _ => String::new() }, "", "X true false"),
    ("identify", "match_request_uri=/^sip:1/", |c| match rule(c) { Match::RequestUri(test) => format!("{} {}", test("sip:1@x"), test("sip:2@x")), _ => String::new() }, "", "true false"),
    ("identify", "transport=t", |c| c.identifies[0].transport.clone(), "", "t"),
    ("resource_list", "event=presence", |c| lamps(c).event.clone(), "dialog", "presence"),
    ("resource_list", "list_item=2,3", |c| lamps(c).items.join("+"), "1", "1+2+3"),
    ("resource_list", "full_state=yes", |c| lamps(c).full_state.to_string(), "false", "true"),
    ("resource_list", "resource_display_name=yes", |c| lamps(c).display_names.to_string(), "false", "true"),
    ("resource_list", "notification_batch_interval=5", |c| lamps(c).batch.as_millis().to_string(), "0", "5"),
    ("global", "default_voicemail_extension=*97", |c| e(c).watching.voicemail.clone(), "", "*97"),
    ("outbound-publish", "server_uri=sip:y", |c| publish(c).server_uri.clone(), "sip:x", "sip:y"),
    ("outbound-publish", "event=dialog\n@body=application/dialog-info+xml", |c| publish(c).event.clone(), "asterisk-mwi", "dialog"),
    ("outbound-publish", "from_uri=sip:y", |c| publish(c).from_uri.clone(), "", "sip:y"),
    ("outbound-publish", "to_uri=sip:y", |c| publish(c).to_uri.clone(), "", "sip:y"),
    ("outbound-publish", "expiration=60", |c| publish(c).expiration.to_string(), "3600", "60"),
    ("outbound-publish", "max_auth_attempts=2", |c| publish(c).rejections_max.to_string(), "5", "2"),
    ("outbound-publish", "multi_user=yes", |c| publish(c).multi_user.to_string(), "false", "true"),
    ("outbound-publish", "outbound_auth=e", |c| publish(c).outbound_auths.join("+"), "", "e"),
    ("outbound-publish", "outbound_proxy=sip:z", |c| publish(c).outbound_proxy.clone(), "", "sip:z"),
    ("outbound-publish", "transport=t", |c| publish(c).transport.clone(), "", "t"),
    ("outbound-publish", "@body=application/pidf+xml", |c| publish(c).body.clone(), "", "application/pidf+xml"),
    ("outbound-publish", "@context=^a", |c| passes(&publish(c).contexts), "true true", "true false"),
    ("outbound-publish", "@exten=^a", |c| passes(&publish(c).extens), "true true", "true false"),
    ("outbound-publish", "@device_state_filter=^a", |c| passes(&publish(c).devices), "true true", "true false"),
    ("outbound-publish", "@mailbox_state_filter=^a", |c| passes(&publish(c).mailboxes), "true true", "true false"),
    ("inbound-publication", "endpoint=e", |c| publication(c).endpoint.to_string(), "", "e"),
    ("inbound-publication", "event_asterisk-devicestate=p", |c| publication(c).devices.to_string(), "", "p"),
    ("inbound-publication", "event_asterisk-mwi=p", |c| publication(c).mailboxes.to_string(), "", "p"),
    ("asterisk-publication", "device_state=yes", |c| believed(c).devices.is_some().to_string(), "false", "true"),
    ("asterisk-publication", "device_state=yes\ndevice_state_filter=^a", |c| believed(c).devices.as_ref().map(passes).unwrap_or_default(), "", "true false"),
    ("asterisk-publication", "devicestate_publish=p", |c| believed(c).devices_publish.clone(), "", "p"),
    ("asterisk-publication", "mailbox_state=yes", |c| believed(c).mailboxes.is_some().to_string(), "false", "true"),
    ("asterisk-publication", "mailbox_state=yes\nmailbox_state_filter=^a", |c| believed(c).mailboxes.as_ref().map(passes).unwrap_or_default(), "", "true false"),
    ("asterisk-publication", "mailboxstate_publish=p", |c| believed(c).mailboxes_publish.clone(), "", "p"),
    ("registration", "server_uri=sip:x", |c| registration(c).server_uri.clone(), "sip:s", "sip:x"),
    ("registration", "client_uri=sip:y@x", |c| registration(c).client_uri.clone(), "sip:c@s", "sip:y@x"),
    ("registration", "outbound_auth=e", |c| registration(c).outbound_auths.join("+"), "", "e"),
    ("registration", "contact_user=600", |c| registration(c).contact_user.clone(), "s", "600"),
    ("registration", "contact_header_params=q=0.5", |c| registration(c).contact_params.clone(), "", "q=0.5"),
    ("registration", "expiration=600", |c| registration(c).rules.expiration.to_string(), "3600", "600"),
    ("registration", "retry_interval=30", |c| format!("{:?}", registration(c).rules.retry), "Some(60s)", "Some(30s)"),
    ("registration", "forbidden_retry_interval=30", |c| format!("{:?}", registration(c).rules.forbidden_retry), "None", "Some(30s)"),
    ("registration", "fatal_retry_interval=30", |c| format!("{:?}", registration(c).rules.fatal_retry), "None", "Some(30s)"),
    ("registration", "max_retries=3", |c| registration(c).rules.max_retries.to_string(), "10", "3"),
    ("registration", "max_random_initial_delay=30", |c| registration(c).initial_spread.as_secs().to_string(), "0", "30"),
    ("registration", "auth_rejection_permanent=no", |c| registration(c).rules.rejection_is_permanent.to_string(), "true", "false"),
    ("registration", "outbound_proxy=sip:p", |c| registration(c).outbound_proxy.clone(), "", "sip:p"),
    ("registration", "transport=t", |c| registration(c).transport.clone(), "", "t"),
    ("registration", "line=yes\nendpoint=e", |c| registration(c).line.to_string(), "false", "true"),
    ("registration", "endpoint=e", |c| registration(c).endpoint.to_string(), "", "e"),
    ("registration", "support_path=yes", |c| registration(c).path.to_string(), "false", "true"),
    ("registration", "support_outbound=yes", |c| registration(c).outbound.to_string(), "false", "true"),
    ("registration", "user_agent=x", |c| registration(c).user_agent.clone(), "", "x"),
    ("transport", "protocol=tcp", |c| format!("{:?}", c.binds[0].protocol), "Udp", "Tcp"),
    ("transport", "protocol=tls", |c| format!("{:?}", c.binds[0].protocol), "Udp", "Tls"),
    ("transport", "bind=127.0.0.2", |c| c.binds[0].local.to_string(), "127.0.0.1:5070", "127.0.0.2:5060"),
    ("transport", "external_signaling_address=x.org", |c| c.binds[0].external_signaling.clone().unwrap_or_default(), "", "x.org:5070"),
    ("transport", "external_signaling_address=192.0.2.9\nexternal_signaling_port=99", |c| c.binds[0].external_signaling.clone().unwrap_or_default(), "", "192.0.2.9:99"),
    ("transport", "external_signaling_address=203.0.113.5:5090", |c| c.binds[0].external_signaling.clone().unwrap_or_default(), "", "203.0.113.5:5070"),
    ("transport", "external_signaling_address=x.org:5090\nexternal_signaling_port=99", |c| c.binds[0].external_signaling.clone().unwrap_or_default(), "", "x.org:99"),
    ("transport", "external_signaling_address=[2001:db8::1]:5090", |c| c.binds[0].external_signaling.clone().unwrap_or_default(), "", "[2001:db8::1]:5070"),
    ("transport", "external_signaling_address=2001:db8::1", |c| c.binds[0].external_signaling.clone().unwrap_or_default(), "", "[2001:db8::1]:5070"),
    ("transport", "external_media_address=pbx.example", |c| format!("{:?}", c.binds[0].external_media), "None", "Some(203.0.113.9)"),
    ("transport", "local_net=10.0.0.0/8", |c| format!("{} {}", c.binds[0].is_outside("10.1.1.1".parse().unwrap()), c.binds[0].is_outside("11.1.1.1".parse().unwrap())), "true true", "false true"),
    ("auth", "password=\nauth_type=digest\npassword_digest=MD5:0123456789abcdef0123456789abcdef\npassword_digest=SHA-256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\nsupported_algorithms_uas=SHA-256,MD5", |c| format!("{}; {}", proof(auth(c)), algorithms(&auth(c).algorithms)), "password p; MD5", "MD5 0123456789abcdef0123456789abcdef, SHA-256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef; SHA-256+MD5"),
    ("transport", "tos=cs3", |c| c.binds[0].marking.tos.to_string(), "0", "96"),
    ("transport", "cos=3", |c| c.binds[0].marking.priority.to_string(), "0", "3"),
    ("global", "debug=yes", |c| format!("{:?}", c.trace), "Off", "All"),
    ("global", "debug=192.0.2.1", |c| format!("{:?}", c.trace), "Off", "Hosts([Net(192.0.2.1, 32)])"),
    ("global", "user_agent=x", |c| c.user_agent.clone(), "Strowger PBX", "x"),
    ("global", "default_outbound_endpoint=x", |c| c.default_outbound.clone(), "default_outbound_endpoint", "x"),
    ("global", "default_from_user=x", |c| c.default_from_user.clone(), "asterisk", "x"),
    ("global", "default_realm=x", |c| c.default_realm.clone(), "asterisk", "x"),
    ("global", "endpoint_identifier_order=username,header", |c| format!("{:?}", c.order), "[Ip, Username, Anonymous, AuthUsername, Header, RequestUri, Transport]", "[Username, Header, Ip, Anonymous, AuthUsername, RequestUri, Transport]"),
    ("global", "disable_multi_domain=yes", |c| c.multi_domain.to_string(), "true", "false"),
    ("contact", "uri=sip:x@h", |c| aor(c).contacts.join(","), "", "sip:x@h"),
    ("domain_alias", "domain=example.org", |c| format!("{:?}", c.domain_aliases), "{}", "{\"d\": \"example.org\"}"),
    ("global", "max_forwards=20", |c| c.max_forwards.to_string(), "70", "20"),
    ("global", "ignore_uri_user_options=yes", |c| c.ignore_user_options.to_string(), "false", "true"),
    ("global", "allow_sending_180_after_183=yes", |c| c.ringing_after_progress.to_string(), "false", "true"),
    ("global", "default_auth_algorithms_uac=SHA-256", |c| algorithms(&auth(c).answers), "", "SHA-256"),
    ("global", "default_auth_algorithms_uas=SHA-256", |c| format!("{} {}", algorithms(&c.default_algorithms), algorithms(&auth(c).algorithms)), "MD5 MD5", "SHA-256 SHA-256"),
    ("system", "timer_t1=200", |c| c.timers.t1.as_millis().to_string(), "500", "200"),
    ("system", "timer_b=8000", |c| c.timers.timeout.as_millis().to_string(), "32000", "8000"),
    ("global", "unidentified_request_count=7", |c| c.patience.count.to_string(), "5", "7"),
    ("global", "unidentified_request_period=7", |c| c.patience.period.as_secs().to_string(), "5", "7"),
    ("global", "unidentified_request_prune_interval=7", |c| c.patience.prune.as_secs().to_string(), "30", "7"),
    ("global", "all_codecs_on_empty_reinvite=yes", |c| c.offers_all_when_asked.to_string(), "false", "true"),
    ("system", "compact_headers=yes", |c| c.form.compact.to_string(), "false", "true"),
    ("system", "disable_rport=yes", |c| c.form.no_rport.to_string(), "false", "true"),
    ("system", "disable_tcp_switch=no", |c| c.tcp_switch.to_string(), "false", "true"),
    ("acl", "deny=0.0.0.0/0\npermit=10.0.0.0/8", |c| both(c.access.as_ref()), "true true", "true false"),
    ("acl", "acl=office", |c| both(c.access.as_ref()), "true true", "true false"),
    ("acl", "contact_deny=0.0.0.0/0\ncontact_permit=10.0.0.0/8", |c| both(c.contact_access.as_ref()), "true true", "true false"),
    ("acl", "contact_acl=office", |c| both(c.contact_access.as_ref()), "true true", "true false"),
];

/// Supported options that other parts obey: the reader of pjsip.conf, and what connections are given.
const ELSEWHERE: &[(&str, &str)] = &[
    // What connections are given: `crate::secure`.
    ("transport", "cert_file"),
    ("transport", "priv_key_file"),
    ("transport", "password"),
    ("transport", "ca_list_file"),
    ("transport", "ca_list_path"),
    ("transport", "method"),
    ("transport", "cipher"),
    ("transport", "verify_client"),
    ("transport", "require_client_cert"),
    ("transport", "verify_server"),
    ("transport", "allow_wildcard_certs"),
    ("transport", "tcp_keepalive_enable"),
    ("transport", "tcp_keepalive_idle_time"),
    ("transport", "tcp_keepalive_interval_time"),
    ("transport", "tcp_keepalive_probe_count"),
    ("global", "keep_alive_interval"),
];

fn prefs(prefs: CodecPrefs) -> String {
    let first = |yes, no| move |is| if is { yes } else { no };
    let (prefer, keep) = (first("configured", "pending"), first("first", "all"));
    format!(
        "{} {:?} {} {}",
        prefer(prefs.configured),
        prefs.operation,
        keep(prefs.first_only),
        prefs.transcode
    )
}
fn sealed(config: &Config) -> String {
    let Some(encryption) = &e(config).encryption else { return "none".to_owned() };
    let names: Vec<_> = encryption.suites.iter().map(|suite| suite.name()).collect();
    format!("{} {} {}", names.join(" "), encryption.optimistic, encryption.force_avp)
}
fn proof(auth: &Auth) -> String {
    match &auth.proof {
        Proof::Password(password) => format!("password {password}"),
        Proof::Hashes(hashes) => {
            let one = |(algorithm, ha1): &(Algorithm, Hex)| {
                format!("{} {}", algorithm.as_str(), String::from_utf8_lossy(ha1.as_bytes()))
            };
            hashes.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}
fn algorithms(list: &[Algorithm]) -> String {
    list.iter().map(|algorithm| algorithm.as_str()).collect::<Vec<_>>().join("+")
}
fn source(rule: &Match) -> String {
    match rule {
        Match::Source(within) => ask(Some(within), "10.1.2.3", "192.0.2.77"),
        _ => String::new(),
    }
}

#[test]
fn every_supported_option_of_pjsip_conf_reaches_the_driver() {
    for (section, lines, look, without, expected) in ROWS {
        assert_eq!(look(&with(section, "")), *without, "{section}: without {lines}");
        assert_eq!(look(&with(section, lines)), *expected, "{section}: {lines}");
    }
}

#[test]
fn no_option_is_called_supported_that_nothing_obeys() {
    let named = ROWS.iter().flat_map(|(section, lines, ..)| {
        lines.lines().filter_map(move |line| Some((*section, line.split_once('=')?.0)))
    });
    let obeyed: BTreeSet<(&str, &str)> = named.chain(ELSEWHERE.iter().copied()).collect();
    let claimed =
        manual().into_iter().filter(|row| row.file == "pjsip.conf" && row.status == Status::Supported);
    let unproved: Vec<String> = claimed
        .filter(|row| !obeyed.contains(&(row.section, row.name)))
        .map(|row| format!("{} {}", row.section, row.name))
        .collect();
    assert!(unproved.is_empty(), "{unproved:?}");
}

#[test]
fn an_expression_that_cannot_be_read_is_an_error_with_its_remedy() {
    let (_, findings) =
        config("[e]\ntype=endpoint\nallow=ulaw\n[i]\ntype=identify\nendpoint=e\nmatch_request_uri=/(/\n");
    let said: Vec<String> = findings.iter().map(crate::reload::one_line).collect();
    assert!(
        said.iter().any(|line| line.contains("identify 'i'") && line.ends_with("; correct the expression")),
        "{said:?}"
    );
}

#[test]
fn what_two_sections_say_of_one_thing_is_put_together() {
    let of = |endpoint: &str, system: &str| {
        let config = config(&format!("[e]\ntype=endpoint\n{endpoint}\n[system]\ntype=system\n{system}\n")).0;
        (e(&config).take_every_answer, e(&config).follow_fork)
    };
    let (every, none) = ("accept_multiple_sdp_answers=yes", "follow_early_media_fork=no");
    for (endpoint, system, expected) in [
        ("", "", (false, true)),
        (every, "", (false, true)),
        ("", every, (false, true)),
        (every, every, (true, true)),
        (none, "", (false, false)),
        ("", none, (false, false)),
    ] {
        assert_eq!(of(endpoint, system), expected, "{endpoint} / {system}");
    }
    let text = "[e]\ntype=auth\nusername=u\npassword=p\nsupported_algorithms_uac=MD5\n\
                [global]\ntype=global\ndefault_auth_algorithms_uac=SHA-256\n";
    assert_eq!(algorithms(&auth(&config(text).0).answers), "MD5", "the auth goes before");
}
