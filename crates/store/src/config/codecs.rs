//! `codecs.conf`: how codecs code, and codecs that are programs of their own.

use super::kind::{Folder, Int, Lines, Millis, Text, YesNo};
use super::{options, read_object, read_settings};
use base::FormatId;
use conf::{File, Findings, Section};
use std::path::Path;

options! {
    /// `[speex]`.
    Speex, "codecs.conf", "speex", IsIgnored;
    quality: Int<0, 10> = "3", "Quality of Speex at a constant bit rate.",
        Later "3" "quality is 3";
    complexity: Int<0, 10> = "2", "Effort of the encoder.",
        Later "2" "complexity is 2";
    enhancement: YesNo = "yes", "Perceptual enhancement in the decoder.",
        Later "*" "the decoder decides";
    vbr: YesNo = "no", "Let the bit rate follow the sound.",
        Later "no" "the bit rate is constant";
    vbr_quality: Text = "4", "Quality at a variable bit rate.",
        Later "*" "the bit rate is constant";
    abr: Int<0, 100_000> = "0", "Average bit rate to keep, in bits a second.",
        Later "0" "the bit rate is constant";
    vad: YesNo = "no", "Tell silence from speech.",
        Later "no" "silence is coded as speech";
    dtx: YesNo = "no", "Send nothing in silence.",
        Later "no" "silence is sent";
    @recognised {
        "preprocess" "no" Later "sound is not preprocessed";
        "pp_vad" "no" Later "sound is not preprocessed";
        "pp_agc" "no" Later "sound is not preprocessed";
        "pp_agc_level" "*" Later "sound is not preprocessed";
        "pp_denoise" "no" Later "sound is not preprocessed";
        "pp_dereverb" "no" Later "sound is not preprocessed";
        "pp_dereverb_decay" "*" Later "sound is not preprocessed";
        "pp_dereverb_level" "*" Later "sound is not preprocessed";
    }
}

options! {
    /// `[plc]`.
    Plc, "codecs.conf", "plc", IsIgnored;
    genericplc: YesNo = "yes", "Fill in for lost packets.",
        Ignored "yes" "lost packets of every codec are concealed";
    @recognised {
        "genericplc_on_equal_codecs" "*" Ignored "between equal codecs packets pass as they come";
    }
}

options! {
    /// A section with `type=external`: a codec that is a program of its own.
    External, "codecs.conf", "external", SkipsObject;
    kind as "type": Text = "", "external.";
    format: Text = "", "The format that it codes, as allow= names it; one that is not built in.";
    program: Folder = "", "The program, spoken to by its standard input and output.",
        Later "" "the process is not started; its format passes from leg to leg as it is";
    argument: Lines = "", "An argument of the program; one a line.";
    socket: Folder = "", "A Unix socket on which the codec listens, instead of a program.",
        Later "" "the socket is not used; its format passes from leg to leg as it is";
    answer: Millis<20, 60_000> = "1000", "Longest wait for an answer; then the process is ended and started again.";
    restart: Millis<10, 600_000> = "2000", "Time between the end of the process and its next start.";
    @recognised {}
    resolved {
        /// What `format=` names.
        id: Option<FormatId>;
    }
}

/// `codecs.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CodecsConf {
    /// `[speex]`.
    pub speex: Speex,
    /// `[plc]`.
    pub plc: Plc,
    /// Sections with `type=external`, in order of the file; each of another format that is not built in.
    pub external: Vec<External>,
}

impl CodecsConf {
    /// Reads the file. An external codec that cannot be is skipped.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut codecs = Self {
            speex: read_settings(file, "speex", findings),
            plc: read_settings(file, "plc", findings),
            external: Vec::new(),
        };
        for section in file.objects() {
            let known =
                ["general", "speex", "plc"].iter().any(|name| section.name.eq_ignore_ascii_case(name));
            if !known {
                codecs.external.extend(external(section, &codecs.external, findings));
            }
        }
        codecs
    }
}

