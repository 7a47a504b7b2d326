//! Resource lists (RFC 4662): one subscription to many extensions or mailboxes, told in one document of several parts.

use core::time::Duration;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;

use ::sip::stack::{Body, SubscriptionId};
use ::sip::subscription::Standing;
use ::sip::{HeaderName, Message};
use base::Instant;
use call::{Core, Watched};

use super::body::{self, Document, Kind};
use super::{Item, Topic};
use crate::sip::config::{Endpoint, ResourceList};
use crate::sip::{SipDriver, identity};

/// Items of one list, those of lists in it counted: what fits into a NOTIFY that phones still read.
pub const LIST_ITEMS_MAX: usize = 512;

/// What a watcher of a list knows.
pub(super) struct Listed {
    /// Number of the next document about the list (RFC 4662 §5.1: it begins with 0).
    version: u32,
    /// Each document speaks of all items (`full_state`).
    full_state: bool,
    /// Items have their names with them (`resource_display_name`).
    names: bool,
    /// How long changes are gathered before they are told (`notification_batch_interval`).
    batch: Duration,
    /// When those that wait are told.
    told_at: Option<Instant>,
    /// The next document speaks of all items: the first one, and the one after a refresh (§5.2).
    pub(super) tells_all: bool,
}

impl Listed {
    pub(super) fn new(list: &ResourceList) -> Self {
        Self {
            version: 0,
            full_state: list.full_state,
            names: list.display_names,
            batch: list.batch,
            told_at: None,
            tells_all: true,
        }
    }
}

/// Whether a watcher takes documents about lists (§4.1).
pub(super) fn is_understood(message: &Message<'_>) -> bool {
    message.lists(HeaderName::Supported, b"eventlist") || message.lists(HeaderName::Require, b"eventlist")
}

impl SipDriver {
    /// The list of this name for this package.
    pub(super) fn list_of(&self, name: &str, package: &str) -> Option<Rc<ResourceList>> {
        self.config.lists.get(name).filter(|list| list.event == package).cloned()
    }

    /// What a list is made of, as far as this endpoint can watch it: lists in it give their items.
    pub(super) fn items_of(
        &self,
        core: &Core,
        endpoint: &Endpoint,
        list: &ResourceList,
        (kind, context, host): (Kind, &str, &str),
    ) -> Vec<Item> {
        let (mut items, mut seen) = (Vec::new(), BTreeSet::new());
        let mut waiting: Vec<&str> = list.items.iter().rev().map(String::as_str).collect();
        while let Some(name) = waiting.pop() {
            if items.len() >= LIST_ITEMS_MAX || !seen.insert(name) {
                continue;
            }
            if let Some(inner) = self.config.lists.get(name).filter(|inner| inner.event == list.event) {
                waiting.extend(inner.items.iter().rev().map(String::as_str));
                continue;
            }
            let topic = match kind {
                Kind::Summary => self.mailboxes_of_aor(endpoint, name),
                _ => (core.hinted)(core, context, name).then(|| {
                    Topic::Extension(Rc::new(Watched { context: context.to_owned(), exten: name.to_owned() }))
                }),
            };
            let uri = identity::name_addr("", name, host, false);
            let entity: Rc<str> = uri.trim_matches(['<', '>']).into();
            items.extend(topic.map(|topic| Item::new(topic, kind, entity, name)));
        }
        items
    }

    /// Something in a list has changed. `false`: the watcher watches one thing only.
    pub(super) fn list_changed(
        &mut self,
        core: &mut Core,
        subscription: SubscriptionId,
        topic: &Topic,
        gone: bool,
    ) -> bool {
        let Some(watcher) = self.watchers.all.get_mut(&subscription) else { return true };
        let Some(list) = &mut watcher.list else { return false };
        for item in watcher.items.iter_mut().filter(|item| item.topic == *topic) {
            (item.changed, item.gone) = (true, gone);
        }
        if let Some(standing) = self.stack.owed(subscription) {
            self.notify_due(core, subscription, standing);
        } else if list.batch.is_zero() {
            self.with_stack(core, |stack, now, out| stack.touch(subscription, now, out));
        } else if list.told_at.is_none() {
            let at = core.now + list.batch;
            list.told_at = Some(at);
            self.watchers.batches.insert((at, subscription));
        }
        true
    }
    /// Tells the changes that were gathered long enough.
    pub(crate) fn tell_batches(&mut self, core: &mut Core) {
        while let Some(&(at, subscription)) = self.watchers.batches.first().filter(|(at, _)| *at <= core.now)
        {
            self.watchers.batches.remove(&(at, subscription));
            if let Some(list) = self.watchers.all.get_mut(&subscription).and_then(|w| w.list.as_mut()) {
                list.told_at = None;
                self.with_stack(core, |stack, now, out| stack.touch(subscription, now, out));
            }
        }
    }
    /// A subscription is gone, and with it what it waited for.
    pub(super) fn forget_batch(&mut self, subscription: SubscriptionId, list: Option<&Listed>) {
        if let Some(at) = list.and_then(|list| list.told_at) {
            self.watchers.batches.remove(&(at, subscription));
        }
    }

