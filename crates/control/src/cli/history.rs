//! The SIP messages of the last while: as a list, one by one, and as the ladder of a call.

use std::fmt::Write as _;

use call::{Channel, Core};
use dialplan::ere::Matcher;
use driver::sip::{Gist, HISTORY_MAX, Heard};
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

const MESSAGE_KEYS: &str = "messages [number timestamp direction address protocol call_id summary]";
const LADDER_KEYS: &str = "peers steps [number timestamp direction address protocol call_id label]";

pub(super) const ROWS: &[Row] = &[
    verb(
        "pjsip set history on|off|clear",
        "Begins or ends keeping SIP messages, or forgets those that are kept.",
        Cli::pjsip_set_history,
    )
    .detail(
        "The last 10,000 messages are kept, and 16 MiB at most. Keeping them costs nothing while it is off; what was kept \
         before stays until it is cleared. Keys of SRTP are never kept.",
    ),
    show("pjsip show history", "Lists the SIP messages that are kept.", MESSAGE_KEYS, |cli, ask| {
        cli.pjsip_show_history(ask, None)
    }),
    show(
        "pjsip show history where <expression...>",
        "Lists those of the kept SIP messages for which an expression holds.",
        MESSAGE_KEYS,
        |cli, ask| match Expression::parse(ask.need("expression")) {
            Ok(expression) => cli.pjsip_show_history(ask, Some(&expression)),
            Err(why) => Said::failed(format!("{why}\n")),
        },
    )
    .detail(
        "The expression compares number, timestamp, addr, sip.msg.method and sip.msg.call-id by = != < <= > >= and like (an \
         extended regular expression), joined by and, or, not and parentheses: sip.msg.method = INVITE and addr like \
         192.0.2. The method of a response is that of its request.",
    ),
    show(
        "pjsip show history entry <number>",
        "Shows one of the kept SIP messages whole.",
        "number timestamp direction address protocol call_id summary message",
        Cli::pjsip_show_history_entry,
    ),
    show(
        "pjsip show history ladder <call_id>",
        "Draws the kept SIP messages of a Call-ID as a ladder.",
        LADDER_KEYS,
        |cli, ask| {
            let call_id = ask.need("call_id").to_owned();
            cli.ladder(ask, &[call_id])
        },
    )
    .detail("It is the ladder of one leg, also after its end; core show channel NAME ladder draws those of a call that is up."),
    show(
        "core show channel <channel> ladder",
        "Draws the kept SIP messages of a call as a ladder: of the channel, and of all that belong to the same call.",
        LADDER_KEYS,
        Cli::core_show_channel_ladder,
    )
    .detail("Messages are kept from pjsip set history on."),
];

/// A message and what is told of it.
struct Told<'a> {
    heard: &'a Heard,
    gist: Gist,
}

impl<'a> Told<'a> {
    fn of(heard: &'a Heard) -> Self {
        Self { heard, gist: heard.gist() }
    }
    fn seconds(&self) -> i64 {
        self.heard.at_micros.div_euclid(1_000_000)
    }
    fn timestamp(&self) -> String {
        format!("{}.{:06}", self.seconds(), self.heard.at_micros.rem_euclid(1_000_000))
    }
    fn direction(&self) -> &'static str {
        if self.heard.outgoing { "sent" } else { "received" }
    }
    fn json(&self) -> Value {
        json!({
            "number": self.heard.number, "timestamp": self.timestamp(), "direction": self.direction(),
            "address": self.heard.remote.to_string(), "protocol": self.heard.protocol.name(),
            "call_id": self.gist.call_id, "summary": self.gist.summary,
        })
    }
    fn step_json(&self) -> Value {
        json!({
            "number": self.heard.number, "timestamp": self.timestamp(), "direction": self.direction(),
            "address": self.heard.remote.to_string(), "protocol": self.heard.protocol.name(),
            "call_id": self.gist.call_id, "label": self.gist.label,
        })
    }
}

impl Cli {
    fn pjsip_set_history(&self, ask: &mut Ask<'_>) -> Said {
        let mut driver = self.site.sip.borrow_mut();
        let history = driver.history_mut();
        match ask.choice() {
            Some("clear") => {
                history.clear();
                Said::done("PJSIP History cleared\n")
            }
            choice => {
                let on = choice == Some("on");
                history.set(on);
                Said::done(if on { "PJSIP History enabled\n" } else { "PJSIP History disabled\n" })
            }
        }
    }

