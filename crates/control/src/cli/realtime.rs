//! Databases that configuration lies in, and what is remembered of it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};
use crate::site::{CacheFault, CacheLine, CacheWish, Caches};
use store::config::realtime::Backend;

/// Objects of a cache that are listed: more than anybody reads, and few enough to write at once.
const LISTED_MAX: usize = 10_000;

pub(super) const ROWS: &[Row] = &[
    show(
        "odbc show [<database>]",
        "Lists the databases that the configuration describes, or one of them; `all` is all.",
        "databases [name driver target standing open busy lent max waiting answered failed slow]",
        Cli::databases,
    )
    .also(&["realtime mysql status", "realtime pgsql status", "realtime sqlite3 status"]),
    show(
        "core show config mappings",
        "Lists the families of extconfig.conf and where their rows lie.",
        "mappings [engine family database table priority]",
        Cli::config_mappings,
    ),
    show(
        "sorcery memory cache show <cache>",
        "Shows what a cache is and what it has done.",
        "name objects maximum_objects lifetime_maximum lifetime_stale full_backend_cache away hits stale_hits away_hits waited failed asked evicted",
        Cli::cache_show,
    )
    .detail("Caches are res_pjsip/endpoint, res_pjsip/aor and res_pjsip/auth, where sorcery.conf places them in a database, and \
         chan_iax2/iaxusers and chan_iax2/iaxpeers, where extconfig.conf places those families."),
    show(
        "realtime show cache",
        "Lists what is remembered of the rows of each family, what that has done, and what is asked at this moment.",
        "caches [name objects maximum_objects away hits stale_hits away_hits waited failed asked evicted in_flight waiting]",
        Cli::caches_list,
    )
    .also(&["sorcery memory cache show"]),
    show(
        "sorcery memory cache dump <cache>",
        "Lists the objects of a cache.",
        "objects [name stale_in expires_in]",
        Cli::cache_dump,
    ),
    verb(
        "sorcery memory cache expire <cache> [<object>]",
        "Has an object, or all of them, asked for anew; who wants one waits for the database.",
        |cli, ask| cli.cache_change(ask, CacheWish::Expire, "expired"),
    ),
    verb(
        "sorcery memory cache stale <cache> [<object>]",
        "Has an object, or all of them, asked for anew behind the next use, which is served by what is known.",
        |cli, ask| cli.cache_change(ask, CacheWish::Stale, "made stale"),
    ),
    verb("sorcery memory cache populate <cache>", "Asks for all objects of a cache at once.", |cli, ask| {
        cli.cache_change(ask, CacheWish::Populate, "populated")
    }),
];

/// Seconds, or that there is no end.
fn seconds(left: Option<u64>) -> String {
    left.map_or_else(|| "never".to_owned(), |left| format!("{left} s"))
}

