//! `/asterisk/config/dynamic`: objects of the configuration by class, type and name, with all their options. They are written in
//! files, so that they are looked at here and changed there.

use conf::{File, Findings, Section};
use serde_json::{Value, json};
use store::Folder;
use store::config::pjsip;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, path};

/// Classes, and the types of objects that each has.
const CLASSES: [(&str, &[&str]); 4] = [
    ("res_pjsip", &["endpoint", "aor", "auth", "contact", "transport", "domain_alias", "global", "system"]),
    ("res_pjsip_acl", &["acl"]),
    ("res_pjsip_endpoint_identifier_ip", &["identify"]),
    ("res_pjsip_outbound_registration", &["registration"]),
];
/// What is told to nobody.
const SECRETS: [&str; 4] = ["password", "md5_cred", "oauth_secret", "refresh_token"];

const PARAMS: &[Param] = &[
    path("configClass", "class: res_pjsip"),
    path("objectType", "type of the object: endpoint"),
    path("id", "name of the object"),
];
const NOT_FOUND: (u16, &str) = (404, "there is no such class, type or object");
const FIXED: (u16, &str) = (403, "what a file says is not changed here");

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/asterisk/config/dynamic/{configClass}/{objectType}/{id}",
        name: "getObject",
        text: "Tells all options of an object of the configuration, but for passwords.",
        params: PARAMS,
        answer: "List[ConfigTuple]",
        errors: &[NOT_FOUND],
        run: get,
    },
    Operation {
        method: Method::Put,
        path: "/asterisk/config/dynamic/{configClass}/{objectType}/{id}",
        name: "updateObject",
        text: "Would make or change an object; objects are written in files, so that this is refused.",
        params: PARAMS,
        answer: "List[ConfigTuple]",
        errors: &[NOT_FOUND, FIXED],
        run: |asked| {
            known(asked)?;
            Err(Fault::new(403, "Cannot update an object that a file describes"))
        },
    },
    Operation {
        method: Method::Delete,
        path: "/asterisk/config/dynamic/{configClass}/{objectType}/{id}",
        name: "deleteObject",
        text: "Would delete an object; objects are written in files, so that this is refused.",
        params: PARAMS,
        answer: "void",
        errors: &[NOT_FOUND, FIXED],
        run: |asked| {
            get(asked)?;
            Err(Fault::new(403, "Cannot delete an object that a file describes"))
        },
    },
];

/// The type that is meant, of a class that there is.
fn known(asked: &Asked<'_>) -> Result<&'static str, Fault> {
    let (class, kind) = (asked.need("configClass"), asked.need("objectType"));
    let found = CLASSES.iter().find(|(name, _)| *name == class);
    let (_, kinds) = found.ok_or_else(|| Fault::not_found(format!("configClass '{class}' not found")))?;
    let found = kinds.iter().find(|name| **name == kind).copied();
    found.ok_or_else(|| Fault::not_found(format!("objectType '{kind}' not found")))
}

fn get(asked: &mut Asked<'_>) -> Done {
    let kind = known(asked)?;
    let id = asked.need("id");
    let tuple = |name: &str, value: &str| json!({ "attribute": name, "value": value });
    if kind == "endpoint" {
        let core = asked.site.shard.core.borrow();
        let row = asked.site.sip.borrow().endpoint_rows(Some(id), &core).pop();
        let row = row.ok_or_else(|| Fault::not_found("Object not found"))?;
        let all: Vec<Value> = row.options.iter().map(|(name, value)| tuple(name, value)).collect();
        return Ok(Answer::Found(all.into()));
    }
    let file = file(asked).ok_or_else(|| Fault::not_found("Object not found"))?;
    let is_meant = |section: &&Section| section.value("type").is_some_and(|own| own == kind);
    let section = file.objects().filter(|section| &*section.name == id).find(is_meant);
    let section = section.ok_or_else(|| Fault::not_found("Object not found"))?;
    let all: Vec<Value> = pjsip::options_of(kind)
        .filter(|(name, _)| *name != "type" && !SECRETS.contains(name))
        .map(|(name, default)| tuple(name, section.value(name).unwrap_or(default)))
        .collect();
    Ok(Answer::Found(all.into()))
}

/// pjsip.conf, as it lies there.
fn file(asked: &Asked<'_>) -> Option<File> {
    let snapshot = asked.site.snapshot.borrow();
    let folder = &snapshot.asterisk.directories.astetcdir;
    // No command runs for a client, whatever `execincludes` says.
    conf::load(&Folder::new(folder), "pjsip.conf", conf::Options::default(), &mut Findings::new()).ok()
}
