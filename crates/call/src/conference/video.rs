//! Whose video is seen in a conference. One member is seen by all others; that one sees who was seen before. Pictures are
//! passed on as they are, so that those see each other who send the same format.

use std::collections::{BTreeMap, BTreeSet};

use base::{ChannelId, Command, MemberSettings, StreamId};

use super::{Conference, NotThere};
use crate::{Core, Notice};

/// How it is chosen who is seen (`video_mode` of confbridge.conf).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VideoMode {
    /// Nobody, unless somebody has been chosen.
    #[default]
    None,
    /// Who leads the talk.
    FollowTalker,
    /// Of the marked members with a camera the one who came last.
    LastMarked,
    /// Of those the one who came first.
    FirstMarked,
}

impl VideoMode {
    /// All, as they are spelt.
    pub const SPELT: [(&str, Self); 4] = [
        ("none", Self::None),
        ("follow_talker", Self::FollowTalker),
        ("last_marked", Self::LastMarked),
        ("first_marked", Self::FirstMarked),
    ];
    /// What is seen by this mode alone.
    pub(super) const fn seen(self) -> VideoSeen {
        match self {
            Self::None => VideoSeen::None,
            Self::FollowTalker => VideoSeen::Talker,
            Self::LastMarked | Self::FirstMarked => VideoSeen::Single,
        }
    }
    /// As it is spelt.
    pub fn spell(self) -> &'static str {
        Self::SPELT.into_iter().find(|(_, mode)| *mode == self).map_or("none", |(word, _)| word)
    }
}

/// Who is seen in a conference, and by which streams.
#[derive(Debug, Clone, Default)]
pub(super) struct Vision {
    /// Seen by all others.
    source: Option<ChannelId>,
    /// Seen by that one.
    second: Option<ChannelId>,
    /// Chosen to be seen until it leaves or lets go.
    chosen: Option<ChannelId>,
    /// One has been, and the conference's own choice is over until somebody lets go.
    is_chosen: bool,
    /// Who led the talk last and has a camera.
    speaker: Option<ChannelId>,
    /// Who is seen by all others or is meant to be, as watchers were told.
    told: Option<ChannelId>,
    /// Streams that the media room has.
    inside: BTreeSet<StreamId>,
    /// What each of them is shown.
    shown: BTreeMap<StreamId, StreamId>,
}

/// What watchers are told of the video of a conference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VideoSeen {
    /// Nobody's.
    None,
    /// That of one member.
    Single,
    /// That of who talks.
    Talker,
}

impl VideoSeen {
    /// As the manager protocol has it.
    pub const fn spell(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Single => "single",
            Self::Talker => "talker",
        }
    }
}

impl Conference {
    /// What is seen, as it is chosen at present.
    pub fn video_seen(&self) -> VideoSeen {
        if self.vision.is_chosen { VideoSeen::Single } else { self.profile.video.seen() }
    }
    /// Who is seen by all others.
    pub fn video_source(&self) -> Option<ChannelId> {
        self.vision.source
    }
    /// Who is seen and by whom, from those with a camera who are there, in the order in which they came.
    fn choose(&self, cameras: &[ChannelId]) -> (Option<ChannelId>, Option<ChannelId>) {
        let Vision { source, second, chosen, speaker, .. } = &self.vision;
        let has = |who: &ChannelId| cameras.contains(who);
        let is_marked = |who: &&ChannelId| {
            self.members.iter().any(|member| member.channel == **who && member.seat.is_marked)
        };
        let first = || cameras.first().copied();
        let by_mode = || match self.profile.video {
            VideoMode::None => None,
            VideoMode::FollowTalker => {
                [*speaker, *source, *second].into_iter().flatten().find(has).or_else(first)
            }
            VideoMode::LastMarked => cameras.iter().rfind(is_marked).copied(),
            VideoMode::FirstMarked => cameras.iter().find(is_marked).copied(),
        };
        let Some(now) = chosen.filter(has).or_else(by_mode) else { return (None, None) };
        // Who is seen sees whom the others saw before, or who spoke to him last.
        let mut others = [source.filter(|source| *source != now), *speaker, *second].into_iter().flatten();
        let other = others.find(|other| *other != now && has(other));
        (Some(now), other.or_else(|| cameras.iter().copied().find(|other| *other != now)))
    }
}

