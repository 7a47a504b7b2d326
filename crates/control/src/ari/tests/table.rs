//! The table: what clients read of it, what the manual says, and that each row holds what it promises.

use std::path::Path;

use super::*;

/// A value that a parameter takes.
fn good(param: &Param) -> String {
    match (param.kind, param.words.first(), param.range) {
        (_, Some(word), _) => (*word).to_owned(),
        (Kind::Int, None, Some((low, _))) => low.max(1).to_string(),
        (Kind::Int, None, None) => "1".to_owned(),
        (Kind::Bool, ..) => "true".to_owned(),
        _ => "x".to_owned(),
    }
}

/// The path of an operation with something in place of its names, and a query without the parameter `but`.
fn target(operation: &Operation, but: &str, with: &[(&str, &str)]) -> String {
    let mut path = operation.path.to_owned();
    let mut query = Vec::new();
    for param in operation.params {
        let name = format!("{{{}}}", param.name);
        if param.place == Place::Path {
            path = path.replace(&name, "none");
        } else if param.place == Place::Query && param.required && param.name != but {
            query.push(format!("{}={}", param.name, good(param)));
        }
    }
    query.extend(with.iter().map(|(name, value)| format!("{name}={value}")));
    format!("{path}?{}", query.join("&"))
}

#[test]
fn every_parameter_is_checked_before_anything_is_done() {
    let mut desk = Desk::new("table-parameters");
    for operation in operations() {
        let method = operation.method.name();
        for param in operation.params.iter().filter(|param| param.place == Place::Query) {
            let name = format!("{method} {} {}", operation.path, param.name);
            // What is in the path goes first: there is no such channel, and no such bridge.
            let of_none = |word: &str| operation.path.contains(&format!("{{{word}}}/"));
            let is_of_none = of_none("channelId") || of_none("bridgeId");
            if param.required {
                let heard = desk.ask(method, &target(operation, param.name, &[]), "");
                let expected = match (is_of_none, operation.path.starts_with("/channels")) {
                    (true, true) => (404, "Channel not found".to_owned()),
                    (true, false) => (404, "Bridge not found".to_owned()),
                    (false, _) => (400, asked::missing(operation, param.name)),
                };
                assert_eq!((heard.status, heard.message()), expected, "{name}");
            }
            let mut bad = Vec::new();
            match param.kind {
                Kind::Int | Kind::Long => {
                    bad.push("none".to_owned());
                    bad.extend(param.range.map(|(low, _)| (low - 1).to_string()));
                    bad.extend(param.range.map(|(_, high)| (high + 1).to_string()));
                }
                Kind::Bool => bad.push("perhaps".to_owned()),
                Kind::Text if !param.words.is_empty() => bad.push("cheese".to_owned()),
                Kind::Text | Kind::Pairs => {}
            }
            for value in bad {
                let target = target(operation, param.name, &[(param.name, &value)]);
                let status = desk.ask(method, &target, "").status;
                assert_eq!(status, if is_of_none { 404 } else { 400 }, "{name}={value}");
            }
        }
    }
}

#[test]
fn each_row_answers_with_a_status_that_it_promises() {
    let mut desk = Desk::new("table-errors");
    for operation in operations().filter(|operation| operation.name != "reloadModule") {
        let heard = desk.ask(operation.method.name(), &target(operation, "", &[]), "");
        let promised = operation.errors.iter().map(|(status, _)| *status);
        let promised: Vec<u16> = promised.chain([200, 201, 202, 204, 426]).collect();
        assert!(
            promised.contains(&heard.status),
            "{} {}: {} {}",
            operation.method.name(),
            operation.path,
            heard.status,
            heard.body
        );
    }
}

