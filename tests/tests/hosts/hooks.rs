//! `hob hooks run --hosts`: the targets of a run, spread over the hosts that offer its directory.
//!
//! All worlds see one project, as hosts that were set up alike do; a hook tells them apart by `HOME`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hob_tests::run::kill;
use hob_tests::{End, Outcome, Run, World, wait};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{Server, connected, host};

/// Notes for whom it ran, and where. Where its host is to hold, it waits until it may go.
const NOTES: &str = r#"#!/bin/sh
here=${0%/deploy.d/*}
echo "$HOST $HOME $WORD$CALLERS" >> "$here/ran"
echo "out $HOST"
if [ -e "$HOME/holds" ]; then
    echo $$ > "$HOME/held"
    until [ -e "$here/go" ]; do sleep 0.01; done
fi
case $HOST in *bad) echo "no $HOST" >&2; exit 3;; esac
"#;

/// The project that all hosts have.
struct Project(TempDir);

impl Project {
    fn new(more: &str) -> Project {
        let folder = tempfile::Builder::new().prefix("hob-hooks-").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deploy.d")).unwrap();
        let hook = folder.path().join("deploy.d/10-note");
        let alone = hob_tests::alone();
        std::fs::write(&hook, NOTES).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let programs = format!(
            "[program.deploy]\nhooks = \"deploy.d\"\noffered = true\nversion = \"1.0.0\"\n\
             set = [\"HOST\", \"WO*\"]\n{more}\n"
        );
        std::fs::write(folder.path().join("hob.toml"), programs).unwrap();
        drop(alone);
        Project(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A host that offers it.
    fn host(&self, name: &str, server: &Server) -> World {
        let world = host(name, &server.url(), "");
        world.hob(&["trust"]).args(&[self.0.path()]).go().succeeded();
        world.hob(&["start"]).go().succeeded();
        connected(&world, 1);
        world
    }

    /// Who it ran for, and at which host's home, as often as it did.
    fn ran(&self) -> Vec<(String, String, String)> {
        let text = std::fs::read_to_string(self.path("ran")).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            let mut next = || words.next().unwrap_or_default();
            (next(), next(), next())
        };
        text.lines().map(line).collect()
    }

    /// That each target ran once at most; how many did.
    fn ran_once(&self) -> usize {
        let ran = self.ran();
        let targets: BTreeSet<&String> = ran.iter().map(|(target, ..)| target).collect();
        assert_eq!(targets.len(), ran.len(), "one ran twice: {ran:?}");
        ran.len()
    }

    fn run(&self, world: &World, words: &[&str]) -> Run {
        let run = world.hob(&["hooks", "run"]).args(&[self.path("deploy.d")]);
        run.args(&["--for-each", "t.csv", "--hosts", "web-*"]).args(words)
    }
}

/// One that asks, with so many targets.
fn desk(server: &Server, count: usize) -> World {
    let world = host("desk", &server.url(), "");
    world.hob(&["start"]).go().succeeded();
    connected(&world, 0);
    targets(&world, count);
    world
}

fn targets(world: &World, count: usize) {
    let lines: String = (0..count).map(|number| format!("t{number}\n")).collect();
    world.file("t.csv", format!("HOST\n{lines}"));
}

fn home(world: &World) -> String {
    world.path("home").to_str().unwrap().to_owned()
}

/// Its hooks wait from now on.
fn hold(world: &World) {
    std::fs::write(world.path("home/holds"), "").unwrap();
}

/// The process of a hook that waits.
fn until_held(world: &World) -> u32 {
    wait::until("a hook waits", || {
        let text = std::fs::read_to_string(world.path("home/held")).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    })
}

fn report(world: &World) -> Value {
    serde_json::from_slice(&std::fs::read(world.path("work/r.json")).unwrap()).unwrap()
}

/// The targets of a report by their hosts.
fn by_host(report: &Value) -> BTreeMap<String, Vec<&Value>> {
    let mut all = BTreeMap::<String, Vec<&Value>>::new();
    for target in report["targets"].as_array().unwrap() {
        let host = target["set"]["host"].as_str().unwrap_or_default();
        all.entry(host.to_owned()).or_default().push(target);
    }
    all
}

fn has_no_resume_file(world: &World) -> bool {
    let entries = std::fs::read_dir(world.path("state/hob/hooks")).unwrap();
    entries.map(|entry| entry.unwrap().path()).all(|path| path.extension().unwrap() != "resume")
}

fn failed_with(outcome: &Outcome, word: &str) {
    assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
    assert!(outcome.complaint().contains(word), "{word}: {outcome:?}");
}

#[test]
fn targets_are_spread_over_the_hosts_that_offer_the_directory_with_one_report() {
    let server = Server::start("");
    let project = Project::new("workers = 3");
    let webs = ["web-1", "web-2"].map(|name| project.host(name, &server));
    let other = project.host("db-1", &server);
    let desk = desk(&server, 60);
    desk.file("t.csv", std::fs::read_to_string(desk.path("work/t.csv")).unwrap() + "x-bad\n");
    let words = ["--report", "r.json", "--set", "WORD=said"];
    let outcome = project.run(&desk, &words).env("CALLERS", "c").go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert!(outcome.complaint().contains("web-1 (3), web-2 (3)\n"), "{outcome:?}");
    assert!(outcome.text().starts_with("61 targets · 60 ok · 1 error"), "{outcome:?}");
    assert!(outcome.text().contains("\n    no x-bad\n"), "{outcome:?}");
    assert_eq!(project.ran_once(), 61);
    let report = report(&desk);
    let by_host = by_host(&report);
    assert_eq!(by_host.keys().collect::<Vec<_>>(), ["web-1", "web-2"], "each has some");
    for (_, home, rest) in project.ran() {
        assert!(home != self::home(&other) && home != self::home(&desk), "{home}");
        assert_eq!(rest, "said", "the asker's variables go along, its environment does not");
    }
    for (name, web) in ["web-1", "web-2"].into_iter().zip(&webs) {
        let ran = project.ran().into_iter().filter(|(_, home, _)| *home == self::home(web));
        let ran: BTreeSet<String> = ran.map(|(target, ..)| target).collect();
        let said: BTreeSet<String> = by_host[name]
            .iter()
            .map(|target| target["set"]["target"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(said, ran, "the report says where each ran");
    }
    // What failed runs again, and nothing else.
    desk.file("deploy", "");
    std::fs::write(project.path("deploy.d/10-note"), NOTES.replace("exit 3", "exit 0")).unwrap();
    let again = project.run(&desk, &["--resume=failed"]).go();
    again.succeeded();
    assert_eq!(project.ran().last().unwrap().0, "x-bad");
    assert_eq!(project.ran().len(), 62);
    assert!(has_no_resume_file(&desk));
}

#[test]
fn what_a_killed_host_had_is_lost_once_and_the_rest_runs_at_the_others() {
    let server = Server::start("");
    let project = Project::new("workers = 2");
    let webs = ["web-1", "web-2"].map(|name| project.host(name, &server));
    let desk = desk(&server, 50);
    hold(&webs[1]);
    // What is lost is not tried again either: a host may have run it.
    let words = ["--report", "r.json", "--lost-after", "3s", "--retries", "2"];
    let run = project.run(&desk, &words).start();
    let hook = until_held(&webs[1]);
    let daemon = webs[1].daemon();
    kill(daemon, Signal::KILL);
    assert!(wait::ended(daemon, wait::LONG));
    assert!(wait::ended(hook, wait::LONG), "its hooks end with it");
    let outcome = run.finish();
    assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
    let report = report(&desk);
    let by_host = by_host(&report);
    let lost = &by_host["web-2"];
    assert!((1..=2).contains(&lost.len()), "no more than it had: {lost:?}");
    for target in lost {
        assert_eq!(target["set"]["outcome"], "system-error", "{target}");
        let message = target["set"]["message"].as_str().unwrap();
        assert!(message.contains("web-2 may have run it"), "{message}");
    }
    let well = by_host["web-1"].iter().filter(|target| target["set"]["outcome"] == "ok");
    assert_eq!(well.count() + lost.len(), 50, "the others ran at the other host");
    project.ran_once();
    // What is lost has ended: it is not run again unasked.
    let before = project.ran().len();
    let rest = project.run(&desk, &["--resume"]).go();
    assert_eq!((rest.end, project.ran().len()), (End::Code(5), before), "{rest:?}");
    std::fs::write(project.path("go"), "").unwrap();
    webs[1].hob(&["start"]).go().succeeded();
    connected(&webs[1], 1);
    let again = project.run(&desk, &["--resume=failed"]).go();
    again.succeeded();
    assert!(again.text().starts_with("50 targets · 50 ok"), "{again:?}");
}

#[test]
fn a_host_that_stops_in_the_middle_loses_nothing() {
    let server = Server::start("");
    let project = Project::new("workers = 2\nclaimed = true");
    let webs = ["web-1", "web-2"].map(|name| project.host(name, &server));
    let desk = desk(&server, 40);
    hold(&webs[1]);
    let run = project.run(&desk, &["--report", "r.json"]).start();
    until_held(&webs[1]);
    let stop = webs[1].hob(&["stop"]).start();
    wait::until("it offers nothing any more", || {
        let seen = desk.hob(&["hosts"]).go();
        (!seen.text().contains("web-2")).then_some(())
    });
    std::fs::write(project.path("go"), "").unwrap();
    let outcome = run.finish();
    outcome.succeeded();
    stop.finish().succeeded();
    assert!(outcome.text().starts_with("40 targets · 40 ok"), "{outcome:?}");
    assert_eq!(project.ran_once(), 40);
    assert!(by_host(&report(&desk)).contains_key("web-2"), "what it had begun was answered");
}

#[test]
fn a_host_without_room_is_passed_over_and_two_runs_share_it() {
    let server = Server::start("");
    let project = Project::new("workers = 1");
    let _webs = ["web-1", "web-2"].map(|name| project.host(name, &server));
    let desks = ["left", "right"].map(|name| {
        let world = host(name, &server.url(), "");
        world.hob(&["start"]).go().succeeded();
        connected(&world, 0);
        targets(&world, 60);
        world
    });
    let runs = desks.each_ref().map(|desk| project.run(desk, &[]).start());
    for run in runs {
        let outcome = run.finish();
        outcome.succeeded();
        assert!(outcome.text().starts_with("60 targets · 60 ok"), "{outcome:?}");
    }
    let mut count = BTreeMap::<String, usize>::new();
    for (target, ..) in project.ran() {
        *count.entry(target).or_default() += 1;
    }
    assert!(count.len() == 60 && count.values().all(|times| *times == 2), "{count:?}");
}

#[test]
fn an_interrupt_waits_for_what_hosts_have_and_a_second_one_does_not() {
    let server = Server::start("");
    let project = Project::new("workers = 1");
    let web = project.host("web-1", &server);
    let desk = desk(&server, 3);
    hold(&web);
    let run = project.run(&desk, &[]).start();
    until_held(&web);
    run.signal(Signal::INT);
    std::fs::write(project.path("go"), "").unwrap();
    let outcome = run.finish();
    assert_eq!(outcome.end, End::Signal(2), "{outcome:?}");
    assert!(outcome.complaint().contains("2 targets have not ended"), "{outcome:?}");
    assert_eq!(project.ran_once(), 1);
    std::fs::remove_file(project.path("go")).unwrap();
    std::fs::remove_file(web.path("home/held")).unwrap();
    let run = project.run(&desk, &["--resume"]).start();
    until_held(&web);
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    let outcome = run.finish();
    assert!(matches!(outcome.end, End::Signal(_)), "{outcome:?}");
    std::fs::write(project.path("go"), "").unwrap();
    let rest = project.run(&desk, &["--resume"]).go();
    rest.succeeded();
    assert!(rest.complaint().contains("1 had begun when that run ended"), "{rest:?}");
    let ran: BTreeSet<String> = project.ran().into_iter().map(|(target, ..)| target).collect();
    assert_eq!(ran.len(), 3);
}

#[test]
fn who_cannot_be_asked_is_named() {
    let server = Server::start("");
    let project = Project::new("");
    let desk = desk(&server, 2);
    failed_with(&project.run(&desk, &[]).go(), "no host offers ");
    let _db = project.host("db-1", &server);
    failed_with(&project.run(&desk, &[]).go(), "no host of this name offers ");
    failed_with(&project.run(&desk, &[]).go(), "; db-1 do");
    let alone = World::new();
    targets(&alone, 2);
    failed_with(&project.run(&alone, &[]).go(), "config.toml names no server");
    let tagged = project.run(&desk, &["--tag"]).go();
    assert_eq!(tagged.end, End::Code(2), "{tagged:?}");
    assert_eq!(project.ran(), []);
}

#[test]
fn a_program_may_be_asked_at_one_host_and_one_set_may_be_asked_by_hand() {
    ["", "claimed = true"].into_iter().for_each(one_host);
}

fn one_host(more: &str) {
    let server = Server::start("");
    let project = Project::new(more);
    let webs = ["web-1", "web-2"].map(|name| project.host(name, &server));
    let desk = desk(&server, 0);
    for (number, (name, web)) in ["web-1", "web-2"].into_iter().zip(&webs).enumerate() {
        let text = format!("{{\"target\":\"x\",\"set\":{{\"HOST\":\"n{number}\"}}}}");
        let outcome = desk.hob(&["ask", &format!("deploy@{name}"), &text]).go();
        outcome.succeeded();
        let record: Value = serde_json::from_slice(&outcome.out).unwrap();
        assert_eq!(record["schema"], "hob.hooks/1");
        assert_eq!(record["set"]["outcome"], "ok");
        assert_eq!(record["set"]["hooks"][0]["stdout"]["head"], format!("out n{number}\n"));
        assert_eq!(project.ran()[number].1, home(web));
    }
    // Other variables may have a shell or a loader run what an asker likes.
    for name in ["BASH_ENV", "LD_PRELOAD", "HOSTS", ""] {
        let text = format!("{{\"target\":\"x\",\"set\":{{\"{name}\":\"/tmp/x\"}}}}");
        let refused = desk.hob(&["ask", "deploy@web-1", &text]).go();
        assert_eq!(refused.end, End::Code(1), "{refused:?}");
        assert!(refused.complaint().contains("no asker may set it"), "{refused:?}");
    }
    assert_eq!(project.ran().len(), 2);
    // A host may name itself, and no other is asked then.
    let own = webs[0].hob(&["ask", "deploy@web-1", "{}"]).go();
    own.succeeded();
    assert_eq!(project.ran()[2].1, home(&webs[0]));
    let none = desk.hob(&["ask", "deploy@web-3", "{}"]).go();
    assert_eq!(none.end, End::Code(125), "{none:?}");
    let wrong = desk.hob(&["ask", "deploy@web-1", "{\"targte\":1}"]).go();
    assert_eq!(wrong.end, End::Code(1), "{wrong:?}");
    assert!(wrong.complaint().contains("no set of hooks"), "{wrong:?}");
    std::fs::remove_dir_all(project.path("deploy.d")).unwrap();
    let gone = desk.hob(&["ask", "deploy@web-1", "{}"]).go();
    assert!(gone.complaint().contains("deploy.d: there is no such directory"), "{gone:?}");
}

#[test]
fn what_failed_at_a_host_is_tried_again() {
    let server = Server::start("");
    let project = Project::new("workers = 2");
    // The second try of `t-late` is well, at whichever host; no variable says which it is.
    let late =
        "case $HOST in t-late) [ $(grep -c '^t-late ' \"$here/ran\") -ge 2 ] || exit 3;; *bad)";
    let hook = NOTES.replace("case $HOST in *bad)", late);
    assert_ne!(hook, NOTES);
    std::fs::write(project.path("deploy.d/10-note"), hook).unwrap();
    let _webs = ["web-1", "web-2"].map(|name| project.host(name, &server));
    let desk = desk(&server, 0);
    desk.file("t.csv", "HOST\nt-late\nx-bad\na\n");
    let words = ["--retries", "2", "--report", "r.json"];
    let outcome = project.run(&desk, &words).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let text = outcome.text();
    assert!(text.starts_with("3 targets · 2 ok · 1 error · 2 needed more than one try"), "{text}");
    let ran = project.ran();
    let of = |name: &str| ran.iter().filter(|(target, ..)| target == name).count();
    assert_eq!((of("t-late"), of("x-bad"), of("a"), ran.len()), (2, 3, 1, 6), "{ran:?}");
    let tries: BTreeMap<String, Value> = report(&desk)["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| {
            (target["set"]["target"].as_str().unwrap().to_owned(), target["tries"].clone())
        })
        .collect();
    assert_eq!((&tries["t-late"], &tries["x-bad"], &tries["a"]), (&2.into(), &3.into(), &1.into()));
}
