use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;

/// A server that gives each path its answer, and says what it was asked.
fn server(answers: &'static [(&'static str, &'static str)]) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let tell = tell.clone();
            std::thread::spawn(move || serve(stream, answers, &tell));
        }
    });
    (address, told)
}

fn serve(stream: TcpStream, answers: &[(&str, &str)], tell: &std::sync::mpsc::Sender<String>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut asked = String::new();
    while reader.read_line(&mut asked).is_ok_and(|count| count > 2) {}
    let head = asked.to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    asked.push_str(&String::from_utf8_lossy(&body));
    let path = asked.split(' ').nth(1).unwrap_or_default().to_owned();
    let _ = tell.send(asked);
    match answers.iter().find(|(known, _)| *known == path) {
        Some((_, "")) => std::thread::park(),
        Some((_, answer)) => drop((&stream).write_all(answer.as_bytes())),
        None => drop((&stream).write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone")),
    }
}

fn want(url: String) -> PageWant {
    PageWant {
        url,
        headers: Vec::new(),
        body: None,
        redirects: 0,
        resolve_within: Duration::from_secs(5),
        connect_within: Duration::from_secs(5),
        within: Duration::from_secs(30),
        verify: true,
        proxy: String::new(),
    }
}

/// Fetches until each has its report.
fn fetch(fetcher: &mut Fetcher, wants: Vec<PageWant>) -> Vec<Report> {
    let numbers: Vec<u64> = wants.into_iter().map(|want| fetcher.fetch(want).unwrap()).collect();
    let mut reports = BTreeMap::new();
    let until = Instant::now() + Duration::from_secs(60);
    while reports.len() < numbers.len() && Instant::now() < until {
        reports.extend(fetcher.take_in());
        std::thread::yield_now();
    }
    numbers.iter().map(|number| reports.remove(number).expect("a report")).collect()
}

#[test]
fn pages_come_with_status_head_and_body_and_what_leads_elsewhere_as_it_was_asked() {
    let (host, told) = server(&[
        ("/page", "HTTP/1.1 200 OK\r\nX-Door: red\r\nContent-Length: 6\r\n\r\nhello\n"),
        ("/moved", "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 4\r\n\r\ngone"),
        ("/open", "HTTP/1.0 200 OK\r\n\r\nto the end"),
    ]);
    let mut fetcher = Fetcher::start().unwrap();
    let url = |path: &str| format!("http://{host}{path}");
    for (name, want, status, body) in [
        ("a page", want(url("/page")), 200, "hello\n"),
        ("none", want(url("/none")), 404, "none"),
        ("it leads elsewhere, and stays", want(url("/moved")), 302, "gone"),
        ("it is followed", PageWant { redirects: 1, ..want(url("/moved")) }, 200, "hello\n"),
        ("without a length", want(url("/open")), 200, "to the end"),
    ] {
        let report = fetch(&mut fetcher, vec![want]).remove(0).expect(name);
        assert_eq!((report.status, String::from_utf8_lossy(&report.body).as_ref()), (status, body), "{name}");
        assert!(
            report.head.starts_with("HTTP/1.") && report.head.ends_with("\r\n\r\n"),
            "{name}: {}",
            report.head
        );
    }
    told.try_iter().for_each(drop);
    let headers =
        vec![("X-Key".to_owned(), "a b".to_owned()), ("User-Agent".to_owned(), "door/1".to_owned())];
    fetch(&mut fetcher, vec![PageWant { body: Some("a=1&b=2".to_owned()), headers, ..want(url("/page")) }]);
    let asked = told.recv().unwrap();
    assert!(asked.starts_with("POST /page HTTP/1.1\r\n") && asked.ends_with("\r\n\r\na=1&b=2"), "{asked}");
    let lower = asked.to_ascii_lowercase();
    assert!(lower.contains("x-key: a b\r\n") && lower.matches("user-agent:").count() == 1, "{asked}");
}

#[test]
fn a_server_that_says_nothing_delays_nobody_and_is_given_up_in_time() {
    let (host, _told) =
        server(&[("/page", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), ("/silent", "")]);
    let mut fetcher = Fetcher::start().unwrap();
    let silent = PageWant { within: Duration::from_millis(300), ..want(format!("http://{host}/silent")) };
    let mut wants = vec![silent; THREADS_MAX - 1];
    wants.push(want(format!("http://{host}/page")));
    let mut reports = fetch(&mut fetcher, wants);
    assert_eq!(reports.pop().unwrap().expect("the page").body, b"ok");
    for report in reports {
        assert!(report.expect_err("nothing came").contains("timeout"));
    }
}

#[test]
fn what_cannot_be_fetched_says_why_and_a_page_has_a_bound() {
    let mut fetcher = Fetcher::start().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, proxy) in [
        ("ftp://127.0.0.1/x", ""),
        ("no url", ""),
        ("http://", ""),
        (&*format!("http://{closed}/"), ""),
        ("http://127.0.0.1:1/", "not a proxy at all"),
    ] {
        let want = PageWant { proxy: proxy.to_owned(), ..want(url.to_owned()) };
        assert!(fetch(&mut fetcher, vec![want]).remove(0).is_err(), "{url}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endless = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let page = fetch(&mut fetcher, vec![want(endless)]).remove(0).unwrap();
    assert_eq!(page.body.len(), BODY_BYTES_MAX);
}

#[test]
fn only_so_many_wait_and_one_that_was_forgotten_waits_no_more() {
    let (host, _told) = server(&[("/silent", "")]);
    let mut fetcher = Fetcher::start().unwrap();
    let silent = || want(format!("http://{host}/silent"));
    let numbers: Vec<u64> =
        (0..THREADS_MAX + WAITING_MAX).map(|_| fetcher.fetch(silent()).expect("room")).collect();
    let why = fetcher.fetch(silent()).expect_err("no room");
    assert!(why.contains("wait already"), "{why}");
    fetcher.forget(*numbers.last().unwrap());
    assert!(fetcher.fetch(silent()).is_ok(), "there is room again");
}
