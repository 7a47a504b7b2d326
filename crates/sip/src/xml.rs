//! The little XML that SIP's event packages need: text escaped for documents of ours, and small documents of phones and
//! servers read. No document type, no entity of its own, no name space is looked at.

use std::borrow::Cow;

/// Elements within each other: a phone's document has two, a price (3GPP TS 24.647) seven.
const DEPTH_MAX: usize = 8;
/// Children of the root that are kept: several times those of any document that is read here.
const CHILDREN_MAX: usize = 32;

/// A document of one element and its children, names without prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flat<'a> {
    /// Name of the root.
    pub root: &'a str,
    children: Vec<(&'a str, String)>,
}

impl Flat<'_> {
    /// The text of the first child of this name, white space around it taken off.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.children.iter().find(|(own, _)| *own == name).map(|(_, text)| text.trim())
    }
}

/// Bytes of a document as text: UTF-8, else Latin-1.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// Reads a document; `None` when it is not well formed, declares a document type, or is deeper or wider than documents of
/// phones are. What stands in children of children is passed over.
pub fn read_flat(text: &str) -> Option<Flat<'_>> {
    let mut flat: Option<Flat<'_>> = None;
    walk(text, &mut |depth, piece| {
        match (depth, piece, &mut flat) {
            (0, Piece::Begin(root), flat) => *flat = Some(Flat { root, children: Vec::new() }),
            (1, Piece::Begin(name), Some(flat)) if flat.children.len() < CHILDREN_MAX => {
                flat.children.push((name, String::new()));
            }
            (1, Piece::Begin(_), _) => return None,
            (2, Piece::Text(text), Some(flat)) => flat.children.last_mut()?.1.push_str(&text),
            (_, _, _) => {}
        }
        Some(())
    })?;
    flat
}

/// Elements of one document that are kept: twice those of the longest advice of charge (3GPP TS 24.647), with 32 entries.
const ELEMENTS_MAX: usize = 256;

/// A document of any shape, names without prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree<'a> {
    /// In the order of the document.
    elements: Vec<Row<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row<'a> {
    name: &'a str,
    depth: usize,
    text: String,
}

/// One element of a [`Tree`].
#[derive(Debug, Clone, Copy)]
pub struct Element<'t, 'a> {
    row: &'t Row<'a>,
    /// What follows it in the document.
    after: &'t [Row<'a>],
}

impl<'a> Tree<'a> {
    /// The outermost element.
    pub fn root(&self) -> Option<Element<'_, 'a>> {
        let (row, after) = self.elements.split_first()?;
        Some(Element { row, after })
    }
}

impl<'t, 'a> Element<'t, 'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.row.name
    }
    /// Its own text, that of its children left out, white space around it taken off.
    pub fn text(&self) -> &'t str {
        self.row.text.trim()
    }
    /// Its children, in order.
    pub fn children(&self) -> impl Iterator<Item = Element<'t, 'a>> {
        let (depth, after) = (self.row.depth, self.after);
        let inside = after.iter().take_while(move |row| row.depth > depth).enumerate();
        let own = inside.filter(move |(_, row)| row.depth == depth + 1);
        own.map(move |(at, row)| Element { row, after: after.get(at + 1..).unwrap_or_default() })
    }
    /// Its first child of this name.
    pub fn child(&self, name: &str) -> Option<Element<'t, 'a>> {
        self.children().find(|child| child.name() == name)
    }
}

/// Reads a document; `None` when it is not well formed, declares a document type, is deeper than documents here are, or has
/// more elements.
pub fn read_tree(text: &str) -> Option<Tree<'_>> {
    let mut tree = Tree::default();
    // Elements that are open, by their place.
    let mut open = Vec::new();
    walk(text, &mut |depth, piece| {
        open.truncate(depth);
        match piece {
            Piece::Begin(_) if tree.elements.len() >= ELEMENTS_MAX => return None,
            Piece::Begin(name) => {
                open.push(tree.elements.len());
                tree.elements.push(Row { name, depth, text: String::new() });
            }
            Piece::Text(text) => tree.elements.get_mut(*open.last()?)?.text.push_str(&text),
        }
        Some(())
    })?;
    Some(tree)
}

