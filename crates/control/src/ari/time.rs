//! Moments as programs read them.

use store::date::{Zone, format};

/// `2026-11-27T14:33:00.123+0000` of microseconds since the Unix epoch (ISO 8601, where the machine stands).
pub(super) fn stamp(micros: i64, zone: &Zone) -> String {
    let millis = micros.rem_euclid(1_000_000) / 1_000;
    format!("{}.{millis:03}{}", format(micros, zone, "%Y-%m-%dT%H:%M:%S"), format(micros, zone, "%z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_milliseconds_and_its_offset() {
        let text = stamp(1_795_790_103_123_999, &Zone::local());
        let (clock, offset) = text.split_at(23);
        assert!(clock.starts_with("2026-11-2") && clock.ends_with(":03.123"), "{text}");
        assert!(offset.len() == 5 && offset.starts_with(['+', '-']), "{text}");
        assert!(stamp(-1_000, &Zone::local()).contains(":59.999"), "{text}");
    }
}
