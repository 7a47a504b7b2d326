//! The bodies of the event package `as-feature-event`, by which phones and servers keep call forward and do-not-disturb
//! alike: a SUBSCRIBE says what the phone's user has set, a NOTIFY how things stand. The elements are those of ECMA-323;
//! no RFC has the package, phones read and write what BroadWorks calls Device Feature Key Synchronization.

use std::fmt::Write as _;

use crate::xml::{decoded, escape, read_flat};

/// Name of the package.
pub const PACKAGE: &str = "as-feature-event";
/// Type of a body.
pub const CONTENT_TYPE: &str = "application/x-as-feature-event+xml";
/// Longest body that is read, bytes: ten times those of phones.
pub const BODY_BYTES_MAX: usize = 4096;
/// Longest number that calls are forwarded to: what a SIP user part of a colleague may be, and three E.164 numbers.
pub const NUMBER_MAX: usize = 64;
/// Most rings before a call is forwarded: two and a half minutes.
pub const RINGS_MAX: u8 = 30;
const NAMESPACE: &str = "http://www.ecma-international.org/standards/ecma-323/csta/ed3";

/// When calls are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// All calls.
    Immediate,
    /// While the phone is busy.
    Busy,
    /// When nobody answers.
    NoAnswer,
}

/// Names in `forwardingType`.
const FORWARDING: [(&str, Forwarding); 3] = [
    ("forwardImmediate", Forwarding::Immediate),
    ("forwardBusy", Forwarding::Busy),
    ("forwardNoAns", Forwarding::NoAnswer),
];

/// What a phone's user has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Do not disturb.
    DoNotDisturb(bool),
    /// Calls are forwarded, or no longer.
    Forward {
        /// When.
        when: Forwarding,
        /// Whether they are.
        active: bool,
        /// Where to; `None` when there is no number, or none that could be dialled.
        to: Option<String>,
        /// After so many rings.
        rings: Option<u8>,
    },
}

/// How things stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State<'a> {
    /// Do not disturb.
    DoNotDisturb(bool),
    /// Calls are forwarded.
    Forward {
        /// When.
        when: Forwarding,
        /// Where to; `None` while they are not.
        to: Option<&'a str>,
        /// After so many rings.
        rings: Option<u8>,
    },
}

/// Reads the body of a SUBSCRIBE; `None` when it is none of this package's.
pub fn read(body: &[u8]) -> Option<Change> {
    let text = decoded(body);
    let document = read_flat(&text)?;
    let flag = |name| match document.text(name)? {
        text if text.eq_ignore_ascii_case("true") || text == "1" => Some(true),
        text if text.eq_ignore_ascii_case("false") || text == "0" => Some(false),
        _ => None,
    };
    match document.root {
        "SetDoNotDisturb" => flag("doNotDisturbOn").map(Change::DoNotDisturb),
        "SetForwarding" => {
            let named = document.text("forwardingType")?;
            let (_, when) = FORWARDING.iter().find(|(name, _)| name.eq_ignore_ascii_case(named))?;
            let rings = document.text("ringCount").and_then(|text| text.parse().ok());
            Some(Change::Forward {
                when: *when,
                active: flag("activateForward")?,
                to: document.text("forwardDN").and_then(number),
                rings: rings.filter(|rings| (1..=RINGS_MAX).contains(rings)),
            })
        }
        _ => None,
    }
}

/// A number as a dialplan can be asked for it: of `sip:` and `tel:` the user, without what people write between digits.
fn number(text: &str) -> Option<String> {
    let scheme = ["sip:", "sips:", "tel:"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme)));
    let user = text.get(scheme.map_or(0, str::len)..)?;
    let user = if scheme.is_some() { user.split(['@', ';']).next().unwrap_or_default() } else { user };
    let digits: String = user.chars().filter(|c| !" -.()".contains(*c)).collect();
    let is_number = digits.chars().all(|c| c.is_ascii_digit() || "+*#".contains(c));
    let user = if is_number { digits } else { user.to_owned() };
    let is_plain = user.chars().all(|c| c.is_ascii_alphanumeric() || "+*#-._".contains(c));
    (is_plain && (1..=NUMBER_MAX).contains(&user.len())).then_some(user)
}

