//! What the dialplan asks of SIP beside the call itself: settings of endpoints, AORs and contacts, the parts of URIs and
//! headers, and headers that calls made on a channel's behalf carry.

use std::rc::Rc;

use ::sip::{HeaderName, NameAddr, Uri};
use base::{ChannelId, Command};
use call::Core;
use dialplan::{Inherit, Var};

use super::config::Dtmf;
use super::leg::Stage;
use super::show::{ContactRow, options};
use super::{SipDriver, identity};

/// Headers that the dialplan may not add: the machines own them.
const RESERVED: &[&str] = &[
    "Via",
    "From",
    "To",
    "Call-ID",
    "CSeq",
    "Contact",
    "Content-Length",
    "Content-Type",
    "Max-Forwards",
    "Route",
    "Record-Route",
    "Authorization",
    "Proxy-Authorization",
];
/// Headers that the dialplan may add to one call.
const ADDED_HEADERS_MAX: usize = 64;

/// Parameters that the dialplan may add to the From of one call.
const FROM_PARAMS_MAX: usize = 16;
/// Bytes of inheritable headers that one channel carries: each call made on its behalf gets a copy.
const INHERITABLE_BYTES_MAX: usize = 16 * 1024;
/// Where a channel keeps its inheritable headers, one a line; no dialplan can write that name.
const INHERITABLE: &str = "PJSIP_INHERITABLE_HEADER()";

/// A parameter for From, from `PJSIP_HEADER_PARAM(From,header|uri,name)=`.
#[derive(Debug, Clone)]
pub(crate) struct FromParam {
    in_uri: bool,
    name: String,
    value: String,
}

pub(crate) fn begins(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Whether a header or a parameter may have this name (RFC 3261 §25.1, token).
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&b))
}

/// Whether a header of this name is the dialplan's to send.
pub(crate) fn is_free_header(name: &str) -> bool {
    is_token(name) && !RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Whether a header has this name, or begins with it where a `*` follows.
fn is_named(header: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(prefix) => begins(header, prefix),
        None => header.eq_ignore_ascii_case(name),
    }
}

/// The value of the header of this name that is the `number`th, counted from 1, of a list.
pub(crate) fn header_in<'a>(headers: &'a [(String, String)], name: &str, number: usize) -> Option<&'a str> {
    let mut found = headers.iter().filter(|(header, _)| is_named(header, name));
    found.nth(number.saturating_sub(1)).map(|(_, value)| value.as_str())
}

/// Takes the headers of this name out of a list: how many there were.
pub(crate) fn remove_headers(headers: &mut Vec<(String, String)>, name: &str) -> usize {
    let before = headers.len();
    headers.retain(|(header, _)| !is_named(header, name));
    before - headers.len()
}

