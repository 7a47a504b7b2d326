//! Parking lots: which calls wait in which spaces, who put them there, and what watchers and lamps are told of it.
//!
//! A parked channel belongs to a story that plays it music and listens until its time is up ([`Core::park`] to
//! [`Core::park_over`]); whoever fetches it ([`Core::unpark`]) takes it out of that story. The space is free from that
//! moment on, whatever the two do then.

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::{ChannelId, Instant};

use crate::features::Rights;
use crate::{CelKind, Core, Notice, Snapshot};

/// Name of the lot that is used where nobody names another.
pub const DEFAULT_LOT: &str = "default";
/// Most spaces of one lot: four digits, and a lamp for each.
pub const SPACES_MAX: u32 = 10_000;
/// Most lots that dialplans make while calls go on: each has a copy of the extensions, and stays until the restart.
pub const DYNAMIC_LOTS_MAX: usize = 256;
/// Context in which those are called who have parked somebody for too long.
pub const COME_BACK_DIAL: &str = "park-dial";

/// Which of two an option is for: who fetches or is called back, and who was parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sides {
    /// Neither.
    #[default]
    Nobody,
    /// Who calls: who fetches a call, or the parked one when it comes back.
    Caller,
    /// Who is called: the parked one, or who is called back.
    Callee,
    /// Both.
    Both,
}

impl Sides {
    /// For who calls, for who is called.
    pub fn of(self) -> [bool; 2] {
        [matches!(self, Self::Caller | Self::Both), matches!(self, Self::Callee | Self::Both)]
    }
}

/// A lot of res_parking.conf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LotSettings {
    /// Its name.
    pub name: String,
    /// `parkext`: who is sent there is parked; empty: the lot has no extensions.
    pub extension: String,
    /// `context` of its extensions.
    pub context: String,
    /// `parkpos`: the first space.
    pub first: u32,
    /// And the last.
    pub last: u32,
    /// `parkext_exclusive`: the extension parks in this lot, whatever lot the channel has.
    pub exclusive: bool,
    /// `parkinghints`: every space has a hint.
    pub hints: bool,
    /// `parkingtime`; `None`: no limit.
    pub time: Option<Duration>,
    /// `comebacktoorigin`.
    pub to_origin: bool,
    /// `comebackdialtime`.
    pub dial_time: Duration,
    /// `comebackcontext`.
    pub come_back_context: String,
    /// `courtesytone`; empty: none.
    pub courtesy_tone: String,
    /// `parkedplay`: who hears it.
    pub played_to: Sides,
    /// `parkedcalltransfers`.
    pub transfers: Sides,
    /// `parkedcallreparking`.
    pub reparking: Sides,
    /// `parkedcallhangup`.
    pub hangup: Sides,
    /// `parkedcallrecording`.
    pub recording: Sides,
    /// `findslot=next`: the space after the one that was given last, not the first free one.
    pub find_next: bool,
    /// `parkedmusicclass`; empty: that of the channel.
    pub music: String,
}

impl Default for LotSettings {
    /// The field's.
    fn default() -> Self {
        Self {
            name: DEFAULT_LOT.to_owned(),
            extension: String::new(),
            context: "parkedcalls".to_owned(),
            first: 701,
            last: 750,
            exclusive: false,
            hints: false,
            time: Some(Duration::from_secs(45)),
            to_origin: true,
            dial_time: Duration::from_secs(30),
            come_back_context: "parkedcallstimeout".to_owned(),
            courtesy_tone: String::new(),
            played_to: Sides::Caller,
            transfers: Sides::Nobody,
            reparking: Sides::Nobody,
            hangup: Sides::Nobody,
            recording: Sides::Nobody,
            find_next: false,
            music: String::new(),
        }
    }
}

