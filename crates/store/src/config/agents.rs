//! `agents.conf`: who may log in by `AgentLogin()`.

use core::time::Duration;
use std::rc::Rc;

use call::AgentRules;
use conf::{File, Findings};

use super::kind::{Millis, Seconds, Text, YesNo};
use super::{options, read_object};

/// Longest autologoff, seconds: a day.
const AUTOLOGOFF_MAX: u32 = 86_400;
/// Longest wrap-up, milliseconds: a day.
const WRAPUP_MAX: u32 = 86_400_000;

options! {
    /// A section of `agents.conf`: an agent, whose number is its name.
    AgentSection, "agents.conf", "agent", IsIgnored;
    ackcall: YesNo = "no", "The agent accepts each call by a key.";
    acceptdtmf: Text = "#", "That key.";
    autologoff: Seconds<0, AUTOLOGOFF_MAX> = "0", "Seconds after which an agent who does not accept a call is logged off; 0: never. Implies ackcall.";
    wrapuptime: Millis<0, WRAPUP_MAX> = "0", "Milliseconds for which an agent has no call after one.";
    musiconhold: Text = "default", "Class of music that the agent hears while it waits.";
    recordagentcalls: YesNo = "no", "Record the agent's calls, as MixMonitor() does: agent-NUMBER-UNIQUEID.wav.";
    custom_beep: Text = "beep", "Sound that tells the agent of a call; empty: none.";
    fullname: Text = "", "Name of the agent.";
    @recognised {}
}

/// `agents.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Agents {
    /// Numbers, and what is said of each.
    pub agents: Vec<(String, AgentSection)>,
}

impl Agents {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut agents: Vec<(String, AgentSection)> = Vec::new();
        for section in file.objects() {
            let name = section.name.to_string();
            if name.eq_ignore_ascii_case("general") {
                continue;
            }
            if section.variables.iter().any(|line| line.is("agent")) {
                findings.warning(
                    &section.place,
                    format!("[{name}] lists agents by agent =>, as before Asterisk 12; they do not exist"),
                    "write a section for each agent",
                );
                continue;
            }
            let read: Option<AgentSection> = read_object(section, findings, &mut |_, _, _| false);
            let Some(agent) = read else { continue };
            match agents.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = agent,
                None => agents.push((name, agent)),
            }
        }
        Self { agents }
    }
    /// The same for calls.
    pub fn rules(&self) -> impl Iterator<Item = (String, Rc<AgentRules>)> {
        self.agents.iter().map(|(name, agent)| (name.clone(), Rc::new(agent.rules())))
    }
}

impl AgentSection {
    fn rules(&self) -> AgentRules {
        AgentRules {
            acknowledges: self.ackcall || self.autologoff > Duration::ZERO,
            accept: self.acceptdtmf.chars().next().unwrap_or('#'),
            autologoff: self.autologoff,
            wrapup: self.wrapuptime,
            music: self.musiconhold.to_string(),
            records: self.recordagentcalls,
            beep: self.custom_beep.to_string(),
            full_name: self.fullname.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_an_agent_and_templates_are_none() {
        let text = "[general]\n[office](!)\nackcall=yes\nacceptdtmf=*\nwrapuptime=2500\n[1001](office)\nfullname=Ann Agent\n\
                    custom_beep=\n[1002]\nautologoff=15\nrecordagentcalls=yes\n[agents]\nagent => 1003,secret,Old\n";
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("agents.conf", text);
        let file = conf::load(&source, "agents.conf", conf::Options::default(), &mut findings).unwrap();
        let agents: Vec<_> = Agents::read(&file, &mut findings).rules().collect();
        let [(ann, first), (bob, second)] = agents.as_slice() else { panic!("{agents:?}") };
        assert_eq!((ann.as_str(), bob.as_str()), ("1001", "1002"));
        let rules = AgentRules {
            acknowledges: true,
            accept: '*',
            wrapup: Duration::from_millis(2500),
            music: "default".into(),
            beep: String::new(),
            full_name: "Ann Agent".into(),
            ..AgentRules::default()
        };
        assert_eq!(**first, rules);
        assert!(second.acknowledges && second.records && second.beep == "beep");
        assert_eq!(second.autologoff, Duration::from_secs(15));
        assert_eq!(findings.len(), 1, "the old form is told of");
    }
}
