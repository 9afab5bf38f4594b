//! Hooks: how one is started, read, timed and ended.

use std::ffi::{CStr, CString};
use std::time::Duration;

use hob_core::hooks::{Bytes, Capture, End, HookOutcome, HookRecord, Reason, Trouble, Way};
use hob_entryfork::vfork::{Program, Traced};
use hob_os::clock;
use hob_os::spawn;
use hob_os::trace::Child;
use hob_wire::caller::Reply;
use hob_wire::reply::Fate;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io;
use rustix::process::Signal;

use super::active::{Cold, Hook, Turn, running_in};
use super::ends::{own_end, warm_end};
use super::prestart::Ready;
use super::running::{Ending, Process, Running, nanos};
use super::{Runner, Sink, Tag};
use crate::capture::{Captured, Found};
use crate::event::{Event, SetId, Stream};
use crate::listing::Identity;
use crate::set::{Isolation, Set};
use crate::start::{self, HookFile, OurPipes, Pipes, Stdio};
use crate::warm::{self, Answer};

/// How often a hook is tried again whose file is open for writing.
const RETRIES_MAX: u32 = 20;
/// How long it is waited before that, times the number of the try: two seconds in all.
const RETRY_NS: u64 = 10_000_000;

impl Runner {
    /// Starts the current hook of a set. A record comes back if it could not be started.
    pub(super) fn start_hook(&mut self, place: usize, sink: Sink<'_>) -> Option<HookRecord> {
        self.let_ends_go();
        let now_ns = clock::now_ns();
        let begun_ns = self.origin.begun_ns;
        let active = self.places[place].as_mut()?;
        let (id, set) = (active.id, active.set.clone());
        let path = set.path(active.name());
        let hook = std::mem::replace(&mut active.hook, Hook::Due);
        let turn = Turn::of(&hook, now_ns);
        let identity = Identity::at(set.place(), &path).ok();
        let mut record = HookRecord {
            retries: turn.retries,
            reason: turn.again,
            changed: identity != active.listing.identity(active.index),
            ..fresh_record(active.name(), turn.since_ns.saturating_sub(begun_ns) / 1000)
        };
        let started = match hook {
            Hook::Again { cold: Some(cold), .. } => self.start_cold(&set, *cold),
            Hook::Again { .. } | Hook::Retry { .. } => self.spawn(&set, &path),
            Hook::Due | Hook::Running(_) => match self.fastest(id, &set, &path, identity) {
                Fastest::Started(started, way, reason) => {
                    (record.way, record.reason) = (way, reason);
                    Ok(started)
                }
                Fastest::Failed(error) => Err(error),
                Fastest::Spawn(reason) => {
                    record.reason = reason;
                    self.spawn(&set, &path)
                }
            },
        };
        let since_ns = turn.since_ns;
        match started {
            Ok(started) => {
                if let Process::Own { child, .. } = &started.process {
                    record.pid = child.pid;
                }
                self.run(place, started, Begun { record, since_ns }, sink)
            }
            Err(error) => self.not_started(place, Begun { record, since_ns }, error),
        }
    }

    /// Closes the ends of running hooks that are kept: what is started now would have them too for a
    /// moment, and a hook that ends meanwhile would seem to leave something behind.
    fn let_ends_go(&mut self) {
        for active in self.places.iter_mut().flatten() {
            if let Hook::Running(running) = &mut active.hook {
                running.theirs = None;
            }
        }
    }

    /// Tries a hook again later that could not be started, or gives its record.
    fn not_started(
        &mut self,
        place: usize,
        Begun { mut record, since_ns }: Begun,
        error: io::Errno,
    ) -> Option<HookRecord> {
        let now_ns = clock::now_ns();
        let active = self.places[place].as_mut()?;
        if error == io::Errno::TXTBSY && record.retries < RETRIES_MAX {
            let count = record.retries + 1;
            let at_ns = now_ns + RETRY_NS * u64::from(count);
            active.hook = Hook::Retry { since_ns, at_ns, count };
            return None;
        }
        let path = active.set.path(active.name());
        let (trouble, message) = start::trouble(&active.set, &path, error);
        record.trouble = Some(trouble);
        record.message = Some(message);
        record.outcome = HookOutcome::of(&End::NotStarted(trouble));
        record.wall_us = now_ns.saturating_sub(since_ns) / 1000;
        Some(record)
    }

