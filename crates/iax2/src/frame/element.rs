//! Information elements (RFC 5456 §8.6): an octet that says what, an octet that says how long, and that many octets.

use super::{Media, long, word};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest element, bytes: its length is one octet.
const ELEMENT_BYTES_MAX: usize = 255;

/// Date and time, packed (RFC 5456 §8.6.28): year since 2000 in seven bits, month in four, day and hours in five, minutes in
/// six, and seconds in steps of two in five. Years that do not fit are the nearest that does.
pub fn packed_time(year: i64, month: u32, day: u32, hour: u32, minute: u32, second: u32) -> u32 {
    let year = u32::try_from((year - 2000).clamp(0, 127)).unwrap_or(0);
    year << 25
        | (month & 15) << 21
        | (day & 31) << 16
        | (hour & 31) << 11
        | (minute & 63) << 5
        | ((second / 2) & 31)
}

/// The methods of proving who one is (RFC 5456 §8.6.13), a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Auth(pub u16);

impl Auth {
    /// The password in the clear; only where an administrator asks for it.
    pub const PLAINTEXT: Self = Self(1);
    /// MD5 over challenge and password.
    pub const MD5: Self = Self(2);
    /// An RSA signature of the challenge.
    pub const RSA: Self = Self(4);

    /// Whether all of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0 && other.0 != 0
    }
    /// These and those.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How an element's octets are read and written.
trait Value<'a>: Sized {
    fn read(data: &'a [u8]) -> Option<Self>;
    fn write(&self, out: &mut Vec<u8>);
}

impl<'a> Value<'a> for &'a [u8] {
    fn read(data: &'a [u8]) -> Option<Self> {
        Some(data)
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.get(..ELEMENT_BYTES_MAX).unwrap_or(self));
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value<'_> for $type {
            fn read(data: &[u8]) -> Option<Self> {
                data.try_into().ok().map(Self::from_be_bytes)
            }
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}
numbers!(u8, u16, u32);

impl Value<'_> for () {
    fn read(_: &[u8]) -> Option<Self> {
        Some(())
    }
    fn write(&self, _: &mut Vec<u8>) {}
}

impl Value<'_> for Auth {
    fn read(data: &[u8]) -> Option<Self> {
        u16::read(data).map(Self)
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

/// 64 format bits after a version octet of 0.
impl Value<'_> for Media {
    fn read(data: &[u8]) -> Option<Self> {
        let (version, bits) = data.split_first()?;
        let bits = bits.first_chunk::<8>()?;
        (*version == 0).then(|| Self(u64::from_be_bytes(*bits)))
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

/// A `sockaddr` (RFC 5456 §8.6.17). The family stands in the order of the sender's processor, which is a small one
/// nearly everywhere; both orders are read.
impl Value<'_> for SocketAddr {
    fn read(data: &[u8]) -> Option<Self> {
        let (family, rest) = word(data)?;
        let (port, rest) = word(rest)?;
        match family {
            0x0200 | 0x0002 => {
                let (address, _) = long(rest)?;
                Some(Self::new(IpAddr::V4(Ipv4Addr::from_bits(address)), port))
            }
            0x0a00 | 0x000a => {
                let (_flow, rest) = long(rest)?;
                let address = rest.first_chunk::<16>()?;
                Some(Self::new(IpAddr::V6(Ipv6Addr::from(*address)), port))
            }
            _ => None,
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        let port = self.port().to_be_bytes();
        match self.ip() {
            IpAddr::V4(address) => {
                out.extend_from_slice(&[2, 0]);
                out.extend_from_slice(&port);
                out.extend_from_slice(&address.octets());
                out.extend_from_slice(&[0; 8]);
            }
            IpAddr::V6(address) => {
                out.extend_from_slice(&[10, 0]);
                out.extend_from_slice(&port);
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&address.octets());
                out.extend_from_slice(&[0; 4]);
            }
        }
    }
}

macro_rules! elements {
    ($($id:literal $name:ident $field:ident $type:ty, $doc:literal;)*) => {
        /// One information element.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Element<'a> {
            $(#[doc = $doc] $name($type),)*
            /// An element that is not known here, or of a length that its kind does not have.
            Other(u8, &'a [u8]),
        }

        impl<'a> Element<'a> {
            fn read(id: u8, data: &'a [u8]) -> Self {
                match id {
                    $($id => Value::read(data).map(Self::$name),)*
                    _ => None,
                }
                .unwrap_or(Self::Other(id, data))
            }
            /// The element's octet.
            pub const fn id(&self) -> u8 {
                match self {
                    $(Self::$name(_) => $id,)*
                    Self::Other(id, _) => *id,
                }
            }
            fn write_value(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(value) => value.write(out),)*
                    Self::Other(_, data) => data.write(out),
                }
            }
        }

        /// The elements of a frame by name; of one that comes twice, the last.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Fields<'a> {
            $(#[doc = $doc] pub $field: Option<$type>,)*
        }

        impl<'a> Fields<'a> {
            fn set(&mut self, element: Element<'a>) {
                match element {
                    $(Element::$name(value) => self.$field = Some(value),)*
                    Element::Other(..) => {}
                }
            }
        }
    };
}