/// An external codec; `None`, and a finding that says why, for one that cannot be.
fn external(section: &Section, others: &[External], findings: &mut Findings) -> Option<External> {
    let kind = section.variables.iter().rfind(|variable| variable.name.eq_ignore_ascii_case("type"));
    if !kind.is_some_and(|kind| kind.value.eq_ignore_ascii_case("external")) {
        // Asterisk has others, such as opus: what they set is agreed upon in each call.
        let message = format!("[{}] of codecs.conf is not read: its type is not external", section.name);
        findings.warning(&section.place, message, "remove it, or write type=external");
        return None;
    }
    let mut codec = read_object::<External>(section, findings, &mut |_, _, _| false)?;
    codec.id = FormatId::from_name(&codec.format);
    let twin = others.iter().find(|other| other.id == codec.id);
    let name = &section.name;
    let empty = |path: &Path| path.as_os_str().is_empty();
    let refused = match codec.id {
        None => Some(("format", format!("names no format: '{}'", codec.format), "see core show codecs")),
        Some(id) if id.is_coded() => {
            Some(("format", format!("is for {id}, which is built in"), "remove the section"))
        }
        Some(id) if twin.is_some() => {
            Some(("format", format!("is a second one for {id}"), "keep one of the two sections"))
        }
        Some(_) if empty(&codec.program) == empty(&codec.socket) => Some((
            "program",
            "needs either program= or socket=".into(),
            "write one of them, such as program=/usr/local/lib/strowger/g729",
        )),
        Some(_) => None,
    };
    if let Some((option, why, remedy)) = refused {
        let message = format!("the external codec '{name}' {why}; it is skipped");
        findings.error(codec.origin.place_of(option), message, remedy);
        return None;
    }
    Some(codec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(text: &str) -> (CodecsConf, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("codecs.conf", text);
        let file = conf::load(&source, "codecs.conf", conf::Options::default(), &mut findings).unwrap();
        let codecs = CodecsConf::read(&file, &mut findings);
        (codecs, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn an_external_codec_has_a_format_and_a_program() {
        let (codecs, _) = read(
            "[speex]\nquality=3\n[my-g729](!)\ntype=external\n[a](my-g729)\nformat=g729\nprogram=/opt/g729\n\
             argument=-x\nargument=two words\nanswer=300\n",
        );
        let [codec] = &codecs.external[..] else { panic!("{codecs:?}") };
        assert_eq!((codec.id, codec.program.as_path()), (Some(FormatId::G729), Path::new("/opt/g729")));
        assert_eq!(codec.argument, ["-x", "two words"]);
        assert_eq!((codec.answer, codec.restart), (Duration::from_millis(300), Duration::from_secs(2)));
    }

    #[test]
    fn what_cannot_be_is_skipped_and_told() {
        for (name, text, said) in [
            ("another type", "[opus]\ntype=opus\nmax_bandwidth=full\n", "its type is not external"),
            ("no format", "[x]\ntype=external\nprogram=/x\n", "names no format: ''"),
            ("a built-in format", "[x]\ntype=external\nformat=ulaw\nprogram=/x\n", "which is built in"),
            ("no program", "[x]\ntype=external\nformat=g729\n", "needs either program= or socket="),
            ("both", "[x]\ntype=external\nformat=g729\nprogram=/x\nsocket=/y\n", "needs either"),
            ("too hasty", "[x]\ntype=external\nformat=g729\nprogram=/x\nanswer=1\n", "is skipped"),
        ] {
            let (codecs, findings) = read(text);
            assert!(codecs.external.is_empty(), "{name}: {codecs:?}");
            assert!(findings.iter().any(|message| message.contains(said)), "{name}: {findings:?}");
        }
        let two =
            "[x]\ntype=external\nformat=g729\nprogram=/x\n[y]\ntype=external\nformat=g729\nprogram=/y\n";
        let (codecs, findings) = read(two);
        assert_eq!(codecs.external.len(), 1);
        assert!(findings.iter().any(|message| message.contains("a second one for g729")), "{findings:?}");
    }
}
