//! `minivm.conf`: accounts of MiniVM and the letters that are written to them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use call::voicemail::{Account, BoxName, BoxRules, MiniOwner, MiniTemplate, MiniVm, Voicemail};
use conf::{File, Findings, Section, Source};

use super::kind::{Decibels, Hidden, Int, Lines, Text, YesNo};
use super::voicemail::{extension, unescaped, zone};
use super::{Object as _, options, read_object};

/// Longest text of a letter that a file may hold, bytes: many pages.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Subject and body of a letter when no template says otherwise.
const SUBJECT: &str = "New voicemail from ${MVM_CALLERID}";
const BODY: &str = "Dear ${MVM_NAME}:\n\nYou were just left a ${MVM_DUR} long message (number ${MVM_COUNTER})\n\
                    from ${MVM_CALLERID}, on ${MVM_DATE}.\n";
/// Templates that hold when an account names none.
const DEFAULT_EMAIL: &str = "email-default";
const DEFAULT_PAGER: &str = "pager-default";

options! {
    /// `[general]` of `minivm.conf`.
    MiniVmGeneral, "minivm.conf", "general", IsIgnored;
    format: Text = "wav", "File format of recordings; the first of several, parted by `|`.";
    serveremail: Text = "asterisk", "Sender of letters.";
    fromstring: Text = "The Asterisk PBX", "Name of the sender.";
    mailcmd: Text = "/usr/sbin/sendmail -t", "Program that takes letters.";
    maxmessage also "maxsecs": Int<0, 86_400> = "0", "Longest recording, seconds; 0: no limit.";
    minmessage also "minsecs": Int<0, 3600> = "0", "Shortest recording that is kept, seconds.";
    maxsilence: Int<0, 600> = "0", "Seconds of silence that end a recording, and are cut off; 0: none do.";
    silencethreshold: Int<1, 32_767> = "128", "Mean amplitude below which it is silence.";
    maxgreet: Int<0, 3600> = "0", "Longest greeting, seconds; 0: no limit.";
    volgain: Decibels = "0.0", "What is mailed is so much louder than it was recorded.";
    review: YesNo = "no", "Callers may hear and record anew what they left.";
    operator: YesNo = "no", "0 leads a caller to the extension o.";
    externnotify: Text = "", "Program that is told of a recording by MinivmNotify: user, domain, caller's number and name.";
    emailsubject: Text = "", "Subject of letters when no template says otherwise.";
    emailbody: Text = "", "Text of letters when no template says otherwise; \\n and \\t are line end and tab.";
    emaildateformat: Text = "%A, %d %B %Y at %H:%M:%S", "${MVM_DATE}, as strftime has it.";
    pagersubject: Text = "", "Subject of pages when no template says otherwise.";
    pagerbody: Text = "", "Text of pages when no template says otherwise.";
    pagerdateformat: Text = "%A, %d %B %Y at %H:%M:%S", "${MVM_DATE} of pages.";
    attachmedia: YesNo = "yes", "The recording goes with the letter.";
    charset: Text = "UTF-8", "Character set of letters.", Ignored "*" "letters are UTF-8";
    logfile: Text = "", "File that has a line for each recording of MinivmRecord; a relative one lies in astlogdir.";
    @recognised {
        "pollmailboxes" "*" Ignored "there is nothing to be counted";
        "skipms" "*" Ignored "nothing is wound";
        "maxlogins" "*" Ignored "nobody logs in";
    }
}

options! {
    /// A section `[template-NAME]`.
    MiniVmTemplate, "minivm.conf", "template-…", IsIgnored;
    subject: Text = "", "Subject; ${MVM_NAME} and the like stand for what it tells of.";
    messagebody also "message": Text = "", "Text; \\n and \\t are line end and tab.";
    fromaddress also "fromemail": Text = "", "Address of the sender; empty: serveremail.";
    fromname as "from": Text = "", "Name of the sender; empty: fromstring.";
    attachmedia: YesNo = "yes", "The recording goes with the letter.";
    dateformat: Text = "", "${MVM_DATE}, as strftime has it.";
    messagefile: Text = "", "File that has the text; a relative one lies in the configuration directory.";
    locale: Text = "", "Locale of ${MVM_DATE}, such as de_DE: the names of days and months; empty: English.";
    @recognised {
        "charset" "*" Ignored "letters are UTF-8, and a messagefile that is not is read as ISO 8859-1";
        "language" "*" Ignored "it says nothing about a letter";
    }
}

