//! The conversation itself: lines in, answers out, and what the end of the call does to it.

use std::cell::Cell;

use base::Instant;
use call::{AgiChange, AgiCommand, Level, LinkId, LinkNews, Notice, Stop};

use super::table::{self, Answer, Desk};
use super::{AFTER_END_MAX, COMMANDS_PER_TURN, EXIT_MAX, LINE_BYTES_MAX, Status, words};
use crate::{Call, Flow, Outcome};

/// The other side.
pub(super) struct Peer {
    pub(super) link: LinkId,
    /// It is a program, which can be sent a signal; else a server.
    pub(super) is_program: bool,
}

/// Ends the conversation, however its story ends.
struct Open {
    call: Call,
    link: LinkId,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.call.chan.core(|core| core.close_link(self.link));
    }
}

/// What the caller says goes to the script, for as long as this is held.
struct Ear {
    call: Call,
    number: u32,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.call.chan.core(|core| core.monitor_starve(self.call.chan.id(), self.number));
    }
}

/// What comes next.
enum Heard {
    Line(String),
    /// The other side says no more; a program has ended with this code.
    End(Option<i32>),
    /// It failed, said a line that is too long, or nothing for too long after the call's end.
    Broken(String),
    /// The call has ended or goes elsewhere.
    Stopped(Stop),
}

/// A conversation on a call.
pub(super) struct Session {
    desk: Desk,
    peer: Option<(Peer, Open)>,
    incoming: Vec<u8>,
    /// The line that is being read is too long.
    overlong: bool,
    /// Why the call does not go on, once that is known.
    stopped: Option<Stop>,
    /// The recording that feeds the script with the caller's audio.
    ear: Option<Ear>,
    executed: Cell<u64>,
    /// The last command was none, or used wrongly.
    failed: Cell<bool>,
    /// How long the other side may go on, once the call has ended.
    patience: Option<Instant>,
}

impl Session {
    pub(super) fn new(call: Call, peer: Peer) -> Self {
        let open = Open { call: call.clone(), link: peer.link };
        Self { peer: Some((peer, open)), ..Self::unlinked(call) }
    }
    pub(super) fn unlinked(call: Call) -> Self {
        let stopped = call.chan.check().err();
        let desk = Desk::new(call, stopped.is_some());
        Self {
            desk,
            peer: None,
            incoming: Vec::new(),
            overlong: false,
            stopped,
            ear: None,
            executed: Cell::new(0),
            failed: Cell::new(false),
            patience: None,
        }
    }
    fn call(&self) -> &Call {
        &self.desk.call
    }
    /// What the application gives back.
    pub(super) fn outcome(&self) -> Outcome {
        match self.stopped {
            Some(stop) if stop != Stop::Hangup => Err(stop),
            _ if self.desk.moved.get() => Ok(Flow::Jumped),
            _ => Ok(Flow::Continue),
        }
    }

    /// Talks until the other side has said its last, or the call goes elsewhere.
    pub(super) async fn run(&mut self, request: &str, environment: &str) -> Status {
        // One that was over before is no reason to tell the script.
        let dead_before = self.stopped.is_some();
        match self.opened(request).await {
            Ok(()) => {}
            Err(status) => return status,
        }
        self.say(environment.to_owned());
        if self.stopped.is_some() && !dead_before {
            self.tell_end();
        }
        let status = self.talk(request).await;
        match status {
            Status::Success if self.stopped.is_some() && !dead_before => Status::Hangup,
            other => other,
        }
    }

    /// Waits until the program runs or the server has taken the connection.
    async fn opened(&mut self, request: &str) -> Result<(), Status> {
        loop {
            let (not_found, why) = match self.news().await {
                Ok(LinkNews::Open { audio, .. }) => {
                    if let Some(sink) = audio {
                        self.lend_ear(sink);
                    }
                    return Ok(());
                }
                Ok(LinkNews::Failed { not_found, why }) => (not_found, why),
                Ok(LinkNews::End | LinkNews::Exited(_)) => (false, "ended before it began".to_owned()),
                Ok(LinkNews::Bytes(_) | LinkNews::Page { .. } | LinkNews::Rows(_)) => continue,
                Err(Heard::Stopped(Stop::Hangup)) if !self.exits_on_hangup() => continue,
                Err(Heard::Stopped(_)) => return Err(Status::Hangup),
                Err(_) => (false, "nobody answers".to_owned()),
            };
            self.call().log(Level::Warning, &format!("{request}: {why}"));
            return Err(if not_found { Status::NotFound } else { Status::Failure });
        }
    }

