//! Text messages: MessageSend, and what `MESSAGE()` and `MESSAGE_DATA()` show of the message that runs the dialplan.

use std::rc::Rc;

use call::{ChanEvent, Level, Sending, Shard, TextMessage};
use dialplan::Fault;

use crate::call_ctx::args;
use crate::functions::Read;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Technologies by the word before the colon of a destination.
const PROTOCOLS: &[(&str, &str)] = &[("pjsip", "PJSIP"), ("sip", "PJSIP")];

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "SendText",
        module: "app_sendtext",
        synopsis: "Sends a text to the caller.",
        syntax: "SendText([text])",
        description: "\
Sends text to the other side; of a bridge, to the other party. SENDTEXT_BODY goes before the argument; \\n and the like in it
are what they stand for. SENDTEXT_CONTENT_TYPE is its type (text/plain), SENDTEXT_FROM_DISPLAYNAME and SENDTEXT_TO_DISPLAYNAME
are names in From and To, by PJSIP only. These variables are taken away.
Sets SENDTEXTTYPE (NONE BASIC ENHANCED) and SENDTEXTSTATUS (SUCCESS FAILURE UNSUPPORTED).",
        run: Run::Now(send_text),
    },
    AppRow {
        name: "ReceiveText",
        module: "app_sendtext",
        synopsis: "Waits for a text of the caller.",
        syntax: "ReceiveText([timeout])",
        description: "\
Waits for a text, for timeout seconds, which may have a fraction, or for ever (0). Digits and sound do not end it. Does not
answer. Sets RECEIVETEXTSTATUS (SUCCESS FAILURE) and RECEIVETEXTMESSAGE.",
        run: Run::Story(|call, text| Box::pin(async move { receive_text(&call, &text).await })),
    },
    AppRow {
        name: "MessageSend",
        module: "pbx_builtins",
        synopsis: "Sends the text message that the channel has.",
        syntax: "MessageSend(destination[,from[,to]])",
        description: "\
Sends the body that MESSAGE(body) shows or was set to.

destination  pjsip:endpoint, pjsip:number@endpoint, pjsip:endpoint/sip:uri, or pjsip:sip:uri by default_outbound_endpoint.
from         who it is from (default: MESSAGE(from)); from_user and from_domain of the endpoint win.
to           what MESSAGE(to) is from here on.
Data that was set with MESSAGE_DATA() goes out as headers. Sets MESSAGE_SEND_STATUS: SUCCESS, INVALID_PROTOCOL,
INVALID_URI, FAILURE.",
        run: Run::Now(send_app),
    },
];

/// What SendText reads, and takes away.
const SEND_TEXT_VARIABLES: [&str; 4] =
    ["SENDTEXT_BODY", "SENDTEXT_CONTENT_TYPE", "SENDTEXT_FROM_DISPLAYNAME", "SENDTEXT_TO_DISPLAYNAME"];

fn send_text(call: &Call, text: &str) -> Outcome {
    let [body, kind, from, to] = SEND_TEXT_VARIABLES.map(|name| call.get(name).unwrap_or_default());
    let body = unescape(if body.is_empty() { text } else { &body });
    let name = call.chan.name();
    let tech = name.split_once('/').map_or("", |(tech, _)| tech);
    let is_plain = kind.is_empty() || kind.to_ascii_lowercase().starts_with("text/");
    let own = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (kind, status) = match tech {
        "PJSIP" => {
            let text = call::RichText { body, kind: own(&kind), from_name: own(&from), to_name: own(&to) };
            let sent = call
                .chan
                .shard()
                .with_tech(call.chan.id(), |tech, core| tech.send_rich_text(core, call.chan.id(), &text));
            ("ENHANCED", if sent == Some(true) { "SUCCESS" } else { "FAILURE" })
        }
        _ if !is_plain => ("BASIC", "FAILURE"),
        _ => {
            let sent = call
                .chan
                .shard()
                .with_tech(call.chan.id(), |tech, core| tech.send_text(core, call.chan.id(), &body));
            if sent == Some(true) { ("BASIC", "SUCCESS") } else { ("NONE", "UNSUPPORTED") }
        }
    };
    for name in SEND_TEXT_VARIABLES {
        if call.get(name).is_some() {
            call.chan.core(|core| core.set_variable(call.chan.id(), name, ""));
        }
    }
    call.set("SENDTEXTTYPE", kind);
    call.set("SENDTEXTSTATUS", status);
    Ok(Flow::Continue)
}

/// A text with `\n`, `\t`, `\r` and escaped symbols as what they stand for.
fn unescape(text: &str) -> String {
    let (mut out, mut symbols) = (String::with_capacity(text.len()), text.chars());
    while let Some(symbol) = symbols.next() {
        match (symbol, symbol == '\\') {
            (_, true) => match symbols.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (symbol, false) => out.push(symbol),
        }
    }
    out
}