/// What stands in a document.
enum Piece<'a> {
    /// An element begins; its name without prefix.
    Begin(&'a str),
    /// Text of the innermost open element.
    Text(Cow<'a, str>),
}

/// Goes through a document and has each piece taken, with how many elements it stands in; `None` when the document is not
/// well formed, declares a document type or is too deep, or when `take` wants no more of it.
fn walk<'a>(text: &'a str, take: &mut dyn FnMut(usize, Piece<'a>) -> Option<()>) -> Option<()> {
    let mut rest = text.trim_start_matches('\u{feff}');
    let (mut open, mut has_root): (Vec<&str>, bool) = (Vec::new(), false);
    while let Some(at) = rest.find('<') {
        let (between, tag) = rest.split_at(at);
        text_at(open.len(), unescape(between)?, take)?;
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.split_once("-->")?.1;
        } else if let Some(instruction) = tag.strip_prefix("<?") {
            rest = instruction.split_once("?>")?.1;
        } else if let Some(raw) = tag.strip_prefix("<![CDATA[") {
            let (raw, after) = raw.split_once("]]>")?;
            text_at(open.len(), raw.into(), take)?;
            rest = after;
        } else if let Some(name) = tag.strip_prefix("</") {
            let (name, after) = name.split_once('>')?;
            if open.pop()? != name.trim_end() {
                return None;
            }
            rest = after;
        } else {
            let end = tag_end(tag)?;
            let (inside, after) = (tag.get(1..end)?, tag.get(end + 1..)?);
            let (inside, is_empty) = match inside.strip_suffix('/') {
                Some(inside) => (inside, true),
                None => (inside, false),
            };
            let name = inside.split_ascii_whitespace().next().filter(|name| inside.starts_with(*name))?;
            if open.is_empty() && core::mem::replace(&mut has_root, true) {
                return None;
            }
            take(open.len(), Piece::Begin(local(name).filter(|_| open.len() < DEPTH_MAX)?))?;
            if !is_empty {
                open.push(name);
            }
            rest = after;
        }
    }
    (open.is_empty() && has_root && rest.trim().is_empty()).then_some(())
}

/// The name of an element without its prefix; `None` when it is none.
fn local(name: &str) -> Option<&str> {
    let is_name = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
    name.chars().all(is_name).then(|| name.rsplit(':').next()).flatten().filter(|local| !local.is_empty())
}

/// Text between tags; outside of all elements there is only white space.
fn text_at<'a>(
    depth: usize,
    text: Cow<'a, str>,
    take: &mut dyn FnMut(usize, Piece<'a>) -> Option<()>,
) -> Option<()> {
    match depth {
        0 => text.trim().is_empty().then_some(()),
        _ if text.is_empty() => Some(()),
        _ => take(depth, Piece::Text(text)),
    }
}

/// Where the `>` of a tag stands that is not inside an attribute.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.char_indices().skip(1).find_map(|(at, c)| match (quote, c) {
        (None, '>') => Some(Some(at)),
        (None, '<') => Some(None),
        (None, '"' | '\'') => {
            quote = Some(c);
            None
        }
        (Some(open), c) if c == open => {
            quote = None;
            None
        }
        _ => None,
    })?
}

fn unescape(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('&') {
        return Some(text.into());
    }
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, after) = part.split_once(';')?;
        let number = |text: &str, radix| u32::from_str_radix(text, radix).ok().and_then(char::from_u32);
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => match name.strip_prefix("#x") {
                Some(hex) => number(hex, 16)?,
                None => number(name.strip_prefix('#')?, 10)?,
            },
        });
        out.push_str(after);
    }
    Some(out.into())
}

