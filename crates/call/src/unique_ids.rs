//! UNIQUEIDs of channels: `[systemname-]epoch.serial`, none of which comes again after a restart.

/// Microseconds of a second that one serial number stands for at the start: readers expect five digits, and six after a
/// point would pass for the microseconds of an epoch.
const MICROS_A_SERIAL: u64 = 20;

/// Where the numbers are.
#[derive(Debug, Default)]
pub(crate) struct UniqueIds {
    /// The first second that is used.
    from: i64,
    serial: u64,
}

impl UniqueIds {
    /// Numbers of a process that began at this time.
    ///
    /// Its seconds begin after the one in which it was started: who was started in an earlier second and has ended has used
    /// none of them. Of two that were started within one second, the later one's serials lie ahead of what the earlier one
    /// can have used, which is less than a channel every 20 us.
    pub(crate) const fn begin(wall_micros: i64) -> Self {
        Self {
            from: wall_micros.div_euclid(1_000_000) + 1,
            serial: wall_micros.rem_euclid(1_000_000).unsigned_abs() / MICROS_A_SERIAL,
        }
    }
    pub(crate) fn next(&mut self, system: &str, wall_micros: i64) -> String {
        let (seconds, serial) = (wall_micros.div_euclid(1_000_000).max(self.from), self.serial);
        self.serial += 1;
        match system {
            "" => format!("{seconds}.{serial}"),
            system => format!("{system}-{seconds}.{serial}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_uniqueid_comes_again_however_soon_a_process_follows_another() {
        // Starts, in microseconds, of processes that each make a channel every 20 us until the next one starts.
        let cases: [(&str, &[i64]); 5] = [
            ("within a second", &[5_000_000, 5_000_020, 5_200_000, 5_999_980]),
            ("the first one has run for long", &[0, 5_300_000, 5_300_100]),
            ("at a second's end and begin", &[5_999_980, 6_000_000, 6_000_020]),
            ("a second later", &[5_400_000, 6_400_000, 7_400_000]),
            ("after the numbers of two seconds", &[1_000_000, 3_500_000, 3_900_000]),
        ];
        for (name, starts) in cases {
            let mut seen = HashSet::new();
            for (n, start) in starts.iter().enumerate() {
                let mut ids = UniqueIds::begin(*start);
                let end = starts.get(n + 1).copied().unwrap_or(start + 2_000_000);
                for at in (*start..end).step_by(MICROS_A_SERIAL as usize) {
                    let id = ids.next("", at);
                    assert!(seen.insert(id.clone()), "{name}: {id} of the process of {start}");
                }
            }
        }
    }

    #[test]
    fn a_uniqueid_is_an_epoch_and_a_serial_of_five_digits_after_the_systemname() {
        let mut ids = UniqueIds::begin(1_700_000_000_999_999);
        assert_eq!(ids.next("", 1_700_000_007_000_000), "1700000007.49999");
        assert_eq!(ids.next("pbx1", 1_700_000_007_000_000), "pbx1-1700000007.50000");
    }
}
