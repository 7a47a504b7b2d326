//! A channel for this crate's tests: everything in memory, time invented.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::env::{Calendar, Env, Fault, Level, Standing, Wall};
use crate::program::Program;
use crate::registered::{Near, Registered};
use crate::registry::{Apps, ChannelFunction, Functions};
use crate::vars::{Builtin, Inherit, Var, Vars};
use crate::zone::Offset;

pub(crate) struct TestEnv {
    pub(crate) program: Arc<Program>,
    pub(crate) vars: Vars,
    pub(crate) globals: Vars,
    pub(crate) db: BTreeMap<String, String>,
    pub(crate) shared: BTreeMap<String, String>,
    pub(crate) builtins: BTreeMap<Builtin, String>,
    pub(crate) channel: BTreeMap<String, String>,
    pub(crate) logs: Vec<String>,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) wall: Wall,
    pub(crate) seed: u64,
    pub(crate) registered: Registered,
    place: Option<Standing>,
    depth: u32,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self::with(Program::empty(Arc::new(Apps::new(["NoOp"])), Arc::new(Functions::standard())))
    }
    pub(crate) fn with(program: Program) -> Self {
        Self {
            program: Arc::new(program),
            vars: Vars::new(),
            globals: Vars::new(),
            db: BTreeMap::new(),
            shared: BTreeMap::new(),
            builtins: BTreeMap::new(),
            channel: BTreeMap::new(),
            logs: Vec::new(),
            files: BTreeMap::new(),
            wall: Wall::default(),
            seed: 1,
            registered: Registered::default(),
            place: None,
            depth: 0,
        }
    }
    /// A channel of `program` whose `a` and `b` are set.
    pub(crate) fn with_vars(program: &Arc<Program>, a: &str) -> Self {
        let mut env = Self::new();
        env.program = Arc::clone(program);
        env.set("a", a);
        env.set("b", "12");
        env
    }
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        crate::template::set_by_name(self, name, value);
    }
    pub(crate) fn expand(&mut self, text: &str) -> String {
        let mut out = String::new();
        crate::template::expand_text(self, text, &mut out);
        out
    }
}

impl Calendar for TestEnv {
    fn wall(&self) -> Wall {
        self.wall
    }
    fn offset(&self, _: i64, zone: &str) -> Offset {
        match zone {
            "Asia/Tokyo" => Offset { seconds: 9 * 3_600, daylight: false, abbreviation: "JST".to_owned() },
            _ => Offset { seconds: 0, daylight: false, abbreviation: "UTC".to_owned() },
        }
    }
    fn registered(&self, context: &str, exten: &str) -> Near {
        self.registered.near(context, exten)
    }
}

fn copy(value: Option<&str>, out: &mut String) -> bool {
    value.map(|value| out.push_str(value)).is_some()
}

impl Env for TestEnv {
    fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }
    fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        self.place.as_ref().is_some_and(|place| place.builtin(which, out))
            || copy(self.builtins.get(&which).map(String::as_str), out)
    }
    fn stand_at(&mut self, place: Option<Standing>) -> Option<Standing> {
        std::mem::replace(&mut self.place, place)
    }
    fn variable(&self, var: Var<'_>, out: &mut String) -> bool {
        copy(self.vars.get(var), out)
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
        copy(self.globals.get(var), out)
    }
    fn set_global(&mut self, var: Var<'_>, value: &str) {
        self.globals.set(var, value, Inherit::Never);
    }
    fn remove_global(&mut self, var: Var<'_>) {
        self.globals.remove(var);
    }
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed
    }
    fn log(&mut self, _: Level, text: &str) {
        self.logs.push(text.to_owned());
    }
    fn db_get(&self, family: &str, key: &str, out: &mut String) -> bool {
        copy(self.db.get(&format!("/{family}/{key}")).map(String::as_str), out)
    }
    fn db_put(&mut self, family: &str, key: &str, value: &str) -> bool {
        self.db.insert(format!("/{family}/{key}"), value.to_owned());
        true
    }
    fn db_delete(&mut self, family: &str, key: &str) -> bool {
        self.db.remove(&format!("/{family}/{key}")).is_some()
    }
    fn db_keys(&self, prefix: &str, each: &mut dyn FnMut(&str)) {
        let prefix = format!("/{prefix}");
        self.db.keys().filter(|key| key.starts_with(&prefix)).for_each(|key| each(key));
    }
    fn channel_read(&mut self, function: ChannelFunction, args: &str, out: &mut String) -> Result<(), Fault> {
        let known = self.channel.get(&format!("{function:?}({args})"));
        known.map(|value| out.push_str(value)).ok_or(Fault::new("not there"))
    }
    fn channel_write(&mut self, function: ChannelFunction, args: &str, value: &str) -> Result<(), Fault> {
        self.channel.insert(format!("{function:?}({args})"), value.to_owned());
        Ok(())
    }
    fn file_text(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
    fn shared(&self, channel: &str, name: &str, out: &mut String) -> bool {
        copy(self.shared.get(&format!("{channel}/{name}")).map(String::as_str), out)
    }
    fn set_shared(&mut self, channel: &str, name: &str, value: &str) -> bool {
        self.shared.insert(format!("{channel}/{name}"), value.to_owned());
        true
    }
}
