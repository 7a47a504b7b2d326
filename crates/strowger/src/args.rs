//! The command line, spelled as Asterisk's: single letters in clusters (`-rvvvx "core show channels"`), values in the
//! same word or the next, and two subcommands of our own. A pure function from words to `Args`.

use std::path::PathBuf;

/// What the program is asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The server.
    Serve,
    /// `-r`: a console on the running server.
    Console,
    /// `-x CMD`: one command on the running server.
    Run {
        /// The command.
        command: String,
    },
    /// `check DIR`: says what would not work in a configuration folder.
    Check {
        /// The folder.
        folder: PathBuf,
    },
    /// `doctor`: says what the capacity of this machine depends on.
    Doctor,
    /// `codecs`: lists the built-in codecs.
    Codecs,
    /// `codec encode|decode|transcode IN OUT`: turns a sound file into another format.
    Codec(CodecJob),
    /// `codec bench`: what coding costs on this machine.
    CodecBench(BenchJob),
    /// `db create|upgrade|check URL [TABLE...]`: the standard tables of a database.
    Db(DbJob),
    /// `-h`.
    Help,
    /// `-V`.
    Version,
}

/// What `codec bench` is to measure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BenchJob {
    /// `--codec`: formats by name; all for none.
    pub codecs: Vec<String>,
    /// `--seconds`: how much speech.
    pub seconds: Option<usize>,
}

/// What `codec` is to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecJob {
    /// Which way.
    pub verb: CodecVerb,
    /// The file to read.
    pub input: PathBuf,
    /// The file to write.
    pub output: PathBuf,
    /// `--from`: what the input holds, when its name does not say.
    pub from: Option<String>,
    /// `--to`: what the output shall hold, when its name does not say.
    pub to: Option<String>,
}

/// Which way a file is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecVerb {
    /// Linear samples into a coded format.
    Encode,
    /// A coded format into linear samples.
    Decode,
    /// Any into any.
    Transcode,
}

/// What to do with the tables of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DbVerb {
    /// Make those that are missing.
    Create,
    /// And add the columns that others lack.
    Upgrade,
    /// Only say what is missing.
    Check,
}

/// Tables to make or to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbJob {
    /// What to do.
    pub verb: DbVerb,
    /// Where the database is; `-`: the first line of the standard input says it.
    pub url: String,
    /// Names of tables; none: all.
    pub tables: Vec<String>,
}

/// The whole command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Args {
    /// What to be.
    pub mode: Mode,
    /// `-C`: the asterisk.conf to read.
    pub config: Option<PathBuf>,
    /// `-s`: the control socket.
    pub socket: Option<PathBuf>,
    /// `-f`: stay in the foreground.
    pub foreground: bool,
    /// `-c`: foreground, with a console.
    pub console: bool,
    /// `-F`: go to the background whatever else is asked.
    pub always_fork: bool,
    /// How many `-v`.
    pub verbose: u8,
    /// How many `-d`.
    pub debug: u8,
    /// `-g`: allow core files.
    pub core_files: bool,
    /// `-q`: print nothing at the start.
    pub quiet: bool,
    /// `-m`: consoles do not show the log.
    pub mute: bool,
    /// `-n`: no colours.
    pub no_color: bool,
    /// `-i`: ask for the pass phrases of keys at the start.
    pub init_keys: bool,
    /// `-p`: higher priority.
    pub high_priority: bool,
    /// `-T`: a time stamp before each line of a console.
    pub timestamps: bool,
    /// `-X`: `#exec` is allowed.
    pub exec_includes: bool,
    /// `-U`.
    pub user: Option<String>,
    /// `-G`.
    pub group: Option<String>,
    /// `-M`: most calls at once.
    pub max_calls: Option<u32>,
    /// `-L`: refuse new calls above this load average.
    pub max_load: Option<f32>,
    /// `--json`: answers as JSON.
    pub json: bool,
    /// `--from` and `--to`, for `codec`.
    pub formats: (Option<String>, Option<String>),
    /// `--codec` and `--seconds`, for `codec bench`.
    pub bench: BenchJob,
}

