//! STIR_SHAKEN() and STIR_SHAKEN_ATTESTATION(): what carriers say of callers, and whether we say anything.

use dialplan::Fault;

use super::{Read, tech_write, unknown};
use crate::Call;

/// What a result is asked for.
const ITEMS: [&str; 3] = ["identity", "attestation", "verify_result"];

/// `STIR_SHAKEN(count)` and `STIR_SHAKEN(index,identity|attestation|verify_result)`.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let (id, shard) = (call.chan.id(), call.chan.shard());
    let ask =
        |args: &str| shard.with_tech(id, |tech, core| tech.read(core, id, "STIR_SHAKEN", args)).flatten();
    if text.trim().eq_ignore_ascii_case("count") {
        out.push_str(ask("count").as_deref().unwrap_or("0"));
        return Ok(());
    }
    let (index, item) = text.split_once(',').ok_or(Fault::new("takes count, or an index and a value"))?;
    let index: u32 =
        index.trim().parse().map_err(|_| Fault::new(format!("'{}' is no index", index.trim())))?;
    let item = item.trim().to_ascii_lowercase();
    if !ITEMS.contains(&item.as_str()) {
        return Err(unknown(&item));
    }
    let found = ask(&format!("{index},{item}"));
    out.push_str(
        &found.ok_or_else(|| Fault::new(format!("the channel has no verification number {index}")))?,
    );
    Ok(())
}

/// `Set(STIR_SHAKEN_ATTESTATION(suppress)=yes)`, before a call is placed.
pub(super) fn write_attestation(call: &Call, text: &str, value: &str) -> Read {
    let item = text.trim().to_ascii_lowercase();
    if item != "suppress" {
        return Err(unknown(&item));
    }
    let is_wanted = conf::boolean(value.trim())
        .ok_or_else(|| Fault::new(format!("suppress is yes or no, not '{}'", value.trim())))?;
    tech_write(call, "STIR_SHAKEN_ATTESTATION", "suppress", if is_wanted { "yes" } else { "no" })
}
