//! Reports as their readers see them: a parser of JSON, a schema of JUnit's XML, and a browser.

use std::path::{Path, PathBuf};

use hob_tests::{End, Run, World};
use serde_json::Value;

use crate::browser::{browse, pixels};

/// Says what no report may obey or lose.
const SAYS: &str = "#!/bin/sh\nprintf 'a\\033[31m<script>document.title=\"x\"</script>\\377\\r\\n]]>&'\n\
    case $HOST in *bad*) echo 'what & why' >&2; exit 3;; *warn) exit 40;; *stop) exit 100;; esac\n";
/// Four of them, with names that are to be shown and not obeyed.
const TARGETS: &str = "HOST\nplain\n\"<b>bad</b>\n\"\"x\"\"\"\n\"x\x07warn\"\nstop\n";

fn world() -> World {
    let world = World::new();
    world.executable("hooks.d/10 say", SAYS);
    world.executable("hooks.d/20-gone", "#!/no/such/interpreter\n");
    world.executable("hooks.d/30-last", "#!/bin/sh\n");
    world.file("t.csv", TARGETS);
    world
}

fn reporting(world: &World, reports: &[&str]) -> Run {
    let mut run = world.hob(&["hooks", "run", "hooks.d", "--for-each", "t.csv", "--jobs", "2"]);
    for report in reports {
        run = run.args(&["--report", report]);
    }
    run
}

fn work(world: &World, name: &str) -> PathBuf {
    world.path("work").join(name)
}

