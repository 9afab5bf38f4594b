//! A parallel runner: a runner for each processor, which work through many sets together.
//!
//! One runner can feed many hooks, but it is where it was when it last slept. A hook that ends on
//! another processor wakes it there, where it interrupts somebody else's hook, while the one that
//! has become free has nothing to do until the next hook was started and moved to it. A runner of
//! a processor's own is woken where its hooks run (`docs/why/hooks-figures.md`).
//!
//! ```text
//!            ┌─▶ runner, this thread ──┐
//! source ────┼─▶ runner, its thread  ──┼──▶ source: what has happened
//!   (next)   └─▶ runner, its thread  ──┘
//! ```
//! Invariants: where there are several, a runner asks for a set only when it can begin it, so that
//! none waits behind a long one while somebody is free; as many run at once as one runner would
//! run; each thread but this one has a descriptor table of its own, and this one begins nothing
//! before they have, so that no hook's start inherits the pipes of another thread's hooks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_os::process;
use rustix::io;

use crate::event::{Event, SetId};
use crate::handle::{Handle, Shared};
use crate::runner::{Origin, Runner, Wait};
use crate::set::{Limits, Prestart, Set};
use crate::warm::Connect;

/// How many runners there are at most: each has zygotes of its own.
const RUNNERS_MAX: usize = 16;

/// Gives a parallel runner its sets, and is told what becomes of them; one call at a time, each from any of
/// the runner's threads.
pub trait WorkSource: Send {
    /// The next set, which has this number from now on; `None`: there is none until a set has ended.
    /// A runner asks again when one of its own has: what is to run again finds a place there.
    fn next(&mut self, id: SetId) -> Option<Set>;

    /// What has happened. Descriptors that are watched are told of by the first runner's thread.
    fn event(&mut self, event: Event<'_>);
}

/// Runners that work through an [`WorkSource`].
pub struct ParallelRunner {
    first: Runner,
    others: Vec<Other>,
    connect: Option<Connect>,
}

/// A runner that is made on its own thread.
#[derive(Debug)]
struct Other {
    limits: Limits,
    shared: Arc<Shared>,
    origin: Origin,
}

impl std::fmt::Debug for ParallelRunner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ParallelRunner { first, others, connect: _ } = self;
        let mut shown = formatter.debug_struct("ParallelRunner");
        shown.field("first", first).field("others", others).finish_non_exhaustive()
    }
}

