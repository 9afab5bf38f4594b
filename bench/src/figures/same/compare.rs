//! One invocation, cold and through hob. Two cold runs say what is steady; then each call through
//! hob, from the one that is learned from to the third of a copy that has loaded ahead, must give
//! the same standard output and error, the same exit, and leave the same files.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::Tally;
use super::project::Project;
use super::run::{Left, Run, run};
use crate::hob::Hob;

/// Calls through hob of one invocation: until so many were performed by a copy with what it
/// loads ahead, or so many were made.
const LOADED_CALLS: usize = 3;
const CALLS_MAX: usize = 8;
/// The warm calls that say nothing of loading ahead: nothing was loaded yet.
const BARE: &str = "bare-interpreter";
/// Cold runs after a difference, to see whether it is the command's own.
const CHANCES: usize = 6;

/// One invocation.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) words: Vec<String>,
    /// What is in its folder.
    pub(super) project: Option<&'a Project>,
}

/// The two ways of running it.
#[derive(Debug)]
pub(super) struct Both<'a> {
    pub(super) hob: &'a Hob,
    pub(super) bin: &'a Path,
    pub(super) folder: PathBuf,
}

/// What two cold runs gave, and what is known not to be steady.
struct Want {
    first: Left,
    second: Left,
    loose: Vec<String>,
}

/// What calls through hob gave.
#[derive(Default)]
struct Warm {
    loaded: usize,
    best: Option<Duration>,
}

impl Both<'_> {
    pub(super) fn compare(&self, call: &Call<'_>, tally: &mut Tally) -> Result<()> {
        // The first fills caches outside of the project: those of bytecode, and the commands' own.
        let (Some(_), Some(first), Some(second)) =
            (self.cold(call)?, self.cold(call)?, self.cold(call)?)
        else {
            tally.endless += 1;
            return Ok(());
        };
        let cold = first.took.min(second.took);
        let mut want = Want { first: first.left, second: second.left, loose: Vec::new() };
        tally.compared += 1;
        let mut names = want.first.keys().chain(want.second.keys());
        let is_unsteady = names.any(|part| want.first.get(part) != want.second.get(part));
        tally.unsteady += usize::from(is_unsteady);
        let mut warm = Warm::default();
        for _ in 0..CALLS_MAX {
            let (got, reason) = self.through_hob(call, tally, &mut warm)?;
            if let Some(difference) = self.difference(call, got.as_ref(), &mut want)? {
                let words = call.words.join(" ");
                // Told at once: a whole run takes long.
                crate::say(&format!("different ({reason}): {words}: {difference}"));
                tally.different += 1;
                break;
            }
            if warm.loaded == LOADED_CALLS {
                tally.warmed += 1;
                break;
            }
        }
        tally.unsteady += usize::from(!is_unsteady && !want.loose.is_empty());
        let best = warm.best.map_or("-".to_owned(), |best| format!("{}", best.as_millis()));
        let (cold, loaded) = (cold.as_millis(), warm.loaded);
        writeln!(tally.times, "{cold} ms cold, {best} warm ({loaded}): {}", call.words.join(" "))?;
        Ok(())
    }

    fn cold(&self, call: &Call<'_>) -> Result<Option<Run>> {
        let mut command = Command::new(self.bin.join(&call.words[0]));
        command.args(&call.words[1..]);
        self.run(call, command)
    }

    /// A call, and the reason that its receipt gives.
    fn through_hob(
        &self,
        call: &Call<'_>,
        tally: &mut Tally,
        warm: &mut Warm,
    ) -> Result<(Option<Left>, String)> {
        let mut command = Command::new(self.hob.binary());
        command.arg("run").arg(self.bin.join(&call.words[0])).args(&call.words[1..]);
        let got = self.run(call, command)?;
        let receipt = self.hob.receipts(1)?.pop().unwrap_or_default();
        let reason = receipt["reason"].as_str().unwrap_or("no receipt").to_owned();
        tally.calls += 1;
        tally.warm += usize::from(receipt["warm"] == true);
        if receipt["warm"] == true && reason != BARE {
            warm.loaded += 1;
            let took = got.as_ref().map(|run| run.took);
            warm.best = warm.best.into_iter().chain(took).min();
        }
        Ok((got.map(|run| run.left), reason))
    }

    /// Runs a command in a folder that has the call's project, and nothing else.
    fn run(&self, call: &Call<'_>, command: Command) -> Result<Option<Run>> {
        std::fs::remove_dir_all(&self.folder)?;
        std::fs::create_dir(&self.folder)?;
        if let Some(project) = call.project {
            project.write(&self.folder)?;
        }
        run(self.hob, command, &self.folder)
    }

    /// The first difference that is not the command's own.
    fn difference(
        &self,
        call: &Call<'_>,
        got: Option<&Left>,
        want: &mut Want,
    ) -> Result<Option<String>> {
        while let Some(part) = want.first_other(got) {
            // Two cold runs may have agreed by chance.
            if self.is_chance(call, &part, want)? {
                want.loose.push(part);
                continue;
            }
            let got = got.and_then(|got| got.get(&part));
            let text = first_difference(want.second.get(&part), got);
            return Ok(Some(format!("{part}: {text}")));
        }
        Ok(None)
    }

    /// Whether a cold run may give something else, too.
    fn is_chance(&self, call: &Call<'_>, part: &str, want: &Want) -> Result<bool> {
        for _ in 0..CHANCES {
            if self.cold(call)?.is_none_or(|run| run.left.get(part) != want.second.get(part)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Want {
    /// The first part in which a call differs from cold runs that agree, and which is not loose.
    fn first_other(&self, got: Option<&Left>) -> Option<String> {
        let none = Left::new();
        let got = got.unwrap_or(&none);
        let mut names = self.first.keys().chain(self.second.keys()).chain(got.keys());
        let differs = |part: &&String| {
            let want = self.second.get(*part);
            let is_steady = want == self.first.get(*part) && !self.loose.contains(part);
            is_steady && got.get(*part) != want
        };
        names.find(differs).cloned()
    }
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
