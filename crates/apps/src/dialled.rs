//! Applications that let the caller dial a number and look at it: DISA, ReadExten, PrivacyManager.

use core::time::Duration;

use base::{Cause, Digit};
use call::{Chan, ChanState, Heard, Level, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, pbx};

/// Digits of one number.
const NUMBER_MAX: usize = 80;
/// Largest file of passwords.
const FILE_BYTES_MAX: usize = 64 * 1024;
/// How long the tone of a refusal is heard.
const REFUSAL: Duration = Duration::from_secs(10);
/// How long PrivacyManager waits for a digit.
const PRIVACY_WAIT: Duration = Duration::from_millis(3200);
/// Most attempts of it, and digits of a number.
const RETRIES_MAX: u32 = 100;
const PHONE_MAX: usize = 29;
const ANY_DIGIT: &str = "0123456789*#ABCD";

pub(crate) const ROWS: &[AppRow] = rows! {
    "DISA" "app_disa" Run::Story(|call, text| Box::pin(async move { disa(&call, &text).await })),
        "Gives a caller from outside a dial tone inside, after a password.",
        "DISA(passcode|filename[,context[,cid[,mailbox[@context][,options]]]])",
        "Plays a dial tone, takes a password and '#', plays another one and takes an extension of context (disa), to which the\n\
         call goes. passcode is digits, or no-password: whoever knows the number then calls at your expense. Anything else is\n\
         a file with lines of passcode, and after commas context, cid and mailbox of their own; what is behind # or ; at a\n\
         line's start is none. cid becomes the caller id; while mailbox has new messages the second tone is the one of\n\
         that. The password becomes the account code.\n\n\
         options:\n  \
         n  does not answer.\n  \
         p  '#' ends the extension.\n\
         After a wrong password, an extension that is not there or no digit in time the call goes to extension i of the\n\
         context with INVALID_EXTEN, or hears congestion and ends.";
    "ReadExten" "app_readexten" Run::Story(|call, text| Box::pin(async move { read_exten(&call, &text).await })),
        "Reads an extension of the caller into a variable.",
        "ReadExten(variable[,filename[,context[,option[,timeout]]]])",
        "Takes digits as long as they may become an extension of context (the present one), while the file plays.\n\n\
         option:\n  \
         s  returns at once when the line is not up.\n  \
         i  the filename is a tone of indications.conf.\n  \
         n  reads even when the line is not up.\n\
         timeout  seconds to wait for each digit (the channel's own digit and response timeouts).\n\
         Sets READEXTENSTATUS (OK TIMEOUT INVALID SKIP ERROR HANGUP). When nothing was dialled the variable is t; when there\n\
         is no such extension it is i, and INVALID_EXTEN what was dialled.";
    "PrivacyManager" "app_privacy" Run::Story(|call, text| Box::pin(async move { privacy_manager(&call, &text).await })),
        "Asks a caller without a number for one.",
        "PrivacyManager([maxretries[,minlength[,options[,context]]]])",
        "Does nothing when the caller has a number. Else it answers and asks for one up to maxretries times (3), of at least\n\
         minlength digits (10), which has to be an extension of context if one is given. It becomes the caller id, with the\n\
         name Privacy Manager. There are no options.\n\
         Sets PRIVACYMGRSTATUS (SUCCESS FAILED). Plays privacy-unident, privacy-prompt, privacy-incorrect and\n\
         privacy-thankyou.";
};

/// A tone, until its end.
struct Tone<'a>(&'a Chan);

impl Drop for Tone<'_> {
    fn drop(&mut self) {
        self.0.stop_sound();
    }
}

/// Who may dial, and as whom.
#[derive(Clone, Default)]
struct Pass {
    code: String,
    context: String,
    caller: String,
    mailbox: String,
}

impl Pass {
    /// A line of a file, whose parts stand in for those of the application.
    fn of_line(line: &str, general: &Self) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        let mut words = line.split([',', '|']).map(|word| word.trim().to_owned());
        let code = words.next().filter(|code| !code.is_empty())?;
        let mut or =
            |general: &String| words.next().filter(|word| !word.is_empty()).unwrap_or(general.clone());
        Some(Self {
            code,
            context: or(&general.context),
            caller: or(&general.caller),
            mailbox: or(&general.mailbox),
        })
    }
}

