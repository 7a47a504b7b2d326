//! The audio end of a [`Phone`](crate::Phone): sends 50 packets a second and keeps all it receives.

use crate::tone;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the phone says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speak {
    /// No packets.
    Nothing,
    /// Packets of silence.
    Silence,
    /// A tone, in hertz.
    Tone(f64),
    /// Two tones at once, as keys make them (ITU-T Q.23).
    Tones(f64, f64),
}

/// Coded packets that are said one after the other, over and over.
#[derive(Debug, Clone)]
pub struct Recital {
    /// Payload type.
    pub payload_type: u8,
    /// What the timestamp goes on by from packet to packet.
    pub units: u32,
    /// Time from packet to packet.
    pub period: Duration,
    /// The payloads; at least one.
    pub payloads: Arc<[Vec<u8>]>,
}

/// A packet that came.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packet {
    at: Instant,
    from: SocketAddr,
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    payload: Vec<u8>,
}

/// Payload type the phone offers for RFC 4733 events.
pub(crate) const EVENTS: u8 = 101;
/// Payload type of G.711 A-law.
pub(crate) const PCMA: u8 = 8;

const PACKET: Duration = Duration::from_millis(20);
const SAMPLES: u32 = 160;

#[derive(Debug)]
struct State {
    remote: Option<SocketAddr>,
    speak: Speak,
    recital: Option<Recital>,
    payload_type: u8,
    digits: Vec<char>,
    packets: Vec<Packet>,
    sent: u64,
}

/// A socket for RTP and the thread that serves it.
#[derive(Debug)]
pub struct Media {
    local: SocketAddr,
    socket: UdpSocket,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What has been heard since some moment.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    packets: Vec<Packet>,
}

