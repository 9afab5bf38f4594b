//! `hob hooks run`: runs the hooks of a directory for one target, shows what they write as they
//! write it, and exits with what became of them.
//!
//! What a run of many targets shares with it is [`Run::variables`], [`Run::set`],
//! [`Run::limits`] and [`Signals`].

use std::ffi::{CStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hob_core::hooks::{Bytes, HookOutcome, HookRecord, SetRecord, signal_name};
use hob_hooks::{Connect, Event, Handle, Isolation, Limits, Runner, Set, Stream, Variables, Wait};
use hob_os::start::Start;
use hob_os::{process, signals};
use hob_resolve::near::nearest_beside;
use jiff::Timestamp;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::Signal;
use serde_json::json;

use super::list::Ignored;
use super::options::{Many, time};
use super::receipt::Told;
use super::report::{self, Reports};
use super::{dry, tag};
use crate::failure::Failure;
use crate::output::out_json;
use crate::show::text::{Charset, printable};
use crate::{connect, say};

/// The name of the format.
const SCHEMA: &str = "hob.hooks/1";
/// How long a hook may take to end after a first signal.
const POLITE: Duration = Duration::from_secs(10);

/// What to run, and how.
#[derive(Debug, Args)]
#[command(after_help = "\
A hook that exits with 0 is ok; 32 to 63 is a warning, and the next one runs;
100 interrupts the set, which is no fault; anything else is an error. hob exits
with 0 for ok and warning, 1 error, 3 interrupt, 4 timeout, 5 system error.

Limits of single hooks are rows of the file DIR.limits beside the directory: a
name (* and ? stand for others), when to warn, when to kill. A - leaves what is
asked for all. 20-migrate 30s 10m")]
pub(crate) struct Run {
    /// The hooks directory; one that is not there is an empty set, and said to be
    pub(crate) dir: OsString,
    /// Fail where the directory is not there (the default where a person types)
    #[arg(long)]
    must_exist: bool,
    /// Set a variable in the hooks' environment, over the caller's and those of --env-file
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<OsString>,
    /// Set the variables of a file, one NAME=VALUE a line, over the caller's
    #[arg(long, value_name = "FILE")]
    env_file: Vec<OsString>,
    #[command(flatten)]
    ignored: Ignored,
    /// End a hook, with its process group, after this time, such as 500ms, 5s or 30m
    #[arg(long, value_name = "TIME")]
    kill_after: Option<String>,
    /// How long a hook that ran out of time may take to end before it is killed
    #[arg(long, value_name = "TIME", default_value = "10s")]
    grace: String,
    /// Say when a hook takes longer than this
    #[arg(long, value_name = "TIME")]
    warn_after: Option<String>,
    /// How hooks are started
    #[arg(long, value_enum, value_name = "NAME", default_value = "fastest")]
    isolation: IsolationName,
    /// Print one JSON object with everything, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report: .json, .xml (JUnit) or .html; or .jsonl, which has a line for each target as it
    /// ends; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(super) report: Vec<PathBuf>,
    /// Show which hooks would run for which targets, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(crate) many: Many,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IsolationName {
    /// In the fastest way that is exact for it
    Fastest,
    /// Each as a fresh process when its turn comes
    Spawn,
}

impl Run {
    /// What every hook inherits: the caller's environment, over it the files of `--env-file`, over
    /// those `--set`. A target's own values are set over all of them.
    pub(crate) fn variables(&self, own: &[&CStr]) -> Result<Variables, Failure> {
        let mut variables = Variables::inherit(own.iter().map(|&entry| entry.to_owned()));
        let mut put = |entry: &[u8], whence: &str| {
            let shown = Bytes::from(entry);
            let Some(at) = entry.iter().position(|byte| *byte == b'=') else {
                let text = format!("{whence} {}: not of the form NAME=VALUE", shown.text());
                return Err(Failure::usage(text));
            };
            let (name, value) = (&entry[..at], &entry[at + 1..]);
            variables
                .set(name, value)
                .map_err(|why| Failure::usage(format!("{whence} {}: {why}", shown.text())))
        };
        for file in &self.env_file {
            let shown = file.to_string_lossy();
            let text = std::fs::read(file)
                .map_err(|error| Failure::usage(format!("--env-file {shown}: {error}")))?;
            let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
            for line in lines.filter(|line| !line.is_empty() && line[0] != b'#') {
                put(line, &format!("--env-file {shown}:"))?;
            }
        }
        for entry in &self.set {
            put(entry.as_bytes(), "--set")?;
        }
        Ok(variables)
    }

    /// Says that the directory is not there, where it is not: it may be mistyped, and then the
    /// success of nothing would go unseen. A failure where a person types, or has asked for one.
    pub(crate) fn look_for_directory(&self) -> Result<(), Failure> {
        let dir = Path::new(&self.dir);
        match dir.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Ok(_) | Err(_) => return Ok(()),
        }
        let shown = printable(&dir.to_string_lossy(), Charset::Unicode);
        let near = nearest_beside(dir, |entry| entry.path().is_dir());
        let near = near.map(|near| printable(&near.to_string_lossy(), Charset::Unicode));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let text = format!("{shown}: there is no such directory{near}");
        if self.must_exist || std::io::stdin().is_terminal() {
            return Err(Failure::new(text));
        }
        let next = "; nothing is run, which is ok (--must-exist makes it a failure)";
        say::line(format!("{text}{next}").as_bytes());
        Ok(())
    }

    /// The reports that are wanted, each of which can be written.
    pub(super) fn reports(&self) -> Result<Reports, Failure> {
        let reports = Reports::new(&self.report);
        let reports = reports.map_err(|why| Failure::usage(format!("--report {why}")))?;
        reports.check().map_err(|why| Failure::new(format!("--report {why}")))?;
        Ok(reports)
    }

    /// A set of the directory with these variables, for nobody in particular.
    pub(crate) fn set(&self, variables: &Variables) -> Result<Set, Failure> {
        Ok(Set {
            ignored: self.ignored.suffixes()?.into(),
            kill_after: time("--kill-after", self.kill_after.as_deref())?,
            warn_after: time("--warn-after", self.warn_after.as_deref())?,
            isolation: match self.isolation {
                IsolationName::Fastest => Isolation::Fastest,
                IsolationName::Spawn => Isolation::Spawn,
            },
            ..Set::new(self.dir.as_bytes(), variables)
        })
    }

    /// How hooks come to be warm: not at all if hob is bypassed.
    pub(crate) fn warm(start: &Start) -> Option<Connect> {
        if start.variable(b"HOB") == Some(b"0") {
            return None;
        }
        let start = Start { argv: start.argv.clone(), env: start.env.clone() };
        Some(Arc::new(move || connect::connect_or_start(&start, connect::START_MS).ok()))
    }

    /// The bounds of a runner with this many jobs.
    pub(crate) fn limits(&self, jobs: usize) -> Result<Limits, Failure> {
        let grace = time("--grace", Some(&self.grace))?.unwrap_or_default();
        Ok(Limits { jobs, grace, ..Limits::default() })
    }
}

