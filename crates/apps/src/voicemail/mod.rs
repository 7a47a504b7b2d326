//! Voicemail: callers leave messages, owners hear them. Mailboxes are `call::voicemail`'s, their files somebody else's.

mod greet;
mod leave;
mod letter;
mod login;
mod menu;
mod message;
mod mini;
mod record;
mod small;

use core::time::Duration;
use std::sync::Arc;

use base::{Digit, Gain};
use call::voicemail::{Account, Greeting, Job, Posted, Refusal, Sound, Voicemail};
use call::{Heard, Level, Stop};

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, say};

pub(crate) use leave::VOICEMAIL_OPTIONS;
pub(crate) use menu::MAIN_OPTIONS;
pub(crate) use mini::{read_account, read_counter, write_counter};
pub(crate) use small::{AUTHENTICATE_OPTIONS, read_count, read_exists, read_info};

/// How long somebody has to press a key after he was asked: what the field gives.
const KEY_WAIT: Duration = Duration::from_secs(6);
/// Every key of a phone.
const ANY_DIGIT: &str = "0123456789*#ABCD";
/// Mailboxes that one call leaves its message in, or a message is forwarded to, at once.
const BOXES_MAX: usize = 64;

pub(crate) const ROWS: &[AppRow] = rows! {
    "VoiceMail" "app_voicemail" Run::Story(|call, text| Box::pin(async move { leave::voicemail(&call, &text).await })),
        "Takes a message.", "VoiceMail(mailbox[@context][&mailbox2[@context]...][,options])",
        "Plays a greeting and records a message for one mailbox or several. '#' ends greeting and message, '0' goes to the\n\
         extension o where the mailbox has an operator, '*' to the extension a.\n\n\
         options:\n  \
         b  greets as busy.\n  \
         u  greets as unavailable.\n  \
         d(context)  a digit while the greeting plays goes to that extension (of this context).\n  \
         e  answers only when it records.\n  \
         g(gain)  records louder by so many decibels, or quieter (-6).\n  \
         s  says no instructions.\n  \
         S  says none when the owner has recorded a greeting.\n  \
         t(file)  plays this instead of the beep; empty: nothing.\n  \
         U  marks the message as urgent.\n  \
         P  as U.\n\
         Sets VMSTATUS (SUCCESS USEREXIT FAILED). VM_CATEGORY is written into the message.";
    "VoiceMailMain" "app_voicemail" Run::Story(|call, text| Box::pin(async move { menu::main(&call, &text).await })),
        "Lets the owner of a mailbox hear his messages.", "VoiceMailMain([mailbox][@context][,options])",
        "Asks for mailbox, if there is none, and PIN.\n\n\
         options:\n  \
         p  the mailbox is the beginning of the one that is asked for.\n  \
         s  asks for no PIN.\n  \
         g(gain)  records greetings and messages louder by so many decibels, or quieter (-6).\n  \
         a(folder)  begins with this folder (a digit or a name).\n\
         '*' instead of mailbox or PIN goes to the extension a.";
    "VoiceMailPlayMsg" "app_voicemail" Run::Story(|call, text| Box::pin(async move { small::play_message(&call, &text).await })),
        "Plays one message.", "VoiceMailPlayMsg([mailbox][@context],msg_id)",
        "msg_id is the one in the message's text. Sets VOICEMAIL_PLAYBACKSTATUS (SUCCESS FAILED).";
    "VMAuthenticate" "app_voicemail" Run::Story(|call, text| Box::pin(async move { small::authenticate(&call, &text).await })),
        "Asks for mailbox and PIN and goes on.", "VMAuthenticate([mailbox][@context][,options])",
        "As VoiceMailMain asks; a call that does not know them ends.\n\n\
         options:\n  s  says nothing before it asks.\n\
         Sets AUTH_MAILBOX and AUTH_CONTEXT.";
    "VMSayName" "app_voicemail" Run::Story(|call, text| Box::pin(async move { small::say_name(&call, &text).await })),
        "Says who owns a mailbox.", "VMSayName(mailbox[@context])",
        "Plays the name that was recorded, or says the digits of the mailbox.";
    "VoicemailGreeting" "app_voicemail" Run::Story(|call, text| Box::pin(async move { small::greeting(&call, &text).await })),
        "Plays a greeting.", "VoicemailGreeting(mailbox[@context][,unavail|busy|temp|greet])",
        "Sets VMGREETSTATUS (SUCCESS FAILED).";
    "MinivmGreet" "app_minivm" Run::Story(|call, text| Box::pin(async move { mini::greet(&call, &text).await })),
        "Plays the greeting of an account.", "MinivmGreet(user@domain[,options])",
        "The temporary greeting goes before the others. '0' goes to the extension o and '*' to a, where they are.\n\n\
         options:\n  \
         b  greets as busy.\n  \
         u  greets as unavailable.\n  \
         s  says no instructions.\n\
         Sets MVM_GREET_STATUS (SUCCESS USEREXIT FAILED).";
    "MinivmRecord" "app_minivm" Run::Story(|call, text| Box::pin(async move { mini::record(&call, &text).await })),
        "Records a message for an account.", "MinivmRecord(user@domain[,options])",
        "An address that minivm.conf does not have is recorded for with the general rules. Who hangs up has said what he\n\
         wanted: the extension h goes on with it.\n\n\
         options:\n  \
         0  '0' goes to the extension o, where it is.\n  \
         *  '*' goes to the extension a, where it is.\n  \
         g(gain)  records louder by so many decibels, or quieter (-6).\n\
         Sets MVM_RECORD_STATUS (SUCCESS USEREXIT FAILED), MVM_FILENAME (without extension), MVM_FORMAT and MVM_DURATION.";
    "MinivmNotify" "app_minivm" Run::Story(|call, text| Box::pin(async move { mini::notify(&call, &text).await })),
        "Mails what was recorded.", "MinivmNotify(user@domain[,template])",
        "Writes a letter, with MVM_FILENAME where the template attaches it, and a page to who has a pager.\n\
         Sets MVM_NOTIFY_STATUS (SUCCESS FAILED).";
    "MinivmDelete" "app_minivm" Run::Story(|call, text| Box::pin(async move { mini::delete(&call, &text).await })),
        "Removes what was recorded.", "MinivmDelete([filename])",
        "Removes MVM_FILENAME. Another name has to be one that MinivmRecord gave.\n\
         Sets MVM_DELETE_STATUS (SUCCESS FAILED).";
    "MinivmAccMess" "app_minivm" Run::Story(|call, text| Box::pin(async move { mini::account_message(&call, &text).await })),
        "Records a greeting of an account.", "MinivmAccMess(user@domain[,option])",
        "option: b busy, u unavailable, t temporary, n the name.\n\
         Sets MVM_ACCMESS_STATUS (SUCCESS FAILED).";
    "MinivmMWI" "app_minivm" Run::Now(mini::lamp),
        "Tells how many messages there are.", "MinivmMWI(user@domain,urgent,new,old)",
        "Lamps that watch user@domain show it.";
};

