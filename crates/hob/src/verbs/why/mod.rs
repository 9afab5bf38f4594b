//! `hob why PROGRAM [ARGUMENT]...`: where a cold start's time goes, and what warmth would save.
//!
//! ```text
//! cold::image ─▶ rounds: run (plain), run (watched) ─▶ split ─▶ report ─▶ text, or JSON
//!                          └ loader: which file is the script    ├ receipts: measured warm calls
//!                                                                ├ floor: what a call costs here
//!                                                                ├ trial: warm calls of both
//!                                                                └ repeated: what calls import
//! ```
//! Owns: the command, and the order of runs. Invariants: the caller's daemon is neither needed nor
//! started (`floor` has one of its own for a moment); the program is executed exactly as
//! `hob run --cold` would, in the caller's directory, with `/dev/null` as its input; its output
//! never mixes with the report.
//!
//! Deliberately not here: changing the program, or its command line. A Python program's imports
//! are stamped by a file that its interpreter finds by `PYTHONPATH`, in watched runs only.

mod floor;
mod hook;
mod imports;
mod loader;
mod repeated;
pub mod report;
mod run;
mod split;
mod text;
mod trial;

pub use imports::Dear;
pub use split::PhaseTime;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;

use hob_os::clock::now_ns;
use hob_os::process;
use hob_os::signals::Set;
use hob_os::spawn::Image;
use hob_os::start::Start;
use hob_resolve::near::nearest;
use hob_resolve::{Program, TargetKind};
use hob_runtimes::RuntimeId;

use self::floor::Daemon;
use self::hook::Hook;
use self::loader::Loader;
use self::report::{Known, MeasuredPart, Round};
use self::run::{How, RunError, Runner, Seen};
use self::trial::Trial;
use super::log;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::Look;
use crate::{cold, say, show};

/// Rounds, where none are asked for, and after which time no more is begun.
const ROUNDS: usize = 5;
const ROUNDS_NS_MAX: u64 = 4_000_000_000;
/// Progress is shown after this time.
const PROGRESS_AFTER_NS: u64 = 1_000_000_000;
/// How often hob itself is started, to know what a start costs.
const CLIENTS: usize = 5;
/// How many receipts are looked at, and how many of the program's are taken.
const RECEIPTS_MAX: usize = 5000;
const MEASURED_MAX: usize = 200;

/// The options of `hob why`.
#[derive(Debug, Args)]
#[command(
    override_usage = "hob why [OPTIONS] PROGRAM [ARGUMENT]...\n       hob why [OPTIONS] -m MODULE [ARGUMENT]...\n       hob why --code CODE"
)]
pub(crate) struct Why {
    /// How many rounds: each executes the program twice, plain and watched. Without this at most
    /// five, and then warm calls of a Python program are tried, some 36 times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// A shell command that is run before each execution, such as one that restores a file
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<OsString>,
    /// Show what the program writes (the first time), on stderr
    #[arg(long)]
    show_output: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Say what a reason code of a receipt means, and what to do; nothing is executed
    #[arg(long, value_name = "CODE", exclusive = true)]
    code: Option<String>,
    /// A script, a command, an interpreter with its script, or `-m MODULE`; then its arguments
    #[arg(required_unless_present = "code", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM [ARGUMENT]...")]
    program: Vec<OsString>,
}

