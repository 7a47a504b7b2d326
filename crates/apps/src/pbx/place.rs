//! Where a run stands in the dialplan, and how it finds the next step without looking up by name.

use std::rc::Rc;
use std::sync::Arc;

use call::Location;
use dialplan::{Destination, Extension, ExtensionRef, Priority, Program, Query, Route, Step, StepRef};

use crate::Call;
use crate::call_ctx::NoSuchPlace;
use crate::env::Scope;

/// A context, extension and priority of one program, with the extensions that take the number already found.
#[derive(Clone)]
pub(crate) struct Place {
    pub(super) program: Arc<Program>,
    context: Rc<str>,
    exten: Rc<str>,
    pub(super) priority: u32,
    route: Rc<Route>,
    rows: Rows,
    step: Option<StepRef>,
}

/// What tables have for a number (`switch => Realtime/…`), beside the dialplan.
#[derive(Clone)]
pub(super) enum Rows {
    /// Nobody has asked yet.
    Unasked,
    /// These steps, or none.
    Known(Option<Rc<Extension>>),
}

impl Place {
    /// Looks the place up in the dialplan in force; it need not have a step.
    pub(crate) fn find(call: &Call, context: &str, exten: &str, priority: u32) -> Self {
        let program = call.chan.core(|core| core.program.clone());
        let route = Rc::new(route(call, &program, context, exten));
        let step = program.at_priority(&route, priority);
        let rows = Rows::Unasked;
        Self { program, context: context.into(), exten: exten.into(), priority, route, rows, step }
    }
    pub(crate) fn context(&self) -> &str {
        &self.context
    }
    pub(crate) fn exten(&self) -> &str {
        &self.exten
    }
    pub(crate) fn priority(&self) -> u32 {
        self.priority
    }
    /// The step here, if there is one that is known.
    pub(crate) fn step(&self) -> Option<StepRef> {
        self.step
    }
    /// The extension of rows that the step here is one of.
    pub(super) fn rowed(&self) -> Option<Rc<Extension>> {
        let extension = match &self.rows {
            Rows::Known(Some(extension)) => extension,
            Rows::Known(None) | Rows::Unasked => return None,
        };
        self.step.is_some_and(|at| at.extension == ExtensionRef::ROWED).then(|| extension.clone())
    }
    /// Whether a table has steps of this number.
    pub(super) fn has_rows(&self) -> bool {
        matches!(self.rows, Rows::Known(Some(_)))
    }
    /// Whether nobody has asked yet what tables have here.
    pub(super) fn is_unasked(&self) -> bool {
        matches!(self.rows, Rows::Unasked)
    }
    /// What tables have for this number.
    pub(super) fn set_rows(&mut self, found: Option<Extension>) {
        self.rows = Rows::Known(found.map(Rc::new));
        self.step = self.at(self.priority);
    }
    /// The step at a priority: that of the dialplan, else that of a table.
    fn at(&self, priority: u32) -> Option<StepRef> {
        let rowed = || match &self.rows {
            Rows::Known(Some(extension)) => {
                extension.find(priority).map(|index| StepRef { extension: ExtensionRef::ROWED, index })
            }
            Rows::Known(None) | Rows::Unasked => None,
        };
        self.program.at_priority(&self.route, priority).or_else(rowed)
    }
    pub(crate) fn location(&self) -> Location {
        Location { context: self.context.to_string(), exten: self.exten.to_string(), priority: self.priority }
    }
    /// Moves within the extension.
    pub(crate) fn set_priority(&mut self, priority: u32) {
        let next = self.step.filter(|_| priority == self.priority.wrapping_add(1)).and_then(|at| {
            let following = StepRef { index: at.index + 1, ..at };
            self.program.step(following).is_some_and(|step| step.priority == priority).then_some(following)
        });
        self.priority = priority;
        self.step = next.or_else(|| self.at(priority));
    }
    /// The priority that a place of this extension means; `None` when there is no such label or priority.
    pub(crate) fn priority_of(&self, place: &Priority) -> Option<u32> {
        match place {
            Priority::Number(number) => Some(*number),
            Priority::Forward(by) => Some(self.priority.saturating_add(*by)),
            Priority::Back(by) => self.priority.checked_sub(*by).filter(|priority| *priority > 0),
            Priority::Label(name) => {
                let found = self.program.at_label(&self.route, self.program.label_id(name)?)?;
                self.program.step(found).map(|step| step.priority)
            }
        }
    }
    /// Whether the extensions found before may not be those that a look-up would find at this moment.
    pub(crate) fn is_stale(&self, program: &Arc<Program>) -> bool {
        !Arc::ptr_eq(&self.program, program) || self.route.timed || self.route.by_caller
    }
    /// Looks the same place up again. What tables have holds until the dialplan is another.
    pub(crate) fn again(&self, call: &Call) -> Self {
        let mut fresh = Self::find(call, &self.context, &self.exten, self.priority);
        if Arc::ptr_eq(&fresh.program, &self.program) {
            fresh.rows = self.rows.clone();
            fresh.step = fresh.at(fresh.priority);
        }
        fresh
    }
    /// Where a destination leads from here; a label that does not exist is an error, a number without a step is not.
    pub(crate) fn toward(&self, call: &Call, to: &Destination) -> Result<Self, NoSuchPlace> {
        let context = to.context.as_deref().unwrap_or(&self.context);
        let exten = to.exten.as_deref().unwrap_or(&self.exten);
        let mut there = if context == &*self.context && exten == &*self.exten {
            self.clone()
        } else {
            Self::find(call, context, exten, self.priority)
        };
        there.priority = self.priority;
        let Some(priority) = there.priority_of(&to.place) else {
            let which = match &to.place {
                Priority::Label(name) => format!("there is no label '{name}'"),
                Priority::Number(_) | Priority::Forward(_) | Priority::Back(_) => {
                    "there is no such priority".to_owned()
                }
            };
            return Err(NoSuchPlace(format!("{which} in extension {exten} of context {context}")));
        };
        there.set_priority(priority);
        Ok(there)
    }
    /// Priorities and application names of this extension, for While and If to find their ends.
    pub(crate) fn applications(&self) -> impl DoubleEndedIterator<Item = (u32, &str)> {
        let rowed = match &self.rows {
            Rows::Known(Some(extension)) => Some(&**extension),
            Rows::Known(None) | Rows::Unasked => None,
        };
        let extension = self.step.and_then(|at| match at.extension {
            ExtensionRef::ROWED => rowed,
            of => self.program.extension(of),
        });
        let steps: &[Step] = extension.map_or(&[], |extension| &extension.steps);
        steps.iter().map(|step| (step.priority, &*step.name))
    }
}

