//! CURL() and CURLOPT(): pages of web servers.
//!
//! Pages are fetched before a step's arguments are expanded ([`Call::fetch_pages`]); reading the function gives what came.
//! A call that no step spells out fetches nothing: neither a manager's `Getvar` nor text that came in from a caller makes
//! this machine ask another.

use core::time::Duration;

use base::PageWant;
use call::{Level, LinkNews, LinkWant, Stop};
use dialplan::{Fault, Written};

use super::{Read, unknown};
use crate::Call;
use crate::env::Scope;

/// Calls of the function that one step may have made.
const CALLS_MAX: usize = 16;
/// Longest that a page may take, seconds; the field's default.
const WITHIN: u32 = 180;
/// Redirects that are followed when nothing is said of their number.
const REDIRECTS_MAX: u32 = 20;
/// Headers that CURLOPT(httpheader) may add.
const HEADERS_MAX: usize = 64;
/// Longest value of an option, bytes.
const VALUE_BYTES_MAX: usize = 8 * 1024;
/// Who asks.
const AGENT: &str = concat!("strowger/", env!("CARGO_PKG_VERSION"));

/// Arguments of a call of `CURL()`, substituted, and what came of it.
pub(crate) type Fetched = (String, Result<String, String>);

/// What is taken for an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// Text of which each line counts, one a write.
    Lines,
    YesNo,
    Number,
    OneOf(&'static [&'static str]),
    /// Known, and without effect for this reason.
    Idle(&'static str),
}

/// What CURLOPT() can be told.
const OPTIONS: &[(&str, Kind)] = &[
    ("cookie", Kind::Text),
    ("conntimeout", Kind::Number),
    ("dnstimeout", Kind::Number),
    ("followlocation", Kind::YesNo),
    ("ftptext", Kind::Idle("pages come by HTTP alone")),
    ("ftptimeout", Kind::Idle("pages come by HTTP alone")),
    ("header", Kind::YesNo),
    ("httpauth", Kind::OneOf(&["basic"])),
    ("httpheader", Kind::Lines),
    ("httptimeout", Kind::Number),
    ("maxredirs", Kind::Number),
    ("proxy", Kind::Text),
    ("proxytype", Kind::OneOf(&["http", "socks4", "socks5"])),
    ("proxyport", Kind::Number),
    ("proxyuserpwd", Kind::Text),
    ("referer", Kind::Text),
    ("useragent", Kind::Text),
    ("userpwd", Kind::Text),
    ("ssl_verifypeer", Kind::YesNo),
    ("hashcompat", Kind::Idle("HASH() takes no answers of web servers")),
    ("failurecodes", Kind::Text),
];