impl Args {
    /// Whether the server leaves the terminal: unless `-f`, `-c`, `-v`, `-d` or `-T` want to be seen, and always with `-F`.
    pub fn forks(&self) -> bool {
        let seen = self.foreground || self.console || self.timestamps || self.verbose > 0 || self.debug > 0;
        self.mode == Mode::Serve && (self.always_fork || !seen) && !self.console
    }
}

/// What `-h` prints after the version.
pub const USAGE: &str = "\
Usage: strowger [OPTIONS]                 start the server
       strowger -r[x CMD] [OPTIONS]      talk to the running server
       strowger check DIR [--exec] [--json]
                                         say whether a server would run on a configuration folder,
                                         and what in it would not work
       strowger doctor [-C FILE] [-M CALLS] [--json]
                                         say what the capacity of this machine depends on
       strowger codecs [--json]          list the built-in codecs
       strowger codec encode|decode|transcode IN OUT [--from FORMAT] [--to FORMAT]
                                         turn a sound file into another format
       strowger codec bench [--codec FORMAT,...] [--seconds N] [--json]
                                         measure what coding costs on this machine
       strowger db create|upgrade|check URL [TABLE...] [--json]
                                         make, complete or check the standard tables of a database
       strowger load SERVER [OPTIONS]    call a server by the thousand, and check what is heard;
                                         `strowger load -h` lists its options

  -V              print the version and leave
  -h              print this help and leave
  -C FILE         read this asterisk.conf instead of /etc/asterisk/asterisk.conf
  -f              stay in the foreground
  -F              go to the background even with -v or -d
  -c              stay in the foreground with a console
  -r              console on the running server
  -R              the same
  -x CMD          run one command on the running server (implies -r)
  -s SOCKET       control socket of the server to talk to
  --exec          let check run commands of #exec
  --json          answer as JSON (with -x, check, db, doctor, codecs and codec bench)
  --from FORMAT   what IN holds, when its name does not say (with codec)
  --to FORMAT     what OUT shall hold, when its name does not say (with codec)
  --codec FORMAT  measure only these, comma between them (with codec bench)
  --seconds N     with so much speech, 1 to 60 s; 5 when not given (with codec bench)
  -v              more words; repeat for more still
  -d              debug messages; repeat for more still
  -q              print nothing at the start
  -m              do not show the log on consoles
  -n              no colours
  -T              a time stamp before each line of a console
  -g              allow core files
  -i              ask for the pass phrases of private keys at the start
  -p              run at a higher priority
  -U USER         run as this user
  -G GROUP        run as this group
  -M NUMBER       most calls at once; with doctor, calls to judge the machine for
  -L LOAD         refuse new calls above this load average
  -X              allow #exec in configuration files
";

/// A command line that cannot be obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsError(String);

impl std::fmt::Display for ArgsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; `strowger -h` lists the options", self.0)
    }
}

impl std::error::Error for ArgsError {}

fn wrong<T>(text: impl Into<String>) -> Result<T, ArgsError> {
    Err(ArgsError(text.into()))
}

/// Reads the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Args, ArgsError> {
    let mut args = Args::new();
    let mut plain = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => plain.extend(words.by_ref()),
            "--json" => args.json = true,
            "--from" | "--to" => {
                let Some(value) = words.next() else { return wrong(format!("'{word}' needs a format")) };
                let place = if word == "--from" { &mut args.formats.0 } else { &mut args.formats.1 };
                *place = Some(value);
            }
            "--codec" => {
                let Some(value) = words.next() else { return wrong("'--codec' needs a format") };
                args.bench.codecs.extend(value.split(',').map(|name| name.trim().to_owned()));
            }
            "--seconds" => match words.next().map(|value| value.parse()) {
                Some(Ok(seconds)) => args.bench.seconds = Some(seconds),
                _ => return wrong("'--seconds' needs a number of seconds"),
            },
            "--exec" => args.exec_includes = true,
            "--help" => args.mode = Mode::Help,
            "--version" => args.mode = Mode::Version,
            long if long.starts_with("--") => return wrong(format!("there is no option '{long}'")),
            cluster if cluster.starts_with('-') && cluster.len() > 1 => {
                args.cluster(cluster.trim_start_matches('-'), &mut words)?;
            }
            _ => plain.push(word),
        }
    }
    args.subcommand(plain)
}