    /// The NOTIFY of a list is to leave. It waits until the state of each of its items is known.
    pub(super) fn list_due(&mut self, core: &mut Core, subscription: SubscriptionId, standing: Standing) {
        let ends = matches!(standing, Standing::Terminated(_));
        let Some(watcher) = self.watchers.all.get(&subscription) else { return };
        let Some(list) = &watcher.list else { return };
        let all = list.full_state || list.tells_all || ends;
        let told: Vec<usize> = (0..watcher.items.len())
            .filter(|at| all || watcher.items.get(*at).is_some_and(|i| i.changed))
            .collect();
        let mut documents = Vec::with_capacity(told.len());
        for at in told {
            let Some(item) = self.watchers.all.get(&subscription).and_then(|w| w.items.get(at)) else {
                return;
            };
            let (gone, key) = (item.gone, (item.topic.clone(), item.kind, item.entity.clone()));
            let document = if gone { None } else { self.document(core, &key.0, key.1, &key.2) };
            if document.is_none() && !gone && !ends {
                return;
            }
            documents.push((at, document));
        }
        let host = self.stack.subscription_names(subscription).map(|(_, flow)| flow);
        let host = host.map(|flow| self.own_host(flow)).unwrap_or_default();
        let random = core.random();
        let mark = format!("{random:016x}");
        let Some(watcher) = self.watchers.all.get_mut(&subscription) else { return };
        let Some(list) = &mut watcher.list else { return };
        let state = if all { "true" } else { "false" };
        let uri = body::escape(&watcher.entity);
        let mut index = format!(
            "{}<list xmlns=\"urn:ietf:params:xml:ns:rlmi\" uri=\"{uri}\" version=\"{}\" fullState=\"{state}\">\n",
            body::XML,
            list.version
        );
        let mut parts = Vec::new();
        for (at, document) in documents {
            let Some(item) = watcher.items.get_mut(at) else { continue };
            let cid = format!("{at}.{mark}@{host}");
            describe(&mut index, item, list.names, document.as_deref(), &cid);
            if let Some(document) = document {
                let unique = (u128::from(random) << 64) + at as u128;
                let read = body::Watching { version: item.version, contact: &watcher.contact, unique };
                push_part(&mut parts, &mark, item.kind.content_type(), &cid, &document.bytes(&read));
                item.version = item.version.wrapping_add(1);
            }
            item.changed = false;
        }
        index.push_str("</list>\n");
        let root = format!("list.{mark}@{host}");
        let mut bytes = Vec::new();
        push_part(&mut bytes, &mark, "application/rlmi+xml;charset=\"UTF-8\"", &root, index.as_bytes());
        bytes.extend_from_slice(&parts);
        bytes.extend_from_slice(format!("--{mark}--\r\n").as_bytes());
        list.version = list.version.wrapping_add(1);
        list.tells_all = false;
        let waits = list.told_at.take();
        if let Some(at) = waits {
            self.watchers.batches.remove(&(at, subscription));
        }
        let content_type =
            format!("multipart/related;type=\"application/rlmi+xml\";start=\"<{root}>\";boundary=\"{mark}\"");
        let body = Body { content_type: &content_type, bytes: &bytes };
        let headers = [("Require", "eventlist")];
        self.with_stack(core, |stack, now, out| stack.notify(subscription, &headers, Some(body), now, out))
            .ok();
    }
}

/// One item in the document about the list (RFC 4662 §5.3 to §5.5).
fn describe(index: &mut String, item: &Item, names: bool, document: Option<&Document>, cid: &str) {
    let name = match names {
        true => format!("<name>{}</name>", body::escape(&item.name)),
        false => String::new(),
    };
    let instance = match document {
        Some(_) => format!("state=\"active\" cid=\"{}\"", body::escape(cid)),
        None => "state=\"terminated\" reason=\"noresource\"".to_owned(),
    };
    // Writing into a String cannot fail.
    let _ = writeln!(
        index,
        " <resource uri=\"{}\">{name}<instance id=\"{}\" {instance}/></resource>",
        body::escape(&item.entity),
        body::xml_id(&item.name)
    );
}

/// One part of the whole (RFC 2046 §5.1.1, RFC 2387).
fn push_part(out: &mut Vec<u8>, boundary: &str, content_type: &str, cid: &str, bytes: &[u8]) {
    let head = format!(
        "--{boundary}\r\nContent-Transfer-Encoding: binary\r\nContent-ID: <{cid}>\r\nContent-Type: {content_type}\r\n\r\n"
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
