//! Extensions that are there while somebody is registered (`regcontext`): a `NoOp` at priority 1 each.
//!
//! They come and go by the thousand, so they are no part of a [`Program`](crate::Program), which is copied whole when it is
//! changed. A program has one extension for all of them in each context that it was loaded with for this; who is there is
//! kept here, and asked through [`Calendar::registered`](crate::Calendar::registered). Coming, going and looking up take
//! logarithmic time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::pattern::Pattern;

/// Where a number stands among the registered extensions of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Near {
    /// One has exactly this number.
    pub whole: bool,
    /// One has a number that begins with it and goes on.
    pub more: bool,
}

/// Somebody through whose registration an extension is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who keeps registrations, as listings name it: `PJSIP`, `IAX2`.
    pub registrar: &'static str,
    /// Endpoint or peer; what the step's argument is listed as.
    pub name: Box<str>,
}

/// An extension with those who have it; there is at least one.
#[derive(Debug, Clone)]
struct Entry {
    exten: Box<str>,
    holders: Vec<Holder>,
}

/// See the module's page. There are as many as registrations of configured endpoints and peers, and as conferences, which their tables bound.
#[derive(Debug, Clone, Default)]
pub struct Registered {
    /// By context, then by the extension without dashes.
    contexts: HashMap<Box<str>, BTreeMap<Box<str>, Entry>>,
}

impl Registered {
    /// Somebody has registered. Two may have one extension; saying it twice is saying it once.
    pub fn add(&mut self, context: &str, exten: &str, registrar: &'static str, name: &str) {
        let key = Pattern::key(exten);
        if context.is_empty() || key.is_empty() {
            return;
        }
        if !self.contexts.contains_key(context) {
            self.contexts.insert(context.into(), BTreeMap::new());
        }
        let Some(extensions) = self.contexts.get_mut(context) else { return };
        let entry = extensions
            .entry(key.into_boxed_str())
            .or_insert_with(|| Entry { exten: exten.into(), holders: Vec::new() });
        let holder = Holder { registrar, name: name.into() };
        if !entry.holders.contains(&holder) {
            entry.holders.push(holder);
        }
    }
    /// The last registration of somebody is gone. The extension goes with its last holder.
    pub fn remove(&mut self, context: &str, exten: &str, registrar: &str, name: &str) {
        let key = Pattern::key(exten);
        let Some(extensions) = self.contexts.get_mut(context) else { return };
        let Some(entry) = extensions.get_mut(key.as_str()) else { return };
        entry.holders.retain(|holder| (holder.registrar, &*holder.name) != (registrar, name));
        if entry.holders.is_empty() {
            extensions.remove(key.as_str());
        }
    }
    /// Forgets all extensions of one registrar: whoever reads the configuration again says anew who is there.
    pub fn clear(&mut self, registrar: &str) {
        for extensions in self.contexts.values_mut() {
            extensions.retain(|_, entry| {
                entry.holders.retain(|holder| holder.registrar != registrar);
                !entry.holders.is_empty()
            });
        }
        self.contexts.retain(|_, extensions| !extensions.is_empty());
    }
    /// Where a number stands among the extensions of a context; dashes in it are ignored.
    pub fn near(&self, context: &str, exten: &str) -> Near {
        let Some(extensions) = self.contexts.get(context) else { return Near::default() };
        let key = Pattern::key(exten);
        let after = (Bound::Excluded(key.as_str()), Bound::Unbounded);
        let next = extensions.range::<str, _>(after).next();
        Near {
            whole: extensions.contains_key(key.as_str()),
            more: next.is_some_and(|(next, _)| next.starts_with(key.as_str())),
        }
    }
    /// The extensions of a context, in order, each with whoever came last.
    pub fn of(&self, context: &str) -> impl Iterator<Item = (&str, &Holder)> {
        let entries = self.contexts.get(context).into_iter().flat_map(BTreeMap::values);
        entries.filter_map(|entry| Some((&*entry.exten, entry.holders.last()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_there_from_its_first_holder_to_its_last() {
        let mut registered = Registered::default();
        let listed = |registered: &Registered| -> Vec<String> {
            registered.of("reg").map(|(exten, holder)| format!("{exten} {}", holder.name)).collect()
        };
        registered.add("reg", "60-01", "PJSIP", "alice");
        registered.add("reg", "6001", "IAX2", "bob");
        registered.add("reg", "6001", "IAX2", "bob");
        registered.add("reg", "", "PJSIP", "nobody");
        registered.add("", "6001", "PJSIP", "nobody");
        assert_eq!(listed(&registered), ["60-01 bob"]);
        registered.remove("reg", "6001", "IAX2", "bob");
        registered.remove("other", "6001", "PJSIP", "alice");
        registered.remove("reg", "6001", "PJSIP", "bob");
        assert_eq!(listed(&registered), ["60-01 alice"]);
        registered.remove("reg", "6001", "PJSIP", "alice");
        assert!(listed(&registered).is_empty() && !registered.near("reg", "6001").whole);
        registered.add("reg", "1", "PJSIP", "a");
        registered.add("reg", "1", "IAX2", "b");
        registered.add("reg", "2", "IAX2", "b");
        registered.clear("IAX2");
        assert_eq!(listed(&registered), ["1 a"]);
    }

    #[test]
    fn a_number_is_whole_or_a_beginning() {
        let mut registered = Registered::default();
        for exten in ["6001", "600", "7"] {
            registered.add("reg", exten, "PJSIP", exten);
        }
        for (context, exten, whole, more) in [
            ("reg", "600", true, true),
            ("reg", "60-0", true, true),
            ("reg", "6001", true, false),
            ("reg", "60", false, true),
            ("reg", "", false, true),
            ("reg", "61", false, false),
            ("reg", "8", false, false),
            ("other", "600", false, false),
        ] {
            assert_eq!(registered.near(context, exten), Near { whole, more }, "{exten}@{context}");
        }
    }
}
