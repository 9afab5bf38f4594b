//! `--dry-run`: which hooks would run, for which targets, with which parameters. Runs nothing and
//! leaves nothing.

use hob_hooks::{Listing, Place, Set};
use hob_os::say::Layout;

use super::progress::thousands;
use super::resume::Past;
use super::targets::Source;
use crate::failure::Failure;
use crate::output::{Reader, read_enough};
use crate::say;
use crate::show::style::{Look, Tone};
use crate::show::text::printable;

/// Shows the hooks alone: there are no targets.
pub(super) fn hooks(set: &Set) -> Result<(), Failure> {
    let listing = listing(set)?;
    let look = Look::of_stdout();
    let mut out = Lines::new(look);
    let count = listing.listed.hooks.len();
    let noun = if count == 1 { "hook" } else { "hooks" };
    let head = look.paint(Tone::Dim, &format!("{count} {noun}, in this order:"));
    let mut open = out.line(&head)?;
    for name in &listing.listed.hooks {
        open = open && out.line(&printable(&String::from_utf8_lossy(name), look.charset))?;
    }
    out.flush().map(|_| ())
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
    let mut out = Lines::new(look);
    let left = total.saturating_sub(past.count());
    let targets = format!(
        "{} hooks for each of {} targets, in this order:",
        listing.listed.hooks.len(),
        thousands(left)
    );
    let mut open = out.line(&look.paint(Tone::Dim, &targets))?;
    for name in &listing.listed.hooks {
        open = open && out.line(&shown(name))?;
    }
    open = open && out.line(&look.paint(Tone::Dim, "targets, by line:"))?;
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
        open = out.line(&format!("{} {} {params}", target.line, shown(&target.name)))?;
    }
    out.flush().map(|_| ())
}

/// How many bytes of lines are written at once.
const AT_ONCE_BYTES: usize = 16 * 1024;

/// Lines to stdout, for lists that are too long to be one text.
struct Lines {
    layout: Layout,
    waiting: String,
}

impl Lines {
    fn new(look: Look) -> Lines {
        Lines { layout: look.layout(), waiting: String::new() }
    }

    /// Adds one; whether anybody reads on.
    fn line(&mut self, text: &str) -> Result<bool, Failure> {
        self.waiting.push_str(text);
        self.waiting.push('\n');
        Ok(self.waiting.len() < AT_ONCE_BYTES || self.flush()? == Reader::Reads)
    }

    fn flush(&mut self) -> Result<Reader, Failure> {
        read_enough(say::page(&std::mem::take(&mut self.waiting), self.layout))
    }
}
