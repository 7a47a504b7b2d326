//! `VoiceMail`: a greeting, and a message.

use core::time::Duration;
use std::sync::Arc;

use base::Digit;
use call::voicemail::{Account, Delivery, Folder, Greeting, Info, Job, Message, Posted, Refusal, Sound};
use call::{ChanState, Level, Stop};

use super::record::{Ended, Recorded};
use super::{BOXES_MAX, Visit, options, pressed};
use crate::{Call, Flow, Outcome};

/// Option letters of VoiceMail.
pub(crate) const VOICEMAIL_OPTIONS: &str = "bdegPsStuU";

/// How VoiceMail was asked to take a message.
#[derive(Default)]
pub(super) struct Wish {
    pub(super) greeting: Option<Greeting>,
    pub(super) silent: bool,
    pub(super) silent_after_own: bool,
    pub(super) early: bool,
    pub(super) urgent: bool,
    pub(super) beep: String,
    /// Where digits lead that are pressed while the greeting plays.
    pub(super) digits_to: Option<String>,
}

/// How a message was taken.
enum Taken {
    Kept,
    Failed,
    /// The caller leaves by an extension of a context.
    Left((String, String)),
}

pub(super) async fn voicemail(call: &Call, text: &str) -> Outcome {
    let (boxes, letters) = options(call, text, VOICEMAIL_OPTIONS);
    if boxes.is_empty() {
        call.log(Level::Warning, "VoiceMail requires an argument (mailbox)");
        call.set("VMSTATUS", "FAILED");
        return Ok(Flow::Continue);
    }
    let wish = Wish {
        greeting: match (letters.has('u'), letters.has('b')) {
            (true, _) => Some(Greeting::Unavailable),
            (false, true) => Some(Greeting::Busy),
            (false, false) => None,
        },
        silent: letters.has('s'),
        silent_after_own: letters.has('S'),
        early: letters.has('e'),
        urgent: letters.has('U') || letters.has('P'),
        beep: if letters.has('t') { letters.arg('t').unwrap_or_default() } else { "beep" }.to_owned(),
        digits_to: letters.has('d').then(|| letters.arg('d').unwrap_or_default().to_owned()),
    };
    if !(letters.has('e') && call.chan.state() != ChanState::Up) {
        call.answer_for_sound().await?;
    }
    let visit = Visit::new(call).recording(&letters);
    let mut accounts = Vec::new();
    for name in boxes.split('&').take(BOXES_MAX) {
        match visit.find_text(name).await? {
            Some(account) => accounts.push(account),
            None => visit.warn(&format!("No entry in voicemail config file for '{}'", name.trim())),
        }
    }
    let Some(first) = accounts.first().cloned() else {
        call.set("VMSTATUS", "FAILED");
        return Ok(Flow::Continue);
    };
    let taken = {
        // Told, where it was, before the call goes on elsewhere.
        let _visits = AtMailboxes::new(call, &accounts);
        visit.take_message(&first, &accounts, &wish).await
    };
    match taken {
        Ok(Taken::Kept) => call.set("VMSTATUS", "SUCCESS"),
        Ok(Taken::Failed) => call.set("VMSTATUS", "FAILED"),
        Ok(Taken::Left((context, exten))) => {
            call.set("VMSTATUS", "USEREXIT");
            return visit.leave_to(&context, &exten).unwrap_or(Ok(Flow::Continue));
        }
        Err((kept, stop)) => {
            call.set("VMSTATUS", if kept { "SUCCESS" } else { "FAILED" });
            return Err(stop);
        }
    }
    Ok(Flow::Continue)
}

/// The channel is at these mailboxes: what watchers are told of them comes from there, when it leaves.
pub(super) struct AtMailboxes<'a> {
    call: &'a Call,
    names: Vec<String>,
    /// What is in them is told although nothing has changed.
    pub(super) tells: bool,
}

impl<'a> AtMailboxes<'a> {
    pub(super) fn new(call: &'a Call, accounts: &[Arc<Account>]) -> Self {
        let names: Vec<String> = accounts.iter().map(|account| account.name.to_string()).collect();
        call.chan.core(|core| names.iter().for_each(|name| core.mailbox_visit(name, call.chan.id())));
        Self { call, names, tells: false }
    }
}

impl Drop for AtMailboxes<'_> {
    fn drop(&mut self) {
        let (id, tells) = (self.call.chan.id(), self.tells);
        self.call.chan.core(|core| {
            self.names.iter().for_each(|name| core.mailbox_visited(name, id, tells));
        });
    }
}