impl ParallelRunner {
    /// One that runs so many sets at once. Where that leaves a processor free, it is a single
    /// runner, which starts hooks before their turn there. Hooks get the signal mask that this
    /// thread has now.
    pub fn new(limits: Limits) -> io::Result<ParallelRunner> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let runners = if limits.jobs < processors { 1 } else { processors.min(RUNNERS_MAX) };
        let share = |at: usize| match runners {
            1 => limits,
            _ => {
                let jobs = limits.jobs / runners + usize::from(at < limits.jobs % runners);
                Limits { jobs, prestart: Prestart::Never, ..limits }
            }
        };
        let origin = Origin { in_parallel: runners > 1, ..Origin::here() };
        let first = Runner::with(share(0), Arc::new(Shared::new()?), origin)?;
        let others = (1..runners).map(|at| {
            let shared = Arc::new(first.shared().beside()?);
            Ok(Other { limits: share(at), shared, origin })
        });
        let others = others.collect::<io::Result<Vec<Other>>>()?;
        Ok(ParallelRunner { first, others, connect: None })
    }

    /// Gives hooks whose interpreter hob keeps warm to the daemon that this connects to.
    pub fn warm_through(&mut self, connect: Connect) {
        self.first.warm_through(boxed(&connect));
        self.connect = Some(connect);
    }

    /// The runner of the thread that calls [`ParallelRunner::run`], to watch descriptors.
    pub fn first(&mut self) -> &mut Runner {
        &mut self.first
    }

    /// For other threads, and for the source.
    #[must_use]
    pub fn handle(&self) -> ParallelHandle {
        let others = self.others.iter().map(|other| Handle(other.shared.clone()));
        ParallelHandle([self.first.handle()].into_iter().chain(others).collect())
    }

    /// Runs until all sets of the source have ended. An error is the first that a runner met: then
    /// the others have begun nothing more, and what they ran has ended.
    pub fn run(self, source: &mut dyn WorkSource) -> io::Result<()> {
        let handle = self.handle();
        let ParallelRunner { mut first, others, connect } = self;
        let source = &Mutex::new(source);
        let working = &AtomicUsize::new(0);
        let connect = &connect;
        let handle = &handle;
        std::thread::scope(|scope| {
            // Told by each that it has descriptors of its own, or cannot: then the rest do its share.
            let (ready, arrived) = channel();
            let shared = first.shared().clone();
            let mut threads = Vec::new();
            for other in others {
                let (ready, jobs) = (ready.clone(), other.limits.jobs);
                let working = Working::begin(working, shared.clone());
                let body = move || {
                    let ended = other.work(connect.as_ref(), source, ready);
                    if ended.is_err() {
                        handle.drain();
                    }
                    drop(working);
                    ended
                };
                match std::thread::Builder::new()
                    .name("hob-hooks".to_owned())
                    .spawn_scoped(scope, body)
                {
                    Ok(thread) => threads.push(thread),
                    Err(_) => first.add_jobs(jobs),
                }
            }
            drop(ready);
            let mut beside = threads.len();
            for jobs_left in arrived {
                beside -= usize::from(jobs_left > 0);
                first.add_jobs(jobs_left);
            }
            if beside == 0 {
                first.leave_parallel();
            }
            let mut ended = work(&mut first, source, || working.load(Ordering::Acquire) == 0);
            if ended.is_err() {
                handle.drain();
            }
            for thread in threads {
                match thread.join() {
                    Ok(other) => ended = ended.and(other),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            ended
        })
    }
}

impl Other {
    /// On its own thread: works until there is nothing more. Says first how many jobs it leaves to
    /// others, which is all of them where it cannot have descriptors of its own.
    fn work(
        self,
        connect: Option<&Connect>,
        source: &Asked<'_>,
        ready: Sender<usize>,
    ) -> io::Result<()> {
        let jobs = self.limits.jobs;
        let made = process::own_descriptors()
            .and_then(|()| Runner::with(self.limits, self.shared.clone(), self.origin));
        let _ = ready.send(if made.is_ok() { 0 } else { jobs });
        drop(ready);
        let Ok(mut runner) = made else { return Ok(()) };
        if let Some(connect) = connect {
            runner.warm_through(boxed(connect));
        }
        work(&mut runner, source, || true)
    }
}

/// Works with one runner until there is nothing more, and, if asked, nobody else at work.
fn work(runner: &mut Runner, source: &Asked<'_>, all_done: impl Fn() -> bool) -> io::Result<()> {
    let mut more = true;
    loop {
        more = more && take(runner, source);
        if (!more || runner.is_draining()) && runner.is_idle() && all_done() {
            return Ok(());
        }
        let mut has_ended = false;
        runner.turn(Wait::Forever, &mut |event| {
            has_ended |= matches!(event, Event::SetEnded(_));
            locked(source).event(event);
        })?;
        more |= has_ended;
    }
}

/// Takes the sets that begin in the next turn; whether there may be more at once.
fn take(runner: &mut Runner, source: &Asked<'_>) -> bool {
    while !runner.is_draining() && runner.places() > 0 {
        let id = runner.shared().next_id();
        match locked(source).next(id) {
            Some(set) => runner.take(id, set),
            None => return false,
        }
    }
    true
}

/// The source, of which one of the runner's threads asks at a time.
type Asked<'a> = Mutex<&'a mut dyn WorkSource>;

fn locked<'a, 'b>(source: &'a Asked<'b>) -> MutexGuard<'a, &'b mut dyn WorkSource> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

fn boxed(connect: &Connect) -> crate::warm::Connector {
    let connect = connect.clone();
    Box::new(move || connect())
}

/// Somebody beside the first runner is at work, which is woken when that ends.
struct Working<'a> {
    count: &'a AtomicUsize,
    first: Arc<Shared>,
}

impl<'a> Working<'a> {
    fn begin(count: &'a AtomicUsize, first: Arc<Shared>) -> Working<'a> {
        count.fetch_add(1, Ordering::AcqRel);
        Working { count, first }
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.first.knock();
    }
}

/// A parallel runner, as other threads and its source see it.
#[derive(Debug, Clone)]
pub struct ParallelHandle(Vec<Handle>);

impl ParallelHandle {
    /// Begins no further set: see [`Runner::drain`].
    pub fn drain(&self) {
        self.0.iter().for_each(Handle::drain);
    }

