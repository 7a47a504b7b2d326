//! Mailboxes: who has one, and how dates are said.

use std::fmt::Write as _;
use std::sync::Arc;

use call::voicemail::{Account, Voicemail};
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "voicemail show users",
        "Lists mailboxes and how many new messages they hold.",
        "users [context mailbox name zone new old urgent]",
        |cli, ask| cli.voicemail_users(ask, None),
    ),
    show(
        "voicemail show users for <context>",
        "Lists the mailboxes of a context.",
        "users [context mailbox name zone new old urgent]",
        |cli, ask| {
            let context = ask.need("context").to_owned();
            cli.voicemail_users(ask, Some(&context))
        },
    ),
    show(
        "voicemail show mailbox <mailbox>",
        "Shows one mailbox (6001@default, or 6001).",
        "context mailbox name emails pager zone language attach delete review operator max_messages max_seconds \
         min_seconds new old urgent",
        Cli::voicemail_mailbox,
    ),
    show(
        "voicemail show aliases",
        "Lists other names of mailboxes.",
        "aliases [alias mailbox]",
        Cli::voicemail_aliases,
    ),
    show(
        "voicemail show zones",
        "Lists how dates are said.",
        "zones [name timezone format]",
        Cli::voicemail_zones,
    ),
    verb("voicemail reload", "Reads voicemail.conf again, and everything else with it.", |cli, _| {
        cli.reload_part("app_voicemail", "Reloading voicemail configuration...\n")
    }),
];

impl Cli {
    fn voicemail(&self) -> Arc<Voicemail> {
        self.site.shard.core.borrow().settings.voicemail.clone()
    }
    /// New, old and urgent messages.
    fn messages(&self, account: &Account) -> (u32, u32, u32) {
        let core = self.site.shard.core.borrow();
        let name = account.name.to_string();
        let all = core.mailbox(&name).unwrap_or_default();
        (all.new, all.old, core.urgent_messages(&name))
    }
    fn voicemail_users(&self, ask: &mut Ask<'_>, context: Option<&str>) -> Said {
        let voicemail = self.voicemail();
        let fits = |account: &&Arc<Account>| context.is_none_or(|context| account.name.context() == context);
        let accounts: Vec<&Arc<Account>> = voicemail.accounts.values().filter(fits).collect();
        match context {
            Some(context) if accounts.is_empty() && !voicemail.accounts.is_empty() => {
                return Said::failed(format!("No such voicemail context \"{}\"\n", clean(context)));
            }
            _ => {}
        }
        if accounts.is_empty() && !ask.json {
            return Said::refused("There are no voicemail users currently defined\n");
        }
        let data = || {
            let row = |account: &&Arc<Account>| {
                let (new, old, urgent) = self.messages(account);
                json!({
                    "context": account.name.context(),
                    "mailbox": account.name.mailbox(),
                    "name": account.full_name,
                    "zone": account.rules.tz,
                    "new": new,
                    "old": old,
                    "urgent": urgent,
                })
            };
            json!({ "users": accounts.iter().map(row).collect::<Vec<Value>>() })
        };
        let text = || {
            let mut out =
                format!("{:<10} {:<5} {:<25} {:<10} {:>6}\n", "Context", "Mbox", "User", "Zone", "NewMsg");
            for account in &accounts {
                let (new, ..) = self.messages(account);
                let _ = writeln!(
                    out,
                    "{:<10} {:<5} {:<25} {:<10} {new:>6}",
                    clean(account.name.context()),
                    clean(account.name.mailbox()),
                    clean(&account.full_name),
                    clean(&account.rules.tz),
                );
            }
            let _ = writeln!(out, "{} voicemail users configured.", accounts.len());
            out
        };
        ask.show(data, text)
    }
    fn voicemail_mailbox(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("mailbox");
        let voicemail = self.voicemail();
        let Some(account) = voicemail.find_text(name) else {
            return Said::failed(format!("Could not find voicemail user {}\n", clean(name)));
        };
        let (rules, (new, old, urgent)) = (&account.rules, self.messages(account));
        let data = || {
            json!({
                "context": account.name.context(),
                "mailbox": account.name.mailbox(),
                "name": account.full_name,
                "emails": account.emails,
                "pager": account.pager,
                "zone": rules.tz,
                "language": rules.language,
                "attach": rules.attach,
                "delete": rules.delete,
                "review": rules.review,
                "operator": rules.operator,
                "max_messages": rules.maxmsg,
                "max_seconds": rules.maxsecs,
                "min_seconds": rules.minsecs,
                "new": new,
                "old": old,
                "urgent": urgent,
            })
        };
        let text = || {
            let mut out = String::new();
            for (word, value) in [
                ("Context", account.name.context().to_owned()),
                ("Mailbox", account.name.mailbox().to_owned()),
                ("Full Name", account.full_name.clone()),
                ("Email", account.emails.join(" ")),
                ("Pager", account.pager.clone()),
                ("Time Zone", rules.tz.clone()),
                ("Language", rules.language.clone()),
                ("Attach", super::text::yes_no(rules.attach).to_owned()),
                ("Delete", super::text::yes_no(rules.delete).to_owned()),
                ("Review", super::text::yes_no(rules.review).to_owned()),
                ("Operator", super::text::yes_no(rules.operator).to_owned()),
                ("Max Messages", rules.maxmsg.to_string()),
                ("Max Seconds", rules.maxsecs.to_string()),
                ("Min Seconds", rules.minsecs.to_string()),
                ("New Messages", new.to_string()),
                ("Old Messages", old.to_string()),
                ("Urgent Messages", urgent.to_string()),
            ] {
                let _ = writeln!(out, "{word:<16}: {}", clean(&value));
            }
            out
        };
        ask.show(data, text)
    }
    fn voicemail_aliases(&self, ask: &mut Ask<'_>) -> Said {
        let voicemail = self.voicemail();
        let rows = || voicemail.aliases.iter().map(|(alias, of)| (alias.to_string(), of.to_string()));
        let data = || {
            let rows = rows().map(|(alias, mailbox)| json!({ "alias": alias, "mailbox": mailbox }));
            json!({ "aliases": rows.collect::<Vec<Value>>() })
        };
        let text = || {
            if voicemail.aliases.is_empty() {
                return "There are no aliases currently defined\n".to_owned();
            }
            let mut out = format!("{:<32} {:<32}\n", "Alias", "Mailbox");
            for (alias, of) in rows() {
                let _ = writeln!(out, "{:<32} {:<32}", clean(&alias), clean(&of));
            }
            out
        };
        ask.show(data, text)
    }
    fn voicemail_zones(&self, ask: &mut Ask<'_>) -> Said {
        zones(ask, &self.voicemail())
    }
}

/// Lists how dates are said.
pub(super) fn zones(ask: &Ask<'_>, voicemail: &Voicemail) -> Said {
    let data = || {
        let row = |(name, zone): (&String, &call::voicemail::Zone)| json!({ "name": name, "timezone": zone.zone, "format": zone.format });
        json!({ "zones": voicemail.zones.iter().map(row).collect::<Vec<Value>>() })
    };
    let text = || {
        if voicemail.zones.is_empty() {
            return "There are no voicemail zones currently defined\n".to_owned();
        }
        let mut out = format!("{:<15} {:<20} {:<45}\n", "Zone", "Timezone", "Message Format");
        for (name, zone) in &voicemail.zones {
            let (zone, format) = (clean(&zone.zone), clean(&zone.format));
            let _ = writeln!(out, "{:<15} {zone:<20} {format:<45}", clean(name));
        }
        out
    };
    ask.show(data, text)
}
