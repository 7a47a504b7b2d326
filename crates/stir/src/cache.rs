//! Certificates that were fetched, and who waits for which.
//!
//! Each URL is fetched once at a time, whoever wants it. What has failed is not kept: the next call asks again.

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Instant;

use crate::{Certificate, Verdict};

/// Certificates that are fetched at once: those of a few dozen carriers, each within seconds. Beyond it a call has none.
pub const FETCHES_MAX: usize = 64;
/// Calls that wait for certificates at once; one that finds no place has no certificate.
pub const WAITING_MAX: usize = 4096;

/// What there is at a URL.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// The certificate.
    Known(Rc<Certificate>),
    /// It is on its way; whoever asked is told.
    Awaited,
    /// It is on its way from now on: it has to be fetched.
    Wanted,
    /// Too many are fetched, or wait.
    Full,
}

/// See the module's page. `W` is whoever waits.
#[derive(Debug)]
pub struct Cache<W> {
    most: usize,
    known: BTreeMap<String, (Rc<Certificate>, Instant)>,
    awaited: BTreeMap<String, Vec<W>>,
    waiting: usize,
}

impl<W> Default for Cache<W> {
    fn default() -> Self {
        Self { most: 0, known: BTreeMap::new(), awaited: BTreeMap::new(), waiting: 0 }
    }
}

impl<W> Cache<W> {
    /// So many certificates are kept from here on.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
        while self.known.len() > most {
            self.drop_oldest();
        }
    }
    /// Certificates that are kept.
    pub fn len(&self) -> usize {
        self.known.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
    /// Looks a certificate up; who wants one that is not there waits.
    pub fn look_up(&mut self, url: &str, who: W, now: Instant) -> Found {
        match self.known.get(url) {
            Some((certificate, until)) if now < *until => return Found::Known(certificate.clone()),
            Some(_) => drop(self.known.remove(url)),
            None => {}
        }
        if self.waiting >= WAITING_MAX {
            return Found::Full;
        }
        let fetched = self.awaited.len();
        let found = match self.awaited.get_mut(url) {
            Some(waiting) => {
                waiting.push(who);
                Found::Awaited
            }
            None if fetched >= FETCHES_MAX => return Found::Full,
            None => {
                self.awaited.insert(url.to_owned(), vec![who]);
                Found::Wanted
            }
        };
        self.waiting += 1;
        found
    }
    /// What came of a fetch, to be kept for so long; those who wait for it, and what they get.
    pub fn came(
        &mut self,
        url: &str,
        bytes: Option<&[u8]>,
        keep: Duration,
        now: Instant,
    ) -> (Vec<W>, Result<Rc<Certificate>, Verdict>) {
        let waiting = self.awaited.remove(url).unwrap_or_default();
        self.waiting = self.waiting.saturating_sub(waiting.len());
        let read = bytes.ok_or(Verdict::Retrieval);
        let certificate =
            read.and_then(|bytes| Certificate::read(bytes).map(Rc::new).ok_or(Verdict::CertContents));
        if let Ok(certificate) = &certificate
            && !keep.is_zero()
            && self.most > 0
        {
            while self.known.len() >= self.most {
                self.drop_oldest();
            }
            self.known.insert(url.to_owned(), (certificate.clone(), now + keep));
        }
        (waiting, certificate)
    }
    /// Forgets everything that is known.
    pub fn clear(&mut self) {
        self.known.clear();
    }
    /// Drops the one that is good for the shortest.
    fn drop_oldest(&mut self) {
        let oldest = self.known.iter().min_by_key(|(_, (_, until))| *until).map(|(url, _)| url.clone());
        match oldest {
            Some(url) => drop(self.known.remove(&url)),
            None => self.known.clear(),
        }
    }
}

/// How long an answer of a web server may be kept (RFC 9111 §5.2), with `most` as the site's limit: its `max-age`, and
/// nothing at all where it forbids to keep it.
pub fn lifetime(head: &str, most: Duration) -> Duration {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let lines = lines.filter(|(name, _)| name.trim().eq_ignore_ascii_case("cache-control"));
    let mut keep = most;
    for directive in lines.flat_map(|(_, value)| value.split(',')) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Duration::ZERO,
            "max-age" => {
                let seconds = value.trim().trim_matches('"').parse::<u64>();
                keep = keep.min(seconds.map_or(Duration::ZERO, Duration::from_secs));
            }
            _ => {}
        }
    }
    keep
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9111_5_2_what_a_server_says_of_keeping_shortens_it() {
        let minute = Duration::from_secs(60);
        for (head, seconds) in [
            ("HTTP/1.1 200 OK\r\n\r\n", 60),
            ("HTTP/1.1 200 OK\r\nCache-Control: public, max-age=10\r\n\r\n", 10),
            ("cache-control: max-age=\"5\"\r\n", 5),
            ("cache-control: max-age=86400\r\n", 60),
            ("cache-control: max-age=x\r\n", 0),
            ("Cache-Control: private\r\nCache-Control: no-store\r\n", 0),
            ("Cache-Control: no-cache\r\n", 0),
        ] {
            assert_eq!(lifetime(head, minute), Duration::from_secs(seconds), "{head}");
        }
    }

    #[test]
    fn a_url_is_fetched_once_at_a_time_and_failures_are_asked_for_again() {
        let mut cache = Cache::default();
        cache.set_most(1);
        let now = Instant::ZERO;
        assert_eq!(cache.look_up("a", 1, now), Found::Wanted);
        assert_eq!(cache.look_up("a", 2, now), Found::Awaited);
        assert_eq!(cache.look_up("b", 3, now), Found::Wanted);
        let minute = Duration::from_secs(60);
        assert_eq!(cache.came("a", None, minute, now), (vec![1, 2], Err(Verdict::Retrieval)));
        assert_eq!(cache.came("b", Some(b"x"), minute, now), (vec![3], Err(Verdict::CertContents)));
        assert_eq!(cache.look_up("a", 4, now), Found::Wanted, "asked for again");
        for who in 0..FETCHES_MAX {
            cache.look_up(&who.to_string(), 0, now);
        }
        assert_eq!(cache.look_up("c", 5, now), Found::Full);
        assert!(cache.is_empty());
    }
}
