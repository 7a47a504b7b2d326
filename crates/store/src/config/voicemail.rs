//! `voicemail.conf`: mailboxes, their rules, and how dates are said to their owners.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use call::voicemail::{
    Account, BoxName, BoxRules, Controls, MESSAGES_MAX, PinPlace, Sounds, Voicemail, Zone,
};
use conf::{File, Findings, Place, Section, Variable};
use dialplan::Words;

use super::kind::{Decibels, Hidden, Int, Names, Text, YesNo};
use super::{Object as _, Origin, options, read_object};

/// Subject and body of a letter when nothing is written.
const SUBJECT: &str = "[PBX]: New message ${VM_MSGNUM} in mailbox ${VM_MAILBOX}";
const BODY: &str = "Dear ${VM_NAME}:\n\n\tjust wanted to let you know you were just left a ${VM_DUR} long message \
(number ${VM_MSGNUM})\nin mailbox ${VM_MAILBOX} from ${VM_CALLERID}, on ${VM_DATE} so you might\nwant to check it when \
you get a chance.  Thanks!\n\n\t\t\t\t--Strowger\n";
const PAGER_SUBJECT: &str = "New VM";
const PAGER_BODY: &str = "New ${VM_DUR} long msg in box ${VM_MAILBOX}\nfrom ${VM_CALLERID}, on ${VM_DATE}";

