//! What is loaded of a handler: whether it is what would be loaded now, what becomes of loading it
//! anew, and who hears of that.
//!
//! ```text
//!   fresh ── edited ──▶ loads anew ──┬─ admitted ──▶ fresh
//!     ▲                    ▲         └─ refused, and nothing has changed since: the old goes on
//!     └── admitted ────────┴── edited ──┘
//! ```
//! Invariants: what is refused is judged by what was there when it was loaded, so that any edit of it
//! has it loaded once more, at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use hob_core::event::{Cause, Loaded as Became};
use hob_core::hooks::signal_name;
use hob_core::ids::{PoolId, WorkerId};
use hob_core::key::Key;
use hob_core::log::Category;
use hob_core::requests::Event;
use hob_resolve::Program;
use hob_runtimes::Handlers;
use hob_wire::exit::Exit;
use hob_wire::strings::Strings;
use hob_wire::worker::TargetKind;
use rustix::fd::OwnedFd;
use rustix::net::Shutdown;

use crate::ctx::Ctx;
use crate::freshness::{Before, Fingerprint, FingerprintId, Freshness, NotYet, Sources, Verdict};
use crate::jobs::job::Performer;
use crate::warm::lesson::Lesson;

use super::Catalog;

/// What was edited while it was loaded, and could not be loaded, is loaded once more so often before
/// the old goes on.
const AGAIN_MAX: u32 = 5;

/// A handler, as far as it is loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(super) key: Key,
    pub(super) name: String,
    /// What its receipts say of it.
    pub(super) performer: Arc<Performer>,
    pub(super) definition: Definition,
    pub(super) lesson: Lesson,
    pub(super) freshness: Freshness,
    /// Of what its newest zygote (or worker) loaded.
    pub(super) fingerprint: Option<FingerprintId>,
    /// What its interpreter last said when it could not be loaded.
    pub(super) trouble: Option<String>,
    /// Its zygote that is loading, and the refusal of the last one.
    pub(super) attempt: Option<Attempt>,
    pub(super) refused: Option<Refused>,
    /// How often in a row what was loaded was edited meanwhile, and could not be loaded either.
    pub(super) again: u32,
    /// A person was told that it does not load, and not yet that it does again.
    pub(super) complained: bool,
    /// The workers' ends of the lanes that rely on its watch.
    pub(super) lent: Vec<Weak<OwnedFd>>,
}

/// What its `hob.toml` says of a handler, as it was found.
#[derive(Debug)]
pub(super) struct Definition {
    /// What its workers are: an interpreter, or the handler's file itself.
    pub(super) host: Program,
    /// What its workers load, as a preload names it.
    pub(super) kind: TargetKind,
    pub(super) target: Vec<u8>,
    /// The environment that its workers start with.
    pub(super) env: Arc<Strings>,
    /// The directory of its `hob.toml`.
    pub(super) directory: Option<OwnedFd>,
    /// After so many failed deliveries a tell is a dead letter.
    pub(super) tries: u32,
    /// The variables that it names.
    pub(super) variables: Vec<String>,
}

/// A zygote that is loading.
#[derive(Debug)]
pub(super) struct Attempt {
    worker: WorkerId,
    since: SystemTime,
    /// What it had read when it gave up.
    lesson: Option<Lesson>,
    /// Whether it has said why.
    explained: bool,
    /// What ended it, if a signal did. Another one is made then, until the core gives up.
    ended_by: Option<u8>,
}

/// What could not be loaded, by what was there then; `None`: that cannot be told.
#[derive(Debug)]
pub(super) struct Refused(Option<FingerprintId>);

impl Loaded {
    /// The name of its program.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// After so many failed deliveries a tell to it is a dead letter.
    pub(crate) fn tries(&self) -> u32 {
        self.definition.tries
    }

    /// The variables that its configuration names.
    pub(crate) fn variables(&self) -> &[String] {
        &self.definition.variables
    }