/// Writes how things stand with a device.
pub fn write(device: &str, state: State<'_>) -> String {
    let device = escape(device);
    let (root, inside) = match state {
        State::DoNotDisturb(on) => ("DoNotDisturbEvent", format!(" <doNotDisturbOn>{on}</doNotDisturbOn>\n")),
        State::Forward { when, to, rings } => {
            let name = FORWARDING.iter().find(|(_, own)| *own == when).map_or("", |(name, _)| name);
            let mut inside = format!(
                " <forwardingType>{name}</forwardingType>\n <forwardStatus>{}</forwardStatus>\n <forwardTo>{}</forwardTo>\n",
                to.is_some(),
                escape(to.unwrap_or_default())
            );
            if let Some(rings) = rings {
                let _ = writeln!(inside, " <ringCount>{rings}</ringCount>"); // writing into a String cannot fail
            }
            ("ForwardingEvent", inside)
        }
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"{NAMESPACE}\">\n <device>{device}</device>\n\
         {inside}</{root}>\n"
    )
}

/// Content-Type and body of one document, or of several together (RFC 2046 §5.1.3). `boundary` occurs in none of them.
pub fn gather(documents: &[String], boundary: &str) -> (String, String) {
    if let [one] = documents {
        return (CONTENT_TYPE.to_owned(), one.clone());
    }
    let mut body = String::new();
    for document in documents {
        let length = document.len();
        // As above.
        let _ = write!(
            body,
            "--{boundary}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {length}\r\n\r\n{document}\r\n"
        );
    }
    let _ = write!(body, "--{boundary}--\r\n");
    (format!("multipart/mixed;boundary=\"{boundary}\""), body)
}

#[cfg(test)]
mod tests {
    use super::Forwarding::*;
    use super::*;

    fn forward(when: Forwarding, active: bool, to: Option<&str>, rings: Option<u8>) -> Option<Change> {
        Some(Change::Forward { when, active, to: to.map(str::to_owned), rings })
    }

    #[test]
    fn what_phones_send_is_read() {
        const HEAD: &str = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\r\n";
        const NS: &str = "xmlns=\"http://www.ecma-international.org/standards/ecma-323/csta/ed3\"";
        let long = "1".repeat(NUMBER_MAX + 1);
        for (name, inside, expected) in [
            (
                "an empty device, as Polycom's",
                format!("{HEAD}<SetDoNotDisturb {NS}>\r\n<device/>\r\n<doNotDisturbOn>true</doNotDisturbOn>\r\n</SetDoNotDisturb>\r\n"),
                Some(Change::DoNotDisturb(true)),
            ),
            (
                "with its account as device, as Yealink's",
                format!("<SetDoNotDisturb {NS}><device>6001</device><doNotDisturbOn>false</doNotDisturbOn></SetDoNotDisturb>"),
                Some(Change::DoNotDisturb(false)),
            ),
            (
                "with a prefix and a device of Latin-1 letters",
                "<csta:SetDoNotDisturb xmlns:csta=\"u\"><csta:device>B\u{fc}ro</csta:device><csta:doNotDisturbOn>1</csta:doNotDisturbOn></csta:SetDoNotDisturb>".to_owned(),
                Some(Change::DoNotDisturb(true)),
            ),
            (
                "all calls",
                format!("{HEAD}<SetForwarding {NS}><device></device><forwardingType>forwardImmediate</forwardingType><activateForward>true</activateForward><forwardDN>6002</forwardDN></SetForwarding>"),
                forward(Immediate, true, Some("6002"), None),
            ),
            (
                "no more, without a number",
                format!("<SetForwarding {NS}><device/><forwardDN/><forwardingType>forwardBusy</forwardingType><activateForward>false</activateForward></SetForwarding>"),
                forward(Busy, false, None, None),
            ),
            (
                "after some rings, the number as people write it",
                format!("<SetForwarding {NS}><forwardingType>forwardNoAns</forwardingType><activateForward>true</activateForward><forwardDN>+1 (301) 555-1212</forwardDN><ringCount>3</ringCount></SetForwarding>"),
                forward(NoAnswer, true, Some("+13015551212"), Some(3)),
            ),
            (
                "to a URI",
                "<SetForwarding><forwardingType>FORWARDNOANS</forwardingType><activateForward>True</activateForward><forwardDN>sip:bob.smith@pbx;user=phone</forwardDN><ringCount>99</ringCount></SetForwarding>".to_owned(),
                forward(NoAnswer, true, Some("bob.smith"), None),
            ),
        ] {
            let latin: Vec<u8> = inside.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            assert_eq!(read(&latin), expected, "{name}");
        }
        for (dn, expected) in [
            ("tel:+49-30-1234", Some("+49301234")),
            ("*72", Some("*72")),
            ("  6002 ", Some("6002")),
            ("Local/6002@trunks", None),
            ("6002&amp;PJSIP/6003", None),
            ("6002,1", None),
            ("${SHELL(id)}", None),
            ("60&#10;02", None),
            ("sip:@pbx", None),
            (" - ", None),
            (&long, None),
        ] {
            let body = format!(
                "<SetForwarding><forwardingType>forwardBusy</forwardingType><activateForward>1</activateForward>\
                 <forwardDN>{dn}</forwardDN></SetForwarding>"
            );
            assert_eq!(read(body.as_bytes()), forward(Busy, true, expected, None), "{dn}");
        }
    }

