//! Hook sets of callers that cannot run them by themselves: one thread with a runner of
//! `hob-hooks`, and the table of what is open.
//!
//! ```text
//!   fronts/hooks ──begin──▶ table ─▶ runner (its own thread) ──events──▶ tell ─▶ caller's socket
//!        │                    ▲                                   └────▶ recorder (at the end)
//!        └──cancel, gone──────┘
//! ```
//! Invariants: the thread is started by the first set; the daemon's loop never waits for it; what
//! is open is bounded by [`OPEN_MAX`]; a set ends exactly once, with one receipt; the table's lock
//! is never held while a hook is started or a socket is waited for (sending does not wait).

mod receipt;
mod tell;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_core::hooks::SetRecord;
use hob_core::ids::CallId;
use hob_hooks::{Event, Handle, Limits, Prestart, Runner, Set, SetId};
use hob_os::uds;
use hob_wire::message::Reason;
use jiff::Timestamp;
use rustix::fd::OwnedFd;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::channel::Outlet;
use crate::inputs::Input;
use crate::recorder::Recorder;

/// A connection of a caller of hook sets. Numbers are never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CallerId(pub(crate) u64);

/// Sets that are open at one time, those that wait for their turn with them. The caller of one more
/// is told that hob is busy.
const OPEN_MAX: usize = 1024;
/// Sets of which a hook runs at one time. How many are wanted at once is the callers' choice;
/// this bounds it.
const JOBS: usize = 16;
/// How long a hook of a set that is cancelled may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// A set that has not ended.
#[derive(Debug)]
struct Open {
    caller: CallerId,
    /// The caller's own number for it.
    number: u64,
    call: CallId,
    pid: u32,
    at: Timestamp,
    outlet: Outlet,
    /// How many hooks it has, once it was listed.
    hooks: usize,
    /// How many of them have ended.
    ended: usize,
    /// The frames of its last hook, which go with those of its end.
    last: Vec<u8>,
    /// When it began, in the runner's time.
    begun_us: u64,
    /// Why it is being cancelled, if it is.
    cut: Option<Cut>,
    /// Ends it when its time is over.
    timer: Option<AbortHandle>,
}

/// Why a set is cancelled. The first reason counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Its caller wants so.
    Asked,
    /// Its caller's connection has ended.
    CallerLeft,
    /// Its time is over.
    TimedOut,
    /// The daemon was stopped.
    Stopped,
}

/// What a front knows of a set that is to begin.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) caller: CallerId,
    pub(crate) number: u64,
    pub(crate) pid: u32,
    pub(crate) outlet: Outlet,
    pub(crate) set: Set,
    /// How long it may take.
    pub(crate) remaining: Option<Duration>,
}

/// The sets of this daemon, as every part of it has them.
#[derive(Debug, Clone)]
pub(crate) struct Sets(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// To this daemon's own front: a hook whose interpreter is kept warm is an ordinary call.
    calls: mpsc::Sender<OwnedFd>,
    recorder: Arc<Recorder>,
    /// To be told of the end of the last set while the daemon leaves.
    owner: mpsc::Sender<Input>,
    table: Mutex<Table>,
    /// Whether a set was begun since this was last asked.
    active: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<SetId, Open>,
    runner: Option<Handle>,
    closing: bool,
    total: u64,
}

