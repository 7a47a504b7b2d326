//! `codecs.conf`: how codecs code, and codecs that are programs of their own.

use super::kind::{Decimal, Folder, Int, Kind, Lines, Millis, Text, YesNo, choice};
use super::{options, read_object, read_settings};
use base::{Coded, FormatId};
use conf::{File, Finding, Findings, Section, Variable};
use std::path::Path;

options! {
    /// `[speex]`.
    Speex, "codecs.conf", "speex", IsIgnored;
    quality: Int<0, 10> = "3", "Quality of Speex at a constant bit rate. At 8 kHz 3, 4, 7 and 8 are coded in lanes, the others by libspeex.";
    complexity: Int<0, 10> = "2", "Effort of the encoder. At 8 kHz every other one than 2 is left to libspeex.";
    enhancement: YesNo = "yes", "Perceptual enhancement in the decoder.";
    vbr: YesNo = "no", "Let the bit rate follow the sound; coded by libspeex.";
    vbr_quality: Decimal = "4", "Quality at a variable bit rate, 0 to 10.";
    abr: Int<0, 100_000> = "0", "Average bit rate to keep, in bits a second; coded by libspeex.";
    vad: YesNo = "no", "Tell silence from speech; coded by libspeex.";
    dtx: YesNo = "no", "Send nothing in silence; coded by libspeex.";
    @recognised {
        "experimental_rtcp_feedback" "no" Later "the bit rate does not follow reports of loss";
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
    /// `[ilbc]`; Strowger's own.
    Ilbc, "codecs.conf", "ilbc", IsIgnored;
    enhancer: YesNo = "no", "Smooth what is decoded (RFC 3951 §4.6). Costs time and delays by 5 to 10 ms. Strowger's own.";
    fast: YesNo = "no", "Code in groups with other orders of addition: faster, as good to the ear, and not the reference's bits. Strowger's own.";
    @recognised {}
}

choice! {
    /// `max_bandwidth=`: highest part of the spectrum that is coded.
    Bandwidth {
        Full | "full" "20 kHz.";
        Narrow | "narrow" "4 kHz.";
        Medium | "medium" "6 kHz.";
        Wide | "wide" "8 kHz.";
        SuperWide | "super_wide" "12 kHz.";
    }
}

impl Bandwidth {
    /// The rate of samples that holds it, in Hz.
    const fn rate(self) -> u32 {
        match self {
            Self::Narrow => 8000,
            Self::Medium => 12_000,
            Self::Wide => 16_000,
            Self::SuperWide => 24_000,
            Self::Full => 48_000,
        }
    }
}

/// Bits a second, `auto` for what suits the bandwidth, `max` for no bound.
#[derive(Debug)]
pub struct BitRate;
impl Kind for BitRate {
    type Value = Option<u32>;
    fn describe() -> String {
        "bits a second, 6000 to 510000, auto or max".into()
    }
    fn set(value: &mut Option<u32>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = match variable.value.to_ascii_lowercase().as_str() {
            "auto" => None,
            "max" => Some(510_000),
            _ => Some(variable.integer::<u32>(6000..=510_000)?),
        };
        Ok(())
    }
}

options! {
    /// `[opus]`: bounds to what peers wish in their `a=fmtp`.
    Opus, "codecs.conf", "opus", IsIgnored;
    kind as "type": Text = "opus", "opus.";
    packet_loss: Int<0, 100> = "10", "Share of packets that are taken to be lost, in percent: how much is spent on copies of the frame before.";
    complexity: Int<0, 10> = "5", "Effort of the encoder.";
    max_bandwidth: Bandwidth = "full", "Highest part of the spectrum that is coded.";
    bitrate: BitRate = "auto", "Bits a second at most on average.";
    cbr: YesNo = "no", "Every packet is equally long, whether the peer wishes so or not.";
    fec: YesNo = "yes", "Peers that say useinbandfec=1 get a coarse copy of the frame before in each packet.";
    dtx: YesNo = "no", "Send little in silence, whether the peer wishes so or not.";
    @recognised {
        "max_playback_rate" "48000" Later "what comes is played at any rate";
        "signal" "auto" Later "the encoder finds out";
        "application" "voip" Later "the encoder is made for speech";
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
    program: Folder = "", "The program, spoken to by its standard input and output.";
    argument: Lines = "", "An argument of the program; one a line.";
    socket: Folder = "", "A Unix socket on which the codec listens, instead of a program.";
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
    /// `[ilbc]`.
    pub ilbc: Ilbc,
    /// `[opus]`.
    pub opus: Opus,
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
            ilbc: read_settings(file, "ilbc", findings),
            opus: read_settings(file, "opus", findings),
            plc: read_settings(file, "plc", findings),
            external: Vec::new(),
        };
        for section in file.objects() {
            let known = ["general", "speex", "ilbc", "opus", "plc"]
                .iter()
                .any(|name| section.name.eq_ignore_ascii_case(name));
            if !known {
                codecs.external.extend(external(section, &codecs.external, findings));
            }
        }
        if codecs.settings().speex.wants_library()
            && let Some((_, why)) =
                codec::missing_libraries().find(|(format, _)| *format == FormatId::SPEEX16)
        {
            let place = codecs.speex.origin.place.clone();
            let message = format!(
                "speech at 8 kHz is coded at the nearest of qualities 3 and 8 instead, because {why}"
            );
            findings.warning(&place, message, "install libspeex1, or write quality=3 or quality=8");
        }
        codecs
    }

    /// As the codecs take them.
    pub fn settings(&self) -> codec::Settings {
        let (speex, opus) = (&self.speex, &self.opus);
        // The bounds of the rows fit.
        let small = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        codec::Settings {
            ilbc: codec::IlbcSettings { enhancer: self.ilbc.enhancer, fast: self.ilbc.fast },
            speex: codec::SpeexSettings {
                quality: small(speex.quality),
                complexity: small(speex.complexity),
                enhancement: speex.enhancement,
                vbr: speex.vbr,
                vbr_quality: speex.vbr_quality.min(10.0) as f32,
                abr: speex.abr,
                vad: speex.vad,
                dtx: speex.dtx,
            },
            opus: codec::OpusSettings {
                bitrate: opus.bitrate,
                playback_rate: opus.max_bandwidth.rate(),
                complexity: small(opus.complexity),
                loss_percent: small(opus.packet_loss),
                fec: opus.fec,
                dtx: opus.dtx,
                constant: opus.cbr,
            },
        }
    }

    /// Formats that are coded here when every external codec starts.
    pub fn coded(&self) -> Coded {
        self.external.iter().filter_map(|external| external.id).fold(Coded::default(), Coded::with)
    }
}

