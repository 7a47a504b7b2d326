//! The documents that watchers read: dialog-info, two forms of presence, message-summary.
//!
//! A document is written once for all who read the same; what is each watcher's own, such as the version of dialog-info,
//! stands between its pieces.

use std::fmt::Write as _;
use std::rc::Rc;

use call::{DeviceState, Mailbox};

pub(crate) use ::sip::xml::escape;

/// What a watcher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// `application/dialog-info+xml` (RFC 4235). `early`: ringing shows while the line is in use as well. `pickup`: who
    /// watches may take calls, and is told a dialog to take them by.
    DialogInfo { early: bool, pickup: bool },
    /// `application/pidf+xml` (RFC 3863, RFC 4480). `early` as above.
    Pidf { early: bool },
    /// `application/xpidf+xml`, as phones of the first hour read it; `cpim`: under the name `application/cpim-pidf+xml`.
    Xpidf { early: bool, cpim: bool },
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
            Self::Xpidf { cpim: false, .. } => "application/xpidf+xml",
            Self::Xpidf { cpim: true, .. } => "application/cpim-pidf+xml",
            Self::Summary => "application/simple-message-summary",
            Self::Features => ::sip::feature::CONTENT_TYPE,
        }
    }
}

/// What differs between watchers of one document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watching<'a> {
    /// How many documents it has read before.
    pub(crate) version: u32,
    /// The watcher's own URI.
    pub(crate) contact: &'a str,
    /// A number that no other document has.
    pub(crate) unique: u128,
}

/// A place in a document that is each watcher's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Version,
    Contact,
    /// A UUID (RFC 9562 §5.4).
    Unique,
}

/// A document, written once: pieces of text, each with what follows it for each watcher.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pieces: Vec<(String, Option<Hole>)>,
}

impl Document {
    fn plain(text: String) -> Self {
        Self { pieces: vec![(text, None)] }
    }
    /// The bytes for one watcher.
    pub(crate) fn bytes(&self, watching: &Watching<'_>) -> Vec<u8> {
        let mut text = String::with_capacity(self.pieces.iter().map(|(text, _)| text.len() + 40).sum());
        for (piece, hole) in &self.pieces {
            text.push_str(piece);
            // Writing into a String cannot fail.
            let _ = match hole {
                None => Ok(()),
                Some(Hole::Version) => write!(text, "{}", watching.version),
                Some(Hole::Contact) => write!(text, "{}", escape(watching.contact)),
                Some(Hole::Unique) => {
                    // Version 4, and its variant.
                    let id = watching.unique & !(0xf000 << 64 | 0xc000 << 48) | 0x4000 << 64 | 0x8000 << 48;
                    let [b, c, d] = [80, 64, 48].map(|shift| id >> shift & 0xffff);
                    write!(text, "{:08x}-{b:04x}-{c:04x}-{d:04x}-{:012x}", id >> 96, id & 0xffff_ffff_ffff)
                }
            };
        }
        text.into_bytes()
    }
}

/// Who rings and for whom, as far as it is known: name and URI each.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Parties {
    /// Who calls.
    pub(crate) remote: Option<(String, String)>,
    /// Who is called; without it the extension that is watched.
    pub(crate) local: Option<(String, String)>,
}

/// How a state looks to watchers.
struct Look {
    dialog: &'static str,
    open: bool,
    in_use: bool,
    note: &'static str,
}

fn look(state: DeviceState, early: bool) -> Look {
    let free = Look { dialog: "terminated", open: true, in_use: false, note: "Ready" };
    let talks = Look { dialog: "confirmed", open: true, in_use: true, note: "On the phone" };
    match state {
        DeviceState::Ringing => Look { dialog: "early", note: "Ringing", ..talks },
        DeviceState::RingInUse if early => Look { dialog: "early", note: "Ringing", ..talks },
        DeviceState::RingInUse => Look { note: "Ringing", ..talks },
        DeviceState::InUse | DeviceState::Busy => talks,
        DeviceState::OnHold => Look { note: "On hold", ..talks },
        DeviceState::Unavailable => Look { open: false, note: "Unavailable", ..free },
        DeviceState::NotInUse | DeviceState::Unknown | DeviceState::Invalid => free,
    }
}