options! {
    /// A section `[user@domain]`.
    MiniVmAccount, "minivm.conf", "user@domain", IsIgnored;
    fullname: Text = "", "Who it belongs to.";
    email: Text = "", "Where letters go; empty: the name of the account.";
    pager: Text = "", "Where pages go.";
    etemplate: Text = "", "Template of letters: NAME of [template-NAME].";
    ptemplate: Text = "", "Template of pages.";
    accountcode: Text = "", "Account code, for MINIVMACCOUNT().";
    pincode: Hidden = "", "PIN, for MINIVMACCOUNT().";
    timezone: Text = "", "Zone of `zonemessages` for dates.";
    language: Text = "", "Language, for MINIVMACCOUNT().";
    serveremail: Text = "", "Sender of its letters; empty: the general one.";
    externnotify: Text = "", "Program that is told; empty: the general one.";
    setvar: Lines = "", "Variables for MINIVMACCOUNT(): name=value.";
    volgain: Decibels = "0.0", "What is mailed is so much louder; without the line, as the general section says.";
    alias: Text = "", "Another name for it: user@domain.";
    attachfmt: Text = "", "Format of what is attached; empty: that of the recording.";
    @recognised {
        "options" "" Later "what they ask for does not exist";
    }
}

/// The manual's rows.
pub(crate) fn rows() -> Vec<super::Row> {
    [MiniVmGeneral::rows(), MiniVmTemplate::rows(), MiniVmAccount::rows()].concat()
}

/// Files that have texts of letters.
pub(crate) fn message_files(file: &File) -> impl Iterator<Item = &str> {
    let lines = file.sections.iter().flat_map(|section| &section.variables);
    let names =
        lines.filter(|line| line.name.eq_ignore_ascii_case("messagefile")).map(|line| line.value.trim());
    names.filter(|name| !name.is_empty())
}

/// Reads the file, and the texts of letters that it names.
pub fn read(file: &File, source: &dyn Source, findings: &mut Findings) -> MiniVm {
    let general = file
        .section("general")
        .and_then(|section| read_object::<MiniVmGeneral>(section, findings, &mut |_, _, _| false))
        .unwrap_or_default();
    let rules = Arc::new(rules(&general));
    let limit = |secs: u32| (secs > 0).then(|| Duration::from_secs(secs.into()));
    let format = general.format.split(['|', ',']).next().unwrap_or_default().trim();
    let known = codec::Recording::new(extension(format)).is_some();
    if !known {
        let message = format!("recordings cannot be written as '{format}'");
        findings.warning(
            general.origin.place_of("format"),
            message,
            "write wav, wav49, gsm, ulaw, alaw, g722 or sln",
        );
    }
    let mut voicemail = Voicemail {
        formats: vec![if known { extension(format) } else { "wav" }.to_owned()],
        max_greet: limit(general.maxgreet),
        max_silence: limit(general.maxsilence),
        silence_threshold: general.silencethreshold as u16,
        extern_notify: general.externnotify.clone(),
        rules: Arc::clone(&rules),
        ..Voicemail::default()
    };
    let mut owners = BTreeMap::new();
    let mut templates = defaults(&general);
    for section in &file.sections {
        let name = section.name.trim();
        if section.template || name.eq_ignore_ascii_case("general") {
            continue;
        }
        if name.eq_ignore_ascii_case("zonemessages") {
            voicemail.zones.extend(section.variables.iter().filter_map(|line| zone(line, findings)));
        } else if let Some(template) = name.strip_prefix("template-") {
            if let Some(read) = read_object::<MiniVmTemplate>(section, findings, &mut |_, _, _| false) {
                templates.insert(template.to_owned(), letter(&read, &general, source, findings));
            }
        } else if let Some((account, owner, alias)) = account(section, &rules, findings) {
            if let Some(alias) = alias {
                voicemail.aliases.insert(alias, account.name.clone());
            }
            owners.insert(account.name.clone(), owner);
            voicemail.accounts.insert(account.name.clone(), Arc::new(account));
        }
    }
    MiniVm { voicemail: Arc::new(voicemail), owners, templates, log_file: general.logfile }
}

/// The text of a letter that lies in a file of its own, as it is.
fn message_of(name: &str, source: &dyn Source) -> Result<String, String> {
    let bytes = source.read(name).map_err(|why| why.to_string())?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(format!("it is longer than {MESSAGE_BYTES_MAX} bytes"));
    }
    // Each byte is a character of ISO 8859-1, which such files were written in before.
    let latin = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
    Ok(String::from_utf8(bytes).unwrap_or_else(|why| latin(why.as_bytes())))
}

