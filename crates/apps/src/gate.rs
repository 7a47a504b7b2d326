//! Applications that look before a call goes on: passwords, devices that are free, silence; and headers by their older name.

use core::time::Duration;

use base::{Cause, Command};
use call::{ChanEvent, DeviceState, Heard, Leg, Level, Request, Stop};

use crate::call_ctx::args;
use crate::flow::rows;
use crate::listen::SILENCE_THRESHOLD;
use crate::{AppRow, Call, Flow, Outcome, Run, hints};

/// Tries that Authenticate gives.
const TRIES: usize = 3;
/// Digits of a password when nothing is said.
const PASSWORD_DIGITS: usize = 254;
/// Largest file of passwords.
const PASSWORD_FILE_BYTES_MAX: usize = 64 * 1024;
/// Devices that one ChanIsAvail asks, as many as one Dial has destinations.
const DEVICES_MAX: usize = 128;
const ANY_DIGIT: &str = "0123456789*#ABCD";
/// Option letters of Authenticate and of ChanIsAvail.
pub(crate) const AUTHENTICATE_OPTIONS: &str = "adjmr";
pub(crate) const CHAN_IS_AVAIL_OPTIONS: &str = "ajst";

pub(crate) const ROWS: &[AppRow] = rows! {
    "Authenticate" "app_authenticate" Run::Story(|call, text| Box::pin(async move { authenticate(&call, &text).await })),
        "Asks for a password and ends the call after three wrong ones.", "Authenticate(password[,options[,maxdigits[,prompt]]])",
        "The caller types the password and '#', or maxdigits of digits; prompt is played instead of agent-pass. A password\n\
         that begins with '/' is a file with a password a line.\n\n\
         options:\n  \
         a  what was typed becomes the account code; with m the account of the line.\n  \
         d  the password is a family of the database, and what was typed a key of it.\n  \
         m  lines of the file are account:password, the password as its MD5 in hex.\n  \
         r  with d, the key is removed.\n\
         Plays auth-incorrect, auth-thankyou and vm-goodbye.";
    "ChanIsAvail" "app_chanisavail" Run::Now(chan_is_avail),
        "Looks which of several devices could be called.", "ChanIsAvail([Technology/Resource[&...][,options]])",
        "options:\n  \
         a  looks at all and gives all that could be called.\n  \
         s  a device that is in use cannot.\n  \
         t  only looks at states; nothing is set up.\n\
         Sets AVAILCHAN (name of the channel that was set up and taken down again), AVAILORIGCHAN (as it was written),\n\
         AVAILSTATUS (a number for each that was looked at, joined by &: with s or t its state, 0 unknown, 1 not in use,\n\
         2 in use, 3 busy, 4 invalid, 5 unavailable, 6 ringing, 7 ringing and in use, 8 on hold; else 0) and\n\
         AVAILCAUSECODE (why the last could not be set up).";
    "WaitForSilence" "app_waitforsilence" Run::Story(|call, text| Box::pin(async move { wait_for_silence(&call, &text).await })),
        "Waits until the caller is silent.", "WaitForSilence([silencerequired[,iterations[,timeout]]])",
        "Waits for silencerequired milliseconds of silence (1000), iterations times (1), for at most timeout seconds.\n\
         Sets WAITSTATUS (SILENCE TIMEOUT).";
    "SIPAddHeader" "chan_sip" Run::Now(add_header),
        "Adds a header to the calls made from this one.", "SIPAddHeader(Header: Content)",
        "Older name of Set(PJSIP_INHERITABLE_HEADER(add,Header)=Content).";
    "SIPRemoveHeader" "chan_sip" Run::Now(remove_header),
        "Removes headers that SIPAddHeader added.", "SIPRemoveHeader([Header])",
        "Those whose names begin so, or all. Older name of Set(PJSIP_INHERITABLE_HEADER(remove,Header*)=).";
};

/// Where passwords are.
enum Passwords {
    One(String),
    /// Lines of a file; of accounts and digests.
    Lines(String, bool),
    /// Keys of a family; removed when they were used.
    Family(String, bool),
}

