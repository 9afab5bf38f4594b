//! Reports of `hob check` as their readers see them: a parser of JSON, a schema of JUnit's XML, a
//! browser, and Markdown.

use std::path::Path;

use hob_tests::{End, World};
use serde_json::Value;

use super::{Server, USERS};
use crate::browser::{browse, pixels};

/// Some that pass, one that is wrong, one that is late, one that is not run, and names and answers
/// that no report may obey.
const FILE: &str = r#"
[profile.support]
basic = { user = "support", password = "env:PASSWORD" }
[profile.alice]
login = "login"
[check.login]
post = "/login"
form = { password = "wrong" }
status = 204
[check.fine]
get = "/"
profiles = ["support"]
[check."<script>alert(1)</script> | `x`"]
get = "/script?token=env"
query = { token = "env:PASSWORD" }
headers = { X-Token = "env:PASSWORD" }
profiles = ["support"]
[check.sent]
post = "/echo"
body = "env:PASSWORD"
contains = "nothing of it"
profiles = ["support"]
[check.late]
get = "/"
within = "1us"
"#;

fn text(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path("work").join(name)).unwrap()
}

#[test]
fn every_report_tells_the_same_and_no_secret() {
    let world = World::new();
    let server = Server::start(&world);
    let names = ["r.html", "r.xml", "r.json", "r.md"];
    let words: Vec<&str> = names.iter().flat_map(|name| ["--report", name]).collect();
    let outcome = server.run(FILE, &words);
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert!(outcome.text().ends_with("report: r.html, r.xml, r.json, r.md\n"), "{outcome:?}");
    for name in names {
        let text = text(&world, name);
        for secret in ["hunter2", "c3VwcG9ydDpodW50ZXIy"] {
            assert!(!text.contains(secret), "{name}: {text}");
        }
        for part in ["status 500, expected 200 to 299", "does not contain", "$PASSWORD"] {
            let plain = text.replace('\\', "");
            assert!(plain.contains(part), "{part} is missing in {name}: {text}");
        }
        assert!(!text.contains(['\u{1b}', '\0']), "{name}");
        assert!(name == "r.json" || !text.contains("<script"), "{name}: {text}");
    }

    let report: Value = serde_json::from_str(&text(&world, "r.json")).unwrap();
    assert_eq!((&report["schema"], &report["exit"]), (&"hob.check-report/1".into(), &1.into()));
    assert_eq!(report["files"][0]["cells"].as_array().unwrap().len(), 6, "{report}");
    let answer = &report["files"][0]["cells"][2]["answer"];
    assert_eq!(answer, "<script>alert(1)</script>\u{0}\u{1b}", "{report}");

    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks/junit.xsd");
    let words = ["xmllint", "--noout", "--schema", schema.to_str().unwrap(), "r.xml"];
    let checked = world.run(&words).go();
    assert_eq!(checked.end, End::Code(0), "{checked:?}");
    let xml = text(&world, "r.xml");
    for part in [
        "name=\"support\" timestamp=",
        "tests=\"4\" failures=\"3\" errors=\"0\"",
        // The login that failed, and what was not run after it: a reader of JUnit sees no green.
        "tests=\"2\" failures=\"1\" errors=\"1\"",
        "name=\"&lt;script&gt;alert(1)&lt;/script&gt; | `x`\"",
        "<failure type=\"failed\" message=\"status 500, expected 200 to 299\">",
        "<failure type=\"slow\"",
        "<error type=\"not-run\" message=\"`login` failed\">",
        "&lt;script&gt;alert(1)&lt;/script&gt;\\x00\\x1b",
    ] {
        assert!(xml.contains(part), "{part} is missing: {xml}");
    }

    let markdown = text(&world, "r.md");
    assert!(markdown.contains(": 3 failed · 1 too slow · 1 not run · 1 of 6 passed"), "{markdown}");
    let row = "| &lt;script&gt;alert\\(1\\)&lt;/script&gt; \\| \\`x\\` | **500 ";
    assert!(markdown.contains(row), "{markdown}");
    assert!(markdown.contains("```sh\ncurl -sS -i -u \"support:$PASSWORD\""), "{markdown}");
}

#[test]
fn the_page_of_checks_is_shown_by_a_browser_light_dark_and_narrow() {
    let world = World::new();
    let server = Server::start(&world);
    let outcome = server.run(FILE, &["--report", "r.html"]);
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let page = text(&world, "r.html");
    for foreign in ["https:", "src=", "url(", "@import", "<script", "href="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let url = format!("file://{}", world.path("work/r.html").display());
    let dom = browse(&world, &["--dump-dom", &url]).text();
    assert!(dom.contains(&format!("<title>Checks: {}/</title>", server.base)), "{dom}");
    assert!(dom.contains("<h3><span class=\"word error\">failed</span> &lt;script&gt;"), "{dom}");
    assert!(dom.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\x00\\x1b</pre>"), "{dom}");
    let light = ["ffffff", "2e9e5b", "d92d20", "e0a100"];
    let found = pixels(&world, "r.html", &[], &light);
    assert!(found.iter().all(|count| *count > 40), "{light:?}: {found:?}");
    let dark = ["12151b", "3fbf75", "ff5a4e", "f2b824"];
    let found = pixels(&world, "r.html", &["--blink-settings=preferredColorScheme=0"], &dark);
    assert!(found.iter().all(|count| *count > 40), "{dark:?}: {found:?}");
    // On a narrow screen nothing is wider than it: the page inside a frame of 420 pixels says so.
    let frame = page
        .replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'")
        + "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script>";
    world.file("inner.html", frame);
    world.file(
        "outer.html",
        "<iframe id=f src=inner.html width=420 height=900></iframe>\
         <script>f.onload = () => { document.title = f.contentDocument.title }</script>",
    );
    let url = format!("file://{}", world.path("work/outer.html").display());
    let words =
        ["--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", &url];
    let dom = browse(&world, &words).text();
    assert!(dom.contains("<title>420 of 420</title>"), "{dom}");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_is_asked() {
    let world = World::new();
    let server = Server::start(&world);
    for (report, why) in [
        ("r.txt", "a report's name ends in .html, .xml (JUnit), .json or .md"),
        ("none/r.md", "No such file or directory"),
        (".", "a report's name ends in"),
    ] {
        let outcome = server.run(USERS, &["--report", report]);
        assert_eq!(outcome.end, End::Code(2), "{report}: {outcome:?}");
        assert!(outcome.complaint().contains(why), "{report}: {outcome:?}");
    }
    assert!(server.asked().is_empty());
    let outcome =
        server.run(USERS, &["--only", "nothing", "--report", "r.xml", "--report", "r.md"]);
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert!(text(&world, "r.xml").contains("<error type=\"not-run\""), "no sample is no success");
    assert!(text(&world, "r.md").contains("nothing was checked"));
}
