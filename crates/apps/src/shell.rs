//! Command lines of the dialplan (`System`, `SHELL()`, what follows a recording), as scripts that no value can change.
//!
//! The field hands the substituted line to the shell, so that a caller's name can be a command. Here the shell gets the
//! line as it was written, with a positional parameter in each place of a value, and the values as its arguments: it
//! never parses them.

use core::time::Duration;
use std::ops::Range;

use base::Instant;
use call::{LinkNews, LinkWant, Stop};
use dialplan::Written;

use crate::Call;

/// How long a command is waited for: longer than any conversion of a recording. It goes on by itself then.
pub(crate) const COMMAND_MAX: Duration = Duration::from_secs(15 * 60);
/// How long one is still waited for after the call has ended while it ran.
const AFTER_END: Duration = Duration::from_secs(10);
/// What `SHELL()` keeps of a command's output: more than a variable is used for.
pub(crate) const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// Words that a command which comes whole from a variable may have.
const WORDS_MAX: usize = 256;

/// The shell.
const SHELL: &str = "/bin/sh";
/// Words that have the shell read their arguments once more.
const READ_AGAIN: &[&str] = &["eval", "let", "trap", "ssh", "rsh", "declare", "typeset"];
/// Words that do so with an option `c`.
const READ_AGAIN_WITH_C: &[&str] = &[
    "sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "csh", "tcsh", "fish", "busybox", "su", "runuser",
    "script",
];
/// Words that read what a pipe brings them as commands, beside the shells.
const READ_PIPE: &[&str] = &["at", "batch", "crontab"];

/// A command line, ready for the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    text: String,
    values: Vec<String>,
}

impl Script {
    /// The script of a command line. The error says why it is not run.
    pub(crate) fn new(line: &Written) -> Result<Self, String> {
        let Some(values) = &line.values else {
            return Err("nobody knows which parts of the command are values: write it as a step of its own"
                .to_owned());
        };
        if line.text.contains('\0') {
            return Err("the command holds a NUL".to_owned());
        }
        let mut writer = Writer::default();
        let mut from = 0;
        let mut literal = String::new();
        for (index, range) in values.iter().enumerate() {
            let before = line.text.get(from..range.start).unwrap_or_default();
            writer.literal(before);
            literal.push_str(before);
            literal.push(VALUE);
            let touches = |next: &Range<usize>| next.start == range.end;
            let alone = !values.get(index + 1).is_some_and(touches)
                && (index == 0 || values.get(index - 1).is_none_or(|last| last.end != range.start));
            let after = line.text.get(range.end..).unwrap_or_default();
            writer.value(line.text.get(range.clone()).unwrap_or_default(), alone && ends_word(after))?;
            from = range.end;
        }
        let rest = line.text.get(from..).unwrap_or_default();
        writer.literal(rest);
        literal.push_str(rest);
        let script = Self { text: writer.out, values: writer.values };
        if let Some(word) = read_again(&literal)
            && let Some(value) = script.values.iter().find(|value| !is_harmless(value))
        {
            return Err(format!("'{word}' would have a shell read '{value}', which is a value"));
        }
        Ok(script)
    }
    /// The same, and this file is gone when it has ended.
    pub(crate) fn then_remove(mut self, file: &str) -> Self {
        self.values.push(file.to_owned());
        self.text = format!("( {}\n)\nrm -f -- \"${{{}}}\"", self.text, self.values.len());
        self
    }
    /// What is started: `tells` its output.
    pub(crate) fn want(&self, tells: bool) -> LinkWant {
        let output = if tells { "" } else { " >/dev/null" };
        let text = format!("exec </dev/null{output}\n{}", self.text);
        let mut args = vec!["-c".to_owned(), text, "sh".to_owned()];
        args.extend(self.values.iter().cloned());
        LinkWant::Program { path: SHELL.to_owned(), args, environment: Vec::new(), audio: false }
    }
}

