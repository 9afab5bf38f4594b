//! `hob hooks perform DIR`: the worker of a program that is a hooks directory. The daemon starts it, and
//! gives it one set at a time, as a message.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use hob_core::hooks::glob;
use hob_core::hooks::{AnsweredSet, AskedSet, SetRecord, Suffix};
use hob_hooks::{Event, Isolation, Limits, Runner, Set, Variables, Wait};
use hob_os::start::Start;
use hob_wire::caps::BODY_MAX;
use hob_worker::Incoming;

use super::run::Run;
use crate::failure::Failure;

/// So much of each stream of a hook is kept.
const CAPTURE_BYTES_MAX: usize = 256 * 1024;
/// An answer is no longer: it fits in a message between hosts.
const ANSWER_BYTES_MAX: usize = BODY_MAX - 64 * 1024;
/// How long before its asker's time has passed a set is ended, so that its record still comes.
const EARLIER: Duration = Duration::from_millis(500);

/// Serves until the daemon wants no more of this process.
pub(super) fn run(start: &Start, dir: &OsStr, settable: &[String]) -> Result<u8, Failure> {
    let own = Variables::inherit(start.env.iter().map(|&entry| entry.to_owned()));
    let (start, dir) = (Start { argv: start.argv.clone(), env: start.env.clone() }, dir.to_owned());
    let settable = settable.to_vec();
    let mut here = Here { start, dir, own, settable, runner: None, grace: Duration::ZERO };
    hob_worker::serve(move |message: Incoming| here.perform(&message))
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(0)
}

/// What runs the sets.
struct Here {
    start: Start,
    dir: OsString,
    own: Variables,
    /// Which variables an asker may set. By others it could have a shell or a loader run what it
    /// likes (`BASH_ENV`, `LD_PRELOAD`), where it may only have these hooks run.
    settable: Vec<String>,
    /// Made for the first set, and again where another grace is asked for.
    runner: Option<Runner>,
    grace: Duration,
}

impl Here {
    fn perform(&mut self, message: &Incoming) -> Result<hob_worker::Answer, String> {
        let asked: AskedSet = match message.payload() {
            [] => AskedSet::default(),
            payload => serde_json::from_slice(payload)
                .map_err(|error| format!("what is asked is no set of hooks: {error}"))?,
        };
        // The success of nothing would go unseen at other hosts.
        if !std::path::Path::new(&self.dir).is_dir() {
            return Err(format!("{}: there is no such directory", self.dir.display()));
        }
        let set = self.set(&asked)?;
        let grace = asked.grace_us.map_or(Limits::default().grace, Duration::from_micros);
        let left = message.remaining().map(|left| left.saturating_sub(EARLIER));
        let record = self.run(set, grace, left).map_err(|error| {
            self.runner = None;
            format!("the kernel refuses what running hooks needs: {error}")
        })?;
        let answer = AnsweredSet { schema: AnsweredSet::SCHEMA.to_owned(), set: record };
        let write = |answer: &AnsweredSet| serde_json::to_vec(answer).unwrap_or_default();
        Ok(hob_worker::Answer::json(answer.within(ANSWER_BYTES_MAX, write)))
    }

    fn set(&self, asked: &AskedSet) -> Result<Set, String> {
        let mut variables = self.own.clone();
        for (name, value) in &asked.set {
            let may_be = |pattern: &String| glob::matches(pattern, name);
            if !self.settable.iter().any(may_be) {
                return Err(format!(
                    "set {name}: no asker may set it; here, the program's section of hob.toml says \
                     which, as set = [\"{name}\"]"
                ));
            }
            variables.set(name.as_bytes(), &value.0).map_err(|why| format!("set {name}: {why}"))?;
        }
        let ignored = match &asked.ignored {
            None => Suffix::defaults(),
            Some(patterns) => {
                patterns.iter().filter_map(|pattern| Suffix::new(pattern.as_bytes())).collect()
            }
        };
        Ok(Set {
            target: asked.target.clone(),
            ignored: ignored.into(),
            kill_after: asked.kill_after_us.map(Duration::from_micros),
            warn_after: asked.warn_after_us.map(Duration::from_micros),
            isolation: if asked.spawn { Isolation::Spawn } else { Isolation::Fastest },
            ..Set::new(self.dir.as_bytes(), &variables)
        })
    }

    fn run(
        &mut self,
        set: Set,
        grace: Duration,
        left: Option<Duration>,
    ) -> std::io::Result<SetRecord> {
        if self.runner.is_none() || self.grace != grace {
            self.grace = grace;
            let limits = Limits {
                jobs: 1,
                grace,
                capture_bytes_max: CAPTURE_BYTES_MAX,
                ..Limits::default()
            };
            let mut runner = Runner::new(limits)?;
            if let Some(connect) = Run::warm(&self.start) {
                runner.warm_through(Box::new(move || connect()));
            }
            self.runner = Some(runner);
        }
        let Some(runner) = &mut self.runner else { return Err(std::io::ErrorKind::Other.into()) };
        let until = left.map(|left| std::time::Instant::now() + left);
        let id = runner.submit(set);
        let (mut record, mut is_late) = (None, false);
        while record.is_none() {
            let wait = match until.filter(|_| !is_late) {
                Some(at) => Wait::AtMost(at.saturating_duration_since(std::time::Instant::now())),
                None => Wait::Forever,
            };
            runner.turn(wait, &mut |event| {
                if let Event::SetEnded(ended) = event {
                    record = Some(ended);
                }
            })?;
            let has_passed = until.is_some_and(|at| at <= std::time::Instant::now());
            if has_passed && !is_late && record.is_none() {
                is_late = true;
                runner.cancel(id, Duration::ZERO);
            }
        }
        record.ok_or_else(|| std::io::ErrorKind::Other.into())
    }
}
