//! Calls that nobody called in for: the verb behind the manager's `Originate`, `channel originate` and the application.

use core::time::Duration;
use std::rc::Rc;

use base::{Cause, ChannelId, FormatSet};
use call::{Chan, ChanEvent, Leg, Level, Location, NewChannel, Notice, PartyId, Request, Shard};
use dialplan::Rights;

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run, pbx};

/// How long a call rings when nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Option letters of the application.
pub(crate) const OPTIONS: &str = "acnv";

/// What the answered channel does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// Runs the dialplan from here.
    Exten(Location),
    /// Runs one application and hangs up.
    App {
        /// Application.
        name: String,
        /// Arguments.
        data: String,
    },
    /// Is given to a program of ARI, and hangs up.
    Stasis {
        /// The program.
        app: String,
        /// What it is told beside.
        args: Vec<String>,
    },
}

/// A call to be placed.
#[derive(Debug, Clone)]
pub struct Originate {
    /// `PJSIP/6001`.
    pub target: String,
    /// What follows the answer.
    pub then: Then,
    /// Caller id that the called party sees.
    pub caller: PartyId,
    /// How long it rings.
    pub timeout: Duration,
    /// Variables of the new channel.
    pub variables: Vec<(String, String)>,
    /// The same as the site has written them, whoever asks; they are set first.
    pub own_variables: Vec<(String, String)>,
    /// What the variables may write, and the arguments of an application touch.
    pub rights: Rights,
    /// Account code.
    pub account: String,
    /// Formats, preferred first; empty: the endpoint's.
    pub formats: FormatSet,
    /// Go on at the first early media, without waiting for the answer.
    pub early_media: bool,
    /// UNIQUEID of the new channel, when whoever asks gives it one.
    pub uniqueid: Option<String>,
    /// UNIQUEID of the second channel, when the technology makes two.
    pub other_uniqueid: Option<String>,
    /// Routine that runs on the new channel before it is called: `context,exten,priority(arguments)`.
    pub routine: Option<String>,
    /// When nobody has answered, extension `failed` of the context learns why.
    pub tells_failed: bool,
    /// ActionID for [`Notice::OriginateResponse`]; `None` tells nobody.
    pub action_id: Option<String>,
    /// The channel on whose behalf it is.
    pub requestor: Option<ChannelId>,
}