options! {
    /// `[general]`.
    VoicemailGeneral, "voicemail.conf", "general", IsIgnored;
    format: Text = "wav", "File formats of messages, parted by `|`; the first is mailed.";
    serveremail: Text = "asterisk", "Sender of letters.";
    fromstring: Text = "The Asterisk PBX", "Name of the sender.";
    usefromstring as "pagerfromstring": Text = "The Asterisk PBX", "The same of pages.";
    attach: YesNo = "no", "Messages go with the letter that tells of them.";
    attachfmt: Text = "", "Format of what is attached; empty: the first of format.";
    volgain: Decibels = "0.0", "What is attached is so much louder than it was recorded.";
    maxmsg: Int<0, 9999> = "100", "Most messages in a folder.";
    maxsecs also "maxmessage": Int<0, 86_400> = "0", "Longest message, seconds; 0: no limit.";
    minsecs also "minmessage": Int<0, 3600> = "0", "Shortest message that is kept, seconds.";
    maxgreet: Int<0, 3600> = "0", "Longest greeting, seconds; 0: no limit.";
    skipms: Int<1, 600_000> = "3000", "Milliseconds that a skip goes forward and back.";
    maxsilence: Int<0, 600> = "0", "Seconds of silence that end a message, and are cut off; 0: none do.";
    silencethreshold: Int<1, 32_767> = "128", "Mean amplitude below which it is silence.";
    maxlogins: Int<1, 100> = "3", "Tries to log in before the call is sent away.";
    moveheard: YesNo = "yes", "What was heard goes to the folder Old.";
    forward_urgent_auto: YesNo = "no", "An urgent message stays urgent when it is forwarded.";
    externnotify: Text = "", "Program that is told when what is in a mailbox changed: context, mailbox, new, old, urgent.";
    externpass: Text = "", "Program that writes a new PIN down instead: context, mailbox, PIN.";
    externpassnotify: Text = "", "Program that is told of a new PIN besides.";
    externpasscheck: Text = "", "Program that judges a new PIN (mailbox, context, old, new) and says VALID or not.";
    directoryintro: Text = "dir-intro", "What is said before the directory.";
    charset: Text = "ISO-8859-1", "Character set of letters.", Ignored "*" "letters are UTF-8";
    usedirectory: YesNo = "no", "Whom a message is forwarded to, or left for, is chosen by number or by name (see Directory).";
    mailcmd: Text = "/usr/sbin/sendmail -t", "Program that takes letters.";
    emailsubject: Text = "", "Subject of letters; ${VM_NAME} and the like stand for what they tell of.";
    emailbody: Text = "", "Text of letters; \\n and \\t are line end and tab.";
    emaildateformat: Text = "%A, %B %d, %Y at %r", "${VM_DATE} of letters, as strftime has it.";
    pagersubject: Text = "", "Subject of pages.";
    pagerbody: Text = "", "Text of pages.";
    pagerdateformat: Text = "%A, %B %d, %Y at %r", "${VM_DATE} of pages.";
    tz: Text = "", "Zone of zonemessages in which dates are said.";
    locale: Text = "", "Locale of dates in letters, such as de_DE: the names of days and months; empty: English.";
    language: Text = "", "Language in which the owner is spoken to; empty: that of the call.";
    sendvoicemail: YesNo = "no", "Owners may leave messages for others from their menu.";
    review: YesNo = "no", "Callers may hear, record anew and mark as urgent what they left.";
    operator: YesNo = "no", "0 leads a caller to the extension o.";
    envelope: YesNo = "yes", "Date and caller are said before a message.";
    saycid: YesNo = "no", "The caller's number is said before a message.";
    cidinternalcontexts: Names = "", "Contexts whose callers are named by their mailbox's greeting.";
    sayduration: YesNo = "yes", "The length is said before a message.";
    saydurationm: Int<0, 1440> = "2", "Only from so many minutes on.";
    forcename: YesNo = "no", "A new owner has to record his name: one whose PIN is the number of the mailbox.";
    forcegreetings: YesNo = "no", "He has to record his greetings.";
    hidefromdir: YesNo = "no", "Mailboxes are not in the directory.";
    dialout: Text = "", "Context in which owners may dial from their menu.";
    callback: Text = "", "Context in which who left a message is called back.";
    exitcontext: Text = "", "Context of the extensions o and a; empty: that of the call.";
    messagewrap: YesNo = "no", "After the last message comes the first.";
    nextaftercmd: YesNo = "no", "After a message was deleted or saved comes the next.";
    backupdeleted: Int<0, 9999> = "0", "Deleted messages that are kept in the folder Deleted.";
    tempgreetwarn: YesNo = "no", "Owners are told that their temporary greeting is in force.";
    passwordlocation: Text = "voicemail.conf", "Where new PINs are kept: voicemail.conf or spooldir.";
    pollmailboxes: YesNo = "no", "Mailboxes are counted that others may change.";
    pollfreq: Int<1, 86_400> = "30", "How often, seconds.";
    minpassword: Int<0, 32> = "0", "Fewest digits of a new PIN.";
    delete: YesNo = "no", "Messages that were mailed are deleted.";
    searchcontexts: YesNo = "no", "A mailbox without a context is looked for in all.";
    aliasescontext: Text = "", "Section with other names of mailboxes: other@context => mailbox@context.";
    login as "vm-login": Text = "vm-login", "Asks for the mailbox.";
    password as "vm-password": Text = "vm-password", "Asks for the PIN.";
    newpassword as "vm-newpassword": Text = "vm-newpassword", "Asks for a new one.";
    passchanged as "vm-passchanged": Text = "vm-passchanged", "It is changed.";
    reenterpassword as "vm-reenterpassword": Text = "vm-reenterpassword", "Asks for it again.";
    mismatch as "vm-mismatch": Text = "vm-mismatch", "They were not the same.";
    invalid_password as "vm-invalid-password": Text = "vm-invalid-password", "It is too short or too simple.";
    pls_try_again as "vm-pls-try-again": Text = "vm-pls-try-again", "Asks to try again.";
    prepend_timeout as "vm-prepend-timeout": Text = "vm-then-pound", "Ends an introduction that was not ended.";
    forward_key as "listen-control-forward-key": Text = "#", "Goes on skipms later.";
    reverse_key as "listen-control-reverse-key": Text = "*", "Goes back so much.";
    pause_key as "listen-control-pause-key": Text = "0", "Stops a message, and goes on.";
    restart_key as "listen-control-restart-key": Text = "2", "Begins it again.";
    stop_key as "listen-control-stop-key": Text = "13456789", "Ends it.";
    @recognised {
        "userscontext" "default" Ignored "users.conf is not read";
        "leaveurgent" "yes" Later "callers may mark their message as urgent where review=yes";
        "odbc_audio_on_disk" "*" Ignored "messages are kept in files";
        "imap_poll_logout" "*" Ignored "messages are kept in files";
        "smdienable" "no" Later "no message desk is told";
        "smdiport" "*" Later "no message desk is told";
        "pbxskip" "*" Ignored "the subject is what emailsubject says";
        "odbcstorage" "*" Later "messages are kept in files";
        "odbctable" "*" Later "messages are kept in files";
        "imapserver" "*" Later "messages are kept in files";
        "imapport" "*" Later "messages are kept in files";
        "imapflags" "*" Later "messages are kept in files";
        "imapfolder" "*" Later "messages are kept in files";
        "imapparentfolder" "*" Later "messages are kept in files";
        "imapgreetings" "no" Later "messages are kept in files";
        "greetingsfolder" "*" Later "messages are kept in files";
        "authuser" "*" Later "messages are kept in files";
        "authpassword" "*" Later "messages are kept in files";
        "expungeonhangup" "*" Later "messages are kept in files";
        "opentimeout" "*" Later "messages are kept in files";
        "closetimeout" "*" Later "messages are kept in files";
        "readtimeout" "*" Later "messages are kept in files";
        "writetimeout" "*" Later "messages are kept in files";
        "adsifdn" "*" Ignored "there are no ADSI phones";
        "adsisec" "*" Ignored "there are no ADSI phones";
        "adsiver" "*" Ignored "there are no ADSI phones";
    }
}

