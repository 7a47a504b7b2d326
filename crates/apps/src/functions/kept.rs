//! Functions whose items are kept with the call and given back, while what they ask for does not exist: fax, geolocation,
//! call completion, and sound that is changed. Each write of one says so in the log.

use core::time::Duration;

use call::{FaxWatch, Level};
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;

/// The one item of fax that has an effect.
const FAX_DETECT: &str = "faxdetect";

/// An item and what it is when nobody has said.
struct Item {
    name: &'static str,
    otherwise: &'static str,
    /// Whether it may be written.
    settable: bool,
}

const fn item(name: &'static str, otherwise: &'static str) -> Item {
    Item { name, otherwise, settable: true }
}

/// What a fax would have left behind.
const fn result(name: &'static str) -> Item {
    Item { name, otherwise: "", settable: false }
}

/// One of these functions.
pub(super) struct Kept {
    name: &'static str,
    items: &'static [Item],
    /// What does not happen.
    missing: &'static str,
}

pub(super) const FAX: Kept = Kept {
    name: "FAXOPT",
    items: &[
        item("ecm", "yes"),
        item(FAX_DETECT, "no"),
        item("gateway", "no"),
        item("headerinfo", ""),
        item("localstationid", ""),
        item("maxrate", "14400"),
        item("minrate", "4800"),
        item("modem", "v17,v27,v29"),
        item("modems", "v17,v27,v29"),
        item("negotiate_both", "no"),
        item("t38timeout", "5000"),
        result("error"),
        result("filename"),
        result("filenames"),
        result("pages"),
        result("rate"),
        result("remotestationid"),
        result("resolution"),
        result("sessionid"),
        result("status"),
        result("statusstr"),
    ],
    missing: "faxes are neither sent nor received yet",
};

pub(super) const GEOLOCATION: Kept = Kept {
    name: "GEOLOC_PROFILE",
    items: &[
        item("id", ""),
        item("inheritable", "no"),
        item("allow_routing_use", "no"),
        item("suppress_empty_ca_elements", "no"),
        item("profile_precedence", "discard_incoming"),
        item("pidf_element", "device"),
        item("location_reference", ""),
        item("location_source", ""),
        item("format", ""),
        item("method", ""),
        item("location_info", ""),
        item("location_info_refinement", ""),
        item("location_variables", ""),
        item("effective_location", ""),
        item("usage_rules", ""),
        item("notes", ""),
        item("confidence", ""),
    ],
    missing: "no call carries a location",
};

pub(super) const COMPLETION: Kept = Kept {
    name: "CALLCOMPLETION",
    items: &[
        item("cc_agent_policy", "never"),
        item("cc_monitor_policy", "never"),
        item("cc_offer_timer", "20"),
        item("ccnr_available_timer", "7200"),
        item("ccbs_available_timer", "4800"),
        item("cc_recall_timer", "20"),
        item("cc_max_agents", "5"),
        item("cc_max_monitors", "5"),
        item("cc_callback_macro", ""),
        item("cc_callback_sub", ""),
        item("cc_agent_dialstring", ""),
    ],
    missing: "no call is completed later",
};

pub(super) const DENOISE: Kept = Kept {
    name: "DENOISE",
    items: &[item("rx", "off"), item("tx", "off")],
    missing: "no noise is taken away",
};

pub(super) const PITCH: Kept = Kept {
    name: "PITCH_SHIFT",
    items: &[item("rx", ""), item("tx", ""), item("both", "")],
    missing: "voices stay as they are",
};

pub(super) const SCRAMBLE: Kept = Kept {
    name: "SCRAMBLE",
    items: &[item("rx", ""), item("tx", ""), item("both", ""), item("remove", "")],
    missing: "voices stay as they are",
};

pub(super) const FRAME_DROP: Kept =
    Kept { name: "FRAME_DROP", items: &[item("rx", ""), item("tx", "")], missing: "no frames are dropped" };

pub(super) const FRAME_TRACE: Kept = Kept {
    name: "FRAME_TRACE",
    items: &[item("white", ""), item("black", ""), item("reset", "")],
    missing: "frames are not shown; rtp set debug on shows packets",
};

/// `yes`, `cng` or `t38`, and seconds after the answer; else nothing is looked out for.
fn watch_fax(call: &Call, value: &str) -> Read {
    let parts = args::split(value);
    let (tone, offer) = match args::nth(&parts, 0).trim().to_ascii_lowercase().as_str() {
        "cng" => (true, false),
        "t38" => (false, true),
        word => (args::says_yes(word), args::says_yes(word)),
    };
    let timeout = match args::nth(&parts, 1).trim() {
        "" => 0,
        text => text.parse().map_err(|_| Fault::new(format!("'{text}' is no time in seconds")))?,
    };
    let watch = FaxWatch { tone, offer, timeout: Duration::from_secs(timeout) };
    call.chan.core(|core| core.watch_fax(call.chan.id(), (tone || offer).then_some(watch)));
    Ok(())
}

impl Kept {
    fn item(&self, text: &str) -> Result<&Item, Fault> {
        // What follows is an option, which changes nothing here.
        let name = text.split(',').next().unwrap_or_default().trim();
        self.items.iter().find(|item| item.name.eq_ignore_ascii_case(name)).ok_or_else(|| unknown(name))
    }
    /// Where an item is kept; no dialplan can write that name.
    fn variable(&self, item: &Item) -> String {
        format!("{}({})", self.name, item.name)
    }
    pub(super) fn read(&self, call: &Call, text: &str, out: &mut String) -> Read {
        let item = self.item(text)?;
        let kept =
            call.chan.with(|c| c.vars.get_name(&self.variable(item)).map(str::to_owned)).map_err(gone)?;
        out.push_str(kept.as_deref().unwrap_or(item.otherwise));
        Ok(())
    }
    pub(super) fn write(&self, call: &Call, text: &str, value: &str) -> Read {
        let item = self.item(text)?;
        if !item.settable {
            return Err(Fault::new(format!("'{}' can only be read", item.name)));
        }
        let variable = self.variable(item);
        let fitted = call
            .chan
            .with(|c| c.vars.set(dialplan::Var::named(&variable), value.trim(), dialplan::Inherit::Never))
            .map_err(gone)?;
        if !fitted {
            return Err(Fault::new("the channel holds too many variables"));
        }
        if item.name == FAX_DETECT {
            return watch_fax(call, value);
        }
        let text = format!("{}({})={} has no effect: {}", self.name, item.name, value.trim(), self.missing);
        call.log(Level::Warning, &text);
        Ok(())
    }
}
