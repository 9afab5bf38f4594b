//! `hob verify`: is a program the same warm as cold? It is run both ways, and what it wrote, how it
//! ended, the files that it left and the world that it saw are compared.
//!
//! ```text
//!   cold 1 ─▶ (until it is warm) ─▶ warm 1 ─▶ cold 2 ─▶ warm 2 ─▶ warm 3 ─▶ cold 3 ─▶ probes
//! ```
//! Invariants: the program is run through `hob run` only, as its callers do; a cold run comes
//! first and last, so that what changes by itself shows among the cold runs; no verdict is better
//! than its worst part; outputs are compared and not kept.
//!
//! It does not look inside the program, and it cannot see what a program does elsewhere: over the
//! network, or in files outside its directory.

mod compare;
mod files;
mod kept;
mod runs;
mod text;
mod world;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hob_os::start::Start;
use hob_os::{process, signals};
use hob_resolve::Program;
use hob_wire::exit::ExitCode;
use rustix::fd::AsFd;

use super::log::state_dir;
use super::{Failure, out, request};
use crate::show::style::Look;
use crate::{connect, options};
use compare::{Aspect, Table, Verdict};
use kept::{Identity, ProgramPart, Record, Runs};
use runs::{How, Interrupts, Seen, Subject};

/// The name of the format.
const SCHEMA: &str = "hob.verify/1";

/// Exit codes beside 0.
const DIFFERS: u8 = 1;
const NEVER_WARM: u8 = 3;

/// How often a program is run until a run is warm.
const TRIES_MAX: usize = 12;
/// How long is waited for warm state between two of these.
const READY_WAIT: Duration = Duration::from_secs(15);
/// The same while the daemon does not know the program.
const KNOWN_WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Runs of the probe, each way.
const PROBES: usize = 2;

/// Reasons of a cold call after which the next one may be warm.
const PASSING: [&str; 12] = [
    "learning",
    "being-learned",
    "warming",
    "stale",
    "busy",
    "worker-closed",
    "no-daemon",
    "no-answer",
    "connect-timeout",
    "daemon-closed",
    "other-build",
    "stopping",
];

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "hob verify [OPTIONS] PROGRAM [ARGUMENT]...\n       hob verify [OPTIONS] -m MODULE [ARGUMENT]...\n       hob verify --list [--json]",
    after_help = "It runs the program 2 N times and a few more, here: what the program does, it does as \
often. With --copy each run starts from the same private copy of this directory.\n\n\
Exit code: 0 the same (what varies by itself is left out), 1 it differs, 3 it was never warm."
)]
pub(crate) struct Verify {
    /// How often it is run each way
    #[arg(short = 'n', value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// Run it in a private copy of this directory, put back after each run
    #[arg(long)]
    copy: bool,
    /// End a run after this time, such as 500ms, 5s or 2m
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: String,
    /// Give it this file as standard input (otherwise it is empty)
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Show the verdicts that are kept, and whether they still hold
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// As for `hob run`; a `--` after the program is left out
    #[arg(required_unless_present = "list", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM [ARGUMENT]...")]
    program: Vec<OsString>,
}

/// Verifies, or lists; returns the exit code.
pub(crate) fn run(start: &Start, asked: &Verify) -> Result<u8, Failure> {
    let kept_in = state_dir()?;
    if asked.list {
        list(&kept_in, asked)?;
        return Ok(0);
    }
    let words = runs::words(&asked.program);
    let program = resolve(start, &words)?;
    let interrupts = Interrupts::new().map_err(cannot)?;
    let session = Session::new((start, &interrupts), asked, words)?;
    let record = session.verify(&program, &kept_in);
    if let Some(number) = interrupts.came() {
        // The session has cleared up.
        crate::say::line(b"interrupted: no verdict");
        signals::die_by(number);
    }
    let record = record?;
    if let Err(error) = kept::keep(&kept_in, &record) {
        let place = kept_in.display();
        crate::say::line(format!("the verdict is not kept in {place}: {error}").as_bytes());
    }
    if asked.json {
        out(&json(&record))?;
    } else {
        out(&text::record(&record, &Look::of_stdout()))?;
    }
    Ok(match record.verdict {
        Verdict::Same | Verdict::Varies => 0,
        Verdict::Differs => DIFFERS,
        Verdict::NeverWarm => NEVER_WARM,
    })
}

