//! One who takes calls of a queue.

use core::time::Duration;
use std::rc::Rc;

use base::Instant;

use crate::{Absence, Caller, DeviceState, NewMember, Now, Skills};

/// Who made it a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Membership {
    /// queues.conf.
    #[default]
    Static,
    /// A dialplan, a manager or a console.
    Dynamic,
    /// A database.
    Realtime,
}

impl Membership {
    /// The word of events and consoles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Realtime => "realtime",
        }
    }
}

/// One member of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What is dialled.
    pub interface: Rc<str>,
    /// Its name in logs and events.
    pub name: Rc<str>,
    /// The device whose state counts.
    pub state_interface: Rc<str>,
    /// Who made it a member.
    pub membership: Membership,
    /// Of a row of a database: its `uniqueid`, or nothing.
    pub row: Option<Rc<str>>,
    /// Penalty.
    pub penalty: u32,
    /// Its skills.
    pub skills: Skills,
    /// It gets no calls.
    pub paused: bool,
    /// Why.
    pub paused_reason: String,
    /// When it was paused last, seconds since the epoch; 0: never.
    pub last_pause: i64,
    /// It is called while it is on a call.
    pub ring_in_use: bool,
    /// Its own wrap-up time.
    pub wrapup: Option<Duration>,
    /// Calls of this queue that it has taken.
    pub calls: u32,
    /// When its last one ended.
    pub last_call: Option<Now>,
    /// When it became a member, seconds since the epoch.
    pub login: i64,
    /// It talks to a caller of this queue.
    pub in_call: bool,
    /// Until when it is left alone after its calls.
    pub(crate) rests_until: Instant,
    /// Interface and device in lower case.
    pub(crate) phone: Rc<str>,
    pub(crate) device: Rc<str>,
}

