//! `/mailboxes`: what programs that keep messages themselves say is in them. Phones that watch one are told.

use call::Mailbox;
use serde_json::{Value, json};

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, int, path};

const MAILBOX: Param = path("mailboxName", "mailbox[@context]");
const NO_MAILBOX: (u16, &str) = (404, "nobody has said what is in it");

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/mailboxes",
        name: "list",
        text: "Lists mailboxes of which a program has said what is in them.",
        params: &[],
        answer: "List[Mailbox]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Get,
        path: "/mailboxes/{mailboxName}",
        name: "get",
        text: "Tells what is in a mailbox, as a program has said.",
        params: &[MAILBOX],
        answer: "Mailbox",
        errors: &[NO_MAILBOX],
        run: get,
    },
    Operation {
        method: Method::Put,
        path: "/mailboxes/{mailboxName}",
        name: "update",
        text: "Says what is in a mailbox.",
        params: &[
            MAILBOX,
            int("oldMessages", "messages that were heard").must().range(0, 1_000_000),
            int("newMessages", "messages that were not").must().range(0, 1_000_000),
        ],
        answer: "void",
        errors: &[(400, "a count is missing or none")],
        run: update,
    },
    Operation {
        method: Method::Delete,
        path: "/mailboxes/{mailboxName}",
        name: "delete",
        text: "Forgets a mailbox.",
        params: &[MAILBOX],
        answer: "void",
        errors: &[NO_MAILBOX],
        run: delete,
    },
];

fn row(name: &str, of: Mailbox) -> Value {
    json!({ "name": name, "old_messages": of.old, "new_messages": of.new })
}

fn list(asked: &mut Asked<'_>) -> Done {
    // Those of voicemail.conf are looked after here.
    let core = asked.site.shard.core.borrow();
    let mut rows = core.mailboxes();
    rows.retain(|(name, _)| core.settings.voicemail.find_text(name).is_none());
    Ok(Answer::Found(rows.iter().map(|(name, of)| row(name, *of)).collect::<Vec<_>>().into()))
}

fn known(asked: &Asked<'_>) -> Result<Mailbox, Fault> {
    let found = asked.site.shard.core.borrow().mailbox(asked.need("mailboxName"));
    found.ok_or_else(|| Fault::not_found("Mailbox not found"))
}

fn get(asked: &mut Asked<'_>) -> Done {
    Ok(Answer::Found(row(asked.need("mailboxName"), known(asked)?)))
}

fn update(asked: &mut Asked<'_>) -> Done {
    let count = |name: &str| asked.number(name).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let messages = Mailbox { new: count("newMessages"), old: count("oldMessages") };
    asked.site.shard.core.borrow_mut().set_mailbox(asked.need("mailboxName"), Some(messages));
    Ok(Answer::Nothing)
}

fn delete(asked: &mut Asked<'_>) -> Done {
    known(asked)?;
    asked.site.shard.core.borrow_mut().set_mailbox(asked.need("mailboxName"), None);
    Ok(Answer::Nothing)
}
