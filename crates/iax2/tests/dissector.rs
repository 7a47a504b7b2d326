//! What tshark's dissector, written by others, reads in the frames that are written here.

mod common;

use base::{Digit, FormatId};
use common::dissect;
use iax2::frame::{
    Auth, Command, Control, Element, Entry, Full, Kind, Media, Mini, Video, write_element, write_preferences,
    write_trunk_entry, write_trunk_header,
};

fn full(kind: Kind, elements: &[Element<'_>]) -> Vec<u8> {
    let mut data = Vec::new();
    elements.iter().for_each(|element| write_element(element, &mut data));
    let mut out = Vec::new();
    Full { source: 4660, dest: 801, again: false, timestamp: 70_000, oseq: 5, iseq: 6, kind, data: &data }
        .write(&mut out);
    out
}

#[test]
fn tshark_reads_every_kind_of_frame_as_it_was_meant() {
    let ulaw = Media::of(FormatId::ULAW).unwrap();
    let mut mini = Vec::new();
    Mini { source: 4660, timestamp: 513, data: &[0xff; 160] }.write(&mut mini);
    let mut video = Vec::new();
    Video { source: 4660, timestamp: 513, mark: true, data: &[1; 50] }.write(&mut video);
    let mut trunk = Vec::new();
    write_trunk_header(70_000, true, &mut trunk);
    write_trunk_entry(&Entry { source: 4660, timestamp: Some(513), data: &[0xff; 160] }, &mut trunk);
    write_trunk_entry(&Entry { source: 4661, timestamp: Some(514), data: &[0xff; 160] }, &mut trunk);
    let mut voice = full(Kind::Voice(ulaw), &[]);
    voice.extend_from_slice(&[0xff; 160]);
    // Numbers, timestamp, sequence, type; then the subclass of its kind, the trunk's calls and the packet's type.
    let rows = [
        ("NEW", full(Kind::Iax(Command::NEW), &[Element::Version(2)]), "4660|801|70000|5|6|6|1|||||1|"),
        ("ACK", full(Kind::Iax(Command::ACK), &[]), "4660|801|70000|5|6|6|4|||||1|"),
        ("ANSWER", full(Kind::Control(Control::ANSWER), &[]), "4660|801|70000|5|6|4||4||||1|"),
        ("voice", voice, "4660|801|70000|5|6|2|||4|||1|"),
        ("digit", full(Kind::DigitEnd(Digit::from_char('7').unwrap()), &[]), "4660|801|70000|5|6|1||||7||1|"),
        ("mini", mini, "4660||513|||||||||0|"),
        ("video", video, "4660||513|||||||||2|"),
        ("trunk", trunk, "||70000||||||||4660,4661|3|"),
    ];
    let datagrams: Vec<_> = rows.iter().map(|(_, datagram, _)| datagram.clone()).collect();
    let fields = [
        "iax2.src_call",
        "iax2.dst_call",
        "iax2.timestamp",
        "iax2.oseqno",
        "iax2.iseqno",
        "iax2.type",
        "iax2.iax.subclass",
        "iax2.control.subclass",
        "iax2.voice.codec",
        "iax2.dtmf.subclass",
        "iax2.trunk.call.scallno",
        "iax2.packet_type",
    ];
    let Some(lines) = dissect("frames", &datagrams, &fields) else { return };
    for ((name, _, expected), line) in rows.iter().zip(&lines) {
        assert_eq!(line, expected, "{name}");
    }
}

#[test]
fn tshark_reads_every_element_that_it_knows_as_it_was_meant() {
    let mut letters = Vec::new();
    write_preferences(&[FormatId::ALAW, FormatId::ULAW], &mut letters);
    let rows = [
        ("iax2.iax.called_number", Element::CalledNumber(b"100"), "100"),
        ("iax2.iax.calling_number", Element::CallingNumber(b"200"), "200"),
        ("iax2.iax.calling_ani", Element::CallingAni(b"201"), "201"),
        ("iax2.iax.calling_name", Element::CallingName(b"Bob"), "Bob"),
        ("iax2.iax.called_context", Element::CalledContext(b"in"), "in"),
        ("iax2.iax.username", Element::Username(b"bob"), "bob"),
        ("iax2.iax.language", Element::Language(b"en"), "en"),
        ("iax2.iax.dnid", Element::Dnid(b"100"), "100"),
        ("iax2.iax.auth.methods", Element::AuthMethods(Auth::MD5), "0x0002"),
        ("iax2.iax.auth.challenge", Element::Challenge(b"12345"), "12345"),
        ("iax2.iax.auth.md5", Element::Md5Result(b"abcdef"), "abcdef"),
        ("iax2.iax.auth.rsa", Element::RsaResult(b"c2ln"), "c2ln"),
        ("iax2.iax.app_addr.sinaddr", Element::ApparentAddr("10.1.2.3:4569".parse().unwrap()), "10.1.2.3"),
        ("iax2.iax.refresh", Element::Refresh(60), "60"),
        ("iax2.iax.dialplan_status", Element::DpStatus(1), "0x0001"),
        ("iax2.iax.call_no", Element::CallNumber(77), "77"),
        ("iax2.iax.cause", Element::Cause(b"No such"), "No such"),
        ("iax2.iax.msg_count", Element::MessageCount(258), "258"),
        ("iax2.iax.transferid", Element::TransferId(5456), "0x00001550"),
        ("iax2.iax.rdnis", Element::Rdnis(b"300"), "300"),
        ("iax2.iax.callingpres", Element::CallingPresentation(1), "0x01"),
        ("iax2.iax.callington", Element::CallingTon(16), "0x10"),
        ("iax2.iax.callingtns", Element::CallingTns(0), "0x0000"),
        ("iax2.iax.causecode", Element::CauseCode(16), "0x10"),
        ("iax2.iax.encryption", Element::Encryption(1), "0x0001"),
        ("iax2.iax.codecprefs", Element::CodecPrefs(&letters), "ED"),
        ("iax2.iax.rrjitter", Element::RrJitter(3), "0x00000003"),
        ("iax2.iax.rrpkts", Element::RrPackets(4000), "0x00000fa0"),
        ("iax2.iax.rrdelay", Element::RrDelay(60), "0x003c"),
        ("iax2.iax.format", Element::Format(4), "4"),
        ("iax2.iax.capability2", Element::Capability2(Media(12)), "0x000000000000000c"),
    ];
    let datagrams: Vec<_> =
        rows.iter().map(|(_, element, _)| full(Kind::Iax(Command::NEW), &[*element])).collect();
    let fields: Vec<_> = rows.iter().map(|(field, ..)| *field).collect();
    let Some(lines) = dissect("elements", &datagrams, &fields) else { return };
    for (at, ((field, _, expected), line)) in rows.iter().zip(&lines).enumerate() {
        let cells: Vec<_> = line.split('|').collect();
        assert_eq!(cells[at], *expected, "{field}");
        assert_eq!(cells.last(), Some(&""), "{field} without a mark");
    }
}