/// Measures, and prints the report.
pub(crate) fn run(start: &Start, why: &Why) -> Result<(), Failure> {
    if let Some(code) = &why.code {
        return explain(code);
    }
    let argv: Vec<&[u8]> = why.program.iter().map(|word| word.as_bytes()).collect();
    let (program, image) = cold::image(start, &argv)
        .map_err(|error| Failure::not_resolved(start, argv.first().copied(), &error))?;
    let blocked = process::own_status().map(|status| status.blocked).unwrap_or_default();
    let runner = Runner::new(Set(blocked)).map_err(|error| cannot("measure", &error))?;
    let rounds = measure(&runner, &program, &image, why)?;
    let mut known = Known {
        argv: &argv,
        program: &program,
        call_ns: 0,
        trial: Trial::Not,
        repeated: None,
        measured: None,
        next: format!("hob run {}", String::from_utf8_lossy(&say::command(argv.iter().copied()))),
    };
    if program.is_hosted() {
        let daemon = Daemon::begin(&runner);
        let tried = match &daemon {
            Some(daemon) => {
                try_warm((&runner, daemon), &program.interpreter, &image, &argv, (why, &rounds))?
            }
            None => (None, Trial::Not),
        };
        known.trial = tried.1;
        known.call_ns = match tried.0 {
            Some(call_ns) => call_ns,
            None => estimated_call_ns(&runner).map_err(|error| failed(&image, error))?,
        };
        if let Some(daemon) = &daemon {
            let asked = (&program, image.env.as_slice());
            let (names, runtimes) = (report::imported(&rounds), daemon.runtimes());
            // Where it is not wanted more often than it was asked for, it is not executed again.
            let own = match known.trial {
                Trial::Not => Ok(repeated::Own::new()),
                Trial::Warm(_) | Trial::Cold(_) | Trial::Differs => {
                    prepare(why)?;
                    repeated::own(&runner, (&runtimes, &daemon.notes()), asked)
                }
            };
            let own = own.map_err(|error| failed(&image, error))?;
            let found = repeated::find(&runner, &runtimes, asked, (&names, own));
            known.repeated = found.map_err(|error| failed(&image, error))?;
        }
        drop(daemon);
        log::flush(start);
        known.measured = measured(&program.target.name, report::arguments(&known));
    }
    let report = report::report(&known, &rounds);
    if why.json {
        let text = serde_json::to_string(&report).expect("string keys and finite numbers");
        return out_json(&format!("{text}\n"));
    }
    out(&text::report(&report, &Look::of_stdout()))
}

/// What a reason code means, wherever it can stand.
fn explain(code: &str) -> Result<(), Failure> {
    let look = Look::of_stdout();
    if let Some(text) = show::reasons::codes::explained(code, &look) {
        return out(&text);
    }
    let code = show::text::printable(code, look.charset);
    Err(Failure::usage(match nearest(&code, show::reasons::codes::all()) {
        Some(near) => format!("{code}: no reason code; did you mean `{near}`?"),
        None => format!("{code}: no reason code; `hob last --json` has that of a call"),
    }))
}

fn cannot(what: &str, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot {what}: {why}; `hob run --cold` runs it without a report"))
}

/// All rounds.
fn measure(
    runner: &Runner,
    program: &Program,
    image: &Image,
    why: &Why,
) -> Result<Vec<Round>, Failure> {
    let mut loader = Loader::default();
    let mut hook = None;
    if program.runtime == RuntimeId::Python {
        let made = Hook::make().map_err(|error| cannot("make a temporary directory", &error))?;
        loader.hook = Some(made.file());
        hook = Some(made);
        if program.target.kind == TargetKind::Module {
            let first = program.target.name.split(|byte| *byte == b'.').next();
            loader.module = first.map(<[u8]>::to_vec);
        }
    }
    let mut progress = Progress::new(why.runs.map_or(ROUNDS, usize::from));
    let ending = if why.runs.is_some() { Ending::Asked } else { Ending::ByTime };
    let mut rounds: Vec<Round> = Vec::new();
    while progress.goes_on(rounds.len(), ending) {
        let once = |image: &Image, how: How| -> Result<Seen, Failure> {
            prepare(why)?;
            runner.run(image, &loader, how).map_err(|error| failed(image, error))
        };
        let plain = once(image, How::Plain)?;
        if why.show_output && rounds.is_empty() {
            // A closed stderr is nobody's loss.
            let _ = say::raw(say::Stream::Err, &plain.output);
        }
        let (watched, stamps) = match &hook {
            Some(hook) => {
                let env = hook.environment(&image.env);
                let (file, argv) = (image.file.clone(), image.argv.clone());
                let watched = once(&Image { file, argv, env }, How::Watched)?;
                (watched, Some(hook.take()))
            }
            None => (once(image, How::Watched)?, None),
        };
        rounds.push(Round { plain, watched, stamps });
    }
    Ok(rounds)
}

