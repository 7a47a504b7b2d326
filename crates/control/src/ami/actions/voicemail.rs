//! Mailboxes: who has one, what lies in it, and messages that are moved, removed and sent on.

use std::future::Future;
use std::sync::Arc;

use call::Chan;
use call::voicemail::{
    Account, Change, Counts, Delivery, Folder, Job, Message as Left, Posted, Refusal as Refused,
};

use super::super::packet::Message;
use super::super::session::Busy;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};
use super::super::{Later, Outcome};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "VoicemailUsersList",
        class: &["call", "reporting"],
        synopsis: "Lists the mailboxes.",
        fields: &[],
        run: users,
    },
    ActionRow {
        name: "VoicemailUserStatus",
        class: &["call", "reporting"],
        synopsis: "Tells of one mailbox.",
        fields: &[must("Context", "its context"), must("Mailbox", "its name")],
        run: user,
    },
    ActionRow {
        name: "VoicemailRefresh",
        class: &["user"],
        synopsis: "Counts the messages of mailboxes that others have changed.",
        fields: &[may("Context", "of this context only"), may("Mailbox", "this mailbox only")],
        run: refresh,
    },
    ActionRow {
        name: "VoicemailBoxSummary",
        class: &["call", "reporting"],
        synopsis: "Lists the messages of a mailbox.",
        fields: &[must("Context", "its context"), must("Mailbox", "its name")],
        run: summary,
    },
    ActionRow {
        name: "VoicemailMove",
        class: &["user"],
        synopsis: "Moves a message to another folder.",
        fields: &[
            must("Context", "context of the mailbox"),
            must("Mailbox", "its name"),
            must("Folder", "folder of the message"),
            must("ID", "id of the message"),
            must("ToFolder", "where it goes"),
        ],
        run: shift,
    },
    ActionRow {
        name: "VoicemailRemove",
        class: &["user"],
        synopsis: "Removes a message.",
        fields: &[
            must("Context", "context of the mailbox"),
            must("Mailbox", "its name"),
            must("Folder", "folder of the message"),
            must("ID", "id of the message"),
        ],
        run: remove,
    },
    ActionRow {
        name: "VoicemailForward",
        class: &["user"],
        synopsis: "Copies a message into another mailbox.",
        fields: &[
            must("Context", "context of the mailbox"),
            must("Mailbox", "its name"),
            must("Folder", "folder of the message"),
            must("ID", "id of the message"),
            must("ToContext", "context of the other mailbox"),
            must("ToMailbox", "its name"),
            must("ToFolder", "folder there"),
        ],
        run: forward,
    },
];

fn account(turn: &Turn<'_>, context: &str, mailbox: &str) -> Result<Arc<Account>, Refusal> {
    let (context, mailbox) = (turn.need(context)?, turn.need(mailbox)?);
    let core = turn.site.shard.core.borrow();
    let found = core.settings.voicemail.find(mailbox, context).cloned();
    found.ok_or_else(|| Refusal::from("Could not find voicemail user"))
}

fn folder(turn: &Turn<'_>, field: &str) -> Result<Folder, Refusal> {
    let text = turn.need(field)?;
    Folder::parse(text).ok_or_else(|| format!("There is no folder '{text}'").into())
}

/// What is said of a mailbox that there is not; no error in the field's eyes.
const NO_USER: &str = "There is no voicemail user of the given info.";

/// What is in a mailbox as far as it was counted.
fn counts(turn: &Turn<'_>, account: &Account) -> Counts {
    let core = turn.site.shard.core.borrow();
    let name = account.name.to_string();
    let (all, urgent) = (core.mailbox(&name).unwrap_or_default(), core.urgent_messages(&name));
    Counts { urgent, new: all.new, old: all.old }
}

