//! Formats and the ways between them.

use std::fmt::Write as _;

use base::{Coded, Coding, FormatId};
use io::media::{Path, Paths, SECONDS_MAX};
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Finished, Row, Said, show};
use crate::site::ExternalLine;

pub(super) const ROWS: &[Row] = &[
    show(
        "core show codecs [audio|video|image]",
        "Lists formats, and who codes them.",
        "codecs [id type name format description rate rtp_name payload coding]",
        Cli::core_show_codecs,
    )
    .also(&["show codecs"])
    .detail(
        "coding (with --json): lanes, native, bound and external formats are coded here; pass-through ones only go from \
         leg to leg.",
    ),
    show(
        "core show codec <number>",
        "Shows one format by its number in core show codecs.",
        "id type name format description rate rtp_name payload coding",
        Cli::core_show_codec,
    )
    .also(&["show codec <number>"]),
    show(
        "core show external codecs",
        "Shows codecs in other processes, and what went wrong with them.",
        "codecs [name format source alive restarts streams frames answers dropped full dead refused late]",
        Cli::core_show_external_codecs,
    )
    .detail(
        "Streams are directions of calls. Frames that were not sent: full (too many unanswered) and dead (no process). \
         Answers: refused by the codec, late when it was their turn, dropped because nobody wanted them any more.",
    ),
    show(
        "core show translation",
        "Shows what it costs to turn each format into each other one.",
        "measured level translations [from to steps group_us alone_us]",
        Cli::core_show_translation,
    )
    .also(&["show translation"])
    .detail(
        "Microseconds of processor time for a second of sound: for a stream in a full group of lanes, and for one that \
         finds no company. - is no way.",
    ),
    show(
        "core show translation paths <codec>",
        "Shows the way from a format to each other one.",
        "from rate paths [to formats group_us alone_us]",
        Cli::core_show_translation_paths,
    )
    .also(&["show translation paths <codec>"]),
    show(
        "core show translation recalc <seconds>",
        "Measures what translations cost on this machine, with so many seconds of real speech, and shows it.",
        "seconds measured level translations [from to steps group_us alone_us]",
        Cli::core_show_translation_recalc,
    )
    .also(&["show translation recalc <seconds>"])
    .detail(
        "It runs in a thread of its own, for less than a second each second of speech, while calls go on; the answer comes \
         when it is done. Kept for each model of processor in astcachedir.",
    ),
];

/// One word: who codes it on this machine.
fn coding(format: FormatId, coded: Coded) -> &'static str {
    match (coded.contains(format), format.coding()) {
        (true, Coding::PassThrough) => "external",
        (false, _) => Coding::PassThrough.name(),
        (true, coding) => coding.name(),
    }
}

/// One word: what it carries.
fn kind(format: FormatId) -> &'static str {
    if format.is_video() { "video" } else { "audio" }
}

fn codec_json(format: FormatId, coded: Coded) -> Value {
    json!({
        "id": format.index() + 1, "type": kind(format), "name": format.codec_name(), "format": format.name(),
        "description": format.description(), "rate": format.rate().0, "rtp_name": format.rtp_name(),
        "payload": format.usual_payload(), "coding": coding(format, coded),
    })
}

/// Formats that some way leads from.
fn translated(paths: &Paths) -> Vec<FormatId> {
    let leads = |from: &FormatId| FormatId::ALL.iter().any(|to| paths.get(*from, *to).is_some());
    FormatId::ALL.iter().copied().filter(leads).collect()
}

/// The matrix of one price, as Asterisk prints it.
fn matrix(paths: &Paths, price: impl Fn(&Path) -> f32) -> String {
    let formats = translated(paths);
    let mut out = format!("{:>9}", "");
    for to in &formats {
        let _ = write!(out, " {:>width$}", to.name(), width = to.name().len().max(5));
    }
    out.push('\n');
    for from in &formats {
        let _ = write!(out, "{:>9}", from.name());
        for to in &formats {
            let shown = match paths.get(*from, *to) {
                Some(path) => format!("{:.0}", price(path).max(1.0)),
                None => "-".to_owned(),
            };
            let _ = write!(out, " {shown:>width$}", width = to.name().len().max(5));
        }
        out.push('\n');
    }
    out
}