options! {
    /// What a mailbox's own line may change, after its pager: `attach=yes|delete=yes`.
    VoicemailBox, "voicemail.conf", "mailbox", IsIgnored;
    pin: Hidden = "", "PIN; one that begins with `-` cannot be changed by its owner, an empty one lets everybody in.";
    attach: YesNo = "no", "Messages go with the letter, as for all mailboxes.";
    attachfmt: Text = "", "Format of what is attached.";
    volgain: Decibels = "0.0", "What is attached is so much louder.";
    serveremail: Text = "", "Sender of letters.";
    fromstring: Text = "", "Name of the sender.";
    mailcmd: Text = "", "Program that takes letters.";
    emailsubject: Text = "", "Subject of letters.";
    emailbody: Text = "", "Text of letters.";
    emaildateformat: Text = "", "${VM_DATE} of letters.";
    tz: Text = "", "Zone in which dates are said.";
    locale: Text = "", "Locale of dates in letters.";
    language: Text = "", "Language in which the owner is spoken to.";
    delete also "deletevoicemail": YesNo = "no", "Messages that were mailed are deleted.";
    saycid: YesNo = "no", "The caller's number is said.";
    sayduration: YesNo = "no", "The length is said.";
    saydurationm: Int<0, 1440> = "0", "Only from so many minutes on.";
    envelope: YesNo = "no", "Date and caller are said.";
    sendvoicemail: YesNo = "no", "Messages may be left for others.";
    review: YesNo = "no", "Callers may hear what they left.";
    operator: YesNo = "no", "0 leads to the extension o.";
    dialout: Text = "", "Context to dial in.";
    callback: Text = "", "Context to call back in.";
    exitcontext: Text = "", "Context of the extensions o and a.";
    maxmsg: Int<0, 9999> = "0", "Most messages in a folder.";
    maxsecs also "maxmessage": Int<0, 86_400> = "0", "Longest message, seconds.";
    minsecs: Int<0, 3600> = "0", "Shortest message, seconds.";
    moveheard: YesNo = "no", "What was heard goes to the folder Old.";
    nextaftercmd: YesNo = "no", "After a deleted or saved message comes the next.";
    messagewrap: YesNo = "no", "After the last message comes the first.";
    forcename: YesNo = "no", "A new owner has to record his name.";
    forcegreetings: YesNo = "no", "And his greetings.";
    hidefromdir: YesNo = "no", "It is not in the directory.";
    tempgreetwarn: YesNo = "no", "The owner is told of his temporary greeting.";
    backupdeleted: Int<0, 9999> = "0", "Deleted messages that are kept.";
    passwordlocation: Text = "", "Where a new PIN is kept.";
    @recognised {
        "leaveurgent" "yes" Later "callers may mark their message as urgent where review=yes";
        "imapuser" "*" Later "messages are kept in files";
        "imapsecret" "*" Later "messages are kept in files";
        "imappassword" "*" Later "messages are kept in files";
        "imapfolder" "*" Later "messages are kept in files";
        "imapvmshareid" "*" Later "messages are kept in files";
        "imapserver" "*" Later "messages are kept in files";
    }
}

