//! The failures of the page, by what failed: the hook, how it ended, and the first line of its error.
//! The most frequent cause comes first, with its targets folded in.
//!
//! Targets come one after the other, and a cause's head tells how many it has: so what is to be shown
//! of them is put by in a file without a name (`spool`). Invariant: neither memory nor the page grows
//! with the number of failures.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

use hob_core::hooks::{Bytes, HookRecord, SetRecord};

use super::spool::{Part, Spool};
use crate::show::page::markup::text;
use crate::show::units::{Micro, duration};
use crate::verbs::hooks::progress::thousands;
use crate::verbs::hooks::resume::Journal;
use crate::verbs::hooks::tally::{Ended, failed, how};

/// So many causes, the most frequent, have a place of their own; what else there is shares one.
const CAUSES_MAX: usize = 100;
/// So many are counted to know which these are.
const COUNTED_MAX: usize = 50_000;
/// So many targets are shown with their output, of each cause and of all: a browser has to lay them
/// all out. One of each cause is shown whatever there is.
const SHOWN_OF_EACH_MAX: u64 = 20;
const SHOWN_MAX: u64 = 200;
/// So many more are named.
const NAMED_MAX: u64 = 2_000;
/// How much of the end of a hook's output is shown.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// A longer line is cut.
const LINE_CHARS_MAX: usize = 200;
/// What stands for a target's name in the lines of a cause.
const ITS_NAME: char = '…';
/// A Python traceback begins so, and ends with what it is about.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// What several targets have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    word: &'static str,
    why: String,
    /// The first line of the error.
    line: String,
}

#[derive(Debug)]
struct Cause {
    /// `None`: all the causes that have no place of their own.
    key: Option<Key>,
    targets: u64,
    shown: Part,
    shown_targets: u64,
    named: Part,
    named_targets: u64,
}

/// All of them.
#[derive(Debug)]
struct Causes {
    frequent: HashSet<u64>,
    all: Vec<Cause>,
    places: HashMap<Key, usize>,
    spool: Spool,
    shown: u64,
    named: u64,
}

/// Writes them.
pub(super) fn write(out: &mut impl Write, journal: &Journal) -> io::Result<()> {
    let (all, places, spool) = (Vec::new(), HashMap::new(), Spool::new()?);
    let frequent = frequent(journal)?;
    let mut causes = Causes { frequent, all, places, spool, shown: 0, named: 0 };
    journal.each(|_, ended| if failed(ended.set.outcome) { causes.add(ended) } else { Ok(()) })?;
    let Causes { mut all, spool, .. } = causes;
    // Those that share a place come last, however many they are.
    all.sort_by_key(|cause| (cause.key.is_none(), std::cmp::Reverse(cause.targets)));
    out.write_all(b"<h2>Failures</h2>\n<section id=\"failures\">\n")?;
    all.iter().try_for_each(|cause| cause.write(out, &spool))?;
    out.write_all(b"</section>\n")
}

/// The most frequent causes, by their digests.
fn frequent(journal: &Journal) -> io::Result<HashSet<u64>> {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    journal.each(|_, ended| {
        if failed(ended.set.outcome) {
            let digest = digest(&key(&ended.set));
            if counts.len() < COUNTED_MAX || counts.contains_key(&digest) {
                *counts.entry(digest).or_default() += 1;
            }
        }
        Ok::<(), io::Error>(())
    })?;
    let mut counts: Vec<(u64, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(digest, count)| (std::cmp::Reverse(*count), *digest));
    Ok(counts.into_iter().take(CAUSES_MAX).map(|(digest, _)| digest).collect())
}

fn digest(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Causes {
    fn add(&mut self, ended: &Ended) -> io::Result<()> {
        let key = key(&ended.set);
        let next = self.all.len();
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.frequent.contains(&digest(&key)) => {
                self.places.insert(key.clone(), next);
                self.all.push(Cause::new(Some(key)));
                next
            }
            None => self.all.iter().position(|cause| cause.key.is_none()).unwrap_or_else(|| {
                self.all.push(Cause::new(None));
                next
            }),
        };
        let cause = &mut self.all[place];
        cause.targets += 1;
        let has_room = self.shown < SHOWN_MAX && cause.shown_targets < SHOWN_OF_EACH_MAX;
        if cause.shown_targets == 0 || has_room {
            (self.shown, cause.shown_targets) = (self.shown + 1, cause.shown_targets + 1);
            return self.spool.add(&mut cause.shown, &shown(ended));
        }
        if self.named < NAMED_MAX {
            (self.named, cause.named_targets) = (self.named + 1, cause.named_targets + 1);
            let (line, name) = (ended.line, name(&ended.set));
            let item = format!("<li data-line=\"{line}\">{name}</li>\n");
            return self.spool.add(&mut cause.named, &item);
        }
        Ok(())
    }
}

impl Cause {
    fn new(key: Option<Key>) -> Cause {
        let (shown, named) = (Part::default(), Part::default());
        Cause { key, targets: 0, shown, shown_targets: 0, named, named_targets: 0 }
    }

