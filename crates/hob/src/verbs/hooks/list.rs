//! `hob hooks list`: which files of a directory would run, in which order, and why others would
//! not. Decides nothing: the selection is `hob_core::hooks`'.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::Args;
use hob_core::hooks::{Bytes, Skipped, Suffix, Times};
use hob_hooks::{Listing, Place, limits_of};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::{Look, Tone};
use crate::show::text::printable;

/// The name of the format.
const SCHEMA: &str = "hob.hooks-list/1";

/// Which directory.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// The hooks directory
    dir: OsString,
    #[command(flatten)]
    ignored: Ignored,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which names do not run.
#[derive(Debug, Args)]
pub(crate) struct Ignored {
    /// Ignore names that end so, besides those that are ignored anyway; a * at the end stands for
    /// anything but a dot
    #[arg(long = "ignore-suffix", value_name = "SUFFIX")]
    more: Vec<OsString>,
    /// Ignore only the suffixes that are named
    #[arg(long)]
    no_default_suffixes: bool,
}

impl Ignored {
    /// The suffixes.
    pub(crate) fn suffixes(&self) -> Result<Vec<Suffix>, Failure> {
        let mut all = if self.no_default_suffixes { Vec::new() } else { Suffix::defaults() };
        for pattern in &self.more {
            let suffix = Suffix::new(pattern.as_bytes()).ok_or_else(|| {
                Failure::usage("--ignore-suffix: every name ends in nothing; name a suffix")
            })?;
            all.push(suffix);
        }
        Ok(all)
    }
}

/// Runs the verb.
pub(crate) fn run(asked: &List) -> Result<(), Failure> {
    let dir = asked.dir.as_bytes();
    let shown = Bytes::from(dir);
    let listing = Listing::read(Place::Own, dir, &asked.ignored.suffixes()?).map_err(|error| {
        let text = std::io::Error::from(error);
        Failure::new(format!("{}: cannot be listed: {text}", shown.text()))
    })?;
    let limits = limits_of(Place::Own, dir).map_err(Failure::new)?;
    if asked.json {
        let name = |name: &Vec<u8>| Bytes(name.clone());
        let hooks: Vec<Bytes> = listing.listed.hooks.iter().map(name).collect();
        let skipped: Vec<_> = listing
            .listed
            .skipped
            .iter()
            .map(|(skipped, why)| json!({"name": name(skipped), "reason": code(why), "suffix": suffix(why)}))
            .collect();
        let rows: Vec<_> =
            hooks.iter().filter_map(|hook| limited(hook, limits.of(&hook.0))).collect();
        let unused: Vec<_> = limits
            .unused(&listing.listed.hooks)
            .map(|(line, name)| json!({"line": line, "name": name}))
            .collect();
        let value = json!({"schema": SCHEMA, "dir": shown, "hooks": hooks, "skipped": skipped,
            "limits": rows, "limits_unused": unused});
        return out_json(&format!("{value}\n"));
    }
    let look = Look::of_stdout();
    let line = |name: &[u8]| printable(&String::from_utf8_lossy(name), look.charset);
    let mut text = String::new();
    for name in &listing.listed.hooks {
        text += &format!("{}\n", line(name));
    }
    for (name, why) in &listing.listed.skipped {
        let why = look.paint(Tone::Dim, &format!("# {}: {}", line(name), words(why)));
        text += &format!("{why}\n");
    }
    for (row, name) in limits.unused(&listing.listed.hooks) {
        let words = format!(
            "# {}: no hook has this name, in line {row} of the limits",
            line(name.as_bytes())
        );
        text += &format!("{}\n", look.paint(Tone::Watch, &words));
    }
    out(&text)
}

/// What a hook may take, if it is limited by itself.
fn limited(hook: &Bytes, times: Times) -> Option<Value> {
    let us = |time: Option<Duration>| time.and_then(|time| u64::try_from(time.as_micros()).ok());
    (times != Times::default()).then(|| {
        json!({"hook": hook, "warn_after_us": us(times.warn_after),
            "kill_after_us": us(times.kill_after)})
    })
}

fn code(why: &Skipped) -> &'static str {
    match why {
        Skipped::NotAFile => "not-a-file",
        Skipped::Nothing => "nothing",
        Skipped::NotExecutable => "not-executable",
        Skipped::Suffix(_) => "suffix",
    }
}

fn suffix(why: &Skipped) -> Option<&str> {
    match why {
        Skipped::Suffix(pattern) => Some(pattern),
        Skipped::NotAFile | Skipped::Nothing | Skipped::NotExecutable => None,
    }
}

fn words(why: &Skipped) -> String {
    match why {
        Skipped::NotAFile => "no regular file".to_owned(),
        Skipped::Nothing => "leads to nothing".to_owned(),
        Skipped::NotExecutable => "not executable (chmod +x makes it a hook)".to_owned(),
        Skipped::Suffix(pattern) => format!("ignored by its suffix {pattern}"),
    }
}
