//! Looking up extensions: own names, then includes, depth first (§4).

use crate::args::Priority;
use crate::env::Calendar;
use crate::pattern::{Fit, Pattern};
use crate::program::{
    ContextId, Extension, ExtensionRef, Hint, LabelId, Program, REGISTERED, StepRef, Switch,
};
use crate::registered::Near;

/// Contexts one look-up visits: own and included ones together.
pub const INCLUDES_MAX: usize = 128;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Where.
    pub context: ContextId,
    /// The number.
    pub exten: &'a str,
    /// The caller's number; empty when there is none.
    pub caller: &'a str,
}

/// Every extension that takes a number, best first: the answer to all steps of one (context, exten, caller).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// Candidates in search order. A priority that the first lacks is looked for in the next.
    pub candidates: Vec<ExtensionRef>,
    /// The answer depends on the time of day, or on who is registered: look it up again at each step.
    pub timed: bool,
    /// The answer depends on the caller's number.
    pub by_caller: bool,
}

impl Program {
    /// Finds every extension that takes the number.
    pub fn route(&self, query: Query<'_>, calendar: &dyn Calendar) -> Route {
        let mut route = Route::default();
        let mut visited = Vec::new();
        let mut passing = false;
        self.visit(query.context, calendar, &mut visited, &mut route.timed, &mut |id| {
            if self.context(id).is_some_and(|context| context.registered.is_some()) {
                passing = true;
                // A registration takes the place of a step that is written at priority 1.
                if self.near(id, query, calendar).whole {
                    route.candidates.push(ExtensionRef { context: id, index: REGISTERED });
                }
            }
            self.own_matches(id, query, &mut route.candidates, &mut route.by_caller);
            false
        });
        route.timed |= passing;
        route
    }
    /// Switches of a context and of those that it includes, each with the name of the context that it stands in.
    pub fn switches(&self, query: Query<'_>, calendar: &dyn Calendar) -> Vec<(&str, &Switch)> {
        let (mut found, mut visited, mut timed) = (Vec::new(), Vec::new(), false);
        self.visit(query.context, calendar, &mut visited, &mut timed, &mut |id| {
            let context = self.context(id);
            found.extend(
                context.into_iter().flat_map(|of| of.switches.iter().map(|switch| (&*of.name, switch))),
            );
            false
        });
        found
    }
    /// Walks a context and its includes; `look` returns true to stop, and so does this.
    fn visit(
        &self,
        id: ContextId,
        calendar: &dyn Calendar,
        visited: &mut Vec<ContextId>,
        timed: &mut bool,
        look: &mut dyn FnMut(ContextId) -> bool,
    ) -> bool {
        if visited.contains(&id) || visited.len() >= INCLUDES_MAX {
            return false;
        }
        visited.push(id);
        if look(id) {
            return true;
        }
        let Some(context) = self.context(id) else { return false };
        for include in &context.includes {
            let Some(inner) = include.context else { continue };
            if let Some(timing) = &include.timing {
                *timed = true;
                if !timing.applies(calendar) {
                    continue;
                }
            }
            if self.visit(inner, calendar, visited, timed, look) {
                return true;
            }
        }
        false
    }
    /// Where a number stands among the registered extensions of a context, if it has such.
    fn near(&self, id: ContextId, query: Query<'_>, calendar: &dyn Calendar) -> Near {
        let context = self.context(id).filter(|context| context.registered.is_some());
        context.map(|context| calendar.registered(&context.name, query.exten)).unwrap_or_default()
    }
    fn own_matches(
        &self,
        id: ContextId,
        query: Query<'_>,
        found: &mut Vec<ExtensionRef>,
        by_caller: &mut bool,
    ) {
        let Some(context) = self.context(id) else { return };
        let mut take = |index: u32, extension: &Extension| {
            if extension.caller != crate::program::CallerMatch::Any {
                *by_caller = true;
            }
            if extension.caller.takes(query.caller) {
                found.push(ExtensionRef { context: id, index });
            }
        };
        let literal = if query.exten.contains('-') {
            context.literals.get(Pattern::key(query.exten).as_str())
        } else {
            context.literals.get(query.exten)
        };
        for &index in literal.into_iter().flatten() {
            if let Some(extension) = usize::try_from(index).ok().and_then(|at| context.extensions.get(at)) {
                take(index, extension);
            }
        }
        let first =
            query.exten.bytes().next().filter(u8::is_ascii_digit).map(|digit| usize::from(digit - b'0'));
        let patterns = first.and_then(|digit| context.by_digit.get(digit)).unwrap_or(&context.patterns);
        for &index in patterns {
            let Some(extension) = usize::try_from(index).ok().and_then(|at| context.extensions.get(at))
            else {
                continue;
            };
            if extension.pattern.fit(query.exten).matches() {
                take(index, extension);
            }
        }
    }
    /// The step of a route at a priority: in the first candidate that has it.
    pub fn at_priority(&self, route: &Route, priority: u32) -> Option<StepRef> {
        route.candidates.iter().find_map(|&extension| {
            let index = self.extension(extension)?.find(priority)?;
            Some(StepRef { extension, index })
        })
    }
    /// The step of a route at a label.
    pub fn at_label(&self, route: &Route, label: LabelId) -> Option<StepRef> {
        route.candidates.iter().find_map(|&extension| {
            let inside = self.extension(extension)?;
            let index = inside.find(inside.label(label)?)?;
            Some(StepRef { extension, index })
        })
    }
    /// The step of a route at any kind of place; `current` is the priority that `+n` and `-n` count from.
    pub fn at_place(&self, route: &Route, place: &Priority, current: u32) -> Option<StepRef> {
        match place {
            Priority::Number(number) => self.at_priority(route, *number),
            Priority::Label(name) => self.at_label(route, self.label(name)?),
            Priority::Forward(by) => self.at_priority(route, current.checked_add(*by)?),
            Priority::Back(by) => self.at_priority(route, current.checked_sub(*by)?),
        }
    }
    /// One look-up from nothing.
    pub fn find(&self, query: Query<'_>, priority: u32, calendar: &dyn Calendar) -> Option<StepRef> {
        self.at_priority(&self.route(query, calendar), priority)
    }
    /// Whether the number has priority 1.
    pub fn exists(&self, query: Query<'_>, calendar: &dyn Calendar) -> bool {
        self.find(query, 1, calendar).is_some()
    }
    /// How each extension takes the number so far, most specific first, until `look` says stop.
    fn fits(
        &self,
        query: Query<'_>,
        calendar: &dyn Calendar,
        look: &mut dyn FnMut(&Extension, Fit) -> Option<bool>,
    ) -> bool {
        let mut answer = false;
        let mut ignored = false;
        self.visit(query.context, calendar, &mut Vec::new(), &mut ignored, &mut |id| {
            let near = self.near(id, query, calendar);
            let registered = self.context(id).and_then(|context| context.registered.as_deref());
            for (is_there, fit) in [(near.whole, Fit::Whole), (near.more, Fit::NeedsMore)] {
                if let Some(decided) =
                    registered.filter(|_| is_there).and_then(|extension| look(extension, fit))
                {
                    answer = decided;
                    return true;
                }
            }
            for extension in self.context(id).into_iter().flat_map(|context| &context.extensions) {
                if !extension.caller.takes(query.caller) {
                    continue;
                }
                if let Some(decided) = look(extension, extension.pattern.fit(query.exten)) {
                    answer = decided;
                    return true;
                }
            }
            false
        });
        answer
    }
    /// Whether the digits so far match something or are the beginning of something that has priority 1.
    pub fn can_match(&self, query: Query<'_>, calendar: &dyn Calendar) -> bool {
        self.fits(query, calendar, &mut |extension, fit| {
            (fit != Fit::No && extension.find(1).is_some()).then_some(true)
        })
    }
    /// Whether more digits could match something else or something longer.
    ///
    /// A `!` that matches ends the wait, unless a more specific extension before it needs more digits.
    pub fn match_more(&self, query: Query<'_>, calendar: &dyn Calendar) -> bool {
        self.fits(query, calendar, &mut |extension, fit| match fit {
            _ if extension.find(1).is_none() => None,
            Fit::NeedsMore | Fit::WholeAndMore => Some(true),
            Fit::Early => Some(false),
            Fit::No | Fit::Whole => None,
        })
    }
    /// Whether dial tone goes on after these digits.
    pub fn ignores(&self, context: ContextId, digits: &str) -> bool {
        self.context(context).is_some_and(|context| {
            context.ignore_patterns.iter().any(|pattern| pattern.fit(digits).matches())
        })
    }
    /// The hint for a number, found like a step.
    pub fn hint(&self, query: Query<'_>, calendar: &dyn Calendar) -> Option<&Hint> {
        let route = self.route(query, calendar);
        route.candidates.iter().find_map(|&at| self.extension(at)?.hint.as_ref())
    }
    /// Every hint with its context's and extension's name, in file order of contexts.
    pub fn hints(&self) -> impl Iterator<Item = (&str, &str, &Hint)> {
        self.contexts().iter().flat_map(|context| {
            context.extensions.iter().filter_map(move |extension| {
                extension.hint.as_ref().map(|hint| (&*context.name, &*extension.name, hint))
            })
        })
    }
}
