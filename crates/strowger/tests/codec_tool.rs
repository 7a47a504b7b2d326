//! `strowger codec`, as people call it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A tone of 440 Hz, half a second at 8 kHz, little-endian.
fn tone() -> Vec<u8> {
    let sample = |n: u32| (8000.0 * (f64::from(n) * 440.0 * std::f64::consts::TAU / 8000.0).sin()) as i16;
    (0..4000).flat_map(|n| sample(n).to_le_bytes()).collect()
}

/// Which share of the energy lies at 440 Hz.
fn tonality(linear: &[u8], rate: f64) -> f64 {
    let samples: Vec<f64> =
        linear.as_chunks::<2>().0.iter().map(|s| f64::from(i16::from_le_bytes(*s))).collect();
    // The first codec frames and the tail are not yet, or no longer, the tone.
    let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
    let (mut re, mut im, mut energy) = (0.0, 0.0, 0.0);
    for (n, sample) in middle.iter().enumerate() {
        let angle = n as f64 * 440.0 * std::f64::consts::TAU / rate;
        (re, im, energy) = (re + sample * angle.cos(), im + sample * angle.sin(), energy + sample * sample);
    }
    2.0 * (re * re + im * im) / (energy * middle.len() as f64)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("strowger-codec-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn call(&self, words: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_strowger"))
            .arg("codec")
            .args(words)
            .current_dir(&self.0)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_tone_survives_every_coded_format_there_and_back() {
    let folder = Folder::new("formats");
    std::fs::write(folder.path("in.sln"), tone()).unwrap();
    // Speech coders make less of a tone than waveform coders do.
    for (format, bytes, least) in [
        ("ulaw", 4000, 0.99),
        ("gsm", 25 * 33, 0.9),
        ("g722", 4000, 0.99),
        ("g726", 2000, 0.9),
        ("adpcm", 2000, 0.9),
        ("ilbc", 25 * 38, 0.8),
        ("ilbc30", 17 * 50, 0.8),
        ("slin16", 16_000, 0.99),
    ] {
        let (ok, said) = folder.call(&["encode", "in.sln", "coded.bin", "--to", format]);
        assert!(ok, "{format}: {said}");
        assert_eq!(read(&folder.path("coded.bin")).len(), bytes, "{format}: {said}");
        let (ok, said) = folder.call(&["transcode", "coded.bin", "--from", format, "out.sln"]);
        assert!(ok, "{format}: {said}");
        let heard = tonality(&read(&folder.path("out.sln")), 8000.0);
        assert!(heard > least, "{format}: {heard}");
    }
}

#[test]
fn a_wave_file_is_written_with_its_header_and_read_back() {
    let folder = Folder::new("wave");
    std::fs::write(folder.path("in.sln"), tone()).unwrap();
    let (ok, said) = folder.call(&["transcode", "in.sln", "out.wav16"]);
    assert!(ok, "{said}");
    assert!(read(&folder.path("out.wav16")).starts_with(b"RIFF"));
    let (ok, said) = folder.call(&["decode", "out.wav16", "back.sln"]);
    assert!(ok, "{said}");
    assert!(tonality(&read(&folder.path("back.sln")), 8000.0) > 0.99);
}

#[test]
fn what_cannot_be_done_is_said_with_a_remedy_and_leaves_no_file() {
    let folder = Folder::new("wrong");
    std::fs::write(folder.path("in.sln"), tone()).unwrap();
    std::fs::write(folder.path("in.gsm"), [0xd0; 33]).unwrap();
    std::fs::write(folder.path("in.xyz"), tone()).unwrap();
    for (words, part) in [
        (&["encode", "none.sln", "out.gsm"][..], "cannot read none.sln"),
        (&["encode", "in.gsm", "out.ulaw"], "`codec transcode` takes any format"),
        (&["decode", "in.gsm", "out.ulaw"], "name a .wav or .sln file"),
        (&["transcode", "in.xyz", "out.gsm"], "name the format with --from"),
        (&["transcode", "in.sln", "out.xyz"], "name the format with --to"),
        (
            &["transcode", "in.sln", "out.xyz", "--to", "mp3"],
            "there is no format 'mp3'; these can be coded: ulaw",
        ),
        (&["transcode", "in.sln", "out.xyz", "--to", "g729"], "g729 can only be passed through"),
        (&["transcode", "in.sln", "out.wav", "--to", "ulaw"], "a .wav file holds slin, not ulaw"),
    ] {
        let (ok, said) = folder.call(words);
        assert!(!ok && said.contains(part), "{words:?}: {said}");
        assert!(!folder.path(words[2]).exists(), "{words:?}");
    }
}
