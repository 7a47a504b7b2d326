//! What scanners that anybody can have learn of a server's users: nothing (sipvicious from PyPI).

use e2e::{Server, Site, address, free_ports, python_with};
use std::process::{Command, Stdio};

/// Extensions that are tried, and those among them that exist.
const TRIED: std::ops::RangeInclusive<u32> = 100..=139;
const PHONES: [u32; 4] = [100, 107, 118, 139];

/// What svwar prints of a scan by this method; nothing, and said, without it.
fn scan(server: &Server, method: &str, words: &[&str]) -> Option<String> {
    let program = python_with("sipvicious", "sipvicious")?.with_file_name("sipvicious_svwar");
    let own = address();
    let output = Command::new(program)
        .args(["-m", method, "-p", &server.site.sip.port().to_string()])
        .args(["-e", &format!("{}-{}", TRIED.start(), TRIED.end())])
        .args(["-b", &own.to_string(), "-x", &own.to_string(), "-P", &free_ports(own, 1).to_string()])
        .args(words)
        .arg(server.site.sip.ip().to_string())
        .stdin(Stdio::null())
        .output()
        .expect("svwar starts");
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn svwar_tells_no_two_extensions_apart() {
    let site = PHONES.iter().fold(Site::new("svwar"), |site, phone| site.phone(&phone.to_string()));
    let site = site.dialplan("[test]\nexten => _1XX,1,Answer()\n");
    let mut server = Server::start(site);
    for method in ["REGISTER", "INVITE", "OPTIONS"] {
        let Some(said) = scan(&server, method, &[]) else { return };
        assert!(said.contains("authentication request for an unknown extension"), "{method}: {said}");
        let said = scan(&server, method, &["--force"]).unwrap_or_default();
        assert!(said.contains("found nothing"), "{method}: {said}");
    }
    server.assert_healthy();
    server.until_idle();
}
