//! Actions on call queues.

use base::ChannelId;
use call::Core;
use queue::{Edit, Entry, Line, NewMember, Queue, Refused, Shift, Skills, Whom};

use super::super::packet::Message;
use super::super::queues::member;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};
use crate::pages::Pages;
use crate::queues::Walk;
use crate::site::Wish;

/// Who did it, in the log.
const BY: &str = "MANAGER";

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "QueueStatus",
        class: &[],
        synopsis: "Lists queues with their members and callers.",
        fields: &[may("Queue", "only this one"), may("Member", "only this interface or member name")],
        run: status,
    },
    ActionRow {
        name: "QueueSummary",
        class: &[],
        synopsis: "Counts members and callers of queues.",
        fields: &[may("Queue", "only this one")],
        run: summary,
    },
    ActionRow {
        name: "QueueAdd",
        class: &["agent"],
        synopsis: "Makes somebody a member of a queue.",
        fields: &[
            must("Queue", "its name"),
            must("Interface", "PJSIP/6001"),
            may("Penalty", "0"),
            may("Paused", "true: no calls for now"),
            may("Reason", "why it is paused"),
            may("MemberName", "its name in logs and events"),
            may("StateInterface", "the device whose state counts"),
            may("Skills", "german=3&sales"),
        ],
        run: add,
    },
    ActionRow {
        name: "QueueRemove",
        class: &["agent"],
        synopsis: "Takes a dynamic member out of a queue.",
        fields: &[must("Queue", "its name"), must("Interface", "PJSIP/6001")],
        run: remove,
    },
    ActionRow {
        name: "QueuePause",
        class: &["agent"],
        synopsis: "Lets a member have no calls, or have them again.",
        fields: &[
            must("Interface", "PJSIP/6001"),
            must("Paused", "true or false"),
            may("Queue", "without it in all"),
            may("Reason", "told and logged"),
        ],
        run: pause,
    },
    ActionRow {
        name: "QueuePenalty",
        class: &["agent"],
        synopsis: "Changes the penalty of a member.",
        fields: &[
            must("Interface", "PJSIP/6001"),
            must("Penalty", "a whole number"),
            may("Queue", "without it in all"),
        ],
        run: penalty,
    },
    ActionRow {
        name: "QueueMemberRingInUse",
        class: &["agent"],
        synopsis: "Lets a member be called while it is on a call, or not.",
        fields: &[
            must("Interface", "PJSIP/6001"),
            must("RingInUse", "true or false"),
            may("Queue", "without it in all"),
        ],
        run: ring_in_use,
    },
    ActionRow {
        name: "QueueLog",
        class: &["agent"],
        synopsis: "Writes a line into the log of queues.",
        fields: &[
            must("Queue", "its name"),
            must("Event", "name of the event"),
            may("Uniqueid", "of a call"),
            may("Interface", "of a member"),
            may("Message", "data"),
        ],
        run: log,
    },
    ActionRow {
        name: "QueueRule",
        class: &[],
        synopsis: "Lists the rules of queuerules.conf.",
        fields: &[may("Rule", "only this one")],
        run: rules,
    },
    ActionRow {
        name: "QueueReload",
        class: &[],
        synopsis: "Reads queues.conf and queuerules.conf again, and everything else with them.",
        fields: &[],
        run: reload,
    },
    ActionRow {
        name: "QueueReset",
        class: &[],
        synopsis: "Sets the figures of a queue back, or of all.",
        fields: &[may("Queue", "only this one")],
        run: reset,
    },
    ActionRow {
        name: "QueueChangePriorityCaller",
        class: &[],
        synopsis: "Gives a caller another priority.",
        fields: &[
            must("Queue", "its name"),
            must("Caller", "the caller's channel"),
            must("Priority", "a whole number; higher ones go first"),
        ],
        run: priority,
    },
    ActionRow {
        name: "QueueWithdrawCaller",
        class: &[],
        synopsis: "Takes a caller out of a queue.",
        fields: &[
            must("Queue", "its name"),
            must("Caller", "the caller's channel"),
            may("WithdrawInfo", "for QUEUE_WITHDRAW_INFO"),
        ],
        run: withdraw,
    },
];

