//! Mailboxes: who has one, by which rules messages are taken and heard, and what a message is.
//!
//! Files are somebody else's: [`PostOffice`] is the way to whoever keeps them.

mod mini;
mod post;

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use base::Gain;

pub use mini::{MiniOwner, MiniTemplate, MiniVm};
pub use post::{
    Answer, Attach, Change, Delivery, Greeting, Held, Job, Letter, NoPost, PostOffice, Posted, Refusal,
    Sound, Ticket,
};

/// Longest name of a mailbox or context: what the field keeps of one.
pub const NAME_BYTES_MAX: usize = 79;
/// Most messages that `maxmsg` may allow: numbers have four digits.
pub const MESSAGES_MAX: u32 = 9999;

/// A mailbox in its context. Both are names of folders, so neither can lead out of the one they lie in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoxName {
    context: Arc<str>,
    mailbox: Arc<str>,
}

impl BoxName {
    /// `None` for what is no name of a folder.
    pub fn new(mailbox: &str, context: &str) -> Option<Self> {
        let is_plain = |name: &str| {
            (1..=NAME_BYTES_MAX).contains(&name.len())
                && !name.starts_with('.')
                && !name.contains(|c: char| c.is_control() || "/\\@&,|".contains(c))
        };
        (is_plain(mailbox) && is_plain(context))
            .then(|| Self { context: context.into(), mailbox: mailbox.into() })
    }
    /// `6001@office`; without a context it is `default`.
    pub fn parse(text: &str) -> Option<Self> {
        let (mailbox, context) = text.trim().split_once('@').unwrap_or((text.trim(), "default"));
        Self::new(mailbox.trim(), if context.trim().is_empty() { "default" } else { context.trim() })
    }
    /// The context.
    pub fn context(&self) -> &str {
        &self.context
    }
    /// The mailbox in it.
    pub fn mailbox(&self) -> &str {
        &self.mailbox
    }
}

impl core::fmt::Display for BoxName {
    /// `6001@default`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}@{}", self.mailbox, self.context)
    }
}

/// A folder of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Folder(u8);

/// Folders in the order of their digits in the menu; the last two have none.
const FOLDERS: [&str; 12] = [
    "INBOX", "Old", "Work", "Family", "Friends", "Cust1", "Cust2", "Cust3", "Cust4", "Cust5", "Deleted",
    "Urgent",
];

impl Folder {
    /// New messages.
    pub const INBOX: Self = Self(0);
    /// Messages that were heard.
    pub const OLD: Self = Self(1);
    /// The first of those that people sort messages into.
    pub const WORK: Self = Self(2);
    /// Where `backupdeleted` keeps what was deleted.
    pub const DELETED: Self = Self(10);
    /// New messages that are urgent.
    pub const URGENT: Self = Self(11);

    /// The folder of a digit.
    pub fn of_digit(digit: char) -> Option<Self> {
        digit.to_digit(10).map(|digit| Self(digit as u8))
    }
    /// The folder of a name, any case, or of a digit.
    pub fn parse(text: &str) -> Option<Self> {
        let named = FOLDERS.iter().position(|name| name.eq_ignore_ascii_case(text.trim()));
        let of_digit = || match text.trim().as_bytes() {
            [digit @ b'0'..=b'9'] => Some(usize::from(digit - b'0')),
            _ => None,
        };
        named.or_else(of_digit).map(|index| Self(index as u8))
    }
    /// Its name on disk, and after `vm-` that of the sound.
    pub fn name(self) -> &'static str {
        FOLDERS.get(usize::from(self.0)).copied().unwrap_or("INBOX")
    }
    /// Every one.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..FOLDERS.len()).map(|index| Self(index as u8))
    }
    /// Those that people choose by a digit.
    pub fn chosen() -> impl Iterator<Item = Self> {
        (0..10).map(Self)
    }
}

/// How many messages a mailbox holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Those that nobody has heard and that are urgent.
    pub urgent: u32,
    /// Those that nobody has heard.
    pub new: u32,
    /// Those that were heard.
    pub old: u32,
}

impl From<Counts> for crate::Mailbox {
    fn from(counts: Counts) -> Self {
        Self { new: counts.new.saturating_add(counts.urgent), old: counts.old }
    }
}

