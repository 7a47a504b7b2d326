//! ENUMLOOKUP(): telephone numbers as domain names (RFC 6116), and what their NAPTR records make of them (RFC 3403).
//!
//! The answers of the DNS are fetched before a step's arguments are expanded ([`Call::fetch_enum`]); reading the
//! function only chooses among them and applies their rules.

use core::time::Duration;
use std::sync::Arc;

use base::dns::{Kind, Naptr, Question as Asked, Records};
use call::{DnsAnswer, Level, Stop};
use dialplan::Fault;
use dialplan::ere::Regex;

use super::Read;
use crate::Call;

/// How long a step waits for the DNS.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
/// Calls of the function that one step may have answered; more than any loop of a dialplan writes in one.
const CALLS_MAX: usize = 16;
/// Longest domain name in text (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// Digits of a number, or label of a direct name: the longest that fits in a name one label a digit.
const NUMBER_BYTES_MAX: usize = 64;
/// Longest URI that a rule may make.
const URI_BYTES_MAX: usize = 1024;

/// What the DNS said of a name; `None` when it said nothing in time.
pub(crate) type Fetched = (String, Option<Arc<[Naptr]>>);

impl Call {
    /// Fetches what the calls of `ENUMLOOKUP()` in `text` need, and keeps it for the step that is about to be taken.
    pub(crate) async fn fetch_enum(&self, text: &str, after_end: bool) -> Result<(), Stop> {
        self.run.fetched.borrow_mut().clear();
        let deadline = self.chan.now() + WAIT;
        // An inner call stands after the one whose argument it is.
        let calls: Vec<(&str, bool)> = dialplan::functions::calls(text, "ENUMLOOKUP")
            .map(|args| (args, false))
            .chain(dialplan::functions::calls(text, "ENUMQUERY").map(|args| (args, true)))
            .take(CALLS_MAX)
            .collect();
        for (args, is_query) in calls.into_iter().rev() {
            let args = self.expand(args);
            let question = if is_query { Question::of_query(&args) } else { Question::parse(&args) };
            let Ok(question) = question else { continue };
            if self.run.fetched.borrow().iter().any(|(name, _)| *name == question.name) {
                continue;
            }
            let asked = Asked::new(Kind::Naptr, &question.name);
            let records = self.chan.dns(&asked, deadline, after_end).await?.and_then(naptr);
            self.run.fetched.borrow_mut().push((question.name, records));
        }
        Ok(())
    }
}

/// Answers the function.
pub(crate) fn read(call: &Call, args: &str, out: &mut String) -> Read {
    let question = Question::parse(args)?;
    let fetched = call.run.fetched.borrow();
    let known = fetched.iter().find(|(name, _)| *name == question.name).map(|(_, records)| records.clone());
    // A call that no step spells out (EVAL, a manager) has what is known already.
    let records = known.unwrap_or_else(|| {
        let asked = Asked::new(Kind::Naptr, &question.name);
        match call.chan.core(|core| core.services.outside.dns(&asked)) {
            DnsAnswer::Ready(records) => naptr(records),
            DnsAnswer::Loading | DnsAnswer::Failed => None,
        }
    });
    match records {
        Some(records) => question.answer(&records, out),
        None => {
            call.log(Level::Warning, &format!("ENUMLOOKUP: the DNS gave no answer for {}", question.name));
            if question.count {
                out.push_str("-1");
            }
        }
    }
    Ok(())
}

/// `ENUMQUERY(number[,method-type[,zone-suffix]])`: the id of what came.
pub(super) fn read_query(call: &Call, args: &str, out: &mut String) -> Read {
    let question = Question::of_query(args)?;
    let fetched = call.run.fetched.borrow();
    let (_, records) = fetched
        .iter()
        .find(|(name, _)| *name == question.name)
        .ok_or(Fault::new("asks only where a step of the dialplan spells it out"))?;
    if records.is_none() {
        call.log(Level::Warning, &format!("ENUMQUERY: the DNS gave no answer for {}", question.name));
    }
    let found = records.as_ref().map(|records| question.all(records)).unwrap_or_default();
    let mut results = call.run.numbers.borrow_mut();
    let id = results.last().map_or(1, |(id, _)| id + 1);
    if results.len() >= CALLS_MAX {
        results.remove(0);
    }
    results.push((id, found));
    out.push_str(&id.to_string());
    Ok(())
}

