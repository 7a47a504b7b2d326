//! The commands: one row is a name, how it is used, whether a call that has ended may still do it, and its code.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use call::Stop;

use super::commands::{call as on_call, data, place, record, sound, speech, text};
use crate::Call;

/// What a command gets: the call, and what the conversation remembers of it.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) call: Call,
    /// The call has ended.
    pub(super) dead: Rc<Cell<bool>>,
    /// The call was sent to another step: the dialplan goes on there, not after this one.
    pub(super) moved: Rc<Cell<bool>>,
}

impl Desk {
    pub(super) fn new(call: Call, dead: bool) -> Self {
        Self { call, dead: Rc::new(Cell::new(dead)), moved: Rc::default() }
    }
}

/// What a command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// `200 result=` and this.
    Result(String),
    /// Lines before that.
    Lines(String),
    /// The command was used wrongly.
    Usage,
    /// `200 result=0`, and managers steer no more.
    Leave,
}

impl Reply {
    pub(super) fn number(value: i64) -> Self {
        Self::Result(value.to_string())
    }
    /// `1 (value)`, or `0` without one.
    pub(super) fn value(value: Option<String>) -> Self {
        Self::Result(value.map_or_else(|| "0".to_owned(), |value| format!("1 ({value})")))
    }
}

impl From<Result<i64, Stop>> for Reply {
    /// The call's end is `-1`.
    fn from(result: Result<i64, Stop>) -> Self {
        Self::number(result.unwrap_or(-1))
    }
}

/// A command that waits.
pub(super) type Replying = Pin<Box<dyn Future<Output = Reply>>>;

/// How a command is carried out; it gets the words after its name.
#[derive(Clone, Copy)]
pub(super) enum Act {
    /// It never waits.
    Now(fn(&Desk, &[String]) -> Reply),
    /// It may wait.
    Story(fn(Desk, Vec<String>) -> Replying),
}

/// One command.
pub struct CommandRow {
    /// Its words, in capitals.
    pub name: &'static str,
    /// One line.
    pub synopsis: &'static str,
    /// Its words after the name.
    pub syntax: &'static str,
    /// What it does and answers.
    pub description: &'static str,
    /// Works on a call that has ended.
    pub dead: bool,
    act: Act,
    /// Fewest and most words after the name.
    words: (usize, usize),
}

/// What a command is answered.
pub(super) struct Answer {
    pub(super) text: String,
    /// What managers are told: that of the answer, or -1 where the command has failed.
    pub(super) code: i32,
    pub(super) outcome: &'static str,
    /// Managers steer no more.
    pub(super) leave: bool,
}

impl Answer {
    fn new(code: i32, outcome: &'static str, text: String) -> Self {
        Self { text, code, outcome, leave: false }
    }
    pub(super) fn unknown() -> Self {
        Self::new(510, "Invalid or unknown command", "510 Invalid or unknown command\n".to_owned())
    }
}

/// The row whose words a line begins with, and how many they are; the longest name counts.
pub(super) fn row_of(words: &[String]) -> Option<(&'static CommandRow, usize)> {
    let fits = |row: &&CommandRow| {
        let mut wanted = row.name.split(' ');
        let length = row.name.split(' ').count();
        words.len() >= length
            && words
                .iter()
                .take(length)
                .all(|word| wanted.next().is_some_and(|w| w.eq_ignore_ascii_case(word)))
    };
    let found = ROWS.iter().filter(fits).max_by_key(|row| row.name.len())?;
    Some((found, found.name.split(' ').count()))
}

/// The row of a command's name, any case.
pub fn find(name: &str) -> Option<&'static CommandRow> {
    let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
    row_of(&words).filter(|(_, length)| *length == words.len()).map(|(row, _)| row)
}

