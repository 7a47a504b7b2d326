//! `ODBC()`, `ODBC_Commit` and `ODBC_Rollback`: transactions that functions of `func_odbc.conf` are parts of.

use base::Isolation;
use call::Level;
use call::transactions::OwnTransaction;
use dialplan::{Fault, split_args};

use super::Read;
use crate::{AppFuture, Call, Flow};

/// Property, and the transaction or the database.
fn parts(args: &str) -> (String, Option<String>) {
    let mut args = split_args(args).into_iter().map(|part| part.trim().to_owned());
    let property = args.next().unwrap_or_default().to_ascii_lowercase();
    (property, args.next().filter(|argument| !argument.is_empty()))
}

/// A transaction of the channel.
fn own(call: &Call, name: Option<&str>) -> Option<OwnTransaction> {
    call.chan.core(|core| core.transaction(call.chan.id(), name).cloned())
}

fn unknown_property(property: &str) -> Fault {
    Fault::new(format!("'{property}' is none of transaction, forcecommit and isolation"))
}

/// `${ODBC(transaction)}`, `${ODBC(forcecommit[,name])}`, `${ODBC(isolation[,name])}`: empty where there is none.
pub(super) fn read(call: &Call, args: &str, out: &mut String) -> Read {
    let (property, name) = parts(args);
    let found = own(call, name.as_deref().filter(|_| property != "transaction"));
    match (property.as_str(), found) {
        ("transaction", Some(own)) => out.push_str(&own.name),
        ("forcecommit", Some(own)) => out.push(if own.rules.forcecommit { '1' } else { '0' }),
        ("isolation", Some(own)) => out.push_str(own.rules.isolation.name()),
        ("transaction" | "forcecommit" | "isolation", None) => {}
        (other, _) => return Err(unknown_property(other)),
    }
    Ok(())
}

/// `Set(ODBC(transaction[,database])=name)`, `Set(ODBC(forcecommit[,name])=…)`, `Set(ODBC(isolation[,name])=…)`.
pub(super) fn write(call: &Call, args: &str, value: &str) -> Read {
    let (property, argument) = parts(args);
    let (id, value) = (call.chan.id(), value.trim());
    let rule = |with: &dyn Fn(&mut call::transactions::TransactionRules)| {
        let there = call.chan.core(|core| core.rule_transaction(id, argument.as_deref(), with));
        there.then_some(()).ok_or(Fault::new("there is no such transaction"))
    };
    match property.as_str() {
        "transaction" => {
            let database = argument.as_deref().unwrap_or_default();
            let activated = call.chan.core(|core| core.activate_transaction(id, value, database));
            activated.map_err(|why| Fault::new(why.words()))
        }
        "forcecommit" => {
            let commits = conf::boolean(value).unwrap_or(false);
            rule(&|rules| rules.forcecommit = commits)
        }
        "isolation" => {
            let Some(level) = Isolation::named(value) else {
                let names = Isolation::NAMES.map(|(name, _)| name).join(", ");
                return Err(Fault::new(format!("'{value}' is none of {names}")));
            };
            rule(&|rules| rules.isolation = level)
        }
        other => Err(unknown_property(other)),
    }
}

/// `ODBC_Commit([name])`.
pub(crate) fn commit(call: Call, args: String) -> AppFuture {
    Box::pin(async move { end(call, &args, true).await })
}

/// `ODBC_Rollback([name])`.
pub(crate) fn roll_back(call: Call, args: String) -> AppFuture {
    Box::pin(async move { end(call, &args, false).await })
}

/// Ends a transaction, and waits for it: what follows may read what it has done.
async fn end(call: Call, args: &str, commit: bool) -> crate::Outcome {
    let name = Some(args.trim()).filter(|name| !name.is_empty());
    let Some(own) = own(&call, name) else {
        call.log(Level::Warning, "there is no such transaction");
        call.set("ODBCSTATUS", "FAILURE");
        return Ok(Flow::Continue);
    };
    let ended = call.ask_database(own.end(commit), false).await?;
    if let Err(why) = &ended {
        let done = if commit { "committed" } else { "rolled back" };
        call.log(Level::Warning, &format!("transaction {} was not {done}: {why}", own.name));
    }
    call.set("ODBCSTATUS", if ended.is_ok() { "SUCCESS" } else { "FAILURE" });
    Ok(Flow::Continue)
}