/// `voicemail.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VoicemailConf {
    /// `[general]`.
    pub general: VoicemailGeneral,
    /// What applications obey.
    pub voicemail: Arc<Voicemail>,
    /// Where each mailbox stands: file, and the text of its line.
    pub lines: BTreeMap<BoxName, (String, String)>,
}

impl VoicemailConf {
    /// The manual's rows.
    pub(crate) fn rows() -> Vec<super::Row> {
        [VoicemailGeneral::rows(), VoicemailBox::rows()].concat()
    }

    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut general = VoicemailGeneral::default();
        if let Some(section) = file.section("general")
            && let Some(read) = read_object(section, findings, &mut |_, _, _| false)
        {
            general = read;
        }
        let mut voicemail = basic(&general, findings);
        let rules = Arc::clone(&voicemail.rules);
        let mut lines = BTreeMap::new();
        for section in &file.sections {
            let name = &*section.name;
            if section.template || name.eq_ignore_ascii_case("general") {
                continue;
            }
            if name.eq_ignore_ascii_case("zonemessages") {
                voicemail.zones.extend(section.variables.iter().filter_map(|line| zone(line, findings)));
            } else if !general.aliasescontext.is_empty() && name == general.aliasescontext {
                voicemail.aliases.extend(section.variables.iter().filter_map(|line| alias(line, findings)));
            } else {
                for line in &section.variables {
                    let Some(account) = account(section, line, &rules, findings) else { continue };
                    let stands = (line.place.file.to_string(), line.value.to_string());
                    lines.insert(account.name.clone(), stands);
                    let known = voicemail.accounts.insert(account.name.clone(), Arc::new(account));
                    if let Some(known) = known {
                        let message =
                            format!("the mailbox {} is there twice; the last line holds", known.name);
                        findings.warning(&line.place, message, "remove one of the lines");
                    }
                }
            }
        }
        for account in voicemail.accounts.values() {
            let tz = &account.rules.tz;
            if !tz.is_empty() && !voicemail.zones.contains_key(tz) {
                let message = format!("mailbox {}: there is no zone '{tz}' in [zonemessages]", account.name);
                findings.warning(&general.origin.place, message, "add it, or remove tz=");
            }
        }
        Self { general, voicemail: Arc::new(voicemail), lines }
    }
}

/// What holds for all mailboxes.
fn basic(general: &VoicemailGeneral, findings: &mut Findings) -> Voicemail {
    let limit = |secs: u32| (secs > 0).then(|| Duration::from_secs(secs.into()));
    let key = |text: &str, default: char| text.trim().chars().next().unwrap_or(default);
    Voicemail {
        formats: formats(general, findings),
        max_greet: limit(general.maxgreet),
        max_silence: limit(general.maxsilence),
        silence_threshold: general.silencethreshold as u16,
        skip_ms: general.skipms,
        max_logins: general.maxlogins,
        min_password: general.minpassword,
        extern_pass: general.externpass.clone(),
        extern_pass_notify: general.externpassnotify.clone(),
        extern_pass_check: general.externpasscheck.clone(),
        extern_notify: general.externnotify.clone(),
        forward_urgent: general.forward_urgent_auto,
        search_contexts: general.searchcontexts,
        internal_contexts: general.cidinternalcontexts.clone(),
        directory_intro: general.directoryintro.clone(),
        use_directory: general.usedirectory,
        poll: if general.pollmailboxes { limit(general.pollfreq) } else { None },
        controls: Controls {
            forward: key(&general.forward_key, '#'),
            reverse: key(&general.reverse_key, '*'),
            pause: key(&general.pause_key, '0'),
            restart: key(&general.restart_key, '2'),
            stop: general.stop_key.clone(),
        },
        sounds: Sounds {
            login: general.login.clone(),
            password: general.password.clone(),
            newpassword: general.newpassword.clone(),
            passchanged: general.passchanged.clone(),
            reenterpassword: general.reenterpassword.clone(),
            mismatch: general.mismatch.clone(),
            invalid_password: general.invalid_password.clone(),
            pls_try_again: general.pls_try_again.clone(),
            prepend_timeout: general.prepend_timeout.clone(),
        },
        zones: BTreeMap::new(),
        accounts: BTreeMap::new(),
        aliases: BTreeMap::new(),
        rules: Arc::new(rules(general, findings)),
    }
}

