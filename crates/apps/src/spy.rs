//! ChanSpy and ExtenSpy: a channel listens to others, one after the other, and may speak to them.
//!
//! What the media plane does for it is [`call::spy`]'s; here is whom it listens to, and what its keys do.

use core::time::Duration;
use std::rc::Rc;

use base::{ChannelId, Digit, Gain};
use call::spy::{SpyWish, Voice};
use call::voicemail::{Greeting, Sound};
use call::{Chan, ChanEvent, Channel, Core, Level, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::monitor::spooled;
use crate::voicemail::Visit;
use crate::{AppRow, Call, Flow, Outcome, Run, say};

/// Letters of both applications.
pub(crate) const OPTIONS: &str = "bBcdDeEglnoqrsSuvwWxX";
/// How long a spy waits for somebody to listen to before it looks again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Loudest and quietest step of the volume.
const STEP_MAX: i8 = 4;
/// Technologies that the field's prompt sets have a name for.
const SPOKEN: &[&str] = &["agent", "console", "dahdi", "iax2", "local", "sip"];
/// Longest number that keys choose a channel by.
const NUMBER_MAX: usize = 32;

pub(crate) const ROWS: &[AppRow] = rows! {
    "ChanSpy" "app_chanspy" Run::Story(|call, text| Box::pin(async move { chan_spy(&call, &text).await })),
        "Listens to other channels, and may speak to them.", "ChanSpy([chanprefix[,options]])",
        "Listens to what a channel says and hears, whose name begins with chanprefix (without one to any), and to the next\n\
         when it ends. '#' changes the volume, from -4 to 4 and round again; '*' goes on to the next channel; digits and\n\
         '#' go to the channel whose name is chanprefix, '/' and the digits.\n\n\
         options:\n  \
         b         only channels that talk to somebody.\n  \
         B         barge: both parties hear the spy.\n  \
         c(digit)  this digit goes on to the next channel, instead of '*'.\n  \
         d         '4' listens, '5' whispers, '6' barges; digits choose no channel.\n  \
         D         has no effect: no phone takes two channels of sound.\n  \
         e(list)   only channels of this list: Technology/resource or resource, with ':' between them.\n  \
         E         ends when the channel that is listened to does.\n  \
         g(group)  only channels whose variable SPYGROUP has one of these groups; ':' stands between several on both sides.\n  \
         l         has no effect: no queue fills up.\n  \
         n([mailbox][@context])  says the recorded name of the owner of this mailbox, without one of that with the number of\n            \
                   the channel's resource.\n  \
         o         listens only to what the channel says.\n  \
         q         neither a beep nor the channel's name is said.\n  \
         r([name]) records what the spy hears to a raw file below monitor/: name, or chanspy, and the seconds since 1970.\n  \
         s         does not say the channel's technology.\n  \
         S         ends when no channel is left that was not listened to.\n  \
         u         chanprefix is the UNIQUEID or the whole name of a channel.\n  \
         v(x)      begins with this volume (-4 to 4).\n  \
         w         whisper: who is listened to hears the spy, and who talks to it does not.\n  \
         W         the same, and the spy hears nothing.\n  \
         x(digit)  this digit ends the application.\n  \
         X         a digit that is an extension of SPY_EXIT_CONTEXT, or of the present context, goes there.\n\
         Channels that spy are not listened to. Sets SPY_CHANNEL to the name of the channel that is or was listened to.\n\
         Managers hear of it by ChanSpyStart and ChanSpyStop.";
    "ExtenSpy" "app_chanspy" Run::Story(|call, text| Box::pin(async move { exten_spy(&call, &text).await })),
        "Listens to channels at an extension, and may speak to them.", "ExtenSpy(exten[@context][,options])",
        "As ChanSpy, for channels that stand at this extension of the dialplan: those who have called it. Without a context\n\
         it is that of the spy. Options and variables are those of ChanSpy; u has no effect, and digits choose no channel.";
};

/// Which channels are listened to.
enum Pick {
    Prefix(String),
    Named(String),
    Exten(String, String),
}

struct Settings {
    options: Options,
    pick: Pick,
    /// What keys have made of the mode and the volume.
    wish: SpyWish,
    step: i8,
    next: char,
    exit: Option<char>,
}

/// Why the spy listens to a channel no longer.
enum Left {
    /// It is gone.
    Gone,
    /// The spy wants another one.
    Next,
    /// The one of this number.
    Number(String),
    /// The application ends so.
    Done(Outcome),
}

async fn chan_spy(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let options = Options::parse(args::nth(&parts, 1), OPTIONS);
    let prefix = args::nth(&parts, 0).to_owned();
    let pick = if options.has('u') { Pick::Named(prefix) } else { Pick::Prefix(prefix) };
    run(call, pick, options).await
}

async fn exten_spy(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (exten, context) = args::nth(&parts, 0).split_once('@').unwrap_or((args::nth(&parts, 0), ""));
    if exten.is_empty() {
        call.log(Level::Warning, "ExtenSpy requires an argument (exten[@context])");
        return Ok(Flow::Continue);
    }
    let context = if context.is_empty() { call.context() } else { context.to_owned() };
    let pick = Pick::Exten(exten.to_owned(), context);
    run(call, pick, Options::parse(args::nth(&parts, 1), OPTIONS)).await
}

impl Settings {
    fn new(call: &Call, pick: Pick, options: Options) -> Self {
        for letter in &options.unknown {
            call.log(Level::Warning, &format!("option {letter}: there is none"));
        }
        for letter in ['D', 'l'].into_iter().filter(|letter| options.has(*letter)) {
            call.log(Level::Notice, &format!("option {letter} has no effect"));
        }
        let digit = |letter: char| {
            let text = options.arg(letter).filter(|_| options.has(letter))?;
            let digit = text.trim().chars().next().filter(|c| Digit::from_char(*c).is_some());
            if digit.is_none() {
                call.log(Level::Warning, &format!("option {letter}({text}) wants a digit"));
            }
            digit
        };
        let volume = options.arg('v').filter(|_| options.has('v')).unwrap_or("0").trim();
        let step = volume.parse().ok().filter(|step: &i8| step.abs() <= STEP_MAX).unwrap_or_else(|| {
            call.log(Level::Warning, &format!("option v({volume}): the volume is -4 to 4"));
            0
        });
        let is_private = options.has('W');
        let voice = match () {
            () if options.has('B') => Voice::Barge,
            () if options.has('w') || is_private => Voice::Whisper,
            () => Voice::Silent,
        };
        let gain = Gain::of_step(step);
        let overhears = !is_private && !options.has('o');
        let wish = SpyWish { hears: !is_private, overhears, gain, voice };
        let (next, exit) = (digit('c').unwrap_or('*'), digit('x'));
        Self { options, pick, wish, step, next, exit }
    }
    fn is_quiet(&self) -> bool {
        self.options.has('q')
    }
    /// Whether keys choose channels by number.
    fn takes_numbers(&self) -> bool {
        matches!(self.pick, Pick::Prefix(_)) && !self.options.has('d') && !self.options.has('X')
    }
    /// Whether this one may be listened to.
    fn takes(&self, core: &Core, own: ChannelId, channel: &Channel) -> bool {
        let picked = match &self.pick {
            Pick::Prefix(prefix) => starts_with(&channel.name, prefix),
            Pick::Named(name) => *channel.uniqueid == **name || channel.name.eq_ignore_ascii_case(name),
            Pick::Exten(exten, context) => {
                channel.location.exten == *exten && channel.location.context == *context
            }
        };
        let list = |letter| self.options.arg(letter).filter(|_| self.options.has(letter));
        let grouped = list('g').is_none_or(|groups| {
            let own = channel.vars.get_name("SPYGROUP").unwrap_or_default();
            own.split(':').map(str::trim).any(|own| !own.is_empty() && in_list(groups, own))
        });
        let enforced = list('e').is_none_or(|extens| {
            let base = base_name(&channel.name);
            in_list(extens, base) || in_list(extens, resource(&channel.name))
        });
        picked
            && grouped
            && enforced
            && channel.id != own
            && channel.hangup.is_none()
            && channel.stream.is_some()
            && core.spy(channel.id).is_none()
            && (channel.bridge.is_some() || !self.options.has('b'))
    }
}

fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

/// Whether one of the words of a list, with `:` between them, is this.
fn in_list(list: &str, word: &str) -> bool {
    list.split(':').any(|listed| listed.trim().eq_ignore_ascii_case(word))
}

/// `PJSIP/6001` of `PJSIP/6001-0000002a`.
fn base_name(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(base, _)| base)
}

