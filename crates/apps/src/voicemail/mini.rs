//! MiniVM: greeting, recording, letter and removal as steps of the dialplan, for accounts of minivm.conf.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use call::voicemail::{Account, BoxName, Counts, Greeting, Held, Job, Letter, MiniTemplate, MiniVm, Posted};
use call::{Level, Progress, Stop};
use dialplan::Fault;

use super::leave::Wish;
use super::letter::{Lent, date_text};
use super::record::Ended;
use super::{Visit, options};
use crate::call_ctx::args;
use crate::functions::Read;
use crate::{Call, Flow, Outcome};

/// The family of the database that counters lie in.
const COUNTERS: &str = "minivm";
/// Longest name of a counter, bytes.
const COUNTER_NAME_MAX: usize = 64;
/// Variables that letters tell of.
const VARIABLES: &[&str] = &[
    "MVM_NAME",
    "MVM_DUR",
    "MVM_DOMAIN",
    "MVM_USERNAME",
    "MVM_CALLERID",
    "MVM_CIDNAME",
    "MVM_CIDNUM",
    "MVM_DATE",
    "MVM_COUNTER",
];

/// A call at an account.
struct Mini<'a> {
    visit: Visit<'a>,
    mini: Arc<MiniVm>,
    account: Arc<Account>,
}

impl<'a> Mini<'a> {
    /// `None`: it is no address; that is logged, and `status` says so.
    fn new(call: &'a Call, address: &str, status: &str) -> Option<Self> {
        let mini = call.chan.core(|core| core.settings.minivm.clone());
        let Some((account, _)) = mini.account(address) else {
            call.log(Level::Error, &format!("'{address}' is no account: write user@domain"));
            call.set(status, "FAILED");
            return None;
        };
        let visit = Visit::with(call, mini.voicemail.clone());
        Some(Self { visit, mini, account })
    }
}

pub(super) async fn greet(call: &Call, text: &str) -> Outcome {
    const STATUS: &str = "MVM_GREET_STATUS";
    let (address, letters) = options(call, text, "bus");
    let Some(mini) = Mini::new(call, &address, STATUS) else { return Ok(Flow::Continue) };
    call.answer_for_sound().await?;
    let context = mini.visit.context();
    let (operator, escape) = (call.exists(&context, "o"), call.exists(&context, "a"));
    let keys = ["#", if operator { "0" } else { "" }, if escape { "*" } else { "" }].concat();
    let wish = Wish {
        greeting: match (letters.has('u'), letters.has('b')) {
            (true, _) => Some(Greeting::Unavailable),
            (false, true) => Some(Greeting::Busy),
            (false, false) => None,
        },
        silent: letters.has('s'),
        ..Wish::default()
    };
    let heard = mini.visit.greet(&mini.account, &wish, &keys).await;
    let exit = match heard {
        Ok(Some(digit)) if digit.to_char() == '0' => Some("o"),
        Ok(Some(digit)) if digit.to_char() == '*' => Some("a"),
        Ok(_) => None,
        Err(stop) => {
            call.set(STATUS, "FAILED");
            return Err(stop);
        }
    };
    if let Some(outcome) = exit.and_then(|exten| mini.visit.leave_to(&context, exten)) {
        call.set(STATUS, "USEREXIT");
        return outcome;
    }
    call.set(STATUS, "SUCCESS");
    Ok(Flow::Continue)
}

