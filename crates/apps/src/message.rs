//! Text messages: MessageSend, and what `MESSAGE()` and `MESSAGE_DATA()` show of the message that runs the dialplan.

use std::rc::Rc;

use call::{Level, Sending, Shard, TextMessage};
use dialplan::Fault;

use crate::call_ctx::args;
use crate::functions::Read;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Technologies by the word before the colon of a destination.
const PROTOCOLS: &[(&str, &str)] = &[("pjsip", "PJSIP"), ("sip", "PJSIP")];

pub(crate) const ROWS: &[AppRow] = &[AppRow {
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
}];

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
