//! What the signalling plane tells a media worker, and what the worker tells back. Nothing else crosses.
//!
//! What changes once per call (remote address, payload map, bridge) is decided by signalling and copied into the
//! stream by a [`Command`]; the packet path reads only what its stream owns.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::{
    Digit, FormatId, Gain, Instant, MemberSettings, MonitorSettings, MonitorSinks, PlayId, RoomId,
    RoomSettings, SrtpKeys, StreamId, Wishes,
};

/// Payload types one stream may receive: audio formats of the answer plus telephone-event; more are not mapped.
pub const MAX_RX_PAYLOADS: usize = 18;

/// Which way audio flows, from our side (RFC 3264 §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// We send and receive.
    #[default]
    SendRecv,
    /// We send only.
    SendOnly,
    /// We receive only.
    RecvOnly,
    /// Neither; RTCP goes on.
    Inactive,
}

/// From where a stream accepts packets and where it sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latch {
    /// Only the address that SDP named (`strictrtp=yes`, no NAT).
    Strict,
    /// Learn once: the first source at this address (any port) that sends four consecutive valid packets of a
    /// negotiated payload type with one SSRC; then lock until the next [`Command::Plan`] with `relearn`.
    Learn(IpAddr),
    /// Any source, the latest wins (`strictrtp=no`); for laboratories.
    Off,
}

/// How a trunk without DTMF sends digits in the audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrunkDigits {
    /// Two of six tones (R1, ITU-T Q.320, Q.323): KP is `*`, ST `#`, STP, ST2P and ST3P are `A` to `C`.
    Mf,
    /// Pulses of one frequency, of so many hertz.
    Sf(u16),
}

/// How DTMF leaves on this stream, and what is recognised besides RFC 4733.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DtmfMode {
    /// RFC 4733 events under this payload type and clock.
    Rfc4733 {
        /// Payload type of telephone-event towards the peer.
        payload: u8,
        /// Its clock in hertz (8000 for every format here but L16).
        clock: u32,
    },
    /// Tones in the audio, both ways.
    Inband,
    /// Signalling carries digits (SIP INFO); the stream has nothing to do.
    #[default]
    Signalling,
}

/// One payload type that may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RxPayload {
    /// Audio in this format.
    Audio(u8, FormatId),
    /// RFC 4733 telephone-event at this clock.
    Event(u8, u32),
}

/// All that one stream needs to know of its peer; decided once per offer and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Where RTP goes; `None` until SDP has named it.
    pub remote: Option<SocketAddr>,
    /// Where RTCP goes; `None` sends none. Equal to `remote` with rtcp-mux.
    pub remote_rtcp: Option<SocketAddr>,
    /// Source rule.
    pub latch: Latch,
    /// Opens the learning window again (new offer or answer).
    pub relearn: bool,
    /// Format we send.
    pub format: FormatId,
    /// Payload type we send it under.
    pub payload: u8,
    /// Milliseconds of audio a packet we send; 10 to 60 in steps of [`FormatId::packet_step_ms`].
    pub ptime_ms: u8,
    /// What the peer wishes of the encoder.
    pub wishes: Wishes,
    /// What may arrive; entries after the last are `None`.
    pub rx: [Option<RxPayload>; MAX_RX_PAYLOADS],
    /// How digits leave.
    pub dtmf: DtmfMode,
    /// Which way audio flows.
    pub direction: Direction,
    /// Our SSRC; random, from the signalling plane's seed.
    pub ssrc: u32,
    /// Our first sequence number; random.
    pub first_sequence: u16,
    /// Our first timestamp; random.
    pub first_timestamp: u32,
    /// Longest delay the adaptive jitter buffer may build, milliseconds; 0 switches it off.
    pub jitter_max_ms: u16,
    /// Milliseconds between RTCP reports; 0 sends none.
    pub rtcp_interval_ms: u16,
    /// Milliseconds without RTP after which [`Event::RtpTimeout`] is due; 0 never.
    pub rtp_timeout_ms: u32,
    /// Milliseconds without a packet of ours after which one of comfort noise keeps the way open; 0 never.
    pub keepalive_ms: u32,
    /// How packets are marked; taken when the stream is opened.
    pub marking: Marking,
    /// What RTP and RTCP are sealed with; `None` when they are plain. A direction whose key stays goes on as it is.
    pub keys: Option<Box<SrtpKeys>>,
    /// How its peer is asked for a whole picture, of video.
    pub picture: PictureRequest,
}

