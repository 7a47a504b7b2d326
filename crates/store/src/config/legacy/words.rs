//! Keys whose words `pjsip.conf` says in another way.

use conf::{Place, Variable};

use super::{Made, last, yes};

/// Media of an endpoint; `here` is the place of what holds when nothing is written.
pub(super) fn media(lines: &[&Variable], here: &Place, made: &mut Made) {
    if let Some(line) = last(lines, &["dtmfmode"]) {
        let mode = line.value.to_ascii_lowercase();
        made.line("dtmf_mode", if mode == "shortinfo" { "info" } else { &mode }, &line.place);
    }
    nat(last(lines, &["nat"]), here, made);
    direct(last(lines, &["directmedia", "canreinvite"]), made);
    if let Some(line) = last(lines, &["encryption"]).filter(|line| yes(Some(line))) {
        made.line("media_encryption", "sdes", &line.place);
    }
    if let Some(line) = last(lines, &["encryption_taglen"]).filter(|line| &*line.value == "32") {
        made.line("srtp_tag_32", "yes", &line.place);
    }
    if let Some(line) = last(lines, &["dtlsenable"]).filter(|line| yes(Some(line))) {
        made.line("media_encryption", "dtls", &line.place);
    }
    if let Some(line) = last(lines, &["videosupport"]) {
        let none = conf::boolean(&line.value) == Some(false);
        made.line("max_video_streams", if none { "0" } else { "1" }, &line.place);
    }
    if let Some(line) = last(lines, &["faxdetect"]) {
        let none = conf::boolean(&line.value) == Some(false);
        made.line("fax_detect", if none { "no" } else { "yes" }, &line.place);
    }
    if let Some(line) = last(lines, &["t38pt_udptl"]) {
        fax(line, made);
    }
}

/// `nat=`: without a line, requests are answered to where they come from if the peer is behind NAT.
fn nat(line: Option<&Variable>, here: &Place, made: &mut Made) {
    let words = line.map_or("auto_force_rport", |line| &*line.value).to_ascii_lowercase();
    let place = line.map_or(here, |line| &line.place);
    let words: Vec<&str> = words.split(',').map(str::trim).collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let always = ["yes", "route", "true", "on", "1"];
    let rport = has(&always) || has(&["force_rport", "auto_force_rport"]);
    let follows = has(&always) || has(&["comedia", "auto_comedia"]);
    for (option, on) in [("force_rport", rport), ("rewrite_contact", rport), ("rtp_symmetric", follows)] {
        made.line(option, if on { "yes" } else { "no" }, place);
    }
}

fn direct(line: Option<&Variable>, made: &mut Made) {
    let Some(line) = line else { return };
    let place = &line.place;
    for word in line.value.split(',').map(|word| word.trim().to_ascii_lowercase()) {
        match word.as_str() {
            "update" => {
                made.line("direct_media", "yes", place);
                made.line("direct_media_method", "update", place);
            }
            "nonat" => {
                made.line("direct_media", "yes", place);
                made.line("disable_direct_media_on_nat", "yes", place);
            }
            "outgoing" => {
                made.line("direct_media", "yes", place);
                made.line("direct_media_glare_mitigation", "outgoing", place);
            }
            other => made.line("direct_media", other, place),
        }
    }
}

/// `t38pt_udptl = yes,fec,maxdatagram=400`.
fn fax(line: &Variable, made: &mut Made) {
    for word in line.value.split(',').map(|word| word.trim().to_ascii_lowercase()) {
        match word.as_str() {
            "fec" | "redundancy" | "none" => made.line("t38_udptl_ec", &word, &line.place),
            other => match other.strip_prefix("maxdatagram=") {
                Some(bytes) => made.line("t38_udptl_maxdatagram", bytes, &line.place),
                None => made.line("t38_udptl", other, &line.place),
            },
        }
    }
}

/// Who the parties are, how calls begin, how long they last.
pub(super) fn identity(lines: &[&Variable], made: &mut Made) {
    if let Some(line) = last(lines, &["sendrpid"]) {
        let option = if line.value.eq_ignore_ascii_case("pai") { "send_pai" } else { "send_rpid" };
        let on = conf::boolean(&line.value) != Some(false);
        made.line(option, if on { "yes" } else { "no" }, &line.place);
    }
    if let Some(line) = last(lines, &["trust_id_outbound"]) {
        let on = yes(Some(line)) || line.value.eq_ignore_ascii_case("legacy");
        made.line("trust_id_outbound", if on { "yes" } else { "no" }, &line.place);
    }
    if let Some(line) = last(lines, &["rpid_update"]).filter(|line| yes(Some(line))) {
        made.line("connected_line_method", "update", &line.place);
    }
    if let Some(line) = last(lines, &["progressinband"]) {
        made.line("inband_progress", if yes(Some(line)) { "yes" } else { "no" }, &line.place);
    }
    if let Some(line) = last(lines, &["allowoverlap"]) {
        made.line("allow_overlap", if yes(Some(line)) { "yes" } else { "no" }, &line.place);
    }
    if let Some(line) = last(lines, &["promiscredir"]) {
        made.line("redirect_method", if yes(Some(line)) { "uri_core" } else { "user" }, &line.place);
    }
    if let Some(line) = last(lines, &["session-timers"]) {
        let word = line.value.to_ascii_lowercase();
        let timers = match word.as_str() {
            "originate" => "always",
            "accept" => "yes",
            "refuse" => "no",
            other => other,
        };
        made.line("timers", timers, &line.place);
    }
    outbound_proxy(lines, made);
}

/// The last `outboundproxy` of these lines.
pub(super) fn outbound_proxy(lines: &[&Variable], made: &mut Made) {
    if let Some(line) = last(lines, &["outboundproxy"]).filter(|line| !line.value.is_empty()) {
        made.line("outbound_proxy", &proxy(&line.value), &line.place);
    }
}

/// `[udp://|tcp://|tls://]host[:port][,force]` as a URI.
fn proxy(text: &str) -> String {
    let text = text.split(',').next().unwrap_or_default().trim();
    if text.starts_with("sip:") || text.starts_with("sips:") {
        return text.to_owned();
    }
    match text.split_once("://") {
        Some((way, host)) if !way.eq_ignore_ascii_case("udp") => {
            format!("sip:{host};lr;transport={}", way.to_ascii_lowercase())
        }
        Some((_, host)) => format!("sip:{host};lr"),
        None => format!("sip:{text};lr"),
    }
}

#[cfg(test)]
mod tests {
    use super::proxy;

    #[test]
    fn a_proxy_is_a_loose_route() {
        for (text, uri) in [
            ("proxy.example.com", "sip:proxy.example.com;lr"),
            ("10.0.0.1:5080,force", "sip:10.0.0.1:5080;lr"),
            ("tls://edge.example.com:5061", "sip:edge.example.com:5061;lr;transport=tls"),
            ("udp://edge", "sip:edge;lr"),
            ("sip:edge;lr", "sip:edge;lr"),
        ] {
            assert_eq!(proxy(text), uri, "{text}");
        }
    }
}