impl Member {
    pub(crate) fn new(new: &NewMember, membership: Membership, queue_rings_in_use: bool, now: Now) -> Self {
        let interface: Rc<str> = new.interface.as_str().into();
        let lower = |text: &Rc<str>| {
            if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
                text.to_ascii_lowercase().into()
            } else {
                text.clone()
            }
        };
        let or_interface = |text: &str| if text.is_empty() { interface.clone() } else { text.into() };
        let state_interface = or_interface(&new.state_interface);
        Self {
            name: or_interface(&new.name),
            device: lower(&state_interface),
            phone: lower(&interface),
            state_interface,
            membership,
            row: new.row.as_deref().map(Rc::from),
            penalty: new.penalty,
            skills: new.skills.clone(),
            paused: new.paused,
            paused_reason: new.paused_reason.clone(),
            last_pause: if new.paused { now.wall } else { 0 },
            ring_in_use: new.ring_in_use.unwrap_or(queue_rings_in_use),
            wrapup: new.wrapup,
            calls: 0,
            last_call: None,
            login: now.wall,
            in_call: false,
            rests_until: Instant::ZERO,
            interface,
        }
    }
    /// What the configuration says now, of a member that it has named before.
    pub(crate) fn configure(&mut self, new: &NewMember, queue_rings_in_use: bool) {
        if !new.name.is_empty() {
            self.name = new.name.as_str().into();
        }
        self.penalty = new.penalty;
        self.skills.clone_from(&new.skills);
        self.ring_in_use = new.ring_in_use.unwrap_or(queue_rings_in_use);
        self.wrapup = new.wrapup;
        self.row = new.row.as_deref().map(Rc::from);
        self.membership = if new.row.is_some() { Membership::Realtime } else { Membership::Static };
    }
    /// What its row says now; whether it is paused is a matter of the row, too. Whether it has changed.
    pub(crate) fn take_row(&mut self, new: &NewMember, queue_rings_in_use: bool, now: Now) -> bool {
        let before = (self.paused, self.penalty, self.ring_in_use, self.name.clone());
        let skills = self.skills.clone();
        self.configure(new, queue_rings_in_use);
        if self.paused != new.paused {
            self.paused = new.paused;
            self.last_pause = now.wall;
        }
        self.paused_reason.clone_from(&new.paused_reason);
        before != (self.paused, self.penalty, self.ring_in_use, self.name.clone()) || skills != self.skills
    }
    /// A conversation has ended; the queue that it came from wants this wrap-up time.
    pub(crate) fn took_call(&mut self, now: Now, wrapup: Duration) {
        self.calls += 1;
        self.last_call = Some(now);
        // A call of another queue may ask for a longer rest.
        self.rests_until = self.rests_until.max(now.at + self.wrapup.unwrap_or(wrapup));
        self.in_call = false;
    }
    /// Until when it is left alone after its last call.
    pub fn wrapup_end(&self) -> Instant {
        self.rests_until
    }
    /// Whether it is left alone after its last call.
    pub fn wraps_up(&self, now: Instant) -> bool {
        self.rests_until > now
    }
    /// Whether it counts as absent for a caller. `penalised`: penalties count.
    pub(crate) fn is_absent(
        &self,
        absence: Absence,
        device: DeviceState,
        caller: &Caller,
        penalised: bool,
        now: Instant,
    ) -> bool {
        let by_device = match device {
            DeviceState::Invalid => absence.invalid,
            DeviceState::Unavailable => absence.unavailable,
            DeviceState::InUse | DeviceState::Busy | DeviceState::OnHold => absence.in_use,
            DeviceState::Ringing => absence.ringing,
            DeviceState::RingInUse => absence.ringing || absence.in_use,
            DeviceState::Unknown => absence.unknown,
            DeviceState::NotInUse => false,
        };
        by_device
            || absence.paused && self.paused
            || absence.penalty && penalised && caller.bounds.admit(self.penalty).is_none()
            || absence.skill && !caller.suits(self)
            || absence.wrapup && self.wraps_up(now)
    }
    /// Whether its device can take one more call. `engaged`: a queue calls it or has given it a call.
    pub(crate) fn device_takes_calls(&self, device: DeviceState, engaged: impl FnOnce() -> bool) -> bool {
        match device {
            DeviceState::Invalid | DeviceState::Unavailable => false,
            DeviceState::NotInUse | DeviceState::Unknown => self.ring_in_use || !engaged(),
            _ => self.ring_in_use,
        }
    }
}

/// The dynamic members of a queue as the database keeps them: `interface;penalty;paused;name;state;reason;wrapup`, by `|`,
/// and their skills behind that, of those who have some.
pub(crate) fn persist<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    let dynamic = members.filter(|member| member.membership == Membership::Dynamic);
    let plain = |text: &str| text.replace(['|', ';'], " ");
    let one = |member: &Member| {
        let skills = if member.skills.is_empty() { String::new() } else { format!(";{}", member.skills) };
        format!(
            "{};{};{};{};{};{};{}{skills}",
            plain(&member.interface),
            member.penalty,
            u8::from(member.paused),
            plain(&member.name),
            plain(&member.state_interface),
            plain(&member.paused_reason),
            member.wrapup.map_or(0, |wrapup| wrapup.as_secs())
        )
    };
    dynamic.map(one).collect::<Vec<_>>().join("|")
}

/// Reads what [`crate::Output::Persist`] said, and what Asterisk kept; entries without an interface are left out.
pub fn parse_persisted(text: &str) -> Vec<NewMember> {
    let one = |entry: &str| {
        let mut parts = entry.split(';');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (interface, penalty, paused) = (part(), part(), part());
        let (name, state_interface, paused_reason, wrapup) = (part(), part(), part(), part());
        let skills = Skills::parse(&part()).unwrap_or_default();
        let wrapup = wrapup.parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let penalty = penalty.parse().unwrap_or(0);
        let paused = paused.trim() == "1";
        let own = NewMember {
            interface,
            name,
            state_interface,
            penalty,
            paused,
            paused_reason,
            wrapup,
            skills,
            ..NewMember::default()
        };
        (!own.interface.is_empty()).then_some(own)
    };
    text.split('|').filter_map(one).collect()
}