/// The formats that can be written, each once.
fn formats(general: &VoicemailGeneral, findings: &mut Findings) -> Vec<String> {
    let mut formats: Vec<String> = Vec::new();
    for name in general.format.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()) {
        if codec::Recording::new(extension(name)).is_none() {
            let message = format!("messages cannot be written as '{name}'");
            findings.warning(
                general.origin.place_of("format"),
                message,
                "write wav, wav49, gsm, ulaw, alaw, g722, sln or opus",
            );
        } else if !formats.iter().any(|known| known == extension(name)) {
            formats.push(extension(name).to_owned());
        }
    }
    if formats.is_empty() {
        formats.push("wav".to_owned());
    }
    formats
}

/// The extension that files of a format have: those of `wav49` end in `WAV`.
pub(super) fn extension(format: &str) -> &str {
    if format.eq_ignore_ascii_case("wav49") { "WAV" } else { format }
}

fn or<'a>(text: &'a str, default: &'a str) -> String {
    if text.is_empty() { default } else { text }.to_owned()
}

fn pin_place(text: &str, origin: &Origin, findings: &mut Findings) -> PinPlace {
    match text {
        "spooldir" => PinPlace::Spool,
        "voicemail.conf" => PinPlace::Config,
        _ => {
            let message = format!(
                "passwordlocation={text} is neither voicemail.conf nor spooldir; voicemail.conf holds"
            );
            findings.warning(
                origin.place_of("passwordlocation"),
                message,
                "write spooldir or remove the line",
            );
            PinPlace::Config
        }
    }
}

/// `\n`, `\t` and `\r` as the field has them in texts of letters.
pub(super) fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
}

/// Says when the words of a locale are not known.
pub(super) fn known_locale(locale: &str, place: &Place, findings: &mut Findings) {
    if Words::of(locale).is_none() {
        let message = format!("the words of the locale '{locale}' are not known; dates are in English");
        let languages: Vec<&str> = Words::languages().collect();
        findings.warning(place, message, format!("write one of {}", languages.join(", ")));
    }
}

fn rules(general: &VoicemailGeneral, findings: &mut Findings) -> BoxRules {
    known_locale(&general.locale, general.origin.place_of("locale"), findings);
    BoxRules {
        attach: general.attach,
        attachfmt: general.attachfmt.clone(),
        volgain: general.volgain,
        serveremail: general.serveremail.clone(),
        fromstring: general.fromstring.clone(),
        emailsubject: or(&general.emailsubject, SUBJECT),
        emailbody: unescaped(&or(&general.emailbody, BODY)),
        emaildateformat: general.emaildateformat.clone(),
        pagerfromstring: general.usefromstring.clone(),
        pagersubject: or(&general.pagersubject, PAGER_SUBJECT),
        pagerbody: unescaped(&or(&general.pagerbody, PAGER_BODY)),
        pagerdateformat: general.pagerdateformat.clone(),
        charset: general.charset.clone(),
        mailcmd: general.mailcmd.clone(),
        tz: general.tz.clone(),
        locale: general.locale.clone(),
        language: general.language.clone(),
        delete: general.delete,
        saycid: general.saycid,
        sayduration: general.sayduration,
        saydurationm: general.saydurationm,
        envelope: general.envelope,
        sendvoicemail: general.sendvoicemail,
        review: general.review,
        operator: general.operator,
        dialout: general.dialout.clone(),
        callback: general.callback.clone(),
        exitcontext: general.exitcontext.clone(),
        maxmsg: if general.maxmsg == 0 { MESSAGES_MAX } else { general.maxmsg },
        maxsecs: general.maxsecs,
        minsecs: general.minsecs,
        moveheard: general.moveheard,
        nextaftercmd: general.nextaftercmd,
        messagewrap: general.messagewrap,
        forcename: general.forcename,
        forcegreetings: general.forcegreetings,
        hidefromdir: general.hidefromdir,
        tempgreetwarn: general.tempgreetwarn,
        backupdeleted: general.backupdeleted,
        passwordlocation: pin_place(&general.passwordlocation, &general.origin, findings),
    }
}