impl Cli {
    /// What the first of the caches says that has something to say.
    fn caches<T>(&self, with: impl Fn(&dyn Caches) -> Option<T>) -> Option<T> {
        let caches = self.site.caches.borrow().clone();
        caches.iter().find_map(|caches| with(&*caches.borrow()))
    }
    fn databases(&self, ask: &mut Ask<'_>) -> Said {
        let databases = self.site.databases.borrow().clone();
        let mut rows = databases.map(|databases| databases.borrow().lines()).unwrap_or_default();
        if let Some(only) = ask.arg("database").filter(|only| *only != "all") {
            rows.retain(|row| row.name == only);
            if rows.is_empty() {
                return Said::failed(format!("No file describes a database '{}'.\n", clean(only)));
            }
        }
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    json!({
                        "name": row.name, "driver": row.driver, "target": row.target, "standing": row.standing,
                        "open": row.open, "busy": row.busy, "lent": row.lent, "max": row.max, "waiting": row.waiting,
                        "answered": row.answered, "failed": row.failed, "slow": row.slow,
                    })
                })
                .collect();
            json!({ "databases": rows })
        };
        let text = || {
            let mut out = String::new();
            for row in &rows {
                let _ = write!(
                    out,
                    "  Name:   {}\n  Where:  {}\n  Driver: {}\n  State:  {}\n    Number of active connections: {} (out of {}), {} busy, {} with \
                     transactions, {} queries wait\n    Queries: {} answered, {} failed, {} slow\n\n",
                    clean(&row.name),
                    clean(&row.target),
                    clean(&row.driver),
                    clean(&row.standing),
                    row.open,
                    row.max,
                    row.busy,
                    row.lent,
                    row.waiting,
                    row.answered,
                    row.failed,
                    row.slow
                );
            }
            if rows.is_empty() {
                out.push_str("No database is described.\n");
            }
            out
        };
        ask.show(data, text)
    }
    fn config_mappings(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow().clone();
        let families = snapshot.realtime.families.iter();
        let mut rows: Vec<(&str, &str, &Backend)> = families
            .flat_map(|(family, places)| places.iter().map(move |place| (place.driver.word(), family, place)))
            .collect();
        rows.sort_by_key(|(engine, ..)| *engine);
        let data = || {
            let rows = rows.iter().map(|(engine, family, place)| {
                json!({
                    "engine": engine, "family": family, "database": place.database, "table": place.table,
                    "priority": place.priority,
                })
            });
            json!({ "mappings": rows.collect::<Vec<Value>>() })
        };
        let text = || {
            let (mut out, mut before) = (String::new(), "");
            for (engine, family, place) in &rows {
                if before != *engine {
                    let _ = writeln!(out, "Config Engine: {engine}");
                    before = engine;
                }
                let (database, table) = (clean(&place.database), clean(&place.table));
                let _ = writeln!(out, "===> {} (db={database}, table={table})", clean(family));
            }
            if rows.is_empty() {
                out.push_str("extconfig.conf places no family in a database.\n");
            }
            out
        };
        ask.show(data, text)
    }
    fn caches_list(&self, ask: &mut Ask<'_>) -> Said {
        let caches = self.site.caches.borrow().clone();
        let lines: Vec<CacheLine> = caches.iter().flat_map(|caches| caches.borrow().list()).collect();
        let data = || {
            let rows = lines.iter().map(|line| {
                json!({
                    "name": line.name, "objects": line.objects, "maximum_objects": line.maximum, "away": line.is_away,
                    "hits": line.hits, "stale_hits": line.stale_hits, "away_hits": line.away_hits, "waited": line.waited,
                    "failed": line.failed, "asked": line.asked, "evicted": line.evicted, "in_flight": line.in_flight,
                    "waiting": line.waiting,
                })
            });
            json!({ "caches": rows.collect::<Vec<Value>>() })
        };
        let text = || {
            let mut out = format!(
                "{:<24} {:>8} {:>9} {:>8} {:>8} {:>8} {:>6} {:>8} {:>9} {:>7}  {}\n",
                "Cache",
                "Objects",
                "Hits",
                "Stale",
                "Misses",
                "Failed",
                "Gone",
                "Asked",
                "In flight",
                "Waiting",
                "Database"
            );
            for line in &lines {
                let _ = writeln!(
                    out,
                    "{:<24} {:>8} {:>9} {:>8} {:>8} {:>8} {:>6} {:>8} {:>9} {:>7}  {}",
                    clean(&line.name),
                    line.objects,
                    line.hits,
                    line.stale_hits + line.away_hits,
                    line.waited,
                    line.failed,
                    line.evicted,
                    line.asked,
                    line.in_flight,
                    line.waiting,
                    if line.is_away { "away" } else { "there" }
                );
            }
            let _ = writeln!(out, "{} caches", lines.len());
            out
        };
        ask.show(data, text)
    }
    fn cache_show(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("cache");
        let found = self.caches(|caches| caches.list().into_iter().find(|line| line.name == name));
        let Some(line) = found else { return no_cache(name) };
        let data = || {
            json!({
                "name": line.name, "objects": line.objects, "maximum_objects": line.maximum,
                "lifetime_maximum": line.lifetime, "lifetime_stale": line.stale, "full_backend_cache": line.whole,
                "away": line.is_away, "hits": line.hits, "stale_hits": line.stale_hits, "away_hits": line.away_hits, "waited": line.waited,
                "failed": line.failed, "asked": line.asked, "evicted": line.evicted,
            })
        };
        let text = || {
            format!(
                "Sorcery memory cache: {}\nNumber of objects within cache: {}\nMaximum allowed objects: {}\nNumber of seconds \
                 before object expires: {}\nNumber of seconds before object becomes stale: {}\nFull backend cache: \
                 {}\nDatabase: {}\nLook-ups: {} fresh, {} stale, {} beyond their lifetime, {} waited, {} unanswered; {} asked of the database; {} objects evicted\n",
                clean(&line.name),
                line.objects,
                line.maximum,
                seconds(line.lifetime),
                seconds(line.stale),
                super::text::yes_no(line.whole),
                if line.is_away { "away; what is known serves" } else { "there" },
                line.hits,
                line.stale_hits,
                line.away_hits,
                line.waited,
                line.failed,
                line.asked,
                line.evicted
            )
        };
        ask.show(data, text)
    }
    fn cache_dump(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("cache");
        let Some(objects) = self.caches(|caches| caches.objects(name, LISTED_MAX)) else {
            return no_cache(name);
        };
        let data = || {
            let rows = objects.iter().map(|object| {
                json!({ "name": object.name, "stale_in": object.stale_in, "expires_in": object.expires_in })
            });
            json!({ "objects": rows.collect::<Vec<Value>>() })
        };
        let text = || {
            let mut out = format!("{:<40}  {:<12}  {:<12}\n", "Object", "Stale in", "Expires in");
            for object in &objects {
                let (stale, expires) = (seconds(object.stale_in), seconds(object.expires_in));
                let _ = writeln!(out, "{:<40}  {stale:<12}  {expires:<12}", clean(&object.name));
            }
            let _ = writeln!(out, "{} objects", objects.len());
            out
        };
        ask.show(data, text)
    }
    fn cache_change(&self, ask: &mut Ask<'_>, wish: CacheWish, done: &str) -> Said {
        let (name, object) = (ask.need("cache"), ask.arg("object"));
        match self.site.change_cache(name, object, wish) {
            Ok(()) => match object {
                Some(object) => {
                    Said::done(format!("Object '{}' of cache '{}' is {done}.\n", clean(object), clean(name)))
                }
                None => Said::done(format!("Cache '{}' is {done}.\n", clean(name))),
            },
            Err(CacheFault::NoObject) => Said::failed(format!(
                "Cache '{}' has no object '{}'.\n",
                clean(name),
                clean(object.unwrap_or_default())
            )),
            Err(CacheFault::NoCache) => no_cache(name),
        }
    }
}

fn no_cache(name: &str) -> Said {
    Said::failed(format!("There is no sorcery memory cache '{}'.\n", clean(name)))
}
