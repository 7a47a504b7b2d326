//! Channel event logging: what happened to each channel of a call, one event after the other.
//!
//! An event is made where the thing happens, and only when the configuration wants events of its kind: nothing is
//! formatted or allocated otherwise. What transfers, pickups, parking and Local channels tell watchers becomes an event
//! in [`Core::notice_logged`].

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use base::{BridgeId, ChannelId};

use crate::parking::ParkingChange;
use crate::{AmaFlags, Channel, Core, Notice, Snapshot};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $number:literal $name:literal;)*) => {
        /// What happened, with the numbers and words of the field.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum CelKind {
            $($(#[$doc])* $kind = $number,)*
        }
        impl CelKind {
            /// All kinds, by their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];
            /// The word: `CHAN_START`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A channel was made.
    ChanStart 1 "CHAN_START";
    /// It is gone.
    ChanEnd 2 "CHAN_END";
    /// It was hung up.
    Hangup 3 "HANGUP";
    /// It was answered.
    Answer 4 "ANSWER";
    /// An application that the configuration names began.
    AppStart 5 "APP_START";
    /// It ended.
    AppEnd 6 "APP_END";
    /// The call was parked.
    ParkStart 7 "PARK_START";
    /// It is parked no more.
    ParkEnd 8 "PARK_END";
    /// The dialplan says so.
    UserDefined 9 "USER_DEFINED";
    /// The channel entered a bridge.
    BridgeEnter 10 "BRIDGE_ENTER";
    /// It left it.
    BridgeExit 11 "BRIDGE_EXIT";
    /// It sent the party it talked to elsewhere.
    BlindTransfer 12 "BLINDTRANSFER";
    /// It connected two others.
    AttendedTransfer 13 "ATTENDEDTRANSFER";
    /// Its call was picked up by another.
    Pickup 14 "PICKUP";
    /// The call that it makes was sent elsewhere.
    Forward 15 "FORWARD";
    /// The last channel with this LINKEDID is gone.
    LinkedidEnd 16 "LINKEDID_END";
    /// A Local channel was taken out of the way.
    LocalOptimize 17 "LOCAL_OPTIMIZE";
    /// That begins.
    LocalOptimizeBegin 18 "LOCAL_OPTIMIZE_BEGIN";
    /// A sound begins on it.
    StreamBegin 19 "STREAM_BEGIN";
    /// The sound ended.
    StreamEnd 20 "STREAM_END";
    /// Its user pressed a digit.
    Dtmf 21 "DTMF";
}

impl CelKind {
    /// The kind of this word, any case.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name().eq_ignore_ascii_case(word))
    }
}

/// Which events are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CelSettings {
    kinds: u32,
    apps: BTreeSet<String>,
}

impl CelSettings {
    /// Events of these kinds, and for those of applications these applications.
    pub fn new(kinds: impl IntoIterator<Item = CelKind>, apps: impl IntoIterator<Item = String>) -> Self {
        let kinds = kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u32);
        Self { kinds, apps: apps.into_iter().map(|app| app.to_ascii_lowercase()).collect() }
    }
    /// Whether events of a kind are kept.
    pub fn has(&self, kind: CelKind) -> bool {
        self.kinds & (1 << kind as u32) != 0
    }
    /// Whether beginning and end of an application are kept.
    pub fn has_app(&self, name: &str) -> bool {
        let of_apps = 1 << CelKind::AppStart as u32 | 1 << CelKind::AppEnd as u32;
        self.kinds & of_apps != 0
            && !self.apps.is_empty()
            && self.apps.contains(name.to_ascii_lowercase().as_str())
    }
    /// The kinds that are kept, by their numbers.
    pub fn kinds(&self) -> impl Iterator<Item = CelKind> {
        CelKind::ALL.iter().copied().filter(|kind| self.has(*kind))
    }
    /// The applications, in small letters.
    pub fn apps(&self) -> impl Iterator<Item = &str> {
        self.apps.iter().map(String::as_str)
    }
}

/// A value of [`Cel::extra`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extra {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
}

