//! SIP, the manager and metrics under TLS, with OpenSSL and baresip at the other end (RFC 3261 §26, RFC 5922, RFC 8446).

use e2e::{Authority, Baresip, Identity, Secure, Server, Site, TlsClient, free_ports, installed, wait};
use std::net::SocketAddr;

/// A site that also listens under TLS, with more lines for that transport.
fn site(name: &str, own: &Identity, lines: &str) -> Site {
    let site = Site::new(name);
    let at = tls(&site);
    site.phone("alice").dialplan("[test]\nexten => 600,1,Answer()\n same => n,Echo()\n").add(
        "pjsip.conf",
        &format!(
            "[tls]\ntype=transport\nprotocol=tls\nbind={at}\ncert_file={}\npriv_key_file={}\n{lines}\n",
            own.certificate.display(),
            own.key.display()
        ),
    )
}

fn tls(site: &Site) -> SocketAddr {
    SocketAddr::new(site.sip.ip(), 5061)
}

fn until_logged(server: &Server, words: &str) {
    server.until_logged(&[words]);
}

#[test]
fn a_phone_registers_over_tls_and_stays_while_the_certificate_changes() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("reload");
    let own = authority.sign("DNS:pbx.example.com");
    let server = Server::start(site("tls-reload", &own, ""));
    let at = tls(&server.site);
    let list = authority.list().display().to_string();
    let verified = ["-CAfile", &list, "-verify_return_error", "-verify_hostname", "pbx.example.com"];
    let mut phone = Secure::connect(at, &verified);
    phone.must_register("alice");
    assert!(server.cli("pjsip show contacts").contains("transport=tls"));
    // RFC 5626 §3.5.1.
    phone.send("\r\n\r\n");
    assert_eq!(phone.until("\r\n"), "\r\n");
    let before = Secure::serial(at);
    let next = authority.sign("DNS:pbx.example.com");
    std::fs::copy(&next.certificate, &own.certificate).expect("a new certificate");
    std::fs::copy(&next.key, &own.key).expect("its key");
    assert_eq!(Secure::serial(at), before, "nobody has said so yet");
    server.cli("pjsip reload");
    wait::until_true("the new certificate", || Secure::serial(at) != before);
    assert_eq!(phone.ask("OPTIONS", "alice", "").status(), Some(401), "the old connection stays");
    for words in [&["-tls1_2"][..], &["-tls1_3"]] {
        Secure::connect(at, &[&verified[..], words].concat()).must_register("alice");
    }
    // A certificate that cannot be used changes nothing.
    std::fs::write(&own.certificate, "nonsense").expect("the file is written");
    let refused = server.run("pjsip reload");
    let said =
        String::from_utf8_lossy(&refused.stdout).into_owned() + &String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("holds no certificate in PEM"), "{said}");
    Secure::connect(at, &verified).must_register("alice");
}

#[test]
fn clients_without_a_good_certificate_or_a_good_version_are_refused_and_the_log_says_why() {
    if !installed(&["openssl"]) {
        return;
    }
    let (authority, stranger) = (Authority::new("mutual"), Authority::new("stranger"));
    let own = authority.sign("DNS:pbx.example.com");
    let lines =
        format!("ca_list_file={}\nverify_client=yes\nrequire_client_cert=yes\n", authority.list().display());
    let server = Server::start(site("tls-mutual", &own, &lines));
    let at = tls(&server.site);
    let with = |identity: &Identity| {
        let (certificate, key) =
            (identity.certificate.display().to_string(), identity.key.display().to_string());
        // OpenSSL itself would not present a weak key.
        let words = ["-cert", &certificate, "-key", &key, "-cipher", "DEFAULT:@SECLEVEL=0"];
        Secure::connect(at, &words)
    };
    with(&authority.sign("DNS:alice.example.com")).must_register("alice");
    with(&authority.sign_rsa("DNS:alice.example.com", 2048)).must_register("alice");
    assert!(Secure::connect(at, &[]).is_refused());
    until_logged(&server, "the client presented no certificate");
    assert!(with(&stranger.sign("DNS:alice.example.com")).is_refused());
    until_logged(&server, "no authority of the list has signed it");
    assert!(with(&authority.sign_rsa("DNS:alice.example.com", 1024)).is_refused(), "a weak key");
    for (version, name) in [("-tls1", "TLS 1.0"), ("-tls1_1", "TLS 1.1")] {
        assert!(Secure::connect(at, &[version, "-cipher", "DEFAULT:@SECLEVEL=0"]).is_refused());
        until_logged(&server, &format!("the peer speaks {name} only"));
    }
    let mut plain = std::net::TcpStream::connect(at).expect("the port is open");
    std::io::Write::write_all(&mut plain, b"OPTIONS sip:a SIP/2.0\r\n\r\n").expect("it is written");
    until_logged(&server, "what came is not TLS");
}