/// Runs the verb; returns its exit code.
pub(crate) fn run(start: &Start, asked: &Run) -> Result<u8, Failure> {
    asked.look_for_directory()?;
    let variables = asked.variables(&start.env)?;
    let set = asked.set(&variables)?;
    if asked.dry_run {
        return dry::hooks(&set).map(|()| 0);
    }
    let mut reports = asked.reports()?;
    let begun = Timestamp::now();
    let mut runner = Runner::new(asked.limits(1)?).map_err(|error| runner_failed(&error))?;
    if let Some(connect) = Run::warm(start) {
        runner.warm_through(Box::new(move || connect()));
    }
    let signals = Signals::new(&mut runner)?;
    let mut told = Told::new(asked.dir.as_bytes());
    runner.submit(set);
    let mut shown =
        Shown { json: asked.json, signals, handle: runner.handle(), record: None, failed: None };
    while shown.record.is_none() {
        let turned = runner.turn(Wait::Forever, &mut |event| shown.event(event));
        turned.map_err(|error| runner_failed(&error))?;
    }
    let Some(record) = shown.record else { return Err(Failure::lost("the set has no end")) };
    told.add(&record);
    told.tell(start);
    let unwritten = report::of_one(asked.dir.as_ref(), &record, begun, &mut reports);
    if asked.json {
        let value = json!({"schema": SCHEMA, "set": &record});
        out_json(&format!("{value}\n"))?;
    } else {
        tell(&record);
    }
    if let Some(failure) = shown.failed {
        return Err(failure);
    }
    if let Err(why) = unwritten {
        return Err(Failure::new(format!("--report {why}")));
    }
    shown.signals.leave(record.outcome);
    Ok(record.outcome.exit_code())
}

/// One line for a set that did not end well.
fn tell(record: &SetRecord) {
    let shown = |name: &Bytes| printable(&name.text(), Charset::Unicode);
    if let Some(message) = &record.message {
        say::line(message.as_bytes());
    }
    for hook in &record.hooks {
        for line in remarks(hook) {
            say::line(format!("{}: {line}", shown(&hook.name)).as_bytes());
        }
    }
    if !record.not_run.is_empty() {
        let names: Vec<String> = record.not_run.iter().map(shown).collect();
        say::line(format!("not run: {}", names.join(", ")).as_bytes());
    }
}