/// What is written down of a message (`msgNNNN.txt`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info {
    /// Mailbox that it was left in.
    pub orig_mailbox: String,
    /// Where the dialplan stood.
    pub context: String,
    /// Extension.
    pub exten: String,
    /// Who was called first, when the call was diverted; else `unknown`.
    pub rdnis: String,
    /// Priority.
    pub priority: u32,
    /// Channel that left it.
    pub channel: String,
    /// `"Alice" <6001>`; `Unknown` without.
    pub caller_id: String,
    /// Date for people.
    pub date: String,
    /// Seconds since the epoch.
    pub time: i64,
    /// `VM_CATEGORY` of the call.
    pub category: String,
    /// Unlike that of any other message; empty in old mailboxes.
    pub id: String,
    /// It is urgent.
    pub urgent: bool,
    /// Seconds.
    pub duration: u32,
}

/// A message in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number there, from 0. Others may have changed it since.
    pub number: u32,
    /// What is written down.
    pub info: Info,
    /// The same as it lies on disk: by this the message is found again under another number.
    pub text: Arc<[u8]>,
}

/// How a date is said, in whose time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Zone {
    /// `Europe/Berlin`; empty: the system's.
    pub zone: String,
    /// As SayUnixTime takes it.
    pub format: String,
}

/// What may differ from mailbox to mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    missing_docs,
    reason = "each is the option of voicemail.conf of the same name, which the manual describes"
)]
pub struct BoxRules {
    pub attach: bool,
    pub attachfmt: String,
    pub volgain: Gain,
    pub serveremail: String,
    pub fromstring: String,
    pub emailsubject: String,
    pub emailbody: String,
    pub emaildateformat: String,
    pub pagerfromstring: String,
    pub pagersubject: String,
    pub pagerbody: String,
    pub pagerdateformat: String,
    pub charset: String,
    pub mailcmd: String,
    pub tz: String,
    pub locale: String,
    pub language: String,
    pub delete: bool,
    pub saycid: bool,
    pub sayduration: bool,
    pub saydurationm: u32,
    pub envelope: bool,
    pub sendvoicemail: bool,
    pub review: bool,
    pub operator: bool,
    pub dialout: String,
    pub callback: String,
    pub exitcontext: String,
    pub maxmsg: u32,
    pub maxsecs: u32,
    pub minsecs: u32,
    pub moveheard: bool,
    pub nextaftercmd: bool,
    pub messagewrap: bool,
    pub forcename: bool,
    pub forcegreetings: bool,
    pub hidefromdir: bool,
    pub tempgreetwarn: bool,
    pub backupdeleted: u32,
    pub passwordlocation: PinPlace,
}

/// Where a PIN is kept that its owner has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinPlace {
    /// In voicemail.conf.
    #[default]
    Config,
    /// In `secret.conf` of the mailbox.
    Spool,
}

/// A mailbox.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: BoxName,
    /// PIN, as voicemail.conf has it, without what begins with `-`.
    pub pin: String,
    /// Its owner may not change the PIN: it began with `-`.
    pub pin_is_fixed: bool,
    /// Who owns it.
    pub full_name: String,
    /// Where messages are sent.
    pub emails: Vec<String>,
    /// Where it is told that there are messages.
    pub pager: String,
    /// Its rules.
    pub rules: Arc<BoxRules>,
    /// It is a row of the family `voicemail`, where a new PIN is written.
    pub is_row: bool,
}

impl core::fmt::Debug for Account {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name)
            .field("owner", &self.full_name)
            .finish_non_exhaustive()
    }
}

/// Digits that steer a message that plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controls {
    /// Goes on `skipms` later.
    pub forward: char,
    /// Goes back so much.
    pub reverse: char,
    /// Stops, and goes on.
    pub pause: char,
    /// Begins again.
    pub restart: char,
    /// Ends it.
    pub stop: String,
}

impl Default for Controls {
    fn default() -> Self {
        Self { forward: '#', reverse: '*', pause: '0', restart: '2', stop: "13456789".to_owned() }
    }
}