impl From<String> for Extra {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<&str> for Extra {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// More of an event: names and values, in order.
pub type Extras = Vec<(&'static str, Extra)>;

/// One event, with its channel as it was at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cel {
    /// What happened.
    pub kind: CelKind,
    /// When, in microseconds since the Unix epoch.
    pub time: i64,
    /// Name that the dialplan gave a [`CelKind::UserDefined`] one.
    pub user_defined: String,
    /// Caller's name.
    pub cid_name: String,
    /// Caller's number.
    pub cid_num: String,
    /// Automatic number identification.
    pub cid_ani: String,
    /// Who sent the call on.
    pub cid_rdnis: String,
    /// The number that was dialled.
    pub cid_dnid: String,
    /// Extension.
    pub exten: String,
    /// Context.
    pub context: String,
    /// Channel.
    pub channel: Rc<str>,
    /// Application that runs.
    pub app: &'static str,
    /// Its arguments.
    pub app_data: String,
    /// What its record is for.
    pub ama_flags: AmaFlags,
    /// Account code.
    pub account: String,
    /// Account of the other party.
    pub peer_account: String,
    /// UNIQUEID.
    pub uniqueid: Rc<str>,
    /// LINKEDID.
    pub linkedid: Rc<str>,
    /// Its tenant; empty: none.
    pub tenant: Rc<str>,
    /// User field of its call record.
    pub user_field: String,
    /// The other channels of its bridge, by commas.
    pub peer: String,
    /// More, as the kind has it.
    pub extra: Extras,
}

impl Cel {
    fn of(channel: &Channel, kind: CelKind, time: i64) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            kind,
            time,
            user_defined: String::new(),
            cid_name: text(&channel.caller.name),
            cid_num: text(&channel.caller.number),
            cid_ani: text(&channel.ani),
            cid_rdnis: text(&channel.redirecting.from.number),
            cid_dnid: text(&channel.dialed),
            exten: channel.location.exten.clone(),
            context: channel.location.context.clone(),
            channel: channel.name.clone(),
            app: channel.app,
            app_data: channel.app_data.clone(),
            ama_flags: channel.cdr.ama_flags,
            account: channel.account.clone(),
            peer_account: channel.peer_account.clone(),
            uniqueid: channel.uniqueid.clone(),
            linkedid: channel.linkedid.clone(),
            tenant: channel.tenant.clone(),
            user_field: channel.user_field.clone(),
            peer: String::new(),
            extra: Vec::new(),
        }
    }
    /// Of somebody who is no channel of a call and has no identity but its name.
    pub(crate) fn of_guest(kind: CelKind, time: i64, channel: Rc<str>, uniqueid: Rc<str>) -> Self {
        let none = String::new;
        Self {
            kind,
            time,
            user_defined: none(),
            cid_name: none(),
            cid_num: none(),
            cid_ani: none(),
            cid_rdnis: none(),
            cid_dnid: none(),
            exten: "s".to_owned(),
            context: "default".to_owned(),
            channel,
            app: "",
            app_data: none(),
            ama_flags: AmaFlags::default(),
            account: none(),
            peer_account: none(),
            linkedid: uniqueid.clone(),
            tenant: Rc::from(""),
            uniqueid,
            user_field: none(),
            peer: none(),
            extra: Vec::new(),
        }
    }
    /// `extra` as an object of JSON; empty when there is nothing more.
    pub fn extra_json(&self) -> String {
        if self.extra.is_empty() {
            return String::new();
        }
        let mut out = String::from("{");
        for (name, value) in &self.extra {
            if out.len() > 1 {
                out.push(',');
            }
            quote(name, &mut out);
            out.push(':');
            match value {
                Extra::Text(text) => quote(text, &mut out),
                Extra::Number(number) => out.push_str(&number.to_string()),
            }
        }
        out.push('}');
        out
    }
}