#[test]
fn the_json_report_has_every_byte() {
    let world = world();
    let outcome = reporting(&world, &["r.json"]).go();
    assert_eq!(outcome.end, End::Code(5), "an interpreter is missing: {outcome:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(work(&world, "r.json")).unwrap()).unwrap();
    assert_eq!(report["schema"], "hob.hooks-report/1");
    assert_eq!(report["outcomes"]["system-error"], 2, "{report}");
    let targets = report["targets"].as_array().unwrap();
    let plain = targets.iter().find(|target| target["line"] == 2).unwrap();
    let said = &plain["set"]["hooks"][0]["stdout"]["head"];
    assert_eq!(said["base64"], "YRtbMzFtPHNjcmlwdD5kb2N1bWVudC50aXRsZT0ieCI8L3NjcmlwdD7/DQpdXT4m");
    assert_eq!(plain["set"]["not_run"], serde_json::json!(["30-last"]));
    let mut names: Vec<&str> =
        targets.iter().map(|t| t["set"]["target"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["<b>bad</b>\n\"x\"", "plain", "stop", "x\u{7}warn"]);
}

#[test]
fn the_xml_report_is_valid_whatever_hooks_write() {
    let world = world();
    let outcome = reporting(&world, &["r.xml"]).go();
    assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks/junit.xsd");
    let words = ["xmllint", "--noout", "--schema", schema.to_str().unwrap(), "r.xml"];
    let checked = world.run(&words).go();
    assert_eq!(checked.end, End::Code(0), "{checked:?}");
    let text = std::fs::read_to_string(work(&world, "r.xml")).unwrap();
    for part in [
        "name=\"&lt;b&gt;bad&lt;/b&gt;\\n&quot;x&quot;\"",
        "name=\"x\\x07warn\"",
        "<failure type=\"error\" message=\"exit code 3\">what &amp; why\n</failure>",
        "a\\x1b[31m&lt;script&gt;",
        "<error type=\"system-error\"",
        "<skipped/>",
        "\\xff\\r\n]]&gt;&amp;",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    // A hook that interrupts its set has done what it was written for.
    assert!(!text.contains("type=\"interrupt\""), "{text}");
    // A suite is a hook, and has a case for each target.
    let suites: Vec<&str> = text.split("<testsuite ").skip(1).collect();
    let names: Vec<&str> = suites
        .iter()
        .filter_map(|suite| suite.split("name=\"").nth(1)?.split('"').next())
        .collect();
    assert!(names.contains(&"30-last") && names.is_sorted(), "{names:?}");
    for suite in &suites {
        let count = suite.matches("<testcase ").count();
        assert!(suite.contains(&format!("tests=\"{count}\"")) && count > 0, "{suite}");
    }
}

#[test]
fn the_page_is_shown_by_a_browser_as_it_is_meant() {
    let world = world();
    std::fs::remove_file(work(&world, "hooks.d/20-gone")).unwrap();
    let outcome = reporting(&world, &["r.html"]).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let page = std::fs::read_to_string(work(&world, "r.html")).unwrap();
    for foreign in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("<script").count(), 1, "its own search");
    let url = format!("file://{}", work(&world, "r.html").display());
    let shown = browse(&world, &["--dump-dom", &url]);
    let dom = shown.text();
    assert!(dom.contains("<title>Hooks: hooks.d</title>"), "no hook has named it: {dom}");
    assert!(dom.contains("<div id=\"timeline\""), "{dom}");
    for (outcome, least) in [("ok", 3), ("error", 1), ("warning", 1), ("interrupt", 1)] {
        let bars = dom.matches(&format!("<rect class=\"{outcome}\"")).count();
        assert!(bars >= least, "{bars} of {outcome}: {dom}");
    }
    assert!(dom.contains("&lt;b&gt;bad&lt;/b&gt;") && dom.contains("what &amp; why"), "{dom}");
    // Light: the ground, and each outcome's colour. Dark: likewise.
    let light = ["ffffff", "2e9e5b", "d92d20", "e0a100", "2f7de1", "5b7fa6"];
    let found = pixels(&world, "r.html", &[], &light);
    assert!(found.iter().all(|count| *count > 40), "{light:?}: {found:?}");
    let dark = ["12151b", "3fbf75", "ff5a4e", "f2b824", "5c9df5", "6f98c6"];
    let found = pixels(&world, "r.html", &["--blink-settings=preferredColorScheme=0"], &dark);
    assert!(found.iter().all(|count| *count > 40), "{dark:?}: {found:?}");
}

#[test]
fn one_failure_among_hundreds_is_seen_in_the_picture() {
    let world = World::new();
    world.executable("hooks.d/10", "#!/bin/sh\n[ $HOST != host-177 ]\n");
    let rows: String = (0..300).map(|n| format!("host-{n}\n")).collect();
    world.file("t.csv", format!("HOST\n{rows}"));
    let outcome = reporting(&world, &["r.html"]).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let page = std::fs::metadata(work(&world, "r.html")).unwrap().len();
    assert!(page < 1_000_000, "{page} bytes");
    for (width, least) in [("1200", 5_000), ("420", 2_000)] {
        let window = format!("--window-size={width},900");
        let found = pixels(&world, "r.html", &[&window], &["d92d20", "2e9e5b"]);
        assert!(found[0] > 10 && found[1] > least, "{width}: {found:?}");
    }
}

#[test]
fn failures_of_one_cause_stand_together_and_a_search_finds_their_targets() {
    let world = World::new();
    let hook = "#!/bin/sh\ncase $HOST in *-bad) exit 3;; \
                *-full) echo \"disk of $HOST is full\" >&2; exit 4;; esac\n";
    world.executable("hooks.d/10-check", hook);
    world.file("t.csv", "HOST\na\nb-bad\nc-full\nd-full\ne-full\nf\n");
    assert_eq!(reporting(&world, &["r.html"]).go().end, End::Code(1));
    let page = std::fs::read_to_string(work(&world, "r.html")).unwrap();
    let causes: Vec<&str> = page.split("<details class=\"cause\">").skip(1).collect();
    assert_eq!(causes.len(), 2, "{page}");
    for part in ["<b>3 targets</b>", "10-check, exit code 4", "disk of … is full", "d-full"] {
        assert!(causes[0].contains(part), "{part}: {page}");
    }
    assert!(causes[1].contains("<b>1 target</b>") && causes[1].contains("b-bad"), "{page}");
    let shown = |find: &str| {
        let url = format!("file://{}{find}", work(&world, "r.html").display());
        browse(&world, &["--dump-dom", &url]).text()
    };
    let all = shown("");
    assert!(all.contains("<p class=\"search\"><input") && !all.contains("hidden=\"\""), "{all}");
    // Words of a name and of an error, in any case: one target has both.
    let one = shown("#find=D-%20FULL");
    assert!(one.contains(">1 of 6 targets shown here</output>"), "{one}");
    for line in 2..=7 {
        for part in ["tr", "div"] {
            let hidden = if line == 5 { "" } else { " hidden=\"\"" };
            let begin = format!("<{part} data-line=\"{line}\"{hidden}>");
            assert!(one.contains(&begin), "{begin}: {one}");
        }
    }
    let open = "<details class=\"cause\" data-opened=\"\" open=\"\">";
    let hidden = "<details class=\"cause\" hidden=\"\">";
    assert_eq!((one.matches(open).count(), one.matches(hidden).count()), (1, 1), "{one}");
}

#[test]
fn thousands_of_causes_and_failures_make_no_page_that_nobody_can_read() {
    let world = World::new();
    let hook = "#!/bin/sh\n[ \"$WHY\" != head ] || head -c 20000 /dev/zero | tr '\\0' x\n\
                echo \"it is $WHY\" >&2\nexit 4\n";
    world.executable("hooks.d/10-check", hook);
    let own: String = (0..130).map(|n| format!("own-{n},{n}\n")).collect();
    let same: String = (0..300).map(|n| format!("same-{n},head\n")).collect();
    world.file("t.csv", format!("HOST,WHY\n{own}{same}"));
    assert_eq!(reporting(&world, &["r.html"]).go().end, End::Code(1));
    let page = std::fs::read_to_string(work(&world, "r.html")).unwrap();
    let causes: Vec<&str> = page.split("<details class=\"cause\">").skip(1).collect();
    assert_eq!(causes.len(), 101, "{}", causes.len());
    // The most frequent one has its place though it came last, and each of its targets is there.
    let (same, others) = (causes[0], causes[100].split("</section>").next().unwrap());
    for (cause, head, targets) in
        [(same, "<b>300 targets</b>", 300), (others, "<b>31 targets</b> by other causes", 31)]
    {
        assert!(cause.contains(head), "{head}: {cause}");
        assert_eq!(cause.matches("data-line=").count(), targets, "{cause}");
        assert_eq!(cause.matches("<details data-line=").count(), 20, "{cause}");
    }
    assert!(same.contains("it is head") && same.contains("10-check, stdout, its end"), "{same}");
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}

#[test]
fn a_report_appears_whole_or_not_at_all_and_nothing_is_lost() {
    let world = world();
    let (work_dir, hob) = (work(&world, ""), world.binary().display().to_string());
    std::fs::create_dir(work(&world, "small")).unwrap();
    world.executable("hooks.d/10 say", "#!/bin/sh\nhead -c 40000 /dev/zero\n");
    world.file("small.sh", format!(
        "set -e\ncd {}\nmount -t tmpfs -o size=64k tmpfs small\necho mounted >&2\necho old > small/r.json\n\
         {hob} hooks run hooks.d --for-each t.csv --report small/r.json || echo \"code $?\"\n\
         ls -A small; cat small/r.json\n\
         mount -o remount,size=10M small\n\
         {hob} hooks run hooks.d --for-each t.csv --report small/r.json --resume || echo \"code $?\"\n\
         ls -A small; cp small/r.json after.json\n",
        work_dir.display()
    ));
    let outcome = world.run(&["unshare", "--mount", "bash", "small.sh"]).go();
    if !outcome.complaint().contains("mounted") {
        return hob_tests::skipped(&format!(
            "no mount of one's own here: {}",
            outcome.complaint().trim()
        ));
    }
    let (text, said) = (outcome.text(), outcome.complaint());
    assert!(said.contains("--report small/r.json: No space left on device"), "{said}");
    assert!(said.contains("nothing is lost: the same command with --resume writes it"), "{said}");
    assert!(
        text.contains("code 5\nr.json\nold\n"),
        "the old one is there, and nothing else: {outcome:?}"
    );
    assert!(text.ends_with("code 5\nr.json\n"), "{outcome:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(work(&world, "after.json")).unwrap()).unwrap();
    assert_eq!(report["targets"].as_array().unwrap().len(), 4);
    assert_eq!(report["hooks_run"], 8, "none ran twice: {}", report["hooks"]);
}

#[test]
fn a_full_disk_under_the_resume_file_begins_nothing_more_and_says_so() {
    let world = world();
    let (state, hob) = (world.path("state"), world.binary().display().to_string());
    world.executable(
        "hooks.d/10 say",
        "#!/bin/sh\necho \"$HOST\" >> ran\nhead -c 40000 /dev/zero\n",
    );
    let rows: String = (0..40).map(|n| format!("h-{n}\n")).collect();
    world.file("t.csv", format!("HOST\n{rows}"));
    std::fs::remove_file(work(&world, "hooks.d/20-gone")).unwrap();
    let command = format!("{hob} hooks run hooks.d --for-each t.csv --jobs 1");
    world.file(
        "small.sh",
        format!(
            "set -e\ncd {}\nmount -t tmpfs -o size=512k,mode=700 tmpfs {}\necho mounted >&2\n\
         {command} || echo \"code $?\"\nwc -l < ran\nmount -o remount,size=50M {}\n\
         {command} --resume\nsort ran | uniq | wc -l\nwc -l < ran\n",
            work(&world, "").display(),
            state.display(),
            state.display()
        ),
    );
    let outcome = world.run(&["unshare", "--mount", "bash", "small.sh"]).go();
    if !outcome.complaint().contains("mounted") {
        return hob_tests::skipped(&format!(
            "no mount of one's own here: {}",
            outcome.complaint().trim()
        ));
    }
    let (text, said) = (outcome.text(), outcome.complaint());
    assert!(
        said.contains("No space left on device (os error 28); no further target was begun"),
        "{said}"
    );
    assert!(text.contains("code 5\n"), "{outcome:?}");
    let lines: Vec<&str> = text.lines().collect();
    let [distinct, all] = lines[lines.len() - 2..] else { panic!("{text}") };
    // Only the one whose end could not be written runs twice, and it is named.
    assert_eq!(distinct.trim(), "40", "{outcome:?}");
    assert!(["40", "41"].contains(&all.trim()), "{outcome:?}");
    let named = said.contains("not in the resume file, so that --resume would run it again: h-");
    assert_eq!(named, all.trim() == "41", "{outcome:?}");
}