pub(super) async fn record(call: &Call, text: &str) -> Outcome {
    const STATUS: &str = "MVM_RECORD_STATUS";
    let (address, letters) = options(call, text, "0*g");
    let Some(mut mini) = Mini::new(call, &address, STATUS) else { return Ok(Flow::Continue) };
    mini.visit = mini.visit.recording(&letters);
    call.answer_for_sound().await?;
    let context = mini.visit.context();
    let operator = letters.has('0') && call.exists(&context, "o");
    let escape = letters.has('*') && call.exists(&context, "a");
    let keys = ["#", if operator { "0" } else { "" }, if escape { "*" } else { "" }].concat();
    let longest = mini.account.rules.maxsecs;
    let longest = (longest > 0).then(|| Duration::from_secs(longest.into()));
    let began = call.chan.now();
    let recorded = mini.visit.record(&mini.account, "beep", longest, &keys).await;
    let Some(recorded) = recorded.inspect_err(|_| call.set(STATUS, "FAILED"))? else {
        call.set(STATUS, "FAILED");
        return Ok(Flow::Continue);
    };
    let cut = if recorded.ended == Ended::Silence { mini.visit.vm.max_silence } else { None };
    let seconds = (call.chan.now() - began).saturating_sub(cut.unwrap_or_default()).as_secs();
    let kept = recorded.ended != Ended::Failed && seconds >= u64::from(mini.account.rules.minsecs);
    mini.note(seconds, kept);
    if !kept {
        let _ = mini.visit.post(Job::Forget(recorded.held)).await;
        call.set(STATUS, "FAILED");
        return match recorded.ended {
            Ended::Gone(stop) => Err(stop),
            _ => Ok(Flow::Continue),
        };
    }
    let file = recorded.held.file;
    call.set("MVM_FILENAME", &file.with_extension("").display().to_string());
    call.set("MVM_FORMAT", &file.extension().unwrap_or_default().to_string_lossy());
    call.set("MVM_DURATION", &seconds.to_string());
    let exit = match recorded.ended {
        Ended::Key('0') => Some("o"),
        Ended::Key('*') => Some("a"),
        _ => None,
    };
    if let Some(outcome) = exit.and_then(|exten| mini.visit.leave_to(&context, exten)) {
        call.set(STATUS, "USEREXIT");
        return outcome;
    }
    call.set(STATUS, "SUCCESS");
    match recorded.ended {
        Ended::Gone(stop) => Err(stop),
        _ => Ok(Flow::Continue),
    }
}

/// What MinivmRecord has left behind on this call, when it is where such recordings lie: `MVM_FILENAME` is a variable like any
/// other, and a file that a letter takes along or a step removes has to be one of ours.
fn recording(call: &Call, name: &str) -> Option<PathBuf> {
    let spool = call.chan.core(|core| core.settings.directories.0.get("spool").cloned()).unwrap_or_default();
    let home = Path::new(&spool).join("voicemail");
    let home = std::path::absolute(&home).unwrap_or(home);
    let path = Path::new(name);
    let mut rest = path.strip_prefix(&home).ok()?.components();
    let mut part = || rest.next().and_then(|part| part.as_os_str().to_str());
    let (domain, user, folder, file) = (part()?, part()?, part()?, part()?);
    let ours = BoxName::new(user, domain).is_some() && folder == "tmp" && file.starts_with("rec-");
    (ours && part().is_none()).then(|| path.to_owned())
}

/// The file of what was recorded, with its extension.
fn recorded_file(call: &Call, name: &str) -> Option<PathBuf> {
    let format =
        call.get("MVM_FORMAT").filter(|format| !format.is_empty()).unwrap_or_else(|| "wav".to_owned());
    let plain = format.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| recording(call, name)).flatten().map(|path| path.with_extension(format))
}