fn refusal(why: Refused) -> Refusal {
    match why {
        Refused::NoQueue => "Unable to find queue: No such queue",
        Refused::NoMember => "Interface not found",
        Refused::AlreadyMember => "Unable to add interface: Already there",
        Refused::NotDynamic => "Member not dynamic",
        Refused::NoCaller => "Caller not found",
        Refused::Full => "Unable to add interface: the queue has too many members",
    }
    .into()
}

/// Lists the queues that are meant, in portions: `list` writes what there is to say of one, and how many items that is.
fn walk(
    turn: &mut Turn<'_>,
    (begin, end): (&str, &'static str),
    list: impl Fn(&Core, &Queue, &mut List<'_>) + 'static,
) -> Done {
    turn.begin_list(begin);
    let action_id = turn.action_id().map(str::to_owned);
    let shard = turn.site.shard.clone();
    let mut walk = Walk::new(&shard, turn.get("Queue"));
    let (mut items, mut is_over) = (0, false);
    let pages = Pages::new(move |out| {
        if is_over {
            return false;
        }
        let mut lines = List { action_id: action_id.as_deref(), out, items };
        match walk.next() {
            Some(name) => {
                let core = &*shard.core.borrow();
                core.queues.get(&name).into_iter().for_each(|queue| list(core, queue, &mut lines));
            }
            None => {
                is_over = true;
                let end = Message::event(end, lines.action_id, lines.out);
                end.field("EventList", "Complete").field("ListItems", items).end();
            }
        }
        items = lines.items;
        true
    });
    turn.pages(pages)
}

/// A list that is being written.
struct List<'a> {
    action_id: Option<&'a str>,
    out: &'a mut String,
    items: usize,
}

impl List<'_> {
    /// Begins an item, which [`List::end`] ends: its ActionID is its last field.
    fn item(&mut self, event: &str) -> Message<'_> {
        self.items += 1;
        Message::event(event, None, self.out)
    }
    fn end(&mut self) {
        Message::open(self.out).optional("ActionID", self.action_id).end();
    }
}

fn status(turn: &mut Turn<'_>) -> Done {
    let only = turn.get("Member").map(str::to_owned);
    walk(turn, ("Queue status will follow", "QueueStatusComplete"), move |core, queue, list| {
        let (settings, stats) = (&queue.settings, &queue.stats);
        let _ = list
            .item("QueueParams")
            .field("Queue", &queue.name)
            .field("Max", settings.max_length)
            .field("Strategy", settings.strategy.name())
            .field("Calls", queue.callers().len())
            .field("Holdtime", stats.hold)
            .field("TalkTime", stats.talk)
            .field("Completed", stats.completed)
            .field("Abandoned", stats.abandoned)
            .field("ServiceLevel", settings.service_level.as_secs())
            .field("ServicelevelPerf", format!("{:.1}", stats.level_of_completed()))
            .field("ServicelevelPerf2", format!("{:.1}", stats.level_of_all()))
            .field("Weight", settings.weight);
        list.end();
        let is_meant = |own: &&queue::Member| {
            only.as_ref().is_none_or(|only| {
                own.interface.eq_ignore_ascii_case(only) || own.name.eq_ignore_ascii_case(only)
            })
        };
        for own in queue.members().iter().filter(is_meant) {
            let item = list.item("QueueMember");
            let _ = member(item, &queue.name, ("Name", "Location"), own, core.queues.device_of(own));
            list.end();
        }
        for (caller, position) in queue.callers().iter().zip(1..) {
            let Some(channel) = core.get(caller.channel) else { continue };
            let or_unknown =
                |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
            let _ = list
                .item("QueueEntry")
                .field("Queue", &queue.name)
                .field("Position", position)
                .field("Channel", &channel.name)
                .field("Uniqueid", &channel.uniqueid)
                .field("CallerIDNum", or_unknown(channel.caller.number()))
                .field("CallerIDName", or_unknown(channel.caller.name()))
                .field("ConnectedLineNum", or_unknown(channel.connected.number()))
                .field("ConnectedLineName", or_unknown(channel.connected.name()))
                .field("Wait", caller.waited(core.now))
                .field("Priority", caller.priority);
            list.end();
        }
    })
}

