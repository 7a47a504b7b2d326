//! What a machine says back: datagrams to send and events, in buffers that the caller keeps.

use crate::frame::{Control, Element, Elements, Fields, Html, Media};
use base::{Cause, Digit, FormatId, Place};
use core::net::SocketAddr;
use core::ops::Range;
use core::time::Duration;

/// Datagrams and events of one or several turns. [`Out::clear`] keeps the memory.
#[derive(Debug, Default)]
pub struct Out {
    /// What is sent.
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, Range<usize>)>,
    /// What was received: apart, because it is taken at once, datagram by datagram, and its memory is still in the caches
    /// for that of the next.
    media: Vec<u8>,
    /// What happened, in order.
    pub events: Vec<Event>,
}

impl Out {
    /// Forgets everything, for the next turn.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
        self.forget_events();
    }
    /// Forgets the events, and the media that they speak of.
    pub fn forget_events(&mut self) {
        self.events.clear();
        self.media.clear();
    }
    /// The datagrams to send, in order.
    pub fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.datagrams.iter().map(|(to, range)| (*to, self.bytes.get(range.clone()).unwrap_or_default()))
    }
    /// The media of an event.
    pub fn payload(&self, range: &Range<usize>) -> &[u8] {
        self.media.get(range.clone()).unwrap_or_default()
    }
    pub(crate) fn datagram(&mut self, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.datagrams.push((to, start..self.bytes.len()));
    }
    pub(crate) fn keep(&mut self, payload: &[u8]) -> Range<usize> {
        let start = self.media.len();
        self.media.extend_from_slice(payload);
        start..self.media.len()
    }
    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// What somebody asks for with NEW, REGREQ or REGREL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Where it came from.
    pub from: SocketAddr,
    /// Whether a token has shown that the sender receives there.
    pub validated: bool,
    elements: Vec<u8>,
}

impl Request {
    pub(crate) fn new(from: SocketAddr, validated: bool, elements: &[u8]) -> Self {
        Self { from, validated, elements: elements.to_vec() }
    }
    /// What it says, by name.
    pub fn fields(&self) -> Fields<'_> {
        Fields::collect(&self.elements).unwrap_or_default()
    }
    /// The variables that it brings (IAXVAR), in order: names and values.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        Elements::new(&self.elements).take(VARIABLES_MAX).filter_map(|element| {
            let Element::Variable(pair) = element else { return None };
            if super::party::is_own_variable(pair) {
                return None;
            }
            let at = pair.iter().position(|byte| *byte == b'=')?;
            Some((pair.get(..at)?, pair.get(at + 1..)?))
        })
    }
}

/// Most elements that are looked at for variables.
const VARIABLES_MAX: usize = 256;

/// How a watched peer answers POKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In time.
    Reachable(Duration),
    /// Later than it should.
    Lagged(Duration),
    /// Not at all.
    Unreachable,
}

