//! What is remembered of objects in databases.

use super::super::table::{ActionRow, Done, Field, Turn, must};
use crate::site::{CacheFault, CacheWish};

const CACHE: Field = must("Cache", "cache, such as res_pjsip/endpoint");
const OBJECT: Field = must("Object", "name of the object");

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "SorceryMemoryCacheExpireObject",
        class: &["system"],
        synopsis: "Has an object asked for anew; who wants it waits for the database.",
        fields: &[CACHE, OBJECT],
        run: |turn| change(turn, CacheWish::Expire, true),
    },
    ActionRow {
        name: "SorceryMemoryCacheExpire",
        class: &["system"],
        synopsis: "Has all objects of a cache asked for anew.",
        fields: &[CACHE],
        run: |turn| change(turn, CacheWish::Expire, false),
    },
    ActionRow {
        name: "SorceryMemoryCacheStaleObject",
        class: &["system"],
        synopsis: "Has an object asked for anew behind its next use.",
        fields: &[CACHE, OBJECT],
        run: |turn| change(turn, CacheWish::Stale, true),
    },
    ActionRow {
        name: "SorceryMemoryCacheStale",
        class: &["system"],
        synopsis: "Has all objects of a cache asked for anew behind their next use.",
        fields: &[CACHE],
        run: |turn| change(turn, CacheWish::Stale, false),
    },
    ActionRow {
        name: "SorceryMemoryCachePopulate",
        class: &["system"],
        synopsis: "Asks for all objects of a cache at once.",
        fields: &[CACHE],
        run: |turn| change(turn, CacheWish::Populate, false),
    },
];

fn change(turn: &mut Turn<'_>, wish: CacheWish, with_object: bool) -> Done {
    let cache = turn.need("Cache")?.to_owned();
    let object = if with_object { Some(turn.need("Object")?.to_owned()) } else { None };
    let outcome = turn.site.change_cache(&cache, object.as_deref(), wish);
    match outcome {
        Ok(()) => turn.success(match (wish, with_object) {
            (CacheWish::Expire, true) => "The provided object was expired from the cache",
            (CacheWish::Expire, false) => "All objects were expired from the cache",
            (CacheWish::Stale, true) => "The provided object was marked as stale in the cache",
            (CacheWish::Stale, false) => "All objects were marked as stale in the cache",
            (CacheWish::Populate, _) => "Cache has been populated",
        }),
        Err(CacheFault::NoCache) => Err("The provided cache does not exist\n".into()),
        Err(CacheFault::NoObject) => Err(match wish {
            CacheWish::Expire => "The provided object could not be expired from the cache\n",
            _ => "The provided object could not be marked as stale in the cache\n",
        }
        .into()),
    }
}