/// Carries a command out.
pub(super) async fn perform(desk: &Desk, words: Vec<String>) -> Answer {
    let Some((row, length)) = row_of(&words) else { return Answer::unknown() };
    if desk.dead.get() && !row.dead {
        let text = "511 Command Not Permitted on a dead channel or intercept routine\n".to_owned();
        return Answer::new(511, "Failure", text);
    }
    let rest: Vec<String> = words.into_iter().skip(length).collect();
    let (fewest, most) = row.words;
    let reply = if rest.len() < fewest || rest.len() > most {
        Reply::Usage
    } else {
        match row.act {
            Act::Now(act) => act(desk, &rest),
            Act::Story(act) => act(desk.clone(), rest).await,
        }
    };
    match reply {
        Reply::Result(result) => {
            // What is asked of a channel that is not there has not failed.
            let may_fail = !matches!(row.name, "CHANNEL STATUS" | "HANGUP");
            let (code, outcome) = match result.strip_prefix('-').and_then(|text| text.chars().next()) {
                Some('1') if may_fail => (-1, "Failure"),
                Some('2') => (200, "Unknown Result"),
                _ => (200, "Success"),
            };
            Answer::new(code, outcome, format!("200 result={}\n", one_line(&result)))
        }
        Reply::Lines(text) => Answer::new(200, "Success", text),
        Reply::Usage => {
            let text = format!(
                "520-Invalid command syntax.  Proper usage follows:\n Usage: {} {}\n\t{}\n520 End of proper usage.\n",
                row.name,
                row.syntax,
                row.description.replace('\n', "\n\t")
            );
            Answer::new(520, "Usage", text)
        }
        Reply::Leave => Answer { leave: true, ..Answer::new(200, "Success", "200 result=0\n".to_owned()) },
    }
}

/// A value that holds line ends would look like further answers.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }).collect()
}

/// Rows of commands, one after the other: name, words, works when dead, code; synopsis; syntax; description.
macro_rules! rows {
    ($($name:literal $fewest:literal..$most:literal $dead:literal $act:expr, $synopsis:literal, $syntax:literal, $description:literal;)*) => {
        &[$(CommandRow {
            name: $name,
            words: ($fewest, $most),
            dead: $dead,
            act: $act,
            synopsis: $synopsis,
            syntax: $syntax,
            description: $description,
        }),*]
    };
}

