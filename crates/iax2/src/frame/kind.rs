//! What a full frame is: its type and subclass (RFC 5456 §8.2 to §8.5).

use super::Media;
use base::Digit;

macro_rules! codes {
    ($(#[$doc:meta])* $type:ident { $($value:literal $konst:ident $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub u8);
        impl $type {
            $(#[doc = $text] pub const $konst: Self = Self($value);)*
            /// The name in the protocol; empty for a value that nobody assigned.
            pub fn name(self) -> &'static str {
                match self.0 { $($value => stringify!($konst),)* _ => "" }
            }
        }
    };
}

codes! {
    /// A message of the protocol itself (RFC 5456 §8.4, and those that the field added).
    Command {
        1 NEW "Begins a call.";
        2 PING "Asks whether the other side is there.";
        3 PONG "Answers PING and POKE.";
        4 ACK "Acknowledges.";
        5 HANGUP "Ends a call.";
        6 REJECT "Refuses a call.";
        7 ACCEPT "Takes a call.";
        8 AUTHREQ "Asks a caller to prove who it is.";
        9 AUTHREP "Proves it.";
        10 INVAL "Says that there is no such call.";
        11 LAGRQ "Asks how long the way is.";
        12 LAGRP "Answers that.";
        13 REGREQ "Asks to be registered.";
        14 REGAUTH "Asks who registers to prove it.";
        15 REGACK "Says that it is registered.";
        16 REGREJ "Refuses a registration.";
        17 REGREL "Ends a registration.";
        18 VNAK "Asks for frames that are missing.";
        19 DPREQ "Asks whether a number exists.";
        20 DPREP "Answers that.";
        21 DIAL "Dials on a call that was begun without a number.";
        22 TXREQ "Asks to talk to another side directly.";
        23 TXCNT "Tries whether that side can be reached.";
        24 TXACC "Says that it was reached.";
        25 TXREADY "Says that both can reach each other.";
        26 TXREL "Hands the call over.";
        27 TXREJ "Says that they cannot.";
        28 QUELCH "Asks to send no media.";
        29 UNQUELCH "Asks to send media again.";
        30 POKE "Asks without a call whether the other side is there.";
        32 MWI "Tells of messages that wait.";
        33 UNSUPPORT "Says that a message is not known here.";
        34 TRANSFER "Asks to dial another number.";
        35 PROVISION "Sets up a device.";
        36 FWDOWNL "Asks for firmware.";
        37 FWDATA "Sends firmware.";
        38 TXMEDIA "Hands the media over.";
        39 RTKEY "Tells the next key.";
        40 CALLTOKEN "Tells the token to begin with.";
    }
}

impl Command {
    /// Whether the message takes no place in the sequence (RFC 5456 §7).
    pub const fn is_unsequenced(self) -> bool {
        matches!(self, Self::ACK | Self::INVAL | Self::VNAK | Self::TXCNT | Self::TXACC | Self::CALLTOKEN)
    }
}

codes! {
    /// What happens to a call (RFC 5456 §8.3).
    Control {
        1 HANGUP "The other side has hung up.";
        3 RINGING "The other side rings.";
        4 ANSWER "The other side has answered.";
        5 BUSY "The other side is busy.";
        8 CONGESTION "There is no way to the other side.";
        9 FLASH "The hook was pressed.";
        11 OPTION "A device's option.";
        12 KEY "The radio transmits.";
        13 UNKEY "The radio listens.";
        14 PROGRESS "The call makes progress, with sound.";
        15 PROCEEDING "The call is on its way.";
        16 HOLD "The call is held.";
        17 UNHOLD "The call is held no longer.";
        22 CONNECTED_LINE "Who is connected has changed.";
        23 REDIRECTING "The call was redirected.";
        33 STOP_SOUNDS "Sounds shall stop.";
    }
}

codes! {
    /// What a page wants (RFC 5456 §8.5).
    Html {
        1 URL "A URL to show.";
        2 DATA "A piece of a page.";
        4 BEGIN "A page begins.";
        8 END "A page ends.";
        16 COMPLETE "The page was loaded.";
        17 NOT_SUPPORTED "There are no pages here.";
        18 LINK_URL "A URL to follow.";
        19 UNLINK "Not to follow it.";
        20 LINK_REJECT "It is not followed.";
    }
}

/// Type and subclass of a full frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A digit ends, or came whole from a peer that knows no beginnings.
    DigitEnd(Digit),
    /// Voice in this format.
    Voice(Media),
    /// Video in this format; whether a picture ends here.
    Video(Media, bool),
    /// What happens to the call.
    Control(Control),
    /// Nothing; never sent (RFC 5456 §8.2.5).
    Null,
    /// A message of the protocol.
    Iax(Command),
    /// Text in UTF-8.
    Text,
    /// A picture in this format.
    Image(Media),
    /// A page.
    Html(Html),
    /// Comfort noise, level in −dBov.
    Noise(u8),
    /// A digit begins.
    DigitBegin(Digit),
    /// A type that nobody assigned, or a subclass without a meaning.
    Unknown(u8, u8),
}

