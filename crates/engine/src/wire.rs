//! What the configuration files say, in the words of the drivers and the call core.

mod calls;
mod hosts;
#[cfg_attr(not(test), allow(dead_code, reason = "until the driver is started with it"))]
pub(crate) mod iax;
mod sip;
mod stir;
#[cfg(test)]
mod testing;

pub(crate) use self::stir::stir_settings;
pub(crate) use calls::{ban_rules, settings, system_name};
pub(crate) use hosts::{Hosts, questions};
pub(crate) use sip::{sip_aor, sip_auth, sip_config, sip_endpoint};

fn marking(tos: u8, cos: u32) -> base::Marking {
    base::Marking { tos, priority: u8::try_from(cos).unwrap_or(0) }
}

/// The items of lists that commas part.
fn list(lines: &[String]) -> Vec<String> {
    let items = lines.iter().flat_map(|line| line.split(',')).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