    fn pjsip_show_history(&self, ask: &mut Ask<'_>, wanted: Option<&Expression>) -> Said {
        let driver = self.site.sip.borrow();
        let told = driver.history().messages().map(Told::of);
        let told: Vec<Told<'_>> =
            told.filter(|told| wanted.is_none_or(|expression| expression.holds(told))).collect();
        let data = || json!({ "messages": told.iter().map(Told::json).collect::<Vec<_>>() });
        let text = || {
            if told.is_empty() {
                return "No history entries to display; pjsip set history on keeps messages from then on\n"
                    .to_owned();
            }
            let rule = |n| "=".repeat(n);
            let mut out = format!(
                "{:<5} {:<10} {:<3} {:<30} SIP Message\n{} {} {} {} {}\n",
                "No.",
                "Timestamp",
                "Dir",
                "Address",
                rule(5),
                rule(10),
                rule(3),
                rule(30),
                rule(35)
            );
            for told in &told {
                let arrow = if told.heard.outgoing { "==>" } else { "<==" };
                let (number, seconds, remote) =
                    (told.heard.number, told.seconds(), told.heard.remote.to_string());
                let _ = writeln!(out, "{number:05} {seconds:<10} {arrow} {remote:<30} {}", told.gist.summary);
            }
            out
        };
        ask.show(data, text)
    }

    fn pjsip_show_history_entry(&self, ask: &mut Ask<'_>) -> Said {
        let driver = self.site.sip.borrow();
        let number = ask.need("number").parse().ok();
        let Some(heard) = number.and_then(|number| driver.history().get(number)) else {
            return Said::failed(format!("There is no entry {} in the history\n", clean(ask.need("number"))));
        };
        let told = Told::of(heard);
        let message = String::from_utf8_lossy(&heard.bytes);
        let data = || {
            let mut value = told.json();
            if let Some(object) = value.as_object_mut() {
                object.insert("message".to_owned(), Value::from(&*message));
            }
            value
        };
        let text = || {
            let (what, of) = if heard.outgoing { ("Sent", "to") } else { ("Received", "from") };
            let mut out = format!(
                "<--- History Entry {} {what} {of} {} at {} --->\n",
                heard.number,
                heard.remote,
                told.seconds()
            );
            for line in message.lines() {
                let _ = writeln!(out, "{}", clean(line));
            }
            out
        };
        ask.show(data, text)
    }

    fn core_show_channel_ladder(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let name = ask.need("channel");
        let Some(channel) = core.by_name(name).and_then(|id| core.get(id)) else {
            return Said::failed(format!("{} is not a known channel\n", clean(name)));
        };
        let call_ids: Vec<String> = same_call(&core, channel)
            .filter_map(|id| self.site.sip.borrow_mut().call_id(&core, id))
            .map(|call_id| clean(&String::from_utf8_lossy(&call_id)).into_owned())
            .collect();
        drop(core);
        if call_ids.is_empty() {
            return Said::failed(format!(
                "No channel of this call speaks SIP: {}\n",
                clean(ask.need("channel"))
            ));
        }
        self.ladder(ask, &call_ids)
    }

    fn ladder(&self, ask: &mut Ask<'_>, call_ids: &[String]) -> Said {
        let driver = self.site.sip.borrow();
        let told: Vec<Told<'_>> = driver
            .history()
            .messages()
            .map(Told::of)
            .filter(|told| call_ids.contains(&told.gist.call_id))
            .collect();
        if told.is_empty() {
            return Said::failed(
                "No message of this call was kept; pjsip set history on keeps messages from then on\n",
            );
        }
        let peers = peers_of(&told);
        let data =
            || json!({ "peers": peers, "steps": told.iter().map(Told::step_json).collect::<Vec<_>>() });
        ask.show(data, || drawn(&told, &peers))
    }
}

/// The channels of a call: those with the same LINKEDID.
fn same_call<'a>(core: &'a Core, of: &'a Channel) -> impl Iterator<Item = base::ChannelId> + 'a {
    core.channels().filter(|channel| channel.linkedid == of.linkedid).map(|channel| channel.id)
}

/// Peers that have a column of their own; further ones share the last.
const PEERS_MAX: usize = 6;
/// Characters from one column of a ladder to the next: `200 OK (INVITE) (SDP)` and an arrow around it.
const COLUMN: usize = 30;
/// Characters before the first column: the time since the first message.
const MARGIN: usize = 22;

