//! The video end of a [`Phone`](crate::Phone): shows pictures when a test says so, and keeps what comes.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::wait;

/// Longest datagram that is taken.
const DATAGRAM_MAX: usize = 2048;

/// A packet of video that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Payload type.
    pub payload_type: u8,
    /// It ends a picture.
    pub marked: bool,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Source.
    pub ssrc: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Shown {
    /// It is what a camera has sent, with this payload type, and marked where the picture ends.
    pub fn assert_whole(&self, payload_type: u8) {
        let [_, at, packets, rest @ ..] = &self.payload[..] else { panic!("{self:?}") };
        assert_eq!((self.payload_type, self.marked), (payload_type, at + 1 == *packets));
        assert!(rest.len() == 1000 && rest.iter().all(|byte| *byte == 0x5a));
    }
}

/// A camera and a screen.
#[derive(Debug)]
pub struct Camera {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    payload_type: u8,
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    pictures: u8,
}

impl Camera {
    /// A camera on two ports of an address, whose packets have this payload type.
    pub fn open(ip: IpAddr, payload_type: u8) -> Self {
        let port = || {
            let socket = UdpSocket::bind((ip, 0)).expect("a port for video");
            socket.set_nonblocking(true).expect("a socket that does not wait");
            socket
        };
        let (rtp, rtcp) = (port(), port());
        let ssrc = 0x00ca_0000 | u32::from(rtp.local_addr().expect("its address").port());
        Self { rtp, rtcp, payload_type, ssrc, sequence: 65_530, timestamp: u32::MAX - 5000, pictures: 0 }
    }
    /// Its lines of a session description, with what else there is to say of the stream.
    pub fn sdp(&self, rtpmap: &str, more: &str) -> String {
        let port = |socket: &UdpSocket| socket.local_addr().expect("its address").port();
        let (number, rtp, rtcp) = (self.payload_type, port(&self.rtp), port(&self.rtcp));
        format!("m=video {rtp} RTP/AVP {number}\r\na=rtpmap:{number} {rtpmap}\r\na=rtcp:{rtcp}\r\n{more}")
    }
    /// Its source.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }
    /// Shows pictures until one is seen whole by another, or by itself; all that was seen.
    pub fn until_seen(&mut self, to: SocketAddr, screen: Option<&Self>) -> Vec<Shown> {
        let mut seen = Vec::new();
        wait::until_true("a picture is seen", || {
            self.show(to, 8);
            seen.extend(screen.unwrap_or(self).seen());
            seen.iter().filter(|packet: &&Shown| packet.marked).count() >= 3
        });
        seen
    }
    /// Shows a picture of so many packets.
    pub fn show(&mut self, to: SocketAddr, packets: u8) {
        self.pictures = self.pictures.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(3000);
        for at in 0..packets {
            let mark = if at + 1 == packets { 0x80 } else { 0 };
            let packet = [
                &[0x80, mark | self.payload_type][..],
                &self.sequence.to_be_bytes(),
                &self.timestamp.to_be_bytes(),
                &self.ssrc.to_be_bytes(),
                &[self.pictures, at, packets],
                &[0x5a; 1000],
            ];
            self.sequence = self.sequence.wrapping_add(1);
            self.rtp.send_to(&packet.concat(), to).expect("the packet leaves");
        }
    }
    /// What has come since the last look.
    pub fn seen(&self) -> Vec<Shown> {
        let packets = std::iter::from_fn(|| datagram(&self.rtp));
        packets.filter_map(|bytes| read(&bytes)).collect()
    }
    /// Says that a picture of this source was lost (RFC 4585 §6.3.1), behind an empty report.
    pub fn lose(&self, to: SocketAddr, source: u32) {
        let (own, source) = (self.ssrc.to_be_bytes(), source.to_be_bytes());
        let compound = [&[0x80, 201, 0, 1][..], &own, &[0x81, 206, 0, 2], &own, &source].concat();
        self.rtcp.send_to(&compound, to).expect("the report leaves");
    }
    /// The sources of which pictures were said to be lost since the last look.
    pub fn lost(&self) -> Vec<u32> {
        let compounds = std::iter::from_fn(|| datagram(&self.rtcp));
        compounds.flat_map(|compound| losses(&compound)).collect()
    }
}

fn datagram(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut room = [0; DATAGRAM_MAX];
    let length = socket.recv(&mut room).ok()?;
    room.get(..length).map(<[u8]>::to_vec)
}

fn read(packet: &[u8]) -> Option<Shown> {
    let [0x80, kind, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3, payload @ ..] = packet else { return None };
    Some(Shown {
        payload_type: kind & 0x7f,
        marked: kind & 0x80 != 0,
        sequence: u16::from_be_bytes([*s0, *s1]),
        timestamp: u32::from_be_bytes([*t0, *t1, *t2, *t3]),
        ssrc: u32::from_be_bytes([*i0, *i1, *i2, *i3]),
        payload: payload.to_vec(),
    })
}

fn losses(compound: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut rest = compound;
    while let [flags, kind, l0, l1, body @ ..] = rest {
        if let (0x81, 206, [_, _, _, _, m0, m1, m2, m3, ..]) = (*flags, *kind, body) {
            found.push(u32::from_be_bytes([*m0, *m1, *m2, *m3]));
        }
        rest = body.get(4 * usize::from(u16::from_be_bytes([*l0, *l1]))..).unwrap_or_default();
    }
    found
}
