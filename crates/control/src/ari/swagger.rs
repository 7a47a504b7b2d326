//! The operations as clients read them to make their methods: descriptions in the form of Swagger 1.1, made from the rows.

use serde_json::{Map, Value, json};

use super::models::{EVENT_FIELDS, EVENT_PARTS, EVENTS, MODELS, Model, ModelField};
use super::ops::RESOURCES;
use super::table::{Operation, Param, operations};

/// Version of the interface that clients are told.
const API_VERSION: &str = "10.0.0";

/// `resources.json`: which descriptions there are. `base` is where /ari is, as the client sees it.
pub(super) fn resources(base: &str) -> Value {
    let apis: Vec<Value> = RESOURCES
        .iter()
        .map(|resource| {
            json!({ "path": format!("/api-docs/{}.{{format}}", resource.name), "description": resource.text })
        })
        .collect();
    json!({ "apiVersion": API_VERSION, "swaggerVersion": "1.1", "basePath": base, "apis": apis })
}

/// `NAME.json`: the operations and models of a resource.
pub(super) fn resource(name: &str, base: &str) -> Option<Value> {
    let resource = RESOURCES.iter().find(|resource| resource.name == name)?;
    let mut apis: Vec<(&str, Vec<Value>)> = Vec::new();
    for row in operations().filter(|row| row.resource() == name) {
        match apis.iter_mut().find(|(path, _)| *path == row.path) {
            Some((_, own)) => own.push(operation(row)),
            None => apis.push((row.path, vec![operation(row)])),
        }
    }
    let apis: Vec<Value> = apis
        .into_iter()
        .map(|(path, operations)| json!({ "path": path, "description": resource.text, "operations": operations }))
        .collect();
    Some(json!({
        "apiVersion": API_VERSION,
        "swaggerVersion": "1.1",
        "basePath": base,
        "resourcePath": format!("/api-docs/{name}.{{format}}"),
        "requiresModules": [],
        "apis": apis,
        "models": models(name),
    }))
}

fn operation(row: &Operation) -> Value {
    let errors: Vec<Value> =
        row.errors.iter().map(|(code, reason)| json!({ "code": code, "reason": reason })).collect();
    let mut out = json!({
        "httpMethod": row.method.name(),
        "summary": row.text,
        "nickname": row.name,
        "responseClass": row.answer,
        "parameters": row.params.iter().map(parameter).collect::<Vec<_>>(),
        "errorResponses": errors,
    });
    if row.name == "eventWebsocket"
        && let Some(out) = out.as_object_mut()
    {
        out.insert("upgrade".into(), "websocket".into());
        out.insert("websocketProtocol".into(), "ari".into());
    }
    out
}

fn parameter(param: &Param) -> Value {
    let mut out = Map::new();
    for (key, value) in [
        ("name", json!(param.name)),
        ("description", json!(param.text)),
        ("paramType", json!(param.place.name())),
        ("dataType", json!(param.kind.name())),
        ("required", json!(param.required)),
        ("allowMultiple", json!(param.many)),
    ] {
        out.insert(key.into(), value);
    }
    if let Some(default) = param.default {
        out.insert("defaultValue".into(), json!(default));
    }
    if !param.words.is_empty() {
        out.insert("allowableValues".into(), json!({ "valueType": "LIST", "values": param.words }));
    } else if let Some((low, high)) = param.range {
        out.insert("allowableValues".into(), json!({ "valueType": "RANGE", "min": low, "max": high }));
    }
    Value::Object(out)
}

fn fields(fields: impl Iterator<Item = &'static ModelField>) -> Value {
    let one = |field: &ModelField| {
        let row = json!({ "type": field.kind, "description": field.text, "required": field.required });
        (field.name.to_owned(), row)
    };
    Value::Object(fields.map(one).collect())
}

fn model(model: &Model) -> Value {
    json!({ "id": model.name, "description": model.text, "properties": fields(model.fields.iter()) })
}

/// Models of a resource. Those that it only mentions stand in the description of their own; clients join them.
fn models(resource: &str) -> Value {
    let own = MODELS.iter().filter(|row| row.resource == resource);
    let mut out: Map<String, Value> = own.map(|row| (row.name.to_owned(), model(row))).collect();
    if resource == "events" {
        let names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
        let event = json!({
            "id": "Event",
            "description": "What a program hears.",
            "discriminator": "type",
            "subTypes": names,
            "properties": fields(EVENT_FIELDS.iter()),
        });
        out.insert("Event".into(), event);
        for row in EVENTS {
            let properties = fields(EVENT_FIELDS.iter().chain(row.fields));
            let event = json!({ "id": row.name, "description": row.text, "properties": properties });
            out.insert(row.name.into(), event);
        }
        out.extend(EVENT_PARTS.iter().map(|row| (row.name.to_owned(), model(row))));
    }
    Value::Object(out)
}
