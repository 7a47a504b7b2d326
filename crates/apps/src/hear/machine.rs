//! Whether a machine or somebody has answered, by how long and how often is spoken. A machine without clock: what is heard
//! and when goes in, a verdict comes out.

use base::SoundWatch;
use call::MachineSettings;

/// What it comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// `MACHINE`, `HUMAN`, `NOTSURE`.
    pub(super) status: &'static str,
    /// Why, with what was measured and its limit.
    pub(super) cause: String,
}

/// What is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// A word has lasted as long as a word must.
    Word,
    /// The word before has ended as long ago as words must be apart.
    WordEnd {
        /// Milliseconds of the word.
        lasted_ms: u32,
    },
    /// Nothing new.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Silent since this millisecond.
    Silent { since: u32 },
    /// In a word that began with this millisecond.
    Word { since: u32 },
}

/// The machine. Times are milliseconds since it began to listen.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    settings: &'a MachineSettings,
    state: State,
    words: u32,
    /// Of the words that are over.
    spoken_ms: u32,
}

impl<'a> Machine<'a> {
    pub(super) fn new(settings: &'a MachineSettings) -> Self {
        Self { settings, state: State::Silent { since: 0 }, words: 0, spoken_ms: 0 }
    }
    /// What tells its words apart.
    pub(super) fn watch(&self) -> SoundWatch {
        SoundWatch {
            threshold: u16::try_from(self.settings.silence_threshold).unwrap_or(u16::MAX),
            sound_ms: self.settings.word_min_ms,
            silence_ms: self.settings.between_words_ms,
            sounds: false,
        }
    }
    /// When it next has something to say though nothing is heard.
    pub(super) fn deadline(&self) -> u32 {
        let MachineSettings {
            initial_silence_ms, after_greeting_silence_ms, greeting_ms, word_max_ms, ..
        } = *self.settings;
        let next = match self.state {
            State::Silent { since } if self.words == 0 => since.saturating_add(initial_silence_ms),
            State::Silent { since } => since.saturating_add(after_greeting_silence_ms),
            State::Word { since } => {
                let left = greeting_ms.saturating_sub(self.spoken_ms).min(word_max_ms);
                since.saturating_add(left).saturating_add(self.settings.between_words_ms)
            }
        };
        next.min(self.settings.total_ms)
    }
    /// Takes what is heard at `at`, and says when it is sure.
    pub(super) fn handle(&mut self, heard: Heard, at: u32) -> Option<Verdict> {
        let limits = self.settings;
        match (self.state, heard) {
            (State::Silent { .. }, Heard::Word) => {
                self.words += 1;
                self.state = State::Word { since: at.saturating_sub(limits.word_min_ms) };
                if self.words > limits.words_max {
                    return Some(machine("MAXWORDS", self.words, limits.words_max));
                }
            }
            (State::Word { .. }, Heard::WordEnd { lasted_ms }) => {
                self.spoken_ms = self.spoken_ms.saturating_add(lasted_ms);
                self.state = State::Silent { since: at.saturating_sub(limits.between_words_ms) };
                if lasted_ms >= limits.word_max_ms {
                    return Some(long_word(lasted_ms));
                }
                if self.spoken_ms >= limits.greeting_ms {
                    return Some(machine("LONGGREETING", self.spoken_ms, limits.greeting_ms));
                }
            }
            // A word cannot begin within another, nor end where there is none; time alone is looked at below.
            (State::Silent { .. } | State::Word { .. }, _) => {}
        }
        self.by_time(at)
    }
    fn by_time(&self, at: u32) -> Option<Verdict> {
        let limits = self.settings;
        match self.state {
            State::Silent { since } => {
                let silent = at.saturating_sub(since);
                if self.words == 0 && silent >= limits.initial_silence_ms {
                    return Some(machine("INITIALSILENCE", silent, limits.initial_silence_ms));
                }
                if self.words > 0 && silent >= limits.after_greeting_silence_ms {
                    let cause = format!("HUMAN-{silent}-{}", limits.after_greeting_silence_ms);
                    return Some(Verdict { status: "HUMAN", cause });
                }
            }
            State::Word { since } => {
                // What lately was silence, if it was, is not told yet.
                let word = at.saturating_sub(since).saturating_sub(limits.between_words_ms);
                if word >= limits.word_max_ms {
                    return Some(long_word(word));
                }
                let spoken = self.spoken_ms.saturating_add(word);
                if spoken >= limits.greeting_ms {
                    return Some(machine("LONGGREETING", spoken, limits.greeting_ms));
                }
            }
        }
        (at >= limits.total_ms).then(|| Verdict { status: "NOTSURE", cause: format!("TOOLONG-{at}") })
    }
}

