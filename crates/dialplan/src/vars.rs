//! Variables: interned names, and the store a channel or the globals keep them in.

use std::collections::HashMap;
use std::sync::Arc;

/// Variables one store may hold: twice what the largest dialplan of the field corpus sets, HASH() keys included.
pub const VARIABLES_MAX: usize = 16_384;

/// Bytes all values of one store may have together: a loop that appends for ever ends here, not with the machine.
pub const VALUES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An interned variable name; valid for every later generation of the [`Symbols`] that minted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

/// A variable as templates hold it: the name, and its id when the name stands in the dialplan's text.
#[derive(Debug, Clone, Copy)]
pub struct Var<'a> {
    /// The id, for names that the loader saw.
    pub id: Option<VarId>,
    /// The name, case-sensitive, without `_` prefixes.
    pub name: &'a str,
}

impl<'a> Var<'a> {
    /// A variable known only by its name.
    pub fn named(name: &'a str) -> Self {
        Self { id: None, name }
    }
}

/// The owned form of [`Var`], cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarName {
    /// The id, for names that the loader saw.
    pub id: Option<VarId>,
    /// The name, case-sensitive, without `_` prefixes.
    pub name: Arc<str>,
}

impl VarName {
    /// The borrowed form.
    pub fn as_var(&self) -> Var<'_> {
        Var { id: self.id, name: &self.name }
    }
}

/// Names the running channel answers itself, before its variables are looked at (§6: EXTEN, CONTEXT and so on).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
    /// Current extension.
    Exten,
    /// Current context.
    Context,
    /// Current priority.
    Priority,
    /// Channel name, `PJSIP/alice-0000002a`.
    Channel,
    /// Unique id, `epoch.seq`.
    Uniqueid,
    /// Q.850 cause of the last hang-up.
    Hangupcause,
    /// Hint of the current extension: its devices.
    Hint,
    /// Name that the hint carries.
    Hintname,
    /// Caller presentation word.
    Callingpres,
    /// ANI2 information digits.
    Callingani2,
    /// Type of number.
    Callington,
    /// Transit network selector.
    Callingtns,
    /// Seconds since 1970.
    Epoch,
    /// `systemname` of asterisk.conf.
    Systemname,
    /// Entity id of this system.
    Entityid,
    /// `ASTETCDIR`.
    Astetcdir,
    /// `ASTMODDIR`.
    Astmoddir,
    /// `ASTVARLIBDIR`.
    Astvarlibdir,
    /// `ASTDBDIR`.
    Astdbdir,
    /// `ASTKEYDIR`.
    Astkeydir,
    /// `ASTDATADIR`.
    Astdatadir,
    /// `ASTAGIDIR`.
    Astagidir,
    /// `ASTSPOOLDIR`.
    Astspooldir,
    /// `ASTRUNDIR`.
    Astrundir,
    /// `ASTLOGDIR`.
    Astlogdir,
    /// `ASTSBINDIR`.
    Astsbindir,
}

const BUILTINS: &[(&str, Builtin)] = &[
    ("EXTEN", Builtin::Exten),
    ("CONTEXT", Builtin::Context),
    ("PRIORITY", Builtin::Priority),
    ("CHANNEL", Builtin::Channel),
    ("UNIQUEID", Builtin::Uniqueid),
    ("HANGUPCAUSE", Builtin::Hangupcause),
    ("HINT", Builtin::Hint),
    ("HINTNAME", Builtin::Hintname),
    ("CALLINGPRES", Builtin::Callingpres),
    ("CALLINGANI2", Builtin::Callingani2),
    ("CALLINGTON", Builtin::Callington),
    ("CALLINGTNS", Builtin::Callingtns),
    ("EPOCH", Builtin::Epoch),
    ("SYSTEMNAME", Builtin::Systemname),
    ("ENTITYID", Builtin::Entityid),
    ("ASTETCDIR", Builtin::Astetcdir),
    ("ASTMODDIR", Builtin::Astmoddir),
    ("ASTVARLIBDIR", Builtin::Astvarlibdir),
    ("ASTDBDIR", Builtin::Astdbdir),
    ("ASTKEYDIR", Builtin::Astkeydir),
    ("ASTDATADIR", Builtin::Astdatadir),
    ("ASTAGIDIR", Builtin::Astagidir),
    ("ASTSPOOLDIR", Builtin::Astspooldir),
    ("ASTRUNDIR", Builtin::Astrundir),
    ("ASTLOGDIR", Builtin::Astlogdir),
    ("ASTSBINDIR", Builtin::Astsbindir),
];

