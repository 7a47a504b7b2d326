//! `/applications`: programs that are connected, and what each listens to.

use call::stasis::{StasisError, Topic};
use serde_json::Value;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, pairs, path, text};
use super::super::view::{application, state_of_endpoint};

const APP: Param = path("applicationName", "name of the application");
const NO_APP: (u16, &str) = (404, "there is no such application");
const SOURCES: Param = text(
    "eventSource",
    "what it listens to: channel:ID, bridge:ID, endpoint:TECH/RESOURCE, endpoint:TECH or deviceState:NAME",
)
.must()
.many();

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/applications",
        name: "list",
        text: "Lists applications.",
        params: &[],
        answer: "List[Application]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Get,
        path: "/applications/{applicationName}",
        name: "get",
        text: "Tells what an application listens to.",
        params: &[APP],
        answer: "Application",
        errors: &[NO_APP],
        run: get,
    },
    Operation {
        method: Method::Post,
        path: "/applications/{applicationName}/subscription",
        name: "subscribe",
        text: "Has an application listen to something.",
        params: &[APP, SOURCES],
        answer: "Application",
        errors: &[(400, "no source is named"), NO_APP, (422, "there is no such source")],
        run: subscribe,
    },
    Operation {
        method: Method::Delete,
        path: "/applications/{applicationName}/subscription",
        name: "unsubscribe",
        text: "Has an application listen to something no more.",
        params: &[APP, SOURCES],
        answer: "Application",
        errors: &[
            (400, "no source is named"),
            NO_APP,
            (409, "it does not listen to that"),
            (422, "there is no such source"),
        ],
        run: unsubscribe,
    },
    Operation {
        method: Method::Put,
        path: "/applications/{applicationName}/eventFilter",
        name: "filter",
        text: "Says which kinds of events an application hears. The body is an object with the lists `allowed` and `disallowed` of objects with the field `type`; what is disallowed is not heard, and an empty list of what is allowed allows all.",
        params: &[APP, pairs("filter", "the lists")],
        answer: "Application",
        errors: &[(400, "the lists are none"), NO_APP],
        run: filter,
    },
];

fn shown(asked: &Asked<'_>, name: &str) -> Done {
    let core = asked.site.shard.core.borrow();
    let app = core.stasis.app(name).ok_or_else(|| Fault::not_found("Application not found"))?;
    Ok(Answer::Found(application(name, app)))
}

fn list(asked: &mut Asked<'_>) -> Done {
    let core = asked.site.shard.core.borrow();
    let rows: Vec<Value> = core.stasis.apps().map(|(name, app)| application(name, app)).collect();
    Ok(Answer::Found(rows.into()))
}

fn get(asked: &mut Asked<'_>) -> Done {
    shown(asked, asked.need("applicationName"))
}

fn topics(asked: &Asked<'_>) -> Result<Vec<Topic>, Fault> {
    let topics: Result<Vec<Topic>, StasisError> =
        asked.all("eventSource").iter().map(|source| Topic::parse(source)).collect();
    let topics = topics?;
    let core = asked.site.shard.core.borrow();
    for topic in &topics {
        if let Topic::Endpoint(tech, Some(resource)) = topic
            && state_of_endpoint(asked.site, &core, tech, resource).is_none()
        {
            return Err(Fault::new(422, "Event source does not exist"));
        }
    }
    Ok(topics)
}

fn subscribe(asked: &mut Asked<'_>) -> Done {
    let (name, topics) = (asked.need("applicationName").to_owned(), topics(asked)?);
    asked.site.shard.core.borrow_mut().stasis_subscribe(&name, &topics)?;
    shown(asked, &name)
}

fn unsubscribe(asked: &mut Asked<'_>) -> Done {
    let (name, topics) = (asked.need("applicationName").to_owned(), topics(asked)?);
    asked.site.shard.core.borrow_mut().stasis_unsubscribe(&name, &topics)?;
    shown(asked, &name)
}

fn filter(asked: &mut Asked<'_>) -> Done {
    let name = asked.need("applicationName").to_owned();
    let body = asked.body.get("filter").unwrap_or(&asked.body);
    let bad = || Fault::bad("allowed and disallowed are lists of objects with the field type");
    let list = |name: &str| -> Result<Option<Vec<String>>, Fault> {
        match body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(list)) => {
                let kind = |item: &Value| item.get("type").and_then(Value::as_str).map(str::to_owned);
                list.iter().map(kind).collect::<Option<Vec<String>>>().map(Some).ok_or_else(bad)
            }
            Some(_) => Err(bad()),
        }
    };
    let (mut allowed, mut disallowed) = (list("allowed")?, list("disallowed")?);
    if allowed.is_none() && disallowed.is_none() {
        // Nothing is said: everything is heard again.
        (allowed, disallowed) = (Some(Vec::new()), Some(Vec::new()));
    }
    asked.site.shard.core.borrow_mut().stasis.set_filter(&name, allowed, disallowed)?;
    shown(asked, &name)
}
