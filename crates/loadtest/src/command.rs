//! `strowger load`: the command line, the progress line, the report.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use base::{FormatId, FormatSet};
use indicatif::{ProgressBar, ProgressStyle};
use io::media::PortRange;

use crate::{Hear, Load, Media, Plan, Report};

/// Port of a server that is named without one.
const SIP_PORT: u16 = 5060;
/// Calls a second that are ended when a run is over.
const HANG_UP_RATE: f64 = 500.0;
/// How long the last BYEs may take.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long a registration may take.
const REGISTER: Duration = Duration::from_secs(35);

/// What `strowger load -h` prints.
pub const USAGE: &str = "\
Usage: strowger load SERVER[:PORT] [--to NUMBER] [--answer] [OPTIONS]

Callers (--to) and callees (--answer), with audio both ways that is checked.

Calls
  --to NUMBER        call this number
  --calls N          so many calls in all; 1 when not given
  --rate N           begin so many calls a second; 10
  --hold SECONDS     each call lasts so long; to the end of the run when not given
  --answer           answer calls that come in
  --seconds N        end after so long; without it when all calls have ended (--hold), or 10 s
                     after the last one has begun, or never with --answer alone
Who and where
  --user NAME        user name; load
  --secret PASSWORD  password, for a server that asks; or in the environment as STROWGER_LOAD_SECRET
  --register         register first: callees are found then
  --local IP,...     our addresses: SIP on the first, audio on all in turn; found out when not given
  --sip-port PORT    our port for SIP; any
  --ports A-B        ports for audio; 32768-65535
Audio
  --offer FORMAT,... formats that callers offer: ulaw, alaw, gsm, ilbc, ilbc30, speex, g722 ...; ulaw
  --accept FORMAT,.. formats that callees accept; those of --offer
  --ptime MS         milliseconds a packet; 20
  --media WAY        both, send, receive or none; both
  --hear WHAT        what callers ought to hear: own (their own tone, from Echo() or a callee of ours),
                     sound (no silence), a pitch in hertz, or anything; anything
  --check-every S    listen into each call every so many seconds; 5
  --max-loss PERCENT loss that is no fault; 0.1
The generator
  --io WHAT          auto, xdp, sklookup, uring or epoll; auto
  --interfaces A,... Ethernet interfaces for xdp
  --processor N      stay on this processor, with real-time priority
  --json             the report as JSON
  -q                 no progress line
  -h                 this help

Ends with 1 when calls were refused or silent, packets were lost or something else was heard.
";

/// A command line, read.
#[derive(Debug)]
struct Words {
    plan: Plan,
    seconds: Option<f64>,
    max_loss: f64,
    json: bool,
    quiet: bool,
    hold: Option<f64>,
}

/// Does what the words after `load` say; gives the exit status.
///
/// # Errors
/// With a sentence that names the remedy.
pub fn run(words: impl IntoIterator<Item = String>) -> anyhow::Result<u8> {
    let mut words = words.into_iter().peekable();
    if words.peek().is_none_or(|word| matches!(word.as_str(), "-h" | "--help")) {
        print!("{USAGE}");
        return Ok(0);
    }
    let words = read(words)?;
    // Without privileges a call has sockets of its own.
    let _ = io::process::raise_file_limit();
    let load = Load::start(words.plan.clone()).map_err(|error| {
        let remedy = error.remedy();
        anyhow::Error::new(error).context(remedy)
    });
    let load = load.map_err(|error| anyhow::anyhow!("{}; {error}", error.root_cause()))?;
    load.notes().iter().for_each(|note| eprintln!("strowger load: {note}"));
    if words.plan.answers {
        eprintln!("strowger load: callees at sip:{}@{}", words.plan.user, load.sip());
    }
    let report = drive(&load, &words)?;
    drop(load);
    tell(&report, &words)
}

/// Waits for the end, showing how it stands.
fn drive(load: &Load, words: &Words) -> anyhow::Result<Report> {
    let bar = if words.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
        bar.set_style(style);
    }
    let begin = Instant::now();
    let mut all_begun = None;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let progress = load.progress();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
        if words.plan.registers {
            match read(&progress.registered) {
                200 => {}
                0 if begin.elapsed() < REGISTER => {
                    bar.set_message("registering");
                    continue;
                }
                0 => bail!("{} does not answer REGISTER; check address and port", words.plan.server),
                status => bail!(
                    "registration of '{}' was refused with {status}; check --user and --secret",
                    words.plan.user
                ),
            }
        }
        bar.set_message(format!(
            "{} of {} calls begun, {} answered, {} refused, {} sides up; {} packets heard, {} lost",
            read(&progress.begun),
            if words.plan.number.is_some() { words.plan.calls } else { 0 },
            read(&progress.answered),
            read(&progress.refused),
            read(&progress.up),
            read(&progress.received),
            read(&progress.lost),
        ));
        let calling = words.plan.number.is_some();
        if calling && all_begun.is_none() && read(&progress.begun) >= words.plan.calls {
            all_begun = Some(Instant::now());
        }
        let is_over = match (words.seconds, words.hold) {
            (Some(seconds), _) => begin.elapsed().as_secs_f64() >= seconds,
            (None, Some(_)) => all_begun.is_some() && read(&progress.open) == 0,
            (None, None) => all_begun.is_some_and(|at| at.elapsed() >= Duration::from_secs(10)),
        };
        if is_over {
            break;
        }
    }
    let report = load.report();
    load.hang_up(HANG_UP_RATE);
    let over = Instant::now();
    let patience = FAREWELL + Duration::from_secs_f64(report.up as f64 / HANG_UP_RATE);
    while load.progress().open.load(Relaxed) > 0 && over.elapsed() < patience {
        bar.set_message("ending the calls");
        std::thread::sleep(Duration::from_millis(50));
    }
    bar.finish_and_clear();
    Ok(report)
}

