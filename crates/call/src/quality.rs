//! How good a channel's audio was: the totals of its stream, and how they went from one RTCP report to the next.

use core::time::Duration;

use base::{FormatId, Instant, StreamStats};

use crate::mos::Path;

/// Least, greatest, mean and deviation of a value that came again and again.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Series {
    count: u32,
    least: f64,
    greatest: f64,
    mean: f64,
    squares: f64,
    latest: f64,
}

impl Series {
    /// Takes one more value (Welford's method).
    pub fn add(&mut self, value: f64) {
        (self.least, self.greatest) =
            if self.count == 0 { (value, value) } else { (self.least.min(value), self.greatest.max(value)) };
        self.count = self.count.saturating_add(1);
        self.latest = value;
        let distance = value - self.mean;
        self.mean += distance / f64::from(self.count);
        self.squares += distance * (value - self.mean);
    }
    /// The one that came last; 0 without any.
    pub const fn latest(&self) -> f64 {
        self.latest
    }
    /// Whether a value has come.
    pub const fn is_known(&self) -> bool {
        self.count > 0
    }
    /// The least; 0 without any.
    pub const fn least(&self) -> f64 {
        self.least
    }
    /// The greatest.
    pub const fn greatest(&self) -> f64 {
        self.greatest
    }
    /// The mean.
    pub const fn mean(&self) -> f64 {
        self.mean
    }
    /// The standard deviation of all values that came.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 { 0.0 } else { (self.squares / f64::from(self.count)).sqrt() }
    }
}

/// The quality of one channel's audio. Times are seconds, losses packets of one report's interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quality {
    /// Totals, as they were told last.
    pub latest: StreamStats,
    /// When that was.
    latest_at: Instant,
    /// Jitter of what we receive.
    pub jitter: Series,
    /// Packets that did not reach us.
    pub lost: Series,
    /// Jitter that the peer reports.
    pub peer_jitter: Series,
    /// Loss that the peer reports.
    pub peer_lost: Series,
    /// How good what we hear is, 0 to 100.
    pub experience: Series,
    /// The same of what the peer hears, by its reports.
    pub peer_experience: Series,
    /// Round trip; intervals without a measurement do not count.
    pub round_trip: Series,
    reported: StreamStats,
}

impl Quality {
    /// The variables that tell of it at the end of a call.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("RTPAUDIOQOS", all(self)),
            ("RTPAUDIOQOSJITTER", all_jitter(self)),
            ("RTPAUDIOQOSLOSS", all_loss(self)),
            ("RTPAUDIOQOSRTT", all_rtt(self)),
            ("RTPAUDIOQOSMES", all_mes(self)),
        ]
    }
    /// Takes totals that were asked for.
    pub(crate) fn told(&mut self, stats: StreamStats, now: Instant) {
        (self.latest, self.latest_at) = (stats, now);
    }
    /// Takes the totals of an RTCP report.
    pub(crate) fn report(&mut self, stats: StreamStats, now: Instant) {
        let lost = |now: u32, before: u32| f64::from(now.saturating_sub(before));
        self.jitter.add(seconds(stats.jitter_us));
        self.lost.add(lost(stats.lost_packets, self.reported.lost_packets));
        self.peer_jitter.add(seconds(stats.peer_jitter_us));
        self.peer_lost.add(lost(stats.peer_lost_packets, self.reported.peer_lost_packets));
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let share = |lost: f64, came: f64| if lost > 0.0 { lost / (lost + came) } else { 0.0 };
        let own = share(
            lost(stats.lost_packets, self.reported.lost_packets),
            since(stats.received_packets, self.reported.received_packets),
        );
        self.experience.add(experience(stats.round_trip_us, stats.jitter_us, own));
        if stats.round_trip_us > 0 || stats.peer_jitter_us > 0 || stats.peer_lost_packets > 0 {
            let lost = lost(stats.peer_lost_packets, self.reported.peer_lost_packets);
            let sent = since(stats.sent_packets, self.reported.sent_packets);
            let share = if sent > 0.0 { (lost / sent).min(1.0) } else { 0.0 };
            self.peer_experience.add(experience(stats.round_trip_us, stats.peer_jitter_us, share));
        }
        if stats.round_trip_us > 0 {
            self.round_trip.add(seconds(stats.round_trip_us));
        }
        (self.latest, self.latest_at, self.reported) = (stats, now, stats);
    }
}