/// An external codec; `None`, and a finding that says why, for one that cannot be.
fn external(section: &Section, others: &[External], findings: &mut Findings) -> Option<External> {
    let kind = section.variables.iter().rfind(|variable| variable.name.eq_ignore_ascii_case("type"));
    if !kind.is_some_and(|kind| kind.value.eq_ignore_ascii_case("external")) {
        // Asterisk makes formats of its own of these, such as a second opus with other bounds.
        let of_stock =
            kind.filter(|kind| ["silk", "celt"].iter().any(|known| kind.value.eq_ignore_ascii_case(known)));
        if let Some(kind) = of_stock {
            let message =
                format!("[{}] describes a format of {}, which is not coded here", section.name, kind.value);
            findings.note(&section.place, message, "");
            return None;
        }
        let message = format!("[{}] of codecs.conf is not read: its type is not external", section.name);
        findings.warning(&section.place, message, "set [opus] itself, or write type=external");
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
        Some(id) if !codec::external::has_frames(id) => Some((
            "format",
            format!("is for {id}, whose packets no program can take apart frame by frame"),
            "remove the section; calls pass the format on as it is",
        )),
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
    for (option, path) in [("program", &codec.program), ("socket", &codec.socket)] {
        if !empty(path)
            && let Err(why) = std::fs::metadata(path)
        {
            let message = format!(
                "the external codec '{name}' cannot start: {}: {why}; until it does, its format passes from leg to leg",
                path.display()
            );
            findings.warning(
                codec.origin.place_of(option),
                message,
                "install the program, or correct the path",
            );
        }
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
    fn settings_are_those_of_the_codecs() {
        let (codecs, findings) = read(
            "[speex]\nquality=8\nenhancement=no\n[ilbc]\nenhancer=yes\nfast=yes\n\
             [opus]\ntype=opus\nmax_bandwidth=wide\nbitrate=20000\nfec=no\ncbr=yes\ncomplexity=9\npacket_loss=20\n",
        );
        assert_eq!(findings, [""; 0]);
        let settings = codecs.settings();
        assert_eq!((settings.speex.quality, settings.speex.enhancement), (8, false));
        assert!(settings.ilbc.enhancer && settings.ilbc.fast);
        let expected = codec::OpusSettings {
            bitrate: Some(20_000),
            playback_rate: 16_000,
            complexity: 9,
            loss_percent: 20,
            fec: false,
            dtx: false,
            constant: true,
        };
        assert_eq!(settings.opus, expected);
        assert_eq!(
            CodecsConf::default().settings(),
            codec::Settings::default(),
            "defaults are the codecs' own"
        );
        let (_, findings) = read("[opus]\nsignal=music\nbitrate=1\n[speex]\npreprocess=yes\n");
        assert_eq!(findings.len(), 3, "{findings:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_told() {
        let (codecs, findings) = read("[x]\ntype=external\nformat=g729\nprogram=/nowhere/g729\n");
        assert_eq!(codecs.external.len(), 1, "it may be installed by the time of the start");
        assert!(findings.iter().any(|message| message.contains("/nowhere/g729")), "{findings:?}");
        assert!(codecs.coded().contains(FormatId::G729));
    }

    #[test]
    fn what_cannot_be_is_skipped_and_told() {
        for (name, text, said) in [
            ("another type", "[my-opus]\ntype=opus\nmax_bandwidth=full\n", "its type is not external"),
            (
                "bits without frames",
                "[x]\ntype=external\nformat=amr\nprogram=/x\n",
                "no program can take apart",
            ),
            ("no format", "[x]\ntype=external\nprogram=/x\n", "names no format: ''"),
            ("a built-in format", "[x]\ntype=external\nformat=ulaw\nprogram=/x\n", "which is built in"),
            ("no program", "[x]\ntype=external\nformat=g729\n", "needs either program= or socket="),
            ("both", "[x]\ntype=external\nformat=g729\nprogram=/x\nsocket=/y\n", "needs either"),
            ("no time", "[x]\ntype=external\nformat=g729\nprogram=/x\nanswer=soon\n", "is skipped"),
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