/// `ENUMRESULT(id,number|getnum)`.
pub(super) fn read_result(call: &Call, args: &str, out: &mut String) -> Read {
    let args = dialplan::split_args(args);
    let arg = |at: usize| args.get(at).map_or("", |text| text.trim());
    let results = call.run.numbers.borrow();
    let found = results.iter().find(|(id, _)| id.to_string() == arg(0));
    let (_, found) =
        found.ok_or_else(|| Fault::new(format!("nothing was asked under the id '{}'", arg(0))))?;
    if arg(1).eq_ignore_ascii_case("getnum") {
        out.push_str(&found.len().to_string());
        return Ok(());
    }
    let number: usize =
        arg(1).parse().map_err(|_| Fault::new(format!("'{}' is neither a number nor getnum", arg(1))))?;
    let result = number.checked_sub(1).and_then(|at| found.get(at));
    out.push_str(
        result.ok_or_else(|| Fault::new(format!("there is no result {number} of {}", found.len())))?,
    );
    Ok(())
}

fn naptr(records: Records) -> Option<Arc<[Naptr]>> {
    if let Records::Naptr(records) = records { Some(records) } else { None }
}

/// What one call of the function asks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    /// Domain name whose records answer it.
    name: String,
    /// What the rules are applied to.
    subject: String,
    /// Enumservice; `None` is `ALL`.
    method: Option<String>,
    count: bool,
    whole_uri: bool,
    /// 1 and up.
    record: usize,
}

impl Question {
    fn parse(args: &str) -> Result<Self, Fault> {
        let args = dialplan::split_args(args);
        let arg = |at: usize| args.get(at).map_or("", |text| text.trim());
        let (number, options) = (arg(0), arg(2));
        if number.is_empty() {
            return Err(Fault::new("the number is missing"));
        }
        if number.len() > NUMBER_BYTES_MAX {
            return Err(Fault::new(format!("the number is longer than {NUMBER_BYTES_MAX} characters")));
        }
        let method = match arg(1) {
            // The technology's name stands for the service it speaks.
            "" | "pjsip" | "PJSIP" => Some("sip"),
            all if all.eq_ignore_ascii_case("ALL") => None,
            other => Some(other),
        };
        let record =
            if arg(3).is_empty() { Some(1) } else { arg(3).parse().ok().filter(|record| *record > 0) };
        let record = record.ok_or_else(|| Fault::new(format!("record# '{}' is not 1 or more", arg(3))))?;
        let name = domain_name(number, options, arg(4))?;
        Ok(Self {
            name,
            subject: number.to_owned(),
            method: method.map(str::to_ascii_lowercase),
            count: options.contains('c'),
            whole_uri: options.contains('u'),
            record,
        })
    }

    /// What `ENUMQUERY(number[,method-type[,zone-suffix]])` asks.
    fn of_query(args: &str) -> Result<Self, Fault> {
        let args = dialplan::split_args(args);
        let arg = |at: usize| args.get(at).map_or("", |text| text.trim());
        Self::parse(&format!("{},{},,1,{}", arg(0), arg(1), arg(2)))
    }
    /// Everything that fits, best first.
    fn all(&self, records: &[Naptr]) -> Vec<String> {
        let each = (1..=records.len()).map(|record| {
            let mut out = String::new();
            Self { record, ..self.clone() }.answer(records, &mut out);
            out
        });
        each.take_while(|found| !found.is_empty()).collect()
    }

    fn answer(&self, records: &[Naptr], out: &mut String) {
        let mut usable: Vec<(&Naptr, String)> = records
            .iter()
            .filter(|record| is_terminal(record) && self.wants(&record.service))
            .filter_map(|record| Some((record, self.uri(&record.regexp)?)))
            .collect();
        usable.sort_by_key(|(record, _)| (record.order, record.preference));
        if self.count {
            out.push_str(&usable.len().to_string());
        } else if let Some((_, uri)) = usable.get(self.record - 1) {
            let bare = uri.split_once(':').map(|(_, rest)| rest);
            let keeps_scheme = self.whole_uri || self.method.is_none();
            out.push_str(if keeps_scheme { uri } else { bare.unwrap_or(uri) });
        }
    }
    /// Whether a services field names the enumservice that is asked for: `E2U+type:subtype+…` (RFC 6116 §3.4.3), or the
    /// older `type+E2U` (RFC 2916).
    fn wants(&self, service: &str) -> bool {
        let parts: Vec<&str> = service.split('+').collect();
        let services: &[&str] = match parts.as_slice() {
            [first, services @ ..] if first.eq_ignore_ascii_case("E2U") => services,
            [services @ .., last] if last.eq_ignore_ascii_case("E2U") => services,
            _ => return false,
        };
        let Some(method) = &self.method else { return !services.is_empty() };
        services.iter().any(|service| {
            let class = service.split(':').next().unwrap_or(service);
            service.eq_ignore_ascii_case(method) || class.eq_ignore_ascii_case(method)
        })
    }
    /// The URI that a rule makes of the number; of the number with its `+` (RFC 6116 §3.3) when it was written without
    /// and the rule wants one.
    fn uri(&self, rule: &str) -> Option<String> {
        let rule = Rule::parse(rule)?;
        rule.apply(&self.subject).or_else(|| {
            let bare = self.subject.bytes().all(|byte| byte.is_ascii_digit());
            bare.then(|| rule.apply(&format!("+{}", self.subject))).flatten()
        })
    }
}

