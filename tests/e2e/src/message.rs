//! A SIP message as text: enough for a phone that talks to one server.

use std::net::{IpAddr, SocketAddr};

use crate::digest::parameter;

/// A request or response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Request or status line.
    pub start: String,
    /// Names and values as they came.
    pub headers: Vec<(String, String)>,
    /// What follows the empty line.
    pub body: String,
}

impl Message {
    /// Splits a message; what is no message gives one with odd content, which no test expects.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect();
        Self { start, headers, body: body.to_owned() }
    }

    /// Status of a response.
    pub fn status(&self) -> Option<u16> {
        self.start.strip_prefix("SIP/2.0 ")?.get(..3)?.parse().ok()
    }

    /// Method of a request; nothing of a response.
    pub fn method(&self) -> &str {
        if self.status().is_some() { "" } else { self.start.split(' ').next().unwrap_or_default() }
    }

    /// First header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All headers of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// First header of this name; a message without it fails the test.
    pub fn must(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("no {name} in:\n{}", self.text()))
    }

    /// Branch of the topmost Via.
    pub fn branch(&self) -> &str {
        let via = self.header("Via").unwrap_or_default();
        via.split(';').find_map(|part| part.trim().strip_prefix("branch=")).unwrap_or_default()
    }

    /// The challenge a phone that knows MD5 answers.
    pub(crate) fn challenge(&self) -> Option<&str> {
        let md5 =
            |value: &&str| parameter(value, "algorithm").is_none_or(|name| name.eq_ignore_ascii_case("MD5"));
        self.all("WWW-Authenticate").chain(self.all("Proxy-Authenticate")).find(md5)
    }

    /// Address inside the angle brackets of Contact.
    pub fn contact(&self) -> Option<&str> {
        let value = self.header("Contact")?;
        let inside = value.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(uri, _)| uri);
        inside.or_else(|| value.split(';').next())
    }

    /// Value of the first SDP line `attribute`, for example `c=IN IP4 ` or `a=rtpmap:0 `.
    pub fn sdp(&self, attribute: &str) -> Option<&str> {
        self.body.lines().find_map(|line| line.strip_prefix(attribute)).map(str::trim)
    }

    /// Where a description wants video; `None` when it has none, or declines it.
    pub fn video(&self) -> Option<SocketAddr> {
        let video = self.sdp("m=video ")?;
        let port: u16 = video.split(' ').next().and_then(|port| port.parse().ok()).expect("a port");
        let ip: IpAddr = self.sdp("c=IN IP4 ").and_then(|ip| ip.parse().ok()).expect("an address");
        (port != 0).then_some((ip, port).into())
    }

    /// The whole message again.
    pub fn text(&self) -> String {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{headers}\r\n{}", self.start, self.body)
    }
}
