//! What owners set up themselves: greetings, name, PIN.

use base::RowsAsk;
use call::voicemail::{Account, Greeting, Job, PinPlace, Posted, Sound};
use call::{LinkNews, LinkWant, Stop};
use core::time::Duration;

use super::Visit;
use super::menu::{Next, Owner};
use super::record::Ended;
use crate::gate;

/// Most digits of a new PIN.
const PIN_DIGITS_MAX: usize = 32;
/// How often a menu is said to somebody who presses nothing or something else.
const PATIENCE: u32 = 3;
/// How long a database may take to keep a PIN.
const PIN_WITHIN: Duration = Duration::from_secs(10);
/// How long the program may take that judges a PIN.
const JUDGE_MAX: Duration = Duration::from_secs(10);

impl Owner<'_> {
    /// Greetings, name and PIN.
    pub(super) async fn settings(&mut self) -> Result<Next, Stop> {
        let mut silences = 0;
        while silences < PATIENCE {
            match self.visit.ask(&["vm-options"]).await? {
                Some('1') => {
                    self.visit.new_greeting(&self.account, Greeting::Unavailable, "vm-rec-unv").await?
                }
                Some('2') => self.visit.new_greeting(&self.account, Greeting::Busy, "vm-rec-busy").await?,
                Some('3') => self.visit.new_greeting(&self.account, Greeting::Name, "vm-rec-name").await?,
                Some('4') => self.temporary().await?,
                Some('5') => self.visit.new_pin(&self.account).await?,
                Some('*' | '#') => return Ok(Next::Menu),
                Some(_) => {
                    silences += 1;
                    self.visit.say(&["vm-sorry"], "").await?;
                }
                None => silences += 1,
            }
        }
        Ok(Next::Menu)
    }
    async fn temporary(&mut self) -> Result<(), Stop> {
        if !self.visit.has_greeting(&self.account, Greeting::Temporary).await {
            return match self.visit.ask(&["vm-tempgreeting"]).await? {
                Some('1') => self.visit.new_greeting(&self.account, Greeting::Temporary, "vm-rec-temp").await,
                _ => Ok(()),
            };
        }
        match self.visit.ask(&["vm-tempgreeting2"]).await? {
            Some('1') => self.visit.new_greeting(&self.account, Greeting::Temporary, "vm-rec-temp").await,
            Some('2') => {
                let gone = Job::Greet(self.account.name.clone(), Greeting::Temporary, None, Vec::new());
                let done = self.visit.post(gone).await.is_ok();
                self.visit.say(&[if done { "vm-tempremoved" } else { "vm-sorry" }], "").await.map(drop)
            }
            _ => Ok(()),
        }
    }
    /// Who comes for the first time, which his PIN tells, sets up what he has to.
    pub(super) async fn welcome_new(&mut self) -> Result<Option<Next>, Stop> {
        let rules = self.account.rules.clone();
        let is_new = self.visit.pin(&self.account).await == self.account.name.mailbox();
        if !is_new || !(rules.forcename || rules.forcegreetings) {
            return Ok(None);
        }
        self.visit.say(&["vm-newuser"], "").await?;
        self.visit.new_pin(&self.account).await?;
        let wanted = [
            (rules.forcename, Greeting::Name, "vm-rec-name"),
            (rules.forcegreetings, Greeting::Unavailable, "vm-rec-unv"),
            (rules.forcegreetings, Greeting::Busy, "vm-rec-busy"),
        ];
        for (_, greeting, prompt) in wanted.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            if !self.visit.has_greeting(&self.account, greeting).await {
                self.visit.new_greeting(&self.account, greeting, prompt).await?;
            }
        }
        Ok(None)
    }
}

