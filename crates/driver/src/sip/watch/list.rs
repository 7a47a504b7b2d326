//! Resource lists (RFC 4662): one subscription to many extensions or mailboxes, told in one document of several parts.
//!
//! A list in a list is a document of several parts in turn, which is one part of the outer one.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use ::sip::stack::{Body, SubscriptionId};
use ::sip::subscription::Standing;
use ::sip::{HeaderName, Message};
use base::{Instant, Random};
use call::{Core, Watched};

use super::body::{self, Document, Kind};
use super::{Item, Topic};
use crate::sip::config::{Endpoint, ResourceList};
use crate::sip::{SipDriver, identity};

/// Items of one list, those of lists in it counted: what fits into a NOTIFY that phones still read.
pub const LIST_ITEMS_MAX: usize = 512;
/// Lists in lists: deeper than anybody has ordered departments.
const DEPTH_MAX: usize = 16;
/// Length of the names of parts, instances and boundaries; random letters.
const MARK_LETTERS: usize = 8;

/// What a watcher of a list knows.
pub(super) struct Listed {
    root: Branch,
    /// How long changes are gathered before they are told (`notification_batch_interval`).
    batch: Duration,
    /// When those that wait are told.
    told_at: Option<Instant>,
    /// The next document speaks of all items: the first one, and the one after a refresh (§5.2).
    pub(super) tells_all: bool,
}

/// One list with what is in it.
struct Branch {
    name: Rc<str>,
    uri: Rc<str>,
    /// Number of the next document about the list (RFC 4662 §5.1: it begins with 0).
    version: u32,
    /// Each document speaks of all that is in it (`full_state`).
    full_state: bool,
    nodes: Vec<Node>,
}

/// What is in a list, in the order of the configuration.
enum Node {
    /// One thing that is watched: its place among the watcher's items.
    Item(usize),
    /// A list in the list.
    List(Branch),
}

/// What a list comes to for a watcher.
pub(super) struct Made {
    pub(super) list: Listed,
    pub(super) items: Vec<Item>,
    /// Names that stand in it and mean nothing.
    pub(super) missing: Vec<String>,
}

/// Whether a watcher takes documents about lists (§4.1).
pub(super) fn is_understood(message: &Message<'_>) -> bool {
    message.lists(HeaderName::Supported, b"eventlist") || message.lists(HeaderName::Require, b"eventlist")
}

/// Host and port of our Contact, by which the resources of a list are named.
fn authority(contact: &str) -> &str {
    let bare = contact.rsplit_once('<').map_or(contact, |(_, rest)| rest);
    let bare = bare.split('>').next().unwrap_or_default();
    let rest = bare.split_once(':').map_or(bare, |(_, rest)| rest);
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    host.split([';', '?']).next().unwrap_or_default()
}

/// Makes the tree of a list.
struct Builder<'a> {
    driver: &'a SipDriver,
    core: &'a Core,
    endpoint: &'a Endpoint,
    kind: Kind,
    context: &'a str,
    event: &'a str,
    /// Host and port by which resources are named.
    authority: &'a str,
    items: Vec<Item>,
    /// Every name stands once in the whole tree, which ends loops as well.
    seen: BTreeSet<&'a str>,
    missing: Vec<String>,
}

