//! What happens in call queues, as events, and the fields that members have in events and lists.

use call::{DeviceState, Snapshot};
use queue::{AgentStep, Event as Happened, Member, MemberChange};

use super::events::{self, Event};
use super::packet::Message;

/// A device's state as the number that queues tell.
pub(crate) fn status(state: DeviceState) -> u8 {
    match state {
        DeviceState::Unknown => 0,
        DeviceState::NotInUse => 1,
        DeviceState::InUse => 2,
        DeviceState::Busy => 3,
        DeviceState::Invalid => 4,
        DeviceState::Unavailable => 5,
        DeviceState::Ringing => 6,
        DeviceState::RingInUse => 7,
        DeviceState::OnHold => 8,
    }
}

/// The fields of a member; `name` and `interface` are the headers of those.
pub(crate) fn member<'a>(
    message: Message<'a>,
    queue: &str,
    (name, interface): (&str, &str),
    member: &Member,
    device: DeviceState,
) -> Message<'a> {
    // Lists do not tell whether it rings in use.
    let rings = (name != "Name").then(|| u8::from(member.ring_in_use));
    message
        .field("Queue", queue)
        .field(name, &member.name)
        .field(interface, &member.interface)
        .field("StateInterface", &member.state_interface)
        .field("Membership", member.membership.name())
        .field("Penalty", member.penalty)
        .field("CallsTaken", member.calls)
        .field("LastCall", member.last_call.map_or(0, |last| last.wall))
        .field("LastPause", member.last_pause)
        .field("LoginTime", member.login)
        .field("InCall", u8::from(member.in_call))
        .field("Status", status(device))
        .field("Paused", u8::from(member.paused))
        .field("PausedReason", &member.paused_reason)
        .optional("Ringinuse", rings)
        .field("Wrapuptime", member.wrapup.map_or(0, |wrapup| wrapup.as_secs()))
        .optional("Skills", Some(&member.skills).filter(|skills| !skills.is_empty()))
}

/// One thing that happened.
pub(crate) fn event(
    queue: &str,
    happened: &Happened,
    caller: Option<&Snapshot>,
    channel: Option<&Snapshot>,
) -> Event {
    let with_caller = |name| {
        Event::new(name).with(|m| match caller {
            Some(caller) => events::channel(m, "", caller),
            None => m,
        })
    };
    match happened {
        Happened::CallerJoin { position, count, .. } => with_caller("QueueCallerJoin")
            .with(|m| m.field("Queue", queue).field("Position", position).field("Count", count)),
        Happened::CallerLeave { position, count, .. } => with_caller("QueueCallerLeave")
            .with(|m| m.field("Queue", queue).field("Position", position).field("Count", count)),
        Happened::CallerAbandon { position, original, hold, .. } => {
            with_caller("QueueCallerAbandon").with(|m| {
                m.field("Queue", queue)
                    .field("Position", position)
                    .field("OriginalPosition", original)
                    .field("HoldTime", hold)
            })
        }
        Happened::Member { change, member: what } => {
            let name = match change {
                MemberChange::Added => "QueueMemberAdded",
                MemberChange::Removed => "QueueMemberRemoved",
                MemberChange::Pause => "QueueMemberPause",
                MemberChange::Penalty => "QueueMemberPenalty",
                MemberChange::RingInUse => "QueueMemberRinginuse",
                MemberChange::Status | MemberChange::Skills => "QueueMemberStatus",
            };
            Event::new(name).with(|m| member(m, queue, ("MemberName", "Interface"), &what.0, what.1))
        }
        Happened::Agent { step, interface, name: member, .. } => {
            let name = match step {
                AgentStep::Called => "AgentCalled",
                AgentStep::NoAnswer { .. } => "AgentRingNoAnswer",
                AgentStep::Connect { .. } => "AgentConnect",
                AgentStep::Complete { .. } => "AgentComplete",
                AgentStep::Dump => "AgentDump",
            };
            with_caller(name).with(|m| {
                let m = match channel {
                    Some(channel) => events::channel(m, "Dest", channel),
                    None => m,
                };
                let m = m.field("Queue", queue).field("Interface", interface).field("MemberName", member);
                match step {
                    AgentStep::Called | AgentStep::Dump => m,
                    AgentStep::NoAnswer { ring_ms } => m.field("RingTime", ring_ms),
                    AgentStep::Connect { ring, hold } => m.field("HoldTime", hold).field("RingTime", ring),
                    AgentStep::Complete { hold, talk, reason } => {
                        m.field("HoldTime", hold).field("TalkTime", talk).field("Reason", reason)
                    }
                }
            })
        }
    }
}