/// The bit that says that the rest is an exponent of two (RFC 5456 §8.1.1).
const POWER: u8 = 0x80;
/// The bit in a video frame's subclass that says that a picture ends here.
const MARK: u8 = 0x40;

impl Kind {
    /// The kind that the two octets of the header stand for.
    pub fn read(kind: u8, subclass: u8) -> Self {
        let unknown = Self::Unknown(kind, subclass);
        // Small values are written as themselves by some and as a power by others (RFC 5456 §8.1.1 allows both).
        let small = match subclass & POWER {
            0 => Some(subclass),
            _ => 1u8.checked_shl(u32::from(subclass & !POWER)).filter(|value| *value < POWER),
        };
        match kind {
            1 => digit(subclass).map_or(unknown, Self::DigitEnd),
            2 => read_media(subclass).map_or(unknown, Self::Voice),
            3 => {
                read_media(subclass & !MARK).map_or(unknown, |media| Self::Video(media, subclass & MARK != 0))
            }
            4 => small.map_or(unknown, |value| Self::Control(Control(value))),
            5 => Self::Null,
            6 => small.map_or(unknown, |value| Self::Iax(Command(value))),
            7 => Self::Text,
            8 => read_media(subclass).map_or(unknown, Self::Image),
            9 => small.map_or(unknown, |value| Self::Html(Html(value))),
            10 => Self::Noise(subclass),
            12 => digit(subclass).map_or(unknown, Self::DigitBegin),
            _ => unknown,
        }
    }

    /// The two octets of the header.
    pub fn code(self) -> (u8, u8) {
        match self {
            Self::DigitEnd(digit) => (1, digit_code(digit)),
            Self::Voice(media) => (2, media_code(media)),
            // A format below 64 goes as a number; the bit of the mark is free in both forms.
            Self::Video(media, mark) => (3, media_code(media) | if mark { MARK } else { 0 }),
            Self::Control(control) => (4, control.0 & !POWER),
            Self::Null => (5, 0),
            Self::Iax(command) => (6, command.0 & !POWER),
            Self::Text => (7, 0),
            Self::Image(media) => (8, media_code(media)),
            Self::Html(html) => (9, html.0 & !POWER),
            Self::Noise(level) => (10, level),
            Self::DigitBegin(digit) => (12, digit_code(digit)),
            Self::Unknown(kind, subclass) => (kind, subclass),
        }
    }
}

fn digit(subclass: u8) -> Option<Digit> {
    subclass.is_ascii().then(|| Digit::from_char(char::from(subclass))).flatten()
}

fn digit_code(digit: Digit) -> u8 {
    u8::try_from(digit.to_char()).unwrap_or(b'0')
}

fn read_media(subclass: u8) -> Option<Media> {
    match subclass & POWER {
        0 => Media::one(u64::from(subclass)),
        _ => 1u64.checked_shl(u32::from(subclass & !POWER)).map(Media),
    }
}

/// A format below 128 as itself, which every peer of the field reads; others as a power of two.
fn media_code(media: Media) -> u8 {
    match u8::try_from(media.0) {
        // 64 would look like the mark of a picture's end.
        Ok(value) if value < MARK => value,
        _ => POWER | (media.0.trailing_zeros().min(63) as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FormatId;

    #[test]
    fn rfc5456_8_1_1_a_subclass_is_read_in_both_forms_and_written_as_the_field_does() {
        for (name, media, forms) in [
            ("ulaw", Media::of(FormatId::ULAW), &[0x04, 0x82][..]),
            ("gsm", Media::of(FormatId::GSM), &[0x02, 0x81]),
            ("slin", Media::of(FormatId::SLIN), &[0x86, 0x40]),
            ("lpc10", Media::of(FormatId::LPC10), &[0x87]),
            ("g729", Media::of(FormatId::G729), &[0x88]),
            ("opus", Media::of(FormatId::OPUS), &[0x80 | 34]),
        ] {
            let media = media.unwrap();
            for form in forms {
                assert_eq!(Kind::read(2, *form), Kind::Voice(media), "{name} as {form:#04x}");
            }
            assert_eq!(Kind::Voice(media).code(), (2, forms[0]), "{name}");
        }
        assert_eq!(Kind::read(2, 0x80 | 64), Kind::Unknown(2, 0xc0), "beyond 64 formats");
        assert_eq!(Kind::read(2, 0x03), Kind::Unknown(2, 3), "two formats are none");
        assert_eq!(Kind::read(4, 0x82), Kind::Control(Control::ANSWER));
        assert_eq!(Kind::read(3, 0xd5), Kind::Video(Media(1 << 21), true), "H.264, picture ends");
    }

    #[test]
    fn every_pair_of_octets_is_a_kind_that_reads_back_as_itself() {
        for kind in 0..=255 {
            for subclass in 0..=255 {
                let read = Kind::read(kind, subclass);
                let (kind_again, subclass_again) = read.code();
                assert_eq!(Kind::read(kind_again, subclass_again), read, "{kind:#04x} {subclass:#04x}");
            }
        }
    }
}
