//! `ConfBridge` and `MeetMe`: more than two who talk to each other.
//!
//! `enter` is what comes before somebody is in, `stay` what happens while it is, `keys` what its menu does, `record` the
//! files; `custom` is `CONFBRIDGE()`. The conferences themselves are `call::conference`'s.

mod custom;
mod enter;
mod keys;
pub mod meetme;
mod record;
mod stay;

use core::time::Duration;
use std::sync::Arc;

use base::ChannelId;
use call::conference::{
    BridgeProfile, DEFAULT_BRIDGE, DEFAULT_MENU, DEFAULT_USER, Menu, NotThere, UserProfile, Which,
};
use call::{Core, Level};

pub(crate) use custom::{read_custom, write_custom};
pub use record::{start_recording, stop_recording};

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "ConfBridge",
        module: "app_confbridge",
        synopsis: "Talks with all who are in a conference.",
        syntax: "ConfBridge(conference[,bridge_profile[,user_profile[,menu]]])",
        description: "\
Puts the caller into the conference of this name until hang-up, a key of the menu that leaves, its time is over, or
somebody sends it out. The conference begins with its first member and ends with its last.

bridge_profile  section of confbridge.conf with type=bridge.
user_profile    section of confbridge.conf with type=user.
menu            section of confbridge.conf with type=menu.
Without one the profile that CONFBRIDGE() has made on the channel holds, else default_bridge, default_user and
default_menu. After three wrong PINs the call ends.
Sets CONFBRIDGE_RESULT (FAILED HANGUP KICKED ENDMARKED DTMF TIMEOUT).",
        run: Run::Story(|call, args| Box::pin(async move { confbridge(&call, &args).await })),
    },
    AppRow {
        name: "ConfKick",
        module: "app_confbridge",
        synopsis: "Sends members out of a conference.",
        syntax: "ConfKick(conference[,channel])",
        description: "\
Without a channel, or with all, sends all members out; with participants all but administrators.
Sets CONFKICKSTATUS (SUCCESS FAILURE).",
        run: Run::Now(conf_kick),
    },
];

/// Somebody who is to enter a conference.
pub(super) struct Visit<'a> {
    pub(super) call: &'a Call,
    pub(super) conference: String,
    pub(super) bridge: Arc<BridgeProfile>,
    pub(super) user: Arc<UserProfile>,
    pub(super) menu: Arc<Menu>,
    pub(super) extras: Extras,
}

/// What `MeetMe` can do besides.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// How long it may stay.
    pub(super) limit: Option<Duration>,
    /// How long it waits for a marked member.
    pub(super) patience: Option<Duration>,
    /// Context of one-digit extensions by which it leaves.
    pub(super) exit: Option<String>,
    /// When it leaves one other alone, that one leaves, too.
    pub(super) closes: bool,
    /// Sound that all hear when it has come.
    pub(super) intro: String,
    /// File that the conference is recorded to, unless it is recorded already.
    pub(super) record: Option<String>,
    /// PIN of a conference that begins with it.
    pub(super) pin: String,
    /// When the conference ends.
    pub(super) ends: Option<base::Instant>,
    /// Column and value of the row that says how many are there.
    pub(super) counted: Option<(String, String)>,
}

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It could not enter; the reason was logged.
    Refused,
    /// It did not know the PIN.
    WrongPin,
    /// Somebody sent it out.
    Kicked,
    /// It left with a marked user.
    Marked,
    /// A key of its menu leaves.
    Key,
    /// Its time is over.
    Timeout,
    /// It dialled an extension of one digit.
    Exit(char),
}

impl Ended {
    fn result(self) -> &'static str {
        match self {
            Self::Refused | Self::WrongPin => "FAILED",
            Self::Kicked => "KICKED",
            Self::Marked => "ENDMARKED",
            Self::Key | Self::Exit(_) => "DTMF",
            Self::Timeout => "TIMEOUT",
        }
    }
}

