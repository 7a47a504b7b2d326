//! Call parking (res_parking.conf): a call waits in a numbered space, who put it there hears the number, and whoever dials
//! that fetches it.
//!
//! Which spaces are taken is [`call::parking`]'s; here are the stories of those who wait (`Stay`), who park somebody
//! ([`pair`]) and who fetch a call (`fetch`).

mod announce;
mod fetch;
mod lots;
mod pair;

use core::time::Duration;

use call::parking::{COME_BACK_DIAL, LotSettings, ParkAs, ParkingChange, Wanted, dial_string, flat};
use call::{Chan, Level, Location, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, say};

pub use lots::{FILE, Line, lines, parks};
pub use pair::{Manner, alone, carry_out, pair, pair_as};

/// How long the story of a parked call may take to let go of it: it does at the next thing it waits for.
const LET_GO: Duration = Duration::from_secs(5);
/// What is heard where nobody could be parked.
const FAILED_SOUND: &str = "pbx-parkingfailed";
/// The class of music of channels that were given none.
const DEFAULT_MUSIC: &str = "default";
/// Option letters of Park.
pub(crate) const PARK_OPTIONS: &str = "rRsct";

pub(crate) const ROWS: &[AppRow] = rows! {
    "Park" "res_parking" Run::Story(|call, text| Box::pin(async move { park(&call, &text).await })),
        "Parks the channel.", "Park([parking_lot_name[,options]])",
        "The caller waits in a space of a parking lot, with music, until somebody dials the number of the space or the\n\
         parkingtime of the lot is over. Unless it was transferred here the caller hears the number first: so does who\n\
         asks before it transfers somebody. Who sends a call to an extension that begins with Park() hears the number\n\
         itself, and is let go of then.\n\n\
         The lot is the one that is named here, else by PARKINGLOT, else by CHANNEL(parkinglot), else default.\n\n\
         options:\n  \
         r  ringing instead of music.\n  \
         R  any free space.\n  \
         s  the number is not said.\n  \
         c(ctx,ext,prio)  where the call goes when its time is up.\n  \
         t(seconds)  another parkingtime; 0: no limit.\n\n\
         PARKINGEXTEN asks for one space. Sets PARKEDAT. Where no space is free the dialplan goes on.\n\
         When its time is up, the channel has PARKINGSLOT and PARKING_SPACE (the space), PARKEDLOT (the lot),\n\
         PARKER and PARKER_FLAT (who parked it: PJSIP/6001, PJSIP_6001), PARKEDCALL (701@parkedcalls),\n\
         COMEBACKDIALTIME and COMEBACKDIALOPTIONS (what Dial is told).\n\
         With parkeddynamic=yes a lot that is not there is made as PARKINGDYNAMIC (the lot that it is like),\n\
         PARKINGDYNCONTEXT, PARKINGDYNEXTEN and PARKINGDYNPOS say.";
    "ParkedCall" "res_parking" Run::Story(|call, text| Box::pin(async move { fetch::fetch(&call, &text).await })),
        "Fetches a parked call.", "ParkedCall([parking_lot_name[,parking_space]])",
        "Connects the caller with the call in a space, without a space with the one in the first that is taken. The lot is\n\
         chosen as by Park(). Nobody there: the caller hears pbx-invalidpark and is hung up.";
    "ParkAndAnnounce" "res_parking" Run::Story(|call, text| Box::pin(async move { announce::park(&call, &text).await })),
        "Parks the channel and tells somebody where.",
        "ParkAndAnnounce([parking_lot_name[,options]],announce[:announce1[:...]],dial)",
        "As Park(); the caller does not hear the number. Whoever answers at dial (PJSIP/6001) hears the sounds, of which the\n\
         word PARKED stands for the digits of the space; PARKEDAT on that channel is the space, too.\n\n\
         options:\n  r R c(ctx,ext,prio) t(seconds)  as in Park().";
};

/// Options of Park, typed.
#[derive(Debug, Clone, Default)]
struct ParkOptions {
    ring: bool,
    random: bool,
    silent: bool,
    back: Option<String>,
    time: Option<Duration>,
}