impl Args {
    fn new() -> Self {
        Self {
            mode: Mode::Serve,
            config: None,
            socket: None,
            foreground: false,
            console: false,
            always_fork: false,
            verbose: 0,
            debug: 0,
            core_files: false,
            quiet: false,
            mute: false,
            no_color: false,
            init_keys: false,
            high_priority: false,
            timestamps: false,
            exec_includes: false,
            user: None,
            group: None,
            max_calls: None,
            max_load: None,
            json: false,
            formats: (None, None),
            bench: BenchJob::default(),
        }
    }

    /// One word of letters; a letter with a value takes the rest of the word, or the next word.
    fn cluster(&mut self, cluster: &str, words: &mut impl Iterator<Item = String>) -> Result<(), ArgsError> {
        let mut rest = cluster.chars();
        while let Some(letter) = rest.next() {
            if self.flag(letter) {
                continue;
            }
            if !TAKES_VALUE.contains(letter) {
                return wrong(format!("there is no option '-{letter}'"));
            }
            let value = match rest.as_str() {
                "" => words.next(),
                attached => Some(attached.to_owned()),
            };
            let Some(value) = value else { return wrong(format!("option '-{letter}' needs a value")) };
            return self.value(letter, value);
        }
        Ok(())
    }

    /// Obeys a letter without a value; false when it is none.
    fn flag(&mut self, letter: char) -> bool {
        match letter {
            'f' => self.foreground = true,
            'F' => self.always_fork = true,
            'c' => self.console = true,
            'v' => self.verbose = self.verbose.saturating_add(1),
            'd' => self.debug = self.debug.saturating_add(1),
            'g' => self.core_files = true,
            'q' => self.quiet = true,
            'm' => self.mute = true,
            'n' => self.no_color = true,
            'i' => self.init_keys = true,
            'p' => self.high_priority = true,
            'T' => self.timestamps = true,
            'X' => self.exec_includes = true,
            // Colours of a light or dark terminal, recordings in /tmp and internal timing: nothing here differs.
            'B' | 'W' | 't' | 'I' => {}
            'r' | 'R' if self.mode == Mode::Serve => self.mode = Mode::Console,
            'r' | 'R' => {}
            'h' => self.mode = Mode::Help,
            'V' => self.mode = Mode::Version,
            _ => return false,
        }
        true
    }

    fn value(&mut self, letter: char, value: String) -> Result<(), ArgsError> {
        match letter {
            'C' => self.config = Some(value.into()),
            's' => self.socket = Some(value.into()),
            'U' => self.user = Some(value),
            'G' => self.group = Some(value),
            'M' => match value.parse() {
                Ok(calls) => self.max_calls = Some(calls),
                Err(_) => return wrong(format!("'-M {value}' is not a number of calls")),
            },
            'L' => match value.parse() {
                Ok(load) if f32::is_finite(load) && load > 0.0 => self.max_load = Some(load),
                _ => return wrong(format!("'-L {value}' is not a load average")),
            },
            // Help and version win over everything, wherever they stand.
            _ if matches!(self.mode, Mode::Help | Mode::Version) => {}
            // -x
            _ => self.mode = Mode::Run { command: value },
        }
        Ok(())
    }

    fn subcommand(mut self, plain: Vec<String>) -> Result<Self, ArgsError> {
        let mut plain = plain.into_iter().peekable();
        let Some(first) = plain.next() else { return Ok(self) };
        let mode = match first.as_str() {
            "check" => match plain.next() {
                Some(folder) => Mode::Check { folder: folder.into() },
                None if matches!(self.mode, Mode::Help | Mode::Version) => return Ok(self),
                None => return wrong("'check' needs the configuration folder to read"),
            },
            "doctor" => Mode::Doctor,
            "codecs" => Mode::Codecs,
            "codec" if plain.next_if_eq("bench").is_some() => {
                Mode::CodecBench(std::mem::take(&mut self.bench))
            }
            "codec" => Mode::Codec(codec_job(&mut plain, std::mem::take(&mut self.formats))?),
            "db" => Mode::Db(db_job(&mut plain)?),
            _ => return wrong(format!("'{first}' is no subcommand")),
        };
        if self.formats != (None, None) {
            return wrong("'--from' and '--to' belong to 'codec'");
        }
        if self.bench != BenchJob::default() {
            return wrong("'--codec' and '--seconds' belong to 'codec bench'");
        }
        if let Some(extra) = plain.next() {
            return wrong(format!("'{extra}' is one word too many"));
        }
        if !matches!(self.mode, Mode::Help | Mode::Version) {
            self.mode = mode;
        }
        Ok(self)
    }
}

