//! Metrics in the text form of Prometheus. Those that Asterisk has bear Asterisk's names.

use std::fmt::Write as _;

use driver::iax::PeerState;
use io::clock::Clock;
use io::media::LATENESS_US;

use crate::site::{RecordLine, Site};

/// Version 0.0.4 of the text form.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Every metric: name, type and what it says, as `docs/metrics.md` lists them.
pub const METRICS: &[(&str, Kind, &str)] = &[
    ("asterisk_core_properties", Kind::Gauge, "Version of the process, as labels; always 1."),
    ("asterisk_core_uptime_seconds", Kind::Gauge, "Seconds since the process started."),
    ("asterisk_core_last_reload_seconds", Kind::Gauge, "Seconds since the configuration was read last."),
    ("asterisk_calls_count", Kind::Gauge, "Calls that are up."),
    ("asterisk_calls_sum", Kind::Counter, "Calls that entered the dialplan since the start."),
    ("asterisk_channels_count", Kind::Gauge, "Channels."),
    ("asterisk_bridges_count", Kind::Gauge, "Bridges."),
    ("asterisk_endpoints_count", Kind::Gauge, "Endpoints that are configured."),
    ("strowger_iax2_channels", Kind::Gauge, "IAX2 calls."),
    ("strowger_iax2_peers", Kind::Gauge, "IAX2 peers, by state: online, offline, unmonitored."),
    ("strowger_iax2_legs", Kind::Gauge, "IAX2 calls, registrations and pokes under way."),
    ("strowger_iax2_datagrams_total", Kind::Counter, "IAX2 datagrams, by direction."),
    ("strowger_iax2_discarded_total", Kind::Counter, "IAX2 datagrams thrown away, by reason."),
    (
        "strowger_iax2_numbers",
        Kind::Gauge,
        "IAX2 call numbers that are unique on their socket, by state: used and resting.",
    ),
    (
        "strowger_iax2_numbers_without_token",
        Kind::Gauge,
        "IAX2 call numbers that were given without a call token.",
    ),
    ("strowger_media_streams", Kind::Gauge, "Media streams that are open."),
    ("strowger_media_ports", Kind::Gauge, "Pairs of media ports, by state: used and free."),
    ("strowger_media_worker_streams", Kind::Gauge, "Media streams of a worker."),
    (
        "strowger_media_worker_seconds_total",
        Kind::Counter,
        "Seconds of a worker's life by phase; idle is sleep.",
    ),
    ("strowger_media_worker_cpu_seconds_total", Kind::Counter, "Processor time that a worker has used."),
    ("strowger_media_worker_tick_seconds", Kind::Gauge, "Length of a worker's tick at present."),
    ("strowger_media_packets_total", Kind::Counter, "Datagrams of a worker, by direction."),
    (
        "strowger_media_relayed_packets_total",
        Kind::Counter,
        "Packets that the kernel relayed, past the workers: each came and left.",
    ),
    ("strowger_media_kernel_relays", Kind::Gauge, "Bridges that the kernel relays."),
    ("strowger_media_kernel_relays_total", Kind::Counter, "Times that the kernel took over a bridge."),
    ("strowger_media_discarded_total", Kind::Counter, "Packets thrown away, by reason."),
    (
        "strowger_media_late_ticks_total",
        Kind::Counter,
        "Slots that a worker ran more than 20 ms late, or skipped.",
    ),
    ("strowger_media_panics_total", Kind::Counter, "Streams that were ended by a fault of their own."),
    ("strowger_media_tick_lateness_seconds", Kind::Histogram, "How late a worker's ticks were."),
    (
        "strowger_call_mos",
        Kind::Gauge,
        "Estimated opinion scores of what present calls hear: the least and the mean.",
    ),
    ("strowger_recordings", Kind::Gauge, "Recordings that are being written."),
    (
        "strowger_recordings_lost_seconds_total",
        Kind::Counter,
        "Seconds of sound that recordings lost because a disk is slow.",
    ),
    (
        "strowger_recordings_failed_total",
        Kind::Counter,
        "Recordings that ended because they could not be written.",
    ),
    ("strowger_turns_total", Kind::Counter, "Turns of the signalling loop."),
    ("strowger_ari_connections", Kind::Gauge, "Programs that hear events of the REST interface."),
    ("strowger_ari_channels", Kind::Gauge, "Channels that are in the hands of programs."),
    ("strowger_ari_requests_total", Kind::Counter, "Requests for the REST interface that were answered."),
    ("strowger_ari_events_total", Kind::Counter, "Events that were sent to programs."),
    ("strowger_call_records_total", Kind::Counter, "Call records that were handed to be written."),
    ("strowger_call_records_waiting", Kind::Gauge, "Call records that wait for a table of a database."),
    (
        "strowger_call_records_written_total",
        Kind::Counter,
        "Call records that a table of a database has taken.",
    ),
    (
        "strowger_call_records_refused_total",
        Kind::Counter,
        "Call records that a table of a database does not take, and that were set aside.",
    ),
    (
        "strowger_captured_total",
        Kind::Counter,
        "Copies of SIP messages, and reports of RTCP, that hep.conf sent to a capture server.",
    ),
    (
        "strowger_captured_lost_total",
        Kind::Counter,
        "Copies and reports that were lost: more came than could be sent, or the server has no address.",
    ),
    ("strowger_cache_objects", Kind::Gauge, "Objects of databases that are remembered, by cache."),
    (
        "strowger_cache_lookups_total",
        Kind::Counter,
        "Look-ups of objects of databases, by cache and by what answered: fresh, stale, away (past its lifetime, while the \
         database does not answer), waited (for the database), failed (nobody).",
    ),
    ("strowger_cache_away", Kind::Gauge, "1 while the database of a cache does not answer."),
    ("strowger_cache_queries_total", Kind::Counter, "Questions that a cache asked of its database."),
    ("strowger_cache_evicted_total", Kind::Counter, "Objects that a cache forgot for others."),
    ("strowger_database_connections", Kind::Gauge, "Connections to a database, by state: open and busy."),
    ("strowger_database_waiting", Kind::Gauge, "Queries that wait for a connection to a database."),
    (
        "strowger_database_queries_total",
        Kind::Counter,
        "Queries of a database, by outcome: answered and failed.",
    ),
    ("strowger_database_slow_total", Kind::Counter, "Queries of a database that took longer than its limit."),
    ("strowger_rows_waiting", Kind::Gauge, "Rows of registrations that wait to be written to databases."),
    ("strowger_rows_written_total", Kind::Counter, "Rows of registrations that were written to databases."),
    (
        "strowger_rows_lost_total",
        Kind::Counter,
        "Rows of registrations that were lost: too many waited, or a database refused them.",
    ),
    ("strowger_spans_total", Kind::Counter, "Spans of calls that opentelemetry.conf sent to a collector."),
    (
        "strowger_spans_lost_total",
        Kind::Counter,
        "Spans that were lost: more came than could be sent, or the collector took none.",
    ),
];

