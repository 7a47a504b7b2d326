//! MiniVM: accounts, letters and rules of minivm.conf.

use std::fmt::Write as _;
use std::sync::Arc;

use call::voicemail::MiniVm;
use serde_json::{Value, json};

use super::text::{clean, or};
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "minivm list accounts",
        "Lists the accounts of minivm.conf.",
        "accounts [account name emails email_template pager_template zone]",
        Cli::minivm_accounts,
    ),
    show(
        "minivm list templates",
        "Lists letters by name.",
        "templates [name subject attach from_name from_address]",
        Cli::minivm_templates,
    ),
    show(
        "minivm list zones",
        "Lists how dates are said and written.",
        "zones [name timezone format]",
        Cli::minivm_zones,
    ),
    show(
        "minivm show settings",
        "Shows the rules that hold for every account.",
        "settings [name value]",
        Cli::minivm_settings,
    ),
    verb("minivm reload", "Reads minivm.conf again, and everything else with it.", |cli, _| {
        cli.reload_part("app_minivm", "Reloading MiniVM configuration...\n")
    }),
];

impl Cli {
    fn minivm(&self) -> Arc<MiniVm> {
        self.site.snapshot.borrow().minivm.clone()
    }
    fn minivm_accounts(&self, ask: &mut Ask<'_>) -> Said {
        let mini = self.minivm();
        let accounts: Vec<_> = mini
            .voicemail
            .accounts
            .iter()
            .map(|(name, account)| (account, mini.owners.get(name).cloned().unwrap_or_default()))
            .collect();
        let data = || {
            let rows: Vec<Value> = accounts
                .iter()
                .map(|(account, owner)| {
                    json!({
                        "account": account.name.to_string(),
                        "name": account.full_name,
                        "emails": account.emails,
                        "email_template": owner.email_template,
                        "pager_template": owner.pager_template,
                        "zone": account.rules.tz,
                    })
                })
                .collect();
            json!({ "accounts": rows })
        };
        let text = || {
            if accounts.is_empty() {
                return "There are no voicemail users currently defined\n".to_owned();
            }
            let mut out = format!(
                "{:<28} {:<15} {:<15} {:<10} {}\n",
                "User", "E-Template", "P-Template", "Zone", "Name"
            );
            for (account, owner) in &accounts {
                let _ = writeln!(
                    out,
                    "{:<28} {:<15} {:<15} {:<10} {}",
                    clean(&account.name.to_string()),
                    clean(or(&owner.email_template, "-")),
                    clean(or(&owner.pager_template, "-")),
                    clean(or(&account.rules.tz, "-")),
                    clean(&account.full_name)
                );
            }
            out
        };
        ask.show(data, text)
    }
    fn minivm_templates(&self, ask: &mut Ask<'_>) -> Said {
        let mini = self.minivm();
        let data = || {
            let rows: Vec<Value> = mini
                .templates
                .iter()
                .map(|(name, template)| {
                    json!({
                        "name": name,
                        "subject": template.subject,
                        "attach": template.attach,
                        "from_name": template.from_name,
                        "from_address": template.from_address,
                    })
                })
                .collect();
            json!({ "templates": rows })
        };
        let text = || {
            if mini.templates.is_empty() {
                return "There are no message templates defined\n".to_owned();
            }
            let mut out = format!("{:<18} {:<6} {}\n", "Template", "Attach", "Subject");
            for (name, template) in &mini.templates {
                let attach = if template.attach { "Yes" } else { "No" };
                let _ = writeln!(out, "{:<18} {attach:<6} {}", clean(name), clean(&template.subject));
            }
            out
        };
        ask.show(data, text)
    }
    fn minivm_zones(&self, ask: &mut Ask<'_>) -> Said {
        let mini = self.minivm();
        super::voicemail::zones(ask, &mini.voicemail)
    }
    fn minivm_settings(&self, ask: &mut Ask<'_>) -> Said {
        let mini = self.minivm();
        let rules = &mini.voicemail.rules;
        let yes = |on: bool| if on { "Yes" } else { "No" }.to_owned();
        let rows = [
            ("Mail command", rules.mailcmd.clone()),
            ("Sender", rules.serveremail.clone()),
            ("Name of the sender", rules.fromstring.clone()),
            ("Shortest message (s)", rules.minsecs.to_string()),
            ("Longest message (s)", rules.maxsecs.to_string()),
            ("Recording attached", yes(rules.attach)),
            ("Review", yes(rules.review)),
            ("Operator exit", yes(rules.operator)),
            ("External notify", mini.voicemail.extern_notify.clone()),
            ("Accounts", mini.voicemail.accounts.len().to_string()),
            ("Templates", mini.templates.len().to_string()),
        ];
        let data = || {
            let rows: Vec<Value> =
                rows.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({ "settings": rows })
        };
        let text = || {
            rows.iter().fold(String::from("* MiniVM general settings\n"), |mut out, (name, value)| {
                let _ = writeln!(out, "  {name:<22}: {}", clean(or(value, "(none)")));
                out
            })
        };
        ask.show(data, text)
    }
}