/// How a sender of video is asked for a whole picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PictureRequest {
    /// Not by RTCP: [`Event::PictureWanted`] says that it is wanted.
    #[default]
    Signalling,
    /// As a picture that was lost (RFC 4585 §6.3.1).
    Pli,
    /// As a request (RFC 5104 §4.3.1).
    Fir,
}

/// Where packets of streams without ports come from and go to: they pass through the signalling plane.
pub const PIPE: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 4569);

/// How the packets of a socket are marked for the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marking {
    /// DSCP and ECN bits of the IP header (RFC 2474); 0 is best effort.
    pub tos: u8,
    /// Priority of the queue and of 802.1p, 0 to 7.
    pub priority: u8,
}

/// Coded audio, immutable and shared: a prompt, a music file or a rendered tone in one format.
#[derive(Debug, PartialEq, Eq)]
pub struct Clip {
    /// Format of `data`.
    pub format: FormatId,
    /// Coded audio; linear samples in little-endian order. A last partial frame is padded by whoever made the clip.
    pub data: Arc<[u8]>,
    /// When set, playing goes on from this byte after the end, for ever.
    pub loop_from: Option<usize>,
    /// The same sound in a format of variable rate, for all streams that these packets suit; `data` is linear then.
    pub packets: Option<Packets>,
}

/// Sound in a format of variable rate: packets of 20 ms, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub struct Packets {
    format: FormatId,
    wishes: Wishes,
    bytes: Vec<u8>,
    /// Where each packet ends.
    ends: Vec<u32>,
}

impl Packets {
    /// Milliseconds of each.
    pub const MS: u8 = 20;

