//! STIR/SHAKEN: what stir_shaken.conf says, and whether a certificate would be believed.

use std::fmt::Write as _;
use std::io::Read as _;

use serde_json::{Map, Value, json};
use store::config::stir::Shown;

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "stir_shaken show attestation",
        "Shows how calls are signed where nothing else is said.",
        "attestation",
        |cli, ask| {
            let stir = cli.site.snapshot.borrow().stir.clone();
            one(ask, "attestation", "attestation", &stir.attestation.shown())
        },
    ),
    show(
        "stir_shaken show verification",
        "Shows how callers are verified where no profile says otherwise.",
        "verification",
        |cli, ask| {
            let stir = cli.site.snapshot.borrow().stir.clone();
            one(ask, "verification", "verification", &stir.verification.shown())
        },
    ),
    show("stir_shaken show tns", "Lists the numbers that we sign for.", "tns [name]", |cli, ask| {
        let stir = cli.site.snapshot.borrow().stir.clone();
        many(
            ask,
            "tns",
            stir.effective_numbers.iter().map(|(name, of)| (name.as_str(), of.shown())).collect(),
        )
    }),
    show(
        "stir_shaken show tn <number>",
        "Shows how calls of a number are signed, with what it inherits.",
        "tn",
        |cli, ask| {
            let (name, stir) = (ask.need("number").to_owned(), cli.site.snapshot.borrow().stir.clone());
            match stir.effective_numbers.get(&name) {
                Some(of) => one(ask, "tn", &name, &of.shown()),
                None => missing("TN", &name),
            }
        },
    ),
    show(
        "stir_shaken show profiles",
        "Lists profiles as they are written.",
        "profiles [name]",
        |cli, ask| {
            let stir = cli.site.snapshot.borrow().stir.clone();
            many(
                ask,
                "profiles",
                stir.profiles.iter().map(|(name, of)| (name.as_str(), of.written.shown())).collect(),
            )
        },
    ),
    show(
        "stir_shaken show profile <stir-profile>",
        "Shows a profile as it is written.",
        "profile",
        |cli, ask| {
            let (name, stir) = (ask.need("stir-profile").to_owned(), cli.site.snapshot.borrow().stir.clone());
            match stir.profiles.get(&name) {
                Some(of) => one(ask, "profile", &name, &of.written.shown()),
                None => missing("Profile", &name),
            }
        },
    ),
    show(
        "stir_shaken show eprofiles",
        "Lists profiles with what they inherit.",
        "eprofiles [name]",
        |cli, ask| {
            let stir = cli.site.snapshot.borrow().stir.clone();
            let shown = stir.profiles.iter().map(|(name, of)| (name.as_str(), of.effective.shown()));
            many(ask, "eprofiles", shown.collect())
        },
    ),
    show(
        "stir_shaken show eprofile <stir-profile>",
        "Shows a profile with what it inherits.",
        "eprofile",
        |cli, ask| {
            let (name, stir) = (ask.need("stir-profile").to_owned(), cli.site.snapshot.borrow().stir.clone());
            match stir.profiles.get(&name) {
                Some(of) => one(ask, "eprofile", &name, &of.effective.shown()),
                None => missing("Profile", &name),
            }
        },
    ),
    verb(
        "stir_shaken verify certificate_file <file> [<stir-profile>]",
        "Says whether a certificate of a carrier would be believed, by [verification] or a profile.",
        Cli::stir_verify,
    ),
];

fn missing(kind: &str, name: &str) -> Said {
    Said::failed(format!("{kind} '{}' not found\n", clean(name)))
}

fn data(name: &str, shown: &Shown) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), name.into());
    map.extend(shown.iter().map(|(option, value)| ((*option).to_owned(), value.as_str().into())));
    Value::Object(map)
}

fn text(name: &str, shown: &Shown, out: &mut String) {
    let _ = writeln!(out, "{}:", clean(name));
    for (option, value) in shown {
        let _ = writeln!(out, "    {option:<36}: {}", clean(value));
    }
}

fn one(ask: &Ask<'_>, key: &str, name: &str, shown: &Shown) -> Said {
    ask.show(
        || json!({ key: data(name, shown) }),
        || {
            let mut out = String::new();
            text(name, shown, &mut out);
            out
        },
    )
}

fn many(ask: &Ask<'_>, key: &str, of: Vec<(&str, Shown)>) -> Said {
    ask.show(
        || json!({ key: of.iter().map(|(name, shown)| data(name, shown)).collect::<Vec<_>>() }),
        || {
            let mut out = String::new();
            of.iter().for_each(|(name, shown)| text(name, shown, &mut out));
            let _ = writeln!(out, "{} object{} found.", of.len(), if of.len() == 1 { "" } else { "s" });
            out
        },
    )
}

impl Cli {
    fn stir_verify(&self, ask: &mut Ask<'_>) -> Said {
        let file = ask.need("file");
        let most = u64::try_from(driver::sip::CERTIFICATE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        // A folder is no file, and a pipe would not end.
        let read = std::fs::metadata(file).and_then(|about| match about.is_file() {
            true => std::fs::File::open(file)?.take(most.saturating_add(1)).read_to_end(&mut bytes),
            false => Err(std::io::Error::other("it is no file")),
        });
        if let Err(why) = read {
            return Said::failed(format!("{}: {why}\n", clean(file)));
        }
        let core = self.site.shard.core.borrow();
        match self.site.sip.borrow().judge_certificate(&core, &bytes, ask.arg("stir-profile")) {
            Ok(subject) => Said::Done(format!("{}: valid, of {}\n", clean(file), clean(&subject))),
            Err(why) => Said::failed(format!("{}: {why}\n", clean(file))),
        }
    }
}
