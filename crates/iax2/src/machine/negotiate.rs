//! Which format a call gets (RFC 5456 §6.2.2 and the field's `codecpriority`).

use crate::frame::Media;
use base::FormatId;

/// Whose wishes go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Ours, in our order.
    #[default]
    Host,
    /// The caller's, in its order; then ours.
    Caller,
    /// The format that the caller asks for; then our order.
    Disabled,
    /// The format that the caller asks for, or none.
    ReqOnly,
}

/// What the caller brings.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    /// What it can.
    pub(super) can: Media,
    /// What it asks for.
    pub(super) wish: Media,
    /// Its order.
    pub(super) order: Vec<FormatId>,
}

impl Offer {
    /// The format of the call; `None` when there is none that both sides have.
    pub(super) fn choose(&self, priority: Priority, ours: &[FormatId]) -> Option<FormatId> {
        let can = self.can.with(self.wish);
        let wish = self.wish.format().filter(|format| ours.contains(format));
        let by_us = || ours.iter().copied().find(|format| can.contains(*format));
        match priority {
            Priority::Host => by_us(),
            Priority::Caller => {
                let by_caller = |format: &&FormatId| can.contains(**format) && ours.contains(format);
                self.order.iter().find(by_caller).copied().or(wish).or_else(by_us)
            }
            Priority::Disabled => wish.or_else(by_us),
            Priority::ReqOnly => wish,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_chosen_by_whose_wishes_go_first() {
        const U: FormatId = FormatId::ULAW;
        const A: FormatId = FormatId::ALAW;
        const G: FormatId = FormatId::GSM;
        use Priority::{Caller, Disabled, Host, ReqOnly};
        for (name, priority, ours, can, wish, order, chosen) in [
            ("our order", Host, &[A, U][..], &[U, A][..], U, &[U, A][..], Some(A)),
            ("the caller's order", Caller, &[A, U], &[U, A], A, &[U, A], Some(U)),
            ("the caller's order, as far as we have it", Caller, &[A], &[G, A], G, &[G, A], Some(A)),
            ("no order: its wish", Caller, &[A, U], &[U, A], U, &[], Some(U)),
            ("its wish", Disabled, &[A, U], &[U, A], U, &[], Some(U)),
            ("its wish is not ours", Disabled, &[A], &[U, A], U, &[], Some(A)),
            ("only its wish", ReqOnly, &[A], &[U, A], U, &[], None),
            ("nothing in common", Host, &[G], &[U, A], U, &[], None),
            ("a wish that it does not list", Host, &[U], &[], U, &[], Some(U)),
        ] {
            let offer = Offer { can: Media::all(can), wish: Media::of(wish).unwrap(), order: order.to_vec() };
            assert_eq!(offer.choose(priority, ours), chosen, "{name}");
        }
    }
}
