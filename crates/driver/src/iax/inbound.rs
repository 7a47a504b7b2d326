//! Calls that come in: who it is, whether it may, where it goes.

use core::net::IpAddr;
use std::rc::Rc;

use ::iax2::machine::{Accept, Encrypt, Request};
use base::Cause;
use call::{ChanState, Core, Level, Location, NewChannel, PartyId, Presentation, Reach, security};

use super::config::{Common, Peer, Transfer, User};
use super::index::is_open;
use super::leg::{Leg, Party, Stage, Target};
use super::proof::{NO_AUTHORITY, Wish};
use super::switch::{CAN_EXIST, EXISTS, MORE, NONE, NUMBER_LATER};
use super::{At, IaxDriver, text};

/// A call that is accepted and has no number yet.
pub(super) struct Unnumbered {
    user: Rc<User>,
    request: Box<Request>,
    context: String,
    format: base::FormatId,
}

impl Leg {
    /// Whether its user may go to this context.
    pub(super) fn may_go_to(&self, context: &str) -> bool {
        match &self.party {
            Party::User(user) => may_go_to(user, context),
            Party::Peer(_) | Party::Bare(_) => false,
        }
    }
}

fn may_go_to(user: &User, context: &str) -> bool {
    match user.contexts.is_empty() {
        true => context == "default",
        false => user.contexts.iter().any(|known| known == context),
    }
}

fn may_come_from(access: Option<&super::Access>, address: IpAddr) -> bool {
    access.is_none_or(|access| access(address.to_canonical()))
}