async fn disa(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).to_owned();
    if arg(0).is_empty() {
        call.log(Level::Warning, "DISA requires an argument (passcode or file)");
        return Ok(Flow::Hangup);
    }
    let options = Options::parse(args::nth(&parts, 4), "np");
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("option {letter}: there is none"));
    }
    let context = if arg(1).is_empty() { "disa".to_owned() } else { arg(1) };
    let general = Pass { code: arg(0), context, caller: arg(2), mailbox: arg(3) };
    let passes = if general.code.eq_ignore_ascii_case("no-password") {
        None
    } else if general.code.starts_with(|c: char| c.is_ascii_digit()) {
        Some(vec![general.clone()])
    } else {
        let Some(text) =
            call.chan.core(|core| core.services.outside.file_text(&general.code, FILE_BYTES_MAX))
        else {
            call.log(Level::Warning, &format!("DISA cannot read {}", general.code));
            return Ok(Flow::Hangup);
        };
        Some(text.lines().filter_map(|line| Pass::of_line(line, &general)).collect())
    };
    if !options.has('n') {
        call.answer_for_sound().await?;
    }
    let pass = match passes {
        None => Some(general.clone()),
        Some(passes) => {
            let typed = number(call, "dial", |typed| typed.ends_with('#')).await?;
            let code = typed.strip_suffix('#').unwrap_or_default();
            let pass = passes.into_iter().find(|pass| pass.code == code);
            if pass.is_some() {
                call.assign("CHANNEL(accountcode)", code);
            } else {
                call.log(Level::Warning, "DISA: a wrong password was dialled");
            }
            pass
        }
    };
    let Some(Pass { context, caller, mailbox, .. }) = pass else {
        return refuse(call, &general.context, "").await;
    };
    let has_new = |core: &mut call::Core| core.mailbox(&mailbox).is_some_and(|counts| counts.new > 0);
    let waits = !mailbox.is_empty() && call.chan.core(has_new);
    let tone = if waits { "dialrecall" } else { "dial" };
    let ends = |typed: &str| {
        let is_ended = options.has('p') && typed.ends_with('#');
        is_ended || !call.match_more(&context, typed)
    };
    let typed = number(call, tone, ends).await?;
    let exten = if options.has('p') { typed.strip_suffix('#').unwrap_or(&typed) } else { &typed };
    if exten.is_empty() || !call.exists(&context, exten) {
        return refuse(call, &context, exten).await;
    }
    if !caller.is_empty() {
        call.assign("CALLERID(all)", &caller);
    }
    call.stand_at(pbx::Place::find(call, &context, exten, 1));
    Ok(Flow::Jumped)
}

/// A number that is dialled while a tone plays, up to where `ends` says so or no digit comes.
async fn number(call: &Call, tone: &str, ends: impl Fn(&str) -> bool) -> Result<String, Stop> {
    let chan = &call.chan;
    let (first, further) = chan.with(|c| (c.response_timeout_ms, c.digit_timeout_ms))?;
    let mut playing = chan.start_tone(tone).then(|| Tone(chan));
    let mut typed = String::new();
    while typed.len() < NUMBER_MAX {
        let wait = if typed.is_empty() { first } else { further };
        let Some(digit) = chan.digit(Duration::from_millis(wait.into())).await? else { break };
        drop(playing.take());
        typed.push(digit.to_char());
        if ends(&typed) {
            break;
        }
    }
    Ok(typed)
}

/// The call goes to extension `i`, or hears that it goes nowhere.
async fn refuse(call: &Call, context: &str, exten: &str) -> Outcome {
    if call.exists(context, "i") {
        call.set("INVALID_EXTEN", exten);
        call.stand_at(pbx::Place::find(call, context, "i", 1));
        return Ok(Flow::Jumped);
    }
    call.refuse_with("congestion", Cause::NORMAL_CIRCUIT_CONGESTION, Some(REFUSAL)).await?;
    Ok(Flow::Hangup)
}

async fn read_exten(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index);
    if arg(0).is_empty() {
        call.log(Level::Warning, "ReadExten requires an argument (variable)");
        call.set("READEXTENSTATUS", "ERROR");
        return Ok(Flow::Continue);
    }
    let options = Options::parse(arg(3), "sin");
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("option {letter}: there is none"));
    }
    if call.chan.state() != ChanState::Up {
        if options.has('s') {
            call.set(arg(0), "");
            call.set("READEXTENSTATUS", "SKIP");
            return Ok(Flow::Continue);
        }
        if !options.has('n') {
            call.answer_for_sound().await?;
        }
    }
    let context = if arg(2).is_empty() { call.context() } else { arg(2).to_owned() };
    let each = args::seconds(arg(4)).filter(|each| !each.is_zero());
    let typed = match dialled(call, arg(1), options.has('i'), &context, each).await {
        Ok(typed) => typed,
        Err(stop) => {
            call.set("READEXTENSTATUS", "HANGUP");
            return Err(stop);
        }
    };
    let (status, value) = match typed.as_str() {
        "" => ("TIMEOUT", "t"),
        exten if call.exists(&context, exten) => ("OK", exten),
        exten => {
            call.set("INVALID_EXTEN", exten);
            ("INVALID", "i")
        }
    };
    call.set(arg(0), value);
    call.set("READEXTENSTATUS", status);
    Ok(Flow::Continue)
}

