//! Subscriptions, what is in mailboxes, and what is sent to phones beside calls.

use apps::message;
use call::{Mailbox, Sending, TextMessage};
use dialplan::ere::Matcher;
use driver::sip::NotifyTo;

use super::super::events;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};
use crate::base64;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "PJSIPShowSubscriptionsInbound",
        class: &["system"],
        synopsis: "Lists who watches which extension or mailbox.",
        fields: &[],
        run: inbound,
    },
    ActionRow {
        name: "PJSIPShowSubscriptionsOutbound",
        class: &["system"],
        synopsis: "Lists what is watched elsewhere: nothing, Strowger does not subscribe.",
        fields: &[],
        run: outbound,
    },
    ActionRow {
        name: "PJSIPNotify",
        class: &["system"],
        synopsis: "Sends a NOTIFY to the contacts of an endpoint, to a URI, or inside a call.",
        fields: &[
            may("Endpoint", "name; one of Endpoint, URI and Channel must be there"),
            may("URI", "SIP URI, reached as default_outbound_endpoint is"),
            may("Channel", "name of a PJSIP channel"),
            may("Option", "section of pjsip_notify.conf"),
            may(
                "Variable",
                "Header=value, several separated by commas; the header may be repeated. Content is a line of the body",
            ),
        ],
        run: notify,
    },
    ActionRow {
        name: "MessageSend",
        class: &["message"],
        synopsis: "Sends a text message outside of calls.",
        fields: &[
            may("Destination", "pjsip:endpoint and its likes; else To"),
            may("To", "what MESSAGE(to) would be, and the destination when there is no other"),
            may("From", "who it is from"),
            may("Body", "the text"),
            may("Base64Body", "the text, coded, when it has several lines"),
            may(
                "Variable",
                "Header=value that goes out with it, several separated by commas; the header may be repeated",
            ),
        ],
        run: send,
    },
    ActionRow {
        name: "PresenceState",
        class: &["call", "reporting"],
        synopsis: "Tells what a presence provider says.",
        fields: &[must("Provider", "CustomPresence:name")],
        run: presence,
    },
    ActionRow {
        name: "PresenceStateList",
        class: &["call", "reporting"],
        synopsis: "Lists what presence providers say.",
        fields: &[],
        run: presence_list,
    },
    ActionRow {
        name: "MailboxCount",
        class: &["call", "reporting"],
        synopsis: "Counts the messages of a mailbox.",
        fields: &[must("Mailbox", "mailbox[@context]")],
        run: count,
    },
    ActionRow {
        name: "MailboxStatus",
        class: &["call", "reporting"],
        synopsis: "Tells whether a mailbox holds new messages.",
        fields: &[must("Mailbox", "mailbox[@context]")],
        run: status,
    },
    ActionRow {
        name: "MWIGet",
        class: &["reporting"],
        synopsis: "Lists what is in mailboxes, as MWIUpdate has said.",
        fields: &[must("Mailbox", "mailbox[@context], or /expression/ for all whose names match")],
        run: get,
    },
    ActionRow {
        name: "MWIUpdate",
        class: &["reporting"],
        synopsis: "Says what is in a mailbox; phones that watch it are told.",
        fields: &[
            must("Mailbox", "mailbox[@context]"),
            may("OldMessages", "messages that were heard (0)"),
            may("NewMessages", "messages that were not (0)"),
        ],
        run: update,
    },
    ActionRow {
        name: "MWIDelete",
        class: &["reporting"],
        synopsis: "Forgets a mailbox.",
        fields: &[must("Mailbox", "mailbox[@context], or /expression/ for all whose names match")],
        run: delete,
    },
];

/// Pieces of one Variable header, as many as an application takes arguments.
const PIECES_MAX: usize = 64;

