//! Two who are alone in a bridge of programs hear each other directly, with all that they have beside sound, as if somebody
//! had dialled the other: nothing is mixed that need not be. As soon as somebody else comes, or all are to hear or to be
//! recorded, they are in the room.

use base::{ChannelId, Command, FormatId};

use super::{BridgeKind, BridgeMember, ProgramBridge};
use crate::{Core, Level};

impl ProgramBridge {
    /// Whether two are in it who hear each other directly.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }
    /// The two who can hear each other directly.
    fn pair(&self) -> Option<[ChannelId; 2]> {
        let [one, other] = self.members.as_slice() else { return None };
        let is_plain = self.kind == BridgeKind::Mixing && !one.is_muted && !other.is_muted;
        let wants_room = self.recording.is_some() || self.has_plays() || self.music.is_some();
        (is_plain && !wants_room).then_some([one.channel, other.channel])
    }
}

impl Core {
    /// Brings who hears whom in a bridge up to date.
    pub(super) fn stasis_settle_bridge(&mut self, id: &str) {
        let Some(bridge) = self.stasis.bridges.get_mut(id) else { return };
        let pair = bridge.pair();
        let before = core::mem::replace(&mut bridge.direct, pair);
        if before == pair {
            return;
        }
        let members = bridge.members.clone();
        self.stasis_tell_drivers(&members, pair.is_some());
        for left in before.into_iter().flatten() {
            self.keep_digits(left, false);
            self.passed_command(left, |stream| Command::Part { stream });
        }
        if let Some([a, b]) = pair {
            for member in &members {
                self.keep_digits(member.channel, member.absorbs_digits);
            }
            self.join_streams(a, b);
        } else {
            let back = before.into_iter().flatten();
            for left in back.filter(|id| members.iter().any(|member| member.channel == *id)) {
                self.conference_seat_again(left);
            }
        }
        self.stasis_warn_unheard(&members.iter().map(|member| member.channel).collect::<Vec<_>>());
    }
    /// Drivers look whether two talk to each other, who may agree on more with their peers then: video, a fax, a format.
    fn stasis_tell_drivers(&mut self, members: &[BridgeMember], is_pair: bool) {
        let id = members.first().and_then(|member| self.get(member.channel)?.bridge);
        let is_plain = id.and_then(|id| self.stasis_bridge_with(id));
        let is_plain = is_plain.is_some_and(|bridge| !bridge.dtmf_events && !bridge.proxy_media);
        if let Some(bridge) = id.and_then(|id| self.bridge_mut(id)) {
            // Their digits are waited for, so their media comes here.
            bridge.pair = is_pair.then_some(true);
            bridge.joins_natively = is_pair && is_plain;
        }
        if let (Some(id), true) = (id, is_pair) {
            self.bridge_rechosen(id);
        }
        members.iter().for_each(|member| self.regroup(member.channel));
    }
    /// Somebody has taken the place of one who was heard directly: that begins anew.
    pub(super) fn stasis_pair_again(&mut self, id: ChannelId) {
        let Some(id) = self.stasis_bridge_of(id).map(|bridge| bridge.id.clone()) else { return };
        if let Some(bridge) = self.stasis.bridges.get_mut(&id) {
            bridge.direct = None;
        }
        self.stasis_settle_bridge(&id);
    }
    /// Silence that nobody explains would be worse than a line in the log.
    fn stasis_warn_unheard(&mut self, members: &[ChannelId]) {
        let formats: Vec<(String, FormatId)> = members
            .iter()
            .filter_map(|id| self.get(*id))
            .map(|channel| (channel.name.to_string(), channel.format))
            .collect();
        let coded = self.settings.coded;
        let unheard: Vec<_> = match formats.as_slice() {
            [] | [_] => return,
            [one, other] if coded.leads(one.1, other.1) => return,
            several => several.iter().filter(|(_, format)| !coded.leads(*format, FormatId::SLIN)).collect(),
        };
        for (name, format) in unheard {
            let text = format!(
                "{name} sends {format}, which can only be passed through: in its bridge it neither hears the others nor \
                 is heard; allow ulaw or alaw for it"
            );
            self.log(Level::Warning, "bridge", &text);
        }
    }
}