pub(super) async fn notify(call: &Call, text: &str) -> Outcome {
    const STATUS: &str = "MVM_NOTIFY_STATUS";
    let parts = args::split(text);
    let (address, template) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let Some(mini) = Mini::new(call, address, STATUS) else { return Ok(Flow::Continue) };
    let owner = mini.mini.owners.get(&mini.account.name).cloned().unwrap_or_default();
    let chosen = |own: &str, otherwise: &str| {
        let wanted =
            [template, own, otherwise].into_iter().find(|name| !name.is_empty()).unwrap_or(otherwise);
        let found = mini.mini.templates.get(wanted);
        if found.is_none() {
            call.log(Level::Warning, &format!("there is no [template-{wanted}] in minivm.conf"));
        }
        found.or_else(|| mini.mini.templates.get(otherwise)).cloned().unwrap_or_default()
    };
    let email = chosen(&owner.email_template, "email-default");
    let letter = mini.letter(&email, mini.account.emails.clone());
    let sent = mini.visit.mail(&mini.account, letter).await;
    if !mini.account.pager.is_empty() {
        let template = chosen(&owner.pager_template, "pager-default");
        let page = Letter { file: None, ..mini.letter(&template, vec![mini.account.pager.clone()]) };
        mini.visit.mail(&mini.account, page).await;
    }
    let general = &mini.visit.vm.extern_notify;
    let program = if owner.extern_notify.is_empty() { general } else { &owner.extern_notify }.clone();
    if !program.is_empty() {
        let caller = call.chan.with(|c| c.caller.clone()).unwrap_or_default();
        let name = &mini.account.name;
        let words = [name.mailbox(), name.context(), caller.number(), caller.name()];
        mini.visit.start(&program, words.map(str::to_owned).into());
    }
    call.set(STATUS, if sent { "SUCCESS" } else { "FAILED" });
    Ok(Flow::Continue)
}

impl Mini<'_> {
    fn letter(&self, template: &MiniTemplate, to: Vec<String>) -> Letter {
        let (call, account) = (self.visit.call, &self.account);
        let (rules, name) = (&account.rules, &account.name);
        let caller = call.chan.with(|c| c.caller.clone()).unwrap_or_default();
        let said = call.read("CALLERID(all)");
        let (now, random) =
            call.chan.core(|core| (core.services.wall.now_micros().div_euclid(1_000_000), core.random()));
        let zone = self.visit.vm.zone_of(account).zone;
        let date = date_text(call, now, &zone, &template.date_format, &template.locale);
        let seconds: u64 = call.get("MVM_DURATION").and_then(|text| text.parse().ok()).unwrap_or(0);
        let lent = Lent::new(
            call,
            VARIABLES,
            [
                account.full_name.clone(),
                format!("{}:{:02}", seconds / 60, seconds % 60),
                name.context().to_owned(),
                name.mailbox().to_owned(),
                said,
                caller.name().to_owned(),
                caller.number().to_owned(),
                date,
                call.get("MVM_COUNTER").unwrap_or_default(),
            ],
        );
        let (subject, body) = (call.expand(&template.subject), call.expand(&template.body));
        let or = |text: &str, otherwise: &str| {
            if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
        };
        let from_name = call.expand(&or(&template.from_name, &rules.fromstring));
        drop(lent);
        let from = or(&template.from_address, &rules.serveremail);
        let host = call.read("ENV(HOSTNAME)");
        let from = if from.contains('@') || host.is_empty() { from } else { format!("{from}@{host}") };
        let file = call.get("MVM_FILENAME").filter(|name| !name.is_empty() && template.attach);
        let found = file.as_deref().and_then(|name| recorded_file(call, name));
        if let (Some(name), None) = (&file, &found) {
            call.log(
                Level::Warning,
                &format!("{name} is no recording of MinivmRecord; the letter goes without it"),
            );
        }
        Letter {
            louder: rules.volgain,
            from_name,
            from,
            to_name: account.full_name.clone(),
            to,
            subject,
            body,
            id: format!("Strowger-{random:016x}-{}", name.mailbox()),
            date: now,
            headers: Vec::new(),
            attach: None,
            file: found,
            file_format: rules.attachfmt.clone(),
        }
    }
    /// Adds a line on what was recorded to the file of `logfile`.
    fn note(&self, seconds: u64, kept: bool) {
        if self.mini.log_file.is_empty() {
            return;
        }
        let (call, name) = (self.visit.call, &self.account.name);
        call.settle();
        let account_code = self.mini.owners.get(name).map(|owner| owner.account_code.clone());
        let Ok((location, channel)) = call.chan.with(|c| (c.location.clone(), c.name.clone())) else {
            return;
        };
        let said = call.read("CALLERID(all)");
        let time = call.chan.core(|core| core.services.wall.now_micros().div_euclid(1_000_000));
        let date = date_text(call, time, "", "%a %b %d %r %Z %Y", "");
        let parts = [
            name.mailbox().to_owned(),
            name.context().to_owned(),
            location.context,
            location.exten,
            location.priority.to_string(),
            channel.to_string(),
            said,
            date,
            time.to_string(),
            seconds.to_string(),
            if kept { "OK" } else { "IGNORED" }.to_owned(),
            account_code.unwrap_or_default(),
        ];
        // One line, whatever a caller calls himself.
        let line = parts.join(":").replace(|c: char| c.is_control(), " ");
        let path = call.chan.core(|core| {
            let folder = core.settings.directories.0.get("log").cloned().unwrap_or_default();
            Path::new(&folder).join(&self.mini.log_file)
        });
        call.chan.core(|core| {
            let ticket = core.services.post.ask(Job::Note(path, line));
            core.services.post.leave(ticket);
        });
    }
}

