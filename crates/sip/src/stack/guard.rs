//! Who is to blame for a panic, and how the rest goes on.

use super::{DialogId, Output, Stack};
use crate::layer::Place;
use base::Instant;

impl Stack {
    /// To be called when a panic came out of [`receive`](Self::receive), [`due`](Self::due) or
    /// [`transport_error`](Self::transport_error): forgets the transaction whose machine it was, and tells the dialog that
    /// was worked on. That dialog is in an unknown state; the driver ends it by [`hang_up`](Self::hang_up) or, should
    /// that panic too, by [`evict`](Self::evict).
    pub fn recover(&mut self, now: Instant, out: &mut Vec<Output>) -> Option<DialogId> {
        let dialog = self.layer.abandon_in_hand();
        let blamed = self.in_hand.take().or(dialog);
        self.heed_notices(now, out);
        self.in_hand = None;
        blamed.filter(|place| self.calls.get(*place).is_some()).map(DialogId)
    }

    /// Makes the dialog's next step panic: fault injection for tests of the whole.
    #[doc(hidden)]
    pub fn inject_panic(&mut self, dialog: DialogId) -> bool {
        let call = self.calls.get_mut(dialog.0);
        call.map(|call| call.poisoned = true).is_some()
    }

    /// This call is worked on from here on.
    pub(super) fn enter(&mut self, place: Place) {
        self.in_hand = Some(place);
        if let Some(call) = self.calls.get_mut(place) {
            assert!(!core::mem::take(&mut call.poisoned), "a fault injected into a SIP dialog");
        }
    }
}
