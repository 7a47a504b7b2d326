//! Agents of agents.conf: `AgentLogin` keeps an agent's channel, `AgentRequest` connects a caller with it.

use core::time::Duration;
use std::rc::Rc;

use base::BridgeId;
use call::features::Rights;
use call::{
    AgentPhase, AgentRefused, AgentRules, Awaiting, BridgeEnd, BridgeLimits, BridgeUse, Chan, ChanEvent,
    Indication, Level, Stop,
};

use crate::bridging::Held;
use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, features, monitor};

pub(crate) const ROWS: &[AppRow] = rows! {
    "AgentLogin" "app_agent_pool" Run::Story(|call, text| Box::pin(async move { login(&call, &text).await })),
        "Logs an agent in.", "AgentLogin(AgentId[,options])",
        "The channel hears music and is given callers who ask for the agent by AgentRequest, until it hangs up. A call is told \
         by the sound custom_beep; with ackcall the agent accepts it by acceptdtmf. The code of disconnect (*) in \
         features.conf ends a call without logging off.\n\n\
         options:\n  \
         s  no agent-loginok is heard.\n\n\
         Reads AGENTACKCALL, AGENTACCEPTDTMF, AGENTAUTOLOGOFF, AGENTWRAPUPTIME, which go before agents.conf.\n\
         Sets AGENT_STATUS (INVALID ALREADY_LOGGED_IN) and goes on with the dialplan when nobody is logged in; after a login \
         the call ends.";
    "AgentRequest" "app_agent_pool" Run::Story(|call, text| Box::pin(async move { request(&call, &text).await })),
        "Connects the caller with an agent who is logged in.", "AgentRequest(AgentId)",
        "The caller hears ringing until the agent has the call, then the two talk. After that, or when there is no agent, the \
         dialplan goes on.\n\
         Sets AGENT_STATUS (INVALID NOT_LOGGED_IN BUSY NOT_CONNECTED).";
};

/// However the story ends, the agent is logged off, unless it comes back.
struct LoggedIn<'a>(&'a Chan, &'a str);

impl Drop for LoggedIn<'_> {
    fn drop(&mut self) {
        self.0.core(|core| core.agent_story_ends(self.1, self.0.id()));
    }
}

async fn login(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (id, options) = (args::nth(&parts, 0), args::nth(&parts, 1));
    if id.is_empty() {
        call.log(Level::Warning, "AgentLogin requires an argument: AgentId");
        return Ok(Flow::Hangup);
    }
    let chan = &call.chan;
    let logged_in: Result<_, AgentRefused> = chan.core(|core| {
        let is_back = core.agent_login(id, chan.id())?;
        Ok((is_back, core.agents.get(id).map(|agent| agent.rules.clone()).unwrap_or_default()))
    });
    let (is_back, rules) = match logged_in {
        Ok((is_back, rules)) => (is_back, own_rules(call, &rules)),
        Err(refused) => {
            call.set("AGENT_STATUS", refused.name());
            call.log(Level::Warning, &format!("agent '{id}' is not logged in: {}", refused.name()));
            return Ok(Flow::Continue);
        }
    };
    let _guard = LoggedIn(chan, id);
    if is_back {
        wrap_up(chan, id, &rules).await?;
        serve(chan, id, &rules).await?;
        return Ok(Flow::Hangup);
    }
    chan.core(|core| core.hold_open(BridgeUse::Agents, ""));
    chan.answer()?;
    chan.core(|core| core.agent_logged_in(id, chan.id()));
    if !options.contains('s') {
        chan.play("agent-loginok", "").await?;
    }
    call.log(Level::Verbose(2), &format!("Agent '{id}' logged in"));
    serve(chan, id, &rules).await?;
    Ok(Flow::Hangup)
}

