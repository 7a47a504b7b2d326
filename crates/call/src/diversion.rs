//! Call forward and do-not-disturb of a number, as the dialplans of `docs/recipes.md` keep them in the database.
//!
//! Whoever changes a key of theirs (a dialplan, a manager client, the console, a phone) changes it for all: the database
//! notes which numbers it is about, the lamps follow, and drivers tell the phones.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::{Core, Database, DeviceState};

/// Family in which `DEVICE_STATE(Custom:…)` is kept.
pub const CUSTOM_FAMILY: &str = "CustomDevstate";
/// Changes of custom devices that are told one by one until the next look at hints; of more, the last of each device is.
const CHANGES_MAX: usize = 256;
/// Family of the rings after which [`Diversion::NoAnswer`] forwards.
const RINGS_FAMILY: &str = "CFNARINGS";

/// What may be set of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Diversion {
    /// Nobody is put through.
    Disturb,
    /// All calls are forwarded.
    All,
    /// Calls are forwarded while the phone is busy.
    Busy,
    /// Calls are forwarded when nobody answers.
    NoAnswer,
}

impl Diversion {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Disturb, Self::All, Self::Busy, Self::NoAnswer];
    /// The family of the database whose keys are numbers.
    pub fn family(self) -> &'static str {
        match self {
            Self::Disturb => "DND",
            Self::All => "CFIM",
            Self::Busy => "CFBS",
            Self::NoAnswer => "CFNA",
        }
    }
    /// What stands before the number in the name of the custom device that shows it.
    fn lamp(self) -> Option<&'static str> {
        match self {
            Self::Disturb => Some("DND"),
            Self::All => Some("CF"),
            Self::Busy | Self::NoAnswer => None,
        }
    }
}

/// Numbers that a key of theirs has changed of.
pub(crate) type Noted = Rc<RefCell<BTreeSet<String>>>;

/// A database that notes which numbers it is told of.
pub(crate) struct Noting {
    inner: Box<dyn Database>,
    noted: Noted,
}

impl Noting {
    pub(crate) fn new(inner: Box<dyn Database>, noted: &Noted) -> Self {
        Self { inner, noted: noted.clone() }
    }
    fn is_ours(family: &str) -> bool {
        family == RINGS_FAMILY || Diversion::ALL.iter().any(|diversion| diversion.family() == family)
    }
    fn note(&self, number: &str) {
        self.noted.borrow_mut().insert(number.to_owned());
    }
}

impl Database for Noting {
    fn get(&self, family: &str, key: &str) -> Option<String> {
        self.inner.get(family, key)
    }
    fn put(&mut self, family: &str, key: &str, value: &str) -> bool {
        let ours = Self::is_ours(family) && self.inner.get(family, key).as_deref() != Some(value);
        let kept = self.inner.put(family, key, value);
        if ours && kept {
            self.note(key);
        }
        kept
    }
    fn delete(&mut self, family: &str, key: &str) -> bool {
        let was_there = self.inner.delete(family, key);
        if was_there && Self::is_ours(family) {
            self.note(key);
        }
        was_there
    }
    fn delete_tree(&mut self, family: &str, prefix: &str) -> usize {
        if Self::is_ours(family) {
            let start = format!("/{family}/");
            let keys = self.inner.list(&format!("/{family}"));
            let keys = keys.iter().filter_map(|(key, _)| key.strip_prefix(&start));
            keys.filter(|key| key.starts_with(prefix)).for_each(|key| self.note(key));
        }
        self.inner.delete_tree(family, prefix)
    }
    fn list(&self, prefix: &str) -> Vec<(String, String)> {
        self.inner.list(prefix)
    }
    fn mark(&self) -> u64 {
        self.inner.mark()
    }
    fn is_saved(&mut self, mark: u64) -> bool {
        self.inner.is_saved(mark)
    }
    fn trouble(&mut self) -> Option<String> {
        self.inner.trouble()
    }
}

