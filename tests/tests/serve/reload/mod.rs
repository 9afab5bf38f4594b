//! Code that changes while a site serves: what does not load leaves the old in place, and nothing is
//! lost or refused meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hob_tests::site::Site;
use hob_tests::{End, World, wait};
use rustix::process::Signal;
use serde_json::Value;

/// A language's app: its key, its file, one that answers a number, and one that does not load.
#[derive(Debug, Clone, Copy)]
struct Kind {
    key: &'static str,
    file: &'static str,
    works: fn(&str) -> String,
    broken: &'static [&'static str],
}

const WSGI: Kind = Kind {
    key: "wsgi",
    file: "wsgi.py",
    works: |text| {
        format!(
            "import os, time\n\
             def application(environ, start):\n\
             \x20   while environ['PATH_INFO'] == '/held' and not os.path.exists('go'): \
             time.sleep(0.01)\n\
             \x20   start('200 OK', [])\n\
             \x20   return [b'{text}']\n"
        )
    },
    broken: &[
        "def (",
        "import nothing_of_this_name\n",
        "raise SystemExit(3)\n",
        "import os\nos._exit(3)\n",
    ],
};

const RACK: Kind = Kind {
    key: "rack",
    file: "config.ru",
    works: |text| {
        format!(
            "run ->(env) {{\n  sleep 0.01 while env['PATH_INFO'] == '/held' && !File.exist?('go')\n  \
             [200, {{}}, ['{text}']]\n}}\n"
        )
    },
    broken: &["def (", "require 'nothing_of_this_name'\n", "exit 3\n", "exit! 3\n"],
};

const KINDS: [Kind; 2] = [WSGI, RACK];

