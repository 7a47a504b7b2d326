//! Any document. Oracles: what is read has a name and comes from the text, and text that we escape is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip::xml::{Element, decoded, escape, read_flat, read_tree};

/// Elements and bytes of text below one.
fn weigh(element: &Element<'_, '_>) -> (usize, usize) {
    assert!(!element.name().is_empty());
    let own = (1, element.text().len());
    element.children().fold(own, |(count, bytes), child| {
        let (more, text) = weigh(&child);
        (count + more, bytes + text)
    })
}

fuzz_target!(|bytes: &[u8]| {
    let text = decoded(bytes);
    if let Some(flat) = read_flat(&text) {
        assert!(!flat.root.is_empty() && text.contains(flat.root));
        for name in ["device", "a", "note", ""] {
            let found = flat.text(name).unwrap_or_default();
            // Nothing grows: no entity stands for more than it is written in.
            assert!(found.len() <= text.len());
        }
    }
    let tree = read_tree(&text);
    if let Some(root) = tree.as_ref().and_then(|tree| tree.root()) {
        // Each element is met once, and their texts together are no longer than the document.
        let (count, bytes) = weigh(&root);
        assert!(count <= 256 && bytes <= text.len());
    }
    let document = format!("<a b=\"{0}\"><b>{0}</b></a>", escape(&text));
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    let read = read_flat(&document).expect("what we escape is well formed");
    assert_eq!((read.root, read.text("b")), ("a", Some(plain.trim())));
});
