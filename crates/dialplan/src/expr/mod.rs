//! `$[…]` expressions (§6): one grammar, evaluated while it is read, or compiled when only plain variables vary.
//!
//! The compiled form is a short cut. Each variable in it must turn out to be a single token at run time;
//! if one does not (empty, several words, an operator), the text is put together and parsed as a whole.

mod compiled;
mod grammar;
#[cfg(test)]
mod tests;
mod value;

use crate::env::{Env, Level};
use crate::num::Float;
use crate::template::call_read;

pub(crate) use compiled::Expression;
use grammar::{Build, Op, Values, parse, tokens};
use value::{Broken, Value, binary, chosen, negate, not};

/// Evaluates the text of an expression; `None` when there is nothing in it. `values` says what of it was put in: between
/// quotation marks of the dialplan that is data, whatever it holds.
fn evaluate(env: &mut dyn Env, text: &str, values: Values<'_>) -> Result<Option<Value>, Broken> {
    let tokens = tokens(text, values)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    parse(tokens, &mut Evaluate { env }).map(Some)
}

/// Appends an expression's value. A broken one gives `0` and a warning.
fn expand_expression(env: &mut dyn Env, text: &str, values: Values<'_>, out: &mut String) {
    match evaluate(env, text, values) {
        Ok(Some(value)) => value.write(out),
        Ok(None) => {}
        Err(Broken(why)) => {
            env.log(Level::Warning, &format!("$[{text}]: {why}"));
            out.push('0');
        }
    }
}

/// Makes values at once.
struct Evaluate<'e> {
    env: &'e mut dyn Env,
}

impl Build for Evaluate<'_> {
    type Atom = Value;
    type Node = Value;
    fn atom(&mut self, atom: Value) -> Value {
        atom
    }
    fn binary(&mut self, op: Op, a: Value, b: Value) -> Result<Value, Broken> {
        binary(op, a, b)
    }
    fn negate(&mut self, a: Value) -> Result<Value, Broken> {
        Ok(negate(&a))
    }
    fn not(&mut self, a: Value) -> Result<Value, Broken> {
        Ok(not(&a))
    }
    fn choose(&mut self, test: Value, yes: Value, no: Value) -> Result<Value, Broken> {
        Ok(if chosen(&test) { yes } else { no })
    }
    fn call(&mut self, name: &str, args: Vec<Value>) -> Result<Value, Broken> {
        let numbers: Vec<Float> = args.iter().map(|arg| arg.number().unwrap_or(Float::ZERO)).collect();
        if let Some(answer) = crate::mathfn::call(name, &numbers) {
            return answer.map(Value::from_float).map_err(Broken);
        }
        let program = self.env.program();
        let Some(id) = program.functions().lookup(name) else {
            return Err(Broken(format!("function {name}() does not exist")));
        };
        let text = args.into_iter().map(Value::into_text).collect::<Vec<_>>().join(",");
        let mut answer = String::new();
        call_read(self.env, Some(id), name, &text, &mut answer);
        Ok(Value::from_answer(&answer))
    }
}
