//! Variables of channels and bridges: one, or many at once.

use apps::stasis as verbs;
use call::stasis::{StasisError, ToldVariable};
use serde_json::{Map, Value, json};

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, NOT_READ, Operation, Param, flag, pairs, path, text};
use super::rights;

const CHANNEL: Param = path("channelId", "id of the channel");
const BRIDGE: Param = path("bridgeId", "id of the bridge");
const ONE: Param = text("variable", "NAME or NAME(arguments)").must();
const MANY: Param = text("variables", "names, comma separated").must().many();
const VALUE: Param = text("value", "the value; empty when absent");
const TOLD: Param = flag("report_events", "it is told with whatever has it from here on").or("false");
const BODY: Param =
    pairs("variables", "names, each with a text or an object of `value` and perhaps `report_events`");
const NO_CHANNEL: (u16, &str) = (404, "there is no such channel or variable");
const NO_BRIDGE: (u16, &str) = (404, "there is no such bridge or variable");
const NO_NAME: (u16, &str) = (400, "no variable is named, or something else than texts is given");
const NOT_HELD: (u16, &str) = (409, "no program has the channel");
const NOT_OURS: (u16, &str) = (409, "no program has made the bridge");
const READ_CHANNEL: &[(u16, &str)] =
    &[NO_NAME, NO_CHANNEL, NOT_HELD, (500, "the function is none or may not be read")];
const SET_CHANNEL: &[(u16, &str)] = &[NO_NAME, NO_CHANNEL, NOT_HELD];
const ON_BRIDGE: &[(u16, &str)] = &[NO_NAME, NO_BRIDGE, NOT_OURS];

/// A row of this module.
const fn row(
    (method, path): (Method, &'static str),
    (name, text): (&'static str, &'static str),
    params: &'static [Param],
    answer: &'static str,
    errors: &'static [(u16, &'static str)],
    run: fn(&mut Asked<'_>) -> Done,
) -> Operation {
    Operation { method, path, name, text, params, answer, errors, run }
}

pub(super) const ROWS: &[Operation] = &[
    row(
        (Method::Get, "/channels/{channelId}/variable"),
        ("getChannelVar", "Reads a variable or a function of a channel."),
        &[CHANNEL, ONE],
        "Variable",
        READ_CHANNEL,
        |asked| {
            let value = of_channel(asked, asked.need("variable"))?;
            Ok(Answer::Found(json!({ "value": value })))
        },
    ),
    row(
        (Method::Post, "/channels/{channelId}/variable"),
        (
            "setChannelVar",
            "Sets a variable or writes a function of a channel; what may not be written is logged and left.",
        ),
        &[CHANNEL, ONE, VALUE, TOLD],
        "void",
        SET_CHANNEL,
        |asked| set_channel(asked, vec![given(asked)]),
    ),
    row(
        (Method::Get, "/channels/{channelId}/variables"),
        ("getChannelVars", "Reads variables and functions of a channel."),
        &[CHANNEL, MANY],
        "Variables",
        READ_CHANNEL,
        |asked| several(asked, of_channel),
    ),
    row(
        (Method::Post, "/channels/{channelId}/variables"),
        ("setChannelVars", "Sets variables and writes functions of a channel."),
        &[CHANNEL, BODY],
        "void",
        SET_CHANNEL,
        |asked| {
            let all = all_given(asked)?;
            set_channel(asked, all)
        },
    ),
    row(
        (Method::Get, "/bridges/{bridgeId}/variable"),
        ("getBridgeVar", "Reads a variable of a bridge."),
        &[BRIDGE, ONE],
        "Variable",
        ON_BRIDGE,
        |asked| {
            let value = of_bridge(asked, asked.need("variable"))?;
            Ok(Answer::Found(json!({ "value": value })))
        },
    ),
    row(
        (Method::Post, "/bridges/{bridgeId}/variable"),
        ("setBridgeVar", "Sets a variable of a bridge, which is there as long as that and is no channel's."),
        &[BRIDGE, ONE, VALUE, TOLD],
        "void",
        ON_BRIDGE,
        |asked| set_bridge(asked, vec![given(asked)]),
    ),
    row(
        (Method::Get, "/bridges/{bridgeId}/variables"),
        ("getBridgeVars", "Reads variables of a bridge."),
        &[BRIDGE, MANY],
        "Variables",
        ON_BRIDGE,
        |asked| several(asked, of_bridge),
    ),
    row(
        (Method::Post, "/bridges/{bridgeId}/variables"),
        ("setBridgeVars", "Sets variables of a bridge."),
        &[BRIDGE, BODY],
        "void",
        ON_BRIDGE,
        |asked| {
            let all = all_given(asked)?;
            set_bridge(asked, all)
        },
    ),
];

/// The variable that the query names.
fn given(asked: &Asked<'_>) -> (String, ToldVariable) {
    let is_told = asked.is_given("report_events").then(|| asked.is("report_events"));
    let value = asked.get("value").unwrap_or_default().to_owned();
    (asked.need("variable").to_owned(), ToldVariable { value, is_told })
}

/// The variables that the body names.
fn all_given(asked: &Asked<'_>) -> Result<Vec<(String, ToldVariable)>, Fault> {
    match asked.variables()? {
        all if all.is_empty() => Err(Fault::bad("Variables are required")),
        all => Ok(all),
    }
}

fn several(asked: &Asked<'_>, one: fn(&Asked<'_>, &str) -> Result<String, Fault>) -> Done {
    let mut found = Map::new();
    let names = asked.all("variables");
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        found.insert(name.to_owned(), Value::from(one(asked, name)?));
    }
    if found.is_empty() {
        return Err(Fault::bad("Variable names are required"));
    }
    Ok(Answer::Found(json!({ "variables": found })))
}

fn of_channel(asked: &Asked<'_>, name: &str) -> Result<String, Fault> {
    let found = verbs::channel_variable(&asked.site.shard, asked.need("channelId"), name, rights(asked));
    found.map_err(|why| match why {
        StasisError::Internal(_) => Fault::new(500, NOT_READ),
        why => why.into(),
    })
}

fn set_channel(asked: &Asked<'_>, all: Vec<(String, ToldVariable)>) -> Done {
    for (name, ToldVariable { value, is_told }) in all {
        let pair = (&*name, &*value);
        let shard = &asked.site.shard;
        verbs::set_channel_variable(shard, asked.need("channelId"), pair, is_told, rights(asked))?;
    }
    Ok(Answer::Nothing)
}

fn of_bridge(asked: &Asked<'_>, name: &str) -> Result<String, Fault> {
    let core = asked.site.shard.core.borrow();
    let found = core.stasis_bridge_get(asked.need("bridgeId"), name).map(str::to_owned);
    found.ok_or_else(|| Fault::not_found("Provided variable was not found"))
}

fn set_bridge(asked: &Asked<'_>, all: Vec<(String, ToldVariable)>) -> Done {
    asked.site.shard.core.borrow_mut().stasis_bridge_set(asked.need("bridgeId"), all)?;
    Ok(Answer::Nothing)
}
