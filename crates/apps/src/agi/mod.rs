//! AGI: a program, a server or a manager steers a call line by line.
//!
//! A conversation is a story like any other: it waits for the other side and for the call, and nobody waits for it.
//! `words` cuts lines, `table` lists the commands, `commands` carries them out, `environment` says who calls.

mod commands;
mod environment;
mod reach;
mod session;
mod table;
mod target;
mod words;

use call::{AgiChange, LinkWant, Notice, Stop};

pub use reach::{Reach, reach_of};
pub use table::{CommandRow, ROWS as COMMANDS, find as find_command};
pub(crate) use target::{authority_of, program};

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};
use session::{Peer, Session};
use target::Target;

/// Longest line that a script or a server may say: far above any command in use. A longer one ends the conversation.
pub const LINE_BYTES_MAX: usize = 16 * 1024;
/// Words of one command, as many as an application has arguments.
pub const WORDS_MAX: usize = 128;
/// Commands that are answered without waiting before other calls have their turn.
pub const COMMANDS_PER_TURN: u32 = 50;
/// How long a script may go on with a call that has ended: writing down what happened, not more.
pub const AFTER_END_MAX: core::time::Duration = core::time::Duration::from_secs(300);
/// How long the end of a program is waited for that has closed its output.
pub const EXIT_MAX: core::time::Duration = core::time::Duration::from_secs(10);

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "AGI",
        module: "res_agi",
        synopsis: "Lets a program, a server or a manager steer the call.",
        syntax: "AGI(command[,arg1[,arg2[,...]]])",
        description: "\
Runs a program of astagidir, or one of an absolute path, without a shell; it reads what it should know from its standard
input and says AGI commands on its standard output. core show application EAGI and `agi show commands` tell more.

command  a program; agi://host[:port]/script, a server by TCP (port 4573); agi:async, managers with the action AGI.
arg…     the program's arguments, and agi_arg_1 and so on.
Variables that are looked at: AGISIGHUP=no keeps SIGHUP and the line HANGUP from the other side when the call ends;
AGIEXITONHANGUP=yes ends the conversation then.
Sets AGISTATUS (SUCCESS FAILURE NOTFOUND HANGUP). A name with .. in it is not found.",
        run: Run::Story(|call, text| Box::pin(async move { run(&call, &text, false).await })),
    },
    AppRow {
        name: "EAGI",
        module: "res_agi",
        synopsis: "As AGI, for a program that hears the caller.",
        syntax: "EAGI(command[,arg1[,arg2[,...]]])",
        description: "\
As AGI. What the caller says can be read from descriptor 3: linear samples of 16 bits at 8 kHz, as the machine has them.
What the program does not read in time is lost. Only for programs.",
        run: Run::Story(|call, text| Box::pin(async move { run(&call, &text, true).await })),
    },
    AppRow {
        name: "DeadAGI",
        module: "res_agi",
        synopsis: "As AGI.",
        syntax: "DeadAGI(command[,arg1[,arg2[,...]]])",
        description: "As AGI, which knows by itself when the call has ended.",
        run: Run::Story(|call, text| Box::pin(async move { run(&call, &text, false).await })),
    },
];

/// How a conversation came out, in the words of `AGISTATUS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Success,
    Failure,
    NotFound,
    Hangup,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::NotFound => "NOTFOUND",
            Self::Hangup => "HANGUP",
        }
    }
}

async fn run(call: &Call, text: &str, audio: bool) -> Outcome {
    let parts = args::split(text);
    let words: Vec<String> = parts.iter().skip(1).cloned().collect();
    let (status, flow) = match Target::parse(args::nth(&parts, 0)) {
        Ok(Target::Managers) => managers(call, &words).await,
        Ok(target) => converse(call, target, &words, audio).await,
        Err(why) => {
            call.log(call::Level::Error, &why);
            (Status::NotFound, Ok(Flow::Continue))
        }
    };
    call.set("AGISTATUS", status.word());
    flow
}

/// Talks to a program or a server.
async fn converse(call: &Call, target: Target, words: &[String], audio: bool) -> (Status, Outcome) {
    let network = target.script().map(str::to_owned);
    let found = match target.service() {
        None => Vec::new(),
        Some(name) => match target::servers(call, name).await {
            Ok(found) => found,
            Err(stop) => return (Status::Hangup, Err(stop)),
        },
    };
    let (want, request) = match target.want(call, words, audio, found) {
        Ok(want) => want,
        Err(why) => {
            call.log(call::Level::Warning, &why);
            return (Status::Failure, Ok(Flow::Continue));
        }
    };
    let is_program = matches!(want, LinkWant::Program { .. });
    let opened = call.chan.core(|core| core.services.links.open(want));
    let link = match opened {
        Ok(link) => link,
        Err(why) => {
            call.log(call::Level::Error, &format!("{request}: {why}"));
            return (Status::Failure, Ok(Flow::Continue));
        }
    };
    let environment =
        environment::Environment { request: &request, network: network.as_deref(), enhanced: audio, words };
    let block = environment.block(call);
    let mut session = Session::new(call.clone(), Peer { link, is_program });
    let status = session.run(&request, &block).await;
    (status, session.outcome())
}

/// Lets managers steer, until one says `ASYNCAGI BREAK` or the call ends.
async fn managers(call: &Call, words: &[String]) -> (Status, Outcome) {
    let environment =
        environment::Environment { request: "async", network: None, enhanced: false, words }.block(call);
    let tell = |change| {
        call.chan.core(|core| core.notice_of(call.chan.id(), |channel| Notice::Agi { channel, change }));
    };
    if call.chan.with(|c| c.agi = Some(call::AgiQueue::default())).is_err() {
        return (Status::Failure, Err(Stop::Hangup));
    }
    tell(AgiChange::AsyncStart(environment));
    let mut session = Session::unlinked(call.clone());
    let ended = session.serve_managers(tell).await;
    let _ = call.chan.with(|c| c.agi = None);
    tell(AgiChange::AsyncEnd);
    match ended {
        Ok(()) => (Status::Success, session.outcome()),
        Err(stop) => (Status::Hangup, Err(stop)),
    }
}