fn cannot(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot run it: {error}"))
}

fn list(kept_in: &Path, asked: &Verify) -> Result<(), Failure> {
    let records = kept::list(kept_in)
        .map_err(|error| Failure::new(format!("cannot read the verdicts: {error}")))?;
    if asked.json {
        return out(&records.iter().map(json).collect::<String>());
    }
    out(&text::list(&records, &crate::show::clock::Clock::now(), &Look::of_stdout()))
}

fn json(record: &Record) -> String {
    let line = serde_json::to_string(record);
    line.expect("a record has only string keys and whole numbers") + "\n"
}

/// What would run.
fn resolve(start: &Start, words: &[OsString]) -> Result<Program, Failure> {
    let argv: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let lookup = |name: &[u8]| start.variable(name);
    let here = process::working_directory();
    let cwd = here.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
    hob_resolve::resolve(&argv, &lookup, cwd)
        .map_err(|error| Failure { text: error.to_string(), code: error.exit_code() })
}

/// One verification.
struct Session<'a> {
    start: &'a Start,
    interrupts: &'a Interrupts,
    runs: usize,
    subject: Subject,
    name: String,
    skipped: files::Skipped,
    copy: Option<files::Copy>,
    /// How the warm runs are asked for.
    warm: How,
    /// Runs that were to be warm and were not.
    other: usize,
    progress: Progress,
}

/// A run and what it left in its directory.
struct Left {
    seen: Seen,
    files: Table,
    clipped: bool,
}

/// What came of asking for a warm run.
enum Attempt {
    Warm(Left),
    Never(String),
}

/// All runs of one program.
#[derive(Default)]
struct Both {
    cold: Vec<Left>,
    warm: Vec<Left>,
    never: Option<String>,
}

