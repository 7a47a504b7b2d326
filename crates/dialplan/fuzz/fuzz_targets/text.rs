//! Any text as the argument of a step: `${…}`, `$[…]` and functions in each other, compiled and evaluated.
#![no_main]

use std::sync::{Arc, LazyLock};

use dialplan::{
    Apps, Builtin, Calendar, ChannelFunction, Env, Fault, Functions, Inherit, Level, Offset, Program, Tables, Var, Vars,
    Wall,
};

static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let tables = Tables { apps: Arc::new(Apps::new(["NoOp"])), functions: Arc::new(Functions::standard()) };
    let mut findings = conf::Findings::new();
    let source = conf::Memory::new().with("extensions.conf", b"[c]\nexten => s,1,NoOp(${i})\n".as_slice());
    let file = conf::load(&source, "extensions.conf", conf::Options::default(), &mut findings).expect("readable");
    Arc::new(dialplan::load(&file, &tables, &[], None, &mut findings))
});

struct Channel {
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
        Arc::clone(&PROGRAM)
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }
    fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        let is_exten = which == Builtin::Exten;
        if is_exten {
            out.push_str("5551234");
        }
        is_exten
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
    fn log(&mut self, _: Level, _: &str) {}
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

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut channel = Channel { vars: Vars::new(), globals: Vars::new(), depth: 0 };
    let mut out = String::new();
    // What the first line leaves in a variable is the second one's to read by name.
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    dialplan::expand_text(&mut channel, first, &mut out);
    dialplan::set_by_name(&mut channel, "x", &out);
    out.clear();
    dialplan::expand_text(&mut channel, second, &mut out);
});