impl<'a> Builder<'a> {
    fn uri(&self, name: &str) -> Rc<str> {
        let uri = identity::name_addr("", name, self.authority, false);
        uri.trim_matches(['<', '>']).into()
    }
    fn branch(&mut self, name: &str, list: &'a ResourceList, depth: usize) -> Branch {
        let uri = self.uri(name);
        let mut nodes = Vec::new();
        for name in &list.items {
            if self.items.len() < LIST_ITEMS_MAX && depth < DEPTH_MAX && self.seen.insert(name) {
                match self.node(name, depth) {
                    Some(node) => nodes.push(node),
                    None => self.missing.push(name.clone()),
                }
            }
        }
        Branch { name: name.into(), uri, version: 0, full_state: list.full_state, nodes }
    }
    fn node(&mut self, name: &'a str, depth: usize) -> Option<Node> {
        let driver = self.driver;
        if let Some(inner) = driver.config.lists.get(name).filter(|inner| inner.event == self.event) {
            let branch = self.branch(name, inner, depth + 1);
            return (!branch.nodes.is_empty()).then_some(Node::List(branch));
        }
        let topic = match self.kind {
            Kind::Summary => driver.mailboxes_of_aor(self.endpoint, name, self.authority),
            _ => (self.core.hinted)(self.core, self.context, name).then(|| {
                let context = self.context.to_owned();
                Topic::Extension(Rc::new(Watched { context, exten: name.to_owned() }))
            }),
        }?;
        self.items.push(Item::new(topic, self.kind, self.uri(name), name));
        Some(Node::Item(self.items.len() - 1))
    }
}

impl SipDriver {
    /// The list of this name for this package.
    pub(super) fn list_of(&self, name: &str, package: &str) -> Option<Rc<ResourceList>> {
        self.config.lists.get(name).filter(|list| list.event == package).cloned()
    }

    /// What a list is made of, as far as this endpoint can watch it; `contact` is ours.
    pub(super) fn made_of(
        &self,
        core: &Core,
        endpoint: &Endpoint,
        (name, list): (&str, &ResourceList),
        (kind, context, contact): (Kind, &str, &str),
    ) -> Made {
        let mut builder = Builder {
            driver: self,
            core,
            endpoint,
            kind,
            context,
            event: &list.event,
            authority: authority(contact),
            items: Vec::new(),
            seen: BTreeSet::from([name]),
            missing: Vec::new(),
        };
        let root = builder.branch(name, list, 0);
        let list = Listed { root, batch: list.batch, told_at: None, tells_all: true };
        Made { list, items: builder.items, missing: builder.missing }
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
        let all = list.tells_all || ends;
        let mut told = Vec::new();
        list.root.told(&watcher.items, all, &mut told);
        let mut documents = BTreeMap::new();
        for at in told {
            let Some(item) = self.watchers.all.get(&subscription).and_then(|w| w.items.get(at)) else {
                return;
            };
            let (gone, key) = (item.gone, (item.topic.clone(), item.kind, item.entity.clone()));
            let document = if gone { None } else { self.document(core, &key.0, key.1, &key.2) };
            if document.is_none() && !gone && !ends {
                return;
            }
            documents.insert(at, document);
        }
        let host = self.stack.subscription_names(subscription).map(|(_, flow)| flow);
        let host = host.map(|flow| self.own_host(flow)).unwrap_or_default();
        let mut luck = Random::new(core.random());
        let Some(watcher) = self.watchers.all.get_mut(&subscription) else { return };
        let Some(list) = &mut watcher.list else { return };
        let (items, contact) = (&mut watcher.items, &*watcher.contact);
        let mut writer = Writer { items, documents: &documents, contact, host: &host, ends, luck: &mut luck };
        let (content_type, bytes) = writer.branch(&mut list.root, all);
        list.tells_all = false;
        let waits = list.told_at.take();
        if let Some(at) = waits {
            self.watchers.batches.remove(&(at, subscription));
        }
        let body = Body { content_type: &content_type, bytes: &bytes };
        let headers = [("Require", "eventlist")];
        self.with_stack(core, |stack, now, out| stack.notify(subscription, &headers, Some(body), now, out))
            .ok();
    }
}

impl Branch {
    /// Which items the next document tells of: all, or those that have changed and what stands in lists that always tell
    /// all.
    fn told(&self, items: &[Item], all: bool, out: &mut Vec<usize>) {
        let all = all || self.full_state;
        for node in &self.nodes {
            match node {
                Node::Item(at) if all || items.get(*at).is_some_and(|item| item.changed) => out.push(*at),
                Node::Item(_) => {}
                Node::List(inner) if all || inner.has_changed(items) => inner.told(items, all, out),
                Node::List(_) => {}
            }
        }
    }
    fn has_changed(&self, items: &[Item]) -> bool {
        self.nodes.iter().any(|node| match node {
            Node::Item(at) => items.get(*at).is_some_and(|item| item.changed),
            Node::List(inner) => inner.has_changed(items),
        })
    }
}