/// Stands for a value where only what was written counts.
const VALUE: char = '\u{fffc}';

/// What the shell takes the place for where the writer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// Words, until this character (of `$(…)` or of backticks).
    Plain {
        until: Option<char>,
        parens: u32,
    },
    Double,
    Single,
    Comment,
}

/// Writes the script.
#[derive(Debug, Default)]
struct Writer {
    out: String,
    values: Vec<String>,
    /// Outermost first; without any it stands among words.
    frames: Vec<Frame>,
    escaped: bool,
    dollar: bool,
    in_word: bool,
    /// The word that follows, or is being written, is not the name of a command.
    past_name: bool,
}

impl Writer {
    fn top(&self) -> Frame {
        self.frames.last().copied().unwrap_or(Frame::Plain { until: None, parens: 0 })
    }
    fn literal(&mut self, text: &str) {
        for symbol in text.chars() {
            let (escaped, dollar) = (std::mem::take(&mut self.escaped), std::mem::take(&mut self.dollar));
            self.out.push(symbol);
            match self.top() {
                Frame::Single if symbol == '\'' => drop(self.frames.pop()),
                Frame::Comment if symbol == '\n' => {
                    self.frames.pop();
                    self.name_follows();
                }
                Frame::Single | Frame::Comment => {}
                Frame::Double if escaped => {}
                Frame::Double => match symbol {
                    '"' => drop(self.frames.pop()),
                    '(' if dollar => self.enter(')'),
                    '`' => self.enter('`'),
                    _ => self.note(symbol),
                },
                Frame::Plain { .. } if escaped => self.in_word = true,
                Frame::Plain { until, parens } => self.plain(symbol, dollar, until, parens),
            }
        }
    }
    fn plain(&mut self, symbol: char, dollar: bool, until: Option<char>, parens: u32) {
        let set_parens = |frames: &mut Vec<Frame>, parens| match frames.last_mut() {
            Some(top) => *top = Frame::Plain { until, parens },
            None => frames.push(Frame::Plain { until, parens }),
        };
        match symbol {
            '(' if dollar => return self.enter(')'),
            '`' if until != Some('`') => return self.enter('`'),
            ')' if parens > 0 => set_parens(&mut self.frames, parens - 1),
            ')' | '`' if until == Some(symbol) => {
                self.frames.pop();
                (self.in_word, self.past_name) = (true, true);
                return;
            }
            '(' => set_parens(&mut self.frames, parens + 1),
            '\'' => self.frames.push(Frame::Single),
            '"' => self.frames.push(Frame::Double),
            '#' if !self.in_word => self.frames.push(Frame::Comment),
            _ => {}
        }
        match symbol {
            ';' | '|' | '&' | '\n' | '(' | ')' => self.name_follows(),
            ' ' | '\t' | '<' | '>' => {
                self.past_name |= self.in_word || matches!(symbol, '<' | '>');
                self.in_word = false;
            }
            _ => self.in_word = true,
        }
        self.note(symbol);
    }
    fn note(&mut self, symbol: char) {
        self.escaped = symbol == '\\';
        self.dollar = symbol == '$';
    }
    fn enter(&mut self, until: char) {
        self.frames.push(Frame::Plain { until: Some(until), parens: 0 });
        self.name_follows();
    }
    fn name_follows(&mut self) {
        (self.in_word, self.past_name) = (false, false);
    }
    /// Puts a parameter where a value stands. `ends`: no word goes on behind it.
    fn value(&mut self, value: &str, ends: bool) -> Result<(), String> {
        if std::mem::take(&mut self.escaped) {
            // A backslash before a value is one.
            self.out.push('\\');
        }
        if std::mem::take(&mut self.dollar) {
            self.out.pop();
            self.out.push_str("\\$");
        }
        let frame = self.top();
        let is_plain = matches!(frame, Frame::Plain { .. });
        let alone = is_plain && ends && !self.in_word;
        if alone && !self.past_name {
            let words = words(value);
            if let Some(word) = read_again(value) {
                return Err(format!(
                    "'{word}' would have a shell read a value: write its name into the step"
                ));
            }
            if words.len() > WORDS_MAX {
                return Err(format!("a command from a variable has {WORDS_MAX} words at most"));
            }
            for (index, word) in words.into_iter().enumerate() {
                self.out.push_str(if index == 0 { "" } else { " " });
                let place = self.place(word);
                self.out.push_str(&format!("\"${{{place}}}\""));
            }
            self.in_word = true;
            return Ok(());
        }
        let place = self.place(value.to_owned());
        self.out.push_str(&match frame {
            // Nothing where there is nothing, as the field has it.
            Frame::Plain { .. } if alone => format!("${{{place}:+\"${{{place}}}\"}}"),
            Frame::Plain { .. } => format!("\"${{{place}}}\""),
            Frame::Double => format!("${{{place}}}"),
            Frame::Single => format!("'\"${{{place}}}\"'"),
            Frame::Comment => String::new(),
        });
        self.in_word |= is_plain;
        Ok(())
    }
    /// The number of the parameter that holds a value.
    fn place(&mut self, value: String) -> usize {
        self.values.push(value);
        self.values.len()
    }
}

