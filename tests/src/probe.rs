//! Probes: small scripts that show something of their world, and the first line that says how
//! each is run. The format is written down beside them.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::run::{Outcome, Run};
use crate::world::World;

/// A script and the words of its first line.
#[derive(Debug)]
pub struct Probe {
    /// The file's name without `.py`.
    pub name: String,
    file: String,
    words: Vec<(String, String)>,
}

/// Where the probes are in the repository.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtimes/python/tests/probes")
}

/// Every probe, in order.
///
/// # Panics
/// When they cannot be read.
#[must_use]
pub fn all() -> Vec<Probe> {
    let mut probes = Vec::new();
    for entry in std::fs::read_dir(folder()).expect("the probes' folder can be read") {
        let file = entry.expect("an entry can be read").file_name().to_string_lossy().into_owned();
        if let Some(name) = file.strip_suffix(".py").filter(|name| *name != "neighbour") {
            let text = std::fs::read(folder().join(&file)).expect("a probe can be read");
            let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let first = String::from_utf8_lossy(first).into_owned();
            let words = first.strip_prefix("# probe:").map(split).unwrap_or_default();
            let pair = |word: &String| {
                let (name, value) = word.split_once('=').unwrap_or((word, ""));
                (name.to_owned(), value.to_owned())
            };
            let words = words.iter().map(pair).collect();
            probes.push(Probe { name: name.to_owned(), file, words });
        }
    }
    probes.sort_by(|one, other| one.name.cmp(&other.name));
    probes
}

impl Probe {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.words.iter().filter(move |(word, _)| word == name).map(|(_, value)| value.as_str())
    }

    fn one<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Whether this version of Python, such as `(3, 11)`, runs it.
    #[must_use]
    pub fn runs_on(&self, version: (u32, u32)) -> bool {
        let oldest = self.one("python").and_then(|text| text.split_once('.'));
        let oldest =
            oldest.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        oldest.is_none_or(|oldest: (u32, u32)| version >= oldest)
    }

    /// How it is run through hob; the probes lie in `folder`.
    #[must_use]
    pub fn through_hob(&self, world: &World, folder: &Path) -> Run {
        // A script is named as such; options belong to an interpreter.
        let interpreter: &[&str] = if self.one("options").is_some() { &["python3"] } else { &[] };
        self.world(world.hob(&["run"]).args(interpreter).args(&self.words()).within(folder))
    }

    /// How the interpreter itself runs it.
    #[must_use]
    pub fn cold(&self, world: &World, folder: &Path) -> Run {
        self.world(world.run(&["python3"]).args(&self.words()).within(folder))
    }

    /// The options, the script and its arguments.
    fn words(&self) -> Vec<String> {
        let mut words = split(self.one("options").unwrap_or_default());
        match self.one("module") {
            Some(module) => words.extend(["-m".into(), module.into()]),
            None => words.push(self.file.clone()),
        }
        words.extend(split(self.one("args").unwrap_or_default()));
        words
    }

    /// The caller's world of a run.
    fn world(&self, run: Run) -> Run {
        let mut run = run.stdin(unescape(self.one("stdin").unwrap_or_default()));
        if let Some(path) = self.one("stdout") {
            run = run.stdout(path);
        }
        for entry in self.all("env") {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            run = run.env(name, value);
        }
        if let Some(umask) = self.one("umask") {
            run = run.after(&format!("umask {umask}"));
        }
        for limit in self.all("limit") {
            let (name, pair) = limit.split_once(':').unwrap_or((limit, ""));
            run = run.under(&["prlimit".to_owned(), format!("--{}={pair}", name.to_lowercase())]);
        }
        run = self.priority(run);
        for (word, option) in [("ignored", "--ignore-signal"), ("blocked", "--block-signal")] {
            if let Some(names) = self.one(word) {
                run = run.under(&["env".to_owned(), format!("{option}={names}")]);
            }
        }
        run
    }

    /// The caller's nice value and its like.
    fn priority(&self, mut run: Run) -> Run {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (word, file) in [("oom", "oom_score_adj"), ("slack", "timerslack_ns")] {
            if let Some(value) = self.one(word) {
                run = run.after(&format!("echo {value} >/proc/$$/{file}"));
            }
        }
        if let Some(value) = self.one("io") {
            let value: u32 = value.parse().expect("an I/O priority is a number");
            let (class, level) = (format!("-c{}", value >> 13), format!("-n{}", value & 0x1fff));
            run = run.under(&words(&["ionice", &class, &level]));
        }
        if let Some(policy) = self.one("policy") {
            assert_eq!(policy, "3", "the harness knows SCHED_BATCH only");
            run = run.under(&words(&["chrt", "--batch", "0"]));
        }
        match self.one("nice") {
            Some(value) => run.under(&words(&["nice", "-n", value])),
            None => run,
        }
    }

    /// Runs it to its end, and sends its signal when it is ready for that.
    ///
    /// # Panics
    /// When its signal has no such name.
    #[must_use]
    pub fn go(&self, run: &Run) -> Outcome {
        let running = run.start();
        if let Some(name) = self.one("signal") {
            running.expect("ready\n");
            running.until_asleep();
            running.signal(match name {
                "INT" => Signal::INT,
                "TERM" => Signal::TERM,
                "HUP" => Signal::HUP,
                other => panic!("{other}: no such signal in the harness"),
            });
        }
        running.finish()
    }
}

/// Splits a line into words as a shell does.
#[must_use]
pub fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(open), _) if c == open => quote = None,
            (Some('"'), '\\') => match chars.next() {
                Some(next @ ('"' | '\\')) => word.get_or_insert_default().push(next),
                next => word.get_or_insert_default().extend(['\\'].into_iter().chain(next)),
            },
            (None | Some(_), _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Backslash escapes as in Python.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                out.extend(code);
            }
            other => out.extend(other),
        }
    }
    out.into_bytes()
}

/// Copies the probes to where nothing else runs them, for their bytecode caches are written
/// beside them.
///
/// # Panics
/// When they cannot be copied.
pub fn copy_to(target: &Path) {
    copy(&folder(), target);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("the probes' folder can be read").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_name() == "__pycache__" {
            continue;
        }
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            let _alone = crate::alone();
            std::fs::copy(entry.path(), target).expect("a probe can be copied");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_split_as_a_shell_does() {
        let check = |line: &str, want: &[&str]| assert_eq!(split(line), want, "{line}");
        check(r#" args="a 'b c' ''" env=A=1 "#, &["args=a 'b c' ''", "env=A=1"]);
        check(r"a 'b c' --flag '' é", &["a", "b c", "--flag", "", "é"]);
        check(r#"stdin="one\ntwo""#, &[r"stdin=one\ntwo"]);
        assert_eq!(unescape(r"\u00e9\n"), "é\n".as_bytes());
    }
}