    /// No packets yet, for streams of a format whose peers wish this.
    pub const fn new(format: FormatId, wishes: Wishes) -> Self {
        Self { format, wishes, bytes: Vec::new(), ends: Vec::new() }
    }
    /// Adds the next one. False when there is no room, beyond 4 GB.
    pub fn push(&mut self, packet: &[u8]) -> bool {
        let Ok(end) = u32::try_from(self.bytes.len() + packet.len()) else { return false };
        self.bytes.extend_from_slice(packet);
        self.ends.push(end);
        true
    }
    /// The packet for the 20 ms with this number; empty where nothing is to be sent.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |start| *start);
        self.bytes.get(start as usize..end as usize)
    }
    /// Whether a stream of this format, packet length and wishes can send them.
    pub fn suits(&self, format: FormatId, ptime_ms: u8, wishes: &Wishes) -> bool {
        // Who asks for no copies of the frame before can read packets that have them (RFC 7587 §6.1).
        self.format == format
            && ptime_ms == Self::MS
            && (*wishes == self.wishes || *wishes == Wishes { fec: false, ..self.wishes })
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Where a recording's samples go. Called by the worker at each tick: must not block, allocate or lock.
pub trait AudioSink: Send {
    /// Takes linear 16-bit samples at the rate the recording was started with; returns how many fitted.
    fn write(&mut self, samples: &[i16]) -> usize;
}

/// Where live sound comes from. Called by the worker at each tick: must not block, allocate or lock.
pub trait AudioSource: Send {
    /// Fills linear 16-bit samples from the first on, at the rate that was agreed; returns how many there were. The rest stays
    /// as it was.
    fn read(&mut self, samples: &mut [i16]) -> usize;
}

/// Signalling → worker. Each variant stands for itself; one for a stream that is gone is ignored.
pub enum Command {
    /// Sets or changes what the stream knows of its peer. Playing, recording and bridging go on across it.
    Plan {
        /// Stream.
        stream: StreamId,
        /// The new plan; replaces the old one whole, but keeps SSRC, sequence and timestamp running when `ssrc` is unchanged.
        plan: Box<Plan>,
    },
    /// Connects two internal streams, opened without a socket, back to back: what one sends the other receives.
    Tie {
        /// One half.
        a: StreamId,
        /// The other half.
        b: StreamId,
    },
    /// Ends the stream: BYE on RTCP, sockets closed, [`Event::Closed`] with the totals.
    Close {
        /// Stream.
        stream: StreamId,
    },
    /// Plays a clip from `offset` bytes, instead of whatever was playing (its [`Event::Played`] says `Stopped`).
    Play {
        /// Stream.
        stream: StreamId,
        /// Comes back in [`Event::Played`].
        play: PlayId,
        /// What to play; in the stream's own format it is copied, in any other transcoded.
        clip: Arc<Clip>,
        /// First byte.
        offset: usize,
    },
    /// Plays a shared clip at the position that everyone hears: `now - epoch` into it, looped over its whole length.
    Music {
        /// Stream.
        stream: StreamId,
        /// Music in the stream's format.
        clip: Arc<Clip>,
        /// When its first byte was due.
        epoch: Instant,
    },
    /// Plays live sound, instead of whatever was playing, until something else is played or [`Command::StopPlay`]. Where
    /// nothing comes there is silence.
    Live {
        /// Stream.
        stream: StreamId,
        /// Linear format of what comes.
        format: FormatId,
        /// Where it comes from.
        source: Box<dyn AudioSource>,
    },
    /// Ends playing, music or live sound.
    StopPlay {
        /// Stream.
        stream: StreamId,
    },
    /// Sends back what arrives.
    Echo {
        /// Stream.
        stream: StreamId,
        /// On or off.
        on: bool,
    },
    /// Lets no audio through one way or both, whatever it is made of; digits of telephone-events and RTCP go on.
    Mute {
        /// Stream.
        stream: StreamId,
        /// What its peer says reaches nobody.
        heard: bool,
        /// Its peer is sent nothing.
        sent: bool,
    },
    /// Bridges two streams until [`Command::Part`]; relay when formats match, else transcode. Replaces earlier joins.
    Join {
        /// One leg.
        a: StreamId,
        /// The other leg.
        b: StreamId,
    },
    /// Puts a stream into a room, where it hears all others, and out of its bridge or another room. A room begins with its
    /// first member and ends with its last; where streams share it, they share a worker.
    Enter {
        /// Stream.
        stream: StreamId,
        /// Room.
        room: RoomId,
        /// How the room mixes from here on.
        mixing: RoomSettings,
        /// How the stream takes part.
        member: MemberSettings,
    },
    /// Changes how a stream takes part in the room it is in.
    Adjust {
        /// Stream.
        stream: StreamId,
        /// How it takes part from here on.
        member: MemberSettings,
    },
    /// What a stream of video sends is what another one of its room receives, until it is shown another, leaves the room or
    /// is joined. One stream may be shown to any number of others.
    Show {
        /// Stream.
        stream: StreamId,
        /// Whose pictures it sends; `None`: nobody's.
        source: Option<StreamId>,
    },
    /// Asks the peer of a stream of video for a whole picture, as its plan says; soon, when it was asked just before.
    AskPicture {
        /// Stream.
        stream: StreamId,
    },
    /// Lets everyone in a room hear a linear clip, beside those who talk and after what is being announced already.
    Announce {
        /// Room.
        room: RoomId,
        /// What to play; in another format than linear it is not heard.
        clip: Arc<Clip>,
    },
    /// Writes down what is heard in a room by those who do not talk, until [`Command::StopRecordRoom`] or the room's end; one
    /// that is running ends.
    RecordRoom {
        /// Room.
        room: RoomId,
        /// Linear format that the sink expects.
        format: FormatId,
        /// Where samples go.
        sink: Box<dyn AudioSink>,
    },
    /// Ends [`Command::RecordRoom`] and drops its sink.
    StopRecordRoom {
        /// Room.
        room: RoomId,
    },
    /// Lets the peer of a stream hear a linear clip beside whom it is bridged to, or alone when nobody else is heard. A stream
    /// that plays something goes on with that instead.
    Whisper {
        /// Stream.
        stream: StreamId,
        /// What to play; in another format than linear it is not heard in a bridge.
        clip: Arc<Clip>,
    },
    /// Lets the peer of a stream hear live sound beside whatever it hears, or alone, until [`Command::StopMurmur`]. Several
    /// may murmur to it, each with a number of its own. Where a format cannot be coded here it is not heard.
    Murmur {
        /// Stream.
        stream: StreamId,
        /// Its number; one under it ends.
        murmur: u32,
        /// Linear format of what comes.
        format: FormatId,
        /// Where it comes from.
        source: Box<dyn AudioSource>,
    },
    /// Ends one [`Command::Murmur`].
    StopMurmur {
        /// Stream.
        stream: StreamId,
        /// Its number.
        murmur: u32,
    },
    /// Takes the stream, and so its peer, out of the bridge; or the stream out of its room.
    Part {
        /// Stream.
        stream: StreamId,
    },
    /// Sends one digit as the plan's [`DtmfMode`] says; digits queue, at most 32.
    SendDigit {
        /// Stream.
        stream: StreamId,
        /// Digit.
        digit: Digit,
        /// Milliseconds; 80 to 6000.
        duration_ms: u16,
    },
    /// Digits of telephone-events that its peer presses from here on are told, and not passed on to whom it is bridged
    /// to: whoever listens to them decides what becomes of them. A digit that has begun ends as it began.
    KeepDigits {
        /// Stream.
        stream: StreamId,
        /// On or off.
        on: bool,
    },
    /// Recognises tones in received audio even when the plan is not `Inband`.
    DetectInband {
        /// Stream.
        stream: StreamId,
        /// On or off.
        on: bool,
    },
    /// Reports digits of trunks in what is received like those of DTMF, or does so no more.
    DetectTrunkDigits {
        /// Stream.
        stream: StreamId,
        /// How they are sent; `None` ends it.
        digits: Option<TrunkDigits>,
    },
    /// Records what arrives until [`Command::StopRecord`]; linear samples at `rate` of `format`.
    Record {
        /// Stream.
        stream: StreamId,
        /// Linear format that the sink expects.
        format: FormatId,
        /// Where samples go.
        sink: Box<dyn AudioSink>,
    },
    /// Ends recording and drops the sink.
    StopRecord {
        /// Stream.
        stream: StreamId,
    },
    /// Writes both sides of a call down until [`Command::StopMonitor`]; several may, each with a number of its own.
    Monitor {
        /// Stream.
        stream: StreamId,
        /// Its number; one that is running under it ends.
        monitor: u32,
        /// Linear format that the sinks expect.
        format: FormatId,
        /// What is wanted.
        settings: MonitorSettings,
        /// Where samples go.
        sinks: Box<MonitorSinks>,
    },
    /// Changes what is wanted of a call that is written down.
    AdjustMonitor {
        /// Stream.
        stream: StreamId,
        /// Its number.
        monitor: u32,
        /// What is wanted from here on.
        settings: MonitorSettings,
    },
    /// Ends one [`Command::Monitor`] and drops its sinks.
    StopMonitor {
        /// Stream.
        stream: StreamId,
        /// Its number.
        monitor: u32,
    },
    /// Reports [`Event::Silence`] when `ms` of received audio stayed below `threshold` (mean absolute sample); 0 ms: off.
    WatchSilence {
        /// Stream.
        stream: StreamId,
        /// Milliseconds.
        ms: u32,
        /// Mean absolute amplitude of a 20 ms frame, 0 to 32767; the field's default is 256.
        threshold: u16,
    },
    /// Reports [`Event::Sound`] whenever what is received has become sound or silence.
    WatchSound {
        /// Stream.
        stream: StreamId,
        /// Whose watch it is; one that it has begins anew.
        listener: Listener,
        /// What is watched for; `None`: nothing any more.
        watch: Option<SoundWatch>,
    },
    /// Reports [`Event::Tone`] each time one of these tones has come.
    WatchTone {
        /// Stream.
        stream: StreamId,
        /// Who listens; what it listened for is replaced.
        listener: Listener,
        /// What is listened for; `None`: nothing any more.
        watch: Option<ToneWatch>,
    },
    /// Holds what is received back for other times than the plan says, so that it is heard evenly; what waits is lost.
    HoldBack {
        /// Stream.
        stream: StreamId,
        /// How long; `None`: as the plan says.
        limits: Option<HoldBack>,
    },
    /// Makes what is heard of a peer, and what it hears, louder or quieter from here on. Where a format cannot be coded here it
    /// stays as it is; recordings keep what came.
    Shape {
        /// Stream.
        stream: StreamId,
        /// What its peer says, for everybody who hears it.
        heard: Loudness,
        /// What its peer hears.
        sent: Loudness,
    },
    /// Sends silence to a peer while it would hear nothing at all: while it is not bridged, in no room, and nothing plays.
    FillSilence {
        /// Stream; one without a peer of its own is left alone.
        stream: StreamId,
        /// On or off.
        on: bool,
    },
    /// Carries fax over UDPTL from here on, to and from the plan's address, or audio again with `None`. What arrives goes on
    /// to the bridged peer if that carries fax, too.
    Fax {
        /// Stream.
        stream: StreamId,
        /// How; begins anew where fax is carried already.
        fax: Option<Fax>,
    },
    /// Asks for [`Event::Stats`].
    Stats {
        /// Stream.
        stream: StreamId,
    },
}

/// Signals of the network, those of the North American plan: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tones(u8);

impl Tones {
    /// Dial tone, 350 and 440 Hz.
    pub const DIAL: Self = Self(1);
    /// Busy and congestion, 480 and 620 Hz.
    pub const BUSY: Self = Self(2);
    /// Ringback, 440 and 480 Hz.
    pub const RINGBACK: Self = Self(4);
    /// The three special information tones (ITU-T E.180).
    pub const INFORMATION: Self = Self(8);

    /// Whether all of `other` are in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for Tones {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which tones a stream is listened to for, and on which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToneWatch {
    /// A single frequency, hertz; `None`: only signals.
    pub hertz: Option<u16>,
    /// How long that has to last, milliseconds.
    pub duration_ms: u32,
    /// How far a tone stands out from all else, decibels.
    pub decibels: u8,
    /// Signals that count as well.
    pub signals: Tones,
    /// What is received is listened to.
    pub heard: bool,
    /// What is sent is.
    pub sent: bool,
}

impl Default for ToneWatch {
    fn default() -> Self {
        Self { hertz: None, duration_ms: 500, decibels: 16, signals: Tones(0), heard: true, sent: true }
    }
}

/// Who wants to know when a stream hears sound and when silence, or a tone. Each has a watch of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// The application that runs.
    Application,
    /// Whoever watches over the call, whatever runs.
    Watcher,
}

