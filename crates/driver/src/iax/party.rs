//! Who is talked to: what the other side is told of it, and what is believed of what it tells.

use ::iax2::machine::Connected;
use base::ChannelId;
use call::{ChanEvent, Core, Notice};

use super::inbound::party_of;
use super::{At, IaxDriver};

impl IaxDriver {
    /// Tells the other side whom it talks to, unless it knows that already or does not want to know.
    pub(super) fn tell_connected(&mut self, core: &Core, channel: ChannelId) {
        let Some(party) = core.get(channel).map(|entry| entry.connected.clone()) else { return };
        let Some(leg) = self.leg_of(core, channel) else { return };
        let common = leg.party.common();
        let presentation = common.presentation.unwrap_or(party.number_presentation).code();
        let told = (party.number().to_owned(), party.name().to_owned(), presentation);
        let (Some((socket, place)), true) = (leg.place, common.lines.send) else { return };
        if leg.told.as_ref() == Some(&told) {
            return;
        }
        let now = core.now;
        let (number, name) = (told.0.as_bytes(), told.1.as_bytes());
        let connected = Connected { number, name, presentation };
        let said = self.order(socket, |machine, out| machine.connected(now, place, &connected, out));
        if let (Some(Ok(true)), Some(leg)) = (said, self.leg_of(core, channel)) {
            leg.told = Some(told);
        }
    }
    /// The other side tells whom we talk to: the channel is that party from here on, and whoever talks to it learns so.
    pub(super) fn connected_by(
        &mut self,
        core: &mut Core,
        at: At,
        number: &[u8],
        name: &[u8],
        presentation: u8,
    ) {
        let shrinks = self.config.shrink_caller_id;
        let Some(leg) = self.leg_at(at) else { return };
        let (channel, common) = (leg.channel, leg.party.common());
        let mut told = party_of(common, Some(number), Some(name), Some(presentation), shrinks);
        told.tag.clone_from(&common.caller.tag);
        let Some(entry) = core.get_mut(channel).filter(|entry| entry.caller != told) else { return };
        entry.caller.clone_from(&told);
        core.notice_of(channel, Notice::NewCallerId);
        core.push_event(channel, ChanEvent::ConnectedLine(Box::new(told)));
    }
}