    async fn talk(&mut self, request: &str) -> Status {
        let mut in_a_row = 0;
        loop {
            match self.heard().await {
                Heard::Line(line) => {
                    self.debug("Rx", &line);
                    let answer = self.carry_out(&line).await;
                    self.debug("Tx", answer.text.trim_end());
                    self.say(answer.text);
                    in_a_row += 1;
                    if in_a_row >= COMMANDS_PER_TURN {
                        in_a_row = 0;
                        self.call().chan.pause().await;
                    }
                }
                Heard::End(code) => {
                    let well = (matches!(code, Some(0)) || !self.is_program()) && !self.failed.get();
                    self.call().log(
                        Level::Verbose(3),
                        &format!("AGI Script {request} completed, returning {}", code.unwrap_or(0)),
                    );
                    return if well { Status::Success } else { Status::Failure };
                }
                Heard::Broken(why) => {
                    self.call().log(Level::Warning, &format!("{request}: {why}; the conversation ends"));
                    return Status::Failure;
                }
                Heard::Stopped(Stop::Hangup) if !self.exits_on_hangup() => self.tell_end(),
                Heard::Stopped(_) => {
                    self.tell_end();
                    return Status::Hangup;
                }
            }
        }
    }

    /// Carries out the commands of managers.
    pub(super) async fn serve_managers(&mut self, tell: impl Fn(AgiChange)) -> Result<(), Stop> {
        let mut in_a_row = 0;
        loop {
            let AgiCommand { line, id, rights } = self.call().chan.agi_command().await?;
            let before = self.call().run.rights.replace(rights);
            let answer = self.carry_out(&line).await;
            self.call().run.rights.set(before);
            tell(AgiChange::AsyncExec { id, result: answer.text });
            if answer.leave {
                return Ok(());
            }
            in_a_row += 1;
            if in_a_row >= COMMANDS_PER_TURN {
                in_a_row = 0;
                self.call().chan.pause().await;
            }
        }
    }

    async fn carry_out(&self, line: &str) -> Answer {
        let id = self.executed.get() + 1;
        self.executed.set(id);
        let tell = |change| {
            self.call().chan.core(|core| {
                core.notice_of(self.call().chan.id(), |channel| Notice::Agi { channel, change })
            });
        };
        tell(AgiChange::ExecStart { id, command: line.to_owned() });
        let answer = match words::split(line) {
            Some(words) => table::perform(&self.desk, words).await,
            None => Answer::unknown(),
        };
        self.failed.set(matches!(answer.code, 510 | 520));
        tell(AgiChange::ExecEnd { id, command: line.to_owned(), code: answer.code, result: answer.outcome });
        answer
    }

    fn is_program(&self) -> bool {
        self.peer.as_ref().is_some_and(|(peer, _)| peer.is_program)
    }
    fn say(&self, text: String) {
        if let Some((peer, _)) = &self.peer {
            self.call().chan.core(|core| core.services.links.send(peer.link, text.into_bytes()));
        }
    }
    fn debug(&self, direction: &str, text: &str) {
        let chan = &self.call().chan;
        if chan.core(|core| core.agi_debug) {
            let arrow = if direction == "Rx" { "<<" } else { ">>" };
            chan.log(Level::Verbose(0), "AGI", &format!("AGI {direction} {arrow} {text}"));
        }
    }