impl LotSettings {
    /// What the two may do with keys: who calls, who is called.
    pub fn rights(&self) -> [Rights; 2] {
        let [transfer, park, disconnect, mix_monitor] =
            [self.transfers, self.reparking, self.hangup, self.recording].map(Sides::of);
        [0, 1].map(|side: usize| {
            let of = |both: [bool; 2]| both.get(side).copied().unwrap_or_default();
            Rights {
                transfer: of(transfer),
                disconnect: of(disconnect),
                mix_monitor: of(mix_monitor),
                monitor: false,
                park: of(park),
            }
        })
    }
    /// The same as options of Dial.
    pub fn dial_options(&self) -> String {
        let letters = [
            (self.transfers, ["T", "t"]),
            (self.reparking, ["K", "k"]),
            (self.hangup, ["H", "h"]),
            (self.recording, ["X", "x"]),
        ];
        let of = |(sides, letters): (Sides, [&'static str; 2])| {
            sides.of().into_iter().zip(letters).filter(|row| row.0).map(|row| row.1)
        };
        letters.into_iter().flat_map(of).collect()
    }
    /// Name of the device that a space is for lamps.
    pub fn device(&self, space: u32) -> String {
        format!("park:{space}@{}", self.context)
    }
    /// Whether both have an extension of one context, other than a way in that neither has for itself.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.extension.is_empty() || other.extension.is_empty() || self.context != other.context {
            return false;
        }
        let holds = |lot: &Self, number: &str| {
            number.parse().is_ok_and(|number: u32| (lot.first..=lot.last).contains(&number))
        };
        let shares_way_in = self.extension == other.extension && (self.exclusive || other.exclusive);
        shares_way_in
            || (self.first <= other.last && other.first <= self.last)
            || holds(self, &other.extension)
            || holds(other, &self.extension)
    }
}

/// A call that waits.
#[derive(Debug, Clone)]
pub struct Parked {
    /// The channel.
    pub channel: ChannelId,
    /// Since when.
    pub since: Instant,
    /// Until when; `None`: until somebody fetches it.
    pub until: Option<Instant>,
    /// Who parked it, as a dial string: `PJSIP/6001`.
    pub parker: String,
}

/// A lot and who is in it.
#[derive(Debug, Clone)]
pub struct Lot {
    /// Its settings.
    pub settings: Rc<LotSettings>,
    /// A dialplan has made it.
    pub dynamic: bool,
    /// The configuration has it; one that it has no more takes no calls and goes with the last that is in it.
    pub enabled: bool,
    /// Calls by space.
    pub spaces: BTreeMap<u32, Parked>,
    /// The space that was given last.
    last_given: Option<u32>,
}

impl Lot {
    fn new(settings: LotSettings, dynamic: bool) -> Self {
        let (settings, spaces) = (Rc::new(settings), BTreeMap::new());
        Self { settings, dynamic, enabled: true, spaces, last_given: None }
    }
    /// A free space: the one that is asked for, any, or the next by the rule of the lot.
    fn free(&self, wanted: Wanted, random: u64) -> Option<u32> {
        let (first, last) = (self.settings.first, self.settings.last);
        let is_free = |space: &u32| !self.spaces.contains_key(space);
        let after = |start: u32| (start..=last).chain(first..start).find(is_free);
        match wanted {
            Wanted::Space(space) => {
                Some(space).filter(|space| (first..=last).contains(space) && is_free(space))
            }
            Wanted::Random => after(first + u32::try_from(random % u64::from(last - first + 1)).unwrap_or(0)),
            Wanted::Next if self.settings.find_next => {
                after(self.last_given.map_or(first, |last_given| last_given + 1).clamp(first, last))
                    .filter(|_| self.last_given != Some(last))
                    .or_else(|| after(first))
            }
            Wanted::Next => after(first),
        }
    }
}

/// Which space is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The next one, as `findslot` says.
    Next,
    /// Any.
    Random,
    /// This one.
    Space(u32),
}

/// Why nobody is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSpace {
    /// There is no such lot.
    NoLot,
    /// The space that is asked for is taken, or none of the lot.
    Taken,
    /// All spaces are taken.
    Full,
}

impl core::fmt::Display for NoSpace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoLot => "there is no such parking lot",
            Self::Taken => "the parking space is not free",
            Self::Full => "the parking lot is full",
        })
    }
}

/// How somebody is to be parked.
#[derive(Debug, Clone)]
pub struct ParkAs {
    /// The lot.
    pub lot: String,
    /// The space.
    pub wanted: Wanted,
    /// Instead of the lot's `parkingtime`; zero: no limit.
    pub time: Option<Duration>,
    /// Who parks, as a dial string.
    pub parker: String,
}

/// What a parked call has come to, for watchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkingChange {
    /// It was parked.
    Parked,
    /// Nobody fetched it in time.
    TimedOut,
    /// It hung up, or was sent elsewhere.
    GaveUp,
    /// Another one takes its place (an attended transfer).
    Swapped,
    /// Somebody fetched it.
    Fetched,
}

