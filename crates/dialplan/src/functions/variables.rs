//! Functions over variables: GLOBAL, LOCAL, HASH, SHARED, SET, INC and so on.

use super::{Answer, arg, flag, native, reader, required, value_of};
use crate::args::{Destination, Priority, split_args};
use crate::env::{Env, Fault, Standing};
use crate::find::Query;
use crate::program::StepRef;
use crate::registry::FunctionRow;
use crate::rights::Reach;
use crate::template::{expand_text, read_named, set_by_name};
use crate::vars::VarName;

pub(super) const ROWS: &[FunctionRow] = &[
    native(
        "GLOBAL",
        Reach::PLAIN,
        "GLOBAL(varname)",
        "Gets or sets a global variable.",
        Some(global),
        Some(set_global),
    ),
    native(
        "GLOBAL_DELETE",
        Reach::PLAIN,
        "GLOBAL_DELETE(varname)",
        "Deletes a global variable: Set(GLOBAL_DELETE(x)=).",
        None,
        Some(delete_global),
    ),
    native(
        "DELETE",
        Reach::PLAIN,
        "DELETE(varname)",
        "Deletes a channel variable: Set(DELETE(x)=).",
        None,
        Some(delete),
    ),
    native(
        "LOCAL",
        Reach::PLAIN,
        "LOCAL(varname)",
        "Gets or sets a variable of the current Gosub frame.",
        Some(local),
        Some(set_local),
    ),
    native(
        "HASH",
        Reach::PLAIN,
        "HASH(hashname,key)",
        "Gets or sets a value of an associative array.",
        Some(hash),
        Some(set_hash),
    ),
    reader(
        "HASHKEYS",
        Reach::PLAIN,
        "HASHKEYS(hashname)",
        "Lists the keys of an associative array.",
        hashkeys,
    ),
    native(
        "ARRAY",
        Reach::PLAIN,
        "ARRAY(var1[,var2[,…]])",
        "Sets several variables at once.",
        None,
        Some(set_array),
    ),
    reader("SET", Reach::SETS, "SET(varname=value)", "Sets a variable and gives its value.", set),
    reader("INC", Reach::SETS, "INC(varname)", "Adds one to a variable and gives the new value.", inc),
    reader("DEC", Reach::SETS, "DEC(varname)", "Takes one from a variable and gives the new value.", dec),
    native(
        "SHARED",
        Reach::PLAIN,
        "SHARED(varname[,channel])",
        "Gets or sets a variable that other channels can reach.",
        Some(shared),
        Some(set_shared),
    ),
    reader(
        "VARIABLE_EXISTS",
        Reach::PLAIN,
        "VARIABLE_EXISTS(varname)",
        "Whether a channel variable is set.",
        variable_exists,
    ),
    reader(
        "GLOBAL_EXISTS",
        Reach::PLAIN,
        "GLOBAL_EXISTS(varname)",
        "Whether a global variable is set.",
        global_exists,
    ),
    reader("EVAL", Reach::EVALUATES, "EVAL(text)", "Substitutes text a second time.", eval),
    reader(
        "PASSTHRU",
        Reach::PLAIN,
        "PASSTHRU(text)",
        "Gives its argument, for functions that want a variable's name.",
        passthru,
    ),
    reader(
        "DIALPLAN_EXISTS",
        Reach::PLAIN,
        "DIALPLAN_EXISTS(context[,extension[,priority]])",
        "Whether a dialplan target exists.",
        dialplan_exists,
    ),
    reader(
        "VALID_EXTEN",
        Reach::PLAIN,
        "VALID_EXTEN([context],extension[,priority])",
        "Whether an extension exists for this caller.",
        valid_exten,
    ),
    reader(
        "EVAL_EXTEN",
        Reach::EVALUATES,
        "EVAL_EXTEN([[context,]extension,]priority)",
        "Substitutes the arguments of a step elsewhere, whose ${EXTEN} and ${CONTEXT} are those of its place.",
        eval_exten,
    ),
];