/// Reports of RTCP bring totals about every five seconds; those of a younger call have not come.
const REPORTS_WITHIN: Duration = Duration::from_secs(6);

/// Whether totals have to be asked for to be known when the call ends: those of a young call, and those that no reports bring.
pub(crate) fn is_to_be_asked(answered: Instant, known: Option<&Quality>, now: Instant) -> bool {
    let is_over = |since: Instant| since + REPORTS_WITHIN <= now;
    !is_over(answered) || known.is_none_or(|known| is_over(known.latest_at))
}

/// How good a listener would call what he hears, 0 to 100: twenty times the opinion score of G.107 Annex B, with a rating from
/// delay and loss alone, as the field reckons it (its "media experience score"). `loss` is a share, 0 to 1.
fn experience(round_trip_us: u32, jitter_us: u32, loss: f64) -> f64 {
    let delay_ms = f64::from(round_trip_us) / 1e3 + 2.0 * f64::from(jitter_us) / 1e3 + 10.0;
    let late = if delay_ms < 160.0 { delay_ms / 40.0 } else { (delay_ms - 120.0) / 10.0 };
    let rating = (93.2 - late - loss * 250.0).clamp(0.0, 100.0);
    20.0 * (1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6)
}

/// All at a glance. In the field `tx` is what we find and `rx` what the peer reports, the other way round than in the spreads.
pub fn all(quality: &Quality) -> String {
    let stats = &quality.latest;
    format!(
        "ssrc={};themssrc={};lp={};rxjitter={:.6};rxcount={};txjitter={:.6};txcount={};rlp={};rtt={:.6};\
         rxmes={:.6};txmes={:.6}",
        stats.ssrc,
        stats.peer_ssrc,
        stats.lost_packets,
        seconds(stats.peer_jitter_us),
        stats.received_packets,
        seconds(stats.jitter_us),
        stats.sent_packets,
        stats.peer_lost_packets,
        seconds(stats.round_trip_us),
        quality.peer_experience.latest(),
        quality.experience.latest(),
    )
}

/// `minX=…;maxX=…;avgX=…;stdevX=…;`, with as many blanks before each as the field has.
fn spread(prefix: &str, what: &str, series: &Series) -> String {
    format!(
        "{prefix}min{what}={:010.6};{prefix}max{what}={:010.6};{prefix}avg{what}={:010.6};{prefix}stdev{what}={:010.6};",
        series.least(),
        series.greatest(),
        series.mean(),
        series.deviation()
    )
}
/// Jitter both ways, over all reports.
pub fn all_jitter(quality: &Quality) -> String {
    spread("", "rxjitter", &quality.jitter) + &spread("", "txjitter", &quality.peer_jitter)
}
/// Loss both ways.
pub fn all_loss(quality: &Quality) -> String {
    spread("  ", "rxlost", &quality.lost) + &spread("  ", "txlost", &quality.peer_lost)
}
/// The round trip.
pub fn all_rtt(quality: &Quality) -> String {
    spread("     ", "rtt", &quality.round_trip)
}
/// How good it was both ways.
pub fn all_mes(quality: &Quality) -> String {
    spread("   ", "rxmes", &quality.experience) + &spread("   ", "txmes", &quality.peer_experience)
}

/// Milliseconds of audio that a packet holds, where nobody says otherwise.
const PACKET_MS: f64 = 20.0;

