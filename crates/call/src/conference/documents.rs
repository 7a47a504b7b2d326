//! What happens in a conference, told to its members in their calls (`enable_events` of confbridge.conf): documents of
//! JSON, as Asterisk writes them and pages in browsers read them.
//!
//! They are noted here and sent by the shard, which is who knows the technologies ([`crate::Shard::run`]).

use std::rc::Rc;

use base::ChannelId;
use dialplan::Wall;

use super::{Conference, Member, MemberChange};
use crate::cel::quote;
use crate::{Channel, Core, Level, Presentation};

/// Their type (RFC 3428 §8).
pub const DOCUMENT_TYPE: &str = "application/x-asterisk-confbridge-event+json";
/// Documents that wait to be sent: one for each member of the largest conference, four times over. They leave in the turn
/// in which they were noted; what is more is lost, and told of.
const DOCUMENTS_MAX: usize = 16 * 1024;
/// Members that a welcome names: with those a document is some 40 KB long, which a datagram can still carry.
const WELCOMED_MAX: usize = 128;
/// Characters of a name or number in a document: as much as any display shows.
const NAME_MAX: usize = 80;

/// What a document tells of.
#[derive(Debug, Clone, Copy)]
enum Told {
    Member(MemberChange),
    Welcome,
    Records(bool),
}

impl Told {
    const fn name(self) -> &'static str {
        match self {
            Self::Member(MemberChange::Entered) => "ConfbridgeJoin",
            Self::Member(MemberChange::Left) => "ConfbridgeLeave",
            Self::Member(MemberChange::Muted) => "ConfbridgeMute",
            Self::Member(MemberChange::Unmuted) => "ConfbridgeUnmute",
            Self::Member(MemberChange::Talking(_)) => "ConfbridgeTalking",
            Self::Welcome => "ConfbridgeWelcome",
            Self::Records(true) => "ConfbridgeRecord",
            Self::Records(false) => "ConfbridgeStopRecord",
        }
    }
}

/// Documents that are to be sent.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    waiting: Vec<(ChannelId, Rc<str>)>,
}