#[test]
fn rows_say_what_they_are_and_no_two_are_the_same() {
    let mut known = std::collections::BTreeSet::new();
    for row in operations() {
        assert!(known.insert((row.method, row.path)), "{} {}", row.method.name(), row.path);
        assert!(known.insert((Method::Get, row.name)) || row.name.len() > 2, "{}", row.name);
        assert!(row.text.ends_with('.'), "{}", row.path);
        assert!(row.params.iter().all(|param| !param.text.is_empty()), "{}", row.path);
        let names = row.path.matches('{').count();
        let in_path = row.params.iter().filter(|param| param.place == Place::Path).count();
        assert_eq!(names, in_path, "{}", row.path);
        let model = row.answer.trim_start_matches("List[").trim_end_matches(']');
        let is_model =
            matches!(model, "void" | "binary" | "Event") || MODELS.iter().any(|row| row.name == model);
        assert!(is_model, "{}: {model}", row.path);
        assert!(ops::RESOURCES.iter().any(|resource| resource.name == row.resource()), "{}", row.path);
    }
}

#[test]
fn clients_read_the_table_as_descriptions() {
    let mut desk = Desk::new("table-swagger");
    let all = desk.ask("GET", "/api-docs/resources.json", "").json();
    assert_eq!(all["swaggerVersion"], "1.1");
    assert_eq!(all["basePath"], "http://pbx.example.com:8088/pbx/ari");
    let mut found = 0;
    for api in all["apis"].as_array().unwrap() {
        let path = api["path"].as_str().unwrap().replace("{format}", "json");
        let one = desk.ask("GET", &path, "").json();
        assert_eq!(one["basePath"], all["basePath"], "{path}");
        for api in one["apis"].as_array().unwrap() {
            for operation in api["operations"].as_array().unwrap() {
                found += 1;
                for key in
                    ["httpMethod", "nickname", "responseClass", "summary", "parameters", "errorResponses"]
                {
                    assert!(!operation[key].is_null(), "{path}: {key}");
                }
                for param in operation["parameters"].as_array().unwrap() {
                    for key in ["name", "paramType", "dataType", "required", "allowMultiple"] {
                        assert!(!param[key].is_null(), "{path}: {key}");
                    }
                }
            }
        }
    }
    assert_eq!(found, operations().count());
    let events = desk.ask("GET", "/api-docs/events.json", "").json();
    for event in EVENTS {
        assert_eq!(events["models"][event.name]["properties"]["type"]["type"], "string", "{}", event.name);
    }
    assert_eq!(events["models"]["StasisStart"]["properties"]["channel"]["type"], "Channel");
    assert_eq!(desk.ask("GET", "/api-docs/nothing.json", "").status, 404);
}

#[test]
fn the_closest_path_is_meant() {
    let of = |method, path: &str| match route(method, &parts(path).unwrap()) {
        Route::Found(row, values) => format!("{} {values:?}", row.name),
        Route::OtherMethods => "405".into(),
        Route::Nowhere => "404".into(),
    };
    for (method, path, expected) in [
        (Method::Put, "/endpoints/sendMessage", "sendMessage []"),
        (Method::Post, "/channels/create", "create []"),
        (Method::Get, "/channels/create", "405"),
        (Method::Get, "/channels/a%2Fb/", "get [(\"channelId\", \"a/b\")]"),
        (Method::Delete, "/recordings/live/x/pause", "unpause [(\"recordingName\", \"x\")]"),
        (Method::Get, "/deviceStates/PJSIP/6001", "get [(\"deviceName\", \"PJSIP/6001\")]"),
        (Method::Put, "/channels", "405"),
        (Method::Get, "/cheese", "404"),
        (Method::Get, "/", "404"),
    ] {
        assert_eq!(of(method, path), expected, "{path}");
    }
}

/// With `UPDATE_DOCS=1` in the environment the page is written anew.
#[test]
fn the_manual_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ari.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = MARKS;
    let (before, rest) = page.split_once(begin).expect("the page has the mark of the reference");
    let (_, after) = rest.split_once(end).expect("and that of its end");
    let wanted = format!("{before}{begin}{}{end}{after}", manual());
    if page == wanted {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let line = page.lines().zip(wanted.lines()).find(|(old, new)| old != new);
    panic!("docs/ari.md is behind the table, first at {line:?}; see the comment above this test");
}
