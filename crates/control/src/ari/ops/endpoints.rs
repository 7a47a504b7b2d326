//! `/endpoints`: who may call and be called, and texts outside of calls.

use apps::message;
use call::{Sending, TextMessage};
use driver::sip::Refer;
use serde_json::Value;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, flag, pairs, path, text};
use super::super::view::{Facts, View};
use super::super::zone_of;

const TECH: Param = path("tech", "technology, PJSIP or IAX2");
const FROM: Param = text("from", "who it is from").must();
const BODY: Param = text("body", "the text");
const VARIABLES: Param = pairs("variables", "headers that go out with it");
const REFER_TO: Param = text("refer_to", "whom to call: a URI, or pjsip:ENDPOINT").must();
const TO_SELF: Param = flag("to_self", "an endpoint is to be called by this server").or("false");
const HEADERS: Param =
    pairs("variables", "headers that go out with it; display_name is the name in Refer-To");
const REFER_ERRORS: &[(u16, &str)] = &[
    (400, "something is missing, or nobody is to be called so"),
    (404, "nobody speaks that protocol, or there is no such endpoint"),
];
const SEND_ERRORS: &[(u16, &str)] = &[
    (400, "no sender is named"),
    (404, "nobody speaks that protocol, or there is no such endpoint"),
    (500, "the text could not leave"),
];

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/endpoints",
        name: "list",
        text: "Lists endpoints.",
        params: &[],
        answer: "List[Endpoint]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Put,
        path: "/endpoints/sendMessage",
        name: "sendMessage",
        text: "Sends a text to whoever `to` names.",
        params: &[text("to", "to whom: pjsip:ENDPOINT and its likes").must(), FROM, BODY, VARIABLES],
        answer: "void",
        errors: SEND_ERRORS,
        run: send,
    },
    Operation {
        method: Method::Post,
        path: "/endpoints/refer",
        name: "refer",
        text: "Asks whoever `to` names to call somebody else, outside of any call.",
        params: &[text("to", "whom: pjsip:ENDPOINT and its likes").must(), FROM, REFER_TO, TO_SELF, HEADERS],
        answer: "void",
        errors: REFER_ERRORS,
        run: |asked| {
            let to = asked.need("to").to_owned();
            refer(asked, &to)
        },
    },
    Operation {
        method: Method::Post,
        path: "/endpoints/{tech}/{resource}/refer",
        name: "referToEndpoint",
        text: "Asks an endpoint to call somebody else, outside of any call.",
        params: &[TECH, path("resource", "name of the endpoint"), FROM, REFER_TO, TO_SELF, HEADERS],
        answer: "void",
        errors: REFER_ERRORS,
        run: |asked| {
            let to = endpoint_asked(asked)?;
            refer(asked, &to)
        },
    },
    Operation {
        method: Method::Get,
        path: "/endpoints/{tech}",
        name: "listByTech",
        text: "Lists endpoints of a technology.",
        params: &[TECH],
        answer: "List[Endpoint]",
        errors: &[(404, "there is no such technology")],
        run: list_by_tech,
    },
    Operation {
        method: Method::Get,
        path: "/endpoints/{tech}/{resource}",
        name: "get",
        text: "Tells about one endpoint.",
        params: &[TECH, path("resource", "name of the endpoint")],
        answer: "Endpoint",
        errors: &[(404, "there is no such endpoint")],
        run: get,
    },
    Operation {
        method: Method::Put,
        path: "/endpoints/{tech}/{resource}/sendMessage",
        name: "sendMessageToEndpoint",
        text: "Sends a text to an endpoint.",
        params: &[TECH, path("resource", "name of the endpoint"), FROM, BODY, VARIABLES],
        answer: "void",
        errors: SEND_ERRORS,
        run: send_to_endpoint,
    },
];

/// The technologies whose endpoints are listed.
const TECHNOLOGIES: [&str; 2] = ["PJSIP", "IAX2"];

fn technology(name: &str) -> Result<&'static str, Fault> {
    let found = TECHNOLOGIES.into_iter().find(|tech| tech.eq_ignore_ascii_case(name));
    found.ok_or_else(|| Fault::not_found(format!("No Endpoints found - invalid tech {name}")))
}

