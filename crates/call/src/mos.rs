//! How good a listener would call what he hears: the E-model of ITU-T G.107, reduced to what an RTP receiver knows.
//!
//! With every default of G.107 (§7.7) but delay, loss and codec, R = 93.2 − Id − Ie,eff. Id is the delay impairment without
//! echo in the closed form of Cole and Rosenbluth ("Voice over IP performance monitoring", 2001); Ie,eff is G.107 §7.5 for
//! losses at random; the opinion score is G.107 Annex B. Narrowband: a wideband call that loses nothing scores as good as
//! G.711, not better.

use base::{Codec, FormatId};

/// R with all defaults of G.107 §7.7.
const BEST: f64 = 93.2;
/// Mouth-to-ear delay from which a conversation suffers, milliseconds.
const KNEE_MS: f64 = 177.3;

/// What a codec costs (Ie) and how well it bears loss (Bpl).
///
/// G.711, G.726, GSM, AMR at 12.2 kbit/s, G.729 and G.723.1: ITU-T G.113 Appendix I, where it has them; the other figures
/// are estimates of ours, by listening tests of the codec's own papers and by how its decoder conceals.
const fn impairment(codec: Codec) -> (f64, f64) {
    match codec {
        // Concealed by the last pitch period, as G.711 Appendix I does.
        Codec::Ulaw | Codec::Alaw => (0.0, 25.1),
        Codec::G726 | Codec::G726Aal2 => (7.0, 20.0),
        Codec::Gsm => (20.0, 10.0),
        Codec::Amr => (5.0, 10.0),
        Codec::G729 => (11.0, 19.0),
        Codec::G723 => (15.0, 16.1),
        Codec::Slin | Codec::G722 | Codec::Siren7 | Codec::Siren14 => (0.0, 25.1),
        Codec::AmrWb | Codec::Opus => (0.0, 16.0),
        Codec::Ilbc20 => (10.0, 32.0),
        Codec::Ilbc30 => (12.0, 32.0),
        Codec::Speex => (11.0, 16.0),
        Codec::Adpcm => (10.0, 20.0),
        Codec::Codec2 => (40.0, 10.0),
        Codec::Lpc10 => (50.0, 10.0),
        // Nothing is heard of it.
        Codec::Picture => (0.0, 25.1),
    }
}

/// One direction of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// The format on the wire.
    pub format: FormatId,
    /// Share of packets that are not heard, 0 to 1.
    pub loss: f64,
    /// From mouth to ear, milliseconds.
    pub delay_ms: f64,
}

impl Path {
    /// The rating factor R, 0 to 93.2.
    pub fn rating(&self) -> f64 {
        let delay = self.delay_ms.max(0.0);
        let impaired = 0.024 * delay + 0.11 * (delay - KNEE_MS).max(0.0);
        let (equipment, robustness) = impairment(self.format.codec());
        let percent = self.loss.clamp(0.0, 1.0) * 100.0;
        let effective = equipment + (95.0 - equipment) * percent / (percent + robustness);
        (BEST - impaired - effective).max(0.0)
    }
    /// The estimated mean opinion score, 1 (bad) to 4.4 (as good as a telephone gets).
    pub fn score(&self) -> f64 {
        let r = self.rating();
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g107_annex_b_a_perfect_call_scores_4_41_and_impairments_only_lower_it() {
        let path = |format, loss, delay_ms| Path { format, loss, delay_ms };
        for (name, path, rating, score) in [
            ("nothing wrong", path(FormatId::ULAW, 0.0, 0.0), 93.2, 4.41),
            ("150 ms", path(FormatId::ULAW, 0.0, 150.0), 89.6, 4.33),
            ("400 ms", path(FormatId::ULAW, 0.0, 400.0), 59.1, 3.05),
            ("1 % lost", path(FormatId::ALAW, 0.01, 0.0), 89.56, 4.33),
            ("5 % lost", path(FormatId::ALAW, 0.05, 0.0), 77.42, 3.92),
            ("G.729, G.113 table I.1", path(FormatId::G729, 0.0, 0.0), 82.2, 4.10),
            ("G.726, G.113 table I.1", path(FormatId::G726, 0.0, 0.0), 86.2, 4.24),
            ("GSM full rate", path(FormatId::GSM, 0.0, 0.0), 73.2, 3.74),
            ("all lost", path(FormatId::GSM, 1.0, 0.0), 5.0, 1.0),
            ("a minute late", path(FormatId::ULAW, 0.0, 60_000.0), 0.0, 1.0),
        ] {
            assert!((path.rating() - rating).abs() < 0.05, "{name}: R {}", path.rating());
            assert!((path.score() - score).abs() < 0.006, "{name}: MOS {}", path.score());
        }
    }

    #[test]
    fn a_score_never_rises_with_loss_or_delay_and_stays_on_its_scale() {
        for &format in FormatId::ALL {
            let scores = |make: &dyn Fn(u32) -> Path| (0..=100).map(|n| make(n).score()).collect::<Vec<_>>();
            let by_loss = scores(&|n| Path { format, loss: f64::from(n) / 100.0, delay_ms: 20.0 });
            let by_delay = scores(&|n| Path { format, loss: 0.01, delay_ms: f64::from(n) * 10.0 });
            for scores in [by_loss, by_delay] {
                assert!(scores.windows(2).all(|pair| pair[1] <= pair[0]), "{format}: {scores:?}");
                assert!(scores.iter().all(|score| (1.0..=4.5).contains(score)), "{format}: {scores:?}");
            }
        }
    }
}