/// `6001` of it.
fn resource(name: &str) -> &str {
    let base = base_name(name);
    base.split_once('/').map_or(base, |(_, resource)| resource)
}

async fn run(call: &Call, pick: Pick, options: Options) -> Outcome {
    call.chan.answer()?;
    let mut settings = Settings::new(call, pick, options);
    let _recording = Recording::begin(call, &settings);
    // Those that were listened to in this round; who comes back to the first has heard all.
    let mut heard: Vec<Rc<str>> = Vec::new();
    let mut number: Option<String> = None;
    if !settings.is_quiet() {
        call.chan.play("beep", "").await?;
    }
    loop {
        let found = match number.take() {
            Some(number) => by_number(call, &settings, &number),
            None => next(call, &settings, &heard),
        };
        let Some((on, name)) = found else {
            if settings.options.has('S') {
                return Ok(Flow::Continue);
            }
            let was_empty = heard.is_empty();
            heard.clear();
            if !was_empty && next(call, &settings, &heard).is_some() {
                continue;
            }
            if let Some(outcome) = wait_for_more(call, &settings).await? {
                return outcome;
            }
            continue;
        };
        if !settings.is_quiet() {
            announce(call, &settings, &name).await?;
        }
        if !heard.contains(&name) {
            heard.push(name.clone());
        }
        call.set("SPY_CHANNEL", &name);
        match listen(call, &mut settings, on).await? {
            Left::Gone if settings.options.has('E') => return Ok(Flow::Continue),
            Left::Gone | Left::Next => {}
            Left::Number(digits) => number = Some(digits),
            Left::Done(outcome) => return outcome,
        }
    }
}