impl Listener {
    /// How many there are.
    pub const COUNT: usize = 2;
}

/// When a stream counts as hearing sound, and when silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoundWatch {
    /// Mean absolute amplitude of a 20 ms frame from which on it is sound; the field's default is 256.
    pub threshold: u16,
    /// Milliseconds that frames of sound follow each other before it counts as one; brought to whole frames, at least one.
    pub sound_ms: u32,
    /// The same for silence.
    pub silence_ms: u32,
    /// What it counts as before anything was heard, which is not reported: sound; else silence.
    pub sounds: bool,
}

/// For how long packets are held back, so that they are heard evenly; milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldBack {
    /// At least.
    pub least_ms: u16,
    /// At most; 0: not at all.
    pub most_ms: u16,
}

/// Streams of video of one call that are passed through: slots from 0 on.
pub const VIDEO_SLOTS: usize = 4;
/// Streams of audio of one call beside the one that is served: slots behind those of video. A slot is what a stream has in
/// common with that of the other party, wherever the two stand in their descriptions.
pub const AUDIO_SLOTS: usize = 4;

/// How loud sound is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loudness {
    /// The factor that it is multiplied by.
    pub gain: Gain,
    /// Automatic gain after that: the mean absolute amplitude that talking is brought to, as [`MemberSettings::level`];
    /// 0 leaves it as it is.
    pub level: u16,
}

