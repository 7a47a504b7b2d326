//! One message at its owner's: what is said before it, the message, and what can be done with it.

use core::time::Duration;
use std::sync::Arc;

use call::voicemail::{Account, Delivery, Folder, Info, Job, Message, Posted, Refusal, Sound};
use call::{Level, PartyId, Stop};
use dialplan::zone::Civil;

use super::leave::outcome_words;
use super::menu::{Next, Owner};
use super::record::Ended;
use super::{ANY_DIGIT, BOXES_MAX, Visit};
use crate::{Outcome, control_playback, say};

impl Visit<'_> {
    /// Date and time of a message, as its owner wants them said.
    pub(super) async fn date_files(&self, account: &Account, info: &Info) -> Result<Vec<String>, Stop> {
        let zone = self.vm.zone_of(account);
        let (then, today) = self.call.chan.core(|core| {
            let now = core.services.wall.now_micros().div_euclid(1_000_000);
            let civil = |at: i64| Civil::at(at, core.services.wall.offset(at, &zone.zone).seconds);
            (civil(info.time), civil(now))
        });
        say::moment_words(&self.call.chan, then, today, &zone.format).await
    }
    /// Who left it: a colleague by his mailbox, others by their number.
    fn caller_files(&self, info: &Info) -> Vec<String> {
        let caller = PartyId::parse(&info.caller_id);
        match caller.number() {
            "" => vec!["vm-unknown-caller".to_owned()],
            number => {
                let word = match self.vm.internal_contexts.contains(&info.context) {
                    true => "vm-from-extension",
                    false => "vm-from-phonenumber",
                };
                let mut files = vec!["vm-from".to_owned(), word.to_owned()];
                files.extend(say::digits(number));
                files
            }
        }
    }
    async fn duration_files(&self, info: &Info) -> Result<Vec<String>, Stop> {
        let minutes = info.duration.div_ceil(60);
        let mut files = vec!["vm-duration".to_owned()];
        files.extend(say::number_words(&self.call.chan, i64::from(minutes)).await?);
        files.push(if minutes == 1 { "vm-minute" } else { "vm-minutes" }.to_owned());
        Ok(files)
    }
    /// Everything about a message that is said before it.
    async fn envelope(&self, account: &Account, info: &Info, all: bool) -> Result<Vec<String>, Stop> {
        let rules = &account.rules;
        let mut files = Vec::new();
        if rules.envelope || all {
            files.extend(self.date_files(account, info).await?);
        }
        if rules.saycid || all {
            files.extend(self.caller_files(info));
        }
        let is_long = info.duration >= rules.saydurationm.saturating_mul(60);
        if all || (rules.sayduration && is_long) {
            files.extend(self.duration_files(info).await?);
        }
        Ok(files)
    }
    /// Plays a message with the keys that steer it; the key that ended it. `Err(None)`: there is no such message.
    pub(super) async fn play_sound(
        &self,
        account: &Account,
        sound: Sound,
    ) -> Result<Result<Option<char>, Refusal>, Stop> {
        let format = self.call.chan.with(|c| c.format)?;
        let clip = match self.post(Job::Load(account.name.clone(), sound, format)).await {
            Ok(Posted::Clip(clip)) => clip,
            Ok(_) => return Ok(Err(Refusal::Missing)),
            Err(why) => return Ok(Err(why)),
        };
        let keys = &self.vm.controls;
        let single = |key: char| if key == ' ' { String::new() } else { key.to_string() };
        let keys = [
            String::new(),
            single(keys.pause),
            single(keys.restart),
            single(keys.forward),
            single(keys.reverse),
        ];
        let stop = &self.vm.controls.stop;
        let pressed =
            control_playback::steer(self.call, clip.into(), u64::from(self.vm.skip_ms), keys, stop).await?;
        Ok(Ok(pressed.map(base::Digit::to_char)))
    }
}

