//! What is remembered of rows.

use std::cell::RefCell;

use super::*;
use crate::site::{CacheFault, CacheLine, CacheWish, Caches, ObjectLine};

/// A cache of so many objects.
struct Remembered(&'static str, usize);

impl Caches for Remembered {
    fn list(&self) -> Vec<CacheLine> {
        vec![CacheLine {
            name: self.0.into(),
            objects: self.1,
            maximum: 1000,
            lifetime: None,
            stale: None,
            whole: false,
            is_away: self.1 == 0,
            hits: 20,
            stale_hits: 3,
            away_hits: 4,
            waited: 5,
            failed: 1,
            asked: 6,
            evicted: 0,
            in_flight: 2,
            waiting: 7,
        }]
    }
    fn objects(&self, _: &str, _: usize) -> Option<Vec<ObjectLine>> {
        None
    }
    fn change(&mut self, _: &str, _: Option<&str>, _: CacheWish) -> Result<(), CacheFault> {
        Err(CacheFault::NoCache)
    }
}

#[test]
fn every_family_that_is_remembered_is_listed_with_what_it_has_done() {
    let mut desk = Desk::new("caches");
    assert_eq!(desk.run("realtime show cache").0.lines().last(), Some("0 caches"));
    for (name, objects) in [("res_pjsip/endpoint", 40), ("chan_iax2/iaxpeers", 0)] {
        desk.cli.site.caches.borrow_mut().push(Rc::new(RefCell::new(Remembered(name, objects))));
    }
    for line in ["realtime show cache", "sorcery memory cache show"] {
        let (text, status) = desk.run(line);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(status, 0, "{line}: {text}");
        let figures = ["20", "7", "5", "1", "0", "6", "2", "7"];
        assert_eq!(rows[1], [&["res_pjsip/endpoint", "40"][..], &figures, &["there"]].concat(), "{line}");
        assert_eq!(rows[2], [&["chan_iax2/iaxpeers", "0"][..], &figures, &["away"]].concat(), "{line}");
        assert_eq!(rows[3], ["2", "caches"], "{line}");
        let json = desk.json(line);
        assert_eq!(json["caches"][0]["name"], "res_pjsip/endpoint", "{line}");
        assert_eq!((&json["caches"][1]["in_flight"], &json["caches"][1]["away"]), (&2.into(), &true.into()));
    }
    let (text, status) = desk.run("sorcery memory cache show res_pjsip/endpoint");
    assert!(status == 0 && text.contains("Number of objects within cache: 40"), "one of them: {text}");
}
