//! Where a certificate may lie: what a URL of `x5u` has to look like before anybody asks for it.

/// Longest URL, bytes: what web servers take.
pub const X5U_BYTES_MAX: usize = 2048;

/// Ports of HTTPS that carriers use (ATIS-1000074 §5.3.1).
const PORTS: [u16; 2] = [443, 8443];

/// Whether a URL may be asked for: HTTPS at a usual port unless the first is relaxed, without user, query and fragment unless
/// the second is.
pub fn is_acceptable(url: &str, any_port_and_scheme: bool, any_path: bool) -> bool {
    if url.len() > X5U_BYTES_MAX || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return false;
    }
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let is_secure = scheme.eq_ignore_ascii_case("https");
    if !(is_secure || any_port_and_scheme && scheme.eq_ignore_ascii_case("http")) {
        return false;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let port = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, rest)) if address.parse::<core::net::Ipv6Addr>().is_ok() => match rest {
            "" => Some(None),
            _ => rest.strip_prefix(':').map(Some),
        },
        Some(_) => None,
        None => match host.split_once(':') {
            Some((name, port)) => is_host(name).then_some(Some(port)),
            None => is_host(host).then_some(None),
        },
    };
    let Some(port) = port else { return false };
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port > 0 => Some(port),
        Some(_) => return false,
    };
    let is_usual = any_port_and_scheme || port.is_none_or(|port| PORTS.contains(&port));
    let is_plain = any_path || (user.is_none() && !path.contains(['?', '#']));
    is_usual && is_plain
}

fn is_host(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_asked_for_only_where_one_may_lie() {
        for (url, strict, port, path, both) in [
            ("https://certs.example.com/shaken.pem", true, true, true, true),
            ("https://certs.example.com", true, true, true, true),
            ("https://certs.example.com:443/a.pem", true, true, true, true),
            ("https://certs.example.com:8443/a.pem", true, true, true, true),
            ("https://[2001:db8::1]:8443/a.pem", true, true, true, true),
            ("https://certs.example.com:9443/a.pem", false, true, false, true),
            ("http://certs.example.com/a.pem", false, true, false, true),
            ("https://certs.example.com/a.pem?id=1", false, false, true, true),
            ("https://certs.example.com/a.pem#x", false, false, true, true),
            ("https://user@certs.example.com/a.pem", false, false, true, true),
            ("http://user:pw@certs.example.com:81/a.pem?x", false, false, false, true),
            ("ftp://certs.example.com/a.pem", false, false, false, false),
            ("file:///etc/passwd", false, false, false, false),
            ("https:///a.pem", false, false, false, false),
            ("https://certs.example.com:0/a.pem", false, false, false, false),
            ("https://certs.example.com:x/a.pem", false, false, false, false),
            ("https://certs.example.com:70000/a.pem", false, false, false, false),
            ("https://certs example.com/a.pem", false, false, false, false),
            ("https://certs.example.com/\r\nX-A: b", false, false, false, false),
            ("https://[::1", false, false, false, false),
            ("https://[localhost]/", false, false, false, false),
            ("certs.example.com/a.pem", false, false, false, false),
            ("", false, false, false, false),
        ] {
            let found = [(false, false), (true, false), (false, true), (true, true)]
                .map(|(any_port, any_path)| is_acceptable(url, any_port, any_path));
            assert_eq!(found, [strict, port, path, both], "{url}");
        }
        let long = format!("https://h/{}", "a".repeat(X5U_BYTES_MAX));
        assert!(!is_acceptable(&long, true, true));
    }
}
