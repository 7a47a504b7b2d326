//! The extensions of lots, and lots that a dialplan makes.

use call::Core;
use call::parking::{COME_BACK_DIAL, LotSettings};
use conf::Findings;
use dialplan::Addition;

use crate::env::CoreCalendar;
use crate::{Call, table};

/// The file that extensions of lots are said to come from.
pub const FILE: &str = "res_parking.conf";

/// A step, or a hint, that a lot adds to the dialplan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    context: String,
    exten: String,
    /// `hint`, or the priority.
    priority: &'static str,
    /// Application, or the devices of a hint.
    app: String,
    data: String,
}

impl Line {
    fn step(context: &str, exten: &str, app: &str, data: String) -> Self {
        let [context, exten, app] = [context, exten, app].map(str::to_owned);
        Self { context, exten, priority: "1", app, data }
    }
    fn hint(context: &str, exten: String, device: String) -> Self {
        Self { context: context.to_owned(), exten, priority: "hint", app: device, data: String::new() }
    }
    /// As the dialplan takes it.
    pub fn addition(&self) -> Addition<'_> {
        let Self { context, exten, priority, app, data } = self;
        Addition { context, exten, priority, app, data, replace: false }
    }
}

/// What lots add to the dialplan: for each a way in, a way to each space, hints; and the way back to who parked a call.
pub fn lines<'a>(lots: impl IntoIterator<Item = &'a LotSettings>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut ways_in: Vec<(&str, &str)> = Vec::new();
    for lot in lots {
        of_lot(lot, &mut ways_in, &mut lines);
    }
    // A name of one letter (h, i, s, t …) is no device.
    let back = "${PARKER},${COMEBACKDIALTIME},${COMEBACKDIALOPTIONS}";
    lines.push(Line::step(COME_BACK_DIAL, "_[A-Za-z].", "Dial", back.to_owned()));
    lines
}

fn of_lot<'a>(lot: &'a LotSettings, ways_in: &mut Vec<(&'a str, &'a str)>, lines: &mut Vec<Line>) {
    if lot.extension.is_empty() {
        return;
    }
    let way_in = (lot.context.as_str(), lot.extension.as_str());
    if !ways_in.contains(&way_in) {
        ways_in.push(way_in);
        let data = if lot.exclusive { lot.name.clone() } else { String::new() };
        lines.push(Line::step(&lot.context, &lot.extension, "Park", data));
    }
    for space in lot.first..=lot.last {
        let exten = space.to_string();
        lines.push(Line::step(&lot.context, &exten, "ParkedCall", format!("{},{exten}", lot.name)));
        if lot.hints {
            lines.push(Line::hint(&lot.context, exten, lot.device(space)));
        }
    }
}

/// Adds the extensions of a lot to the dialplan in force.
fn extend(core: &mut Core, lot: &LotSettings) {
    let mut lines = Vec::new();
    of_lot(lot, &mut Vec::new(), &mut lines);
    let additions: Vec<Addition<'_>> = lines.iter().map(Line::addition).collect();
    let mut findings = Findings::new();
    let program = dialplan::extend(&core.program, &table::tables(), (&additions, FILE), &mut findings);
    core.program = std::sync::Arc::new(program);
}

/// Arguments of the Park() that an extension begins with; for [`call::Core::parks`].
pub fn parks(core: &Core, context: &str, exten: &str, caller: &str) -> Option<String> {
    let query = dialplan::Query { context: core.program.context_id(context)?, exten, caller };
    let step = core.program.step(core.program.find(query, 1, &CoreCalendar(core))?)?;
    let is_park = step.name.eq_ignore_ascii_case("Park") && core.settings.has_module("res_parking");
    // What phones dial holds no braces, unless an extension has exactly that name.
    is_park.then(|| step.args.replace("${EXTEN}", exten))
}

/// Makes a lot that no file has; `Err` says why not.
pub(super) fn make(call: &Call, name: &str) -> Result<(), String> {
    let of = |variable: &str| call.get(variable).filter(|value| !value.is_empty());
    let like = of("PARKINGDYNAMIC").unwrap_or_else(|| call::parking::DEFAULT_LOT.to_owned());
    let template = call.chan.core(|core| core.parking.lot(&like).map(|lot| (*lot.settings).clone()));
    let mut lot = template.ok_or_else(|| format!("there is no lot '{like}' (PARKINGDYNAMIC)"))?;
    name.clone_into(&mut lot.name);
    lot.context = of("PARKINGDYNCONTEXT").unwrap_or(lot.context);
    lot.extension = of("PARKINGDYNEXTEN").unwrap_or(lot.extension);
    if let Some(text) = of("PARKINGDYNPOS") {
        (lot.first, lot.last) =
            call::parking::spaces(&text).map_err(|why| format!("PARKINGDYNPOS={text} {why}"))?;
    }
    call.chan.core(|core| {
        core.parking.add_dynamic(lot.clone()).map_err(|why| format!("lot '{name}' is not made: {why}"))?;
        if !lot.extension.is_empty() {
            extend(core, &lot);
        }
        Ok(())
    })
}
