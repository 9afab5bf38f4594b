//! Whole processes, measured from before their start to after their end, in interleaved rounds.
//!
//! Each round runs every side once, in the same order, with the same gap before each. Output goes
//! to files in memory and is compared: sides of one group must say the same in each round, else
//! the measurement fails. Time is `CLOCK_MONOTONIC` (which `Instant` is on Linux).
//!
//! Deliberately not here: what is measured (see `figures/`), and what the numbers mean.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{Mode, OFlags};

use crate::progress::Progress;
use crate::stats;

/// Environment, shared by many sides.
pub(crate) type Environment = Arc<Vec<(OsString, OsString)>>;

/// A file that is put back to the same content before each run, for programs that change it.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    pub(crate) file: PathBuf,
    pub(crate) content: Vec<u8>,
}

/// Where a side's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// To a file: the run is over when the process is.
    File,
    /// Through a pipe that is read to its end, as `x=$(...)` does: the run is over when that has
    /// come as well.
    Pipe,
}

/// One of the things that are compared.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) argv: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) fresh: Option<Fresh>,
    pub(crate) stdout: Stdout,
    /// How many descriptors it inherits beyond 0 to 2.
    pub(crate) more: usize,
    /// Sides with the same number must have the same output.
    pub(crate) group: Option<u8>,
}

/// What a run left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) exit: String,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// What [`Fresh::file`] holds afterwards.
    pub(crate) file: Option<Vec<u8>>,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) took: Duration,
    pub(crate) pid: u32,
    pub(crate) output: Output,
}

/// Where a run writes: two files in memory, used again and again.
#[derive(Debug)]
pub(crate) struct Slot {
    stdout: File,
    stderr: File,
}

/// The times of one side.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Microseconds, by round.
    pub(crate) us: Vec<f64>,
    /// The process of each round.
    pub(crate) pids: Vec<u32>,
}

impl Series {
    /// One that has no rounds yet.
    pub(crate) fn named(name: &str) -> Series {
        Series { name: name.to_owned(), us: Vec::new(), pids: Vec::new() }
    }

    /// Takes in more rounds of the same.
    pub(crate) fn extend(&mut self, more: Series) {
        self.us.extend(more.us);
        self.pids.extend(more.pids);
    }
}

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    pub(crate) gap: Duration,
    pub(crate) order: Order,
}

/// In which order the sides of a round run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// A B C, A B C.
    Same,
    /// A B, B A: for sides that differ so little that their place in the round would matter.
    Turned,
}

impl Slot {
    pub(crate) fn new() -> Result<Slot> {
        let file = |name| -> Result<File> {
            let flags = rustix::fs::MemfdFlags::CLOEXEC;
            Ok(rustix::fs::memfd_create(name, flags)
                .context("cannot make a file in memory")?
                .into())
        };
        Ok(Slot { stdout: file("stdout")?, stderr: file("stderr")? })
    }

    fn rewind(&mut self) -> Result<()> {
        for file in [&mut self.stdout, &mut self.stderr] {
            file.set_len(0)?;
            file.rewind()?;
        }
        Ok(())
    }
}

fn content(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Side {
    /// Runs the side once. Only the process itself is inside the time.
    pub(crate) fn run(&self, slot: &mut Slot) -> Result<Run> {
        if let Some(fresh) = &self.fresh {
            std::fs::write(&fresh.file, &fresh.content)?;
        }
        slot.rewind()?;
        // Not close-on-exec, for this run alone.
        let null = || rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty());
        let inherited = (0..self.more).map(|_| null()).collect::<Result<Vec<_>, _>>()?;
        let (program, arguments) = self.argv.split_first().context("a side has a program")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(match self.stdout {
                Stdout::File => slot.stdout.try_clone()?.into(),
                Stdout::Pipe => Stdio::piped(),
            })
            .stderr(slot.stderr.try_clone()?);
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        let mut read = Vec::new();
        if let Some(pipe) = &mut child.stdout {
            pipe.read_to_end(&mut read)?;
        }
        let status = child.wait()?;
        let took = start.elapsed();
        drop(inherited);
        let file = self.fresh.as_ref().map(|fresh| std::fs::read(&fresh.file)).transpose()?;
        let output = Output {
            exit: status.to_string(),
            stdout: match self.stdout {
                Stdout::File => content(&mut slot.stdout)?,
                Stdout::Pipe => read,
            },
            stderr: content(&mut slot.stderr)?,
            file,
        };
        Ok(Run { took, pid: child.id(), output })
    }
}

