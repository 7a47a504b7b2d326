//! `logger.conf`: which messages go where.

use super::kind::{Int, Text, YesNo, choice};
use super::{options, read_settings};
use crate::log::syslog::FACILITIES;
use conf::{File, Findings, Level as FindingLevel, Variable};

/// How much a log message matters, in Asterisk's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// Something worth knowing.
    Notice,
    /// Something is not as it should be.
    Warning,
    /// Something failed.
    Error,
    /// What the dialplan does.
    Verbose,
    /// Digits.
    Dtmf,
    /// Logins, refusals.
    Security,
    /// Fax; accepted in the file, nothing writes it.
    Fax,
}

impl LogLevel {
    /// All levels.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Verbose,
        Self::Dtmf,
        Self::Security,
        Self::Fax,
    ];
    /// The word a log line has.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
            Self::Verbose => "VERBOSE",
            Self::Dtmf => "DTMF",
            Self::Security => "SECURITY",
            Self::Fax => "FAX",
        }
    }
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels(u8);

impl Levels {
    /// Every level.
    pub const ALL: Self = Self(u8::MAX);
    /// Adds one.
    pub fn insert(&mut self, level: LogLevel) {
        self.0 |= level.bit();
    }
    /// Takes one out.
    pub fn remove(&mut self, level: LogLevel) {
        self.0 &= !level.bit();
    }
    /// What is in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    /// Whether it is in the set.
    pub fn contains(self, level: LogLevel) -> bool {
        self.0 & level.bit() != 0
    }
    /// Both sets together.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

choice! {
    /// `rotatestrategy=`: what a rotation does with the old file.
    Rotate {
        Sequential | "sequential" "Takes the next higher number: messages.0, messages.1, …";
        Rotate | "rotate" "The last is messages.0, older ones move up.";
        Timestamp | "timestamp" "Appends the time.";
        None | "none" "Leaves renaming to another program and opens the file anew.";
    }
}

options! {
    /// `[general]` of `logger.conf`.
    LoggerGeneral, "logger.conf", "general", IsIgnored;
    dateformat: Text = "%b %e %T", "Date in log lines, in the words of strftime.";
    use_callids: YesNo = "yes", "Write the number of the call into lines about it: [C-00000001].";
    appendhostname: YesNo = "no", "Append the host name to file names.";
    rotatestrategy: Rotate = "sequential", "What a rotation does with the old file.";
    exec_after_rotate: Text = "", "Shell command to run after a file was rotated; ${filename} stands for the file's name.";
    syslog_socket: Text = "/dev/log", "Socket of the system's log, for targets such as syslog.local0.";
    queue_log: YesNo = "yes", "Write what happens in call queues.";
    queue_log_name: Text = "queue_log", "Name of that file.";
    queue_log_to_file: YesNo = "no", "Write the file also when the family queue_log of extconfig.conf lies in a database.";
    queue_log_realtime_use_gmt: YesNo = "no", "Times of rows of that family are in UTC.";
    logger_queue_limit: Int<1, 1_000_000> = "1000", "Lines that wait for the disk; further ones are dropped and counted.";
    @recognised {
        "queue_adaptive_realtime" "*" Ignored "columns that the table lacks are left out";
        "event_log" "yes,no" Ignored "Asterisk does not write one either";
        "display_callids" "yes,no" Ignored "use_callids is its name";
    }
}

choice! {
    /// How a line is written.
    Formatter {
        Default | "default" "With colours on the console, plain in files.";
        Plain | "plain" "Plain, with the file names verbose messages come from.";
        Json | "json" "A JSON object a line.";
    }
}

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The console.
    Console,
    /// A file; relative to astlogdir.
    File(String),
    /// The system's log, with this facility.
    Syslog(u8),
}

/// One line of `[logfiles]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Where lines go.
    pub target: Target,
    /// How they are written.
    pub formatter: Formatter,
    /// Levels that go there.
    pub levels: Levels,
    /// Highest verbose level that goes there, for `verbose(3)`; `None` follows the console's.
    pub verbose: Option<u8>,
}

/// `logger.conf` as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Logger {
    /// `[general]`.
    pub general: LoggerGeneral,
    /// `[logfiles]`, in file order.
    pub channels: Vec<Channel>,
}