impl Documents {
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Member {
    const fn reads(&self) -> bool {
        self.seat.reads_events && !self.seat.refuses_texts
    }
}

impl Conference {
    /// Who reads of what a member does, or of what nobody in particular does.
    fn readers(&self, of: Option<ChannelId>) -> Vec<ChannelId> {
        if !self.profile.tells_members {
            return Vec::new();
        }
        let reads = |member: &&Member| {
            member.reads() && (Some(member.channel) != of || !member.seat.misses_own_events)
        };
        self.members.iter().filter(reads).map(|member| member.channel).collect()
    }
}

impl Core {
    /// Tells members what one of them does, or what is done to it.
    pub(super) fn conference_tell(&mut self, id: ChannelId, change: MemberChange) {
        let Some(conference) = self.conferences.of(id) else { return };
        let readers = conference.readers(Some(id));
        if readers.is_empty() {
            return;
        }
        let about = conference.members.iter().filter(|member| member.channel == id);
        let document = self.conference_document(conference, Told::Member(change), about);
        self.conference_send(&readers, document);
    }
    /// Tells who has come who is there.
    pub(super) fn conference_tell_newcomer(&mut self, id: ChannelId) {
        let Some(conference) = self.conferences.of(id).filter(|found| found.profile.tells_members) else {
            return;
        };
        if !self.conferences.member(id).is_some_and(Member::reads) {
            return;
        }
        // Itself among them, however many there are.
        let before = conference.members.iter().filter(|member| member.channel != id);
        let own = conference.members.iter().filter(|member| member.channel == id);
        let about = before.take(WELCOMED_MAX - 1).chain(own);
        let document = self.conference_document(conference, Told::Welcome, about);
        self.conference_send(&[id], document);
    }
    /// Tells members that they are recorded from here on, or not any more.
    pub(super) fn conference_tell_record(&mut self, name: &str, runs: bool) {
        let Some(conference) = self.conferences.get(name) else { return };
        let readers = conference.readers(None);
        if !readers.is_empty() {
            let document = self.conference_document(conference, Told::Records(runs), [].iter());
            self.conference_send(&readers, document);
        }
    }
    fn conference_send(&mut self, readers: &[ChannelId], document: String) {
        let document: Rc<str> = document.into();
        let room = DOCUMENTS_MAX.saturating_sub(self.documents.waiting.len());
        self.documents.waiting.extend(readers.iter().take(room).map(|reader| (*reader, document.clone())));
        if readers.len() > room {
            let lost = readers.len() - room;
            let line =
                format!("{lost} members of a conference are not told what happens: too many documents wait");
            self.log(Level::Warning, "app_confbridge", &line);
        }
    }
    /// Documents that are to be sent, each to one channel.
    pub(crate) fn take_documents(&mut self) -> Vec<(ChannelId, Rc<str>)> {
        std::mem::take(&mut self.documents.waiting)
    }
    fn conference_document<'a>(
        &self,
        conference: &Conference,
        told: Told,
        about: impl Iterator<Item = &'a Member>,
    ) -> String {
        let mut out = String::with_capacity(512);
        out.push_str("{\"type\":");
        quote(told.name(), &mut out);
        out.push_str(",\"timestamp\":");
        self.document_time(self.services.wall.now_micros(), &mut out);
        out.push_str(",\"bridge\":{\"id\":");
        quote(
            &self.bridge_snapshot(conference.bridge).map_or_else(String::new, |of| of.uid.to_string()),
            &mut out,
        );
        out.push_str(",\"name\":");
        quote(&conference.name, &mut out);
        out.push_str(",\"video_mode\":");
        quote(conference.video_seen().spell(), &mut out);
        out.push_str("},\"channels\":[");
        let mut is_first = true;
        for member in about {
            let Some(channel) = self.get(member.channel) else { continue };
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
            self.document_member(conference, member, channel, told, &mut out);
        }
        out.push_str("]}");
        out
    }
    fn document_member(
        &self,
        conference: &Conference,
        member: &Member,
        channel: &Channel,
        told: Told,
        out: &mut String,
    ) {
        let caller = &channel.caller;
        // Who hides its number from others hides it from all of them.
        let shown = |text: &str, presentation: Presentation| match presentation.is_hidden() {
            true => String::new(),
            false => text.chars().take(NAME_MAX).collect(),
        };
        out.push_str("{\"id\":");
        quote(&channel.uniqueid, out);
        out.push_str(",\"name\":");
        quote(&channel.name, out);
        out.push_str(",\"state\":");
        quote(channel.state.name(), out);
        out.push_str(",\"caller\":{\"name\":");
        quote(&shown(caller.name(), caller.name_presentation), out);
        out.push_str(",\"number\":");
        quote(&shown(caller.number(), caller.number_presentation), out);
        out.push_str("},\"creationtime\":");
        self.document_time(channel.created_wall, out);
        out.push_str(",\"language\":");
        quote(&channel.language, out);
        let flag = |on: bool| if on { "true" } else { "false" };
        out.push_str(",\"admin\":");
        out.push_str(flag(member.seat.is_admin));
        if let Told::Member(MemberChange::Talking(talks)) = told {
            out.push_str(",\"talking_status\":");
            quote(if talks { "on" } else { "off" }, out);
        } else {
            out.push_str(",\"muted\":");
            out.push_str(flag(conference.silences(member)));
        }
        out.push('}');
    }
    /// A moment as a string of JSON, as the clocks of this machine show it.
    fn document_time(&self, micros: i64, out: &mut String) {
        let seconds = micros.div_euclid(1_000_000);
        let wall = Wall { seconds, micros: u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0) };
        let offset = self.services.wall.offset(seconds, "");
        out.push('"');
        dialplan::strftime::format(wall, &offset, "%Y-%m-%dT%H:%M:%S.%q%z", out);
        out.push('"');
    }
}