/// The rules of agents.conf, and what variables of the channel say instead.
fn own_rules(call: &Call, rules: &Rc<AgentRules>) -> AgentRules {
    let said = |name: &str| call.get(name).filter(|value| !value.is_empty());
    let number = |name: &str| said(name)?.trim().parse::<u64>().ok();
    let mut own = AgentRules::clone(rules);
    if let Some(value) = said("AGENTACKCALL") {
        own.acknowledges = args::says_yes(&value);
    }
    if let Some(key) = said("AGENTACCEPTDTMF").and_then(|value| value.trim().chars().next()) {
        own.accept = key;
    }
    if let Some(seconds) = number("AGENTAUTOLOGOFF") {
        own.autologoff = Duration::from_secs(seconds);
        own.acknowledges |= seconds > 0;
    }
    if let Some(millis) = number("AGENTWRAPUPTIME") {
        own.wrapup = Duration::from_millis(millis);
    }
    own
}

/// What an agent is to do next.
enum Next {
    Wait,
    Take,
    Leave,
}

fn next(chan: &Chan, id: &str) -> Next {
    chan.core(|core| match core.agents.get(id).and_then(|agent| agent.login.as_ref()) {
        None => Next::Leave,
        Some(login) if matches!(login.phase, AgentPhase::Called(_)) => Next::Take,
        Some(login) if login.leaves => Next::Leave,
        Some(_) => Next::Wait,
    })
}

/// One call after the other, until the agent is to leave.
async fn serve(chan: &Chan, id: &str, rules: &AgentRules) -> Result<(), Stop> {
    loop {
        chan.core(|core| core.agent_ready(id));
        let held = Held::new(chan, BridgeUse::Agents, "");
        let music = chan.start_music(&rules.music).await?;
        let leaves = loop {
            match next(chan, id) {
                Next::Take => break false,
                Next::Leave => break true,
                Next::Wait => {}
            }
            chan.event(None).await?;
        };
        if music {
            chan.stop_music();
        }
        if leaves {
            return Ok(());
        }
        // It is told of the call where it waits.
        let took = take(chan, id, rules).await?;
        drop(held);
        match took {
            Took::Call => {
                if chan.core(|core| core.agent_accept(id)) {
                    chan.agent_released(id).await;
                    chan.check()?;
                    chan.connect_line(call::PartyId::default()).await;
                    wrap_up(chan, id, rules).await?;
                }
            }
            Took::Nothing => {}
            Took::TooLong => return Ok(()),
        }
        if matches!(next(chan, id), Next::Leave) {
            return Ok(());
        }
    }
}

/// What came of a call that an agent was told of.
enum Took {
    Call,
    /// The caller is gone.
    Nothing,
    /// The agent did not accept it in time.
    TooLong,
}

/// Tells the agent of a call.
async fn take(chan: &Chan, id: &str, rules: &AgentRules) -> Result<Took, Stop> {
    if !rules.beep.is_empty() {
        chan.play(&rules.beep, "").await?;
    }
    if !rules.acknowledges {
        return Ok(if matches!(next(chan, id), Next::Take) { Took::Call } else { Took::Nothing });
    }
    let deadline = (!rules.autologoff.is_zero()).then(|| chan.now() + rules.autologoff);
    while matches!(next(chan, id), Next::Take) {
        match chan.event(deadline).await? {
            Some(ChanEvent::Digit { digit, .. }) if digit.to_char() == rules.accept => {
                return Ok(Took::Call);
            }
            Some(_) => {}
            None => {
                let line = format!("agent '{id}' did not accept a call and is logged off");
                chan.log(Level::Notice, "app_agent_pool", &line);
                return Ok(Took::TooLong);
            }
        }
    }
    Ok(Took::Nothing)
}

/// Leaves the agent alone for a while.
async fn wrap_up(chan: &Chan, id: &str, rules: &AgentRules) -> Result<(), Stop> {
    if rules.wrapup.is_zero() {
        return Ok(());
    }
    let deadline = chan.now() + rules.wrapup;
    let music = chan.start_music(&rules.music).await?;
    while !matches!(next(chan, id), Next::Leave) && chan.event(Some(deadline)).await?.is_some() {}
    if music {
        chan.stop_music();
    }
    Ok(())
}