fn summary(turn: &mut Turn<'_>) -> Done {
    walk(turn, ("Queue summary will follow", "QueueSummaryComplete"), |core, queue, list| {
        use call::DeviceState::{Invalid, Unavailable};
        let logged = |own: &&queue::Member| !matches!(core.queues.device_of(own), Unavailable | Invalid);
        let longest = queue.callers().iter().map(|caller| caller.waited(core.now)).max().unwrap_or(0);
        let _ = list
            .item("QueueSummary")
            .field("Queue", &queue.name)
            .field("LoggedIn", queue.members().iter().filter(logged).count())
            .field("Available", core.queues.available(queue, core.now))
            .field("Callers", queue.callers().len())
            .field("HoldTime", queue.stats.hold)
            .field("TalkTime", queue.stats.talk)
            .field("LongestHoldTime", longest);
        list.end();
    })
}

/// Whether a header says yes.
fn is_true(text: &str) -> bool {
    conf::boolean(text) == Some(true)
}

fn number(turn: &Turn<'_>, header: &str) -> Result<u32, Refusal> {
    let text = turn.get(header).unwrap_or("0");
    text.trim().parse().map_err(|_| Refusal("Invalid interface, queuename or penalty".to_owned()))
}

fn add(turn: &mut Turn<'_>) -> Done {
    let queue = turn.need("Queue")?.to_owned();
    let text = |header: &str| turn.get(header).unwrap_or_default().to_owned();
    let mut new = NewMember {
        interface: turn.need("Interface")?.to_owned(),
        name: text("MemberName"),
        state_interface: text("StateInterface"),
        penalty: number(turn, "Penalty")?,
        paused: is_true(&text("Paused")),
        paused_reason: text("Reason"),
        skills: Skills::parse(&text("Skills"))
            .map_err(|wrong| Refusal(format!("Skills must be as in german=3&sales: {wrong}")))?,
        ..NewMember::default()
    };
    let shard = turn.site.shard.clone();
    new.state = Some(apps::hints::member_state(&shard, new.device()));
    let added =
        shard.core.borrow_mut().with_queues(|queues, now, out| queues.add(&queue, &new, BY, now, out));
    added.map_err(|why| match why {
        Refused::NoQueue => "Unable to add interface to queue: No such queue".into(),
        why => refusal(why),
    })?;
    apps::hints::ask_members(&shard, &queue);
    turn.success("Added interface to queue")
}

fn remove(turn: &mut Turn<'_>) -> Done {
    let (queue, interface) = (turn.need("Queue")?, turn.need("Interface")?);
    let core = &mut *turn.site.shard.core.borrow_mut();
    let removed = core.with_queues(|queues, now, out| queues.remove(queue, interface, BY, now, out));
    removed.map_err(|why| match why {
        Refused::NoMember => "Unable to remove interface: Not there".into(),
        Refused::NoQueue => "Unable to remove interface from queue: No such queue".into(),
        why => refusal(why),
    })?;
    turn.success("Removed interface from queue")
}

/// Changes a member that the headers name.
fn change(turn: &Turn<'_>, edit: Edit<'_>) -> Result<(), Refusal> {
    let whom = Whom { queue: turn.get("Queue"), interface: turn.need("Interface")?, by: BY };
    let core = &mut *turn.site.shard.core.borrow_mut();
    core.with_queues(|queues, now, out| queues.edit(whom, edit, now, out)).map(drop).map_err(refusal)
}

fn pause(turn: &mut Turn<'_>) -> Done {
    let paused = is_true(turn.need("Paused")?);
    let reason = turn.get("Reason").unwrap_or_default();
    change(turn, Edit::Pause(paused, reason))?;
    let done = if paused { "Interface paused successfully" } else { "Interface unpaused successfully" };
    turn.success(done)
}

fn penalty(turn: &mut Turn<'_>) -> Done {
    let penalty = number(turn, "Penalty")?;
    change(turn, Edit::Penalty(penalty)).map_err(|_| "Invalid interface, queuename or penalty")?;
    turn.success("Interface penalty set successfully")
}

fn ring_in_use(turn: &mut Turn<'_>) -> Done {
    let rings = is_true(turn.need("RingInUse")?);
    change(turn, Edit::RingInUse(rings)).map_err(|_| "Invalid interface, queuename, or ringinuse value")?;
    turn.success("Interface ringinuse set successfully")
}

