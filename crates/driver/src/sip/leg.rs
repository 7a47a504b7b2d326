//! One SIP side of a call: what ties a dialog, a channel and a media stream together.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ::sip::OwnedMessage;
use ::sip::digest::Authenticator;
use ::sip::stack::{DialogId, Flow};
use base::{ChannelId, StreamId};
use call::Core;

use super::config::Endpoint;
use super::session::Media;

/// Where a leg stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Made by `request`, nothing was sent.
    Idle,
    /// We called; no final response yet.
    Calling,
    /// They called; we have not answered.
    Ringing,
    /// Answered.
    Up,
    /// Over on the wire; the channel has still to go.
    Over,
}

/// See the module's page.
pub(crate) struct Leg {
    pub(crate) channel: ChannelId,
    pub(crate) endpoint: Rc<Endpoint>,
    pub(crate) stage: Stage,
    pub(crate) dialog: Option<DialogId>,
    /// Where signalling goes to or came from.
    pub(crate) flow: Flow,
    /// Request-URI of our INVITE.
    pub(crate) target: String,
    /// Contact we gave.
    pub(crate) contact: String,
    pub(crate) media: Media,
    pub(crate) stream: Option<StreamId>,
    /// The message that began the call, for header functions: their INVITE, or the 200 to ours.
    pub(crate) invite: Option<OwnedMessage>,
    /// Routes of our INVITE, first hop first.
    pub(crate) routes: Vec<String>,
    /// The rates that responses to an INVITE which is not answered tell.
    pub(crate) rates: Option<String>,
    /// What the call has cost in the end is kept for its last message.
    pub(crate) knows_fee: bool,
    /// Programs carry out the transfers that its phone asks for.
    pub(crate) transfers_told: bool,
    /// Call-ID of our first INVITE, until that is sent.
    pub(crate) call_id: Option<String>,
    /// Servers that our INVITE goes to when the first one fails, until it is sent.
    pub(crate) next: Vec<Flow>,
    /// The flow of a phone that it takes.
    pub(crate) bound: Option<super::flows::Bound>,
    /// Headers the dialplan added to our INVITE, or to our answers.
    pub(crate) headers: Vec<(String, String)>,
    /// Parameters the dialplan added to From of our INVITE.
    pub(crate) from_params: Vec<super::ask::FromParam>,
    pub(crate) authenticator: Authenticator,
    /// What was agreed with the server of our call (RFC 3329).
    pub(crate) agreement: ::sip::agreement::Agreement,
    /// How often a challenge was answered; bounds a peer that challenges for ever.
    pub(crate) challenges: u8,
    /// To tag of the branch whose description answered our offer last, while the call is not answered.
    pub(crate) described_by: Option<Box<[u8]>>,
    /// The last status of our INVITE.
    pub(crate) status: u16,
    /// A provisional response other than 100 went out.
    pub(crate) has_rung: bool,
    /// The identity that our responses have shown last.
    pub(crate) shown: Vec<(String, String)>,
    /// What a 181 has said of where the call was sent on to.
    pub(crate) sent_on: Vec<(String, String)>,
    /// The final response that was chosen for the end of the call before it is answered.
    pub(crate) refusal: Option<u16>,
    /// Whether 180 or 183 went out, so that the same is not said twice.
    pub(crate) indicated: u16,
    /// The peer holds us.
    pub(crate) held: bool,
    /// We play ringing into early media.
    pub(crate) ringing_tone: bool,
    /// Whom it calls, while the way there is not known because the address of a name is awaited.
    pub(crate) waits_for: Option<super::outbound::Target>,
    /// Who refreshes the session, and when.
    pub(crate) timer: ::sip::session::SessionTimer,
    /// The peer takes UPDATE.
    pub(crate) peer_updates: bool,
    /// Our provisional responses are acknowledged.
    pub(crate) reliable: bool,
    /// Hops that the call may still take, when the one that it is made for says so.
    pub(crate) hops: Option<u8>,
    /// How often the peer sent it elsewhere.
    pub(crate) redirects: u8,
    /// Whom a 3xx has named and nobody has called yet, best first.
    pub(crate) elsewhere: Vec<String>,
    /// It goes to a host that the configuration does not name: only logins for a realm of their own are shown there.
    pub(crate) strayed: bool,
    /// The other party as the peer was last told.
    pub(crate) told: Option<call::PartyId>,
    /// The call goes on when the ACK brings the answer to our offer.
    pub(crate) awaits_answer: bool,
    /// The fax stream that it carries instead of audio.
    pub(crate) fax: Option<::sip::sdp::FaxStream>,
    /// What is offered next is audio all the same.
    pub(crate) leaves_fax: bool,
    /// An offer of audio instead of fax is out.
    pub(crate) asked_back: bool,
    /// Our answer to the offer that began the call has left.
    pub(crate) described: bool,
    /// Formats of the other party, while our answer can be made to suit them.
    pub(crate) suits: base::FormatSet,
    /// Whose video it is offered or answered: the one that it is called for, or the one that was called for it.
    pub(crate) passes_with: Option<ChannelId>,
    /// For whose video its peer was offered some last, and how many streams that had.
    pub(crate) passes_asked: Option<(ChannelId, usize)>,
    /// How often its streams have been turned after those of the other party, since its peer has offered anything.
    pub(crate) turns: u8,
    /// The other party holds it, and its peer is to be told (`moh_passthrough`).
    pub(crate) to_be_held: bool,
    /// Where its media goes, and how that changes.
    pub(crate) moving: super::direct::Moving,
    /// Where the last agreement had its media.
    pub(crate) agreed_at: Option<core::net::SocketAddr>,
    /// All formats that its peer has agreed to.
    pub(crate) taken: base::FormatSet,
    /// The format that it was asked to take for the sake of the other party.
    pub(crate) adapted: Option<base::FormatId>,
    /// Its peer has chosen its format during the call, later than the other party.
    pub(crate) chose: bool,
    /// Who its caller is proved to be.
    pub(crate) identity: super::stir::Identity,
}