fn known(env: &dyn Env, name: &str) -> VarName {
    env.program().symbols().lookup(name).unwrap_or_else(|| VarName { id: None, name: name.into() })
}

fn global(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let name = known(env, args);
    env.global(name.as_var(), out);
    Ok(())
}

fn set_global(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let name = known(env, args);
    env.set_global(name.as_var(), value);
    Ok(())
}

/// What is assigned does not matter.
fn delete_global(env: &mut dyn Env, args: &str, _: &str) -> Answer {
    let name = known(env, args.trim());
    env.remove_global(name.as_var());
    Ok(())
}

fn delete(env: &mut dyn Env, args: &str, _: &str) -> Answer {
    let plain = args.trim();
    let plain = plain.strip_prefix("__").or_else(|| plain.strip_prefix('_')).unwrap_or(plain);
    let name = known(env, plain);
    env.remove_variable(name.as_var());
    Ok(())
}

fn local(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let name = known(env, args);
    env.variable(name.as_var(), out);
    Ok(())
}

fn set_local(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let name = known(env, args);
    env.set_local(name.as_var(), value);
    Ok(())
}

/// Names of the columns of the row that a function gave last.
pub const COLUMNS: &str = "~ODBCFIELDS~";

/// The variable that holds one value of a hash.
fn hash_name(args: &str) -> Result<String, Fault> {
    match args.split_once(',') {
        Some((name, key)) => Ok(format!("~HASH~{}~{}~", name.trim(), key)),
        None => Err(Fault::new("the key is missing")),
    }
}

fn hash(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let name = hash_name(args)?;
    let name = known(env, &name);
    env.variable(name.as_var(), out);
    Ok(())
}

fn set_hash(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    if !args.contains(',') {
        return set_whole_hash(env, args.trim(), value);
    }
    let name = hash_name(args)?;
    let name = known(env, &name);
    env.set_variable(name.as_var(), value, crate::vars::Inherit::Never);
    Ok(())
}

/// `Set(HASH(name)=${ODBC_X()})`: the names of the keys are those that the function has left behind.
fn set_whole_hash(env: &mut dyn Env, name: &str, value: &str) -> Answer {
    let mut columns = String::new();
    env.variable(known(env, COLUMNS).as_var(), &mut columns);
    if columns.is_empty() {
        return Err(Fault::new(
            "without a key it takes only what REALTIME_HASH() or a function of func_odbc.conf gives",
        ));
    }
    let values = crate::args::split_args(value);
    for (column, value) in crate::args::split_args(&columns).iter().zip(values) {
        let key = known(env, &hash_name(&format!("{name},{column}"))?);
        env.set_variable(key.as_var(), &value, crate::vars::Inherit::Never);
    }
    Ok(())
}

fn hashkeys(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let prefix = format!("~HASH~{}~", args.trim());
    let mut keys: Vec<String> = Vec::new();
    env.variable_names(&mut |name| {
        let key = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix('~'));
        if let Some(key) = key.filter(|key| !keys.iter().any(|known| known == key)) {
            keys.push(key.to_owned());
        }
    });
    // What was set last is found first, as in the field.
    keys.reverse();
    out.push_str(&keys.join(","));
    Ok(())
}

fn set_array(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let names = split_args(args);
    let values = split_args(value);
    for (at, name) in names.iter().map(|name| name.trim()).enumerate() {
        if !name.is_empty() {
            set_by_name(env, name, arg(&values, at));
        }
    }
    Ok(())
}

fn set(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (name, value) = args.split_once('=').ok_or(Fault::new("there is no `=`"))?;
    set_by_name(env, name, value);
    out.push_str(value);
    Ok(())
}

fn add(env: &mut dyn Env, args: &str, by: i64, out: &mut String) -> Answer {
    let name = args.trim();
    let text = value_of(env, name);
    let old: i64 =
        if text.is_empty() { 0 } else { text.trim().parse().map_err(|_| not_integer(name, &text))? };
    let new = old.saturating_add(by).to_string();
    set_by_name(env, name, &new);
    out.push_str(&new);
    Ok(())
}

