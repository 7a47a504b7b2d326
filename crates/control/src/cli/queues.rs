//! Call queues: who waits, who takes calls, and what administrators change.

use std::fmt::Write as _;

use call::Core;
use queue::{Edit, Member, NewMember, Queue, Refused, Skills, Whom};
use serde_json::{Value, json};

use crate::pages::Pages;
use crate::queues::Walk;

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

/// Who did it, in the log.
const BY: &str = "CLI";

pub(super) const ROWS: &[Row] = &[
    show(
        "queue show rules [<rule>]",
        "Lists the rules of queuerules.conf.",
        "rules [name changes [seconds max min raise] skill_changes [seconds change]]",
        Cli::queue_rules,
    ),
    show(
        "queue show [<queue>]",
        "Shows queues with their members and callers.",
        "queues [name strategy max calls holdtime talktime weight completed abandoned service_level service_level_percent \
         service_level2_percent members [name interface state_interface membership penalty skills calls last_call_seconds paused \
         paused_reason ring_in_use wraps_up in_call state] callers [position channel wait_seconds priority skills estimated_seconds]] more",
        Cli::queue_show,
    ),
    verb(
        "queue add member <interface> to <queue> [penalty <penalty>] [as <name>] [state_interface <device>]",
        "Makes somebody a member of a queue.",
        Cli::queue_add,
    ),
    verb(
        "queue remove member <interface> from <queue>",
        "Takes a dynamic member out of a queue.",
        Cli::queue_remove,
    ),
    verb(
        "queue pause member <interface> [queue <queue>] [reason <reason...>]",
        "Lets a member have no calls, in one queue or in all.",
        |cli, ask| cli.queue_pause(ask, true),
    ),
    verb(
        "queue unpause member <interface> [queue <queue>] [reason <reason...>]",
        "Lets a member have calls again.",
        |cli, ask| cli.queue_pause(ask, false),
    ),
    verb(
        "queue set penalty <penalty> on <interface> [in <queue>]",
        "Changes the penalty of a member, in one queue or in all.",
        Cli::queue_penalty,
    ),
    verb(
        "queue set ringinuse <yes/no> on <interface> [in <queue>]",
        "Lets a member be called while it is on a call, or not.",
        Cli::queue_ring_in_use,
    ),
    verb(
        "queue set skills <skills> on <interface> [in <queue>]",
        "Changes the skills of a member, as in german=3&sales, in one queue or in all.",
        Cli::queue_skills,
    ),
    verb("queue reset stats [<queue>]", "Sets the figures of a queue back, or of all.", Cli::queue_reset),
    verb(
        "queue reload all|members|parameters|rules",
        "Reads queues.conf and queuerules.conf again, and everything else with them.",
        |cli, _| cli.reload_part("app_queue", ""),
    ),
    verb(
        "queue priority caller <channel> on <queue> to <priority>",
        "Gives a caller another priority, and the place that goes with it.",
        Cli::queue_priority,
    ),
    verb(
        "queue withdraw caller <channel> from <queue> [withdrawinfo <info...>]",
        "Takes a caller out of a queue.",
        Cli::queue_withdraw,
    ),
];

fn why_not(why: Refused, queue: &str, interface: &str) -> Said {
    let (queue, interface) = (clean(queue), clean(interface));
    Said::refused(match why {
        Refused::NoQueue => format!("Unable to find queue '{queue}': No such queue\n"),
        Refused::NoMember => {
            format!("Unable to remove interface '{interface}' from queue '{queue}': Not there\n")
        }
        Refused::AlreadyMember => {
            format!("Unable to add interface '{interface}' to queue '{queue}': Already there\n")
        }
        Refused::NotDynamic => {
            format!("Unable to remove interface '{interface}' from queue '{queue}': Member is not dynamic\n")
        }
        Refused::NoCaller => format!("Caller '{interface}' is not in queue '{queue}'\n"),
        Refused::Full => format!("Queue '{queue}' has too many members\n"),
    })
}

/// The first line of a queue.
fn heading(queue: &Queue) -> String {
    let (settings, stats) = (&queue.settings, &queue.stats);
    let max = match settings.max_length {
        0 => "unlimited".to_owned(),
        most => most.to_string(),
    };
    format!(
        "{} has {} calls (max {max}) in '{}' strategy ({}s holdtime, {}s talktime), W:{}, C:{}, A:{}, SL:{:.1}%, SL2:{:.1}% \
         within {}s",
        clean(&queue.name),
        queue.callers().len(),
        settings.strategy.name(),
        stats.hold,
        stats.talk,
        settings.weight,
        stats.completed,
        stats.abandoned,
        stats.level_of_completed(),
        stats.level_of_all(),
        settings.service_level.as_secs(),
    )
}