fn codec_job(
    words: &mut impl Iterator<Item = String>,
    (from, to): (Option<String>, Option<String>),
) -> Result<CodecJob, ArgsError> {
    let verb = match words.next().as_deref() {
        Some("encode") => CodecVerb::Encode,
        Some("decode") => CodecVerb::Decode,
        Some("transcode") => CodecVerb::Transcode,
        _ => return wrong("'codec' needs one of encode, decode, transcode and bench"),
    };
    let (Some(input), Some(output)) = (words.next(), words.next()) else {
        return wrong("'codec' needs the file to read and the file to write");
    };
    Ok(CodecJob { verb, input: input.into(), output: output.into(), from, to })
}

fn db_job(words: &mut impl Iterator<Item = String>) -> Result<DbJob, ArgsError> {
    let verb = match words.next().as_deref() {
        Some("create") => DbVerb::Create,
        Some("upgrade") => DbVerb::Upgrade,
        Some("check") => DbVerb::Check,
        _ => return wrong("'db' needs one of create, upgrade and check"),
    };
    let Some(url) = words.next() else {
        return wrong(
            "'db' needs a database: mysql://user@host/name, postgresql://user@host/name or sqlite:FILE",
        );
    };
    Ok(DbJob { verb, url, tables: words.collect() })
}