/// Whether no word goes on in text that follows.
fn ends_word(text: &str) -> bool {
    text.is_empty() || text.starts_with([' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')'])
}

/// A command that comes whole from a variable, in words: quotes and backslashes keep blanks in one, nothing else has a meaning.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut symbols = text.chars();
    while let Some(symbol) = symbols.next() {
        match (quote, symbol) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(symbol);
                word.get_or_insert_default();
            }
            (Some(with), _) if with == symbol => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(symbols.next()),
            _ => word.get_or_insert_default().push(symbol),
        }
    }
    words.extend(word);
    words
}

/// What in a command line has a shell read its arguments once more.
fn read_again(text: &str) -> Option<&str> {
    if let Some(mark) = ["((", "[["].into_iter().find(|mark| text.contains(mark)) {
        return Some(mark);
    }
    let is_part = |symbol: char| symbol.is_alphanumeric() || "_-./".contains(symbol);
    let words = || text.split(move |symbol| !is_part(symbol)).filter(|word| !word.is_empty());
    let name = |word: &&str| word.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(word) = words().find(|word| READ_AGAIN.contains(&name(word).as_str())) {
        return Some(word);
    }
    let with_c = words().any(|word| word.starts_with('-') && word.contains('c'));
    if let Some(word) = words().find(|word| with_c && READ_AGAIN_WITH_C.contains(&name(word).as_str())) {
        return Some(word);
    }
    // Of each command that a pipe leads to, the words count, because sudo and its like may stand before its name.
    let piped = text.split("||").flat_map(|line| line.split('|').skip(1));
    let piped = piped.flat_map(|to| to.trim_start_matches('&').split([';', '&', '\n']).take(1));
    let mut piped = piped.flat_map(move |command| command.split(move |symbol| !is_part(symbol)));
    let reads = |name: &str| READ_AGAIN_WITH_C.contains(&name) || READ_PIPE.contains(&name);
    piped.find(|word| reads(&name(word)))
}

/// Whether a shell that read it would find nothing but a word or several.
fn is_harmless(value: &str) -> bool {
    value.chars().all(|symbol| symbol.is_alphanumeric() || "_-+.,:/@%= ".contains(symbol))
}

/// How a command came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It ended with this code; `None`: by a signal.
    Exited(Option<i32>),
    /// It was not started, for this reason.
    NotStarted(String),
    /// It runs on by itself.
    LetGo,
}