    /// Warm where an interpreter hosts it, else as it is held, else spawned.
    fn fastest(
        &mut self,
        id: SetId,
        set: &Set,
        path: &CStr,
        identity: Option<Identity>,
    ) -> Fastest {
        if set.isolation == Isolation::Fastest
            && let (Some(warm), Some(identity)) = (&mut self.warm, identity)
            && warm.hosts(set, path, identity)
        {
            let Ok(pipes) = Pipes::new() else { return Fastest::Spawn(None) };
            let stdio = Stdio { null: &self.null, pipes: &pipes };
            return match warm.begin(set, path, stdio, clock::now_ns()) {
                Some(calling) => {
                    let started = Started { process: Process::Warm(calling), pipes: pipes.ours() };
                    Fastest::Started(started, Way::Warm, None)
                }
                None => Fastest::Spawn(Some(Reason::NoDaemon)),
            };
        }
        let mut not_forked = None;
        if set.isolation == Isolation::Fastest
            && let Some(identity) = identity
            && let Ok(pipes) = Pipes::new()
        {
            // Where each processor has a runner, its hooks are at home on its own.
            let near = self.is_alone() || self.origin.in_parallel;
            let hook = HookFile { set, path, identity };
            let stdio = Stdio { null: &self.null, pipes: &pipes };
            match self.zygotes.fork(hook, stdio, near) {
                Ok(Ok(child)) => {
                    // Beside it nothing is started but what is held, which is waited for until it has
                    // closed what it inherited; should a neighbour come, they are let go first.
                    let alone = self.is_alone();
                    let pipes = if alone { pipes.ours_quiet() } else { pipes.ours() };
                    return Fastest::Started(Started::own(child, pipes), Way::Forked, None);
                }
                Ok(Err(error)) => return Fastest::Failed(error),
                Err(reason) => not_forked = reason,
            }
        }
        match self.take_held(id, set, path, identity) {
            Ready::Runs(child, pipes) => {
                Fastest::Started(Started::own(child, pipes), Way::Prestarted, not_forked)
            }
            // That there was no time for the second best says less.
            Ready::Spawn(Some(Reason::First | Reason::NoProcessor)) if not_forked.is_some() => {
                Fastest::Spawn(not_forked)
            }
            Ready::Spawn(reason) => Fastest::Spawn(reason),
        }
    }

    /// Starts a hook as a new process.
    fn spawn(&self, set: &Set, path: &CStr) -> io::Result<Started> {
        let pipes = Pipes::new()?;
        let (stdio, mask) = (Stdio { null: &self.null, pipes: &pipes }, self.origin.mask);
        let (child, launch) = if self.is_alone() {
            // There is nothing else to do, and what the kernel says is said at once.
            (start::start(set, path, stdio, mask, Traced::No)?, None)
        } else {
            let (child, launch) = start::begin(set, path, stdio, mask)?;
            (child, Some(launch))
        };
        let process = Process::Own { child, launch, report: None };
        Ok(Started { process, pipes: pipes.ours() })
    }

    /// Whether one set is at work at most, so that this thread sleeps until its hook ends.
    fn is_alone(&self) -> bool {
        self.active().nth(1).is_none()
    }

