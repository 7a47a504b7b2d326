//! Spans to a collector: OTLP/JSON over HTTP, from a thread of its own.
//!
//! The shard hands finished spans over and goes on. What does not fit the queue, and what the collector does not take, is
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use base::PageWant;
use io::web::Client;
use serde_json::{Value, json};
use store::config::telemetry::Telemetry;

use super::Span;

/// Most spans that wait for the thread: those of 500 calls, as many as begin in a second on a busy system.
pub(crate) const WAITING_MAX: usize = 8_192;
/// Most spans of one request; the default of other exporters.
const BATCH_MAX: usize = 512;
/// How long spans wait for company.
const BATCH_WITHIN: Duration = Duration::from_secs(1);
/// How long the collector may take to let us in, and to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often a batch is offered, the pause doubling from the first, before it is given up.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What became of the spans.
#[derive(Debug, Default)]
struct Shared {
    sent: AtomicU64,
    lost: AtomicU64,
}

/// The shard's end.
pub(crate) struct Exporter {
    spans: Option<SyncSender<Span>>,
    shared: Arc<Shared>,
    trouble: Receiver<String>,
    done: Receiver<()>,
}

/// Why a batch was not taken.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    why: String,
    /// It may be taken later.
    passes: bool,
}

impl Exporter {
    /// Starts the thread.
    pub(crate) fn start(wanted: &Telemetry) -> std::io::Result<Self> {
        let (spans, queue) = sync_channel(WAITING_MAX);
        let (tell, trouble) = channel();
        let (end, done) = channel();
        let shared = Arc::new(Shared::default());
        let resource = resource(&wanted.general.service_name);
        let mut sender = Sender {
            wanted: wanted.clone(),
            client: Client::default(),
            resource,
            shared: shared.clone(),
            tell,
            refuses: false,
        };
        std::thread::Builder::new().name("otlp".into()).spawn(move || {
            sender.run(&queue);
            // Nobody waits any more when the process does not end.
            let _ = end.send(());
        })?;
        Ok(Self { spans: Some(spans), shared, trouble, done })
    }
    /// Hands a span over; with a full queue it is lost and counted.
    pub(crate) fn send(&self, span: Span) {
        if self.spans.as_ref().is_none_or(|spans| spans.try_send(span).is_err()) {
            self.lost(1);
        }
    }
    /// Counts spans that were lost before they came here.
    pub(crate) fn lost(&self, count: u64) {
        self.shared.lost.fetch_add(count, Ordering::Relaxed);
    }
    /// Spans that the collector took, and those that it did not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.sent.load(Ordering::Relaxed), self.shared.lost.load(Ordering::Relaxed))
    }
    /// What keeps spans from the collector, once for each time it begins, and once when it is over.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }
    /// Sends what waits, for so long at most. For the end of the process.
    pub(crate) fn finish(&mut self, within: Duration) {
        self.spans = None;
        let _ = self.done.recv_timeout(within);
    }
}

struct Sender {
    wanted: Telemetry,
    client: Client,
    resource: Value,
    shared: Arc<Shared>,
    tell: std::sync::mpsc::Sender<String>,
    /// The collector took nothing the last time.
    refuses: bool,
}

