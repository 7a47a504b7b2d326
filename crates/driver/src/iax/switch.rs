//! Switches of our dialplan (`switch => IAX2/user:secret@host/context`): a call without a number to the other site, on which
//! it is asked for numbers (DPREQ, RFC 5456 §6.8.1). It stays for the next question until nobody has asked for a while.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use ::iax2::frame::Auth;
use ::iax2::machine::Dial;
use base::{Cause, FormatId, Instant};
use call::{Core, Level, SwitchAnswer, SwitchQuestion};

use super::leg::{Party, Target};
use super::{At, IaxDriver, text};

/// How long a call without a number waits for the next question.
const IDLE: Duration = Duration::from_secs(60);
/// How long the other site may take, and the DNS before it.
const PATIENCE: Duration = Duration::from_secs(9);
/// How long an answer holds that does not say so, and the longest that is believed.
const KEPT: Duration = Duration::from_secs(60);
/// See [`KEPT`].
const KEPT_MAX: Duration = Duration::from_secs(600);
/// Sites that are asked at once.
const SITES_MAX: usize = 256;
/// Questions that one site may owe answers to.
const OWED_MAX: usize = 256;
/// What the field calls a number that is to be told later; the RFC leaves it out, which others take for extension `s`.
pub(super) const NUMBER_LATER: &str = "TBD";
/// Answers of RFC 5456 §8.6.19.
pub(super) const EXISTS: u16 = 1;
/// See [`EXISTS`].
pub(super) const CAN_EXIST: u16 = 2;
/// See [`EXISTS`].
pub(super) const NONE: u16 = 4;
/// See [`EXISTS`].
pub(super) const MORE: u16 = 0x8000;

/// A site that is asked.
struct Asked {
    place: Option<At>,
    /// Whether the other site has taken the call.
    ready: bool,
    /// Numbers that are still to be asked, and those that were, and until when.
    waits: VecDeque<(Instant, String)>,
    owed: VecDeque<(Instant, String)>,
    idle_at: Instant,
}

/// By what follows the slash of the switch.
#[derive(Default)]
pub(super) struct Switches(BTreeMap<Rc<str>, Asked>);

impl Switches {
    pub(super) fn deadline(&self) -> Option<Instant> {
        let each = |asked: &Asked| {
            let first =
                asked.waits.front().into_iter().chain(asked.owed.front()).map(|(until, _)| *until).min();
            first.unwrap_or(asked.idle_at)
        };
        self.0.values().map(each).min()
    }
    fn at(&self, at: At) -> Option<Rc<str>> {
        self.0.iter().find(|(_, asked)| asked.place == Some(at)).map(|(switch, _)| switch.clone())
    }
}

