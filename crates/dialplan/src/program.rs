//! The compiled dialplan: contexts, extensions and steps, immutable once loaded.

use std::collections::HashMap;
use std::sync::Arc;

use conf::Place;

use crate::args::{Label, Priority};
use crate::pattern::Pattern;
use crate::registry::{AppId, Apps, Functions};
use crate::step::{Kind, Step};
use crate::timing::Timing;
use crate::vars::{Symbols, VarName};

/// A context, by its place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);

/// A label's name, interned over the whole program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(pub u32);

/// An extension, by its context and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExtensionRef {
    /// Context it stands in, which may be an included one.
    pub context: ContextId,
    /// Place in the context's sorted list; [`REGISTERED`] for what registered extensions share.
    pub index: u32,
}

/// The place of what stands for every registered extension of a context ([`crate::registered`]); no list is so long.
pub const REGISTERED: u32 = u32::MAX;

impl ExtensionRef {
    /// An extension of rows ([`crate::rowed`]), which no program has and whoever stands in it keeps.
    pub const ROWED: Self = Self { context: ContextId(u32::MAX), index: u32::MAX };
}

/// A step, by its extension and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepRef {
    /// The extension.
    pub extension: ExtensionRef,
    /// Place in [`Extension::steps`].
    pub index: u32,
}

/// `[general]` of extensions.conf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct General {
    /// An extension that runs out ends the call by DIALSTATUS instead of waiting.
    pub autofallthrough: bool,
    /// A reload forgets globals.
    pub clearglobalvars: bool,
    /// `dialplan save` must not write.
    pub static_config: bool,
    /// Together with `static` forbids `dialplan save`.
    pub writeprotect: bool,
}

impl Default for General {
    fn default() -> Self {
        Self { autofallthrough: true, clearglobalvars: false, static_config: true, writeprotect: true }
    }
}

/// Which callers an extension is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerMatch {
    /// All.
    Any,
    /// Those without a number (`exten/`).
    Absent,
    /// Those whose number matches.
    Number {
        /// As written.
        text: Box<str>,
        /// Compiled.
        pattern: Pattern,
    },
}

impl CallerMatch {
    /// Whether a caller with this number is meant; empty is no number.
    pub fn takes(&self, caller: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => caller.is_empty(),
            Self::Number { pattern, .. } => !caller.is_empty() && pattern.fit(caller).matches(),
        }
    }
}

/// What `hint` gives an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Devices joined with `&`; may hold `${}`.
    pub devices: Box<str>,
    /// Presence provider after the comma; empty when there is none.
    pub presence: Box<str>,
    /// Where it is written.
    pub place: Place,
}

/// An extension: one name and caller match with its steps.
#[derive(Debug, Clone)]
pub struct Extension {
    /// Name as written, `_9XX`.
    pub name: Box<str>,
    /// Compiled name.
    pub pattern: Pattern,
    /// Whose calls it takes.
    pub caller: CallerMatch,
    /// Steps, ascending by priority.
    pub steps: Vec<Step>,
    /// Its hint.
    pub hint: Option<Hint>,
    pub(crate) labels: Vec<(LabelId, u32)>,
}

impl Extension {
    /// Place of a priority in `steps`.
    pub fn find(&self, priority: u32) -> Option<u32> {
        // Most extensions count 1, 2, 3 without a gap.
        let guess = usize::try_from(priority).ok()?.checked_sub(1)?;
        if self.steps.get(guess).is_some_and(|step| step.priority == priority) {
            return u32::try_from(guess).ok();
        }
        let at = self.steps.binary_search_by_key(&priority, |step| step.priority).ok()?;
        u32::try_from(at).ok()
    }
    /// Priority of a label.
    pub fn label(&self, label: LabelId) -> Option<u32> {
        self.labels.iter().find(|(known, _)| *known == label).map(|&(_, priority)| priority)
    }
}

/// `include =>`.
#[derive(Debug, Clone)]
pub struct Include {
    /// Included context's name.
    pub name: Box<str>,
    /// Included context, when there is one.
    pub context: Option<ContextId>,
    /// When it applies; `None` always.
    pub timing: Option<Timing>,
    /// The line's text.
    pub text: Box<str>,
    /// Where it is written.
    pub place: Place,
}

/// `switch =>`, `lswitch =>` or `eswitch =>`; `IAX2` and `Realtime` are asked, others are kept for show and check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// `Realtime`, `IAX2`, `Lua` and so on.
    pub engine: Box<str>,
    /// What follows the slash.
    pub data: Box<str>,
    /// `${}` in it is for call time.
    pub late: bool,
    /// Where it is written.
    pub place: Place,
}