/// However the story ends, the agent is free of this caller.
struct Requested<'a>(&'a Chan, &'a str);

impl Drop for Requested<'_> {
    fn drop(&mut self) {
        let id = self.0.id();
        self.0.core(|core| core.agent_release(self.1, id));
    }
}

async fn request(call: &Call, text: &str) -> Outcome {
    let id = text.split(',').next().unwrap_or_default().trim();
    if id.is_empty() {
        call.log(Level::Warning, "AgentRequest requires an argument: AgentId");
        return Ok(Flow::Hangup);
    }
    let caller = &call.chan;
    caller.check()?;
    if caller.core(|core| core.agents.get(id).is_none()) {
        call.set("AGENT_STATUS", AgentRefused::Invalid.name());
        return Ok(Flow::Continue);
    }
    let bridge = Awaiting::new(caller);
    if let Err(refused) = caller.core(|core| core.agent_request(id, caller.id())) {
        call.set("AGENT_STATUS", refused.name());
        return Ok(Flow::Continue);
    }
    let asked = Requested(caller, id);
    // The agent's record tells of the two.
    caller.core(|core| core.cdr_waits_for_party(caller.id()));
    caller.indicate(&Indication::Ringing);
    bridge.enter();
    call.set("AGENT_STATUS", "NOT_CONNECTED");
    let agent = caller.core(|core| Some(core.agents.get(id)?.login.as_ref()?.channel));
    if let Some(agent) = agent {
        let party = caller.with(|c| c.caller.clone())?;
        Chan::new(caller.shard().clone(), agent).connect_line(party).await;
    }
    let agent = loop {
        let phase = caller.core(|core| {
            let login = core.agents.get(id)?.login.as_ref()?;
            Some((login.phase, login.channel))
        });
        match phase {
            Some((AgentPhase::Connected(of, _), channel)) if of == caller.id() => {
                break Chan::new(caller.shard().clone(), channel);
            }
            Some((AgentPhase::Called(of), _)) if of == caller.id() => {}
            _ => return Ok(Flow::Continue),
        }
        caller.event(None).await?;
    };
    let end = talk(call, id, &agent, bridge.bridge()).await?;
    // Whom it leaves has been told why it was over.
    agent.core(|core| core.left_bridge_by_itself(agent.id()));
    drop(asked);
    match end {
        BridgeEnd::Stopped(of, stop) if of == caller.id() => Err(stop),
        BridgeEnd::Disconnected(of) if of == caller.id() => Ok(Flow::Hangup),
        _ => Ok(Flow::Continue),
    }
}

async fn talk(call: &Call, id: &str, agent: &Chan, bridge: BridgeId) -> Result<BridgeEnd, Stop> {
    let caller = &call.chan;
    let records = caller.core(|core| core.agents.get(id).is_some_and(|agent| agent.rules.records));
    if records {
        let of = call.chan.with(|c| c.uniqueid.to_string())?;
        let name = format!("agent-{id}-{of}").replace(['/', ',', '.'], "-");
        if let Err(why) = monitor::mix_monitor(agent.shard(), agent.id(), &format!("{name}.wav,b")) {
            call.log(Level::Warning, &format!("the call of agent '{id}' is not recorded: {why}"));
        }
    }
    let before = agent.with(|c| c.rights);
    let rights = Rights { disconnect: true, ..before.unwrap_or_default() };
    let parties = [(caller, None), (agent, Some(rights))];
    let connected = caller.clone();
    let on_join: Rc<dyn Fn()> =
        Rc::new(move || connected.core(|core| core.set_variable(connected.id(), "AGENT_STATUS", "")));
    let limits = BridgeLimits { within: Some(bridge), on_join: Some(on_join), ..BridgeLimits::default() };
    let end = features::converse(parties, limits).await;
    if records {
        agent.core(|core| core.monitor_stop(agent.id(), monitor::is_mix_monitor));
    }
    if let Ok(before) = before {
        let _ = agent.with(|c| c.rights = before);
    }
    Ok(end)
}