/// What a warm call costs here and now, however little its program does, and calls of the program
/// itself. Who asks for a number of rounds gets as many executions as that makes, and a program
/// that takes too long for a second round none more.
fn try_warm(
    (runner, daemon): (&Runner, &Daemon),
    interpreter: &[u8],
    image: &Image,
    argv: &[&[u8]],
    (why, rounds): (&Why, &[Round]),
) -> Result<(Option<u64>, Trial), Failure> {
    let fails = |error| failed(image, error);
    let Some(empty) = daemon.warm_empty(runner, interpreter, &image.env).map_err(fails)? else {
        return Ok((None, Trial::Not));
    };
    let mut ends = rounds.iter().flat_map(|round| [&round.plain, &round.watched]);
    let first = rounds.first().map_or(0, |round| round.plain.status);
    // A program that ends as it likes does so warm.
    let alike = ends.all(|seen| seen.status == first);
    let call = daemon.call(argv, &image.env);
    let wanted = why.runs.is_none() && rounds.len() > 1 && alike;
    let execute = |image: &Image| runner.run(image, &Loader::default(), How::Plain).map_err(fails);
    let prepared = |image: &Image| prepare(why).and_then(|()| execute(image));
    let program: &dyn Fn() -> Result<Seen, Failure> = &|| prepared(&call);
    trial::run(daemon, &|| execute(&empty), wanted.then_some((program, first)))
}

/// What a warm call costs, from what it costs to start a small static program and wait for it:
/// hob itself.
fn estimated_call_ns(runner: &Runner) -> Result<u64, RunError> {
    let image = Image {
        file: c"/proc/self/exe".to_owned(),
        argv: vec![c"hob".to_owned(), c"--version".to_owned()],
        env: Vec::new(),
    };
    let once = || {
        let seen = runner.run(&image, &Loader::default(), How::Plain)?;
        Ok(seen.ended_ns.saturating_sub(seen.begun_ns))
    };
    let clients: Result<Vec<u64>, RunError> = (0..CLIENTS).map(|_| once()).collect();
    Ok(report::estimated_call_ns(split::median(clients?)))
}

/// Runs the command of `--prepare`; it must succeed.
fn prepare(why: &Why) -> Result<(), Failure> {
    let Some(command) = &why.prepare else { return Ok(()) };
    let status = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .stdout(std::process::Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("--prepare: the command failed: {status}"))),
        Err(error) => Err(Failure::new(format!("--prepare: cannot start /bin/sh: {error}"))),
    }
}

fn failed(image: &Image, error: RunError) -> Failure {
    let name = image.file.to_string_lossy();
    match error {
        RunError::NotExecuted(errno) => {
            let (code, text) = cold::refusal(image, errno);
            Failure { text, code: code as u8 }
        }
        RunError::NotWatched(errno) => Failure::new(format!(
            "{name}: cannot be watched: ptrace is refused here ({errno}); in a container, allow \
             it with --cap-add=SYS_PTRACE"
        )),
        RunError::Failed(errno) => Failure::new(format!("{name}: cannot be measured: {errno}")),
        RunError::Stopped(signal) => Failure {
            text: format!("{name}: stopped by a signal before it was measured"),
            code: u8::try_from(128 + signal).unwrap_or(130),
        },
    }
}

/// What the receipts say of warm calls of this program with as many arguments.
fn measured(target: &[u8], arguments: usize) -> Option<MeasuredPart> {
    let receipts = hob_daemon::recorder::reader::newest(&log::state_dir().ok()?).ok()?;
    let target = String::from_utf8_lossy(target);
    let times: Vec<u64> = receipts
        .take(RECEIPTS_MAX)
        .filter(|one| {
            one.found_its_own() && one.outcome.kind == "exited" && one.program.target == target
        })
        .filter(|one| one.program.arguments == arguments)
        .map(|one| one.total_us)
        .take(MEASURED_MAX)
        .collect();
    let calls = times.len();
    (calls > 0).then(|| MeasuredPart { calls, p50_us: split::median(times) })
}

/// What ends the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The number that was asked for.
    Asked,
    /// That too, or time.
    ByTime,
}

/// How far the rounds are, for a person who waits at a terminal.
struct Progress {
    begun_ns: u64,
    count: usize,
    shown: bool,
}

impl Progress {
    fn new(count: usize) -> Progress {
        Progress { begun_ns: now_ns(), count, shown: false }
    }

    /// Whether there is another round. Where nobody asked for a number, time ends them.
    fn goes_on(&mut self, done: usize, ending: Ending) -> bool {
        let took_ns = now_ns().saturating_sub(self.begun_ns);
        let goes_on =
            done < self.count && (done == 0 || ending == Ending::Asked || took_ns < ROUNDS_NS_MAX);
        if !goes_on && self.shown {
            say::over("");
        } else if goes_on && took_ns > PROGRESS_AFTER_NS && say::Stream::Err.is_terminal() {
            self.shown = true;
            say::over(&format!("round {} of {}", done + 1, self.count));
        }
        goes_on
    }
}