fn tell(report: &Report, words: &Words) -> anyhow::Result<u8> {
    let complaints = report.complaints(words.max_loss);
    let text = if words.json {
        let mut json = report.json();
        json["complaints"] = complaints.clone().into();
        format!("{json:#}\n")
    } else {
        let told: String = complaints.iter().map(|complaint| format!("fault: {complaint}\n")).collect();
        report.text() + &told
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // A reader that closed the pipe has seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(u8::from(!complaints.is_empty())),
    }
}

fn read(words: impl Iterator<Item = String>) -> anyhow::Result<Words> {
    let mut server = None;
    let mut local = Vec::new();
    let mut accepts = None;
    // Replaced as soon as the words have said more.
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let mut plan = Plan::new(nowhere, nowhere.ip());
    plan.secret = std::env::var("STROWGER_LOAD_SECRET").unwrap_or_default();
    let (mut seconds, mut max_loss, mut json, mut quiet, mut hold) = (None, 0.1, false, false, None);
    let mut words = words;
    while let Some(word) = words.next() {
        let mut value =
            || words.next().with_context(|| format!("'{word}' needs a value; `strowger load -h`"));
        match word.as_str() {
            "--to" => plan.number = Some(value()?),
            "--calls" => plan.calls = number(&word, &value()?, 1.0, 1e9)? as u64,
            "--rate" => plan.rate = number(&word, &value()?, 0.001, 10_000.0)?,
            "--hold" => hold = Some(number(&word, &value()?, 0.0, 1e6)?),
            "--answer" => plan.answers = true,
            "--seconds" => seconds = Some(number(&word, &value()?, 0.1, 1e6)?),
            "--user" => plan.user = value()?,
            "--secret" => plan.secret = value()?,
            "--register" => plan.registers = true,
            "--local" => local = addresses(&value()?)?,
            "--sip-port" => plan.sip_port = number(&word, &value()?, 0.0, 65_535.0)? as u16,
            "--ports" => plan.ports = ports(&value()?)?,
            "--offer" => plan.offers = formats(&word, &value()?)?,
            "--accept" => accepts = Some(formats(&word, &value()?)?),
            "--ptime" => plan.packet_ms = number(&word, &value()?, 10.0, 60.0)? as u8,
            "--media" => plan.media = way(&value()?)?,
            "--hear" => plan.hear = hear(&value()?)?,
            "--check-every" => {
                plan.check_every = Duration::from_secs_f64(number(&word, &value()?, 0.1, 3600.0)?);
            }
            "--max-loss" => max_loss = number(&word, &value()?, 0.0, 100.0)?,
            "--io" => plan.io = value()?.parse()?,
            "--interfaces" => {
                plan.interfaces = value()?.split(',').map(|name| name.trim().to_owned()).collect()
            }
            "--processor" => {
                plan.processor = Some(number(&word, &value()?, 0.0, 4095.0)? as usize);
                plan.real_time = true;
            }
            "--json" => json = true,
            "-q" => quiet = true,
            option if option.starts_with('-') => {
                bail!("there is no option '{option}' of load; `strowger load -h` lists them")
            }
            _ if server.is_none() => server = Some(word),
            extra => bail!("'{extra}' is one word too many; `strowger load -h`"),
        }
    }
    let server = server.context("load needs the server to call, as ADDRESS or ADDRESS:PORT")?;
    plan.server = resolve(&server)?;
    ensure!(
        plan.number.is_some() || plan.answers,
        "load has nothing to do: --to NUMBER to call, --answer to be called, or both"
    );
    plan.accepts = accepts.unwrap_or(plan.offers);
    plan.local = if local.is_empty() { vec![own_address(plan.server)?] } else { local };
    plan.hold = hold.map(Duration::from_secs_f64);
    Ok(Words { plan, seconds, max_loss, json, quiet, hold })
}