/// What is worth saying of a hook's end.
pub(crate) fn remarks(hook: &HookRecord) -> Vec<String> {
    let mut lines = Vec::new();
    let how = match (hook.code, hook.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by {}", signal_name(signal)),
        (None, None) => String::new(),
    };
    match hook.outcome {
        HookOutcome::Ok => {}
        HookOutcome::Warning | HookOutcome::Interrupt | HookOutcome::Error => {
            lines.push(format!("{} ({how})", hook.outcome.word()));
        }
        HookOutcome::Timeout => {
            let seconds = Duration::from_micros(hook.wall_us).as_secs_f64();
            lines.push(format!("timeout: ended after {seconds:.1} s ({how})"));
        }
        HookOutcome::SystemError => {
            let why = hook.message.as_deref().unwrap_or("nothing is known of its end");
            lines.push(format!("system error: {why}"));
        }
        HookOutcome::Cancelled => lines.push(format!("cancelled ({how})")),
    }
    if hook.left_behind {
        lines
            .push("it left a process behind that holds its output; that was not waited for".into());
    }
    lines
}

/// What the events of a run of one target come to.
struct Shown {
    json: bool,
    signals: Signals,
    handle: Handle,
    record: Option<SetRecord>,
    failed: Option<Failure>,
}

impl Shown {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Output { stream, bytes, .. } if !self.json => self.pass_on(stream, bytes),
            Event::Ready(SIGNALLED) => match self.signals.read() {
                // There is one target: what it is to finish is what the signal is to end.
                Some(Wish::Finish) => self.handle.cancel_all(POLITE),
                Some(Wish::End) => self.handle.cancel_all(Duration::ZERO),
                None => {}
            },
            Event::HookSlow { name, after, .. } if !self.json => {
                let name = printable(&name.text(), Charset::Unicode);
                say::line(format!("{name}: takes longer than {after:?}").as_bytes());
            }
            Event::SetEnded(record) => self.record = Some(record),
            Event::SetStarted { .. }
            | Event::HookStarted { .. }
            | Event::HookEnded { .. }
            | Event::HookSlow { .. }
            | Event::Output { .. }
            | Event::Ready(_) => {}
        }
    }

    fn pass_on(&mut self, stream: Stream, bytes: &[u8]) {
        match say::raw(tag::descriptor(stream), bytes) {
            Ok(()) => {}
            // A reader that has seen enough is no failure, and no reason to stop the hooks.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(error) => {
                let text = format!("cannot pass on what hooks write: {error}");
                self.failed.get_or_insert(Failure::new(text));
            }
        }
    }
}

pub(crate) fn runner_failed(error: &rustix::io::Errno) -> Failure {
    let text = std::io::Error::from(*error);
    Failure::lost(format!("the kernel refuses what running hooks needs: {text}"))
}

/// Tells of descriptors that can be read, by [`Event::Ready`] with their number.
pub(crate) trait Watches {
    /// Watches one more.
    fn watch(&mut self, descriptor: BorrowedFd<'_>, number: u32) -> rustix::io::Result<()>;
}

impl Watches for Runner {
    fn watch(&mut self, descriptor: BorrowedFd<'_>, number: u32) -> rustix::io::Result<()> {
        Runner::watch(self, descriptor, number)
    }
}

/// Under which number signals are watched.
pub(crate) const SIGNALLED: u32 = 0;

/// The signals that a run answers: SIGINT, SIGTERM, SIGHUP, but for those that its caller ignores.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: OwnedFd,
    last: Option<i32>,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Finish what runs, and begin nothing more.
    Finish,
    /// End what runs, at once.
    End,
}

impl Signals {
    /// From now on signals come as [`Event::Ready`] with [`SIGNALLED`]. After the runner was made,
    /// whose hooks would inherit that they are blocked.
    pub(crate) fn new(runner: &mut dyn Watches) -> Result<Signals, Failure> {
        let failed = |error: rustix::io::Errno| runner_failed(&error);
        let ignored = signals::Set(process::own_status().map_err(failed)?.ignored);
        let mut all = vec![Signal::INT.as_raw(), Signal::TERM.as_raw(), Signal::HUP.as_raw()];
        // What is blocked and ignored would be read all the same.
        all.retain(|number| !ignored.has(*number));
        let set = signals::Set::of(&all);
        signals::block(set).map_err(failed)?;
        let descriptor = signals::descriptor(set).map_err(failed)?;
        runner.watch(descriptor.as_fd(), SIGNALLED).map_err(failed)?;
        Ok(Signals { descriptor, last: None })
    }

    /// What has come: the first signal is a wish to finish, each further one to end.
    pub(crate) fn read(&mut self) -> Option<Wish> {
        let (number, _) = signals::read(&self.descriptor)?;
        let first = self.last.replace(number).is_none();
        Some(if first { Wish::Finish } else { Wish::End })
    }

    /// Dies by the signal that cancelled the run, so that the caller's shell sees the same.
    /// Returns if none did.
    pub(crate) fn leave(&self, outcome: HookOutcome) {
        if let (HookOutcome::Cancelled, Some(number)) = (outcome, self.last) {
            signals::die_by(number);
        }
    }
}
