//! Collecting a number: digits after Background or WaitExten, `Incomplete`, and extensions that ran out.

use core::time::Duration;

use call::{Level, Stop};

use super::Next;
use crate::Call;

/// Digits of one number: what the field keeps.
const NUMBER_MAX: usize = 255;

impl Call {
    /// `Incomplete`: more digits after the present extension, if they may lead elsewhere.
    pub(super) async fn incomplete(&self) -> Next {
        let at = self.here().location();
        if !self.match_more(&at.context, &at.exten) {
            match self.rows_go_on(&at.context, &at.exten).await {
                Ok(true) => {}
                Ok(false) => return self.invalid(&at.exten).await,
                Err(stop) => return self.resume(stop).await,
            }
        }
        match self.read_digits(at.exten.clone(), self.digit_timeout()).await {
            Err(stop) => self.resume(stop).await,
            Ok(number) if number == at.exten => self.timed_out().await,
            Ok(number) => self.dial(&number).await,
        }
    }
    /// Collects a number that begins with `digits`, and goes to it.
    pub(super) async fn collect(&self, digits: String, digit_pressed: bool) -> Next {
        let first = if digit_pressed {
            self.digit_timeout()
        } else {
            Duration::from_millis(self.chan.with(|c| u64::from(c.response_timeout_ms)).unwrap_or(0))
        };
        match self.read_digits(digits, first).await {
            Err(stop) => self.resume(stop).await,
            Ok(number) if number.is_empty() => self.timed_out().await,
            Ok(number) => self.dial(&number).await,
        }
    }
    fn digit_timeout(&self) -> Duration {
        Duration::from_millis(self.chan.with(|c| u64::from(c.digit_timeout_ms)).unwrap_or(0))
    }
    /// Adds digits as long as a longer number may match, each within its timeout.
    async fn read_digits(&self, mut number: String, first: Duration) -> Result<String, Stop> {
        let context = self.context();
        let mut timeout = first;
        // The application that the first digit has ended still shows.
        let _ = self.chan.with(|c| {
            if c.app.is_empty() {
                c.app = self.run.app.get();
                c.app_data.clone_from(&self.run.data.borrow());
            }
        });
        while number.len() < NUMBER_MAX && self.may_go_on(&context, &number).await? {
            let Some(digit) = self.chan.digit(timeout).await? else { break };
            number.push(digit.to_char());
            timeout = self.digit_timeout();
        }
        Ok(number)
    }
    /// Whether more digits after the number may lead elsewhere, here or at a switch.
    async fn may_go_on(&self, context: &str, number: &str) -> Result<bool, Stop> {
        if self.match_more(context, number) {
            return Ok(true);
        }
        if number.is_empty() {
            return Ok(self.may_be_elsewhere(context));
        }
        if self.rows_go_on(context, number).await? {
            return Ok(true);
        }
        self.switch_goes_on(context, number).await
    }
    async fn dial(&self, number: &str) -> Next {
        let context = self.context();
        match self.look((&context, number), 1, false).await {
            Err(stop) => return self.resume(stop).await,
            Ok(place) if place.step().is_some() => {
                self.stand_at(place);
                return Next::Go;
            }
            Ok(_) => {}
        }
        match self.switched(&context, number).await {
            Err(stop) => return self.resume(stop).await,
            Ok(Some(next)) => return next,
            Ok(None) => {}
        }
        let text = format!("Invalid extension '{number}' in context '{context}'");
        self.chan.log(Level::Verbose(3), "pbx", &text);
        self.invalid(number).await
    }
    async fn timed_out(&self) -> Next {
        let next = self.catch("t", "RESPONSETIMEOUT", |_| {}).await;
        if matches!(next, Next::End) {
            let text = format!("Timeout, but no rule 't' or 'e' in context '{}'", self.context());
            self.chan.log(Level::Warning, "pbx", &text);
        }
        next
    }
}