fn log(turn: &mut Turn<'_>) -> Done {
    let or_none = |header: &str| turn.get(header).filter(|text| !text.is_empty()).unwrap_or("NONE").into();
    let data = turn.get("Message").map(str::to_owned).into_iter().collect();
    let entry = Entry::Custom { event: turn.need("Event")?.to_owned(), data };
    let (call, queue) = (or_none("Uniqueid"), turn.need("Queue")?.into());
    let agent = or_none("Interface");
    let core = &mut *turn.site.shard.core.borrow_mut();
    let time = core.queue_now().wall;
    core.queue_lines.push(Line { time, call, queue, agent, entry });
    turn.success("Event added successfully")
}

/// A bound's change as the file writes it.
pub(crate) fn shift(shift: Shift) -> String {
    match shift {
        Shift::Keep => String::new(),
        Shift::To(value) => value.to_string(),
        Shift::By(by) => format!("{by:+}"),
    }
}

fn rules(turn: &mut Turn<'_>) -> Done {
    let only = turn.get("Rule").map(str::to_owned);
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    let is_meant = |name: &str| only.as_ref().is_none_or(|only| only.eq_ignore_ascii_case(name));
    let mut found = core.queues.rules().filter(|(name, _)| is_meant(name)).peekable();
    if only.is_some() && found.peek().is_none() {
        return Err("Invalid rule name".into());
    }
    // No list of events, but lines of the answer itself.
    let mut response = turn.response("Success");
    for (name, changes) in found {
        response = response.field("RuleList", name);
        for one in changes {
            let by = |change: Shift| match change {
                Shift::Keep => "+0".to_owned(),
                change => shift(change),
            };
            let line = format!("{},{},{}", one.after.as_secs(), by(one.max), by(one.min));
            response = response.field("Rule", line);
        }
    }
    response.end();
    Ok(After::Go)
}

fn reload(turn: &mut Turn<'_>) -> Done {
    turn.site.wish(Wish::Reload { module: "app_queue".to_owned() });
    turn.success("Queue reloaded successfully")
}

fn reset(turn: &mut Turn<'_>) -> Done {
    let name = turn.get("Queue");
    let core = &mut *turn.site.shard.core.borrow_mut();
    core.with_queues(|queues, _, _| queues.reset(name)).map_err(refusal)?;
    turn.success("Queue stats reset successfully")
}

/// Why nothing was done about a caller, in the words of the two actions that do something.
fn about_caller(turn: &Turn<'_>, why: Refused) -> Refusal {
    let withdraws = turn.get("Action").is_some_and(|name| name.eq_ignore_ascii_case("QueueWithdrawCaller"));
    let what = if withdraws {
        "Unable to withdraw caller from queue"
    } else {
        "Unable to change priority caller on queue"
    };
    let why = match why {
        Refused::NoQueue => "No such queue",
        _ => "No such caller",
    };
    Refusal(format!("{what}: {why}"))
}

fn caller(turn: &Turn<'_>) -> Result<ChannelId, Refusal> {
    let found = turn.site.shard.core.borrow().by_name(turn.need("Caller")?);
    found.ok_or_else(|| about_caller(turn, Refused::NoCaller))
}

fn priority(turn: &mut Turn<'_>) -> Done {
    let (queue, caller) = (turn.need("Queue")?, caller(turn)?);
    let priority = turn.need("Priority")?.trim().parse();
    let priority = priority.map_err(|_| Refusal("Priority must be a whole number".to_owned()))?;
    let core = &mut *turn.site.shard.core.borrow_mut();
    core.with_queues(|queues, now, out| queues.set_priority(queue, caller, priority, now, out))
        .map_err(|why| about_caller(turn, why))?;
    turn.success("Priority change for caller on queue")
}

fn withdraw(turn: &mut Turn<'_>) -> Done {
    let (queue, caller) = (turn.need("Queue")?, caller(turn)?);
    let info = turn.get("WithdrawInfo").unwrap_or_default();
    let core = &mut *turn.site.shard.core.borrow_mut();
    core.with_queues(|queues, now, out| queues.withdraw(queue, caller, info, now, out))
        .map_err(|why| about_caller(turn, why))?;
    turn.success("Withdraw requested successfully")
}
