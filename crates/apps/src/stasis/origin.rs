//! Channels that programs make: called at once, or made first and called later.

use core::time::Duration;
use std::rc::Rc;

use base::{ChannelId, FormatSet};
use call::stasis::{ARGS_MAX, ID_BYTES_MAX, Order, Placing, StasisError};
use call::{ChanState, Core, Leg, PartyId, Shard};
use dialplan::Rights;

use crate::originate::{self, Originate, Then};
use crate::{Call, pbx};

/// Most variables of one order.
const VARIABLES_MAX: usize = 256;
/// Longest name of an endpoint, bytes.
const ENDPOINT_BYTES_MAX: usize = 512;
/// How long a call rings when nothing is said.
const RINGS: Duration = Duration::from_secs(30);

/// A channel that is to be made.
#[derive(Debug, Clone, Default)]
pub struct Create {
    /// `PJSIP/6001`.
    pub endpoint: String,
    /// UNIQUEID of the new channel; `None` makes one.
    pub id: Option<String>,
    /// UNIQUEID of the second one, where the technology makes two.
    pub other_id: Option<String>,
    /// UNIQUEID of the channel on whose behalf it is.
    pub originator: Option<String>,
    /// Formats, preferred first; empty: the originator's, or the endpoint's.
    pub formats: FormatSet,
    /// Variables and functions of the new channel.
    pub variables: Vec<(String, String)>,
    /// Names of those that are told with it.
    pub told: Vec<String>,
}

/// A channel that is to be called.
#[derive(Debug, Clone)]
pub struct Start {
    /// The channel.
    pub create: Create,
    /// What it does when it has answered.
    pub then: Then,
    /// Who calls.
    pub caller: PartyId,
    /// How long it rings; `None`: 30 seconds.
    pub timeout: Option<Duration>,
}

fn wanted(shard: &Rc<Shard>, create: Create, rights: Rights) -> Result<Originate, StasisError> {
    let core = shard.core.borrow();
    let Create { endpoint, id, other_id, originator, formats, variables, told: _ } = create;
    let parts = endpoint.split_once('/').filter(|(tech, resource)| !tech.is_empty() && !resource.is_empty());
    if parts.is_none() || endpoint.len() > ENDPOINT_BYTES_MAX || endpoint.chars().any(char::is_control) {
        return Err(StasisError::BadRequest("Invalid endpoint specified".into()));
    }
    for id in [&id, &other_id].into_iter().flatten() {
        check_id(&core, id)?;
    }
    if id.is_some() && id == other_id {
        return Err(StasisError::BadRequest("both halves of a channel want an id of their own".into()));
    }
    if variables.len() > VARIABLES_MAX {
        return Err(StasisError::BadRequest("too many variables".into()));
    }
    let functions = core.program.functions();
    let is_refused = |name: &str| name.ends_with(')') && !functions.may_write(rights, name);
    if variables.iter().any(|(name, _)| is_refused(name)) {
        return Err(StasisError::Unprocessable("Permission denied: a function reaches beyond calls".into()));
    }
    let requestor = originator.filter(|id| !id.is_empty()).map(|id| core.stasis_channel(&id)).transpose();
    let requestor = requestor.map_err(|_| StasisError::BadRequest("Originating channel not found".into()))?;
    let of_requestor = requestor.and_then(|id| core.get(id)).map(|channel| channel.formats);
    let formats = if formats == FormatSet::EMPTY { of_requestor.unwrap_or(formats) } else { formats };
    Ok(Originate {
        target: endpoint,
        uniqueid: id,
        other_uniqueid: other_id,
        formats,
        variables,
        rights,
        requestor,
        tells_failed: false,
        ..Originate::default()
    })
}

fn made(shard: &Rc<Shard>, wanted: &Originate, is_dialled: bool) -> Result<Leg, StasisError> {
    originate::make(shard, wanted, is_dialled).map_err(|_| StasisError::Internal("Allocation failed".into()))
}

/// Whether a channel may have this id.
pub(super) fn check_id(core: &Core, id: &str) -> Result<(), StasisError> {
    if id.is_empty() || id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
        return Err(StasisError::BadRequest("Uniqueid length exceeds maximum of 128".into()));
    }
    if core.by_name(id).is_some() {
        return Err(StasisError::Conflict("Channel with given unique ID already exists".into()));
    }
    Ok(())
}