#[test]
fn rfc6066_3_several_names_on_one_port_each_have_their_certificate() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("names");
    let [one, two, three] =
        ["one", "two", "three"].map(|name| authority.sign(&format!("DNS:{name}.example")));
    let mut site = site("tls-names", &one, "");
    let at = tls(&site);
    let second = |name: &str, own: &Identity| {
        let (certificate, key) = (own.certificate.display(), own.key.display());
        format!(
            "[{name}]\ntype=transport\nprotocol=tls\nbind={at}\ncert_file={certificate}\npriv_key_file={key}\n"
        )
    };
    site.append("pjsip.conf", &second("a-second", &two));
    let server = Server::start(site);
    let list = authority.list().display().to_string();
    let connect = |asked: &str, proved: &str| {
        let verified = ["-CAfile", &list, "-verify_return_error", "-verify_hostname", proved];
        let name: &[&str] = if asked.is_empty() { &["-noservername"] } else { &["-servername", asked] };
        Secure::connect(at, &[&verified[..], name].concat())
    };
    for (asked, proved) in [
        ("one.example", "one.example"),
        ("two.example", "two.example"),
        ("nobody.example", "one.example"),
        ("", "one.example"),
    ] {
        connect(asked, proved).must_register("alice");
    }
    assert!(connect("two.example", "one.example").is_refused(), "the certificate is the other one's");
    // A reload brings a third one to the port that is open.
    let pjsip = server.site.place.read("etc/pjsip.conf") + &second("third", &three);
    server.site.place.write("etc/pjsip.conf", pjsip);
    server.cli("pjsip reload");
    wait::until_true("the third name", || server.cli("pjsip show transports").contains("third"));
    connect("three.example", "three.example").must_register("alice");
    connect("two.example", "two.example").must_register("alice");
}

#[test]
fn the_client_for_many_connections_resumes_its_session() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("client");
    let own = authority.sign("DNS:pbx.example.com");
    let server = Server::start(site("tls-client", &own, ""));
    let at = tls(&server.site);
    let client = TlsClient::new(&authority, "pbx.example.com");
    assert!(!client.resumes(at), "there is nothing to go on with");
    for _ in 0..3 {
        client.pass(at, b"\r\n\r\n");
        assert!(client.resumes(at));
    }
}

#[test]
fn a_port_goes_from_tls_to_tcp_and_back_by_reloads() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("turn");
    let own = authority.sign("DNS:pbx.example.com");
    let server = Server::start(site("tls-turn", &own, ""));
    let at = tls(&server.site);
    let secure = server.site.place.read("etc/pjsip.conf");
    let protocol = || server.cli("pjsip show transport tls");
    for (protocol_now, text) in [("tcp", secure.replace("protocol=tls", "protocol=tcp")), ("tls", secure)] {
        server.site.place.write("etc/pjsip.conf", text);
        server.cli("pjsip reload");
        wait::until_true(protocol_now, || protocol().contains(&format!(" {protocol_now} ")));
    }
    Secure::connect(at, &[]).must_register("alice");
}

#[test]
fn a_trunk_has_to_prove_the_name_that_the_configuration_calls_it_by() {
    if !installed(&["openssl"]) {
        return;
    }
    let (authority, stranger) = (Authority::new("trunk"), Authority::new("trunk-stranger"));
    let own = authority.sign("DNS:pbx.example.com");
    let home = std::net::Ipv4Addr::LOCALHOST.into();
    let mut site =
        site("tls-trunk", &own, &format!("ca_list_file={}\nverify_server=yes\n", authority.list().display()));
    let mut trunk = |name: &str, identity: &Identity| {
        let at = SocketAddr::new(home, free_ports(home, 1));
        site.append(
            "pjsip.conf",
            &format!(
                "[{name}]\ntype=endpoint\ncontext=test\nallow=ulaw\naors={name}\n[{name}]\ntype=aor\n\
                 contact=sip:localhost:{}\\;transport=tls\nqualify_frequency=1\n",
                at.port()
            ),
        );
        Secure::listen(at, identity)
    };
    let mut good = trunk("good", &authority.sign("DNS:localhost"));
    let mut wrong = trunk("wrong", &authority.sign("DNS:other.example.com"));
    let mut unknown = trunk("unknown", &stranger.sign("DNS:localhost"));
    let server = Server::start(site);
    let asked = good.message();
    assert_eq!(asked.method(), "OPTIONS");
    assert!(asked.must("Via").starts_with("SIP/2.0/TLS "), "{}", asked.text());
    until_logged(&server, "it is for another name");
    until_logged(&server, "no authority of the list has signed it");
    for other in [&mut wrong, &mut unknown] {
        let complaint =
            wait::for_some(wait::SOON, || Some(other.complaint()).filter(|said| !said.is_empty()));
        assert!(complaint.is_some_and(|said| said.contains("alert")), "it hears of it");
    }
}