    /// Why it cannot be loaded.
    pub(crate) fn why_not(&self) -> &str {
        self.trouble.as_deref().unwrap_or_else(|| ended_early(&self.definition.host))
    }

    /// Whether what answers is known not to be what would be loaded now.
    pub(crate) fn is_old(&self) -> bool {
        self.refused.is_some() || self.fingerprint.is_none()
    }

    /// Shuts the workers' ends of its lanes: what was sent before is read and refused, what comes
    /// after never arrives.
    pub(super) fn recall_lanes(&mut self) {
        for end in self.lent.drain(..).filter_map(|end| end.upgrade()) {
            let _ = rustix::net::shutdown(&*end, Shutdown::Read);
        }
    }

    /// Forgets what it is judged by: it is loaded anew.
    fn unload(&mut self) {
        let refused = self.refused.take().and_then(|Refused(id)| id);
        for id in [self.fingerprint.take(), refused].into_iter().flatten() {
            self.freshness.forget(id);
        }
    }

    /// What is to be loaded now is what was judged last: loaded, or refused. `None`: it is being
    /// loaded, or was never.
    fn is_as_judged(&mut self) -> Option<bool> {
        let id = match (&self.refused, self.fingerprint) {
            (Some(Refused(None)), _) => return Some(false),
            (Some(Refused(Some(id))), _) => *id,
            (None, Some(id)) => id,
            (None, None) => return None,
        };
        Some(self.freshness.verdict(id) == Verdict::Fresh)
    }

    /// Keeps the fingerprint of what was loaded, if it is still that.
    fn keep(&mut self, built: Result<Fingerprint, NotYet>) -> Option<FingerprintId> {
        let id = self.freshness.keep(built.ok()?);
        // The first look puts it under watch, and says whether it held until then.
        let holds = self.freshness.verdict(id) == Verdict::Fresh;
        if !holds {
            self.freshness.forget(id);
        }
        holds.then_some(id)
    }

    /// The fingerprint of what could not be loaded: by what it told that it had read, and by what was
    /// read of the old, of which anything may be gone.
    fn fingerprint_of(&mut self, attempt: &Attempt) -> Result<Fingerprint, NotYet> {
        let old = &self.lesson;
        let told = attempt.lesson.as_ref().unwrap_or(old);
        let lessons = [old, told].into_iter();
        let candidates = lessons.flat_map(|lesson| lesson.files.iter().chain(&lesson.opened));
        let candidates: Vec<_> = candidates.cloned().collect();
        let sources = Sources {
            files: &Default::default(),
            candidates: &candidates,
            directories: &told.directories,
            names: &told.names(),
            whole: &Default::default(),
            asked: &BTreeMap::new(),
            links: &BTreeMap::new(),
        };
        self.freshness.build(sources, &Before::default(), attempt.since)
    }
}

impl Catalog {
    /// Tells the core if what is warm of a pool is not what would be loaded now.
    pub(crate) fn is_loaded_fresh(&mut self, ctx: &mut Ctx<'_>, pool: PoolId) {
        let Some(loaded) = self.handlers.get_mut(&pool) else { return };
        match loaded.is_as_judged() {
            None => {}
            Some(true) if loaded.refused.is_some() => ctx.request(Event::Again { pool }),
            Some(true) => {}
            Some(false) => self.load_anew(ctx, pool),
        }
    }

    /// What is there now is another one than was loaded.
    pub(crate) fn load_anew(&mut self, ctx: &mut Ctx<'_>, pool: PoolId) {
        if let Some(loaded) = self.handlers.get_mut(&pool) {
            hob_os::debug!(Category::Files, "{} is not what was loaded", loaded.name);
            loaded.unload();
        }
        ctx.request(Event::Stale { pool });
    }