impl Core {
    /// What is set of a number: where its calls go, or any text for [`Diversion::Disturb`]; `None` when it is not set.
    pub fn diversion(&self, number: &str, diversion: Diversion) -> Option<String> {
        self.services.db.get(diversion.family(), number)
    }
    /// Rings after which [`Diversion::NoAnswer`] forwards, when somebody has said.
    pub fn rings(&self, number: &str) -> Option<u8> {
        self.services.db.get(RINGS_FAMILY, number)?.trim().parse().ok()
    }
    /// Sets it, or no longer; whether it could be kept.
    pub fn set_diversion(&mut self, number: &str, diversion: Diversion, to: Option<&str>) -> bool {
        match to {
            Some(to) => self.services.db.put(diversion.family(), number, to),
            None => {
                self.services.db.delete(diversion.family(), number);
                true
            }
        }
    }
    /// Sets the rings after which [`Diversion::NoAnswer`] forwards.
    pub fn set_rings(&mut self, number: &str, rings: Option<u8>) {
        match rings {
            Some(rings) => drop(self.services.db.put(RINGS_FAMILY, number, &rings.to_string())),
            None => drop(self.services.db.delete(RINGS_FAMILY, number)),
        }
    }
    /// Sets a custom device; hints on it change at the end of the turn.
    pub fn set_custom_device(&mut self, name: &str, state: DeviceState) {
        self.services.db.put(CUSTOM_FAMILY, name, state.name());
        if self.custom_changes.len() < CHANGES_MAX {
            self.custom_changes.push((name.to_owned(), state));
        }
        self.touched_devices.push(format!("Custom:{name}"));
    }
    /// The lamps of numbers that were changed since [`take_diverted`](Self::take_diverted) show what is set.
    pub fn light_diversions(&mut self) {
        if self.diverted.borrow().is_empty() {
            return;
        }
        let numbers: Vec<String> = self.diverted.borrow().iter().cloned().collect();
        for number in numbers {
            for diversion in Diversion::ALL {
                let Some(lamp) = diversion.lamp() else { continue };
                let (name, is_set) =
                    (format!("{lamp}{number}"), self.diversion(&number, diversion).is_some());
                let state = if is_set { DeviceState::InUse } else { DeviceState::NotInUse };
                let shown = self.services.db.get(CUSTOM_FAMILY, &name);
                let shown = shown.and_then(|word| DeviceState::parse(&word));
                // One that was never lit stays unknown.
                if shown != Some(state) && (is_set || shown.is_some()) {
                    self.set_custom_device(&name, state);
                }
            }
        }
    }
    /// Numbers of which something was changed since the last call.
    pub fn take_diverted(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut *self.diverted.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Default)]
    struct Kept(BTreeMap<String, String>);

    impl Database for Kept {
        fn get(&self, family: &str, key: &str) -> Option<String> {
            self.0.get(&format!("/{family}/{key}")).cloned()
        }
        fn put(&mut self, family: &str, key: &str, value: &str) -> bool {
            let room = value != "refused";
            if room {
                self.0.insert(format!("/{family}/{key}"), value.to_owned());
            }
            room
        }
        fn delete(&mut self, family: &str, key: &str) -> bool {
            self.0.remove(&format!("/{family}/{key}")).is_some()
        }
        fn delete_tree(&mut self, family: &str, prefix: &str) -> usize {
            let before = self.0.len();
            self.0.retain(|key, _| !key.starts_with(&format!("/{family}/{prefix}")));
            before - self.0.len()
        }
        fn list(&self, prefix: &str) -> Vec<(String, String)> {
            self.0
                .iter()
                .filter(|(key, _)| key.starts_with(prefix))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        }
    }

    #[test]
    fn a_number_is_noted_when_a_key_of_its_diversions_becomes_another() {
        let noted = Noted::default();
        let mut db = Noting::new(Box::new(Kept::default()), &noted);
        let mut after = |name: &str, expected: &[&str], act: &mut dyn FnMut(&mut Noting)| {
            act(&mut db);
            let numbers: Vec<String> = std::mem::take(&mut *noted.borrow_mut()).into_iter().collect();
            assert_eq!(numbers, expected, "{name}");
        };
        after("set", &["6001"], &mut |db| assert!(db.put("DND", "6001", "YES")));
        after("set again", &[], &mut |db| assert!(db.put("DND", "6001", "YES")));
        after("refused", &[], &mut |db| assert!(!db.put("CFIM", "6001", "refused")));
        after("of another family", &[], &mut |db| assert!(db.put("dnd", "6001", "YES")));
        after("each family", &["1", "2", "3", "4"], &mut |db| {
            for (family, key) in [("CFIM", "1"), ("CFBS", "2"), ("CFNA", "3"), ("CFNARINGS", "4")] {
                db.put(family, key, "5");
            }
        });
        after("deleted", &["6001"], &mut |db| assert!(db.delete("DND", "6001")));
        after("deleted again", &[], &mut |db| assert!(!db.delete("DND", "6001")));
        after("a family goes", &["1"], &mut |db| assert_eq!(db.delete_tree("CFIM", ""), 1));
        after("what begins so goes", &["2"], &mut |db| assert_eq!(db.delete_tree("CFBS", "2"), 1));
    }
}
