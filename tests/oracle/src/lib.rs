//! C libraries as Debian packages them, to compare our codecs with: small programs built on the spot and spoken to by
//! pipes. Nothing of them is linked into anything of ours.
//!
//! ```no_run
//! let Some(gsm) = oracle::Oracle::build(&oracle::GSM) else { return }; // it said why on standard output
//! let frames = gsm.run("encode", &oracle::bytes(&oracle::speech()));
//! ```
#![forbid(unsafe_code)]

mod measure;

pub use measure::{Figure, quickest};

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A C library, and the program of `tests/oracle/c` that speaks for it.
#[derive(Debug)]
pub struct Library {
    /// Name of the program and of its source without `.c`.
    pub program: &'static str,
    /// What the linker is told.
    pub link: &'static [&'static str],
    /// Debian's package with its headers.
    pub package: &'static str,
}

/// GSM 06.10: `encode`, `decode`.
pub const GSM: Library = Library { program: "gsm", link: &["-lgsm"], package: "libgsm1-dev" };

/// G.722, G.726 and LPC-10: `g722-encode`, `g726-encode`, `g726aal2-encode`, `lpc10-encode`, and the same with `-decode`.
pub const SPANDSP: Library = Library { program: "spandsp", link: &["-lspandsp"], package: "libspandsp-dev" };

/// Opus at 48 kHz: `encode`, `decode`, packets of 20 ms each after its length in two bytes.
pub const OPUS: Library = Library { program: "opus", link: &["-lopus"], package: "libopus-dev" };

/// Speex narrowband at constant rate: `encode-q3`, `decode-q3`, `decode-q3-enhanced`, `decode-q3-lossy`,
/// `decode-q3-enhanced-lossy`, and so for every quality.
pub const SPEEX: Library = Library { program: "speex", link: &["-lspeex"], package: "libspeex-dev" };

/// SRTP: `SUITE-protect`, `SUITE-unprotect`, and with `-rtcp` behind; see the head of its source.
pub const SRTP: Library = Library { program: "srtp", link: &["-lsrtp2"], package: "libsrtp2-dev" };

/// A codec of our own that speaks the protocol of codecs in another process, healthy or ill.
pub const TOY: Library = Library { program: "toy", link: &[], package: "libc6-dev" };
/// G.729 by the same protocol.
pub const G729: Library = Library { program: "g729", link: &["-lbcg729"], package: "libbcg729-dev" };

/// A program that was built.
#[derive(Debug)]
pub struct Oracle {
    program: PathBuf,
}

impl Oracle {
    /// Compiles the library's program; `None`, and a line that says why, where that is not possible.
    ///
    /// It is built with `-O2` beside the test that runs, once for each version of its source.
    pub fn build(library: &Library) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
        let source = folder.join(library.program).with_extension("c");
        let home = std::env::current_exe().ok()?.parent()?.join("oracles");
        std::fs::create_dir_all(&home).ok()?;
        let program = home.join(library.program);
        let age = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        let newest = age(&source).max(age(&folder.join("oracle.h"))).max(age(&folder.join("external.h")));
        if age(&program) <= newest {
            // Tests run side by side: whoever is last to rename has built the same.
            static BUILDS: AtomicU32 = AtomicU32::new(0);
            let build = BUILDS.fetch_add(1, Ordering::Relaxed);
            let unfinished = home.join(format!("{}.{}.{build}", library.program, std::process::id()));
            let compiled = Command::new("cc")
                .args(["-O2", "-std=gnu11", "-o"])
                .arg(&unfinished)
                .arg(&source)
                .args(library.link)
                .args(["-lm"])
                .stderr(Stdio::null())
                .status();
            if !compiled.is_ok_and(|status| status.success()) {
                println!(
                    "skipped: no comparison with {}, which needs cc and {}",
                    library.program, library.package
                );
                return None;
            }
            std::fs::rename(&unfinished, &program).expect("a program beside its finished name");
        }
        Some(Self { program })
    }

    /// Where the program is.
    pub fn path(&self) -> &Path {
        &self.program
    }

    /// What the library makes of this input.
    pub fn run(&self, mode: &str, input: &[u8]) -> Vec<u8> {
        self.talk(&[mode], input).0
    }

    /// As [`run`](Self::run), with the CPU time of the quickest of so many rounds over the whole input.
    pub fn time(&self, mode: &str, input: &[u8], rounds: u32) -> (Vec<u8>, Duration) {
        let (output, report) = self.talk(&[mode, &rounds.to_string()], input);
        let nanoseconds = report.trim().parse().expect("the oracle prints its nanoseconds");
        (output, Duration::from_nanos(nanoseconds))
    }

    fn talk(&self, words: &[&str], input: &[u8]) -> (Vec<u8>, String) {
        let mut child = Command::new(&self.program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the oracle that was built can be run");
        // It reads all before it writes.
        child.stdin.take().expect("its input is a pipe").write_all(input).expect("it reads its input");
        let (mut output, mut report) = (Vec::new(), String::new());
        child.stdout.take().expect("its output is a pipe").read_to_end(&mut output).expect("its output");
        child.stderr.take().expect("its errors are a pipe").read_to_string(&mut report).expect("its report");
        let status = child.wait().expect("it ends");
        assert!(status.success(), "oracle {:?} {words:?} ended with {status}: {report}", self.program);
        (output, report)
    }
}

/// 35 seconds of speech at 8 kHz: prompts of `assets/sounds`, one after another.
pub fn speech() -> Vec<i16> {
    include_bytes!("../data/speech.ulaw").iter().map(|&code| ulaw(code)).collect()
}

/// µ-law → linear (ITU-T G.711).
fn ulaw(code: u8) -> i16 {
    let code = !code;
    let magnitude = ((i16::from(code & 0x0f) << 3) + 0x84) << ((code >> 4) & 7);
    if code & 0x80 == 0 { magnitude - 0x84 } else { 0x84 - magnitude }
}

/// Samples as the oracles read them: two bytes each, the low one first.
pub fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// Samples as the oracles write them.
pub fn samples(bytes: &[u8]) -> Vec<i16> {
    bytes.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g711_table_2b_codes_have_their_values() {
        for (code, value) in [(0x00, -32124), (0x80, 32124), (0xff, 0), (0x7f, 0), (0xef, 132), (0x9f, 8316)]
        {
            assert_eq!(ulaw(code), value, "{code:#04x}");
        }
    }

    #[test]
    fn samples_survive_the_way_through_bytes() {
        let speech = speech();
        assert_eq!(samples(&bytes(&speech)), speech);
        assert!(speech.len() > 30 * 8000 && speech.iter().any(|s| s.abs() > 8000));
    }

    #[test]
    fn an_oracle_codes_the_same_again_and_says_how_long_it_took() {
        let Some(gsm) = Oracle::build(&GSM) else { return };
        let input = bytes(&speech()[..8000]);
        let frames = gsm.run("encode", &input);
        assert_eq!(frames.len(), 50 * 33);
        let (again, took) = gsm.time("encode", &input, 2);
        assert_eq!(again, frames);
        assert!(!took.is_zero());
        assert_eq!(gsm.run("decode", &frames).len(), input.len());
    }

    #[test]
    fn a_library_that_is_not_there_is_skipped() {
        let absent = Library { program: "absent", link: &[], package: "libabsent-dev" };
        assert!(Oracle::build(&absent).is_none());
    }
}