/// The first channel that was not listened to in this round.
fn next(call: &Call, settings: &Settings, heard: &[Rc<str>]) -> Option<(ChannelId, Rc<str>)> {
    let own = call.chan.id();
    call.chan.core(|core| {
        let fits = |channel: &&Channel| !heard.contains(&channel.name) && settings.takes(core, own, channel);
        core.channels().find(fits).map(|channel| (channel.id, channel.name.clone()))
    })
}

/// The channel of a number that was dialled.
fn by_number(call: &Call, settings: &Settings, number: &str) -> Option<(ChannelId, Rc<str>)> {
    let Pick::Prefix(prefix) = &settings.pick else { return None };
    let wanted = format!("{}/{number}", prefix.trim_end_matches('/'));
    let own = call.chan.id();
    call.chan.core(|core| {
        let is_it = |channel: &&Channel| {
            let base = base_name(&channel.name);
            // Without a prefix the technology may be any.
            let fits =
                if prefix.is_empty() { resource(base) == number } else { base.eq_ignore_ascii_case(&wanted) };
            fits && settings.takes(core, own, channel)
        };
        core.channels().find(is_it).map(|channel| (channel.id, channel.name.clone()))
    })
}

/// Waits a while for somebody to listen to; keys work meanwhile.
async fn wait_for_more(call: &Call, settings: &Settings) -> Result<Option<Outcome>, Stop> {
    let deadline = call.chan.now() + LOOK_EVERY;
    while let Some(event) = call.chan.event(Some(deadline)).await? {
        if let ChanEvent::Digit { digit, .. } = event
            && let Some(outcome) = leaves(call, settings, digit)
        {
            return Ok(Some(outcome));
        }
    }
    Ok(None)
}

/// How a digit ends the application, if it does.
fn leaves(call: &Call, settings: &Settings, digit: Digit) -> Option<Outcome> {
    let symbol = digit.to_char();
    if settings.exit == Some(symbol) {
        return Some(Ok(Flow::Continue));
    }
    if !settings.options.has('X') {
        return None;
    }
    let context = call.get("SPY_EXIT_CONTEXT").filter(|context| !context.is_empty());
    let context = context.unwrap_or_else(|| call.context());
    let exten = symbol.to_string();
    call.exists(&context, &exten).then(|| {
        call.stand_at(crate::pbx::Place::find(call, &context, &exten, 1));
        Ok(Flow::Jumped)
    })
}