/// A parked call as watchers are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkingNotice {
    /// What happened.
    pub change: ParkingChange,
    /// Who is parked.
    pub parkee: Snapshot,
    /// A channel of who parked it, if there is one.
    pub parker: Option<Snapshot>,
    /// Who fetched it.
    pub retriever: Option<Snapshot>,
    /// Who parked it, as a dial string.
    pub parker_dial: String,
    /// The lot.
    pub lot: String,
    /// The space.
    pub space: u32,
    /// Seconds until the time is up; 0 without a limit.
    pub timeout: u64,
    /// Seconds since it was parked.
    pub duration: u64,
}

/// A phone has asked for the party that it talks to to be parked; whoever runs the applications carries it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkWish {
    /// Who parks, and hears the space.
    pub parker: ChannelId,
    /// Who is parked.
    pub parkee: ChannelId,
    /// Arguments of the Park() at the extension that the phone sent it to.
    pub arguments: String,
}

/// All lots.
#[derive(Debug, Default)]
pub struct Parking {
    lots: BTreeMap<String, Lot>,
    by_channel: BTreeMap<ChannelId, (String, u32)>,
    /// `parkeddynamic`: dialplans may make lots.
    pub dynamic: bool,
    /// What phones have asked for.
    pub wishes: Vec<ParkWish>,
}

impl Parking {
    /// All lots, by name.
    pub fn lots(&self) -> impl Iterator<Item = &Lot> {
        self.lots.values()
    }
    /// A lot, by its exact name.
    pub fn lot(&self, name: &str) -> Option<&Lot> {
        self.lots.get(name)
    }
    /// Where a channel is parked.
    pub fn place_of(&self, id: ChannelId) -> Option<(&Lot, u32)> {
        let (lot, space) = self.by_channel.get(&id)?;
        Some((self.lots.get(lot)?, *space))
    }
    /// Whether a space is taken; `None`: no lot of that context has it.
    pub fn is_taken(&self, context: &str, space: u32) -> Option<bool> {
        let has = |lot: &&Lot| {
            let of = &lot.settings;
            of.context.eq_ignore_ascii_case(context) && (of.first..=of.last).contains(&space)
        };
        let mut lots = self.lots.values().filter(has).peekable();
        lots.peek()?;
        Some(lots.any(|lot| lot.spaces.contains_key(&space)))
    }
    /// The lots of the configuration in force. Those that it has no more stay as long as calls are in them.
    pub fn configure(&mut self, lots: impl IntoIterator<Item = LotSettings>, dynamic: bool) {
        self.dynamic = dynamic;
        for lot in self.lots.values_mut().filter(|lot| !lot.dynamic) {
            lot.enabled = false;
        }
        for settings in lots {
            match self.lots.get_mut(&settings.name) {
                Some(lot) => {
                    lot.settings = Rc::new(settings);
                    (lot.enabled, lot.dynamic) = (true, false);
                }
                None => drop(self.lots.insert(settings.name.clone(), Lot::new(settings, false))),
            }
        }
        self.lots.retain(|_, lot| lot.enabled || !lot.spaces.is_empty());
    }
    /// Makes a lot while calls go on; `Err` says why not.
    pub fn add_dynamic(&mut self, settings: LotSettings) -> Result<(), String> {
        if self.lots.contains_key(&settings.name) {
            return Err("it exists".to_owned());
        }
        if self.lots.values().filter(|lot| lot.dynamic).count() >= DYNAMIC_LOTS_MAX {
            return Err(format!("there are {DYNAMIC_LOTS_MAX} such lots already"));
        }
        if let Some(lot) = self.lots.values().find(|lot| lot.settings.overlaps(&settings)) {
            return Err(format!("its extensions are those of lot '{}'", lot.settings.name));
        }
        self.lots.insert(settings.name.clone(), Lot::new(settings, true));
        Ok(())
    }
}

/// The numbers of a range such as `701-720`, or of one number; `Err` says what is wrong with it.
pub fn spaces(text: &str) -> Result<(u32, u32), String> {
    let text = text.trim();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
    let (first, last) = number(first).zip(number(last)).ok_or("is no range of numbers")?;
    if first > last {
        return Err("ends before it begins".to_owned());
    }
    if last - first >= SPACES_MAX {
        return Err(format!("has more than {SPACES_MAX} numbers"));
    }
    Ok((first, last))
}

