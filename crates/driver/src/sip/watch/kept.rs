//! Subscriptions outlive a restart: what the shell writes down of each, and how they go on when it gives them back.
//!
//! Only watchers that are reached by datagrams are kept; a connection ends with the process that holds it, and whoever had it
//! subscribes anew.

use std::collections::BTreeSet;

use ::sip::OwnedMessage;
use ::sip::stack::{Accept, Flow, Protocol, SubscriptionId, SubscriptionMark};
use base::Instant;
use call::Core;

use crate::sip::SipDriver;

/// Numbers of NOTIFYs, and of the documents in them, that are left out at a restart: more than can have left since the
/// subscription was written down last.
const SKIPPED: u32 = 1_000_000;

/// A subscription as it is written down.
#[derive(Debug, Clone)]
pub struct KeptSubscription {
    /// Endpoint that watches.
    pub endpoint: String,
    /// Our tag in its dialog, by which it is told from others.
    pub tag: String,
    /// CSeq number of a NOTIFY of ours.
    pub cseq: u32,
    /// The SUBSCRIBE that began it.
    pub message: OwnedMessage,
    /// The way it came.
    pub source: Flow,
    /// When it lapses.
    pub until: Instant,
}

/// What is to be written down.
#[derive(Debug, Clone)]
pub enum SubscriptionChange {
    /// It began, or goes on.
    Kept(Box<KeptSubscription>),
    /// The one with this tag is gone.
    Gone(String),
}

/// How a subscription that is kept began.
pub(super) struct Beginning {
    message: OwnedMessage,
    source: Flow,
    tag: Box<str>,
}

/// What the shell has not heard or given yet.
#[derive(Default)]
pub(super) struct Keeping {
    touched: BTreeSet<SubscriptionId>,
    gone: Vec<String>,
    /// Given back, and not yet looked at.
    back: Vec<KeptSubscription>,
}

impl SipDriver {
    /// Gives back a subscription of before the start; it goes on, if it still may, at the end of this turn.
    pub fn restore_subscription(&mut self, kept: KeptSubscription) {
        self.watchers.keeping.back.push(kept);
    }
    /// What the shell is to write down since the last call.
    pub fn take_subscription_changes(&mut self, now: Instant) -> Vec<SubscriptionChange> {
        let (touched, gone) = {
            let keeping = &mut self.watchers.keeping;
            (std::mem::take(&mut keeping.touched), std::mem::take(&mut keeping.gone))
        };
        let kept = touched.iter().filter_map(|id| self.kept_subscription(*id, now));
        let kept = kept.map(|kept| SubscriptionChange::Kept(Box::new(kept)));
        kept.chain(gone.into_iter().map(SubscriptionChange::Gone)).collect()
    }
    /// All that is to be kept, in no order.
    pub fn kept_subscriptions(&self, now: Instant) -> impl Iterator<Item = KeptSubscription> {
        let live = self.watchers.all.keys().filter_map(move |id| self.kept_subscription(*id, now));
        live.chain(self.watchers.keeping.back.iter().cloned())
    }
    fn kept_subscription(&self, id: SubscriptionId, now: Instant) -> Option<KeptSubscription> {
        let watcher = self.watchers.all.get(&id)?;
        let began = watcher.began.as_ref()?;
        let seconds = self.stack.subscription_seconds(id, now);
        let cseq = self.stack.subscription_mark(id)?.cseq;
        (seconds > 0).then(|| KeptSubscription {
            endpoint: watcher.endpoint.name.to_string(),
            tag: began.tag.to_string(),
            cseq,
            message: began.message.clone(),
            source: began.source,
            until: now + core::time::Duration::from_secs(seconds.into()),
        })
    }
    /// How a subscription began, if it is one to be kept.
    pub(super) fn beginning(
        &self,
        id: SubscriptionId,
        message: &OwnedMessage,
        source: Flow,
    ) -> Option<Beginning> {
        if source.protocol != Protocol::Udp || self.stack.subscription_seconds(id, Instant::ZERO) == 0 {
            return None;
        }
        let SubscriptionMark { tag, .. } = self.stack.subscription_mark(id)?;
        Some(Beginning { message: message.clone(), source, tag })
    }
    /// Subscriptions that were given back go on.
    pub(super) fn resume_watchers(&mut self, core: &mut Core) {
        for kept in std::mem::take(&mut self.watchers.keeping.back) {
            let tag = kept.tag.clone();
            if self.resume_watcher(core, kept).is_none() {
                self.watchers.keeping.gone.push(tag);
            }
        }
    }
    fn resume_watcher(&mut self, core: &mut Core, kept: KeptSubscription) -> Option<()> {
        let left = kept.until.since(core.now).as_millis().div_ceil(1000);
        let seconds = u32::try_from(left).ok().filter(|seconds| *seconds > 0)?;
        let endpoint = self.config.endpoints.get(&*kept.endpoint).cloned()?;
        let view = kept.message.view();
        let source = self.ways.inward(&self.config, &mut self.stack, kept.source);
        let contact = self.own_contact(source, &endpoint);
        let wanted = self.wanted(core, &endpoint, &view, &contact).ok()?;
        let accept = Accept { contact: &contact, symmetric: endpoint.rewrite_contact, unproved: false };
        let mark =
            SubscriptionMark { tag: kept.tag.as_str().into(), cseq: kept.cseq.saturating_add(SKIPPED) };
        let terms = (&accept, wanted.event.as_str(), seconds, wanted.list.is_some());
        let mut out = Vec::new();
        let resumed = self.stack.resume_subscribe((&view, source), &mark, terms, core.now, &mut out).ok()?;
        self.watch(core, resumed, (endpoint, wanted), (&kept.message, kept.source), mark.cseq);
        self.carry_out(core, &mut out);
        Some(())
    }
}

impl Keeping {
    /// A subscription has begun or was refreshed.
    pub(super) fn touch(&mut self, id: SubscriptionId, began: Option<&Beginning>) {
        if began.is_some() {
            self.touched.insert(id);
        }
    }
    /// A subscription is gone.
    pub(super) fn forget(&mut self, id: SubscriptionId, began: Option<Beginning>) {
        self.touched.remove(&id);
        self.gone.extend(began.map(|began| began.tag.into_string()));
    }
}