impl Leg {
    /// A leg that has sent nothing yet.
    pub(crate) fn new(channel: ChannelId, endpoint: Rc<Endpoint>, flow: Flow, media: Media) -> Self {
        let timer = ::sip::session::SessionTimer::new(endpoint.timers);
        Self {
            channel,
            endpoint,
            stage: Stage::Idle,
            dialog: None,
            flow,
            target: String::new(),
            contact: String::new(),
            media,
            stream: None,
            invite: None,
            headers: Vec::new(),
            from_params: Vec::new(),
            authenticator: Authenticator::new(),
            agreement: Default::default(),
            challenges: 0,
            described_by: None,
            status: 0,
            has_rung: false,
            shown: Vec::new(),
            sent_on: Vec::new(),
            refusal: None,
            indicated: 0,
            held: false,
            timer,
            peer_updates: false,
            reliable: false,
            hops: None,
            redirects: 0,
            elsewhere: Vec::new(),
            strayed: false,
            told: None,
            awaits_answer: false,
            described: false,
            fax: None,
            leaves_fax: false,
            asked_back: false,
            suits: base::FormatSet::EMPTY,
            passes_with: None,
            passes_asked: None,
            turns: 0,
            to_be_held: false,
            moving: Default::default(),
            agreed_at: None,
            taken: base::FormatSet::EMPTY,
            adapted: None,
            chose: false,
            identity: Default::default(),
            waits_for: None,
            ringing_tone: false,
            routes: Vec::new(),
            call_id: None,
            transfers_told: false,
            rates: None,
            knows_fee: false,
            next: Vec::new(),
            bound: None,
        }
    }
    /// Whether its peer knows what was agreed on: what follows keeps to that.
    pub(crate) fn is_settled(&self) -> bool {
        self.described || !self.target.is_empty() || self.stage == Stage::Up
    }
    /// Whether it may carry fax, or why not.
    pub(crate) fn may_fax(&self) -> Result<(), &'static str> {
        let must_seal = self.endpoint.encryption.is_some_and(|encryption| !encryption.optimistic);
        let is_sealed = self.media.agreed().is_some_and(|agreed| agreed.keys.is_some());
        match () {
            () if self.endpoint.fax.is_none() => Err("its endpoint has no t38_udptl"),
            () if must_seal || is_sealed => Err("its media is SRTP, and UDPTL is not encrypted"),
            () if self.stage != Stage::Up || self.dialog.is_none() => Err("the call is not answered"),
            () => Ok(()),
        }
    }
    /// Whether the description in a response to our INVITE counts, the first of its branch or of the call. A branch that
    /// answers for good always does: the call is with it.
    pub(crate) fn takes_answer(&self, tag: &[u8], is_final: bool) -> bool {
        match &self.described_by {
            None => true,
            // RFC 3261 §13.2.1: what follows the first answer is ignored.
            Some(same) if **same == *tag => self.endpoint.take_every_answer,
            Some(_) => is_final || self.endpoint.follow_fork,
        }
    }
    /// Seconds of silence after which the call ends, as it stands.
    pub(crate) fn silence_secs(&self) -> u32 {
        if self.held { self.endpoint.rtp_timeout_hold } else { self.endpoint.rtp_timeout }
    }
}