/// The `NAME=value` items of all Variable headers, each of which may hold several.
fn lines(turn: &Turn<'_>) -> Vec<(String, String)> {
    let items =
        turn.action.all("Variable").flat_map(|text| super::split_list(text).into_iter().take(PIECES_MAX));
    let pair = |item: String| {
        let (name, value) = item.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    items.filter_map(pair).filter(|(name, _)| !name.is_empty()).collect()
}

fn notify(turn: &mut Turn<'_>) -> Done {
    let mut all = lines(turn);
    let to = match (turn.get("Endpoint"), turn.get("URI"), turn.get("Channel")) {
        (Some(name), None, None) => NotifyTo::Endpoint(name),
        (None, Some(uri), None) => NotifyTo::Uri(uri),
        (None, None, Some(name)) => NotifyTo::Channel(name),
        (None, None, None) => {
            return Err("PJSIPNotify requires either an endpoint name, a SIP URI, or a channel.".into());
        }
        _ => {
            let why = "PJSIPNotify requires either an endpoint name, a SIP URI, or a channel. \
                       You must use only one of them.";
            return Err(why.into());
        }
    };
    let option = turn.get("Option");
    if option.is_some() != all.is_empty() {
        let why = "PJSIPNotify requires either an Option or Variable(s).You must use only one of them.";
        return Err(why.into());
    }
    if let Some(option) = option {
        let snapshot = turn.site.snapshot.borrow().clone();
        let kind = snapshot.notify.kinds.get(option);
        let kind = kind.ok_or_else(|| format!("Unable to find notify type '{option}'"))?;
        all.extend(kind.iter().cloned());
    }
    let core = &mut *turn.site.shard.core.borrow_mut();
    match (turn.site.sip.borrow_mut().send_notify(core, to, &all), to) {
        // An endpoint of which no contact is there is known all the same.
        (Some(_), _) => turn.success("NOTIFY sent"),
        (None, NotifyTo::Endpoint(name)) => Err(format!("Unable to retrieve endpoint {name}").into()),
        (None, NotifyTo::Channel(_)) => Err("Channel not found".into()),
        (None, NotifyTo::Uri(_)) => Err("Unable to retrieve default outbound endpoint".into()),
    }
}

fn send(turn: &mut Turn<'_>) -> Done {
    let to = turn.get("To").unwrap_or_default();
    let destination = turn.get("Destination").unwrap_or(to).to_owned();
    if destination.is_empty() {
        return Err("No 'To' or 'Destination' address specified".into());
    }
    let body = match turn.get("Base64Body") {
        Some(coded) => {
            let bytes = padded(coded).ok_or("Base64Body is not base64")?;
            String::from_utf8(bytes).map_err(|_| "Base64Body is no text")?
        }
        None => turn.get("Body").unwrap_or_default().to_owned(),
    };
    let from = turn.get("From").unwrap_or_default().to_owned();
    let said_to = if turn.get("Destination").is_some() { to } else { "" }.to_owned();
    let mut text = TextMessage { to: to.to_owned(), from, body, said_to, ..TextMessage::default() };
    for (name, value) in lines(turn) {
        text.set(&name, &value, true);
    }
    match message::send(&turn.site.shard, &destination, &text) {
        Ok(Sending::Sent) => turn.success("Message successfully sent"),
        Err(message::NoProtocol) => Err("Message technology not found".into()),
        Ok(Sending::InvalidUri | Sending::Failed) => Err("Message failed to send".into()),
    }
}

/// Bytes of base64 with its padding; white space is left out.
fn padded(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let end = digits.iter().position(|byte| *byte == b'=').unwrap_or(digits.len());
    let is_padded = digits.get(end..)?.iter().all(|byte| *byte == b'=')
        && digits.len().is_multiple_of(4)
        && digits.len() - end < 3;
    base64::decode(digits.get(..end).filter(|_| is_padded)?)
}

fn inbound(turn: &mut Turn<'_>) -> Done {
    let rows = turn.site.sip.borrow().subscription_rows(&turn.site.shard.core.borrow());
    turn.begin_list("Following are Events for each inbound Subscription");
    for row in &rows {
        turn.item("InboundSubscriptionDetail")
            .field("Role", "Notifier")
            .field("Endpoint", &row.endpoint)
            .field("Callid", &row.call_id)
            .field("State", "ACTIVE")
            .field("Resource", &row.resource)
            .field("EventPackage", row.event)
            .field("Context", &row.context)
            .field("Remote", &row.remote)
            .field("SubscriptionExpires", row.expires)
            .end();
    }
    turn.end_list("InboundSubscriptionDetailComplete", rows.len()).end();
    Ok(After::Go)
}

fn outbound(turn: &mut Turn<'_>) -> Done {
    turn.begin_list("Following are Events for each outbound Subscription");
    turn.end_list("OutboundSubscriptionDetailComplete", 0).end();
    Ok(After::Go)
}

fn presence(turn: &mut Turn<'_>) -> Done {
    let provider = turn.need("Provider")?;
    let said = apps::presence::state(&turn.site.shard.core.borrow(), provider);
    let said =
        said.ok_or_else(|| Refusal(format!("Invalid provider {provider} or provider in invalid state")))?;
    turn.response("Success")
        .field("Message", "Presence State")
        .field("State", said.state.name())
        .optional("Subtype", Some(&said.subtype).filter(|text| !text.is_empty()))
        .optional("PresenceMessage", Some(&said.message).filter(|text| !text.is_empty()))
        .end();
    Ok(After::Go)
}

fn presence_list(turn: &mut Turn<'_>) -> Done {
    let rows = apps::presence::all(&turn.site.shard.core.borrow());
    turn.begin_list("Presence State Changes will follow");
    for (provider, said) in &rows {
        let item = turn.item("PresenceStateChange").field("Presentity", provider);
        events::presence(item, said.state.name(), &said.subtype, &said.message).end();
    }
    turn.end_list("PresenceStateListComplete", rows.len()).end();
    Ok(After::Go)
}

/// The mailbox that is meant and what is in it.
fn mailbox(turn: &Turn<'_>) -> Result<(String, Mailbox), super::super::table::Refusal> {
    let name = turn.need("Mailbox")?.to_owned();
    let messages = turn.site.shard.core.borrow().mailbox(&name).unwrap_or_default();
    Ok((name, messages))
}

fn count(turn: &mut Turn<'_>) -> Done {
    let (name, messages) = mailbox(turn)?;
    let urgent = turn.site.shard.core.borrow().urgent_messages(&name);
    turn.response("Success")
        .field("Message", "Mailbox Message Count")
        .field("Mailbox", &name)
        .field("UrgMessages", urgent)
        .field("NewMessages", messages.new.saturating_sub(urgent))
        .field("OldMessages", messages.old)
        .end();
    Ok(After::Go)
}

fn status(turn: &mut Turn<'_>) -> Done {
    let (name, messages) = mailbox(turn)?;
    turn.response("Success")
        .field("Message", "Mailbox Status")
        .field("Mailbox", &name)
        .field("Waiting", u8::from(messages.new > 0))
        .end();
    Ok(After::Go)
}

/// Mailboxes that `Mailbox` names: one, or between slashes all whose names an expression is found in.
#[expect(clippy::large_enum_variant, reason = "one stands on the stack for the time of one action")]
enum Meant {
    One(String),
    Matching(Matcher),
}

impl Meant {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let Some(pattern) = text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) else {
            let whole = if text.contains('@') { text.to_owned() } else { format!("{text}@default") };
            return Ok(Self::One(whole));
        };
        let pattern = Matcher::new(pattern).map_err(|why| format!("Regex error: {why}"))?;
        Ok(Self::Matching(pattern))
    }
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Matching(pattern) => pattern.is_match(name),
        }
    }
}