fn not_integer(name: &str, value: &str) -> Fault {
    Fault::new(format!("{name} holds `{value}`, which is no integer"))
}

fn inc(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    add(env, args, 1, out)
}

fn dec(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    add(env, args, -1, out)
}

fn shared(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let name = required(&args, 0, "the variable's name")?;
    env.shared(arg(&args, 1), name, out);
    Ok(())
}

fn set_shared(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let args = split_args(args);
    let name = required(&args, 0, "the variable's name")?;
    if env.set_shared(arg(&args, 1), name, value) {
        Ok(())
    } else {
        Err(Fault::new("there is no such channel"))
    }
}

fn variable_exists(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let name = known(env, args.trim());
    let set = env.variable(name.as_var(), &mut String::new());
    flag(set, out)
}

fn global_exists(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let name = known(env, args.trim());
    let set = env.global(name.as_var(), &mut String::new());
    flag(set, out)
}

fn eval(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    expand_text(env, args, out);
    Ok(())
}

fn passthru(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(args);
    Ok(())
}

/// The context an argument names, or the current one when it is empty.
fn context_or_current(env: &dyn Env, name: &str) -> String {
    let mut context = name.to_owned();
    if context.is_empty() {
        read_named(env, "CONTEXT", &mut context);
    }
    context
}

/// The step at context, extension and priority-or-label as this caller would find it.
fn find(env: &dyn Env, context: &str, exten: &str, priority: &str) -> Option<StepRef> {
    lookup(env, context, exten, &Priority::parse(priority)?, 0)
}

/// The same for a parsed priority; `current` is where `+n` and `-n` count from.
fn lookup(env: &dyn Env, context: &str, exten: &str, place: &Priority, current: u32) -> Option<StepRef> {
    let program = env.program();
    let context = program.context_id(context)?;
    let mut caller = String::new();
    env.caller_number(&mut caller);
    let route = program.route(Query { context, exten, caller: &caller }, env);
    program.at_place(&route, place, current)
}

fn dialplan_exists(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let context = required(&args, 0, "the context")?;
    let found = match (arg(&args, 1), arg(&args, 2)) {
        ("", _) => env.program().context_id(context).is_some(),
        (exten, "") => find(env, context, exten, "1").is_some(),
        (exten, priority) => find(env, context, exten, priority).is_some(),
    };
    flag(found, out)
}

fn valid_exten(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let exten = required(&args, 1, "the extension")?;
    let context = context_or_current(env, arg(&args, 0));
    let priority = Some(arg(&args, 2)).filter(|text| !text.is_empty()).unwrap_or("1");
    flag(find(env, &context, exten, priority).is_some(), out)
}