impl IaxDriver {
    /// Who calls: the user that is named; else the first that needs no proof and may come from there.
    fn user_of(&self, name: &str, from: IpAddr) -> Option<Rc<User>> {
        let may = |user: &&Rc<User>| may_come_from(user.common.access.as_ref(), from);
        if !name.is_empty() {
            return self.config.users.get(name).filter(may).cloned();
        }
        let guest = self.config.users.get("guest").filter(|user| is_open(user)).filter(may);
        let mut open = self.index.open_users().filter_map(|name| self.config.users.get(name));
        guest.or_else(|| open.find(may)).cloned()
    }
    /// A call comes in.
    pub(super) fn called(&mut self, core: &mut Core, at: At, request: Request) {
        let name = text(request.fields().username);
        let user = self.user_of(&name, request.from.ip());
        match user {
            Some(user) if is_open(&user) => {
                if user.common.encrypt == Encrypt::Required {
                    // Keys are made of passwords.
                    return self.refuse(core.now, at, Cause::FACILITY_NOT_SUBSCRIBED, NO_AUTHORITY);
                }
                self.admit(core, at, user, Box::new(request));
            }
            Some(user) => self.challenge(core, at, &name, Wish::Call(user), request),
            None => self.challenge(core, at, &name, Wish::Nobody { calls: true, keys: Vec::new() }, request),
        }
    }
    /// A peer wants to be registered, or no longer.
    pub(super) fn registering(&mut self, core: &mut Core, at: At, release: bool, request: Request) {
        let name = text(request.fields().username);
        let may = |peer: &&Rc<Peer>| {
            matches!(peer.host, super::Host::Dynamic(_))
                && may_come_from(peer.common.access.as_ref(), request.from.ip())
        };
        match self.config.peers.get(&*name).filter(may).cloned() {
            Some(peer) if peer.secret.is_none() && peer.secret_in.is_none() && peer.keys.is_empty() => {
                self.lease(core, at, &peer, release, &request);
            }
            Some(peer) => self.challenge(core, at, &name, Wish::Register(peer, release), request),
            None => self.challenge(core, at, &name, Wish::Nobody { calls: false, keys: Vec::new() }, request),
        }
    }
    /// Takes a call of a user who is known, or refuses it.
    pub(super) fn admit(&mut self, core: &mut Core, at: At, user: Rc<User>, request: Box<Request>) {
        let now = core.now;
        let (spread, calls) = (core.random() as u32, core.call_count());
        if let Err(refused) = core.admission.admit(calls, spread, now) {
            let line = format!("call of '{}' refused: {} reached", user.name, refused.limit);
            core.log(Level::Warning, "chan_iax2", &line);
            return self.refuse(now, at, Cause::SWITCH_CONGESTION, b"Too many calls");
        }
        let fields = request.fields();
        let wanted = text(fields.context);
        let own = user.contexts.first().map_or("default", String::as_str);
        let context = if wanted.is_empty() { own } else { &wanted };
        let number = text(fields.called);
        let caller = self.caller_of(&user, &request);
        let is_unsaid = number.is_empty() || number == NUMBER_LATER && user.common.immediate;
        let exten = if is_unsaid { "s" } else { &number };
        let may = wanted.is_empty() || may_go_to(&user, &wanted);
        let reach = match may {
            true => core.reach_of_call(context, exten, caller.number()),
            false => Reach::None,
        };
        // A switch asks for numbers first, and dials one of them then.
        let later = may
            && !user.common.immediate
            && (number == NUMBER_LATER || (number.is_empty() && reach != Reach::Whole));
        if reach != Reach::Whole && !later {
            let line = format!(
                "Call from '{}' ({}) to extension '{}' rejected because extension not found in context '{}'.",
                user.name,
                request.from,
                security::shown(exten),
                security::shown(context)
            );
            core.log(Level::Notice, "chan_iax2", &line);
            return self.refuse(now, at, Cause::NO_ROUTE_DESTINATION, b"No such context/extension");
        }
        let formats: Vec<_> = user.common.formats.iter().collect();
        let video: Vec<_> = self.video_to_offer(core, &user.common, None).iter().collect();
        let accept = Accept {
            formats: &formats,
            video: &video,
            priority: user.common.priority,
            trunk: user.common.trunk,
            transferable: user.common.transfer != Transfer::No,
            lines: user.common.lines,
        };
        let accepted = self.order(at.0, |machine, out| machine.accept(now, at.1, &accept, out));
        let Some(Ok(format)) = accepted else {
            let line = format!("Call of '{}' ({}) rejected: no format in common", user.name, request.from);
            core.log(Level::Notice, "chan_iax2", &line);
            return self.refuse(now, at, Cause::BEARERCAPABILITY_NOTAVAIL, b"Unable to negotiate codec");
        };
        let (context, exten) = (context.to_owned(), exten.to_owned());
        let unnumbered = Unnumbered { user, request, context, format };
        match later {
            true => {
                self.unnumbered.insert(at, unnumbered);
            }
            false => self.ring(core, at, unnumbered, exten),
        }
    }
    fn caller_of(&self, user: &User, request: &Request) -> PartyId {
        caller_of(user, request, self.config.shrink_caller_id)
    }
    /// Makes the channel of a call that is accepted.
    fn ring(&mut self, core: &mut Core, at: At, call: Unnumbered, exten: String) {
        let Unnumbered { user, request, context, format } = call;
        let fields = request.fields();
        let location = Location { context, exten: exten.clone(), priority: 1 };
        let language = match text(fields.language) {
            given if given.is_empty() => user.common.language.clone(),
            given => given,
        };
        let created = core.create(NewChannel {
            base_name: format!("IAX2/{}", user.name),
            tech: self.tech_index,
            state: ChanState::Ring,
            caller: self.caller_of(&user, &request),
            account: user.common.account.clone(),
            location: location.clone(),
            language,
            music_class: music(&user.common.music_class),
            music_suggested: user.common.music_suggested.clone(),
            parking_lot: user.common.parking_lot.clone(),
            formats: user.common.formats,
            handle: self.next_leg,
            ..NewChannel::default()
        });
        let Some(channel) = created else {
            return self.refuse(core.now, at, Cause::SWITCH_CONGESTION, b"");
        };
        let variables = request.variables().map(|(name, value)| (text(Some(name)), text(Some(value))));
        let leg = Leg {
            channel,
            party: Party::User(user.clone()),
            stage: Stage::Ringing,
            place: Some(at),
            remote: Some(request.from),
            formats: user.common.formats,
            video: self.video_to_offer(core, &user.common, None),
            target: Target::default(),
            digit: None,
            variables: variables.collect(),
            held: false,
            told: None,
            joined: None,
        };
        let handle = self.next_leg;
        self.next_leg += 1;
        self.legs.insert(handle, leg);
        self.by_place.insert(at, handle);
        if !self.open_voice(core, handle, format) {
            self.legs.remove(&handle);
            self.unplace(at);
            core.discard(channel);
            return self.refuse(core.now, at, Cause::SWITCH_CONGESTION, b"");
        }
        self.open_video(core, handle);
        if let Some(entry) = core.get_mut(channel) {
            let dnid = text(fields.dnid);
            entry.dialed = Some(if dnid.is_empty() { exten } else { dnid });
            entry.passes_hold = user.common.music_class == PASSTHROUGH;
            if let Some(flags) = user.ama_flags {
                entry.cdr.ama_flags = flags;
            }
            if let Some(ani) = fields.ani.filter(|ani| !ani.is_empty()) {
                entry.ani = Some(text(Some(ani)));
            }
            if let Some(rdnis) = fields.rdnis.filter(|rdnis| !rdnis.is_empty()) {
                entry.redirecting.from = PartyId { number: Some(text(Some(rdnis))), ..PartyId::default() };
            }
            for (name, value) in &user.common.set_var {
                let (inherit, name) = dialplan::Inherit::strip(name);
                entry.vars.set(dialplan::Var::named(name), value, inherit);
            }
        }
        self.started.push((channel, location));
    }
    /// Who calls without a number asks for one.
    pub(super) fn number_asked(&mut self, core: &mut Core, at: At, number: &[u8]) {
        let Some(call) = self.unnumbered.get(&at) else { return };
        let caller = self.caller_of(&call.user, &call.request);
        let status = match core.reach_of_call(&call.context, &text(Some(number)), caller.number()) {
            Reach::Whole => EXISTS,
            Reach::Partial => CAN_EXIST | MORE,
            Reach::None | Reach::Separator(_) => NONE,
        };
        let (now, refresh) = (core.now, self.config.number_refresh);
        let told = (number, status, refresh);
        let _ = self.order(at.0, |machine, out| machine.tell_number(now, at.1, told, out));
    }
    /// Who called without a number dials.
    pub(super) fn dialled(&mut self, core: &mut Core, at: At, number: &[u8]) {
        let Some(call) = self.unnumbered.remove(&at) else { return };
        let exten = text(Some(number));
        let caller = self.caller_of(&call.user, &call.request);
        if core.reach_of_call(&call.context, &exten, caller.number()) != Reach::Whole {
            return self.refuse(core.now, at, Cause::NO_ROUTE_DESTINATION, b"No such context/extension");
        }
        self.ring(core, at, call, exten);
    }
}

