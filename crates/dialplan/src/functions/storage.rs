//! The database and the little of the world outside that a dialplan may see.

use super::{Answer, arg, flag, native, reader, required};
use crate::args::split_args;
use crate::env::{Env, Fault};
use crate::registry::FunctionRow;
use crate::rights::{Reach, Touch};
use crate::template::set_by_name;

pub(super) const ROWS: &[FunctionRow] = &[
    native(
        "DB",
        Reach::OUTSIDE,
        "DB(family/key)",
        "Gets or sets a value of the database.",
        Some(db),
        Some(set_db),
    ),
    reader(
        "DB_EXISTS",
        Reach::of(Touch::Outside, Touch::Outside),
        "DB_EXISTS(family/key)",
        "Whether the database has a key; its value goes to DB_RESULT.",
        db_exists,
    ),
    native(
        "DB_DELETE",
        Reach::OUTSIDE,
        "DB_DELETE(family/key)",
        "Gives a value of the database and removes it.",
        Some(db_delete),
        Some(write_db_delete),
    ),
    reader("DB_KEYS", Reach::PLAIN, "DB_KEYS([prefix])", "Lists the keys directly below a prefix.", db_keys),
    reader(
        "DB_KEYCOUNT",
        Reach::PLAIN,
        "DB_KEYCOUNT(prefix)",
        "Counts the keys below a prefix.",
        db_keycount,
    ),
    reader(
        "STAT",
        Reach::OUTSIDE,
        "STAT(flag,filename)",
        "Looks at a file: e, d, f exist; s size; m mode; A, C, M times.",
        stat,
    ),
    reader("FILE", Reach::OUTSIDE, "FILE(filename[,offset[,length]])", "Reads a part of a file.", file),
    reader(
        "ENUMLOOKUP",
        Reach::BEYOND,
        "ENUMLOOKUP(number[,method-type[,options[,record#[,zone-suffix]]]])",
        "Asks the DNS for a number's addresses (RFC 6116).",
        enumlookup,
    ),
    native(
        "DIALGROUP",
        Reach::WRITES_BEYOND,
        "DIALGROUP(group[,op])",
        "Gets a group of dial strings joined with &, sets it, or adds or removes one (op add or del). Groups lie in the database.",
        Some(dial_group),
        Some(set_dial_group),
    ),
    reader("ENV", Reach::OUTSIDE, "ENV(name)", "Gets an environment variable.", environment),
];

/// Family is what stands before the first slash.
fn path(args: &str) -> Result<(&str, &str), Fault> {
    let args = args.trim().trim_start_matches('/');
    args.split_once('/')
        .filter(|(family, key)| !family.is_empty() && !key.is_empty())
        .ok_or(Fault::new("the argument must be family/key"))
}

fn db(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let ((family, key), before) = (path(args)?, out.len());
    if !env.db_get(family, key, out) {
        env.log(crate::env::Level::Debug, &format!("DB({args}) is not in the database"));
    } else if let Some(value) = out.get(before..).map(str::to_owned) {
        set_by_name(env, "DB_RESULT", &value);
    }
    Ok(())
}

fn set_db(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let (family, key) = path(args)?;
    if env.db_put(family, key, value) { Ok(()) } else { Err(Fault::new("the database did not take it")) }
}

fn db_exists(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (family, key) = path(args)?;
    let mut value = String::new();
    let found = env.db_get(family, key, &mut value);
    if found {
        set_by_name(env, "DB_RESULT", &value);
    }
    flag(found, out)
}

fn db_delete(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (family, key) = path(args)?;
    let mut value = String::new();
    if env.db_get(family, key, &mut value) {
        env.db_delete(family, key);
    }
    set_by_name(env, "DB_RESULT", &value);
    out.push_str(&value);
    Ok(())
}

fn write_db_delete(env: &mut dyn Env, args: &str, _: &str) -> Answer {
    db_delete(env, args, &mut String::new())
}

