//! The documents that watchers read: dialog-info, two forms of presence, message-summary.
//!
//! A document is written once for all who read the same; only the version number of dialog-info is each watcher's own, so
//! that it stands between the two halves of a text.

use std::fmt::Write as _;
use std::rc::Rc;

use call::{DeviceState, Mailbox};

pub(crate) use ::sip::xml::escape;

/// What a watcher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// `application/dialog-info+xml` (RFC 4235). `early`: ringing shows while the line is in use as well.
    DialogInfo { early: bool },
    /// `application/pidf+xml` (RFC 3863, RFC 4480). `early` as above.
    Pidf { early: bool },
    /// `application/xpidf+xml`, as phones of the first hour read it.
    Xpidf { early: bool },
    /// `application/simple-message-summary` (RFC 3842).
    Summary,
    /// `application/x-as-feature-event+xml`, which [`super::features`] writes.
    Features,
}

impl Kind {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::DialogInfo { .. } => "application/dialog-info+xml",
            Self::Pidf { .. } => "application/pidf+xml",
            Self::Xpidf { .. } => "application/xpidf+xml",
            Self::Summary => "application/simple-message-summary",
            Self::Features => ::sip::feature::CONTENT_TYPE,
        }
    }
}

/// A document, written once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    head: String,
    /// What follows the version; `None` when there is no version in it.
    tail: Option<String>,
}

impl Document {
    /// The bytes for one watcher.
    pub(crate) fn bytes(&self, version: u32) -> Vec<u8> {
        let Some(tail) = &self.tail else { return self.head.clone().into_bytes() };
        let mut text = String::with_capacity(self.head.len() + 10 + tail.len());
        text.push_str(&self.head);
        let _ = write!(text, "{version}"); // writing into a String cannot fail
        text.push_str(tail);
        text.into_bytes()
    }
}

/// How a state looks to watchers.
struct Look {
    dialog: &'static str,
    open: bool,
    in_use: bool,
    activity: Option<&'static str>,
    note: &'static str,
}

fn look(state: DeviceState, early: bool) -> Look {
    let free = Look { dialog: "terminated", open: true, in_use: false, activity: None, note: "Ready" };
    let talks =
        Look { dialog: "confirmed", open: true, in_use: true, activity: Some("busy"), note: "On the phone" };
    match state {
        DeviceState::Ringing => Look { dialog: "early", note: "Ringing", ..talks },
        DeviceState::RingInUse if early => Look { dialog: "early", note: "Ringing", ..talks },
        DeviceState::RingInUse | DeviceState::InUse => talks,
        DeviceState::Busy => Look { open: false, in_use: false, ..talks },
        DeviceState::OnHold => Look { open: false, in_use: false, note: "On hold", ..talks },
        DeviceState::Unavailable => Look { open: false, activity: Some("away"), note: "Unavailable", ..free },
        DeviceState::NotInUse | DeviceState::Unknown | DeviceState::Invalid => free,
    }
}

/// Writes the document of an extension's state. `entity` is the URI that is watched.
pub(crate) fn extension(kind: Kind, state: DeviceState, exten: &str, entity: &str) -> Rc<Document> {
    let (exten, entity) = (escape(exten), escape(entity));
    Rc::new(match kind {
        Kind::DialogInfo { early } => {
            let look = look(state, early);
            let mut dialogs = format!(" <dialog id=\"{exten}\"");
            if look.dialog == "early" {
                dialogs.push_str(&super::pickup::attributes(&exten));
            }
            let _ = write!(dialogs, ">\n  <state>{}</state>\n", look.dialog);
            if look.dialog == "early" {
                // Who is called, and where whoever takes the call sends the INVITE: both are the extension.
                for party in ["local", "remote"] {
                    let _ = write!(
                        dialogs,
                        "  <{party}>\n   <identity>{entity}</identity>\n   <target uri=\"{entity}\"/>\n  </{party}>\n"
                    );
                }
            }
            if state == DeviceState::OnHold {
                let _ = write!(
                    dialogs,
                    "  <local>\n   <target uri=\"{entity}\">\n    <param pname=\"+sip.rendering\" pvalue=\"no\"/>\n   \
                     </target>\n  </local>\n"
                );
            }
            dialogs.push_str(" </dialog>\n");
            Document {
                head: format!("{XML}<dialog-info xmlns=\"urn:ietf:params:xml:ns:dialog-info\" version=\""),
                tail: Some(format!("\" state=\"full\" entity=\"{entity}\">\n{dialogs}</dialog-info>\n")),
            }
        }
        Kind::Pidf { early } => {
            let look = look(state, early);
            let basic = if look.open { "open" } else { "closed" };
            let activity = look.activity.map(|word| format!("<rpid:{word}/>")).unwrap_or_default();
            let head = format!(
                "{XML}<presence xmlns=\"urn:ietf:params:xml:ns:pidf\" xmlns:dm=\"urn:ietf:params:xml:ns:pidf:data-model\" \
                 xmlns:rpid=\"urn:ietf:params:xml:ns:pidf:rpid\" entity=\"{entity}\">\n <tuple id=\"{}\">\n  \
                 <status><basic>{basic}</basic></status>\n  <contact priority=\"1\">{entity}</contact>\n </tuple>\n \
                 <note>{}</note>\n <dm:person id=\"p{}\"><rpid:activities>{activity}</rpid:activities></dm:person>\n\
                 </presence>\n",
                xml_id(&exten),
                look.note,
                xml_id(&exten),
            );
            Document { head, tail: None }
        }
        Kind::Xpidf { early } => {
            let look = look(state, early);
            let (status, sub) = match (look.open, look.in_use) {
                (true, true) => ("inuse", "onthephone"),
                (true, false) => ("open", "online"),
                (false, _) => ("closed", "offline"),
            };
            let head = format!(
                "<?xml version=\"1.0\"?>\n<!DOCTYPE presence PUBLIC \"-//IETF//DTD RFCxxxx XPIDF 1.0//EN\" \"xpidf.dtd\">\n\
                 <presence>\n <presentity uri=\"{entity};method=SUBSCRIBE\"/>\n <atom atomid=\"{id}\" id=\"{id}\">\n  \
                 <address uri=\"{entity};user=ip\" priority=\"0.80000\">\n   <status status=\"{status}\"/>\n   \
                 <msnsubstatus substatus=\"{sub}\"/>\n  </address>\n </atom>\n</presence>\n",
                id = xml_id(&exten),
            );
            Document { head, tail: None }
        }
        Kind::Summary | Kind::Features => Document { head: String::new(), tail: None },
    })
}