fn number(option: &str, text: &str, least: f64, most: f64) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => bail!("'{option} {text}': a number from {least} to {most} is wanted"),
    }
}

fn addresses(text: &str) -> anyhow::Result<Vec<IpAddr>> {
    let parse =
        |word: &str| word.trim().parse().with_context(|| format!("--local: '{word}' is no IP address"));
    text.split(',').map(parse).collect()
}

fn ports(text: &str) -> anyhow::Result<PortRange> {
    let read = || {
        let (first, last) = text.split_once('-')?;
        let range = PortRange { first: first.parse().ok()?, last: last.parse().ok()? };
        (range.pairs() > 0 && range.first > 0).then_some(range)
    };
    read().with_context(|| format!("'--ports {text}': a range such as 32768-65535 is wanted"))
}

fn formats(option: &str, text: &str) -> anyhow::Result<FormatSet> {
    text.split(',')
        .map(|name| match FormatId::from_name(name) {
            Some(format) if format.is_coded() => Ok(format),
            _ => bail!("'{option} {name}': `strowger codecs` lists the formats that can be spoken"),
        })
        .collect()
}

fn way(text: &str) -> anyhow::Result<Media> {
    let found = Media::ALL.into_iter().find(|(_, name)| *name == text);
    found.map(|(media, _)| media).with_context(|| format!("'--media {text}': both, send, receive or none"))
}

fn hear(text: &str) -> anyhow::Result<Hear> {
    Ok(match text {
        "anything" => Hear::Anything,
        "sound" => Hear::Sound,
        "own" => Hear::Own,
        pitch => match pitch.parse::<f64>() {
            Ok(hertz) if (100.0..=3400.0).contains(&hertz) => Hear::Hertz(hertz),
            _ => bail!("'--hear {text}': own, sound, anything, or a pitch from 100 to 3400 hertz"),
        },
    })
}

fn resolve(server: &str) -> anyhow::Result<SocketAddr> {
    let found = server.parse().or_else(|_| {
        let with_port = server.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, SIP_PORT));
        with_port.map_err(drop)
    });
    if let Ok(address) = found {
        return Ok(address);
    }
    let named = if server.contains(':') { server.to_owned() } else { format!("{server}:{SIP_PORT}") };
    let mut all = named.to_socket_addrs().with_context(|| format!("there is no server '{server}'"))?;
    all.next().with_context(|| format!("there is no server '{server}'"))
}

/// The address of ours from which the server is reached.
fn own_address(server: SocketAddr) -> anyhow::Result<IpAddr> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let asked = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(server)?;
        socket.local_addr()
    });
    Ok(asked.with_context(|| format!("there is no way to {server}; name our address with --local"))?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Words> {
        read(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn a_command_line_becomes_a_plan() {
        let words = parse(
            "127.0.0.1 --to 100 --calls 5000 --rate 50 --hold 60 --offer gsm,ilbc30 --accept ulaw --hear 440 --media receive \
             --ports 40000-50000 --local 127.0.0.2,127.0.0.3 --processor 1 --json",
        )
        .unwrap();
        let plan = words.plan;
        assert_eq!((plan.server, plan.number.as_deref()), ("127.0.0.1:5060".parse().unwrap(), Some("100")));
        assert_eq!((plan.calls, plan.rate, plan.hold), (5000, 50.0, Some(Duration::from_secs(60))));
        assert_eq!(plan.offers.iter().collect::<Vec<_>>(), [FormatId::GSM, FormatId::ILBC30]);
        assert_eq!(plan.accepts.iter().collect::<Vec<_>>(), [FormatId::ULAW]);
        assert_eq!((plan.hear, plan.media, plan.local.len()), (Hear::Hertz(440.0), Media::Receive, 2));
        assert_eq!(plan.ports, PortRange { first: 40_000, last: 50_000 });
        assert!(plan.real_time && words.json && !words.quiet);
        assert_eq!(parse("127.0.0.1 --answer").unwrap().plan.local, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn what_cannot_be_obeyed_is_named_with_what_can() {
        for (line, said) in [
            ("127.0.0.1", "--to NUMBER to call"),
            ("--to 100", "load needs the server"),
            ("127.0.0.1 --to 100 --offer g729", "`strowger codecs` lists"),
            ("127.0.0.1 --to 100 --media up", "both, send, receive or none"),
            ("127.0.0.1 --to 100 --calls 0", "a number from 1"),
            ("127.0.0.1 --to 100 --hear 20", "a pitch from 100"),
            ("127.0.0.1 --to 100 --ports 5-5", "a range such as"),
            ("127.0.0.1 --to", "'--to' needs a value"),
            ("127.0.0.1 --to 100 --colour", "no option '--colour'"),
            ("127.0.0.1 --to 100 more", "'more' is one word too many"),
            ("127.0.0.1 --to 100 --io dpdk", "'dpdk'"),
        ] {
            let error = format!("{:#}", parse(line).unwrap_err());
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