/// Sounds that voicemail.conf may replace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the option of voicemail.conf of that name after `vm-`")]
pub struct Sounds {
    pub login: String,
    pub password: String,
    pub newpassword: String,
    pub passchanged: String,
    pub reenterpassword: String,
    pub mismatch: String,
    pub invalid_password: String,
    pub pls_try_again: String,
    pub prepend_timeout: String,
}

impl Default for Sounds {
    fn default() -> Self {
        Self {
            login: "vm-login".to_owned(),
            password: "vm-password".to_owned(),
            newpassword: "vm-newpassword".to_owned(),
            passchanged: "vm-passchanged".to_owned(),
            reenterpassword: "vm-reenterpassword".to_owned(),
            mismatch: "vm-mismatch".to_owned(),
            invalid_password: "vm-invalid-password".to_owned(),
            pls_try_again: "vm-pls-try-again".to_owned(),
            prepend_timeout: "vm-then-pound".to_owned(),
        }
    }
}

/// Everything that voicemail.conf says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voicemail {
    /// File formats that messages are kept in; the first is the one that is mailed.
    pub formats: Vec<String>,
    /// Longest greeting.
    pub max_greet: Option<Duration>,
    /// Silence that ends a message.
    pub max_silence: Option<Duration>,
    /// Mean amplitude below which it is silence.
    pub silence_threshold: u16,
    /// How far a skip goes, milliseconds.
    pub skip_ms: u32,
    /// Tries to log in.
    pub max_logins: u32,
    /// Fewest digits of a new PIN.
    pub min_password: u32,
    /// Program that is told of a new PIN instead of writing it down.
    pub extern_pass: String,
    /// Program that is told of it besides.
    pub extern_pass_notify: String,
    /// Program that judges a new PIN.
    pub extern_pass_check: String,
    /// Program that is told when what is in a mailbox changed.
    pub extern_notify: String,
    /// An urgent message stays urgent when it is forwarded.
    pub forward_urgent: bool,
    /// Mailboxes are looked for in all contexts.
    pub search_contexts: bool,
    /// Contexts whose numbers are colleagues' extensions.
    pub internal_contexts: Vec<String>,
    /// Introduction of the directory.
    pub directory_intro: String,
    /// Whom a message is for is chosen by number or by name (`usedirectory`).
    pub use_directory: bool,
    /// How often mailboxes are counted that others may have changed.
    pub poll: Option<Duration>,
    /// Digits that steer a message.
    pub controls: Controls,
    /// Sounds.
    pub sounds: Sounds,
    /// Zones.
    pub zones: BTreeMap<String, Zone>,
    /// Mailboxes, and other names for them.
    pub accounts: BTreeMap<BoxName, Arc<Account>>,
    /// Other names.
    pub aliases: BTreeMap<BoxName, BoxName>,
    /// What holds for a mailbox unless it says otherwise.
    pub rules: Arc<BoxRules>,
}

impl Default for Voicemail {
    /// No mailbox.
    fn default() -> Self {
        Self {
            formats: vec!["wav".to_owned()],
            max_greet: None,
            max_silence: None,
            silence_threshold: 128,
            skip_ms: 3000,
            max_logins: 3,
            min_password: 0,
            extern_pass: String::new(),
            extern_pass_notify: String::new(),
            extern_pass_check: String::new(),
            extern_notify: String::new(),
            forward_urgent: false,
            search_contexts: false,
            internal_contexts: Vec::new(),
            directory_intro: "dir-intro".to_owned(),
            use_directory: false,
            poll: None,
            controls: Controls::default(),
            sounds: Sounds::default(),
            zones: BTreeMap::new(),
            accounts: BTreeMap::new(),
            aliases: BTreeMap::new(),
            rules: Arc::default(),
        }
    }
}

