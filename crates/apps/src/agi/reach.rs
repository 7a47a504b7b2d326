//! How far a command reaches, for those who let others send some.

use super::words;

/// What a command may touch beside the call itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Nothing.
    Call,
    /// It reads this variable or function.
    Reads(String),
    /// It writes this variable or function.
    Writes(String),
    /// It runs this application.
    Application(String),
    /// Files or the database.
    Outside,
}

/// How far a command's line reaches. One that does not exist reaches nowhere.
pub fn reach_of(line: &str) -> Reach {
    let Some(words) = words::split(line) else { return Reach::Call };
    let Some((row, length)) = super::table::row_of(&words) else { return Reach::Call };
    let word = |index: usize| words.get(length + index).cloned().unwrap_or_default();
    match row.name {
        "EXEC" => Reach::Application(word(0)),
        "GET VARIABLE" => Reach::Reads(word(0)),
        "SET VARIABLE" => Reach::Writes(word(0)),
        "DATABASE GET" | "DATABASE DEL" | "DATABASE DELTREE" | "DATABASE PUT" | "RECORD FILE" => {
            Reach::Outside
        }
        _ => Reach::Call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_beyond_the_call_is_told() {
        for (line, expected) in [
            ("ANSWER", Reach::Call),
            ("STREAM FILE a \"\"", Reach::Call),
            ("nonsense", Reach::Call),
            ("EXEC System x", Reach::Application("System".to_owned())),
            ("exec \"System\" x", Reach::Application("System".to_owned())),
            ("GET VARIABLE FILE(/etc/passwd)", Reach::Reads("FILE(/etc/passwd)".to_owned())),
            ("SET VARIABLE DB(a/b) c", Reach::Writes("DB(a/b)".to_owned())),
            // What its text reaches is judged where it is substituted.
            ("GET FULL VARIABLE ${FILE(/etc/passwd)}", Reach::Call),
            ("DATABASE PUT a b c", Reach::Outside),
            ("DATABASE GET a b", Reach::Outside),
            ("RECORD FILE /etc/x wav # 100", Reach::Outside),
        ] {
            assert_eq!(reach_of(line), expected, "{line}");
        }
    }
}