/// Whether a record's rule ends with a URI (RFC 6116 §3.4.2); others lead to further look-ups, which are not made.
fn is_terminal(record: &Naptr) -> bool {
    record.flags.eq_ignore_ascii_case("u")
}

/// The domain name to ask for. Options: `d` takes the number as it is, `s` splits an ISN at its `*`, `i` goes to the
/// infrastructure branch behind the country code.
fn domain_name(number: &str, options: &str, suffix: &str) -> Result<String, Fault> {
    let isn = options.contains('s').then(|| number.split_once('*')).flatten();
    let suffix = match suffix.trim_matches('.') {
        "" if isn.is_some() => "freenum.org",
        "" => "e164.arpa",
        suffix => suffix,
    };
    let name = if options.contains('d') {
        format!("{}.{suffix}", number.trim_matches('.'))
    } else if let Some((subscriber, domain)) = isn {
        format!("{}{}.{suffix}", reversed(&digits(subscriber)), digits(domain))
    } else {
        let digits = digits(number);
        let branch = if options.contains('i') { country_code(&digits) } else { 0 };
        let (country, rest) = digits.split_at_checked(branch).unwrap_or((&digits, ""));
        let middle = if branch > 0 { "i." } else { "" };
        format!("{}{middle}{}{suffix}", reversed(rest), reversed(country))
    };
    let name = name.to_ascii_lowercase();
    let fits = name.len() <= NAME_BYTES_MAX
        && name.split('.').all(|label| (1..=63).contains(&label.len()))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if fits { Ok(name) } else { Err(Fault::new(format!("'{number}' makes no domain name"))) }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// Digits in reverse, a dot after each.
fn reversed(digits: &str) -> String {
    digits.chars().rev().flat_map(|digit| [digit, '.']).collect()
}

/// How many digits the country code has (ITU-T E.164 list of country codes: 1 and 7; the two-digit codes; else three).
fn country_code(digits: &str) -> usize {
    let two = digits.get(..2).and_then(|code| code.parse::<u8>().ok());
    let length = match two {
        None => digits.len(),
        Some(10..=19 | 70..=79) => 1,
        Some(
            20
            | 27
            | 28
            | 30..=34
            | 36
            | 39
            | 40
            | 41
            | 43..=49
            | 51..=58
            | 60..=66
            | 81..=84
            | 86
            | 90..=95
            | 98,
        ) => 2,
        Some(_) => 3,
    };
    length.min(digits.len())
}

/// The substitution of a record (RFC 3402 §3.2).
struct Rule {
    pattern: Regex,
    replacement: String,
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let delimiter = text.chars().next()?;
        if delimiter.is_ascii_digit() || delimiter == '\\' || delimiter == 'i' {
            return None;
        }
        let mut parts = vec![String::new()];
        let mut symbols = text.chars().skip(1);
        while let Some(symbol) = symbols.next() {
            let part = parts.last_mut()?;
            match symbol {
                '\\' => match symbols.next()? {
                    escaped if escaped == delimiter => part.push(delimiter),
                    other => part.extend(['\\', other]),
                },
                _ if symbol == delimiter => parts.push(String::new()),
                _ => part.push(symbol),
            }
        }
        // The flag `i` changes nothing for numbers, which have no case.
        let [pattern, replacement, _flags] = <[String; 3]>::try_from(parts).ok()?;
        Some(Self { pattern: Regex::new(&pattern).ok()?, replacement })
    }
    /// The URI for `subject`; `None` when the expression does not match or what it makes cannot be a URI.
    fn apply(&self, subject: &str) -> Option<String> {
        let found = self.pattern.find(subject)?;
        let mut uri = String::new();
        let mut symbols = self.replacement.chars();
        while let Some(symbol) = symbols.next() {
            let escaped = if symbol == '\\' { symbols.next() } else { None };
            match escaped.map(|escaped| (escaped, escaped.to_digit(10))) {
                Some((_, Some(group @ 1..=9))) => {
                    let range = found.group(u16::try_from(group).ok()?);
                    uri.push_str(range.and_then(|range| subject.get(range)).unwrap_or_default());
                }
                Some((escaped, _)) => uri.push(escaped),
                None => uri.push(symbol),
            }
        }
        // What comes from the DNS goes into a dial string: no separators of Dial, no controls.
        let clean = !uri.chars().any(|symbol| symbol.is_control() || "&,|\"<> ".contains(symbol));
        (clean && !uri.is_empty() && uri.len() <= URI_BYTES_MAX).then_some(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6116_3_2_a_number_becomes_a_name() {
        for (number, options, suffix, expected) in [
            ("+442079460148", "", "", Some("8.4.1.0.6.4.9.7.0.2.4.4.e164.arpa")),
            ("+44-207-946-0148", "", "", Some("8.4.1.0.6.4.9.7.0.2.4.4.e164.arpa")),
            ("442", "c", "E164.Example.", Some("2.4.4.e164.example")),
            ("+442079", "i", "", Some("9.7.0.2.i.4.4.e164.arpa")),
            ("+12125", "i", "", Some("5.2.1.2.i.1.e164.arpa")),
            ("+35312", "i", "", Some("2.1.i.3.5.3.e164.arpa")),
            ("1234*256", "s", "", Some("4.3.2.1.256.freenum.org")),
            ("1234*256", "s", "isn.example", Some("4.3.2.1.256.isn.example")),
            ("alice.host", "d", "example", Some("alice.host.example")),
            ("al&ice", "d", "example", None),
            ("a..b", "d", "example", None),
        ] {
            let name = domain_name(number, options, suffix).ok();
            assert_eq!(name.as_deref(), expected, "{number} {options} {suffix}");
        }
    }

    #[test]
    fn rfc3402_3_2_a_rule_is_pattern_replacement_and_flags_between_delimiters() {
        for (rule, subject, expected) in [
            ("!^.*$!sip:info@example.com!", "+4412", Some("sip:info@example.com")),
            (r"!^\+44(.*)$!sip:\1@example.com!", "+4412", Some("sip:12@example.com")),
            (r"/^(.)(.).*$/tel:\2\1/i", "+4412", Some("tel:4+")),
            (r"#^.*$#sip:a\#b@example.com#", "1", Some("sip:a#b@example.com")),
            ("!^9!sip:x@example.com!", "1", None),
            ("!^.*$!sip:a@example.com", "1", None),
            ("!^(!sip:a@example.com!", "1", None),
            ("1^.*1sip:a@example.com1", "1", None),
            ("!^.*$!sip:a@example.com&PJSIP/trunk!", "1", None),
            ("", "1", None),
        ] {
            let uri = Rule::parse(rule).and_then(|rule| rule.apply(subject));
            assert_eq!(uri.as_deref(), expected, "{rule}");
        }
    }

    fn record(order: u16, preference: u16, service: &str, regexp: &str) -> Naptr {
        let flags = "u".to_owned();
        Naptr {
            order,
            preference,
            flags,
            service: service.to_owned(),
            regexp: regexp.to_owned(),
            ..Naptr::default()
        }
    }

    #[test]
    fn rfc6116_3_4_records_are_chosen_by_service_and_sorted_by_order_then_preference() {
        let mut records = vec![
            record(20, 10, "E2U+sip", "!^.*$!sip:third@example.com!"),
            record(10, 20, "E2U+SIP", "!^.*$!sip:second@example.com!"),
            record(10, 10, "sip+E2U", "!^.*$!sip:first@example.com!"),
            record(5, 10, "E2U+voice:tel+sms:tel", "!^(.*)$!tel:\\1!"),
            record(1, 1, "sip", "!^.*$!sip:no-enum@example.com!"),
            record(1, 1, "E2U+sip", "!^broken"),
        ];
        records.push(Naptr { flags: String::new(), ..record(1, 1, "E2U+sip", "!^.*$!sip:x@example.com!") });
        for (args, expected) in [
            ("+4412", "first@example.com"),
            ("+4412,pjsip,u", "sip:first@example.com"),
            ("+4412,sip,,2", "second@example.com"),
            ("+4412,sip,,3", "third@example.com"),
            ("+4412,sip,,4", ""),
            ("+4412,sip,c", "3"),
            ("+4412,ALL,c", "4"),
            ("+4412,ALL,,1", "tel:+4412"),
            ("+4412,ALL,,2", "sip:first@example.com"),
            ("+4412,tel", ""),
            ("+4412,voice", "+4412"),
            ("+4412,sms:tel,u", "tel:+4412"),
            ("+4412,h323,c", "0"),
        ] {
            let mut out = String::new();
            Question::parse(args).unwrap().answer(&records, &mut out);
            assert_eq!(out, expected, "{args}");
        }
        let strict = [record(1, 1, "E2U+sip", r"!^\+(.*)$!sip:\1@example.com!")];
        let mut out = String::new();
        Question::parse("4412").unwrap().answer(&strict, &mut out);
        assert_eq!(out, "4412@example.com", "a number without its plus");
        for bad in ["", ",sip", "4412,sip,,0", "4412,sip,,x"] {
            assert!(Question::parse(bad).is_err(), "{bad}");
        }
    }
}