fn get(turn: &mut Turn<'_>) -> Done {
    let mut rows = turn.site.shard.core.borrow().mailboxes();
    let meant = Meant::parse(turn.need("Mailbox")?)?;
    rows.retain(|(name, _)| meant.takes(name));
    turn.begin_list("Mailboxes will follow");
    for (name, messages) in &rows {
        turn.item("MWIGet")
            .field("Mailbox", name)
            .field("OldMessages", messages.old)
            .field("NewMessages", messages.new)
            .end();
    }
    turn.end_list("MWIGetComplete", rows.len()).end();
    Ok(After::Go)
}

fn update(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Mailbox")?.to_owned();
    let number = |field: &str| match turn.get(field).unwrap_or_default() {
        "" => Ok(0),
        text => text.parse::<u32>().map_err(|_| format!("Invalid {field}")),
    };
    let messages = Mailbox { new: number("NewMessages")?, old: number("OldMessages")? };
    turn.site.shard.core.borrow_mut().set_mailbox(&name, Some(messages));
    turn.success("Mailbox updated")
}

fn delete(turn: &mut Turn<'_>) -> Done {
    let meant = Meant::parse(turn.need("Mailbox")?)?;
    let core = &mut *turn.site.shard.core.borrow_mut();
    for (name, _) in core.mailboxes() {
        if meant.takes(&name) {
            core.set_mailbox(&name, None);
        }
    }
    turn.success("Mailbox deleted")
}