/// Endpoints of some technologies, or one of them.
fn found(asked: &Asked<'_>, wanted: &[&str], only: Option<&str>) -> Vec<Value> {
    let core = asked.site.shard.core.borrow();
    let mut facts = Facts::default();
    let view =
        View { site: asked.site, core: &core, facts: &mut facts, variables: &[], zone: zone_of(asked.site) };
    let mut rows = Vec::new();
    if wanted.contains(&"PJSIP") {
        let known = asked.site.sip.borrow().endpoint_rows(only, &core);
        rows.extend(known.iter().map(|row| view.endpoint_in("PJSIP", &row.name, row.state)));
    }
    if wanted.contains(&"IAX2") {
        let iax = asked.site.iax.borrow();
        let mut names: Vec<&str> = iax.config().peers.keys().map(|name| &**name).collect();
        names.sort_unstable();
        for name in names.into_iter().filter(|name| only.is_none_or(|only| only == *name)) {
            rows.push(view.endpoint_in("IAX2", name, call::Tech::device_state(&*iax, &core, name)));
        }
    }
    rows
}

fn list(asked: &mut Asked<'_>) -> Done {
    Ok(Answer::Found(found(asked, &TECHNOLOGIES, None).into()))
}

fn list_by_tech(asked: &mut Asked<'_>) -> Done {
    let tech = technology(asked.need("tech"))?;
    Ok(Answer::Found(found(asked, &[tech], None).into()))
}

fn get(asked: &mut Asked<'_>) -> Done {
    let tech = technology(asked.need("tech"))?;
    let rows = found(asked, &[tech], Some(asked.need("resource")));
    rows.into_iter().next().map(Answer::Found).ok_or_else(|| Fault::not_found("Endpoint not found"))
}

fn send(asked: &mut Asked<'_>) -> Done {
    let to = asked.need("to").to_owned();
    deliver(asked, &to)
}

fn send_to_endpoint(asked: &mut Asked<'_>) -> Done {
    let to = endpoint_asked(asked)?;
    deliver(asked, &to)
}

/// The endpoint of the path, as messages name it.
fn endpoint_asked(asked: &Asked<'_>) -> Result<String, Fault> {
    let tech = technology(asked.need("tech"))?;
    let resource = asked.need("resource");
    if found(asked, &[tech], Some(resource)).is_empty() {
        return Err(Fault::not_found("Endpoint not found"));
    }
    Ok(format!("{}:{resource}", tech.to_ascii_lowercase()))
}

/// Names and values of headers, of which each has one line.
fn headers(asked: &Asked<'_>) -> Result<Vec<(String, String)>, Fault> {
    let all = asked.pairs("variables")?;
    let is_bad =
        |(name, value): &(String, String)| name.contains(['\r', '\n', ':']) || value.contains(['\r', '\n']);
    if all.iter().any(is_bad) { Err(Fault::bad("a header has one line")) } else { Ok(all) }
}

fn refer(asked: &mut Asked<'_>, to: &str) -> Done {
    if !to.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("pjsip:")) {
        return Err(Fault::not_found("Endpoint not found"));
    }
    let (names, headers): (Vec<_>, Vec<_>) =
        headers(asked)?.into_iter().partition(|(name, _)| name == "display_name");
    let wanted = Refer {
        from: asked.need("from"),
        refer_to: asked.need("refer_to"),
        to_self: asked.is("to_self"),
        display_name: names.first().map_or("", |(_, name)| name.as_str()),
        headers: &headers,
    };
    if [wanted.from, wanted.refer_to, to].iter().any(|text| text.contains(['\r', '\n'])) {
        return Err(Fault::bad("a header has one line"));
    }
    let core = &mut *asked.site.shard.core.borrow_mut();
    match asked.site.sip.borrow_mut().send_refer(core, to, &wanted) {
        true => Ok(Answer::Accepted),
        false => Err(Fault::not_found("Endpoint not found")),
    }
}

fn deliver(asked: &mut Asked<'_>, to: &str) -> Done {
    let (from, body) = (asked.need("from").to_owned(), asked.get("body").unwrap_or_default().to_owned());
    let mut message = TextMessage { to: to.to_owned(), from, body, ..TextMessage::default() };
    for (name, value) in headers(asked)? {
        message.set(&name, &value, true);
    }
    match message::send(&asked.site.shard, to, &message) {
        Ok(Sending::Sent) => Ok(Answer::Accepted),
        Err(message::NoProtocol) | Ok(Sending::InvalidUri) => Err(Fault::not_found("Endpoint not found")),
        Ok(Sending::Failed) => Err(Fault::new(500, "the message could not be sent")),
    }
}
