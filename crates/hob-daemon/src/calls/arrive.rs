//! The arrival of a call: resolved, compared with what a worker could take on, looked up, checked
//! for freshness; then the core decides. And what callers do after their call: signals, reports of
//! cold runs, answers that they had, leaving; what a learning run left.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hob_core::event::{Aim, Arrival, ColdTiming, Event};
use hob_core::ids::{CallId, ProgramId, Time, Work};
use hob_core::phase::{Mark, Marks};
use hob_core::plan::{Facts, Hosted};
use hob_resolve::{EnvChanges, Program, TargetKind};
use hob_wire::call::{AHEAD_AUTO, Asked, Call, ColdEnded, Purpose, Received, Usage};
use hob_wire::exit::Exit;
use hob_wire::strings::Strings;
use rustix::fd::AsFd;

use super::keys::nothing_learned;
use crate::calls::Calls;
use crate::calls::ledger::{Company, Entry};
use crate::ctx::Ctx;
use crate::inputs::{CallerEvent, Incoming};
use crate::recorder::ring;
use crate::warm::lesson::Lesson;
use crate::warm::resolutions::Resolved;

/// Signals that wait for a call to be given.
const SIGNALS_WAITING_MAX: usize = 64;

impl Calls {
    /// Takes a call in, and puts its arrival before the core.
    pub(crate) fn arrive(&mut self, ctx: &mut Ctx<'_>, incoming: Incoming) {
        let Incoming { id, mut call, caller, seen, fds, received_ns } = incoming;
        call.world.priority.oom = seen.oom;
        let argv: Vec<&[u8]> = call.argv.iter().collect();
        let files = ctx.warm.fresh.files();
        let Resolved { program: resolved, directory } =
            ctx.warm.resolutions.resolve(files, &argv, &call.env, fds.directory.as_fd());
        let found = resolved.as_ref().ok();
        let (name, arguments) = (name_of(argv[0], found), argv.len() - 1);
        let facts = self.own.facts(ctx, &call, &seen, &resolved);
        let (marks, work) = (first_marks(&call, received_ns), work_of(&argv, &directory, found));
        let refusal = resolved.as_ref().err().map(|error| (error.exit_code(), error.to_string()));
        let program = found.map_or(ProgramId(0), |found| ctx.warm.programs.id(found, &directory));
        ctx.warm.programs.entry(program).name.clone_from(&name);
        let Call { asked, terminal, processor, world, env, closed, beyond, .. } = call;
        let env = Arc::new(effective(env, found));
        let entry = Entry {
            id,
            caller,
            streams: call.streams,
            fds: Some(fds),
            closed,
            beyond,
            program,
            resolved: resolved.ok(),
            refusal,
            directory,
            purpose: asked.purpose,
            key: None,
            name,
            arguments,
            caller_pid: call.pid,
            processor,
            terminal,
            joined_ns: None,
            surpasses: self.own.surpasses(&world, &seen, &facts),
            world,
            env,
            marks,
            at: jiff::Timestamp::now(),
            notes: None,
            profiles: false,
            signals: Vec::new(),
            worker: None,
            worker_part: None,
            usage: None,
            demoted: None,
            imported: None,
            settled: None,
            company: Company::default(),
            answered: false,
            caller_gone: false,
            worker_gone: true,
            worker_ended: None,
            worker_silent: true,
        };
        self.ledger.open(id, entry);
        let is_hosted = facts.hosted == Hosted::Yes;
        let keys = is_hosted.then(|| self.ledger.keys(ctx, id, program, aim(&asked)));
        let (key, layers) = keys.unwrap_or_default();
        ctx.events.push_back(Event::Arrived(Arrival {
            call: id,
            program,
            work,
            key,
            layers,
            facts: Facts { variables: ctx.warm.programs.variables(program), ..facts },
            ahead: (asked.ahead != AHEAD_AUTO).then_some(asked.ahead),
            timeout_us: (asked.timeout_ms > 0).then(|| asked.timeout_ms.saturating_mul(1000)),
            aim: aim(&asked),
        }));
    }

    pub(crate) fn caller(&mut self, ctx: &mut Ctx<'_>, call: CallId, event: CallerEvent) {
        let Some(entry) = self.ledger.get(call) else { return };
        match event {
            CallerEvent::Signal(signal) => match entry.worker {
                Some(worker) if entry.settled.is_none() && !entry.has_had(signal) => {
                    ctx.processes.signal(worker, signal.number);
                }
                Some(_) => {}
                None if entry.signals.len() < SIGNALS_WAITING_MAX => {
                    entry.signals.push(signal.number);
                }
                None => {}
            },
            CallerEvent::ColdEnded(ended) => self.cold_ended(ctx, call, ended),
            // The worker's own word may still be on its way.
            CallerEvent::Received(received) => {
                entry.answered = true;
                // It was so when the caller said it, whenever that is heard here.
                let Received { exit, at_ns } = received;
                for mark in [Mark::Settled, Mark::Ended] {
                    entry.marks.stamp_as_told(mark, Time(at_ns));
                    ring::edge(call, mark, at_ns);
                }
                if let Some(worker) = entry.worker {
                    ctx.events.push_back(Event::Finished { worker, exit });
                }
            }
            CallerEvent::Gone { at_ns } => {
                entry.caller_gone = true;
                entry.stamp(Mark::Ended, at_ns);
                // Nobody will say that its learning run has ended.
                if let Some(path) = entry.notes.take() {
                    self.learn(ctx, call, &path);
                }
                ctx.events.push_back(Event::CallerGone { call });
                self.closing.push(call);
            }
        }
    }

