//! Fax streams in session descriptions (ITU-T T.38 annex D): what `m=image … udptl t38` and its attributes say.

use core::net::SocketAddr;
use std::io::Write as _;

use base::UdptlProtection;

use super::{Address, Session, Stream, words};
use crate::header::lex::number;

/// Longest datagram that is believed of a peer that names none, bytes.
const DATAGRAM_USUAL: u16 = 400;

/// What one side says of its fax stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaxTerms {
    /// `T38FaxVersion`.
    pub version: u8,
    /// `T38MaxBitRate`.
    pub bit_rate: Option<u32>,
    /// `T38FaxFillBitRemoval`.
    pub fill_bit_removal: bool,
    /// `T38FaxTranscodingMMR`.
    pub mmr: bool,
    /// `T38FaxTranscodingJBIG`.
    pub jbig: bool,
    /// `T38FaxRateManagement:localTCF`; else the training is transferred.
    pub local_tcf: bool,
    /// `T38FaxMaxBuffer`.
    pub buffer_max: Option<u32>,
    /// `T38FaxMaxDatagram`.
    pub datagram_max: u16,
    /// `T38FaxUdpEC`.
    pub protection: UdptlProtection,
}

/// A fax stream that a description holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaxStream {
    /// Where its datagrams are wanted.
    pub remote: SocketAddr,
    /// What it says.
    pub terms: FaxTerms,
    /// Its place among the streams.
    pub(super) place: usize,
}

impl FaxStream {
    /// The fax stream of a description, when it has one and no audio that goes on.
    pub fn of(description: &[u8]) -> Option<Self> {
        let session = Session::parse(description)?;
        let is_fax = |stream: &&Stream<'_>| {
            stream.kind.eq_ignore_ascii_case(b"image")
                && stream.protocol.eq_ignore_ascii_case(b"udptl")
                && words(stream.formats).any(|format| format.eq_ignore_ascii_case(b"t38"))
        };
        let mut active = session.streams.iter().enumerate().filter(|(_, stream)| stream.port != 0);
        let talks = active.clone().any(|(_, stream)| stream.kind.eq_ignore_ascii_case(b"audio"));
        let (place, stream) = active.find(|(_, stream)| is_fax(stream)).filter(|_| !talks)?;
        let Some(Address::Ip(ip)) = session.address(stream).filter(|at| !is_nowhere(at)) else { return None };
        Some(Self { remote: SocketAddr::new(ip, stream.port), terms: FaxTerms::of(stream), place })
    }
}

fn is_nowhere(address: &Address<'_>) -> bool {
    matches!(address, Address::Ip(ip) if ip.is_unspecified())
}

