//! Subscriptions, and what is in mailboxes.

use call::Mailbox;

use super::super::table::{ActionRow, After, Done, Turn, may, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "PJSIPShowSubscriptionsInbound",
        class: &["system", "reporting"],
        synopsis: "Lists who watches which extension or mailbox.",
        fields: &[],
        run: inbound,
    },
    ActionRow {
        name: "PJSIPShowSubscriptionsOutbound",
        class: &["system", "reporting"],
        synopsis: "Lists what is watched elsewhere: nothing, Strowger does not subscribe.",
        fields: &[],
        run: outbound,
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
        fields: &[must("Mailbox", "mailbox[@context]")],
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
        fields: &[must("Mailbox", "mailbox[@context]")],
        run: delete,
    },
];

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

/// The mailbox that is meant and what is in it.
fn mailbox(turn: &Turn<'_>) -> Result<(String, Mailbox), super::super::table::Refusal> {
    let name = turn.need("Mailbox")?.to_owned();
    let messages = turn.site.shard.core.borrow().mailbox(&name).unwrap_or_default();
    Ok((name, messages))
}

fn count(turn: &mut Turn<'_>) -> Done {
    let (name, messages) = mailbox(turn)?;
    turn.response("Success")
        .field("Message", "Mailbox Message Count")
        .field("Mailbox", &name)
        .field("UrgMessages", 0)
        .field("NewMessages", messages.new)
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

fn get(turn: &mut Turn<'_>) -> Done {
    let wanted = turn.need("Mailbox")?.to_owned();
    let full = if wanted.contains('@') { wanted } else { format!("{wanted}@default") };
    let mut rows = turn.site.shard.core.borrow().mailboxes();
    rows.retain(|(name, _)| *name == full);
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
    let name = turn.need("Mailbox")?.to_owned();
    turn.site.shard.core.borrow_mut().set_mailbox(&name, None);
    turn.success("Mailbox deleted")
}
