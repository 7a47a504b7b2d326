//! `MeetMe` and its kin: conferences as Asterisk had them before `ConfBridge`, and the same conferences.

mod admin;
mod booked;
mod options;

use core::time::Duration;
use std::sync::Arc;

use call::conference::{BridgeProfile, Pins, VideoMode};
use call::{Level, Stop};

pub(crate) use options::unmet;

use self::booked::{Booked, Booking};
use self::options::{MeetOptions, Newcomer};
use super::{Ended, Extras, Visit};
use crate::call_ctx::args;
use crate::pbx::Place;
use crate::{AppRow, Call, Flow, Outcome, Run, gate, say};

/// Tries that a number or a PIN may take.
const TRIES: usize = 3;
/// Digits of a number or a PIN.
const DIGITS_MAX: usize = 79;

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "MeetMe",
        module: "app_meetme",
        synopsis: "Talks with all who are in a conference, as older dialplans say it.",
        syntax: "MeetMe([confno[,options[,pin]]])",
        description: "\
The conferences are those of ConfBridge; consoles and managers see them as such. confno is a room of meetme.conf, a row of
the family meetme of extconfig.conf, or with d or D any number; without one the caller is asked for it.

options:
  1       who is alone is not told so.
  a       administrator.
  A       marked user.
  c       the caller is told how many others there are.
  C       the dialplan goes on when somebody has sent the caller out; else the call ends.
  d       a conference that is not in meetme.conf begins.
  D       the same, and the first caller chooses its PIN.
  e       an empty conference of meetme.conf.
  E       one without a PIN.
  F       digits are sent to the others.
  G(x)    all hear the sound x when the caller has come.
  i       the caller's name is recorded, may be heard first, and is heard by all when it comes and goes.
  I       the same, and is not heard first.
  k       who is left alone by the caller leaves, too.
  l       the caller only listens.
  L(x:y:z) the caller stays for x milliseconds; the warnings of y and z are not heard.
  m       the caller is muted at first.
  M(c)    music of class c while the caller is alone or waits.
  n       has no effect: sound is not denoised.
  o       what is no talking is not heard by the others.
  p(k)    one of the keys k leaves (#).
  P       asks for the PIN also when it is given as an argument.
  q       nobody hears a sound when the caller comes and goes.
  r       records to MEETME_RECORDINGFILE in MEETME_RECORDINGFORMAT (wav).
  s       * leads to a menu: 1 mute, 4 and 6 hear quieter and louder, 7 and 9 are heard so, for administrators 2 lock and
          3 send the last out.
  S(x)    the caller stays for x seconds.
  t       the caller only talks.
  T       managers are told who talks.
  w(x)    waits for a marked user, x seconds at most.
  x       leaves with the last marked user.
  X       digits that are an extension of MEETME_EXIT_CONTEXT, or of the context, lead there.
v: who talks is seen. No effect has b (AGI); that is logged. Sets MEETMESECS, and MEETME_RECORDINGFILE with r.",
        run: Run::Story(|call, args| Box::pin(async move { meetme(&call, &args).await })),
    },
    AppRow {
        name: "MeetMeCount",
        module: "app_meetme",
        synopsis: "Says or gives how many are in a conference.",
        syntax: "MeetMeCount(confno[,var])",
        description: "With var the number goes there, else the caller hears it.",
        run: Run::Story(|call, args| Box::pin(async move { admin::count(&call, &args).await })),
    },
    AppRow {
        name: "MeetMeAdmin",
        module: "app_meetme",
        synopsis: "Changes a conference.",
        syntax: "MeetMeAdmin(confno,command[,user])",
        description: "\
user is the number that a member has in `confbridge list`, counted from 1 as they came.

commands:
  e  sends out who came last, unless that is an administrator.
  k  sends out the user; K all.
  l  unlocks; L locks.
  m  lets the user be heard again; M mutes it.
  n  lets all be heard again; N mutes all but administrators.
  r  resets the user's volumes; R those of all.
  s, S, v, V  lets all be heard quieter, louder; hear quieter, louder.
  t, T, u, U  the same for the user.
E puts the end of a conference off that is a row with an endtime (extendby of meetme.conf). Sets MEETMEADMINSTATUS (OK NOTFOUND NOPARSE FAILED).",
        run: Run::Now(admin::conference),
    },
    AppRow {
        name: "MeetMeChannelAdmin",
        module: "app_meetme",
        synopsis: "Changes what a member of a conference may do.",
        syntax: "MeetMeChannelAdmin(channel,command)",
        description: "Commands: k sends the channel out, m lets it be heard again, M mutes it.",
        run: Run::Now(admin::channel),
    },
];