/// Text inside XML, attributes included.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_document_is_its_root_and_the_text_of_its_children() {
        for (name, text, root, child) in [
            ("plain", "<a><b>1</b></a>", "a", Some("1")),
            (
                "declared",
                "<?xml version=\"1.0\" encoding='UTF-8'?>\r\n<a>\n <b> 1\n</b></a>\n",
                "a",
                Some("1"),
            ),
            ("prefixed", "<x:a xmlns:x=\"u:>\"><x:b y='/>'>1</x:b ></x:a>", "a", Some("1")),
            ("empty child", "<a><b/></a>", "a", Some("")),
            ("empty child with attributes", "<a ><b c=\"d\" /></a>", "a", Some("")),
            ("no child", "<a/>", "a", None),
            ("entities", "<a><b>&lt;&#49;&#x32;&amp;</b></a>", "a", Some("<12&")),
            ("comment and raw text", "<!-- <z> --><a><b>1<!-- & --><![CDATA[<2]]></b></a>", "a", Some("1<2")),
            ("deeper", "<a><b><c>9</c>1</b></a>", "a", Some("1")),
            ("the first counts", "<a><b>1</b><b>2</b></a>", "a", Some("1")),
            ("byte order mark", "\u{feff}<a><b>1</b></a>", "a", Some("1")),
        ] {
            let flat = read_flat(text).unwrap_or_else(|| panic!("{name}"));
            assert_eq!((flat.root, flat.text("b")), (root, child), "{name}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_none() {
        let deep = format!("{}{}", "<a>".repeat(9), "</a>".repeat(9));
        let wide = format!("<a>{}</a>", "<b/>".repeat(33));
        for text in [
            "",
            " ",
            "1",
            "<",
            "<a",
            "<a>",
            "</a>",
            "<a></b>",
            "<a><b></a></b>",
            "<a/><a/>",
            "<a/>1",
            "1<a/>",
            "<a b=\"></a>",
            "<a<b></a>",
            "< a></ a>",
            "<></>",
            "<x:/>",
            "<a&b/>",
            "<a>&b;</a>",
            "<a>&amp</a>",
            "<a>&#xd800;</a>",
            "<a>&#-1;</a>",
            "<!-- <a/>",
            "<? <a/>",
            "<a><![CDATA[1</a>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
            &deep,
            &wide,
        ] {
            assert_eq!(read_flat(text), None, "{text}");
            assert!(text == wide || read_tree(text).is_none(), "{text}");
        }
    }

    /// An element and all in it, as `name(text)[children]`.
    fn outline(element: &Element<'_, '_>) -> String {
        let children: Vec<String> = element.children().map(|child| outline(&child)).collect();
        let text = element.text();
        let text = if text.is_empty() { String::new() } else { format!("({text})") };
        let inside = if children.is_empty() { String::new() } else { format!("[{}]", children.join(" ")) };
        format!("{}{text}{inside}", element.name())
    }

    #[test]
    fn a_tree_is_its_elements_with_their_own_text() {
        for (name, text, expected) in [
            ("one", "<a/>", "a"),
            ("text", " <a> 1 </a> ", "a(1)"),
            ("children of children", "<a><b><c>1</c></b><b>2<c/></b></a>", "a[b[c(1)] b(2)[c]]"),
            ("text around children", "<a>1<b>2</b>3<c/>4</a>", "a(134)[b(2) c]"),
            (
                "prefixes and attributes",
                "<?xml version=\"1.0\"?><x:a xmlns:x=\"u\"><x:b c='>'>1</x:b></x:a>",
                "a[b(1)]",
            ),
            ("comments and raw text", "<a><b><!-- <z> --><![CDATA[<]]>&gt;</b></a>", "a[b(<>)]"),
            (
                "deep",
                "<a><b><c><d><e><f><g><h>1</h></g></f></e></d></c></b></a>",
                "a[b[c[d[e[f[g[h(1)]]]]]]]",
            ),
        ] {
            let tree = read_tree(text).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(outline(&tree.root().unwrap()), expected, "{name}");
        }
        let tree = read_tree("<a><b>1</b><c><b>2</b></c><b>3</b></a>").unwrap();
        let root = tree.root().unwrap();
        assert_eq!(root.child("b").map(|b| b.text()), Some("1"));
        assert_eq!(root.child("c").and_then(|c| c.child("b")).map(|b| b.text()), Some("2"));
        assert!(root.child("d").is_none());
        let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
        assert!(read_tree(&many(ELEMENTS_MAX - 1)).is_some());
        assert!(read_tree(&many(ELEMENTS_MAX)).is_none());
    }

    #[test]
    fn text_is_escaped_and_read_back() {
        let text = "a<b>&\"c'\u{e9}";
        let document = format!("<a><b>{}</b></a>", escape(text));
        assert_eq!(read_flat(&document).unwrap().text("b"), Some(text));
        assert_eq!(escape("1\r\n\x002"), "12");
        assert_eq!(decoded(b"\xe9"), "\u{e9}");
    }
}