/// Something that happened. Legs are named by their place; a leg is gone after [`Event::Ended`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A call comes in. Answer with `challenge`, `accept` or `reject`, at any later time: nothing waits for it but the
    /// caller, for whom the leg ends after a minute.
    Call(Place, Box<Request>),
    /// A peer wants to be registered, or, with `release`, no longer. Answer with `challenge`, `register` or `reject`.
    Register {
        /// The leg of this exchange.
        leg: Place,
        /// Whether a registration is to end.
        release: bool,
        /// What it says.
        request: Box<Request>,
    },
    /// Who was challenged has proven to know the password. Answer with `accept`, `register` or `reject`.
    Proven(Place),
    /// Who was challenged could not prove it. Answer with `reject`, at once or, so that guessing takes its time, later.
    Unproven(Place),
    /// Who was challenged answers with a signature. Answer with `judge`.
    Signed {
        /// The leg.
        leg: Place,
        /// What was to be signed.
        challenge: Vec<u8>,
        /// The signature in base 64.
        signature: Vec<u8>,
    },
    /// The other side wants a proof that the leg has no password for. Answer with `prove` or `sign`, or hang up; a leg
    /// that registers us takes `sign` only, and gives up by itself.
    Challenged {
        /// The leg.
        leg: Place,
        /// The methods that are taken.
        methods: crate::frame::Auth,
        /// What to prove it over.
        challenge: Vec<u8>,
    },
    /// The other side takes the call, with media in this format.
    Accepted(Place, FormatId),
    /// Who is talked to has changed.
    Connected {
        /// The leg.
        leg: Place,
        /// Its number; empty when there is none.
        number: Vec<u8>,
        /// Its name; empty when there is none.
        name: Vec<u8>,
        /// Whether both may be shown (RFC 5456 §8.6.29).
        presentation: u8,
    },
    /// Something happens to the call: it rings, is answered, held.
    Control(Place, Control),
    /// Voice. The bytes are in [`Out::payload`].
    Voice {
        /// The leg.
        leg: Place,
        /// Its format.
        format: FormatId,
        /// Milliseconds on the sender's clock, unwrapped; of a trunk without timestamps, on ours.
        timestamp: u32,
        /// The coded bytes.
        payload: Range<usize>,
    },
    /// Video. The bytes are in [`Out::payload`].
    Video {
        /// The leg.
        leg: Place,
        /// Its format.
        format: Media,
        /// Milliseconds on the sender's clock, unwrapped.
        timestamp: u32,
        /// Whether a picture ends here.
        mark: bool,
        /// The coded bytes.
        payload: Range<usize>,
    },
    /// The other side has asked how its voice is received. `set_played` tells what it learns the next time.
    Asked(Place),
    /// A digit begins (`true`) or ends. An end without a beginning is a whole digit.
    Digit(Place, Digit, bool),
    /// Text.
    Text(Place, Vec<u8>),
    /// Comfort noise, level in −dBov.
    Noise(Place, u8),
    /// A page or what to do with it.
    Html(Place, Html, Vec<u8>),
    /// The other side wants no media (`Some`: and music of this class for whom it talks to, empty for any).
    Quelched(Place, Option<Vec<u8>>),
    /// The other side wants media again.
    Unquelched(Place),
    /// Messages wait at the other side: old ones in the high octet, new ones in the low one.
    Messages(Place, u16),
    /// The other side asks whether a number exists (DPREQ). Answer with `tell_number`.
    NumberAsked(Place, Vec<u8>),
    /// Whether a number that was asked for exists (DPREP), and for how many seconds that stays true.
    NumberTold {
        /// The leg.
        leg: Place,
        /// The number.
        number: Vec<u8>,
        /// RFC 5456 §8.6.19.
        status: u16,
        /// Seconds.
        refresh: u16,
    },
    /// The other side dials on a call that it began without a number.
    Dialled(Place, Vec<u8>),
    /// The other side asks to be sent on to another number, perhaps in a context (TRANSFER).
    SendOn(Place, Vec<u8>, Option<Vec<u8>>),
    /// The other side of the leg has changed: calls go on directly.
    Transferred(Place, SocketAddr),
    /// Media goes directly; the leg stays for signalling.
    MediaTransferred(Place, SocketAddr),
    /// Two legs of ours were joined elsewhere: both end, nobody has hung up (native), or go on without media.
    Joined(Place, Place),
    /// Two legs could not be joined; they go on through us.
    NotJoined(Place, Place),
    /// The leg is gone.
    Ended {
        /// The leg.
        leg: Place,
        /// Why, as far as it was said.
        cause: Cause,
        /// Why, in the other side's words.
        text: Vec<u8>,
    },
    /// A registration of ours holds.
    Registered {
        /// Which.
        registration: Place,
        /// The address that the registrar sees.
        apparent: Option<SocketAddr>,
        /// Seconds until it ends.
        refresh: u16,
        /// Messages that wait, when it says.
        messages: Option<u16>,
    },
    /// A registration of ours was refused; it is tried again later.
    RegistrationRefused {
        /// Which.
        registration: Place,
        /// Why, as far as it was said.
        cause: Cause,
        /// Why, in words.
        text: Vec<u8>,
    },
    /// The registrar does not answer; it is tried again later.
    RegistrationLost(Place),
    /// A registration of ours has ended, as was asked.
    Unregistered(Place),
    /// A watched peer answers otherwise than before.
    Peer(Place, Reach),
}