impl<'a> Session<'a> {
    fn new(
        (start, interrupts): (&'a Start, &'a Interrupts),
        asked: &Verify,
        words: Vec<OsString>,
    ) -> Result<Session<'a>, Failure> {
        if options::duration_ms(&asked.timeout).is_none() {
            let text = format!("`--timeout {}`: a time such as 500ms, 5s, 2m or 1h", asked.timeout);
            return Err(Failure { text, code: ExitCode::Usage as u8 });
        }
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("there is no directory to run in: {error}")))?;
        let own: Vec<PathBuf> = [Some(connect::directory(start)), crate::fallback::state_dir()]
            .into_iter()
            .flatten()
            .collect();
        let skipped = files::skipped(&own);
        let copy = if asked.copy { Some(copy(&here, &skipped)?) } else { None };
        let stdin = asked.stdin.as_ref().map(|path| here.join(path));
        if let Some(path) = &stdin {
            std::fs::File::open(path)
                .map_err(|error| Failure::new(format!("--stdin {}: {error}", path.display())))?;
        }
        let name = runs::name(&words);
        let directory = copy.as_ref().map_or(here, files::Copy::directory);
        let subject = Subject { words, directory, stdin, timeout: asked.timeout.clone() };
        Ok(Session {
            start,
            interrupts,
            runs: usize::from(asked.runs),
            subject,
            name,
            skipped,
            copy,
            warm: How::Warm,
            other: 0,
            progress: Progress::new(),
        })
    }

    fn verify(mut self, program: &Program, kept_in: &Path) -> Result<Record, Failure> {
        let subject = self.subject.clone();
        // What it is before it runs: a program may rewrite itself.
        let identity = Identity::of(program);
        let both = self.both(&subject, self.runs)?;
        let mut aspects = Vec::new();
        let mut verdict = Verdict::NeverWarm;
        if both.never.is_none() {
            aspects = compare_runs(&both);
            if let Program::Python(python) = program {
                let probe = world::subject(python, &subject, kept_in)
                    .map_err(|error| Failure::new(format!("cannot write the probe: {error}")))?;
                let other = self.other;
                aspects.extend(self.worlds(&probe)?);
                // Those of the probe are none of the program's.
                self.other = other;
            }
            verdict = compare::overall(&aspects);
        }
        self.progress.clear();
        let middle = |runs: &[Left]| middle_us(runs.iter().map(|left| left.seen.took).collect());
        Ok(Record {
            schema: SCHEMA.to_owned(),
            at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            program: self.part(program),
            verdict,
            reason: both.never.clone(),
            runs: Runs {
                cold: both.cold.len(),
                warm: both.warm.len(),
                other: self.other,
                cold_us: middle(&both.cold),
                warm_us: middle(&both.warm),
            },
            aspects,
            identity,
            holds: None,
            why: None,
        })
    }

    /// Runs it so often each way, in an order in which a cold run is first and last.
    fn both(&mut self, subject: &Subject, runs: usize) -> Result<Both, Failure> {
        let mut both = Both::default();
        both.cold.push(self.once(subject, How::Cold)?);
        for number in 1..=runs {
            self.progress.show(&self.name, number, runs);
            match self.until_warm(subject)? {
                Attempt::Warm(left) => both.warm.push(left),
                Attempt::Never(reason) => {
                    both.never = Some(reason);
                    return Ok(both);
                }
            }
            if number + 1 < runs {
                both.cold.push(self.once(subject, How::Cold)?);
            }
        }
        both.cold.push(self.once(subject, How::Cold)?);
        Ok(both)
    }

    fn until_warm(&mut self, subject: &Subject) -> Result<Attempt, Failure> {
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            let left = self.once(subject, self.warm)?;
            let outcome = &left.seen.outcome;
            if outcome.warm {
                return Ok(Attempt::Warm(left));
            }
            self.other += 1;
            last = outcome.reason.clone().unwrap_or_else(|| outcome.outcome.clone());
            if last == "slower-warm" {
                self.warm = How::WarmAnyway;
            } else if PASSING.contains(&last.as_str()) {
                self.wait_until_ready(subject);
            } else {
                return Ok(Attempt::Never(last));
            }
        }
        Ok(Attempt::Never(last))
    }

    /// Waits until the daemon says that the program is warm, or will not be. A wrong guess costs
    /// one more run.
    fn wait_until_ready(&self, subject: &Subject) {
        let name =
            subject.words.first().map_or(String::new(), |word| word.to_string_lossy().into());
        let begun = Instant::now();
        while begun.elapsed() < READY_WAIT && self.interrupts.came().is_none() {
            let pool = request::ask(self.start, "status").ok().and_then(|(status, _)| {
                let pools = status.get("pools")?.as_array()?;
                pools.iter().find(|pool| pool["program"] == name.as_str()).cloned()
            });
            match pool {
                None if begun.elapsed() > KNOWN_WAIT => return,
                None => {}
                Some(pool) if pool["state"] == "cold" => return,
                Some(pool) if pool["ready"].as_u64().is_some_and(|ready| ready > 0) => return,
                Some(_) => {}
            }
            std::thread::sleep(POLL);
        }
    }

    /// One run, and what it left.
    fn once(&self, subject: &Subject, how: How) -> Result<Left, Failure> {
        if self.interrupts.came().is_some() {
            return Err(Failure::new("interrupted"));
        }
        let root = &subject.directory;
        let before = files::snapshot(root, &self.skipped).map_err(cannot)?;
        let seen = runs::run(subject, how, self.interrupts).map_err(cannot)?;
        let after = files::snapshot(root, &self.skipped).map_err(cannot)?;
        let left = files::effects(root, &before, &after);
        if let Some(copy) = &self.copy {
            copy.restore(&before, &after).map_err(cannot)?;
        }
        if seen.outcome.outcome.is_empty() {
            // Only a client that did not come to its end says nothing.
            let text = String::from_utf8_lossy(&seen.stderr);
            let last = text.lines().last().unwrap_or("it said nothing").to_owned();
            return Err(Failure::new(format!("`hob run` ended without an outcome: {last}")));
        }
        Ok(Left { seen, files: left, clipped: before.clipped || after.clipped })
    }

    /// The world that the program's interpreter sees.
    fn worlds(&mut self, probe: &Subject) -> Result<Vec<Aspect>, Failure> {
        let both = self.both(probe, PROBES)?;
        let read = |runs: &[Left]| -> Option<Vec<world::World>> {
            runs.iter().map(|left| world::read(&left.seen)).collect()
        };
        let worlds =
            if both.never.is_none() { read(&both.cold).zip(read(&both.warm)) } else { None };
        Ok(match worlds {
            Some((cold, warm)) => world::compare(&cold, &warm),
            None => vec![Aspect {
                name: "world".to_owned(),
                verdict: Verdict::NeverWarm,
                diff: Vec::new(),
                note: Some(both.never.unwrap_or_else(|| "the probe said nothing".to_owned())),
            }],
        })
    }

    fn part(&self, program: &Program) -> ProgramPart {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let here = std::env::current_dir().unwrap_or_default();
        let (target, runtime, interpreter) = match program {
            Program::Python(python) => {
                (text(&python.target), "python", Some(text(&python.interpreter)))
            }
            Program::Exec(exec) => (text(&exec.file), "exec", None),
        };
        ProgramPart {
            id: hob_daemon::program_id(program, here.as_os_str().as_bytes()),
            name: self.name.clone(),
            target,
            runtime: runtime.to_owned(),
            interpreter,
            arguments: self.subject.words.len() - 1,
        }
    }
}

