//! What of a configuration will not work, for `strowger check`: what is used, apart from what is merely there.
//!
//! Readers and the compiler of the dialplan say what is wrong with a line by itself. Here it is said what a line names and
//! nobody has, and whether a call can get there at all: a context that no endpoint, queue or other context leads to may hold
//! what it likes.

mod names;
mod reach;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apps::Constants;
use conf::{Finding, Findings, Level, Place};
use dialplan::Program;
use store::Snapshot;

use self::names::Names;
use self::reach::{Reach, Reached};
pub use self::users::nobody_served;
use crate::dialplan_load::compile;

/// A finding, and what a program may want to know of it.
#[derive(Debug, Clone)]
pub struct Remark {
    /// Where, what, and what to do.
    pub finding: Finding,
    /// One word for what it is about: `context`, `device`, `queue`, `option`.
    pub kind: &'static str,
    /// Whether calls get there; what is not used does no harm.
    pub used: bool,
}

/// What there is to say about a whole configuration: `found` are the words of its readers.
pub fn check_site(snapshot: &Snapshot, found: Findings) -> Vec<Remark> {
    let mut remarks: Vec<Remark> =
        found.into_iter().map(|finding| Remark { finding, kind: "file", used: true }).collect();
    let mut findings = Findings::new();
    crate::secure::check_certificates(snapshot, &mut findings);
    crate::wire::stir_settings(snapshot, &mut findings);
    remarks.extend(findings.into_iter().map(|finding| Remark { finding, kind: "certificate", used: true }));

    let mut findings = Findings::new();
    let program = compile(snapshot, None, &[], &mut findings);
    let constants = Constants::of(&program);
    let uses = apps::uses(&program, &constants);
    let reach = Reach::of(snapshot, &program, &constants, &uses);
    let lines = Lines::of(&program);
    let mut dialplan: Vec<Remark> =
        findings.into_iter().map(|finding| Remark { finding, kind: "dialplan", used: true }).collect();
    for concern in apps::check(&program, snapshot.modules.disabled()) {
        let level = if concern.fatal { Level::Error } else { Level::Warning };
        let (place, message, remedy) = (concern.step.place.clone(), concern.message, concern.remedy);
        let finding = Finding { level, place, message, remedy };
        dialplan.push(Remark { finding, kind: concern.kind, used: true });
    }
    let mut names = Names::new(snapshot, &program, &constants);
    for of in &uses {
        dialplan.extend(names.of_use(of));
    }
    dialplan.extend(names.of_hints());
    for remark in &mut dialplan {
        match lines
            .context_of(&remark.finding.place)
            .map_or(Reached::Yes, |context| reach.of_context(context))
        {
            Reached::Yes => {}
            Reached::Maybe => remark.finding.level = remark.finding.level.min(Level::Warning),
            Reached::No => {
                remark.used = false;
                remark.finding.level = Level::Note;
            }
        }
    }
    // The compiler looks for a label in the whole dialplan, and here it is looked for where the call goes.
    let judged: BTreeSet<Place> = dialplan
        .iter()
        .filter(|remark| remark.kind == "priority")
        .map(|remark| remark.finding.place.clone())
        .collect();
    dialplan.retain(|remark| {
        let general =
            remark.kind == "dialplan" && remark.finding.message.contains(": no extension has a label ");
        !general || !judged.contains(&remark.finding.place)
    });
    remarks.extend(dialplan);
    remarks.extend(names.of_files());
    users::stock_files(snapshot, &mut remarks);
    let mut remarks = once(remarks);
    remarks.sort_by(|a, b| a.finding.place.cmp(&b.finding.place));
    remarks
}

/// Each finding once, at its gravest.
fn once(remarks: Vec<Remark>) -> Vec<Remark> {
    let mut known: BTreeMap<(Place, String), usize> = BTreeMap::new();
    let mut kept: Vec<Remark> = Vec::new();
    for remark in remarks {
        let key = (remark.finding.place.clone(), remark.finding.message.clone());
        match known.get(&key).and_then(|at| kept.get_mut(*at)) {
            Some(before) => {
                if remark.finding.level > before.finding.level {
                    *before = remark;
                }
            }
            None => {
                known.insert(key, kept.len());
                kept.push(remark);
            }
        }
    }
    kept
}

/// Which context each line of the dialplan belongs to.
struct Lines<'p> {
    /// Lines of each file where something of a context stands.
    files: BTreeMap<Arc<str>, BTreeMap<u32, &'p str>>,
}

impl<'p> Lines<'p> {
    fn of(program: &'p Program) -> Self {
        let mut files: BTreeMap<Arc<str>, BTreeMap<u32, &'p str>> = BTreeMap::new();
        for context in program.contexts() {
            let mut add = |place: &Place| {
                files.entry(place.file.clone()).or_default().insert(place.line, &*context.name);
            };
            add(&context.place);
            context.includes.iter().for_each(|include| add(&include.place));
            context.switches.iter().for_each(|switch| add(&switch.place));
            for extension in &context.extensions {
                extension.hint.iter().for_each(|hint| add(&hint.place));
                extension.steps.iter().for_each(|step| add(&step.place));
            }
        }
        Self { files }
    }
    /// The context of a line, or of the next one above of which that is known.
    fn context_of(&self, place: &Place) -> Option<&'p str> {
        self.files.get(&place.file)?.range(..=place.line).next_back().map(|(_, context)| *context)
    }
}
