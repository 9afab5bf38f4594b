//! Faults of chance: in each round a program, a caller and a fault are drawn, the fault strikes at
//! a random moment, and the outcome is judged.
//!
//! The rules: a call has its right output and its program began once; or, where what was killed
//! may have had it, one line and exit 125, or the signal that killed it, and the program began at
//! most once. Nothing hangs. Nothing is left: processes, descriptors, sockets, files.
//!
//! Everything is drawn from the seed, so that a seed and a number of rounds repeat the same
//! choices; how processes interleave is the machine's own chance.
//!
//! Does not: panic at a wrong outcome. A report has all of them, so that a long run tells more
//! than its first failure.

pub mod draw;
mod fault;
mod judge;
mod leaks;
mod program;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{World, wait};
use draw::Draw;
use fault::{Fault, Moment};
use judge::{Caller, Ended};
use program::Kind;

/// How long a call may take before it counts as one that hangs. No program here takes a second.
const HANG: Duration = Duration::from_secs(25);
/// After what time a call is held by a daemon that stands still. Between two system calls it has
/// taken the call and not given it; no other call is held, and none of these in its tests.
const HELD: Duration = Duration::from_secs(5);
/// How often what is left is looked for.
const LEAKS_EVERY: usize = 25;
/// How many failures are told in full.
const TOLD_MAX: usize = 20;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// The seed of all choices.
    pub seed: u64,
    /// Rounds that were run.
    pub rounds: usize,
    /// How often each fault struck.
    pub faults: BTreeMap<&'static str, usize>,
    /// Calls that did not end.
    pub hangs: usize,
    /// Calls that broke a rule.
    pub wrong: usize,
    /// What was left behind.
    pub leaks: usize,
    /// Calls that ended with 125 and one line, as they may.
    pub lost: usize,
    /// Calls whose program was killed, as they may.
    pub killed: usize,
    /// Calls that a daemon was about to give when it was stopped, so that they waited for it.
    pub held: usize,
    /// The first failures, each with its round.
    pub told: Vec<String>,
}

impl Report {
    /// Whether no rule was broken.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.hangs + self.wrong + self.leaks == 0
    }

    fn tell(&mut self, text: String) {
        if self.told.len() < TOLD_MAX {
            self.told.push(text);
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "seed {}, {} rounds: {} hangs, {} wrong outcomes, {} leaks ({} lost with 125, {} killed, {} held)",
            self.seed,
            self.rounds,
            self.hangs,
            self.wrong,
            self.leaks,
            self.lost,
            self.killed,
            self.held
        )?;
        for (fault, count) in &self.faults {
            writeln!(f, "  {count:4} x {fault}")?;
        }
        self.told.iter().try_for_each(|failure| writeln!(f, "{failure}"))
    }
}

/// What a round is made of.
#[derive(Debug, Clone, Copy)]
struct Round {
    number: usize,
    kind: Kind,
    caller: Caller,
    fault: Fault,
    moment: Moment,
}

/// Runs the rounds, or as many of them as there is time for; tells of each that is done.
///
/// # Panics
/// When the harness itself fails: no binary, no folder.
#[must_use]
pub fn run(
    binary: &Path,
    seed: u64,
    rounds: usize,
    time_max: Duration,
    mut tell: impl FnMut(usize),
) -> Report {
    let mut report = Report { seed, ..Report::default() };
    let start = Instant::now();
    let world = World::of(binary.canonicalize().unwrap_or_else(|_| binary.to_owned()));
    world.hob(&["start"]).go().succeeded();
    let programs = program::write(&world);
    while report.rounds < rounds && start.elapsed() < time_max {
        let mut draw = Draw::of_round(seed, report.rounds);
        let round = Round {
            number: report.rounds,
            kind: draw.pick(&Kind::ALL),
            caller: draw.pick(&Caller::ALL),
            fault: draw.pick(&Fault::ALL),
            moment: Moment::draw(&mut draw),
        };
        *report.faults.entry(round.fault.name()).or_default() += 1;
        one(&world, &programs, round, &mut draw, &mut report);
        report.rounds += 1;
        tell(report.rounds);
        if report.rounds.is_multiple_of(LEAKS_EVERY) {
            leaks::look(&world, &mut report);
        }
    }
    judge::effects_at_the_end(&world, &mut report);
    leaks::end(&world, &mut report);
    report
}

/// One round. Whatever it finds goes into the report.
fn one(
    world: &World,
    programs: &program::Programs,
    round: Round,
    draw: &mut Draw,
    report: &mut Report,
) {
    if draw.chance(700) {
        programs.warm_up(world, round.kind);
    }
    let call = programs.call(world, round.kind, &format!("r{}", round.number));
    let run = round.caller.wrap(world, call.run.clone());
    let before = fault::Victims::look(world, round.fault);
    let mut command = None;
    if round.moment == Moment::Before {
        command = fault::strike(world, round.fault, &before, draw);
    }
    let running = run.start();
    if round.moment != Moment::Before {
        round.moment.wait(&call.effects);
        command = fault::strike(world, round.fault, &before, draw);
    }
    round.caller.act(&running, draw);
    // A daemon that stands still holds up nothing: neither the call nor who reads its output. But
    // it passes no signal on.
    let stands = round.fault == Fault::DaemonStopped && round.caller != Caller::Terminated;
    let bound = if stands { HELD } else { fault::STOPPED_MAX };
    let ended = wait::ended(running.pid(), bound);
    report.held += usize::from(stands && !ended);
    fault::undo(round.fault, &before);
    if !ended && !wait::ended(running.pid(), HANG) {
        report.hangs += 1;
        let out = String::from_utf8_lossy(&running.out()).into_owned();
        report.tell(format!("hang: {round:?}: {out}"));
        return;
    }
    let outcome = running.finish();
    match judge::judge(round, &call, &outcome) {
        Ok(Ended::Right) => {}
        Ok(Ended::Lost) => report.lost += 1,
        Ok(Ended::Killed) => report.killed += 1,
        Err(why) => {
            report.wrong += 1;
            let log = log_end(world);
            report.tell(format!("wrong: {round:?}: {why}: {outcome:?}; the daemon's log: {log}"));
        }
    }
    fault::settle(round.fault, &before);
    if command.is_some_and(|command| !wait::ended(command.pid(), HANG)) {
        report.hangs += 1;
        report.tell(format!("hang: {round:?}: the command beside it"));
    }
    if let Err(why) = fault::aftermath(world, programs, round.fault, round.number) {
        report.wrong += 1;
        report.tell(format!("wrong: {round:?}: {why}; the daemon's log: {}", log_end(world)));
    }
}

/// The end of both logs: what the runtimes said, and why a zygote ended.
fn log_end(world: &World) -> String {
    let end = |name: &str| {
        let log = crate::run::read(world.hob_dir().join(name));
        String::from_utf8_lossy(&log[log.len().saturating_sub(4000)..]).into_owned()
    };
    end("log") + &end("daemon.log")
}
