//! `rtp.conf`: ports and the protection of media.

use super::kind::{Choice as _, Int, Millis, Port, Text, YesNo, choice};
use super::{options, read_settings};
use conf::{File, Findings};

choice! {
    /// `strictrtp=`: whether media from an address that was not negotiated is dropped.
    StrictRtp {
        Yes | "yes" | "true" | "on" | "1" | "y" | "t" "Learn the source, then drop everything else.";
        SeqNo | "seqno" "The same; the sequence number is looked at while learning.";
        No | "no" | "false" | "off" | "0" | "n" | "f" "Take media from anywhere.";
    }
}

choice! {
    /// `media_io=`: what moves the packets of calls.
    MediaIo {
        Auto | "auto" "The best that kernel and privileges allow.";
        Xdp | "xdp" "AF_XDP.";
        SkLookup | "sklookup" "One socket a worker.";
        Uring | "uring" "io_uring.";
        Epoll | "epoll" "One socket a leg.";
    }
}

impl MediaIo {
    /// The word of the file.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, choice)| *choice == self).map_or("", |(word, _)| word)
    }
}

choice! {
    /// `kernel_relay=`: whether bridges may be relayed below the media threads.
    KernelRelay {
        Auto | "auto" | "yes" "Where kernel, driver and call allow it.";
        No | "no" "Never.";
    }
}

impl KernelRelay {
    /// Whether they may.
    pub fn may(self) -> bool {
        self == Self::Auto
    }
}

choice! {
    /// `media_tick=`: how often a media thread wakes.
    MediaTick {
        Auto | "auto" "By load.";
        Ms1 | "1" "1 ms.";
        Ms2 | "2" "2 ms.";
        Ms5 | "5" "5 ms.";
        Ms10 | "10" "10 ms.";
        Ms20 | "20" "20 ms.";
    }
}

impl MediaTick {
    /// Milliseconds; `None` when the load decides.
    pub const fn ms(self) -> Option<u8> {
        match self {
            Self::Auto => None,
            Self::Ms1 => Some(1),
            Self::Ms2 => Some(2),
            Self::Ms5 => Some(5),
            Self::Ms10 => Some(10),
            Self::Ms20 => Some(20),
        }
    }
}

options! {
    /// `[general]` of `rtp.conf`.
    Rtp, "rtp.conf", "general", IsIgnored;
    rtpstart: Port = "5000", "First port of the range for media.";
    rtpend: Port = "31000", "Last port of the range for media.";
    strictrtp: StrictRtp = "yes", "Drop media that does not come from the learned source.";
    probation: Int<1, 128> = "4", "Packets in a row from one source before it is learned.",
        Ignored "*" "four packets in a row are wanted";
    rtpchecksums: YesNo = "yes", "Compute UDP checksums; IPv6 always does.",
        Later "yes" "checksums are computed";
    dtmftimeout: Int<1, 96_000> = "1200", "Samples without a continuation after which an RFC 4733 digit ends.",
        Ignored "*" "a digit without an end lasts for what its last packet says";
    codec_wait: Int<0, 9> = "5", "Milliseconds that a frame may wait until enough calls need the same codec step to fill the lanes of the processor; 0 never waits. Counts from the next start on.";
    share_prompts: YesNo = "yes", "Prompts and music are coded once for each format and shared by everyone who hears them. `no` keeps them linear and codes them for each call: for measurements that compare with systems which do so. What lies there in the format of the call is sent as it is either way, and tones are shared.";
    media_io: MediaIo = "auto", "What moves the packets: sockets of their own for each call leg (`epoll`), one socket a media thread (`sklookup`), or AF_XDP beside that (`xdp`); the latter two need privileges. `auto` takes the best there is, and one that is asked for and not to be had is an error. See [media.md](media.md#back-ends). Counts from the next start on.";
    media_interfaces: Text = "", "Interfaces for AF_XDP, separated by commas (`eth0,eth1`). Without one `media_io=auto` does not use it, and `media_io=xdp` takes all that are fit.";
    kernel_relay: KernelRelay = "auto", "With AF_XDP, the kernel relays bridged calls by itself that have one format and to which nobody listens. `no` leaves every packet to the media threads. See [media.md](media.md#kernel-relay). Counts from the next start on.";
    media_workers: Int<0, 256> = "0", "Media threads; 0 is one less than the processors, and at least one. Counts from the next start on.";
    media_tick: MediaTick = "auto", "Milliseconds between two looks of a media thread at its packets: 1, 2, 5, 10 or 20. `auto` is 1 under load, 5 with little and 20 without any. A long tick saves processor time and delays every packet by up to its length. See [media.md](media.md#ticks). Counts from the next start on.";
    srtpreplayprotection: YesNo = "yes", "Refuse SRTP packets that came before.";
    rtcpinterval: Millis<500, 60_000> = "5000", "Time between RTCP reports.";
    @recognised {
        "icesupport" "no,yes" Later "ICE is not built in; media uses the addresses of the SDP";
        "stunaddr" "" Later "no STUN server is asked; set external_media_address in the transport";
        "stun_acl" "*" Ignored "no STUN server is asked";
        "stun_permit" "*" Ignored "no STUN server is asked";
        "stun_deny" "*" Ignored "no STUN server is asked";
        "stun_blacklist" "*" Ignored "no STUN server is asked";
        "turnaddr" "" Later "no TURN server is asked";
        "turnusername" "*" Later "no TURN server is asked";
        "turnpassword" "*" Later "no TURN server is asked";
        "ice_acl" "*" Ignored "ICE is not built in";
        "ice_permit" "*" Ignored "ICE is not built in";
        "ice_deny" "*" Ignored "ICE is not built in";
        "ice_blacklist" "*" Ignored "ICE is not built in";
        "dtls_mtu" "1200" Later "DTLS is not built in";
        "nochecksums" "no" Ignored "rtpchecksums is its name";
        "rtp_pt_dynamic" "*" Ignored "it belongs to asterisk.conf [options]";
        "learning_min_sequential" "*" Ignored "probation is its name";
        "timeout" "*" Ignored "rtp_timeout of the endpoint is its name";
    }
}

impl Rtp {
    /// Interfaces that `media_interfaces` names.
    pub fn interfaces(&self) -> Vec<String> {
        let names = self.media_interfaces.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut rtp: Self = read_settings(file, "general", findings);
        let (start, end) = (rtp.rtpstart, rtp.rtpend);
        // A stream takes an even port for RTP and the next for RTCP.
        if start < 1024 || end <= start || start == u16::MAX - 1 {
            let place = rtp.origin.place_of("rtpstart").clone();
            let defaults = Self::default();
            (rtp.rtpstart, rtp.rtpend) = (defaults.rtpstart, defaults.rtpend);
            findings.warning(
                &place,
                format!("rtpstart={start} and rtpend={end} are no range of ports; 5000 to 31000 holds"),
                "write a range above 1023 with room for two ports a call leg, such as 10000 to 20000",
            );
        }
        if rtp.rtpstart % 2 == 1 {
            let place = rtp.origin.place_of("rtpstart").clone();
            findings.warning(
                &place,
                format!(
                    "rtpstart={} is odd, and RTP takes even ports: {} is the first",
                    rtp.rtpstart,
                    rtp.rtpstart + 1
                ),
                "write an even number",
            );
        }
        for section in
            file.objects().filter(|section| section.name.eq_ignore_ascii_case("ice_host_candidates"))
        {
            findings.warning(
                &section.place,
                "[ice_host_candidates] is not read: ICE is not built in",
                "remove it",
            );
        }
        rtp
    }
}
