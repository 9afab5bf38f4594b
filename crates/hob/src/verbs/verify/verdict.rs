//! One verification: the program in its caller's own world, what its interpreter sees there, the
//! other worlds; and the record that comes of them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hob_daemon::recorder::format;
use hob_resolve::Program;
use hob_runtimes::RuntimeId;

use super::compare::{self, Verdict};
use super::ground::Ground;
use super::record::{Identity, ProgramPart, Record, Runs, SCHEMA, WorldPart};
use super::session::{Left, Session, cannot, compare_runs};
use super::world;
use super::worlds::Chosen;
use crate::failure::Failure;

impl Session<'_> {
    /// Runs it all.
    pub(super) fn verify(
        mut self,
        program: &Program,
        kept_in: &Path,
        chosen: &Chosen,
        within: Duration,
    ) -> Result<Record, Failure> {
        let subject = self.subject.clone();
        // What it is before it runs: a program may rewrite itself.
        let identity = Identity::of(program);
        let both = self.both(&subject, self.runs)?;
        let (mut aspects, mut worlds) = (Vec::new(), Vec::new());
        let other = self.other;
        let mut verdict = Verdict::NeverWarm;
        if both.never.is_none() {
            aspects = compare_runs(&both);
            // The probe is a script of that language.
            if program.runtime == RuntimeId::Python {
                let probe = world::subject(program, &subject, kept_in)
                    .map_err(|error| Failure::new(format!("cannot write the probe: {error}")))?;
                aspects.extend(self.seen(&probe)?);
            }
            self.know(&aspects);
            worlds = self.other_worlds((program, chosen), within)?;
            let found = worlds.iter().map(|world| world.verdict.verdict());
            verdict = found.fold(compare::overall(&aspects), Verdict::max);
        }
        self.progress.clear();
        let middle = |runs: &[Left]| middle_us(runs.iter().map(|left| left.seen.took).collect());
        Ok(Record {
            schema: SCHEMA.to_owned(),
            at: format::moment(jiff::Timestamp::now()),
            program: self.part(program),
            verdict,
            reason: both.never.clone(),
            runs: Runs {
                cold: both.cold.len(),
                warm: both.warm.len(),
                // Those of the probe are none of the program's, and worlds have their own.
                other,
                cold_us: middle(&both.cold),
                warm_us: middle(&both.warm),
            },
            aspects,
            worlds,
            identity,
            holds: None,
            why: None,
        })
    }

    /// The program in the worlds that are asked for.
    fn other_worlds(
        &mut self,
        asked: (&Program, &Chosen),
        within: Duration,
    ) -> Result<Vec<WorldPart>, Failure> {
        if asked.1.0.is_empty() {
            return Ok(Vec::new());
        }
        self.deadline = Some(Instant::now() + within);
        let ground = match &self.ground {
            Some(ground) => Rc::clone(ground),
            None => Rc::new(Ground::new().map_err(cannot)?),
        };
        self.ground = Some(Rc::clone(&ground));
        self.vary(asked, &ground)
    }

    fn part(&self, program: &Program) -> ProgramPart {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let here = std::env::current_dir().unwrap_or_default();
        ProgramPart {
            id: hob_daemon::program_id(program, here.as_os_str().as_bytes()),
            name: self.name.clone(),
            target: text(&program.target.name),
            runtime: program.row().name.to_owned(),
            interpreter: program.interpreter().map(text),
            arguments: self.subject.words.len() - 1,
        }
    }
}

fn middle_us(mut times: Vec<Duration>) -> Option<u64> {
    times.sort_unstable();
    times.get(times.len() / 2).map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}
