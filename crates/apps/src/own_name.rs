//! A caller says its own name: for those of a conference, or for whom a call is to find.

use core::time::Duration;

use base::Command;
use call::{Chan, ChanEvent, Level, Stop, Take};

use crate::Call;
use crate::listen::SILENCE_THRESHOLD;

/// Silence that ends a name.
const SILENCE_MS: u32 = 2000;
/// How long the file of a name is waited for: far longer than a disk that is not broken needs.
const COMPLETE_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Format of its file.
const EXTENSION: &str = "wav16";

/// A recorded name; its file goes when it does, unless it is kept.
pub(crate) struct Name {
    chan: Chan,
    path: String,
    is_kept: bool,
}

impl Name {
    /// The name that a channel will say, in a file of this folder of the spool.
    pub(crate) fn below(chan: &Chan, folder: &str) -> Self {
        let own = format!("name-{:016x}", chan.core(call::Core::random));
        let mut name = Self::kept(chan, folder, &own);
        name.is_kept = false;
        name
    }
    /// The name in a file that stays for later calls. `file` has neither `/` nor `.`.
    pub(crate) fn kept(chan: &Chan, folder: &str, file: &str) -> Self {
        let spool = chan.core(|core| core.settings.directories.0.get("spool").cloned()).unwrap_or_default();
        Self { chan: chan.clone(), path: format!("{spool}/{folder}/{file}"), is_kept: true }
    }
    /// The sound, as prompts are named.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
    /// Records it after a beep, until `#`, silence or its length; false, logged, when it could not be.
    pub(crate) async fn record(&self, call: &Call, longest: Duration) -> Result<bool, Stop> {
        let chan = &self.chan;
        chan.play("beep", "").await?;
        let take = match chan.core(|core| core.services.recorder.open(&self.path, EXTENSION, false)) {
            Ok(take) => take,
            Err(why) => {
                call.log(Level::Warning, &format!("cannot record a name to {}: {why}", self.path));
                return Ok(false);
            }
        };
        let Take { sink, format, afterwards, progress } = take;
        chan.media(|stream| Command::Record { stream, format, sink });
        chan.media(|stream| Command::WatchSilence { stream, ms: SILENCE_MS, threshold: SILENCE_THRESHOLD });
        let recording = Recording(chan);
        let deadline = chan.now() + longest;
        loop {
            match chan.event(Some(deadline)).await? {
                None => break,
                Some(ChanEvent::Silence(ms)) => {
                    afterwards.cut(ms);
                    break;
                }
                Some(ChanEvent::Digit { digit, .. }) if digit.to_char() == '#' => break,
                Some(_) => {}
            }
        }
        drop(recording);
        let give_up = chan.now() + COMPLETE_WITHIN;
        while !progress.is_complete() && progress.failure().is_none() && chan.now() < give_up {
            chan.wait_keeping(chan.now() + LOOK_EVERY, |_| false).await?;
        }
        Ok(progress.failure().is_none())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.is_kept {
            self.chan.core(|core| core.services.recorder.remove(&self.path, EXTENSION));
        }
    }
}

/// Ends a recording, however its story ends.
struct Recording<'a>(&'a Chan);

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.media(|stream| Command::WatchSilence { stream, ms: 0, threshold: SILENCE_THRESHOLD });
        self.0.media(|stream| Command::StopRecord { stream });
    }
}