    /// The next line.
    async fn heard(&mut self) -> Heard {
        // Looked at before what has been said already, so that who says much hears of the end, too.
        if self.stopped.is_none()
            && let Err(stop) = self.call().chan.check()
        {
            self.stop(stop);
            return Heard::Stopped(stop);
        }
        let mut ended = false;
        loop {
            match self.line() {
                Ok(Some(line)) => return Heard::Line(line),
                Ok(None) => {}
                Err(()) => return Heard::Broken(format!("a line of more than {LINE_BYTES_MAX} bytes")),
            }
            let news = if ended { self.exit_code().await } else { self.news().await };
            match news {
                Ok(LinkNews::Bytes(bytes)) => self.incoming.extend(bytes),
                Ok(LinkNews::End) if self.is_program() => ended = true,
                Ok(LinkNews::End) => return Heard::End(None),
                Ok(LinkNews::Exited(code)) => return Heard::End(code),
                Ok(LinkNews::Failed { why, .. }) => return Heard::Broken(why),
                Ok(LinkNews::Open { .. } | LinkNews::Page { .. } | LinkNews::Rows(_)) => {}
                Err(heard) => return heard,
            }
        }
    }
    /// A whole line of what came in.
    fn line(&mut self) -> Result<Option<String>, ()> {
        let Some(end) = self.incoming.iter().position(|byte| *byte == b'\n') else {
            self.overlong |= self.incoming.len() > LINE_BYTES_MAX;
            return if self.overlong { Err(()) } else { Ok(None) };
        };
        if end > LINE_BYTES_MAX {
            return Err(());
        }
        let rest = self.incoming.split_off(end + 1);
        let line = std::mem::replace(&mut self.incoming, rest);
        let text = String::from_utf8_lossy(&line);
        Ok(Some(text.trim_end().to_owned()))
    }
    /// News of the link; stops, once, when the call does.
    async fn news(&mut self) -> Result<LinkNews, Heard> {
        let Some((peer, _)) = &self.peer else { return Ok(LinkNews::End) };
        let link = peer.link;
        let chan = self.call().chan.clone();
        if self.stopped.is_none() {
            return match chan.while_up(chan.link_news(link, None)).await {
                Ok(Some(news)) => Ok(news),
                Ok(None) => Ok(LinkNews::End),
                Err(stop) => {
                    self.stop(stop);
                    Err(Heard::Stopped(stop))
                }
            };
        }
        let deadline = *self.patience.get_or_insert(chan.now() + AFTER_END_MAX);
        chan.link_news(link, Some(deadline))
            .await
            .ok_or_else(|| Heard::Broken("it goes on for too long after the end of the call".to_owned()))
    }
    /// How the program has ended, if that is to be known soon.
    async fn exit_code(&mut self) -> Result<LinkNews, Heard> {
        let Some((peer, _)) = &self.peer else { return Ok(LinkNews::End) };
        let chan = self.call().chan.clone();
        let deadline = chan.now() + EXIT_MAX;
        // One that closes its output and goes on has done its part.
        Ok(chan.link_news(peer.link, Some(deadline)).await.unwrap_or(LinkNews::Exited(Some(0))))
    }
    fn stop(&mut self, stop: Stop) {
        self.stopped = Some(stop);
        self.desk.dead.set(true);
    }
    fn exits_on_hangup(&self) -> bool {
        self.call().get("AGIEXITONHANGUP").is_some_and(|value| crate::say::is_yes(&value))
    }
    /// Tells the other side that the call has ended, unless it asked not to be told.
    fn tell_end(&self) {
        let Some((peer, _)) = &self.peer else { return };
        if self.call().get("AGISIGHUP").is_some_and(|value| is_no(&value)) {
            return;
        }
        if peer.is_program {
            self.call().chan.core(|core| core.services.links.hang_up(peer.link));
        } else {
            self.say("HANGUP\n".to_owned());
        }
    }

    fn lend_ear(&mut self, sink: Box<dyn base::AudioSink>) {
        let begun = self.call().chan.core(|core| core.monitor_feed(self.call().chan.id(), sink));
        match begun {
            Ok(number) => self.ear = Some(Ear { call: self.call().clone(), number }),
            Err(why) => self.call().log(Level::Warning, &format!("the script hears nothing: {why}")),
        }
    }
}

fn is_no(text: &str) -> bool {
    ["no", "false", "n", "f", "0", "off"].iter().any(|word| word.eq_ignore_ascii_case(text.trim()))
}
