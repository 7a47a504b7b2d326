//! Which contexts calls get to: from endpoints, users, queues, menus and features, and from there by includes and jumps.

use std::collections::{BTreeMap, BTreeSet};

use apps::{Constants, Named, UNKNOWN, Use};
use dialplan::Program;
use store::Snapshot;

/// Whether calls get to a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reached {
    /// Nothing leads there.
    No,
    /// What only a call, a database or a manager knows may lead there.
    Maybe,
    /// Something leads there.
    Yes,
}

/// Contexts of the sample configuration of Asterisk, which lie in many folders unused.
const SAMPLES: &[&str] = &[
    "ael-demo",
    "ael-default",
    "demo",
    "dundi-e164-canonical",
    "dundi-e164-customers",
    "dundi-e164-local",
    "dundi-e164-lookup",
    "dundi-e164-switch",
    "dundi-e164-via-pstn",
    "iaxprovider",
    "iaxtel700",
    "international",
    "local",
    "longdistance",
    "macro-dundi-e164",
    "macro-page",
    "macro-stdPrivacyexten",
    "macro-stdexten",
    "macro-trunkdial",
    "macro-trunkdial-failover-0.3",
    "outbound-freenum",
    "outbound-freenum2",
    "page",
    "stdPrivacyexten",
    "stdexten",
    "trunkint",
    "trunkld",
    "trunklocal",
    "trunktollfree",
];

/// Contexts by how calls get there.
pub(super) struct Reach {
    contexts: BTreeMap<String, Reached>,
    /// What holds for the others.
    others: Reached,
}

impl Reach {
    /// Follows a whole configuration.
    pub(super) fn of(
        snapshot: &Snapshot,
        program: &Program,
        constants: &Constants<'_>,
        uses: &[Use<'_>],
    ) -> Self {
        let roots = roots(snapshot, constants);
        let mut reach = Self { contexts: BTreeMap::new(), others: Reached::No };
        if roots.is_empty() {
            // A dialplan without anybody who calls: all of it is meant, but for what samples bring.
            reach.others = Reached::Yes;
            reach.contexts.extend(SAMPLES.iter().map(|name| ((*name).to_owned(), Reached::No)));
            return reach;
        }
        if is_open(snapshot) {
            reach.others = Reached::Maybe;
        }
        let mut by_context: BTreeMap<&str, Vec<&Named>> = BTreeMap::new();
        for of in uses {
            by_context.entry(of.context).or_default().push(&of.named);
        }
        let mut waiting: Vec<String> = roots.into_iter().collect();
        while let Some(name) = waiting.pop() {
            if reach.contexts.get(&name) == Some(&Reached::Yes) {
                continue;
            }
            let id = program.context_id(&name);
            if let Some(context) = id.and_then(|id| program.context(id)) {
                waiting.extend(context.includes.iter().map(|include| include.name.to_string()));
            }
            for named in by_context.get(name.as_str()).into_iter().flatten() {
                let Some(next) = leads_to(named) else { continue };
                if !next.contains(UNKNOWN) {
                    waiting.push(next);
                } else if let Some((head, tail)) = next.split_once(UNKNOWN) {
                    reach.guess(program, head, tail.rsplit(UNKNOWN).next().unwrap_or(""));
                }
            }
            reach.contexts.insert(name, Reached::Yes);
        }
        reach
    }
    /// How calls get to a context.
    pub(super) fn of_context(&self, name: &str) -> Reached {
        self.contexts.get(name).copied().unwrap_or(self.others)
    }
    /// A context whose name begins and ends so may be meant.
    fn guess(&mut self, program: &Program, head: &str, tail: &str) {
        if head.is_empty() && tail.is_empty() {
            self.others = Reached::Maybe;
        }
        for context in program.contexts() {
            if context.name.starts_with(head) && context.name.ends_with(tail) {
                self.contexts.entry(context.name.to_string()).or_insert(Reached::Maybe);
            }
        }
    }
}

/// The context that a name leads to.
fn leads_to(named: &Named) -> Option<String> {
    match named {
        Named::Place { context, .. } => context.clone(),
        Named::Context(context) => Some(context.clone()),
        Named::Device(device) => local_context(device).map(str::to_owned),
        _ => None,
    }
}

/// The context of `Local/exten@context/n`.
pub(super) fn local_context(device: &str) -> Option<&str> {
    let rest = device.get(..6).filter(|tech| tech.eq_ignore_ascii_case("Local/")).and(device.get(6..))?;
    let (_, context) = rest.split_once('@')?;
    context.split('/').next()
}

/// Whether who calls, or where to, lies outside of the files.
fn is_open(snapshot: &Snapshot) -> bool {
    let families = &snapshot.realtime.families;
    let by_manager = snapshot.manager.general.enabled && !snapshot.manager.users.is_empty();
    let by_rows = snapshot.realtime.has_sip() || snapshot.realtime.has_iax();
    by_manager
        || by_rows
        || !families.of("extensions").is_empty()
        || !families.of("extensions.conf").is_empty()
}

/// Where calls begin, and where keys, queues and menus send them.
fn roots(snapshot: &Snapshot, constants: &Constants<'_>) -> BTreeSet<String> {
    let mut roots: BTreeSet<String> = BTreeSet::new();
    for endpoint in snapshot.pjsip.endpoints.values() {
        roots.extend(
            [
                &endpoint.context,
                &endpoint.message_context,
                &endpoint.subscribe_context,
                &endpoint.overlap_context,
            ]
            .map(Clone::clone),
        );
        let set =
            endpoint.set_var.iter().filter(|(name, _)| name.trim_start_matches('_') == "TRANSFER_CONTEXT");
        roots.extend(set.map(|(_, value)| value.clone()));
    }
    for user in snapshot.iax.users.values() {
        roots.extend(user.context.iter().cloned());
        if user.context.is_empty() {
            roots.insert("default".to_owned());
        }
    }
    if roots.iter().all(String::is_empty) {
        return BTreeSet::new();
    }
    for queue in &snapshot.queues.config.queues {
        roots.insert(queue.settings.handling.context.clone());
        let members = queue.members.iter().filter_map(|member| local_context(&member.interface));
        roots.extend(members.map(str::to_owned));
    }
    let voicemail = &snapshot.voicemail.voicemail;
    for account in voicemail.accounts.values() {
        let rules = &account.rules;
        roots.extend([&rules.exitcontext, &rules.callback, &rules.dialout].map(Clone::clone));
    }
    for profile in snapshot.followme.profiles.values() {
        roots.insert(profile.context.clone());
    }
    for lot in &snapshot.parking.lots {
        roots.extend([lot.context.clone(), lot.come_back_context.clone()]);
    }
    for menu in snapshot.confbridge.profiles.menus.values() {
        for action in menu.keys.iter().flat_map(|(_, actions)| actions) {
            if let call::conference::Action::Dialplan { context, .. } = action {
                roots.insert(context.clone());
            }
        }
    }
    for feature in snapshot.features.apps.values() {
        roots.extend(apps::names(constants, &feature.app, &feature.args).iter().filter_map(leads_to));
    }
    roots.remove("");
    roots
}
