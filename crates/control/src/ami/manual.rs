//! The manual of the manager protocol, made from the tables that the machine runs by.

use std::fmt::Write as _;

use super::capability;
use super::{EVENTS, HEADERS_MAX, LINE_BYTES_MAX, LOGIN_TIMEOUT, STRANGERS_OF_ADDRESS_MAX, actions};

const HEAD: &str = "\
# Manager interface

Programs that steer the PBX or show what it does connect by TCP to the port of `manager.conf` (5038) and speak the
protocol that Asterisk calls AMI. [`manager.conf`](configuration.md#managerconf) says who may; the interface is off
until `enabled = yes` stands there.

An action is lines of `Name: value`, ended by an empty line; names are read in any case, and a header may be repeated.
Every action is answered by `Response: Success`, `Error` or `Goodbye`, with the `ActionID` of the action. An action
that lists goes on with one event an item, and ends with an event that has `EventList: Complete` and `ListItems`.
Events come in between, each with the class that a user needs in `read=`.

```text
Action: Login
Username: wallboard
Secret: correct-horse-battery

Action: Originate
ActionID: 17
Channel: PJSIP/6001
Context: default
Exten: 100
Priority: 1
Async: true
```

## Over HTTP

With `webenabled = yes` in `manager.conf` and the server of [`http.conf`](configuration.md#httpconf) switched on, an action
is a request whose query or posted form holds its headers: `/rawman?action=Ping` answers as a connection would, `/mxml` in
XML, `/manager` as a page. `Login` gives a cookie; the session lasts `httptimeout` seconds after the last request. What
happens meanwhile waits, up to 1 MiB, until `WaitEvent` fetches it; `WaitEvent` without anything waiting answers with the
next event. `/arawman`, `/amxml` and `/amanager` ask for HTTP digest authentication instead of `Login`.

A browser sends cookies and passwords along for whatever page asks. So a request that names another page (`Origin`, or
`Sec-Fetch-Site` other than `same-origin` and `none`) gets 403, unless `allowed_origins` of [`ari.conf`](configuration.md#ariconf)
names that page; programs name none. Sections of `type=restriction` in `http.conf` say which addresses may ask.

## Filters

`eventfilter` of a user and the action Filter choose among the events that a session may get. In its plain form a filter is
an expression that is looked for in the whole event, with a leading `!` to hold back what it matches. With criteria it is
quicker and surer: `eventfilter(name(Hangup),header(Channel),method(starts_with)) = PJSIP/`. Criteria are
`action(include)` or `action(exclude)`, `name(EVENT)`, `header(NAME)` and `method(regex)`, `exact`, `starts_with`,
`ends_with`, `contains` or `none`. What some filter excludes is not sent; once one includes, only what is included is.

";

/// The manual as Markdown; `docs/manager.md` is this text.
pub fn manual() -> String {
    let mut out = String::from(HEAD);
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "## Limits\n\n\
         A line may have {LINE_BYTES_MAX} bytes and an action {HEADERS_MAX} headers; more is answered by an error, and \
         ends a connection that is not logged in.\n\
         A connection must log in within {} seconds, or within `authtimeout` when that is written, and one address may \
         have {STRANGERS_OF_ADDRESS_MAX} that have not, `authlimit` all together. When that many wait, the address with most of them \
         loses its oldest to the next that connects, so that connections which say nothing keep nobody out.\n\
         A client that does not read is disconnected when 1 MiB waits for it; it delays nobody else.\n\n\
         An unknown user, a wrong secret, a wrong key and an address that is not permitted are answered alike; the log \
         tells them apart, with the levels `notice` and `security`.\n",
        LOGIN_TIMEOUT.as_secs()
    );
    out.push_str(
        "\n## What needs the class system\n\n\
         Getvar, Setvar, Status, AGI, the variables of Originate and `dialplan eval function` reach functions that act on \
         calls. What reaches further is refused where it is evaluated, inside other functions and by the names of \
         variables, too. Functions that reach mailboxes, queues or the DNS, and EVAL(), need the class `system` as well. \
         Files, the environment, databases, locks, other servers and programs need `live_dangerously = yes` in \
         asterisk.conf, whatever the class. A user without the class `call` sets nothing by reading: SET(), INC(), POP() \
         and their kin are refused. The dialplan of the site itself has all rights.\n\n\
         DBPut, DBDel and DBDelTree answer when the change is on the disk. All sessions together have two milliseconds of \
         each turn of the server; what is sent beyond that waits for the next, up to 1 MiB a session.\n\n\
         The class `system` (or `live_dangerously`) is needed for originating an application that is not in this list, \
         too; arguments of a user with it may touch everything, as the application itself might:\n\n",
    );
    let _ = writeln!(out, "{}.", capability::PLAIN_APPLICATIONS.join(", "));
    out.push_str("\n## Actions\n");
    for row in actions() {
        let _ = writeln!(out, "\n### {}\n\n{}", row.name, row.synopsis);
        if !row.class.is_empty() {
            let names: Vec<String> = row.class.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(out, "\nNeeds {} in `write=`.", names.join(" or "));
        }
        if !row.fields.is_empty() {
            out.push_str("\n| header | | |\n|---|---|---|\n");
        }
        for field in row.fields {
            let need = if field.required { "needed" } else { "" };
            let _ = writeln!(out, "| `{}` | {need} | {} |", field.name, field.text);
        }
    }
    out.push_str(
        "\n## Events\n\n\
         `Channel*` stands for Channel, ChannelState, ChannelStateDesc, CallerIDNum, CallerIDName, ConnectedLineNum, \
         ConnectedLineName, Language, AccountCode, Context, Exten, Priority, Uniqueid and Linkedid; `Dest*` for the same \
         of the dialled channel, each with `Dest` before its name (`Transferer*` and the like in the same way); `Bridge*` for BridgeUniqueid, BridgeType, \
         BridgeTechnology, BridgeCreator, BridgeName, BridgeNumChannels and BridgeVideoSourceMode. Control characters in \
         values are sent as blanks; in the value of VarSet, line ends and tabs as `\\n`, `\\r` and `\\t`. Variables \
         that `channelvars` names come as `ChanVariable: NAME=value` (`DestChanVariable` for the dialled channel), as \
         long as the channel is up.\n\n\
         | event | class | fields | |\n|---|---|---|---|\n",
    );
    for row in EVENTS {
        let _ = writeln!(
            out,
            "| {} | `{}` | {} | {} |",
            row.name,
            row.class,
            row.fields.join(", "),
            row.synopsis
        );
    }
    out
}
