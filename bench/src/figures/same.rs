//! Commands that no one here wrote, cold and through hob: is the result the same?
//!
//! Some seventy packages bring some two hundred commands in Python, and a system some twenty in
//! Ruby. Each is asked for its help, its version,
//! and nothing; and some forty do what they are for, in a small project that is made anew before
//! each run. Two cold runs say what is steady; then each call through hob, from the one that is
//! learned from to the third warm one, must give the same standard output and error, the same
//! exit, and leave the same files. A time that a command prints of itself (`0.003s`) is no result:
//! it is compared as `#s`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::private_in;
use crate::Setting;
use crate::hob::Hob;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

/// A command that has not ended by then is a server, or waits for somebody.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Calls through hob of one invocation: until so many were warm, or so many were made.
const WARM_CALLS: usize = 3;
const CALLS_MAX: usize = 8;
/// Cold runs after a difference, to see whether it is the command's own.
const CHANCES: usize = 6;

/// What the project consists of.
const PROJECT: [(&str, &str); 15] = [
    (
        "pkg/__init__.py",
        "import  os,sys\ndef f( x:int )->int:\n    return x+1\nclass  A : pass\n\
         def g(l=[]): return l.append( 1 )\n",
    ),
    ("pkg/m.py", "from pkg import f\nimport json, re\ndef h(y: str) -> int:\n    return f(y)\n"),
    (
        "tests/test_m.py",
        "import unittest\nfrom pkg import f\nclass T(unittest.TestCase):\n    \
         def test_f(self): self.assertEqual(f(1), 2)\n",
    ),
    ("d.csv", "a,b\n1,2\n3,4\n"),
    ("y.yml", "---\na: 1\nb:   2\n"),
    ("mkdocs.yml", "site_name: s\n"),
    ("docs/index.md", "# T\n\nhello *x*\n"),
    ("docs/conf.py", "project = 'p'\nextensions = []\n"),
    ("docs/index.rst", "Title\n=====\n\ntext\n"),
    (
        "n.ipynb",
        r##"{"cells":[{"cell_type":"markdown","metadata":{},"source":["# hi"],"id":"a"}],
"metadata":{},"nbformat":4,"nbformat_minor":5}"##,
    ),
    (".flake8", "[flake8]\nmax-line-length=50\n"),
    (
        "Rakefile",
        "desc 'says'\ntask(:default) { puts ENV['COLUMNS']; sh 'echo done' }\n\
         task(:fails) { raise 'no' }\n",
    ),
    ("a_spec.rb", "RSpec.describe 'it' do\n  it('adds') { expect(1 + 1).to eq 2 }\nend\n"),
    ("t.erb", "<% 3.times do |n| %>line <%= n %>\n<% end %>"),
    ("README.rdoc", "= Title\n\ntext\n"),
];

/// What is done in it.
const WORK: [&[&str]; 43] = [
    &["black", "pkg"],
    &["black", "--diff", "pkg"],
    &["isort", "pkg"],
    &["autopep8", "-i", "-r", "pkg"],
    &["yapf", "-i", "-r", "pkg"],
    &["flake8", "pkg"],
    &["pylint", "pkg"],
    &["mypy", "pkg"],
    &["pycodestyle", "pkg"],
    &["pyflakes", "pkg"],
    &["pydocstyle", "pkg"],
    &["vulture", "pkg"],
    &["radon", "cc", "pkg"],
    &["bandit", "-q", "-r", "pkg"],
    &["codespell", "pkg"],
    &["yamllint", "y.yml"],
    &["csvcut", "-c", "a", "d.csv"],
    &["csvsql", "--query", "select a from d", "d.csv"],
    &["csvstat", "d.csv"],
    &["csvjson", "d.csv"],
    &["sqlite-utils", "memory", "d.csv", "select * from d"],
    &["mkdocs", "build", "-q"],
    &["sphinx-build", "-q", "-b", "html", "docs", "out"],
    &["rst2html.py", "docs/index.rst"],
    &["markdown_py", "docs/index.md"],
    &["pygmentize", "pkg/m.py"],
    &["jupyter-nbconvert", "--to", "markdown", "n.ipynb", "--stdout"],
    &["coverage", "run", "-m", "unittest", "discover", "tests"],
    &["pytest", "-q", "tests"],
    &["pytest", "-q", "-p", "no:cacheprovider", "pkg"],
    &["django-admin", "startproject", "other"],
    &["scrapy", "startproject", "other"],
    &["sqlfluff", "parse", "--help"],
    &["pip", "list", "--disable-pip-version-check"],
    &["pipdeptree", "-p", "black"],
    &["cookiecutter", "nothing-here"],
    &["pybabel", "extract", "pkg"],
    &["sqlformat", "y.yml"],
    &["twine", "check", "d.csv"],
    &["invoke", "--list"],
    &["http", "--offline", "POST", "example.com", "a=b"],
    &["yt-dlp", "--list-extractors"],
    &["ipython", "-c", "print(1)"],
];

