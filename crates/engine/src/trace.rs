//! The trace of media packets as lines of the log, in the words that people search for.

use call::{Core, Level};
use io::media::{Carried, Noted, Traced};

pub(crate) fn write(core: &mut Core, noted: &Noted) {
    for packet in &noted.packets {
        core.log(Level::Verbose(0), "res_rtp_asterisk", &line(packet));
    }
    if noted.missed > 0 {
        let text = format!("{} more packets were moved and are not shown: too many at once", noted.missed);
        core.log(Level::Verbose(0), "res_rtp_asterisk", &text);
    }
}

fn line(packet: &Traced) -> String {
    let Traced { sent, peer, carried, length } = *packet;
    match carried {
        Carried::Rtp { payload_type, sequence, timestamp } => {
            let what = if sent { "Sent RTP packet to     " } else { "Got  RTP packet from   " };
            format!(
                "{what} {peer} (type {payload_type:02}, seq {sequence:06}, ts {timestamp:06}, len {length:06})"
            )
        }
        Carried::Rtcp if sent => format!("Sent RTCP report of {length} bytes to {peer}"),
        Carried::Rtcp => format!("Got RTCP report of {length} bytes from {peer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_a_line_as_asterisk_writes_it() {
        let peer = "192.0.2.1:4000".parse().unwrap();
        let carried = Carried::Rtp { payload_type: 0, sequence: 1, timestamp: 160 };
        for (sent, carried, expected) in [
            (
                true,
                carried,
                "Sent RTP packet to      192.0.2.1:4000 (type 00, seq 000001, ts 000160, len 000160)",
            ),
            (
                false,
                carried,
                "Got  RTP packet from    192.0.2.1:4000 (type 00, seq 000001, ts 000160, len 000160)",
            ),
            (true, Carried::Rtcp, "Sent RTCP report of 160 bytes to 192.0.2.1:4000"),
            (false, Carried::Rtcp, "Got RTCP report of 160 bytes from 192.0.2.1:4000"),
        ] {
            assert_eq!(line(&Traced { sent, peer, carried, length: 160 }), expected);
        }
    }
}