/// Writes the document of an extension's state. `entity` is the URI that is watched; of whom a call rings for nothing is
/// said without `parties`.
pub(crate) fn extension(
    kind: Kind,
    state: DeviceState,
    exten: &str,
    entity: &str,
    parties: Option<&Parties>,
) -> Rc<Document> {
    let (exten, entity) = (escape(exten), escape(entity));
    Rc::new(match kind {
        Kind::DialogInfo { early, pickup } => {
            dialog_info(&look(state, early), state, (&exten, &entity), pickup, parties)
        }
        Kind::Pidf { early } => {
            let look = look(state, early);
            let basic = if look.open { "open" } else { "closed" };
            let person = match look.in_use {
                true => {
                    " <dm:person>\n  <rpid:activities>\n   <rpid:on-the-phone />\n  </rpid:activities>\n </dm:person>\n"
                }
                false => " <dm:person />\n",
            };
            let head = format!(
                "{XML}<presence entity=\"{entity}\" xmlns=\"urn:ietf:params:xml:ns:pidf\" \
                 xmlns:dm=\"urn:ietf:params:xml:ns:pidf:data-model\" xmlns:rpid=\"urn:ietf:params:xml:ns:pidf:rpid\">\n \
                 <note>{}</note>\n <tuple id=\"{exten}\">\n  <status>\n   <basic>{basic}</basic>\n  </status>\n  \
                 <contact priority=\"1\">",
                look.note,
            );
            let tail = format!("</contact>\n </tuple>\n{person}</presence>\n");
            Document { pieces: vec![(head, Some(Hole::Contact)), (tail, None)] }
        }
        Kind::Xpidf { early, .. } => {
            let look = look(state, early);
            let (status, sub) = match (look.open, look.in_use) {
                (true, true) => ("inuse", "onthephone"),
                (true, false) => ("open", "online"),
                (false, _) => ("closed", "offline"),
            };
            let head = format!(
                "{XML}<presence>\n <presentity uri=\"{entity};method=SUBSCRIBE\" />\n <atom atomid=\""
            );
            let atom = format!("\" id=\"{exten}\">\n  <address uri=\"");
            let tail = format!(
                ";user=ip\" priority=\"0.80000\">\n   <status status=\"{status}\" />\n   \
                 <msnsubstatus substatus=\"{sub}\" />\n  </address>\n </atom>\n</presence>\n"
            );
            Document { pieces: vec![(head, Some(Hole::Unique)), (atom, Some(Hole::Contact)), (tail, None)] }
        }
        Kind::Summary | Kind::Features => Document::plain(String::new()),
    })
}