#[test]
fn rfc8446_2_2_a_phone_that_comes_back_resumes_its_session_until_the_certificate_changes() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("resume");
    let own = authority.sign("DNS:pbx.example.com");
    let server = Server::start(site("tls-resume", &own, ""));
    let at = tls(&server.site);
    let file = |version: &str| server.site.place.join(format!("session{version}")).display().to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let session = file(version);
        // A ticket of TLS 1.3 comes after the handshake: what is answered comes after that.
        Secure::connect(at, &[version, "-sess_out", &session]).must_register("alice");
        assert!(Secure::resumes(at, &session, &[version]), "{version}");
    }
    let next = authority.sign("DNS:pbx.example.com");
    std::fs::copy(&next.certificate, &own.certificate).expect("a new certificate");
    std::fs::copy(&next.key, &own.key).expect("its key");
    let before = Secure::serial(at);
    server.cli("pjsip reload");
    wait::until_true("the new certificate", || Secure::serial(at) != before);
    for version in ["-tls1_2", "-tls1_3"] {
        assert!(!Secure::resumes(at, &file(version), &[version]), "{version}");
    }
}

#[test]
fn the_manager_and_metrics_are_served_under_tls() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("services");
    let own = authority.sign("DNS:pbx.example.com");
    let files = format!(
        "tlsenable=yes\ntlscertfile={}\ntlsprivatekey={}\n",
        own.certificate.display(),
        own.key.display()
    );
    let site = site("tls-services", &own, "");
    let ip = site.sip.ip();
    let site = site
        .add("manager.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\n{files}[wallboard]\nsecret=Gruen-7-Fenster\nread=all\nwrite=all\n"))
        .add("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\n{files}"))
        .add("prometheus.conf", "[general]\nenabled=yes\n");
    let _server = Server::start(site);
    let list = authority.list().display().to_string();
    let verified = ["-CAfile", &list, "-verify_return_error", "-verify_hostname", "pbx.example.com"];
    let mut manager = Secure::connect(SocketAddr::new(ip, 5039), &verified);
    manager.send("Action: Login\r\nUsername: wallboard\r\nSecret: Gruen-7-Fenster\r\n\r\n");
    manager.until("Response: Success");
    let mut scraper = Secure::connect(SocketAddr::new(ip, 8089), &verified);
    scraper.send("GET /metrics HTTP/1.1\r\nHost: pbx.example.com\r\n\r\n");
    scraper.until("HTTP/1.1 200 OK");
    scraper.until("asterisk_calls_count");
}

#[test]
fn two_phones_over_tls_with_srtp_hear_each_other() {
    if !installed(&["openssl", "baresip"]) {
        return;
    }
    let authority = Authority::new("sealed");
    let own = authority.sign("DNS:pbx.example.com");
    let site = site("tls-sealed", &own, "")
        .phone_with("dora", "media_encryption=sdes\n")
        .phone_with("bob", "media_encryption=sdes\n")
        .dialplan(
            "[test]\nexten => bob,1,Set(DB(secure/dora)=${CHANNEL(rtp,secure,audio)})\n \
             same => n,Set(CHANNEL(secure_bridge_signaling)=1)\n same => n,Set(CHANNEL(secure_bridge_media)=1)\n \
             same => n,Dial(PJSIP/bob,20)\n",
        );
    let server = Server::start(site);
    let at = tls(&server.site);
    let mut dora = Baresip::sealed_over_tls(at, "dora", "pcmu", 1100.0);
    let bob = Baresip::sealed_over_tls(at, "bob", "pcmu", 750.0);
    let contacts = server.cli("pjsip show contacts");
    assert_eq!(contacts.matches("transport=tls").count(), 2, "{contacts}");
    dora.dial(&format!("sip:bob@{at};transport=tls"));
    dora.until_heard(750.0);
    bob.until_heard(1100.0);
    assert_eq!(server.database("secure", "dora"), "1");
    dora.hang_up();
    server.until_idle();
}

#[test]
fn baresip_calls_over_tls() {
    if !installed(&["openssl", "baresip"]) {
        return;
    }
    let authority = Authority::new("baresip");
    let own = authority.sign("DNS:pbx.example.com");
    let server = Server::start(site("tls-baresip", &own, ""));
    let at = tls(&server.site);
    let mut alice = Baresip::over_tls(at, "alice", "pcmu", 1100.0);
    assert!(server.cli("pjsip show contacts").contains("transport=tls"));
    alice.dial(&format!("sip:600@{at};transport=tls"));
    alice.until_heard(1100.0);
    alice.hang_up();
    server.until_idle();
}