impl ParkOptions {
    fn parse(call: &Call, text: &str) -> Self {
        let given = Options::parse(text, PARK_OPTIONS);
        for letter in &given.unknown {
            call.log(Level::Warning, &format!("Park option '{letter}' does not exist and has no effect"));
        }
        let arg = |letter: char| given.has(letter).then(|| given.arg(letter).unwrap_or_default());
        let time = arg('t').and_then(|text| {
            let time = args::seconds(text);
            if time.is_none() {
                call.log(Level::Warning, &format!("Park option t wants seconds, not '{text}'"));
            }
            time
        });
        Self {
            ring: given.has('r'),
            random: given.has('R'),
            silent: given.has('s'),
            back: arg('c').map(|place| place.replace('^', ",")).filter(|place| !place.is_empty()),
            time,
        }
    }
}

/// Arguments of Park: the lot and how.
struct Asked {
    lot: String,
    options: ParkOptions,
}

impl Asked {
    fn parse(call: &Call, text: &str) -> Self {
        // The place of option c has commas of its own.
        let (lot, options) = text.split_once(',').unwrap_or((text, ""));
        Self { lot: lot.trim().to_owned(), options: ParkOptions::parse(call, options) }
    }
}

/// The lot that is meant: the one that is named, else that of the channel.
fn lot_name(call: &Call, named: &str) -> String {
    let of_channel = || call.chan.with(|c| c.parking_lot.clone()).unwrap_or_default();
    let named = Some(named.trim().to_owned()).filter(|name| !name.is_empty());
    let some = |name: String| Some(name).filter(|name| !name.is_empty());
    named
        .or_else(|| call.get("PARKINGLOT").and_then(some))
        .or_else(|| some(of_channel()))
        .unwrap_or_else(|| call::parking::DEFAULT_LOT.to_owned())
}

/// The one who parks knows the space; watchers are told of that by the parking itself.
fn note_space(call: &Call, space: u32) {
    let var = dialplan::Var::named("PARKEDAT");
    let _ = call.chan.with(|c| c.vars.set(var, &space.to_string(), dialplan::Inherit::Never));
}

/// Gives `parkee` a space on behalf of `by`, whose variables say which; the space, and its stay there.
fn give_space(by: &Call, parkee: &Chan, asked: &Asked, parker: String) -> Result<(u32, Stay), String> {
    let lot = lot_name(by, &asked.lot);
    if by.chan.core(|core| core.parking.lot(&lot).is_none() && core.parking.dynamic) {
        lots::make(by, &lot)?;
    }
    let wanted = match by.get("PARKINGEXTEN").filter(|text| !text.is_empty()) {
        Some(text) => {
            Wanted::Space(text.trim().parse().map_err(|_| format!("PARKINGEXTEN={text} is no number"))?)
        }
        None if asked.options.random => Wanted::Random,
        None => Wanted::Next,
    };
    let how = ParkAs { lot: lot.clone(), wanted, time: asked.options.time, parker };
    let space = by.chan.core(|core| core.park(parkee.id(), &how));
    let space = space.map_err(|why| format!("{why} (lot '{lot}')"))?;
    parkee.log(Level::Verbose(3), "parking", &format!("is parked in lot '{lot}' at {space}"));
    let back = asked.options.back.as_deref().and_then(|place| match by.resolve(place) {
        Ok(location) => Some(location),
        Err(why) => {
            by.log(Level::Warning, &format!("Park option c: '{place}': {why}"));
            None
        }
    });
    Ok((space, Stay { chan: parkee.clone(), ring: asked.options.ring, back, hears: None }))
}

async fn park(call: &Call, text: &str) -> Outcome {
    let asked = Asked::parse(call, text);
    call.chan.answer()?;
    let transferer = call.get("BLINDTRANSFER").filter(|name| !name.is_empty());
    let own = call.chan.name();
    let parker = dial_string(transferer.as_deref().unwrap_or(&own));
    let (space, mut stay) = match give_space(call, &call.chan, &asked, parker) {
        Ok(given) => given,
        Err(why) => return failed(call, &asked, &why).await,
    };
    note_space(call, space);
    if transferer.is_none() && !asked.options.silent {
        // Who takes the place meanwhile does not want to hear it.
        for file in say::digits(&space.to_string()) {
            if call.chan.name() == own {
                call.chan.play(&file, "").await?;
            }
        }
    }
    Err(stay.wait().await)
}

/// Nobody could be parked: the dialplan goes on.
async fn failed(call: &Call, asked: &Asked, why: &str) -> Outcome {
    call.log(Level::Warning, why);
    if !asked.options.silent {
        call.chan.play(FAILED_SOUND, "").await?;
    }
    Ok(Flow::Continue)
}

