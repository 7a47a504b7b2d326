//! `register =>` lines.

use conf::Variable;

use super::peer::EXPIRY_SECONDS;
use super::{Import, Made, words};

/// Seconds between tries of chan_sip when nobody says.
const RETRY_SECONDS: &str = "20";
/// `registerattempts=0` never gives up; the largest number there is takes a lifetime.
const FOREVER: &str = "4294967295";

/// `[peer?][transport://]user[@domain][:secret[:authuser]]@host[:port][/extension][~expiry]`
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    peer: Option<&'a str>,
    transport: &'a str,
    user: &'a str,
    domain: Option<&'a str>,
    secret: Option<&'a str>,
    auth_user: Option<&'a str>,
    /// With its port.
    host: &'a str,
    extension: Option<&'a str>,
    expiry: Option<&'a str>,
}

/// Takes a line apart; `None` when it has no user or no host.
fn parse(text: &str) -> Option<Line<'_>> {
    let is_name = |text: &str| !text.is_empty() && !text.contains(['@', ':', '/']);
    let (peer, rest) = match text.split_once('?') {
        Some((peer, rest)) if is_name(peer) => (Some(peer), rest),
        _ => (None, text),
    };
    let (transport, rest) = match rest.split_once("://") {
        Some((transport, rest)) if is_name(transport) => (transport, rest),
        _ => ("udp", rest),
    };
    // Secrets may hold an @; hosts never do.
    let (who, place) = rest.rsplit_once('@')?;
    let (place, expiry) =
        place.split_once('~').map_or((place, None), |(place, expiry)| (place, Some(expiry)));
    let (host, extension) =
        place.split_once('/').map_or((place, None), |(host, number)| (host, Some(number)));
    let mut parts = who.splitn(3, ':');
    let mut user = parts.next().unwrap_or_default();
    let (mut secret, mut auth_user) = (parts.next(), parts.next());
    // A domain may have a port; then secret and name follow, empty or not.
    if let (true, Some((next, last))) = (user.contains('@'), auth_user.and_then(|rest| rest.split_once(':')))
        && let Some(port) = secret.filter(|port| port.parse::<u16>().is_ok())
    {
        user = who.get(..user.len() + 1 + port.len()).unwrap_or(user);
        (secret, auth_user) = (Some(next), Some(last));
    }
    let (user, domain) = user.split_once('@').map_or((user, None), |(user, domain)| (user, Some(domain)));
    let said = |text: Option<&'_ str>| text.is_some_and(|text| !text.is_empty());
    (!user.is_empty() && !host.is_empty()).then_some(Line {
        peer,
        transport,
        user,
        domain: domain.filter(|_| said(domain)),
        secret: secret.filter(|_| said(secret)),
        auth_user: auth_user.filter(|_| said(auth_user)),
        host,
        extension: extension.filter(|_| said(extension)),
        expiry: expiry.filter(|_| said(expiry)),
    })
}

