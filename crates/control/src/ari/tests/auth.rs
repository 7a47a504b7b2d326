//! Who may what: each way to show who one is, with each method.

use super::*;

#[test]
fn every_method_asks_for_a_password_and_users_who_look_may_only_get() {
    let mut desk = Desk::new("auth-table");
    let cells = [
        ("no password", "", ["401"; 4]),
        ("a wrong one", "full:wrong password", ["401"; 4]),
        ("an unknown user", "nobody:a secret of twenty", ["401"; 4]),
        ("another address", "far:a secret of twenty", ["401"; 4]),
        ("who looks", "looks:a secret of twenty", ["200", "403", "403", "403"]),
        ("who may", "full:a secret of twenty", ["200", "404", "404", "404"]),
    ];
    let mut refused = Vec::new();
    for (name, pair, expected) in cells {
        for by_key in [false, true] {
            for (method, wanted) in ["GET", "POST", "PUT", "DELETE"].into_iter().zip(expected) {
                let target = if method == "GET" { "/channels" } else { "/channels/none/nothing" };
                let token = crate::base64::encode(pair.as_bytes());
                let (query, header) = match (pair.is_empty(), by_key) {
                    (true, _) => (String::new(), String::new()),
                    (false, true) => (format!("?api_key={}", pair.replace(' ', "%20")), String::new()),
                    (false, false) => (String::new(), format!("Authorization: Basic {token}\r\n")),
                };
                let text = format!("{method} /pbx/ari{target}{query} HTTP/1.1\r\nHost: pbx\r\n{header}\r\n");
                let heard = desk.raw(text.as_bytes());
                assert_eq!(
                    heard.status.to_string(),
                    wanted,
                    "{name}, by key: {by_key}, {method}: {}",
                    heard.body
                );
                if wanted == "401" {
                    assert!(
                        heard.head.contains("\r\nWWW-Authenticate: Basic realm=\"The realm\""),
                        "{}",
                        heard.head
                    );
                    refused.push((heard.head, heard.body));
                }
                // Nobody is to be banned by this table.
                desk.site.shard.core.borrow_mut().bans = Default::default();
            }
        }
    }
    refused.dedup();
    assert_eq!(refused.len(), 1, "unknown, wrong and refused look alike: {refused:?}");
}

#[test]
fn what_is_no_path_of_it_tells_nothing_to_strangers() {
    let mut desk = Desk::new("auth-paths");
    for target in
        ["/channels", "/nothing", "/api-docs/resources.json", "/events?app=x", "/%2e%2e/metrics", ""]
    {
        let text = format!("GET /pbx/ari{target} HTTP/1.1\r\nHost: pbx\r\n\r\n");
        assert_eq!(desk.raw(text.as_bytes()).status, 401, "{target}");
    }
    assert_eq!(desk.raw(b"GET /pbx/arid HTTP/1.1\r\nHost: pbx\r\n\r\n").status, 404);
    assert_eq!(
        desk.raw(b"GET /ari/channels HTTP/1.1\r\nHost: pbx\r\n\r\n").status,
        404,
        "without the prefix"
    );
}

#[test]
fn who_guesses_is_not_listened_to_any_more_even_with_the_right_password() {
    let mut desk = Desk::new("auth-bans");
    let hour = Duration::from_secs(3_600);
    let rules = call::BanRules {
        per_user: 10,
        per_address: 0,
        span: hour,
        first: hour,
        longest: hour,
        allowed: vec![],
    };
    desk.site.shard.core.borrow_mut().bans.configure(rules);
    for _ in 0..40 {
        assert_eq!(desk.ask_as("full", "a guess", "GET", "/channels", "").status, 401);
    }
    assert_eq!(desk.ask("GET", "/channels", "").status, 401, "banned");
    assert_eq!(
        desk.ask_as("looks", PASSWORD, "GET", "/channels", "").status,
        200,
        "another user at the same address"
    );
}

#[test]
fn pages_of_other_origins_may_what_the_site_lists() {
    let mut desk = Desk::new("auth-origins");
    let token = crate::base64::encode(format!("full:{PASSWORD}").as_bytes());
    let key = PASSWORD.replace(' ', "+");
    for (origin, basic, by_key) in [
        ("", 200, 200),
        ("https://panel.example.com", 200, 200),
        ("http://pbx.example.com", 200, 200),
        ("https://evil.example", 403, 200),
        ("https://panel.example.com.evil.example", 403, 200),
    ] {
        let header = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
        let text = format!(
            "POST /pbx/ari/bridges HTTP/1.1\r\nHost: pbx.example.com\r\n{header}Authorization: Basic {token}\r\n\r\n"
        );
        let heard = desk.raw(text.as_bytes());
        assert_eq!(heard.status, basic, "{origin}: {}", heard.body);
        let is_told = heard.head.contains(&format!("Access-Control-Allow-Origin: {origin}\r\n"));
        assert_eq!(is_told, !origin.is_empty() && basic == 200, "{}", heard.head);
        let text = format!(
            "POST /pbx/ari/bridges?api_key=full:{key} HTTP/1.1\r\nHost: pbx.example.com\r\n{header}\r\n"
        );
        assert_eq!(desk.raw(text.as_bytes()).status, by_key, "{origin} by key");
    }
    for (origin, allowed) in [("https://panel.example.com", true), ("https://evil.example", false)] {
        let text = format!("OPTIONS /pbx/ari/channels HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\n\r\n");
        let heard = desk.raw(text.as_bytes());
        assert_eq!(
            (heard.status, heard.head.contains("Access-Control-Allow-Methods")),
            (204, allowed),
            "{origin}"
        );
    }
    for (method, target, status, allow) in [
        ("OPTIONS", "/channels", 204, "OPTIONS,GET,POST"),
        ("OPTIONS", "/channels/x", 204, "OPTIONS,GET,POST,DELETE"),
        ("OPTIONS", "/channels/x/moh", 204, "OPTIONS,POST,DELETE"),
        ("PUT", "/channels", 405, "OPTIONS,GET,POST"),
        ("DELETE", "/asterisk/info", 405, "OPTIONS,GET"),
    ] {
        let heard = desk.ask(method, target, "");
        assert_eq!(heard.status, status, "{method} {target}");
        assert!(
            format!("{}\r\n", heard.head).contains(&format!("\r\nAllow: {allow}\r\n")),
            "{method} {target}: {}",
            heard.head
        );
    }
}

#[test]
fn a_password_may_be_kept_as_crypt_makes_it() {
    let mut desk = Desk::new("auth-crypt");
    for (user, password, status) in [
        ("hashed", "Hello world!", 200),
        ("hashed", "Hello world!", 200),
        ("hashed", "Hello world", 401),
        ("hashed", "", 401),
        ("nobody", "Hello world!", 401),
        ("full", "Hello world!", 401),
    ] {
        assert_eq!(desk.ask_as(user, password, "GET", "/channels", "").status, status, "{user} {password}");
    }
}

#[test]
fn who_comes_from_elsewhere_with_the_right_password_is_told_so_where_the_site_lives_dangerously() {
    for (dangerous, password, status) in
        [(false, PASSWORD, 401), (true, PASSWORD, 403), (true, "a guess", 401)]
    {
        let mut desk = Desk::new("auth-acl");
        std::rc::Rc::make_mut(&mut desk.site.shard.core.borrow_mut().settings).live_dangerously = dangerous;
        assert_eq!(
            desk.ask_as("far", password, "GET", "/channels", "").status,
            status,
            "{dangerous} {password}"
        );
    }
}