/// A string of JSON (RFC 8259 §7).
pub(crate) fn quote(text: &str, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a String cannot fail.
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// How many channels have each LINKEDID; counted only while somebody wants to know of the last one.
pub(crate) type LinkedCounts = Option<HashMap<Rc<str>, u32>>;

impl Core {
    /// Whether events of a kind are kept.
    pub fn keeps(&self, kind: CelKind) -> bool {
        self.settings.cel.as_ref().is_some_and(|cel| cel.has(kind))
    }
    /// Keeps an event of a channel, when events of its kind are kept.
    pub fn log_event(&mut self, kind: CelKind, id: ChannelId, extra: impl FnOnce(&Self) -> Extras) {
        self.log_event_with(kind, id, |core, event| event.extra = extra(core));
    }
    /// The same, of whatever else the event says.
    pub fn log_event_with(&mut self, kind: CelKind, id: ChannelId, fill: impl FnOnce(&Self, &mut Cel)) {
        if !self.keeps(kind) {
            return;
        }
        let time = self.services.wall.now_micros();
        let Some(mut event) = self.get(id).map(|channel| Cel::of(channel, kind, time)) else { return };
        fill(self, &mut event);
        self.cels.push(event);
    }
    pub(crate) fn log_cel(&mut self, event: Cel) {
        self.cels.push(event);
    }
    /// A channel entered a bridge, or left it; `others` are in it beside.
    pub(crate) fn log_bridge(&mut self, kind: CelKind, bridge: BridgeId, id: ChannelId) {
        let others = self.bridge_members(bridge).iter().copied().filter(|member| *member != id);
        let others: Vec<ChannelId> = others.collect();
        self.log_bridge_beside(kind, (bridge, id), &others);
    }
    /// The same where others are in it than its members.
    pub(crate) fn log_bridge_beside(
        &mut self,
        kind: CelKind,
        (bridge, id): (BridgeId, ChannelId),
        others: &[ChannelId],
    ) {
        self.log_event_with(kind, id, |core, event| {
            let others = others.iter().filter_map(|member| core.get(*member));
            let mut names: Vec<(&str, &str)> =
                others.map(|channel| (&*channel.uniqueid, &*channel.name)).collect();
            // Who is no channel stands among them by its age.
            for guest in core.bridge_guests(bridge) {
                let is_younger = |(uniqueid, _): &(&str, &str)| age(uniqueid) > age(&guest.uniqueid);
                let at = names.iter().position(is_younger).unwrap_or(names.len());
                names.insert(at, (&guest.uniqueid, &guest.name));
            }
            event.peer = names.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(",");
            if let Some(bridge) = core.bridge_snapshot(bridge) {
                event.extra = vec![
                    ("bridge_id", (&*bridge.uid).into()),
                    ("bridge_technology", bridge.technology.into()),
                ];
            }
        });
    }
    /// A channel was made.
    pub(crate) fn log_start(&mut self, id: ChannelId) {
        self.log_event(CelKind::ChanStart, id, |_| Vec::new());
        if !self.keeps(CelKind::LinkedidEnd) {
            self.linked = None;
        } else if self.linked.is_some() {
            let linkedid = self.get(id).map(|channel| channel.linkedid.clone());
            self.count_linked(linkedid);
        } else {
            self.linked = Some(HashMap::new());
            let all: Vec<Rc<str>> = self.channels().map(|channel| channel.linkedid.clone()).collect();
            all.into_iter().for_each(|linkedid| self.count_linked(Some(linkedid)));
        }
    }
    fn count_linked(&mut self, linkedid: Option<Rc<str>>) {
        if let (Some(counts), Some(linkedid)) = (&mut self.linked, linkedid) {
            *counts.entry(linkedid).or_default() += 1;
        }
    }
    /// A channel ends.
    pub(crate) fn log_end(&mut self, id: ChannelId) {
        if self.settings.cel.is_none() {
            return;
        }
        self.log_event(CelKind::Hangup, id, |core| {
            let Some(channel) = core.get(id) else { return Vec::new() };
            let cause = channel.hangup.unwrap_or(base::Cause::NORMAL_CLEARING);
            let status = channel.cdr.dial_status;
            vec![
                ("hangupcause", Extra::Number(i64::from(cause.0))),
                ("hangupsource", (&*channel.hangup_by).into()),
                ("dialstatus", status.into()),
            ]
        });
        self.log_event(CelKind::ChanEnd, id, |_| Vec::new());
        self.leave_linked(id);
    }
    /// The channel gives up its LINKEDID: the last one tells.
    fn leave_linked(&mut self, id: ChannelId) {
        let Some(linkedid) = self.get(id).map(|channel| channel.linkedid.clone()) else { return };
        let Some(counts) = &mut self.linked else { return };
        let Some(count) = counts.get_mut(&linkedid) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(&linkedid);
            self.log_event(CelKind::LinkedidEnd, id, |_| Vec::new());
        }
    }
    /// All who are in a bridge belong to one call from here on: the oldest of theirs.
    pub(crate) fn link_bridge(&mut self, bridge: BridgeId) {
        let members = self.bridge_members(bridge);
        let linked = |id: &ChannelId| self.get(*id).map(|channel| channel.linkedid.clone());
        let Some(oldest) = members.iter().filter_map(linked).min_by_key(|linkedid| age(linkedid)) else {
            return;
        };
        let others: Vec<ChannelId> = members
            .iter()
            .copied()
            .filter(|id| self.get(*id).is_some_and(|channel| channel.linkedid != oldest))
            .collect();
        // Who comes to another call comes to its tenant.
        let of_oldest =
            members.iter().filter_map(|id| self.get(*id)).find(|channel| channel.linkedid == oldest);
        let tenant = of_oldest.map(|channel| channel.tenant.clone()).unwrap_or_default();
        for id in others {
            self.count_linked(Some(oldest.clone()));
            self.leave_linked(id);
            if let Some(channel) = self.get_mut(id) {
                channel.linkedid = oldest.clone();
                channel.tenant = tenant.clone();
            }
        }
    }

    /// Tells watchers what is kept as an event, too.
    pub fn notice_logged(&mut self, kind: CelKind, notice: impl FnOnce(&Self) -> Option<Notice>) {
        if !self.watched && !self.keeps(kind) {
            return;
        }
        let notice = notice(self);
        self.tell(notice);
    }
    /// Tells watchers what was put together before, and keeps it when it is an event that is kept.
    pub fn tell(&mut self, notice: Option<Notice>) {
        let Some(notice) = notice else { return };
        self.log_notice(&notice);
        if self.watched {
            self.notices.push(notice);
        }
    }
    /// What a notice is as an event.
    pub(crate) fn log_notice(&mut self, notice: &Notice) {
        if self.settings.cel.is_none() {
            return;
        }
        let named = |snapshot: &Snapshot| snapshot.name.clone();
        let (kind, of, extra): (_, &Snapshot, Extras) = match notice {
            Notice::BlindTransfer { transferer, transferee, bridge, to, .. } => {
                let of_transferee = |part: fn(&Snapshot) -> &str| transferee.as_deref().map_or("N/A", part);
                (
                    CelKind::BlindTransfer,
                    transferer,
                    vec![
                        ("extension", to.1.as_str().into()),
                        ("context", to.0.as_str().into()),
                        ("bridge_id", (&*bridge.uid).into()),
                        ("transferee_channel_name", of_transferee(|of| &of.name).into()),
                        ("transferee_channel_uniqueid", of_transferee(|of| &of.uniqueid).into()),
                    ],
                )
            }
            Notice::AttendedTransfer { transferer, second, transferee, target, .. } => {
                let bridge_of = |of: Option<&Snapshot>| {
                    let id = self.by_name(&named(of?))?;
                    self.bridge_around(id).map(|bridge| bridge.uid.to_string())
                };
                let second = second.as_deref();
                let mut extra: Extras = vec![
                    ("bridge1_id", bridge_of(Some(transferer)).unwrap_or_default().into()),
                    ("channel2_name", second.map_or("", |of| &of.name).into()),
                    ("channel2_uniqueid", second.map_or("", |of| &of.uniqueid).into()),
                ];
                let parties = [
                    (transferee, "transferee_channel_name", "transferee_channel_uniqueid"),
                    (target, "transfer_target_channel_name", "transfer_target_channel_uniqueid"),
                ];
                if let Some(bridge) = bridge_of(second.or(target.as_deref())) {
                    extra.push(("bridge2_id", bridge.into()));
                }
                for (party, name, uniqueid) in parties {
                    if let Some(party) = party.as_deref() {
                        extra.push((name, (&*party.name).into()));
                        extra.push((uniqueid, (&*party.uniqueid).into()));
                    }
                }
                (CelKind::AttendedTransfer, transferer, extra)
            }
            Notice::LocalOptimizationBegin { first, second, .. } => (
                CelKind::LocalOptimizeBegin,
                first,
                vec![
                    ("local_two", (&*second.name).into()),
                    ("local_two_uniqueid", (&*second.uniqueid).into()),
                ],
            ),
            Notice::LocalOptimizationEnd { first, second, .. } => (
                CelKind::LocalOptimize,
                first,
                vec![
                    ("local_two", (&*second.name).into()),
                    ("local_two_uniqueid", (&*second.uniqueid).into()),
                ],
            ),
            Notice::Pickup { channel, target } => (
                CelKind::Pickup,
                target,
                vec![
                    ("pickup_channel", (&*channel.name).into()),
                    ("pickup_channel_uniqueid", (&*channel.uniqueid).into()),
                ],
            ),
            Notice::Parking(parking) => {
                let reason = match parking.change {
                    ParkingChange::Parked => None,
                    ParkingChange::TimedOut => Some("ParkedCallTimeOut"),
                    ParkingChange::GaveUp => Some("ParkedCallGiveUp"),
                    ParkingChange::Swapped => Some("ParkedCallSwap"),
                    ParkingChange::Fetched => Some("ParkedCallUnparked"),
                };
                match reason {
                    None => (
                        CelKind::ParkStart,
                        &parking.parkee,
                        vec![
                            ("parker_dial_string", parking.parker_dial.as_str().into()),
                            ("parking_lot", parking.lot.as_str().into()),
                        ],
                    ),
                    Some(reason) => {
                        let retriever = parking.retriever.as_ref();
                        let retriever = retriever.map(|of| ("retriever", Extra::from(&*of.name)));
                        let reason = ("reason", reason.into());
                        let extra = [reason].into_iter().chain(retriever).collect();
                        (CelKind::ParkEnd, &parking.parkee, extra)
                    }
                }
            }
            _ => return,
        };
        if let Some(id) = self.by_name(&named(of)) {
            self.log_event(kind, id, |_| extra);
        }
    }
}