    #[test]
    fn a_body_that_is_none_of_the_package_is_none() {
        for body in [
            &b""[..],
            b"\x00\xff",
            b"<SetDoNotDisturb/>",
            b"<SetDoNotDisturb><doNotDisturbOn>maybe</doNotDisturbOn></SetDoNotDisturb>",
            b"<SetDoNotDisturb><doNotDisturbOn>true</SetDoNotDisturb>",
            b"<DoNotDisturbEvent><doNotDisturbOn>true</doNotDisturbOn></DoNotDisturbEvent>",
            b"<SetForwarding><activateForward>true</activateForward></SetForwarding>",
            b"<SetForwarding><forwardingType>forwardBusy</forwardingType></SetForwarding>",
            b"<SetForwarding><forwardingType>never</forwardingType><activateForward>1</activateForward></SetForwarding>",
            b"<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><SetDoNotDisturb><doNotDisturbOn>1</doNotDisturbOn></SetDoNotDisturb>",
        ] {
            assert_eq!(read(body), None, "{}", body.escape_ascii());
        }
    }

    #[test]
    fn how_things_stand_is_written_as_phones_read_it() {
        let document = write("6001", State::DoNotDisturb(true));
        assert_eq!(
            document,
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DoNotDisturbEvent xmlns=\"{NAMESPACE}\">\n \
                 <device>6001</device>\n <doNotDisturbOn>true</doNotDisturbOn>\n</DoNotDisturbEvent>\n"
            )
        );
        let document = write("a<b", State::Forward { when: NoAnswer, to: Some("6&2"), rings: Some(4) });
        let flat = read_flat(&document).unwrap();
        assert_eq!(flat.root, "ForwardingEvent");
        for (name, expected) in [
            ("device", Some("a<b")),
            ("forwardingType", Some("forwardNoAns")),
            ("forwardStatus", Some("true")),
            ("forwardTo", Some("6&2")),
            ("ringCount", Some("4")),
        ] {
            assert_eq!(flat.text(name), expected, "{name}");
        }
        let document = write("6001", State::Forward { when: Busy, to: None, rings: None });
        let flat = read_flat(&document).unwrap();
        assert_eq!(
            (flat.text("forwardStatus"), flat.text("forwardTo"), flat.text("ringCount")),
            (Some("false"), Some(""), None)
        );
    }

    #[test]
    fn rfc2046_5_1_3_several_documents_are_parts_of_one_body() {
        let one = gather(&["<a/>".to_owned()], "edge");
        assert_eq!(one, (CONTENT_TYPE.to_owned(), "<a/>".to_owned()));
        let (kind, body) = gather(&["<a/>".to_owned(), "<b/>".to_owned()], "edge");
        assert_eq!(kind, "multipart/mixed;boundary=\"edge\"");
        let part =
            |text| format!("--edge\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: 4\r\n\r\n{text}\r\n");
        assert_eq!(body, format!("{}{}--edge--\r\n", part("<a/>"), part("<b/>")));
    }
}