/// Somebody in a space. The space is free again when this is dropped, whatever ended it.
pub(crate) struct Stay {
    chan: Chan,
    ring: bool,
    /// Where it goes when its time is up, instead of what the lot says.
    back: Option<Location>,
    /// Whose music plays: the name of the channel, which may become another's.
    hears: Option<std::rc::Rc<str>>,
}

impl Stay {
    /// Waits until the channel ends, is fetched, or has been sent back because its time is up.
    async fn wait(&mut self) -> Stop {
        loop {
            if let Err(stop) = self.entertain().await {
                return stop;
            }
            let id = self.chan.id();
            let (is_parked, until) = self.chan.core(|core| {
                let parked = core.parking.place_of(id).and_then(|(lot, space)| lot.spaces.get(&space));
                (parked.is_some(), parked.map_or(Some(core.now + LET_GO), |parked| parked.until))
            });
            match self.chan.event(until).await {
                Err(stop) => return stop,
                Ok(Some(_)) => {}
                Ok(None) if is_parked => self.time_is_up(),
                // Fetched by somebody who then did not take it.
                Ok(None) => self.chan.hangup(base::Cause::NORMAL_CLEARING),
            }
        }
    }
    /// Music or ringing, also for who takes the place of another.
    async fn entertain(&mut self) -> Result<(), Stop> {
        let name = self.chan.name();
        if self.hears.as_ref() == Some(&name) {
            return Ok(());
        }
        self.hears = Some(name);
        if self.ring {
            self.chan.start_tone("ring");
            return Ok(());
        }
        let id = self.chan.id();
        let of_lot =
            self.chan.core(|core| core.parking.place_of(id).map(|(lot, _)| lot.settings.music.clone()));
        let own = self.chan.with(|c| c.music_class.clone())?;
        let class = of_lot.filter(|class| !class.is_empty() && (own.is_empty() || own == DEFAULT_MUSIC));
        self.chan.start_music(&class.unwrap_or(own)).await.map(drop)
    }
    /// Sends the channel back to who parked it, or where the lot says.
    fn time_is_up(&self) {
        let (id, call) = (self.chan.id(), Call::new(self.chan.clone()));
        let found = self.chan.core(|core| {
            let (lot, space) = core.parking.place_of(id)?;
            Some((lot.settings.clone(), space, lot.spaces.get(&space)?.parker.clone()))
        });
        let Some((lot, space, parker)) = found else { return };
        self.chan.core(|core| core.park_over(id, ParkingChange::TimedOut));
        let (number, flat) = (space.to_string(), flat(&parker));
        for (name, value) in [
            ("PARKINGSLOT", number.as_str()),
            ("PARKING_SPACE", &number),
            ("PARKEDLOT", &lot.name),
            ("PARKER", &parker),
            ("PARKER_FLAT", &flat),
            ("PARKEDCALL", &format!("{space}@{}", lot.context)),
            ("COMEBACKDIALTIME", &lot.dial_time.as_secs().to_string()),
            ("COMEBACKDIALOPTIONS", &lot.dial_options()),
        ] {
            call.set(name, value);
        }
        let to = self.back.clone().unwrap_or_else(|| come_back(&call, &lot, flat));
        self.chan.core(|core| core.request_goto(id, to));
    }
}

/// Where the lot sends a call that has waited too long.
fn come_back(call: &Call, lot: &LotSettings, flat: String) -> Location {
    let at = |context: &str, exten: String| Location { context: context.to_owned(), exten, priority: 1 };
    if lot.to_origin {
        return at(COME_BACK_DIAL, flat);
    }
    let context = &lot.come_back_context;
    if call.exists(context, &flat) {
        at(context, flat)
    } else if call.exists(context, "s") {
        at(context, "s".to_owned())
    } else {
        call.log(
            Level::Warning,
            &format!("context '{context}' has neither '{flat}' nor 's': the call goes to default,s"),
        );
        at("default", "s".to_owned())
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if self.hears.is_some() {
            if self.ring { self.chan.stop_sound() } else { self.chan.stop_music() }
        }
        let id = self.chan.id();
        self.chan.core(|core| core.park_over(id, ParkingChange::GaveUp));
    }
}
