//! Compiling `extensions.conf` against the applications and functions of this build.

use std::sync::Arc;

use conf::Findings;
use dialplan::Program;
use store::Snapshot;

/// Compiles the dialplan; `before` is the one in force, whose variable names keep their ids.
pub(crate) fn compile(
    snapshot: &Snapshot,
    before: Option<&Program>,
    findings: &mut Findings,
) -> Arc<Program> {
    let tables = apps::table::tables();
    let registered = [&*snapshot.pjsip.global.regcontext, &*snapshot.iax.general.regcontext];
    let registered: Vec<&str> = registered.into_iter().filter(|context| !context.is_empty()).collect();
    Arc::new(dialplan::load(&snapshot.extensions, &tables, &registered, before, findings))
}

/// What the dialplan of a configuration would not do; for `strowger check`.
pub fn check_dialplan(snapshot: &Snapshot, findings: &mut Findings) {
    let program = compile(snapshot, None, findings);
    for concern in apps::check(&program, snapshot.modules.disabled()) {
        let level = if concern.fatal { conf::Level::Error } else { conf::Level::Warning };
        findings.add(level, &concern.step.place, concern.message, concern.remedy);
    }
}