/// A call at somebody's mailboxes.
pub(crate) struct Visit<'a> {
    call: &'a Call,
    vm: Arc<Voicemail>,
    /// How loud what is said is recorded.
    gain: Gain,
}

impl<'a> Visit<'a> {
    pub(crate) fn new(call: &'a Call) -> Self {
        Self::with(call, call.chan.core(|core| core.settings.voicemail.clone()))
    }
    fn with(call: &'a Call, vm: Arc<Voicemail>) -> Self {
        Self { call, vm, gain: Gain::UNITY }
    }
    /// With what the option `g` says of recordings.
    fn recording(self, letters: &dialplan::Options) -> Self {
        let decibels = letters.arg('g').unwrap_or_default().trim();
        match decibels.parse::<f64>() {
            Ok(decibels) if decibels.is_finite() => Self { gain: Gain::of_decibels(decibels), ..self },
            _ if letters.has('g') => {
                self.warn(&format!(
                    "g({decibels}): that is no number of decibels; what is said is recorded as it comes"
                ));
                self
            }
            _ => self,
        }
    }
    /// A mailbox, `6001@office` or `6001`. One that is not known may have become a row of a database since.
    async fn find_text(&self, text: &str) -> Result<Option<Arc<Account>>, Stop> {
        if let Some(account) = self.vm.find_text(text) {
            return Ok(Some(account.clone()));
        }
        self.call.chan.while_up(self.call.chan.shard().ask_rows_again()).await?;
        Ok(self.call.chan.core(|core| core.settings.voicemail.find_text(text).cloned()))
    }
    fn warn(&self, text: &str) {
        self.call.log(Level::Warning, text);
    }
    /// Has a job done; what went wrong is logged, but for what is simply not there or has no room.
    async fn post(&self, job: Job) -> Result<Posted, Refusal> {
        let done = self.call.chan.post(job).await;
        if let Err(Refusal::Failed(why)) = &done {
            self.call.log(Level::Error, why);
        }
        done
    }
    /// Plays these one after the other; the digit that ended them.
    async fn say(&self, files: &[&str], stop_on: &str) -> Result<Option<Digit>, Stop> {
        let files = files.iter().filter(|file| !file.is_empty()).map(|file| (*file).to_owned()).collect();
        say::play_all(self.call, files, stop_on).await
    }
    /// Plays a sound of a mailbox; `None`: there is none.
    pub(crate) async fn hear(
        &self,
        account: &Account,
        sound: Sound,
        stop_on: &str,
    ) -> Result<Option<Heard>, Stop> {
        let format = self.call.chan.with(|c| c.format)?;
        match self.post(Job::Load(account.name.clone(), sound, format)).await {
            Ok(Posted::Clip(clip)) => self.call.chan.play_clip(clip, 0, stop_on).await.map(Some),
            _ => Ok(None),
        }
    }
    async fn has_greeting(&self, account: &Account, greeting: Greeting) -> bool {
        matches!(self.post(Job::HasGreeting(account.name.clone(), greeting)).await, Ok(Posted::Is(true)))
    }
    /// Says these and waits for a key; `None`: none came.
    async fn ask(&self, files: &[&str]) -> Result<Option<char>, Stop> {
        let pressed = match self.say(files, ANY_DIGIT).await? {
            Some(digit) => Some(digit),
            None => self.call.chan.digit(KEY_WAIT).await?,
        };
        Ok(pressed.map(Digit::to_char))
    }
    /// Says who a mailbox belongs to: the recorded name, or its digits.
    async fn say_owner(&self, account: &Account, stop_on: &str) -> Result<Option<Digit>, Stop> {
        if let Some(heard) = self.hear(account, Sound::Greeting(Greeting::Name), stop_on).await? {
            return Ok(pressed(heard));
        }
        say::play_all(self.call, say::digits(account.name.mailbox()), stop_on).await
    }
    /// Goes to an extension that callers leave by: `o`, `a` or a number, where there is one.
    fn leave_to(&self, context: &str, exten: &str) -> Option<Outcome> {
        let context = match context {
            "" => self.context(),
            context => context.to_owned(),
        };
        (self.call.exists(&context, exten) && self.call.goto(&format!("{context},{exten},1")).is_ok())
            .then_some(Ok(Flow::Jumped))
    }
    /// The context in which callers leave by an extension.
    fn exit_context(&self, account: &Account) -> String {
        match account.rules.exitcontext.as_str() {
            "" => self.context(),
            context => context.to_owned(),
        }
    }
    /// The context that the call stands in.
    fn context(&self) -> String {
        self.call.settle();
        self.call.chan.with(|c| c.location.context.clone()).unwrap_or_default()
    }
}

/// The digit that interrupted a sound.
fn pressed(heard: Heard) -> Option<Digit> {
    match heard {
        Heard::Interrupted(digit, _) => Some(digit),
        Heard::Finished | Heard::Failed => None,
    }
}

/// Arguments and option letters; letters that nobody knows are said.
fn options(call: &Call, text: &str, known: &str) -> (String, dialplan::Options) {
    let parts = args::split(text);
    let options = dialplan::Options::parse(args::nth(&parts, 1), known);
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("there is no option '{letter}'"));
    }
    (args::nth(&parts, 0).to_owned(), options)
}