/// The types of the text form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
    /// Counts in buckets.
    Histogram,
}

impl Kind {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// What is written.
struct Page {
    out: String,
    /// Labels that all samples have, each with a comma after it.
    common: String,
    named: &'static str,
}

impl Page {
    /// The samples of a metric follow.
    fn metric(&mut self, name: &'static str) {
        if let Some((_, kind, help)) = METRICS.iter().find(|(known, ..)| *known == name) {
            let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        }
        self.named = name;
    }
    /// A sample; `suffix` is that of a histogram's parts.
    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let labels: String =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\",", escaped(value))).collect();
        let labels = format!("{}{labels}", self.common);
        let (name, labels) = (self.named, labels.trim_end_matches(','));
        let _ = match labels {
            "" => writeln!(self.out, "{name}{suffix} {value}"),
            _ => writeln!(self.out, "{name}{suffix}{{{labels}}} {value}"),
        };
    }
    fn single(&mut self, name: &'static str, value: f64) {
        self.metric(name);
        self.sample("", &[], value);
    }
}

/// A label's value: what would end it is escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Everything there is to say at this moment.
pub fn text(site: &Site) -> String {
    let snapshot = site.snapshot.borrow().clone();
    let id = &snapshot.asterisk.options.entityid;
    let common = if id.is_empty() { String::new() } else { format!("eid=\"{}\",", escaped(id)) };
    let mut page = Page { out: String::with_capacity(8 * 1024), common, named: "" };
    if snapshot.prometheus.core_metrics_enabled {
        core(site, &mut page);
    }
    calls(site, &mut page);
    iax2(site, &mut page);
    databases(site, &mut page);
    media(site, &mut page);
    let recorder = site.shard.core.borrow().services.recorder.state();
    page.single("strowger_recordings", recorder.running as f64);
    page.single("strowger_recordings_lost_seconds_total", recorder.lost_ms as f64 / 1000.0);
    page.single("strowger_recordings_failed_total", recorder.failed as f64);
    let counters = site.counters.get();
    page.single("strowger_turns_total", counters.turns as f64);
    {
        let ari = site.ari.borrow();
        page.single("strowger_ari_connections", ari.connected.len() as f64);
        page.single("strowger_ari_requests_total", ari.requests as f64);
        page.single("strowger_ari_events_total", ari.events as f64);
    }
    page.single("strowger_ari_channels", site.shard.core.borrow().stasis.channel_count() as f64);
    page.single("strowger_call_records_total", counters.records as f64);
    record_tables(site, &mut page);
    page.single("strowger_captured_total", counters.captured as f64);
    page.single("strowger_captured_lost_total", counters.capture_lost as f64);
    page.single("strowger_spans_total", counters.spans as f64);
    page.single("strowger_spans_lost_total", counters.spans_lost as f64);
    page.out
}