/// Writes the parts of one NOTIFY.
struct Writer<'a> {
    items: &'a mut [Item],
    /// What is told, by the place of its item; nothing of what is gone.
    documents: &'a BTreeMap<usize, Option<Rc<Document>>>,
    contact: &'a str,
    host: &'a str,
    /// The subscription ends.
    ends: bool,
    luck: &'a mut Random,
}

impl Writer<'_> {
    fn letters(&mut self) -> String {
        let letter = |_| char::from(b'a' + u8::try_from(self.luck.below(26)).unwrap_or_default());
        (0..MARK_LETTERS).map(letter).collect()
    }
    /// The document about a list, with its type.
    fn branch(&mut self, branch: &mut Branch, all: bool) -> (String, Vec<u8>) {
        let all = all || branch.full_state;
        let boundary = self.letters();
        let mut index = format!(
            "{}<list xmlns=\"urn:ietf:params:xml:ns:rlmi\" uri=\"{}\" version=\"{}\" fullState=\"{all}\">\n \
             <name>{}</name>\n",
            body::XML,
            body::escape(&branch.uri),
            branch.version,
            body::escape(&branch.name),
        );
        let mut parts = Vec::new();
        for node in &mut branch.nodes {
            let (name, uri, part) = match node {
                Node::Item(at) => {
                    let Some(document) = self.documents.get(at) else { continue };
                    let part = document.as_ref().and_then(|document| self.item(*at, document));
                    let Some(item) = self.items.get_mut(*at) else { continue };
                    item.changed = false;
                    (item.name.clone(), item.entity.clone(), part)
                }
                Node::List(inner) if all || inner.has_changed(self.items) => {
                    (inner.name.clone(), inner.uri.clone(), Some(self.branch(inner, all)))
                }
                Node::List(_) => continue,
            };
            let (id, cid) = (self.letters(), format!("{}@{}", self.letters(), self.host));
            let instance = match &part {
                Some(_) if self.ends => format!("state=\"terminated\" cid=\"{}\"", body::escape(&cid)),
                Some(_) => format!("state=\"active\" cid=\"{}\"", body::escape(&cid)),
                None => "state=\"terminated\"".to_owned(),
            };
            // Writing into a String cannot fail.
            let _ = write!(
                index,
                " <resource uri=\"{}\">\n  <name>{}</name>\n  <instance id=\"{id}\" {instance} />\n </resource>\n",
                body::escape(&uri),
                body::escape(&name),
            );
            if let Some((content_type, bytes)) = part {
                push_part(&mut parts, &boundary, &content_type, &cid, &bytes);
            }
        }
        index.push_str("</list>\n");
        branch.version = branch.version.wrapping_add(1);
        let root = format!("{}@{}", self.letters(), self.host);
        let mut bytes = Vec::new();
        push_part(&mut bytes, &boundary, "application/rlmi+xml", &root, index.as_bytes());
        bytes.extend_from_slice(&parts);
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (format!("multipart/related;type=\"application/rlmi+xml\";boundary={boundary}"), bytes)
    }
    /// The document of one item, with its type.
    fn item(&mut self, at: usize, document: &Document) -> Option<(String, Vec<u8>)> {
        let unique = u128::from(self.luck.bits()) << 64 | u128::from(self.luck.bits());
        let item = self.items.get_mut(at)?;
        let read = body::Watching { version: item.version, contact: self.contact, unique };
        item.version = item.version.wrapping_add(1);
        Some((item.kind.content_type().to_owned(), document.bytes(&read)))
    }
}

/// One part of the whole (RFC 2046 §5.1.1, RFC 2387).
fn push_part(out: &mut Vec<u8>, boundary: &str, content_type: &str, cid: &str, bytes: &[u8]) {
    let length = bytes.len();
    let head = format!(
        "--{boundary}\r\nContent-ID: <{cid}>\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
