//! The runs of one verification: of the program and of the probe, in their order.
//!
//! Invariants: a run is waited for before the next one begins; a run that is to be warm and is not
//! is asked for again, a bounded number of times; whatever ends a session, its copy of the
//! directory goes with it.

use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hob_core::receipt::reason::is_passing;
use hob_core::receipt::{BARE, INSTALLED};
use hob_os::start::Start;
use serde_json::Value;

use super::change::Change;
use super::compare::{self, Aspect, Table, Verdict};
use super::ground::Ground;
use super::runs::{self, How, Seen, Subject};

use super::{Verify, files, world};
use crate::failure::Failure;
use crate::verbs::repeated::input::{self, Input};
use crate::verbs::repeated::interrupts::Interrupts;
use crate::verbs::repeated::progress::Progress;
use crate::verbs::request;
use crate::{connect, durations};

/// How often a program is run until a run is warm.
const TRIES_MAX: usize = 12;
/// How long is waited for warm state between two of these.
const READY_WAIT: Duration = Duration::from_secs(15);
/// The same while the daemon does not know the program.
const KNOWN_WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Runs of the probe, each way.
const PROBES: usize = 2;

/// Reasons of a cold call that is warm all the same if an isolation is asked for.
const AVOIDED: [&str; 3] = ["slower-warm", "compared", "differs"];

/// One verification.
pub(super) struct Session<'a> {
    pub(super) start: &'a Start,
    pub(super) interrupts: &'a Interrupts,
    pub(super) runs: usize,
    pub(super) subject: Subject,
    pub(super) name: String,
    skipped: files::Skipped,
    copy: Option<files::Copy>,
    /// Where worlds are made, and what was given to read lies.
    pub(super) ground: Option<Rc<Ground>>,
    /// How the warm runs are asked for.
    warm: How,
    /// Runs that were to be warm and were not.
    pub(super) other: usize,
    /// What is not the same in the caller's own world.
    pub(super) known: Vec<(String, Verdict)>,
    /// When no further world is tried.
    pub(super) deadline: Option<Instant>,
    pub(super) progress: Progress,
}

/// A run and what it left in its directory.
pub(super) struct Left {
    pub(super) seen: Seen,
    pub(super) files: Table,
    clipped: bool,
}

/// What came of asking for a warm run.
pub(super) enum Attempt {
    Warm(Left),
    /// Why, and what the last run left.
    Never(String, Left),
}

