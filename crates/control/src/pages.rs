//! Answers that are made as they are sent: lists of thousands, of which no more exists at a time than a client reads.
//!
//! A turn makes one page for each client that has room for it. What is listed may change in between: whoever makes the
//! list goes by names, not by places.

use core::cell::RefCell;
use core::fmt;
use std::rc::Rc;

/// Bytes from which on a page is complete: what is made in one turn, well below a millisecond.
pub const PAGE_BYTES: usize = 32 * 1024;

/// Appends the next piece of an answer; `false` when there is none left.
type Make = dyn FnMut(&mut String) -> bool;

struct Paper {
    make: Box<Make>,
    /// What is made and not taken.
    text: String,
    is_over: bool,
}

/// The pages of one answer, in order. Clones are the same answer.
#[derive(Clone)]
pub struct Pages(Rc<RefCell<Paper>>);

impl Pages {
    /// An answer of pieces: `make` appends one or more lines each time, and says `false` once it has nothing to append.
    pub fn new(make: impl FnMut(&mut String) -> bool + 'static) -> Self {
        Self(Rc::new(RefCell::new(Paper { make: Box::new(make), text: String::new(), is_over: false })))
    }
    /// The next page, of whole lines unless a line is longer than a page; `None` behind the last.
    pub fn next(&self) -> Option<String> {
        // Whoever makes a piece cannot ask for one: there is nothing to give.
        let Ok(mut paper) = self.0.try_borrow_mut() else { return None };
        let Paper { make, text, is_over } = &mut *paper;
        while !*is_over && text.len() < PAGE_BYTES {
            // Should it panic, there is no more of it.
            *is_over = true;
            *is_over = !make(text);
        }
        if text.is_empty() {
            return None;
        }
        if text.len() <= PAGE_BYTES {
            return Some(core::mem::take(text));
        }
        let most = text.floor_char_boundary(PAGE_BYTES);
        let line = text.get(..most).and_then(|page| page.rfind('\n')).map_or(most, |end| end + 1);
        let rest = text.split_off(line);
        Some(core::mem::replace(text, rest))
    }
    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.0.try_borrow().is_ok_and(|paper| paper.is_over && paper.text.is_empty())
    }
    /// The whole answer when one page holds it, else all of its pages.
    pub fn or_whole(self) -> Result<String, Self> {
        let first = self.next().unwrap_or_default();
        if self.is_over() {
            return Ok(first);
        }
        if let Ok(mut paper) = self.0.try_borrow_mut() {
            paper.text.insert_str(0, &first);
        }
        Err(self)
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

impl PartialEq for Pages {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Pages {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of so many lines of so many bytes.
    fn lines(count: usize, bytes: usize) -> Pages {
        let mut left = count;
        Pages::new(move |out| {
            if left == 0 {
                return false;
            }
            left -= 1;
            out.push_str(&"x".repeat(bytes - 1));
            out.push('\n');
            true
        })
    }

    #[test]
    fn a_long_answer_comes_in_pages_of_whole_lines() {
        for (name, count, bytes, expected) in [
            ("nothing", 0, 10, vec![]),
            ("little", 3, 10, vec![30]),
            ("lines that do not fill a page", 8, 10_000, vec![30_000, 30_000, 20_000]),
            ("a line of several pages", 1, PAGE_BYTES * 2 + 5, vec![PAGE_BYTES, PAGE_BYTES, 5]),
        ] {
            let pages = lines(count, bytes);
            let got: Vec<String> = core::iter::from_fn(|| pages.next()).collect();
            assert_eq!(got.iter().map(String::len).collect::<Vec<_>>(), expected, "{name}");
            assert!(pages.is_over(), "{name}");
            if bytes < PAGE_BYTES {
                assert!(got.iter().all(|page| page.ends_with('\n')), "{name}");
            }
        }
    }

    #[test]
    fn a_short_answer_is_whole_and_a_long_one_loses_nothing_by_being_asked() {
        assert_eq!(lines(3, 10).or_whole().unwrap().len(), 30);
        let pages = lines(9, 10_000).or_whole().unwrap_err();
        assert_eq!(core::iter::from_fn(|| pages.next()).map(|page| page.len()).sum::<usize>(), 90_000);
    }
}
