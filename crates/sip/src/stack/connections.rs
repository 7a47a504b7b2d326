//! Dialogs by the connection that their peers are reached by.

use std::collections::BTreeSet;

use crate::layer::{ConnectionId, Place};

/// Which dialogs a connection carries.
#[derive(Debug, Default)]
pub(super) struct Connections(BTreeSet<(ConnectionId, Place)>);

impl Connections {
    /// The dialog is found by `to` from here on; `known` is what it was found by.
    pub(super) fn follow(
        &mut self,
        place: Place,
        known: &mut Option<ConnectionId>,
        to: Option<ConnectionId>,
    ) {
        let before = core::mem::replace(known, to);
        if before == to {
            return;
        }
        self.forget(place, before);
        if let Some(connection) = to {
            self.0.insert((connection, place));
        }
    }
    /// The dialog has ended that was found by `known`.
    pub(super) fn forget(&mut self, place: Place, known: Option<ConnectionId>) {
        if let Some(connection) = known {
            self.0.remove(&(connection, place));
        }
    }
    /// The dialogs that are found by this connection.
    pub(super) fn of(&self, connection: ConnectionId) -> Vec<Place> {
        let (first, last) =
            (Place { slot: 0, generation: 0 }, Place { slot: u32::MAX, generation: u32::MAX });
        self.0.range((connection, first)..=(connection, last)).map(|(_, place)| *place).collect()
    }
}