/// What is done in it by commands in Ruby.
const WORK_IN_RUBY: [&[&str]; 10] = [
    &["rake"],
    &["rake", "-T"],
    &["rake", "fails"],
    &["rspec", "--no-color", "a_spec.rb"],
    &["rubocop", "--cache", "false", "a_spec.rb"],
    &["ruby-parse", "a_spec.rb"],
    &["erb", "t.erb"],
    &["rdoc", "-q", "-o", "out", "README.rdoc"],
    &["rougify", "a_spec.rb"],
    &["gem", "list", "--local"],
];

/// Where a system has them. Those of version managers are the same commands.
const SYSTEM: &str = "/usr/bin";

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let venv = venv::make(&setting.root, "venv-same", "requirements-same.txt")?;
    let hob = private_in(setting, &venv)?;
    let (mut commands, mut work) = (Vec::new(), Vec::new());
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    if setting.is_part("python") {
        commands.extend(self::commands(&venv.join("bin"), b"")?);
        work.extend(WORK.iter().map(|words| owned(words)));
    }
    if setting.is_part("ruby") {
        let system = Path::new(SYSTEM);
        let path = |name: &str| system.join(name).display().to_string();
        let found = self::commands(system, b"ruby")?;
        let is_there = |words: &&&[&str]| found.iter().any(|name| name == words[0]);
        work.extend(WORK_IN_RUBY.iter().filter(is_there).map(|words| {
            let mut words = owned(words);
            words[0] = path(&words[0]);
            words
        }));
        commands.extend(found.iter().map(|name| path(name)));
    }
    if setting.is_quick() {
        // Every tenth, so that all kinds are among them.
        commands = commands.into_iter().step_by(10).collect();
        work = work.into_iter().step_by(5).collect();
    }
    let asked = commands.iter().flat_map(|name| {
        let of = |option: &[&str]| [&[name.as_str()], option].concat().join("\0");
        [of(&["--help"]), of(&["--version"]), of(&[])].map(|words| (words, false))
    });
    let done = work.iter().map(|words| (words.join("\0"), true));
    let all: Vec<(String, bool)> = done.chain(asked).collect();
    let mut tally = Tally::default();
    let mut progress = Progress::new("the same, cold and through hob");
    for (index, (words, project)) in all.iter().enumerate() {
        progress.at(index, all.len());
        let words: Vec<&str> = words.split('\0').collect();
        compare(&hob, &venv, &words, *project, &mut tally)?;
    }
    progress.done();
    let mut figure = Figure::new("same", "other people's commands: the same cold and through hob?");
    figure.fact("commands", count(commands.len()));
    figure.fact("invocations compared", count(tally.compared));
    figure.fact("left out: not ended after half a minute", count(tally.endless));
    figure.fact("in part left out: two cold runs differ", count(tally.unsteady));
    figure.fact("calls through hob", count(tally.calls));
    figure.fact("of these warm", count(tally.warm));
    figure.fact("invocations that became warm", count(tally.warmed));
    for line in &tally.different {
        crate::say(line);
    }
    figure.target(
        "invocations with another result",
        Want::AtMost(0.0),
        count(tally.different.len()),
    );
    hob.stop()?;
    Ok(figure)
}

