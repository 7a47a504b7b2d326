//! What else a dialplan can do with mailboxes.

use call::voicemail::{BoxName, Folder, Greeting, Job, Posted, Sound};
use dialplan::Fault;

use super::login::{Asking, Login};
use super::{Visit, options};
use crate::call_ctx::args;
use crate::functions::Read;
use crate::{Call, Flow, Outcome, say};

/// Option letters of VMAuthenticate.
pub(crate) const AUTHENTICATE_OPTIONS: &str = "s";

pub(super) async fn play_message(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (name, id) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let visit = Visit::new(call);
    call.answer_for_sound().await?;
    let mut status = "FAILED";
    if let Some(account) = visit.find_text(name).await?.filter(|_| !id.is_empty()) {
        for folder in Folder::all() {
            let listed = visit.post(Job::List(account.name.clone(), folder)).await;
            let Ok(Posted::Messages(messages)) = listed else { continue };
            let Some(message) = messages.into_iter().find(|message| message.info.id == id) else { continue };
            let sound = Sound::Message(folder, Box::new(message));
            if visit.play_sound(&account, sound).await?.is_ok() {
                status = "SUCCESS";
            }
            break;
        }
    }
    call.set("VOICEMAIL_PLAYBACKSTATUS", status);
    Ok(Flow::Continue)
}

pub(super) async fn authenticate(call: &Call, text: &str) -> Outcome {
    let (name, letters) = options(call, text, AUTHENTICATE_OPTIONS);
    let visit = Visit::new(call);
    call.answer_for_sound().await?;
    let (mailbox, context) = name.split_once('@').unwrap_or((&name, ""));
    let asking = Asking {
        mailbox: mailbox.trim(),
        is_prefix: false,
        context: context.trim(),
        trusted: false,
        quiet: letters.has('s'),
    };
    match visit.log_in(&asking).await? {
        Login::In(account) => {
            call.set("AUTH_MAILBOX", account.name.mailbox());
            // The context that holds without being named is not named.
            let context = Some(account.name.context()).filter(|context| *context != "default");
            call.set("AUTH_CONTEXT", context.unwrap_or_default());
            visit.say(&["auth-thankyou"], "").await?;
            Ok(Flow::Continue)
        }
        Login::Refused => Ok(Flow::Hangup),
        Login::Star => visit.leave_to("", "a").unwrap_or(Ok(Flow::Hangup)),
    }
}

pub(super) async fn say_name(call: &Call, text: &str) -> Outcome {
    let visit = Visit::new(call);
    call.answer_for_sound().await?;
    let digit = match visit.find_text(text).await? {
        Some(account) => visit.say_owner(&account, "").await?,
        // As the field says who is not known.
        None => {
            let mailbox = text.split('@').next().unwrap_or_default();
            say::play_all(call, say::digits(mailbox), "").await?
        }
    };
    Ok(digit.map_or(Flow::Continue, Flow::Digit))
}

pub(super) async fn greeting(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let kinds = [Greeting::Unavailable, Greeting::Busy, Greeting::Temporary, Greeting::Name];
    let kind = match args::nth(&parts, 1) {
        "" => Some(Greeting::Unavailable),
        word => kinds.into_iter().find(|kind| kind.file() == word),
    };
    let visit = Visit::new(call);
    call.answer_for_sound().await?;
    let account = visit.find_text(args::nth(&parts, 0)).await?;
    let heard = match account.zip(kind) {
        Some((account, kind)) => visit.hear(&account, Sound::Greeting(kind), "").await?.is_some(),
        None => false,
    };
    call.set("VMGREETSTATUS", if heard { "SUCCESS" } else { "FAILED" });
    Ok(Flow::Continue)
}

/// `MAILBOX_EXISTS(mailbox@context)`.
pub(crate) fn read_exists(call: &Call, text: &str, out: &mut String) -> Read {
    let there = call.chan.core(|core| core.settings.voicemail.find_text(text).is_some());
    out.push(if there { '1' } else { '0' });
    Ok(())
}

/// Messages of a folder as far as they are counted all the time.
fn counted(call: &Call, name: &BoxName, folder: Folder) -> Result<u32, Fault> {
    let name = name.to_string();
    call.chan.core(|core| {
        let (all, urgent) = (core.mailbox(&name).unwrap_or_default(), core.urgent_messages(&name));
        match folder {
            Folder::INBOX => Ok(all.new.saturating_sub(urgent)),
            Folder::URGENT => Ok(urgent),
            Folder::OLD => Ok(all.old),
            _ => Err(Fault::new("counts the folders INBOX, Old and Urgent")),
        }
    })
}

fn folder(text: &str) -> Result<Folder, Fault> {
    match text {
        "" => Ok(Folder::INBOX),
        text => Folder::parse(text)
            .ok_or(Fault::new("wants a folder: INBOX, Old, Work, Family, Friends or Urgent")),
    }
}

/// `VMCOUNT(mailbox[@context][&…][,folder])`.
pub(crate) fn read_count(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let folder = folder(args::nth(&parts, 1))?;
    let boxes = args::nth(&parts, 0).split('&').filter_map(BoxName::parse);
    let sum = boxes.map(|name| counted(call, &name, folder)).sum::<Result<u32, Fault>>()?;
    out.push_str(&sum.to_string());
    Ok(())
}

/// `VM_INFO(mailbox[@context],attribute[,folder])`.
pub(crate) fn read_info(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let (name, attribute) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let account = call.chan.core(|core| core.settings.voicemail.find_text(name).cloned());
    if attribute.eq_ignore_ascii_case("exists") {
        out.push(if account.is_some() { '1' } else { '0' });
        return Ok(());
    }
    let Some(account) = account else { return Err(Fault::new("there is no such mailbox")) };
    match attribute.to_ascii_lowercase().as_str() {
        "count" => {
            let count = counted(call, &account.name, folder(args::nth(&parts, 2))?)?;
            out.push_str(&count.to_string());
        }
        "email" => out.push_str(&account.emails.join("|")),
        "fullname" => out.push_str(&account.full_name),
        "language" => out.push_str(&account.rules.language),
        "locale" => out.push_str(&account.rules.locale),
        "pager" => out.push_str(&account.pager),
        "password" => out.push_str(&call.chan.core(|core| core.pin_of(&account))),
        "tz" => out.push_str(&account.rules.tz),
        _ => {
            return Err(Fault::new(
                "knows count, email, exists, fullname, language, locale, pager, password and tz",
            ));
        }
    }
    Ok(())
}