pub(super) const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// Writes the state of mailboxes (RFC 3842 §5.2). `account` is the URI by which messages are fetched, when there is one.
pub(crate) fn summary(messages: Mailbox, account: &str) -> Rc<Document> {
    let waiting = if messages.new > 0 { "yes" } else { "no" };
    let mut head = format!("Messages-Waiting: {waiting}\r\n");
    if !account.is_empty() {
        let account: String = account.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(head, "Message-Account: {account}\r\n");
    }
    let _ = write!(head, "Voice-Message: {}/{} (0/0)\r\n", messages.new, messages.old);
    Rc::new(Document { head, tail: None })
}

/// A name that an attribute of type ID may have: what else stands in it becomes `_`, and no digit begins it.
pub(super) fn xml_id(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    std::iter::once('e').chain(text.chars().map(plain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeviceState::*;

    #[test]
    fn rfc4235_4_each_state_is_the_dialog_state_that_lamps_know() {
        for (state, early, expected) in [
            (NotInUse, false, "terminated"),
            (Unavailable, false, "terminated"),
            (Ringing, false, "early"),
            (RingInUse, false, "confirmed"),
            (RingInUse, true, "early"),
            (InUse, true, "confirmed"),
            (Busy, false, "confirmed"),
            (OnHold, false, "confirmed"),
        ] {
            let document = extension(Kind::DialogInfo { early }, state, "600", "sip:600@pbx");
            let text = String::from_utf8(document.bytes(7)).unwrap();
            assert!(text.contains(&format!("<state>{expected}</state>")), "{state:?}: {text}");
            assert!(text.contains("version=\"7\" state=\"full\" entity=\"sip:600@pbx\""), "{text}");
            assert_eq!(text.contains("direction=\"recipient\""), expected == "early", "{state:?}");
            assert_eq!(text.contains("+sip.rendering"), state == OnHold, "{state:?}");
        }
    }

    #[test]
    fn rfc3863_4_presence_is_open_while_somebody_could_be_reached() {
        for (state, basic, note) in [
            (NotInUse, "open", "Ready"),
            (InUse, "open", "On the phone"),
            (Ringing, "open", "Ringing"),
            (Busy, "closed", "On the phone"),
            (Unavailable, "closed", "Unavailable"),
        ] {
            let document = extension(Kind::Pidf { early: false }, state, "600", "sip:600@pbx");
            let text = String::from_utf8(document.bytes(0)).unwrap();
            assert!(text.contains(&format!("<basic>{basic}</basic>")), "{state:?}: {text}");
            assert!(text.contains(&format!("<note>{note}</note>")), "{state:?}: {text}");
        }
        let old = extension(Kind::Xpidf { early: false }, InUse, "600", "sip:600@pbx");
        assert!(
            String::from_utf8(old.bytes(0)).unwrap().contains("<msnsubstatus substatus=\"onthephone\"/>")
        );
    }

    #[test]
    fn what_a_watcher_names_stays_text_in_xml() {
        let document = extension(Kind::Pidf { early: false }, InUse, "1\"><x/>", "sip:1&'2@pbx");
        let text = String::from_utf8(document.bytes(0)).unwrap();
        assert!(text.contains("entity=\"sip:1&amp;&apos;2@pbx\"") && !text.contains("<x/>"), "{text}");
    }

    #[test]
    fn rfc3842_5_2_a_summary_counts_voice_messages() {
        let text = |new, old, account: &str| {
            String::from_utf8(summary(Mailbox { new, old }, account).bytes(0)).unwrap()
        };
        assert_eq!(text(0, 3, ""), "Messages-Waiting: no\r\nVoice-Message: 0/3 (0/0)\r\n");
        assert_eq!(
            text(2, 1, "sip:*97@pbx"),
            "Messages-Waiting: yes\r\nMessage-Account: sip:*97@pbx\r\nVoice-Message: 2/1 (0/0)\r\n"
        );
    }
}