/// A number without what only makes it easier to read.
fn shrunk(number: &str) -> String {
    number.chars().filter(|c| !matches!(c, '(' | ')' | ' ' | '.' | '-')).collect()
}

/// The music class that has the other side play its own.
pub(super) const PASSTHROUGH: &str = "passthrough";

/// The class of music that others hear when a party holds them.
pub(super) fn music(class: &str) -> String {
    if class == PASSTHROUGH { String::new() } else { class.to_owned() }
}

/// Who calls.
fn caller_of(user: &User, request: &Request, shrink: bool) -> PartyId {
    let fields = request.fields();
    party_of(&user.common, fields.calling, fields.name, fields.presentation, shrink)
}

/// Who speaks on the other side: what the configuration says of it goes before what it says.
pub(super) fn party_of(
    common: &Common,
    number: Option<&[u8]>,
    name: Option<&[u8]>,
    presentation: Option<u8>,
    shrink: bool,
) -> PartyId {
    let given = |own: &Option<String>, told: Option<&[u8]>| {
        own.clone().or_else(|| told.filter(|told| !told.is_empty()).map(|told| text(Some(told))))
    };
    let mut number = given(&common.caller.number, number);
    if let Some(number) = number.as_mut().filter(|_| shrink) {
        *number = shrunk(number);
    }
    let told = presentation.and_then(|code| Presentation::parse(&code.to_string()));
    let presentation = common.presentation.or(told).unwrap_or_default();
    PartyId {
        number,
        name: given(&common.caller.name, name),
        number_presentation: presentation,
        name_presentation: presentation,
        ..PartyId::default()
    }
}
