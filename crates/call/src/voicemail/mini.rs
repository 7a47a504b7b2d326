//! MiniVM: what callers leave is recorded, mailed and forgotten by steps of the dialplan; there are no folders and no menus.
//!
//! An account is `user@domain`, as a mail address has it. Its folder lies in the spool beside those of mailboxes, with the
//! domain in the place of the context.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Account, BoxName, Voicemail};

/// A letter's text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MiniTemplate {
    /// Subject, with `${MVM_NAME}` and the like.
    pub subject: String,
    /// Text, likewise.
    pub body: String,
    /// Name of the sender; empty: that of the account.
    pub from_name: String,
    /// Address of the sender; empty: `serveremail`.
    pub from_address: String,
    /// The recording goes with it.
    pub attach: bool,
    /// `${MVM_DATE}`, as strftime has it.
    pub date_format: String,
    /// In the words of which locale; empty: English.
    pub locale: String,
}

/// What MiniVM knows of an account beside what every mailbox has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MiniOwner {
    /// Template of letters, and of pages.
    pub email_template: String,
    /// Of pages.
    pub pager_template: String,
    /// Account code.
    pub account_code: String,
    /// Program that is told of what is recorded for it; empty: that of all.
    pub extern_notify: String,
    /// Variables (`setvar`).
    pub variables: Vec<(String, String)>,
}

/// Everything that minivm.conf says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MiniVm {
    /// Rules and accounts, as applications of mailboxes read them.
    pub voicemail: Arc<Voicemail>,
    /// The rest of each account.
    pub owners: BTreeMap<BoxName, MiniOwner>,
    /// Letters by name.
    pub templates: BTreeMap<String, MiniTemplate>,
    /// File that has a line for each recording; empty: none. A relative one lies in the log directory.
    pub log_file: String,
}

impl MiniVm {
    /// The account of an address, and whether minivm.conf has it; one that it has not gets the general rules. `None`: it is no
    /// address.
    pub fn account(&self, address: &str) -> Option<(Arc<Account>, bool)> {
        let (user, domain) = address.trim().split_once('@')?;
        let name = BoxName::new(user.trim(), domain.trim())?;
        let name = self.voicemail.aliases.get(&name).unwrap_or(&name);
        if let Some(account) = self.voicemail.accounts.get(name) {
            return Some((account.clone(), true));
        }
        let account = Account {
            emails: vec![format!("{}@{}", name.mailbox(), name.context())],
            name: name.clone(),
            pin: String::new(),
            pin_is_fixed: true,
            full_name: String::new(),
            pager: String::new(),
            rules: self.voicemail.rules.clone(),
            is_row: false,
        };
        Some((Arc::new(account), false))
    }
}
