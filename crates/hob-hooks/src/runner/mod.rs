//! The runner: one thread, one epoll, and everything that is running.
//!
//! ```text
//! submit ─▶ waiting ─▶ active ──hook──▶ running ──pidfd──▶ recorded ─┐
//!              │          ▲  │                                       │
//!              │          │  └── busy file: tried again later        │
//!              │          └──────────── ok, warning ─────────────────┤
//!              └─ drained ──────────▶ SetEnded ◀── last, or stopped ─┘
//! ```
//! Invariants: a set is active in one place of the table and has at most one hook at a time; an
//! epoll tag names the place and the generation of the hook, so that an event that comes late
//! for a hook that is gone is nobody's; a descriptor is taken out of the epoll before it is
//! closed (a child that is just being started may keep its open file alive for a moment).

mod active;
mod ends;
mod hooks;
mod prestart;
mod running;
mod sets;

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use hob_core::hooks::{HookOutcome, SetRecord};
use hob_os::process::Status;
use hob_os::{clock, process, signals};
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io;

use crate::event::{Event, SetId, Stream};
use crate::handle::{Asked, Handle, Shared};
use crate::listing::Listing;
use crate::prestart::Holders;
use crate::set::{Limits, Prestart, Set};
use crate::start::above_stdio;
use crate::warm::{Connector, Warm};
use crate::zygotes::Zygotes;
use active::Active;

/// How many bytes one read takes: what a pipe holds by default.
const BUFFER_BYTES: usize = 64 * 1024;
/// How many events one wait takes.
const EVENTS_MAX: usize = 64;

/// How long a turn waits for something to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until something happens.
    Forever,
    /// At most this long.
    AtMost(Duration),
}

/// How long shells are kept for hooks that do not come: they hold memory, and are made anew in a
/// millisecond.
const REST: Duration = Duration::from_secs(8);

/// Who is told.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Event<'_>);

/// Runs sets of hooks. See the crate's page for how it is used.
#[derive(Debug)]
pub struct Runner {
    limits: Limits,
    epoll: OwnedFd,
    null: OwnedFd,
    origin: Origin,
    shared: Arc<Shared>,
    waiting: VecDeque<Waiting>,
    /// Of those that wait, the ones that were cancelled.
    given_up: Vec<SetId>,
    places: Vec<Option<Active>>,
    /// `None` where no hook is started before its turn, for the lack of a processor or of a wish.
    holders: Option<Holders>,
    /// `None` where no hook is given to a daemon.
    warm: Option<Warm>,
    zygotes: Zygotes,
    status: Status,
    /// Their number, where what is held follows how many sets are active.
    processors: Option<usize>,
    generation: u32,
    buffer: Vec<u8>,
    draining: bool,
}

/// When and where a runner came to be; the same for all of a parallel runner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// What times in records count from.
    pub(crate) begun_ns: u64,
    /// The signal mask that hooks get: its maker's, as it was.
    pub(crate) mask: signals::Set,
    /// There is one for each processor.
    pub(crate) in_parallel: bool,
}

impl Origin {
    /// Now, on this thread, for a runner that is the only one.
    pub(crate) fn here() -> Origin {
        Origin { begun_ns: clock::now_ns(), mask: signals::mask(), in_parallel: false }
    }
}

/// What an epoll tag says: kind, place, generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Wake,
    Watched(u32),
    Out(usize, u32),
    Err(usize, u32),
    End(usize, u32),
}

impl Tag {
    fn bits(self) -> epoll::EventData {
        let pack = |kind: u64, place: usize, low: u32| {
            kind << 56 | (place as u64 & 0xff_ffff) << 32 | u64::from(low)
        };
        epoll::EventData::new_u64(match self {
            Tag::Wake => 0,
            Tag::Watched(token) => pack(1, 0, token),
            Tag::Out(place, generation) => pack(2, place, generation),
            Tag::Err(place, generation) => pack(3, place, generation),
            Tag::End(place, generation) => pack(4, place, generation),
        })
    }

    fn of(bits: epoll::EventData) -> Tag {
        let bits = bits.u64();
        let low = u32::try_from(bits & 0xffff_ffff).unwrap_or(0);
        let place = usize::try_from(bits >> 32 & 0xff_ffff).unwrap_or(usize::MAX);
        match bits >> 56 {
            1 => Tag::Watched(low),
            2 => Tag::Out(place, low),
            3 => Tag::Err(place, low),
            4 => Tag::End(place, low),
            _ => Tag::Wake,
        }
    }
}

impl Runner {
    /// A runner with nothing to do. Hooks get the signal mask that this thread has now.
    pub fn new(limits: Limits) -> io::Result<Runner> {
        let shared = Arc::new(Shared::new()?);
        Runner::with(limits, shared, Origin::here())
    }

