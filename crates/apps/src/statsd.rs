//! `StatsD`: the dialplan tells a server of statistics.

use call::Level;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "StatsD" "app_statsd" Run::Now(statsd),
        "Tells the server of statsd.conf a figure.", "StatsD(metric_type,statistic_name,value[,sample_rate])",
        "metric_type  g (gauge), c (counter), s (set) or ms (timer, milliseconds).\n\
         statistic_name  name, behind the prefix of statsd.conf.\n\
         value  a whole number; with + or - before it a gauge goes up or down by it, and a counter counts so many.\n\
         A set takes any word.\n\
         sample_rate  more than 0, at most 1: so often it is sent, with the rate, so that the server can make up for the rest.\n\n\
         What is wrong is logged and not sent.";
};

/// Longest name or value, bytes: with both a line fits a datagram on every net.
const TEXT_MAX: usize = 256;

/// The line that says it; `Err` is what is wrong.
fn line(kind: &str, name: &str, value: &str, rate: &str) -> Result<(String, f64), String> {
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.len() <= TEXT_MAX
            && !text.chars().any(|c| c.is_control() || "|@:".contains(c))
    };
    if !is_plain(name) {
        return Err(format!("'{name}' is no name of a statistic: it has |, @ or :, is empty or too long"));
    }
    let (sign, digits) = match value.strip_prefix(['+', '-']) {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let is_number =
        !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let fits = match kind {
        "g" | "c" => is_number,
        "ms" => is_number && !sign,
        "s" => is_plain(value),
        _ => return Err(format!("'{kind}' is no type: write g, c, s or ms")),
    };
    if !fits {
        return Err(format!("'{value}' is no value of type {kind}"));
    }
    let number = if rate.is_empty() { 1.0 } else { rate.parse().unwrap_or(0.0) };
    if !(number > 0.0 && number <= 1.0) {
        return Err(format!("'{rate}' is no sample rate: more than 0, at most 1"));
    }
    let at = if number < 1.0 { format!("|@{number}") } else { String::new() };
    Ok((format!("{name}:{value}|{kind}{at}"), number))
}

fn statsd(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index).trim();
    match line(part(0), part(1), part(2), part(3)) {
        Ok((line, rate)) => call.chan.core(|core| {
            // 2^53: the numbers that a fraction has room for.
            let drawn = (core.random() >> 11) as f64 / (1_u64 << 53) as f64;
            if core.statistics.is_told && drawn < rate {
                core.statistics.lines.push(line);
            }
        }),
        Err(why) => call.log(Level::Warning, &format!("StatsD: {why}")),
    }
    Ok(Flow::Continue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_line_or_told_to_be_none() {
        for (kind, name, value, rate, expected) in [
            ("g", "calls", "5", "", Ok("calls:5|g")),
            ("g", "calls", "-5", "1", Ok("calls:-5|g")),
            ("c", "in.tries", "+1", "0.25", Ok("in.tries:+1|c|@0.25")),
            ("ms", "wait", "320", "0.5", Ok("wait:320|ms|@0.5")),
            ("s", "callers", "alice smith", "", Ok("callers:alice smith|s")),
            ("ms", "wait", "-1", "", Err("'-1' is no value of type ms")),
            ("g", "calls", "1.5", "", Err("'1.5' is no value of type g")),
            ("c", "calls", "", "", Err("'' is no value of type c")),
            ("m", "calls", "1", "", Err("'m' is no type: write g, c, s or ms")),
            (
                "g",
                "a|b",
                "1",
                "",
                Err("'a|b' is no name of a statistic: it has |, @ or :, is empty or too long"),
            ),
            ("s", "callers", "a\nb:1|c", "", Err("'a\nb:1|c' is no value of type s")),
            ("g", "calls", "1", "2", Err("'2' is no sample rate: more than 0, at most 1")),
            ("g", "calls", "1", "nan", Err("'nan' is no sample rate: more than 0, at most 1")),
        ] {
            let got = line(kind, name, value, rate).map(|(line, _)| line);
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{kind} {name} {value} {rate}");
        }
    }
}