    fn write(&self, out: &mut impl Write, spool: &Spool) -> io::Result<()> {
        let count = thousands(self.targets);
        let s = if self.targets == 1 { "" } else { "s" };
        out.write_all(b"<details class=\"cause\"><summary>")?;
        match &self.key {
            Some(Key { word, why, line }) => {
                let (why, line) = (text(why.as_bytes()), text(line.as_bytes()));
                write!(
                    out,
                    "<span class=\"word {word}\">{word}</span> <b>{count} target{s}</b> \
                     <span class=\"soft\">{why}</span>"
                )?;
                if !line.is_empty() {
                    write!(out, "<span class=\"cause-line\">{line}</span>")?;
                }
            }
            None => write!(out, "<b>{count} target{s}</b> by other causes")?,
        }
        out.write_all(b"</summary>\n")?;
        spool.copy(&self.shown, out)?;
        if self.named_targets > 0 {
            out.write_all(b"<p class=\"soft\">without their output:</p>\n<ul class=\"names\">\n")?;
            spool.copy(&self.named, out)?;
            out.write_all(b"</ul>\n")?;
        }
        let more = self.targets - self.shown_targets - self.named_targets;
        if more > 0 {
            let more = thousands(more);
            writeln!(out, "<p class=\"soft\">and {more} more; the JSON report has all</p>")?;
        }
        out.write_all(b"</details>\n")
    }
}

fn key(set: &SetRecord) -> Key {
    let hook = set.hooks.iter().rev().find(|hook| failed(hook.outcome));
    let why = match (hook, &set.message) {
        (Some(hook), _) => format!("{}, {}", hook.name.text(), how(hook)),
        (None, Some(message)) => message.clone(),
        (None, None) => String::new(),
    };
    let said = hook.map(|hook| hook.stderr.shown()).unwrap_or_default();
    let line = error_line(&String::from_utf8_lossy(&said), &set.target.text());
    Key { word: set.outcome.word(), why, line }
}

/// The first line of an error, which says the same for each target: without its name.
fn error_line(said: &str, target: &str) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let line =
        if first.starts_with(TRACEBACK) { lines.next_back().unwrap_or(first) } else { first };
    let line = without_name(line, target);
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{} (cut)", &line[..at]),
        None => line,
    }
}

/// The name is one where it is no part of a longer word.
fn without_name(line: &str, name: &str) -> String {
    let is_within = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = (!name.is_empty()).then(|| rest.find(name)).flatten() {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        let last = before.chars().next_back().or(out.chars().next_back());
        out += before;
        if is_within(last) || is_within(behind.chars().next()) {
            out += name;
        } else {
            out.push(ITS_NAME);
        }
        rest = behind;
    }
    out + rest
}

/// A target's name, with the host that it ran on where that was another one.
pub(super) fn name(set: &SetRecord) -> String {
    let name = text(&set.target.0);
    match &set.host {
        Some(host) => format!("{name} <span class=\"soft\">on {}</span>", text(host.as_bytes())),
        None => name,
    }
}

/// A target with what its hooks wrote.
fn shown(ended: &Ended) -> String {
    let set = &ended.set;
    let line = ended.line;
    let mut html = format!(
        "<details data-line=\"{line}\"><summary>{} <span class=\"soft\">line {line} · {}{}</span>\
         </summary>\n",
        name(set),
        duration(set.wall_us, Micro::Sign),
        ended.in_which_try(),
    );
    set.hooks.iter().for_each(|hook| output(&mut html, hook));
    if !set.not_run.is_empty() {
        let names: Vec<_> = set.not_run.iter().map(Bytes::text).collect();
        let names = text(names.join(", ").as_bytes());
        html += &format!("<p class=\"soft\">not run: {names}</p>\n");
    }
    html + "</details>\n"
}

fn output(html: &mut String, hook: &HookRecord) {
    let streams = [("stdout", &hook.stdout), ("stderr", &hook.stderr)];
    for (name, stream) in streams.into_iter().filter(|(_, stream)| stream.total > 0) {
        let mut shown = stream.shown();
        let mut cut = "";
        if shown.len() > OUTPUT_BYTES_MAX {
            shown.drain(..shown.len() - OUTPUT_BYTES_MAX);
            cut = ", its end";
        }
        let (hook, shown) = (text(&hook.name.0), text(&shown));
        *html += &format!("<p class=\"soft\">{hook}, {name}{cut}</p>\n<pre>{shown}</pre>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_the_same_of_each_target() {
        for (said, target, want) in [
            ("", "web", ""),
            ("\n  web: no\nmore\n", "web", "…: no"),
            ("no web, webs, (web) nor cobweb web", "web", "no …, webs, (…) nor cobweb …"),
            ("webweb", "web", "webweb"),
            ("no name", "", "no name"),
            ("Traceback (most recent call last):\n  File 1\nOSError: web\n", "web", "OSError: …"),
            ("Traceback (most recent call last):\n", "web", "Traceback (most recent call last):"),
        ] {
            assert_eq!(error_line(said, target), want, "{said:?}");
        }
        let long = error_line(&"é".repeat(1_000), "x");
        assert_eq!(long, "é".repeat(LINE_CHARS_MAX) + " (cut)");
    }
}