/// `eastern => America/New_York|'vm-received' Q 'digits/at' IMp`.
pub(super) fn zone(line: &Variable, findings: &mut Findings) -> Option<(String, Zone)> {
    let Some((zone, format)) = line.value.split_once('|') else {
        let message = format!("zone '{}' has no '|'", line.name);
        findings.warning(&line.place, message, "write name=Europe/Berlin|'vm-received' Q 'digits/at' kM");
        return None;
    };
    Some((line.name.to_string(), Zone { zone: zone.trim().to_owned(), format: format.trim().to_owned() }))
}

fn alias(line: &Variable, findings: &mut Findings) -> Option<(BoxName, BoxName)> {
    let pair = BoxName::parse(&line.name).zip(BoxName::parse(&line.value));
    if pair.is_none() {
        findings.warning(
            &line.place,
            format!("{} => {} names no mailboxes", line.name, line.value),
            "write other@context => mailbox@context",
        );
    }
    pair
}

/// `6001 => pin,name,email,pager,opt=val|opt=val`.
fn account(
    section: &Section,
    line: &Variable,
    general: &Arc<BoxRules>,
    findings: &mut Findings,
) -> Option<Account> {
    let Some(name) = BoxName::new(&line.name, &section.name) else {
        if let Some(other) = BoxName::parse(&line.name).and_then(|_| BoxName::parse(&line.value)) {
            let message = format!(
                "[{}] has other names of mailboxes, such as '{}' for {other}, and aliasescontext= does not name it",
                section.name, line.name
            );
            findings.warning(
                &line.place,
                message,
                format!("write aliasescontext={} in [general]", section.name),
            );
            return None;
        }
        let message = format!("'{}' of [{}] cannot be the name of a mailbox", line.name, section.name);
        findings.error(
            &line.place,
            message,
            "use digits and letters; '/' and a leading '.' lead out of the spool",
        );
        return None;
    };
    let mut parts = line.value.splitn(5, ',').map(str::trim);
    let mut part = || parts.next().unwrap_or_default();
    let (pin, full_name, email, pager, own) = (part(), part(), part(), part(), part());
    let pin_is_fixed = pin.starts_with('-');
    let pin = pin.trim_start_matches('-');
    if !pin.chars().all(|c| c.is_ascii_digit() || "*#ABCD".contains(c)) {
        let message = format!("the PIN of mailbox {name} cannot be typed on a phone");
        findings.warning(&line.place, message, "use digits");
    }
    Some(Account {
        rules: own_rules(line, own, general, findings),
        pin: pin.to_owned(),
        pin_is_fixed,
        full_name: full_name.to_owned(),
        emails: email.split('|').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        pager: pager.to_owned(),
        name,
        is_row: super::realtime::is_row(&line.place),
    })
}