/// What the two templates say that hold without another.
fn defaults(general: &MiniVmGeneral) -> BTreeMap<String, MiniTemplate> {
    let or = |text: &str, otherwise: &str| unescaped(if text.is_empty() { otherwise } else { text });
    let template = |subject: &str, body: &str, date: &str, attach: bool| MiniTemplate {
        subject: or(subject, SUBJECT),
        body: or(body, BODY),
        from_name: String::new(),
        from_address: String::new(),
        attach,
        date_format: date.to_owned(),
        locale: String::new(),
    };
    let email =
        template(&general.emailsubject, &general.emailbody, &general.emaildateformat, general.attachmedia);
    let pager = template(&general.pagersubject, &general.pagerbody, &general.pagerdateformat, false);
    [(DEFAULT_EMAIL.to_owned(), email), (DEFAULT_PAGER.to_owned(), pager)].into()
}

fn letter(
    read: &MiniVmTemplate,
    general: &MiniVmGeneral,
    source: &dyn Source,
    findings: &mut Findings,
) -> MiniTemplate {
    let or = |text: &str, otherwise: &str| unescaped(if text.is_empty() { otherwise } else { text });
    let file = Some(read.messagefile.trim()).filter(|name| !name.is_empty());
    let text = file.and_then(|name| match message_of(name, source) {
        Ok(text) => Some(text),
        Err(why) => {
            let message = format!("messagefile {} cannot be read: {why}", source.full_name(name));
            let remedy = "correct the name, or write the text into messagebody";
            findings.warning(read.origin.place_of("messagefile"), message, remedy);
            None
        }
    });
    super::voicemail::known_locale(&read.locale, read.origin.place_of("locale"), findings);
    MiniTemplate {
        subject: or(&read.subject, SUBJECT),
        body: text.unwrap_or_else(|| or(&read.messagebody, BODY)),
        locale: read.locale.trim().to_owned(),
        from_name: read.fromname.clone(),
        from_address: read.fromaddress.clone(),
        attach: read.attachmedia,
        date_format: or(&read.dateformat, &general.emaildateformat),
    }
}

fn rules(general: &MiniVmGeneral) -> BoxRules {
    BoxRules {
        attach: general.attachmedia,
        serveremail: general.serveremail.clone(),
        fromstring: general.fromstring.clone(),
        mailcmd: general.mailcmd.clone(),
        volgain: general.volgain,
        review: general.review,
        operator: general.operator,
        maxsecs: general.maxmessage,
        minsecs: general.minmessage,
        ..BoxRules::default()
    }
}

