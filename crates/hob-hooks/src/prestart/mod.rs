//! Starting hooks before their turn: as new processes that are held before their first own
//! instruction, and let go when their turn comes.
//!
//! ```text
//! want ─▶ started, traced, on its way to its entry ─▶ take (its turn) ─▶ stands there? still exact?
//!                                                                         ├─ yes: let go, untraced
//!                                                                         └─ no: killed, spawned
//! ```
//! It happens on the runner's own thread, to which alone a traced child's stops are told. Starting
//! one keeps the loop for as long as any start does, and its `execve`; the stop at the entry
//! is waited for only when the hook's turn has come, and then its start is all that there is to
//! wait for.
//!
//! Invariants: a held process has looked at nothing but files whose identity is compared again
//! before it is let go ([`profile`]); what is not wanted any more is ended.

mod profile;

use std::ffi::{CStr, CString};
use std::sync::Arc;

use hob_core::hooks::Reason;
use hob_entryfork::vfork::Traced;
use hob_os::signals;
use hob_os::trace::{self, Child, Entry, NotHeld};
use rustix::fd::OwnedFd;
use rustix::io;

use crate::event::SetId;
use crate::listing::Identity;
use crate::set::Set;
use crate::start::{self, OurPipes, Pipes, Stdio};
use profile::{Profile, Profiles};

/// A process that is held, or on its way to where it will be.
#[derive(Debug)]
pub(crate) struct Held {
    child: Child,
    pipes: OurPipes,
    script: Identity,
    profile: Arc<Profile>,
    /// `None`: it stands still already.
    entry: Option<Entry>,
}

impl Held {
    /// Lets it run, its file being this one now.
    pub(crate) fn release(self, script: Option<Identity>) -> Result<(Child, OurPipes), Reason> {
        // What it reads on its way is compared when it has read it.
        let arrived = match &self.entry {
            Some(entry) => trace::arrived(self.child.pid, entry),
            None => Ok(()),
        };
        let exact = script == Some(self.script) && self.profile.holds();
        let let_go = match arrived {
            Ok(()) if exact => trace::release(self.child.pid).map_err(reason),
            Ok(()) => Err(Reason::Changed),
            Err(not) => Err(reason(not)),
        };
        match let_go {
            Ok(()) => Ok((self.child, self.pipes)),
            Err(reason) => {
                trace::discard(&self.child);
                Err(reason)
            }
        }
    }
}

fn reason(not: NotHeld) -> Reason {
    match not {
        NotHeld::Disturbed => Reason::HeldGone,
        NotHeld::Refused(_) => Reason::TraceRefused,
    }
}

/// One hook that was wanted before its turn.
#[derive(Debug)]
struct Ticket {
    id: SetId,
    path: CString,
    held: Result<Box<Held>, Reason>,
}

impl Ticket {
    fn give_up(self) {
        if let Ok(held) = self.held {
            trace::discard(&held.child);
        }
    }
}

/// What is held.
#[derive(Debug)]
pub(crate) struct Holders {
    tickets: Vec<Ticket>,
    depth: usize,
    null: OwnedFd,
    mask: signals::Set,
    profiles: Profiles,
}

impl Holders {
    /// With room for this many.
    pub(crate) fn new(depth: usize, null: OwnedFd, mask: signals::Set) -> Holders {
        Holders { tickets: Vec::new(), depth, null, mask, profiles: Profiles::default() }
    }

    /// How many hooks may be held at once.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Wants exactly these hooks, the most urgent first: ends those that are not among them, and
    /// begins at most one that is new. Whether that leaves others to begin.
    pub(crate) fn want(&mut self, wanted: &[(SetId, &Set, &[u8])]) -> bool {
        let mut kept = Vec::with_capacity(self.depth);
        let mut new = Vec::new();
        for &(id, set, name) in wanted {
            let path = set.path(name);
            let is_this = |ticket: &Ticket| ticket.id == id && ticket.path == path;
            match self.tickets.iter().position(is_this) {
                Some(at) => kept.push(self.tickets.swap_remove(at)),
                None => new.push((id, set, path)),
            }
        }
        for ticket in std::mem::replace(&mut self.tickets, kept) {
            ticket.give_up();
        }
        let more = new.len() > 1;
        if let Some((id, set, path)) = new.into_iter().next() {
            let held = self.hold(set, &path).map(Box::new);
            self.tickets.push(Ticket { id, path, held });
        }
        more
    }

    /// Takes a hook whose turn has come. `None`: it was not wanted before.
    pub(crate) fn take(&mut self, id: SetId, path: &CStr) -> Option<Result<Box<Held>, Reason>> {
        let is_this = |ticket: &Ticket| ticket.id == id && *ticket.path == *path;
        let at = self.tickets.iter().position(is_this)?;
        Some(self.tickets.swap_remove(at).held)
    }

    /// Starts a hook, and sends it on its way to its entry.
    fn hold(&self, set: &Set, path: &CStr) -> Result<Held, Reason> {
        if set.environment.iter().any(|entry| tells_the_linker(entry.to_bytes())) {
            return Err(Reason::LinkerVariables);
        }
        let script = Identity::at(set.place(), path).map_err(|_| Reason::Changed)?;
        if script.is_too_new() {
            return Err(Reason::Changed);
        }
        let interpreter = self.profiles.interpreter(set, path)?;
        let pipes = Pipes::new().map_err(|_| Reason::TraceRefused)?;
        let stdio = Stdio { null: &self.null, pipes: &pipes };
        let child = start::start(set, path, stdio, self.mask, Traced::Yes);
        let child = child.map_err(|error| match error {
            io::Errno::PERM | io::Errno::INVAL => Reason::TraceRefused,
            _ => Reason::Changed,
        })?;
        match self.towards_entry(&child, interpreter) {
            Ok((profile, entry)) => Ok(Held { child, pipes: pipes.ours(), script, profile, entry }),
            Err(reason) => {
                trace::discard(&child);
                Err(reason)
            }
        }
    }

    fn towards_entry(
        &self,
        child: &Child,
        interpreter: CString,
    ) -> Result<(Arc<Profile>, Option<Entry>), Reason> {
        trace::executed(child.pid).map_err(reason)?;
        if let Some(profile) = self.profiles.known(child.pid, &interpreter)? {
            return Ok((profile, trace::towards_entry(child.pid).map_err(reason)?));
        }
        let mut seen = Vec::new();
        let linked = trace::watched_to_entry(child.pid, &mut |looks| seen.push(looks));
        let linked = linked.map_err(reason)?;
        Ok((self.profiles.keep(child.pid, interpreter, linked, seen)?, None))
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        self.tickets.drain(..).for_each(Ticket::give_up);
    }
}

/// Whether a variable makes the dynamic linker load something else.
fn tells_the_linker(entry: &[u8]) -> bool {
    entry.starts_with(b"LD_") || entry.starts_with(b"GLIBC_TUNABLES=")
}
