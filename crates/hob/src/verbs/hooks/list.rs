//! `hob hooks list`: which files of a directory would run, in which order, and why others would
//! not. Decides nothing: the selection is `hob_core::hooks`'.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use hob_core::hooks::{Bytes, Skipped, Suffix};
use hob_hooks::{Listing, Place};
use serde_json::json;

use super::super::{Failure, out, out_json};
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
    if asked.json {
        let name = |name: &Vec<u8>| Bytes(name.clone());
        let hooks: Vec<Bytes> = listing.listed.hooks.iter().map(name).collect();
        let skipped: Vec<_> = listing
            .listed
            .skipped
            .iter()
            .map(|(skipped, why)| json!({"name": name(skipped), "reason": code(why), "suffix": suffix(why)}))
            .collect();
        let value = json!({"schema": SCHEMA, "dir": shown, "hooks": hooks, "skipped": skipped});
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
    out(&text)
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
