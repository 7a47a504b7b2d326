//! What `strowger check` says of folders, line by line: what the field takes is no error, and what has no effect is named in
//! the words of its file.

mod common;
use common::Scratch;

/// A folder, and all that there is to say of it: `file:line: level: message`.
struct Row {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    said: &'static [&'static str],
}

const UDP: &str = "[udp]\ntype=transport\nbind=0.0.0.0\n";
const PLAN: (&str, &str) = ("extensions.conf", "[default]\nexten => 1,1,NoOp()\n");

#[test]
fn folders_are_told_line_by_line() {
    let mut wrong = Vec::new();
    for Row { name, files, said } in ROWS {
        let scratch = Scratch::new(&format!("check-{}", name.replace(' ', "-")));
        let has = |wanted: &str| files.iter().any(|(file, _)| *file == wanted);
        for (file, text) in files.iter().copied().chain([("pjsip.conf", UDP), PLAN]) {
            if !scratch.0.join(file).exists() && (file != "pjsip.conf" || !has("sip.conf")) {
                scratch.write(file, text);
            }
        }
        let findings = store::examine(&scratch.0, false).findings;
        let folder = format!("{}/", scratch.0.display());
        let lines = findings.iter().map(|of| format!("{}: {}: {}", of.place, of.level, of.message));
        let lines: Vec<String> = lines.map(|line| line.replace(&folder, "")).collect();
        if lines != *said {
            wrong.push(format!("{name}:\n  {}\nexpected:\n  {}", lines.join("\n  "), said.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row {
        name: "a stock file of records in databases",
        files: &[("cdr_pgsql.conf", "[global]\n"), ("cdr_mysql.conf", "[global]\n[columns]\n"), ("cdr_odbc.conf", "[global]\n"), ("cdr_adaptive_odbc.conf", "[general]\n[first]\n")],
        said: &[
            "cdr_adaptive_odbc.conf:2: note: [first] says nothing, so nothing is written to a database",
            "cdr_odbc.conf: note: [global] says nothing, so nothing is written to a database",
            "cdr_pgsql.conf: note: [global] says nothing, so nothing is written to a database",
            "cdr_mysql.conf: note: [global] says nothing, so nothing is written to a database",
        ],
    },
    Row {
        name: "a stock file of events in databases",
        files: &[("cel_odbc.conf", "[general]\n"), ("cel_pgsql.conf", "[global]\n")],
        said: &[
            "cel_pgsql.conf: note: [global] says nothing, so nothing is written to a database",
        ],
    },
    Row {
        name: "stock files of databases",
        files: &[("res_config_mysql.conf", "[general]\n"), ("res_pgsql.conf", "[general]\n"), ("res_odbc.conf", "[ENV]\n[asterisk]\nenabled => no\ndsn => asterisk\npre-connect => yes\n"), ("res_config_sqlite3.conf", "[general]\n"), ("cdr_sqlite3_custom.conf", "[general]\n")],
        said: &[
            "cdr_sqlite3_custom.conf: note: the file says nothing, so no table is written",
        ],
    },
    Row {
        name: "stock files of observers",
        files: &[("hep.conf", "[general]\nenabled = no\n"), ("statsd.conf", "[general]\nenabled = no\n"), ("prometheus.conf", "[general]\nenabled = no\n"), ("res_snmp.conf", "[general]\n;subagent = yes\n"), ("cdr_syslog.conf", "[general]\n"), ("cdr_tds.conf", "[global]\n"), ("cel_beanstalkd.conf", "[general]\n"), ("res_ldap.conf", "[_general]\n"), ("phoneprov.conf", "[general]\n")],
        said: &[],
    },
    Row {
        name: "tones of other countries",
        files: &[("indications.conf", "[general]\ncountry=xx\n[xx]\ndescription=X\nringcadence=1000,4000\ndial=350+375+400\ncallwaiting=1000/400,10000/400,1000/400\ninfo=!950/330,!1400/330|0\nbusy=M69+M81/500,0/500\n")],
        said: &[],
    },
    Row {
        name: "modules whose work is done",
        files: &[("modules.conf", "[modules]\nautoload=no\npreload => res_odbc.so\nload => res_pjsip_refer.so\nload => res_srtp.so\nload => res_ari.so\nload => res_ari_channels.so\nload => res_stasis.so\nload => res_pjsip.so\nload => chan_pjsip.so\nload => format_h264.so\nload => codec_opus.so\nload => func_scramble.so\nload => pbx_config.so\nload => res_rtp_asterisk.so\n")],
        said: &[],
    },
    Row {
        name: "modules that are not there",
        files: &[("modules.conf", "[modules]\nautoload=yes\nload => chan_dahdi.so\nload => res_fax_spandsp.so\nload => app_skel.so\nload => res_pjproject.so\nload => res_brandnew.so\nload => tidy.so\n")],
        said: &[
            "modules.conf:3: note: the module chan_dahdi is not part of Strowger: there are no telephony cards",
            "modules.conf:4: note: the module res_fax_spandsp is not part of Strowger: fax is not built in; T.38 passes from endpoint to endpoint",
            "modules.conf:5: note: the module app_skel is not needed here: it is an example",
            "modules.conf:6: note: the module res_pjproject is not needed here: the SIP stack is built in; pjproject.conf is not needed",
            "modules.conf:7: note: the module res_brandnew is not one that Strowger knows; what it provides may be missing",
            "modules.conf:8: note: the module tidy is not a module of Asterisk either",
        ],
    },
    Row {
        name: "text behind a network",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0\nlocal_net=10.70.0.0/24 // office\nlocal_net=10.0.0.0/8\n")],
        said: &[
            "pjsip.conf:4: warning: local_net=10.70.0.0/24 // office: `// office` behind the network is not read",
        ],
    },
    Row {
        name: "a number that is too large",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0\n[a]\ntype=endpoint\naors=a\nidentify_by=ip\nallow=ulaw\nmax_audio_streams=100\nrtp_timeout=\n[a]\ntype=aor\nmax_contacts=1\nqualify_frequency=60 // seconds\n")],
        said: &[
            "pjsip.conf:9: warning: max_audio_streams=100 is more than 64, which holds",
            "pjsip.conf:10: warning: rtp_timeout= is empty; the default holds",
            "pjsip.conf:14: warning: qualify_frequency=60 // seconds: `// seconds` behind the number is not read",
        ],
    },
    Row {
        name: "values of options that do not matter",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0\nallow_reload=perhaps\nasync_operations=many\nsymmetric_transport=perhaps\n[g]\ntype=global\ncontact_expiration_check_interval=often\n")],
        said: &[
            "pjsip.conf:4: note: allow_reload=perhaps is neither true nor false; the default holds; the option changes nothing here",
            "pjsip.conf:6: note: symmetric_transport=perhaps is neither true nor false; the default holds; the option changes nothing here",
            "pjsip.conf:9: note: contact_expiration_check_interval=often is not a whole number from 0 to 86400; the option changes nothing here",
        ],
    },
    Row {
        name: "a template with a fault of many",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0\n[t](!)\ntype=endpoint\naors=a\nidentify_by=ip\nallow=ulaw\ntransport=gone\n[a](t)\n[b](t)\n[c](t)\n[a]\ntype=aor\nmax_contacts=1\n")],
        said: &[
            "pjsip.conf:9: warning: endpoint 'a' names the transport 'gone', which does not exist (the same holds for 2 more)",
        ],
    },
    Row {
        name: "options of chan_sip that exist",
        files: &[("sip.conf", "[general]\nallowguest=no\nautocreatepeer=no\ndefaultexpirey=120\nmaxexpirey=3600\ntextsupport=no\njbenable=no\nautodomain=no\nlocalnet=10.70.0.0/24 // text\n")],
        said: &[
            "sip.conf: note: sip.conf is read as pjsip.conf: 0 endpoints, 0 registrations, 1 transports",
            "sip.conf:9: warning: localnet=10.70.0.0/24 // text: `// text` behind the network is not read",
        ],
    },
    Row {
        name: "a version of TLS for clients",
        files: &[("sip.conf", "[general]\nallowguest=no\ntlsenable=yes\ntlscertfile=/etc/asterisk/keys/a.pem\ntlsclientmethod=ALL\n")],
        said: &[
            "sip.conf:5: warning: tlsclientmethod=ALL is no version of TLS; TLS 1.2 and 1.3 are spoken",
            "sip.conf: note: sip.conf is read as pjsip.conf: 0 endpoints, 0 registrations, 2 transports",
        ],
    },
    Row {
        name: "words of chan_sip",
        files: &[("sip.conf", "[general]\nallowguest=no\n[t](!)\ntype=friend\nhost=dynamic\nsecret=correct horse battery\ndtmfmode=sometimes\nicesupport=yes\nrtptimeout=soon\ncallgroup=1,99\nallow=ulaw&alaw\nsession-timers=perhaps\n[6001](t)\n[6002](t)\n")],
        said: &[
            "sip.conf: note: sip.conf is read as pjsip.conf: 2 endpoints, 0 registrations, 1 transports",
            "sip.conf:9: warning: rtptimeout=soon is not a whole number from 0 to 86400; the line is ignored",
            "sip.conf:7: warning: dtmfmode=sometimes is not one of its words; the line is ignored",
            "sip.conf:12: warning: session-timers=perhaps is not one of its words; the line is ignored",
            "sip.conf:8: warning: icesupport=yes is known to Asterisk and not supported yet: ICE is not built in; media uses the addresses of the SDP",
            "sip.conf:10: warning: callgroup=1,99 holds `99`, which is no group and is ignored",
        ],
    },
    Row {
        name: "secrets of chan_sip",
        files: &[("sip.conf", "[general]\nallowguest=no\nregister => 1234:abc@sip.example.com/100\n[6001]\ntype=friend\nhost=192.0.2.1\nsecret=6001\n[6002]\ntype=friend\nhost=dynamic\n")],
        said: &[
            "sip.conf: note: sip.conf is read as pjsip.conf: 2 endpoints, 1 registrations, 1 transports",
            "sip.conf:3: warning: the secret of register line '1234@sip.example.com' is shorter than 12 characters; scanners try such passwords first",
            "sip.conf:7: warning: the secret of peer '6001' equals its user name; scanners try such passwords first",
            "sip.conf:8: warning: peer '6002' has no secret: whoever says its name may call without a password",
        ],
    },
    Row {
        name: "a peer whose rules are in doubt",
        files: &[("sip.conf", "[general]\nallowguest=no\n[6001]\ntype=friend\nhost=dynamic\nsecret=correct horse battery\ndeny=0.0.0.0/99\n")],
        said: &[
            "sip.conf: note: sip.conf is read as pjsip.conf: 1 endpoints, 0 registrations, 1 transports",
            "sip.conf:7: error: deny=0.0.0.0/99 holds `0.0.0.0/99`, which is no network; the peer is skipped",
        ],
    },
    Row {
        name: "aliases of mailboxes",
        files: &[("voicemail.conf", "[general]\naliasescontext=pbxaliases\nmaxsecs=300s\nmaxsilence=\nformat=wav49|gsm\n[pbxaliases]\n6001@device=6001@default\n6002@devices => 6001@default\n[default]\n6001 => 1234,A,a@example.com\n")],
        said: &[
            "voicemail.conf:3: warning: maxsecs=300s: `s` behind the number is not read",
            "voicemail.conf:4: warning: maxsilence= is empty; the default holds",
        ],
    },
    Row {
        name: "aliases that nobody asked for",
        files: &[("voicemail.conf", "[general]\n[pbxaliases]\n6001@device=6001@default\n[default]\n6001 => 1234,A\n")],
        said: &[
            "voicemail.conf:3: warning: [pbxaliases] has other names of mailboxes, such as '6001@device' for 6001@default, and aliasescontext= does not name it",
        ],
    },
    Row {
        name: "a stock codecs.conf",
        files: &[("codecs.conf", "[speex]\nquality => 3\nexperimental_rtcp_feedback => false\npp_vad => true\n[plc]\ngenericplc => true\n[silk8]\ntype=silk\nsamprate=8000\n[celt44]\ntype=celt\n")],
        said: &[
            "codecs.conf:4: warning: pp_vad=true is known to Asterisk and not supported yet: sound is not preprocessed",
            "codecs.conf:7: note: [silk8] describes a format of silk, which is not coded here",
            "codecs.conf:10: note: [celt44] describes a format of celt, which is not coded here",
        ],
    },
    Row {
        name: "a stock followme.conf",
        files: &[("followme.conf", "[general]\nfeaturedigittimeout=>5000\npls_hold_prompt=>followme/pls-hold-while-try\nstatus_prompt=>followme/status\n")],
        said: &[],
    },
    Row {
        name: "parking as it once was",
        files: &[("features.conf", "[general]\nparkext => 700\nparkpos => 701-720\ncontext => parkedcalls\nparkingtime => 45\nfindslot => next\ncomebacktoorigin=no\nparkedplay=caller\n")],
        said: &[],
    },
    Row {
        name: "older names of TLS options",
        files: &[("http.conf", "[general]\nenabled=no\nsslenable=no\nsslbindport=8089\nsslcert=/etc/asterisk/a.pem\n"), ("manager.conf", "[general]\nenabled=no\nportno=5038\nsslenable=no\ntlsverifyclient=no\n")],
        said: &[],
    },
    Row {
        name: "numbers as scanf reads them",
        files: &[("queues.conf", "[general]\n[q]\ntimeout = 20 seconds\nmaxlen = many\nretry = -1\nweight=2000000\nservicelevel=\n"), ("rtp.conf", "[general]\nrtpstart=10000 ; first\nrtpend=20000 // last\ndtmftimeout=long\n")],
        said: &[
            "queues.conf:3: warning: timeout=20 seconds: `seconds` behind the number is not read",
            "queues.conf:4: warning: maxlen=many is not a whole number from 0 to 10000; the default holds",
            "queues.conf:5: warning: retry=-1 is less than 0; the default holds",
            "queues.conf:6: warning: weight=2000000 is more than 1000000, which holds",
            "queues.conf:7: warning: servicelevel= is empty; the default holds",
            "rtp.conf:3: warning: rtpend=20000 // last: `// last` behind the number is not read",
            "rtp.conf:4: note: dtmftimeout=long is not a whole number from 1 to 96000; the option changes nothing here",
        ],
    },
    Row {
        name: "yes in other words",
        files: &[("queues.conf", "[general]\npersistentmembers=t\n[q]\nautopause=y\nannounce-holdtime=T\nannounce-position=f\n"), ("rtp.conf", "[general]\nstrictrtp=on\n")],
        said: &[],
    },
    Row {
        name: "commands in files",
        files: &[("extensions.conf", "[default]\nexten => 1,1,NoOp()\n#exec /usr/bin/generate\n")],
        said: &[
            "extensions.conf:3: warning: #exec is not allowed and is ignored",
        ],
    },
    Row {
        name: "commands in files that may run",
        files: &[("asterisk.conf", "[options]\nexecincludes=yes\n"), ("extensions.conf", "[default]\nexten => 1,1,NoOp()\n#exec /usr/bin/generate a\n#exec /usr/bin/generate b\n#exec /usr/bin/generate c\n")],
        said: &[
            "extensions.conf:3: warning: #exec /usr/bin/generate a is not run; what it would print is not looked at (the same holds for 2 more)",
        ],
    },
    Row {
        name: "includes of a copy",
        files: &[("extensions.conf", "[default]\nexten => 1,1,NoOp()\n#include \"/etc/asterisk/x.d/*.conf\"\n#include </etc/asterisk/y.conf>\n#tryinclude /etc/asterisk/z.conf\n"), ("x.d/a.conf", "exten => 2,1,NoOp()\n"), ("y.conf", "exten => 3,1,NoOp()\n")],
        said: &[],
    },
    Row {
        name: "keys of a copy",
        files: &[("iax.conf", "[a]\ntype=friend\nhost=dynamic\nauth=rsa\ninkeys=a:b\n"), ("asterisk.conf", "[directories]\nastkeydir => /etc/asterisk\n"), ("keys/a.pub", "")],
        said: &[
            "iax.conf:1: note: [a] has no context: its calls go to the context 'default'",
            "iax.conf:5: warning: the key 'b' is not there: nothing can be proven by it",
        ],
    },
    Row {
        name: "a directory of another machine",
        files: &[("asterisk.conf", "[directories]\nastetcdir => /opt/pbx/etc\n"), ("extensions.conf", "[default]\n#include \"/opt/pbx/etc/y.conf\"\n"), ("y.conf", "exten => 3,1,NoOp()\n")],
        said: &[],
    },
    Row {
        name: "files of hardware that is not there",
        files: &[("chan_dahdi.conf", "[channels]\nchannel => 1\n"), ("mgcp.conf", "[general]\nport=2427\n"), ("oss.conf", "[general]\n;autoanswer=yes\n")],
        said: &[
            "chan_dahdi.conf: warning: the file is not read yet: telephony cards are not served",
            "mgcp.conf: note: the file is not read yet: MGCP is not spoken",
        ],
    },
    Row {
        name: "options of asterisk.conf of later versions",
        files: &[("asterisk.conf", "[options]\ntrace=0\nrefdebug=no\nminmemfree=0\n[compat]\npbx_realtime=1.6\n")],
        said: &[],
    },
    Row {
        name: "a packet length that is none",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0 // all\n[a]\ntype=endpoint\naors=a\nidentify_by=ip\nallow=ulaw:2000,alaw:30\n[a]\ntype=aor\nmax_contacts=1\n[a]\ntype=identify\nendpoint=a\nmatch=192.0.2.0/24 // carrier\n")],
        said: &[
            "pjsip.conf:3: warning: bind=0.0.0.0 // all: `// all` behind the address is not read",
            "pjsip.conf:8: warning: ulaw:2000 is no packet length; that of ulaw holds",
            "pjsip.conf:15: warning: match=192.0.2.0/24 // carrier: `// carrier` behind the network is not read",
        ],
    },
    Row {
        name: "formats of the field",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0\n[a]\ntype=endpoint\naors=a\nidentify_by=ip\nallow=ulaw,alaw,gsm,ilbc,speex,speex16,speex32,g722,g729,g723,g726,g726aal2,adpcm,slin,slin12,slin16,slin24,slin32,slin44,slin48,lpc10,opus,codec2,siren7,siren14,h261,h263,h263p,h264,h265,vp8,vp9,mpeg4\n[a]\ntype=aor\nmax_contacts=1\n")],
        said: &[
            "pjsip.conf:8: note: endpoint 'a': g729 can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
            "pjsip.conf:8: note: endpoint 'a': g723 can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
            "pjsip.conf:8: note: endpoint 'a': siren7 can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
            "pjsip.conf:8: note: endpoint 'a': siren14 can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
        ],
    },
    Row {
        name: "formats that are not coded",
        files: &[("pjsip.conf", "[udp]\ntype=transport\nbind=0.0.0.0\n[a]\ntype=endpoint\naors=a\nidentify_by=ip\nallow=ulaw,silk16,g719,slin96,slin192,testlaw,t140,red,jpeg,png,celt,t38,silk,amr,amrwb,g723.1\n[a]\ntype=aor\nmax_contacts=1\n")],
        said: &[
            "pjsip.conf:8: warning: silk16 is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: g719 is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: slin96 is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: slin192 is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: testlaw is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: t140 is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: red is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: jpeg is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: png is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: celt is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: t38 is not built in; calls use the other formats of the list",
            "pjsip.conf:8: warning: silk is not built in; calls use the other formats of the list",
            "pjsip.conf:8: note: endpoint 'a': amr can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
            "pjsip.conf:8: note: endpoint 'a': amrwb can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
            "pjsip.conf:8: note: endpoint 'a': g723 can only be passed through, between two parties that both use it; nothing here can play, record, mix or turn it into another format",
        ],
    },
    Row {
        name: "a format that does not exist",
        files: &[("sip.conf", "[general]\nallowguest=no\n[6001]\ntype=friend\nhost=dynamic\nsecret=correct horse battery\ndisallow=all\nallow=ulow,alaw,ulaw\n")],
        said: &[
            "sip.conf: note: sip.conf is read as pjsip.conf: 1 endpoints, 0 registrations, 1 transports",
            "sip.conf:8: warning: allow=ulow names the format `ulow`, which does not exist; the line is ignored",
        ],
    },
    Row {
        name: "words of a wizard",
        files: &[("pjsip_wizard.conf", "[t]\ntype=wizard\nsends_auth=no\naccepts_auth=yes\naccepts_registrations=yes\ninbound_auth/username=t\ninbound_auth/password=correct horse battery\nendpoint/ice_support=yes\nendpoint/rtp_timeout=30s\nendpoint/allow=ulaw\naor/max_contacts=2\n")],
        said: &[
            "pjsip_wizard.conf:8: warning: endpoint/ice_support=yes is known to Asterisk and not supported yet: ICE is not built in; media uses the addresses of the SDP",
            "pjsip_wizard.conf:9: warning: endpoint/rtp_timeout=30s: `s` behind the number is not read",
        ],
    },
];

#[test]
fn options_that_exist_in_the_field_are_neither_errors_nor_unknown() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stock");
    let findings = store::examine(&folder, false).findings;
    let is_wrong = |finding: &&conf::Finding| {
        finding.level == conf::Level::Error
            || finding.message.contains("no option")
            || finding.message.contains("none of")
    };
    let wrong: Vec<String> = findings.iter().filter(is_wrong).map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(findings.len() > 50, "the folder was read: {findings}");
}

#[test]
fn exec_runs_only_when_it_is_asked_for() {
    let scratch = Scratch::new("check-exec");
    let ran = scratch.0.join("ran");
    scratch.write("asterisk.conf", "[options]\nexecincludes=yes\n");
    let text = format!("[default]\nexten => 1,1,NoOp()\n#exec touch {0}\n#exec touch {0}\n", ran.display());
    scratch.write("extensions.conf", &text);
    let told = |exec: bool| {
        let findings = store::examine(&scratch.0, exec).findings;
        findings.iter().filter(|finding| finding.message.contains("is not run")).count()
    };
    assert_eq!((told(false), ran.exists()), (1, false));
    assert_eq!((told(true), ran.exists()), (0, true));
}

#[test]
fn a_copy_of_a_machine_is_looked_at_in_its_own_place() {
    let scratch = Scratch::new("check-copy");
    let etc = scratch.0.join("etc/asterisk");
    scratch.write("etc/asterisk/pjsip.conf", UDP);
    scratch.write(
        "etc/asterisk/extensions.conf",
        "[default]\nexten => 1,1,NoOp()\n#include \"/etc/asterisk/more.d/*.conf\"\n#include </etc/asterisk/one.conf>\n\
         #include \"/var/lib/asterisk/made.conf\"\n",
    );
    scratch.write("etc/asterisk/more.d/a.conf", "exten => 2,1,NoOp()\n");
    scratch.write("etc/asterisk/one.conf", "exten => 3,1,NoOp()\n");
    scratch.write("var/lib/asterisk/made.conf", "exten => 4,1,NoOp()\n");
    scratch.write("var/lib/asterisk/keys/a.pub", "");
    scratch.write("etc/asterisk/iax.conf", "[a]\ntype=friend\nauth=rsa\ninkeys=a\nhost=dynamic\n");
    for folder in [etc.clone(), etc.join("."), etc.join("")] {
        let store::Examined { snapshot, findings, .. } = store::examine(&folder, false);
        assert!(findings.iter().all(|finding| finding.level == conf::Level::Note), "{findings}");
        let sections = &snapshot.unwrap().extensions.sections;
        let extensions = sections.iter().flat_map(|section| &section.variables).count();
        assert_eq!(extensions, 4);
    }
}