/// The rules of a mailbox: shared with all that say nothing else.
fn own_rules(line: &Variable, text: &str, general: &Arc<BoxRules>, findings: &mut Findings) -> Arc<BoxRules> {
    if text.is_empty() {
        return Arc::clone(general);
    }
    let pairs = text.split('|').map(str::trim).filter(|pair| !pair.is_empty());
    let variables = pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some(Variable { name: name.trim().into(), value: value.trim().into(), ..line.clone() })
    });
    let section = Section {
        name: line.name.clone(),
        template: false,
        place: line.place.clone(),
        parents: Vec::new(),
        variables: variables.collect(),
    };
    let Some(own) = read_object::<VoicemailBox>(&section, findings, &mut |_, _, _| false) else {
        return Arc::clone(general);
    };
    known_locale(&own.locale, own.origin.place_of("locale"), findings);
    let mut rules = (**general).clone();
    macro_rules! take {
        ($($field:ident)*) => {
            $(if own.origin.has(stringify!($field)) {
                rules.$field = own.$field.clone().into();
            })*
        };
    }
    take!(attach attachfmt volgain serveremail fromstring mailcmd emailsubject emaildateformat tz locale language delete
        saycid
        sayduration saydurationm envelope sendvoicemail review operator dialout callback exitcontext maxsecs minsecs
        moveheard nextaftercmd messagewrap forcename forcegreetings hidefromdir tempgreetwarn backupdeleted);
    if own.origin.has("emailbody") {
        rules.emailbody = unescaped(&own.emailbody);
    }
    if own.origin.has("maxmsg") {
        rules.maxmsg = if own.maxmsg == 0 { MESSAGES_MAX } else { own.maxmsg };
    }
    if own.origin.has("passwordlocation") {
        rules.passwordlocation = pin_place(&own.passwordlocation, &own.origin, findings);
    }
    Arc::new(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (VoicemailConf, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("voicemail.conf", text);
        let file = conf::load(&source, "voicemail.conf", conf::Options::default(), &mut findings).unwrap();
        let read = VoicemailConf::read(&file, &mut findings);
        (read, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn a_line_is_a_mailbox_with_rules_of_its_own() {
        let (read, said) = read(
            "[general]\nformat=wav49|gsm|wav\nattach=yes\nmaxsecs=60\nemailbody=Hello\\n${VM_NAME}\n\
             maxsilence=5\n[zonemessages]\nberlin=Europe/Berlin|'vm-received' Q 'digits/at' kM\n\
             [default]\n6001 => 1234,Alice Smith,alice@example.com|a2@example.com,pager@example.com,\
             attach=no|tz=berlin|maxmsg=5|delete=yes\n6002 => -4711,Bob\n[office]\n6001 => 99\n",
        );
        assert_eq!(said, [""; 0]);
        let voicemail = &read.voicemail;
        assert_eq!(voicemail.formats, ["WAV", "gsm", "wav"]);
        assert_eq!(voicemail.max_silence, Some(Duration::from_secs(5)));
        let alice = voicemail.find("6001", "").unwrap();
        assert_eq!(
            (alice.pin.as_str(), alice.full_name.as_str(), alice.pin_is_fixed),
            ("1234", "Alice Smith", false)
        );
        assert_eq!(alice.emails, ["alice@example.com", "a2@example.com"]);
        assert_eq!(alice.pager, "pager@example.com");
        assert!(!alice.rules.attach && alice.rules.delete);
        assert_eq!((alice.rules.maxmsg, alice.rules.maxsecs), (5, 60));
        assert_eq!(voicemail.zone_of(alice).zone, "Europe/Berlin");
        let bob = voicemail.find("6002", "default").unwrap();
        assert_eq!((bob.pin.as_str(), bob.pin_is_fixed, bob.rules.attach), ("4711", true, true));
        assert_eq!(bob.rules.emailbody, "Hello\n${VM_NAME}");
        assert!(Arc::ptr_eq(&bob.rules, &voicemail.rules));
        assert_eq!(voicemail.find("6001", "office").unwrap().pin, "99");
        assert!(!format!("{voicemail:?}").contains("4711"), "PINs are not printed");
    }

    #[test]
    fn aliases_and_what_makes_no_sense() {
        let (read, said) = read(
            "[general]\naliasescontext=names\nformat=mp3\npasswordlocation=home\n[names]\n100@default => 6001@default\n\
             x/y => 6001\n[default]\n6001 => 12\n../../etc => 1\n6003 => secret,,,,tz=moon|volgain=loud|colour=red\n",
        );
        let voicemail = &read.voicemail;
        assert_eq!(
            voicemail.find_text("100").map(|one| one.name.to_string()).as_deref(),
            Some("6001@default")
        );
        assert_eq!(voicemail.formats, ["wav"]);
        assert_eq!(voicemail.accounts.len(), 2);
        for words in [
            "as 'mp3'",
            "passwordlocation=home",
            "x/y => 6001 names no mailboxes",
            "'../../etc' of [default] cannot be",
            "cannot be typed",
            "no zone 'moon'",
            "volgain",
            "no option `colour`",
        ] {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:#?}");
        }
    }
}