pub(super) async fn delete(call: &Call, text: &str) -> Outcome {
    const STATUS: &str = "MVM_DELETE_STATUS";
    let name = match text.trim() {
        "" => call.get("MVM_FILENAME").unwrap_or_default(),
        name => name.to_owned(),
    };
    let Some(file) = recorded_file(call, &name) else {
        call.log(Level::Warning, &format!("'{name}' is no recording of MinivmRecord"));
        call.set(STATUS, "FAILED");
        return Ok(Flow::Continue);
    };
    let progress = Arc::new(Progress::default());
    progress.end();
    let gone = call.chan.post(Job::Forget(Held { file, progress })).await;
    call.set(STATUS, if matches!(gone, Ok(Posted::Is(true))) { "SUCCESS" } else { "FAILED" });
    Ok(Flow::Continue)
}

pub(super) async fn account_message(call: &Call, text: &str) -> Outcome {
    const STATUS: &str = "MVM_ACCMESS_STATUS";
    let parts = args::split(text);
    let Some(mini) = Mini::new(call, args::nth(&parts, 0), STATUS) else { return Ok(Flow::Continue) };
    let (greeting, prompt) = match args::nth(&parts, 1) {
        "b" => (Greeting::Busy, "vm-rec-busy"),
        "u" => (Greeting::Unavailable, "vm-rec-unv"),
        "t" => (Greeting::Temporary, "vm-rec-temp"),
        "n" => (Greeting::Name, "vm-rec-name"),
        other => {
            call.log(Level::Error, &format!("'{other}' is none of b u t n"));
            call.set(STATUS, "FAILED");
            return Ok(Flow::Continue);
        }
    };
    let done: Result<(), Stop> = async {
        call.answer_for_sound().await?;
        mini.visit.new_greeting(&mini.account, greeting, prompt).await
    }
    .await;
    call.set(STATUS, if done.is_ok() { "SUCCESS" } else { "FAILED" });
    done.map(|()| Flow::Continue)
}

pub(super) fn lamp(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let count = |at: usize| args::nth(&parts, at).parse::<u32>().ok();
    let name = args::nth(&parts, 0).split_once('@').and_then(|(user, domain)| BoxName::new(user, domain));
    match (name, count(1), count(2), count(3)) {
        (Some(name), Some(urgent), Some(new), Some(old)) => {
            call.chan.core(|core| core.mail_counted(&name, Counts { urgent, new, old }));
        }
        _ => call
            .log(Level::Error, "MinivmMWI wants user@domain and the numbers of urgent, new and old messages"),
    }
    Ok(Flow::Continue)
}

