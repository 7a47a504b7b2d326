//! What a dialplan step costs: `cargo bench -p dialplan`. Prints nanoseconds; the run loop's own cost is not in it.

// A bench is the outermost loop: it may read the clock.
#![allow(clippy::disallowed_types)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use dialplan::{
    Apps, Builtin, Calendar, ChannelFunction, Env, Fault, Functions, Inherit, Level, Offset, Program, Query,
    Ready, Scratch, Tables, Var, Vars, Wall,
};

struct Channel {
    program: Arc<Program>,
    vars: Vars,
    globals: Vars,
    depth: u32,
}

impl Calendar for Channel {
    fn wall(&self) -> Wall {
        Wall::default()
    }
    fn offset(&self, _: i64, _: &str) -> Offset {
        Offset::default()
    }
}

impl Env for Channel {
    fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }
    fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        let exten = which == Builtin::Exten;
        if exten {
            out.push_str("5551234");
        }
        exten
    }
    fn variable(&self, var: Var<'_>, out: &mut String) -> bool {
        self.vars.get(var).map(|value| out.push_str(value)).is_some()
    }
    fn set_variable(&mut self, var: Var<'_>, value: &str, inherit: Inherit) {
        self.vars.set(var, value, inherit);
    }
    fn set_local(&mut self, var: Var<'_>, value: &str) {
        self.vars.set_local(var, value);
    }
    fn remove_variable(&mut self, var: Var<'_>) {
        self.vars.remove(var);
    }
    fn variable_names(&self, each: &mut dyn FnMut(&str)) {
        self.vars.iter().for_each(|(_, name, _)| each(name));
    }
    fn global(&self, var: Var<'_>, out: &mut String) -> bool {
        self.globals.get(var).map(|value| out.push_str(value)).is_some()
    }
    fn set_global(&mut self, var: Var<'_>, value: &str) {
        self.globals.set(var, value, Inherit::Never);
    }
    fn remove_global(&mut self, _: Var<'_>) {}
    fn random(&mut self) -> u64 {
        4
    }
    fn log(&mut self, _: Level, text: &str) {
        panic!("{text}");
    }
    fn db_get(&self, _: &str, _: &str, _: &mut String) -> bool {
        false
    }
    fn db_put(&mut self, _: &str, _: &str, _: &str) -> bool {
        false
    }
    fn db_delete(&mut self, _: &str, _: &str) -> bool {
        false
    }
    fn db_keys(&self, _: &str, _: &mut dyn FnMut(&str)) {}
    fn channel_read(&mut self, _: ChannelFunction, _: &str, _: &mut String) -> Result<(), Fault> {
        Ok(())
    }
    fn channel_write(&mut self, _: ChannelFunction, _: &str, _: &str) -> Result<(), Fault> {
        Ok(())
    }
}

const APPS: [&str; 4] = ["NoOp", "Set", "GotoIf", "Hangup"];

fn load(text: &str) -> Arc<Program> {
    let tables = Tables { apps: Arc::new(Apps::new(APPS)), functions: Arc::new(Functions::standard()) };
    let mut findings = conf::Findings::new();
    let source = conf::Memory::new().with("extensions.conf", text.as_bytes());
    let file =
        conf::load(&source, "extensions.conf", conf::Options::default(), &mut findings).expect("readable");
    let program = dialplan::load(&file, &tables, &[], None, &mut findings);
    assert!(findings.is_empty(), "{findings:?}");
    Arc::new(program)
}

/// The best of several rounds, nanoseconds a call.
fn measure(rounds: u32, calls: u32, mut body: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..calls {
            body();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
    }
    best
}

fn main() {
    let mut costs = BTreeMap::new();
    let program = load(
        "[c]\nexten => s,1,Set(i=0)\nsame => n(loop),Set(i=$[${i}+1])\nsame => n,NoOp()\nsame => n,GotoIf($[${i}<1000000]?loop)\n",
    );
    let mut channel =
        Channel { program: Arc::clone(&program), vars: Vars::new(), globals: Vars::new(), depth: 0 };
    let context = program.context_id("c").expect("context");
    let route = program.route(Query { context, exten: "s", caller: "" }, &channel);
    let steps = (Instant::now(), run(&program, &route, &mut channel));
    costs.insert("loop of Set, NoOp, GotoIf, a step", steps.0.elapsed().as_secs_f64() * 1e9 / steps.1);
    for (name, text) in [
        ("expand a variable", "${i}"),
        ("expand a substring", "${EXTEN:3}"),
        ("expand a dial string", "PJSIP/${EXTEN:1}@trunk-${i}"),
        ("expand a function", "${LEN(${i})}"),
        ("expression of integers", "$[${i} + 1]"),
        ("expression of strings", "$[\"${i}\" = \"abc\"]"),
        ("expression with a function", "$[${LEN(${i})} > 3]"),
        ("expression by regex", "$[\"${i}\" =~ \"^[0-9]+$\"]"),
        ("expression of fractions", "$[1 / 3]"),
    ] {
        let template = dialplan::Template::compile(text, program.symbols(), program.functions());
        let mut out = String::new();
        costs.insert(
            name,
            measure(20, 20_000, || {
                out.clear();
                template.expand(&mut channel, &mut out);
                black_box(&out);
            }),
        );
    }
    let patterns: String =
        (100..600).map(|n| format!("exten => _{n}XXXX,1,NoOp()\nexten => {n}0000000,1,NoOp()\n")).collect();
    let program = load(&format!("[m]\n{patterns}exten => _X.,1,NoOp()\n"));
    let context = program.context_id("m").expect("context");
    let query = Query { context, exten: "5551234", caller: "" };
    costs.insert(
        "route among 500 patterns",
        measure(20, 2_000, || {
            black_box(program.route(query, &channel));
        }),
    );
    for (name, nanos) in costs {
        println!("{name}: {nanos:.0} ns");
    }
}

/// Runs the counting loop to its end as a run loop would; gives the number of steps.
fn run(program: &Program, route: &dialplan::Route, channel: &mut Channel) -> f64 {
    let mut scratch = Scratch::default();
    let (mut priority, mut steps) = (1, 0.0);
    while let Some(at) = program.at_priority(route, priority) {
        let step = program.step(at).expect("step");
        steps += 1.0;
        priority += 1;
        match step.prepare(channel, &mut scratch) {
            Ready::Set { target, value } => {
                target.assign(channel, value);
            }
            Ready::Goto(Some(to)) => {
                let at = program.at_place(route, &to.place, priority).and_then(|at| program.step(at));
                priority = at.expect("target").priority;
            }
            _ => {}
        }
    }
    steps
}