impl Builtin {
    /// The built-in of this name, if it is one.
    pub fn from_name(name: &str) -> Option<Self> {
        BUILTINS.iter().find(|(text, _)| *text == name).map(|&(_, which)| which)
    }
    /// The name it is read by.
    pub fn name(self) -> &'static str {
        BUILTINS.iter().find(|(_, which)| *which == self).map_or("", |&(text, _)| text)
    }
}

/// The interned names of one program. A later program starts from its predecessor's table, so ids stay true over reloads.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, VarId>,
}

impl Symbols {
    /// The id of a name, minted when it is new. Called only with text from the configuration.
    pub fn intern(&mut self, name: &str) -> VarName {
        if let Some(known) = self.lookup(name) {
            return known;
        }
        let name: Arc<str> = Arc::from(name);
        let id = u32::try_from(self.names.len()).ok().map(VarId);
        if let Some(id) = id {
            self.names.push(Arc::clone(&name));
            self.ids.insert(Arc::clone(&name), id);
        }
        VarName { id, name }
    }
    /// The interned form of a name that the configuration mentions.
    pub fn lookup(&self, name: &str) -> Option<VarName> {
        self.ids.get_key_value(name).map(|(name, &id)| VarName { id: Some(id), name: Arc::clone(name) })
    }
    /// The name behind an id.
    pub fn name(&self, id: VarId) -> Option<&str> {
        usize::try_from(id.0).ok().and_then(|index| self.names.get(index)).map(|name| &**name)
    }
}

/// Which channels made from this one get a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Inherit {
    /// Stays here.
    #[default]
    Never,
    /// `_name`: the channels this one creates, not theirs.
    Once,
    /// `__name`: every descendant.
    Always,
}

impl Inherit {
    /// Splits `_`/`__` off a name as Set() spells it.
    pub fn strip(name: &str) -> (Self, &str) {
        if let Some(rest) = name.strip_prefix("__") {
            (Self::Always, rest)
        } else if let Some(rest) = name.strip_prefix('_') {
            (Self::Once, rest)
        } else {
            (Self::Never, name)
        }
    }
    /// The prefix that `core show channel` and manager clients see.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Never => "",
            Self::Once => "_",
            Self::Always => "__",
        }
    }
}

/// Marks an entry whose name no program had interned.
const DYNAMIC: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Entry {
    name: Arc<str>,
    value: String,
    inherit: Inherit,
    /// 0 for the channel's own, else the Gosub depth that LOCAL() bound it at.
    frame: u32,
}

/// A store of variables, newest binding last. Ids are scanned in one small array; names only on the slow path.
#[derive(Debug, Clone, Default)]
pub struct Vars {
    ids: Vec<u32>,
    entries: Vec<Entry>,
    dynamic: usize,
    frame: u32,
    /// Length of all values together.
    bytes: usize,
}