impl Default for Originate {
    fn default() -> Self {
        Self {
            target: String::new(),
            then: Then::Exten(Location::default()),
            caller: PartyId::default(),
            timeout: DEFAULT_TIMEOUT,
            variables: Vec::new(),
            own_variables: Vec::new(),
            rights: Rights::ALL,
            account: String::new(),
            formats: FormatSet::EMPTY,
            early_media: false,
            uniqueid: None,
            other_uniqueid: None,
            routine: None,
            tells_failed: true,
            action_id: None,
            requestor: None,
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// It was answered and goes on.
    Answered,
    /// It was refused, with this cause.
    Refused(Cause),
    /// Nobody answered in time.
    TimedOut,
}

impl Placed {
    /// The manager's reason code, as the field gives it: 4 answered, 3 it rang for too long, 0 anything else.
    pub fn reason(self) -> u8 {
        match self {
            Self::Answered => 4,
            Self::TimedOut => 3,
            Self::Refused(_) => 0,
        }
    }
    /// Why the leg ends that was not answered.
    fn end(self) -> Cause {
        match self {
            Self::Answered => Cause::NORMAL_CLEARING,
            Self::TimedOut => Cause::NO_ANSWER,
            Self::Refused(cause) => cause,
        }
    }
}

/// Places a call in a story of its own; `done` is told how it came out. `false`: there is no room for another story.
pub fn originate(shard: &Rc<Shard>, wanted: Originate, done: impl FnOnce(Placed) + 'static) -> bool {
    let own = shard.clone();
    shard.spawn(None, async move {
        let (placed, leg) = place(&own, &wanted).await;
        tell(&own, &wanted, leg.as_ref(), placed);
        done(placed);
        if placed != Placed::Answered {
            if let Some(leg) = leg {
                leg.end(placed.end());
            }
            return tell_failed(&own, &wanted, placed);
        }
        let Some(leg) = leg else { return };
        go_on(&own, leg, &wanted).await;
    })
}

/// What the dialplan's extension `failed` runs on: a channel of no technology.
const FAILED: &str = "OutgoingSpoolFailed";

/// Nobody has answered: the dialplan is told so, where it wants to know, on a channel of its own.
fn tell_failed(shard: &Rc<Shard>, wanted: &Originate, placed: Placed) {
    let Then::Exten(Location { context, .. }) = &wanted.then else { return };
    let nobody = Call::new(Chan::new(shard.clone(), ChannelId::new(u32::MAX, u32::MAX)));
    if !wanted.tells_failed || !nobody.exists(context, "failed") {
        return;
    }
    let location = Location { context: context.clone(), exten: "failed".to_owned(), priority: 1 };
    let made = shard.core.borrow_mut().create(NewChannel {
        base_name: FAILED.to_owned(),
        exact_name: Some(FAILED.to_owned()),
        // No technology has it.
        tech: usize::MAX,
        account: wanted.account.clone(),
        location: location.clone(),
        ..NewChannel::default()
    });
    let Some(id) = made else { return };
    let call = Call::new(Chan::new(shard.clone(), id)).with_rights(wanted.rights);
    for (name, value) in wanted.own_variables.iter().chain(&wanted.variables) {
        call.assign(name, value);
    }
    call.set("REASON", &placed.reason().to_string());
    pbx::start(shard, id, location);
}

/// The same of a channel that has been made.
pub(crate) fn originate_made(shard: &Rc<Shard>, leg: Leg, wanted: Originate) -> bool {
    let (own, id) = (shard.clone(), leg.chan().id());
    shard.spawn(Some(id), async move {
        let (placed, leg) = place_on(&own, leg, &wanted).await;
        tell(&own, &wanted, Some(&leg), placed);
        if placed != Placed::Answered {
            return leg.end(placed.end());
        }
        go_on(&own, leg, &wanted).await;
    })
}

async fn place(shard: &Rc<Shard>, wanted: &Originate) -> (Placed, Option<Leg>) {
    if let Some((tech, resource)) = wanted.target.split_once('/') {
        shard.look_up(tech, resource).await;
    }
    match make(shard, wanted, true) {
        Ok(leg) => {
            let (placed, leg) = place_on(shard, leg, wanted).await;
            (placed, Some(leg))
        }
        Err(cause) => (Placed::Refused(cause), None),
    }
}

/// What watchers see on a channel that was called for nobody.
const APP_DIAL: &str = "AppDial2";

/// Makes the channel, and calls nobody yet; `is_dialled`: it is called at once. What a database would have to be asked for first
/// is not known here.
pub(crate) fn make(shard: &Rc<Shard>, wanted: &Originate, is_dialled: bool) -> Result<Leg, Cause> {
    let (tech, resource) = wanted.target.split_once('/').ok_or(Cause::CHAN_NOT_IMPLEMENTED)?;
    let is_function = |(name, _): &&(String, String)| name.ends_with(')');
    let all = || wanted.own_variables.iter().chain(&wanted.variables);
    let variables: Vec<_> = all().filter(|pair| !is_function(pair)).cloned().collect();
    let request = Request {
        resource: resource.to_owned(),
        requestor: wanted.requestor,
        caller: Some(wanted.caller.clone()),
        is_told_later: false,
        formats: wanted.formats,
        variables,
        uniqueid: wanted.uniqueid.clone(),
        other_uniqueid: wanted.other_uniqueid.clone(),
    };
    let leg = Leg::new(shard.clone(), shard.request(tech, &request)?);
    let id = leg.chan().id();
    let _ = leg.chan().with(|c| {
        if wanted.caller != PartyId::default() {
            // The technology knows it already; watchers hear of it when the channel has been told of.
            c.connected = PartyId::default();
        }
    });
    if is_dialled {
        leg.chan().core(|core| core.show_outgoing(id, APP_DIAL));
    }
    let call = Call::new(leg.chan().clone());
    // The technology has set them while it made the channel; that is told once there is a channel to tell of.
    for (name, value) in &request.variables {
        call.tell_var(name, value);
    }
    for (function, value) in wanted.own_variables.iter().filter(is_function) {
        call.assign(function, value);
    }
    let call = call.with_rights(wanted.rights);
    for (function, value) in wanted.variables.iter().filter(is_function) {
        call.assign(function, value);
    }
    identify(&leg, wanted);
    Ok(leg)
}

/// Account code and caller id that were asked for are those of the channel in its own dialplan, and watchers hear of each.
fn identify(leg: &Leg, wanted: &Originate) {
    let id = leg.chan().id();
    if !wanted.account.is_empty() {
        let old = leg.chan().with(|c| {
            c.peer_account.clone_from(&wanted.account);
            std::mem::replace(&mut c.account, wanted.account.clone())
        });
        let old = old.unwrap_or_default();
        leg.chan().core(|core| core.notice_of(id, |channel| Notice::NewAccountCode { channel, old }));
    }
    if wanted.caller != PartyId::default() {
        let _ = leg.chan().with(|c| {
            c.caller = wanted.caller.clone();
            c.ani.clone_from(&wanted.caller.number);
        });
        leg.chan().core(|core| core.notice_of(id, Notice::NewCallerId));
        let _ = leg.chan().with(|c| c.connected = wanted.caller.clone());
        leg.chan().core(|core| core.notice_of(id, Notice::NewConnectedLine));
    }
}

/// Times that a call may be sent elsewhere; ends loops of phones that forward to each other.
const FORWARDS_MAX: u32 = 8;

/// Calls a leg, and whoever it sends the call to in its place; the leg that it came to.
async fn place_on(shard: &Rc<Shard>, leg: Leg, wanted: &Originate) -> (Placed, Leg) {
    let (mut leg, mut wanted, mut forwards) = (leg, wanted.clone(), 0);
    loop {
        let target = match place_leg(&leg, &wanted).await {
            Rung::Came(placed) => return (placed, leg),
            Rung::Forwarded(target) => target,
        };
        forwards += 1;
        if forwards > FORWARDS_MAX {
            leg.chan().log(Level::Warning, "originate", "legs of one call forward each other without end");
            return (Placed::Refused(Cause::NORMAL_TEMPORARY_FAILURE), leg);
        }
        wanted.target = target;
        (wanted.uniqueid, wanted.other_uniqueid, wanted.routine) = (None, None, None);
        match forward(shard, &leg, &wanted) {
            Some(next) => std::mem::replace(&mut leg, next).end(Cause::REDIRECTED),
            None => return (Placed::Refused(Cause::REDIRECTED), leg),
        }
    }
}

/// The leg that takes the place of one that sent the call elsewhere; watchers hear of both.
fn forward(shard: &Rc<Shard>, leg: &Leg, wanted: &Originate) -> Option<Leg> {
    let id = leg.chan().id();
    let next = make(shard, wanted, true).ok();
    let next_id = next.as_ref().map(|next| next.chan().id());
    let (mut redirecting, own) =
        leg.chan().with(|c| (c.redirecting.clone(), c.caller.clone())).unwrap_or_default();
    if redirecting == call::Redirecting::default() {
        let number = wanted.target.split_once('/').map_or("", |(_, resource)| resource);
        let number = number.split_once('@').map_or(number, |(number, _)| number).to_owned();
        redirecting = call::Redirecting {
            orig: own.clone(),
            from: own,
            to: PartyId { number: Some(number), ..PartyId::default() },
            reason: "unknown".to_owned(),
            count: 1,
        };
    }
    if let Some(next) = &next {
        let _ = next.chan().with(|c| c.redirecting = redirecting);
        if let Then::Stasis { app, .. } = &wanted.then {
            crate::stasis::follow_both(shard, next.chan().id(), Some(app));
        }
    }
    leg.chan().core(|core| {
        core.notice(|core| {
            Some(Notice::DialEnd {
                caller: None,
                dest: core.snapshot_now(id)?,
                status: "CANCEL",
                forward: Some(wanted.target.clone()),
                forwarded: next_id.and_then(|next| core.snapshot(next)).map(Box::new),
                dial_string: String::new(),
            })
        });
    });
    next
}

/// What became of a leg that was called.
enum Rung {
    /// That.
    Came(Placed),
    /// It has sent the call elsewhere.
    Forwarded(String),
}

async fn place_leg(leg: &Leg, wanted: &Originate) -> Rung {
    let id = leg.chan().id();
    let call = Call::new(leg.chan().clone());
    if let Some(routine) = &wanted.routine
        && call.gosub(routine).await != Ok(Flow::Continue)
    {
        return Rung::Came(Placed::Refused(Cause::NORMAL_CLEARING));
    }
    let dial_string: String = wanted.target.split_once('/').map_or("", |(_, resource)| resource).to_owned();
    leg.chan().core(|core| {
        core.notice(|core| {
            let (dest, dial_string) = (core.snapshot(id)?, dial_string.clone());
            Some(Notice::DialBegin { caller: None, dest, dial_string })
        });
    });
    let placed = match ring(leg, wanted.timeout, wanted.early_media, &dial_string).await {
        Rung::Came(placed) => placed,
        forwarded => return forwarded,
    };
    let status = match placed {
        Placed::Answered => "ANSWER",
        // The field tells of no end of what has rung for too long.
        Placed::TimedOut => return Rung::Came(placed),
        Placed::Refused(cause) => crate::dial::status_of(cause),
    };
    leg.chan().core(|core| {
        core.notice(|core| {
            let dest = core.snapshot(id)?;
            Some(Notice::DialEnd { caller: None, dest, status, forward: None, forwarded: None, dial_string })
        });
    });
    Rung::Came(placed)
}

async fn ring(leg: &Leg, timeout: Duration, early_media: bool, dial_string: &str) -> Rung {
    let came = Rung::Came;
    let chan = leg.chan();
    match chan.shard().with_tech(chan.id(), |tech, core| tech.call(core, chan.id())) {
        Some(Ok(())) => {}
        Some(Err(cause)) => return came(Placed::Refused(cause)),
        None => return came(Placed::Refused(Cause::NORMAL_TEMPORARY_FAILURE)),
    }
    let deadline = chan.now() + timeout;
    let state = |status| {
        chan.core(|core| {
            core.notice(|core| {
                let (dest, dial_string) = (core.snapshot(chan.id())?, dial_string.to_owned());
                Some(Notice::DialState { caller: None, dest, status, dial_string })
            });
        });
    };
    loop {
        match chan.event(Some(deadline)).await {
            Ok(Some(ChanEvent::Answered)) => return came(Placed::Answered),
            Ok(Some(ChanEvent::Progress)) => {
                state("PROGRESS");
                if early_media {
                    return came(Placed::Answered);
                }
            }
            Ok(Some(ChanEvent::Forwarded(target))) => return Rung::Forwarded(target),
            Ok(Some(ChanEvent::Ringing)) => state("RINGING"),
            Ok(Some(ChanEvent::Proceeding)) => state("PROCEEDING"),
            Ok(Some(_)) => {}
            Ok(None) => return came(Placed::TimedOut),
            Err(_) => {
                let cause = chan.with(|c| c.hangup).ok().flatten();
                return came(Placed::Refused(cause.unwrap_or(Cause::NORMAL_CLEARING)));
            }
        }
    }
}

fn tell(shard: &Rc<Shard>, wanted: &Originate, leg: Option<&Leg>, placed: Placed) {
    let Some(action_id) = wanted.action_id.clone() else { return };
    let (target, reason) = (wanted.target.clone(), placed.reason());
    let (location, application) = match &wanted.then {
        Then::Exten(location) => ((location.context.clone(), location.exten.clone()), None),
        Then::App { name, data } => (Default::default(), Some((name.clone(), data.clone()))),
        Then::Stasis { app, .. } => (Default::default(), Some(("Stasis".to_owned(), app.clone()))),
    };
    let success = placed == Placed::Answered;
    let id = leg.filter(|_| success).map(|leg| leg.chan().id());
    shard.core.borrow_mut().notice(|core| {
        let channel = id.and_then(|id| core.snapshot(id));
        let caller = wanted.caller.clone();
        Some(Notice::OriginateResponse {
            action_id,
            channel,
            target,
            location,
            application,
            caller,
            success,
            reason,
        })
    });
}

async fn go_on(shard: &Rc<Shard>, leg: Leg, wanted: &Originate) {
    match &wanted.then {
        Then::Exten(location) => {
            pbx::start(shard, leg.keep().id(), location.clone());
        }
        Then::App { name, data } => {
            let id = leg.chan().id();
            shard.core.borrow_mut().enter_pbx(id);
            let call = Call::new(leg.chan().clone()).with_rights(wanted.rights.of_application());
            let data = call.expand(data);
            if call.run_app(name, &data).await.is_none() {
                call.log(Level::Error, &format!("originated call cannot run '{name}': no such application"));
            }
            // Somebody may have sent it elsewhere while the application ran.
            pbx::let_go_of_app(leg);
        }
        Then::Stasis { app, args } => {
            shard.core.borrow_mut().enter_pbx(leg.chan().id());
            // Where it goes on says where the program has sent it.
            let _ = crate::stasis::visit(&Call::new(leg.chan().clone()), app, args.clone()).await;
            pbx::let_go_of_app(leg);
        }
    }
}

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "Originate",
    module: "app_originate",
    synopsis: "Places a call and goes on with it at an extension or in an application.",
    syntax: "Originate(tech_data,type,arg1[,arg2[,arg3[,timeout[,options]]]])",
    description: "\
Places a call from the dialplan.

tech_data  what to call: PJSIP/6001.
type       app or exten.
arg1       application, or context.
arg2       its arguments, or extension.
arg3       priority.
timeout    seconds to ring (30).
options:
  a      does not wait for the answer.
  c(num) caller id number.   n(name) caller id name.
  v(var1=value[^var2=value...])  variables of the new channel.
Sets ORIGINATE_STATUS (FAILED SUCCESS BUSY CONGESTION HANGUP RINGING UNKNOWN).",
    run: Run::Story(|call, args| Box::pin(async move { application(&call, &args).await })),
}];