/// What is dialled of an extension of a context, while a file or a tone plays.
async fn dialled(
    call: &Call,
    file: &str,
    is_tone: bool,
    context: &str,
    each: Option<Duration>,
) -> Result<String, Stop> {
    let chan = &call.chan;
    let (first, further) = chan.with(|c| (c.response_timeout_ms, c.digit_timeout_ms))?;
    let mut pressed: Option<Digit> = None;
    let mut tone = None;
    if is_tone {
        tone = chan.start_tone(file).then(|| Tone(chan));
    } else if !file.is_empty()
        && let Heard::Interrupted(digit, _) = chan.play(file, ANY_DIGIT).await?
    {
        pressed = Some(digit);
    }
    let mut typed = String::new();
    while typed.len() < NUMBER_MAX {
        let wait = if typed.is_empty() { first } else { further };
        let wait = each.unwrap_or(Duration::from_millis(wait.into()));
        let digit = match pressed.take() {
            Some(digit) => digit,
            None => match chan.digit(wait).await? {
                Some(digit) => digit,
                None => break,
            },
        };
        drop(tone.take());
        typed.push(digit.to_char());
        if !call.match_more(context, &typed) {
            // A '#' that belongs to no extension ends one.
            if !call.exists(context, &typed) && typed.ends_with('#') {
                typed.pop();
            }
            break;
        }
    }
    Ok(typed)
}

async fn privacy_manager(call: &Call, text: &str) -> Outcome {
    if call.chan.with(|c| c.caller.number.as_ref().is_some_and(|number| !number.is_empty()))? {
        call.log(Level::Verbose(3), "the caller has a number");
        return Ok(Flow::Continue);
    }
    let parts = args::split(text);
    let count = |index: usize, common: u32| {
        let text = args::nth(&parts, index);
        let count = if text.is_empty() { Some(common) } else { text.parse().ok().filter(|count| *count > 0) };
        count.unwrap_or_else(|| {
            call.log(
                Level::Warning,
                &format!("PrivacyManager: '{text}' is no number above 0; it is {common}"),
            );
            common
        })
    };
    let (retries, least) = (count(0, 3).min(RETRIES_MAX), count(1, 10) as usize);
    let context = args::nth(&parts, 3);
    call.answer_for_sound().await?;
    call.chan.wait_keeping(call.chan.now() + Duration::from_secs(1), |_| false).await?;
    call.chan.play("privacy-unident", "").await?;
    for _ in 0..retries {
        let number = phone(call, "privacy-prompt").await?;
        if number.len() >= least && (context.is_empty() || call.exists(context, &number)) {
            call.chan.play("privacy-thankyou", "").await?;
            call.assign("CALLERID(num)", &number);
            call.assign("CALLERID(name)", "Privacy Manager");
            call.set("PRIVACYMGRSTATUS", "SUCCESS");
            return Ok(Flow::Continue);
        }
        call.chan.play("privacy-incorrect", "").await?;
    }
    call.set("PRIVACYMGRSTATUS", "FAILED");
    Ok(Flow::Continue)
}

/// Digits up to `#` or a pause, after a prompt.
async fn phone(call: &Call, prompt: &str) -> Result<String, Stop> {
    let mut pressed = match call.chan.play(prompt, ANY_DIGIT).await? {
        Heard::Interrupted(digit, _) => Some(digit),
        Heard::Finished | Heard::Failed => None,
    };
    let mut typed = String::new();
    while typed.len() < PHONE_MAX {
        let digit = match pressed.take() {
            Some(digit) => Some(digit),
            None => call.chan.digit(PRIVACY_WAIT).await?,
        };
        match digit.map(Digit::to_char) {
            None | Some('#') => break,
            Some(symbol) => typed.push(symbol),
        }
    }
    Ok(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_file_say_what_they_do_not_leave_to_the_application() {
        let general =
            Pass { code: "f".into(), context: "disa".into(), caller: "1".into(), mailbox: "2".into() };
        for (line, expected) in [
            ("4711", Some(["4711", "disa", "1", "2"])),
            ("4711,out", Some(["4711", "out", "1", "2"])),
            (" 4711 , , 99 , 6001@office ", Some(["4711", "disa", "99", "6001@office"])),
            ("4711|out|99", Some(["4711", "out", "99", "2"])),
            ("# none", None),
            ("; none", None),
            ("", None),
        ] {
            let pass = Pass::of_line(line, &general);
            let words = pass.map(|pass| [pass.code, pass.context, pass.caller, pass.mailbox]);
            assert_eq!(words, expected.map(|words| words.map(str::to_owned)), "{line}");
        }
    }
}
