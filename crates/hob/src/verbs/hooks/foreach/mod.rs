//! `hob hooks run DIR --for-each FILE`: the same directory for every target of a file, several at
//! once, with a progress line, a resume file, a summary and reports.
//!
//! ```text
//! targets ──place?─▶ performer ──began, ended──▶ resume file ──▶ reports
//!            ▲          └──────────────────▶ tally ───────▶ progress line, summary
//!            └── ^C, a full disk, a mistake in the file: nothing more is begun
//! ```
//! One that failed may be tried again before the next target (`tries`).
//!
//! Invariants: what ended is in the resume file before the next target is taken; memory does not
//! grow with the number of targets.

mod hosts;
mod performer;
mod queue;
mod tries;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use hob_core::hooks::{Bytes, HookOutcome, SetRecord};
use hob_hooks::{Event, Limits, Set, SetId, Stream, WorkSource};
use hob_os::start::Start;
use jiff::Timestamp;

use super::dry;
use super::progress::{Counts, thousands};
use super::receipt::Told;
use super::report::{self, Overview, Reports};
use super::resume::{self, Earlier, Journal, Past, ResumeError};
use super::run::{Run, SIGNALLED, Signals, Wish};
use super::screen::{DRAW, Screen};
use super::summary;
use super::tag::{self, Tagged};
use super::tally::{Ended, Tally, failed};
use super::targets::{Source, TargetError};
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::Look;
use crate::show::text::{Charset, printable};
use crate::{fallback, say};
use hosts::{Hosts, Wanted};
use performer::{Performer, Stop};
use queue::Queue;
use tries::{Given, Tries};

/// The name of the summary's format.
const SCHEMA: &str = "hob.hooks-summary/1";
/// How many targets that had begun are named.
const NAMED_MAX: usize = 5;

/// Runs the verb; returns its exit code.
pub(crate) fn run(start: &Start, asked: &Run, file: &Path) -> Result<u8, Failure> {
    let many = &asked.many;
    let is_elsewhere = !many.hosts.is_empty();
    if !is_elsewhere {
        asked.look_for_directory()?;
    }
    // A host has an environment of its own.
    let own = if is_elsewhere { &[] } else { start.env.as_slice() };
    let mut variables = asked.variables(own)?;
    // A host has its own say of what an asker may set.
    if many.retries > 0 && !is_elsewhere {
        let set = variables.set(tries::VARIABLE.as_bytes(), b"1");
        set.map_err(|why| Failure::usage(why.to_string()))?;
    }
    let set = asked.set(&variables)?;
    if is_elsewhere {
        hosts::can_go(&set).map_err(Failure::usage)?;
    }
    let limits = many.limits(asked.limits(Limits::default().jobs)?);
    let mut source = Source::open(file).map_err(|error| wrong(&error))?;
    let total = source.count().map_err(|error| wrong(&error))?;
    let path = fallback::state_dir().map(|dir| resume::path(&dir, asked.dir.as_ref(), file));
    if asked.dry_run {
        let past = path.map(|path| Journal::peek(&path, many.earlier()));
        let past = past.transpose().map_err(|error| Failure::new(error.to_string()))?;
        return dry::show(&set, &mut source, past.unwrap_or_else(Past::none), total).map(|()| 0);
    }
    let mut reports = asked.reports()?;
    let (journal, past) = open(path.as_deref(), many.earlier())?;
    greet(&past, many.earlier(), total);
    let dir = PathBuf::from(&asked.dir);
    let (mut performer, jobs) = performer(start, asked, &dir, (limits, total))?;
    // Now that something can run; and while a signal still ends the wait for a FIFO's reader.
    let begun = reports.begin(&journal, &past.tally);
    begun.map_err(|why| Failure::new(format!("--report {why}")))?;
    let signals = Signals::new(&mut performer)?;
    let screen = Screen::new(&mut performer, asked.json, past.tally.ended());
    let mut round = Round {
        journal,
        screen,
        signals,
        performer: performer.stop(),
        counts: Counts { ended: past.tally.ended(), failed: past.tally.failed(), total },
        tally: past.tally.clone(),
        given: HashMap::new(),
        tries: Tries::new(many.retries),
        free: BTreeSet::new(),
        lanes: 0,
        ending: None,
        unwritten: Vec::new(),
        told: Told::new(asked.dir.as_encoded_bytes()),
        halt: many.halt(total),
        failed: 0,
        tagged: many.tag.then(Tagged::default),
        reports,
    };
    round.sit(&dir, source.path(), jobs);
    let targets = source.targets().map_err(|error| wrong(&error))?;
    let mut queue = Queue { targets, ended: false, past, set, variables };
    let left = performer.run(&mut Work { round: &mut round, queue: &mut queue })?;
    if let Some(why) = left.filter(|_| round.ending.is_none()) {
        round.ending = Some(Ending::Fault(why));
    }
    round.told.tell(start);
    round.close(&dir, source.path(), asked.json)
}