#[derive(Debug, Default)]
struct Tally {
    compared: usize,
    endless: usize,
    unsteady: usize,
    calls: usize,
    warm: usize,
    warmed: usize,
    /// A line for each invocation that gave something else.
    different: Vec<String>,
}

/// What a run leaves, part by part: streams, exit, files.
type Left = BTreeMap<String, Vec<u8>>;

/// Compares one invocation.
fn compare(hob: &Hob, venv: &Path, words: &[&str], project: bool, tally: &mut Tally) -> Result<()> {
    let bin = venv.join("bin");
    let cold = |folder: &Path| {
        let mut command = Command::new(bin.join(words[0]));
        command.args(&words[1..]);
        run(hob, command, folder)
    };
    let folder = hob.folder("project")?;
    let fresh = || prepare(&folder, project);
    // The first fills caches outside of the project: those of bytecode, and the commands' own.
    let mut runs = Vec::new();
    for _ in 0..3 {
        fresh()?;
        let Some(one) = cold(&folder)? else {
            tally.endless += 1;
            return Ok(());
        };
        runs.push(one);
    }
    let (Some(want), Some(again)) = (runs.pop(), runs.pop()) else { return Ok(()) };
    tally.compared += 1;
    let mut names = want.keys().chain(again.keys());
    tally.unsteady += usize::from(names.any(|part| want.get(part) != again.get(part)));
    let mut loose = Vec::new();
    let mut warm = 0;
    for _ in 0..CALLS_MAX {
        fresh()?;
        let mut command = Command::new(hob.binary());
        command.arg("run").arg(bin.join(words[0])).args(&words[1..]);
        let got = run(hob, command, &folder)?;
        let receipt = hob.receipts(1)?.pop().unwrap_or_default();
        let reason = receipt["reason"].as_str().unwrap_or("no receipt");
        tally.calls += 1;
        if receipt["warm"] == true {
            tally.warm += 1;
            warm += 1;
        }
        let Some(part) = first_other(&want, &again, got.as_ref(), &loose) else {
            if warm == WARM_CALLS {
                tally.warmed += 1;
                break;
            }
            continue;
        };
        // Two cold runs may have agreed by chance.
        if chance(&part, &want, &fresh, &|| cold(&folder))? {
            tally.unsteady += usize::from(loose.is_empty());
            loose.push(part);
            continue;
        }
        let got = got.as_ref().and_then(|got| got.get(&part));
        let difference = first_difference(want.get(&part), got);
        tally
            .different
            .push(format!("different ({reason}): {}: {part}: {difference}", words.join(" ")));
        break;
    }
    Ok(())
}

/// The first part in which a call differs from cold runs that agree, and which is not `loose`.
fn first_other(want: &Left, again: &Left, got: Option<&Left>, loose: &[String]) -> Option<String> {
    let none = Left::new();
    let got = got.unwrap_or(&none);
    let mut names = want.keys().chain(again.keys()).chain(got.keys());
    let differs = |part: &&String| {
        let steady = want.get(*part) == again.get(*part);
        steady && got.get(*part) != want.get(*part) && !loose.contains(part)
    };
    names.find(differs).cloned()
}