impl Import<'_> {
    pub(super) fn make_registrations(&mut self) {
        let lines: Vec<&Variable> = self.general.iter().filter(|line| line.is("register")).copied().collect();
        let mut names: Vec<String> = Vec::new();
        for line in lines {
            let Some(parsed) = parse(&line.value) else {
                let message = "the register line has no user or no host; it is skipped";
                let remedy = "write register => user:secret@host/extension";
                self.findings.warning(&line.place, message, remedy);
                continue;
            };
            let base = format!("{}@{}", parsed.user, parsed.host);
            let same = names.iter().filter(|name| **name == base).count();
            let name = if same == 0 { base.clone() } else { format!("{base}-{}", same + 1) };
            names.push(base);
            self.make_registration(&name, &parsed, line);
        }
    }

    fn make_registration(&mut self, name: &str, parsed: &Line<'_>, line: &Variable) {
        let place = &line.place;
        let way = match parsed.transport.to_ascii_lowercase() {
            udp if udp == "udp" => String::new(),
            other => format!(";transport={other}"),
        };
        let mut made = Made::new("registration", name, place);
        let (server, domain) = self.named_server(parsed.host, &mut made).unwrap_or_else(|| {
            words::outbound_proxy(&self.defaults(), &mut made);
            (format!("sip:{}{way}", parsed.host), parsed.host.to_owned())
        });
        made.line("server_uri", &server, place);
        let domain = parsed.domain.unwrap_or(&domain);
        made.line("client_uri", &format!("sip:{}@{domain}{way}", parsed.user), place);
        made.line("contact_user", parsed.extension.unwrap_or("s"), place);
        self.pace(&mut made);
        if let Some(expiry) = parsed.expiry {
            made.line("expiration", expiry, place);
        }
        if let Some((_, transport)) =
            self.transports.iter().find(|(word, _)| word.eq_ignore_ascii_case(parsed.transport))
        {
            made.line("transport", transport, place);
        }
        if let Some(peer) = parsed.peer {
            made.line("line", "yes", place);
            made.line("endpoint", peer, place);
        }
        if let Some(secret) = parsed.secret {
            let mut auth = Made::new("auth", name, place);
            auth.line("auth_type", "userpass", place);
            auth.line("username", parsed.auth_user.unwrap_or(parsed.user), place);
            auth.line("password", secret, place);
            made.line("outbound_auth", name, place);
            self.keep("auth", name, auth, place);
        }
        self.keep("registration", name, made, place);
    }

    /// How long registrations last and how they are tried again.
    pub(super) fn pace(&self, made: &mut Made) {
        let here = self.sip.place();
        for (option, keys, default) in [
            ("expiration", &["defaultexpiry", "defaultexpirey"][..], EXPIRY_SECONDS),
            ("retry_interval", &["registertimeout"], RETRY_SECONDS),
            ("max_retries", &["registerattempts"], "0"),
        ] {
            let line = self.general(keys);
            let (value, place) = line.map_or((default, &here), |line| (&*line.value, &line.place));
            made.line(option, if option == "max_retries" && value == "0" { FOREVER } else { value }, place);
        }
        // chan_sip tries again whatever it was answered.
        made.line("forbidden_retry_interval", RETRY_SECONDS, &here);
        made.line("fatal_retry_interval", RETRY_SECONDS, &here);
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, parse};

    #[test]
    fn a_register_line_is_taken_apart() {
        let plain = Line {
            peer: None,
            transport: "udp",
            user: "1234",
            domain: None,
            secret: None,
            auth_user: None,
            host: "sip.example.com",
            extension: None,
            expiry: None,
        };
        let cases = [
            ("1234@sip.example.com", Some(Line { ..plain })),
            ("1234:secret@sip.example.com", Some(Line { secret: Some("secret"), ..plain })),
            (
                "tls://1234@example.com:p@ss:auth@sip.example.com:5061/600~300",
                Some(Line {
                    transport: "tls",
                    domain: Some("example.com"),
                    secret: Some("p@ss"),
                    auth_user: Some("auth"),
                    host: "sip.example.com:5061",
                    extension: Some("600"),
                    expiry: Some("300"),
                    ..plain
                }),
            ),
            (
                "trunk?1234:what?@sip.example.com/6001",
                Some(Line { peer: Some("trunk"), secret: Some("what?"), extension: Some("6001"), ..plain }),
            ),
            ("1234::auth@sip.example.com/", Some(Line { auth_user: Some("auth"), ..plain })),
            (
                "3456@mydomain:5082::@sip.example.com",
                Some(Line { user: "3456", domain: Some("mydomain:5082"), ..plain }),
            ),
            (
                "3456@mydomain:5082:secret:auth@sip.example.com",
                Some(Line {
                    user: "3456",
                    domain: Some("mydomain:5082"),
                    secret: Some("secret"),
                    auth_user: Some("auth"),
                    ..plain
                }),
            ),
            (
                "3456@mydomain:5082:auth@sip.example.com",
                Some(Line {
                    user: "3456",
                    domain: Some("mydomain"),
                    secret: Some("5082"),
                    auth_user: Some("auth"),
                    ..plain
                }),
            ),
            ("sip.example.com", None),
            ("@sip.example.com", None),
            ("1234@", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