async fn receive_text(call: &Call, text: &str) -> Outcome {
    let timeout = match text.trim() {
        "" => None,
        text => match args::seconds(text) {
            Some(timeout) => Some(timeout).filter(|timeout| !timeout.is_zero()),
            None => {
                call.log(Level::Error, &format!("Invalid timeout '{text}'; the call ends"));
                return Ok(Flow::Hangup);
            }
        },
    };
    let deadline = timeout.map(|timeout| call.chan.now() + timeout);
    let received = loop {
        match call.chan.event(deadline).await {
            Ok(Some(ChanEvent::Text(text))) => break Ok(Some(text.body.clone())),
            Ok(Some(_)) => {}
            Ok(None) => break Ok(None),
            Err(stop) => break Err(stop),
        }
    };
    if let Ok(Some(text)) = &received {
        call.set("RECEIVETEXTMESSAGE", text);
    }
    call.set("RECEIVETEXTSTATUS", if matches!(received, Ok(Some(_))) { "SUCCESS" } else { "FAILURE" });
    received.map(|_| Flow::Continue)
}

/// Sends a message to a destination with its technology.
pub fn send(shard: &Rc<Shard>, destination: &str, message: &TextMessage) -> Result<Sending, NoProtocol> {
    let destination = destination.trim();
    let protocol = destination.split_once(':').map(|(protocol, _)| protocol).ok_or(NoProtocol)?;
    let known = PROTOCOLS.iter().find(|(word, _)| word.eq_ignore_ascii_case(protocol)).ok_or(NoProtocol)?;
    let tech = shard.tech_named(known.1).ok_or(NoProtocol)?;
    let sent = tech.borrow_mut().message(&mut shard.core.borrow_mut(), destination, message);
    Ok(sent)
}

/// Nobody here speaks that protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoProtocol;

fn send_app(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (destination, from, to) = (args::nth(&parts, 0), args::nth(&parts, 1), args::nth(&parts, 2));
    if destination.trim().is_empty() {
        call.log(Level::Error, "MessageSend requires an argument (destination)");
        call.set("MESSAGE_SEND_STATUS", "INVALID_URI");
        return Ok(Flow::Continue);
    }
    let message = call.chan.with(|c| {
        let message = c.message.get_or_insert_default();
        if !to.is_empty() {
            to.clone_into(&mut message.to);
        }
        let mut message = (**message).clone();
        to.clone_into(&mut message.said_to);
        if !from.is_empty() {
            from.clone_into(&mut message.from);
        }
        message
    })?;
    let status = match send(call.chan.shard(), destination, &message) {
        Err(NoProtocol) => "INVALID_PROTOCOL",
        Ok(Sending::Sent) => "SUCCESS",
        Ok(Sending::InvalidUri) => "INVALID_URI",
        Ok(Sending::Failed) => "FAILURE",
    };
    call.set("MESSAGE_SEND_STATUS", status);
    Ok(Flow::Continue)
}

/// `MESSAGE(to|from|body)`.
pub(crate) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let item = text.trim().to_ascii_lowercase();
    let value = call.chan.with(|c| {
        let message = c.message.as_deref();
        let message = message.map(|m| match item.as_str() {
            "to" => Some(m.to.clone()),
            "from" => Some(m.from.clone()),
            "body" => Some(m.body.clone()),
            _ => None,
        });
        message.unwrap_or(Some(String::new()))
    });
    let value = value.ok().flatten().ok_or(Fault::new("shows to, from and body"))?;
    out.push_str(&value);
    Ok(())
}

/// `MESSAGE(to|from|body)=`, `MESSAGE(custom_data)=mark_all_outbound|clear_all_outbound`.
pub(crate) fn write(call: &Call, text: &str, value: &str) -> Read {
    let item = text.trim().to_ascii_lowercase();
    let done = call.chan.with(|c| {
        let message = c.message.get_or_insert_default();
        match (item.as_str(), value.trim()) {
            ("to", _) => value.clone_into(&mut message.to),
            ("from", _) => value.clone_into(&mut message.from),
            ("body", _) => value.clone_into(&mut message.body),
            ("custom_data", "mark_all_outbound") => message.mark_all(true),
            ("custom_data", "clear_all_outbound") => message.mark_all(false),
            _ => return false,
        }
        true
    });
    if done == Ok(true) { Ok(()) } else { Err(Fault::new("takes to, from, body and custom_data")) }
}

/// `MESSAGE_DATA(name)`.
pub(crate) fn read_data(call: &Call, text: &str, out: &mut String) -> Read {
    let value = call.chan.with(|c| c.message.as_deref().map(|m| m.get(text.trim()).to_owned()));
    out.push_str(&value.ok().flatten().unwrap_or_default());
    Ok(())
}

/// `MESSAGE_DATA(name)=`: it goes out with the message.
pub(crate) fn write_data(call: &Call, text: &str, value: &str) -> Read {
    match call.chan.with(|c| c.message.get_or_insert_default().set(text.trim(), value, true)) {
        Ok(true) => Ok(()),
        _ => Err(Fault::new("holds no more data")),
    }
}
