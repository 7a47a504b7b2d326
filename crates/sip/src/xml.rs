//! The little XML that SIP's event packages need: text escaped for documents of ours, and small flat documents of phones
//! read. No document type, no entity of its own, no name space is looked at.

use std::borrow::Cow;

/// Elements within each other: a phone's document has two.
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
    let mut rest = text.trim_start_matches('\u{feff}');
    let (mut open, mut flat): (Vec<&str>, Option<Flat<'_>>) = (Vec::new(), None);
    while let Some(at) = rest.find('<') {
        let (between, tag) = rest.split_at(at);
        take_text(&open, &mut flat, &unescape(between)?)?;
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.split_once("-->")?.1;
        } else if let Some(instruction) = tag.strip_prefix("<?") {
            rest = instruction.split_once("?>")?.1;
        } else if let Some(raw) = tag.strip_prefix("<![CDATA[") {
            let (raw, after) = raw.split_once("]]>")?;
            take_text(&open, &mut flat, raw)?;
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
            begin(name, &open, &mut flat)?;
            if !is_empty {
                open.push(name);
            }
            rest = after;
        }
    }
    (open.is_empty() && rest.trim().is_empty()).then_some(flat).flatten()
}

fn begin<'a>(name: &'a str, open: &[&str], flat: &mut Option<Flat<'a>>) -> Option<()> {
    let is_name = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
    if !name.chars().all(is_name) || open.len() >= DEPTH_MAX {
        return None;
    }
    let local = name.rsplit(':').next().filter(|local| !local.is_empty())?;
    match (open.len(), flat) {
        (0, flat @ None) => *flat = Some(Flat { root: local, children: Vec::new() }),
        // A second root.
        (0, Some(_)) => return None,
        (1, Some(flat)) if flat.children.len() < CHILDREN_MAX => flat.children.push((local, String::new())),
        (1, _) => return None,
        (_, _) => {}
    }
    Some(())
}

fn take_text(open: &[&str], flat: &mut Option<Flat<'_>>, text: &str) -> Option<()> {
    match (open.len(), flat) {
        (0, _) => text.trim().is_empty().then_some(()),
        (2, Some(flat)) => flat.children.last_mut().map(|(_, own)| own.push_str(text)),
        (_, _) => Some(()),
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
        }
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
