//! What one INVITE costs to parse and its 200 OK to write, beside a published SIP crate in the same process.
//!
//! `cargo bench -p sip --bench parse` prints the figures and writes one JSON object a file to `$STROWGER_BENCH_DIR`, or to
//! `bench` in the target directory. The time is the fastest of many batches, which a busy machine disturbs least.
#![allow(
    clippy::disallowed_types,
    reason = "a bench measures real time; the crate it measures never reads a clock"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use base::{FormatId, FormatSet};
use bytes::Bytes;
use sip::digest::{Algorithm, Authenticator, Credentials, Gate, Login, Secret};
use sip::sdp::{Local, Negotiator};
use sip::{HeaderName, Index, Message, MessageWriter, Reply, Status};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, and it is passed on as it came.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, and it is passed on as it came.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps `realloc`'s contract, and it is passed on as it came.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const SDP: &str = "v=0\r\no=alice 3724394400 3724394405 IN IP4 192.0.2.101\r\ns=call\r\nc=IN IP4 192.0.2.101\r\nt=0 0\r\n\
    m=audio 49172 RTP/AVP 0 8 9 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:9 G722/8000\r\n\
    a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n";

/// 17 headers, two of them Via, and the description above.
fn invite() -> Vec<u8> {
    let head = "INVITE sip:+12015550123@pbx.example.com;user=phone SIP/2.0\r\n\
        Via: SIP/2.0/UDP proxy.example.com:5060;branch=z9hG4bK776asdhdsKJhf7s6.1;received=192.0.2.1\r\n\
        Via: SIP/2.0/UDP 192.0.2.101:5062;branch=z9hG4bKnashds8lkjhgfd;rport=5062\r\n\
        Record-Route: <sip:proxy.example.com;lr;ftag=1928301774>\r\n\
        Max-Forwards: 69\r\n\
        From: \"Alice Example\" <sip:alice@example.com>;tag=1928301774\r\n\
        To: <sip:+12015550123@pbx.example.com;user=phone>\r\n\
        Call-ID: a84b4c76e66710-8d7f6a5b4c3d2e1f@192.0.2.101\r\n\
        CSeq: 314159 INVITE\r\n\
        Contact: <sip:alice@192.0.2.101:5062;transport=udp>;+sip.instance=\"<urn:uuid:00000000>\"\r\n\
        Allow: INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, REFER, NOTIFY\r\n\
        Supported: replaces, timer, 100rel\r\n\
        Session-Expires: 1800;refresher=uac\r\n\
        Min-SE: 90\r\n\
        User-Agent: Example Phone 7960/8.12.0 (build 20261101; en)\r\n\
        Accept: application/sdp\r\n\
        Content-Type: application/sdp\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{SDP}", SDP.len()).into_bytes()
}