impl IaxDriver {
    /// Asks what the dialplan wants to know. The shell calls it each turn, after the stories.
    pub fn ask_switches(&mut self, core: &mut Core) {
        for (switch, number) in core.switches.take_wanted() {
            let known = self.switches.0.contains_key(&*switch);
            if !known && self.switches.0.len() >= SITES_MAX {
                core.switch_said((switch, number), None);
                continue;
            }
            let now = core.now;
            let asked = self.switches.0.entry(switch.as_str().into()).or_insert_with(|| Asked {
                place: None,
                ready: false,
                waits: VecDeque::new(),
                owed: VecDeque::new(),
                idle_at: now + IDLE,
            });
            asked.idle_at = now + IDLE;
            match asked.waits.len() + asked.owed.len() < OWED_MAX {
                true => asked.waits.push_back((now + PATIENCE, number)),
                false => core.switch_said((switch.clone(), number), None),
            }
            self.go_on_asking(core, &switch);
        }
        self.settle(core);
    }
    /// Calls the site, or asks what waits.
    fn go_on_asking(&mut self, core: &mut Core, switch: &str) {
        let Some(asked) = self.switches.0.get_mut(switch) else { return };
        let now = core.now;
        match asked.place {
            Some(at) if asked.ready => {
                let waits = core::mem::take(&mut asked.waits);
                asked.owed.extend(waits.iter().cloned());
                for (_, number) in waits {
                    let bytes = number.as_bytes();
                    let _ = self.order(at.0, |machine, out| machine.ask_number(now, at.1, bytes, out));
                }
            }
            Some(_) => {}
            None => match self.call_for_numbers(core, switch) {
                Ok(None) => {}
                Ok(Some(at)) => {
                    if let Some(asked) = self.switches.0.get_mut(switch) {
                        asked.place = Some(at);
                    }
                }
                Err(cause) => self.give_up_switch(core, switch, cause),
            },
        }
    }
    /// A call without a number; `None` while the DNS is asked.
    fn call_for_numbers(&mut self, core: &mut Core, switch: &str) -> Result<Option<At>, Cause> {
        let (place, context) = switch.split_once('/').unwrap_or((switch, ""));
        let target = Target { context: context.to_owned(), ..Target::parse(place) };
        let peer = self.config.peers.get(&*target.host).cloned();
        let party = peer.map_or_else(|| Party::Bare(Rc::new(self.config.defaults.clone())), Party::Peer);
        let Some(to): Option<SocketAddr> = self.address(&party, &target, core.now)? else { return Ok(None) };
        let common = party.common();
        let socket = self.socket_for(to, common).ok_or(Cause::NO_ROUTE_DESTINATION)?;
        let (username, context, secret) = self.credentials(core, &party, &target);
        let formats: Vec<FormatId> = common.formats.iter().collect();
        let dial = Dial {
            called: NUMBER_LATER.as_bytes(),
            context: context.as_bytes(),
            username: username.as_bytes(),
            secret,
            formats: &formats,
            datetime: Some(super::datetime(core)),
            encrypt: common.encrypt,
            keys_stay: common.keys_stay,
            plaintext: common.auth.has(Auth::PLAINTEXT),
            numbers_max: common.numbers_max,
            ..Dial::to(to)
        };
        let now = core.now;
        let placed = self.order(socket, |machine, out| machine.dial(now, &dial, out));
        let place = placed.and_then(Result::ok).ok_or(Cause::SWITCH_CONGESTION)?;
        Ok(Some((socket, place)))
    }
    /// The other site takes a call; whether it is one without a number.
    pub(super) fn switch_taken(&mut self, core: &mut Core, at: At) -> bool {
        let Some(switch) = self.switches.at(at) else { return false };
        if let Some(asked) = self.switches.0.get_mut(&switch) {
            asked.ready = true;
        }
        self.go_on_asking(core, &switch);
        true
    }
    /// What a switch's section names a key for, when it is to be proven by one; `None`: it is no switch's call.
    pub(super) fn switch_key(&self, at: At) -> Option<String> {
        let switch = self.switches.at(at)?;
        let target = Target::parse(switch.split('/').next().unwrap_or_default());
        let peer = self.config.peers.get(&*target.host);
        Some(if target.key.is_empty() {
            peer.map(|peer| peer.own_key.clone()).unwrap_or_default()
        } else {
            target.key
        })
    }
    /// What the other site says of a number.
    pub(super) fn number_told(&mut self, core: &mut Core, at: At, number: &[u8], status: u16, refresh: u16) {
        let Some(switch) = self.switches.at(at) else { return };
        let Some(asked) = self.switches.0.get_mut(&switch) else { return };
        let number = text(Some(number));
        // Only what was asked is believed.
        let Some(place) = asked.owed.iter().position(|(_, owed)| *owed == number) else { return };
        asked.owed.remove(place);
        let answer = SwitchAnswer {
            exists: status & EXISTS != 0,
            more: status & MORE != 0 || (status & CAN_EXIST != 0 && status & EXISTS == 0),
        };
        let keep = if refresh == 0 { KEPT } else { Duration::from_secs(refresh.into()).min(KEPT_MAX) };
        core.switch_said((switch.to_string(), number), Some((answer, keep)));
    }
    /// The call without a number is over; whether it was one.
    pub(super) fn switch_ended(&mut self, core: &mut Core, at: At, cause: Cause) -> bool {
        let Some(switch) = self.switches.at(at) else { return false };
        self.give_up_switch(core, &switch, cause);
        true
    }
    /// Nobody answers what was asked.
    fn give_up_switch(&mut self, core: &mut Core, switch: &str, cause: Cause) {
        let Some(asked) = self.switches.0.remove(switch) else { return };
        let questions = asked.waits.into_iter().chain(asked.owed);
        let questions: Vec<SwitchQuestion> =
            questions.map(|(_, number)| (switch.to_owned(), number)).collect();
        if !questions.is_empty() {
            // The switch may hold a password.
            let place = switch.split('/').next().unwrap_or_default();
            let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
            let line = format!("the switch at '{host}' cannot be asked for numbers: cause {}", cause.0);
            core.log(Level::Warning, "chan_iax2", &line);
        }
        questions.into_iter().for_each(|question| core.switch_said(question, None));
    }
    /// Ends what nobody uses, gives up what is not answered, and tries again what waited for the DNS.
    pub(super) fn switches_due(&mut self, core: &mut Core) {
        let now = core.now;
        let late = |asked: &Asked| {
            asked.waits.front().into_iter().chain(asked.owed.front()).any(|(until, _)| *until <= now)
        };
        let due: Vec<Rc<str>> = self
            .switches
            .0
            .iter()
            .filter(|(_, asked)| {
                late(asked) || (asked.idle_at <= now && asked.waits.is_empty() && asked.owed.is_empty())
            })
            .map(|(switch, _)| switch.clone())
            .collect();
        for switch in due {
            let place = self.switches.0.get(&switch).and_then(|asked| asked.place);
            self.give_up_switch(core, &switch, Cause::NO_USER_RESPONSE);
            if let Some(at) = place {
                let cause = Cause::NORMAL_CLEARING;
                let _ = self.order(at.0, |machine, out| machine.hang_up(now, at.1, cause, out));
            }
        }
    }
    /// The DNS has said something.
    pub(super) fn switches_resolved(&mut self, core: &mut Core) {
        let waiting = self.switches.0.iter().filter(|(_, asked)| asked.place.is_none());
        let waiting: Vec<Rc<str>> = waiting.map(|(switch, _)| switch.clone()).collect();
        waiting.iter().for_each(|switch| self.go_on_asking(core, switch));
    }
    /// A socket was closed.
    pub(super) fn forget_switches_of(&mut self, core: &mut Core, socket: u32) {
        let there = |asked: &Asked| asked.place.is_some_and(|(of, _)| of == socket);
        let gone = self.switches.0.iter().filter(|(_, asked)| there(asked)).map(|(switch, _)| switch.clone());
        for switch in gone.collect::<Vec<_>>() {
            self.give_up_switch(core, &switch, Cause::NORMAL_TEMPORARY_FAILURE);
        }
    }
}
