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

/// The cache of one name, with one object.
struct One(&'static str, &'static str);

impl Caches for One {
    fn list(&self) -> Vec<CacheLine> {
        Vec::new()
    }
    fn objects(&self, _: &str, _: usize) -> Option<Vec<ObjectLine>> {
        None
    }
    fn change(&mut self, cache: &str, object: Option<&str>, wish: CacheWish) -> Result<(), CacheFault> {
        assert_eq!(wish, CacheWish::Expire);
        match (cache == self.0, object.is_none_or(|object| object == self.1)) {
            (false, _) => Err(CacheFault::NoCache),
            (true, false) => Err(CacheFault::NoObject),
            (true, true) => Ok(()),
        }
    }
}

#[test]
fn rows_of_iax2_are_pruned_by_name_or_all_at_once() {
    let (mut desk, _) = super::iax::served("prune");
    let none = ("No users and peers of IAX2 lie in a database.\n".to_owned(), 1);
    assert_eq!(desk.run("iax2 prune realtime all"), none);
    for (cache, object) in [("chan_iax2/iaxusers", "phone"), ("chan_iax2/iaxpeers", "site")] {
        desk.cli.site.caches.borrow_mut().push(Rc::new(RefCell::new(One(cache, object))));
    }
    for (name, told, status) in [
        ("phone", "phone is asked for anew.\n", 0),
        ("site", "site is asked for anew.\n", 0),
        ("nobody", "There is no row of 'nobody' in the cache.\n", 1),
        ("all", "All users and peers of databases are asked for anew.\n", 0),
    ] {
        assert_eq!(desk.run(&format!("iax2 prune realtime {name}")), (told.to_owned(), status), "{name}");
    }
}

#[test]
fn where_families_lie_and_which_databases_there_are_is_told_also_when_there_are_none() {
    let mut desk = Desk::new("mappings");
    let none = "extconfig.conf places no family in a database.\n";
    assert_eq!(desk.run("core show config mappings"), (none.to_owned(), 0));
    assert_eq!(desk.json("core show config mappings")["mappings"], serde_json::json!([]));
    assert_eq!(desk.run("odbc show x"), ("No file describes a database 'x'.\n".to_owned(), 1));
    assert_eq!(desk.run("odbc show all"), ("No database is described.\n".to_owned(), 0));
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