/// Calls `each` with what follows `prefix/` in every key below it.
fn below(env: &dyn Env, prefix: &str, each: &mut dyn FnMut(&str)) {
    let prefix = prefix.trim().trim_matches('/');
    env.db_keys(prefix, &mut |key| {
        let key = key.trim_start_matches('/');
        let rest = if prefix.is_empty() {
            Some(key)
        } else {
            key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'))
        };
        if let Some(rest) = rest {
            each(rest);
        }
    });
}

fn db_keys(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let mut keys: Vec<String> = Vec::new();
    below(env, args, &mut |rest| {
        let key = rest.split('/').next().unwrap_or(rest);
        if keys.last().is_none_or(|last| last != key) {
            keys.push(key.to_owned());
        }
    });
    out.push_str(&keys.join(","));
    Ok(())
}

fn db_keycount(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let mut count = 0usize;
    below(env, args, &mut |_| count += 1);
    out.push_str(&count.to_string());
    Ok(())
}

fn stat(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (what, name) = args.split_once(',').ok_or(Fault::new("takes a flag and a file name"))?;
    let facts = env.file_facts(name.trim());
    let shown = match (what.trim(), facts) {
        ("e", facts) => u8::from(facts.is_some()).to_string(),
        ("d", facts) => u8::from(facts.is_some_and(|facts| facts.directory)).to_string(),
        ("f", facts) => u8::from(facts.is_some_and(|facts| facts.file)).to_string(),
        ("m", Some(facts)) => format!("{:o}", facts.mode),
        ("s", Some(facts)) => facts.size.to_string(),
        ("A", Some(facts)) => facts.accessed.to_string(),
        ("C", Some(facts)) => facts.changed.to_string(),
        ("M", Some(facts)) => facts.modified.to_string(),
        ("m" | "s" | "A" | "C" | "M", None) => "0".to_owned(),
        (other, _) => return Err(Fault::new(format!("flag `{other}` is none of e d f m s A C M"))),
    };
    out.push_str(&shown);
    Ok(())
}

fn file(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let name = required(&args, 0, "the file name")?;
    if let Some(mode) = args.get(3).filter(|mode| !mode.is_empty()) {
        return Err(Fault::new(format!("mode `{mode}` is not supported, only reading by bytes")));
    }
    let text = env.file_text(name).ok_or_else(|| Fault::new(format!("{name} cannot be read")))?;
    let slice = [arg(&args, 1), arg(&args, 2)].join(":");
    let from = out.len();
    out.push_str(&text);
    if !arg(&args, 1).is_empty() {
        crate::template::Slice::parse(slice.trim_end_matches(':')).apply(out, from);
    }
    Ok(())
}

/// The family of the database that dial groups lie in.
const DIAL_GROUPS: &str = "dialgroup";
/// Dial strings of one group: more than one Dial would call at once.
const DIAL_GROUP_MAX: usize = 256;

fn group_members(env: &dyn Env, group: &str) -> Vec<String> {
    let mut members = String::new();
    env.db_get(DIAL_GROUPS, group, &mut members);
    members.split('&').filter(|member| !member.is_empty()).map(str::to_owned).collect()
}

fn dial_group(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let group = required(&args, 0, "the group")?.trim();
    out.push_str(&group_members(env, group).join("&"));
    Ok(())
}

fn set_dial_group(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let args = split_args(args);
    let group = required(&args, 0, "the group")?.trim();
    let named: Vec<String> =
        value.split('&').map(|member| member.trim().to_owned()).filter(|member| !member.is_empty()).collect();
    let mut members = match arg(&args, 1).trim() {
        "" => Vec::new(),
        "add" | "del" => group_members(env, group),
        other => return Err(Fault::new(format!("`{other}` is neither add nor del"))),
    };
    if arg(&args, 1).trim() == "del" {
        members.retain(|member| !named.contains(member));
    } else {
        for member in named {
            if !members.contains(&member) {
                members.push(member);
            }
        }
    }
    if members.len() > DIAL_GROUP_MAX {
        return Err(Fault::new(format!("a group has {DIAL_GROUP_MAX} members at most")));
    }
    if members.is_empty() {
        env.db_delete(DIAL_GROUPS, group);
        return Ok(());
    }
    let kept = env.db_put(DIAL_GROUPS, group, &members.join("&"));
    if kept { Ok(()) } else { Err(Fault::new("the database did not take it")) }
}