async fn meetme(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    let mut options = MeetOptions::parse(arg(1));
    for what in &options.without_effect {
        call.log(Level::Warning, &format!("MeetMe: no effect has {what}"));
    }
    call.answer_for_sound().await?;
    let Some(Found { number, pins, booking }) = find(call, arg(0), &options).await? else {
        return Ok(Flow::Continue);
    };
    let Some(newcomer) = admit(call, &number, &pins, &options, arg(2)).await? else {
        return Ok(Flow::Hangup);
    };
    if let Some(booking) = &booking {
        let there =
            call.chan.core(|core| core.conferences.get(&number).map_or(0, |found| found.members.len()));
        if booking.users_max.is_some_and(|most| there >= most) && !newcomer.is_admin {
            call.chan.play("conf-full", "").await?;
            call.log(Level::Warning, &format!("conference '{number}' is full"));
            return Ok(Flow::Continue);
        }
        options = MeetOptions::parse(&booking.options(arg(1), newcomer.is_admin));
        for (name, value) in
            ["MEETME_RECORDINGFILE", "MEETME_RECORDINGFORMAT"].into_iter().zip(&booking.recording)
        {
            if !value.is_empty() && call.get(name).is_none_or(|own| own.is_empty()) {
                call.set(name, value);
            }
        }
    }
    let counts = call.chan.core(|core| core.settings.bookings.counts);
    let record = options.records.then(|| recording(call, &number));
    let user = options.user(&newcomer);
    let video = if options.has_video { VideoMode::FollowTalker } else { VideoMode::None };
    let visit = Visit {
        call,
        conference: number,
        bridge: Arc::new(BridgeProfile { name: "meetme".to_owned(), video, ..BridgeProfile::default() }),
        menu: Arc::new(options.menu(user.seat.is_admin)),
        user: Arc::new(user),
        extras: Extras {
            limit: options.limit,
            patience: options.patience,
            exit: options.exits.then(|| exit_context(call)),
            closes: options.closes,
            intro: options.intro.clone(),
            record,
            pin: newcomer.pin,
            ends: booking.as_ref().and_then(|booking| booking.ends),
            counted: booking.filter(|_| counts).map(|booking| booking.row),
        },
    };
    let began = call.chan.now();
    let ended = visit.run().await;
    call.set("MEETMESECS", &call.chan.now().since(began).as_secs().to_string());
    match ended? {
        Ended::Kicked if !options.goes_on => Ok(Flow::Hangup),
        Ended::Timeout => {
            if let Some(sound) = call.get("CONF_LIMIT_TIMEOUT_FILE").filter(|sound| !sound.is_empty()) {
                call.chan.play(&sound, "").await?;
            }
            Ok(Flow::Continue)
        }
        Ended::Exit(digit) => {
            call.stand_at(Place::find(call, &exit_context(call), &digit.to_string(), 1));
            Ok(Flow::Jumped)
        }
        _ => Ok(Flow::Continue),
    }
}

fn exit_context(call: &Call) -> String {
    let named = call.get("MEETME_EXIT_CONTEXT").filter(|context| !context.is_empty());
    named.unwrap_or_else(|| call.context())
}

/// The file of option `r`, whose name is left in its variable.
fn recording(call: &Call, number: &str) -> String {
    let variable = |name: &str| call.get(name).filter(|value| !value.is_empty());
    let unique = call.chan.with(|channel| channel.uniqueid.to_string()).unwrap_or_default();
    let own = || format!("meetme-conf-rec-{}-{unique}", number.replace(['/', '.'], "-"));
    let file = variable("MEETME_RECORDINGFILE").unwrap_or_else(own);
    call.set("MEETME_RECORDINGFILE", &file);
    format!("{file}.{}", variable("MEETME_RECORDINGFORMAT").unwrap_or_else(|| "wav".to_owned()))
}

/// The conference that is meant.
struct Found {
    number: String,
    pins: Pins,
    /// The row that it is.
    booking: Option<Booking>,
}