elements! {
    1 CalledNumber called &'a [u8], "The number that is called.";
    2 CallingNumber calling &'a [u8], "The caller's number.";
    3 CallingAni ani &'a [u8], "The caller's number for billing.";
    4 CallingName name &'a [u8], "The caller's name.";
    5 CalledContext context &'a [u8], "The context of the called number.";
    6 Username username &'a [u8], "Who the sender says to be, or whom it asks for.";
    7 Password password &'a [u8], "A password in the clear.";
    8 Capability capability u32, "The formats that the sender can, low 32 bits.";
    9 Format format u32, "The format that the sender wants or takes, low 32 bits.";
    10 Language language &'a [u8], "The language that is wished.";
    11 Version version u16, "The version of the protocol: 2.";
    12 AdsiCpe adsi u16, "What a device with ADSI can.";
    13 Dnid dnid &'a [u8], "The number that was dialled first.";
    14 AuthMethods methods Auth, "Methods to prove who one is.";
    15 Challenge challenge &'a [u8], "What to prove it over; the key in RTKEY.";
    16 Md5Result md5 &'a [u8], "The MD5 answer, 32 hexadecimal digits.";
    17 RsaResult rsa &'a [u8], "The RSA answer in base 64.";
    18 ApparentAddr apparent SocketAddr, "The address that the receiver is seen at, or shall talk to.";
    19 Refresh refresh u16, "Seconds until the next registration, or that an answer stays true.";
    20 DpStatus dpstatus u16, "Whether a number exists (RFC 5456 §8.6.19).";
    21 CallNumber callno u16, "A call number of a third side.";
    22 Cause cause &'a [u8], "Why, in words.";
    23 IaxUnknown unknown u8, "The message that was not known.";
    24 MessageCount messages u16, "Messages that wait: old ones in the high octet, new ones in the low one.";
    25 AutoAnswer auto_answer (), "Answer at once.";
    26 MusicOnHold music &'a [u8], "Play music while quelched, of this class.";
    27 TransferId transfer u32, "Which transfer.";
    28 Rdnis rdnis &'a [u8], "The number that redirected the call.";
    29 Provisioning provisioning &'a [u8], "Set-up of a device.";
    30 AesProvisioning aes_provisioning &'a [u8], "Set-up of a device, enciphered.";
    31 DateTime datetime u32, "Date and time in UTC, packed (RFC 5456 §8.6.28).";
    32 DeviceType device &'a [u8], "What device it is.";
    33 ServiceIdent service &'a [u8], "The device's service identifier.";
    34 FirmwareVersion firmware u16, "The device's firmware.";
    35 FirmwareBlock firmware_block u32, "Which piece of firmware.";
    36 FirmwareData firmware_data &'a [u8], "A piece of firmware.";
    37 ProvisioningVersion provisioning_version u32, "Version of the set-up.";
    38 CallingPresentation presentation u8, "Whether the caller's number may be shown (RFC 5456 §8.6.29).";
    39 CallingTon ton u8, "The type of the caller's number (RFC 5456 §8.6.30).";
    40 CallingTns tns u16, "The transit network of the caller (RFC 5456 §8.6.31).";
    41 SamplingRate rates u16, "Sampling rates that the sender can, a bit each.";
    42 CauseCode causecode u8, "Why, as a Q.850 value.";
    43 Encryption encryption u16, "Ciphers that the sender can: 1 AES-128, 2 with changing keys.";
    44 EncryptionKey key &'a [u8], "Reserved for a key.";
    45 CodecPrefs prefs &'a [u8], "Formats in order of preference, a letter each.";
    46 RrJitter rr_jitter u32, "Jitter of what was received, ms.";
    47 RrLoss rr_loss u32, "Loss: per cent in the high octet, frames in the others.";
    48 RrPackets rr_packets u32, "Frames received.";
    49 RrDelay rr_delay u16, "Longest wait before a frame is played, ms.";
    50 RrDropped rr_dropped u32, "Frames dropped, being late.";
    51 RrOutOfOrder rr_ooo u32, "Frames received out of order.";
    52 Variable variable &'a [u8], "A channel variable: name=value.";
    53 OspToken osp &'a [u8], "A piece of a token for settlement.";
    54 CallToken token &'a [u8], "The token to begin with; empty asks for one.";
    55 Capability2 capability2 Media, "The formats that the sender can.";
    56 Format2 format2 Media, "The format that the sender wants or takes.";
    57 CallingAni2 ani2 u32, "The type of the caller's line.";
}

