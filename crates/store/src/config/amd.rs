//! `amd.conf`: how answering machines are told from people.

use call::MachineSettings;
use conf::{File, Findings};

use super::kind::{Int, Text};
use super::{options, read_settings};

options! {
    /// `[general]` of `amd.conf`.
    Amd, "amd.conf", "general", IsIgnored;
    total_analysis_time: Int<1, 600_000> = "5000", "Milliseconds after which AMD() is not sure.";
    silence_threshold: Int<0, 32_767> = "256", "Mean amplitude below which it is silent.";
    playback_file: Text = "", "Sound that is played meanwhile.";
    initial_silence: Int<1, 600_000> = "2500", "Milliseconds of silence before a greeting after which it is a machine.";
    after_greeting_silence: Int<1, 600_000> = "800", "Milliseconds of silence after a greeting after which it is somebody.";
    greeting: Int<1, 600_000> = "1500", "Milliseconds of a greeting beyond which it is a machine.";
    min_word_length: Int<0, 600_000> = "100", "Milliseconds of sound below which it is no word.";
    maximum_word_length: Int<1, 600_000> = "5000", "Milliseconds of a word beyond which it is a machine.";
    between_words_silence: Int<0, 600_000> = "50", "Milliseconds of silence that part words.";
    maximum_number_of_words: Int<1, 10_000> = "2", "More words are a machine.";
    @recognised {}
}

impl Amd {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        read_settings(file, "general", findings)
    }
    /// The same for calls.
    pub fn machines(&self) -> MachineSettings {
        MachineSettings {
            initial_silence_ms: self.initial_silence,
            greeting_ms: self.greeting,
            after_greeting_silence_ms: self.after_greeting_silence,
            total_ms: self.total_analysis_time,
            word_min_ms: self.min_word_length,
            between_words_ms: self.between_words_silence,
            words_max: self.maximum_number_of_words,
            silence_threshold: self.silence_threshold,
            word_max_ms: self.maximum_word_length,
            audio_file: self.playback_file.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> MachineSettings {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("amd.conf", text);
        let file = conf::load(&source, "amd.conf", conf::Options::default(), &mut findings).unwrap();
        let read = Amd::read(&file, &mut findings);
        assert_eq!(findings.len(), 0, "{text}");
        read.machines()
    }

    #[test]
    fn without_a_line_it_is_as_the_field_has_it_and_each_line_counts() {
        assert_eq!(read("[general]\n"), MachineSettings::default());
        let all = "[general]\ntotal_analysis_time=1\nsilence_threshold=2\nplayback_file=hold\ninitial_silence=3\n\
                   after_greeting_silence=4\ngreeting=5\nmin_word_length=6\nmaximum_word_length=7\n\
                   between_words_silence=8\nmaximum_number_of_words=9\n";
        let expected = MachineSettings {
            total_ms: 1,
            silence_threshold: 2,
            audio_file: "hold".to_owned(),
            initial_silence_ms: 3,
            after_greeting_silence_ms: 4,
            greeting_ms: 5,
            word_min_ms: 6,
            word_max_ms: 7,
            between_words_ms: 8,
            words_max: 9,
        };
        assert_eq!(read(all), expected);
    }
}