fn record_tables(site: &Site, page: &mut Page) {
    let tables = site.record_tables.borrow();
    let mut figure = |name: &'static str, of: fn(&RecordLine) -> u64| {
        page.metric(name);
        for table in tables.iter() {
            page.sample("", &[("table", &table.name)], of(table) as f64);
        }
    };
    figure("strowger_call_records_waiting", |table| table.waiting);
    figure("strowger_call_records_written_total", |table| table.written);
    figure("strowger_call_records_refused_total", |table| table.refused);
}

fn core(site: &Site, page: &mut Page) {
    let now = site.shard.core.borrow().now;
    page.metric("asterisk_core_properties");
    page.sample("", &[("version", crate::VERSION), ("build_kernel", std::env::consts::OS)], 1.0);
    page.single("asterisk_core_uptime_seconds", now.since(site.started).as_secs() as f64);
    page.single("asterisk_core_last_reload_seconds", now.since(site.reloaded.get()).as_secs() as f64);
}

fn calls(site: &Site, page: &mut Page) {
    let core = site.shard.core.borrow();
    page.single("asterisk_calls_count", core.call_count() as f64);
    page.single("asterisk_calls_sum", core.calls_processed as f64);
    page.single("asterisk_channels_count", core.channel_count() as f64);
    let mut bridges: Vec<_> = core.channels().filter_map(|channel| channel.bridge).collect();
    bridges.sort_unstable();
    bridges.dedup();
    page.single("asterisk_bridges_count", bridges.len() as f64);
    page.single("asterisk_endpoints_count", site.sip.borrow().config().endpoints.len() as f64);
    let scores: Vec<f64> = core
        .channels()
        .filter_map(|channel| {
            let stats = &channel.quality.as_deref()?.latest;
            let [heard, _] = call::paths(stats, channel.format);
            (stats.received_packets > 0).then(|| heard.score())
        })
        .collect();
    if !scores.is_empty() {
        page.metric("strowger_call_mos");
        page.sample("", &[("of", "least")], scores.iter().copied().fold(f64::INFINITY, f64::min));
        page.sample("", &[("of", "mean")], scores.iter().sum::<f64>() / scores.len() as f64);
    }
}