impl Vars {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
    /// How many bindings there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    fn find(&self, var: Var<'_>) -> Option<usize> {
        if let Some(VarId(id)) = var.id {
            if let Some(at) = self.ids.iter().rposition(|&known| known == id) {
                return Some(at);
            }
            if self.dynamic == 0 {
                return None;
            }
        }
        self.entries.iter().rposition(|entry| *entry.name == *var.name)
    }
    /// The innermost value of a variable.
    pub fn get(&self, var: Var<'_>) -> Option<&str> {
        self.find(var).and_then(|at| self.entries.get(at)).map(|entry| entry.value.as_str())
    }
    /// The innermost value by name alone.
    pub fn get_name(&self, name: &str) -> Option<&str> {
        self.get(Var::named(name))
    }
    /// Sets the innermost binding, or makes one outside all frames. False when the store is full and nothing changed.
    pub fn set(&mut self, var: Var<'_>, value: &str, inherit: Inherit) -> bool {
        if let Some(entry) = self.find(var).and_then(|at| self.entries.get_mut(at)) {
            let bytes = self.bytes - entry.value.len() + value.len();
            if bytes > VALUES_BYTES_MAX {
                return false;
            }
            self.bytes = bytes;
            entry.value.clear();
            entry.value.push_str(value);
            entry.inherit = inherit;
            return true;
        }
        self.push(var, value, inherit, 0)
    }
    /// Binds a variable in the current Gosub frame (LOCAL()); outside a frame like [`Vars::set`].
    pub fn set_local(&mut self, var: Var<'_>, value: &str) -> bool {
        if let Some(entry) = self.find(var).and_then(|at| self.entries.get_mut(at))
            && entry.frame == self.frame
        {
            let bytes = self.bytes - entry.value.len() + value.len();
            if bytes > VALUES_BYTES_MAX {
                return false;
            }
            self.bytes = bytes;
            entry.value.clear();
            entry.value.push_str(value);
            return true;
        }
        self.push(var, value, Inherit::Never, self.frame)
    }
    fn push(&mut self, var: Var<'_>, value: &str, inherit: Inherit, frame: u32) -> bool {
        if self.entries.len() >= VARIABLES_MAX || self.bytes + value.len() > VALUES_BYTES_MAX {
            return false;
        }
        self.bytes += value.len();
        let id = var.id.map_or(DYNAMIC, |id| id.0);
        self.dynamic += usize::from(id == DYNAMIC);
        self.ids.push(id);
        self.entries.push(Entry { name: Arc::from(var.name), value: value.to_owned(), inherit, frame });
        true
    }
    /// Takes the innermost binding away; whatever it hid shows again.
    pub fn remove(&mut self, var: Var<'_>) -> Option<String> {
        let at = self.find(var)?;
        let id = self.ids.remove(at);
        self.dynamic -= usize::from(id == DYNAMIC);
        let value = self.entries.remove(at).value;
        self.bytes -= value.len();
        Some(value)
    }
    /// Opens a Gosub frame: what LOCAL() binds from here on ends with it.
    pub fn push_frame(&mut self) {
        self.frame = self.frame.saturating_add(1);
    }
    /// Closes the innermost frame and drops what it bound: the names, oldest first.
    pub fn pop_frame(&mut self) -> Vec<Arc<str>> {
        let Some(outer) = self.frame.checked_sub(1) else { return Vec::new() };
        let gone = self.frame;
        self.frame = outer;
        let bound: Vec<_> =
            self.entries.iter().filter(|entry| entry.frame >= gone).map(|entry| entry.name.clone()).collect();
        if bound.is_empty() {
            return bound;
        }
        let keep: Vec<bool> = self.entries.iter().map(|entry| entry.frame < gone).collect();
        let mut flags = keep.iter();
        self.ids.retain(|_| flags.next().copied().unwrap_or(true));
        let mut flags = keep.iter();
        self.entries.retain(|_| flags.next().copied().unwrap_or(true));
        self.dynamic = self.ids.iter().filter(|&&id| id == DYNAMIC).count();
        self.bytes = self.entries.iter().map(|entry| entry.value.len()).sum();
        bound
    }
    /// How many frames are open.
    pub fn frames(&self) -> u32 {
        self.frame
    }
    /// Every binding, oldest first: prefix to show, name, value.
    pub fn iter(&self) -> impl Iterator<Item = (Inherit, &str, &str)> {
        self.entries.iter().map(|entry| (entry.inherit, &*entry.name, entry.value.as_str()))
    }
    /// What a channel created from this one starts with: `_x` arrives plain, `__x` goes on.
    pub fn inherited(&self) -> Self {
        let mut child = Self::new();
        for (&id, entry) in self.ids.iter().zip(&self.entries) {
            let inherit = match entry.inherit {
                Inherit::Never => continue,
                Inherit::Once => Inherit::Never,
                Inherit::Always => Inherit::Always,
            };
            let id = (id != DYNAMIC).then_some(VarId(id));
            child.set(Var { id, name: &entry.name }, &entry.value, inherit);
        }
        child
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_binding_hides_and_ends_with_its_frame() {
        let mut vars = Vars::new();
        let mut symbols = Symbols::default();
        let x = symbols.intern("x");
        vars.set(x.as_var(), "outer", Inherit::Never);
        vars.push_frame();
        vars.set_local(x.as_var(), "inner");
        vars.set(x.as_var(), "changed", Inherit::Never);
        vars.set(Var::named("made_inside"), "stays", Inherit::Never);
        assert_eq!(vars.get(x.as_var()), Some("changed"));
        assert_eq!(vars.pop_frame(), [Arc::from("x")]);
        assert_eq!(vars.get(x.as_var()), Some("outer"));
        assert_eq!(vars.get_name("made_inside"), Some("stays"));
        assert_eq!(vars.pop_frame(), []);
        assert_eq!(vars.len(), 2);
    }

    #[test]
    fn a_full_store_refuses_and_keeps_what_it_has() {
        let mut vars = Vars::new();
        let big = "x".repeat(VALUES_BYTES_MAX / 2);
        assert!(vars.set(Var::named("a"), &big, Inherit::Never));
        assert!(vars.set(Var::named("b"), &big, Inherit::Never));
        assert!(!vars.set(Var::named("c"), "x", Inherit::Never));
        assert!(vars.set(Var::named("a"), "small", Inherit::Never));
        assert!(vars.set(Var::named("c"), "x", Inherit::Never));
        vars.remove(Var::named("b"));
        assert_eq!((vars.len(), vars.get_name("a"), vars.get_name("c")), (2, Some("small"), Some("x")));
        for n in 0..VARIABLES_MAX {
            vars.push(Var::named(&n.to_string()), "", Inherit::Never, 0);
        }
        assert_eq!(vars.len(), VARIABLES_MAX);
        assert!(!vars.set(Var::named("one more"), "", Inherit::Never));
    }

    #[test]
    fn names_set_before_a_reload_interned_them_are_found_by_id_after_it() {
        let mut vars = Vars::new();
        vars.set(Var::named("late"), "1", Inherit::Never);
        let mut symbols = Symbols::default();
        symbols.intern("first");
        let late = symbols.intern("late");
        assert_eq!(vars.get(late.as_var()), Some("1"));
        vars.set(late.as_var(), "2", Inherit::Never);
        assert_eq!((vars.len(), vars.get_name("late")), (1, Some("2")));
    }

    #[test]
    fn one_underscore_reaches_the_child_two_reach_every_descendant() {
        let mut vars = Vars::new();
        for spelled in ["_once", "__always", "never"] {
            let (inherit, name) = Inherit::strip(spelled);
            vars.set(Var::named(name), "v", inherit);
        }
        let child = vars.inherited();
        assert_eq!(child.get_name("once"), Some("v"));
        assert_eq!(child.get_name("always"), Some("v"));
        assert_eq!(child.get_name("never"), None);
        let grandchild = child.inherited();
        assert_eq!(grandchild.iter().map(|(_, name, _)| name).collect::<Vec<_>>(), ["always"]);
    }
}