/// Who performs the sets, and how many at one time.
fn performer(
    start: &Start,
    asked: &Run,
    dir: &Path,
    (limits, total): (Limits, u64),
) -> Result<(Performer, u32), Failure> {
    let many = &asked.many;
    let count = |jobs: usize| u32::try_from(jobs).unwrap_or(u32::MAX);
    if many.hosts.is_empty() {
        // No more than there are targets: where that leaves a processor free, hooks are prestarted
        // on it.
        let at_once = limits.jobs.min(usize::try_from(total).unwrap_or(usize::MAX)).max(1);
        let here = Performer::here(Limits { jobs: at_once, ..limits }, Run::warm(start))?;
        return Ok((here, count(limits.jobs)));
    }
    let wanted = Wanted {
        dir,
        patterns: &many.hosts,
        at_once: many.has_jobs().then_some(limits.jobs),
        lost_after: many.lost_after()?,
        grace: limits.grace,
    };
    let hosts = Hosts::find(start, &wanted)?;
    if !asked.json {
        let text = format!("hosts, with what each takes at one time: {}", hosts.shown());
        say::line(printable(&text, Charset::Unicode).as_bytes());
    }
    let jobs = count(hosts.at_once());
    Ok((Performer::Hosts(Box::new(hosts)), jobs))
}

fn wrong(error: &TargetError) -> Failure {
    Failure::usage(format!("--for-each {error}; nothing was run"))
}

fn open(path: Option<&Path>, earlier: Earlier) -> Result<(Journal, Past), Failure> {
    let failed = |error: ResumeError| Failure::new(error.to_string());
    let Some(path) = path else {
        if earlier != Earlier::Nothing {
            let why = "neither XDG_STATE_HOME nor HOME is an absolute path";
            return Err(Failure::new(format!("--resume: there is no resume file, since {why}")));
        }
        return Ok((Journal::unnamed().map_err(failed)?, Past::none()));
    };
    Journal::open(path, earlier).map_err(failed)
}

/// What is worth knowing of an earlier run.
fn greet(past: &Past, earlier: Earlier, total: u64) {
    let count = past.count();
    if earlier == Earlier::Nothing {
        if past.aside > 0 && past.aside < total {
            let text = format!(
                "an earlier run had ended {} of these {} targets; all of them run anew (--resume \
                 would have run the rest)",
                thousands(past.aside),
                thousands(total)
            );
            say::line(text.as_bytes());
        }
        return;
    }
    let mut text = if count == 0 && past.open.is_empty() {
        "no earlier run left anything to resume: all targets run".to_owned()
    } else {
        format!("resuming: {} of {} targets are done", thousands(count), thousands(total))
    };
    if !past.open.is_empty() {
        let names: Vec<String> =
            past.open.iter().take(NAMED_MAX).map(resume::Begun::shown).collect();
        let more = past.open.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text += &format!(
            "; {} had begun when that run ended, and nobody knows how far: {}{more}",
            past.open.len(),
            printable(&names.join(", "), Charset::Unicode)
        );
    }
    say::line(text.as_bytes());
}

/// Why nothing more is begun.
#[derive(Debug)]
enum Ending {
    /// A signal asked for it.
    Asked,
    /// A second one: what ran was ended.
    AtOnce,
    /// So many have failed that no more are wanted.
    Halted,
    /// Something is wrong: the line for it.
    Fault(String),
}

/// What the performer does: every target of the file.
struct Work<'a> {
    round: &'a mut Round,
    queue: &'a mut Queue,
}

impl WorkSource for Work<'_> {
    fn next(&mut self, id: SetId) -> Option<Set> {
        self.round.next(self.queue, id)
    }

    fn event(&mut self, event: Event<'_>) {
        self.round.event(event);
    }
}