async fn application(call: &Call, text: &str) -> Outcome {
    let (wanted, at_once) = match parse(text) {
        Ok(parsed) => parsed,
        Err(why) => {
            call.log(Level::Error, &why);
            call.set("ORIGINATE_STATUS", "FAILED");
            return Ok(Flow::Continue);
        }
    };
    if at_once {
        let room = originate(call.chan.shard(), wanted, |_| {});
        call.set("ORIGINATE_STATUS", if room { "SUCCESS" } else { "FAILED" });
        return Ok(Flow::Continue);
    }
    let shard = call.chan.shard().clone();
    let (placed, leg) = call.chan.while_up(place(&shard, &wanted)).await?;
    let status = match placed {
        Placed::Answered => "SUCCESS",
        Placed::TimedOut => "RINGING",
        Placed::Refused(Cause::USER_BUSY) => "BUSY",
        Placed::Refused(Cause::NORMAL_CIRCUIT_CONGESTION | Cause::SWITCH_CONGESTION) => "CONGESTION",
        Placed::Refused(Cause::NORMAL_CLEARING) => "HANGUP",
        Placed::Refused(_) => "FAILED",
    };
    call.set("ORIGINATE_STATUS", status);
    if placed != Placed::Answered {
        if let Some(leg) = leg {
            leg.end(placed.end());
        }
        tell_failed(&shard, &wanted, placed);
        return Ok(Flow::Continue);
    }
    if let Some(leg) = leg {
        let id = leg.keep().id();
        let own = shard.clone();
        let story = async move { go_on(&own, Leg::new(own.clone(), id), &wanted).await };
        if !shard.spawn(Some(id), story) {
            shard.finish(id, Cause::SWITCH_CONGESTION);
        }
    }
    Ok(Flow::Continue)
}