async fn confbridge(call: &Call, args: &str) -> Outcome {
    let visit = match visit(call, args) {
        Ok(visit) => visit,
        Err(why) => {
            call.log(Level::Warning, &why);
            call.set("CONFBRIDGE_RESULT", "FAILED");
            return Ok(Flow::Continue);
        }
    };
    match visit.run().await {
        Err(stop) => {
            call.set("CONFBRIDGE_RESULT", "HANGUP");
            Err(stop)
        }
        Ok(ended) => {
            call.set("CONFBRIDGE_RESULT", ended.result());
            Ok(if matches!(ended, Ended::WrongPin | Ended::Refused) { Flow::Hangup } else { Flow::Continue })
        }
    }
}

/// Who enters what, by the arguments; the error says why nobody can.
fn visit<'a>(call: &'a Call, text: &str) -> Result<Visit<'a>, String> {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    if arg(0).is_empty() {
        return Err("ConfBridge requires an argument (conference)".to_owned());
    }
    let profiles = call.chan.core(|core| core.settings.conferences.clone());
    let custom = call.chan.with(|channel| channel.conference.clone()).ok().flatten().unwrap_or_default();
    // What a dialplan has made stands for the profile that is not named.
    fn pick<T>(name: &str, custom: Option<T>, known: Option<Arc<T>>) -> Option<Arc<T>> {
        custom.filter(|_| name.is_empty()).map(Arc::new).or(known)
    }
    let bridge = pick(arg(1), custom.bridge, profiles.bridge(arg(1)))
        .ok_or_else(|| format!("confbridge.conf has no bridge profile '{}'; try {DEFAULT_BRIDGE}", arg(1)))?;
    let user = pick(arg(2), custom.user, profiles.user(arg(2)))
        .ok_or_else(|| format!("confbridge.conf has no user profile '{}'; try {DEFAULT_USER}", arg(2)))?;
    let menu = match pick(arg(3), custom.menu, profiles.menu(arg(3))) {
        None if !arg(3).is_empty() => return Err(format!("confbridge.conf has no menu '{}'", arg(3))),
        menu => menu.unwrap_or_else(|| Arc::new(Menu { name: DEFAULT_MENU.to_owned(), ..Menu::default() })),
    };
    Ok(Visit { call, conference: arg(0).to_owned(), bridge, user, menu, extras: Extras::default() })
}

fn conf_kick(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (name, whom) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let kicked = call.chan.core(|core| {
        let whom = if whom.is_empty() { "all" } else { whom };
        let which = which(core, name, whom).ok_or(NotThere::Member)?;
        core.conference_kick(name, which)
    });
    if let Err(why) = kicked {
        let why = match why {
            NotThere::Conference => format!("there is no conference '{name}'"),
            NotThere::Member => format!("'{whom}' is not in conference '{name}'"),
        };
        call.log(Level::Warning, &format!("ConfKick: {why}"));
    }
    call.set("CONFKICKSTATUS", if kicked.is_ok() { "SUCCESS" } else { "FAILURE" });
    Ok(Flow::Continue)
}

/// Whom consoles, managers and dialplans mean: `all`, `participants`, or a channel of the conference by its name, which may
/// be cut short after as much of it as no other has.
pub fn which(core: &Core, conference: &str, whom: &str) -> Option<Which> {
    match whom.to_ascii_lowercase().as_str() {
        "all" => Some(Which::All),
        "participants" => Some(Which::Participants),
        _ => channel_of(core, conference, whom).map(Which::One),
    }
}

fn channel_of(core: &Core, conference: &str, name: &str) -> Option<ChannelId> {
    if let Some(id) = core.by_name(name) {
        return Some(id);
    }
    let members = core.conferences.get(conference)?.members.iter().map(|member| member.channel);
    let begins = |id: &ChannelId| {
        core.get(*id).is_some_and(|channel| {
            channel.name.get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name))
        })
    };
    let mut found = members.filter(begins);
    let first = found.next().filter(|_| !name.is_empty())?;
    found.next().is_none().then_some(first)
}
