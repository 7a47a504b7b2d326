//! Text to speech: a program that reads text and writes a WAVE file, for sounds named `say:TEXT` and `tts:TEXT`.
//!
//! The text goes to the program's standard input, never into its line; no shell reads anything. What it takes and writes is
//! bounded.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Longest text that is spoken, bytes: a few minutes.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Most that the program may write, bytes: ten minutes at 22,050 samples a second.
const WAVE_BYTES_MAX: u64 = 27 << 20;
/// Samples a second that speech is brought to when its own rate is none that telephones have.
const RATE: u32 = 16_000;

/// The program, and how it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// Its file, or a name that is looked for in `PATH`.
    pub program: String,
    /// Its arguments; `{voice}` stands for the voice of the language.
    pub arguments: Vec<String>,
    /// Voices by language, where they are not named as their language.
    pub voices: BTreeMap<String, String>,
    /// How long it may take.
    pub timeout: Duration,
}

impl Default for Speaker {
    /// espeak-ng.
    fn default() -> Self {
        Self {
            program: "espeak-ng".to_owned(),
            arguments: ["-v", "{voice}", "--stdin", "--stdout"].map(str::to_owned).into(),
            voices: BTreeMap::new(),
            timeout: Duration::from_secs(10),
        }
    }
}

/// The text of a sound that is spoken; `None`: it is a file.
pub fn text_of(name: &str) -> Option<&str> {
    ["say:", "tts:"].iter().find_map(|prefix| {
        let head = name.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| name.get(prefix.len()..))?
    })
}

impl Speaker {
    /// The voices to try for a channel's language, the nearest first.
    fn voices(&self, language: &str) -> Vec<String> {
        let language = language.trim();
        let base = language.split(['_', '-']).next().unwrap_or_default();
        let plain = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let mut voices: Vec<String> = Vec::new();
        let named = [language, base].into_iter().filter_map(|name| self.voices.get(name).cloned());
        voices.extend(named);
        let known = match language.to_ascii_lowercase().replace('-', "_").as_str() {
            "en_us" => "en-us",
            "en_gb" => "en-gb",
            "pt_br" => "pt-br",
            "es_mx" | "es_co" => "es-419",
            _ => "",
        };
        let base = if matches!(base, "zh" | "cn" | "tw") { "cmn" } else { base };
        voices.extend(
            [known, base].iter().filter(|name| plain(&name.replace('-', ""))).map(|name| (*name).to_owned()),
        );
        voices.push("en".to_owned());
        voices.dedup();
        voices
    }
    /// Speaks; a WAVE file of a rate that sounds have. `Err` says what went wrong, and what to do.
    pub fn speak(&self, text: &str, language: &str) -> Result<Vec<u8>, String> {
        let text: String =
            text.chars().map(|symbol| if symbol.is_control() { ' ' } else { symbol }).collect();
        if text.trim().is_empty() {
            return Err("there is no text to be spoken".to_owned());
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("the text is longer than {TEXT_BYTES_MAX} bytes"));
        }
        let mut why = String::new();
        for voice in self.voices(language) {
            match self
                .run(&text, &voice)
                .and_then(|wave| suited(wave).ok_or("it wrote no WAVE file of 16 bits".to_owned()))
            {
                Ok(wave) => return Ok(wave),
                Err(failed) => why = failed,
            }
            // Without a voice in its arguments it would only say the same again.
            if !self.arguments.iter().any(|argument| argument.contains("{voice}")) {
                break;
            }
        }
        Err(format!(
            "{} does not speak: {why}; install espeak-ng, or name another program in tts.conf",
            self.program
        ))
    }
    fn run(&self, text: &str, voice: &str) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut child = Command::new(&self.program)
            .args(self.arguments.iter().map(|argument| argument.replace("{voice}", voice)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its ends are missing".to_owned());
        };
        // What is written fits into the pipe: a program that reads nothing keeps nobody waiting.
        let written = match input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n")) {
            // It wants no text, or no more of it: what it says counts.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        };
        drop(input);
        let (done, said) = channel();
        let reader = std::thread::Builder::new().name("speech-out".to_owned()).spawn(move || {
            let mut wave = Vec::new();
            let read = output.take(WAVE_BYTES_MAX + 1).read_to_end(&mut wave);
            let _ = done.send(read.map(|_| wave));
        });
        reader.map_err(failed)?;
        let answer = said.recv_timeout(self.timeout);
        if answer.is_err() {
            let _ = child.kill();
        }
        let ended = match &answer {
            // It has closed its output; if it goes on all the same, it is ended.
            Ok(_) => child.try_wait().ok().flatten(),
            Err(_) => None,
        };
        let ended = match ended {
            Some(status) => Some(status),
            None => {
                let patient = std::time::Duration::from_millis(200);
                std::thread::sleep(patient.min(self.timeout));
                let status = child.try_wait().ok().flatten();
                if status.is_none() {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                status
            }
        };
        written.map_err(failed)?;
        let wave = match answer {
            Ok(read) => read.map_err(failed)?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("it takes longer than {} s", self.timeout.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err("its output was lost".to_owned()),
        };
        if wave.len() as u64 > WAVE_BYTES_MAX {
            return Err("it writes more than ten minutes of sound".to_owned());
        }
        match ended {
            Some(status) if !status.success() => Err(status.to_string()),
            _ => Ok(wave),
        }
    }
}

/// The file at a rate that sounds have; `None`: it is no mono PCM of 16 bits.
pub(super) fn suited(file: Vec<u8>) -> Option<Vec<u8>> {
    if codec::SoundFile::parse("wav", &file).is_ok() {
        return Some(file);
    }
    let (rate, samples) = pcm(&file)?;
    wave(RATE, &resample(&samples, rate, RATE))
}

/// Samples of this rate as a file.
pub(super) fn wave(rate: u32, samples: &[i16]) -> Option<Vec<u8>> {
    let bytes = u32::try_from(samples.len() * 2).ok()?;
    let mut out = Vec::with_capacity(samples.len() * 2 + 44);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&(bytes + 36).to_le_bytes());
    out.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    out.extend_from_slice(&rate.to_le_bytes());
    out.extend_from_slice(&rate.checked_mul(2)?.to_le_bytes());
    out.extend_from_slice(b"\x02\0\x10\0data");
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    Some(out)
}