fn query<'a>(program: &Program, context: &str, exten: &'a str, caller: &'a str) -> Option<Query<'a>> {
    Some(Query { context: program.context_id(context)?, exten, caller })
}

fn route(call: &Call, program: &Program, context: &str, exten: &str) -> Route {
    let caller = call.caller_number();
    let Some(query) = query(program, context, exten, &caller) else { return Route::default() };
    program.route(query, &Scope::new(call))
}

impl Call {
    fn caller_number(&self) -> String {
        self.chan.with(|c| c.caller.number().to_owned()).unwrap_or_default()
    }
    fn ask(
        &self,
        context: &str,
        exten: &str,
        ask: impl FnOnce(&Program, Query<'_>, &Scope<'_>) -> bool,
    ) -> bool {
        let program = self.chan.core(|core| core.program.clone());
        let caller = self.caller_number();
        query(&program, context, exten, &caller).is_some_and(|query| ask(&program, query, &Scope::new(self)))
    }
    /// Whether `exten` can be dialled in `context`: it has priority 1 for this caller.
    pub fn exists(&self, context: &str, exten: &str) -> bool {
        self.ask(context, exten, |program, query, scope| program.exists(query, scope))
    }
    /// Whether `exten` is, or may become with more digits, one that can be dialled in `context`.
    pub fn can_match(&self, context: &str, exten: &str) -> bool {
        self.ask(context, exten, |program, query, scope| program.can_match(query, scope))
    }
    /// Whether more digits after `exten` may lead elsewhere in `context`.
    pub fn match_more(&self, context: &str, exten: &str) -> bool {
        self.ask(context, exten, |program, query, scope| program.match_more(query, scope))
    }
    /// The context where this channel stands.
    pub fn context(&self) -> String {
        let running = self.run.place.borrow().as_ref().map(|place| place.context().to_owned());
        running.unwrap_or_else(|| self.chan.with(|c| c.location.context.clone()).unwrap_or_default())
    }
    /// Devices and presence name of the hint of an extension, `${…}` expanded.
    pub fn hint_of(&self, context: &str, exten: &str) -> Option<(String, String)> {
        let program = self.chan.core(|core| core.program.clone());
        let caller = self.caller_number();
        let hint = program.hint(query(&program, context, exten, &caller)?, &Scope::new(self))?;
        let written = |text: &str| self.expand_at(context, exten, text);
        Some((written(&hint.devices), written(&hint.presence)))
    }
    /// The place that the run, or else the channel, stands at.
    pub(crate) fn here(&self) -> Place {
        if let Some(place) = &*self.run.place.borrow() {
            return place.clone();
        }
        let at = self.chan.with(|c| c.location.clone()).unwrap_or_default();
        Place::find(self, &at.context, &at.exten, at.priority)
    }
    /// Where `[[context,]exten,]priority` leads from here. Labels must exist; a priority need not.
    pub(crate) fn place_of(&self, target: &str) -> Result<Place, NoSuchPlace> {
        let to = Destination::parse(target)
            .ok_or_else(|| NoSuchPlace(format!("'{target}' does not name a priority")))?;
        self.here().toward(self, &to)
    }
    /// Where `[[context,]exten,]priority` leads from here.
    pub fn resolve(&self, target: &str) -> Result<Location, NoSuchPlace> {
        self.place_of(target).map(|place| place.location())
    }
    /// Sends the call to `[[context,]exten,]priority`; the application then returns [`Flow::Jumped`](crate::Flow::Jumped).
    pub fn goto(&self, target: &str) -> Result<(), NoSuchPlace> {
        self.goes_on_at(target)?;
        self.settle_place();
        Ok(())
    }
    /// The same, seen by watchers only once the dialplan goes on.
    pub(crate) fn goes_on_at(&self, target: &str) -> Result<(), NoSuchPlace> {
        let place = self.place_of(target)?;
        self.stand_at(place);
        Ok(())
    }
    pub(crate) fn stand_at(&self, place: Place) {
        *self.run.place.borrow_mut() = Some(place);
        self.run.unsettled.set(true);
    }
    /// Shows the place at once, without counting the application as run.
    fn settle_place(&self) {
        let at = self.run.place.borrow().as_ref().map(Place::location);
        if let Some(at) = at {
            let _ = self.chan.with(|c| c.location = at);
        }
    }
}
