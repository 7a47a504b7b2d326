//! Which programs hear of what. Watchers' notices are read in the order in which things happened, and what a program follows
//! because it has it changes with them, so that each hears all of a channel from its coming to its going and no more.

use std::borrow::Cow;
use std::rc::Rc;

use super::{Application, Stasis, StasisNotice, Target, Topic};
use crate::{Notice, Snapshot};

/// What a notice is about.
#[derive(Default)]
struct Subject<'a> {
    channels: Vec<&'a Snapshot>,
    /// UNIQUEID of a channel of which there is no more.
    uniqueid: Option<&'a str>,
    bridge: Option<Cow<'a, str>>,
    endpoint: Option<(&'a str, &'a str)>,
    device: Option<&'a str>,
}

impl<'a> Subject<'a> {
    fn channel(channel: &'a Snapshot) -> Self {
        Self { channels: vec![channel], ..Self::default() }
    }
    fn several(channels: impl IntoIterator<Item = Option<&'a Snapshot>>) -> Self {
        Self { channels: channels.into_iter().flatten().collect(), ..Self::default() }
    }
    fn target(target: &'a Target) -> Self {
        match target {
            Target::Channel(uniqueid) => Self { uniqueid: Some(uniqueid), ..Self::default() },
            Target::Bridge(id) => Self { bridge: Some(Cow::Borrowed(id)), ..Self::default() },
        }
    }
    fn of(notice: &'a Notice) -> Self {
        match notice {
            Notice::NewChannel(channel)
            | Notice::NewState(channel)
            | Notice::NewCallerId(channel)
            | Notice::NewConnectedLine(channel)
            | Notice::Hold { channel, .. }
            | Notice::Unhold(channel)
            | Notice::MusicOnHoldStop(channel)
            | Notice::NewExten { channel, .. }
            | Notice::NewAccountCode { channel, .. }
            | Notice::Dtmf { channel, .. }
            | Notice::Talking { channel, .. }
            | Notice::MusicOnHoldStart { channel, .. }
            | Notice::SoftHangup { channel, .. }
            | Notice::HangupRequest { channel, .. }
            | Notice::Hangup { channel, .. }
            | Notice::Monitor { channel, .. } => Self::channel(channel),
            Notice::BridgeCreate { bridge } | Notice::BridgeDestroy { bridge } => {
                Self { bridge: Some(Cow::Borrowed(&*bridge.uid)), ..Self::default() }
            }
            Notice::BridgeEnter { bridge, channel, .. } | Notice::BridgeLeave { bridge, channel, .. } => {
                Self { bridge: Some(Cow::Borrowed(&*bridge.uid)), ..Self::channel(channel) }
            }
            Notice::VarSet { channel, .. } | Notice::UserEvent { channel, .. } => {
                Self::several([channel.as_ref()])
            }
            Notice::DialBegin { caller, dest, .. }
            | Notice::DialState { caller, dest, .. }
            | Notice::DialEnd { caller, dest, .. } => Self::several([caller.as_ref(), Some(dest)]),
            Notice::BlindTransfer { transferer, transferee, replacement, bridge, .. } => {
                let channels = [Some(&**transferer), transferee.as_deref(), replacement.as_deref()];
                Self { bridge: Some(Cow::Borrowed(&*bridge.uid)), ..Self::several(channels) }
            }
            Notice::AttendedTransfer { transferer, second, transferee, target, .. } => Self::several([
                Some(&**transferer),
                second.as_deref(),
                transferee.as_deref(),
                target.as_deref(),
            ]),
            Notice::DeviceStateChange { device, .. } => {
                Self { device: Some(device), endpoint: device.split_once('/'), ..Self::default() }
            }
            Notice::PeerStatus { peer, .. } => Self { endpoint: peer.split_once('/'), ..Self::default() },
            Notice::ContactStatus { endpoint, .. } => {
                Self { endpoint: Some(("PJSIP", endpoint)), ..Self::default() }
            }
            Notice::Stasis(of) => Self::of_program(of),
            _ => Self::default(),
        }
    }
    fn of_program(notice: &'a StasisNotice) -> Self {
        match notice {
            StasisNotice::Playback { playback, .. } => Self::target(&playback.target),
            StasisNotice::Recording { recording, .. } => Self::target(&recording.target),
            StasisNotice::BridgeCreated(bridge) | StasisNotice::BridgeDestroyed(bridge) => {
                Self { bridge: Some(Cow::Borrowed(&*bridge.id)), ..Self::default() }
            }
            StasisNotice::BridgeEntered { bridge, channel }
            | StasisNotice::BridgeLeft { bridge, channel } => {
                Self { bridge: Some(Cow::Borrowed(&*bridge.id)), channels: vec![channel], ..Self::default() }
            }
            StasisNotice::VideoSource { bridge, .. } => {
                Self { bridge: Some(Cow::Borrowed(&*bridge.id)), ..Self::default() }
            }
            StasisNotice::Transfer(of) => Self::several([
                Some(&of.source),
                of.source_peer.as_ref(),
                of.target.as_ref(),
                of.target_peer.as_ref(),
            ]),
            StasisNotice::ToneDetected { channel } => Self { channels: vec![channel], ..Self::default() },
            StasisNotice::Text { endpoint: (tech, resource), .. } => {
                Self { endpoint: Some((tech, resource)), ..Self::default() }
            }
            // Told to one program, whatever others listen to.
            StasisNotice::Followed { .. }
            | StasisNotice::Offered { .. }
            | StasisNotice::Claimed { .. }
            | StasisNotice::Start { .. }
            | StasisNotice::End { .. }
            | StasisNotice::Replaced { .. }
            | StasisNotice::MoveFailed { .. } => Self::default(),
        }
    }
    /// Whether a program follows the bridge that it is about.
    fn is_followed(&self, app: &Application) -> bool {
        let topic = self.bridge.as_deref().map(|id| Topic::Bridge(id.to_owned()));
        topic.is_some_and(|topic| app.topics.contains(&topic) || app.follows.contains_key(&topic))
    }
    /// Whether a program hears of it.
    fn reaches(&self, app: &Application) -> bool {
        let has = |topic: &Topic| app.topics.contains(topic) || app.follows.contains_key(topic);
        let channel = |id: &str| has(&Topic::Channel(id.to_owned())) || has(&Topic::Channel(String::new()));
        let endpoint = |tech: &str, resource: &str| {
            has(&Topic::Endpoint(tech.to_owned(), None))
                || has(&Topic::Endpoint(tech.to_owned(), Some(resource.to_owned())))
        };
        let bridge = |id: &str| has(&Topic::Bridge(id.to_owned())) || has(&Topic::Bridge(String::new()));
        let is_any = !self.channels.is_empty()
            || self.uniqueid.is_some()
            || self.bridge.is_some()
            || self.endpoint.is_some()
            || self.device.is_some();
        app.subscribes_all && is_any
            || self.uniqueid.is_some_and(channel)
            || self.bridge.as_deref().is_some_and(bridge)
            || self.endpoint.is_some_and(|(tech, resource)| endpoint(tech, resource))
            || self.device.is_some_and(|device| has(&Topic::DeviceState(device.to_owned())))
            || self.channels.iter().any(|snapshot| {
                channel(&snapshot.uniqueid)
                    || endpoint_of(&snapshot.name).is_some_and(|(tech, resource)| endpoint(tech, resource))
            })
    }
}

