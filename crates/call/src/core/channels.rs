//! The slab of channels: how one comes and goes, and by what it is found.

use std::collections::VecDeque;
use std::rc::Rc;

use base::{Cause, ChannelId, Command, FormatId, FormatSet, PlayId, StreamId};

use super::{Advance, Core};
use crate::{CdrState, Channel, NewChannel, Notice, Snapshot};

/// Most channels at once; bounds the slab whatever `maxcalls` says.
const CHANNELS_MAX: usize = 1 << 18;

pub(super) struct Slot {
    generation: u32,
    channel: Option<Box<Channel>>,
}

impl Core {
    /// Makes a channel and tells watchers. `None` when the slab is full.
    pub fn create(&mut self, new: NewChannel) -> Option<ChannelId> {
        if self.alive >= CHANNELS_MAX {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.channels.push(Slot { generation: 0, channel: None });
                u32::try_from(self.channels.len() - 1).ok()?
            }
        };
        let wall = self.services.wall.now_micros();
        let linked = new.linked_to.and_then(|id| self.get(id)).map(|c| (c.linkedid.clone(), c.call_number));
        let tenant = new.tenant.or_else(|| Some(self.get(new.linked_to?)?.tenant.clone()));
        let (linked, call_number) = match linked {
            Some((linkedid, number)) => (Some(linkedid), number),
            None => {
                self.call_numbers = self.call_numbers.wrapping_add(1);
                (None, self.call_numbers)
            }
        };
        let name: Rc<str> = match new.exact_name {
            Some(name) => name.into(),
            None => format!("{}-{:08x}", new.base_name, self.next_serial()).into(),
        };
        let uniqueid: Rc<str> = match new.uniqueid {
            Some(given) => given.into(),
            None => self.next_uniqueid(wall).into(),
        };
        let entry = self.channels.get_mut(slot as usize)?;
        let id = ChannelId::new(slot, entry.generation);
        let language = if new.language.is_empty() { self.settings.language.clone() } else { new.language };
        entry.channel = Some(Box::new(Channel {
            id,
            name: name.clone(),
            linkedid: linked.unwrap_or_else(|| uniqueid.clone()),
            tenant: tenant.unwrap_or_default(),
            uniqueid,
            tech: new.tech,
            handle: new.handle,
            state: new.state,
            ani: None,
            ani2: 0,
            last_place: Default::default(),
            caller: new.caller,
            dialed: None,
            connected: Default::default(),
            redirecting: Default::default(),
            account: new.account,
            peer_account: String::new(),
            language,
            tone_zone: String::new(),
            music_class: if new.music_class.is_empty() { "default".to_owned() } else { new.music_class },
            music_chosen: false,
            music_suggested: new.music_suggested,
            parking_lot: new.parking_lot,
            pickup: new.pickup,
            rung_at: None,
            picked_up: false,
            location: new.location,
            app: "",
            app_data: String::new(),
            told_app: "",
            vars: dialplan::Vars::default(),
            format: new.formats.first().unwrap_or(FormatId::SLIN),
            formats: new.formats,
            call_id: Rc::from(""),
            rtp_digits: None,
            stream: None,
            passed: Vec::new(),
            video_formats: FormatSet::EMPTY,
            last_play: PlayId(0),
            sounding: None,
            steers: false,
            hears_music: false,
            own_app: "",
            bridge: None,
            hangup: None,
            user_field: String::new(),
            hangup_source: String::new(),
            hangup_by: Rc::from(""),
            tech_cause: None,
            sent_into: None,
            goto: None,
            told_place: None,
            told_step: None,
            seen: None,
            wanted: false,
            keeper: None,
            consulted: None,
            agent: None,
            fax_watch: None,
            has_pbx: false,
            outgoing: new.outgoing,
            held: false,
            told_held: false,
            assigned: Vec::new(),
            forwards: crate::FORWARDS,
            hops: None,
            created: self.now,
            created_wall: wall,
            answered: None,
            absolute_deadline: None,
            digit_timeout_ms: 5_000,
            response_timeout_ms: 10_000,
            cdr: CdrState::new(&self.settings),
            hangup_handlers: Vec::new(),
            last_cause: Cause::NONE,
            hangup_causes: Vec::new(),
            shared: dialplan::Vars::default(),
            groups: Vec::new(),
            monitors: Vec::new(),
            last_monitor: 0,
            events: VecDeque::new(),
            waiter: None,
            media_flows: false,
            reported: std::collections::BTreeSet::new(),
            quality: None,
            is_quality_told: false,
            asked_quality: false,
            agi: None,
            message: None,
            advance_watch: None,
            tones: None,
            volume: None,
            is_told_ringing: false,
            rings_inside: false,
            keeps_digits: false,
            rights: Default::default(),
            conference: None,
            features: None,
            queue_place: None,
            passes_hold: false,
            keeps_holds: false,
            last_recording: None,
            engaged: Default::default(),
            music_place: Default::default(),
            muted: (false, false),
            call_number,
        }));
        self.alive += 1;
        if !new.outgoing {
            self.calls += 1;
        }
        self.by_name.insert(name, id);
        self.cdr_begin(id);
        self.notice_of(id, Notice::NewChannel);
        self.log_start(id);
        if let Some(channel) = self.get_mut(id) {
            channel.ani = channel.caller.number.clone();
        }
        Some(id)
    }

    /// A channel.
    pub fn get(&self, id: ChannelId) -> Option<&Channel> {
        let slot = self.channels.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.channel.as_deref()
    }
    /// A channel, to change what its field's comment allows.
    pub fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let slot = self.channels.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.channel.as_deref_mut()
    }
    /// All channels in slab order.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter().filter_map(|slot| slot.channel.as_deref())
    }
    /// How many channels there are.
    pub fn channel_count(&self) -> usize {
        self.alive
    }
    /// How many calls there are: channels that came in or run a dialplan, not the legs they dialled.
    pub fn call_count(&self) -> usize {
        self.calls
    }
    /// A dialplan begins to run on the channel. One that we called and that has answered is a party with a record of its
    /// own from here on.
    pub fn enter_pbx(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id).filter(|c| !c.has_pbx) else { return };
        channel.has_pbx = true;
        if channel.outgoing {
            self.calls += 1;
        }
        self.cdr_own(id);
        self.calls_processed += 1;
    }
    /// The channel of this exact name; or of this UNIQUEID.
    pub fn by_name(&self, name: &str) -> Option<ChannelId> {
        self.by_name
            .get(name)
            .copied()
            .or_else(|| self.channels().find(|c| &*c.uniqueid == name).map(|c| c.id))
    }
    /// Snapshot of a channel for a notice.
    pub fn snapshot(&self, id: ChannelId) -> Option<Snapshot> {
        let channel = self.get(id)?;
        let mut shown = Snapshot::of(channel);
        if let Some(seen) = &channel.seen {
            seen.show_in(&mut shown);
        }
        Some(shown)
    }
    /// The same with what watchers have not been told of yet.
    pub fn snapshot_now(&self, id: ChannelId) -> Option<Snapshot> {
        self.get(id).map(Snapshot::of)
    }

    /// Gives a channel its media stream (driver, once).
    pub fn set_stream(&mut self, id: ChannelId, stream: StreamId, format: FormatId) {
        if let Some(channel) = self.get_mut(id) {
            channel.stream = Some(stream);
            channel.format = format;
            let is_up = channel.answered.is_some();
            self.by_stream.insert(stream, id);
            if is_up {
                self.fill_silence(id);
            }
        }
    }
    /// The channel a stream belongs to.
    pub fn channel_of_stream(&self, stream: StreamId) -> Option<ChannelId> {
        self.by_stream.get(&stream).copied()
    }

    /// Removes a channel, closes its stream and tells watchers. The driver has been told before.
    pub(crate) fn remove(&mut self, id: ChannelId) {
        self.hold_leave(id);
        self.all_sounds_end(id);
        self.conference_leave(id);
        self.stasis_leave(id);
        self.agent_gone(id);
        self.mailboxes_left(id);
        self.queue_gone(id);
        self.park_over(id, crate::parking::ParkingChange::GaveUp);
        self.release_locks(id);
        self.end_transactions(id);
        self.advance(id, Advance::Failed(self.get(id).map_or(Cause::NONE, |c| c.last_cause)));
        let cause = self.get(id).and_then(|c| c.hangup).unwrap_or(Cause::NORMAL_CLEARING);
        self.cdr_end(id);
        self.monitor_end(id);
        self.spy_end(id);
        self.spied_changed(id);
        self.show_changes(id);
        self.notice_of(id, |channel| Notice::Hangup { channel, cause });
        self.log_end(id);
        self.touch_device(id);
        let Some(slot) = self.channels.get_mut(id.slot as usize).filter(|s| s.generation == id.generation)
        else {
            return;
        };
        let Some(channel) = slot.channel.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        self.alive -= 1;
        if !channel.outgoing || channel.has_pbx {
            self.calls -= 1;
        }
        self.by_name.remove(&channel.name);
        // Whoever still waits for it must learn that it is gone.
        self.woken.extend(channel.waiter);
        if let Some(stream) = channel.stream {
            self.by_stream.remove(&stream);
            self.media(Command::Close { stream });
        }
        for stream in channel.passed.into_iter().flatten() {
            self.media(Command::Close { stream });
        }
    }
    /// Removes a channel that no story has ever run on; its driver has forgotten it.
    pub fn discard(&mut self, id: ChannelId) {
        self.remove(id);
    }

    /// Takes a channel out of its slot for a moment.
    pub(crate) fn take_channel(&mut self, id: ChannelId) -> Option<Box<Channel>> {
        let slot = self.channels.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.channel.take()
    }
    /// Puts it back.
    pub(crate) fn put_channel(&mut self, id: ChannelId, channel: Box<Channel>) {
        if let Some(slot) =
            self.channels.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)
        {
            slot.channel = Some(channel);
        }
    }
    /// The channel of this name is that one from here on.
    pub(crate) fn rename(&mut self, name: Rc<str>, id: ChannelId) {
        self.by_name.insert(name, id);
    }
    /// The stream belongs to that channel from here on.
    pub(crate) fn stream_belongs_to(&mut self, stream: StreamId, id: ChannelId) {
        self.by_stream.insert(stream, id);
    }
    /// How many calls this channel counts as.
    pub(crate) fn counted(&self, id: ChannelId) -> usize {
        self.get(id).map_or(0, |channel| usize::from(!channel.outgoing || channel.has_pbx))
    }
    /// Two channels counted as `before` calls and count as `after`.
    pub(crate) fn recount(&mut self, before: usize, after: usize) {
        self.calls = (self.calls + after).saturating_sub(before);
    }
}