/// What of a direction can be told from its totals: that of the peer's voice to us, and that of ours to the peer.
///
/// From mouth to ear are one packet, half of the round trip, and the jitter buffer at the end: ours as it stands, one of
/// the peer's, or of a relay's other end, as twice the jitter, which is the least that it can do with.
pub fn paths(stats: &StreamStats, format: FormatId) -> [Path; 2] {
    let path = |lost: u64, of: u64, jitter_us: u32, buffer_ms: u32| {
        let buffer = f64::from(buffer_ms).max(2.0 * f64::from(jitter_us) / 1e3);
        Path {
            format,
            loss: lost as f64 / of.max(1) as f64,
            delay_ms: PACKET_MS + f64::from(stats.round_trip_us) / 2e3 + buffer,
        }
    };
    let (lost, late) = (u64::from(stats.lost_packets), u64::from(stats.late_packets));
    [
        path(lost + late, lost + stats.received_packets, stats.jitter_us, stats.buffer_ms),
        path(u64::from(stats.peer_lost_packets), stats.sent_packets, stats.peer_jitter_us, 0),
    ]
}

/// Microseconds as seconds.
pub fn seconds(micros: u32) -> f64 {
    f64::from(micros) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_knows_its_ends_its_mean_and_its_deviation() {
        let mut series = Series::default();
        assert_eq!(
            (series.least(), series.greatest(), series.mean(), series.deviation()),
            (0.0, 0.0, 0.0, 0.0)
        );
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| series.add(value));
        assert_eq!((series.least(), series.greatest(), series.mean()), (2.0, 9.0, 5.0));
        assert!((series.deviation() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn experience_is_that_of_the_field() {
        for (name, round_trip_us, jitter_us, loss, expected) in [
            ("nothing wrong", 0, 0, 0.0, 88.087_887),
            ("a long way", 300_000, 0, 0.0, 77.0),
            ("much lost", 0, 0, 0.2, 44.3),
            ("all lost", 0, 0, 1.0, 20.0),
        ] {
            let found = experience(round_trip_us, jitter_us, loss);
            assert!(
                (found - expected).abs() < if loss + f64::from(round_trip_us) == 0.0 { 1e-6 } else { 3.0 },
                "{name}: {found}"
            );
        }
    }

    #[test]
    fn late_packets_are_lost_too_and_a_peer_is_taken_to_have_the_buffer_that_it_needs() {
        let stats = StreamStats {
            received_packets: 970,
            lost_packets: 30,
            late_packets: 20,
            buffer_ms: 40,
            jitter_us: 4000,
            sent_packets: 500,
            peer_lost_packets: 5,
            peer_jitter_us: 15_000,
            round_trip_us: 100_000,
            ..StreamStats::default()
        };
        let [heard, told] = paths(&stats, FormatId::GSM);
        assert_eq!((heard.loss, heard.delay_ms), (0.05, 20.0 + 50.0 + 40.0));
        assert_eq!((told.loss, told.delay_ms), (0.01, 20.0 + 50.0 + 30.0));
        let [heard, told] = paths(&StreamStats::default(), FormatId::ULAW);
        assert_eq!((heard.loss, told.loss), (0.0, 0.0), "a stream without packets has lost none");
    }

    #[test]
    fn losses_are_those_of_an_interval_and_an_unknown_round_trip_does_not_count() {
        let mut quality = Quality::default();
        for (lost_packets, round_trip_us) in [(3, 0), (3, 20_000), (10, 40_000)] {
            quality
                .report(StreamStats { lost_packets, round_trip_us, ..StreamStats::default() }, Instant::ZERO);
        }
        assert_eq!((quality.lost.least(), quality.lost.greatest()), (0.0, 7.0));
        assert_eq!((quality.round_trip.least(), quality.round_trip.mean()), (0.02, 0.03));
    }

    #[test]
    fn totals_are_asked_for_where_no_report_has_told_them() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        // Seconds: when it was answered, when totals came last, now.
        for (case, answered, told, now, asked) in [
            ("a young call", 100, None, 101, true),
            ("a young call that was asked", 100, Some(104), 105, true),
            ("reports have come", 100, Some(105), 110, false),
            ("no reports come", 100, Some(105), 111, true),
            ("nothing is known", 100, None, 200, true),
        ] {
            let known = told.map(|told| {
                let mut quality = Quality::default();
                quality.told(StreamStats::default(), at(told));
                quality
            });
            assert_eq!(is_to_be_asked(at(answered), known.as_ref(), at(now)), asked, "{case}");
        }
    }
}
