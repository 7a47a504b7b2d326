//! Extensions whose steps are rows of a table (`switch => Realtime/…`): which rows take a number, and what they compile to.
//!
//! Who asks for the rows is the run loop's business. They are compiled for the call that asked and are no part of the
//! [`Program`].

use std::collections::BTreeMap;

use conf::Place;

use crate::pattern::{Fit, Pattern};
use crate::program::{CallerMatch, Extension, Program, Switch};
use crate::step::{Kind, Source, Step};
use crate::template::{Compiler, Names};

/// The engine of such a switch.
pub const ENGINE: &str = "Realtime";
/// The family that is asked when the switch names none.
const FAMILY: &str = "extensions";

/// What follows the slash of such a switch: `[[context@]family][/options]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSwitch {
    /// The context that rows have in the table; `None`: that of the dialplan.
    pub context: Option<String>,
    /// The family of `extconfig.conf`.
    pub family: String,
    /// Rows may be patterns; option `p` says that none is.
    pub patterns: bool,
}

impl RowSwitch {
    /// Reads it. Nothing in it is refused: what is left out has a default, as in the field.
    pub fn parse(data: &str) -> Self {
        let (place, options) = data.split_once('/').unwrap_or((data, ""));
        let (context, family) = place.split_once('@').unwrap_or(("", place));
        let given = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            context: given(context),
            family: given(family).unwrap_or_else(|| FAMILY.to_owned()),
            patterns: !options.contains('p'),
        }
    }
}

impl Switch {
    /// Whether its numbers are rows of a table.
    pub fn is_rowed(&self) -> bool {
        self.engine.eq_ignore_ascii_case(ENGINE)
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowStep {
    /// Its extension: a number, or a pattern with `_` before it.
    pub exten: String,
    /// 1 and up.
    pub priority: u32,
    /// The application.
    pub app: String,
    /// Its arguments as a dialplan would spell them.
    pub data: String,
}

/// How a row's extension takes a number; a pattern that makes no sense takes none.
fn fit(exten: &str, number: &str) -> Fit {
    Pattern::parse(exten).map_or(Fit::No, |pattern| pattern.fit(number))
}

/// Whether a longer number that begins with this one may have a row: patterns are looked at in the order of their text, and
/// one that ends with `!` takes the number as it is.
pub fn goes_on<'a>(patterns: impl Iterator<Item = &'a str>, number: &str) -> bool {
    let mut patterns: Vec<&str> = patterns.filter(|pattern| pattern.starts_with('_')).collect();
    patterns.sort_unstable();
    let decided = patterns.into_iter().find_map(|pattern| match fit(pattern, number) {
        Fit::NeedsMore | Fit::WholeAndMore => Some(true),
        Fit::Early => Some(false),
        Fit::No | Fit::Whole => None,
    });
    decided.unwrap_or(false)
}

impl Program {
    /// The extension that a number has in these rows; `None`: none of them takes it.
    ///
    /// As in the field each priority is found by itself: the row of the number itself goes first, then the first of the
    /// patterns that match, in the order of their text. An application that does not exist ends the call when it is reached.
    pub fn rowed(&self, family: &str, number: &str, rows: &[RowStep]) -> Option<Extension> {
        let takes = |row: &&RowStep| row.priority > 0 && fit(&row.exten, number).matches();
        let mut taking: Vec<&RowStep> = rows.iter().filter(takes).collect();
        // Stable: of equal ones that which the database gave first.
        taking.sort_by_key(|row| (row.exten.starts_with('_'), row.exten.as_str()));
        let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
        for row in taking {
            steps.entry(row.priority).or_insert_with(|| self.row_step(family, row));
        }
        let pattern = Pattern::parse(number).ok()?;
        (!steps.is_empty()).then(|| Extension {
            name: number.into(),
            pattern,
            caller: CallerMatch::Any,
            steps: steps.into_values().collect(),
            hint: None,
            labels: Vec::new(),
        })
    }
    fn row_step(&self, family: &str, row: &RowStep) -> Step {
        let app = self.apps.lookup(row.app.trim());
        let kind = app.map_or(Kind::Plain, |id| self.kind(id));
        let place = Place::new(format!("{}@{family}", row.exten), 0);
        let source = Source {
            priority: row.priority,
            label: None,
            app,
            name: row.app.trim(),
            args: &row.data,
            place: &place,
        };
        let mut compiler = Compiler::new(Names::Known(&self.symbols), &self.functions);
        // What it noticed shows when the step is taken: there is nobody to tell it to here.
        Step::compile(source, kind, &self.apps, &mut compiler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_names_context_family_and_options_and_each_may_be_left_out() {
        for (data, context, family, patterns) in [
            ("", None, "extensions", true),
            ("@", None, "extensions", true),
            ("numbers", None, "numbers", true),
            ("office@", Some("office"), "extensions", true),
            ("office@numbers", Some("office"), "numbers", true),
            ("@numbers/p", None, "numbers", false),
            ("office@numbers/", Some("office"), "numbers", true),
        ] {
            let expected =
                RowSwitch { context: context.map(str::to_owned), family: family.to_owned(), patterns };
            assert_eq!(RowSwitch::parse(data), expected, "{data}");
        }
    }

    #[test]
    fn each_priority_is_the_rows_of_the_number_and_else_the_first_pattern_by_text() {
        let row = |exten: &str, priority: u32, data: &str| RowStep {
            exten: exten.to_owned(),
            priority,
            app: "NoOp".to_owned(),
            data: data.to_owned(),
        };
        let program = Program::default();
        let rows = [
            row("_1XX", 1, "c"),
            row("_1XX", 2, "d"),
            row("_1X.", 2, "e"),
            row("_2XX", 1, "no"),
            row("_[", 3, "no pattern"),
            row("100", 1, "a"),
            row("100", 1, "second of its place"),
            row("100", 0, "no priority"),
            row("_1.", 7, "f"),
        ];
        let found = program.rowed("numbers", "100", &rows).expect("rows take it");
        let steps: Vec<(u32, &str)> = found.steps.iter().map(|step| (step.priority, &*step.args)).collect();
        assert_eq!(steps, [(1, "a"), (2, "e"), (7, "f")], "`.` stands before `X`");
        assert_eq!(found.find(7), Some(2));
        assert!(program.rowed("numbers", "300", &rows).is_none());
        assert!(program.rowed("numbers", "1", &rows).is_none(), "`.` wants one digit more");
    }

    #[test]
    fn a_longer_number_may_have_a_row_when_a_pattern_wants_more_digits() {
        for (patterns, number, expected) in [
            (&["_1XX", "_2X"][..], "1", true),
            (&["_1XX"], "100", false),
            (&["_1."], "100", true),
            (&["_1!", "_1XX"], "1", false),
            (&["1000"], "1", false),
            (&["_3X"], "1", false),
        ] {
            assert_eq!(goes_on(patterns.iter().copied(), number), expected, "{patterns:?} {number}");
        }
    }
}
