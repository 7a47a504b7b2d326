//! `switch => Realtime/context@family`: steps that are rows of a table.
//!
//! A table is asked where the dialplan has no step, once for each extension that a call comes to; the call goes on through
//! its rows without asking again. Own extensions and those of included contexts go first, then tables, in the order of the
//! file, then switches to other sites.

use core::time::Duration;

use base::{Cause, Rows, RowsAsk, RowsWant};
use call::{Level, Stop};
use dialplan::{Query, RowStep, RowSwitch, rowed};

use super::Place;
use crate::Call;
use crate::asking::Came;
use crate::env::Scope;

/// The module that has them.
pub(crate) const MODULE: &str = "pbx_realtime";
/// How long a table may take; what is known serves then.
const WITHIN: Duration = Duration::from_secs(3);
/// Rows that are taken of one answer: the steps of one number, or all patterns of a context.
const ROWS_MAX: usize = 10_000;
/// What the extension of a pattern begins with, for `LIKE`.
const PATTERNS: &str = "\\_%";

impl Call {
    /// The tables that have numbers of a context: family, context as the rows have it, and whether patterns are among them.
    fn row_switches(&self, context: &str) -> Vec<(String, String, bool)> {
        let (program, there) =
            self.chan.core(|core| (core.program.clone(), core.settings.has_module(MODULE)));
        let Some(context) = program.context_id(context).filter(|_| there) else { return Vec::new() };
        let query = Query { context, exten: "", caller: "" };
        let found = program.switches(query, &Scope::new(self)).into_iter();
        let named = found.filter(|(_, switch)| switch.is_rowed()).map(|(own, switch)| {
            let of = match switch.late {
                true => RowSwitch::parse(&self.expand(&switch.data)),
                false => RowSwitch::parse(&switch.data),
            };
            (of.family, of.context.unwrap_or_else(|| own.to_owned()), of.patterns)
        });
        named.collect()
    }
    /// Whether numbers of a context may be rows of a table.
    pub(super) fn has_rows(&self, context: &str) -> bool {
        !self.row_switches(context).is_empty()
    }
    /// Whether a table that nobody has asked yet may have a step here.
    pub(crate) fn may_have_rows(&self, place: &Place) -> bool {
        place.step().is_none() && place.is_unasked() && self.has_rows(place.context())
    }
    /// Looks a place up, in tables as well where the dialplan has no step; with `after_end` whether the call goes on or not.
    pub(crate) async fn look(
        &self,
        (context, exten): (&str, &str),
        priority: u32,
        after_end: bool,
    ) -> Result<Place, Stop> {
        self.fill(Place::find(self, context, exten, priority), after_end).await
    }
    /// The same for a special extension, at its beginning; `None`: nobody has it.
    pub(crate) async fn look_special(&self, context: &str, exten: &str) -> Option<Place> {
        let place = self.look((context, exten), 1, true).await.ok()?;
        place.step().is_some().then_some(place)
    }
    /// Asks tables what they have where the run stands without a step; whether there is one.
    pub(super) async fn rows_here(&self, after_end: bool) -> Result<bool, Stop> {
        let here = self.here();
        if !self.may_have_rows(&here) {
            return Ok(false);
        }
        self.settle();
        let filled = self.fill(here, after_end).await?;
        let found = filled.step().is_some();
        self.stand_at(filled);
        Ok(found)
    }
    /// Has tables say what they have at a place without a step.
    pub(super) async fn fill(&self, mut place: Place, after_end: bool) -> Result<Place, Stop> {
        if !self.may_have_rows(&place) || place.exten().is_empty() {
            return Ok(place);
        }
        self.run.unanswered.set(false);
        for (family, context, patterns) in self.row_switches(place.context()) {
            let own = self.rows_of(&family, &context, ("exten", place.exten()), after_end).await?;
            let more = match patterns {
                true => self.rows_of(&family, &context, ("exten LIKE", PATTERNS), after_end).await?,
                false => Ok(Vec::new()),
            };
            let mut rows = Vec::new();
            for came in [own, more] {
                match came {
                    Ok(some) => rows.extend(some),
                    Err(why) => {
                        self.run.unanswered.set(true);
                        self.chan.log(
                            Level::Warning,
                            "pbx",
                            &format!("switch Realtime/{context}@{family}: {why}"),
                        );
                    }
                }
            }
            let program = place.program.clone();
            if let Some(found) = program.rowed(&family, place.exten(), &rows) {
                self.run.unanswered.set(false);
                place.set_rows(Some(found));
                return Ok(place);
            }
        }
        place.set_rows(None);
        Ok(place)
    }
    /// Whether tables may have a longer number that begins with these digits.
    pub(super) async fn rows_go_on(&self, context: &str, digits: &str) -> Result<bool, Stop> {
        for (family, context, patterns) in self.row_switches(context) {
            let longer = format!("{}_%", escaped(digits));
            let own = self.rows_of(&family, &context, ("exten LIKE", &longer), false).await?;
            if own.is_ok_and(|rows| rows.iter().any(|row| !row.exten.starts_with('_'))) {
                return Ok(true);
            }
            if patterns {
                let more = self.rows_of(&family, &context, ("exten LIKE", PATTERNS), false).await?;
                let rows = more.unwrap_or_default();
                if rowed::goes_on(rows.iter().map(|row| row.exten.as_str()), digits) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
    /// Rows of a context whose extensions meet a condition.
    async fn rows_of(
        &self,
        family: &str,
        context: &str,
        (column, value): (&str, &str),
        after_end: bool,
    ) -> Result<Came<Vec<RowStep>>, Stop> {
        let filters = [("context", context), (column, value)];
        let filters = filters.map(|(column, value)| (column.to_owned(), value.to_owned())).to_vec();
        let ask = RowsAsk::Find { family: family.to_owned(), filters };
        let want = RowsWant { ask, rows_max: ROWS_MAX, within: WITHIN, serves_last: true };
        Ok(self.ask_database(want, after_end).await?.map(|rows| steps(&rows)))
    }
    /// Whether a table that was asked last did not answer: the call then ends for that, whatever else it would do.
    pub(super) fn is_unanswered(&self) -> bool {
        let is = self.run.unanswered.take();
        if is {
            let _ = self.chan.with(|c| c.last_cause = Cause::SWITCH_CONGESTION);
        }
        is
    }
}

/// Text that `LIKE` takes as it stands.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for symbol in text.chars() {
        if matches!(symbol, '\\' | '%' | '_') {
            out.push('\\');
        }
        out.push(symbol);
    }
    out
}

/// What the rows say; one without an extension, a priority or an application is passed over.
fn steps(rows: &Rows) -> Vec<RowStep> {
    let place = |name: &str| rows.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
    let [exten, priority, app, data] = ["exten", "priority", "app", "appdata"].map(place);
    let step = |row: &Vec<Option<String>>| {
        let cell = |at: Option<usize>| at.and_then(|at| row.get(at)?.as_deref());
        Some(RowStep {
            exten: cell(exten)?.to_owned(),
            priority: cell(priority)?.trim().parse().ok()?,
            app: cell(app)?.to_owned(),
            data: cell(data).unwrap_or_default().to_owned(),
        })
    };
    rows.rows.iter().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_no_wildcards() {
        assert_eq!(escaped("1_0%\\"), "1\\_0\\%\\\\");
    }

    #[test]
    fn a_row_is_a_step_when_it_has_what_a_step_needs() {
        let text = |text: &str| Some(text.to_owned());
        let rows = Rows {
            columns: ["id", "Priority", "exten", "app", "appdata"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![text("1"), text("1"), text("100"), text("Answer"), None],
                vec![text("2"), text("n"), text("100"), text("NoOp"), None],
                vec![text("3"), text("2"), None, text("NoOp"), None],
                vec![text("4"), text("2"), text("100"), text("Dial"), text("PJSIP/a,20")],
            ],
            changed: 0,
        };
        let found: Vec<(u32, String)> = steps(&rows)
            .into_iter()
            .map(|step| (step.priority, format!("{}({})", step.app, step.data)))
            .collect();
        assert_eq!(found, [(1, "Answer()".to_owned()), (2, "Dial(PJSIP/a,20)".to_owned())]);
    }
}