/// Rate and samples of mono PCM of 16 bits at 6 to 96 kHz. A program that writes to a pipe does not know how long its file
/// becomes: what the header says of it only counts when it is less than there is.
fn pcm(wave: &[u8]) -> Option<(u32, Vec<i16>)> {
    let mut rest = wave.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WAVE")?;
    let mut rate = None;
    loop {
        let (head, body) = rest.split_first_chunk::<8>()?;
        let [a, b, c, d, size @ ..] = *head;
        let size = usize::try_from(u32::from_le_bytes(size)).ok()?;
        match &[a, b, c, d] {
            b"fmt " => {
                let [t0, t1, c0, c1, r0, r1, r2, r3, _, _, _, _, _, _, b0, b1] = *body.first_chunk::<16>()?;
                let shape = [[t0, t1], [c0, c1], [b0, b1]].map(u16::from_le_bytes);
                rate =
                    Some(u32::from_le_bytes([r0, r1, r2, r3])).filter(|rate| (6000..=96_000).contains(rate));
                if shape != [1, 1, 16] {
                    return None;
                }
            }
            b"data" => {
                let size = if size == 0 { body.len() } else { size.min(body.len()) };
                let samples =
                    body.get(..size)?.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair));
                return Some((rate?, samples.collect()));
            }
            _ => {}
        }
        rest = body.get(size.saturating_add(size & 1)..)?;
    }
}

/// Zero crossings of the filter on each side.
const LOBES: f64 = 12.0;