fn dialog_info(
    look: &Look,
    state: DeviceState,
    (exten, entity): (&str, &str),
    pickup: bool,
    parties: Option<&Parties>,
) -> Document {
    let rings = look.dialog == "early";
    let mut dialogs = format!(" <dialog id=\"{exten}\"");
    match (rings, pickup && parties.is_some()) {
        (true, true) => dialogs.push_str(&super::pickup::attributes(exten)),
        (true, false) => dialogs.push_str(" direction=\"recipient\""),
        (false, _) => {}
    }
    dialogs.push_str(">\n");
    // Writing into a String cannot fail.
    let _ = match parties.filter(|_| rings) {
        None => Ok(()),
        // Who is called, and where whoever takes the call sends the INVITE: both are the extension.
        Some(_) if pickup => ["remote", "local"].iter().try_for_each(|side| {
            write!(
                dialogs,
                "  <{side}>\n   <identity>{entity}</identity>\n   <target uri=\"{entity}\" />\n  </{side}>\n"
            )
        }),
        Some(parties) => {
            let identity = |party: &(String, String)| match escape(&party.0) {
                name if name.is_empty() => format!("<identity>{}</identity>", escape(&party.1)),
                name => format!("<identity display=\"{name}\">{}</identity>", escape(&party.1)),
            };
            let unnamed = format!("<identity>{entity}</identity>");
            let local = parties.local.as_ref().map_or(unnamed, identity);
            let remote = parties.remote.as_ref().map_or(Ok(()), |remote| {
                let (who, uri) = (identity(remote), escape(&remote.1));
                write!(dialogs, "  <remote>\n   {who}\n   <target uri=\"{uri}\" />\n  </remote>\n")
            });
            remote.and(write!(dialogs, "  <local>\n   {local}\n   <target uri=\"{entity}\" />\n  </local>\n"))
        }
    };
    let _ = writeln!(dialogs, "  <state>{}</state>", look.dialog);
    if state == DeviceState::OnHold {
        let _ = write!(
            dialogs,
            "  <local>\n   <target uri=\"{entity}\">\n    <param pname=\"+sip.rendering\" pvalue=\"no\" />\n   \
             </target>\n  </local>\n"
        );
    }
    dialogs.push_str(" </dialog>\n");
    let head = format!("{XML}<dialog-info xmlns=\"urn:ietf:params:xml:ns:dialog-info\" version=\"");
    let tail = format!("\" state=\"full\" entity=\"{entity}\">\n{dialogs}</dialog-info>\n");
    Document { pieces: vec![(head, Some(Hole::Version)), (tail, None)] }
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
    Rc::new(Document::plain(head))
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

    const READ: Watching<'static> =
        Watching { version: 7, contact: "sip:carol@pbx", unique: 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef };

    fn text(document: &Document) -> String {
        String::from_utf8(document.bytes(&READ)).unwrap()
    }

    #[test]
    fn rfc4235_4_each_state_is_the_dialog_state_that_lamps_know() {
        let parties = Parties {
            remote: Some(("Al \"x\"".to_owned(), "sip:101@pbx".to_owned())),
            local: Some((String::new(), "sip:102@pbx".to_owned())),
        };
        let rings = "<remote>\n   <identity display=\"Al &quot;x&quot;\">sip:101@pbx</identity>\n   \
                     <target uri=\"sip:101@pbx\" />\n  </remote>\n  <local>\n   <identity>sip:102@pbx</identity>\n   \
                     <target uri=\"sip:600@pbx\" />\n  </local>\n  <state>early</state>\n </dialog>\n</dialog-info>\n";
        let unknown = "<local>\n   <identity>sip:600@pbx</identity>\n   <target uri=\"sip:600@pbx\" />\n  </local>\n  \
                       <state>early</state>\n </dialog>\n</dialog-info>\n";
        let held = "<state>confirmed</state>\n  <local>\n   <target uri=\"sip:600@pbx\">\n    \
                    <param pname=\"+sip.rendering\" pvalue=\"no\" />\n   </target>\n  </local>\n </dialog>\n</dialog-info>\n";
        let only = |state: &str| format!("<state>{state}</state>\n </dialog>\n</dialog-info>\n");
        let nobody = Parties::default();
        for (state, early, parties, expected) in [
            (NotInUse, false, Some(&nobody), only("terminated")),
            (Unavailable, false, Some(&nobody), only("terminated")),
            (Ringing, false, Some(&parties), rings.to_owned()),
            (Ringing, false, Some(&nobody), unknown.to_owned()),
            (Ringing, false, None, only("early")),
            (RingInUse, false, Some(&parties), only("confirmed")),
            (RingInUse, true, None, only("early")),
            (InUse, true, Some(&nobody), only("confirmed")),
            (Busy, false, Some(&nobody), only("confirmed")),
            (OnHold, false, Some(&nobody), held.to_owned()),
        ] {
            let kind = Kind::DialogInfo { early, pickup: false };
            let text = text(&extension(kind, state, "600", "sip:600@pbx", parties));
            let direction = if expected.contains("early") { " direction=\"recipient\"" } else { "" };
            let head = format!(
                "{XML}<dialog-info xmlns=\"urn:ietf:params:xml:ns:dialog-info\" version=\"7\" state=\"full\" \
                 entity=\"sip:600@pbx\">\n <dialog id=\"600\"{direction}>\n  "
            );
            assert_eq!(text, format!("{head}{expected}"), "{state:?}");
        }
        let kind = Kind::DialogInfo { early: false, pickup: true };
        let taken = text(&extension(kind, Ringing, "600", "sip:600@pbx", Some(&parties)));
        assert!(taken.contains("call-id=") && !taken.contains("101"), "{taken}");
    }

    #[test]
    fn rfc3863_4_presence_is_open_while_somebody_could_be_reached() {
        let phone =
            "<dm:person>\n  <rpid:activities>\n   <rpid:on-the-phone />\n  </rpid:activities>\n </dm:person>";
        for (state, basic, note, person) in [
            (NotInUse, "open", "Ready", "<dm:person />"),
            (Unknown, "open", "Ready", "<dm:person />"),
            (InUse, "open", "On the phone", phone),
            (Ringing, "open", "Ringing", phone),
            (RingInUse, "open", "Ringing", phone),
            (Busy, "open", "On the phone", phone),
            (OnHold, "open", "On hold", phone),
            (Unavailable, "closed", "Unavailable", "<dm:person />"),
        ] {
            let text = text(&extension(Kind::Pidf { early: false }, state, "600", "sip:600@pbx", None));
            let expected = format!(
                " <note>{note}</note>\n <tuple id=\"600\">\n  <status>\n   <basic>{basic}</basic>\n  </status>\n  \
                 <contact priority=\"1\">sip:carol@pbx</contact>\n </tuple>\n {person}\n</presence>\n"
            );
            assert!(text.ends_with(&expected), "{state:?}: {text}");
        }
        let old =
            text(&extension(Kind::Xpidf { early: false, cpim: true }, InUse, "600", "sip:600@pbx", None));
        assert!(old.contains("<msnsubstatus substatus=\"onthephone\" />"), "{old}");
        assert!(old.contains("<address uri=\"sip:carol@pbx;user=ip\" priority=\"0.80000\">"), "{old}");
        assert!(old.contains("atomid=\"01234567-89ab-4def-8123-456789abcdef\" id=\"600\""), "{old}");
    }

    #[test]
    fn what_a_watcher_names_stays_text_in_xml() {
        let document = extension(Kind::Pidf { early: false }, InUse, "1\"><x/>", "sip:1&'2@pbx", None);
        let text = String::from_utf8(document.bytes(&Watching { contact: "<y/>", ..READ })).unwrap();
        assert!(text.contains("entity=\"sip:1&amp;&apos;2@pbx\"") && !text.contains("<x/>"), "{text}");
        assert!(!text.contains("<y/>"), "{text}");
    }

    #[test]
    fn rfc3842_5_2_a_summary_counts_voice_messages() {
        let text = |new, old, account: &str| {
            String::from_utf8(summary(Mailbox { new, old }, account).bytes(&READ)).unwrap()
        };
        assert_eq!(text(0, 3, ""), "Messages-Waiting: no\r\nVoice-Message: 0/3 (0/0)\r\n");
        assert_eq!(
            text(2, 1, "sip:*97@pbx"),
            "Messages-Waiting: yes\r\nMessage-Account: sip:*97@pbx\r\nVoice-Message: 2/1 (0/0)\r\n"
        );
    }
}