/// Runs a script to its end and gathers its output when `output` is there.
pub(crate) async fn run(
    call: &Call,
    script: &Script,
    mut output: Option<&mut Vec<u8>>,
) -> Result<Ended, Stop> {
    let want = script.want(output.is_some());
    let link = match call.chan.core(|core| core.services.links.open(want)) {
        Ok(link) => link,
        Err(why) => return Ok(Ended::NotStarted(why)),
    };
    let mut deadline = call.chan.now() + COMMAND_MAX;
    // A command that runs after the call has ended has all its time; one that the end finds running has a little.
    let mut stopped = None;
    let mut over = call.run.ended.get();
    let ended = loop {
        let news = match over {
            true => call.chan.link_news(link, Some(deadline)).await,
            false => match call.chan.while_up(call.chan.link_news(link, Some(deadline))).await {
                Ok(news) => news,
                Err(stop) => {
                    (stopped, over) = (Some(stop), true);
                    deadline = deadline.min(soon(call.chan.now()));
                    continue;
                }
            },
        };
        match news {
            Some(LinkNews::Exited(code)) => break Ended::Exited(code),
            Some(LinkNews::Failed { why, .. }) => break Ended::NotStarted(why),
            Some(LinkNews::Bytes(bytes)) => {
                if let Some(output) = &mut output {
                    let room = OUTPUT_BYTES_MAX.saturating_sub(output.len());
                    output.extend(bytes.into_iter().take(room));
                }
            }
            Some(LinkNews::Open { .. } | LinkNews::Page { .. } | LinkNews::Rows(_) | LinkNews::End) => {}
            None => break Ended::LetGo,
        }
    };
    call.chan.core(|core| core.close_link(link));
    stopped.map_or(Ok(ended), Err)
}