fn yes(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

/// Who sends letters of owners of whom nothing else is said.
const SENDER: &str = "The Asterisk PBX";

fn entry(turn: &mut Turn<'_>, event: &str, account: &Account) {
    let counts = counts(turn, account);
    let (max_seconds, rules) = (account.rules.maxsecs, account.rules.clone());
    turn.item(event)
        .field("VMContext", account.name.context())
        .field("VoiceMailbox", account.name.mailbox())
        .field("Fullname", &account.full_name)
        .field("Email", account.emails.join("|"))
        .field("Pager", &account.pager)
        .field("ServerEmail", &rules.serveremail)
        .field("FromString", if rules.fromstring == SENDER { "" } else { &rules.fromstring })
        .field("MailCommand", &rules.mailcmd)
        .field("Language", &rules.language)
        .field("TimeZone", &rules.tz)
        .field("Callback", &rules.callback)
        .field("Dialout", &rules.dialout)
        .field("UniqueID", "")
        .field("ExitContext", &rules.exitcontext)
        .field("SayDurationMinimum", rules.saydurationm)
        .field("SayEnvelope", yes(rules.envelope))
        .field("SayCID", yes(rules.saycid))
        .field("AttachMessage", yes(rules.attach))
        .field("AttachmentFormat", &rules.attachfmt)
        .field("DeleteMessage", yes(rules.delete))
        .field("VolumeGain", "0.00")
        .field("CanReview", yes(rules.review))
        // Whoever leaves a message may mark it.
        .field("CanMarkUrgent", yes(true))
        .field("CallOperator", yes(rules.operator))
        .field("MaxMessageCount", rules.maxmsg)
        .field("MaxMessageLength", max_seconds)
        .field("NewMessageCount", counts.new)
        .field("OldMessageCount", counts.old)
        .end();
}

fn users(turn: &mut Turn<'_>) -> Done {
    let accounts: Vec<Arc<Account>> =
        turn.site.shard.core.borrow().settings.voicemail.accounts.values().cloned().collect();
    if accounts.is_empty() {
        return turn.success("There are no voicemail users currently defined.");
    }
    turn.begin_list("Voicemail user list will follow");
    accounts.iter().for_each(|account| entry(turn, "VoicemailUserEntry", account));
    turn.end_list("VoicemailUserEntryComplete", accounts.len()).end();
    Ok(After::Go)
}

fn user(turn: &mut Turn<'_>) -> Done {
    let Ok(account) = account(turn, "Context", "Mailbox") else { return turn.success(NO_USER) };
    turn.begin_list("Voicemail user detail will follow");
    entry(turn, "VoicemailUserDetail", &account);
    turn.end_list("VoicemailUserDetailComplete", 1).end();
    Ok(After::Go)
}

/// Has a story answer the action when its work is done.
fn answered_by<F>(turn: &Turn<'_>, story: impl FnOnce(Chan, Option<String>) -> F) -> Done
where
    F: Future<Output = String> + 'static,
{
    let (later, session) = (turn.later.clone(), turn.id);
    let told = story(turn.call(None).chan, turn.action_id().map(str::to_owned));
    let spawned = turn.site.shard.spawn(None, async move {
        let text = told.await;
        later.borrow_mut().push(Later { session, outcome: Outcome::Said(text) });
    });
    if spawned { Ok(After::Wait(Busy::Story)) } else { Err("There are too many stories".into()) }
}

fn said(kind: &str, action_id: Option<&str>, message: &str) -> String {
    let mut text = String::new();
    Message::response(kind, action_id, &mut text).field("Message", message).end();
    text
}

fn refresh(turn: &mut Turn<'_>) -> Done {
    let (context, mailbox) = (turn.get("Context").map(str::to_owned), turn.get("Mailbox").map(str::to_owned));
    let fits = |account: &&Arc<Account>| {
        context.as_deref().is_none_or(|context| context == account.name.context())
            && mailbox.as_deref().is_none_or(|mailbox| mailbox == account.name.mailbox())
    };
    let accounts: Vec<Arc<Account>> = {
        let core = turn.site.shard.core.borrow();
        core.settings.voicemail.accounts.values().filter(fits).cloned().collect()
    };
    answered_by(turn, |chan, id| async move {
        for account in accounts {
            let _ = chan.post(Job::Count(account.name.clone())).await;
        }
        said("Success", id.as_deref(), "Refresh sent")
    })
}

async fn messages(chan: &Chan, account: &Account, folder: Folder) -> Vec<Left> {
    match chan.post(Job::List(account.name.clone(), folder)).await {
        Ok(Posted::Messages(messages)) => messages,
        _ => Vec::new(),
    }
}

fn summary(turn: &mut Turn<'_>) -> Done {
    let Ok(account) = account(turn, "Context", "Mailbox") else { return turn.success(NO_USER) };
    answered_by(turn, |chan, id| async move {
        let mut text = String::new();
        Message::response("Success", id.as_deref(), &mut text)
            .field("EventList", "start")
            .field("Message", "Voicemail box detail will follow")
            .end();
        let mut count = 0;
        for folder in Folder::all() {
            for message in messages(&chan, &account, folder).await {
                count += 1;
                Message::event("VoicemailBoxDetail", id.as_deref(), &mut text)
                    .field("VMContext", account.name.context())
                    .field("VoiceMailbox", account.name.mailbox())
                    .field("Folder", folder.name())
                    .field("CallerID", &message.info.caller_id)
                    .field("Date", &message.info.date)
                    .field("OrigTime", message.info.time)
                    .field("Duration", message.info.duration)
                    .field("Flag", if message.info.urgent { "Urgent" } else { "" })
                    .field("ID", &message.info.id)
                    .end();
            }
        }
        Message::event("VoicemailBoxDetailComplete", id.as_deref(), &mut text)
            .field("EventList", "Complete")
            .field("ListItems", count)
            .end();
        text
    })
}

/// The message that the action names.
async fn named(chan: &Chan, account: &Account, folder: Folder, id: &str) -> Option<Left> {
    messages(chan, account, folder).await.into_iter().find(|message| !id.is_empty() && message.info.id == id)
}

const NO_MESSAGE: &str = "There is no such message";

fn change(turn: &mut Turn<'_>, change: Change, done: &'static str) -> Done {
    let account = account(turn, "Context", "Mailbox")?;
    let (from, message_id) = (folder(turn, "Folder")?, turn.need("ID")?.to_owned());
    answered_by(turn, |chan, id| async move {
        let Some(message) = named(&chan, &account, from, &message_id).await else {
            return said("Error", id.as_deref(), NO_MESSAGE);
        };
        match chan.post(Job::Change(account.name.clone(), from, vec![(message, change)])).await {
            Ok(Posted::Changed(0)) => said("Success", id.as_deref(), done),
            _ => said("Error", id.as_deref(), "The folder is full, or could not be written"),
        }
    })
}

fn shift(turn: &mut Turn<'_>) -> Done {
    let most = account(turn, "Context", "Mailbox")?.rules.maxmsg;
    let to = folder(turn, "ToFolder")?;
    change(turn, Change::Move(to, most), "Message move successful")
}

fn remove(turn: &mut Turn<'_>) -> Done {
    let kept = account(turn, "Context", "Mailbox")?.rules.backupdeleted;
    change(turn, Change::Delete(kept), "Message remove successful")
}

fn forward(turn: &mut Turn<'_>) -> Done {
    let (from, to) = (account(turn, "Context", "Mailbox")?, account(turn, "ToContext", "ToMailbox")?);
    let (folder, to_folder) = (folder(turn, "Folder")?, folder(turn, "ToFolder")?);
    let message_id = turn.need("ID")?.to_owned();
    let formats = turn.site.shard.core.borrow().settings.voicemail.formats.clone();
    answered_by(turn, |chan, id| async move {
        let Some(message) = named(&chan, &from, folder, &message_id).await else {
            return said("Error", id.as_deref(), NO_MESSAGE);
        };
        let mut info = message.info.clone();
        let random = chan.core(call::Core::random) as u32;
        info.id = format!("{}-{random:08x}", info.time);
        to.name.mailbox().clone_into(&mut info.orig_mailbox);
        info.urgent = to_folder == Folder::URGENT;
        let delivery = Delivery {
            to: to.name.clone(),
            folder: to_folder,
            held: None,
            copied: Some((from.name.clone(), folder, Box::new(message))),
            formats,
            info,
            min_ms: 0,
            max_messages: to.rules.maxmsg,
        };
        match chan.post(Job::Deliver(Box::new(delivery))).await {
            Ok(_) => said("Success", id.as_deref(), "Message forward successful"),
            Err(Refused::Full) => said("Error", id.as_deref(), "The folder is full"),
            Err(_) => said("Error", id.as_deref(), "The message could not be copied"),
        }
    })
}
