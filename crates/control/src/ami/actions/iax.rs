//! IAX2 peers, registrations and how the network treats calls.

use super::super::table::{ActionRow, After, Done, Turn};
use crate::iax::Show;
use driver::iax::PeerRow;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "IAXpeers",
        class: &["system", "reporting"],
        synopsis: "Lists IAX2 peers.",
        fields: &[],
        run: peers,
    },
    ActionRow {
        name: "IAXpeerlist",
        class: &["system", "reporting"],
        synopsis: "Lists IAX2 peers.",
        fields: &[],
        run: peers,
    },
    ActionRow {
        name: "IAXregistry",
        class: &["system", "reporting"],
        synopsis: "Lists registrations of ours at IAX2 servers.",
        fields: &[],
        run: registry,
    },
    ActionRow {
        name: "IAXnetstats",
        class: &["system", "reporting"],
        synopsis: "Shows how the network treats IAX2 calls, as the table of the console.",
        fields: &[],
        run: netstats,
    },
];

/// What IAX2 says; nothing of everything when it is not served.
fn ask<T: Default>(turn: &Turn<'_>, answer: impl FnOnce(&dyn Show) -> T) -> T {
    turn.site.iax_sight.borrow().as_ref().map(|iax| answer(&*iax.borrow())).unwrap_or_default()
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn peers(turn: &mut Turn<'_>) -> Done {
    let rows = ask(turn, |iax| iax.peers(None));
    turn.begin_list("IAX Peer status list will follow");
    for row in &rows {
        peer(turn, row);
    }
    turn.end_list("PeerlistComplete", rows.len()).end();
    Ok(After::Go)
}

fn peer(turn: &mut Turn<'_>, row: &PeerRow) {
    let address = row.address.map_or_else(|| "(null)".to_owned(), |address| address.ip().to_string());
    let description =
        row.options.iter().find(|(name, _)| *name == "description").map_or("", |(_, text)| text);
    let entry = turn.item("PeerEntry").field("Channeltype", "IAX2").field("ObjectName", &row.name);
    let entry = if row.username.is_empty() { entry } else { entry.field("ObjectUsername", &row.username) };
    entry
        .field("ChanObjectType", "peer")
        .field("IPaddress", address)
        .field("Mask", "(null)")
        .field("Port", row.address.map_or(0, |address| address.port()))
        .field("Dynamic", yes_no(row.is_dynamic))
        .field("Trunk", yes_no(row.trunk))
        .field("Encryption", yes_no(row.encrypted))
        .field("Status", row.state.text())
        .field("RealtimeDevice", yes_no(row.is_realtime))
        .field("Description", description)
        .end();
}

fn registry(turn: &mut Turn<'_>) -> Done {
    let rows = ask(turn, |iax| iax.registry());
    turn.begin_list("Registrations will follow");
    for row in &rows {
        let perceived =
            row.perceived.map_or_else(|| "<Unregistered>".to_owned(), |address| address.to_string());
        let by_name = row.place.parse::<core::net::SocketAddr>().is_err();
        turn.item("RegistryEntry")
            .field("Host", &row.place)
            .field("DNSmanager", if by_name { "Y" } else { "N" })
            .field("Username", &row.username)
            .field("Perceived", perceived)
            .field("Refresh", row.refresh)
            .field("State", row.state.name())
            .end();
    }
    turn.end_list("RegistrationsComplete", rows.len()).end();
    Ok(After::Go)
}

/// Lines of the table, each a header of its own, so that no line is taken for one.
fn netstats(turn: &mut Turn<'_>) -> Done {
    let text = crate::cli::iax_netstats(&ask(turn, |iax| iax.netstats()));
    let response = turn.response("Success");
    text.lines().fold(response, |response, line| response.field("Output", line)).end();
    Ok(After::Go)
}
