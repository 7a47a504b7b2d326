use super::*;
use std::time::Duration;

fn read(text: &str) -> (Iax, String) {
    let mut findings = Findings::new();
    let source = conf::Memory::new().with("iax.conf", text);
    let file = conf::load(&source, "iax.conf", conf::Options::default(), &mut findings).unwrap();
    let iax = Iax::read(&file, &mut findings);
    (iax, findings.to_string())
}

const SECRET: &str = "a-long-enough-one";

#[test]
fn without_a_file_nothing_is_served_and_without_a_line_it_is_as_the_field_has_it() {
    assert!(!Iax::default().enabled);
    let (iax, told) = read("[general]\n");
    assert!(iax.enabled && told.is_empty(), "{told}");
    assert_eq!(iax.general.addresses(), ["0.0.0.0:4569".parse().unwrap()]);
    let general = &iax.general;
    assert_eq!(
        (general.minregexpire, general.maxregexpire),
        (Duration::from_secs(60), Duration::from_secs(60))
    );
    assert_eq!((general.maxcallnumbers, general.maxcallnumbers_nonvalidated), (2048, 8192));
    assert_eq!((general.trunkfreq, general.trunkmtu), (Duration::from_millis(20), 1240));
    assert!(general.trunktimestamps && general.keyrotate);
    assert_eq!(general.auth, Methods { md5: true, rsa: false, plaintext: false });
    assert_eq!((general.transfer, general.requirecalltoken), (Transfer::Yes, RequireToken::Yes));
    assert_eq!(general.allow.formats.first(), Some(FormatId::ULAW));
}

#[test]
fn addresses_add_up_and_take_the_port_that_is_written_once() {
    for (text, expected) in [
        ("bindport=5036\n", &["0.0.0.0:5036"][..]),
        ("bindaddr=192.0.2.1\nbindaddr=192.0.2.2:4570\n", &["192.0.2.1:4569", "192.0.2.2:4570"]),
        ("bindaddr=[::]\nbindport=4000\nbindaddr=[::]:4000\n", &["[::]:4000"]),
    ] {
        let (iax, told) = read(&format!("[general]\n{text}"));
        let addresses: Vec<String> = iax.general.addresses().iter().map(ToString::to_string).collect();
        assert_eq!(addresses, expected, "{text}{told}");
    }
}