impl Loudness {
    /// As it comes.
    pub const PLAIN: Self = Self { gain: Gain::UNITY, level: 0 };
}

/// How a stream carries fax (ITU-T T.38).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fax {
    /// What protects our datagrams.
    pub protection: UdptlProtection,
    /// Longest datagram that the peer takes, bytes.
    pub datagram_max: u16,
}

/// What protects datagrams of UDPTL against loss (ITU-T T.38 §9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UdptlProtection {
    /// Nothing.
    #[default]
    None,
    /// Each repeats the packets before it.
    Redundancy,
    /// Each has parity over the packets before it.
    Fec,
}

/// Why playing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayEnd {
    /// The clip was sent to its last byte.
    Finished,
    /// A command ended it.
    Stopped,
    /// The stream cannot play it (no plan yet, or no way to transcode).
    Failed,
}

/// Why a worker gave a stream up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The stream's own code panicked; its neighbours go on.
    Panicked,
    /// The worker had no room.
    Full,
    /// The socket reported an error that does not pass.
    Socket,
}

/// Totals of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStats {
    /// RTP packets sent.
    pub sent_packets: u64,
    /// RTP payload bytes sent.
    pub sent_bytes: u64,
    /// RTP packets accepted.
    pub received_packets: u64,
    /// RTP payload bytes accepted.
    pub received_bytes: u64,
    /// Packets that never came (RFC 3550 §6.4.1).
    pub lost_packets: u32,
    /// Packets refused: wrong source, malformed, unknown payload type.
    pub discarded_packets: u64,
    /// Packets that came too late to be heard.
    pub late_packets: u32,
    /// Milliseconds that the jitter buffer holds packets back; 0 where there is none.
    pub buffer_ms: u32,
    /// Interarrival jitter in microseconds (RFC 3550 §6.4.1).
    pub jitter_us: u32,
    /// Round trip from the last receiver report, microseconds; 0 when unknown.
    pub round_trip_us: u32,
    /// Loss the peer reports, packets.
    pub peer_lost_packets: u32,
    /// Jitter the peer reports, microseconds.
    pub peer_jitter_us: u32,
    /// Our synchronisation source.
    pub ssrc: u32,
    /// The peer's; 0 before its first packet.
    pub peer_ssrc: u32,
}