/// An account, what MiniVM knows besides, and another name for it.
fn account(
    section: &Section,
    general: &Arc<BoxRules>,
    findings: &mut Findings,
) -> Option<(Account, MiniOwner, Option<BoxName>)> {
    let named = |text: &str| {
        let (user, domain) = text.trim().split_once('@')?;
        BoxName::new(user.trim(), domain.trim())
    };
    let Some(name) = named(&section.name) else {
        let message = format!("[{}] is neither an account nor a template", section.name);
        findings.error(&section.place, message, "write [user@domain] or [template-NAME]");
        return None;
    };
    let read = read_object::<MiniVmAccount>(section, findings, &mut |_, _, _| false)?;
    let mut rules = (**general).clone();
    rules.tz.clone_from(&read.timezone);
    rules.language.clone_from(&read.language);
    if !read.serveremail.is_empty() {
        rules.serveremail.clone_from(&read.serveremail);
    }
    let format = extension(read.attachfmt.trim());
    if format.is_empty() || codec::Recording::new(format).is_some() {
        format.clone_into(&mut rules.attachfmt);
    } else {
        let message =
            format!("what is attached cannot be brought to '{format}'; it stays as it was recorded");
        let remedy = "write wav, wav49, gsm, ulaw, alaw, g722 or sln";
        findings.warning(read.origin.place_of("attachfmt"), message, remedy);
    }
    if read.origin.has("volgain") {
        rules.volgain = read.volgain;
    }
    let email = if read.email.is_empty() {
        format!("{}@{}", name.mailbox(), name.context())
    } else {
        read.email.clone()
    };
    let alias = named(&read.alias);
    if alias.is_none() && !read.alias.is_empty() {
        let message = format!("alias '{}' is no user@domain", read.alias);
        findings.warning(read.origin.place_of("alias"), message, "write user@domain");
    }
    let variables = read.setvar.iter().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    });
    let owner = MiniOwner {
        email_template: read.etemplate.clone(),
        pager_template: read.ptemplate.clone(),
        account_code: read.accountcode.clone(),
        extern_notify: read.externnotify.clone(),
        variables: variables.collect(),
    };
    let account = Account {
        name,
        pin: read.pincode.expose().to_owned(),
        pin_is_fixed: true,
        full_name: read.fullname.clone(),
        emails: vec![email],
        pager: read.pager.clone(),
        rules: Arc::new(rules),
        is_row: false,
    };
    Some((account, owner, alias))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_templates_and_zones_are_read() {
        let source = conf::Memory::new().with(
            "minivm.conf",
            "[general]\nformat=wav49|gsm\nmaxmessage=60\nserveremail=pbx@example.com\nlogfile=/tmp/x\n\
             [zonemessages]\neastern=America/New_York|'vm-received' q\n\
             [template-swedish]\nsubject=Nytt\nmessagebody=Hej ${MVM_NAME}\\nSlut\nattachmedia=no\nlocale=sv_SE\n\
             [template-filed]\nmessagebody=other\nmessagefile=texts/new.txt\nlocale=tlh\n\
             [template-old]\nmessagefile=texts/old.txt\n\
             [template-lost]\nmessagebody=instead\nmessagefile=texts/lost.txt\n\
             [alice@example.com]\nfullname=Alice\netemplate=swedish\npincode=17\nexternnotify=/opt/own\nalias=al@example.com\nattachfmt=wav49\n\
             setvar=A=1\nsetvar=B=2\n\
             [dora@example.com]\nattachfmt=mpeg\n\
             [bob]\nfullname=Bob\n",
        );
        let source = source
            .with("texts/new.txt", "Grüße, ${MVM_NAME}\n")
            .with("texts/old.txt", b"Gr\xfc\xdfe\n".to_vec());
        let mut findings = Findings::new();
        let file = conf::load(&source, "minivm.conf", conf::Options::default(), &mut findings).unwrap();
        let mini = read(&file, &source, &mut findings);
        let (alice, there) = mini.account("al@example.com").unwrap();
        assert_eq!(
            (alice.full_name.as_str(), &*alice.emails, there),
            ("Alice", &["alice@example.com".to_owned()][..], true)
        );
        assert_eq!((alice.rules.maxsecs, alice.pin.as_str()), (60, "17"));
        let owner = &mini.owners[&alice.name];
        assert_eq!(owner.extern_notify, "/opt/own");
        assert_eq!(owner.variables, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]);
        let template = &mini.templates["swedish"];
        assert_eq!((template.body.as_str(), template.attach), ("Hej ${MVM_NAME}\nSlut", false));
        assert_eq!(template.locale, "sv_SE");
        for (name, body) in [("filed", "Grüße, ${MVM_NAME}\n"), ("old", "Grüße\n"), ("lost", "instead")] {
            assert_eq!(mini.templates[name].body, body, "{name}");
        }
        let dora = mini.account("dora@example.com").unwrap().0;
        assert_eq!((alice.rules.attachfmt.as_str(), dora.rules.attachfmt.as_str()), ("WAV", ""));
        assert_eq!(mini.log_file, "/tmp/x");
        let (carol, there) = mini.account("carol@elsewhere.example").unwrap();
        assert_eq!((carol.emails[0].as_str(), there), ("carol@elsewhere.example", false));
        for none in ["carol", "../x@y", "x@..", "@", ""] {
            assert!(mini.account(none).is_none(), "{none}");
        }
        assert_eq!(mini.voicemail.formats, ["WAV"]);
        let said: Vec<String> = findings.iter().map(|finding| finding.message.clone()).collect();
        assert!(said.iter().any(|line| line.contains("[bob] is neither")), "{said:?}");
        assert!(said.iter().any(|line| line.contains("words of the locale 'tlh' are not known")), "{said:?}");
        assert!(
            said.iter().any(|line| line.contains("texts/lost.txt cannot be read: no such file")),
            "{said:?}"
        );
        assert!(said.iter().any(|line| line.contains("cannot be brought to 'mpeg'")), "{said:?}");
        assert_eq!(said.len(), 4, "{said:?}");
    }
}