/// The call ended before anything was kept.
fn nothing_kept(stop: Stop) -> (bool, Stop) {
    (false, stop)
}

impl Visit<'_> {
    /// `Err`: the call ended; whether a message was kept.
    async fn take_message(
        &self,
        account: &Account,
        all: &[Arc<Account>],
        wish: &Wish,
    ) -> Result<Taken, (bool, Stop)> {
        let call = self.call;
        if wish.early && call.chan.state() != ChanState::Up {
            call.chan.indicate(&call::Indication::Progress);
        }
        let exit = self.exit_context(account);
        let mut keys = "#".to_owned();
        let (operator, escape) = (account.rules.operator && call.exists(&exit, "o"), call.exists(&exit, "a"));
        keys.push_str(if operator { "0" } else { "" });
        keys.push_str(if escape { "*" } else { "" });
        if let Some(context) = &wish.digits_to {
            let context = if context.is_empty() { &exit } else { context };
            keys.extend("0123456789".chars().filter(|digit| call.exists(context, &digit.to_string())));
        }
        let heard = self.greet(account, wish, &keys).await.map_err(nothing_kept)?;
        match heard.map(Digit::to_char) {
            Some('0') if operator => return Ok(self.left(&exit, "o")),
            Some('*') => return Ok(self.left(&exit, "a")),
            Some(digit @ '0'..='9') => {
                let context = wish.digits_to.clone().filter(|context| !context.is_empty()).unwrap_or(exit);
                return Ok(self.left(&context, &digit.to_string()));
            }
            _ => {}
        }
        let folder = if wish.urgent { Folder::URGENT } else { Folder::INBOX };
        let has_room = match self.post(Job::List(account.name.clone(), folder)).await {
            Ok(Posted::Messages(messages)) => (messages.len() as u64) < u64::from(account.rules.maxmsg),
            _ => false,
        };
        if !has_room {
            self.warn(&format!("No more messages possible in mailbox {}", account.name));
            self.say(&["vm-mailboxfull"], "").await.map_err(nothing_kept)?;
            return Ok(Taken::Failed);
        }
        call.answer_for_sound().await.map_err(nothing_kept)?;
        self.take_down(account, all, wish, operator.then_some(exit.as_str())).await
    }
    fn left(&self, context: &str, exten: &str) -> Taken {
        let there = if context.is_empty() { self.context() } else { context.to_owned() };
        match self.call.exists(&there, exten) {
            true => Taken::Left((there, exten.to_owned())),
            false => Taken::Failed,
        }
    }
    /// The greeting and what is to be done; the key that ended it.
    pub(super) async fn greet(
        &self,
        account: &Account,
        wish: &Wish,
        keys: &str,
    ) -> Result<Option<Digit>, Stop> {
        let mut own = false;
        if let Some(heard) = self.hear(account, Sound::Greeting(Greeting::Temporary), keys).await? {
            own = true;
            if let Some(digit) = pressed(heard) {
                return Ok(Some(digit));
            }
        } else if let Some(greeting) = wish.greeting {
            let heard = self.hear(account, Sound::Greeting(greeting), keys).await?;
            own = heard.is_some();
            let digit = match heard {
                Some(heard) => pressed(heard),
                None => self.made_up(account, greeting, keys).await?,
            };
            if digit.is_some() {
                return Ok(digit);
            }
        }
        if wish.silent || (wish.silent_after_own && own) {
            return Ok(None);
        }
        self.say(&["vm-intro"], keys).await
    }
    /// A greeting for who has none.
    async fn made_up(
        &self,
        account: &Account,
        greeting: Greeting,
        keys: &str,
    ) -> Result<Option<Digit>, Stop> {
        let named = self.has_greeting(account, Greeting::Name).await;
        if !named && let Some(digit) = self.say(&["vm-theperson"], keys).await? {
            return Ok(Some(digit));
        }
        if let Some(digit) = self.say_owner(account, keys).await? {
            return Ok(Some(digit));
        }
        let why = if greeting == Greeting::Busy { "vm-isonphone" } else { "vm-isunavail" };
        self.say(&[why], keys).await
    }
    /// Records, lets the caller change his mind, and keeps the message.
    async fn take_down(
        &self,
        account: &Account,
        all: &[Arc<Account>],
        wish: &Wish,
        operator: Option<&str>,
    ) -> Result<Taken, (bool, Stop)> {
        let longest =
            Some(account.rules.maxsecs).filter(|secs| *secs > 0).map(|secs| Duration::from_secs(secs.into()));
        let keys = if operator.is_some() { "#0" } else { "#" };
        let mut urgent = wish.urgent;
        let mut beep = wish.beep.as_str();
        loop {
            let recorded = self.record(account, beep, longest, keys).await.map_err(nothing_kept)?;
            let Some(recorded) = recorded else { return self.cannot().await };
            beep = "beep";
            match recorded.ended {
                Ended::Gone(stop) => {
                    let kept = self.keep(all, recorded, urgent).await;
                    return Err((kept.is_ok(), stop));
                }
                Ended::Failed => {
                    // What could be written is kept, and nobody is told that all of it is.
                    let _ = self.keep(all, recorded, urgent).await;
                    return self.cannot().await;
                }
                Ended::Key('0') => {
                    return self.to_operator(all, recorded, urgent, operator.unwrap_or_default()).await;
                }
                Ended::Key(_) | Ended::Silence | Ended::Longest => {}
            }
            if !account.rules.review {
                let kept = self.keep(all, recorded, urgent).await;
                self.say(&[outcome_words(&kept, "auth-thankyou")], "")
                    .await
                    .map_err(|stop| (kept.is_ok(), stop))?;
                return Ok(if kept.is_ok() { Taken::Kept } else { Taken::Failed });
            }
            match self.review(account, &recorded, &mut urgent, operator.is_some()).await {
                Ok(Reviewed::Keep) => {
                    let kept = self.keep(all, recorded, urgent).await;
                    let words = outcome_words(&kept, "vm-msgsaved");
                    self.say(&[words], "").await.map_err(|stop| (kept.is_ok(), stop))?;
                    if kept == Err(Refusal::TooShort) {
                        continue;
                    }
                    return Ok(if kept.is_ok() { Taken::Kept } else { Taken::Failed });
                }
                Ok(Reviewed::Again) => {
                    let _ = self.post(Job::Forget(recorded.held)).await;
                }
                Ok(Reviewed::Operator) => {
                    return self.to_operator(all, recorded, urgent, operator.unwrap_or_default()).await;
                }
                // Who hangs up here has said what he wanted to say.
                Err(stop) => {
                    let kept = self.keep(all, recorded, urgent).await;
                    return Err((kept.is_ok(), stop));
                }
            }
        }
    }
    /// Nothing can be recorded: silence would be worse.
    async fn cannot(&self) -> Result<Taken, (bool, Stop)> {
        self.say(&["an-error-has-occurred"], "").await.map_err(nothing_kept)?;
        Ok(Taken::Failed)
    }
    /// The caller wants the operator: his message is kept when he says so.
    async fn to_operator(
        &self,
        all: &[Arc<Account>],
        recorded: Recorded,
        urgent: bool,
        context: &str,
    ) -> Result<Taken, (bool, Stop)> {
        let answer = self.ask(&["vm-saveoper"]).await;
        match answer {
            Ok(Some('1')) => {
                let kept = self.keep(all, recorded, urgent).await;
                self.say(&[outcome_words(&kept, "vm-msgsaved")], "")
                    .await
                    .map_err(|stop| (kept.is_ok(), stop))?;
            }
            Ok(_) => {
                let _ = self.post(Job::Forget(recorded.held)).await;
                self.say(&["vm-deleted"], "").await.map_err(nothing_kept)?;
            }
            Err(stop) => {
                let kept = self.keep(all, recorded, urgent).await;
                return Err((kept.is_ok(), stop));
            }
        }
        Ok(self.left(context, "o"))
    }
    /// Hears, records anew, marks as urgent, keeps.
    async fn review(
        &self,
        account: &Account,
        recorded: &Recorded,
        urgent: &mut bool,
        operator: bool,
    ) -> Result<Reviewed, Stop> {
        for _ in 0..REVIEWS_MAX {
            let mark = if *urgent { "vm-review-nonurgent" } else { "vm-review-urgent" };
            let reach = if operator { "vm-reachoper" } else { "" };
            match self.ask(&["vm-review", mark, reach]).await? {
                Some('1') | None => return Ok(Reviewed::Keep),
                Some('2') => {
                    self.say(&["vm-reviewing"], "").await?;
                    self.hear(account, Sound::Held(recorded.held.clone()), super::ANY_DIGIT).await?;
                }
                Some('3') => {
                    self.say(&["vm-rerecording"], "").await?;
                    return Ok(Reviewed::Again);
                }
                Some('4') => {
                    *urgent = !*urgent;
                    let marked = if *urgent { "vm-marked-urgent" } else { "vm-marked-nonurgent" };
                    self.say(&[marked], "").await?;
                }
                Some('0') if operator => return Ok(Reviewed::Operator),
                Some(_) => drop(self.say(&["vm-sorry"], "").await?),
            }
        }
        Ok(Reviewed::Keep)
    }
    /// Keeps what was recorded in all of these mailboxes; the first one counts.
    async fn keep(&self, all: &[Arc<Account>], recorded: Recorded, urgent: bool) -> Result<(), Refusal> {
        let mut first = None::<(Arc<Account>, Folder, Box<Message>)>;
        let mut outcome = Ok(());
        for account in all {
            let folder = if urgent { Folder::URGENT } else { Folder::INBOX };
            let (held, copied) = match &first {
                None => (Some(recorded.held.clone()), None),
                Some((of, folder, message)) => (None, Some((of.name.clone(), *folder, message.clone()))),
            };
            let delivery = Delivery {
                to: account.name.clone(),
                folder,
                held,
                copied,
                formats: self.vm.formats.clone(),
                info: self.info(account, urgent),
                min_ms: account.rules.minsecs * 1000,
                max_messages: account.rules.maxmsg,
            };
            match self.kept(account, delivery).await {
                Ok(message) => first = first.or(Some((account.clone(), folder, message))),
                Err(why) if first.is_none() => {
                    let _ = self.post(Job::Forget(recorded.held)).await;
                    return Err(why);
                }
                Err(why) => {
                    self.warn(&format!("mailbox {} did not get its copy: {why:?}", account.name));
                    outcome = Ok(());
                }
            }
        }
        // The last word to the owner of the first mailbox: what is sent to him may take it away.
        if let Some((account, folder, message)) = first {
            let (spool, name) = (self.call.get("ASTSPOOLDIR").unwrap_or_default(), &account.name);
            let (context, mailbox) = (name.context(), name.mailbox());
            let file =
                format!("{spool}/voicemail/{context}/{mailbox}/{}/msg{:04}", folder.name(), message.number);
            self.call.set("VM_MESSAGEFILE", &file);
            self.arrived(&account, folder, &message).await;
        }
        outcome
    }
    async fn kept(&self, account: &Arc<Account>, delivery: Delivery) -> Result<Box<Message>, Refusal> {
        let (is_copy, folder) = (delivery.copied.is_some(), delivery.folder);
        match self.post(Job::Deliver(Box::new(delivery))).await? {
            Posted::Kept(message) => {
                if is_copy {
                    self.arrived(account, folder, &message).await;
                }
                Ok(message)
            }
            _ => Err(Refusal::Failed("nothing was kept".to_owned())),
        }
    }
    /// What is written down of a message of this call.
    pub(super) fn info(&self, account: &Account, urgent: bool) -> Info {
        let call = self.call;
        call.settle();
        let (micros, random) = call.chan.core(|core| (core.services.wall.now_micros(), core.random()));
        let time = micros.div_euclid(1_000_000);
        let mut info = Info {
            orig_mailbox: account.name.mailbox().to_owned(),
            date: call.read(&format!("STRFTIME({time},,%a %b %d %r %Z %Y)")),
            time,
            category: call.get("VM_CATEGORY").unwrap_or_default(),
            id: format!("{time}-{:08x}", random as u32),
            urgent,
            ..Info::default()
        };
        let _ = call.chan.with(|c| {
            info.context.clone_from(&c.location.context);
            info.exten.clone_from(&c.location.exten);
            info.priority = c.location.priority;
            info.channel = c.name.to_string();
            info.caller_id =
                Some(c.caller.all()).filter(|all| !all.is_empty()).unwrap_or_else(|| "Unknown".to_owned());
            let from = c.redirecting.from.number();
            info.rdnis = if from.is_empty() { "unknown" } else { from }.to_owned();
        });
        info
    }
}

/// What a caller is told of his message. He is never told that it is kept when it is not.
pub(super) fn outcome_words<'a>(kept: &Result<(), Refusal>, good: &'a str) -> &'a str {
    match kept {
        Ok(()) => good,
        Err(Refusal::TooShort) => "vm-tooshort",
        Err(Refusal::Full) => "vm-mailboxfull",
        Err(Refusal::Missing | Refusal::Failed(_)) => "an-error-has-occurred",
    }
}

/// How often a caller may change his mind.
const REVIEWS_MAX: usize = 20;

/// What a caller wants with what he recorded.
enum Reviewed {
    Keep,
    Again,
    Operator,
}