/// Every command, in the order of the alphabet.
pub const ROWS: &[CommandRow] = rows! {
    "ANSWER" 0..0 false Act::Now(on_call::answer), "Answers the call.", "", "Answers 0, or -1 when the call has ended.";
    "ASYNCAGI BREAK" 0..0 true Act::Now(|_, _| Reply::Leave), "Lets the dialplan go on.", "",
        "Ends AGI(agi:async); in other conversations it does nothing.";
    "CHANNEL STATUS" 0..1 false Act::Now(on_call::status), "Tells the state of a channel.", "[channelname]",
        "Of this channel or another: 0 down, 1 reserved, 2 off hook, 3 dialled, 4 ring, 5 ringing, 6 up, 7 busy;\n-1 when there is none of that name.";
    "CONTROL STREAM FILE" 2..7 false Act::Story(sound::control_stream),
        "Plays a sound that keys wind.", "filename escape_digits [skipms] [ffchar] [rewchr] [pausechr] [offsetms]",
        "Keys wind by skipms (3000) with ffchar (#) and rewchr (*), and pause with pausechr. An escape digit ends it.\nAnswers the digit's code, 0 at the end, -1 on failure; then endpos=, milliseconds. Sets CPLAYBACKSTATUS,\nCPLAYBACKOFFSET and CPLAYBACKSTOPKEY.";
    "DATABASE DEL" 2..2 true Act::Now(data::db_del), "Removes a key of the database.", "family key", "Answers 1, also when there was none.";
    "DATABASE DELTREE" 1..2 true Act::Now(data::db_deltree), "Removes keys of the database.", "family [keytree]",
        "Answers 1, also when there were none.";
    "DATABASE GET" 2..2 true Act::Now(data::db_get), "Gets a value of the database.", "family key",
        "Answers 1 and the value in parentheses, or 0.";
    "DATABASE PUT" 3..3 true Act::Now(data::db_put), "Sets a value of the database.", "family key value", "Answers 1, or 0 when it cannot be kept.";
    "EXEC" 1..2 true Act::Story(on_call::exec), "Runs an application.", "application [options]",
        "Answers 0, -1 when the application ends the call, -2 when there is none of that name.";
    "GET DATA" 1..3 false Act::Story(sound::get_data), "Plays a sound and reads digits.", "file [timeout] [maxdigits]",
        "Digits up to #, or maxdigits of them; timeout in milliseconds is that of each digit. Answers the digits, with\n(timeout) when that ended them; -1 when the call has ended.";
    "GET FULL VARIABLE" 1..2 true Act::Now(data::get_full), "Substitutes an expression.", "expression [channelname]",
        "Answers 1 and the text in parentheses, or 0 when there is no such channel.";
    "GET OPTION" 2..3 false Act::Story(sound::get_option), "Plays a sound and waits for a digit.", "filename escape_digits [timeout]",
        "Waits for timeout milliseconds after the sound (5000). Answers the digit's code or 0, then endpos=; -1 on failure.";
    "GET VARIABLE" 1..1 true Act::Now(data::get_variable), "Gets a variable or a function's value.", "variablename",
        "Answers 1 and the value in parentheses, or 0 when it is not set.";
    "GOSUB" 3..4 false Act::Story(place::gosub), "Runs a routine of the dialplan.", "context extension priority [arguments]",
        "Answers 0 after its Return, -1 when there is none or it ended the call.";
    "HANGUP" 0..1 false Act::Now(on_call::hangup), "Ends this call or another.", "[channelname]", "Answers 1, or -1 when there is no such channel.";
    "NOOP" 0..128 true Act::Now(|_, _| Reply::number(0)), "Does nothing.", "", "Answers 0.";
    "RECEIVE CHAR" 1..1 false Act::Story(text::receive_char), "Receives a character of text.", "timeout",
        "Waits for timeout milliseconds, 0: for ever. Answers its code, or -1 (hangup), also when the time is over.";
    "RECEIVE TEXT" 1..1 false Act::Story(text::receive_text), "Receives text.", "timeout",
        "Waits for timeout milliseconds, 0: for ever. Answers 1 and the text in parentheses, or -1.";
    "RECORD FILE" 4..7 false Act::Story(record::record_file), "Records the caller.",
        "filename format escape_digits timeout [offset_samples] [beep] [s=silence]",
        "Until an escape digit, timeout milliseconds (-1: none), s=seconds of silence or the end of the call.\nAnswers the digit's code (dtmf), 0 (timeout), -1 (hangup) or -1 (writefile); then endpos=, samples.";
    "SAY ALPHA" 2..2 false Act::Story(sound::say_alpha), "Spells a text.", "string escape_digits", "Answers 0, the code of the digit that ended it, or -1.";
    "SAY DATE" 2..2 false Act::Story(sound::say_date), "Says a date.", "date escape_digits",
        "date is seconds since 1970. Answers 0, the code of the digit that ended it, or -1.";
    "SAY DATETIME" 2..4 false Act::Story(sound::say_datetime), "Says a moment.", "time escape_digits [format] [timezone]",
        "time is seconds since 1970, format as in SayUnixTime. Answers 0, the code of the digit that ended it, or -1.";
    "SAY DIGITS" 2..2 false Act::Story(sound::say_digits), "Says digits.", "number escape_digits", "Answers 0, the code of the digit that ended it, or -1.";
    "SAY NUMBER" 2..3 false Act::Story(sound::say_number), "Says a number.", "number escape_digits [gender]",
        "Answers 0, the code of the digit that ended it, or -1.";
    "SAY PHONETIC" 2..2 false Act::Story(sound::say_phonetic), "Spells a text in the phonetic alphabet.", "string escape_digits",
        "Answers 0, the code of the digit that ended it, or -1.";
    "SAY TIME" 2..2 false Act::Story(sound::say_time), "Says a time of day.", "time escape_digits",
        "time is seconds since 1970. Answers 0, the code of the digit that ended it, or -1.";
    "SEND IMAGE" 1..1 false Act::Now(|_, _| Reply::number(0)), "Sends an image, where a channel can.", "image", "No channel can: answers 0.";
    "SEND TEXT" 1..1 false Act::Now(text::send_text), "Sends text.", "text", "Answers 0, also where the channel takes no text.";
    "SET AUTOHANGUP" 1..1 false Act::Now(on_call::autohangup), "Ends the call after a time.", "time", "time in seconds, 0: not. Answers 0.";
    "SET CALLERID" 1..128 false Act::Now(on_call::callerid), "Sets the caller id.", "number", "One word: \"\\\"name\\\" <number>\", or a number; what follows it is left alone. Answers 1.";
    "SET CONTEXT" 1..1 false Act::Now(place::context), "Sets where the dialplan goes on: the context.", "context", "Answers 0.";
    "SET EXTENSION" 1..1 false Act::Now(place::extension), "Sets where the dialplan goes on: the extension.", "extension", "Answers 0.";
    "SET MUSIC" 1..2 false Act::Story(sound::set_music), "Turns music on hold on or off.", "on|off [class]", "Answers 0.";
    "SET PRIORITY" 1..1 false Act::Now(place::priority), "Sets where the dialplan goes on: the priority.", "priority",
        "A number or a label. Answers 0.";
    "SET VARIABLE" 2..2 true Act::Now(data::set_variable), "Sets a variable or a function.", "variablename value", "Answers 1.";
    "SPEECH ACTIVATE GRAMMAR" 1..1 false Act::Now(speech::unavailable), "Needs a recogniser of speech.", "grammar_name", "There is none: answers 0.";
    "SPEECH CREATE" 1..1 false Act::Now(speech::unavailable), "Needs a recogniser of speech.", "engine", "There is none: answers 0.";
    "SPEECH DEACTIVATE GRAMMAR" 1..1 false Act::Now(speech::unavailable), "Needs a recogniser of speech.", "grammar_name", "There is none: answers 0.";
    "SPEECH DESTROY" 0..0 true Act::Now(speech::unavailable), "Needs a recogniser of speech.", "", "There is none: answers 0.";
    "SPEECH LOAD GRAMMAR" 2..2 false Act::Now(speech::unavailable), "Needs a recogniser of speech.", "grammar_name path_to_grammar", "There is none: answers 0.";
    "SPEECH RECOGNIZE" 2..3 false Act::Now(speech::unavailable), "Needs a recogniser of speech.", "prompt timeout [offset]", "There is none: answers 0.";
    "SPEECH SET" 2..2 false Act::Now(speech::unavailable), "Needs a recogniser of speech.", "name value", "There is none: answers 0.";
    "SPEECH UNLOAD GRAMMAR" 1..1 true Act::Now(speech::unavailable), "Needs a recogniser of speech.", "grammar_name", "There is none: answers 0.";
    "STREAM FILE" 2..3 false Act::Story(sound::stream_file), "Plays a sound.", "filename escape_digits [sample_offset]",
        "Answers 0, the code of the digit that ended it, or -1; then endpos=, samples of 8 kHz.";
    "TDD MODE" 1..1 false Act::Now(|_, _| Reply::number(0)), "Turns text telephony on, where a channel can.", "on|off|mate", "No channel can: answers 0.";
    "VERBOSE" 1..2 true Act::Now(data::verbose), "Writes a line to the verbose log.", "message [level]", "Answers 1.";
    "WAIT FOR DIGIT" 1..1 false Act::Story(sound::wait_for_digit), "Waits for a digit.", "timeout",
        "timeout in milliseconds, -1: for ever. Answers the digit's code, 0 when none came, -1 when the call has ended.";
};
