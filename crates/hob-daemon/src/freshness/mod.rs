//! Is the warm state still what a cold start would load?
//!
//! ```text
//!   notes ─▶ Freshness::build ─▶ keep ─▶ verdict, before every call ─▶ forget
//!
//!   verdict:   Clear ──entry, content──▶ Touched ──compared: equal──▶ Clear
//!                └────way, mount──▶ Moved ──watched anew, compared──▶ Clear
//!              Always: compared before every call, as what cannot be watched is.
//! ```
//! A fingerprint holds what was loaded and searched. The watch says which fingerprints *may* have
//! changed; only those are compared with the files, so that an untouched program costs one `poll`,
//! however many files it has. What cannot be watched is compared before every call.
//!
//! Invariants: never stale, and never trusting a modification time alone; files that no import
//! could find (output beside a script, `__pycache__`) do not make anything stale.
//!
//! Deliberately not here: what to do with stale state, and the script itself when the worker
//! compares its code with the file on every call.

mod before;
mod fingerprint;
mod identity;
mod listing;
#[cfg(test)]
mod tests;
mod watch;
mod ways;

use std::collections::HashMap;
use std::time::SystemTime;

pub(crate) use before::Before;
pub(crate) use fingerprint::{Change, Fingerprint, NotYet, Presence, Sources, Verdict};

use listing::What;
use watch::{Interest, Lost, Touch, Watch};
use ways::Marked;

/// A kept fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FingerprintId(u64);

/// How much a fingerprint must be looked at; the later, the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suspicion {
    /// Compared, and untouched since.
    Clear,
    /// Touched since it was compared.
    Touched,
    /// A way to it may lead elsewhere: what is watched is no longer what counts.
    Moved,
    /// It cannot be watched: compared before every call.
    Always,
}

#[derive(Debug)]
struct Kept {
    fingerprint: Fingerprint,
    suspicion: Suspicion,
    marked: Marked,
}

/// All fingerprints, and the watch that they share.
#[derive(Debug)]
pub(crate) struct Freshness {
    watch: Watch,
    kept: HashMap<FingerprintId, Kept>,
    next: u64,
}

impl Freshness {
    /// Nothing kept yet.
    pub(crate) fn new() -> Freshness {
        Freshness::with(Watch::new())
    }

    /// The same without any watch: everything is compared each time.
    #[cfg(any(test, feature = "measure"))]
    pub(crate) fn unwatched() -> Freshness {
        Freshness::with(Watch::none())
    }

    fn with(watch: Watch) -> Freshness {
        Freshness { watch, kept: HashMap::new(), next: 0 }
    }

    /// Takes the fingerprint of what a process that was started at `started_at` has loaded. `before`
    /// is what was there before. What came with a mount, and went with it, leaves no trace at any
    /// file: so nothing counts that was loaded while something was mounted or unmounted.
    pub(crate) fn build(
        &mut self,
        sources: Sources<'_>,
        before: &Before,
        started_at: SystemTime,
    ) -> Result<Fingerprint, NotYet> {
        let fingerprint = Fingerprint::build(sources, before, started_at)?;
        // Asked after all files were looked at: a mount from here on is told to what is kept.
        self.drain();
        if self.watch.mounted_since(started_at) {
            return Err(NotYet { change: Change { path: b"/".to_vec(), what: What::Mounted } });
        }
        Ok(fingerprint)
    }

    /// Keeps a fingerprint under watch until it is forgotten.
    pub(crate) fn keep(&mut self, fingerprint: Fingerprint) -> FingerprintId {
        self.next += 1;
        let id = FingerprintId(self.next);
        let (suspicion, marked) = place(&mut self.watch, &fingerprint, id);
        self.kept.insert(id, Kept { fingerprint, suspicion, marked });
        id
    }

    /// Gives a fingerprint up, and the watches that only it needed.
    pub(crate) fn forget(&mut self, id: FingerprintId) {
        if self.kept.remove(&id).is_some() {
            self.watch.release(id);
        }
    }

    /// Whether the state is still fresh, as of this moment.
    pub(crate) fn verdict(&mut self, id: FingerprintId) -> Verdict {
        self.drain();
        let Some(kept) = self.kept.get_mut(&id) else {
            return Verdict::Stale(Change { path: Vec::new(), what: What::Forgotten });
        };
        if kept.suspicion == Suspicion::Clear {
            return Verdict::Fresh;
        }
        if kept.suspicion == Suspicion::Moved {
            self.watch.release(id);
            (kept.suspicion, kept.marked) = place(&mut self.watch, &kept.fingerprint, id);
        }
        // Compared after it was watched: what changes from here on is an event.
        let verdict = kept.fingerprint.check();
        if verdict == Verdict::Fresh && kept.suspicion == Suspicion::Touched {
            kept.suspicion = Suspicion::Clear;
        }
        verdict
    }

    /// Whether the watch has something to tell that was not taken in yet. Reads nothing.
    pub(crate) fn rings(&self) -> bool {
        self.watch.rings()
    }

    /// What rings when something that is watched may have changed: for others to look at, and to
    /// read nothing from.
    pub(crate) fn doorbell(&self) -> Option<rustix::fd::OwnedFd> {
        self.watch.doorbell()
    }

    /// Whether an untouched watch is all that it takes to be fresh.
    pub(crate) fn is_watched(&self, id: FingerprintId) -> bool {
        self.kept.get(&id).is_some_and(|kept| kept.suspicion == Suspicion::Clear)
    }

    /// Takes in what the watch has to tell.
    fn drain(&mut self) {
        let kept = &mut self.kept;
        let drained = self.watch.drain(|id, touch| {
            if let Some(kept) = kept.get_mut(&id) {
                kept.raise(kept.meaning(touch));
            }
        });
        if let Err(Lost) = drained {
            self.kept.values_mut().for_each(|kept| kept.raise(Suspicion::Moved));
        }
    }
}

/// Watches all that a fingerprint depends on. It was built, or touched, before: so it has to be
/// compared once more.
fn place(watch: &mut Watch, fingerprint: &Fingerprint, id: FingerprintId) -> (Suspicion, Marked) {
    match ways::watch_all(watch, fingerprint.places(), id) {
        Ok(marked) => (Suspicion::Touched, marked),
        Err(watch::Unwatchable) => {
            watch.release(id);
            (Suspicion::Always, Marked::default())
        }
    }
}

impl Kept {
    /// What an event means to it.
    fn meaning(&self, touch: Touch<'_>) -> Suspicion {
        let names = &self.marked;
        match touch {
            Touch::Moved => Suspicion::Moved,
            Touch::Itself => Suspicion::Touched,
            Touch::Entry(name, _) if names.ways.contains(name) => Suspicion::Moved,
            Touch::Entry(_, Interest::Every) => Suspicion::Touched,
            Touch::Entry(name, Interest::Named) if self.concerns(name) => Suspicion::Touched,
            Touch::Content(name) if names.ways.contains(name) || self.concerns(name) => {
                Suspicion::Touched
            }
            Touch::Entry(_, Interest::Named) | Touch::Content(_) => Suspicion::Clear,
        }
    }

    fn concerns(&self, name: &[u8]) -> bool {
        self.marked.ends.contains(name) || self.fingerprint.concerns(name)
    }

    fn raise(&mut self, suspicion: Suspicion) {
        self.suspicion = self.suspicion.max(suspicion);
    }
}