/// IAX2, where it is served.
fn iax2(site: &Site, page: &mut Page) {
    let iax = site.iax_sight.borrow();
    let Some(iax) = iax.as_ref().map(|iax| iax.borrow()) else { return };
    page.single("strowger_iax2_channels", iax.channels().len() as f64);
    let peers = iax.peers(None);
    let count = |wanted: fn(PeerState) -> bool| peers.iter().filter(|peer| wanted(peer.state)).count() as f64;
    page.metric("strowger_iax2_peers");
    let online = count(|state| matches!(state, PeerState::Ok(_) | PeerState::Lagged(_)));
    let unmonitored = count(|state| state == PeerState::Unmonitored);
    page.sample("", &[("state", "online")], online);
    page.sample("", &[("state", "offline")], peers.len() as f64 - online - unmonitored);
    page.sample("", &[("state", "unmonitored")], unmonitored);
    let stats = iax.stats();
    page.single("strowger_iax2_legs", stats.legs as f64);
    page.metric("strowger_iax2_datagrams_total");
    page.sample("", &[("direction", "received")], stats.received as f64);
    page.sample("", &[("direction", "sent")], stats.sent as f64);
    page.metric("strowger_iax2_discarded_total");
    for (reason, count) in &stats.discards {
        page.sample("", &[("reason", reason)], *count as f64);
    }
    let numbers = iax.numbers();
    page.metric("strowger_iax2_numbers");
    page.sample("", &[("state", "used")], numbers.shared_in_use as f64);
    page.sample("", &[("state", "resting")], numbers.shared_resting as f64);
    page.single("strowger_iax2_numbers_without_token", f64::from(numbers.without_token));
}

/// What is remembered of databases, and how they answer, where there are some.
fn databases(site: &Site, page: &mut Page) {
    let caches = site.caches.borrow().clone();
    let lines: Vec<_> = caches.iter().flat_map(|caches| caches.borrow().list()).collect();
    let each = |page: &mut Page, name, value: fn(&crate::site::CacheLine) -> f64| {
        page.metric(name);
        lines.iter().for_each(|line| page.sample("", &[("cache", &line.name)], value(line)));
    };
    if !lines.is_empty() {
        each(page, "strowger_cache_objects", |line| line.objects as f64);
        page.metric("strowger_cache_lookups_total");
        for line in &lines {
            for (by, count) in [
                ("fresh", line.hits),
                ("stale", line.stale_hits),
                ("away", line.away_hits),
                ("waited", line.waited),
                ("failed", line.failed),
            ] {
                page.sample("", &[("cache", &line.name), ("by", by)], count as f64);
            }
        }
        each(page, "strowger_cache_away", |line| f64::from(u8::from(line.is_away)));
        each(page, "strowger_cache_queries_total", |line| line.asked as f64);
        each(page, "strowger_cache_evicted_total", |line| line.evicted as f64);
    }
    let Some(databases) = site.databases.borrow().clone() else { return };
    let lines = databases.borrow().lines();
    page.metric("strowger_database_connections");
    for line in &lines {
        page.sample("", &[("database", &line.name), ("state", "open")], line.open as f64);
        page.sample("", &[("database", &line.name), ("state", "busy")], line.busy as f64);
    }
    page.metric("strowger_database_waiting");
    lines.iter().for_each(|line| page.sample("", &[("database", &line.name)], line.waiting as f64));
    page.metric("strowger_database_queries_total");
    for line in &lines {
        page.sample("", &[("database", &line.name), ("outcome", "answered")], line.answered as f64);
        page.sample("", &[("database", &line.name), ("outcome", "failed")], line.failed as f64);
    }
    page.metric("strowger_database_slow_total");
    lines.iter().for_each(|line| page.sample("", &[("database", &line.name)], line.slow as f64));
    let counters = site.counters.get();
    page.single("strowger_rows_waiting", counters.rows_waiting as f64);
    page.single("strowger_rows_written_total", counters.rows_written as f64);
    page.single("strowger_rows_lost_total", counters.rows_lost as f64);
}