impl Sender {
    /// Sends batches until the queue's other end is gone and nothing waits.
    fn run(&mut self, queue: &Receiver<Span>) {
        while let Ok(first) = queue.recv() {
            let until = Instant::now() + BATCH_WITHIN;
            let mut batch = vec![first];
            let mut is_last = false;
            while batch.len() < BATCH_MAX {
                match queue.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(span) => batch.push(span),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        is_last = true;
                        break;
                    }
                }
            }
            self.offer(&batch, is_last);
        }
    }
    /// Offers a batch until it is taken or given up; at the end of the process once.
    fn offer(&mut self, batch: &[Span], is_last: bool) {
        let body = body(&self.resource, batch).to_string();
        let mut pause = FIRST_PAUSE;
        for left in (0..TRIES).rev() {
            match self.post(&body) {
                Ok(rejected) => {
                    let rejected = rejected.min(batch.len() as u64);
                    self.shared.sent.fetch_add(batch.len() as u64 - rejected, Ordering::Relaxed);
                    self.shared.lost.fetch_add(rejected, Ordering::Relaxed);
                    if std::mem::take(&mut self.refuses) {
                        let text = format!("{} takes traces again", self.wanted.general.endpoint);
                        let _ = self.tell.send(text);
                    }
                    return;
                }
                Err(refused) => {
                    if !std::mem::replace(&mut self.refuses, true) {
                        let text = format!(
                            "{} takes no traces: {}; spans are lost until it does: see that a collector of OTLP over \
                             HTTP runs there",
                            self.wanted.general.endpoint, refused.why
                        );
                        let _ = self.tell.send(text);
                    }
                    if left == 0 || is_last || !refused.passes {
                        break;
                    }
                    std::thread::sleep(pause);
                    pause *= 2;
                }
            }
        }
        self.shared.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }
    /// One request; the spans of it that the collector rejects.
    fn post(&mut self, body: &str) -> Result<u64, Refused> {
        let Telemetry { url, general } = &self.wanted;
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("User-Agent".to_owned(), concat!("strowger/", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        if !general.authorization.is_empty() {
            let value: String = general.authorization.expose().chars().filter(|c| !c.is_control()).collect();
            headers.push(("Authorization".to_owned(), value));
        }
        let want = PageWant {
            url: url.clone(),
            headers,
            body: Some(body.to_owned()),
            redirects: 0,
            resolve_within: ANSWER_WITHIN,
            connect_within: ANSWER_WITHIN,
            within: ANSWER_WITHIN,
            verify: true,
            proxy: String::new(),
        };
        let answer = self.client.fetch(&want).map_err(|why| Refused { why, passes: true })?;
        judged(answer.status, &answer.body)
    }
}

/// What an answer says: the spans that were rejected (OTLP 1.5, "partial success"), or why none was taken.
fn judged(status: u16, body: &[u8]) -> Result<u64, Refused> {
    match status {
        200..=299 => {
            let said = serde_json::from_slice::<Value>(body).ok();
            let rejected = said.as_ref().and_then(|said| said.pointer("/partialSuccess/rejectedSpans"));
            // 64 bits are a text in the JSON of protobuf; some write a number.
            Ok(rejected.map_or(0, |count| match count {
                Value::String(text) => text.parse().unwrap_or(0),
                count => count.as_u64().unwrap_or(0),
            }))
        }
        // Those that OTLP names retryable.
        _ => Err(Refused {
            why: format!("it answers {status}"),
            passes: matches!(status, 429 | 502 | 503 | 504),
        }),
    }
}

fn resource(service: &str) -> Value {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let attributes = [
        ("service.name", service),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("host.name", host.trim()),
        ("process.pid", &std::process::id().to_string()),
    ];
    json!({ "attributes": attributes.map(|(key, value)| attribute(key, value)) })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// `SPAN_KIND_INTERNAL` and `STATUS_CODE_ERROR` of OTLP.
const INTERNAL: u8 = 1;
const ERROR: u8 = 2;

/// The body of a request (`ExportTraceServiceRequest`).
fn body(resource: &Value, batch: &[Span]) -> Value {
    let nanos = |micros: i64| format!("{}", i128::from(micros.max(0)) * 1_000);
    let spans: Vec<Value> = batch
        .iter()
        .map(|span| {
            let attributes: Vec<Value> =
                span.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
            let events: Vec<Value> = span
                .events
                .iter()
                .map(|(at, name)| json!({ "timeUnixNano": nanos(*at), "name": name }))
                .collect();
            let parent = if span.parent == 0 { String::new() } else { format!("{:016x}", span.parent) };
            json!({
                "traceId": format!("{:032x}", span.trace),
                "spanId": format!("{:016x}", span.id),
                "parentSpanId": parent,
                "name": span.name,
                "kind": INTERNAL,
                "startTimeUnixNano": nanos(span.begin),
                "endTimeUnixNano": nanos(span.end),
                "attributes": attributes,
                "events": events,
                "status": if span.failed { json!({ "code": ERROR }) } else { json!({}) },
            })
        })
        .collect();
    let scope = json!({ "name": "strowger", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    fn span(id: u64) -> Span {
        Span {
            trace: 0xABC,
            id,
            parent: 0,
            name: "call".into(),
            begin: 1_763_762_068_250_001,
            end: 1_763_762_070_000_000,
            attributes: vec![("channel", "PJSIP/a\"b".into())],
            events: vec![(1_763_762_069_000_000, "up")],
            failed: true,
        }
    }

    /// A collector that gives these answers, one a connection, and the bodies that came.
    fn collector(answers: &'static [&'static str]) -> (Telemetry, Receiver<(String, Value)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut bytes = Vec::new();
                let mut buffer = [0; 4096];
                let (head, body) = loop {
                    let length = stream.read(&mut buffer).unwrap();
                    assert!(length > 0, "a request ends early");
                    bytes.extend_from_slice(&buffer[..length]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let head = head.to_lowercase();
                    let said = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                    if body.len() >= said.parse::<usize>().unwrap() {
                        break (head, body.to_owned());
                    }
                };
                stream.write_all(answer.as_bytes()).unwrap();
                tell.send((head, serde_json::from_str(&body).unwrap())).unwrap();
            }
        });
        let general = store::config::telemetry::TelemetryGeneral::default();
        (Telemetry { url: format!("http://127.0.0.1:{port}/v1/traces"), general }, told)
    }

    #[test]
    fn spans_are_otlp_json_with_hexadecimal_ids_and_times_in_nanoseconds() {
        let (wanted, told) = collector(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]);
        let mut exporter = Exporter::start(&wanted).unwrap();
        exporter.send(span(0x17));
        exporter.send(Span { parent: 0x17, failed: false, events: Vec::new(), ..span(0x18) });
        exporter.finish(Duration::from_secs(60));
        let (head, body) = told.recv().unwrap();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/json") && !head.contains("authorization"), "{head}");
        let spans = body.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap();
        assert_eq!(
            spans[0],
            json!({
                "traceId": "00000000000000000000000000000abc", "spanId": "0000000000000017", "parentSpanId": "",
                "name": "call", "kind": 1,
                "startTimeUnixNano": "1763762068250001000", "endTimeUnixNano": "1763762070000000000",
                "attributes": [{ "key": "channel", "value": { "stringValue": "PJSIP/a\"b" } }],
                "events": [{ "timeUnixNano": "1763762069000000000", "name": "up" }],
                "status": { "code": 2 }
            })
        );
        assert_eq!(
            (&spans[1]["parentSpanId"], &spans[1]["status"]),
            (&json!("0000000000000017"), &json!({}))
        );
        let service = body.pointer("/resourceSpans/0/resource/attributes/0").unwrap();
        assert_eq!(service, &attribute("service.name", "strowger"));
        assert_eq!(exporter.counts(), (2, 0));
    }

    #[test]
    fn what_a_collector_answers_is_judged_as_otlp_says() {
        let refused = |status, passes| Err(Refused { why: format!("it answers {status}"), passes });
        for (status, body, expected) in [
            (200, "", Ok(0)),
            (202, "{}", Ok(0)),
            (200, "{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", Ok(3)),
            (200, "{\"partialSuccess\":{\"rejectedSpans\":2}}", Ok(2)),
            (429, "", refused(429, true)),
            (503, "", refused(503, true)),
            (400, "", refused(400, false)),
            (301, "", refused(301, false)),
        ] {
            assert_eq!(judged(status, body.as_bytes()), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_batch_that_is_refused_for_good_is_counted_and_told_once_until_one_is_taken() {
        let refusal = "HTTP/1.1 400 Bad Request\r\n\r\n";
        let taken = "HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}";
        let answers: &[&str] = Box::leak(Box::new([refusal, refusal, taken]));
        let (mut wanted, told) = collector(answers);
        wanted.general.authorization = store::config::Secret::new("Bearer x");
        let mut exporter = Exporter::start(&wanted).unwrap();
        for number in 1..=3 {
            exporter.send(span(number));
            let (head, _) = told.recv().unwrap();
            assert!(head.contains("\r\nauthorization: bearer x"), "{head}");
        }
        exporter.finish(Duration::from_secs(60));
        assert_eq!(exporter.counts(), (0, 3));
        let lines: Vec<String> = std::iter::from_fn(|| exporter.trouble()).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("it answers 400") && lines[1].ends_with("takes traces again"), "{lines:?}");
    }

    #[test]
    fn with_a_full_queue_spans_are_lost_and_counted_and_nobody_waits() {
        // Takes connections and never answers.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let general = store::config::telemetry::TelemetryGeneral::default();
        let wanted = Telemetry { url: format!("http://127.0.0.1:{port}/"), general };
        let exporter = Exporter::start(&wanted).unwrap();
        let sent = (WAITING_MAX + 2 * BATCH_MAX) as u64;
        (0..sent).for_each(|number| exporter.send(span(number)));
        let (taken, lost) = exporter.counts();
        assert_eq!(taken, 0);
        assert!((BATCH_MAX as u64..=2 * BATCH_MAX as u64).contains(&lost), "{lost}");
    }
}
