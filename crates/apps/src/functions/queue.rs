//! QUEUE_MEMBER() and its kin: what queues are, and how many are in them.

use core::fmt::Write as _;

use ::queue::{Edit, Member, Queue, Refused, Skills, Whom};
use dialplan::Fault;

use super::Read;
use crate::call_ctx::args;
use crate::{Call, hints, queue};

fn look<R>(call: &Call, name: &str, look: impl FnOnce(&call::Core, &Queue) -> R) -> Result<R, Fault> {
    hints::ask_members(call.chan.shard(), name);
    let seen = call.chan.core(|core| core.queues.get(name).map(|queue| look(core, queue)));
    seen.ok_or(Fault::new("there is no such queue"))
}

fn write(out: &mut String, value: impl core::fmt::Display) -> Read {
    write!(out, "{value}").map_err(|_| Fault::new("is too long"))
}

/// `QUEUE_MEMBER(queue,option[,interface])`.
pub(super) fn read_member(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index);
    let now = call.chan.now();
    let value = look(call, part(0), |core, queue| {
        let all = || queue.members().iter();
        // A member whose device is gone is not logged in.
        let logged = |member: &&Member| {
            use call::DeviceState::{Invalid, Unavailable};
            !matches!(core.queues.device_of(member), Unavailable | Invalid)
        };
        let one = queue.member(part(2));
        let number = |count: usize| Some(count.to_string());
        match part(1).to_ascii_lowercase().as_str() {
            "logged" => number(all().filter(logged).count()),
            "free" => number(core.queues.available(queue, now)),
            "ready" => number(all().filter(logged).filter(|m| !m.paused && !m.wraps_up(now)).count()),
            "count" | "" => number(all().count()),
            "penalty" => Some(one.map_or(String::new(), |member| member.penalty.to_string())),
            "paused" => Some(one.map_or(String::new(), |member| u8::from(member.paused).to_string())),
            "ringinuse" | "ignorebusy" => {
                Some(one.map_or(String::new(), |member| u8::from(member.ring_in_use).to_string()))
            }
            "skills" => Some(one.map_or(String::new(), |member| member.skills.to_string())),
            "name" => Some(one.map_or(String::new(), |member| member.name.to_string())),
            "calls" => Some(one.map_or(String::new(), |member| member.calls.to_string())),
            "status" => Some(one.map_or(String::new(), |m| core.queues.device_of(m).text().to_owned())),
            _ => None,
        }
    })?;
    write(out, value.ok_or(Fault::new("has no such option"))?)
}

/// `QUEUE_ESTIMATE(queue[,position])`.
pub(super) fn read_estimate(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let place = args::nth(&parts, 1).trim().parse().ok().filter(|place| *place > 0);
    let seconds = look(call, args::nth(&parts, 0), |core, queue| {
        core.queues.estimate(queue, place.unwrap_or(queue.callers().len() + 1)).as_secs()
    })?;
    write(out, seconds)
}

/// `Set(QUEUE_MEMBER([queue],option,interface)=value)`.
pub(super) fn write_member(call: &Call, text: &str, value: &str) -> Read {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index);
    let queue = Some(part(0)).filter(|queue| !queue.is_empty());
    let by = call.chan.with(|c| c.uniqueid.clone()).unwrap_or_default();
    let whom = Whom { queue, interface: part(2), by: &by };
    let number = value.trim().parse::<u32>();
    let wrong = || Fault::new("wants a whole number from 0 on");
    let flag = crate::say::is_yes(value);
    let done = match part(1).to_ascii_lowercase().as_str() {
        "penalty" => {
            let penalty = number.map_err(|_| wrong())?;
            call.chan.core(|core| core.with_queues(|q, now, out| q.set_penalty(whom, penalty, now, out)))
        }
        "calls" => {
            let calls = number.map_err(|_| wrong())?;
            call.chan.core(|core| core.with_queues(|q, now, out| q.set_calls(whom, calls, now, out)))
        }
        "skills" => {
            let skills = Skills::parse(value).map_err(|_| Fault::new("wants skills as german=3&sales"))?;
            let edit = Edit::Skills(&skills);
            call.chan.core(|core| core.with_queues(|q, now, out| q.edit(whom, edit, now, out)))
        }
        "paused" => call.chan.core(|core| core.with_queues(|q, now, out| q.pause(whom, flag, "", now, out))),
        "ringinuse" | "ignorebusy" => {
            call.chan.core(|core| core.with_queues(|q, now, out| q.set_ring_in_use(whom, flag, now, out)))
        }
        _ => return Err(Fault::new("cannot be written")),
    };
    match done {
        Ok(_) => Ok(()),
        Err(Refused::NoQueue) => Err(Fault::new("there is no such queue")),
        Err(_) => Err(Fault::new("there is no such member")),
    }
}

