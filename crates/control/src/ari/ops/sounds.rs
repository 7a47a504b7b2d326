//! `/sounds`: what can be played.

use serde_json::{Value, json};
use store::sounds::Listed;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, path, text};

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/sounds",
        name: "list",
        text: "Lists sounds that can be played.",
        params: &[text("lang", "language they must have"), text("format", "format they must have in it")],
        answer: "List[Sound]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Get,
        path: "/sounds/{soundId}",
        name: "get",
        text: "Tells in which languages and formats a sound is there.",
        params: &[path("soundId", "its name")],
        answer: "Sound",
        errors: &[(404, "there is no such sound")],
        run: get,
    },
];

fn shown((name, pairs): (&String, &std::collections::BTreeSet<(String, &'static str)>)) -> Value {
    let pair =
        |(language, format): &(String, &'static str)| json!({ "language": language, "format": format });
    json!({ "id": name, "formats": pairs.iter().map(pair).collect::<Vec<_>>() })
}

fn all(asked: &Asked<'_>) -> Listed {
    asked.site.sounds.borrow().listed()
}

fn list(asked: &mut Asked<'_>) -> Done {
    let (language, format) = (asked.get("lang"), asked.get("format"));
    let fits = |pair: &(String, &'static str)| {
        language.is_none_or(|wanted| pair.0 == wanted) && format.is_none_or(|wanted| pair.1 == wanted)
    };
    let all = all(asked);
    let found = all.iter().filter(|(_, pairs)| pairs.iter().any(fits));
    Ok(Answer::Found(found.map(shown).collect::<Vec<_>>().into()))
}

fn get(asked: &mut Asked<'_>) -> Done {
    let found = all(asked);
    let found = found.get_key_value(asked.need("soundId")).map(shown);
    found.map(Answer::Found).ok_or_else(|| Fault::not_found("Sound not found"))
}