/// Whether a cold run may give something else, too.
fn chance(
    part: &str,
    want: &Left,
    fresh: &dyn Fn() -> Result<()>,
    cold: &dyn Fn() -> Result<Option<Left>>,
) -> Result<bool> {
    for _ in 0..CHANCES {
        fresh()?;
        if cold()?.is_none_or(|run| run.get(part) != want.get(part)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Empties the folder, and makes the project in it if there is to be one.
fn prepare(folder: &Path, project: bool) -> Result<()> {
    std::fs::remove_dir_all(folder)?;
    std::fs::create_dir(folder)?;
    if project {
        for (name, text) in PROJECT {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            std::fs::write(path, text)?;
        }
    }
    Ok(())
}

/// The first lines that are not the same.
fn first_difference(want: Option<&Vec<u8>>, got: Option<&Vec<u8>>) -> String {
    let text = |bytes: Option<&Vec<u8>>| {
        bytes.map_or("(nothing)".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let (want, got) = (text(want), text(got));
    let mut got = got.lines();
    for want in want.lines() {
        match got.next() {
            Some(same) if same == want => {}
            other => return format!("wanted {want:?}, got {other:?}"),
        }
    }
    format!("more: {:?}", got.next())
}

/// Runs a command in a folder; `None` if it did not end in time.
fn run(hob: &Hob, mut command: Command, folder: &Path) -> Result<Option<Left>> {
    use std::os::unix::process::CommandExt;
    hob.place(&mut command);
    command.env("COLUMNS", "80").env("PYTHONHASHSEED", "0").env("SOURCE_DATE_EPOCH", "1700000000");
    command.current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = (reader(out), reader(err));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > TIME_MAX {
            let group = rustix::process::Pid::from_child(&child);
            let killed = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            killed.context("cannot end what takes too long")?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let Some(status) = status else { return Ok(None) };
    let mut parts = Left::new();
    parts.insert("exit".to_owned(), format!("{status}").into_bytes());
    for (name, stream) in [("stdout", out), ("stderr", err)] {
        let bytes = stream.join().map_err(|_| anyhow::anyhow!("a reader panicked"))?;
        parts.insert(name.to_owned(), without_times(&bytes));
    }
    files(folder, folder, &mut parts)?;
    Ok(Some(parts))
}

/// A stream with `#` for each number of seconds that has a fraction, such as unittest's and pytest's
/// `0.003s`: no two runs need take as long, and mostly they do, so that a chance would be a difference.
fn without_times(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(stream.len());
    let mut rest = stream;
    while let Some(&first) = rest.first() {
        let digits =
            |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(0);
        if whole == 0 {
            out.push(first);
            rest = &rest[1..];
            continue;
        }
        let mut end = whole;
        if rest.get(whole) == Some(&b'.') && digits(whole + 1) > 0 {
            end += 1 + digits(whole + 1);
        }
        let is_over = rest.get(end + 1).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        if end > whole && rest.get(end) == Some(&b's') && is_over {
            out.push(b'#');
        } else {
            out.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out
}

fn reader(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What came until an error is what came.
            drop(stream.read_to_end(&mut bytes));
        }
        bytes
    })
}

/// The files below a folder, but for bytecode, which tells when it was made.
fn files(root: &Path, folder: &Path, parts: &mut Left) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() || path.extension().is_some_and(|end| end == "pyc") {
            continue;
        }
        if path.is_dir() {
            files(root, &path, parts)?;
        } else {
            let name = path.strip_prefix(root)?.display().to_string();
            parts.insert(format!("file {name}"), std::fs::read(&path)?);
        }
    }
    Ok(())
}

/// The commands in a directory whose first line names an interpreter with `part` in its name.
fn commands(bin: &Path, part: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(bin)? {
        let path: PathBuf = entry?.path();
        let mut head = [0; 64];
        let read = match std::fs::File::open(&path) {
            Ok(mut file) if path.is_file() && !path.is_symlink() => file.read(&mut head)?,
            Ok(_) | Err(_) => 0,
        };
        let line = head[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_named = part.is_empty() || line.windows(part.len()).any(|word| word == part);
        let is_script = line.starts_with(b"#!") && is_named;
        if let (true, Some(name)) = (is_script, path.file_name().and_then(|name| name.to_str())) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::without_times;

    #[test]
    fn a_printed_time_is_no_difference_and_all_else_is_one() {
        let masked = |text: &str| String::from_utf8(without_times(text.as_bytes())).unwrap();
        assert_eq!(masked("Ran 1 test in 0.003s\n"), "Ran 1 test in #s\n");
        assert_eq!(masked("1 passed in 12.50s"), "1 passed in #s");
        assert_eq!(masked("[0.1s] and (3.25s), then 0.5s."), "[#s] and (#s), then #s.");
        for same in ["3s", "1.5", "1.5sec", "v1.2s3", "1.s", ".5x", "1.2.3", "10.0.1.2", "a 7", ""]
        {
            assert_eq!(masked(same), same);
        }
        assert_eq!(without_times(b"\xff1.5s\xfe"), b"\xff#s\xfe");
    }
}