/// Nanoseconds as seconds.
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn media(site: &Site, page: &mut Page) {
    let media = site.media.borrow();
    let loads = media.loads();
    let workers: Vec<_> = loads
        .workers()
        .zip(loads.sights(Clock.now()))
        .enumerate()
        .map(|(number, (load, sight))| (number.to_string(), load, sight))
        .collect();
    page.single("strowger_media_streams", f64::from(media.streams()));
    page.metric("strowger_media_ports");
    let (pairs, used) = (u32::from(media.ports().range().pairs()), media.ports().leased());
    page.sample("", &[("state", "used")], f64::from(used));
    page.sample("", &[("state", "free")], f64::from(pairs.saturating_sub(used)));
    page.metric("strowger_media_worker_streams");
    for (worker, load, _) in &workers {
        page.sample("", &[("worker", worker)], load.streams as f64);
    }
    page.metric("strowger_media_worker_seconds_total");
    for (worker, _, sight) in &workers {
        for (phase, nanos) in sight.parts() {
            page.sample("", &[("worker", worker), ("phase", phase)], seconds(nanos));
        }
    }
    page.metric("strowger_media_worker_cpu_seconds_total");
    for (worker, load, _) in &workers {
        page.sample("", &[("worker", worker)], seconds(load.cpu_nanos));
    }
    page.metric("strowger_media_worker_tick_seconds");
    for (worker, load, _) in &workers {
        page.sample("", &[("worker", worker)], load.tick_ms as f64 / 1e3);
    }
    page.metric("strowger_media_packets_total");
    for (worker, load, _) in &workers {
        page.sample("", &[("worker", worker), ("direction", "received")], load.received as f64);
        page.sample("", &[("worker", worker), ("direction", "sent")], load.sent as f64);
    }
    page.metric("strowger_media_discarded_total");
    let total = loads.total();
    for (reason, count) in total.discarded() {
        page.sample("", &[("reason", reason)], count as f64);
    }
    page.single("strowger_media_relayed_packets_total", total.relayed as f64);
    page.single("strowger_media_kernel_relays", total.relays as f64);
    page.single("strowger_media_kernel_relays_total", total.relays_begun as f64);
    page.single("strowger_media_late_ticks_total", total.late_ticks as f64);
    page.single("strowger_media_panics_total", total.panics as f64);
    page.metric("strowger_media_tick_lateness_seconds");
    for (worker, _, sight) in &workers {
        let mut below = 0;
        for (end, ticks) in LATENESS_US.iter().zip(sight.lateness.ticks) {
            below += ticks;
            let end = format!("{}", *end as f64 / 1e6);
            page.sample("_bucket", &[("worker", worker), ("le", &end)], below as f64);
        }
        let count = sight.lateness.count() as f64;
        page.sample("_bucket", &[("worker", worker), ("le", "+Inf")], count);
        page.sample("_sum", &[("worker", worker)], seconds(sight.lateness.sum_nanos));
        page.sample("_count", &[("worker", worker)], count);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::site::{CacheFault, CacheLine, CacheWish, Caches, DatabaseLine, DatabaseLines, ObjectLine};
    use crate::testing::{self, Folder, sip_config};
    use store::{Snapshot, Where};

    fn page(name: &str, asterisk: &str, prometheus: &str) -> String {
        let folder = Folder::new(&format!("metrics-{name}"));
        for (file, text) in [
            ("asterisk.conf", asterisk),
            ("prometheus.conf", prometheus),
            ("pjsip.conf", ""),
            ("extensions.conf", ""),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let (snapshot, _) = Snapshot::load(&Where::Dir(folder.to_path_buf())).unwrap();
        let mut world = testing::world("[default]\nexten => 1,1,Answer()\nsame => n,Wait(9)\n");
        let site = testing::site(&world, &folder, snapshot, sip_config());
        *site.iax_sight.borrow_mut() =
            Some(std::rc::Rc::new(std::cell::RefCell::new(testing::Iax::default())));
        let rows = std::rc::Rc::new(std::cell::RefCell::new(Rows));
        site.caches.borrow_mut().push(rows.clone());
        *site.databases.borrow_mut() = Some(rows);
        let location = call::Location { context: "default".into(), exten: "1".into(), priority: 1 };
        let id = world.incoming("6001", "<6001>", location.clone(), &[]);
        assert!(apps::pbx::start(&world.shard, id, location));
        world.run_until(world.now());
        let mut quality = call::Quality::default();
        quality.latest = base::StreamStats { received_packets: 100, ..Default::default() };
        site.shard.core.borrow_mut().get_mut(id).unwrap().quality = Some(Box::new(quality));
        text(&site)
    }

    /// A cache and a database.
    struct Rows;

    impl Caches for Rows {
        fn list(&self) -> Vec<CacheLine> {
            vec![CacheLine {
                name: "res_pjsip/endpoint".into(),
                objects: 3,
                maximum: 10,
                lifetime: None,
                stale: None,
                whole: false,
                is_away: true,
                hits: 1,
                stale_hits: 2,
                away_hits: 4,
                waited: 5,
                failed: 6,
                asked: 7,
                evicted: 8,
                in_flight: 0,
                waiting: 0,
            }]
        }
        fn objects(&self, _: &str, _: usize) -> Option<Vec<ObjectLine>> {
            None
        }
        fn change(&mut self, _: &str, _: Option<&str>, _: CacheWish) -> Result<(), CacheFault> {
            Err(CacheFault::NoCache)
        }
    }

    impl DatabaseLines for Rows {
        fn lines(&self) -> Vec<DatabaseLine> {
            vec![DatabaseLine {
                name: "phones".into(),
                driver: "mysql".into(),
                target: "localhost".into(),
                standing: "up".into(),
                open: 2,
                busy: 1,
                lent: 0,
                max: 4,
                waiting: 0,
                answered: 9,
                failed: 1,
                slow: 0,
            }]
        }
    }

    #[test]
    fn look_ups_are_told_apart_by_what_answered_them() {
        let page = page("caches", "", "[general]\nenabled=yes\n");
        for (by, count) in [("fresh", 1), ("stale", 2), ("away", 4), ("waited", 5), ("failed", 6)] {
            let line =
                format!("strowger_cache_lookups_total{{cache=\"res_pjsip/endpoint\",by=\"{by}\"}} {count}\n");
            assert!(page.contains(&line), "{line}{page}");
        }
    }

    /// The text form, read line by line as its specification says.
    #[test]
    fn every_metric_is_declared_once_before_its_samples_and_every_sample_is_a_number() {
        let page = page("form", "", "[general]\nenabled=yes\n");
        let (mut declared, mut current) = (BTreeSet::new(), String::new());
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(declared.insert(current.clone()), "{current} is declared twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(rest.starts_with(&format!("{current} ")), "{line}");
            } else {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let bare = name.split('{').next().unwrap();
                let bare = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|part| bare.strip_suffix(part).filter(|bare| *bare == current))
                    .unwrap_or(bare);
                assert_eq!(bare, current, "{line}");
                assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
                assert!(!name.contains('{') || name.ends_with("\"}"), "{line}");
            }
        }
        assert_eq!(
            declared,
            METRICS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            "all, and no others"
        );
        for line in [
            "asterisk_calls_count 1",
            "asterisk_calls_sum 1",
            "asterisk_channels_count 1",
            "asterisk_endpoints_count 2",
            "strowger_media_ports{state=\"free\"} 50",
            "strowger_media_worker_seconds_total{worker=\"0\",phase=\"decode\"} 0",
            "strowger_media_tick_lateness_seconds_bucket{worker=\"0\",le=\"0.001\"} 0",
            "strowger_media_tick_lateness_seconds_bucket{worker=\"0\",le=\"+Inf\"} 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
        assert!(page.contains("strowger_call_mos{of=\"least\"} 4.3"), "{page}");
    }

    #[test]
    fn the_identity_is_a_label_and_core_metrics_can_be_left_out() {
        let page =
            page("labels", "[options]\nentityid=00:11:22:33:44:55\n", "[general]\ncore_metrics_enabled=no\n");
        assert!(!page.contains("asterisk_core_"), "{page}");
        assert!(page.contains("\nasterisk_calls_count{eid=\"00:11:22:33:44:55\"} 1\n"), "{page}");
        assert!(page.contains("{eid=\"00:11:22:33:44:55\",worker=\"0\",direction=\"sent\"} 0"), "{page}");
    }

    #[test]
    fn what_would_end_a_label_is_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    /// After a change of the table: `UPDATE_DOCS=1 cargo test -p control metrics` writes the page anew.
    #[test]
    fn the_manual_lists_every_metric() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = page.split_once("<!-- metrics -->\n").unwrap();
        let (_, tail) = rest.split_once("<!-- end of metrics -->").unwrap();
        let rows: String = METRICS
            .iter()
            .map(|(name, kind, help)| format!("| `{name}` | {} | {help} |\n", kind.name()))
            .collect();
        let table = format!("\n| Metric | Type | |\n|---|---|---|\n{rows}\n");
        let written = format!("{head}<!-- metrics -->\n{table}<!-- end of metrics -->{tail}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, written).unwrap();
        } else {
            assert!(written == page, "docs/metrics.md is behind the table: set UPDATE_DOCS=1");
        }
    }
}