/// Letters that take a value.
const TAKES_VALUE: &str = "CsUGxML";

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &[&str]) -> Result<Args, ArgsError> {
        parse(line.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn clusters_are_read_as_asterisk_reads_them() {
        let run = |command: &str| Mode::Run { command: command.to_owned() };
        let base = Args::new();
        let cases: &[(&[&str], Args)] = &[
            (&[], base.clone()),
            (&["-f"], Args { foreground: true, ..base.clone() }),
            (&["-r"], Args { mode: Mode::Console, ..base.clone() }),
            (&["-vvvr"], Args { mode: Mode::Console, verbose: 3, ..base.clone() }),
            (&["-rx", "core show channels"], Args { mode: run("core show channels"), ..base.clone() }),
            (
                &["-rvvvx", "core show channels"],
                Args { mode: run("core show channels"), verbose: 3, ..base.clone() },
            ),
            (&["-rxcore show uptime"], Args { mode: run("core show uptime"), ..base.clone() }),
            (&["-x", "sip reload", "-r"], Args { mode: run("sip reload"), ..base.clone() }),
            (&["-cvvv"], Args { console: true, verbose: 3, ..base.clone() }),
            (&["-Rn"], Args { mode: Mode::Console, no_color: true, ..base.clone() }),
            (
                &["-gqmnipTX", "-C", "/etc/a.conf", "-Uasterisk", "-G", "voice"],
                Args {
                    core_files: true,
                    quiet: true,
                    mute: true,
                    no_color: true,
                    init_keys: true,
                    high_priority: true,
                    timestamps: true,
                    exec_includes: true,
                    config: Some("/etc/a.conf".into()),
                    user: Some("asterisk".into()),
                    group: Some("voice".into()),
                    ..base.clone()
                },
            ),
            (
                &["-s", "/tmp/a.ctl", "-rx", "core show version", "--json"],
                Args {
                    mode: run("core show version"),
                    socket: Some("/tmp/a.ctl".into()),
                    json: true,
                    ..base.clone()
                },
            ),
            (
                &["-M5", "-L", "2.5", "-F", "-dd"],
                Args { max_calls: Some(5), max_load: Some(2.5), always_fork: true, debug: 2, ..base.clone() },
            ),
            (
                &["check", "/etc/asterisk", "--json"],
                Args { mode: Mode::Check { folder: "/etc/asterisk".into() }, json: true, ..base.clone() },
            ),
            (&["codecs"], Args { mode: Mode::Codecs, ..base.clone() }),
            (
                &["db", "check", "sqlite:/a.db", "cdr", "cel", "--json"],
                Args {
                    mode: Mode::Db(DbJob {
                        verb: DbVerb::Check,
                        url: "sqlite:/a.db".into(),
                        tables: vec!["cdr".into(), "cel".into()],
                    }),
                    json: true,
                    ..base.clone()
                },
            ),
            (
                &["doctor", "-C", "/etc/a.conf", "-M", "5000"],
                Args {
                    mode: Mode::Doctor,
                    config: Some("/etc/a.conf".into()),
                    max_calls: Some(5000),
                    ..base.clone()
                },
            ),
            (
                &["codec", "transcode", "a.wav", "--to", "ilbc", "b.bin"],
                Args {
                    mode: Mode::Codec(CodecJob {
                        verb: CodecVerb::Transcode,
                        input: "a.wav".into(),
                        output: "b.bin".into(),
                        from: None,
                        to: Some("ilbc".into()),
                    }),
                    ..base.clone()
                },
            ),
            (
                &["codec", "bench", "--codec", "gsm,ilbc", "--seconds", "2", "--json"],
                Args {
                    mode: Mode::CodecBench(BenchJob {
                        codecs: vec!["gsm".into(), "ilbc".into()],
                        seconds: Some(2),
                    }),
                    json: true,
                    ..base.clone()
                },
            ),
            (&["-V"], Args { mode: Mode::Version, ..base.clone() }),
            (&["-hx", "core show version"], Args { mode: Mode::Help, ..base.clone() }),
            (&["check", "/x", "--help"], Args { mode: Mode::Help, ..base }),
        ];
        for (line, expected) in cases {
            assert_eq!(args(line).as_ref(), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_named_with_a_remedy() {
        for (line, part) in [
            (&["-Z"][..], "there is no option '-Z'"),
            (&["--frobnicate"], "there is no option '--frobnicate'"),
            (&["-rx"], "option '-x' needs a value"),
            (&["-C"], "option '-C' needs a value"),
            (&["-M", "many"], "'-M many' is not a number of calls"),
            (&["-L", "NaN"], "'-L NaN' is not a load average"),
            (&["check"], "'check' needs the configuration folder"),
            (&["check", "/x", "/y"], "'/y' is one word too many"),
            (&["start"], "'start' is no subcommand"),
            (&["codec", "mix", "a", "b"], "'codec' needs one of encode, decode, transcode and bench"),
            (&["codec", "encode", "a"], "'codec' needs the file to read and the file to write"),
            (&["codec", "encode", "a", "b", "--to"], "'--to' needs a format"),
            (&["codec", "bench", "--seconds", "many"], "'--seconds' needs a number of seconds"),
            (&["db", "drop", "sqlite:/a.db"], "'db' needs one of create, upgrade and check"),
            (
                &["db", "check"],
                "'db' needs a database: mysql://user@host/name, postgresql://user@host/name or sqlite:FILE",
            ),
            (&["codecs", "--seconds", "3"], "'--codec' and '--seconds' belong to 'codec bench'"),
            (&["check", "/x", "--from", "gsm"], "'--from' and '--to' belong to 'codec'"),
        ] {
            let text = args(line).unwrap_err().to_string();
            assert!(text.starts_with(part) && text.ends_with("`strowger -h` lists the options"), "{text}");
        }
    }

    #[test]
    fn only_a_server_that_nobody_watches_goes_to_the_background() {
        for (line, forks) in [
            (&[][..], true),
            (&["-g"], true),
            (&["-f"], false),
            (&["-vvv"], false),
            (&["-d"], false),
            (&["-T"], false),
            (&["-F", "-vvv"], true),
            (&["-cF"], false),
            (&["-rvvv"], false),
        ] {
            assert_eq!(args(line).unwrap().forks(), forks, "{line:?}");
        }
    }

    #[test]
    fn every_letter_that_is_understood_stands_in_the_help() {
        for letter in "VhCfFcrRxsvdqmnTgipUGMLX".chars() {
            assert!(USAGE.contains(&format!("  -{letter}")), "-{letter}");
        }
    }
}
