//! ExternalIVR: a program or a server says what is heard, and is told of every digit, by lines that are no AGI.
//!
//! `protocol` reads and writes the lines, `session` is the conversation: a story that waits for the call and for the
//! other side at once, so that neither is kept waiting by the other.

mod protocol;
mod session;

use call::{Level, LinkWant};

use crate::agi::{authority_of, program};
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};
use session::{Habits, Session};

/// The port of servers.
const PORT: u16 = 2949;
/// Sounds that wait to be heard: an hour of words.
pub const SOUNDS_MAX: usize = 1024;

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "ExternalIVR",
    module: "app_externalivr",
    synopsis: "Lets a program or a server play sounds and hear of digits at once.",
    syntax: "ExternalIVR(command|ivr://host[:port][(arg1[,arg2[,...]])][,options])",
    description: "\
Runs a program, without a shell, or connects to a server, which says lines of commands and reads lines of events: sounds
are heard one after the other, and every digit is told of while they are. docs/agi.md has commands and events.

command  a program of an absolute path, or of astagidir; ivr://host[:port], a server by TCP (port 2949).
arg…     the program's arguments, and what the command P tells.
options:
  n  a call that is not answered is not answered.
  i  the end of the call is told as I,…,HANGUP, and the other side ends the application by E or H.
  d  runs on a call that has ended as well, and does not look for the end of one that goes on.
The call is ended when the program or the server ends without E, and when there is none. After the end of the call the
other side has five minutes.",
    run: Run::Story(|call, text| Box::pin(async move { run(call, &text).await })),
}];

/// Whom to talk to, and with which words.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// As it was written, without its arguments.
    name: String,
    /// Host and port of a server.
    server: Option<(String, u16)>,
    words: Vec<String>,
}

impl Target {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, words) = match text.split_once('(') {
            Some((name, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| format!("'{text}' lacks a ')'"))?;
                (name.trim(), args::split(inner))
            }
            None => (text, Vec::new()),
        };
        if name.is_empty() {
            return Err("ExternalIVR requires a command to execute".to_owned());
        }
        let (scheme, rest) = name.split_at_checked(6).unwrap_or((name, ""));
        let server = if scheme.eq_ignore_ascii_case("ivr://") {
            let (host, port) = authority_of(rest.trim_end_matches('/'))
                .filter(|(host, _)| !host.contains('/'))
                .ok_or_else(|| format!("'{name}' names no host"))?;
            Some((host, port.unwrap_or(PORT)))
        } else {
            if name.split('/').any(|part| part == "..") || name.contains(['\0', '\n', '\r']) {
                return Err(format!("the program '{name}' is not started: a name must not lead upwards"));
            }
            None
        };
        Ok(Self { name: name.to_owned(), server, words })
    }
    fn want(&self, call: &Call) -> LinkWant {
        match &self.server {
            Some(server) => LinkWant::Server { hosts: vec![server.clone()] },
            None => program(call, &self.name, &self.words, false).0,
        }
    }
}

async fn run(call: Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let options = dialplan::Options::parse(args::nth(&parts, 1), "nid");
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("ExternalIVR has no option '{letter}'"));
    }
    let target = match Target::parse(args::nth(&parts, 0)) {
        Ok(target) => target,
        Err(why) => {
            call.log(Level::Error, &why);
            return Ok(Flow::Hangup);
        }
    };
    let habits = Habits { ignores_end: options.has('i'), is_dead: options.has('d') };
    if let (Err(_), false) = (call.chan.check(), habits.is_dead) {
        call.log(Level::Warning, "the call has ended; with option d ExternalIVR runs all the same");
        return Ok(Flow::Continue);
    }
    if !options.has('n') && call.chan.check().is_ok() {
        call.answer_for_sound().await?;
    }
    let want = target.want(&call);
    let opened = call.chan.core(|core| core.services.links.open(want));
    let link = match opened {
        Ok(link) => link,
        Err(why) => {
            call.log(Level::Error, &format!("{}: {why}", target.name));
            return Ok(Flow::Hangup);
        }
    };
    let parameters = core::iter::once(&target.name).chain(&target.words);
    let parameters = parameters.map(String::as_str).collect::<Vec<_>>().join(",");
    Session::new(call, link, habits, parameters).run(&target.name).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_program_or_a_server_with_its_words() {
        let some = |name: &str, server: Option<(&str, u16)>, words: &[&str]| {
            let server = server.map(|(host, port)| (host.to_owned(), port));
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Some(Target { name: name.to_owned(), server, words })
        };
        for (text, expected) in [
            ("/usr/bin/foo", some("/usr/bin/foo", None, &[])),
            ("/usr/bin/foo(arg1,a b)", some("/usr/bin/foo", None, &["arg1", "a b"])),
            ("own.py", some("own.py", None, &[])),
            ("ivr://h", some("ivr://h", Some(("h", 2949)), &[])),
            ("IVR://h:99(a,b)", some("IVR://h:99", Some(("h", 99)), &["a", "b"])),
            ("ivr://[::1]:99/", some("ivr://[::1]:99/", Some(("::1", 99)), &[])),
            ("", None),
            ("(a)", None),
            ("/usr/bin/foo(a", None),
            ("../bin/sh", None),
            ("/opt/../bin/sh(a)", None),
            ("ivr://", None),
            ("ivr://h:0", None),
            ("ivr://h/x", None),
        ] {
            assert_eq!(Target::parse(text).ok(), expected, "{text}");
        }
    }
}