/// What CURLOPT() was told, by the names above.
#[derive(Debug, Default)]
pub(crate) struct Options(Vec<(&'static str, String)>);

impl Options {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
    fn is(&self, name: &str, otherwise: bool) -> bool {
        self.get(name).map_or(otherwise, |value| conf::boolean(value).unwrap_or(otherwise))
    }
    fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.trim().parse().ok()
    }
    fn set(&mut self, name: &str, value: &str) -> Result<Option<&'static str>, Fault> {
        let (name, kind) = known(name)?;
        if value.len() > VALUE_BYTES_MAX
            || value.contains(|symbol: char| symbol.is_control() && symbol != '\t')
        {
            return Err(Fault::new(format!(
                "a value has {VALUE_BYTES_MAX} bytes at most and no control characters"
            )));
        }
        let trimmed = value.trim();
        match kind {
            Kind::Idle(why) => return Ok(Some(why)),
            Kind::YesNo if conf::boolean(trimmed).is_none() => {
                return Err(Fault::new(format!("{name} is yes or no, not '{trimmed}'")));
            }
            // -1 is no limit, for those that count.
            Kind::Number if trimmed != "-1" && trimmed.parse::<u32>().is_err() => {
                return Err(Fault::new(format!("{name} is a number, not '{trimmed}'")));
            }
            Kind::OneOf(words) if !words.iter().any(|word| word.eq_ignore_ascii_case(trimmed)) => {
                return Err(Fault::new(format!("{name} is {}, not '{trimmed}'", words.join(" or "))));
            }
            Kind::Lines if !trimmed.contains(':') => {
                return Err(Fault::new(format!("{name} is Name: value, not '{trimmed}'")));
            }
            Kind::Lines if self.0.iter().filter(|(known, _)| *known == name).count() >= HEADERS_MAX => {
                return Err(Fault::new(format!("{name} has {HEADERS_MAX} lines at most")));
            }
            Kind::Text | Kind::Lines | Kind::YesNo | Kind::Number | Kind::OneOf(_) => {}
        }
        if kind != Kind::Lines {
            self.0.retain(|(known, _)| *known != name);
        }
        self.0.push((name, trimmed.to_owned()));
        Ok(None)
    }
    /// The request for a page.
    fn want(&self, url: &str, body: Option<&str>) -> Result<PageWant, String> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(format!("'{url}' is no URL with http:// or https://"));
        }
        let seconds = |name, otherwise: u32| {
            Duration::from_secs(self.number(name).unwrap_or(otherwise).clamp(1, WITHIN).into())
        };
        let within = seconds("httptimeout", WITHIN);
        let follows = self.is("followlocation", false);
        let redirects = self.number("maxredirs").unwrap_or(REDIRECTS_MAX).min(REDIRECTS_MAX);
        Ok(PageWant {
            url: url.to_owned(),
            headers: self.headers(body.is_some()),
            body: body.map(str::to_owned),
            redirects: if follows { redirects } else { 0 },
            resolve_within: seconds("dnstimeout", WITHIN).min(within),
            connect_within: seconds("conntimeout", WITHIN).min(within),
            within,
            verify: self.is("ssl_verifypeer", true),
            proxy: self.proxy(),
        })
    }
    fn headers(&self, sends: bool) -> Vec<(String, String)> {
        let mut headers = vec![("User-Agent".to_owned(), self.get("useragent").unwrap_or(AGENT).to_owned())];
        let mut put = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        for (option, name) in [("cookie", "Cookie"), ("referer", "Referer")] {
            if let Some(value) = self.get(option).filter(|value| !value.is_empty()) {
                put(name, value);
            }
        }
        if let Some(who) = self.get("userpwd").filter(|who| !who.is_empty()) {
            put("Authorization", &format!("Basic {}", dialplan::functions::base64_of(who)));
        }
        let mut own = self.0.iter().filter(|(name, _)| *name == "httpheader").peekable();
        if sends && own.peek().is_none() {
            put("Content-Type", "application/x-www-form-urlencoded");
        }
        for (name, value) in own.filter_map(|(_, line)| line.split_once(':')) {
            put(name.trim(), value.trim());
        }
        headers
    }
    fn proxy(&self) -> String {
        let Some(host) = self.get("proxy").filter(|host| !host.is_empty()) else { return String::new() };
        let host = host.split_once("://").map_or(host, |(_, host)| host);
        let scheme = self.get("proxytype").unwrap_or("http").to_ascii_lowercase();
        let who = self.get("proxyuserpwd").filter(|who| !who.is_empty());
        let who = who.map_or_else(String::new, |who| format!("{who}@"));
        let port = self.number("proxyport").map_or_else(String::new, |port| format!(":{port}"));
        format!("{scheme}://{who}{host}{port}")
    }
    /// What a page gives.
    fn text(&self, status: u16, head: &str, body: &[u8]) -> Result<String, String> {
        let failures = self.get("failurecodes").unwrap_or_default();
        if failures.split(',').any(|code| code.trim().parse() == Ok(status)) {
            return Err(format!("the answer was {status}"));
        }
        let mut text = if self.is("header", false) { head.to_owned() } else { String::new() };
        text.push_str(&String::from_utf8_lossy(body));
        text.truncate(text.trim_end().len());
        Ok(text)
    }
}

fn known(name: &str) -> Result<(&'static str, Kind), Fault> {
    let name = name.trim();
    let found = OPTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| unknown(name))
}

impl Call {
    /// Fetches the pages of the calls of `CURL()` in `text`, and keeps what came for the step that is about to be taken.
    pub(crate) async fn fetch_pages(&self, text: &str, after_end: bool) -> Result<(), Stop> {
        self.run.pages.borrow_mut().clear();
        // An inner call stands after the one whose argument it is.
        let calls: Vec<&str> = dialplan::functions::calls(text, "CURL").take(CALLS_MAX).collect();
        for args in calls.into_iter().rev() {
            let line = dialplan::template::expand_written(&mut Scope::new(self), args);
            let came = match self.page_want(&line) {
                Ok(want) => self.page(want, after_end).await?,
                Err(why) => Err(why),
            };
            if let Err(why) = &came {
                self.log(Level::Warning, &format!("CURL: {why}"));
            }
            self.run.pages.borrow_mut().push((line.text, came));
        }
        Ok(())
    }
    fn page_want(&self, line: &Written) -> Result<PageWant, String> {
        let there = self.chan.core(|core| core.settings.has_module("func_curl"));
        if !there {
            return Err("modules.conf switches func_curl off".to_owned());
        }
        let (url, body) = divide(line);
        self.run.web.borrow().want(url.trim(), body)
    }
    async fn page(&self, want: PageWant, after_end: bool) -> Result<Result<String, String>, Stop> {
        let within = want.within;
        let came = self.ask_link(LinkWant::Page(Box::new(want)), within, after_end).await?;
        Ok(came.and_then(|news| match news {
            LinkNews::Page { status, head, body } => self.run.web.borrow().text(status, &head, &body),
            _ => Err("nothing came in time".to_owned()),
        }))
    }
}