/// Says whom the spy is going to hear.
async fn announce(call: &Call, settings: &Settings, name: &str) -> Result<(), Stop> {
    call.chan.play("beep", "").await?;
    let resource = resource(name);
    if settings.options.has('n') {
        let text = settings.options.arg('n').unwrap_or_default();
        let (mailbox, context) = text.split_once('@').unwrap_or((text, ""));
        let mailbox = if mailbox.is_empty() { resource } else { mailbox };
        let context = if context.is_empty() { "default" } else { context };
        let name = format!("{mailbox}@{context}");
        let account = call.chan.core(|core| core.settings.voicemail.find_text(&name).cloned());
        if let Some(account) = account
            && Visit::new(call).hear(&account, Sound::Greeting(Greeting::Name), "").await?.is_some()
        {
            return Ok(());
        }
    }
    let mut files = Vec::new();
    if !settings.options.has('s') {
        let tech = name.split_once('/').map_or("", |(tech, _)| tech).to_ascii_lowercase();
        let tech = if tech == "pjsip" { "sip" } else { &tech };
        files.extend(SPOKEN.contains(&tech).then(|| format!("spy-{tech}")));
    }
    let is_number = resource.chars().all(|c| c.is_ascii_digit());
    files.extend(if is_number { say::digits(resource) } else { say::spelled(resource) });
    say::play_all(call, files, "").await.map(drop)
}

/// Ends it, however the story ends.
struct Listening<'a>(&'a Chan);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.core(|core| core.spy_end(self.0.id()));
    }
}

/// Listens to one channel.
async fn listen(call: &Call, settings: &mut Settings, on: ChannelId) -> Result<Left, Stop> {
    let (chan, own) = (&call.chan, call.chan.id());
    if let Err(why) = chan.core(|core| core.spy_begin(own, on, settings.wish)) {
        call.log(Level::Notice, &format!("cannot listen: {why}"));
        // Nobody else may be there, and it would be tried again at once.
        chan.wait(LOOK_EVERY).await?;
        return Ok(Left::Next);
    }
    let _listening = Listening(chan);
    let mut number = String::new();
    loop {
        let digit = match chan.event(None).await? {
            Some(ChanEvent::Spied) => {
                if chan.core(|core| core.spy_follow(own)) {
                    continue;
                }
                return Ok(Left::Gone);
            }
            Some(ChanEvent::Digit { digit, .. }) => digit,
            _ => continue,
        };
        if let Some(outcome) = leaves(call, settings, digit) {
            return Ok(Left::Done(outcome));
        }
        let before = settings.wish;
        match digit.to_char() {
            symbol if symbol == settings.next => return Ok(Left::Next),
            '#' if !number.is_empty() => return Ok(Left::Number(number)),
            '#' => {
                settings.step = if settings.step == STEP_MAX { -STEP_MAX } else { settings.step + 1 };
                settings.wish.gain = Gain::of_step(settings.step);
            }
            symbol @ '4'..='6' if settings.options.has('d') => {
                settings.wish.voice = match symbol {
                    '4' => Voice::Silent,
                    '5' => Voice::Whisper,
                    _ => Voice::Barge,
                };
            }
            symbol if symbol.is_ascii_digit() && settings.takes_numbers() && number.len() < NUMBER_MAX => {
                number.push(symbol);
            }
            _ => {}
        }
        if settings.wish != before {
            chan.core(|core| core.spy_change(own, settings.wish));
        }
    }
}

/// What the spy hears goes to a file.
struct Recording<'a> {
    chan: &'a Chan,
    monitor: u32,
}

impl<'a> Recording<'a> {
    fn begin(call: &'a Call, settings: &Settings) -> Option<Self> {
        if !settings.options.has('r') {
            return None;
        }
        let chan = &call.chan;
        // A name, and no path: whoever may have a channel spied on chooses no place on the disk.
        let base = settings.options.arg('r').unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let base = if base.is_empty() { "chanspy" } else { base };
        let begun = chan.core(|core| {
            let seconds = core.services.wall.now_micros().div_euclid(1_000_000);
            let path = format!("{}.{seconds}", spooled(core, base));
            core.spy_record(chan.id(), &path, "raw")
        });
        match begun {
            Ok(monitor) => Some(Self { chan, monitor }),
            Err(why) => {
                call.log(Level::Warning, &why);
                None
            }
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.chan.core(|core| core.monitor_starve(self.chan.id(), self.monitor));
    }
}