fn soon(now: Instant) -> Instant {
    now + AFTER_END
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{…}` in `line` is a value.
    fn written(line: &str) -> Written {
        let mut written = Written { text: String::new(), values: Some(Vec::new()) };
        for (index, part) in line.split(['{', '}']).enumerate() {
            let from = written.text.len();
            written.text.push_str(part);
            if index % 2 == 1 {
                written.values.as_mut().unwrap().push(from..written.text.len());
            }
        }
        written
    }

    #[test]
    fn a_value_is_a_parameter_wherever_it_stands() {
        for (line, text, values) in [
            ("echo hello > /tmp/x", "echo hello > /tmp/x", &[][..]),
            ("echo {a b}", "echo ${1:+\"${1}\"}", &["a b"]),
            ("echo {}", "echo ${1:+\"${1}\"}", &[""]),
            ("echo {a}{b}", "echo \"${1}\"\"${2}\"", &["a", "b"]),
            ("mv /a/{x y}.wav /b/{x}", "mv /a/\"${1}\".wav /b/\"${2}\"", &["x y", "x"]),
            ("echo \"n={a\"b}\"", "echo \"n=${1}\"", &["a\"b"]),
            ("echo 'n={a'b}'", "echo 'n='\"${1}\"''", &["a'b"]),
            ("echo \\{;}", "echo \\\\\"${1}\"", &[";"]),
            ("echo ${x}", "echo \\$\"${1}\"", &["x"]),
            ("echo \"$(id {u})\"", "echo \"$(id ${1:+\"${1}\"})\"", &["u"]),
            ("echo `id {u}`", "echo `id \"${1}\"`", &["u"]),
            ("echo \"`id -{u}` {v}\"", "echo \"`id -\"${1}\"` ${2}\"", &["u", "v"]),
            ("(cd /a; ls {d})", "(cd /a; ls ${1:+\"${1}\"})", &["d"]),
            ("ls # {d}\nls {e}", "ls # \nls ${2:+\"${2}\"}", &["d", "e"]),
            ("ls a#{d}", "ls a#\"${1}\"", &["d"]),
            (
                "{/bin/echo -n 'a b' c\\ d}",
                "\"${1}\" \"${2}\" \"${3}\" \"${4}\"",
                &["/bin/echo", "-n", "a b", "c d"],
            ),
            ("{/bin/x a;b} {c d}", "\"${1}\" \"${2}\" ${3:+\"${3}\"}", &["/bin/x", "a;b", "c d"]),
            ("true && {x y}", "true && \"${1}\" \"${2}\"", &["x", "y"]),
            ("{d}/bin/x", "\"${1}\"/bin/x", &["d"]),
            ("A={a b} env", "A=\"${1}\" env", &["a b"]),
            ("cat <{f}", "cat <${1:+\"${1}\"}", &["f"]),
        ] {
            let script = Script::new(&written(line)).expect(line);
            assert_eq!(
                (script.text.as_str(), script.values),
                (text, values.iter().map(|v| (*v).to_owned()).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn a_value_that_a_second_shell_would_read_is_refused() {
        for (line, runs) in [
            ("sh -c \"echo {plain-1.2 text}\"", true),
            ("sh -c \"echo {a;b}\"", false),
            ("/bin/bash -lc 'echo {$(id)}'", false),
            ("bash /opt/x.sh {a;b}", true),
            ("su asterisk -c \"x {a'b}\"", false),
            ("ssh host x {a b}", true),
            ("ssh host x {`id`}", false),
            ("eval {x}", true),
            ("eval echo {>/tmp/x}", false),
            ("echo $(( {a[$(id)]} + 1 ))", false),
            ("echo $(( {12} + 1 ))", true),
            ("[[ {a[$(id)]} -eq 1 ]]", false),
            ("{sh -c 'id'}", false),
            ("{eval id}", false),
            ("/opt/fish.sh -c {a;b}", true),
            ("echo {a;b} | sh", false),
            ("echo {a;b} |sudo -n bash -s", false),
            ("echo {plain} | sh", true),
            ("echo /opt/ring {a;b} | at now + 1 min", false),
            ("echo {a;b} | logger -t at.work; sh /opt/x {a;b}", true),
            ("test -e /x || sh /opt/x {a;b}", true),
            ("trap {a;b} EXIT", false),
        ] {
            assert_eq!(Script::new(&written(line)).is_ok(), runs, "{line}");
        }
        assert!(Script::new(&Written { text: "ls".to_owned(), values: None }).is_err());
        assert!(Script::new(&written("ls {a\0b}")).is_err());
    }

    /// Whatever stands in a value, the shell hands it on as it is, in every place it may have in a line.
    #[test]
    fn the_shell_of_this_machine_reads_no_value() {
        let hostile = [
            "x; touch BAD",
            "$(touch BAD)",
            "`touch BAD`",
            "' ; touch BAD ; '",
            "\" ; touch BAD ; \"",
            "a\ntouch BAD",
            "*",
            "~",
            "|| touch BAD",
            "> BAD",
            "${IFS}x",
            "\\",
            "'",
            "\"",
            "-n",
            "a  b",
            "#",
            "é&ü",
            "$1",
            "\\\"; touch BAD; \\\"",
        ];
        let folder = std::env::temp_dir().join(format!("strowger-shell-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for value in hostile {
            for (before, after) in [
                ("printf %s ", ""),
                ("printf %s \"", "\""),
                ("printf %s '", "'"),
                ("printf '%s' \"$(printf %s ", ")\""),
                ("printf %s \"`printf %s ", "`\""),
            ] {
                let text = format!("{before}{value}{after}");
                let place = before.len()..before.len() + value.len();
                let line = Written { text, values: Some(Vec::from([place])) };
                let LinkWant::Program { path, args, .. } = Script::new(&line).unwrap().want(true) else {
                    panic!()
                };
                let ran = std::process::Command::new(path).args(args).current_dir(&folder).output().unwrap();
                assert_eq!(String::from_utf8_lossy(&ran.stdout), value, "{before}{value}{after}: {ran:?}");
                assert!(!folder.join("BAD").exists(), "{before}{value}{after}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