    /// One of this origin.
    pub(crate) fn with(limits: Limits, shared: Arc<Shared>, origin: Origin) -> io::Result<Runner> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        epoll::add(&epoll, &shared.wake, Tag::Wake.bits(), epoll::EventFlags::IN)?;
        let jobs = limits.jobs.clamp(1, JOBS_MAX);
        let null = above_stdio(null)?;
        let mask = origin.mask;
        let status = Status { blocked: mask.0, ..process::own_status()? };
        if signals::Set(status.ignored).has(SIGCHLD) {
            // The kernel would reap hooks behind our back.
            hob_os::spawn::wait_for_children();
        }
        let depth = prestart::depth(jobs, limits.prestart);
        let processors = (limits.prestart == Prestart::WhileIdle)
            .then(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        let holders = match depth {
            0 => None,
            depth => Some(Holders::new(depth, io::fcntl_dupfd_cloexec(&null, 3)?, mask)),
        };
        Ok(Runner {
            limits: Limits { jobs, ..limits },
            epoll,
            null,
            origin,
            shared,
            waiting: VecDeque::new(),
            given_up: Vec::new(),
            places: Vec::new(),
            holders,
            warm: None,
            zygotes: Zygotes::new(mask),
            status,
            processors,
            generation: 0,
            buffer: vec![0; BUFFER_BYTES],
            draining: false,
        })
    }

    /// Gives hooks whose interpreter hob keeps warm to the daemon that this connects to.
    pub fn warm_through(&mut self, connect: Connector) {
        self.warm = Some(Warm::new(connect, self.status.clone()));
    }

    /// The monotonic clock when this was made, in nanoseconds: what times in records count from.
    #[must_use]
    pub fn begun_ns(&self) -> u64 {
        self.origin.begun_ns
    }

    /// For other threads, and for whoever is called back by this one.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Takes a set; it begins in one of the next turns. Sets begin in the order of submission.
    pub fn submit(&mut self, set: Set) -> SetId {
        let id = self.shared.next_id();
        self.take(id, set);
        id
    }

    /// Takes a set under a number that [`Shared::next_id`] gave; it begins in the next turn.
    pub(crate) fn take(&mut self, id: SetId, set: Set) {
        self.waiting.push_back(Waiting { id, set, listing: None });
    }

    /// How many sets are worth taking now: in a parallel runner those that begin in the next turn, since another
    /// runner may be free before this one.
    pub(crate) fn places(&self) -> usize {
        match self.origin.in_parallel {
            false => self.room(),
            true => self.limits.jobs.saturating_sub(self.waiting.len() + self.active().count()),
        }
    }

    /// What handles and it have in common.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Works as the only one, where nobody else could be had.
    pub(crate) fn leave_parallel(&mut self) {
        self.origin.in_parallel = false;
    }

    /// Runs so many more sets at once.
    pub(crate) fn add_jobs(&mut self, more: usize) {
        self.limits.jobs = (self.limits.jobs + more).min(JOBS_MAX);
    }

    /// How many more sets are worth submitting now: as many as can begin at once, and those
    /// that are next.
    #[must_use]
    pub fn room(&self) -> usize {
        let taken = self.waiting.len() + self.active().count();
        let held = self.holders.as_ref().map_or(1, Holders::depth);
        (self.limits.jobs + held).saturating_sub(taken)
    }