/// The peers, in the order in which they appear.
fn peers_of(told: &[Told<'_>]) -> Vec<String> {
    let mut peers: Vec<String> = Vec::new();
    for told in told {
        let peer = told.heard.remote.to_string();
        if !peers.contains(&peer) {
            peers.push(peer);
        }
    }
    peers
}

/// The ladder as text: the first peer to the left of us, the others to our right.
fn drawn(told: &[Told<'_>], peers: &[String]) -> String {
    let shown = peers.len().min(PEERS_MAX);
    let column = |peer: &str| {
        let at = peers.iter().position(|known| known == peer).unwrap_or(0).min(shown - 1);
        if at == 0 { 0 } else { at + 1 }
    };
    let place = |column: usize| MARGIN + column * COLUMN;
    let mut out = String::new();
    let mut heads = vec![b' '; place(shown) + COLUMN / 2 + 1];
    for at in 0..=shown {
        let name = match at {
            0 => peers.first().map_or("", String::as_str),
            1 => "Strowger",
            _ if at == shown && peers.len() > shown => "others",
            _ => peers.get(at - 1).map_or("", String::as_str),
        };
        put(&mut heads, place(at).saturating_sub(name.len() / 2), name);
    }
    line(&heads, &mut out);
    let first = told.first().map_or(0, |told| told.heard.at_micros);
    for told in told {
        let mut row = vec![b' '; place(shown) + 1];
        (0..=shown).for_each(|at| put(&mut row, place(at), "|"));
        let since = (told.heard.at_micros - first) / 1_000;
        put(&mut row, 0, &format!("{:>6} {:>+9}.{:03}", told.heard.number, since / 1_000, since % 1_000));
        let peer = column(&told.heard.remote.to_string());
        let (left, right) = (place(peer.min(1)), place(peer.max(1)));
        let rightwards = told.heard.outgoing == (peer > 1);
        (left + 2..right - 1).for_each(|at| put(&mut row, at, "-"));
        put(&mut row, if rightwards { right - 2 } else { left + 2 }, if rightwards { ">" } else { "<" });
        let label: String = told.gist.label.chars().filter(char::is_ascii).take(right - left - 8).collect();
        let label = format!(" {label} ");
        put(&mut row, left + (right - left - label.len()) / 2, &label);
        line(&row, &mut out);
    }
    out
}

/// Writes ASCII into a row from a place on; what does not fit is cut.
fn put(row: &mut [u8], at: usize, text: &str) {
    for (cell, byte) in row.iter_mut().skip(at).zip(text.bytes()) {
        *cell = byte;
    }
}

fn line(row: &[u8], out: &mut String) {
    out.push_str(String::from_utf8_lossy(row).trim_end());
    out.push('\n');
}

/// Most parentheses and `not` inside each other in an expression.
const DEPTH_MAX: usize = 32;

/// What `where` asks of a message.
#[expect(clippy::large_enum_variant, reason = "a command has a handful of them")]
enum Expression {
    Any(Vec<Expression>),
    All(Vec<Expression>),
    Not(Box<Expression>),
    Number(fn(&Told<'_>) -> i64, fn(&i64, &i64) -> bool, i64),
    Text(fn(&Told<'_>) -> String, bool, String),
    Like(fn(&Told<'_>) -> String, Matcher),
}

impl Expression {
    fn holds(&self, told: &Told<'_>) -> bool {
        match self {
            Self::Any(of) => of.iter().any(|one| one.holds(told)),
            Self::All(of) => of.iter().all(|one| one.holds(told)),
            Self::Not(one) => !one.holds(told),
            Self::Number(field, compare, value) => compare(&field(told), value),
            Self::Text(field, equal, value) => field(told).eq_ignore_ascii_case(value) == *equal,
            Self::Like(field, pattern) => pattern.is_match(&field(told)),
        }
    }
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = words(text);
        let mut words = Words { next: words.drain(..).peekable(), depth: 0 };
        let expression = words.any()?;
        match words.next.next() {
            None => Ok(expression),
            Some(word) => Err(format!("'{}' was not expected here", clean(&word))),
        }
    }
}

/// Words, operators and parentheses; quotes hold a word together and are dropped.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '=' | '!' | '<' | '>' => 1 + usize::from(rest.get(1..2) == Some("=")),
            '"' | '\'' => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = inner.find(first).unwrap_or(inner.len());
                words.push(inner.get(..end).unwrap_or_default().to_owned());
                rest = inner.get(end + 1..).unwrap_or_default().trim_start();
                continue;
            }
            _ => plain_word(rest),
        };
        let (word, tail) = rest.split_at(length);
        words.push(word.to_owned());
        rest = tail.trim_start();
    }
    words
}

/// Bytes of the word that a text begins with. Parentheses that it opens itself belong to it: `^(one|two)$`.
fn plain_word(text: &str) -> usize {
    let mut open = 0_u32;
    let ends = |c: char| match c {
        '(' => {
            open += 1;
            false
        }
        ')' if open > 0 => {
            open -= 1;
            false
        }
        _ => c.is_whitespace() || ")=!<>".contains(c),
    };
    text.find(ends).unwrap_or(text.len())
}

struct Words<'a> {
    next: std::iter::Peekable<std::vec::Drain<'a, String>>,
    depth: usize,
}

impl Words<'_> {
    fn takes(&mut self, word: &str) -> bool {
        self.next.next_if(|next| next.eq_ignore_ascii_case(word)).is_some()
    }
    fn any(&mut self) -> Result<Expression, String> {
        let mut of = vec![self.all()?];
        while self.takes("or") {
            of.push(self.all()?);
        }
        Ok(Expression::Any(of))
    }
    fn all(&mut self) -> Result<Expression, String> {
        let mut of = vec![self.one()?];
        while self.takes("and") {
            of.push(self.one()?);
        }
        Ok(Expression::All(of))
    }
    fn one(&mut self) -> Result<Expression, String> {
        if self.depth >= DEPTH_MAX {
            return Err("the expression is too deep".to_owned());
        }
        self.depth += 1;
        let found = if self.takes("not") {
            self.one().map(|one| Expression::Not(Box::new(one)))
        } else if self.takes("(") {
            let inner = self.any()?;
            if self.takes(")") { Ok(inner) } else { Err("a ) is missing".to_owned()) }
        } else {
            self.comparison()
        };
        self.depth -= 1;
        found
    }
    fn comparison(&mut self) -> Result<Expression, String> {
        let mut word = || self.next.next().ok_or_else(|| "the expression ends too early".to_owned());
        let (field, operator, value) = (word()?, word()?.to_ascii_lowercase(), word()?);
        let number: Option<fn(&Told<'_>) -> i64> = match field.to_ascii_lowercase().as_str() {
            "number" => Some(|told| i64::try_from(told.heard.number).unwrap_or(i64::MAX)),
            "timestamp" => Some(|told| told.seconds()),
            _ => None,
        };
        if let Some(number) = number {
            let value = value.parse().map_err(|_| format!("'{}' is no number", clean(&value)))?;
            let compare: fn(&i64, &i64) -> bool = match operator.as_str() {
                "=" | "==" => i64::eq,
                "!=" => i64::ne,
                "<" => i64::lt,
                "<=" => i64::le,
                ">" => i64::gt,
                ">=" => i64::ge,
                _ => return Err(format!("'{}' does not compare numbers", clean(&operator))),
            };
            return Ok(Expression::Number(number, compare, value));
        }
        let text: fn(&Told<'_>) -> String = match field.to_ascii_lowercase().as_str() {
            "addr" => |told| told.heard.remote.to_string(),
            "sip.msg.method" => |told| told.gist.method.clone(),
            "sip.msg.call-id" => |told| told.gist.call_id.clone(),
            _ => return Err(format!("There is no field '{}'", clean(&field))),
        };
        match operator.as_str() {
            "=" | "==" => Ok(Expression::Text(text, true, value)),
            "!=" => Ok(Expression::Text(text, false, value)),
            "like" => Matcher::new(&value)
                .map(|pattern| Expression::Like(text, pattern))
                .map_err(|why| format!("'{}' is no regular expression: {}", clean(&value), why)),
            _ => Err(format!("'{}' does not compare text", clean(&operator))),
        }
    }
}

const _: () = assert!(HISTORY_MAX == 10_000, "the help of pjsip set history says how many are kept");

#[cfg(test)]
mod tests {
    use super::*;
    use sip::stack::Protocol;

    fn heard(number: u64, outgoing: bool, port: u16, text: &str) -> Heard {
        let at_micros = 1_763_762_068_000_000 + i64::try_from(number).unwrap() * 250_000;
        let remote = ([192, 0, 2, 1], port).into();
        let text = text.replace('\n', "\r\n");
        Heard { number, at_micros, outgoing, protocol: Protocol::Udp, remote, bytes: text.as_bytes().into() }
    }

    /// A message with the headers that a parser wants.
    fn message(first: &str, method: &str, call_id: &str, sdp: bool) -> String {
        let body = if sdp { "v=0\n" } else { "" };
        let kind = if sdp { "Content-Type: application/sdp\n" } else { "" };
        format!(
            "{first}\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\nFrom: <sip:a@b>;tag=1\nTo: <sip:c@d>\n\
             Call-ID: {call_id}\nCSeq: 1 {method}\n{kind}Content-Length: {}\n\n{body}",
            if sdp { 5 } else { 0 }
        )
    }

    fn call() -> Vec<Heard> {
        vec![
            heard(7, false, 5070, &message("INVITE sip:c@d SIP/2.0", "INVITE", "one", true)),
            heard(8, true, 5070, &message("SIP/2.0 100 Trying", "INVITE", "one", false)),
            heard(9, true, 5080, &message("INVITE sip:e@f SIP/2.0", "INVITE", "two", true)),
            heard(10, false, 5080, &message("SIP/2.0 200 OK", "INVITE", "two", true)),
            heard(11, true, 5070, &message("BYE sip:a@b SIP/2.0", "BYE", "one", false)),
            heard(12, false, 5070, &message("SIP/2.0 200 OK", "BYE", "one", false)),
            heard(13, false, 5090, "hello"),
        ]
    }

    #[test]
    fn an_expression_picks_messages() {
        let heard = call();
        for (text, expected) in [
            ("sip.msg.method = INVITE", &[7, 8, 9, 10][..]),
            ("sip.msg.method = 'BYE'", &[11, 12]),
            ("sip.msg.call-id = two", &[9, 10]),
            ("sip.msg.call-id like ^(one|three)$", &[7, 8, 11, 12]),
            ("(sip.msg.call-id like '^(one|three)$')", &[7, 8, 11, 12]),
            ("(sip.msg.call-id like ^(one|three)$) and number < 8", &[7]),
            ("addr like :5080", &[9, 10]),
            ("addr = 192.0.2.1:5090", &[13]),
            ("number >= 12", &[12, 13]),
            ("number>=12 and not addr like 5090", &[12]),
            ("timestamp = 1763762069 or number = 13", &[7, 13]),
            ("not (number < 9 or number > 9)", &[9]),
            ("sip.msg.method != INVITE and (number = 11 or number = 7)", &[11]),
        ] {
            let expression = Expression::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            let found: Vec<u64> =
                heard.iter().filter(|one| expression.holds(&Told::of(one))).map(|one| one.number).collect();
            assert_eq!(found, expected, "{text}");
        }
        for text in [
            "",
            "number",
            "number =",
            "number = x",
            "number like 1",
            "colour = red",
            "addr < 5",
            "addr like ((",
            "(number = 1",
            "number = 1 number = 2",
        ] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        assert!(Expression::parse(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn a_ladder_has_a_column_for_each_peer_and_an_arrow_for_each_message() {
        let heard = call();
        let told: Vec<Told<'_>> = heard.iter().take(6).map(Told::of).collect();
        let peers = peers_of(&told);
        assert_eq!(peers, ["192.0.2.1:5070", "192.0.2.1:5080"]);
        let expected = [
            "               192.0.2.1:5070                   Strowger                   192.0.2.1:5080",
            "     7        +0.000  | ------ INVITE (SDP) ------> |                             |",
            "     8        +0.250  | <------ 100 Trying -------- |                             |",
            "     9        +0.500  |                             | ------ INVITE (SDP) ------> |",
            "    10        +0.750  |                             | <----- 200 OK (SDP) ------- |",
            "    11        +1.000  | <--------- BYE ------------ |                             |",
            "    12        +1.250  | ------ 200 OK (BYE) ------> |                             |",
        ];
        assert_eq!(drawn(&told, &peers).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn peers_beyond_the_last_column_share_it() {
        let heard: Vec<Heard> = (0..9)
            .map(|n| {
                heard(n, true, 5000 + n as u16, &message("OPTIONS sip:a SIP/2.0", "OPTIONS", "x", false))
            })
            .collect();
        let told: Vec<Told<'_>> = heard.iter().map(Told::of).collect();
        let text = drawn(&told, &peers_of(&told));
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(text.lines().next().unwrap().ends_with("others"), "{text}");
        assert!(text.lines().skip(1).all(|line| line.contains("OPTIONS")), "{text}");
    }
}
