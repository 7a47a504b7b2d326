//! The older database applications; dialplans of this century use DB() and DB_DELETE().

use call::Level;

use super::rows;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "DBput" "app_db" Run::Now(put),
        "Writes a value to the database.", "DBput(family/key=value)", "The older form of Set(DB(family/key)=value).";
    "DBget" "app_db" Run::Now(get),
        "Reads a value of the database into a variable.", "DBget(variable=family/key)",
        "The older form of Set(variable=${DB(family/key)}). DBGETSTATUS is SUCCESS or NOTFOUND.";
    "DBdel" "app_db" Run::Now(delete),
        "Deletes a value of the database.", "DBdel(family/key)", "The older form of DB_DELETE().";
    "DBdeltree" "app_db" Run::Now(delete_tree),
        "Deletes a family of the database, or a part of it.", "DBdeltree(family[/keytree])",
        "Deletes everything under it.";
    "ODBCFinish" "func_odbc" Run::Now(finish),
        "Lets go of a result of a function with mode=multirow.", "ODBCFinish(result-id)",
        "What ODBC_FETCH() has not taken of it is forgotten. A call's end does the same.";
    "ODBC_Commit" "res_odbc_transaction" Run::Story(crate::functions::transactions::commit),
        "Commits a transaction that is open.", "ODBC_Commit([transaction])",
        "Without a name the active one. What follows in it begins it anew. ODBCSTATUS is SUCCESS or FAILURE; a transaction that \
         was not committed was rolled back.";
    "ODBC_Rollback" "res_odbc_transaction" Run::Story(crate::functions::transactions::roll_back),
        "Takes back what was done in a transaction that is open.", "ODBC_Rollback([transaction])",
        "Without a name the active one. What follows in it begins it anew. ODBCSTATUS is SUCCESS or FAILURE.";
};

fn finish(call: &Call, text: &str) -> Outcome {
    crate::functions::rows::finish(call, text);
    Ok(Flow::Continue)
}

fn put(call: &Call, text: &str) -> Outcome {
    match text.split_once('=').and_then(|(path, value)| Some((path.split_once('/')?, value))) {
        Some(((family, key), value)) => {
            if !call.chan.core(|core| core.services.db.put(family.trim(), key.trim(), value)) {
                call.log(Level::Error, &format!("the database did not take {family}/{key}"));
            }
        }
        None => call.log(Level::Warning, &format!("DBput({text}): needs family/key=value")),
    }
    Ok(Flow::Continue)
}

fn get(call: &Call, text: &str) -> Outcome {
    match text.split_once('=').and_then(|(variable, path)| Some((variable, path.split_once('/')?))) {
        Some((variable, (family, key))) => {
            let value = call.chan.core(|core| core.services.db.get(family.trim(), key.trim()));
            call.set("DBGETSTATUS", if value.is_some() { "SUCCESS" } else { "NOTFOUND" });
            if let Some(value) = value {
                call.set(variable.trim(), &value);
            }
        }
        None => call.log(Level::Warning, &format!("DBget({text}): needs variable=family/key")),
    }
    Ok(Flow::Continue)
}

fn delete(call: &Call, text: &str) -> Outcome {
    match text.split_once('/') {
        Some((family, key)) => {
            call.chan.core(|core| core.services.db.delete(family.trim(), key.trim()));
        }
        None => call.log(Level::Warning, &format!("DBdel({text}): needs family/key")),
    }
    Ok(Flow::Continue)
}

fn delete_tree(call: &Call, text: &str) -> Outcome {
    let (family, tree) = text.split_once('/').unwrap_or((text, ""));
    if family.trim().is_empty() {
        call.log(Level::Warning, "DBdeltree requires an argument (family)");
    } else {
        call.chan.core(|core| core.services.db.delete_tree(family.trim(), tree.trim()));
    }
    Ok(Flow::Continue)
}