/// The unique name of a bridge, in the form of a UUID because clients match that.
pub fn bridge_name(id: BridgeId) -> String {
    format!("{:08x}-0000-4000-8000-0000{:08x}", id.slot, id.generation)
}

/// When the channel of a LINKEDID (`[systemname-]epoch.serial`) was made, to compare. One that somebody made up counts as
/// the oldest: who gave it a name wants it back.
fn age(linkedid: &str) -> (u64, u64) {
    let stamp = linkedid.rsplit_once('-').map_or(linkedid, |(_, stamp)| stamp);
    let parsed = stamp.split_once('.').map(|(epoch, serial)| (epoch.parse(), serial.parse()));
    match parsed {
        Some((Ok(epoch), Ok(serial))) => (epoch, serial),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_numbers_and_words() {
        for (kind, number, word) in [
            (CelKind::ChanStart, 1, "chan_start"),
            (CelKind::UserDefined, 9, "USER_DEFINED"),
            (CelKind::LocalOptimizeBegin, 18, "Local_Optimize_Begin"),
            (CelKind::Dtmf, 21, "DTMF"),
        ] {
            assert_eq!((CelKind::named(word), kind as u8), (Some(kind), number), "{word}");
        }
        assert_eq!(CelKind::named("ALL"), None);
        let numbers: Vec<u8> = CelKind::ALL.iter().map(|kind| *kind as u8).collect();
        assert_eq!(numbers, (1..=21).collect::<Vec<u8>>());
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let settings = CelSettings::new([CelKind::ChanStart, CelKind::AppEnd], ["Dial".to_owned()]);
        assert!(settings.has(CelKind::ChanStart) && !settings.has(CelKind::ChanEnd));
        assert!(settings.has_app("dial") && settings.has_app("Dial") && !settings.has_app("Park"));
        let without = CelSettings::new([CelKind::ChanStart], ["dial".to_owned()]);
        assert!(!without.has_app("dial"), "no events of applications are kept");
    }

    #[test]
    fn rfc8259_7_what_is_more_is_json_whatever_it_holds() {
        let mut out = String::new();
        quote("a\"b\\c\r\n\t\u{1}é", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\c\\r\\n\\t\\u0001é\"");
    }

    #[test]
    fn the_oldest_call_gives_its_name() {
        for (name, of, oldest) in [
            ("the second counts", vec!["20.1", "10.5"], "10.5"),
            ("then the serial, as a number", vec!["10.10", "10.9"], "10.9"),
            ("a system's name is no time", vec!["north-10.2", "pbx-2-10.1"], "pbx-2-10.1"),
            ("one that was given", vec!["10.1", "my-call"], "my-call"),
        ] {
            assert_eq!(of.iter().copied().min_by_key(|linkedid| age(linkedid)), Some(oldest), "{name}");
        }
    }
}