/// `QUEUE_MEMBER_COUNT(queue)`.
pub(super) fn read_count(call: &Call, text: &str, out: &mut String) -> Read {
    let now = call.chan.now();
    let count = look(call, text.trim(), |core, queue| core.queues.available(queue, now))?;
    write(out, count)
}

/// `QUEUE_MEMBER_LIST(queue)`.
pub(super) fn read_list(call: &Call, text: &str, out: &mut String) -> Read {
    let list = look(call, text.trim(), |_, queue| {
        let mut members: Vec<&str> = queue.members().iter().map(|member| &*member.interface).collect();
        members.sort_unstable();
        members.join(",")
    })?;
    write(out, list)
}

/// `QUEUE_MEMBER_PENALTY(queue,interface)`.
pub(super) fn read_penalty(call: &Call, text: &str, out: &mut String) -> Read {
    let (queue, interface) = text.split_once(',').ok_or(Fault::new("needs a queue and an interface"))?;
    let penalty = look(call, queue.trim(), |_, queue| queue.member(interface.trim()).map(|m| m.penalty))?;
    write(out, penalty.map_or(-1, i64::from))
}
pub(super) fn write_penalty(call: &Call, text: &str, value: &str) -> Read {
    let (queue, interface) = text.split_once(',').ok_or(Fault::new("needs a queue and an interface"))?;
    write_member(call, &format!("{},penalty,{}", queue.trim(), interface.trim()), value)
}

/// `QUEUE_VARIABLES(queue)`.
pub(super) fn read_variables(call: &Call, text: &str, out: &mut String) -> Read {
    let sets = |queue: &::queue::Queue| queue.settings.handling.set_queue_var;
    let is_set = call.chan.core(|core| core.queues.get(text.trim()).is_some_and(sets));
    write(out, if is_set && queue::set_queue_variables(call, text.trim()) { 0 } else { -1 })
}

/// `QUEUE_WAITING_COUNT(queue)`.
pub(super) fn read_waiting(call: &Call, text: &str, out: &mut String) -> Read {
    let count = call.chan.core(|core| core.queues.get(text.trim()).map_or(0, |queue| queue.callers().len()));
    write(out, count)
}

/// `QUEUE_EXISTS(queue)`.
pub(super) fn read_exists(call: &Call, text: &str, out: &mut String) -> Read {
    write(out, u8::from(call.chan.core(|core| core.queues.get(text.trim()).is_some())))
}

/// `QUEUE_GET_CHANNEL(queue[,position])`.
pub(super) fn read_channel(call: &Call, text: &str, out: &mut String) -> Read {
    let (name, place) = text.split_once(',').unwrap_or((text, "1"));
    let place = place.trim().parse::<usize>().ok().filter(|place| *place > 0);
    let place = place.ok_or(Fault::new("wants a position from 1 on"))?;
    let found = call.chan.core(|core| {
        let id = core.queues.get(name.trim())?.callers().get(place - 1)?.channel;
        core.get(id).map(|channel| channel.name.to_string())
    });
    write(out, found.unwrap_or_default())
}