impl Cli {
    fn core_show_codecs(&self, ask: &mut Ask<'_>) -> Said {
        let (sound, video): (&[FormatId], &[FormatId]) = match ask.choice() {
            None => (FormatId::ALL, FormatId::VIDEO),
            Some("audio") => (FormatId::ALL, &[]),
            Some("video") => (&[], FormatId::VIDEO),
            // There are none of pictures that stand.
            Some(_) => (&[], &[]),
        };
        let formats = || sound.iter().chain(video).copied();
        let data = || {
            let coded = self.coded();
            let rows: Vec<Value> = formats().map(|format| codec_json(format, coded)).collect();
            json!({ "codecs": rows })
        };
        let text = || {
            let mut out = format!(
                "Disclaimer: this command is for informational purposes only.\n\
                 \tIt does not indicate anything about your configuration.\n\
                 {:>8} {:<5} {:<12} {:<16} {}\n{}\n",
                "ID",
                "TYPE",
                "NAME",
                "FORMAT",
                "DESCRIPTION",
                "-".repeat(96)
            );
            for format in formats() {
                let _ = writeln!(
                    out,
                    "{:>8} {:<5} {:<12} {:<16} ({})",
                    format.index() + 1,
                    kind(format),
                    format.codec_name(),
                    format.name(),
                    format.description()
                );
            }
            out
        };
        ask.show(data, text)
    }

    fn core_show_codec(&self, ask: &mut Ask<'_>) -> Said {
        let number = ask.need("number");
        let all = FormatId::ALL.iter().chain(FormatId::VIDEO).copied();
        let format =
            number.parse::<usize>().ok().and_then(|id| all.into_iter().find(|f| f.index() + 1 == id));
        let Some(format) = format else {
            return Said::failed(format!("Codec {} not found\n", clean(number)));
        };
        ask.show(
            || codec_json(format, self.coded()),
            || format!("{:>11} {}\n", format.index() + 1, format.description()),
        )
    }

    fn coded(&self) -> Coded {
        self.site.shard.core.borrow().settings.coded
    }

