//! Who it is that wants to hear messages. A mailbox that nobody has is asked for its PIN as any other, and refused alike.

use std::sync::Arc;

use call::voicemail::{Account, Job, PinPlace, Posted};
use call::{Level, Stop};

use super::Visit;

/// Most digits of a mailbox and of a PIN.
const DIGITS_MAX: usize = 79;

/// How a log-in came out.
pub(super) enum Login {
    /// This is he.
    In(Arc<Account>),
    /// He does not know.
    Refused,
    /// He pressed `*` instead.
    Star,
}

/// What is known before.
pub(super) struct Asking<'a> {
    /// The mailbox; empty: it is asked for.
    pub(super) mailbox: &'a str,
    /// It is only its beginning.
    pub(super) is_prefix: bool,
    pub(super) context: &'a str,
    /// No PIN is asked for.
    pub(super) trusted: bool,
    /// Nothing is said before the mailbox is asked for.
    pub(super) quiet: bool,
}

/// Compares in a time that does not tell how much is right.
fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}

impl Visit<'_> {
    pub(super) async fn log_in(&self, asking: &Asking<'_>) -> Result<Login, Stop> {
        let known = Some(asking.mailbox).filter(|mailbox| !mailbox.is_empty() && !asking.is_prefix);
        let mut prompt = if asking.quiet { "" } else { self.vm.sounds.login.as_str() };
        for attempt in 1..=self.vm.max_logins {
            let mailbox = match known {
                Some(mailbox) => mailbox.to_owned(),
                None => {
                    let typed = crate::gate::password(self.call, prompt, DIGITS_MAX).await?;
                    if typed.starts_with('*') {
                        return Ok(Login::Star);
                    }
                    match asking.is_prefix {
                        true => format!("{}{typed}", asking.mailbox),
                        false => typed,
                    }
                }
            };
            let account = match asking.context {
                "" => self.find_text(&mailbox).await?,
                context => self.find_text(&format!("{mailbox}@{context}")).await?,
            };
            if asking.trusted
                && let Some(account) = account
            {
                return Ok(Login::In(account));
            }
            // An empty PIN in voicemail.conf opens at once; of no mailbox there is one that fits.
            let pin = match &account {
                Some(account) => Some(self.pin(account).await),
                None => None,
            };
            let typed = match pin.as_deref() {
                Some("") => String::new(),
                _ => crate::gate::password(self.call, &self.vm.sounds.password, DIGITS_MAX).await?,
            };
            if typed.starts_with('*') {
                return Ok(Login::Star);
            }
            match (account, pin) {
                (Some(account), Some(pin)) if is_same(&pin, &typed) => return Ok(Login::In(account)),
                _ => {}
            }
            let caller = self.call.chan.with(|c| c.caller.number().to_owned())?;
            let text = format!("wrong mailbox or PIN for '{mailbox}', attempt {attempt}, caller '{caller}'");
            self.call.log(Level::Security, &text);
            if attempt < self.vm.max_logins {
                prompt = "vm-incorrect-mailbox";
                if known.is_some() {
                    self.say(&["vm-incorrect"], "").await?;
                }
            }
        }
        self.say(&["vm-incorrect", "vm-goodbye"], "").await?;
        Ok(Login::Refused)
    }
    /// The PIN in force.
    pub(super) async fn pin(&self, account: &Account) -> String {
        if account.rules.passwordlocation == PinPlace::Spool
            && let Ok(Posted::Pin(Some(pin))) = self.post(Job::Pin(account.name.clone())).await
        {
            return pin;
        }
        self.call.chan.core(|core| core.pin_of(account))
    }
}