impl Series {
    pub(crate) fn p(&self, part: f64) -> f64 {
        stats::quantile(&self.us, part)
    }
}

/// Measures all sides in interleaved rounds.
pub(crate) fn rounds(sides: &[Side], how: Rounds, progress: &mut Progress) -> Result<Vec<Series>> {
    let mut slot = Slot::new()?;
    let mut series: Vec<Series> = sides.iter().map(|side| Series::named(&side.name)).collect();
    for round in 0..how.count {
        progress.at(round, how.count);
        let mut outputs: Vec<(usize, Output)> = Vec::new();
        let turned = how.order == Order::Turned && round % 2 == 1;
        for place in 0..sides.len() {
            let index = if turned { sides.len() - 1 - place } else { place };
            let side = &sides[index];
            std::thread::sleep(how.gap);
            let run = side.run(&mut slot)?;
            series[index].us.push(microseconds(run.took));
            series[index].pids.push(run.pid);
            let other = outputs.iter().find(|(at, _)| side.group == sides[*at].group);
            if let (Some(_), Some((at, want))) = (side.group, other) {
                same(&sides[*at].name, want, &side.name, &run.output)?;
            }
            outputs.push((index, run.output));
        }
    }
    progress.done();
    Ok(series)
}

/// Fails, and shows how two outputs differ, when they do.
pub(crate) fn same(name: &str, want: &Output, other: &str, have: &Output) -> Result<()> {
    ensure!(
        want.exit == have.exit,
        "{name} ended with {}, {other} with {}: {}{}",
        want.exit,
        have.exit,
        text(&want.stderr),
        text(&have.stderr)
    );
    for (what, a, b) in [
        ("stdout", Some(&want.stdout), Some(&have.stdout)),
        ("stderr", Some(&want.stderr), Some(&have.stderr)),
        ("the file", want.file.as_ref(), have.file.as_ref()),
    ] {
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            bail!("{what} differs.\n--- {name}\n{}\n--- {other}\n{}", text(a), text(b));
        }
    }
    Ok(())
}

/// The beginning of an output, for a message.
pub(crate) fn text(bytes: &[u8]) -> String {
    const SHOWN: usize = 2000;
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned()
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, script: &str, group: Option<u8>) -> Side {
        Side {
            name: name.to_owned(),
            argv: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            folder: PathBuf::from("/"),
            environment: Arc::new(vec![("A".into(), "1".into())]),
            fresh: None,
            stdout: Stdout::File,
            more: 0,
            group,
        }
    }

    #[test]
    fn a_run_sees_its_own_environment_only_and_its_output_is_kept() {
        let mut slot = Slot::new().unwrap();
        let run = side("a", "echo $A$HOME; echo e >&2; exit 3", None).run(&mut slot).unwrap();
        assert_eq!((&run.output.stdout[..], &run.output.stderr[..]), (&b"1\n"[..], &b"e\n"[..]));
        assert!(run.output.exit.contains('3'));
        let again = side("b", "echo x", None).run(&mut slot).unwrap();
        assert_eq!(again.output.stdout, b"x\n", "nothing is left of the run before");
    }

    #[test]
    fn a_run_through_a_pipe_is_over_when_its_output_has_ended() {
        let mut slot = Slot::new().unwrap();
        let script = "echo a; (cat /dev/null; echo b) &";
        let all = Side { stdout: Stdout::Pipe, ..side("a", script, None) };
        assert_eq!(all.run(&mut slot).unwrap().output.stdout, b"a\nb\n");
    }

    #[test]
    fn a_wrong_result_fails_the_measurement() {
        let how = Rounds { count: 2, gap: Duration::ZERO, order: Order::Turned };
        let mut quiet = Progress::quiet();
        let good = [side("a", "echo 1", Some(0)), side("b", "echo 1", Some(0))];
        assert_eq!(rounds(&good, how, &mut quiet).unwrap()[1].us.len(), 2);
        let bad = [side("a", "echo 1", Some(0)), side("b", "echo 2", Some(0))];
        let error = rounds(&bad, how, &mut quiet).unwrap_err().to_string();
        assert!(error.contains("stdout differs"), "{error}");
        let bad = [side("a", "exit 1", Some(0)), side("b", "exit 2", Some(0))];
        assert!(rounds(&bad, how, &mut quiet).is_err());
    }
}