/// URL and what is sent: the first comma that was written parts them, and none in a value.
fn divide(line: &Written) -> (&str, Option<&str>) {
    let in_value = |at: usize| line.values.iter().flatten().any(|value| value.contains(&at));
    match line.text.char_indices().find(|&(at, symbol)| symbol == ',' && !in_value(at)) {
        Some((at, _)) => (line.text.get(..at).unwrap_or_default(), line.text.get(at + 1..)),
        None => (&line.text, None),
    }
}

/// `CURL(url[,post-data])`.
pub(super) fn read(call: &Call, args: &str, out: &mut String) -> Read {
    let pages = call.run.pages.borrow();
    let found = pages.iter().find(|(line, _)| line == args);
    let (_, came) =
        found.ok_or_else(|| Fault::new("asks only where a step of the dialplan spells it out"))?;
    // Why nothing came has been said.
    out.push_str(came.as_deref().unwrap_or_default());
    Ok(())
}

/// `CURLOPT(key)`.
pub(super) fn read_option(call: &Call, key: &str, out: &mut String) -> Read {
    let (name, _) = known(key)?;
    let options = call.run.web.borrow();
    let values: Vec<&str> =
        options.0.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_str()).collect();
    out.push_str(&values.join("\n"));
    Ok(())
}

/// `Set(CURLOPT(key)=value)`, for the rest of the call.
pub(super) fn write_option(call: &Call, key: &str, value: &str) -> Read {
    if let Some(why) = call.run.web.borrow_mut().set(key, value)? {
        call.log(Level::Warning, &format!("CURLOPT({}) has no effect: {why}", key.trim()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(options: &[(&str, &str)]) -> Options {
        let mut told = Options::default();
        for (name, value) in options {
            told.set(name, value).unwrap();
        }
        told
    }

    #[test]
    fn each_option_is_a_part_of_the_request() {
        let standard = Options::default().want("http://h/", None).unwrap();
        let agent = ("User-Agent", AGENT);
        let headers = |list: &[(&str, &str)]| {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        let of = |seconds| Duration::from_secs(seconds);
        for (name, options, expected) in [
            ("nothing", &[][..], standard.clone()),
            (
                "a cookie",
                &[("cookie", "a=1")],
                PageWant { headers: headers(&[agent, ("Cookie", "a=1")]), ..standard.clone() },
            ),
            (
                "time to connect",
                &[("conntimeout", "7")],
                PageWant { connect_within: of(7), ..standard.clone() },
            ),
            (
                "time for the name",
                &[("dnstimeout", "6")],
                PageWant { resolve_within: of(6), ..standard.clone() },
            ),
            (
                "time for all",
                &[("httptimeout", "5")],
                PageWant { within: of(5), connect_within: of(5), resolve_within: of(5), ..standard.clone() },
            ),
            ("more time than there is", &[("httptimeout", "9999")], standard.clone()),
            ("redirects", &[("followlocation", "yes")], PageWant { redirects: 20, ..standard.clone() }),
            (
                "so many redirects",
                &[("followlocation", "1"), ("maxredirs", "3")],
                PageWant { redirects: 3, ..standard.clone() },
            ),
            (
                "as many as it likes",
                &[("followlocation", "on"), ("maxredirs", "-1")],
                PageWant { redirects: 20, ..standard.clone() },
            ),
            ("a number, but it does not follow", &[("maxredirs", "3")], standard.clone()),
            (
                "lines of the head",
                &[("httpheader", "X-A: b"), ("HTTPHEADER", "X-C: d:e")],
                PageWant { headers: headers(&[agent, ("X-A", "b"), ("X-C", "d:e")]), ..standard.clone() },
            ),
            (
                "who asks",
                &[("useragent", "x")],
                PageWant { headers: headers(&[("User-Agent", "x")]), ..standard.clone() },
            ),
            (
                "whence",
                &[("referer", "r")],
                PageWant { headers: headers(&[agent, ("Referer", "r")]), ..standard.clone() },
            ),
            (
                "password",
                &[("userpwd", "me:secret"), ("httpauth", "basic")],
                PageWant {
                    headers: headers(&[agent, ("Authorization", "Basic bWU6c2VjcmV0")]),
                    ..standard.clone()
                },
            ),
            ("whoever it is", &[("ssl_verifypeer", "0")], PageWant { verify: false, ..standard.clone() }),
            ("a proxy", &[("proxy", "p")], PageWant { proxy: "http://p".to_owned(), ..standard.clone() }),
            (
                "a proxy of another kind",
                &[
                    ("proxy", "http://p"),
                    ("proxytype", "SOCKS5"),
                    ("proxyport", "1080"),
                    ("proxyuserpwd", "a:b"),
                ],
                PageWant { proxy: "socks5://a:b@p:1080".to_owned(), ..standard.clone() },
            ),
            ("of the answer", &[("header", "yes"), ("failurecodes", "404")], standard.clone()),
        ] {
            assert_eq!(told(options).want("http://h/", None), Ok(expected), "{name}");
        }
        let sends = |options: &[(&str, &str)]| told(options).want("http://h/", Some("a=1")).unwrap().headers;
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        assert_eq!(sends(&[]), headers(&[agent, form]));
        assert_eq!(sends(&[("httpheader", "X-A: b")]), headers(&[agent, ("X-A", "b")]));
    }

    #[test]
    fn what_is_no_option_no_value_and_no_url_is_refused_and_what_does_nothing_says_so() {
        for (name, value, expected) in [
            ("colour", "red", Err("no item 'colour'")),
            ("followlocation", "perhaps", Err("is yes or no")),
            ("conntimeout", "soon", Err("is a number")),
            ("conntimeout", "-2", Err("is a number")),
            ("proxytype", "carrier pigeon", Err("is http or socks4 or socks5")),
            ("httpauth", "digest", Err("is basic")),
            ("httpheader", "nothing", Err("is Name: value")),
            ("cookie", "a\r\nX-Evil: 1", Err("no control characters")),
            ("ftptext", "1", Ok("HTTP alone")),
            ("hashcompat", "yes", Ok("HASH()")),
        ] {
            let result = Options::default().set(name, value);
            match (&result, expected) {
                (Ok(Some(why)), Ok(part)) => assert!(why.contains(part), "{name}: {why}"),
                (Err(Fault(why)), Err(part)) => assert!(why.contains(part), "{name}: {why}"),
                _ => panic!("{name}={value}: {result:?}"),
            }
        }
        for url in ["", "ftp://h/", "file:///etc/passwd", "h/x", "gopher://h"] {
            assert!(Options::default().want(url, None).is_err(), "{url}");
        }
    }

    #[test]
    fn a_page_gives_its_text_with_its_head_or_nothing_as_it_was_asked() {
        for (options, status, expected) in [
            (&[][..], 200, Ok("one\ntwo")),
            (&[], 404, Ok("one\ntwo")),
            (&[("failurecodes", "404,500")], 404, Err("the answer was 404")),
            (&[("failurecodes", "404,500")], 200, Ok("one\ntwo")),
            (&[("header", "yes")], 200, Ok("HTTP/1.1 200 OK\r\n\r\none\ntwo")),
        ] {
            let text = told(options).text(status, "HTTP/1.1 200 OK\r\n\r\n", b"one\ntwo \n");
            assert_eq!(text.as_deref().map_err(String::as_str), expected, "{options:?} {status}");
        }
    }

    #[test]
    fn no_comma_of_a_value_begins_what_is_sent() {
        let written = |text: &str, value: Option<std::ops::Range<usize>>| Written {
            text: text.to_owned(),
            values: Some(value.into_iter().collect()),
        };
        assert_eq!(divide(&written("http://h/?n=a,b", None)), ("http://h/?n=a", Some("b")));
        assert_eq!(divide(&written("http://h/?n=a,b", Some(12..15))), ("http://h/?n=a,b", None));
        assert_eq!(divide(&written("http://h/?n=a,b,c,d", Some(12..15))), ("http://h/?n=a,b", Some("c,d")));
    }
}
