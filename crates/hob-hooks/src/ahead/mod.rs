//! Starting hooks before their turn: as new processes that are held before their first own
//! instruction, and let go when their turn comes.
//!
//! ```text
//! runner:  want ───────────▶ take (its turn) ──▶ still exact? ── SIGCONT ──▶ it runs
//!            │                 ▲      └─ no: killed, started afresh, the reason in its record
//! thread:    └▶ start, trace to its entry, leave stopped ┘
//! ```
//! A thread of its own does it, since a traced child's stops are told to the thread that traces
//! it, and show on no descriptor that could be in the runner's epoll. It waits for exactly the
//! child that it has just started.
//!
//! Invariants: a held process has looked at nothing but files whose identity is compared again
//! before it is let go ([`lesson`]); a place that is given up ends its process.

mod holder;
mod lesson;

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::thread::JoinHandle;

use hob_core::hooks::Reason;
use hob_os::spawn::{self, Waited};
use hob_os::vfork::Child;
use hob_os::{process, signals, trace};
use rustix::fd::OwnedFd;

use crate::event::SetId;
use crate::handle::Shared;
use crate::listing::Identity;
use crate::set::Set;
use crate::start::OurPipes;
use holder::{Desk, Ticket};
use lesson::Lesson;

/// What is to be held: a hook of a set.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) id: SetId,
    pub(crate) set: Set,
    pub(crate) path: CString,
}

/// A process that is held.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) child: Child,
    pub(crate) pipes: OurPipes,
    script: Identity,
    lesson: Arc<Lesson>,
}

impl Held {
    /// Whether everything that its start has read is what it was, its file being this one now.
    pub(crate) fn is_exact(&self, script: Option<Identity>) -> bool {
        script == Some(self.script) && self.lesson.holds()
    }

    /// Lets it run. `None`: somebody has ended it, or sent it a signal that a process which is
    /// started now would not have.
    pub(crate) fn release(self) -> Option<(Child, OurPipes)> {
        let ended = !matches!(
            spawn::wait(self.child.pid, spawn::Wait::Poll),
            Ok(Waited::Nothing | Waited::Stopped(_))
        );
        if ended {
            return None;
        }
        if process::pending(self.child.pid) & !SIGSTOP_BIT != 0
            || trace::release(&self.child).is_err()
        {
            self.discard();
            return None;
        }
        Some((self.child, self.pipes))
    }

    /// Ends it.
    pub(crate) fn discard(self) {
        trace::discard_held(&self.child);
    }
}

/// What leaves it stopped may still be on its way to it.
const SIGSTOP_BIT: u64 = 1 << 18;

/// What has become of a hook that was wanted ahead.
#[derive(Debug)]
pub(crate) enum Ahead {
    /// It was not wanted: there was no time.
    NotWanted,
    /// It is being started; the runner is woken when that is done.
    Pending,
    /// It is held.
    Held(Box<Held>),
    /// It cannot be held.
    Not(Reason),
}

/// The threads that hold, and what they hold.
#[derive(Debug)]
pub(crate) struct Holders {
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
    tickets: Vec<Arc<Ticket>>,
    depth: usize,
}

impl Holders {
    /// With room for this many. Threads are started when they are needed.
    pub(crate) fn new(
        depth: usize,
        shared: &Arc<Shared>,
        null: OwnedFd,
        mask: signals::Set,
    ) -> Holders {
        let desk = Arc::new(Desk::new(shared.clone(), null, mask));
        Holders { desk, threads: Vec::new(), tickets: Vec::new(), depth }
    }

    /// How many hooks may be held at once.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Wants exactly these hooks, the most urgent first: begins those that are new, and ends those that are not among them.
    pub(crate) fn want(&mut self, wanted: &[(SetId, &Set, &[u8])]) {
        let mut kept = Vec::with_capacity(self.depth);
        for &(id, set, name) in wanted {
            let path = set.path(name);
            let known = self.tickets.iter().position(|ticket| ticket.is_for(id, &path));
            kept.push(match known {
                Some(at) => self.tickets.swap_remove(at),
                None => {
                    let ticket = Arc::new(Ticket::new(Wanted { id, set: set.clone(), path }));
                    self.desk.put(ticket.clone());
                    ticket
                }
            });
        }
        for ticket in std::mem::replace(&mut self.tickets, kept) {
            ticket.give_up();
        }
        while self.threads.len() < self.tickets.len() {
            let desk = self.desk.clone();
            // Without it the hook is waited for in vain, and so is not wanted any more.
            match std::thread::Builder::new().spawn(move || desk.serve()) {
                Ok(thread) => self.threads.push(thread),
                Err(_) => break,
            }
        }
        if self.threads.is_empty() {
            for ticket in self.tickets.drain(..) {
                ticket.give_up();
            }
            self.depth = 0;
        }
    }

    /// Takes a hook whose turn has come.
    pub(crate) fn take(&mut self, id: SetId, path: &CStr) -> Ahead {
        let Some(at) = self.tickets.iter().position(|ticket| ticket.is_for(id, path)) else {
            return Ahead::NotWanted;
        };
        match self.tickets[at].take() {
            Ahead::Pending => Ahead::Pending,
            done @ (Ahead::NotWanted | Ahead::Held(_) | Ahead::Not(_)) => {
                self.tickets.swap_remove(at);
                done
            }
        }
    }

    /// Ends the process of a hook that is pending, whose set is given up or out of time.
    pub(crate) fn give_up(&mut self, id: SetId) {
        self.tickets.retain(|ticket| {
            if ticket.is_of(id) {
                ticket.give_up();
            }
            !ticket.is_of(id)
        });
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        for ticket in self.tickets.drain(..) {
            ticket.give_up();
        }
        self.desk.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
