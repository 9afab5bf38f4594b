//! Each guide of the documents, run from top to bottom as a reader would: its blocks of `sh` by one
//! shell, in an empty folder, with hob on PATH. A block of `text` behind one is what that prints; `…`
//! stands for anything. A call of which a page says that it is warm is made until it is, before the
//! page goes on, and its receipt is read.

use std::path::{Path, PathBuf};

use hob_tests::{World, is_warm};
use serde_json::Value;

/// A port that a reader's site has, and a test's must not.
const PORT: &str = "8000";
/// The page of several machines: `hosts/recipe` follows it.
const ELSEWHERE: &str = "hosts.md";
const MARK: &str = "==== the end of a block ====";

/// A call of which a page says that it is warm, from the second one on.
struct Warm {
    page: &'static str,
    /// The line of the page that makes it.
    line: &'static str,
    /// The program, as its receipts name it: by its name, or by its file's.
    program: &'static str,
}

const WARM: &[Warm] = &[
    Warm { page: "tutorial.md", line: "hob run report.py tuesday", program: "report.py" },
    Warm { page: "tutorial.md", line: "python-report friday", program: "python-report" },
    Warm { page: "tutorial.md", line: "hob ask greeter '{\"name\": \"you\"}'", program: "greeter" },
    Warm { page: "editors.md", line: "printf 'd\\nc\\n' | tidy-lines", program: "tidy-lines" },
    Warm {
        page: "agents.md",
        line: "echo '{\"tool_input\": {\"command\": \"ls\"}}' | hook && echo allowed",
        program: "guard.py",
    },
    Warm {
        page: "git-hooks.md",
        line: "git commit --quiet --allow-empty --message again",
        program: "pre-commit",
    },
    Warm {
        page: "ruby.md",
        line: "rspec --format failures sum_spec.rb && echo passed",
        program: "rspec",
    },
    Warm { page: "functions.md", line: "hob ask words 'one two three'", program: "words" },
    Warm { page: "clojure.md", line: "hob run report.clj words: < words", program: "clojure.main" },
];
/// Receipts of one page: more than its calls make, those until one is warm too.
const RECEIPTS_MAX: usize = 2000;

/// Calls again until the newest receipt of a program is a warm one of its own, and says nothing; a
/// copy of a layer has none of the program's own state. Calls that end before have begun what is
/// waited for, so that they are the mark.
const UNTIL_WARM: &str = r#"
until_warm() {
  for _ in $(seq 300); do
    if hob log -n 50 --json | grep -e "\"name\":\"$1\"" -e "/$1\",\"runtime\"" | tail -n 1 | grep '"warm":true' |
      grep -qv 'bare-interpreter\|installed-packages'; then return; fi
    eval "$2" > /dev/null 2>&1 || true
    sleep 0.1
  done
  echo "never warm: $2"
  hob log -n 9
  exit 1
}
"#;

/// A block of `sh`.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The line of the page at which it begins.
    pub(crate) line: usize,
    pub(crate) commands: String,
    /// The block of `text` behind it.
    pub(crate) prints: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides")
}

/// What Maven has fetched of the libraries; `.ci/deps` puts it there.
fn jars() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/deps")
}

/// The blocks of a page that are run, each with what it prints.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside: Option<(String, Block)> = None;
    for (at, line) in page.lines().enumerate() {
        if let Some((kind, mut block)) = inside.take() {
            if line != "```" {
                block.commands.push_str(line);
                block.commands.push('\n');
                inside = Some((kind, block));
                continue;
            }
            match kind.as_str() {
                "sh" => blocks.push(block),
                "text" => {
                    let before = blocks.last_mut().expect("what prints stands behind a command");
                    before.prints = Some(block.commands);
                }
                _ => {}
            }
        } else if let Some(kind) = line.strip_prefix("```") {
            let block = Block { line: at + 1, ..Block::default() };
            inside = Some((kind.to_owned(), block));
        }
    }
    assert!(inside.is_none(), "a block has no end");
    blocks
}

/// Whether a text is what a page says, in which `…` stands for anything.
pub(crate) fn is_as_said(text: &str, said: &str) -> bool {
    let mut parts = said.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.trim_end().strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A port that was free a moment ago.
fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port().to_string()
}

/// A machine that is too busy for a comparison says so; that page is followed again.
const NO_VERDICT: &str = "no verdict:";
const TRIES: usize = 8;

fn follow(name: &str) {
    for _ in 1..TRIES {
        if followed(name, |text| !text.contains(NO_VERDICT)) {
            return;
        }
    }
    assert!(followed(name, |_| true));
}