fn member_line(core: &Core, member: &Member) -> String {
    let wall = core.queue_now().wall;
    let mut line = format!("      {}", clean(&member.name));
    if member.name != member.interface || member.interface != member.state_interface {
        let _ = write!(line, " ({}", clean(&member.interface));
        if member.interface != member.state_interface {
            let _ = write!(line, " from {}", clean(&member.state_interface));
        }
        line.push(')');
    }
    if member.penalty > 0 {
        let _ = write!(line, " with penalty {}", member.penalty);
    }
    if !member.skills.is_empty() {
        let _ = write!(line, " (skills {})", clean(&member.skills.to_string()));
    }
    let _ = write!(line, " (ringinuse {})", if member.ring_in_use { "enabled" } else { "disabled" });
    if member.membership != queue::Membership::Static {
        let _ = write!(line, " ({})", member.membership.name());
    }
    if member.paused {
        let reason = if member.paused_reason.is_empty() {
            String::new()
        } else {
            format!(":{}", clean(&member.paused_reason))
        };
        let _ = write!(line, " (paused{reason} was {} secs ago)", wall - member.last_pause);
    }
    if member.in_call {
        line.push_str(" (in call)");
    }
    if member.wraps_up(core.now) {
        line.push_str(" (in wrapup)");
    }
    let _ = write!(line, " ({})", core.queues.device_of(member).text());
    match member.last_call {
        None => line.push_str(" has taken no calls yet"),
        Some(last) => {
            let _ =
                write!(line, " has taken {} calls (last was {} secs ago)", member.calls, wall - last.wall);
        }
    }
    let _ = write!(line, " (login was {} secs ago)", wall - member.login);
    line
}

fn queue_text(core: &Core, queue: &Queue, out: &mut String) {
    let _ = writeln!(out, "{}", heading(queue));
    match queue.members() {
        [] => out.push_str("   No Members\n"),
        members => {
            out.push_str("   Members: \n");
            let mut members: Vec<&Member> = members.iter().collect();
            members.sort_by_key(|member| member.interface.clone());
            members.into_iter().for_each(|member| {
                let _ = writeln!(out, "{}", member_line(core, member));
            });
        }
    }
    match queue.callers() {
        [] => out.push_str("   No Callers\n"),
        callers => {
            out.push_str("   Callers: \n");
            for (caller, position) in callers.iter().zip(1..) {
                let name = core.get(caller.channel).map(|channel| channel.name.clone()).unwrap_or_default();
                let wait = caller.waited(core.now);
                let (minutes, seconds) = (wait / 60, wait % 60);
                let _ = writeln!(
                    out,
                    "      {position}. {} (wait: {minutes}:{seconds:02}, prio: {}{})",
                    clean(&name),
                    caller.priority,
                    if caller.skills.is_empty() {
                        String::new()
                    } else {
                        format!(", needs {}", caller.skills)
                    },
                );
            }
        }
    }
    out.push('\n');
}

fn queue_json(core: &Core, queue: &Queue) -> Value {
    let member = |member: &Member| {
        json!({
            "name": &*member.name,
            "interface": &*member.interface,
            "state_interface": &*member.state_interface,
            "membership": member.membership.name(),
            "penalty": member.penalty,
            "skills": member.skills.to_string(),
            "calls": member.calls,
            "last_call_seconds": member.last_call.map(|last| core.queue_now().wall - last.wall),
            "paused": member.paused,
            "paused_reason": member.paused_reason,
            "ring_in_use": member.ring_in_use,
            "wraps_up": member.wraps_up(core.now),
            "in_call": member.in_call,
            "state": core.queues.device_of(member).text(),
        })
    };
    let caller = |(caller, position): (&queue::Caller, u32)| {
        json!({
            "position": position,
            "channel": core.get(caller.channel).map(|channel| channel.name.to_string()),
            "wait_seconds": caller.waited(core.now),
            "priority": caller.priority,
            "skills": caller.skills.to_string(),
            "estimated_seconds": core.queues.estimate(queue, usize::try_from(position).unwrap_or(0)).as_secs(),
        })
    };
    let (settings, stats) = (&queue.settings, &queue.stats);
    json!({
        "name": &*queue.name,
        "strategy": settings.strategy.name(),
        "max": settings.max_length,
        "calls": queue.callers().len(),
        "holdtime": stats.hold,
        "talktime": stats.talk,
        "weight": settings.weight,
        "completed": stats.completed,
        "abandoned": stats.abandoned,
        "service_level": settings.service_level.as_secs(),
        "service_level_percent": stats.level_of_completed(),
        "service_level2_percent": stats.level_of_all(),
        "members": queue.members().iter().map(member).collect::<Vec<_>>(),
        "callers": queue.callers().iter().zip(1..).map(caller).collect::<Vec<_>>(),
    })
}

