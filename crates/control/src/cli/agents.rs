//! Agents: who is logged in, and logging them off.

use std::fmt::Write as _;

use call::{Agent, Core};
use serde_json::{Value, json};

use super::text::{clean, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "agent show all",
        "Lists all agents of agents.conf.",
        "agents [id name state channel talking_with logged_in_seconds]",
        |cli, ask| cli.agent_list(ask, |_| true),
    ),
    show(
        "agent show online",
        "Lists the agents who are logged in.",
        "agents [id name state channel talking_with logged_in_seconds]",
        |cli, ask| cli.agent_list(ask, |agent| agent.login.is_some()),
    ),
    show(
        "agent show <agent>",
        "Shows what agents.conf says of an agent, and what it does.",
        "id name state channel talking_with logged_in_seconds beep music ackcall acceptdtmf autologoff_seconds \
         wrapuptime_ms recordagentcalls",
        Cli::agent_show,
    ),
    verb(
        "agent logoff <agent> [soft]",
        "Logs an agent off: hangs its channel up, or with soft lets it finish its call.",
        Cli::agent_logoff,
    ),
];

/// In the words of `agent show`.
fn state(agent: &Agent) -> &'static str {
    match (&agent.login, agent.device()) {
        (None, _) => "Logged out",
        (Some(_), call::DeviceState::NotInUse) => "Available",
        (Some(_), _) => "Busy",
    }
}

fn channel(core: &Core, agent: &Agent) -> String {
    let of = agent.login.as_ref().and_then(|login| core.get(login.channel));
    of.map(|channel| channel.name.to_string()).unwrap_or_default()
}

fn talking_with(core: &Core, agent: &Agent) -> String {
    let with = agent.talk().and_then(|(caller, _)| core.get(caller));
    with.map(|caller| caller.name.to_string()).unwrap_or_default()
}

fn row(core: &Core, agent: &Agent) -> Value {
    json!({
        "id": &*agent.id,
        "name": agent.rules.full_name,
        "state": state(agent),
        "channel": channel(core, agent),
        "talking_with": talking_with(core, agent),
        "logged_in_seconds": agent.login.as_ref().map(|login| core.now.since(login.since).as_secs()),
    })
}

impl Cli {
    fn agent_list(&self, ask: &mut Ask<'_>, is_meant: fn(&Agent) -> bool) -> Said {
        let core = &*self.site.shard.core.borrow();
        let agents = || core.agents.iter().filter(|agent| is_meant(agent));
        let data = || json!({ "agents": agents().map(|agent| row(core, agent)).collect::<Vec<_>>() });
        let text = || {
            let mut out = format!(
                "{:<8} {:<20} {:<11} {:<30} {}\n",
                "Agent-ID", "Name", "State", "Channel", "Talking with"
            );
            for agent in agents() {
                let _ = writeln!(
                    out,
                    "{:<8} {:<20} {:<11} {:<30} {}",
                    clean(&agent.id),
                    clean(&agent.rules.full_name),
                    agent.device().name(),
                    clean(&channel(core, agent)),
                    clean(&talking_with(core, agent))
                );
            }
            let online = agents().filter(|agent| agent.login.is_some()).count();
            let talking = agents().filter(|agent| agent.talk().is_some()).count();
            let _ = writeln!(
                out,
                "\nDefined agents: {}, Logged in: {online}, Talking: {talking}",
                core.agents.iter().count()
            );
            out
        };
        ask.show(data, text)
    }
    fn agent_show(&self, ask: &mut Ask<'_>) -> Said {
        let id = ask.need("agent");
        let core = &*self.site.shard.core.borrow();
        let Some(agent) = core.agents.get(id) else {
            return Said::failed(format!("Agent '{}' not found\n", clean(id)));
        };
        let rules = &agent.rules;
        let data = || {
            let mut data = row(core, agent);
            if let Value::Object(fields) = &mut data {
                let more = [
                    ("beep", json!(rules.beep)),
                    ("music", json!(rules.music)),
                    ("ackcall", json!(rules.acknowledges)),
                    ("acceptdtmf", json!(rules.accept.to_string())),
                    ("autologoff_seconds", json!(rules.autologoff.as_secs())),
                    ("wrapuptime_ms", json!(rules.wrapup.as_millis().to_string())),
                    ("recordagentcalls", json!(rules.records)),
                ];
                fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
            }
            data
        };
        let text = || {
            let mut out = format!("Id: {}\nName: {}\n", clean(&agent.id), clean(&rules.full_name));
            let _ = writeln!(out, "Beep: {}", clean(&rules.beep));
            let _ = writeln!(out, "MOH: {}", clean(&rules.music));
            let _ = writeln!(out, "RecordCalls: {}", yes_no(rules.records));
            let _ = writeln!(
                out,
                "AckCall: {} ({})",
                yes_no(rules.acknowledges),
                clean(&rules.accept.to_string())
            );
            let _ = writeln!(out, "AutoLogoff: {} seconds", rules.autologoff.as_secs());
            let _ = writeln!(out, "WrapupTime: {} ms", rules.wrapup.as_millis());
            let _ = writeln!(out, "State: {}", state(agent));
            if let Some(login) = &agent.login {
                let _ = writeln!(out, "Channel: {}", clean(&channel(core, agent)));
                let _ = writeln!(out, "LoggedInSecs: {}", core.now.since(login.since).as_secs());
                let _ = writeln!(out, "TalkingWith: {}", clean(&talking_with(core, agent)));
            }
            out
        };
        ask.show(data, text)
    }
    fn agent_logoff(&self, ask: &mut Ask<'_>) -> Said {
        let (id, soft) = (ask.need("agent"), ask.choice().is_some());
        let core = &mut *self.site.shard.core.borrow_mut();
        if core.agents.get(id).is_none() {
            return Said::failed(format!("Agent '{}' not found\n", clean(id)));
        }
        match core.agent_logoff(id, soft) {
            true => Said::done(format!("Logging out {}\n", clean(id))),
            false => Said::failed(format!("{} is not logged in\n", clean(id))),
        }
    }
}
