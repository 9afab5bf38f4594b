//! The threads that hold: each takes a ticket, starts its hook, and leaves it stopped.
//!
//! Locks are held to push, to take and to look, never while anything is started or waited for.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hob_core::hooks::Reason;
use hob_os::signals;
use hob_os::trace::{self, NotHeld, Stands};
use hob_os::vfork::{Child, Traced};
use rustix::fd::OwnedFd;
use rustix::io;

use super::lesson::{Lesson, Lessons};
use super::{Ahead, Held, Wanted};
use crate::event::SetId;
use crate::handle::Shared;
use crate::listing::Identity;
use crate::start::{self, Pipes};

/// One hook that is wanted ahead.
#[derive(Debug)]
pub(super) struct Ticket {
    wanted: Wanted,
    state: Mutex<State>,
    /// Its turn has come: the runner waits to be woken.
    due: AtomicBool,
    given_up: AtomicBool,
}

#[derive(Debug)]
enum State {
    /// It waits for a thread, or is being started.
    Pending,
    Held(Box<Held>),
    Not(Reason),
    Taken,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ticket {
    pub(super) fn new(wanted: Wanted) -> Ticket {
        Ticket {
            wanted,
            state: Mutex::new(State::Pending),
            due: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        }
    }

    pub(super) fn is_for(&self, id: SetId, path: &CStr) -> bool {
        self.wanted.id == id && *self.wanted.path == *path
    }

    pub(super) fn is_of(&self, id: SetId) -> bool {
        self.wanted.id == id
    }

    /// Takes what there is. If it is pending, the runner is woken when that is over.
    pub(super) fn take(&self) -> Ahead {
        let mut state = locked(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Pending => {
                *state = State::Pending;
                self.due.store(true, Ordering::Release);
                Ahead::Pending
            }
            State::Held(held) => Ahead::Held(held),
            State::Not(reason) => Ahead::Not(reason),
            State::Taken => Ahead::NotWanted,
        }
    }

    /// Ends its process, now or as soon as its thread knows of it.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        let state = std::mem::replace(&mut *locked(&self.state), State::Taken);
        if let State::Held(held) = state {
            held.discard();
        }
    }

    fn settle(&self, result: Result<Held, Reason>, shared: &Shared) {
        {
            let mut state = locked(&self.state);
            if self.given_up.load(Ordering::Acquire) {
                drop(state);
                if let Ok(held) = result {
                    held.discard();
                }
                return;
            }
            *state = match result {
                Ok(held) => State::Held(Box::new(held)),
                Err(reason) => State::Not(reason),
            };
        }
        if self.due.load(Ordering::Acquire) {
            shared.knock();
        }
    }
}

/// Where tickets wait for a thread.
#[derive(Debug)]
pub(super) struct Desk {
    queue: Mutex<Queue>,
    more: Condvar,
    shared: Arc<Shared>,
    null: OwnedFd,
    mask: signals::Set,
    lessons: Lessons,
}

#[derive(Debug, Default)]
struct Queue {
    tickets: VecDeque<Arc<Ticket>>,
    closed: bool,
}

impl Desk {
    pub(super) fn new(shared: Arc<Shared>, null: OwnedFd, mask: signals::Set) -> Desk {
        Desk {
            queue: Mutex::default(),
            more: Condvar::new(),
            shared,
            null,
            mask,
            lessons: Lessons::default(),
        }
    }

    pub(super) fn put(&self, ticket: Arc<Ticket>) {
        locked(&self.queue).tickets.push_back(ticket);
        self.more.notify_one();
    }

    pub(super) fn close(&self) {
        locked(&self.queue).closed = true;
        self.more.notify_all();
    }

    /// A thread's life.
    pub(super) fn serve(&self) {
        loop {
            let mut queue = locked(&self.queue);
            let ticket = loop {
                if let Some(ticket) = queue.tickets.pop_front() {
                    break ticket;
                }
                if queue.closed {
                    return;
                }
                queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            if !ticket.given_up.load(Ordering::Acquire) {
                ticket.settle(self.hold(&ticket.wanted), &self.shared);
            }
        }
    }

    /// Starts a hook and holds it.
    fn hold(&self, wanted: &Wanted) -> Result<Held, Reason> {
        let set = &wanted.set;
        if set.environment.iter().any(|entry| tells_the_linker(entry.to_bytes())) {
            return Err(Reason::LinkerVariables);
        }
        let script = Identity::at(set.place(), &wanted.path).map_err(|_| Reason::Changed)?;
        if script.is_too_new() {
            return Err(Reason::Changed);
        }
        let interpreter = self.lessons.interpreter(set, &wanted.path)?;
        let pipes = Pipes::new().map_err(|_| Reason::TraceRefused)?;
        let child = start::start(set, &wanted.path, &pipes, &self.null, (self.mask, Traced::Yes));
        let child = child.map_err(|error| match error {
            io::Errno::PERM => Reason::TraceRefused,
            _ => Reason::Changed,
        })?;
        let held = self.to_entry(&child, interpreter);
        match held {
            Ok(lesson) => Ok(Held { child, pipes: pipes.ours(), script, lesson }),
            Err(reason) => {
                trace::discard_held(&child);
                Err(reason)
            }
        }
    }

    fn to_entry(&self, child: &Child, interpreter: CString) -> Result<Arc<Lesson>, Reason> {
        let reason = |not: NotHeld| match not {
            NotHeld::Disturbed => Reason::HeldGone,
            NotHeld::Refused(_) => Reason::TraceRefused,
        };
        trace::executed(child.pid).map_err(reason)?;
        let known = self.lessons.known(child.pid, &interpreter)?;
        let lesson = match known {
            Some(lesson) => {
                if lesson.stands() == Stands::Entry {
                    trace::to_entry(child.pid, None).map_err(reason)?;
                }
                lesson
            }
            None => {
                let mut seen = Vec::new();
                let mut learn = |looks| seen.push(looks);
                let stands = trace::to_entry(child.pid, Some(&mut learn)).map_err(reason)?;
                self.lessons.learned(child.pid, interpreter, stands, seen)?
            }
        };
        trace::leave_stopped(child.pid).map_err(|_| Reason::HeldGone)?;
        Ok(lesson)
    }
}

/// Whether a variable makes the dynamic linker load something else.
fn tells_the_linker(entry: &[u8]) -> bool {
    entry.starts_with(b"LD_") || entry.starts_with(b"GLIBC_TUNABLES=")
}