/// What is to be placed, and whether the dialplan goes on at once.
fn parse(text: &str) -> Result<(Originate, bool), String> {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index);
    let then = match arg(1).to_ascii_lowercase().as_str() {
        "app" => Then::App { name: arg(2).to_owned(), data: arg(3).to_owned() },
        "exten" => Then::Exten(Location {
            context: arg(2).to_owned(),
            exten: if arg(3).is_empty() { "s".to_owned() } else { arg(3).to_owned() },
            priority: arg(4).parse().unwrap_or(1),
        }),
        other => return Err(format!("Originate type is app or exten, not '{other}'")),
    };
    let options = dialplan::Options::parse(arg(6), OPTIONS);
    let given = |letter: char| options.arg(letter).map(str::to_owned);
    let mut wanted = Originate {
        target: arg(0).to_owned(),
        then,
        caller: PartyId { number: given('c'), name: given('n'), ..PartyId::default() },
        ..Originate::default()
    };
    if let Some(timeout) = args::seconds(arg(5)).filter(|timeout| !timeout.is_zero()) {
        wanted.timeout = timeout;
    }
    let pairs = options.arg('v').unwrap_or_default().split('^').filter_map(|pair| pair.split_once('='));
    wanted.variables = pairs.map(|(name, value)| (name.trim().to_owned(), value.to_owned())).collect();
    Ok((wanted, options.has('a')))
}
