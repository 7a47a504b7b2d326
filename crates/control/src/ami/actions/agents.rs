//! Actions on agents.

use call::Snapshot;

use super::super::events;
use super::super::table::{ActionRow, After, Done, Turn, may, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "Agents",
        class: &["agent"],
        synopsis: "Lists the agents of agents.conf and what they do.",
        fields: &[],
        run: agents,
    },
    ActionRow {
        name: "AgentLogoff",
        class: &["agent"],
        synopsis: "Logs an agent off.",
        fields: &[must("Agent", "its number"), may("Soft", "true: when its call is over")],
        run: logoff,
    },
];

fn agents(turn: &mut Turn<'_>) -> Done {
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    turn.begin_list("Agents will follow");
    let mut items = 0;
    for agent in core.agents.iter() {
        let status = match (&agent.login, agent.talk()) {
            (None, _) => "AGENT_LOGGEDOFF",
            (Some(_), None) if agent.device() == call::DeviceState::NotInUse => "AGENT_IDLE",
            (Some(_), _) => "AGENT_ONCALL",
        };
        let item = turn
            .plain_item("Agents")
            .field("Agent", &agent.id)
            .field("Name", &agent.rules.full_name)
            .field("Status", status);
        let item = match &agent.login {
            None => item,
            Some(login) => {
                let caller = agent.talk().and_then(|(caller, since)| Some((core.get(caller)?, since)));
                let item = match caller {
                    None => item,
                    Some((caller, since)) => {
                        item.field("TalkingToChan", &caller.name).field("CallStarted", since)
                    }
                };
                let item = item.field("LoggedInTime", login.since_wall);
                match core.get(login.channel) {
                    Some(channel) => events::channel(item, "", &Snapshot::of(channel)),
                    None => item,
                }
            }
        };
        let _ = item;
        turn.end_item();
        items += 1;
    }
    turn.end_list("AgentsComplete", items).end();
    Ok(After::Go)
}

fn logoff(turn: &mut Turn<'_>) -> Done {
    let (id, soft) = (turn.need("Agent")?, turn.get("Soft"));
    let soft = soft.is_some_and(|text| conf::boolean(text) == Some(true));
    let core = &mut *turn.site.shard.core.borrow_mut();
    if core.agents.get(id).is_none() {
        return Err("No such agent".into());
    }
    // One who is not logged in is out, too.
    let _ = core.agent_logoff(id, soft);
    turn.success("Agent logged out")
}
