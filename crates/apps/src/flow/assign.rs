//! Applications that set variables.

use call::Level;

use super::{by_the_loop, rows};
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "Set" "pbx_builtins" Run::Now(by_the_loop),
        "Sets a variable or a function.", "Set(name=value)",
        "Sets one variable or writes one function; everything after the first '=' is the value.\n\
         A name that begins with '_' is inherited by channels this one makes, with '__' by theirs too.";
    "Setvar" "pbx_builtins" Run::Now(by_the_loop),
        "Sets a variable or a function.", "Setvar(name=value)", "The older name of Set.";
    "MSet" "pbx_builtins" Run::Now(mset),
        "Sets several variables or functions.", "MSet(name1=value1[,name2=value2[,...]])",
        "Sets several at once; quotes around a value are removed.";
    "SetGlobalVar" "pbx_builtins" Run::Now(set_global),
        "Sets a global variable.", "SetGlobalVar(name=value)", "The older form of Set(GLOBAL(name)=value).";
    "ImportVar" "pbx_builtins" Run::Now(import),
        "Copies a variable of another channel.", "ImportVar(newvar=channelname,variable)",
        "Copies a variable of another channel; a name with '_' is inherited as with Set.";
    "SetMusicOnHold" "res_musiconhold" Run::Now(music_class),
        "Sets the class of music for this channel.", "SetMusicOnHold(class)", "The older form of Set(CHANNEL(musicclass)=class).";
    "SetLanguage" "pbx_builtins" Run::Now(language),
        "Sets the language of prompts.", "SetLanguage(language)", "The older form of Set(CHANNEL(language)=language).";
    "SetCallerPres" "app_setcallerid" Run::Now(presentation),
        "Sets whether the caller id may be shown.", "SetCallerPres(presentation)", "The older form of Set(CALLERID(pres)=presentation).";
    "SetAMAFlags" "pbx_builtins" Run::Now(ama_flags),
        "Sets the billing flag of the call record.", "SetAMAFlags(flag)", "The older form of Set(CHANNEL(amaflags)=flag).";
};

fn mset(call: &Call, text: &str) -> Outcome {
    for pair in args::split(text) {
        match pair.split_once('=') {
            Some((name, value)) => {
                call.assign(name.trim(), value);
            }
            None if pair.trim().is_empty() => {}
            None => call.log(Level::Warning, &format!("MSet: '{pair}' has no '='")),
        }
    }
    Ok(Flow::Continue)
}

fn set_global(call: &Call, text: &str) -> Outcome {
    match text.split_once('=') {
        Some((name, value)) => call.set_global(name.trim(), value),
        None => call.log(Level::Warning, &format!("SetGlobalVar({text}): there is no '='")),
    }
    Ok(Flow::Continue)
}

fn import(call: &Call, text: &str) -> Outcome {
    let parsed = text.split_once('=').and_then(|(new, from)| Some((new.trim(), from.split_once(',')?)));
    let Some((new, (channel, variable))) = parsed else {
        call.log(Level::Warning, &format!("ImportVar({text}): needs newvar=channelname,variable"));
        return Ok(Flow::Continue);
    };
    let id = call.chan.core(|core| core.by_name(channel.trim()));
    let value =
        id.and_then(|id| Call::new(call::Chan::new(call.chan.shard().clone(), id)).get(variable.trim()));
    call.set(new, &value.unwrap_or_default());
    Ok(Flow::Continue)
}

fn music_class(call: &Call, class: &str) -> Outcome {
    call.assign("CHANNEL(musicclass)", class);
    Ok(Flow::Continue)
}

fn language(call: &Call, language: &str) -> Outcome {
    call.assign("CHANNEL(language)", language);
    Ok(Flow::Continue)
}

fn presentation(call: &Call, word: &str) -> Outcome {
    call.assign("CALLERID(pres)", word);
    Ok(Flow::Continue)
}

fn ama_flags(call: &Call, word: &str) -> Outcome {
    call.assign("CHANNEL(amaflags)", word);
    Ok(Flow::Continue)
}
