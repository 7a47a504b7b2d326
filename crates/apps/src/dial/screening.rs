//! Options `p` and `P` of Dial: who answers hears who calls, and decides; with `P` the site remembers what was decided.

use core::time::Duration;

use base::Digit;
use call::{Chan, Leg, Level, Stop};

use super::sound::Sound;
use super::{DialOptions, Status};
use crate::own_name::Name;
use crate::{Call, say};

/// Longest name that a caller says.
const NAME_LENGTH: Duration = Duration::from_secs(4);
/// How long somebody has to press a key after the question.
const KEY_WAIT: Duration = Duration::from_secs(6);
/// How often the question is put.
const ASKED_MAX: usize = 3;
/// Family of the database that keeps what was decided.
const FAMILY: &str = "privacy";
/// Folder of the spool for names that callers have said.
const FOLDER: &str = "priv-callerintros";
const ANY_DIGIT: &str = "0123456789*#ABCD";

/// Option `p` or `P`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Screens {
    /// `p`: each call anew.
    Each,
    /// `P(key)`: what is decided holds for the caller, below this key of the database; empty: the extension.
    Remembers(String),
}

/// What is remembered of a caller, and what is decided of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Allow,
    Deny,
    Torture,
    Kill,
}

impl Decision {
    const WORDS: [(&'static str, Self); 4] =
        [("ALLOW", Self::Allow), ("DENY", Self::Deny), ("TORTURE", Self::Torture), ("KILL", Self::Kill)];

    fn parse(text: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())).map(|row| row.1)
    }
    fn word(self) -> &'static str {
        Self::WORDS.into_iter().find(|row| row.1 == self).map_or("", |row| row.0)
    }
    /// How the call ends by it.
    fn refusal(self) -> Option<Status> {
        match self {
            Self::Allow => None,
            Self::Deny => Some(Status::NoAnswer),
            Self::Torture => Some(Status::Torture),
            Self::Kill => Some(Status::DontCall),
        }
    }
}

/// A call that who answers decides about.
pub(crate) struct Screening {
    name: Name,
    /// Where the database keeps what is decided.
    remembered_at: Option<String>,
}

/// Prepares what the options ask for: the caller says its name, unless it is known already. The inner error: what was
/// decided earlier ends the call.
pub(crate) async fn begin(
    call: &Call,
    options: &DialOptions,
) -> Result<Result<Option<Screening>, Status>, Stop> {
    let Some(screens) = &options.screens else { return Ok(Ok(None)) };
    let number = call.chan.with(|c| c.caller.number().to_owned())?;
    let number: String =
        number.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '*' | '#')).collect();
    if options.trusts_callers_with_number && !number.is_empty() {
        return Ok(Ok(None));
    }
    let exten = call.here().exten().to_owned();
    let remembered_at = match screens {
        Screens::Remembers(key) if !number.is_empty() => {
            Some(format!("{}/{number}", if key.is_empty() { &exten } else { key }))
        }
        Screens::Each | Screens::Remembers(_) => None,
    };
    let known =
        remembered_at.as_deref().and_then(|key| call.chan.core(|core| core.services.db.get(FAMILY, key)));
    match known.as_deref().and_then(Decision::parse) {
        Some(Decision::Allow) => return Ok(Ok(None)),
        Some(known) => {
            let word = known.word();
            call.log(Level::Verbose(3), &format!("{number} is not let through: {word} was decided earlier"));
            return Ok(known.refusal().map_or(Ok(None), Err));
        }
        None => {}
    }
    let is_kept = !options.forgets_names && !number.is_empty();
    let name =
        if is_kept { Name::kept(&call.chan, FOLDER, &number) } else { Name::below(&call.chan, FOLDER) };
    call.answer_for_sound().await?;
    if !(is_kept && call.chan.has_clip(name.path()).await?) {
        call.chan.play("priv-recordintro", "").await?;
        if !name.record(call, NAME_LENGTH).await? {
            call.log(Level::Warning, "who is called does not hear who calls");
        }
    }
    Ok(Ok(Some(Screening { name, remembered_at })))
}

impl Screening {
    /// Asks who has answered; the inner error says how the call ends instead of a conversation. Meanwhile the caller hears
    /// what it heard before.
    pub(crate) async fn decide(
        &self,
        call: &Call,
        options: &DialOptions,
        leg: &Leg,
    ) -> Result<Result<(), Status>, Stop> {
        let mut sound = Sound::new(&call.chan);
        sound.start(options).await?;
        if options.music.is_none() && options.ring.is_none() {
            sound.ring();
        }
        // Who hangs up instead of deciding has not answered.
        let key = call.chan.while_up(self.ask(leg.chan())).await?.ok().flatten();
        drop(sound);
        let (kept, ends) = match key {
            Some('1') => (Decision::Allow, None),
            Some('2') => (Decision::Deny, Decision::Deny.refusal()),
            Some('3') => (Decision::Torture, Decision::Torture.refusal()),
            Some('4') => (Decision::Kill, Decision::Kill.refusal()),
            // From now on, but not this time.
            Some('5') => (Decision::Allow, Decision::Deny.refusal()),
            _ => return Ok(Err(Status::NoAnswer)),
        };
        if let Some(place) = &self.remembered_at {
            call.chan.core(|core| core.services.db.put(FAMILY, place, kept.word()));
        }
        Ok(ends.map_or(Ok(()), Err))
    }
    /// The key that decides; `None`: none of them was pressed. `Err`: it hung up.
    async fn ask(&self, chan: &Chan) -> Result<Option<char>, Stop> {
        let (question, keys) = match self.remembered_at {
            Some(_) => ("priv-callee-options", "12345"),
            None => ("screen-callee-options", "1234"),
        };
        let on_leg = Call::new(chan.clone());
        let words = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect();
        let mut files = vec!["priv-callpending", self.name.path(), question];
        for _ in 0..ASKED_MAX {
            let pressed = match say::play_all(&on_leg, words(&files), ANY_DIGIT).await? {
                Some(digit) => Some(digit),
                None => chan.digit(KEY_WAIT).await?,
            };
            let pressed = pressed.map(Digit::to_char);
            if let Some(key) = pressed.filter(|key| keys.contains(*key)) {
                return Ok(Some(key));
            }
            files = vec!["vm-sorry", question];
        }
        Ok(None)
    }
}
