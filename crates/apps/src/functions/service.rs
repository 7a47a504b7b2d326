//! SRVQUERY() and SRVRESULT(): who serves a service, as the DNS says (RFC 2782).
//!
//! The answers of the DNS are fetched before a step's arguments are expanded ([`Call::fetch_services`]). What came of a
//! query is kept with the run, in the order in which it is to be tried, under the service's name: that is its id.

use core::time::Duration;

use base::dns::{Kind, Question, Records, Srv};
use call::{Level, Stop};
use dialplan::Fault;

use super::{Read, unknown};
use crate::Call;
use crate::call_ctx::args;

/// How long a step waits for the DNS.
const WAIT: Duration = Duration::from_secs(5);
/// Services that a run remembers; the oldest is forgotten for another.
const SERVICES_MAX: usize = 16;

/// A service, and who serves it in the order of trial; `None`: the DNS gave no answer in time.
pub(crate) type Served = (String, Option<Vec<Srv>>);

impl Call {
    /// Asks for what the calls of `SRVQUERY()`, and of `SRVRESULT()` with a service that was not asked for, need.
    pub(crate) async fn fetch_services(&self, text: &str, after_end: bool) -> Result<(), Stop> {
        let deadline = self.chan.now() + WAIT;
        let asks = |name: &'static str| dialplan::functions::calls(text, name);
        // An inner call stands after the one whose argument it is.
        let queries: Vec<(&str, bool)> = asks("SRVRESULT")
            .map(|args| (args, false))
            .chain(asks("SRVQUERY").map(|args| (args, true)))
            .take(SERVICES_MAX)
            .collect();
        for (args, anew) in queries.into_iter().rev() {
            let args = self.expand(args);
            let question = Question::new(Kind::Srv, args::nth(&args::split(&args), 0).trim());
            let known = self.run.served.borrow().iter().any(|(name, _)| *name == question.name);
            if !question.is_askable() || known && !anew {
                continue;
            }
            let records = self.chan.dns(&question, deadline, after_end).await?;
            let found = records
                .map(|records| if let Records::Srv(found) = records { found.to_vec() } else { Vec::new() });
            let found = found.map(|found| in_order(found, || self.chan.core(call::Core::random)));
            if found.is_none() {
                self.log(Level::Warning, &format!("SRVQUERY: the DNS gave no answer for {}", question.name));
            }
            let mut served = self.run.served.borrow_mut();
            served.retain(|(name, _)| *name != question.name);
            if served.len() >= SERVICES_MAX {
                served.remove(0);
            }
            served.push((question.name, found));
        }
        Ok(())
    }
}

/// RFC 2782: the lowest priority first; among equals each comes next with the share that its weight has of theirs.
fn in_order(mut found: Vec<Srv>, mut random: impl FnMut() -> u64) -> Vec<Srv> {
    // A host without a name says that the service is decidedly not there.
    found.retain(|record| !record.target.is_empty());
    // Those without weight come first, so that a draw of 0 can choose them.
    found.sort_by_key(|record| (record.priority, record.weight > 0));
    let mut ordered = Vec::with_capacity(found.len());
    while let Some(priority) = found.first().map(|record| record.priority) {
        let alike = found.iter().take_while(|record| record.priority == priority);
        let total: u64 = alike.map(|record| u64::from(record.weight)).sum();
        let drawn = random() % (total + 1);
        let mut sum = 0;
        let chosen = found.iter().position(|record| {
            sum += u64::from(record.weight);
            sum >= drawn
        });
        ordered.push(found.remove(chosen.unwrap_or(0)));
    }
    ordered
}

/// `SRVQUERY(service)`.
pub(super) fn read_query(call: &Call, service: &str, out: &mut String) -> Read {
    let question = Question::new(Kind::Srv, service.trim());
    let served = call.run.served.borrow();
    match served.iter().find(|(name, _)| *name == question.name) {
        Some((name, Some(_))) => out.push_str(name),
        Some((_, None)) => return Err(Fault::new(format!("the DNS gave no answer for {}", question.name))),
        None if !question.is_askable() => {
            return Err(Fault::new(format!("'{service}' is no name of a service")));
        }
        None => return Err(Fault::new("asks only where a step of the dialplan spells it out")),
    }
    Ok(())
}

/// `SRVRESULT(id,number|getnum[,field])`; without a field the host.
pub(super) fn read_result(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    let question = Question::new(Kind::Srv, arg(0));
    let served = call.run.served.borrow();
    let found = served.iter().find(|(name, _)| *name == question.name);
    let found = found.ok_or_else(|| Fault::new(format!("nothing was asked about '{}'", arg(0))))?;
    let found = found.1.as_deref().unwrap_or_default();
    if arg(1).eq_ignore_ascii_case("getnum") {
        out.push_str(&found.len().to_string());
        return Ok(());
    }
    let number: usize =
        arg(1).parse().map_err(|_| Fault::new(format!("'{}' is neither a number nor getnum", arg(1))))?;
    let record = number.checked_sub(1).and_then(|index| found.get(index));
    let record =
        record.ok_or_else(|| Fault::new(format!("there is no result {number} of {}", found.len())))?;
    match arg(2) {
        "" | "host" => out.push_str(&record.target),
        "port" => out.push_str(&record.port.to_string()),
        "priority" => out.push_str(&record.priority.to_string()),
        "weight" => out.push_str(&record.weight.to_string()),
        other => return Err(unknown(other)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(priority: u16, weight: u16, target: &str) -> Srv {
        Srv { priority, weight, port: 5060, target: target.to_owned() }
    }

    #[test]
    fn rfc2782_priorities_come_in_order_and_weights_share_what_is_alike() {
        let records =
            || vec![record(20, 0, "last"), record(10, 30, "a"), record(10, 0, "z"), record(10, 10, "b")];
        for (draws, expected) in [
            ([0, 0, 0, 0], ["z", "a", "b", "last"]),
            ([1, 0, 0, 0], ["a", "z", "b", "last"]),
            ([40, 30, 0, 0], ["b", "a", "z", "last"]),
        ] {
            let mut draws = draws.into_iter();
            let order = in_order(records(), || draws.next().unwrap());
            let order: Vec<&str> = order.iter().map(|record| &*record.target).collect();
            assert_eq!(order, expected);
        }
        let first = |seed: &mut u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            in_order(vec![record(1, 3, "a"), record(1, 1, "b")], || *seed >> 16)[0].target == "a"
        };
        let mut seed = 1;
        let share = (0..4000).filter(|_| first(&mut seed)).count();
        assert!((2900..=3300).contains(&share), "about 4 of 5, by the draw of RFC 2782: {share}");
        assert!(in_order(vec![record(0, 0, "")], || 0).is_empty(), "decidedly not there");
    }
}