#[test]
fn a_section_is_what_its_lines_templates_and_general_say() {
    let text = format!(
        "[general]\nlanguage=de\ntransfer=mediaonly\ndisallow=all\nallow=ulaw,gsm\n\
         [site](!)\nqualify=yes\ntrunk=yes\nsecret={SECRET}\\;the-one-before-it\ncontext=in\ncontext=special\n\
         [a](site)\ntype=friend\nhost=dynamic\nrequirecalltoken=auto\n\
         [b](site)\ntype=peer\nhost=192.0.2.7\nport=5036\ntransfer=no\nlanguage=\nallow=alaw\nqualify=800\nusername=us\n\
         [c](site)\ntype=user\ndisallow=all\nallow=g722\npermit=192.0.2.0/24\n"
    );
    let (iax, told) = read(&text);
    assert_eq!(told, "");
    assert_eq!(iax.users.keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(iax.peers.keys().collect::<Vec<_>>(), ["a", "b"]);
    let (a, b, c) = (&iax.users["a"], &iax.peers["b"], &iax.users["c"]);
    assert!(Arc::ptr_eq(a, &iax.peers["a"]), "a friend is one object");
    assert_eq!(a.secret.expose(), format!("{SECRET};the-one-before-it"));
    assert_eq!(
        (&a.language[..], a.transfer, a.requirecalltoken),
        ("de", Transfer::MediaOnly, RequireToken::Auto)
    );
    assert_eq!((&b.language[..], b.transfer, b.requirecalltoken), ("", Transfer::No, RequireToken::Yes));
    assert_eq!((a.is_dynamic(), b.is_dynamic(), &b.host[..], b.port), (true, false, "192.0.2.7", 5036));
    assert_eq!((&a.username[..], &b.username[..]), ("a", "us"));
    assert_eq!(a.context, ["in", "special"]);
    assert_eq!((a.qualify, b.qualify), (Some(Duration::from_secs(2)), Some(Duration::from_millis(800))));
    let formats = |peer: &IaxPeer| peer.allow.formats.iter().map(FormatId::name).collect::<Vec<_>>();
    assert_eq!(formats(a), ["ulaw", "gsm"]);
    assert_eq!(formats(b), ["ulaw", "gsm", "alaw"], "its lines go on from those of [general]");
    assert_eq!(formats(c), ["g722"]);
}

#[test]
fn addresses_from_which_a_peer_is_talked_to_are_listened_on() {
    for (general, source, expected) in [
        ("bindaddr=192.0.2.1\n", "192.0.2.2", &["192.0.2.1:4569", "192.0.2.2:4569"][..]),
        ("bindaddr=192.0.2.1\n", "192.0.2.1:5036", &["192.0.2.1:4569", "192.0.2.1:5036"]),
        ("bindaddr=192.0.2.1\n", "192.0.2.1", &["192.0.2.1:4569"]),
        ("", "192.0.2.1", &["0.0.0.0:4569"]),
    ] {
        let (iax, told) =
            read(&format!("[general]\n{general}[x]\ntype=peer\nhost=192.0.2.7\nsourceaddress={source}\n"));
        let addresses: Vec<String> = iax.addresses().iter().map(ToString::to_string).collect();
        assert_eq!(addresses, expected, "{told}");
    }
}

#[test]
fn bandwidth_stands_for_formats_and_lines_go_on_from_it() {
    for (text, has, has_not) in [
        ("", &["ulaw", "g722", "gsm"][..], &[][..]),
        ("bandwidth=low\n", &["gsm", "ilbc30"], &["ulaw", "g726"]),
        ("bandwidth=medium\n", &["gsm", "g726", "adpcm"], &["ulaw", "g722"]),
        ("bandwidth=low\ndisallow=lpc10\nallow=alaw\n", &["gsm", "alaw"], &["lpc10", "ulaw"]),
        ("disallow=all\nallow=gsm\n", &["gsm"], &["ulaw"]),
    ] {
        let (iax, told) = read(&format!("[general]\n{text}"));
        let names: Vec<&str> = iax.general.allow.formats.iter().map(FormatId::name).collect();
        assert!(has.iter().all(|name| names.contains(name)), "{text}: {names:?} {told}");
        assert!(!has_not.iter().any(|name| names.contains(name)), "{text}: {names:?}");
    }
}

#[test]
fn register_lines_are_taken_apart() {
    for (line, expected) in [
        ("us@192.0.2.1", Some(("us", "", None, "192.0.2.1", 4569))),
        ("us:secret@iax.example.com", Some(("us", "secret", None, "iax.example.com", 4569))),
        ("us:p@ss:word@iax.example.com:5036", Some(("us", "p@ss:word", None, "iax.example.com", 5036))),
        ("us:[mykey]@192.0.2.1:4570", Some(("us", "", Some("mykey"), "192.0.2.1", 4570))),
        ("us:secret@[2001:db8::1]:4570", Some(("us", "secret", None, "2001:db8::1", 4570))),
        ("us:secret", None),
        ("@host", None),
        ("us:secret@", None),
        ("us:secret@host:0", None),
    ] {
        let (iax, told) = read(&format!("[general]\nregister => {line}\n"));
        let read = iax.registrations.first().map(|register| {
            let secret = register.secret.expose();
            (&register.username[..], secret, register.outkey.as_deref(), &register.host[..], register.port)
        });
        assert_eq!(read, expected, "{line}");
        assert_eq!(!told.is_empty(), expected.is_none(), "{line}: {told}");
    }
}

#[test]
fn rfc5456_6_1_an_extension_in_a_register_line_is_named_with_its_line_and_is_no_part_of_the_host() {
    for (line, host, port, behind) in [
        ("us:secret@host/100", "host", 4569, "'/100'"),
        ("us:secret@host:5036/100", "host", 5036, "'/100'"),
        ("us:secret@[2001:db8::1]:4570/100", "2001:db8::1", 4570, "'/100'"),
        ("us:secret@host/", "host", 4569, "'/'"),
        ("us:secret@host?peer", "host", 4569, "'?peer'"),
        ("us:[key]@host?peer/100", "host", 4569, "'?peer/100'"),
        ("us:/sec?ret@host", "host", 4569, ""),
    ] {
        let (iax, told) = read(&format!("[general]\nregister => {line}\n"));
        let register = &iax.registrations[0];
        assert_eq!((&register.host[..], register.port), (host, port), "{line}");
        assert_eq!(told.is_empty(), behind.is_empty(), "{line}: {told}");
        let names = told.contains(":2") && told.contains(behind) && told.contains("take ");
        assert!(behind.is_empty() || names, "{line}: {told}");
    }
}

#[test]
fn keys_that_are_named_and_not_there_are_told_once_with_the_file_that_they_should_be() {
    let (iax, _) = read(&format!(
        "[general]\nregister => us:[ours]@192.0.2.1\n\
         [x]\ntype=friend\nhost=dynamic\ncontext=in\nauth=md5,rsa\nsecret={SECRET}\ninkeys=site:other\noutkey=ours\n"
    ));
    let folder = std::env::temp_dir().join(format!("strowger-iax-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("site.pub"), "").unwrap();
    let mut findings = Findings::new();
    iax.check_keys(&folder, &mut findings);
    std::fs::remove_dir_all(&folder).ok();
    let told = findings.to_string();
    assert_eq!(findings.len(), 3, "{told}");
    assert!(
        told.contains("'other'") && told.contains("other.pub") && told.contains("astgenkey -n ours"),
        "{told}"
    );
}

#[test]
fn limits_of_networks_keep_their_order() {
    let (iax, told) = read(
        "[general]\n[callnumberlimits]\n10.1.0.0/255.255.0.0 = 4000\n10.0.0.0/8 = 24\nnonsense = 5\n192.0.2.1 = many\n",
    );
    let limits: Vec<String> = iax.limits.iter().map(|(net, limit)| format!("{net} {limit}")).collect();
    assert_eq!(limits, ["10.1.0.0/16 4000", "10.0.0.0/8 24"]);
    assert!(told.contains("`nonsense` is no network") && told.contains("`many` is no count"), "{told}");
}

#[test]
fn what_is_dangerous_or_cannot_work_is_told_with_a_remedy() {
    let sound = format!("type=friend\nhost=dynamic\ncontext=in\nsecret={SECRET}\n");
    for (name, lines, said, remedy) in [
        ("plaintext", format!("{sound}auth=md5,plaintext\n"), "in the clear", "auth=md5"),
        (
            "no secret",
            "type=friend\nhost=192.0.2.1\ncontext=in\n".to_owned(),
            "whoever says its name may call",
            "secret=",
        ),
        ("an open registrar", "type=peer\nhost=dynamic\n".to_owned(), "gets its calls", "secret="),
        (
            "a short secret",
            "type=peer\nhost=dynamic\nsecret=1234\n".to_owned(),
            "shorter than 12",
            "a longer one",
        ),
        ("no cipher", format!("{sound}auth=rsa\nencryption=yes\n"), "cannot be enciphered", "secret="),
        ("secret unused", format!("{sound}auth=rsa\n"), "it is not used", "auth=md5"),
        ("keys unused", format!("{sound}inkeys=site\n"), "they are not used", "auth=rsa"),
        ("no keys", format!("{sound}auth=md5,rsa\n"), "no inkeys to check them by", "inkeys="),
        ("no tokens", format!("{sound}requirecalltoken=no\n"), "needs no call token", "auto"),
        ("no host", format!("type=peer\nsecret={SECRET}\n"), "cannot be called", "host=dynamic"),
        ("no context", format!("type=user\nsecret={SECRET}\n"), "the context 'default'", "context="),
        ("no type", "host=dynamic\n".to_owned(), "has no type and is skipped", "type=friend"),
        ("a wrong type", "type=fiend\n".to_owned(), "neither peer, user nor friend", "type=friend"),
        ("a wrong rule", format!("{sound}deny=everyone\n"), "[x] is skipped", "192.0.2.0"),
        ("no format", format!("{sound}disallow=all\n"), "allows no format", "allow=ulaw"),
        ("video", format!("{sound}allow=ulaw,h265,h264\n"), "no word for h265: it is not", "allow h264"),
        ("unknown", format!("{sound}qualfy=yes\n"), "has no option `qualfy`", "`qualify`"),
        ("a wrong method", format!("{sound}auth=md4\n"), "which there is not", "auth=md5"),
        ("a source", format!("{sound}sourceaddress=192.0.2.9\n"), "has no effect", "bindaddr=192.0.2.9"),
    ] {
        let (iax, told) = read(&format!("[general]\n[x]\n{lines}"));
        assert!(told.contains(said) && told.contains(remedy), "{name}: {told}");
        let skipped = ["no type", "a wrong type", "a wrong rule"].contains(&name);
        assert_eq!(iax.users.is_empty() && iax.peers.is_empty(), skipped, "{name}");
    }
    for (name, lines, said) in [
        ("video for all", "allow=vp9,ulaw,av1\n", "no word for vp9, av1: it is not offered"),
        ("plaintext for all", "auth=plaintext\n", "auth of [general]"),
        ("no tokens for all", "calltokenoptional=0.0.0.0/0.0.0.0\n", "use up the call numbers"),
        ("turned expiry", "minregexpire=120\nmaxregexpire=90\n", "which holds for both"),
    ] {
        let (_, told) = read(&format!("[general]\n{lines}"));
        assert!(told.contains(said), "{name}: {told}");
    }
    let (_, told) = read(&format!("[general]\n[x]\n{sound}"));
    assert_eq!(told, "", "what is sound draws no remark");
    for (name, lines, expected) in [
        ("no line", "", vec![]),
        ("bandwidth", "bandwidth=high\n", vec![]),
        ("named", "allow=h264,ulaw,vp8\n", vec![FormatId::H264, FormatId::VP8]),
    ] {
        let (iax, told) = read(&format!("[general]\n{lines}[x]\n{sound}"));
        let video: Vec<FormatId> = iax.users["x"].allow.video.iter().collect();
        assert_eq!((video, &told[..]), (expected, ""), "{name}");
    }
}

#[test]
fn the_second_section_of_a_name_holds_and_a_user_may_be_named_as_a_peer() {
    let (iax, told) = read(&format!(
        "[general]\n[x]\ntype=user\nsecret={SECRET}\ncontext=in\n[x]\ntype=peer\nsecret={SECRET}\nhost=192.0.2.1\n\
         [x]\ntype=peer\nsecret={SECRET}\nhost=192.0.2.2\n"
    ));
    assert_eq!((iax.users.len(), &iax.peers["x"].host[..]), (1, "192.0.2.2"));
    assert!(told.contains("two sections for the peer 'x'"), "{told}");
}

#[test]
fn lists_of_acl_conf_hold_for_both_sides_of_a_friend() {
    let (mut iax, _) = read(&format!(
        "[general]\n[x]\ntype=friend\nhost=dynamic\ncontext=in\nsecret={SECRET}\nacl=missing\n[y]\ntype=peer\nhost=192.0.2.1\n\
         secret={SECRET}\npermit=192.0.2.0/24\ndeny=0.0.0.0/0\n"
    ));
    let mut findings = Findings::new();
    iax.resolve_acls(&NamedAcls::default(), &mut findings);
    assert_eq!(findings.len(), 1, "{findings}");
    let anyone: IpAddr = "192.0.2.9".parse().unwrap();
    assert!(Arc::ptr_eq(&iax.users["x"], &iax.peers["x"]));
    assert!(!iax.users["x"].access.allows(anyone), "a missing list lets nobody in");
    assert!(!iax.peers["y"].access.allows(anyone), "the last rule that fits decides");
}