/// Whether what a page's commands printed is to be judged; if it is, it is as the page says.
fn followed(name: &str, is_judged: impl Fn(&str) -> bool) -> bool {
    let page = std::fs::read_to_string(folder().join(name)).expect("the page");
    let blocks = blocks(&page);
    assert!(blocks.len() > 2, "{name}: nothing is run");
    let world = World::new();
    std::fs::create_dir(world.path("bin")).unwrap();
    std::os::unix::fs::symlink(world.binary(), world.path("bin/hob")).unwrap();
    // As on a machine that has the language's jars, and no launcher.
    std::fs::create_dir_all(world.path("home/.m2")).unwrap();
    std::os::unix::fs::symlink(jars(), world.path("home/.m2/repository")).unwrap();
    let port = free_port();
    let as_here = |text: &str| text.replace(PORT, &port);
    let mut script = format!("set -eu\n{UNTIL_WARM}");
    let mut wanted: Vec<&Warm> = WARM.iter().filter(|warm| warm.page == name).collect();
    for block in &blocks {
        script.push_str(&as_here(&block.commands));
        script.push_str(&format!("echo '{MARK}'\n"));
        wanted.retain(|warm| {
            let is_here = block.commands.lines().any(|line| line == warm.line);
            if is_here {
                let quoted = warm.line.replace('\'', "'\\''");
                script.push_str(&format!("until_warm {} '{quoted}'\n", warm.program));
            }
            !is_here
        });
    }
    let lines: Vec<&str> = wanted.iter().map(|warm| warm.line).collect();
    assert_eq!(lines, [""; 0], "{name} has no such lines");
    script.push_str("hob stop\n");
    let path = format!("{}:{}", world.path("bin").display(), "/usr/local/bin:/usr/bin:/bin");
    let run = world.run(&["bash", "-c", &format!("exec 2>&1\n{script}")]).env("PATH", path);
    let outcome = run.go_long();
    let text = outcome.text();
    if !is_judged(&text) {
        return false;
    }
    let printed: Vec<&str> = text.split(&format!("{MARK}\n")).collect();
    for (block, printed) in blocks.iter().zip(&printed) {
        let Some(said) = &block.prints else { continue };
        let said = as_here(said);
        assert!(
            is_as_said(printed, &said),
            "{name}:{}: printed\n{printed}\nbut the page says\n{said}",
            block.line
        );
    }
    let last = blocks.get(printed.len() - 1).map_or(0, |block| block.line);
    assert!(printed.len() > blocks.len(), "{name}:{last} failed:\n{text}");
    outcome.succeeded();
    were_warm(name, &world);
    true
}

/// What a page says is warm was: by its receipts.
fn were_warm(name: &str, world: &World) {
    let records = world.records(RECEIPTS_MAX);
    for warm in WARM.iter().filter(|warm| warm.page == name) {
        let is_own = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            name.rsplit('/').next() == Some(warm.program)
        };
        let mut own = records
            .iter()
            .filter(|one| ["name", "target"].iter().any(|part| is_own(&one["program"][part])));
        assert!(own.any(is_warm), "{name}: no call of {} was warm: {records:?}", warm.program);
    }
}

macro_rules! guides {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                follow($page);
            }
        )*
    };
}

guides! {
    tutorial: "tutorial.md",
    editors: "editors.md",
    agents: "agents.md",
    git_hooks: "git-hooks.md",
    continuous_integration: "ci.md",
    operations: "operations.md",
    several_apps: "several-apps.md",
    repositories: "repositories.md",
    functions: "functions.md",
    faster_or_slower: "faster-or-slower.md",
    slow_calls: "slow-calls.md",
    clojure_scripts: "clojure.md",
    ruby: "ruby.md",
}

#[test]
fn each_page_is_followed() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the guides")
        .map(|entry| entry.expect("a page").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    let mut followed: Vec<&str> = [PAGES, &[ELSEWHERE]].concat();
    followed.sort_unstable();
    assert_eq!(names, followed);
}

#[test]
fn what_a_page_says_is_compared() {
    assert!(is_as_said("warm in 3 ms\n", "warm in … ms\n"));
    assert!(is_as_said("a\nb\n", "a\nb"));
    assert!(is_as_said("a x b y c", "a … b … c"));
    for (text, said) in [("warm", "cold"), ("a b", "a"), ("a b c", "a … d"), ("b a", "a …")] {
        assert!(!is_as_said(text, said), "{text} is not {said}");
    }
}