/// A context: sections of one name, merged.
#[derive(Debug, Clone)]
pub struct Context {
    /// Name, case-sensitive.
    pub name: Box<str>,
    /// Extensions in matching order.
    pub extensions: Vec<Extension>,
    /// Includes in file order.
    pub includes: Vec<Include>,
    /// `ignorepat` patterns in file order, as written.
    pub ignorepats: Vec<Box<str>>,
    /// Switches in file order.
    pub switches: Vec<Switch>,
    /// Hints are made for every device that asks.
    pub autohints: bool,
    /// Where its first section begins.
    pub place: Place,
    /// What stands here for every registered extension, in a context that has such; see [`crate::registered`].
    pub(crate) registered: Option<Box<Extension>>,
    pub(crate) ignore_patterns: Vec<Pattern>,
    /// Literal names without dashes, to their places in `extensions`.
    pub(crate) literals: HashMap<Box<str>, Vec<u32>>,
    /// Places of patterns, in matching order.
    pub(crate) patterns: Vec<u32>,
    /// Of those, the ones that can take a number with this first digit.
    pub(crate) by_digit: [Vec<u32>; 10],
}

/// A loaded dialplan.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(crate) general: General,
    pub(crate) globals: Vec<(VarName, String)>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) by_name: HashMap<Box<str>, ContextId>,
    pub(crate) symbols: Symbols,
    pub(crate) labels: HashMap<Box<str>, LabelId>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) apps: Arc<Apps>,
    pub(crate) functions: Arc<Functions>,
}

impl Program {
    /// A program without contexts over these tables; what runs before the first load.
    pub fn empty(apps: Arc<Apps>, functions: Arc<Functions>) -> Self {
        let kinds = apps.iter().map(|(_, name)| Kind::of(name)).collect();
        Self { apps, functions, kinds, ..Self::default() }
    }
    /// What it was compiled against, functions of `func_odbc.conf` among them.
    pub fn tables(&self) -> crate::Tables {
        crate::Tables { apps: Arc::clone(&self.apps), functions: Arc::clone(&self.functions) }
    }
    /// `[general]`.
    pub fn general(&self) -> &General {
        &self.general
    }
    /// `[globals]`, in file order, values substituted.
    pub fn globals(&self) -> impl Iterator<Item = (&VarName, &str)> {
        self.globals.iter().map(|(name, value)| (name, value.as_str()))
    }
    /// Variable names with ids.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }
    /// Application names.
    pub fn apps(&self) -> &Apps {
        &self.apps
    }
    /// The function table.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }
    /// Contexts in file order.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }
    /// The id of a context's name.
    pub fn context_id(&self, name: &str) -> Option<ContextId> {
        self.by_name.get(name).copied()
    }
    /// A context by id.
    pub fn context(&self, id: ContextId) -> Option<&Context> {
        usize::try_from(id.0).ok().and_then(|index| self.contexts.get(index))
    }
    /// An extension.
    pub fn extension(&self, at: ExtensionRef) -> Option<&Extension> {
        let context = self.context(at.context)?;
        if at.index == REGISTERED {
            return context.registered.as_deref();
        }
        context.extensions.get(usize::try_from(at.index).ok()?)
    }
    /// A step.
    pub fn step(&self, at: StepRef) -> Option<&Step> {
        self.extension(at.extension)?.steps.get(usize::try_from(at.index).ok()?)
    }
    /// The id of a label that some extension has.
    pub fn label_id(&self, name: &str) -> Option<LabelId> {
        self.labels.get(name).copied()
    }
    /// The id of a destination's label; needs no look-up when the destination was fixed at load.
    pub fn label(&self, label: &Label) -> Option<LabelId> {
        label.id.or_else(|| self.label_id(label))
    }
    /// What an application does to its arguments.
    pub(crate) fn kind(&self, app: AppId) -> Kind {
        self.kinds.get(usize::from(app.0)).copied().unwrap_or_default()
    }
    /// The priority a place means in an extension; `current` is where the call stands.
    pub fn resolve(&self, extension: &Extension, place: &Priority, current: u32) -> Option<u32> {
        match place {
            Priority::Number(number) => Some(*number),
            Priority::Label(name) => extension.label(self.label(name)?),
            Priority::Forward(by) => Some(current.saturating_add(*by)),
            Priority::Back(by) => current.checked_sub(*by).filter(|&priority| priority > 0),
        }
    }
}