    /// Starts what a daemon wants run in a hook's place: the same program, perhaps watched, so
    /// that a later call can be warm.
    fn start_cold(&self, set: &Set, Cold { run, socket }: Cold) -> io::Result<Started> {
        let owned = |bytes: &[u8]| CString::new(bytes).map_err(|_| io::Errno::INVAL);
        let file = owned(&run.file)?;
        let argv = run.argv.iter().map(owned).collect::<io::Result<Vec<CString>>>()?;
        let argv: Vec<&CStr> = argv.iter().map(CString::as_c_str).collect();
        let env = warm::changed(&set.environment, &run.set);
        let program = Program { file: &file, argv: &argv, env: &env };
        let pipes = Pipes::new()?;
        let main_ns = clock::now_ns();
        let stdio = Stdio { null: &self.null, pipes: &pipes };
        let child = start::execute(set, &program, stdio, self.origin.mask)?;
        let process = Process::Own { child, launch: None, report: Some((main_ns, socket)) };
        Ok(Started { process, pipes: pipes.ours() })
    }

    /// Watches a hook that was started. A record comes back if that cannot be done.
    fn run(
        &mut self,
        place: usize,
        Started { process, pipes }: Started,
        Begun { record, since_ns }: Begun,
        sink: Sink<'_>,
    ) -> Option<HookRecord> {
        let active = self.places[place].as_mut()?;
        let after = |time: Option<Duration>| time.map(|time| since_ns.saturating_add(nanos(time)));
        let times = active.times();
        let keep = self.limits.capture_bytes_max;
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let running = Running {
            generation,
            process,
            out: Captured::new(pipes.out, keep),
            out_open: true,
            err: Captured::new(pipes.err, keep),
            err_open: true,
            theirs: pipes.theirs,
            since_ns,
            warn_at_ns: after(times.warn_after),
            kill_at_ns: after(times.kill_after),
            ending: Ending::No,
            record,
        };
        let add =
            |fd: &OwnedFd, tag: Tag| epoll::add(&self.epoll, fd, tag.bits(), epoll::EventFlags::IN);
        let watched = add(running.out.pipe(), Tag::Out(place, generation))
            .and_then(|()| add(running.err.pipe(), Tag::Err(place, generation)))
            .and_then(|()| add(running.end(), Tag::End(place, generation)));
        let name = Bytes(active.name().to_vec());
        sink(Event::HookStarted { set: active.id, name: &name, pid: running.record.pid });
        if let Err(error) = watched {
            // Nobody would see its end.
            running.signal(Signal::KILL);
            let text = std::io::Error::from(error);
            let id = active.id;
            let (mut record, process) = self.close(id, running, sink);
            if let Process::Own { child, .. } = process {
                let _ = spawn::wait(child.pid, spawn::Wait::Block);
            }
            record.outcome = HookOutcome::SystemError;
            record.trouble = Some(Trouble::Resources);
            record.message = Some(format!("could not be watched ({text}), and was ended"));
            return Some(record);
        }
        active.hook = Hook::Running(Box::new(running));
        None
    }

    /// A stream of a hook is readable, or at its end.
    pub(super) fn output(&mut self, place: usize, generation: u32, stream: Stream, sink: Sink<'_>) {
        let Some((set, running)) = running_in(&mut self.places, place, generation) else { return };
        let at_ns = clock::now_ns().saturating_sub(running.since_ns);
        let (captured, open) = match stream {
            Stream::Out => (&mut running.out, &mut running.out_open),
            Stream::Err => (&mut running.err, &mut running.err_open),
        };
        let mut tell = |bytes: &[u8]| sink(Event::Output { set, stream, bytes });
        if *open && captured.read(&mut self.buffer, at_ns, &mut tell) == Found::End {
            *open = false;
            let _ = epoll::delete(&self.epoll, captured.pipe());
        }
    }

    /// A hook's process has ended, or its daemon has said something.
    pub(super) fn hook_ended(&mut self, place: usize, generation: u32, sink: Sink<'_>) {
        let Some((_, running)) = running_in(&mut self.places, place, generation) else { return };
        let answer = match &mut running.process {
            Process::Own { .. } => None,
            Process::Warm(calling) => Some(calling.receive()),
        };
        match answer {
            Some(Answer::Nothing) => {}
            answer => self.finish(place, answer, sink),
        }
    }