impl Voicemail {
    /// A mailbox by its name or another of its names; with `searchcontexts` in any context when none was asked for.
    pub fn find(&self, mailbox: &str, context: &str) -> Option<&Arc<Account>> {
        let named = BoxName::new(mailbox, if context.is_empty() { "default" } else { context })?;
        let real = self.aliases.get(&named).unwrap_or(&named);
        self.accounts.get(real).or_else(|| {
            let anywhere = self.search_contexts && context.is_empty();
            self.accounts.values().find(|account| anywhere && account.name.mailbox() == mailbox)
        })
    }
    /// As [`Self::find`], of `6001@office` or `6001`.
    pub fn find_text(&self, text: &str) -> Option<&Arc<Account>> {
        let (mailbox, context) = text.trim().split_once('@').unwrap_or((text.trim(), ""));
        self.find(mailbox.trim(), context.trim())
    }
    /// How dates are said to the owner of a mailbox.
    pub fn zone_of(&self, account: &Account) -> Zone {
        self.zones.get(&account.rules.tz).cloned().unwrap_or_else(|| Zone {
            zone: String::new(),
            format: "'vm-received' q 'digits/at' IMp".to_owned(),
        })
    }
}

impl crate::Core {
    /// Somebody has counted the messages of a mailbox: watchers are told when that changes anything.
    pub fn mail_counted(&mut self, name: &BoxName, counts: Counts) {
        self.urgent.insert(name.to_string(), counts.urgent);
        self.set_mailbox(&name.to_string(), Some(counts.into()));
    }
    /// Urgent messages of a mailbox, which are among its new ones.
    pub fn urgent_messages(&self, mailbox: &str) -> u32 {
        let full = BoxName::parse(mailbox).map(|name| name.to_string());
        full.and_then(|full| self.urgent.get(&full).copied()).unwrap_or(0)
    }
    /// The PIN of a mailbox: the one its owner has chosen since voicemail.conf was read, else the one there.
    pub fn pin_of(&self, account: &Account) -> String {
        self.pins.get(&account.name).cloned().unwrap_or_else(|| account.pin.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_mailbox_leads_out_of_the_spool() {
        for name in ["", ".", "..", ".lock", "a/b", "/etc", "a\0b", "a\\b", "a\nb", &"9".repeat(80)] {
            assert_eq!(BoxName::new(name, "default"), None, "{name:?}");
            assert_eq!(BoxName::new("6001", name), None, "{name:?}");
        }
        for name in ["../../etc/passwd@default", "6001@../..", "6001@a@b", "6001@x/y"] {
            assert_eq!(BoxName::parse(name), None, "{name:?}");
        }
        let plain = BoxName::parse(" 6001 ").unwrap();
        assert_eq!((plain.to_string().as_str(), BoxName::parse("6001@")), ("6001@default", Some(plain)));
        assert!(BoxName::new(&"9".repeat(79), "default").is_some());
    }

    #[test]
    fn folders_have_names_and_digits() {
        for (text, name) in
            [("INBOX", "INBOX"), ("inbox", "INBOX"), ("1", "Old"), ("urgent", "Urgent"), ("9", "Cust5")]
        {
            assert_eq!(Folder::parse(text).map(Folder::name), Some(name), "{text}");
        }
        assert_eq!((Folder::parse("10"), Folder::parse("../x"), Folder::of_digit('#')), (None, None, None));
    }

    #[test]
    fn mailboxes_are_found_by_alias_and_where_that_is_wanted_in_any_context() {
        let account = |mailbox: &str, context: &str| {
            let name = BoxName::new(mailbox, context).unwrap();
            let account = Account {
                name: name.clone(),
                pin: String::new(),
                pin_is_fixed: false,
                full_name: String::new(),
                emails: Vec::new(),
                pager: String::new(),
                rules: Arc::default(),
                is_row: false,
            };
            (name, Arc::new(account))
        };
        let mut voicemail = Voicemail {
            accounts: [account("1", "default"), account("2", "office")].into(),
            aliases: [(BoxName::new("9", "default").unwrap(), BoxName::new("2", "office").unwrap())].into(),
            ..Voicemail::default()
        };
        let found =
            |voicemail: &Voicemail, text: &str| voicemail.find_text(text).map(|one| one.name.to_string());
        assert_eq!(found(&voicemail, "1").as_deref(), Some("1@default"));
        assert_eq!(found(&voicemail, "9@default").as_deref(), Some("2@office"));
        assert_eq!(found(&voicemail, "2"), None);
        voicemail.search_contexts = true;
        assert_eq!(found(&voicemail, "2").as_deref(), Some("2@office"));
        assert_eq!(found(&voicemail, "2@default"), None, "another context was asked for");
    }
}