impl FaxTerms {
    fn of(stream: &Stream<'_>) -> Self {
        let value = |wanted: &[u8]| {
            let mut all = stream.attributes();
            all.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
        };
        // As a flag it means yes, and so does any number but 0.
        let flag = |name: &[u8]| value(name).is_some_and(|value| value != b"0");
        let small = |name: &[u8]| value(name).and_then(number).and_then(|number| u32::try_from(number).ok());
        let datagram_max =
            small(b"T38FaxMaxDatagram").filter(|bytes| *bytes > 0).unwrap_or(DATAGRAM_USUAL.into());
        Self {
            version: small(b"T38FaxVersion").and_then(|version| u8::try_from(version).ok()).unwrap_or(0),
            bit_rate: small(b"T38MaxBitRate").or(small(b"T38FaxMaxRate")),
            fill_bit_removal: flag(b"T38FaxFillBitRemoval"),
            mmr: flag(b"T38FaxTranscodingMMR"),
            jbig: flag(b"T38FaxTranscodingJBIG"),
            local_tcf: value(b"T38FaxRateManagement")
                .is_some_and(|how| how.eq_ignore_ascii_case(b"localTCF")),
            buffer_max: small(b"T38FaxMaxBuffer"),
            datagram_max: u16::try_from(datagram_max).unwrap_or(u16::MAX),
            protection: match value(b"T38FaxUdpEC") {
                Some(how) if how.eq_ignore_ascii_case(b"t38UDPRedundancy") => UdptlProtection::Redundancy,
                Some(how) if how.eq_ignore_ascii_case(b"t38UDPFEC") => UdptlProtection::Fec,
                _ => UdptlProtection::None,
            },
        }
    }
    /// Appends the stream.
    pub(super) fn write(&self, port: u16, text: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        write!(text, "m=image {port} udptl t38\r\na=T38FaxVersion:{}\r\n", self.version).ok();
        if let Some(rate) = self.bit_rate {
            write!(text, "a=T38MaxBitRate:{rate}\r\n").ok();
        }
        for (on, name) in [
            (self.fill_bit_removal, "T38FaxFillBitRemoval"),
            (self.mmr, "T38FaxTranscodingMMR"),
            (self.jbig, "T38FaxTranscodingJBIG"),
        ] {
            if on {
                write!(text, "a={name}\r\n").ok();
            }
        }
        let management = if self.local_tcf { "localTCF" } else { "transferredTCF" };
        write!(text, "a=T38FaxRateManagement:{management}\r\n").ok();
        if let Some(bytes) = self.buffer_max {
            write!(text, "a=T38FaxMaxBuffer:{bytes}\r\n").ok();
        }
        write!(text, "a=T38FaxMaxDatagram:{}\r\n", self.datagram_max).ok();
        match self.protection {
            UdptlProtection::None => {}
            UdptlProtection::Redundancy => text.extend_from_slice(b"a=T38FaxUdpEC:t38UDPRedundancy\r\n"),
            UdptlProtection::Fec => text.extend_from_slice(b"a=T38FaxUdpEC:t38UDPFEC\r\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n";
    const PLAIN: FaxTerms = FaxTerms {
        version: 0,
        bit_rate: None,
        fill_bit_removal: false,
        mmr: false,
        jbig: false,
        local_tcf: false,
        buffer_max: None,
        datagram_max: DATAGRAM_USUAL,
        protection: UdptlProtection::None,
    };

    fn read(streams: &str) -> Option<FaxStream> {
        FaxStream::of(format!("{SESSION}{streams}").as_bytes())
    }

    #[test]
    fn t38_d_2_1_what_a_fax_stream_says_is_read_in_the_forms_of_the_field() {
        for (name, attributes, expected) in [
            ("nothing", "", PLAIN),
            (
                "a gateway",
                "a=T38FaxVersion:3\r\na=T38MaxBitRate:33600\r\na=T38FaxFillBitRemoval:0\r\na=T38FaxTranscodingMMR:0\r\n\
                 a=T38FaxTranscodingJBIG:0\r\na=T38FaxRateManagement:transferredTCF\r\na=T38FaxMaxBuffer:260\r\n\
                 a=T38FaxMaxDatagram:260\r\na=T38FaxUdpEC:t38UDPRedundancy\r\n",
                FaxTerms {
                    version: 3,
                    bit_rate: Some(33_600),
                    buffer_max: Some(260),
                    datagram_max: 260,
                    protection: UdptlProtection::Redundancy,
                    ..PLAIN
                },
            ),
            (
                "flags, other spellings",
                "a=t38faxfillbitremoval\r\na=T38FaxTranscodingMMR:1\r\na=T38FaxTranscodingJBIG\r\na=T38FaxMaxRate:9600\r\n\
                 a=T38FaxRateManagement:localTCF\r\na=T38FaxUdpEC:t38UDPFEC\r\n",
                FaxTerms {
                    bit_rate: Some(9600),
                    fill_bit_removal: true,
                    mmr: true,
                    jbig: true,
                    local_tcf: true,
                    protection: UdptlProtection::Fec,
                    ..PLAIN
                },
            ),
            (
                "nonsense",
                "a=T38FaxVersion:x\r\na=T38FaxMaxDatagram:0\r\na=T38FaxMaxBuffer:99999999999\r\na=T38FaxUdpEC:t38UDPNoEC\r\n",
                PLAIN,
            ),
        ] {
            let stream = read(&format!("m=image 4000 udptl t38\r\n{attributes}")).unwrap();
            assert_eq!(stream.terms, expected, "{name}");
            assert_eq!(stream.remote, "192.0.2.1:4000".parse().unwrap(), "{name}");
            let mut text = Vec::new();
            stream.terms.write(4000, &mut text);
            let again = read(core::str::from_utf8(&text).unwrap()).unwrap();
            assert_eq!(again, stream, "{name}: what is written is read as the same");
        }
    }

    #[test]
    fn a_description_is_one_of_fax_when_it_has_no_audio_that_goes_on() {
        for (streams, place) in [
            ("m=image 4000 udptl t38\r\n", Some(0)),
            ("m=audio 0 RTP/AVP 0\r\nm=image 4000 UDPTL t38\r\n", Some(1)),
            ("m=image 4000 udptl t38\r\nm=audio 0 RTP/AVP 0\r\n", Some(0)),
            ("m=audio 4000 RTP/AVP 0\r\nm=image 4002 udptl t38\r\n", None),
            ("m=image 0 udptl t38\r\n", None),
            ("m=image 4000 tcp t38\r\n", None),
            ("m=image 4000 udptl other\r\n", None),
            ("m=image 4000 udptl t38\r\nc=IN IP4 0.0.0.0\r\n", None),
            ("m=image 4000 udptl t38\r\nc=IN IP4 fax.example\r\n", None),
        ] {
            assert_eq!(read(streams).map(|stream| stream.place), place, "{streams}");
        }
    }
}
