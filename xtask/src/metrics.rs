//! Lengths of source files: watch the 95th percentile and the longest, not the median.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::sources::File;

/// A table of one line a crate and one for all.
pub fn report(files: &[File]) -> String {
    let mut crates: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for file in files {
        let name = file.path.strip_prefix("crates/").unwrap_or(&file.path).split('/').next().unwrap_or("");
        let length = (file.lines(), file.path.as_str());
        crates.entry(name).or_default().push(length);
        crates.entry("(all)").or_default().push(length);
    }
    let mut table = format!(
        "{:<12} {:>6} {:>8} {:>6} {:>6} {:>6}  longest\n",
        "crate", "files", "lines", "p50", "p95", "max"
    );
    for (name, mut lengths) in crates {
        lengths.sort_unstable();
        let at = |percent| percentile(&lengths, percent);
        let sum: usize = lengths.iter().map(|(lines, _)| lines).sum();
        let (max, longest) = at(100);
        let (count, p50, p95) = (lengths.len(), at(50).0, at(95).0);
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{name:<12} {count:>6} {sum:>8} {p50:>6} {p95:>6} {max:>6}  {longest}");
    }
    table
}

/// The smallest entry that at least `percent` of all do not exceed.
fn percentile<'a>(sorted: &[(usize, &'a str)], percent: usize) -> (usize, &'a str) {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or((0, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lengths_that_exist() {
        let files: Vec<File> = (1..=20)
            .map(|lines| File { path: format!("crates/a/src/{lines}.rs"), text: "x\n".repeat(lines) })
            .collect();
        let report = report(&files);
        let row: Vec<&str> = report.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row, ["a", "20", "210", "10", "19", "20", "crates/a/src/20.rs"]);
    }
}