fn site(world: &World, kind: Kind, mounts: &[(&str, &str)]) -> Site {
    world.file(kind.file, (kind.works)("first"));
    let mounts = mounts.iter().map(|(path, more)| {
        format!("[mount.\"{path}\"]\n{} = \"{}\"\n{more}\n", kind.key, kind.file)
    });
    world.file("hob.toml", mounts.collect::<String>());
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn text(site: &Site, path: &str) -> String {
    let answer = site.get(path);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.text()
}

/// The pool of a mount, as `hob serve status --json` tells it.
fn pool(world: &World, mount: &str) -> Value {
    let outcome = world.hob(&["serve", "status", "--json"]).go();
    let told: Value = serde_json::from_str(&outcome.text()).unwrap();
    let pools = told["sites"][0]["status"]["pools"].as_array().unwrap();
    pools.iter().find(|pool| pool["program"] == mount).cloned().unwrap_or_default()
}

#[test]
fn what_does_not_load_leaves_the_old_in_place_and_is_told() {
    for kind in KINDS {
        let world = World::new();
        let mounts = [("/fork", "isolation = \"fork\""), ("/prefork", "workers = 2")];
        let site = site(&world, kind, &mounts);
        for broken in kind.broken {
            world.file(kind.file, (kind.works)("works"));
            for (mount, _) in mounts {
                assert_eq!(text(&site, mount), "works", "{} before {broken:?}", kind.key);
            }
            world.file(kind.file, broken);
            for (mount, _) in mounts {
                for _ in 0..3 {
                    assert_eq!(text(&site, mount), "works", "{} with {broken:?}", kind.key);
                }
                // One whose copies are all used is not told of for a moment, if it has no trouble.
                let pool = pool(&world, mount);
                assert_eq!((&pool["old"], &pool["state"]), (&true.into(), &"warm".into()));
                let why = pool["why"].as_str().unwrap();
                assert!(why.contains("the old goes on"), "{why}");
                let told = world.hob(&["serve", "status"]).go().text();
                assert!(told.contains("does not load"), "{told}");
            }
        }
        world.file(kind.file, (kind.works)("mended"));
        for (mount, _) in mounts {
            assert_eq!(text(&site, mount), "mended", "{}", kind.key);
            assert_eq!(pool(&world, mount)["old"], Value::Null);
        }
        let told = String::from_utf8(site.stop().err).unwrap();
        assert!(told.contains("hob: /fork: the new code does not load, the old goes on"), "{told}");
        assert!(told.contains("nothing_of_this_name"), "{told}");
        assert!(told.contains("hob: /prefork: the new code answers"), "{told}");
        let receipts = world.records(400);
        assert!(receipts.iter().any(|receipt| receipt["reason"] == "old-code"), "{receipts:?}");
    }
}

#[test]
fn what_a_broken_app_looked_for_is_found_as_soon_as_it_is_there() {
    for kind in KINDS {
        let world = World::new();
        let site = site(&world, kind, &[("/", "")]);
        let (needs, beside) = match kind.key {
            "wsgi" => ("import beside_it\n", "beside_it.py"),
            _ => ("require_relative 'beside_it'\n", "beside_it.rb"),
        };
        assert_eq!(text(&site, "/"), "first");
        world.file(kind.file, format!("{needs}{}", (kind.works)("second")));
        assert_eq!(text(&site, "/"), "first");
        for broken in ["1 / 0\n", "def (\n"] {
            world.file(beside, broken);
            assert_eq!(text(&site, "/"), "first");
        }
        world.file(beside, "");
        assert_eq!(text(&site, "/"), "second", "{}", kind.key);
        site.stop();
    }
}

#[test]
fn old_code_answers_until_the_new_is_ready_where_its_mount_says_so() {
    for kind in KINDS {
        let world = World::new();
        let fork = "isolation = \"fork\"\nstale = \"serve\"";
        let site = site(&world, kind, &[("/fork", fork), ("/prefork", "stale = \"serve\"")]);
        let slow = match kind.key {
            "wsgi" => "import os, time\nwhile not os.path.exists('load'): time.sleep(0.01)\n",
            _ => "sleep 0.01 until File.exist?('load')\n",
        };
        for mount in ["/fork", "/prefork"] {
            assert_eq!(text(&site, mount), "first");
        }
        world.file(kind.file, format!("{slow}{}", (kind.works)("second")));
        for mount in ["/fork", "/prefork"] {
            for _ in 0..5 {
                assert_eq!(text(&site, mount), "first", "nobody has let it load");
            }
            // One whose copies are all used is not told of for a moment.
            wait::until("old", || (pool(&world, mount)["old"] == true).then_some(()));
        }
        world.file("load", "");
        for mount in ["/fork", "/prefork"] {
            wait::until("the new code", || (text(&site, mount) == "second").then_some(()));
            assert_eq!(text(&site, mount), "second", "it never goes back");
        }
        site.stop();
    }
}

#[test]
fn a_request_that_runs_in_old_code_ends_as_it_began() {
    for kind in KINDS {
        let world = World::new();
        let mounts = [("/fork", "isolation = \"fork\""), ("/prefork", "workers = 2")];
        let site = site(&world, kind, &mounts);
        std::thread::scope(|scope| {
            let held: Vec<_> = ["/fork/held", "/prefork/held"]
                .map(|path| scope.spawn(|| text(&site, path)))
                .into_iter()
                .collect();
            for (mount, _) in mounts {
                wait::until("its begin", || (pool(&world, mount)["busy"] == 1).then_some(()));
            }
            world.file(kind.file, (kind.works)("second"));
            for (mount, _) in mounts {
                assert_eq!(text(&site, mount), "second");
            }
            world.hob(&["serve", "reload"]).go().succeeded();
            world.file("go", "");
            for held in held {
                assert_eq!(held.join().unwrap(), "first");
            }
        });
        site.stop();
    }
}

#[test]
fn a_reload_loads_what_no_file_tells_and_says_what_became_of_it() {
    for kind in KINDS {
        let world = World::new();
        let reads = match kind.key {
            "wsgi" => {
                "import os, subprocess\nWORD = subprocess.check_output(['cat', 'word'])\n\
                       def application(environ, start):\n    start('200 OK', [])\n    return [WORD]\n"
            }
            _ => "word = `cat word`\nrun ->(env) { [200, {}, [word]] }\n",
        };
        world.file("word", "one");
        let mounts = ["/fork", "/prefork", "/never", "/spawn"];
        let site = site(
            &world,
            kind,
            &[
                ("/fork", "isolation = \"fork\""),
                ("/prefork", ""),
                ("/never", ""),
                ("/spawn", "isolation = \"spawn\""),
            ],
        );
        world.file(kind.file, reads);
        for mount in ["/fork", "/prefork", "/spawn"] {
            assert_eq!(text(&site, mount), "one");
        }
        world.file("word", "two");
        assert_eq!(text(&site, "/prefork"), "one", "nobody watches what another process reads");
        let reloaded = world.hob(&["serve", "reload", "/prefork"]).go();
        assert!(reloaded.text().contains("/prefork  reloaded in "), "{reloaded:?}");
        reloaded.succeeded();
        assert_eq!((text(&site, "/prefork"), text(&site, "/fork")), ("two".into(), "one".into()));
        let all = world.hob(&["serve", "reload", "--json"]).go();
        let told: Value = serde_json::from_str(&all.text()).unwrap();
        all.succeeded();
        let outcomes = told["mounts"].as_array().unwrap().iter();
        let outcomes: Vec<_> = outcomes
            .map(|told| (told["mount"].as_str().unwrap(), told["outcome"].as_str().unwrap()))
            .collect();
        let mut want = mounts.map(|mount| match mount {
            "/never" | "/spawn" => (mount, "nothing-loaded"),
            _ => (mount, "reloaded"),
        });
        want.sort_unstable();
        assert_eq!(outcomes, want);
        assert_eq!(text(&site, "/fork"), "two");
        // Removed by hand, so that no file that is watched has changed.
        std::fs::remove_file(world.path("work/word")).unwrap();
        world.file(kind.file, kind.broken[1]);
        let failed = world.hob(&["serve", "reload", "/fork"]).go();
        assert_eq!(failed.end, End::Code(1));
        assert!(failed.text().contains("the old code goes on: "), "{failed:?}");
        assert_eq!(text(&site, "/fork"), "two");
        let unknown = world.hob(&["serve", "reload", "/nothing"]).go();
        assert!(unknown.complaint().contains("/nothing: no such app is mounted"), "{unknown:?}");
        site.stop();
    }
}

#[test]
fn a_hangup_reloads_all() {
    let world = World::new();
    let site = site(&world, WSGI, &[("/", "")]);
    world.file("word", "one");
    world.file(
        "wsgi.py",
        "import subprocess\nWORD = subprocess.check_output(['cat', 'word'])\n\
         def application(environ, start):\n    start('200 OK', [])\n    return [WORD]\n",
    );
    assert_eq!(text(&site, "/"), "one");
    world.file("word", "two");
    site.signal(Signal::HUP);
    wait::until("the new word", || (text(&site, "/") == "two").then_some(()));
    site.stop();
}

/// 64 clients, half of them on one connection each, while the code changes and workers recycle.
#[test]
fn many_clients_lose_nothing_while_code_changes_and_workers_recycle() {
    for kind in KINDS {
        let world = World::new();
        let recycle = "recycle = { requests = 20 }\nworkers = 4";
        let fork = "isolation = \"fork\"\nstale = \"serve\"";
        let site = site(&world, kind, &[("/fork", fork), ("/prefork", recycle)]);
        world.file(kind.file, (kind.works)("1"));
        for mount in ["/fork", "/prefork"] {
            wait::until("the first code", || (text(&site, mount) == "1").then_some(()));
        }
        // The newest version that is on the disk; an answer of `wait` may not be older than what was
        // there when it was asked.
        let written = AtomicU32::new(1);
        let over = AtomicBool::new(false);
        let answered = AtomicU32::new(0);
        let ask = |number: usize| {
            let (path, waits) = [("/fork", false), ("/prefork", true)][number % 2];
            let mut kept = (number % 4 < 2).then(|| site.keep());
            let mut newest = 0;
            while !over.load(Ordering::Relaxed) {
                let least = written.load(Ordering::SeqCst);
                let answer = match &mut kept {
                    Some(kept) => kept.get(path),
                    None => site.get(path),
                };
                assert_eq!(
                    answer.status,
                    200,
                    "{path}: {answer:?} {} {:?}",
                    site.err(),
                    pool(&world, path)
                );
                let version: u32 = answer.text().parse().unwrap();
                assert!(
                    !waits || version >= least,
                    "{version} of {least} at {path} {:?}",
                    pool(&world, path)
                );
                assert!(waits || version >= newest, "{version} after {newest} at {path}");
                newest = newest.max(version);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..64).map(|number| scope.spawn(move || ask(number))).collect();
            for version in 2..8 {
                let before = answered.load(Ordering::Relaxed);
                if version % 3 == 0 {
                    world.file(kind.file, kind.broken[version % kind.broken.len()]);
                    wait::until("more answers", || {
                        (answered.load(Ordering::Relaxed) > before + 100).then_some(())
                    });
                }
                world.file(kind.file, (kind.works)(&version.to_string()));
                written.store(u32::try_from(version).unwrap(), Ordering::SeqCst);
                let before = answered.load(Ordering::Relaxed);
                wait::until("more answers", || {
                    let more = answered.load(Ordering::Relaxed) > before + 300;
                    (more || clients.iter().any(|client| client.is_finished())).then_some(())
                });
            }
            over.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
        site.stop();
    }
}