    fn core_show_external_codecs(&self, ask: &mut Ask<'_>) -> Said {
        let codecs = self.site.external.borrow();
        let data = || {
            let row = |codec: &ExternalLine| {
                let status = codec.lines.status();
                let faults = status.faults;
                json!({
                    "name": codec.name, "format": codec.format.name(), "source": codec.source,
                    "alive": status.alive, "restarts": status.restarts, "streams": status.streams,
                    "frames": status.frames, "answers": status.answers, "dropped": status.dropped,
                    "full": faults.full, "dead": faults.dead, "refused": faults.refused, "late": faults.late,
                })
            };
            json!({ "codecs": codecs.iter().map(row).collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = format!(
                "{:<16} {:<10} {:<6} {:>8} {:>7} {:>10} {:>8} {:>8} {:>8} {:>8}  Source\n",
                "Codec",
                "Format",
                "State",
                "Restarts",
                "Streams",
                "Frames",
                "Full",
                "Dead",
                "Refused",
                "Late"
            );
            for codec in codecs.iter() {
                let status = codec.lines.status();
                let faults = status.faults;
                let _ = writeln!(
                    out,
                    "{:<16} {:<10} {:<6} {:>8} {:>7} {:>10} {:>8} {:>8} {:>8} {:>8}  {}",
                    codec.name,
                    codec.format.name(),
                    if status.alive { "alive" } else { "dead" },
                    status.restarts,
                    status.streams,
                    status.frames,
                    faults.full,
                    faults.dead,
                    faults.refused,
                    faults.late,
                    codec.source
                );
            }
            let _ = writeln!(out, "{} external codecs", codecs.len());
            out
        };
        ask.show(data, text)
    }

    fn core_show_translation(&self, ask: &mut Ask<'_>) -> Said {
        ask.show(|| self.translations_json(), || self.translations_text())
    }

    fn translations_json(&self) -> Value {
        let paths = self.site.translation.paths();
        let ways = FormatId::ALL.iter().flat_map(|from| FormatId::ALL.iter().map(move |to| (*from, *to)));
        let rows: Vec<Value> = ways
            .filter_map(|(from, to)| paths.get(from, to).map(|path| (from, to, path)))
            .map(|(from, to, path)| {
                json!({
                    "from": from.name(), "to": to.name(), "steps": path.steps(),
                    "group_us": path.cost.group, "alone_us": path.cost.alone,
                })
            })
            .collect();
        let level = self.site.media.borrow().lanes().level;
        json!({ "measured": paths.costs().measured, "level": level.name(), "translations": rows })
    }

    fn translations_text(&self) -> String {
        let paths = self.site.translation.paths();
        let level = self.site.media.borrow().lanes().level;
        let source =
            if paths.costs().measured { "measured on this machine" } else { "estimated; recalc measures" };
        format!(
            "         Translation times between formats (in microseconds) for one second of data\n\
             \x20         Source Format (Rows) Destination Format (Columns)\n\n{}\n\
             The same for a stream without company in its group of {} lanes ({source})\n\n{}",
            matrix(&paths, |path| path.cost.group),
            level.name(),
            matrix(&paths, |path| path.cost.alone)
        )
    }

    fn core_show_translation_paths(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("codec");
        let Some(from) = FormatId::from_name(name) else {
            return Said::failed(format!("Codec \"{}\" not found.\n", clean(name)));
        };
        let paths = self.site.translation.paths();
        let others = || FormatId::ALL.iter().copied().filter(|to| *to != from);
        let data = || {
            let rows: Vec<Value> = others()
                .map(|to| {
                    let path = paths.get(from, to);
                    let names = |path: &Path| path.formats().iter().map(|f| f.name()).collect::<Vec<_>>();
                    json!({
                        "to": to.name(), "formats": path.map(names),
                        "group_us": path.map(|path| path.cost.group), "alone_us": path.map(|path| path.cost.alone),
                    })
                })
                .collect();
            json!({ "from": from.name(), "rate": from.rate().0, "paths": rows })
        };
        let text = || {
            let mut out = format!(
                "--- Translation paths SRC Codec \"{}\" sample rate {} ---\n",
                from.name(),
                from.rate().0
            );
            for to in others() {
                let way = match paths.get(from, to) {
                    Some(path) => path
                        .formats()
                        .iter()
                        .map(|format| format!("({}@{})", format.name(), format.rate().0))
                        .collect::<Vec<_>>()
                        .join("->"),
                    None => "No Translation Path".to_owned(),
                };
                let end = |format: FormatId| format!("{}:{}", format.name(), format.rate().0);
                let _ = writeln!(out, "\t{:<16} To {:<16}: {way}", end(from), end(to));
            }
            out
        };
        ask.show(data, text)
    }

    fn core_show_translation_recalc(&self, ask: &mut Ask<'_>) -> Said {
        let asked = ask.need("seconds");
        let Some(seconds) = asked.parse::<usize>().ok().filter(|seconds| (1..=SECONDS_MAX).contains(seconds))
        else {
            return Said::failed(format!(
                "{} is no number of seconds from 1 to {SECONDS_MAX}\n",
                clean(asked)
            ));
        };
        let began = match self.site.translation.measure(seconds) {
            Ok(began) => began,
            Err(why) => return Said::failed(format!("no thread can be made to measure in: {why}\n")),
        };
        if ask.may_wait && self.site.translation.over().is_some() {
            let waiting = Waiting { session: ask.session, json: ask.json, seconds, began };
            self.waiting.borrow_mut().push(waiting);
            return Said::Later;
        }
        let later = "core show translation shows the figures when it is done.\n";
        ask.show(|| self.recalculated_json(seconds), || recalculating(seconds, began) + later)
    }

    fn recalculated_json(&self, seconds: usize) -> Value {
        let mut data = self.translations_json();
        if let Some(data) = data.as_object_mut() {
            data.insert("seconds".into(), seconds.into());
        }
        data
    }

    /// The answers to those who wait for a measurement, once it is over.
    pub fn measured(&self) -> Vec<Finished> {
        if self.site.translation.is_measuring() {
            return Vec::new();
        }
        let answer = |Waiting { session, json, seconds, began }| {
            let text = if json {
                format!("{}\n", self.recalculated_json(seconds))
            } else {
                recalculating(seconds, began) + &self.translations_text()
            };
            Finished { session, text, status: 0 }
        };
        self.waiting.take().into_iter().map(answer).collect()
    }
}

/// The line that Asterisk begins with.
fn recalculating(seconds: usize, began: bool) -> String {
    let joined = if began { "" } else { "An earlier measurement was under way; its figures count.\n" };
    format!("         Recalculating Codec Translation (number of sample seconds: {seconds})\n{joined}\n")
}

/// Someone who waits for a measurement.
#[derive(Debug)]
pub(super) struct Waiting {
    session: u64,
    json: bool,
    seconds: usize,
    /// The measurement is that of this command, not of an earlier one that was under way.
    began: bool,
}
