//! Where the voice of a leg goes: found in one step from a frame's leg and from a packet's stream, both of which have small
//! numbers, because this is asked for each of them.

use base::{Place, StreamId};
use lanes::{LINE_BYTES, prefetch};

use super::At;
use super::voice::Voice;

/// A voice, and whose it is.
#[derive(Debug)]
struct Path {
    at: At,
    voice: Voice,
}

/// The voice of all legs.
#[derive(Debug, Default)]
pub(super) struct Voices {
    /// By slot of the stream.
    paths: Vec<Option<Path>>,
    /// By socket and slot of the leg: which use of it, and the slot of the stream.
    of_legs: Vec<Vec<Option<(u32, u32)>>>,
}

/// The place in a table that grows to it.
fn grown<T>(table: &mut Vec<T>, at: u32, empty: impl FnMut() -> T) -> Option<&mut T> {
    let at = at as usize;
    if table.len() <= at {
        table.resize_with(at + 1, empty);
    }
    table.get_mut(at)
}

impl Voices {
    /// The leg has a stream from here on.
    pub(super) fn add(&mut self, at: At, voice: Voice) {
        let (socket, Place { slot, generation }) = at;
        let legs = grown(&mut self.of_legs, socket, Vec::new);
        if let Some(leg) = legs.and_then(|legs| grown(legs, slot, || None)) {
            *leg = Some((generation, voice.stream.slot));
        }
        if let Some(path) = grown(&mut self.paths, voice.stream.slot, || None) {
            *path = Some(Path { at, voice });
        }
    }
    /// The leg has none any more.
    pub(super) fn remove(&mut self, at: At) {
        let Some(slot) = self.slot_of(at) else { return };
        let (socket, place) = at;
        let legs = self.of_legs.get_mut(socket as usize);
        if let Some(leg) = legs.and_then(|legs| legs.get_mut(place.slot as usize)) {
            *leg = None;
        }
        // The stream may be another leg's by now.
        if let Some(path) = self.paths.get_mut(slot as usize) {
            path.take_if(|path| path.at == at);
        }
    }
    /// Asks for the memory of the voice of a stream.
    pub(super) fn fetch(&self, stream: StreamId) {
        if let Some(path) = self.paths.get(stream.slot as usize) {
            prefetch(path, 0..size_of::<Path>().div_ceil(LINE_BYTES));
        }
    }
    /// Asks for the memory of the voice of a leg.
    pub(super) fn fetch_leg(&self, (socket, place): At) {
        let leg = self.of_legs.get(socket as usize).and_then(|legs| legs.get(place.slot as usize));
        if let Some(path) = leg.and_then(|leg| self.paths.get((*leg)?.1 as usize)) {
            prefetch(path, 0..size_of::<Path>().div_ceil(LINE_BYTES));
        }
    }
    /// The voice of a leg.
    pub(super) fn of_leg(&mut self, at: At) -> Option<&mut Voice> {
        let slot = self.slot_of(at)?;
        let path = self.paths.get_mut(slot as usize)?.as_mut()?;
        (path.at == at).then_some(&mut path.voice)
    }
    /// The voice of a stream, and its leg.
    pub(super) fn of_stream(&self, stream: StreamId) -> Option<(At, &Voice)> {
        let path = self.paths.get(stream.slot as usize)?.as_ref()?;
        (path.voice.stream == stream).then_some((path.at, &path.voice))
    }
    fn slot_of(&self, (socket, place): At) -> Option<u32> {
        let leg = self.of_legs.get(socket as usize)?.get(place.slot as usize)?;
        leg.and_then(|(generation, slot)| (generation == place.generation).then_some(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{FormatId, FormatSet};

    fn place(slot: u32, generation: u32) -> Place {
        Place { slot, generation }
    }
    fn voice(slot: u32, generation: u32) -> Voice {
        let formats = [FormatId::ULAW].into_iter().collect::<FormatSet>();
        Voice::new(StreamId::new(slot, generation), formats)
    }

    #[test]
    fn voice_is_found_by_its_leg_and_by_its_stream_and_by_no_use_of_their_places_before_or_after() {
        let mut voices = Voices::default();
        let (first, second) = ((0, place(3, 7)), (1, place(3, 7)));
        voices.add(first, voice(5, 1));
        voices.add(second, voice(2, 9));
        for (name, leg, stream) in [
            ("another use of the leg's place", (0, place(3, 8)), StreamId::new(5, 2)),
            ("a leg of no socket", (7, place(3, 7)), StreamId::new(99, 1)),
            ("a leg without voice", (0, place(0, 7)), StreamId::new(0, 1)),
        ] {
            assert!(voices.of_leg(leg).is_none(), "{name}");
            assert!(voices.of_stream(stream).is_none(), "{name}");
        }
        for (leg, stream) in [(first, StreamId::new(5, 1)), (second, StreamId::new(2, 9))] {
            assert_eq!(voices.of_leg(leg).map(|voice| voice.stream), Some(stream));
            assert_eq!(voices.of_stream(stream).map(|(at, _)| at), Some(leg));
        }
        voices.remove(first);
        voices.remove(first);
        assert!(voices.of_leg(first).is_none() && voices.of_stream(StreamId::new(5, 1)).is_none());
        assert!(voices.of_leg(second).is_some(), "the other one");
    }

    #[test]
    fn a_leg_that_ends_late_leaves_the_stream_to_who_has_it_now() {
        let mut voices = Voices::default();
        let (old, new) = ((0, place(1, 0)), (0, place(2, 0)));
        voices.add(old, voice(4, 0));
        voices.add(new, voice(4, 1));
        assert!(voices.of_leg(old).is_none(), "its stream is another one's");
        voices.remove(old);
        assert!(voices.of_leg(new).is_some());
    }
}