pub(super) fn check_app(app: &str, args: &[String]) -> Result<(), StasisError> {
    let is_bad = app.is_empty() || app.len() > call::stasis::APP_NAME_BYTES_MAX || args.len() > ARGS_MAX;
    if is_bad { Err(StasisError::BadRequest("app is missing or too long".into())) } else { Ok(()) }
}

/// Calls somebody, who goes on at an extension or in a program's hands once it has answered; the channel. `rights` are those
/// of the variables.
///
/// Errors: an endpoint, an id or an originator that cannot be (`BadRequest`), an id that is taken (`Conflict`), a function that
/// may not be written (`Unprocessable`), nobody can be called there, or too much is going on (`Internal`).
pub fn originate(shard: &Rc<Shard>, start: Start, rights: Rights) -> Result<ChannelId, StasisError> {
    let Start { create, then, caller, timeout } = start;
    let app = match &then {
        Then::Stasis { app, args } => {
            check_app(app, args)?;
            Some(app.clone())
        }
        Then::Exten(_) => None,
        // Their arguments would be expanded, and they are not programs'.
        Then::App { .. } => return Err(StasisError::BadRequest("app is a program's name".into())),
    };
    let timeout = timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(RINGS);
    let told = create.told.clone();
    let wanted = Originate { then, caller, timeout, ..wanted(shard, create, rights)? };
    let leg = made(shard, &wanted, true)?;
    let id = leg.chan().id();
    tell_all_with(shard, id, &told);
    follow_both(shard, id, app.as_deref());
    match originate::originate_made(shard, leg, wanted) {
        true => Ok(id),
        false => Err(StasisError::full()),
    }
}

/// Makes a channel in a program's hands that is called later; the channel.
///
/// Errors: those of [`originate()`], but for a program that is not there: the channel is made, and nobody takes it.
pub fn create(
    shard: &Rc<Shard>,
    create: Create,
    (app, args): (&str, Vec<String>),
    rights: Rights,
) -> Result<ChannelId, StasisError> {
    check_app(app, &args)?;
    let told = create.told.clone();
    let leg = made(shard, &wanted(shard, create, rights)?, false)?;
    let (id, app) = (leg.chan().id(), app.to_owned());
    tell_all_with(shard, id, &told);
    follow_both(shard, id, Some(&app));
    let story = async move {
        let call = Call::new(leg.chan().clone());
        super::show(&call, &app, &args);
        // Where it goes on says where the program has sent it.
        let _ = super::visit(&call, &app, args).await;
        pbx::let_go_of_app(leg);
    };
    if shard.spawn(Some(id), story) { Ok(id) } else { Err(StasisError::full()) }
}

/// Variables of a channel that is being made are told with it.
fn tell_all_with(shard: &Rc<Shard>, id: ChannelId, told: &[String]) {
    let core = &mut *shard.core.borrow_mut();
    told.iter().for_each(|name| super::channels::tell_with(core, id, name, Some(true)));
}

/// The same of a channel whose technology has made two, of which each is the program's.
pub(crate) fn follow_both(shard: &Rc<Shard>, id: ChannelId, app: Option<&str>) {
    follow(shard, id, app);
    if let Some(other) = shard.with_tech(id, |tech, _| tech.other_half(id)).flatten() {
        follow(shard, other, app);
    }
}

/// A program hears of the channel that it has made until that is gone.
pub(super) fn follow(shard: &Rc<Shard>, id: ChannelId, app: Option<&str>) {
    let core = &mut *shard.core.borrow_mut();
    let uniqueid = core.get(id).map(|channel| channel.uniqueid.clone());
    if let (Some(app), Some(uniqueid)) = (app, uniqueid) {
        core.stasis_follow(app, &uniqueid);
    }
}

/// Calls a channel that was made by [`create`]. `caller` is the id of the channel that is shown as who calls; `timeout` how
/// long it rings, zero: as long as it takes.
///
/// Errors: no such channel (`NotFound`), no program has it, or it was called already (`Conflict`).
pub fn dial(
    shard: &Rc<Shard>,
    channel: &str,
    caller: Option<&str>,
    timeout: Duration,
) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    let caller = caller.and_then(|caller| core.stasis_channel(caller).ok());
    let is_fresh = core.get(id).is_some_and(|channel| channel.outgoing && channel.state == ChanState::Down);
    if !is_fresh {
        return Err(StasisError::Conflict("Channel is in an invalid state for dialing".into()));
    }
    let timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    core.stasis_order(id, Order::Dial(Placing { caller, timeout }))
}