/// One run over the targets of a file.
struct Round {
    journal: Journal,
    tally: Tally,
    screen: Screen,
    signals: Signals,
    performer: Stop,
    counts: Counts,
    given: HashMap<u64, Given>,
    tries: Tries,
    /// The lanes that are free, of those that were used.
    free: BTreeSet<u32>,
    lanes: u32,
    ending: Option<Ending>,
    /// What ended and could not be written to the resume file.
    unwritten: Vec<Ended>,
    /// For the receipt.
    told: Told,
    /// How many may fail before no more are begun.
    halt: Option<u64>,
    /// How many of this run have failed.
    failed: u64,
    /// What hooks write, if it is shown as it comes.
    tagged: Option<Tagged>,
    reports: Reports,
}

impl Round {
    fn sit(&mut self, dir: &Path, targets: &str, jobs: u32) {
        let at = Timestamp::now().to_string();
        let written = self.journal.sit(dir, targets, &at, jobs);
        self.tally.sit(at, jobs);
        self.written(written);
    }

    /// The set of the next target, unless nothing more is begun.
    fn next(&mut self, queue: &mut Queue, id: SetId) -> Option<Set> {
        if self.ending.is_some() {
            return None;
        }
        if let Some(given) = self.tries.next_one() {
            let set = given.set.clone();
            self.given.insert(id.0, given);
            return Some(set);
        }
        if queue.ended {
            return None;
        }
        match queue.next_one() {
            Ok(Some((target, set))) => {
                let digest = target.digest().hex();
                let given = Given { target, digest, lane: None, set: set.clone(), tries: 1 };
                self.given.insert(id.0, given);
                Some(set)
            }
            Ok(None) => {
                queue.ended = true;
                None
            }
            Err(why) => {
                self.stop(Ending::Fault(format!(
                    "{why}; the file was changed while its targets ran"
                )));
                None
            }
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::SetStarted { set, .. } => self.began(set.0),
            Event::SetEnded(record) => self.ended(record),
            Event::Ready(SIGNALLED) => match self.signals.read() {
                Some(Wish::Finish) => self.stop(Ending::Asked),
                Some(Wish::End) => {
                    self.stop(Ending::AtOnce);
                    self.performer.end();
                }
                None => {}
            },
            Event::Ready(DRAW) => self.screen.draw(self.counts, self.ending.is_some()),
            Event::HookSlow { set, name, after } => {
                let target = self.given.get(&set.0).map(|given| given.target.name.clone());
                let target = Bytes(target.unwrap_or_default());
                let text =
                    format!("{}: {}: takes longer than {after:?}", target.text(), name.text());
                self.screen.clear();
                say::line(printable(&text, Charset::Unicode).as_bytes());
            }
            Event::Output { set, stream, bytes } => self.output(set.0, stream, bytes),
            Event::HookStarted { .. } | Event::HookEnded { .. } | Event::Ready(_) => {}
        }
    }

    fn output(&mut self, set: u64, stream: Stream, bytes: &[u8]) {
        let (Some(tagged), Some(given)) = (&mut self.tagged, self.given.get(&set)) else { return };
        let lines = tagged.lines(set, stream, &given.target.name, bytes);
        self.screen.clear();
        tag::put(stream, &lines);
    }

    fn stop(&mut self, why: Ending) {
        self.performer.drain();
        let graver = matches!(why, Ending::AtOnce) || self.ending.is_none();
        if graver {
            self.ending = Some(why);
        }
        self.screen.draw(self.counts, true);
    }

    fn began(&mut self, set: u64) {
        let Some(given) = self.given.get_mut(&set) else { return };
        let lane = self.free.pop_first().unwrap_or_else(|| {
            self.lanes += 1;
            self.lanes - 1
        });
        given.lane = Some(lane);
        let written = self.journal.begin(&given.target, &given.digest);
        self.written(written);
    }

    fn ended(&mut self, record: SetRecord) {
        let Some(given) = self.given.remove(&record.set) else { return };
        if let Some(lane) = given.lane {
            self.free.insert(lane);
        }
        if let Some(tagged) = &mut self.tagged {
            self.screen.clear();
            for (stream, lines) in tagged.rest(record.set, &given.target.name) {
                tag::put(stream, &lines);
            }
        }
        // What waits for another try when nothing more is begun has not ended: `--resume` runs it.
        let Some(given) = self.tries.keep(given, record.outcome) else { return };
        self.told.add(&record);
        // Nor has what was cancelled.
        if record.outcome == HookOutcome::Cancelled {
            return;
        }
        let Given { target, digest, lane, tries, set: _ } = given;
        let (line, lane) = (target.line, lane.unwrap_or(0));
        let ended = Ended { line, digest, lane, tries, set: record };
        self.counts.ended += 1;
        let is_failed = u64::from(failed(ended.set.outcome));
        self.counts.failed += is_failed;
        self.failed += is_failed;
        self.tally.add(&ended);
        let written = self.journal.end(&ended);
        self.reports.ended(&self.tally, &ended);
        if let Err(error) = written {
            self.unwritten.push(ended);
            self.written(Err(error));
        }
        if self.halt.is_some_and(|most| self.failed >= most) && self.ending.is_none() {
            self.stop(Ending::Halted);
        }
    }

