//! Recording for a mailbox: to a file of its own, until a key, silence, the longest time or the end of the call.

use core::time::Duration;
use std::path::{Path, PathBuf};

use base::{Command, Gain};
use call::voicemail::{Account, Held};
use call::{ChanEvent, Stop, Take};

use super::Visit;

/// How often the file is asked whether it can still be written.
const FAILURE_EVERY: Duration = Duration::from_secs(1);

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By `#`, or another key that ends one.
    Key(char),
    /// By silence.
    Silence,
    /// It was as long as it may be.
    Longest,
    /// It could not be written.
    Failed,
    /// The call ended, or goes elsewhere.
    Gone(Stop),
}

/// What was recorded.
pub(super) struct Recorded {
    pub(super) held: Held,
    pub(super) ended: Ended,
}

/// Ends a recording, however its story ends.
struct Running<'a>(&'a Visit<'a>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let threshold = self.0.vm.silence_threshold;
        self.0.call.chan.media(|stream| Command::WatchSilence { stream, ms: 0, threshold });
        self.0.call.chan.media(|stream| Command::StopRecord { stream });
        self.0.shape(Gain::UNITY);
    }
}

impl Visit<'_> {
    /// Makes what the channel says louder than it is otherwise.
    fn shape(&self, gain: Gain) {
        if self.gain != Gain::UNITY {
            let (mut heard, sent) = self.call.chan.core(|core| core.volume(self.call.chan.id())).loudness();
            heard.gain = heard.gain.times(gain);
            self.call.chan.media(|stream| Command::Shape { stream, heard, sent });
        }
    }
    /// A file of the mailbox that nobody has yet.
    fn new_file(&self, account: &Account) -> PathBuf {
        let (spool, number) = self.call.chan.core(|core| {
            let spool = core.settings.directories.0.get("spool").cloned().unwrap_or_default();
            (spool, core.random())
        });
        let home =
            Path::new(&spool).join("voicemail").join(account.name.context()).join(account.name.mailbox());
        let home = std::path::absolute(&home).unwrap_or(home);
        home.join("tmp").join(format!("rec-{number:016x}"))
    }
    /// Records after a beep; `None`: no file could be made. `keys` end it.
    pub(super) async fn record(
        &self,
        account: &Account,
        beep: &str,
        longest: Option<Duration>,
        keys: &str,
    ) -> Result<Option<Recorded>, Stop> {
        let chan = &self.call.chan;
        if !beep.is_empty() {
            chan.play(beep, "").await?;
        }
        let path = self.new_file(account);
        let wide = self
            .vm
            .formats
            .iter()
            .any(|format| ["wav16", "sln16", "g722", "opus"].contains(&format.as_str()));
        let extension =
            if wide && !self.vm.formats.iter().any(|format| format == "wav") { "wav16" } else { "wav" };
        let name = path.display().to_string();
        let take = match chan.core(|core| core.services.recorder.open(&name, extension, false)) {
            Ok(take) => take,
            Err(why) => {
                self.warn(&format!("cannot record to {name}.{extension}: {why}"));
                return Ok(None);
            }
        };
        let Take { sink, format, afterwards, progress } = take;
        self.shape(self.gain);
        chan.media(|stream| Command::Record { stream, format, sink });
        let silence = self.vm.max_silence.map(|silence| silence.as_millis() as u32);
        if let Some(ms) = silence {
            let threshold = self.vm.silence_threshold;
            chan.media(|stream| Command::WatchSilence { stream, ms, threshold });
        }
        let running = Running(self);
        let ended = self.until_ended(longest, keys, &progress).await;
        if let (Ended::Silence, Some(ms)) = (ended, silence) {
            afterwards.cut(ms);
        }
        drop(running);
        let held = Held { file: path.with_extension(extension), progress };
        Ok(Some(Recorded { held, ended }))
    }
    async fn until_ended(&self, longest: Option<Duration>, keys: &str, progress: &call::Progress) -> Ended {
        let chan = &self.call.chan;
        let deadline = longest.map(|longest| chan.now() + longest);
        loop {
            let look_at = chan.now() + FAILURE_EVERY;
            match chan.event(Some(deadline.map_or(look_at, |deadline| deadline.min(look_at)))).await {
                Err(stop) => return Ended::Gone(stop),
                Ok(None) if progress.failure().is_some() => return Ended::Failed,
                Ok(None) if deadline.is_some_and(|deadline| deadline <= chan.now()) => return Ended::Longest,
                Ok(Some(ChanEvent::Silence(_))) if self.vm.max_silence.is_some() => return Ended::Silence,
                Ok(Some(ChanEvent::Digit { digit, .. })) if keys.contains(digit.to_char()) => {
                    return Ended::Key(digit.to_char());
                }
                Ok(_) => {}
            }
        }
    }
}