fn machine(cause: &str, measured: u32, limit: u32) -> Verdict {
    Verdict { status: "MACHINE", cause: format!("{cause}-{measured}-{limit}") }
}

/// Of a word its limit is not told.
fn long_word(measured: u32) -> Verdict {
    Verdict { status: "MACHINE", cause: format!("MAXWORDLENGTH-{measured}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets it hear words from and to these milliseconds, as a watch tells them, and time pass.
    fn verdict(settings: &MachineSettings, words: &[(u32, u32)]) -> (Verdict, u32) {
        let mut machine = Machine::new(settings);
        let mut news: Vec<(u32, Heard)> = words
            .iter()
            .flat_map(|&(from, to)| {
                [
                    (from + settings.word_min_ms, Heard::Word),
                    (to + settings.between_words_ms, Heard::WordEnd { lasted_ms: to - from }),
                ]
            })
            .collect();
        news.reverse();
        loop {
            let deadline = machine.deadline();
            let (at, heard) = match news.last() {
                Some(&(at, heard)) if at <= deadline => {
                    news.pop();
                    (at, heard)
                }
                _ => (deadline, Heard::Nothing),
            };
            if let Some(verdict) = machine.handle(heard, at) {
                return (verdict, at);
            }
        }
    }

    #[test]
    fn somebody_says_a_word_and_waits_and_a_machine_talks_or_says_nothing() {
        let standard = MachineSettings::default();
        for (name, words, status, cause, at) in [
            ("hello", &[(300, 700)][..], "HUMAN", "HUMAN-800-800", 1500),
            ("nothing", &[], "MACHINE", "INITIALSILENCE-2500-2500", 2500),
            ("a long sentence", &[(300, 4000)], "MACHINE", "LONGGREETING-1500-1500", 1850),
            ("two words", &[(300, 700), (900, 1200)], "HUMAN", "HUMAN-800-800", 2000),
            ("three words", &[(300, 700), (900, 1200), (1300, 1400)], "MACHINE", "MAXWORDS-3-2", 1400),
            (
                "a second of silence, please try again",
                &[(1000, 1300), (1400, 1700)],
                "HUMAN",
                "HUMAN-800-800",
                2500,
            ),
            ("a late word", &[(2400, 2700)], "HUMAN", "HUMAN-800-800", 3500),
        ] {
            let (verdict, when) = verdict(&standard, words);
            assert_eq!((verdict.status, verdict.cause.as_str(), when), (status, cause, at), "{name}");
        }
    }

    #[test]
    fn each_limit_is_obeyed() {
        let standard = MachineSettings { words_max: 100, ..MachineSettings::default() };
        let sentence: &[(u32, u32)] = &[(100, 400), (500, 800), (900, 1200), (1300, 1600), (1700, 2300)];
        for (name, settings, words, cause) in [
            (
                "initial silence",
                MachineSettings { initial_silence_ms: 99, ..standard.clone() },
                sentence,
                "INITIALSILENCE-99-99",
            ),
            (
                "greeting",
                MachineSettings { greeting_ms: 600, ..standard.clone() },
                sentence,
                "LONGGREETING-600-600",
            ),
            ("words", MachineSettings { words_max: 4, ..standard.clone() }, sentence, "MAXWORDS-5-4"),
            (
                "longest word",
                MachineSettings { word_max_ms: 500, greeting_ms: 9000, ..standard.clone() },
                sentence,
                "MAXWORDLENGTH-500",
            ),
            (
                "silence after it",
                MachineSettings { after_greeting_silence_ms: 60, ..standard.clone() },
                sentence,
                "HUMAN-60-60",
            ),
            ("all in all", MachineSettings { total_ms: 1000, ..standard.clone() }, sentence, "TOOLONG-1000"),
            (
                "after a greeting of several words",
                MachineSettings { greeting_ms: 9000, ..standard.clone() },
                sentence,
                "HUMAN-800-800",
            ),
        ] {
            assert_eq!(verdict(&settings, words).0.cause, cause, "{name}");
        }
    }

    #[test]
    fn what_the_watch_says_out_of_turn_changes_nothing() {
        let settings = MachineSettings::default();
        let mut machine = Machine::new(&settings);
        assert_eq!(machine.handle(Heard::WordEnd { lasted_ms: 9000 }, 10), None);
        assert_eq!(machine.handle(Heard::Word, 200), None);
        assert_eq!(machine.handle(Heard::Word, 210), None);
        assert_eq!(machine.words, 1);
    }
}
