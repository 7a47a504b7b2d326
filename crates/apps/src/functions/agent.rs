//! AGENT(): what an agent of agents.conf does.

use dialplan::Fault;

use super::Read;
use crate::Call;

/// `AGENT(agentid[:item])`.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let (id, item) = text.split_once(':').unwrap_or((text, "status"));
    let value = call.chan.core(|core| {
        let agent = core.agents.get(id.trim()).ok_or(Fault::new("there is no such agent"))?;
        let channel = || {
            let channel = agent.login.as_ref().and_then(|login| core.get(login.channel));
            channel.map(|channel| channel.name.to_string()).unwrap_or_default()
        };
        Ok(match item.trim().to_ascii_lowercase().as_str() {
            "status" | "" => if agent.login.is_some() { "LOGGEDIN" } else { "LOGGEDOUT" }.to_owned(),
            "name" => agent.rules.full_name.clone(),
            "mohclass" => agent.rules.music.clone(),
            "fullchannel" => channel(),
            "channel" => {
                let name = channel();
                name.rsplit_once('-').map_or(name.clone(), |(device, _)| device.to_owned())
            }
            "password" => String::new(),
            _ => return Err(Fault::new("has no such item")),
        })
    })?;
    out.push_str(&value);
    Ok(())
}