    /// Ends the hook of a place, or starts it in another way if the daemon did not take it.
    fn finish(&mut self, place: usize, answer: Option<Answer>, sink: Sink<'_>) {
        let Some(active) = &mut self.places[place] else { return };
        let Hook::Running(running) = std::mem::replace(&mut active.hook, Hook::Due) else { return };
        let (since_ns, ending) = (running.since_ns, running.ending);
        let id = active.id;
        let (mut record, process) = self.close(id, *running, sink);
        let end = match (process, answer) {
            (Process::Own { child, launch, report }, _) => {
                let end = own_end(&mut record, &child, report, ending);
                if ending == Ending::No
                    && let Some(Err(error)) = launch.map(|launch| launch.executed())
                {
                    (record.pid, record.usage, record.code) = (0, None, None);
                    let begun = Begun { record, since_ns };
                    if let Some(record) = self.not_started(place, begun, error) {
                        self.recorded(place, record, sink);
                        self.go_on(place, sink);
                    }
                    return;
                }
                end
            }
            (Process::Warm(calling), Some(Answer::Do(Reply::RunCold(run))))
                if ending == Ending::No =>
            {
                let cold = Some(Box::new(Cold { run, socket: calling.socket }));
                let again = Hook::Again { since_ns, reason: Reason::RunCold, cold };
                return self.start_again(place, again, sink);
            }
            (Process::Warm(_), Some(Answer::NotGiven)) if ending == Ending::No => {
                let again = Hook::Again { since_ns, reason: Reason::NoDaemon, cold: None };
                return self.start_again(place, again, sink);
            }
            (Process::Warm(calling), Some(Answer::Do(Reply::Ended(ended)))) => {
                if let Fate::Exited(exit) = ended.fate {
                    calling.confirm(exit);
                }
                // What holds its output at this moment is its own teardown.
                record.left_behind = false;
                warm_end(&mut record, ended.fate, &ended.text)
            }
            (Process::Warm(_), Some(Answer::Do(Reply::Refused(refused)))) => {
                record.message = Some(String::from_utf8_lossy(&refused.text).into_owned());
                record.trouble = Some(Trouble::Other);
                End::NotStarted(Trouble::Other)
            }
            (Process::Warm(_), _) => {
                let text = "the daemon ended before it said what became of it; it may have run in \
                            part and is not run again";
                warm_end(&mut record, Fate::Lost, text.as_bytes())
            }
        };
        record.outcome = HookOutcome::of(&match ending {
            Ending::No => end,
            Ending::TimedOut => End::TimedOut,
            Ending::Cancelled => End::Cancelled,
        });
        self.recorded(place, record, sink);
        self.go_on(place, sink);
    }

    /// Starts the hook of a place anew, which nobody has run.
    fn start_again(&mut self, place: usize, again: Hook, sink: Sink<'_>) {
        if let Some(active) = &mut self.places[place] {
            active.hook = again;
        }
        self.go_on(place, sink);
    }

    /// Takes a hook that has ended out of the epoll, and reads what is left of its output.
    fn close(&mut self, set: SetId, running: Running, sink: Sink<'_>) -> (HookRecord, Process) {
        let now_ns = clock::now_ns();
        if running.ending != Ending::No {
            // Its own end is no reason to leave its group behind.
            running.signal(Signal::KILL);
        }
        let _ = epoll::delete(&self.epoll, running.end());
        for (captured, open) in [(&running.out, running.out_open), (&running.err, running.err_open)]
        {
            if open {
                let _ = epoll::delete(&self.epoll, captured.pipe());
            }
        }
        drop(running.theirs);
        let at_ns = now_ns.saturating_sub(running.since_ns);
        let mut finish = |captured: Captured, stream| {
            let mut tell = |bytes: &[u8]| sink(Event::Output { set, stream, bytes });
            captured.finish(&mut self.buffer, at_ns, &mut tell)
        };
        let (stdout, out) = finish(running.out, Stream::Out);
        let (stderr, err) = finish(running.err, Stream::Err);
        let mut record = running.record;
        record.left_behind = out == Found::Open || err == Found::Open;
        (record.stdout, record.stderr) = (stdout, stderr);
        record.wall_us = at_ns / 1000;
        (record, running.process)
    }

