//! What a dialplan asks of others: pages of web servers, the DNS, files of the configuration.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

use e2e::{NameServer, Phone, Server, Site};

/// A web server that answers `/echo` with what it was sent, `/silent` with nothing, and says what it was asked.
fn web() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("the same"));
                let mut asked = String::new();
                while reader.read_line(&mut asked).is_ok_and(|count| count > 2) {}
                let length = asked.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                });
                let mut body = vec![0; length.unwrap_or(0)];
                reader.read_exact(&mut body).expect("the body");
                let silent = asked.contains(" /silent ");
                let _gone = tell.send(asked);
                if silent {
                    std::thread::park();
                }
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n<", body.len() + 3);
                let _gone = stream.write_all(&[head.as_bytes(), &body, b">\n"].concat());
            });
        }
    });
    (address, told)
}

#[test]
fn a_page_is_fetched_while_other_calls_go_on() {
    let (web, asked) = web();
    let site = Site::new("asking-web").phone("alice").phone("bob").dialplan(&format!(
        "[test]
exten => page,1,Set(CURLOPT(httpheader)=X-Door: red)
 same => n,Set(DB(web/page)=${{CURL(http://{web}/echo?n=${{URIENCODE(${{CALLERID(num)}} x)}},a=1,2)}})
 same => n,Hangup()
exten => silent,1,Answer()
 same => n,Set(x=${{CURL(http://{web}/silent)}})
 same => n,Wait(60)
exten => quick,1,Set(DB(web/quick)=yes)
"
    ));
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("silent");
    assert!(asked.recv().expect("it was asked").starts_with("GET /silent "));
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.begin("quick");
    bob.outcome();
    assert_eq!(server.database("web", "quick"), "yes", "while the other call waits");
    bob.begin("page");
    bob.outcome();
    assert_eq!(server.database("web", "page"), "<a=1,2>");
    let page = asked.recv().expect("it was asked");
    assert!(page.starts_with("POST /echo?n=bob%20x HTTP/1.1\r\n"), "{page}");
    assert!(page.to_ascii_lowercase().contains("\r\nx-door: red\r\n"), "{page}");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn rfc2782_who_serves_a_service_is_asked_of_the_dns() {
    let dns = NameServer::start(
        "_x._udp.example.com SRV 20 0 5062 two.example.com\n_x._udp.example.com SRV 10 0 5061 one.example.com",
    );
    let site = Site::new("asking-srv").phone("alice").dialplan(
        "[test]
exten => 1,1,Set(ID=${SRVQUERY(_x._udp.example.com)})
 same => n,Set(N=${SRVRESULT(${ID},getnum)})
 same => n,Set(DB(srv/all)=${N} ${SRVRESULT(${ID},1)}:${SRVRESULT(${ID},1,port)} ${SRVRESULT(${ID},2,host)})
 same => n,Set(DB(srv/none)=[${SRVRESULT(_y._udp.example.com,getnum)}])
",
    );
    let server = Server::start(site.add("resolver_unbound.conf", &dns.configuration()));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("1");
    alice.outcome();
    assert_eq!(server.database("srv", "all"), "2 one.example.com:5061 two.example.com");
    assert_eq!(server.database("srv", "none"), "[0]");
    server.until_idle();
}

#[test]
fn values_of_the_configuration_are_read() {
    let site = Site::new("asking-config")
        .phone("alice")
        .add("shop.conf", "[base](!)\nopen=no\n[door](base)\nopen=yes\n")
        .dialplan(
            "[test]\nexten => 1,1,Set(DB(conf/open)=${AST_CONFIG(shop.conf,door,open)} ${AST_CONFIG(shop.conf,door,open,-1)})\n",
        );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("1");
    alice.outcome();
    assert_eq!(server.database("conf", "open"), "no yes");
    server.until_idle();
}