impl Core {
    /// Looks anew at who is seen in a conference: somebody has come, gone, begun to talk or switched a camera on.
    pub(super) fn conference_show(&mut self, name: &str) {
        let Some(conference) = self.conferences.get(name) else { return };
        let room = conference.room;
        let streams_of = |id: ChannelId| self.get(id).map_or(&[][..], |channel| channel.pictures());
        let is_there = |member: &&super::Member| {
            member.is_in && !member.waits && !member.is_away && member.leaves.is_none()
        };
        let there = conference.members.iter().filter(is_there).map(|member| member.channel);
        let cameras: Vec<_> = there.filter(|id| streams_of(*id).iter().any(Option::is_some)).collect();
        let (source, second) = conference.choose(&cameras);
        let shows = |id: &ChannelId| if Some(*id) == source { second } else { source };
        let mut wanted = BTreeMap::new();
        for id in &cameras {
            let of = shows(id).map_or(&[][..], streams_of);
            let pairs = streams_of(*id).iter().zip(of).filter_map(|(to, from)| (*to).zip(*from));
            wanted.extend(pairs);
        }
        let needed: BTreeSet<StreamId> = wanted.iter().flat_map(|(to, from)| [*to, *from]).collect();
        let mixing = conference.profile.mixing();
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return };
        let vision = &mut conference.vision;
        vision.source = source;
        let told = source.or(vision.chosen);
        let before = std::mem::replace(&mut vision.told, told);
        vision.second = second;
        let enters: Vec<_> = needed.difference(&vision.inside).copied().collect();
        vision.inside.extend(&enters);
        let shown = std::mem::replace(&mut vision.shown, wanted.clone());
        let member = MemberSettings { muted: true, deaf: true, ..MemberSettings::default() };
        for stream in enters {
            self.media(Command::Enter { stream, room, mixing, member });
        }
        for stream in shown.keys().filter(|stream| !wanted.contains_key(stream)) {
            self.media(Command::Show { stream: *stream, source: None });
        }
        for (stream, source) in wanted.into_iter().filter(|(to, from)| shown.get(to) != Some(from)) {
            self.media(Command::Show { stream, source: Some(source) });
        }
        if before != told {
            self.conference_tell_source(name, before);
        }
    }
    fn conference_tell_source(&mut self, name: &str, before: Option<ChannelId>) {
        let Some(conference) = self.conferences.get(name).filter(|c| c.is_listed) else { return };
        let bridge = conference.bridge;
        let unique = |id: ChannelId| self.get(id).map(|channel| channel.uniqueid.clone());
        let source = conference.vision.told.and_then(unique);
        let previous = before.and_then(unique).map(|uniqueid| uniqueid.to_string());
        self.bridge_shows(bridge, conference.video_seen(), source);
        self.notice(|core| {
            let bridge = core.bridge_snapshot(bridge)?;
            Some(Notice::ConferenceVideo { conference: name.to_owned(), bridge, previous })
        });
    }
    /// The streams of video of a channel are others now: those that are in its conference and not among them have gone.
    pub(crate) fn conference_streams(&mut self, id: ChannelId, gone: &[StreamId]) {
        let Some(name) = self.conferences.of_channel.get(&id).cloned() else { return };
        if let Some(conference) = self.conferences.by_name.get_mut(&name) {
            conference.vision.inside.retain(|stream| !gone.contains(stream));
            conference.vision.shown.retain(|to, from| !gone.contains(to) && !gone.contains(from));
        }
        self.conference_show(&name);
    }
    /// Takes a channel's video out of the conference that it has left.
    pub(super) fn conference_part_video(&mut self, name: &str, id: ChannelId) {
        let streams = self.get(id).map(|channel| channel.pictures().to_vec()).unwrap_or_default();
        for stream in streams.into_iter().flatten() {
            let Some(conference) = self.conferences.by_name.get_mut(name) else { return };
            if conference.vision.inside.remove(&stream) {
                conference.vision.shown.retain(|to, from| *to != stream && *from != stream);
                self.media(Command::Part { stream });
            }
        }
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return };
        conference.vision.chosen.take_if(|chosen| *chosen == id);
        conference.vision.speaker.take_if(|speaker| *speaker == id);
        self.conference_show(name);
    }
    /// A worker's word on who leads the talk.
    pub(crate) fn conference_speaker(&mut self, id: ChannelId) {
        // Who has no camera is heard, and the one before is seen on.
        let has_camera = self.get(id).is_some_and(|channel| channel.pictures().iter().any(Option::is_some));
        let Some(name) = self.conferences.of_channel.get(&id).filter(|_| has_camera).cloned() else { return };
        let Some(conference) = self.conferences.by_name.get_mut(&name) else { return };
        conference.vision.speaker = Some(id);
        self.conference_show(&name);
    }
    /// Lets all others see this member until it leaves or lets go, whatever the profile says.
    pub fn conference_choose_video(&mut self, name: &str, id: ChannelId) -> Result<(), NotThere> {
        let conference = self.conferences.get(name).ok_or(NotThere::Conference)?;
        if !conference.members.iter().any(|member| member.channel == id) {
            return Err(NotThere::Member);
        }
        if let Some(conference) = self.conferences.by_name.get_mut(name) {
            (conference.vision.chosen, conference.vision.is_chosen) = (Some(id), true);
        }
        self.conference_show(name);
        Ok(())
    }
    /// A member that is seen lets go; whether it was. The profile says who is seen from here on, which may be the same.
    pub fn conference_release_video(&mut self, name: &str, id: ChannelId) -> bool {
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return false };
        if conference.vision.source != Some(id) && conference.vision.chosen != Some(id) {
            return false;
        }
        conference.vision.chosen.take_if(|chosen| *chosen == id);
        conference.vision.is_chosen = conference.vision.chosen.is_some();
        self.conference_show(name);
        true
    }
    /// Whose whole picture is wanted, of a stream that is shown in a conference.
    pub fn conference_camera(&self, stream: StreamId) -> Option<ChannelId> {
        let members = self.conferences.iter().flat_map(|conference| &conference.members);
        let has =
            |id: &ChannelId| self.get(*id).is_some_and(|channel| channel.pictures().contains(&Some(stream)));
        members.map(|member| member.channel).find(has)
    }
    /// A member asks for whole pictures of what it sees.
    pub fn conference_ask_pictures(&mut self, id: ChannelId) {
        let Some(conference) = self.conferences.of(id) else { return };
        let streams = self.get(id).map_or(&[][..], |channel| channel.pictures());
        let seen = streams.iter().flatten().filter_map(|stream| conference.vision.shown.get(stream));
        for stream in seen.copied().collect::<Vec<_>>() {
            self.media(Command::AskPicture { stream });
        }
    }
}