impl<'a> Fields<'a> {
    /// The elements of `data`; `None` when one runs over the end, which no whole frame has.
    pub fn collect(data: &'a [u8]) -> Option<Self> {
        let mut fields = Self::default();
        let mut elements = Elements::new(data);
        for element in &mut elements {
            fields.set(element);
        }
        (!elements.overran).then_some(fields)
    }
    /// The formats that the sender can: the wide element if it is there.
    pub fn formats(&self) -> Media {
        self.capability2.or(self.capability.map(|low| Media(u64::from(low)))).unwrap_or_default()
    }
    /// The format that the sender wants or takes: the wide element if it is there.
    pub fn format_one(&self) -> Media {
        self.format2.or(self.format.map(|low| Media(u64::from(low)))).unwrap_or_default()
    }
}

/// The elements of a frame, in order; ends at the first one that runs over the frame.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    rest: &'a [u8],
    overran: bool,
}

impl<'a> Elements<'a> {
    /// Those of a frame's data.
    pub const fn new(data: &'a [u8]) -> Self {
        Self { rest: data, overran: false }
    }
    /// Whether the last element ran over the end.
    pub const fn overran(&self) -> bool {
        self.overran
    }
    fn cut(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[id, length], rest) = self.rest.split_first_chunk::<2>()?;
        let (data, rest) = rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        Some((id, data))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;
    fn next(&mut self) -> Option<Element<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = self.cut();
        if cut.is_none() {
            self.overran = true;
            self.rest = &[];
        }
        cut.map(|(id, data)| Element::read(id, data))
    }
}

/// Appends an element; text longer than 255 octets is cut there.
pub fn write_element(element: &Element<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&[element.id(), 0]);
    let start = out.len();
    element.write_value(out);
    let written = out.len() - start;
    if let Some(length) = start.checked_sub(1).and_then(|at| out.get_mut(at)) {
        *length = u8::try_from(written).unwrap_or(u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5456_8_6_28_date_and_time_are_packed_into_32_bits() {
        for (name, packed, expected) in [
            ("the first", packed_time(2000, 1, 1, 0, 0, 0), 0x0021_0000),
            ("each field full", packed_time(2127, 12, 31, 23, 59, 59), 0xff9f_bf7d),
            ("seconds in steps of two", packed_time(2026, 11, 21, 12, 30, 59), 0x3575_63dd),
            ("before the first year", packed_time(1999, 1, 1, 0, 0, 0), 0x0021_0000),
            ("after the last", packed_time(2200, 1, 1, 0, 0, 0), 0xfe21_0000),
        ] {
            assert_eq!(packed, expected, "{name}: {packed:#010x}");
        }
    }
}