    /// Takes in what a zygote (or a worker of its own) has loaded; `false`: not to be used, since
    /// it may not be what is there now.
    pub(crate) fn admit(&mut self, pool: PoolId, notes: &Strings, since: SystemTime) -> bool {
        let Some(loaded) = self.handlers.get_mut(&pool) else { return false };
        let mut lesson = Lesson::default();
        let _ = lesson.take(notes, loaded.definition.host.row().variables);
        let candidates: Vec<_> = lesson.opened.iter().cloned().collect();
        let names = lesson.names();
        let sources = lesson.sources(&candidates, &names);
        let built = loaded.freshness.build(sources, &Before::default(), since);
        let Some(id) = loaded.keep(built) else { return false };
        loaded.unload();
        loaded.fingerprint = Some(id);
        loaded.lesson = lesson;
        (loaded.trouble, loaded.attempt, loaded.again) = (None, None, 0);
        true
    }

    /// A zygote is about to load a handler.
    pub(crate) fn attempts(&mut self, pool: PoolId, worker: WorkerId) {
        if let Some(loaded) = self.handlers.get_mut(&pool) {
            let since = SystemTime::now();
            let (lesson, explained, ended_by) = (None, false, None);
            loaded.attempt = Some(Attempt { worker, since, lesson, explained, ended_by });
        }
    }

    /// Whether it is this zygote whose loading counts.
    pub(crate) fn is_attempt(&self, pool: PoolId, worker: WorkerId) -> bool {
        let attempt = self.handlers.get(&pool).and_then(|loaded| loaded.attempt.as_ref());
        attempt.is_some_and(|attempt| attempt.worker == worker)
    }

    /// A zygote tells what it had read when it gave up.
    pub(crate) fn attempt_noted(&mut self, pool: PoolId, worker: WorkerId, notes: &Strings) {
        let Some(loaded) = self.handlers.get_mut(&pool) else { return };
        let variables = loaded.definition.host.row().variables;
        if let Some(attempt) = loaded.attempt.as_mut().filter(|attempt| attempt.worker == worker) {
            let mut lesson = Lesson::default();
            let _ = lesson.take(notes, variables);
            attempt.lesson = Some(lesson);
        }
    }

    /// A zygote has said why it cannot load.
    pub(crate) fn attempt_explained(
        &mut self,
        ctx: &mut Ctx<'_>,
        pool: PoolId,
        worker: WorkerId,
        text: String,
    ) {
        let Some(loaded) = self.handlers.get_mut(&pool) else { return };
        loaded.trouble = Some(text);
        if let Some(attempt) = loaded.attempt.as_mut().filter(|attempt| attempt.worker == worker) {
            attempt.explained = true;
        }
        self.attempt_failed(ctx, pool, worker);
    }

    /// A zygote has ended before it had loaded. That a signal ended it says nothing of what it was to
    /// load: whether it was once too often is the core's to say.
    pub(crate) fn attempt_ended(
        &mut self,
        ctx: &mut Ctx<'_>,
        pool: PoolId,
        worker: WorkerId,
        exit: Exit,
    ) {
        let loaded = self.handlers.get_mut(&pool);
        let attempt = loaded.and_then(|loaded| loaded.attempt.as_mut());
        match (attempt.filter(|attempt| attempt.worker == worker), exit) {
            (Some(attempt), Exit::Signal(signal)) => attempt.ended_by = Some(signal),
            (Some(_), Exit::Code(_)) => self.attempt_failed(ctx, pool, worker),
            (None, _) => {}
        }
    }