    /// Cancels every set: see [`Runner::cancel_all`].
    pub fn cancel_all(&self, grace: Duration) {
        self.0.iter().for_each(|handle| handle.cancel_all(grace));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::set::Variables;

    /// Counts the sets that are taken and have not begun, that run, and that are taken and not ended.
    struct Counts {
        left: usize,
        dir: Vec<u8>,
        taken: Vec<SetId>,
        begun: usize,
        ended: usize,
        waited_most: usize,
        ran_most: usize,
        open_most: usize,
    }

    impl WorkSource for Counts {
        fn next(&mut self, id: SetId) -> Option<Set> {
            self.left = self.left.checked_sub(1)?;
            assert!(!self.taken.contains(&id), "two sets have one number");
            self.taken.push(id);
            self.open_most = self.open_most.max(self.taken.len() - self.ended);
            Some(Set::new(&self.dir[..], &Variables::default()))
        }

        fn event(&mut self, event: Event<'_>) {
            match event {
                Event::SetStarted { .. } => self.begun += 1,
                Event::SetEnded(_) => self.ended += 1,
                // While a hook runs, what was taken before it has begun or waits.
                Event::HookStarted { .. } => {
                    self.waited_most = self.waited_most.max(self.taken.len() - self.begun);
                }
                Event::Output { .. }
                | Event::HookSlow { .. }
                | Event::HookEnded { .. }
                | Event::Ready(_) => {}
            }
            self.ran_most = self.ran_most.max(self.begun - self.ended);
        }
    }

    fn counted(jobs: usize) -> Counts {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("1");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut counts = Counts {
            left: 40,
            dir: dir.path().to_str().unwrap().as_bytes().to_vec(),
            taken: Vec::new(),
            begun: 0,
            ended: 0,
            waited_most: 0,
            ran_most: 0,
            open_most: 0,
        };
        ParallelRunner::new(Limits { jobs, ..Limits::default() })
            .unwrap()
            .run(&mut counts)
            .unwrap();
        assert_eq!((counts.begun, counts.ended), (40, 40));
        assert!(counts.ran_most <= jobs, "{} of {jobs} at once", counts.ran_most);
        counts
    }

    #[test]
    fn one_runner_knows_the_next_set_before_its_turn() {
        assert!(counted(1).waited_most >= 1);
    }

    #[test]
    fn several_take_no_more_than_they_run() {
        let processors = std::thread::available_parallelism().unwrap().get();
        for jobs in [processors, processors + 1, 4 * processors] {
            let counts = counted(jobs);
            assert!(counts.open_most <= jobs, "{} of {jobs} taken at once", counts.open_most);
        }
    }

    /// Sets that end at once, and then as many as may run at once, each of which waits for all of
    /// these.
    struct Meeting {
        quick: usize,
        jobs: usize,
        dirs: [Vec<u8>; 2],
        ok: usize,
    }

    impl WorkSource for Meeting {
        fn next(&mut self, _: SetId) -> Option<Set> {
            let [quick, meeting] = &self.dirs;
            if let Some(left) = self.quick.checked_sub(1) {
                self.quick = left;
                return Some(Set::new(&quick[..], &Variables::default()));
            }
            self.jobs = self.jobs.checked_sub(1)?;
            let mut variables = Variables::default();
            variables.set(b"ME", self.jobs.to_string().as_bytes()).unwrap();
            let set = Set::new(&meeting[..], &variables);
            // Only a parallel runner that never lets them meet takes so long.
            Some(Set { kill_after: Some(Duration::from_secs(60)), ..set })
        }

        fn event(&mut self, event: Event<'_>) {
            if let Event::SetEnded(record) = event {
                self.ok += usize::from(record.outcome == hob_core::hooks::HookOutcome::Ok);
            }
        }
    }

    #[test]
    fn sets_that_wait_for_each_other_all_begin() {
        let jobs = 4 * std::thread::available_parallelism().unwrap().get();
        let root = tempfile::tempdir().unwrap();
        let here = root.path().join("here");
        std::fs::create_dir(&here).unwrap();
        let meet = format!(
            "#!/bin/sh\n: >{0}/$ME\nfor me in $(/bin/seq 0 {1}); do\n\
             until [ -e {0}/$me ]; do /bin/sleep 0.01; done\ndone\n",
            here.display(),
            jobs - 1
        );
        let dirs = [("quick", "#!/bin/sh\n:\n"), ("meeting", &meet)].map(|(name, script)| {
            let dir = root.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let file = dir.join("1");
            std::fs::write(&file, script).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            dir.to_str().unwrap().as_bytes().to_vec()
        });
        let mut meeting = Meeting { quick: 40, jobs, dirs, ok: 0 };
        ParallelRunner::new(Limits { jobs, ..Limits::default() })
            .unwrap()
            .run(&mut meeting)
            .unwrap();
        assert_eq!(meeting.ok, 40 + jobs);
    }

    /// Sets of which each is given again as often as it is to be, only after it has ended.
    struct Again {
        left: usize,
        dir: Vec<u8>,
        waiting: Vec<usize>,
        open: std::collections::HashMap<SetId, usize>,
        tries: usize,
    }

    impl WorkSource for Again {
        fn next(&mut self, id: SetId) -> Option<Set> {
            let tries = match self.waiting.pop() {
                Some(tries) => tries,
                None => {
                    self.left = self.left.checked_sub(1)?;
                    3
                }
            };
            self.open.insert(id, tries);
            Some(Set::new(&self.dir[..], &Variables::default()))
        }

        fn event(&mut self, event: Event<'_>) {
            let Event::SetEnded(record) = event else { return };
            self.tries += 1;
            let left = self.open.remove(&SetId(record.set)).unwrap() - 1;
            self.waiting.extend((left > 0).then_some(left));
        }
    }

    #[test]
    fn what_is_given_again_after_the_source_was_empty_runs() {
        let processors = std::thread::available_parallelism().unwrap().get();
        for (jobs, sets) in [(1, 1), (1, 7), (processors, 1), (4 * processors, 9)] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path().to_str().unwrap().as_bytes().to_vec();
            let mut again = Again {
                left: sets,
                dir,
                waiting: Vec::new(),
                open: std::collections::HashMap::new(),
                tries: 0,
            };
            let limits = Limits { jobs, ..Limits::default() };
            ParallelRunner::new(limits).unwrap().run(&mut again).unwrap();
            assert_eq!((again.tries, again.waiting.len()), (3 * sets, 0), "{jobs} jobs");
        }
    }
}
