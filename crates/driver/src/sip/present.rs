//! Extensions of endpoints that have registered (`regcontext`): there from an endpoint's first contact to its last.

use call::Core;

use super::SipDriver;

/// Whose extensions they are, as `dialplan show` names it.
const REGISTRAR: &str = "PJSIP";

impl SipDriver {
    /// An endpoint's contacts have become others.
    pub(super) fn show_present(&self, core: &mut Core, endpoint: &str) {
        let context = &*self.config.reg_context;
        if context.is_empty() {
            return;
        }
        let registrar = &self.registrations.registrar;
        let aors = self.config.endpoints.get(endpoint).map(|endpoint| &endpoint.aors[..]).unwrap_or_default();
        let is_there = aors.iter().any(|aor| !registrar.bindings(aor).is_empty());
        let said = self.config.endpoints.get(endpoint).map(|endpoint| &*endpoint.regexten);
        let said = said.filter(|said| !said.trim().is_empty()).unwrap_or(endpoint);
        for exten in said.split('&').map(str::trim).filter(|exten| !exten.is_empty()) {
            let (exten, context) = exten.split_once('@').unwrap_or((exten, context));
            match is_there {
                true => core.registered.add(context, exten, REGISTRAR, endpoint),
                false => core.registered.remove(context, exten, REGISTRAR, endpoint),
            }
        }
    }
    /// The configuration is another, or registrations of before the start are back: says anew who is there.
    pub(super) fn show_all_present(&mut self, core: &mut Core) {
        if !std::mem::take(&mut self.registrations.unsaid) {
            return;
        }
        core.registered.clear(REGISTRAR);
        if self.config.reg_context.is_empty() {
            return;
        }
        for (aor, _) in self.registrations.registrar.iter() {
            self.show_present(core, &self.endpoint_of_aor(aor));
        }
    }
}