    /// What ends from now on could not be remembered, and `--resume` would run it twice.
    fn written(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written
            && self.ending.is_none()
        {
            let path = self.journal.path().display();
            self.stop(Ending::Fault(format!("{path}: {error}; no further target was begun")));
        }
    }

    /// Everything has ended that was begun: the summary, the reports, and what is left.
    fn close(mut self, dir: &Path, targets: &str, json: bool) -> Result<u8, Failure> {
        self.screen.close();
        let lost = self.write_again();
        let left = self.counts.total.saturating_sub(self.tally.ended());
        if matches!(self.ending, Some(Ending::AtOnce)) {
            self.tell_left(left);
            self.signals.leave(HookOutcome::Cancelled);
        }
        let overview = Overview { dir, targets, tally: &self.tally, left };
        let shown = if json {
            let mut value = report::summary(&overview);
            value.insert("schema".to_owned(), SCHEMA.into());
            let kept = left > 0 || self.tally.failed() > 0;
            let path = kept.then(|| self.journal.path().display().to_string());
            value.insert("resume_file".to_owned(), path.into());
            out_json(&format!("{}\n", serde_json::Value::Object(value)))
        } else {
            out(&summary::text(&self.tally, &Look::of_stdout()))
        };
        let unwritten = self.reports.end(&overview, &self.journal);
        // A full disk is no reason to lose what is in memory.
        let _ = self.journal.sync();
        for why in &unwritten {
            let text = format!(
                "--report {why}; nothing is lost: the same command with --resume writes it from {}",
                self.journal.path().display()
            );
            say::line(text.as_bytes());
        }
        self.tell_left(left);
        match &self.ending {
            Some(Ending::Fault(why)) => say::line(why.as_bytes()),
            Some(Ending::Halted) => {
                let text = format!("--halt: {} failed; no further target was begun", self.failed);
                say::line(text.as_bytes());
            }
            Some(Ending::Asked | Ending::AtOnce) => {
                self.signals.leave(HookOutcome::Cancelled);
            }
            None => {}
        }
        // What nobody could read keeps no report from being written, and the run's records stay.
        shown?;
        let faulty = lost || !unwritten.is_empty() || matches!(self.ending, Some(Ending::Fault(_)));
        let outcome = self.tally.outcome();
        if faulty {
            return Ok(HookOutcome::SystemError.exit_code());
        }
        if left == 0 && self.tally.failed() == 0 {
            self.journal.remove();
        } else if left == 0 && !json && !self.journal.path().as_os_str().is_empty() {
            say::line(b"the same command with --resume=failed runs again what failed");
        }
        Ok(outcome.exit_code())
    }

    /// Tries once more to write what could not be written; whether it is lost to `--resume`.
    fn write_again(&mut self) -> bool {
        let mut names = Vec::new();
        for ended in std::mem::take(&mut self.unwritten) {
            if self.journal.end(&ended).is_err() {
                names.push(ended.set.target.text().into_owned());
            }
        }
        if names.is_empty() {
            return false;
        }
        let text = format!(
            "ended, and not in the resume file, so that --resume would run it again: {}",
            names.join(", ")
        );
        say::line(printable(&text, Charset::Unicode).as_bytes());
        true
    }

    fn tell_left(&self, left: u64) {
        if left == 0 {
            return;
        }
        let path = self.journal.path();
        let how = if path.as_os_str().is_empty() {
            "there is no resume file, since neither XDG_STATE_HOME nor HOME is set".to_owned()
        } else {
            format!("the same command with --resume runs them (resume file: {})", path.display())
        };
        let noun = if left == 1 { "target has" } else { "targets have" };
        say::line(format!("{} {noun} not ended; {how}", thousands(left)).as_bytes());
    }
}