/// What is dialled to reach whom a channel of this name belongs to: `PJSIP/6001` of `PJSIP/6001-0000002a`.
pub fn dial_string(channel: &str) -> String {
    channel.rsplit_once('-').map_or(channel, |(device, _)| device).to_owned()
}

/// A dial string as the name of an extension: `PJSIP_6001`.
pub fn flat(dial: &str) -> String {
    dial.replace('/', "_")
}

impl Core {
    /// A phone asks for the party that it talks to to be parked.
    pub fn request_parking(&mut self, wish: ParkWish) {
        self.parking.wishes.push(wish);
    }
    /// Gives a channel a space, and tells watchers and lamps.
    pub fn park(&mut self, id: ChannelId, how: &ParkAs) -> Result<u32, NoSpace> {
        let (now, random) = (self.now, self.random());
        let lot = self.parking.lots.get_mut(&how.lot).filter(|lot| lot.enabled).ok_or(NoSpace::NoLot)?;
        let refused = if matches!(how.wanted, Wanted::Space(_)) { NoSpace::Taken } else { NoSpace::Full };
        let space = lot.free(how.wanted, random).ok_or(refused)?;
        let time = how.time.or(lot.settings.time).filter(|time| !time.is_zero());
        let parked = Parked {
            channel: id,
            since: now,
            until: time.map(|time| now + time),
            parker: how.parker.clone(),
        };
        lot.spaces.insert(space, parked);
        lot.last_given = Some(space);
        let device = lot.settings.device(space);
        self.parking.by_channel.insert(id, (how.lot.clone(), space));
        self.touched_devices.push(device);
        self.hold_enter(crate::BridgeUse::Parking, &how.lot, id);
        self.cdr_parked(id, &format!("{}:{space}", how.lot));
        self.tell_parking(id, ParkingChange::Parked, None);
        Ok(space)
    }
    /// Fetches the call of a space, or of the lot's first taken space; `None` when nobody is there.
    pub fn unpark(
        &mut self,
        lot: &str,
        space: Option<u32>,
        retriever: ChannelId,
    ) -> Option<(ChannelId, Rc<LotSettings>)> {
        let found = self.parking.lots.get(lot)?;
        let space = space.or_else(|| found.spaces.keys().next().copied())?;
        let (id, settings) = (found.spaces.get(&space)?.channel, found.settings.clone());
        self.tell_parking(id, ParkingChange::Fetched, Some(retriever));
        self.clear_space(id);
        Some((id, settings))
    }
    /// A channel is not parked any more: its time is up, or it went away. Nothing when somebody has fetched it.
    pub fn park_over(&mut self, id: ChannelId, change: ParkingChange) {
        self.tell_parking(id, change, None);
        self.clear_space(id);
    }
    /// Another one takes the place of a parked channel: `place` is whoever that is by now.
    pub(crate) fn parking_swapped(&mut self, place: ChannelId) {
        self.tell_parking(place, ParkingChange::Swapped, None);
    }
    fn clear_space(&mut self, id: ChannelId) {
        let Some((name, space)) = self.parking.by_channel.remove(&id) else { return };
        self.hold_leave(id);
        self.cdr_unparked(id);
        let Some(lot) = self.parking.lots.get_mut(&name) else { return };
        lot.spaces.remove(&space);
        let device = lot.settings.device(space);
        if !lot.enabled && lot.spaces.is_empty() {
            self.parking.lots.remove(&name);
        }
        self.touched_devices.push(device);
    }
    fn tell_parking(&mut self, id: ChannelId, change: ParkingChange, retriever: Option<ChannelId>) {
        let told = |core: &Self| {
            let retriever = retriever.and_then(|id| core.snapshot(id));
            let notice = core.parking_notice(id, change, retriever)?;
            Some(Notice::Parking(Box::new(notice)))
        };
        match change {
            ParkingChange::Parked => self.notice_logged(CelKind::ParkStart, told),
            // It goes on being parked.
            ParkingChange::Swapped => self.notice(told),
            ParkingChange::TimedOut | ParkingChange::GaveUp | ParkingChange::Fetched => {
                self.notice_logged(CelKind::ParkEnd, told);
            }
        }
    }
    /// A parked call as it stands.
    pub fn parking_notice(
        &self,
        id: ChannelId,
        change: ParkingChange,
        retriever: Option<Snapshot>,
    ) -> Option<ParkingNotice> {
        let (lot, space) = self.parking.place_of(id)?;
        let parked = lot.spaces.get(&space)?;
        let of_parker =
            |channel: &&crate::Channel| dial_string(&channel.name) == parked.parker && channel.id != id;
        Some(ParkingNotice {
            change,
            parkee: self.snapshot(id)?,
            parker: self.channels().find(of_parker).map(Snapshot::of),
            retriever,
            parker_dial: parked.parker.clone(),
            lot: lot.settings.name.clone(),
            space,
            timeout: parked.until.map_or(0, |until| (until - self.now).as_secs()),
            duration: self.now.since(parked.since).as_secs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lot(first: u32, last: u32, find_next: bool, taken: &[u32], last_given: Option<u32>) -> Lot {
        let mut lot = Lot::new(LotSettings { first, last, find_next, ..LotSettings::default() }, false);
        for space in taken {
            let channel = ChannelId::new(*space, 0);
            let parked = Parked { channel, since: Instant::ZERO, until: None, parker: String::new() };
            lot.spaces.insert(*space, parked);
        }
        lot.last_given = last_given;
        lot
    }

    #[test]
    fn spaces_are_given_as_findslot_and_the_caller_say() {
        for (name, lot, wanted, expected) in [
            ("the first", lot(701, 703, false, &[], Some(702)), Wanted::Next, Some(701)),
            ("the first that is free", lot(701, 703, false, &[701], Some(701)), Wanted::Next, Some(702)),
            ("the next", lot(701, 703, true, &[], Some(701)), Wanted::Next, Some(702)),
            ("the next that is free", lot(701, 703, true, &[702], Some(701)), Wanted::Next, Some(703)),
            ("the next after the last", lot(701, 703, true, &[], Some(703)), Wanted::Next, Some(701)),
            ("the next, around", lot(701, 703, true, &[702, 703], Some(702)), Wanted::Next, Some(701)),
            ("none", lot(701, 703, true, &[701, 702, 703], Some(702)), Wanted::Next, None),
            ("this one", lot(701, 703, false, &[701], None), Wanted::Space(703), Some(703)),
            ("one that is taken", lot(701, 703, false, &[701], None), Wanted::Space(701), None),
            ("one of another lot", lot(701, 703, false, &[], None), Wanted::Space(704), None),
            ("any", lot(701, 703, false, &[702], None), Wanted::Random, Some(703)),
        ] {
            assert_eq!(lot.free(wanted, 1), expected, "{name}");
        }
    }

    #[test]
    fn lots_of_one_context_may_share_a_way_in_and_nothing_else() {
        let of = |extension: &str, first, last, exclusive| LotSettings {
            extension: extension.to_owned(),
            first,
            last,
            exclusive,
            ..LotSettings::default()
        };
        let one = of("700", 701, 720, false);
        for (name, other, expected) in [
            ("spaces apart", of("700", 721, 740, false), false),
            ("a way in of its own", of("700", 721, 740, true), true),
            ("spaces in common", of("750", 720, 740, false), true),
            ("a way in that is a space", of("710", 721, 740, false), true),
            ("spaces that hold the way in", of("800", 690, 700, false), true),
            ("no extensions", of("", 701, 720, true), false),
            ("another context", LotSettings { context: "x".to_owned(), ..of("700", 701, 720, true) }, false),
        ] {
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected), "{name}");
        }
    }

    #[test]
    fn what_the_two_may_do_is_said_the_same_way_to_dial() {
        let lot = LotSettings {
            transfers: Sides::Both,
            reparking: Sides::Caller,
            hangup: Sides::Callee,
            ..LotSettings::default()
        };
        assert_eq!(lot.dial_options(), "TtKh");
        let [caller, callee] = lot.rights();
        assert!(caller.transfer && caller.park && !caller.disconnect && !caller.mix_monitor);
        assert!(callee.transfer && !callee.park && callee.disconnect);
    }

    #[test]
    fn names_of_channels_become_dial_strings_and_extensions() {
        for (channel, dial, flat_name) in [
            ("PJSIP/6001-0000002a", "PJSIP/6001", "PJSIP_6001"),
            ("IAX2/site-b-0000002a", "IAX2/site-b", "IAX2_site-b"),
            ("Local/5@x-00000001;1", "Local/5@x", "Local_5@x"),
        ] {
            assert_eq!((dial_string(channel).as_str(), flat(dial).as_str()), (dial, flat_name));
        }
    }
}