/// What a sender says of itself in a report of RTCP (RFC 3550 §6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderInfo {
    /// Wall time, 32.32 fixed point since 1900.
    pub ntp: u64,
    /// The same moment on the RTP clock.
    pub timestamp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Payload bytes sent.
    pub bytes: u32,
}

/// What a receiver says of one source in a report of RTCP (RFC 3550 §6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportBlock {
    /// The source that is reported on.
    pub ssrc: u32,
    /// Share lost since the last report, 1/256.
    pub fraction_lost: u8,
    /// Packets lost in all, 24 bits signed.
    pub lost: i32,
    /// Extended highest sequence number.
    pub highest: u32,
    /// Interarrival jitter, timestamp units.
    pub jitter: u32,
    /// Middle 32 bits of the last sender report's NTP time.
    pub last_report: u32,
    /// Time since that report, 1/65536 s.
    pub delay: u32,
}

/// One report of RTCP that left or came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtcpReport {
    /// It left; else it came.
    pub sent: bool,
    /// Where it went, or came from.
    pub peer: SocketAddr,
    /// Who reports.
    pub ssrc: u32,
    /// What it says of what it sends; a receiver report has none.
    pub sender: Option<SenderInfo>,
    /// What it says of what it hears: of the first source, which is the only one between two.
    pub block: Option<ReportBlock>,
    /// Round trip as known after it, microseconds; 0 when unknown.
    pub round_trip_us: u32,
}