fn enumlookup(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    env.enum_lookup(args, out)
}

/// Argument texts of the calls `${NAME(…)}` in a step's arguments, as written; an inner one after the outer.
pub fn calls<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    calls_of(text, move |call| call.eq_ignore_ascii_case(name)).map(|(_, args)| args)
}

/// Names and argument texts of the calls of functions that are `wanted`, as [`calls`] gives them.
pub fn calls_of<'t>(
    text: &'t str,
    wanted: impl Fn(&str) -> bool + 't,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    let bytes = text.as_bytes();
    let opens = move |start: usize| {
        let open = text.get(start..)?.strip_prefix("${")?;
        let (name, _) = open.split_once('(')?;
        (!name.contains(['$', '{', '}', ':', ')']) && wanted(name)).then_some((name, start + 3 + name.len()))
    };
    (0..bytes.len()).filter_map(opens).filter_map(move |(name, start)| {
        let mut depth = 1_u32;
        let end = bytes.get(start..)?.iter().position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        Some((name, text.get(start..start + end)?))
    })
}

fn environment(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(&env.environment(args.trim()).unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn database_functions() {
        let mut env = TestEnv::new();
        env.set("DB(AMPUSER/100/device)", "100");
        env.set("DB(AMPUSER/100/name)", "Alice");
        env.set("DB(AMPUSER/200/name)", "Bob");
        env.set("DB(AMPUSERS/1)", "other family");
        for (text, expected) in [
            ("${DB(AMPUSER/100/name)}", "Alice"),
            ("[${DB(AMPUSER/300/name)}]", "[]"),
            ("${DB_EXISTS(AMPUSER/200/name)}${DB_RESULT}", "1Bob"),
            ("${DB_EXISTS(AMPUSER/300/name)}", "0"),
            ("${DB_KEYS(AMPUSER)}", "100,200"),
            ("${DB_KEYS(AMPUSER/100)}", "device,name"),
            ("${DB_KEYS()}", "AMPUSER,AMPUSERS"),
            ("${DB_KEYCOUNT(AMPUSER)}", "3"),
            ("${DB_DELETE(AMPUSER/200/name)}${DB_EXISTS(AMPUSER/200/name)}", "Bob0"),
            ("[${DB(nokey)}]", "[]"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn dial_groups_are_set_added_to_and_taken_from() {
        let mut env = TestEnv::new();
        for (set, value, expected) in [
            ("DIALGROUP(day)", "PJSIP/1&PJSIP/2", "PJSIP/1&PJSIP/2"),
            ("DIALGROUP(day,add)", "PJSIP/3", "PJSIP/1&PJSIP/2&PJSIP/3"),
            ("DIALGROUP(day,add)", "PJSIP/3", "PJSIP/1&PJSIP/2&PJSIP/3"),
            ("DIALGROUP(day,del)", "PJSIP/2", "PJSIP/1&PJSIP/3"),
            ("DIALGROUP(day)", "PJSIP/9", "PJSIP/9"),
            ("DIALGROUP(day,del)", "PJSIP/9", ""),
        ] {
            env.set(set, value);
            assert_eq!(env.expand("${DIALGROUP(day)}"), expected, "{set}={value}");
        }
        assert!(env.logs.is_empty(), "{:?}", env.logs);
        for (set, why) in
            [("DIALGROUP()", "the group is missing"), ("DIALGROUP(day,swap)", "neither add nor del")]
        {
            env.logs.clear();
            env.set(set, "PJSIP/1");
            assert!(env.logs.iter().any(|line| line.contains(why)), "{set}: {:?}", env.logs);
        }
    }

    #[test]
    fn what_the_world_does_not_answer_is_empty_and_says_why() {
        let mut env = TestEnv::new();
        assert_eq!(env.expand("[${ENUMLOOKUP(+4912345)}${FILE(/etc/passwd)}${STAT(e,/etc/passwd)}]"), "[0]");
        assert!(env.logs.iter().any(|line| line.contains("resolver")), "{:?}", env.logs);
    }
}
