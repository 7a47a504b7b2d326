//! What the media plane measures of itself: where its time goes, how late it is, how good calls sound.

use std::fmt::Write as _;

use io::clock::Clock;
use io::media::{LATENESS_US, WorkerLoad, WorkerSight};
use serde_json::{Map, Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show};

pub(super) const ROWS: &[Row] = &[
    show(
        "media show workers",
        "Shows where each media worker's time goes, and how late its ticks are.",
        "workers [streams tick_ms busy_permille cpu_ns phases_ns recent_permille late_p50_us late_p99_us late_p999_us \
         late_most_us ticks_within ticks_beyond]",
        Cli::media_show_workers,
    )
    .detail(
        "Shares are of the last second, lateness is since the start: below how many microseconds half of the ticks, 99 and \
         99.9 % of them lay, and the worst.\nphases_ns counts since the start; ticks_within counts ticks by the microseconds \
         that they did not pass.",
    ),
    show(
        "rtp show stats",
        "Shows loss, jitter, delay and estimated opinion score of each call's audio, as of its last RTCP report.",
        "channels [name format seconds received lost late jitter buffer_ms mos rating sent peer_lost peer_jitter peer_mos \
         peer_rating round_trip]",
        Cli::rtp_show_stats,
    )
    .detail("The opinion score is that of the E-model (ITU-T G.107): 4.4 is perfect, 3.6 annoys many, 1 is useless."),
];

/// Names and values, as an object.
fn object(pairs: impl Iterator<Item = (&'static str, u64)>) -> Value {
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>())
}

fn worker_json(load: &WorkerLoad, sight: &WorkerSight) -> Value {
    let late = &sight.lateness;
    let within = LATENESS_US.iter().zip(late.ticks).map(|(end, ticks)| (end.to_string(), Value::from(ticks)));
    json!({
        "streams": load.streams, "tick_ms": load.tick_ms, "busy_permille": load.busy_permille,
        "cpu_ns": load.cpu_nanos, "phases_ns": object(sight.parts()), "recent_permille": object(sight.recent_parts()),
        "late_p50_us": late.quantile_us(500), "late_p99_us": late.quantile_us(990),
        "late_p999_us": late.quantile_us(999), "late_most_us": late.most_nanos / 1000,
        "ticks_within": within.collect::<Map<_, _>>(), "ticks_beyond": late.ticks.last(),
    })
}

fn workers_text(workers: &[(WorkerLoad, WorkerSight)]) -> String {
    let mut out = format!("{:>6} {:>7} {:>5}", "Worker", "Streams", "Tick");
    for (name, _) in WorkerSight::default().recent_parts() {
        let _ = write!(out, " {name:>8}");
    }
    let _ = writeln!(out, " {:>8} {:>8} {:>8} {:>9}", "late p50", "p99", "p99.9", "most");
    for (number, (load, sight)) in workers.iter().enumerate() {
        let _ = write!(out, "{number:>6} {:>7} {:>3}ms", load.streams, load.tick_ms);
        for (_, permille) in sight.recent_parts() {
            let _ = write!(out, " {:>8}", format!("{}.{}%", permille / 10, permille % 10));
        }
        let most = LATENESS_US.last().copied().unwrap_or(0);
        let late = |permille| match sight.lateness.quantile_us(permille) {
            Some(us) => format!("{us}us"),
            None if sight.lateness.count() == 0 => "-".to_owned(),
            None => format!(">{most}us"),
        };
        let worst = format!("{}us", sight.lateness.most_nanos / 1000);
        let _ = writeln!(out, " {:>8} {:>8} {:>8} {worst:>9}", late(500), late(990), late(999));
    }
    out
}

impl Cli {
    fn media_show_workers(&self, ask: &mut Ask<'_>) -> Said {
        let loads = self.site.media.borrow().loads();
        let workers: Vec<(WorkerLoad, WorkerSight)> =
            loads.workers().zip(loads.sights(Clock.now())).collect();
        let data = || {
            let rows: Vec<Value> = workers.iter().map(|(load, sight)| worker_json(load, sight)).collect();
            json!({ "workers": rows })
        };
        ask.show(data, || workers_text(&workers))
    }

    fn rtp_show_stats(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let mut rows: Vec<(&call::Channel, base::StreamStats)> =
            core.channels().filter_map(|c| Some((c, c.quality.as_deref()?.latest))).collect();
        rows.sort_by_key(|(c, _)| c.id);
        let age = |c: &call::Channel| core.now.since(c.answered.unwrap_or(core.now)).as_secs();
        let round = |value: f64| (value * 100.0).round() / 100.0;
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(c, stats)| {
                    let [heard, told] = call::paths(stats, c.format);
                    json!({
                        "name": &*c.name, "format": c.format.name(), "seconds": age(c),
                        "received": stats.received_packets, "lost": stats.lost_packets, "late": stats.late_packets,
                        "jitter": call::seconds(stats.jitter_us), "buffer_ms": stats.buffer_ms,
                        "mos": round(heard.score()), "rating": round(heard.rating()), "sent": stats.sent_packets,
                        "peer_lost": stats.peer_lost_packets, "peer_jitter": call::seconds(stats.peer_jitter_us),
                        "peer_mos": round(told.score()), "peer_rating": round(told.rating()),
                        "round_trip": call::seconds(stats.round_trip_us),
                    })
                })
                .collect();
            json!({ "channels": rows })
        };
        let text = || {
            let mut out = format!(
                "{:<32} {:<7} {:>8} {:>6} {:>6} {:>7} {:>6} {:>5} {:>8} {:>6} {:>7} {:>5} {:>7}\n",
                "Channel",
                "Format",
                "Received",
                "Lost",
                "Late",
                "Jitter",
                "Buffer",
                "MOS",
                "Sent",
                "Lost",
                "Jitter",
                "MOS",
                "RTT"
            );
            let ms = |us: u32| format!("{:.1}ms", f64::from(us) / 1e3);
            for (c, stats) in &rows {
                let [heard, told] = call::paths(stats, c.format);
                let _ = writeln!(
                    out,
                    "{:<32} {:<7} {:>8} {:>6} {:>6} {:>7} {:>4}ms {:>5.2} {:>8} {:>6} {:>7} {:>5.2} {:>7}",
                    clean(&c.name),
                    c.format.name(),
                    stats.received_packets,
                    stats.lost_packets,
                    stats.late_packets,
                    ms(stats.jitter_us),
                    stats.buffer_ms,
                    heard.score(),
                    stats.sent_packets,
                    stats.peer_lost_packets,
                    ms(stats.peer_jitter_us),
                    told.score(),
                    ms(stats.round_trip_us),
                );
            }
            let _ = writeln!(out, "{} channel{}", rows.len(), super::text::s(rows.len()));
            out
        };
        ask.show(data, text)
    }
}