impl Passwords {
    /// The account that a password opens, if it is right.
    fn account(&self, call: &Call, typed: &str) -> Option<String> {
        match self {
            Self::One(password) => (typed == password).then(|| typed.to_owned()),
            Self::Lines(text, false) => {
                text.lines().any(|line| line.trim() == typed).then(|| typed.to_owned())
            }
            Self::Lines(text, true) => {
                let digest = call.read(&format!("MD5({typed})"));
                let pairs = text.lines().filter_map(|line| line.trim().split_once(':'));
                let mut fitting = pairs.filter(|(_, known)| known.trim().eq_ignore_ascii_case(&digest));
                fitting.next().map(|(account, _)| account.to_owned())
            }
            Self::Family(family, remove) => call.chan.core(|core| {
                core.services.db.get(family, typed)?;
                if *remove {
                    core.services.db.delete(family, typed);
                }
                Some(typed.to_owned())
            }),
        }
    }
}

async fn authenticate(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index);
    if arg(0).is_empty() {
        call.log(Level::Warning, "Authenticate requires an argument (password)");
        return Ok(Flow::Hangup);
    }
    let options = dialplan::Options::parse(arg(1), AUTHENTICATE_OPTIONS);
    let passwords = match arg(0).strip_prefix('/') {
        Some(family) if options.has('d') => Passwords::Family(family.to_owned(), options.has('r')),
        Some(_) => {
            let read =
                |core: &mut call::Core| core.services.outside.file_text(arg(0), PASSWORD_FILE_BYTES_MAX);
            let Some(text) = call.chan.core(read) else {
                call.log(Level::Warning, &format!("Authenticate cannot read {}", arg(0)));
                return Ok(Flow::Hangup);
            };
            Passwords::Lines(text, options.has('m'))
        }
        None => Passwords::One(arg(0).to_owned()),
    };
    let most = arg(2).parse().ok().filter(|most| *most > 0).unwrap_or(PASSWORD_DIGITS).min(PASSWORD_DIGITS);
    call.answer_for_sound().await?;
    let mut prompt = if arg(3).is_empty() { "agent-pass" } else { arg(3) };
    for _ in 0..TRIES {
        let typed = password(call, prompt, most).await?;
        // An empty line of a file, or an empty key, is no password.
        let account = (!typed.is_empty()).then(|| passwords.account(call, &typed)).flatten();
        if let Some(account) = account {
            if options.has('a') {
                call.assign("CHANNEL(accountcode)", &account);
            }
            call.chan.play("auth-thankyou", "").await?;
            return Ok(Flow::Continue);
        }
        prompt = "auth-incorrect";
    }
    call.chan.play("vm-goodbye", "").await?;
    Ok(Flow::Hangup)
}

/// Digits up to `#`, or `most`, after a prompt if there is one.
pub(crate) async fn password(call: &Call, prompt: &str, most: usize) -> Result<String, Stop> {
    let chan = &call.chan;
    let (first, further) = chan.with(|c| (c.response_timeout_ms, c.digit_timeout_ms))?;
    let mut pressed = None;
    if !prompt.is_empty()
        && let Heard::Interrupted(digit, _) = chan.play(prompt, ANY_DIGIT).await?
    {
        pressed = Some(digit);
    }
    let mut typed = String::new();
    loop {
        let wait = if typed.is_empty() { first } else { further };
        let digit = match pressed.take() {
            Some(digit) => Some(digit),
            None => chan.digit(Duration::from_millis(u64::from(wait))).await?,
        };
        match digit.map(base::Digit::to_char) {
            None | Some('#') => return Ok(typed),
            Some(symbol) => typed.push(symbol),
        }
        if typed.len() >= most {
            return Ok(typed);
        }
    }
}