/// Nanoseconds and allocations of one call of `work`.
fn measure(mut work: impl FnMut()) -> (f64, f64) {
    const BATCH: u32 = 2_000;
    const BATCHES: u32 = 300;
    work();
    let mut fastest = f64::MAX;
    let before = ALLOCATIONS.load(Relaxed);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BATCH {
            work();
        }
        fastest = fastest.min(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    let allocations = ALLOCATIONS.load(Relaxed) - before;
    (fastest, allocations as f64 / f64::from(BATCH * BATCHES))
}

fn routing(message: &Message<'_>) -> usize {
    let via = message.top_via().map_or(0, |via| usize::from(via.has_magic_cookie()));
    let from = message.from().map_or(0, |from| from.uri.user.len() + from.tag().map_or(0, <[u8]>::len));
    let to = message.to().map_or(0, |to| to.uri.user.len());
    let contact = message.contact().map_or(0, |contact| usize::from(contact.uri.port.unwrap_or(0)));
    let cseq = message.cseq().map_or(0, |cseq| cseq.number as usize);
    via + from
        + to
        + contact
        + cseq
        + message.call_id().map_or(0, <[u8]>::len)
        + usize::from(message.max_forwards().unwrap_or(0))
}

fn ours_parse(invite: &[u8]) -> (f64, f64) {
    let mut index = Index::new();
    measure(|| {
        let message = Message::parse(black_box(invite), &mut index).expect("a good INVITE");
        black_box(routing(&message));
    })
}

fn theirs_parse(invite: &Bytes) -> (f64, f64) {
    use sipx_sip::headers::{CSeq, CallId, ContactValue, From, MaxForwards, To, Via};
    measure(|| {
        let message = sipx_sip::parse_datagram(black_box(invite.clone()), &sipx_sip::Limits::datagram());
        let Ok(sipx_sip::Message::Request(request)) = message else { panic!("a good INVITE") };
        let headers = &request.headers;
        black_box((
            headers.typed::<Via>(),
            headers.typed::<From>(),
            headers.typed::<To>(),
            headers.typed::<CallId>(),
            headers.typed::<CSeq>(),
            headers.typed::<ContactValue>(),
            headers.typed::<MaxForwards>(),
        ));
    })
}

const CONTACT: &str = "<sip:192.0.2.1:5060>";
const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, REFER, NOTIFY, PRACK, REGISTER";

fn ours_write(invite: &[u8]) -> (f64, f64) {
    let mut index = Index::new();
    let request = Message::parse(invite, &mut index).expect("a good INVITE");
    let mut out = Vec::new();
    measure(|| {
        let reply = Reply { to_tag: Some(b"as5d1c2f7e"), ..Reply::default() };
        let mut writer = MessageWriter::response(black_box(&mut out), &request, Status::OK, &reply);
        writer.header(HeaderName::Contact, CONTACT).header(HeaderName::Allow, ALLOW);
        writer.body("application/sdp", SDP.as_bytes());
        black_box(out.len());
    })
}

fn theirs_write(invite: &Bytes) -> (f64, f64) {
    use sipx_sip::{HeaderName, ResponseBuilder, StatusCode};
    let parsed = sipx_sip::parse_datagram(invite.clone(), &sipx_sip::Limits::datagram());
    let Ok(sipx_sip::Message::Request(request)) = parsed else { panic!("a good INVITE") };
    let status = StatusCode::new(200).expect("200 is a status");
    let to = Bytes::from_static(b"<sip:+12015550123@pbx.example.com;user=phone>;tag=as5d1c2f7e");
    let mut out = Vec::new();
    measure(|| {
        let mut builder = ResponseBuilder::to_request(black_box(&request), status, Bytes::from_static(b"OK"))
            .and_then(|b| b.set_header(&HeaderName::To, to.clone()))
            .expect("a good response");
        for route in request.headers.get_all(&HeaderName::RecordRoute) {
            let value = Bytes::copy_from_slice(route.raw_value());
            builder = builder.header(HeaderName::RecordRoute, value).expect("a good header");
        }
        let response = builder
            .header(HeaderName::Contact, Bytes::from_static(CONTACT.as_bytes()))
            .and_then(|b| b.header(HeaderName::Allow, Bytes::from_static(ALLOW.as_bytes())))
            .and_then(|b| b.header(HeaderName::ContentType, Bytes::from_static(b"application/sdp")))
            .expect("good headers")
            .body(Bytes::from_static(SDP.as_bytes()))
            .build();
        out.clear();
        response.write_to(&mut out);
        black_box(out.len());
    })
}

fn answer_sdp() -> (f64, f64) {
    let formats: FormatSet = [FormatId::ULAW, FormatId::ALAW].into_iter().collect();
    let local = Local::new(formats, [192, 0, 2, 1].into(), 10_000);
    let mut out = Vec::new();
    measure(|| {
        out.clear();
        let agreed = Negotiator::new(77).answer(black_box(SDP.as_bytes()), &local, &mut out);
        black_box(agreed.is_ok());
    })
}

fn verify_digest(algorithm: Algorithm) -> (f64, f64) {
    let gate = Gate::new([7; 32], std::time::Duration::from_secs(300));
    let mut challenge = b"SIP/2.0 401 Unauthorized\r\nWWW-Authenticate: ".to_vec();
    gate.challenge(base::Instant::ZERO, b"asterisk", algorithm, false, &[192, 0, 2, 1], &mut challenge);
    challenge.extend_from_slice(b"\r\n\r\n");
    let mut index = Index::new();
    let response = Message::parse(&challenge, &mut index).expect("a good response");
    let secret = Secret::Password(b"a long enough secret");
    let login = Login { realm: None, username: b"alice", secret, algorithms: &[] };
    let mut phone = Authenticator::new();
    phone.challenged(&response, &[login]);
    let mut value = Vec::new();
    phone.credentials(b"REGISTER", b"sip:pbx", b"0a4f113b", &[login], |_, text| value = text.to_vec());
    measure(|| {
        let credentials = Credentials::parse(black_box(&value)).expect("good credentials");
        let now = base::Instant::ZERO;
        black_box(gate.verify(&credentials, b"REGISTER", b"asterisk", Some(secret), now));
    })
}

fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("STROWGER_BENCH_DIR") {
        return folder.into();
    }
    // The executable lies in <target>/<profile>/deps.
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).unwrap_or(Path::new("target")).join("bench")
}

fn report(name: &str, value: f64, unit: &str, baseline: Option<(f64, &str)>) {
    let (number, baseline_name) = baseline.unwrap_or((0.0, ""));
    let ratio = if number > 0.0 { value / number } else { 0.0 };
    println!("{name:24} {value:10.3} {unit:12} {baseline_name:32} {number:10.3} ratio {ratio:.3}");
    let optional = |present: bool, text: String| if present { text } else { "null".to_owned() };
    let there = baseline.is_some();
    let json = format!(
        "{{\"name\":\"{name}\",\"value\":{value:.4},\"unit\":\"{unit}\",\"baseline\":{},\"baseline_name\":{},\"ratio\":{}}}\n",
        optional(there, format!("{number:.4}")),
        optional(there, format!("\"{baseline_name}\"")),
        optional(there && number > 0.0, format!("{ratio:.4}")),
    );
    let folder = folder();
    let path = folder.join(format!("{name}.json"));
    if let Err(error) = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, json)) {
        eprintln!("{}: {error}", path.display());
    }
}

fn main() {
    let invite = invite();
    let shared = Bytes::from(invite.clone());
    println!("INVITE of {} bytes", invite.len());
    let crate_name = "sipx-sip 1.0.1, same process";
    let (ours, allocations) = ours_parse(&invite);
    let (theirs, their_allocations) = theirs_parse(&shared);
    report("sip_parse_invite", ours / 1000.0, "us", Some((theirs / 1000.0, crate_name)));
    report("sip_parse_invite_allocs", allocations, "allocations", Some((their_allocations, crate_name)));
    let (ours, allocations) = ours_write(&invite);
    let (theirs, their_allocations) = theirs_write(&shared);
    report("sip_write_200", ours / 1000.0, "us", Some((theirs / 1000.0, crate_name)));
    report("sip_write_200_allocs", allocations, "allocations", Some((their_allocations, crate_name)));
    let (ours, allocations) = answer_sdp();
    report("sip_sdp_answer", ours / 1000.0, "us", None);
    report("sip_sdp_answer_allocs", allocations, "allocations", None);
    for (name, algorithm) in [("sip_digest_md5", Algorithm::Md5), ("sip_digest_sha256", Algorithm::Sha256)] {
        report(name, verify_digest(algorithm).0 / 1000.0, "us", None);
    }
}