impl Default for Logger {
    /// Without a file: notices, warnings, errors and what the dialplan does, on the console.
    fn default() -> Self {
        let mut levels = Levels::default();
        for level in [LogLevel::Notice, LogLevel::Warning, LogLevel::Error, LogLevel::Verbose] {
            levels.insert(level);
        }
        let console =
            Channel { target: Target::Console, formatter: Formatter::Default, levels, verbose: None };
        Self { general: LoggerGeneral::default(), channels: vec![console] }
    }
}

impl Logger {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general = read_settings(file, "general", findings);
        let mut channels = Vec::new();
        for variable in file.named("logfiles").flat_map(|section| &section.variables) {
            channels.extend(channel(variable, findings));
        }
        Self { general, channels }
    }
}

impl Channel {
    /// A file below astlogdir with these levels, as a line `name => levels` of `[logfiles]` has them; or what is wrong.
    pub fn named(name: &str, levels: &str) -> Result<Self, String> {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        if !plain || name.len() > NAME_BYTES_MAX {
            return Err(format!("'{name}' is no name of a file in astlogdir"));
        }
        let place = conf::Place::new("(console)", 0);
        let (name, value) = (name.into(), levels.into());
        let mut findings = Findings::new();
        let line = Variable { name, value, object: true, place, inherited: false };
        let made = channel(&line, &mut findings);
        match (made, findings.iter().next()) {
            (_, Some(finding)) => Err(finding.message.clone()),
            (Some(made), None) if made.levels == Levels::default() => Err("no level is named".to_owned()),
            (Some(made), None) => Ok(made),
            (None, None) => Err("it cannot be logged to".to_owned()),
        }
    }
}

/// Longest name of a file of the log that a console may make, bytes; a file name has at most 255, and rotation adds to it.
const NAME_BYTES_MAX: usize = 200;

/// The name of a facility of the system's log.
pub fn facility_name(number: u8) -> &'static str {
    FACILITIES.iter().find(|(_, known)| *known == number).map_or("", |(name, _)| name)
}

/// The facility that a target of the system's log names; `None` for other targets. Without one it is local0.
fn syslog(name: &str) -> Option<&str> {
    match name.split_once('.') {
        Some((word, facility)) => word.eq_ignore_ascii_case("syslog").then_some(facility.trim()),
        None => name.eq_ignore_ascii_case("syslog").then_some("local0"),
    }
}

fn channel(variable: &Variable, findings: &mut Findings) -> Option<Channel> {
    let name = &*variable.name;
    let target = if name.eq_ignore_ascii_case("console") {
        Target::Console
    } else if let Some(facility) = syslog(name) {
        let Some((_, number)) = FACILITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(facility))
        else {
            let names: Vec<_> = FACILITIES.iter().map(|(name, _)| *name).collect();
            findings.push(variable.finding(
                FindingLevel::Warning,
                format!("{name} names no facility of syslog; nothing is sent there"),
                super::suggestion(facility, &names),
            ));
            return None;
        };
        Target::Syslog(*number)
    } else {
        Target::File(name.to_owned())
    };
    let mut channel =
        Channel { target, formatter: Formatter::Default, levels: Levels::default(), verbose: None };
    let mut text = variable.value.trim();
    if let Some((word, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        text = rest.trim();
        channel.formatter = match word.trim().to_ascii_lowercase().as_str() {
            "default" => Formatter::Default,
            "plain" => Formatter::Plain,
            "json" => Formatter::Json,
            _ => {
                let message =
                    format!("{name} asks for the format [{word}], which does not exist; default holds");
                findings.push(variable.finding(
                    FindingLevel::Warning,
                    message,
                    "write [default], [plain] or [json]",
                ));
                Formatter::Default
            }
        };
    }
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (level, argument) = match word.split_once('(') {
            Some((level, argument)) => (level.trim(), argument.trim_end_matches(')').trim().parse().ok()),
            None => (word, None),
        };
        if level == "*" {
            channel.levels = Levels::ALL;
        } else if let Some(known) =
            LogLevel::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(level))
        {
            channel.levels.insert(*known);
        } else if level.eq_ignore_ascii_case("trace") {
            // Later versions tell what enters and leaves their functions so; nothing here does.
        } else {
            let message = format!("{name} asks for the level `{word}`, which does not exist; it is ignored");
            let names: Vec<_> = LogLevel::ALL.iter().map(|level| level.name()).collect();
            findings.push(variable.finding(FindingLevel::Warning, message, super::suggestion(level, &names)));
            continue;
        }
        if level == "*" || level.eq_ignore_ascii_case("verbose") {
            channel.verbose = argument.or(channel.verbose);
        }
    }
    Some(channel)
}
