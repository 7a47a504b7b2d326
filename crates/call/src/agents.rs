//! Agents (agents.conf): who may log in, who is, and what each of them does.
//!
//! An agent's own story waits on its channel ([`ChanEvent::Agent`] wakes it); who asks for the agent talks to it in a story
//! of its own, while the agent's waits in [`Chan::agent_released`].

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Poll;

use base::{ChannelId, Instant};

use crate::exec::TaskId;
use crate::{Chan, ChanEvent, Core, DeviceState, Elsewhere, Location, Notice};

/// What agents.conf says of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRules {
    /// It has to accept each call by a key.
    pub acknowledges: bool,
    /// That key.
    pub accept: char,
    /// How long it has for that before it is logged off; zero: as long as it takes.
    pub autologoff: Duration,
    /// How long it is left alone after a call.
    pub wrapup: Duration,
    /// Class of music it hears meanwhile; empty: that of its channel.
    pub music: String,
    /// Its calls are recorded.
    pub records: bool,
    /// Sound that tells it of a call; empty: none.
    pub beep: String,
    /// Its name.
    pub full_name: String,
}

impl Default for AgentRules {
    /// The field's.
    fn default() -> Self {
        Self {
            acknowledges: false,
            accept: '#',
            autologoff: Duration::ZERO,
            wrapup: Duration::ZERO,
            music: String::new(),
            records: false,
            beep: "beep".to_owned(),
            full_name: String::new(),
        }
    }
}

/// What an agent who is logged in does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPhase {
    /// It waits for calls.
    Ready,
    /// It is told of this caller.
    Called(ChannelId),
    /// It talks to this caller, since this wall time in seconds.
    Connected(ChannelId, i64),
    /// It is left alone after a call.
    WrapUp,
}

/// An agent who is logged in.
#[derive(Debug, Clone)]
pub struct AgentLogin {
    /// Its channel.
    pub channel: ChannelId,
    /// Since when.
    pub since: Instant,
    /// The same by the wall clock, seconds since 1970.
    pub since_wall: i64,
    /// What it does.
    pub phase: AgentPhase,
    /// It is to be logged off after its call.
    pub leaves: bool,
    /// Its story, while it waits for the end of a conversation.
    story: Option<TaskId>,
}

/// An agent.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its number.
    pub id: Rc<str>,
    /// What agents.conf says of it.
    pub rules: Rc<AgentRules>,
    /// When it is logged in.
    pub login: Option<AgentLogin>,
    /// agents.conf has it no more; it may stay until it logs off.
    is_removed: bool,
}

impl Agent {
    /// What `Agent:ID` shows.
    pub fn device(&self) -> DeviceState {
        match self.login.as_ref().map(|login| (login.phase, login.leaves)) {
            None => DeviceState::Unavailable,
            Some((AgentPhase::Ready, false)) => DeviceState::NotInUse,
            Some((AgentPhase::Ready, true)) => DeviceState::Unavailable,
            Some(_) => DeviceState::InUse,
        }
    }
    /// The caller it talks to, and since when.
    pub fn talk(&self) -> Option<(ChannelId, i64)> {
        match self.login.as_ref()?.phase {
            AgentPhase::Connected(caller, since) => Some((caller, since)),
            AgentPhase::Ready | AgentPhase::Called(_) | AgentPhase::WrapUp => None,
        }
    }
}

/// Why an agent cannot be had, in the words of `AGENT_STATUS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRefused {
    /// There is no such agent.
    Invalid,
    /// It is logged in on another channel.
    AlreadyLoggedIn,
    /// It is not logged in.
    NotLoggedIn,
    /// It has a call, or is left alone after one.
    Busy,
}

impl AgentRefused {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::AlreadyLoggedIn => "ALREADY_LOGGED_IN",
            Self::NotLoggedIn => "NOT_LOGGED_IN",
            Self::Busy => "BUSY",
        }
    }
}

/// What happened to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentChange {
    /// It logged in.
    Login,
    /// It logged off after so many seconds.
    Logoff(u64),
}