impl Sets {
    pub(crate) fn new(
        calls: mpsc::Sender<OwnedFd>,
        recorder: Arc<Recorder>,
        owner: mpsc::Sender<Input>,
    ) -> Sets {
        let (table, active) = (Mutex::default(), AtomicBool::new(false));
        Sets(Arc::new(Shared { calls, recorder, owner, table, active }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a set; it runs when its turn comes. Otherwise: why not, and a line for a person.
    pub(crate) fn begin(&self, wanted: Wanted) -> Result<(), (Reason, String)> {
        let Wanted { caller, number, pid, outlet, set, remaining } = wanted;
        let mut table = self.table();
        if table.closing {
            return Err((Reason::Stopping, "the daemon stops".to_owned()));
        }
        if table.open.len() >= OPEN_MAX {
            let text = format!("{OPEN_MAX} sets are open: wait for some of them to end");
            return Err((Reason::Busy, text));
        }
        if table.open.values().any(|open| open.caller == caller && open.number == number) {
            return Err((Reason::Malformed, format!("set {number} is open already")));
        }
        let runner = match &table.runner {
            Some(runner) => runner.clone(),
            None => {
                let runner = self.start().map_err(|error| {
                    (Reason::Busy, format!("cannot start the hooks' thread: {error}"))
                })?;
                table.runner.insert(runner).clone()
            }
        };
        // The lock is held until the set is in the table: its events wait for it.
        let Ok(id) = runner.submit(set) else {
            return Err((Reason::Stopping, "the daemon stops".to_owned()));
        };
        let timer = remaining.map(|remaining| {
            let sets = self.clone();
            let wait = async move {
                tokio::time::sleep(remaining).await;
                sets.cut(id, Cut::TimedOut);
            };
            tokio::spawn(wait).abort_handle()
        });
        let call = CallId(self.0.recorder.next_call());
        let open = Open {
            caller,
            number,
            call,
            pid,
            at: Timestamp::now(),
            outlet,
            hooks: 0,
            ended: 0,
            last: Vec::new(),
            begun_us: 0,
            cut: None,
            timer,
        };
        table.open.insert(id, open);
        table.total += 1;
        self.0.active.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Starts the thread.
    fn start(&self) -> std::io::Result<Handle> {
        let limits = Limits { jobs: JOBS, prestart: Prestart::WhileIdle, ..Limits::default() };
        let (sets, runtime) = (self.clone(), tokio::runtime::Handle::current());
        let (told, handle) = std::sync::mpsc::sync_channel(1);
        std::thread::Builder::new().name("hooks".to_owned()).spawn(move || {
            // What a socket does not take at once is finished by a task of the daemon's.
            let _entered = runtime.enter();
            let mut runner = match Runner::new(limits) {
                Ok(runner) => runner,
                Err(error) => {
                    let _ = told.send(Err(error));
                    return;
                }
            };
            let calls = sets.0.calls.clone();
            runner.warm_through(Box::new(move || connect(&calls)));
            let _ = told.send(Ok(runner.handle()));
            // It fails only without memory for its events; what is open is then lost.
            if runner.serve(&mut |event| sets.happened(event)).is_err() {
                sets.failed();
            }
        })?;
        handle.recv().map_err(std::io::Error::other)?.map_err(std::io::Error::from)
    }

    /// Something happened to a set. On the runner's thread, before the next hook is let run.
    fn happened(&self, event: Event<'_>) {
        match event {
            Event::SetStarted { set, names, .. } => self.with(set, |open| {
                open.hooks = names.len();
                tell::begun(open, names);
            }),
            Event::HookEnded { set, record } => self.with(set, |open| {
                if open.ended == 0 {
                    open.begun_us = record.at_us;
                }
                tell::hook_ended(open, record);
                open.ended += 1;
            }),
            Event::SetEnded(record) => self.ended(&record),
            // When a hook is started is told before it is: with the end of the one before.
            Event::HookStarted { .. }
            | Event::Output { .. }
            | Event::HookSlow { .. }
            | Event::Ready(_) => {}
        }
    }

    fn with(&self, set: SetId, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.table().open.get_mut(&set) {
            change(open);
        }
    }

    fn ended(&self, record: &SetRecord) {
        let last = {
            // Until all is recorded and told: a daemon that leaves does so when it sees no set.
            let mut table = self.table();
            let Some(open) = table.open.remove(&SetId(record.set)) else { return };
            if let Some(timer) = &open.timer {
                timer.abort();
            }
            let outcome = receipt::outcome(record, open.cut);
            self.0.recorder.record(receipt::of(&open, record, outcome));
            tell::set_ended(open, record, outcome);
            table.closing && table.open.is_empty()
        };
        if last {
            // A loop with a full queue looks by itself.
            let _ = self.0.owner.try_send(Input::SetsEnded);
        }
    }

    /// The runner cannot go on.
    fn failed(&self) {
        let open = {
            let mut table = self.table();
            table.runner = None;
            std::mem::take(&mut table.open)
        };
        for open in open.into_values() {
            open.outlet.close();
        }
    }

    /// A caller takes one of its sets back.
    pub(crate) fn cancel(&self, caller: CallerId, number: u64) {
        let found = {
            let table = self.table();
            let mut open = table.open.iter();
            open.find(|(_, open)| open.caller == caller && open.number == number).map(|(id, _)| *id)
        };
        if let Some(id) = found {
            self.cut(id, Cut::Asked);
        }
    }

    /// A caller's connection has ended, and its sets with it.
    pub(crate) fn caller_left(&self, caller: CallerId) {
        self.cut_all(Cut::CallerLeft, |open| open.caller == caller);
    }

    fn cut(&self, id: SetId, why: Cut) {
        let mut table = self.table();
        let Some(open) = table.open.get_mut(&id).filter(|open| open.cut.is_none()) else { return };
        open.cut = Some(why);
        if let Some(runner) = &table.runner {
            runner.cancel(id, GRACE);
        }
    }

    fn cut_all(&self, why: Cut, which: impl Fn(&Open) -> bool) {
        let ids: Vec<SetId> = {
            let table = self.table();
            let open = table.open.iter().filter(|(_, open)| which(open));
            open.map(|(id, _)| *id).collect()
        };
        for id in ids {
            self.cut(id, why);
        }
    }

    /// No new sets; those that are open may end.
    pub(crate) fn close(&self) {
        self.table().closing = true;
    }

    /// No new sets, and those that are open are cancelled.
    pub(crate) fn stop(&self) {
        self.close();
        self.cut_all(Cut::Stopped, |_| true);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table().open.is_empty()
    }

    /// Whether anything was done since the last time that this was asked, or is being done.
    pub(crate) fn take_activity(&self) -> bool {
        self.0.active.swap(false, Ordering::Relaxed) || !self.is_empty()
    }
}

/// A connection to this daemon, as a client has one; `None`: it takes nothing new.
fn connect(calls: &mpsc::Sender<OwnedFd>) -> Option<OwnedFd> {
    let (ours, theirs) = uds::pair().ok()?;
    calls.try_send(theirs).ok()?;
    Some(ours)
}
