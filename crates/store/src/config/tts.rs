//! `tts.conf`: the program that speaks text.

use core::time::Duration;

use conf::{File, Findings};

use super::kind::{Int, Text};
use super::{Object as _, options, read_settings};
use crate::sounds::Speaker;

options! {
    /// `[general]` of `tts.conf`.
    TtsGeneral, "tts.conf", "general", IsIgnored;
    program: Text = "espeak-ng", "Program that speaks: its file, or a name in PATH. Text comes on its standard input, a WAVE file is expected on its standard output.";
    arguments: Text = "-v {voice} --stdin --stdout", "Its arguments, parted by blanks; {voice} stands for the voice.";
    timeout: Int<1, 60> = "10", "Seconds that it may take.";
    @recognised {}
}

/// The manual's rows.
pub(crate) fn rows() -> Vec<super::Row> {
    TtsGeneral::rows()
}

/// Reads the file. `[voices]` has lines `language=voice`.
pub fn read(file: &File, findings: &mut Findings) -> Speaker {
    let general: TtsGeneral = read_settings(file, "general", findings);
    let voices = file.section("voices").map(|section| {
        section.variables.iter().map(|line| (line.name.to_string(), line.value.to_string())).collect()
    });
    Speaker {
        program: general.program.clone(),
        arguments: general.arguments.split_whitespace().map(str::to_owned).collect(),
        voices: voices.unwrap_or_default(),
        timeout: Duration::from_secs(general.timeout.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_its_arguments_and_voices_are_read() {
        let source = conf::Memory::new().with(
            "tts.conf",
            "[general]\nprogram=/usr/bin/text2wave\narguments=-eval {voice} -\ntimeout=5\n[voices]\nde=(voice_german)\n",
        );
        let mut findings = Findings::new();
        let file = conf::load(&source, "tts.conf", conf::Options::default(), &mut findings).unwrap();
        let speaker = read(&file, &mut findings);
        assert_eq!(speaker.program, "/usr/bin/text2wave");
        assert_eq!(speaker.arguments, ["-eval", "{voice}", "-"]);
        assert_eq!(
            (speaker.voices["de"].as_str(), speaker.timeout),
            ("(voice_german)", Duration::from_secs(5))
        );
        let none = conf::Memory::new().with("tts.conf", "");
        let file = conf::load(&none, "tts.conf", conf::Options::default(), &mut findings).unwrap();
        assert_eq!(read(&file, &mut findings), Speaker::default());
        assert_eq!(findings.iter().count(), 0);
    }
}
