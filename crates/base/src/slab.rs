//! Entries with stable, generational places: a late id finds nothing.

/// Where an entry lives and which use of that place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index; reused.
    pub slot: u32,
    /// Counts the uses of the slot.
    pub generation: u32,
}

/// A bounded vector of entries that keep their place until removed.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    max: usize,
    count: usize,
}

impl<T> Slab<T> {
    /// An empty slab for at most `max` entries.
    pub const fn new(max: usize) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), max, count: 0 }
    }

    /// Entries present.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Entries that may still be added.
    pub const fn room(&self) -> usize {
        self.max.saturating_sub(self.count)
    }

    /// Adds what `make` builds for its place; `None` when full.
    pub fn insert_with(&mut self, make: impl FnOnce(Place) -> T) -> Option<Place> {
        if self.count >= self.max {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.entries.len()).ok()?;
                self.entries.push((0, None));
                slot
            }
        };
        let (generation, entry) = self.entries.get_mut(slot as usize)?;
        let place = Place { slot, generation: *generation };
        *entry = Some(make(place));
        self.count += 1;
        Some(place)
    }

    /// The entry at `place`, if it is still that one.
    pub fn get(&self, place: Place) -> Option<&T> {
        match self.entries.get(place.slot as usize) {
            Some((generation, entry)) if *generation == place.generation => entry.as_ref(),
            _ => None,
        }
    }

    /// The entry at `place`, if it is still that one.
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        match self.entries.get_mut(place.slot as usize) {
            Some((generation, entry)) if *generation == place.generation => entry.as_mut(),
            _ => None,
        }
    }

    /// Where an entry lies, for whoever asks the processor for its memory in advance: nothing is looked at.
    pub fn memory(&self, place: Place) -> Option<&(u32, Option<T>)> {
        self.entries.get(place.slot as usize)
    }

    /// Takes the entry out; its place may be used again, under another generation.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        let (generation, entry) = self.entries.get_mut(place.slot as usize)?;
        if *generation != place.generation {
            return None;
        }
        let taken = entry.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(place.slot);
        self.count -= 1;
        Some(taken)
    }

    /// All entries with their places, in order of place.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &T)> {
        self.entries.iter().zip(0u32..).filter_map(|((generation, entry), slot)| {
            Some((Place { slot, generation: *generation }, entry.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_place_finds_nothing_and_the_bound_holds() {
        let mut slab = Slab::new(2);
        let first = slab.insert_with(|_| 'a').unwrap();
        let second = slab.insert_with(|_| 'b').unwrap();
        assert_eq!(slab.insert_with(|_| 'c'), None);
        assert_eq!(slab.remove(first), Some('a'));
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.room(), 1);
        let third = slab.insert_with(|_| 'c').unwrap();
        assert_eq!(third.slot, first.slot);
        assert_eq!((slab.get(first), slab.get(third), slab.get(second)), (None, Some(&'c'), Some(&'b')));
        assert_eq!(slab.iter().map(|(_, c)| *c).collect::<String>(), "cb");
    }
}