/// `add,name`, `update,name[,number]` or `remove,name` on a list of headers; `false` when that cannot be.
pub(crate) fn change_headers(headers: &mut Vec<(String, String)>, args: &str, value: &str) -> bool {
    let mut parts = args.split(',').map(str::trim);
    let (action, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let number: usize = parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    if !is_free_header(name) {
        return false;
    }
    let same = |header: &&mut (String, String)| header.0.eq_ignore_ascii_case(name);
    match action.to_ascii_lowercase().as_str() {
        "add" if headers.len() < ADDED_HEADERS_MAX => headers.push((name.to_owned(), value.to_owned())),
        "update" => match headers.iter_mut().filter(same).nth(number.saturating_sub(1)) {
            Some(header) => value.clone_into(&mut header.1),
            None => return false,
        },
        "remove" => _ = remove_headers(headers, name),
        _ => return false,
    }
    true
}

/// The headers that calls made on this channel's behalf carry. They are a variable that every channel below inherits,
/// through Local channels too.
pub(crate) fn inherited_headers(core: &Core, channel: ChannelId) -> Vec<(String, String)> {
    let kept = core.get(channel).and_then(|c| c.vars.get_name(INHERITABLE)).unwrap_or_default();
    let split = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
    kept.lines().filter_map(split).collect()
}

/// `PJSIP_INHERITABLE_HEADER(add|update|remove,name)=`.
pub(crate) fn set_inheritable_header(core: &mut Core, channel: ChannelId, args: &str, value: &str) -> bool {
    let mut headers = inherited_headers(core, channel);
    let value: String = value.chars().filter(|c| !c.is_control()).collect();
    if !change_headers(&mut headers, args, &value) {
        return false;
    }
    let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    let kept = lines.join("\n");
    let Some(entry) = core.get_mut(channel).filter(|_| kept.len() <= INHERITABLE_BYTES_MAX) else {
        return false;
    };
    entry.vars.set(Var::named(INHERITABLE), &kept, Inherit::Always)
}

/// `PJSIP_INHERITABLE_HEADER(read,name[,number])`.
pub(crate) fn inheritable_header(core: &Core, channel: ChannelId, args: &str) -> Option<String> {
    let mut parts = args.split(',').map(str::trim);
    parts.next().filter(|action| action.eq_ignore_ascii_case("read"))?;
    let name = parts.next()?;
    let number: usize = parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let headers = inherited_headers(core, channel);
    Some(header_in(&headers, name, number).unwrap_or_default().to_owned())
}

/// From with what the dialplan added to it.
pub(crate) fn with_params(from: String, params: &[FromParam]) -> String {
    let written = |in_uri: bool| -> String {
        let chosen = params.iter().filter(|param| param.in_uri == in_uri);
        chosen
            .map(|param| match param.value.is_empty() {
                true => format!(";{}", param.name),
                false => format!(";{}={}", param.name, param.value),
            })
            .collect()
    };
    match from.rsplit_once('>') {
        Some((head, tail)) => format!("{head}{}>{tail}{}", written(true), written(false)),
        None => from,
    }
}

/// `PJSIP_PARSE_URI(uri,part)`: the part stands after the last comma, for the URI may hold some.
pub(crate) fn uri_part(args: &str) -> Option<String> {
    let (text, part) = args.rsplit_once(',')?;
    let text = text.trim();
    let address = NameAddr::parse(text.as_bytes())?;
    if text.contains('<') && !text.ends_with('>') {
        // A whole header is no URI.
        return None;
    }
    // Parameters of a URI without angle brackets are asked for as its own.
    let uri = if text.contains('<') { address.uri } else { Uri::parse(text.as_bytes())? };
    let param = |name: &[u8]| Some(uri.params.get(name).map(identity::text).unwrap_or_default());
    match part.trim().to_ascii_lowercase().as_str() {
        "display" => Some(identity::text(&address.display_name())),
        "scheme" => Some(identity::text(uri.scheme.as_bytes())),
        "user" => Some(identity::text(&uri.user_decoded())),
        "passwd" => Some(identity::text(uri.password.unwrap_or_default())),
        "host" => Some(identity::text(uri.host.as_bytes())),
        "port" => Some(uri.port.map(|port| port.to_string()).unwrap_or_default()),
        "user_param" => param(b"user"),
        "method_param" => param(b"method"),
        "transport_param" => param(b"transport"),
        "ttl_param" => param(b"ttl"),
        "maddr_param" => param(b"maddr"),
        "lr_param" => Some(u8::from(uri.params.has(b"lr")).to_string()),
        _ => None,
    }
}

fn name_and_field(args: &str) -> Option<(&str, String)> {
    let (name, field) = args.rsplit_once(',')?;
    Some((name.trim(), field.trim().to_ascii_lowercase()))
}

impl SipDriver {
    /// `PJSIP_RESPONSE_HEADER(read,name[,number])`: of the answer to a call of ours.
    pub(crate) fn response_header(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        if leg.target.is_empty() {
            return None;
        }
        self.header(core, channel, "PJSIP_RESPONSE_HEADER", args)
    }
    /// `PJSIP_HEADERS([prefix])`, `PJSIP_RESPONSE_HEADERS([prefix])`: names, one for each header, in the order of the message.
    pub(crate) fn header_names(
        &mut self,
        core: &Core,
        channel: ChannelId,
        prefix: &str,
        of_response: bool,
    ) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        if of_response == leg.target.is_empty() {
            return None;
        }
        let Some(message) = leg.invite.as_ref() else { return Some(String::new()) };
        let prefix = prefix.trim().trim_end_matches('*');
        let mut names: Vec<String> = Vec::new();
        for (name, _) in message.view().fields() {
            let name = identity::text(name.as_bytes());
            if begins(&name, prefix) {
                names.push(name);
            }
        }
        Some(names.join(","))
    }
    /// `PJSIP_MEDIA_OFFER(audio)`.
    pub(crate) fn media_offer(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        let audio = args.trim().eq_ignore_ascii_case("audio");
        let names = leg.media.formats().iter().map(|format| format.name()).collect::<Vec<_>>();
        Some(if audio { names.join(",") } else { String::new() })
    }
    /// `PJSIP_MEDIA_OFFER(audio)=`: formats that the endpoint allows, by the dialplan's order; `!name` takes one away.
    pub(crate) fn set_media_offer(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        args: &str,
        value: &str,
    ) -> bool {
        let Some(leg) = self.leg_of(channel, core) else { return false };
        if !args.trim().eq_ignore_ascii_case("audio") {
            return false;
        }
        let allowed = leg.endpoint.allow;
        let mut chosen = base::FormatSet::default();
        for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match (word.strip_prefix('!'), word) {
                (Some("all"), _) => chosen = base::FormatSet::default(),
                (Some(name), _) => {
                    base::FormatId::from_name(name).into_iter().for_each(|format| chosen.remove(format))
                }
                (None, "all") => allowed.iter().for_each(|format| chosen.push(format)),
                (None, name) => {
                    // What the dialplan names is offered whether `allow=` has it or not.
                    match base::FormatId::from_name(name) {
                        Some(format) => chosen.push(format),
                        None => return false,
                    }
                }
            }
        }
        if chosen.is_empty() {
            return false;
        }
        leg.media.set_formats(chosen);
        leg.media.offer_all();
        if let (Stage::Idle, Some(entry)) = (leg.stage, core.get_mut(channel)) {
            entry.formats = chosen;
        }
        true
    }
    /// `PJSIP_DTMF_MODE()`: how digits of this call travel.
    pub(crate) fn dtmf_mode(&mut self, core: &Core, channel: ChannelId) -> Option<String> {
        Some(self.leg_of(channel, core)?.endpoint.dtmf.name().to_owned())
    }
    /// `PJSIP_DTMF_MODE()=`, at once for what is sent, and in the next description for what is offered.
    pub(crate) fn set_dtmf_mode(&mut self, core: &mut Core, channel: ChannelId, value: &str) -> bool {
        let Some(mode) = Dtmf::named(value.trim()).filter(|mode| *mode != Dtmf::None) else { return false };
        let Some(leg) = self.leg_of(channel, core) else { return false };
        Rc::make_mut(&mut leg.endpoint).dtmf = mode;
        leg.media.set_dtmf(mode);
        let (stream, handle) = (leg.stream, core.get(channel).map(|entry| entry.handle));
        if let (Some(stream), Some(handle)) = (stream, handle)
            && let Some(plan) = self.plan(core, handle)
        {
            core.media(Command::Plan { stream, plan: Box::new(plan) });
        }
        true
    }
    /// `PJSIP_MOH_PASSTHROUGH()`: whether this call's peer is told that it is held, instead of hearing music.
    pub(crate) fn moh_passthrough(&mut self, core: &Core, channel: ChannelId) -> Option<String> {
        Some(if self.leg_of(channel, core)?.endpoint.passes_hold { "yes" } else { "no" }.to_owned())
    }
    /// `PJSIP_MOH_PASSTHROUGH()=`.
    pub(crate) fn set_moh_passthrough(&mut self, core: &mut Core, channel: ChannelId, value: &str) -> bool {
        let passes = match value.trim().to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" | "1" => true,
            "no" | "false" | "off" | "0" => false,
            _ => return false,
        };
        let Some(leg) = self.leg_of(channel, core) else { return false };
        Rc::make_mut(&mut leg.endpoint).passes_hold = passes;
        if let Some(entry) = core.get_mut(channel) {
            entry.passes_hold = passes;
        }
        true
    }
    /// `PJSIP_SEND_SESSION_REFRESH()=invite|update`, in a call that is up.
    pub(crate) fn send_refresh(&mut self, core: &mut Core, channel: ChannelId, kind: &str) -> bool {
        let Some(leg) = self.leg_of(channel, core).filter(|leg| leg.stage == Stage::Up) else { return false };
        let (by_update, timer) =
            (kind.trim().eq_ignore_ascii_case("update") && leg.peer_updates, leg.timer.ask());
        let Some(dialog) = leg.dialog else { return false };
        let Some(handle) = core.get(channel).map(|c| c.handle) else { return false };
        match by_update {
            // A refresh has a description, however it leaves.
            true if self.stack.may_offer(dialog).is_err() => false,
            true => {
                let sdp = self.standing_offer(handle);
                let body = Some(::sip::stack::Body::sdp(&sdp));
                self.send_update_with(core, dialog, &timer, body).is_ok()
            }
            false => self.send_reinvite(core, handle, &timer).is_ok(),
        }
    }
    /// `PJSIP_ENDPOINT(name,field)`.
    pub(crate) fn endpoint_setting(&self, args: &str) -> Option<String> {
        let (name, field) = name_and_field(args)?;
        let endpoint = self.config.endpoints.get(name)?;
        options(endpoint).into_iter().find(|(option, _)| *option == field).map(|(_, value)| value)
    }
    /// `PJSIP_AOR(name,field)`; `contact` lists the contacts as `PJSIP_CONTACT()` takes them.
    pub(crate) fn aor_setting(&self, core: &Core, args: &str) -> Option<String> {
        let (name, field) = name_and_field(args)?;
        let aor = self.config.aors.get(name)?;
        let yes = |value: bool| Some(if value { "true" } else { "false" }.to_owned());
        match field.as_str() {
            "contact" => {
                let rows = self.contact_rows(Some(name), core);
                Some(rows.iter().map(ContactRow::id).collect::<Vec<_>>().join(","))
            }
            "max_contacts" => Some(aor.max_contacts.to_string()),
            "remove_existing" => yes(aor.remove_existing),
            "remove_unavailable" => yes(aor.remove_unavailable),
            "default_expiration" => Some(aor.default_expiration.to_string()),
            "minimum_expiration" => Some(aor.minimum_expiration.to_string()),
            "maximum_expiration" => Some(aor.maximum_expiration.to_string()),
            "qualify_frequency" => Some(aor.qualify_frequency.to_string()),
            "qualify_timeout" => Some(format!("{:.6}", aor.qualify_timeout.as_secs_f64())),
            "qualify_2xx_only" => yes(aor.qualify_2xx_only),
            "support_path" => yes(aor.support_path),
            "authenticate_qualify" => yes(aor.authenticate_qualify),
            "mailboxes" => Some(aor.mailboxes.join(",")),
            "outbound_proxy" => Some(aor.outbound_proxy.clone()),
            "voicemail_extension" => Some(aor.voicemail.clone()),
            "type" => Some("aor".to_owned()),
            _ => None,
        }
    }
    /// `PJSIP_CONTACT(name,field)`; the name is one of `PJSIP_AOR(aor,contact)`, or `aor/uri`.
    pub(crate) fn contact_property(&self, core: &Core, args: &str) -> Option<String> {
        let (name, field) = name_and_field(args)?;
        // A semicolon in an argument is escaped.
        let name = &*name.replace("\\;", ";");
        let aor = name.split_once(";@").or_else(|| name.split_once("@@")).or_else(|| name.split_once('/'))?.0;
        let rows = self.contact_rows(Some(aor), core);
        let row = rows
            .iter()
            .find(|row| row.id() == name || name.strip_prefix(aor) == Some(&format!("/{}", row.uri)))?;
        let via = row.via.parse::<core::net::SocketAddr>().ok();
        Some(match field.as_str() {
            "uri" => row.uri.clone(),
            "aor" => row.aor.clone(),
            // One that is written has no end that has registered it.
            "endpoint" => row.expires.map(|_| row.endpoint.clone()).unwrap_or_default(),
            "user_agent" => row.user_agent.clone(),
            "rtt" | "roundtrip_usec" => row.roundtrip_text(),
            "status" => row.state.status().to_owned(),
            // A contact of the configuration never lapses.
            "expiration_time" => {
                let wall = core.services.wall.now_micros().div_euclid(1_000_000);
                let lapses = row.expires.map(|left| wall.saturating_add_unsigned(left));
                lapses.unwrap_or_default().to_string()
            }
            "via_addr" => via.map(|via| via.ip().to_string()).unwrap_or_default(),
            "via_port" => via.map_or(0, |via| via.port()).to_string(),
            "call_id" => row.call_id.clone(),
            "path" => row.path.clone(),
            "outbound_proxy" => row.object.outbound_proxy.clone(),
            "qualify_frequency" => row.object.qualify_frequency.to_string(),
            "qualify_timeout" => format!("{:.6}", row.object.qualify_timeout.as_secs_f64()),
            "qualify_2xx_only" => if row.object.qualify_2xx_only { "true" } else { "false" }.to_owned(),
            "authenticate_qualify" | "prune_on_boot" => "no".to_owned(),
            "reg_server" => String::new(),
            "type" => "contact".to_owned(),
            _ => return None,
        })
    }
    /// `PJSIP_HEADER_PARAM(header,header|uri,name)`: of the message that began the call, or what was set for our From.
    pub(crate) fn header_param(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        let (header, in_uri, name) = param_args(args)?;
        let own = leg.from_params.iter().find(|p| p.in_uri == in_uri && p.name.eq_ignore_ascii_case(name));
        if let Some(param) = own.filter(|_| header.eq_ignore_ascii_case("From")) {
            return Some(param.value.clone());
        }
        let Some(message) = leg.invite.as_ref() else { return Some(String::new()) };
        let view = message.view();
        let address = view.header(HeaderName::from_bytes(header.as_bytes())).and_then(NameAddr::parse);
        let params = address.map(|address| if in_uri { address.uri.params } else { address.params });
        Some(params.and_then(|params| params.get(name.as_bytes())).map(identity::text).unwrap_or_default())
    }
    /// `PJSIP_HEADER_PARAM(From,header|uri,name)=`, in the INVITE of a channel that has not been called yet.
    pub(crate) fn set_header_param(
        &mut self,
        core: &Core,
        channel: ChannelId,
        args: &str,
        value: &str,
    ) -> bool {
        let Some((header, in_uri, name)) = param_args(args) else { return false };
        // The tag is the dialog's (RFC 3261 §19.3).
        let ours = header.eq_ignore_ascii_case("From") && is_token(name) && !name.eq_ignore_ascii_case("tag");
        let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.!%*_+`'~[]:/&$".contains(&b));
        // Outside a URI brackets and slashes stand in quotes only.
        let fits = plain && (in_uri || value.is_empty() || is_token(value));
        let Some(leg) = self.leg_of(channel, core).filter(|leg| leg.stage == Stage::Idle) else {
            return false;
        };
        if !ours || !fits {
            return false;
        }
        let same = |p: &FromParam| p.in_uri == in_uri && p.name.eq_ignore_ascii_case(name);
        leg.from_params.retain(|param| !same(param));
        if leg.from_params.len() >= FROM_PARAMS_MAX {
            return false;
        }
        leg.from_params.push(FromParam { in_uri, name: name.to_owned(), value: value.to_owned() });
        true
    }
}

/// Header, whether the URI's parameters are meant, and the parameter.
fn param_args(args: &str) -> Option<(&str, bool, &str)> {
    let mut parts = args.split(',').map(str::trim);
    let (header, part, name) = (parts.next()?, parts.next()?, parts.next()?);
    match part.to_ascii_lowercase().as_str() {
        "header" => Some((header, false, name)),
        "uri" => Some((header, true, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_uri_are_told_by_name() {
        let full = "\"A, B\" <sips:al%20ice:pw@example.org:5071;transport=tcp;lr;maddr=192.0.2.9>";
        let header = &format!("{full};x=y");
        for (uri, part, expected) in [
            (full, "display", Some("A, B")),
            (full, "scheme", Some("sips")),
            (full, "user", Some("al ice")),
            (full, "passwd", Some("pw")),
            (full, "host", Some("example.org")),
            (full, "port", Some("5071")),
            (full, "transport_param", Some("tcp")),
            (full, "maddr_param", Some("192.0.2.9")),
            (full, "lr_param", Some("1")),
            (full, "ttl_param", Some("")),
            (full, "colour", None),
            (header, "display", None),
            (header, "user", None),
            ("sip:bob@h;transport=udp", "transport_param", Some("udp")),
            ("sip:bob@h", "port", Some("")),
            ("sip:bob@h", "lr_param", Some("0")),
            ("no uri", "host", None),
        ] {
            assert_eq!(uri_part(&format!("{uri},{part}")).as_deref(), expected, "{uri} {part}");
        }
    }

    #[test]
    fn parameters_of_from_stand_where_they_were_asked_for() {
        let param =
            |in_uri, name: &str, value: &str| FromParam { in_uri, name: name.into(), value: value.into() };
        let params = [param(true, "isup-oli", "70"), param(false, "x", "1"), param(false, "flag", "")];
        let from = with_params("\"A\" <sip:a@h>".to_owned(), &params);
        assert_eq!(from, "\"A\" <sip:a@h;isup-oli=70>;x=1;flag");
    }
}