    /// Whether every set that was submitted has ended.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active().next().is_none()
    }

    /// Tells of this descriptor by [`Event::Ready`] while it is readable. It must stay open until
    /// [`Runner::unwatch`].
    pub fn watch(&mut self, fd: impl AsFd, token: u32) -> io::Result<()> {
        epoll::add(&self.epoll, fd, Tag::Watched(token).bits(), epoll::EventFlags::IN)
    }

    /// Watches a descriptor no more.
    pub fn unwatch(&mut self, fd: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Whether no further set is begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Begins no further set: those that wait, and those that are submitted later, end as
    /// cancelled in the next turn. What runs goes on to its end.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Cancels a set. Its hook is sent SIGTERM, with its process group, and SIGKILL after the
    /// grace (at once, if that is zero); nothing more of the set is begun.
    pub fn cancel(&mut self, set: SetId, grace: Duration) {
        if self.waiting.iter().any(|waiting| waiting.id == set) {
            // It ends in the next turn: events go to whoever drives that.
            return self.given_up.push(set);
        }
        let place = self.places.iter().position(|at| at.as_ref().is_some_and(|at| at.id == set));
        if let Some(place) = place {
            self.cancel_place(place, grace);
        }
    }

    /// Cancels every set, and drains.
    pub fn cancel_all(&mut self, grace: Duration) {
        self.drain();
        for place in 0..self.places.len() {
            self.cancel_place(place, grace);
        }
    }

    /// Runs until everything that `source` gives has ended. It is asked for the next set only when
    /// there is room, and no more once it has said `None`.
    pub fn run_all(
        &mut self,
        source: &mut dyn FnMut() -> Option<Set>,
        sink: Sink<'_>,
    ) -> io::Result<()> {
        let mut more = true;
        loop {
            while more && !self.draining && self.room() > 0 {
                match source() {
                    Some(set) => _ = self.submit(set),
                    None => more = false,
                }
            }
            if (!more || self.draining) && self.is_idle() {
                return Ok(());
            }
            self.turn(Wait::Forever, sink)?;
        }
    }

    /// Runs what handles submit, until one of them has closed it and everything has ended.
    pub fn serve(&mut self, sink: Sink<'_>) -> io::Result<()> {
        while !(self.shared.is_closed() && self.is_idle()) {
            self.turn(Wait::Forever, sink)?;
        }
        Ok(())
    }

    /// Begins what can begin, waits for something to happen, and deals with all that has. With
    /// [`Wait::Forever`] and nothing to do it waits for a handle or a watched descriptor.
    pub fn turn(&mut self, wait: Wait, sink: Sink<'_>) -> io::Result<()> {
        self.take_asked();
        // A set may end as it begins (it has no hooks, or is drained): who drives this sees that
        // before there is nothing left to wait for.
        let mut ended = false;
        self.begin_sets(&mut |event: Event<'_>| {
            ended |= matches!(event, Event::SetEnded(_));
            sink(event);
        });
        let rests = matches!(wait, Wait::Forever) && self.is_idle() && self.zygotes.are_there();
        let wait = if rests { Wait::AtMost(REST) } else { wait };
        // One start at a time, and what has happened meanwhile comes first.
        let at_once = self.plan_prestarts() || ended;
        let timeout = self.timeout(if at_once { Wait::AtMost(Duration::ZERO) } else { wait });
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_MAX];
        let happened = match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((happened, _)) => happened,
            Err(io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
        };
        if rests && !ended && happened.is_empty() {
            self.zygotes.rest();
        }
        for event in happened {
            match Tag::of(event.data) {
                // The next turn begins with it.
                Tag::Wake => {}
                Tag::Watched(token) => sink(Event::Ready(token)),
                Tag::Out(place, generation) => {
                    self.output(place, generation, Stream::Out, sink);
                }
                Tag::Err(place, generation) => {
                    self.output(place, generation, Stream::Err, sink);
                }
                Tag::End(place, generation) => self.hook_ended(place, generation, sink),
            }
        }
        self.look_at_deadlines(sink);
        Ok(())
    }

    fn take_asked(&mut self) {
        for asked in self.shared.take() {
            match asked {
                Asked::Submit(id, set) => self.take(id, set),
                Asked::Cancel(id, grace) => self.cancel(id, grace),
                Asked::Drain => self.drain(),
                Asked::CancelAll(grace) => self.cancel_all(grace),
            }
        }
    }

    fn active(&self) -> impl Iterator<Item = &Active> {
        self.places.iter().flatten()
    }

    /// How long to wait: until the next deadline, and no longer than asked.
    fn timeout(&self, wait: Wait) -> Option<Timespec> {
        let deadline = self.active().filter_map(Active::deadline_ns).min();
        let until = deadline.map(|at_ns| at_ns.saturating_sub(clock::now_ns()));
        let asked = match wait {
            Wait::Forever => None,
            Wait::AtMost(time) => Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        };
        let ns = [until, asked].into_iter().flatten().min()?;
        let (secs, nanos) = (ns / 1_000_000_000, ns % 1_000_000_000);
        Some(Timespec {
            tv_sec: secs.try_into().unwrap_or(i64::MAX),
            tv_nsec: nanos.try_into().unwrap_or(0),
        })
    }

    /// Microseconds since the runner began.
    fn micros(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.origin.begun_ns) / 1000
    }
}

/// A set that has not begun.
#[derive(Debug)]
struct Waiting {
    id: SetId,
    set: Set,
    /// Its directory as it was when its first hooks were started before their turn.
    listing: Option<Listing>,
}

const SIGCHLD: i32 = rustix::process::Signal::CHILD.as_raw();
/// As many sets as are ever active at once.
const JOBS_MAX: usize = 4096;

/// A set that was never begun.
fn never_begun(id: SetId, set: &Set, at_us: u64) -> SetRecord {
    SetRecord {
        set: id.0,
        target: set.target.clone(),
        dir: set.dir.clone(),
        outcome: HookOutcome::Cancelled,
        at_us,
        wall_us: 0,
        hooks: Vec::new(),
        not_run: Vec::new(),
        message: None,
        host: None,
    }
}

#[cfg(test)]
mod tests;
