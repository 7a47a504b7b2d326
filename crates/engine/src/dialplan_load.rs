//! Compiling `extensions.conf` against the applications and functions of this build.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use call::parking::LotSettings;
use conf::Findings;
use dialplan::{Body, FunctionRow, Program, Statement};
use store::Snapshot;
use store::config::realtime::StatementFunction;

/// Compiles the dialplan; `before` is the one in force, whose variable names keep their ids, and `made` are the parking lots
/// that calls have made meanwhile.
pub(crate) fn compile(
    snapshot: &Snapshot,
    before: Option<&Program>,
    made: &[Rc<LotSettings>],
    findings: &mut Findings,
) -> Arc<Program> {
    let mut tables = apps::table::tables();
    let own = &snapshot.realtime.functions.0;
    if !own.is_empty() && snapshot.modules.has_module("func_odbc") {
        tables.functions = Arc::new((*tables.functions).clone().with(own.iter().map(statement_row)));
    }
    let registered = [&*snapshot.pjsip.global.regcontext, &*snapshot.iax.general.regcontext];
    let conferences = snapshot.confbridge.profiles.bridges.values().map(|profile| &*profile.register_in);
    let registered: BTreeSet<&str> = registered.into_iter().chain(conferences).collect();
    let registered: Vec<&str> = registered.into_iter().filter(|context| !context.is_empty()).collect();
    let lots = snapshot.parking.lots.iter().chain(made.iter().map(|lot| &**lot));
    let has_parking = snapshot.modules.has_module("res_parking");
    let lines = if has_parking { apps::parking::lines(lots) } else { Vec::new() };
    let own: Vec<_> = lines.iter().map(apps::parking::Line::addition).collect();
    let own = (&*own, apps::parking::FILE);
    Arc::new(dialplan::load_with(&snapshot.extensions, &tables, &registered, own, before, findings))
}

/// A function of `func_odbc.conf` as the dialplan has it.
fn statement_row(function: &StatementFunction) -> FunctionRow {
    let (name, of) = (&function.name, &function.of);
    let or = |own: &str, otherwise: &str| if own.is_empty() { otherwise.to_owned() } else { own.to_owned() };
    FunctionRow {
        name: name.to_ascii_uppercase().into(),
        syntax: format!("{name}({})", or(&of.syntax, "[arg1[...[,argN]]]")).into(),
        synopsis: or(&of.synopsis, "Runs the statements that func_odbc.conf gives it.").into(),
        body: Body::Statement(Arc::new(Statement {
            read_from: function.read_from.clone().into(),
            write_to: function.write_to.clone().into(),
            read: of.readsql.clone(),
            write: of.writesql.clone(),
            insert: of.insertsql.clone(),
            multirow: of.mode.eq_ignore_ascii_case("multirow"),
            row_limit: Some(of.rowlimit).filter(|limit| *limit > 0),
            escape_commas: of.escapecommas,
            min_args: of.minargs,
        })),
        reach: dialplan::Reach::OUTSIDE,
    }
}

/// What the dialplan of a configuration would not do; for `strowger check`.
pub fn check_dialplan(snapshot: &Snapshot, findings: &mut Findings) {
    let program = compile(snapshot, None, &[], findings);
    for concern in apps::check(&program, snapshot.modules.disabled()) {
        let level = if concern.fatal { conf::Level::Error } else { conf::Level::Warning };
        findings.add(level, &concern.step.place, concern.message, concern.remedy);
    }
}