impl Owner<'_> {
    /// Plays the message that it is the turn of.
    pub(super) async fn play(&mut self) -> Result<Next, Stop> {
        let Some(open) = &mut self.open else { return Ok(Next::Leave) };
        let Some(message) = open.current().cloned() else { return Ok(Next::Menu) };
        let (index, last, folder) = (open.current, open.messages.len() - 1, open.place());
        let mut files = Vec::new();
        if message.info.urgent {
            files.push("vm-Urgent".to_owned());
        }
        match index {
            0 => files.extend(["vm-first".to_owned(), "vm-message".to_owned()]),
            _ if index == last => files.extend(["vm-last".to_owned(), "vm-message".to_owned()]),
            _ => {
                files.push("vm-message".to_owned());
                files.extend(say::number_words(&self.visit.call.chan, index as i64 + 1).await?);
            }
        }
        files.extend(self.visit.envelope(&self.account, &message.info, false).await?);
        if let Some(digit) = say::play_all(self.visit.call, files, ANY_DIGIT).await?
            // The key that begins a message may be pressed to come to it.
            && digit.to_char() != '1'
        {
            return Ok(Next::Key(digit.to_char()));
        }
        if let Some(mark) = open.mark() {
            mark.heard = true;
        }
        let sound = Sound::Message(folder, Box::new(message));
        match self.visit.play_sound(&self.account, sound).await? {
            Ok(Some(key)) => Ok(Next::Key(key)),
            Ok(None) => Ok(Next::Menu),
            Err(_) => {
                self.visit
                    .call
                    .log(Level::Warning, &format!("mailbox {}: a message is gone", self.account.name));
                self.visit.say(&["vm-nomore"], "").await?;
                Ok(Next::Menu)
            }
        }
    }
    /// Reply, call back, envelope, dial, leave a message.
    pub(super) async fn advanced(&mut self, has_message: bool) -> Result<Next, Stop> {
        let rules = self.account.rules.clone();
        let message = self.open.as_ref().and_then(|open| open.current().cloned()).filter(|_| has_message);
        let caller = message.as_ref().map(|message| PartyId::parse(&message.info.caller_id));
        let number = caller.as_ref().map(PartyId::number).unwrap_or_default().to_owned();
        let mut files = Vec::new();
        let sender = self.visit.vm.find(&number, self.account.name.context()).cloned();
        if sender.is_some() {
            files.push("vm-toreply");
        }
        if !rules.callback.is_empty() && !number.is_empty() {
            files.push("vm-tocallback");
        }
        if message.is_some() {
            files.push("vm-tohearenv");
        }
        if !rules.dialout.is_empty() {
            files.push("vm-tomakecall");
        }
        if rules.sendvoicemail {
            files.push("vm-leavemsg");
        }
        files.push("vm-starmain");
        match (self.visit.ask(&files).await?, message, sender) {
            (Some('1'), Some(_), Some(sender)) => self.send_to(vec![sender], None).await,
            (Some('2'), Some(_), _) if files.contains(&"vm-tocallback") => {
                match self.visit.leave_to(&rules.callback, &number) {
                    Some(elsewhere) => Ok(Next::Elsewhere(elsewhere)),
                    None => self.sorry().await,
                }
            }
            (Some('3'), Some(message), _) => {
                let files = self.visit.envelope(&self.account, &message.info, true).await?;
                let pressed = say::play_all(self.visit.call, files, ANY_DIGIT).await?;
                Ok(pressed.map_or(Next::Menu, |digit| Next::Key(digit.to_char())))
            }
            (Some('4'), ..) if !rules.dialout.is_empty() => {
                let number = crate::gate::password(self.visit.call, "vm-enter-num-to-call", 40).await?;
                match self.visit.leave_to(&rules.dialout, &number).filter(|_| !number.is_empty()) {
                    Some(Ok(flow)) => Ok(Next::Elsewhere(Outcome::Ok(flow))),
                    _ => self.sorry().await,
                }
            }
            (Some('5'), ..) if rules.sendvoicemail => match self.ask_boxes().await? {
                boxes if boxes.is_empty() => Ok(Next::Menu),
                boxes => self.send_to(boxes, None).await,
            },
            (Some('*' | '#') | None, ..) => Ok(Next::Menu),
            _ => self.sorry().await,
        }
    }
    async fn sorry(&self) -> Result<Next, Stop> {
        self.visit.say(&["vm-sorry"], "").await?;
        Ok(Next::Menu)
    }
    /// Asks for the mailboxes of others; none when he gives up.
    async fn ask_boxes(&self) -> Result<Vec<Arc<Account>>, Stop> {
        if self.visit.vm.use_directory {
            match self.ask_way().await? {
                Some('1') => {}
                Some('2') => return self.ask_name().await,
                _ => return Ok(Vec::new()),
            }
        }
        for _ in 0..3 {
            let typed = crate::gate::password(self.visit.call, "vm-extension", 79 * BOXES_MAX).await?;
            if typed.is_empty() || typed == "*" {
                return Ok(Vec::new());
            }
            let context = self.account.name.context();
            let names = typed.split('*').filter(|name| !name.is_empty()).take(BOXES_MAX);
            let found: Option<Vec<_>> =
                names.map(|name| self.visit.vm.find(name, context).cloned()).collect();
            match found {
                Some(boxes) if !boxes.is_empty() => return Ok(boxes),
                _ => drop(self.visit.say(&["pbx-invalid"], "").await?),
            }
        }
        Ok(Vec::new())
    }
    /// Whether mailboxes are typed (1) or found by name (2); neither after three times of anything else.
    async fn ask_way(&self) -> Result<Option<char>, Stop> {
        for _ in 0..3 {
            match self.visit.ask(&["vm-forward"]).await? {
                Some(way @ ('1' | '2')) => return Ok(Some(way)),
                Some('*') => break,
                _ => {}
            }
        }
        Ok(None)
    }
    async fn ask_name(&self) -> Result<Vec<Arc<Account>>, Stop> {
        let context = self.account.name.context();
        let chosen = crate::directory::choose(self.visit.call, context).await?;
        Ok(chosen.and_then(|mailbox| self.visit.vm.find(&mailbox, context).cloned()).into_iter().collect())
    }
    /// Sends the message on to others, with words before it where that is wanted.
    pub(super) async fn forward(&mut self) -> Result<Next, Stop> {
        let Some(open) = &self.open else { return Ok(Next::Leave) };
        let Some(message) = open.current().cloned() else { return Ok(Next::Menu) };
        let copied = (self.account.name.clone(), open.place(), Box::new(message));
        let boxes = self.ask_boxes().await?;
        if boxes.is_empty() {
            return Ok(Next::Menu);
        }
        match self.visit.ask(&["vm-forwardoptions"]).await? {
            Some('1') => self.send_to(boxes, Some(copied)).await,
            Some('2') => self.deliver(boxes, None, Some(copied)).await,
            _ => Ok(Next::Menu),
        }
    }
    /// Records a message and sends it to these.
    async fn send_to(
        &mut self,
        boxes: Vec<Arc<Account>>,
        copied: Option<(call::voicemail::BoxName, Folder, Box<Message>)>,
    ) -> Result<Next, Stop> {
        let intro = if copied.is_some() { "vm-record-prepend" } else { "vm-intro" };
        self.visit.say(&[intro], "#").await?;
        let longest = Some(self.account.rules.maxsecs).filter(|secs| *secs > 0);
        let longest = longest.map(|secs| Duration::from_secs(secs.into()));
        let Some(recorded) = self.visit.record(&self.account, "beep", longest, "#").await? else {
            return Ok(Next::Menu);
        };
        match recorded.ended {
            Ended::Gone(stop) => {
                self.deliver(boxes, Some(recorded.held), copied).await?;
                Err(stop)
            }
            Ended::Failed => {
                let _ = self.visit.post(Job::Forget(recorded.held)).await;
                self.visit.say(&["an-error-has-occurred"], "").await?;
                Ok(Next::Menu)
            }
            Ended::Key(_) | Ended::Silence | Ended::Longest => {
                self.deliver(boxes, Some(recorded.held), copied).await
            }
        }
    }
    async fn deliver(
        &mut self,
        boxes: Vec<Arc<Account>>,
        held: Option<call::voicemail::Held>,
        copied: Option<(call::voicemail::BoxName, Folder, Box<Message>)>,
    ) -> Result<Next, Stop> {
        let urgent = self.visit.vm.forward_urgent && copied.as_ref().is_some_and(|(.., m)| m.info.urgent);
        let folder = if urgent { Folder::URGENT } else { Folder::INBOX };
        let mut kept: Vec<(Arc<Account>, Box<Message>)> = Vec::new();
        let mut outcome = Ok(());
        for account in boxes {
            let mut info = self.visit.info(&account, urgent);
            info.caller_id = match &copied {
                Some((.., message)) => message.info.caller_id.clone(),
                None => format!("\"{}\" <{}>", self.account.full_name, self.account.name.mailbox()),
            };
            // The first has all of it; the others are copies of that.
            let (own, copied) = match kept.first() {
                None => (held.clone(), copied.clone()),
                Some((of, message)) => (None, Some((of.name.clone(), folder, message.clone()))),
            };
            let delivery = Delivery {
                to: account.name.clone(),
                folder,
                held: own,
                copied,
                formats: self.visit.vm.formats.clone(),
                info,
                min_ms: 0,
                max_messages: account.rules.maxmsg,
            };
            match self.visit.post(Job::Deliver(Box::new(delivery))).await {
                Ok(Posted::Kept(message)) => kept.push((account, message)),
                Ok(_) => outcome = Err(Refusal::Missing),
                Err(why) => outcome = Err(why),
            }
        }
        if let Some(held) = held.filter(|_| kept.is_empty()) {
            let _ = self.visit.post(Job::Forget(held)).await;
        }
        for (account, message) in kept.iter().rev() {
            self.visit.arrived(account, folder, message).await;
        }
        self.visit.say(&[outcome_words(&outcome, "vm-msgsent")], "").await?;
        Ok(Next::Menu)
    }
}
