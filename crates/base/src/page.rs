//! What may be asked of a web server.

use core::time::Duration;

/// A page of a web server that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageWant {
    /// `http://…` or `https://…`.
    pub url: String,
    /// Lines of the request's head.
    pub headers: Vec<(String, String)>,
    /// What is sent by POST; without it the page is got by GET.
    pub body: Option<String>,
    /// How often it may lead elsewhere.
    pub redirects: u32,
    /// How long its host's name may be looked up.
    pub resolve_within: Duration,
    /// How long its host may take to accept.
    pub connect_within: Duration,
    /// How long all of it may take.
    pub within: Duration,
    /// Whether its host has to prove its name.
    pub verify: bool,
    /// The proxy, as a URL with user and password; empty: none.
    pub proxy: String,
}