    /// A zygote has not loaded. What was edited meanwhile is loaded once more, before anybody is
    /// answered by what is older.
    pub(crate) fn attempt_failed(&mut self, ctx: &mut Ctx<'_>, pool: PoolId, worker: WorkerId) {
        let Some(loaded) = self.handlers.get_mut(&pool) else { return };
        let Some(attempt) = loaded.attempt.take_if(|attempt| attempt.worker == worker) else {
            return;
        };
        if !attempt.explained {
            loaded.trouble = Some(match attempt.ended_by {
                Some(signal) => ended_by(Cause::Signal(signal), &loaded.definition.host),
                None => ended_early(&loaded.definition.host).to_owned(),
            });
        }
        loaded.unload();
        let built = loaded.fingerprint_of(&attempt);
        let id = loaded.keep(built);
        loaded.again = if id.is_some() { 0 } else { loaded.again + 1 };
        let why = loaded.trouble.as_deref().unwrap_or_default();
        hob_os::debug!(Category::Pool, "{} does not load: {why}", loaded.name);
        if (1..=AGAIN_MAX).contains(&loaded.again) {
            ctx.request(Event::Stale { pool });
        } else {
            (loaded.refused, loaded.again) = (Some(Refused(id)), 0);
        }
    }

    /// What became of loading a pool.
    pub(crate) fn became(&mut self, ctx: &mut Ctx<'_>, pool: PoolId, became: Became) {
        if matches!(became, Became::Kept | Became::Not(_))
            && let Some(loaded) = self.handlers.get(&pool)
            && let Some(worker) = loaded.attempt.as_ref().map(|attempt| attempt.worker)
        {
            // It was not heard of in time, or died as those before it.
            self.attempt_failed(ctx, pool, worker);
        }
        let Some(loaded) = self.handlers.get_mut(&pool) else { return };
        if let Became::Not(cause @ (Cause::Signal(_) | Cause::System)) = became {
            loaded.trouble = Some(ended_by(cause, &loaded.definition.host));
        }
        let (name, trouble) = (&loaded.name, loaded.trouble.as_deref().unwrap_or("it ended"));
        let line = match became {
            Became::Kept if !loaded.complained => {
                format!("{name}: the new code does not load, the old goes on: {trouble}")
            }
            Became::Anew if loaded.complained => format!("{name}: the new code answers"),
            Became::Kept | Became::Anew | Became::Not(_) | Became::Nothing => String::new(),
        };
        loaded.complained = match became {
            Became::Kept => true,
            Became::Anew => false,
            Became::Not(_) | Became::Nothing => loaded.complained,
        };
        if !line.is_empty() {
            hob_os::log!(Info, Category::Files, "{line}");
            if self.mounts.contains_key(name) {
                say(line);
            }
        }
        let why = match became {
            Became::Kept | Became::Not(_) => Some(trouble.to_owned()),
            Became::Anew | Became::Nothing => None,
        };
        self.reloads.ended(pool, code(became), why.as_deref());
    }
}

/// The stable code of what became of a reload.
pub(super) fn code(became: Became) -> &'static str {
    match became {
        Became::Anew => "reloaded",
        Became::Kept => "kept",
        Became::Not(_) => "not-loaded",
        Became::Nothing => "nothing-loaded",
    }
}

/// What is said of a worker that ended before it was ready, and said nothing of why.
fn ended_early(host: &Program) -> &'static str {
    match host.row().handlers {
        Handlers::Program => {
            "it ended before it was ready (hob's log has what it printed); a native program calls \
             `hob_worker::serve`"
        }
        Handlers::Function | Handlers::No => "its interpreter ended",
    }
}

/// What is said of workers that did not end by themselves, each time, before they were ready.
fn ended_by(cause: Cause, host: &Program) -> String {
    match cause {
        Cause::Itself => ended_early(host).to_owned(),
        Cause::Signal(signal) => {
            let name = signal_name(signal);
            format!("each of its processes died by signal {signal} ({name}) before it was ready")
        }
        Cause::System => "the system refused to make a process, each time".to_owned(),
    }
}

/// Tells a person, without waiting for whoever reads it.
fn say(line: String) {
    tokio::task::spawn_blocking(move || {
        // Without anybody who reads it, the log has it.
        hob_os::say::line(line.as_bytes());
    });
}