impl Visit<'_> {
    /// Records a greeting until its owner is content. Nothing changes unless he says so.
    pub(super) async fn new_greeting(
        &self,
        account: &Account,
        greeting: Greeting,
        prompt: &str,
    ) -> Result<(), Stop> {
        let mut prompt = prompt;
        for _ in 0..PATIENCE * PATIENCE {
            self.say(&[prompt], "#").await?;
            let Some(recorded) = self.record(account, "beep", self.vm.max_greet, "#").await? else {
                return self.say(&["vm-sorry"], "").await.map(drop);
            };
            match recorded.ended {
                Ended::Gone(stop) => {
                    let _ = self.post(Job::Forget(recorded.held)).await;
                    return Err(stop);
                }
                Ended::Failed => {
                    let _ = self.post(Job::Forget(recorded.held)).await;
                    return self.say(&["an-error-has-occurred"], "").await.map(drop);
                }
                Ended::Key(_) | Ended::Silence | Ended::Longest => {}
            }
            let again = loop {
                match self.ask(&["vm-review"]).await {
                    Ok(Some('1')) => {
                        let formats = self.vm.formats.clone();
                        let keep = Job::Greet(account.name.clone(), greeting, Some(recorded.held), formats);
                        let kept = self.post(keep).await.is_ok();
                        return self
                            .say(&[if kept { "vm-msgsaved" } else { "vm-sorry" }], "")
                            .await
                            .map(drop);
                    }
                    Ok(Some('2')) => {
                        self.say(&["vm-reviewing"], "").await?;
                        self.hear(account, Sound::Held(recorded.held.clone()), super::ANY_DIGIT).await?;
                    }
                    Ok(Some('3')) => break true,
                    Ok(Some('*') | None) => break false,
                    Ok(Some(_)) => drop(self.say(&["vm-sorry"], "").await?),
                    Err(stop) => {
                        let _ = self.post(Job::Forget(recorded.held)).await;
                        return Err(stop);
                    }
                }
            };
            let _ = self.post(Job::Forget(recorded.held)).await;
            if !again {
                return self.say(&["vm-deleted"], "").await.map(drop);
            }
            prompt = "vm-rerecording";
        }
        Ok(())
    }
    /// Asks for a new PIN twice and keeps it.
    async fn new_pin(&self, account: &Account) -> Result<(), Stop> {
        if account.pin_is_fixed {
            return self.say(&["vm-sorry"], "").await.map(drop);
        }
        let sounds = &self.vm.sounds;
        for _ in 0..PATIENCE {
            let new = gate::password(self.call, &sounds.newpassword, PIN_DIGITS_MAX).await?;
            if new.starts_with('*') {
                return Ok(());
            }
            let old = self.pin(account).await;
            if !self.is_good(account, &old, &new).await {
                self.say(&[&sounds.invalid_password], "").await?;
                continue;
            }
            let again = gate::password(self.call, &sounds.reenterpassword, PIN_DIGITS_MAX).await?;
            if again != new {
                self.say(&[&sounds.mismatch, &sounds.pls_try_again], "").await?;
                continue;
            }
            let kept = self.keep_pin(account, &new).await;
            return self.say(&[if kept { &sounds.passchanged } else { "vm-sorry" }], "").await.map(drop);
        }
        Ok(())
    }
    /// Whether a PIN may be one: it has digits only, enough of them, and the program has nothing against it.
    async fn is_good(&self, account: &Account, old: &str, new: &str) -> bool {
        let is_typed = !new.is_empty() && new.chars().all(|c| c.is_ascii_digit());
        if !is_typed || (new.len() as u64) < u64::from(self.vm.min_password) {
            return false;
        }
        if self.vm.extern_pass_check.is_empty() {
            return true;
        }
        let words = [account.name.mailbox(), account.name.context(), old, new];
        self.judged(&self.vm.extern_pass_check, &words).await.trim_start().starts_with("VALID")
    }
    /// What a program says.
    async fn judged(&self, line: &str, words: &[&str]) -> String {
        let mut args = vec!["-c".to_owned(), format!("exec </dev/null\n{line} \"$@\""), "sh".to_owned()];
        args.extend(words.iter().map(|word| (*word).to_owned()));
        let want =
            LinkWant::Program { path: "/bin/sh".to_owned(), args, environment: Vec::new(), audio: false };
        let Ok(link) = self.call.chan.core(|core| core.services.links.open(want)) else {
            return String::new();
        };
        let deadline = self.call.chan.now() + JUDGE_MAX;
        let mut said = Vec::new();
        loop {
            match self.call.chan.link_news(link, Some(deadline)).await {
                Some(LinkNews::Bytes(bytes)) => {
                    said.extend(bytes.into_iter().take(1024usize.saturating_sub(said.len())))
                }
                Some(LinkNews::Exited(_) | LinkNews::Failed { .. }) | None => break,
                Some(_) => {}
            }
        }
        self.call.chan.core(|core| core.close_link(link));
        String::from_utf8_lossy(&said).into_owned()
    }
    /// Writes a PIN into the row of its mailbox; whether there is one that was written.
    async fn keep_pin_in_row(&self, account: &Account, new: &str) -> bool {
        let keys = [("context", account.name.context()), ("mailbox", account.name.mailbox())];
        let ask = RowsAsk::Change {
            family: "voicemail".to_owned(),
            keys: keys.map(|(column, value)| (column.to_owned(), value.to_owned())).to_vec(),
            sets: vec![("password".to_owned(), new.to_owned())],
        };
        match self.call.ask_database(crate::asking::want(ask, 1, PIN_WITHIN), true).await {
            Ok(Ok(rows)) => rows.changed > 0,
            Ok(Err(why)) => {
                self.warn(&why);
                false
            }
            Err(_) => false,
        }
    }
    async fn keep_pin(&self, account: &Account, new: &str) -> bool {
        let words =
            || vec![account.name.context().to_owned(), account.name.mailbox().to_owned(), new.to_owned()];
        if !self.vm.extern_pass.is_empty() {
            // It is kept elsewhere: here until voicemail.conf is read again.
            self.start(&self.vm.extern_pass.clone(), words());
        } else {
            let place = account.rules.passwordlocation;
            let kept = match account.is_row && place == PinPlace::Config {
                true => self.keep_pin_in_row(account, new).await,
                false => {
                    let kept = self.post(Job::SetPin(account.name.clone(), place, new.to_owned())).await;
                    matches!(kept, Ok(Posted::Done))
                }
            };
            if !kept {
                self.warn(&format!("the new PIN of mailbox {} was not kept", account.name));
                return false;
            }
        }
        if account.rules.passwordlocation == PinPlace::Config || !self.vm.extern_pass.is_empty() {
            self.call.chan.core(|core| core.pins.insert(account.name.clone(), new.to_owned()));
        }
        if !self.vm.extern_pass_notify.is_empty() {
            self.start(&self.vm.extern_pass_notify.clone(), words());
        }
        true
    }
}