/// Any rate to any other, by a sinc under a Hann window; not for calls, for a sound that is made once.
fn resample(samples: &[i16], from: u32, to: u32) -> Vec<i16> {
    let ratio = f64::from(from) / f64::from(to);
    // Down: what the lower rate cannot hold is filtered out.
    let cutoff = (1.0 / ratio).min(1.0) * 0.95;
    let reach = (LOBES / cutoff).ceil() as i64;
    let count = (samples.len() as f64 / ratio) as usize;
    (0..count)
        .map(|at| {
            let centre = at as f64 * ratio;
            let middle = centre.floor() as i64;
            let sum: f64 = (middle - reach..=middle + reach)
                .filter_map(|index| {
                    let sample = samples.get(usize::try_from(index).ok()?)?;
                    let distance = index as f64 - centre;
                    let phase = core::f64::consts::PI * distance * cutoff;
                    let sinc = if phase.abs() < 1e-9 { 1.0 } else { phase.sin() / phase };
                    let window = 0.5 + 0.5 * (core::f64::consts::PI * distance / (reach as f64 + 1.0)).cos();
                    Some(f64::from(*sample) * sinc * window * cutoff)
                })
                .sum();
            sum.clamp(-32_768.0, 32_767.0) as i16
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program for the shell in the place of a synthesiser.
    fn shell(script: &str) -> Speaker {
        Speaker {
            program: "/bin/sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned(), "sh".to_owned(), "{voice}".to_owned()],
            timeout: Duration::from_secs(2),
            ..Speaker::default()
        }
    }

    #[test]
    fn a_name_with_a_prefix_is_text() {
        for (name, text) in [
            ("say:Hello", Some("Hello")),
            ("TTS:Guten Tag", Some("Guten Tag")),
            ("say:", Some("")),
            ("hello-world", None),
            ("sayhello", None),
            ("süß", None),
        ] {
            assert_eq!(text_of(name), text, "{name}");
        }
    }

    #[test]
    fn the_nearest_voice_is_tried_first() {
        let speaker =
            Speaker { voices: [("de".to_owned(), "mb-de2".to_owned())].into(), ..Speaker::default() };
        for (language, voices) in [
            ("de_AT", vec!["mb-de2", "de", "en"]),
            ("en_GB", vec!["en-gb", "en"]),
            ("pt_BR", vec!["pt-br", "pt", "en"]),
            ("zh", vec!["cmn", "en"]),
            ("", vec!["en"]),
            ("-x $(id)", vec!["en"]),
        ] {
            assert_eq!(speaker.voices(language), voices, "{language}");
        }
    }

    #[test]
    fn text_goes_to_the_input_and_is_no_command() {
        let folder = std::env::temp_dir().join(format!("strowger-speech-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let heard = folder.join("heard");
        let speaker = shell(&format!("cat > {}; exit 3", heard.display()));
        let why = speaker.speak("$(touch /tmp/x); `id` \"\n&", "en").unwrap_err();
        assert!(why.contains("exit status: 3") && why.contains("tts.conf"), "{why}");
        assert_eq!(std::fs::read_to_string(&heard).unwrap(), "$(touch /tmp/x); `id` \" &\n");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_a_program_does_wrong_is_said() {
        let quick = |script: &str| Speaker { timeout: Duration::from_millis(300), ..shell(script) };
        for (speaker, text, part) in [
            (quick("sleep 60"), "hello", "takes longer than"),
            (quick("echo no sound"), "hello", "no WAVE file"),
            (quick("true"), " ", "no text"),
            (quick("true"), &*"x".repeat(TEXT_BYTES_MAX + 1), "longer than 4096 bytes"),
            (Speaker { program: "/nowhere/speaks".to_owned(), ..Speaker::default() }, "hello", "os error 2"),
        ] {
            let why = speaker.speak(text, "en").unwrap_err();
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn another_rate_keeps_tones_and_drops_what_does_not_fit() {
        let tone = |hertz: f64| -> Vec<i16> {
            (0..22_050)
                .map(|at| ((f64::from(at) * hertz * core::f64::consts::TAU / 22_050.0).sin() * 8000.0) as i16)
                .collect()
        };
        let loud = |samples: &[i16]| {
            let inner = &samples[1000..15_000];
            (inner.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / inner.len() as f64).sqrt()
        };
        let kept = resample(&tone(1000.0), 22_050, 16_000);
        assert_eq!(kept.len(), 16_000);
        assert!((loud(&kept) / (8000.0 / 2_f64.sqrt()) - 1.0).abs() < 0.02, "{}", loud(&kept));
        let crossings = kept.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
        assert!((998..=1001).contains(&crossings), "{crossings}");
        assert!(loud(&resample(&tone(10_000.0), 22_050, 16_000)) < 80.0, "beyond 8 kHz there is nothing");
    }

    #[test]
    fn espeak_speaks_when_it_is_installed() {
        match Speaker::default().speak("Good morning", "en_US") {
            Ok(wave) => {
                let sound = codec::SoundFile::parse("wav", &wave).unwrap();
                assert!(sound.data.len() > 16_000, "more than half a second");
                assert!(Speaker::default().speak("Guten Morgen", "de_AT").is_ok());
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}