/// All runs of one program.
#[derive(Default)]
pub(super) struct Both {
    pub(super) cold: Vec<Left>,
    pub(super) warm: Vec<Left>,
    pub(super) never: Option<String>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        (start, interrupts): (&'a Start, &'a Interrupts),
        asked: &Verify,
        words: Vec<OsString>,
    ) -> Result<Session<'a>, Failure> {
        if let Err(wrong) = durations::parse(&asked.timeout) {
            return Err(Failure::usage(format!("--timeout {}: {wrong}", asked.timeout)));
        }
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("there is no directory to run in: {error}")))?;
        let skipped: files::Skipped =
            [Some(connect::directory(start)), crate::fallback::state_dir()]
                .into_iter()
                .flatten()
                .collect();
        let (input, ground) = input(asked, &here, interrupts)?;
        let copy = if asked.copy { Some(copy(&here, &skipped)?) } else { None };
        let name = runs::name(&words);
        let directory = copy.as_ref().map_or(here, files::Copy::directory);
        let timeout = asked.timeout.clone();
        let subject = Subject { words, directory, input, timeout, change: Change::default() };
        Ok(Session {
            start,
            interrupts,
            runs: usize::from(asked.runs),
            subject,
            name,
            skipped,
            copy,
            ground: ground.map(Rc::new),
            warm: How::Warm,
            other: 0,
            known: Vec::new(),
            deadline: None,
            progress: Progress::new(),
        })
    }

    /// Keeps in mind what is not the same in the caller's own world.
    pub(super) fn know(&mut self, aspects: &[Aspect]) {
        let faults = aspects.iter().filter(|aspect| aspect.verdict.is_fault());
        self.known.extend(faults.map(|aspect| (aspect.name.clone(), aspect.verdict)));
    }

    /// Runs it so often each way, in an order in which a cold run is first and last.
    pub(super) fn both(&mut self, subject: &Subject, runs: usize) -> Result<Both, Failure> {
        let mut both = Both::default();
        both.cold.push(self.once(subject, How::Cold)?);
        for number in 1..=runs {
            self.progress.show(&format!("verifying {}: run {number} of {runs}", self.name));
            match self.until_warm(subject)? {
                Attempt::Warm(left) => both.warm.push(left),
                Attempt::Never(reason, _) => {
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

    /// Runs it through hob until a run is warm, or no further one will be.
    pub(super) fn until_warm(&mut self, subject: &Subject) -> Result<Attempt, Failure> {
        for tries in 1.. {
            let left = self.once(subject, self.warm)?;
            let outcome = &left.seen.outcome;
            if outcome.warm
                && !outcome
                    .reason
                    .as_deref()
                    .is_some_and(|reason| [BARE, INSTALLED].contains(&reason))
            {
                return Ok(Attempt::Warm(left));
            }
            self.other += 1;
            let reason = outcome.reason.clone().unwrap_or_else(|| outcome.outcome.clone());
            let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if AVOIDED.contains(&reason.as_str()) && self.warm == How::Warm {
                self.warm = How::WarmAnyway;
            } else if is_passing(&reason) && tries < TRIES_MAX && !is_over {
                self.wait_until_ready(subject);
            } else {
                return Ok(Attempt::Never(reason, left));
            }
        }
        Err(Failure::new("no run was warm"))
    }

    /// Waits until the daemon says that the program is warm, or will not be. A wrong guess costs
    /// one more run.
    fn wait_until_ready(&self, subject: &Subject) {
        let name =
            subject.words.first().map_or(String::new(), |word| word.to_string_lossy().into());
        let begun = Instant::now();
        while begun.elapsed() < READY_WAIT && self.interrupts.came().is_none() {
            let pools = request::ask(self.start, "status").ok().and_then(|(status, _)| {
                let pools = status.get("pools")?.as_array()?;
                let own = pools.iter().filter(|pool| pool["program"] == name.as_str());
                Some(own.cloned().collect::<Vec<_>>())
            });
            let pools = pools.unwrap_or_default();
            // Other worlds may have pools of their own: the one that is meant may be any of them.
            let is_made = |pool: &Value| pool["state"] == "warming" || pool["state"] == "waiting";
            let is_cold = |pool: &Value| pool["state"] == "cold";
            let is_ready = |pool: &Value| pool["ready"].as_u64().is_some_and(|ready| ready > 0);
            let is_done = !pools.iter().any(is_made)
                && pools.iter().any(|pool| is_cold(pool) || is_ready(pool));
            if is_done || (pools.is_empty() && begun.elapsed() > KNOWN_WAIT) {
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// One run, and what it left.
    pub(super) fn once(&self, subject: &Subject, how: How) -> Result<Left, Failure> {
        if self.interrupts.came().is_some() {
            return Err(Failure::new("interrupted"));
        }
        let root = &subject.directory;
        let before = files::snapshot(root, &self.skipped).map_err(cannot)?;
        let seen = runs::run(subject, how, self.interrupts).map_err(cannot)?;
        let after = files::snapshot(root, &self.skipped).map_err(cannot)?;
        let left = files::effects(root, &before, &after);
        match (&self.copy, &self.ground) {
            (Some(copy), _) if *root == copy.directory() => {
                copy.restore(&before, &after).map_err(cannot)?;
            }
            // The next one finds it empty again.
            (_, Some(ground)) if ground.holds(root) => ground.empty(root).map_err(cannot)?,
            (Some(_) | None, _) => {}
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
    pub(super) fn seen(&mut self, probe: &Subject) -> Result<Vec<Aspect>, Failure> {
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
}

fn copy(here: &Path, skipped: &files::Skipped) -> Result<files::Copy, Failure> {
    files::Copy::new(here, skipped).map_err(|error| {
        let here = here.display();
        Failure::new(format!("--copy: {here} cannot be copied: {error}; run it elsewhere"))
    })
}

/// Compares what the runs of the program left.
pub(super) fn compare_runs(both: &Both) -> Vec<Aspect> {
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
    let mut exit = texts("exit", |left| (left.seen.end.clone() + "\n").into_bytes());
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

pub(super) fn cannot(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot run it: {error}"))
}

/// What the program reads, and where it lies if it was given here.
fn input(
    asked: &Verify,
    here: &Path,
    interrupts: &Interrupts,
) -> Result<(Input, Option<Ground>), Failure> {
    if let Some(path) = asked.stdin.as_ref() {
        std::fs::File::open(here.join(path))
            .map_err(|error| Failure::new(format!("--stdin {}: {error}", path.display())))?;
        return Ok((Input::File { path: here.join(path), offset: 0 }, None));
    }
    let given = input::given(interrupts)
        .map_err(|error| Failure::new(format!("the standard input cannot be taken: {error}")))?;
    let Some(text) = given else { return Ok((Input::Null, None)) };
    let ground = Ground::new().map_err(cannot)?;
    let path = ground.file("given", &text).map_err(cannot)?;
    Ok((Input::File { path, offset: 0 }, Some(ground)))
}