/// Technology and endpoint of a channel's name.
fn endpoint_of(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('-').map_or(name, |(device, _)| device).split_once('/')
}

impl Stasis {
    /// Which programs whose clients are there hear of a notice, in order of their names; whether each of them wants events of
    /// that kind is [`Application::hears`]'s to say. To be asked once of every notice, in their order.
    pub fn route(&mut self, notice: &Notice) -> Vec<Rc<str>> {
        match notice {
            // Programs hear of their own bridges by notices of their own.
            Notice::BridgeCreate { bridge, .. }
            | Notice::BridgeEnter { bridge, .. }
            | Notice::BridgeLeave { bridge, .. }
                if self.rooms.contains(&bridge.id) =>
            {
                return Vec::new();
            }
            Notice::BridgeDestroy { bridge } if self.rooms.remove(&bridge.id) => return Vec::new(),
            _ => {}
        }
        let Notice::Stasis(of) = notice else { return self.listeners(notice) };
        match &**of {
            StasisNotice::Followed { app, uniqueid } => {
                self.follow_channel(app, uniqueid);
                Vec::new()
            }
            StasisNotice::Start { app, channel, .. } => {
                self.follow(app, Topic::Channel(channel.uniqueid.to_string()));
                self.there(app)
            }
            StasisNotice::End { app, channel } => {
                self.unfollow(app, &Topic::Channel(channel.uniqueid.to_string()));
                self.there(app)
            }
            StasisNotice::Offered { apps, .. } | StasisNotice::Claimed { apps, .. } => {
                apps.iter().flat_map(|app| self.there(app)).collect()
            }
            StasisNotice::Replaced { app } | StasisNotice::MoveFailed { app, .. } => self.there(app),
            StasisNotice::BridgeEntered { bridge, channel } => {
                // A bridge is followed by those who have a channel in it, until it is gone.
                let channel = Topic::Channel(channel.uniqueid.to_string());
                for app in self.apps.values_mut().filter(|app| app.follows.contains_key(&channel)) {
                    app.follows.insert(Topic::Bridge(bridge.id.to_string()), 1);
                }
                self.listeners(notice)
            }
            StasisNotice::BridgeDestroyed(bridge) => {
                let heard = self.listeners(notice);
                let topic = Topic::Bridge(bridge.id.to_string());
                for app in self.apps.values_mut() {
                    app.follows.remove(&topic);
                    app.topics.remove(&topic);
                }
                heard
            }
            _ => self.listeners(notice),
        }
    }
    /// A program follows a channel that it has not got, because it has made it; until the channel is gone.
    pub fn follow_channel(&mut self, app: &str, uniqueid: &str) {
        if let Some(app) = self.apps.get_mut(app)
            && app.topics.len() < super::SUBSCRIPTIONS_MAX
        {
            app.topics.insert(Topic::Channel(uniqueid.to_owned()));
        }
    }
    fn listeners(&mut self, notice: &Notice) -> Vec<Rc<str>> {
        if self.apps.is_empty() {
            return Vec::new();
        }
        let subject = Subject::of(notice);
        let reached = self.apps.iter().filter(|(_, app)| app.is_active && subject.reaches(app));
        // Who follows a bridge and all there is hears twice of what is played in it and of what is recorded there.
        let of_bridge = |target: &Target| matches!(target, Target::Bridge(_));
        let twice = match notice {
            Notice::Stasis(of) => match &**of {
                StasisNotice::Playback { playback, .. } => of_bridge(&playback.target),
                StasisNotice::Recording { recording, .. } => of_bridge(&recording.target),
                _ => false,
            },
            _ => false,
        };
        let times =
            |app: &Application| if twice && app.subscribes_all && subject.is_followed(app) { 2 } else { 1 };
        let heard: Vec<Rc<str>> =
            reached.flat_map(|(name, app)| core::iter::repeat_n(name.clone(), times(app))).collect();
        if let Notice::Hangup { channel, .. } = notice {
            let topic = Topic::Channel(channel.uniqueid.to_string());
            for app in self.apps.values_mut() {
                app.topics.remove(&topic);
                app.follows.remove(&topic);
            }
        }
        heard
    }
    fn there(&self, app: &Rc<str>) -> Vec<Rc<str>> {
        self.apps.get(app).filter(|known| known.is_active).map(|_| app.clone()).into_iter().collect()
    }
    fn follow(&mut self, app: &str, topic: Topic) {
        if let Some(app) = self.apps.get_mut(app) {
            *app.follows.entry(topic).or_default() += 1;
        }
    }
    fn unfollow(&mut self, app: &str, topic: &Topic) {
        let Some(follows) = self.apps.get_mut(app).map(|app| &mut app.follows) else { return };
        if let Some(count) = follows.get_mut(topic) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                follows.remove(topic);
            }
        }
    }
}