    fn cold_ended(&mut self, ctx: &mut Ctx<'_>, call: CallId, ended: ColdEnded) {
        let Some(entry) = self.ledger.get(call) else { return };
        entry.usage = Some(Usage { ..ended.usage });
        entry.stamp(Mark::Main, ended.main_ns);
        entry.stamp(Mark::Finished, ended.finished_ns);
        let notes = entry.notes.take();
        let timing = if ended.timed_out { ColdTiming::TimedOut } else { ColdTiming::InTime };
        if let Some(path) = notes {
            self.learn(ctx, call, &path);
        }
        let exit: Exit = ended.exit;
        ctx.events.push_back(Event::ColdEnded { call, exit, timing });
    }

    /// What a learning run left; the file is gone afterwards.
    fn learn(&mut self, ctx: &mut Ctx<'_>, call: CallId, path: &std::path::Path) {
        let notes = std::fs::read(path).ok();
        let _ = std::fs::remove_file(path);
        let Some(entry) = self.ledger.get(call) else { return };
        let program = entry.program;
        let Some(notes) = notes.filter(|notes| notes.ends_with(b"\0")) else {
            return nothing_learned(ctx, program);
        };
        let notes: Strings = notes[..notes.len() - 1].split(|byte| *byte == 0).collect();
        self.ledger.learned(ctx, call, program, Lesson::default(), &notes);
    }
}

fn aim(asked: &Asked) -> Aim {
    match asked.purpose {
        _ if asked.prepare => Aim::Prepare,
        // What is checked again and again is to be as it is in use.
        Purpose::Use | Purpose::Check => Aim::Perform,
        Purpose::Verify | Purpose::Ab => Aim::Prove,
    }
}

/// The name by which people know a program: the caller's own word for it, or its class, which says
/// more than what runs it.
fn name_of(word: &[u8], resolved: Option<&Program>) -> String {
    let class = resolved.filter(|program| program.target.kind == TargetKind::Class);
    let name = class.map_or(word, |program| &program.target.name);
    String::from_utf8_lossy(name).into_owned()
}

/// What a call has passed when it is received.
fn first_marks(call: &Call, received_ns: u64) -> Marks {
    let mut marks = Marks::default();
    for (mark, ns) in [
        (Mark::Start, call.start_ns),
        (Mark::Connected, call.connected_ns),
        (Mark::Received, received_ns),
    ] {
        marks.stamp(mark, hob_core::ids::Time(ns));
    }
    marks
}

/// What tells a call from others of its program that have something else to do, or that came before
/// an edit of the program's own file. No fingerprint has that file: workers read it in each call.
fn work_of(argv: &[&[u8]], directory: &[u8], program: Option<&Program>) -> Work {
    let script = program.filter(|program| program.target.kind == TargetKind::Script);
    let stat = script.and_then(|program| rustix::fs::stat(program.target.name.as_slice()).ok());
    let stamp = stat.map(|stat| {
        let changed = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_size, changed)
    });
    Work { edition: digest(&stamp), task: digest(&(argv, directory)) }
}

/// It stays in memory.
fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The environment with what a skipped shim would have changed.
fn effective(env: Strings, resolved: Option<&Program>) -> Strings {
    // What is only executed changes its environment itself, or is given the changes.
    let hosted = resolved.filter(|program| program.is_hosted() && !program.env.is_empty());
    let Some(EnvChanges { set, unset }) = hosted.map(|program| &program.env) else { return env };
    let name_of =
        |entry: &[u8]| entry.iter().position(|byte| *byte == b'=').map_or(entry.len(), |at| at);
    let mut out = Strings::new();
    let mut replaced = vec![false; set.len()];
    for entry in env.iter() {
        let name = &entry[..name_of(entry)];
        if let Some(at) = set.iter().position(|(changed, _)| changed == name) {
            replaced[at] = true;
            out.push(&[name, b"=", &set[at].1].concat());
        } else if !unset.iter().any(|removed| removed == name) {
            out.push(entry);
        }
    }
    for ((name, value), _) in set.iter().zip(replaced).filter(|(_, replaced)| !replaced) {
        out.push(&[name, b"=".as_slice(), value].concat());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_shims_changes_keep_the_order_of_what_was_there() {
        let env: Strings = ["A=1", "PATH=/bin", "GONE=x"].into_iter().collect();
        let set = vec![(b"PATH".to_vec(), b"/v:/bin".to_vec()), (b"NEW".to_vec(), b"2".to_vec())];
        let changes = EnvChanges { set, unset: vec![b"GONE".to_vec()] };
        let exec = Program { env: changes, ..Program::exec(b"/s".to_vec(), vec![], None) };
        assert_eq!(effective(env.clone(), Some(&exec)), env);
        let program = Program { runtime: hob_runtimes::RuntimeId::Python, ..exec };
        let env = effective(env, Some(&program));
        assert_eq!(env.iter().collect::<Vec<_>>(), [&b"A=1"[..], b"PATH=/v:/bin", b"NEW=2"]);
    }
}
