//! Freshness as the owner asks for it: per key, whether what a pool's zygote loaded is still what
//! a cold start would load. `freshness` knows how; this knows whose.

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::ids::ProgramId;
use hob_core::key::Key;

use crate::freshness::{Before, FingerprintId, Freshness, NotYet, Verdict};
use crate::warm::lesson::Lesson;
use crate::warm::programs::ZygoteSpec;

/// The fingerprints of all warm states.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    freshness: Freshness,
    by_key: HashMap<Key, (ProgramId, FingerprintId)>,
}

/// Whether a warm state can be used from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It can, until its fingerprint says otherwise.
    Admitted,
    /// What it loaded may have changed meanwhile; it has to be made again.
    Again(NotYet),
    /// What others of the same key loaded has changed since: they must not be used any more.
    OthersStale,
}

impl Fingerprints {
    pub(crate) fn new() -> Fingerprints {
        Fingerprints { freshness: Freshness::new(), by_key: HashMap::new() }
    }

    /// The fingerprints as such, and the watch that all of them share.
    pub(crate) fn files(&mut self) -> &mut Freshness {
        &mut self.freshness
    }

    /// Takes the fingerprint of what a process that began to load at `since` has loaded; `before`
    /// is what was there then. Where the key has one already, its other processes are judged by it
    /// before it is replaced: an edit that fell between two standbys must not hide behind the second
    /// one's fingerprint.
    pub(crate) fn admit(
        &mut self,
        key: Key,
        spec: &ZygoteSpec,
        lesson: &Lesson,
        before: &Before,
        since: SystemTime,
    ) -> Admission {
        if !self.holds(key) {
            return Admission::OthersStale;
        }
        let script = &spec.program.target.name;
        // The script's own code is compared with its file by the worker, on every call.
        let candidates = spec.program.watch.iter().chain(&lesson.opened);
        let candidates: Vec<_> = candidates.filter(|path| *path != script).cloned().collect();
        let names = lesson.names();
        let sources = lesson.sources(&candidates, &names);
        match self.freshness.build(sources, before, since) {
            Ok(fingerprint) => {
                let id = self.freshness.keep(fingerprint);
                if let Some((_, old)) = self.by_key.insert(key, (spec.id, id)) {
                    self.freshness.forget(old);
                }
                Admission::Admitted
            }
            Err(not_yet) => Admission::Again(not_yet),
        }
    }

    /// Whether a process of this key has loaded what was learned, since all was given up.
    pub(crate) fn knows(&self, key: Key) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Whether the key's warm state is as a cold start would be. A key without any has nothing
    /// to be stale.
    pub(crate) fn holds(&mut self, key: Key) -> bool {
        match self.by_key.get(&key) {
            Some((_, id)) => self.freshness.verdict(*id) == Verdict::Fresh,
            None => true,
        }
    }

    /// Gives up all fingerprints of a program.
    pub(crate) fn forget(&mut self, program: ProgramId) {
        let freshness = &mut self.freshness;
        self.by_key.retain(|_, (owner, id)| {
            let keep = *owner != program;
            if !keep {
                freshness.forget(*id);
            }
            keep
        });
    }
}
