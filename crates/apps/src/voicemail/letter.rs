//! Who is told that a message came: its owner by a letter and a page, a program, and by the counts all lamps.

use call::voicemail::{Account, Attach, Change, Folder, Job, Letter, Message, Posted};
use call::{Level, LinkWant};
use dialplan::{Wall, Words};

use super::Visit;
use crate::Call;

/// Variables that letters tell of.
const VARIABLES: &[&str] = &[
    "VM_NAME",
    "VM_DUR",
    "VM_MSGNUM",
    "VM_CONTEXT",
    "VM_MAILBOX",
    "VM_CALLERID",
    "VM_CIDNAME",
    "VM_CIDNUM",
    "VM_DATE",
    "VM_MESSAGEFILE",
    "VM_CATEGORY",
    "VM_FLAG",
    "VM_MSG_ID",
    "VM_PRIORITY",
    "VM_CALLERCHAN",
    "VM_RDNIS",
];

/// Sets variables of the channel for a while, and tells nobody.
pub(super) struct Lent<'a> {
    call: &'a Call,
    before: Vec<(&'static str, Option<String>)>,
}

impl<'a> Lent<'a> {
    pub(super) fn new(
        call: &'a Call,
        names: &[&'static str],
        values: impl IntoIterator<Item = String>,
    ) -> Self {
        let before = names.iter().map(|name| (*name, call.get(name))).collect();
        let lent = Self { call, before };
        names.iter().zip(values).for_each(|(name, value)| lent.put(name, Some(&value)));
        lent
    }
    fn put(&self, name: &str, value: Option<&str>) {
        let _ = self.call.chan.with(|c| match value {
            Some(value) => drop(c.vars.set(dialplan::Var::named(name), value, dialplan::Inherit::Never)),
            None => drop(c.vars.remove(dialplan::Var::named(name))),
        });
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.before.iter().for_each(|(name, value)| self.put(name, value.as_deref()));
    }
}

impl Visit<'_> {
    /// A message lies in a mailbox: tells whoever is to be told.
    pub(super) async fn arrived(&self, account: &Account, folder: Folder, message: &Message) {
        let mut mailed = false;
        if !account.emails.is_empty() {
            let letter = self.letter(account, folder, message, false);
            mailed = self.mail(account, letter).await;
        }
        if !account.pager.is_empty() {
            let letter = self.letter(account, folder, message, true);
            self.mail(account, letter).await;
        }
        if mailed && account.rules.delete {
            let change = (message.clone(), Change::Delete(account.rules.backupdeleted));
            let _ = self.post(Job::Change(account.name.clone(), folder, vec![change])).await;
        }
        self.tell_program(account);
    }
    /// Tells the program of `externnotify` what is in a mailbox now.
    pub(super) fn tell_program(&self, account: &Account) {
        if self.vm.extern_notify.is_empty() {
            return;
        }
        let name = account.name.to_string();
        let (all, urgent) = self
            .call
            .chan
            .core(|core| (core.mailbox(&name).unwrap_or_default(), core.urgent_messages(&name)));
        let numbers = [all.new.saturating_sub(urgent), all.old, urgent].map(|number| number.to_string());
        let [new, old, urgent] = numbers;
        let words = [account.name.context().to_owned(), account.name.mailbox().to_owned(), new, old, urgent];
        self.start(&self.vm.extern_notify.clone(), words.into());
    }
    /// Starts a program of voicemail.conf, whose line the shell reads, with words that it does not.
    pub(super) fn start(&self, line: &str, words: Vec<String>) {
        let mut args =
            vec!["-c".to_owned(), format!("exec </dev/null >/dev/null\n{line} \"$@\""), "sh".to_owned()];
        args.extend(words);
        self.open(line, args);
    }
    fn open(&self, line: &str, args: Vec<String>) -> bool {
        let want =
            LinkWant::Program { path: "/bin/sh".to_owned(), args, environment: Vec::new(), audio: false };
        let opened = self.call.chan.core(|core| core.services.links.open(want));
        match opened {
            // It goes on by itself.
            Ok(link) => self.call.chan.core(|core| core.close_link(link)),
            Err(ref why) => self.call.log(Level::Error, &format!("cannot start {line}: {why}")),
        }
        opened.is_ok()
    }
    /// Hands a letter to the mail program.
    pub(super) async fn mail(&self, account: &Account, letter: Letter) -> bool {
        let Ok(Posted::File(file)) = self.post(Job::Write(Box::new(letter))).await else { return false };
        let line = &account.rules.mailcmd;
        let script = format!("( {line} ) <\"$1\"; rm -f -- \"$1\"");
        self.open(line, vec!["-c".to_owned(), script, "sh".to_owned(), file.display().to_string()])
    }
    /// Watchers see the variables of a letter, which are no channel's.
    fn tell_letter(
        &self,
        account: &Account,
        message: &Message,
        [length, number, sent, date]: [&str; 4],
        caller: &call::PartyId,
    ) {
        let info = &message.info;
        let written = info.caller_id.replace('"', "\\\"");
        let category = if info.category.is_empty() { "no category" } else { &info.category };
        let variables = [
            ("VM_NAME", &*account.full_name),
            ("VM_DUR", length),
            ("VM_MSGNUM", number),
            ("VM_CONTEXT", account.name.context()),
            ("VM_MAILBOX", account.name.mailbox()),
            ("VM_CALLERID", &written),
            ("VM_CIDNAME", caller.name()),
            ("VM_CIDNUM", caller.number()),
            ("VM_DATE", sent),
            ("VM_CATEGORY", category),
            ("VM_FLAG", if info.urgent { "Urgent" } else { "" }),
            ("ORIG_VM_CALLERID", &written),
            ("ORIG_VM_CIDNAME", caller.name()),
            ("ORIG_VM_CIDNUM", caller.number()),
            ("ORIG_VM_DATE", date),
        ];
        self.call.chan.core(|core| {
            for (variable, value) in variables {
                let (variable, value) = (variable.to_owned(), value.to_owned());
                core.notice(|_| Some(call::Notice::VarSet { channel: None, variable, value }));
            }
        });
    }
    fn letter(&self, account: &Account, folder: Folder, message: &Message, is_page: bool) -> Letter {
        let (rules, info, call) = (&account.rules, &message.info, self.call);
        let caller = call::PartyId::parse(&info.caller_id);
        let number = (message.number + 1).to_string();
        let zone = self.vm.zone_of(account).zone;
        let format = if is_page { &rules.pagerdateformat } else { &rules.emaildateformat };
        let date = date_text(call, info.time, &zone, format, &rules.locale);
        let file = format!("msg{:04}", message.number);
        let length = format!("{}:{:02}", info.duration / 60, info.duration % 60);
        let lent = Lent::new(
            call,
            VARIABLES,
            [
                account.full_name.clone(),
                length.clone(),
                number.clone(),
                account.name.context().to_owned(),
                account.name.mailbox().to_owned(),
                info.caller_id.clone(),
                caller.name().to_owned(),
                caller.number().to_owned(),
                date.clone(),
                file.clone(),
                info.category.clone(),
                if info.urgent { "Urgent" } else { "" }.to_owned(),
                info.id.clone(),
                info.priority.to_string(),
                info.channel.clone(),
                info.rdnis.clone(),
            ],
        );
        let (subject, body) = match is_page {
            true => (call.expand(&rules.pagersubject), call.expand(&rules.pagerbody)),
            false => (call.expand(&rules.emailsubject), call.expand(&rules.emailbody)),
        };
        let from_name = call.expand(if is_page { &rules.pagerfromstring } else { &rules.fromstring });
        drop(lent);
        let now = call.chan.core(|core| core.services.wall.now_micros()).div_euclid(1_000_000);
        let sent = date_text(call, now, &zone, format, &rules.locale);
        self.tell_letter(account, message, [&*length, &*number, &*sent, &*date], &caller);
        let host = call.read("ENV(HOSTNAME)");
        let from = match rules.serveremail.contains('@') || host.is_empty() {
            true => rules.serveremail.clone(),
            false => format!("{}@{host}", rules.serveremail),
        };
        let attach = Attach {
            of: account.name.clone(),
            folder,
            message: Box::new(message.clone()),
            format: match rules.attachfmt.as_str() {
                "" => self.vm.formats.first().cloned().unwrap_or_default(),
                "wav49" => "WAV".to_owned(),
                format => format.to_owned(),
            },
            name: file,
        };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![
            header("X-Asterisk-VM-Message-Num", &(message.number + 1).to_string()),
            header("X-Asterisk-VM-Message-Type", "Message"),
            header("X-Asterisk-VM-Orig-Mailbox", &info.orig_mailbox),
            header("X-Asterisk-VM-Duration", &info.duration.to_string()),
            header("X-Asterisk-CallerID", caller.number()),
            header("X-Asterisk-CallerIDName", caller.name()),
            header("X-Asterisk-VM-Category", &info.category),
        ];
        Letter {
            louder: rules.volgain,
            from_name,
            from,
            to_name: if is_page { String::new() } else { account.full_name.clone() },
            to: if is_page { vec![account.pager.clone()] } else { account.emails.clone() },
            subject,
            body,
            id: format!("Strowger-{}-{}-{}", message.number + 1, account.name.mailbox(), info.id),
            date: info.time,
            headers: if is_page { Vec::new() } else { headers },
            attach: (rules.attach && !is_page).then_some(attach),
            file: None,
            file_format: String::new(),
        }
    }
}

/// A moment, seconds since the epoch, as clocks in a zone show it, in the words of a locale that is known.
pub(super) fn date_text(call: &Call, time: i64, zone: &str, format: &str, locale: &str) -> String {
    let offset = call.chan.core(|core| core.services.wall.offset(time, zone));
    let words = Words::of(locale).unwrap_or(&dialplan::words::ENGLISH);
    let mut text = String::new();
    dialplan::strftime::format_in(words, Wall { seconds: time, micros: 0 }, &offset, format, &mut text);
    text
}
