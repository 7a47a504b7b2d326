//! Measuring for benchmarks: CPU time, and results as `make bench` collects them.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread for the quickest of so many rounds, so that a busy machine disturbs little.
pub fn quickest(rounds: u32, mut round: impl FnMut()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    let one = |_| {
        let start = now();
        round();
        now().saturating_sub(start)
    };
    (0..rounds.max(1)).map(one).min().unwrap_or_default()
}

/// Something measured, and what it is compared with.
#[derive(Debug, Clone, Copy)]
pub struct Figure<'a> {
    /// As in `codec gsm encode avx512`.
    pub name: &'a str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'a str,
    /// The same of another, from the same run, and who that is.
    pub baseline: Option<(f64, &'a str)>,
}

impl Figure<'_> {
    /// Prints it, and writes it as JSON into the folder that `STROWGER_BENCH_DIR` names.
    pub fn publish(&self) {
        self.publish_with(&[]);
    }

    /// As [`publish`](Self::publish), with the same measured for other numbers of streams: what a picture is made of.
    pub fn publish_with(&self, points: &[(usize, f64)]) {
        let Self { name, value, unit, baseline } = *self;
        print!("{name:<44} {value:>10.2} {unit}");
        if let Some((other, other_name)) = baseline {
            print!(" {other:>10.2} ({other_name}), {:.2} times", other / value);
        }
        println!();
        for (streams, value) in points {
            println!("{streams:>46}: {value:>10.2} {unit}");
        }
        if let Some(folder) = std::env::var_os("STROWGER_BENCH_DIR") {
            let path = Path::new(&folder).join(format!("{}.json", name.replace(' ', "_")));
            if let Err(error) = std::fs::write(&path, self.json(points)) {
                eprintln!("{}: {error}", path.display());
            }
        }
    }

    fn json(&self, points: &[(usize, f64)]) -> String {
        let Self { name, value, unit, baseline } = *self;
        let compared = match baseline {
            Some((other, other_name)) => format!(
                r#""baseline": {other:.4}, "baseline_name": "{other_name}", "ratio": {:.4}"#,
                value / other
            ),
            None => r#""baseline": null, "baseline_name": null, "ratio": null"#.into(),
        };
        let pair = |(streams, value): &(usize, f64)| format!("[{streams}, {value:.4}]");
        let pairs: Vec<String> = points.iter().map(pair).collect();
        let points =
            if pairs.is_empty() { String::new() } else { format!(r#", "points": [{}]"#, pairs.join(", ")) };
        format!(r#"{{"name": "{name}", "value": {value:.4}, "unit": "{unit}", {compared}{points}}}"#) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time_and_waiting_for_another_takes_none_of_it() {
        let mut sum = 0u64;
        let took = quickest(3, || {
            for n in 0..200_000u64 {
                sum = std::hint::black_box(sum.wrapping_add(n));
            }
        });
        assert!(took > Duration::from_micros(10), "{took:?}");
    }

    #[test]
    fn a_figure_has_the_six_fields_that_the_collector_wants() {
        let figure =
            Figure { name: "codec gsm", value: 50.0, unit: "us/s", baseline: Some((500.0, "libgsm")) };
        assert_eq!(
            figure.json(&[]).trim(),
            r#"{"name": "codec gsm", "value": 50.0000, "unit": "us/s", "baseline": 500.0000, "baseline_name": "libgsm", "ratio": 0.1000}"#
        );
        let alone = Figure { baseline: None, ..figure }.json(&[]);
        assert!(alone.contains(r#""baseline": null, "baseline_name": null, "ratio": null"#), "{alone}");
        let many = figure.json(&[(1, 50.0), (640, 5.5)]);
        assert!(
            many.trim().ends_with(r#", "ratio": 0.1000, "points": [[1, 50.0000], [640, 5.5000]]}"#),
            "{many}"
        );
    }
}
