//! Hooks: how one is started, watched and ended.

use std::ffi::CStr;
use std::time::Duration;

use hob_core::hooks::{Bytes, Capture, End, HookOutcome, HookRecord, Reason, Trouble, Way};
use hob_core::receipt::UsagePart;
use hob_os::clock;
use hob_os::spawn::{self, Waited};
use hob_os::vfork::{Child, Traced};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io;
use rustix::process::{Pid, Signal, kill_process_group};

use super::ahead::{self, Ready};
use super::sets::{Active, Hook};
use super::{Runner, Sink, Tag};
use crate::capture::{Captured, Found};
use crate::event::{Event, SetId, Stream};
use crate::listing::Identity;
use crate::set::Set;
use crate::start::{self, OurPipes, Pipes};

/// How often a hook is tried again whose file is open for writing.
const RETRIES_MAX: u32 = 20;
/// How long it is waited before that, times the number of the try: two seconds in all.
const RETRY_NS: u64 = 10_000_000;

/// A hook's process.
#[derive(Debug)]
pub(super) struct Running {
    generation: u32,
    pid: u32,
    pidfd: OwnedFd,
    out: Captured,
    out_open: bool,
    err: Captured,
    err_open: bool,
    since_ns: u64,
    warn_at_ns: Option<u64>,
    kill_at_ns: Option<u64>,
    ending: Ending,
    record: HookRecord,
}

/// Whether a hook is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It is not.
    No,
    /// It ran out of time.
    TimedOut,
    /// Its set was cancelled.
    Cancelled,
}