/// The queues of an answer as text.
fn plain(mut one: impl FnMut(bool, &mut String) -> bool + 'static) -> Pages {
    Pages::new(move |out| one(false, out))
}

/// The same as one object.
fn listed(mut one: impl FnMut(bool, &mut String) -> bool + 'static) -> Pages {
    let (mut begun, mut is_over) = (false, false);
    Pages::new(move |out| {
        if is_over {
            return false;
        }
        let before = out.len();
        out.push_str(if begun { "," } else { "{\"queues\":[" });
        if !one(true, out) {
            is_over = true;
            if begun {
                out.truncate(before);
            }
            out.push_str("],\"more\":0}\n");
        }
        begun = true;
        true
    })
}

impl Cli {
    fn queue_show(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.arg("queue");
        let is_empty = {
            let core = self.site.shard.core.borrow();
            name.map_or(core.queues.iter().next().is_none(), |name| core.queues.get(name).is_none())
        };
        match (is_empty, name) {
            (true, Some(name)) => return Said::failed(format!("No such queue: {}.\n", clean(name))),
            (true, None) if !ask.json => return Said::done("No queues.\n"),
            _ => {}
        }
        let (shard, mut walk) = (self.site.shard.clone(), Walk::new(&self.site.shard, name));
        let one = move |json: bool, out: &mut String| {
            let Some(name) = walk.next() else { return false };
            let core = &*shard.core.borrow();
            let Some(queue) = core.queues.get(&name) else { return false };
            match json {
                true => out.push_str(&queue_json(core, queue).to_string()),
                false => queue_text(core, queue, out),
            }
            true
        };
        Said::Pages(if ask.json { listed(one) } else { plain(one) })
    }
    fn queue_rules(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let only = ask.arg("rule");
        let is_meant = |name: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(name));
        let rules = || core.queues.rules().filter(|(name, _)| is_meant(name));
        let shift = crate::ami::penalty_shift;
        let data = || {
            let change = |one: &queue::PenaltyChange| {
                json!({
                    "seconds": one.after.as_secs(),
                    "max": shift(one.max),
                    "min": shift(one.min),
                    "raise": shift(one.raise),
                })
            };
            let skill = |one: &queue::SkillChange| json!({ "seconds": one.after.as_secs(), "change": one.to_string() });
            let skills = |name: &str| core.queues.skill_rule(name).iter().map(skill).collect::<Vec<_>>();
            let rule = |(name, changes): (&str, &[queue::PenaltyChange])| json!({ "name": name, "changes": changes.iter().map(change).collect::<Vec<_>>(), "skill_changes": skills(name) });
            json!({ "rules": rules().map(rule).collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = String::new();
            for (name, changes) in rules() {
                let _ = writeln!(out, "Rule: {}", clean(name));
                for one in changes {
                    let by = |change: queue::Shift| match change {
                        queue::Shift::Keep => "by 0".to_owned(),
                        queue::Shift::To(value) => format!("to {value}"),
                        queue::Shift::By(by) => format!("by {by}"),
                    };
                    let _ = writeln!(
                        out,
                        "\tAfter {} seconds, adjust QUEUE_MAX_PENALTY {}, adjust QUEUE_MIN_PENALTY {} and adjust \
                         QUEUE_RAISE_PENALTY {}",
                        one.after.as_secs(),
                        by(one.max),
                        by(one.min),
                        by(one.raise),
                    );
                }
                for one in core.queues.skill_rule(name) {
                    let _ = writeln!(out, "\tAfter {} seconds, QUEUE_SKILLS {one}", one.after.as_secs());
                }
            }
            out
        };
        ask.show(data, text)
    }
    fn queue_add(&self, ask: &mut Ask<'_>) -> Said {
        let (interface, queue) = (ask.need("interface"), ask.need("queue"));
        let Ok(penalty) = ask.arg("penalty").unwrap_or("0").parse() else { return Said::Usage };
        let mut new = NewMember {
            interface: interface.to_owned(),
            penalty,
            name: ask.need("name").to_owned(),
            state_interface: ask.need("device").to_owned(),
            ..NewMember::default()
        };
        let shard = &self.site.shard;
        new.state = Some(apps::hints::member_state(shard, new.device()));
        let added =
            shard.core.borrow_mut().with_queues(|queues, now, out| queues.add(queue, &new, BY, now, out));
        if let Err(why) = added {
            return why_not(why, queue, interface);
        }
        apps::hints::ask_members(shard, queue);
        Said::done(format!("Added interface '{}' to queue '{}'\n", clean(interface), clean(queue)))
    }
    fn queue_remove(&self, ask: &mut Ask<'_>) -> Said {
        let (interface, queue) = (ask.need("interface"), ask.need("queue"));
        let core = &mut *self.site.shard.core.borrow_mut();
        match core.with_queues(|queues, now, out| queues.remove(queue, interface, BY, now, out)) {
            Ok(_) => {
                Said::done(format!("Removed interface {} from queue '{}'\n", clean(interface), clean(queue)))
            }
            Err(why) => why_not(why, queue, interface),
        }
    }
    /// Changes a member in one queue or in all.
    fn queue_change(&self, ask: &Ask<'_>, done: &str, edit: Edit<'_>) -> Said {
        let (interface, queue) = (ask.need("interface"), ask.arg("queue"));
        let whom = Whom { queue, interface, by: BY };
        let core = &mut *self.site.shard.core.borrow_mut();
        let place =
            queue.map_or_else(|| "all queues".to_owned(), |queue| format!("queue '{}'", clean(queue)));
        match core.with_queues(|queues, now, out| queues.edit(whom, edit, now, out)) {
            Ok(_) => Said::done(format!("{done} interface '{}' in {place}\n", clean(interface))),
            Err(why) => why_not(why, queue.unwrap_or_default(), interface),
        }
    }
    fn queue_pause(&self, ask: &mut Ask<'_>, paused: bool) -> Said {
        let reason = ask.need("reason");
        let done = if paused { "paused" } else { "unpaused" };
        self.queue_change(ask, done, Edit::Pause(paused, reason))
    }
    fn queue_skills(&self, ask: &mut Ask<'_>) -> Said {
        let Ok(skills) = Skills::parse(ask.need("skills")) else { return Said::Usage };
        self.queue_change(ask, &format!("Set skills {skills} on"), Edit::Skills(&skills))
    }
    fn queue_penalty(&self, ask: &mut Ask<'_>) -> Said {
        let Ok(penalty) = ask.need("penalty").parse() else { return Said::Usage };
        let done = format!("Set penalty {penalty} on");
        self.queue_change(ask, &done, Edit::Penalty(penalty))
    }
    fn queue_ring_in_use(&self, ask: &mut Ask<'_>) -> Said {
        let Some(rings) = conf::boolean(ask.need("yes/no")) else { return Said::Usage };
        let done = format!("Set ringinuse {} on", if rings { "yes" } else { "no" });
        self.queue_change(ask, &done, Edit::RingInUse(rings))
    }
    fn queue_reset(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.arg("queue");
        let core = &mut *self.site.shard.core.borrow_mut();
        match core.with_queues(|queues, _, _| queues.reset(name)) {
            Ok(()) => Said::done(String::new()),
            Err(why) => why_not(why, name.unwrap_or_default(), ""),
        }
    }
    fn queue_priority(&self, ask: &mut Ask<'_>) -> Said {
        let (channel, queue) = (ask.need("channel"), ask.need("queue"));
        let Ok(priority) = ask.need("priority").parse() else { return Said::Usage };
        let core = &mut *self.site.shard.core.borrow_mut();
        let Some(id) = core.by_name(channel) else { return why_not(Refused::NoCaller, queue, channel) };
        match core.with_queues(|queues, now, out| queues.set_priority(queue, id, priority, now, out)) {
            Ok(()) => Said::done(format!(
                "Changed priority for caller '{}' on queue '{}' to {priority}\n",
                clean(channel),
                clean(queue)
            )),
            Err(why) => why_not(why, queue, channel),
        }
    }
    fn queue_withdraw(&self, ask: &mut Ask<'_>) -> Said {
        let (channel, queue) = (ask.need("channel"), ask.need("queue"));
        let info = ask.need("info");
        let core = &mut *self.site.shard.core.borrow_mut();
        let Some(id) = core.by_name(channel) else { return why_not(Refused::NoCaller, queue, channel) };
        match core.with_queues(|queues, now, out| queues.withdraw(queue, id, info, now, out)) {
            Ok(()) => Said::done(format!(
                "Withdraw requested for caller '{}' on queue '{}'\n",
                clean(channel),
                clean(queue)
            )),
            Err(why) => why_not(why, queue, channel),
        }
    }
}