    /// Ends the hook of a set, and the set with it.
    pub(super) fn cancel_place(&mut self, place: usize, grace: Duration) {
        let Some(active) = &mut self.places[place] else { return };
        active.cancelled = true;
        match &mut active.hook {
            Hook::Running(running) => {
                running.ask_to_end(Ending::Cancelled, grace, clock::now_ns());
            }
            // It ends with its set as soon as it is looked at, which is now.
            Hook::Retry { at_ns, .. } => *at_ns = 0,
            Hook::Due | Hook::Again { .. } => {}
        }
    }

    /// Deals with everything whose time has come.
    pub(super) fn look_at_deadlines(&mut self, sink: Sink<'_>) {
        if self.active().all(|active| active.deadline_ns().is_none()) {
            return;
        }
        let now_ns = clock::now_ns();
        for place in 0..self.places.len() {
            let Some(active) = &mut self.places[place] else { continue };
            match &mut active.hook {
                Hook::Due | Hook::Again { .. } => {}
                Hook::Retry { at_ns, .. } if *at_ns > now_ns => {}
                Hook::Retry { .. } => self.go_on(place, sink),
                Hook::Running(_) => self.look_at_running(place, now_ns, sink),
            }
        }
    }

    fn look_at_running(&mut self, place: usize, now_ns: u64, sink: Sink<'_>) {
        let Some(active) = &mut self.places[place] else { return };
        let after = active.times().warn_after.unwrap_or_default();
        let Hook::Running(running) = &mut active.hook else { return };
        if running.warn_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            running.warn_at_ns = None;
            running.record.slow = true;
            let name = Bytes(active.listing.listed.hooks[active.index].clone());
            sink(Event::HookSlow { set: active.id, name: &name, after });
        }
        if running.kill_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            running.kill_at_ns = None;
            match running.ending {
                Ending::No => running.ask_to_end(Ending::TimedOut, self.limits.grace, now_ns),
                Ending::TimedOut | Ending::Cancelled => running.signal(Signal::KILL),
            }
        }
        if let Process::Warm(calling) = &mut running.process
            && calling.due_ns().is_some_and(|at_ns| at_ns <= now_ns)
            && let Some(answer) = calling.late(now_ns)
        {
            self.finish(place, Some(answer), sink);
        }
    }
}

/// The fastest way for a hook whose turn has come.
enum Fastest {
    /// And why not in a faster way, if there is one.
    Started(Started, Way, Option<Reason>),
    Spawn(Option<Reason>),
    /// It may have begun, and nothing is known of it.
    Failed(io::Errno),
}

/// A hook that was started, and our ends of its pipes.
struct Started {
    process: Process,
    pipes: OurPipes,
}

impl Started {
    /// A child of this process that has executed its file, or will without a word.
    fn own(child: Child, pipes: OurPipes) -> Started {
        Started { process: Process::Own { child, launch: None, report: None }, pipes }
    }
}

/// A hook whose turn has come: what is known of it, and since when it is its turn.
struct Begun {
    record: HookRecord,
    since_ns: u64,
}

fn fresh_record(name: &[u8], at_us: u64) -> HookRecord {
    HookRecord {
        name: name.into(),
        outcome: HookOutcome::SystemError,
        code: None,
        signal: None,
        trouble: None,
        message: None,
        pid: 0,
        at_us,
        wall_us: 0,
        way: Way::Spawned,
        reason: None,
        usage: None,
        slow: false,
        changed: false,
        left_behind: false,
        retries: 0,
        stdout: Capture::default(),
        stderr: Capture::default(),
    }
}