fn copy(here: &Path, skipped: &files::Skipped) -> Result<files::Copy, Failure> {
    files::Copy::new(here, skipped).map_err(|error| {
        let here = here.display();
        Failure::new(format!("--copy: {here} cannot be copied: {error}; run it elsewhere"))
    })
}

/// Compares what the runs of the program left.
fn compare_runs(both: &Both) -> Vec<Aspect> {
    type Part = fn(&Left) -> Vec<u8>;
    let texts = |name: &str, part: Part| {
        let of = |runs: &[Left]| runs.iter().map(part).collect::<Vec<_>>();
        compare::texts(name, &of(&both.cold), &of(&both.warm))
    };
    let all = || both.cold.iter().chain(&both.warm);
    let mut stdout = texts("stdout", |left| left.seen.stdout.clone());
    if all().any(|left| left.seen.held) {
        stdout.note = Some("a process that it left holds its output open".to_owned());
    }
    let stderr = texts("stderr", |left| left.seen.stderr.clone());
    let mut exit = texts("exit", |left| left.seen.end.clone().into_bytes());
    exit.note = both.cold.first().map(|left| left.seen.end.clone());
    let tables = |runs: &[Left]| runs.iter().map(|left| left.files.clone()).collect::<Vec<_>>();
    let mut files = compare::tables("files", &tables(&both.cold), &tables(&both.warm));
    let written = all().map(|left| left.files.len()).max().unwrap_or(0);
    files.note = match (all().any(|left| left.clipped), files.verdict, written) {
        (true, _, _) => Some("too many in this directory: not all were looked at".to_owned()),
        (false, Verdict::Varies, _) => {
            Some("what it writes depends on what is there? --copy compares more".to_owned())
        }
        (false, _, 0) => Some("none written".to_owned()),
        (false, _, count) => Some(format!("{count} written")),
    };
    vec![stdout, stderr, exit, files]
}

fn middle_us(mut times: Vec<Duration>) -> Option<u64> {
    times.sort_unstable();
    times.get(times.len() / 2).map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

/// One line on a terminal that says how far it is.
struct Progress {
    shown: bool,
}

impl Progress {
    fn new() -> Progress {
        let plain = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Progress { shown: std::io::stderr().is_terminal() && !plain }
    }

    fn show(&self, name: &str, number: usize, of: usize) {
        if self.shown {
            let name = crate::show::text::printable(name, crate::show::text::Charset::Ascii);
            let name: String = name.chars().take(40).collect();
            // A terminal that is gone needs no progress.
            let _ = write!(std::io::stderr(), "\r\u{1b}[Kverifying {name}: run {number} of {of}");
        }
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