impl Running {
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        [self.warn_at_ns, self.kill_at_ns].into_iter().flatten().min()
    }

    fn group(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }

    /// Signals its process group, which its unreaped leader holds in existence.
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            // The group may have no process left that may be signalled; its end is on its way.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Asks it to end, and sets the time at which it is made to.
    fn end(&mut self, ending: Ending, grace: Duration, now_ns: u64) {
        if self.ending == Ending::No {
            self.ending = ending;
        }
        if grace.is_zero() {
            self.kill_at_ns = None;
            return self.signal(Signal::KILL);
        }
        self.signal(Signal::TERM);
        // What was stopped takes the signal only when it goes on.
        self.signal(Signal::CONT);
        self.kill_at_ns = Some(now_ns.saturating_add(nanos(grace)));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Runner {
    /// Starts the current hook of a set. A record comes back if it could not be started.
    pub(super) fn start_hook(&mut self, place: usize, sink: Sink<'_>) -> Option<HookRecord> {
        let now_ns = clock::now_ns();
        let active = self.places[place].as_ref()?;
        let (id, set) = (active.id, active.set.clone());
        let path = set.path(active.name());
        let (since_ns, retries) = match active.hook {
            Hook::Retry { since_ns, count, .. } => (since_ns, count),
            Hook::Awaited { since_ns } => (since_ns, 0),
            Hook::Due | Hook::Running(_) => (now_ns, 0),
        };
        let mut record =
            HookRecord { retries, ..fresh_record(active.name(), self.micros(since_ns)) };
        let identity = Identity::at(set.place(), &path).ok();
        record.changed = identity != active.listing.identity(active.index);
        let ready = match retries {
            0 => self.take_held(id, &set, &path, identity),
            _ => Ready::Afresh(None),
        };
        (record.way, record.reason) = ahead::way(&ready);
        let started = match ready {
            Ready::Runs(child, pipes) => Ok((child, pipes)),
            Ready::Awaited => {
                self.places[place].as_mut()?.hook = Hook::Awaited { since_ns };
                return None;
            }
            Ready::Afresh(_) => self.spawn(&set, &path),
        };
        match started {
            Ok((child, pipes)) => {
                record.pid = child.pid;
                self.run(place, (child, pipes), record, since_ns, sink)
            }
            Err(io::Errno::TXTBSY) if retries < RETRIES_MAX => {
                let at_ns = now_ns + RETRY_NS * u64::from(retries + 1);
                let hook = Hook::Retry { since_ns, at_ns, count: retries + 1 };
                self.places[place].as_mut()?.hook = hook;
                None
            }
            Err(error) => {
                let (trouble, message) = start::trouble(&set, &path, error);
                record.trouble = Some(trouble);
                record.message = Some(message);
                record.outcome = HookOutcome::of(&End::NotStarted(trouble));
                record.wall_us = clock::now_ns().saturating_sub(since_ns) / 1000;
                Some(record)
            }
        }
    }

    fn spawn(&self, set: &Set, path: &CStr) -> io::Result<(Child, OurPipes)> {
        let pipes = Pipes::new()?;
        let child = start::start(set, path, &pipes, &self.null, (self.mask, Traced::No))?;
        Ok((child, pipes.ours()))
    }

    /// Watches a hook that was started. A record comes back if that cannot be done.
    fn run(
        &mut self,
        place: usize,
        (child, pipes): (Child, OurPipes),
        record: HookRecord,
        since_ns: u64,
        sink: Sink<'_>,
    ) -> Option<HookRecord> {
        let active = self.places[place].as_mut()?;
        let after = |time: Option<Duration>| time.map(|time| since_ns.saturating_add(nanos(time)));
        let (warn_at_ns, kill_at_ns) = (after(active.set.warn_after), after(active.set.kill_after));
        let keep = self.limits.capture_bytes_max;
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let running = Running {
            generation,
            pid: child.pid,
            pidfd: child.pidfd,
            out: Captured::new(pipes.out, keep),
            out_open: true,
            err: Captured::new(pipes.err, keep),
            err_open: true,
            since_ns,
            warn_at_ns,
            kill_at_ns,
            ending: Ending::No,
            record,
        };
        let add =
            |fd: &OwnedFd, tag: Tag| epoll::add(&self.epoll, fd, tag.bits(), epoll::EventFlags::IN);
        let watched = add(running.out.pipe(), Tag::Out(place, generation))
            .and_then(|()| add(running.err.pipe(), Tag::Err(place, generation)))
            .and_then(|()| add(&running.pidfd, Tag::End(place, generation)));
        let name = Bytes(active.name().to_vec());
        sink(Event::HookStarted { set: active.id, name: &name, pid: running.pid });
        if let Err(error) = watched {
            // Nobody would see its end.
            running.signal(Signal::KILL);
            let text = std::io::Error::from(error);
            let id = active.id;
            let mut record = self.settle(id, running, spawn::Wait::Block, sink);
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

    /// A hook's process has ended.
    pub(super) fn hook_ended(&mut self, place: usize, generation: u32, sink: Sink<'_>) {
        if running_in(&mut self.places, place, generation).is_none() {
            return;
        }
        let Some(active) = &mut self.places[place] else { return };
        let Hook::Running(running) = std::mem::replace(&mut active.hook, Hook::Due) else { return };
        let set = active.id;
        let record = self.settle(set, *running, spawn::Wait::Poll, sink);
        self.recorded(place, record, sink);
        self.go_on(place, sink);
    }

    /// Takes a process that has ended out of everything, and says what became of it.
    fn settle(
        &mut self,
        set: SetId,
        running: Running,
        wait: spawn::Wait,
        sink: Sink<'_>,
    ) -> HookRecord {
        let now_ns = clock::now_ns();
        if running.ending != Ending::No {
            // Its own end is no reason to leave its group behind.
            running.signal(Signal::KILL);
        }
        let _ = epoll::delete(&self.epoll, &running.pidfd);
        for (stream, open) in [(&running.out, running.out_open), (&running.err, running.err_open)] {
            if open {
                let _ = epoll::delete(&self.epoll, stream.pipe());
            }
        }
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
        let end = match spawn::wait(running.pid, wait) {
            Ok(Waited::Ended(status, user_us, system_us, peak_kib)) => {
                record.usage = Some(UsagePart { user_us, system_us, peak_kib });
                let signal = u8::try_from(status & 0x7f).unwrap_or(0);
                if signal == 0 {
                    let code = u8::try_from(status >> 8 & 0xff).unwrap_or(0);
                    record.code = Some(code);
                    End::Exited(code)
                } else {
                    record.signal = Some(signal);
                    End::Signalled(signal)
                }
            }
            Ok(Waited::Stopped(_) | Waited::Nothing) | Err(_) => End::Lost,
        };
        record.outcome = HookOutcome::of(&match running.ending {
            Ending::No => end,
            Ending::TimedOut => End::TimedOut,
            Ending::Cancelled => End::Cancelled,
        });
        record
    }

    /// Ends the hook of a set, and the set with it.
    pub(super) fn cancel_place(&mut self, place: usize, grace: Duration) {
        let Some(active) = &mut self.places[place] else { return };
        active.cancelled = true;
        match &mut active.hook {
            Hook::Running(running) => running.end(Ending::Cancelled, grace, clock::now_ns()),
            // It ends with its set as soon as it is looked at, which is now.
            Hook::Retry { at_ns, .. } => *at_ns = 0,
            // Its set ends when it is looked at, which is next.
            Hook::Awaited { .. } => self.shared.knock(),
            Hook::Due => {}
        }
    }

    /// A hook whose start before its turn has taken all of its time.
    fn awaited_too_long(&mut self, place: usize, since_ns: u64, sink: Sink<'_>) {
        let at_us = self.micros(since_ns);
        let Some(active) = &self.places[place] else { return };
        let mut record = fresh_record(active.name(), at_us);
        record.way = Way::Ahead;
        record.outcome = HookOutcome::of(&End::TimedOut);
        record.wall_us = clock::now_ns().saturating_sub(since_ns) / 1000;
        record.message = Some("was not started within its time".to_owned());
        let id = active.id;
        if let Some(holders) = &mut self.holders {
            holders.give_up(id);
        }
        self.recorded(place, record, sink);
        self.go_on(place, sink);
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
                Hook::Due => {}
                Hook::Awaited { since_ns } => {
                    let since_ns = *since_ns;
                    if active.deadline_ns().is_some_and(|at_ns| at_ns <= now_ns) {
                        self.awaited_too_long(place, since_ns, sink);
                    }
                }
                Hook::Retry { at_ns, .. } if *at_ns > now_ns => {}
                Hook::Retry { .. } => self.go_on(place, sink),
                Hook::Running(running) => {
                    if running.warn_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                        running.warn_at_ns = None;
                        running.record.slow = true;
                        let name = Bytes(active.listing.listed.hooks[active.index].clone());
                        sink(Event::HookSlow { set: active.id, name: &name });
                    }
                    if running.kill_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                        running.kill_at_ns = None;
                        match running.ending {
                            Ending::No => {
                                running.end(Ending::TimedOut, self.limits.grace, now_ns);
                            }
                            Ending::TimedOut | Ending::Cancelled => running.signal(Signal::KILL),
                        }
                    }
                }
            }
        }
    }
}

/// The hook that runs in this place, if it is still that one.
fn running_in(
    places: &mut [Option<Active>],
    place: usize,
    generation: u32,
) -> Option<(SetId, &mut Running)> {
    let active = places.get_mut(place)?.as_mut()?;
    match &mut active.hook {
        Hook::Running(running) if running.generation == generation => Some((active.id, running)),
        Hook::Running(_) | Hook::Due | Hook::Awaited { .. } | Hook::Retry { .. } => None,
    }
}

fn fresh_record(name: &[u8], at_us: u64) -> HookRecord {
    HookRecord {
        name: name.into(),
        outcome: HookOutcome::SystemError,
        code: None,
        signal: None,
        trouble: None::<Trouble>,
        message: None,
        pid: 0,
        at_us,
        wall_us: 0,
        way: Way::Afresh,
        reason: None::<Reason>,
        usage: None,
        slow: false,
        changed: false,
        left_behind: false,
        retries: 0,
        stdout: Capture::default(),
        stderr: Capture::default(),
    }
}
