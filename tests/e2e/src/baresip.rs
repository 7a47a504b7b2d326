//! baresip as a phone: registers, calls, answers, plays a file and records what it hears.

use crate::likeness::{RATE, resample};
use crate::place::{Place, free_ports};
use crate::site::SECRET;
use crate::{tone, wait};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where Debian puts the modules.
const MODULES: &str = "/usr/lib/baresip/modules";
/// Where all of them live: their audio leaves by whatever address the kernel chooses, which on this interface is this
/// one, and audio from elsewhere than SIP said is rightly not heard.
const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Rate and channels of a codec's sound, and the module with it.
fn module(codec: &str) -> (u32, u16, &'static str) {
    match codec.split('/').next().unwrap_or_default() {
        "g722" => (16_000, 1, "g722.so"),
        "gsm" => (8_000, 1, "gsm.so"),
        "G726-32" => (8_000, 1, "g726.so"),
        "opus" => (48_000, 2, "opus.so"),
        _ => (8_000, 1, "g711.so"),
    }
}

/// A baresip process.
#[derive(Debug)]
pub struct Baresip {
    place: Place,
    rate: u32,
    child: Child,
    control: TcpStream,
    /// Bytes that its terminal had shown when it dialled last.
    shown: usize,
}

impl Baresip {
    /// A phone that registers as `name` and says a tone in every call. It answers at once.
    pub fn start(server: SocketAddr, name: &str, codec: &str, hertz: f64) -> Self {
        let (rate, channels, _) = module(codec);
        Self::saying(
            server,
            ("udp", name),
            codec,
            "",
            tone::wav(rate, channels, &tone::sine(rate, hertz, 60.0)),
        )
    }

    /// The same with SRTP, keys in the description: with `srtp` it says `RTP/AVP` and takes plain RTP too, with
    /// `srtp-mand` it says `RTP/SAVP`, with `srtp-mandf` `RTP/SAVPF`, and takes nothing else.
    pub fn sealed(server: SocketAddr, name: &str, codec: &str, hertz: f64, how: &str) -> Self {
        let (rate, channels, _) = module(codec);
        let voice = tone::wav(rate, channels, &tone::sine(rate, hertz, 60.0));
        Self::saying(server, ("udp", name), codec, &format!(";mediaenc={how}"), voice)
    }

    /// As [`Baresip::start`], over TLS. It does not ask who the server is.
    pub fn over_tls(server: SocketAddr, name: &str, codec: &str, hertz: f64) -> Self {
        let (rate, channels, _) = module(codec);
        let voice = tone::wav(rate, channels, &tone::sine(rate, hertz, 60.0));
        Self::saying(server, ("tls", name), codec, "", voice)
    }

    /// As [`Baresip::over_tls`], with SRTP and nothing else.
    pub fn sealed_over_tls(server: SocketAddr, name: &str, codec: &str, hertz: f64) -> Self {
        let (rate, channels, _) = module(codec);
        let voice = tone::wav(rate, channels, &tone::sine(rate, hertz, 60.0));
        Self::saying(server, ("tls", name), codec, ";mediaenc=srtp-mand", voice)
    }

    /// A phone that says speech, at 8 kHz, again and again. It answers at once.
    pub fn speaking(server: SocketAddr, name: &str, codec: &str, speech: &[i16]) -> Self {
        let (rate, channels, _) = module(codec);
        let again = speech.iter().copied().cycle().take(60 * RATE);
        let speech = resample(&again.collect::<Vec<_>>(), RATE, rate as usize);
        Self::saying(server, ("udp", name), codec, "", tone::wav(rate, channels, &speech))
    }

    fn saying(
        server: SocketAddr,
        (transport, name): (&str, &str),
        codec: &str,
        account: &str,
        voice: Vec<u8>,
    ) -> Self {
        // It takes the port after its own for TLS, whether it is wanted or not.
        let sip = free_ports(HOME, 3);
        let control = sip + 2;
        let place = Place::new(&format!("phone-{name}"));
        let (rate, _, module) = module(codec);
        let voice = place.write("voice.wav", voice);
        place.write("recorded/.keep", "");
        let modules: String = [
            "account.so",
            "aufile.so",
            "aubridge.so",
            "sndfile.so",
            "menu.so",
            "ctrl_tcp.so",
            "srtp.so",
            module,
        ]
        .iter()
        .map(|module| {
            let app = matches!(*module, "account.so" | "menu.so" | "ctrl_tcp.so");
            format!("{}\t\t{module}\n", if app { "module_app" } else { "module" })
        })
        .collect();
        place.write(
            "config",
            format!(
                "poll_method epoll\nsip_listen {HOME}:{sip}\nsip_verify_server no\nmodule_path {MODULES}\n{modules}\
                 audio_path {}\naudio_source aufile,{}\naudio_player aubridge,nowhere\naudio_alert aubridge,nowhere\n\
                 audio_channels 1-1\naudio_buffer 20-160\nrtp_ports 10000-19998\nrtp_stats no\n\
                 snd_path {}\nctrl_tcp_listen {HOME}:{control}\nnet_interface {HOME}\ncall_local_timeout 60\n",
                place.path().display(),
                voice.display(),
                place.join("recorded").display(),
            ),
        );
        place.write(
            "accounts",
            format!(
                "<sip:{name}@{server};transport={transport}>;auth_user={name};auth_pass={SECRET};answermode=auto;regint=60;\
                 audio_codecs={codec};ptime=20;dtmfmode=rtpevent{account}\n"
            ),
        );
        let output = std::fs::File::create(place.join("output")).expect("a file for its output");
        let child = Command::new("baresip")
            .arg("-4")
            .arg("-f")
            .arg(place.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("the same file"))
            .stderr(output)
            .spawn()
            .expect("baresip starts");
        let control = wait::for_some(wait::SOON, || TcpStream::connect((HOME, control)).ok());
        let Some(control) = control else {
            panic!("baresip opens no control connection:\n{}", place.read("output"))
        };
        control.set_read_timeout(Some(Duration::from_millis(10))).expect("a time-out");
        let mut phone = Self { place, rate, child, control, shown: 0 };
        phone.said("200 OK");
        phone
    }