/// `EVAL_EXTEN()`: priority, extension and context stand as in Goto(); only the arguments of the step are looked at, and
/// in them the place is that of the step.
fn eval_exten(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let target = Destination::parse(args).ok_or(Fault::new("the priority is missing"))?;
    let here = |given: Option<Box<str>>, builtin: &str| {
        given.unwrap_or_else(|| {
            let mut text = String::new();
            read_named(env, builtin, &mut text);
            text.into()
        })
    };
    let (context, exten) = (here(target.context, "CONTEXT"), here(target.exten, "EXTEN"));
    let current = here(None, "PRIORITY").parse().unwrap_or(0);
    let program = env.program();
    let step = lookup(env, &context, &exten, &target.place, current).and_then(|at| program.step(at));
    let step = step.ok_or(Fault::new("there is no such step"))?;
    let before = env.stand_at(Some(Standing { context, exten, priority: Some(step.priority) }));
    step.template().expand(env, out);
    env.stand_at(before);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;
    use crate::vars::{Builtin, Var};

    #[test]
    fn variables_locals_globals_hashes_and_counters() {
        let mut env = TestEnv::new();
        env.set("GLOBAL(g)", "1");
        env.set("HASH(h,a)", "x");
        env.set("HASH(h,b)", "y");
        env.set("ARRAY(p,q,r)", "1,\"2,5\"");
        env.set("n", "41");
        env.set("name", "n");
        for (text, expected) in [
            ("${GLOBAL(g)}${g}", "11"),
            ("${HASH(h,a)}${HASH(h,b)}${HASH(h,c)}", "xy"),
            ("${HASHKEYS(h)}", "b,a"),
            ("${p}|${q}|${r}", "1|2,5|"),
            ("${INC(n)}${INC(n)}${DEC(n)}", "424342"),
            ("${n}", "42"),
            ("${SET(s=v w)}${s}", "v wv w"),
            ("${VARIABLE_EXISTS(p)}${VARIABLE_EXISTS(zz)}", "10"),
            ("${GLOBAL_EXISTS(g)}${GLOBAL_EXISTS(p)}", "10"),
            ("${EVAL($${}{name})}", "n"),
            ("${PASSTHRU(a,b)}", "a,b"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
        env.set("late", "${n}");
        env.vars.set(Var::named("late"), "${n}", crate::vars::Inherit::Never);
        assert_eq!(env.expand("${late} ${EVAL(${late})}"), "${n} 42");
    }

    #[test]
    fn eval_in_itself_stops_at_the_recursion_limit() {
        let mut env = TestEnv::new();
        env.vars.set(Var::named("x"), "${EVAL(${x})}", crate::vars::Inherit::Never);
        assert_eq!(env.expand("${x}${EVAL(${x})}"), "${EVAL(${x})}");
        assert!(env.logs.iter().any(|line| line.contains("nested more than 15")), "{:?}", env.logs);
    }

    #[test]
    fn eval_exten_reads_a_step_as_if_the_call_stood_there() {
        let text = "[call-types]\nexten => _1NNN,1,Return(internal ${EXTEN})\nexten => _NXXNXXXXXX,1,Return(external)\n\
                    [udf]\nexten => len,1,NoOp(not this)\n same => n(it),Return(${LEN(${name})},${PRIORITY})\n\
                    exten => outer,1,Return(${EVAL_EXTEN(udf,inner,1)} in ${EXTEN}@${CONTEXT})\n\
                    exten => inner,1,Return(${EXTEN})\nexten => self,1,Return(${EVAL_EXTEN(1)})\n\
                    [from]\nexten => 1234,1,NoOp()\n same => 2,Return(${EXTEN}:2)\nexten => 7,1,Return(seven)\n";
        let mut env = TestEnv::with(crate::load::tests::load_text(text).0);
        for (which, value) in [(Builtin::Context, "from"), (Builtin::Exten, "1234"), (Builtin::Priority, "1")]
        {
            env.builtins.insert(which, value.to_owned());
        }
        env.set("name", "four");
        for (name, asked, expected) in [
            ("a pattern takes the number, which is EXTEN there", "call-types,1345,1", "internal 1345"),
            ("another pattern", "call-types,2125551212,1", "external"),
            ("a label, and all arguments", "udf,len,it", "4,2"),
            ("one in another has its own place", "udf,outer,1", "inner in outer@udf"),
            ("an extension of the current context", "7,1", "seven"),
            ("a priority of the current extension", "2", "1234:2"),
            ("so many steps on", "+1", "1234:2"),
            ("no such extension", "udf,none,1", ""),
            ("no such context", "none,1,1", ""),
        ] {
            assert_eq!(env.expand(&format!("${{EVAL_EXTEN({asked})}}")), expected, "{name}");
            assert_eq!(env.expand("${EXTEN}@${CONTEXT}"), "1234@from", "{name}");
        }
        assert_eq!(env.expand("[${EVAL_EXTEN(udf,self,1)}]"), "[]");
        assert!(env.logs.iter().any(|line| line.contains("nested more than 15")), "{:?}", env.logs);
    }

    #[test]
    fn a_counter_over_text_says_so() {
        let mut env = TestEnv::new();
        env.set("n", "abc");
        assert_eq!(env.expand("[${INC(n)}]"), "[]");
        assert!(env.logs.iter().any(|line| line.contains("no integer")), "{:?}", env.logs);
    }
}