/// All agents, by number.
#[derive(Debug, Default)]
pub struct Agents(BTreeMap<Rc<str>, Agent>);

impl Agents {
    /// An agent.
    pub fn get(&self, id: &str) -> Option<&Agent> {
        self.0.get(id)
    }
    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.0.values()
    }
    fn login(&mut self, id: &str) -> Option<&mut AgentLogin> {
        self.0.get_mut(id)?.login.as_mut()
    }
}

impl Core {
    /// Takes the agents of a configuration. One who is no more in it and logged in stays until it logs off.
    pub fn configure_agents(&mut self, agents: impl IntoIterator<Item = (String, Rc<AgentRules>)>) {
        self.agents.0.values_mut().for_each(|agent| agent.is_removed = true);
        for (id, rules) in agents {
            let id: Rc<str> = id.into();
            let new = Agent { id: id.clone(), rules: rules.clone(), login: None, is_removed: false };
            let agent = self.agents.0.entry(id).or_insert(new);
            (agent.rules, agent.is_removed) = (rules, false);
        }
        self.agents.0.retain(|_, agent| !agent.is_removed || agent.login.is_some());
        let all: Vec<Rc<str>> = self.agents.0.keys().cloned().collect();
        all.iter().for_each(|id| self.touch_agent(id));
    }
    fn touch_agent(&mut self, id: &str) {
        self.touched_devices.push(format!("Agent:{id}"));
    }
    /// An agent logs in on a channel.
    ///
    /// True when it is logged in on it already: it had been taken out of its waiting, for a transfer, and is back.
    pub fn agent_login(&mut self, id: &str, channel: ChannelId) -> Result<bool, AgentRefused> {
        let (since, since_wall) = (self.now, self.queue_now().wall);
        let agent =
            self.agents.0.get_mut(id).filter(|agent| !agent.is_removed).ok_or(AgentRefused::Invalid)?;
        if let Some(login) = &agent.login {
            let is_back = login.channel == channel;
            return if is_back { Ok(true) } else { Err(AgentRefused::AlreadyLoggedIn) };
        }
        let phase = AgentPhase::WrapUp;
        agent.login = Some(AgentLogin { channel, since, since_wall, phase, leaves: false, story: None });
        if let Some(channel) = self.get_mut(channel) {
            channel.agent = Some(id.into());
        }
        Ok(false)
    }
    /// Watchers hear that an agent has logged in.
    pub fn agent_logged_in(&mut self, id: &str, channel: ChannelId) {
        self.tell_agent(id, channel, AgentChange::Login);
    }
    /// The agent's story has ended. Where another one takes the channel, for a transfer, the agent stays and is busy: it
    /// comes back by [`Self::agent_login`], or goes elsewhere and is logged off.
    pub fn agent_story_ends(&mut self, id: &str, channel: ChannelId) {
        match self.get(channel).and_then(|channel| channel.goto.as_ref()) {
            Some(Elsewhere::Story(_)) => {
                if let Some(login) = self.agents.login(id) {
                    login.phase = AgentPhase::WrapUp;
                }
                self.touch_agent(id);
            }
            Some(Elsewhere::Dialplan(_)) | None => self.agent_logout(id),
        }
    }
    /// Where in the dialplan an agent waits who is logged in on this channel.
    pub fn agent_place(&self, channel: ChannelId) -> Option<Location> {
        self.get(channel).filter(|channel| channel.agent.is_some()).map(|channel| channel.location.clone())
    }
    /// A channel goes elsewhere, or is gone: an agent that is logged in on it is no more.
    pub fn agent_gone(&mut self, channel: ChannelId) {
        if let Some(id) = self.get_mut(channel).and_then(|channel| channel.agent.take()) {
            self.agent_logout(&id);
        }
    }
    fn agent_logout(&mut self, id: &str) {
        let Some(agent) = self.agents.0.get_mut(id) else { return };
        let Some(login) = agent.login.take() else { return };
        if agent.is_removed {
            self.agents.0.remove(id);
        }
        if let Some(channel) = self.get_mut(login.channel) {
            channel.agent = None;
        }
        if let AgentPhase::Called(caller) | AgentPhase::Connected(caller, _) = login.phase {
            self.push_event(caller, ChanEvent::Agent);
        }
        let seconds = self.now.since(login.since).as_secs();
        self.touch_agent(id);
        self.tell_agent(id, login.channel, AgentChange::Logoff(seconds));
    }
    fn tell_agent(&mut self, id: &str, channel: ChannelId, change: AgentChange) {
        self.notice(|core| {
            Some(Notice::Agent {
                agent: id.to_owned(),
                channel: core.snapshot(channel).map(Box::new),
                change,
            })
        });
    }
    /// A caller asks for an agent, who is told. The caller's story hears [`ChanEvent::Agent`] when that has come to
    /// something, and says [`Core::agent_release`] however it ends.
    pub fn agent_request(&mut self, id: &str, caller: ChannelId) -> Result<(), AgentRefused> {
        let agent = self.agents.0.get_mut(id).ok_or(AgentRefused::Invalid)?;
        let login = agent.login.as_mut().ok_or(AgentRefused::NotLoggedIn)?;
        if login.phase != AgentPhase::Ready || login.leaves {
            return Err(AgentRefused::Busy);
        }
        login.phase = AgentPhase::Called(caller);
        let channel = login.channel;
        self.touch_agent(id);
        self.push_event(channel, ChanEvent::Agent);
        Ok(())
    }
    /// The agent takes the call that it was told of; false when the caller is gone.
    pub fn agent_accept(&mut self, id: &str) -> bool {
        let wall = self.queue_now().wall;
        let Some(login) = self.agents.login(id) else { return false };
        let AgentPhase::Called(caller) = login.phase else { return false };
        login.phase = AgentPhase::Connected(caller, wall);
        self.push_event(caller, ChanEvent::Agent);
        true
    }
    /// The caller is done with the agent: one who has talked is left alone until [`Core::agent_ready`], and so is one who
    /// was only told.
    pub fn agent_release(&mut self, id: &str, caller: ChannelId) {
        let Some(login) = self.agents.login(id) else { return };
        let (channel, story) = match login.phase {
            AgentPhase::Called(of) | AgentPhase::Connected(of, _) if of == caller => {
                login.phase = AgentPhase::WrapUp;
                (login.channel, login.story.take())
            }
            AgentPhase::Ready | AgentPhase::Called(_) | AgentPhase::Connected(..) | AgentPhase::WrapUp => {
                return;
            }
        };
        self.woken.extend(story);
        self.push_event(channel, ChanEvent::Agent);
    }
    /// The agent may have calls.
    pub fn agent_ready(&mut self, id: &str) {
        if let Some(login) = self.agents.login(id) {
            login.phase = AgentPhase::Ready;
            self.touch_agent(id);
        }
    }
    /// Logs an agent off: at once, or `soft` after its call. False when it is not logged in.
    pub fn agent_logoff(&mut self, id: &str, soft: bool) -> bool {
        let Some(login) = self.agents.login(id) else { return false };
        login.leaves = true;
        let channel = login.channel;
        if soft {
            self.touch_agent(id);
            self.push_event(channel, ChanEvent::Agent);
        } else {
            self.soft_hangup(channel, base::Cause::NORMAL_CLEARING, crate::SoftHangup::Explicit);
        }
        true
    }
}

impl Chan {
    /// Waits until who talks to this agent is done, or the agent is logged off. What happens on the channel meanwhile is
    /// the other story's business.
    pub async fn agent_released(&self, id: &str) {
        std::future::poll_fn(|_| {
            let mut core = self.shard().core.borrow_mut();
            let mut exec = self.shard().exec.borrow_mut();
            let Some(login) = core.agents.login(id) else { return Poll::Ready(()) };
            if !matches!(login.phase, AgentPhase::Connected(..)) {
                return Poll::Ready(());
            }
            login.story = exec.current();
            exec.set_deadline(None);
            Poll::Pending
        })
        .await;
    }
}
