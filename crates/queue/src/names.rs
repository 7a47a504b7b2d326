//! Devices and interfaces by name, and the queues that have something to do with them. Names are in lower case.

use std::collections::HashMap;
use std::rc::Rc;

/// Things by name; each with the queues it belongs to, and forgotten when it belongs to none and nobody needs it.
#[derive(Debug)]
pub(crate) struct Names<T> {
    entries: HashMap<Rc<str>, Named<T>>,
}

#[derive(Debug, Default)]
struct Named<T> {
    /// In order: somebody may be in ten thousand of them.
    queues: Vec<usize>,
    what: T,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { entries: HashMap::new() }
    }
}

impl<T: Default + PartialEq> Names<T> {
    /// It belongs to one more queue.
    pub(crate) fn join(&mut self, name: &Rc<str>, queue: usize) {
        let entry = self.entries.entry(name.clone()).or_default();
        if let Err(place) = entry.queues.binary_search(&queue) {
            entry.queues.insert(place, queue);
        }
    }
    /// It belongs to this queue no more.
    pub(crate) fn part(&mut self, name: &str, queue: usize) {
        if let Some(entry) = self.entries.get_mut(name) {
            if let Ok(place) = entry.queues.binary_search(&queue) {
                entry.queues.remove(place);
            }
            if entry.queues.is_empty() && entry.what == T::default() {
                self.entries.remove(name);
            }
        }
    }
    /// The queues it belongs to, in order.
    pub(crate) fn queues(&self, name: &str) -> &[usize] {
        self.find(name).map_or(&[], |entry| &entry.queues)
    }
    /// What is known of it.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.find(name).map(|entry| &entry.what)
    }
    /// Changes what is known of it; the queues it belongs to.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut T)) -> Vec<usize> {
        let Some(entry) = self.entries.get_mut(name) else { return Vec::new() };
        change(&mut entry.what);
        let queues = entry.queues.clone();
        if queues.is_empty() && entry.what == T::default() {
            self.entries.remove(name);
        }
        queues
    }
    fn find(&self, name: &str) -> Option<&Named<T>> {
        self.entries.get(name)
    }
}
