//! Parked calls as events, and the fields that they have in lists.

use call::parking::{ParkingChange, ParkingNotice};

use super::events::{Event, channel};
use super::packet::Message;

/// The fields of a parked call.
pub(crate) fn fields<'a>(message: Message<'a>, of: &ParkingNotice) -> Message<'a> {
    let mut message = channel(message, "Parkee", &of.parkee);
    for (prefix, other) in [("Parker", &of.parker), ("Retriever", &of.retriever)] {
        if let Some(other) = other {
            message = channel(message, prefix, other);
        }
    }
    message
        .field("ParkerDialString", &of.parker_dial)
        .field("Parkinglot", &of.lot)
        .field("ParkingSpace", of.space)
        .field("ParkingTimeout", of.timeout)
        .field("ParkingDuration", of.duration)
}

/// One thing that happened.
pub(crate) fn event(of: &ParkingNotice) -> Event {
    let name = match of.change {
        ParkingChange::Parked => "ParkedCall",
        ParkingChange::TimedOut => "ParkedCallTimeOut",
        ParkingChange::GaveUp => "ParkedCallGiveUp",
        ParkingChange::Swapped => "ParkedCallSwap",
        ParkingChange::Fetched => "UnParkedCall",
    };
    Event::new(name).with(|m| fields(m, of))
}
