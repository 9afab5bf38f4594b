//! `--dry-run`: which hooks would run, for which targets, with which parameters. Runs nothing and
//! leaves nothing.

use std::io::{BufWriter, Write};

use hob_hooks::{Listing, Place, Set};

use super::super::Failure;
use super::progress::thousands;
use super::resume::Past;
use super::targets::Source;
use crate::say;
use crate::show::style::{Look, Tone};
use crate::show::text::printable;

/// Shows the hooks alone: there are no targets.
pub(super) fn hooks(set: &Set) -> Result<(), Failure> {
    let listing = listing(set)?;
    let look = Look::of_stdout();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let count = listing.listed.hooks.len();
    let noun = if count == 1 { "hook" } else { "hooks" };
    let head = look.paint(Tone::Dim, &format!("{count} {noun}, in this order:"));
    let mut open = line_to(&mut out, &head)?;
    for name in &listing.listed.hooks {
        open = open && line_to(&mut out, &printable(&String::from_utf8_lossy(name), look.charset))?;
    }
    // The last line's reader may be gone, which is no failure.
    let _ = out.flush();
    Ok(())
}

fn listing(set: &Set) -> Result<Listing, Failure> {
    Listing::read(Place::Own, &set.dir.0, &set.ignored).map_err(|error| {
        let text = std::io::Error::from(error);
        Failure::new(format!("{}: cannot be listed: {text}", set.dir.text()))
    })
}

/// Shows it.
pub(super) fn show(
    set: &Set,
    source: &mut Source,
    mut past: Past,
    total: u64,
) -> Result<(), Failure> {
    let listing = listing(set)?;
    let look = Look::of_stdout();
    let shown = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes), look.charset);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let left = total.saturating_sub(past.count());
    let targets = format!(
        "{} hooks for each of {} targets, in this order:",
        listing.listed.hooks.len(),
        thousands(left)
    );
    let mut open = line_to(&mut out, &look.paint(Tone::Dim, &targets))?;
    for name in &listing.listed.hooks {
        open = open && line_to(&mut out, &shown(name))?;
    }
    open = open && line_to(&mut out, &look.paint(Tone::Dim, "targets, by line:"))?;
    let mut targets = source.targets().map_err(|error| Failure::new(error.to_string()))?;
    while open
        && let Some(target) = targets.next_one().map_err(|error| Failure::new(error.to_string()))?
    {
        if past.ended(&target) {
            continue;
        }
        let params: Vec<Vec<u8>> =
            target.params.iter().map(|(name, value)| [&name[..], b"=", value].concat()).collect();
        let params = say::command(params.iter().map(Vec::as_slice));
        let params = look.paint(Tone::Dim, &shown(&params));
        open = line_to(&mut out, &format!("{} {} {params}", target.line, shown(&target.name)))?;
    }
    // The last line's reader may be gone, which is no failure.
    let _ = out.flush();
    Ok(())
}

/// Writes a line to stdout's lock, for lists that are too long to be one text.
fn line_to(out: &mut impl Write, text: &str) -> Result<bool, Failure> {
    match writeln!(out, "{text}") {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format!("cannot write to stdout: {error}"))),
    }
}