/// Most legs: one a channel.
const LEGS_MAX: usize = 1 << 18;

/// Slab of legs with their indices.
#[derive(Default)]
pub(crate) struct Legs {
    slots: Vec<(u32, Option<Box<Leg>>)>,
    free: Vec<u32>,
    by_dialog: HashMap<DialogId, u64>,
    /// Slots of each endpoint's legs: the state of a device is asked for at every step of its calls.
    by_endpoint: HashMap<Rc<str>, BTreeSet<u32>>,
}

fn handle(slot: u32, generation: u32) -> u64 {
    (u64::from(generation) << 32) | u64::from(slot)
}

impl Legs {
    /// Whether another leg can be kept.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < LEGS_MAX
    }
    /// Keeps a leg; its handle goes into the channel. `None` when full.
    pub(crate) fn insert(&mut self, leg: Leg) -> Option<u64> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < LEGS_MAX => {
                self.slots.push((0, None));
                u32::try_from(self.slots.len() - 1).ok()?
            }
            None => return None,
        };
        let entry = self.slots.get_mut(slot as usize)?;
        let id = handle(slot, entry.0);
        if let Some(dialog) = leg.dialog {
            self.by_dialog.insert(dialog, id);
        }
        self.by_endpoint.entry(leg.endpoint.name.clone()).or_default().insert(slot);
        entry.1 = Some(Box::new(leg));
        Some(id)
    }
    pub(crate) fn get(&self, id: u64) -> Option<&Leg> {
        let entry = self.slots.get((id & 0xffff_ffff) as usize)?;
        if u64::from(entry.0) == id >> 32 { entry.1.as_deref() } else { None }
    }
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Leg> {
        let entry = self.slots.get_mut((id & 0xffff_ffff) as usize)?;
        if u64::from(entry.0) == id >> 32 { entry.1.as_deref_mut() } else { None }
    }
    pub(crate) fn by_dialog(&self, dialog: DialogId) -> Option<u64> {
        self.by_dialog.get(&dialog).copied()
    }
    /// Ties a dialog to the leg.
    pub(crate) fn bind(&mut self, id: u64, dialog: DialogId) {
        if let Some(leg) = self.get_mut(id) {
            leg.dialog = Some(dialog);
            self.by_dialog.insert(dialog, id);
        }
    }
    /// The dialog is gone; the leg stays until its channel goes.
    pub(crate) fn unbind(&mut self, dialog: DialogId) {
        if let Some(id) = self.by_dialog.remove(&dialog)
            && let Some(leg) = self.get_mut(id)
        {
            leg.dialog = None;
            leg.stage = Stage::Over;
        }
    }
    pub(crate) fn remove(&mut self, id: u64) -> Option<Box<Leg>> {
        let slot = u32::try_from(id & 0xffff_ffff).ok()?;
        let entry = self.slots.get_mut(slot as usize).filter(|entry| u64::from(entry.0) == id >> 32)?;
        let leg = entry.1.take()?;
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(slot);
        // A dialog that still says goodbye keeps no leg.
        if let Some(dialog) = leg.dialog {
            self.by_dialog.remove(&dialog);
        }
        if let Some(slots) = self.by_endpoint.get_mut(&leg.endpoint.name) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.by_endpoint.remove(&leg.endpoint.name);
            }
        }
        Some(leg)
    }
    /// Handles of all legs.
    pub(crate) fn handles(&self) -> impl Iterator<Item = u64> {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, (_, leg))| leg.is_some())
            .map(|(slot, (generation, _))| handle(u32::try_from(slot).unwrap_or(u32::MAX), *generation))
    }
    /// The legs of an endpoint, in the order of their slots.
    pub(crate) fn of_endpoint(&self, name: &str) -> impl Iterator<Item = &Leg> {
        let slots = self.by_endpoint.get(name).into_iter().flatten();
        slots.filter_map(|slot| self.slots.get(*slot as usize)?.1.as_deref())
    }
    /// Whether an endpoint has as many calls as it may have, beside those that belong to this one: several of its phones that
    /// are rung are one call.
    pub(crate) fn is_at_limit(&self, core: &Core, endpoint: &Endpoint, of: Option<ChannelId>) -> bool {
        if endpoint.call_limit == 0 {
            return false;
        }
        let call_of = |id: ChannelId| core.get(id).map(|channel| &*channel.linkedid);
        let own = of.and_then(call_of);
        let calls = self.of_endpoint(&endpoint.name).filter_map(|leg| call_of(leg.channel));
        let calls: std::collections::BTreeSet<&str> = calls.filter(|call| Some(*call) != own).collect();
        calls.len() >= endpoint.call_limit as usize
    }
}