fn chan_is_avail(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let options = dialplan::Options::parse(args::nth(&parts, 1), CHAN_IS_AVAIL_OPTIONS);
    let (mut channels, mut written) = (Vec::new(), Vec::new());
    let (mut states, mut cause) = (Vec::new(), Cause::NONE);
    for device in args::nth(&parts, 0).split('&').map(str::trim).filter(|d| !d.is_empty()).take(DEVICES_MAX) {
        let Some((tech, resource)) = device.split_once('/') else {
            call.log(Level::Warning, &format!("ChanIsAvail: '{device}' is no Technology/Resource"));
            continue;
        };
        let looks = options.has('s') || options.has('t');
        let state = match looks {
            true => hints::device_state(call.chan.shard(), device),
            false => DeviceState::Unknown,
        };
        states.push((state as u8).to_string());
        let idle = matches!(state, DeviceState::NotInUse | DeviceState::Unknown);
        if !idle {
            continue;
        }
        if options.has('t') {
            channels.push(device.to_owned());
        } else {
            match set_up(call, tech, resource) {
                Ok(name) => {
                    cause = Cause::NONE;
                    channels.push(name);
                }
                Err(why) => {
                    cause = why;
                    continue;
                }
            }
        }
        written.push(device.to_owned());
        if !options.has('a') {
            break;
        }
    }
    call.set("AVAILCHAN", &channels.join("&"));
    call.set("AVAILORIGCHAN", &written.join("&"));
    call.set("AVAILSTATUS", &states.join("&"));
    call.set("AVAILCAUSECODE", &cause.0.to_string());
    Ok(Flow::Continue)
}

/// Sets a channel up and takes it down again: its name.
fn set_up(call: &Call, tech: &str, resource: &str) -> Result<String, Cause> {
    let shard = call.chan.shard();
    let request =
        Request { resource: resource.to_owned(), requestor: Some(call.chan.id()), ..Request::default() };
    let leg = Leg::new(shard.clone(), shard.request(tech, &request)?);
    let name = leg.chan().name().to_string();
    // Nobody has been called: it ends as one that was refused.
    leg.chan().core(|core| core.remote_hangup(leg.chan().id(), Cause::CALL_REJECTED, "SIP 603 Decline"));
    leg.end(Cause::CALL_REJECTED);
    Ok(name)
}

/// Ends the watch, however the application ends.
struct Watch<'a>(&'a Call);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let threshold = SILENCE_THRESHOLD;
        self.0.chan.media(|stream| Command::WatchSilence { stream, ms: 0, threshold });
    }
}

async fn wait_for_silence(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let ms = args::nth(&parts, 0).parse().ok().filter(|ms| *ms > 0).unwrap_or(1000_u32);
    let wanted = args::nth(&parts, 1).parse().ok().filter(|count| *count > 0).unwrap_or(1_u32);
    let timeout = args::seconds(args::nth(&parts, 2)).filter(|timeout| !timeout.is_zero());
    let deadline = timeout.map(|timeout| call.chan.now() + timeout);
    call.chan.media(|stream| Command::WatchSilence { stream, ms, threshold: SILENCE_THRESHOLD });
    let _watch = Watch(call);
    let mut heard = 0;
    while heard < wanted {
        match call.chan.event(deadline).await? {
            Some(ChanEvent::Silence(_)) => heard += 1,
            Some(_) => {}
            None => {
                call.set("WAITSTATUS", "TIMEOUT");
                return Ok(Flow::Continue);
            }
        }
    }
    call.set("WAITSTATUS", "SILENCE");
    Ok(Flow::Continue)
}

fn add_header(call: &Call, text: &str) -> Outcome {
    match text.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if !name.is_empty() && !name.contains(['(', ')', ',']) => {
            call.assign(&format!("PJSIP_INHERITABLE_HEADER(add,{name})"), value);
        }
        _ => call.log(Level::Warning, &format!("SIPAddHeader wants Header: Content, not '{text}'")),
    }
    Ok(Flow::Continue)
}

fn remove_header(call: &Call, text: &str) -> Outcome {
    let name = text.trim().trim_end_matches(':');
    if name.contains(['(', ')', ',']) {
        call.log(Level::Warning, &format!("SIPRemoveHeader: '{name}' is no header"));
    } else {
        call.assign(&format!("PJSIP_INHERITABLE_HEADER(remove,{name}*)"), "");
    }
    Ok(Flow::Continue)
}