/// `MINIVMACCOUNT(account:item)`.
pub(crate) fn read_account(call: &Call, text: &str, out: &mut String) -> Read {
    let (address, item) = text.split_once(':').ok_or(Fault::new("needs an account and an item"))?;
    let mini = call.chan.core(|core| core.settings.minivm.clone());
    let (account, there) = mini.account(address).ok_or(Fault::new("the account must be user@domain"))?;
    let owner = mini.owners.get(&account.name).cloned().unwrap_or_default();
    let value = match item.trim().to_ascii_lowercase().as_str() {
        "hasaccount" => u8::from(there).to_string(),
        "fullname" => account.full_name.clone(),
        "email" => account.emails.first().cloned().unwrap_or_default(),
        "pager" => account.pager.clone(),
        "etemplate" => owner.email_template,
        "ptemplate" => owner.pager_template,
        "accountcode" => owner.account_code,
        "pincode" => account.pin.clone(),
        "timezone" => account.rules.tz.clone(),
        "language" => account.rules.language.clone(),
        "path" => {
            let spool = call.chan.core(|core| core.settings.directories.0.get("spool").cloned());
            let name = &account.name;
            format!("{}/voicemail/{}/{}", spool.unwrap_or_default(), name.context(), name.mailbox())
        }
        _ => {
            let found = owner.variables.iter().find(|(name, _)| name.eq_ignore_ascii_case(item.trim()));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        }
    };
    out.push_str(&value);
    Ok(())
}

/// The key of `account:name[:operand]`, and the operand. An account may be a domain alone.
fn counter(text: &str) -> Result<(String, &str), Fault> {
    let mut parts = text.splitn(3, ':').map(str::trim);
    let (account, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let operand = parts.next().unwrap_or_default();
    if account.is_empty() || name.is_empty() {
        return Err(Fault::new("needs an account and the name of a counter"));
    }
    let (user, domain) = account.split_once('@').unwrap_or(("domain", account));
    let whose =
        BoxName::new(user, domain).ok_or(Fault::new("the account must be user@domain or a domain"))?;
    if name.len() > COUNTER_NAME_MAX || name.contains(['/', '@']) {
        return Err(Fault::new(format!("'{name}' cannot be the name of a counter")));
    }
    Ok((format!("{}/{}/{name}", whose.context(), whose.mailbox()), operand))
}

fn count(call: &Call, key: &str, change: impl FnOnce(i64) -> i64, changes: bool) -> Result<i64, Fault> {
    let kept = call.chan.core(|core| {
        let before = core.services.db.get(COUNTERS, key).and_then(|text| text.parse().ok()).unwrap_or(0);
        let after = change(before);
        (!changes || core.services.db.put(COUNTERS, key, &after.to_string())).then_some(after)
    });
    kept.ok_or(Fault::new("the database did not take it"))
}

/// `MINIVMCOUNTER(account:name[:i|d])`.
pub(crate) fn read_counter(call: &Call, text: &str, out: &mut String) -> Read {
    let (key, operand) = counter(text)?;
    let value = match operand {
        "" => count(call, &key, |value| value, false)?,
        "i" => count(call, &key, |value| value.saturating_add(1), true)?,
        "d" => count(call, &key, |value| value.saturating_sub(1), true)?,
        other => return Err(Fault::new(format!("'{other}' is neither i nor d"))),
    };
    out.push_str(&value.to_string());
    Ok(())
}

/// `Set(MINIVMCOUNTER(account:name[:i|d|s])=number)`.
pub(crate) fn write_counter(call: &Call, text: &str, value: &str) -> Read {
    let (key, operand) = counter(text)?;
    let by = || value.trim().parse::<i64>().map_err(|_| Fault::new(format!("'{value}' is no number")));
    let by = by()?;
    match operand {
        "" | "s" => count(call, &key, |_| by, true)?,
        "i" => count(call, &key, |value| value.saturating_add(by), true)?,
        "d" => count(call, &key, |value| value.saturating_sub(by), true)?,
        other => return Err(Fault::new(format!("'{other}' is none of i d s"))),
    };
    Ok(())
}