/// Worker → signalling. Edges (digits, played, closed) are never dropped; statistics may be merged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Playing ended.
    Played {
        /// Stream.
        stream: StreamId,
        /// Which request.
        play: PlayId,
        /// Why.
        end: PlayEnd,
        /// Byte of the clip that was reached.
        offset: usize,
    },
    /// A digit began.
    DigitBegin {
        /// Stream.
        stream: StreamId,
        /// Digit.
        digit: Digit,
        /// The worker passed it to the bridged peer itself.
        relayed: bool,
    },
    /// A digit ended.
    DigitEnd {
        /// Stream.
        stream: StreamId,
        /// Digit.
        digit: Digit,
        /// Milliseconds it lasted.
        duration_ms: u32,
        /// The worker passed it to the bridged peer itself.
        relayed: bool,
    },
    /// All digits of [`Command::SendDigit`] have left.
    DigitsSent {
        /// Stream.
        stream: StreamId,
    },
    /// The watched silence was reached; the watch starts over.
    Silence {
        /// Stream.
        stream: StreamId,
        /// Milliseconds of silence so far.
        ms: u32,
    },
    /// What a stream hears has become sound, or silence.
    Sound {
        /// Stream.
        stream: StreamId,
        /// Whose watch says so.
        listener: Listener,
        /// It is sound.
        sounds: bool,
        /// Milliseconds that the opposite lasted before, up to where this began.
        before_ms: u32,
    },
    /// A tone has come that is watched for ([`Command::WatchTone`]); once for as long as it sounds.
    Tone {
        /// Stream.
        stream: StreamId,
        /// Who listens.
        listener: Listener,
        /// The stream sends it; else it is received.
        sent: bool,
    },
    /// A member of a room began or ceased to talk.
    Talking {
        /// Stream.
        stream: StreamId,
        /// It talks.
        talks: bool,
    },
    /// From here on this member leads the talk in its room ([`RoomVideo::tells_speaker`](crate::RoomVideo)).
    Speaker {
        /// Stream.
        stream: StreamId,
    },
    /// A whole picture of this stream's peer is wanted, which is not asked by RTCP.
    PictureWanted {
        /// Stream.
        stream: StreamId,
    },
    /// The first valid packet came from this source, or the stream locked onto it.
    Latched {
        /// Stream.
        stream: StreamId,
        /// Source of the peer's RTP.
        remote: SocketAddr,
    },
    /// From here on the peer sends this format, another than before among those of the plan.
    Sends {
        /// Stream.
        stream: StreamId,
        /// What comes.
        format: FormatId,
    },
    /// No RTP for the plan's time; once until RTP comes back.
    RtpTimeout {
        /// Stream.
        stream: StreamId,
    },
    /// Totals: the answer to [`Command::Stats`], and whenever an RTCP report has left.
    Stats {
        /// Stream.
        stream: StreamId,
        /// Totals so far.
        stats: StreamStats,
        /// It is the answer; reports are no news that anybody waits for.
        asked: bool,
    },
    /// A report of RTCP left or came, while such are told.
    Rtcp {
        /// Stream.
        stream: StreamId,
        /// What it said.
        report: RtcpReport,
    },
    /// The stream is gone; last event of its id.
    Closed {
        /// Stream.
        stream: StreamId,
        /// Totals.
        stats: StreamStats,
        /// Set when the worker ended it.
        fault: Option<Fault>,
    },
}