/// The conference that is meant; `None`: there is none, which the caller was told.
async fn find(call: &Call, number: &str, options: &MeetOptions) -> Result<Option<Found>, Stop> {
    if number.is_empty() && (options.empty || options.empty_without_pin) {
        let found = call.chan.core(|core| {
            let mut rooms = core.settings.meeting_rooms.iter();
            let is_open = |pins: &Pins| pins.user.is_empty() || !options.empty_without_pin;
            rooms
                .find(|(number, pins)| core.conferences.get(number).is_none() && is_open(pins))
                .map(|(number, pins)| (number.clone(), pins.clone()))
        });
        let Some((number, pins)) = found else {
            call.chan.play("conf-noempty", "").await?;
            return Ok(None);
        };
        if !options.is_quiet {
            for name in std::iter::once("conf-enteringno".to_owned()).chain(say::digits(&number)) {
                call.chan.play(&name, "").await?;
            }
        }
        return Ok(Some(Found { number, pins, booking: None }));
    }
    let asks = number.is_empty();
    for _ in 0..if asks { TRIES } else { 1 } {
        let number = match asks {
            true => gate::password(call, "conf-getconfno", DIGITS_MAX).await?,
            false => number.to_owned(),
        };
        let room = call.chan.core(|core| core.settings.meeting_rooms.get(&number).cloned());
        // A row goes before a conference that is there: it has the PINs.
        let booked = match &room {
            None if !number.is_empty() => booked::look_up(call, &number).await?,
            _ => Booked::No,
        };
        let (known, booking) = match (room, booked) {
            (Some(room), _) => (Some(room), None),
            (None, Booked::Now(booking)) => (Some(booking.pins.clone()), Some(*booking)),
            (None, Booked::Soon) => {
                call.chan.play("conf-has-not-started", "").await?;
                return Ok(None);
            }
            (None, Booked::Unknown) => (None, None),
            (None, Booked::No) => {
                let running = call.chan.core(|core| {
                    let running = core.conferences.get(&number);
                    running.map(|c| Pins { user: c.pin.clone(), admin: String::new() })
                });
                (running.or_else(|| options.dynamic.then(Pins::default)), None)
            }
        };
        if let Some(pins) = known.filter(|_| !number.is_empty()) {
            return Ok(Some(Found { number, pins, booking }));
        }
        call.chan.play("conf-invalid", "").await?;
    }
    Ok(None)
}

/// Whether the caller knows the PIN, and which of them; `None`: it does not.
async fn admit(
    call: &Call,
    number: &str,
    pins: &Pins,
    options: &MeetOptions,
    given: &str,
) -> Result<Option<Newcomer>, Stop> {
    let begins = call.chan.core(|core| core.conferences.get(number).is_none());
    let chooses = options.chooses_pin && begins && pins.user.is_empty();
    if chooses && (given.is_empty() || options.asks_always) {
        let pin = gate::password(call, "conf-getpin", DIGITS_MAX).await?;
        return Ok(Some(Newcomer { is_admin: options.is_admin, pin }));
    }
    if chooses || (begins && options.dynamic && pins.user.is_empty() && pins.admin.is_empty()) {
        return Ok(Some(Newcomer { is_admin: options.is_admin, pin: given.to_owned() }));
    }
    // An administrator's own PIN is asked for where there is one.
    let wants_admin = options.is_admin && !pins.admin.is_empty();
    if pins.user.is_empty() && !wants_admin {
        return Ok(Some(Newcomer { is_admin: options.is_admin, pin: String::new() }));
    }
    let accepts = |typed: &str| match typed {
        _ if !pins.admin.is_empty() && typed == pins.admin => Some(true),
        _ if typed == pins.user && !wants_admin => Some(options.is_admin),
        _ => None,
    };
    if !given.is_empty()
        && !options.asks_always
        && let Some(is_admin) = accepts(given)
    {
        return Ok(Some(Newcomer { is_admin, pin: String::new() }));
    }
    let mut prompt = "conf-getpin";
    for _ in 0..TRIES {
        let typed = gate::password(call, prompt, DIGITS_MAX).await?;
        if let Some(is_admin) = accepts(&typed) {
            return Ok(Some(Newcomer { is_admin, pin: String::new() }));
        }
        prompt = "conf-invalidpin";
    }
    call.chan.play(prompt, "").await?;
    call.log(Level::Warning, &format!("wrong PIN for conference '{number}'"));
    Ok(None)
}

/// Milliseconds of an argument.
fn millis(text: &str) -> Option<Duration> {
    text.trim().parse().ok().filter(|ms| *ms > 0).map(Duration::from_millis)
}
