//! A call to make, and what NEW says of it (RFC 5456 §6.2.2).

use super::call::{ciphers, format_elements};
use super::orders::ELEMENTS_BYTES_MAX;
use super::party::Lines;
use crate::auth::Secret;
use crate::frame::{Element, Media, write_element, write_preferences};
use base::FormatId;
use core::net::SocketAddr;
use core::time::Duration;

/// Whether a call is enciphered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encrypt {
    /// Never.
    #[default]
    No,
    /// If the other side can.
    Wanted,
    /// Or not made.
    Required,
}

/// A call to make. [`Dial::to`] gives one with nothing but its address.
#[derive(Debug, Clone)]
pub struct Dial<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// The number; empty to ask for numbers first ([`ask_number`](super::Machine::ask_number)).
    pub called: &'a [u8],
    /// The context of the number.
    pub context: &'a [u8],
    /// Our user at the other side.
    pub username: &'a [u8],
    /// Its password; `None` to be asked when it is needed.
    pub secret: Option<Secret>,
    /// Formats, best first; one at least that the protocol has a bit for.
    pub formats: &'a [FormatId],
    /// Formats of video that the other side may have; those that the protocol has no bit for are left out.
    pub video: &'a [FormatId],
    /// The caller's number.
    pub calling: &'a [u8],
    /// The caller's number for billing.
    pub ani: &'a [u8],
    /// The caller's name.
    pub name: &'a [u8],
    /// Presentation, type and transit network of the caller's number (RFC 5456 §8.6.29 to §8.6.31).
    pub presentation: (u8, u8, u16),
    /// The number that was dialled first.
    pub dnid: &'a [u8],
    /// The number that redirected the call.
    pub rdnis: &'a [u8],
    /// The language.
    pub language: &'a [u8],
    /// Variables for the other side.
    pub variables: &'a [(&'a [u8], &'a [u8])],
    /// Date and time in UTC (RFC 5456 §8.6.28).
    pub datetime: Option<u32>,
    /// Whether changes of who is talked to are told and taken, where the other side can.
    pub lines: Lines,
    /// Whether the other side shall answer at once.
    pub auto_answer: bool,
    /// Whether to encipher.
    pub encrypt: Encrypt,
    /// Whether the keys of an enciphered call stay while it lasts.
    pub keys_stay: bool,
    /// Whether the password may go out in the clear.
    pub plaintext: bool,
    /// Whether voice goes together with that of other calls.
    pub trunk: bool,
    /// Whether the other side may send the call elsewhere.
    pub transferable: bool,
    /// Most numbers of this peer, instead of its address's limit.
    pub numbers_max: Option<u32>,
    /// How long the other side may take to say anything at all; `None`: as often as NEW is repeated.
    pub autokill: Option<Duration>,
}

impl Dial<'_> {
    /// A call to an address.
    pub fn to(to: SocketAddr) -> Self {
        Self {
            to,
            called: b"",
            context: b"",
            username: b"",
            secret: None,
            formats: &[FormatId::ULAW],
            video: &[],
            calling: b"",
            ani: b"",
            name: b"",
            presentation: (0, 0, 0),
            dnid: b"",
            rdnis: b"",
            language: b"",
            variables: &[],
            datetime: None,
            lines: Lines::default(),
            auto_answer: false,
            encrypt: Encrypt::No,
            keys_stay: false,
            plaintext: false,
            trunk: false,
            transferable: false,
            numbers_max: None,
            autokill: None,
        }
    }

    /// The elements of NEW; the version goes first (RFC 5456 §8.6.10).
    pub(super) fn elements(&self) -> Vec<u8> {
        let (mut data, mut letters) = (Vec::new(), Vec::new());
        write_element(&Element::Version(2), &mut data);
        write_preferences(self.formats, &mut letters);
        for (text, element) in [
            (self.called, Element::CalledNumber as fn(_) -> _),
            (&letters, Element::CodecPrefs),
            (self.calling, Element::CallingNumber),
            (self.ani, Element::CallingAni),
            (self.name, Element::CallingName),
            (self.language, Element::Language),
            (self.context, Element::CalledContext),
            (self.username, Element::Username),
            (self.dnid, Element::Dnid),
            (self.rdnis, Element::Rdnis),
        ] {
            if !text.is_empty() {
                write_element(&element(text), &mut data);
            }
        }
        let (presentation, ton, tns) = self.presentation;
        write_element(&Element::CallingPresentation(presentation), &mut data);
        write_element(&Element::CallingTon(ton), &mut data);
        write_element(&Element::CallingTns(tns), &mut data);
        if let Some(first) = self.formats.iter().find(|format| Media::of(**format).is_some()) {
            format_elements(*first, &mut data);
        }
        let can = Media::all(self.formats).with(Media::all_video(self.video));
        write_element(&Element::Capability(can.0 as u32), &mut data);
        write_element(&Element::Capability2(can), &mut data);
        if self.encrypt != Encrypt::No {
            write_element(&Element::Encryption(ciphers(self.keys_stay)), &mut data);
        }
        if self.auto_answer {
            write_element(&Element::AutoAnswer(()), &mut data);
        }
        if let Some(datetime) = self.datetime {
            write_element(&Element::DateTime(datetime), &mut data);
        }
        self.lines.write(&mut data);
        for (name, value) in self.variables {
            let pair = [name, &b"="[..], value].concat();
            if data.len() + pair.len() <= ELEMENTS_BYTES_MAX && pair.len() <= 255 {
                write_element(&Element::Variable(&pair), &mut data);
            }
        }
        data
    }
}
