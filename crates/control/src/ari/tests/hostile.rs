//! What nobody who means well sends.

use super::*;

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut desk = Desk::new("hostile");
    let deep = format!("{}{}", "{\"a\":".repeat(500), "}".repeat(500));
    let many = format!(
        "{{\"variables\":{{{}}}}}",
        (0..2_000).map(|n| format!("\"V{n}\":\"1\"")).collect::<Vec<_>>().join(",")
    );
    for (name, method, target, body, status) in [
        ("no JSON", "POST", "/channels", "{", 400),
        ("a list", "POST", "/channels", "[1]", 400),
        ("nested too deep", "POST", "/channels", &*deep, 400),
        ("too many variables", "POST", "/channels?endpoint=SIM/bob&app=a", &*many, 400),
        ("variables that are a list", "POST", "/channels?endpoint=SIM/bob&app=a", "{\"variables\":[1]}", 400),
        (
            "a variable that is an object",
            "POST",
            "/channels?endpoint=SIM/bob&app=a",
            "{\"variables\":{\"a\":{}}}",
            400,
        ),
        ("an endpoint that is an object", "POST", "/channels", "{\"endpoint\":{\"a\":1},\"app\":\"x\"}", 400),
        ("a number that is none", "POST", "/channels?endpoint=SIM/bob&app=a&timeout=soon", "", 400),
        ("an endpoint with a line end", "POST", "/channels?endpoint=SIM/bob%0d%0aX&app=a", "", 400),
        ("a path that is no text", "GET", "/channels/%ff%fe", "", 400),
        ("a path with a NUL", "GET", "/channels/a%00b", "", 400),
        ("a path out of the folder", "GET", "/recordings/stored/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "", 400),
        ("the same to read", "GET", "/recordings/stored/..%2f..%2fx/file", "", 400),
        ("the same to delete", "DELETE", "/recordings/stored/..%2fx", "", 400),
        ("a path of many parts", "GET", &*"/a".repeat(40), "", 404),
        ("dots in a description", "GET", "/api-docs/..%2f..%2fari.json", "", 404),
        ("a method that is none", "BREW", "/channels", "", 405),
        ("a method of another", "PUT", "/channels", "", 405),
        ("a bridge with a line end", "POST", "/bridges?name=a%0ab", "", 400),
        ("a form that is one", "POST", "/bridges", "{\"type\":\"cheese\"}", 500),
        ("a path with a slash at its end", "GET", "/channels/", "", 404),
    ] {
        let heard = desk.ask(method, target, body);
        assert_eq!(heard.status, status, "{name}: {}", heard.body);
        assert!(!heard.message().is_empty(), "{name}");
    }
    // Functions of the machine are not reached.
    assert_eq!(desk.ask("POST", "/asterisk/variable?variable=DB(a/b)&value=1", "").status, 204);
    assert_eq!(desk.site.shard.core.borrow_mut().services.db.get("a", "b"), None);
    let heard = desk.ask("GET", "/asterisk/variable?variable=SHELL(id)", "");
    assert_eq!(heard.json(), serde_json::json!({ "value": "" }));
    // Inside a function that takes a name it is refused where it is evaluated.
    let heard = desk.ask("GET", "/asterisk/variable?variable=CUT(FILE(/etc/passwd),:,1)", "");
    assert_eq!(heard.json(), serde_json::json!({ "value": "" }));
    assert_eq!(desk.ask("GET", "/channels", "").json(), serde_json::json!([]));
    assert_eq!(desk.ask("GET", "/bridges", "").json(), serde_json::json!([]));
}

#[test]
fn requests_that_are_too_long_end_their_connection() {
    let mut desk = Desk::new("hostile-long");
    let body = "a".repeat(70_000);
    let text = format!("POST /pbx/ari/channels HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n{body}");
    assert_eq!(desk.raw(text.as_bytes()).status, 413);
    let text = format!("GET /pbx/ari/{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(9_000));
    assert_eq!(desk.raw(text.as_bytes()).status, 431);
}

#[test]
fn what_a_client_says_never_ends_a_line_of_the_answer() {
    let mut desk = Desk::new("hostile-lines");
    let key = PASSWORD.replace(' ', "+");
    let text = format!(
        "GET /pbx/ari/api-docs/resources.json?api_key=full:{key} HTTP/1.1\r\nHost: a\"b<c\r\nOrigin: https://x\r\n\r\n"
    );
    let heard = desk.raw(text.as_bytes());
    assert_eq!(heard.json()["basePath"], "http://localhost/pbx/ari", "a host that is none is not told");
    let heard = desk.ask("GET", "/channels/a%0d%0aSet-Cookie:%20x", "");
    assert_eq!((heard.status, heard.head.contains("Set-Cookie")), (404, false));
}