impl Media {
    pub(crate) fn open(ip: IpAddr) -> Self {
        let socket = UdpSocket::bind((ip, 0)).expect("a port for audio");
        let local = socket.local_addr().expect("its address");
        let state = State {
            remote: None,
            speak: Speak::Silence,
            recital: None,
            payload_type: 0,
            digits: Vec::new(),
            packets: Vec::new(),
            sent: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (state.clone(), stop.clone());
        let served = socket.try_clone().expect("the same socket");
        let thread = std::thread::spawn(move || serve(&served, &shared, &ended));
        Self { local, socket, state, stop, thread: Some(thread) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the audio thread lives")
    }

    /// Where it receives.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Where its packets go.
    pub fn send_to(&self, remote: SocketAddr) {
        self.state().remote = Some(remote);
    }

    pub(crate) fn payload_type(&self, payload_type: u8) {
        self.state().payload_type = payload_type;
    }

    /// What it says from here on.
    pub fn speak(&self, speak: Speak) {
        self.state().speak = speak;
    }

    /// Says these packets from here on, whatever else it was to say.
    pub fn recite(&self, recital: Recital) {
        self.state().recital = Some(recital);
    }

    /// Sends bytes from its own port, as they are.
    pub fn send_raw(&self, bytes: &[u8], remote: SocketAddr) {
        self.socket.send_to(bytes, remote).expect("the datagram leaves");
    }

    /// Types digits, each 120 ms long with as much silence after it (RFC 4733).
    pub fn type_digits(&self, digits: &str) {
        self.state().digits.extend(digits.chars());
    }

    /// Whether all digits are sent.
    pub fn typed(&self) -> bool {
        self.state().digits.is_empty()
    }

    /// Packets it has sent.
    pub fn sent(&self) -> u64 {
        self.state().sent
    }

    /// Packets that came since the last [`forget`](Self::forget).
    pub fn received(&self) -> usize {
        self.state().packets.len()
    }

    /// All that was heard so far.
    pub fn heard(&self) -> Heard {
        Heard { packets: self.state().packets.clone() }
    }

    /// Forgets what was heard so far.
    pub fn forget(&self) {
        self.state().packets.clear();
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

impl Heard {
    /// Packets of any kind.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// G.711 audio in the order of its sequence numbers; what is missing is left out.
    pub fn audio(&self) -> Vec<i16> {
        let mut packets: Vec<&Packet> =
            self.packets.iter().filter(|packet| matches!(packet.payload_type, 0 | PCMA)).collect();
        packets.sort_by_key(|packet| packet.timestamp);
        let decode = |packet: &Packet| {
            let law = if packet.payload_type == PCMA { tone::from_alaw } else { tone::from_ulaw };
            packet.payload.iter().map(|&code| law(code)).collect::<Vec<_>>()
        };
        packets.into_iter().flat_map(decode).collect()
    }

    /// Payloads of a type in the order in which they are to be played.
    pub fn payloads(&self, payload_type: u8) -> Vec<Vec<u8>> {
        let mut packets: Vec<&Packet> =
            self.packets.iter().filter(|packet| packet.payload_type == payload_type).collect();
        // Timestamps may go around once.
        let first = packets.first().map_or(0, |packet| packet.timestamp);
        packets.sort_by_key(|packet| packet.timestamp.wrapping_sub(first) as i32);
        packets.into_iter().map(|packet| packet.payload.clone()).collect()
    }

    /// Milliseconds in which a tone was heard.
    pub fn tone(&self, hertz: f64) -> u32 {
        tone::heard(&self.audio(), 8000, hertz)
    }

    /// Milliseconds that were not silence.
    pub fn sounding(&self) -> u32 {
        tone::sounding(&self.audio(), 8000)
    }

    /// Payload types seen.
    pub fn payload_types(&self) -> Vec<u8> {
        let mut types: Vec<u8> = self.packets.iter().map(|packet| packet.payload_type).collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    /// Digits of RFC 4733 events, each once, by its timestamp.
    pub fn digits(&self) -> String {
        let mut last = None;
        let mut digits = String::new();
        for packet in self.packets.iter().filter(|packet| packet.payload_type == EVENTS) {
            let Some(&code) = packet.payload.first() else { continue };
            if last.replace(packet.timestamp) != Some(packet.timestamp) {
                digits.push("0123456789*#ABCD".chars().nth(usize::from(code)).unwrap_or('?'));
            }
        }
        digits
    }

    /// Packets missing between the first and the last of each source, in whatever order they came: a sender that changes
    /// its processor may be overtaken by itself.
    pub fn lost(&self) -> usize {
        let mut numbers: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
        for packet in &self.packets {
            let seen = numbers.entry(packet.ssrc).or_default();
            let last = seen.last().copied().unwrap_or(i64::from(packet.sequence));
            // Numbers go around; whatever is nearer to the last one is meant.
            let step = packet.sequence.wrapping_sub(last as u16).cast_signed();
            seen.insert(last + i64::from(step));
        }
        let missing = |seen: &BTreeSet<i64>| {
            let span = seen.last().zip(seen.first()).map_or(0, |(last, first)| last - first + 1);
            usize::try_from(span).unwrap_or(usize::MAX) - seen.len()
        };
        numbers.values().map(missing).sum()
    }

    /// Longest time between two packets.
    pub fn longest_gap(&self) -> Duration {
        let gaps = self.packets.windows(2).map(|pair| match pair {
            [first, second] => second.at - first.at,
            _ => Duration::ZERO,
        });
        gaps.max().unwrap_or_default()
    }

    /// Addresses the packets came from.
    pub fn sources(&self) -> Vec<SocketAddr> {
        let mut sources: Vec<SocketAddr> = self.packets.iter().map(|packet| packet.from).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

fn serve(socket: &UdpSocket, state: &Mutex<State>, stop: &AtomicBool) {
    let mut sender = Sender { sequence: 100, timestamp: 1000, phase: 0, said: 0, digit: None };
    let mut next = Instant::now();
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            next += sender.tick(socket, &mut state.lock().expect("the phone lives"));
            continue;
        }
        socket.set_read_timeout(Some(left)).expect("a time-out that is not zero");
        if let Ok((length, from)) = socket.recv_from(&mut buffer)
            && let Some(packet) = parse(&buffer[..length], from)
        {
            state.lock().expect("the phone lives").packets.push(packet);
        }
    }
}

/// RTP only; RTCP has its own port and what else comes is nothing to hear.
fn parse(bytes: &[u8], from: SocketAddr) -> Option<Packet> {
    let (head, payload) = bytes.split_first_chunk::<12>()?;
    let [first, second, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3] = *head;
    (first == 0x80).then(|| Packet {
        at: Instant::now(),
        from,
        payload_type: second & 0x7f,
        sequence: u16::from_be_bytes([s0, s1]),
        timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
        ssrc: u32::from_be_bytes([i0, i1, i2, i3]),
        payload: payload.to_vec(),
    })
}

/// A digit being sent: its code, when it began, and packets so far.
struct Digit {
    code: u8,
    began: u32,
    packets: u32,
}

struct Sender {
    sequence: u16,
    timestamp: u32,
    phase: u32,
    /// Packets of a recital so far.
    said: usize,
    digit: Option<Digit>,
}

/// Packets of a digit: six that grow, two more that repeat the end.
const DIGIT_PACKETS: u32 = 6;
const DIGIT_REPEATS: u32 = 2;
/// Packets of nothing after a digit.
const DIGIT_PAUSE: u32 = 6;

impl Sender {
    /// One packet, if there is one to send; the time until the next.
    fn tick(&mut self, socket: &UdpSocket, state: &mut State) -> Duration {
        let pace = state.recital.as_ref().map(|recital| (recital.units, recital.period));
        let (units, period) = pace.unwrap_or((SAMPLES, PACKET));
        self.timestamp = self.timestamp.wrapping_add(units);
        self.speak(socket, state);
        period
    }

    fn speak(&mut self, socket: &UdpSocket, state: &mut State) {
        let Some(remote) = state.remote else { return };
        if self.digit.is_none()
            && let Some(code) = state.digits.first().and_then(|digit| "0123456789*#ABCD".find(*digit))
        {
            self.digit = Some(Digit { code: code as u8, began: self.timestamp, packets: 0 });
        }
        let (payload_type, timestamp, payload, marker) = match &mut self.digit {
            Some(digit) => {
                digit.packets += 1;
                if digit.packets > DIGIT_PACKETS + DIGIT_REPEATS + DIGIT_PAUSE {
                    self.digit = None;
                    state.digits.remove(0);
                    return;
                }
                if digit.packets > DIGIT_PACKETS + DIGIT_REPEATS {
                    return;
                }
                let end = if digit.packets >= DIGIT_PACKETS { 0x80 } else { 0 };
                let duration = digit.packets.min(DIGIT_PACKETS) * SAMPLES;
                let [_, _, high, low] = duration.to_be_bytes();
                (EVENTS, digit.began, vec![digit.code, end | 10, high, low], digit.packets == 1)
            }
            None => match &state.recital {
                Some(Recital { payload_type, payloads, .. }) => {
                    let payload = payloads[self.said % payloads.len()].clone();
                    self.said += 1;
                    (*payload_type, self.timestamp, payload, false)
                }
                None if state.speak == Speak::Nothing => return,
                None => (state.payload_type, self.timestamp, self.audio(state), false),
            },
        };
        self.sequence = self.sequence.wrapping_add(1);
        state.sent += 1;
        let mut packet = vec![0x80, payload_type | if marker { 0x80 } else { 0 }];
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(timestamp.to_be_bytes());
        packet.extend(0x0e2e_0e2e_u32.to_be_bytes());
        packet.extend(payload);
        // The other end may be gone already; what was heard tells.
        let _sent = socket.send_to(&packet, remote);
    }

    fn audio(&mut self, state: &State) -> Vec<u8> {
        let law = if state.payload_type == PCMA { tone::to_alaw } else { tone::to_ulaw };
        let tones = match state.speak {
            Speak::Tone(hertz) => [hertz, hertz],
            Speak::Tones(low, high) => [low, high],
            Speak::Silence | Speak::Nothing => return vec![law(0); SAMPLES as usize],
        };
        let steps = tones.map(|hertz| core::f64::consts::TAU * hertz / 8000.0);
        let sample =
            |at: u32| steps.iter().map(|step| (step * f64::from(at)).sin() * 4000.0).sum::<f64>() as i16;
        let samples = (self.phase..self.phase + SAMPLES).map(sample);
        // A whole second of a whole number of hertz ends where it began.
        self.phase = (self.phase + SAMPLES) % 8000;
        samples.map(law).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_counted_and_what_came_late_or_twice_is_not() {
        let packet = |ssrc, sequence| Packet {
            at: Instant::now(),
            from: ([127, 0, 0, 1], 1).into(),
            payload_type: 0,
            sequence,
            timestamp: 0,
            ssrc,
            payload: Vec::new(),
        };
        for (name, packets, lost) in [
            ("nothing", vec![], 0),
            ("in order", vec![(1, 5), (1, 6), (1, 7)], 0),
            ("two gaps", vec![(1, 5), (1, 7), (1, 10)], 3),
            ("another order", vec![(1, 5), (1, 7), (1, 6), (1, 8)], 0),
            ("once more", vec![(1, 5), (1, 6), (1, 6), (1, 8)], 1),
            ("around the end", vec![(1, 65_534), (1, 0), (1, 65_535), (1, 2)], 1),
            ("two sources", vec![(1, 5), (2, 900), (1, 6), (2, 902)], 1),
        ] {
            let packets = packets.into_iter().map(|(ssrc, sequence)| packet(ssrc, sequence)).collect();
            assert_eq!(Heard { packets }.lost(), lost, "{name}");
        }
    }
}