    /// Waits until its terminal has shown some words since it dialled last.
    pub fn said(&mut self, words: &str) {
        let seen = wait::for_some(wait::SOON, || {
            self.drain();
            self.place.read("output").get(self.shown..)?.contains(words).then_some(())
        });
        assert!(seen.is_some(), "baresip never says '{words}':\n{}", self.place.read("output"));
    }

    /// Events and answers are not looked at; they must not fill the connection.
    fn drain(&mut self) {
        let mut buffer = [0; 4096];
        while self.control.read(&mut buffer).is_ok_and(|length| length > 0) {}
    }

    fn command(&mut self, command: &str, parameters: &str) {
        let json = serde_json::json!({ "command": command, "params": parameters }).to_string();
        write!(self.control, "{}:{json},", json.len()).expect("the control connection stands");
    }

    /// Calls.
    pub fn dial(&mut self, uri: &str) {
        self.forget();
        self.shown = self.place.read("output").len();
        self.command("dial", uri);
    }

    /// Forgets what it has heard in calls that are over.
    pub fn forget(&self) {
        for file in std::fs::read_dir(self.place.join("recorded")).into_iter().flatten().flatten() {
            let _gone = std::fs::remove_file(file.path());
        }
    }

    /// Hangs up.
    pub fn hang_up(&mut self) {
        self.command("hangup", "");
    }

    /// Puts the call on hold.
    pub fn hold(&mut self) {
        self.command("hold", "");
    }

    /// Takes the call back from hold.
    pub fn resume(&mut self) {
        self.command("resume", "");
    }

    /// Sends whom it talks to elsewhere, by REFER.
    pub fn transfer(&mut self, uri: &str) {
        self.command("transfer", uri);
    }

    /// Types digits into the call, one after the other.
    pub fn type_digits(&mut self, digits: &str) {
        for digit in digits.chars() {
            self.command("sndcode", &digit.to_string());
        }
    }

    /// Milliseconds of a tone in what it has heard in its last call so far.
    pub fn heard(&self, hertz: f64) -> u32 {
        tone::heard(&self.recording(), self.rate, hertz)
    }

    /// What it has heard in its last call so far, at 8 kHz.
    pub fn speech(&self) -> Vec<i16> {
        resample(&self.recording(), self.rate as usize, RATE)
    }

    /// What it has heard in its last call so far.
    pub fn recording(&self) -> Vec<i16> {
        self.recorded().and_then(|path| tone::read_wav(&path)).map_or_else(Vec::new, |(_, samples)| samples)
    }

    fn recorded(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(self.place.join("recorded")).ok()?;
        files
            .flatten()
            .map(|file| file.path())
            .filter(|path| path.display().to_string().ends_with("dec.wav"))
            .max()
    }

    /// Waits until what it hears is these tones of some, all at once and no others.
    pub fn until_hears(&self, expected: &[f64], of: &[f64]) {
        let lately = || tone::lately(&self.speech(), of);
        let heard = wait::for_some(wait::SOON, || (lately() == expected).then_some(()));
        assert!(heard.is_some(), "{:?} is heard, not {expected:?}\n{}", lately(), self.place.read("output"));
    }

    /// Waits until it has heard half a second of a tone.
    pub fn until_heard(&self, hertz: f64) {
        let heard = wait::for_some(wait::SOON, || (self.heard(hertz) >= 500).then_some(()));
        let samples = self.recording();
        assert!(
            heard.is_some(),
            "{hertz} Hz is not heard: {} samples, {} ms of sound, {} ms of the tone\n{}",
            samples.len(),
            tone::sounding(&samples, self.rate),
            self.heard(hertz),
            self.place.read("output")
        );
    }
}

impl Drop for Baresip {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
