//! What a program or a server of ExternalIVR says, line by line, and how it is spoken to.

/// What it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// `S`: this sound, and nothing that was to be heard before.
    Play(String),
    /// `A`: this sound after all others.
    Append(String),
    /// `I`: silence.
    Interrupt,
    /// `E`: it has done its part, for this reason.
    Exit(String),
    /// `H`: the call is to end, for this reason.
    HangUp(String),
    /// `O`: whether a digit ends what is heard.
    AutoClear(bool),
    /// `T`: the call is to be answered.
    Answer,
    /// `V`: variables and their values.
    Set(Vec<(String, String)>),
    /// `G`: values of these.
    Get(Vec<String>),
    /// `L`: a line for the log.
    Log(String),
    /// `P`: what it was started with.
    Parameters,
}

impl Command {
    /// Reads a line without its end; `None`: it is none, or one that lacks something.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (tag, data) = line.split_once(',').unwrap_or((line, ""));
        let text = || data.to_owned();
        let named = || Some(data.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
        Some(match tag.trim() {
            "S" => Self::Play(named()?),
            "A" => Self::Append(named()?),
            "I" => Self::Interrupt,
            "E" => Self::Exit(text()),
            "H" => Self::HangUp(text()),
            "O" => match data.trim() {
                "autoclear" => Self::AutoClear(true),
                "noautoclear" => Self::AutoClear(false),
                _ => return None,
            },
            "T" => Self::Answer,
            "V" => {
                let pairs = data.split(',').map(|pair| {
                    let (name, value) = pair.split_once('=')?;
                    let name = name.trim();
                    (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
                });
                Self::Set(pairs.collect::<Option<_>>()?)
            }
            "G" => {
                let names = data.split(',').map(str::trim).filter(|name| !name.is_empty());
                Self::Get(Some(names.map(str::to_owned).collect::<Vec<_>>()).filter(|all| !all.is_empty())?)
            }
            "L" => Self::Log(text()),
            "P" => Self::Parameters,
            _ => return None,
        })
    }
}

/// A line that tells of something: `tag,seconds[,data]`. A control character in the data, which a caller may have
/// chosen, is a blank: it cannot begin a line of its own.
pub(super) fn event(tag: char, seconds: i64, data: Option<&str>) -> String {
    let mut line = format!("{tag},{seconds}");
    if let Some(data) = data {
        line.push(',');
        line.extend(data.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }
    line.push('\n');
    line
}

/// Bytes that came, cut into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    /// The next line that is whole; the error: it is longer than `most` bytes.
    pub(super) fn next(&mut self, most: usize) -> Result<Option<String>, ()> {
        match self.bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) if end <= most => {
                let rest = self.bytes.split_off(end + 1);
                let line = std::mem::replace(&mut self.bytes, rest);
                Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()))
            }
            None if self.bytes.len() <= most => Ok(None),
            Some(_) | None => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_read_and_what_is_none_is_not() {
        let text = |text: &str| text.to_owned();
        let pairs = |pairs: &[(&str, &str)]| {
            Some(Command::Set(pairs.iter().map(|(name, value)| (text(name), text(value))).collect()))
        };
        for (line, expected) in [
            ("S,tt-monkeys", Some(Command::Play(text("tt-monkeys")))),
            ("S, /opt/sounds/a ", Some(Command::Play(text("/opt/sounds/a")))),
            ("S,", None),
            ("S", None),
            ("A,b,c", Some(Command::Append(text("b,c")))),
            ("I,1795262400", Some(Command::Interrupt)),
            ("I", Some(Command::Interrupt)),
            ("E,all done, thank you", Some(Command::Exit(text("all done, thank you")))),
            ("E", Some(Command::Exit(text("")))),
            ("H,no", Some(Command::HangUp(text("no")))),
            ("O,autoclear", Some(Command::AutoClear(true))),
            ("O,noautoclear", Some(Command::AutoClear(false))),
            ("O,other", None),
            ("T,1795262400", Some(Command::Answer)),
            ("V,A=1", pairs(&[("A", "1")])),
            ("V,A=1,B=x y,C=", pairs(&[("A", "1"), ("B", "x y"), ("C", "")])),
            ("V,A=1=2", pairs(&[("A", "1=2")])),
            ("V,A", None),
            ("V,=1", None),
            ("V", None),
            ("G,A", Some(Command::Get(vec![text("A")]))),
            ("G,A, B ,", Some(Command::Get(vec![text("A"), text("B")]))),
            ("G,", None),
            ("L,hello, world", Some(Command::Log(text("hello, world")))),
            ("P,1795262400", Some(Command::Parameters)),
            ("s,tt-monkeys", None),
            ("Q,1", None),
            ("SET VARIABLE a b", None),
            ("", None),
        ] {
            assert_eq!(Command::parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_a_caller_is_called() {
        for (tag, data, expected) in [
            ('5', None, "5,1795262400\n"),
            ('Z', Some(""), "Z,1795262400,\n"),
            ('G', Some("N=Eve\nH,1"), "G,1795262400,N=Eve H,1\n"),
        ] {
            assert_eq!(event(tag, 1_795_262_400, data), expected);
        }
    }

    #[test]
    fn lines_come_in_any_portions_and_none_is_too_long() {
        let mut lines = Lines::default();
        for portion in ["S,", "a\r\nA,b", "\n\nG,\u{fc}", "x\n"] {
            lines.push(portion.as_bytes());
        }
        let mut read = Vec::new();
        while let Ok(Some(line)) = lines.next(8) {
            read.push(line);
        }
        assert_eq!(read, ["S,a", "A,b", "", "G,\u{fc}x"]);
        assert_eq!(lines.next(8), Ok(None));
        lines.push(b"12345678\n");
        assert_eq!(lines.next(8), Ok(Some("12345678".to_owned())));
        for long in ["123456789", "123456789\n"] {
            let mut lines = Lines::default();
            lines.push(long.as_bytes());
            assert_eq!(lines.next(8), Err(()), "{long:?}");
        }
    }
}
